package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestASessionThatCannotBePurgedKeepsNoOther: a document of which the log knows nothing is told, the others go.
func TestASessionThatCannotBePurgedKeepsNoOther(t *testing.T) {
	w := newWorld(t)
	cfg := Default()
	cfg.Retain = time.Second
	l, err := New(w.bus, cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	w.open(ref)
	w.say(ref, events.SessionClosed{Reason: "finished"})
	for _, r := range []events.Ref{{Harness: "h1", Session: "a"}, ref, {Harness: "h1", Session: "z"}} {
		st := session.New(r)
		st.Epoch, st.Seq, st.Phase, st.Closed = 1, 1000, session.Closed, &session.Closing{Reason: "finished", At: time.Unix(0, 0), Seq: 1000}
		if r == ref {
			st.Seq = w.seq[ref]
		}
		doc, err := st.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.bus.Store(t.Context(), bus.State, events.SessionKey(r), doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := l.Retain(t.Context()); n != 1 || err == nil {
		t.Errorf("purged %d, %v; want one and what is wrong with the others", n, err)
	}
	w.gone(events.SessionKey(ref))
}

// TestWhatWasNeverOpenedIsPurgedToo: after as long as a closed session; its id is closed from then on.
func TestWhatWasNeverOpenedIsPurgedToo(t *testing.T) {
	w := newWorld(t)
	cfg := Default()
	cfg.Retain, cfg.RetainEvery = time.Second, 100*time.Millisecond
	w.run(cfg)
	w.say(ref, events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"})
	w.say(ref, events.ToolCompleted{Call: "c1"})
	if st := w.document(ref, w.seq[ref]); st.Opened() || st.Ignored.Count != 2 {
		t.Errorf("%+v", st)
	}
	w.gone(events.SessionKey(ref))
	left, err := w.bus.Read(t.Context(), ref, 0)
	if err != nil || len(left) != 1 || left[0].Writer != events.WriterLedger || left[0].Guard == 0 {
		t.Fatalf("%v: left %+v", err, left)
	}
	w.seq[ref] = left[0].Seq
	w.say(ref, events.SessionOpened{Incarnation: "1"})
	if st := w.document(ref, w.seq[ref]); st.Phase != session.Closed || st.Ignored.Last.Why != session.WhyClosed {
		t.Errorf("%s %+v", st.Phase, st.Ignored.Last)
	}
}

// TestObjectsGoWithTheirSession: what was stored beside the log for a session is removed when that is purged; what belongs
// to others, or to nobody, stays.
func TestObjectsGoWithTheirSession(t *testing.T) {
	w := newWorld(t)
	cfg := Default()
	cfg.Retain = time.Second
	l, err := New(w.bus, cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	other := events.Ref{Harness: ref.Harness, Session: "other"}
	var names []string
	for _, r := range []events.Ref{ref, other} {
		name, err := w.bus.PutObject(t.Context(), r, []byte("large"))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	w.open(ref)
	w.say(ref, events.SessionClosed{Reason: "finished"})
	st := session.New(ref)
	st.Epoch, st.Seq, st.Phase, st.Closed = 1, w.seq[ref], session.Closed, &session.Closing{Reason: "finished", At: time.Unix(0, 0), Seq: w.seq[ref]}
	doc, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.bus.Store(t.Context(), bus.State, events.SessionKey(ref), doc, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Retain(t.Context()); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	if err := w.bus.HasObject(t.Context(), names[0]); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("the purged session's object: %v", err)
	}
	if err := w.bus.HasObject(t.Context(), names[1]); err != nil {
		t.Errorf("another session's object: %v", err)
	}
}
