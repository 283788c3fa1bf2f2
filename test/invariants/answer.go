package invariants

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// debt is a decision of a person that no agent is known to have.
type debt struct {
	at      uint64 // place of the decision in the log
	call    string // that waits for the decision
	message string // that an answer becomes when its asker is gone
	noTurn  bool   // named by the next turn, and calls for none: a dismissal, or a decision of before they did
}

// brings are the prompts that a turn names as it begins: by itself, or by the request that it takes.
func (x *Log) brings(f events.TurnStarted) []string {
	names := slices.Clone(f.Prompts)
	if p := x.before.Pending.Turn; p != nil && p.ID == f.Turn {
		for _, c := range p.Prompts {
			names = append(names, c.Prompt)
		}
	}
	return names
}

// TakenBack returns the prompts whose answers a person takes back with what counted of a commit: their endings do not
// stand (V1).
func TakenBack(before *session.State, feed []events.Event) (prompts []string) {
	for i := range feed {
		f, ok := feed[i].Fact.(events.MessageWithdrawn)
		for id := range before.Prompts {
			if ok && before.QueuedAnswer(id) == f.Message {
				prompts = append(prompts, id)
			}
		}
	}
	return prompts
}

// Owed are the prompts with a decision of a person that the log does not show as delivered, sorted.
func (x *Log) Owed() []string { return slices.Sorted(maps.Keys(x.debts)) }

// Undelivered returns those of [Log.Owed] without a reason to wait when all is at rest: the session waits neither for a
// person nor for a child, no compaction is held, recovery has not reached its limit of requested turns, no person
// stopped it since the decision, and its last turn did not fail for good.
func (x *Log) Undelivered(s *session.State) []string {
	if s.Turn != nil || s.BlockedBy() != "" || len(s.WaitsFor) > 0 || s.Held() ||
		x.continued >= session.ContinuationsMax {
		return nil
	}
	// a decision before this waits for a person, or for the next turn
	since := x.noTurnSeq
	if l := s.LastTurn; l != nil && l.Outcome != session.OutcomeCompleted {
		since = max(since, cmp.Or(x.stops[l.ID], l.Seq), x.givenUp)
	}
	// it waits until a turn of a person begins
	if min(x.called(), x.personal) < x.lastStop {
		since = max(since, x.lastStop)
	}
	return slices.DeleteFunc(x.Owed(), func(id string) bool { return x.debts[id].noTurn || x.debts[id].at <= since })
}

// answers follows the decisions of people (V15). A decision is owed until its receipt, until its call ends with it, or
// until a turn completes that names it. A later act of a person overtakes it. That the process which asked completes
// its turn is no receipt: it may not have read the decision.
func (x *Log) answers(e *events.Event) {
	x.continues(e)
	switch f := e.Fact.(type) {
	case events.PromptRequested:
		delete(x.unattended, f.Prompt)
		if t := x.before.Turn; t != nil && x.turnOf(f) == t.ID && e.Epoch > t.Epoch && !x.apart(f) {
			// a prompt adopts its turn, too
			x.adopts(t)
		}
	case events.PromptUnattended:
		x.unattended[f.Prompt] = true
	case events.PromptAttended:
		delete(x.unattended, f.Prompt)
	case events.PromptAnswered:
		x.decided(f.Prompt, !f.Owed)
		x.old(f.Owed)
	case events.PromptRejected:
		x.decided(f.Prompt, !f.Owed)
		x.old(f.Owed)
	case events.PromptDismissed:
		x.decided(f.Prompt, true)
	case events.PromptDelivered:
		x.received(f)
	case events.ToolCompleted:
		x.callEnds(f.Call, e.Derived)
	case events.ToolFailed:
		x.callEnds(f.Call, e.Derived)
	case events.MessageWithdrawn:
		x.takenBack(f.Message)
	case events.TurnStarted:
		x.attempt(f)
	case events.TurnCompleted:
		x.completed(f.Turn)
	case events.SessionOrphaned, events.SessionReleased:
		x.left = x.c.Seq
	case events.RetryAbandoned:
		x.givenUp = x.c.Seq
	case events.TurnRequested:
		x.takes(f)
	case events.SessionClosed:
		clear(x.debts)
	}
}

// old records a decision of a ledger that wrote no owed: neither it nor an earlier one calls for a turn.
func (x *Log) old(owed bool) {
	if !owed && x.c.Writer != events.WriterHarness {
		x.noTurnSeq = x.c.Seq
	}
}

func (x *Log) decided(prompt string, quiet bool) {
	p := x.before.Prompts[prompt]
	// a decision that arrives through the harness is delivered by that
	if p == nil || x.c.Writer == events.WriterHarness {
		return
	}
	x.debts[prompt] = debt{at: x.c.Seq, call: p.Call, noTurn: quiet,
		message: events.DeriveID("answer", x.before.Session, prompt, strconv.FormatUint(max(p.Seq, p.ReopenedSeq), 10))}
}

