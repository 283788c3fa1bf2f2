package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// retryRestart measures the time from the start of a killed process to the first retry that came due while it was down,
// with n other retries waiting. It measures the same for raw schedules.
func retryRestart(ctx context.Context, r *report, n int) error {
	for _, role := range []string{"retrying", "broker"} {
		c, err := upRetrying(ctx, false, role)
		if err != nil {
			return err
		}
		took, err := c.restart(ctx, n)
		c.close()
		if err != nil {
			return err
		}
		what := map[string]string{"retrying": "first retry", "broker": "first raw schedule"}[role]
		r.add("f", fmt.Sprintf("%d waiting, SIGKILL, start → %s", n, what), float64(took.Milliseconds()), "ms")
	}
	return nil
}

// restart arms n late retries and some early ones, kills the process before the early ones are due, and starts it when
// they are.
func (c *retrying) restart(ctx context.Context, n int) (time.Duration, error) {
	arm := c.fail
	if c.role == "broker" {
		arm = func(ctx context.Context, n int, first time.Time, span time.Duration) (uint64, error) {
			return 0, c.schedule(ctx, n, first, span)
		}
	}
	if _, err := arm(ctx, n, time.Now().Add(retryFar), time.Minute); err != nil {
		return 0, err
	}
	if err := c.armed(ctx, n, time.Now().Add(retryFar)); err != nil {
		return 0, err
	}
	soon := time.Now().Add(retrySoon)
	from, err := arm(ctx, retryDown, soon, time.Second)
	if err == nil {
		err = c.armed(ctx, n+retryDown, soon)
	}
	if err != nil {
		return 0, err
	}
	c.process.kill()
	wait(ctx, time.Until(soon.Add(2*time.Second)))
	began := time.Now()
	if err := c.start(ctx, c.listen); err != nil {
		return 0, err
	}
	for end := time.Now().Add(retryLateMax); time.Now().Before(end); wait(ctx, 50*time.Millisecond) {
		if first, err := c.first(ctx, from); err != nil || !first.IsZero() {
			return first.Sub(began), err
		}
	}
	return 0, fmt.Errorf("nothing fired after a restart")
}

// armed waits until n alarms are set.
func (c *retrying) armed(ctx context.Context, n int, end time.Time) error {
	for time.Now().Before(end) {
		if k, err := c.timers(ctx); err != nil || k >= uint64(n) {
			return err
		}
		wait(ctx, 100*time.Millisecond)
	}
	return fmt.Errorf("not all of %d were armed in time", n)
}

// first returns the instant of the first retry or raw schedule that fired, or zero.
func (c *retrying) first(ctx context.Context, from uint64) (at time.Time, err error) {
	if c.role == "broker" {
		a := &alarms{left: 1, done: make(chan struct{})}
		ctx, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		go func() {
			<-a.done
			stop()
		}()
		err := c.bus.Consumers.Consume(ctx, consumer.Source{Stream: consumer.Due, Durable: "bench",
			Filter: []string{c.bus.Cell().DueFilter(alarmName)}, BatchMax: 1}, a)
		return a.at, err
	}
	err = c.bus.Log.Scan(ctx, from, func(x events.Commit) error {
		for i := range x.Events {
			if _, ok := x.Events[i].Fact.(events.TurnRequested); ok && at.IsZero() {
				at = x.At
			}
		}
		return nil
	})
	return at, err
}

// retryFailOver measures how late retries fire if the active service is cut off meanwhile and another one stands by.
func retryFailOver(ctx context.Context, r *report, n int) error {
	s, err := start(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.services(ctx); err != nil {
		return err
	}
	active, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer active.Close()
	s.wg.Go(func() {
		if err := runRetry(s.ctx, active); err != nil && !errors.Is(err, bus.ErrUnreachable) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	})
	c := &retrying{bus: s.bus}
	if _, err := c.fail(ctx, 1, time.Now().Add(retryFar), time.Second); err != nil {
		return err
	}
	// Only the first service runs, so it becomes the active one.
	if err := c.armed(ctx, 1, time.Now().Add(retryLead)); err != nil {
		return err
	}
	if err := s.run(ctx, runRetry); err != nil {
		return err
	}
	first := time.Now().Add(retryLead + time.Duration(n/retryPerS)*time.Second)
	from, err := c.fail(ctx, n, first, retrySpan)
	if err == nil {
		err = c.armed(ctx, n+1, first)
	}
	if err != nil {
		return err
	}
	wait(ctx, time.Until(first.Add(retrySpan/3)))
	active.Close()
	wait(ctx, time.Until(first.Add(retrySpan)))
	late, err := c.allFired(ctx, from, n)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d due in %.0f s, the active service cut off: lateness ", n, retrySpan.Seconds())
	r.add("f", what+"p50", percentile(late, 0.50), "ms")
	r.atMost("f", what+"p99 (pin's time-out + 250 ms)", percentile(late, 0.99), "ms", failoverMS+failoverMore)
	r.add("f", what+"max", percentile(late, 1), "ms")
	return nil
}
