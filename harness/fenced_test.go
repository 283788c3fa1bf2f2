package harness_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// endedByItsAnswer has a process ask in the call c1, and has a service answer the question and end the call with the
// answer, which the process does not read.
func (w *world) endedByItsAnswer() *harness.Session {
	w.t.Helper()
	s := must[*harness.Session](w.t)(w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	check(w.t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1",
		PromptKind: events.PromptQuestion, Questions: question(), Delivery: events.DeliverToolResult,
		OnOwnerLoss: events.LossKeep}))
	return s
}

func (w *world) endsCallSilently() {
	w.t.Helper()
	w.answerSilently("s", "p1")
	w.silently("s", events.WriterReconciler, func(*session.State) []events.Fact {
		return []events.Fact{events.ToolCompleted{Call: "c1", Synthetic: true,
			Output: json.RawMessage(`{"answers":[{"question":"q","text":"red"}]}`)}}
	})
}

// TestNoResultForAFencedProcess (R6): the log has the end of a call, which is a person's answer, and the fence. The
// process that was fenced does not get it, in both orders.
func TestNoResultForAFencedProcess(t *testing.T) {
	for name, fencedFirst := range map[string]bool{"answered, then fenced": false, "fenced, then answered": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.endedByItsAnswer()
			if fencedFirst {
				w.orphanSilently("s")
			}
			w.endsCallSilently()
			if !fencedFirst {
				w.orphanSilently("s")
			}
			r, err := s.Result(w.ctx, "c1")
			if r.Output != nil {
				t.Errorf("a fenced process got %s", r.Output)
			}
			wantErr(t, err, harness.ErrFenced)
		})
	}
}

// TestNoResultWithAnOverdueLease (R6): a process whose lease is overdue by its own clock gets the end of a call only
// when the session is its own again.
func TestNoResultWithAnOverdueLease(t *testing.T) {
	w := newWorld(t)
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	check(t, call.Complete(w.ctx, "red"))
	lose, overdue, err := harness.Unkept(w.ctx, h, time.Second)
	check(t, err)
	natstest.Until(t, "the lease to be overdue", overdue)
	short, cancel := short(w.ctx)
	defer cancel()
	_, err = s.Result(short, "c1")
	wantErr(t, err, context.DeadlineExceeded)
	lose()
	if r := must[harness.Result](t)(s.Result(w.ctx, "c1")); string(r.Output) != `"red"` || s.State().Epoch != 2 {
		t.Errorf("got %s under epoch %d", r.Output, s.State().Epoch)
	}
}

// bringsAnAnswer leaves a requested turn, which brings the answer to the question p1 of a turn whose process died.
func (w *world) bringsAnAnswer(delivery events.Delivery) {
	w.t.Helper()
	one := w.connect(pool)
	s := must[*harness.Session](w.t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	check(w.t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
		Questions: question(), Delivery: delivery, OnOwnerLoss: events.LossKeep}))
	w.orphanSilently("s")
	w.mustAnswer("s", "p1", "red")
	w.show("s")
}

// losses are the ways in which a process loses a session, or cannot know that it has it.
var losses = map[string]func(w *world, h *harness.Harness, s *harness.Session){
	"fenced": func(w *world, _ *harness.Harness, s *harness.Session) {
		w.bus.Hints.Nudge(ref("s"), w.orphanSilently("s"))
		wantErr(w.t, ended(w.t, s.Context()), harness.ErrFenced)
	},
	"lease overdue": func(w *world, h *harness.Harness, _ *harness.Session) {
		_, overdue, err := harness.Unkept(w.ctx, h, time.Second)
		check(w.t, err)
		natstest.Until(w.t, "the lease to be overdue", overdue)
	},
}

