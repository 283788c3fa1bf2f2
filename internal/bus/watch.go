package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Limits of a watch.
const (
	watchWindowMax      = 2_048       // messages asked for ahead
	watchSetupTimeoutMS = 1_000       // one attempt to start again: the broker may not reply during an election
	watchIdleMax        = time.Minute // the broker removes a consumer without pulls after this time
	watchReadyMS        = 1_000       // under continuous writes, Ready does not wait longer than this for a pause
)

// Headers of a bucket's messages.
const (
	headerOperation    = "KV-Operation"
	headerMarkerReason = "Nats-Marker-Reason"
	operationDelete    = "DEL"
	operationPurge     = "PURGE"
	markerMaxAge       = "MaxAge"
)

// Update is one entry of a bucket as a watch reports it.
type Update struct {
	Entry
	Ready bool // all entries that existed at the start have been reported; Entry is empty
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
// fn runs in the caller's goroutine. A slow fn delays only this watch. Only [ErrForbidden] and a closed Bus end it
// otherwise.
func (b *Bus) Watch(ctx context.Context, bk Bucket, filters []string, fn func(Update) error) error {
	w := &watch{b: b, bk: bk, fn: fn, known: map[string]shown{}}
	for _, filter := range filters {
		w.filters = append(w.filters, kvSubject(b.bucket(bk), filter))
	}
	if len(filters) == 0 {
		w.filters = []string{kvSubject(b.bucket(bk), ">")}
	}
	for pace := newBackoff(); ; {
		round := w.round
		err := w.run(ctx)
		var mine callbackError
		switch {
		case errors.As(err, &mine):
			return mine.error
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrForbidden):
			return err
		}
		b.log.Info().AnErr("err", err).Str("entity", b.bucket(bk)).Msg("watch begins anew")
		if err := b.awaitConnected(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if w.round != round { // it had started: this is a new failure
			pace = newBackoff()
		}
		pause(ctx, pace.NextBackOff())
	}
}

// callbackError is an error of the caller's function.
type callbackError struct{ error }

// Unwrap returns the caller's error.
func (e callbackError) Unwrap() error { return e.error }

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
	b       *Bus
	bk      Bucket
	filters []string
	fn      func(Update) error
	known   map[string]shown
	ends    endings // of the entries in known that expire without a marker
	round   uint32  // number of the reading, from 1
	live    bool    // all entries that existed at the start of the round have been reported
	ready   bool    // fn got Ready
}

// run makes a consumer and reports its deliveries until an interruption.
func (w *watch) run(ctx context.Context) error {
	if w.bk == Leases {
		if _, err := w.b.Now(ctx); err != nil { // it gives the age of the leases
			return err
		}
	}
	stream := kvStream(w.b.bucket(w.bk))
	name, toCome, err := w.consumer(ctx, stream)
	if err != nil {
		return err
	}
	defer w.b.forget(stream, name)
	f := w.b.flow(stream, name, watchWindowMax, 1, pull{})
	defer f.close()
	w.round++
	w.live = false
	return w.follow(ctx, f, toCome)
}

// follow reports the deliveries of the flow. The consumer has delivered everything at the moment when nothing is
// pending; a count of the entries at the start does not work, because a key that is written meanwhile moves to the end
// of the queue.
func (w *watch) follow(ctx context.Context, f *flow, toCome int64) error {
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
			quiet = quiet || d.pending == 0
			toCome--
		}
	}
}

// consumer makes the consumer and returns how many messages it will deliver that exist now.
func (w *watch) consumer(ctx context.Context, stream string) (name string, toCome int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchSetupTimeoutMS*time.Millisecond)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name:              "watch-" + nuid.Next(),
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: watchIdleMax,
	}
	create := "CONSUMER.CREATE." + stream + "." + cfg.Name
	if len(w.filters) == 1 {
		cfg.FilterSubject = w.filters[0]
		create += "." + cfg.FilterSubject // permissions use this form
	} else {
		cfg.FilterSubjects = w.filters
	}
	var info jetstream.ConsumerInfo
	req := createConsumer{Stream: stream, Config: cfg, Action: "create"}
	if err := w.b.call(ctx, "watch "+w.b.bucket(w.bk), create, req, &info); err != nil {
		return "", 0, err
	}
	return cfg.Name, int64(info.NumPending), nil
}

// createConsumer is the request of the JetStream API; action is create, update, or empty for either.
type createConsumer struct {
	Stream string                   `json:"stream_name"`
	Config jetstream.ConsumerConfig `json:"config"`
	Action string                   `json:"action,omitempty"`
}

// json0 decodes any JSON object and keeps nothing.
type json0 struct{}

