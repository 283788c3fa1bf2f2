// Package clock measures the broker's clock, follows its steps and says which commits lie before each step.
//
// Nothing is decided by the clock of a process. The measurement uses the monotonic clock of this process, so that
// neither a step of the broker's clock nor one of this process's clock makes an instant come too early. While the
// broker is away the measured clock continues.
package clock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of measurements of the broker's clock.
const (
	// how long a measured offset to the broker's clock is used before it is measured again meanwhile
	clockFreshMS    = 1_000
	clockOldMS      = 5_000 // how long it is used at all, while the broker answers
	clockPatienceMS = 500   // a later answer says too little about the time
	clockQuickMS    = 2     // an answer that says enough
	// how long a measurement that took longer is used: the first ones of a process are slow
	clockPoorMS  = 500
	clockPoorMax = 20 // after this many they will not improve
)

// Clock is the broker's clock as measured by this process. The broker's clock may be set at any time, forward or back,
// and so may the clock of this process; the measurement uses the monotonic clock.
type Clock struct {
	conn *core.Conn

	mu     sync.Mutex
	broker time.Time     // an instant of the broker's clock …
	local  time.Time     // … and the same instant on the monotonic clock of this process
	last   time.Time     // the last value returned; the next one is not earlier, except after a step
	slack  time.Duration // how far it may be behind
	asked  int
	busy   bool // a measurement runs in the background

	seq   uint64 // the log's last commit at that instant
	steps events.Steps
	epoch uint64
	own   int // number of steps that this process has found
}

// New returns the clock of the broker of a connection.
func New(conn *core.Conn) *Clock { return &Clock{conn: conn} }

// reading is one measurement of the broker's clock.
type reading struct {
	broker         time.Time
	seq            uint64    // the log's last commit then
	sent, received time.Time // by this process's clock
}

// set applies a measurement: the broker's time was said at an instant between sent and received. A clock that agrees
// with it is kept, so the quickest measurement counts; otherwise the clock is set to the time that was certainly
// reached.
func (c *Clock) set(shown, sent, received time.Time) {
	runs := c.broker.Add(received.Sub(c.local))
	if c.local.IsZero() || runs.Before(shown) || runs.After(shown.Add(received.Sub(sent))) {
		runs, c.slack = shown, received.Sub(sent)
	}
	c.broker, c.local, c.asked = runs, received, c.asked+1
}

// jump returns by how much the broker's clock was set since the last measurement, 0 if it was not. The result is never
// too small: a translated instant is late by at most the round trip, never early.
func (c *Clock) jump(r reading) time.Duration {
	if c.local.IsZero() {
		return 0
	}
	// the least value without a step
	ran := c.broker.Add(r.sent.Sub(c.local))
	by := r.broker.Sub(ran)
	if by > events.StepMin+c.slack+r.received.Sub(r.sent) || by < -events.StepMin {
		return by
	}
	return 0
}

// stale reports whether to measure again: sooner after a poor measurement, a few times.
func (c *Clock) stale() bool {
	age, poor := time.Since(c.local), c.slack > clockQuickMS*time.Millisecond && c.asked < clockPoorMax
	return age > clockFreshMS*time.Millisecond || poor && age > clockPoorMS*time.Millisecond
}

// Now is [Clock.Read] for callers that need only the present.
func (c *Clock) Now(ctx context.Context) (time.Time, error) {
	is, err := c.Read(ctx)
	return is.Now, err
}

// Read returns the broker's time, or less by the time of a round trip, never more: nothing is due too early. It
// continues while the broker is away; only the very first call fails ([core.ErrUnreachable], [core.ErrNotFound]).
//
// It is measured every second, and so follows a broker whose clock is set. It goes back only with a step, and it
// returns the steps: an instant that was ten minutes ahead before a step is ten minutes ahead after it
// ([events.Steps.Since]).
func (c *Clock) Read(ctx context.Context) (events.Clock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.local.IsZero()
	switch {
	case first, time.Since(c.local) > clockOldMS*time.Millisecond:
		r, err := c.askTime(ctx, first)
		if err == nil {
			c.follow(ctx, r)
		} else if first {
			return events.Clock{}, err
		}
	case c.stale() && !c.busy:
		c.busy = true
		go c.measure()
	}
	now := c.broker.Add(time.Since(c.local))
	if now.Before(c.last) {
		now = c.last
	}
	c.last = now
	return events.Clock{Now: now, Steps: c.steps, Epoch: c.epoch}, nil
}

