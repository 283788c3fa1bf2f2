package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAckLostOnTheWay holds back the broker's answer and then cuts the connection: the write is stored, and its writer
// must get its place and not a lost race.
func TestAckLostOnTheWay(t *testing.T) {
	s := natstest.Start(t)
	witness := natstest.Bus(t, s)
	for name, c := range map[string]struct {
		write  func(b *bus.Bus) (uint64, error)
		landed func() (uint64, bool)
	}{
		"append": {
			func(b *bus.Bus) (uint64, error) {
				return b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, 0,
					bustest.Facts("a"))
			},
			func() (uint64, bool) {
				cs := bustest.MustRead(t, witness, bustest.Session, 0)
				return uint64(len(cs)), len(cs) == 1
			},
		},
		"store": {
			func(b *bus.Bus) (uint64, error) {
				return b.KV.Store(bustest.Within(t, bustest.Patience), kv.State, bustest.Key, []byte("one"), 0)
			},
			func() (uint64, bool) {
				e, err := witness.KV.Load(bustest.Within(t, bustest.Patience), kv.State, bustest.Key)
				return e.Rev, err == nil
			},
		},
		"lease": {
			func(b *bus.Bus) (uint64, error) {
				_, err := b.Leases.Acquire(bustest.Within(t, bustest.Patience), "harness.h.1", []byte("one"),
					time.Minute)
				return 0, err
			},
			func() (uint64, bool) {
				_, err := witness.KV.Load(bustest.Within(t, bustest.Patience), kv.Leases, "harness.h.1")
				return 0, err == nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := bustest.NewProxy(t, s)
			b := bustest.BusAt(t, p.Addr)
			p.Hold(false, true)
			type result struct {
				seq uint64
				err error
			}
			done := make(chan result, 1)
			go func() {
				seq, err := c.write(b)
				done <- result{seq, err}
			}()
			natstest.Until(t, "the write to land", func() bool { _, ok := c.landed(); return ok })
			p.Cut()
			p.Hold(false, false)
			r := bustest.Receive(t, done, "the result of the write")
			if want, _ := c.landed(); r.err != nil || r.seq != want {
				t.Errorf("the writer got (%d, %v), want (%d, nil)", r.seq, r.err, want)
			}
		})
	}
}

// TestWriteLostOnTheWay is the other half: the broker never got it, so it is sent again.
func TestWriteLostOnTheWay(t *testing.T) {
	s := natstest.Start(t)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	// sets the cell up
	natstest.Bus(t, s)
	p.Hold(true, false)
	pending := b.Log.AppendAsync(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, 0,
		bustest.Facts("a"))
	p.Cut()
	p.Hold(false, false)
	if seq, err := pending.Wait(bustest.Within(t, bustest.Patience)); err != nil || seq != 1 {
		t.Errorf("append = %d, %v; want 1", seq, err)
	}
}

// TestNothingIsSentBehindTheCallersBack: an append that has returned without a broker is not stored when it is back.
func TestNothingIsSentBehindTheCallersBack(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	s.Shutdown()
	natstest.Until(t, "the loss to be noticed", func() bool { return !b.Connected() })
	if _, err := b.Log.Append(bustest.Within(t, 100*time.Millisecond), bustest.Session, events.WriterHarness, 0,
		bustest.Facts("x")); !errors.Is(err, bus.ErrUnreachable) {
		t.Fatalf("append without a broker: %v, want ErrUnreachable", err)
	}
	natstest.Restart(t, s)
	bustest.MustAppend(t, b, bustest.Session, 0, "a")
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 1 || cs[0].Events[0].ID != "a" {
		t.Errorf("log = %+v", cs)
	}
}

// TestWaitGivesUpWithItsContext: the outcome of the write is unknown then, and the error says so.
func TestWaitGivesUpWithItsContext(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	p.Hold(false, true)
	_, err := b.Log.Append(bustest.Within(t, 300*time.Millisecond), bustest.Session, events.WriterHarness, 0,
		bustest.Facts("a"))
	if !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("append without an answer: %v, want ErrUnreachable", err)
	}
	p.Hold(false, false)
	if again := bustest.MustAppend(t, b, bustest.Session, 0, "a"); again != 1 {
		t.Errorf("the same again = %d, want 1", again)
	}
}

// TestCluster runs the promises that three nodes break in ways one node does not: see the notes on the two codes of a
// lost race, on proposals that die with their leader, and on replicas that lag.
func TestCluster(t *testing.T) {
	nodes := natstest.Cluster(t)
	buses := make([]*bus.Bus, len(nodes))
	for i, n := range nodes {
		buses[i] = natstest.Bus(t, n)
	}
	t.Run("appends race", func(t *testing.T) { bustest.Race(t, buses, bustest.RacersN, 10) })
	t.Run("stores race", func(t *testing.T) { bustest.StoreRace(t, buses, bustest.RacersN, 10) })
	t.Run("reads are complete", func(t *testing.T) { readYourWrites(t, buses) })
	t.Run("a list is complete", func(t *testing.T) { listYourWrites(t, buses) })
	t.Run("timers are guarded", func(t *testing.T) { bustest.TimersGuarded(t, buses[1]) })
	t.Run("a node dies under load", func(t *testing.T) { nodeDies(t, nodes, buses) })
}

