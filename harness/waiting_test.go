package harness_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// kept has a process ask "one" of the call c1, "two" of no call, and "out" outside of any turn. It returns the turn.
func (w *world) kept() string {
	w.t.Helper()
	turn := w.begins(w.connect())
	must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c2", Name: "bash"}))
	must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c3", Name: "watch", Background: true}))
	for id, call := range map[string]string{"one": "c1", "two": "", "apart": "c3"} {
		p := left(id, call)
		p.Native = map[string]string{"n": id}
		ask(w.ctx, turn, p)
		w.awaiting("s", id)
	}
	ask(w.ctx, turn.Session(), left("out", ""))
	w.awaiting("s", "out")
	return turn.ID()
}

// TestAdoptedAsTheyWait: a process takes a session with all that waits for a person in its open turn, in one commit. It
// reads the questions, and gets the answers. Prompts outside of the turn, and calls without a prompt, are left.
func TestAdoptedAsTheyWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.kept()
	h := w.connect()
	before := w.state("s").Commits
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Waiting: true,
		Prompts: []harness.Prompt{{ID: "two", Native: "mine"}}}))
	st := w.state("s")
	if st.Commits != before+1 || st.Turn.Epoch != 2 || st.Prompts["one"].Epoch != 2 || st.Prompts["two"].Epoch != 2 ||
		st.Tools["c1"].Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("not adopted: %+v", st)
	}
	if st.Prompts["out"].Epoch != 1 || st.Prompts["apart"].Epoch != 1 || st.Tools["c2"].Epoch != 1 {
		t.Errorf("adopted: %+v", st)
	}
	turn := s.OpenTurn()
	if turn == nil || turn.ID() != id {
		t.Fatalf("the turn is %v", turn)
	}
	f, err := s.Requested(w.ctx, "one")
	if err != nil || f.Call != "c1" || len(f.Questions) != 1 || string(f.Native) != `{"n":"one"}` {
		t.Errorf("%+v %v", f, err)
	}
	// it is named
	if f, err = s.Requested(w.ctx, "two"); err != nil || string(f.Native) != `"mine"` {
		t.Errorf("%+v %v", f, err)
	}
	_, err = s.Requested(w.ctx, "never")
	wantErr(t, err, harness.ErrUnknown)
	out := ask(w.ctx, turn, harness.Prompt{ID: "one"})
	w.mustAnswer("s", "one", "red")
	if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Errorf("%+v", a)
	}
}

// TestNothingWaitsAnyMore: all that waited in the turn is decided, and another turn is requested for the decisions. A
// claim does not adopt the turn that the other one replaces. A session without a turn has nothing to adopt.
// Nor has one whose only decision has not called for a turn yet.
func TestNothingWaitsAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	turn := w.begins(w.connect())
	ask(w.ctx, turn, harness.Prompt{ID: "one", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "one")
	ask(w.ctx, turn, harness.Prompt{ID: "two", Questions: question(), OnOwnerLoss: events.LossKeep, NonBlocking: true})
	w.awaiting("s", "two")
	w.orphan()
	w.mustAnswer("s", "one", "red")
	w.until("s", "the turn to be requested", func(st *session.State) bool { return st.Pending.Turn != nil })
	s := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Waiting: true}))
	if st := w.state("s"); st.Turn == nil || st.Turn.Epoch != 1 || st.Prompts["two"].Epoch != 1 || s.OpenTurn() != nil {
		t.Errorf("adopted: %+v", st)
	}
	s = must[*harness.Session](t)(w.connect().Open(w.ctx, "empty", harness.OpenOptions{}))
	ask(w.ctx, s, left("out", ""))
	w.awaiting("empty", "out")
	s = must[*harness.Session](t)(w.connect().Claim(w.ctx, "empty", harness.Adopt{Waiting: true}))
	if st := w.state("empty"); s.OpenTurn() != nil || st.Prompts["out"].Epoch != 1 {
		t.Errorf("adopted: %+v", st)
	}
	w = newWorld(t)
	ask(w.ctx, w.begins(w.connect()), harness.Prompt{ID: "one", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "one")
	w.orphan()
	w.append("s", events.WriterLedger, events.PromptDismissed{Prompt: "one"})
	must[*harness.Session](t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Waiting: true}))
	if st := w.state("s"); st.Turn == nil || st.Turn.Epoch != 1 {
		t.Errorf("adopted: %+v", st)
	}
}
