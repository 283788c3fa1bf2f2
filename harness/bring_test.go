package harness_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// bringer is an agent outside of the process that asks.
type bringer struct {
	calls chan harness.Answer // each call of Bring
	reply chan error          // what each call returns
}

func newBringer() *bringer {
	return &bringer{calls: make(chan harness.Answer, 9), reply: make(chan error, 9)}
}

// prompt is the question p1, whose settlement is brought to the agent.
func (b *bringer) prompt() harness.Prompt {
	return harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep,
		Bring: func(ctx context.Context, a harness.Answer) error {
			b.calls <- a
			select {
			case err := <-b.reply:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
}

// brought waits until Bring is called with a choice.
func (b *bringer) brought(t *testing.T, choice string) {
	t.Helper()
	if a := got(t, drain(b.calls)); a.answer.Choice() != choice {
		t.Fatalf("brought: %+v, want %s", a.answer, choice)
	}
}

// drain returns the next answer of a channel as [got] takes it.
func drain(calls chan harness.Answer) chan asked {
	out := make(chan asked, 1)
	go func() { out <- asked{answer: <-calls} }()
	return out
}

// received reports whether the log has a receipt for p1.
func (w *world) received() bool {
	st := w.state("s")
	c, carried := st.Carries("p1")
	return st.Prompts["p1"] == nil && (!carried || c.Had != 0)
}

// TestBring: the receipt follows the end of Bring, whether the decision comes while the Ask waits, or before.
func TestBring(t *testing.T) {
	for name, before := range map[string]bool{"while it asks": false, "before it asks": true} {
		for place := range newWorld(t).outsideOrInATurn() {
			t.Run(name+" "+place, func(t *testing.T) {
				w, b := newWorld(t), newBringer()
				s := must[*harness.Session](t)(w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{}))
				by := w.outsideOrInATurn()[place](s)
				f := events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion, Questions: question(),
					Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}
				if turn, ok := by.(*harness.Turn); ok {
					f.Turn = turn.ID()
				}
				check(t, s.Append(w.ctx, f))
				if before {
					w.mustAnswer("s", "p1", "red")
				}
				out := ask(w.ctx, by, b.prompt())
				if !before {
					w.mustAnswer("s", "p1", "red")
				}
				b.brought(t, "red")
				// a receipt would be before it
				check(t, s.Append(w.ctx, events.MessageAccepted{Message: "behind"}))
				if w.received() {
					t.Error("the log has a receipt, and the agent does not have the decision")
				}
				b.reply <- nil
				if a := got(t, out); a.err != nil || a.answer.Choice() != "red" {
					t.Errorf("Ask returned %+v", a)
				}
				natstest.Until(t, "the receipt", w.received)
			})
		}
	}
}

// TestBringFails: a decision that could not be brought has no receipt. The next Ask brings it.
func TestBringFails(t *testing.T) {
	w, b := newWorld(t), newBringer()
	s := must[*harness.Session](t)(w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	out := ask(w.ctx, turn, b.prompt())
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "red")
	broken := errors.New("the agent does not answer")
	b.brought(t, "red")
	b.reply <- broken
	if a := got(t, out); !errors.Is(a.err, broken) || a.answer.Status != "" {
		t.Errorf("Ask returned %+v", a)
	}
	check(t, s.Append(w.ctx, events.MessageAccepted{Message: "behind"}))
	if w.received() {
		t.Fatal("the log has a receipt for a decision that was not brought")
	}
	out = ask(w.ctx, turn, b.prompt())
	b.brought(t, "red")
	b.reply <- nil
	if a := got(t, out); a.err != nil || a.answer.Choice() != "red" {
		t.Errorf("the next Ask returned %+v", a)
	}
	natstest.Until(t, "the receipt", w.received)
}

