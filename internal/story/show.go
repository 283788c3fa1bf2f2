package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// show returns the lines of an output section that is the same for all packages.
func (y *Story) show(kind string, args []string) []string {
	s := y.State(Main)
	switch kind {
	case "state":
		if len(args) == 0 {
			return y.summaries()
		}
		return y.fields(s, args)
	case "blocker":
		return y.blocker(s, args)
	case "work":
		v, err := s.Work(y.Source)
		if err != nil {
			y.t.Fatalf("the view \"work\": %v", err)
		}
		return y.fields(v, args)
	case "pending":
		return s.PendingPrompts()
	case "endings":
		return endings(s, args)
	case "keys":
		return keys(s)
	case "changed":
		prompts, work := session.BlockersChanged(y.shown, s), session.WorkChanged(y.shown, s)
		y.shown = s.Clone()
		return []string{fmt.Sprintf("blockers %v, work %v", prompts, work)}
	case "claimable":
		lines := make([]string, len(args))
		for i, incarnation := range args {
			lines[i] = fmt.Sprintf("%s %v", incarnation, s.Claimable(incarnation))
		}
		return lines
	case "feed":
		return takeAll(&y.feed)
	case "ignored":
		return takeAll(&y.ignored)
	case "parked":
		return takeAll(&y.parked)
	}
	y.t.Fatalf("no such section: %q (docs/stories.md has the list)", kind)
	return nil
}

func takeAll(list *[]string) []string {
	l := *list
	*list = nil
	return l
}

func (y *Story) blocker(s *session.State, args []string) []string {
	y.t.Helper()
	if len(args) == 0 {
		y.t.Fatalf("the section \"blocker\" needs the id of a prompt")
	}
	b, err := s.Blocker(args[0], y.Source)
	if err != nil {
		y.t.Fatalf("prompt %s: %v", args[0], err)
	}
	return y.fields(b, args[1:])
}

// keys returns the keys of a session's document and views.
func keys(s *session.State) []string {
	lines := []string{events.SessionKey(s.Ref())}
	for _, id := range s.BlockerPrompts(time.Time{}) {
		lines = append(lines, s.BlockerKey(id))
	}
	if s.HasWork() {
		lines = append(lines, events.WorkKey(s.Ref()))
	}
	return lines
}

// endings returns what ended, oldest first: all of it, or the entities that are named.
func endings(s *session.State, args []string) []string {
	var lines []string
	for _, e := range s.Recent {
		if len(args) > 0 && !slices.Contains(args, e.Entity) {
			continue
		}
		line := fmt.Sprintf("%d %s %s %s", e.Seq, e.Entity, e.ID, e.Outcome)
		if e.Reason != "" {
			line += " (" + e.Reason + ")"
		}
		if !e.DeliveredAt.IsZero() {
			line += " delivered " + Instant(e.DeliveredAt)
		}
		if e.Late != nil {
			line += fmt.Sprintf(" late %d", e.Late.Seq)
		}
		lines = append(lines, line)
	}
	return lines
}

// fields returns the fields of a document or view, one a line: all of them, or those that are named.
func (y *Story) fields(v any, names []string) []string {
	y.t.Helper()
	body, err := session.EncodeView(v)
	if err != nil {
		y.t.Fatalf("%v", err)
	}
	if string(body) == "null" {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		y.t.Fatalf("%v", err)
	}
	if len(names) == 0 {
		names = fieldOrder(body)
	}
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = name + ": (nothing)"
		if value := all[name]; len(value) > 0 {
			lines[i] = name + ": " + printed(string(value))
		}
	}
	return lines
}

// fieldOrder returns the names of an object's fields as they were written.
func fieldOrder(body []byte) []string {
	var names []string
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// summaries returns one line for each session.
func (y *Story) summaries() []string {
	lines := make([]string, len(y.names))
	for i, name := range y.names {
		lines[i] = y.prefix(name) + Summary(y.sessions[name])
	}
	return lines
}

// summary is a line of words.
type summary struct{ strings.Builder }

func (b *summary) add(format string, args ...any) { fmt.Fprintf(b, " "+format, args...) }

// Summary returns a session in one line: its phase, and what is open, planned or has ended last.
func Summary(s *session.State) string {
	b := &summary{}
	b.WriteString(string(s.Phase))
	if s.Owned {
		b.add("owned-by=%s", s.Incarnation)
	}
	if t := s.Turn; t != nil {
		b.add("turn=%s,%s", t.ID, t.Cause)
	}
	if l := s.LastTurn; l != nil {
		b.add("last=%s", words(l.ID, l.Outcome, l.Reason))
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		b.add("call=%s", id)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Prompts)) {
		b.add("prompt=%s,%s", id, s.Prompts[id].Status)
	}
	for _, w := range s.WaitsFor {
		b.add("waits-for=%s,%s", w.Call, w.Child)
	}
	for _, m := range s.Queue {
		b.add("queued=%s", m.ID)
	}
	b.pending(s.Pending)
	b.compaction(s)
	b.retry(s.Retry)
	if u := s.Usage; u != nil {
		b.add("used=%d/%d", u.Used, u.Limit)
		if u.Warn {
			b.add("warn")
		}
	}
	for _, e := range s.Recent {
		if e.Late != nil {
			b.add("late=%s,%s", e.ID, e.Outcome)
		}
	}
	if s.Seq > 0 && !s.Policy.AutoRetry {
		b.add("auto-retry=off")
	}
	return b.String()
}

// words joins the words that are not empty.
func words[S ~string](all ...S) string {
	var b strings.Builder
	for _, w := range all {
		if w == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(w))
	}
	return b.String()
}

func (b *summary) pending(p session.Pending) {
	if t := p.Turn; t != nil {
		b.add("requested=%s,%s", t.ID, t.Cause)
		if t.OfTurn != "" {
			b.WriteString(",of=" + t.OfTurn)
		}
		if t.Message != "" {
			b.WriteString(",message=" + t.Message)
		}
	}
	if p.Stop != nil {
		b.add("stop=%s,%s", p.Stop.Turn, p.Stop.Actor)
	}
}

func (b *summary) compaction(s *session.State) {
	if c := s.Compaction; c != nil {
		b.add("compaction=%s,%s", c.State, c.Reason)
		if c.Error != nil {
			b.WriteString("," + c.Error.Kind)
		}
	}
	if l := s.LastCompaction; l != nil {
		b.add("compacted=%s", l.Outcome)
		if l.Failures > 0 {
			fmt.Fprintf(b, ",failures=%d", l.Failures)
		}
	}
}

func (b *summary) retry(r session.Retry) {
	if r.State == "" && r.Attempt+r.SameFailures+r.Resumes == 0 {
		return
	}
	b.add("retry=%s,attempt=%d,same=%d,resumes=%d", r.State, r.Attempt, r.SameFailures, r.Resumes)
	if r.State == session.RetryScheduled {
		b.WriteString(",due=" + Instant(r.DueAt))
	}
	if r.Reason != "" {
		b.WriteString("," + r.Reason)
	}
}