// received: the process that asked has the decision. It is handed out once: not as the message that it has become, too
// (V10).
func (x *Log) received(f events.PromptDelivered) {
	d := x.debts[f.Prompt]
	if f.Refused == "" && x.messages[d.message] == "accepted" {
		x.messages[d.message] = "received"
	}
	if f.Refused != "" {
		x.done[f.Prompt] = "the harness has refused it"
	}
	delete(x.debts, f.Prompt)
}

// callEnds: a process that ends its call has the decision. A service that ends a call with the decision as its output
// delivers nothing: the next turn names the decision.
func (x *Log) callEnds(call string, derived bool) {
	for id, d := range x.debts {
		if d.call == call && !derived && x.c.Writer == events.WriterHarness {
			delete(x.debts, id)
		}
	}
}

// takenBack: a person takes an answer back with the message that it has become.
func (x *Log) takenBack(message string) {
	for id, d := range x.debts {
		if d.message == message {
			delete(x.debts, id)
		}
	}
}

// attempt: each turn that is requested after a decision brings it along, until one completes. A turn that a harness
// starts by itself need not: then the decision stays owed.
func (x *Log) attempt(f events.TurnStarted) {
	if t := x.before.Turn; t != nil && t.ID == f.Turn {
		// it is adopted: the turn requested in its place is not needed
		delete(x.asked, f.Turn)
		x.adopts(t)
		return
	}
	names := x.brings(f)
	x.named[f.Turn] = names
	message := f.Message
	p := x.before.Pending.Turn
	requested := p != nil && p.ID == f.Turn
	if requested && message == "" {
		message = p.Message
	}
	if requested && p.By != "" || byPerson(f) && !x.synthetic(message) {
		x.personal = x.c.Seq
	}
	for _, id := range names {
		if why := x.done[id]; why != "" {
			x.fail("V15: turn %s (%s) brings the decision about prompt %s, and %s", f.Turn, f.Cause, id, why)
		}
	}
	for _, id := range x.Owed() {
		d := x.debts[id]
		switch {
		case message == d.message:
			x.named[f.Turn] = append(slices.Clone(x.named[f.Turn]), id)
		case slices.Contains(names, id), x.queued(d.message), x.attended(id, d.call):
		case byPerson(f) && x.called() > d.at:
			delete(x.debts, id)
		case !requested:
			// it stays owed
		default:
			x.fail("V15: a person decided about prompt %s at %d, and turn %s (%s) begins without that", id, d.at,
				f.Turn, f.Cause)
		}
	}
}

// adopts: a process that adopts a turn is handed the decisions that the turn carries, but for those that it has to ask
// for again.
func (x *Log) adopts(t *session.Turn) {
	if p := x.before.Pending.Turn; p != nil && p.By != "" && p.OfTurn == t.ID && !x.queued(p.Message) {
		// in place of the turn that a person requested
		x.personal = x.c.Seq
	}
	for _, c := range t.Prompts {
		if x.before.Prompts[c.Prompt] == nil {
			x.named[t.ID] = append(slices.Clone(x.named[t.ID]), c.Prompt)
		}
	}
}

// turnOf returns the turn of a prompt that is requested, also if the request does not repeat it.
func (x *Log) turnOf(f events.PromptRequested) string {
	turn := f.Turn
	if p := x.before.Prompts[f.Prompt]; p != nil {
		turn = cmp.Or(turn, p.Turn)
	}
	if c := x.before.Tools[f.Call]; c != nil {
		turn = cmp.Or(turn, c.Turn)
	}
	return turn
}

// apart reports whether a prompt is that of a call in the background, which outlives its turn.
func (x *Log) apart(f events.PromptRequested) bool {
	call := f.Call
	if p := x.before.Prompts[f.Prompt]; p != nil {
		call = cmp.Or(call, p.Call)
	}
	c := x.before.Tools[call]
	return c != nil && c.Background
}

// synthetic reports whether a queued message is not a person's own.
func (x *Log) synthetic(message string) bool {
	return slices.ContainsFunc(x.before.Queue, func(m session.Message) bool { return m.ID == message && m.Synthetic })
}

// queued says whether an answer waits in the queue as the message that it has become: it has a turn of its own (V10).
func (x *Log) queued(message string) bool {
	return slices.ContainsFunc(x.before.Queue, func(m session.Message) bool { return m.ID == message })
}

// attended reports whether the living owner is to take in a decision by itself, because something there waits for it:
// the prompt belongs to no turn, or to a call that outlived its turn, and its asker has not given up.
func (x *Log) attended(prompt, call string) bool {
	s := x.before
	p, c := s.Prompts[prompt], s.Tools[call]
	switch {
	case !s.Owned || x.unattended[prompt]:
		return false
	case c != nil:
		return c.Epoch == s.Epoch && (s.Turn == nil || s.Turn.ID != c.Turn)
	}
	return p != nil && p.Turn == "" && p.Epoch == s.Epoch
}

