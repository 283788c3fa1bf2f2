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
// and what was not asked for meanwhile is forgotten.
type cache struct {
	young, old map[events.Ref]cached
	max        int // entries in a generation
}

func newCache(sessionsMax int) cache {
	return cache{young: map[events.Ref]cached{}, old: map[events.Ref]cached{}, max: max(sessionsMax/2, 1)}
}

func (c *cache) get(r events.Ref) (cached, bool) {
	if e, ok := c.young[r]; ok {
		return e, true
	}
	e, ok := c.old[r]
	return e, ok
}

func (c *cache) put(r events.Ref, e cached) {
	if len(c.young) >= c.max {
		c.young, c.old = make(map[events.Ref]cached, c.max), c.young
	}
	delete(c.old, r)
	c.young[r] = e
}

func (c *cache) drop(r events.Ref) {
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
