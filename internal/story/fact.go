package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// commit is a commit while its lines are read.
type commit struct {
	*events.Commit
	envelopes   []string
	raw         string // a body as it came
	late        int    // lines that the fold has to ignore
	epoch       uint64
	incarnation string
}

// Facts appends commits to a session: adjacent lines with the same number are one commit.
func (y *Story) Facts(name string, lines ...string) {
	y.t.Helper()
	var c *commit
	flush := func() {
		if c != nil {
			y.flush(c)
		}
		c = nil
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		head, rest, _ := strings.Cut(line, " ")
		if head == "again" {
			flush()
			y.again(y.number(rest))
			continue
		}
		if seq := y.number(head); c == nil || c.Seq != seq {
			flush()
			c = y.begin(name, seq)
		}
		y.line(c, strings.TrimSpace(rest))
	}
	flush()
}

// begin returns a commit without lines. It is stored as many seconds after the beginning as its seq says, or at the
// story's clock if that is later.
func (y *Story) begin(name string, seq uint64) *commit {
	s := y.State(name)
	at := Began().Add(time.Duration(seq) * time.Second)
	if y.Now.After(at) {
		at = y.Now
	}
	return &commit{
		Commit: &events.Commit{Ref: s.Ref(), Seq: seq, Guard: s.Seq, Guarded: true, At: at},
		epoch:  max(s.Epoch, 1), incarnation: s.Incarnation,
	}
}

// flush folds a commit and checks how many of its lines the fold ignored.
func (y *Story) flush(c *commit) {
	y.t.Helper()
	s := y.State(c.Ref.Session)
	before := s.Ignored.Count
	if c.At.After(y.Now) {
		y.Now = c.At
	}
	body := c.raw
	if body == "" {
		body = "[" + strings.Join(c.envelopes, ",") + "]"
	}
	noted := len(y.ignored)
	y.fold(c.Commit, body)
	if c.late == 0 {
		// a story shows each ignored fact
		return
	}
	if n := s.Ignored.Count - before; n != uint64(c.late) {
		y.t.Fatalf("commit %d: %d lines are late, but the fold ignored %d; not shown so far, as ignored or parked: %q",
			c.Seq, c.late, n, slices.Concat(y.ignored, y.parked))
	}
	y.ignored = y.ignored[:noted]
}

func (y *Story) number(s string) uint64 {
	y.t.Helper()
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil {
		y.t.Fatalf("%q is no seq: a line of facts begins with the seq of its commit", s)
	}
	return n
}

// line reads one line of a commit: options, then the kind, then the data.
func (y *Story) line(c *commit, line string) {
	y.t.Helper()
	env := map[string]any{}
	for {
		word, rest, _ := strings.Cut(line, " ")
		name, value, isOption := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "@"):
			c.At = y.Instant(word)
		case word == "late":
			c.late++
		case word == "unguarded":
			c.Guarded, c.Guard = false, 0
		case !isOption:
			y.envelope(c, env, word, strings.TrimSpace(rest))
			return
		case name == "by":
			c.Writer = events.Writer(value)
		case name == "as":
			env["source"] = events.PersonSource(value)
		case name == "guard":
			c.Guard = y.number(value)
		case name == "epoch":
			env[name] = y.number(value)
		default:
			env[name] = value
		}
		line = strings.TrimSpace(rest)
	}
}

