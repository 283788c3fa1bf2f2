package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// world is a broker with sessions whose documents the test writes.
type world struct {
	t      testing.TB
	ctx    context.Context
	server *embed.Server
	b      *bus.Bus
}

func newWorld(t testing.TB) *world {
	server := natstest.Start(t)
	return &world{t: t, ctx: t.Context(), server: server, b: natstest.Bus(t, server)}
}

func ref(name string) events.Ref { return events.Ref{Harness: "h", Session: name} }

// append appends facts of the harness and returns the session after them.
func (w *world) append(s *session.State, facts ...events.Fact) *session.State {
	w.t.Helper()
	var evs []events.Event
	for _, f := range facts {
		evs = append(evs, events.New(w.b.NewID(), events.HarnessSource("h", "17"), s.Ref(), 1, time.Now(), f))
	}
	seq, err := w.b.Log.Append(w.ctx, s.Ref(), events.WriterHarness, s.Seq, evs)
	if err != nil {
		w.t.Fatal(err)
	}
	s = s.Clone()
	s.Fold(&events.Commit{Ref: s.Ref(), Writer: events.WriterHarness, Seq: seq, At: time.Now(), Events: evs})
	return s
}

// open opens a session with a turn.
func (w *world) open(name string) *session.State {
	w.t.Helper()
	return w.append(
		session.New(ref(name)),
		events.SessionOpened{Incarnation: "17"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
	)
}

// store writes a session's document without a guard.
func (w *world) store(s *session.State) {
	w.t.Helper()
	doc, err := s.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(s.Session, doc)
}

func (w *world) put(name string, doc []byte) {
	w.t.Helper()
	var rev uint64
	if e, err := w.b.KV.Load(w.ctx, kv.State, events.SessionKey(ref(name))); err == nil {
		rev = e.Rev
	}
	if _, err := w.b.KV.Store(w.ctx, kv.State, events.SessionKey(ref(name)), doc, rev); err != nil {
		w.t.Fatal(err)
	}
}

// state returns the fold of the log.
func (w *world) state(name string) *session.State {
	w.t.Helper()
	return natstest.Session(w.t, w.b, ref(name))
}

// run runs a loop until stop is called or the test ends.
func (w *world) run(cfg Config) (l *Loop, stop func()) {
	w.t.Helper()
	cfg.Service, cfg.Writer = "reconciler", events.WriterReconciler
	if cfg.Walk == 0 {
		cfg.Walk = time.Hour
	}
	l, err := New(w.b, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return l, stop
}

// deliveredAgain is less than the redelivery timeout of the broker.
const deliveredAgain = 500 * time.Millisecond

func noWalk(context.Context) error { return nil }

// interrupt is a decision for tests: an open turn is interrupted.
func interrupt(_ context.Context, s *session.State, _ events.Clock, _ session.Source) (Decision, error) {
	if s.Turn == nil {
		return Decision{}, nil
	}
	return Decision{Facts: []events.Fact{events.TurnInterrupted{Turn: s.Turn.ID, Reason: "test"}}}, nil
}

// TestDecides: the facts of a decision are appended once, and Decided is called.
func TestDecides(t *testing.T) {
	w := newWorld(t)
	reported := make(chan *session.State, 10)
	l, _ := w.run(
		Config{Decide: interrupt, Decided: func(_ context.Context, s *session.State,
			_ []events.Fact) {
			reported <- s
		}},
	)
	w.store(w.open("s"))
	if s := <-reported; s.Turn != nil || s.Seq != w.state("s").Seq {
		t.Errorf("Decided got %+v", s)
	}
	s := w.state("s")
	if s.Turn != nil || s.Commits != 2 || s.Ignored.Count > 0 {
		t.Errorf("the log says %+v", s)
	}
	if n := l.Counts(); n["facts"] != 1 || n["decisions"] != 1 {
		t.Errorf("counted %v", n)
	}
}

// TestDocumentLags: the log is ahead of the document. The loop reads the tail and decides on it.
func TestDocumentLags(t *testing.T) {
	w := newWorld(t)
	s := w.open("s")
	w.append(s, events.TurnCompleted{Turn: "t1"}, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	l, _ := w.run(Config{Decide: interrupt})
	w.store(s)
	natstest.Until(t, "the newer turn to end", func() bool { return w.state("s").Turn == nil })
	if s := w.state("s"); s.LastTurn.ID != "t2" || s.Ignored.Count > 0 {
		t.Errorf("last turn %+v, ignored %d", s.LastTurn, s.Ignored.Count)
	}
	natstest.Until(t, "a lost race", func() bool { return l.Counts()["lost_races"] >= 1 })
}

// TestFailing: a session that fails is tried three times and left to the slow walk. Other sessions are not delayed.
// After a success it is not a suspect any more.
func TestFailing(t *testing.T) {
	natstest.RetryStalled(t, deliveredAgain, func() error {
		w := newWorld(t)
		var broken atomic.Bool
		var attempts atomic.Int32
		broken.Store(true)
		var l *Loop
		l, _ = w.run(Config{
			Decide: func(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision,
				error) {
				if s.Session == "bad" && broken.Load() {
					attempts.Add(1)
					return Decision{}, errors.New("cannot be decided")
				}
				return interrupt(ctx, s, now, src)
			},
			WalkBy: func(ctx context.Context) error {
				// the walk of a start would be another attempt
				if broken.Load() {
					return nil
				}
				return l.walkAll(ctx)
			},
		})
		w.put("newer", []byte(`{"v":99}`))
		for _, name := range []string{"bad", "good"} {
			w.store(w.open(name))
		}
		natstest.Until(t, "the good one", func() bool { return w.state("good").Turn == nil })
		natstest.Until(t, "two suspects", func() bool { return len(l.Suspects()) == 2 })
		natstest.Until(t, "all to be left", func() bool {
			n, _, err := w.b.Consumers.Lag(w.ctx, Documents("reconciler"))
			return err == nil && n == 0
		})
		if n := attempts.Load(); n != attemptsMax {
			return fmt.Errorf("%d attempts, and no slow walk yet", n)
		}
		for _, x := range l.Suspects() {
			if x.Session == "newer" && !strings.Contains(x.Reason, session.ErrNewerLayout.Error()) ||
				x.Session == "good" {
				t.Errorf("suspect %+v", x)
			}
		}
		broken.Store(false)
		if err := l.Walk(w.ctx); err != nil {
			t.Fatal(err)
		}
		if w.state("bad").Turn != nil || len(l.Suspects()) != 1 {
			return fmt.Errorf("the slow walk left %+v", l.Suspects())
		}
		return nil
	})
}

// TestNotAcknowledged: a document is delivered again if the process stopped while it decided on it.
func TestNotAcknowledged(t *testing.T) {
	w := newWorld(t)
	entered := make(chan struct{}, 10)
	_, stop := w.run(
		Config{Decide: func(ctx context.Context, _ *session.State, _ events.Clock, _ session.Source) (Decision, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return Decision{}, ctx.Err()
		}, WalkBy: noWalk},
	)
	w.store(w.open("s"))
	<-entered
	stop()
	w.run(Config{Decide: interrupt, WalkBy: noWalk})
	natstest.Until(t, "the decision", func() bool { return w.state("s").Turn == nil })
}

// TestCheckAt: a requested look happens though nothing changes: in this process, and in its successor, which has only
// the durable alarm.
func TestCheckAt(t *testing.T) {
	for name, successor := range map[string]bool{"this process": false, "its successor": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var due time.Time
			var once sync.Once
			first := make(chan struct{})
			decide := func(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision,
				error) {
				once.Do(func() {
					due = now.Now.Add(1500 * time.Millisecond)
					close(first)
				})
				if now.Now.Before(due) {
					return Decision{CheckAt: due}, nil
				}
				return interrupt(ctx, s, now, src)
			}
			_, stop := w.run(Config{Decide: decide, WalkBy: noWalk})
			w.store(w.open("s"))
			<-first
			if successor {
				natstest.Until(
					t,
					"the acknowledgement",
					func() bool {
						n, _, err := w.b.Consumers.Lag(w.ctx, Documents("reconciler"))
						return err == nil && n == 0
					},
				)
				stop()
				w.run(Config{Decide: decide, WalkBy: noWalk})
			}
			natstest.Until(t, "the look", func() bool { return w.state("s").Turn == nil })
			if late := w.state("s").UpdatedAt.Sub(due); late < 0 {
				t.Errorf("looked %s before the instant", -late)
			}
		})
	}
}

// settling interrupts turns; the session's name selects how.
func settling(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error) {
	if strings.HasPrefix(s.Session, "bad") {
		return Decision{}, errors.New("cannot be decided")
	}
	d, err := interrupt(ctx, s, now, src)
	switch d.Alone = strings.HasPrefix(s.Session, "alone"); {
	case d.Alone:
		d.Rest = true
	case len(d.Facts) > 0:
		d.After = s.Clone()
		d.After.Turn = nil
	}
	if strings.HasPrefix(s.Session, "long") && len(d.Facts) > 0 {
		for range events.CommitFactsMax {
			d.Facts = append([]events.Fact{events.SessionOrphaned{Reason: "x", Incarnation: "17"}}, d.Facts...)
		}
	}
	return d, err
}

// TestTheFirstDecisionKnowsTheSteps: a loop that has not begun to run decides with the steps of the broker's clock
// that the cell has stored. A service has parts that decide beside [Loop.Run].
func TestTheFirstDecisionKnowsTheSteps(t *testing.T) {
	w := newWorld(t)
	s := w.open("s")
	steps := events.Steps{{Seq: s.Seq, ByMS: (2 * time.Hour).Milliseconds(), At: s.UpdatedAt.Round(0).UTC()}}
	body, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.b.KV.Store(t.Context(), kv.Leases, events.ClockKey(), body, 0); err != nil {
		t.Fatal(err)
	}
	for name, settle := range map[string]func(*Loop, Decide) error{
		"one": func(l *Loop, d Decide) error {
			_, _, err := l.SettleBy(t.Context(), s, d)
			return err
		},
		"many": func(l *Loop, d Decide) (failed error) {
			l.SettleMany(t.Context(), []*session.State{s}, d, func(x Settled) { failed = x.Err })
			return failed
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := New(natstest.Bus(t, w.server),
				Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interrupt})
			if err != nil {
				t.Fatal(err)
			}
			var seen events.Steps
			err = settle(l, func(_ context.Context, _ *session.State, now events.Clock,
				_ session.Source) (Decision, error) {
				seen = now.Steps
				return Decision{}, nil
			})
			if err != nil || !slices.Equal(seen, steps) {
				t.Errorf("decided with the steps %+v, want %+v: %v", seen, steps, err)
			}
		})
	}
}

