package events_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func step(seq uint64, by time.Duration, at time.Time) events.Step {
	return events.Step{Seq: seq, ByMS: by.Milliseconds(), At: at}
}

// TestSince: an instant moves with every step after the commit that set it, and with no other step.
func TestSince(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := events.Steps{step(10, -2*time.Hour, at), step(20, 5*time.Second, at)}
	for seq, want := range map[uint64]time.Duration{5: 5*time.Second - 2*time.Hour, 10: 5*time.Second - 2*time.Hour,
		11: 5 * time.Second, 20: 5 * time.Second, 21: 0} {
		if got := s.Since(at, seq).Sub(at); got != want {
			t.Errorf("set in commit %d: moved by %s, want %s", seq, got, want)
		}
	}
	if !s.Since(time.Time{}, 1).IsZero() {
		t.Error("no instant became one")
	}
	c := events.Clock{Now: at.Add(-2 * time.Hour).Add(5 * time.Second), Steps: s}
	if !c.Passed(at, 5) || c.Passed(at.Add(1), 5) || c.Passed(at, 11) {
		t.Error("passed too early or too late")
	}
}

// TestEarliest: no commit's instant is earlier than the earliest.
func TestEarliest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		at := time.Unix(1_000_000, 0)
		var s events.Steps
		for i := range rapid.IntRange(0, 5).Draw(rt, "steps") {
			s = append(
				s,
				step(uint64(i)*10+10, time.Duration(rapid.IntRange(-100, 100).Draw(rt, "by"))*time.Second, at),
			)
		}
		least := at.Add(1_000 * time.Second)
		for seq := uint64(1); seq < 70; seq++ {
			if got := s.Since(at, seq); got.Before(least) {
				least = got
			}
		}
		if got := s.Earliest(at); !got.Equal(least) {
			rt.Fatalf("earliest %s, want %s", got.Sub(at), least.Sub(at))
		}
	})
}

// TestMerge: a step that two processes noticed is kept once, two steps are both kept, and the newest are kept above the
// limit.
func TestMerge(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mine := events.Steps{step(10, -2*time.Hour, at)}
	for name, c := range map[string]struct {
		other events.Step
		want  int
	}{
		"the same":                        {step(10, -2*time.Hour+20*time.Millisecond, at), 1},
		"noticed much later":              {step(10, -2*time.Hour, at.Add(time.Hour)), 1},
		"noticed at once, placed apart":   {step(12, -2*time.Hour, at.Add(time.Second)), 1},
		"another jump at the same place":  {step(10, 2*time.Hour, at), 2},
		"the same jump, later":            {step(12, -2*time.Hour, at.Add(time.Hour)), 2},
		"another one before, placed last": {step(5, time.Hour, at.Add(-time.Hour)), 2},
	} {
		got := mine.Merge(events.Steps{c.other})
		if len(got) != c.want || !slices.IsSortedFunc(got, func(a,
			b events.Step) int {
			return int(a.Seq) - int(b.Seq)
		}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for i := range 100 {
		mine = mine.Merge(events.Steps{step(uint64(100+i), time.Hour, at.Add(time.Duration(i)*time.Minute))})
	}
	if len(mine) != 64 || mine[63].Seq != 199 {
		t.Errorf("%d are remembered, the last of %d", len(mine), mine[len(mine)-1].Seq)
	}
}
