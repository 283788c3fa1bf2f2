package retry

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// The delay before an attempt, and what ends a row of attempts.
const (
	delayFirst      = 2 * time.Second
	delayMax        = time.Minute
	delayGrows      = 2.0
	delaySteps      = 6                // attempts after which the delay is the greatest
	retryAfterMax   = 15 * time.Minute // of a provider's wish
	sameFailuresMax = 20               // in a row, then trying again is of no use
)

// Reasons of retry.abandoned beside the kinds of failures that are final.
const (
	ReasonCancelled  = "cancelled"        // a person said so while it waited
	ReasonDisabled   = "disabled_by_user" // auto_retry is off
	ReasonHeld       = "resume_held"      // policy resume became hold while a resume waited, or was not taken
	ReasonNoProgress = "no_progress"      // the same failure again and again
	ReasonAttempts   = "retry_max"        // as many attempts as the policy allows
	ReasonOvertaken  = "overtaken"        // another turn came after the one that failed, and did not fail
	ReasonResumes    = "resume_exhausted" // as many resumes as the policy allows
	ReasonStopped    = "stopped"          // a person stopped the turn
)

// Input is what a decision rests on beside the session itself.
type Input struct {
	Now      time.Time    // the broker's
	Steps    events.Steps // of the broker's clock
	Progress time.Time    // the last sign of life that is not in the log; a start of the service counts as one
	Jitter   float64      // up to this part of the delay is added, 0: none
}

// Decision is what retry would do about a session now.
type Decision struct {
	Facts []events.Fact // to append, as one commit
	Look  time.Time     // when to look again; zero: at the next change
	Watch bool          // the look is only to see whether a turn has stalled: it needs no alarm that outlives the service
}

// Decide looks at one session and says what retry calls for. Deciding again on what comes of it calls for nothing until
// the time has come to look again.
//
//	closed, or never opened        nothing
//	a turn is open                 it is failed if it has stalled (T18)
//	a turn is asked for            a retry that nobody has taken is given up when auto_retry is off (T8), or held (R14)
//	compaction goes first          nothing: [session.State.CompactionFirst]
//	the last turn did not fail     a retry that is still planned is given up
//	a person spoke after a crash   nothing: that message has its turn first (R15)
//	nothing decided yet            it is given up, or scheduled (T1 to T5, T10, T17)
//	scheduled                      the turn is requested when it is due, unless a person decided otherwise since
//	given up, lifted               nothing, until a person acts (T12, T15)
//
// While a blocking prompt is open nothing is scheduled and nothing fires (P20).
func Decide(s *session.State, in Input) Decision {
	r, failed := &s.Retry, s.Failed()
	switch {
	case !s.Opened() || s.Closed != nil:
		return Decision{}
	case s.Turn != nil:
		return watch(s, in)
	case s.Pending.Turn != nil:
		return untaken(s)
	case s.CompactionFirst():
		return Decision{}
	case failed == nil:
		return overtaken(s)
	case s.LastTurn.Outcome == session.OutcomeInterrupted && s.NewerMessage(s.HeldSeq):
		return Decision{}
	case r.Turn != s.LastTurn.ID:
		return onFailure(s, failed, in)
	case planned(r):
		return onSchedule(s, failed, in)
	}
	return Decision{}
}

// planned says whether a retry is to come.
func planned(r *session.Retry) bool {
	return r.State == session.RetryScheduled || r.State == session.RetryStarting
}

// untaken gives a retry up that nobody has taken, when a person has switched retrying off since, or wants what was
// interrupted held. What a person asked for stays (T15).
func untaken(s *session.State) Decision {
	p := s.Pending.Turn
	mine := p.Cause == events.CauseRetry || p.Cause == events.CauseResume
	switch {
	case !mine || p.By != "" || s.Retry.Turn == "":
	case p.Cause == events.CauseResume && s.Policy.Resume != events.ResumeAuto:
		return abandon(s, s.Retry.Turn, ReasonHeld)
	case !s.Policy.AutoRetry:
		return abandon(s, s.Retry.Turn, ReasonDisabled)
	}
	return Decision{}
}

// overtaken gives up what is planned for a turn that is not the last one any more.
func overtaken(s *session.State) Decision {
	if !planned(&s.Retry) || s.Retry.Turn == "" {
		return Decision{}
	}
	return abandon(s, s.Retry.Turn, ReasonOvertaken)
}

// onFailure decides once about a turn that failed. A turn whose process died is held for a person if the policy says so.
func onFailure(s *session.State, failed *events.Failure, in Input) Decision {
	l, attempt := s.LastTurn, s.Retry.Attempt+1
	reason := giveUp(s, failed, attempt)
	switch {
	case reason == ReasonHeld:
		return overtaken(s)
	case reason != "":
		return abandon(s, l.ID, reason)
	case s.BlockedBy() != "":
		return Decision{}
	}
	d := delay(attempt, failed.RetryAfterMS, in.Jitter, l.ID)
	return Decision{Facts: []events.Fact{events.RetryScheduled{
		Turn: l.ID, Attempt: attempt, DelayMS: d.Milliseconds(), DueAt: l.At.Add(d).UTC(), Error: *failed,
	}}}
}

