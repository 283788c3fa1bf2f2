// Package control is the loop of every decider: it brings the newest document of each session before a pure decision and
// appends what that calls for.
//
//	documents (durable, one active replica) ─┐
//	fired timers (durable)                   ├─▶ look: decide ─▶ append (CAS) ─▶ nudge ─▶ timer ─▶ acknowledge
//	the slow walk over everything, for ever  │        ▲            │ lost race
//	what the service itself wants looked at ─┘        └─ read tail ┘
//
// Level, not edge: a look asks what is true, never what happened. So a trigger that is lost, doubled or merged does no
// harm, nor does a crash between any two steps: the next look decides again, and the compare-and-set voids a second
// attempt.
//
// Under failure:
//
//	somebody else wrote first     what is new is read from the log's leader, and decided again, up to ten times.
//	the document lags the log     the same: the append is refused.
//	a session fails               it is tried three times; then it is a suspect, reported, and left to the slow walk. Others
//	                              go on meanwhile.
//	a session takes long          the batch is acknowledged without it after half a second, so that the next one begins. Its
//	                              look goes on; if the process dies first, the walk of the next active one finds it.
//	the document is ahead of the log   no append can succeed: it is a suspect at once.
//	killed                        what was not acknowledged comes again, here or in another replica.
//	two replicas believe they are active   they lose races, not data.
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
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// ErrAhead says that a session's document names a place in the log that the log does not have: an append under that guard can
// never succeed, so it is not tried again. Rebuild the document from the log.
var ErrAhead = errors.New("control: the document is ahead of the log")

// Limits of a loop.
const (
	racesMax        = 10                     // lost in a row, then the session has failed this look
	attemptsMax     = 3                      // looks at a session that fail, until it is left to the slow walk
	batchPatience   = 500 * time.Millisecond // for the slowest session of a batch, before the next batch begins
	attemptPauseMS  = 50                     // before the second attempt, doubled before each further one
	batchMax        = 512                    // documents in one batch
	suspectsMax     = 1_000
	localHorizon    = time.Minute // what is due sooner also wakes this process by itself
	walkPauseMin    = time.Second // between two walks, however many ask for one
	walkDefault     = 30 * time.Second
	atOnceDefault   = 256     // more in flight than a slow disk writes in a second are only late
	ownAppendsMax   = 200_000 // remembered; past it they are forgotten, which costs a lost race, not truth
	timersKnownMax  = 100_000 // the same
	suspectTextMax  = 500     // bytes of an error that is reported
	dueDurableAfter = "-due"  // the timers' consumer is named after the documents'
)

// Decision is what one look at a session came to.
type Decision struct {
	Facts []events.Fact  // to append, as one commit if they fit
	Look  time.Time      // when to look again (the broker's time); zero: at the next change
	Local bool           // the look needs no alarm that outlives this process: the walk finds it again
	Ahead bool           // what will be decided at Look depends on nothing but the session and the instant
	Rest  bool           // once the facts are appended, nothing is called for until the session changes
	After *session.State // optional: the session with the facts folded, to spare the loop from folding them; the loop's from then on
	Alone bool           // nobody asks for the session with the facts folded: [Loop.SettleMany] shows it as it was
}

// Config is how one decider's loop works.
type Config struct {
	// Service is the service's name: of its durable consumers, its timers and the source of its facts.
	Service string
	// Writer is the service's writer in the log.
	Writer events.Writer
	// Decide says what a session calls for now.
	Decide Decide
	// Decided, if set, is told what was appended, and the session as it is then.
	Decided func(ctx context.Context, s *session.State, facts []events.Fact)
	// Takeover, if set, is called when this process has become the active replica, before the first document.
	Takeover func(ctx context.Context) error
	// Walk is the pause between two walks over all documents. Default 30 s. Longer: what was left to the walk waits longer;
	// shorter: more reading.
	Walk time.Duration
	// Later, if set, peeks into a document for the instant of its next look; zero where it cannot tell. A walk does not read
	// what is not to be looked at within the minute.
	Later func(doc []byte) time.Time
	// WalkBy, if set, is what a walk does, in place of a look at each document.
	WalkBy func(ctx context.Context) error
	// AtOnceMax is how many sessions are worked on at once; [Loop.SettleMany] has up to eight times as many commits under
	// way, while the broker acknowledges them soon. Default 256. Fewer: less is in flight to the broker at a time; more:
	// more memory.
	AtOnceMax int
	// Log takes a line for each decision.
	Log zerolog.Logger
}

