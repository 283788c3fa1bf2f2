package ledger

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// gate limits the requests that do expensive work, and those that wait for it. An asker has a part of both, and askers
// take turns. Requests without an asker are those of a cell without users: they have no part of their own.
type gate struct {
	places, waits int    // requests that work, and that wait
	each, queue   int    // of them those of one asker
	busy          string // the text of a refusal

	mu      sync.Mutex
	working map[events.Asker]int
	total   int       // of working
	waiting []*waiter // the next one first
}

// waiter is a request that waits for a place.
type waiter struct {
	who   events.Asker
	place chan struct{} // closed when the request has a place
}

// newGate returns a gate in which each asker has half of the places, and a quarter of the queue.
func newGate(places, waits int, busy string) *gate {
	return &gate{places: places, waits: waits, each: max(1, places/2), queue: max(1, waits/4), busy: busy,
		working: map[events.Asker]int{}}
}

// enter waits until a request may work. It refuses the request at once if many wait: each of them has one of the places
// that all requests of this process share.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	w := &waiter{who: rpc.AskerOf(ctx), place: make(chan struct{})}
	g.mu.Lock()
	if !g.mayWait(w.who) && !g.mayWork(w) {
		g.mu.Unlock()
		return nil, events.Unavailable(g.busy)
	}
	g.waiting = append(g.waiting, w)
	g.grant()
	g.mu.Unlock()
	select {
	case <-w.place:
		return func() { g.leave(w.who) }, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	at := slices.Index(g.waiting, w)
	if at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
	g.mu.Unlock()
	// it got a place meanwhile
	if at < 0 {
		g.leave(w.who)
	}
	return nil, events.Unavailable(g.busy)
}

// leave gives back a place.
func (g *gate) leave(who events.Asker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.working[who]--; g.working[who] == 0 {
		delete(g.working, who)
	}
	g.grant()
}

// grant gives the free places to waiting requests. g.mu is held.
func (g *gate) grant() {
	for {
		at := slices.IndexFunc(g.waiting, g.mayWork)
		if at < 0 {
			return
		}
		w := g.waiting[at]
		g.waiting = slices.Delete(g.waiting, at, at+1)
		// the other requests of this asker wait behind those of others
		slices.SortStableFunc(g.waiting, func(a, b *waiter) int { return turn(w.who, a) - turn(w.who, b) })
		g.total, g.working[w.who] = g.total+1, g.working[w.who]+1
		close(w.place)
	}
}

// turn orders waiting requests after one of this asker got a place.
func turn(served events.Asker, w *waiter) int {
	if w.who == served {
		return 1
	}
	return 0
}

// mayWork reports whether a place is free for a request. g.mu is held.
func (g *gate) mayWork(w *waiter) bool {
	return g.total < g.places && (w.who.Class == "" || g.working[w.who] < g.each)
}

// mayWait reports whether another request of an asker may wait. g.mu is held.
func (g *gate) mayWait(who events.Asker) bool {
	own := 0
	for _, w := range g.waiting {
		if w.who == who {
			own++
		}
	}
	return len(g.waiting) < g.waits && (who.Class == "" || own < g.queue)
}
