package kv

import (
	"context"
	"time"
)

// CaughtUp is the end of a round of reading everything in which the watch did not see the keys that it knows.
func (bs *Buckets) CaughtUp(ctx context.Context, bk Bucket, known []Entry, fn func(Update) error) error {
	w := &watch{buckets: bs, bk: bk, fn: fn, known: map[string]shown{}, round: 2, ready: true}
	for _, e := range known {
		w.known[e.Key] = shown{rev: e.Rev, at: e.At.UnixNano(), round: 1}
	}
	return w.caughtUp(ctx)
}

// Expire checks the entries of a watch that should have ended by now: those that it knows, and the given others.
func (bs *Buckets) Expire(ctx context.Context, bk Bucket, known []Entry, others []string,
	fn func(Update) error) error {
	w := &watch{buckets: bs, bk: bk, fn: fn, known: map[string]shown{}, round: 1, ready: true}
	for _, e := range known {
		w.known[e.Key] = shown{rev: e.Rev, at: e.At.UnixNano(), round: 1, ends: time.Now().Add(-time.Second)}
		w.checkAt(e.Key, time.Now().Add(-time.Second))
	}
	for _, key := range others {
		w.checkAt(key, time.Now().Add(-time.Second))
	}
	return w.expire(ctx)
}
