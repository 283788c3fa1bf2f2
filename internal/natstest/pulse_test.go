package natstest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	failed string
}

func (*recorder) Helper()                        {}
func (*recorder) Logf(string, ...any)            {}
func (*recorder) Cleanup(func())                 {}
func (j *recorder) Fatal(args ...any)            { j.failed = fmt.Sprint(args...) }
func (j *recorder) Fatalf(f string, args ...any) { j.failed = fmt.Sprintf(f, args...) }

// TestRetryStalled: the error of a scenario is returned at once, unless the machine stalled; then it runs a few times
// more.
func TestRetryStalled(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name     string
		lostMax  time.Duration
		succeeds int // in this attempt
		played   int
		failed   bool
	}{
		{"as it should be", time.Hour, 1, 1, false},
		{"broken", time.Hour, 2, 1, true},
		{"spoilt once", -1, 2, 2, false},
		{"always spoilt", -1, stalledTries + 1, stalledTries, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, played := &recorder{TB: t}, 0
			RetryStalled(j, c.lostMax, func() error {
				if played++; played == c.succeeds {
					return nil
				}
				return broken
			})
			if played != c.played || (j.failed != "") != c.failed {
				t.Errorf("played %d times, want %d; failed %q, want a failure: %v", played, c.played, j.failed,
					c.failed)
			}
		})
	}
}

// TestLost: a late beat counts as lost time, minus the jitter.
func TestLost(t *testing.T) {
	p := &Pulse{until: time.Now().Add(-time.Second)}
	if lost := p.Lost(); lost < time.Second-(beatMS+jitterMS)*time.Millisecond {
		t.Errorf("after a second: %s", lost)
	}
	p = &Pulse{until: time.Now()}
	// in time, even on a busy machine
	p.until = p.until.Add(time.Hour)
	if lost := p.Lost(); lost != 0 {
		t.Errorf("in time: %s", lost)
	}
}
