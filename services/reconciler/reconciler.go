// Package reconciler closes, keeps or goes on with what processes left behind when they died, and ends what has a
// deadline. It is the one part that may say that somebody is gone.
//
//	leases (watch) ─▶ who lives: Judge ─┐
//	                                    ├─▶ pass: list, fence trees, leaves first ─▶ Decide ─▶ append (CAS)
//	documents, timers, slow walk ───────┘
//
// Terms. A harness process holds a lease; its incarnation is a number, later ones are greater. A session is owned by an
// incarnation, under an epoch. What is open carries the epoch it was opened or adopted under; recovery closes what is
// below the session's epoch, and everything in a session that nobody owns. The append that says session.orphaned is the
// fence: it is refused if the harness wrote meanwhile, and whatever the harness writes later counts for nothing.
//
// When. As soon as a newer exclusive incarnation says ready, or has had the adoption grace, which begins again with each
// session that it claims, up to a bound; as soon as a lease is given
// back; a grace after a lease ended by itself. Nobody is declared dead who could not have renewed: the reconciler renews a
// lease of its own in the same bucket every 250 ms, and a gap there that could have cost somebody's lease starts that
// one's clock over.
//
// Who is first. The sessions of a tree of sub-agents are fenced all, then decided leaves first, so that a parent is
// decided on what becomes of its children. A call that waits for a child which still waits for a person is held; when the
// child settles, its parent is decided again.
//
// Under failure:
//
//	the reconciler dies in a pass    what it has appended stands; another replica, or the next start, does the rest. A
//	                                 second pass finds nothing to do.
//	two replicas pass at once        the compare-and-set lets one of them write.
//	a document lags the log          the append is refused; the tail is read, and decided again.
//	a session cannot be recovered    it is reported as suspect and tried again by the slow walk; the others go on.
//	the broker was away              nobody is called dead before a TTL and the grace have passed since its return.
//	its watch of the leases lags     an owner whose lease was never seen is looked up at the leader before it is called dead.
package reconciler

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
const Name = "reconciler"

// Limits of a reconciler.
const (
	leaseEvery  = 250 * time.Millisecond // how often the own lease is renewed: gaps shorter than gapMin are not seen
	gapMin      = 500 * time.Millisecond // half of the shortest lease: a shorter gap costs nobody anything
	familyMax   = 64                     // generations looked at, so that a circle of parents ends
	adoptMax    = 60                     // adoption graces that a new incarnation may adopt for, while it claims sessions
	tooEarly    = time.Second            // when to look again while it is not known who lives
	unknownTTL  = 15 * time.Second       // a harness's default
	serviceText = "closes what died, and what has a deadline"
)

// Config is how one reconciler works. [Default] fills it.
type Config struct {
	// Grace is from a lease's ending by itself to its owner's being called dead. Default 5 s, at least 0. Shorter: a process
	// that was only slow is fenced and has to start over; longer: people look at spinners of the dead for longer.
	Grace time.Duration
	// AdoptionGrace is how long a new incarnation that does not say ready may adopt what older ones left, from its start or
	// from the last session that it claimed, and at most 60 times as long from its start. Default 5 s, at least 0. Shorter:
	// what it would have adopted is closed; longer: the rest stays open for longer.
	AdoptionGrace time.Duration
	// Walk is the pause between two passes over everything. Default 30 s, more than 0. Longer: what every trigger has
	// missed stays open for longer; shorter: more reading.
	Walk time.Duration
	// AtOnceMax is how many sessions are recovered at once; a pass has up to eight times as many commits under way, while
	// the broker acknowledges them soon. Default 256, at least 1. Fewer: recovery of many takes longer; more: others wait
	// longer for the broker.
	AtOnceMax int
	// Version is what the service says of itself, a semantic version.
	Version string
}

// Default is a reconciler as it is started by one who chose nothing.
func Default() Config {
	return Config{Grace: 5 * time.Second, AdoptionGrace: 5 * time.Second, Walk: 30 * time.Second, AtOnceMax: 256, Version: "0.1.0"}
}

// Validate reports everything that is wrong, and changes nothing.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("reconciler: config: %s: want %s", name, want))
		}
	}
	need(c.Grace >= 0, "grace", "0 or more")
	need(c.AdoptionGrace >= 0, "adoption-grace", "0 or more")
	need(c.Walk > 0, "walk", "more than 0")
	need(c.AtOnceMax >= 1, "at-once-max", "1 or more")
	return errors.Join(errs...)
}

