package harness

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// askReturn is what an Ask has returned.
type askReturn struct {
	answer Answer
	err    error
}

// answeredOnItsWay has a first Ask for p1 give up, with the fact about that in the queue, and a second Ask wait. Then
// the answer is read. Nothing is written until the caller receives from x.s.writing. end ends the context of the second
// Ask.
func (x *inside) answeredOnItsWay(background bool) (end func(), out chan askReturn) {
	x.t.Helper()
	p, turn := Prompt{ID: "p1", OnOwnerLoss: events.LossKeep}, x.turn(StartOptions{ID: "t1"})
	p.Questions = []events.Question{{ID: "q", Question: "?"}}
	ask := x.s.Ask
	if background {
		x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "watch", Background: true})
		ask, p.Call = turn.Ask, "c1"
	}
	start := func() (func(), chan askReturn) {
		ctx, cancel := context.WithCancel(x.ctx)
		x.t.Cleanup(cancel)
		out := make(chan askReturn, 1)
		go func() {
			a, err := ask(ctx, p)
			out <- askReturn{a, err}
		}()
		return cancel, out
	}
	releaseUnused, first := start()
	natstest.Until(x.t, "the prompt", func() bool { return x.s.State().Prompts["p1"] != nil })
	x.s.writing <- struct{}{}
	releaseUnused()
	if r := <-first; !errors.Is(r.err, context.Canceled) {
		x.t.Fatal(r.err)
	}
	x.queued(1)
	end, out = start()
	x.queued(2)
	x.appendUnnudged(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada", Owed: true,
		Answers: []events.Answer{{Question: "q", Text: "blue"}}})
	if err := x.s.catchUp(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	return end, out
}

// countKinds counts the facts of each kind in the log, behind all that was queued.
func (x *inside) countKinds() map[events.Kind]int {
	x.t.Helper()
	for _, id := range []string{"m1", "m2"} {
		m := events.MessageAccepted{Message: id, Synthetic: true, Content: json.RawMessage(`"x"`)}
		if err := x.s.Append(x.ctx, m); err != nil {
			x.t.Fatal(err)
		}
	}
	cs, err := x.peer.Log.Read(x.ctx, x.s.ref, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	counts := map[events.Kind]int{}
	for i := range cs {
		for _, e := range cs[i].Events {
			counts[e.Kind]++
		}
	}
	return counts
}

// TestTheAnswerThatAnAskReturns: a first Ask has given up, and the fact about that is not stored yet. A second Ask
// waits, and its answer is read before it returns. The agent gets the answer once: from the second Ask, or, if its
// context ends at that moment, by a turn. A claim after a lost lease has no receipt for an answer that no Ask has
// returned: it says that this process takes the answer in.
func TestTheAnswerThatAnAskReturns(t *testing.T) {
	for name, ends := range map[string]bool{"it returns": false, "its context ends": true} {
		for of, background := range map[string]bool{"no call: ": false, "a call in the background: ": true} {
			t.Run(of+name, func(t *testing.T) {
				x := newInside(t)
				end, out := x.answeredOnItsWay(background)
				if f := x.s.keptDecision("p1"); f != (events.PromptAttended{Prompt: "p1"}) {
					t.Errorf("a claim would say %+v", f)
				}
				if ends {
					end()
				} else {
					<-x.s.writing
				}
				r := <-out
				if ends {
					<-x.s.writing
				}
				if ends == (r.err == nil) || !ends && r.answer.Status != session.Answered {
					t.Errorf("the Ask returns %+v, %v", r.answer, r.err)
				}
				if background && !ends {
					if err := x.s.Call("c1").Complete(x.ctx, "blue"); err != nil {
						t.Error(err)
					}
				}
				n := x.countKinds()
				if (n["prompt.unattended"] == 0) == ends || n["prompt.delivered"] > 0 != (!ends && !background) {
					t.Errorf("stored are %v", n)
				}
				if len(x.s.returning) > 0 || len(x.s.waiters) > 0 {
					t.Errorf("returning %v, waiting %v", x.s.returning, x.s.waiters)
				}
				want := events.Fact(events.PromptDelivered{Prompt: "p1"})
				if ends {
					want = nil
				}
				if f := x.s.keptDecision("p1"); f != want {
					t.Errorf("after that a claim would say %+v", f)
				}
			})
		}
	}
}