// TestSettleMany: among many sessions, some documents lag, some need nothing, some fail, some need several commits, and
// some have [Decision.Alone]. Each is reported once, with the result that it has alone.
func TestSettleMany(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interrupt, AtOnceMax: 8})
	if err != nil {
		t.Fatal(err)
	}
	var states []*session.State
	kinds := []string{"plain", "lags", "idle", "bad", "long", "alone", "alone-lags", "alone-idle"}
	const each = 12
	for i := range each {
		for _, kind := range kinds {
			s := w.open(fmt.Sprint(kind, i))
			switch kind {
			case "lags", "alone-lags":
				w.append(s, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
			case "idle", "alone-idle":
				s = w.append(s, events.TurnCompleted{Turn: "t1"})
			}
			states = append(states, s)
		}
	}
	var mu sync.Mutex
	reported := map[string]Settled{}
	l.SettleMany(w.ctx, states, settling, func(x Settled) {
		mu.Lock()
		defer mu.Unlock()
		if _, again := reported[x.Before.Session]; again {
			t.Errorf("%s is reported twice", x.Before.Session)
		}
		reported[x.Before.Session] = x
	})
	facts := map[string]int{"plain": 1, "lags": 1, "long": events.CommitFactsMax + 1, "alone": 1, "alone-lags": 1}
	for i := range each {
		for _, kind := range kinds {
			name := fmt.Sprint(kind, i)
			x, ok := reported[name]
			s := w.state(name)
			// as it was
			if kind == "alone" && x.After == x.Before {
				x.After = s
				if doc, err := s.Encode(); err != nil || !l.done(events.SessionKey(s.Ref()), doc, nil) {
					t.Errorf("%s: what was appended is looked at again, %v", name, err)
				}
			}
			if !ok || (x.Err != nil) != (kind == "bad") || len(x.Facts) != facts[kind] || x.After.Seq != s.Seq {
				t.Errorf("%s: reported %v of %d facts, seq %d of %d, %v", name, ok, len(x.Facts), x.After.Seq, s.Seq,
					x.Err)
			}
			if (s.Turn == nil) != (kind != "bad") || s.Ignored.Count > 0 {
				t.Errorf("%s: turn %v, ignored %+v", name, s.Turn, s.Ignored.Last)
			}
		}
	}
	if n := l.Counts()["lost_races"]; n != 2*each {
		t.Errorf("%d lost races", n)
	}
}

