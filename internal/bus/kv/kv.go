// Package kv stores and watches the keys of the two buckets of a cell: documents and views, and leases.
//
// Each write names the revision that it replaces. The leader answers each read. A view is stored only while its
// document is at the revision that the view was derived from. A watch survives the broker.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// sessionKeys begins the keys of documents, which the fold of the log gives again.
const sessionKeys = "session."

// bucket returns a bucket's name.
func (bs *Buckets) bucket(bk Bucket) string {
	if bk == Leases {
		return bs.conn.Cell.LeaseBucket()
	}
	return bs.conn.Cell.StateBucket()
}

// Bucket is one of the two buckets of a cell.
type Bucket int

// The buckets.
const (
	State  Bucket = iota // documents and views
	Leases               // tickets and leases
)

// Buckets reads, writes and watches the buckets of a cell. Its methods may be called concurrently.
type Buckets struct {
	conn  *core.Conn
	clock timekeeper
}

// timekeeper gives the broker's time, for the age of the entries that a watch finds.
type timekeeper interface {
	Now(ctx context.Context) (time.Time, error)
	Guess() (now time.Time, known bool)
}

// New returns the buckets of the cell of a connection, by the broker's clock.
func New(conn *core.Conn, clock timekeeper) *Buckets { return &Buckets{conn: conn, clock: clock} }

// Entry is one key of a bucket. Only watches return deleted entries.
type Entry struct {
	Key     string
	Value   []byte
	Rev     uint64    // the revision that a write replacing it must name
	At      time.Time // the broker's, of this revision
	Deleted bool
	Expired bool          // deleted by the broker at the end of its TTL
	TTL     time.Duration // the broker ends it this long after At; 0: never, or a deleted entry
}

// View is one entry derived from a document: it is stored only while the document is at the revision that it was
// derived from.
type View struct {
	Key      string
	Value    []byte        // nil: delete the key
	GuardKey string        // the document's key
	GuardRev uint64        // the document's revision
	TTL      time.Duration // the entry expires after it, in whole seconds, at least one; 0: never
}

// Doc is a document with the entries derived from it.
type Doc struct {
	Key   string
	Value []byte // nil: the document is kept at Rev, and only its entries are written
	Rev   uint64 // the revision it replaces, 0: no document
	Views []View // guarded by this document: GuardKey and GuardRev need not be set
}

// entry decodes a stored message of a bucket.
func (bs *Buckets) entry(bk Bucket, m *core.Raw) Entry {
	e := entryOf(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, bs.bucket(bk))
	e.Rev, e.At = m.Seq, m.Time
	return e
}

// Load reads a key from the bucket's leader; [core.ErrNotFound] if it does not exist or was deleted.
func (bs *Buckets) Load(ctx context.Context, bk Bucket, key string) (Entry, error) {
	e, err := bs.loadAny(ctx, bk, key)
	if err == nil && e.Deleted {
		return Entry{}, fmt.Errorf("%w: %s: deleted", core.ErrNotFound, key)
	}
	return e, err
}

// loadAny is Load that also returns the marker of a deletion.
func (bs *Buckets) loadAny(ctx context.Context, bk Bucket, key string) (Entry, error) {
	bucket := bs.bucket(bk)
	m, err := bs.conn.Get(ctx, core.KVStream(bucket), core.GetRequest{Last: core.KVSubject(bucket, key)})
	if err != nil {
		return Entry{}, err
	}
	return bs.entry(bk, m), nil
}

// Store writes a key in place of revision rev and returns the new revision. rev 0: the key must not exist or be
// deleted. [core.ErrLostRace] if it is at another revision. The same value stored again in place of the same revision
// is recognised. [core.ErrUnreachable]: ctx ended and the outcome is unknown; store the same again.
func (bs *Buckets) Store(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) (uint64, error) {
	return bs.StoreAsync(ctx, bk, key, value, rev).Wait(ctx)
}

// StoreAsync is [Buckets.Store] without waiting, for concurrent writes of many keys. It blocks only while the window of
// unacknowledged publishes is full.
func (bs *Buckets) StoreAsync(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) core.Pending {
	w := bs.docWrite(bk, key, value, rev)
	// a note, which no fold gives again
	if bk == State && !strings.HasPrefix(key, sessionKeys) {
		w.Synced = core.KVStream(bs.bucket(bk))
	}
	return bs.conn.Begin(ctx, w)
}

