package retry

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// folded returns a session at an instant, with one commit of each group of facts.
func folded(at time.Time, commits ...[]events.Fact) *session.State {
	r := events.Ref{Harness: "h", Session: "s"}
	s := session.New(r)
	for i, facts := range commits {
		seq := uint64(i + 1)
		c := events.Commit{Ref: r, Writer: events.WriterHarness, Seq: seq, Guard: seq - 1, Guarded: true, At: at}
		for _, f := range facts {
			if f.Kind() == (events.RetryScheduled{}).Kind() {
				c.Writer = events.WriterRetry
			}
			c.Events = append(c.Events, events.New(string(f.Kind()), events.HarnessSource("h", "1"), r, 1, at, f))
		}
		s.Fold(&c)
	}
	return s
}

// TestStepsOfTheBrokersClock: a retry is due, and a turn has stalled, as long after their last commit as without a step
// of the broker's clock.
func TestStepsOfTheBrokersClock(t *testing.T) {
	const stall = 100 * time.Second
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	begun := []events.Fact{events.SessionOpened{Incarnation: "1",
		Policy: &events.PolicyPatch{StallAfterS: events.Set(int64(stall / time.Second))}},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
	why := events.Failure{Kind: failure.RateLimit, Text: "slow down", RetryAfterMS: stall.Milliseconds()}
	failed := folded(at, begun, []events.Fact{events.TurnFailed{Turn: "t", Error: why}})
	planned := Decide(failed, Input{Now: at})
	if len(planned.Facts) != 1 {
		t.Fatalf("decided %+v", planned)
	}
	for name, s := range map[string]*session.State{
		"a retry": folded(at, begun, []events.Fact{events.TurnFailed{Turn: "t", Error: why}}, planned.Facts),
		"a turn":  folded(at, begun),
	} {
		for _, by := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour, 5 * time.Second, -5 * time.Second} {
			in := Input{Steps: events.Steps{{Seq: s.Seq, ByMS: by.Milliseconds(), At: at.Add(by)}}}
			in.Now = at.Add(by + stall - time.Millisecond)
			if d := Decide(s, in); len(d.Facts) != 0 || !d.CheckAt.Equal(at.Add(by+stall)) {
				t.Errorf("%s, a step of %s: too early: %+v", name, by, d)
			}
			in.Now = at.Add(by + stall)
			if d := Decide(s, in); len(d.Facts) == 0 {
				t.Errorf("%s, a step of %s: not due: %+v", name, by, d)
			}
		}
	}
}
