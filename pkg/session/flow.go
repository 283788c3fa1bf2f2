package session

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// messageAccepted queues user input. A person's supersedes what blocks, whoever took it in.
func (f *fold) messageAccepted(fact events.MessageAccepted) string {
	e := f.ended(EntityMessage, fact.Message)
	switch {
	case e != nil && e.Seq == f.c.Seq && e.Outcome == OutcomeDelivered && e.OpenedSeq == 0: // the turn that has it is in the same commit
		e.OpenedSeq = f.c.Seq
		if t := f.Turn; t != nil && t.Message == fact.Message {
			t.MessageSeq = f.c.Seq
		}
	case e != nil || f.MessageSeq(fact.Message) != 0:
		return WhyClosedID
	case len(f.Queue) >= QueuedMax || !f.room(messageBytes, fact.Message):
		return WhyLimit
	default:
		f.Queue = append(f.Queue, Message{ID: fact.Message, Seq: f.c.Seq, Synthetic: fact.Synthetic, At: f.c.At})
	}
	if !fact.Synthetic {
		if f.c.Writer != events.WriterHarness { // what a harness takes in may be its own
			f.personActs()
		}
		f.ActiveAt = f.c.At
		f.Policy.AutoRetry = true // a person who goes on wants it to go on
		f.supersede(fact.Message)
	}
	return ""
}

func (f *fold) messageWithdrawn(fact events.MessageWithdrawn) string {
	i := f.queued(fact.Message)
	switch {
	case i < 0 && f.ended(EntityMessage, fact.Message) != nil:
		return WhyClosedID
	case i < 0:
		return WhyUnknown
	}
	f.end(Ending{Entity: EntityMessage, ID: fact.Message, Outcome: string(Withdrawn), OpenedSeq: f.Queue[i].Seq})
	f.Queue = slices.Delete(f.Queue, i, i+1)
	if p := f.Pending.Turn; p != nil && p.Message == fact.Message {
		f.Pending.Turn = nil
		if p.Cause == events.CauseAnswer && f.HeldSeq == 0 {
			f.HeldSeq = p.Held // the answer that had let the queue move is taken back
		}
	}
	for id, p := range f.Prompts {
		if f.isAnswer(id, p, fact.Message) {
			delete(f.Prompts, id) // the person has taken the answer back
			f.notCarried(id)
		}
	}
	return ""
}

// usageReported takes the report of the open turn, or of the one that has just ended while none is open: it says nothing
// about a turn's life. What was counted before the conversation was compacted says nothing any more.
func (f *fold) usageReported(fact events.UsageReported) string {
	last, l := f.LastTurn, f.LastCompaction
	switch {
	case fact.Turn == "" || f.openTurn(fact.Turn) != "":
	case f.ended(EntityTurn, fact.Turn) == nil:
		return WhyUnknown
	case f.Turn != nil || last == nil || last.ID != fact.Turn:
		return WhyTurnEnded
	case l != nil && l.Outcome == OutcomeCompleted && last.Seq <= l.Seq:
		return WhyTurnEnded
	}
	if fact.Model != "" {
		f.Model = cut(fact.Model, NameBytesMax)
	}
	if fact.ContextLimit > 0 {
		f.ContextLimit = fact.ContextLimit
	}
	switch used := fact.Used(); {
	case l == nil:
	case f.Usage == nil, used > 0 && (l.UsedLeast == 0 || used < l.UsedLeast): // a report of nothing is not the least there was
		l.UsedLeast = used
	}
	f.Usage = &Usage{Tokens: fact.Tokens, Used: fact.Used(), At: f.c.At}
	f.recount()
	return ""
}

// warnBelow is how far below the threshold, as a part of the limit, people are warned.
const warnBelow = 0.10

// warnExact: a threshold of 0.8 warns at 0.7, not at the 0.7000000000000001 that the subtraction gives.
const warnExact = 1e9

// recount derives what usage means under the present limit and policy.
func (f *fold) recount() {
	u := f.Usage
	if u == nil {
		return
	}
	u.Limit, u.Percent, u.Warn = f.Limit(), 0, false
	if u.Limit <= 0 {
		return
	}
	u.Percent = float64(u.Used*1000/u.Limit) / 10
	t := f.Policy.CompactionThreshold
	u.Warn = t < 1 && float64(u.Used) >= math.Round((t-warnBelow)*warnExact)/warnExact*float64(u.Limit)
}

// Limit is how many tokens fit: the policy's, else the reported one, else the session's; 0 is unknown.
func (s *State) Limit() int64 {
	if s.Policy.ContextLimit > 0 {
		return s.Policy.ContextLimit
	}
	return max(s.ContextLimit, 0)
}

