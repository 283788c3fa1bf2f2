package session_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestDraft checks that a draft folds each fact once, in a copy, and stays at the place of the state that it began
// with.
func TestDraft(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.ToolStarted{Call: "c1", Turn: "t1"}, events.ToolStarted{Call: "c2", Turn: "t1"})
	now := time.Unix(1000, 0)
	d := session.NewDraft(f.s, events.WriterReconciler, "/service/reconciler/test", now)
	d.Flush()
	if d.State != f.s {
		t.Error("an empty draft copies the state")
	}
	interrupted := func(call string) events.Fact {
		return events.ToolInterrupted{Call: call, Reason: events.ReasonOwnerLost, Outcome: events.OutcomeUnknown}
	}
	d.PutOff(interrupted("c1"))
	if d.Tools["c1"] == nil {
		t.Error("a fact that was put off is folded")
	}
	d.Add(interrupted("c2"))
	if len(d.Facts) != 2 || d.Tools["c1"] != nil || d.Tools["c2"] != nil {
		t.Errorf("%d facts, calls %v: want 2, none", len(d.Facts), d.Tools)
	}
	d.Add(events.PromptExpired{Prompt: "unknown", Reason: events.ReasonDeadline})
	if d.Seq != f.s.Seq || d.Ignored.Count != 1 {
		t.Errorf("place %d, %d facts ignored: want %d, 1", d.Seq, d.Ignored.Count, f.s.Seq)
	}
	if len(f.s.Tools) != 2 || f.s.Ignored.Count != 0 {
		t.Errorf("the state has changed: calls %v, %d facts ignored", f.s.Tools, f.s.Ignored.Count)
	}
}

// TestDraftCheckAt checks that the earliest instant counts, and that the zero instant does not.
func TestDraftCheckAt(t *testing.T) {
	var d session.Draft
	for _, c := range []struct{ at, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Unix(5, 0), time.Unix(5, 0)},
		{time.Unix(7, 0), time.Unix(5, 0)},
		{time.Unix(3, 0), time.Unix(3, 0)},
		{time.Time{}, time.Unix(3, 0)},
	} {
		if d.CheckAt(c.at); !d.Next.Equal(c.want) {
			t.Errorf("after %s: %s, want %s", c.at, d.Next, c.want)
		}
	}
}
