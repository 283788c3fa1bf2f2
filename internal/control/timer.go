package control

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// remember sets the alarm for the next look: a durable one, and if that is soon, one of this process.
func (l *Loop) remember(ctx context.Context, r events.Ref, look, now time.Time) error {
	if look.IsZero() {
		return nil
	}
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
	if until := look.Sub(now); until <= localHorizon {
		l.wakes.add(r, time.Now().Add(until))
	}
	return nil
}

// wake is a look at a session at an instant of this process's clock.
type wake struct {
	at  time.Time
	ref events.Ref
}

// wakes are what this process will look at by itself. Losing them all is harmless: the durable alarms remain.
type wakes struct {
	mu    sync.Mutex
	queue wakeQueue
	news  chan struct{} // the first of the queue has changed
}

func newWakes() *wakes { return &wakes{news: make(chan struct{}, 1)} }

func (w *wakes) add(r events.Ref, at time.Time) {
	w.mu.Lock()
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
		due = append(due, heap.Pop(&w.queue).(wake).ref)
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
