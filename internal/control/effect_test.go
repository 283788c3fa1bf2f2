package control

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// caller is a decision with an effect for tests: while a turn is open, it calls the outside world, and the outcome is
// that the turn is interrupted.
type caller struct {
	calls atomic.Int32
	call  func(ctx context.Context, n int32) error // the effect; nil: it succeeds
}

func (c *caller) decide(_ context.Context, s *session.State, _ events.Clock, _ session.Source) (Decision, error) {
	if s.Turn == nil {
		return Decision{}, nil
	}
	turn := s.Turn.ID
	return Decision{Effect: func(ctx context.Context) ([]events.Fact, error) {
		n := c.calls.Add(1)
		if c.call != nil {
			if err := c.call(ctx, n); err != nil {
				return nil, err
			}
		}
		return []events.Fact{events.TurnInterrupted{Turn: turn, Reason: "called"}}, nil
	}}, nil
}

// called fails the test if the turn of a session has not ended with the outcome, or if there were other calls than n.
func (c *caller) called(w *world, name string, n int32) {
	w.t.Helper()
	s := w.state(name)
	if s.Turn != nil || s.LastTurn == nil || s.LastTurn.Reason != "called" || s.Ignored.Count != 0 {
		w.t.Errorf("the session after its effect: turn %+v, last %+v, %+v ignored", s.Turn, s.LastTurn, s.Ignored)
	}
	if got := c.calls.Load(); got != n {
		w.t.Errorf("%d effects, want %d", got, n)
	}
}

// idle returns a loop that does not run.
func (w *world) idle(decide Decide) *Loop {
	w.t.Helper()
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: decide})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// TestEffect: an effect runs when the document arrives, and its outcome is a fact behind those of the decision.
func TestEffect(t *testing.T) {
	w, c := newWorld(t), &caller{}
	appended := make(chan []events.Fact, 1)
	w.run(Config{Decided: func(_ context.Context, _ *session.State, facts []events.Fact) { appended <- facts },
		Decide: func(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error) {
			d, err := c.decide(ctx, s, now, src)
			if s.Turn != nil {
				d.Facts = []events.Fact{events.TurnStopRequested{Turn: "t1", Actor: "stall", Reason: "first"}}
			}
			return d, err
		}})
	w.store(w.open("s"))
	facts := <-appended
	if len(facts) != 2 || facts[0].Kind() != (events.TurnStopRequested{}).Kind() {
		t.Errorf("appended %+v", facts)
	}
	c.called(w, "s", 1)
}

// TestEffectOnTheNewestState: an effect that the log has made pointless does not run, although the document calls for
// it.
func TestEffectOnTheNewestState(t *testing.T) {
	w, c := newWorld(t), &caller{}
	old := w.open("s")
	w.append(old, events.TurnCompleted{Turn: "t1"})
	after, facts, err := w.idle(c.decide).Settle(w.ctx, old)
	if err != nil || len(facts) != 0 || after.Turn != nil || c.calls.Load() != 0 {
		t.Errorf("%d effects; %+v, %v", c.calls.Load(), facts, err)
	}
}

// TestEffectRunsAgain: another process writes to the session while an effect runs. The effect runs again on the newest
// state, and its outcome is in the log once.
func TestEffectRunsAgain(t *testing.T) {
	w, c := newWorld(t), &caller{}
	s := w.open("s")
	c.call = func(_ context.Context, n int32) error {
		if n == 1 {
			w.append(s, events.ToolStarted{Call: "c", Turn: "t1", Name: "bash"})
		}
		return nil
	}
	after, _, err := w.idle(c.decide).Settle(w.ctx, s)
	if err != nil || after.Seq != w.state("s").Seq {
		t.Errorf("%+v, %v", after, err)
	}
	c.called(w, "s", 2)
}

// TestEffectOfAProcessThatEnds: the process loses its broker between the effect and the append. The next process runs
// the effect again.
func TestEffectOfAProcessThatEnds(t *testing.T) {
	w, c := newWorld(t), &caller{}
	s := w.open("s")
	other := natstest.Bus(t, w.server)
	dying, err := New(other, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: c.decide})
	if err != nil {
		t.Fatal(err)
	}
	c.call = func(_ context.Context, n int32) error {
		if n == 1 {
			other.Abort()
		}
		return nil
	}
	if _, _, err := dying.Settle(w.ctx, s); err == nil {
		t.Error("a process without a connection has appended")
	}
	if s := w.state("s"); s.Turn == nil {
		t.Fatal("the outcome is in the log")
	}
	if _, _, err := w.idle(c.decide).Settle(w.ctx, s); err != nil {
		t.Error(err)
	}
	c.called(w, "s", 2)
}

