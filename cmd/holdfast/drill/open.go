package drill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Stranded lists what is open in a session though nobody runs it: what recovery should have closed. A question that is
// kept, and the call and the turn that wait for it, may stay open; so may a call that waits for a child of whom
// something may still come, or that is not among docs, the documents of the session's harness by session id. A session
// that has an owner is itself stranded, as far as those are concerned who know that the owner is gone.
func Stranded(s *session.State, docs map[string]*session.State) []string {
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
		if child := docs[w.Child]; child == nil || child.Turn != nil || child.Owned || len(child.PendingPrompts()) > 0 {
			calls[w.Call] = true
		}
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

// errEnough ends a watch that has shown what was wanted.
var errEnough = errors.New("drill: enough")

// Settled waits until the documents of these sessions of a harness are as new as the log and nothing in them is
// [Stranded]. When the time is up, or ctx ends, it returns them as they are: look what is stranded. The error is one of
// reading.
func Settled(ctx context.Context, b *bus.Bus, harness string, sessions []string,
	patience time.Duration) (map[string]*session.State, error) {
	ends := map[string]uint64{}
	for _, id := range sessions {
		commits, err := b.Read(ctx, events.Ref{Harness: harness, Session: id}, 0)
		if err != nil {
			return nil, fmt.Errorf("drill: log of %s: %w", id, err)
		}
		if len(commits) > 0 {
			ends[id] = commits[len(commits)-1].Seq
		}
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	docs := map[string]*session.State{}
	err := b.Watch(limited, bus.State, []string{events.SessionKeys(harness)}, func(u bus.Update) error {
		if u.Ready || u.Deleted {
			return nil
		}
		d, err := session.Decode(u.Value)
		if err != nil {
			return fmt.Errorf("drill: document %s: %w", u.Key, err)
		}
		docs[d.Session] = d
		for id, seq := range ends {
			if d := docs[id]; d == nil || d.Seq < seq || len(Stranded(d, docs)) > 0 {
				return nil
			}
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return docs, err
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

// Whereabouts says what became of one entity (turn, tool, prompt or compaction) of a session; docs as for [Stranded].
func Whereabouts(s *session.State, docs map[string]*session.State, entity, id string) Became {
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
			if slices.ContainsFunc(s.WaitsFor, func(w events.WaitFor) bool { return w.Call == id }) {
				why = "waits for its sub-agent"
			}
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
	switch entity {
	case session.EntityTool:
		word = "call"
	case session.EntityPrompt:
		word = name
	}
	switch {
	case !open:
		return Became{Outcome: OutcomeUnlisted}
	case slices.Contains(Stranded(s, docs), word+" "+id):
		return Became{Name: name, Outcome: OutcomeOpen}
	default:
		return Became{Name: name, Outcome: OutcomeKept, Reason: why}
	}
}
