package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestARequestForASessionThatTheLogLostIsRefusedOnce: a request is decided on the document; the log lacks the commit at
// which the document ends, so the append is refused with that reason, and not repeated as a lost race.
func TestARequestForASessionThatTheLogLostIsRefusedOnce(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	lost := events.Ref{Harness: "h1", Session: "lost"}
	l := w.settle(Default())
	st, _, err := loadDoc(t.Context(), w.bus.KV, ref)
	if err != nil {
		t.Fatal(err)
	}
	w.forge(lost, func(doc *session.State) {
		*doc = *st
		doc.Session, doc.Root, doc.Seq = lost.Session, lost.Session, 1000
	})
	w.run(Default())
	req := answer("a")
	req.Ref = lost
	refusal := w.ask("answer", req, nil)
	if refusal == nil || refusal.Code != http.StatusConflict || refusal.Stands == nil ||
		refusal.Stands.Status != "log-behind" ||
		!strings.Contains(refusal.Stands.Reason, "doctor") {
		t.Fatalf("%+v; want a 409 that says what is wrong and what to do", refusal)
	}
	if left, err := l.logged(t.Context(), lost); err != nil || left.state.Seq != 0 {
		t.Errorf("the log has %d, %v", left.state.Seq, err)
	}
}

// ahead makes a session's document one that has folded a commit that the log lacks: its turn had completed there.
func (w *world) ahead(r events.Ref, seq uint64) {
	w.t.Helper()
	w.forge(r, func(st *session.State) {
		e := events.New("lost", events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(0, 0),
			events.TurnCompleted{Turn: "t1"})
		st.Fold(&events.Commit{Ref: r, Writer: events.WriterHarness, Seq: seq, Guard: st.Seq, Guarded: true,
			At: time.Unix(0, 0), Events: []events.Event{e}})
	})
}

// note returns the ledger's note of a loss, nil for none.
func (w *world) note(r events.Ref) *Lost {
	w.t.Helper()
	all, err := notes(w.t.Context(), w.bus.KV)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range all {
		if all[i].Ref == r {
			return &all[i]
		}
	}
	return nil
}

// TestADocumentAheadOfTheLogIsRebuiltAtTheStart: the log has lost a session's end. The session continues from the log;
// the note of the loss keeps the old document until an operator accepts the loss.
func TestADocumentAheadOfTheLogIsRebuiltAtTheStart(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	w.ahead(ref, 1000)
	was := w.load(events.SessionKey(ref))
	found, err := Inspect(t.Context(), w.bus)
	if err != nil || len(found.Lost) != 1 || found.Lost[0].Known != 1000 || found.Lost[0].Last != w.seq[ref] ||
		len(found.Wrong) != 0 {
		t.Errorf("a survey finds %+v, %v", found, err)
	}
	w.during(Default(), func() {
		var st *session.State
		w.await(events.SessionKey(ref), func(e kv.Entry) bool {
			st = storedDocument(ref, e)
			return st != nil && st.Seq == w.seq[ref]
		})
		if st.Turn == nil {
			t.Error("rebuilt with what the log does not have")
		}
		w.append(ref, events.TurnCompleted{Turn: "t1"})
		w.document(ref, w.seq[ref])
	})
	note := w.note(ref)
	if note == nil || note.Known != 1000 || !bytes.Equal(note.Document, was) {
		t.Fatalf("noted %+v", note)
	}
	if found, err = Inspect(t.Context(), w.bus); err != nil || len(found.Lost) != 1 {
		t.Errorf("a survey finds %+v, %v", found, err)
	}
	if reply := w.rebuild(l,
		request.Rebuild{Harness: ref.Harness, Session: ref.Session, AcceptLoss: true}); reply.Lost != 0 ||
		w.note(ref) != nil {
		t.Errorf("accepted: %+v, noted still %+v", reply, w.note(ref))
	}
}

