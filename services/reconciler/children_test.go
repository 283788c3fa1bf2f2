package reconciler

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestKinForgets: an entry that two walks over all documents have not found is dropped, and none that one of them has
// found.
func TestKinForgets(t *testing.T) {
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
