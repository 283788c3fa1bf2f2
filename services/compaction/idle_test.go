package compaction

import (
	"testing"
	"time"

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
	k.note(session.New(found), since)
	if _, ok := k.due[gone]; ok || len(k.due) != 1 {
		t.Errorf("known: %v", k.due)
	}
	if r, ok := k.oldest(); !ok || r != found {
		t.Errorf("the oldest is %v", r)
	}
}
