package acp

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// takeOver continues in a session what people have decided for an earlier process, else what they are to decide. It
// returns the turn; nil: nothing is left. It can be called again after an error.
func (st *store) takeOver(ctx context.Context, r *record, s *harness.Session) (*harness.Turn, error) {
	in := Inherited{Session: r.id}
	doc := s.State()
	if p := doc.Pending.Turn; p != nil && p.Cause == events.CauseAnswer {
		r.next = p.ID
	}
	t := s.OpenTurn()
	var err error
	switch {
	case r.next != "":
		t, err = st.beginNext(ctx, r, s, &in)
	case t != nil:
		in.Turn = t.ID()
		err = st.readWaiting(ctx, r, t, &in)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.turn, r.next = in.Turn, ""
	st.handOver(r, in)
	return t, nil
}

// handOver hands what was taken over to the loop. Until the loop has it, the proxy knows neither its prompts nor its
// turn.
func (st *store) handOver(r *record, in Inherited) {
	st.mu.Lock()
	r.handing++
	st.mu.Unlock()
	st.working.Go(func() {
		select {
		case st.inherited <- in:
		case <-st.ctx.Done():
			return
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		if r.handing--; r.handing == 0 {
			for _, wait := range r.later {
				go wait()
			}
			r.later = nil
		}
	})
}

// begin has a goroutine wait for news of a session: as soon as the loop has what was taken over in it.
func (st *store) begin(r *record, wait func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if r.handing > 0 {
		r.later = append(r.later, wait)
		return
	}
	go wait()
}

// beginNext begins the turn that was requested for decisions. A turn that this process has begun is not begun again.
func (st *store) beginNext(ctx context.Context, r *record, s *harness.Session,
	in *Inherited) (*harness.Turn, error) {
	doc := s.State()
	t, err := s.StartTurn(ctx, harness.StartOptions{ID: r.next, Cause: events.CauseAnswer, Prompts: doc.Carry()})
	if err != nil {
		return nil, err
	}
	in.Turn = t.ID()
	in.Decisions, err = t.Decisions(ctx)
	return t, err
}

// readWaiting reads what the open turn asks people, and the decisions that it brings to the agent.
func (st *store) readWaiting(ctx context.Context, r *record, t *harness.Turn, in *Inherited) error {
	s := t.Session()
	doc := s.State()
	var ids []string
	for id, p := range doc.Prompts {
		if p.Turn != in.Turn {
			continue
		}
		f, err := s.Requested(ctx, id)
		if err != nil {
			return err
		}
		r.prompts[id] = f
		ids = append(ids, id)
		if f.Call != "" && doc.Tools[f.Call] != nil {
			r.calls[f.Call] = true
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return doc.Prompts[a].Since.Compare(doc.Prompts[b].Since) })
	for _, id := range ids {
		in.Prompts = append(in.Prompts, r.prompts[id])
	}
	// without those about the prompts above: an Ask returns them
	var err error
	in.Decisions, err = t.Decisions(ctx)
	return err
}

// beginsTurn reports whether an entry has the start of a turn: it takes the place of what an earlier process left.
func beginsTurn(e *entryOf) bool {
	return slices.ContainsFunc(e.facts, func(f events.Fact) bool {
		_, ok := f.(events.TurnStarted)
		return ok
	})
}
