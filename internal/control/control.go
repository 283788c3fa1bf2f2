// Package control is the loop of every decider. It passes the newest document of each session to a pure decision and
// appends the facts that the decision returns.
//
//	documents (durable, one active replica) ─┐
//	fired timers (durable)                   ├─▶ check: decide ─▶ append (CAS) ─▶ nudge ─▶ timer ─▶ acknowledge
//	walks over what changed, and over all    │        ▲            │ lost race
//	sessions that the service itself names  ─┘        └─ read tail ┘
//
// The loop is level-triggered: a check asks what the state is, never what happened. A lost, doubled or merged trigger
// does no harm. The same holds for a crash between any two steps: the next check decides again, and the compare-and-set
// voids a second attempt.
//
// Failures:
//
//	another process wrote first   the loop reads the new commits from the log's leader and decides again, up to 10
//	                              times.
//	the document lags the log     the same: the append is refused.
//	a session fails               three attempts. Then it is reported as a suspect and left to the slow walk. Other
//	                              sessions are not delayed.
//	a session takes long          after half a second the batch is acknowledged without it, and the next one begins.
//	                              Its check continues. If the process dies first, the next active process's walk
//	                              finds it.
//	the document is ahead of the log   no append can succeed: it is a suspect at once.
//	the process is killed         unacknowledged messages are delivered again, here or in another replica. An effect
//	                              of a decision may then run again.
//	two replicas are active       they lose races, not data.
package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a loop.
const (
	racesMax        = 10                     // lost in a row, then the attempt has failed
	attemptsMax     = 3                      // failed attempts at a session, then it is left to the slow walk
	batchPatience   = 500 * time.Millisecond // wait for the slowest session of a batch, then the next batch begins
	attemptPauseMS  = 50                     // before the second attempt; doubled before each further one
	batchMax        = 512                    // documents in one batch
	suspectsMax     = 1_000
	localHorizon    = Horizon     // a check that is due within it is also kept in memory
	walkPauseMin    = time.Second // between two walks, however many are requested
	walkDefault     = 30 * time.Second
	atOnceDefault   = 256     // with more in flight, a slow disk only delays them
	ownAppendsMax   = 200_000 // remembered; above it they are forgotten, which costs lost races, not data
	timersKnownMax  = 100_000 // the same
	suspectTextMax  = 500     // bytes of an error in a [request.Suspect]
	dueDurableAfter = "-due"  // suffix of the durable consumer of the timers
)

// Horizon is how long before its instant a walk over all documents finds a check.
const Horizon = time.Minute

// Decision is the result of one check of a session.
type Decision struct {
	Facts   []events.Fact // to append, as one commit if they fit
	CheckAt time.Time     // the instant of the next check, by the broker's clock; zero: at the next change
	Local   bool          // the check needs no durable alarm: the walk finds it again
	Ahead   bool          // the decision at CheckAt depends only on the session and the instant
	Rest    bool          // after Facts, the session needs nothing until it changes
	// Effect, if set, does what the decision calls for outside of the log. See [Effect].
	Effect Effect
	// optional: the session with Facts folded, which saves the loop a fold; the loop owns it from then on
	After *session.State
	Alone bool // the caller does not use the session with Facts folded: [Loop.SettleMany] reports it without them
}

// Config configures the loop of one decider.
type Config struct {
	// Service names the durable consumers, the timers and the source of the facts.
	Service string
	// Writer is the service's writer in the log.
	Writer events.Writer
	// Decide returns what a session needs now.
	Decide Decide
	// Decided, if set, is called with the facts that were appended, and with the session after them.
	Decided func(ctx context.Context, s *session.State, facts []events.Fact)
	// Takeover, if set, is called when this process has become the active replica, before the first document.
	Takeover func(ctx context.Context) error
	// Walk is the pause between two walks. A walk checks the documents that have changed since the one before, and of
	// the others those that do not rest. The first one, each 120th, and one after a take-over or an outage of the
	// broker go over all documents. Default 30 s. A longer pause delays what is left to the walk; a shorter one costs
	// more reads.
	Walk time.Duration
	// Rests, if set, reports whether a session of which the head has nothing due needs nothing from this service
	// until its next commit, as far as that depends on anything but the log. The loop does not decode such a document.
	// If Rests is not set, the loop decodes each document.
	Rests func(r events.Ref, h *session.Head, now events.Clock) bool
	// RestsUnchanged, if set, is Rests for a document that a walk of this process has checked since it changed.
	// Default: Rests.
	RestsUnchanged func(r events.Ref, h *session.Head, now events.Clock) bool
	// Depends, if set, reports whether Rests may change for a session although its document does not: it depends on the
	// session's owner, for instance. If Depends is not set, each document is of this kind. A walk keeps the heads of
	// these documents in memory, about 300 bytes for each.
	Depends func(h *session.Head) bool
	// WalkBy, if set, replaces the check of each document in a walk over all documents.
	WalkBy func(ctx context.Context) error
	// AtOnceMax is the number of sessions that are decided concurrently. Default 256. [Loop.SettleMany] has up to eight
	// times as many commits in flight while the broker acknowledges them quickly. A lower value reduces the load on the
	// broker; a higher one takes more memory.
	AtOnceMax int
	// Log gets a line for each decision.
	Log zerolog.Logger
}

