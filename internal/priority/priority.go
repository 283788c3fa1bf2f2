// Package priority delays batch work while time-critical work is late, among those that share a process.
//
//	Begin ── late by more than lateAfter ──▶ Yield blocks ── until done is called, or for yieldMax ──▶ returns
//
// Time-critical work calls [Gate.Begin] at its instant. Batch work calls [Gate.Yield] before each batch. Yield blocks
// only while time-critical work is late, at most yieldMax at a time, and only while the budget lasts: work that stays
// late although batch work makes room is late for another reason, such as a slow disk.
//
// The gate is a courtesy, not a lock. Correctness does not depend on it.
package priority

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Limits of a gate.
//
// On a disk that needs longer than lateAfter for each write, something is always late. A caller that always yielded to
// it would fall behind without limit. The budget is spent while any caller waits, and only a part of the remaining time
// restores it.
const (
	lateAfter = 5 * time.Millisecond   // time-critical work may take so long before batch work yields to it
	yieldMax  = 100 * time.Millisecond // the longest wait of one Yield
	busyFor   = 500 * time.Millisecond // after a wait, more waits are expected for so long

	// of waiting; a smaller one ends in the middle of a long rush, a larger one lets others lag more
	budgetMax  = 20 * time.Second
	budgetPart = 10 // one part in so many of the time without waits restores the budget
)

// Gate decides when batch work yields. The zero Gate is ready for use. A nil Gate never blocks.
type Gate struct {
	mu      sync.Mutex
	running list.List // the instants at which running work was due, in the order of Begin
	idle    chan struct{}
	yielded time.Time // when the last wait ended
	waits   uint64

	waiting int           // how many callers wait now
	spent   time.Duration // of the budget, as of at
	at      time.Time
}

// Begin reports that time-critical work starts which was due so long ago; a negative late is due in the future. Call
// done when the work is done.
func (g *Gate) Begin(late time.Duration) (done func()) {
	if g == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.running.PushBack(time.Now().Add(-late))
	return func() { g.end(e) }
}

func (g *Gate) end(e *list.Element) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running.Remove(e)
	if g.idle != nil && !g.lateLocked(time.Now()) {
		close(g.idle)
		g.idle = nil
	}
}

// Late reports whether time-critical work is late.
func (g *Gate) Late() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lateLocked(time.Now())
}

// lateLocked reports whether the work that began first was due for longer than lateAfter.
func (g *Gate) lateLocked(now time.Time) bool {
	first := g.running.Front()
	return first != nil && now.Sub(first.Value.(time.Time)) > lateAfter
}

// Yield blocks while time-critical work is late, for at most yieldMax or until ctx ends.
func (g *Gate) Yield(ctx context.Context) {
	if g == nil {
		return
	}
	idle := g.wait()
	if idle == nil {
		return
	}
	t := time.NewTimer(yieldMax)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.yielded = time.Now()
	g.spendLocked(g.yielded)
	g.waiting--
	g.waits++
}

// wait begins a wait that ends when the channel is closed. It returns nil if nothing is late or the budget is spent.
func (g *Gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.spendLocked(now)
	if !g.lateLocked(now) || g.spent > budgetMax-yieldMax {
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	g.waiting++
	return g.idle
}

// spendLocked updates the budget to now. Callers that wait at the same time spend it once.
func (g *Gate) spendLocked(now time.Time) {
	if past := now.Sub(g.at); g.waiting > 0 {
		g.spent += past
	} else {
		g.spent = max(g.spent-past/budgetPart, 0)
	}
	g.at = now
}

// Busy reports whether a caller had to wait a short while ago. Batch work should then use small batches.
func (g *Gate) Busy() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.yielded) < busyFor
}

// Waits returns how often a caller had to wait.
func (g *Gate) Waits() uint64 {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waits
}