// TestWindowFollowsTheBroker: the window grows while acknowledgements are quick, and shrinks when they are late.
func TestWindowFollowsTheBroker(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		want int
	}{{time.Millisecond, 128}, {ackSoon, 64}, {time.Second, 32}} {
		if got := resized(64, 1000, c.took); got != c.want {
			t.Errorf("64, then %v: %d, want %d", c.took, got, c.want)
		}
	}
	if got := resized(64, 100, 0); got != 100 {
		t.Errorf("beyond its most: %d", got)
	}
	if got := resized(windowMin, 100, time.Second); got != windowMin {
		t.Errorf("below its least: %d", got)
	}
	if got := resized(4, 4, time.Second); got != 4 {
		t.Errorf("below its most: %d", got)
	}
}

// TestChecksOfAnotherClock: a wake from before the clock was set only causes a look. After clear, wakes of earlier
// epochs are ignored.
func TestChecksOfAnotherClock(t *testing.T) {
	q, began := newCheckQueue(), time.Now()
	set := func(name string, epoch uint64) {
		q.set(&check{ref: ref(name), seq: 1, at: began, epoch: epoch, ready: &ready{}})
	}
	set("before", 1)
	set("after", 2)
	due, _ := q.due(events.Clock{Now: began, Epoch: 2})
	if len(due) != 2 {
		t.Fatalf("due: %v", due)
	}
	for _, w := range due {
		if (w.ready != nil) != (w.ref.Session == "after") {
			t.Errorf("%s: done without a look: %v", w.ref.String(), w.ready != nil)
		}
	}
	set("dropped", 2)
	q.clear(3)
	set("late", 2)
	set("new", 3)
	if due, _ := q.due(events.Clock{Now: began, Epoch: 3}); len(due) != 1 || due[0].ref.Session != "new" {
		t.Errorf("due: %v", due)
	}
}

