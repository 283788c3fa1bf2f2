package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestServeRefusesAnEndpoint: a service with an endpoint that cannot be registered does not begin.
func TestServeRefusesAnEndpoint(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	done := make(chan error, 1)
	go func() {
		done <- b.Services.Serve(bustest.Background(t), "ledger", "1.0.0", "x",
			[]rpc.Endpoint{endpoint("two words", echo)})
	}()
	if err := bustest.Receive(t, done, "the service to end"); err == nil {
		t.Error("it serves an endpoint whose name is invalid")
	}
}

// TestALogThatLostItsEndIsAConflict: the only error of the broker that another attempt cannot help is a 409 that says
// what to do; others are 503.
func TestALogThatLostItsEndIsAConflict(t *testing.T) {
	_, a, b := bustest.Pair(t)
	serve(t, a, endpoint("behind", func(context.Context, []byte) ([]byte, error) {
		return nil, fmt.Errorf("append: %w", bus.ErrLogBehind)
	}), endpoint("get", func(context.Context, []byte) ([]byte, error) { return nil, bus.ErrLostRace }))
	for verb, code := range map[string]int{"behind": http.StatusConflict, "get": http.StatusServiceUnavailable} {
		err := b.Services.Request(bustest.Within(t, bustest.Patience), "ledger", verb, nil, nil)
		r, ok := errors.AsType[*events.Refusal](err)
		if !ok || r.Code != code || code == http.StatusConflict && !strings.Contains(string(r.Body()), "doctor") {
			t.Errorf("%s: %v, want %d", verb, err, code)
		}
	}
}

// TestARefusalWithoutANumber: a reply whose code is no number is an error that shows it.
func TestARefusalWithoutANumber(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	_, err := nc.Subscribe("hf.svc.ledger.get", func(m *nats.Msg) {
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Nats-Service-Error-Code": {"soon"},
			"Nats-Service-Error": {"text"}}})
	})
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	err = b.Services.Request(bustest.Within(t, bustest.Patience), "ledger", "get", nil, nil)
	if _, refused := errors.AsType[*events.Refusal](err); refused || err == nil ||
		!strings.Contains(err.Error(), `"soon"`) {
		t.Errorf("%v, want an error that shows the code", err)
	}
}

// TestARequestThatCannotBeEncoded is not sent.
func TestARequestThatCannotBeEncoded(t *testing.T) {
	_, a, b := bustest.Pair(t)
	serve(t, a, endpoint("get", echo))
	if err := b.Services.Request(bustest.Within(t, bustest.Patience), "ledger", "get", make(chan int),
		nil); err == nil {
		t.Error("it is sent")
	}
}

// TestARequestWithoutADeadline ends after ten seconds without an answer.
func TestARequestWithoutADeadline(t *testing.T) {
	// it mostly waits
	t.Parallel()
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence }).Open()
	done := make(chan error, 1)
	go func() { done <- b.Services.Request(context.WithoutCancel(t.Context()), "ledger", "get", nil, nil) }()
	if err := bustest.Receive(t, done, "the request to end"); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("%v, want ErrUnreachable", err)
	}
}

// TestServeWithoutAConnection: a service that cannot subscribe does not serve.
func TestServeWithoutAConnection(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	b.Close()
	if err := b.Services.Serve(bustest.Within(t, bustest.Patience), "ledger", "1.0.0", "x", nil); err == nil {
		t.Error("it served")
	}
}
