package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// folder is the active part: it fills the cache, and is called by one goroutine.
type folder struct {
	bus   *bus.Bus
	cfg   Config
	log   zerolog.Logger
	cache *cache
	count counts
	tail  *tail

	tookOver  chan struct{} // this process has become the active one: views are to be compared
	surveyDue chan struct{} // the same, for documents
	active    atomic.Bool
	mend      func(context.Context, events.Ref) (*loss, error)
}

func newFolder(b *bus.Bus, cfg Config, log zerolog.Logger) *folder {
	return &folder{bus: b, cfg: cfg, log: log, cache: newCache(cfg.CachedMax), tail: newTail(b.Decode, tailBytesMax), tookOver: make(chan struct{}, 1),
		surveyDue: make(chan struct{}, 1)}
}

// touched is one session in one batch.
type touched struct {
	ref     events.Ref
	msgs    []bus.Message
	commits []events.Commit
	state   *session.State
	rev     uint64
	before  *session.State // what the views were derived from; nil: all of them are to be written
	owed    bool           // some of the commits had been folded before: feed and views may be owed
	changed bool
	ahead   bool // the document has folded commits that the log does not have: nothing was folded onto it
	stands  bool // ahead, and the log alone is not enough to make another
	feed    []bus.Fed
	parked  []parked
}

// Takeover implements [bus.Handler]: whoever was active before may have stored newer documents.
func (f *folder) Takeover(context.Context) error {
	f.cache.clear()
	f.count.takeovers.Add(1)
	f.log.Info().Msg("active: folding from the acknowledged floor")
	f.active.Store(true)
	for _, due := range []chan struct{}{f.tookOver, f.surveyDue} {
		select {
		case due <- struct{}{}:
		default: // it is still to be compared for the last time
		}
	}
	return nil
}

// Lost implements [bus.Loser].
func (f *folder) Lost() { f.active.Store(false) }

// Batch implements [bus.Handler]: all is stored when it returns without an error. After an error nothing is cached and
// nothing acked, so the same messages come again and meet whatever was stored of them.
func (f *folder) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	ts, strays := f.group(ms)
	err := f.batch(ctx, ts, strays)
	if err != nil {
		for _, t := range ts {
			f.cache.drop(t.ref)
		}
		f.count.failed.Add(1)
		return 0, err
	}
	f.count.stored(len(ms), ts, len(strays))
	return len(ms), nil
}

func (f *folder) batch(ctx context.Context, ts []*touched, strays []bus.Parked) error {
	if err := f.load(ctx, ts); err != nil {
		return err
	}
	if err := f.foldAll(ctx, ts); err != nil {
		return err
	}
	if err := f.mendAhead(ctx, ts); err != nil {
		return err
	}
	feed := f.feed(ctx, ts)
	under := f.park(ctx, ts, strays)
	if err := f.store(ctx, ts); err != nil {
		return err
	}
	if _, err := feed.Wait(ctx); err != nil {
		return fmt.Errorf("ledger: feed: %w", err)
	}
	f.parked(ctx, under)
	return nil
}