// thresholdExact is the precision of a threshold: 0.7 + 0.05 is 0.75.
const thresholdExact = 1e9

// UsageOver reports whether usage is at the threshold plus this part of the limit. It is false while usage or the limit
// is unknown, and with a threshold of 1.
func (s *State) UsageOver(more float64) bool {
	limit, t := s.Limit(), s.Policy.CompactionThreshold
	if s.Usage == nil || limit <= 0 || t >= 1 {
		return false
	}
	return float64(s.Usage.Used) >= math.Round((t+more)*thresholdExact)/thresholdExact*float64(limit)
}

// retryScheduled arms a retry of the turn that failed last.
func (f *fold) retryScheduled(fact events.RetryScheduled) string {
	if f.LastTurn == nil || f.LastTurn.ID != fact.Turn || f.Turn != nil {
		return WhyUnknown
	}
	f.Retry.State, f.Retry.Turn, f.Retry.Attempt, f.Retry.DueAt = RetryScheduled, fact.Turn, fact.Attempt, instant(fact.DueAt)
	f.Retry.Error, f.Retry.Reason = cutFailure(fact.Error), ""
	return ""
}

func (f *fold) retryAbandoned(fact events.RetryAbandoned) string {
	if (f.LastTurn == nil || f.LastTurn.ID != fact.Turn) && f.Retry.Turn != fact.Turn {
		return WhyUnknown
	}
	if f.RetryPlanned() && f.RetryFirst() {
		f.HeldSeq = f.c.Seq // else the queue waits since the turn ended: what a person said after that is newer, however late this comes
	}
	f.Retry.State, f.Retry.Turn, f.Retry.Reason = RetryAbandoned, fact.Turn, cut(fact.Reason, TextBytesMax)
	f.Retry.Attempt = max(f.Retry.Attempt, fact.Attempt)
	if p := f.Pending.Turn; p != nil && (p.Cause == events.CauseRetry || p.Cause == events.CauseResume) {
		f.Pending.Turn = nil
	}
	return ""
}

// Failed is the failure that the last turn ended in, nil if it did not or if a turn is open. That its process died is one.
func (s *State) Failed() *events.Failure {
	l := s.LastTurn
	switch {
	case s.Turn != nil || l == nil:
		return nil
	case l.Outcome == OutcomeInterrupted:
		return &events.Failure{Kind: failure.Interrupted, Text: l.Reason}
	case l.Outcome == OutcomeFailed:
		return l.Error
	}
	return nil
}

// FailureUndecided says whether nothing has been decided about the last turn's failure: neither that it will be tried
// again, nor that it will not, nor that a turn follows it.
func (s *State) FailureUndecided() bool {
	return s.Closed == nil && s.Pending.Turn == nil && s.Failed() != nil && s.Retry.Turn != s.LastTurn.ID
}

func (f *fold) applyCompaction() string {
	switch fact := f.e.Fact.(type) {
	case events.CompactionRequested:
		return f.compactionRequested(fact)
	case events.CompactionStarted:
		return f.compactionStarted(fact)
	case events.CompactionCompleted:
		return f.compactionEnds(fact.Compaction, OutcomeCompleted, fact.UsedAfter, nil)
	case events.CompactionFailed:
		return f.compactionEnds(fact.Compaction, OutcomeFailed, 0, cutFailure(fact.Error))
	}
	return WhyUnknown
}

// CompactionOpen reports whether a compaction is requested or running.
func (s *State) CompactionOpen() bool {
	return s.Compaction != nil && (s.Compaction.State == CompactionRequested || s.Compaction.State == CompactionRunning)
}

func (f *fold) compactionRequested(fact events.CompactionRequested) string {
	switch {
	case f.CompactionOpen():
		return WhyOpen
	case f.ended(EntityCompaction, fact.Compaction) != nil:
		return WhyClosedID
	}
	f.Compaction = &Compaction{State: CompactionRequested, ID: fact.Compaction, Reason: cut(fact.Reason, NameBytesMax), FollowUp: word(fact.FollowUp),
		Message: fact.Message, Since: f.c.At, Used: fact.Used, Limit: fact.Limit, Epoch: f.Epoch}
	f.Pending.Compaction = &PendingCompaction{ID: fact.Compaction, Reason: f.Compaction.Reason, Message: fact.Message, At: f.c.At, Seq: f.c.Seq}
	switch {
	case fact.Reason == events.CompactMidStream && f.Turn != nil:
		f.Turn.Compaction, f.Compaction.Turn = fact.Compaction, f.Turn.ID
	case fact.FollowUp == events.FollowContinue && f.Turn != nil: // it has not heard yet that it is to stop
		f.Compaction.Turn = f.Turn.ID
	case fact.FollowUp == events.FollowContinue && f.LastTurn != nil:
		f.Compaction.Turn = f.LastTurn.ID
	}
	return ""
}

