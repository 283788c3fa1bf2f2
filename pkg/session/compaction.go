package session

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

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
	return s.Compaction != nil && s.Compaction.IsOpen(s.Compaction.ID)
}

// IsOpen reports whether the compaction has this id, and is requested or running. It may be nil.
func (c *Compaction) IsOpen(id string) bool {
	return c != nil && c.ID == id && (c.Running() || c.State == CompactionRequested)
}

// Running reports whether a harness has taken the compaction. It may be nil.
func (c *Compaction) Running() bool { return c != nil && c.State == CompactionRunning }

func (f *fold) compactionRequested(fact events.CompactionRequested) string {
	switch {
	case f.CompactionOpen():
		return WhyOpen
	case f.ended(EntityCompaction, fact.Compaction) != nil:
		return WhyClosedID
	}
	f.Compaction = &Compaction{State: CompactionRequested, ID: fact.Compaction, Reason: cut(fact.Reason, NameBytesMax),
		FollowUp: word(fact.FollowUp),
		Message:  fact.Message, Since: f.c.At, Used: fact.Used, Limit: fact.Limit, Epoch: f.Epoch}
	f.Pending.Compaction = &PendingCompaction{ID: fact.Compaction, Reason: f.Compaction.Reason, Message: fact.Message,
		At: f.c.At, Seq: f.c.Seq}
	switch {
	case fact.Reason == events.CompactMidStream && f.Turn != nil:
		f.Turn.Compaction, f.Compaction.Turn = fact.Compaction, f.Turn.ID
	case fact.FollowUp == events.FollowContinue && f.Turn != nil:
		// it does not know yet that it is to stop
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
	case !c.IsOpen(fact.Compaction):
		return WhyUnknown
	case c.Running() && c.Epoch == f.Epoch:
		return WhyOpen
	}
	c.State, c.Since, c.Epoch = CompactionRunning, f.c.At, f.Epoch
	f.Pending.Compaction = nil
	return ""
}

// compactionEnds ends the open compaction. Usage from before a completed one no longer counts. Its follow-up is owed
// until a turn is requested for it.
func (f *fold) compactionEnds(id, outcome string, usedAfter int64, failure *events.Failure) string {
	c := f.Compaction
	switch {
	case f.ended(EntityCompaction, id) != nil:
		return WhyClosedID
	case !c.IsOpen(id):
		return WhyUnknown
	}
	l := &LastCompaction{ID: id, Outcome: outcome, Reason: c.Reason, UsedBefore: c.Used, UsedAfter: max(usedAfter, 0),
		At:       f.c.At,
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

// FollowUp returns what is owed after the last compaction, however that ended: [events.FollowMessage],
// [events.FollowContinue] or "". A message that was withdrawn, and a turn that completed all the same, that a person
// stopped or that another has come after, are not followed up.
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
	case s.Turn != nil && s.Turn.ID == l.Turn,
		s.Turn == nil && t != nil && t.ID == l.Turn && t.Outcome != OutcomeCompleted && t.Actor != events.ActorPerson:
		// it is still to stop, or has stopped for the compaction
		return events.FollowContinue
	}
	return ""
}

// compactionsMax is how often in a row a compaction fails until it is given up, unless the policy says how often.
const compactionsMax = 20

// CompactAgain reports whether the compaction that failed last is to be tried again: its failure may pass, and a
// message or a turn still waits for it (C8).
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
	// switched off since: what waits for it waits no longer
	return s.FollowUp() != "" && s.Policy.CompactionThreshold < 1
}

// crashHeld reports whether the compaction failed because its process was gone, and the policy leaves it to a person
// whether to continue.
func (s *State) crashHeld() bool {
	l := s.LastCompaction
	gone := l.ErrorKind() == events.ReasonOwnerLost || l.ErrorKind() == events.ReasonShutdown
	return gone && s.Policy.Resume == events.ResumeHold && !s.NewerMessage(l.Seq)
}

// Held reports whether what follows the compaction that failed last waits for a person: it is not tried again, and
// without it the conversation does not fit (C8).
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

// ErrorKind returns why it failed, "" if it did not.
func (l *LastCompaction) ErrorKind() string {
	if l.Error == nil {
		return ""
	}
	return l.Error.Kind
}

// compactionGain is what part of before may be left after a compaction that was of use.
const compactionGain = 0.95

// Stalled reports whether the last compaction was of no use, so that no other one is asked for by rule until usage has
// fallen (C9): what was reported since is as much as before it, or never came below the threshold. The same goes for a
// turn whose context was too long right after it.
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

// Overflowed reports whether the last turn failed because the conversation is more than the model takes in, and a
// compaction is to mend that, or has (C11): the first time before there is progress, unless a compaction has just been
// of no use. While it holds compaction acts and retry leaves the turn alone; as soon as it does not, retry says that
// the turn is given up.
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

// CompactionFirst reports whether the next step is compaction's, and retry has to wait: one is wanted or under way,
// what follows one is owed and not held, or the last turn is [State.Overflowed].
func (s *State) CompactionFirst() bool {
	return s.CompactionOpen() || s.FollowUp() != "" && !s.Held() || s.Overflowed()
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
	rest := &Compaction{ID: l.ID, Reason: l.Reason, FollowUp: l.FollowUp, Message: l.Message, Turn: l.Turn, Since: l.At,
		Used: l.UsedBefore, Limit: s.Limit(), Epoch: s.Epoch}
	switch {
	case s.Held():
		rest.State, rest.Error = CompactionHeld, l.Error
	case s.Stalled():
		rest.State = CompactionStalled
		rest.Error = &events.Failure{Kind: events.ReasonNoProgress,
			Text: fmt.Sprintf("%d tokens before the compaction, %d after: another one would not help", l.UsedBefore,
				l.UsedLeast)}
	default:
		return
	}
	s.Compaction = rest
}
