package session_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestTrialIsTheFold checks on random histories that a trial says of each event what the fold of the whole commit says.
func TestTrialIsTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := session.New(storyRef)
		for _, c := range history(t, "") {
			before := string(encoded(t, s))
			trial := s.Try(*c)
			refused := 0
			for _, e := range c.Events {
				if trial.Add(e) != "" {
					refused++
				}
			}
			if string(encoded(t, s)) != before {
				t.Fatalf("%d: the trial changed the state", c.Seq)
			}
			ignored, parked := s.Ignored.Count, s.Parked
			s.Fold(c)
			// parked whole
			if c.Err != nil {
				parked++
			}
			got := trial.State()
			if n := s.Ignored.Count - ignored + s.Parked - parked; n != uint64(refused) {
				t.Fatalf("%d: the trial refused %d events, the fold %d", c.Seq, refused, n)
			}
			if got.Ignored.Count != s.Ignored.Count || len(got.Tools) != len(s.Tools) ||
				len(got.Queue) != len(s.Queue) || got.Seq != s.Seq {
				t.Fatalf("%d: the trial came to\n%s\nthe fold to\n%s", c.Seq, encoded(t, got), encoded(t, s))
			}
		}
	})
}

// TestTrialWeighsACommitOnce checks the limit that the fold applies to a commit as a whole: once a commit has opened
// something, what it closes makes no room for what it opens later.
func TestTrialWeighsACommitOnce(t *testing.T) {
	f := newFeeder(t)
	long := func(i int) events.Fact {
		return events.ToolStarted{Call: fmt.Sprintf("%s-%04d", strings.Repeat("c", 123), i),
			Name: strings.Repeat("n", 32), Title: strings.Repeat("t", 32)}
	}
	f.append(events.WriterHarness, many(session.OpenCallsMax, long)...)
	open := len(f.s.Tools)
	if open >= session.OpenCallsMax || f.s.Ignored.Last == nil || f.s.Ignored.Last.Why != session.WhyLimit {
		t.Fatalf("%d calls are open: the limit in bytes was not reached", open)
	}
	f.append(events.WriterHarness, events.ToolCompleted{Call: long(0).Subject()})
	facts := []events.Fact{long(5000), events.ToolCompleted{Call: long(1).Subject()}, long(5001),
		events.ToolCompleted{Call: "none"}}
	c := events.Commit{Ref: storyRef, Writer: events.WriterHarness, Seq: f.s.Seq + 1, Guard: f.s.Seq, Guarded: true,
		At: storyBegin}
	trial := f.s.Try(c)
	var why []string
	for i, fact := range facts {
		e := events.New(fmt.Sprint("t", i), events.HarnessSource(storyRef.Harness, "17"), storyRef, 1, storyBegin, fact)
		why = append(why, trial.Add(e))
		c.Events = append(c.Events, e)
	}
	if got, want := fmt.Sprint(why), fmt.Sprint([]string{"", "", session.WhyLimit, session.WhyUnknown}); got != want {
		t.Errorf("the trial says %s, want %s", got, want)
	}
	ignored := f.s.Ignored.Count
	f.s.Fold(&c)
	if f.s.Ignored.Count != ignored+2 || len(f.s.Tools) != open-1 {
		t.Errorf("the fold ignored %d, and %d calls are open", f.s.Ignored.Count-ignored, len(f.s.Tools))
	}
}

// TestTrialParks checks that a trial names what the fold would park.
func TestTrialParks(t *testing.T) {
	f := newFeeder(t)
	trial := f.s.Try(events.Commit{Ref: storyRef, Writer: events.WriterHarness, Seq: f.s.Seq + 1, Guard: f.s.Seq,
		Guarded: true})
	source := events.HarnessSource(storyRef.Harness, "17")
	out := events.New("e1", source, storyRef, 1, storyBegin, events.TurnInterrupted{Turn: "t1"})
	if why := trial.Add(out); why != session.ParkOutOfRole {
		t.Errorf("out of role: %q", why)
	}
	if why := trial.Add(events.Event{Kind: "turn.completed", Source: source, Epoch: 1}); why != session.ParkMalformed {
		t.Errorf("without a fact: %q", why)
	}
	if why := trial.Add(events.New("e2", source, storyRef, 1, storyBegin, events.ToolStarted{Call: "c1"})); why != "" {
		t.Errorf("a lawful fact after them: %q", why)
	}
}
