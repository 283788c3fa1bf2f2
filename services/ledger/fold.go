package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// folder is the active part: it fills the cache, and runs in one goroutine.
type folder struct {
	bus   *bus.Bus
	cfg   Config
	log   zerolog.Logger
	cache *cache
	count counts
	tail  *tail
	apart *apart
	late  *lateParked

	readNotesEvery time.Duration // between two readings of the notes of sessions that are set aside

	lost int // batches in a row that lost a race
	read readings

	tookOver  chan struct{} // this process has become the active one: views must be compared
	surveyDue chan struct{} // the same for documents
	active    atomic.Bool
	mend      func(context.Context, events.Ref) (*loss, error)
}

func newFolder(b *bus.Bus, cfg Config, log zerolog.Logger) *folder {
	return &folder{bus: b, cfg: cfg, log: log, cache: newCache(cfg.CachedMax),
		tail:  newTail(b.Log.Decode, tailBytesMax),
		apart: newApart(), late: newLateParked(), readNotesEvery: asidePauseMax, tookOver: make(chan struct{}, 1),
		surveyDue: make(chan struct{}, 1)}
}

// touched is one session in one batch.
type touched struct {
	ref     events.Ref
	msgs    []bus.Message
	commits []events.Commit
	state   *session.State
	rev     uint64
	before  *session.State // the state that the views were derived from; nil: write all of them
	owed    bool           // some commits had been folded before: the feed and the views may lack them
	changed bool
	ahead   bool  // the document has folded commits that the log lacks: nothing was folded onto it
	stands  bool  // ahead, and the log alone cannot rebuild it
	lenient bool  // commits that the log lacks are left out of the harness's view, too
	debt    bool  // the feed needs more of the log than a batch may read
	err     error // why it cannot be folded now
	feed    []log.Fed
	parked  []parked
	views   *owedViews // may be missing, and are written with the document; nil for none
}

// Takeover implements [consumer.Handler]: the predecessor may have stored newer documents.
func (f *folder) Takeover(ctx context.Context) error {
	f.cache.clear()
	if err := f.learnAside(ctx); err != nil {
		return err
	}
	f.count.takeovers.Add(1)
	f.log.Info().Msg("active: folding from the acknowledged floor")
	f.active.Store(true)
	for _, due := range []chan struct{}{f.tookOver, f.surveyDue} {
		select {
		case due <- struct{}{}:
		default:
			// the last comparison is still to come
		}
	}
	return nil
}

// LeadershipLost implements [consumer.LeadershipObserver]. The process that is active now works on the sessions that
// are set aside. Two processes lose their races against each other, and store notes that the other has removed.
func (f *folder) LeadershipLost() {
	f.active.Store(false)
	f.apart.clear()
}

// Batch implements [consumer.Handler]: after a success everything is stored, or set aside. After an error nothing is
// cached and nothing acknowledged, so the same messages are delivered again and meet what was stored of them. A session
// that cannot be folded is set aside, so that it does not delay the others.
func (f *folder) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	ts, strays := f.group(ms)
	ts = f.apart.without(ts)
	err := f.batch(ctx, ts, strays)
	switch {
	case err == nil:
		f.lost = 0
	case errors.Is(err, bus.ErrLostRace) && f.lost < lostInARowMax:
		// another process is active, or a rebuild
		f.lost++
	case len(ts) > 0 && !general(ctx, err):
		err = f.oneByOne(ctx, ts, err)
	}
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

func (f *folder) batch(ctx context.Context, ts []*touched, strays []park.Parked) error {
	f.read.begin()
	if err := f.load(ctx, ts); err != nil {
		return err
	}
	if err := f.foldAll(ctx, ts); err != nil {
		return err
	}
	if err := f.mendAhead(ctx, ts); err != nil {
		return err
	}
	ts, err := f.leaveFailed(ctx, ts)
	if err != nil {
		return err
	}
	feed := f.feed(ctx, ts)
	under := f.park(ctx, ts, strays)
	if err := f.store(ctx, ts); err != nil {
		return err
	}
	if _, err := feed.Wait(ctx); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	f.parked(ctx, under)
	return nil
}

