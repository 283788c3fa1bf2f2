package reconciler

import (
	"bytes"
	"strconv"

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
	case s.LastTurn != nil && len(s.LastTurn.Prompts) > 0: // a decision may call for a turn
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

// Marks of what is open in a document, as this build writes them: within a text the quotes would be escaped.
const (
	markDeadline = `"deadline":"`
	markEpoch    = `"epoch":`
	markCarried  = `,"prompts":[`
	markSettled  = `"settled_seq":`
)

// openMarks are of what may have been left behind in a session that nobody owns.
var openMarks = []string{`,"turn":{`, `,"tools":{`, `,"prompts":{`, `,"compaction":{`}

// calm says, from the head of a document and a glance at the rest, that a session calls for nothing, whatever its family
// does. That it does not say so proves nothing: then the document is read.
func (r *Reconciler) calm(h *session.State, doc []byte, now moment) bool {
	switch {
	case h.ParentCall != "": // whoever it is a child of has to know it
		return false
	case bytes.Contains(doc, []byte(markDeadline)), decided(doc):
		return false
	case h.Owned:
		return ofEpoch(doc, h.Epoch) && r.lives(h, now)
	}
	for _, mark := range openMarks { // there are none in a closed one
		if bytes.Contains(doc, []byte(mark)) {
			return false
		}
	}
	return true
}

// decided reports whether a document has a settled prompt that may not have been delivered.
func decided(doc []byte) bool {
	if bytes.Contains(doc, []byte(markCarried)) {
		return true
	}
	for {
		_, rest, ok := bytes.Cut(doc, []byte(markSettled))
		if !ok {
			return false
		}
		if len(rest) == 0 || rest[0] != '0' {
			return true
		}
		doc = rest
	}
}

// ofEpoch says whether all that is open is of this epoch, and nothing was left behind by an owner before.
func ofEpoch(doc []byte, epoch uint64) bool {
	want := strconv.AppendUint(nil, epoch, 10)
	for {
		at := bytes.Index(doc, []byte(markEpoch))
		if at < 0 {
			return true
		}
		doc = doc[at+len(markEpoch):]
		n, _, ok := bytes.Cut(doc[:min(len(doc), len(want)+1)], []byte(","))
		if !ok {
			n, _, ok = bytes.Cut(n, []byte("}"))
		}
		if !ok || !bytes.Equal(n, want) {
			return false
		}
	}
}
