package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// walker is a loop that records which sessions it decides on.
type walker struct {
	*world
	l       *Loop
	mu      sync.Mutex
	decided map[string]int
	err     error // of each decision
}

func newWalker(t *testing.T, cfg Config) *walker {
	w := &walker{world: newWorld(t), decided: map[string]int{}}
	cfg.Service, cfg.Writer = "reconciler", events.WriterReconciler
	cfg.Decide = func(_ context.Context, s *session.State, _ events.Clock, _ session.Source) (Decision, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decided[s.Session]++
		return Decision{}, w.err
	}
	l, err := New(w.b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.l = l
	return w
}

// walks walks over what has changed, and compares the sessions that it decides on.
func (w *walker) walks(after string, want ...string) {
	w.t.Helper()
	clear(w.decided)
	if err := w.l.walkChanges(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(w.decided)); !slices.Equal(got, want) {
		w.t.Errorf("%s: decided on %q, want %q", after, got, want)
	}
	if w.err == nil && slices.ContainsFunc(slices.Collect(maps.Values(w.decided)), func(n int) bool { return n > 1 }) {
		w.t.Errorf("%s: decided twice in one walk: %v", after, w.decided)
	}
}

// silent stores a session that is found silent at an instant: the head names it.
func (w *walker) silent(name string, now, at time.Time) {
	w.t.Helper()
	s := w.state(name)
	if s.Seq == 0 {
		s = w.open(name)
	}
	s.UpdatedAt = at.Add(-s.Policy.StallAfter())
	if !at.After(now) {
		w.t.Fatal("the instant has passed")
	}
	w.store(s)
}

// asking stores a session that waits for a person: its head names no instant.
func (w *walker) asking(name string) {
	w.t.Helper()
	s := w.open(name)
	s.Prompts = map[string]*session.Prompt{"p": {Status: session.Awaiting, Blocking: true, Epoch: 1}}
	w.store(s)
}

// A walk over what has changed decides on the sessions that a walk over all documents decides on: on the changed ones,
// and of the others on those that are due, or whose reason to rest is gone. It reads no other document.
func TestWalkOverChanges(t *testing.T) {
	// sessions whose owner is gone
	var lost sync.Map
	w := newWalker(t, Config{
		Rests: func(r events.Ref, _ *session.Head, _ events.Clock) bool {
			_, gone := lost.Load(r.Session)
			return !gone
		},
		Depends: func(h *session.Head) bool { return h.Owned },
	})
	clock, err := w.b.Clock.Read(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.silent("later", clock.Now, clock.Now.Add(time.Hour))
	w.silent("soon", clock.Now, clock.Now.Add(Horizon/2))
	lost.Store("lost", true)
	w.asking("lost")
	w.asking("owned")
	w.walks("the first walk", "lost", "soon")
	w.walks("nothing has changed", "lost", "soon")
	lost.Delete("lost")
	w.walks("its owner is back", "soon")
	w.silent("soon", clock.Now, clock.Now.Add(time.Hour))
	w.walks("one changed, and rests", []string{}...)
	lost.Store("lost", true)
	w.walks("the owner of an unchanged one is gone again", "lost")
	lost.Store("owned", true)
	w.walks("the owner of an unchanged one is gone", "lost", "owned")
	lost.Delete("owned")
	w.silent("new", clock.Now, clock.Now.Add(Horizon/2))
	w.walks("one is new", "lost", "new")
	e, err := w.b.KV.Load(w.ctx, kv.State, events.SessionKey(ref("lost")))
	if err == nil {
		err = w.b.KV.Delete(w.ctx, kv.State, e.Key, e.Rev)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.walks("one is deleted", "new")
	if got := w.l.Suspects(); len(got) > 0 {
		t.Errorf("suspects %v", got)
	}
}

// A document that was not due when a walk read it is found when its instant comes near. One that a service has to check
// whatever the clock says is found by each walk, and so is one that a service does not let rest.
func TestWalkFindsAnUnchangedDocumentThatIsDue(t *testing.T) {
	never := func(*session.Head) bool { return false }
	w := newWalker(t, Config{Rests: yes, RestsUnchanged: yes, Depends: never})
	clock, err := w.b.Clock.Read(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.silent("s", clock.Now, clock.Now.Add(Horizon+2*time.Second))
	w.walks("not due")
	natstest.Until(t, "the instant is near", func() bool {
		clear(w.decided)
		if err := w.l.walkChanges(w.ctx); err != nil {
			t.Fatal(err)
		}
		return w.decided["s"] == 1
	})

	w = newWalker(t, Config{Rests: yes, Depends: never})
	s := w.open("failed")
	headed["failed"].change(s, clock.Now)
	w.store(s)
	w.walks("the first walk", "failed")
	w.walks("it is still due", "failed")

	w = newWalker(t, Config{Rests: no, Depends: never})
	w.asking("s")
	w.walks("the first walk", "s")
	w.walks("it still does not rest", "s")
}

// Each walk tries a session again that a service could not decide on, also if the service would let the unchanged
// document rest.
func TestWalkTriesAgainWhatFailed(t *testing.T) {
	w := newWalker(t, Config{Rests: no, RestsUnchanged: yes})
	w.err = errors.New("no")
	w.store(w.open("s"))
	w.walks("the first walk", "s")
	w.walks("it failed", "s")
	w.mu.Lock()
	w.err = nil
	w.mu.Unlock()
	w.walks("it does not fail any more", "s")
	w.walks("it has been decided on")

	w = newWalker(t, Config{Rests: yes, Depends: func(*session.Head) bool { return false }})
	w.put("damaged", []byte(`{"v":`))
	for range 2 {
		w.l.succeeded(ref("damaged"))
		w.walks("a document is damaged")
		if got := w.l.Suspects(); len(got) != 1 || got[0].Session != "damaged" {
			t.Errorf("suspects %v, want the damaged one", got)
		}
	}
}

// A walk that would load many unchanged documents becomes a walk over all of them, and so does each one after
// changesMax others, and one that was requested.
func TestWalkOverAllInPlaceOfChanges(t *testing.T) {
	all := 0
	w := newWalker(t, Config{Rests: no, WalkBy: func(context.Context) error { all++; return nil }})
	next := func(after string, want int) {
		t.Helper()
		all = 0
		if err := w.l.nextWalk(w.ctx); err != nil {
			t.Fatal(err)
		}
		if all != want {
			t.Errorf("%s: %d walks over all documents, want %d", after, all, want)
		}
	}
	w.l.hurry.Store(true)
	next("a walk was requested", 1)
	w.l.hurry.Store(false)
	next("none was requested", 0)
	w.l.sinceAll = changesMax
	next("there were many others", 1)
	if w.l.sinceAll != 0 || w.l.changes.rev != 0 {
		t.Errorf("after it %d others, and place %d", w.l.sinceAll, w.l.changes.rev)
	}
	for i := range loadsMax + 1 {
		w.l.changes.heads[ref(fmt.Sprint("s", i))] = seen{bad: true}
	}
	next("many documents", 1)
}
