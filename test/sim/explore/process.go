package explore

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// crash: SIGKILL. The lease lives on until it ends by itself.
func (s *state) crash(p *process) bool {
	if p.phase == down || s.spent.crashes >= s.cfg.Most.Crashes {
		return false
	}
	s.spent.crashes++
	*p = process{inc: p.inc}
	s.record("process %s is killed", s.name(p))
	return true
}

// freeze: SIGSTOP. Only one that has something to do is worth it.
func (s *state) freeze(p *process) bool {
	if p.phase == down || p.stopped || !p.mine || s.spent.freezes >= s.cfg.Most.Freezes {
		return false
	}
	s.spent.freezes++
	p.stopped = true
	s.record("process %s is suspended", s.name(p))
	return true
}

// thaw: SIGCONT. By its own clock the process knows whether it could have lost its lease.
func (s *state) thaw(p *process) bool {
	if !p.stopped {
		return false
	}
	p.stopped = false
	p.held = p.held || s.lease(p.inc).health != live
	s.record("process %s continues, its lease %s", s.name(p),
		[...]string{"lives", "has lapsed", "is over"}[s.lease(p.inc).health])
	return true
}

// lapse: the broker is away for longer than the TTL, and the process alive all the time, perhaps while it starts over.
func (s *state) lapse(p *process) bool {
	if p.phase == down || p.stopped || !p.mine || s.lease(p.inc).health != live ||
		s.spent.lapses >= s.cfg.Most.Lapses {
		return false
	}
	s.spent.lapses++
	p.held = true
	s.lease(p.inc).health = lapsed
	s.record("the broker was away: process %s has lost its lease", s.name(p))
	return true
}

// expire ends a lease that no process renews, and its grace.
func (s *state) expire(l *lease) bool {
	for i := range s.procs {
		p := &s.procs[i]
		if p.inc == l.inc && p.phase != down && !p.stopped && l.health == live {
			// it is renewed
			return false
		}
	}
	if l.health == over || !s.matters(l) {
		return false
	}
	l.health = over
	s.record("the lease of incarnation %d is over", l.inc)
	return true
}

// lingers: a process that has not become ready reaches the end of its adoption grace.
func (s *state) lingers(l *lease) bool {
	if l.ready || l.late || l.health != live || !s.matters(l) {
		return false
	}
	l.late = true
	s.record("the adoption grace of incarnation %d ends", l.inc)
	return true
}

// matters says whether anything depends on a lease: the owner's, a process's, and one of a newer incarnation that may
// have taken the owner's place.
func (s *state) matters(l *lease) bool {
	owner := s.ownerInc()
	if slices.ContainsFunc(s.sent, func(c sent) bool { return c.inc == l.inc && s.canArrive(c) }) {
		return true
	}
	return l.inc == owner || l.inc == s.procs[0].inc || l.inc == s.procs[1].inc || l.inc > owner && l.health == live
}

// start: a process begins, after a crash or beside one that is suspended.
func (s *state) start(p *process) bool {
	if p.phase != down || s.spent.starts >= s.cfg.Most.Starts {
		return false
	}
	s.spent.starts++
	s.begin(p)
	s.record("process %s starts", s.name(p))
	return true
}

// adoption is the part of the items of another process that a process continues.
type adoption uint8

const (
	nothing       adoption = iota
	oneOnly                // the first question, and the turn with it
	callApart              // the call in the background alone
	callOnly               // the call that the turn waits for alone
	questionApart          // its question, and the call with it
	ofOwn                  // what this process itself had until it lost its lease
	everything             // the turn, and all that belongs to it
)

// claim takes the session over at the start.
func (s *state) claim(p *process, adopt adoption) bool {
	if p.phase != starting || p.stopped || p.mine || p.held || p.again || !s.st.Claimable(fmt.Sprint(p.inc)) {
		return false
	}
	if adopt != nothing && s.st.Turn == nil && !s.opensOutside() || adopt == oneOnly &&
		(!s.awaits(0) || s.st.Prompts[s.cfg.Asks[1].Prompt] == nil) {
		return false
	}
	i := s.background()
	if adopt == callApart && (i < 0 || s.st.Tools[call] == nil) || adopt == questionApart && (i < 0 || !s.awaits(i)) {
		return false
	}
	if adopt == callOnly && !s.foreground() {
		return false
	}
	s.take(p, adopt, nil)
	return true
}

