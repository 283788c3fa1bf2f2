package control

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
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

// Heard is when sessions were last heard of beside the log, by this process's clock. It is all that a decider knows that
// is not in the log. Losing it is harmless: whoever begins to listen counts all as heard of, and so does who could not hear,
// because the broker was away or this process stood still.
type Heard struct {
	bus  *bus.Bus
	link Link

	mu    sync.Mutex
	since time.Time // all count as heard of then: before, nobody listened
	last  map[events.Ref]time.Time
	beat  time.Time // when this process was last seen to run
}

// NewHeard counts all sessions as heard of now.
func NewHeard(b *bus.Bus) *Heard { return newHeard(b, time.Now()) }

func newHeard(b *bus.Bus, now time.Time) *Heard {
	return &Heard{bus: b, since: now, last: map[events.Ref]time.Time{}, beat: now}
}

// Listen hears pings until ctx ends; it returns when the broker knows. An error is one that trying again will not mend.
func (h *Heard) Listen(ctx context.Context) error {
	err := h.bus.OnProgress(ctx, func(r events.Ref) { h.note(r, time.Now()) })
	h.all(time.Now())
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Beat lets a standstill of this process be seen, until ctx ends.
func (h *Heard) Beat(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			h.runs(now)
		case <-ctx.Done():
			return nil
		}
	}
}

// Of is when a session was last heard of, by the clock of whom it is now. After the broker was away all count as heard of:
// their pings may have been lost.
func (h *Heard) Of(r events.Ref, now time.Time) time.Time {
	here := time.Now()
	h.link.Restored(h.bus.Reconnects(), func() bool { h.all(here); return true })
	return now.Add(-here.Sub(h.of(r, here)))
}

// runs notes that this process does. After a standstill all count as heard of: their pings lie unread.
func (h *Heard) runs(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awake(now)
}

func (h *Heard) awake(now time.Time) {
	if now.Sub(h.beat) > standstillMin {
		clear(h.last)
		h.since = now
	}
	h.beat = now
}

func (h *Heard) note(r events.Ref, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.last) >= heardMax {
		clear(h.last)
		h.since = now
	}
	h.last[r] = now
}

// all counts every session as heard of.
func (h *Heard) all(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.last)
	h.since = now
}

func (h *Heard) of(r events.Ref, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awake(now)
	if at, ok := h.last[r]; ok {
		return at
	}
	return h.since
}

// Link is this process's connection to the broker.
type Link struct {
	mu    sync.Mutex
	known atomic.Uint64 // how often it was restored, as far as all has been done about it
}

// Restored calls back when the connection was restored since the last time, n times by now ([bus.Bus.Reconnects]). Nobody
// else gets past it before that is done: of what came due meanwhile the first look may not be ahead of it. What back could
// not do is left to whoever looks next.
func (l *Link) Restored(n uint64, back func() (done bool)) {
	if l.known.Load() == n {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.Load() != n && back() {
		l.known.Store(n)
	}
}
