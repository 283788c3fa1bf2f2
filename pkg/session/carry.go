package session

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// joinsMax is how many prompts without a place in [State.weigh] a turn carries because a harness named them: they were
// delivered long ago.
const joinsMax = 16

// carry returns the list with a prompt added, or replaced. It never changes the list it is given: clones share it.
func (f *fold) carry(list []Carried, add Carried) []Carried {
	next := make([]Carried, 0, len(list)+1)
	for _, c := range list {
		if c.Prompt != add.Prompt {
			next = append(next, c)
		}
	}
	return bounded(append(next, add), events.PromptsNamedMax)
}

// bounded returns at most so many prompts of a list, which it changes. The oldest with a receipt are left out first:
// an agent had these decisions, and the log has them. A decision without a receipt may have reached no agent.
func bounded(list []Carried, most int) []Carried {
	for len(list) > most {
		i := max(0, slices.IndexFunc(list, func(c Carried) bool { return c.Had != 0 }))
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// dropCarried returns the list without one prompt.
func dropCarried(list []Carried, prompt string) []Carried {
	i := slices.IndexFunc(list, func(c Carried) bool { return c.Prompt == prompt })
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}

// carried resolves the prompts of a fact about a turn that takes a message, or none: the chain of the turn that it
// continues, its prompt and its prompts. It leaves out unknown prompts, those without a decision, and those whose
// answer is another message in the queue, because that message brings them.
func (f *fold) carried(ofTurn, prompt string, prompts []string, message string) []Carried {
	var list []Carried
	for _, c := range f.chain(ofTurn) {
		if !f.waitsAsMessage(c.Prompt) {
			list = append(list, c)
		}
	}
	for i := range len(prompts) + 1 {
		id := prompt
		if i < len(prompts) {
			id = prompts[i]
		}
		c, ok := f.resolve(id)
		now, just := f.gone[id]
		if !ok {
			c, ok = now, just
		}
		if m := f.QueuedAnswer(id); m != "" && m != message || c.Status == Withdrawn {
			continue
		}
		if ok && !has(list, id) && (just || f.keeps(id) || f.delivered(list) < joinsMax) {
			list = f.carry(list, c)
		}
	}
	return list
}

// keeps reports whether a prompt is open, undelivered, or carried by a turn. Only such a prompt has its place in
// [State.weigh].
func (s *State) keeps(prompt string) bool {
	return s.Prompts[prompt] != nil ||
		slices.ContainsFunc(s.carriedLists(), func(l []Carried) bool { return has(l, prompt) })
}

// delivered is the number of prompts in a list that are delivered.
func (s *State) delivered(list []Carried) int {
	n := 0
	for _, c := range list {
		if s.Prompts[c.Prompt] == nil {
			n++
		}
	}
	return n
}

// resolve finds how a prompt was settled, and where.
func (s *State) resolve(prompt string) (c Carried, ok bool) {
	if prompt == "" {
		return c, false
	}
	if p := s.Prompts[prompt]; p != nil {
		return p.carried(prompt), !p.Awaits()
	}
	for _, list := range s.carriedLists() {
		for _, c := range list {
			if c.Prompt == prompt {
				return c, true
			}
		}
	}
	if e := s.ended(EntityPrompt, prompt); e != nil {
		return Carried{Prompt: prompt, Status: Status(e.Outcome), Seq: e.Seq, Asked: e.OpenedSeq}, true
	}
	return c, false
}

// Settled returns the commit that settled a prompt, as far as the document can tell: the prompt is not delivered, a
// turn carries it, or its ending is kept.
func (s *State) Settled(prompt string) (seq uint64, ok bool) {
	c, ok := s.resolve(prompt)
	return c.Seq, ok
}

// carried returns a settled prompt as a turn carries it, without a receipt.
func (p *Prompt) carried(id string) Carried {
	return Carried{Prompt: id, Status: p.Status, Seq: p.SettledSeq, Asked: p.Seq}
}

// has reports whether a list has a prompt.
func has(list []Carried, prompt string) bool {
	return slices.ContainsFunc(list, func(c Carried) bool { return c.Prompt == prompt })
}

// updateCarried changes a prompt in every list that has it. It never changes the lists or the request in place: clones
// share them.
func (f *fold) updateCarried(prompt string, change func(*Carried)) {
	in := func(list []Carried) []Carried {
		i := slices.IndexFunc(list, func(c Carried) bool { return c.Prompt == prompt })
		if i >= 0 {
			list = slices.Clone(list)
			change(&list[i])
		}
		return list
	}
	if f.Turn != nil {
		f.Turn.Prompts = in(f.Turn.Prompts)
	}
	if f.LastTurn != nil {
		f.LastTurn.Prompts = in(f.LastTurn.Prompts)
	}
	if p := f.Pending.Turn; p != nil && has(p.Prompts, prompt) {
		next := *p
		next.Prompts = in(p.Prompts)
		f.Pending.Turn = &next
	}
}

func (s *State) carriedLists() [][]Carried {
	var lists [][]Carried
	if s.Turn != nil {
		lists = append(lists, s.Turn.Prompts)
	}
	if s.LastTurn != nil {
		lists = append(lists, s.LastTurn.Prompts)
	}
	if s.Pending.Turn != nil {
		lists = append(lists, s.Pending.Turn.Prompts)
	}
	return lists
}

// unfinished returns what no completed turn has had: what the last turn left, and what the open turn carries. Whether
// an agent keeps what it was given is known when its turn completes.
func (s *State) unfinished() []Carried {
	var list []Carried
	if s.LastTurn != nil {
		list = s.LastTurn.Prompts
	}
	if s.Turn != nil && len(s.Turn.Prompts) > 0 {
		list = append(list[:len(list):len(list)], s.Turn.Prompts...)
	}
	return list
}

// without returns a list without the prompts of another one.
func without(list, other []Carried) []Carried {
	var rest []Carried
	for _, c := range list {
		if !has(other, c.Prompt) {
			rest = append(rest, c)
		}
	}
	return rest
}

// stillOwed returns what remains owed when the open turn ends: what the turn before it left and, unless this one
// completed, what this one carried.
func (f *fold) stillOwed(t *Turn, completed bool) []Carried {
	var list []Carried
	if f.LastTurn != nil {
		list = without(f.LastTurn.Prompts, t.Prompts)
	}
	if completed {
		return list
	}
	for _, c := range t.Prompts {
		if p := f.Prompts[c.Prompt]; p != nil && f.inBackground(p) && f.ownerTakesIn(p) {
			// the call continues with the decision
			continue
		}
		list = f.carry(list, c)
	}
	return list
}

// leaveOwed settles, at the start of a turn, what the last one left. The new turn has what it names. A person's turn
// overtakes what was decided before it was asked for. A turn that a harness starts by itself leaves the rest owed:
// nothing tells that its agent has seen it.
func (f *fold) leaveOwed(asked uint64) {
	l := f.LastTurn
	if l == nil || len(l.Prompts) == 0 {
		return
	}
	l.Prompts = without(l.Prompts, f.Turn.Prompts)
	if f.Turn.byPerson() {
		l.Prompts = slices.DeleteFunc(l.Prompts, func(c Carried) bool { return c.Seq <= asked })
	}
}

// hadByOwner reports whether the present owner gave the receipt for a decision: it has the decision, whatever becomes
// of its turn.
func (s *State) hadByOwner(c Carried) bool { return c.Had == s.Epoch }

// calls reports whether a decision that no completed turn has had calls for a turn by itself. A decision from before a
// failure that is not retried, or from before a person's stop, waits for that person.
func (s *State) calls(c Carried) bool {
	return c.Status.callsForTurn() && !c.Quiet && c.Seq > max(s.HeldSeq, s.StoppedSeq, s.QuietSeq)
}

// decisionWaits reports whether a turn could begin for a decision that no completed turn has had: also for one that its
// asker waits for, because the asker may be dead.
func (s *State) decisionWaits() bool {
	waits := func(c Carried) bool {
		return c.Status.callsForTurn() && !c.Quiet && c.Seq > max(s.StoppedSeq, s.QuietSeq)
	}
	for id, p := range s.Prompts {
		if waits(p.carried(id)) {
			return true
		}
	}
	return slices.ContainsFunc(s.unfinished(), waits)
}

// rests reports whether the session is open, no turn is open or requested, and neither a prompt, a child nor a
// compaction holds the next one.
func (s *State) rests() bool {
	return s.Open() && s.Turn == nil && s.Pending.Turn == nil && s.BlockedBy() == "" &&
		len(s.WaitsFor) == 0 && !s.CompactionOpen() && !s.CompactionFirst() && !s.Held()
}

// owed is [State.Owed] without its bound.
func (s *State) owed() (f events.TurnRequested, ok bool) {
	switch {
	case !s.rests(), s.RetryFirst() && s.heldTurn() == "", len(s.Queue) > 0 && s.QueueMoves():
		return f, false
	}
	if f, ok = s.continues(s.calls); ok {
		return f, true
	}
	return s.owedMessage()
}

// StillRequested returns the request that takes the place of a person's request when its answer is taken back: another
// decision after the same hold stands, and it has moved the queue. was is the request with the answer. ok is false
// without such a decision, and if something goes first.
func (s *State) StillRequested(was *PendingTurn) (f events.TurnRequested, ok bool) {
	if was == nil || was.Held == 0 || !s.rests() || s.RetryFirst() && s.heldTurn() == "" {
		return f, false
	}
	f, ok = s.continues(func(c Carried) bool {
		p := s.Prompts[c.Prompt]
		// a decision for a living process requests no turn
		return s.calls(c) && (p == nil || !s.Owns(p.Epoch))
	})
	if ok {
		return f, true
	}
	return s.owedMessage()
}

// continues returns the request for a turn that names the decisions that no completed turn has had, for the first one
// for which calls is true and that the owner does not take in by itself.
func (s *State) continues(calls func(Carried) bool) (f events.TurnRequested, ok bool) {
	for _, id := range s.Carry() {
		c, _ := s.resolve(id)
		p := s.Prompts[id]
		// a call may wait for it that has outlived its turn
		if !calls(c) || p != nil && s.ownerTakesIn(p) {
			continue
		}
		turn, l := "", s.LastTurn
		switch {
		case l != nil && l.Outcome != OutcomeCompleted && (p == nil || has(l.Prompts, id)):
			// it had the decision, and is to have its message and options again
			turn = l.ID
		case p != nil:
			turn = p.Turn
		}
		return s.Continue(id, s.Continued(turn), ""), true
	}
	return f, false
}

// Stopped returns the request for a turn that a person resumes for the decisions that wait since a stop. ok is false if
// there are none, or if something goes first.
func (s *State) Stopped() (f events.TurnRequested, ok bool) {
	if s.StoppedSeq == 0 || s.Turn != nil || s.Pending.Turn != nil || s.BlockedBy() != "" || len(s.WaitsFor) > 0 {
		return f, false
	}
	return s.continues(func(c Carried) bool {
		return c.Status.callsForTurn() && !c.Quiet && c.Seq > s.QuietSeq && !s.hadByOwner(c)
	})
}

// owedMessage is [State.owed] for an answer that became a message, and that the queue does not hand out: the person
// gave it after what the queue waits behind.
func (s *State) owedMessage() (f events.TurnRequested, ok bool) {
	first := ""
	for id, p := range s.Prompts {
		newer := s.waitsAsMessage(id) && p.SettledSeq > max(s.HeldSeq, s.QuietSeq)
		if newer && (first == "" || p.SettledSeq < s.Prompts[first].SettledSeq ||
			p.SettledSeq == s.Prompts[first].SettledSeq && id < first) {
			first = id
		}
	}
	if first == "" {
		return f, false
	}
	p := s.Prompts[first]
	return s.Continue(first, s.Continued(p.Turn), s.answerMessage(first, p)), true
}

// heldTurn returns the last turn if it was interrupted and the policy leaves it to a person to continue, "" otherwise.
// An abandoned retry of an earlier turn does not matter. A planned one, and a person's newer message (R15), go first.
func (s *State) heldTurn() string {
	l := s.LastTurn
	switch {
	case s.Turn != nil, l == nil, s.Policy.Resume != events.ResumeHold:
		return ""
	case l.Outcome != OutcomeInterrupted, l.Actor == events.ActorPerson:
		return ""
	case s.RetryPlanned(), s.NewerMessage(s.HeldSeq):
		return ""
	}
	return l.ID
}

// Continued returns the turn that a decision about a prompt of this turn continues: the one that waits for a person
// after its process died, so that it stays resumable (R14), or else the turn of the prompt.
func (s *State) Continued(ofTurn string) string { return orElse(s.heldTurn(), ofTurn) }

// callsForTurn reports whether a decision that nothing delivers calls for a turn. A dismissal does not: the person
// wants the question gone, and nothing else. The next turn names it.
func (s Status) callsForTurn() bool { return s == Answered || s == Rejected }

// byPerson reports whether a person made the decision.
func (s Status) byPerson() bool { return s.callsForTurn() || s == Dismissed }

// chain returns what the next attempt of a turn inherits: that of the open turn, or of the last one.
func (s *State) chain(turn string) []Carried {
	switch {
	case turn == "":
	case s.Turn != nil && s.Turn.ID == turn:
		return s.Turn.Prompts
	case s.LastTurn != nil && s.LastTurn.ID == turn:
		return s.LastTurn.Prompts
	}
	return nil
}

// Carry returns the prompts that a request for a turn has to name, oldest decision first: what the open turn carries,
// or else the last one, every settled prompt that no completed turn has had, and those given, which the same commit may
// settle. An answer that became a message is left out, because that message carries it. So is a prompt outside of any
// turn, or of a call that outlived its turn, whose process is alive and waits for it, because that process reads it
// from its view.
func (s *State) Carry(more ...string) []string {
	list := slices.Clone(s.unfinished())
	for id, p := range s.Prompts {
		if p.Awaits() || s.ownerTakesIn(p) {
			// it waits for a person, or its own process takes it in
			continue
		}
		if !has(list, id) {
			list = append(list, p.carried(id))
		}
	}
	list = slices.DeleteFunc(list, func(c Carried) bool { return s.waitsAsMessage(c.Prompt) })
	slices.SortFunc(list, func(a, b Carried) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Prompt, b.Prompt))
	})
	more = slices.DeleteFunc(slices.Clone(more), func(id string) bool { return id == "" || has(list, id) })
	var ids []string
	for _, c := range bounded(list, events.PromptsNamedMax-len(more)) {
		ids = append(ids, c.Prompt)
	}
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// brings returns what the requested turn brings to the agent as things stand: what its request named, and what was
// settled for a process that is gone, also after the request. Nil without a requested turn.
func (s *State) brings() []Carried {
	p := s.Pending.Turn
	if p == nil {
		return nil
	}
	list := p.Prompts
	// also what was settled after the request
	for _, c := range s.unfinished() {
		if !has(list, c.Prompt) && !s.waitsAsMessage(c.Prompt) {
			list = append(list[:len(list):len(list)], c)
		}
	}
	for _, id := range sortedKeys(s.Prompts) {
		q := s.Prompts[id]
		if q.Awaits() || s.ownerTakesIn(q) || s.waitsAsMessage(id) {
			continue
		}
		if !has(list, id) {
			list = append(list[:len(list):len(list)], q.carried(id))
		}
	}
	return bounded(slices.Clone(list), events.PromptsNamedMax)
}

