package bustest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// LeaseKey is the key of a lease.
const LeaseKey = "harness.h.1"

// Acquire acquires a lease.
func Acquire(t testing.TB, b *bus.Bus, key string, ttl time.Duration) *lease.Lease {
	t.Helper()
	l, err := b.Leases.Acquire(Background(t), key, []byte("mine"), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Timers runs a consumer of fired timers and gives them on a channel, with when they came.
func Timers(t testing.TB, b *bus.Bus) <-chan fired {
	t.Helper()
	out := make(chan fired, 1000)
	go func() {
		_ = b.Consumers.Consume(Background(t),
			consumer.Source{Stream: consumer.Due, Durable: "retry", Filter: []string{b.Cell().DueFilter("retry")}},
			HandlerFunc(func(ms []bus.Message) {
				for _, m := range ms {
					out <- fired{m, time.Now()}
				}
			}))
	}()
	return out
}

type fired struct {
	bus.Message
	Got time.Time
}

// TimersGuarded sets alarms that were decided on less and on more of a session than the present one.
func TimersGuarded(t *testing.T, b *bus.Bus) {
	t.Helper()
	out := Timers(t, b)
	ref := events.Ref{Harness: "h", Session: "s"}
	set := func(seq uint64, after time.Duration) error {
		return b.Timers.Set(Background(t),
			timer.Timer{What: "retry", Ref: ref, Seq: seq, Due: time.Now().Add(after), Body: fmt.Append(nil, seq)})
	}
	for _, step := range []struct {
		seq   uint64
		after time.Duration
		lost  bool
	}{{6, time.Hour, false}, {5, 0, true}, {6, 2 * time.Hour, false}, {8, 3 * time.Second, false},
		{7, time.Hour, true}} {
		if err := set(step.seq, step.after); errors.Is(err, bus.ErrLostRace) != step.lost || err != nil && !step.lost {
			t.Fatalf("an alarm decided on %d: %v", step.seq, err)
		}
	}
	if f := Receive(t, out, "the alarm"); string(f.Body) != "8" {
		t.Errorf("that of %s went off", f.Body)
	}
	// there is no alarm in its way; its service finds nothing to do
	if err := set(7, 0); err != nil {
		t.Error(err)
	}
	if f := Receive(t, out, "the next alarm"); string(f.Body) != "7" {
		t.Errorf("that of %s went off", f.Body)
	}
}
