package harness_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestARetryAsksAgain (T13): an attempt that continues a turn is given the answer again whose call has ended, in the
// same process as in another one. A turn that continues nothing has to ask under a new id.
func TestARetryAsksAgain(t *testing.T) {
	for name, same := range map[string]bool{"the same process": true, "another process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx,
				harness.StartOptions{ID: "t1", Message: "m1", Content: "x"}))
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
			a := got(t, w.answered(ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Questions: question()}), "p1"))
			check(t, a.err)
			check(t, s.Call("c1").Complete(w.ctx, "red"))
			check(t, turn.Fail(w.ctx, events.Failure{Kind: "rate_limit"}, false))
			if !same {
				s = must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
			}
			next := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", OfTurn: "t1",
				Message: "m1", Cause: events.CauseRetry, Attempt: 2}))
			again, err := next.Ask(w.ctx, harness.Prompt{ID: "p1", Questions: question()})
			if check(t, err); again.Choice() != "red" {
				t.Errorf("asked again in the retry: %+v", again)
			}
			_, err = next.Ask(w.ctx, harness.Prompt{ID: "p1", Questions: question()})
			wantErr(t, err, harness.ErrClosedID)
			check(t, next.Complete(w.ctx, ""))
			fresh := must[*harness.Turn](t)(s.StartTurn(w.ctx,
				harness.StartOptions{ID: "t3", Message: "m2", Content: "y"}))
			_, err = fresh.Ask(w.ctx, harness.Prompt{ID: "p1", Questions: question()})
			wantErr(t, err, harness.ErrClosedID)
		})
	}
}
