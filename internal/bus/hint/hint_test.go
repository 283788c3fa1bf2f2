package hint_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Hints count only from who may give them: a consumer can deliver to their subjects, too.
func TestHintsThatAStreamDeliversDoNotCount(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	defer cancel()
	others := events.Ref{Harness: "o", Session: "s"}
	alive, nudged := make(chan events.Ref, 100), make(chan uint64, 100)
	err := errors.Join(b.Hints.OnProgress(ctx, func(r events.Ref) { alive <- r }),
		b.Hints.OnNudge(ctx, "o", func(_ string, seq uint64) {
			nudged <- seq
		}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "X", Subjects: []string{"x.>"},
		AllowDirect: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "x.y", []byte(`{"session":"s","seq":5}`)); err != nil {
		t.Fatal(err)
	}
	for i, to := range []string{b.Cell().ProgressSubject(others), b.Cell().NudgeSubject("o")} {
		c, err := js.CreateConsumer(ctx, "X",
			jetstream.ConsumerConfig{Name: []string{"a", "b"}[i], AckPolicy: jetstream.AckNonePolicy})
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.X."+c.CachedInfo().Name, to,
			[]byte(`{"batch":1}`)); err != nil {
			t.Fatal(err)
		}
		natstest.Until(t, "the consumer to deliver", func() bool {
			info, err := c.Info(ctx)
			return err == nil && info.Delivered.Stream > 0
		})
	}
	// A direct get delivers with the hint's own subject: its headers show that a stream sent it.
	for _, to := range []string{b.Cell().ProgressSubject(others), b.Cell().NudgeSubject("o")} {
		if err := nc.PublishRequest("$JS.API.DIRECT.GET.X", to, []byte(`{"seq":1}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Request("$JS.API.DIRECT.GET.X", []byte(`{"seq":1}`), bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	last := events.Ref{Harness: "o", Session: "last"}
	// a broker's report about a message has a body
	if err := nc.Publish(b.Cell().ProgressSubject(others), []byte(`{"events":[]}`)); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	b.Hints.Progress(others)
	b.Hints.Progress(last)
	b.Hints.Nudge(others, 9)
	if first, second := <-alive, <-alive; first != others || second != last {
		t.Errorf("alive: %v, then %v", first, second)
	}
	if seq := <-nudged; seq != 9 || len(nudged) > 0 {
		t.Errorf("nudged about %d and %d more", seq, len(nudged))
	}
}

// The broker begins no delivery to the nudges of a harness: a push consumer that names their subject as its delivery
// subject stays inactive. A message on another subject that the subscription matches is no nudge.
func TestNoDeliveryBeginsToAHarness(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	ctx := bustest.Background(t)
	nudged := make(chan uint64, 10)
	if err := b.Hints.OnNudge(ctx, "o", func(_ string, seq uint64) { nudged <- seq }); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "X", Subjects: []string{"x.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "x.y", []byte(`{"session":"s","seq":5}`)); err != nil {
		t.Fatal(err)
	}
	received := make(chan *nats.Msg, 1)
	if _, err := nc.ChanSubscribe("received", received); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	var consumers []jetstream.PushConsumer
	for _, to := range []string{b.Cell().NudgeSubject("o"), "received"} {
		c, err := js.CreatePushConsumer(ctx, "X",
			jetstream.ConsumerConfig{Name: fmt.Sprint("c", len(consumers)), DeliverSubject: to,
				AckPolicy: jetstream.AckNonePolicy})
		if err != nil {
			t.Fatal(err)
		}
		consumers = append(consumers, c)
	}
	bustest.Receive(t, received, "the delivery to a subscription without a wildcard")
	info, err := consumers[0].Info(ctx)
	if err != nil || info.PushBound || info.Delivered.Consumer > 0 {
		t.Errorf("the delivery to a harness is active: %+v, %v", info, err)
	}
	if err := nc.Publish("hf.other.o", []byte(`{"session":"s","seq":6}`)); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	b.Hints.Nudge(events.Ref{Harness: "o", Session: "s"}, 7)
	if seq := bustest.Receive(t, nudged, "the nudge"); seq != 7 {
		t.Errorf("nudged about %d", seq)
	}
}

// TestUnreadableHints: a nudge or a sign of life that cannot be read is left out, and later ones are delivered.
func TestUnreadableHints(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	received := make(chan string, 10)
	if err := b.Hints.OnNudge(bustest.Within(t, bustest.Patience), "h",
		func(id string, _ uint64) { received <- id }); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"no JSON", "{}", `{"session":"","seq":3}`} {
		if err := nc.Publish(b.Cell().NudgeSubject("h"), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b.Hints.Nudge(bustest.Session, 7)
	if got := bustest.Receive(t, received, "a nudge"); got != bustest.Session.Session {
		t.Errorf("heard %q first", got)
	}
}

// TestSubscribeWhileTheBrokerRestarts: a process that subscribes at the instant at which its broker is lost waits for
// the broker. A service that starts then must not end.
func TestSubscribeWhileTheBrokerRestarts(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Background(t)
	again, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	// some of them wait for the broker's reply whenever it goes away
	for range 4 {
		all.Go(func() {
			for again.Err() == nil {
				one, cancel := context.WithCancel(ctx)
				if err := b.Hints.OnProgress(one, func(events.Ref) {}); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	for range 3 {
		s = natstest.Restart(t, s)
	}
	stop()
	all.Wait()
}

func TestHintsArrive(t *testing.T) {
	_, a, b := bustest.Pair(t)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	nudged, alive := make(chan string, 10), make(chan events.Ref, 10)
	if err := a.Hints.OnNudge(ctx, "a harness", func(session string, seq uint64) {
		nudged <- fmt.Sprint(session, " ", seq)
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.Hints.OnProgress(ctx, func(r events.Ref) { alive <- r }); err != nil {
		t.Fatal(err)
	}
	ref := events.Ref{Harness: "a harness", Session: "s/1"}
	b.Hints.Nudge(events.Ref{Harness: "another", Session: "s"}, 1)
	b.Hints.Nudge(ref, 7)
	b.Hints.Progress(ref)
	if got := bustest.Receive(t, nudged, "a nudge"); got != "s/1 7" {
		t.Errorf("nudged %q", got)
	}
	if got := bustest.Receive(t, alive, "a sign of life"); got != ref {
		t.Errorf("alive: %v", got)
	}
	cancel()
	natstest.Until(t, "the subscriptions to end", func() bool {
		b.Hints.Nudge(ref, 8)
		b.Hints.Progress(ref)
		if err := b.Hints.OnNudge(bustest.Background(t), "flush", func(string, uint64) {}); err != nil {
			t.Fatal(err)
		}
		n := len(nudged) + len(alive)
		for len(nudged) > 0 {
			<-nudged
		}
		for len(alive) > 0 {
			<-alive
		}
		return n == 0
	})
}
