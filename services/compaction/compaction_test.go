package compaction

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestSent: messages are handed out one after the other, the first one in the commit that accepts it (C4, C7).
func TestSent(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	for i := range 3 {
		if _, err := c.ask("send", message(r, fmt.Sprint("m", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		id := fmt.Sprint("m", i)
		s := c.until(r, id+" to be handed out", func(s *session.State) bool {
			return s.Pending.Turn != nil && s.Pending.Turn.Message == id
		})
		if len(s.Queue) != 3-i {
			t.Errorf("%s: the queue is %v", id, s.Queue)
		}
		turn := s.Pending.Turn.ID
		h.append("s", events.TurnStarted{Turn: turn, Cause: events.CauseMessage}, events.TurnCompleted{Turn: turn})
	}
}

// TestCompactedFirst: at the threshold a message waits for a compaction and follows it (C4).
func TestCompactedFirst(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 800, nil)
	if _, err := c.ask("send", message(r, "m1")); err != nil {
		t.Fatal(err)
	}
	s := c.until(r, "a compaction", (*session.State).CompactionOpen)
	if s.Pending.Turn != nil || s.Commits != 2 {
		t.Errorf("%+v after %d commits", s.Pending.Turn, s.Commits)
	}
	h.append("s", events.CompactionStarted{Compaction: s.Compaction.ID})
	h.append("s", events.CompactionCompleted{Compaction: s.Compaction.ID})
	s = c.until(r, "the follow-up", func(s *session.State) bool { return s.Pending.Turn != nil })
	if s.Pending.Turn.Message != "m1" || s.Pending.Turn.Cause != events.CauseFollowUp {
		t.Errorf("%+v", s.Pending.Turn)
	}
}

// TestTwoReplicas: of two services that decide about the same sessions, each fact is appended once.
func TestTwoReplicas(t *testing.T) {
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s))
	c.compaction(c.b, Default())
	c.compaction(natstest.Bus(t, s), Default())
	h := c.harness("h")
	const sessions, messages = 20, 5
	var all sync.WaitGroup
	for n := range sessions {
		r := h.open(fmt.Sprint("s", n), 800, nil)
		all.Go(func() {
			for i := range messages {
				if _, err := c.ask("send", message(r, fmt.Sprint("m", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for n := range sessions {
		name := fmt.Sprint("s", n)
		st := c.until(h.ref(name), "a compaction", (*session.State).CompactionOpen)
		h.append(name, events.CompactionStarted{Compaction: st.Compaction.ID},
			events.CompactionCompleted{Compaction: st.Compaction.ID})
	}
	for n := range sessions {
		name := fmt.Sprint("s", n)
		for i := range messages {
			st := c.until(h.ref(name), "the next message", func(s *session.State) bool { return s.Pending.Turn != nil })
			if want := fmt.Sprint("m", i); st.Pending.Turn.Message != want || st.Ignored.Count != 0 {
				t.Fatalf("%s: %s is handed out, want %s; %d facts did not count", name, st.Pending.Turn.Message, want,
					st.Ignored.Count)
			}
			h.append(name, events.TurnStarted{Turn: st.Pending.Turn.ID, Cause: st.Pending.Turn.Cause},
				events.TurnCompleted{Turn: st.Pending.Turn.ID})
		}
	}
}

// TestAgainAfterAWhile: a compaction with a transient failure is requested again by its alarm (C8).
func TestAgainAfterAWhile(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 800, nil)
	if _, err := c.ask("send", message(r, "m1")); err != nil {
		t.Fatal(err)
	}
	first := c.until(r, "a compaction", (*session.State).CompactionOpen).Compaction.ID
	h.append("s", events.CompactionStarted{Compaction: first},
		events.CompactionFailed{Compaction: first, Error: events.Failure{Kind: "server_error"}})
	failed := c.state(r).LastCompaction.At
	again := c.until(r, "another attempt", (*session.State).CompactionOpen)
	if again.Compaction.ID == first || again.Compaction.Message != "m1" ||
		again.Compaction.Since.Sub(failed) < 2*time.Second {
		t.Errorf("%+v, %v after the failure", again.Compaction, again.Compaction.Since.Sub(failed))
	}
}

// TestStalled: if a harness hangs in a compaction, the compaction fails after stall_after (T18, V14). A ping counts as
// progress.
func TestStalled(t *testing.T) {
	c := start(t)
	service, _ := c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 800, &events.PolicyPatch{StallAfterS: events.Set[int64](1)})
	if _, err := c.ask("send", message(r, "m1")); err != nil {
		t.Fatal(err)
	}
	first := c.until(r, "a compaction", (*session.State).CompactionOpen).Compaction.ID
	h.append("s", events.CompactionStarted{Compaction: first})
	began := c.state(r).Compaction.Since
	st := c.until(r, "to have failed", func(s *session.State) bool { return s.LastCompaction != nil })
	if l := st.LastCompaction; l.ID != first || l.ErrorKind() != failure.Stalled || l.At.Sub(began) < time.Second {
		t.Errorf("%+v, %v after it began", l, l.At.Sub(began))
	}
	if again := c.until(r, "another attempt", (*session.State).CompactionOpen); again.Compaction.ID == first ||
		again.Compaction.Message != "m1" {
		t.Errorf("%+v", again.Compaction)
	}
	now := time.Now()
	natstest.Until(t, "a sign of life to be heard of", func() bool {
		c.b.Hints.Progress(r)
		return service.activity.Of(r, now).Sub(service.activity.Of(h.ref("another"), now)) > 100*time.Millisecond
	})
}

// idle opens a session that is compacted after an idle second.
func (h *harness) idle(name string, p events.PolicyPatch) events.Ref {
	p.IdleCompactionAfterS = events.Set[int64](1)
	return h.open(name, 300, &p)
}

// TestIdleOneAfterTheOther: idle sessions of a cell are compacted one at a time, the longest idle one first; a session
// that is used again loses its place (C13).
func TestIdleOneAfterTheOther(t *testing.T) {
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s))
	h := c.harness("h")
	var refs []events.Ref
	for i := range 4 {
		refs = append(refs, h.idle(fmt.Sprint("s", i), events.PolicyPatch{}))
	}
	opened := func() (open []string) {
		for _, r := range refs {
			if st := c.state(r); st.Compaction != nil {
				open = append(open, r.Session)
			}
		}
		return open
	}
	natstest.Until(t, "all to be idle for long enough", func() bool {
		now, err := c.b.Clock.Now(c.ctx)
		return err == nil && now.Sub(c.state(refs[3]).LastTurn.At) > time.Second
	})
	cfg := Default()
	cfg.Walk = time.Second
	c.compaction(c.b, cfg)
	c.compaction(natstest.Bus(t, s), cfg)
	for i, r := range refs {
		// a person uses it while another one is compacted
		if i == 2 {
			continue
		}
		st := c.until(r, "its place", (*session.State).CompactionOpen)
		if got := opened(); len(got) != 1 {
			t.Errorf("at once: %v", got)
		}
		if i == 1 {
			h.append("s2", events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
		}
		h.append(r.Session, events.CompactionStarted{Compaction: st.Compaction.ID},
			events.CompactionCompleted{Compaction: st.Compaction.ID})
	}
	if st := c.state(refs[2]); st.LastCompaction != nil || st.Compaction != nil {
		t.Errorf("the one in use was compacted: %+v", st.LastCompaction)
	}
}

// TestIdleClaimOfTheDead: a claim ends with its holder; the compactions that the holder requested still count (C13).
func TestIdleClaimOfTheDead(t *testing.T) {
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s))
	h := c.harness("h")
	first, second := h.idle("s0", events.PolicyPatch{}), h.idle("s1", events.PolicyPatch{})
	dead := natstest.Bus(t, s)
	// without renewal
	_, err := dead.Leases.Acquire(c.ctx, events.ClaimKey(idleClaim), []byte(`{}`), idleClaimTTL)
	c.check(err)
	st := c.state(first)
	_, err = dead.Log.Append(c.ctx, first, events.WriterCompaction, st.Seq,
		[]events.Event{events.New(dead.NewID(), source, first, st.Epoch, time.Now(),
			events.CompactionRequested{Compaction: "k0", Reason: events.CompactIdle})})
	c.check(err)
	c.until(first, "its compaction", (*session.State).CompactionOpen)
	cfg := Default()
	cfg.Walk = time.Second
	c.compaction(c.b, cfg)
	natstest.Until(t, "the claim to be taken over", func() bool {
		e, err := c.b.KV.Load(c.ctx, kv.Leases, events.ClaimKey(idleClaim))
		return err == nil && strings.Contains(string(e.Value), c.b.Instance())
	})
	if c.state(second).Compaction != nil {
		t.Error("the second is compacted while the first still is")
	}
	h.append("s0", events.CompactionStarted{Compaction: "k0"}, events.CompactionCompleted{Compaction: "k0"})
	c.until(second, "its place", (*session.State).CompactionOpen)
}

// commit appends a fact of a service to a session.
func (c *cell) commit(r events.Ref, w events.Writer, f events.Fact) {
	c.t.Helper()
	st := c.state(r)
	_, err := c.b.Log.Append(c.ctx, r, w, st.Seq, []events.Event{events.New(c.b.NewID(),
		events.ServiceSource(string(w), "test"), r, st.Epoch, time.Now(), f)})
	c.check(err)
}

// TestIdleWithoutAnOwner: the idle compaction of a session that has lost its owner takes no place: another session has
// it at once, also if the process that asked for the compaction has died (C13).
func TestIdleWithoutAnOwner(t *testing.T) {
	t.Parallel()
	lost := func(r events.Ref, c *cell, h *harness) {
		c.commit(r, events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost,
			Incarnation: h.incarnation})
		if st := c.state(r); !st.CompactionOpen() || st.Owned {
			t.Errorf("compaction %+v, owned %v", st.Compaction, st.Owned)
		}
	}
	cfg := Default()
	cfg.Walk = time.Second
	t.Run("lost after it was asked for", func(t *testing.T) {
		t.Parallel()
		c := start(t)
		h := c.harness("h")
		first := h.idle("s0", events.PolicyPatch{})
		c.compaction(c.b, cfg)
		c.until(first, "its place", (*session.State).CompactionOpen)
		second := h.idle("s1", events.PolicyPatch{})
		lost(first, c, h)
		c.until(second, "the place", (*session.State).CompactionOpen)
	})
	t.Run("lost before another process has the claim", func(t *testing.T) {
		t.Parallel()
		c := start(t)
		h := c.harness("h")
		first, second := h.idle("s0", events.PolicyPatch{}), h.idle("s1", events.PolicyPatch{})
		c.commit(first, events.WriterCompaction, events.CompactionRequested{Compaction: "k0",
			Reason: events.CompactIdle})
		lost(first, c, h)
		natstest.Until(t, "the document says so", func() bool {
			e, err := c.b.KV.Load(c.ctx, kv.State, events.SessionKey(first))
			if err != nil {
				return false
			}
			st, err := session.Decode(e.Value)
			return err == nil && st.CompactionOpen() && !st.Owned
		})
		c.compaction(c.b, cfg)
		c.until(second, "the place", (*session.State).CompactionOpen)
	})
}
