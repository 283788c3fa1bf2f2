package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// comeBack updates the document of a set-aside session from its log, then feeds what is missing in the feed, and
// removes the note. The session is folded with the others again as soon as its document is up to date.
func (f *folder) comeBack(ctx context.Context, r events.Ref) error {
	return f.passes(ctx, r, func(c *catcher) error { return c.run(ctx) })
}

// passes calls pass until no commit arrives meanwhile, at most a few times.
func (f *folder) passes(ctx context.Context, r events.Ref, pass func(*catcher) error) error {
	for n := range asidePassesMax {
		note, last, ok := f.apart.recorded(r)
		if !ok {
			return nil
		}
		// a rebuild may have folded, and not fed, what was delivered meanwhile
		note.To = max(note.To, last)
		c := catcher{f: f, note: note, st: session.New(r), again: n > 0}
		if err := pass(&c); err != nil {
			return err
		}
		rev, done := f.apart.finished(r, note, last, c.upTo)
		if !done {
			continue
		}
		// this process is no longer the active one
		if rev == 0 {
			return nil
		}
		if err := f.bus.KV.Delete(ctx, kv.State, events.AsideKey(r), rev); err != nil &&
			!errors.Is(err, bus.ErrLostRace) {
			f.log.Warn().Str("session", r.String()).AnErr("err",
				err).Msg("no longer set aside, but its note stands: it is looked at again at the next take-over")
		}
		f.count.back.Add(1)
		f.log.Info().Str("session", r.String()).Uint64("seq", c.upTo).Msg("no longer set aside")
		return nil
	}
	return errBusy
}

// recorded returns the note of a session, and its last delivered commit.
func (a *apart) recorded(r events.Ref) (note Aside, last uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.of[r]
	if w == nil {
		return note, 0, false
	}
	return w.note, w.last, true
}

// finished removes a session whose note is done, and returns the note's revision; 0 if the session is not set aside any
// more. It does not if more was noted, or delivered, meanwhile.
func (a *apart) finished(r events.Ref, was Aside, last, upTo uint64) (rev uint64, done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.of[r]
	switch {
	case w == nil:
		return 0, true
	case w.note.From < was.From || w.note.To > was.To:
		return 0, false
	case w.note.Behind && w.last > last:
		// the next pass has only that to do
		w.note.From, w.note.To = upTo+1, max(w.last, upTo)
		return 0, false
	}
	if w.note.Behind {
		a.passed(r, upTo)
	}
	delete(a.of, r)
	return w.rev, true
}

// passed records that a session is folded and fed up to a commit: later deliveries are skipped.
func (a *apart) passed(r events.Ref, upTo uint64) {
	if len(a.past) >= pastMax {
		clear(a.past)
	}
	a.past[r] = upTo
}

// upToDate folds a session with the others again, if every delivered commit is folded.
func (a *apart) upToDate(r events.Ref, upTo uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.of[r]; w != nil && w.note.Behind && w.last <= upTo {
		w.note.Behind = false
		a.passed(r, upTo)
	}
}

// catcher folds one session's log apart from the others, without keeping it in memory.
type catcher struct {
	f    *folder
	note Aside
	st   *session.State
	rev  uint64 // of the document
	upTo uint64 // all commits up to here are folded and fed

	again bool // this attempt has stored the document already

	feed  []log.Fed
	facts int      // in feed
	ended []string // prompts
}

// run folds the commits that the document lacks. It folds earlier ones again only if the feed may lack them, or after a
// failed attempt, because the document itself may be wrong: it is a cache.
func (c *catcher) run(ctx context.Context) error {
	doc, rev, err := loadDoc(ctx, c.f.bus.KV, c.note.Ref)
	if err != nil {
		return err
	}
	c.rev = rev
	if c.note.Behind && !c.again && (c.note.Failures > 0 || doc.Outdated()) {
		return c.fromStart(ctx, doc)
	}
	floor := c.note.To
	if c.note.Behind {
		floor = doc.Seq
		c.st = doc
		if err := c.forward(ctx); err != nil {
			return err
		}
		c.f.apart.upToDate(c.note.Ref, c.upTo)
	}
	if c.note.From > floor {
		return nil
	}
	return c.payDebt(ctx, min(floor, c.note.To))
}

// forward folds the commits that the document lacks, and stores it.
func (c *catcher) forward(ctx context.Context) error {
	err := c.f.bus.Log.Each(ctx, c.note.Ref, c.st.Seq+1, func(m events.Commit) error { return c.apply(ctx, &m, true) })
	if err != nil {
		return err
	}
	return c.store(ctx)
}

// errPaid ends a reading after everything that the feed lacked was read.
var errPaid = errors.New("paid")

