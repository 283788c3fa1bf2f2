package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// forge replaces a stored document by a changed one.
func (w *world) forge(r events.Ref, change func(*session.State)) {
	w.t.Helper()
	st, rev, err := loadDoc(w.t.Context(), w.bus.KV, r)
	if err != nil {
		w.t.Fatal(err)
	}
	change(st)
	doc, err := st.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.bus.KV.Store(w.t.Context(), kv.State, events.SessionKey(r), doc, rev); err != nil {
		w.t.Fatal(err)
	}
}

// settle stores the documents of all sessions as a rebuild does, and returns the ledger that did.
func (w *world) settle(cfg Config) *Ledger {
	w.t.Helper()
	l, err := New(w.bus, cfg, zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	for r := range w.seq {
		if _, _, err := l.rebuildSession(w.t.Context(), r); err != nil {
			w.t.Fatal(err)
		}
	}
	return l
}

// later returns an instant of the broker's clock, this much later.
func (w *world) later(d time.Duration) events.Clock {
	w.t.Helper()
	now, err := w.bus.Clock.Read(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	now.Now = now.Now.Add(d)
	return now
}

// TestASessionThatCannotBePurgedKeepsNoOther: documents without a log are reported, and the other sessions are purged.
func TestASessionThatCannotBePurgedKeepsNoOther(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.SessionClosed{Reason: "finished"})
	l := w.settle(Default())
	for _, name := range []string{"a", "z"} {
		w.forge(events.Ref{Harness: "h1", Session: name}, func(st *session.State) {
			st.Epoch, st.Seq, st.Phase, st.Closed = 1, 1000, session.Closed,
				&session.Closing{Reason: "finished", At: time.Unix(0, 0), Seq: 1000}
		})
	}
	if n, err := l.retainAt(t.Context(), w.later(Default().ClosedKeptFor), false); n != 1 || !errors.Is(err, errLost) {
		t.Errorf("purged %d, %v; want one and what is wrong with the others", n, err)
	}
	w.gone(events.SessionKey(ref))
}

// TestADocumentUnderAnotherKey: retention reports the document of a closed session under the key of another session,
// and does not purge by it.
func TestADocumentUnderAnotherKey(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.SessionClosed{Reason: "finished"})
	l := w.settle(Default())
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.SessionKey(ref))
	if err != nil {
		t.Fatal(err)
	}
	key := events.SessionKey(events.Ref{Harness: "h1", Session: "another"})
	if _, err := w.bus.KV.Store(t.Context(), kv.State, key, e.Value, 0); err != nil {
		t.Fatal(err)
	}
	if st, _, err := l.verified(t.Context(), key); st != nil || err == nil {
		t.Errorf("the document under another key may be purged: %v, %v", st, err)
	}
	if n, err := l.retainAt(t.Context(), w.later(Default().ClosedKeptFor), false); n != 1 || err == nil {
		t.Errorf("purged %d, %v; want one and what is wrong with the other", n, err)
	}
	w.gone(events.SessionKey(ref))
}

// TestAnOpenSessionIsNotPurged: retention folds the log before it purges or closes. A wrong
// document is rebuilt, and its session loses neither a commit nor an object.
func TestAnOpenSessionIsNotPurged(t *testing.T) {
	for name, lie := range map[string]func(*session.State){
		"closed": func(st *session.State) {
			st.Phase, st.Closed = session.Closed, &session.Closing{Reason: "finished", At: time.Unix(0, 0), Seq: st.Seq}
		},
		"never opened": func(st *session.State) {
			*st = session.State{V: st.V, Harness: st.Harness, Session: st.Session, Seq: st.Seq}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open(ref)
			object, err := w.bus.Objects.Put(t.Context(), ref, []byte("large"))
			if err != nil {
				t.Fatal(err)
			}
			l := w.settle(Default())
			want, _, err := loadDoc(t.Context(), w.bus.KV, ref)
			if err != nil {
				t.Fatal(err)
			}
			w.forge(ref, lie)
			for _, full := range []bool{false, true} {
				if n, err := l.retainAt(t.Context(), w.later(2*Default().ClosedKeptFor), full); n != 0 || err != nil {
					t.Errorf("purged %d, %v", n, err)
				}
			}
			if left, err := w.bus.Log.Read(t.Context(), ref, 0); err != nil || len(left) != 2 {
				t.Errorf("left %d commits of 2, %v", len(left), err)
			}
			if err := w.bus.Objects.Has(t.Context(), object); err != nil {
				t.Errorf("its object: %v", err)
			}
			if st, _, err := loadDoc(t.Context(), w.bus.KV, ref); err != nil || !reflect.DeepEqual(st, want) {
				t.Errorf("the document is %+v, %v; want it rebuilt", st, err)
			}
		})
	}
}

