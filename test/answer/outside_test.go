package answer_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	deafOneIn = 4  // histories whose agent begins a turn of its own for each turn that is requested for decisions
	manyAsked = 20 // questions of one turn, all with a receipt
	oldOneIn  = 15 // decisions of a ledger from before the rule, which wrote no owed
)

// seen counts what the histories must have.
type seen struct {
	several   int // steps with several decisions that no agent has
	itself    int // turns that a process began without a request while decisions were undelivered
	late      int // receipts after the turn that asked had completed
	policies  int // prompts that a process decided by itself
	crowds    int // times that so much ended at once that earlier endings are forgotten
	outside   int // questions outside of any turn, and in calls in the background
	gaveUp    int // Asks that gave up
	unasked   int // prompts that a process adopted without an Ask
	again     int // Asks again under the same id
	bounded   int // times that recovery had requested as many turns for decisions as it may
	old       int // decisions without owed
	twice     int // receipts that were repeated
	stale     int // receipts of an epoch that has ended
	released  int // messages that a person took back after a stop
	reopened  int // answers that a person took back
	dismissed int // prompts that a person dismissed
	apart     int // times that so much ended outside of turns that earlier endings are forgotten
	limited   int // questions with a deadline
	oldViews  int // turns that a client took from an old view
	many      int // turns that ask many questions
	apartOnly int // adoptions of a part of a turn that is not run
	// receipts that a process repeats with the claim of its session
	afterClaim int
	waited     int // decisions that a process waited for when it claimed its session again
	stopped
}

func (s *seen) add(o seen) {
	s.several, s.itself, s.late = s.several+o.several, s.itself+o.itself, s.late+o.late
	s.policies, s.unasked = s.policies+o.policies, s.unasked+o.unasked
	s.crowds, s.outside, s.gaveUp, s.again = s.crowds+o.crowds, s.outside+o.outside, s.gaveUp+o.gaveUp, s.again+o.again
	s.bounded, s.old, s.twice = s.bounded+o.bounded, s.old+o.old, s.twice+o.twice
	s.stale, s.released = s.stale+o.stale, s.released+o.released
	s.reopened, s.apart = s.reopened+o.reopened, s.apart+o.apart
	s.dismissed, s.limited = s.dismissed+o.dismissed, s.limited+o.limited
	s.oldViews, s.afterClaim, s.waited = s.oldViews+o.oldViews, s.afterClaim+o.afterClaim, s.waited+o.waited
	s.apartOnly, s.many = s.apartOnly+o.apartOnly, s.many+o.many
	s.stopped.add(o.stopped)
}

// enough reports whether so many histories have what the test is about.
func (s *seen) enough(histories int) bool {
	for _, c := range [...]struct{ n, oneIn int }{{s.several, 10}, {s.itself, 20}, {s.late, 1000}, {s.policies, 20},
		{s.crowds, 50}, {s.outside, 4}, {s.gaveUp, 10}, {s.again, 50}, {s.bounded, 100}, {s.old, 20}, {s.twice, 50},
		{s.stale, 50}, {s.released, 200}, {s.reopened, 200}, {s.dismissed, 20}, {s.apart, 20}, {s.limited, 4},
		{s.oldViews, 150}, {s.afterClaim, 200}, {s.waited, 200}, {s.unasked, 400},
		{s.apartOnly, 100}, {s.many, 100}} {
		if c.n < histories/c.oneIn {
			return false
		}
	}
	return s.stopped.enough(histories)
}

// outlives reports whether the owner itself is to take in the decision about a prompt: the prompt belongs to no turn,
// or to a call in the background.
func (w *world) outlives(p *session.Prompt) bool {
	c := w.st.Tools[p.Call]
	return p.Epoch == w.st.Epoch && (p.Turn == "" && p.Call == "" || c != nil && c.Background)
}

// givesUp returns an Ask at its deadline. The process says that nothing waits for the decision.
func (w *world) givesUp() {
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		if w.alive() && w.outlives(w.st.Prompts[id]) && !w.absent[id] {
			w.gaveUp++
			w.process(events.PromptUnattended{Prompt: id})
			return
		}
	}
}

// asksNothing has the process leave some prompts alone that it has adopted, with their calls or alone: it does not ask
// again, and says that nothing waits for the decisions. A person may be quicker.
func (w *world) asksNothing() {
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		p := w.st.Prompts[id]
		if p == nil {
			// a decision about another prompt has delivered it
			continue
		}
		c := w.st.Tools[p.Call]
		has := p.Epoch == w.st.Epoch || c != nil && c.Epoch == w.st.Epoch
		if !has || p.Turn != "" && (c == nil || !c.Background) || w.absent[id] || w.chance(2) {
			continue
		}
		if w.chance(3) {
			w.settlePrompt()
		}
		if w.st.Prompts[id] != nil {
			w.unasked++
			w.process(events.PromptUnattended{Prompt: id})
		}
	}
}

// asksAgain calls Ask again for a prompt that was given up. An open prompt is requested again; a decision is returned
// at once, with the receipt.
func (w *world) asksAgain() {
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		p := w.st.Prompts[id]
		if !w.alive() || !w.absent[id] || p.Epoch != w.st.Epoch {
			continue
		}
		w.again++
		if p.Status == session.Awaiting {
			w.process(w.repeated(id))
			return
		}
		delete(w.absent, id)
		w.receives(id)
		return
	}
}

