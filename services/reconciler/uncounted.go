package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
)

// Intervals of the search for consumers that no limit of the broker counts.
const (
	uncountedEvery = 30 * time.Second
	uncountedAgain = 5 * time.Second  // after some were found: their user may make more
	uncountedLater = 10 * time.Minute // where this user may not ask: permissions can be changed while it runs
)

// endUncounted ends the consumers that no limit of the broker counts: a user can make any number of them, each takes
// memory of a node, and the user says how long. Sourcing ones are deleted. A direct one without a subscription ends
// 10 s later; one with a subscription is that of a person, and is only reported.
func (r *Reconciler) endUncounted(ctx context.Context) error {
	next := time.NewTimer(uncountedEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		next.Reset(r.lookForUncounted(ctx))
	}
}

// lookForUncounted returns when to look again.
func (r *Reconciler) lookForUncounted(ctx context.Context) time.Duration {
	found, err := r.bus.Consumers.Uncounted(ctx, true)
	if errors.Is(err, bus.ErrForbidden) {
		r.log.Warn().AnErr("err", err).Msg("consumers that the broker does not count are not ended: print the " +
			"permissions again")
		return uncountedLater
	}
	if err != nil && !errors.Is(err, bus.ErrNotFound) && ctx.Err() == nil {
		r.log.Warn().AnErr("err", err).Msg("not all brokers said which consumers they do not count")
	}
	if len(found) == 0 {
		return uncountedEvery
	}
	ended, err := r.bus.Consumers.EndUncounted(ctx, found)
	if ended == 0 && err == nil {
		return uncountedEvery
	}
	r.log.Warn().AnErr("err", err).Str("entity", found[0].Stream+" "+found[0].Name).Msg(fmt.Sprintf(
		"%d consumers that the broker counts for no limit: %d of them are deleted, or end when they are %s without a "+
			"subscription; `holdfast doctor` names those that stay", len(found), ended, consumer.UncountedIdleMax))
	return uncountedAgain
}