// TestAClosedSessionWhoseLogLostACommitIsNotPurged: the log lacks a commit of a closed session that its document has
// folded. The document and the rest of the log are the last copy, so retention reports the loss and removes nothing.
func TestAClosedSessionWhoseLogLostACommitIsNotPurged(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	object, err := w.bus.Objects.Put(t.Context(), ref, []byte("large"))
	if err != nil {
		t.Fatal(err)
	}
	lost := w.append(ref, events.TurnCompleted{Turn: "t1"})
	w.append(ref, events.SessionClosed{Reason: "finished"})
	l := w.settle(Default())
	doc := w.load(events.SessionKey(ref))
	if err := w.operator().DeleteMsg(w.bus.Cell().LogStream(), lost); err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true} {
		n, err := l.retainAt(t.Context(), w.later(2*Default().ClosedKeptFor), full)
		if x, ok := errors.AsType[*loss](err); n != 0 || !ok || x.missing != lost {
			t.Errorf("purged %d, %v; want nothing, and that commit %d is missing", n, err, lost)
		}
	}
	if left, err := w.bus.Log.Read(t.Context(), ref, 0); err != nil || len(left) != 3 {
		t.Errorf("left %d commits of 3, %v", len(left), err)
	}
	if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, doc) {
		t.Errorf("the document became %s", got)
	}
	if err := w.bus.Objects.Has(t.Context(), object); err != nil {
		t.Errorf("its object: %v", err)
	}
}

