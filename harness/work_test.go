package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// work runs Work until the test ends, or stop is called.
func (w *world) work(h *harness.Harness, k harness.Worker) (stop func() error) {
	if !harness.IsReady(h) {
		check(w.t, h.Ready(w.ctx))
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- h.Work(ctx, k) }()
	var once sync.Once
	stop = func() (err error) {
		once.Do(func() {
			cancel()
			select {
			case err = <-done:
			case <-time.After(patience):
				err = errors.New("Work did not end")
			}
		})
		return err
	}
	w.t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, harness.ErrClosed) {
			w.t.Error(err)
		}
	})
	return stop
}

// request asks for a turn with a message, as the compaction service does, and shows it.
func (w *world) request(id, turn, content string) {
	w.t.Helper()
	body, err := json.Marshal(content)
	check(w.t, err)
	w.append(id, events.WriterCompaction, events.MessageAccepted{Message: "m-" + turn, Content: body, By: "ada"},
		events.TurnRequested{Turn: turn, Cause: events.CauseMessage, Message: "m-" + turn})
	w.show(id)
}

// released releases a session, so that it has no owner.
func (w *world) released(h *harness.Harness, id string) {
	w.t.Helper()
	s := must[*harness.Session](w.t)(h.Open(w.ctx, id, harness.OpenOptions{}))
	check(w.t, s.Release(w.ctx, ""))
}

// TestWorkIsTaken: requested work is taken and done: in the process's own session, and in one without an owner, by one
// commit.
func TestWorkIsTaken(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	must[*harness.Session](t)(h.Open(w.ctx, "own", harness.OpenOptions{}))
	w.released(h, "free")
	seen := make(chan string, 8)
	w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		seen <- fmt.Sprint(turn.Session().ID(), " ", string(turn.Request().Content))
		return nil
	}})
	for _, id := range []string{"own", "free"} {
		before := w.state(id)
		w.request(id, "t1", "hello "+id)
		select {
		case got := <-seen:
			if got != id+` "hello `+id+`"` {
				t.Errorf("got %s", got)
			}
		case <-time.After(patience):
			t.Fatal("not taken: ", id)
		}
		st := w.until(id, "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
		if st.LastTurn.ID != "t1" || st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 ||
			len(st.Queue) != 0 {
			t.Errorf("%+v", st)
		}
		// asked, taken (with the session), completed
		if st.Commits != before.Commits+3 {
			t.Errorf("%s: %d commits", id, st.Commits-before.Commits)
		}
	}
}

// The end of a turn is what its handler makes it.
func TestHowTurnsEnd(t *testing.T) {
	for _, c := range []struct {
		name    string
		run     func(ctx context.Context, w *world, turn *harness.Turn) error
		outcome string
		reason  string
		loss    harness.LeaseLoss
	}{
		{"an error fails it", func(context.Context, *world, *harness.Turn) error { return errors.New("no luck") },
			session.OutcomeFailed, failure.HandlerError, 0},
		{"an error that says how", func(context.Context, *world, *harness.Turn) error {
			return &harness.FailureError{Failure: events.Failure{Kind: "rate_limit"}}
		}, session.OutcomeFailed, "rate_limit", 0},
		{"its own word stands", func(ctx context.Context, w *world, turn *harness.Turn) error {
			return errors.Join(turn.Complete(ctx, "length"), errors.New("and then"))
		}, session.OutcomeCompleted, "length", 0},
		{"a stop stops it", func(ctx context.Context, w *world, turn *harness.Turn) error {
			w.append("s", events.WriterLedger,
				events.TurnStopRequested{Turn: turn.ID(), Actor: events.ActorPerson, By: "ada", Reason: "enough"})
			<-ctx.Done()
			return ctx.Err()
		}, session.OutcomeStopped, "enough", 0},
		{"a lost lease leaves it alone", func(ctx context.Context, w *world, turn *harness.Turn) error {
			w.dropLease(ctx.Value(keyHarness{}).(*harness.Harness))
			w.until("s", "the session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
			return ctx.Err()
		}, session.OutcomeCompleted, "", harness.LeaseRideOut},
		{"a lost lease fails it once the session is claimed again",
			func(ctx context.Context, w *world, turn *harness.Turn) error {
				h := ctx.Value(keyHarness{}).(*harness.Harness)
				w.dropLease(h)
				<-ctx.Done()
				return ctx.Err()
			}, session.OutcomeFailed, "lease_lost", harness.LeaseRestart},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.connect(func(cfg *harness.Config) { cfg.OnLeaseLoss = c.loss })
			must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
				return c.run(context.WithValue(ctx, keyHarness{}, h), w, turn)
			}})
			w.request("s", "t1", "x")
			st := w.until("s", "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
			if l := st.LastTurn; l.Outcome != c.outcome || l.Reason != c.reason || st.Ignored.Count != 0 {
				t.Errorf("%+v", l)
			}
		})
	}
}

type keyHarness struct{}