// Naming returns a request for a turn with the prompts that it has to name: see [State.Carry]. Prompt is the one whose
// settlement called for the turn, else the first of them.
func (s *State) Naming(f events.TurnRequested) events.TurnRequested {
	f.Prompts = s.Carry(f.Prompt)
	if f.Prompt == "" && len(f.Prompts) > 0 {
		f.Prompt = f.Prompts[0]
	}
	return f
}

// waitsAsMessage reports whether the answer to a prompt waits in the queue as a message: then the turn that takes the
// message has the prompt.
func (s *State) waitsAsMessage(prompt string) bool { return s.QueuedAnswer(prompt) != "" }

// QueuedAnswer returns the id of the message in the queue that the answer to a prompt became, "" without one.
func (s *State) QueuedAnswer(prompt string) string {
	p := s.Prompts[prompt]
	if p == nil || p.Status != Answered || p.Delivery != events.DeliverMessage {
		return ""
	}
	if m := s.answerMessage(prompt, p); s.queued(m) >= 0 {
		return m
	}
	return ""
}

// Carries reports whether the open turn has this settled prompt.
func (s *State) Carries(prompt string) (c Carried, ok bool) {
	if s.Turn == nil {
		return c, false
	}
	for _, c := range s.Turn.Prompts {
		if c.Prompt == prompt {
			return c, true
		}
	}
	return c, false
}

