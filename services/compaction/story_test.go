package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "rewrite what the stories in testdata come to")

// began is when every story begins: the commit n of the log is stored n seconds later.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story is a history of one session and what is decided about it.
//
//	-- facts --         "<seq>[/writer[=person]] <kind> <data>": commits; lines with the same seq are one; "late" before it: ignored
//	-- at --            the instant of what follows, in seconds; else that of the last commit
//	-- progress --      the instant of the last sign of life, in seconds; else that of the beginning
//	-- decide [idle] -- what is decided and appended, and when to look again
//	-- wish --          "<verb> <request>"
//	-- comes to --      the facts that it appends, or the refusal
//	-- state --         what comes of it
type story struct {
	t    failer
	now  time.Time
	sign time.Time // of life, the last
	s    *session.State
	log  map[uint64]*events.Commit
	wish string
	by   string // the person who says a fact
}

// failer is a test, or one attempt of a property.
type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newStory(t failer) *story {
	return &story{t: t, s: session.New(events.Ref{Harness: "h", Session: "s"}), log: map[uint64]*events.Commit{}, now: began, sign: began}
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
			got := newStory(t).tell(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("the story now goes:\n%s\n(go test ./services/compaction -run Stories -update rewrites it; read the diff)", got)
			}
		})
	}
}