// TestATakeoverCallsForASurvey: the process before may have died while documents were wrong. The views and the
// documents are compared again, at most once in a while.
func TestATakeoverCallsForASurvey(t *testing.T) {
	w := newWorld(t)
	f := w.folder()
	for range 2 {
		if err := f.Takeover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, due := range map[string]chan struct{}{"views": f.tookOver, "documents": f.surveyDue} {
		synctest.Test(t, func(t *testing.T) {
			inside := make(chan struct{}, 1)
			for range len(due) {
				<-due
				inside <- struct{}{}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*inspectAgainMin)
			defer cancel()
			var surveys []time.Duration
			began := time.Now()
			if err := onTakeOver(ctx, inside, func(context.Context) {
				surveys = append(surveys, time.Since(began))
			}); err != nil {
				t.Error(err)
			}
			if want := []time.Duration{0, inspectAgainMin}; !slices.Equal(surveys, want) {
				t.Errorf("%s: surveys after %v, want %v", name, surveys, want)
			}
		})
	}
}

// TestARebuildKeepsWhatTheLogLost: a rebuild replaces a document that is ahead of the log. The note of the loss has the
// document as it was, and no later note replaces it.
func TestARebuildKeepsWhatTheLogLost(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	w.ahead(ref, 1000)
	was := w.load(events.SessionKey(ref))
	if reply := w.rebuild(l, request.Rebuild{}); reply.Changed != 1 {
		t.Errorf("%+v", reply)
	}
	if note := w.note(ref); note == nil || note.Known != 1000 || !bytes.Equal(note.Document, was) {
		t.Fatalf("noted %+v", note)
	}
	for _, later := range []Lost{{Ref: ref, Known: 999, Last: 1, Document: []byte(`{}`)},
		{Ref: ref, Known: 1000, Last: 1}} {
		if err := l.recordLoss(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		if note := w.note(ref); note == nil || note.Known != 1000 || !bytes.Equal(note.Document, was) {
			t.Errorf("after a note of %+v: %+v", later, note)
		}
	}
}

// TestCommitsBehindADocumentThatIsAheadAreFolded: the log assigns lost sequences again. The commits under them are in
// the document, with sequences above and below that of the document.
func TestCommitsBehindADocumentThatIsAheadAreFolded(t *testing.T) {
	for name, seq := range map[string]uint64{"above": 3, "the same": 4, "below": 1000} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open(ref)
			l := w.settle(Default())
			w.ahead(ref, seq)
			// takes 3
			w.append(events.Ref{Harness: "h1", Session: "other"}, events.SessionOpened{Incarnation: "1"})
			// takes 4
			w.append(ref, events.ToolStarted{Call: "c2", Turn: "t1", Name: "bash"})
			w.fold(l.fold, w.delivered(4)[2:]...)
			st, err := session.Decode(w.load(events.SessionKey(ref)))
			if err != nil || st.Seq != 4 || st.Turn == nil || st.Tools["c2"] == nil {
				t.Errorf("%v: folded up to %d, turn %+v, calls %v", err, st.Seq, st.Turn, st.Tools)
			}
			if note := w.note(ref); seq != 4 && (note == nil || note.Known != seq || len(note.Document) == 0) {
				t.Errorf("noted %+v", note)
			}
		})
	}
}

// TestADocumentWithoutALogStands: it is the last copy. It is removed, with its views, when an operator accepts the
// loss.
func TestADocumentWithoutALogStands(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.settle(Default())
	lost := events.Ref{Harness: "h1", Session: "lost"}
	st, _, err := loadDoc(t.Context(), w.bus.KV, ref)
	if err != nil {
		t.Fatal(err)
	}
	w.forge(lost, func(doc *session.State) { *doc = *st; doc.Session, doc.Root, doc.Seq = "lost", "lost", 1000 })
	work := events.WorkKey(lost)
	if _, err := w.bus.KV.Store(t.Context(), kv.State, work, []byte(`{"harness":"h1","session":"lost","epoch":1}`),
		0); err != nil {
		t.Fatal(err)
	}
	doc := w.load(events.SessionKey(lost))
	var l *Ledger
	w.during(Default(), func() {
		natstest.Until(t, "the loss to be noted", func() bool { return w.note(lost) != nil })
		l = w.settle(Default())
		if reply := w.rebuild(l, request.Rebuild{}); reply.Lost != 1 || reply.Removed != 0 || reply.Sessions != 1 {
			t.Errorf("%+v", reply)
		}
	})
	if got := w.load(events.SessionKey(lost)); !bytes.Equal(got, doc) || w.note(lost) == nil || w.note(lost).Last != 0 {
		t.Errorf("the document became %s, noted %+v", got, w.note(lost))
	}
	if reply := w.rebuild(l, request.Rebuild{AcceptLoss: true}); reply.Lost != 0 || reply.Removed != 1 {
		t.Errorf("accepted: %+v", reply)
	}
	if w.load(events.SessionKey(lost)) != nil || w.load(work) != nil || w.note(lost) != nil {
		t.Error("accepted, and still there")
	}
	if w.load(events.SessionKey(ref)) == nil {
		t.Error("another session's document went, too")
	}
}