// take appends the claim, and what is adopted with it: the turn first, then calls and open questions, as the client
// says it.
func (s *state) take(p *process, adopt adoption, work []events.Fact) {
	var facts []events.Fact
	if s.st.Owned && !s.st.Exclusive {
		facts = append(facts, events.SessionReleased{Reason: "lease-lost"})
	}
	claimed := events.SessionClaimed{Incarnation: fmt.Sprint(p.inc)}
	if s.cfg.Pool {
		claimed.Exclusive = new(bool)
	}
	facts = append(facts, claimed)
	before := s.st
	facts = append(facts, s.adopting(adopt, s.st.Epoch)...)
	s.appendAs(events.WriterHarness, func(f events.Fact) string {
		if _, old := f.(events.SessionReleased); old {
			return events.HarnessSource(harnessID, before.Incarnation)
		}
		return p.source()
	}, before.Epoch, append(facts, work...)...)
	p.mine, p.epoch, p.knew, s.lease(p.inc).claimed = true, s.st.Epoch, p.inc, true
	for i := range s.cfg.Asks {
		p.leave(s, i)
	}
	if adopt == nothing || adopt == callApart || adopt == callOnly || adopt == questionApart || s.st.Turn == nil ||
		s.st.Turn.Epoch != s.st.Epoch {
		// it runs no turn
		return
	}
	p.turn = before.Turn.ID
	for i, a := range s.cfg.Asks {
		if adopt == oneOnly && i > 0 {
			break
		}
		if a.apart() {
			continue
		}
		q := before.Prompts[a.Prompt]
		_, ended := before.Ended(session.EntityPrompt, a.Prompt)
		p.todo[i] = !p.returned[i] && (q != nil && (q.Turn == before.Turn.ID || q.Status != session.Awaiting)) &&
			(q.Status == session.Awaiting || ended)
	}
}

// adopting is what is said again to go on with the open turn. ofOwn: what is of the epoch from, or a later one.
func (s *state) adopting(adopt adoption, from uint64) []events.Fact {
	t := s.st.Turn
	switch adopt {
	case nothing:
		return nil
	case callApart, callOnly:
		c := s.st.Tools[call]
		return []events.Fact{events.ToolStarted{Call: call, Turn: c.Turn, Name: c.Name, Background: c.Background}}
	case questionApart:
		a := s.cfg.Asks[s.background()]
		return []events.Fact{s.requested(s.background(), s.st.Prompts[a.Prompt].Turn)}
	case oneOnly:
		return []events.Fact{s.requested(0, s.st.Prompts[s.cfg.Asks[0].Prompt].Turn)}
	}
	var facts []events.Fact
	if t != nil && (adopt != ofOwn || t.Epoch >= from) {
		facts = append(facts, events.TurnStarted{Turn: t.ID, Cause: t.Cause, Synthetic: t.Synthetic, OfTurn: t.OfTurn,
			Message: t.Message, Attempt: t.Attempt})
	}
	for _, id := range sortedKeys(s.st.Tools) {
		c := s.st.Tools[id]
		if adopt == ofOwn && c.Epoch < from {
			continue
		}
		facts = append(facts, events.ToolStarted{Call: id, Turn: c.Turn, Name: c.Name,
			Background: c.Background})
	}
	for _, id := range s.st.PendingPrompts() {
		if adopt == ofOwn && s.st.Prompts[id].Epoch < from {
			continue
		}
		facts = append(facts, s.requested(s.cfg.index(id), s.st.Prompts[id].Turn))
	}
	return facts
}

// readies sets the lease to ready: all sessions that this process continues are claimed.
func (s *state) readies(p *process) bool {
	waits := p.held || len(p.rest) > 0 && s.cfg.Bug != sim.ReadyBeforeTheRest
	if p.phase != starting || p.stopped || waits || s.lease(p.inc).health != live {
		return false
	}
	p.phase = ready
	s.lease(p.inc).ready = true
	s.record("process %s is ready", s.name(p))
	return true
}

// news says whether reading the log would change anything for a process.
func (s *state) news(p *process) bool {
	if p.phase == down || p.stopped || !p.mine {
		return false
	}
	if p.held {
		// it waits for its next incarnation
		return false
	}
	if !s.owns(p) {
		return true
	}
	for i := range p.asking {
		if p.asking[i] && !s.awaits(i) {
			return true
		}
	}
	return p.turn != "" && (s.st.Turn == nil || s.st.Turn.ID != p.turn)
}

