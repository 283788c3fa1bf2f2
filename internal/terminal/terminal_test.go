package terminal

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a screen with a file, with visible escapes, or writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", "␛")
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it)\nwant\n%s\ngot\n%s", path, want, got)
	}
}

func at(s int) time.Time { return time.Date(2025, 1, 2, 3, 4, s, 0, time.UTC) }

func now() time.Time { return at(0).Add(75 * time.Second) }

// history collects the commits of a session, a second apart.
type history struct{ commits []events.Commit }

func (x *history) append(w events.Writer, source string, epoch uint64, facts ...events.Fact) {
	r := events.Ref{Harness: "agent", Session: "s1"}
	seq := uint64(len(x.commits) + 1)
	c := events.Commit{Ref: r, Writer: w, Seq: seq, Guard: seq - 1, Guarded: true, At: at(len(x.commits))}
	for _, f := range facts {
		c.Events = append(c.Events, events.New("e", source, r, epoch, c.At, f))
	}
	x.commits = append(x.commits, c)
}

// log is a session's history with everything that a screen shows; title tries to control the terminal.
func log(t *testing.T) []events.Commit {
	t.Helper()
	x := &history{}
	add := x.append
	h := func(inc string) string { return events.HarnessSource("agent", inc) }
	add(
		events.WriterHarness,
		h("7"),
		1,
		events.SessionOpened{Incarnation: "7", Title: "Fix\x1b[2J the\tbuild", Agent: "coder", Model: "m1"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
	)
	add(
		events.WriterHarness,
		h("7"),
		1,
		events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash", Title: "make test"},
		events.ToolStarted{Call: "c2", Turn: "t1", Name: "ask_user"},
		events.PromptRequested{
			Prompt:     "q1",
			Turn:       "t1",
			Call:       "c2",
			PromptKind: "question\x1b[7m",
			Title:      "Which colour?",
			Delivery:   events.DeliverToolResult,
			Questions: []events.Question{
				{
					ID:       "colour",
					Question: "Which colour?",
					Options:  []events.Option{{Label: "red", Description: "as the barn"}, {Label: "blue"}},
					Multi:    true,
				},
			},
		},
		events.UsageReported{Turn: "t1", Tokens: events.Tokens{Input: 60_000}, ContextLimit: 200_000},
	)
	add(
		events.WriterReconciler,
		events.ServiceSource("reconciler", "x"),
		1,
		events.SessionOrphaned{Reason: "owner-lost", Incarnation: "7"},
		events.ToolInterrupted{Call: "c1", Reason: "owner-lost"},
	)
	add(events.WriterHarness, h("7"), 1, events.ToolCompleted{Call: "c1", Output: json.RawMessage(`"ok"`)})
	add(events.WriterRetry, "/service/retry/x", 1, events.ToolCompleted{Call: "c9"})
	return x.commits
}

func folded(t *testing.T, upTo int) (*session.State, []*session.Blocker) {
	t.Helper()
	all := log(t)
	s := session.New(all[0].Ref)
	for i := range all[:upTo] {
		s.Fold(&all[i])
	}
	var open []*session.Blocker
	for _, id := range s.PendingPrompts() {
		b, err := s.Blocker(id, func(seq uint64) (*events.Commit, error) { return &all[seq-1], nil })
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, b)
	}
	return s, open
}

