package terminal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestDiff: what a person sees of two places of a history, and that each change is named by its path: an ending by its
// id, and not by its place in a list that others push it down.
func TestDiff(t *testing.T) {
	all := later()
	at := func(seq int) *session.State {
		s := session.New(all[0].Ref)
		for i := range all[:seq] {
			s.Fold(&all[i])
		}
		return s
	}
	changes, err := Difference(at(5), at(9))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff", Diff(changes, Style{}))
	if same, err := Difference(at(9), at(9)); err != nil || len(same) != 0 {
		t.Errorf("a document and itself differ: %+v, %v", same, err)
	}
	changes, err = Difference(at(9), at(12))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.MarshalIndent(changes, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff-json", string(body)+"\n")
}

// TestCompare: what a person sees of two places of a history, in the order in which it matters.
func TestCompare(t *testing.T) {
	all := later()
	at := func(seq int) *session.State {
		s := session.New(all[0].Ref)
		for i := range all[:seq] {
			s.Fold(&all[i])
		}
		return s
	}
	golden(t, "compare", Compare(at(5), at(9), Style{})+"\n"+Compare(at(9), at(12), Style{})+"\n"+
		Compare(at(0), at(len(all)), Style{}))
	if text := Compare(at(9), at(9), Style{}); text != "" {
		t.Errorf("a document and itself differ:\n%s", text)
	}
	before, after := at(9), at(9)
	before.Recent, after.Recent = []session.Ending{{Entity: session.EntityTool, ID: "old", Outcome: "completed"}}, nil
	after.Commits++
	if text := Compare(before, after, Style{}); text != "" {
		t.Errorf("an ending that the document no longer has, and a counter, differ:\n%s", text)
	}
}

// TestCompareShows: each thing that a person asks about a session is compared.
func TestCompareShows(t *testing.T) {
	for want, change := range map[string]func(s *session.State){
		"owner": func(s *session.State) { s.Owned, s.Incarnation, s.Epoch = true, "9", 3 },
		"phase": func(s *session.State) { s.Phase = session.Retrying },
		"title": func(s *session.State) { s.Title = "other" }, "agent": func(s *session.State) { s.Agent = "a" },
		"model":  func(s *session.State) { s.Model = "m" },
		"closed": func(s *session.State) { s.Closed = &session.Closing{Reason: "finished"} },
		"wanted": func(s *session.State) { s.Pending.Turn = &session.PendingTurn{ID: "t", Cause: events.CauseMessage} },
		"stop":   func(s *session.State) { s.Pending.Stop = &session.PendingStop{Turn: "t", Actor: "person"} },
		"waits for": func(s *session.State) {
			s.WaitsFor = []events.WaitFor{{Call: "c", Child: "child"}}
		},
		"queue": func(s *session.State) { s.HeldSeq = 7 },
		"retry": func(s *session.State) {
			s.Retry = session.Retry{State: session.RetryAbandoned, Reason: "attempts"}
		},
		"answers": func(s *session.State) {
			s.Continuations.State, s.Continuations.Reason = session.ContinuationsHeld, "no-progress"
		},
		"usage":   func(s *session.State) { s.Usage = &session.Usage{Used: 5} },
		"ignored": func(s *session.State) { s.Ignored.Count++ }, "parked": func(s *session.State) { s.Parked++ },
		"policy": func(s *session.State) { s.Policy.CompactionThreshold += 0.1 },
		"prompt": func(s *session.State) {
			s.Prompts = map[string]*session.Prompt{"p": {Status: session.Answered}}
		},
		"tool":    func(s *session.State) { s.Tools = map[string]*session.Tool{"c": {Name: "bash"}} },
		"turn":    func(s *session.State) { s.Turn = &session.Turn{ID: "t"} },
		"message": func(s *session.State) { s.Queue = []session.Message{{ID: "m"}} },
		"compaction": func(s *session.State) {
			s.Compaction = &session.Compaction{ID: "k", State: session.CompactionRunning}
		},
	} {
		before, after := session.New(later()[0].Ref), session.New(later()[0].Ref)
		change(after)
		text := Compare(before, after, Style{})
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[1], want+" ") {
			t.Errorf("%s:\n%s", want, text)
		}
	}
}
