package harness_test

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestPoolKeepsASessionWithACallInTheBackground: the handler of a member of a pool returns, and leaves a call in the
// background to its process. The session stays with the process until the call has ended, also when Work ends.
func TestPoolKeepsASessionWithACallInTheBackground(t *testing.T) {
	for name, ends := range map[string]bool{"while Work runs": false, "at the end of Work": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(pool)
			w.released(h, "s")
			w.released(h, "marker")
			calls, marked := make(chan *harness.Call, 1), make(chan struct{}, 1)
			worker := harness.Worker{TurnsMax: 1, Turn: func(ctx context.Context, turn *harness.Turn) error {
				if turn.ID() == "t2" {
					marked <- struct{}{}
					return nil
				}
				call, err := turn.Tool(ctx, harness.ToolOptions{ID: "c1", Name: "build", Background: true})
				calls <- call
				return err
			}}
			stop := w.work(h, worker)
			w.request("s", "t1", "x")
			call := <-calls
			w.until("s", "the end of the turn", func(st *session.State) bool { return st.LastTurn != nil })
			// one at a time: Work has left the session alone
			w.request("marker", "t2", "x")
			<-marked
			if ends {
				check(t, stop())
			}
			if st := w.state("s"); !st.Owned || st.Tools["c1"] == nil {
				t.Fatalf("owned %t, its calls are %v", st.Owned, st.Tools)
			}
			check(t, call.Complete(w.ctx, "built"))
			if ends {
				w.work(h, worker)
			}
			w.until("s", "the session to be released", func(st *session.State) bool { return !st.Owned })
			if e, _ := w.state("s").Ended(session.EntityTool, "c1"); e.Outcome != session.OutcomeCompleted {
				t.Errorf("the call ended as %+v", e)
			}
		})
	}
}

// TestPoolKeepsASessionWithAnAsk: the handler of a member of a pool returns while another goroutine of the program asks
// outside of any turn. The question stays open, and the session with the process, until a person has answered, also
// when Work ends.
func TestPoolKeepsASessionWithAnAsk(t *testing.T) {
	for name, ends := range map[string]bool{"while Work runs": false, "at the end of Work": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(pool)
			w.released(h, "s")
			w.released(h, "marker")
			type answer struct {
				harness.Answer
				err error
			}
			answers, marked := make(chan answer, 1), make(chan struct{}, 1)
			worker := harness.Worker{TurnsMax: 1, Turn: func(ctx context.Context, turn *harness.Turn) error {
				switch turn.ID() {
				case "t2":
					marked <- struct{}{}
				case "t1":
					go func() {
						a, err := turn.Session().Ask(w.ctx, harness.Prompt{ID: "p1", Title: "Deploy?"})
						answers <- answer{a, err}
					}()
					w.until("s", "the question", func(st *session.State) bool { return st.Prompts["p1"] != nil })
				}
				return nil
			}}
			stop := w.work(h, worker)
			w.request("s", "t1", "x")
			w.until("s", "the end of the turn", func(st *session.State) bool { return st.LastTurn != nil })
			// one at a time: Work has left the session alone
			w.request("marker", "t2", "x")
			<-marked
			if ends {
				check(t, stop())
			}
			if st := w.state("s"); !st.Owned || st.Prompts["p1"] == nil {
				t.Fatalf("owned %t, its questions are %v", st.Owned, st.Prompts)
			}
			check(t, w.answer("s", "p1", "yes"))
			if a := <-answers; a.err != nil || a.Status != session.Answered {
				t.Errorf("the Ask returned %+v, want the answer", a)
			}
			if ends {
				w.work(h, worker)
			}
			w.until("s", "the session to be released", func(st *session.State) bool { return !st.Owned })
		})
	}
}