// byPerson says whether a message of a person made this turn, as [session.State] has it.
func byPerson(f events.TurnStarted) bool {
	return !f.Synthetic && f.Message != "" && (f.Cause == events.CauseMessage || f.Cause == events.CauseFollowUp &&
		f.OfTurn == "")
}

func (x *Log) completed(turn string) {
	for _, id := range x.named[turn] {
		delete(x.debts, id)
		x.done[id] = "a turn that brought it has completed"
	}
}

// continues counts the turns that recovery requests for decisions, until a person acts.
func (x *Log) continues(e *events.Event) {
	switch f := e.Fact.(type) {
	case events.TurnRequested:
		if _, person := events.Person(e.Source); person {
			x.continued = 0
		} else if f.Cause == events.CauseAnswer && x.c.Writer == events.WriterReconciler {
			x.continued++
		}
	case events.PromptAnswered, events.PromptRejected, events.PromptDismissed:
		if x.c.Writer == events.WriterLedger {
			x.continued = 0
		}
	case events.MessageAccepted:
		if x.c.Writer != events.WriterHarness && !f.Synthetic {
			x.continued = 0
		}
	}
	if x.continued > session.ContinuationsMax {
		x.fail("V15: turn %s is the %dth that is requested for decisions since a person acted", e.Fact.Subject(),
			x.continued)
	}
}

// takes: no service asks for a turn in place of one that its owner runs.
func (x *Log) takes(f events.TurnRequested) {
	s := x.before
	runs := s.Owned && x.left != x.c.Seq && s.Turn != nil && s.Turn.Epoch == s.Epoch
	if runs && f.OfTurn == s.Turn.ID && (f.Cause == events.CauseAnswer || f.Cause == events.CauseResume ||
		f.Cause == events.CauseRetry) {
		x.fail("V15: turn %s (%s) is to go on with turn %s, which its owner runs", f.Turn, f.Cause, f.OfTurn)
	}
	if f.Cause == events.CauseAnswer && (x.c.Writer == events.WriterLedger || x.c.Writer == events.WriterReconciler) {
		x.displaces(f)
	}
}

// displaces: a turn for a decision about a prompt of another turn does not take the place of a retry of the last turn
// or of what follows a compaction, whose message it would drop. A retry of an earlier turn has no place any more: the
// agent has since begun a turn by itself.
func (x *Log) displaces(f events.TurnRequested) {
	s := x.before
	if p := s.Pending.Turn; p != nil && p.OfTurn != f.OfTurn && s.Turn == nil &&
		(p.Cause == events.CauseRetry || p.Cause == events.CauseResume || p.Cause == events.CauseFollowUp) {
		x.fail("V15: turn %s for a decision takes the place of turn %s (%s)", f.Turn, p.ID, p.Cause)
	}
	if s.Turn == nil && s.RetryFirst() && s.RetryPlanned() && s.LastTurn.ID != f.OfTurn {
		x.fail("V15: turn %s for a decision takes the place of the retry of turn %s", f.Turn, s.LastTurn.ID)
	}
}

// Clone is a copy that goes its own way.
func (x *Log) Clone() *Log {
	c := *x
	c.failedAt, c.cut, c.scheduled, c.asked = maps.Clone(x.failedAt), maps.Clone(x.cut), maps.Clone(x.scheduled),
		maps.Clone(x.asked)
	c.stopped, c.stops, c.sent, c.messages = maps.Clone(x.stopped), maps.Clone(x.stops), maps.Clone(x.sent),
		maps.Clone(x.messages)
	c.about, c.triggers, c.follow = maps.Clone(x.about), maps.Clone(x.triggers), maps.Clone(x.follow)
	c.debts, c.named, c.done = maps.Clone(x.debts), maps.Clone(x.named), maps.Clone(x.done)
	c.had, c.unattended = maps.Clone(x.had), maps.Clone(x.unattended)
	return &c
}

// Continued is how many turns recovery has requested for decisions since a person acted.
func (x *Log) Continued() int { return x.continued }

// Unattended are the prompts whose asker has given up, sorted.
func (x *Log) Unattended() []string { return slices.Sorted(maps.Keys(x.unattended)) }

// Named are the prompts that a turn brings to its agent, as it began.
func (x *Log) Named(turn string) []string { return x.named[turn] }

// Brings says whether a turn that has begun brings the decision about a prompt to its agent.
func (x *Log) Brings(turn, prompt string) bool { return slices.Contains(x.named[turn], prompt) }

// Places are the places in the log that what is followed of decisions depends on.
func (x *Log) Places() []uint64 {
	seqs := append(x.Acts(), x.lastStop)
	for _, d := range x.debts {
		seqs = append(seqs, d.at)
	}
	return seqs
}

// Each says what is owed, sorted by prompt, and where it was decided.
func (x *Log) Each(visit func(prompt string, at uint64)) {
	for _, id := range x.Owed() {
		visit(id, x.debts[id].at)
	}
}

// Done are the prompts whose decision no turn brings any more, sorted: a turn that brought it has completed, or the
// harness has refused it.
func (x *Log) Done() []string { return slices.Sorted(maps.Keys(x.done)) }
