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
	endedFor        = time.Minute            // how long one is kept that no living lease and no broker names any more
	endedMax        = 100_000                // ended connections that are kept
	endAtOnceMax    = 16                     // leases that are ended at the same time
	forbiddenFor    = time.Minute            // then it asks again: permissions can be changed while it runs
	gracePart       = 10                     // the grace of a lease is at least this part of its TTL
)

// endDisconnected ends the leases of harnesses whose connection has ended, that did not renew it since, and that have
// no other connection. A lease proves life for its TTL, which has to outlast a pause of the process; the end of a
// connection shows sooner that a process has died. The lease stays what is certain: it is deleted under its own
// revision, so a process that renewed it keeps it, and one that lives without having renewed it learns that the lease
// is lost.
func (r *Reconciler) endDisconnected(ctx context.Context) error {
	if r.cfg.DisconnectGrace == 0 {
		return nil
	}
	return control.Together(ctx,
		func(ctx context.Context) error {
			for {
				err := r.bus.Presence.Watch(ctx, disconnectEvery, presence.Watcher{
					Ended: func(all []presence.Connection) { r.leases.disconnected(all, time.Now()) },
					Asks:  r.leases.asks,
					Open:  func(names []string) { r.leases.connected(names, time.Now()) },
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
			} else {
				r.leases.count.ended.Add(1)
			}
			r.log.WithLevel(level).AnErr("err", err).Str("id", x.harness).Str("entity", "lease").
				Str("incarnation", x.incarnation).Msg(text)
			return nil
		})
	}
	// no deletion returns an error
	_ = deletions.Wait()
}

// ending is a connection that has ended.
type ending struct {
	began time.Time // when this process learned of it
	named time.Time // when a broker named it for the last time
}

// disconnected records connections that have ended.
func (b *leaseBook) disconnected(all []presence.Connection, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		e, known := b.ended[c]
		switch {
		case known:
		case len(b.ended) >= endedMax:
			continue
		default:
			e.began = now
		}
		e.named = now
		b.ended[c] = e
	}
}

// asks reports whether the brokers are to be asked for open connections: a connection has ended that a living lease
// names. A process that connects again usually renews its lease before that.
func (b *leaseBook) asks() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) > 0
}

// connected records open connections that were asked for.
func (b *leaseBook) connected(names []string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if _, asked := b.open[name]; asked {
			b.open[name] = now
		}
	}
}

// gone returns the living leases whose connection ended at least grace ago, that were not renewed for this long, and
// whose process had no other connection for this long, while this process could renew its own lease. A process with a
// connection may be unable to renew: the node that it found does not have JetStream yet, or the leases have no leader.
// A lease with a long TTL has more time: a tenth of it. A lease that would be returned without the gaps of the own
// lease is counted, once.
func (b *leaseBook) gone(now time.Time, grace time.Duration) []overdueLease {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := &b.view
	if len(b.ended) == 0 || !b.isReady {
		b.open = nil
		return nil
	}
	held := now.Sub(v.Renewed) < gapMin
	// when others could renew again
	var back time.Time
	if n := len(v.Gaps); n > 0 {
		back = v.Gaps[n-1].End
	}
	var all []overdueLease
	open := map[string]time.Time{}
	for harness, leases := range v.Leases {
		for incarnation, l := range leases {
			e, known := b.ended[l.Connected]
			if !known || !l.Ended.IsZero() {
				continue
			}
			// its lease lives: it is kept
			e.named = now
			b.ended[l.Connected] = e
			since, need := later(e.began, l.Received), max(grace, l.TTL/gracePart)
			if l.Name != "" && now.Sub(since) >= need-grace {
				open[l.Name] = b.open[l.Name]
				since = later(since, open[l.Name])
			}
			switch {
			case now.Sub(since) < need:
			case held && now.Sub(later(since, back)) >= need:
				all = append(all, overdueLease{harness, incarnation, l.Rev})
			case !l.PutOff:
				l.PutOff = true
				b.count.putOff.Add(1)
			}
		}
	}
	b.open = open
	maps.DeleteFunc(b.ended, func(_ presence.Connection, e ending) bool { return now.Sub(e.named) > endedFor })
	return all
}
