package retry

import (
	"maps"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits for retries that came due while no process was active. A retry that came due at most overdueMin before the
// process became active is not limited.
const (
	overdueMin   = 5 * time.Second
	backlogEvery = 10 * time.Millisecond // 100 a second (T14)
	backlogMax   = 100_000               // retries that have a place; the others wait for the next walk
	backlogLater = 30 * time.Second
	placeKept    = 2 * time.Minute // after its instant; longer than the loop decides ahead
)

// backlog spreads overdue retries: it gives each one an instant, which is its place. All instants are the broker's. A
// process that takes over gives new places, so pace need not be stored.
type backlog struct {
	mu     sync.Mutex
	active time.Time // since this instant the process is active
	next   time.Time
	places map[events.Ref]time.Time // includes places of the last placeKept
	swept  time.Time
}

func newBacklog() *backlog { return &backlog{places: map[events.Ref]time.Time{}} }

func (p *backlog) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = now
}

func (p *backlog) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.places)
	p.next, p.swept = time.Time{}, time.Time{}
}

// place returns the instant at which a retry that was due may be requested: now or later. The place of a session stays
// the same until its instant has passed, although the loop decides ahead and each walk asks again.
func (p *backlog) place(r events.Ref, due, now time.Time) time.Time {
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
	if at.After(now) && len(p.places) >= backlogMax {
		return now.Add(backlogLater)
	}
	p.next = at.Add(backlogEvery)
	if at.After(now) {
		p.places[r] = at
	}
	return at
}

// sweep removes places whose instant passed more than placeKept ago. It runs at most once per placeKept.
func (p *backlog) sweep(now time.Time) {
	if now.Sub(p.swept) < placeKept {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.places, func(_ events.Ref, at time.Time) bool { return now.Sub(at) > placeKept })
}
