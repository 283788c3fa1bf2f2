// Package delay keeps values under keys until their instants.
//
//	Set(key, at, value) ──▶ … at ──▶ Due returns key and value, once
//
// A key has one value and one instant: Set replaces both. A [Queue] has no timer and no lock. Its caller waits until
// [Queue.Next], and has a lock of its own, because it keeps more about each key.
package delay

import (
	"container/heap"
	"time"
)

// Queue is a heap of keys, the earliest instant first. The zero Queue is empty and ready for use. It is not safe for
// concurrent use.
type Queue[K comparable, V any] struct {
	order order[K, V]
	of    map[K]*item[K, V]
}

type item[K comparable, V any] struct {
	key   K
	value V
	at    time.Time
	place int // index in the heap
}

// Len returns the number of keys.
func (q *Queue[K, V]) Len() int { return len(q.order) }

// Set keeps a value until an instant, in place of what the key had. It reports whether the key is the first one now.
func (q *Queue[K, V]) Set(key K, at time.Time, value V) (first bool) {
	if q.of == nil {
		q.of = map[K]*item[K, V]{}
	}
	x := q.of[key]
	if x == nil {
		x = &item[K, V]{key: key, value: value, at: at}
		q.of[key] = x
		heap.Push(&q.order, x)
	} else {
		x.at, x.value = at, value
		heap.Fix(&q.order, x.place)
	}
	return x.place == 0
}

// Get returns the value and the instant of a key.
func (q *Queue[K, V]) Get(key K) (value V, at time.Time, ok bool) {
	if x := q.of[key]; x != nil {
		return x.value, x.at, true
	}
	return value, at, false
}

// Remove forgets a key.
func (q *Queue[K, V]) Remove(key K) {
	if x := q.of[key]; x != nil {
		q.remove(x)
	}
}

// Next returns the earliest instant. ok is false if the queue is empty.
func (q *Queue[K, V]) Next() (at time.Time, ok bool) {
	if len(q.order) == 0 {
		return at, false
	}
	return q.order[0].at, true
}

// Due removes and returns the earliest key, if its instant is not after now.
func (q *Queue[K, V]) Due(now time.Time) (key K, value V, ok bool) {
	if len(q.order) == 0 || q.order[0].at.After(now) {
		return key, value, false
	}
	x := q.order[0]
	q.remove(x)
	return x.key, x.value, true
}

// Clear forgets all keys.
func (q *Queue[K, V]) Clear() {
	q.order = nil
	clear(q.of)
}

func (q *Queue[K, V]) remove(x *item[K, V]) {
	delete(q.of, x.key)
	heap.Remove(&q.order, x.place)
}

// order is the heap of a queue.
type order[K comparable, V any] []*item[K, V]

// Len implements [heap.Interface].
func (o order[K, V]) Len() int { return len(o) }

// Less implements [heap.Interface].
func (o order[K, V]) Less(i, j int) bool { return o[i].at.Before(o[j].at) }

// Swap implements [heap.Interface].
func (o order[K, V]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

// Push implements [heap.Interface].
func (o *order[K, V]) Push(x any) {
	added := x.(*item[K, V])
	added.place = len(*o)
	*o = append(*o, added)
}

// Pop implements [heap.Interface].
func (o *order[K, V]) Pop() any {
	end := len(*o) - 1
	last := (*o)[end]
	(*o)[end] = nil
	*o = (*o)[:end]
	return last
}
