// Package retry requests failed turns again, durably, and fails turns that have stalled.
//
//	documents, timers, slow walk ─▶ Decide ─▶ retry.scheduled · turn.requested · retry.abandoned (CAS)
//	requests: now, cancel, resume ──────────▶ turn.requested · retry.abandoned, in the person's name
//	progress pings ─▶ time of the last one ─▶ turn.stop_requested, turn.failed {stalled}
//
// A turn that failed or was interrupted is tried again. Attempts are counted from 1, until a turn completes or a person
// begins another one. A retry is scheduled for an instant. When it is due, the service requests the same turn from the
// harness, as pending work. Or the service abandons the retry, and the log has the reason.
//
//	failed ──▶ scheduled ──due──▶ starting ──taken──▶ running ──▶ completed: the count ends
//	   │            │                 │                  └──────▶ failed: one attempt more
//	   └────────────┴── abandoned ◀───┘ (starting: a person stops it, or disables retries)
//
// Attempt, instant and reason are in the log, so they survive a restart. The service keeps only the time of the last
// ping of each running turn in memory. At its start, it counts all turns as active at that moment.
//
// The instant of a retry counts from the broker's time of the failure. The broker keeps an alarm for each scheduled
// retry. The alarm is durable and up to 0.3 s late. For a retry that is due within a minute, the service has a timer of
// its own, which is precise. The first of the two requests the turn, and the other one has no effect. Retries that came
// due while no service was active are requested at 100 a second, the first one at once. This limits the load on a
// provider after an outage.
//
// A retry waits while a blocking prompt is open, and while a compaction is due: see [session.State.CompactionFirst].
//
// Under failure:
//
//	killed between failure and decision    the next pass decides, from the document.
//	killed with retries scheduled          another replica or the next start reads all documents; alarms fire, too.
//	two replicas decide                    the compare-and-set lets one write; both would write the same.
//	cancelled when it is due               the log has one of the two; the caller gets a refusal if it is too late.
//	the broker was away                    overdue alarms fire when it is back; silence counts from its return.
//	this process was suspended             pings that it missed do not count as silence, which counts from the end of
//	                                       the suspension.
//	a harness does not take it             it stays in the harness's view, with its age; this is not a failure.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Name is the service's name on the wire.
const Name = "retry"

// Limits of a service.
const (
	jitterMax   = 1.0
	serviceText = "tries failed turns again, and notices turns that have stalled"
)

// Config configures a retry service. [Default] returns the default values.
type Config struct {
	// Jitter is the part of the delay that may be added to it, derived from the turn, 0 to 1. Default 0. Too little:
	// turns that failed together are tried again together. Too much: people wait for longer.
	Jitter float64
	// Walk is the pause between two passes over all documents. Default 30 s, more than 0. Longer: changes that every
	// trigger missed wait for longer, and stalls of a minute or more are noticed later. Shorter: more reads.
	Walk time.Duration
	// AtOnceMax is how many sessions the service handles concurrently. Default 256, at least 1. Fewer: many sessions
	// that are due together take longer. More: other clients wait longer for the broker.
	AtOnceMax int
	// Version is the semantic version that the service announces.
	Version string
}

// Default returns the configuration of a service that was started without options.
func Default() Config { return Config{Walk: 30 * time.Second, AtOnceMax: 256, Version: "0.1.0"} }

// Validate returns an error that lists each invalid field.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("config: %s: want %s", name, want))
		}
	}
	// The comparison also rejects NaN.
	need(c.Jitter >= 0 && c.Jitter <= jitterMax, "retry-jitter", "0 to 1")
	need(c.Walk > 0, "walk", "more than 0")
	need(c.AtOnceMax >= 1, "at-once-max", "1 or more")
	return errors.Join(errs...)
}

// Retry is the retry service of one process.
type Retry struct {
	bus      *bus.Bus
	cfg      Config
	log      zerolog.Logger
	loop     *control.Loop
	activity *control.Activity
	backlog  *backlog
	link     control.Link
	clock    control.Link
}

