package reconciler

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// childOf returns a session of an incarnation for which call c0 of another one waits.
func childOf(parent *session.State, name, incarnation string) *session.State {
	s := owned(name, incarnation)
	s.Parent, s.ParentCall, s.Root = parent.Session, "c0", "root"
	return s
}

// treeOf returns a decision of a pass that has listed a session with its child.
func treeOf(t *testing.T, r *Reconciler, parent, child *session.State) *tree {
	t.Helper()
	p := r.newPass(events.Ref{Harness: "h"})
	p.snapshot.put(parent)
	p.snapshot.put(child)
	p.snapshot.children[parent.Ref()] = []events.Ref{child.Ref()}
	return p.treeAt(mustNow(t, r), nil)
}

// TestWhoWaitsForChildren: the children of a session matter only to calls that no living process has: otherwise a child
// that is not fenced yet holds nothing up.
func TestWhoWaitsForChildren(t *testing.T) {
	r := cutOff(t, true)
	root := owned("root", "18")
	left := owned("root", "18")
	// the process has claimed the session, and has not adopted the call
	left.Epoch++
	for name, x := range map[string]struct {
		parent *session.State
		owner  Liveness
		depth  int
		waits  bool
	}{
		"a living owner's call":            {parent: root, owner: Alive},
		"a dead owner's call":              {parent: root, owner: Dead, waits: true},
		"a call that was left":             {parent: left, owner: Alive, waits: true},
		"below more sessions than a chain": {parent: root, owner: Dead, depth: treeDepthMax},
	} {
		// of the process that is gone
		f := treeOf(t, r, x.parent, childOf(x.parent, "kid", "17"))
		_, err := f.input(t.Context(), x.parent, Owner{Liveness: x.owner}, x.depth)
		if errors.Is(err, errUnfencedChild) != x.waits || !x.waits && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChildWithoutAnOutcome: a session is not decided while the owner of a child is not known, or a child of its child
// cannot be read.
func TestChildWithoutAnOutcome(t *testing.T) {
	r := cutOff(t, true)
	root := owned("root", "17")
	unknown := treeOf(t, r, root, childOf(root, "kid", "99"))
	kid := childOf(root, "kid", "17")
	kid.Owned = false
	unreadable := treeOf(t, r, root, kid)
	unreadable.snapshot.children[kid.Ref()] = []events.Ref{{Harness: "h", Session: "unread"}}
	for name, f := range map[string]*tree{"the owner of the child": unknown, "a child of the child": unreadable} {
		in, err := f.input(t.Context(), root, Owner{Liveness: Dead}, 0)
		if err == nil || errors.Is(err, errUnfencedChild) {
			t.Errorf("%s: %+v, %v", name, in.Children, err)
		}
	}
}
