package harness

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// refuses has the broker refuse what waits.
func (x *inside) refuses() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.unacked = &unacked{writes: x.s.queue}
	x.s.settleUnacked(ErrFull)
}

// TestEndThatIsRefused: the broker refuses the end of a turn, or of a compaction, while Work waits for it. Work gets
// the error, and the end is tried again.
func TestEndThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(x *inside) error
		done func(st *session.State) bool
	}{
		"a turn": {func(x *inside) error {
			turn := x.s.openTurn()
			return x.workLoopOf(func(context.Context, *Turn) error { return nil }).run(x.ctx, turn)
		}, func(st *session.State) bool {
			return st.LastTurn != nil && st.LastTurn.Outcome == session.OutcomeCompleted
		}},
		"a compaction": {func(x *inside) error {
			k := x.workLoopOf(nil)
			k.w.Compact = func(context.Context, *Session, session.WorkCompaction) (int64, error) { return 7, nil }
			return k.compact(x.ctx, x.s, session.WorkCompaction{Compaction: "k1"})
		}, func(st *session.State) bool { return st.LastCompaction != nil && st.LastCompaction.UsedAfter == 7 }},
	} {
		t.Run(name, func(t *testing.T) {
			x := newInside(t)
			if name == "a turn" {
				x.turn(StartOptions{ID: "t1"})
			} else {
				x.appendUnnudged(events.WriterCompaction,
					events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
				x.mustRelay(events.CompactionStarted{Compaction: "k1"})
			}
			x.s.writing <- struct{}{}
			result := make(chan error, 1)
			go func() { result <- c.do(x) }()
			natstest.Until(t, "the end to wait", func() bool { return Waiting(x.s) == 1 })
			x.refuses()
			if err := <-result; !errors.Is(err, ErrFull) {
				t.Errorf("Work got %v, want %v", err, ErrFull)
			}
			if n := Kept(x.s); n != 1 {
				t.Errorf("%d facts are kept, want the end", n)
			}
			<-x.s.writing
			natstest.Until(t, "the end to be stored", func() bool { return c.done(x.s.State()) })
			if b := &x.h.buffer; b.facts != 0 || b.bytes != 0 {
				t.Errorf("%d facts, %d bytes still have their room", b.facts, b.bytes)
			}
		})
	}
}

// TestResultThatIsRefused: the broker refuses the result of a step that ran, because the log is full. The caller learns
// it. The result is stored when there is room, and the next call of the step returns it without running the function.
func TestResultThatIsRefused(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	runs := 0
	step := func(then func()) (int, error) {
		return Step(x.ctx, turn, "deploy", func(context.Context) (int, error) {
			runs++
			then()
			return 7, nil
		})
	}
	result := make(chan error, 1)
	go func() {
		_, err := step(func() { x.s.writing <- struct{}{} })
		result <- err
	}()
	x.queued(1)
	natstest.Until(t, "the result to wait", func() bool {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		return len(x.s.st.Tools) == 1 && len(x.s.queue) == 1
	})
	x.refuses()
	if err := <-result; !errors.Is(err, ErrFull) {
		t.Errorf("the step got %v, want %v", err, ErrFull)
	}
	<-x.s.writing
	if out, err := step(func() {}); err != nil || out != 7 || runs != 1 {
		t.Errorf("again: %d, %v, run %d times", out, err, runs)
	}
}

// TestEndInAFullBuffer: the buffer of the process is full when a handler returns. The end of its turn has room.
func TestEndInAFullBuffer(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	x.h.buffer.force(x.h.cfg.BufferFactsMax, 0)
	if err := x.workLoopOf(func(context.Context, *Turn) error { return nil }).run(x.ctx, turn); err != nil {
		t.Error(err)
	}
	if l := x.s.State().LastTurn; l == nil || l.Outcome != session.OutcomeCompleted {
		t.Errorf("the turn ended as %+v", l)
	}
}

