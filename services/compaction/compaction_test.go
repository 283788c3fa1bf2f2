package compaction

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestSent: messages are handed out one after the other, the first in the commit that accepts it (C4, C7).
func TestSent(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	for i := range 3 {
		if _, err := c.ask("send", message(r, fmt.Sprint("m", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		id := fmt.Sprint("m", i)
		s := c.until(r, id+" to be handed out", func(s *session.State) bool { return s.Pending.Turn != nil && s.Pending.Turn.Message == id })
		if len(s.Queue) != 3-i {
			t.Errorf("%s: the queue is %v", id, s.Queue)
		}
		turn := s.Pending.Turn.ID
		h.say("s", events.TurnStarted{Turn: turn, Cause: events.CauseMessage}, events.TurnCompleted{Turn: turn})
	}
}

// TestCompactedFirst: at the threshold a message waits for a compaction, and follows it (C4).
func TestCompactedFirst(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 800, nil)
	if _, err := c.ask("send", message(r, "m1")); err != nil {
		t.Fatal(err)
	}
	s := c.until(r, "a compaction", open)
	if s.Pending.Turn != nil || s.Commits != 2 {
		t.Errorf("%+v after %d commits", s.Pending.Turn, s.Commits)
	}
	h.say("s", events.CompactionStarted{Compaction: s.Compaction.ID})
	h.say("s", events.CompactionCompleted{Compaction: s.Compaction.ID})
	s = c.until(r, "the follow-up", func(s *session.State) bool { return s.Pending.Turn != nil })
	if s.Pending.Turn.Message != "m1" || s.Pending.Turn.Cause != events.CauseFollowUp {
		t.Errorf("%+v", s.Pending.Turn)
	}
}
