package pull_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestWindowInBytes: a consumer whose handler does not return gets a few pulls of bytes ahead, for any window of
// messages; when the handler continues, everything is delivered, in order.
func TestWindowInBytes(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer cancel()
	reader, err := core.Open(ctx, core.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.NC.Close)
	const commits, size = 300, 400 << 10
	var under []bus.Pending
	for i := range commits {
		e := bustest.Fact("x", bustest.Session)
		e.Kind, e.Fact, e.Data = "other.thing", nil, []byte(`"`+strings.Repeat("x", size/2)+`"`)
		f := e
		f.ID = "y"
		under = append(under, b.Log.AppendAsync(ctx, bustest.Session, events.WriterHarness, uint64(i),
			[]events.Event{e, f}))
	}
	for _, p := range under {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	h := &held{stop: cancel, want: commits, entered: make(chan struct{}, 1), release: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- consumer.New(reader).Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "slow"}, h)
	}()
	bustest.Receive(t, h.entered, "the first batch")
	came, still := reader.NC.Stats().InBytes, 0
	natstest.Until(t, "delivery to come to rest", func() bool {
		if _, err := reader.StreamInfo(ctx, reader.Cell.LogStream()); err != nil {
			t.Fatal(err)
		}
		if now := reader.NC.Stats().InBytes; now-came > size {
			came, still = now, 0
		}
		still++
		return still > 20
	})
	if came > pull.AheadBytesMax {
		t.Errorf("%d bytes came while the handler was at work", came)
	}
	close(h.release)
	if err := bustest.Receive(t, done, "the end"); err != nil {
		t.Fatal(err)
	}
	if h.n != commits {
		t.Errorf("%d of %d delivered", h.n, commits)
	}
}

// held is a handler whose first batch waits.
type held struct {
	stop             func()
	want, n          int
	entered, release chan struct{}
	last             uint64
}

func (h *held) Takeover(context.Context) error { return nil }

func (h *held) Batch(_ context.Context, ms []bus.Message) (int, error) {
	if h.n == 0 {
		h.entered <- struct{}{}
		<-h.release
	}
	for _, m := range ms {
		if m.Seq == h.last+1 {
			h.n, h.last = h.n+1, m.Seq
		}
	}
	if h.n >= h.want {
		h.stop()
	}
	return len(ms), nil
}
