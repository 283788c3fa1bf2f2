package reconciler

import (
	"bytes"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// plain returns what [Decide] returns for a session without an owner in which only calls and a turn are open: then no
// fact depends on the one before, and none has to be folded. ok is false for every other session. Most sessions that a
// crash leaves are plain, and need nothing after it.
func plain(s *session.State, in Input) (facts []events.Fact, ok bool) {
	dead := s.Owned && in.Owner.Life == Dead
	switch {
	case !s.Opened(), s.Closed != nil, s.Owned && !dead:
		return nil, false
	case len(s.Prompts)+len(s.WaitsFor)+len(in.Children) > 0, s.Compaction != nil, s.Pending != session.Pending{}:
		return nil, false
	case s.LastTurn != nil && len(s.LastTurn.Prompts) > 0: // a decision may need a turn
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

// Marks of open items in a document, as this build writes them: within a text the quotes would be escaped.
const (
	markDeadline = `"deadline":"`
	markEpoch    = `"epoch":`
	markCarried  = `,"prompts":[`
	markSettled  = `"settled_seq":`
)

// openMarks are the marks of items that may have been left behind in a session without an owner.
var openMarks = []string{`,"turn":{`, `,"tools":{`, `,"prompts":{`, `,"compaction":{`}

// calm reports, from the head of a document and a byte search in the rest, that a session needs no decision, in any
// state of its parents and children. False proves nothing: then the document is decoded.
func (r *Reconciler) calm(h *session.State, doc []byte, now moment) bool {
	switch {
	case h.ParentCall != "": // its parent has to know it
		return false
	case bytes.Contains(doc, []byte(markDeadline)), decided(doc):
		return false
	case h.Owned:
		return ofEpoch(doc, h.Epoch) && r.lives(h, now)
	}
	for _, mark := range openMarks { // a closed session has no open items
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

// ofEpoch reports whether all open items have this epoch, so that no earlier owner left any.
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