// Suspect is a session that could not be read, decided or written.
type Suspect struct {
	events.Ref
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures"`
}

// Loop is one process's loop. [New] makes it.
type Loop struct {
	bus   *bus.Bus
	cfg   Config
	slots chan struct{} // one for each session that is worked on
	walks chan struct{} // somebody wants a walk

	reading chan struct{} // one for each core: more would only keep what is due at this instant from its turn
	wakes   *wakes
	source  string
	count   counts
	active  atomic.Bool // documents are delivered to this process
	hurry   atomic.Bool // somebody waits for the walk that is under way, or the next one

	asked  time.Time // whether another process is active, and
	nobody bool      // that none was; both are the waking goroutine's

	slow sync.WaitGroup // looks that a batch has not waited for

	mu       sync.Mutex
	own      map[events.Ref]own       // what this process appended last, until a document shows it
	timers   map[events.Ref]time.Time // alarms that this process has set
	suspects map[events.Ref]Suspect
}

// counts only grow.
type counts struct {
	looks, decisions, facts, lostRaces, errors, walks, walkMS atomic.Uint64
}

// New makes a loop. The cell must have been set up ([bus.Bus.Ensure]).
func New(b *bus.Bus, cfg Config) (*Loop, error) {
	if cfg.Walk == 0 {
		cfg.Walk = walkDefault
	}
	if cfg.AtOnceMax == 0 {
		cfg.AtOnceMax = atOnceDefault
	}
	if _, err := events.Token(cfg.Service); err != nil || cfg.Decide == nil || cfg.Walk < 0 || cfg.AtOnceMax < 0 {
		return nil, fmt.Errorf(
			"control: %q: want a service's name, a decision, and no negative walk or sessions at once",
			cfg.Service,
		)
	}
	return &Loop{
		bus:      b,
		cfg:      cfg,
		slots:    make(chan struct{}, cfg.AtOnceMax),
		walks:    make(chan struct{}, 1),
		reading:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		wakes:    newWakes(),
		source:   events.ServiceSource(cfg.Service, b.Instance()),
		own:      map[events.Ref]own{},
		timers:   map[events.Ref]time.Time{},
		suspects: map[events.Ref]Suspect{},
	}, nil
}

// Documents is the consumer that a service's loop reads newest documents with.
func Documents(service string) bus.Source {
	return bus.Source{Stream: bus.StateDocs, Durable: service, BatchMax: batchMax}
}

// Alarms is the consumer of a service's fired timers.
func Alarms(b *bus.Bus, service string) bus.Source {
	return bus.Source{
		Stream:   bus.Due,
		Durable:  service + dueDurableAfter,
		Filter:   []string{b.Cell().DueFilter(service)},
		BatchMax: batchMax,
	}
}

// Run looks at sessions until ctx ends; then it hands over and returns nil.
func (l *Loop) Run(ctx context.Context) error {
	defer l.slow.Wait()
	if err := LearnSteps(ctx, l.bus); err != nil {
		return ignoreEnd(ctx, err)
	}
	return Together(ctx,
		func(ctx context.Context) error { return FollowClock(ctx, l.bus, l.cfg.Log) },
		func(ctx context.Context) error { return l.bus.Consume(ctx, Documents(l.cfg.Service), documents{l}) },
		func(ctx context.Context) error {
			return l.bus.Consume(ctx, Alarms(l.bus, l.cfg.Service), alarms{l})
		},
		l.walkForEver,
		l.wakeForEver,
	)
}

