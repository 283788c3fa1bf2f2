package ledger

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
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
	w.during(cfg, func() {
		w.say(ref, events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"})
		w.say(ref, events.ToolCompleted{Call: "c1"})
		if st := w.document(ref, w.seq[ref]); st.Opened() || st.Ignored.Count != 2 {
			t.Errorf("%+v", st)
		}
	})
	cfg.Retain, cfg.RetainEvery = time.Second, 100*time.Millisecond
	w.during(cfg, func() { w.gone(events.SessionKey(ref)) })
	left, err := w.bus.Read(t.Context(), ref, 0)
	if err != nil || len(left) != 1 || left[0].Writer != events.WriterLedger || left[0].Guard == 0 {
		t.Fatalf("%v: left %+v", err, left)
	}
	w.seq[ref] = left[0].Seq
	w.run(Default())
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

// TestWhatRetentionLeavesAlone: what has not been closed for long enough, unless the log is nearly full; and what is open,
// or was written to a moment ago and may still be opened, even then.
func TestWhatRetentionLeavesAlone(t *testing.T) {
	w := &world{t: t, seq: map[events.Ref]uint64{}}
	w.bus = natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.LogBytesMax = 256 << 10 })
	cfg := Default()
	cfg.Retain = time.Hour
	l, err := New(w.bus, cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	now, err := w.bus.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sessions := map[string]struct {
		born, closed bool
		ago          time.Duration // it was closed, or last written to
		left, full   string        // what is left of it, and in a nearly full log
	}{
		"running":       {true, false, 2 * time.Hour, "", ""},
		"closed-before": {true, true, cfg.Retain, "purged", ""},
		"closed-now":    {true, true, cfg.Retain - time.Minute, "", "purged"},
		"unborn-before": {false, false, cfg.Retain, "closed", ""},
		"unborn-late":   {false, false, unbornKeptMin, "", "closed"},
		"unborn-now":    {false, false, 0, "", ""},
	}
	for name, x := range sessions {
		r := events.Ref{Harness: "h1", Session: name}
		w.say(r, events.SessionOpened{Incarnation: "1"})
		w.say(r, events.ToolStarted{Call: "c", Turn: "t", Name: "bash"})
		st := session.New(r)
		st.Seq, st.UpdatedAt = w.seq[r], now.Add(-x.ago)
		if x.born {
			st.Epoch = 1
		}
		if x.closed {
			st.Phase, st.Closed = session.Closed, &session.Closing{Reason: "finished", At: st.UpdatedAt, Seq: st.Seq}
		}
		doc, err := st.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.bus.Store(t.Context(), bus.State, events.SessionKey(r), doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := l.Retain(t.Context()); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	for name, x := range sessions {
		if got := w.left(name); got != x.left {
			t.Errorf("%s: %q, want %q", name, got, x.left)
		}
	}
	other := events.Ref{Harness: "h2", Session: "large"}
	natstest.Until(t, "the log to be nearly full", func() bool {
		w.say(other, events.ToolFailed{Call: "c", Error: events.Failure{Kind: "odd", Text: strings.Repeat("x", 8<<10)}})
		full, err := w.bus.NearlyFull(t.Context())
		return full && err == nil
	})
	if n, err := l.Retain(t.Context()); n != 1 || err != nil {
		t.Errorf("purged %d, %v, of a nearly full log", n, err)
	}
	for name, x := range sessions {
		if got, want := w.left(name), cmp.Or(x.left, x.full); got != want {
			t.Errorf("%s in a nearly full log: %q, want %q", name, got, want)
		}
	}
}

// left says what retention has made of a session of two commits.
func (w *world) left(name string) string {
	w.t.Helper()
	r := events.Ref{Harness: "h1", Session: name}
	cs, err := w.bus.Read(w.t.Context(), r, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.bus.Load(w.t.Context(), bus.State, events.SessionKey(r))
	switch last := cs[len(cs)-1]; {
	case len(cs) == 1 && last.Seq == w.seq[r] && errors.Is(err, bus.ErrNotFound):
		return "purged"
	case len(cs) == 3 && last.Writer == events.WriterLedger && err == nil:
		return "closed"
	case len(cs) == 2 && err == nil:
		return ""
	}
	w.t.Fatalf("%s: left %d commits, document: %v", name, len(cs), err)
	return ""
}
