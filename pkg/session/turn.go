package session

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

func (f *fold) applyTurn() (why string, ok bool) {
	switch fact := f.e.Fact.(type) {
	case events.TurnRequested:
		return f.turnRequested(fact), true
	case events.TurnStarted:
		return f.turnStarted(fact), true
	case events.TurnCompleted:
		return f.turnEnds(fact.Turn, OutcomeCompleted, fact.Finish, nil), true
	case events.TurnFailed:
		return f.turnFailed(fact), true
	case events.TurnStopRequested:
		return f.turnStopRequested(fact), true
	case events.TurnStopped:
		return f.turnStopped(fact), true
	case events.TurnInterrupted:
		return f.turnEnds(fact.Turn, OutcomeInterrupted, fact.Reason, nil), true
	}
	return "", false
}

// turnRequested: a newer request replaces a pending one.
func (f *fold) turnRequested(fact events.TurnRequested) string {
	switch {
	case f.Turn != nil && f.Turn.ID == fact.Turn || f.turnEnded(fact.Turn):
		return WhyClosedID
	case f.Pending.Turn != nil && f.Pending.Turn.ID == fact.Turn:
		return WhyOpen
	}
	by, _ := events.Person(f.e.Source)
	held := uint64(0)
	if by != "" && fact.Cause == events.CauseAnswer {
		held = f.HeldSeq
		if p := f.Pending.Turn; p != nil && held == 0 {
			held = p.Held
		}
	}
	prompts := f.carried(fact.OfTurn, fact.Prompt, fact.Prompts, fact.Message)
	f.Pending.Turn = &PendingTurn{ID: fact.Turn, Cause: word(fact.Cause), OfTurn: fact.OfTurn, Message: fact.Message,
		MessageSeq: f.MessageSeq(fact.Message), Attempt: fact.Attempt,
		Options: fact.Options, Compaction: fact.Compaction, Prompt: fact.Prompt, Prompts: prompts,
		By: cut(by, NameBytesMax), Held: held, At: f.c.At, Seq: f.c.Seq}
	f.countContinuation(fact.Cause, by != "")
	if by != "" {
		// the queue waits for this turn; should this turn's message be taken back, the next has its place
		f.HeldSeq = 0
	}
	switch {
	case fact.Cause == events.CauseRetry || fact.Cause == events.CauseResume:
		f.retryStarts(fact, by != "")
	case fact.Cause == events.CauseAnswer, f.Retry.State == RetryStarting, fact.Cause == events.CauseMessage &&
		f.Retry.State == RetryScheduled:
		// a person's decision continues by itself, with no retry beside it; another request takes a retry's place
		f.setRetryAside()
	}
	if l := f.LastCompaction; l != nil && fact.Compaction == l.ID {
		l.FollowUp = ""
	}
	return ""
}

