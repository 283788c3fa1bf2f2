package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// spoiling returns a ledger that does not run, whose nth request to the broker from now on fails, and whether that was
// sent.
func (w *world) spoiling(n int64, log zerolog.Logger) (l *Ledger, sent func() bool) {
	w.t.Helper()
	relay := natstest.NewRelay(w.t, w.server)
	b, err := bus.Open(w.t.Context(), bus.Config{URL: relay.URL, Name: w.t.Name()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	if l, err = New(b, Default(), log); err != nil {
		w.t.Fatal(err)
	}
	var asked atomic.Int64
	relay.Spoil(func(subject, _ string) bool {
		// a pull is repeated, and a reader that stays ends by itself
		switch {
		case strings.HasPrefix(subject, "$JS.API.CONSUMER.MSG.NEXT."), strings.HasPrefix(subject,
			"$JS.API.CONSUMER.DELETE."):
			return false
		}
		return asked.Add(1) == n
	})
	return l, func() bool { return asked.Load() >= n }
}

// damage makes a session's document one that cannot be read.
func (w *world) damage(r events.Ref) {
	w.t.Helper()
	e, err := w.bus.KV.Load(w.t.Context(), kv.State, events.SessionKey(r))
	if err == nil {
		_, err = w.bus.KV.Store(w.t.Context(), kv.State, e.Key, []byte("x"), e.Rev)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestARepairFailsWithItsRequests: each request of a repair can fail; the repair fails with it, and does not go on with
// what it does not know.
func TestARepairFailsWithItsRequests(t *testing.T) {
	w := newWorld(t)
	type repair struct {
		before func(l *Ledger, r events.Ref)
		do     func(ctx context.Context, l *Ledger, r events.Ref) error
	}
	mend := func(ctx context.Context, l *Ledger, r events.Ref) error { _, err := l.mend(ctx, r); return err }
	mendLost := func(ctx context.Context, l *Ledger, r events.Ref) error { _, err := l.mendLost(ctx, r); return err }
	noted := func(l *Ledger, r events.Ref) {
		if err := l.recordLoss(t.Context(), Lost{Ref: r, Known: w.seq[r], Last: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]repair{
		"a wrong document": {func(_ *Ledger, r events.Ref) {
			w.forge(r, func(st *session.State) { st.Title = "a lie" })
		}, mend},
		"a document ahead": {func(_ *Ledger, r events.Ref) { w.ahead(r, 1_000_000) }, mend},
		"a loss made good": {noted, mendLost},
		"an accepted loss": {noted,
			func(ctx context.Context, l *Ledger, r events.Ref) error { return l.forgetLoss(ctx, r) }},
		"a note that cannot be read": {func(_ *Ledger, r events.Ref) {
			if _, err := w.bus.KV.Store(t.Context(), kv.State, events.LostKey(r), []byte("x"), 0); err != nil {
				t.Fatal(err)
			}
		}, mendLost},
	} {
		t.Run(name, func(t *testing.T) {
			for n := int64(1); ; n++ {
				r := events.Ref{Harness: "h1", Session: w.bus.NewID()}
				w.open(r)
				x.before(w.settle(Default()), r)
				l, sent := w.spoiling(n, zerolog.Nop())
				err := x.do(t.Context(), l, r)
				if !sent() {
					if err != nil || n < 3 {
						t.Errorf("%d requests: %v", n-1, err)
					}
					return
				}
				if err == nil {
					t.Errorf("request %d failed, and the repair did not", n)
				}
			}
		})
	}
}

// TestADocumentIsNotReplacedWithoutItsNote: the note is the only copy of a document that is ahead of the log. While it
// cannot be stored, a mend and a rebuild fail, and leave the document as it was.
func TestADocumentIsNotReplacedWithoutItsNote(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.settle(Default())
	w.ahead(ref, 1_000_000)
	was := w.load(events.SessionKey(ref))
	relay := natstest.NewRelay(t, w.server)
	b, err := bus.Open(t.Context(), bus.Config{URL: relay.URL, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	l, err := New(b, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	relay.Spoil(func(subject, body string) bool {
		return strings.Contains(subject, events.LostKey(ref)) || strings.Contains(body, events.LostKey(ref))
	})
	if _, err := l.mend(t.Context(), ref); err == nil {
		t.Error("mended without a note")
	}
	if _, _, err := l.rebuildSession(t.Context(), ref); err == nil {
		t.Error("rebuilt without a note")
	}
	if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, was) || w.note(ref) != nil {
		t.Errorf("the document became %s, noted %+v", got, w.note(ref))
	}
}

// TestALargeDocumentStands: a note holds a document up to documentCopyMax bytes. A larger one is not replaced, and its
// note has no copy.
func TestALargeDocumentStands(t *testing.T) {
	shorter := &loss{ref: ref, known: 7, last: 1}
	document := func(size int) kv.Entry { return kv.Entry{Value: fmt.Appendf(nil, "%q", strings.Repeat("x", size-2))} }
	for name, c := range map[string]struct {
		size int
		of   *loss
		want bool
	}{
		"as large as a note can keep": {documentCopyMax, shorter, true},
		"larger":                      {documentCopyMax + 1, shorter, false},
		"without a log":               {2, &loss{ref: ref, known: 7}, false},
		"with a hole in the log":      {2, &loss{ref: ref, known: 7, last: 6, missing: 5}, false},
	} {
		if got := replaceable(document(c.size), c.of); got != c.want {
			t.Errorf("%s: replaceable %v, want %v", name, got, c.want)
		}
	}
	w := newWorld(t)
	for _, c := range []struct{ size, copied int }{{documentCopyMax + 1, 0}, {documentCopyMax, documentCopyMax}} {
		if err := w.ledger().keepDocument(t.Context(), document(c.size), shorter); err != nil {
			t.Fatal(err)
		}
		if note := w.note(ref); note == nil || note.Known != 7 || len(note.Document) != c.copied {
			t.Errorf("a document of %d bytes: noted %+v, want %d bytes of it", c.size, note, c.copied)
		}
	}
}

// TestANoteThatCannotBeWritten: nothing is stored in its place.
func TestANoteThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	note := Lost{Ref: ref, Known: 7, Last: 1, Document: json.RawMessage("no JSON")}
	if err := w.ledger().recordLoss(t.Context(), note); err == nil || w.load(events.LostKey(ref)) != nil {
		t.Errorf("%v, stored %q", err, w.load(events.LostKey(ref)))
	}
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return true
		}
	}
	return false
}

// TestASurveyThatFailsIsReported: a survey or a walk that cannot look at a session, or not rebuild it, says so. A loss
// is in the log at each survey. A survey that ends with its process says nothing.
func TestASurveyThatFailsIsReported(t *testing.T) {
	w, lost := newWorld(t), events.Ref{Harness: "h1", Session: "lost"}
	w.open(ref)
	w.open(lost)
	l := w.settle(Default())
	w.during(Default(), w.acknowledged)
	for name, check := range map[string]func(context.Context, *Ledger) error{
		"survey": func(ctx context.Context, l *Ledger) error { l.surveyOnce(ctx); return nil },
		"walk":   func(ctx context.Context, l *Ledger) error { return l.walkOnce(ctx) },
	} {
		for n := int64(1); ; n++ {
			w.damage(ref)
			if note := w.note(lost); note == nil {
				w.ahead(lost, 1_000_000)
			}
			var log lines
			l, sent := w.spoiling(n, zerolog.New(&log))
			err := check(t.Context(), l)
			if !sent() {
				lost := log.has("has lost commits of 1 ")
				if err != nil || n < 3 || log.has(`"warn"`, `"err":`) || lost != (name == "survey") {
					t.Errorf("%s of %d requests: %v, %s", name, n-1, err, &log.text)
				}
				break
			}
			if err == nil && !log.has(`"warn"`, `"err":`) {
				t.Errorf("request %d of a %s failed, and nothing says so: %s", n, name, &log.text)
			}
		}
	}
	if err := l.forgetLoss(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	var log lines
	l, _ = w.spoiling(0, zerolog.New(&log))
	l.surveyOnce(t.Context())
	if log.has("") {
		t.Errorf("without a loss: %s", &log.text)
	}
	w.damage(ref)
	ctx, end := context.WithCancel(t.Context())
	end()
	l.surveyOnce(ctx)
	if err := l.walk(ctx); err != nil || log.has("") {
		t.Errorf("after its end: %v, %s", err, &log.text)
	}
}

// TestAWalkThatFailsIsReported: and the next one begins at its time.
func TestAWalkThatFailsIsReported(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.during(Default(), w.acknowledged)
	w.damage(ref)
	var log lines
	l, _ := w.spoiling(1, zerolog.New(&log))
	l.fold.active.Store(true)
	l.cfg.WalkEvery = time.Millisecond
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.walk(ctx) }()
	natstest.Until(t, "the second walk", func() bool { return l.fold.count.mended.Load() == 1 })
	end()
	if err := <-ended; err != nil || !log.has(`"warn"`, "did not come to its end") {
		t.Errorf("%v, %s", err, &log.text)
	}
}

// TestOneProcessWalks: while another process is active, only that one walks. A process that is active asks no broker.
func TestOneProcessWalks(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.during(Default(), func() {
		w.acknowledged()
		l := w.ledger()
		if l.mayWalk(t.Context()) {
			t.Error("two processes walk")
		}
		if l.fold.active.Store(true); !l.mayWalk(t.Context()) {
			t.Error("the active process does not walk")
		}
	})
}

// TestTheWalkSkipsLongSessions: to fold one of more than walkCommitsMax commits takes long. A key that names no session
// is skipped, too.
func TestTheWalkSkipsLongSessions(t *testing.T) {
	w, long := newWorld(t), events.Ref{Harness: "h1", Session: "long"}
	w.open(ref)
	w.open(long)
	w.settle(Default())
	for r, commits := range map[events.Ref]uint64{ref: walkCommitsMax, long: walkCommitsMax + 1} {
		w.forge(r, func(st *session.State) { st.Commits, st.Title = commits, "a lie" })
	}
	if _, err := w.bus.KV.Store(t.Context(), kv.State, "session.odd", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	var log lines
	if l, err := New(w.bus, Default(), zerolog.New(&log)); err != nil {
		t.Error(err)
	} else if err := l.walkOnce(t.Context()); err != nil || log.has(`"err":`) {
		t.Errorf("%v, %s", err, &log.text)
	}
	for r, want := range map[events.Ref]string{ref: "a session", long: "a lie"} {
		if st, err := session.Decode(w.load(events.SessionKey(r))); err != nil || st.Title != want {
			t.Errorf("%s: %v, %q", r, err, st.Title)
		}
	}
}

// TestNoSurveyAfterTheEnd: a process that ends begins no survey, even if one is due.
func TestNoSurveyAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// a select between two that are ready takes one at random
		for range 50 {
			due := make(chan struct{}, 1)
			due <- struct{}{}
			ctx, end := context.WithCancel(t.Context())
			surveys := 0
			if err := onTakeOver(ctx, due, func(context.Context) { surveys++; end() }); err != nil || surveys != 1 {
				t.Fatalf("%d surveys, %v", surveys, err)
			}
		}
	})
}
