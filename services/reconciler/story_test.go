package reconciler

import (
	"bytes"
	"encoding/json"
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

// story is a history and what is decided about it.
//
//	-- facts [session] --   "<seq>[/writer] <kind> <data>": commits; lines with the same seq are one; "late" before it: ignored
//	-- owner [session] --   alive | starting [until] | dead [superseded_by]
//	-- at --                the instant of the decision, in seconds
//	-- decide --            what is decided, children first, and appended
//	-- state --             what comes of it
type story struct {
	t        failer
	now      time.Time
	last     uint64
	names    []string
	sessions map[string]*session.State
	owners   map[string]Owner
	log      map[uint64]*events.Commit
}

// failer is a test, or one attempt of a property.
type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newStory(t failer) *story {
	return &story{t: t, sessions: map[string]*session.State{}, owners: map[string]Owner{}, log: map[uint64]*events.Commit{}}
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
				t.Errorf("the story now goes:\n%s\n(go test ./services/reconciler -run Stories -update rewrites it; read the diff)", got)
			}
		})
	}
}

// tell runs a story and returns it as it really goes.
func (y *story) tell(text string) string {
	var out strings.Builder
	section, name := "", ""
	for _, line := range strings.SplitAfter(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, "-- "); ok {
			section, name, _ = strings.Cut(strings.TrimSuffix(rest, " --"), " ")
			out.WriteString(line)
			switch section {
			case "decide":
				out.WriteString(y.decide())
			case "state":
				out.WriteString(y.states())
			}
			continue
		}
		switch section {
		case "decide", "state":
			continue // what was there is replaced
		case "facts":
			y.fact(orS(name), trimmed)
		case "owner":
			y.owner(orS(name), trimmed)
		case "at":
			if trimmed != "" {
				y.now = began.Add(time.Duration(atoi(y.t, trimmed)) * time.Second)
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

func orS(name string) string {
	if name == "" {
		return "s"
	}
	return name
}

func atoi(t failer, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (y *story) state(name string) *session.State {
	if y.sessions[name] == nil {
		y.names = append(y.names, name)
		y.sessions[name] = session.New(events.Ref{Harness: "h", Session: name})
	}
	return y.sessions[name]
}

// fact appends one line of facts, which has to count, or with "late" before it, not to.
func (y *story) fact(name, line string) {
	if line == "" {
		return
	}
	line, late := strings.CutPrefix(line, "late ")
	parts := strings.SplitN(line, " ", 3)
	number, writer, _ := strings.Cut(parts[0], "/")
	seq := uint64(atoi(y.t, number))
	if counted := y.happen(name, seq, began.Add(time.Duration(seq)*time.Second), events.Writer(writer), parts[1], parts[2]); counted == late {
		y.t.Fatalf("%s: counts: %v, %+v", line, counted, y.sessions[name].Ignored.Last)
	}
}

// happen appends one fact, from the writer who usually says it, and says whether it counted.
func (y *story) happen(name string, seq uint64, at time.Time, w events.Writer, kind, data string) bool {
	s := y.state(name)
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
	id := map[string]string{"session": name, "message": v.Message, "turn": v.Turn, "retry": v.Turn,
		"tool": v.Call, "prompt": v.Prompt, "compaction": v.Compaction, "usage": v.Turn}[entity]
	raw := fmt.Sprintf(`[{"specversion":"1.0","id":"%d","source":%q,"type":"holdfast.%s","subject":%q,"time":%q,"session":%q,"epoch":%d,"data":%s}]`,
		seq, source, kind, id, at.Format(time.RFC3339), name, epoch, data)
	evs, err := events.DecodeBatch(s.Ref(), []byte(raw))
	if err != nil || evs[0].Err != nil {
		y.t.Fatalf("%s %s: %v %v", kind, data, err, evs[0].Err)
	}
	before := s.Ignored.Count
	y.append(s, w, seq, at, evs)
	if s.Parked > 0 {
		y.t.Fatalf("%s %s was parked", kind, data)
	}
	return s.Ignored.Count == before
}

// append folds a commit, or one more fact of the commit that was folded last.
func (y *story) append(s *session.State, w events.Writer, seq uint64, at time.Time, evs []events.Event) {
	c := events.Commit{Ref: s.Ref(), Writer: w, Seq: seq, At: at, Events: evs}
	if seq == s.Seq {
		y.log[seq].Events = append(y.log[seq].Events, evs...)
		s.Seq--
		s.Fold(&c)
		return
	}
	y.log[seq] = &c
	y.last = max(y.last, seq)
	s.Fold(&c)
}

func (y *story) owner(name, line string) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return
	}
	var o Owner
	switch f[0] {
	case "dead":
		o.Life = Dead
		if len(f) > 1 {
			o.SupersededBy = f[1]
		}
	case "starting":
		o.Life = Starting
		if len(f) > 1 {
			o.Look = began.Add(time.Duration(atoi(y.t, f[1])) * time.Second)
		}
	}
	y.owners[name] = o
}

func (y *story) source(seq uint64) (*events.Commit, error) {
	if c := y.log[seq]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no commit %d", seq)
}

// leavesFirst are the names of all sessions, children before parents.
func (y *story) leavesFirst() []string {
	var order []string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, other := range y.names {
			if y.sessions[other].Parent == name {
				visit(other)
			}
		}
		order = append(order, name)
	}
	for _, name := range y.names {
		visit(name)
	}
	return order
}

func (y *story) input(name string) Input {
	in := Input{Now: y.now, Owner: y.owners[name]}
	for _, other := range y.names {
		if y.sessions[other].Parent == name {
			in.Children = append(in.Children, y.sessions[other])
		}
	}
	return in
}

// decide decides on all sessions, appends what is decided, and checks that a second look finds nothing.
func (y *story) decide() string {
	var out strings.Builder
	for _, name := range y.leavesFirst() {
		s := y.sessions[name]
		d, err := Decide(s, y.input(name), y.source)
		if err != nil {
			y.t.Fatal(err)
		}
		for _, f := range d.Facts {
			fmt.Fprintf(&out, "%s %s %s\n", name, f.Kind(), compact(y.t, f))
		}
		if !d.Look.IsZero() {
			fmt.Fprintf(&out, "%s look %d\n", name, int(d.Look.Sub(began)/time.Second))
		}
		y.commit(s, d.Facts)
		if again, err := Decide(s, y.input(name), y.source); err != nil || len(again.Facts) > 0 {
			y.t.Fatalf("a second look finds %v, %v", again.Facts, err)
		}
	}
	return orNothing(out.String())
}

// commit appends what was decided.
func (y *story) commit(s *session.State, facts []events.Fact) {
	if len(facts) == 0 {
		return
	}
	var evs []events.Event
	for i, f := range facts {
		evs = append(evs, events.New(strconv.Itoa(i), events.ServiceSource(Name, "x"), s.Ref(), s.Epoch, y.now, f))
	}
	if _, err := events.EncodeBatch(evs); err != nil {
		y.t.Fatalf("cannot be appended: %v", err)
	}
	before, parked := s.Ignored.Count, s.Parked
	y.append(s, events.WriterReconciler, y.last+1, y.now, evs)
	if s.Ignored.Count != before || s.Parked != parked {
		y.t.Fatalf("what was decided does not count: %+v of %v", s.Ignored.Last, facts)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing\n"
	}
	return s
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

// states is what a person would see of all sessions.
func (y *story) states() string {
	var out strings.Builder
	for _, name := range y.names {
		s := y.sessions[name]
		fmt.Fprintf(&out, "%s %s", name, s.Phase)
		if s.Owned {
			fmt.Fprintf(&out, " owned-by=%s", s.Incarnation)
		}
		if s.Turn != nil {
			fmt.Fprintf(&out, " turn=%s", s.Turn.ID)
		}
		if l := s.LastTurn; l != nil {
			fmt.Fprintf(&out, " last=%s,%s,%s", l.ID, l.Outcome, l.Reason)
		}
		for _, id := range sortedKeys(s.Tools) {
			fmt.Fprintf(&out, " call=%s", id)
		}
		for _, id := range sortedKeys(s.Prompts) {
			fmt.Fprintf(&out, " prompt=%s,%s", id, s.Prompts[id].Status)
		}
		for _, w := range s.WaitsFor {
			fmt.Fprintf(&out, " holds=%s,%s", w.Call, w.Child)
		}
		if p := s.Pending.Turn; p != nil {
			fmt.Fprintf(&out, " pending=%s", p.Cause)
		}
		if c := s.Compaction; c != nil {
			fmt.Fprintf(&out, " compaction=%s", c.State)
		}
		if s.Retry.State != "" {
			fmt.Fprintf(&out, " retry=%s", s.Retry.State)
		}
		for _, e := range s.Recent {
			if e.Late != nil {
				fmt.Fprintf(&out, " late=%s,%s", e.ID, e.Outcome)
			}
		}
		if n := len(s.Queue); n > 0 {
			fmt.Fprintf(&out, " queued=%d", n)
		}
		out.WriteString("\n")
	}
	return out.String()
}