// onSchedule fires when it is due, unless what speaks against it came since.
func onSchedule(s *session.State, failed *events.Failure, in Input) Decision {
	reason := giveUp(s, failed, s.Retry.Attempt)
	switch {
	case reason != "":
		return abandon(s, s.LastTurn.ID, reason)
	case s.BlockedBy() != "":
		return Decision{}
	}
	if due := dueAt(s, in.Steps); in.Now.Before(due) {
		return Decision{Look: due}
	}
	return Decision{Facts: []events.Fact{again(s, s.Retry.Attempt)}}
}

// dueAt is when a scheduled retry is due: the delay counts from the failure, also when the broker's clock was set since.
func dueAt(s *session.State, steps events.Steps) time.Time {
	return steps.Since(s.Retry.DueAt, s.LastTurn.Seq)
}

// giveUp is why the last turn is not tried again by itself, "" if it is.
func giveUp(s *session.State, failed *events.Failure, attempt int) string {
	p := &s.Policy
	interrupted := s.LastTurn.Outcome == session.OutcomeInterrupted
	switch {
	case s.LastTurn.Actor == events.ActorPerson:
		return ReasonStopped
	case !retryable(failed.Kind):
		return failed.Kind
	case interrupted && p.Resume != events.ResumeAuto:
		return ReasonHeld
	case !p.AutoRetry:
		return ReasonDisabled
	case interrupted && s.Retry.Resumes >= p.ResumeMax:
		return ReasonResumes
	case !interrupted && s.Retry.SameFailures >= sameFailuresMax:
		return ReasonNoProgress
	case p.RetryMax > 0 && attempt > p.RetryMax:
		return ReasonAttempts
	}
	return ""
}

// retryable: a turn may also fail because its message could not be sent.
func retryable(kind string) bool { return failure.Retryable(kind) && failure.SendRetryable(kind) }

func abandon(s *session.State, turn, reason string) Decision {
	return Decision{Facts: []events.Fact{events.RetryAbandoned{Turn: turn, Attempt: s.Retry.Attempt, Reason: reason}}}
}

// again asks for the turn that failed once more: the same message, the same options. Its id depends on the session's place
// in the log, so that a decision made twice asks for one turn, and one made after a stop for another.
func again(s *session.State, attempt int) events.TurnRequested {
	l := s.LastTurn
	f := events.TurnRequested{
		Turn:  events.DeriveID("turn", s.Session, "retry", l.ID, strconv.Itoa(attempt), strconv.FormatUint(s.Seq, 10)),
		Cause: events.CauseRetry, OfTurn: l.ID, Message: l.Message, Attempt: attempt, Options: l.Options,
	}
	if l.Outcome == session.OutcomeInterrupted {
		f.Cause = events.CauseResume
	}
	return s.Naming(f)
}

// delay is from the failure to the attempt, counted from 1. The provider's wish is the least. Jitter is derived from the
// turn, so that the decision can be checked again.
func delay(attempt int, retryAfterMS int64, jitter float64, turn string) time.Duration {
	curve := backoff.NewExponentialBackOff(backoff.WithInitialInterval(delayFirst), backoff.WithMultiplier(delayGrows),
		backoff.WithMaxInterval(delayMax), backoff.WithMaxElapsedTime(0), backoff.WithRandomizationFactor(0), backoff.WithClockProvider(still{}))
	d := delayFirst
	for range min(max(attempt, 1), delaySteps) {
		d = curve.NextBackOff()
	}
	if jitter > 0 {
		h := fnv.New64a()
		h.Write([]byte(turn))
		d += time.Duration(jitter * float64(d) * (float64(h.Sum64()) / math.MaxUint64)).Truncate(time.Millisecond)
	}
	wish := min(max(retryAfterMS, 0), retryAfterMax.Milliseconds())
	return max(d, time.Duration(wish)*time.Millisecond)
}

// still is the clock of a curve that looks at none.
type still struct{}

// Now implements [backoff.Clock].
func (still) Now() time.Time { return time.Time{} }

// watch fails a turn that has been silent for too long (T18). What the harness still says about it is ignored then.
func watch(s *session.State, in Input) Decision {
	t := s.Turn
	of, due := s.Silence(in.Progress, in.Steps)
	switch {
	case of != session.EntityTurn:
		return Decision{}
	case in.Now.Before(due):
		return Decision{Look: due, Watch: true}
	}
	reason := "nothing was heard of it for " + s.Policy.StallAfter().String()
	var facts []events.Fact
	if p := s.Pending.Stop; p == nil || p.Turn != t.ID { // who has asked it to stop already stays the one who did
		facts = append(facts, events.TurnStopRequested{Turn: t.ID, Actor: events.ActorStall, Reason: reason})
	}
	return Decision{Facts: append(facts, events.TurnFailed{Turn: t.ID, Error: events.Failure{Kind: failure.Stalled, Text: reason}})}
}