// TestADocumentWhoseLogLostItsBeginningStands: and so does the fold of later commits onto it.
func TestADocumentWhoseLogLostItsBeginningStands(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	if err := w.bus.Log.PurgeSession(t.Context(), ref, w.seq[ref]); err != nil {
		t.Fatal(err)
	}
	if x, err := l.mend(t.Context(), ref); err != nil || x == nil || x.missing != 1 || x.shorter() {
		t.Errorf("found %v, %v", x, err)
	}
	w.during(Default(), func() {
		w.append(ref, events.TurnCompleted{Turn: "t1"})
		if st := w.document(ref, w.seq[ref]); st.Turn != nil || st.Closed != nil || st.Title != "a session" {
			t.Errorf("turn %+v, closed %+v, %q", st.Turn, st.Closed, st.Title)
		}
	})
	if reply := w.rebuild(l, request.Rebuild{}); reply.Lost != 1 || reply.Changed+reply.Removed != 0 {
		t.Errorf("%+v", reply)
	}
	if note := w.note(ref); note == nil || note.Missing != 1 || len(note.Document) != 0 {
		t.Errorf("noted %+v", note)
	}
}

// TestALossThatIsMadeGoodIsForgotten: a restored copy of the log has the lost commits.
func TestALossThatIsMadeGoodIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	// an existing commit, and a missing one
	for more, healed := range []bool{true, false} {
		known := w.seq[ref] + uint64(more)
		if err := l.recordLoss(t.Context(), Lost{Ref: ref, Known: known, Last: 1}); err != nil {
			t.Fatal(err)
		}
		l.surveyOnce(t.Context())
		if note := w.note(ref); (note == nil) != healed {
			t.Errorf("known up to %d, the log ends with %d: noted %+v", known, w.seq[ref], note)
		}
	}
}

// TestALossThatWasNone: a document that was ahead of a replica that lagged is not ahead of the log's leader. There is
// no note of it, or one that cannot be read: that one is removed.
func TestALossThatWasNone(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	for name, note := range map[string]string{"no note": "", "a note that cannot be read": "no JSON",
		"a note of another session": `{"harness":"h1","session":"other","known":7}`} {
		if note != "" {
			if _, err := w.bus.KV.Store(t.Context(), kv.State, events.LostKey(ref), []byte(note), 0); err != nil {
				t.Fatal(err)
			}
		}
		if healed, err := l.mendLost(t.Context(), ref); err != nil || !healed {
			t.Errorf("%s: healed %v, %v", name, healed, err)
		}
		if left := w.load(events.LostKey(ref)); left != nil {
			t.Errorf("%s: %s is left", name, left)
		}
	}
}

// TestNeitherSurveyNorWalkReplacesANewerDocument: a newer build has stored a document that this one cannot read.
func TestNeitherSurveyNorWalkReplacesANewerDocument(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	w.during(Default(), w.acknowledged)
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.SessionKey(ref))
	if err != nil {
		t.Fatal(err)
	}
	newer := []byte(`{"v":2,"harness":"h1","session":"s1","turn":"a shape of the future"}`)
	if _, err := w.bus.KV.Store(t.Context(), kv.State, e.Key, newer, e.Rev); err != nil {
		t.Fatal(err)
	}
	l.surveyOnce(t.Context())
	if err := l.walkOnce(t.Context()); err != nil {
		t.Error(err)
	}
	if got := w.load(e.Key); !bytes.Equal(got, newer) || l.fold.count.mended.Load() != 0 {
		t.Errorf("%d mended, it was overwritten: %s", l.fold.count.mended.Load(), got)
	}
}