// TestCheckQueue: each session has one wake, that of the newest decision, and the earliest wake is first.
func TestCheckQueue(t *testing.T) {
	q, began := newCheckQueue(), time.Now()
	set := func(name string, seq uint64, after time.Duration) {
		q.set(&check{ref: ref(name), seq: seq, at: began.Add(after)})
	}
	set("later", 1, 30*time.Second)
	set("first", 1, 10*time.Second)
	set("moved", 1, time.Second)
	set("moved", 2, 20*time.Second)
	// decided on less
	set("moved", 1, 2*time.Second)
	set("gone", 5, time.Second)
	q.drop(&check{ref: ref("gone"), seq: 4})
	if due, next := q.due(events.Clock{Now: began}); len(due) > 0 || next != time.Second {
		t.Errorf("due %v, the next in %s", due, next)
	}
	q.drop(&check{ref: ref("gone"), seq: 5})
	var names []string
	for _, at := range []time.Duration{10 * time.Second, 25 * time.Second, time.Minute} {
		due, _ := q.due(events.Clock{Now: began.Add(at)})
		for _, w := range due {
			names = append(names, fmt.Sprint(w.ref.Session, at))
		}
	}
	if got := strings.Join(names, " "); got != "first10s moved25s later1m0s" || q.checks.Len() > 0 {
		t.Errorf("in this order: %s; left: %d", got, q.checks.Len())
	}
	select {
	case <-q.changed:
	default:
		t.Error("a new first of the queue is not signalled")
	}
}

// TestSplit: facts that do not fit into one commit are appended in as few commits as possible, in their order.
func TestSplit(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interrupt})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		facts   int
		output  int
		commits uint64
	}{
		"many small": {facts: 900, commits: 1},
		"few large":  {facts: 10, output: 100 << 10, commits: 2},
		"too many":   {facts: 4500, commits: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.open(strings.ReplaceAll(name, " ", "-"))
			facts := []events.Fact{events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: "17"}}
			for i := range c.facts {
				f := events.ToolCompleted{Call: fmt.Sprint("c", i), Synthetic: true}
				if c.output > 0 {
					f.Output = json.RawMessage(`"` + strings.Repeat("x", c.output) + `"`)
				}
				facts = append(facts, f)
			}
			after, err := l.Append(w.ctx, s, facts)
			if err != nil {
				t.Fatal(err)
			}
			got := w.state(s.Session)
			if got.Commits-1 < c.commits || got.Commits-1 > c.commits+1 || got.Seq != after.Seq || got.Parked > 0 {
				t.Errorf("%d commits, not %d; seq %d, not %d", got.Commits-1, c.commits, after.Seq, got.Seq)
			}
			commits, err := w.b.Log.Read(w.ctx, s.Ref(), s.Seq+1)
			if err != nil || commits[0].Events[0].Kind != "session.orphaned" {
				t.Errorf("the fence is not first: %v", err)
			}
			n := 0
			for _, c := range commits {
				n += len(c.Events)
			}
			if n != len(facts) {
				t.Errorf("%d facts, not %d", n, len(facts))
			}
		})
	}
}