// foldAll changes states that requests may be copying.
func (f *folder) foldAll(ctx context.Context, ts []*touched) error {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	for _, t := range ts {
		if err := f.foldOne(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// group sorts a batch by session, in order. What is not about any session can only be parked.
func (f *folder) group(ms []bus.Message) (ts []*touched, strays []bus.Parked) {
	at := make(map[events.Ref]*touched, len(ms))
	for _, m := range ms {
		c := f.bus.Decode(m)
		if err := c.Ref.Validate(); err != nil {
			if c.Err != nil {
				err = c.Err // why it names no session
			}
			strays = append(strays, bus.Parked{Why: session.ParkMalformed, Ref: events.Ref{Harness: "unknown", Session: "unknown"},
				Reason: fmt.Sprintf("subject %s: %v", m.Subject, err), Header: m.Header, Body: m.Body, Seq: m.Seq})
			continue
		}
		t := at[c.Ref]
		if t == nil {
			t = &touched{ref: c.Ref}
			at[c.Ref] = t
			ts = append(ts, t)
		}
		t.msgs, t.commits = append(t.msgs, m), append(t.commits, c)
	}
	return ts, strays
}

// load finds each session's state: in the cache, or its document, or nothing yet.
func (f *folder) load(ctx context.Context, ts []*touched) error {
	var missing []*touched
	for _, t := range ts {
		if e, ok := f.cache.get(t.ref); ok {
			t.state, t.rev = e.state, e.rev
			continue
		}
		missing = append(missing, t)
	}
	return each(ctx, loadsMax, missing, func(ctx context.Context, t *touched) error {
		st, rev, err := loadDoc(ctx, f.bus, t.ref)
		t.state, t.rev = st, rev
		if errors.Is(err, session.ErrNewerLayout) {
			t.leave(err)
			return nil
		}
		return err
	})
}

// leave gives a session up to a newer build of this service: writing half of its document would lose the other half. Its
// commits are parked where an operator sees them; the newer build sees the gap, and reads the log.
func (t *touched) leave(err error) {
	for _, c := range t.commits {
		t.parked = append(t.parked, parked{c.Seq, -1, parkNewer, err})
	}
	t.commits, t.state = nil, session.New(t.ref)
}

// parkNewer is why commits are parked whose document only a newer build may write.
const parkNewer = "newer-layout"

// loadDoc reads a session's document from the leader; a new state and revision 0 when there is none. What is no document
// is as good as none: the log is read for all of it, and its place is taken.
func loadDoc(ctx context.Context, b *bus.Bus, r events.Ref) (*session.State, uint64, error) {
	e, err := b.Load(ctx, bus.State, events.SessionKey(r))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return session.New(r), 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("ledger: document of %s: %w", r, err)
	}
	st, err := session.Decode(e.Value)
	switch {
	case errors.Is(err, session.ErrNewerLayout):
		return nil, 0, fmt.Errorf("ledger: document of %s: %w", r, err)
	case err != nil || st.Ref() != r:
		return session.New(r), e.Rev, nil
	}
	return st, e.Rev, nil
}

// foldOne takes a session's commits in. Commits that the document had folded before are owed again what they gave to the
// feed, since whoever folded them may have died before it was written.
func (f *folder) foldOne(ctx context.Context, t *touched) error {
	floor := t.state.Seq
	t.before = t.state.ViewClone()
	for i := range t.commits {
		c := &t.commits[i]
		if c.Seq <= floor {
			t.owed = true
			continue
		}
		if c.Guarded && c.Guard < t.state.Seq && !t.stands {
			if err := f.lookBack(ctx, t); err != nil || t.ahead {
				return err
			}
		}
		if c.Guarded && c.Guard > t.state.Seq {
			if err := f.readGap(ctx, t, c.Seq); err != nil {
				return err
			}
		}
		t.take(c)
	}
	if t.owed {
		return f.foldAgain(ctx, t, floor)
	}
	return nil
}

// lookBack asks the log for the commit that the document ends with. A commit whose guard names an earlier one was appended
// when the log did not have it any more, or is one of two that a batch stored under one guard.
func (f *folder) lookBack(ctx context.Context, t *touched) error {
	c, err := f.bus.Commit(ctx, t.state.Seq)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return fmt.Errorf("ledger: read %s at %d: %w", t.ref, t.state.Seq, err)
	}
	t.ahead = err != nil || c.Ref != t.ref
	return nil
}

// mendAhead has documents that are ahead of the log rebuilt, and then takes the batch's commits to them as folded: their
// feed and their views may be owed.
func (f *folder) mendAhead(ctx context.Context, ts []*touched) error {
	for _, t := range ts {
		if !t.ahead {
			continue
		}
		f.cache.drop(t.ref)
		if _, err := f.mend(ctx, t.ref); err != nil {
			return err
		}
		st, rev, err := loadDoc(ctx, f.bus, t.ref)
		if err != nil {
			return err
		}
		*t = touched{ref: t.ref, msgs: t.msgs, commits: t.commits, state: st, rev: rev, stands: true}
		if err := f.foldOne(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// take folds one commit and keeps what it gives.
func (t *touched) take(c *events.Commit) {
	res := t.state.Fold(c)
	if !res.Folded {
		return
	}
	t.changed = true
	t.keep(c.Seq, res)
}

func (t *touched) keep(seq uint64, res session.Result) {
	if len(res.Feed) > 0 {
		t.feed = append(t.feed, bus.Fed{Ref: t.ref, Seq: seq, Events: res.Feed})
	}
	for _, p := range res.Parked {
		t.parked = append(t.parked, parked{seq, p.Index, p.Why, p.Err})
	}
}

// readGap folds what lies between the document and a commit whose guard names a predecessor that was not delivered.
func (f *folder) readGap(ctx context.Context, t *touched, before uint64) error {
	missed, err := f.bus.Read(ctx, t.ref, t.state.Seq+1)
	if err != nil {
		return fmt.Errorf("ledger: read %s from %d: %w", t.ref, t.state.Seq+1, err)
	}
	f.log.Warn().Str("session", t.ref.String()).Uint64("seq", before).Msg("gap: the session's log was read from the leader")
	for i := range missed {
		t.take(&missed[i])
	}
	return nil
}

// foldAgain folds the session's log from its start, for what the commits up to floor gave. A document that does not come to
// the same was ahead of a log that has lost its end since, or is damaged.
func (f *folder) foldAgain(ctx context.Context, t *touched, floor uint64) error {
	all, err := f.bus.Read(ctx, t.ref, 0)
	if err != nil {
		return fmt.Errorf("ledger: read %s: %w", t.ref, err)
	}
	owed := map[uint64]bool{}
	for _, c := range t.commits {
		owed[c.Seq] = c.Seq <= floor
	}
	later := t.feed
	t.feed, t.before = nil, nil
	st, same := session.New(t.ref), isTombstoneOf(all) || t.stands
	for i := range all {
		if res := st.Fold(&all[i]); owed[all[i].Seq] {
			t.keep(all[i].Seq, res)
		}
		same = same || st.Seq == t.state.Seq && equal(st, t.state)
	}
	if t.ahead = !same; t.ahead {
		return nil
	}
	t.feed = append(t.feed, later...)
	return nil
}

// store stores every document that changed, with what changed of its views, all sessions side by side.
func (f *folder) store(ctx context.Context, ts []*touched) error {
	docs, of := make([]bus.Doc, 0, len(ts)), make([]*touched, 0, len(ts))
	for _, t := range ts {
		if !t.changed && !t.owed {
			continue
		}
		d := bus.Doc{Key: events.SessionKey(t.ref), Rev: t.rev}
		var err error
		if d.Views, err = f.views(ctx, t); err != nil {
			return err
		}
		if t.changed {
			if d.Value, err = t.state.Encode(); err != nil {
				return err
			}
		}
		docs, of = append(docs, d), append(of, t)
	}
	revs, err := f.bus.StoreDocs(ctx, docs)
	if err != nil {
		return fmt.Errorf("ledger: documents: %w", err)
	}
	for i, t := range of {
		if t.changed {
			f.cache.put(t.ref, cached{t.state, revs[i]})
		}
	}
	return nil
}

func (f *folder) feed(ctx context.Context, ts []*touched) bus.Pending {
	var all []bus.Fed
	for _, t := range ts {
		all = append(all, t.feed...)
	}
	return f.bus.Feed(ctx, all...)
}

// ttlMin is the shortest time a key can be given to live.
const ttlMin = time.Second

// blockerTTL is how long an entry of the people's view is still to live, as of an instant; 0: for ever; gone: it is over.
func blockerTTL(b *session.Blocker, closedFor time.Duration, now time.Time) (ttl time.Duration, gone bool) {
	if b.ClosedAt.IsZero() {
		return 0, false
	}
	since := b.ClosedAt
	if b.DeliveredAt.After(since) {
		since = b.DeliveredAt
	}
	ttl = closedFor - max(now.Sub(since), 0)
	return max(ttl, ttlMin), ttl <= 0
}
