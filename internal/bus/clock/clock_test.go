package clock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func TestNowIsTheBrokersAndNeverGoesBack(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	asked := time.Now()
	before, err := b.Clock.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seq := bustest.MustAppend(t, b, bustest.Session, 0, "a")
	c, err := b.Log.Commit(ctx, seq)
	if err != nil {
		t.Fatal(err)
	}
	between := time.Since(asked)
	s.Shutdown()
	last := before
	for range 100 {
		now, err := b.Clock.Now(ctx)
		if err != nil || now.Before(last) {
			t.Fatalf("now = %s, %v; before it was %s", now, err, last)
		}
		last = now
	}
	if skew := c.At.Sub(before); skew < -time.Second || skew > between+time.Second {
		t.Errorf("a commit appended right after %s is dated %s", before, c.At)
	}
	fresh, err := bus.Open(bustest.Within(t, bustest.Patience),
		bus.Config{Server: natstest.Start(t, natstest.Listen(""))})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, err := fresh.Clock.Now(ctx); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("now without a log: %v, want ErrNotFound", err)
	}
}

// TestTheClockFollowsAStep: a broker's clock that was set forward or back is followed, and what was stored meanwhile is
// put on its side of the step.
func TestTheClockFollowsAStep(t *testing.T) {
	for name, was := range map[string]time.Duration{"back": 2 * time.Hour, "forward": -2 * time.Hour,
		"back by little": 5 * time.Second, "forward by little": -5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			// the broker is asked once a second
			t.Parallel()
			b := natstest.Bus(t, natstest.Start(t))
			before := bustest.MustAppend(t, b, bustest.Session, 0, "before")
			if c, err := b.Clock.Read(bustest.Within(t, bustest.Patience)); err != nil || len(c.Steps) > 0 ||
				c.Epoch != 0 {
				t.Fatalf("at first: %+v, %v", c, err)
			}
			last := before
			for _, id := range []string{"a", "b", "c"} {
				last = bustest.MustAppend(t, b, bustest.Session, last, id)
			}
			b.Clock.Was(was)
			pulse := natstest.Feel(t)
			var c events.Clock
			natstest.Until(t, "the step to be noticed", func() bool {
				var err error
				c, err = b.Clock.Read(bustest.Within(t, bustest.Patience))
				return err == nil && len(c.Steps) > 0
			})
			if d := time.Until(c.Now).Abs(); d > time.Second+pulse.Lost() {
				t.Errorf("now is %s off", d)
			}
			if s := c.Steps[0]; len(c.Steps) != 1 || s.Seq != before || (s.By()+was).Abs() > 500*time.Millisecond ||
				c.Epoch != 1 || b.Clock.StepsNoticed() != 1 {
				t.Errorf("steps %+v, want one by %s after %d", c.Steps, -was, before)
			}
		})
	}
}

// TestALittleIsNoStep: a correction of less than a second is followed without a word, and Now does not go back for it.
func TestALittleIsNoStep(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := b.Clock.Read(ctx); err != nil {
		t.Fatal(err)
	}
	b.Clock.Was(700 * time.Millisecond)
	last, err := b.Clock.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the correction", func() bool {
		now, err := b.Clock.Now(ctx)
		if err != nil || now.Before(last) {
			t.Fatalf("%s after %s, %v", now, last, err)
		}
		last = now
		return time.Until(now) < 100*time.Millisecond
	})
	if n := b.Clock.StepsNoticed(); n != 0 {
		t.Errorf("%d steps", n)
	}
}

// TestStepsOfOthers: a step that another process has noticed is known once.
func TestStepsOfOthers(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	s := events.Steps{{Seq: 3, ByMS: 60_000, At: time.Now()}}
	b.Clock.LearnSteps(s)
	b.Clock.LearnSteps(s)
	if c, err := b.Clock.Read(bustest.Within(t, bustest.Patience)); err != nil || len(c.Steps) != 1 || c.Epoch != 1 ||
		b.Clock.StepsNoticed() != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
