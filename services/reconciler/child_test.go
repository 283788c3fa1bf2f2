package reconciler

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// child returns a session of process 17 that a call "task" of another one waits for, after a change.
func child(name string, change func(*session.State)) *session.State {
	c := session.New(events.Ref{Harness: "h", Session: name})
	c.Epoch, c.Incarnation, c.Parent, c.ParentCall = 1, "17", "s", "task"
	change(c)
	return c
}

// parent returns a decision about a session of process 17 whose call "task" is held, at second 31.
func parent(children ...*session.State) *draft {
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Epoch, s.Incarnation = 1, "17"
	s.Turn = &session.Turn{ID: "t1", Epoch: 1}
	s.Tools = map[string]*session.Tool{"task": {Turn: "t1", Epoch: 1}}
	s.WaitsFor = []events.WaitFor{{Call: "task", Child: "c"}}
	return newDraft(s, Input{Now: sec(31), Children: children}, nil)
}

func last(outcome string, at float64) *session.LastTurn {
	return &session.LastTurn{ID: "k", Outcome: outcome, At: sec(at), Seq: uint64(at)}
}

func TestUnsettled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*session.State)
		want   bool
	}{
		"nothing is open":       {func(*session.State) {}, false},
		"a turn is open":        {func(s *session.State) { s.Turn = &session.Turn{} }, true},
		"a turn is asked for":   {func(s *session.State) { s.Pending.Turn = &session.PendingTurn{} }, true},
		"a stop has no receipt": {func(s *session.State) { s.Pending.Stop = &session.PendingStop{} }, true},
		"a person is waited for": {func(s *session.State) {
			s.Prompts = map[string]*session.Prompt{"p": {Status: session.Awaiting}}
		}, true},
		"a person has answered": {func(s *session.State) {
			s.Prompts = map[string]*session.Prompt{"p": {Status: session.Answered}}
		}, false},
		"a retry is scheduled":     {func(s *session.State) { s.Retry.State = session.RetryScheduled }, true},
		"a retry is about to come": {func(s *session.State) { s.Retry.State = session.RetryStarting }, true},
		"a retry was given up":     {func(s *session.State) { s.Retry.State = session.RetryAbandoned }, false},
		"it is compacted": {func(s *session.State) {
			s.Compaction = &session.Compaction{State: session.CompactionRunning}
		}, true},
		"it is closed": {func(s *session.State) {
			s.Closed, s.Retry.State = &session.Closing{}, session.RetryScheduled
		}, false},
	} {
		if got := Unsettled(child("c", c.change)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestResting: a child that failed a moment ago gets time for a retry, unless no retry can follow, or its parent was
// interrupted with it.
func TestResting(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*session.State)
		waited bool
		want   bool
	}{
		"failed a moment ago": {func(s *session.State) {
			s.LastTurn = last(session.OutcomeFailed, 30)
		}, true, true},
		"interrupted in another process": {func(s *session.State) {
			s.LastTurn, s.Incarnation = last(session.OutcomeInterrupted, 30), "18"
		}, true, true},
		"interrupted, and owned again": {func(s *session.State) {
			s.LastTurn, s.Owned = last(session.OutcomeInterrupted, 30), true
		}, true, true},
		"interrupted with its parent": {func(s *session.State) {
			s.LastTurn = last(session.OutcomeInterrupted, 30)
		}, true, false},
		"failed a while ago": {func(s *session.State) {
			s.LastTurn = last(session.OutcomeFailed, 29)
		}, true, false},
		"completed": {func(s *session.State) {
			s.LastTurn = last(session.OutcomeCompleted, 30)
		}, true, false},
		"stopped": {func(s *session.State) {
			s.LastTurn = last(session.OutcomeStopped, 30)
		}, true, false},
		"never worked": {func(*session.State) {}, true, false},
		"not waited for": {func(s *session.State) {
			s.LastTurn = last(session.OutcomeFailed, 30)
		}, false, false},
		"closed": {func(s *session.State) {
			s.LastTurn, s.Closed = last(session.OutcomeFailed, 30), &session.Closing{}
		}, true, false},
		"given up": {func(s *session.State) {
			s.LastTurn, s.Retry.State = last(session.OutcomeFailed, 30), session.RetryAbandoned
		}, true, false},
		"automatic retry is off": {func(s *session.State) {
			s.LastTurn, s.Policy.AutoRetry = last(session.OutcomeFailed, 30), false
		}, true, false},
	} {
		kid := child("c", c.change)
		d := parent(kid)
		if !c.waited {
			d.WaitsFor = []events.WaitFor{{Call: "other", Child: "c"}}
		}
		if got := d.resting("task", kid); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if held := d.held("task"); held != c.want || !d.Next.IsZero() != c.want {
			t.Errorf("%s: held: %v, to be looked at again at %v", name, held, d.Next)
		}
		if holds := d.holds("t1"); holds != c.want {
			t.Errorf("%s: holds its turn: %v", name, holds)
		}
		d.Tools["task"].Turn = "t0"
		if d.holds("t1") {
			t.Errorf("%s: a call of another turn holds this one", name)
		}
		d.Tools["task"].Turn = "t1"
		if d.Owned = true; d.holds("t1") {
			t.Errorf("%s: a call of the owner's own holds its turn", name)
		}
	}
	open := child("c", func(s *session.State) { s.Turn, s.LastTurn = &session.Turn{}, last(session.OutcomeFailed, 30) })
	if d := parent(open); !d.held("task") || !d.Next.IsZero() {
		t.Errorf("held for what works, which is no matter of time: to be looked at again at %v", d.Next)
	}
}

