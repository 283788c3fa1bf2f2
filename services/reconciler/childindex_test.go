package reconciler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestChildIndexForgets: an entry that two walks over all documents have not found is dropped, and none that one of
// them has found.
func TestChildIndexForgets(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	r, err := New(b, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	revs := map[events.Ref]uint64{}
	const children = 20
	for i := range children {
		ref := events.Ref{Harness: "h", Session: fmt.Sprint("child", i)}
		s := session.New(ref)
		s.Epoch, s.Seq, s.Parent, s.ParentCall, s.Root = 1, uint64(i+1), "parent", fmt.Sprint("c", i), "parent"
		doc, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if revs[ref], err = b.KV.Store(t.Context(), kv.State, events.SessionKey(ref), doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	known := func() (kids, parents, waiting int) {
		for _, of := range r.children.children {
			kids += len(of)
		}
		return kids, len(r.children.parents), len(r.children.waiting)
	}
	walk := func() {
		t.Helper()
		if err := r.passOverAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	walk()
	r.children.awaits(events.Ref{Harness: "h", Session: "parent"}, true)
	walk()
	if kids, parents, waiting := known(); kids != children || parents != children || waiting != 1 {
		t.Fatalf("after two walks: %d children, %d with parents, %d waiting", kids, parents, waiting)
	}
	for ref, rev := range revs {
		if err := b.KV.Delete(t.Context(), kv.State, events.SessionKey(ref), rev); err != nil {
			t.Fatal(err)
		}
	}
	walk()
	walk()
	if kids, parents, waiting := known(); kids+parents+waiting > 0 || len(r.children.children) > 0 {
		t.Errorf("of what is gone there are: %d children, %d with parents, %d waiting", kids, parents, waiting)
	}
}

// TestAParentOfManyIsDecidedInAPass: outside of a pass, a decision reads a limited number of children, and a child of
// more that settles is a reason for one pass over the harness, not for a further decision.
func TestAParentOfManyIsDecidedInAPass(t *testing.T) {
	for more, many := range []bool{false, true} {
		r, err := New(natstest.Bus(t, natstest.Start(t)), quick(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		r.leases.start(time.Now())
		r.children.setWhole(true)
		parent := owned("parent", "")
		parent.Owned, parent.Turn = false, nil
		of := func(parent string, n int) (child *session.State) {
			for i := range n {
				child = owned(fmt.Sprint(parent, "-", i), "")
				child.Owned, child.Turn, child.Parent, child.ParentCall = false, nil, parent, "c0"
				r.children.record(child)
			}
			return child
		}
		last := of("parent", childrenMax+more)
		if _, err := r.decide(t.Context(), parent, events.Clock{Now: time.Now()}, nil); err != nil {
			t.Fatal(err)
		}
		if planned := !r.plan.planned("h").IsZero(); planned != many || many && !r.children.isAwaiting(parent.Ref()) {
			t.Errorf("%d more than %d children: a pass is planned: %v", more, childrenMax, planned)
		}
		r.plan.popDue(time.Now())
		r.plan.done("h")
		r.children.awaits(parent.Ref(), true)
		r.notifyParent(t.Context(), last)
		if planned := !r.plan.planned("h").IsZero(); planned != many {
			t.Errorf("%d more than %d children, and one settles: a pass is planned: %v", more, childrenMax, planned)
		}
	}
}

// TestALargeTreeEndsWithItsContext: no session of a tree is decided with its children after the context has ended.
func TestALargeTreeEndsWithItsContext(t *testing.T) {
	r, err := New(natstest.Bus(t, natstest.Start(t)), quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	p := r.newPass(events.Ref{Harness: "h"})
	parent, child := owned("parent", "17"), owned("child", "17")
	child.Parent, child.ParentCall = "parent", "c0"
	p.snapshot.put(child)
	p.snapshot.children[parent.Ref()] = []events.Ref{child.Ref()}
	ended, end := context.WithCancel(t.Context())
	defer end()
	for _, want := range []error{nil, context.Canceled} {
		f := p.treeAt(atMoment(events.Clock{Now: time.Now()}), nil)
		if in, err := f.input(ended, parent, Owner{Liveness: Dead}, 0); !errors.Is(err, want) || want == nil &&
			(err != nil || len(in.Children) != 1) {
			t.Errorf("%d children, %v, want %v", len(in.Children), err, want)
		}
		end()
	}
}
