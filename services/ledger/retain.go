package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// fullParts of the log's limit are where closed sessions are purged before their time.
const (
	fullPartsPercent = 90
	percent          = 100
	retainEveryMin   = time.Second // however short sessions are kept
)

// retain purges what has been closed for long enough, for ever.
func (l *Ledger) retain(ctx context.Context) error {
	tick := time.NewTicker(min(l.cfg.RetainEvery, max(l.cfg.Retain, retainEveryMin))) // a short time to keep is kept shortly
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if n, err := l.Retain(ctx); err != nil && ctx.Err() == nil {
				l.log.Error().Err(err).Msg("retention")
			} else if n > 0 {
				l.log.Info().Msgf("retention: purged %d closed sessions", n)
			}
		}
	}
}

// Retain purges each session that was closed for longer than the configured time, or at all when the log is nearly full,
// and returns how many there were. Of its commits the last one stays, so that its seq still guards the id.
func (l *Ledger) Retain(ctx context.Context) (int, error) {
	now, err := l.bus.Now(ctx)
	if err != nil {
		return 0, err
	}
	full, err := l.nearlyFull(ctx)
	if err != nil {
		return 0, err
	}
	var due []bus.Entry
	err = l.bus.List(ctx, bus.State, events.SessionKeys(""), func(e bus.Entry) error {
		st, err := session.Decode(e.Value)
		if err == nil && st.Closed != nil && (full || now.Sub(st.Closed.At) >= l.cfg.Retain) {
			due = append(due, e)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("ledger: retention: %w", err)
	}
	for n, e := range due {
		if err := l.purge(ctx, e); err != nil {
			return n, err
		}
	}
	return len(due), nil
}

func (l *Ledger) nearlyFull(ctx context.Context) (bool, error) {
	used, limit, err := l.bus.LogUsage(ctx)
	if err != nil || limit == 0 {
		return false, err
	}
	return used >= limit/percent*fullPartsPercent, nil
}

// purge removes a closed session's commits but the last, then its document. A crash between the two leaves a document
// that the next look finds again.
func (l *Ledger) purge(ctx context.Context, e bus.Entry) error {
	st, err := session.Decode(e.Value)
	if err != nil {
		return fmt.Errorf("ledger: retention: %w", err)
	}
	if err := l.bus.PurgeSession(ctx, st.Ref(), st.Seq); err != nil {
		return fmt.Errorf("ledger: retention: log of %s: %w", st.Ref(), err)
	}
	if err := l.bus.Delete(ctx, bus.State, e.Key, e.Rev); err != nil && !errors.Is(err, bus.ErrLostRace) {
		return fmt.Errorf("ledger: retention: document of %s: %w", st.Ref(), err)
	}
	return nil
}
