package ledger

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestWhoTakesOverComparesViewsWithDocuments: entries that were lost or damaged while no ledger ran are restored when
// one starts; correct ones are not written.
func TestWhoTakesOverComparesViewsWithDocuments(t *testing.T) {
	w := newWorld(t)
	other, asked := events.Ref{Harness: "h1", Session: "s2"}, events.Ref{Harness: "h1", Session: "s3"}
	t.Run("before", func(t *testing.T) {
		before := *w
		before.t = t
		before.run(Default())
		before.open(ref)
		before.open(other)
		before.open(asked)
		before.append(other, events.TurnCompleted{Turn: "t1"})
		before.appendAs(asked, events.WriterLedger, events.PersonSource("ada"),
			events.PromptDismissed{Prompt: "p1", By: "ada"},
			events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
		st := before.document(other, w.seq[other])
		before.blocker(st, "p1", session.Withdrawn)
		before.blocker(before.document(ref, w.seq[ref]), "p1", session.Awaiting)
		before.await(events.WorkKey(asked), func(e kv.Entry) bool {
			return strings.Contains(string(e.Value), `"stop"`)
		})
	})
	doc, rev, err := loadDoc(t.Context(), w.bus.KV, other)
	if err != nil {
		t.Fatal(err)
	}
	bogus, err := json.Marshal(session.Blocker{Harness: "h1", Session: "s2", Root: "s2", Prompt: "p1",
		Status: session.Awaiting})
	if err != nil {
		t.Fatal(err)
	}
	lost, lostRev, err := loadDoc(t.Context(), w.bus.KV, ref)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopRev, err := loadDoc(t.Context(), w.bus.KV, asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []kv.View{
		{Key: doc.BlockerKey("p1"), Value: bogus, GuardKey: events.SessionKey(other), GuardRev: rev},
		{Key: events.WorkKey(other), Value: []byte(`{"harness":"h1","session":"s2","epoch":1,"owned":true}`),
			GuardKey: events.SessionKey(other), GuardRev: rev},
		{Key: lost.BlockerKey("p1"), GuardKey: events.SessionKey(ref), GuardRev: lostRev},
		{Key: stop.BlockerKey("p1"), GuardKey: events.SessionKey(asked), GuardRev: stopRev},
		{Key: events.WorkKey(asked), GuardKey: events.SessionKey(asked), GuardRev: stopRev},
	} {
		if _, err := w.bus.KV.StoreView(t.Context(), v).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.run(Default())
	w.blocker(lost, "p1", session.Awaiting)
	w.blocker(doc, "p1", session.Withdrawn)
	w.gone(events.WorkKey(other))
	w.await(events.WorkKey(asked), func(e kv.Entry) bool { return strings.Contains(string(e.Value), `"stop"`) })
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.compare(t.Context()); n != 0 || err != nil {
		t.Errorf("compared again: %d, %v", n, err)
	}
}

// TestEntriesAreRemovedWithoutDocumentAndLog: an entry stays while its session has a document, which may have been
// stored since the listing, or a log, from which the survey makes the document.
func TestEntriesAreRemovedWithoutDocumentAndLog(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	st, rev, err := loadDoc(t.Context(), w.bus.KV, ref)
	if err != nil {
		t.Fatal(err)
	}
	absent := events.WorkKey(events.Ref{Harness: "h1", Session: "absent"})
	if _, err := w.bus.KV.Store(t.Context(), kv.State, absent, []byte(`{"harness":"h1","session":"absent"}`),
		0); err != nil {
		t.Fatal(err)
	}
	have := map[events.Ref]map[string]shown{ref: {st.BlockerKey("p1"): {}}}
	if n, err := l.removeOrphans(t.Context(), have, nil); n != 0 || err != nil || w.load(st.BlockerKey("p1")) == nil {
		t.Errorf("beside a document that is not listed: %d removed, %v", n, err)
	}
	if err := w.bus.KV.Delete(t.Context(), kv.State, events.SessionKey(ref), rev); err != nil {
		t.Fatal(err)
	}
	if n, err := l.compare(t.Context()); n != 1 || err != nil {
		t.Errorf("compared: %d, %v", n, err)
	}
	if w.load(st.BlockerKey("p1")) == nil || w.load(absent) != nil {
		t.Errorf("with a log: %s; without: %s", w.load(st.BlockerKey("p1")), w.load(absent))
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

// TestAgree lists entries that contradict the document.
func TestAgree(t *testing.T) {
	st := session.New(ref)
	st.Epoch, st.Owned = 2, true
	st.Prompts = map[string]*session.Prompt{"p": {Status: session.Awaiting}}
	st.Pending.Stop = &session.PendingStop{Turn: "t1"}
	blocker, work := st.BlockerKey("p"), events.WorkKey(ref)
	waits := shown{Prompt: "p", Status: session.Awaiting, Owned: true}
	for name, x := range map[string]struct {
		have map[string]shown
		want bool
	}{
		"as it says":             {map[string]shown{blocker: waits, work: {Epoch: 2, Owned: true}}, true},
		"work is missing":        {map[string]shown{blocker: waits}, false},
		"work of another epoch":  {map[string]shown{blocker: waits, work: {Epoch: 1, Owned: true}}, false},
		"work without a session": {map[string]shown{blocker: waits, work: {Epoch: 2}}, false},
		"a prompt is missing":    {map[string]shown{work: {Epoch: 2, Owned: true}}, false},
		"a prompt is settled": {map[string]shown{blocker: {Prompt: "p", Status: session.Answered, Owned: true},
			work: {Epoch: 2, Owned: true}}, false},
		"a prompt of no session": {map[string]shown{blocker: {Prompt: "p", Status: session.Awaiting},
			work: {Epoch: 2, Owned: true}}, false},
		"another prompt waits": {map[string]shown{blocker: waits,
			st.BlockerKey("q"): {Prompt: "q", Status: session.Awaiting, Owned: true}, work: {Epoch: 2, Owned: true}},
			false},
		"another prompt is closed": {map[string]shown{blocker: waits,
			st.BlockerKey("q"): {Prompt: "q", Status: session.Answered, Owned: true}, work: {Epoch: 2, Owned: true}},
			true},
	} {
		if got := agree(st, x.have, time.Minute, time.Unix(1000, 0)); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	st.Pending.Stop = nil
	if agree(st, map[string]shown{blocker: waits, work: {Epoch: 2, Owned: true}}, time.Minute, time.Unix(1000, 0)) {
		t.Error("a superfluous work entry is not noticed")
	}
}
