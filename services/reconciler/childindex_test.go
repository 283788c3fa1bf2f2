package reconciler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
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

// waiting is a call that was left behind, with the documents of the sessions that it waits for, and a reconciler that
// knows them.
type waiting struct {
	t    *testing.T
	r    *Reconciler
	root *session.State

	mu   sync.Mutex
	read map[string]bool // documents that were read, by request
}

// newWaiting stores children of a session, and as many children of each of these.
func newWaiting(t *testing.T, children, theirs int) *waiting {
	t.Helper()
	s := natstest.Start(t)
	relay := natstest.NewRelay(t, s)
	f := &waiting{t: t, root: owned("root", ""), read: map[string]bool{}}
	b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = relay.URL })
	var err error
	if f.r, err = New(b, quick(), zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	f.r.leases.start(time.Now())
	f.r.children.setWhole(true)
	f.root.Owned, f.root.Turn = false, nil
	for i := range children {
		child := f.store(b, fmt.Sprint("child-", i), f.root.Session)
		for k := range theirs {
			f.store(b, fmt.Sprint(child, "-", k), child)
		}
	}
	relay.Spoil(func(subject, body string) bool {
		if subject == "$JS.API.STREAM.MSG.GET.KV_hf_state" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.read[body] = true
		}
		return false
	})
	return f
}

// store stores the document of a session that a call waits for, and that has such a call itself.
func (f *waiting) store(b *bus.Bus, name, parent string) string {
	f.t.Helper()
	s := owned(name, "")
	s.Owned, s.Turn, s.Parent, s.ParentCall, s.Root = false, nil, parent, "c0", f.root.Session
	doc, err := s.Encode()
	if err == nil {
		_, err = b.KV.Store(f.t.Context(), kv.State, events.SessionKey(s.Ref()), doc, 0)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.r.children.record(s)
	return name
}

// reads returns how many documents were read.
func (f *waiting) reads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.read)
}

// TestReadsOfADecision: a decision outside of a pass reads at most childrenMax documents, of children and of theirs
// together. With more it ends, and reads nothing more. A child that settles is no reason to read a parent with more.
func TestReadsOfADecision(t *testing.T) {
	for _, x := range []struct{ children, theirs, want int }{
		{childrenMax, 0, childrenMax},
		{childrenMax + 1, 0, 0},
		{10 * childrenMax, 0, 0},
		// four, and three of each
		{4, childrenMax/4 - 1, childrenMax},
		// four, and four of each: those of the last one are not read
		{4, childrenMax / 4, childrenMax},
		{2, 10 * childrenMax, 2},
	} {
		f := newWaiting(t, x.children, x.theirs)
		if _, err := f.r.decide(t.Context(), f.root, events.Clock{Now: time.Now()}, nil); err != nil {
			t.Fatal(err)
		}
		if n := f.reads(); n != x.want {
			t.Errorf("%d children with %d each: %d documents were read, want %d", x.children, x.theirs, n, x.want)
		}
	}
	f := newWaiting(t, childrenMax+1, 0)
	f.r.children.awaits(f.root.Ref(), true)
	settled := owned("child-0", "")
	settled.Turn, settled.Parent, settled.ParentCall = nil, f.root.Session, "c0"
	f.r.notifyParent(t.Context(), settled)
	if n := f.reads(); n != 0 || f.r.plan.planned("h").IsZero() {
		t.Errorf("a child of many has settled: %d documents were read, a pass is planned for %s", n,
			f.r.plan.planned("h"))
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
