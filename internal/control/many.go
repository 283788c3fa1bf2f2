package control

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Settled is what became of one session of [Loop.SettleMany].
type Settled struct {
	Before *session.State
	After  *session.State // as it is then; Before, if nothing was appended
	Facts  []events.Fact  // appended
	Err    error
}

// SettleMany is [Loop.SettleBy] for many sessions that do not depend on each other. Nobody waits for a commit of one before
// those of the next ones are sent: as many as AtOnceMax are under way. done is told of each, on several goroutines. It
// returns when all are done; when ctx ends, the rest is done with its error.
func (l *Loop) SettleMany(ctx context.Context, states []*session.State, decide Decide, done func(Settled)) {
	todo := make(chan *session.State)
	workers := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			w := window{l: l, decide: decide, done: done, most: max(l.cfg.AtOnceMax/workers, 1)}
			for s := range todo {
				w.begin(ctx, s)
			}
			w.finish(ctx, 0)
		})
	}
	for _, s := range states {
		todo <- s
	}
	close(todo)
	all.Wait()
}

// window is what one worker has under way, oldest first.
type window struct {
	l      *Loop
	decide Decide
	done   func(Settled)
	most   int
	sent   []sent
}

// sent is one commit whose acknowledgement is not there yet.
type sent struct {
	s       *session.State
	d       Decision
	now     time.Time
	pending bus.Pending
}

// begin decides on a session and sends what that calls for. For one that this process has appended to since, a newer
// document is under way, and decided on when it is there.
func (w *window) begin(ctx context.Context, s *session.State) {
	if w.l.outdated(s) {
		w.done(Settled{Before: s, After: s})
		return
	}
	now, err := w.l.bus.Now(ctx)
	var d Decision
	if err == nil {
		d, err = w.decide(ctx, s, now, w.l.Source(ctx))
	}
	evs := w.l.events(s, d.Facts, now)
	n := 0
	if err == nil && len(evs) > 0 {
		n, err = fitting(evs)
	}
	switch {
	case err != nil:
		w.done(Settled{Before: s, After: s, Err: err})
	case len(evs) == 0, n < len(evs), d.After == nil, d.After == s: // nothing to send, or not in one piece
		after, facts, err := w.l.SettleBy(ctx, s, w.decide)
		w.done(Settled{s, after, facts, err})
	default:
		w.l.count.looks.Add(1)
		w.sent = append(w.sent, sent{s, d, now, w.l.bus.AppendAsync(ctx, s.Ref(), w.l.cfg.Writer, s.Seq, evs)})
		w.finish(ctx, w.most-1)
	}
}

// finish waits until at most so many are under way.
func (w *window) finish(ctx context.Context, most int) {
	for len(w.sent) > most {
		x := w.sent[0]
		w.sent = w.sent[1:]
		w.done(w.l.acknowledged(ctx, x, w.decide))
	}
}

// acknowledged waits for one commit; when it was refused, its session is decided again.
func (l *Loop) acknowledged(ctx context.Context, x sent, decide Decide) Settled {
	seq, err := x.pending.Wait(ctx)
	switch {
	case errors.Is(err, bus.ErrLostRace):
		l.count.lostRaces.Add(1)
		s, err := l.CatchUp(ctx, x.s)
		if err != nil {
			return Settled{x.s, x.s, nil, err}
		}
		after, facts, err := l.SettleBy(ctx, s, decide)
		return Settled{x.s, after, facts, err}
	case err != nil:
		return Settled{x.s, x.s, nil, err}
	}
	x.d.After.Seq = seq
	l.appended(ctx, x.d.After, x.d.Facts)
	return Settled{x.s, x.d.After, x.d.Facts, l.remember(ctx, x.d.After, x.d, x.now)}
}