// A compaction goes first; the turn waits for its end.
func TestCompactionGoesFirst(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	w.released(h, "s")
	order := make(chan string, 4)
	w.append("s", events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 90, Limit: 100})
	w.request("s", "t1", "x")
	w.work(h, harness.Worker{
		Turn: func(context.Context, *harness.Turn) error { order <- "turn"; return nil },
		Compact: func(_ context.Context, s *harness.Session, c session.WorkCompaction) (int64, error) {
			if st := w.state("s"); st.Compaction == nil || st.Compaction.State != session.CompactionRunning {
				return 0, errors.New("not taken")
			}
			order <- c.Compaction
			return 12, nil
		},
	})
	if a, b := <-order, <-order; a != "k1" || b != "turn" {
		t.Errorf("%s before %s", a, b)
	}
	st := w.until("s", "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
	if l := st.LastCompaction; l.Outcome != session.OutcomeCompleted || l.UsedAfter != 12 || st.Ignored.Count != 0 {
		t.Errorf("%+v", l)
	}
}

// TestATurnWaitsForTheCompaction: a turn is not taken while a compaction runs in any process.
func TestATurnWaitsForTheCompaction(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	w.append("s", events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 90, Limit: 100})
	check(t, s.Append(w.ctx, events.CompactionStarted{Compaction: "k1"}))
	w.request("s", "t1", "x")
	order := make(chan *session.State, 2)
	w.work(h, harness.Worker{TurnsMax: 1, Turn: func(_ context.Context, turn *harness.Turn) error {
		order <- w.state("s")
		return nil
	}})
	must[*harness.Session](t)(h.Open(w.ctx, "other", harness.OpenOptions{}))
	// the worker has looked at both when it has done this
	w.request("other", "t2", "x")
	if st := <-order; st.Turn != nil || st.LastTurn != nil {
		t.Errorf("the turn was taken while a compaction runs: %+v", st.Turn)
	}
	check(t, s.Append(w.ctx, events.CompactionCompleted{Compaction: "k1"}))
	w.until("s", "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
}

// Several processes of one pool: each piece of work is done once, and by more than one of them.
func TestPool(t *testing.T) {
	const members, pieces = 3, 60
	w := newWorld(t)
	var mu sync.Mutex
	did, by := map[string]int{}, map[string]int{}
	// more than one of them has something to do
	shared := make(chan struct{})
	first := w.connect(pool)
	for i := range pieces {
		w.released(first, fmt.Sprint(i))
	}
	for range members {
		h := w.connect(pool)
		check(t, h.Ready(w.ctx))
		w.work(h, harness.Worker{TurnsMax: 4, Turn: func(ctx context.Context, turn *harness.Turn) error {
			mu.Lock()
			did[turn.Session().ID()]++
			if by[h.Incarnation()]++; by[h.Incarnation()] == 1 && len(by) == 2 {
				close(shared)
			}
			mu.Unlock()
			select {
			case <-shared:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
	}
	for i := range pieces {
		w.request(fmt.Sprint(i), "t1", "x")
	}
	for i := range pieces {
		st := w.until(fmt.Sprint(i), "the session to be free again", func(st *session.State) bool {
			return st.LastTurn != nil && !st.Owned
		})
		if st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 {
			t.Errorf("%d: %+v, %+v", i, st.LastTurn, st.Ignored.Last)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for id, n := range did {
		if n != 1 {
			t.Errorf("%s was done %d times", id, n)
		}
	}
	if len(did) != pieces || len(by) < 2 {
		t.Errorf("%d pieces done by %v", len(did), by)
	}
}

// TestWorkBeginsAgain: the context of Work ends while a handler asks, and once more after it has the answer. The next
// Work of the process runs the turn again, and the question returns the same answer. So does OpenTurn.
func TestWorkBeginsAgain(t *testing.T) {
	for _, kind := range []string{"callback", "call"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			prompt := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			answered := make(chan string, 3)
			run := func(ctx context.Context, turn *harness.Turn) error {
				if kind == "call" {
					c, err := turn.Tool(ctx, harness.ToolOptions{ID: "c1"})
					if err != nil {
						return err
					}
					prompt.Call = c.ID()
				}
				if len(answered) > 0 && prompt.Call != "" {
					if err := s.Call(prompt.Call).Complete(ctx, "x"); !errors.Is(err, harness.ErrUnread) {
						t.Errorf("the call ends without its answer: %v", err)
					}
				}
				a, err := turn.Ask(ctx, prompt)
				if err == nil {
					answered <- a.Choice()
				}
				return err
			}
			work := func(cutOff bool, ends func()) {
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				done := make(chan error, 1)
				go func() {
					done <- h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
						err := run(ctx, turn)
						if cutOff {
							<-ctx.Done()
							return context.Cause(ctx)
						}
						return err
					}})
				}()
				ends()
				cancel()
				check(t, <-done)
			}
			w.request("s", "t1", "x")
			work(true, func() { w.awaiting("s", "p1") })
			w.mustAnswer("s", "p1", "blue")
			work(true, func() { natstest.Until(t, "the answer", func() bool { return len(answered) == 1 }) })
			work(false, func() {
				w.until("s", "the end of the turn", func(st *session.State) bool { return st.Turn == nil })
			})
			if l := w.state("s").LastTurn; l.ID != "t1" || l.Outcome != session.OutcomeCompleted {
				t.Errorf("got the last turn %+v", l)
			}
			if first, again := <-answered, <-answered; first != "blue" || again != "blue" {
				t.Errorf("answered %s, then %s", first, again)
			}
			w.request("s", "t2", "y")
			prompt.ID, prompt.Call = "p2", ""
			kind = "callback"
			work(true, func() { w.awaiting("s", "p2") })
			if turn := s.OpenTurn(); turn == nil || turn.ID() != "t2" || string(turn.Request().Content) != `"y"` {
				t.Errorf("got the open turn %+v", turn)
			}
		})
	}
}

// TestPoolMemberEndsItsWork: the context of Work ends while a member of a pool runs a turn of a session that its Work
// took. The session is released, also if the broker is away then, and another member can continue the turn.
func TestPoolMemberEndsItsWork(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("broker away %t", away), func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(pool, func(c *harness.Config) { c.TTL = time.Minute })
			w.released(h, "s")
			check(t, h.Ready(w.ctx))
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			running, done := make(chan *harness.Session, 1), make(chan error, 1)
			go func() {
				done <- h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
					running <- turn.Session()
					<-ctx.Done()
					return context.Cause(ctx)
				}})
			}()
			w.request("s", "t1", "x")
			s := <-running
			if away {
				w.server.Shutdown()
				go func() { _ = s.Append(w.ctx, events.UsageReported{Model: "m"}) }()
				natstest.Until(t, "a fact to be sent", func() bool { return harness.HandedOver(s) == 1 })
			}
			cancel()
			check(t, <-done)
			if away {
				// the first write, and the release
				if n := harness.Waiting(s); n != 2 {
					t.Errorf("%d writes wait, want 2", n)
				}
				w.back()
			}
			st := w.until("s", "the release", func(st *session.State) bool { return !st.Owned })
			if st.Turn == nil || st.Turn.ID != "t1" || st.Left != session.LeftReleased {
				t.Errorf("turn %+v, left %q", st.Turn, st.Left)
			}
		})
	}
}