// TestWhatWasNeverOpenedIsPurgedToo: a session that was never opened is purged after the same time as a closed one; its
// id is closed from then on.
func TestWhatWasNeverOpenedIsPurgedToo(t *testing.T) {
	w := newWorld(t)
	cfg := Default()
	w.during(cfg, func() {
		w.append(ref, events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"})
		w.append(ref, events.ToolCompleted{Call: "c1"})
		if st := w.document(ref, w.seq[ref]); st.Opened() || st.Ignored.Count != 2 {
			t.Errorf("%+v", st)
		}
	})
	cfg.ClosedKeptFor, cfg.RetainEvery = time.Second, 100*time.Millisecond
	w.during(cfg, func() { w.gone(events.SessionKey(ref)) })
	left, err := w.bus.Log.Read(t.Context(), ref, 0)
	if err != nil || len(left) != 1 || left[0].Writer != events.WriterLedger || left[0].Guard == 0 {
		t.Fatalf("%v: left %+v", err, left)
	}
	w.seq[ref] = left[0].Seq
	w.run(Default())
	w.append(ref, events.SessionOpened{Incarnation: "1"})
	if st := w.document(ref, w.seq[ref]); st.Phase != session.Closed || st.Ignored.Last.Why != session.WhyClosed {
		t.Errorf("%s %+v", st.Phase, st.Ignored.Last)
	}
}

// TestObjectsGoWithTheirSession: the objects of a session are removed when it is purged; those of other sessions, or of
// none, stay.
func TestObjectsGoWithTheirSession(t *testing.T) {
	w := newWorld(t)
	other := events.Ref{Harness: ref.Harness, Session: "other"}
	var names []string
	for _, r := range []events.Ref{ref, other} {
		name, err := w.bus.Objects.Put(t.Context(), r, []byte("large"))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	w.open(ref)
	w.append(ref, events.SessionClosed{Reason: "finished"})
	l := w.settle(Default())
	if n, err := l.retainAt(t.Context(), w.later(Default().ClosedKeptFor), false); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	if err := w.bus.Objects.Has(t.Context(), names[0]); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("the purged session's object: %v", err)
	}
	if err := w.bus.Objects.Has(t.Context(), names[1]); err != nil {
		t.Errorf("another session's object: %v", err)
	}
}

// TestWhatRetentionLeavesAlone: a session that was closed recently is kept unless the log is nearly full; an open one,
// or one written to a moment ago that may still be opened, is kept even then.
func TestWhatRetentionLeavesAlone(t *testing.T) {
	w := newWorld(t)
	cfg := Default()
	cfg.ClosedKeptFor = time.Hour
	var names []string
	for _, kind := range []string{"running", "closed", "unborn"} {
		r := events.Ref{Harness: "h1", Session: kind}
		names = append(names, kind)
		if kind != "unborn" {
			w.append(r, events.SessionOpened{Incarnation: "1"})
		} else {
			w.append(r, events.ToolCompleted{Call: "c"})
		}
		if kind != "closed" {
			w.append(r, events.ToolStarted{Call: "c", Turn: "t", Name: "bash"})
		} else {
			w.append(r, events.SessionClosed{Reason: "finished"})
		}
	}
	l := w.settle(cfg)
	check := func(what string, after time.Duration, full bool, want map[string]string) {
		t.Helper()
		if _, err := l.retainAt(t.Context(), w.later(after), full); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, name := range names {
			if got := w.left(name); got != want[name] {
				t.Errorf("%s: %s: %q, want %q", what, name, got, want[name])
			}
		}
	}
	check("not long enough", cfg.ClosedKeptFor-time.Minute, false, nil)
	check("a nearly full log", unbornKeptMin/2, true, map[string]string{"closed": "purged"})
	check("a nearly full log, later", unbornKeptMin+time.Minute, true,
		map[string]string{"closed": "purged", "unborn": "closed"})
}

// TestRetentionOfANearlyFullLog: closed sessions are purged at once, but only when nine tenths of the log are used.
func TestRetentionOfANearlyFullLog(t *testing.T) {
	w := &world{t: t, seq: map[events.Ref]uint64{}}
	w.bus = natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.LogBytesMax = 256 << 10 })
	w.open(ref)
	w.append(ref, events.SessionClosed{Reason: "finished"})
	l := w.settle(Default())
	if n, err := l.Retain(t.Context()); n != 0 || err != nil {
		t.Errorf("purged %d, %v, of a log with room", n, err)
	}
	other := events.Ref{Harness: "h2", Session: "large"}
	natstest.Until(t, "the log to be nearly full", func() bool {
		w.append(other, events.ToolFailed{Call: "c", Error: events.Failure{Kind: "odd",
			Text: strings.Repeat("x", 8<<10)}})
		full, err := w.bus.Log.NearlyFull(t.Context())
		return full && err == nil
	})
	if n, err := l.Retain(t.Context()); n != 1 || err != nil {
		t.Errorf("purged %d, %v, of a nearly full log", n, err)
	}
}