// Loop is the decision loop of one process. Use [New] to make one.
type Loop struct {
	bus   *bus.Bus
	cfg   Config
	slots chan struct{} // one per session that is decided concurrently
	walks chan struct{} // requests for a walk

	reading chan struct{} // one per core: more decoding would delay sessions that are due now
	queue   *checkQueue
	source  string
	count   counts
	active  atomic.Bool // this process is the active consumer
	hurry   atomic.Bool // a caller waits for the current or the next walk

	changes  *changes    // the walking goroutine's, and so is sinceAll
	sinceAll int         // walks over what has changed since the last one over all documents
	learned  atomic.Bool // the clock has the steps that the cell has stored

	askedActive time.Time // when this process last asked for the active consumer
	noneActive  bool      // that none was; both are the waking goroutine's

	slow sync.WaitGroup // checks that continue after their batch

	mu       sync.Mutex
	own      map[events.Ref]own       // the last commits of this process whose documents have not arrived
	timers   map[events.Ref]time.Time // alarms that this process set
	suspects map[events.Ref]request.Suspect
	effects  map[events.Ref]bool // sessions whose effect runs
}

// counts are the loop's counters. They never decrease.
type counts struct {
	checks, decisions, facts, lostRaces, errors, walks, walkMS atomic.Uint64
}

// New returns a loop. It fails on an invalid Config. Call [layout.Layout.Ensure] before it.
func New(b *bus.Bus, cfg Config) (*Loop, error) {
	if cfg.Walk == 0 {
		cfg.Walk = walkDefault
	}
	if cfg.AtOnceMax == 0 {
		cfg.AtOnceMax = atOnceDefault
	}
	if _, err := events.Token(cfg.Service); err != nil || cfg.Decide == nil || cfg.Walk < 0 || cfg.AtOnceMax < 0 {
		return nil, fmt.Errorf(
			"%q: want a service's name, a decision, and no negative walk or sessions at once",
			cfg.Service,
		)
	}
	return &Loop{
		bus:      b,
		cfg:      cfg,
		slots:    make(chan struct{}, cfg.AtOnceMax),
		walks:    make(chan struct{}, 1),
		reading:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		queue:    newCheckQueue(),
		source:   events.ServiceSource(cfg.Service, b.Instance()),
		own:      map[events.Ref]own{},
		timers:   map[events.Ref]time.Time{},
		suspects: map[events.Ref]request.Suspect{},
		effects:  map[events.Ref]bool{},
		changes:  newChanges(),
	}, nil
}

// Documents returns the consumer from which a service's loop reads the newest documents.
func Documents(service string) consumer.Source {
	return consumer.Source{Stream: consumer.StateDocs, Durable: service, BatchMax: batchMax}
}

// Alarms returns the consumer of a service's fired timers.
func Alarms(b *bus.Bus, service string) consumer.Source {
	return consumer.Source{
		Stream:   consumer.Due,
		Durable:  service + dueDurableAfter,
		Filter:   []string{b.Cell().DueFilter(service)},
		BatchMax: batchMax,
	}
}