// awaits says whether a prompt still waits for a person.
func (s *state) awaits(i int) bool {
	q := s.st.Prompts[s.cfg.Asks[i].Prompt]
	return q != nil && q.Status == session.Awaiting
}

// readNews: the process has read the log to its end, judges whether the session is still its own, and then tells those
// who wait.
func (s *state) readNews(p *process) bool {
	if !s.news(p) && !p.asksAny() {
		return false
	}
	mine := s.owns(p) && s.lease(p.inc).health == live
	for i := range p.asking {
		if p.asking[i] && !s.awaits(i) && (mine || s.cfg.Bug == sim.FencedNotify) {
			s.hand(p, i)
		}
	}
	if s.owns(p) {
		if p.turn != "" && (s.st.Turn == nil || s.st.Turn.ID != p.turn) {
			s.endHandler(p)
		}
		return true
	}
	s.record("process %s is fenced", s.name(p))
	s.loses(p)
	return true
}

func (p *process) asksAny() bool { return slices.Contains(p.asking[:], true) }

// asksInTurn reports whether an Ask waits in the turn that the process runs.
func (s *state) asksInTurn(p *process) bool {
	for i, a := range s.cfg.Asks {
		if (p.asking[i] || p.appended[i] && s.st.Prompts[a.Prompt] != nil) && !a.apart() {
			return true
		}
	}
	return false
}

// hand: an Ask returns how its prompt was settled; the model's context has it.
func (s *state) hand(p *process, i int) {
	id := s.cfg.Asks[i].Prompt
	p.asking[i], p.todo[i], p.appended[i], p.returned[i] = false, false, false, true
	e, _ := s.st.Ended(session.EntityPrompt, id)
	s.record("process %s: Ask of %s returns: %s", s.name(p), id, e.Outcome)
	if !s.owns(p) || s.lease(p.inc).health != live {
		s.fail("R6: process %s was handed the decision about prompt %s, and the session is not its own any more",
			s.name(p), id)
		return
	}
	if s.fates[i] != undecided {
		s.fates[i] = received
	}
	p.receipt[i] = s.owesReceipt(i)
}

// owesReceipt says whether the receipt is for Ask to say: else it is the end of the call.
func (s *state) owesReceipt(i int) bool {
	q := s.st.Prompts[s.cfg.Asks[i].Prompt]
	return q != nil && q.Status != session.Awaiting && (q.Delivery != events.DeliverToolResult ||
		s.st.Tools[q.Call] == nil)
}

// runs says whether a process may act in its session: it has read the log, owns the session, and its lease lives.
func (s *state) runs(p *process) bool {
	return p.phase != down && !p.stopped && p.mine && !p.held && !s.news(p) && s.lease(p.inc).health == live
}

// handles says whether the process runs a turn, and may act in it.
func (s *state) handles(p *process) bool {
	t := s.st.Turn
	return s.runs(p) && p.turn != "" && t != nil && t.ID == p.turn && t.Epoch == s.st.Epoch
}

// add appends what a process says, behind the rest of its claim and the receipts that wait.
func (s *state) add(p *process, facts ...events.Fact) {
	s.storeRest(p)
	s.append(events.WriterHarness, p.source(), p.epoch, append(s.receipts(p), facts...)...)
}

func (s *state) receipts(p *process) []events.Fact {
	var facts []events.Fact
	for i := range p.receipt {
		if p.receipt[i] && s.owesReceipt(i) {
			facts = append(facts, events.PromptDelivered{Prompt: s.cfg.Asks[i].Prompt})
		}
		p.receipt[i] = false
	}
	return facts
}

// receive stores the receipts that wait by themselves.
func (s *state) receive(p *process) bool {
	if !s.runs(p) {
		return false
	}
	if len(p.rest) > 0 {
		// it is stored first
		return false
	}
	facts := s.receipts(p)
	if len(facts) == 0 {
		return false
	}
	s.append(events.WriterHarness, p.source(), p.epoch, facts...)
	return true
}

