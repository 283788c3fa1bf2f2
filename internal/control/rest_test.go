package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// resting returns a loop, and a function that reports whether the loop has decided on a session. rests is
// [Config.Rests].
func resting(w *world, rests func(events.Ref, *session.Head, events.Clock) bool) (*Loop, func(name string) bool) {
	w.t.Helper()
	var sessions sync.Map
	l, err := New(w.b, Config{Service: "reconciler", Writer: events.WriterReconciler, Rests: rests,
		Decide: func(_ context.Context, s *session.State, _ events.Clock, _ session.Source) (Decision, error) {
			sessions.Store(s.Session, true)
			return Decision{}, nil
		}})
	if err != nil {
		w.t.Fatal(err)
	}
	return l, func(name string) bool { _, ok := sessions.Load(name); return ok }
}

func yes(events.Ref, *session.Head, events.Clock) bool { return true }

// headed is sessions of each sort, by what their heads say.
var headed = map[string]struct {
	change        func(s *session.State, now time.Time)
	arrives, walk bool // whether it is decided on then
}{
	"silent in ten minutes": {func(s *session.State, now time.Time) {
		s.UpdatedAt = now
	}, false, false},
	"silent in half a minute": {func(s *session.State, now time.Time) {
		s.UpdatedAt = now.Add(-s.Policy.StallAfter() + Horizon/2)
	}, true, true},
	"asks a person until tomorrow": {func(s *session.State, now time.Time) {
		tomorrow := now.Add(24 * time.Hour)
		s.Prompts = map[string]*session.Prompt{
			"p": {Status: session.Awaiting, Blocking: true, Epoch: 1, Deadline: &tomorrow},
		}
	}, true, false},
	"asks a person": {func(s *session.State, _ time.Time) {
		s.Prompts = map[string]*session.Prompt{"p": {Status: session.Awaiting, Blocking: true, Epoch: 1}}
	}, false, false},
	"failed": {func(s *session.State, now time.Time) {
		s.Turn = nil
		s.LastTurn = &session.LastTurn{
			ID: "t1", Outcome: session.OutcomeFailed, At: now, Error: &events.Failure{Kind: "x"},
		}
	}, true, true},
	"folded by older rules": {func(s *session.State, now time.Time) {
		s.UpdatedAt, s.Rules = now.Add(-time.Hour), session.FoldRules-1
	}, false, false},
}

func no(events.Ref, *session.Head, events.Clock) bool { return false }

// TestSessionsThatRest: a document whose head has nothing due is not decoded, neither when it arrives nor in a walk,
// unless the service has to look for another reason. A session that needs a timer at the broker is decoded when its
// document arrives.
func TestSessionsThatRest(t *testing.T) {
	w := newWorld(t)
	now, err := w.b.Clock.Read(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string][]byte{}
	for name, c := range headed {
		s := w.open(name)
		c.change(s, now.Now)
		if docs[name], err = s.Encode(); err != nil {
			t.Fatal(err)
		}
		w.put(name, docs[name])
	}
	for _, rests := range []func(events.Ref, *session.Head, events.Clock) bool{yes, no, nil} {
		l, decided := resting(w, rests)
		if err := l.Walk(w.ctx); err != nil {
			t.Fatal(err)
		}
		always := rests == nil || !rests(events.Ref{}, nil, now)
		for name, c := range headed {
			key, outdated := events.SessionKey(ref(name)), name == "folded by older rules"
			if got := decided(name); got != (c.walk || always && !outdated) {
				t.Errorf("%s, always %v: decided on in a walk: %v", name, always, got)
			}
			if got := !l.done(key, docs[name], &now); got != (c.arrives || always && (rests == nil || !outdated)) {
				t.Errorf("%s, always %v: looked at when it arrives: %v", name, always, got)
			}
			if l.done(key, docs[name], nil) {
				t.Errorf("%s: not looked at although the clock cannot be read", name)
			}
		}
	}
}

// TestACheckEndsWithItsReason: a session that rests at a later commit has no wake of an earlier one.
func TestACheckEndsWithItsReason(t *testing.T) {
	w := newWorld(t)
	now, err := w.b.Clock.Read(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := w.open("s")
	s.UpdatedAt = now.Now
	doc, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	l, _ := resting(w, yes)
	l.queue.set(&check{ref: s.Ref(), seq: s.Seq - 1, at: now.Now.Add(time.Second)})
	l.suspects[s.Ref()] = request.Suspect{Ref: s.Ref(), Failures: 1}
	if !l.done(events.SessionKey(s.Ref()), doc, &now) || l.queue.checks.Len() > 0 || len(l.suspects) > 0 {
		t.Errorf("wakes %d, suspects %v", l.queue.checks.Len(), l.suspects)
	}
	l.own[s.Ref()] = own{seq: s.Seq + 1}
	l.queue.set(&check{ref: s.Ref(), seq: s.Seq, at: now.Now.Add(time.Second)})
	if !l.done(events.SessionKey(s.Ref()), doc, &now) || l.queue.checks.Len() != 1 {
		t.Errorf("a document from before this process's last commit: wakes %d", l.queue.checks.Len())
	}
}
