// Package reconciler recovers the sessions of dead processes: it closes, keeps or continues their open items, and
// expires prompts at their deadline. It alone decides that a process is dead.
//
//	ended connections ─▶ delete the lease
//	                          ▼
//	leases (watch) ─▶ CheckOwner ───────┐
//	                                    ├─▶ pass: list, fence trees, leaves first ─▶ Decide ─▶ append (CAS)
//	documents, timers, slow walk ───────┘
//
// Terms. A harness process holds a lease; its incarnation is a number, and later processes have greater ones. An
// incarnation owns a session under an epoch. Each open item has the epoch under which it was opened or adopted;
// recovery closes items of earlier epochs, and all items of a session without an owner. The append of session.orphaned
// is the fence: it is refused if the harness wrote meanwhile, and later writes of that harness do not count.
//
// When. An owner is dead as soon as a newer exclusive incarnation is ready, or has had the adoption grace, which starts
// again with each session that it claims, up to a limit; as soon as its lease is released; and a grace after its lease
// expired. A lease names the connection of its process. The brokers are asked every 300 ms which connections ended, and
// the reconciler deletes a lease whose connection ended and that was not renewed for the disconnect grace. A process
// that could not have renewed its lease is never dead: the reconciler renews a lease of its own in the same bucket
// every 250 ms, and a gap there that could have cost another lease restarts that lease's time.
//
// Order. A pass fences all sessions of a tree of sub-agents first, then decides them leaves first, so that a parent is
// decided on the outcome of its children. A change of one session decides that session alone. A parent waits for the
// next pass while a child of a dead owner is not fenced, and while a child cannot be read. A call is held while its
// child waits for a person; when the child settles, its parent is decided again.
//
// Beside that. It watches every lease, and no limit of the broker counts what a user adds there. So it also deletes the
// oldest leases of a harness that has too many (removeSurplus), and consumers that the broker counts for no limit
// (endUncounted).
//
// Files:
//
//	decide, recover, child            the decision about one session, and what its children mean for it. Pure
//	liveness                          the verdict on an owner. Pure
//	lease, disconnect                 what this process has seen of leases, and which of them it ends
//	pass, plan, tree, childindex      which sessions are decided together, when, and in which order
//	filter                            sessions that need no decision
//	reconciler, endpoint, uncounted   the parts that run, requests, and consumers
//
// Under failure:
//
//	the reconciler dies in a pass    its appends are stored; another replica, or the next start, does the rest. A
//	                                 second pass finds nothing to do.
//	two replicas pass at once        the compare-and-set lets one of them write.
//	a document lags the log          the append is refused; the tail is read, and decided again.
//	a session cannot be recovered    it is reported as suspect and tried again by the slow walk; the others continue.
//	the broker was away              no owner is dead before a TTL and the grace have passed since its return, or,
//	                                 if its connection ended, the disconnect grace.
//	the brokers do not name ended    a dead process is noticed when its lease expires.
//	connections
//	its watch of the leases lags     the leader is asked for the lease of an owner that was never seen before the
//	                                 owner is called dead.
package reconciler

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
const Name = "reconciler"

// Limits of a reconciler.
const (
	// interval of the renewal of the own lease: shorter gaps than gapMin are not noticed
	leaseEvery   = 250 * time.Millisecond
	gapMin       = 500 * time.Millisecond // half of the shortest lease: a shorter gap cannot cost a lease
	treeDepthMax = 64                     // generations, so that a circle of parents ends
	// adoption graces in which a new incarnation may adopt, while it claims sessions
	adoptMax    = 60
	tooEarly    = time.Second      // delay of the next check while the leases are not yet known
	unknownTTL  = 15 * time.Second // a harness's default
	serviceText = "closes what died, and what has a deadline"
)

// Config configures a reconciler. [Default] returns the default values.
type Config struct {
	// Grace is the time from the expiry of a lease to the death of its owner. Default 5 s, at least 0. Shorter: a slow
	// process is fenced and has to start over. Longer: sessions of dead processes look busy for longer.
	Grace time.Duration
	// AdoptionGrace is how long a new incarnation that is not ready may adopt the items of older ones, from its start
	// or from the last session that it claimed, and at most 60 times as long from its start. Default 5 s, at least 0.
	// Shorter: items that it would have adopted are closed. Longer: the others stay open for longer.
	AdoptionGrace time.Duration
	// DisconnectGrace is how long a harness whose connection ended may take to connect again and to renew its lease;
	// then the lease is ended. A tenth of its TTL is the least. Default 1.5 s, at least 0; 0: no lease is ended before
	// its TTL. Shorter: a process that is slow to connect again has to start over. Longer: the sessions of dead
	// processes look busy for longer.
	DisconnectGrace time.Duration
	// Walk is the pause between two passes over all documents. Default 30 s, more than 0. Longer: changes that every
	// trigger missed wait longer. Shorter: more reads.
	Walk time.Duration
	// AtOnceMax is how many sessions are recovered concurrently; a pass has up to eight times as many commits in
	// flight, while the broker acknowledges them soon. Default 256, at least 1. Fewer: recovery of many takes longer.
	// More: other clients wait longer for the broker.
	AtOnceMax int
	// Version is the semantic version that the service announces.
	Version string
}

// Default returns the configuration of a reconciler that was started without options.
func Default() Config {
	return Config{Grace: 5 * time.Second, AdoptionGrace: 5 * time.Second,
		DisconnectGrace: 1500 * time.Millisecond, Walk: 30 * time.Second, AtOnceMax: 256,
		Version: "0.1.0"}
}