// ask asks a question, or asks again what was adopted.
func (s *state) ask(p *process, i int) bool {
	a := s.cfg.Asks[i]
	if a.Outside || a.Background && s.st.Prompts[a.Prompt] != nil {
		return s.askOutside(p, i)
	}
	if !s.handles(p) || p.asking[i] || s.stopping() {
		return false
	}
	q := s.st.Prompts[a.Prompt]
	_, ended := s.st.Ended(session.EntityPrompt, a.Prompt)
	switch {
	case p.returned[i]:
		return false
	case q != nil && q.Status == session.Awaiting && q.Epoch == s.st.Epoch:
		p.asks(i)
		s.record("process %s asks %s again", s.name(p), a.Prompt)
		return true
	case s.leftInCall(p, i) && q.Awaits():
		s.add(p, s.requested(i, q.Turn))
		p.asks(i)
		return true
	case ended && (p.todo[i] || s.leftInCall(p, i)):
		s.hand(p, i)
		return true
	case ended || q != nil || len(s.st.Tools) > 0 && a.Call != "":
		return false
	}
	var facts []events.Fact
	if a.Call != "" {
		if _, over := s.st.Ended(session.EntityTool, a.Call); over {
			return false
		}
		facts = append(facts, events.ToolStarted{Call: a.Call, Turn: p.turn, Name: "question",
			Background: a.Background})
	}
	s.add(p, append(facts, s.requested(i, p.turn))...)
	p.asks(i)
	return true
}

// asks has an Ask wait for a question.
func (p *process) asks(i int) {
	p.asking[i], p.todo[i], p.unsaid[i], p.appended[i] = true, false, false, false
}

// giveUp: the context of an Ask ends, also while the lease is lost, or before the process has read what was decided.
// The prompt stays open, and the agent asks again before its turn completes.
func (s *state) giveUp(p *process, i int) bool {
	outside := s.cfg.Asks[i].apart()
	if p.phase == down || p.stopped || !p.asking[i] || s.spent.gaveUp >= s.cfg.Most.GaveUp {
		return false
	}
	s.spent.gaveUp++
	p.asking[i], p.todo[i], p.unsaid[i] = false, !outside, outside
	s.record("process %s: the context of Ask %s ends", s.name(p), s.cfg.Asks[i].Prompt)
	return true
}

// closeCall ends the call with the answer that its question was given.
func (s *state) closeCall(p *process) bool {
	c := s.st.Tools[call]
	if !s.runs(p) || c == nil || c.Epoch != s.st.Epoch {
		return false
	}
	for i, a := range s.cfg.Asks {
		unread := !p.returned[i] && s.fates[i] != received && s.fates[i] != undecided
		if a.Call == call && (s.awaits(i) || unread) {
			return false
		}
	}
	s.add(p, events.ToolCompleted{Call: call, Output: json.RawMessage(`"answered"`)})
	return true
}

// unread reports whether the process runs its turn, and has not read what was decided about a question of it.
func (s *state) unread(p *process) bool {
	t := s.st.Turn
	return s.news(p) && s.owns(p) && s.lease(p.inc).health == live && t != nil && t.ID == p.turn
}

// complete ends the turn when no Ask waits in it any more.
func (s *state) complete(p *process) bool {
	if !s.handles(p) || s.asksInTurn(p) || slices.Contains(p.todo[:], true) || s.stopping() ||
		s.calls() {
		return false
	}
	s.add(p, events.TurnCompleted{Turn: p.turn, Finish: "stop"})
	return true
}

// careless completes the turn although the process has not read what was decided about a question of it.
func (s *state) careless(p *process) bool {
	waits := s.asksInTurn(p) || slices.Contains(p.todo[:], true)
	if !s.unread(p) && !s.handles(p) || !waits || s.st.BlockedBy() != "" || s.stopping() || s.calls() ||
		s.spent.careless >= s.cfg.Most.Careless {
		return false
	}
	s.spent.careless++
	late := p.asking
	s.add(p, events.TurnCompleted{Turn: p.turn, Finish: "stop"})
	for i, a := range s.cfg.Asks {
		p.late[i] = late[i] && !a.apart()
	}
	return true
}

// receiveLate returns an Ask after its turn has completed, and gives the receipt.
func (s *state) receiveLate(p *process, i int) bool {
	if !s.runs(p) || !p.late[i] || !s.owesReceipt(i) {
		return false
	}
	p.late[i] = false
	s.hand(p, i)
	return s.receive(p)
}

