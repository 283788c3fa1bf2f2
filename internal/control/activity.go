package control

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// pingsMax limits the sessions whose pings are remembered one by one. Above it all sessions count as heard from at that
// instant. That delays the report of a stall, and never makes a false one.
const pingsMax = 200_000

// A process that did not run for longer than standstillMin received no pings in that time: it was stopped, or had no
// CPU.
const (
	standstillMin = 2 * time.Second
	beatEvery     = 500 * time.Millisecond
)

// Activity knows when each session last sent a ping, by this process's clock. It is the only input of a decider that is
// not in the log. Losing it is harmless: all sessions count as heard from when a process starts to listen, when the
// broker was away, and when the process itself did not run.
type Activity struct {
	bus  *bus.Bus
	link Link

	mu    sync.Mutex
	since time.Time // all sessions count as heard from at this instant
	last  map[events.Ref]time.Time
	beat  time.Time // when this process was last known to run
}

// NewActivity returns an Activity in which all sessions are heard from now.
func NewActivity(b *bus.Bus) *Activity { return newActivity(b, time.Now()) }

func newActivity(b *bus.Bus, now time.Time) *Activity {
	return &Activity{bus: b, since: now, last: map[events.Ref]time.Time{}, beat: now}
}

// Listen subscribes to pings until ctx ends. It returns when the broker has the subscription. An error is permanent.
func (h *Activity) Listen(ctx context.Context) error {
	err := h.bus.Hints.OnProgress(ctx, func(r events.Ref) { h.record(r, time.Now()) })
	h.all(time.Now())
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Beat records that this process runs, until ctx ends, so that a standstill is noticed.
func (h *Activity) Beat(ctx context.Context) error {
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

// Of returns when a session was last heard from, by the clock that reads now. After the broker was away all sessions
// count as heard from, because pings may be lost.
func (h *Activity) Of(r events.Ref, now time.Time) time.Time {
	here := time.Now()
	h.link.Restored(h.bus.Reconnects(), func() bool { h.all(here); return true })
	return now.Add(-here.Sub(h.of(r, here)))
}

// runs records that this process runs. After a standstill all sessions count as heard from: their pings are still
// unread.
func (h *Activity) runs(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordRun(now)
}

func (h *Activity) recordRun(now time.Time) {
	if now.Sub(h.beat) > standstillMin {
		clear(h.last)
		h.since = now
	}
	h.beat = now
}

func (h *Activity) record(r events.Ref, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.last) >= pingsMax {
		clear(h.last)
		h.since = now
	}
	h.last[r] = now
}

// all makes every session count as heard from at now.
func (h *Activity) all(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.last)
	h.since = now
}

func (h *Activity) of(r events.Ref, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordRun(now)
	if at, ok := h.last[r]; ok {
		return at
	}
	return h.since
}

// Link tracks reconnects of this process to the broker.
type Link struct {
	mu    sync.Mutex
	known atomic.Uint64 // the reconnects that are handled
}

// Restored calls back if the connection was restored since the last call. n is the number of reconnects
// ([bus.Bus.Reconnects]). Other callers wait until back returns, so that no check precedes it. If back returns false,
// the next caller calls it again.
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
