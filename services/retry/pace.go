package retry

import (
	"maps"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// What came due while nobody was active is spread, and this much before still counts as a fail-over, not as an outage.
const (
	overdueMin = 5 * time.Second
	paceEvery  = 10 * time.Millisecond // a hundred a second (T14)
	paceMax    = 100_000               // that have a place; the rest waits for the next walk
	paceLater  = 30 * time.Second
	placeKept  = 2 * time.Minute // after it has come; longer than a decision is made ahead
)

// pace gives retries that came due while nobody was active their places, one after the other. All instants are the
// broker's. Losing it is harmless: who takes over gives places anew.
type pace struct {
	mu     sync.Mutex
	active time.Time // since when this process is the active one
	next   time.Time
	places map[events.Ref]time.Time // also those that came a short while ago
	swept  time.Time
}

func newPace() *pace { return &pace{places: map[events.Ref]time.Time{}} }

func (p *pace) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = now
}

func (p *pace) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.places)
	p.next, p.swept = time.Time{}, time.Time{}
}

// turn is when a retry that was due then may fire: now, or later. Its place stays the same however often it is looked at:
// what is decided ahead, or again by a walk, asks for it once more before it has come.
func (p *pace) turn(r events.Ref, due, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !due.Before(p.active.Add(-overdueMin)) {
		return now
	}
	if at, ok := p.places[r]; ok {
		return at
	}
	p.sweep(now)
	at := now
	if p.next.After(now) {
		at = p.next
	}
	if at.After(now) && len(p.places) >= paceMax {
		return now.Add(paceLater)
	}
	p.next = at.Add(paceEvery)
	if at.After(now) {
		p.places[r] = at
	}
	return at
}

// sweep forgets places that came long ago, once in a while.
func (p *pace) sweep(now time.Time) {
	if now.Sub(p.swept) < placeKept {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.places, func(_ events.Ref, at time.Time) bool { return now.Sub(at) > placeKept })
}
