package session

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// checks collects the instants at which services have to check a session.
type checks struct {
	due   bool // now
	at    time.Time
	timer bool
}

// next is when one service has to check a session: now, at an instant, or, if it is zero, not before the next commit.
type next struct {
	now bool
	at  time.Time
}

var never, now next = next{}, next{now: true}

// checkMin and checkMax are the bounds of a check, in seconds since 1970: another instant may have a year that JSON
// cannot have.
const (
	checkMin = 0
	checkMax = 253_402_214_400 // 9999-12-31
)

// watch adds an instant that the walk over documents finds by itself; zero adds nothing.
func (l *checks) watch(at time.Time) {
	switch {
	case at.IsZero():
		return
	case at.Unix() < checkMin, at.Unix() > checkMax:
		at = time.Unix(min(max(at.Unix(), checkMin), checkMax), 0).UTC()
	}
	if l.at.IsZero() || at.Before(l.at) {
		l.at = at
	}
}

// add adds a check that needs a timer.
func (l *checks) add(n next) {
	l.watch(n.at)
	l.due = l.due || n.now
	l.timer = l.timer || !n.at.IsZero()
}

// checks returns the earliest instant at which a service has to check the session, whatever its owner does. All
// instants are as they were stored: a service translates the result with [events.Steps.Earliest].
//
// A service may check earlier than it has to, and find nothing to do. It must never check later: each decider is
// compared with this function over random histories. A new instant in the [State] has to be added here, or to the list
// of instants that call for no check; TestEveryInstantIsCovered fails for an instant that is in neither.
func (s *State) checks() checks {
	var l checks
	if !s.Open() {
		// retention reads these documents
		return l
	}
	l.add(next{at: s.Deadlines(nil)})
	l.add(s.retryCheck())
	l.add(s.compactionCheck())
	// a sign of life that is not in the log delays it
	if of, at := s.Silence(time.Time{}, nil); of != "" {
		l.watch(at)
	}
	return l
}

// retryCheck returns when the retry service has to check a session in which no turn is open.
func (s *State) retryCheck() next {
	failed := s.Failed()
	switch {
	case s.Turn != nil:
	case s.Pending.Turn != nil:
		if s.retryForbidden(s.Pending.Turn) {
			return now
		}
	case s.CompactionFirst():
	case failed == nil:
		// overtaken
		if s.RetryPlanned() {
			return now
		}
	case s.LastTurn.Outcome == OutcomeInterrupted && s.NewerMessage(s.HeldSeq):
	case s.Retry.Turn != s.LastTurn.ID:
		reason := s.RetryEnds(failed, s.Retry.Attempt+1)
		held := reason == RetryHeld && !s.RetryPlanned()
		if !held && (reason != "" || s.BlockedBy() == "") {
			return now
		}
	case s.RetryPlanned() && s.RetryEnds(failed, s.Retry.Attempt) != "":
		return now
	case s.RetryPlanned() && s.BlockedBy() == "":
		return next{now: s.Retry.DueAt.IsZero(), at: s.Retry.DueAt}
	}
	return never
}

// retryForbidden reports whether a requested retry or resume is to be abandoned because the policy forbids it now.
func (s *State) retryForbidden(p *PendingTurn) bool {
	switch {
	case p.By != "":
		return false
	case p.Cause == events.CauseResume:
		return s.Policy.Resume != events.ResumeAuto || !s.Policy.AutoRetry
	}
	return p.Cause == events.CauseRetry && !s.Policy.AutoRetry
}

// compactionCheck returns when the compaction service has to check a session in which no compaction is open.
func (s *State) compactionCheck() next {
	switch {
	case s.CompactionOpen(), s.BlockedBy() != "", len(s.WaitsFor) > 0:
		return never
	case s.Turn != nil:
		if s.Owns(s.Turn.Epoch) && s.Turn.Compaction == "" && s.Pending.Stop == nil && s.UsageOver(0) {
			return now
		}
		return never
	// a message of a person may overtake a resume
	case s.Pending.Turn != nil && s.Pending.Turn.Cause != events.CauseResume:
		return never
	}
	switch followUp, held := s.FollowUp(), s.Held(); {
	case s.CompactAgain(), s.Overflowed(), followUp != "" && !held:
		return now
	case held && s.NewerMessage(s.LastCompaction.Seq):
		return now
	case held, s.RetryFirst():
		return never
	case len(s.Queue) > 0 && s.QueueMoves():
		return now
	case len(s.Queue) > 0:
		return never
	}
	return s.idleCheck()
}

// idleCheck returns when an idle compaction may be due, at the earliest. The session may have been used since, or the
// last compaction may forbid it: the compaction service checks then, and finds nothing to do.
func (s *State) idleCheck() next {
	t, after := s.LastTurn, s.Policy.IdleCompactionAfterS
	switch {
	case after <= 0, !s.Owned, t == nil, t.Outcome != OutcomeCompleted, s.Usage == nil, s.Usage.Used <= 0:
		return never
	case len(s.PendingPrompts()) > 0, s.Pending.Turn != nil, s.RetryPlanned(), s.Stalled():
		return never
	}
	return next{at: t.At.Add(time.Duration(after) * time.Second)}
}

// Leftover reports whether something is open that an earlier owner opened, or that belongs to no owner, or whether a
// decision is owed that nothing delivers. The reconciler decides about it.
func (s *State) Leftover() bool {
	if !s.Open() {
		return false
	}
	for _, c := range s.Tools {
		if !s.Owns(c.Epoch) {
			return true
		}
	}
	for _, p := range s.Prompts {
		if !s.Owns(p.Epoch) {
			return true
		}
	}
	if s.Turn != nil && !s.Owns(s.Turn.Epoch) || s.Compaction != nil && !s.Owns(s.Compaction.Epoch) {
		return true
	}
	_, owed := s.Owed()
	return owed
}