// A member of a pool leaves the sessions of the others alone.
func TestPoolMembersKeepApart(t *testing.T) {
	w := newWorld(t)
	one, two := w.connect(pool), w.connect(pool)
	must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	_, err := two.Open(w.ctx, "s", harness.OpenOptions{})
	wantErr(t, err, harness.ErrOwned)
	w.work(two, harness.Worker{Turn: func(context.Context, *harness.Turn) error { return errors.New("not mine") }})
	done := make(chan struct{})
	w.work(one, harness.Worker{Turn: func(context.Context, *harness.Turn) error { close(done); return nil }})
	w.request("s", "t1", "x")
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("not taken by its owner")
	}
	w.until("s", "the turn to be over", func(st *session.State) bool {
		return st.LastTurn != nil && st.LastTurn.Outcome == session.OutcomeCompleted
	})
}

// TestPlaces: work that waits while all places are taken is done when one gets free; Work's end waits for what is under
// way.
func TestPlaces(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	running, release := make(chan string, 8), make(chan struct{})
	stop := w.work(h, harness.Worker{TurnsMax: 1, Turn: func(ctx context.Context, turn *harness.Turn) error {
		running <- turn.Session().ID()
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	for _, id := range []string{"a", "b", "c"} {
		w.released(h, id)
		w.request(id, "t1", "x")
	}
	first := <-running
	select {
	case id := <-running:
		t.Fatalf("%s runs beside %s", id, first)
	default:
	}
	release <- struct{}{}
	second := <-running
	if first == second {
		t.Errorf("%s twice", first)
	}
	check(t, stop())
	if st := w.state(second); st.Turn == nil {
		t.Errorf("a turn that was cut off by leaving is for recovery to end: %+v", st.LastTurn)
	}
}

// TestAQuestionTakesNoPlace: turns that wait for people do not keep other sessions from the agent, and continue beside
// them when they are answered. An Ask that outlives its handler frees nothing twice.
func TestAQuestionTakesNoPlace(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	running, release := make(chan string, 8), make(chan struct{})
	w.work(h, harness.Worker{TurnsMax: 1, Turn: func(ctx context.Context, turn *harness.Turn) error {
		id := turn.Session().ID()
		// its handler returns and leaves two Asks
		if id == "left" {
			for _, p := range []string{"p1", "p2"} {
				go func() { _, _ = turn.Ask(w.ctx, harness.Prompt{ID: p, Title: "go?"}) }()
				w.awaiting(id, p)
			}
			running <- id
			return nil
		}
		if id != "plain" {
			if _, err := turn.Ask(ctx, harness.Prompt{ID: "p1", Title: "go?"}); err != nil {
				return err
			}
		}
		running <- id
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	begins := func(id string) {
		w.released(h, id)
		w.request(id, "t1", "x")
	}
	for _, id := range []string{"a", "b"} {
		begins(id)
		w.awaiting(id, "p1")
	}
	expect := func(id string) {
		t.Helper()
		select {
		case is := <-running:
			if is != id {
				t.Fatalf("%s runs, want %s", is, id)
			}
		case <-time.After(90 * time.Second):
			t.Fatalf("%s does not run", id)
		}
	}
	begins("left")
	expect("left")
	begins("plain")
	expect("plain")
	// beside the plain one
	for _, id := range []string{"a", "b"} {
		w.mustAnswer(id, "p1", "yes")
		expect(id)
	}
	// now three run: a question does not begin
	begins("c")
	release <- struct{}{}
	release <- struct{}{}
	select {
	case <-time.After(200 * time.Millisecond):
	case <-w.ctx.Done():
	}
	if st := w.state("c"); st.Turn != nil || len(st.Prompts) > 0 {
		t.Errorf("a turn begins beside one that runs: %+v", st.Turn)
	}
	release <- struct{}{}
	w.awaiting("c", "p1")
}

// TestATurnWaitsForASubAgent: with one turn at a time, a handler waits for the turn of another session. That turn
// begins, and the handler gets the error of its wait.
func TestATurnWaitsForASubAgent(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	ran, waited := make(chan struct{}), make(chan error, 1)
	failed := errors.New("the sub-agent failed")
	w.work(h, harness.Worker{TurnsMax: 1, Turn: func(ctx context.Context, turn *harness.Turn) error {
		if turn.Session().ID() == "child" {
			close(ran)
			return nil
		}
		waited <- turn.WaitFor(func() error {
			w.released(h, "child")
			w.request("child", "t1", "x")
			select {
			case <-ran:
				return failed
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		return nil
	}})
	w.released(h, "parent")
	w.request("parent", "t1", "x")
	select {
	case err := <-waited:
		if !errors.Is(err, failed) {
			t.Errorf("the wait ended with %v", err)
		}
	case <-time.After(90 * time.Second):
		t.Fatal("the turn of the sub-agent does not run")
	}
}

// TestWorkLeavesWhatIsOwned: an old work view shows a session without an owner that another process has claimed since:
// it is left alone.
func TestWorkLeavesWhatIsOwned(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	w.released(one, "s")
	w.released(one, "other")
	w.request("s", "t1", "x")
	// not shown yet
	must[*harness.Session](t)(one.Claim(w.ctx, "s"))
	two := w.connect()
	done := make(chan string, 4)
	w.work(two, harness.Worker{TurnsMax: 1, Turn: func(_ context.Context, turn *harness.Turn) error {
		done <- turn.Session().ID()
		return nil
	}})
	for _, turn := range []string{"t1", "t2", "t3"} {
		w.request("other", turn, "x")
		if id := <-done; id != "other" {
			t.Fatalf("took %s from its owner", id)
		}
	}
	if st := w.state("s"); st.Incarnation != one.Incarnation() || st.Pending.Turn == nil {
		t.Errorf("%+v", st)
	}
}

// TestWorkIsCheckedAgain: work that could not be taken at first is taken later without another change of the view: the
// work view shows a session without an owner, which was claimed since, and is released later.
func TestWorkIsCheckedAgain(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect(pool)
	w.released(h, "s")
	w.request("s", "t1", "hello")
	other := w.connect(pool)
	s := must[*harness.Session](t)(other.Claim(w.ctx, "s"))
	checked, taken := make(chan struct{}, 8), make(chan string, 1)
	w.work(h, harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
		if turn.Session().ID() == "marker" {
			checked <- struct{}{}
		} else {
			taken <- turn.ID()
		}
		return nil
	}})
	w.released(h, "marker")
	w.request("marker", "t1", "x")
	// s was read as well: its nudge came before
	<-checked
	w.until("s", "it to be left alone", func(st *session.State) bool { return st.Owned && st.Pending.Turn != nil })
	check(t, s.Release(w.ctx, ""))
	select {
	case got := <-taken:
		if got != "t1" {
			t.Errorf("took %s", got)
		}
	case <-time.After(patience):
		t.Fatal("never taken")
	}
}

// TestOptionsThatCannotBeStored checks that a turn whose options are too large, or no JSON, is taken and fails with the
// reason, instead of blocking the queue: in a session of this process, and in one without an owner.
func TestOptionsThatCannotBeStored(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	must[*harness.Session](t)(h.Open(w.ctx, "own", harness.OpenOptions{}))
	w.released(h, "free")
	w.work(h, harness.Worker{
		Options: func(s *harness.Session, turn session.WorkTurn) any {
			if turn.Turn == "large" {
				return strings.Repeat("x", events.OptionsBytesMax)
			}
			// cannot be written as JSON
			return func() {}
		},
		Turn: func(_ context.Context, turn *harness.Turn) error {
			t.Errorf("turn %s runs with options %s", turn.ID(), turn.Request().Options)
			return nil
		},
	})
	for _, id := range []string{"own", "free"} {
		for turn, options := range map[string]string{"large": fmt.Sprint(events.OptionsBytesMax),
			"none": "unsupported type"} {
			w.request(id, turn, "hello")
			st := w.until(id, "turn "+turn+" to fail", func(st *session.State) bool {
				return st.LastTurn != nil && st.LastTurn.ID == turn
			})
			l := st.LastTurn
			if l.Outcome != session.OutcomeFailed || l.Error.Kind != failure.RuntimeNotReady ||
				!strings.Contains(l.Error.Text, options) || st.Ignored.Count != 0 {
				t.Errorf("%s in %s: %+v %+v", turn, id, l, l.Error)
			}
		}
	}
}

// TestCompactionTakenAway: a compaction that was failed in its harness's name ends its context, with the reason, and
// its handler's later result is not appended: the next one starts from the beginning (T18, V1).
func TestCompactionTakenAway(t *testing.T) {
	for name, comesTo := range map[string]func(context.Context) (int64, error){
		"heeds it":        func(ctx context.Context) (int64, error) { return 0, context.Cause(ctx) },
		"does not":        func(context.Context) (int64, error) { return 10, nil },
		"fails by chance": func(context.Context) (int64, error) { return 0, errors.New("the model is gone") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.connect()
			must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			w.append("s", events.WriterCompaction,
				events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
			causes := make(chan error, 1)
			w.work(h, harness.Worker{Compact: func(ctx context.Context, _ *harness.Session,
				c session.WorkCompaction) (int64, error) {
				if c.Compaction == "k2" {
					return 30, nil
				}
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return comesTo(ctx)
			}})
			w.until("s", "the compaction to run", func(st *session.State) bool {
				return st.Compaction != nil && st.Compaction.State == session.CompactionRunning
			})
			w.append("s", events.WriterCompaction,
				events.CompactionFailed{Compaction: "k1", Error: events.Failure{Kind: failure.Stalled}},
				events.CompactionRequested{Compaction: "k2", Reason: events.CompactManual})
			st := w.until("s", "the next to be done", func(st *session.State) bool {
				return st.LastCompaction != nil && st.LastCompaction.ID == "k2"
			})
			cause := <-causes
			ended, ok := errors.AsType[*harness.EndedError](cause)
			if !ok || ended.Stands.ID != "k1" || ended.Stands.Reason != failure.Stalled {
				t.Errorf("the cause is %v, want that k1 has failed, and why", cause)
			}
			if l := st.LastCompaction; l.Outcome != session.OutcomeCompleted || l.UsedAfter != 30 ||
				st.Ignored.Count != 0 {
				t.Errorf("%+v; ignored %+v", l, st.Ignored.Last)
			}
		})
	}
}

// TestWorkRunsWhatOpenAdopted: the next process opens the session, and Work runs the turn that was cut off, with its
// message, and without a retry; also after Claim, if the caller says so. A turn whose handle the program has asked for
// is the program's.
func TestWorkRunsWhatOpenAdopted(t *testing.T) {
	for name, own := range map[string]func(*harness.Harness, context.Context) (*harness.Session, error){
		"Open": func(h *harness.Harness, ctx context.Context) (*harness.Session, error) {
			return h.Open(ctx, "s", harness.OpenOptions{})
		},
		"Claim": func(h *harness.Harness, ctx context.Context) (*harness.Session, error) {
			return h.Claim(ctx, "s", harness.Adopt{Turn: true, ForWork: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.begins(w.connect())
			h := w.connect()
			must[*harness.Session](t)(own(h, w.ctx))
			w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
				content, err := turn.Content(ctx)
				r := turn.Request()
				if err == nil && (turn.ID() != "t1" || r.Message != "m1" || string(content) != `"deploy"`) {
					return fmt.Errorf("got %s: %+v with %s", turn.ID(), r, content)
				}
				return err
			}})
			st := w.until("s", "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
			if l := st.LastTurn; l.ID != "t1" || l.Outcome != session.OutcomeCompleted {
				t.Errorf("%+v %+v", l, l.Error)
			}
		})
	}
	for name, get := range map[string]func(*world, *harness.Session) *harness.Turn{
		"the program's, by OpenTurn": func(_ *world, s *harness.Session) *harness.Turn { return s.OpenTurn() },
		"the program's, by its id": func(w *world, s *harness.Session) *harness.Turn {
			return must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.begins(w.connect())
			h := w.connect()
			turn := get(w, must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{})))
			checked := make(chan string, 2)
			w.work(h, harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
				checked <- turn.Session().ID()
				return nil
			}})
			w.released(h, "marker")
			w.request("marker", "t9", "x")
			if id := <-checked; id != "marker" {
				t.Errorf("Work runs the turn of %s", id)
			}
			check(t, turn.Complete(w.ctx, ""))
		})
	}
}

// TestOpenAdoptsNotForEver: a turn whose processes die at once is left to recovery, which counts how often it is
// resumed. A result of a step in between counts as progress.
func TestOpenAdoptsNotForEver(t *testing.T) {
	w := newWorld(t)
	w.begins(w.connect())
	open := func() *harness.Turn {
		return must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{})).OpenTurn()
	}
	var c counter
	for i := range 2 {
		if open() == nil {
			t.Fatalf("not adopted after %d deaths", i+1)
		}
	}
	must[string](t)(harness.Step(w.ctx, open(), "deploy", c.run))
	for i := range 3 {
		if open() == nil {
			t.Fatalf("not adopted after %d deaths since a result", i+1)
		}
	}
	if turn := open(); turn != nil {
		t.Error("adopted again, although nothing comes of it")
	}
	if st := w.state("s"); st.Turn == nil || st.Turn.Epoch == st.Epoch {
		t.Errorf("the turn is not left to recovery: %+v", st.Turn)
	}
}

