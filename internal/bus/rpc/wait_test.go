package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// headerWait is the header with how long an asker waits.
const headerWait = "Hf-Wait-Ms"

// TestARequestEndsWithItsAsker: nothing is done for an asker that no longer waits, whatever time the verb has.
func TestARequestEndsWithItsAsker(t *testing.T) {
	_, a, b := bustest.Pair(t)
	ended := make(chan struct{}, 1)
	serve(t, a, rpc.Endpoint{Verb: "slow", TimeMax: 10 * bustest.Patience,
		Handle: func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			ended <- struct{}{}
			return nil, ctx.Err()
		}}, endpoint("get", echo))
	err := b.Services.Request(bustest.Within(t, time.Second), "ledger", "slow", nil, nil)
	if err == nil {
		t.Fatal("it has an answer")
	}
	bustest.Receive(t, ended, "the request to end")
}

// TestHowLongAnAskerWaits: the time of a request is that of its verb, or the time that its header names if that is
// shorter. A header that names no number of at least 1 is ignored.
func TestHowLongAnAskerWaits(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	const verbTime = 1000 * time.Hour
	serve(t, b, rpc.Endpoint{Verb: "left", TimeMax: verbTime,
		Handle: func(ctx context.Context, _ []byte) ([]byte, error) {
			end, _ := ctx.Deadline()
			return json.Marshal(time.Until(end))
		}}, endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	hour := func(n int) time.Duration { return time.Duration(n) * time.Hour }
	for value, want := range map[string]time.Duration{"": verbTime, "360000000": hour(100), "3600000000": verbTime,
		"3600000001": verbTime, "99999999999999999999": verbTime, "0": verbTime, "-1": verbTime, "1.5": verbTime,
		"soon": verbTime} {
		m := &nats.Msg{Subject: "hf.svc.ledger.left", Header: nats.Header{headerWait: {value}}}
		if value == "" {
			m.Header = nil
		}
		reply, err := nc.RequestMsg(m, bustest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		var left time.Duration
		if err := json.Unmarshal(reply.Data, &left); err != nil || left > want || left < want-hour(1) {
			t.Errorf("%q leaves %s, want %s: %v", value, left, want, err)
		}
	}
}

// lines passes the lines of a log to a test.
type lines chan string

// Write implements [io.Writer].
func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// TestAReplyWaitsForTheBroker: a request whose service has no connection when it is done is answered after the service
// has connected again.
func TestAReplyWaitsForTheBroker(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	asker, p, logged := natstest.Bus(t, s), bustest.NewProxy(t, s), make(lines, 1000)
	service, err := bus.Open(bustest.Background(t), bus.Config{URL: p.Addr, Log: zerolog.New(logged)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Abort)
	begun, proceed := make(chan struct{}), make(chan struct{})
	serve(t, service, patient("slow", func(context.Context, []byte) ([]byte, error) {
		close(begun)
		<-proceed
		return []byte(`7`), nil
	}), endpoint("get", echo))
	got, answered := 0, make(chan error, 1)
	go func() {
		answered <- asker.Services.Request(bustest.Within(t, bustest.Patience), "ledger", "slow", nil, &got)
	}()
	bustest.Receive(t, bustest.Closing(begun), "the request to begin")
	p.Hold(true, true)
	p.Cut()
	natstest.Until(t, "the service to notice", func() bool { return !service.Connected() })
	close(proceed)
	natstest.Until(t, "the first attempt", func() bool {
		return strings.Contains(bustest.Receive(t, logged, "a line of the log"), "reply not sent")
	})
	p.Hold(false, false)
	if err := bustest.Receive(t, answered, "the answer"); err != nil || got != 7 {
		t.Errorf("%d, %v", got, err)
	}
}

// TestARequestThatAStopEnds: a service that stops ends a request that takes too long, and waits until it is refused:
// its asker would wait for a process that is gone.
func TestARequestThatAStopEnds(t *testing.T) {
	// it mostly waits
	t.Parallel()
	_, a, b := bustest.Pair(t)
	begun := make(chan struct{})
	var ended atomic.Bool
	stop := serve(t, a, patient("slow", func(ctx context.Context, _ []byte) ([]byte, error) {
		close(begun)
		<-ctx.Done()
		ended.Store(true)
		return nil, ctx.Err()
	}), endpoint("get", echo))
	answered := make(chan error, 1)
	go func() {
		answered <- b.Services.Request(bustest.Within(t, bustest.Patience), "ledger", "slow", nil, nil)
	}()
	bustest.Receive(t, bustest.Closing(begun), "the request to begin")
	stop()
	if !ended.Load() {
		t.Error("the service has stopped before the request has ended")
	}
	err := bustest.Receive(t, answered, "the refusal")
	r, refused := errors.AsType[*events.Refusal](err)
	if !refused || r.Code != 503 || !strings.Contains(r.Message, "stopping") {
		t.Errorf("%v, want a 503 that says that it is stopping", err)
	}
}
