package kv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/delay"
)

// Limits of a watch.
const (
	watchIdleMax = time.Minute // the broker removes a consumer without pulls after this time
	watchReadyMS = 1_000       // under continuous writes, Ready does not wait longer than this for a pause
)

// Update is one entry of a bucket as a watch reports it.
type Update struct {
	Entry
	Ready bool // all entries that existed at the start have been reported; Entry is empty
	// the deletion of a key that was not reported: only WatchEvery reports it
	Unseen bool
}

// Watch calls fn with the live entries whose keys match one of the filters (none: all), then with one Update with
// Ready, then with each change, deletions and expiries included, in the order of the bucket's revisions. It blocks
// until ctx ends (nil) or fn fails (fn's error). Changes of one key may be merged into the newest; a deletion is
// reported for reported keys.
//
// It outlives the broker: at most two seconds after its return, changes are reported again, beginning with the newest
// value of what changed meanwhile. A key whose deletion can no longer be read, because its marker is gone too or the
// bucket was created again, is reported as Deleted and Expired with the last reported revision.
//
// fn runs in the caller's goroutine. A slow fn delays only this watch. Only [core.ErrForbidden] and a closed Bus end it
// otherwise.
func (bs *Buckets) Watch(ctx context.Context, bk Bucket, filters []string, fn func(Update) error) error {
	return bs.run(ctx, bs.newWatch(bk, filters, false, fn))
}

// WatchEvery is Watch, and it also reports deletions of keys that were not reported, as Unseen. A deletion takes space
// in a bucket without markers that expire.
func (bs *Buckets) WatchEvery(ctx context.Context, bk Bucket, filters []string, fn func(Update) error) error {
	return bs.run(ctx, bs.newWatch(bk, filters, true, fn))
}

// Mark is a place in a bucket.
type Mark struct {
	Rev uint64
	At  time.Time // the broker's, of this revision
}

// WatchAfter is Watch with the entries behind a mark only. known are the entries that the caller has read behind it: an
// unchanged one is not reported, its deletion is. When the bucket was created again, and is shorter, the entries that
// are younger than the mark are reported.
func (bs *Buckets) WatchAfter(ctx context.Context, bk Bucket, filters []string, after Mark, known []Entry,
	fn func(Update) error) error {
	w := bs.newWatch(bk, filters, false, fn)
	w.after = after
	for i := range known {
		w.known[known[i].Key] = shown{rev: known[i].Rev, at: known[i].At.UnixNano(), round: 1}
	}
	return bs.run(ctx, w)
}

func (bs *Buckets) newWatch(bk Bucket, filters []string, every bool, fn func(Update) error) *watch {
	w := &watch{buckets: bs, bk: bk, every: every, fn: fn, known: map[string]shown{}}
	for _, filter := range filters {
		w.filters = append(w.filters, core.KVSubject(bs.bucket(bk), filter))
	}
	if len(filters) == 0 {
		w.filters = []string{core.KVSubject(bs.bucket(bk), ">")}
	}
	return w
}

func (bs *Buckets) run(ctx context.Context, w *watch) error {
	for pace := core.NewBackoff(); ; {
		round := w.round
		err := w.run(ctx)
		var mine pull.CallbackError
		switch {
		case errors.As(err, &mine):
			return mine.Unwrap()
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, core.ErrForbidden):
			return err
		}
		bs.conn.Log.Info().AnErr("err", err).Str("entity", bs.bucket(w.bk)).Msg("watch begins again")
		if err := bs.conn.AwaitConnected(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		// it had started: this is a new failure
		if w.round != round {
			pace = core.NewBackoff()
		}
		core.Pause(ctx, pace.NextBackOff())
	}
}

// shown is what a watch remembers of a key: enough to distinguish a change from a repetition, even in a bucket that was
// created again.
type shown struct {
	rev   uint64
	at    int64 // nanoseconds
	round uint32
	ends  time.Time // when the entry expires, by the monotonic clock; zero: never, or a marker reports it
}

// watch is one call of Watch. It follows its own ephemeral consumer; after a possible interruption it makes a new one
// and reads everything again, without the entries that were reported. (The library's watcher notices a restarted broker
// 16–19 s late and cannot report what vanished meanwhile.)
type watch struct {
	buckets *Buckets
	bk      Bucket
	filters []string
	every   bool // also deletions of keys that are not known
	after   Mark // only what is behind it; Rev is 0 where the revisions begin again
	fn      func(Update) error
	known   map[string]shown
	ends    delay.Queue[string, struct{}] // of the entries in known that expire without a marker
	round   uint32                        // number of the reading, from 1
	live    bool                          // all entries that existed at the start of the round have been reported
	ready   bool                          // fn got Ready
}

// run makes a consumer and reports its deliveries until an interruption.
func (w *watch) run(ctx context.Context) error {
	if w.bk == Leases {
		// it gives the age of the leases
		if _, err := w.buckets.clock.Now(ctx); err != nil {
			return err
		}
	}
	if err := w.checkMark(ctx); err != nil {
		return err
	}
	stream := core.KVStream(w.buckets.bucket(w.bk))
	filter := cover(w.filters)
	name, toCome, err := w.consumer(ctx, stream, filter)
	if err != nil {
		return err
	}
	defer pull.Forget(w.buckets.conn, stream, name)
	from := pull.Source{Stream: stream, Consumer: name, Filters: []string{filter}}
	f := pull.Start(w.buckets.conn, from, pull.WindowMax, 1, pull.Request{})
	defer f.Close()
	w.round++
	w.live = false
	return w.follow(ctx, f, toCome)
}