// Counts are the loop's counters by name.
func (l *Loop) Counts() map[string]uint64 {
	return map[string]uint64{
		"looks":       l.count.looks.Load(),
		"decisions":   l.count.decisions.Load(),
		"facts":       l.count.facts.Load(),
		"lost_races":  l.count.lostRaces.Load(),
		"errors":      l.count.errors.Load(),
		"walks":       l.count.walks.Load(),
		"walk_ms":     l.count.walkMS.Load(),
		"clock_steps": uint64(l.bus.StepsNoticed()),
	}
}

// Suspects are the sessions that failed and have not succeeded since, in order.
func (l *Loop) Suspects() []Suspect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.suspects), func(a, b Suspect) int { return a.Since.Compare(b.Since) })
}

// Decide says what a session calls for by the broker's clock. It may be called for different sessions at once, again whenever
// a race is lost, and must not change the state.
type Decide func(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error)

// Settle decides on a session and appends what that calls for, again after each lost race, until nothing is left to do.
// It returns the session as it is then, and what was appended. s is not changed.
func (l *Loop) Settle(ctx context.Context, s *session.State) (*session.State, []events.Fact, error) {
	return l.SettleBy(ctx, s, l.cfg.Decide)
}

// SettleBy is Settle with another decision than the loop's.
func (l *Loop) SettleBy(ctx context.Context, s *session.State, decide Decide) (*session.State, []events.Fact, error) {
	l.count.looks.Add(1)
	var said []events.Fact
	for range racesMax {
		now, err := l.bus.Clock(ctx)
		if err != nil {
			return s, said, err
		}
		d, err := decide(ctx, s, now, l.Source(ctx))
		if err != nil {
			return s, said, err
		}
		after, facts, err := l.append(ctx, s, d, now.Now)
		said = append(said, facts...)
		switch {
		case errors.Is(err, bus.ErrLostRace):
			l.count.lostRaces.Add(1)
			if s, err = l.CatchUp(ctx, after); err != nil {
				return s, said, err
			}
			if s.Seq == after.Seq {
				return s, said, fmt.Errorf("%w: %s: document at %d", ErrAhead, s.Ref(), s.Seq)
			}
			continue
		case err != nil:
			return after, said, err
		}
		return after, said, l.remember(ctx, after, d, now)
	}
	return s, said, fmt.Errorf("control: %s: %w: %d times in a row", s.Ref(), bus.ErrLostRace, racesMax)
}

// Source finds commits in the log.
func (l *Loop) Source(ctx context.Context) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		c, err := l.bus.Commit(ctx, seq)
		return &c, err
	}
}

// CatchUp is the session with what the log's leader has beyond it.
func (l *Loop) CatchUp(ctx context.Context, s *session.State) (*session.State, error) {
	after := s
	err := l.bus.Each(ctx, s.Ref(), s.Seq+1, func(c events.Commit) error {
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

// failed notes that a look at a session came to nothing, and says whether it has now failed often enough to be left to
// the slow walk.
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
		x = Suspect{Ref: r, Since: time.Now().UTC()}
	}
	x.Failures++
	x.Reason = err.Error()
	if len(x.Reason) > suspectTextMax {
		x.Reason = x.Reason[:suspectTextMax]
	}
	l.suspects[r] = x
	ahead := errors.Is(err, ErrAhead) || errors.Is(err, bus.ErrLogBehind)
	if x.Failures == attemptsMax || x.Failures < attemptsMax && ahead {
		l.cfg.Log.Error().Str("session", r.String()).AnErr("err", err).Msg("left to the slow walk")
	}
	return x.Failures >= attemptsMax || ahead
}

func (l *Loop) succeeded(r events.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.suspects, r)
}
