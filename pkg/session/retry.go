package session

import (
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// Reasons why the last turn is not retried automatically, beside the kinds of failures that are final.
const (
	RetryDisabled   = "disabled_by_user" // auto_retry is off
	RetryHeld       = "resume_held"      // policy resume is hold, and the turn was interrupted
	RetryNoProgress = "no_progress"      // the same failure too many times
	RetryAttempts   = "retry_max"        // the policy's limit of attempts is reached
	RetryResumes    = "resume_exhausted" // the policy's limit of resumes is reached
	RetryStopped    = "stopped"          // a person stopped the turn
)

// How many failures of one kind in a row end the attempts: of any kind, and of an error of the agent's own code.
const (
	sameFailuresMax    = 20
	handlerFailuresMax = 2
)

// RetryEnds returns the reason why the last turn, which ended in this failure, gets no automatic attempt of this
// number, or "" if it gets one.
func (s *State) RetryEnds(failed *events.Failure, attempt int) string {
	p := &s.Policy
	interrupted := s.LastTurn.Outcome == OutcomeInterrupted
	switch {
	case s.LastTurn.Actor == events.ActorPerson:
		return RetryStopped
	case !failure.Retryable(failed.Kind), !failure.SendRetryable(failed.Kind):
		// a failed send is a failed turn, too
		return failed.Kind
	case interrupted && p.Resume != events.ResumeAuto:
		return RetryHeld
	case !p.AutoRetry:
		return RetryDisabled
	case interrupted && s.Retry.Resumes >= p.ResumeMax:
		return RetryResumes
	case !interrupted && failed.Kind == failure.HandlerError && s.Retry.SameFailures >= handlerFailuresMax:
		return RetryNoProgress
	case !interrupted && s.Retry.SameFailures >= sameFailuresMax:
		return RetryNoProgress
	case p.RetryMax > 0 && attempt > p.RetryMax:
		return RetryAttempts
	}
	return ""
}

// RetryPlanned reports whether a retry is scheduled or requested.
func (s *State) RetryPlanned() bool {
	return s.Retry.State == RetryScheduled || s.Retry.State == RetryStarting
}

// retryScheduled arms a retry of the turn that failed last.
func (f *fold) retryScheduled(fact events.RetryScheduled) string {
	if f.LastTurn == nil || f.LastTurn.ID != fact.Turn || f.Turn != nil {
		return WhyUnknown
	}
	f.Retry.State, f.Retry.Turn, f.Retry.Attempt, f.Retry.DueAt = RetryScheduled, fact.Turn, fact.Attempt,
		instant(fact.DueAt)
	f.Retry.Error, f.Retry.Reason = cutFailure(fact.Error), ""
	return ""
}

func (f *fold) retryAbandoned(fact events.RetryAbandoned) string {
	if (f.LastTurn == nil || f.LastTurn.ID != fact.Turn) && f.Retry.Turn != fact.Turn {
		return WhyUnknown
	}
	if l := f.LastTurn; f.RetryPlanned() && f.RetryFirst() && (l == nil || l.ID == f.Retry.Turn) {
		// else the queue waits since the turn ended: what a person said after that is newer, however late this comes
		f.HeldSeq = f.c.Seq
	}
	f.Retry.State, f.Retry.Turn, f.Retry.Reason = RetryAbandoned, fact.Turn, cut(fact.Reason, TextBytesMax)
	f.Retry.Attempt = max(f.Retry.Attempt, fact.Attempt)
	if p := f.Pending.Turn; p != nil && (p.Cause == events.CauseRetry || p.Cause == events.CauseResume) {
		f.Pending.Turn = nil
	}
	return ""
}

// Failed is the failure that the last turn ended in, nil if it did not or if a turn is open. That its process died is
// one.
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

// FailureUndecided reports whether nothing has been decided about the last turn's failure: neither that it will be
// tried again, nor that it will not, nor that a turn follows it.
func (s *State) FailureUndecided() bool {
	return s.Closed == nil && s.Pending.Turn == nil && s.Failed() != nil && s.Retry.Turn != s.LastTurn.ID
}

// RetryFirst reports whether the queue waits behind another attempt of the last turn: one is scheduled or about to
// start, or it is still to be said whether there is one (C7). A person who speaks after a crash goes first (R15).
func (s *State) RetryFirst() bool {
	if t := s.LastTurn; t != nil && t.Outcome == OutcomeInterrupted && s.NewerMessage(s.HeldSeq) {
		return false
	}
	return s.RetryPlanned() || s.FailureUndecided() && s.LastTurn.Actor != events.ActorPerson
}
