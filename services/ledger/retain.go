package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	retainEveryMin = time.Second // however short sessions are kept
	unbornKeptMin  = time.Minute // whoever opens a session may have to do so again
)

// retain purges what has been closed for long enough, for ever.
func (l *Ledger) retain(ctx context.Context) error {
	tick := time.NewTicker(min(l.cfg.RetainEvery, max(l.cfg.Retain, retainEveryMin))) // a short time to keep is kept shortly
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if n, err := l.Retain(ctx); err != nil && ctx.Err() == nil {
				l.log.Error().Err(err).Msg("retention")
			} else if n > 0 {
				l.log.Info().Msgf("retention: purged %d closed sessions", n)
			}
		}
	}
}

// Retain purges each session that was closed for longer than the configured time, or at all when the log is nearly full,
// with the objects that belong to it, and returns how many there were. Of its commits the last one stays, so that its seq
// still guards the id. What was written to a session that never began is kept as long; then the session is closed, and
// purged at the next look.
func (l *Ledger) Retain(ctx context.Context) (int, error) {
	now, err := l.bus.Now(ctx)
	if err != nil {
		return 0, err
	}
	full, err := l.bus.NearlyFull(ctx)
	if err != nil {
		return 0, err
	}
	var due, unborn []bus.Entry
	err = l.bus.List(ctx, bus.State, events.SessionKeys(""), func(e bus.Entry) error {
		if h, ok := session.Peek(e.Value); ok && h.Phase != session.Closed && h.Opened() {
			return nil
		}
		st, err := session.Decode(e.Value)
		switch {
		case err != nil:
		case !st.Opened() && now.Sub(st.UpdatedAt) >= unbornKept(l.cfg.Retain, full):
			unborn = append(unborn, e)
		case st.Closed != nil && (full || !st.Began() || now.Sub(st.Closed.At) >= l.cfg.Retain):
			due = append(due, e)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("ledger: retention: %w", err)
	}
	if err := l.removeObjects(ctx, due); err != nil {
		return 0, err
	}
	n, failed := 0, error(nil)
	note := func(err error) {
		if err != nil && (failed == nil || ctx.Err() != nil) {
			failed = err // one is enough to look into, and none keeps the others
		}
	}
	for _, e := range due {
		err := l.purge(ctx, e)
		if note(err); err == nil {
			n++
		}
	}
	for _, e := range unborn {
		note(l.closeUnborn(ctx, e))
	}
	return n, failed
}

// unbornKept is how long what was written to a session that never began is left alone.
func unbornKept(retain time.Duration, full bool) time.Duration {
	if full {
		return min(retain, unbornKeptMin)
	}
	return retain
}

// closeUnborn closes a session that never began. A harness that opens it in the same instant is first, or is told that it
// is closed: one of the two commits is refused.
func (l *Ledger) closeUnborn(ctx context.Context, e bus.Entry) error {
	st, err := session.Decode(e.Value)
	if err != nil {
		return fmt.Errorf("ledger: retention: %w", err)
	}
	return l.sayClosed(ctx, st, events.SessionClosed{Reason: reasonNeverOpened})
}

// reasonNeverOpened is why a session is closed that was written to and never opened.
const reasonNeverOpened = "never-opened"

// purge removes a closed session's commits but the last, then its document. A crash between the two leaves a document
// that the next look finds again.
func (l *Ledger) purge(ctx context.Context, e bus.Entry) error {
	st, err := session.Decode(e.Value)
	if err != nil {
		return fmt.Errorf("ledger: retention: %w", err)
	}
	if marked, err := l.mark(ctx, st); err != nil || !marked {
		return err
	}
	if err := l.bus.PurgeSession(ctx, st.Ref(), st.Seq); err != nil {
		return fmt.Errorf("ledger: retention: log of %s: %w", st.Ref(), err)
	}
	if err := l.bus.Delete(ctx, bus.State, e.Key, e.Rev); err != nil && !errors.Is(err, bus.ErrLostRace) {
		return fmt.Errorf("ledger: retention: document of %s: %w", st.Ref(), err)
	}
	return nil
}

// removeObjects removes what was stored beside the log for sessions that are about to be purged: before them, so that a
// crash leaves nothing that nobody would look for.
func (l *Ledger) removeObjects(ctx context.Context, due []bus.Entry) error {
	if len(due) == 0 {
		return nil
	}
	going := make(map[string]bool, len(due))
	for _, e := range due {
		going[e.Key] = true
	}
	var names []string
	err := l.bus.Objects(ctx, func(name string) error {
		if r, err := events.ParseObjectName(name); err == nil && going[events.SessionKey(r)] {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range names {
		if err == nil {
			err = l.bus.DeleteObject(ctx, name)
		}
	}
	if err != nil {
		return fmt.Errorf("ledger: retention: %w", err)
	}
	return nil
}

// mark sees to it that a closed session's last commit names a predecessor: that is what tells a tombstone from the first
// commit of a new session. One that somebody appended without a guard does not, so the closing is said once more behind
// it, and the session is purged at the next look.
func (l *Ledger) mark(ctx context.Context, st *session.State) (marked bool, err error) {
	c, err := l.bus.Commit(ctx, st.Seq)
	if err != nil || c.Guarded {
		return err == nil, err
	}
	return false, l.sayClosed(ctx, st, events.SessionClosed{Reason: st.Closed.Reason, By: st.Closed.By})
}

// sayClosed appends the end of a session, unless it is still written to.
func (l *Ledger) sayClosed(ctx context.Context, st *session.State, f events.SessionClosed) error {
	e := events.New(l.bus.NewID(), events.ServiceSource(Name, l.bus.Instance()), st.Ref(), max(st.Epoch, 1), time.Now(), f)
	_, err := l.bus.Append(ctx, st.Ref(), events.WriterLedger, st.Seq, []events.Event{e})
	if errors.Is(err, bus.ErrLostRace) {
		return nil
	}
	return err
}
