package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// However a prompt is settled, Ask says so.
func TestAskReturnsEverySettlement(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	for _, c := range []struct {
		name string
		by   events.Writer
		fact func(prompt string) events.Fact
		want harness.Answer
	}{
		{"a rejection with its correction", events.WriterLedger, func(p string) events.Fact {
			return events.PromptRejected{Prompt: p, Text: "use tabs", By: "ada"}
		}, harness.Answer{Status: session.Rejected, Text: "use tabs", By: "ada"}},
		{"a dismissal", events.WriterLedger, func(p string) events.Fact {
			return events.PromptDismissed{Prompt: p, By: "ada"}
		},
			harness.Answer{Status: session.Dismissed, By: "ada"}},
		{"a deadline that passed", events.WriterReconciler, func(p string) events.Fact {
			return events.PromptExpired{Prompt: p, Reason: events.ReasonDeadline}
		},
			harness.Answer{Status: session.Expired, Reason: events.ReasonDeadline}},
		{"a message in its place", events.WriterCompaction, func(p string) events.Fact {
			return events.PromptSuperseded{Prompt: p, Message: "m9"}
		},
			harness.Answer{Status: session.Superseded, Reason: "m9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := "p-" + string(c.want.Status)
			out := ask(w.ctx, turn, harness.Prompt{ID: id, Questions: question()})
			w.awaiting("s", id)
			w.append("s", c.by, c.fact(id))
			if a := got(t, out); a.err != nil || fmt.Sprint(a.answer) != fmt.Sprint(c.want) {
				t.Fatalf("%+v, want %+v", a, c.want)
			}
			w.until("s", "the receipt", func(st *session.State) bool { return st.Prompts[id] == nil })
		})
	}
	t.Run("the end of its turn", func(t *testing.T) {
		out := ask(w.ctx, turn, harness.Prompt{ID: "p-end", Questions: question()})
		w.awaiting("s", "p-end")
		check(t, turn.Complete(w.ctx, ""))
		if a := got(t, out); a.err != nil || a.answer.Status != session.Withdrawn ||
			a.answer.Reason != events.ReasonTurnEnded {
			t.Fatalf("%+v", a)
		}
	})
	if n := w.state("s").Ignored.Count; n != 0 {
		t.Errorf("%d facts ignored", n)
	}
}

// The same id is one prompt; an answer is given for it once.
func TestAskAgain(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	p := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
	short, cancel := context.WithCancel(w.ctx)
	first := ask(short, turn, p)
	w.awaiting("s", "p1")
	cancel()
	if a := got(t, first); a.err == nil {
		t.Fatalf("%+v", a)
	}
	commits := w.state("s").Commits
	second, third := ask(w.ctx, turn, p), ask(w.ctx, turn, p)
	natstest.Until(t, "both to ask", func() bool { return harness.Asks(s, "p1") == 2 })
	// behind both in the queue
	check(t, s.Append(w.ctx, events.UsageReported{Turn: turn.ID(), Tokens: events.Tokens{Input: 1}}))
	if n := w.state("s").Commits; n != commits+1 {
		t.Errorf("asking again under an open id appended %d commits", n-commits-1)
	}
	w.mustAnswer("s", "p1", "red")
	for _, out := range []chan asked{second, third} {
		if a := got(t, out); a.err != nil || a.answer.Status != session.Answered {
			t.Fatalf("%+v", a)
		}
	}
	_, err := turn.Ask(w.ctx, p)
	wantErr(t, err, harness.ErrClosedID)

	// Another Ask that waited has the answer, too, after the first one has returned.
	p.ID = "p3"
	first = ask(w.ctx, turn, p)
	w.awaiting("s", "p3")
	release := harness.Mute(s)
	late := ask(w.ctx, turn, p)
	natstest.Until(t, "both to ask", func() bool { return harness.Asks(s, "p3") == 2 && harness.Waiting(s) == 1 })
	w.mustAnswer("s", "p3", "green")
	if a := got(t, first); a.err != nil {
		t.Fatal(a.err)
	}
	release()
	if a := got(t, late); a.err != nil || a.answer.Answers[0].Text != "green" {
		t.Fatalf("%+v", a)
	}

	// Settled while no call waited: the next Ask gets it, and only that one.
	short, cancel = context.WithCancel(w.ctx)
	out := ask(short, turn, harness.Prompt{ID: "p2", Questions: question()})
	w.awaiting("s", "p2")
	cancel()
	got(t, out)
	w.mustAnswer("s", "p2", "blue")
	a, err := turn.Ask(w.ctx, harness.Prompt{ID: "p2", Questions: question()})
	if err != nil || a.Answers[0].Text != "blue" {
		t.Fatalf("%+v %v", a, err)
	}
	_, err = turn.Ask(w.ctx, harness.Prompt{ID: "p2", Questions: question()})
	wantErr(t, err, harness.ErrClosedID)
}

