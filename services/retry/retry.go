// Package retry brings failed turns back by themselves, durably, and notices turns that have stalled.
//
//	documents, timers, slow walk ─▶ Decide ─▶ retry.scheduled · turn.requested · retry.abandoned (CAS)
//	people: now, cancel, resume ───────────▶ turn.requested · retry.abandoned, in their name
//	progress pings ─▶ when was it heard of ─▶ turn.stop_requested, turn.failed {stalled}
//
// Terms. A turn that failed, or whose process died, is tried again: the attempts are counted from 1, until a turn comes to
// its end or a person begins another. A retry is scheduled for an instant, then fires: the same turn is requested from the
// harness, as pending work. Or it is given up, for a reason that everybody sees.
//
//	failed ──▶ scheduled ──due──▶ starting ──taken──▶ running ──▶ completed: all forgotten
//	   │            │                 │                  └──────▶ failed: one attempt more
//	   └────────────┴── abandoned ◀───┘ (starting: by a person's stop, or when retrying is switched off)
//
// What is decided is in the log: attempt, instant and reason survive every restart. The service keeps nothing but when it
// has heard of running turns, and its start counts as having heard of all.
//
// When. The instant counts from the broker's time of the failure. Each retry that waits has an alarm kept by the broker,
// which is certain, and up to 0.3 s late; what is due within a minute is also woken here, which is precise. Whichever comes
// first fires; the other finds nothing to do. What came due while nobody was active fires at once, a hundred a second, so
// that a provider does not get a night's failures in one instant.
//
// Who goes first. Retry waits for a person whom a prompt waits for, and for compaction: see [session.State.CompactionFirst].
//
// Under failure:
//
//	killed between failure and decision    the next look decides, from the document.
//	killed with retries scheduled          another replica, or the next start, looks at all; the alarms go off as well.
//	two replicas decide                    the compare-and-set lets one write; both would write the same.
//	cancelled as it fires                  one of the two is in the log; who asked is told which.
//	the broker was away                    alarms that came due go off when it is back; silence is counted from then.
//	this process stood still               what it did not hear meanwhile is no silence: that is counted from then.
//	a harness does not take it             it stays in its view, with its age; that is no failure.
package retry

import (
	"bytes"
	"context"
	"encoding/json"
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
const Name = "retry"

// Limits of a service.
const (
	jitterMax   = 1.0
	serviceText = "tries failed turns again, and notices turns that have stalled"
)

// Config is how one retry service works. [Default] fills it.
type Config struct {
	// Jitter is up to which part of the delay is added to it, derived from the turn, 0 to 1. Default 0. Too little: turns
	// that failed together are tried again together; too much: people wait for longer.
	Jitter float64
	// Walk is the pause between two looks at everything. Default 30 s, more than 0. Longer: what every trigger has missed
	// waits for longer, and stalls of a minute and more are noticed later by as much; shorter: more reading.
	Walk time.Duration
	// AtOnceMax is how many sessions are worked on at once. Default 256, at least 1. Fewer: many at once take longer; more:
	// others wait longer for the broker.
	AtOnceMax int
	// Version is what the service says of itself, a semantic version.
	Version string
}

// Default is a service as it is started by one who chose nothing.
func Default() Config { return Config{Walk: 30 * time.Second, AtOnceMax: 256, Version: "0.1.0"} }

// Validate reports everything that is wrong, and changes nothing.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("retry: config: %s: want %s", name, want))
		}
	}
	need(c.Jitter >= 0 && c.Jitter <= jitterMax, "retry-jitter", "0 to 1") // and so no NaN
	need(c.Walk > 0, "walk", "more than 0")
	need(c.AtOnceMax >= 1, "at-once-max", "1 or more")
	return errors.Join(errs...)
}

// Retry is one process's retry service.
type Retry struct {
	bus   *bus.Bus
	cfg   Config
	log   zerolog.Logger
	loop  *control.Loop
	heard *control.Heard
	pace  *pace
	link  control.Link
	clock control.Link
}

// New makes a service; the cell must have been set up ([bus.Bus.Ensure]).
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Retry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Retry{bus: b, cfg: cfg, log: log.With().Str("service", Name).Logger(), heard: control.NewHeard(b), pace: newPace()}
	var err error
	r.loop, err = control.New(b, control.Config{
		Service: Name, Writer: events.WriterRetry, Log: r.log, Walk: cfg.Walk, AtOnceMax: cfg.AtOnceMax, Decide: r.decide, Takeover: r.takeover, Later: later,
	})
	return r, err
}

