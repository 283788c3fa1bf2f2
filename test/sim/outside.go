package sim

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Agents do so, one in so many acts or sessions.
const (
	outsideOneIn = 25 // ask a question that belongs to no turn
	giveUpOneIn  = 4  // have an Ask return at its deadline
	unaskedOneIn = 2  // adopt a prompt that outlives its turn, or its call, and do not ask
	adoptOneIn   = 2  // adopt late what an earlier process has left open
	againOneIn   = 25 // call Ask again under the same id
	deafOneIn    = 2  // sessions whose agent takes no request for decisions
	oldOneIn     = 60 // decisions of a ledger that does not write owed
	refuseOneIn  = 20 // refuse a decision, or one that the open turn brings
	repeatOneIn  = 40 // store a receipt once more, or under an epoch that has ended
)

// In a world of heirs, one in so many, processes are replaced often, and adopt what their predecessors asked outside of
// turns. When all trouble is over, people answer some of what is open.
const (
	heirsOneIn        = 3
	heirsOutsideOneIn = 2
	heirsKillOneIn    = 40
	heirsAnswerOneIn  = 2
)

// outsideOneIn is how often agents ask a question that belongs to no turn.
func (w *world) outsideOneIn() int {
	if w.heirs {
		return heirsOutsideOneIn
	}
	return outsideOneIn
}

// replaces kills a process in a world of heirs, and starts the next one at once.
func (w *world) replaces(p *process) bool {
	if !w.heirs || !p.alive || !w.chance(heirsKillOneIn) {
		return false
	}
	p.kill()
	w.spawn(p.harness, p)
	return true
}

// answerSome has people answer open questions in a world of heirs, when all trouble is over. It reports whether they
// have answered any.
func (w *world) answerSome() (answered bool) {
	if !w.heirs {
		return false
	}
	for _, r := range w.log.sessions {
		commits := len(w.log.bySession[r])
		if w.checked[r] == commits {
			// nothing is new: people have looked at each of its questions
			continue
		}
		w.checked[r] = commits
		st := w.current(r)
		for _, id := range st.PendingPrompts() {
			if w.asked[decision{r, id}] {
				continue
			}
			w.asked[decision{r, id}] = true
			if !w.chance(heirsAnswerOneIn) {
				continue
			}
			d, err := st.Answer(request.Answer{Ref: r, Prompt: id,
				Answers: []events.Answer{{Question: "q", Text: "yes"}}, By: w.people[0].name}, w.log.source)
			if err != nil {
				// its deadline has passed
				continue
			}
			by := from(events.PersonSource(w.people[0].name))
			if !w.append("person", r, events.WriterLedger, by, st.Epoch, st.Seq, d.Facts) {
				w.fail("an answer to prompt %s of %s lost a race, and there is no other writer", id, r)
			}
			w.log.foldOn(st)
			answered = true
		}
	}
	return answered
}

// absence is how far a process is that has given an Ask up, or has adopted a prompt and does not ask.
type absence uint8

const (
	attends  absence = iota
	gaveUp           // the Ask has returned, and the log does not say so yet
	recorded         // the log says that nothing waits for the decision
)

// outlives reports whether a prompt belongs to no turn, or to a call that outlives its turn. Only the process can take
// the decision about such a prompt in.
func outlives(st *session.State, q *session.Prompt) bool {
	c := st.Tools[q.Call]
	return q.Turn == "" || c != nil && c.Background
}

// askOutside asks a question that belongs to no turn.
func (p *process) askOutside(st *session.State) {
	p.w.report.Outside++
	p.append(st, st.Epoch, p.question("")...)
}

// asksNothing leaves some prompts alone that the process has just adopted, or whose call it has: it does not ask again.
func (p *process) asksNothing(st *session.State) {
	for _, id := range sorted(st.Prompts) {
		if q := st.Prompts[id]; answersFor(st, q) && outlives(st, q) && p.w.chance(unaskedOneIn) {
			p.leaves(st, id)
		}
	}
}

