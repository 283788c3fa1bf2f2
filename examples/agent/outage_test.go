package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestOutage: the broker is away for longer than the agent's lease lives, while the agent waits for a permission. The
// same turn continues with the answer, and the model gets no request twice.
func TestOutage(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	const away = 17 * time.Second
	w := newWorld(t)
	w.script.Reply = painter
	w.ttl = ttlChosen
	leave := w.agent("paint it")
	may := func(st *session.State) bool { return len(st.PendingPrompts()) == 1 }
	before := w.until("the permission", may)
	w.server.Shutdown()
	<-time.After(away)
	w.server = natstest.Restart(t, w.server)
	again := w.until("the agent to have its session again",
		func(st *session.State) bool { return st.Epoch > before.Epoch })
	if !slices.Equal(again.PendingPrompts(), before.PendingPrompts()) || again.Turn == nil ||
		again.Turn.ID != before.Turn.ID {
		t.Errorf("before %+v, %v; after %+v, %v", before.Turn, before.PendingPrompts(), again.Turn,
			again.PendingPrompts())
	}
	st := w.permit(settled)
	if st.LastTurn.ID != before.Turn.ID || st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 {
		t.Errorf("last turn %+v, ignored %+v", st.LastTurn, st.Ignored.Last)
	}
	facts := w.facts()
	for kind, want := range map[events.Kind]int{"turn.started": 2, "prompt.requested": 2, "prompt.answered": 1,
		"tool.completed": 1, "turn.failed": 0,
		"turn.interrupted": 0, "tool.interrupted": 0, "prompt.expired": 0, "prompt.withdrawn": 0,
		"session.orphaned": 0} {
		// A session that is claimed again has one more claim.
		if n := count(facts, string(kind)); n != want {
			t.Errorf("%d × %s, want %d", n, kind, want)
		}
	}
	if n := strings.Count(w.read("ran"), "paint it"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if n := len(w.script.Requests()); n != 2 {
		t.Errorf("the model got %d requests, want 2", n)
	}
	// before the broker ends
	leave()
	for _, stop := range w.stops {
		stop()
	}
}
