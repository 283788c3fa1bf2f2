package bus

import (
	"container/heap"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Pauses before an entry is looked up again that should have ended and that the broker still has: as long as it is late,
// within these bounds.
const (
	expiryRecheckMinMS = 100
	expiryRecheckMaxMS = 2_000
)

// In a cell with users the bucket of leases has no markers for expired keys: a stream that makes them has to allow
// roll-ups, and then every user with a lease can remove those of all others. So a watch of it asks the stream's leader when
// a lease should have ended, and says what a marker would have said.

// ending is when an entry expires.
type ending struct {
	key string
	at  time.Time
}

// endings is a heap, the first one on top. It has each key at most once.
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

// add notes that a key is to be looked at; one that is noted already is looked at then.
func (e *endings) add(key string, at time.Time) {
	if e.keys == nil {
		e.keys = map[string]bool{}
	}
	if !e.keys[key] {
		e.keys[key] = true
		heap.Push(e, ending{key, at})
	}
}

// due takes a key off that is to be looked at by now.
func (e *endings) due(now time.Time) (key string, ok bool) {
	if len(e.all) == 0 || now.Before(e.all[0].at) {
		return "", false
	}
	key = heap.Pop(e).(ending).key //nolint:forcetypeassert // only add pushes
	delete(e.keys, key)
	return key, true
}

// ending is when a delivered entry expires, zero for never. It is noted to be looked at then. Of an entry that was there
// before the watch, the broker's clock says how much of the TTL is left, as far as that clock is known.
func (w *watch) ending(key string, d delivery) time.Time {
	left := ttlOf(d.msg.Header.Get(jetstream.MsgTTLHeader))
	if w.bk != Leases || left <= 0 {
		return time.Time{}
	}
	if now, known := w.b.clock.guess(); known && !w.live {
		left -= min(max(now.Sub(d.at), 0), left)
	}
	at := d.got.Add(left)
	w.ends.add(key, at)
	return at
}

// ttlOf reads a TTL in either form that the broker takes, seconds or a duration. 0: there is none.
func ttlOf(text string) time.Duration {
	if s, err := strconv.Atoi(text); err == nil {
		return time.Duration(s) * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// guess is the broker's time by the last measurement.
func (c *clock) guess() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broker.Add(time.Since(c.local)), !c.local.IsZero()
}

// expire tells of the entries that have ended by now. The leader is asked before a key is called gone.
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
		_, err := w.b.get(ctx, kvStream(w.b.bucket(w.bk)), getRequest{Last: kvSubject(w.b.bucket(w.bk), key)})
		switch {
		case err == nil: // not ended yet, or written meanwhile: then it will be shown
			late := min(max(now.Sub(was.ends), expiryRecheckMinMS*time.Millisecond), expiryRecheckMaxMS*time.Millisecond)
			w.ends.add(key, now.Add(late))
			continue
		case noStream(err), !errors.Is(err, ErrNotFound):
			return err // the watch begins again
		}
		delete(w.known, key)
		gone := Entry{Key: key, Rev: was.rev, At: time.Unix(0, was.at).UTC(), Deleted: true, Expired: true}
		if err := w.tell(Update{Entry: gone}); err != nil {
			return err
		}
	}
}

// take waits for deliveries until the next entry ends.
func (w *watch) take(ctx context.Context, f *flow) ([]delivery, error) {
	if len(w.ends.all) == 0 {
		return f.take(ctx, watchWindowMax)
	}
	until, cancel := context.WithDeadline(ctx, w.ends.all[0].at)
	defer cancel()
	ds, err := f.take(until, watchWindowMax)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return ds, err
}
