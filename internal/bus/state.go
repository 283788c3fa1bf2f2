package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is one of the two buckets of a cell.
type Bucket int

// The buckets.
const (
	State  Bucket = iota // documents and views
	Leases               // tickets and leases
)

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
func (b *Bus) entry(bk Bucket, m *message) Entry {
	e := entryOf(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, b.bucket(bk))
	e.Rev, e.At = m.Seq, m.Time
	return e
}

// Load reads a key from the bucket's leader; [ErrNotFound] if it does not exist or was deleted.
func (b *Bus) Load(ctx context.Context, bk Bucket, key string) (Entry, error) {
	e, err := b.loadAny(ctx, bk, key)
	if err == nil && e.Deleted {
		return Entry{}, fmt.Errorf("%w: %s: deleted", ErrNotFound, key)
	}
	return e, err
}

// loadAny is Load that also returns the marker of a deletion.
func (b *Bus) loadAny(ctx context.Context, bk Bucket, key string) (Entry, error) {
	bucket := b.bucket(bk)
	m, err := b.get(ctx, kvStream(bucket), getRequest{Last: kvSubject(bucket, key)})
	if err != nil {
		return Entry{}, err
	}
	return b.entry(bk, m), nil
}

// Store writes a key in place of revision rev and returns the new revision. rev 0: the key must not exist or be
// deleted. [ErrLostRace] if it is at another revision. The same value stored again in place of the same revision is
// recognised. [ErrUnreachable]: ctx ended and the outcome is unknown; store the same again.
func (b *Bus) Store(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) (uint64, error) {
	return b.StoreAsync(ctx, bk, key, value, rev).Wait(ctx)
}

// StoreAsync is [Bus.Store] without waiting, for concurrent writes of many keys. It blocks only while the window of
// unacknowledged publishes is full.
func (b *Bus) StoreAsync(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) Pending {
	return b.begin(ctx, b.docWrite(bk, key, value, rev))
}

func (b *Bus) docWrite(bk Bucket, key string, value []byte, rev uint64) *write {
	msg := &nats.Msg{Subject: kvSubject(b.bucket(bk), key), Data: value, Header: nats.Header{}}
	is := func(e Entry) bool { return !e.Deleted && bytes.Equal(e.Value, value) }
	return b.replacement("store "+key, bk, key, msg, rev, is)
}

// Delete marks a key as deleted in place of revision rev; [ErrLostRace] if it is at another one. A deleted key is a
// success. The marker is removed after an hour.
func (b *Bus) Delete(ctx context.Context, bk Bucket, key string, rev uint64) error {
	msg := &nats.Msg{Subject: kvSubject(b.bucket(bk), key), Header: nats.Header{
		headerOperation:        {operationPurge},
		jetstream.MsgTTLHeader: {ttlSeconds(markerTTL)},
	}}
	_, err := b.begin(ctx, b.replacement("delete "+key, bk, key, msg, rev,
		func(e Entry) bool { return e.Deleted })).Wait(ctx)
	if !errors.Is(err, ErrLostRace) {
		return err
	}
	if _, gone := b.loadAny(ctx, bk, key); errors.Is(gone, ErrNotFound) {
		return nil
	}
	return err
}

// replacement is a write of one key under its own revision; is distinguishes the own entry from another's.
func (b *Bus) replacement(op string, bk Bucket, key string, msg *nats.Msg, rev uint64, is func(Entry) bool) *write {
	guard := rev
	setGuard := func() { msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(guard, 10)} }
	setGuard()
	look := func(ctx context.Context) (verdict, uint64, error) {
		e, err := b.loadAny(ctx, bk, key)
		switch {
		case noStream(err):
			return undecided, 0, err
		case errors.Is(err, ErrNotFound):
			if rev != 0 {
				return lost, 0, nil
			}
			if guard == 0 {
				return undecided, 0, nil
			}
			guard = 0 // the marker to replace is gone, too
			setGuard()
			return moved, 0, nil
		case err != nil:
			return undecided, 0, err
		case e.Rev == guard:
			return undecided, 0, nil
		case is(e) && e.Rev > rev:
			return stored, e.Rev, nil
		case rev == 0 && e.Deleted:
			guard = e.Rev
			setGuard()
			return moved, 0, nil
		default:
			return lost, 0, nil
		}
	}
	return &write{op: op, msg: msg, look: look}
}

