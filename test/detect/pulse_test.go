package detect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// From a kill or a "ready" until a watcher sees all closed lie about so many writes, one after the other, each synced.
// What the machine itself takes for them beyond a calm one's time is no part of the promise: others may keep its disk
// busy.
const (
	writesOnTheWay = 10
	calmWrite      = 5 * time.Millisecond
	pulseEvery     = 25 * time.Millisecond
)

// pulse measures, beside the test and in the same run, what one synced append takes.
type pulse struct {
	mu   sync.Mutex
	took []time.Duration
}

// beat appends for ever.
func (p *pulse) beat(ctx context.Context, b *bus.Bus) error {
	ref, last := events.Ref{Harness: "pulse", Session: "pulse"}, uint64(0)
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		e := events.New(b.NewID(), events.HarnessSource(ref.Harness, "1"), ref, 1, began,
			events.SessionReleased{Reason: "pulse"})
		seq, err := b.Append(ctx, ref, events.WriterHarness, last, []events.Event{e})
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

// allowance is what the machine's own slowness may add: nothing on a calm one.
func (p *pulse) allowance() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.took) == 0 {
		return 0
	}
	slices.Sort(p.took)
	p99 := p.took[len(p.took)*99/100]
	return writesOnTheWay * max(p99-calmWrite, 0)
}