// TestOpenLeavesToRecovery: a turn that nothing continues by itself is not adopted: the policy holds it for a person,
// or it was resumed as often as the policy says. Nor is one that was adopted twenty times.
func TestOpenLeavesToRecovery(t *testing.T) {
	for name, policy := range map[string]events.PolicyPatch{
		"hold":              {Resume: events.Set(events.ResumeHold)},
		"no retries":        {AutoRetry: events.Set(false)},
		"no resume allowed": {ResumeMax: events.Set(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{Policy: &policy}))
			must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
			s = must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			if st := w.state("s"); s.OpenTurn() != nil || st.Turn == nil || st.Turn.Epoch == st.Epoch {
				t.Errorf("adopted: %+v", st.Turn)
			}
		})
	}
	t.Run("twenty deaths", func(t *testing.T) {
		w := newWorld(t)
		turn, n := w.begins(w.connect()), 0
		for ; turn != nil && n < 30; n++ {
			call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{Name: "think"}))
			check(t, call.Complete(w.ctx, "nothing"))
			turn = must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{})).OpenTurn()
		}
		if n != 21 {
			t.Errorf("left to recovery after %d deaths, want 21", n)
		}
	})
}

// TestOpenInDoubtIsHandedOver: a claim is stored, and its caller gives up before that is known. The next Open gets the
// session, and Work runs the turn that was adopted.
func TestOpenInDoubtIsHandedOver(t *testing.T) {
	w := newWorld(t)
	w.begins(w.connect())
	h, l, acknowledge := deaf(w)
	ctx, cancel := context.WithCancel(w.ctx)
	failed := make(chan error, 1)
	l.ends.Store(true)
	go func() {
		_, err := h.Open(ctx, "s", harness.OpenOptions{})
		failed <- err
	}()
	w.until("s", "the claim to be stored", func(st *session.State) bool { return st.Epoch == 2 })
	again, started := make(chan error, 1), make(chan struct{})
	go func() {
		close(started)
		_, err := h.Open(w.ctx, "s", harness.OpenOptions{})
		again <- err
	}()
	<-started
	natstest.Until(t, "the second call to wait", func() bool { return harness.Users(h, "s") == 2 })
	cancel()
	wantErr(t, <-failed, harness.ErrUnreachable)
	acknowledge()
	check(t, <-again)
	w.work(h, harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
		if turn.ID() != "t1" || turn.Request().Message != "m1" {
			return fmt.Errorf("got %s: %+v", turn.ID(), turn.Request())
		}
		return nil
	}})
	st := w.until("s", "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
	if l := st.LastTurn; l.ID != "t1" || l.Outcome != session.OutcomeCompleted {
		t.Errorf("%+v %+v", l, l.Error)
	}
}

