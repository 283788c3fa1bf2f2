package reconciler

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of the search for leases whose connection has ended.
const (
	disconnectEvery = 300 * time.Millisecond // interval of the questions to the brokers
	endedFor        = time.Minute            // how long an ended connection is kept: then its lease has ended anyway
	endedMax        = 100_000                // ended connections that are kept
	endAtOnceMax    = 16                     // leases that are ended at the same time
	forbiddenFor    = time.Minute            // then it asks again: permissions can be changed while it runs
	gracePart       = 10                     // the grace of a lease is at least this part of its TTL
)

// endDisconnected ends the leases of harnesses whose connection has ended and that did not renew it since. A lease
// proves life for its TTL, which has to outlast a pause of the process; the end of a connection shows sooner that a
// process has died. The lease stays what is certain: it is deleted under its own revision, so a process that renewed it
// keeps it, and one that lives without having renewed it learns that the lease is lost.
func (r *Reconciler) endDisconnected(ctx context.Context) error {
	if r.cfg.DisconnectGrace == 0 {
		return nil
	}
	return control.Together(ctx,
		func(ctx context.Context) error {
			for {
				err := r.bus.Presence.Ended(ctx, disconnectEvery, func(all []presence.Connection) {
					r.leases.disconnected(all, time.Now())
				})
				if !errors.Is(err, bus.ErrForbidden) {
					return err
				}
				r.log.Warn().AnErr("err", err).
					Msg("a dead process is noticed when its lease ends, not when its connection ends")
				select {
				case <-time.After(forbiddenFor):
				case <-ctx.Done():
					return nil
				}
			}
		},
		func(ctx context.Context) error {
			tick := time.NewTicker(disconnectEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					r.endLeases(ctx, r.leases.gone(time.Now(), r.cfg.DisconnectGrace))
				case <-ctx.Done():
					return nil
				}
			}
		})
}

// endLeases deletes leases that were not renewed since.
func (r *Reconciler) endLeases(ctx context.Context, all []overdueLease) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.DisconnectGrace)
	defer cancel()
	var deletions errgroup.Group
	deletions.SetLimit(endAtOnceMax)
	for _, x := range all {
		deletions.Go(func() error {
			err := r.bus.KV.Delete(ctx, kv.Leases, events.HarnessLeaseKey(x.harness, x.incarnation), x.rev)
			level, text := zerolog.InfoLevel, "its connection ended and was not restored: lease ended"
			if err != nil {
				level, text = zerolog.DebugLevel, "its connection ended, and its lease is not ended now"
			}
			r.log.WithLevel(level).AnErr("err", err).Str("id", x.harness).Str("entity", "lease").
				Str("reason", x.incarnation).Msg(text)
			return nil
		})
	}
	_ = deletions.Wait() // no deletion returns an error
}

// disconnected records connections that have ended.
func (k *leaseBook) disconnected(all []presence.Connection, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.ended, func(_ presence.Connection, at time.Time) bool { return now.Sub(at) > endedFor })
	for _, c := range all {
		if _, known := k.ended[c]; !known && len(k.ended) < endedMax {
			k.ended[c] = now
		}
	}
}

// gone returns the living leases whose connection ended at least grace ago and that were not renewed for this long,
// while this process could renew its own lease. A lease with a long TTL has more time: a tenth of it.
func (k *leaseBook) gone(now time.Time, grace time.Duration) []overdueLease {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := &k.view
	if len(k.ended) == 0 || !k.isReady || now.Sub(v.Renewed) >= gapMin {
		return nil
	}
	var back time.Time // when others could renew again
	if n := len(v.Gaps); n > 0 {
		back = v.Gaps[n-1].End
	}
	var all []overdueLease
	for harness, leases := range v.Leases {
		for incarnation, l := range leases {
			ended, known := k.ended[l.Connected]
			silent := now.Sub(later(later(ended, l.Received), back))
			if known && l.Ended.IsZero() && silent >= max(grace, l.TTL/gracePart) {
				all = append(all, overdueLease{harness, incarnation, l.Rev})
			}
		}
	}
	return all
}
