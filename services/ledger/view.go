package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// storeViews writes what changed of the views, one entry of a session after the other (three nodes refuse a second write
// with the same guard), all sessions side by side.
func (f *folder) storeViews(ctx context.Context, ts []*touched) error {
	queues := make([][]bus.View, 0, len(ts))
	for _, t := range ts {
		if !t.changed && !t.owed {
			continue
		}
		vs, err := f.views(ctx, t)
		if err != nil {
			return err
		}
		if len(vs) > 0 {
			queues = append(queues, vs)
		}
	}
	return writeViews(ctx, f.bus, queues)
}

// writeViews writes each queue in order, one entry at a time, and all queues side by side.
func writeViews(ctx context.Context, b *bus.Bus, queues [][]bus.View) error {
	for round := 0; ; round++ {
		var under []bus.Pending
		for _, q := range queues {
			if round < len(q) {
				under = append(under, b.StoreView(ctx, q[round]))
			}
		}
		if len(under) == 0 {
			return nil
		}
		for _, p := range under {
			if _, err := p.Wait(ctx); err != nil {
				return fmt.Errorf("ledger: view: %w", err)
			}
		}
	}
}

// views renders what may have changed of a session's views.
func (f *folder) views(ctx context.Context, t *touched) ([]bus.View, error) {
	var prompts []string
	work := true
	if t.owed {
		prompts = t.owedPrompts()
	} else {
		prompts, work = session.BlockersChanged(t.before, t.state), session.WorkChanged(t.before, t.state)
	}
	src := commitSource(ctx, f.bus, t.commits)
	vs, err := blockerViews(t.state, prompts, t.rev, f.cfg.ClosedFor, t.state.UpdatedAt, src)
	if err != nil || !work {
		return vs, err
	}
	w, err := workView(t.state, t.rev, src)
	return append(vs, w), err
}

// owedPrompts are all that the people's view has entries of, and those that commits folded again ended: their entries may
// still say that they wait, though they are no longer among the recent endings.
func (t *touched) owedPrompts() []string {
	prompts := t.state.BlockerPrompts(time.Time{})
	for _, x := range t.feed {
		for i := range x.events {
			if spec := events.Lookup(x.events[i].Kind); spec != nil && spec.Ends == session.EntityPrompt {
				prompts = append(prompts, x.events[i].Fact.Subject())
			}
		}
	}
	slices.Sort(prompts)
	return slices.Compact(prompts)
}

// commitSource finds commits in the batch, else in the log.
func commitSource(ctx context.Context, b *bus.Bus, batch []events.Commit) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		for i := range batch {
			if batch[i].Seq == seq {
				return &batch[i], nil
			}
		}
		c, err := b.Commit(ctx, seq)
		return &c, err
	}
}

// blockerViews renders the people's view of these prompts as of an instant. What has lived long enough is left to expire;
// what the log no longer has cannot be shown; what the session no longer knows is removed: it was closed with so much else.
func blockerViews(st *session.State, prompts []string, rev uint64, closedFor time.Duration, now time.Time, src session.Source) ([]bus.View, error) {
	vs := make([]bus.View, 0, len(prompts))
	for _, id := range prompts {
		b, err := st.Blocker(id, src)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case b == nil:
			vs = append(vs, bus.View{Key: st.BlockerKey(id), GuardKey: events.SessionKey(st.Ref()), GuardRev: rev})
			continue
		}
		ttl, gone := blockerTTL(b, closedFor, now)
		if gone {
			continue
		}
		body, err := session.EncodeView(b)
		if err != nil {
			return nil, fmt.Errorf("ledger: view of prompt %s: %w", id, err)
		}
		vs = append(vs, bus.View{Key: st.BlockerKey(id), Value: body, GuardKey: events.SessionKey(st.Ref()), GuardRev: rev, TTL: ttl})
	}
	return vs, nil
}

// workView renders the harness's view: without a value when nothing is left to do, which removes the key.
func workView(st *session.State, rev uint64, src session.Source) (bus.View, error) {
	v := bus.View{Key: events.WorkKey(st.Ref()), GuardKey: events.SessionKey(st.Ref()), GuardRev: rev}
	w, err := st.Work(src)
	if err != nil || w == nil {
		return v, err
	}
	v.Value, err = session.EncodeView(w)
	if err != nil {
		return v, fmt.Errorf("ledger: work of %s: %w", st.Ref(), err)
	}
	return v, nil
}
