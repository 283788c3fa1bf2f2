package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/delay"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the checks and commits that a process keeps in memory until they are due.
const (
	checksMax    = 500_000                // of this process; above it the broker's alarms are used
	ackersMax    = 8                      // goroutines that wait for acknowledgements
	sentMax      = 8_192                  // commits in flight
	firedMax     = 200_000                // remembered until their alarms arrive; above it each of these costs a check
	standbyKept  = 5 * time.Second        // how long a standby process keeps what is due
	standbyEvery = 500 * time.Millisecond // how often a standby process asks for the active one
	awayEvery    = 50 * time.Millisecond  // how often the loop checks whether the broker is back
)

// check is the check of a session that is scheduled for an instant, or the decision of that check.
type check struct {
	at    time.Time // by the broker's clock
	epoch uint64    // of the broker's clock; in another epoch, at needs a translation
	ref   events.Ref
	seq   uint64 // of the session that was decided on
	ready *ready // nil: decide at the instant
	rung  bool   // its alarm has arrived
}

// ready is the decision of a future check. If another process writes first, the compare-and-set refuses it.
type ready struct {
	epoch uint64
	facts []events.Fact
	rest  bool // the session needs nothing else after it
}

// ahead decides on a session for a future instant. It returns nil if there is nothing to append then, or an effect:
// that runs at the instant.
func (l *Loop) ahead(ctx context.Context, s *session.State, at events.Clock) *ready {
	d, err := l.cfg.Decide(ctx, s, at, l.Source(ctx))
	if err != nil || len(d.Facts) == 0 || d.Effect != nil {
		return nil
	}
	return &ready{epoch: s.Epoch, facts: d.Facts, rest: d.Rest}
}

// checkQueue holds the scheduled checks of this process, one for each session. Losing it is harmless: the durable
// alarms and the walk remain.
type checkQueue struct {
	mu      sync.Mutex
	checks  delay.Queue[events.Ref, *check]
	fired   map[events.Ref]time.Time // what was sent at its instant, until its alarm arrives
	changed chan struct{}            // signals that the first of the queue changed
	epoch   uint64                   // of the broker's clock; set ignores checks of earlier epochs
}

func newCheckQueue() *checkQueue {
	return &checkQueue{fired: map[events.Ref]time.Time{}, changed: make(chan struct{}, 1)}
}

// set replaces the session's check, unless that was decided on a later commit.
func (q *checkQueue) set(w *check) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old, _, has := q.checks.Get(w.ref)
	if w.epoch < q.epoch || has && old.seq > w.seq || !has && q.checks.Len() >= checksMax {
		return
	}
	if q.checks.Set(w.ref, w.at, w) {
		q.signal()
	}
}

// signal notifies [Loop.runQueue] that the first of the queue changed.
func (q *checkQueue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// drop removes a session's check, unless that was decided on a later commit.
func (q *checkQueue) drop(w *check) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old, _, has := q.checks.Get(w.ref); has && old.seq <= w.seq {
		q.checks.Remove(w.ref)
	}
}

// ready reports whether the session's next decision is in the queue.
func (q *checkQueue) ready(r events.Ref) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, _, has := q.checks.Get(r)
	return has && w.ready != nil
}

// has reports whether the session's next decision is in the queue, and was made at seq.
func (q *checkQueue) has(r events.Ref, seq uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, _, has := q.checks.Get(r)
	return has && w.seq == seq && w.ready != nil
}

// alarmHandled reports whether the commit that an alarm is about was sent at its instant, or is in the queue. It counts
// each once: the alarm and the instant may come in any order.
func (q *checkQueue) alarmHandled(r events.Ref, body []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, _, has := q.checks.Get(r); has && w.ready != nil {
		w.rung = w.rung || string(alarmBody(w.at)) == string(body)
		return true
	}
	fired, ok := q.fired[r]
	delete(q.fired, r)
	return ok && string(alarmBody(fired)) == string(body)
}

// due removes and returns the checks that are due, and the duration until the next one. A decision that was
// made in another epoch of the clock is made again.
func (q *checkQueue) due(now events.Clock) (due []*check, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due = q.until(now.Now)
	for _, w := range due {
		if w.epoch != now.Epoch {
			w.ready = nil
		}
		if w.ready == nil || w.rung {
			continue
		}
		if len(q.fired) >= firedMax {
			clear(q.fired)
		}
		q.fired[w.ref] = w.at
	}
	at, more := q.checks.Next()
	if !more {
		return due, localHorizon
	}
	return due, at.Sub(now.Now)
}

