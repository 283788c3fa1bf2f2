// Package precedence lets what is due at this instant go before what can wait, among those who share a machine.
//
//	Begin ── late by more than soon ──▶ Yield waits ── until it is done, or for yieldMax ──▶ goes on
//
// Whoever does something at its instant says so, and when it is done. Whoever works through what has come, a batch at a
// time, yields before each: while something due has been kept waiting for longer than it should, the others make room.
// Nobody waits for ever, and nobody waits while what is due is on time: then it does no harm to go on.
//
// It is a courtesy, not a lock: nothing is wrong when one does not yield, or does not know the others.
package precedence

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Bounds of the courtesy.
const (
	soon     = 5 * time.Millisecond   // what is due may take so long before others make room for it
	yieldMax = 100 * time.Millisecond // the longest that anybody waits at a time
	busyFor  = 500 * time.Millisecond // after others had to wait, more is expected for so long
)

// Order is who goes first among those who share it. A nil Order has everybody go at once.
type Order struct {
	mu     sync.Mutex
	under  list.List // instants that what is under way was due at, the one begun first in front
	idle   chan struct{}
	yields time.Time // when somebody had to wait last
	waits  uint64
}

// Begin says that something is under way that has been due for so long (less than 0: it is due after that). Call done when it is
// done.
func (o *Order) Begin(late time.Duration) (done func()) {
	if o == nil {
		return func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.under.PushBack(time.Now().Add(-late))
	return func() { o.end(e) }
}

func (o *Order) end(e *list.Element) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.under.Remove(e)
	if o.idle != nil && !o.lateLocked(time.Now()) {
		close(o.idle)
		o.idle = nil
	}
}

// Late says whether something is under way that has been due for too long.
func (o *Order) Late() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lateLocked(time.Now())
}

// lateLocked says whether what was begun first has been due for too long.
func (o *Order) lateLocked(now time.Time) bool {
	first := o.under.Front()
	return first != nil && now.Sub(first.Value.(time.Time)) > soon
}

// Yield waits while something that is due is late, for yieldMax at most or until ctx ends.
func (o *Order) Yield(ctx context.Context) {
	if o == nil {
		return
	}
	o.mu.Lock()
	if !o.lateLocked(time.Now()) {
		o.mu.Unlock()
		return
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	idle := o.idle
	o.mu.Unlock()
	t := time.NewTimer(yieldMax)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	case <-ctx.Done():
	}
	o.mu.Lock()
	o.yields = time.Now()
	o.waits++
	o.mu.Unlock()
}

// Busy says whether somebody had to wait a short while ago: who has much to do had better do it in small parts.
func (o *Order) Busy() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.yields) < busyFor
}

// Waits is how often somebody had to wait.
func (o *Order) Waits() uint64 {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waits
}
