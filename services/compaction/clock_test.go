package compaction

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestStepsOfTheBrokersClock: a failed compaction is requested again as long after its failure as without a step of the
// broker's clock.
func TestStepsOfTheBrokersClock(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := events.Ref{Harness: "h", Session: "s"}
	s := session.New(r)
	for i, f := range []events.Fact{
		events.SessionOpened{Incarnation: "1"},
		events.CompactionRequested{Compaction: "c", Reason: events.CompactManual, Used: 90, Limit: 100,
			FollowUp: events.FollowContinue},
		events.CompactionStarted{Compaction: "c"},
		events.CompactionFailed{Compaction: "c", Error: events.Failure{Kind: failure.RateLimit, Text: "later"}},
	} {
		c := events.Commit{Ref: r, Writer: events.WriterHarness, Seq: uint64(i + 1), Guard: uint64(i), Guarded: true,
			At: at}
		if f.Kind() == (events.CompactionRequested{}).Kind() {
			c.Writer = events.WriterCompaction
		}
		c.Events = []events.Event{events.New(string(f.Kind()), events.HarnessSource("h", "1"), r, 1, at, f)}
		s.Fold(&c)
	}
	if s.LastCompaction == nil || !s.CompactAgain() {
		t.Fatalf("%+v, ignored %+v", s.LastCompaction, s.Ignored)
	}
	later := delay(s.LastCompaction.Failures)
	for _, by := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour, 5 * time.Second, -5 * time.Second} {
		in := Input{Steps: events.Steps{{Seq: s.Seq, ByMS: by.Milliseconds(), At: at.Add(by)}}}
		in.Now = at.Add(by + later - time.Millisecond)
		if d := Decide(s, in); len(d.Facts) != 0 || !d.CheckAt.Equal(at.Add(by+later)) {
			t.Errorf("a step of %s: too early: %+v", by, d)
		}
		in.Now = at.Add(by + later)
		if d := Decide(s, in); len(d.Facts) == 0 {
			t.Errorf("a step of %s: not requested: %+v", by, d)
		}
	}
}
