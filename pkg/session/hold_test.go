package session_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// optional is a question that does not block.
func optional(prompt, turn string, delivery events.Delivery) events.Fact {
	return events.PromptRequested{Prompt: prompt, Turn: turn, PromptKind: events.PromptQuestion, Delivery: delivery,
		OnOwnerLoss: events.LossKeep, Blocking: new(bool)}
}

// undelivered has turn t1 ask p1, which does not block, and a person answer it. Nothing has taken the answer.
func undelivered(t *testing.T, owed bool) *feeder {
	t.Helper()
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.e(optional("p1", "t1", events.DeliverCallback))
	f.append(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada", Owed: owed})
	return f
}

// mustOwe wants a turn to be owed for p1, or none.
func (f *feeder) mustOwe(when string, want bool) {
	f.t.Helper()
	if owed, ok := f.s.Owed(); ok != want || ok && owed.Prompt != "p1" {
		f.t.Errorf("%s: owed %v %+v, want %v", when, ok, owed, want)
	}
}

// own has the agent start a turn by itself and complete it.
func (f *feeder) own(turn string) {
	f.t.Helper()
	f.e(events.TurnStarted{Turn: turn, Cause: events.CauseMessage, Synthetic: true})
	f.e(events.TurnCompleted{Turn: turn})
}

// TestAFailureHoldsADecision: a turn fails for good. An earlier decision calls for no turn until another turn has
// completed.
func TestAFailureHoldsADecision(t *testing.T) {
	f := undelivered(t, true)
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}})
	f.append(events.WriterRetry, events.RetryAbandoned{Turn: "t1", Attempt: 1, Reason: "authentication"})
	f.mustOwe("after the failure", false)
	f.own("own")
	f.mustOwe("after a turn that completed", true)
}

// TestAStopHoldsADecision: a person answers and stops the turn, which completes all the same. The queue waits, and the
// answer calls for no turn until a turn begins that a person caused or requested.
func TestAStopHoldsADecision(t *testing.T) {
	for name, c := range map[string]struct {
		facts func(f *feeder)
		stays bool
	}{
		"a turn of the agent": {func(f *feeder) { f.own("own") }, true},
		"a turn of the agent for a synthetic message": {func(f *feeder) {
			f.e(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Message: "m2", Synthetic: true})
			f.e(events.TurnCompleted{Turn: "own"})
		}, true},
		"a turn that a service requests": {func(f *feeder) {
			f.append(events.WriterReconciler, events.TurnRequested{Turn: "t2", Cause: events.CauseAnswer})
			f.e(events.TurnStarted{Turn: "t2"})
		}, true},
		"a turn that a person requests": {func(f *feeder) {
			f.person(events.WriterRetry, "ada", events.TurnRequested{Turn: "t2", Cause: events.CauseResume,
				OfTurn: "t1"})
			if f.s.StoppedSeq == 0 {
				f.t.Error("the stop ends before the turn begins")
			}
			f.e(events.TurnStarted{Turn: "t2"})
		}, false},
		"a message of a person": {func(f *feeder) {
			f.e(events.TurnStarted{Turn: "t2", Cause: events.CauseMessage, Message: "m2"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := undelivered(t, true)
			f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
			stopped := f.s.Seq
			f.e(events.TurnCompleted{Turn: "t1"})
			if f.s.HeldSeq != stopped || f.s.StoppedSeq != stopped {
				t.Errorf("held %d, stopped %d, want %d", f.s.HeldSeq, f.s.StoppedSeq, stopped)
			}
			f.mustOwe("after the stop", false)
			if c.facts(f); (f.s.StoppedSeq == stopped) != c.stays {
				t.Errorf("stopped %d", f.s.StoppedSeq)
			}
		})
	}
}

// TestADecisionOfBeforeTheRule: a decision of the ledger that is not marked as owed calls for no turn by itself.
func TestADecisionOfBeforeTheRule(t *testing.T) {
	for _, owed := range []bool{false, true} {
		f := undelivered(t, owed)
		f.e(events.TurnCompleted{Turn: "t1"})
		f.mustOwe("after its turn", owed)
	}
}

// TestAnAnswerThatWaitsAsAMessage: the asker is gone, and the answer waits in the queue as a message. It calls for a
// turn, unless it is older than a stop, or than the rule.
func TestAnAnswerThatWaitsAsAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		old   bool // not marked as owed
		first bool // the answer comes before the stop
		want  bool
	}{
		"after the stop":  {want: true},
		"before the stop": {first: true},
		"before the rule": {old: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.e(optional("p1", "", events.DeliverMessage))
			f.orphan()
			f.claim()
			f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
			d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "p1", By: "ada"}, f.src)
			if err != nil {
				t.Fatal(err)
			}
			// without the request of a turn
			facts := d.Facts[:2]
			if c.old {
				facts[0] = events.PromptAnswered{Prompt: "p1", By: "ada"}
			}
			stop := events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"}
			if c.first {
				f.append(events.WriterLedger, facts...)
				f.append(events.WriterLedger, stop)
			} else {
				f.append(events.WriterLedger, stop)
				f.append(events.WriterLedger, facts...)
			}
			f.e(events.TurnStopped{Turn: "t1", Actor: events.ActorPerson})
			if len(f.s.Queue) != 1 || f.s.QueueMoves() {
				t.Fatalf("the queue %+v moves", f.s.Queue)
			}
			f.mustOwe("in the queue", c.want)
		})
	}
}