// Run runs the loop until ctx ends, then waits for open checks and returns nil. It fails when one of its parts fails.
func (l *Loop) Run(ctx context.Context) error {
	defer l.slow.Wait()
	if _, err := l.Now(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	return Together(ctx,
		func(ctx context.Context) error { return FollowClock(ctx, l.bus, l.cfg.Log) },
		func(ctx context.Context) error {
			return l.bus.Consumers.Consume(ctx, Documents(l.cfg.Service), documents{l})
		},
		func(ctx context.Context) error {
			return l.bus.Consumers.Consume(ctx, Alarms(l.bus, l.cfg.Service), alarms{l})
		},
		l.walkForEver,
		l.runQueue,
	)
}

// Now returns the broker's clock with the steps that the cell has stored. The first call reads them from the broker.
// Each decision takes its clock from here: an instant of an earlier clock would be due hours too early or too late. Its
// errors are those of [LearnSteps].
func (l *Loop) Now(ctx context.Context) (events.Clock, error) {
	if !l.learned.Load() {
		if err := LearnSteps(ctx, l.bus); err != nil {
			return events.Clock{}, err
		}
		l.learned.Store(true)
	}
	return l.bus.Clock.Read(ctx)
}

// Counts returns the loop's counters by name.
func (l *Loop) Counts() map[string]uint64 {
	return map[string]uint64{
		"looks":       l.count.checks.Load(),
		"decisions":   l.count.decisions.Load(),
		"facts":       l.count.facts.Load(),
		"lost_races":  l.count.lostRaces.Load(),
		"errors":      l.count.errors.Load(),
		"walks":       l.count.walks.Load(),
		"walk_ms":     l.count.walkMS.Load(),
		"clock_steps": uint64(l.bus.Clock.StepsNoticed()),
	}
}

// Suspects returns the sessions whose last attempt failed, the oldest failure first.
func (l *Loop) Suspects() []request.Suspect {
	l.mu.Lock()
	defer l.mu.Unlock()
	bySince := func(a, b request.Suspect) int { return a.Since.Compare(b.Since) }
	return slices.SortedFunc(maps.Values(l.suspects), bySince)
}

// Decide returns what a session needs at an instant of the broker's clock. It is called concurrently for different
// sessions, and again after each lost race. It must not change s.
type Decide func(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error)

// Settle decides on a session and appends the facts, again after each lost race, until an append succeeds. It returns
// the session after that and the facts that were appended. s is not changed.
func (l *Loop) Settle(ctx context.Context, s *session.State) (*session.State, []events.Fact, error) {
	return l.SettleBy(ctx, s, l.cfg.Decide)
}

// SettleBy is Settle with decide in place of [Config.Decide].
func (l *Loop) SettleBy(ctx context.Context, s *session.State, decide Decide) (*session.State, []events.Fact, error) {
	l.count.checks.Add(1)
	var written []events.Fact
	// this call runs the session's effect
	affects := false
	defer func() {
		if affects {
			l.endEffect(s.Ref())
		}
	}()
	for range racesMax {
		now, err := l.Now(ctx)
		if err != nil {
			return s, written, err
		}
		d, err := decide(ctx, s, now, l.Source(ctx))
		if err != nil {
			return s, written, err
		}
		// of the effect
		var failure error
		if d.Effect != nil {
			if affects = affects || l.beginEffect(s.Ref()); !affects {
				// another check of this process runs it
				return s, written, nil
			}
			newest, err := l.CatchUp(ctx, s)
			if err != nil {
				return s, written, err
			}
			if newest != s {
				s = newest
				continue
			}
			d, failure = affect(ctx, d)
		}
		after, facts, err := l.append(ctx, s, d, now.Now)
		written = append(written, facts...)
		switch {
		case errors.Is(err, bus.ErrLostRace):
			l.count.lostRaces.Add(1)
			if s, err = l.CatchUp(ctx, after); err != nil {
				return s, written, err
			}
			continue
		case err != nil || failure != nil:
			return after, written, errors.Join(failure, err)
		}
		return after, written, l.remember(ctx, after, d, now)
	}
	return s, written, fmt.Errorf("%s: %w: %d times in a row", s.Ref(), bus.ErrLostRace, racesMax)
}

// Source returns a function that reads commits from the log.
func (l *Loop) Source(ctx context.Context) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		c, err := l.bus.Log.Commit(ctx, seq)
		return &c, err
	}
}

// CatchUp returns the session with the commits that the log's leader has after s. s is not changed.
func (l *Loop) CatchUp(ctx context.Context, s *session.State) (*session.State, error) {
	after := s
	err := l.bus.Log.Each(ctx, s.Ref(), s.Seq+1, func(c events.Commit) error {
		if after == s {
			after = s.Clone()
		}
		after.Fold(&c)
		return nil
	})
	if err != nil {
		return s, err
	}
	return after, nil
}

// failed records that an attempt at a session failed. It reports whether the session is now left to the slow walk.
func (l *Loop) failed(ctx context.Context, r events.Ref, err error) (leave bool) {
	if ctx.Err() != nil {
		return false
	}
	l.count.errors.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	x, known := l.suspects[r]
	if !known {
		if len(l.suspects) >= suspectsMax {
			clear(l.suspects)
		}
		x = request.Suspect{Ref: r, Since: time.Now().UTC()}
	}
	x.Failures++
	x.Reason = err.Error()
	if len(x.Reason) > suspectTextMax {
		x.Reason = x.Reason[:suspectTextMax]
	}
	l.suspects[r] = x
	// no append can succeed
	ahead := errors.Is(err, bus.ErrLogBehind)
	if x.Failures == attemptsMax || x.Failures < attemptsMax && ahead {
		l.cfg.Log.Error().Str("session", r.String()).AnErr("err", err).Msg("left to the slow walk")
	}
	return x.Failures >= attemptsMax || ahead
}

func (l *Loop) isSuspect(r events.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.suspects[r]
	return ok
}

func (l *Loop) succeeded(r events.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.suspects, r)
}
