// Package compaction takes in what people say, hands it to the harness in order and once, and has conversations compacted
// that grow too long. What follows a compaction is handed out exactly once, whatever dies when.
//
//	send ──▶ message.accepted ──▶ queue ──▶ turn.requested {message}            the context has room
//	                                │
//	                                └─▶ compaction.requested {on-send} ──▶ harness compacts ──▶ turn.requested {follow-up}
//	usage at the threshold in a turn ─▶ turn.stop_requested + compaction.requested {mid-stream} ─▶ … ─▶ the turn goes on
//	turn failed: context_exceeded ────▶ compaction.requested {mid-stream} ─▶ … ─▶ the same turn again, once
//	nobody there for a while ─────────▶ a place in the cell ─▶ compaction.requested {idle}
//
// Terms. A message is accepted when it is in the log, which is before anything is decided about it; it is handed out by the
// turn.requested that names it, and delivered by the turn.started that takes it. A follow-up is what a compaction was asked
// for: a message, or that a turn goes on. It is owed from the compaction's end until a turn.requested names that compaction;
// nothing else is handed out before it. What is said in one commit stands together, so there is no instant at which a
// message is neither in the queue nor with a turn, or a follow-up owed and asked for.
//
// Who goes first. A blocking prompt stops everything here. While a retry is scheduled the queue waits behind it; after a
// failure that was given up, a stop or a crash it waits for a person. The predicates are pkg/session's, and retry asks the
// same ones.
//
// Under failure:
//
//	killed between any two steps     the document calls for the same again; ids come from the session's place in the log,
//	                                 and the compare-and-set voids the second attempt.
//	the harness dies in a compaction the reconciler fails it; it is asked for again, and what follows it stays owed.
//	the harness hangs in one         after stall_after without a fact or a sign of life it has failed, as below.
//	a compaction fails               again after 2, 4, 8 … 60 s, by a durable timer; given up, the follow-up goes without it
//	                                 if it fits, else it is held until a person acts: the document says why.
//	a compaction is of no use        no other one is asked for until usage has fallen; the document says stalled.
//	a message is sent again          its id tells: the same content is a success, another one is refused.
//	two replicas decide at once      one append wins.
//	the idle claim's holder dies     its lease ends; who takes the claim first waits for what is still under way.
package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Name is the service's name on the wire.
const Name = "compaction"

const serviceText = "takes in messages, hands them out in order, has conversations compacted"

// Config is how one compaction service works. [Default] fills it.
type Config struct {
	// IdleAtOnce is how many sessions of the cell are compacted at once because they are idle. Default 1, at least 1. More:
	// the provider is asked more at a time for what nobody waits for.
	IdleAtOnce int
	// Walk is the pause between two looks at everything. Default 30 s, more than 0. Longer: what every trigger has missed
	// waits longer; shorter: more reading.
	Walk time.Duration
	// AtOnceMax is how many sessions are worked on at once. Default 256, at least 1. Fewer: a burst takes longer; more:
	// others wait longer for the broker.
	AtOnceMax int
	// Version is what the service says of itself, a semantic version.
	Version string
}

// Default is a compaction service as it is started by one who chose nothing.
func Default() Config {
	return Config{IdleAtOnce: 1, Walk: 30 * time.Second, AtOnceMax: 256, Version: "0.1.0"}
}

// Validate reports everything that is wrong, and changes nothing.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("compaction: config: %s: want %s", name, want))
		}
	}
	need(c.IdleAtOnce >= 1, "idle-compactions-max", "1 or more")
	need(c.Walk > 0, "walk", "more than 0")
	need(c.AtOnceMax >= 1, "at-once-max", "1 or more")
	return errors.Join(errs...)
}

// Service is one process's compaction service.
type Service struct {
	bus   *bus.Bus
	cfg   Config
	log   zerolog.Logger
	loop  *control.Loop
	idle  *idlers
	heard *control.Heard
	count counts
}

// New makes a compaction service; the cell must have been set up ([bus.Bus.Ensure]).
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Service{bus: b, cfg: cfg, log: log.With().Str("service", Name).Logger(), heard: control.NewHeard(b)}
	s.idle = newIdlers(s)
	var err error
	s.loop, err = control.New(b, control.Config{
		Service: Name, Writer: events.WriterCompaction, Log: s.log, Walk: cfg.Walk, AtOnceMax: cfg.AtOnceMax, Decide: s.decide,
	})
	return s, err
}

// Sources are the consumers that a compaction service reads with.
func Sources(b *bus.Bus) []bus.Source {
	return []bus.Source{control.Documents(Name), control.Alarms(b, Name)}
}

// Run serves until ctx ends, then hands over and returns nil. An error is one that trying again will not mend.
func (s *Service) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error { return control.Register(ctx, s.bus, Name, s.cfg.Version) },
		func(ctx context.Context) error {
			return s.bus.Serve(ctx, Name, s.cfg.Version, serviceText, s.endpoints())
		},
		func(ctx context.Context) error {
			if err := s.heard.Listen(ctx); err != nil {
				return err
			}
			return s.loop.Run(ctx)
		},
		s.heard.Beat,
		s.idle.run,
	)
}

// decide is one look of the loop at one session.
func (s *Service) decide(_ context.Context, st *session.State, now events.Clock, _ session.Source) (control.Decision, error) {
	d := Decide(st, Input{Now: now.Now, Steps: now.Steps, Progress: s.heard.Of(st.Ref(), now.Now)})
	s.idle.note(st, d.Idle)
	return d.forLoop(), nil
}

// decideInPlace is a look at a session whose place among the idle ones has come.
func (s *Service) decideInPlace(_ context.Context, st *session.State, now events.Clock, _ session.Source) (control.Decision, error) {
	d := Decide(st, Input{Now: now.Now, Steps: now.Steps, Progress: s.heard.Of(st.Ref(), now.Now), Idle: true})
	return d.forLoop(), nil
}

func (d Decision) forLoop() control.Decision {
	return control.Decision{Facts: d.Facts, Look: d.Look, Local: d.Watch, After: d.After}
}