// readYourWrites reads through every node what was acknowledged through another, short and long sessions.
func readYourWrites(t *testing.T, buses []*bus.Bus) {
	r := events.Ref{Harness: "h", Session: "complete"}
	after := uint64(0)
	for i := range 60 {
		after = bustest.MustAppend(t, buses[i%3], r, after, fmt.Sprint(i))
		if cs := bustest.MustRead(t, buses[(i+1)%3], r, 0); len(cs) != i+1 {
			t.Fatalf("%d commits read, %d acknowledged", len(cs), i+1)
		}
		if e, err := buses[(i+2)%3].Log.Commit(bustest.Within(t, bustest.Patience), after); err != nil ||
			e.Events[0].ID != fmt.Sprint(i) {
			t.Fatalf("commit %d = %+v, %v", after, e, err)
		}
	}
}

func listYourWrites(t *testing.T, buses []*bus.Bus) {
	for i := range 40 {
		bustest.MustStore(t, buses[i%3], fmt.Sprintf("session.list.%d", i), "x", 0)
		n := 0
		err := buses[(i+1)%3].KV.List(bustest.Within(t, bustest.Patience), kv.State, events.SessionKeys("list"),
			func(kv.Entry) error {
				n++
				return nil
			})
		if err != nil || n != i+1 {
			t.Fatalf("%d entries listed, %d stored: %v", n, i+1, err)
		}
	}
}

// nodeDies lets writers append to sessions of their own, each commit guarded by the one before, while the node that
// leads the log is stopped and started again. Every acknowledged commit must be there, once, in order.
func nodeDies(t *testing.T, nodes []*embed.Server, buses []*bus.Bus) {
	const writers = 9
	var acked [writers]atomic.Int64
	// every writer has got further
	progress := func(what string) {
		var before [writers]int64
		for w := range writers {
			before[w] = acked[w].Load()
		}
		natstest.Until(t, "progress "+what, func() bool {
			for w := range writers {
				if acked[w].Load() < before[w]+3 && !t.Failed() {
					return false
				}
			}
			return true
		})
	}
	stop := make(chan struct{})
	var seqs [writers][]uint64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			r, after := events.Ref{Harness: "dies", Session: fmt.Sprint(w)}, uint64(0)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				seq, err := buses[w%3].Log.Append(bustest.Within(t, bustest.Patience), r, events.WriterHarness, after,
					[]events.Event{bustest.Fact(fmt.Sprint(i), r)})
				if err != nil {
					t.Errorf("writer %d, commit %d after %d: %v", w, i, after, err)
					return
				}
				after = seq
				seqs[w] = append(seqs[w], seq)
				acked[w].Add(1)
			}
		})
	}
	progress("before")
	victim := leads(t, nodes, "HF_LOG")
	nodes[victim].Shutdown()
	progress("without a node")
	nodes[victim] = natstest.Restart(t, nodes[victim])
	natstest.Until(t, "the connection to be back", buses[victim].Connected)
	progress("with all nodes again")
	close(stop)
	wg.Wait()
	for w := range writers {
		r := events.Ref{Harness: "dies", Session: fmt.Sprint(w)}
		cs := bustest.MustRead(t, buses[(w+1)%3], r, 0)
		if len(cs) != len(seqs[w]) {
			t.Fatalf("writer %d: %d commits, %d acknowledged", w, len(cs), len(seqs[w]))
		}
		for i, c := range cs {
			if c.Seq != seqs[w][i] || c.Events[0].ID != fmt.Sprint(i) {
				t.Fatalf("writer %d: commit %d is %s at %d, acknowledged at %d", w, i, c.Events[0].ID, c.Seq,
					seqs[w][i])
			}
		}
	}
}

// leads is which node leads a stream.
func leads(t *testing.T, nodes []*embed.Server, stream string) (leader int) {
	t.Helper()
	_, js := bustest.Outsider(t, nodes[0])
	natstest.Until(t, stream+" to have a leader", func() bool {
		st, err := js.Stream(bustest.Within(t, bustest.Patience), stream)
		if err != nil || st.CachedInfo().Cluster == nil {
			return false
		}
		leader = slices.IndexFunc(nodes, func(n *embed.Server) bool {
			return n.Config().Name == st.CachedInfo().Cluster.Leader
		})
		return leader >= 0
	})
	return leader
}
