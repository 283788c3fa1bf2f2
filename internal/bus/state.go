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

// Entry is one key of a bucket as it stands. Deleted entries are seen by watches only.
type Entry struct {
	Key     string
	Value   []byte
	Rev     uint64    // the revision that a write replacing it must name
	At      time.Time // the broker's, of this revision
	Deleted bool
	Expired bool // deleted by the broker, because its TTL was over
}

// View is one entry derived from a document: it is stored only while the document is at the revision it was derived from.
type View struct {
	Key      string
	Value    []byte        // nil: delete the key
	GuardKey string        // the document's key
	GuardRev uint64        // the document's revision
	TTL      time.Duration // the entry expires after it, in whole seconds, at least one; 0: never
}

// entry reads a stored message of a bucket.
func (b *Bus) entry(bk Bucket, m *message) Entry {
	e := entryOf(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, b.bucket(bk))
	e.Rev, e.At = m.Seq, m.Time
	return e
}

// Load reads a key from the bucket's leader; [ErrNotFound] when it is not there or deleted.
func (b *Bus) Load(ctx context.Context, bk Bucket, key string) (Entry, error) {
	e, err := b.loadAny(ctx, bk, key)
	if err == nil && e.Deleted {
		return Entry{}, fmt.Errorf("%w: %s: deleted", ErrNotFound, key)
	}
	return e, err
}

// loadAny is Load that also sees the mark of a deletion.
func (b *Bus) loadAny(ctx context.Context, bk Bucket, key string) (Entry, error) {
	bucket := b.bucket(bk)
	m, err := b.get(ctx, kvStream(bucket), getRequest{Last: kvSubject(bucket, key)})
	if err != nil {
		return Entry{}, err
	}
	return b.entry(bk, m), nil
}

// Store writes a key in place of revision rev and returns the new revision. rev 0: the key must not exist; a deleted one
// does not. [ErrLostRace] when it is at another revision. The same value stored again in place of the same revision is
// recognised. [ErrUnreachable]: ctx ended and what became of it is unknown; store the same again.
func (b *Bus) Store(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) (uint64, error) {
	return b.StoreAsync(ctx, bk, key, value, rev).Wait(ctx)
}

// StoreAsync is [Bus.Store] without waiting, so that many keys travel together. It blocks only while the window of
// publishes without an acknowledgement is full.
func (b *Bus) StoreAsync(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) Pending {
	msg := &nats.Msg{Subject: kvSubject(b.bucket(bk), key), Data: value, Header: nats.Header{}}
	is := func(e Entry) bool { return !e.Deleted && bytes.Equal(e.Value, value) }
	return b.begin(ctx, b.replacement("store "+key, bk, key, msg, rev, is))
}

// Delete marks a key as deleted in place of revision rev; [ErrLostRace] when it is at another one. A key that is deleted
// already is a success. The mark itself goes after an hour.
func (b *Bus) Delete(ctx context.Context, bk Bucket, key string, rev uint64) error {
	msg := &nats.Msg{Subject: kvSubject(b.bucket(bk), key), Header: nats.Header{
		headerOperation:        {operationPurge},
		jetstream.MsgTTLHeader: {ttlSeconds(markerTTL)},
	}}
	_, err := b.begin(ctx, b.replacement("delete "+key, bk, key, msg, rev, func(e Entry) bool { return e.Deleted })).Wait(ctx)
	if !errors.Is(err, ErrLostRace) {
		return err
	}
	if _, gone := b.loadAny(ctx, bk, key); errors.Is(gone, ErrNotFound) {
		return nil
	}
	return err
}

// replacement is a write of one key under its own revision; is tells our own entry from another's.
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
			guard = 0 // the mark that we meant to replace is gone, too
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

// StoreView writes or deletes an entry of a view, if the document it was derived from is still at that revision, else
// [ErrLostRace]: somebody has a newer document and owes the view. Have one in flight a document at most.
func (b *Bus) StoreView(ctx context.Context, v View) Pending {
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
	return b.begin(ctx, &write{op: "store view " + v.Key, msg: msg, look: look})
}

// ttlSeconds is a TTL as the broker takes it: whole seconds, at least one, never shorter than asked for.
func ttlSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(max((d+time.Second-1)/time.Second, 1)), 10)
}

// List gives fn the live entries whose keys match the filter ("session.h.*", ">"), in the order of their revisions. An
// entry that changes meanwhile may come twice, the newest last. It ends early with the error of fn, as it is.
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
