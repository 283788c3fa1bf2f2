package retry

import (
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Now decides to retry at once (T15), even if the failure is not retried automatically or retries are disabled. If a
// retry is requested already and not yet taken, Now returns its seq. Refusals: 404, 409.
func Now(s *session.State) (session.Decision, error) {
	if d, err := begun(s); err != nil || d.Seq > 0 {
		return d, err
	}
	if s.Failed() == nil {
		return session.Decision{}, events.Conflict("nothing to retry: the last turn did not fail", stands(s))
	}
	return asked(s), nil
}

// Resume decides to continue a session after an interruption, a failure or a stop (R14, C7). It repeats the turn that
// did not complete. After a stop it starts the oldest queued message, or a turn that names the decisions of before. It
// also continues what a failed compaction holds, and requests a turn for decisions after recovery has requested as many
// as it does. If a turn that a person requested waits for its process, Resume returns the seq of that request.
// Refusals: 404, 409.
func Resume(s *session.State) (session.Decision, error) {
	if p := s.Pending.Turn; p != nil && p.By != "" {
		return session.Decision{Seq: p.Seq}, nil
	}
	if d, err := begun(s); err != nil || d.Seq > 0 {
		return d, err
	}
	if f, held := s.OwedAndHeld(); held {
		return session.Decision{Facts: []events.Fact{f}}, nil
	}
	switch l := s.LastTurn; {
	case s.Failed() != nil, s.Held() && s.FollowUp() == events.FollowContinue && l != nil:
		return asked(s), nil
	case len(s.Queue) > 0 && (l == nil || l.Outcome == session.OutcomeStopped || !s.QueueMoves() || s.Held()):
		m := s.Queue[0].ID
		return session.Decision{Facts: []events.Fact{s.Naming(events.TurnRequested{
			Turn:  events.DeriveID("turn", s.Session, "message", m, strconv.FormatUint(s.Seq, 10)),
			Cause: events.CauseMessage, Message: m,
		})}}, nil
	}
	if f, waits := s.Stopped(); waits {
		return session.Decision{Facts: []events.Fact{f}}, nil
	}
	return session.Decision{},
		events.Conflict("nothing to resume: no turn failed or was interrupted last, and no message waits behind one "+
			"that was stopped", stands(s))
}

// asked returns a person's request to repeat the turn that failed.
func asked(s *session.State) session.Decision {
	attempt := s.Retry.Attempt
	if !s.RetryPlanned() || s.Retry.Turn != s.LastTurn.ID {
		attempt++
	}
	return session.Decision{Facts: []events.Fact{again(s, attempt)}}
}

// begun returns a refusal if something else is in progress. If a retry is requested already, it returns that request's
// seq.
func begun(s *session.State) (session.Decision, error) {
	if err := s.Changeable(); err != nil {
		return session.Decision{}, err
	}
	p := s.Pending.Turn
	switch {
	case s.Turn != nil:
		return session.Decision{}, events.Conflict("turn "+s.Turn.ID+" has not ended", stands(s))
	// The request is about to be abandoned: the person's request replaces it.
	case p != nil && len(untaken(s).Facts) > 0:
	case p != nil && (p.Cause == events.CauseRetry || p.Cause == events.CauseResume):
		return session.Decision{Seq: p.Seq}, nil
	case p != nil:
		return session.Decision{}, events.Conflict("turn "+p.ID+" is already requested", stands(s))
	case s.CompactionOpen():
		return session.Decision{},
			events.Conflict("the conversation is being compacted: the session continues afterwards",
				stands(s))
	}
	return session.Decision{}, nil
}

// Cancel decides to abandon a retry that is scheduled, or that would be scheduled next (T16). A retry that is already
// requested cannot be cancelled: the refusal names the turn, which a stop ends. Refusals: 404, 409.
func Cancel(s *session.State) (session.Decision, error) {
	if err := s.Changeable(); err != nil {
		return session.Decision{}, err
	}
	r, p := &s.Retry, s.Pending.Turn
	turn := r.Turn
	switch {
	case r.State == session.RetryScheduled:
	case s.FailureUndecided() && compacts(s):
		return session.Decision{},
			events.Conflict("no retry is planned: the turn continues after the compaction; a stop cancels it",
				stands(s))
	case s.FailureUndecided():
		turn = s.LastTurn.ID
	case r.State == session.RetryStarting && p != nil:
		return session.Decision{},
			events.Conflict(fmt.Sprintf("the retry has begun: turn %s is requested; a stop cancels it", p.ID),
				stands(s))
	case r.State == session.RetryAbandoned && r.Reason == ReasonCancelled:
		return session.Decision{Seq: s.Seq}, nil
	case r.State == session.RetryAbandoned:
		return session.Decision{}, events.Conflict("the retry is already abandoned: "+r.Reason, stands(s))
	default:
		return session.Decision{}, events.Conflict("no retry is planned", stands(s))
	}
	return session.Decision{Facts: []events.Fact{events.RetryAbandoned{Turn: turn, Attempt: r.Attempt,
		Reason: ReasonCancelled}}}, nil
}

// compacts reports whether the compaction continues the failed turn.
func compacts(s *session.State) bool {
	return s.Overflowed() || s.FollowUp() == events.FollowContinue && !s.Held() ||
		s.CompactionOpen() && s.Compaction.FollowUp == events.FollowContinue
}

// stands returns what the session has instead of a retry.
func stands(s *session.State) events.Standing {
	x := events.Standing{Status: string(s.Phase), Seq: s.Seq, At: s.UpdatedAt}
	p, l := s.Pending.Turn, s.LastTurn
	switch {
	case s.Turn != nil:
		x.Reason, x.At = "turn "+s.Turn.ID, s.Turn.Since
	case p != nil:
		x.Reason, x.At, x.Seq, x.By = "turn "+p.ID, p.At, p.Seq, p.By
		if s.Retry.State == session.RetryStarting {
			x.Status = session.RetryStarting
		}
	case s.Retry.State == session.RetryAbandoned:
		x.Status, x.Reason = session.RetryAbandoned, s.Retry.Reason
	case l != nil:
		x.Reason, x.At, x.Seq = "last turn "+l.Outcome, l.At, l.Seq
	}
	return x
}