// clear empties the queue and ignores checks of earlier epochs from now on.
func (q *checkQueue) clear(epoch uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.epoch = epoch
	q.checks.Clear()
	clear(q.fired)
}

// leave removes the checks that were due by until: another process does them.
func (q *checkQueue) leave(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until(until)
}

func (q *checkQueue) until(now time.Time) (due []*check) {
	for {
		_, w, ok := q.checks.Due(now)
		if !ok {
			return due
		}
		due = append(due, w)
	}
}

// runQueue handles checks when they are due by the broker's clock, until ctx ends. It sends decisions that were made
// ahead without waiting for their acknowledgements.
func (l *Loop) runQueue(ctx context.Context) error {
	var checks sync.WaitGroup
	acks := make(chan sentAhead, sentMax)
	for range ackersMax {
		checks.Go(func() { l.acknowledge(ctx, acks, &checks) })
	}
	defer checks.Wait()
	defer close(acks)
	away, epoch, began := false, uint64(0), false
	for ctx.Err() == nil {
		next := standbyEvery
		now, err := l.Now(ctx)
		if err == nil && now.Epoch != epoch && began {
			l.clockSet(now.Epoch)
		}
		if err == nil {
			epoch, began = now.Epoch, true
		}
		switch {
		case err != nil || !l.bus.Connected():
			away, next = true, awayEvery
		case away:
			// a walk checks what was due long ago, since that may have to wait
			away = false
			l.queue.leave(now.Now.Add(-standbyKept))
			l.WalkSoon()
			next = 0
		case l.mayAct(ctx, now.Now):
			var due []*check
			due, next = l.queue.due(now)
			for _, w := range due {
				l.fire(ctx, w, now.Now, acks, &checks)
			}
		}
		// the clock may be set earlier
		t := time.NewTimer(min(next, clockEvery))
		select {
		case <-t.C:
		case <-l.queue.changed:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
		}
	}
	return nil
}

// clockSet drops every instant that was computed before the broker's clock was set, and starts a walk. Each check
// computes its instant by the new clock.
func (l *Loop) clockSet(epoch uint64) {
	l.queue.clear(epoch)
	l.mu.Lock()
	clear(l.timers)
	l.mu.Unlock()
	l.WalkSoon()
}

// fire sends the decision of a check, or checks its session.
func (l *Loop) fire(ctx context.Context, w *check, now time.Time, acks chan<- sentAhead, checks *sync.WaitGroup) {
	if w.ready == nil {
		l.enter(ctx, checks, func() { l.Check(ctx, w.ref) })
		return
	}
	evs := make([]events.Event, len(w.ready.facts))
	for i, f := range w.ready.facts {
		evs[i] = events.New(l.bus.NewID(), l.source, w.ref, w.ready.epoch, w.at, f)
	}
	x := sentAhead{w, l.bus.Log.AppendAsync(ctx, w.ref, l.cfg.Writer, w.seq, evs),
		l.bus.Priority().Begin(now.Sub(w.at))}
	select {
	case acks <- x:
	case <-ctx.Done():
		x.done()
	}
}

// sentAhead is a commit in flight that was decided ahead.
type sentAhead struct {
	*check
	pending bus.Pending
	done    func()
}

// acknowledge waits for commits that were decided ahead. It checks the session of a refused one again, without
// delaying the next commit.
func (l *Loop) acknowledge(ctx context.Context, acks <-chan sentAhead, checks *sync.WaitGroup) {
	for x := range acks {
		seq, err := x.pending.Wait(ctx)
		x.done()
		switch {
		case err == nil:
			l.recordCommit(x.ref, seq, x.ready.facts, x.ready.rest)
		case ctx.Err() != nil:
			// the other commits will not be acknowledged either
		default:
			if errors.Is(err, bus.ErrLostRace) {
				l.count.lostRaces.Add(1)
			}
			l.enter(ctx, checks, func() { l.Check(ctx, x.ref) })
		}
	}
}

// mayAct reports whether this process handles checks: it is the active one, or there is no active one. A wrong answer
// costs lost races, not data.
func (l *Loop) mayAct(ctx context.Context, now time.Time) bool {
	if l.active.Load() {
		return true
	}
	if now.Sub(l.askedActive) < standbyEvery {
		return l.noneActive
	}
	_, active, err := l.bus.Consumers.Lag(ctx, Documents(l.cfg.Service))
	l.askedActive, l.noneActive = now, err == nil && active == ""
	if !l.noneActive {
		// the active process has handled them
		l.queue.leave(now.Add(-standbyKept))
	}
	return l.noneActive
}
