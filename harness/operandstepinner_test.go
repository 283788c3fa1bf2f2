package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestReceiptsOfAsk: the receipt of a decision is for the end of the call to give while the call is open, and for Ask
// where there is no such end.
func TestReceiptsOfAsk(t *testing.T) {
	x := newInside(t)
	byCall := func(call string) session.Prompt {
		return session.Prompt{Status: session.Answered, Delivery: events.DeliverToolResult, Call: call}
	}
	for name, c := range map[string]struct {
		p    session.Prompt
		want bool
	}{
		"by callback":            {session.Prompt{Status: session.Answered, Delivery: events.DeliverCallback}, true},
		"by a call that is open": {byCall("c1"), false},
		"by a call that ended":   {byCall("c2"), true},
		"not decided":            {session.Prompt{Status: session.Awaiting, Delivery: events.DeliverCallback}, false},
	} {
		st := session.New(x.s.ref)
		st.Tools = map[string]*session.Tool{"c1": {}}
		st.Prompts = map[string]*session.Prompt{"p1": &c.p}
		if got := x.s.owesReceipt(st, "p1"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestInputOfAnOpenStep: a step that is cut off was begun with another input. It is not run again with this one. Two
// steps that begin in one commit have each their own input.
func TestInputOfAnOpenStep(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	one, other := nameID(nameOfStep, "one", "message m1", 1), nameID(nameOfStep, "other", "message m1", 1)
	x.mustRelay(events.ToolStarted{Call: one, Turn: "t1", Name: "one", Input: json.RawMessage(`{"to":1}`)},
		events.ToolStarted{Call: other, Turn: "t1", Name: "other", Input: json.RawMessage(`{"to":2}`)})
	for _, c := range []struct {
		name, input string
		same        bool
	}{
		{"one", `{"to":1}`, true}, {"one", `{ "to": 1 }`, true}, {"one", `{"to":2}`, false},
		{"other", `{"to":2}`, true}, {"other", `{"to":1}`, false},
	} {
		call := nameID(nameOfStep, c.name, "message m1", 1)
		err := turn.sameInput(x.ctx, c.name, call, json.RawMessage(c.input), 0)
		if (err == nil) != c.same || !c.same && !errors.Is(err, ErrNameTaken) {
			t.Errorf("%s with %s: %v", c.name, c.input, err)
		}
	}
	_, _, err := turn.stepBegins(x.ctx, "one", true, json.RawMessage(`{"to":2}`))
	if !errors.Is(err, ErrNameTaken) {
		t.Errorf("begun with another input: %v", err)
	}
}

// TestNotRunIsRemembered: a process remembers that the function of a step did not run until the end of its call is
// stored, or its start is refused; not only until the next such step.
func TestNotRunIsRemembered(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(events.ToolStarted{Call: "open", Turn: "t1", Name: "open"})
	state := func(ended bool, err error) *write {
		o := &write{done: make(chan struct{}), err: err}
		if ended {
			close(o.done)
		}
		return o
	}
	x.s.mu.Lock()
	x.s.unrun = map[string]*write{"under way": state(false, nil), "open": state(true, nil), "closed": state(true, nil),
		"refused": state(true, ErrFenced)}
	x.s.mu.Unlock()
	(&Turn{s: x.s, id: "t1"}).notRun("next", state(false, nil))
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if got := slices.Sorted(maps.Keys(x.s.unrun)); !slices.Equal(got, []string{"next", "open", "under way"}) {
		t.Errorf("remembered: %v", got)
	}
}

// TestWithoutATurn: what a session without a turn, or one that was never read, is asked about its turn.
func TestWithoutATurn(t *testing.T) {
	x := newInside(t)
	if turn := newSession(x.h, events.Ref{Harness: "laptop", Session: "apart"}).OpenTurn(); turn != nil {
		t.Errorf("of a session that was not read: %v", turn.ID())
	}
	if err := x.s.handle("t9").Context().Err(); err == nil {
		t.Error("the handle of a turn that is not there is alive")
	}
	o, err := x.s.newWrite([]events.Fact{events.TurnStarted{Turn: "t1"}})
	if err != nil {
		t.Fatal(err)
	}
	st := x.s.State()
	st.StoppedSeq = st.Seq
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if err := x.s.stoppedSince(st, 0, o, "t1"); err != nil {
		t.Errorf("the first turn is refused: %v", err)
	}
}

// TestStopsThatAreNotAPersons: a service's stop is pending after a person's stop was confirmed. It does not hide that
// one.
func TestStopsThatAreNotAPersons(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	pending := func(seq uint64) {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		x.s.st.StoppedSeq, x.s.st.Pending.Stop = 3, &session.PendingStop{Turn: "t1", Seq: seq}
	}
	if pending(3); x.s.confirmedStop() != 2 {
		t.Errorf("of a person's stop that is pending: %d, want 2", x.s.confirmedStop())
	}
	if pending(7); x.s.confirmedStop() != 3 {
		t.Errorf("of a later stop by a service: %d, want 3", x.s.confirmedStop())
	}
}

// TestReceiptOfAStopThatIsGone: a stop whose receipt is to be given is no longer pending, or another one is. Nothing is
// stored.
func TestReceiptOfAStopThatIsGone(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	for i, pending := range []*session.PendingStop{nil, {Turn: "t1", Actor: events.ActorPerson, Seq: 1}} {
		x.s.mu.Lock()
		x.s.st.Pending.Stop = pending
		x.s.mu.Unlock()
		x.s.confirm(session.PendingStop{Turn: "t9", Actor: events.ActorPerson})
		// stored after it
		call := fmt.Sprint("c", i)
		x.mustRelay(events.ToolStarted{Call: call, Turn: "t1", Name: "x"}, events.ToolCompleted{Call: call})
	}
	cs, err := x.peer.Log.Read(x.ctx, x.s.ref, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		for _, e := range c.Events {
			if f, ok := e.Fact.(events.TurnStopped); ok {
				t.Errorf("stored: %+v", f)
			}
		}
	}
}

// TestStopsOfAStart: a start waits while a person's stop is confirmed. It is refused if the stop would have moved to
// it. A stop by a service that is pending then, and an earlier turn that ended after the stop, change nothing. A
// message of a person from after the stop begins its turn.
func TestStopsOfAStart(t *testing.T) {
	x := newInside(t)
	ends := func(turn *Turn) {
		t.Helper()
		if err := turn.Complete(x.ctx, ""); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, want error, change func(st *session.State), facts ...events.Fact) {
		t.Helper()
		o, err := x.s.newWrite(facts)
		if err != nil {
			t.Fatal(err)
		}
		st := x.s.State()
		change(st)
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		if err := x.s.stoppedSince(st, 0, o, "next"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	next := events.TurnStarted{Turn: "next", Cause: events.CauseMessage, Synthetic: true}
	first := x.turn(StartOptions{ID: "t0"})
	stop := x.s.State().Seq
	ends(first)
	refused("a service's stop is pending", ErrStopped, func(st *session.State) {
		st.StoppedSeq, st.Pending.Stop = st.Seq, &session.PendingStop{Turn: "t0", Actor: events.ActorStall, Seq: 1}
	}, next)
	refused("a person's stop is pending", nil, func(st *session.State) {
		st.StoppedSeq = st.Seq
		st.Pending.Stop = &session.PendingStop{Turn: "t0", Actor: events.ActorPerson, Seq: st.Seq}
	}, next)
	refused("a person has sent a message since", nil, func(st *session.State) { st.StoppedSeq = stop },
		events.MessageAccepted{Message: "m", Content: json.RawMessage(`"x"`)},
		events.TurnStarted{Turn: "next", Cause: events.CauseMessage, Message: "m"})
	x.turn(StartOptions{ID: "t1"})
	refused("a turn has ended since, and another one is open", ErrStopped,
		func(st *session.State) { st.StoppedSeq = stop }, next)
}
