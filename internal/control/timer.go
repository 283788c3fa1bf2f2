package control

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// remember sees to the next look: a durable alarm, unless the look needs none, and if it is soon, one of this process.
func (l *Loop) remember(ctx context.Context, r events.Ref, d Decision, now time.Time) error {
	look := d.Look
	if look.IsZero() {
		return nil
	}
	if !d.Local {
		if err := l.alarm(ctx, r, look); err != nil {
			return err
		}
	}
	if until := look.Sub(now); until <= localHorizon {
		l.wakes.add(r, time.Now().Add(until))
	}
	return nil
}

// alarm has the broker tell when the time has come, unless it will.
func (l *Loop) alarm(ctx context.Context, r events.Ref, look time.Time) error {
	l.mu.Lock()
	known := l.timers[r].Equal(look)
	l.mu.Unlock()
	if known {
		return nil
	}
	t := bus.Timer{What: l.cfg.Service, Ref: r, Due: look, Body: []byte(look.UTC().Format(time.RFC3339Nano))}
	if err := l.bus.SetTimer(ctx, t); err != nil {
		return err
	}
	l.mu.Lock()
	if len(l.timers) >= timersKnownMax {
		clear(l.timers)
	}
	l.timers[r] = look
	l.mu.Unlock()
	return nil
}

// wake is a look at a session at an instant of this process's clock.
type wake struct {
	at  time.Time
	ref events.Ref
}

// wakes are what this process will look at by itself, the next time of each session. Losing them all is harmless: the
// durable alarms and the walk remain.
type wakes struct {
	mu    sync.Mutex
	queue wakeQueue
	next  map[events.Ref]time.Time // what of the queue counts
	news  chan struct{}            // the first of the queue has changed
}

func newWakes() *wakes { return &wakes{next: map[events.Ref]time.Time{}, news: make(chan struct{}, 1)} }

// add sees to a look at that instant. One that comes before will see to it again.
func (w *wakes) add(r events.Ref, at time.Time) {
	w.mu.Lock()
	if next, ok := w.next[r]; ok && !at.Before(next) {
		w.mu.Unlock()
		return
	}
	w.next[r] = at
	heap.Push(&w.queue, wake{at, r})
	first := w.queue[0].at.Equal(at)
	w.mu.Unlock()
	if first {
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// due takes what is due, and says how long until the next is.
func (w *wakes) due(now time.Time) (due []events.Ref, next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 && !w.queue[0].at.After(now) {
		x := heap.Pop(&w.queue).(wake)
		if w.next[x.ref].Equal(x.at) {
			delete(w.next, x.ref)
			due = append(due, x.ref)
		}
	}
	if len(w.queue) == 0 {
		return due, localHorizon
	}
	return due, w.queue[0].at.Sub(now)
}

// run looks at what is due until ctx ends.
func (w *wakes) run(ctx context.Context, look func(context.Context, *sync.WaitGroup, events.Ref)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		due, next := w.due(time.Now())
		for _, r := range due {
			look(ctx, &all, r)
		}
		t := time.NewTimer(next)
		select {
		case <-t.C:
		case <-w.news:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// wakeQueue is a heap, the soonest first.
type wakeQueue []wake

// Len implements [heap.Interface].
func (q wakeQueue) Len() int { return len(q) }

// Less implements [heap.Interface].
func (q wakeQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

// Swap implements [heap.Interface].
func (q wakeQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *wakeQueue) Push(x any) { *q = append(*q, x.(wake)) }

// Pop implements [heap.Interface].
func (q *wakeQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