// TestReceiptInAnotherTurn: an answer is taken in by a turn that did not ask. If the prompt is of an earlier turn, or
// an earlier turn brought it in vain, this turn has the answer now, and nothing is left of the earlier one. Another
// prompt outside of any turn is no turn's.
func TestReceiptInAnotherTurn(t *testing.T) {
	outside := func(prompt string) events.Fact { return optional(prompt, "", events.DeliverCallback) }
	for name, c := range map[string]struct {
		end           events.Fact
		left, carried []string
	}{
		"the turn that asked has failed": {events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}},
			[]string{"p1", "p3"}, []string{"p1", "p3"}},
		"the turn that asked has completed": {events.TurnCompleted{Turn: "t1"}, nil, []string{"p1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.e(outside("p3"))
			f.append(events.WriterLedger, answering("p3"))
			f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1", Prompts: []string{"p3"}})
			f.e(optional("p1", "t1", events.DeliverCallback))
			f.append(events.WriterLedger, answering("p1"))
			f.e(outside("p2"))
			f.append(events.WriterLedger, answering("p2"))
			f.e(c.end)
			f.e(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
			if got := carriedIDs(f.s.LastTurn.Prompts); len(got) != len(c.left) {
				t.Errorf("left by the turn that asked: %v, want %v", got, c.left)
			}
			for _, id := range []string{"p1", "p2", "p3"} {
				if f.s.Prompts[id] != nil {
					f.e(events.PromptDelivered{Prompt: id})
				}
			}
			wantCarried(t, "left after the receipts", f.s.LastTurn.Prompts)
			wantCarried(t, "the agent's turn after the receipts", f.s.Turn.Prompts, c.carried...)
		})
	}
}

// TestReceiptOfAnAnswerThatBecameAMessage: the process that asked has the answer. Its message leaves the queue, and
// with it the turn that was requested for this message. The turn of another message stays requested.
func TestReceiptOfAnAnswerThatBecameAMessage(t *testing.T) {
	for _, own := range []bool{true, false} {
		f := newFeeder(t)
		f.e(optional("p1", "", events.DeliverMessage))
		f.orphan()
		d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "p1", By: "ada"}, f.src)
		if err != nil {
			t.Fatal(err)
		}
		f.append(events.WriterLedger, d.Facts...)
		message := f.s.Queue[0].ID
		if !own {
			message = "m2"
			f.append(events.WriterCompaction, events.MessageAccepted{Message: message, Content: []byte(`"x"`)})
		}
		f.append(events.WriterCompaction, events.TurnRequested{Turn: "t2", Cause: events.CauseMessage,
			Message: message})
		f.claim()
		f.e(events.PromptDelivered{Prompt: "p1"})
		if requested := f.s.Pending.Turn != nil; requested == own || (len(f.s.Queue) == 0) != own {
			t.Errorf("the turn of %s: requested %v, the queue is %+v", message, requested, f.s.Queue)
		}
	}
}

