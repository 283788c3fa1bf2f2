package consumer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// filesOf returns the directory in which a broker keeps a consumer.
func filesOf(t *testing.T, s *embed.Server, stream, name string) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(s.Config().Dir, "jetstream", "*", "streams", stream, "obs", name))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v %v", dirs, err)
	}
	return dirs[0]
}

// answers is a handler that keeps the sequences it was given.
type answers struct {
	mu   sync.Mutex
	seqs []uint64
}

func (*answers) Takeover(context.Context) error { return nil }

func (h *answers) Batch(_ context.Context, ms []bus.Message) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range ms {
		h.seqs = append(h.seqs, m.Seq)
	}
	return len(ms), nil
}

// times returns how often a message was delivered.
func (h *answers) times(seq uint64) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seqs {
		if s == seq {
			n++
		}
	}
	return n
}

// run consumes a source until the returned function is called.
func (h *answers) run(t *testing.T, b *bus.Bus, s consumer.Source) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(bustest.Background(t))
	done := make(chan error, 1)
	go func() { done <- b.Consumers.Consume(ctx, s, h) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := bustest.Receive(t, done, "consume to end"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// fill stores the three messages of a test.
func fill(t *testing.T, b *bus.Bus, js jetstream.JetStream, stream consumer.StreamName) {
	t.Helper()
	if stream == consumer.LogStream {
		bustest.Publish(t, js, 3, bustest.Subjects...)
		return
	}
	for i := range 3 {
		bustest.Store(t, b, kv.State, fmt.Sprint("session.h.s", i), "{}", 0)
	}
}

// TestADeletedConsumersFilesAreNotUsed: the broker has deleted a consumer, and its files are still there. The next one
// of its name delivers everything from the start.
func TestADeletedConsumersFilesAreNotUsed(t *testing.T) {
	documents := consumer.Source{Stream: consumer.StateDocs, Durable: "decider"}
	for name, c := range map[string]struct {
		source consumer.Source
		stream string
		moved  bool // a request has moved the deleted one, and it delivered nothing since
	}{
		"commits":        {bustest.LedgerSource, "HF_LOG", false},
		"commits, moved": {bustest.LedgerSource, "HF_LOG", true},
		"documents":      {documents, "KV_hf_state", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s)
			nc, js := bustest.Outsider(t, s)
			fill(t, b, js, c.source.Stream)
			var h answers
			stop := h.run(t, b, c.source)
			natstest.Until(t, "all three", func() bool { return h.times(3) == 1 })
			stop()
			if c.moved {
				resetBy(t, nc, `{"seq":4}`)
			}

			// it writes all states
			s.Shutdown()
			files := filesOf(t, s, c.stream, c.source.Durable)
			kept := filepath.Join(t.TempDir(), "kept")
			if err := os.CopyFS(kept, os.DirFS(files)); err != nil {
				t.Fatal(err)
			}
			natstest.Restart(t, s)
			natstest.Until(t, "the consumer to be deleted", func() bool {
				return js.DeleteConsumer(bustest.Background(t), c.stream, c.source.Durable) == nil
			})
			if err := os.CopyFS(files, os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}

			stop = h.run(t, b, c.source)
			natstest.Until(t, "all three again", func() bool {
				return h.times(1) == 2 && h.times(2) == 2 && h.times(3) == 2
			})
			stop()
		})
	}
}

// TestAConsumerInUseIsNotCreatedAgain: a process that joins leaves the consumer and its place as they are.
func TestAConsumerInUseIsNotCreatedAgain(t *testing.T) {
	s, a, b := bustest.Pair(t)
	_, js := bustest.Outsider(t, s)
	fill(t, a, js, consumer.LogStream)
	created := func() time.Time {
		c, err := js.Consumer(bustest.Background(t), "HF_LOG", bustest.LedgerSource.Durable)
		if err != nil {
			t.Fatal(err)
		}
		return c.CachedInfo().Created
	}
	var h answers
	stop := h.run(t, a, bustest.LedgerSource)
	natstest.Until(t, "all three", func() bool { return h.times(3) == 1 })
	before := created()
	defer h.run(t, b, bustest.LedgerSource)()
	stop()
	fill(t, a, js, consumer.LogStream)
	natstest.Until(t, "three more", func() bool { return h.times(6) == 1 })
	if after := created(); !after.Equal(before) || h.times(1) != 1 || h.times(3) != 1 {
		t.Errorf("created %s and %s; the first was delivered %d times", before, after, h.times(1))
	}
}

// TestANewConsumersFilesWereRemoved: the deletion of the one before it ended late. The broker cannot store its
// configuration, and does not make the files again. A process deletes it, and creates it once more.
func TestANewConsumersFilesWereRemoved(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	fill(t, b, js, consumer.LogStream)
	if _, err := js.CreateConsumer(bustest.Background(t), "HF_LOG", jetstream.ConsumerConfig{
		Durable: bustest.LedgerSource.Durable, AckPolicy: jetstream.AckExplicitPolicy,
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{"active"},
		MaxRequestExpires: time.Millisecond,
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filesOf(t, s, "HF_LOG", bustest.LedgerSource.Durable)); err != nil {
		t.Fatal(err)
	}
	var h answers
	defer h.run(t, b, bustest.LedgerSource)()
	natstest.Until(t, "all three", func() bool { return h.times(3) == 1 })
	if !strings.Contains(readable(filesOf(t, s, "HF_LOG", bustest.LedgerSource.Durable)), "meta.inf") {
		t.Error("the consumer has no files: a restarted broker does not have it")
	}
}

// readable returns the names of the files in a directory.
func readable(dir string) string {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	return fmt.Sprint(names, err)
}

// TestConsumersThatAreDeletedWhileTheyAreUsed: two processes notice a deletion at the same moment, while the broker
// still removes the files, and create the consumer at once. Each time everything is delivered from the start.
func TestConsumersThatAreDeletedWhileTheyAreUsed(t *testing.T) {
	s, a, b := bustest.Pair(t)
	deletedAgain(t, s, a, b, 12)
}

// TestConsumersOfAClusterThatAreDeleted is the same with three brokers.
func TestConsumersOfAClusterThatAreDeleted(t *testing.T) {
	nodes := natstest.Cluster(t)
	deletedAgain(t, nodes[0], natstest.Bus(t, nodes[1]), natstest.Bus(t, nodes[2]), 3)
}

// deletedAgain deletes the consumer of two processes several times.
func deletedAgain(t *testing.T, s *embed.Server, a, b *bus.Bus, rounds int) {
	t.Helper()
	_, js := bustest.Outsider(t, s)
	fill(t, a, js, consumer.LogStream)
	var h answers
	for _, process := range []*bus.Bus{a, b} {
		defer h.run(t, process, bustest.LedgerSource)()
	}
	natstest.Until(t, "all three", func() bool { return h.times(3) > 0 })
	for round := range rounds {
		before := [3]int{h.times(1), h.times(2), h.times(3)}
		natstest.Until(t, "the consumer to be deleted", func() bool {
			return js.DeleteConsumer(bustest.Background(t), "HF_LOG", bustest.LedgerSource.Durable) == nil
		})
		natstest.Until(t, fmt.Sprintf("everything again, round %d", round), func() bool {
			return h.times(1) > before[0] && h.times(2) > before[1] && h.times(3) > before[2]
		})
	}
}
