package timer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAnAlarmThatIsThereIsNotSetAgain: the broker's answer is lost, and the alarm is found as it was meant.
func TestAnAlarmThatIsThereIsNotSetAgain(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	_, js := bustest.Outsider(t, s)
	last := func() uint64 {
		stream, err := js.Stream(bustest.Within(t, bustest.Patience), "HF_TIMERS")
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.LastSeq
	}
	p.Hold(false, true)
	done := make(chan error, 1)
	go func() {
		done <- b.Timers.Set(bustest.Within(t, bustest.Patience),
			timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now().Add(time.Hour), Seq: 1, Body: []byte("b")})
	}()
	natstest.Until(t, "the alarm to land", func() bool { return last() == 1 })
	p.Cut()
	p.Hold(false, false)
	if err := bustest.Receive(t, done, "the result of the write"); err != nil || last() != 1 {
		t.Errorf("%v, stored %d times", err, last())
	}
}

// TestAnAlarmThatIsLostOnTheWayIsSetAgain: the alarm never arrives at the broker. It is not found there, and is sent
// again.
func TestAnAlarmThatIsLostOnTheWayIsSetAgain(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	lost := p.Lose(true, `HPUB hf\.(timer)`, 1, "other")
	done := make(chan error, 1)
	go func() {
		done <- b.Timers.Set(bustest.Within(t, bustest.Patience),
			timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now().Add(time.Hour), Seq: 1})
	}()
	bustest.Receive(t, lost, "the alarm")
	p.Cut()
	if err := bustest.Receive(t, done, "the result of the write"); err != nil {
		t.Error(err)
	}
}

// TestATimerWithAnInvalidPlace: the place in a foreign alarm is larger than any number, so it counts as none.
func TestATimerWithAnInvalidPlace(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Foreign(t, js, b.Cell().TimerSubject("x", bustest.Session), "",
		map[string][]string{"Hf-Seq": {"99999999999999999999"},
			"Nats-Schedule":        {"@at " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
			"Nats-Schedule-Target": {b.Cell().DueSubject("x", bustest.Session)}})
	if err := b.Timers.Set(bustest.Within(t, bustest.Patience),
		timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now().Add(time.Hour), Seq: 1}); err != nil {
		t.Error(err)
	}
}

// TestCancelOfNoTimer: a cancel without an alarm's name is refused and removes nothing.
func TestCancelOfNoTimer(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	for _, what := range []string{"", "*", "a.b"} {
		if err := b.Timers.Cancel(bustest.Within(t, bustest.Patience), what, bustest.Session); !errors.Is(err,
			events.ErrMalformed) {
			t.Errorf("%q: %v, want ErrMalformed", what, err)
		}
	}
}
