package pull_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// delivered is what a reader delivers: one message for each sequence. pending are to come behind the last one.
func delivered(pending int, seqs ...int) (all []bustest.Reply) {
	for i, seq := range seqs {
		all = append(all, bustest.Delivery("KV_b", "$KV.b.k", "x", seq, i+1, len(seqs)-1-i+pending))
	}
	return all
}

// TestReplays: what a replay reads, and with how many readers, of a stream in which messages are replaced meanwhile,
// and whose replicas are behind the leader.
func TestReplays(t *testing.T) {
	endless := [][]bustest.Reply{}
	for n := range pull.ChaseMax + 10 {
		endless = append(endless, delivered(0, n+1))
	}
	for name, c := range map[string]struct {
		last    uint64
		open    bool
		rounds  [][]bustest.Reply // what each reader delivers
		next    map[int]int       // by place: the message there or behind it, by the leader
		all     bool              // the leader always has the next message
		want    []uint64
		readers int
	}{
		"a whole span": {last: 2, rounds: [][]bustest.Reply{delivered(1, 1, 2)}, want: upTo(2), readers: 1},
		"a replica that is behind": {last: 2, rounds: [][]bustest.Reply{delivered(0, 1), delivered(0, 2)},
			next: map[int]int{2: 2}, want: upTo(2), readers: 2},
		"a span whose end is gone": {last: 3, rounds: [][]bustest.Reply{delivered(0, 1), delivered(0, 5)},
			next: map[int]int{2: 5}, want: upTo(1), readers: 1},
		"a span whose end was replaced": {last: 3, rounds: [][]bustest.Reply{delivered(0, 1, 5)},
			next: map[int]int{5: 5}, want: upTo(1), readers: 1},
		"an open span with more behind it": {last: 1, open: true, rounds: [][]bustest.Reply{delivered(0, 1, 2, 3)},
			want: upTo(3), readers: 1},
		"an open span and a replica that is behind": {last: 1, open: true,
			rounds: [][]bustest.Reply{delivered(0, 1), delivered(0, 2)}, next: map[int]int{2: 2}, want: upTo(2),
			readers: 2},
		"an open span and a writer without a pause": {last: 1, open: true, rounds: endless, all: true,
			want: upTo(pull.ChaseMax + 1), readers: pull.ChaseMax + 1},
		"an open span that ends late": {last: 100, open: true, rounds: endless, all: true,
			want: upTo(pull.ChaseMax + 10), readers: pull.ChaseMax + 10},
	} {
		t.Run(name, func(t *testing.T) {
			var readers atomic.Int64
			answer := bustest.Readers(1, func(round int) []bustest.Reply {
				if round > len(c.rounds) {
					return bustest.Silence
				}
				return c.rounds[round-1]
			}, func(q bustest.Question) []bustest.Reply {
				seq, ok := c.next[q.Seq]
				if c.all && q.Seq <= len(c.rounds) {
					seq, ok = q.Seq, true
				}
				if !ok {
					return bustest.NotFound
				}
				return bustest.Stored("$KV.b.k", seq, "", "x", time.Now())
			})
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				if a.Is("CONSUMER.CREATE") {
					readers.Add(1)
				}
				return answer(a)
			})
			var got []uint64
			span := pull.Span{Stream: "KV_b", Filter: "$KV.b.>", From: 1, Last: c.last, Open: c.open}
			err := pull.Replay(bustest.Within(t, bustest.Patience), opened(t, b.Url), span, func(m *core.Raw) error {
				got = append(got, m.Seq)
				return nil
			})
			if err != nil || !slices.Equal(got, c.want) || int(readers.Load()) != c.readers {
				t.Errorf("%d readers, want %d; read %d, want %d: %v", readers.Load(), c.readers, got, c.want, err)
			}
		})
	}
}