// deliverCarried applies the completion of a turn to the prompts that the turn was given: they are delivered. A prompt
// that was asked in this very turn, and never taken, is not delivered: the next turn has it.
func (f *fold) deliverCarried(t *Turn) {
	for _, c := range t.Prompts {
		if p := f.Prompts[c.Prompt]; p != nil && p.Turn == t.ID {
			continue
		}
		f.deliver(c.Prompt, f.c.At)
		f.notPending(c.Prompt)
	}
}

// ownerTakesIn reports whether a settled prompt is the living owner's to take in: it was asked in the open turn, or
// outside of any turn, or by a call that is open. The last two need a part of the owner that waits for the decision.
func (s *State) ownerTakesIn(p *Prompt) bool {
	waited := !p.Unattended && (p.Turn == "" || s.Tools[p.Call] != nil)
	return s.owes(p) && (waited || s.openTurn(p.Turn) != "")
}

// inBackground reports whether a prompt belongs to an open call that outlives its turn.
func (s *State) inBackground(p *Prompt) bool {
	c := s.Tools[p.Call]
	return c != nil && c.Background
}

// notCarried takes a prompt off every list: the harness has it or refuses it, or a person has taken it back.
func (f *fold) notCarried(prompt string) {
	if f.Turn != nil {
		f.Turn.Prompts = dropCarried(f.Turn.Prompts, prompt)
	}
	if f.LastTurn != nil {
		f.LastTurn.Prompts = dropCarried(f.LastTurn.Prompts, prompt)
	}
	f.notPending(prompt)
}

