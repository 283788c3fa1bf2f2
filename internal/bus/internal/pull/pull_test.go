package pull_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestErrorsDoNotNameTheConsumer: the name of a consumer can be a secret. The error of a flow that could not start does
// not name it.
func TestErrorsDoNotNameTheConsumer(t *testing.T) {
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: natstest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	c.NC.Close()
	f := pull.Start(c, pull.Source{Stream: "HF_LOG", Consumer: "ledger-1"}, 1, 0, pull.Request{})
	defer f.Close()
	_, err = f.Take(bustest.Within(t, bustest.Patience), 1)
	if err == nil || !strings.Contains(err.Error(), "pull from HF_LOG: ") || strings.Contains(err.Error(), "ledger") {
		t.Error(err)
	}
}

// TestNoDeliveryBeginsToAFlow: the broker begins no delivery of a push consumer to a flow, by the subject of
// its subscription or of its pulls, and the flow delivers what it pulls.
func TestNoDeliveryBeginsToAFlow(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Background(t)
	seq := bustest.MustAppend(t, b, bustest.Session, 0, "e1")
	reader, err := core.Open(ctx, core.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.NC.Close)
	stream := reader.Cell.LogStream()
	name, _, err := pull.CreateReader(ctx, reader, stream, "hf.log.>", 1)
	if err != nil {
		t.Fatal(err)
	}
	f := pull.Start(reader, pull.Source{Stream: stream, Consumer: name}, 8, 1, pull.Request{})
	defer f.Close()
	subscribed, reply := f.Subjects()
	nc, js := bustest.Outsider(t, s)
	received := make(chan *nats.Msg, 1)
	if _, err := nc.ChanSubscribe("received", received); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	consumers := map[string]jetstream.PushConsumer{}
	for i, to := range []string{reply, strings.TrimSuffix(subscribed, ".*"), "received"} {
		consumers[to], err = js.CreatePushConsumer(ctx, stream, jetstream.ConsumerConfig{Name: fmt.Sprint("push", i),
			DeliverSubject: to, AckPolicy: jetstream.AckNonePolicy})
		if err != nil {
			t.Fatal(err)
		}
	}
	bustest.Receive(t, received, "the delivery to a subscription without a wildcard")
	for to, c := range consumers {
		info, err := c.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if active := info.PushBound || info.Delivered.Consumer > 0; active != (to == "received") {
			t.Errorf("the delivery to %s: active is %v", to, active)
		}
	}
	ds, err := f.Take(ctx, 8)
	if err != nil || len(ds) != 1 || ds[0].Seq != seq {
		t.Errorf("taken: %+v, %v", ds, err)
	}
}

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
