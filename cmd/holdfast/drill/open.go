package drill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Stranded returns the open entities of a session without a running process, which recovery should have closed. A kept
// question, and the call and the turn that wait for it, may stay open. A call may stay open if its child session is not
// finished, or is not in docs, the documents of the session's harness by session id. The caller knows that the owner is
// gone, so a session that still has an owner is itself stranded.
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
	if s.Compaction.Running() {
		left = append(left, "compaction "+s.Compaction.ID)
	}
	return left
}

// errEnough ends a watch whose result is complete.
var errEnough = errors.New("enough")

// Settled waits until the documents of these sessions of a harness are as new as the log and have nothing that is
// [Stranded]. If the time limit passes or ctx ends, it returns the documents as they are. The error is an error of
// reading.
func Settled(ctx context.Context, b *bus.Bus, harness string, sessions []string,
	patience time.Duration) (map[string]*session.State, error) {
	ends := map[string]uint64{}
	for _, id := range sessions {
		commits, err := b.Log.Read(ctx, events.Ref{Harness: harness, Session: id}, 0)
		if err != nil {
			return nil, fmt.Errorf("log of %s: %w", id, err)
		}
		if len(commits) > 0 {
			ends[id] = commits[len(commits)-1].Seq
		}
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	docs := map[string]*session.State{}
	err := b.KV.Watch(limited, kv.State, []string{events.SessionKeys(harness)}, func(u kv.Update) error {
		if u.Ready || u.Deleted {
			return nil
		}
		d, err := session.Decode(u.Value)
		if err != nil {
			return fmt.Errorf("document %s: %w", u.Key, err)
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

// Became is the state of an entity that was open: how it ended and why, or that it is kept.
type Became struct {
	Name    string         `json:"name,omitempty"` // a call's tool, or a prompt's kind
	Outcome string         `json:"outcome"`
	Reason  string         `json:"reason,omitempty"`
	Ending  session.Ending `json:"-"` // zero while it is open
}

// reasonCanAnswer is why a prompt is kept.
const reasonCanAnswer = "can be answered"

// Outcomes that no document has.
const (
	OutcomeKept     = "kept"           // open, which is correct
	OutcomeOpen     = "still open"     // open without a running process
	OutcomeUnlisted = "no longer open" // it ended too long ago to be listed
	OutcomeUnknown  = "not recorded"   // the document never had it
)

// Whereabouts returns the state of one entity (turn, tool, prompt or compaction) of a session. docs are as for
// [Stranded].
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
			open, name, why = true, string(p.Kind), reasonCanAnswer
		}
	case session.EntityCompaction:
		if s.Compaction == nil || s.Compaction.ID != id {
			return Became{Outcome: OutcomeUnknown, Reason: "it was not requested"}
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
