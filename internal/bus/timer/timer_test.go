package timer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func setTimer(t testing.TB, b *bus.Bus, session string, due time.Time, body string) {
	t.Helper()
	if err := b.Timers.Set(bustest.Background(t),
		timer.Timer{What: "retry", Ref: events.Ref{Harness: "h", Session: session}, Due: due,
			Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
}

func TestTimersGoOffNeverEarlyAndHardlyLate(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const lateMax = 600 * time.Millisecond
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	out := bustest.Timers(t, b)
	now, pulse := time.Now(), natstest.Feel(t)
	due := map[string]time.Time{}
	for i, after := range []time.Duration{-time.Hour, 0, 1, 333 * time.Millisecond, 999_999_999,
		1001 * time.Millisecond, 1700 * time.Millisecond} {
		session := string(rune('a' + i))
		due[session] = now.Add(after)
		setTimer(t, b, session, due[session], session)
	}
	setTimer(t, b, "replaced", now.Add(time.Hour), "old")
	due["replaced"] = now.Add(1500 * time.Millisecond)
	setTimer(t, b, "replaced", due["replaced"], "replaced")
	setTimer(t, b, "cancelled", time.Now().Add(1900*time.Millisecond), "cancelled")
	if err := b.Timers.Cancel(bustest.Background(t), "retry",
		events.Ref{Harness: "h", Session: "cancelled"}); err != nil {
		t.Fatal(err)
	}
	set := time.Now()
	due["last"] = set.Add(2 * time.Second)
	setTimer(t, b, "last", due["last"], "last")
	for range due {
		f := bustest.Receive(t, out, "a timer")
		what, ref, err := b.Cell().ParseDue(f.Subject)
		if err != nil || what != "retry" || string(f.Body) != ref.Session {
			t.Fatalf("%s went off with %q, %v", f.Subject, f.Body, err)
		}
		at := due[ref.Session]
		if f.At.Before(at) {
			t.Errorf("%s went off %s early", ref.Session, at.Sub(f.At))
		}
		if at.Before(set) {
			// it was due before it was set
			at = set
		}
		if late := f.Got.Sub(at); late > lateMax+pulse.Lost() {
			t.Errorf("%s went off %s late", ref.Session, late)
		}
	}
	if err := b.Timers.Cancel(bustest.Background(t), "retry", events.Ref{Harness: "h", Session: "last"}); err != nil {
		t.Errorf("cancel of one that went off: %v", err)
	}
	setTimer(t, b, "last", now, "again")
	bustest.Receive(t, out, "a timer that is set again")
	_, js := bustest.Outsider(t, s)
	stream, err := js.Stream(bustest.Background(t), "HF_TIMERS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(bustest.Background(t), jetstream.WithSubjectFilter("hf.>"))
	if err != nil || len(info.State.Subjects) != len(due) || info.State.Subjects["hf.due.retry.h.last"] != 2 {
		t.Errorf("the broker keeps %v, %v; want what went off for each session", info.State.Subjects, err)
	}
}

// TestTimerIsGuarded: a late write that was decided on less of a session than another's does not move its alarm.
func TestTimerIsGuarded(t *testing.T) {
	// it mostly waits
	t.Parallel()
	bustest.TimersGuarded(t, natstest.Bus(t, natstest.Start(t)))
}

func TestTimerDueWhileTheBrokerIsDownGoesOffWhenItIsBack(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	due := time.Now().Add(300 * time.Millisecond)
	setTimer(t, b, "a", due, "a")
	s.Shutdown()
	natstest.Until(t, "it to be due", func() bool { return time.Now().After(due) })
	natstest.Restart(t, s)
	back, pulse := time.Now(), natstest.Feel(t)
	if f := bustest.Receive(t, bustest.Timers(t, b), "the timer"); f.Got.Sub(back) > 2*time.Second+pulse.Lost() {
		t.Errorf("it went off %s after the broker was back", f.Got.Sub(back))
	}
}

func TestTimerIsRefusedWhenItCouldNameAnothersSubject(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ref := events.Ref{Harness: "h", Session: "s"}
	for name, timer := range map[string]timer.Timer{
		"no session":     {What: "retry", Ref: events.Ref{Harness: "h"}, Due: time.Now()},
		"two tokens":     {What: "retry.x", Ref: ref, Due: time.Now()},
		"a wildcard":     {What: "*", Ref: ref, Due: time.Now()},
		"no instant":     {What: "retry", Ref: ref},
		"no what at all": {Ref: ref, Due: time.Now()},
	} {
		if err := b.Timers.Set(bustest.Background(t), timer); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	if err := b.Timers.Cancel(bustest.Background(t), ">", ref); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("cancel of everything: %v, want ErrMalformed", err)
	}
}