// TestRegister: a service is listed while it runs, and again after its lease was lost. It is not listed after it
// stopped.
func TestRegister(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- Register(ctx, w.b, "ledger", "1.2.3") }()
	key := events.ServiceLeaseKey("ledger", w.b.Instance())
	var e kv.Entry
	listed := func() (ok bool) {
		var err error
		e, err = w.b.KV.Load(w.ctx, kv.Leases, key)
		return err == nil
	}
	natstest.Until(t, "the entry", listed)
	var l lease.Record
	if err := json.Unmarshal(e.Value, &l); err != nil || l.ID != "ledger" || l.Version != "1.2.3" ||
		l.State != lease.Ready || l.PID == 0 || l.Exclusive {
		t.Errorf("listed as %s: %v", e.Value, err)
	}
	// between two renewals
	natstest.Until(t, "its loss", func() bool {
		return listed() && w.b.KV.Delete(w.ctx, kv.Leases, key, e.Rev) == nil
	})
	natstest.Until(t, "the entry again", listed)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if listed() {
		t.Error("it is listed though it has stopped")
	}
}

// TestTogether: the first part that fails ends the others, and its error is returned.
func TestTogether(t *testing.T) {
	broken := errors.New("broken")
	err := Together(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); return nil },
		func(context.Context) error { return nil },
		func(context.Context) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestNewRefuses: New rejects an incomplete Config.
func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no service":    {Decide: interrupt},
		"no decision":   {Service: "x"},
		"negative walk": {Service: "x", Decide: interrupt, Walk: -1},
	} {
		if _, err := New(nil, cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestSlowSession: a decision that does not return delays no other session, even if the other documents come later.
func TestSlowSession(t *testing.T) {
	w := newWorld(t)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	_, stop := w.run(Config{
		WalkBy: noWalk,
		Decide: func(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error) {
			if s.Session == "slow" && s.Turn != nil {
				entered <- struct{}{}
				<-release
			}
			return interrupt(ctx, s, now, src)
		},
	})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	w.store(w.open("slow"))
	<-entered
	w.store(w.open("next"))
	natstest.Until(t, "the next session to be decided", func() bool { return w.state("next").Turn == nil })
	let()
	natstest.Until(t, "the slow one to be decided", func() bool { return w.state("slow").Turn == nil })
	stop()
}

// TestDocumentAhead: a document that names a place which the log does not have is tried once, because no append can
// succeed. It is a suspect with its reason. The log may end before the place, or have another session's commit there.
func TestDocumentAhead(t *testing.T) {
	for name, ahead := range map[string]uint64{"the log ends before": 1_000, "another session's commit": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var decided atomic.Int64
			l, _ := w.run(Config{
				WalkBy: noWalk,
				Decide: func(ctx context.Context, s *session.State, now events.Clock,
					src session.Source) (Decision, error) {
					decided.Add(1)
					return interrupt(ctx, s, now, src)
				},
			})
			s := w.open("ahead")
			w.open("other")
			s.Seq += ahead
			w.store(s)
			natstest.Until(t, "the document to be done", func() bool {
				n, _, err := w.b.Consumers.Lag(w.ctx, Documents("reconciler"))
				return err == nil && n == 0 && len(l.Suspects()) == 1
			})
			if n := decided.Load(); n != 1 {
				t.Errorf("decided %d times", n)
			}
			if x := l.Suspects()[0]; !strings.Contains(x.Reason, bus.ErrLogBehind.Error()) {
				t.Errorf("suspect: %+v", x)
			}
		})
	}
}

// TestNoAppendCanSucceed: a session whose document is ahead of the log is left to the slow walk after one attempt.
func TestNoAppendCanSucceed(t *testing.T) {
	l := &Loop{suspects: map[events.Ref]request.Suspect{}}
	tries := 0
	if l.Try(t.Context(), ref("ahead"), func() error { tries++; return fmt.Errorf("append: %w", bus.ErrLogBehind) }) ||
		tries != 1 {
		t.Errorf("tried %d times", tries)
	}
}
