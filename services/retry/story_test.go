package retry

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "rewrite the results in the stories of testdata")

// began is the instant at which every story begins. Commit n of the log is stored n seconds later, unless -- at -- sets
// another instant.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story is a session's history with the decisions about it. The sections of its text are:
//
//	-- facts --      "<seq>[/writer] <kind> <data>": commits; lines with the same seq are one commit;
//	                 "late" before the line: the fold ignores it;
//	                 @asked is the id of the requested turn, @open the id of the open turn
//	-- at --         the instant of what follows (facts, decisions, requests), in seconds; empty: the fact's own
//	-- progress --   the instant of the last progress ping, in seconds
//	-- jitter --     the jitter
//	-- repeat n --   the turn is retried n times, and fails each time with this kind
//	-- wish --       now, cancel or resume, and the person; the result is shown and appended
//	-- decide --     the decision, which is appended
//	-- state --      the state that follows
type story struct {
	t   failer
	s   *session.State
	in  Input
	now time.Time // zero: the fact's own instant
}

// failer is a test or one run of a property.
type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newStory(t failer) *story {
	return &story{t: t, s: session.New(events.Ref{Harness: "h", Session: "s"})}
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newStory(t).run(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("the result is:\n%s\n(go test ./services/retry -run Stories -update rewrites it; read "+
					"the diff)", got)
			}
		})
	}
}

// run runs a story and returns it with the actual results.
func (y *story) run(text string) string {
	var out strings.Builder
	section, arg := "", ""
	for _, line := range strings.SplitAfter(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, "-- "); ok {
			section, arg, _ = strings.Cut(strings.TrimSuffix(rest, " --"), " ")
			out.WriteString(line)
			switch section {
			case "decide":
				out.WriteString(y.decide())
			case "state":
				out.WriteString(y.state())
			case "at":
				y.now = time.Time{}
			}
			continue
		}
		switch section {
		case "decide", "state":
			continue // replaced by the actual result
		case "wish":
			if !strings.HasPrefix(trimmed, "=") {
				out.WriteString(line)
			}
			if trimmed != "" && !strings.HasPrefix(trimmed, "=") {
				out.WriteString("= " + y.request(trimmed) + "\n")
			}
			continue
		case "facts":
			y.fact(trimmed)
		case "repeat":
			y.repeat(arg, trimmed)
		case "at", "progress", "jitter":
			y.set(section, trimmed)
		}
		out.WriteString(line)
	}
	return out.String()
}

// repeat lets the turn fail n times.
func (y *story) repeat(times, kind string) {
	n, err := strconv.Atoi(times)
	if err != nil || kind == "" {
		y.t.Fatalf("repeat %q: want a number, and a kind below", times)
	}
	for range n {
		y.decide()
		y.now = y.s.Retry.DueAt
		y.decide()
		if y.s.Pending.Turn == nil {
			y.t.Fatalf("not retried: %s", y.state())
		}
		y.fact(fmt.Sprintf(`%d turn.started {"turn":"@asked"}`, y.s.Seq+1))
		y.fact(fmt.Sprintf(`%d turn.failed {"turn":"@open","error":{"kind":%q,"text":"x"},"had_output":false}`,
			y.s.Seq+1, kind))
	}
}

func (y *story) set(what, value string) {
	if value == "" {
		return
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		y.t.Fatal(err)
	}
	at := began.Add(time.Duration(n * float64(time.Second)))
	switch what {
	case "at":
		y.now = at
	case "progress":
		y.in.Progress = at
	case "jitter":
		y.in.Jitter = n
	}
}

// clock returns the story's instant, or the instant of the last commit if the story has not set one.
func (y *story) clock() time.Time {
	if y.now.IsZero() {
		return y.s.UpdatedAt
	}
	return y.now
}

// fact appends one line of facts. The fact must count, or, after "late", must be ignored.
func (y *story) fact(line string) {
	if line == "" {
		return
	}
	if p := y.s.Pending.Turn; p != nil {
		line = strings.ReplaceAll(line, "@asked", p.ID)
	}
	if t := y.s.Turn; t != nil {
		line = strings.ReplaceAll(line, "@open", t.ID)
	}
	line, late := strings.CutPrefix(line, "late ")
	parts := strings.SplitN(line, " ", 3)
	number, writer, _ := strings.Cut(parts[0], "/")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || len(parts) != 3 {
		y.t.Fatalf("%s: want a number, a kind and data", line)
	}
	at := y.now
	if at.IsZero() {
		at = began.Add(time.Duration(seq) * time.Second)
	}
	if counted := y.happen(seq, at, events.Writer(writer), parts[1], parts[2]); counted == late {
		y.t.Fatalf("%s: counts: %v, %+v", line, counted, y.s.Ignored.Last)
	}
}