// TestOneEffectAtATime: a document, an alarm and a walk check a session while its effect runs. It does not run twice,
// and a commit that comes meanwhile is decided on.
func TestOneEffectAtATime(t *testing.T) {
	w, c := newWorld(t), &caller{}
	s := w.open("s")
	w.store(s)
	began, end := make(chan bool), make(chan bool)
	c.call = func(_ context.Context, n int32) error {
		if n == 1 {
			began <- true
			<-end
		}
		return nil
	}
	l, first := w.idle(c.decide), make(chan error, 1)
	go func() {
		_, _, err := l.Settle(w.ctx, s)
		first <- err
	}()
	<-began
	l.Check(w.ctx, s.Ref())
	if err := l.Walk(w.ctx); err != nil {
		t.Fatal(err)
	}
	newer := w.append(s, events.ToolStarted{Call: "c", Turn: "t1", Name: "bash"})
	w.store(newer)
	l.Check(w.ctx, s.Ref())
	if n := c.calls.Load(); n != 1 {
		t.Errorf("%d effects while one runs", n)
	}
	close(end)
	if err := <-first; err != nil {
		t.Error(err)
	}
	// again: there was a commit
	c.called(w, "s", 2)
	next := w.append(w.state("s"), events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	if _, _, err := l.Settle(w.ctx, next); err != nil {
		t.Error(err)
	}
	c.called(w, "s", 3)
}

// TestEffectAtItsInstant: an effect that is due later does not run ahead of its instant, although decisions without
// effects are made ahead.
func TestEffectAtItsInstant(t *testing.T) {
	w := newWorld(t)
	now, err := w.b.Clock.Now(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	due := now.Add(700 * time.Millisecond)
	c, at := &caller{}, make(chan time.Time, 1)
	c.call = func(ctx context.Context, _ int32) error {
		now, err := w.b.Clock.Now(ctx)
		at <- now
		return err
	}
	w.run(Config{Decide: func(ctx context.Context, s *session.State, now events.Clock,
		src session.Source) (Decision, error) {
		if s.Turn != nil && now.Now.Before(due) {
			return Decision{CheckAt: due, Ahead: true}, nil
		}
		d, err := c.decide(ctx, s, now, src)
		if s.Turn != nil {
			d.Facts = []events.Fact{events.TurnStopRequested{Turn: "t1", Actor: "stall"}}
		}
		return d, err
	}})
	s := w.open("s")
	w.store(s)
	natstest.UntilSession(t, w.b, ref("s"), "facts", func(after *session.State) bool { return after.Seq > s.Seq })
	c.called(w, "s", 1)
	select {
	case ran := <-at:
		if ran.Before(due) {
			t.Errorf("the effect ran %s before its instant", due.Sub(ran))
		}
	default:
		t.Error("the effect did not run")
	}
}

// TestEffectThatFails: an effect that returns an error is tried three times, and again in the next walk.
func TestEffectThatFails(t *testing.T) {
	w, c := newWorld(t), &caller{}
	c.call = func(_ context.Context, n int32) error {
		if n <= attemptsMax {
			return errors.New("no route to host")
		}
		return nil
	}
	s := w.open("s")
	w.store(s)
	l := w.idle(c.decide)
	l.Check(w.ctx, s.Ref())
	if all := l.Suspects(); len(all) != 1 || all[0].Reason != "no route to host" || c.calls.Load() != attemptsMax {
		t.Errorf("%d effects, suspects %+v", c.calls.Load(), all)
	}
	if err := l.Walk(w.ctx); err != nil {
		t.Fatal(err)
	}
	c.called(w, "s", attemptsMax+1)
	if all := l.Suspects(); len(all) != 0 {
		t.Errorf("suspects %+v", all)
	}
}

// TestEffectThatFailsInPart: the facts beside an error are stored, behind those of the decision, and the error counts
// as a failed attempt. Without facts beside the error nothing is stored.
func TestEffectThatFailsInPart(t *testing.T) {
	failure := errors.New("no route to host")
	for name, c := range map[string]struct {
		outcome []events.Fact
		want    []events.Kind
	}{
		"a": {[]events.Fact{events.TurnInterrupted{Turn: "t1", Reason: "called"}},
			[]events.Kind{"turn.stop_requested", "turn.interrupted"}},
		"b": {nil, nil},
	} {
		w := newWorld(t)
		decide := func(context.Context, *session.State, events.Clock, session.Source) (Decision, error) {
			return Decision{Facts: []events.Fact{events.TurnStopRequested{Turn: "t1", Actor: "stall"}},
				Effect: func(context.Context) ([]events.Fact, error) { return c.outcome, failure }}, nil
		}
		_, facts, err := w.idle(decide).Settle(w.ctx, w.open(name))
		if !errors.Is(err, failure) {
			t.Errorf("%s: %v", name, err)
		}
		var kinds []events.Kind
		for _, f := range facts {
			kinds = append(kinds, f.Kind())
		}
		if after := w.state(name); !slices.Equal(kinds, c.want) || (after.Turn == nil) != (c.outcome != nil) {
			t.Errorf("%s: appended %v, want %v; turn %+v", name, kinds, c.want, after.Turn)
		}
	}
}

// TestEffectHasALimitOfTime: the context of an effect has a deadline.
func TestEffectHasALimitOfTime(t *testing.T) {
	w, c := newWorld(t), &caller{}
	c.call = func(ctx context.Context, _ int32) error {
		if by, ok := ctx.Deadline(); !ok || time.Until(by) > effectMax {
			t.Errorf("until %v, %v", by, ok)
		}
		return nil
	}
	if _, _, err := w.idle(c.decide).Settle(w.ctx, w.open("s")); err != nil {
		t.Error(err)
	}
	c.called(w, "s", 1)
}

// TestEffectsOfMany: effects of sessions that are decided together.
func TestEffectsOfMany(t *testing.T) {
	w, c := newWorld(t), &caller{}
	all := []*session.State{w.open("a"), w.open("b")}
	w.idle(c.decide).SettleMany(w.ctx, all, c.decide, func(x Settled) {
		if x.Err != nil || len(x.Facts) != 1 || x.After.Turn != nil {
			t.Errorf("%+v", x)
		}
	})
	c.called(w, "a", 2)
	c.called(w, "b", 2)
}