func (f *fold) compactionStarted(fact events.CompactionStarted) string {
	c := f.Compaction
	switch {
	case f.ended(EntityCompaction, fact.Compaction) != nil:
		return WhyClosedID
	case !f.CompactionOpen() || c.ID != fact.Compaction:
		return WhyUnknown
	case c.State == CompactionRunning && c.Epoch == f.Epoch:
		return WhyOpen
	}
	c.State, c.Since, c.Epoch = CompactionRunning, f.c.At, f.Epoch
	f.Pending.Compaction = nil
	return ""
}

// compactionEnds: usage of before a completed one counts no more. What follows it is owed until a turn is requested for it.
func (f *fold) compactionEnds(id, outcome string, usedAfter int64, failure *events.Failure) string {
	c := f.Compaction
	switch {
	case f.ended(EntityCompaction, id) != nil:
		return WhyClosedID
	case !f.CompactionOpen() || c.ID != id:
		return WhyUnknown
	}
	l := &LastCompaction{ID: id, Outcome: outcome, Reason: c.Reason, UsedBefore: c.Used, UsedAfter: max(usedAfter, 0), At: f.c.At,
		FollowUp: c.FollowUp, Message: c.Message, Turn: c.Turn, Error: failure, Seq: f.c.Seq}
	reason := ""
	if outcome == OutcomeCompleted {
		f.Usage, l.UsedLeast = nil, l.UsedAfter
	} else {
		reason = failure.Kind
		l.Failures = 1
		if f.LastCompaction != nil {
			l.Failures += f.LastCompaction.Failures
		}
	}
	f.end(Ending{Entity: EntityCompaction, ID: id, Outcome: outcome, Reason: reason})
	f.LastCompaction, f.Compaction, f.Pending.Compaction = l, nil, nil
	return ""
}

// NewerMessage says whether a person has sent a message after this place in the log that waits in the queue.
func (s *State) NewerMessage(seq uint64) bool {
	return slices.ContainsFunc(s.Queue, func(m Message) bool { return !m.Synthetic && m.Seq > seq })
}

// QueueMoves says whether the queue may move on when nothing else goes first: after a turn that completed, or after a
// person's act. After a failure, a stop or an interruption it waits for one (C7).
func (s *State) QueueMoves() bool { return s.HeldSeq == 0 || s.NewerMessage(s.HeldSeq) }

// FollowUp is what is owed after the last compaction, however that ended: [events.FollowMessage], [events.FollowContinue]
// or "". A message that was withdrawn, and a turn that completed all the same, that a person stopped or that another has
// come after, are not followed up.
func (s *State) FollowUp() string {
	l := s.LastCompaction
	if l == nil || s.CompactionOpen() {
		return ""
	}
	t := s.LastTurn
	switch {
	case l.FollowUp == events.FollowMessage && s.queued(l.Message) >= 0 && s.QueueMoves():
		return events.FollowMessage
	case l.FollowUp != events.FollowContinue:
		return ""
	case s.Turn != nil && s.Turn.ID == l.Turn, // it is still to stop
		s.Turn == nil && t != nil && t.ID == l.Turn && t.Outcome != OutcomeCompleted && t.Actor != events.ActorPerson:
		return events.FollowContinue
	}
	return ""
}

// compactionsMax is how often in a row a compaction fails until it is given up, unless the policy says how often.
const compactionsMax = 20

// CompactAgain says whether the compaction that failed last is to be tried again: its failure may pass, and somebody still
// waits for it (C8).
func (s *State) CompactAgain() bool {
	l := s.LastCompaction
	if l == nil || l.Outcome != OutcomeFailed || s.CompactionOpen() {
		return false
	}
	most := compactionsMax
	if s.Policy.RetryMax > 0 {
		most = s.Policy.RetryMax
	}
	switch {
	case !s.Policy.AutoRetry, !failure.Retryable(l.ErrorKind()), l.Failures >= most, s.crashHeld():
		return false
	case l.Reason == events.CompactManual:
		return true
	}
	return s.FollowUp() != "" && s.Policy.CompactionThreshold < 1 // switched off since: what waits for it waits no longer
}

// crashHeld: the compaction failed because its process was gone, and the policy has a person say whether it goes on.
func (s *State) crashHeld() bool {
	l := s.LastCompaction
	gone := l.ErrorKind() == events.ReasonOwnerLost || l.ErrorKind() == events.ReasonShutdown
	return gone && s.Policy.Resume == events.ResumeHold && !s.NewerMessage(l.Seq)
}

