// Package gather has what many hand in at the same time travel together: the first sets out at once, and what comes while it
// is under way sets out when that is back, as one. So nobody waits for company, and under load there is company.
//
//	Join a ──▶ [a] under way ─────────────▶ back
//	Join b ─────▶ waits ┐                    │
//	Join c ───────▶ waits ┴──────────────────▶ [b c] under way ──▶ …
//
// Promises: things set out in the order in which they were handed in, but for those whose key is taken in the same flight,
// which wait for the next; each sets out once or, if it was taken back before, never; there is one flight at a time.
package gather

import "sync"

// Gatherer sends what was handed in. Its fields are set before the first Join; all methods may be called at the same time.
type Gatherer[T any] struct {
	// Fly sends a flight, of one or more, and returns when it is over. It is called by one goroutine at a time.
	Fly func([]T)
	// Key is what no two things of a flight may share.
	Key func(T) string
	// Size is what a thing weighs, in the unit of SizeMax.
	Size func(T) int
	// CountMax and SizeMax bound a flight; one thing goes whatever it weighs.
	CountMax, SizeMax int

	mu      sync.Mutex
	waiting []*place[T]
	flying  bool
}

// place is one thing in the queue.
type place[T any] struct {
	thing T
	gone  bool // it has set out
}

// Join hands a thing in. What it returns takes the thing back, and says whether that was in time.
func (g *Gatherer[T]) Join(thing T) (leave func() bool) {
	p := &place[T]{thing: thing}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, p)
	if !g.flying {
		g.flying = true
		go g.run()
	}
	return func() bool { return g.leave(p) }
}

func (g *Gatherer[T]) leave(p *place[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.gone {
		return false
	}
	for i, q := range g.waiting {
		if q == p {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return true
		}
	}
	return true // a second time
}

// run sends flights until nothing waits.
func (g *Gatherer[T]) run() {
	for {
		flight := g.board()
		if len(flight) == 0 {
			return
		}
		g.Fly(flight)
	}
}

// board takes the next flight from the queue; none: this was the last.
func (g *Gatherer[T]) board() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	var flight []T
	keys, size := make(map[string]bool, min(len(g.waiting), g.CountMax)), 0
	left := g.waiting[:0]
	for i, p := range g.waiting {
		k := g.Key(p.thing)
		if keys[k] {
			left = append(left, p)
			continue
		}
		size += g.Size(p.thing)
		if len(flight) > 0 && (len(flight) == g.CountMax || size > g.SizeMax) {
			left = append(left, g.waiting[i:]...)
			break
		}
		keys[k], p.gone = true, true
		flight = append(flight, p.thing)
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	g.flying = len(flight) > 0
	return flight
}
