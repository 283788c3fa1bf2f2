package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// unstored is a place that no log has.
const unstored = 1 << 40

// unreadable is the turn t2, which continues t1, in a session whose log cannot be read.
func (x *inside) unreadable() *Turn {
	// no session has an empty id
	s := newSession(x.h, events.Ref{Harness: "laptop"})
	s.st = session.New(s.ref)
	s.st.Turn = &session.Turn{ID: "t2", OfTurn: "t1"}
	return &Turn{s: s, id: "t2", ctx: x.ctx}
}

// TestNamesWithoutTheLog: a turn continues another one, and the log that has the names of both cannot be read. That is
// an error: no step runs under an id of its own, and no question is asked again.
func TestNamesWithoutTheLog(t *testing.T) {
	x := newInside(t)
	for name, do := range map[string]func(turn *Turn) error{
		"the log": func(turn *Turn) error { return turn.inLog(x.ctx, func(*logIndex) { t.Error("it was read") }) },
		"the subject of the turn": func(turn *Turn) error {
			_, _, _, err := turn.about(x.ctx)
			return err
		},
		"a name": func(turn *Turn) error { _, _, err := turn.find(x.ctx, nameOfStep, "deploy", 1); return err },
		"a step": func(turn *Turn) error { _, _, err := turn.stepBegins(x.ctx, "deploy", true, nil); return err },
		"a question": func(turn *Turn) error {
			_, err := turn.AskOnce(x.ctx, "colour", Prompt{Title: "The wall"})
			return err
		},
	} {
		turn := x.unreadable()
		if err := do(turn); err == nil || errors.Is(err, ErrReleased) || !strings.Contains(err.Error(), "read ") ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", name, err)
		}
		if turn.key != "" {
			t.Errorf("%s: the steps of the turn get the ids of %q", name, turn.key)
		}
	}
}

