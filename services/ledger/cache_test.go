package ledger

import (
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestCacheIsBounded: the documents of the cached states have a limited number and a limited size, and the newest ones
// are cached.
func TestCacheIsBounded(t *testing.T) {
	const sessions, size = 100, 10
	for name, c := range map[string]*cache{
		"by number": {max: sessions, bytesMax: 1 << 30},
		"by size":   {max: 1 << 30, bytesMax: sessions * size},
	} {
		t.Run(name, func(t *testing.T) {
			c.clear()
			last := events.Ref{}
			for i := range 10 * sessions {
				last = events.Ref{Harness: "h", Session: fmt.Sprint(i)}
				c.put(last, cached{state: session.New(last), bytes: size})
				if n := len(c.young) + len(c.old); n > 2*sessions {
					t.Fatalf("%d states are cached, want %d at most", n, 2*sessions)
				}
			}
			if c.copy(last) == nil {
				t.Error("the newest state is not cached")
			}
		})
	}
}

// TestCacheCountsWhatItHolds: a state that is stored again, or dropped, does not count twice. A state that is not the
// newest stays cached as long as the cache has room.
func TestCacheCountsWhatItHolds(t *testing.T) {
	const size = 10
	first, busy := events.Ref{Harness: "h", Session: "first"}, events.Ref{Harness: "h", Session: "busy"}
	for name, step := range map[string]func(c *cache){
		"stored again": func(c *cache) { c.put(busy, cached{state: session.New(busy), bytes: size}) },
		"dropped": func(c *cache) {
			c.put(busy, cached{state: session.New(busy), bytes: size})
			c.drop(busy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cache{max: 1 << 30, bytesMax: 10 * size}
			c.clear()
			c.put(first, cached{state: session.New(first), bytes: size})
			for range 100 {
				step(c)
			}
			if c.copy(first) == nil || c.bytes > 2*size {
				t.Errorf("%d bytes are counted, want %d at most; cached: %v", c.bytes, 2*size, c.copy(first) != nil)
			}
		})
	}
}

// TestARebuildDropsAtAnyMoment: the folder reads the cache while a rebuild drops what it has replaced. It needs the
// race detector, or a map that notices it.
func TestARebuildDropsAtAnyMoment(t *testing.T) {
	c, r := newCache(4), events.Ref{Harness: "h", Session: "s"}
	var rebuild sync.WaitGroup
	rebuild.Go(func() {
		for range 20_000 {
			c.drop(r)
		}
	})
	found := 0
	for range 20_000 {
		c.put(r, cached{state: session.New(r)})
		if _, ok := c.get(r); ok {
			found++
		}
	}
	rebuild.Wait()
	if found == 0 {
		t.Error("nothing is cached")
	}
}
