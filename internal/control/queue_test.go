package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// ahead is a decision for tests: it interrupts an open turn a fixed time after its start, and sets [Decision.Ahead].
type ahead struct {
	after   atomic.Int64 // nanoseconds
	decided atomic.Int64
}

func newAhead(after time.Duration) *ahead {
	a := &ahead{}
	a.after.Store(int64(after))
	return a
}

func (a *ahead) decide(_ context.Context, s *session.State, now events.Clock, _ session.Source) (Decision, error) {
	a.decided.Add(1)
	if s.Turn == nil {
		return Decision{}, nil
	}
	if due := s.Turn.Since.Add(time.Duration(a.after.Load())); now.Now.Before(due) {
		return Decision{CheckAt: due, Ahead: true}, nil
	}
	return Decision{Facts: []events.Fact{events.TurnInterrupted{Turn: s.Turn.ID, Reason: "test"}}, Rest: true}, nil
}

// someTime is long enough for a test's preparations. Then the test makes the wake due with comesDue.
const someTime = localHorizon - time.Second

// comesDue makes the wake of a session due now.
func (w *world) comesDue(l *Loop, r events.Ref) {
	w.t.Helper()
	now, err := w.b.Clock.Now(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	l.queue.mu.Lock()
	waits, _, _ := l.queue.checks.Get(r)
	l.queue.mu.Unlock()
	if waits == nil || waits.ready == nil {
		w.t.Fatalf("nothing waits for %s", r)
	}
	l.queue.set(&check{ref: r, at: now, seq: waits.seq, ready: waits.ready})
}

// TestAhead: a decision made ahead is in the log at its instant, before the broker's alarm. Neither the alarm nor the
// document that shows it causes another look.
func TestAhead(t *testing.T) {
	natstest.RetryStalled(t, deliveredAgain, func() error {
		w := newWorld(t)
		a := newAhead(1500 * time.Millisecond)
		l, _ := w.run(Config{Decide: a.decide, WalkBy: noWalk})
		s := w.open("s")
		w.store(s)
		natstest.Until(t, "the end of the turn", func() bool { return w.state("s").Turn == nil })
		after := w.state("s")
		natstest.Until(t, "the loop to know", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.own) == 1
		})
		decided := a.decided.Load()
		w.store(after)
		natstest.Until(t, "the alarm and the document to have been heard of", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.queue.mu.Lock()
			defer l.queue.mu.Unlock()
			return len(l.own) == 0 && len(l.queue.fired) == 0
		})
		natstest.Until(t, "them to be done", func() bool {
			alarms, _, err := w.b.Consumers.Lag(w.ctx, Alarms(w.b, "reconciler"))
			docs, _, err2 := w.b.Consumers.Lag(w.ctx, Documents("reconciler"))
			return err == nil && err2 == nil && alarms+docs == 0
		})
		if n := a.decided.Load(); n != decided || after.Commits != 2 || after.Ignored.Count > 0 {
			return fmt.Errorf("decided %d times more; %d commits", n-decided, after.Commits)
		}
		return nil
	})
}

// TestAheadRings: an alarm causes no look if its commit was sent here or is in the queue, in any order of alarm and
// instant. Nothing is kept of it. An alarm for any other commit causes a look.
func TestAheadRings(t *testing.T) {
	r, at := ref("s"), time.Unix(1_000, 0)
	waiting := func() *checkQueue {
		q := newCheckQueue()
		q.set(&check{ref: r, at: at, ready: &ready{}})
		return q
	}
	q := waiting()
	for range 2 {
		if !q.alarmHandled(r, alarmBody(at)) {
			t.Error("the alarm came first, and a look is made")
		}
	}
	if q.due(events.Clock{Now: at}); len(q.fired) > 0 {
		t.Error("remembered for an alarm that has come")
	}
	q = waiting()
	if !q.alarmHandled(r, alarmBody(at.Add(-time.Second))) {
		t.Error("an older alarm, and a look is made")
	}
	if q.due(events.Clock{Now: at}); !q.alarmHandled(r, alarmBody(at)) || len(q.fired) > 0 {
		t.Error("the instant came first, and a look is made")
	}
	if q.alarmHandled(r, alarmBody(at)) {
		t.Error("an alarm fires twice, and no look is made")
	}
	q = waiting()
	if q.due(events.Clock{Now: at}); q.alarmHandled(r, alarmBody(at.Add(time.Second))) {
		t.Error("an alarm for another instant, and no look is made")
	}
	q = waiting()
	if q.leave(at); q.alarmHandled(r, alarmBody(at)) {
		t.Error("left to another process, and no look is made")
	}
	q = newCheckQueue()
	q.set(&check{ref: r, at: at})
	if q.alarmHandled(r, alarmBody(at)) {
		t.Error("nothing is decided ahead, and no look is made")
	}
	if q.due(events.Clock{Now: at}); q.alarmHandled(r, alarmBody(at)) {
		t.Error("nothing was sent, and no look is made")
	}
}

