package control

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a walk over what has changed.
const (
	changesMax = 120   // such walks, then one over all documents: an hour with the default pause
	loadsMax   = 1_000 // unchanged documents that it loads one by one; with more, a list of all is cheaper
)

// errManyChecks means that more unchanged documents need a check than are loaded one by one.
var errManyChecks = errors.New("more unchanged documents need a check than are loaded one by one")

// changes is what the walks have seen of the state bucket. It belongs to the walking goroutine. A document that has not
// changed since a walk has the head that the walk read, so a service needs that document again only if the head names
// an instant, or if it depends on more than the log. The heads of these documents are kept.
type changes struct {
	rev   uint64 // of the last entry that a walk has read
	heads map[events.Ref]seen
}

// seen is the head of a document, as a walk has read it.
type seen struct {
	head session.Head
	rev  uint64
	bad  bool // the head cannot be read; the check reports it
}

func newChanges() *changes { return &changes{heads: map[events.Ref]seen{}} }

// walkChanges checks what [Loop.walkAll] checks, and reads only the documents that have changed since the walk before,
// and those that need a check although they have not changed. The first one reads all.
func (l *Loop) walkChanges(ctx context.Context) error {
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	before := l.changes.rev
	var all sync.WaitGroup
	defer all.Wait()
	pace := l.newPace(&all)
	err = l.bus.KV.ListAfter(ctx, kv.State, events.SessionKeys(""), before, func(e kv.Entry) error {
		l.changes.rev = max(l.changes.rev, e.Rev)
		r, err := events.ParseSessionKey(e.Key)
		if err != nil {
			// not a session
			return nil
		}
		h, err := session.ReadHead(e.Value)
		l.changes.put(r, seen{head: h, rev: e.Rev, bad: err != nil}, err != nil || l.keeps(r, &h, now))
		if err == nil && l.needsNoCheck(r, &h, now) {
			return nil
		}
		if !l.enter(ctx, &all, func() { l.document(ctx, e.Key, e.Value, l.onWalk) }) {
			return ctx.Err()
		}
		pace.next(ctx)
		return nil
	})
	if err != nil {
		return err
	}
	var again []events.Ref
	for r, s := range l.changes.heads {
		if s.rev > before || !s.bad && l.needsNoOther(r, &s.head, now) {
			continue
		}
		if again = append(again, r); len(again) > loadsMax {
			return errManyChecks
		}
	}
	for _, r := range again {
		if !l.enter(ctx, &all, func() { l.checkAgain(ctx, r) }) {
			return ctx.Err()
		}
		pace.next(ctx)
	}
	return nil
}

func (c *changes) put(r events.Ref, s seen, keep bool) {
	if keep {
		c.heads[r] = s
	} else {
		delete(c.heads, r)
	}
}

// needsNoCheck reports whether a walk passes over a document.
func (l *Loop) needsNoCheck(r events.Ref, h *session.Head, now events.Clock) bool {
	return l.queue.has(r, h.Seq) || l.rests(r, h, now)
}

// needsNoOther is needsNoCheck for a document that has not changed since a walk has checked it.
func (l *Loop) needsNoOther(r events.Ref, h *session.Head, now events.Clock) bool {
	// the check of a suspect has failed
	if l.cfg.RestsUnchanged == nil || l.isSuspect(r) {
		return l.needsNoCheck(r, h, now)
	}
	return l.queue.has(r, h.Seq) || h.Outdated() ||
		!h.DueWithin(localHorizon, now) && l.cfg.RestsUnchanged(r, h, now)
}

// keeps reports whether a document may need a check without having changed.
func (l *Loop) keeps(r events.Ref, h *session.Head, now events.Clock) bool {
	return !h.CheckAt.IsZero() || l.cfg.Depends == nil || l.cfg.Depends(h) || !l.rests(r, h, now)
}

// checkAgain checks a document that has not changed since a walk. One that is gone is in no list any more: the next
// walk over all documents forgets it.
func (l *Loop) checkAgain(ctx context.Context, r events.Ref) {
	e, err := l.bus.KV.Load(ctx, kv.State, events.SessionKey(r))
	switch {
	case errors.Is(err, bus.ErrNotFound):
	case err != nil:
		l.failed(ctx, r, fmt.Errorf("walk: %w", err))
	default:
		l.document(ctx, e.Key, e.Value, l.onWalk)
	}
}
