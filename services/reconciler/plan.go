package reconciler

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/delay"
)

// Limits of the plan.
const (
	passesAtOnceMax = 8                     // harnesses that are passed over concurrently
	passPauseMin    = 20 * time.Millisecond // between two passes over one harness, for any number of triggers
	planIdle        = time.Minute
)

// plan is the queue of passes, by harness. Instants are of this process's clock.
type plan struct {
	mu    sync.Mutex
	due   delay.Queue[string, struct{}]
	busy  map[string]*time.Time // harnesses with a pass under way; the instant of the next pass, nil for none
	after map[string]time.Time  // not before
	news  chan struct{}
}

func newPlan() *plan {
	return &plan{busy: map[string]*time.Time{}, after: map[string]time.Time{}, news: make(chan struct{}, 1)}
}

// add plans a pass at an instant, unless an earlier one is planned.
func (p *plan) add(harness string, at time.Time) {
	p.mu.Lock()
	p.addLocked(harness, at)
	p.mu.Unlock()
	p.notify()
}

func (p *plan) addLocked(harness string, at time.Time) {
	if next, busy := p.busy[harness]; busy {
		if next == nil || at.Before(*next) {
			p.busy[harness] = &at
		}
		return
	}
	at = later(at, p.after[harness])
	if _, old, planned := p.due.Get(harness); !planned || at.Before(old) {
		p.due.Set(harness, at, struct{}{})
	}
}

func (p *plan) notify() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// popDue removes and returns what is due, and returns the time until the next one.
func (p *plan) popDue(now time.Time) (due []string, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		h, _, ok := p.due.Due(now)
		if !ok {
			break
		}
		p.busy[h] = nil
		due = append(due, h)
	}
	next = planIdle
	if at, some := p.due.Next(); some {
		next = min(next, at.Sub(now))
	}
	return due, next
}

// hold takes a harness out of turn for a caller that has listed its sessions since an instant. It returns false while a
// pass over it runs, and if one has ended since: the list may be out of date, so a pass is planned instead.
func (p *plan) hold(harness string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, busy := p.busy[harness]; busy || p.after[harness].After(since) {
		p.addLocked(harness, time.Now())
		p.notify()
		return false
	}
	p.busy[harness] = nil
	if _, at, planned := p.due.Get(harness); planned {
		p.due.Remove(harness)
		p.addLocked(harness, at)
	}
	return true
}

// done ends a pass. The next one begins passPauseMin later at the earliest.
func (p *plan) done(harness string) {
	p.mu.Lock()
	next := p.busy[harness]
	delete(p.busy, harness)
	p.after[harness] = time.Now().Add(passPauseMin)
	if next != nil {
		p.addLocked(harness, *next)
	}
	p.mu.Unlock()
	p.notify()
}

// run passes over harnesses when they are due, until ctx ends.
func (p *plan) run(ctx context.Context, pass func(ctx context.Context, harness string)) {
	slots := make(chan struct{}, passesAtOnceMax)
	var all sync.WaitGroup
	defer all.Wait()
	for ctx.Err() == nil {
		due, next := p.popDue(time.Now())
		for _, h := range due {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots; p.done(h) }()
				pass(ctx, h)
			})
		}
		t := time.NewTimer(next)
		select {
		case <-t.C:
		case <-p.news:
		case <-ctx.Done():
		}
		t.Stop()
	}
}