// show calls fn with one message unless it was reported before.
func (w *watch) show(d delivery) error {
	e := entryOf(d.msg, w.b.bucket(w.bk))
	e.Rev, e.At = d.seq, d.at
	was, known := w.known[e.Key]
	now := shown{rev: e.Rev, at: e.At.UnixNano(), round: w.round, ends: w.ending(e.Key, d)}
	switch {
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
	return w.tell(Update{Entry: e})
}

// caughtUp ends a round: keys that it did not see are gone. It asks the leader before it reports a key as gone.
func (w *watch) caughtUp(ctx context.Context) error {
	for key, was := range w.known {
		if was.round == w.round {
			continue
		}
		m, err := w.b.get(ctx, kvStream(w.b.bucket(w.bk)), getRequest{Last: kvSubject(w.b.bucket(w.bk), key)})
		switch {
		case err == nil:
			if deleted, _ := deletion(m.Header); !deleted {
				continue // it was written a moment ago, and will be delivered
			}
		case noStream(err), !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrForbidden):
			return err
		}
		delete(w.known, key)
		gone := Entry{Key: key, Rev: was.rev, At: time.Unix(0, was.at).UTC(), Deleted: true, Expired: true}
		if err := w.tell(Update{Entry: gone}); err != nil {
			return err
		}
	}
	if w.ready {
		return nil
	}
	w.ready = true
	return w.tell(Update{Ready: true})
}

func (w *watch) tell(u Update) error {
	if err := w.fn(u); err != nil {
		return callbackError{err}
	}
	return nil
}

// reader makes a consumer for a stream's messages from a sequence on, and returns how many there are now.
func (b *Bus) reader(ctx context.Context, stream, filter string, from uint64) (name string, pending uint64, err error) {
	cfg := jetstream.ConsumerConfig{
		Name:              "read-" + nuid.Next(),
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       from,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     filter,
		InactiveThreshold: replayIdleMax,
		MemoryStorage:     true,
		Replicas:          1,
	}
	var info jetstream.ConsumerInfo
	create := "CONSUMER.CREATE." + stream + "." + cfg.Name + "." + filter
	err = b.call(ctx, "read "+stream, create, createConsumer{Stream: stream, Config: cfg, Action: "create"}, &info)
	return cfg.Name, info.NumPending, err
}

// Follow calls fn with the commits that are written to the log from now on, of one harness or, without one, of all: in
// order, without gaps, as messages for [Bus.Decode]. It blocks until ctx ends (nil). After an interruption it continues
// where it was; in a log that has lost its end, from there. Only [ErrForbidden] and a closed Bus end it otherwise.
//
// live is called with the place from which fn has received, or will receive, everything in the log; and with 0 if that
// may take longer than usual, because delivery was interrupted. fn and live run in the caller's goroutine.
//
// A commit that fn received was acknowledged to its writer, or will be; but fn may not have received every acknowledged
// commit yet. So a decision that uses it must be stored under a guard, and a reply without an append must be read
// ([Bus.Read]).
func (b *Bus) Follow(ctx context.Context, harness string, live func(from uint64), fn func(Message)) error {
	f := following{b: b, filter: b.cell.LogSubjects(), live: live, fn: fn}
	if harness != "" {
		f.filter = b.cell.LogOf(harness)
	}
	for pace := newBackoff(); ; {
		was := f.next
		err := f.run(ctx)
		live(0)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrForbidden):
			return err
		}
		b.log.Info().AnErr("err", err).Str("entity", b.cell.LogStream()).Msg("the log is followed anew")
		if err := b.awaitConnected(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if f.next != was {
			pace = newBackoff()
		}
		pause(ctx, pace.NextBackOff())
	}
}

// following is one call of Follow.
type following struct {
	b           *Bus
	filter      string
	live        func(uint64)
	fn          func(Message)
	began, next uint64 // where it began, and continues; 0: not yet
}

// run delivers until an interruption.
func (f *following) run(ctx context.Context) error {
	stream := f.b.cell.LogStream()
	setup, cancel := context.WithTimeout(ctx, watchSetupTimeoutMS*time.Millisecond)
	defer cancel()
	last, err := f.b.LastSeq(setup)
	if err != nil {
		return err
	}
	if f.began == 0 || f.next > last+1 { // the second: the log has lost its end, or was created again
		f.began, f.next = last+1, last+1
	}
	name, _, err := f.b.reader(setup, stream, f.filter, f.next)
	if err != nil {
		return err
	}
	defer f.b.forget(stream, name)
	in := f.b.flow(stream, name, watchWindowMax, 1, pull{})
	defer in.close()
	f.live(f.began)
	for {
		ds, err := in.take(ctx, watchWindowMax)
		if err == nil {
			err = f.b.withHeaders(ctx, stream, ds)
		}
		if err != nil {
			return err
		}
		for _, d := range ds {
			f.fn(Message{Subject: d.msg.Subject, Header: d.msg.Header, Body: d.msg.Data, Seq: d.seq, At: d.at})
			f.next = d.seq + 1
		}
	}
}

// entryOf decodes a bucket's message. It does not have revision and instant.
func entryOf(m *nats.Msg, bucket string) Entry {
	e := Entry{Key: strings.TrimPrefix(m.Subject, kvSubject(bucket, "")), Value: m.Data}
	e.Deleted, e.Expired = deletion(m.Header)
	if !e.Deleted {
		e.TTL = ttlOf(m.Header.Get(jetstream.MsgTTLHeader))
	}
	return e
}

// deletion reports whether a bucket's message marks the end of its key, and whether the broker expired it.
func deletion(h nats.Header) (deleted, expired bool) {
	op, reason := h.Get(headerOperation), h.Get(headerMarkerReason)
	return op == operationDelete || op == operationPurge || reason != "", reason == markerMaxAge
}
