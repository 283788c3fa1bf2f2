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

// The delay before an attempt.
const (
	delayFirst    = 2 * time.Second
	delayMax      = time.Minute
	delayGrows    = 2.0
	delaySteps    = 6                // attempts until the delay reaches delayMax
	retryAfterMax = 15 * time.Minute // the longest delay that a provider can ask for
)

// Reasons of retry.abandoned. The other reasons are the kinds of failures that are final.
const (
	ReasonCancelled  = "cancelled"           // a person cancelled it while it waited
	ReasonDisabled   = session.RetryDisabled // auto_retry is off
	ReasonHeld       = session.RetryHeld     // resume became hold before the resume was requested or taken
	ReasonNoProgress = session.RetryNoProgress
	ReasonAttempts   = session.RetryAttempts
	ReasonOvertaken  = "overtaken" // a later turn ended without a failure
	ReasonResumes    = session.RetryResumes
	ReasonStopped    = session.RetryStopped
)

// Input is what a decision depends on beside the session.
type Input struct {
	Now      time.Time    // by the broker's clock
	Steps    events.Steps // of the broker's clock
	Progress time.Time    // the last progress ping, which is not in the log; the start of the service counts as one
	Jitter   float64      // the part of the delay that may be added; 0: none
}

// Decision is what the service has to do about a session now.
type Decision struct {
	Facts   []events.Fact // to append in one commit
	CheckAt time.Time     // when to decide again; zero: at the next change
	// Watch is true if CheckAt only serves to detect a stall. Such a check needs no alarm that outlives the service.
	Watch bool
}

// Decide returns what has to be done about one session. After its facts are appended, Decide returns nothing until
// CheckAt.
//
//	closed, or never opened        nothing
//	a turn is open                 it is failed if it has stalled (T18)
//	a turn is asked for            a retry that is not taken is abandoned if auto_retry is off (T8), or held (R14)
//	compaction goes first          nothing: [session.State.CompactionFirst]
//	the last turn did not fail     a retry that is still planned is abandoned
//	a person spoke after a crash   nothing: that message has its turn first (R15)
//	not decided yet                the retry is abandoned or scheduled (T1 to T5, T10, T17)
//	scheduled                      the turn is requested when it is due, unless a person's decision forbids it
//	abandoned, lifted              nothing, until a person acts (T12, T15)
//
// While a blocking prompt is open, no retry is scheduled or requested (P20).
func Decide(s *session.State, in Input) Decision {
	r, failed := &s.Retry, s.Failed()
	switch {
	case !s.Open():
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
	case s.RetryPlanned():
		return onSchedule(s, failed, in)
	}
	return Decision{}
}

// untaken abandons a requested turn that the harness has not taken, if a person has since disabled automatic retries,
// or has set the policy for interrupted turns to hold. A turn that a person requested stays (T15).
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

// overtaken abandons a planned retry of a turn that is no longer the last turn.
func overtaken(s *session.State) Decision {
	if !s.RetryPlanned() || s.Retry.Turn == "" {
		return Decision{}
	}
	return abandon(s, s.Retry.Turn, ReasonOvertaken)
}

// onFailure decides once about a failed turn. An interrupted turn waits for a person if the policy says hold.
func onFailure(s *session.State, failed *events.Failure, in Input) Decision {
	l, attempt := s.LastTurn, s.Retry.Attempt+1
	reason := s.RetryEnds(failed, attempt)
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

// onSchedule requests the turn when it is due, or abandons the retry if a newer change forbids it.
func onSchedule(s *session.State, failed *events.Failure, in Input) Decision {
	reason := s.RetryEnds(failed, s.Retry.Attempt)
	switch {
	case reason != "":
		return abandon(s, s.LastTurn.ID, reason)
	case s.BlockedBy() != "":
		return Decision{}
	}
	if due := dueAt(s, in.Steps); in.Now.Before(due) {
		return Decision{CheckAt: due}
	}
	return Decision{Facts: []events.Fact{again(s, s.Retry.Attempt)}}
}

// dueAt returns the instant at which a scheduled retry is due. The delay counts from the failure, even if the broker's
// clock was set after it.
func dueAt(s *session.State, steps events.Steps) time.Time {
	return steps.Since(s.Retry.DueAt, s.LastTurn.Seq)
}

func abandon(s *session.State, turn, reason string) Decision {
	return Decision{Facts: []events.Fact{events.RetryAbandoned{Turn: turn, Attempt: s.Retry.Attempt, Reason: reason}}}
}

// again returns the request that repeats the failed turn, with the same message and options. The turn's id is derived
// from the session's seq. A decision that is made twice requests one turn, and a decision after a stop requests another
// one.
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

// delay returns the time between a failure and the attempt, which is counted from 1. The provider's Retry-After is the
// minimum. The jitter is derived from the turn, so the decision is reproducible.
func delay(attempt int, retryAfterMS int64, jitter float64, turn string) time.Duration {
	curve := backoff.NewExponentialBackOff(backoff.WithInitialInterval(delayFirst), backoff.WithMultiplier(delayGrows),
		backoff.WithMaxInterval(delayMax), backoff.WithMaxElapsedTime(0), backoff.WithRandomizationFactor(0),
		backoff.WithClockProvider(still{}))
	d := delayFirst
	for range min(max(attempt, 1), delaySteps) {
		d = curve.NextBackOff()
	}
	if jitter > 0 {
		h := fnv.New64a()
		h.Write([]byte(turn))
		d += time.Duration(jitter * float64(d) * (float64(h.Sum64()) / math.MaxUint64)).Truncate(time.Millisecond)
	}
	after := min(max(retryAfterMS, 0), retryAfterMax.Milliseconds())
	return max(d, time.Duration(after)*time.Millisecond)
}

// still is a clock for a curve that does not use the time.
type still struct{}

// Now implements [backoff.Clock].
func (still) Now() time.Time { return time.Time{} }

// watch fails a turn that has been silent for too long (T18). Later events of the harness about the turn are ignored.
func watch(s *session.State, in Input) Decision {
	t := s.Turn
	of, due := s.Silence(in.Progress, in.Steps)
	switch {
	case of != session.EntityTurn:
		return Decision{}
	case in.Now.Before(due):
		return Decision{CheckAt: due, Watch: true}
	}
	reason := "nothing was heard of it for " + s.Policy.StallAfter().String()
	var facts []events.Fact
	// An earlier stop request keeps its actor.
	if !s.Pending.Stop.Of(t.ID) {
		facts = append(facts, events.TurnStopRequested{Turn: t.ID, Actor: events.ActorStall, Reason: reason})
	}
	return Decision{Facts: append(facts, events.TurnFailed{Turn: t.ID,
		Error: events.Failure{Kind: failure.Stalled, Text: reason}})}
}
