package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// interruptAfter is interrupt by one who says what comes of it.
func interruptAfter(ctx context.Context, s *session.State, now time.Time, src session.Source) (Decision, error) {
	d, err := interrupt(ctx, s, now, src)
	if len(d.Facts) > 0 {
		d.After = s.Clone()
		d.After.Turn = nil
	}
	return d, err
}

// TestAfter: a decision that brings what comes of it is not folded again, and is remembered and told like any other.
func TestAfter(t *testing.T) {
	w := newWorld(t)
	told := 0
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interruptAfter,
		Decided: func(context.Context, *session.State, []events.Fact) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	s := w.open("s")
	after, facts, err := l.Settle(w.ctx, s)
	if err != nil || len(facts) != 1 || after.Turn != nil || after.LastTurn != nil || after.Seq != w.state("s").Seq {
		t.Errorf("%v: %d facts, then %+v", err, len(facts), after)
	}
	if n := l.Counts(); told != 1 || n["facts"] != 1 || n["decisions"] != 1 || !l.outdated(s) {
		t.Errorf("told %d times, counted %v, the old document is outdated: %v", told, n, l.outdated(s))
	}
}

// TestSettleManyOfOldDocuments: a document that is older than what this process has appended to its session is not decided
// on: its successor is under way. That one is, once.
func TestSettleManyOfOldDocuments(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interruptAfter})
	if err != nil {
		t.Fatal(err)
	}
	s := w.open("s")
	settle := func(s *session.State) (x Settled) {
		l.SettleMany(w.ctx, []*session.State{s}, interruptAfter, func(y Settled) { x = y })
		return x
	}
	if x := settle(s); x.Err != nil || len(x.Facts) != 1 {
		t.Fatalf("%v: %d facts", x.Err, len(x.Facts))
	}
	decided := l.Counts()
	if x := settle(s); x.Err != nil || len(x.Facts) != 0 || x.After != s {
		t.Errorf("of the old document: %v, %d facts", x.Err, len(x.Facts))
	}
	for name, n := range l.Counts() {
		if n != decided[name] {
			t.Errorf("%s: %d, was %d before the old document", name, n, decided[name])
		}
	}
	next := w.say(w.state("s"), events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	if x := settle(next); x.Err != nil || len(x.Facts) != 1 || w.state("s").Turn != nil {
		t.Errorf("of the next one: %v, %d facts", x.Err, len(x.Facts))
	}
}

// TestFitting: one commit holds what the wire allows; what is always small is not weighed, but a fence that holds many calls.
func TestFitting(t *testing.T) {
	l := &Loop{}
	of := func(facts ...events.Fact) []events.Event {
		evs := make([]events.Event, len(facts))
		for i, f := range facts {
			evs[i] = events.New("id", l.source, events.Ref{Harness: "h", Session: "s"}, 1, time.Unix(0, 0), f)
		}
		return evs
	}
	small := events.TurnInterrupted{Turn: "t", Reason: "x"}
	large := events.TurnFailed{Turn: "t", Error: events.Failure{Kind: "x", Text: strings.Repeat("x", batchBytesMax/2)}}
	fence := events.SessionOrphaned{Incarnation: "17", Reason: "x"}
	for range batchBytesMax / 2 / (3 * events.TokenBytesMax) {
		fence.WaitsFor = append(fence.WaitsFor, events.WaitFor{Call: strings.Repeat("c", events.TokenBytesMax), Child: strings.Repeat("d", events.TokenBytesMax)})
	}
	for name, c := range map[string]struct {
		evs  []events.Event
		want int
	}{
		"small ones":      {of(small, small, small), 3},
		"large ones":      {of(large, large), 1},
		"fences of many":  {of(fence, fence, fence), 2},
		"small and large": {of(small, large, large), 2},
	} {
		if n, err := fitting(c.evs); n != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, n, err, c.want)
		}
	}
}
