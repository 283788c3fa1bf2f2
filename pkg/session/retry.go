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

// sameFailuresMax is how many failures of one kind in a row are retried; more attempts are of no use.
const sameFailuresMax = 20

// RetryEnds returns the reason why the last turn, which ended in this failure, gets no automatic attempt of this number,
// or "" if it gets one.
func (s *State) RetryEnds(failed *events.Failure, attempt int) string {
	p := &s.Policy
	interrupted := s.LastTurn.Outcome == OutcomeInterrupted
	switch {
	case s.LastTurn.Actor == events.ActorPerson:
		return RetryStopped
	case !failure.Retryable(failed.Kind), !failure.SendRetryable(failed.Kind): // a failed send is a failed turn, too
		return failed.Kind
	case interrupted && p.Resume != events.ResumeAuto:
		return RetryHeld
	case !p.AutoRetry:
		return RetryDisabled
	case interrupted && s.Retry.Resumes >= p.ResumeMax:
		return RetryResumes
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
