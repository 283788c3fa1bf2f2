package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// fataler is a test, or one run of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// checkPrefixes asks for every session of the log at every place of the log, and compares each answer with the fold of
// the session's commits up to there.
func (w *world) checkPrefixes(t fataler, l *Ledger) {
	t.Helper()
	var all []events.Commit
	first := map[events.Ref]bool{}
	if err := w.bus.Log.Scan(w.t.Context(), 0, func(c events.Commit) error {
		all = append(all, c)
		first[c.Ref] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for r := range first {
		st := session.New(r)
		for i := range all {
			if all[i].Ref == r {
				st.Fold(&all[i])
			}
			got, err := l.get(w.t.Context(), request.Get{Ref: r, At: all[i].Seq})
			if st.Seq == 0 {
				if refusal, ok := errors.AsType[*events.Refusal](err); !ok || refusal.Code != http.StatusNotFound {
					t.Fatalf("%s at %d, before its first commit: %v", r, all[i].Seq, err)
				}
				continue
			}
			want, encodeErr := st.Encode()
			if err != nil || encodeErr != nil || !bytes.Equal(got.Document, want) {
				t.Fatalf("%s at %d: %v, %v\n%s\nwant\n%s", r, all[i].Seq, err, encodeErr, got.Document, want)
			}
		}
	}
}

// idleLedger returns a ledger that does not run: it answers from the log.
func (w *world) idleLedger() *Ledger {
	w.t.Helper()
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// purge empties the log.
func (w *world) purge(t fataler) {
	t.Helper()
	if err := w.operator().PurgeStream(w.bus.Cell().LogStream()); err != nil {
		t.Fatal(err)
	}
}

// TestEveryPrefixOfStories: the document of each story's session at each place of the log is the fold of the commits up
// to there. The commits are those that the stories show, as they travelled, also the unreadable ones.
func TestEveryPrefixOfStories(t *testing.T) {
	files, err := filepath.Glob("../../pkg/session/testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	w := newWorld(t)
	l, js, played := w.idleLedger(), w.operator(), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		y := story.New(t)
		for _, f := range txtar.Parse(text).Files {
			words := strings.Fields(f.Name)
			if words[0] != "facts" {
				continue
			}
			// it names what a request has appended
			if bytes.Contains(f.Data, []byte("$")) {
				break
			}
			name := story.Main
			for _, word := range words[1:] {
				if strings.HasPrefix(word, "@") {
					y.Now = y.Instant(word)
				} else {
					name = word
				}
			}
			y.Facts(name, strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")...)
		}
		commits, bodies := y.Bodies()
		w.purge(t)
		for i, c := range commits {
			subject := w.bus.Cell().LogSubject(c.Ref, c.Writer)
			if _, err := js.Publish(subject, []byte(bodies[i])); err != nil {
				t.Fatal(err)
			}
		}
		w.checkPrefixes(t, l)
		played += len(commits)
	}
	if played < 2*len(files) {
		t.Errorf("%d commits of %d stories", played, len(files))
	}
}

// TestEveryPrefixOfRandomSessions: the same for random facts of three sessions whose commits alternate.
func TestEveryPrefixOfRandomSessions(t *testing.T) {
	w := newWorld(t)
	l := w.idleLedger()
	rapid.Check(t, func(rt *rapid.T) {
		w.purge(rt)
		last, opened := map[events.Ref]uint64{}, map[events.Ref]bool{}
		for range rapid.IntRange(1, 20).Draw(rt, "commits") {
			r := events.Ref{Harness: "h", Session: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "session")}
			facts := []events.Fact{randomFact(rt)}
			if !opened[r] {
				facts, opened[r] = []events.Fact{events.SessionOpened{Incarnation: "1"}}, true
			}
			for rapid.Bool().Draw(rt, "more") && len(facts) < 4 {
				facts = append(facts, randomFact(rt))
			}
			evs := make([]events.Event, len(facts))
			for i, f := range facts {
				evs[i] = events.New(w.bus.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(0, 0), f)
			}
			seq, err := w.bus.Log.Append(t.Context(), r, events.WriterHarness, last[r], evs)
			if err != nil {
				rt.Fatal(err)
			}
			last[r] = seq
		}
		w.checkPrefixes(rt, l)
	})
}

// randomFact draws a fact about one of a few turns, calls and prompts.
func randomFact(rt *rapid.T) events.Fact {
	n := strconv.Itoa(rapid.IntRange(1, 3).Draw(rt, "n"))
	switch rapid.IntRange(0, 6).Draw(rt, "what") {
	case 0:
		return events.TurnStarted{Turn: "t" + n, Cause: events.CauseMessage}
	case 1:
		return events.ToolStarted{Call: "c" + n, Turn: "t1", Name: "bash"}
	case 2:
		return events.ToolCompleted{Call: "c" + n, Output: []byte(`"done"`)}
	case 3:
		return events.PromptRequested{Prompt: "p" + n, Turn: "t1", PromptKind: events.PromptQuestion, Title: "Which?",
			Delivery:  events.DeliverCallback,
			Questions: []events.Question{{ID: "q", Question: "Which?", Custom: true}}}
	case 4:
		return events.TurnFailed{Turn: "t" + n, Error: events.Failure{Kind: "rate_limit"}}
	case 5:
		return events.UsageReported{Turn: "t" + n, Model: "m", Tokens: events.Tokens{Input: 7}, ContextLimit: 100}
	default:
		return events.TurnCompleted{Turn: "t" + n}
	}
}

// TestEveryPrefixOfALongSession: a session that is read in one go, and not commit by commit.
func TestEveryPrefixOfALongSession(t *testing.T) {
	w := newWorld(t)
	last := w.long(ref, 300)
	other := events.Ref{Harness: "h1", Session: "other"}
	w.open(other)
	l := w.idleLedger()
	for _, at := range []uint64{1, 2, 150, last - 1, last, last + 1} {
		got, err := l.get(t.Context(), request.Get{Ref: ref, At: at})
		if err != nil {
			t.Fatal(err)
		}
		st, err := session.Decode(got.Document)
		if err != nil || st.Seq != min(at, last) || st.Commits != min(at, last) {
			t.Errorf("at %d: seq %d, %d commits, %v", at, st.Seq, st.Commits, err)
		}
	}
}

// TestPrefixesThatCannotBeFolded: each request that has no exact answer is refused with its reason.
func TestPrefixesThatCannotBeFolded(t *testing.T) {
	w := newWorld(t)
	early, torn := events.Ref{Harness: "h1", Session: "early"}, events.Ref{Harness: "h1", Session: "torn"}
	gone := events.Ref{Harness: "h1", Session: "gone"}
	w.open(early)
	w.open(ref)
	w.open(torn)
	middle := w.seq[torn]
	w.open(gone)
	behind := w.append(torn, events.TurnCompleted{Turn: "t1"})
	w.append(torn, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	closed := w.append(gone, events.SessionClosed{Reason: "finished"})
	last := w.append(early, events.TurnCompleted{Turn: "t1"})
	w.settle(Default())
	_, rev, err := loadDoc(t.Context(), w.bus.KV, gone)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.bus.Log.PurgeSession(t.Context(), early, last),
		w.bus.Log.PurgeSession(t.Context(), gone, closed),
		w.bus.KV.Delete(t.Context(), kv.State, events.SessionKey(gone), rev)); err != nil {
		t.Fatal(err)
	}
	if err := w.operator().DeleteMsg(w.bus.Cell().LogStream(), middle); err != nil {
		t.Fatal(err)
	}
	w.run(Default())
	tests := []struct {
		name string
		of   request.Get
		code int
		want string
	}{
		{"beyond the log", request.Get{Ref: ref, At: last + 1}, 404, fmt.Sprintf("the log ends with %d", last)},
		{"before its first commit", request.Get{Ref: ref, At: 1}, 404, "it begins with commit 3"},
		{"no session", request.Get{Ref: events.Ref{Harness: "h1", Session: "none"}, At: 1}, 404, "no such session"},
		{"purged", request.Get{Ref: early, At: 1}, 410, fmt.Sprintf("before %d were purged", last)},
		{"purged, without a document", request.Get{Ref: gone, At: closed}, 410, fmt.Sprintf("before %d were purged",
			closed)},
		{"lost", request.Get{Ref: torn, At: behind}, 409, fmt.Sprintf("commit %d is missing", middle)},
		{"behind the loss", request.Get{Ref: torn, At: behind - 1}, 409, fmt.Sprintf("commit %d is missing", middle)},
		{"at the loss", request.Get{Ref: torn, At: middle}, 409, fmt.Sprintf("commit %d is missing", middle)},
	}
	for _, test := range tests {
		refusal := w.ask("get", test.of, nil)
		if refusal == nil || refusal.Code != test.code || !strings.Contains(refusal.Error(), test.want) {
			t.Errorf("%s: %v, want %d: %s", test.name, refusal, test.code, test.want)
		}
	}
	none := events.Ref{Harness: "h1", Session: "none"}
	if _, err := At(t.Context(), w.bus, none, 1); err == nil || err.Error() != "no such session: h1/none (404)" {
		t.Errorf("without a document, no session: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := w.idleLedger().earlier(ended, request.Get{Ref: ref, At: 1}); err == nil ||
		!strings.Contains(err.Error(), "h1/s1 is too long") {
		t.Errorf("a session that is not read in time: %v", err)
	}
	for what, of := range map[string]request.Get{"the end of a purged session": {Ref: early, At: last},
		"what is before the loss": {Ref: torn, At: middle - 1}, "the present": {Ref: ref}} {
		if refusal := w.ask("get", of, nil); refusal != nil {
			t.Errorf("%s: %v", what, refusal)
		}
	}
}

// TestPrefixesLeaveRoomForOthers: one request about the past of each person runs, and a few together. Another one is
// refused at once and holds no place of other requests, so that they are answered.
func TestPrefixesLeaveRoomForOthers(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.TurnCompleted{Turn: "t1"})
	l := w.idleLedger()
	get := func(by string, at uint64) int {
		t.Helper()
		_, err := l.get(t.Context(), request.Get{Ref: ref, At: at, By: by})
		if refusal, ok := errors.AsType[*events.Refusal](err); ok {
			return refusal.Code
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0
	}
	endAnn, ok := l.prefixes.begin("ann")
	if !ok {
		t.Fatal("no place for the first")
	}
	if code := get("ann", 1); code != http.StatusServiceUnavailable {
		t.Errorf("the second of ann: %d", code)
	}
	if code := get("bob", 1); code != 0 {
		t.Errorf("bob, while one of ann runs: %d", code)
	}
	endBob, ok := l.prefixes.begin("bob")
	if !ok {
		t.Fatal("no place for bob: his first was not ended")
	}
	if code := get("eve", 1); code != http.StatusServiceUnavailable {
		t.Errorf("a third person: %d", code)
	}
	for _, by := range []string{"ann", "eve"} {
		if code := get(by, 0) + get(by, w.seq[ref]); code != 0 {
			t.Errorf("the present, for %s: %d", by, code)
		}
	}
	endAnn()
	endBob()
	if code := get("eve", 1); code != 0 {
		t.Errorf("after the others: %d", code)
	}
}
