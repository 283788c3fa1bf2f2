package ledger

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// decideForgotten decides on the session as it was when it still listed a prompt that has since been displaced by later
// endings: so a late asker gets the prompt's state, too (P11). Nothing is appended: an ended prompt stays ended. For a
// prompt that never existed it returns the same refusal; that reads what is new since the last such request.
func (l *Ledger) decideForgotten(ctx context.Context, who whom, unknown error, decide decide) (session.Decision,
	error) {
	done, err := l.wholeReads.enter(ctx)
	if err != nil {
		return session.Decision{}, err
	}
	defer done()
	never, err := l.asked.Never(ctx, who.ref, who.prompt)
	switch {
	case err != nil:
		return session.Decision{}, fmt.Errorf("read %s: %w", who.ref, err)
	case never:
		return session.Decision{}, unknown
	}
	st, seen := session.New(who.ref), uint64(0)
	// just after its end
	var then *session.State
	err = l.bus.Log.Each(ctx, who.ref, 0, func(c events.Commit) error {
		st.Fold(&c)
		// one commit ends a prompt again whose answer is taken back after its turn
		if e, ended := st.Ended(session.EntityPrompt, who.prompt); ended && e.Seq != seen {
			then, seen = st.Clone(), e.Seq
		}
		return nil
	})
	switch {
	case err != nil:
		return session.Decision{}, fmt.Errorf("read %s: %w", who.ref, err)
	case then == nil:
		return session.Decision{}, unknown
	}
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return session.Decision{}, err
	}
	return decide(then, l.fold.commitSource(ctx, nil), now)
}

// promptOf returns the prompt that a fact requests, "" for another fact.
func promptOf(f events.Fact) string {
	if f, ok := f.(events.PromptRequested); ok {
		return f.Prompt
	}
	return ""
}
