package pull_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const tracedFilter = "hf.log.h.s.harness"

// written stores messages in the log, one for each letter: t is traced, n is not.
func written(t *testing.T, nc *nats.Conn, letters string) {
	t.Helper()
	for _, letter := range letters {
		m := nats.NewMsg(tracedFilter)
		if letter == 't' {
			m.Header.Set("Nats-Trace-Dest", "nowhere")
		}
		answer, err := nc.RequestMsg(m, bustest.Patience)
		if err != nil || strings.Contains(string(answer.Data), "error") {
			t.Fatalf("%v %v", answer, err)
		}
	}
}

// opened returns a connection like that of a service.
func opened(t *testing.T, url string) *core.Conn {
	t.Helper()
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	return c
}

// TestTracedMessagesAreRead: deliveries of traced messages do not arrive. The flow reads them from the stream, in
// order. It ends if another message is missing. Here someone else receives them.
func TestTracedMessagesAreRead(t *testing.T) {
	many := strings.Repeat("t", pull.TracedMax+10)
	for name, x := range map[string]struct {
		letters    string
		from       uint64
		missing    int
		remove     uint64 // a message that is removed before it is read
		newest     bool
		want, last uint64 // the first and the last message that arrive; 0: the flow ends
	}{
		"at the beginning": {letters: "ttn", from: 1, missing: 2, want: 1, last: 3},
		"from a place":     {letters: "ntn", from: 2, missing: 1, want: 2, last: 3},
		"more than one search": {letters: many + "n", from: 1, missing: len(many), want: 1,
			last: uint64(len(many)) + 1},
		"removed":     {letters: "tn", from: 1, missing: 1, remove: 1, want: 2, last: 2},
		"not traced":  {letters: "ttntn", from: 1, missing: 4},
		"newest only": {letters: "ttn", from: 1, missing: 2, newest: true, want: 3, last: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := natstest.Start(t), bustest.Within(t, bustest.Patience)
			natstest.Bus(t, s)
			nc, js := bustest.Outsider(t, s)
			written(t, nc, x.letters)
			c := opened(t, s.URL())
			stream := c.Cell.LogStream()
			consumer := received(t, js, c, x.from, x.missing)
			if x.remove > 0 {
				log, err := js.Stream(ctx, stream)
				if err := errors.Join(err, log.DeleteMsg(ctx, x.remove)); err != nil {
					t.Fatal(err)
				}
			}
			f := pull.Start(c, pull.Source{Stream: stream, Consumer: consumer, Filters: []string{tracedFilter},
				After: x.from - 1, Newest: x.newest}, 8, 1, pull.Request{})
			defer f.Close()
			var got []uint64
			for x.last == 0 || len(got) == 0 || got[len(got)-1] < x.last {
				ds, err := f.Take(ctx, pull.WindowMax)
				if err != nil && x.want == 0 && errors.Is(err, pull.ErrInterrupted) && len(got) == 0 {
					return
				}
				if err != nil || x.want == 0 {
					t.Fatalf("after %d: %v", got, err)
				}
				for _, d := range ds {
					got = append(got, d.Seq)
				}
			}
			var want []uint64
			for n := x.want; n <= x.last && x.want > 0; n++ {
				want = append(want, n)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d arrived, want %d to %d", got, x.want, x.last)
			}
		})
	}
}

// TestOnlyTracedMessages: a pull that only traced messages filled has ended, so the broker is silent. They are read,
// then the flow ends. Here nothing answers to pulls.
func TestOnlyTracedMessages(t *testing.T) {
	for letters, want := range map[string][]uint64{"ttn": {1, 2}, "n": nil, "t": {1}} {
		t.Run(letters, func(t *testing.T) {
			t.Parallel()
			s := natstest.Start(t, natstest.Settings(t, `mappings = { "$JS.API.CONSUMER.MSG.NEXT.HF_LOG.*": "lost" }`))
			ctx := bustest.Within(t, bustest.Patience)
			natstest.Bus(t, s)
			nc, _ := bustest.Outsider(t, s)
			if _, err := nc.SubscribeSync("lost"); err != nil {
				t.Fatal(err)
			}
			written(t, nc, letters)
			c := opened(t, s.URL())
			stream := c.Cell.LogStream()
			consumer, _, err := pull.CreateReader(ctx, c, stream, tracedFilter, 1)
			if err != nil {
				t.Fatal(err)
			}
			f := pull.Start(c, pull.Source{Stream: stream, Consumer: consumer, Filters: []string{tracedFilter}}, 8, 1,
				pull.Request{})
			defer f.Close()
			var got []uint64
			for {
				ds, err := f.Take(ctx, pull.WindowMax)
				if err != nil {
					if !errors.Is(err, pull.ErrSilent) || !slices.Equal(got, want) {
						t.Errorf("%d arrived, want %d; then %v", got, want, err)
					}
					break
				}
				for _, d := range ds {
					got = append(got, d.Seq)
					if meta, err := d.Msg.Metadata(); err != nil || meta.Sequence.Stream != d.Seq ||
						meta.Sequence.Consumer != d.Seq || meta.Consumer != consumer {
						t.Errorf("it is acknowledged as %s: %+v %v", d.Msg.Reply, meta, err)
					}
				}
			}
		})
	}
}

