package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestWhoTakesOverComparesViewsWithDocuments: entries that got lost or are wrong while no ledger ran are as the documents
// say once one runs; those that are right are left alone.
func TestWhoTakesOverComparesViewsWithDocuments(t *testing.T) {
	w := newWorld(t)
	other := events.Ref{Harness: "h1", Session: "s2"}
	t.Run("before", func(t *testing.T) {
		before := *w
		before.t = t
		before.run(Default())
		before.open(ref)
		before.open(other)
		before.say(other, events.TurnCompleted{Turn: "t1"})
		st := before.document(other, w.seq[other])
		before.blocker(st, "p1", session.Withdrawn)
		before.blocker(before.document(ref, w.seq[ref]), "p1", session.Awaiting)
	})
	doc, rev, err := loadDoc(t.Context(), w.bus, other)
	if err != nil {
		t.Fatal(err)
	}
	bogus, err := json.Marshal(session.Blocker{Harness: "h1", Session: "s2", Root: "s2", Prompt: "p1", Status: session.Awaiting})
	if err != nil {
		t.Fatal(err)
	}
	lost, lostRev, err := loadDoc(t.Context(), w.bus, ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []bus.View{
		{Key: doc.BlockerKey("p1"), Value: bogus, GuardKey: events.SessionKey(other), GuardRev: rev},
		{Key: events.WorkKey(other), Value: []byte(`{"harness":"h1","session":"s2","epoch":1,"owned":true}`), GuardKey: events.SessionKey(other), GuardRev: rev},
		{Key: lost.BlockerKey("p1"), GuardKey: events.SessionKey(ref), GuardRev: lostRev},
	} {
		if _, err := w.bus.StoreView(t.Context(), v).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.run(Default())
	w.blocker(lost, "p1", session.Awaiting)
	w.blocker(doc, "p1", session.Withdrawn)
	w.gone(events.WorkKey(other))
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.compare(t.Context()); n != 0 || err != nil {
		t.Errorf("compared again: %d, %v", n, err)
	}
}

func TestWhatWasSettledMayHaveExpired(t *testing.T) {
	st := session.New(ref)
	at := time.Unix(1000, 0)
	st.Prompts = map[string]*session.Prompt{"p": {Status: session.Answered, UpdatedAt: at}}
	if agree(st, nil, time.Minute, at.Add(30*time.Second)) {
		t.Error("an entry that should still be there is not missed")
	}
	if !agree(st, nil, time.Minute, at.Add(time.Minute)) {
		t.Error("an entry that has expired is missed")
	}
}