// envelope adds the CloudEvent of a line. Options override what a correct writer sets.
func (y *Story) envelope(c *commit, env map[string]any, kind, data string) {
	y.t.Helper()
	switch kind {
	case "raw":
		c.raw, c.Writer = data, writerOr(c.Writer, events.WriterHarness)
		return
	case "event":
		c.envelopes, c.Writer = append(c.envelopes, data), writerOr(c.Writer, events.WriterHarness)
		return
	}
	data = y.resolve(c.Ref.Session, data)
	var ids map[string]any
	if json.Unmarshal([]byte(data), &ids) != nil {
		// some stories are about unreadable data
		ids = nil
	}
	switch kind {
	case "session.claimed":
		c.epoch++
		fallthrough
	case "session.opened":
		c.incarnation = fmt.Sprint(ids["incarnation"])
	}
	c.Writer = writerOr(c.Writer, usualWriter(kind))
	incarnation := c.incarnation
	if inc, ok := env["inc"].(string); ok {
		incarnation = inc
		delete(env, "inc")
	}
	source := events.ServiceSource(string(c.Writer), "x")
	if c.Writer == events.WriterHarness {
		source = events.HarnessSource(Harness, incarnation)
	}
	usual := map[string]any{
		"specversion": "1.0", "session": c.Ref.Session, "time": c.At.Format(time.RFC3339),
		"id": fmt.Sprintf("e%d-%d", c.Seq, len(c.envelopes)), "source": source, "type": events.TypePrefix + kind,
		"subject": subject(c.Ref.Session, kind, ids), "epoch": c.epoch, "data": json.RawMessage(data),
	}
	for name, value := range usual {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	body, err := json.Marshal(env)
	if err != nil {
		y.t.Fatalf("%s %s: %v", kind, data, err)
	}
	c.envelopes = append(c.envelopes, string(body))
}

// subject returns the id of the entity that a fact is about.
func subject(name, kind string, ids map[string]any) any {
	entity, _, _ := strings.Cut(kind, ".")
	switch entity {
	case "session":
		return name
	case "usage":
		if ids["turn"] == nil {
			return name
		}
		return ids["turn"]
	case "retry":
		return ids["turn"]
	case "tool":
		return ids["call"]
	default:
		return ids[entity]
	}
}

func writerOr(w, other events.Writer) events.Writer {
	if w == "" {
		return other
	}
	return w
}

// usualWriter returns the first writer of a kind in the table of kinds.
func usualWriter(kind string) events.Writer {
	if spec := events.Lookup(events.Kind(kind)); spec != nil {
		return spec.By[0]
	}
	return events.WriterHarness
}

var (
	nameRE    = regexp.MustCompile(`\$(requested|turn|last-compaction|last|compaction)\b`)
	readAtRE  = regexp.MustCompile(`"(@-?[0-9][0-9.a-zµ]*)"`)
	printAtRE = regexp.MustCompile(`"(2026-[0-9T:.-]+Z)"`)
)

// resolve replaces names by the ids that the services drew, and "@9s" by an instant. It returns "{}" for no data.
func (y *Story) resolve(name, data string) string {
	y.t.Helper()
	if data == "" {
		return "{}"
	}
	resolved, missing := Resolve(y.State(name), data)
	if missing != "" {
		y.t.Fatalf("%s: there is no %s in session %s", data, missing, name)
	}
	return resolved
}

// Resolve replaces $requested by the id of the requested turn, $turn by that of the open turn, $last by that of the
// turn that ended last, $compaction and $last-compaction likewise, and "@9s" by an instant. It returns the first name
// that the session has no id for.
func Resolve(s *session.State, data string) (resolved, missing string) {
	ids := map[string]string{}
	if p := s.Pending.Turn; p != nil {
		ids["$requested"] = p.ID
	}
	if t := s.Turn; t != nil {
		ids["$turn"] = t.ID
	}
	if l := s.LastTurn; l != nil {
		ids["$last"] = l.ID
	}
	if c := s.Compaction; c != nil {
		ids["$compaction"] = c.ID
	}
	if l := s.LastCompaction; l != nil {
		ids["$last-compaction"] = l.ID
	}
	data = nameRE.ReplaceAllStringFunc(data, func(name string) string {
		id, ok := ids[name]
		if !ok && missing == "" {
			missing = name
		}
		return id
	})
	return readAtRE.ReplaceAllStringFunc(data, func(quoted string) string {
		d, err := time.ParseDuration(strings.Trim(quoted, `"@`))
		if err != nil {
			return quoted
		}
		return Began().Add(d).Format(`"` + time.RFC3339Nano + `"`)
	}), missing
}

// printed returns JSON with instants as stories show them.
func printed(text string) string {
	return printAtRE.ReplaceAllStringFunc(text, func(quoted string) string {
		at, err := time.Parse(time.RFC3339Nano, strings.Trim(quoted, `"`))
		if err != nil {
			return quoted
		}
		return `"` + Instant(at) + `"`
	})
}

// JSON returns a value as stories show it.
func JSON(t T, v any) string {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatalf("%v", err)
	}
	return printed(strings.TrimSpace(buf.String()))
}

