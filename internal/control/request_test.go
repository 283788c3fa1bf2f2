package control

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestExecuteLosesRaces: a request is decided again, on the new state, each time that another process wrote first.
// After RequestRacesMax lost races it is refused with 503 and a reason, and nothing is appended.
func TestExecuteLosesRaces(t *testing.T) {
	w := newWorld(t)
	l, err := New(
		w.b,
		Config{
			Service: "test",
			Writer:  events.WriterRetry,
			Decide: func(context.Context, *session.State, events.Clock, session.Source) (Decision, error) {
				return Decision{}, nil
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, first := range map[string]int{"often": RequestRacesMax - 1, "too-often": RequestRacesMax} {
		s := w.open(name)
		w.store(s)
		checks := 0
		decide := func(now *session.State, _ session.Source, _ time.Time) (session.Decision, error) {
			if checks++; now.Seq != s.Seq {
				t.Errorf("%s: decided on %d, the last commit is %d", name, now.Seq, s.Seq)
			}
			if checks <= first {
				s = w.append(s, events.UsageReported{Turn: "t1", Model: "m"})
			}
			return session.Decision{
				Facts: []events.Fact{events.TurnRequested{Turn: "t2", Cause: events.CauseRetry}},
			}, nil
		}
		d, err := l.Execute(w.ctx, s.Ref(), "ada", nil, decide)
		refusal, _ := errors.AsType[*events.Refusal](err)
		switch after := w.state(name); {
		case first < RequestRacesMax && (err != nil || d.Seq != after.Seq || after.Pending.Turn == nil ||
			after.Pending.Turn.By != "ada"):
			t.Errorf("%s: %d, %v: %+v", name, d.Seq, err, after.Pending.Turn)
		case first == RequestRacesMax && (refusal == nil || refusal.Code != http.StatusServiceUnavailable ||
			!strings.Contains(string(refusal.Body()), `"reason":`) || after.Seq != s.Seq):
			t.Errorf("%s: %v, the log ends at %d, want 503 with a reason, and %d", name, err, after.Seq, s.Seq)
		}
	}
}
