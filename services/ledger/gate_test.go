package ledger

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// waiters returns how many requests wait.
func (g *gate) waiters() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// occupy takes n places without an asker, and returns the function that gives them back.
func occupy(t *testing.T, g *gate, n int) (leave func()) {
	t.Helper()
	var all []func()
	for range n {
		one, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// person returns a context of a request of this person.
func person(ctx context.Context, id string) context.Context {
	return rpc.WithAsker(ctx, events.Asker{Class: events.ClassPerson, ID: id})
}

// TestAnAskerHasAPartOfAGate: a person with many requests has one of two places and a quarter of the queue; further
// requests are refused. Another person enters at once. Those that wait take turns.
func TestAnAskerHasAPartOfAGate(t *testing.T) {
	g := newGate(2, 16, "busy")
	first, err := g.enter(person(t.Context(), "ann"))
	if err != nil {
		t.Fatal(err)
	}
	type entered struct {
		who   string
		leave func()
	}
	order := make(chan entered, 16)
	wait := func(who string, n int) {
		t.Helper()
		before := g.waiters()
		for range n {
			go func() {
				leave, err := g.enter(person(t.Context(), who))
				if err != nil {
					t.Error(err)
				}
				order <- entered{who, leave}
			}()
		}
		natstest.Until(t, who+" to wait", func() bool { return g.waiters() == before+n })
	}
	wait("ann", 4)
	if leave, err := g.enter(person(t.Context(), "ann")); err == nil {
		leave()
		t.Error("a fifth request of one person waits")
	}
	other, err := g.enter(person(t.Context(), "bob"))
	if err != nil {
		t.Fatalf("another person, while a place is free: %v", err)
	}
	wait("bob", 2)
	wait("eve", 1)
	other()
	// none is of ann, who has a place
	for _, want := range []string{"bob", "eve", "bob"} {
		e := <-order
		if e.who != want {
			t.Errorf("%s enters, want %s", e.who, want)
		}
		e.leave()
	}
	first()
	for range 4 {
		(<-order).leave()
	}
	if g.total != 0 || len(g.working) != 0 || g.waiters() != 0 {
		t.Errorf("left over: %+v", g)
	}
}

// TestAWaiterThatGivesUpKeepsNoPlace: a request whose time ends leaves the queue, also if it got a place meanwhile.
func TestAWaiterThatGivesUpKeepsNoPlace(t *testing.T) {
	g := newGate(1, 4, "busy")
	for range 100 {
		leave := occupy(t, g, 1)
		ctx, cancel := context.WithCancel(person(t.Context(), "ann"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			if mine, err := g.enter(ctx); err == nil {
				mine()
			}
		}()
		natstest.Until(t, "the request to wait", func() bool { return g.waiters() == 1 })
		// the request wakes up
		cancel()
		// it has a place before it looks
		leave()
		<-done
		if g.total != 0 || len(g.working) != 0 || g.waiters() != 0 {
			t.Fatalf("left over: %+v", g)
		}
	}
}
