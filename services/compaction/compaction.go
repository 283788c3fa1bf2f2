// Package compaction accepts messages, hands each to the harness in order and once, and requests compactions of long
// conversations. The work after a compaction is handed out exactly once, across crashes of every process.
//
//	send ──▶ message.accepted ──▶ queue ──▶ turn.requested {message}            the context has room
//	                                │
//	                                └─▶ compaction.requested {on-send} ─▶ harness compacts ─▶ turn.requested
//	usage at the threshold in a turn ─▶ turn.stop_requested + compaction.requested {mid-stream} ─▶ … ─▶ turn continues
//	turn failed: context_exceeded ────▶ compaction.requested {mid-stream} ─▶ … ─▶ the same turn again, once
//	session idle for a while ─────────▶ a place in the cell ─▶ compaction.requested {idle}
//
// Terms. A message is accepted when it is in the log; every decision about it follows later. It is handed out by the
// turn.requested that names it, and delivered by the turn.started that takes it. A follow-up is the purpose of a
// compaction: a message, or the continuation of a turn. It is pending from the compaction's end until a turn.requested
// names that compaction; nothing else is handed out before it. A commit is atomic, so a message is always in the queue
// or with a turn, and a follow-up is always pending or requested.
//
// Order. A blocking prompt stops all decisions of this service. While a retry is scheduled the queue waits behind it;
// after an abandoned failure, a stop or a crash it waits for a person. The predicates are in pkg/session, and retry
// uses the same ones.
//
// Under failure:
//
//	killed between any two steps     the next pass decides the same; ids are derived from the session's place in the
//	                                 log, and the compare-and-set rejects a second attempt.
//	the harness dies in a compaction the reconciler fails it; it is requested again, and the follow-up stays pending.
//	the harness hangs in one         after stall_after without a fact or a ping it has failed, as below.
//	a compaction fails               again after 2, 4, 8 … 60 s, by a durable timer; after the last attempt the
//	                                 follow-up is handed out without it if it fits, else it is held until a person
//	                                 acts, with the reason in the document.
//	a compaction does not help       no other one is requested until usage has fallen; the document says stalled.
//	a message is sent again          its id is known: the same content is a success, other content is refused. The
//	                                 log knows it when the document has forgotten it.
//	two replicas decide at once      one append wins.
//	the idle claim's holder dies     its lease expires; the next holder first waits for the compactions that still
//	                                 run.
package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Name is the service's name on the wire.
const Name = "compaction"

const serviceText = "takes in messages, hands them out in order, has conversations compacted"

// Config configures a compaction service. [Default] returns the default values.
type Config struct {
	// IdleCompactionsMax is how many idle sessions of the cell are compacted at once. Default 1, at least 1. More: the
	// provider has more load from sessions that no person waits for.
	IdleCompactionsMax int
	// Walk is the pause between two passes over all documents. Default 30 s, more than 0. Longer: changes that every
	// trigger missed wait longer. Shorter: more reads.
	Walk time.Duration
	// AtOnceMax is how many sessions the service handles concurrently. Default 256, at least 1. Fewer: a burst takes
	// longer. More: other clients wait longer for the broker.
	AtOnceMax int
	// Version is the semantic version that the service announces.
	Version string
}

// Default returns the configuration of a service that was started without options.
func Default() Config {
	return Config{IdleCompactionsMax: 1, Walk: 30 * time.Second, AtOnceMax: 256, Version: "0.1.0"}
}

// Validate returns an error that lists each invalid field.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("config: %s: want %s", name, want))
		}
	}
	need(c.IdleCompactionsMax >= 1, "idle-compactions-max", "1 or more")
	need(c.Walk > 0, "walk", "more than 0")
	need(c.AtOnceMax >= 1, "at-once-max", "1 or more")
	return errors.Join(errs...)
}

// Service is the compaction service of one process.
type Service struct {
	bus      *bus.Bus
	cfg      Config
	log      zerolog.Logger
	loop     *control.Loop
	idle     *idlers
	activity *control.Activity
	count    counts
	had      *control.History // messages
	reading  chan struct{}    // has a place for each send that reads the log of a session
}

// New returns a service. The cell must be set up before: see [layout.Layout.Ensure].
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Service{bus: b, cfg: cfg, log: log.With().Str("service", Name).Logger(), activity: control.NewActivity(b),
		had: control.NewHistory(b.Log.Each, messageOf, control.HistoryMax), reading: make(chan struct{}, logReadsMax)}
	s.idle = newIdlers(s)
	var err error
	s.loop, err = control.New(b, control.Config{
		Service: Name, Writer: events.WriterCompaction, Log: s.log, Walk: cfg.Walk, AtOnceMax: cfg.AtOnceMax,
		Decide: s.decide, Rests: s.rests, Depends: depends,
	})
	return s, err
}

// Sources returns the consumers that the service reads.
func Sources(b *bus.Bus) []consumer.Source {
	return []consumer.Source{control.Documents(Name), control.Alarms(b, Name)}
}

// Run serves until ctx ends. Then it hands over and returns nil. It returns an error only if a new attempt would fail
// too.
func (s *Service) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error { return control.Register(ctx, s.bus, Name, s.cfg.Version) },
		func(ctx context.Context) error {
			return s.bus.Services.Serve(ctx, Name, s.cfg.Version, serviceText, s.endpoints())
		},
		func(ctx context.Context) error {
			if err := s.activity.Listen(ctx); err != nil {
				return err
			}
			return s.loop.Run(ctx)
		},
		s.activity.Beat,
		s.idle.run,
	)
}

// decide handles one session for the loop.
func (s *Service) decide(_ context.Context, st *session.State, now events.Clock, _ session.Source) (control.Decision,
	error) {
	d := Decide(st, Input{Now: now.Now, Steps: now.Steps, Progress: s.activity.Of(st.Ref(), now.Now)})
	s.idle.record(st, d.Idle)
	return d.forLoop(), nil
}

// rests implements [control.Config.Rests]: the head has all instants at which the service acts. A session that waits
// for its place among the idle ones, or is compacted there, is decoded, so that its place is given away when that ends.
func (s *Service) rests(r events.Ref, _ *session.Head, _ events.Clock) bool { return !s.idle.has(r) }

// depends implements [control.Config.Depends]. A session gets its place among the idle ones when it is due, and as long
// as it has the place it does not rest: it is among the documents that a walk knows.
func depends(*session.Head) bool { return false }

// decideInPlace handles an idle session that has its place.
func (s *Service) decideInPlace(_ context.Context, st *session.State, now events.Clock,
	_ session.Source) (control.Decision, error) {
	d := Decide(st, Input{Now: now.Now, Steps: now.Steps, Progress: s.activity.Of(st.Ref(), now.Now), Idle: true})
	return d.forLoop(), nil
}

func (d Decision) forLoop() control.Decision {
	return control.Decision{Facts: d.Facts, CheckAt: d.CheckAt, Local: d.Watch, After: d.After}
}
