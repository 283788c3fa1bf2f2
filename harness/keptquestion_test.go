package harness_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/service"
)

// TestAReleaseKeepsAQuestionToKeep (R16): a handler asks outside of its turn, gives up at its deadline, and returns.
// In a pool Work then releases the session. The question is to be kept, so it stays open, and its answer reaches the
// agent by a turn.
func TestAReleaseKeepsAQuestionToKeep(t *testing.T) {
	for name, change := range map[string]func(*harness.Config){"exclusive": func(*harness.Config) {}, "pool": pool} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.connect(change)
			w.released(h, "s")
			service.Run(t, w.bus)
			brought := make(chan []session.TurnPrompt, 9)
			w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
				if turn.ID() != "t1" {
					brought <- turn.Request().Prompts
					return nil
				}
				soon, cancel := short(ctx)
				defer cancel()
				_, err := turn.Session().Ask(soon, harness.Prompt{ID: "p1", Questions: question(),
					OnOwnerLoss: events.LossKeep})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				return nil
			}})
			w.request("s", "t1", "x")
			w.until("s", "the end of the turn", func(st *session.State) bool {
				return st.LastTurn != nil && (name != "pool" || !st.Owned)
			})
			w.mustAnswer("s", "p1", "red")
			select {
			case ps := <-brought:
				if len(ps) != 1 || ps[0].Prompt != "p1" || ps[0].Answers[0].Text != "red" {
					t.Errorf("the turn brings %+v", ps)
				}
			case <-w.ctx.Done():
				t.Fatal("the answer reaches no turn")
			}
		})
	}
}

// TestACloseKeepsAQuestionToKeep (R16): a process that leaves in order keeps what one that is killed keeps. The answer
// reaches the next process. A question without `keep` is withdrawn.
func TestACloseKeepsAQuestionToKeep(t *testing.T) {
	for name, leave := range map[string]func(w *world, h *harness.Harness){
		"killed": func(w *world, h *harness.Harness) { h.Abandon(); w.orphanSilently("s") },
		"closed": func(w *world, h *harness.Harness) { check(w.t, h.Close(w.ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			keep := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			out := ask(w.ctx, turn, keep)
			w.awaiting("s", "p1")
			ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question()})
			w.awaiting("s", "p2")
			leave(w, h)
			if a := got(t, out); a.err == nil {
				t.Errorf("the Ask of the process that left returned %+v", a.answer)
			}
			if e, _ := w.state("s").Ended(session.EntityPrompt, "p2"); name == "closed" &&
				(e.Outcome != string(session.Withdrawn) || e.Reason != events.ReasonShutdown) {
				t.Errorf("the question without keep: %+v", e)
			}
			w.mustAnswer("s", "p1", "red")
			next := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			a, err := next.Ask(w.ctx, keep)
			if err != nil || a.Answers[0].Text != "red" {
				t.Errorf("the next process asks: %+v, %v", a, err)
			}
		})
	}
}

// TestReleaseWithdrawsAQuestionThatIsBeingStored: a process releases a session while the broker has not confirmed one
// of its questions yet. The question is withdrawn with the release, and not left to recovery.
func TestReleaseWithdrawsAQuestionThatIsBeingStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var l stall
	h := w.connect(func(c *harness.Config) {
		c.URL = through(t, w.server.URL(), func(to io.Writer) io.Writer { return stalled{to, &l} })
	})
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	held, on := l.at(`"prompt":"p1"`)
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	<-held
	released := make(chan error, 1)
	go func() { released <- s.Release(w.ctx, "done") }()
	natstest.Until(t, "the release to wait for its turn", func() bool { return harness.Waiting(s) > 0 })
	close(on)
	check(t, <-released)
	if a := got(t, out); a.err == nil && a.answer.Status != session.Withdrawn {
		t.Errorf("the Ask returned %+v", a.answer)
	}
	e, _ := w.state("s").Ended(session.EntityPrompt, "p1")
	if e.Outcome != string(session.Withdrawn) || e.Reason != events.ReasonShutdown {
		t.Errorf("the question: %+v", e)
	}
}