// happen appends one fact of the kind's usual writer and reports whether it counted.
func (y *story) happen(seq uint64, at time.Time, w events.Writer, kind, data string) bool {
	s, spec := y.s, events.Lookup(events.Kind(kind))
	if spec == nil {
		y.t.Fatalf("no such kind: %s", kind)
	}
	if w == "" {
		w = spec.By[0]
	}
	var v struct{ Incarnation, Message, Turn, Call, Prompt, Compaction string }
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		y.t.Fatalf("%s %s: %v", kind, data, err)
	}
	epoch, incarnation := max(s.Epoch, 1), s.Incarnation
	switch kind {
	case "session.claimed":
		epoch, incarnation = s.Epoch+1, v.Incarnation
	case "session.opened":
		incarnation = v.Incarnation
	}
	source := events.ServiceSource(string(w), "x")
	if w == events.WriterHarness {
		source = events.HarnessSource("h", incarnation)
	}
	entity, _, _ := strings.Cut(kind, ".")
	id := map[string]string{"session": "s", "message": v.Message, "turn": v.Turn, "retry": v.Turn,
		"tool": v.Call, "prompt": v.Prompt, "compaction": v.Compaction, "usage": v.Turn}[entity]
	raw := fmt.Sprintf(`[{"specversion":"1.0","id":"%d","source":%q,"type":"holdfast.%s","subject":%q,"time":%q,`+
		`"session":"s","epoch":%d,"data":%s}]`,
		seq, source, kind, id, at.Format(time.RFC3339), epoch, data)
	evs, err := events.DecodeBatch(s.Ref(), []byte(raw))
	if err != nil || evs[0].Err != nil {
		y.t.Fatalf("%s %s: %v %v", kind, data, err, evs[0].Err)
	}
	before := s.Ignored.Count
	if seq == s.Seq {
		s.Seq-- // another fact of the same commit
	}
	s.Fold(&events.Commit{Ref: s.Ref(), Writer: w, Seq: seq, At: at, Events: evs})
	if s.Parked > 0 {
		y.t.Fatalf("%s %s was parked", kind, data)
	}
	return s.Ignored.Count == before
}

// decide appends the decision. It checks that a second call decides the same.
func (y *story) decide() string {
	y.in.Now = y.clock()
	d, doc := Decide(y.s, y.in), y.s.Clone()
	if twice := Decide(doc, y.in); y.facts(twice.Facts) != y.facts(d.Facts) || !twice.Look.Equal(d.Look) {
		y.t.Fatalf("decided %v, and then %v", d, twice)
	}
	out := y.facts(d.Facts)
	if !d.Look.IsZero() {
		out += fmt.Sprintf("%s %s\n", map[bool]string{true: "watch", false: "look"}[d.Watch], seconds(d.Look))
	}
	y.commit(d.Facts, events.ServiceSource(Name, "x"))
	if out == "" {
		out = "nothing\n"
	}
	return out
}

func seconds(at time.Time) string {
	return strconv.FormatFloat(at.Sub(began).Seconds(), 'f', -1, 64)
}

func (y *story) facts(facts []events.Fact) string {
	var out strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&out, "%s %s\n", f.Kind(), compact(y.t, f))
	}
	return out.String()
}

// commit appends a decision's facts. All of them must count.
func (y *story) commit(facts []events.Fact, source string) {
	if len(facts) == 0 {
		return
	}
	s := y.s
	var evs []events.Event
	for i, f := range facts {
		evs = append(evs, events.New(strconv.Itoa(i), source, s.Ref(), s.Epoch, y.clock(), f))
	}
	if _, err := events.EncodeBatch(evs); err != nil {
		y.t.Fatalf("cannot be appended: %v", err)
	}
	before, parked := s.Ignored.Count, s.Parked
	s.Fold(&events.Commit{Ref: s.Ref(), Writer: events.WriterRetry, Seq: s.Seq + 1, At: y.clock(), Events: evs})
	if s.Ignored.Count != before || s.Parked != parked {
		y.t.Fatalf("the decision's facts do not count: %+v of %v", s.Ignored.Last, facts)
	}
}

var requests = map[string]func(*session.State) (session.Decision, error){"now": Now, "cancel": Cancel, "resume": Resume}

// request runs a person's request.
func (y *story) request(line string) string {
	verb, by, _ := strings.Cut(line, " ")
	d, err := requests[verb](y.s)
	if err != nil {
		refusal, ok := errors.AsType[*events.Refusal](err)
		if !ok {
			y.t.Fatal(err)
		}
		body := ""
		if refusal.Stands != nil {
			body = fmt.Sprintf(" [%s: %s]", refusal.Stands.Status, refusal.Stands.Reason)
		}
		return refusal.Error() + body
	}
	if len(d.Facts) == 0 {
		return fmt.Sprintf("nothing to append, see %d", d.Seq)
	}
	y.commit(d.Facts, events.PersonSource(by))
	return strings.ReplaceAll(strings.TrimSpace(y.facts(d.Facts)), "\n", "\n= ")
}

func compact(t failer, f events.Fact) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(buf.String())
}

// state returns the state in one line.
func (y *story) state() string {
	var out strings.Builder
	s := y.s
	out.WriteString(string(s.Phase))
	if s.Turn != nil {
		fmt.Fprintf(&out, " turn=%s,%s", s.Turn.ID, s.Turn.Cause)
	}
	if l := s.LastTurn; l != nil {
		fmt.Fprintf(&out, " last=%s,%s", l.ID, l.Outcome)
	}
	if p := s.Pending.Turn; p != nil {
		fmt.Fprintf(&out, " asked=%s,%s,of=%s", p.ID, p.Cause, p.OfTurn)
	}
	if s.Pending.Stop != nil {
		fmt.Fprintf(&out, " stop=%s,%s", s.Pending.Stop.Turn, s.Pending.Stop.Actor)
	}
	if r := s.Retry; r.State != "" || r.Attempt+r.SameFailures+r.Resumes > 0 {
		fmt.Fprintf(&out, " retry=%s,attempt=%d,same=%d,resumes=%d", r.State, r.Attempt, r.SameFailures, r.Resumes)
		if r.State == session.RetryScheduled {
			fmt.Fprintf(&out, ",due=%s", seconds(r.DueAt))
		}
		if r.Reason != "" {
			fmt.Fprintf(&out, ",reason=%s", r.Reason)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Prompts)) {
		fmt.Fprintf(&out, " prompt=%s,%s", id, s.Prompts[id].Status)
	}
	if n := len(s.Queue); n > 0 {
		fmt.Fprintf(&out, " queued=%d", n)
	}
	if !s.Policy.AutoRetry {
		out.WriteString(" auto_retry=off")
	}
	return out.String() + "\n"
}
