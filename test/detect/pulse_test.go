package detect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// Number of consecutive synced writes from a kill or a "ready" until a watcher has everything closed. The promise does
// not include the machine's additional time for them, because other programs may use its disk.
const (
	writesOnTheWay = 10
	idleWrite      = 5 * time.Millisecond
	pulseEvery     = 25 * time.Millisecond
)

// pulse measures the time of one synced append during the test.
type pulse struct {
	mu   sync.Mutex
	runs int // each run has a session of its own
	took []time.Duration
}

// beat appends in a loop.
func (p *pulse) beat(ctx context.Context, b *bus.Bus) error {
	p.mu.Lock()
	p.runs++
	ref, last := events.Ref{Harness: "pulse", Session: fmt.Sprint("pulse", p.runs)}, uint64(0)
	p.mu.Unlock()
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		e := events.New(b.NewID(), events.HarnessSource(ref.Harness, "1"), ref, 1, began,
			events.SessionReleased{Reason: "pulse"})
		seq, err := b.Log.Append(ctx, ref, events.WriterHarness, last, []events.Event{e})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pulse: %w", err)
		}
		last = seq
		p.mu.Lock()
		p.took = append(p.took, time.Since(began))
		p.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// allowance returns the time that a slow disk may add. It is zero on an idle machine.
func (p *pulse) allowance() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.took) == 0 {
		return 0
	}
	slices.Sort(p.took)
	p99, longest := p.took[len(p.took)*99/100], p.took[len(p.took)-1]
	slow := writesOnTheWay * max(p99-idleWrite, 0)
	// the reconciler's own lease may have had a gap, after which the time begins again
	if longest >= standstill {
		slow += longest + reconciler.Default().DisconnectGrace
	}
	return slow
}