// StoreDocs stores documents of different keys, each in place of its revision, and then the entries of their views,
// while the document is current. It returns the documents' revisions. Errors are those of [Bus.Store]; after an error
// the state of the others is unknown, except that no entry of an older document replaces one of a newer. [ErrLostRace]
// for an entry: another process has a newer document and writes its entries.
//
// To a broker that syncs each write it sends them together: one batch costs one sync, and its entries need no guard
// beside their document.
func (b *Bus) StoreDocs(ctx context.Context, docs []Doc) ([]uint64, error) {
	revs := make([]uint64, 0, len(docs))
	for len(docs) > 0 {
		n, msgs := b.docsTogether(docs)
		last, ok := uint64(0), false
		if len(msgs) >= batchMin {
			var err error
			last, err = b.ack(ctx, b.sendBatch(ctx, msgs))
			if ok = err == nil; ctx.Err() != nil && !ok {
				return nil, fmt.Errorf("bus: store %s and others: %w", docs[0].Key, err)
			}
		}
		now := make([]uint64, n)
		for i, at := 0, last-uint64(len(msgs)); ok && i < n; i++ { // they were stored one after the other
			now[i] = docs[i].Rev
			if docs[i].Value != nil {
				at, now[i] = at+1, at+1
			}
			at += uint64(len(docs[i].Views))
		}
		if !ok {
			if err := b.storeEach(ctx, docs[:n], now); err != nil {
				return nil, err
			}
		}
		revs, docs = append(revs, now...), docs[n:]
	}
	return revs, nil
}

// docsTogether returns how many of the documents, from the first, are sent together, and their messages; none if each
// is stored alone.
func (b *Bus) docsTogether(docs []Doc) (n int, msgs []*nats.Msg) {
	if !b.together.Load() {
		return len(docs), nil
	}
	bytes := 0
	for n < len(docs) {
		d := &docs[n]
		more := make([]*nats.Msg, 0, 1+len(d.Views))
		if d.Value != nil {
			more = append(more, b.docWrite(State, d.Key, d.Value, d.Rev).msg)
		}
		for _, v := range d.Views {
			v.GuardKey, v.GuardRev = d.Key, d.Rev
			m := b.viewWrite(v).msg
			if d.Value != nil { // the broker takes no guard on a key of the same batch, and none is needed
				delete(m.Header, jetstream.ExpectedLastSubjSeqHeader)
				delete(m.Header, jetstream.ExpectedLastSubjSeqSubjHeader)
			}
			more = append(more, m)
		}
		for _, m := range more {
			bytes += len(m.Data)
		}
		if n > 0 && (len(msgs)+len(more) > batchMessagesMax || bytes > batchBytesMax) {
			break
		}
		n, msgs = n+1, append(msgs, more...)
	}
	return n, msgs
}

