package reconciler

import (
	"context"
	"sync"
	"time"
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
	due   map[string]time.Time
	busy  map[string]bool
	after map[string]time.Time // not before
	news  chan struct{}
}

func newPlan() *plan {
	return &plan{due: map[string]time.Time{}, busy: map[string]bool{}, after: map[string]time.Time{},
		news: make(chan struct{}, 1)}
}

// add plans a pass at an instant, unless an earlier one is planned.
func (p *plan) add(harness string, at time.Time) {
	p.mu.Lock()
	old, planned := p.due[harness]
	if !planned || at.Before(old) {
		p.due[harness] = at
	}
	p.mu.Unlock()
	p.notify()
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
	next = planIdle
	for h, at := range p.due {
		at = later(at, p.after[h])
		switch {
		case p.busy[h]: // done is called when it ends
		case at.After(now):
			next = min(next, at.Sub(now))
		default:
			delete(p.due, h)
			p.busy[h] = true
			due = append(due, h)
		}
	}
	return due, next
}

// hold takes a harness out of turn for a caller that has listed its sessions since an instant. It returns false while a
// pass over it runs, and if one has ended since: the list may be out of date, so a pass is planned instead.
func (p *plan) hold(harness string, since time.Time) bool {
	p.mu.Lock()
	free := !p.busy[harness] && !p.after[harness].After(since)
	if free {
		p.busy[harness] = true
	}
	p.mu.Unlock()
	if !free {
		p.add(harness, time.Now())
	}
	return free
}

func (p *plan) done(harness string) {
	p.mu.Lock()
	delete(p.busy, harness)
	p.after[harness] = time.Now().Add(passPauseMin)
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