// receives has an Ask return a decision, and appends the receipt, or the end of the call that asked.
func (w *world) receives(id string) {
	p := w.st.Prompts[id]
	w.had[id] = w.st.Epoch
	if w.runs != nil {
		w.runs.context[id] = true
	}
	if w.st.Tools[p.Call] != nil {
		w.process(events.ToolCompleted{Call: p.Call, Output: json.RawMessage(`"answered"`)})
		return
	}
	// Outside of a turn the receipt is the delivery, unless a turn brings the decision, or has brought it in vain.
	if p.Turn == "" && !w.brought(id) {
		w.reached[id] = true
		delete(w.owed, id)
	}
	w.process(events.PromptDelivered{Prompt: id})
}

// brought reports whether the open turn carries a decision, or the last turn did and has not completed.
func (w *world) brought(id string) bool {
	if _, carried := w.st.Carries(id); carried {
		return true
	}
	l := w.st.LastTurn
	return l != nil && slices.ContainsFunc(l.Prompts, func(c session.Carried) bool { return c.Prompt == id })
}

// repeats appends a receipt that does not count: a second one, or one of the process that owned the session before.
func (w *world) repeats() {
	if !w.alive() {
		return
	}
	if w.chance(2) && w.st.Epoch > 1 {
		for _, id := range slices.Sorted(maps.Keys(w.owed)) {
			w.stale++
			w.inVain(w.st.Epoch-1, id)
			return
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.had)) {
		if c, carried := w.st.Carries(id); carried && c.Had < w.st.Epoch {
			// the owner of a turn that carries it may give the receipt
			continue
		}
		if w.st.Prompts[id] == nil {
			w.twice++
			w.inVain(w.st.Epoch, id)
			return
		}
	}
}

// inVain appends a receipt that the fold has to ignore.
func (w *world) inVain(epoch uint64, id string) {
	ignored := w.st.Ignored.Count
	w.commit(events.WriterHarness, events.HarnessSource(ref.Harness, strconv.Itoa(w.inc)), epoch,
		[]events.Fact{events.PromptDelivered{Prompt: id}})
	if w.st.Ignored.Count != ignored+1 {
		w.fail("a receipt for prompt %s in epoch %d counts", id, epoch)
	}
}

// unread reports whether a call may not end: its question was decided after its Ask had given up, and no agent has
// that decision.
func (w *world) unread(call string) bool {
	for id, c := range w.callOf {
		if c == call && w.absent[id] && w.owed[id] != 0 && (w.runs == nil || !w.runs.context[id]) {
			return true
		}
	}
	return false
}

// asOld returns what a ledger from before the rule wrote: decisions without owed.
func (w *world) asOld(facts []events.Fact) []events.Fact {
	if !w.chance(oldOneIn) {
		return facts
	}
	w.old++
	facts = slices.Clone(facts)
	for i, f := range facts {
		switch f := f.(type) {
		case events.PromptAnswered:
			f.Owed = false
			facts[i] = f
		case events.PromptRejected:
			f.Owed = false
			facts[i] = f
		}
	}
	return facts
}

// continues counts the turns that recovery requests for decisions, until a person acts (V15).
func (w *world) continues(f events.Fact, by events.Writer) {
	switch f := f.(type) {
	case events.TurnRequested:
		switch {
		case w.st.Pending.Turn.By != "":
			w.continued = 0
		case f.Cause == events.CauseAnswer && by == events.WriterReconciler:
			w.continued++
		}
		if w.continued == session.ContinuationsMax {
			w.bounded++
		}
		if w.continued > session.ContinuationsMax {
			w.fail("V15: turn %s is the %dth that is requested for decisions since a person acted", f.Turn, w.continued)
		}
	case events.PromptAnswered, events.PromptRejected:
		if by == events.WriterLedger {
			w.continued = 0
		}
	case events.MessageAccepted:
		if by != events.WriterHarness && !f.Synthetic {
			w.continued = 0
		}
	}
}

// asksMany makes the running turn ask more questions than a person answers at a sitting. A person answers all of them,
// and the process has each answer.
func (w *world) asksMany() {
	if !w.alive() || w.runs == nil || w.st.BlockedBy() != "" {
		return
	}
	w.many++
	var asks, gets []events.Fact
	for range manyAsked {
		id := w.id("p")
		asks = append(asks, events.PromptRequested{Prompt: id, Turn: w.runs.id, PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
		gets = append(gets, events.PromptDelivered{Prompt: id})
	}
	w.process(asks...)
	turn := w.runs
	for _, f := range asks {
		id := f.Subject()
		d, err := w.st.Answer(request.Answer{Ref: ref, Prompt: id, By: "ada"}, w.source)
		if err != nil {
			w.fail("prompt %s waits and cannot be answered: %v", id, err)
			return
		}
		w.person(events.WriterLedger, d.Facts...)
		w.had[id], turn.context[id] = w.st.Epoch, true
	}
	w.process(gets...)
}