// TestAReceiptIsRepeated: a process that claims its session again repeats the receipt for what its turn carries. It
// keeps the answer when it starts another turn in place of that turn. A receipt that is not repeated, is repeated
// under the same epoch, refuses the answer, or comes from a process that does not continue the turn, does not have
// that effect.
func TestAReceiptIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []events.Fact // the claim
		left          bool          // the process does not continue the turn
		ignored       uint64
		owed          bool
	}{
		"under the next epoch": {after: []events.Fact{events.PromptDelivered{Prompt: "p1"}}},
		"twice": {after: []events.Fact{events.PromptDelivered{Prompt: "p1"}, events.PromptDelivered{Prompt: "p1"}},
			ignored: 1},
		"under the same epoch": {before: []events.Fact{events.PromptDelivered{Prompt: "p1"}}, ignored: 1, owed: true},
		"without the turn":     {after: []events.Fact{events.PromptDelivered{Prompt: "p1"}}, left: true, owed: true},
		"not at all":           {owed: true},
		"as a refusal": {after: []events.Fact{events.PromptDelivered{Prompt: "p1", Refused: "unknown request"}},
			ignored: 1,
			owed:    true},
	} {
		t.Run(name, func(t *testing.T) {
			f := undelivered(t, true)
			f.e(events.PromptDelivered{Prompt: "p1"})
			f.append(events.WriterHarness, c.before...)
			f.claim()
			if !c.left {
				f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
			}
			clone := f.s.Clone()
			f.append(events.WriterHarness, c.after...)
			if clone.Turn.Prompts[0].Had != 1 {
				t.Errorf("the clone of before: %+v", clone.Turn.Prompts)
			}
			if f.s.Ignored.Count != c.ignored {
				t.Errorf("ignored %+v", f.s.Ignored)
			}
			f.own("own")
			f.mustOwe("after a turn in its place", c.owed)
		})
	}
}

// TestADecisionOfTheHarness: a process answers its own prompt by policy. The decision calls for no turn, also if its
// turn has failed and a turn of the agent has completed. The next attempt names it.
func TestADecisionOfTheHarness(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.e(optional("p1", "t1", events.DeliverCallback))
	f.e(events.PromptAnswered{Prompt: "p1", By: "policy"})
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}})
	wantCarried(t, "the next attempt", f.s.LastTurn.Prompts, "p1")
	f.own("own")
	f.mustOwe("after a turn that completed", false)
}

// TestNeededRequestsStay: a process gives the receipt for an answer, or refuses it, while a turn is requested. The
// request stays if it is for more than decisions that the process has.
func TestNeededRequestsStay(t *testing.T) {
	for name, c := range map[string]struct {
		begin   func(f *feeder)
		receipt events.PromptDelivered
		gone    bool
	}{
		"a retry that named the answer": {begin: func(f *feeder) {
			f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
			f.append(events.WriterRetry, f.s.Naming(events.TurnRequested{Turn: "t2", Cause: events.CauseRetry,
				OfTurn: "t1"}))
		}, receipt: events.PromptDelivered{Prompt: "p1", Refused: "unknown request"}},
		"a turn after a child": {begin: func(f *feeder) {
			f.e(events.TurnCompleted{Turn: "t1"})
			f.append(events.WriterReconciler, events.TurnRequested{Turn: "t2", Cause: events.CauseAnswer})
		}, receipt: events.PromptDelivered{Prompt: "p1"}},
		"a turn that takes a message": {begin: func(f *feeder) {
			f.e(events.TurnCompleted{Turn: "t1"})
			f.append(events.WriterCompaction, events.MessageAccepted{Message: "m2", Content: []byte(`"x"`)})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", "m2"))
		}, receipt: events.PromptDelivered{Prompt: "p1"}},
		"a turn for an answer with a late receipt": {begin: func(f *feeder) {
			f.e(optional("p2", "", events.DeliverCallback))
			f.e(events.PromptUnattended{Prompt: "p2"})
			f.append(events.WriterLedger, answering("p2"))
			f.e(events.TurnCompleted{Turn: "t1"})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", ""))
			f.e(events.PromptDelivered{Prompt: "p1"})
			f.claim()
		}, receipt: events.PromptDelivered{Prompt: "p2"}, gone: true},
		"a turn that continues the open one": {begin: func(f *feeder) {
			f.append(events.WriterLedger, f.s.Continue("p1", "t1", ""))
		}, receipt: events.PromptDelivered{Prompt: "p1"}},
		"a turn beside the open one": {begin: func(f *feeder) {
			f.e(events.TurnCompleted{Turn: "t1"})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", ""))
			f.e(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", ""))
		}, receipt: events.PromptDelivered{Prompt: "p1"}, gone: true},
		"a turn for another answer": {begin: func(f *feeder) {
			f.e(optional("p2", "", events.DeliverCallback))
			f.e(events.PromptUnattended{Prompt: "p2"})
			f.append(events.WriterLedger, answering("p2"))
			f.e(events.TurnCompleted{Turn: "t1"})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", ""))
		}, receipt: events.PromptDelivered{Prompt: "p1"}},
		"a turn for another answer from before a stop": {begin: func(f *feeder) {
			f.e(optional("p2", "", events.DeliverCallback))
			f.e(events.PromptUnattended{Prompt: "p2"})
			f.append(events.WriterLedger, answering("p2"))
			f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
			f.e(events.TurnCompleted{Turn: "t1"})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", ""))
		}, receipt: events.PromptDelivered{Prompt: "p1"}, gone: true},
		"a turn for an answer whose turn has failed": {begin: func(f *feeder) {
			f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}})
			f.append(events.WriterReconciler, f.s.Continue("p1", "t1", ""))
		}, receipt: events.PromptDelivered{Prompt: "p1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := undelivered(t, true)
			c.begin(f)
			if f.s.Pending.Turn == nil {
				t.Fatal("no turn is requested")
			}
			requested := f.s.Pending.Turn.ID
			f.e(c.receipt)
			if p := f.s.Pending.Turn; (p == nil) != c.gone || p != nil && p.ID != requested {
				t.Errorf("after the receipt %+v is requested", p)
			}
		})
	}
}

