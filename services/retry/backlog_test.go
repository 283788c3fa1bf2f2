package retry

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAheadAfterAnOutage: after the broker came back, the first decision may be one for a later instant. Retries that
// come due before that instant are not overdue.
func TestAheadAfterAnOutage(t *testing.T) {
	server := natstest.Start(t)
	b := natstest.Bus(t, server)
	r, err := New(b, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	natstest.Restart(t, server)
	natstest.Until(t, "the connection to be restored", func() bool { return b.Reconnects() > 0 && b.Connected() })
	now, err := b.Clock.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ref, at := events.Ref{Harness: "h", Session: "s"}, now.Add(time.Hour)
	if _, err := r.decide(t.Context(), session.New(ref), events.Clock{Now: at}, nil); err != nil {
		t.Fatal(err)
	}
	if r.backlog.active.Before(now) || !r.backlog.active.Before(at) {
		t.Errorf("active since %s after the broker was back, when it was decided for an hour later",
			r.backlog.active.Sub(now))
	}
}

// TestPlaces: an overdue retry keeps its place, whether the loop asks at the present instant or ahead. A place is
// removed after a while (T14).
func TestPlaces(t *testing.T) {
	now, p := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), newBacklog()
	p.begin(now)
	due := now.Add(-time.Hour)
	session := func(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint(i)} }
	if at := p.place(session(0), due, now); !at.Equal(now) {
		t.Errorf("the first place is %s later", at.Sub(now))
	}
	const sessions = 3
	// Each session asks twice.
	for i := range sessions * 2 {
		n := 1 + i%sessions
		want := now.Add(time.Duration(n) * backlogEvery)
		for _, asked := range []time.Time{now, want} {
			if at := p.place(session(n), due, asked); !at.Equal(want) {
				t.Errorf("session %d, asked %s ahead: a place %s from now, want %s", n, asked.Sub(now), at.Sub(now),
					want.Sub(now))
			}
		}
	}
	if at := p.place(session(9), now.Add(-overdueMin), now); !at.Equal(now) {
		t.Errorf("a retry that was due a moment ago is requested %s later", at.Sub(now))
	}
	later := now.Add(2 * placeKept)
	p.place(session(sessions+1), due, later)
	if len(p.places) != 0 {
		t.Errorf("%d places were not removed", len(p.places))
	}
}

// TestPlacesAreBounded: without a free place, a retry waits for backlogLater. Places in the future are kept meanwhile.
func TestPlacesAreBounded(t *testing.T) {
	now, p := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), newBacklog()
	p.begin(now)
	due := now.Add(-time.Hour)
	session := func(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint(i)} }
	last := now
	// The first retry needs no place.
	for i := range backlogMax + 1 {
		last = p.place(session(i), due, now)
	}
	if want := now.Add(backlogMax * backlogEvery); !last.Equal(want) {
		t.Errorf("the last place is %s from now, want %s", last.Sub(now), want.Sub(now))
	}
	if at := p.place(session(-1), due, now); !at.Equal(now.Add(backlogLater)) {
		t.Errorf("beyond the last place: %s from now", at.Sub(now))
	}
	later := now.Add(placeKept + 10*time.Second)
	// The first call sweeps.
	for i := range 3 {
		if at := p.place(session(-1-i), due, later); !at.Equal(last.Add(time.Duration(1+i) * backlogEvery)) {
			t.Errorf("after old places were removed: %s from now", at.Sub(now))
		}
	}
	if at := p.place(session(backlogMax), due, later); !at.Equal(last) {
		t.Errorf("the last place has changed, %s from now", at.Sub(now))
	}
	if gone := backlogMax + 3 - len(p.places); gone < 900 || gone > 1000 {
		t.Errorf("%d places were removed, want those of ten seconds", gone)
	}
}
