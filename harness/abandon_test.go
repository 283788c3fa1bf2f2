package harness_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAbandon: waiting calls return an error, nothing is released or withdrawn, and the lease ends at its TTL, not at
// once.
func TestAbandon(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	h := w.connect()
	s, err := h.Open(w.ctx, "s1", harness.OpenOptions{})
	check(t, err)
	check(t, h.Ready(w.ctx))
	turn, err := s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"})
	check(t, err)
	asked := make(chan error, 1)
	go func() {
		_, err := turn.Ask(w.ctx, harness.Prompt{ID: "p1", Kind: events.PromptPermission})
		asked <- err
	}()
	w.awaiting("s1", "p1")

	lease := events.HarnessLeaseKey(me, h.Incarnation())
	h.Abandon()
	if err := <-asked; !errors.Is(err, harness.ErrClosed) {
		t.Errorf("Ask: %v", err)
	}
	if err := turn.Complete(w.ctx, ""); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("Complete: %v", err)
	}
	if _, err := h.Open(w.ctx, "s2", harness.OpenOptions{}); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("Open: %v", err)
	}
	e, err := w.bus.KV.Load(w.ctx, kv.Leases, lease)
	if err != nil {
		t.Fatalf("the lease was given back: %v", err)
	}
	if _, _, err := h.Sessions(w.ctx); !errors.Is(err, harness.ErrUnreachable) {
		t.Errorf("the connection is not closed: %v", err)
	}
	check(t, h.Close(w.ctx)) // which has nothing to do
	h.Abandon()              // nor has this
	if again, err := w.bus.KV.Load(w.ctx, kv.Leases, lease); err != nil || again.Rev != e.Rev {
		t.Errorf("after Close: %v, revision %d, was %d", err, again.Rev, e.Rev)
	}
	if st := w.state("s1"); !st.Owned || st.Turn == nil || st.Prompts["p1"].Status != session.Awaiting {
		t.Errorf("owned %t, turn %v, prompts %v", st.Owned, st.Turn, st.Prompts)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for err = nil; !errors.Is(err, bus.ErrNotFound); _, err = w.bus.KV.Load(w.ctx, kv.Leases, lease) {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			t.Fatalf("the lease does not end: %v", err)
		}
	}
}