func (bs *Buckets) docWrite(bk Bucket, key string, value []byte, rev uint64) *core.Write {
	msg := &nats.Msg{Subject: core.KVSubject(bs.bucket(bk), key), Data: value, Header: nats.Header{}}
	is := func(e Entry) bool { return !e.Deleted && bytes.Equal(e.Value, value) }
	return bs.replacement("store "+key, bk, key, msg, rev, is)
}

// Delete marks a key as deleted in place of revision rev; [core.ErrLostRace] if it is at another one. A deleted key is
// a success. The marker is removed after an hour.
func (bs *Buckets) Delete(ctx context.Context, bk Bucket, key string, rev uint64) error {
	msg := &nats.Msg{Subject: core.KVSubject(bs.bucket(bk), key), Header: nats.Header{
		core.HeaderOperation:   {core.OperationPurge},
		jetstream.MsgTTLHeader: {core.TTLSeconds(core.MarkerTTL)},
	}}
	_, err := bs.conn.Begin(ctx, bs.replacement("delete "+key, bk, key, msg, rev,
		func(e Entry) bool { return e.Deleted })).Wait(ctx)
	if !errors.Is(err, core.ErrLostRace) {
		return err
	}
	if _, gone := bs.loadAny(ctx, bk, key); errors.Is(gone, core.ErrNotFound) {
		return nil
	}
	return err
}

// replacement is a write of one key under its own revision; is distinguishes the own entry from another's.
func (bs *Buckets) replacement(op string, bk Bucket, key string, msg *nats.Msg, rev uint64,
	is func(Entry) bool) *core.Write {
	guard := rev
	setGuard := func() { msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(guard, 10)} }
	setGuard()
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		e, err := bs.loadAny(ctx, bk, key)
		switch {
		case core.NoStream(err):
			return core.Undecided, 0, err
		case errors.Is(err, core.ErrNotFound):
			if rev != 0 {
				return core.Lost, 0, nil
			}
			if guard == 0 {
				return core.Undecided, 0, nil
			}
			// the marker to replace is gone, too
			guard = 0
			setGuard()
			return core.Moved, 0, nil
		case err != nil:
			return core.Undecided, 0, err
		case e.Rev == guard:
			return core.Undecided, 0, nil
		case is(e) && e.Rev > rev:
			return core.Stored, e.Rev, nil
		case rev == 0 && e.Deleted:
			guard = e.Rev
			setGuard()
			return core.Moved, 0, nil
		default:
			return core.Lost, 0, nil
		}
	}
	return &core.Write{Op: op, Msg: msg, Verify: verify}
}

// StoreDocs stores documents of different keys, each in place of its revision, and then the entries of their views,
// while the document is current. It returns the documents' revisions. Errors are those of [Buckets.Store]; after an
// error the state of the others is unknown, except that no entry of an older document replaces one of a newer.
// [core.ErrLostRace] for an entry: another process has a newer document and writes its entries.
//
// To a broker that syncs each write it sends them together: one batch costs one sync, and its entries need no guard
// beside their document.
func (bs *Buckets) StoreDocs(ctx context.Context, docs []Doc) ([]uint64, error) {
	revs := make([]uint64, 0, len(docs))
	for len(docs) > 0 {
		n, msgs := bs.docsTogether(docs)
		last, ok := uint64(0), false
		if len(msgs) >= core.BatchMin {
			var err error
			last, err = bs.conn.Ack(ctx, bs.conn.SendBatch(ctx, msgs))
			if ok = err == nil; ctx.Err() != nil && !ok {
				return nil, fmt.Errorf("store %s and others: %w", docs[0].Key, err)
			}
		}
		now := make([]uint64, n)
		// they were stored one after the other
		for i, at := 0, last-uint64(len(msgs)); ok && i < n; i++ {
			now[i] = docs[i].Rev
			if docs[i].Value != nil {
				at, now[i] = at+1, at+1
			}
			at += uint64(len(docs[i].Views))
		}
		if !ok {
			if err := bs.storeEach(ctx, docs[:n], now); err != nil {
				return nil, err
			}
		}
		revs, docs = append(revs, now...), docs[n:]
	}
	return revs, nil
}

