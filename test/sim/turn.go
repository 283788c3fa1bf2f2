package sim

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// contextLimit is how many tokens fit into a conversation of the make-believe world.
const contextLimit = 100_000

// policy is what a session is opened with: bounds so small that they are met, and times so short that they pass.
func (w *world) policy() *events.PolicyPatch {
	p := &events.PolicyPatch{ResumeMax: events.Set(w.rng.IntN(4)), RetryMax: events.Set(w.rng.IntN(4))}
	if w.chance(6) {
		p.Resume = events.Set(events.ResumeHold)
	}
	if w.chance(2) {
		p.StallAfterS = events.Set(int64(4 + w.rng.IntN(20)))
	}
	if w.chance(3) {
		p.IdleCompactionAfterS = events.Set(int64(2 + w.rng.IntN(10)))
	}
	return p
}

// Kinds of failures. Some are worth another try, some are not.
var (
	turnFailures = []string{"server_error", "server_error", "rate_limit", "empty_output", "stream_truncated",
		"authentication", "context_exceeded", "quota"}
	compactionFailures = []string{"server_error", "server_error", "bad_summary", "model_not_found", "authentication",
		"context_exceeded"}
)

const retryAfterMaxMS = 20_000

func (w *world) failure(kinds []string) events.Failure {
	f := events.Failure{Kind: kinds[w.rng.IntN(len(kinds))], Text: "no"}
	if f.Kind == "rate_limit" {
		f.RetryAfterMS = w.rng.Int64N(retryAfterMaxMS)
	}
	return f
}

// Started is how the requested turn is taken: it names what the work view names, also what was decided or given up
// since the request.
func (b Bug) Started(st *session.State) events.TurnStarted {
	t := st.Pending.Turn
	names := namedByRequest(t)
	for _, id := range st.Carry() {
		if !slices.Contains(names, id) && b != AnswerAlone {
			names = append(names, id)
		}
	}
	first := t.Prompt
	// the harness has that decision, or cannot use it
	if !slices.Contains(names, first) {
		first = ""
		if len(names) > 0 {
			first = names[0]
		}
	}
	return events.TurnStarted{Turn: t.ID, Cause: t.Cause, OfTurn: t.OfTurn, Message: t.Message, Prompt: first,
		Prompts: names, Attempt: t.Attempt}
}

// takeWork takes a request in a session without an owner, in one commit. It reports whether there was one.
func (p *process) takeWork() bool {
	for _, r := range p.w.log.sessions {
		d := p.w.docs[r]
		if r.Harness != p.harness || p.sessions[r] != nil || d == nil || d.owned {
			continue
		}
		st := d.state()
		if st.Owned || !st.Claimable(p.incarnation) || st.Pending == (session.Pending{}) {
			continue
		}
		facts := []events.Fact{events.SessionClaimed{Incarnation: p.incarnation}}
		switch {
		case st.Pending.Compaction != nil:
			facts = append(facts, events.CompactionStarted{Compaction: st.Pending.Compaction.ID})
		case st.Pending.Turn != nil:
			facts = append(facts, p.begins(st))
		}
		p.keep(st)
		if !p.append(st, st.Epoch+1, facts...) {
			p.forget(r)
		}
		return true
	}
	return false
}

// compacts says whether a compaction is under way in this process.
func compacts(st *session.State) bool {
	return st.Compaction.Running() && st.Compaction.Epoch == st.Epoch
}

// compact ends a compaction, sooner or later.
func (p *process) compact(st *session.State) {
	switch n := p.w.rng.IntN(6); {
	case n < 2:
		p.append(st, st.Epoch, events.CompactionCompleted{Compaction: st.Compaction.ID,
			UsedAfter: int64(p.w.rng.IntN(contextLimit))})
	case n < 4:
		p.append(st, st.Epoch, events.CompactionFailed{Compaction: st.Compaction.ID,
			Error: p.w.failure(compactionFailures)})
	}
}

