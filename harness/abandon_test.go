package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
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
	// it mostly waits
	t.Parallel()
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
	// Close has nothing to do
	check(t, h.Close(w.ctx))
	// Abandon has nothing to do either
	h.Abandon()
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

// TestAbandonBecause: the lease says how the process ended, in one line, and is not renewed after that. Nothing is
// released. Without a broker the call returns an error, and the process has left all the same.
func TestAbandonBecause(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s, err := h.Open(w.ctx, "s1", harness.OpenOptions{})
	check(t, err)
	check(t, h.Ready(w.ctx))
	key := events.HarnessLeaseKey(me, h.Incarnation())
	check(t, h.AbandonBecause(w.ctx, " killed\nby\x00SIGKILL "+strings.Repeat("ü", 1<<20)))
	e, err := w.bus.KV.Load(w.ctx, kv.Leases, key)
	check(t, err)
	var lease struct{ State, Abandoned string }
	check(t, json.Unmarshal(e.Value, &lease))
	if lease.State != "draining" || !strings.HasPrefix(lease.Abandoned, "killed by SIGKILL üü") ||
		len(lease.Abandoned) > events.DetailBytesMax {
		t.Errorf("the lease says %+v", lease)
	}
	if err := s.Append(w.ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}); !errors.Is(err,
		harness.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if st := w.state("s1"); !st.Owned {
		t.Error("the session was released")
	}
	// it has nothing to do
	check(t, h.AbandonBecause(w.ctx, "again"))
	check(t, h.Close(w.ctx))

	h = w.connect()
	w.server.Shutdown()
	ctx, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
	defer cancel()
	if err := h.AbandonBecause(ctx, "exit status 1"); err == nil {
		t.Error("without a broker it succeeded")
	}
	if _, err := h.Open(w.ctx, "s2", harness.OpenOptions{}); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("Open: %v", err)
	}
}
