package harness_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestALostNudgeOfAClose: a person closes a session while an Ask waits in it, and the nudge is lost. The process learns
// of it all the same, also in a pool, whose members do not follow the log.
func TestALostNudgeOfAClose(t *testing.T) {
	for name, pool := range map[string]bool{"exclusive": false, "pool": true} {
		t.Run(name, func(t *testing.T) {
			// it waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(func(c *harness.Config) { c.Pool = pool })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
			w.awaiting("s", "p1")
			w.silently("s", events.WriterLedger, func(*session.State) []events.Fact {
				return []events.Fact{events.SessionClosed{Reason: "finished", By: "ada"}}
			})
			select {
			case a := <-out:
				if a.err != nil || a.answer.Status != session.Withdrawn {
					t.Errorf("the Ask returned %+v, %v", a.answer, a.err)
				}
			case <-time.After(2 * harness.ReadAgain):
				t.Error("the Ask waits in a session that is closed")
			}
			if turn.Context().Err() == nil {
				t.Error("the context of the turn has not ended")
			}
		})
	}
}
