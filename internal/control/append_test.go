package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// interruptAfter is interrupt with [Decision.After] set.
func interruptAfter(ctx context.Context, s *session.State, now events.Clock, src session.Source) (Decision, error) {
	d, err := interrupt(ctx, s, now, src)
	if len(d.Facts) > 0 {
		d.After = s.Clone()
		d.After.Turn = nil
	}
	return d, err
}

// TestAfter: a decision with [Decision.After] is not folded again. It is recorded and reported like any other.
func TestAfter(t *testing.T) {
	w := newWorld(t)
	reported := 0
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interruptAfter,
		Decided: func(context.Context, *session.State, []events.Fact) { reported++ }})
	if err != nil {
		t.Fatal(err)
	}
	s := w.open("s")
	after, facts, err := l.Settle(w.ctx, s)
	if err != nil || len(facts) != 1 || after.Turn != nil || after.LastTurn != nil || after.Seq != w.state("s").Seq {
		t.Errorf("%v: %d facts, then %+v", err, len(facts), after)
	}
	if n := l.Counts(); reported != 1 || n["facts"] != 1 || n["decisions"] != 1 || !l.outdated(s.Ref(), s.Seq) {
		t.Errorf("reported %d times, counted %v, the old document is outdated: %v", reported, n,
			l.outdated(s.Ref(), s.Seq))
	}
}

// TestSettleManyOfOldDocuments: the loop does not decide on a document that is older than its own commit. It decides on
// the next document, once.
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
	next := w.append(w.state("s"), events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	if x := settle(next); x.Err != nil || len(x.Facts) != 1 || w.state("s").Turn != nil {
		t.Errorf("of the next one: %v, %d facts", x.Err, len(x.Facts))
	}
}

// TestDocumentsOfOlderRules: nothing is decided on a document that older rules have folded. Load returns what the
// log says.
func TestDocumentsOfOlderRules(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interruptAfter})
	if err != nil {
		t.Fatal(err)
	}
	s := w.open("s")
	old := s.Clone()
	old.Rules, old.Turn = 0, nil
	w.store(old)
	doc, err := old.Encode()
	if err != nil {
		t.Fatal(err)
	}
	l.document(w.ctx, events.SessionKey(s.Ref()), doc, func(context.Context, *session.State, events.Clock,
		session.Source) (Decision, error) {
		t.Error("decided on a document of older rules")
		return Decision{}, nil
	})
	if st, err := l.Load(w.ctx, s.Ref()); err != nil || st.Outdated() || st.Turn == nil {
		t.Errorf("loaded %+v, %v", st, err)
	}
}

// TestFitting: a commit holds what the wire allows. Small facts are not measured, except a fence with many calls.
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
		fence.WaitsFor = append(
			fence.WaitsFor,
			events.WaitFor{
				Call:  strings.Repeat("c", events.TokenBytesMax),
				Child: strings.Repeat("d", events.TokenBytesMax),
			},
		)
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

// TestDone: a document is skipped only if it shows exactly the last commit of this process and the session needs
// nothing else. It is skipped once.
func TestDone(t *testing.T) {
	doc := func(seq uint64) []byte {
		s := session.New(ref("s"))
		s.Epoch, s.Seq = 1, seq
		b, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key := events.SessionKey(ref("s"))
	for name, c := range map[string]struct {
		own  map[events.Ref]own
		seq  uint64
		want bool
	}{
		"its own":           {map[events.Ref]own{ref("s"): {5, true}}, 5, true},
		"another's after":   {map[events.Ref]own{ref("s"): {5, true}}, 6, false},
		"one before":        {map[events.Ref]own{ref("s"): {5, true}}, 4, false},
		"more is to do":     {map[events.Ref]own{ref("s"): {5, false}}, 5, false},
		"another session's": {map[events.Ref]own{ref("x"): {5, true}}, 5, false},
	} {
		l := &Loop{own: c.own}
		if got := l.done(key, doc(c.seq), nil); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if l.done(key, doc(c.seq), nil) {
			t.Errorf("%s: a second time, too", name)
		}
	}
	if l := (&Loop{}); !l.done("no.session", doc(5), nil) {
		t.Error("a key that is not a session's is read")
	}
}

// TestSuspects: a session is left to the slow walk after enough failures. A process that stops records no failure.
// Suspects and their texts are limited.
func TestSuspects(t *testing.T) {
	l := &Loop{suspects: map[events.Ref]request.Suspect{}}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for range attemptsMax {
		if l.failed(stopped, ref("s"), errors.New("stopped")) || len(l.Suspects()) > 0 {
			t.Fatalf("stopping is a failure: %+v", l.Suspects())
		}
	}
	long := errors.New(strings.Repeat("x", 2*suspectTextMax))
	for i := range attemptsMax {
		if leave := l.failed(t.Context(), ref("s"), long); leave != (i == attemptsMax-1) {
			t.Errorf("left after %d failures: %v", i+1, leave)
		}
	}
	since := l.suspects[ref("s")].Since
	if l.failed(t.Context(), ref("s"), long); !l.suspects[ref("s")].Since.Equal(since) ||
		len(l.suspects[ref("s")].Reason) != suspectTextMax {
		t.Errorf("suspect: %+v", l.suspects[ref("s")])
	}
	for i := range 2 * suspectsMax {
		if l.failed(t.Context(), ref(fmt.Sprint(i)), long); len(l.suspects) > suspectsMax {
			t.Fatalf("%d suspects, at most %d", len(l.suspects), suspectsMax)
		}
	}
}

// TestSettleManyInWindows: with more commits than may be in flight, each is sent, awaited and reported once.
func TestSettleManyInWindows(t *testing.T) {
	w := newWorld(t)
	l, err := New(
		w.b,
		Config{Service: "reconciler", Writer: events.WriterReconciler, Decide: interruptAfter, AtOnceMax: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	var states []*session.State
	for i := range 20 * windowMore {
		states = append(states, w.open(fmt.Sprint("s", i)))
	}
	var mu sync.Mutex
	reported := map[string]int{}
	l.SettleMany(w.ctx, states, interruptAfter, func(x Settled) {
		mu.Lock()
		defer mu.Unlock()
		reported[x.Before.Session]++
		if x.Err != nil || len(x.Facts) != 1 || x.After.Seq != w.state(x.Before.Session).Seq {
			t.Errorf("%s: %v, %d facts, at %d", x.Before.Session, x.Err, len(x.Facts), x.After.Seq)
		}
	})
	for _, s := range states {
		if reported[s.Session] != 1 || w.state(s.Session).Commits != 2 {
			t.Errorf("%s: reported %d times, %d commits", s.Session, reported[s.Session], w.state(s.Session).Commits)
		}
	}
	if n := l.Counts(); n["facts"] != uint64(len(states)) {
		t.Errorf("counted %v", n)
	}
}
