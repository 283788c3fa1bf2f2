package harness

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// restored makes the session what it is when the broker was restored from an older copy, and another writer has stored
// a commit at the place of the last one that this process has folded.
func (x *inside) restored() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.last.First, x.s.proved = "lost", math.MaxUint64
}

// length is how many commits the log has of the session.
func (x *inside) length() int {
	x.t.Helper()
	cs, err := x.peer.Log.Read(x.ctx, x.s.ref, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	return len(cs)
}

// TestNothingIsDoneBehindAnotherLog: after the connection was restored, a session is compared with the log before
// anything is appended to it, read, or taken in.
func TestNothingIsDoneBehindAnotherLog(t *testing.T) {
	for name, do := range map[string]func(x *inside) error{
		"append": func(x *inside) error {
			return x.s.Append(x.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
		},
		"read all": func(x *inside) error {
			x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
			return x.s.catchUp(x.ctx)
		},
		"read one": func(x *inside) error {
			have := x.s.State().Seq
			return x.s.readTo(x.ctx, x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"}), have)
		},
		"receive": func(x *inside) error {
			last := x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
			if err := x.peer.Log.ScanMessages(x.ctx, last, func(m bus.Message) error {
				x.s.receive(m)
				return nil
			}); err != nil {
				return err
			}
			natstest.Until(x.t, "it to be read", func() bool { return !Reading(x.s) })
			return context.Cause(x.s.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newInside(t)
			before, had := x.s.State(), x.length()
			x.restored()
			err := do(x)
			if !errors.Is(err, ErrFenced) || !errors.Is(context.Cause(x.s.Context()), ErrFenced) || !x.s.isApart() {
				t.Errorf("%v; the session's context ends with %v", err, context.Cause(x.s.Context()))
			}
			if now := x.s.State(); now.Seq != before.Seq {
				t.Errorf("it was at %d and is at %d", before.Seq, now.Seq)
			}
			if name == "append" && x.length() != had {
				t.Errorf("%d commits in the log, want %d", x.length(), had)
			}
		})
	}
}

// TestNotClaimedAgainBehindAShorterLog: the lease is lost because the broker was restored from an older copy. The log
// ends before what the process knows of the session, so the process is fenced: its claim is refused.
func TestNotClaimedAgainBehindAShorterLog(t *testing.T) {
	x := newInside(t, func(c *Config) { c.OnLeaseLoss = LeaseRestart })
	x.s.suspend(x.h.term)
	x.s.mu.Lock()
	// commits that the older copy does not have
	x.s.st.Seq += 5
	x.s.mu.Unlock()
	next, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.s.reclaim(next); !errors.Is(err, ErrFenced) || !x.s.isApart() {
		t.Errorf("claimed again: %v", err)
	}
	if err := x.s.Append(x.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}); !errors.Is(err, ErrFenced) {
		t.Errorf("an append after that: %v", err)
	}
}

// TestADoubtBehindAnotherLog: while the outcome of a claim is in doubt, the broker is restored. The reads of the
// earlier log do not count: the session is read again, and the log says now whether this process owns it.
func TestADoubtBehindAnotherLog(t *testing.T) {
	x := newInside(t)
	d := newSession(x.h, events.Ref{Harness: "laptop", Session: "d"})
	d.st = session.New(d.ref)
	facts := []events.Fact{events.SessionOpened{Incarnation: x.h.term.incarnation}}
	evs, after := d.envelop(x.h.term, facts)
	if _, err := x.peer.Log.Append(x.ctx, d.ref, events.WriterHarness, after, evs); err != nil {
		t.Fatal(err)
	}
	if err := d.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	d.last.First, d.proved = "lost", math.MaxUint64
	claim, behind := d.envelop(x.h.term, []events.Fact{events.TurnStarted{Turn: "t", Cause: events.CauseMessage}})
	if err := d.settleDoubt(x.h.term, &doubtError{evs: claim, after: behind}); err != nil {
		t.Fatal(err)
	}
	if d.isApart() || d.State().Seq != d.last.Seq || d.last.First != evs[0].ID {
		t.Errorf("owned %t, at %d, last %+v, want %s", !d.isApart(), d.State().Seq, d.last, evs[0].ID)
	}
}

// TestTheLogIsComparedOnce: after the connection was restored, the log is asked for a session's last commit once: an
// append, a read, and the first load are each enough.
func TestTheLogIsComparedOnce(t *testing.T) {
	x := newInside(t)
	opened, err := x.peer.Log.Commit(x.ctx, x.s.State().Seq)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(x.s.State())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.peer.KV.Store(x.ctx, kv.State, events.SessionKey(x.s.ref), doc, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func(s *Session) error
	}{
		{"load", func(s *Session) error { _, err := s.load(x.ctx); return err }},
		{"read", func(s *Session) error { return s.catchUp(x.ctx) }},
		{"append", func(s *Session) error {
			evs, after := s.envelop(x.h.term, []events.Fact{events.TurnStarted{Turn: "t", Cause: events.CauseMessage}})
			_, err := s.storeOnce(x.ctx, after, evs)
			return err
		}},
	} {
		// no follower of the log knows it
		s := newSession(x.h, x.s.ref)
		s.st = session.New(s.ref)
		s.fold([]events.Commit{opened}, 0)
		s.proved = math.MaxUint64
		if err := c.do(s); err != nil || s.proved != x.h.bus.Reconnects() {
			t.Errorf("%s: %v; compared when the connection had been restored %d times", c.name, err, s.proved)
		}
	}
}
