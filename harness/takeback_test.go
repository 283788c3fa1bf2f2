package harness_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// owed is a process with an open turn, in a session whose earlier process has asked p1 and died: the answer to p1
// becomes a message in the queue.
func (w *world) owed() (*harness.Session, *harness.Turn) {
	w.t.Helper()
	one := w.connect(pool)
	s := must[*harness.Session](w.t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	check(w.t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
		Questions: question(), Delivery: events.DeliverMessage, OnOwnerLoss: events.LossKeep}))
	w.orphanSilently("s")
	s = must[*harness.Session](w.t)(w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{}))
	return s, must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
}

// takeBack takes back the answer to p1, without a nudge.
func (w *world) takeBack() {
	w.t.Helper()
	w.silently("s", events.WriterCompaction, func(st *session.State) []events.Fact {
		message := st.QueuedAnswer("p1")
		if message == "" {
			w.t.Fatalf("no message has the answer: %+v", st.Prompts["p1"])
		}
		return []events.Fact{events.MessageWithdrawn{Message: message, By: "ada"}}
	})
}

// TestAnswerTakenBackBeforeItIsRead: the process knows of an answer, and a person has taken it back since. Ask waits
// for the next answer.
func TestAnswerTakenBackBeforeItIsRead(t *testing.T) {
	w := newWorld(t)
	s, turn := w.owed()
	w.mustAnswer("s", "p1", "blue")
	natstest.Until(t, "the answer to be read", func() bool {
		return s.State().Prompts["p1"].Status == session.Answered
	})
	w.takeBack()
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1"})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "green")
	if a := got(t, out); a.err != nil || a.answer.Choice() != "green" {
		t.Errorf("got %+v", a)
	}
}

// TestAnswerTakenBackDuringAnAsk: the answer and its withdrawal are stored while the request of an Ask is under way.
// The Ask reads both at once, and waits for the next answer.
func TestAnswerTakenBackDuringAnAsk(t *testing.T) {
	w := newWorld(t)
	s, turn := w.owed()
	release := harness.Mute(s)
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question(), Delivery: events.DeliverMessage,
		OnOwnerLoss: events.LossKeep})
	natstest.Until(t, "the request to wait", func() bool { return harness.Waiting(s) == 1 })
	w.answerSilently("s", "p1")
	w.takeBack()
	release()
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "green")
	if a := got(t, out); a.err != nil || a.answer.Choice() != "green" {
		t.Errorf("got %+v", a)
	}
}

// TestAnswerTakenBackAfterItsTurn: as TestAnswerTakenBackDuringAnAsk, but the turn that asked has ended since, so the
// prompt is withdrawn when the answer is taken back.
func TestAnswerTakenBackAfterItsTurn(t *testing.T) {
	w := newWorld(t)
	one := must[*harness.Session](t)(w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Turn](t)(one.StartTurn(w.ctx, harness.StartOptions{ID: "t0"}))
	p := events.PromptRequested{Prompt: "p1", Turn: "t0", PromptKind: events.PromptQuestion, Questions: question(),
		Delivery: events.DeliverMessage, OnOwnerLoss: events.LossKeep}
	check(t, one.Append(w.ctx, p))
	w.orphanSilently("s")
	s := must[*harness.Session](t)(w.connect(pool).Claim(w.ctx, "s"))
	release := harness.Mute(s)
	out := ask(w.ctx, s, harness.Prompt{ID: "p1", Questions: question(), Delivery: p.Delivery})
	natstest.Until(t, "the request to wait", func() bool { return harness.Waiting(s) == 1 })
	w.answerSilently("s", "p1")
	w.silently("s", events.WriterReconciler, func(*session.State) []events.Fact {
		return []events.Fact{events.TurnInterrupted{Turn: "t0", Reason: events.ReasonOwnerLost}}
	})
	w.takeBack()
	release()
	if a := got(t, out); a.err != nil || a.answer.Status != session.Withdrawn {
		t.Errorf("got %+v", a)
	}
}

// TestNoReceiptForTheNextAnswer: a person takes an answer back that the agent has, before its receipt is stored, and
// answers again. The turn completes without a receipt for the next answer, which waits for another turn.
func TestNoReceiptForTheNextAnswer(t *testing.T) {
	w := newWorld(t)
	s, turn := w.owed()
	w.mustAnswer("s", "p1", "blue")
	natstest.Until(t, "the answer to be read", func() bool {
		return s.State().Prompts["p1"].Status == session.Answered
	})
	release := harness.Mute(s)
	if a := must[harness.Answer](t)(s.Answer(w.ctx, "p1")); a.Choice() != "blue" {
		t.Fatalf("got %+v", a)
	}
	w.takeBack()
	w.mustAnswer("s", "p1", "green")
	next := w.state("s").Prompts["p1"].SettledSeq
	natstest.Until(t, "the next answer to be read", func() bool { return s.State().Prompts["p1"].SettledSeq == next })
	release()
	check(t, turn.Complete(w.ctx, ""))
	st := w.state("s")
	if st.QueuedAnswer("p1") == "" {
		t.Errorf("the answer that the agent does not have was received: %+v", st.Queue)
	}
}
