package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unique"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Rolls have what is counted of each document, about 150 bytes for each. It is for one goroutine at a time.
type Rolls struct {
	of                      map[string]roll // by key
	waiting, parked, unread int
	ignored                 int
	owned                   map[unique.Handle[string]]int // sessions, by the key of their owner's lease
	odd, stuck              map[string]bool
	asked                   map[string]time.Time // of the oldest request that its harness has not taken
	ended                   map[string]ending
	last                    uint64 // no document has folded a later commit
}

// roll is what is counted of one document.
type roll struct {
	seq             uint64
	waiting, unread bool
	parked, ignored uint32
	owner           unique.Handle[string] // the zero value without one
}

// ending is why retention has to look at a session: it was closed, or never opened.
type ending struct {
	at     time.Time // when it was closed, or last written to
	seq    uint64
	soon   bool // however long ago it was closed
	unborn bool
}

// NewRolls returns rolls without documents.
func NewRolls() *Rolls {
	return &Rolls{of: map[string]roll{}, owned: map[unique.Handle[string]]int{}, odd: map[string]bool{},
		stuck: map[string]bool{}, asked: map[string]time.Time{}, ended: map[string]ending{}}
}

// Put counts the document at a key, in place of an earlier one. err: it cannot be read.
func (x *Rolls) Put(key string, s *session.State, err error) {
	x.Remove(key)
	if err != nil {
		x.of[key] = roll{unread: true}
		x.unread++
		return
	}
	r := roll{seq: s.Seq, waiting: len(s.PendingPrompts()) > 0, parked: uint32(s.Parked),
		ignored: uint32(s.Ignored.Count)}
	if r.waiting {
		x.waiting++
	}
	x.parked, x.ignored, x.last = x.parked+int(r.parked), x.ignored+int(r.ignored), max(x.last, s.Seq)
	if r.parked+r.ignored > 0 {
		x.odd[key] = true
	}
	if s.Owned {
		r.owner = unique.Make(events.HarnessLeaseKey(s.Harness, s.Incarnation))
		x.owned[r.owner]++
	}
	if isStuck(s) {
		x.stuck[key] = true
	}
	if at := oldestRequest(&s.Pending); !at.IsZero() {
		x.asked[key] = at
	}
	switch {
	case !s.Opened():
		x.ended[key] = ending{at: s.UpdatedAt, seq: s.Seq, unborn: true}
	case s.Closed != nil:
		x.ended[key] = ending{at: s.Closed.At, seq: s.Closed.Seq, soon: s.Closed.Purged || !s.Began()}
	}
	x.of[key] = r
}

// Remove forgets the document at a key.
func (x *Rolls) Remove(key string) {
	r, known := x.of[key]
	if !known {
		return
	}
	delete(x.of, key)
	if r.waiting {
		x.waiting--
	}
	if r.unread {
		x.unread--
	}
	x.parked, x.ignored = x.parked-int(r.parked), x.ignored-int(r.ignored)
	if r.owner != (unique.Handle[string]{}) {
		if x.owned[r.owner]--; x.owned[r.owner] == 0 {
			delete(x.owned, r.owner)
		}
	}
	delete(x.odd, key)
	delete(x.stuck, key)
	delete(x.asked, key)
	delete(x.ended, key)
}

// isStuck reports whether a session waits for a person after a failure.
func isStuck(s *session.State) bool {
	return s.Closed == nil && (s.Retry.State == session.RetryAbandoned ||
		s.Continuations.State == session.ContinuationsHeld ||
		s.Compaction != nil && s.Compaction.State == session.CompactionHeld)
}

// oldestRequest returns the instant of the oldest request that the harness has not taken; the zero time without one.
func oldestRequest(p *session.Pending) time.Time {
	var oldest time.Time
	add := func(at time.Time) {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if p.Turn != nil {
		add(p.Turn.At)
	}
	if p.Stop != nil {
		add(p.Stop.At)
	}
	if p.Compaction != nil {
		add(p.Compaction.At)
	}
	return oldest
}

// rollsKept is how old rolls may be that are continued: after that a marker of a deletion may be gone.
const rollsKept = 20 * time.Minute

// known are the rolls of all documents, as far as this process has read them.
type known struct {
	mu    sync.Mutex
	rolls *Rolls    // nil: not read yet
	rev   uint64    // up to which all changes are in the rolls
	at    time.Time // when they were read
}

// with reads what has changed, and calls fn with the rolls. fn has them alone.
func (k *known) with(ctx context.Context, buckets *kv.Buckets, fn func(*Rolls) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.read(ctx, buckets); err != nil {
		return err
	}
	return fn(k.rolls)
}

// read reads what has changed; all documents, if it cannot tell.
func (k *known) read(ctx context.Context, buckets *kv.Buckets) error {
	now := time.Now()
	if k.rolls != nil && now.Sub(k.at) < rollsKept {
		end, err := k.changes(ctx, buckets, k.rolls, k.rev)
		if err == nil && end >= k.rev {
			k.at = now
			return nil
		}
		if err != nil {
			// some of it may have been counted; it is read again
			return err
		}
	}
	all := NewRolls()
	k.rev = 0
	if _, err := k.changes(ctx, buckets, all, 0); err != nil {
		k.rolls = nil
		return err
	}
	k.rolls, k.at = all, now
	return nil
}

// changes counts the documents that changed after a revision, and moves rev.
func (k *known) changes(ctx context.Context, buckets *kv.Buckets, to *Rolls, after uint64) (uint64, error) {
	end, err := buckets.Changes(ctx, kv.State, events.SessionKeys(""), after, func(e kv.Entry) error {
		if e.Deleted {
			to.Remove(e.Key)
		} else {
			s, err := session.Decode(e.Value)
			to.Put(e.Key, s, err)
		}
		k.rev = max(k.rev, e.Rev)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("documents that have changed: %w", err)
	}
	return end, nil
}

// replace takes rolls of all documents, which were read from a revision on.
func (k *known) replace(all *Rolls, from uint64, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rolls, k.rev, k.at = all, from, at
}