// foldAll folds each session. It returns an error only if that concerns all sessions. Sessions whose log has to be read
// are folded concurrently: a reading takes a round trip to the broker for each commit, and after a restart every
// session of a batch may need one.
func (f *folder) foldAll(ctx context.Context, ts []*touched) error {
	fold := func(ctx context.Context, t *touched) error {
		if t.err = f.foldOne(ctx, t); t.err != nil && general(ctx, t.err) {
			return t.err
		}
		return nil
	}
	var read []*touched
	for _, t := range ts {
		if t.needsLog() {
			read = append(read, t)
		} else if err := fold(ctx, t); err != nil {
			return err
		}
	}
	return each(ctx, loadsMax, read, fold)
}

// needsLog reports whether the session's log is read before its commits are folded: some were folded before, or are not
// the successors of the commit before them.
func (t *touched) needsLog() bool {
	last := t.state.Seq
	for i := range t.commits {
		c := &t.commits[i]
		if c.Seq <= last || c.Guarded && c.Guard != last {
			return true
		}
		last = c.Seq
	}
	return false
}

// leaveFailed sets aside the sessions that cannot be folded, or rendered, and returns the others.
func (f *folder) leaveFailed(ctx context.Context, ts []*touched) ([]*touched, error) {
	left, noted := make([]*touched, 0, len(ts)), []*touched{}
	for _, t := range ts {
		if t.err != nil || t.debt {
			noted = append(noted, t)
		}
		if t.err == nil {
			left = append(left, t)
		}
	}
	return left, each(ctx, loadsMax, noted, func(ctx context.Context, t *touched) error {
		if t.err != nil {
			return f.setAside(ctx, t, t.err)
		}
		return f.owe(ctx, Aside{Ref: t.ref, From: t.commits[0].Seq, To: t.state.Seq,
			Reason: "its facts are fed again: the process before may have died first"})
	})
}

// group sorts a batch by session, in order. A message without a session can only be parked.
func (f *folder) group(ms []bus.Message) (ts []*touched, strays []park.Parked) {
	at := make(map[events.Ref]*touched, len(ms))
	for _, m := range ms {
		c := f.bus.Log.Decode(m)
		if err := c.Ref.Validate(); err != nil {
			if c.Err != nil {
				// why it names no session
				err = c.Err
			}
			strays = append(strays, strayParked(c.Ref.Harness, m, err))
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

// strayParked returns a message without a session as it is parked.
func strayParked(harness string, m bus.Message, why error) park.Parked {
	return park.Parked{Why: session.ParkMalformed, Ref: strayOf(harness),
		Reason: fmt.Sprintf("subject %s: %v", m.Subject, why), Header: m.Header, Body: m.Body, Seq: m.Seq}
}

// strayOf returns where a message without a session is parked: with its harness, if its subject names one.
func strayOf(harness string) events.Ref {
	const unknown = "unknown"
	if r := (events.Ref{Harness: harness, Session: unknown}); r.Validate() == nil {
		return r
	}
	return events.Ref{Harness: unknown, Session: unknown}
}

// load finds each session's state: in the cache, in its document, or new.
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
		st, rev, err := loadDoc(ctx, f.bus.KV, t.ref)
		if err == nil && st.Outdated() && f.mend != nil {
			st, rev, err = f.loadAgain(ctx, t, st, rev)
		}
		t.state, t.rev = st, rev
		if errors.Is(err, session.ErrNewerLayout) {
			t.leave(err)
			return nil
		}
		return err
	})
}

