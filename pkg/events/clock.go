package events

import (
	"cmp"
	"slices"
	"time"
)

// Limits of the recorded steps of the broker's clock.
const (
	StepMin  = time.Second // a smaller correction of the broker's clock is not recorded
	stepsMax = 64          // steps that are kept, the newest ones
)

// Step is one jump of the broker's clock: the clock was set by hand or by a time service, or its machine was suspended.
// Commits up to Seq have timestamps from before the step.
type Step struct {
	Seq  uint64    `json:"seq"`   // of the log: the last commit before the step
	ByMS int64     `json:"by_ms"` // how far the clock jumped, negative: back
	At   time.Time `json:"at"`    // by the new clock, when the step was noticed
}

// By returns how far the clock jumped; negative: back.
func (s Step) By() time.Duration { return time.Duration(s.ByMS) * time.Millisecond }

// Steps are the known jumps of the broker's clock, in their order.
type Steps []Step

// Since translates an instant that was set in commit seq to the present clock. An instant that was ten minutes ahead
// before a step is ten minutes ahead after it. The zero instant stays zero.
func (s Steps) Since(at time.Time, seq uint64) time.Time {
	if at.IsZero() {
		return at
	}
	for _, x := range s {
		if x.Seq >= seq {
			at = at.Add(x.By())
		}
	}
	return at
}

// Earliest returns the earliest instant by the present clock that an instant of any commit can be.
func (s Steps) Earliest(at time.Time) time.Time {
	var sum, least time.Duration
	for _, x := range slices.Backward(s) {
		sum += x.By()
		least = min(least, sum)
	}
	return at.Add(least)
}

// Merge returns the union of two lists of steps. Two processes find the same jump after the same commit or at about the
// same instant.
func (s Steps) Merge(other Steps) Steps {
	out := slices.Clone(s)
	for _, x := range other {
		if !slices.ContainsFunc(s, x.same) {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), a.At.Compare(b.At))
	})
	return out[max(0, len(out)-stepsMax):]
}

// sameWithin is the largest time between two processes that notice the same step. Each reads the clock every second
// while the broker answers.
const sameWithin = 5 * time.Second

func (s Step) same(o Step) bool {
	near := func(d, most time.Duration) bool { return d.Abs() < most }
	return near(s.By()-o.By(), StepMin) && (s.Seq == o.Seq || near(s.At.Sub(o.At), sameWithin))
}

// Clock is the broker's clock at one instant, with its known steps.
type Clock struct {
	Now   time.Time
	Steps Steps
	Epoch uint64 // counts the changes of Steps: instants from different epochs are not comparable
}

// Passed reports whether an instant that was set in commit seq has come.
func (c Clock) Passed(at time.Time, seq uint64) bool { return !c.Now.Before(c.Steps.Since(at, seq)) }