// leaves has no Ask wait for a prompt that the process has adopted. The log says so in a commit of its own: the process
// may die, or a person may decide, before that.
func (p *process) leaves(st *session.State, prompt string) {
	p.w.report.Unasked++
	p.absent[decision{st.Ref(), prompt}] = gaveUp
	if p.w.cfg.Bug == UnaskedNotRecorded {
		p.absent[decision{st.Ref(), prompt}] = recorded
	}
}

// adoptsLate adopts what an earlier process has left open in a session that this process has already: a prompt, or a
// call with its prompts. It asks for none of them.
func (p *process) adoptsLate(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		q, c := st.Prompts[id], st.Tools[st.Prompts[id].Call]
		if answersFor(st, q) || !outlives(st, q) || c == nil && q.Status != session.Awaiting {
			continue
		}
		var adopted events.Fact = again(id, q)
		if c != nil && (q.Status != session.Awaiting || p.w.chance(2)) {
			adopted = events.ToolStarted{Call: q.Call, Turn: c.Turn, Name: c.Name}
		}
		others := slices.DeleteFunc(sorted(st.Prompts), func(id string) bool { return answersFor(st, st.Prompts[id]) })
		if !p.append(st, st.Epoch, adopted) {
			return true
		}
		for _, id := range others {
			if q := st.Prompts[id]; q != nil && answersFor(st, q) && outlives(st, q) {
				p.leaves(st, id)
			}
		}
		return true
	}
	return false
}

// answersFor reports whether the decision about a prompt is left to the owner: it has the prompt, or its call.
func answersFor(st *session.State, q *session.Prompt) bool {
	c := st.Tools[q.Call]
	return q.Epoch == st.Epoch || c != nil && c.Epoch == st.Epoch
}

// givesUp returns an Ask at its deadline, if one waits that no turn waits for. The process may have read the decision,
// or not.
func (p *process) givesUp(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		d := decision{st.Ref(), id}
		if q := st.Prompts[id]; q.Epoch == st.Epoch && outlives(st, q) && p.absent[d] == attends {
			p.absent[d] = gaveUp
			p.w.report.GaveUp++
			return p.appendUnattended(st)
		}
	}
	return false
}

// appendUnattended writes down that nothing waits for the decision about a prompt.
func (p *process) appendUnattended(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		d := decision{st.Ref(), id}
		if p.absent[d] == gaveUp && answersFor(st, st.Prompts[id]) {
			if p.append(st, st.Epoch, events.PromptUnattended{Prompt: id}) {
				p.absent[d] = recorded
			}
			return true
		}
	}
	return false
}

// asksAgain calls Ask under an id that was given up. The request takes back that nothing waits; a decision is returned
// at once.
func (p *process) asksAgain(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		d, q := decision{st.Ref(), id}, st.Prompts[id]
		if p.absent[d] == attends || q.Epoch != st.Epoch {
			continue
		}
		p.w.report.Again++
		delete(p.absent, d)
		if q.Status == session.Awaiting {
			p.append(st, st.Epoch, again(id, q))
			return true
		}
		return p.takesDecisions(st)
	}
	return false
}

// repeats stores the receipt for a decision that an agent has once more, or that for one that waits under the epoch
// before. The first changes nothing but, after a new claim, the epoch of the receipt. The second is ignored.
func (p *process) repeats(st *session.State) bool {
	if stale := st.Epoch > 1 && p.w.chance(2); stale {
		for _, id := range sorted(st.Prompts) {
			if st.Prompts[id].Status != session.Awaiting && p.receipt(st, st.Epoch-1, id) {
				if p.w.report.Stale++; st.Prompts[id] == nil {
					p.w.fail("V4: a receipt of epoch %d for prompt %s counts in epoch %d of %s", st.Epoch-1, id,
						st.Epoch, st.Ref())
				}
				return true
			}
		}
		return false
	}
	for i := range st.Recent {
		e := &st.Recent[i]
		had := e.Entity == session.EntityPrompt && !e.DeliveredAt.IsZero() && e.Epoch == st.Epoch
		if had && p.receipt(st, st.Epoch, e.ID) {
			p.w.report.Twice++
			return true
		}
	}
	return false
}