// TestWorkWithoutReady: a forgotten Ready is an error that says so, and Work begins after it.
func TestWorkWithoutReady(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	wantErr(t, h.Work(w.ctx, harness.Worker{}), harness.ErrNotReady)
	check(t, h.Ready(w.ctx))
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	check(t, h.Work(ctx, harness.Worker{}))
}

// TestErrorsOfHandlers: an error that says nothing of itself is one of the agent's own code. A step that was cut off is
// final. The words of a provider still count.
func TestErrorsOfHandlers(t *testing.T) {
	for text, want := range map[string]string{"nil map": failure.HandlerError,
		"429 Too Many Requests": failure.RateLimit} {
		w := newWorld(t)
		turn := w.begins(w.connect())
		check(t, turn.FailWith(w.ctx, errors.New(text)))
		if l := w.state("s").LastTurn; l.Error.Kind != want || l.Error.Text == "" {
			t.Errorf("%s: %+v", text, l.Error)
		}
	}
	w := newWorld(t)
	turn := w.begins(w.connect())
	check(t, turn.FailWith(w.ctx, fmt.Errorf("deploy: %w", &harness.UnknownOutcomeError{Step: "deploy"})))
	if l := w.state("s").LastTurn; l.Error.Kind != failure.OutcomeUnknown || failure.Retryable(l.Error.Kind) {
		t.Errorf("%+v", l.Error)
	}
}