// Append appends a fact of the kind's usual writer, or of w, at an instant, as a commit of its own. It reports whether
// the fact counts: random histories contain facts that the fold ignores.
func (y *Story) Append(name string, at time.Time, w events.Writer, kind, data string) bool {
	y.t.Helper()
	if events.Lookup(events.Kind(kind)) == nil {
		y.t.Fatalf("no such kind: %s", kind)
	}
	s := y.State(name)
	c := y.begin(name, max(y.Last, s.Seq)+1)
	c.At, c.Writer = at, w
	before, parked := s.Ignored.Count, s.Parked
	y.envelope(c, map[string]any{}, kind, data)
	y.fold(c.Commit, "["+strings.Join(c.envelopes, ",")+"]")
	if s.Parked != parked {
		y.t.Fatalf("%s %s was parked: %v", kind, data, y.parked)
	}
	return s.Ignored.Count == before
}

// Commit appends facts of a writer as one commit, at the clock. Each of them has to count.
func (y *Story) Commit(name string, w events.Writer, source string, facts ...events.Fact) {
	y.t.Helper()
	y.commit(name, w, func(events.Fact) string { return source }, facts)
}

func (y *Story) commit(name string, w events.Writer, author func(events.Fact) string, facts []events.Fact) {
	y.t.Helper()
	if len(facts) == 0 {
		return
	}
	s := y.State(name)
	c := y.begin(name, max(y.Last, s.Seq)+1)
	c.Writer, c.At = w, y.Now
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		if f.Kind() == "session.claimed" {
			c.epoch++
		}
		evs[i] = events.New(fmt.Sprintf("e%d-%d", c.Seq, i), author(f), s.Ref(), c.epoch, y.Now, f)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		y.t.Fatalf("the facts cannot be appended: %v", err)
	}
	before, parked := s.Ignored.Count, s.Parked
	y.fold(c.Commit, string(body))
	if s.Ignored.Count != before || s.Parked != parked {
		y.t.Fatalf("the facts do not count: %+v of %v", s.Ignored.Last, facts)
	}
}

// Fold appends a commit with a body, and notes what the fold reports.
func (y *Story) Fold(c *events.Commit, body string) { y.fold(c, body) }

func (y *Story) fold(c *events.Commit, body string) {
	y.t.Helper()
	c.Events, c.Err = events.DecodeBatch(c.Ref, []byte(body))
	y.order, y.bodies = append(y.order, c), append(y.bodies, body)
	y.Log[c.Seq], y.Last = c, max(y.Last, c.Seq)
	s := y.State(c.Ref.Session)
	before := s.Ignored.Count
	res := s.Fold(c)
	if !res.Folded {
		y.t.Errorf("commit %d was not folded", c.Seq)
	}
	if res.Gap {
		y.parked = append(y.parked, fmt.Sprintf("%d: gap, its writer had seen %d", c.Seq, c.Guard))
	}
	for _, p := range res.Parked {
		y.parked = append(y.parked, fmt.Sprintf("%d[%d] %s: %v", c.Seq, p.Index, p.Why, p.Err))
	}
	for _, e := range res.Feed {
		derived := ""
		if e.Derived {
			derived = " derived " + JSON(y.t, e.Fact)
		}
		y.feed = append(y.feed,
			fmt.Sprintf("%d %s %s%s", c.Seq, e.Type()[len(events.TypePrefix):], e.Subject, derived))
	}
	if n := s.Ignored.Count - before; n > 0 {
		last := s.Ignored.Last
		y.ignored = append(y.ignored, fmt.Sprintf("%d: %d, the last %s by %s: %s",
			c.Seq, n, strings.TrimPrefix(last.Type, events.TypePrefix), last.Writer, last.Why))
	}
}

// again delivers a commit a second time.
func (y *Story) again(seq uint64) {
	y.t.Helper()
	c := y.Log[seq]
	if c == nil {
		y.t.Fatalf("there is no commit %d to deliver again", seq)
	}
	if res := y.State(c.Ref.Session).Fold(c); res.Folded {
		y.t.Errorf("commit %d was folded twice", seq)
	}
}

func noCommit(seq uint64) error { return fmt.Errorf("%w: %d", session.ErrNoCommit, seq) }
