package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	retainEveryMin = time.Second // for the shortest retention
	unbornKeptMin  = time.Minute // a harness may have to repeat its open
)

// retain purges sessions that were closed long enough ago, until ctx ends.
func (l *Ledger) retain(ctx context.Context) error {
	// a short retention needs a short interval
	tick := time.NewTicker(min(l.cfg.RetainEvery, max(l.cfg.ClosedKeptFor, retainEveryMin)))
	defer tick.Stop()
	// a clock that was set forward must not purge early
	if err := control.LearnSteps(ctx, l.bus); err != nil && ctx.Err() == nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if n, err := l.Retain(ctx); err != nil && ctx.Err() == nil {
				l.log.Error().AnErr("err", err).Msg("retention")
			} else if n > 0 {
				l.log.Info().Msgf("retention: purged %d closed sessions", n)
			}
		}
	}
}

// Retain purges each session that was closed for longer than the configured time, or every closed one if the log is
// nearly full, with its objects, and returns the number of sessions. It folds a session's log before it removes
// anything: the document alone may be wrong. The last commit is kept, so that its seq still guards the id. A session
// that was written to but never opened is kept as long; then it is closed, and purged by the next pass; a harness that
// opens it in the same instant is first, or is refused because it is closed.
func (l *Ledger) Retain(ctx context.Context) (int, error) {
	now, err := l.bus.Clock.Read(ctx)
	if err != nil {
		return 0, err
	}
	full, err := l.bus.Log.NearlyFull(ctx)
	if err != nil {
		return 0, err
	}
	n, err := l.retainAt(ctx, now, full)
	if full {
		err = errors.Join(err, l.purgeStrays(ctx))
	}
	return n, err
}

// purgeStrays removes the messages of a nearly full log that belong to no session. They have no document, so that
// nothing else would remove them. Each is parked before, if it is not parked already. An operator removes those that
// this service cannot: it may purge the log by a filter only.
func (l *Ledger) purgeStrays(ctx context.Context) error {
	n, left, err := l.bus.Log.PurgeStrays(ctx, func(ctx context.Context, m bus.Message) error {
		c := l.bus.Log.Decode(m)
		return l.bus.Parking.Park(ctx, strayParked(c.Ref.Harness, m, cmp.Or(c.Err, c.Ref.Validate())))
	})
	if err != nil {
		return fmt.Errorf("retention: messages of no session: %w", err)
	}
	if n > 0 {
		l.log.Warn().Msgf("retention: removed messages of %d subjects without a session from a nearly full log", n)
	}
	if left > 0 {
		l.log.Error().Str("entity", l.bus.Cell().LogStream()).Msgf("retention: a nearly full log has %d subjects "+
			"without a session that no filter can select, such as one with the token *: delete their messages by "+
			"sequence; the parked copies have the sequences", left)
	}
	return nil
}

func (l *Ledger) retainAt(ctx context.Context, now events.Clock, full bool) (int, error) {
	// keys only: the documents together can be larger than the memory
	var closed, unborn []string
	err := l.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		if h, err := session.ReadHead(e.Value); err == nil && h.Open() {
			return nil
		}
		st, err := session.Decode(e.Value)
		switch {
		case err != nil:
		case !st.Opened() && now.Passed(st.UpdatedAt.Add(unbornKept(l.cfg.ClosedKeptFor, full)), st.Seq):
			unborn = append(unborn, e.Key)
		case l.isDue(st, now, full):
			closed = append(closed, e.Key)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("retention: %w", err)
	}
	n, failed := 0, error(nil)
	note := func(err error) {
		if err != nil && (failed == nil || ctx.Err() != nil) {
			// one is enough to report, and none delays the others
			failed = err
		}
	}
	var due []ended
	for _, key := range closed {
		st, rev, err := l.verified(ctx, key)
		if note(err); err == nil && st != nil && l.isDue(st, now, full) {
			due = append(due, endedOf(st, rev))
		}
	}
	if err := l.removeObjects(ctx, due); err != nil {
		return 0, err
	}
	for _, d := range due {
		err := l.purge(ctx, d)
		if note(err); err == nil {
			n++
		}
	}
	for _, key := range unborn {
		st, rev, err := l.verified(ctx, key)
		if note(err); err == nil && st != nil && !st.Opened() {
			note(l.appendClosed(ctx, endedOf(st, rev), events.SessionClosed{Reason: reasonNeverOpened}))
		}
	}
	return n, failed
}

// ended is what is needed of a session to purge or to close it. A nearly full log makes many due at once.
type ended struct {
	ref        events.Ref
	rev        uint64 // of its document
	seq        uint64 // of its last commit in the log
	epoch      uint64
	reason, by string // of its end
}

func endedOf(st *session.State, rev uint64) ended {
	e := ended{ref: st.Ref(), rev: rev, seq: st.Seq, epoch: st.Epoch}
	if st.Closed != nil {
		e.reason, e.by = st.Closed.Reason, st.Closed.By
	}
	return e
}

