package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// schedules measures raw message schedules: n of them, due within a span.
func (c *retrying) schedules(ctx context.Context, n int,
	span time.Duration) (late []time.Duration, armed time.Duration, err error) {
	began := time.Now()
	first := began.Add(retryLead + time.Duration(n/retryPerS/4)*time.Second)
	err = c.schedule(ctx, n, first, span)
	if armed = time.Since(began); err != nil || time.Now().After(first) {
		return nil, armed, fmt.Errorf("schedules were not set in time: %w", err)
	}
	a := &alarms{left: n, done: make(chan struct{})}
	ctx, stop := context.WithTimeout(ctx, time.Until(first.Add(span+retryLateMax)))
	defer stop()
	go func() {
		<-a.done
		stop()
	}()
	// The messages are read afterwards, so that reading takes no time from the schedules.
	wait(ctx, time.Until(first.Add(span)))
	if err := c.bus.Consumers.Consume(ctx, consumer.Source{Stream: consumer.Due, Durable: "bench",
		Filter: []string{c.bus.Cell().DueFilter(alarmName)}, BatchMax: 4096}, a); err != nil {
		return nil, armed, err
	}
	if a.left > 0 {
		return nil, armed, fmt.Errorf("%d schedules did not fire", a.left)
	}
	return a.late, armed, nil
}

// schedule sets n raw message schedules, due evenly over a span.
func (c *retrying) schedule(ctx context.Context, n int, first time.Time, span time.Duration) (err error) {
	id := first.UnixNano()
	todo := make(chan int)
	var all sync.WaitGroup
	var once sync.Once
	for range 256 {
		all.Go(func() {
			for i := range todo {
				due := first.Add(span * time.Duration(i) / time.Duration(n))
				if e := c.bus.Timers.Set(ctx, timer.Timer{What: alarmName,
					Ref: events.Ref{Harness: "h", Session: fmt.Sprint("s", id, "-", i)}, Due: due,
					Body: []byte(due.Format(time.RFC3339Nano))}); e != nil {
					once.Do(func() { err = e })
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	all.Wait()
	return err
}

// alarms reads the messages of schedules that have fired.
type alarms struct {
	late []time.Duration
	left int
	at   time.Time // the instant of the first one
	done chan struct{}
}

// Takeover implements [consumer.Handler].
func (*alarms) Takeover(context.Context) error { return nil }

// Batch implements [consumer.Handler].
func (a *alarms) Batch(_ context.Context, ms []bus.Message) (int, error) {
	for i := range ms {
		due, err := time.Parse(time.RFC3339Nano, string(ms[i].Body))
		if err != nil {
			return i, err
		}
		if a.at.IsZero() {
			a.at = ms[i].At
		}
		a.late = append(a.late, ms[i].At.Sub(due))
		if a.left--; a.left == 0 {
			close(a.done)
		}
	}
	return len(ms), nil
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
