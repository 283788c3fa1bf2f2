package drill

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Stranded lists what is open in a session though nobody runs it: what recovery should have closed. A question that is
// kept, and the call and the turn that wait for it, may stay open; so may a call that waits for a child. A session that has
// an owner is itself stranded, as far as those are concerned who know that the owner is gone.
func Stranded(s *session.State) []string {
	var left []string
	if s.Owned {
		left = append(left, "owner "+s.Incarnation)
	}
	calls, turns := map[string]bool{}, map[string]bool{}
	for _, id := range s.PendingPrompts() {
		p := s.Prompts[id]
		if p.OnOwnerLoss != events.LossKeep {
			left = append(left, fmt.Sprintf("%s %s", p.Kind, id))
			continue
		}
		calls[p.Call], turns[p.Turn] = true, true
	}
	for _, w := range s.WaitsFor {
		calls[w.Call] = true
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		if calls[id] {
			turns[s.Tools[id].Turn] = true
			continue
		}
		left = append(left, "call "+id)
	}
	if s.Turn != nil && !turns[s.Turn.ID] {
		left = append(left, "turn "+s.Turn.ID)
	}
	if s.Compaction != nil && s.Compaction.State == session.CompactionRunning {
		left = append(left, "compaction "+s.Compaction.ID)
	}
	return left
}

// Became is what there is to say about one thing that had been open: how it ended and why, or that it is kept.
type Became struct {
	Name    string         `json:"name,omitempty"` // a call's tool, a prompt's kind
	Outcome string         `json:"outcome"`
	Reason  string         `json:"reason,omitempty"`
	Ending  session.Ending `json:"-"` // zero while it is open
}

// Outcomes that no document has.
const (
	OutcomeKept     = "kept"           // open, and for good reason
	OutcomeOpen     = "still open"     // open, though nobody runs it
	OutcomeUnlisted = "no longer open" // it ended, too long ago to be listed
	OutcomeUnknown  = "not recorded"   // the document never had it
)

// Whereabouts says what became of one entity (turn, tool, prompt or compaction) of a session.
func Whereabouts(s *session.State, entity, id string) Became {
	if e, ok := s.Ended(entity, id); ok {
		return Became{Name: e.Name, Outcome: e.Outcome, Reason: e.Reason, Ending: e}
	}
	open, name, why := false, "", ""
	switch entity {
	case session.EntityTurn:
		open = s.Turn != nil && s.Turn.ID == id
	case session.EntityTool:
		if t := s.Tools[id]; t != nil {
			open, name, why = true, t.Name, "waits for the answer"
		}
	case session.EntityPrompt:
		if p := s.Prompts[id]; p != nil {
			open, name, why = true, string(p.Kind), "can be answered"
		}
	case session.EntityCompaction:
		if s.Compaction == nil || s.Compaction.ID != id {
			return Became{Outcome: OutcomeUnknown, Reason: "nobody had requested it"}
		}
		open = true
	}
	word := entity
	switch {
	case entity == session.EntityTool:
		word = "call"
	case entity == session.EntityPrompt:
		word = name
	}
	switch {
	case !open:
		return Became{Outcome: OutcomeUnlisted}
	case slices.Contains(Stranded(s), word+" "+id):
		return Became{Name: name, Outcome: OutcomeOpen}
	default:
		return Became{Name: name, Outcome: OutcomeKept, Reason: why}
	}
}