// tell runs a story and returns it as it really goes.
func (y *story) tell(text string) string {
	var out strings.Builder
	section := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, "-- "); ok {
			section = strings.TrimSuffix(rest, " --")
			out.WriteString(line)
			switch section {
			case "decide", "decide idle":
				out.WriteString(y.decide(section == "decide idle"))
			case "comes to":
				out.WriteString(y.carryOut())
			case "state":
				out.WriteString(y.state())
			}
			continue
		}
		switch section {
		case "decide", "decide idle", "comes to", "state":
			continue // what was there is replaced
		case "facts":
			y.fact(trimmed)
		case "wish":
			y.wish = trimmed
		case "at":
			if trimmed != "" {
				y.now = began.Add(time.Duration(atoi(y.t, trimmed)) * time.Second)
			}
		case "progress":
			if trimmed != "" {
				y.sign = began.Add(time.Duration(atoi(y.t, trimmed)) * time.Second)
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

func atoi(t failer, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fact appends one line of facts, which has to count, or with "late" before it, not to.
func (y *story) fact(line string) {
	if line == "" {
		return
	}
	line, late := strings.CutPrefix(y.named(line), "late ")
	parts := strings.SplitN(line, " ", 3)
	number, writer, _ := strings.Cut(parts[0], "/")
	writer, y.by, _ = strings.Cut(writer, "=")
	seq := uint64(atoi(y.t, number))
	if at := began.Add(time.Duration(seq) * time.Second); at.After(y.now) {
		y.now = at
	}
	if counted := y.happen(seq, events.Writer(writer), parts[1], parts[2]); counted == late {
		y.t.Fatalf("%s: counts: %v, %+v", line, counted, y.s.Ignored.Last)
	}
}

// named puts in the ids that a decision made up: $compaction is the open one, $turn the one
// asked for, else the open one, $last the one that ended last, and $last-compaction.
func (y *story) named(line string) string {
	if c := y.s.Compaction; c != nil {
		line = strings.ReplaceAll(line, "$compaction", c.ID)
	}
	if l := y.s.LastCompaction; l != nil {
		line = strings.ReplaceAll(line, "$last-compaction", l.ID)
	}
	if l := y.s.LastTurn; l != nil {
		line = strings.ReplaceAll(line, "$last", l.ID)
	}
	switch {
	case y.s.Pending.Turn != nil:
		line = strings.ReplaceAll(line, "$turn", y.s.Pending.Turn.ID)
	case y.s.Turn != nil:
		line = strings.ReplaceAll(line, "$turn", y.s.Turn.ID)
	}
	return line
}

// happen appends one fact, from the writer who usually says it, and says whether it counted.
func (y *story) happen(seq uint64, w events.Writer, kind, data string) bool {
	spec := events.Lookup(events.Kind(kind))
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
	epoch, incarnation := max(y.s.Epoch, 1), y.s.Incarnation
	switch kind {
	case "session.claimed":
		epoch, incarnation = y.s.Epoch+1, v.Incarnation
	case "session.opened":
		incarnation = v.Incarnation
	}
	source := events.ServiceSource(string(w), "x")
	switch {
	case w == events.WriterHarness:
		source = events.HarnessSource("h", incarnation)
	case y.by != "":
		source = events.PersonSource(y.by)
	}
	entity, _, _ := strings.Cut(kind, ".")
	id := map[string]string{"session": "s", "message": v.Message, "turn": v.Turn, "retry": v.Turn,
		"tool": v.Call, "prompt": v.Prompt, "compaction": v.Compaction, "usage": v.Turn}[entity]
	raw := fmt.Sprintf(`[{"specversion":"1.0","id":"%d","source":%q,"type":"holdfast.%s","subject":%q,"time":%q,"session":"s","epoch":%d,"data":%s}]`,
		seq, source, kind, id, y.now.Format(time.RFC3339), epoch, data)
	evs, err := events.DecodeBatch(y.s.Ref(), []byte(raw))
	if err != nil || evs[0].Err != nil {
		y.t.Fatalf("%s %s: %v %v", kind, data, err, evs[0].Err)
	}
	before := y.s.Ignored.Count
	y.append(w, seq, evs)
	if y.s.Parked > 0 {
		y.t.Fatalf("%s %s was parked", kind, data)
	}
	return y.s.Ignored.Count == before
}

// append folds a commit, or one more fact of the commit that was folded last.
func (y *story) append(w events.Writer, seq uint64, evs []events.Event) {
	c := events.Commit{Ref: y.s.Ref(), Writer: w, Seq: seq, At: y.now, Events: evs}
	if seq == y.s.Seq {
		y.log[seq].Events = append(y.log[seq].Events, evs...)
		y.s.Seq--
		y.s.Fold(&c)
		return
	}
	y.log[seq] = &c
	y.s.Fold(&c)
}

func (y *story) source(seq uint64) (*events.Commit, error) {
	if c := y.log[seq]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no commit %d", seq)
}

// decide decides, appends what is decided, and checks that a second look finds nothing.
func (y *story) decide(idle bool) string {
	var out strings.Builder
	in := Input{Now: y.now, Progress: y.sign, Idle: idle}
	d := Decide(y.s, in)
	y.tellFacts(&out, d.Facts)
	if look := int(d.Look.Sub(began) / time.Second); d.Watch {
		fmt.Fprintf(&out, "watch %d\n", look)
	} else if !d.Look.IsZero() {
		fmt.Fprintf(&out, "look %d\n", look)
	}
	if !d.Idle.IsZero() {
		fmt.Fprintf(&out, "idle since %d\n", int(d.Idle.Sub(began)/time.Second))
	}
	y.commit(d.Facts)
	if again := Decide(y.s, in); len(again.Facts) > 0 {
		y.t.Fatalf("a second look finds %v after %v", again.Facts, d.Facts)
	}
	return orNothing(out.String())
}

// carryOut decides on the wish, and appends what it comes to.
func (y *story) carryOut() string {
	verb, body, _ := strings.Cut(y.wish, " ")
	var o Outcome
	var err error
	switch verb {
	case "send":
		o, err = Send(y.s, request[SendWish](y.t, body), y.now, y.source)
	case "withdraw":
		o, err = Withdraw(y.s, request[WithdrawWish](y.t, body), y.now)
	case "compact":
		o, err = Compact(y.s, request[CompactWish](y.t, body), y.now)
	case "check":
		v, err := Check(y.s, request[CheckWish](y.t, body), y.now)
		if err != nil {
			return err.Error() + "\n"
		}
		return encoded(y.t, v) + "\n"
	default:
		y.t.Fatalf("no such wish: %s", y.wish)
	}
	if refusal, ok := errors.AsType[*events.Refusal](err); ok {
		return refusal.Error() + "\n  " + string(refusal.Body()) + "\n"
	} else if err != nil {
		y.t.Fatal(err)
	}
	if len(o.Facts) == 0 {
		return fmt.Sprintf("done at %d\n", o.Seq)
	}
	var out strings.Builder
	y.tellFacts(&out, o.Facts)
	y.commit(o.Facts)
	if again := Decide(y.s, Input{Now: y.now}); len(again.Facts) > 0 {
		y.t.Fatalf("a look after %v finds %v: it belongs into the same commit", o.Facts, again.Facts)
	}
	return out.String()
}

func request[W any](t failer, body string) (w W) {
	if err := json.Unmarshal([]byte(body), &w); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return w
}

func (y *story) tellFacts(out *strings.Builder, facts []events.Fact) {
	for _, f := range facts {
		fmt.Fprintf(out, "%s %s\n", f.Kind(), encoded(y.t, f))
	}
}

// commit appends what was decided: all of it has to count.
func (y *story) commit(facts []events.Fact) {
	if len(facts) == 0 {
		return
	}
	var evs []events.Event
	for i, f := range facts {
		evs = append(evs, events.New(strconv.Itoa(i), events.ServiceSource(Name, "x"), y.s.Ref(), y.s.Epoch, y.now, f))
	}
	if _, err := events.EncodeBatch(evs); err != nil {
		y.t.Fatalf("cannot be appended: %v", err)
	}
	before, parked := y.s.Ignored.Count, y.s.Parked
	y.append(events.WriterCompaction, y.s.Seq+1, evs)
	if y.s.Ignored.Count != before || y.s.Parked != parked {
		y.t.Fatalf("what was decided does not count: %+v of %v", y.s.Ignored.Last, facts)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing\n"
	}
	return s
}

func encoded(t failer, v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(buf.String())
}

// state is what a person would see of the session.
func (y *story) state() string {
	s := y.s
	var out strings.Builder
	fmt.Fprintf(&out, "seq=%d %s", s.Seq, s.Phase)
	say := func(format string, args ...any) { fmt.Fprintf(&out, " "+format, args...) }
	if s.Owned {
		say("owned-by=%s", s.Incarnation)
	}
	if t := s.Turn; t != nil {
		say("turn=%s,%s", t.ID, t.Cause)
	}
	if l := s.LastTurn; l != nil {
		say("last=%s,%s", l.ID, l.Outcome)
	}
	for _, m := range s.Queue {
		say("queued=%s", m.ID)
	}
	if p := s.Pending.Turn; p != nil {
		say("pending=%s,%s", p.Cause, p.Message)
	}
	if p := s.Pending.Stop; p != nil {
		say("stop=%s,%s", p.Turn, p.Actor)
	}
	if c := s.Compaction; c != nil {
		say("compaction=%s,%s", c.State, c.Reason)
		if c.Error != nil {
			say("because=%s", c.Error.Kind)
		}
	}
	if l := s.LastCompaction; l != nil {
		say("compacted=%s,%d", l.Outcome, l.Failures)
	}
	if r := s.Retry; r.State != "" {
		say("retry=%s,%s", r.State, r.Reason)
	}
	for _, id := range s.PendingPrompts() {
		say("awaits=%s", id)
	}
	if u := s.Usage; u != nil {
		say("used=%d/%d warn=%v", u.Used, u.Limit, u.Warn)
	}
	return out.String() + "\n"
}