// docsTogether returns how many of the documents, from the first, are sent together, and their messages; none if each
// is stored alone.
func (bs *Buckets) docsTogether(docs []Doc) (n int, msgs []*nats.Msg) {
	if !bs.conn.Together.Load() {
		return len(docs), nil
	}
	bytes := 0
	for n < len(docs) {
		d := &docs[n]
		more := make([]*nats.Msg, 0, 1+len(d.Views))
		if d.Value != nil {
			more = append(more, bs.docWrite(State, d.Key, d.Value, d.Rev).Msg)
		}
		for _, v := range d.Views {
			v.GuardKey, v.GuardRev = d.Key, d.Rev
			m := bs.viewWrite(v).Msg
			// the broker takes no guard on a key of the same batch, and none is needed
			if d.Value != nil {
				delete(m.Header, jetstream.ExpectedLastSubjSeqHeader)
				delete(m.Header, jetstream.ExpectedLastSubjSeqSubjHeader)
			}
			more = append(more, m)
		}
		for _, m := range more {
			bytes += len(m.Data)
		}
		if n > 0 && (len(msgs)+len(more) > core.BatchMessagesMax || bytes > core.BatchBytesMax) {
			break
		}
		n, msgs = n+1, append(msgs, more...)
	}
	return n, msgs
}

// storeEach stores documents concurrently, then their entries: those of one document one after the other, because three
// nodes refuse a second write with the same guard.
func (bs *Buckets) storeEach(ctx context.Context, docs []Doc, revs []uint64) error {
	under := make([]core.Pending, len(docs))
	for i, d := range docs {
		if d.Value != nil {
			under[i] = bs.StoreAsync(ctx, State, d.Key, d.Value, d.Rev)
		}
	}
	for i, p := range under {
		rev, err := p.Wait(ctx)
		if err != nil {
			return err
		}
		if revs[i] = rev; docs[i].Value == nil {
			revs[i] = docs[i].Rev
		}
	}
	var views []core.Pending
	for round := 0; ; round++ {
		views = views[:0]
		for i, d := range docs {
			if round < len(d.Views) {
				v := d.Views[round]
				v.GuardKey, v.GuardRev = d.Key, revs[i]
				views = append(views, bs.StoreView(ctx, v))
			}
		}
		if len(views) == 0 {
			return nil
		}
		for _, p := range views {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
		}
	}
}

// StoreView writes or deletes an entry of a view, if the document it was derived from is still at that revision, else
// [core.ErrLostRace]: another process has a newer document and writes the view. At most one call for a document may be
// in flight.
func (bs *Buckets) StoreView(ctx context.Context, v View) core.Pending {
	return bs.conn.Begin(ctx, bs.viewWrite(v))
}

func (bs *Buckets) viewWrite(v View) *core.Write {
	bucket := bs.bucket(State)
	h := nats.Header{
		jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(v.GuardRev, 10)},
		jetstream.ExpectedLastSubjSeqSubjHeader: {core.KVSubject(bucket, v.GuardKey)},
	}
	ttl := v.TTL
	if v.Value == nil {
		h[core.HeaderOperation] = []string{core.OperationPurge}
		ttl = core.MarkerTTL
	}
	if ttl > 0 {
		h[jetstream.MsgTTLHeader] = []string{core.TTLSeconds(ttl)}
	}
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		e, err := bs.loadAny(ctx, State, v.GuardKey)
		switch {
		case core.NoStream(err):
			return core.Undecided, 0, err
		case errors.Is(err, core.ErrNotFound) && v.GuardRev != 0:
			return core.Lost, 0, nil
		case errors.Is(err, core.ErrNotFound):
			return core.Undecided, 0, nil
		case err != nil:
			return core.Undecided, 0, err
		case e.Rev != v.GuardRev:
			return core.Lost, 0, nil
		default:
			return core.Undecided, 0, nil
		}
	}
	msg := &nats.Msg{Subject: core.KVSubject(bucket, v.Key), Header: h, Data: v.Value}
	return &core.Write{Op: "store view " + v.Key, Msg: msg, Verify: verify}
}

