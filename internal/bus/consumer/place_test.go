package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// resetTryMS limits one attempt of resetBy. The broker names a new consumer before it subscribes to its resets. A reset
// between the two is never answered.
const resetTryMS = 5_000

// resetBy sends the request that the broker would deliver for a user whose push consumer names its subject. A request
// that is not answered has not reset anything, so it is sent again.
func resetBy(t *testing.T, nc *nats.Conn, body string) {
	t.Helper()
	subject := "$JS.API.CONSUMER.RESET.HF_LOG." + bustest.LedgerSource.Durable
	natstest.Until(t, "the broker to reset the consumer", func() bool {
		m, err := nc.Request(subject, []byte(body), resetTryMS*time.Millisecond)
		if errors.Is(err, nats.ErrTimeout) {
			return false
		}
		if err != nil || strings.Contains(string(m.Data), `"error"`) {
			t.Fatalf("%v %v", err, m)
		}
		return true
	})
}

// A consumer that a foreign request has reset is moved back by its active process. Nothing is skipped.
func TestAMovedConsumerComesBack(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	stop := l.Run(b, "a", bustest.LedgerSource, nil)
	defer stop()
	bustest.Publish(t, js, 3, bustest.Subjects...)
	l.All(3)
	for i, body := range []string{`{"seq":1000000}`, `{"seq":1}`, `{"seq":1000000}`, `{"seq":9}`} {
		resetBy(t, nc, body)
		bustest.Publish(t, js, 3, bustest.Subjects...)
		l.All(6 + 3*i)
	}
	resetBy(t, nc, `{"seq":1000000}`)
	natstest.Until(t, "the consumer to be moved back", func() bool {
		p, err := b.Consumers.Place(t.Context(), bustest.LedgerSource)
		return err == nil && !p.Beyond() && p.End == 15
	})
	// before the first delivery since then, so that its number is the expected one
	resetBy(t, nc, `{"seq":18}`)
	bustest.Publish(t, js, 5, bustest.Subjects...)
	l.All(20)
}

// Without an active process any process moves it back, so that one becomes active.
func TestAMovedConsumerWithoutAProcess(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	stop := l.Run(b, "a", bustest.LedgerSource, nil)
	bustest.Publish(t, js, 3, bustest.Subjects...)
	l.All(3)
	stop()
	resetBy(t, nc, `{"seq":1000000}`)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	if p, err := b.Consumers.Place(t.Context(), bustest.LedgerSource); err != nil || !p.Beyond() ||
		p != (consumer.Place{Delivered: 999_999, End: 4}) {
		t.Errorf("%+v %v, want 999,999 beyond 4", p, err)
	}
	stop = l.Run(b, "b", bustest.LedgerSource, nil)
	defer stop()
	l.All(4)
}

// TestTheFirstDeliveryAfterAReset: it must be the next stored message; what cannot be read is unknown.
func TestTheFirstDeliveryAfterAReset(t *testing.T) {
	answers := map[string][]bustest.Reply{
		"":               bustest.Stored("hf.log.h.s.harness", 7, "", "[]", time.Now()),
		"was moved":      bustest.Stored("hf.log.h.s.harness", 6, "", "[]", time.Now()),
		"trouble":        bustest.Trouble,
		"gone meanwhile": bustest.NotFound,
	}
	for want, answer := range answers {
		b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return answer }).Open()
		err := b.Consumers.Moved(bustest.Within(t, bustest.Patience), bustest.LedgerSource, 5, 7)
		switch {
		case (want == "" || want == "gone meanwhile") && err == nil:
		case want != "" && err != nil && strings.Contains(err.Error(), want):
		default:
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestAMovedConsumerOfAProcessThatHasDoneNothing: it continues with the last message of the log.
func TestAMovedConsumerOfAProcessThatHasDoneNothing(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	defer l.Run(b, "a", bustest.LedgerSource, nil)()
	natstest.Until(t, "the process to wait for messages", func() bool {
		_, err := b.Consumers.Place(t.Context(), bustest.LedgerSource)
		return err == nil
	})
	resetBy(t, nc, `{"seq":1000000}`)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	l.All(1)
}

// TestDocumentsAfterALoss: the bucket of documents has lost its end, so that its consumer is beyond it. The broker
// cannot reset such a consumer. A process deletes it, and all documents are delivered again.
func TestDocumentsAfterALoss(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `mappings = { "$JS.API.STREAM.INFO.KV_hf_state": "lost.state" }`))
	nc, js := bustest.Outsider(t, s)
	// messages that the broker no longer has
	var lost atomic.Uint64
	if _, err := nc.Subscribe("lost.state", func(m *nats.Msg) {
		all := js.ListStreams(t.Context())
		for info := range all.Info() {
			if info.Config.Name == "KV_hf_state" {
				info.State.LastSeq -= lost.Load()
				if err := m.Respond(jsonOf(t, info)); err != nil {
					t.Error(err)
				}
				return
			}
		}
		const none = `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`
		if err := m.Respond([]byte(none)); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	b := natstest.Bus(t, s)
	source := consumer.Source{Stream: consumer.StateDocs, Durable: "decider"}
	for i := range 3 {
		if _, err := b.KV.Store(t.Context(), kv.State, fmt.Sprint("session.h.s", i), []byte("{}"), 0); err != nil {
			t.Fatal(err)
		}
	}
	var documents counter
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Consumers.Consume(ctx, source, &documents) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := run()
	natstest.Until(t, "all documents", func() bool { return documents.Load() == 3 })
	for round, active := range []bool{true, false} {
		if !active {
			stop()
		}
		lost.Store(1)
		if p, err := b.Consumers.Place(t.Context(), source); err != nil || !p.Beyond() {
			t.Fatalf("%+v, %v", p, err)
		}
		if !active {
			stop = run()
		}
		natstest.Until(t, "all documents again", func() bool {
			if documents.Load() > int64(3*round+3) {
				// the bucket grows
				lost.Store(0)
			}
			return documents.Load() >= int64(3*round+6)
		})
	}
	stop()
}

// counter counts what is delivered.
type counter struct{ atomic.Int64 }

func (*counter) Takeover(context.Context) error { return nil }

func (c *counter) Batch(_ context.Context, ms []bus.Message) (int, error) {
	c.Add(int64(len(ms)))
	return len(ms), nil
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return body
}
