package control

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Settled is what became of one session of [Loop.SettleMany].
type Settled struct {
	Before *session.State
	After  *session.State // as it is then; Before, if nothing was appended, or the session is [Decision.Alone]
	Facts  []events.Fact  // appended
	Err    error
}

// How many commits a worker of [Loop.SettleMany] has under way: about as many as the broker acknowledges in ackSoon, so
// that a fast disk is kept busy, and on a slow one nobody else waits for long behind them.
const (
	ackSoon    = 50 * time.Millisecond
	windowMin  = 16
	windowAt   = 128 // to begin with
	windowMore = 8   // times AtOnceMax, of all workers together, at most
)

// SettleMany is [Loop.SettleBy] for many sessions that do not depend on each other. Nobody waits for a commit of one before
// those of the next ones are sent. done is told of each, on several goroutines. It returns when all are done; when ctx
// ends, the rest is done with its error.
func (l *Loop) SettleMany(ctx context.Context, states []*session.State, decide Decide, done func(Settled)) {
	var next atomic.Int64
	workers := runtime.GOMAXPROCS(0)
	most := max(windowMore*l.cfg.AtOnceMax/workers, 2) // the older half of which is waited for
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			w := window{l: l, decide: decide, done: done, size: min(windowAt, most), max: most}
			for i := next.Add(1); i <= int64(len(states)); i = next.Add(1) {
				w.begin(ctx, states[i-1])
			}
			w.finish(ctx, len(w.sent))
		})
	}
	all.Wait()
}

// window is what one worker has under way, oldest first: at most size, which follows the broker, and is never above max.
type window struct {
	l         *Loop
	decide    Decide
	done      func(Settled)
	size, max int
	sent      []sent
	evs       []events.Event // of the commit that is sent now
}

// sent is one commit whose acknowledgement is not there yet.
type sent struct {
	s       *session.State
	d       Decision
	now     events.Clock
	at      time.Time // this process's
	pending bus.Pending
}

// begin decides on a session and sends what that calls for. For one that this process has appended to since, a newer
// document is under way, and decided on when it is there.
func (w *window) begin(ctx context.Context, s *session.State) {
	if w.l.outdated(s) {
		w.done(Settled{Before: s, After: s})
		return
	}
	now, err := w.l.bus.Clock(ctx)
	var d Decision
	if err == nil {
		d, err = w.decide(ctx, s, now, w.l.Source(ctx))
	}
	w.evs = w.l.events(w.evs[:0], s, d.Facts, now.Now)
	n := 0
	if err == nil && len(w.evs) > 0 {
		n, err = fitting(w.evs)
	}
	switch {
	case err != nil:
		w.done(Settled{Before: s, After: s, Err: err})
	case len(w.evs) == 0:
		w.l.count.looks.Add(1)
		w.done(Settled{Before: s, After: s, Err: w.l.remember(ctx, s, d, now)})
	case n < len(w.evs), !d.Alone && (d.After == nil || d.After == s): // not in one piece, or still to be folded
		after, facts, err := w.l.SettleBy(ctx, s, w.decide)
		w.done(Settled{s, after, facts, err})
	default:
		w.l.count.looks.Add(1)
		w.sent = append(
			w.sent,
			sent{s, d, now, time.Now(), w.l.bus.AppendAsync(ctx, s.Ref(), w.l.cfg.Writer, s.Seq, w.evs)},
		)
		if len(w.sent) >= w.size {
			w.makeRoom(ctx)
		}
	}
}

// makeRoom waits for the older half of what is under way.
func (w *window) makeRoom(ctx context.Context) {
	half := len(w.sent) / 2
	newest := w.sent[half-1].at
	w.finish(ctx, half)
	w.size = resized(w.size, w.max, time.Since(newest))
}

// resized is the window after one whose acknowledgements took so long.
func resized(size, most int, took time.Duration) int {
	switch {
	case took < ackSoon/2:
		return min(2*size, most)
	case took > 2*ackSoon:
		return max(size/2, min(windowMin, most))
	}
	return size
}

// finish waits for the n oldest. When the newest of them is there the others are, so that is waited for, and no other.
func (w *window) finish(ctx context.Context, n int) {
	for i := n - 1; i >= 0; i-- {
		w.done(w.l.acknowledged(ctx, w.sent[i], w.decide))
	}
	w.sent = append(w.sent[:0], w.sent[n:]...)
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
	after := x.s
	if !x.d.Alone {
		after = x.d.After
		after.Seq = seq
	}
	l.appended(ctx, after, seq, x.d)
	return Settled{x.s, after, x.d.Facts, l.remember(ctx, after, x.d, x.now)}
}