// TestFallen: a child that was interrupted with its parent does not hold it if only retry continues the child.
func TestFallen(t *testing.T) {
	asked := func(cause events.Cause, by string) func(*session.State) {
		return func(s *session.State) { s.Pending.Turn = &session.PendingTurn{ID: "n", Cause: cause, By: by} }
	}
	for name, c := range map[string]struct {
		change func(*session.State)
		want   bool
	}{
		"nothing is wanted":          {func(*session.State) {}, true},
		"retry has a plan":           {func(s *session.State) { s.Retry.State = session.RetryScheduled }, true},
		"retry wants it again":       {asked(events.CauseResume, ""), true},
		"retry wants it after that":  {asked(events.CauseRetry, ""), true},
		"a person wants it again":    {asked(events.CauseResume, "user-1"), false},
		"an answer is to be used":    {asked(events.CauseAnswer, ""), false},
		"a message is to be handled": {asked(events.CauseMessage, ""), false},
		"a stop has no receipt":      {func(s *session.State) { s.Pending.Stop = &session.PendingStop{} }, false},
		"it is to be compacted": {func(s *session.State) {
			s.Pending.Compaction = &session.PendingCompaction{}
		}, false},
		"it is compacted": {func(s *session.State) {
			s.Compaction = &session.Compaction{State: session.CompactionRunning}
		}, false},
		"a turn is open": {func(s *session.State) { s.Turn = &session.Turn{} }, false},
		"a person is waited for": {func(s *session.State) {
			s.Prompts = map[string]*session.Prompt{"p": {Status: session.Awaiting}}
		}, false},
		"another process owns it": {func(s *session.State) { s.Owned = true }, false},
	} {
		kid := child("c", func(s *session.State) { s.LastTurn = last(session.OutcomeInterrupted, 30); c.change(s) })
		if got := parent(kid).fallen(kid); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestBecameOf: a call ends like the child that changed last, in every order.
func TestBecameOf(t *testing.T) {
	did := func(name, outcome string, at float64) *session.State {
		return child(name, func(s *session.State) { s.LastTurn = last(outcome, at) })
	}
	fell, other := did("c", session.OutcomeInterrupted, 20), did("c", session.OutcomeInterrupted, 20)
	other.Incarnation = "18"
	failed := did("c", session.OutcomeFailed, 20)
	failed.LastTurn.Error = &events.Failure{Kind: "quota", Text: "no"}
	for name, c := range map[string]struct {
		kids   []*session.State
		waited bool
		kind   events.Kind
		reason string
		whole  bool
	}{
		"the last completed": {[]*session.State{did("a", session.OutcomeFailed, 10),
			did("b", session.OutcomeCompleted, 20)}, true, "tool.completed", "", true},
		"the first completed last": {[]*session.State{did("a", session.OutcomeCompleted, 20),
			did("b", session.OutcomeFailed, 10)}, true, "tool.completed", "", true},
		"failed, and how": {[]*session.State{failed}, true, "tool.failed",
			"child session c failed: quota no", true},
		"failed without an error": {[]*session.State{did("c", session.OutcomeFailed, 20)}, true, "tool.failed",
			"child session c failed", true},
		"stopped": {[]*session.State{did("c", session.OutcomeStopped, 20)}, true, "tool.failed",
			"child session c was stopped", true},
		"fell in another process": {[]*session.State{other}, true, "tool.interrupted", events.ReasonChildEnded,
			true},
		"and was not waited for": {[]*session.State{other}, false, "tool.interrupted", events.ReasonOwnerLost,
			false},
		"fell with its parent": {[]*session.State{fell}, true, "tool.interrupted", events.ReasonOwnerLost, false},
		"was purged":           {nil, true, "tool.interrupted", events.ReasonOwnerLost, true},
		"never was":            {nil, false, "tool.interrupted", events.ReasonOwnerLost, false},
		"never worked": {[]*session.State{child("c", func(*session.State) {})}, true, "tool.interrupted",
			events.ReasonOwnerLost, false},
		"one worked, one never did": {[]*session.State{child("a", func(*session.State) {}),
			did("b", session.OutcomeCompleted, 20)}, true, "tool.completed", "", true},
		"one has worked, one not": {[]*session.State{did("a", session.OutcomeCompleted, 20),
			child("b", func(*session.State) {})}, true, "tool.completed", "", true},
		"the one that fell came 1st": {[]*session.State{fell, did("d", session.OutcomeCompleted, 25)}, true,
			"tool.completed", "", true},
	} {
		d := parent(c.kids...)
		if !c.waited {
			d.WaitsFor = nil
		}
		f, whole := d.becameOf("task", c.kids)
		reason := ""
		switch f := f.(type) {
		case events.ToolFailed:
			reason = f.Error.Text
		case events.ToolInterrupted:
			reason = f.Reason
		}
		if whole != c.whole || f.Kind() != c.kind || reason != c.reason {
			t.Errorf("%s: %+v, whole: %v", name, f, whole)
		}
	}
}

// TestChildrenOf: the result has the same order for every order of the input; a session without a parent's call is no
// child.
func TestChildrenOf(t *testing.T) {
	named := func(name string) *session.State { return child(name, func(*session.State) {}) }
	orphan := child("d", func(s *session.State) { s.ParentCall = "" })
	names := ""
	for _, c := range childrenOf([]*session.State{named("c"), orphan, named("a"), named("b")}, "task") {
		names += c.Session
	}
	if names != "abc" || len(childrenOf([]*session.State{orphan}, "")) > 0 {
		t.Errorf("children %s", names)
	}
}

// TestFence: only an open session whose owner is known to be dead is fenced.
func TestFence(t *testing.T) {
	kid := child("c", func(*session.State) {})
	for name, c := range map[string]struct {
		change   func(*session.State)
		liveness Liveness
		want     int
	}{
		"dead":          {func(*session.State) {}, Dead, 1},
		"alive":         {func(*session.State) {}, Alive, 0},
		"starting":      {func(*session.State) {}, Starting, 0},
		"owned by none": {func(s *session.State) { s.Owned = false }, Dead, 0},
		"closed":        {func(s *session.State) { s.Closed = &session.Closing{} }, Dead, 0},
		"never opened":  {func(s *session.State) { s.Epoch = 0 }, Dead, 0},
	} {
		s := parent().State
		s.Owned, s.WaitsFor = true, nil
		c.change(s)
		facts := Fence(s, Input{Now: sec(31), Owner: Owner{Liveness: c.liveness}, Children: []*session.State{kid}})
		if len(facts) != c.want {
			t.Errorf("%s: %+v", name, facts)
		}
		if len(facts) == 1 {
			if f, ok := facts[0].(events.SessionOrphaned); !ok || len(f.WaitsFor) != 1 ||
				f.WaitsFor[0] != (events.WaitFor{Call: "task", Child: "c"}) {
				t.Errorf("%s: %+v", name, facts[0])
			}
		}
	}
}

// TestCheckAt: of several instants the earliest is the next check.
func TestCheckAt(t *testing.T) {
	d := parent()
	for _, x := range []struct{ at, want float64 }{{5, 5}, {9, 5}, {3, 3}} {
		if d.CheckAt(sec(x.at)); !d.Next.Equal(sec(x.want)) {
			t.Errorf("after %v: %s", x.at, d.Next)
		}
	}
	if d.CheckAt(time.Time{}); !d.Next.Equal(sec(3)) {
		t.Errorf("after none: %s", d.Next)
	}
}
