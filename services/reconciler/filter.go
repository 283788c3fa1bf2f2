package reconciler

import (
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// decideUnowned returns what [Decide] returns for a session without an owner in which only calls and a turn are open:
// then no fact depends on the one before, and none has to be folded. ok is false for every other session. Most sessions
// that a crash leaves are plain, and need nothing after it.
func decideUnowned(s *session.State, in Input) (facts []events.Fact, ok bool) {
	dead := s.Owned && in.Owner.Liveness == Dead
	switch {
	case !s.Open(), s.Owned && !dead:
		return nil, false
	case len(s.Prompts)+len(s.WaitsFor)+len(in.Children) > 0, s.Compaction != nil, s.Pending != session.Pending{}:
		return nil, false
	case s.LastTurn != nil && len(s.LastTurn.Prompts) > 0:
		// a decision may need a turn
		return nil, false
	}
	facts = make([]events.Fact, 0, len(s.Tools)+factsMore)
	if dead {
		facts = append(facts, orphaning(s, in))
	}
	reason := leftReason(s, dead)
	for _, call := range sortedKeys(s.Tools) {
		facts = append(facts, events.ToolInterrupted{Call: call, Reason: reason, Outcome: events.OutcomeUnknown})
	}
	if s.Turn != nil {
		facts = append(facts, events.TurnInterrupted{Turn: s.Turn.ID, Reason: reason})
	}
	return facts, true
}

// leftReason returns why the open items of a gone owner end.
func leftReason(s *session.State, lost bool) string {
	if !lost && s.Left == session.LeftReleased {
		return events.ReasonShutdown
	}
	return events.ReasonOwnerLost
}

// rests reports, from the head of a document in which nothing is due, that a session needs no decision, in any state of
// its parents and children. It implements [control.Config.Rests]. False proves nothing: then the document is decoded.
func (r *Reconciler) rests(ref events.Ref, h *session.Head, clock events.Clock) bool {
	return r.restsAt(ref, h, atMoment(clock))
}

// restsAt is rests at a moment.
func (r *Reconciler) restsAt(ref events.Ref, h *session.Head, now moment) bool {
	// its parent has to know a child
	return h.ParentCall == "" && r.restsUnchangedAt(ref, h, now)
}

// restsUnchanged implements [control.Config.RestsUnchanged]: the index has the session if it is a child.
func (r *Reconciler) restsUnchanged(ref events.Ref, h *session.Head, clock events.Clock) bool {
	return r.restsUnchangedAt(ref, h, atMoment(clock))
}

func (r *Reconciler) restsUnchangedAt(ref events.Ref, h *session.Head, now moment) bool {
	switch {
	case h.Recover:
		return false
	case !h.Owned:
		return true
	}
	return r.ownerIsAlive(&session.State{Harness: ref.Harness, Session: ref.Session, Incarnation: h.Incarnation,
		Exclusive: h.Exclusive, UpdatedAt: h.UpdatedAt, Seq: h.Seq}, now)
}
