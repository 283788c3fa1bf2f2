package compaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of idle compaction.
const (
	idleClaim     = "idle-compaction"
	idleClaimTTL  = 5 * time.Second  // how long a killed holder keeps the claim
	idlePoll      = time.Second      // interval of the checks of running compactions
	idleMax       = 10 * time.Minute // a longer compaction no longer delays others
	idleKnownMax  = 100_000          // sessions that wait for their place; the walk finds others again
	idleClaimHold = idleClaimTTL / 3
	idleForgotten = 10 // walks that have not found a session, until it is forgotten: its document is gone
)

// idlers are the idle sessions that wait for their place, as far as this process has seen, and the running idle
// compactions. It is a cache: the walk finds all of them again.
type idlers struct {
	s    *Service
	news chan struct{}

	mu    sync.Mutex
	due   map[events.Ref]idler
	swept time.Time
	under map[events.Ref]underWay // only while this process holds the claim
}

// idler is a session that is due.
type idler struct {
	since    time.Time
	recorded time.Time // when it was last seen, by this process's clock
}

// underWay is an idle compaction that runs.
type underWay struct {
	id    string
	since time.Time // by this process's clock
}

func newIdlers(s *Service) *idlers {
	return &idlers{s: s, news: make(chan struct{}, 1), due: map[events.Ref]idler{}, under: map[events.Ref]underWay{}}
}

// record records a decision about a session: since when it is due, zero if it is not.
func (k *idlers) record(st *session.State, since time.Time) {
	r := st.Ref()
	k.mu.Lock()
	_, was := k.due[r]
	u, running := k.under[r]
	over := running && !st.Compaction.IsOpen(u.id)
	if over {
		delete(k.under, r)
	}
	switch {
	case since.IsZero():
		delete(k.due, r)
	case was || len(k.due) < idleKnownMax:
		k.due[r] = idler{since, time.Now()}
	}
	k.forget(time.Now())
	k.mu.Unlock()
	if over || !since.IsZero() && !was {
		k.notify()
	}
}

// forget removes sessions that no walk has found for long. It is a cache: a due session is noted again.
func (k *idlers) forget(now time.Time) {
	most := idleForgotten * k.s.cfg.Walk
	if now.Sub(k.swept) < most {
		return
	}
	k.swept = now
	maps.DeleteFunc(k.due, func(_ events.Ref, i idler) bool { return now.Sub(i.recorded) > most })
}

func (k *idlers) notify() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// oldest removes and returns the session that has been due for longest.
func (k *idlers) oldest() (events.Ref, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var first events.Ref
	found := false
	for r, i := range k.due {
		if !found || i.since.Before(k.due[first].since) ||
			i.since.Equal(k.due[first].since) && r.String() < first.String() {
			first, found = r, true
		}
	}
	delete(k.due, first)
	return first, found
}

// has reports whether a session waits for its place, or has it.
func (k *idlers) has(r events.Ref) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, due := k.due[r]
	_, under := k.under[r]
	return due || under
}

func (k *idlers) counts() (due, under int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.due), len(k.under)
}

// run compacts due sessions while this process holds the claim, until ctx ends.
func (k *idlers) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if due, _ := k.counts(); due == 0 {
			select {
			case <-k.news:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		if err := k.claim(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, bus.ErrExists) {
			k.s.log.Warn().AnErr("err", err).Msg("idle sessions wait: the claim was lost, or could not be taken")
		}
		k.wait(ctx)
	}
	return nil
}

// wait waits for a change or the next poll.
func (k *idlers) wait(ctx context.Context) {
	t := time.NewTimer(idlePoll)
	defer t.Stop()
	select {
	case <-t.C:
	case <-k.news:
	case <-ctx.Done():
	}
}

// claim takes the cell's claim, compacts what is due, and releases the claim. [bus.ErrExists]: another process has it.
func (k *idlers) claim(ctx context.Context) (err error) {
	value, err := json.Marshal(lease.Record{ID: idleClaim, Incarnation: k.s.bus.Instance(), Exclusive: true,
		State: lease.Ready, TTLMS: idleClaimTTL.Milliseconds(), StartedAt: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	lease, err := k.s.bus.Leases.Acquire(ctx, events.ClaimKey(idleClaim), value, idleClaimTTL)
	if err != nil {
		return err
	}
	work, cancel := context.WithCancel(ctx)
	lost := lease.Keep(work, idleClaimHold, func() []byte { return value })
	done := make(chan error, 1)
	go func() { done <- k.work(work) }()
	select {
	case err = <-lost:
		cancel()
		return errors.Join(err, <-done)
	case err = <-done:
		cancel()
	}
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	return errors.Join(err, lease.Release(late))
}

// work compacts the sessions in order, as many at once as configured, until none is due or running.
func (k *idlers) work(ctx context.Context) error {
	if err := k.findUnderWay(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		due, under := k.counts()
		switch {
		case due == 0 && under == 0:
			return nil
		case due > 0 && under < k.s.cfg.IdleCompactionsMax:
			if r, ok := k.oldest(); ok {
				k.compact(ctx, r)
			}
		default:
			k.wait(ctx)
			k.check(ctx)
		}
	}
	return nil
}

// findUnderWay finds the running compactions of an earlier holder of the claim, which may have died. They count.
func (k *idlers) findUnderWay(ctx context.Context) error {
	under := map[events.Ref]underWay{}
	err := k.s.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		h, err := session.ReadHead(e.Value)
		if err != nil || !h.Owned || h.Phase != session.Compacting && h.Phase != session.Waiting {
			// the phase of a compaction that runs is one of these
			return nil
		}
		st, err := session.Decode(e.Value)
		if err == nil && st.CompactionOpen() && st.Compaction.Reason == events.CompactIdle && st.Owned {
			under[st.Ref()] = underWay{id: st.Compaction.ID, since: time.Now()}
		}
		// the ledger reports documents that cannot be read
		return nil
	})
	k.mu.Lock()
	k.under = under
	k.mu.Unlock()
	return err
}

// compact requests one session's compaction, if it is still due.
func (k *idlers) compact(ctx context.Context, r events.Ref) {
	k.s.loop.Try(ctx, r, func() error {
		st, err := k.s.loop.Load(ctx, r)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err == nil {
			st, err = k.s.loop.CatchUp(ctx, st)
		}
		if err != nil {
			return err
		}
		after, facts, err := k.s.loop.SettleBy(ctx, st, k.s.decideInPlace)
		if slices.ContainsFunc(facts, func(f events.Fact) bool {
			c, ok := f.(events.CompactionRequested)
			return ok && c.Reason == events.CompactIdle
		}) {
			k.mu.Lock()
			k.under[r] = underWay{id: after.Compaction.ID, since: time.Now()}
			k.mu.Unlock()
		}
		return err
	})
}

// check removes compactions that ended or take too long.
func (k *idlers) check(ctx context.Context) {
	k.mu.Lock()
	under := make(map[events.Ref]underWay, len(k.under))
	for r, u := range k.under {
		under[r] = u
	}
	k.mu.Unlock()
	for r, u := range under {
		st, err := k.s.loop.Load(ctx, r)
		if err == nil {
			st, err = k.s.loop.CatchUp(ctx, st)
		}
		gone := errors.Is(err, bus.ErrNotFound) || err == nil && !(st.Compaction.IsOpen(u.id) && st.Owned)
		if gone || time.Since(u.since) > idleMax {
			k.mu.Lock()
			delete(k.under, r)
			k.mu.Unlock()
		}
	}
}
