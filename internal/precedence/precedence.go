// Package precedence lets what is due at this instant go before what can wait, among those who share a machine.
//
//	Begin ── late by more than soon ──▶ Yield waits ── until it is done, or for yieldMax ──▶ goes on
//
// Whoever does something at its instant says so, and when it is done. Whoever works through what has come, a batch at a
// time, yields before each: while something due has been kept waiting for longer than it should, the others make room.
// Nobody waits for ever, and nobody waits while what is due is on time: then it does no harm to go on. Nor does anybody wait
// for long in all: what stays late although others make room is late for another reason, such as a slow disk.
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
//
// A rush passes. On a disk that takes longer than soon for each write something is always late; who waited for that, for
// ever, would fall behind for ever. So patience is spent while anybody waits, and only a part of the other time gives it back.
const (
	soon     = 5 * time.Millisecond   // what is due may take so long before others make room for it
	yieldMax = 100 * time.Millisecond // the longest that anybody waits at a time
	busyFor  = 500 * time.Millisecond // after others had to wait, more is expected for so long

	patienceMax  = 20 * time.Second // of waiting, all in all; less: a long rush is helped to its middle only; more: others lag more
	patiencePart = 10               // of the time that nobody waits, one part in so many is given back
)

// Order is who goes first among those who share it. A nil Order has everybody go at once.
type Order struct {
	mu     sync.Mutex
	under  list.List // instants that what is under way was due at, the one begun first in front
	idle   chan struct{}
	yields time.Time // when somebody had to wait last
	waits  uint64

	waiting int           // how many wait now
	spent   time.Duration // of the patience, as of at
	at      time.Time
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
	idle := o.wait()
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
	o.mu.Lock()
	defer o.mu.Unlock()
	o.yields = time.Now()
	o.spendLocked(o.yields)
	o.waiting--
	o.waits++
}

// wait begins a wait, which ends when the channel is closed; nil when there is nothing to wait for, or was for too long.
func (o *Order) wait() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.spendLocked(now)
	if !o.lateLocked(now) || o.spent > patienceMax-yieldMax {
		return nil
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	o.waiting++
	return o.idle
}

// spendLocked brings the patience up to now. Several who wait at the same time spend it once.
func (o *Order) spendLocked(now time.Time) {
	if past := now.Sub(o.at); o.waiting > 0 {
		o.spent += past
	} else {
		o.spent = max(o.spent-past/patiencePart, 0)
	}
	o.at = now
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
