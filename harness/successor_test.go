package harness_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAProcessThatLeftIsNoSuccessor (R7): another process of an exclusive harness connects and leaves, without a
// session. Later the agent loses its lease. It lives, keeps its turn, and gets the answer to its question.
func TestAProcessThatLeftIsNoSuccessor(t *testing.T) {
	for name, leave := range map[string]func(w *world, other *harness.Harness){
		"closed": func(w *world, other *harness.Harness) { check(w.t, other.Close(w.ctx)) },
		"killed": func(w *world, other *harness.Harness) {
			other.Abandon()
			natstest.Until(w.t, "the lease of the killed process to end", func() bool {
				key := events.HarnessLeaseKey(me, other.Incarnation())
				_, err := w.bus.KV.Load(w.ctx, kv.Leases, key)
				return errors.Is(err, bus.ErrNotFound)
			})
		},
		"is about to leave": func(w *world, other *harness.Harness) {
			check(w.t, other.AbandonBecause(w.ctx, "it was killed"))
		},
		"a member of a pool": func(*world, *harness.Harness) {},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
			w.awaiting("s", "p1")
			leave(w, w.connect(func(c *harness.Config) { c.Pool = name == "a member of a pool" }))
			w.dropLease(h)
			natstest.Until(t, "the lease to be taken again, or the process to end", func() bool {
				return h.Context().Err() != nil || w.state("s").Epoch == 2
			})
			check(t, context.Cause(h.Context()))
			check(t, s.Regain(w.ctx))
			w.mustAnswer("s", "p1", "red")
			w.show("s")
			a := got(t, out)
			check(t, a.err)
			check(t, turn.Complete(w.ctx, ""))
		})
	}
}

// TestASuccessorThatDied (R6): a newer process has claimed a session and died. Its claim is in the log, and the
// older process was cut off then. A process that starts over does not draw an incarnation above it.
func TestASuccessorThatDied(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	old := w.connect(func(c *harness.Config) { c.URL, c.OnLeaseLoss = l.url, harness.LeaseRestart })
	s := must[*harness.Session](t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Session](t)(old.Open(w.ctx, "kept", harness.OpenOptions{}))
	l.down.Store(true)
	l.cut()
	// its lease is lost
	_ = ended(t, s.Context())
	newer := w.connect()
	by := newer.Incarnation()
	w.claimSilently("s", by)
	check(t, newer.Close(w.ctx))
	l.down.Store(false)
	w.wantReplaced(old, by)
	if drawn := w.drawn(); drawn != by {
		t.Errorf("incarnation %s was drawn after %s", drawn, by)
	}
}

// TestASuccessorInAnotherLanguage (R6): the lease of a newer process leaves out a field that is true by default, as the
// contract permits. The older process, which was cut off, does not start over.
func TestASuccessorInAnotherLanguage(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	old := w.connect(func(c *harness.Config) { c.URL, c.OnLeaseLoss = l.url, harness.LeaseRestart })
	s := must[*harness.Session](t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
	l.down.Store(true)
	l.cut()
	// its lease is lost
	_ = ended(t, s.Context())
	by := must[uint64](t)(w.bus.Leases.Ticket(w.ctx, me, 0))
	newer := strconv.FormatUint(by, 10)
	must[*buslease.Lease](t)(w.bus.Leases.Acquire(w.ctx, events.HarnessLeaseKey(me, newer),
		[]byte(`{"id":"`+me+`","incarnation":`+newer+`,"state":"ready"}`), time.Minute))
	l.down.Store(false)
	w.wantReplaced(old, newer)
}

// TestAnIncarnationOfItsOwnIsNoSuccessor (R7): a newer process has drawn an incarnation and left, so a process that
// starts over looks for its successor. It finds one of its own, or an older one, and continues.
func TestAnIncarnationOfItsOwnIsNoSuccessor(t *testing.T) {
	for name, begin := range map[string]func(w *world) *harness.Harness{
		"recovery took a session for its own": func(w *world) *harness.Harness {
			h := w.connect()
			s := must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			first, ahead := h.Incarnation(), w.inTheWay(4)
			w.dropLease(h)
			natstest.Until(w.t, "the next incarnation to be drawn", func() bool {
				return session.Older(ahead, w.drawn())
			})
			w.append("s", events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost,
				Incarnation: first, SupersededBy: w.drawn()})
			natstest.Until(w.t, "the fence to be noticed", func() bool { return s.Context().Err() != nil })
			return h
		},
		"an older process has a lease": func(w *world) *harness.Harness {
			must[*harness.Session](w.t)(w.connect().Open(w.ctx, "older", harness.OpenOptions{}))
			return w.connect()
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := begin(w)
			must[*harness.Session](t)(h.Open(w.ctx, "kept", harness.OpenOptions{}))
			other := w.connect()
			check(t, other.Close(w.ctx))
			w.dropLease(h)
			natstest.Until(t, "the process to have started over, or to end", func() bool {
				return session.Older(other.Incarnation(), h.Incarnation()) || h.Context().Err() != nil
			})
			check(t, context.Cause(h.Context()))
			w.until("kept", "its session to be claimed again", func(st *session.State) bool { return st.Epoch > 1 })
		})
	}
}
