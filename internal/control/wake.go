package control

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of what is done at its instant.
const (
	wakesMax     = 500_000                // of this process; past it the alarms of the broker have to do
	ackersMax    = 8                      // that wait for acknowledgements
	sentMax      = 8_192                  // commits under way
	firedMax     = 200_000                // remembered until their alarms come; past it these cost a look each
	standbyKept  = 5 * time.Second        // how long what came due is kept by a process that another one is active for
	standbyEvery = 500 * time.Millisecond // how often it asks whether one still is
	awayEvery    = 50 * time.Millisecond  // how often is looked whether the broker is back
)

// wake is a look at a session at an instant, or, better, what such a look will come to.
type wake struct {
	at    time.Time // by the broker's clock: what is known of that gets better
	epoch uint64    // of the clock; in another one, at is an instant of a clock that has been set since
	ref   events.Ref
	seq   uint64 // of the session as it was when this was decided
	ready *ready // nil: look then
	rung  bool   // its alarm has come already
	place int    // in the heap
}

// ready is what will be decided at the instant, unless somebody writes before: then the compare-and-set refuses it.
type ready struct {
	epoch uint64
	facts []events.Fact
	rest  bool // nothing is called for after it
}

// ahead decides for an instant to come.
func (l *Loop) ahead(ctx context.Context, s *session.State, look events.Clock) *ready {
	d, err := l.cfg.Decide(ctx, s, look, l.Source(ctx))
	if err != nil || len(d.Facts) == 0 {
		return nil
	}
	return &ready{epoch: s.Epoch, facts: d.Facts, rest: d.Rest}
}

// wakes are what this process will do by itself, one for each session. Losing them all is harmless: the durable alarms
// and the walk remain.
type wakes struct {
	mu    sync.Mutex
	queue wakeQueue
	by    map[events.Ref]*wake
	fired map[events.Ref]time.Time // what was sent at its instant, until its alarm comes
	news  chan struct{}            // the first of the queue has changed
	epoch uint64                   // of the broker's clock; instants of earlier ones are not taken
}

func newWakes() *wakes {
	return &wakes{by: map[events.Ref]*wake{}, fired: map[events.Ref]time.Time{}, news: make(chan struct{}, 1)}
}

// set puts a wake in the place of the one that the session has, unless that was decided on more of the log.
func (q *wakes) set(w *wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.epoch < q.epoch {
		return
	}
	if old := q.by[w.ref]; old != nil {
		if old.seq > w.seq {
			return
		}
		heap.Remove(&q.queue, old.place)
	} else if len(q.queue) >= wakesMax {
		return
	}
	q.by[w.ref] = w
	heap.Push(&q.queue, w)
	if w.place == 0 {
		q.tell()
	}
}

// tell has the first of the queue looked at again.
func (q *wakes) tell() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// drop takes a session's wake out: as it is now, it calls for none.
func (q *wakes) drop(w *wake) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.by[w.ref]; old != nil && old.seq <= w.seq {
		q.remove(old)
	}
}

func (q *wakes) remove(w *wake) {
	heap.Remove(&q.queue, w.place)
	delete(q.by, w.ref)
}

// ready says whether a session will be decided here without another look.
func (q *wakes) ready(r events.Ref) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.by[r]
	return w != nil && w.ready != nil
}

// has says whether a session's next step was decided on the session as it was then.
func (q *wakes) has(r events.Ref, seq uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.by[r]
	return w != nil && w.seq == seq && w.ready != nil
}

// rings says whether what an alarm is about was sent here at that instant, or waits in front of this process: one of the
// two, whichever comes first, the alarm or the instant.
func (q *wakes) rings(r events.Ref, body []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.by[r]; w != nil && w.ready != nil {
		w.rung = w.rung || string(alarmBody(w.at)) == string(body)
		return true
	}
	fired, ok := q.fired[r]
	delete(q.fired, r)
	return ok && string(alarmBody(fired)) == string(body)
}

// due takes what is due to be done now, and says how long until the next is. An instant of a clock that was set since is only
// a reason to look.
func (q *wakes) due(now events.Clock) (due []*wake, next time.Duration) {
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
	if len(q.queue) == 0 {
		return due, localHorizon
	}
	return due, q.queue[0].at.Sub(now.Now)
}

// clear takes everything out, and takes nothing more that was computed in an epoch before this one.
func (q *wakes) clear(epoch uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue, q.epoch = nil, epoch
	clear(q.by)
	clear(q.fired)
}

// leave takes out what was due until then and is for somebody else to do.
func (q *wakes) leave(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until(until)
}

func (q *wakes) until(now time.Time) (due []*wake) {
	for len(q.queue) > 0 && !q.queue[0].at.After(now) {
		w := q.queue[0]
		q.remove(w)
		due = append(due, w)
	}
	return due
}