// storeEach stores documents concurrently, then their entries: those of one document one after the other, because three
// nodes refuse a second write with the same guard.
func (b *Bus) storeEach(ctx context.Context, docs []Doc, revs []uint64) error {
	under := make([]Pending, len(docs))
	for i, d := range docs {
		if d.Value != nil {
			under[i] = b.StoreAsync(ctx, State, d.Key, d.Value, d.Rev)
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
	var views []Pending
	for round := 0; ; round++ {
		views = views[:0]
		for i, d := range docs {
			if round < len(d.Views) {
				v := d.Views[round]
				v.GuardKey, v.GuardRev = d.Key, revs[i]
				views = append(views, b.StoreView(ctx, v))
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

// feedTogether splits off the messages that are sent together.
func (b *Bus) feedTogether(msgs []*nats.Msg) (now, later []*nats.Msg) {
	if !b.together.Load() {
		return msgs, nil
	}
	n, bytes := 0, 0
	for ; n < len(msgs) && n < batchMessagesMax; n++ {
		if bytes += len(msgs[n].Data); n > 0 && bytes > batchBytesMax {
			break
		}
	}
	return msgs[:n], msgs[n:]
}

// sendFeed sends messages as one batch or each by itself.
func (b *Bus) sendFeed(ctx context.Context, msgs []*nats.Msg) []sent {
	if b.together.Load() && len(msgs) >= batchMin {
		return []sent{b.sendBatch(ctx, msgs)}
	}
	under := make([]sent, len(msgs))
	for i, m := range msgs {
		under[i] = b.send(ctx, m)
	}
	return under
}

// fed waits until the messages are stored. A refused batch, some of which may be stored, is sent once more, each
// message alone.
func (b *Bus) fed(ctx context.Context, msgs []*nats.Msg, under []sent) error {
	if len(under) != len(msgs) {
		if _, err := b.ack(ctx, under[0]); err == nil || ctx.Err() != nil {
			return err
		}
		under = under[:0]
		for _, m := range msgs {
			under = append(under, b.send(ctx, m))
		}
	}
	for i, s := range under {
		if err := b.repeat(ctx, "feed", msgs[i], s); err != nil {
			return err
		}
	}
	return nil
}

// StoreView writes or deletes an entry of a view, if the document it was derived from is still at that revision, else
// [ErrLostRace]: another process has a newer document and writes the view. At most one call for a document may be in
// flight.
func (b *Bus) StoreView(ctx context.Context, v View) Pending {
	return b.begin(ctx, b.viewWrite(v))
}

func (b *Bus) viewWrite(v View) *write {
	bucket := b.bucket(State)
	h := nats.Header{
		jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(v.GuardRev, 10)},
		jetstream.ExpectedLastSubjSeqSubjHeader: {kvSubject(bucket, v.GuardKey)},
	}
	ttl := v.TTL
	if v.Value == nil {
		h[headerOperation] = []string{operationPurge}
		ttl = markerTTL
	}
	if ttl > 0 {
		h[jetstream.MsgTTLHeader] = []string{ttlSeconds(ttl)}
	}
	look := func(ctx context.Context) (verdict, uint64, error) {
		e, err := b.loadAny(ctx, State, v.GuardKey)
		switch {
		case noStream(err):
			return undecided, 0, err
		case errors.Is(err, ErrNotFound) && v.GuardRev != 0:
			return lost, 0, nil
		case errors.Is(err, ErrNotFound):
			return undecided, 0, nil
		case err != nil:
			return undecided, 0, err
		case e.Rev != v.GuardRev:
			return lost, 0, nil
		default:
			return undecided, 0, nil
		}
	}
	msg := &nats.Msg{Subject: kvSubject(bucket, v.Key), Header: h, Data: v.Value}
	return &write{op: "store view " + v.Key, msg: msg, look: look}
}

// ttlSeconds returns a TTL in the broker's form: whole seconds, at least one, rounded up.
func ttlSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(max((d+time.Second-1)/time.Second, 1)), 10)
}

// List calls fn with the live entries whose keys match the filter ("session.h.*", ">"), in the order of their
// revisions. An entry that changes meanwhile may come twice, the newest last. An error of fn ends it and is returned
// unchanged.
func (b *Bus) List(ctx context.Context, bk Bucket, filter string, fn func(Entry) error) error {
	bucket := b.bucket(bk)
	s := span{stream: kvStream(bucket), filter: kvSubject(bucket, filter), from: 1, open: true}
	last, err := b.get(ctx, s.stream, getRequest{Last: s.filter})
	if errors.Is(err, ErrNotFound) && !noStream(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.last = last.Seq
	return b.replay(ctx, s, func(m *message) error {
		if e := b.entry(bk, m); !e.Deleted {
			return fn(e)
		}
		return nil
	})
}
