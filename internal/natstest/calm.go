package natstest

import (
	"sync"
	"testing"
	"time"
)

// What a machine may do to a test.
const (
	beatMS    = 5 // how often a pulse looks at the clock
	jitterMS  = 3 // a beat may be so late on a machine that has nothing else to do
	calmTries = 5 // of [Calm]
)

// Pulse measures, beside a test and in the same run, how long this process was kept from running: by other processes,
// or by what it does itself. A bound on time that does not allow for it judges the machine, not the program.
type Pulse struct {
	mu    sync.Mutex
	until time.Time // the last beat
	lost  time.Duration
	end   chan struct{}
	ended sync.Once
}

// Feel begins to measure; it ends with the test at the latest.
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

// Lost is for how long, of the time since it began to measure, the process did not run although it wanted to.
func (p *Pulse) Lost() time.Duration {
	p.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Calm plays a scenario that a machine may legally spoil by standing still, such as a lease of a second that has to be
// kept. What it returns is an error, unless the process was kept from running for longer than lostMax meanwhile: then
// it is played again, a few times. Each time needs a world of its own.
func Calm(t testing.TB, lostMax time.Duration, scenario func() error) {
	t.Helper()
	for range calmTries {
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
	t.Fatalf("%d times, and never was the machine calm for it", calmTries)
}
