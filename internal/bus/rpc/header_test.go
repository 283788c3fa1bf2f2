package rpc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// errorCode is the header with the code of a refusal.
const errorCode = "Nats-Service-Error-Code"

// TestHeadersOfARequestAreLimited: a request with more than 8 KiB of headers is refused, and one with less is handled.
func TestHeadersOfARequestAreLimited(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	serve(t, b, endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	for size, want := range map[int]string{8_000: "", 8 << 10: "413", 512 << 10: "413"} {
		for _, subject := range []string{"hf.svc.ledger.get", "hf.svc.ledger.get.ann"} {
			m, err := nc.RequestMsg(&nats.Msg{Subject: subject, Data: []byte(`{}`),
				Header: nats.Header{"X": {strings.Repeat("x", size)}}}, bustest.Patience)
			if err != nil {
				t.Fatal(err)
			}
			if code := m.Header.Get(errorCode); code != want {
				t.Errorf("%s with %d bytes of headers: code %q, want %q", subject, size, code, want)
			}
			if why := m.Header.Get("Nats-Service-Error"); want != "" &&
				(!strings.Contains(why, "headers of the request take") || string(m.Data) != `{"limit":8192}`) {
				t.Errorf("%s with %d bytes of headers: %q, %s", subject, size, why, m.Data)
			}
		}
	}
}

// TestHeadersOfWaitingRequestsCount: the requests of one asker that wait have at most 8 MiB, with their headers. Their
// bodies alone are less than that.
func TestHeadersOfWaitingRequestsCount(t *testing.T) {
	const atOnce, waiting = 16, 240
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	open, begun := make(chan struct{}), make(chan struct{}, atOnce+waiting)
	hold := patient("send", func(context.Context, []byte) ([]byte, error) {
		begun <- struct{}{}
		<-open
		return []byte(`{}`), nil
	})
	serve(t, b, hold, endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	replies := make(chan *nats.Msg, atOnce+waiting)
	if _, err := nc.ChanSubscribe("_INBOX.large.*", replies); err != nil {
		t.Fatal(err)
	}
	send := func(size int) {
		t.Helper()
		m := &nats.Msg{Subject: "hf.svc.ledger.send.ann", Reply: "_INBOX.large.1",
			Data: []byte(strings.Repeat(" ", size)), Header: nats.Header{"X": {strings.Repeat("x", 8_000)}}}
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	for range atOnce {
		send(1)
		bustest.Receive(t, begun, "a request in progress")
	}
	for range waiting {
		send(28_000)
	}
	// of the same connection, so the service has taken all that were sent before
	if m, err := nc.Request("hf.svc.ledger.get.bob", []byte(`{}`), bustest.Patience); err != nil {
		t.Fatal(m, err)
	}
	close(open)
	refused := 0
	for range atOnce + waiting {
		if bustest.Receive(t, replies, "a reply").Header.Get(errorCode) == "503" {
			refused++
		}
	}
	if most := (8 << 20) / (28_000 + 8_000); refused < waiting-most || refused > waiting/2 {
		t.Errorf("%d of %d requests are refused, want at least %d", refused, waiting, waiting-most)
	}
}