// TestTurnsNameWhatTheyAreAbout: a turn of each cause names its message or its decisions, in Work, after an adoption,
// and if the program began it itself. The requests are those of the services.
func TestTurnsNameWhatTheyAreAbout(t *testing.T) {
	of := func(cause events.Cause) events.TurnRequested {
		return events.TurnRequested{Turn: "t2", Cause: cause, OfTurn: "t1", Message: "m1", Attempt: 1}
	}
	followUp := of(events.CauseFollowUp)
	followUp.Compaction = "k1"
	for _, request := range []events.TurnRequested{of(events.CauseRetry), of(events.CauseResume), followUp,
		{Turn: "t2", Cause: events.CauseMessage, Message: "m1"}, {Turn: "t2", Cause: events.CauseAnswer}} {
		t.Run(string(request.Cause), func(t *testing.T) {
			w := newWorld(t)
			h := w.connect()
			turn := w.begins(h)
			if r := turn.Request(); r.Turn != "t1" || r.Message != "m1" || string(r.Content) != `"deploy"` {
				t.Errorf("begun by the program: %+v", r)
			}
			seen := make(chan session.WorkTurn, 1)
			want := "m1"
			switch request.Cause {
			case events.CauseMessage:
				check(t, turn.Complete(w.ctx, ""))
				w.append("s", events.WriterCompaction, events.MessageAccepted{Message: "m2", Content: []byte(`"more"`)})
				request.Message, want = "m2", "m2"
			case events.CauseAnswer:
				asks := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
				w.awaiting("s", "p1")
				w.orphan()
				// the answer requests the turn
				w.mustAnswer("s", "p1", "red")
				// until then the process takes the session for its own
				wantErr(t, got(t, asks).err, harness.ErrFenced)
				must[*harness.Session](t)(h.Claim(w.ctx, "s"))
			default:
				check(t, turn.FailWith(w.ctx, errors.New("no luck")))
			}
			if request.Cause != events.CauseAnswer {
				w.append("s", events.WriterRetry, request)
			}
			w.work(h, harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
				seen <- turn.Request()
				return nil
			}})
			var r session.WorkTurn
			select {
			case r = <-seen:
			case <-w.ctx.Done():
				t.Fatal("Work has not taken the turn")
			}
			if r.Cause != request.Cause || r.Message != want || r.Content == nil ||
				r.Cause == events.CauseAnswer && (len(r.Prompts) != 1 || r.Prompt != "p1") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestOneGoroutineRunsATurn: while a handler of Work runs a turn, OpenTurn and StartTurn do not give it to a second
// goroutine: a turn that was adopted, one that was requested in an own session, and one in a session without an owner.
// After the handler a turn that is still open is there for the program.
func TestOneGoroutineRunsATurn(t *testing.T) {
	for name, begin := range map[string]func(*world) *harness.Harness{
		"adopted": func(w *world) *harness.Harness {
			w.begins(w.connect())
			h := w.connect()
			must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			return h
		},
		"requested": func(w *world) *harness.Harness {
			h := w.connect()
			must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			w.request("s", "t1", "x")
			return h
		},
		"without an owner": func(w *world) *harness.Harness {
			h := w.connect()
			w.released(h, "s")
			w.request("s", "t1", "x")
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := begin(w)
			runs := make(chan *harness.Turn, 1)
			stop := w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
				runs <- turn
				<-ctx.Done()
				return ctx.Err()
			}})
			turn := <-runs
			s := must[*harness.Session](t)(h.Claim(w.ctx, "s"))
			if open := s.OpenTurn(); open != nil {
				t.Errorf("the program gets turn %s, which a handler runs", open.ID())
			}
			_, err := s.StartTurn(w.ctx, harness.StartOptions{ID: turn.ID()})
			wantErr(t, err, harness.ErrRunning)
			check(t, stop())
			if open := s.OpenTurn(); open == nil || open.ID() != turn.ID() {
				t.Errorf("the program gets %v after the handler, want turn %s", open, turn.ID())
			}
		})
	}
}