// TestAReplayReadsTracedMessages: a replay reads all messages, also if the last ones are traced: a pull that they
// filled has ended, and the broker is silent; a pull that asked for more stays open, and the broker sends heart-beats.
func TestAReplayReadsTracedMessages(t *testing.T) {
	for name, beats := range map[string]bool{"the pull has ended": false, "the pull is open": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := natstest.Start(t, natstest.Settings(t, `mappings = { "$JS.API.CONSUMER.MSG.NEXT.HF_LOG.*": "lost" }`))
			natstest.Bus(t, s)
			nc, _ := bustest.Outsider(t, s)
			if _, err := nc.Subscribe("lost", func(m *nats.Msg) {
				if beats {
					go beat(nc, m.Reply)
				}
			}); err != nil {
				t.Fatal(err)
			}
			written(t, nc, "ttt")
			c := opened(t, s.URL())
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			var got []uint64
			span := pull.Span{Stream: c.Cell.LogStream(), Filter: tracedFilter, From: 1, Last: 3}
			err := pull.Replay(ctx, c, span, func(m *core.Raw) error {
				got = append(got, m.Seq)
				return nil
			})
			if err != nil || !slices.Equal(got, []uint64{1, 2, 3}) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}

// beat sends heart-beats of a pull until the connection is closed.
func beat(nc *nats.Conn, to string) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	m := nats.NewMsg(to)
	m.Header.Set(pull.HeaderStatus, "100")
	for nc.PublishMsg(m) == nil {
		<-tick.C
	}
}

// lostPulls is lostPullsAt for a test that does not look at the broker.
func lostPulls(t *testing.T, letters string, fn func(nc *nats.Conn, m *nats.Msg, n, batch int)) (*core.Conn, string) {
	t.Helper()
	return lostPullsAt(t, letters, (*embed.Server).URL, fn)
}