// Sources are the consumers that the service reads with.
func Sources(b *bus.Bus) []bus.Source {
	return []bus.Source{control.Documents(Name), control.Alarms(b, Name)}
}

// Counts are the service's counters by name.
func (r *Retry) Counts() map[string]uint64 { return r.loop.Counts() }

// Run serves until ctx ends, then hands over and returns nil. An error is one that trying again will not mend.
func (r *Retry) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error { return control.Register(ctx, r.bus, Name, r.cfg.Version) },
		func(ctx context.Context) error {
			if err := r.heard.Listen(ctx); err != nil {
				return err
			}
			if err := r.takeover(ctx); err != nil { // what came due before this takes its turn, also for a walk
				return ignoreEnd(ctx, err)
			}
			return r.loop.Run(ctx)
		},
		r.heard.Beat,
		func(ctx context.Context) error {
			return r.bus.Serve(ctx, Name, r.cfg.Version, serviceText, r.endpoints())
		},
	)
}

// ignoreEnd is nil for an error that is only the end that was asked for.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// takeover: this process has become the active one.
func (r *Retry) takeover(ctx context.Context) error {
	now, err := r.bus.Now(ctx)
	if err != nil {
		return err
	}
	r.pace.begin(now)
	return nil
}

// clockSet gives all places anew: those that were given before are instants of the broker's clock as it was.
func (r *Retry) clockSet(ctx context.Context) error {
	r.pace.clear()
	return r.takeover(ctx)
}

// decide is one look of the loop at one session. What came due before anybody was active takes its turn. When the broker was
// away, what came due meanwhile takes its turn, too; now may be an instant to come, the broker's return is not.
func (r *Retry) decide(ctx context.Context, s *session.State, now events.Clock, _ session.Source) (control.Decision, error) {
	var err error
	r.link.Restored(r.bus.Reconnects(), func() bool { err = r.takeover(ctx); return err == nil })
	r.clock.Restored(now.Epoch, func() bool { err = errors.Join(err, r.clockSet(ctx)); return err == nil })
	if err != nil {
		return control.Decision{}, err
	}
	d := Decide(s, Input{Now: now.Now, Steps: now.Steps, Progress: r.heard.Of(s.Ref(), now.Now), Jitter: r.cfg.Jitter})
	look := control.Decision{Facts: d.Facts, Look: d.Look, Local: d.Watch, Ahead: !d.Watch}
	if len(d.Facts) > 0 {
		if _, fires := d.Facts[0].(events.TurnRequested); fires {
			look.Rest = true
			if at := r.pace.turn(s.Ref(), dueAt(s, now.Steps), now.Now); at.After(now.Now) {
				return control.Decision{Look: at, Local: true, Ahead: true}, nil
			}
		}
	}
	return look, nil
}

// later is when a retry that a document shows as scheduled is due; zero where the document shows none. The mark alone proves
// nothing: what a harness puts into a turn's options may read the same. So the field is looked for where it belongs.
func later(doc []byte) time.Time {
	if !bytes.Contains(doc, []byte(`,"retry":{"state":"scheduled",`)) {
		return time.Time{}
	}
	var r struct {
		State string    `json:"state"`
		DueAt time.Time `json:"due_at"`
	}
	if json.Unmarshal(session.PeekField(doc, "retry"), &r) != nil || r.State != session.RetryScheduled {
		return time.Time{}
	}
	return r.DueAt
}

// changedReply is the answer to a wish: where in the log it stands. A document with this seq or more has seen it.
type changedReply struct {
	Seq uint64 `json:"seq,omitempty"`
}

func (r *Retry) endpoints() []bus.Endpoint {
	return []bus.Endpoint{{Verb: "now", Handle: r.wish(Now)}, {Verb: "cancel", Handle: r.wish(Cancel)}, {Verb: "resume", Handle: r.wish(Resume)}}
}

// wish makes the handler of one kind of wish.
func (r *Retry) wish(decide func(*session.State) (session.Decision, error)) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		var w Wish
		if err := events.ReadRequest(body, &w); err != nil {
			return nil, err
		}
		seq, err := r.loop.CarryOut(ctx, w.Ref, w.By, decide)
		if err != nil {
			return nil, err
		}
		return json.Marshal(changedReply{seq})
	}
}
