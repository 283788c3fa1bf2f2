// Package batcher collects items that many goroutines add at the same time and flushes them in batches. The first item
// is flushed at once. Items that are added while a flush runs are flushed together when it returns. No item waits for
// others, and under load there are others.
//
//	Add a ──▶ flush [a] ───────────────────▶ done
//	Add b ─────▶ waits ┐                      │
//	Add c ───────▶ waits ┴────────────────────▶ flush [b c] ──▶ …
//
// Items are flushed in the order in which they were added, except items whose key is in the batch already: they wait
// for the next one. Each item is flushed once or, if it was removed before, never. At most one flush runs at a time.
package batcher

import "sync"

// Batcher flushes items of type T. Set its fields before the first Add. All methods are safe for concurrent use.
type Batcher[T any] struct {
	// Flush sends a batch of at least one item and returns when it is done. Calls do not overlap.
	Flush func([]T)
	// Key returns what is unique among the items of one batch.
	Key func(T) string
	// Size returns the size of an item, in the unit of SizeMax.
	Size func(T) int
	// CountMax and SizeMax limit a batch. A batch of one item may be larger than SizeMax.
	CountMax, SizeMax int

	mu      sync.Mutex
	waiting []*entry[T]
	running bool
}

// entry is an item in the queue.
type entry[T any] struct {
	item    T
	flushed bool // or being flushed
}

// Add adds an item. The function that it returns removes the item and reports whether it did so before the flush.
func (b *Batcher[T]) Add(item T) (remove func() bool) {
	e := &entry[T]{item: item}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, e)
	if !b.running {
		b.running = true
		go b.run()
	}
	return func() bool { return b.remove(e) }
}

func (b *Batcher[T]) remove(e *entry[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.flushed {
		return false
	}
	for i, w := range b.waiting {
		if w == e {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return true
		}
	}
	// it was removed before
	return true
}

// run flushes until nothing waits.
func (b *Batcher[T]) run() {
	for {
		batch := b.next()
		if len(batch) == 0 {
			return
		}
		b.Flush(batch)
	}
}

// next takes the next batch from the queue. An empty batch ends run.
func (b *Batcher[T]) next() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []T
	keys, size := make(map[string]bool, min(len(b.waiting), b.CountMax)), 0
	left := b.waiting[:0]
	for i, e := range b.waiting {
		k := b.Key(e.item)
		if keys[k] {
			left = append(left, e)
			continue
		}
		size += b.Size(e.item)
		if len(batch) > 0 && (len(batch) == b.CountMax || size > b.SizeMax) {
			left = append(left, b.waiting[i:]...)
			break
		}
		keys[k], e.flushed = true, true
		batch = append(batch, e.item)
	}
	clear(b.waiting[len(left):])
	b.waiting = left
	b.running = len(batch) > 0
	return batch
}