// A permission's answer is no result of its call: the receipt is given at once, so that a crash while the tool runs
// does not make "once" the tool's output.
func TestAPermissionIsDeliveredBeforeItsCallEnds(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Kind: events.PromptPermission, Questions: question()})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "yes")
	if a := got(t, out); a.err != nil {
		t.Fatal(a.err)
	}
	st := w.until("s", "the receipt", func(st *session.State) bool { return st.Prompts["p1"] == nil })
	if st.Tools["c1"] == nil {
		t.Error("the call has ended")
	}
}

// A thousand questions wait in one process; each gets its own answer.
func TestManyAsks(t *testing.T) {
	const sessions, each = 20, 50
	w := newWorld(t)
	h := w.connect()
	outs := map[string]chan asked{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			id := fmt.Sprint("s", i)
			s, err := h.Open(w.ctx, id, harness.OpenOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			turn, err := s.StartTurn(w.ctx, harness.StartOptions{ID: "t", Content: "x"})
			if err != nil {
				t.Error(err)
				return
			}
			for j := range each {
				mu.Lock()
				outs[fmt.Sprint(id, "/p", j)] = ask(w.ctx, turn,
					harness.Prompt{ID: fmt.Sprint("p", j), Questions: question()})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		wg.Go(func() {
			id := fmt.Sprint("s", i)
			for j := range each {
				w.awaiting(id, fmt.Sprint("p", j))
				if err := w.answer(id, fmt.Sprint("p", j), fmt.Sprint(id, "/p", j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for name, out := range outs {
		if a := got(t, out); a.err != nil || len(a.answer.Answers) != 1 || a.answer.Answers[0].Text != name {
			t.Fatalf("%s got %+v", name, a)
		}
	}
}

// TestTheBufferIsBounded: facts that the process would have to keep without a limit are refused; the caller gets the
// error at once.
func TestTheBufferIsBounded(t *testing.T) {
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.BufferFactsMax, c.TTL = 3, time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	w.server.Shutdown()
	errs := make(chan error, 4)
	for i := range 4 {
		go func() {
			_, err := turn.Tool(w.ctx, harness.ToolOptions{ID: fmt.Sprint("c", i), Name: "bash"})
			errs <- err
		}()
	}
	select {
	case err := <-errs:
		wantErr(t, err, harness.ErrBufferFull)
	case <-time.After(patience):
		t.Fatal("no caller got the error of a full buffer")
	}
	w.back()
	for range 3 {
		check(t, <-errs)
	}
	if n := len(w.state("s").Tools); n != 3 {
		t.Errorf("%d calls are stored, want 3", n)
	}
	check(t, h.Close(w.ctx))
}

// TestChoice: what a person chose in a prompt with one question, and nothing for every other ending and form.
func TestChoice(t *testing.T) {
	one := func(text string, selected ...string) []events.Answer {
		return []events.Answer{{Question: "env", Selected: selected, Text: text}}
	}
	for _, x := range []struct {
		name   string
		answer harness.Answer
		want   string
	}{
		{"an option", harness.Answer{Status: session.Answered, Answers: one("", "staging")}, "staging"},
		{"a text", harness.Answer{Status: session.Answered, Answers: one("the old one")}, "the old one"},
		{"skipped", harness.Answer{Status: session.Answered, Answers: one("")}, ""},
		{"two options", harness.Answer{Status: session.Answered, Answers: one("", "a", "b")}, ""},
		{"two questions", harness.Answer{Status: session.Answered, Answers: append(one("a"), one("b")...)}, ""},
		{"no question", harness.Answer{Status: session.Answered}, ""},
		{"rejected", harness.Answer{Status: session.Rejected, Text: "no"}, ""},
		{"expired", harness.Answer{Status: session.Expired, Answers: one("a")}, ""},
	} {
		if got := x.answer.Choice(); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestChoiceOf: what a person chose for each question of a prompt with several.
func TestChoiceOf(t *testing.T) {
	a := harness.Answer{Status: session.Answered, Answers: []events.Answer{
		{Question: "env", Selected: []string{"staging"}}, {Question: "version", Text: "1.4"},
		{Question: "regions", Selected: []string{"eu", "us"}}, {Question: "skipped"}}}
	for question, want := range map[string]string{"env": "staging", "version": "1.4", "regions": "", "skipped": "",
		"unknown": ""} {
		if got := a.ChoiceOf(question); got != want {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
	if a.Status = session.Expired; a.ChoiceOf("env") != "" {
		t.Errorf("of a prompt that has expired: %q", a.ChoiceOf("env"))
	}
}

// TestAskRefusesWhatCannotBeEncoded: a question with a value that JSON does not have is not asked.
func TestAskRefusesWhatCannotBeEncoded(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	_, err := s.Ask(w.ctx, harness.Prompt{ID: "p1", Title: "go?", Native: func() {}})
	if unsupported, ok := errors.AsType[*json.UnsupportedTypeError](err); !ok || unsupported == nil {
		t.Errorf("got %v, want an error of encoding/json", err)
	}
	if st := w.state("s"); len(st.Prompts) > 0 {
		t.Errorf("it was asked: %+v", st.Prompts)
	}
}
