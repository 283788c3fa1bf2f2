package invariants

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// question has turn t ask a prompt without a call, that is kept when its process dies.
func (s *story) question(prompt string) {
	s.harness(events.PromptRequested{Prompt: prompt, Turn: "t", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
}

func (s *story) dies() {
	s.service(events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: "1"})
}

func (s *story) answered(prompt string) {
	s.person(events.WriterLedger, events.PromptAnswered{Prompt: prompt, Answers: []events.Answer{}, By: "ada",
		Owed: true})
}

// asMessage has turn t ask a prompt that is answered with a message when its process is dead, and returns the message.
func (s *story) asMessage() string {
	s.harness(events.PromptRequested{Prompt: "p", Turn: "t", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverMessage})
	message := events.DeriveID("answer", s.st.Session, "p", fmt.Sprint(s.st.Seq))
	s.dies()
	s.person(events.WriterLedger, events.PromptAnswered{Prompt: "p", Answers: []events.Answer{}, By: "ada", Owed: true},
		events.MessageAccepted{Message: message, Synthetic: true, Content: []byte(`"x"`)})
	return message
}

// inCall has turn t ask a prompt in a call, which is answered while its process is alive.
func (s *story) inCall() {
	s.harness(events.ToolStarted{Call: "c", Turn: "t"}, events.PromptRequested{Prompt: "p", Turn: "t", Call: "c",
		Delivery: events.DeliverToolResult})
	s.answered("p")
}

// inBackground has a call that outlives turn t ask a prompt, which is answered after that turn.
func (s *story) inBackground() {
	s.harness(events.ToolStarted{Call: "c", Turn: "t", Background: true},
		events.PromptRequested{Prompt: "p", Turn: "t", Call: "c", Delivery: events.DeliverToolResult})
	s.completes("t")
	s.answered("p")
}

// outside has a prompt outside of any turn answered while its process is alive.
func (s *story) outside() {
	s.asksOutside()
	s.answered("p")
	s.completes("t")
}

// asksOutside has the process ask p, or ask it again, outside of any turn.
func (s *story) asksOutside() {
	s.harness(events.PromptRequested{Prompt: "p", PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback,
		OnOwnerLoss: events.LossKeep})
}

// stopped has a person stop turn t after it has completed.
func (s *story) stopped() {
	s.completes("t")
	s.stops("t")
	s.harness(events.TurnStopped{Turn: "t", Actor: events.ActorPerson})
}

// byItself has the process begin a turn of its own, which completes.
func (s *story) byItself(turn string) {
	s.harness(events.TurnStarted{Turn: turn, Cause: events.CauseMessage, Synthetic: true})
	s.completes(turn)
}

// retried has turn t ask p and fail, and retry schedule its next attempt. After that the process may begin a turn by
// itself, which fails, too.
func (s *story) retried(own bool) {
	s.question("p")
	s.answered("p")
	s.fails()
	s.service(events.WriterRetry, events.RetryScheduled{Turn: "t", Attempt: 1, DelayMS: 60_000,
		DueAt: s.st.LastTurn.At.Add(time.Minute)})
	if own {
		s.harness(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
		s.harness(events.TurnFailed{Turn: "own", Error: events.Failure{Kind: "server_error"}})
	}
}

// requestedFor has recovery request a turn for the decision about p, which continues a turn.
func (s *story) requestedFor(ofTurn string) {
	s.service(events.WriterReconciler, events.TurnRequested{Turn: "u", Cause: events.CauseAnswer, OfTurn: ofTurn,
		Prompts: []string{"p"}})
}

// requested has recovery request a turn for the decision about p.
func (s *story) requested() {
	s.service(events.WriterReconciler, events.TurnRequested{Turn: fmt.Sprint("u", s.st.Seq), Cause: events.CauseAnswer,
		Prompts: []string{"p"}})
}

// claims has the process take the session again, and with it what it adopts.
func (s *story) claims(adopted ...events.Fact) {
	s.harness(append([]events.Fact{events.SessionClaimed{Incarnation: "1"}}, adopted...)...)
}

// continues requests a turn that names prompts, and takes it in a session without an owner or one that the process
// owns.
func (s *story) continues(turn string, cause events.Cause, ofTurn string, prompts ...string) {
	s.service(events.WriterReconciler, events.TurnRequested{Turn: turn, Cause: cause, OfTurn: ofTurn, Prompts: prompts})
	if !s.st.Owned {
		s.harness(events.SessionClaimed{Incarnation: "1"})
	}
	s.harness(events.TurnStarted{Turn: turn, Cause: cause, OfTurn: ofTurn, Synthetic: true})
}

func (s *story) completes(turn string) { s.harness(events.TurnCompleted{Turn: turn}) }

func TestDecisionsReachTheAgent(t *testing.T) {
	dead := func(s *story, prompts ...string) {
		for _, p := range prompts {
			s.question(p)
		}
		s.dies()
		for _, p := range prompts {
			s.answered(p)
		}
	}
	for name, c := range map[string]struct {
		want string
		owed []string
		do   func(s *story)
	}{
		"decided": {"", []string{"p"}, func(s *story) { dead(s, "p") }},
		"named and completed": {"", nil, func(s *story) {
			dead(s, "p")
			s.continues("u", events.CauseAnswer, "t",
				"p")
			s.completes("u")
		}},
		"named and under way": {"", []string{"p"}, func(s *story) {
			dead(s, "p")
			s.continues("u", events.CauseAnswer,
				"t", "p")
		}},
		"one of two": {"V15", []string{"p", "q"},
			func(s *story) { dead(s, "p", "q"); s.continues("u", events.CauseAnswer, "", "q") }},
		"not by the next attempt": {"V15", []string{"p"}, func(s *story) {
			dead(s, "p")
			s.continues("u", events.CauseAnswer, "t", "p")
			s.harness(events.TurnFailed{Turn: "u", Error: events.Failure{Kind: "rate_limit"}})
			s.continues("v", events.CauseRetry, "")
		}},
		"by the next attempt": {"", nil, func(s *story) {
			dead(s, "p")
			s.continues("u", events.CauseAnswer, "t", "p")
			s.harness(events.TurnFailed{Turn: "u", Error: events.Failure{Kind: "rate_limit"}})
			s.continues("v", events.CauseRetry, "u")
			s.completes("v")
		}},
		"a receipt": {"", nil, func(s *story) {
			s.question("p")
			s.answered("p")
			s.harness(events.PromptDelivered{Prompt: "p"})
			s.fails()
			s.continues("u", events.CauseRetry, "")
		}},
		"the asker's turn completes": {"", []string{"p"},
			func(s *story) { s.question("p"); s.answered("p"); s.completes("t") }},
		"and the next does not bring it": {"V15", []string{"p"}, func(s *story) {
			s.question("p")
			s.answered("p")
			s.completes("t")
			s.continues("u", events.CauseAnswer, "")
		}},
		"a turn that the harness starts by itself": {"", []string{"p"}, func(s *story) {
			dead(s, "p")
			s.claims(events.TurnStarted{Turn: "u", Cause: events.CauseMessage, Synthetic: true})
			s.completes("u")
		}},
		"the asker's call ends": {"", nil, func(s *story) {
			s.inCall()
			s.harness(events.ToolCompleted{Call: "c"})
			s.fails()
			s.continues("u", events.CauseRetry, "")
		}},
		"the asker's call is interrupted": {"V15", []string{"p"}, func(s *story) {
			s.inCall()
			s.service(events.WriterReconciler, events.ToolInterrupted{Call: "c", Reason: events.ReasonOwnerLost})
			s.continues("u", events.CauseRetry, "")
		}},
		"a background call waits for it": {"", []string{"p"},
			func(s *story) { s.inBackground(); s.continues("u", events.CauseAnswer, ""); s.completes("u") }},
		"a background call does not wait for it": {"V15", []string{"p"}, func(s *story) {
			s.inBackground()
			s.harness(events.PromptUnattended{Prompt: "p"})
			s.continues("u", events.CauseAnswer, "")
		}},
		"outside of any turn": {"", []string{"p"}, func(s *story) {
			s.outside()
			s.continues("u", events.CauseAnswer,
				"")
		}},
		"outside of any turn, of the dead": {"V15", []string{"p"}, func(s *story) {
			s.outside()
			s.dies()
			s.continues("u", events.CauseAnswer, "")
		}},
		"outside of any turn, of an owner before": {"V15", []string{"p"}, func(s *story) {
			s.outside()
			s.dies()
			s.claims()
			s.continues("u", events.CauseAnswer, "")
		}},
		"outside of any turn, unattended": {"V15", []string{"p"}, func(s *story) {
			s.outside()
			s.harness(events.PromptUnattended{Prompt: "p"})
			s.continues("u", events.CauseAnswer, "")
		}},
		"outside of any turn, asked again": {"", []string{"p"}, func(s *story) {
			s.asksOutside()
			s.harness(events.PromptUnattended{Prompt: "p"})
			s.asksOutside()
			s.answered("p")
			s.completes("t")
			s.continues("u", events.CauseAnswer, "")
		}},
		"requested without end": {"V15", []string{"p"}, func(s *story) {
			dead(s, "p")
			for range session.ContinuationsMax + 1 {
				s.requested()
			}
		}},
		"requested again after a person acted": {"", []string{"p", "q"}, func(s *story) {
			dead(s, "p")
			for range session.ContinuationsMax {
				s.requested()
			}
			s.claims(events.PromptRequested{Prompt: "q", PromptKind: events.PromptQuestion})
			s.answered("q")
			for range session.ContinuationsMax {
				s.requested()
			}
			s.sent("n")
			s.requested()
		}},
		"a background call ends with it": {"", nil,
			func(s *story) { s.inBackground(); s.harness(events.ToolCompleted{Call: "c"}) }},
		"a background call of the dead": {"V15", []string{"p"},
			func(s *story) { s.inBackground(); s.dies(); s.continues("u", events.CauseAnswer, "") }},
		"the call ends with its turn": {"V15", []string{"p"},
			func(s *story) { s.inCall(); s.fails(); s.continues("u", events.CauseRetry, "") }},
		"through the harness": {"", nil, func(s *story) {
			s.question("p")
			s.harness(events.PromptAnswered{Prompt: "p", Answers: []events.Answer{}, By: "ada"})
			s.fails()
			s.continues("u", events.CauseRetry, "")
		}},
		"adopted": {"", []string{"p"}, func(s *story) {
			dead(s,
				"p")
			s.claims(events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
		}},
		"adopted, and not read": {"", []string{"p"}, func(s *story) {
			dead(s, "p")
			s.claims(events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
			s.completes("t")
		}},
		"its turn is adopted by another prompt": {"", nil, func(s *story) {
			s.question("q")
			s.inCall()
			s.dies()
			s.service(events.WriterReconciler, events.ToolCompleted{Call: "c", Synthetic: true})
			s.claims(events.PromptRequested{Prompt: "q", PromptKind: events.PromptQuestion,
				Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
			s.completes("t")
		}},
		"as a message": {"", nil, func(s *story) {
			m := s.asMessage()
			s.claims(events.TurnStarted{Turn: "u", Cause: events.CauseAnswer, OfTurn: "t", Message: m, Synthetic: true})
			s.completes("u")
		}},
		"waits as a message": {"", []string{"p"}, func(s *story) {
			s.asMessage()
			s.continues("u", events.CauseAnswer,
				"")
		}},
		"received, and as a message": {"V10", nil, func(s *story) {
			m := s.asMessage()
			s.claims(events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
			s.harness(events.PromptDelivered{Prompt: "p"})
			s.harness(events.TurnStarted{Turn: "u", Cause: events.CauseMessage, Message: m, Synthetic: true})
		}},
		"taken back with its message": {"", nil, func(s *story) {
			s.person(events.WriterCompaction, events.MessageWithdrawn{Message: s.asMessage(), By: "ada"})
		}},
		"a message does not speak for a service": {"V15", []string{"p"},
			func(s *story) { dead(s, "p"); s.sent("n"); s.continues("u", events.CauseAnswer, "") }},
		"the owner goes with the request": {"", []string{"p"}, func(s *story) {
			s.question("p")
			s.answered("p")
			s.service(events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: "1"},
				events.TurnRequested{Turn: "u", Cause: events.CauseAnswer, OfTurn: "t", Prompts: []string{"p"}})
		}},
		"the owner does not run it": {"", []string{"p"}, func(s *story) {
			dead(s, "p")
			s.claims()
			s.continues("u",
				events.CauseAnswer, "t", "p")
		}},
		"overtaken by a message": {"", nil, func(s *story) {
			dead(s, "p")
			s.sent("n")
			s.harness(events.SessionClaimed{Incarnation: "1"})
			s.harness(events.TurnStarted{Turn: "u", Cause: events.CauseMessage, Message: "n"})
		}},
		"not by a message of before": {"", []string{"p"}, func(s *story) {
			s.sent("n")
			dead(s, "p")
			s.harness(events.SessionClaimed{Incarnation: "1"})
			s.harness(events.TurnStarted{Turn: "u", Cause: events.CauseMessage, Message: "n"})
		}},
		"brought again after a refusal": {"V15: turn v (retry) brings the decision about prompt p, and the", nil,
			func(s *story) {
				dead(s, "p")
				s.continues("u", events.CauseAnswer, "t", "p")
				s.harness(events.PromptDelivered{Prompt: "p", Refused: "no"}, events.TurnFailed{Turn: "u"})
				s.continues("v", events.CauseRetry, "u", "p")
			}},
		"brought twice": {"V15", nil, func(s *story) {
			dead(s, "p")
			s.continues("u", events.CauseAnswer, "t", "p")
			s.completes("u")
			s.continues("v", events.CauseAnswer, "u", "p")
		}},
		"in place of the retry of the last turn": {"V15: turn u for a decision takes the place", []string{"p"},
			func(s *story) { s.retried(false); s.requestedFor("other") }},
		"beside the retry of a turn before that": {"", []string{"p"},
			func(s *story) { s.retried(true); s.requestedFor("own") }},
		"the owner's turn is taken": {"V15", []string{"p"},
			func(s *story) { s.question("p"); s.answered("p"); s.continues("u", events.CauseAnswer, "t", "p") }},
		"closed": {"", nil, func(s *story) {
			dead(s, "p")
			s.person(events.WriterLedger,
				events.SessionClosed{Reason: "archived"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			c.do(s)
			found := strings.Join(s.found, "\n")
			if c.want == "" && found != "" || !strings.HasPrefix(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
			if !slices.Equal(s.x.Owed(), c.owed) {
				t.Errorf("owed %v, want %v", s.x.Owed(), c.owed)
			}
		})
	}
}

func TestUnheard(t *testing.T) {
	for name, c := range map[string]struct {
		want []string
		do   func(s *story)
	}{
		"a turn completed without it": {[]string{"p"}, func(s *story) { s.completes("t") }},
		"a turn is open":              {nil, func(*story) {}},
		"the last turn failed":        {nil, func(s *story) { s.fails() }},
		"a person stopped it since": {nil, func(s *story) {
			s.stopped()
		}},
		"a person stopped it since, and no turn of a person has begun": {nil, func(s *story) {
			s.stopped()
			s.person(events.WriterRetry, events.TurnRequested{Turn: "u", Cause: events.CauseResume,
				Prompts: []string{"p"}})
			s.byItself("own")
		}},
		"a person stopped it since, and a turn of a person has begun": {[]string{"p"}, func(s *story) {
			s.stopped()
			s.person(events.WriterRetry, events.TurnRequested{Turn: "u", Cause: events.CauseResume,
				Prompts: []string{"p"}})
			s.harness(events.TurnStarted{Turn: "u", Cause: events.CauseResume})
			s.byItself("own")
		}},
		"a person dismissed it": {[]string{"p"}, func(s *story) {
			s.question("r")
			s.person(events.WriterLedger, events.PromptDismissed{Prompt: "r", By: "ada"})
			s.completes("t")
		}},
		"a person stopped it before": {[]string{"r"}, func(s *story) {
			s.question("r")
			s.stops("t")
			s.answered("r")
			s.harness(events.TurnStopped{Turn: "t", Actor: events.ActorPerson})
		}},
		"its retry is given up": {nil, func(s *story) {
			s.fails()
			s.service(events.WriterRetry, events.RetryAbandoned{Turn: "t", Reason: "cancelled"})
		}},
		"a question is open": {nil, func(s *story) {
			s.harness(events.PromptRequested{Prompt: "q", PromptKind: events.PromptQuestion,
				Delivery: events.DeliverCallback})
			s.completes("t")
		}},
		"its asker has given up": {[]string{"p"}, func(s *story) {
			s.harness(events.PromptUnattended{Prompt: "p"})
			s.completes("t")
		}},
		"its asker has given up, and recovery has requested all turns": {nil, func(s *story) {
			s.harness(events.PromptUnattended{Prompt: "p"})
			s.completes("t")
			for range session.ContinuationsMax {
				s.requested()
			}
		}},
		"a ledger without owed decides later": {nil, func(s *story) {
			s.completes("t")
			s.harness(events.PromptRequested{Prompt: "q", PromptKind: events.PromptQuestion})
			s.person(events.WriterLedger, events.PromptAnswered{Prompt: "q", Answers: []events.Answer{}, By: "ada"})
		}},
		"a ledger without owed decided before": {[]string{"r"}, func(s *story) {
			s.question("r")
			s.harness(events.PromptRequested{Prompt: "q", PromptKind: events.PromptQuestion})
			s.person(events.WriterLedger, events.PromptAnswered{Prompt: "q", Answers: []events.Answer{}, By: "ada"})
			s.answered("r")
			s.completes("t")
		}},
		"closed": {nil, func(s *story) {
			s.completes("t")
			s.person(events.WriterLedger, events.SessionClosed{Reason: "archived"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.harness(events.PromptRequested{Prompt: "p", PromptKind: events.PromptQuestion,
				Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
			// outside of any turn: none that completes delivers it
			s.answered("p")
			c.do(s)
			if got := s.x.Undelivered(s.st); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