// finish brings what this process has to an end: it takes all work, and nothing fails. It says whether there was
// anything.
func (p *process) finish() bool {
	p.settleDoubts()
	if p.takeWork() {
		return true
	}
	for _, r := range slices.Clone(p.order) {
		if st := p.sessions[r]; st.Closed == nil && p.finishOne(st) {
			return true
		}
	}
	return false
}

func (p *process) finishOne(st *session.State) bool {
	p.w.log.foldOn(st)
	if !st.Owned || st.Incarnation != p.incarnation {
		p.forget(st.Ref())
		return true
	}
	switch {
	case st.Pending.Stop != nil:
		p.append(st, st.Epoch, events.TurnStopped{Turn: st.Pending.Stop.Turn, Actor: st.Pending.Stop.Actor})
	case p.takesDecisions(st), p.appendUnattended(st):
	case st.Pending.Compaction != nil:
		p.append(st, st.Epoch, events.CompactionStarted{Compaction: st.Pending.Compaction.ID})
	case compacts(st):
		p.append(st, st.Epoch, events.CompactionCompleted{Compaction: st.Compaction.ID, UsedAfter: 1})
	case st.Pending.Turn != nil:
		p.append(st, st.Epoch, p.begins(st))
	case st.Turn != nil && st.Turn.Epoch == st.Epoch && st.BlockedBy() == "":
		p.append(st, st.Epoch, events.TurnCompleted{Turn: st.Turn.ID, Finish: "stop"})
	default:
		return false
	}
	return true
}

// confirms gives the receipt of a stop. A process that ends its turn for a compaction may not have read that a person
// has stopped the turn, too.
func (p *process) confirms(st *session.State) {
	stop, t := st.Pending.Stop, st.Turn
	actor := stop.Actor
	if actor == events.ActorPerson && t != nil && t.ID == stop.Turn && t.Compaction != "" && p.w.chance(2) {
		actor = events.ActorCompaction
		p.w.report.WoundDown++
	}
	p.append(st, st.Epoch, events.TurnStopped{Turn: stop.Turn, Actor: actor})
}

// act does one lawful thing in a session, or a foolish one now and then.
func (p *process) act(st *session.State) {
	switch {
	case p.w.chance(60):
		p.w.log.appendRaw(st.Ref(), events.WriterHarness, p.w.log.last(st.Ref()), p.w.now, []byte(`{"not":"a batch"}`))
	case p.w.chance(150):
		p.append(st, st.Epoch, events.SessionClosed{Reason: "finished"})
	case p.w.chance(120):
		p.append(st, st.Epoch, events.SessionReleased{Reason: "shutdown"})
	case st.Pending.Stop != nil && st.Turn != nil && st.Turn.Epoch == st.Epoch && p.w.chance(3):
		// it has not heard of it yet
		p.inTurn(st)
	case st.Pending.Stop != nil:
		p.confirms(st)
	case st.Turn != nil && st.Turn.Epoch == st.Epoch && p.w.chance(carelessOneIn):
		// it has not read what was decided, and may end its turn without that
		p.inTurn(st)
	case p.w.chance(giveUpOneIn) && p.givesUp(st), p.appendUnattended(st):
	case p.w.chance(refuseOneIn) && p.refusesBrought(st):
	case p.w.chance(againOneIn) && p.asksAgain(st):
	case p.w.chance(adoptOneIn) && p.adoptsLate(st):
	case p.takesDecisions(st):
	case p.w.chance(lateOneIn) && p.receivesLate(st):
	case p.w.chance(repeatOneIn) && p.repeats(st):
	case len(st.Prompts) < outsideMax && p.w.chance(p.w.outsideOneIn()):
		p.askOutside(st)
	case st.Turn == nil && p.w.chance(itselfOneIn):
		p.byItself(st)
	case st.Pending.Compaction != nil:
		p.append(st, st.Epoch, events.CompactionStarted{Compaction: st.Pending.Compaction.ID})
	case compacts(st):
		p.compact(st)
	case st.Pending.Turn != nil:
		p.append(st, st.Epoch, p.begins(st))
	case st.Turn == nil || st.Turn.Epoch != st.Epoch:
		// else people send
		if len(p.w.services) == 0 || p.w.chance(6) {
			m := p.w.id("m")
			p.append(st, st.Epoch, events.MessageAccepted{Message: m, Content: json.RawMessage(`"hello"`)},
				events.TurnStarted{Turn: p.w.id("t"), Cause: events.CauseMessage, Message: m})
		}
	default:
		p.inTurn(st)
	}
}

