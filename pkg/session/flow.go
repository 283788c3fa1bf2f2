package session

import (
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// messageAccepted queues user input. A person's supersedes what blocks, whoever took it in.
func (f *fold) messageAccepted(fact events.MessageAccepted) string {
	e := f.ended(EntityMessage, fact.Message)
	switch {
	case e != nil && e.Seq == f.c.Seq && e.Outcome == OutcomeDelivered: // the turn that has it is in the same commit
	case e != nil || f.queued(fact.Message) >= 0:
		return whyClosedID
	case len(f.Queue) >= QueuedMax || !f.room(messageBytes, fact.Message):
		return whyLimit
	default:
		f.Queue = append(f.Queue, Message{ID: fact.Message, Seq: f.c.Seq, Synthetic: fact.Synthetic, At: f.c.At})
	}
	if !fact.Synthetic {
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
		return whyClosedID
	case i < 0:
		return whyUnknown
	}
	f.Queue = slices.Delete(f.Queue, i, i+1)
	f.end(Ending{Entity: EntityMessage, ID: fact.Message, Outcome: string(Withdrawn)})
	if p := f.Pending.Turn; p != nil && p.Message == fact.Message {
		f.Pending.Turn = nil
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
		return whyUnknown
	case f.Turn != nil || last == nil || last.ID != fact.Turn:
		return whyTurnEnded
	case l != nil && l.Outcome == OutcomeCompleted && !last.At.After(l.At):
		return whyTurnEnded
	}
	if fact.Model != "" {
		f.Model = cut(fact.Model, NameBytesMax)
	}
	if fact.ContextLimit > 0 {
		f.ContextLimit = fact.ContextLimit
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

// retryScheduled arms a retry of the turn that failed last.
func (f *fold) retryScheduled(fact events.RetryScheduled) string {
	if f.LastTurn == nil || f.LastTurn.ID != fact.Turn || f.Turn != nil {
		return whyUnknown
	}
	f.Retry.State, f.Retry.Turn, f.Retry.Attempt, f.Retry.DueAt = RetryScheduled, fact.Turn, fact.Attempt, instant(fact.DueAt)
	f.Retry.Error, f.Retry.Reason = cutFailure(fact.Error), ""
	return ""
}

func (f *fold) retryAbandoned(fact events.RetryAbandoned) string {
	if (f.LastTurn == nil || f.LastTurn.ID != fact.Turn) && f.Retry.Turn != fact.Turn {
		return whyUnknown
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

// CompactionFirst says whether the next step is compaction's: one is wanted or under way, what follows one is owed, or the
// last turn is [State.Overflowed]. Until then retry waits.
func (s *State) CompactionFirst() bool {
	l := s.LastCompaction
	switch {
	case s.compactionOpen():
		return true
	case s.Compaction != nil: // held or stalled: it is said, and a person's turn
		return false
	case l != nil && l.FollowUp != "" && (s.LastTurn == nil || !l.At.Before(s.LastTurn.At)):
		return true
	}
	return s.Overflowed()
}

// Overflowed says whether the last turn failed because the conversation is more than the model takes in, and a compaction
// may mend that: once for each message, which that compaction's request names. While it holds, compaction acts and retry
// leaves the turn alone; as soon as it does not, retry says that the turn is given up.
func (s *State) Overflowed() bool {
	x, l, c := s.Failed(), s.LastTurn, s.LastCompaction
	switch {
	case x == nil || x.Kind != failure.ContextExceeded || s.Pending.Turn != nil || l.Actor == events.ActorPerson:
		return false
	case s.Policy.CompactionThreshold >= 1 || s.Retry.State == RetryAbandoned && s.Retry.Turn == l.ID:
		return false
	case c == nil || c.Message != l.Message || l.Message == "" && l.Cause == events.CauseMessage:
		return true // none was for this message
	}
	return c.Outcome == OutcomeFailed && c.Error != nil && failure.Retryable(c.Error.Kind)
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
	return whyUnknown
}

// compactionOpen says whether one is wanted or under way.
func (s *State) compactionOpen() bool {
	return s.Compaction != nil && (s.Compaction.State == CompactionRequested || s.Compaction.State == CompactionRunning)
}

func (f *fold) compactionRequested(fact events.CompactionRequested) string {
	switch {
	case f.compactionOpen():
		return whyOpen
	case f.ended(EntityCompaction, fact.Compaction) != nil:
		return whyClosedID
	}
	f.Compaction = &Compaction{State: CompactionRequested, ID: fact.Compaction, Reason: cut(fact.Reason, NameBytesMax), FollowUp: word(fact.FollowUp),
		Message: fact.Message, Since: f.c.At, Used: fact.Used, Limit: fact.Limit, Epoch: f.Epoch}
	f.Pending.Compaction = &PendingCompaction{ID: fact.Compaction, Reason: f.Compaction.Reason, Message: fact.Message, At: f.c.At, Seq: f.c.Seq}
	if fact.Reason == events.CompactMidStream && f.Turn != nil {
		f.Turn.Compaction, f.Compaction.Turn = fact.Compaction, f.Turn.ID
	}
	return ""
}

func (f *fold) compactionStarted(fact events.CompactionStarted) string {
	c := f.Compaction
	switch {
	case f.ended(EntityCompaction, fact.Compaction) != nil:
		return whyClosedID
	case !f.compactionOpen() || c.ID != fact.Compaction:
		return whyUnknown
	case c.State == CompactionRunning && c.Epoch == f.Epoch:
		return whyOpen
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
		return whyClosedID
	case !f.compactionOpen() || c.ID != id:
		return whyUnknown
	}
	l := &LastCompaction{ID: id, Outcome: outcome, Reason: c.Reason, UsedBefore: c.Used, UsedAfter: max(usedAfter, 0), At: f.c.At,
		FollowUp: c.FollowUp, Message: c.Message, Turn: c.Turn, Error: failure}
	reason := ""
	if outcome == OutcomeCompleted {
		f.Usage = nil
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
