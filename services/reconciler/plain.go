package reconciler

import (
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// plain is what [Decide] says about a session that nobody owns any more and in which nothing but calls and a turn are open:
// then no fact depends on what became of the one before, and nothing has to be folded to know them all. ok is false for
// every other session. It is most of those that a crash leaves, and nothing is called for after it.
func plain(s *session.State, in Input) (facts []events.Fact, ok bool) {
	dead := s.Owned && in.Owner.Life == Dead
	switch {
	case !s.Opened(), s.Closed != nil, s.Owned && !dead:
		return nil, false
	case len(s.Prompts)+len(s.WaitsFor)+len(in.Children) > 0, s.Compaction != nil, s.Pending != session.Pending{}:
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

// leftReason is why what a session's owner left behind ends.
func leftReason(s *session.State, lost bool) string {
	if !lost && s.Left == session.LeftReleased {
		return events.ReasonShutdown
	}
	return events.ReasonOwnerLost
}
