package compaction

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// refused checks the code and a part of the text of a refusal.
func refused(t *testing.T, err error, code int, text string) {
	t.Helper()
	r, ok := errors.AsType[*events.Refusal](err)
	if !ok || r.Code != code || !strings.Contains(r.Error()+string(r.Body()), text) {
		t.Errorf("%v, want %d about %q", err, code, text)
	}
}

// handlers returns the endpoints by their verb.
func handlers(s *Service) map[string]func(context.Context, []byte) ([]byte, error) {
	all := map[string]func(context.Context, []byte) ([]byte, error){}
	for _, e := range s.endpoints() {
		all[e.Verb] = e.Handle
	}
	return all
}

// TestRequestsThatCannotBe: each endpoint refuses a request that is not JSON, not UTF-8, or without a session.
func TestRequestsThatCannotBe(t *testing.T) {
	c := start(t)
	s, _ := c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	before := c.state(r).Seq
	for verb, handle := range handlers(s) {
		_, err := handle(c.ctx, []byte("[]"))
		refused(t, err, http.StatusBadRequest, "not JSON")
		_, err = handle(c.ctx, []byte(`{"harness":"h","session":"none","message":"m","content":"x","by":"ada"}`))
		refused(t, err, http.StatusNotFound, "session")
		if t.Failed() {
			t.Fatal(verb)
		}
	}
	body := strings.Replace(`{"harness":"h","session":"s","message":"m","content":"?","by":"ada"}`, "?", "\xff", 1)
	_, err := handlers(s)["send"](c.ctx, []byte(body))
	refused(t, err, http.StatusBadRequest, "UTF-8")
	if after := c.state(r).Seq; after != before {
		t.Errorf("something was appended: %d, was %d", after, before)
	}
}

// TestWithoutAConnection: without the broker a request is an error, and no success.
func TestWithoutAConnection(t *testing.T) {
	server := natstest.Start(t)
	newCell(t, natstest.Bus(t, server))
	b := natstest.Bus(t, server)
	s, err := New(b, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Clock.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Close()
	for verb, handle := range handlers(s) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = handle(ctx, []byte(`{"harness":"h","session":"s","message":"m","content":"x","by":"ada"}`))
		if err == nil || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("%s: %v", verb, err)
		}
		cancel()
	}
}

// TestTheLogTakesNothing: a full log is a refusal with that reason, and not an error of the service.
func TestTheLogTakesNothing(t *testing.T) {
	server := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, server))
	s, _ := c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	nc, err := nats.Connect(server.URL())
	c.check(err)
	defer nc.Close()
	js, err := nc.JetStream()
	c.check(err)
	info, err := js.StreamInfo(c.b.Cell().LogStream())
	c.check(err)
	info.Config.MaxMsgs, info.Config.Discard = int64(info.State.Msgs), nats.DiscardNew
	_, err = js.UpdateStream(&info.Config)
	c.check(err)
	_, err = handlers(s)["withdraw"](c.ctx, []byte(`{"harness":"h","session":"s","message":"m","by":"ada"}`))
	refused(t, err, http.StatusNotFound, "message")
	_, err = handlers(s)["compact"](c.ctx, []byte(`{"harness":"h","session":"s","by":"ada"}`))
	refused(t, err, http.StatusServiceUnavailable, "the log is full")
	if st := c.state(r); st.Compaction != nil || st.Pending.Compaction != nil {
		t.Errorf("compaction %+v", st.Compaction)
	}
}