// receipt stores a receipt that nothing acknowledges, if the log has nothing newer.
func (p *process) receipt(st *session.State, epoch uint64, prompt string) bool {
	ev := events.New(p.w.id("e"), p.source(), st.Ref(), epoch, p.w.now, events.PromptDelivered{Prompt: prompt})
	_, ok := p.w.log.append(st.Ref(), events.WriterHarness, st.Seq, p.w.now, []events.Event{ev}, false)
	if ok {
		p.w.log.foldOn(st)
	}
	return ok
}

// again is the request of a prompt that is open, with what the document keeps of it.
func again(id string, q *session.Prompt) events.PromptRequested {
	return events.PromptRequested{Prompt: id, Turn: q.Turn, Call: q.Call, PromptKind: q.Kind, Delivery: q.Delivery,
		OnOwnerLoss: q.OnOwnerLoss, Blocking: &q.Blocking}
}

// begins is how the process takes the requested turn. A deaf agent meets a request for decisions with a turn of its
// own, which names nothing.
func (p *process) begins(st *session.State) events.TurnStarted {
	if st.Pending.Turn.Cause == events.CauseAnswer && p.w.deaf[st.Ref()] {
		p.w.report.Itself++
		return p.ownTurn()
	}
	return p.w.cfg.Bug.Started(st)
}

// unread reports whether a call may not be ended: its question was decided after its Ask had given up, and the open
// turn has not brought the decision to the agent.
func (p *process) unread(st *session.State, call string) bool {
	for id, q := range st.Prompts {
		_, carried := st.Carries(id)
		brought := carried && q.Turn != st.Turn.ID
		if q.Call == call && (q.Status == session.Answered || q.Status == session.Rejected) && !brought &&
			p.absent[decision{st.Ref(), id}] != attends {
			return true
		}
	}
	return false
}

// readsOthers reports whether the call of a question may end with its decision: the agent has, or now gets, what was
// decided about the other questions of the call, and waits for none of them.
func (p *process) readsOthers(st *session.State, prompt string) bool {
	call := st.Prompts[prompt].Call
	if c := st.Tools[call]; c == nil || c.Epoch != st.Epoch {
		// the end of the call is not the receipt
		return true
	}
	for id, q := range st.Prompts {
		if q.Call != call || id == prompt {
			continue
		}
		_, brought := st.Carries(id)
		if q.Status == session.Awaiting || p.absent[decision{st.Ref(), id}] != attends && !brought {
			return false
		}
	}
	return true
}

// handWithOthers hands out a decision, and those about the other questions of the call that ends with it.
func (p *process) handWithOthers(st *session.State, prompt string) {
	call := st.Prompts[prompt].Call
	c := st.Tools[call]
	p.hand(st.Ref(), prompt)
	for _, id := range sorted(st.Prompts) {
		if c != nil && c.Epoch == st.Epoch && id != prompt && st.Prompts[id].Call == call {
			p.hand(st.Ref(), id)
		}
	}
}

// refuse says that the harness cannot use a decision: people see that.
func (p *process) refuse(st *session.State, prompt string) {
	if p.append(st, st.Epoch, events.PromptDelivered{Prompt: prompt, Refused: "no"}) {
		p.w.delivered[decision{st.Ref(), prompt}] = true
		p.w.report.Refused++
	}
}

// refusesBrought refuses a decision that the open turn brings, and of which no owner has given the receipt.
func (p *process) refusesBrought(st *session.State) bool {
	if st.Turn == nil || st.Turn.Epoch != st.Epoch {
		return false
	}
	for _, c := range st.Turn.Prompts {
		if c.Had == 0 {
			p.refuse(st, c.Prompt)
			return true
		}
	}
	return false
}

// asOld is what a ledger from before the rule writes: a decision without owed.
func asOld(facts []events.Fact) []events.Fact {
	old := make([]events.Fact, len(facts))
	for i, f := range facts {
		switch f := f.(type) {
		case events.PromptAnswered:
			f.Owed = false
			old[i] = f
		case events.PromptRejected:
			f.Owed = false
			old[i] = f
		default:
			old[i] = f
		}
	}
	return old
}
