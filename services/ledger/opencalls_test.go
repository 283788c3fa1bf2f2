package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// appearing is how long commits of two sessions took until a watch of their documents showed them, alternating, so that
// a busy machine delays both.
type appearing struct {
	w    *world
	seen chan kv.Entry
	took map[events.Ref][]time.Duration
}

// watch begins to see the documents of the sessions.
func (w *world) watch(ctx context.Context, refs ...events.Ref) *appearing {
	a := &appearing{w: w, seen: make(chan kv.Entry, 1_000), took: map[events.Ref][]time.Duration{}}
	keys := make([]string, len(refs))
	for i, r := range refs {
		keys[i] = events.SessionKey(r)
	}
	go func() {
		// until the test ends
		_ = w.bus.KV.Watch(ctx, kv.State, keys, func(u kv.Update) error {
			if !u.Ready {
				a.seen <- u.Entry
			}
			return nil
		})
	}()
	return a
}

// commit appends facts, and measures until the document has them.
func (a *appearing) commit(r events.Ref, facts ...events.Fact) {
	a.w.t.Helper()
	began := time.Now()
	seq := a.w.append(r, facts...)
	late := time.After(patience)
	for {
		select {
		case e := <-a.seen:
			st, err := session.Decode(e.Value)
			if see(r, st, err).seq == seq {
				a.took[r] = append(a.took[r], time.Since(began))
				return
			}
		case <-late:
			a.w.t.Fatalf("%s: commit %d did not appear", r, seq)
		}
	}
}

// byReflection is how long encoding/json takes to write and to read a document once.
func byReflection(t *testing.T, st *session.State) time.Duration {
	t.Helper()
	began := time.Now()
	doc, err := json.Marshal(st)
	if err == nil {
		err = json.Unmarshal(doc, new(session.State))
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// TestACommitAppearsBesideManyOpenCalls: a commit of a session with the greatest number of open calls took 62 ms to
// appear, a hundred times as long as with one open call. It takes less than 20 times as long. The difference is less
// than the time in which encoding/json writes and reads the document once, a measure of the machine in the same run.
// The shortest time of many counts: beside other tests most of them contain the work of others.
func TestACommitAppearsBesideManyOpenCalls(t *testing.T) {
	const calls, rounds, ratioMax = 999, 40, 20
	w := newWorld(t)
	few, many := events.Ref{Harness: "h1", Session: "few"}, events.Ref{Harness: "h1", Session: "many"}
	w.run(Default())
	a := w.watch(t.Context(), few, many)
	for r, n := range map[events.Ref]int{few: 1, many: calls} {
		facts := []events.Fact{events.SessionOpened{Incarnation: "1"},
			events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
		for i := range n {
			facts = append(facts, events.ToolStarted{Call: fmt.Sprintf("call_%024d", i), Turn: "t", Name: "bash",
				Title: "go test ./..."})
		}
		a.commit(r, facts...)
	}
	st, _, err := loadDoc(t.Context(), w.bus.KV, many)
	if err != nil {
		t.Fatal(err)
	}
	natstest.RetryStalled(t, 100*time.Millisecond, func() error {
		clear(a.took)
		var machines []time.Duration
		for i := range rounds {
			call := fmt.Sprintf("more_%024d", i)
			for _, r := range []events.Ref{few, many} {
				a.commit(r, events.ToolStarted{Call: call, Turn: "t", Name: "bash"})
				a.commit(r, events.ToolCompleted{Call: call})
			}
			machines = append(machines, byReflection(t, st))
		}
		of, with, machine := slices.Min(a.took[few]), slices.Min(a.took[many]), slices.Min(machines)
		t.Logf("at least %s with 1 call, %s with %d; encoding/json takes %s", of, with, calls, machine)
		if with > ratioMax*of || with-of > machine {
			return fmt.Errorf("a commit takes %s with 1 call, %s with %d; encoding/json takes %s", of, with, calls,
				machine)
		}
		return nil
	})
}
