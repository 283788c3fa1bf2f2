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

// Settled is the result of [Loop.SettleMany] for one session.
type Settled struct {
	Before *session.State
	After  *session.State // after the commit; Before, if nothing was appended or [Decision.Alone] is set
	Facts  []events.Fact  // appended
	Err    error
}

// The number of commits that a worker of [Loop.SettleMany] has in flight: about as many as the broker acknowledges in
// ackSoon. A fast disk stays busy, and a slow one delays other writers only briefly.
const (
	ackSoon    = 50 * time.Millisecond
	windowMin  = 16
	windowAt   = 128 // at the start
	windowMore = 8   // times AtOnceMax: the maximum of all workers together
)

// SettleMany is [Loop.SettleBy] for many independent sessions. It does not wait for one session's commit before it
// sends the next one. It calls done once for each session, on several goroutines, and returns when all are done. After
// ctx ends, the other sessions are done with its error.
func (l *Loop) SettleMany(ctx context.Context, states []*session.State, decide Decide, done func(Settled)) {
	var next atomic.Int64
	workers := runtime.GOMAXPROCS(0)
	// makeRoom waits for the older half
	most := max(windowMore*l.cfg.AtOnceMax/workers, 2)
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

// window holds the commits of one worker that are in flight, oldest first: at most size, which follows the broker's
// speed.
type window struct {
	l         *Loop
	decide    Decide
	done      func(Settled)
	size, max int
	sent      []sent
	evs       []events.Event // buffer for the next commit
}

// sent is one commit that is not acknowledged yet.
type sent struct {
	s       *session.State
	d       Decision
	now     events.Clock
	at      time.Time // by this process's clock
	pending bus.Pending
}

// begin decides on a session and sends the commit. It skips an outdated session: the loop decides on the newer document
// when that arrives.
func (w *window) begin(ctx context.Context, s *session.State) {
	if w.l.outdated(s.Ref(), s.Seq) {
		w.done(Settled{Before: s, After: s})
		return
	}
	now, err := w.l.Now(ctx)
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
	case d.Effect != nil:
		after, facts, err := w.l.SettleBy(ctx, s, w.decide)
		w.done(Settled{s, after, facts, err})
	case len(w.evs) == 0:
		w.l.count.checks.Add(1)
		w.done(Settled{Before: s, After: s, Err: w.l.remember(ctx, s, d, now)})
	case n < len(w.evs), !d.Alone && (d.After == nil || d.After == s):
		// too large for one commit, or not folded yet
		after, facts, err := w.l.SettleBy(ctx, s, w.decide)
		w.done(Settled{s, after, facts, err})
	default:
		w.l.count.checks.Add(1)
		w.sent = append(
			w.sent,
			sent{s, d, now, time.Now(), w.l.bus.Log.AppendAsync(ctx, s.Ref(), w.l.cfg.Writer, s.Seq, w.evs)},
		)
		if len(w.sent) >= w.size {
			w.makeRoom(ctx)
		}
	}
}

// makeRoom waits for the older half of the commits in flight.
func (w *window) makeRoom(ctx context.Context) {
	half := len(w.sent) / 2
	newest := w.sent[half-1].at
	w.finish(ctx, half)
	w.size = resized(w.size, w.max, time.Since(newest))
}

// resized returns the window's size after an acknowledgement that took so long.
func resized(size, most int, took time.Duration) int {
	switch {
	case took < ackSoon/2:
		return min(2*size, most)
	case took > 2*ackSoon:
		return max(size/2, min(windowMin, most))
	}
	return size
}

// finish waits for the n oldest commits, the newest of them first: when that is acknowledged, the others are, too.
func (w *window) finish(ctx context.Context, n int) {
	for i := n - 1; i >= 0; i-- {
		w.done(w.l.acknowledged(ctx, w.sent[i], w.decide))
	}
	w.sent = append(w.sent[:0], w.sent[n:]...)
}

// acknowledged waits for one commit. If the commit was refused, it decides on the session again.
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
