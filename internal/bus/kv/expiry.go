package kv

import (
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

// checkAt schedules a check of a key that has none.
func (w *watch) checkAt(key string, at time.Time) {
	if _, _, has := w.ends.Get(key); !has {
		w.ends.Set(key, at, struct{}{})
	}
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
	w.checkAt(key, at)
	return at
}

// expire reports the entries that have ended by now. It asks the leader before it reports a key as gone.
func (w *watch) expire(ctx context.Context) error {
	for {
		now := time.Now()
		key, _, due := w.ends.Due(now)
		if !due {
			return nil
		}
		was, known := w.known[key]
		switch {
		case !known:
			// it was deleted
			continue
		case now.Before(was.ends):
			// it was renewed
			w.checkAt(key, was.ends)
			continue
		}
		_, err := w.buckets.conn.Get(ctx, core.KVStream(w.buckets.bucket(w.bk)),
			core.GetRequest{Last: core.KVSubject(w.buckets.bucket(w.bk), key)})
		switch {
		case err == nil:
			// not ended yet, or written meanwhile: then it will be delivered
			late := min(max(now.Sub(was.ends), expiryRecheckMinMS*time.Millisecond),
				expiryRecheckMaxMS*time.Millisecond)
			w.checkAt(key, now.Add(late))
			continue
		case core.NoStream(err), !errors.Is(err, core.ErrNotFound):
			// the watch starts again
			return err
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
	next, some := w.ends.Next()
	if !some {
		return f.Take(ctx, pull.WindowMax)
	}
	until, cancel := context.WithDeadline(ctx, next)
	defer cancel()
	ds, err := f.Take(until, pull.WindowMax)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return ds, err
}
