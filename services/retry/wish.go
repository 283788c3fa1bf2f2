package retry

import (
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Wish is what a person asks of a session's retry: now, cancel or resume.
type Wish struct {
	events.Ref
	By string `json:"by"`
}

// Now decides on a retry at once (T15): also of a failure that is not tried again by itself, and while retrying is off.
// One that was asked for already, and not taken yet, is a success. Refusals: 404, 409.
func Now(s *session.State) (session.Decision, error) {
	if d, err := begun(s); err != nil || d.Seq > 0 {
		return d, err
	}
	if s.Failed() == nil {
		return session.Decision{}, events.Conflict("nothing to retry: the last turn did not fail", stands(s))
	}
	return asked(s), nil
}

// Resume decides on going on with a session that an interruption, a failure or a stop has left (R14, C7): with the turn
// that did not come to its end, or, after a stop, with the oldest message that waits; also with what a compaction that
// failed holds. Refusals: 404, 409.
func Resume(s *session.State) (session.Decision, error) {
	if d, err := begun(s); err != nil || d.Seq > 0 {
		return d, err
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
	return session.Decision{}, events.Conflict("nothing to resume: no turn failed or was interrupted last, and no message waits behind one that was stopped", stands(s))
}

// asked is the turn that failed once more, because a person asked for it.
func asked(s *session.State) session.Decision {
	attempt := s.Retry.Attempt
	if !planned(&s.Retry) || s.Retry.Turn != s.LastTurn.ID {
		attempt++
	}
	return session.Decision{Facts: []events.Fact{again(s, attempt)}}
}

// begun refuses where something else is under way; what was asked for already is there to see (Seq).
func begun(s *session.State) (session.Decision, error) {
	if err := s.Changeable(); err != nil {
		return session.Decision{}, err
	}
	p, c := s.Pending.Turn, s.Compaction
	switch {
	case s.Turn != nil:
		return session.Decision{}, events.Conflict("turn "+s.Turn.ID+" has not ended", stands(s))
	case p != nil && len(untaken(s).Facts) > 0: // it is about to be given up: the person's own takes its place
	case p != nil && (p.Cause == events.CauseRetry || p.Cause == events.CauseResume):
		return session.Decision{Seq: p.Seq}, nil
	case p != nil:
		return session.Decision{}, events.Conflict("turn "+p.ID+" is asked for already", stands(s))
	case c != nil && (c.State == session.CompactionRequested || c.State == session.CompactionRunning):
		return session.Decision{}, events.Conflict("the conversation is being compacted: it goes on by itself", stands(s))
	}
	return session.Decision{}, nil
}

// Cancel decides on giving up a retry that waits, or would be scheduled in a moment (T16). It comes too late for one that
// has fired: the refusal says so, and a stop takes it back. Refusals: 404, 409.
func Cancel(s *session.State) (session.Decision, error) {
	if err := s.Changeable(); err != nil {
		return session.Decision{}, err
	}
	r, p := &s.Retry, s.Pending.Turn
	turn := r.Turn
	switch {
	case r.State == session.RetryScheduled:
	case s.FailureUndecided() && compacts(s):
		return session.Decision{}, events.Conflict("no retry is planned: the turn goes on when the conversation has been compacted; stop takes it back", stands(s))
	case s.FailureUndecided():
		turn = s.LastTurn.ID
	case r.State == session.RetryStarting && p != nil:
		return session.Decision{}, events.Conflict(fmt.Sprintf("the retry has begun: turn %s is asked for; stop takes it back", p.ID), stands(s))
	case r.State == session.RetryAbandoned && r.Reason == ReasonCancelled:
		return session.Decision{Seq: s.Seq}, nil
	case r.State == session.RetryAbandoned:
		return session.Decision{}, events.Conflict("the retry was given up already: "+r.Reason, stands(s))
	default:
		return session.Decision{}, events.Conflict("no retry is planned", stands(s))
	}
	return session.Decision{Facts: []events.Fact{events.RetryAbandoned{Turn: turn, Attempt: r.Attempt, Reason: ReasonCancelled}}}, nil
}

// compacts says whether the turn that failed is compaction's, which goes on with it afterwards.
func compacts(s *session.State) bool {
	c := s.Compaction
	open := c != nil && (c.State == session.CompactionRequested || c.State == session.CompactionRunning)
	return s.Overflowed() || s.FollowUp() == events.FollowContinue && !s.Held() || open && c.FollowUp == events.FollowContinue
}

// stands is what there is instead of something to retry.
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
