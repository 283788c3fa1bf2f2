package acp

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// next returns the store of the next process, on the same broker.
func (s *stored) next() *stored {
	s.t.Helper()
	st := newStore(s.cfg, patience, func(text string) { s.t.Log(text) })
	next := &stored{st, s.t, s.bus, s.srv}
	next.connects()
	return next
}

// leaves has a process leave a session in which "p1" and a question of a call wait in a turn.
func leaves(t *testing.T, more ...events.Fact) *stored {
	t.Helper()
	s := newStored(t)
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	question := events.PromptRequested{Prompt: "p2", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion,
		Questions: []events.Question{{ID: "q1", Question: "Which?", Custom: true}},
		Delivery:  events.DeliverToolResult, OnOwnerLoss: events.LossKeep}
	s.opens("s1", starts("t1")...)
	s.adds("s1", permission("p1", "t1"))
	s.adds("s1", events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask"}, question)
	if len(more) > 0 {
		s.adds("s1", more...)
	}
	s.leave(patience, "")
	return s.next()
}

// takes appends the step of an editor that opens the session.
func (s *stored) takes(id string) {
	s.append(&Step{Session: id, Open: &events.SessionOpened{}, Inherit: true})
}

// given returns what the store took over.
func (s *stored) given() Inherited {
	s.t.Helper()
	select {
	case in := <-s.inherited:
		return in
	case <-time.After(patience):
		s.t.Fatal("nothing is taken over")
		return Inherited{}
	}
}

// TestTakesOver: the next process has what waits for people, in its order, and gets the decisions. A call ends with the
// answer to its question.
func TestTakesOver(t *testing.T) {
	t.Parallel()
	// outside of any turn: a turn is requested for its decision
	s := leaves(t, permission("out", ""))
	s.takes("s1")
	in := s.given()
	if in.Session != "s1" || in.Turn != "t1" || len(in.Prompts) != 2 || in.Prompts[0].Prompt != "p1" ||
		in.Prompts[1].Call != "c1" || len(in.Prompts[1].Questions) != 1 || len(in.Decisions) != 0 {
		t.Fatalf("%+v", in)
	}
	s.adds("s1", events.PromptAnswered{Prompt: "p2", By: byEditor,
		Answers: []events.Answer{{Question: "q1", Text: "this"}}})
	if d := s.decides(); d.prompt != "p2" || d.err != nil || d.answer.Answers[0].Text != "this" {
		t.Errorf("%+v", d)
	}
	s.adds("s1", events.ToolCompleted{Call: "c1"})
	s.adds("s1", answered("p1"))
	if d := s.decides(); d.prompt != "p1" || d.err != nil || d.answer.Status != fold.Answered {
		t.Errorf("%+v", d)
	}
	s.adds("s1", events.TurnCompleted{Turn: "t1", Finish: "end_turn"})
	s.until("s1", "the end of the turn", func(st *fold.State) bool {
		return st.Turn == nil && st.LastTurn.Outcome == fold.OutcomeCompleted && len(st.Prompts) == 1 &&
			st.Pending.Turn == nil && st.Ignored.Count == 0
	})
}

// person has a person decide about a prompt, as the ledger writes it.
func (s *stored) person(id, prompt string, answers ...events.Answer) {
	s.t.Helper()
	st := s.state(id)
	facts := []events.Fact{events.PromptAnswered{Prompt: prompt, By: "ada", Answers: answers, Owed: true}}
	facts = append(facts, st.Settlement(prompt, fold.Answered, nil, answers, "")...)
	s.writes(events.WriterLedger, events.PersonSource("ada"), st, facts...)
}

func (s *stored) writes(by events.Writer, source string, st *fold.State, facts ...events.Fact) {
	s.t.Helper()
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(s.bus.NewID(), source, st.Ref(), st.Epoch, time.Now(), f)
	}
	if _, err := s.bus.Log.Append(s.t.Context(), st.Ref(), by, st.Seq, evs); err != nil {
		s.t.Fatal(err)
	}
}

