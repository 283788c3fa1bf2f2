package acp

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// errOver says that a turn which was to be taken over has ended, or was stopped, meanwhile.
var errOver = errors.New("the turn has ended")

// takeOver continues in a session what people have decided for an earlier process, else what they are to decide. It
// returns the turn; nil: nothing is left. It can be called again after an error. If the turn ends meanwhile, it looks
// for the one in its place.
func (st *store) takeOver(ctx context.Context, r *record, s *harness.Session) (*harness.Turn, error) {
	for {
		in := Inherited{Session: r.id}
		doc := s.State()
		r.next = nextOf(doc, r.next)
		t := s.OpenTurn()
		var err error
		switch {
		case r.next != "":
			in.Turn = r.next
			t, err = st.beginNext(ctx, s, doc, &in)
		case t != nil:
			in.Turn = t.ID()
			err = st.readWaiting(ctx, r, t, doc, &in)
		default:
			return nil, nil
		}
		if errors.Is(err, errOver) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.turn, r.next = in.Turn, ""
		st.handOver(r, in)
		return t, nil
	}
}

// nextOf returns the turn that begins for decisions: the one that is requested, or the one that an earlier attempt has
// begun. It was not begun if it was stopped, or if another one has taken its place.
func nextOf(doc *fold.State, begun string) string {
	if p := doc.Pending.Turn; p != nil && p.Cause == events.CauseAnswer {
		return p.ID
	}
	if doc.Turn != nil && doc.Turn.ID == begun {
		return begun
	}
	return ""
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
func (st *store) beginNext(ctx context.Context, s *harness.Session, doc *fold.State,
	in *Inherited) (*harness.Turn, error) {
	t, err := s.StartTurn(ctx, harness.StartOptions{ID: in.Turn, Cause: events.CauseAnswer, Prompts: doc.Carry()})
	if errors.Is(err, harness.ErrClosedID) || errors.Is(err, harness.ErrStopped) {
		return nil, errOver
	}
	if err != nil {
		return nil, err
	}
	return t, in.read(ctx, t)
}

// readWaiting reads what the open turn of a document asks people, and the decisions that it brings to the agent.
func (st *store) readWaiting(ctx context.Context, r *record, t *harness.Turn, doc *fold.State, in *Inherited) error {
	s := t.Session()
	for id, p := range doc.Prompts {
		if p.Turn != in.Turn {
			continue
		}
		f, err := s.Requested(ctx, id)
		if errors.Is(err, harness.ErrUnknown) {
			// it has ended since
			continue
		}
		if err != nil {
			return err
		}
		in.Prompts = append(in.Prompts, f)
	}
	slices.SortFunc(in.Prompts, func(a, b events.PromptRequested) int {
		return doc.Prompts[a.Prompt].Since.Compare(doc.Prompts[b.Prompt].Since)
	})
	// without those about the prompts above: an Ask returns them
	if err := in.read(ctx, t); err != nil {
		return err
	}
	for _, f := range in.Prompts {
		r.prompts[f.Prompt] = f
		if f.Call != "" && doc.Tools[f.Call] != nil {
			r.calls[f.Call] = true
		}
	}
	return nil
}

// read reads the decisions that a turn brings to the agent. An error is errOver if the turn has ended.
func (in *Inherited) read(ctx context.Context, t *harness.Turn) (err error) {
	in.Decisions, err = t.Decisions(ctx)
	if err != nil && !errors.Is(err, harness.ErrUnknown) {
		return err
	}
	if now := t.Session().State().Turn; now == nil || now.ID != in.Turn {
		return errOver
	}
	return err
}

// beginsTurn reports whether an entry has the start of a turn: it takes the place of what an earlier process left.
func beginsTurn(e *entryOf) bool {
	return slices.ContainsFunc(e.facts, func(f events.Fact) bool {
		_, ok := f.(events.TurnStarted)
		return ok
	})
}