// TestStraysDoNotFillTheLog: messages whose subjects name no session fill the log. They are parked, and removed when
// the log is nearly full; sessions keep what they have.
func TestStraysDoNotFillTheLog(t *testing.T) {
	w := &world{t: t, seq: map[events.Ref]uint64{}}
	w.server = natstest.Start(t)
	w.bus = natstest.Bus(t, w.server, func(c *bus.Config) { c.LogBytesMax = 512 << 10 })
	w.open(ref)
	l := w.settle(Default())
	js := w.operator()
	sent := 0
	for full := false; !full; {
		// the last one has many
		subject := fmt.Sprintf("hf.log.agent-1.a!%d.harness", min(sent, 10))
		if _, err := js.Publish(subject, []byte(strings.Repeat("x", 4<<10))); err != nil {
			t.Fatal(err)
		}
		sent++
		var err error
		if full, err = w.bus.Log.NearlyFull(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	used, most, err := w.bus.Log.Usage(t.Context())
	if err != nil || used > most/10 {
		t.Errorf("%d of %d bytes are used, %v", used, most, err)
	}
	if cs, err := w.bus.Log.Read(t.Context(), ref, 0); err != nil || len(cs) != int(w.seq[ref]) {
		t.Errorf("%d of %d commits of the session are left, %v", len(cs), w.seq[ref], err)
	}
	if n := len(stored(t, w.server.URL(), "HF_PARKED")); n != sent {
		t.Errorf("%d of %d are parked", n, sent)
	}
}

// TestRetentionAfterASetClock: a clock that is set forward purges no session early, and one that is set back purges
// none late. A step moves only the ends that were committed before it.
func TestRetentionAfterASetClock(t *testing.T) {
	kept, month := Default().ClosedKeptFor, 30*24*time.Hour
	l := &Ledger{cfg: Default()}
	st := &session.State{Epoch: 1, Closed: &session.Closing{At: at0, Seq: 10}}
	for name, c := range map[string]struct {
		seq   uint64 // the last commit before the step
		by    time.Duration
		after time.Duration // by the new clock, since the session was closed by the old one
		want  bool
	}{
		"set forward":                {20, month, kept + month - 1, false},
		"set forward, and kept":      {20, month, kept + month, true},
		"set back":                   {20, -month, kept - month - 1, false},
		"set back, and kept":         {20, -month, kept - month, true},
		"set forward before its end": {9, month, kept, true},
		"set back before its end":    {9, -month, kept - 1, false},
	} {
		now := events.Clock{Now: at0.Add(c.after), Steps: events.Steps{{Seq: c.seq, ByMS: c.by.Milliseconds()}}}
		if got := l.isDue(st, now, false); got != c.want {
			t.Errorf("%s: due %v, want %v", name, got, c.want)
		}
	}
}

// TestAnUnbornSessionAfterASetClock: a session that was never opened is closed no earlier after the clock was set
// forward.
func TestAnUnbornSessionAfterASetClock(t *testing.T) {
	w := newWorld(t)
	seq := w.append(ref, events.ToolCompleted{Call: "c"})
	l := w.settle(Default())
	const month = 30 * 24 * time.Hour
	for _, c := range []struct {
		more time.Duration
		want int
	}{{-time.Hour, 1}, {time.Hour, 2}} {
		now := w.later(Default().ClosedKeptFor + month + c.more)
		now.Steps = events.Steps{{Seq: seq, ByMS: month.Milliseconds()}}
		if _, err := l.retainAt(t.Context(), now, false); err != nil {
			t.Fatal(err)
		}
		if cs, err := w.bus.Log.Read(t.Context(), ref, 0); err != nil || len(cs) != c.want {
			t.Errorf("%s: the session has %d commits, %v, want %d", c.more, len(cs), err, c.want)
		}
	}
}

// TestRetentionKnowsTheStepsOfOthers: it learns the steps that the services have stored before its first pass.
func TestRetentionKnowsTheStepsOfOthers(t *testing.T) {
	w := newWorld(t)
	body, err := json.Marshal(events.Steps{{Seq: 1, ByMS: time.Hour.Milliseconds(), At: at0}})
	if err == nil {
		_, err = w.bus.KV.Store(t.Context(), kv.Leases, events.ClockKey(), body, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := w.ledger()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.retain(ctx) }()
	natstest.Until(t, "the steps to be known", func() bool { return len(w.later(0).Steps) == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// left returns what retention has left of a session of two commits.
func (w *world) left(name string) string {
	w.t.Helper()
	r := events.Ref{Harness: "h1", Session: name}
	cs, err := w.bus.Log.Read(w.t.Context(), r, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.bus.KV.Load(w.t.Context(), kv.State, events.SessionKey(r))
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

// TestAnEndWithoutAGuardIsAppendedAgain: a session whose last commit names no predecessor is not purged: the rest of it
// would look like the first commit of a new session. Its end is appended again, under a guard, and the next pass purges
// it.
func TestAnEndWithoutAGuardIsAppendedAgain(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	body, err := events.EncodeBatch([]events.Event{events.New("end", events.HarnessSource("h1", "1"), ref, 1, at0,
		events.SessionClosed{Reason: "finished", By: "ada"})})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := w.operator().Publish(w.bus.Cell().LogSubject(ref, events.WriterHarness), body)
	if err != nil {
		t.Fatal(err)
	}
	l := w.settle(Default())
	for _, want := range []int{4, 1} {
		if want == 1 {
			w.settle(Default())
		}
		if _, err := l.retainAt(t.Context(), w.later(2*Default().ClosedKeptFor), false); err != nil {
			t.Fatal(err)
		}
		left, err := w.bus.Log.Read(t.Context(), ref, 0)
		if err != nil || len(left) != want {
			t.Fatalf("left %d commits, %v; want %d", len(left), err, want)
		}
		if last := left[len(left)-1]; !last.Guarded || last.Guard != ack.Sequence ||
			last.Writer != events.WriterLedger {
			t.Errorf("the last commit: %+v", last)
		}
	}
	w.gone(events.SessionKey(ref))
}