// loadAgain rebuilds a document of older rules from the log, and reads it. A long session is folded apart from the
// others. A document that the log cannot replace is folded on.
func (f *folder) loadAgain(ctx context.Context, t *touched, st *session.State, rev uint64) (*session.State, uint64,
	error) {
	if st.Commits > inlineReadMax {
		t.err = errLong
		return st, rev, nil
	}
	if _, err := f.mend(ctx, t.ref); err != nil {
		return nil, 0, err
	}
	return loadDoc(ctx, f.bus.KV, t.ref)
}

// leave leaves a session to a newer build of this service: this build would drop the fields that it does not know. Its
// commits are parked for an operator; the newer build sees the gap, and reads the log.
func (t *touched) leave(err error) {
	for _, c := range t.commits {
		t.parked = append(t.parked, parked{c.Seq, -1, parkNewer, err})
	}
	t.commits, t.state = nil, session.New(t.ref)
}

// parkNewer is the reason for parking commits whose document only a newer build may write.
const parkNewer = "newer-layout"

// loadDoc reads a session's document from the leader; a new state and revision 0 without one. A damaged document counts
// as missing: the log is read instead, and the document is replaced.
func loadDoc(ctx context.Context, buckets *kv.Buckets, r events.Ref) (*session.State, uint64, error) {
	e, err := buckets.Load(ctx, kv.State, events.SessionKey(r))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return session.New(r), 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("document of %s: %w", r, err)
	}
	st, err := session.Decode(e.Value)
	switch {
	case errors.Is(err, session.ErrNewerLayout):
		return nil, 0, fmt.Errorf("document of %s: %w", r, err)
	case err != nil || st.Ref() != r:
		return session.New(r), e.Rev, nil
	}
	return st, e.Rev, nil
}

// foldOne folds a session's commits. It feeds the facts of commits that the document had folded before again, because
// the process that folded them may have died before it fed them.
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
			if err := f.checkLastCommit(ctx, t); err != nil || t.ahead {
				return err
			}
		}
		if c.Guarded && c.Guard > t.state.Seq {
			if err := f.readGap(ctx, t, c.Seq); err != nil {
				return err
			}
		}
		f.apply(t, c)
	}
	switch {
	case t.owed && !f.read.reserve(int(t.state.Commits)):
		t.debt, t.before = true, nil
	case t.owed:
		return f.foldAgain(ctx, t, floor)
	}
	return nil
}

// checkLastCommit reads the commit at which the document ends. A later commit whose guard names an earlier one was
// appended after the log had lost commits, or is one of two that a batch stored under one guard.
func (f *folder) checkLastCommit(ctx context.Context, t *touched) error {
	c, err := f.bus.Log.Commit(ctx, t.state.Seq)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return fmt.Errorf("read %s at %d: %w", t.ref, t.state.Seq, err)
	}
	t.ahead = err != nil || c.Ref != t.ref
	return nil
}

// mendAhead rebuilds documents that are ahead of the log, and then counts the batch's commits of them as folded: their
// feed and their views may be missing.
func (f *folder) mendAhead(ctx context.Context, ts []*touched) error {
	for _, t := range ts {
		if !t.ahead {
			continue
		}
		if t.state.Commits > inlineReadMax {
			t.err = errLong
			continue
		}
		f.cache.drop(t.ref)
		if err := f.mendOne(ctx, t); err != nil && general(ctx, err) {
			return err
		} else if err != nil {
			t.err = err
		}
	}
	return nil
}

func (f *folder) mendOne(ctx context.Context, t *touched) error {
	if _, err := f.mend(ctx, t.ref); err != nil {
		return err
	}
	st, rev, err := loadDoc(ctx, f.bus.KV, t.ref)
	if err != nil {
		return err
	}
	*t = touched{ref: t.ref, msgs: t.msgs, commits: t.commits, state: st, rev: rev, stands: true}
	return f.foldOne(ctx, t)
}

// apply folds one commit and keeps its result. The lock is for requests, which may copy the state: it is held for one
// commit, and never while the log is read.
func (f *folder) apply(t *touched, c *events.Commit) {
	f.cache.mu.Lock()
	res := t.state.Fold(c)
	f.cache.mu.Unlock()
	if !res.Folded {
		return
	}
	t.changed = true
	t.keep(c.Seq, res)
}

