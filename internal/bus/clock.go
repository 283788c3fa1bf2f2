package bus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// clock is the broker's clock as measured from here. The broker's clock may be set at any time, forward or back, and so may
// the clock of this process; what this process measures with is monotonic.
type clock struct {
	mu     sync.Mutex
	broker time.Time     // an instant of the broker's clock …
	local  time.Time     // … and when that was here, on the monotonic clock
	last   time.Time     // what was given out last; nothing earlier may follow, but for a step
	slack  time.Duration // by how much it may be behind
	asked  int
	busy   bool // a measurement is under way in the background

	seq   uint64 // the log's last commit at that instant
	steps events.Steps
	epoch uint64
	own   int // steps that this process has noticed itself
}

// reading is one answer of the broker about its clock.
type reading struct {
	said        time.Time
	seq         uint64    // the log's last commit then
	sent, heard time.Time // here
}

// set takes a measurement: the broker said this time between these two instants here. A clock that may be right by it runs
// on, so the quickest answer counts; else it is put on what is certain to have been reached.
func (c *clock) set(said, sent, heard time.Time) {
	runs := c.broker.Add(heard.Sub(c.local))
	if c.local.IsZero() || runs.Before(said) || runs.After(said.Add(heard.Sub(sent))) {
		runs, c.slack = said, heard.Sub(sent)
	}
	c.broker, c.local, c.asked = runs, heard, c.asked+1
}

// jump is by how much the broker's clock was set since the last measurement, 0 if it was not. It is never less than the truth:
// an instant that is translated by it comes late by the time of an answer, not early.
func (c *clock) jump(r reading) time.Duration {
	if c.local.IsZero() {
		return 0
	}
	ran := c.broker.Add(r.sent.Sub(c.local)) // what it would show at the least
	by := r.said.Sub(ran)
	if by > events.StepMin+c.slack+r.heard.Sub(r.sent) || by < -events.StepMin {
		return by
	}
	return 0
}

// stale says whether it is to be measured again: a poor measurement sooner, a few times.
func (c *clock) stale() bool {
	age, poor := time.Since(c.local), c.slack > clockQuickMS*time.Millisecond && c.asked < clockPoorMax
	return age > clockFreshMS*time.Millisecond || poor && age > clockPoorMS*time.Millisecond
}

// Now is [Bus.Clock] for what depends on the present only.
func (b *Bus) Now(ctx context.Context) (time.Time, error) {
	c, err := b.Clock(ctx)
	return c.Now, err
}

// Clock is the broker's time, or less by what an answer is on its way, never more: nothing is found due before it is. It runs
// on by itself while the broker is away; only the very first call fails ([ErrUnreachable], [ErrNotFound]).
//
// It is measured every second, and so follows a broker whose clock is set. It goes back only with a step, and the steps come
// with it: what was due in ten minutes before a step is due in ten minutes after it ([events.Steps.Since]).
func (b *Bus) Clock(ctx context.Context) (events.Clock, error) {
	c := &b.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.local.IsZero()
	switch {
	case first, time.Since(c.local) > clockOldMS*time.Millisecond:
		r, err := b.askTime(ctx, first)
		if err == nil {
			b.follow(ctx, r)
		} else if first {
			return events.Clock{}, err
		}
	case c.stale() && !c.busy:
		c.busy = true
		go b.measure()
	}
	now := c.broker.Add(time.Since(c.local))
	if now.Before(c.last) {
		now = c.last
	}
	c.last = now
	return events.Clock{Now: now, Steps: c.steps, Epoch: c.epoch}, nil
}

// measure measures the clock while it is used as it is.
func (b *Bus) measure() {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeoutMS*time.Millisecond)
	defer cancel()
	r, err := b.askTime(ctx, false)
	c := &b.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if err == nil {
		b.follow(ctx, r)
	}
}

// follow takes a measurement, and notes a step if the broker says so twice. The clock is locked: no decision is made between
// the two.
func (b *Bus) follow(ctx context.Context, r reading) {
	c := &b.clock
	if r.heard.Before(c.local) { // another answer was quicker
		return
	}
	if c.jump(r) != 0 {
		again, err := b.askTime(ctx, false)
		if err != nil {
			return // the next measurement sees it
		}
		r = again
	}
	if by := c.jump(r); by != 0 {
		step := events.Step{Seq: b.lastBefore(ctx, by, r), ByMS: by.Milliseconds(), At: r.said}
		b.log.Warn().Str("service", b.cfg.Name).Uint64("seq", step.Seq).
			Msgf("the broker's clock was set by %s, to %s: followed", by.Round(time.Millisecond), r.said.Format(time.RFC3339))
		c.steps, c.epoch, c.own = append(c.steps[:len(c.steps):len(c.steps)], step).Merge(nil), c.epoch+1, c.own+1
		c.last, c.local = time.Time{}, time.Time{}
	}
	c.set(r.said, r.sent, r.heard)
	c.seq = r.seq
}

// lastBefore is the last commit with a timestamp of the clock before a step. Where that cannot be told it is the commit with
// which what was set meanwhile comes late rather than early.
func (b *Bus) lastBefore(ctx context.Context, by time.Duration, r reading) uint64 {
	c := &b.clock
	ctx, cancel := context.WithTimeout(ctx, requestTimeoutMS*time.Millisecond)
	defer cancel()
	before, after := c.seq, r.seq
	middle := c.broker.Add(r.heard.Sub(c.local) / 2).Add(by / 2)
	for before < after {
		at := before + (after-before+1)/2
		m, err := b.get(ctx, b.cell.LogStream(), getRequest{Seq: at, Next: b.cell.LogSubjects()})
		switch {
		case errors.Is(err, ErrNotFound):
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

// LearnSteps adds steps of the broker's clock that others have noticed, perhaps before this process began.
func (b *Bus) LearnSteps(others events.Steps) {
	c := &b.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.steps.Merge(others); len(all) != len(c.steps) {
		c.steps, c.epoch = all, c.epoch+1
	}
}

// StepsNoticed is how often this process has found the broker's clock set.
func (b *Bus) StepsNoticed() int {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	return b.clock.own
}

// askTime asks the broker what time it is. It keeps asking only when it must have an answer.
func (b *Bus) askTime(ctx context.Context, must bool) (reading, error) {
	op, pace := "ask the time", newBackoff()
	for {
		var reply struct {
			Now   time.Time `json:"ts"`
			State struct {
				LastSeq uint64 `json:"last_seq"`
			} `json:"state"`
		}
		short, cancel := context.WithTimeout(ctx, clockPatienceMS*time.Millisecond)
		sent := time.Now()
		err := b.callOnce(short, op, apiPrefix+"STREAM.INFO."+b.cell.LogStream(), nil, &reply)
		cancel()
		switch {
		case err == nil:
			return reading{said: reply.Now, seq: reply.State.LastSeq, sent: sent, heard: time.Now()}, nil
		case !must || !errors.Is(err, ErrUnreachable):
			return reading{}, err
		case !pause(ctx, pace.NextBackOff()):
			return reading{}, b.late(op, err)
		}
	}
}
