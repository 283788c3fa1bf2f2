package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAnAlarmThatIsThereIsNotSetAgain: the broker's answer is lost, and the alarm is found as it was meant.
func TestAnAlarmThatIsThereIsNotSetAgain(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := newProxy(t, s)
	b := busAt(t, p.addr)
	_, js := outsider(t, s)
	last := func() uint64 {
		stream, err := js.Stream(within(t, patience), "HF_TIMERS")
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.LastSeq
	}
	p.hold(false, true)
	done := make(chan error, 1)
	go func() {
		done <- b.SetTimer(within(t, patience),
			bus.Timer{What: "x", Ref: session, Due: time.Now().Add(time.Hour), Seq: 1, Body: []byte("b")})
	}()
	natstest.Until(t, "the alarm to land", func() bool { return last() == 1 })
	p.cut()
	p.hold(false, false)
	if err := receive(t, done, "the writer to be told"); err != nil || last() != 1 {
		t.Errorf("%v, stored %d times", err, last())
	}
}

// TestAnAlarmThatSaysTooMuch: the place in a foreign alarm is larger than any number, so it counts as none.
func TestAnAlarmThatSaysTooMuch(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	foreign(t, js, b.Cell().TimerSubject("x", session), "", map[string][]string{"Hf-Seq": {"99999999999999999999"},
		"Nats-Schedule":        {"@at " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
		"Nats-Schedule-Target": {b.Cell().DueSubject("x", session)}})
	if err := b.SetTimer(within(t, patience),
		bus.Timer{What: "x", Ref: session, Due: time.Now().Add(time.Hour), Seq: 1}); err != nil {
		t.Error(err)
	}
}

// TestCancelOfNoTimer: a cancel without an alarm's name is refused and removes nothing.
func TestCancelOfNoTimer(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	for _, what := range []string{"", "*", "a.b"} {
		if err := b.CancelTimer(within(t, patience), what, session); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%q: %v, want ErrMalformed", what, err)
		}
	}
}