// Agents do so, one in so many acts.
const (
	carelessOneIn = 6  // act in a turn without having read what was decided
	itselfOneIn   = 12 // start a turn without a request
	lateOneIn     = 4  // have an Ask return after its turn has ended
)

// outsideMax is how many prompts a session may have before its agent asks no more outside of turns.
const outsideMax = 3

// decidesItself makes a process decide one of its own prompts, by a policy.
func (p *process) decidesItself(st *session.State) {
	for _, id := range st.PendingPrompts() {
		if st.Prompts[id].Epoch == st.Epoch {
			p.append(st, st.Epoch, events.PromptAnswered{Prompt: id,
				Answers: []events.Answer{{Question: "q", Text: "auto"}}, By: "policy"})
			return
		}
	}
}

// receivesLate returns an Ask whose turn has ended before the process had read the decision, and gives the receipt.
func (p *process) receivesLate(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		q := st.Prompts[id]
		over := q.Turn != "" && (st.Turn == nil || st.Turn.ID != q.Turn) && st.Tools[q.Call] == nil
		if q.Status == session.Awaiting || q.Epoch != st.Epoch || !over {
			continue
		}
		if !p.readsOn(st) {
			return true
		}
		if st.Prompts[id] != q || q.Status == session.Awaiting {
			return false
		}
		p.hand(st.Ref(), id)
		p.w.report.Late++
		p.append(st, st.Epoch, events.PromptDelivered{Prompt: id})
		return true
	}
	return false
}

// readsOn reads the log to its end, and reports whether the process may act in the session. It may not if the
// session is closed or belongs to another process: then the process forgets the session. It may not without a lease:
// then the process waits for its next incarnation.
func (p *process) readsOn(st *session.State) bool {
	p.w.log.foldOn(st)
	if st.Closed != nil || !st.Owned || st.Incarnation != p.incarnation {
		p.forget(st.Ref())
		return false
	}
	return p.w.leases[p.incarnation] != nil
}

// byItself starts a turn without a request, and without a person's message as its cause.
func (p *process) byItself(st *session.State) {
	if p.append(st, st.Epoch, p.ownTurn()) {
		p.w.report.Itself++
	}
}

func (p *process) ownTurn() events.TurnStarted {
	return events.TurnStarted{Turn: p.w.id("t"), Cause: events.CauseMessage, Synthetic: !p.w.chance(3)}
}

// takesDecisions hands what a person decided to the agent, if an Ask waits for it.
func (p *process) takesDecisions(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		q := st.Prompts[id]
		over := q.Turn != "" && (st.Turn == nil || st.Turn.ID != q.Turn) && st.Tools[q.Call] == nil
		absent := p.absent[decision{st.Ref(), id}] != attends
		// no Ask of a turn that is over waits for it
		if q.Status == session.Awaiting || q.Epoch != st.Epoch || over || absent || !p.readsOthers(st, id) {
			continue
		}
		if !p.readsOn(st) {
			return true
		}
		if st.Prompts[id] != q || q.Status == session.Awaiting || !p.readsOthers(st, id) {
			// another writer settled it, or a person took the answer back
			return true
		}
		if !p.w.settling && p.w.chance(refuseOneIn) {
			p.refuse(st, id)
			return true
		}
		p.handWithOthers(st, id)
		if c := st.Tools[q.Call]; c != nil && c.Epoch == st.Epoch {
			p.append(st, st.Epoch, events.ToolCompleted{Call: q.Call})
		} else {
			p.append(st, st.Epoch, events.PromptDelivered{Prompt: id})
		}
		return true
	}
	return false
}

