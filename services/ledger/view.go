package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// views renders what may have changed of a session's views, or may be missing.
func (f *folder) views(ctx context.Context, t *touched) ([]kv.View, error) {
	if t.views = f.apart.owes(t.ref); t.views != nil {
		t.lenient = t.lenient || t.views.lenient
		return f.viewsOf(ctx, t, append(t.endedPrompts(), t.views.ended...))
	}
	if t.owed {
		return f.viewsOf(ctx, t, t.endedPrompts())
	}
	return f.renderViews(ctx, t, session.BlockersChanged(t.before, t.state), session.WorkChanged(t.before, t.state))
}

// viewsOf renders all of a session's views, with those of ended prompts: their entries may still show them as waiting,
// though they are no longer among the recent endings.
func (f *folder) viewsOf(ctx context.Context, t *touched, ended []string) ([]kv.View, error) {
	prompts := append(t.state.BlockerPrompts(time.Time{}), ended...)
	slices.Sort(prompts)
	return f.renderViews(ctx, t, slices.Compact(prompts), true)
}

func (f *folder) renderViews(ctx context.Context, t *touched, prompts []string, work bool) ([]kv.View, error) {
	src := f.commitSource(ctx, t.commits)
	vs, err := blockerViews(t.state, prompts, f.cfg.SettledKeptFor, t.state.UpdatedAt, src)
	if err != nil || !work {
		return vs, err
	}
	w, err := workView(t.state, src)
	if t.lenient && errors.Is(err, bus.ErrNotFound) {
		return vs, nil
	}
	return append(vs, w), err
}

// endedPrompts returns the prompts that the commits folded here have ended.
func (t *touched) endedPrompts() []string {
	var prompts []string
	for _, x := range t.feed {
		for i := range x.Events {
			if spec := events.Lookup(x.Events[i].Kind); spec != nil && spec.Ends == session.EntityPrompt {
				prompts = append(prompts, x.Events[i].Fact.Subject())
			}
		}
	}
	return prompts
}

// commitSource finds commits in the batch, in the cached end of the log, else in the log.
func (f *folder) commitSource(ctx context.Context, batch []events.Commit) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		for i := range batch {
			if batch[i].Seq == seq {
				return &batch[i], nil
			}
		}
		if c := f.tail.commit(seq); c != nil {
			return c, nil
		}
		c, err := f.bus.Log.Commit(ctx, seq)
		if errors.Is(err, bus.ErrNotFound) {
			err = fmt.Errorf("%w: %w", session.ErrNoCommit, err)
		}
		return &c, err
	}
}

// blockerViews renders the people's view of these prompts as of an instant. An entry that is old enough is left to
// expire; one whose commit the log lacks cannot be shown; one that the session no longer lists is removed: later
// endings have displaced it.
func blockerViews(st *session.State, prompts []string, settledKeptFor time.Duration, now time.Time,
	src session.Source) ([]kv.View, error) {
	vs := make([]kv.View, 0, len(prompts))
	for _, id := range prompts {
		b, err := st.Blocker(id, src)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case b == nil:
			vs = append(vs, kv.View{Key: st.BlockerKey(id)})
			continue
		}
		ttl, gone := blockerTTL(b, settledKeptFor, now)
		if gone {
			continue
		}
		body, err := session.EncodeView(b)
		if err != nil {
			return nil, fmt.Errorf("view of prompt %s: %w", id, err)
		}
		vs = append(vs, kv.View{Key: st.BlockerKey(id), Value: body, TTL: ttl})
	}
	return vs, nil
}

// workView renders the harness's view: without a value when nothing is left to do, which removes the key.
func workView(st *session.State, src session.Source) (kv.View, error) {
	v := kv.View{Key: events.WorkKey(st.Ref())}
	w, err := st.Work(src)
	if err != nil || w == nil {
		return v, err
	}
	v.Value, err = session.EncodeView(w)
	if err != nil {
		return v, fmt.Errorf("work of %s: %w", st.Ref(), err)
	}
	return v, nil
}