// TestTakesDecisionsOver: a person has decided before the next process is there. With all decided the process takes the
// turn that was requested. With one question open it continues the turn, and knows what was decided.
func TestTakesDecisionsOver(t *testing.T) {
	t.Parallel()
	allowed := events.Answer{Question: events.PermissionQuestion, Selected: []string{"yes"}}
	s := leaves(t)
	s.person("s1", "p2", events.Answer{Question: "q1", Text: "this"})
	s.takes("s1")
	in := s.given()
	if in.Turn != "t1" || len(in.Prompts) != 1 || in.Prompts[0].Prompt != "p1" || len(in.Decisions) != 1 ||
		in.Decisions[0].Prompt != "p2" || in.Decisions[0].Answers[0].Text != "this" {
		t.Fatalf("%+v", in)
	}
	// it has no call, so an Ask returns the decision
	s = leaves(t)
	s.person("s1", "p1", allowed)
	s.takes("s1")
	if in = s.given(); len(in.Prompts) != 2 || len(in.Decisions) != 0 {
		t.Errorf("%+v", in)
	}
	if d := s.decides(); d.prompt != "p1" || d.err != nil || d.answer.By != "ada" {
		t.Errorf("%+v", d)
	}
	s = leaves(t)
	s.person("s1", "p2", events.Answer{Question: "q1", Text: "this"})
	s.person("s1", "p1", allowed)
	s.takes("s1")
	in = s.given()
	if in.Turn == "t1" || len(in.Prompts) != 0 || len(in.Decisions) != 2 {
		t.Fatalf("%+v", in)
	}
	if st := s.state("s1"); st.Turn == nil || st.Turn.ID != in.Turn || st.Turn.Cause != events.CauseAnswer ||
		st.Pending.Turn != nil {
		t.Errorf("%+v", st)
	}
	s.adds("s1", events.TurnCompleted{Turn: in.Turn})
	if st := s.state("s1"); st.LastTurn.Outcome != fold.OutcomeCompleted || st.Pending.Turn != nil ||
		st.Ignored.Count != 0 {
		t.Errorf("%+v", st)
	}
}

// TestTakesNothingOver: a message of the editor has begun a turn, or nothing was left. A session that this process has,
// or takes without its editor, has nothing that it does not know.
func TestTakesNothingOver(t *testing.T) {
	t.Parallel()
	nothing := func(s *stored) {
		t.Helper()
		s.until("s1", "no turn of another process", func(st *fold.State) bool {
			return st.Owned && (st.Turn == nil || st.Turn.ID == "t2")
		})
		select {
		case in := <-s.inherited:
			t.Errorf("taken over: %+v", in)
		case <-time.After(100 * time.Millisecond):
		}
	}
	s := leaves(t)
	s.append(&Step{Session: "s1", Open: &events.SessionOpened{}, Inherit: true, Facts: starts("t2")})
	nothing(s)
	// it is stored later, with the turn behind it
	s = leaves(t)
	late := &stored{newStore(s.cfg, time.Millisecond, func(string) {}), t, s.bus, s.srv}
	late.takes("s1")
	late.adds("s1", starts("t2")...)
	late.connects()
	nothing(late)
	// a person resumes the session: holdfast acp run does that
	s = newStored(t)
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.opens("s1", starts("t1")...)
	s.adds("s1", events.TurnCompleted{Turn: "t1"})
	s.leave(patience, "")
	s.writes(events.WriterRetry, events.ServiceSource("retry", "1"), s.state("s1"),
		events.TurnRequested{Turn: "t9", Cause: events.CauseResume})
	s = s.next()
	s.takes("s1")
	nothing(s)
	if s.state("s1").Pending.Turn == nil {
		t.Error("no turn is requested")
	}
	s = newStored(t)
	s.connects()
	s.takes("s1")
	nothing(s)
	s.adds("s1", starts("t2")...)
	s.takes("s1")
	nothing(s)
}

// TestDecidedBeforeItIsTakenOver: a person answers, and stops the turn, before the loop has what was taken over. The
// proxy would not know the prompt, nor the turn: nothing waits for them before that. Then both arrive.
func TestDecidedBeforeItIsTakenOver(t *testing.T) {
	t.Parallel()
	s := leaves(t)
	s.person("s1", "p1", events.Answer{Question: events.PermissionQuestion, Selected: []string{"yes"}})
	s.takes("s1")
	s.mu.Lock()
	r := s.records["s1"]
	s.mu.Unlock()
	s.writes(events.WriterLedger, events.PersonSource("ada"), s.state("s1"),
		events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada", Reason: "no"})
	s.bus.Hints.Nudge(events.Ref{Harness: "h", Session: "s1"}, s.state("s1").Seq)
	natstest.Until(t, "the stop", func() bool { return r.s.State().Pending.Stop != nil })
	s.mu.Lock()
	if len(r.later) != 3 {
		t.Errorf("%d of 3 wait: two for decisions, one for a stop", len(r.later))
	}
	s.mu.Unlock()
	if in := s.given(); in.Turn != "t1" || len(in.Prompts) != 2 {
		t.Errorf("%+v", in)
	}
	if d := s.decides(); d.prompt != "p1" || d.err != nil || d.answer.By != "ada" {
		t.Errorf("%+v", d)
	}
	select {
	case stop := <-s.stops:
		if stop.turn != "t1" || stop.actor != events.ActorPerson || stop.reason != "no" {
			t.Errorf("%+v", stop)
		}
	case <-time.After(patience):
		t.Error("no stop")
	}
	// from then on nothing is held back
	s.adds("s1", permission("p3", "t1"))
	s.adds("s1", answered("p3"))
	if d := s.decides(); d.prompt != "p3" || d.err != nil {
		t.Errorf("%+v", d)
	}
}
