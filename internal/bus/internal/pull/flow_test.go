package pull_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// silentFlow returns a flow over stored messages. Nothing answers its pulls, and it does not end for that.
func silentFlow(t *testing.T, letters string, window int, first uint64, change func(*pull.Source)) *pull.Flow {
	t.Helper()
	c, consumer := lostPulls(t, letters, func(*nats.Conn, *nats.Msg, int, int) {})
	from := pull.Source{Stream: c.Cell.LogStream(), Consumer: consumer, Filters: []string{tracedFilter}}
	change(&from)
	f := pull.StartUnguarded(c, from, window, first)
	t.Cleanup(f.Close)
	return f
}

func asItIs(*pull.Source) {}

// numbered returns a message that the consumer has delivered as that of this number.
func numbered(seq, number int) *nats.Msg {
	m := delivery(seq)
	m.Reply = fmt.Sprintf("$JS.ACK.HF_LOG.x.1.%d.%d.1.1", seq, number)
	return m
}

// TestADoubtEndsTheFlow: a flow ends at what is no delivery, and at a message or a number that comes again.
func TestADoubtEndsTheFlow(t *testing.T) {
	for name, m := range map[string]*nats.Msg{
		"no delivery":            {Subject: tracedFilter, Reply: "other", Sub: &nats.Subscription{}},
		"a message that is late": numbered(2, 3),
		"a number that is late":  numbered(3, 2),
	} {
		one := silentFlow(t, "", 8, 1, asItIs)
		one.Receive(delivery(1))
		one.Receive(delivery(2))
		one.Receive(m)
		if ds, err := one.Take(bustest.Within(t, bustest.Patience), 8); !errors.Is(err, pull.ErrInterrupted) {
			t.Errorf("%s: %d are taken, %v", name, len(ds), err)
		}
	}
	// a reset consumer counts from 1; of another one the first number is not known
	unknown := silentFlow(t, "", 8, 0, asItIs)
	unknown.Receive(numbered(7, 5))
	if n := len(unknown.Waiting()); n != 1 || unknown.Gaps() > 0 {
		t.Errorf("%d deliveries, %d gaps", n, unknown.Gaps())
	}
}

// TestSilence: a flow that has pulled nothing is not silent: its owner has not taken what came.
func TestSilence(t *testing.T) {
	later := time.Now().Add(time.Hour)
	f := &fed{Flow: silentFlow(t, "", 2, 1, asItIs), t: t}
	if !f.IsSilent(later) {
		t.Error("nothing comes of what was pulled, and the flow is not silent")
	}
	if f.deliver(2, nil); f.IsSilent(later) {
		t.Error("all has come that was pulled, and the flow is silent")
	}
	if f.take(2); !f.IsSilent(later) {
		t.Error("nothing comes of what was pulled then, and the flow is not silent")
	}
}

// expired returns the broker's message that a pull has ended before so many messages were delivered.
func expired(left string) *nats.Msg {
	m := nats.NewMsg("inbox")
	m.Header.Set(pull.HeaderStatus, pull.StatusExpired)
	m.Header.Set("Nats-Pending-Messages", left)
	return m
}

// TestPulls: a flow pulls more when half of its window is open, not earlier; it knows what a pull that has ended leaves
// in flight; and it pulls nothing while it holds many bytes that are not taken.
func TestPulls(t *testing.T) {
	f := &fed{Flow: silentFlow(t, "", 4*pull.AskedMin, 1, asItIs), t: t}
	if f.deliver(1, nil); f.Asked() != pull.AskedMin-1 {
		t.Errorf("%d in flight after one has come, want %d", f.Asked(), pull.AskedMin-1)
	}
	if f.Receive(expired("20")); f.Asked() != pull.AskedMin-21 {
		t.Errorf("%d in flight when 20 are not delivered, want %d", f.Asked(), pull.AskedMin-21)
	}
	if f.Receive(expired("")); f.Asked() != pull.AskedMin {
		t.Errorf("%d in flight when nothing was, want %d", f.Asked(), pull.AskedMin)
	}
	body := make([]byte, 1<<19)
	if f.deliver(pull.AskedMin/2+10, body); f.Asked() != pull.AskedMin/2-10 {
		t.Errorf("%d in flight beside %d bytes, want %d", f.Asked(), f.Held(), pull.AskedMin/2-10)
	}
	if f.take(pull.AskedMin/2 + 11); f.Asked() < pull.AskedMin/2 || f.Held() != 0 {
		t.Errorf("%d in flight and %d bytes when all are taken", f.Asked(), f.Held())
	}
}

// TestTracedMessagesAreHeld: what is read from the stream is counted like what arrives, and a limited number of gaps is
// searched at once.
func TestTracedMessagesAreHeld(t *testing.T) {
	const gaps = pull.GapsAtOnceMax + 8
	f := silentFlow(t, strings.Repeat("tn", gaps), 4*gaps, 1, asItIs)
	for n := 1; n <= gaps; n++ {
		f.Receive(delivery(2 * n))
	}
	if f.Gaps() != pull.GapsAtOnceMax {
		t.Errorf("%d gaps at once, want %d", f.Gaps(), pull.GapsAtOnceMax)
	}
	for n := 0; n < 2*gaps; {
		ds, err := f.Take(bustest.Within(t, bustest.Patience), 4*gaps)
		if err != nil {
			t.Fatalf("%d taken: %v", n, err)
		}
		n += len(ds)
	}
	if f.Held() != 0 {
		t.Errorf("%d bytes are held when all are taken", f.Held())
	}
}