// measure measures in the background; meanwhile the present clock is used.
func (c *Clock) measure() {
	ctx, cancel := context.WithTimeout(context.Background(), core.RequestTimeoutMS*time.Millisecond)
	defer cancel()
	r, err := c.askTime(ctx, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if err == nil {
		c.follow(ctx, r)
	}
}

// follow applies a measurement, and records a step if a second one confirms it. The clock is locked meanwhile.
func (c *Clock) follow(ctx context.Context, r reading) {
	// another measurement was quicker
	if r.received.Before(c.local) {
		return
	}
	if c.jump(r) != 0 {
		again, err := c.askTime(ctx, false)
		if err != nil {
			// the next measurement finds it
			return
		}
		r = again
	}
	if by := c.jump(r); by != 0 {
		step := events.Step{Seq: c.lastBefore(ctx, by, r), ByMS: by.Milliseconds(), At: r.broker}
		c.conn.Log.Warn().Str("service", c.conn.Config.Name).Uint64("seq", step.Seq).
			Msgf("the broker's clock was set by %s, to %s: followed", by.Round(time.Millisecond),
				r.broker.Format(time.RFC3339))
		c.steps, c.epoch, c.own = append(c.steps[:len(c.steps):len(c.steps)], step).Merge(nil), c.epoch+1, c.own+1
		c.last, c.local = time.Time{}, time.Time{}
	}
	c.set(r.broker, r.sent, r.received)
	c.seq = r.seq
}

// lastBefore returns the last commit with a timestamp from before a step. If that is unknown it returns the commit with
// which later instants come late rather than early.
func (c *Clock) lastBefore(ctx context.Context, by time.Duration, r reading) uint64 {
	ctx, cancel := context.WithTimeout(ctx, core.RequestTimeoutMS*time.Millisecond)
	defer cancel()
	before, after := c.seq, r.seq
	middle := c.broker.Add(r.received.Sub(c.local) / 2).Add(by / 2)
	for before < after {
		at := before + (after-before+1)/2
		m, err := c.conn.Get(ctx, c.conn.Cell.LogStream(), core.GetRequest{Seq: at, Next: c.conn.Cell.LogSubjects()})
		switch {
		case errors.Is(err, core.ErrNotFound):
			after = at - 1
		case err != nil && by > 0:
			return after
		case err != nil:
			return before
		case m.Seq > after, m.Time.After(middle) == (by > 0):
			after = at - 1
		default:
			before = min(m.Seq, after)
		}
	}
	return before
}

// LearnSteps adds steps of the broker's clock that other processes have found.
func (c *Clock) LearnSteps(others events.Steps) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.steps.Merge(others); len(all) != len(c.steps) {
		c.steps, c.epoch = all, c.epoch+1
	}
}

// StepsNoticed returns how often this process has found the broker's clock set.
func (c *Clock) StepsNoticed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own
}

// askTime measures the broker's time. With must it tries until ctx ends.
func (c *Clock) askTime(ctx context.Context, must bool) (reading, error) {
	op, pace := "ask the time", core.NewBackoff()
	for {
		var reply struct {
			Now   time.Time `json:"ts"`
			State struct {
				LastSeq uint64 `json:"last_seq"`
			} `json:"state"`
		}
		short, cancel := context.WithTimeout(ctx, clockPatienceMS*time.Millisecond)
		sent := time.Now()
		err := c.conn.CallOnce(short, op, core.APIPrefix+"STREAM.INFO."+c.conn.Cell.LogStream(), nil, &reply)
		cancel()
		switch {
		case err == nil:
			return reading{broker: reply.Now, seq: reply.State.LastSeq, sent: sent, received: time.Now()}, nil
		case !must || !errors.Is(err, core.ErrUnreachable):
			return reading{}, err
		case !core.Pause(ctx, pace.NextBackOff()):
			return reading{}, c.conn.Late(op, err)
		}
	}
}

// Guess returns the broker's time by the last measurement.
func (c *Clock) Guess() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broker.Add(time.Since(c.local)), !c.local.IsZero()
}