// TestTheLastTurnIsKnown: 50 endings came after that of the last turn, so the turn's own ending is not kept. A stop of
// the turn counts, and its queued message waits. No turn begins again under the turn's id, nothing opens in the turn,
// and its last report of usage counts.
func TestTheLastTurnIsKnown(t *testing.T) {
	crowded := func(t *testing.T) *feeder {
		f := newFeeder(t)
		f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Synthetic: true})
		f.e(events.TurnCompleted{Turn: "t1"})
		for i := range session.RecentMax {
			call := fmt.Sprintf("c%d", i)
			f.e(events.ToolStarted{Call: call, Name: "bash", Background: true})
			f.e(events.ToolCompleted{Call: call})
		}
		if _, kept := f.s.Ended(session.EntityTurn, "t1"); kept {
			t.Fatal("the ending of t1 is still kept")
		}
		return f
	}
	t.Run("stop", func(t *testing.T) {
		f := crowded(t)
		f.append(events.WriterCompaction, events.MessageAccepted{Message: "m1", Content: []byte(`"x"`)})
		d, err := f.s.Stop(request.Stop{Ref: f.s.Ref(), By: "ada"})
		if err != nil || len(d.Facts) != 1 {
			t.Fatalf("%+v %v", d, err)
		}
		f.append(events.WriterLedger, d.Facts...)
		if f.s.QueueMoves() || f.s.StoppedSeq != f.s.Seq || f.s.Pending.Stop == nil {
			t.Errorf("the stop is ignored: %+v", f.s.Ignored.Last)
		}
	})
	t.Run("usage", func(t *testing.T) {
		f := crowded(t)
		f.e(events.UsageReported{Turn: "t1", Tokens: events.Tokens{Input: 7}})
		if f.s.Usage == nil {
			t.Error("the report is lost")
		}
	})
	for name, c := range map[string]struct {
		fact events.Fact
		why  string
	}{
		"start":   {events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Synthetic: true}, session.WhyClosedID},
		"request": {events.TurnRequested{Turn: "t1", Cause: events.CauseResume}, session.WhyClosedID},
		"end":     {events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "quota"}}, session.WhyClosedID},
		"call":    {events.ToolStarted{Call: "late", Turn: "t1", Name: "bash"}, session.WhyTurnEnded},
	} {
		t.Run(name, func(t *testing.T) {
			f := crowded(t)
			by := events.WriterHarness
			if name == "request" {
				by = events.WriterRetry
			}
			f.append(by, c.fact)
			if l := f.s.Ignored.Last; l == nil || l.Why != c.why {
				t.Errorf("ignored: %+v, want %s", l, c.why)
			}
		})
	}
}

// TestASecondStop: a stop is not confirmed, and a service has requested or scheduled a turn since. A second stop is
// stored and takes that back. A third one appends nothing.
func TestASecondStop(t *testing.T) {
	for name, facts := range map[string]func(f *feeder){
		"requested": func(f *feeder) {
			f.append(events.WriterReconciler, events.TurnRequested{Turn: "t2", Cause: events.CauseAnswer, OfTurn: "t1"})
		},
		"scheduled": func(f *feeder) {
			f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
			f.append(events.WriterRetry, events.RetryScheduled{Turn: "t1", Attempt: 1, DueAt: storyBegin})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
			f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
			facts(f)
			for _, want := range []int{1, 0} {
				d, err := f.s.Stop(request.Stop{Ref: f.s.Ref(), By: "ada"})
				if err != nil || len(d.Facts) != want {
					t.Fatalf("%+v %v, want %d facts", d, err, want)
				}
				f.append(events.WriterLedger, d.Facts...)
			}
			if f.s.Pending.Turn != nil || f.s.RetryPlanned() {
				t.Errorf("requested: %+v, retry: %+v", f.s.Pending.Turn, f.s.Retry)
			}
		})
	}
}
