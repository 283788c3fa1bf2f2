package rpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestARequestThatWaitedTooLongDoesNotRun: requests that wait for a place longer than their endpoint allows get 503,
// and are not handled. A later one is handled, and its time began when it arrived.
func TestARequestThatWaitedTooLongDoesNotRun(t *testing.T) {
	const atOnce, waiting, allowed = 16, 20, 100 * time.Millisecond
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	open, begun := make(chan struct{}), make(chan string, atOnce+waiting)
	hold := patient("send", func(_ context.Context, body []byte) ([]byte, error) {
		begun <- string(body)
		<-open
		return []byte(`{}`), nil
	})
	short := endpoint("answer", func(_ context.Context, body []byte) ([]byte, error) {
		begun <- string(body)
		return []byte(`{}`), nil
	})
	short.TimeMax = allowed
	left := patient("left", func(ctx context.Context, _ []byte) ([]byte, error) {
		end, ok := ctx.Deadline()
		return json.Marshal(ok && time.Until(end) < bustest.Patience-allowed)
	})
	serve(t, b, hold, short, left, endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	replies, late := make(chan *nats.Msg, atOnce+waiting), make(chan *nats.Msg, 1)
	for inbox, to := range map[string]chan *nats.Msg{"_INBOX.old.1": replies, "_INBOX.late.1": late} {
		if _, err := nc.ChanSubscribe(inbox, to); err != nil {
			t.Fatal(err)
		}
	}
	send := func(verb, inbox string) {
		t.Helper()
		if err := nc.PublishRequest("hf.svc.ledger."+verb+".ann", inbox, []byte(`{"verb":"`+verb+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for range atOnce {
		send("send", "_INBOX.held.1")
		bustest.Receive(t, begun, "a request in progress")
	}
	for range waiting {
		send("answer", "_INBOX.old.1")
	}
	send("left", "_INBOX.late.1")
	// of the same connection, so the service has taken all that were sent before
	if m, err := nc.Request("hf.svc.ledger.get.bob", []byte(`{}`), bustest.Patience); err != nil {
		t.Fatal(m, err)
	}
	// the time that they wait at least
	<-time.After(allowed)
	close(open)
	for range waiting {
		m := bustest.Receive(t, replies, "a refusal")
		if m.Header.Get(errorCode) != "503" || !strings.Contains(m.Header.Get("Nats-Service-Error"), "waited for") {
			t.Fatalf("replied %v %s", m.Header, m.Data)
		}
	}
	if len(begun) > 0 {
		t.Errorf("%s is handled, and %d more", <-begun, len(begun))
	}
	if m := bustest.Receive(t, late, "the reply to the last one"); string(m.Data) != "true" {
		t.Errorf("the time of a request began when it was handled: %s %v", m.Data, m.Header)
	}
}