// TestKilledWhileItBrings: a process dies in Bring. The next turn brings the decision.
func TestKilledWhileItBrings(t *testing.T) {
	for place := range newWorld(t).outsideOrInATurn() {
		t.Run(place, func(t *testing.T) {
			w, b := newWorld(t), newBringer()
			h := w.connect(pool)
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			ask(w.ctx, w.outsideOrInATurn()[place](s), b.prompt())
			w.awaiting("s", "p1")
			w.mustAnswer("s", "p1", "red")
			b.brought(t, "red")
			h.Abandon()
			w.orphan()
			if w.state("s").Turn != nil {
				w.append("s", events.WriterReconciler,
					events.TurnInterrupted{Turn: "t1", Reason: events.ReasonOwnerLost})
			}
			if w.received() {
				t.Error("the log has a receipt")
			}
			st := w.state("s")
			f, owed := st.Owed()
			// its next attempt brings what it could not
			if st.LastTurn != nil {
				f.Prompt, owed = st.LastTurn.Prompts[0].Prompt, st.LastTurn.Prompts[0].Had == 0
			}
			if !owed || f.Prompt != "p1" {
				t.Errorf("no turn brings the decision: %+v, %+v", f, st.LastTurn)
			}
		})
	}
}

// TestALeaseIsLostWhileItBrings: a process loses its lease in Bring and claims its session again. No turn is owed for
// the decision, and the receipt follows Bring.
func TestALeaseIsLostWhileItBrings(t *testing.T) {
	for place := range newWorld(t).outsideOrInATurn() {
		t.Run(place, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w, b := newWorld(t), newBringer()
			h := w.connect(pool, func(cfg *harness.Config) { cfg.TTL = 2 * time.Second })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			out := ask(w.ctx, w.outsideOrInATurn()[place](s), b.prompt())
			w.awaiting("s", "p1")
			w.mustAnswer("s", "p1", "red")
			b.brought(t, "red")
			w.dropLease(h)
			w.until("s", "the session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
			check(t, s.Regain(w.ctx))
			if f, owed := w.state("s").Owed(); owed || w.received() {
				t.Errorf("owed: %v, %+v; a receipt: %v", owed, f, w.received())
			}
			b.reply <- nil
			if a := got(t, out); a.err != nil || a.answer.Choice() != "red" {
				t.Errorf("Ask returned %+v", a)
			}
			natstest.Until(t, "the receipt", w.received)
			if n := len(b.calls); n != 0 {
				t.Errorf("it was brought %d times more", n)
			}
		})
	}
}

// TestTakenBackWhileItBrings: a person takes an answer back in Bring. No receipt is given for it, and the next answer
// is brought, too.
func TestTakenBackWhileItBrings(t *testing.T) {
	w, b := newWorld(t), newBringer()
	s, turn := w.owed()
	w.mustAnswer("s", "p1", "blue")
	natstest.Until(t, "the answer to be read", func() bool {
		return s.State().Prompts["p1"].Status == session.Answered
	})
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Bring: b.prompt().Bring})
	b.brought(t, "blue")
	w.takeBack()
	w.bus.Hints.Nudge(ref("s"), w.state("s").Seq)
	natstest.Until(t, "it to be read", func() bool { return s.State().Prompts["p1"].Status == session.Awaiting })
	b.reply <- nil
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "green")
	b.brought(t, "green")
	if w.received() {
		t.Error("the next answer has a receipt before it is brought")
	}
	b.reply <- nil
	if a := got(t, out); a.err != nil || a.answer.Choice() != "green" {
		t.Errorf("Ask returned %+v", a)
	}
	natstest.Until(t, "the receipt", w.received)
}

// TestNothingTakenBackIsBrought: an answer and its withdrawal are read at once. The next answer alone is brought.
func TestNothingTakenBackIsBrought(t *testing.T) {
	w, b := newWorld(t), newBringer()
	s, turn := w.owed()
	release := harness.Mute(s)
	p := b.prompt()
	p.Delivery = events.DeliverMessage
	out := ask(w.ctx, turn, p)
	natstest.Until(t, "the request to wait", func() bool { return harness.Waiting(s) == 1 })
	w.answerSilently("s", "p1")
	w.takeBack()
	release()
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "green")
	b.brought(t, "green")
	b.reply <- nil
	if a := got(t, out); a.err != nil || a.answer.Choice() != "green" {
		t.Errorf("Ask returned %+v", a)
	}
}
