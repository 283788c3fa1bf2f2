package session_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// A story is a text file: a comment that names the behaviours it shows, then sections. What is in the sections facts and
// wish happens, in order; all other sections say what is to be seen at that place, and are rewritten by -update.
//
//	-- facts --
//	1 session.opened {"incarnation":"17"}            lines with one number are one commit
//	2 by=ledger epoch=2 inc=18 @+5s kind {data}      who, under which epoch, from which incarnation, how much later
//	3 raw {"no":"batch"}                             a body as it came; also: event {…} for one envelope as it came
//	again 2                                          a redelivery
//	-- wish --
//	answer {"prompt":"p1","answers":[],"by":"ada"}   also reject, dismiss, stop, close, configure; settle and continue as
//	                                                 recovery does them
//
// Instants are shown as @5s: five seconds after the story began. Each commit takes a second.
var update = flag.Bool("update", false, "rewrite the stories in testdata")

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			got := w.tell(string(text))
			w.check()
			switch {
			case got == string(text):
			case *update:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("the story reads otherwise now (rewrite it with -update, and read the difference):\n%s", firstDifference(string(text), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := at(a, i), at(b, i)
		if x != y {
			return fmt.Sprintf("line %d\n  told: %s\n  is:   %s", i+1, x, y)
		}
	}
	return "no difference"
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

var (
	storyRef   = events.Ref{Harness: "h1", Session: "s1"}
	storyBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// world is one session as a story tells it: its log, and what was seen since the last section that showed it.
type world struct {
	t      testing.TB
	s      *session.State
	log    []*events.Commit
	bodies []string // of the log, as they travelled
	now    time.Time

	feed, ignored, parked, appended, replies, refusals []string
	shown                                              *session.State // at the last section "changed"
}

func newWorld(t testing.TB) *world {
	return &world{t: t, s: session.New(storyRef), now: storyBegin, shown: session.New(storyRef)}
}

var sectionRE = regexp.MustCompile(`^-- (.+) --$`)

// tell lets a story happen, and returns it as it went.
func (w *world) tell(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		m := sectionRE.FindStringSubmatch(lines[i])
		out.WriteString(lines[i] + "\n")
		i++
		if m == nil {
			continue
		}
		var body []string
		for ; i < len(lines) && !sectionRE.MatchString(lines[i]); i++ {
			body = append(body, lines[i])
		}
		name, args, _ := strings.Cut(m[1], " ")
		shown := body
		switch name {
		case "facts":
			if args == "appended" {
				shown = take(&w.appended)
			} else {
				w.facts(body)
			}
		case "wish":
			for _, line := range body {
				w.wish(line)
			}
		default:
			shown = w.show(name, strings.Fields(args))
		}
		for _, line := range shown {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func take(list *[]string) []string {
	l := *list
	*list = nil
	if len(l) == 0 {
		return []string{"(none)"}
	}
	return l
}

// draft is a commit while its lines are read.
type draft struct {
	c           *events.Commit
	envelopes   []string
	raw         string // a body as it came
	epoch       uint64
	incarnation string
}

// facts appends commits: lines of one number are one.
func (w *world) facts(lines []string) {
	var d *draft
	flush := func() {
		if d != nil {
			w.fold(d.c, orElse(d.raw, "["+strings.Join(d.envelopes, ",")+"]"))
		}
		d = nil
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		head, rest, _ := strings.Cut(line, " ")
		if head == "again" {
			flush()
			w.again(number(w.t, rest))
			continue
		}
		seq := number(w.t, head)
		if d == nil || d.c.Seq != seq {
			flush()
			w.now = w.now.Add(time.Second)
			d = &draft{c: &events.Commit{Ref: storyRef, Seq: seq, Guard: w.s.Seq, Guarded: true}, epoch: max(w.s.Epoch, 1), incarnation: w.s.Incarnation}
		}
		w.line(d, strings.TrimSpace(rest))
	}
	flush()
}

func number(t testing.TB, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("want a number: %v", err)
	}
	return n
}

// line reads one line of a commit: options, then the kind, then the data.
func (w *world) line(d *draft, line string) {
	env := map[string]any{}
	for {
		word, rest, _ := strings.Cut(line, " ")
		name, value, isOption := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "@+"):
			later, err := time.ParseDuration(word[2:])
			if err != nil {
				w.t.Fatal(err)
			}
			w.now = w.now.Add(later - time.Second)
		case word == "unguarded":
			d.c.Guarded, d.c.Guard = false, 0
		case !isOption:
			d.c.At = w.now
			w.envelope(d, env, word, strings.TrimSpace(rest))
			return
		case name == "by":
			d.c.Writer = events.Writer(value)
		case name == "guard":
			d.c.Guard = number(w.t, value)
		case name == "epoch":
			env[name] = number(w.t, value)
		default:
			env[name] = value
		}
		line = strings.TrimSpace(rest)
	}
}

// envelope makes the CloudEvent of a line; what the options did not say is what a lawful writer would have said.
func (w *world) envelope(d *draft, env map[string]any, kind, data string) {
	switch kind {
	case "raw":
		d.raw, d.c.Writer = data, events.Writer(orElse(string(d.c.Writer), "harness"))
		return
	case "event":
		d.envelopes, d.c.Writer = append(d.envelopes, data), events.Writer(orElse(string(d.c.Writer), "harness"))
		return
	}
	var ids map[string]any
	data = orElse(data, "{}")
	if json.Unmarshal([]byte(data), &ids) != nil {
		ids = nil // strange data is the point of some stories
	}
	if kind == "session.opened" || kind == "session.claimed" {
		d.incarnation = fmt.Sprint(ids["incarnation"])
		if kind == "session.claimed" {
			d.epoch++
		}
	}
	if d.c.Writer == "" {
		d.c.Writer = usualWriter(events.Kind(kind))
	}
	entity, _, _ := strings.Cut(kind, ".")
	subject := map[string]any{"session": storyRef.Session, "usage": orElse(fmt.Sprint(ids["turn"]), "s1"), "retry": ids["turn"], "tool": ids["call"]}[entity]
	if subject == nil {
		subject = ids[entity]
	}
	incarnation := d.incarnation
	if inc, ok := env["inc"].(string); ok {
		incarnation = inc
		delete(env, "inc")
	}
	source := events.ServiceSource(string(d.c.Writer), "a")
	if d.c.Writer == events.WriterHarness {
		source = events.HarnessSource(storyRef.Harness, incarnation)
	}
	usual := map[string]any{"specversion": "1.0", "session": storyRef.Session, "time": w.now.Format(time.RFC3339),
		"id": fmt.Sprintf("e%d-%d", d.c.Seq, len(d.envelopes)), "source": source, "type": events.TypePrefix + kind,
		"subject": subject, "epoch": d.epoch, "data": json.RawMessage(data)}
	for name, value := range usual {
		if _, said := env[name]; !said {
			env[name] = value
		}
	}
	body, err := json.Marshal(env)
	if err != nil {
		w.t.Fatalf("%s %s: %v", kind, data, err)
	}
	d.envelopes = append(d.envelopes, string(body))
}

// usualWriter is who says facts of a kind: the harness, if it may.
func usualWriter(k events.Kind) events.Writer {
	spec := events.Lookup(k)
	if spec == nil || spec.May(events.WriterHarness) {
		return events.WriterHarness
	}
	return spec.By[0]
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
