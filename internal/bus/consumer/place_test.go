package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// resetBy sends the request that the broker would deliver for a user whose push consumer names its subject.
func resetBy(t *testing.T, nc *nats.Conn, body string) {
	t.Helper()
	m, err := nc.Request("$JS.API.CONSUMER.RESET.HF_LOG."+bustest.LedgerSource.Durable, []byte(body), bustest.Patience)
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("%v %s", err, m.Data)
	}
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
	resetBy(t, nc, `{"seq":18}`) // before the first delivery since then, so that its number is the expected one
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
	answers := map[string][]bustest.Said{
		"":               bustest.Stored("hf.log.h.s.harness", 7, "", "[]", time.Now()),
		"was moved":      bustest.Stored("hf.log.h.s.harness", 6, "", "[]", time.Now()),
		"trouble":        bustest.Trouble,
		"gone meanwhile": bustest.NotFound,
	}
	for want, answer := range answers {
		b := bustest.Scripted(t, func(bustest.Asked) []bustest.Said { return answer }).Open()
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
	t.Parallel() // it mostly waits
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
