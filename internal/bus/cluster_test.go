package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The leader of the log, one node of three, stops: a consumer continues in order and without gaps, a watch misses no
// last value and reports no living key as gone, and a lease is kept.
func TestAllGoesOnWhenANodeOfThreeStops(t *testing.T) {
	const n, keys = 1000, 50
	nodes := natstest.Cluster(t)
	natstest.Bus(t, nodes[0])
	victim := leads(t, nodes, "HF_LOG")
	alive := []*embed.Server{nodes[(victim+1)%3], nodes[(victim+2)%3]}
	a, b := natstest.Bus(t, alive[0]), natstest.Bus(t, alive[1])
	_, js := bustest.Outsider(t, alive[0])

	l := bustest.NewLedgers(t)
	l.Run(a, "a", bustest.LedgerSource, nil)
	l.Run(b, "b", bustest.LedgerSource, nil)
	updates, _ := bustest.Watching(t, b, kv.Leases)
	bustest.Expect(t, updates, "ready")
	lease := bustest.Acquire(t, a, bustest.LeaseKey, 4*bustest.Patience)
	bustest.Expect(t, updates, bustest.LeaseKey+"=mine")
	bustest.Publish(t, js, n, bustest.Subjects...)
	bustest.Receive(t, l.News, "a batch")
	nodes[victim].Shutdown()
	died := time.Now()

	final := map[string]string{}
	for i := range 2 * keys {
		key, value := fmt.Sprintf("harness.h.%d", i%keys+10), fmt.Sprint(i)
		e, err := b.KV.Load(bustest.Background(t), kv.Leases, key)
		if err == nil {
			bustest.Store(t, b, kv.Leases, key, value, e.Rev)
		} else {
			bustest.Store(t, b, kv.Leases, key, value, 0)
		}
		final[key] = value
	}
	if err := lease.Renew(bustest.Background(t), []byte("still mine")); err != nil {
		t.Errorf("renew: %v", err)
	}
	stop := bustest.Feeding(t, js)
	for len(final) > 0 {
		u := bustest.Receive(t, updates, "the last values")
		if u.Deleted {
			t.Fatalf("%s is alive and was called gone", u.Key)
		}
		if final[u.Key] == string(u.Value) {
			delete(final, u.Key)
		}
	}
	t.Logf("all last values shown %s after the death", time.Since(died))
	l.All(n + stop())
	t.Logf("all handled %s after the death, %d of them twice", time.Since(died), l.Twice())
}

// A client whose node cannot reach the other two does not stay with that node: those two may serve everyone else.
func TestAClientLeavesAnIsolatedNode(t *testing.T) {
	nodes := natstest.Cluster(t)
	b := natstest.Bus(t, nodes[0])
	nodes[1].Shutdown()
	nodes[2].Shutdown()
	natstest.Until(t, "the client to connect again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		// nothing is answered without a quorum
		_, err := b.KV.Load(ctx, kv.Leases, "harness.h.1")
		return err != nil && b.Reconnects() > 0
	})
	var err error
	// a node that led the others answers until it notices
	for began := time.Now(); time.Since(began) < quorumLostMax; {
		if err = opened(t, nodes[0].URL()); errors.Is(err, bus.ErrNoAnswer) {
			return
		}
	}
	t.Errorf("another client of it: %v, want %v", err, bus.ErrNoAnswer)
}

// quorumLostMax is how long a node may take to notice that it has lost the others.
const quorumLostMax = time.Minute

// opened returns why a client could not connect to a broker within a second; nil if it could.
func opened(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	b, err := bus.Open(ctx, bus.Config{URL: url})
	if err == nil {
		b.Close()
	}
	return err
}

// TestALeaderThatIsBehindLosesNothing: the leader of a log with several copies may answer from less than is stored,
// after an election. An append whose guard it does not have yet waits for that. A guard whose place another commit has
// is lost.
func TestALeaderThatIsBehindLosesNothing(t *testing.T) {
	nodes := natstest.Cluster(t)
	b := natstest.Bus(t, nodes[0], func(c *bus.Config) { c.Replicas = 3 })
	other := events.Ref{Harness: "h", Session: "other"}
	first, last := bustest.MustAppend(t, b, bustest.Session, 0, "a"), uint64(0)
	guard := first + 5
	result := make(chan error, 1)
	go func() {
		_, err := b.Log.Append(bustest.Background(t), bustest.Session, events.WriterHarness, guard,
			bustest.Facts("late"))
		result <- err
	}()
	select {
	case err := <-result:
		t.Fatalf("it is decided while the leader is behind: %v", err)
	case <-time.After(3 * time.Second):
		// longer than refusals are counted
	}
	for i := range guard - first - 1 {
		last = bustest.MustAppend(t, b, other, last, fmt.Sprint("other-", i))
	}
	if seq := bustest.MustAppend(t, b, bustest.Session, first, "b"); seq != guard {
		t.Fatalf("the commit has sequence %d, want %d", seq, guard)
	}
	if err := bustest.Receive(t, result, "the append"); err != nil {
		t.Errorf("an append after the leader has its guard: %v", err)
	}
	lost := bustest.MustAppend(t, b, other, last, "at the place of a lost commit")
	began, pulse := time.Now(), natstest.Feel(t)
	_, err := b.Log.Append(bustest.Background(t), bustest.Session, events.WriterHarness, lost,
		bustest.Facts("after a loss"))
	if took := time.Since(began); !errors.Is(err, bus.ErrLogBehind) || took > 8*time.Second+pulse.Lost() {
		t.Errorf("an append after a commit that was lost: %v after %s", err, took)
	}
	if _, err := b.Log.Append(bustest.Background(t), bustest.Session, events.WriterHarness, lost+1000,
		bustest.Facts("at the end")); !errors.Is(err,
		bus.ErrLogBehind) {
		t.Errorf("an append to a log that lost its end: %v", err)
	}
}