// wakeForEver does what is due, by the broker's clock, until ctx ends. What was decided ahead is only sent; nobody waits for one commit before the
// next is sent.
func (l *Loop) wakeForEver(ctx context.Context) error {
	var looks sync.WaitGroup
	acks := make(chan sentAhead, sentMax)
	for range ackersMax {
		looks.Go(func() { l.acknowledge(ctx, acks, &looks) })
	}
	defer looks.Wait()
	defer close(acks)
	away, epoch, began := false, uint64(0), false
	for ctx.Err() == nil {
		next := standbyEvery
		now, err := l.bus.Clock(ctx)
		if err == nil && now.Epoch != epoch && began {
			l.clockSet(now.Epoch)
		}
		if err == nil {
			epoch, began = now.Epoch, true
		}
		switch {
		case err != nil || !l.bus.Connected():
			away, next = true, awayEvery
		case away: // what came due long ago is looked at by a walk: it may have to take its turn
			away = false
			l.wakes.leave(now.Now.Add(-standbyKept))
			l.WalkSoon()
			next = 0
		case l.mayAct(ctx, now.Now):
			var due []*wake
			due, next = l.wakes.due(now)
			for _, w := range due {
				l.fire(ctx, w, now.Now, acks, &looks)
			}
		}
		t := time.NewTimer(min(next, clockEvery)) // the clock may be set before
		select {
		case <-t.C:
		case <-l.wakes.news:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
		}
	}
	return nil
}

// clockSet drops every instant that was computed before the broker's clock was set, and has all sessions looked at again: each
// look computes its instant by the clock as it is now.
func (l *Loop) clockSet(epoch uint64) {
	l.wakes.clear(epoch)
	l.mu.Lock()
	clear(l.timers)
	l.mu.Unlock()
	l.WalkSoon()
}

// fire does what a wake is for.
func (l *Loop) fire(ctx context.Context, w *wake, now time.Time, acks chan<- sentAhead, looks *sync.WaitGroup) {
	if w.ready == nil {
		l.enter(ctx, looks, func() { l.Look(ctx, w.ref) })
		return
	}
	evs := make([]events.Event, len(w.ready.facts))
	for i, f := range w.ready.facts {
		evs[i] = events.New(l.bus.NewID(), l.source, w.ref, w.ready.epoch, w.at, f)
	}
	x := sentAhead{w, l.bus.AppendAsync(ctx, w.ref, l.cfg.Writer, w.seq, evs), l.bus.Priority().Begin(now.Sub(w.at))}
	select {
	case acks <- x:
	case <-ctx.Done():
		x.done()
	}
}

// sentAhead is a commit that was decided ahead and is under way.
type sentAhead struct {
	*wake
	pending bus.Pending
	done    func()
}

// acknowledge waits for commits that were decided ahead. One that was refused is decided again on what is there now, while
// the next one is waited for.
func (l *Loop) acknowledge(ctx context.Context, acks <-chan sentAhead, looks *sync.WaitGroup) {
	for x := range acks {
		seq, err := x.pending.Wait(ctx)
		x.done()
		switch {
		case err == nil:
			l.noted(x.ref, seq, x.ready.facts, x.ready.rest)
		case ctx.Err() != nil: // and so for all that is left: none of it is under way any more
		default:
			if errors.Is(err, bus.ErrLostRace) {
				l.count.lostRaces.Add(1)
			}
			l.enter(ctx, looks, func() { l.Look(ctx, x.ref) })
		}
	}
}

// mayAct says whether this process does what comes due: it is the active one, or there is none. A process that is wrong
// about that loses races, not data.
func (l *Loop) mayAct(ctx context.Context, now time.Time) bool {
	if l.active.Load() {
		return true
	}
	if now.Sub(l.asked) < standbyEvery {
		return l.nobody
	}
	_, active, err := l.bus.Lag(ctx, Documents(l.cfg.Service))
	l.asked, l.nobody = now, err == nil && active == ""
	if !l.nobody {
		l.wakes.leave(now.Add(-standbyKept)) // the other one has done it
	}
	return l.nobody
}

// wakeQueue is a heap, the soonest first.
type wakeQueue []*wake

// Len implements [heap.Interface].
func (q wakeQueue) Len() int { return len(q) }

// Less implements [heap.Interface].
func (q wakeQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

// Swap implements [heap.Interface].
func (q wakeQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements [heap.Interface].
func (q *wakeQueue) Push(x any) {
	w := x.(*wake)
	w.place = len(*q)
	*q = append(*q, w)
}

// Pop implements [heap.Interface].
func (q *wakeQueue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return w
}