// lostPullsAt starts a broker at which nothing answers to pulls, and calls fn for each pull with its number and batch.
// It returns a connection to the address that at returns, and a consumer.
func lostPullsAt(t *testing.T, letters string, at func(*embed.Server) string,
	fn func(nc *nats.Conn, m *nats.Msg, n, batch int)) (*core.Conn, string) {
	t.Helper()
	s := natstest.Start(t, natstest.Settings(t, `mappings = { "$JS.API.CONSUMER.MSG.NEXT.HF_LOG.*": "lost" }`))
	natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	n := 0
	if _, err := nc.Subscribe("lost", func(m *nats.Msg) {
		var ask struct{ Batch int }
		if err := json.Unmarshal(m.Data, &ask); err != nil {
			t.Error(err)
		}
		n++
		fn(nc, m, n, ask.Batch)
	}); err != nil {
		t.Fatal(err)
	}
	written(t, nc, letters)
	c := opened(t, at(s))
	consumer, _, err := pull.CreateReader(bustest.Within(t, bustest.Patience), c, c.Cell.LogStream(), tracedFilter, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c, consumer
}

// taken returns what a flow takes, at most most messages, and how it ended before. begin is called first.
func taken(t *testing.T, c *core.Conn, from pull.Source, window, most int, begin func(*pull.Flow)) (got []uint64,
	err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	from.Stream, from.Filters = c.Cell.LogStream(), []string{tracedFilter}
	f := pull.Start(c, from, window, 1, pull.Request{})
	defer f.Close()
	begin(f)
	for len(got) < most {
		ds, err := f.Take(ctx, pull.WindowMax)
		if err != nil {
			return got, err
		}
		for _, d := range ds {
			got = append(got, d.Seq)
		}
	}
	return got, nil
}

// upTo returns the numbers from 1 on.
func upTo(last uint64) (all []uint64) {
	for n := uint64(1); n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// TestTracedMessagesFillManyPulls: when a pull was filled by traced messages, the flow continues with the next pull. It
// reads no further than what was pulled: what is acknowledged before it is delivered stays unacknowledged.
func TestTracedMessagesFillManyPulls(t *testing.T) {
	t.Parallel()
	var pulled atomic.Int64
	c, consumer := lostPulls(t, strings.Repeat("t", 20), func(_ *nats.Conn, _ *nats.Msg, _, batch int) {
		pulled.Add(int64(batch))
	})
	got, err := taken(t, c, pull.Source{Consumer: consumer}, 8, 20, func(*pull.Flow) {})
	if err != nil || !slices.Equal(got, upTo(20)) {
		t.Errorf("%d arrived, %v", got, err)
	}
	// no message was read that was not pulled
	natstest.Until(t, "all of them to be pulled", func() bool { return pulled.Load() >= 20 })
}

// TestTracedMessagesAreNotAwaited: as long as messages are traced, the flow asks what the consumer has delivered. Here
// only the first pull is silent, so that nothing else shows what fills the others.
func TestTracedMessagesAreNotAwaited(t *testing.T) {
	t.Parallel()
	var delivered atomic.Uint64
	c, consumer := lostPulls(t, strings.Repeat("t", 40), func(nc *nats.Conn, m *nats.Msg, n, batch int) {
		delivered.Add(uint64(batch))
		if n > 1 {
			go beat(nc, m.Reply)
		}
	})
	got, err := taken(t, c, pull.Source{Consumer: consumer, Delivered: func(context.Context) (uint64, error) {
		return delivered.Load(), nil
	}}, 8, 40, func(*pull.Flow) {})
	if err != nil || !slices.Equal(got, upTo(40)) {
		t.Errorf("%d arrived, %v", got, err)
	}
}

// TestGapsOfTracedMessages: many gaps are filled at once, each in its place. A gap where another message is missing
// ends the flow, behind what arrived before it.
func TestGapsOfTracedMessages(t *testing.T) {
	for name, x := range map[string]struct {
		letters string // T and N do not arrive
		want    uint64
		ends    bool
	}{
		"many":               {letters: strings.Repeat("Tn", 40), want: 80},
		"long":               {letters: strings.Repeat("TTTTTTTn", 5), want: 40},
		"another is missing": {letters: "TnTnNnTn", want: 4, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, consumer := lostPulls(t, strings.ToLower(x.letters), func(*nats.Conn, *nats.Msg, int, int) {})
			from := pull.Source{Consumer: consumer}
			got, err := taken(t, c, from, pull.WindowMax, len(x.letters), func(f *pull.Flow) {
				for i, letter := range x.letters {
					if letter == 'n' {
						f.Receive(delivery(i + 1))
					}
				}
			})
			if !slices.Equal(got, upTo(x.want)) || x.ends != errors.Is(err, pull.ErrInterrupted) ||
				!x.ends && err != nil {
				t.Errorf("%d arrived, want %d; %v", got, x.want, err)
			}
		})
	}
}

// delivery returns the delivery of a message to a consumer that has delivered all messages before it.
func delivery(seq int) *nats.Msg {
	return &nats.Msg{Subject: tracedFilter, Sub: &nats.Subscription{},
		Reply: fmt.Sprintf("$JS.ACK.HF_LOG.x.1.%d.%d.1.1", seq, seq)}
}

// TestADeliveryDuringASearch: while the flow reads the traced messages that were delivered, the next delivery arrives,
// and shows them as a gap. Each message arrives once.
func TestADeliveryDuringASearch(t *testing.T) {
	t.Parallel()
	var relay *natstest.Relay
	c, consumer := lostPullsAt(t, "tntnn", func(s *embed.Server) string {
		relay = natstest.NewRelay(t, s)
		return relay.URL
	}, func(*nats.Conn, *nats.Msg, int, int) {})
	var searches atomic.Bool
	var flow *pull.Flow
	relay.Spoil(func(subject, _ string) bool {
		if strings.Contains(subject, ".GET") && searches.CompareAndSwap(true, false) {
			flow.Receive(delivery(4))
			flow.Receive(delivery(5))
		}
		return false
	})
	first := true
	from := pull.Source{Consumer: consumer, Delivered: func(context.Context) (uint64, error) {
		searches.Store(first)
		first = false
		return 3, nil
	}}
	got, err := taken(t, c, from, 8, 5, func(f *pull.Flow) {
		flow = f
		f.Receive(delivery(2))
	})
	if err != nil || !slices.Equal(got, upTo(5)) {
		t.Errorf("%d arrived, %v", got, err)
	}
}

// TestTracedMessagesBehindUntakenOnes: the owner is at work while the rest of a pull is filled by traced messages, and
// the pull ends in silence. Messages that have arrived come before them, here from the next flow.
func TestTracedMessagesBehindUntakenOnes(t *testing.T) {
	t.Parallel()
	c, consumer := lostPulls(t, "nnttttttt", func(*nats.Conn, *nats.Msg, int, int) {})
	got, err := taken(t, c, pull.Source{Consumer: consumer}, 8, 8, func(f *pull.Flow) {
		f.Receive(delivery(1))
		f.Receive(delivery(2))
		f.Fail(pull.ErrSilent)
	})
	if !slices.Equal(got, upTo(uint64(len(got)))) || len(got) == 0 && !errors.Is(err, pull.ErrSilent) {
		t.Errorf("%d arrived, %v", got, err)
	}
}

// TestADeliveryBehindTheEnd: a delivery that arrives after the end of a flow is lost to it. So the flow does not
// continue behind the traced messages that a search finds then.
func TestADeliveryBehindTheEnd(t *testing.T) {
	t.Parallel()
	c, consumer := lostPulls(t, "ttn", func(*nats.Conn, *nats.Msg, int, int) {})
	got, err := taken(t, c, pull.Source{Consumer: consumer}, 2, 3, func(f *pull.Flow) {
		f.Fail(pull.ErrSilent)
		f.Receive(delivery(3))
	})
	if !slices.Equal(got, upTo(2)) || !errors.Is(err, pull.ErrSilent) {
		t.Errorf("%d arrived, %v", got, err)
	}
}

// TestAGapWhenItsOwnerEnds: a context that has ended ends the wait for the messages of a gap, too.
func TestAGapWhenItsOwnerEnds(t *testing.T) {
	t.Parallel()
	c, consumer := lostPulls(t, "tn", func(*nats.Conn, *nats.Msg, int, int) {})
	from := pull.Source{Stream: c.Cell.LogStream(), Consumer: consumer, Filters: []string{tracedFilter}}
	f := pull.Start(c, from, 8, 1, pull.Request{})
	defer f.Close()
	f.Receive(delivery(2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Take(ctx, 8)
		ended <- err
	}()
	if err := bustest.Receive(t, ended, "the end of the wait"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// the gap is filled for the next call
	if ds, err := f.Take(bustest.Within(t, bustest.Patience), 8); err != nil || len(ds) != 2 {
		t.Errorf("%d deliveries, %v", len(ds), err)
	}
}

// TestTracedMessagesWereAskedFor: a delivery that is missing has filled a part of a pull, so the flow asks for more.
func TestTracedMessagesWereAskedFor(t *testing.T) {
	const missing = 5
	s, ctx := natstest.Start(t), bustest.Within(t, bustest.Patience)
	natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	written(t, nc, strings.Repeat("t", missing)+"n")
	c := opened(t, s.URL())
	stream := c.Cell.LogStream()
	consumer := received(t, js, c, 1, missing)
	pulls := make(chan *nats.Msg, 10)
	if _, err := nc.ChanSubscribe("$JS.API.CONSUMER.MSG.NEXT.HF_LOG.*", pulls); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	from := pull.Source{Stream: stream, Consumer: consumer, Filters: []string{tracedFilter}}
	f := pull.Start(c, from, missing+3, 1, pull.Request{})
	defer f.Close()
	for _, want := range []string{`"batch":8`, `"batch":4`} {
		if m := bustest.Receive(t, pulls, want); !strings.Contains(string(m.Data), want) {
			t.Errorf("asked for %s, want %s", m.Data, want)
		}
	}
	if ds, err := f.Take(ctx, missing+1); err != nil || len(ds) != missing+1 {
		t.Errorf("%d deliveries, %v", len(ds), err)
	}
}

// received makes a consumer, of which someone else receives the first messages, and returns its name.
func received(t *testing.T, js jetstream.JetStream, c *core.Conn, from uint64, most int) string {
	t.Helper()
	ctx, stream := bustest.Within(t, bustest.Patience), c.Cell.LogStream()
	name, _, err := pull.CreateReader(ctx, c, stream, tracedFilter, from)
	if err != nil {
		t.Fatal(err)
	}
	other, err := js.Consumer(ctx, stream, name)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := other.Fetch(most)
	if err != nil {
		t.Fatal(err)
	}
	// until all of them have arrived there
	for range taken.Messages() {
	}
	return name
}
