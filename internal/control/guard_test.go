package control

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// idleLoop returns a loop that does not run.
func (w *world) idleLoop() *Loop {
	w.t.Helper()
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interrupt})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// TestAWalkFollowsTheBrokersReturn: after the broker was away, a walk is requested for what was due long ago.
func TestAWalkFollowsTheBrokersReturn(t *testing.T) {
	server := natstest.Start(t)
	w := &world{t: t, ctx: t.Context(), b: natstest.Bus(t, server)}
	l := w.idleLoop()
	// only what does things at their instant runs
	l.active.Store(true)
	c, err := l.Now(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	now := c.Now
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- l.runQueue(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	server.Shutdown()
	natstest.Until(t, "the loss of the broker to be noticed", func() bool { return !w.b.Connected() })
	long := &check{ref: ref("s"), at: now.Add(-2 * standbyKept), ready: &ready{}}
	l.queue.set(long)
	natstest.Until(t, "it to look while the broker is away", func() bool { return len(l.queue.changed) == 0 })
	natstest.Restart(t, server)
	natstest.Until(t, "a walk to be asked for", func() bool { return len(l.walks) == 1 })
	if l.queue.ready(ref("s")) {
		t.Error("what came due long ago is done here, and not by the walk")
	}
}

// TestAnAlarmThatWentOffIsSetAgain: an alarm that has fired does not count as set. A look at the same instant sets it
// again.
func TestAnAlarmThatWentOffIsSetAgain(t *testing.T) {
	w := newWorld(t)
	l := w.idleLoop()
	r, due := ref("s"), time.Now().Add(time.Hour)
	set := func() error { return l.alarm(w.ctx, &check{ref: r, seq: 5}, due) }
	if err := set(); err != nil {
		t.Fatal(err)
	}
	// In the broker another one is in its place, which a second alarm of this process would be refused for.
	if err := w.b.Timers.Set(w.ctx, timer.Timer{What: "reconciler", Ref: r, Due: due, Seq: 9}); err != nil {
		t.Fatal(err)
	}
	if err := set(); err != nil || !l.timers[r].Equal(due) {
		t.Errorf("an alarm that is set is not set again: %v", err)
	}
	if l.alarmHandled(r, alarmBody(due)) {
		t.Error("nothing was decided ahead, and no look is made")
	}
	if err := set(); err != nil || !l.timers[r].IsZero() {
		t.Errorf("after it went off: %v, believed to be set for %s; want the broker asked, which refuses", err,
			l.timers[r])
	}
}

// TestSettlingNothing: a session that needs nothing is not written.
func TestSettlingNothing(t *testing.T) {
	w := newWorld(t)
	s := session.New(ref("s"))
	if after, facts, err := w.idleLoop().Settle(w.ctx, s); err != nil || len(facts) > 0 || after != s {
		t.Errorf("%v, %v", facts, err)
	}
}

// TestAStepOfTheClockStartsAWalk: after the broker's clock was set, the queue is empty and every session is decided
// again: the instants of its checks are those of another clock.
func TestAStepOfTheClockStartsAWalk(t *testing.T) {
	w := newWorld(t)
	l := w.idleLoop()
	l.active.Store(true)
	now, err := w.b.Clock.Now(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- l.runQueue(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	l.queue.set(&check{ref: ref("s"), at: now.Add(time.Hour), ready: &ready{}})
	natstest.Until(t, "the queue to run", func() bool { return len(l.queue.changed) == 0 })
	w.b.Clock.LearnSteps(events.Steps{{Seq: 1, ByMS: time.Hour.Milliseconds(), At: now}})
	natstest.Until(t, "a walk to be asked for", func() bool { return len(l.walks) == 1 })
	if l.queue.ready(ref("s")) {
		t.Error("a check has the instant of the clock before the step")
	}
}