// TestFailuresThatCannotBeStored: a handler returns a failure without a kind, or one that is too long for an event. The
// turn ends all the same. A failure that the program appends without a kind gets one, too.
func TestFailuresThatCannotBeStored(t *testing.T) {
	huge := strings.Repeat("x", events.DataBytesMax+1)
	failed := func(kind, text string) error { return &FailureError{Failure: events.Failure{Kind: kind, Text: text}} }
	for name, c := range map[string]struct {
		cause, err error
		kind       string
	}{
		"no kind":      {nil, failed("", "x"), failure.Unknown},
		"a long text":  {nil, failed(failure.RateLimit, huge), failure.RateLimit},
		"a long kind":  {nil, failed(huge, "x"), failure.Unknown},
		"a lost lease": {ErrLeaseLost, errors.New(huge), failureLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			x := newInside(t)
			turn := x.turn(StartOptions{ID: "t1"})
			if err := x.workLoopOf(nil).endTurn(x.ctx, turn, c.cause, c.err, false); err != nil {
				t.Fatal(err)
			}
			if l := x.s.State().LastTurn; l == nil || l.Error == nil || l.Error.Kind != c.kind {
				t.Errorf("the turn ended as %+v", l)
			}
		})
	}
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	call, err := turn.Tool(x.ctx, ToolOptions{Name: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	x.appendUnnudged(events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
	bare := events.Failure{Text: "x"}
	if err := errors.Join(call.Fail(x.ctx, bare), turn.Fail(x.ctx, bare, false),
		x.s.Relay(x.ctx, events.CompactionStarted{Compaction: "k1"},
			events.CompactionFailed{Compaction: "k1", Error: bare})); err != nil {
		t.Fatal(err)
	}
	commits, err := x.peer.Log.Read(x.ctx, x.s.ref, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, c := range commits {
		for _, e := range c.Events {
			var f events.Failure
			switch fact := e.Fact.(type) {
			case events.ToolFailed:
				f = fact.Error
			case events.TurnFailed:
				f = fact.Error
			case events.CompactionFailed:
				f = fact.Error
			default:
				continue
			}
			if kinds++; f.Kind != failure.Unknown || f.Text != "x" {
				t.Errorf("%s: %+v", e.Kind, f)
			}
		}
	}
	if kinds != 3 {
		t.Errorf("%d failures are stored, want 3", kinds)
	}
}

// leftByWork has a turn whose start waits in the queue, and whose Work has ended.
func (x *inside) leftByWork() {
	x.t.Helper()
	x.appendUnnudged(events.WriterLedger, events.MessageAccepted{Message: "m1", Content: []byte(`"x"`)},
		events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	if err := errors.Join(x.s.catchUp(x.ctx), x.h.Ready(x.ctx)); err != nil {
		x.t.Fatal(err)
	}
	x.s.writing <- struct{}{}
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- x.h.Work(ctx, Worker{Turn: func(context.Context, *Turn) error {
			x.t.Error("a handler runs")
			return nil
		}})
	}()
	natstest.Until(x.t, "the start to wait", func() bool { return Waiting(x.s) == 1 })
	x.s.mu.Lock()
	x.s.unacked = &unacked{writes: x.s.queue}
	x.s.mu.Unlock()
	cancel()
	// its release waits behind the start
	if x.s.isWorks() {
		natstest.Until(x.t, "the release to wait", func() bool { return Waiting(x.s) == 3 })
	} else if err := <-ended; err != nil {
		x.t.Error(err)
	}
	// it lost a race, and is sent again
	x.s.unsend()
}

// TestTurnThatNoHandlerRanFails: Work has taken a turn, has ended before it knew, and no handler has run the turn. When
// the session is released the turn fails as interrupted, and is tried again, also under resume hold. A turn that the
// program has, or whose start is not stored, does not fail, and a turn with a stop of a person is left to recovery.
func TestTurnThatNoHandlerRanFails(t *testing.T) {
	for name, c := range map[string]struct {
		pool, opened, started, ran, stopped, claimed bool
	}{
		"released by the program": {},
		"released by Work":        {pool: true},
		"claimed meanwhile":       {pool: true, claimed: true},
		"the program has it":      {opened: true},
		"the program starts it":   {started: true},
		"a handler was cut off":   {ran: true},
		"a person has stopped it": {stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*Config)
			if c.pool {
				change = append(change, inPool)
			}
			x := newInside(t, change...)
			if c.pool {
				x.s.takenByWork()
			}
			x.leftByWork()
			if c.claimed {
				x.s.mu.Lock()
				// as by Claim
				x.s.works = false
				x.s.mu.Unlock()
			}
			<-x.s.writing
			stored := func(st *session.State) bool { return st.Turn != nil || st.LastTurn != nil }
			natstest.Until(t, "the start to be stored", func() bool { return stored(x.s.State()) })
			if c.opened && x.s.OpenTurn() == nil {
				t.Fatal("the program does not have the turn")
			}
			if c.started {
				x.turn(StartOptions{ID: "t1"})
			}
			if c.ran {
				ctx, cancel := context.WithCancel(x.ctx)
				k := x.workLoopOf(func(context.Context, *Turn) error {
					cancel()
					return errNothing
				})
				if _, err := k.serveOnce(ctx, "s"); !errors.Is(err, errNothing) {
					t.Fatalf("the handler has not run: %v", err)
				}
			}
			if c.stopped {
				x.appendUnnudged(events.WriterLedger,
					events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
			}
			if c.claimed {
				natstest.Until(t, "nothing to wait", func() bool { return Waiting(x.s) == 0 })
				if st := x.s.State(); x.s.isApart() || !st.Runs("t1") {
					t.Errorf("owned %t, turn %+v", st.Owned, st.Turn)
				}
				return
			}
			if !c.pool {
				if err := x.s.Release(x.ctx, "done"); err != nil {
					t.Fatal(err)
				}
			}
			natstest.Until(t, "the release", x.s.isApart)
			st := x.s.State()
			if c.opened || c.started || c.ran || c.stopped {
				if st.Turn == nil || st.Turn.ID != "t1" {
					t.Errorf("the turn ended as %+v", st.LastTurn)
				}
				return
			}
			if l := st.LastTurn; st.Turn != nil || l == nil || l.ID != "t1" || l.Error == nil ||
				l.Error.Kind != failure.Interrupted || st.Ignored.Count != 0 {
				t.Errorf("open %+v, ended %+v", st.Turn, l)
			}
		})
	}
}

// TestNoTurnBeginsBeforeARelease: the Work of a pool's member has ended, and the release of its session waits, or was
// refused and is tried again. The next Work does not run the turn in it, which would be cut off: another member may
// have it next. When the program claims the session, the release is void, and Work runs the turn.
func TestNoTurnBeginsBeforeARelease(t *testing.T) {
	for name, refused := range map[string]bool{"it waits": false, "it was refused": true} {
		t.Run(name, func(t *testing.T) {
			x := newInside(t, inPool)
			x.turn(StartOptions{ID: "t1"})
			x.s.takenByWork()
			x.s.handOnTurn("t1")
			x.s.writing <- struct{}{}
			ctx, cancel := context.WithCancel(x.ctx)
			cancel()
			released := make(chan error, 1)
			go func() {
				defer close(released)
				_, err := x.workLoopOf(nil).releaseTaken(ctx, x.s)
				released <- err
			}()
			natstest.Until(t, "the release to wait", func() bool { return Waiting(x.s) == 1 })
			if refused {
				x.refuses()
				if err := <-released; !errors.Is(err, ErrFull) || Kept(x.s) != 1 {
					t.Fatalf("%v, %d kept", err, Kept(x.s))
				}
			}
			ran := 0
			next := x.workLoopOf(func(context.Context, *Turn) error { ran++; return nil })
			if more, err := next.serveOnce(x.ctx, "s"); more || err != nil || ran != 0 || x.s.forWork != "t1" {
				t.Fatalf("%d turns ran, more %t, %v, left %q", ran, more, err, x.s.forWork)
			}
			x.s.mu.Lock()
			// as by Claim
			x.s.works = false
			x.s.mu.Unlock()
			<-x.s.writing
			if more, err := next.serveOnce(x.ctx, "s"); !more || err != nil || ran != 1 || x.s.isApart() {
				t.Errorf("%d turns ran, more %t, %v, released %t", ran, more, err, x.s.isApart())
			}
			if err := <-released; !refused && err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClaimNotifiesWork: the program claims a session that Work was about to release. Work looks at it again.
func TestClaimNotifiesWork(t *testing.T) {
	x := newInside(t, inPool)
	x.s.takenByWork()
	x.h.mu.Lock()
	x.h.working = true
	x.h.mu.Unlock()
	if _, err := x.h.Claim(x.ctx, "s"); err != nil {
		t.Fatal(err)
	}
	works := x.s.isWorks()
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	if works || !x.h.dirty["s"] {
		t.Errorf("for Work to release: %t, to look at: %v", works, x.h.dirty)
	}
}

// TestTurnOfAnEarlierOwnershipIsLeft: the session was claimed again without its open turn, which is left to recovery,
// also if this process took it once.
func TestTurnOfAnEarlierOwnershipIsLeft(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	if err := x.s.Release(x.ctx, "done"); err != nil {
		t.Fatal(err)
	}
	s, err := x.h.Claim(x.ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	s.markUnmade(&workItem{turn: &session.WorkTurn{Turn: "t1"}})
	if err := s.Release(x.ctx, "done"); err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Turn == nil || st.Turn.ID != "t1" {
		t.Errorf("the turn ended as %+v", st.LastTurn)
	}
}