// TestWorkWithoutCompact: a Work that runs turns and has no Compact takes a compaction and fails it for good, in one
// commit, and the turn behind it runs: in a session of this process, in one without an owner, and in a pool. One
// warning says so.
func TestWorkWithoutCompact(t *testing.T) {
	for name, change := range map[string]func(*harness.Config){"exclusive": func(*harness.Config) {}, "pool": pool} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var mu sync.Mutex
			logged := ""
			h := w.connect(change, func(c *harness.Config) {
				c.Log = slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) {
					mu.Lock()
					defer mu.Unlock()
					logged += string(p)
				}), nil))
			})
			must[*harness.Session](t)(h.Open(w.ctx, "own", harness.OpenOptions{}))
			w.released(h, "free")
			before := map[string]*session.State{}
			for _, id := range []string{"own", "free"} {
				before[id] = w.state(id)
				w.append(id, events.WriterCompaction,
					events.CompactionRequested{Compaction: "k-" + id, Reason: events.CompactManual})
				w.request(id, "t1", "x")
			}
			w.work(h, harness.Worker{Turn: func(context.Context, *harness.Turn) error { return nil }})
			for id, was := range before {
				st := w.until(id, "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
				l := st.LastCompaction
				if l == nil || l.ErrorKind() != failure.RuntimeNotReady || !strings.Contains(l.Error.Text, "Compact") ||
					st.CompactAgain() || st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 {
					t.Fatalf("%s: compaction %+v, turn %+v", id, l, st.LastTurn)
				}
				// two requests, the compaction, the start of the turn and its end
				if n := st.Commits - was.Commits; n != 5 && name == "exclusive" {
					t.Errorf("%s: %d commits", id, n)
				}
			}
			// Close writes what is logged
			check(t, h.Close(w.ctx))
			mu.Lock()
			defer mu.Unlock()
			if n := strings.Count(logged, "Worker.Compact is nil"); n != 1 || !strings.Contains(logged, `"WARN"`) {
				t.Errorf("%d warnings for two compactions: %s", n, logged)
			}
		})
	}
}

