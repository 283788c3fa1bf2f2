package harness_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// others are questions that differ from q in what a person sees.
func others(q harness.Prompt) map[string]harness.Prompt {
	kind, title, text, option := q, q, q, q
	kind.Kind = events.PromptPermission
	title.Title = "May I delete the database?"
	text.Questions = []events.Question{{ID: "q", Question: "Shall I delete it?"}}
	option.Questions = []events.Question{{ID: "q", Question: q.Questions[0].Question,
		Options: []events.Option{{Label: "red"}}}}
	return map[string]harness.Prompt{"kind": kind, "title": title, "text": text, "option": option}
}

// TestAnotherQuestionUnderTheID: an answer is about the question that was asked. An Ask with another question under the
// same id gets an error in its place, wherever the decision about the first one is found.
func TestAnotherQuestionUnderTheID(t *testing.T) {
	q := harness.Prompt{ID: "p1", Title: "May I make a copy?", Questions: question(), OnOwnerLoss: events.LossKeep}
	requested := events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion, Title: q.Title,
		Questions: q.Questions, Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}
	for name, c := range map[string]func(w *world, s *harness.Session) *harness.Turn{
		"open": func(w *world, s *harness.Session) *harness.Turn {
			ask(w.ctx, s.OpenTurn(), q)
			w.awaiting("s", "p1")
			return s.OpenTurn()
		},
		"answered": func(w *world, s *harness.Session) *harness.Turn {
			check(w.t, s.Append(w.ctx, requested))
			w.mustAnswer("s", "p1", "red")
			return s.OpenTurn()
		},
		"answered, of an earlier process": func(w *world, s *harness.Session) *harness.Turn {
			check(w.t, s.Append(w.ctx, requested))
			w.mustAnswer("s", "p1", "red")
			s = must[*harness.Session](w.t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Turn: true}))
			return s.OpenTurn()
		},
		"carried by the next attempt": func(w *world, s *harness.Session) *harness.Turn {
			check(w.t, got(w.t, w.answered(ask(w.ctx, s.OpenTurn(), q), "p1")).err)
			check(w.t, s.OpenTurn().Fail(w.ctx, events.Failure{Kind: "rate_limit"}, false))
			return must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2",
				Cause: events.CauseRetry, OfTurn: "t1", Prompts: []string{"p1"}}))
		},
		"carried, and displaced by other endings": func(w *world, s *harness.Session) *harness.Turn {
			check(w.t, got(w.t, w.answered(ask(w.ctx, s.OpenTurn(), q), "p1")).err)
			check(w.t, s.OpenTurn().Fail(w.ctx, events.Failure{Kind: "rate_limit"}, false))
			turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2",
				Cause: events.CauseRetry, OfTurn: "t1", Prompts: []string{"p1"}}))
			for i := range session.RecentMax {
				call := fmt.Sprint("c", i)
				check(w.t, s.Append(w.ctx, events.ToolStarted{Call: call, Turn: "t2", Name: "n"},
					events.ToolCompleted{Call: call}))
			}
			if _, listed := s.State().Ended(session.EntityPrompt, "p1"); listed {
				w.t.Error("the ending of the prompt is listed")
			}
			return turn
		},
		"delivered by an earlier process": func(w *world, s *harness.Session) *harness.Turn {
			check(w.t, got(w.t, w.answered(ask(w.ctx, s, q), "p1")).err)
			w.until("s", "the receipt", func(st *session.State) bool { return st.Prompts["p1"] == nil })
			s = must[*harness.Session](w.t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Turn: true}))
			return s.OpenTurn()
		},
	} {
		for what, other := range others(q) {
			t.Run(name+", "+what, func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
				must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
				turn := c(w, s)
				a, err := turn.Ask(w.ctx, other)
				if a.Status != "" {
					t.Errorf("another question got %+v", a)
				}
				wantErr(t, err, harness.ErrNameTaken)
				out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Title: q.Title, Questions: q.Questions,
					Deadline: time.Now().Add(time.Hour), NonBlocking: true, Native: "other"})
				if name == "open" {
					natstest.Until(t, "both to wait", func() bool { return harness.Asks(s, "p1") == 2 })
					w.mustAnswer("s", "p1", "red")
				}
				if a := got(t, out); a.err != nil || a.answer.Choice() != "red" {
					t.Errorf("the question that was asked got %+v", a)
				}
			})
		}
	}
}

// answered answers a prompt that is being asked.
func (w *world) answered(out chan asked, prompt string) chan asked {
	w.t.Helper()
	w.awaiting("s", prompt)
	w.mustAnswer("s", prompt, "red")
	return out
}

