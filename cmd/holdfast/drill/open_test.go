package drill

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// history folds commits. Each one has a writer and facts.
type written struct {
	by    events.Writer
	facts []events.Fact
}

func history(commits ...written) *session.State {
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	for i, c := range commits {
		seq := uint64(i + 1)
		source := events.HarnessSource("h", "1")
		if c.by != events.WriterHarness {
			source = events.ServiceSource(string(c.by), "x")
		}
		commit := events.Commit{Ref: s.Ref(), Writer: c.by, Seq: seq, Guard: seq - 1, Guarded: true,
			At: time.Unix(int64(i), 0)}
		for _, f := range c.facts {
			commit.Events = append(commit.Events, events.New("e", source, s.Ref(), 1, commit.At, f))
		}
		s.Fold(&commit)
	}
	return s
}

func byHarness(facts ...events.Fact) written    { return written{events.WriterHarness, facts} }
func byReconciler(facts ...events.Fact) written { return written{events.WriterReconciler, facts} }

// Recovery may leave some entities open, and must close the others.
func TestStranded(t *testing.T) {
	opened := byHarness(events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
	working := byHarness(events.ToolStarted{Call: "c", Turn: "t", Name: "bash"})
	asking := byHarness(events.ToolStarted{Call: "a", Turn: "t", Name: "ask"},
		events.PromptRequested{Prompt: "p", Turn: "t", Call: "a", PromptKind: "question",
			Delivery: events.DeliverToolResult})
	callback := byHarness(events.PromptRequested{Prompt: "q", Turn: "t", PromptKind: "permission",
		Delivery: events.DeliverCallback})
	gone := byReconciler(events.SessionOrphaned{Reason: "owner-lost", Incarnation: "1"})
	waits := history(opened, working, byReconciler(events.SessionOrphaned{Reason: "owner-lost", Incarnation: "1",
		WaitsFor: []events.WaitFor{{Call: "c", Child: "k"}}}))
	ended := byHarness(events.TurnCompleted{Turn: "t"})
	child := func(more ...written) map[string]*session.State {
		return map[string]*session.State{"k": history(append([]written{opened}, more...)...)}
	}
	for _, c := range []struct {
		name string
		s    *session.State
		docs map[string]*session.State
		want []string
	}{
		{"never opened", history(), nil, nil},
		{"an owner, for whom it is known that it is gone", history(opened), nil, []string{"owner 1", "turn t"}},
		{"a turn", history(opened, gone), nil, []string{"turn t"}},
		{"a call and its turn", history(opened, working, gone), nil, []string{"call c", "turn t"}},
		{"a question to a callback", history(opened, callback, gone), nil, []string{"permission q", "turn t"}},
		{"a kept question with its call and its turn", history(opened, asking, gone), nil, nil},
		{"a call beside a kept question", history(opened, asking, working, gone), nil, []string{"call c"}},
		{"a call that waits for a child", history(opened, working,
			byReconciler(events.SessionOrphaned{Reason: "owner-lost", Incarnation: "1",
				WaitsFor: []events.WaitFor{{Call: "c", Child: "k"}}})), nil, nil},
		{"a call that waits for a child which asks", waits,
			child(ended, byHarness(events.PromptRequested{Prompt: "p", PromptKind: "question",
				Delivery: events.DeliverMessage}), gone), nil},
		{"a call that waits for a child which works", waits, child(working, gone), nil},
		{"a call that waits for a child that has an owner", waits, child(ended), nil},
		{"a call that waits for a child of whom nothing comes", waits, child(ended, gone),
			[]string{"call c", "turn t"}},
		{"everything closed", history(opened, working, gone,
			byReconciler(events.ToolInterrupted{Call: "c", Reason: "owner-lost"},
				events.TurnInterrupted{Turn: "t", Reason: "owner-lost"})), nil, nil},
	} {
		if got := Stranded(c.s, c.docs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Whereabouts returns the state of each entity that was open.
func TestWhereabouts(t *testing.T) {
	opened := byHarness(events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage},
		events.ToolStarted{Call: "c", Turn: "t", Name: "bash"}, events.ToolStarted{Call: "a", Turn: "t", Name: "ask"},
		events.PromptRequested{Prompt: "p", Turn: "t", Call: "a", PromptKind: "question",
			Delivery: events.DeliverToolResult})
	gone := byReconciler(events.SessionOrphaned{Reason: "owner-lost", Incarnation: "1"})
	closed := byReconciler(events.ToolInterrupted{Call: "c", Reason: "owner-lost"})
	s, before := history(opened, gone, closed), history(opened, gone)
	for _, c := range []struct {
		s          *session.State
		entity, id string
		want       Became
	}{
		{before, session.EntityTool, "c", Became{Name: "bash", Outcome: OutcomeOpen}},
		{s, session.EntityTool, "c", Became{Name: "bash", Outcome: "interrupted", Reason: "owner-lost"}},
		{s, session.EntityTool, "a", Became{Name: "ask", Outcome: OutcomeKept, Reason: "waits for the answer"}},
		{s, session.EntityPrompt, "p", Became{Name: "question", Outcome: OutcomeKept, Reason: "can be answered"}},
		{s, session.EntityTurn, "t", Became{Outcome: OutcomeKept}},
		{s, session.EntityTurn, "long-ago", Became{Outcome: OutcomeUnlisted}},
		{s, session.EntityCompaction, "k", Became{Outcome: OutcomeUnknown, Reason: "it was not requested"}},
	} {
		got := Whereabouts(c.s, nil, c.entity, c.id)
		got.Ending = session.Ending{}
		if got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.entity, c.id, got, c.want)
		}
	}
}

// A message that was delivered twice, out of order or not at all is detected, and so is a second compaction.
func TestHandedOut(t *testing.T) {
	ending := func(entity, id, outcome string) session.Ending {
		return session.Ending{Entity: entity, ID: id, Outcome: outcome}
	}
	message := func(id string) session.Ending {
		return ending(session.EntityMessage, id, session.OutcomeDelivered)
	}
	compaction := ending(session.EntityCompaction, "k", session.OutcomeCompleted)
	for want, recent := range map[string][]session.Ending{
		"m1 m2 m3, once": {message("first"), compaction, message("m1"),
			ending(session.EntityTurn, "m9", "completed"), message("m2"), message("m3")},
		"m2 m1 m3, once": {compaction, message("m2"), message("m1"), message("m3")},
		"m1 m1 m2 m3, 2 times": {compaction, compaction, message("m1"), message("m1"), message("m2"),
			message("m3")},
		"m1 (withdrawn) m3, 0 times": {ending(session.EntityMessage, "m1", "withdrawn"), message("m3"),
			ending(session.EntityCompaction, "k", "failed")},
	} {
		if got := handedOut(&session.State{Recent: recent}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNamesOfActsFitTheirColumn(t *testing.T) {
	longest := 0
	for _, act := range append(acts(), actOutage, actEnd) {
		longest = max(longest, len(act))
	}
	if longest != ActBytesMax {
		t.Errorf("the longest name has %d bytes, the column %d", longest, ActBytesMax)
	}
}
