package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// writerColours maps each writer to its colour.
var writerColours = map[events.Writer]Colour{
	events.WriterHarness:    Plain,
	events.WriterLedger:     Good,
	events.WriterRetry:      Later,
	events.WriterCompaction: Busy,
	events.WriterReconciler: Wait,
}

// seqWidth is the width of a place in the log.
const seqWidth = 6

// noteBytesMax is how much of a fact's data a line shows, in bytes.
const noteBytesMax = 160

// Fact returns the line of one event of a commit: place, instant, writer, kind, subject, the rest of its data, and a
// note ("ignored: …"). On a terminal that is too narrow for it the line is continued below the instant.
func Fact(c *events.Commit, e *events.Event, note string, st Style) string {
	id := e.Subject
	if strings.HasPrefix(string(e.Kind), "session.") {
		id = ""
	}
	cells := []Cell{
		{fmt.Sprintf("%*d", seqWidth, c.Seq), Faint},
		{Clock(c.At), Faint},
		{fmt.Sprintf("%-10s", c.Writer), writerColours[c.Writer]},
		{fmt.Sprintf("%-20s", e.Kind), Strong},
		{id, Plain},
		{details(e), Faint},
	}
	if e.Err != nil {
		note = strings.TrimSpace(note + " unreadable: " + e.Err.Error())
	}
	if note != "" {
		cells = append(cells, Cell{"← " + note, Alarm})
	}
	return joined(cells, st)
}

// Whole returns the line of a commit that is not a batch.
func Whole(c *events.Commit, st Style) string {
	return joined(
		[]Cell{
			{fmt.Sprintf("%*d", seqWidth, c.Seq), Faint},
			{Clock(c.At), Faint},
			{fmt.Sprintf("%-10s", c.Writer), writerColours[c.Writer]},
			{"← parked: " + c.Err.Error(), Alarm},
		},
		st,
	)
}

func joined(cells []Cell, st Style) string {
	var parts []piece
	for _, c := range cells {
		if c.Text == "" {
			continue
		}
		if len(parts) > 0 {
			parts = append(parts, text(" "))
		}
		parts = append(parts, piece{Cell: c})
	}
	return st.paragraph(seqWidth+1, parts...)
}

// printable is [Clean] and keeps the spaces that align a column.
func printable(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	return Clean(s)
}

// details returns a fact's data without the fields that the line shows already.
func details(e *events.Event) string {
	var fields map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data(e)))
	if dec.Decode(&fields) != nil {
		return ""
	}
	entity, _, _ := strings.Cut(string(e.Kind), ".")
	if entity == "tool" {
		entity = "call"
	}
	delete(fields, entity)
	if len(fields) == 0 {
		return ""
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return Cut(string(body), noteBytesMax)
}

func data(e *events.Event) []byte {
	if len(e.Data) > 0 || e.Fact == nil {
		return e.Data
	}
	body, err := json.Marshal(e.Fact)
	// an event that was decoded always encodes
	if err != nil {
		return nil
	}
	return body
}

// Changes returns one line for each change between two documents of a session that a person should know; before is nil
// for a new session.
func Changes(before, after *session.State, now time.Time) []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, strings.Join(strings.Fields(Clean(fmt.Sprintf(format, args...))), " "))
	}
	if before == nil {
		before = &session.State{}
	}
	if before.Phase != after.Phase {
		add("%s → %s  %s", orDash(string(before.Phase)), after.Phase, Doing(after, now))
	}
	if before.Owned && !after.Owned && after.Closed == nil {
		add("owner %s (incarnation %s, epoch %d)", after.Left, after.Incarnation, after.Epoch)
	}
	if after.Owned && (after.Epoch != before.Epoch || !before.Owned) {
		add("owned by incarnation %s, epoch %d", after.Incarnation, after.Epoch)
	}
	for _, id := range after.PendingPrompts() {
		if before.Prompts[id] == nil {
			add("asks: %s %s", after.Prompts[id].Kind, id)
		}
	}
	lines = append(lines, owed(before, after)...)
	for i := range after.Recent {
		e := &after.Recent[i]
		if e.Seq > before.Seq {
			add("%s %s %s %s %s", e.Entity, e.ID, e.Name, e.Outcome, e.Reason)
		} else if e.Late != nil && e.Late.Seq > before.Seq {
			add("%s %s %s: its result came late and changes nothing", e.Entity, e.ID, e.Name)
		}
	}
	return lines
}

// owed returns the changes of pending work: retries, compactions, the queue.
func owed(before, after *session.State) []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, strings.Join(strings.Fields(Clean(fmt.Sprintf(format, args...))), " "))
	}
	if r, was := &after.Retry, &before.Retry; r.State != "" &&
		(r.State != was.State || r.Attempt != was.Attempt || !r.DueAt.Equal(was.DueAt) || r.Turn != was.Turn) {
		text := ""
		switch r.State {
		case session.RetryScheduled:
			text = "due " + Clock(r.DueAt)
		case session.RetryAbandoned:
			text = r.Reason
		}
		add("retry of turn %s %s: attempt %d %s%s", r.Turn, r.State, r.Attempt, text, kindOf(r.Error))
	}
	if c, was := after.Compaction, before.Compaction; c != nil &&
		(was == nil || was.ID != c.ID || was.State != c.State) {
		add("compaction %s %s %s%s", c.ID, c.State, c.Reason, kindOf(c.Error))
	}
	known := map[string]bool{}
	for i := range before.Queue {
		known[before.Queue[i].ID] = true
	}
	for i := range after.Queue {
		if m := &after.Queue[i]; !known[m.ID] {
			add("message %s queued, place %d", m.ID, i+1)
		}
	}
	if t, was := after.Pending.Turn, before.Pending.Turn; t != nil && (was == nil || was.ID != t.ID) {
		add("turn %s wanted: %s, attempt %d %s", t.ID, t.Cause, max(t.Attempt, 1), t.Message)
	}
	if u, was := after.Usage, before.Usage; u != nil && u.Warn && (was == nil || !was.Warn) {
		add("usage %.0f%%: near to where it is compacted", u.Percent)
	}
	return lines
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
