package main

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// notifier reads the questions of the feed as ann, with a durable consumer, and returns a function that returns the id
// of the next one. done acknowledges it.
func notifier(t *testing.T, url string) (next func() (session string, done func() error), stop func()) {
	t.Helper()
	nc, err := nats.Connect(url, nats.CustomInboxPrefix(events.Inbox("hf", events.ClassPerson, "ann")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := js.CreateOrUpdateConsumer(t.Context(), "HF_FEED", jetstream.ConsumerConfig{Durable: "notifier",
		FilterSubject: "hf.feed.prompt.requested", AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	all, err := feed.Messages()
	if err != nil {
		t.Fatal(err)
	}
	return func() (string, func() error) {
		t.Helper()
		m, err := all.Next(jetstream.NextMaxWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return m.Headers().Get("Hf-Session"), func() error { return m.DoubleAck(t.Context()) }
	}, nc.Close
}

// TestANotifierReadsTheFeed: a program that notifies the outside world reads the feed with the rights of a person. It
// gets a question again when it ended before it acknowledged the notification, and what was asked while it was down.
func TestANotifierReadsTheFeed(t *testing.T) {
	srv := secured(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h, err := harness.Connect(ctx, harness.Config{ID: "agent 1", URL: login(srv, "harness-agent 1"), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	// its questions are open
	defer func() { _ = h.Close(context.WithoutCancel(ctx)) }()
	ask := func(session string) {
		s, err := h.Open(ctx, session, harness.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "go"})
		if err != nil {
			t.Fatal(err)
		}
		// until the harness closes
		go func() {
			_, _ = turn.Ask(ctx, harness.Prompt{ID: "p", Questions: []events.Question{{ID: "q", Question: "Shall I?",
				Custom: true}}})
		}()
	}
	want := func(got, session string) {
		t.Helper()
		if got != session {
			t.Fatalf("notified of %q, want %q", got, session)
		}
	}
	ann := login(srv, "ann")
	next, stop := notifier(t, ann)
	ask("first")
	got, _ := next()
	want(got, "first")
	// without an acknowledgement
	stop()
	ask("second")
	runAs(t, ann, exitDone, "show", "second", "--wait", "prompts=1")
	next, stop = notifier(t, ann)
	for asked := map[string]bool{"first": true, "second": true}; len(asked) > 0; {
		session, done := next()
		if err := done(); err != nil {
			t.Fatal(err)
		}
		if !asked[session] {
			t.Fatalf("notified of %q", session)
		}
		delete(asked, session)
	}
	stop()
	next, _ = notifier(t, ann)
	ask("third")
	got, _ = next()
	// the others are done
	want(got, "third")
}