// TestADamagedDocumentIsRebuilt: its session has no writes. The slow walk finds differences that only the log's commits
// show.
func TestADamagedDocumentIsRebuilt(t *testing.T) {
	other := events.Ref{Harness: "h1", Session: "other"}
	for name, damage := range map[string]func(w *world, e kv.Entry) ([]byte, bool){
		"no document": func(*world, kv.Entry) ([]byte, bool) { return []byte("x"), true },
		"cut short":   func(_ *world, e kv.Entry) ([]byte, bool) { return e.Value[:len(e.Value)/2], true },
		"deleted":     func(*world, kv.Entry) ([]byte, bool) { return nil, true },
		"another session's": func(w *world, _ kv.Entry) ([]byte, bool) {
			return w.load(events.SessionKey(other)), true
		},
		"folded by older rules": func(_ *world, e kv.Entry) ([]byte, bool) {
			return bytes.ReplaceAll(e.Value, fmt.Appendf(nil, `,"rules":%d`, session.FoldRules), nil), true
		},
		"a head that cannot be read": func(_ *world, e kv.Entry) ([]byte, bool) {
			return bytes.Replace(e.Value, fmt.Appendf(nil, `"head":{"v":1,"rules":%d`, session.FoldRules),
				fmt.Appendf(nil, `"head":{"v":1,"rules":"%d"`, session.FoldRules), 1), true
		},
		"without a head": func(_ *world, e kv.Entry) ([]byte, bool) {
			return append([]byte(`{"v":1`), e.Value[bytes.Index(e.Value, []byte(`,"harness":`)):]...), false
		},
		"a head that says something else": func(_ *world, e kv.Entry) ([]byte, bool) {
			return bytes.Replace(e.Value, []byte(`"views":true`), []byte(`"views":false`), 1), false
		},
		"an older one": func(w *world, _ kv.Entry) ([]byte, bool) { return w.older(ref), true },
		"one that says something else": func(_ *world, e kv.Entry) ([]byte, bool) {
			return bytes.Replace(e.Value, []byte("a session"), []byte("a lie"), 1), false
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var want []byte
			w.during(Default(), func() {
				w.open(ref)
				w.open(other)
				w.document(ref, w.seq[ref])
				w.document(other, w.seq[other])
				w.acknowledged()
				want = w.load(events.SessionKey(ref))
			})
			e, err := w.bus.KV.Load(t.Context(), kv.State, events.SessionKey(ref))
			if err != nil {
				t.Fatal(err)
			}
			body, seen := damage(w, e)
			if body == nil {
				err = w.bus.KV.Delete(t.Context(), kv.State, e.Key, e.Rev)
			} else {
				_, err = w.bus.KV.Store(t.Context(), kv.State, e.Key, body, e.Rev)
			}
			if err != nil {
				t.Fatal(err)
			}
			found, err := Inspect(t.Context(), w.bus)
			if err != nil || slices.Contains(found.Wrong, ref) != seen || len(found.Lost) != 0 {
				t.Errorf("a survey finds %+v, %v", found, err)
			}
			if seen {
				w.ledger().surveyOnce(t.Context())
				if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, want) {
					t.Errorf("rebuilt as %s, want %s", got, want)
				}
				return
			}
			cfg := Default()
			cfg.WalkEvery = 10 * time.Millisecond
			w.during(cfg, func() {
				// this makes the ledger the active one
				w.append(other, events.TurnCompleted{Turn: "t1"})
				w.await(events.SessionKey(ref), func(e kv.Entry) bool { return bytes.Equal(e.Value, want) })
			})
		})
	}
}

