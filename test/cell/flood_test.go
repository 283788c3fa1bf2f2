package cell

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Sizes of the floods.
const (
	bigRequests = 1_500 // more than a node queues
	loopers     = 8     // connections that create and delete consumers
	loopFor     = 8 * time.Second
	delayedMost = time.Second // an append of another session, beside what the machine lost
)

// TestFloodsOfTheBrokersAPI: one user asks the broker without a pause. No append of another session is delayed by more
// than a second, and the size of the requests has a limit.
func TestFloodsOfTheBrokersAPI(t *testing.T) {
	w := start(t)
	for name, flood := range map[string]func(t *testing.T){
		"a loop of deletions": w.deletions,
		"big requests":        w.bigRequests,
	} {
		t.Run(name, func(t *testing.T) {
			pulse := natstest.Feel(t)
			stop := w.appends(t)
			flood(t)
			n, longest := stop()
			t.Logf("%d appends of another session, the longest took %s; the machine lost %s", n, longest, pulse.Lost())
			if n < 3 || longest > delayedMost+pulse.Lost() {
				t.Errorf("%d appends, the longest took %s, want at most %s", n, longest, delayedMost+pulse.Lost())
			}
			w.works(t)
		})
	}
}

// appends appends to the victim's session until the returned function is called, which returns how many there were and
// how long the longest one took.
func (w *world) appends(t *testing.T) (stop func() (n int, longest time.Duration)) {
	t.Helper()
	commits, err := w.victim.Log.Read(t.Context(), theirs, 0)
	if err != nil {
		t.Fatal(err)
	}
	last, halt := commits[len(commits)-1].Seq, make(chan struct{})
	var n int
	var longest time.Duration
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-halt:
				return
			default:
			}
			asked := events.New(fmt.Sprint("flood-", last), events.HarnessSource(victim, "1"), theirs, 1, time.Now(),
				events.SessionClaimed{Incarnation: "1"})
			began := time.Now()
			seq, err := w.victim.Log.Append(t.Context(), theirs, events.WriterHarness, last, []events.Event{asked})
			if err != nil {
				t.Errorf("append: %v", err)
				return
			}
			n, last, longest = n+1, seq, max(longest, time.Since(began))
		}
	})
	stop = sync.OnceValues(func() (int, time.Duration) {
		close(halt)
		done.Wait()
		return n, longest
	})
	t.Cleanup(func() { stop() })
	return stop
}

// deletions creates a durable consumer and deletes it, without a pause, on several connections.
func (w *world) deletions(t *testing.T) {
	var done sync.WaitGroup
	until := time.Now().Add(loopFor)
	rounds := make([]int, loopers)
	for i := range loopers {
		h := w.harness()
		name, filter := fmt.Sprint("looper-", i), "hf.log.my-agent.>"
		req := map[string]any{"stream_name": "HF_LOG", "config": map[string]any{"durable_name": name,
			"filter_subject": filter, "ack_policy": "explicit"}}
		done.Go(func() {
			for time.Now().Before(until) {
				var reply struct{}
				if err := h.api(t, "CONSUMER.CREATE.HF_LOG."+name+"."+filter, req, &reply); err != nil {
					t.Errorf("create: %v", err)
					return
				}
				if err := h.api(t, "CONSUMER.DELETE.HF_LOG."+name, struct{}{}, &reply); err != nil {
					t.Errorf("delete: %v", err)
					return
				}
				rounds[i]++
			}
		})
	}
	done.Wait()
	t.Logf("rounds of each connection: %v", rounds)
}

// bigRequests sends requests of the largest size that the user may send, and waits until the broker answers again.
func (w *world) bigRequests(t *testing.T) {
	h := w.harness()
	natstest.Until(t, "the limit of the user's messages", func() bool { return h.MaxPayload() < 1<<20 })
	body := append([]byte(`{"seq":1}`), bytes.Repeat([]byte(" "), int(h.MaxPayload())-64)...)
	before, most := memory(), uint64(0)
	for n := range bigRequests {
		if err := h.PublishMsg(&nats.Msg{Subject: "$JS.API.STREAM.MSG.GET.HF_LOG", Reply: h.NewInbox(),
			Data: body}); err != nil {
			t.Fatal(err)
		}
		if n%20 == 0 {
			most = max(most, memory())
		}
	}
	began := time.Now()
	natstest.Until(t, "the broker to answer", func() bool {
		most = max(most, memory())
		m, err := h.Request("$JS.API.STREAM.MSG.GET.HF_LOG", []byte(`{"seq":1}`), time.Second)
		return err == nil && strings.Contains(string(m.Data), `"message"`)
	})
	t.Logf("%d requests of %d bytes: %d MiB at most, %s until the next answer", bigRequests, len(body),
		(most-min(before, most))>>20, time.Since(began))
}

// memory returns how much memory the process has in use, with its three nodes.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
