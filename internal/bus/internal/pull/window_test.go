package pull_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// fed is a flow that the test gives its deliveries.
type fed struct {
	*pull.Flow
	t *testing.T
	n uint64
}

func newFed(t *testing.T, window int) *fed {
	t.Helper()
	s := natstest.Start(t)
	natstest.Bus(t, s)
	c, err := core.Open(bustest.Background(t), core.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	stream := c.Cell.LogStream()
	name, _, err := pull.CreateReader(bustest.Background(t), c, stream, "hf.log.>", 1)
	if err != nil {
		t.Fatal(err)
	}
	f := pull.Start(c, pull.Source{Stream: stream, Consumer: name}, window, 1, pull.Request{})
	t.Cleanup(f.Close)
	return &fed{Flow: f, t: t}
}

// deliver gives the flow n messages of this size.
func (f *fed) deliver(n int, body []byte) {
	for range n {
		f.n++
		f.Receive(&nats.Msg{Subject: "hf.log.h.s.harness", Data: body, Sub: &nats.Subscription{},
			Reply: fmt.Sprintf("$JS.ACK.HF_LOG.c.1.%d.%d.%d.0", f.n, f.n, time.Now().UnixNano())})
	}
}

// take takes all that was delivered.
func (f *fed) take(want int) {
	f.t.Helper()
	ds, err := f.Take(bustest.Within(f.t, bustest.Patience), want+1)
	if err != nil || len(ds) != want {
		f.t.Fatalf("%d of %d taken: %v", len(ds), want, err)
	}
}

// TestInFlightGrows: while the owner of a flow waits for messages, more are in flight, up to its window; while it does
// not take them, they do not become more.
func TestInFlightGrows(t *testing.T) {
	const window = 1_024
	f := newFed(t, window)
	if n := f.Asked(); n != pull.AskedMin {
		t.Errorf("it begins with %d in flight", n)
	}
	for range pull.AskedMin - 1 {
		f.deliver(1, nil)
		f.take(1)
	}
	if n := f.Asked(); n > pull.AskedMin {
		t.Errorf("%d in flight after less than had been", n)
	}
	f.deliver(4*pull.AskedMin, nil)
	if n := f.Asked(); n > 2*pull.AskedMin {
		t.Errorf("%d in flight to an owner that does not take them", n)
	}
	f.take(4 * pull.AskedMin)
	for range 16 * window / pull.AskedMin {
		f.deliver(pull.AskedMin, nil)
		f.take(pull.AskedMin)
	}
	if n := f.Asked(); n < window/2 || n > window {
		t.Errorf("%d in flight to an owner that waits, want about the window, %d", n, window)
	}
	last := f.Asked()
	f.deliver(last, nil)
	f.take(last)
	if n := f.Asked(); n < window/2 {
		t.Errorf("%d in flight when all had come, want about the window, %d", n, window)
	}
}

// TestInFlightInBytes: after large messages fewer are in flight, and a flow to which far more bytes are delivered than
// it may hold ends: they were in flight when they were small.
func TestInFlightInBytes(t *testing.T) {
	const window, large = 4_096, 1 << 20
	f := newFed(t, window)
	for range 2 * window / pull.AskedMin {
		f.deliver(pull.AskedMin, nil)
		f.take(pull.AskedMin)
	}
	was, body := f.Asked(), make([]byte, large)
	for range was - pull.AskedMin/2 - 1 {
		f.deliver(1, body)
		f.take(1)
	}
	if n := f.Asked(); n > pull.AskedMin {
		t.Errorf("%d messages of a mebibyte in flight", n)
	}
	// as many as may be in flight are no reason to end
	f.deliver(pull.AskedMin, body)
	f.take(pull.AskedMin)
	if n := f.Asked(); n < pull.AskedMin/2 {
		t.Errorf("%d messages of a mebibyte in flight", n)
	}
	f.deliver(pull.HeldMax/large+1, body)
	if _, err := f.Take(bustest.Within(t, bustest.Patience), 1); !errors.Is(err, pull.ErrInterrupted) {
		t.Errorf("it holds more than %d bytes: %v", pull.HeldMax, err)
	}
}

// TestFarReader: a reader far from the broker does not wait for a round trip for each few messages.
func TestFarReader(t *testing.T) {
	const commits, roundTrip, tripsMax = 6_000, 100 * time.Millisecond, 30
	s := natstest.Start(t, natstest.Lazy())
	near, ctx := natstest.Bus(t, s), bustest.Within(t, bustest.Patience)
	under := make([]bus.Pending, commits)
	for i := range under {
		r := events.Ref{Harness: "h", Session: fmt.Sprint("s", i)}
		under[i] = near.Log.AppendAsync(ctx, r, events.WriterHarness, 0, []events.Event{bustest.Fact("x", r)})
	}
	for _, p := range under {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	far := bustest.BusAt(t, strings.TrimPrefix(natstest.Far(t, s, roundTrip/2), "nats://"))
	natstest.RetryStalled(t, roundTrip, func() error {
		n, began := 0, time.Now()
		if err := far.Log.Scan(ctx, 0, func(events.Commit) error { n++; return nil }); err != nil || n != commits {
			t.Fatalf("%d of %d read: %v", n, commits, err)
		}
		if trips := time.Since(began) / roundTrip; trips > tripsMax {
			return fmt.Errorf("%d commits took %d round trips, want at most %d", n, trips, tripsMax)
		}
		return nil
	})
}
