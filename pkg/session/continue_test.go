package session_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// inVain has recovery request turns for a decision, and an agent that begins a turn of its own instead, until no more
// are requested. It returns how many were.
func (f *feeder) inVain() int {
	f.t.Helper()
	for n := range 3 * session.ContinuationsMax {
		request, ok := f.s.Owed()
		if !ok {
			return n
		}
		f.append(events.WriterReconciler, request)
		own := fmt.Sprintf("own-%d", f.s.Seq)
		f.append(events.WriterHarness, events.TurnStarted{Turn: own, Cause: events.CauseMessage, Synthetic: true},
			events.TurnCompleted{Turn: own})
	}
	f.t.Fatal("turns are requested without end")
	return 0
}

// TestContinuationsAreBounded: turns are requested for a decision up to a bound. The document shows that the decision
// waits for a person then, and an act of a person begins again. Input that a harness takes in is no such act.
func TestContinuationsAreBounded(t *testing.T) {
	content := json.RawMessage(`"x"`)
	message := func(synthetic bool) events.Fact {
		return events.MessageAccepted{Message: fmt.Sprint("m", synthetic), Content: content, Synthetic: synthetic}
	}
	resume := events.TurnRequested{Turn: "again", Cause: events.CauseResume}
	for name, c := range map[string]struct {
		by     events.Writer
		person string // in whose name the service says it
		fact   events.Fact
		again  bool
	}{
		"a person decides":          {by: events.WriterLedger, fact: answering("p2"), again: true},
		"a person sends a message":  {by: events.WriterCompaction, fact: message(false), again: true},
		"a person asks for a turn":  {by: events.WriterRetry, person: "ada", fact: resume, again: true},
		"a service asks for a turn": {by: events.WriterRetry, fact: resume},
		"a service sends a message": {by: events.WriterCompaction, fact: message(true)},
		"the harness takes input":   {by: events.WriterHarness, fact: message(false)},
		"the harness decides": {by: events.WriterHarness,
			fact: events.PromptAnswered{Prompt: "p2", By: "policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Synthetic: true},
				asking("p1", "t1"))
			f.append(events.WriterLedger, answering("p1"))
			f.append(events.WriterHarness, events.TurnCompleted{Turn: "t1"})
			if n := f.inVain(); n != session.ContinuationsMax {
				t.Errorf("%d turns were requested", n)
			}
			held := session.Continuations{Count: session.ContinuationsMax, State: "held", Reason: "no_progress"}
			if f.s.Continuations != held || f.s.Phase != session.Interrupted {
				t.Errorf("%+v, phase %s", f.s.Continuations, f.s.Phase)
			}
			if request, ok := f.s.OwedAndHeld(); !ok || request.Prompt != "p1" {
				t.Errorf("%v, %+v", ok, request)
			}
			f.append(events.WriterHarness, events.TurnStarted{Turn: "late", Cause: events.CauseMessage, Synthetic: true,
				Prompts: []string{"p1"}}, events.TurnCompleted{Turn: "late"})
			if f.s.Continuations.State != "" || f.s.Phase != session.Idle {
				t.Errorf("held after a turn that brought it: %+v, phase %s", f.s.Continuations, f.s.Phase)
			}
			f.append(events.WriterHarness, asking("p2", ""), events.PromptUnattended{Prompt: "p2"})
			f.person(c.by, c.person, c.fact)
			if again := f.s.Continuations.Count == 0; again != c.again {
				t.Errorf("%+v", f.s.Continuations)
			}
		})
	}
}

// TestContinuationsInTime: as long as the agent takes one of the turns in time, nothing is held, also when it was the
// last one. A turn that is requested for another cause does not count.
func TestContinuationsInTime(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Synthetic: true},
		asking("p1", "t1"))
	f.append(events.WriterLedger, answering("p1"))
	f.append(events.WriterRetry, events.TurnRequested{Turn: "r", Cause: events.CauseRetry, OfTurn: "t1"})
	f.append(events.WriterReconciler, events.TurnRequested{Turn: "m", Cause: events.CauseMessage})
	f.append(events.WriterLedger, events.TurnRequested{Turn: "a", Cause: events.CauseAnswer})
	if f.s.Continuations.Count != 0 {
		t.Errorf("another request counts: %+v", f.s.Continuations)
	}
	f.append(events.WriterHarness, events.TurnCompleted{Turn: "t1"})
	for i := range session.ContinuationsMax {
		if f.s.Pending.Turn != nil {
			f.append(events.WriterHarness, events.TurnStarted{Turn: fmt.Sprint("own", i), Cause: events.CauseMessage,
				Synthetic: true},
				events.TurnCompleted{Turn: fmt.Sprint("own", i)})
		}
		request, ok := f.s.Owed()
		if !ok {
			t.Fatalf("no turn is requested after %+v", f.s.Continuations)
		}
		if _, held := f.s.OwedAndHeld(); held || f.s.Continuations.State != "" {
			t.Errorf("held before the bound: %+v", f.s.Continuations)
		}
		f.append(events.WriterReconciler, request)
	}
	if f.s.Continuations.State != "" {
		t.Errorf("held while the last request is pending: %+v", f.s.Continuations)
	}
	f.append(events.WriterHarness, events.TurnStarted{Turn: f.s.Pending.Turn.ID},
		events.TurnCompleted{Turn: f.s.Pending.Turn.ID})
	if _, held := f.s.OwedAndHeld(); held || f.s.Continuations.State != "" || f.s.Phase != session.Idle {
		t.Errorf("held although it is delivered: %+v, phase %s", f.s.Continuations, f.s.Phase)
	}
}
