package harness_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAdoptedTurnThatCannotBeRead: a process adopts a turn, and the content of its message is not in the log any more.
// The process gets an error, and no handle of a turn without a request. It gives the session back, so that the turn is
// recovered.
func TestAdoptedTurnThatCannotBeRead(t *testing.T) {
	for name, take := range map[string]func(context.Context, *harness.Harness) (*harness.Session, error){
		"Open": func(ctx context.Context, h *harness.Harness) (*harness.Session, error) {
			return h.Open(ctx, "s", harness.OpenOptions{})
		},
		"Claim": func(ctx context.Context, h *harness.Harness) (*harness.Session, error) {
			return h.Claim(ctx, "s", harness.Adopt{Turn: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, s.Append(w.ctx, events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`)}))
			check(t, s.Append(w.ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"}))
			w.show("s")
			st := s.State()
			h := w.connect()
			check(t, w.bus.Log.PurgeSession(w.ctx, ref("s"), st.Seq))
			taken, err := take(w.ctx, h)
			if err == nil {
				t.Fatalf("the process owns %v", taken.State().Turn)
			}
			wantErr(t, err, bus.ErrNotFound)
			natstest.Until(t, "the session to be released", func() bool {
				cs, err := w.bus.Log.Read(w.ctx, ref("s"), st.Seq+1)
				check(t, err)
				for i := range cs {
					st.Fold(&cs[i])
				}
				return st.Left == session.LeftReleased
			})
		})
	}
}