// decideItself makes a process decide its own prompt, by a policy.
func (s *state) decideItself(p *process, i int) bool {
	a := s.cfg.Asks[i]
	if !s.handles(p) || !p.asking[i] || !s.awaits(i) || s.spent.policies >= s.cfg.Most.Policies {
		return false
	}
	s.spent.policies++
	p.asking[i], p.returned[i] = false, true
	s.add(p, events.PromptAnswered{Prompt: a.Prompt, Answers: answers("auto"), By: "policy"})
	s.fates[i] = received
	return true
}

// byItself starts a turn without a request.
func (s *state) byItself(p *process) bool {
	if !s.runs(p) || s.st.Turn != nil || s.stopping() || s.compacting() ||
		s.spent.itself >= s.cfg.Most.Itself {
		return false
	}
	s.spent.itself++
	p.turn = fmt.Sprint("own", s.spent.itself)
	s.add(p, events.TurnStarted{Turn: p.turn, Cause: events.CauseMessage, Synthetic: true})
	p.turn = s.st.Turn.ID
	return true
}

// failTurn ends the turn in an error of a kind.
func (s *state) failTurn(p *process, kind string) bool {
	if !s.handles(p) || s.stopping() || s.spent.failures >= s.cfg.Most.Failures {
		return false
	}
	s.spent.failures++
	s.add(p, events.TurnFailed{Turn: p.turn, Error: events.Failure{Kind: kind, Text: "no"}})
	return true
}

// work takes what is asked of the harness, in its own session or in one without an owner, in the contract's order.
func (s *state) work(p *process) bool {
	st := s.st
	claimed := p.phase == ready || p.again && p.mine
	if !claimed || p.options != nil && st.Pending.Stop == nil || p.stopped || p.held || s.lease(p.inc).health != live {
		return false
	}
	if p.mine && !s.runs(p) {
		return false
	}
	free := !p.mine && !st.Owned && st.Claimable(fmt.Sprint(p.inc))
	if !p.mine && !free {
		return false
	}
	switch {
	case st.Pending.Stop != nil && p.mine:
		s.add(p, events.TurnStopped{Turn: st.Pending.Stop.Turn, Actor: st.Pending.Stop.Actor})
	case p.mine && p.compact && st.Compaction.Running():
		s.add(p, events.CompactionCompleted{Compaction: st.Compaction.ID, UsedAfter: 1})
		p.compact = false
	case st.Pending.Compaction != nil && s.idleTurn():
		s.takeWork(p, events.CompactionStarted{Compaction: st.Pending.Compaction.ID})
		p.compact = true
	case s.takeable() && !s.withdraws(p):
		s.takeWork(p, s.begins(p))
		s.endHandler(p)
		p.turn = s.st.Turn.ID
	default:
		return false
	}
	return true
}

// begins is how a process takes the requested turn, behind its receipts in the same commit.
func (s *state) begins(p *process) events.TurnStarted {
	n, i := s.next(), s.index(p)
	n.storeRest(&n.procs[i])
	n.receive(&n.procs[i])
	return n.started(n.st)
}

// started is how the requested turn is taken. A deaf agent takes the requests of people, and meets those of recovery
// for decisions with a turn of its own.
func (s *state) started(st *session.State) events.TurnStarted {
	if r := st.Pending.Turn; s.cfg.Deaf && r.Cause == events.CauseAnswer && r.By == "" {
		return events.TurnStarted{Turn: fmt.Sprint("own-", r.ID), Cause: events.CauseMessage, Synthetic: true}
	}
	return s.cfg.Bug.Started(st)
}

// withdraws reports whether the receipts of a process, which go before the start of the requested turn in the same
// commit, take the request back: then the client does not begin the turn.
func (s *state) withdraws(p *process) bool {
	n, i := s.next(), s.index(p)
	n.storeRest(&n.procs[i])
	n.receive(&n.procs[i])
	return n.st.Pending.Turn == nil
}

func (s *state) takeWork(p *process, f events.Fact) {
	if p.mine {
		s.add(p, f)
		return
	}
	s.take(p, nothing, []events.Fact{f})
}

// idleTurn reports whether no process runs a turn.
func (s *state) idleTurn() bool {
	t := s.st.Turn
	return t == nil || t.Epoch < s.st.Epoch || !s.st.Owned
}

func (s *state) compacting() bool {
	return s.st.Compaction.Running()
}

// name is a process by its slot.
func (s *state) name(p *process) string { return fmt.Sprintf("%d (incarnation %d)", s.index(p), p.inc) }