// Held says whether what follows the compaction that failed last waits for a person: it is not tried again, and without
// it the conversation does not fit (C8).
func (s *State) Held() bool {
	l := s.LastCompaction
	if l == nil || l.Outcome != OutcomeFailed || s.FollowUp() == "" || s.CompactAgain() {
		return false
	}
	if t := s.LastTurn; l.FollowUp == events.FollowContinue && (s.crashHeld() || t != nil && t.overflowed()) {
		return true
	}
	limit := s.Limit()
	return limit > 0 && s.Usage != nil && s.Usage.Used >= limit
}

// ErrorKind is why it failed, "" if it did not.
func (l *LastCompaction) ErrorKind() string {
	if l.Error == nil {
		return ""
	}
	return l.Error.Kind
}

// compactionGain is what part of before may be left after a compaction that was of use.
const compactionGain = 0.95

// Stalled says whether the last compaction was of no use, so that no other one is asked for by rule until usage has fallen
// (C9): what was reported since is as much as before it, or never came below the threshold. The same goes for a turn whose
// context was too long right after it.
func (s *State) Stalled() bool {
	l := s.LastCompaction
	if l == nil || l.Outcome != OutcomeCompleted {
		return false
	}
	if t := s.LastTurn; t != nil && t.overflowed() && t.Seq > l.Seq && !l.Progress && s.Usage == nil {
		return true
	}
	mark := s.Policy.CompactionThreshold * float64(s.Limit())
	if l.UsedLeast <= 0 || mark <= 0 {
		return false
	}
	least := float64(l.UsedLeast)
	return least >= mark || float64(l.UsedBefore) >= mark && least >= compactionGain*float64(l.UsedBefore)
}

func (t *LastTurn) overflowed() bool {
	return t.Outcome == OutcomeFailed && t.Error != nil && t.Error.Kind == failure.ContextExceeded
}

// Overflowed says whether the last turn failed because the conversation is more than the model takes in, and a compaction
// is to mend that, or has (C11): the first time before there is progress, unless a compaction has just been of no use. While
// it holds compaction acts and retry leaves the turn alone; as soon as it does not, retry says that the turn is given up.
func (s *State) Overflowed() bool {
	t, l := s.LastTurn, s.LastCompaction
	if !s.FailureUndecided() || !t.overflowed() || t.Actor == events.ActorPerson {
		return false
	}
	switch {
	case l != nil && l.Seq > t.Seq:
		return l.Outcome == OutcomeCompleted
	case s.Policy.CompactionThreshold >= 1 || s.Retry.Overflows > 1:
		return false
	case l == nil || l.Outcome == OutcomeFailed:
		return true
	}
	return l.Progress || s.Usage != nil && !s.Stalled()
}

// CompactionFirst says whether the next step is compaction's, and retry has to wait: one is wanted or under way, what
// follows one is owed and not held, or the last turn is [State.Overflowed].
func (s *State) CompactionFirst() bool {
	return s.CompactionOpen() || s.FollowUp() != "" && !s.Held() || s.Overflowed()
}

// RetryFirst says whether the queue waits behind another attempt of the last turn: one is scheduled or about to start, or
// it is still to be said whether there is one (C7). A person who speaks after a crash goes first (R15).
func (s *State) RetryFirst() bool {
	if t := s.LastTurn; t != nil && t.Outcome == OutcomeInterrupted && s.NewerMessage(s.HeldSeq) {
		return false
	}
	return s.RetryPlanned() || s.FailureUndecided() && s.LastTurn.Actor != events.ActorPerson
}

// restCompaction shows, while none is open, why one would not help, or why what follows it does not come.
func (s *State) restCompaction() {
	l := s.LastCompaction
	if s.CompactionOpen() || s.Closed != nil {
		return
	}
	s.Compaction = nil
	if l == nil {
		return
	}
	rest := &Compaction{ID: l.ID, Reason: l.Reason, FollowUp: l.FollowUp, Message: l.Message, Turn: l.Turn, Since: l.At, Used: l.UsedBefore, Limit: s.Limit(), Epoch: s.Epoch}
	switch {
	case s.Held():
		rest.State, rest.Error = CompactionHeld, l.Error
	case s.Stalled():
		rest.State = CompactionStalled
		rest.Error = &events.Failure{Kind: events.ReasonNoProgress, Text: fmt.Sprintf("%d tokens before the compaction, %d after: another one would not help", l.UsedBefore, l.UsedLeast)}
	default:
		return
	}
	s.Compaction = rest
}
