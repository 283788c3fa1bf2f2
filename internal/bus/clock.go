package bus

import (
	"context"
	"sync"
	"time"
)

// clock is the broker's clock as measured from here: an instant of the broker's and the local instant, on the monotonic
// clock, that it belongs to.
type clock struct {
	mu     sync.Mutex
	broker time.Time
	local  time.Time
	last   time.Time // what was given out last; nothing earlier may follow
}

// Now is the broker's time, to half a round trip, and never goes back. It is measured every ten seconds and runs on by
// itself in between and while the broker is away; only the very first call fails ([ErrUnreachable]) without a broker.
func (b *Bus) Now(ctx context.Context) (time.Time, error) {
	c := &b.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local.IsZero() || time.Since(c.local) > clockFreshS*time.Second {
		if err := b.measure(ctx); err != nil && c.local.IsZero() {
			return time.Time{}, err
		}
	}
	now := c.broker.Add(time.Since(c.local))
	if now.Before(c.last) {
		now = c.last
	}
	c.last = now
	return now, nil
}
