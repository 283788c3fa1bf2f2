package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// WalkSoon requests a walk over all documents now, or another one after the current walk.
func (l *Loop) WalkSoon() {
	l.hurry.Store(true)
	select {
	case l.walks <- struct{}{}:
	default:
	}
}

// walkForEver walks over all documents, with a pause between two walks, until ctx ends.
func (l *Loop) walkForEver(ctx context.Context) error {
	l.WalkSoon()
	for {
		next := time.NewTimer(l.cfg.Walk)
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-next.C:
			l.hurry.Store(false)
		case <-l.walks:
			next.Stop()
			l.hurry.Store(true)
		}
		if err := l.nextWalk(ctx); err != nil && ctx.Err() == nil {
			l.count.errors.Add(1)
			l.cfg.Log.Warn().AnErr("err", err).Msg("walk not finished")
		}
		wait(ctx, min(walkPauseMin, l.cfg.Walk))
	}
}

// nextWalk is a walk over all documents if one was requested, or after changesMax walks over what has changed.
func (l *Loop) nextWalk(ctx context.Context) error {
	if !l.hurry.Load() && l.sinceAll < changesMax {
		l.sinceAll++
		err := l.walkChanges(ctx)
		if !errors.Is(err, errManyChecks) {
			return err
		}
	}
	l.sinceAll, l.changes = 0, newChanges()
	return l.Walk(ctx)
}

// Walk checks every document once.
func (l *Loop) Walk(ctx context.Context) error {
	began := time.Now()
	walk := l.cfg.WalkBy
	if walk == nil {
		walk = l.walkAll
	}
	err := walk(ctx)
	l.count.walks.Add(1)
	l.count.walkMS.Add(uint64(time.Since(began).Milliseconds()))
	return err
}

// Pace of a periodic walk.
const (
	walkChunk   = 32 // documents
	walkRestful = 1  // the pause, in multiples of the time that a chunk took
)

// pace slows a walk down that no caller waits for.
type pace struct {
	l     *Loop
	all   *sync.WaitGroup // of the documents that are decided
	n     int
	began time.Time // of the present chunk
}

func (l *Loop) newPace(all *sync.WaitGroup) *pace { return &pace{l: l, all: all, began: time.Now()} }

// next is called after each document. After each chunk it gives way to commits that are due, and waits.
func (p *pace) next(ctx context.Context) {
	if p.n++; p.n%walkChunk != 0 || p.l.hurry.Load() {
		return
	}
	p.l.bus.Priority().Yield(ctx)
	p.all.Wait()
	wait(ctx, walkRestful*time.Since(p.began))
	p.began = time.Now()
}

// rests reports whether a session needs nothing from this service now, nor soon, by the head of its document.
func (l *Loop) rests(r events.Ref, h *session.Head, now events.Clock) bool {
	if l.cfg.Rests == nil {
		return false
	}
	return h.Outdated() || !h.DueWithin(localHorizon, now) && l.cfg.Rests(r, h, now)
}

// walkAll checks each document for which no decision is in the queue, and which does not rest. A periodic walk pauses
// and gives way to commits that are due.
func (l *Loop) walkAll(ctx context.Context) error {
	var all sync.WaitGroup
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	p := l.newPace(&all)
	err = l.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		r, err := events.ParseSessionKey(e.Key)
		if err != nil {
			// not a session
			return nil
		}
		// A document that cannot be read is reported by its check.
		if h, err := session.ReadHead(e.Value); err == nil && l.needsNoCheck(r, &h, now) {
			return nil
		}
		if !l.enter(ctx, &all, func() { l.document(ctx, e.Key, e.Value, l.onWalk) }) {
			return ctx.Err()
		}
		p.next(ctx)
		return nil
	})
	all.Wait()
	return err
}

// onWalk decides as [Config.Decide] does, but sets no alarm if there is nothing to append: the alarm was set when the
// document arrived. If the process died before that, each walk handles what is due within localHorizon.
func (l *Loop) onWalk(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error) {
	d, err := l.cfg.Decide(ctx, s, now, src)
	d.Local = d.Local || len(d.Facts) == 0
	return d, err
}
