package ledger

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// cached is a session's stored state, with the revision of its document.
type cached struct {
	state *session.State
	rev   uint64
	bytes int // of the document
}

// cachedBytesMax limits the documents whose states are cached, in bytes; a state takes a few times as much.
const cachedBytesMax = 128 << 20

// cache has the last used sessions, in two generations: a full young one becomes the old one, and sessions that were
// not used meanwhile are dropped. Only the folder puts and changes states, under mu; requests take copies, and a
// rebuild drops what it replaces, at any moment.
type cache struct {
	mu         sync.RWMutex
	young, old map[events.Ref]cached
	max        int // entries in a generation
	bytes      int // of the young one's documents
	bytesMax   int // in a generation
}

func newCache(sessionsMax int) *cache {
	c := &cache{max: max(sessionsMax/2, 1), bytesMax: cachedBytesMax / 2}
	c.clear()
	return c
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = map[events.Ref]cached{}, map[events.Ref]cached{}, 0
}

// get is for the folder, which alone changes the states.
func (c *cache) get(r events.Ref) (cached, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.find(r)
}

// find is get for those that have the lock.
func (c *cache) find(r events.Ref) (cached, bool) {
	if e, ok := c.young[r]; ok {
		return e, true
	}
	e, ok := c.old[r]
	return e, ok
}

// copy returns a copy of a session's last folded state, nil if it is not cached. It may be newer than the document,
// never newer than the log.
func (c *cache) copy(r events.Ref) *session.State {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.find(r); ok {
		return e.state.Clone()
	}
	return nil
}

func (c *cache) put(r events.Ref, e cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.max || c.bytes >= c.bytesMax {
		c.young, c.old, c.bytes = map[events.Ref]cached{}, c.young, 0
	}
	delete(c.old, r)
	c.bytes += e.bytes - c.young[r].bytes
	c.young[r] = e
}

func (c *cache) drop(r events.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= c.young[r].bytes
	delete(c.young, r)
	delete(c.old, r)
}

// Limits of the cached end of the log.
const (
	tailCommitsMax = 16_384
	tailBytesMax   = 16 << 20
)

// tail caches the newest commits of the log as they arrive, so that requests need not read them. A commit that is not
// in it may be in the log: a decision that uses the tail is stored under a guard, or asks the log's leader before it
// replies.
type tail struct {
	mu    sync.Mutex
	parse func(bus.Message) events.Commit
	max   int // bytes
	bytes int
	order []*kept // oldest first
	bySeq map[uint64]*kept
	byRef map[events.Ref][]*kept // each in order
}

// kept is one commit, decoded at first use.
type kept struct {
	ref    events.Ref
	msg    bus.Message
	commit *events.Commit
}

func newTail(parse func(bus.Message) events.Commit, bytesMax int) *tail {
	return &tail{parse: parse, max: bytesMax, bySeq: map[uint64]*kept{}, byRef: map[events.Ref][]*kept{}}
}

// clear drops everything: the broker was away, and the log may have lost commits.
func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order, t.bytes = nil, 0
	clear(t.bySeq)
	clear(t.byRef)
}

// add adds the log's next commit, and drops the oldest ones.
func (t *tail) add(r events.Ref, m bus.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := &kept{ref: r, msg: m}
	t.order, t.bySeq[m.Seq], t.byRef[r] = append(t.order, k), k, append(t.byRef[r], k)
	for t.bytes += len(m.Body); t.bytes > t.max || len(t.order) > tailCommitsMax; {
		old := t.order[0]
		t.order[0] = nil
		t.order, t.bytes = t.order[1:], t.bytes-len(old.msg.Body)
		delete(t.bySeq, old.msg.Seq)
		if t.byRef[old.ref] = t.byRef[old.ref][1:]; len(t.byRef[old.ref]) == 0 {
			delete(t.byRef, old.ref)
		}
	}
}

// commit returns one commit, nil if it is not cached.
func (t *tail) commit(seq uint64) *events.Commit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.bySeq[seq]; k != nil {
		return t.read(k)
	}
	return nil
}

func (t *tail) read(k *kept) *events.Commit {
	if k.commit == nil {
		c := t.parse(k.msg)
		k.commit = &c
	}
	return k.commit
}

// after returns the cached commits of a session after seq. gap: the guards show that some are missing between.
func (t *tail) after(r events.Ref, seq uint64) (cs []events.Commit, gap bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.byRef[r] {
		if k.msg.Seq <= seq {
			continue
		}
		c := t.read(k)
		if !c.Guarded || c.Guard != seq {
			return nil, true
		}
		cs, seq = append(cs, *c), c.Seq
	}
	return cs, false
}

// loadsMax is how many documents are read concurrently.
const loadsMax = 64

// each calls fn for all items, at most limit at a time, and returns the first error after all have ended.
func each[T any](ctx context.Context, limit int, items []T, fn func(context.Context, T) error) error {
	if len(items) == 1 {
		return fn(ctx, items[0])
	}
	var all errgroup.Group
	all.SetLimit(limit)
	for _, item := range items {
		all.Go(func() error { return fn(ctx, item) })
	}
	return all.Wait()
}
