package sim

import (
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAProcessForgetsASessionThatHasEnded: a process that reads the log before it hands a decision to its agent finds
// that a person has closed the session, or that the reconciler has declared the owner dead. It hands out nothing,
// appends nothing, and forgets the session.
func TestAProcessForgetsASessionThatHasEnded(t *testing.T) {
	type end func(p *process) (events.Writer, string, events.Fact)
	closed := func(*process) (events.Writer, string, events.Fact) {
		return events.WriterLedger, events.PersonSource("ada"), events.SessionClosed{Reason: "archived", By: "ada"}
	}
	dead := func(p *process) (events.Writer, string, events.Fact) {
		return events.WriterReconciler, events.ServiceSource("reconciler", "x"),
			events.SessionOrphaned{Incarnation: p.incarnation, Reason: "lease-expired"}
	}
	for name, c := range map[string]struct {
		late bool // the turn that asked has ended
		end
	}{
		"closed in the turn": {false, closed}, "closed after the turn": {true, closed},
		"dead in the turn": {false, dead}, "dead after the turn": {true, dead},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Config{Seed: 1})
			// no append is in doubt
			w.settling = true
			p := w.procs[0]
			p.open(events.SessionOpened{Incarnation: p.incarnation})
			r := p.order[0]
			st := p.sessions[r]
			p.append(st, st.Epoch, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
				events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
					Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep,
					Questions: []events.Question{{ID: "q", Question: "?", Custom: true}}})
			w.append("ada", r, events.WriterLedger, from(events.PersonSource("ada")), st.Epoch, st.Seq,
				[]events.Fact{events.PromptAnswered{Prompt: "p1", By: "ada", Owed: true,
					Answers: []events.Answer{{Question: "q", Text: "yes"}}}})
			w.log.foldOn(st)
			takes := p.takesDecisions
			if c.late {
				p.append(st, st.Epoch, events.TurnCompleted{Turn: "t1"})
				takes = p.receivesLate
			}
			if st.Prompts["p1"] == nil {
				t.Fatal("the decision does not wait for an Ask")
			}
			by, source, f := c.end(p)
			if !w.append("other", r, by, from(source), st.Epoch, st.Seq, []events.Fact{f}) {
				t.Fatal("the end of the session is not stored")
			}
			before := w.log.last(r)
			if !takes(st) {
				t.Error("the process uses the state of a session that has ended")
			}
			if p.sessions[r] != nil || len(p.order) != 0 {
				t.Error("the process keeps the session")
			}
			if w.log.last(r) != before || len(w.report.Violations) != 0 {
				t.Errorf("the process appends to it, or hands out a decision: %v", w.report.Violations)
			}
		})
	}
}