// List calls fn with the live entries whose keys match the filter ("session.h.*", ">"), in the order of their
// revisions. An entry that changes meanwhile may come twice, the newest last. An error of fn ends it and is returned
// unchanged.
func (bs *Buckets) List(ctx context.Context, bk Bucket, filter string, fn func(Entry) error) error {
	return bs.ListAfter(ctx, bk, filter, 0, fn)
}

// ListAfter is [Buckets.List] with the entries behind a revision only. An entry that changes after it was listed has a
// higher revision then: it is listed again, and none is left out.
func (bs *Buckets) ListAfter(ctx context.Context, bk Bucket, filter string, rev uint64, fn func(Entry) error) error {
	last, err := bs.newest(ctx, bk, filter)
	if err != nil || last <= rev {
		return err
	}
	return bs.replay(ctx, bk, pull.Span{Filter: filter, From: rev + 1, Last: last, Open: true}, fn)
}

// newestFirst is how many revisions ListNewest reads before it asks whether these are enough.
const newestFirst = 256

// ListNewest is [Buckets.List] with the newest entries first, until enough returns true: it reads groups of revisions,
// each four times as long as the one before. Within a group the entries have the order of their revisions. The entries
// that changed meanwhile come last. older reports whether there are entries that it has not read.
func (bs *Buckets) ListNewest(ctx context.Context, bk Bucket, filter string, enough func() bool,
	fn func(Entry) error) (older bool, err error) {
	newest, err := bs.newest(ctx, bk, filter)
	if err != nil || newest == 0 {
		return false, err
	}
	last := newest
	for n := uint64(newestFirst); last > 0 && !enough(); n *= 4 {
		from := last - min(last, n) + 1
		if err := bs.replay(ctx, bk, pull.Span{Filter: filter, From: from, Last: last}, fn); err != nil {
			return false, err
		}
		last = from - 1
	}
	if last > 0 {
		s := core.KVStream(bs.bucket(bk))
		first, err := bs.conn.Get(ctx, s, core.GetRequest{Seq: 1, Next: core.KVSubject(bs.bucket(bk), filter)})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return false, err
		}
		older = err == nil && first.Seq <= last
	}
	return older, bs.ListAfter(ctx, bk, filter, newest, fn)
}

// Mark returns the present end of a bucket; the zero Mark if it has no entry.
func (bs *Buckets) Mark(ctx context.Context, bk Bucket) (Mark, error) {
	last, err := bs.end(ctx, bk, ">")
	if err != nil || last == nil {
		return Mark{}, err
	}
	return Mark{Rev: last.Seq, At: last.Time}, nil
}

// newest returns the highest revision of the entries that match the filter; 0 without one.
func (bs *Buckets) newest(ctx context.Context, bk Bucket, filter string) (uint64, error) {
	last, err := bs.end(ctx, bk, filter)
	if err != nil || last == nil {
		return 0, err
	}
	return last.Seq, nil
}

// end returns the newest entry that matches the filter; nil without one.
func (bs *Buckets) end(ctx context.Context, bk Bucket, filter string) (*core.Raw, error) {
	bucket := bs.bucket(bk)
	last, err := bs.conn.Get(ctx, core.KVStream(bucket), core.GetRequest{Last: core.KVSubject(bucket, filter)})
	if errors.Is(err, core.ErrNotFound) && !core.NoStream(err) {
		return nil, nil
	}
	return last, err
}

// replay calls fn with the live entries of a span, whose filter is one of keys.
func (bs *Buckets) replay(ctx context.Context, bk Bucket, s pull.Span, fn func(Entry) error) error {
	bucket := bs.bucket(bk)
	s.Stream, s.Filter = core.KVStream(bucket), core.KVSubject(bucket, s.Filter)
	return pull.Replay(ctx, bs.conn, s, func(m *core.Raw) error {
		if e := bs.entry(bk, m); !e.Deleted {
			return fn(e)
		}
		return nil
	})
}