// payDebt folds the log from its start to a commit, and feeds the facts from the note's first commit on again.
func (c *catcher) payDebt(ctx context.Context, to uint64) error {
	c.st = session.New(c.note.Ref)
	err := c.f.bus.Log.Each(ctx, c.note.Ref, 0, func(m events.Commit) error {
		if m.Seq > to {
			return errPaid
		}
		return c.apply(ctx, &m, m.Seq >= c.note.From)
	})
	if err != nil && !errors.Is(err, errPaid) {
		return err
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	c.upTo = max(c.upTo, to)
	return c.f.apart.show(c.note.Ref, &owedViews{c.ended, c.note.Failures > 0}, func() (err error) {
		if c.st, c.rev, err = loadDoc(ctx, c.f.bus.KV, c.note.Ref); err != nil || c.st.Seq == 0 {
			return err
		}
		return c.storeWith(ctx, nil)
	})
}

// fromStart rebuilds the document from the log alone. If the log lacks commits that the document has folded, the
// document is kept and folded on: it may be the last copy.
func (c *catcher) fromStart(ctx context.Context, doc *session.State) error {
	whole, reached := true, doc.Seq == 0
	err := c.f.bus.Log.Each(ctx, c.note.Ref, 0, func(m events.Commit) error {
		whole = whole && (!m.Guarded || m.Guard <= c.st.Seq)
		reached = reached || m.Seq == doc.Seq
		return c.apply(ctx, &m, m.Seq > doc.Seq || m.Seq >= c.note.From && m.Seq <= c.note.To)
	})
	if err != nil {
		return err
	}
	switch {
	case !reached && c.f.mend == nil:
		return c.errAhead()
	case !reached:
		return c.afterLoss(ctx)
	case !whole && doc.Seq > 0:
		// the missing part can be left out of a view
		c.st = doc
		return c.forward(ctx)
	}
	return c.store(ctx)
}

// afterLoss mends a document that is ahead of the log, and folds on from there: from the rebuilt document, or from one
// that stands because it is the last copy.
func (c *catcher) afterLoss(ctx context.Context) error {
	x, err := c.f.mend(ctx, c.note.Ref)
	if err != nil {
		return err
	}
	// the log has everything: the next attempt reads it
	if x == nil {
		return c.errAhead()
	}
	if c.st, c.rev, err = loadDoc(ctx, c.f.bus.KV, c.note.Ref); err != nil {
		return err
	}
	return c.forward(ctx)
}

func (c *catcher) errAhead() error {
	return fmt.Errorf("%s: the log lacks commits that the document has folded: `holdfast doctor` says more",
		c.note.Ref)
}

// apply folds one commit, and feeds and parks its facts if they are owed.
func (c *catcher) apply(ctx context.Context, m *events.Commit, owed bool) error {
	res := c.st.Fold(m)
	if !res.Folded || !owed {
		return nil
	}
	t := touched{ref: c.note.Ref}
	t.keep(m.Seq, res)
	for _, x := range t.feed {
		c.facts += len(x.Events)
	}
	if c.feed = append(c.feed, t.feed...); len(c.ended) < asideEndedMax {
		c.ended = append(c.ended, t.endedPrompts()...)
	}
	c.f.parked(ctx, c.f.park(ctx, []*touched{&t}, nil))
	if c.facts < asideFedAtOnce {
		return nil
	}
	return c.flush(ctx)
}

// flush feeds the facts, and waits until they are stored.
func (c *catcher) flush(ctx context.Context) error {
	fed := c.feed
	c.feed, c.facts = nil, 0
	if _, err := c.f.bus.Log.Feed(ctx, fed...).Wait(ctx); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	return nil
}

// store stores the document and all of its views after the feed: nothing is delivered again.
func (c *catcher) store(ctx context.Context) error {
	c.upTo = c.st.Seq
	if err := c.flush(ctx); err != nil || c.st.Seq == 0 {
		return err
	}
	// retention has removed the document
	if c.rev == 0 && isTombstone(c.st) {
		return nil
	}
	value, err := c.st.Encode()
	if err != nil {
		return err
	}
	return c.storeWith(ctx, value)
}

func (c *catcher) storeWith(ctx context.Context, value []byte) error {
	t := touched{ref: c.note.Ref, state: c.st, owed: true, lenient: c.note.Failures > 0}
	views, err := c.f.viewsOf(ctx, &t, c.ended)
	if err != nil {
		return err
	}
	if _, err := c.f.bus.KV.StoreDocs(ctx,
		[]kv.Doc{{Key: events.SessionKey(c.note.Ref), Value: value, Rev: c.rev, Views: views}}); err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return nil
}
