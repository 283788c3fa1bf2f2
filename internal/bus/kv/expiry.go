package kv

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// Pauses before an entry is read again that should have ended and that the broker still has: as long as it is late,
// within these limits.
const (
	expiryRecheckMinMS = 100
	expiryRecheckMaxMS = 2_000
)

// In a cell with users the bucket of leases has no markers for expired keys: a stream with markers must allow roll-ups,
// and then every user with a lease can remove those of all others. So a watch of the bucket asks the stream's leader
// when a lease should have ended, and reports what a marker would have reported.

// ending is when an entry expires.
type ending struct {
	key string
	at  time.Time
}

// endings is a heap, the earliest one on top. It has each key at most once.
type endings struct {
	all  []ending
	keys map[string]bool
}

// Len implements [heap.Interface].
func (e *endings) Len() int { return len(e.all) }

// Less implements [heap.Interface].
func (e *endings) Less(i, j int) bool { return e.all[i].at.Before(e.all[j].at) }

// Swap implements [heap.Interface].
func (e *endings) Swap(i, j int) { e.all[i], e.all[j] = e.all[j], e.all[i] }

// Push implements [heap.Interface].
func (e *endings) Push(x any) { e.all = append(e.all, x.(ending)) } //nolint:forcetypeassert // only add calls it

// Pop implements [heap.Interface].
func (e *endings) Pop() any {
	last := e.all[len(e.all)-1]
	e.all = e.all[:len(e.all)-1]
	return last
}

// add schedules a check of a key; a scheduled one moves to the new instant.
func (e *endings) add(key string, at time.Time) {
	if e.keys == nil {
		e.keys = map[string]bool{}
	}
	if !e.keys[key] {
		e.keys[key] = true
		heap.Push(e, ending{key, at})
	}
}

// due removes and returns a key whose check is due.
func (e *endings) due(now time.Time) (key string, ok bool) {
	if len(e.all) == 0 || now.Before(e.all[0].at) {
		return "", false
	}
	key = heap.Pop(e).(ending).key //nolint:forcetypeassert // only add pushes
	delete(e.keys, key)
	return key, true
}

// ending returns when a delivered entry expires, zero for never, and schedules the check. For an entry that is older
// than the watch, the broker's clock gives the rest of the TTL, if that clock is known.
func (w *watch) ending(key string, d pull.Delivery) time.Time {
	left := core.TTLOf(d.Msg.Header.Get(jetstream.MsgTTLHeader))
	if w.bk != Leases || left <= 0 {
		return time.Time{}
	}
	if now, known := w.buckets.clock.Guess(); known && !w.live {
		left -= min(max(now.Sub(d.At), 0), left)
	}
	at := d.Got.Add(left)
	w.ends.add(key, at)
	return at
}

// expire reports the entries that have ended by now. It asks the leader before it reports a key as gone.
func (w *watch) expire(ctx context.Context) error {
	for {
		now := time.Now()
		key, due := w.ends.due(now)
		if !due {
			return nil
		}
		was, known := w.known[key]
		switch {
		case !known: // it was deleted
			continue
		case now.Before(was.ends): // it was renewed
			w.ends.add(key, was.ends)
			continue
		}
		_, err := w.buckets.conn.Get(ctx, core.KVStream(w.buckets.bucket(w.bk)),
			core.GetRequest{Last: core.KVSubject(w.buckets.bucket(w.bk), key)})
		switch {
		case err == nil: // not ended yet, or written meanwhile: then it will be delivered
			late := min(max(now.Sub(was.ends), expiryRecheckMinMS*time.Millisecond),
				expiryRecheckMaxMS*time.Millisecond)
			w.ends.add(key, now.Add(late))
			continue
		case core.NoStream(err), !errors.Is(err, core.ErrNotFound):
			return err // the watch starts again
		}
		delete(w.known, key)
		gone := Entry{Key: key, Rev: was.rev, At: time.Unix(0, was.at).UTC(), Deleted: true, Expired: true}
		if err := w.deliver(Update{Entry: gone}); err != nil {
			return err
		}
	}
}

// take waits for deliveries until the next entry ends.
func (w *watch) take(ctx context.Context, f *pull.Flow) ([]pull.Delivery, error) {
	if len(w.ends.all) == 0 {
		return f.Take(ctx, pull.WindowMax)
	}
	until, cancel := context.WithDeadline(ctx, w.ends.all[0].at)
	defer cancel()
	ds, err := f.Take(until, pull.WindowMax)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return ds, err
}
