package control

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAlarmIsGuarded: an alarm carries the place that it was decided on. An alarm from an earlier place does not
// replace one from a later place, and that is not a failure.
func TestAlarmIsGuarded(t *testing.T) {
	w := newWorld(t)
	due := time.Now().Add(time.Hour)
	l, _ := w.run(Config{
		WalkBy: noWalk,
		Decide: func(context.Context, *session.State, events.Clock, session.Source) (Decision, error) {
			return Decision{CheckAt: due}, nil
		},
	})
	set := func(name string, seq uint64) error {
		return w.b.Timers.Set(w.ctx, timer.Timer{What: "reconciler", Ref: ref(name), Due: due.Add(time.Hour), Seq: seq})
	}
	s, later := w.open("s"), w.open("later")
	if err := set("later", later.Seq+2); err != nil {
		t.Fatal(err)
	}
	w.store(s)
	w.store(later)
	// nothing may be pending before the consumer has begun, too
	natstest.Until(t, "the alarm to be set", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.timers[s.Ref()].IsZero()
	})
	natstest.Until(
		t,
		"both to be done",
		func() bool {
			n, _, err := w.b.Consumers.Lag(w.ctx, Documents("reconciler"))
			return err == nil && n == 0
		},
	)
	if err := set("s", s.Seq-1); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("an alarm that was decided on less takes the place of this process's: %v", err)
	}
	if err := set("later", later.Seq+1); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("this process's alarm took the place of one that was decided on more: %v", err)
	}
	if x := l.Suspects(); len(x) > 0 {
		t.Errorf("suspects %+v", x)
	}
}

// TestNeverDue: a look that is due in the year 9999 is not made earlier. No alarm is set for it: the broker would fire
// it at once, for ever.
func TestNeverDue(t *testing.T) {
	w := newWorld(t)
	never := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	var checks atomic.Int64
	l, _ := w.run(Config{
		WalkBy: noWalk,
		Decide: func(_ context.Context, s *session.State, now events.Clock, _ session.Source) (Decision, error) {
			if s.Session == "never" {
				checks.Add(1)
				return Decision{CheckAt: never}, nil
			}
			if s.Turn == nil {
				return Decision{}, nil
			}
			if due := s.Turn.Since.Add(time.Second); now.Now.Before(due) {
				return Decision{CheckAt: due}, nil
			}
			return interrupt(w.ctx, s, now, nil)
		},
	})
	w.store(w.open("never"))
	natstest.Until(t, "the first look", func() bool { return checks.Load() > 0 })
	w.store(w.open("soon"))
	natstest.Until(t, "an alarm of another session to go off", func() bool { return w.state("soon").LastTurn != nil })
	if n := checks.Load(); n != 1 {
		t.Errorf("looked %d times at what is never due", n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.timers[ref("never")]; !at.IsZero() {
		t.Errorf("an alarm is set for %s", at)
	}
}