// TestAnotherQuestionWhereNoAskWaits: an Ask with another question under the id of an open prompt is refused, also if
// an earlier process asked it, or no Ask waits for it: a person who has seen it may be about to answer.
func TestAnotherQuestionWhereNoAskWaits(t *testing.T) {
	q := harness.Prompt{ID: "p1", Title: "May I make a copy?", Questions: question(), OnOwnerLoss: events.LossKeep}
	for name, c := range map[string]func(w *world, s *harness.Session) *harness.Session{
		"of an earlier process": func(w *world, s *harness.Session) *harness.Session {
			ask(w.ctx, s, q)
			w.awaiting("s", "p1")
			return must[*harness.Session](w.t)(w.connect().Claim(w.ctx, "s"))
		},
		"unattended": func(w *world, s *harness.Session) *harness.Session {
			short, releaseUnused := context.WithCancel(w.ctx)
			out := ask(short, s, q)
			w.awaiting("s", "p1")
			releaseUnused()
			wantErr(w.t, got(w.t, out).err, context.Canceled)
			w.until("s", "the prompt to be unattended", func(st *session.State) bool {
				return st.Prompts["p1"].Unattended
			})
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			s := c(w, must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{})))
			for what, other := range others(q) {
				if a := got(t, ask(w.ctx, s, other)); !errors.Is(a.err, harness.ErrNameTaken) {
					t.Errorf("%s: %+v", what, a)
				}
			}
			b, err := w.state("s").Blocker("p1", w.source)
			check(t, err)
			if b.Title != q.Title {
				t.Errorf("people see %q", b.Title)
			}
			out := ask(w.ctx, s, q)
			w.mustAnswer("s", "p1", "red")
			if a := got(t, out); a.err != nil || a.answer.Choice() != "red" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestAnotherQuestionAtTheSameTime: two Asks with different questions begin under one id before either is stored. One
// waits for its answer; the other is refused, and leaves the first alone.
func TestAnotherQuestionAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	q := harness.Prompt{ID: "p1", Title: "May I make a copy?", Questions: question(), OnOwnerLoss: events.LossKeep}
	release := harness.Mute(s)
	first := ask(w.ctx, s, q)
	natstest.Until(t, "the first Ask", func() bool { return harness.Waiting(s) == 1 })
	second := ask(w.ctx, s, others(q)["title"])
	natstest.Until(t, "the second Ask", func() bool { return harness.Waiting(s) == 2 })
	release()
	wantErr(t, got(t, second).err, harness.ErrNameTaken)
	if p := w.state("s").Prompts["p1"]; p.Unattended {
		t.Error("the question of the first Ask is unattended")
	}
	w.mustAnswer("s", "p1", "red")
	if a := got(t, first); a.err != nil || a.answer.Choice() != "red" {
		t.Errorf("%+v", a)
	}
}

// TestTheNewestQuestionCounts: the program requests an open prompt again with another question. An Ask with the first
// question is not attached to it: people see the other one.
func TestTheNewestQuestionCounts(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	q := harness.Prompt{ID: "p1", Title: "May I make a copy?", Questions: question(), OnOwnerLoss: events.LossKeep}
	first := ask(w.ctx, s, q)
	w.awaiting("s", "p1")
	check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
		Title: "May I remove it?", Questions: q.Questions, Delivery: events.DeliverCallback,
		OnOwnerLoss: events.LossKeep}))
	_, err := s.Ask(w.ctx, q)
	wantErr(t, err, harness.ErrNameTaken)
	w.mustAnswer("s", "p1", "red")
	check(t, got(t, first).err)
}

// TestTheSameQuestionNeedsNothingOfTheLog: an Ask that asks the open question of its own process again is attached to
// it although the log cannot be read.
func TestTheSameQuestionNeedsNothingOfTheLog(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	q := harness.Prompt{ID: "p1", Title: "Paint", Questions: question()}
	short, releaseUnused := context.WithCancel(w.ctx)
	first := ask(short, turn, q)
	natstest.Until(t, "the request to be acknowledged", func() bool { return harness.Shown(s, "p1") })
	releaseUnused()
	wantErr(t, got(t, first).err, context.Canceled)
	w.server.Shutdown()
	second := ask(w.ctx, turn, q)
	natstest.Until(t, "the Ask to wait", func() bool { return len(second) > 0 || harness.Asks(s, "p1") == 1 })
	w.back()
	w.mustAnswer("s", "p1", "red")
	if a := got(t, second); a.err != nil || a.answer.Choice() != "red" {
		t.Errorf("%+v", a)
	}
}

// TestAnotherQuestionHasNoReceipt: the lease is lost while a settled prompt waits for an Ask. An Ask with another
// question is refused then, too, and the claim of the session has no receipt for it.
func TestAnotherQuestionHasNoReceipt(t *testing.T) {
	w := newWorld(t)
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
		Title: "May I make a copy?", Questions: question(), Delivery: events.DeliverCallback,
		OnOwnerLoss: events.LossKeep}))
	w.mustAnswer("s", "p1", "red")
	natstest.Until(t, "the answer to be read", func() bool {
		return s.State().Prompts["p1"].Status == session.Answered
	})
	release := harness.Mute(s)
	w.dropLease(h)
	natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
	out := ask(w.ctx, s, harness.Prompt{ID: "p1", Title: "May I delete it?", Questions: question()})
	natstest.Until(t, "the Ask to wait, or to return", func() bool { return len(out) > 0 || harness.Waiting(s) == 1 })
	release()
	wantErr(t, got(t, out).err, harness.ErrNameTaken)
	w.until("s", "the claim", func(st *session.State) bool { return st.Epoch == 2 })
	check(t, s.Append(w.ctx, events.UsageReported{Model: "m"}))
	if w.state("s").Prompts["p1"] == nil {
		t.Error("the log says that the agent has the answer")
	}
}