// checkMark compares the mark with the bucket: behind the end of a bucket that was created again nothing is delivered
// for a long time.
func (w *watch) checkMark(ctx context.Context) error {
	if w.after.Rev == 0 {
		return nil
	}
	now, err := w.buckets.Mark(ctx, w.bk)
	if err == nil && now.Rev < w.after.Rev {
		w.after.Rev = 0
	}
	return err
}

// follow reports the deliveries of the flow. The consumer has delivered everything at the moment when nothing is
// pending; a count of the entries at the start does not work, because a key that is written meanwhile moves to the end
// of the queue.
func (w *watch) follow(ctx context.Context, f *pull.Flow, toCome int64) error {
	began, quiet, caught := time.Now(), toCome == 0, false
	for {
		overdue := toCome <= 0 && time.Since(began) > watchReadyMS*time.Millisecond
		if !caught && (quiet || overdue) {
			caught, w.live = true, true
			if err := w.caughtUp(ctx); err != nil {
				return err
			}
		}
		if err := w.expire(ctx); err != nil {
			return err
		}
		ds, err := w.take(ctx, f)
		if err != nil {
			return err
		}
		for _, d := range ds {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := w.show(d); err != nil {
				return err
			}
			quiet = quiet || d.Pending == 0
			toCome--
		}
	}
}

// consumer makes the consumer and returns how many messages it will deliver that exist now.
func (w *watch) consumer(ctx context.Context, stream, filter string) (name string, toCome int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, pull.SetupTimeoutMS*time.Millisecond)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name:              "watch-" + core.NewSecret(),
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: watchIdleMax,
	}
	// A list of filters cannot be in the subject of the request, so permissions of users exclude it.
	cfg.FilterSubject = filter
	if w.after.Rev > 0 {
		// a bucket has one entry for each key
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, w.after.Rev+1
	}
	create := "CONSUMER.CREATE." + stream + "." + cfg.Name + "." + cfg.FilterSubject
	var info jetstream.ConsumerInfo
	req := pull.CreateConsumer{Stream: stream, Config: cfg, Action: "create"}
	if err := w.buckets.conn.Call(ctx, "watch "+w.buckets.bucket(w.bk), create, req, &info); err != nil {
		return "", 0, err
	}
	return cfg.Name, int64(info.NumPending), nil
}

// wants reports whether a filter matches the subject: the consumer may deliver more.
func (w *watch) wants(subject string) bool {
	return slices.ContainsFunc(w.filters, func(f string) bool { return matches(f, subject) })
}

// show calls fn with one message unless it was reported before.
func (w *watch) show(d pull.Delivery) error {
	if !w.wants(d.Msg.Subject) {
		return nil
	}
	e := entryOf(d.Msg, w.buckets.bucket(w.bk))
	e.Rev, e.At = d.Seq, d.At
	was, known := w.known[e.Key]
	now := shown{rev: e.Rev, at: e.At.UnixNano(), round: w.round, ends: w.ending(e.Key, d)}
	switch {
	case !known && w.after.Rev == 0 && !e.At.After(w.after.At):
		return nil
	case e.Deleted && !known && w.every:
		return w.deliver(Update{Entry: e, Unseen: true})
	case e.Deleted && !known:
		return nil
	case e.Deleted:
		delete(w.known, e.Key)
	case known && was.rev == now.rev && was.at == now.at:
		w.known[e.Key] = now
		return nil
	default:
		w.known[e.Key] = now
	}
	return w.deliver(Update{Entry: e})
}

// caughtUp ends a round: keys that it did not see are gone. It asks the leader before it reports a key as gone.
func (w *watch) caughtUp(ctx context.Context) error {
	for key, was := range w.known {
		if was.round == w.round {
			continue
		}
		m, err := w.buckets.conn.Get(ctx, core.KVStream(w.buckets.bucket(w.bk)),
			core.GetRequest{Last: core.KVSubject(w.buckets.bucket(w.bk), key)})
		switch {
		case err == nil:
			if deleted, _ := core.Deletion(m.Header); !deleted {
				// it was written a moment ago, and will be delivered
				continue
			}
		case core.NoStream(err), !errors.Is(err, core.ErrNotFound) && !errors.Is(err, core.ErrForbidden):
			return err
		}
		delete(w.known, key)
		gone := Entry{Key: key, Rev: was.rev, At: time.Unix(0, was.at).UTC(), Deleted: true, Expired: true}
		if err := w.deliver(Update{Entry: gone}); err != nil {
			return err
		}
	}
	if w.ready {
		return nil
	}
	w.ready = true
	return w.deliver(Update{Ready: true})
}

func (w *watch) deliver(u Update) error {
	if err := w.fn(u); err != nil {
		return pull.Callback(err)
	}
	return nil
}

// entryOf decodes a bucket's message. It does not have revision and instant.
func entryOf(m *nats.Msg, bucket string) Entry {
	e := Entry{Key: strings.TrimPrefix(m.Subject, core.KVSubject(bucket, "")), Value: m.Data}
	e.Deleted, e.Expired = core.Deletion(m.Header)
	if !e.Deleted {
		e.TTL = core.TTLOf(m.Header.Get(jetstream.MsgTTLHeader))
	}
	return e
}