// notPending takes a prompt off the requested turn, which clones share.
func (f *fold) notPending(prompt string) {
	if p := f.Pending.Turn; p != nil && len(p.Prompts) > 0 {
		next := *p
		next.Prompts = dropCarried(p.Prompts, prompt)
		if next.Prompt == prompt && len(next.Prompts) > 0 {
			// it calls for the turn now
			next.Prompt = next.Prompts[0].Prompt
		}
		f.Pending.Turn = &next
	}
}

// inPlaceOfRetry reports whether the requested turn took the place of the planned retry of the last turn, which had a
// message: without it, nothing would try that message again.
func (f *fold) inPlaceOfRetry(p *PendingTurn) bool {
	l := f.LastTurn
	return f.Turn == nil && l != nil && p.OfTurn == l.ID && p.Message != "" && f.Retry.Turn == l.ID &&
		f.Retry.State != RetryAbandoned
}

// dropNeedless takes back a requested turn that only decisions called for, when the owner has all of them: an Ask may
// return in the instant in which its turn completes. The request is still needed if it continues the open turn, takes
// a message, or took the place of a retry, and for a decision whose turn ended without completing. A decision from
// before a person's stop counts only after a person's resume, which requests the turn for such a decision.
func (f *fold) dropNeedless() {
	p := f.Pending.Turn
	switch {
	case p == nil || p.Cause != events.CauseAnswer || p.Prompt == "":
		return
	case f.queued(p.Message) >= 0 || f.Turn != nil && f.Turn.ID == p.OfTurn || f.inPlaceOfRetry(p):
		return
	}
	resumed := p.By != "" && slices.ContainsFunc(p.Prompts, func(c Carried) bool {
		return c.Prompt == p.Prompt && c.Seq <= f.StoppedSeq
	})
	needed := func(c Carried) bool {
		cut := f.LastTurn != nil && has(f.LastTurn.Prompts, c.Prompt)
		return !c.Quiet && (resumed || c.Seq > f.StoppedSeq) && (cut || !f.hadByOwner(c))
	}
	if !slices.ContainsFunc(f.brings(), needed) {
		f.Pending.Turn = nil
	}
}

// Brings reports whether the requested turn brings these decisions to the agent as things stand, and no others.
func (s *State) Brings(prompts []string) bool {
	list := s.brings()
	return len(list) == len(prompts) &&
		!slices.ContainsFunc(list, func(c Carried) bool { return !slices.Contains(prompts, c.Prompt) })
}
