package pull_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
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

// TestAReplayReadsTracedMessages: a replay reads all messages, also if the last ones are traced: a pull that they filled
// has ended, and the broker is silent; a pull that asked for more stays open, and the broker sends heart-beats.
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
