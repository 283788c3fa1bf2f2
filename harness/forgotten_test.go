package harness_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAskedLongAgo: a person has answered, the call has ended with the answer, and so many calls have ended since that
// the state of the session has forgotten the answer. The process dies, and the next one runs the turn again. Ask
// returns the answer, and does not ask the person again; another question under the id gets no answer.
func TestAskedLongAgo(t *testing.T) {
	for _, calls := range []int{1, session.RecentMax} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			w := newWorld(t)
			h := w.connect()
			turn := w.begins(h)
			check(t, h.Ready(w.ctx))
			s := turn.Session()
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
			p := harness.Prompt{ID: "p1", Call: "c1", Questions: question(), OnOwnerLoss: events.LossKeep}
			check(t, got(t, w.answered(ask(w.ctx, turn, p), "p1")).err)
			check(t, s.Call("c1").Complete(w.ctx, "red"))
			for i := range calls {
				id := fmt.Sprint("read", i)
				must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: id, Name: "read"}))
				check(t, s.Call(id).Complete(w.ctx, "text"))
			}
			h.Abandon()
			next := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Turn: true}))
			p.Call = ""
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			settled := func(p harness.Prompt) asked {
				t.Helper()
				out := ask(ctx, next.OpenTurn(), p)
				natstest.Until(t, "the Ask to return, or the person to be asked", func() bool {
					return len(out) > 0 || w.state("s").BlockedBy() != ""
				})
				if b := w.state("s").BlockedBy(); b != "" {
					t.Fatalf("the person is asked %s again", b)
				}
				return <-out
			}
			if a := settled(others(p)["title"]); !errors.Is(a.err, harness.ErrNameTaken) {
				t.Errorf("another question: %+v", a)
			}
			if a := settled(p); a.err != nil || a.answer.Choice() != "red" {
				t.Errorf("got %+v", a)
			}
			if a := settled(p); !errors.Is(a.err, harness.ErrClosedID) {
				t.Errorf("once more in the same turn: %+v", a)
			}
		})
	}
}