// TestAheadIsRefused: a decision made ahead does not count if another process wrote first. The loop decides on the new
// state.
func TestAheadIsRefused(t *testing.T) {
	const later = 700 * time.Millisecond
	w := newWorld(t)
	a := newAhead(someTime)
	l, _ := w.run(Config{Decide: a.decide})
	s := w.open("s")
	w.store(s)
	natstest.Until(t, "it to be decided ahead", func() bool { return l.queue.ready(s.Ref()) })
	// and the document does not show it
	w.append(s, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	a.after.Store(int64(later))
	w.comesDue(l, s.Ref())
	natstest.Until(t, "the end of the second turn", func() bool { return w.state("s").Turn == nil })
	commits, err := w.b.Log.Read(w.ctx, s.Ref(), 0)
	if err != nil || len(commits) != 3 {
		t.Fatalf("%d commits, %v", len(commits), err)
	}
	after := w.state("s")
	if took := commits[2].At.Sub(commits[1].At); took < later || after.LastTurn.ID != "t2" || after.Ignored.Count > 0 {
		t.Errorf("ended after %s: %+v, ignored %+v", took, after.LastTurn, after.Ignored.Last)
	}
	if n := l.Counts()["lost_races"]; n == 0 {
		t.Error("nothing was refused")
	}
}

// TestStandby: a standby process leaves what is due to the active process, and does it when it takes over.
func TestStandby(t *testing.T) {
	natstest.RetryStalled(t, deliveredAgain, func() error {
		server := natstest.Start(t)
		w := &world{t: t, ctx: t.Context(), b: natstest.Bus(t, server)}
		one, stop := w.run(Config{Decide: newAhead(someTime).decide})
		w.store(w.open("a"))
		natstest.Until(t, "one to be active", func() bool { return one.active.Load() && one.queue.ready(ref("a")) })
		other := &world{t: t, ctx: w.ctx, b: natstest.Bus(t, server)}
		two, _ := other.run(Config{Decide: newAhead(someTime).decide, Walk: 100 * time.Millisecond})
		natstest.Until(t, "the other to have walked over it", func() bool { return two.queue.ready(ref("a")) })
		other.comesDue(two, ref("a"))
		w.comesDue(one, ref("a"))
		natstest.Until(t, "one of them to do "+
			"it", func() bool { return one.count.facts.Load()+two.count.facts.Load() > 0 })
		if two.count.facts.Load() > 0 {
			return errors.New("the one that stands by did it")
		}
		w.store(w.state("a"))
		w.store(w.open("b"))
		natstest.Until(t, "the other to know of it", func() bool { return two.queue.ready(ref("b")) })
		other.comesDue(two, ref("b"))
		stop()
		natstest.Until(t, "the end of the turn by the other", func() bool { return w.state("b").Turn == nil })
		natstest.Until(t, "the other to know", func() bool { return two.count.facts.Load() > 0 })
		if b := w.state("b"); b.Commits != 2 || b.Ignored.Count > 0 || two.count.facts.Load() != 1 {
			return fmt.Errorf(
				"%d commits, ignored %+v; the other said %d facts",
				b.Commits,
				b.Ignored.Last,
				two.count.facts.Load(),
			)
		}
		if n := two.count.lostRaces.Load(); n > 0 {
			return fmt.Errorf("the one that stands by tried %d times", n)
		}
		return nil
	})
}

// TestSentAheadIsDue: a commit sent at its instant has priority until it is acknowledged, and no longer.
func TestSentAheadIsDue(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: newAhead(0).decide})
	if err != nil {
		t.Fatal(err)
	}
	s := w.open("s")
	now, err := w.b.Clock.Now(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	late := &check{
		ref:   s.Ref(),
		at:    now.Add(-time.Minute),
		seq:   s.Seq,
		ready: &ready{epoch: s.Epoch, facts: []events.Fact{events.TurnInterrupted{Turn: "t1", Reason: "test"}}},
	}
	acks := make(chan sentAhead, 1)
	l.fire(w.ctx, late, now, acks, nil)
	if !w.b.Priority().Late() {
		t.Error("it is late, and other work does not pause")
	}
	close(acks)
	var checks sync.WaitGroup
	l.acknowledge(w.ctx, acks, &checks)
	if w.b.Priority().Late() || w.state("s").Turn != nil {
		t.Error("it is acknowledged, and others make room for it still, or it is not")
	}
	over, cancel := context.WithCancel(w.ctx)
	cancel()
	l.fire(over, late, now, nil, nil)
	left := make(chan sentAhead, 2)
	for range cap(left) {
		l.fire(w.ctx, late, now, left, nil)
	}
	close(left)
	l.acknowledge(over, left, &checks)
	checks.Wait()
	if w.b.Priority().Late() {
		t.Error("this process has ended, and others make room for what it sent")
	}
}

// TestWalkMakesRoom: a periodic walk pauses for what is due. A walk that a caller waits for does not.
func TestWalkMakesRoom(t *testing.T) {
	for _, hurry := range []bool{true, false} {
		w := newWorld(t)
		l, err := New(
			w.b,
			Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: newAhead(time.Hour).decide},
		)
		if err != nil {
			t.Fatal(err)
		}
		for i := range walkChunk {
			w.store(w.open(fmt.Sprint("s", i)))
		}
		done := w.b.Priority().Begin(time.Hour)
		l.hurry.Store(hurry)
		if err := l.Walk(w.ctx); err != nil || w.b.Priority().Waits() > 0 == hurry {
			t.Errorf("in a hurry: %v: made room %d times, %v", hurry, w.b.Priority().Waits(), err)
		}
		done()
	}
}