// Reconciler is one process's reconciler.
type Reconciler struct {
	bus    *bus.Bus
	cfg    Config
	log    zerolog.Logger
	loop   *control.Loop
	leases *leaseBook
	kin    *kin
	plan   *plan
	tally  *tally
}

// New makes a reconciler; the cell must have been set up ([bus.Bus.Ensure]).
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Reconciler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Reconciler{bus: b, cfg: cfg, log: log.With().Str("service", Name).Logger(), kin: newKin(), plan: newPlan(), tally: newTally()}
	r.leases = newLeaseBook(Margins{Grace: cfg.Grace, Adoption: cfg.AdoptionGrace, AdoptionMax: adoptMax * cfg.AdoptionGrace, Unknown: unknownTTL})
	var err error
	r.loop, err = control.New(b, control.Config{
		Service: Name, Writer: events.WriterReconciler, Log: r.log, Walk: cfg.Walk, AtOnceMax: cfg.AtOnceMax,
		Decide: r.decide, Decided: r.decided, Takeover: r.learnKin, WalkBy: r.passOverAll,
	})
	return r, err
}

// Sources are the consumers that a reconciler reads with.
func Sources(b *bus.Bus) []bus.Source {
	return []bus.Source{control.Documents(Name), control.Alarms(b, Name)}
}

// Counts are the reconciler's counters by name.
func (r *Reconciler) Counts() map[string]uint64 { return r.loop.Counts() }

// Run serves until ctx ends, then hands over and returns nil. An error is one that trying again will not mend.
func (r *Reconciler) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error {
			return control.NewHeld(r.bus, Name, r.cfg.Version, leaseEvery, r.renewed).Run(ctx)
		},
		r.watchLeases,
		r.findOverdue,
		func(ctx context.Context) error {
			select {
			case <-r.leases.ready: // before that, nobody can be judged
			case <-ctx.Done():
				return nil
			}
			return control.Together(ctx, r.loop.Run, func(ctx context.Context) error { r.plan.run(ctx, r.passOver); return nil })
		},
		func(ctx context.Context) error {
			return r.bus.Serve(ctx, Name, r.cfg.Version, serviceText, r.endpoints())
		},
	)
}

// decide is one look of the loop at one session. What a dead owner left is for a pass, which knows the whole family.
func (r *Reconciler) decide(ctx context.Context, s *session.State, clock events.Clock, src session.Source) (control.Decision, error) {
	r.kin.note(s)
	now := atMoment(clock)
	owner, err := r.judge(ctx, s, now)
	if err != nil {
		return control.Decision{}, err
	}
	waits := leftCalls(s)
	switch {
	case s.Owned && owner.Life == Dead, waits && !r.kin.whole():
		r.passSoon(s.Harness)
		return control.Decision{}, nil
	case waits:
		r.kin.awaits(s.Ref(), true) // before the children are read: one that settles meanwhile tells
	}
	f := &family{r: r, now: now, src: src}
	d, err := f.decide(ctx, s, owner, 0)
	if err != nil {
		return control.Decision{}, err
	}
	if waits && !leftCalls(d.After) {
		r.kin.awaits(s.Ref(), false)
	}
	if len(d.Facts) == 0 {
		r.tellParent(ctx, s)
	}
	return r.forLoop(s, owner, d, now), nil
}

// forLoop hands a decision to the loop. When the verdict about an owner may change is a matter of the whole harness, not
// of an alarm for each session.
func (r *Reconciler) forLoop(s *session.State, owner Owner, d Decision, now moment) control.Decision {
	if !owner.Look.IsZero() {
		r.plan.add(s.Harness, now.local(owner.Look))
		if d.Look.Equal(owner.Look) {
			d.Look = d.After.Deadlines(now.Steps)
		}
	}
	return control.Decision{Facts: d.Facts, Look: d.Look, After: d.After}
}

// decided is told what was appended.
func (r *Reconciler) decided(ctx context.Context, s *session.State, facts []events.Fact) {
	r.tally.count(facts)
	r.tellParent(ctx, s)
}

// leftCalls says whether calls were left behind: only then do children matter.
func leftCalls(s *session.State) bool {
	for _, c := range s.Tools {
		if !s.Owned || c.Epoch < s.Epoch {
			return true
		}
	}
	return false
}
