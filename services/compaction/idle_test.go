package compaction

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/natstest"
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

// TestIdlersRecordTheEnd: an idle compaction has its place as long as it is open. Its end is noticed when the session
// is decided, and where it is not, by the next check.
func TestIdlersRecordTheEnd(t *testing.T) {
	for name, x := range map[string]struct {
		is   *session.Compaction
		kept bool
	}{
		"requested":  {&session.Compaction{ID: "k1", State: session.CompactionRequested}, true},
		"running":    {&session.Compaction{ID: "k1", State: session.CompactionRunning}, true},
		"another is": {&session.Compaction{ID: "k2", State: session.CompactionRunning}, false},
		"none is":    {nil, false},
	} {
		k := newIdlers(&Service{cfg: Default()})
		st := session.New(events.Ref{Harness: "h", Session: "s"})
		st.Compaction = x.is
		k.under[st.Ref()] = underWay{id: "k1", since: time.Now()}
		if k.record(st, time.Time{}); (len(k.under) > 0) != x.kept {
			t.Errorf("%s: %v", name, k.under)
		}
	}
	c := start(t)
	s, err := New(c.b, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	r := c.harness("h").open("s", 0, nil)
	natstest.Until(t, "the document", func() bool {
		_, err := s.loop.Load(c.ctx, r)
		return err == nil
	})
	s.idle.under[r] = underWay{id: "k1", since: time.Now()}
	if s.idle.check(c.ctx); len(s.idle.under) > 0 {
		t.Errorf("after the check: %v", s.idle.under)
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
