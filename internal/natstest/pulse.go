package natstest

import (
	"sync"
	"testing"
	"time"
)

// Limits of a busy machine.
const (
	beatMS       = 5 // how often a pulse looks at the clock
	jitterMS     = 3 // how late a beat may be on an idle machine
	stalledTries = 5 // of [RetryStalled]
)

// Pulse measures, beside a test and in the same run, how long this process was kept from running, by other processes or
// by its own work. A time limit without this allowance tests the machine, not the program.
type Pulse struct {
	mu    sync.Mutex
	until time.Time // the last beat
	lost  time.Duration
	end   chan struct{}
	ended sync.Once
}

// Feel starts a measurement; it ends with the test at the latest.
func Feel(t testing.TB) *Pulse {
	t.Helper()
	p := &Pulse{until: time.Now(), end: make(chan struct{})}
	tick := time.NewTicker(beatMS * time.Millisecond)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.beat()
			case <-p.end:
				return
			}
		}
	}()
	t.Cleanup(p.stop)
	return p
}

func (p *Pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if late := now.Sub(p.until) - beatMS*time.Millisecond; late > jitterMS*time.Millisecond {
		p.lost += late
	}
	p.until = now
}

func (p *Pulse) stop() { p.ended.Do(func() { close(p.end) }) }

// Lost returns how long the process was ready and did not run, since the measurement started.
func (p *Pulse) Lost() time.Duration {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// RetryStalled runs a scenario that a stalled machine may spoil, such as a lease of a second that must be renewed. The
// scenario's error is returned, unless the process was kept from running for longer than lostMax: then the scenario
// runs again, a few times. Each run needs a new world.
func RetryStalled(t testing.TB, lostMax time.Duration, scenario func() error) {
	t.Helper()
	for range stalledTries {
		p := Feel(t)
		err := scenario()
		lost := p.Lost()
		p.stop()
		switch {
		case err == nil:
			return
		case lost <= lostMax:
			t.Fatal(err)
			return
		}
		t.Logf("the process did not run for %s: %v", lost, err)
	}
	t.Fatalf("%d times, and never was the machine calm for it", stalledTries)
}
