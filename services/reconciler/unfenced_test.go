package reconciler

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// leftWithChild has a process open the session root, with a call that waits for the session kid, which names a root.
// The returned reconciler takes the process for dead.
func (c *cell) leftWithChild(root string) *Reconciler {
	c.t.Helper()
	p := c.harness("h", "ready", ttlLong)
	p.open("root", 1)
	p.append("kid", events.SessionOpened{Incarnation: p.incarnation, Parent: "root", ParentCall: "c0", Root: root},
		events.TurnStarted{Turn: "k1", Cause: events.CauseMessage, Synthetic: true},
		events.ToolStarted{Call: "k", Turn: "k1", Name: "bash"})
	r := c.recovering("h", p.incarnation)
	r.children.record(c.state("h", "kid"))
	r.children.setWhole(true)
	return r
}

// TestPassFencesBelow: a pass decides nothing about a session while a session below it, of a dead owner, is not fenced:
// its process may only be asleep, and store another outcome than the one of the parent's call. This holds for a pass
// over one session (`holdfast sweep h/root`), and for a child that names another root than its parent's.
func TestPassFencesBelow(t *testing.T) {
	for name, x := range map[string]struct{ scope, root string }{
		"one session": {"root", "root"}, "another root": {"", "elsewhere"}} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			r := c.leftWithChild(x.root)
			natstest.Until(t, "the documents", func() bool {
				s, err := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: "root"})
				k, errK := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: "kid"})
				return err == nil && errK == nil && len(s.Tools) == 1 && len(k.Tools) == 1
			})
			// a child of another root is fenced on its own, and its parent waits for the next pass
			for range 2 {
				if err := r.newPass(events.Ref{Harness: "h", Session: x.scope}).run(c.ctx); err != nil {
					t.Fatal(err)
				}
				natstest.Until(t, "the documents", func() bool {
					root, err := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: "root"})
					kid, errKid := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: "kid"})
					return err == nil && errKid == nil && root.Seq == c.state("h", "root").Seq &&
						kid.Seq == c.state("h", "kid").Seq
				})
			}
			c.fencedFirst("h", "root", "kid")
		})
	}
}

// TestParentOfAnUnfencedChildInAPass: the child's fence was not written, because the broker was away, or because its
// process won ten races. The pass decides nothing about the parent, which is no failure, and another pass follows.
func TestParentOfAnUnfencedChildInAPass(t *testing.T) {
	c := start(t)
	r := c.leftWithChild("root")
	x := r.newPass(events.Ref{Harness: "h"})
	for _, name := range []string{"root", "kid"} {
		x.snapshot.put(c.state("h", name))
	}
	root := events.Ref{Harness: "h", Session: "root"}
	x.snapshot.children[root] = []events.Ref{{Harness: "h", Session: "kid"}}
	// as pass.tree does when the fence of the kid has failed
	x.fence(c.ctx, c.state("h", "root"))
	x.settle(c.ctx, x.snapshot.get(root))
	if len(c.state("h", "root").Tools) == 0 && c.state("h", "kid").Owned {
		t.Error("root's call is closed, and the kid is not fenced")
	}
	if x.failed > 0 || r.plan.planned("h").IsZero() {
		t.Errorf("%d sessions count as failed; the next pass is planned for %s", x.failed, r.plan.planned("h"))
	}
}

// TestUnreadableChildInAPass: a pass cannot read the document of a child. It fences the parent, which another process
// can claim, and ends no call that may wait for the child.
func TestUnreadableChildInAPass(t *testing.T) {
	c := start(t)
	p := c.harness("h", "ready", ttlLong)
	p.open("root", 1)
	p.append("kid", events.SessionOpened{Incarnation: p.incarnation, Parent: "root", ParentCall: "c0", Root: "root"},
		events.TurnStarted{Turn: "k1", Cause: events.CauseMessage, Synthetic: true},
		events.ToolStarted{Call: "k", Turn: "k1", Name: "bash"})
	kid := events.Ref{Harness: "h", Session: "kid"}
	natstest.Until(t, "the documents", func() bool {
		_, err := c.b.KV.Load(c.ctx, kv.State, events.SessionKey(events.Ref{Harness: "h", Session: "root"}))
		e, errK := c.b.KV.Load(c.ctx, kv.State, events.SessionKey(kid))
		if err != nil || errK != nil {
			return false
		}
		st, err := session.Decode(e.Value)
		if err != nil || len(st.Tools) != 1 {
			return false
		}
		_, err = c.b.KV.Store(c.ctx, kv.State, events.SessionKey(kid), []byte(`{"v":1,"seq":`), e.Rev)
		return err == nil
	})
	r := c.recovering("h", p.incarnation)
	r.children.record(c.state("h", "kid"))
	r.children.setWhole(true)
	if err := r.newPass(events.Ref{Harness: "h"}).run(c.ctx); err != nil {
		t.Fatal(err)
	}
	root := c.state("h", "root")
	if len(root.Tools) == 0 {
		t.Errorf("root's call is closed: %v, while the kid is %+v", root.LastTurn, c.state("h", "kid").Turn)
	}
	if held := []events.WaitFor{{Call: "c0", Child: "kid"}}; root.Owned || !slices.Equal(root.WaitsFor, held) {
		t.Errorf("root is owned: %v, and waits for %v, want %v", root.Owned, root.WaitsFor, held)
	}
}