// isDue reports whether a session was closed long enough ago, or may be purged because the log is nearly full.
func (l *Ledger) isDue(st *session.State, now events.Clock, full bool) bool {
	return st.Closed != nil &&
		(full || st.Closed.Purged || !st.Began() || now.Passed(st.Closed.At.Add(l.cfg.ClosedKeptFor), st.Closed.Seq))
}

// verified folds the log of a session that its document says may be purged or closed: a document is a cache, and can be
// wrong. It returns the state and the document's revision. A document that differs is rebuilt, and verified returns
// nil; the next pass reads the new one. It returns a [loss] if the document is ahead of the log.
func (l *Ledger) verified(ctx context.Context, key string) (*session.State, uint64, error) {
	e, err := l.bus.KV.Load(ctx, kv.State, key)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("retention: %w", err)
	}
	doc, err := session.Decode(e.Value)
	if err != nil {
		return nil, 0, fmt.Errorf("retention: %w", err)
	}
	// its revision is that of another session's key
	if events.SessionKey(doc.Ref()) != key {
		return nil, 0, fmt.Errorf("retention: the document at %s is that of %s", key, doc.Ref())
	}
	g, err := l.logged(ctx, doc.Ref())
	if err != nil {
		return nil, 0, err
	}
	if x := g.lost(doc); x != nil {
		return nil, 0, x
	}
	if doc.Seq == g.state.Seq && (doc.Closed == nil) == (g.state.Closed == nil) && doc.Opened() == g.state.Opened() ||
		isTombstone(g.state) {
		return g.state, e.Rev, nil
	}
	l.log.Warn().Str("session", doc.Ref().String()).Uint64("seq",
		doc.Seq).Msg("retention: the document is not what the log says: rebuilt, nothing was purged")
	_, _, err = l.rebuildSession(ctx, doc.Ref())
	return nil, 0, err
}

// isTombstone reports whether retention left nothing else of a session.
func isTombstone(st *session.State) bool { return st.Closed != nil && st.Closed.Purged }

// unbornKept returns how long a session that was written to but never opened is kept.
func unbornKept(retain time.Duration, full bool) time.Duration {
	if full {
		return min(retain, unbornKeptMin)
	}
	return retain
}

// reasonNeverOpened is the reason for closing a session that was written to and never opened.
const reasonNeverOpened = "never-opened"

// purge removes a closed session's commits but the last, then its document. After a crash between the two the next pass
// finds the document again.
func (l *Ledger) purge(ctx context.Context, e ended) error {
	if marked, err := l.mark(ctx, e); err != nil || !marked {
		return err
	}
	if err := l.bus.Log.PurgeSession(ctx, e.ref, e.seq); err != nil {
		return fmt.Errorf("retention: log of %s: %w", e.ref, err)
	}
	err := l.bus.KV.Delete(ctx, kv.State, events.SessionKey(e.ref), e.rev)
	if err != nil && !errors.Is(err, bus.ErrLostRace) {
		return fmt.Errorf("retention: document of %s: %w", e.ref, err)
	}
	return nil
}

// removeObjects removes the objects of sessions that are about to be purged, before them, so that a crash leaves no
// objects without a session.
func (l *Ledger) removeObjects(ctx context.Context, due []ended) error {
	if len(due) == 0 {
		return nil
	}
	going := make(map[events.Ref]bool, len(due))
	for _, e := range due {
		going[e.ref] = true
	}
	var names []string
	err := l.bus.Objects.Each(ctx, func(name string) error {
		if r, err := events.ParseObjectName(name); err == nil && going[r] {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range names {
		if err == nil {
			err = l.bus.Objects.Delete(ctx, name)
		}
	}
	if err != nil {
		return fmt.Errorf("retention: %w", err)
	}
	return nil
}

// mark ensures that a closed session's last commit names a predecessor, which distinguishes a tombstone from the first
// commit of a new session. After an unguarded append it does not: then the close is appended once more, and the next
// pass purges the session.
func (l *Ledger) mark(ctx context.Context, x ended) (marked bool, err error) {
	c, err := l.bus.Log.Commit(ctx, x.seq)
	if err != nil || c.Guarded {
		return err == nil, err
	}
	return false, l.appendClosed(ctx, x, events.SessionClosed{Reason: x.reason, By: x.by})
}

// appendClosed appends the end of a session, unless it is still written to.
func (l *Ledger) appendClosed(ctx context.Context, x ended, f events.SessionClosed) error {
	e := events.New(l.bus.NewID(), events.ServiceSource(Name, l.bus.Instance()), x.ref, max(x.epoch, 1), time.Now(), f)
	_, err := l.bus.Log.Append(ctx, x.ref, events.WriterLedger, x.seq, []events.Event{e})
	if errors.Is(err, bus.ErrLostRace) {
		return nil
	}
	return err
}