// Validate returns an error that lists each invalid field.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("config: %s: want %s", name, want))
		}
	}
	need(c.Grace >= 0, "grace", "0 or more")
	need(c.AdoptionGrace >= 0, "adoption-grace", "0 or more")
	need(c.DisconnectGrace >= 0, "disconnect-grace", "0 or more")
	need(c.Walk > 0, "walk", "more than 0")
	need(c.AtOnceMax >= 1, "at-once-max", "1 or more")
	return errors.Join(errs...)
}

// Reconciler is the reconciler of one process.
type Reconciler struct {
	bus      *bus.Bus
	cfg      Config
	log      zerolog.Logger
	loop     *control.Loop
	leases   *leaseBook
	children *childIndex
	plan     *plan
	tally    *tally
}

// New returns a reconciler. The cell must be set up before: see [layout.Layout.Ensure].
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Reconciler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Reconciler{bus: b, cfg: cfg, log: log.With().Str("service", Name).Logger(), children: newChildIndex(),
		plan:  newPlan(),
		tally: newTally()}
	r.leases = newLeaseBook(Margins{Grace: cfg.Grace, Adoption: cfg.AdoptionGrace,
		AdoptionMax: adoptMax * cfg.AdoptionGrace, Unknown: unknownTTL})
	var err error
	r.loop, err = control.New(b, control.Config{
		Service: Name, Writer: events.WriterReconciler, Log: r.log, Walk: cfg.Walk, AtOnceMax: cfg.AtOnceMax,
		Decide: r.decide, Decided: r.decided, Takeover: r.learnChildren, WalkBy: r.passOverAll, Rests: r.rests,
		RestsUnchanged: r.restsUnchanged, Depends: func(h *session.Head) bool { return h.Owned },
	})
	return r, err
}

// Sources returns the consumers that the reconciler reads.
func Sources(b *bus.Bus) []consumer.Source {
	return []consumer.Source{control.Documents(Name), control.Alarms(b, Name)}
}

// Counts returns the reconciler's counters by name.
func (r *Reconciler) Counts() map[string]uint64 {
	all, n := r.loop.Counts(), &r.leases.count
	all["lease_gaps"], all["leases_ended"], all["detections_put_off"] = n.gaps.Load(), n.ended.Load(), n.putOff.Load()
	return all
}

// Run serves until ctx ends. Then it hands over and returns nil. It returns an error only if a new attempt would fail
// too.
func (r *Reconciler) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error {
			return control.NewHeld(r.bus, Name, r.cfg.Version, leaseEvery, r.renewed).Run(ctx)
		},
		r.watchLeases,
		r.findOverdue,
		r.endDisconnected,
		r.removeSurplus,
		r.endUncounted,
		func(ctx context.Context) error {
			select {
			case <-r.leases.ready:
				// before that, no verdict is possible
			case <-ctx.Done():
				return nil
			}
			return control.Together(ctx, r.loop.Run, func(ctx context.Context) error {
				r.plan.run(ctx, r.passOver)
				return nil
			})
		},
		func(ctx context.Context) error {
			return r.bus.Services.Serve(ctx, Name, r.cfg.Version, serviceText, r.endpoints())
		},
	)
}

// decide handles one session for the loop. Items of a dead owner are left to a pass, which has the parents and
// children.
func (r *Reconciler) decide(ctx context.Context, s *session.State, clock events.Clock,
	src session.Source) (control.Decision, error) {
	r.children.record(s)
	now := atMoment(clock)
	owner, err := r.checkOwner(ctx, s, now)
	if err != nil {
		return control.Decision{}, err
	}
	waits := leftCalls(s)
	switch {
	case s.Owned && owner.Liveness == Dead, waits && !r.children.whole():
		r.passSoon(s.Harness)
		return control.Decision{}, nil
	case waits:
		// before the children are read: one that settles meanwhile triggers a decision
		r.children.awaits(s.Ref(), true)
	}
	f := &tree{r: r, now: now, src: src}
	d, err := f.decide(ctx, s, owner, 0)
	if errors.Is(err, errManyChildren) || errors.Is(err, errUnfencedChild) {
		r.passSoon(s.Harness)
		return control.Decision{}, nil
	}
	if err != nil {
		return control.Decision{}, err
	}
	if waits && !leftCalls(d.After) {
		r.children.awaits(s.Ref(), false)
	}
	if len(d.Facts) == 0 {
		r.notifyParent(ctx, s)
	}
	return r.forLoop(s, owner, d, now), nil
}

// forLoop converts a decision for the loop. A change of the verdict on an owner concerns the whole harness and plans a
// pass, not an alarm for each session.
func (r *Reconciler) forLoop(s *session.State, owner Owner, d Decision, now moment) control.Decision {
	if !owner.CheckAt.IsZero() {
		r.plan.add(s.Harness, now.local(owner.CheckAt))
		if d.CheckAt.Equal(owner.CheckAt) {
			d.CheckAt = d.After.Deadlines(now.Steps)
		}
	}
	return control.Decision{Facts: d.Facts, CheckAt: d.CheckAt, After: d.After}
}

// decided is called after an append.
func (r *Reconciler) decided(ctx context.Context, s *session.State, facts []events.Fact) {
	r.tally.count(facts)
	r.notifyParent(ctx, s)
}

// leftCalls reports whether calls were left behind: only then do children matter.
func leftCalls(s *session.State) bool {
	for _, c := range s.Tools {
		if !s.Owns(c.Epoch) {
			return true
		}
	}
	return false
}