// TestNoCarriedAnswerForAFencedProcess (R6): a handler has a turn that brings an answer, and looks at it after the
// session was taken from its process: the request names the decision, and says nothing of it.
func TestNoCarriedAnswerForAFencedProcess(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.bringsAnAnswer(events.DeliverCallback)
			h := w.connect(pool)
			check(t, h.Ready(w.ctx))
			lost, out := make(chan struct{}), make(chan [2]session.TurnPrompt, 1)
			turns := make(chan *harness.Turn, 1)
			w.work(h, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
				before := t.Request().Prompts[0]
				turns <- t
				<-lost
				out <- [2]session.TurnPrompt{before, t.Request().Prompts[0]}
				return nil
			}})
			turn := <-turns
			lose(w, h, turn.Session())
			close(lost)
			got := <-out
			if p := got[0]; len(p.Answers) != 1 || p.Answers[0].Text != "red" || p.Omitted {
				t.Errorf("while the process owns the session: %+v", p)
			}
			if p := got[1]; p.Answers != nil || p.Text != "" || p.Status != "" || p.By != "" || !p.Omitted ||
				p.Prompt != "p1" || p.Seq == 0 {
				t.Errorf("after that: %+v", p)
			}
		})
	}
}

// TestNoCarriedAnswerForOptions (R6): Worker.Options is asked before the session is this process's. It sees which
// decisions the turn brings, and nothing of them.
func TestNoCarriedAnswerForOptions(t *testing.T) {
	w := newWorld(t)
	w.bringsAnAnswer(events.DeliverCallback)
	h := w.connect(pool)
	check(t, h.Ready(w.ctx))
	seen, ran := make(chan session.WorkTurn, 9), make(chan session.WorkTurn, 9)
	w.work(h, harness.Worker{
		Options: func(_ *harness.Session, t session.WorkTurn) any { seen <- t; return nil },
		Turn:    func(_ context.Context, t *harness.Turn) error { ran <- t.Request(); return nil },
	})
	if p := (<-seen).Prompts[0]; p.Answers != nil || !p.Omitted || p.Prompt != "p1" {
		t.Errorf("Options was given %+v", p)
	}
	if p := (<-ran).Prompts[0]; len(p.Answers) != 1 || p.Omitted {
		t.Errorf("the turn was given %+v", p)
	}
}

// TestNoAnswerMessageForAFencedProcess (R6): the answer that a turn brings is the content of its message. The handler
// reads the content while its process owns the session, and not after that. Worker.Options, which is asked before the
// session is taken, does not see it.
func TestNoAnswerMessageForAFencedProcess(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.bringsAnAnswer(events.DeliverMessage)
			h := w.connect(pool)
			check(t, h.Ready(w.ctx))
			lost, out, turns := make(chan struct{}), make(chan [5]string, 1), make(chan *harness.Turn, 1)
			options := make(chan string, 9)
			read := func(t *harness.Turn) string {
				short, cancel := short(w.ctx)
				defer cancel()
				content, err := t.Content(short)
				if err != nil {
					return err.Error()
				}
				return string(content)
			}
			w.work(h, harness.Worker{
				Options: func(_ *harness.Session, t session.WorkTurn) any { options <- string(t.Content); return nil },
				Turn: func(_ context.Context, t *harness.Turn) error {
					request, content := string(t.Request().Content), read(t)
					turns <- t
					<-lost
					out <- [5]string{request, content, string(t.Request().Content), read(t), t.Request().Message}
					return nil
				}})
			turn := <-turns
			lose(w, h, turn.Session())
			close(lost)
			if c := <-options; c != "" {
				t.Errorf("Options was given %s", c)
			}
			got := <-out
			if !strings.Contains(got[0], "red") || !strings.Contains(got[1], "red") {
				t.Errorf("while the process owns the session: request %s, content %s", got[0], got[1])
			}
			if got[2] != "" || strings.Contains(got[3], "red") || got[4] == "" {
				t.Errorf("after that: request %s, content %s, message %s", got[2], got[3], got[4])
			}
		})
	}
}