// TestPoolReleasesWhatWorkTook: a session that Work took in a pool stays with the process while a turn of the program
// is open in it. It is released when that turn has ended, at the end of Work at the latest; also by a later Work, which
// runs the next turn in it as in a session of its own. A session that the program has claimed is the program's.
// The turn t9 runs in the one slot when the handler before it has returned. A session without work is released before
// it is read again.
func TestPoolReleasesWhatWorkTook(t *testing.T) {
	for name, c := range map[string]struct {
		ends, later, next, cutOff, claimed bool // Work ends; a later one begins; it has a turn, which is cut off
	}{
		"while Work runs":             {},
		"at the end of Work":          {ends: true},
		"by a later Work":             {ends: true, later: true},
		"after a turn of a later one": {ends: true, later: true, next: true},
		"with a turn of a later one":  {ends: true, later: true, next: true, cutOff: true},
		"claimed by the program":      {next: true, claimed: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(pool)
			w.released(h, "s")
			w.released(h, "marker")
			opened, ran := make(chan *harness.Turn, 1), make(chan string, 4)
			worker := harness.Worker{TurnsMax: 1, Turn: func(ctx context.Context, turn *harness.Turn) error {
				ran <- turn.ID()
				switch turn.ID() {
				case "t1":
					err := turn.Complete(ctx, "")
					next, started := turn.Session().StartTurn(w.ctx, harness.StartOptions{ID: "t2"})
					opened <- next
					return errors.Join(err, started)
				case "t3":
					if c.cutOff {
						<-ctx.Done()
						return context.Cause(ctx)
					}
				}
				return nil
			}}
			stop := w.work(h, worker)
			w.request("s", "t1", "x")
			<-ran
			own := <-opened
			if own == nil {
				t.FailNow()
			}
			w.request("marker", "t9", "x")
			<-ran
			w.forget("s")
			natstest.Until(t, "the offer to be gone", func() bool { return harness.Offers(h) == 1 })
			if c.later {
				check(t, stop())
			}
			if c.claimed {
				must[*harness.Session](t)(h.Claim(w.ctx, "s"))
			}
			check(t, own.Complete(w.ctx, ""))
			if c.ends && !c.later {
				check(t, stop())
			}
			if c.next {
				w.append("s", events.WriterCompaction, events.TurnRequested{Turn: "t3", Cause: events.CauseMessage})
			}
			if c.next && c.later {
				natstest.Until(t, "the request to be read", func() bool {
					return own.Session().State().Pending.Turn != nil
				})
			}
			if c.later {
				if st := w.state("s"); !st.Owned {
					t.Fatal("released under a turn of the program")
				}
				stop = w.work(h, worker)
			}
			last := "t2"
			if c.next {
				<-ran
				if last = "t3"; c.cutOff {
					last = "t2"
					check(t, stop())
				}
			}
			if c.claimed {
				w.request("marker", "t10", "x")
				<-ran
				check(t, stop())
			}
			st := w.state("s")
			if !c.ends || c.later && !c.cutOff {
				st = w.until("s", "the release", func(st *session.State) bool { return !st.Owned || c.claimed })
			}
			if st.Owned != c.claimed || (st.Turn != nil) != c.cutOff || st.LastTurn.ID != last ||
				st.Ignored.Count != 0 {
				t.Errorf("owned %t, open turn %+v, last turn %+v", st.Owned, st.Turn, st.LastTurn)
			}
		})
	}
}

// TestWorkOfOneSession: Work takes the requests of the sessions that it is for. Those of others stay pending, also of a
// session that the process owns.
func TestWorkOfOneSession(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	must[*harness.Session](t)(h.Open(w.ctx, "own", harness.OpenOptions{}))
	w.released(h, "free")
	w.released(h, "mine")
	seen := make(chan string, 8)
	stop := w.work(h, harness.Worker{Sessions: []string{"mine"}, Turn: func(_ context.Context, t *harness.Turn) error {
		seen <- t.Session().ID()
		return nil
	}})
	w.request("own", "t1", "hello")
	w.request("free", "t2", "hello")
	w.request("mine", "t3", "hello")
	next := func() string {
		select {
		case id := <-seen:
			return id
		case <-time.After(patience):
			t.Fatal("nothing is served")
			return ""
		}
	}
	if got := next(); got != "mine" {
		t.Errorf("%s is served", got)
	}
	natstest.Until(t, "the end of the turn", func() bool { return w.state("mine").Turn == nil })
	check(t, stop())
	for _, id := range []string{"own", "free"} {
		if st := w.state(id); st.Pending.Turn == nil || st.Turn != nil {
			t.Errorf("%s: pending %v, turn %v", id, st.Pending.Turn, st.Turn)
		}
	}
	w.work(h, harness.Worker{Turn: func(_ context.Context, t *harness.Turn) error {
		seen <- t.Session().ID()
		return nil
	}})
	if got := map[string]bool{next(): true, next(): true}; !got["own"] || !got["free"] {
		t.Errorf("served later: %v", got)
	}
}