// retryStarts records that a retry was requested. A person's request resets the limits of automatic retries, not the
// count of attempts.
func (f *fold) retryStarts(fact events.TurnRequested, person bool) {
	r := &f.Retry
	r.State, r.Reason = RetryStarting, ""
	r.Turn = orElse(fact.OfTurn, r.Turn)
	r.Attempt = max(r.Attempt, fact.Attempt)
	if person {
		r.SameFailures, r.Resumes = 0, 0
	}
	if fact.Cause == events.CauseResume {
		r.Resumes++
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// turnStarted ends the turn it comes over, takes its message and prompt along, and clears what was pending.
func (f *fold) turnStarted(fact events.TurnStarted) string {
	if t := f.Turn; t != nil && t.ID == fact.Turn {
		return f.turnAgain(fact)
	}
	if f.turnEnded(fact.Turn) {
		return WhyClosedID
	}
	var prompts []Carried
	asked := f.c.Seq
	if p := f.Pending.Turn; p != nil && p.ID == fact.Turn {
		fact = p.completed(fact)
		prompts, asked = p.Prompts, p.Seq
	}
	// while all who know are still there
	place := f.MessageSeq(fact.Message)
	if place != 0 && asked == f.c.Seq {
		// a decision after a person's message is newer than its turn
		asked = place
	}
	for _, c := range f.carried(fact.OfTurn, fact.Prompt, fact.Prompts, fact.Message) {
		prompts = f.carry(prompts, c)
	}
	requested := f.Pending.Turn != nil && f.Pending.Turn.ID == fact.Turn
	f.replaceTurn(fact.OfTurn)
	fact.Synthetic = fact.Synthetic || f.queuedSynthetic(fact.Message)
	f.Turn = &Turn{ID: fact.Turn, Cause: word(fact.Cause), Synthetic: fact.Synthetic, OfTurn: fact.OfTurn,
		Message: fact.Message, MessageSeq: place,
		Prompts: prompts, Since: f.c.At, Attempt: max(fact.Attempt, 1), Epoch: f.Epoch, Options: fact.Options}
	f.dequeue(fact.Message, place)
	stopped := f.stopHolds(requested, asked)
	f.Pending.Turn = nil
	f.leaveOwed(asked)
	switch {
	case f.Turn.byPerson() && stopped:
		f.Retry, f.ActiveAt = Retry{}, f.c.At
		f.overtake(asked)
	case f.Turn.byPerson():
		f.Retry, f.ActiveAt, f.HeldSeq = Retry{}, f.c.At, 0
		f.overtake(asked)
	case fact.Cause == events.CauseRetry || fact.Cause == events.CauseResume:
		// this is it, also by hand after it was given up
		f.Retry = f.Retry.counters()
	case f.Retry.State == RetryStarting || fact.Cause == events.CauseAnswer:
		f.setRetryAside()
	}
	return ""
}

// stopHolds applies the beginning of the open turn to a person's stop, and reports whether the stop holds this turn,
// too. Otherwise the stop ends if a person has continued the session.
func (f *fold) stopHolds(requested bool, asked uint64) bool {
	resumed := f.personAsked()
	if !resumed && f.stopMoves(requested, asked) {
		return true
	}
	if resumed || f.Turn.byPerson() {
		f.StoppedSeq = 0
	}
	return false
}

// personAsked reports whether a person requested the turn that has just begun, or another one, in whose place the agent
// began it. The request for an answer that waits in the queue as a message does not count: the person can still take
// that answer back.
func (f *fold) personAsked() bool {
	p := f.Pending.Turn
	return p != nil && p.By != "" && (p.Cause != events.CauseAnswer || f.queued(p.Message) < 0)
}

// stopMoves moves a person's stop, which the harness has not confirmed, to the turn that now begins, and reports
// whether it does. The process began that turn before it read the stop: no turn but the stopped one has ended since.
// A turn that a service requested after the stop, or that a person's later message caused, is newer than the stop, and
// the stop stays behind.
func (f *fold) stopMoves(requested bool, asked uint64) bool {
	p := f.Pending.Stop
	l := f.LastTurn
	if p == nil || p.Actor != events.ActorPerson || l == nil || l.ID != p.Turn && l.Seq > p.Seq {
		return false
	}
	if asked > p.Seq && (requested || f.Turn.byPerson()) {
		return false
	}
	moved := *p
	moved.Turn = f.Turn.ID
	f.Pending.Stop = &moved
	return true
}

// counters is the retry without what was planned.
func (r *Retry) counters() Retry {
	return Retry{Attempt: r.Attempt, SameFailures: r.SameFailures, Resumes: r.Resumes, Overflows: r.Overflows,
		Error: r.Error}
}

// setRetryAside ends a retry that is planned; one that was given up stays so. Its turn stays decided: should what took
// its place be taken back, nothing begins by itself.
func (f *fold) setRetryAside() {
	if r := &f.Retry; r.State != RetryAbandoned {
		turn := r.Turn
		*r = r.counters()
		r.Turn = turn
	}
}

// completed returns a start with the fields of its request that the harness did not repeat. Without them a message
// would be handed out twice, or a turn that continues another would look like one that was cut off. The prompt of the
// request counts only while the request still brings it.
func (p *PendingTurn) completed(fact events.TurnStarted) events.TurnStarted {
	fact.Cause = events.Cause(orElse(string(fact.Cause), string(p.Cause)))
	fact.OfTurn, fact.Message = orElse(fact.OfTurn, p.OfTurn), orElse(fact.Message, p.Message)
	if has(p.Prompts, p.Prompt) {
		fact.Prompt = orElse(fact.Prompt, p.Prompt)
	}
	fact.Attempt = max(fact.Attempt, p.Attempt)
	if len(fact.Options) == 0 {
		fact.Options = p.Options
	}
	return fact
}

// replaceTurn ends the open turn, if any, because another begins: that one continues it if its start names it.
func (f *fold) replaceTurn(continued string) {
	t := f.Turn
	if t == nil {
		return
	}
	outcome, reason := OutcomeStopped, events.ReasonReplaced
	switch {
	case continued == t.ID:
		outcome, reason = OutcomeContinued, ""
	case t.Epoch == f.Epoch:
		// the process that drops its turn keeps what it has
		t.Prompts = slices.DeleteFunc(slices.Clone(t.Prompts), f.hadByOwner)
	}
	f.endTurn(outcome, reason, nil, events.TurnStopped{Turn: t.ID, Reason: orElse(reason, OutcomeContinued)})
}

// byPerson reports whether a person's message caused this turn, at once or after a compaction. A turn without a message
// is the harness's own. A turn that continues another one after a compaction is not a person's, whatever message that
// one was about.
func (t *Turn) byPerson() bool {
	return !t.Synthetic && t.Message != "" && (t.Cause == events.CauseMessage || t.Cause == events.CauseFollowUp &&
		t.OfTurn == "")
}

// turnAgain: the same id while it is open is adoption by a newer epoch, else nothing new.
func (f *fold) turnAgain(fact events.TurnStarted) string {
	if f.Turn.Epoch == f.Epoch {
		return WhyOpen
	}
	f.adoptTurn()
	if fact.Options != nil {
		f.Turn.Options = fact.Options
	}
	return ""
}

// adoptTurn makes the present owner answer for the open turn. Decisions about its prompts are this owner's to take in,
// also about a prompt without a call that is kept and still waits for a person: it need not be asked again. A call that
// is not adopted is left to recovery, with the decision about its prompt, which becomes the call's output. And a
// continuation that was requested while the turn had no owner is not needed: the turn continues by itself. A message
// that the continuation was to take waits in the queue; a resume has not begun, so what becomes of the turn is decided
// like any other end.
func (f *fold) adoptTurn() {
	t := f.Turn
	if t.Epoch == f.Epoch {
		return
	}
	t.Epoch, t.DecidedSeq = f.Epoch, 0
	for _, p := range f.Prompts {
		c := f.Tools[p.Call]
		kept := p.OnOwnerLoss == events.LossKeep && c == nil
		taken := !p.Awaits() && (c == nil || c.Epoch == f.Epoch)
		if p.Turn == t.ID && (kept || taken) {
			p.Epoch = f.Epoch
		}
	}
	if p := f.Pending.Turn; p != nil && p.OfTurn == t.ID {
		// the person has continued the session, as if the requested turn had begun
		if f.personAsked() {
			f.StoppedSeq = 0
		}
		f.Pending.Turn = nil
		if f.Retry.State == RetryStarting {
			f.Retry = f.Retry.counters()
		}
	}
}

// dequeue removes a message from the queue: a turn has it. One that was never queued is noted too, so that it is not
// queued behind the turn that has it.
func (f *fold) dequeue(message string, accepted uint64) {
	if message == "" {
		return
	}
	switch i := f.queued(message); {
	case i >= 0:
		f.Queue = slices.Delete(f.Queue, i, i+1)
	case f.ended(EntityMessage, message) != nil:
		return
	}
	f.end(Ending{Entity: EntityMessage, ID: message, Outcome: OutcomeDelivered, OpenedSeq: accepted})
	f.carryAsMessage(message)
}

// MessageSeq is the place in the log where a message was taken in that waits, or that a turn has: one that is open,
// ended last or is asked for, or that had it so lately that the message's end is still kept. 0: no such message, or not
// known.
func (s *State) MessageSeq(message string) uint64 {
	if message == "" {
		return 0
	}
	if i := s.queued(message); i >= 0 {
		return s.Queue[i].Seq
	}
	switch e := s.ended(EntityMessage, message); {
	case e != nil && e.Outcome != OutcomeDelivered:
		return 0
	case e != nil && e.OpenedSeq != 0:
		return e.OpenedSeq
	}
	var seq uint64
	if t := s.Turn; t != nil && t.Message == message {
		seq = t.MessageSeq
	}
	if t := s.LastTurn; seq == 0 && t != nil && t.Message == message {
		seq = t.MessageSeq
	}
	if t := s.Pending.Turn; seq == 0 && t != nil && t.Message == message {
		seq = t.MessageSeq
	}
	return seq
}

// queued is the message's place in the queue, -1 if it is not there.
func (s *State) queued(message string) int {
	return slices.IndexFunc(s.Queue, func(m Message) bool { return m.ID == message })
}

func (s *State) queuedSynthetic(message string) bool {
	i := s.queued(message)
	return i >= 0 && s.Queue[i].Synthetic
}

// turnEnded reports whether a turn has ended, as far as the document can tell: its ending is kept, or it is the last
// turn, whose ending may be older than those that are kept.
func (s *State) turnEnded(turn string) bool {
	return s.LastTurn != nil && s.LastTurn.ID == turn || s.ended(EntityTurn, turn) != nil
}

// turnEnds is an ordinary ending of the turn it names.
func (f *fold) turnEnds(turn, outcome, reason string, failure *events.Failure) string {
	held := f.HeldSeq
	switch {
	case f.Turn != nil && f.Turn.ID == turn:
		f.endTurn(outcome, reason, failure, nil)
	case f.turnEnded(turn):
		return WhyClosedID
	default:
		return WhyUnknown
	}
	if outcome == OutcomeCompleted {
		f.Retry, f.HeldSeq = Retry{}, 0
		// otherwise a person has continued the session since the stop
		if held != 0 {
			f.HeldSeq = f.StoppedSeq
		}
		f.dropNeedless()
		if l := f.LastCompaction; l != nil {
			l.Progress = true
		}
	}
	return ""
}

func (f *fold) turnFailed(fact events.TurnFailed) string {
	failed := cutFailure(fact.Error)
	if why := f.turnEnds(fact.Turn, OutcomeFailed, failed.Kind, failed); why != "" {
		return why
	}
	f.LastTurn.HadOutput = fact.HadOutput
	if before := f.Retry.Error; before == nil || before.Kind == failed.Kind {
		f.Retry.SameFailures++
	} else {
		f.Retry.SameFailures = 1
	}
	f.Retry.Error = failed
	if failed.Kind == failure.ContextExceeded {
		f.Retry.Overflows++
	}
	return ""
}

// turnStopRequested is pending work until the receipt, for the process that runs or ran the turn, or could begin it. A
// person's stop also takes back what was only asked for: a requested turn, a retry.
func (f *fold) turnStopRequested(fact events.TurnStopRequested) string {
	p, person := f.Pending.Turn, fact.Actor == events.ActorPerson
	open := f.Turn != nil && f.Turn.ID == fact.Turn
	past := f.turnEnded(fact.Turn)
	// its ending may be forgotten
	planned := p != nil && p.ID == fact.Turn || f.Retry.Turn == fact.Turn
	if !open && !past && !(person && planned) {
		return WhyUnknown
	}
	// the owner may begin by itself what was requested, before it reads the stop
	if open || f.Owned {
		f.Pending.Stop = &PendingStop{Turn: fact.Turn, Actor: word(fact.Actor), By: cut(fact.By, NameBytesMax),
			Reason: cut(fact.Reason, TextBytesMax), At: f.c.At, Seq: f.c.Seq}
	}
	if person {
		f.HeldSeq, f.StoppedSeq = f.c.Seq, f.c.Seq
		f.withdrawRequested(fact)
	}
	return ""
}

// withdrawRequested drops what was requested: nothing requested starts after a person's stop, and the last turn shows
// who stopped it.
func (f *fold) withdrawRequested(fact events.TurnStopRequested) {
	p := f.Pending.Turn
	took := p != nil
	if took {
		// also what the turn before had, which is forgotten now
		prompts := f.brings()
		f.Pending.Turn = nil
		f.end(Ending{Entity: EntityTurn, ID: p.ID, Outcome: OutcomeStopped, Reason: fact.Reason})
		if f.Turn == nil && (f.LastTurn == nil || p.Cause != events.CauseRetry && p.Cause != events.CauseResume) {
			f.LastTurn = &LastTurn{ID: p.ID, Outcome: OutcomeStopped, Reason: cut(fact.Reason, TextBytesMax),
				At: f.c.At, Message: p.Message, MessageSeq: p.MessageSeq, Prompts: prompts,
				Options: p.Options, Cause: p.Cause, OfTurn: p.OfTurn, Attempt: max(p.Attempt, 1), Seq: f.c.Seq}
		}
	}
	if l := f.LastTurn; f.Turn == nil && l != nil && (took || l.ID == fact.Turn) {
		l.Actor = events.ActorPerson
	}
	if r := &f.Retry; f.RetryPlanned() {
		r.State, r.Reason = RetryAbandoned, reasonStopped
		f.derive(events.RetryAbandoned{Turn: r.Turn, Attempt: r.Attempt, Reason: reasonStopped})
	}
}

// reasonStopped is why a retry was given up that a person stopped.
const reasonStopped = "stopped"

// Of reports whether the stop is of this turn. It may be nil.
func (p *PendingStop) Of(turn string) bool { return p != nil && p.Turn == turn }

// turnStopped ends the turn, or is the receipt for one that ended before its stop was known.
func (f *fold) turnStopped(fact events.TurnStopped) string {
	asked := f.Pending.Stop
	if !asked.Of(fact.Turn) {
		asked = nil
	}
	held := f.HeldSeq
	why := f.turnEnds(fact.Turn, OutcomeStopped, fact.Reason, nil)
	if why == "" && f.LastTurn.Actor != events.ActorPerson && fact.Actor == events.ActorCompaction {
		// it continues by itself
		f.HeldSeq = held
	}
	switch {
	case why == "" && f.LastTurn.Actor == events.ActorPerson:
		// a person stopped a turn that was already to stop for a compaction; the harness confirms what it read first
	case why == "" && asked != nil:
		f.LastTurn.Actor = orElse(word(fact.Actor), asked.Actor)
	case why == "":
		f.LastTurn.Actor = word(fact.Actor)
	case asked == nil:
		return why
	}
	if asked != nil {
		f.Pending.Stop = nil
	}
	return ""
}

// endTurn closes the open turn with what belongs to it; said is the fact for the feed that no writer appended. Calls
// come first and the turn last: of many endings at once the older ones are not kept, and people look for the prompts
// and the turn.
func (f *fold) endTurn(outcome, reason string, failure *events.Failure, fact events.Fact) {
	t := f.Turn
	if fact != nil {
		f.derive(fact)
	}
	for _, id := range sortedKeys(f.Tools) {
		if c := f.Tools[id]; c.Turn == t.ID && !c.Background {
			f.endCallContained(id, OutcomeEndedWithTurn, events.ReasonTurnEnded)
		}
	}
	for _, id := range sortedKeys(f.Prompts) {
		p := f.Prompts[id]
		// a call's prompt is in the call's turn
		if c := f.Tools[p.Call]; p.Turn == t.ID && (c == nil || !c.Background) {
			f.withdraw(id, events.ReasonTurnEnded)
		}
	}
	reason = cut(reason, TextBytesMax)
	prompts := f.stillOwed(t, outcome == OutcomeCompleted)
	if outcome == OutcomeCompleted {
		f.deliverCarried(t)
	}
	f.LastTurn = &LastTurn{ID: t.ID, Outcome: outcome, Reason: reason, At: f.c.At, Error: failure, Message: t.Message,
		MessageSeq: t.MessageSeq, Prompts: prompts,
		Options: t.Options, Cause: t.Cause, OfTurn: t.OfTurn, Attempt: t.Attempt, Synthetic: t.Synthetic, Seq: f.c.Seq}
	if p := f.Pending.Stop; p.Of(t.ID) && outcome != OutcomeCompleted {
		// however it ended: it was not to go on
		f.LastTurn.Actor = p.Actor
	}
	if outcome != OutcomeContinued && f.LastTurn.Actor != events.ActorPerson {
		// after a person's stop the queue waits since that was asked for: what was said after it is newer
		f.HeldSeq = f.c.Seq
	}
	f.end(Ending{Entity: EntityTurn, ID: t.ID, Outcome: outcome, Reason: reason})
	f.Turn = nil
	if !f.Owned {
		// no process ran it any more
		f.dropReceipt()
	}
}
