package compaction

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestIdlersForget: a session that waits for its place and that no walk finds is forgotten; one that is found again
// keeps its place.
func TestIdlersForget(t *testing.T) {
	cfg := Default()
	cfg.Walk = time.Second
	k := newIdlers(&Service{cfg: cfg})
	gone, found := events.Ref{Harness: "h", Session: "gone"}, events.Ref{Harness: "h", Session: "found"}
	now := time.Now()
	since := now.Add(-time.Hour)
	long := now.Add(-(idleForgotten + 1) * cfg.Walk)
	k.due[gone], k.due[found] = idler{since, long}, idler{since, long}
	k.swept = long
	k.record(session.New(found), since)
	if _, ok := k.due[gone]; ok || len(k.due) != 1 {
		t.Errorf("known: %v", k.due)
	}
	if r, ok := k.oldest(); !ok || r != found {
		t.Errorf("the oldest is %v", r)
	}
}

// checkHead compares a decision with the head of the state: the head names no later instant.
func checkHead(t story.T, s *session.State, d Decision, now time.Time) {
	h := s.Head()
	if len(d.Facts) > 0 && !h.DueWithin(0, events.Clock{Now: now}) ||
		!d.CheckAt.IsZero() && !h.DueWithin(0, events.Clock{Now: d.CheckAt}) {
		t.Fatalf("decided %+v at %s, and the head says %+v", d, now, h)
	}
}

// TestIdlersAreDecoded: a session that waits for its place, or has it, does not rest.
func TestIdlersAreDecoded(t *testing.T) {
	s := &Service{cfg: Default()}
	s.idle = newIdlers(s)
	due, under, none := events.Ref{Session: "due"}, events.Ref{Session: "under"}, events.Ref{Session: "none"}
	s.idle.due[due], s.idle.under[under] = idler{}, underWay{}
	for r, want := range map[events.Ref]bool{due: false, under: false, none: true} {
		if got := s.rests(r, nil, events.Clock{}); got != want {
			t.Errorf("%s rests: %v", r, got)
		}
	}
}