func (p *process) inTurn(st *session.State) {
	turn := st.Turn.ID
	switch n := p.w.rng.IntN(12); {
	case n < 3:
		p.append(st, st.Epoch, events.ToolStarted{Call: p.w.id("c"), Turn: turn, Name: "bash",
			Background: p.w.chance(10)})
	case n < 5 && p.w.chance(3):
		// people are slow
		p.ask(st, turn)
	case n == 5 && len(p.order) < p.w.sessionsMax():
		p.delegate(st, turn)
	case n < 9:
		p.endCall(st)
	case n == 9 && st.BlockedBy() == "":
		p.append(st, st.Epoch, events.TurnFailed{Turn: turn, Error: p.w.failure(turnFailures),
			HadOutput: p.w.chance(2)})
	case n == 10 && st.BlockedBy() == "":
		p.append(st, st.Epoch, events.TurnCompleted{Turn: turn, Finish: "stop"})
	case n == 11 && p.w.chance(6):
		p.decidesItself(st)
	case n == 11 && p.w.chance(2):
		p.w.ping(st.Ref())
	case n == 11 && st.BlockedBy() == "" && p.w.chance(itselfOneIn):
		p.byItself(st)
	default:
		p.append(st, st.Epoch, events.UsageReported{Turn: turn,
			Tokens: events.Tokens{Input: int64(p.w.rng.IntN(contextLimit))}})
	}
}

// ask opens a question, or two at once.
func (p *process) ask(st *session.State, turn string) {
	facts := p.question(turn)
	if f, ok := facts[len(facts)-1].(events.PromptRequested); ok && f.Call != "" && p.w.chance(2) {
		f.Prompt = p.w.id("p")
		// in the same call
		facts = append(facts, f)
		p.w.report.InOneCall++
	} else if p.w.chance(3) {
		facts = append(facts, p.question(turn)...)
	}
	p.append(st, st.Epoch, facts...)
}

// question is one of any sort: with a call that waits for it or without, to be kept when its asker dies or not.
func (p *process) question(turn string) (facts []events.Fact) {
	f := events.PromptRequested{Prompt: p.w.id("p"), Turn: turn, PromptKind: events.PromptQuestion, Title: "?",
		Questions: []events.Question{{ID: "q", Question: "?", Custom: true}}, Delivery: events.DeliverCallback}
	kind := p.w.rng.IntN(6)
	if turn == "" {
		kind = max(kind, 1)
		f.Blocking = new(p.w.chance(4))
	}
	switch kind {
	case 0:
		f.Delivery, f.Call = events.DeliverToolResult, p.w.id("c")
		facts = append(facts, events.ToolStarted{Call: f.Call, Turn: turn, Name: "question", Background: p.w.chance(3)})
	case 1:
		f.Delivery = events.DeliverMessage
	case 2:
		f.Deadline = p.w.now.Add(time.Duration(p.w.rng.IntN(20)) * time.Second)
	case 3, 4:
		f.OnOwnerLoss = events.LossKeep
	}
	return append(facts, f)
}

// delegate starts a call that waits for a child session.
func (p *process) delegate(st *session.State, turn string) {
	call := p.w.id("c")
	if p.append(st, st.Epoch, events.ToolStarted{Call: call, Turn: turn, Name: "task"}) {
		p.open(events.SessionOpened{Incarnation: p.incarnation, Parent: st.Session, ParentCall: call, Root: st.Root})
	}
}

// endCall ends a call that no question waits in.
func (p *process) endCall(st *session.State) {
	for _, id := range sorted(st.Tools) {
		if st.Tools[id].Epoch != st.Epoch || slices.ContainsFunc(st.PendingPrompts(),
			func(q string) bool { return st.Prompts[q].Call == id }) || p.unread(st, id) {
			continue
		}
		if p.w.chance(3) {
			p.append(st, st.Epoch, events.ToolFailed{Call: id, Error: events.Failure{Kind: "exit", Text: "1"}})
		} else {
			p.append(st, st.Epoch, events.ToolCompleted{Call: id, Output: json.RawMessage(`"done"`)})
		}
		return
	}
}
