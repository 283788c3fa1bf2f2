package harness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// starting is the life of a process that starts over, with the nth incarnation after the present one.
func (x *inside) starting(n uint64) *term {
	x.t.Helper()
	was, err := strconv.ParseUint(x.h.Incarnation(), 10, 64)
	if err != nil {
		x.t.Fatal(err)
	}
	return &term{incarnation: fmt.Sprint(was + n), lease: x.h.term.lease, ctx: x.ctx, cancel: func(error) {}}
}

// mustNotReclaim has a process that starts over claim its session again, in vain: nothing is stored.
func (x *inside) mustNotReclaim(l *term, want error) {
	x.t.Helper()
	was := x.length()
	if err := x.s.reclaim(l); !errors.Is(err, want) {
		x.t.Errorf("claimed again: %v, want %v", err, want)
	}
	if is := x.length(); is != was {
		x.t.Errorf("%d commits were stored", is-was)
	}
}

// TestReclaimOfAnothersSession: another process has claimed a session, and a process that starts over has not read that
// yet. It finds itself fenced: only a claim that it has sent itself is its own.
func TestReclaimOfAnothersSession(t *testing.T) {
	x := newInside(t)
	// it reads nothing until it claims
	x.s.suspend(x.h.term)
	other := x.starting(1).incarnation
	claimed := events.New(x.peer.NewID(), events.HarnessSource(x.s.ref.Harness, other), x.s.ref, 2, time.Now(),
		events.SessionClaimed{Incarnation: other, Exclusive: x.h.cfg.exclusive()})
	if _, err := x.peer.Log.Append(x.ctx, x.s.ref, events.WriterHarness, x.s.State().Seq,
		[]events.Event{claimed}); err != nil {
		t.Fatal(err)
	}
	x.mustNotReclaim(x.starting(2), ErrFenced)
	if st := x.s.State(); st.Incarnation != other || st.Epoch != 2 {
		t.Errorf("%s has it, in epoch %d", st.Incarnation, st.Epoch)
	}
}

// TestReclaimOfAPartedSession: a session that this process parted with while it started over is not claimed again.
func TestReclaimOfAPartedSession(t *testing.T) {
	x := newInside(t)
	x.s.drop(ErrFenced)
	x.mustNotReclaim(x.starting(1), nil)
}

// TestWaitingPrompts: the prompts of the open turn that wait, unless they are named, or belong to a call in the
// background; none without such a turn, or where another one is requested in its place.
func TestWaitingPrompts(t *testing.T) {
	in := func(turn, call string, status session.Status) *session.Prompt {
		return &session.Prompt{Turn: turn, Call: call, Status: status}
	}
	state := func(change func(*session.State)) *session.State {
		st := session.New(events.Ref{Harness: "h", Session: "s"})
		st.Turn = &session.Turn{ID: "t1"}
		st.Tools = map[string]*session.Tool{"c1": {Turn: "t1"}, "far": {Turn: "t1", Background: true}}
		st.Prompts = map[string]*session.Prompt{"alone": in("t1", "", session.Awaiting),
			"called": in("t1", "c1", session.Awaiting), "far": in("t1", "far", session.Awaiting),
			"answered": in("t1", "", session.Answered), "outside": in("", "", session.Awaiting),
			"before": in("t0", "", session.Awaiting), "named": in("t1", "", session.Awaiting)}
		change(st)
		return st
	}
	for name, x := range map[string]struct {
		change func(*session.State)
		not    bool
		want   []string
	}{
		"of the open turn": {change: func(*session.State) {}, want: []string{"alone", "called"}},
		"not wanted":       {change: func(*session.State) {}, not: true},
		"no turn":          {change: func(st *session.State) { st.Turn = nil }},
		"another turn is requested": {change: func(st *session.State) {
			st.Pending.Turn = &session.PendingTurn{ID: "t2"}
		}},
	} {
		a := Adopt{Waiting: !x.not, Prompts: []Prompt{{ID: "named"}}}
		var got []string
		for _, p := range a.waiting(state(x.change)) {
			got = append(got, p.ID)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}

// TestLeavesTurn: a prompt whose call was adopted leaves its turn behind, if that is open and of an earlier process. A
// call in the background outlives its turn.
func TestLeavesTurn(t *testing.T) {
	for name, x := range map[string]struct {
		open, asked, call string
		epoch             uint64
		want              bool
	}{
		"without a call":         {open: "t1", asked: "t1", epoch: 1, want: true},
		"in a call":              {open: "t1", asked: "t1", call: "c1", epoch: 1, want: true},
		"in the background":      {open: "t1", asked: "t1", call: "far", epoch: 1},
		"the turn is adopted":    {open: "t1", asked: "t1", epoch: 2},
		"another turn is open":   {open: "t1", asked: "t0", epoch: 1},
		"outside of any turn":    {open: "t1", epoch: 1},
		"no turn is open":        {asked: "t1"},
		"no turn, and none open": {},
	} {
		st := session.New(events.Ref{Harness: "h", Session: "s"})
		st.Epoch = 2
		st.Tools = map[string]*session.Tool{"c1": {Epoch: 2}, "far": {Epoch: 2, Background: true}}
		if x.open != "" {
			st.Turn = &session.Turn{ID: x.open, Epoch: x.epoch}
		}
		if got := leavesTurn(st, &session.Prompt{Turn: x.asked, Call: x.call}); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