func TestScreens(t *testing.T) {
	live, liveOpen := folded(t, 2)
	lost, lostOpen := folded(t, 5)
	closed := session.New(events.Ref{Harness: "agent", Session: "a very long name of a session"})
	closed.Closed, closed.Phase = &session.Closing{Reason: "finished", By: "ann", At: at(1)}, session.Closed
	docs := []*session.State{live, lost, closed}
	color := Style{Color: true}
	settled := *lostOpen[0]
	settled.Status, settled.By, settled.ClosedAt = session.Answered, "ann", at(9)
	settled.Answers = []events.Answer{{Question: "colour", Selected: []string{"red", "blue"}}, {Question: "note"}}
	for name, text := range map[string]string{
		"sessions":        Sessions(docs, now(), Style{}),
		"sessions-colour": Sessions(docs, now(), color),
		"sessions-narrow": Sessions(docs, now(), Style{Width: 60}),
		"prompts":         Prompts(append(liveOpen, lostOpen[0], &settled), now(), Style{}),
		"live":            Session(live, liveOpen, now(), Style{}),
		"lost":            Session(lost, lostOpen, now(), Style{}),
		"lost-colour":     Session(lost, lostOpen, now(), color),
		"settled":         Prompt(&settled, now(), Style{}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, text) })
	}
}

func TestFactsAndChanges(t *testing.T) {
	var text strings.Builder
	s := session.New(events.Ref{Harness: "agent", Session: "s1"})
	var before *session.State
	for _, c := range log(t) {
		for i := range c.Events {
			text.WriteString(Fact(&c, &c.Events[i], "", Style{}) + "\n")
		}
		s.Fold(&c)
		for _, l := range Changes(before, s, now()) {
			text.WriteString("    " + l + "\n")
		}
		before = s.Clone()
	}
	broken := events.Commit{Seq: 9, At: at(9), Writer: events.WriterHarness, Err: events.ErrMalformed}
	text.WriteString(Whole(&broken, Style{}) + "\n")
	unread := events.Event{
		Kind:    "tool.started",
		Subject: "c1",
		Data:    json.RawMessage(`{"call":7}`),
		Err:     events.ErrMalformed,
	}
	text.WriteString(Fact(&broken, &unread, "parked: malformed", Style{}) + "\n")
	golden(t, "facts", text.String())
}

// Text of an agent cannot move the cursor, colour the screen, or forge a line.
func TestNothingButPrintableCharactersReachesTheScreen(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                       "plain",
		"two\nlines\tand a tab":       "two lines and a tab",
		"\x1b[31mred\x1b[0m":          "[31mred[0m",
		"bell\a, back\b, \x9b31m":     "bell, back, 31m",
		"\u202eright to left\u2066":   "right to left",
		"broken \xff\xfe utf-8":       "broken  utf-8",
		"größer – 日本語 ✓":              "größer – 日本語 ✓",
		"no-break\u00a0space\u200bno": "no-breakspaceno",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CleanLines("a\n  b\x1b[2J\n"); got != "a\n  b[2J\n" {
		t.Errorf("CleanLines: %q", got)
	}
	s, open := folded(t, 5)
	for _, text := range []string{Session(s, open, now(), Style{}), Sessions([]*session.State{s}, now(), Style{}),
		Prompts(open, now(), Style{})} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unprintable(r) }); i >= 0 {
			t.Errorf("%q at %d of %q", text[i], i, text)
		}
	}
}

// Only a name that must be whole may be wider than the terminal.
func TestNarrowTablesStayWithinTheirWidth(t *testing.T) {
	s, open := folded(t, 5)
	whole := []string{"SESSION", "PROMPT", s.Ref().String(), open[0].Prompt}
	for width := 8; width < 140; width++ {
		st := Style{Width: width}
		for _, l := range strings.Split(Sessions([]*session.State{s}, now(), st)+Prompts(open, now(), st), "\n") {
			if n := utf8.RuneCountInString(l); n > width && !slices.Contains(whole, strings.TrimSpace(l)) {
				t.Fatalf("%d columns in %d: %q", n, width, l)
			}
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0ms", 999 * time.Millisecond: "999ms", time.Second: "1s", 59 * time.Second: "59s",
		time.Minute: "1m00s", 61 * time.Second: "1m01s", time.Hour: "1h00m", 25*time.Hour + 5*time.Minute: "1d1h",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%s) = %s, want %s", d, got, want)
		}
	}
}
