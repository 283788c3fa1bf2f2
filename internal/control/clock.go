package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// clockEvery is the longest pause between two reads of the broker's clock. A read notices that the clock was set.
const clockEvery = time.Second

// FollowClock notices when the broker's clock is set, and stores the steps of all services in the cell. A process that
// starts later uses them to translate earlier instants. It returns nil when ctx ends.
func FollowClock(ctx context.Context, b *bus.Bus, log zerolog.Logger) error {
	kept := -1
	for {
		c, err := b.Clock.Read(ctx)
		if n := b.Clock.StepsNoticed(); err == nil && n != kept {
			switch err := keepSteps(ctx, b, c.Steps); {
			case err == nil:
				kept = n
			case errors.Is(err, bus.ErrForbidden):
				kept = n
				log.Warn().
					AnErr("err", err).
					Msg("steps of the broker's clock are not kept: a process that starts later cannot read them")
			case ctx.Err() == nil:
				log.Warn().AnErr("err", err).Msg("steps of the broker's clock are not kept yet, will retry")
			}
		}
		if !wait(ctx, clockEvery) {
			return nil
		}
	}
}

// LearnSteps reads the steps of the broker's clock that the services have stored. Call it before the first decision
// that depends on an instant.
func LearnSteps(ctx context.Context, b *bus.Bus) error {
	// from here on, this process notices steps itself
	if _, err := b.Clock.Read(ctx); err != nil {
		return err
	}
	steps, _, err := LoadSteps(ctx, b.KV)
	switch {
	// a cell with its own permissions: this process knows only the steps that it notices
	case errors.Is(err, bus.ErrForbidden):
	case err != nil:
		return err
	}
	b.Clock.LearnSteps(steps)
	return nil
}

// LoadSteps returns the steps of the broker's clock that the services have stored, and the revision of their entry.
func LoadSteps(ctx context.Context, buckets *kv.Buckets) (events.Steps, uint64, error) {
	e, err := buckets.Load(ctx, kv.Leases, events.ClockKey())
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("steps of the broker's clock: %w", err)
	}
	var steps events.Steps
	if err := json.Unmarshal(e.Value, &steps); err != nil {
		// an unreadable entry is replaced at the next step
		return nil, e.Rev, nil
	}
	return steps, e.Rev, nil
}

// keepSteps merges the steps of this process into the stored ones.
func keepSteps(ctx context.Context, b *bus.Bus, mine events.Steps) error {
	for {
		kept, rev, err := LoadSteps(ctx, b.KV)
		if err != nil {
			return err
		}
		b.Clock.LearnSteps(kept)
		all := kept.Merge(mine)
		if len(all) == len(kept) {
			return nil
		}
		value, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("steps of the broker's clock: %w", err)
		}
		if _, err = b.KV.Store(ctx, kv.Leases, events.ClockKey(), value, rev); !errors.Is(err, bus.ErrLostRace) {
			return err
		}
	}
}

// ignoreEnd returns nil if ctx has ended, else err.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