// ledger returns a ledger that does not run.
func (w *world) ledger() *Ledger {
	w.t.Helper()
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// acknowledged waits until a ledger has handled everything in the log.
func (w *world) acknowledged() {
	w.t.Helper()
	last, err := w.bus.Log.LastSeq(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	natstest.Until(w.t, "all to be acknowledged", func() bool {
		n, err := w.bus.Consumers.Acked(w.t.Context(), Source(Default()))
		return err == nil && n == last
	})
}

// older returns a session's document after its first commit.
func (w *world) older(r events.Ref) []byte {
	w.t.Helper()
	commits, err := w.bus.Log.Read(w.t.Context(), r, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	st := session.New(r)
	st.Fold(&commits[0])
	doc, err := st.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return doc
}

// TestAHealthyCellIsLeftAlone: neither survey nor slow walk writes anything, even if retention has left a tombstone, a
// batch has stored two commits under one guard, or a commit cannot be read.
func TestAHealthyCellIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	closed := events.Ref{Harness: "h1", Session: "closed"}
	w.open(ref)
	w.open(closed)
	w.append(closed, events.SessionClosed{Reason: "finished"})
	w.append(events.Ref{Harness: "h1", Session: "unborn"}, events.ToolCompleted{Call: "c"})
	l := w.settle(Default())
	if n, err := l.retainAt(t.Context(), w.later(Default().ClosedKeptFor), false); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	w.during(Default(), func() {
		w.acknowledged()
	})
	before := w.revisions()
	l.fold.active.Store(true)
	l.surveyOnce(t.Context())
	if err := l.walkOnce(t.Context()); err != nil {
		t.Error(err)
	}
	if after := w.revisions(); !maps.Equal(before, after) || l.fold.count.mended.Load() != 0 {
		t.Errorf("before %v, after %v, %d mended", before, after, l.fold.count.mended.Load())
	}
	if found, err := Inspect(t.Context(), w.bus); err != nil || len(found.Lost)+len(found.Wrong) != 0 {
		t.Errorf("a survey finds %+v, %v", found, err)
	}
}

// TestStraysHideNoDamage: messages that a harness wrote under no session's subject hide no wrong document: the
// survey finds it, and mends it.
func TestStraysHideNoDamage(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.strays()
	w.during(Default(), w.acknowledged)
	w.replace(events.SessionKey(ref), []byte(`{}`))
	found, err := Inspect(t.Context(), w.bus)
	if err != nil || len(found.Lost) != 0 || !slices.Equal(found.Wrong, []events.Ref{ref}) {
		t.Errorf("a survey finds %+v, %v", found, err)
	}
	w.ledger().surveyOnce(t.Context())
	if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, w.folded(ref)) {
		t.Errorf("the survey leaves the document %s", got)
	}
}

// revisions returns the revisions of all entries of the state bucket.
func (w *world) revisions() map[string]uint64 {
	w.t.Helper()
	all := map[string]uint64{}
	if err := w.bus.KV.List(w.t.Context(), kv.State, ">",
		func(e kv.Entry) error { all[e.Key] = e.Rev; return nil }); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// TestEntriesThatShouldBeGoneAreDeleted: entries of the people's view without a session, old settled ones without a
// TTL, and unreadable ones are deleted.
func TestEntriesThatShouldBeGoneAreDeleted(t *testing.T) {
	w, odd := newWorld(t), events.Ref{Harness: "h1", Session: "odd"}
	w.open(ref)
	w.appendAs(ref, events.WriterLedger, events.PersonSource("ada"), events.PromptDismissed{Prompt: "p1", By: "ada"})
	w.open(odd)
	l := w.settle(Default())
	long := w.later(-time.Hour).Now
	entry := func(r events.Ref, prompt string, at time.Time) (string, []byte) {
		body, err := json.Marshal(session.Blocker{Harness: r.Harness, Session: r.Session, Root: r.Session,
			Prompt: prompt, Status: session.Dismissed, ClosedAt: at})
		if err != nil {
			t.Fatal(err)
		}
		return events.BlockerKey(r.Harness, r.Session, r.Session, prompt), body
	}
	stays, body := entry(ref, "old-1", w.later(0).Now)
	put := func(key string, body []byte) {
		t.Helper()
		if _, err := w.bus.KV.Store(t.Context(), kv.State, key, body, 0); err != nil {
			t.Fatal(err)
		}
	}
	put(stays, body)
	var going []string
	for _, x := range []struct {
		r      events.Ref
		prompt string
	}{{ref, "old-2"}, {events.Ref{Harness: "h1", Session: "nowhere"}, "p1"}} {
		key, body := entry(x.r, x.prompt, long)
		put(key, body)
		going = append(going, key)
	}
	for _, key := range []string{events.BlockerKey("h1", "odd", "odd", "x"),
		events.WorkKey(events.Ref{Harness: "h1", Session: "nowhere"})} {
		put(key, []byte("x"))
		going = append(going, key)
	}
	if n, err := l.compare(t.Context()); n != 3 || err != nil {
		t.Errorf("compared: %d, %v", n, err)
	}
	left := w.revisions()
	for _, key := range going {
		if left[key] != 0 {
			t.Errorf("%s is there still", key)
		}
	}
	if left[stays] == 0 {
		t.Errorf("%s is gone", stays)
	}
	if n, err := l.compare(t.Context()); n != 0 || err != nil {
		t.Errorf("compared again: %d, %v", n, err)
	}
}

// TestASessionSetAsideIsNotWrong: its document is behind by design, and is updated apart from the others.
func TestASessionSetAsideIsNotWrong(t *testing.T) {
	w := newWorld(t)
	w.during(Default(), func() {
		w.open(ref)
		w.document(ref, w.seq[ref])
		w.acknowledged()
	})
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.SessionKey(ref))
	if err == nil {
		_, err = w.bus.KV.Store(t.Context(), kv.State, e.Key, w.older(ref), e.Rev)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, behind := range []bool{false, true} {
		if behind {
			body, err := json.Marshal(Aside{Ref: ref, Behind: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.bus.KV.Store(t.Context(), kv.State, events.AsideKey(ref), body, 0); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := Inspect(t.Context(), w.bus); err != nil || slices.Contains(found.Wrong, ref) == behind {
			t.Errorf("set aside: %v: a survey finds %+v, %v", behind, found, err)
		}
	}
}

// TestDocumentsOfOlderRules: a document lacks what older rules did not keep, here an answer that the failed turn had.
// Neither the fold nor a request uses it: both read the log.
func TestDocumentsOfOlderRules(t *testing.T) {
	for name, read := range map[string]func(*world, *Ledger) (*session.State, error){
		"the fold": func(w *world, l *Ledger) (*session.State, error) {
			x := &touched{ref: ref}
			err := l.fold.load(w.t.Context(), []*touched{x})
			return x.state, err
		},
		"a request": func(w *world, l *Ledger) (*session.State, error) {
			st, _, err := l.current(w.t.Context(), ref, true)
			return st, err
		},
		"the fold of a long session": func(w *world, l *Ledger) (*session.State, error) {
			w.forge(ref, func(st *session.State) { st.Rules, st.Commits = 0, inlineReadMax+1 })
			x := &touched{ref: ref}
			if err := l.fold.load(w.t.Context(), []*touched{x}); err != nil || !errors.Is(x.err, errLong) {
				w.t.Errorf("%v, and not folded apart: %v", err, x.err)
			}
			c := &catcher{f: l.fold, note: Aside{Ref: ref, Behind: true}, st: session.New(ref)}
			err := c.run(w.t.Context())
			return w.document(ref, w.seq[ref]), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open(ref)
			w.appendAs(ref, events.WriterLedger, events.PersonSource("ada"),
				events.PromptAnswered{Prompt: "p1", Answers: []events.Answer{}, By: "ada"})
			w.append(ref, events.PromptDelivered{Prompt: "p1"},
				events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
			w.settle(Default())
			want := w.load(events.SessionKey(ref))
			w.forge(ref, func(st *session.State) { st.Rules, st.LastTurn.Prompts = 0, nil })
			st, err := read(w, w.ledger())
			if err != nil || st.Outdated() || len(st.LastTurn.Prompts) != 1 {
				t.Fatalf("%+v, %v", st, err)
			}
			if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, want) {
				t.Errorf("stored %s, want %s", got, want)
			}
		})
	}
}
