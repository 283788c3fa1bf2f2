package ledger

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// cached is a session's state as it was stored, with the revision of its document.
type cached struct {
	state *session.State
	rev   uint64
}

// cache keeps the sessions that were touched last, in two generations: when the young one is full it becomes the old one,
// and what was not asked for meanwhile is forgotten. The folder alone changes it and the states in it, under mu; requests
// take copies.
type cache struct {
	mu         sync.RWMutex
	young, old map[events.Ref]cached
	max        int // entries in a generation
}

func newCache(sessionsMax int) *cache {
	c := &cache{max: max(sessionsMax/2, 1)}
	c.clear()
	return c
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old = map[events.Ref]cached{}, map[events.Ref]cached{}
}

// get is for the folder: nobody else changes anything.
func (c *cache) get(r events.Ref) (cached, bool) {
	if e, ok := c.young[r]; ok {
		return e, true
	}
	e, ok := c.old[r]
	return e, ok
}

// copy is a session's state as it was folded last, nil if it is not here. It may be ahead of the document, never of the log.
func (c *cache) copy(r events.Ref) *session.State {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.get(r); ok {
		return e.state.Clone()
	}
	return nil
}

func (c *cache) put(r events.Ref, e cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.max {
		c.young, c.old = make(map[events.Ref]cached, c.max), c.young
	}
	delete(c.old, r)
	c.young[r] = e
}

func (c *cache) drop(r events.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.young, r)
	delete(c.old, r)
}

// loadsMax is how many documents are read at the same time.
const loadsMax = 64

// each calls fn for all items, at most limit at a time, and returns the first error after all have ended.
func each[T any](ctx context.Context, limit int, items []T, fn func(context.Context, T) error) error {
	if len(items) == 1 {
		return fn(ctx, items[0])
	}
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
		slots = make(chan struct{}, limit)
	)
	for _, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := fn(ctx, item); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}