func (t *touched) keep(seq uint64, res session.Result) {
	if len(res.Feed) > 0 {
		t.feed = append(t.feed, log.Fed{Ref: t.ref, Seq: seq, Events: res.Feed})
	}
	for _, p := range res.Parked {
		t.parked = append(t.parked, parked{seq, p.Index, p.Why, p.Err})
	}
}

// readGap folds the commits between the document and a commit whose guard names a predecessor that was not delivered. A
// gap that is longer than a batch may read is [errLong].
func (f *folder) readGap(ctx context.Context, t *touched, before uint64) error {
	from := t.state.Seq + 1
	var missed []events.Commit
	err := f.bus.Log.Each(ctx, t.ref, from, func(c events.Commit) error {
		if !f.read.reserve(1) {
			return errLong
		}
		missed = append(missed, c)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s from %d: %w", t.ref, from, err)
	}
	f.log.Warn().Str("session", t.ref.String()).Uint64("seq",
		before).Msg("gap: the session's log was read from the leader")
	for i := range missed {
		f.apply(t, &missed[i])
	}
	return nil
}

// foldAgain folds the session's log from its start, for the facts of the commits up to floor. A document that differs
// from the result was ahead of a log that has lost its end, or is damaged.
func (f *folder) foldAgain(ctx context.Context, t *touched, floor uint64) error {
	all, err := f.bus.Log.Read(ctx, t.ref, 0)
	if err != nil {
		return fmt.Errorf("read %s: %w", t.ref, err)
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

// store stores every changed document with its changed views, all sessions concurrently.
func (f *folder) store(ctx context.Context, ts []*touched) error {
	docs, of, stored := make([]kv.Doc, 0, len(ts)), make([]*touched, 0, len(ts)), weight{}
	for _, t := range ts {
		if !t.changed && !t.owed {
			continue
		}
		d, err := f.render(ctx, t)
		if err != nil && general(ctx, err) {
			return err
		}
		if err == nil {
			err = stored.add(t.ref.Harness, len(d.Value))
		}
		if err != nil {
			if err := f.setAside(ctx, t, err); err != nil {
				return err
			}
			continue
		}
		docs, of = append(docs, d), append(of, t)
	}
	revs, err := f.bus.KV.StoreDocs(ctx, docs)
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	for i, t := range of {
		if t.changed {
			f.cache.put(t.ref, cached{t.state, revs[i], len(docs[i].Value)})
		}
		if t.views != nil {
			f.apart.shown(t.ref, t.views)
		}
	}
	return nil
}

// render renders a session's document, with its changed views.
func (f *folder) render(ctx context.Context, t *touched) (d kv.Doc, err error) {
	d = kv.Doc{Key: events.SessionKey(t.ref), Rev: t.rev}
	if d.Views, err = f.views(ctx, t); err != nil {
		return d, err
	}
	if t.changed {
		d.Value, err = t.state.Encode()
	}
	return d, err
}

func (f *folder) feed(ctx context.Context, ts []*touched) bus.Pending {
	var all []log.Fed
	for _, t := range ts {
		all = append(all, t.feed...)
	}
	return f.bus.Log.Feed(ctx, all...)
}

// ttlMin is the shortest TTL of a key.
const ttlMin = time.Second

// blockerTTL returns the remaining TTL of an entry of the people's view, as of an instant; 0: it does not expire; gone:
// it has expired.
func blockerTTL(b *session.Blocker, settledKeptFor time.Duration, now time.Time) (ttl time.Duration, gone bool) {
	if b.ClosedAt.IsZero() {
		return 0, false
	}
	since := b.ClosedAt
	if b.DeliveredAt.After(since) {
		since = b.DeliveredAt
	}
	ttl = settledKeptFor - max(now.Sub(since), 0)
	return max(ttl, ttlMin), ttl <= 0
}
