package rpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestOneAskerTakesFewPlaces: a harness sends 600 requests that take long. A few of them are handled and some wait; the
// others are refused at once. Requests of other askers are handled meanwhile. In the end all have one reply.
func TestOneAskerTakesFewPlaces(t *testing.T) {
	const asked, atOnce, waiting = 600, 16, 240
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	open, begun := make(chan struct{}), make(chan struct{}, asked)
	serve(t, b, patient("send", func(_ context.Context, body []byte) ([]byte, error) {
		var q struct{ By, Harness string }
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		if q.Harness == "slow" {
			begun <- struct{}{}
			<-open
		}
		return body, nil
	}), endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	replies := make(chan *nats.Msg, asked)
	if _, err := nc.ChanSubscribe("_INBOX.flood.*", replies); err != nil {
		t.Fatal(err)
	}
	for range asked {
		if err := nc.PublishRequest("hf.svc.ledger.send.harness.slow", "_INBOX.flood.1", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	for range asked - atOnce - waiting {
		m := bustest.Receive(t, replies, "a refusal")
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "503" ||
			!strings.Contains(m.Header.Get("Nats-Service-Error"), "too many requests of slow wait: ask again") {
			t.Fatalf("refused with %v", m.Header)
		}
	}
	for range atOnce {
		bustest.Receive(t, begun, "a request in progress")
	}
	// the last one is a person of this name
	for _, who := range []string{"ann", "harness.other", "slow"} {
		m, err := nc.Request("hf.svc.ledger.send."+who, []byte(`{}`), bustest.Patience)
		if err != nil || m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Errorf("%s: %v, %v", who, m, err)
		}
	}
	if len(begun) > 0 || len(replies) > 0 {
		t.Errorf("%d more in progress, %d replies", len(begun), len(replies))
	}
	close(open)
	for range atOnce + waiting {
		if m := bustest.Receive(t, replies, "a reply"); m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Fatalf("refused with %v", m.Header)
		}
	}
}

// TestWaitingRequestsAreRefusedWhenTheServiceStops: requests that wait for a place have a reply when the service stops,
// and those in progress are finished.
func TestWaitingRequestsAreRefusedWhenTheServiceStops(t *testing.T) {
	const asked, atOnce = 40, 16
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	open, begun := make(chan struct{}), make(chan struct{}, asked)
	stop := serve(t, b, patient("send", func(_ context.Context, body []byte) ([]byte, error) {
		begun <- struct{}{}
		<-open
		return body, nil
	}), endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	replies := make(chan *nats.Msg, asked)
	if _, err := nc.ChanSubscribe("_INBOX.late.*", replies); err != nil {
		t.Fatal(err)
	}
	for range asked {
		if err := nc.PublishRequest("hf.svc.ledger.send.ann", "_INBOX.late.1", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	// of the same connection, so the service has taken all that were sent before
	if m, err := nc.Request("hf.svc.ledger.get.bob", []byte(`{}`), bustest.Patience); err != nil {
		t.Fatal(m, err)
	}
	for range atOnce {
		bustest.Receive(t, begun, "a request in progress")
	}
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	for range asked - atOnce {
		m := bustest.Receive(t, replies, "a refusal")
		if !strings.Contains(m.Header.Get("Nats-Service-Error"), "is stopping: ask again") {
			t.Fatalf("replied %v", m.Header)
		}
	}
	close(open)
	for range atOnce {
		if m := bustest.Receive(t, replies, "a reply"); m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Fatalf("refused with %v", m.Header)
		}
	}
	bustest.Receive(t, bustest.Closing(stopped), "the service to stop")
}