// New returns a service. The cell must be set up before: see [layout.Layout.Ensure].
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Retry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Retry{bus: b, cfg: cfg, log: log.With().Str("service", Name).Logger(), activity: control.NewActivity(b),
		backlog: newBacklog()}
	var err error
	r.loop, err = control.New(b, control.Config{
		Service: Name, Writer: events.WriterRetry, Log: r.log, Walk: cfg.Walk, AtOnceMax: cfg.AtOnceMax,
		Decide: r.decide, Takeover: r.takeover, Rests: rests, Depends: depends,
	})
	return r, err
}

// Sources returns the consumers that the service reads.
func Sources(b *bus.Bus) []consumer.Source {
	return []consumer.Source{control.Documents(Name), control.Alarms(b, Name)}
}

// Counts returns the service's counters by name.
func (r *Retry) Counts() map[string]uint64 { return r.loop.Counts() }

// Run serves until ctx ends. Then it hands over and returns nil. It returns an error only if a new attempt would fail
// too.
func (r *Retry) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error { return control.Register(ctx, r.bus, Name, r.cfg.Version) },
		func(ctx context.Context) error {
			if err := r.activity.Listen(ctx); err != nil {
				return err
			}
			// Retries that came due before the start get a place, also if the walk finds them.
			if err := r.takeover(ctx); err != nil {
				return ignoreEnd(ctx, err)
			}
			return r.loop.Run(ctx)
		},
		r.activity.Beat,
		func(ctx context.Context) error {
			return r.bus.Services.Serve(ctx, Name, r.cfg.Version, serviceText, r.endpoints())
		},
	)
}

// ignoreEnd returns nil if ctx has ended, and err otherwise.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// takeover records that this process is active from now on.
func (r *Retry) takeover(ctx context.Context) error {
	now, err := r.bus.Clock.Now(ctx)
	if err != nil {
		return err
	}
	r.backlog.begin(now)
	return nil
}

// clockSet gives new places to all overdue retries: the old places are instants of the broker's clock before it was
// set.
func (r *Retry) clockSet(ctx context.Context) error {
	r.backlog.clear()
	return r.takeover(ctx)
}

// decide handles one session for the loop. A retry that came due while no process was active, or while the broker was
// away, waits for its place. now may be in the future, because the loop decides ahead. The broker's return is not.
func (r *Retry) decide(ctx context.Context, s *session.State, now events.Clock,
	_ session.Source) (control.Decision, error) {
	var err error
	r.link.Restored(r.bus.Reconnects(), func() bool { err = r.takeover(ctx); return err == nil })
	r.clock.Restored(now.Epoch, func() bool { err = errors.Join(err, r.clockSet(ctx)); return err == nil })
	if err != nil {
		return control.Decision{}, err
	}
	progress := r.activity.Of(s.Ref(), now.Now)
	d := Decide(s, Input{Now: now.Now, Steps: now.Steps, Progress: progress, Jitter: r.cfg.Jitter})
	decision := control.Decision{Facts: d.Facts, CheckAt: d.CheckAt, Local: d.Watch, Ahead: !d.Watch}
	if len(d.Facts) > 0 {
		if _, fires := d.Facts[0].(events.TurnRequested); fires {
			decision.Rest = true
			if at := r.backlog.place(s.Ref(), dueAt(s, now.Steps), now.Now); at.After(now.Now) {
				return control.Decision{CheckAt: at, Local: true, Ahead: true}, nil
			}
		}
	}
	return decision, nil
}

// rests implements [control.Config.Rests]: the head has all instants at which the service acts.
func rests(events.Ref, *session.Head, events.Clock) bool { return true }

// depends implements [control.Config.Depends]: whether a session rests depends on its document alone.
func depends(*session.Head) bool { return false }

func (r *Retry) endpoints() []rpc.Endpoint {
	return []rpc.Endpoint{
		control.Endpoint(request.RetryNow, r.execute(Now)),
		control.Endpoint(request.RetryCancel, r.execute(Cancel)),
		control.Endpoint(request.RetryResume, r.execute(Resume)),
	}
}

// execute returns the handler of one verb.
func (r *Retry) execute(decide func(*session.State) (session.Decision, error)) func(
	context.Context, request.Retry) (request.Changed, error) {
	return func(ctx context.Context, q request.Retry) (request.Changed, error) {
		d, err := r.loop.Execute(ctx, q.Ref, q.By, nil,
			func(s *session.State, _ session.Source, _ time.Time) (session.Decision, error) { return decide(s) })
		return request.Changed{Seq: d.Seq}, err
	}
}
