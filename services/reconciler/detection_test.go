package reconciler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// What is promised of detection.
const (
	detectTTL   = 5 * time.Second
	detectGrace = 2 * time.Second
	detectMore  = time.Second            // beyond TTL and grace, until the last call is closed, 99 of 100 times
	readyToDone = 250 * time.Millisecond // from ready to the last call closed, 99 of 100 times
	detectKills = 200
)

// recoveredAt is when the last call of a session was closed by recovery, by the broker's clock; zero for not yet.
func (c *cell) recoveredAt(harness, name string) (at time.Time) {
	s := c.state(harness, name)
	if !recovered(s) {
		return at
	}
	return s.UpdatedAt
}

// p99 is the instant that 99 of 100 do not pass.
func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[(len(took)*99+99)/100-1]
}

// TestDetectionAfterKill: from SIGKILL to the last call closed.
func TestDetectionAfterKill(t *testing.T) {
	t.Parallel()
	c := start(t)
	cfg := Default()
	cfg.Grace = detectGrace
	c.reconcile(c.b, cfg)
	killed := make([]time.Time, detectKills)
	var all sync.WaitGroup
	for i := range killed {
		p := c.harness(fmt.Sprint("h", i), "ready", detectTTL)
		p.open("s", 2)
		all.Go(func() {
			<-time.After(time.Duration(rand.N(int64(detectTTL)))) // anywhere between two renewals
			p.die()
			killed[i] = time.Now()
		})
	}
	all.Wait()
	took := make([]time.Duration, detectKills)
	for i := range killed {
		name := fmt.Sprint("h", i)
		var at time.Time
		natstest.Until(t, name+" to be recovered", func() bool { at = c.recoveredAt(name, "s"); return !at.IsZero() })
		took[i] = at.Sub(killed[i])
	}
	got := p99(took)
	t.Logf("p50 %s, p99 %s, max %s", took[len(took)/2], got, took[len(took)-1])
	if got > detectTTL+detectGrace+detectMore {
		t.Errorf("p99 %s: more than TTL + grace + %s", got, detectMore)
	}
}

// TestDetectionAfterReady: from a new incarnation's ready to the last call of the old one closed.
func TestDetectionAfterReady(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.reconcile(c.b, quick())
	const harnesses, rounds = 4, detectKills / 4
	took := make([]time.Duration, harnesses*rounds)
	var all sync.WaitGroup
	for h := range harnesses {
		all.Go(func() {
			id := fmt.Sprint("h", h)
			old := c.harness(id, "ready", 30*time.Second)
			for n := range rounds {
				name := fmt.Sprint("s", n)
				old.open(name, 2)
				natstest.Until(t, "the document", func() bool {
					_, err := c.b.Load(c.ctx, bus.State, events.SessionKey(events.Ref{Harness: id, Session: name}))
					return err == nil
				})
				next := c.harness(id, "starting", 30*time.Second)
				said := time.Now()
				next.say("ready")
				var at time.Time
				natstest.Until(t, "recovery", func() bool { at = c.recoveredAt(id, name); return !at.IsZero() })
				took[h*rounds+n] = at.Sub(said)
				old = next
			}
		})
	}
	all.Wait()
	got := p99(took)
	t.Logf("p50 %s, p99 %s, max %s", took[len(took)/2], got, took[len(took)-1])
	if got > readyToDone {
		t.Errorf("p99 %s: more than %s", got, readyToDone)
	}
}