// TestKeptThatCannotBeRead: the session has the end of a step and of a question, and the commit with the result, or
// with what was asked, cannot be read. The result is not taken for unknown, the decision not for empty, and neither is
// taken for that of another input or text.
func TestKeptThatCannotBeRead(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	step, question := nameID(nameOfStep, "deploy", "message m1", 1), nameID(nameOfQuestion, "colour", "message m1", 1)
	x.s.mu.Lock()
	x.s.st.Recent = append(x.s.st.Recent,
		session.Ending{Entity: session.EntityTool, ID: step, Outcome: session.OutcomeCompleted, Seq: unstored},
		session.Ending{Entity: session.EntityPrompt, ID: question, Outcome: string(session.Answered), Seq: unstored})
	x.s.mu.Unlock()
	input := json.RawMessage(`1`)
	for name, do := range map[string]func() error{
		"the result": func() error { _, _, err := turn.stepBegins(x.ctx, "deploy", false, nil); return err },
		"the input":  func() error { return turn.sameInput(x.ctx, "deploy", step, input, unstored) },
		"the decision": func() error {
			a, err := turn.AskOnce(x.ctx, "colour", Prompt{Title: "The wall"})
			if err == nil {
				t.Errorf("it is %+v", a)
			}
			return err
		},
		"the question": func() error {
			return turn.sameQuestion(x.ctx, "colour", Prompt{ID: question, Title: "The wall"}, unstored)
		},
	} {
		if err := do(); err == nil || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// of long ago: there is nothing to compare with
	for name, err := range map[string]error{
		"the input":    turn.sameInput(x.ctx, "deploy", "unknown", input, 0),
		"the question": turn.sameQuestion(x.ctx, "colour", Prompt{ID: question, Title: "The wall"}, 0),
	} {
		if err != nil {
			t.Errorf("%s is not known any more: %v", name, err)
		}
	}
}

// TestChangedBetweenReadAndWrite: the session has changed between the look at a step or a question and the write that
// follows from it. Nothing is stored, and the caller looks again. In a turn that has ended, nothing begins, however
// long ago that was.
func TestChangedBetweenReadAndWrite(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	x.mustRelay(events.ToolStarted{Call: "open", Turn: "t1", Name: "bash"},
		events.ToolStarted{Call: "ended", Turn: "t1", Name: "bash"}, events.ToolCompleted{Call: "ended"})
	long := &Turn{s: x.s, id: "long ago", ctx: x.ctx}
	before := x.s.State()
	now := before.Epoch
	asks := func(turn *Turn, call string, epoch uint64) error {
		ctx, cancel := brief(x.ctx)
		defer cancel()
		_, err := turn.askNow(ctx, "colour", Prompt{ID: call, Call: call, Questions: prompted("", "").Questions}, epoch)
		return err
	}
	checks := func(turn *Turn, call string, epoch uint64) error {
		_, err := turn.stillAbsent(call, epoch, nil)(x.s.State())
		return err
	}
	cuts := func(turn *Turn, call string, epoch uint64) error {
		return turn.cutOff(x.ctx, "deploy", call, epoch, []events.Fact{unknownEnd(call, events.ReasonOwnerLost)})
	}
	for name, c := range map[string]struct{ got, want error }{
		"a step, claimed since":                  {checks(turn, "new", now-1), errChanged},
		"a step, begun since":                    {checks(turn, "open", now), errChanged},
		"a step, ended since":                    {checks(turn, "ended", now), errChanged},
		"a step of a turn of long ago":           {checks(long, "new", now), ErrEnded},
		"a step that was cut off, claimed since": {cuts(turn, "open", now-1), errChanged},
		"a step that recovery has ended since":   {cuts(turn, "ended", now), errChanged},
		"a question, claimed since":              {asks(turn, "new", now-1), errChanged},
		"a question whose call has ended since":  {asks(turn, "ended", now), errChanged},
		"a question of a turn of long ago":       {asks(long, "new", now), ErrEnded},
	} {
		if !errors.Is(c.got, c.want) || errors.Is(c.got, ErrOutcomeUnknown) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if err := checks(turn, "new", now); err != nil {
		t.Errorf("nothing has changed: %v", err)
	}
	if st := x.s.State(); st.Seq != before.Seq {
		t.Errorf("stored up to %d, want %d", st.Seq, before.Seq)
	}
}

// TestDecisionWhoseCallIsNotAdopted: a question of an earlier process is decided, and the broker refuses the adoption
// of its call. The decision is not returned: recovery would bring it to the agent as well.
func TestDecisionWhoseCallIsNotAdopted(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	asked := prompted("t1", events.DeliverToolResult)
	asked.Call = "c1"
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask"}, asked)
	seq := x.appendUnnudged(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada",
		Answers: []events.Answer{{Question: "q", Text: "red"}}})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.s.writing <- struct{}{}
	x.s.mu.Lock()
	// as a later process sees it
	x.s.st.Epoch++
	x.s.mu.Unlock()
	out := make(chan error, 1)
	go func() {
		a, err := x.s.decision(x.ctx, "p1", seq)
		if err == nil {
			err = fmt.Errorf("got %+v", a)
		}
		out <- err
	}()
	natstest.Until(t, "the adoption to wait", func() bool { return Waiting(x.s) == 1 })
	x.s.mu.Lock()
	x.s.unacked = &unacked{writes: x.s.queue}
	x.s.settleUnacked(ErrFull)
	x.s.mu.Unlock()
	<-x.s.writing
	if err := <-out; !errors.Is(err, ErrFull) {
		t.Errorf("%v, want %v", err, ErrFull)
	}
}

// TestReasonOfAnUnknownOutcome: where no tool said why a step ended, the outcome of its call is the reason.
func TestReasonOfAnUnknownOutcome(t *testing.T) {
	for want, r := range map[string]Result{
		session.OutcomeInterrupted: {Outcome: session.OutcomeInterrupted},
		events.ReasonOwnerLost:     {Outcome: session.OutcomeInterrupted, Reason: events.ReasonOwnerLost},
	} {
		unknown, ok := errors.AsType[*UnknownOutcomeError](unknownOf("deploy", "c1", r))
		if !ok || unknown.Reason != want {
			t.Errorf("got %+v, want the reason %s", unknown, want)
		}
	}
}

// TestAdoptionsThatCannotBeCounted: how often a turn was adopted is in the log, which cannot be read. The session is
// not claimed: a turn that kills its process would be adopted again and again.
func TestAdoptionsThatCannotBeCounted(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	s := x.unreadable().s
	s.st = x.s.State()
	next := &term{incarnation: fmt.Sprint(s.st.Incarnation, "0")}
	if facts, err := x.s.claimWithTurn(x.ctx, next); err != nil || len(facts) != 2 {
		t.Fatalf("%v, %v, want the claim and the turn", facts, err)
	}
	if facts, err := s.claimWithTurn(x.ctx, next); err == nil {
		t.Errorf("%v", facts)
	}
}