// TestASearchReadsWhatWasDelivered: traced messages are read up to what the consumer has delivered. None are read where
// the number of the next delivery is not known, or where only the newest of each subject are delivered.
func TestASearchReadsWhatWasDelivered(t *testing.T) {
	for name, x := range map[string]struct {
		first  uint64
		change func(*pull.Source)
		want   int
	}{
		"up to the third":      {1, asItIs, 3},
		"of an unknown number": {0, asItIs, 0},
		"only the newest":      {1, func(from *pull.Source) { from.Newest = true }, 0},
	} {
		f := silentFlow(t, "tttttt", 8, x.first, x.change)
		if ds, err := f.SearchUpTo(bustest.Within(t, bustest.Patience), 3); err != nil || len(ds) != x.want {
			t.Errorf("%s: %d, %v", name, len(ds), err)
		}
	}
}

// TestASearchBehindTheEnd: a flow that has ended for another reason than silence does not continue behind what a search
// finds: another process is the active one, for example.
func TestASearchBehindTheEnd(t *testing.T) {
	f := silentFlow(t, "tt", 2, 1, asItIs)
	f.Fail(pull.ErrPinLost)
	ctx := bustest.Within(t, bustest.Patience)
	if ds, err := f.SearchUpTo(ctx, 2); err != nil || len(ds) != 2 {
		t.Fatalf("%d, %v", len(ds), err)
	}
	if ds, err := f.Take(ctx, 8); !errors.Is(err, pull.ErrPinLost) {
		t.Errorf("%d, %v", len(ds), err)
	}
}

// TestAProbeOfNothing: a consumer that was reset has delivered nothing, so that a probe reads nothing.
func TestAProbeOfNothing(t *testing.T) {
	f := silentFlow(t, "tnttt", 8, 1, func(from *pull.Source) {
		from.Delivered = func(context.Context) (uint64, error) { return 0, nil }
	})
	ctx := bustest.Within(t, bustest.Patience)
	f.Receive(delivery(2))
	if ds, err := f.Take(ctx, 8); err != nil || len(ds) != 2 {
		t.Fatalf("%d, %v", len(ds), err)
	}
	if ds := f.Probe(ctx); len(ds) > 0 {
		t.Errorf("%d are read", len(ds))
	}
}

// TestASearchInBytes: one search reads a limited number of bytes.
func TestASearchInBytes(t *testing.T) {
	const size = 500_000
	const want = pull.TracedBytesMax/size + 1
	c, consumer := lostPulls(t, "", func(*nats.Conn, *nats.Msg, int, int) {})
	ctx := bustest.Within(t, bustest.Patience)
	for range want + 2 {
		m := nats.NewMsg(tracedFilter)
		m.Header.Set("Nats-Trace-Dest", "nowhere")
		m.Data = make([]byte, size)
		answer, err := c.NC.RequestMsgWithContext(ctx, m)
		if err != nil || strings.Contains(string(answer.Data), "error") {
			t.Fatalf("%v %v", answer, err)
		}
	}
	f := pull.StartUnguarded(c, pull.Source{Stream: c.Cell.LogStream(), Consumer: consumer,
		Filters: []string{tracedFilter}}, 2*want, 1)
	defer f.Close()
	if ds, err := f.SearchUpTo(ctx, want+2); err != nil || len(ds) != want {
		t.Errorf("%d messages of %d bytes are read, want %d: %v", len(ds), size, want, err)
	}
}

// TestHeadersOfTracedMessages: a message that was read from the stream has its headers, but not those by which its
// author asks the broker for something, or names the active process.
func TestHeadersOfTracedMessages(t *testing.T) {
	c, consumer := lostPulls(t, "", func(*nats.Conn, *nats.Msg, int, int) {})
	m := nats.NewMsg(tracedFilter)
	for _, key := range []string{"Nats-Trace-Dest", pull.HeaderPin, "Kept"} {
		m.Header.Set(key, "x")
	}
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := c.NC.RequestMsgWithContext(ctx, m); err != nil {
		t.Fatal(err)
	}
	f := pull.StartUnguarded(c, pull.Source{Stream: c.Cell.LogStream(), Consumer: consumer,
		Filters: []string{tracedFilter}}, 8, 1)
	defer f.Close()
	ds, err := f.SearchUpTo(ctx, 1)
	if err != nil || len(ds) != 1 {
		t.Fatalf("%d, %v", len(ds), err)
	}
	if h := ds[0].Msg.Header; len(h) != 1 || h.Get("Kept") != "x" {
		t.Errorf("%v", h)
	}
}

// TestOneOfSeveralFilters: where the messages of one filter cannot be read, those of another one are not taken for the
// next ones. A filter without a message is no error.
func TestOneOfSeveralFilters(t *testing.T) {
	const other = "hf.log.h.s.ledger"
	var relay *natstest.Relay
	c, consumer := lostPullsAt(t, "tt", func(s *embed.Server) string {
		relay = natstest.NewRelay(t, s)
		return relay.URL
	}, func(*nats.Conn, *nats.Msg, int, int) {})
	f := pull.StartUnguarded(c, pull.Source{Stream: c.Cell.LogStream(), Consumer: consumer,
		Filters: []string{other, tracedFilter}}, 8, 1)
	defer f.Close()
	ctx := bustest.Within(t, bustest.Patience)
	if m, err := f.Following(ctx, 0); err != nil || m.Seq != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.NC.RequestWithContext(ctx, other, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := f.Following(ctx, 0); err != nil || m.Seq != 1 {
		t.Errorf("both have messages: %+v, %v", m, err)
	}
	relay.Spoil(func(_, body string) bool {
		var q struct {
			Next string `json:"next_by_subj"`
		}
		return json.Unmarshal([]byte(body), &q) == nil && q.Next == other
	})
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if m, err := f.Following(brief, 0); err == nil || errors.Is(err, core.ErrNotFound) {
		t.Errorf("%+v, %v", m, err)
	}
}
