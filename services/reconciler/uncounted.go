package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// Intervals of the search for consumers that no limit of the broker counts.
const (
	uncountedEvery = 30 * time.Second
	uncountedAgain = 5 * time.Second  // after some were found: their user may make more
	uncountedLater = 10 * time.Minute // where this user may not ask: permissions can be changed while it runs
)

// endUncounted deletes the consumers that no limit of the broker counts: a user can make any number of them, each takes
// memory of a node, and the user says how long.
func (r *Reconciler) endUncounted(ctx context.Context) error {
	next := time.NewTimer(uncountedEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		next.Reset(r.endUncountedOnce(ctx))
	}
}

// endUncountedOnce returns when to look again.
func (r *Reconciler) endUncountedOnce(ctx context.Context) time.Duration {
	ended, left, err := r.bus.Consumers.EndUncounted(ctx)
	if errors.Is(err, bus.ErrForbidden) && len(ended) == 0 {
		r.log.Warn().AnErr("err", err).Msg("consumers that the broker does not count are not deleted: print the " +
			"permissions again")
		return uncountedLater
	}
	if err != nil && !errors.Is(err, bus.ErrNotFound) && ctx.Err() == nil {
		r.log.Warn().AnErr("err", err).Msg("not all consumers that the broker does not count are known, or deleted: " +
			"trying again")
	}
	if len(ended) == 0 {
		return uncountedEvery
	}
	r.log.Warn().Str("entity", ended[0].Stream+" "+ended[0].Name).Msg(fmt.Sprintf("%d consumers that the broker "+
		"counts for no limit are deleted, %d with a subscription are left", len(ended), left))
	return uncountedAgain
}
