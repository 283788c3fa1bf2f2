package control

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of what is remembered of pings. Above one of them sessions count as active at that instant, which delays
// the report of a stall and never makes a false one.
const (
	pingsMax        = 200_000 // sessions, of all harnesses
	pingsHarnessMax = 50_000  // sessions, of one harness; above it the harness's own are forgotten
	harnessesMax    = 10_000  // with pings
)

// A process that did not run for longer than standstillMin received no pings in that time: it was stopped, or had no
// CPU.
const (
	standstillMin = 2 * time.Second
	beatEvery     = 500 * time.Millisecond
)

// Activity knows when each session last sent a ping, by this process's clock. It is the only input of a decider that is
// not in the log. Losing it is harmless: all sessions count as active when a process starts to listen, when the
// broker was away, and when the process itself did not run.
type Activity struct {
	hints pings
	conn  connection
	link  Link

	mu    sync.Mutex
	since time.Time          // all sessions count as active at this instant
	last  map[string]*pinged // by harness
	count int                // sessions in last
	beat  time.Time          // when this process was last known to run
}

// pinged is what is remembered of the sessions of one harness.
type pinged struct {
	since time.Time            // they all count as active at this instant
	last  map[string]time.Time // by session
}

// pings subscribes to signs of life of sessions.
type pings interface {
	OnProgress(ctx context.Context, fn func(events.Ref)) error
}

// connection counts how often it was restored.
type connection interface{ Reconnects() uint64 }

// NewActivity returns an Activity in which all sessions are active now.
func NewActivity(b *bus.Bus) *Activity { return newActivity(b.Hints, b, time.Now()) }

func newActivity(hints pings, conn connection, now time.Time) *Activity {
	return &Activity{hints: hints, conn: conn, since: now, last: map[string]*pinged{}, beat: now}
}

// Listen subscribes to pings until ctx ends. It returns when the broker has the subscription. An error is permanent.
func (h *Activity) Listen(ctx context.Context) error {
	err := h.hints.OnProgress(ctx, func(r events.Ref) { h.record(r, time.Now()) })
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

// Of returns when a session was last active, by the clock that reads now. After the broker was away all sessions
// count as active, because pings may be lost.
func (h *Activity) Of(r events.Ref, now time.Time) time.Time {
	here := time.Now()
	h.link.Restored(h.conn.Reconnects(), func() bool { h.all(here); return true })
	return now.Add(-here.Sub(h.of(r, here)))
}

// runs records that this process runs. After a standstill all sessions count as active: their pings are still
// unread.
func (h *Activity) runs(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordRun(now)
}

func (h *Activity) recordRun(now time.Time) {
	if now.Sub(h.beat) > standstillMin {
		h.forget(now)
	}
	h.beat = now
}

func (h *Activity) record(r events.Ref, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.last[r.Harness]
	if p == nil {
		if len(h.last) >= harnessesMax {
			h.forget(now)
		}
		p = &pinged{since: h.since, last: map[string]time.Time{}}
		h.last[r.Harness] = p
	}
	if _, known := p.last[r.Session]; !known {
		h.makeRoom(p, now)
		h.count++
	}
	p.last[r.Session] = now
}

// makeRoom forgets the sessions of one harness, if it has too many, or else those of the harness with the most: a
// harness that sends pings for sessions without number changes nothing for the others.
func (h *Activity) makeRoom(p *pinged, now time.Time) {
	if len(p.last) < pingsHarnessMax && h.count < pingsMax {
		return
	}
	most := p
	if len(p.last) < pingsHarnessMax {
		for _, other := range h.last {
			if len(other.last) > len(most.last) {
				most = other
			}
		}
	}
	h.count -= len(most.last)
	most.last, most.since = map[string]time.Time{}, now
}

// forget makes every session count as active at now.
func (h *Activity) forget(now time.Time) {
	clear(h.last)
	h.since, h.count = now, 0
}

// all makes every session count as active at now.
func (h *Activity) all(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(now)
}

func (h *Activity) of(r events.Ref, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordRun(now)
	p := h.last[r.Harness]
	if p == nil {
		return h.since
	}
	if at, ok := p.last[r.Session]; ok {
		return at
	}
	return p.since
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
