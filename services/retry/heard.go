package retry

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// heardMax sessions are remembered apart. Past it all count as heard of at that instant, which makes a stall late, not
// false.
const heardMax = 200_000

// A process that stood still for longer than standstillMin has heard nobody meanwhile: it was stopped, or had no processor.
const (
	standstillMin = 2 * time.Second
	beatEvery     = 500 * time.Millisecond
)

// heard is when sessions were last heard of, beside the log, by this process's clock.
type heard struct {
	mu    sync.Mutex
	since time.Time // all count as heard of then: before, nobody listened
	last  map[events.Ref]time.Time
	beat  time.Time // when this process was last seen to run
}

func newHeard(now time.Time) *heard {
	return &heard{since: now, last: map[events.Ref]time.Time{}, beat: now}
}

// runs notes that this process does. After a standstill all count as heard of: their pings lie unread.
func (h *heard) runs(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awake(now)
}

func (h *heard) awake(now time.Time) {
	if now.Sub(h.beat) > standstillMin {
		clear(h.last)
		h.since = now
	}
	h.beat = now
}

func (h *heard) note(r events.Ref, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.last) >= heardMax {
		clear(h.last)
		h.since = now
	}
	h.last[r] = now
}

// all counts every session as heard of.
func (h *heard) all(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.last)
	h.since = now
}

func (h *heard) of(r events.Ref, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awake(now)
	if at, ok := h.last[r]; ok {
		return at
	}
	return h.since
}

// link is this process's connection to the broker.
type link struct {
	mu    sync.Mutex
	known atomic.Uint64 // how often it was restored, as far as all has been done about it
}

// restored calls back when the connection was restored since the last time, n times by now. Nobody else gets past it before
// that is done: of what came due meanwhile the first look may not be ahead of it.
func (l *link) restored(n uint64, back func()) {
	if l.known.Load() == n {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.Load() != n {
		back()
		l.known.Store(n)
	}
}

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
