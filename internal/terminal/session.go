package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// phaseColours maps each phase to its colour.
var phaseColours = map[session.Phase]Colour{
	session.Closed:      Faint,
	session.Waiting:     Wait,
	session.Compacting:  Busy,
	session.Running:     Good,
	session.Retrying:    Later,
	session.Queued:      Busy,
	session.Interrupted: Alarm,
	session.Idle:        Plain,
}

// PhaseCell returns a phase in its colour.
func PhaseCell(p session.Phase) Cell { return Cell{string(p), phaseColours[p]} }

// The least widths of columns, in terminal cells.
const (
	idMin   = 18
	nameMin = 12
	textMin = 24
)

// Sessions returns a table of sessions in the given order.
func Sessions(docs []*session.State, now time.Time, st Style) string {
	rows := make([][]Cell, len(docs))
	for i, s := range docs {
		rows[i] = []Cell{
			{s.Ref().String(), Strong},
			PhaseCell(s.Phase),
			ownerCell(s),
			{Doing(s, now), Plain},
			usageCell(s),
			{ago(s.UpdatedAt, now), Faint},
			{s.Title, Plain},
		}
	}
	return Table([]Column{{Name: "SESSION", ID: true}, {Name: "PHASE"}, {Name: "OWNER", Spare: 2},
		{Name: "DOING", Min: textMin}, {Name: "USED"}, {Name: "CHANGED", Spare: 1},
		{Name: "TITLE", Min: idMin, Spare: 3}}, rows, st)
}

// usageCell returns how much of the context is used, if it is known. It is coloured near the limit.
func usageCell(s *session.State) Cell {
	switch u := s.Usage; {
	case u == nil || u.Limit <= 0:
		return Cell{"–", Faint}
	case u.Warn:
		return Cell{fmt.Sprintf("%.0f%% !", u.Percent), Wait}
	default:
		return Cell{fmt.Sprintf("%.0f%%", u.Percent), Plain}
	}
}

// ownerCell returns the owner of a session: the incarnation and epoch, or how the last owner left.
func ownerCell(s *session.State) Cell {
	switch {
	case s.Owned:
		return Cell{fmt.Sprintf("#%s e%d", shortNumber(s.Incarnation), s.Epoch), Plain}
	case s.Left == session.LeftOrphaned:
		return Cell{"lost", Alarm}
	case s.Closed != nil:
		return Cell{"–", Faint}
	default:
		return Cell{cmp.Or(s.Left, "none"), Faint}
	}
}

// shortNumber returns the end of a long incarnation, for a table: it is a time in microseconds, and two processes of a
// harness differ at its end. Other texts are returned unchanged.
func shortNumber(incarnation string) string {
	const longest, end = 8, 6
	if len(incarnation) <= longest || strings.Trim(incarnation, "0123456789") != "" {
		return incarnation
	}
	return "…" + incarnation[len(incarnation)-end:]
}

// Doing returns in a few words what a session has open or pending.
func Doing(s *session.State, now time.Time) string {
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if s.Closed != nil {
		return s.Closed.Reason
	}
	n := len(s.PendingPrompts())
	add(n > 0, "%s", Plural(n, "question"))
	add(len(s.WaitsFor) > 0, "waits for %s", Plural(len(s.WaitsFor), "child session"))
	if s.Turn != nil {
		add(true, "turn %s", ago(s.Turn.Since, now))
	}
	add(len(s.Tools) > 0, "%s: %s", Plural(len(s.Tools), "tool"), toolNames(s))
	if s.Compaction != nil {
		add(true, "%s", compacting(s.Compaction, now))
	}
	add(
		s.Retry.State == session.RetryScheduled,
		"retry %d in %s%s",
		s.Retry.Attempt,
		countdown(s.Retry.DueAt, now),
		kindOf(s.Retry.Error),
	)
	add(s.Retry.State == session.RetryStarting, "retry %d asked for", s.Retry.Attempt)
	add(s.Retry.State == session.RetryAbandoned, "retry given up: %s", s.Retry.Reason)
	if t := s.Pending.Turn; t != nil {
		add(true, "turn wanted %s (%s)", ago(t.At, now), t.Cause)
	}
	add(s.Continuations.State == session.ContinuationsHeld, "answers not taken: %s", s.Continuations.Reason)
	add(s.Pending.Stop != nil, "stop wanted")
	add(len(s.Queue) > 0, "%s queued", Plural(len(s.Queue), "message"))
	if len(parts) == 0 && s.LastTurn != nil {
		add(true, "last turn %s", s.LastTurn.Outcome)
	}
	return strings.Join(parts, " · ")
}

// compacting returns a compaction in a few words, with the reason if it is held or stalled.
func compacting(c *session.Compaction, now time.Time) string {
	switch c.State {
	case session.CompactionRequested:
		return fmt.Sprintf("compaction wanted %s (%s)", ago(c.Since, now), c.Reason)
	case session.CompactionRunning:
		return fmt.Sprintf("compacting %s (%s)", ago(c.Since, now), c.Reason)
	default:
		return fmt.Sprintf("compaction %s: %s", c.State, strings.TrimSpace(c.Reason+kindOf(c.Error)))
	}
}

// kindOf returns an error's kind in brackets.
func kindOf(e *events.Failure) string {
	if e == nil {
		return ""
	}
	return " (" + kind(e) + ")"
}

// namesShownMax is how many names of open calls a line shows.
const namesShownMax = 3

func toolNames(s *session.State) string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		names = append(names, s.Tools[id].Name)
	}
	if len(names) > namesShownMax {
		names = append(names[:namesShownMax], "…")
	}
	return strings.Join(names, ", ")
}

// fieldIndent is where the values of fields begin.
const fieldIndent = 13

// Session returns the page of one session as people see it: see [session.State.WithUnknown]. Blockers are the entries
// of its open prompts.
func Session(s *session.State, blockers []*session.Blocker, now time.Time, st Style) string {
	var b strings.Builder
	b.WriteString(st.paragraph(len(columnGap), name(s.Ref().String(), Strong), text(columnGap),
		coloured(string(s.Phase), phaseColours[s.Phase]), text(columnGap), text(s.Title)) + "\n")
	field := func(name, format string, args ...any) {
		is := strings.ReplaceAll(strings.Join(strings.Fields(Clean(fmt.Sprintf(format, args...))), " "), " ,", ",")
		b.WriteString(st.paragraph(fieldIndent, text(columnGap), coloured(fmt.Sprintf("%-10s", name), Faint), text(" "),
			text(is)) + "\n")
	}
	about(s, now, field)
	open(s, now, field)
	for _, p := range blockers {
		b.WriteString("\n" + Prompt(p, now, st))
	}
	if len(s.Recent) > 0 {
		b.WriteString("\n" + recent(s, now, st))
	}
	return b.String()
}

// about writes the owner and the place of a session.
func about(s *session.State, now time.Time, field func(name, format string, args ...any)) {
	owner := "none"
	switch {
	case s.Owned:
		owner = fmt.Sprintf("incarnation %s, epoch %d", s.Incarnation, s.Epoch)
	case s.Left != "":
		owner = fmt.Sprintf("none: %s; the last was incarnation %s, epoch %d", s.Left, s.Incarnation, s.Epoch)
	}
	field("owner", "%s", owner)
	if s.Root != s.Session {
		field("root", "%s, parent %s", s.Root, s.Parent)
	}
	if s.Agent != "" || s.Model != "" {
		field("agent", "%s %s", s.Agent, s.Model)
	}
	field("log", "seq %d, %s, changed %s ago", s.Seq, Plural(int(s.Commits), "commit"), ago(s.UpdatedAt, now))
	if s.Usage != nil {
		field("usage", "%s", usage(s))
	}
	if c := s.Closed; c != nil {
		field("closed", "%s by %s, %s ago", c.Reason, cmp.Or(c.By, "the harness"), ago(c.At, now))
	}
	if last := s.Ignored.Last; last != nil {
		field(
			"ignored",
			"%s; last: %s from %s: %s",
			Plural(int(s.Ignored.Count), "event"),
			strings.TrimPrefix(last.Type, events.TypePrefix),
			last.Writer,
			last.Why,
		)
	}
	if s.Parked > 0 {
		field("parked", "%s could not be read", Plural(int(s.Parked), "event"))
	}
}

// usage returns how much of the context is used, and when it is compacted.
func usage(s *session.State) string {
	u, threshold := s.Usage, s.Policy.CompactionThreshold
	switch {
	case u.Limit <= 0:
		return Plural(int(u.Used), "token") + "; how many fit is not known"
	case threshold >= 1:
		return fmt.Sprintf("%d of %d tokens (%.0f %%); compaction by itself is off", u.Used, u.Limit, u.Percent)
	case u.Warn:
		return fmt.Sprintf(
			"%d of %d tokens (%.0f %%): near to where it is compacted (%.0f %%)",
			u.Used,
			u.Limit,
			u.Percent,
			threshold*100,
		)
	default:
		return fmt.Sprintf("%d of %d tokens (%.0f %%), compacted at %.0f %%", u.Used, u.Limit, u.Percent, threshold*100)
	}
}

// open writes what is open and what is pending.
func open(s *session.State, now time.Time, field func(name, format string, args ...any)) {
	if t := s.Turn; t != nil {
		field("turn", "%s, %s, attempt %d, %s", t.ID, t.Cause, max(t.Attempt, 1), ago(t.Since, now))
	} else if t := s.LastTurn; t != nil {
		field(
			"last turn",
			"%s: %s %s, %s ago",
			t.ID,
			t.Outcome,
			why(t.Reason, t.Error != nil && t.Error.Text != "", t),
			ago(t.At, now),
		)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		t := s.Tools[id]
		field("tool", "%s %s %s, %s", id, t.Name, t.Title, ago(t.Since, now))
	}
	for _, w := range s.WaitsFor {
		field("waits for", "session %s (call %s)", w.Child, w.Call)
	}
	if p := s.Pending.Stop; p != nil {
		field("stop", "of turn %s wanted by %s %s, %s ago", p.Turn, cmp.Or(p.By, p.Actor), p.Reason, ago(p.At, now))
	}
	if p := s.Pending.Turn; p != nil {
		field("wanted", "turn %s, %s, asked for %s ago and not taken", p.ID, p.Cause, ago(p.At, now))
	}
	if c := s.Continuations; c.State == session.ContinuationsHeld {
		field("answers", "not taken by the agent: %s", Plural(c.Count, "turn")+" requested")
		field("", "`holdfast resume` requests another one, a message does so too")
	}
	if r := s.Retry; r.State != "" {
		field("retry", "%s", retrying(&r, now))
		if hint := givenUp[r.Reason]; hint != "" && r.State == session.RetryAbandoned {
			field("", "%s", hint)
		}
	}
	if c := s.Compaction; c != nil {
		field("compaction", "%s %s, %s", c.ID, compaction(c), ago(c.Since, now))
		if hint := held(c); hint != "" {
			field("", "%s", hint)
		}
	}
	if l := s.LastCompaction; l != nil {
		field("compacted", "%s", lastCompaction(l, now))
	}
	if len(s.Queue) > 0 {
		field("queue", "%s, the oldest %s ago", Plural(len(s.Queue), "message"), ago(s.Queue[0].At, now))
	}
}

// lastCompaction returns the result of the last compaction.
func lastCompaction(l *session.LastCompaction, now time.Time) string {
	text := fmt.Sprintf("%s %s, %s ago", l.Outcome, l.Reason, ago(l.At, now))
	switch {
	case l.Error != nil:
		text += ": " + failure(l.Error)
	case l.UsedBefore > 0 && l.UsedAfter > 0:
		text += fmt.Sprintf(", from %d to %d tokens", l.UsedBefore, l.UsedAfter)
	}
	if l.Failures > 1 {
		text += fmt.Sprintf("; %d in a row failed", l.Failures)
	}
	if l.FollowUp != "" {
		text += "; still to follow: " + strings.TrimSpace(l.FollowUp+" "+l.Message)
	}
	return text
}

func why(reason string, failed bool, t *session.LastTurn) string {
	switch {
	case failed:
		return fmt.Sprintf("(%s: %s)", t.Error.Kind, t.Error.Text)
	case reason != "":
		return "(" + reason + ")"
	}
	return ""
}

// recentShownMax is how many endings are shown.
const recentShownMax = 10

// outcomeColours distinguishes success, failure, and endings by a person.
var outcomeColours = map[string]Colour{
	session.OutcomeCompleted:   Good,
	session.OutcomeFailed:      Alarm,
	session.OutcomeInterrupted: Alarm,
	session.OutcomeStopped:     Wait,
	session.OutcomeUnknown:     Alarm,
	string(session.Expired):    Alarm,
	string(session.Answered):   Good,
}

// recent returns a table of the newest endings, newest first. Older calls of an unknown outcome are there, too: a
// person has to look at what they did.
func recent(s *session.State, now time.Time, st Style) string {
	var rows [][]Cell
	note := ""
	for i := len(s.Recent) - 1; i >= 0; i-- {
		e := &s.Recent[i]
		if e.Outcome == session.OutcomeUnknown {
			note = "unknown: the call was cut off, and may have had its effect; look before it runs again"
		} else if len(s.Recent)-i > recentShownMax {
			continue
		}
		reason := e.Reason
		if e.Late != nil {
			reason = strings.TrimSpace(reason + fmt.Sprintf(" (a result came late, seq %d)", e.Late.Seq))
		}
		rows = append(rows, []Cell{{e.Entity, Plain}, {e.ID, Plain}, {e.Name, Plain},
			{e.Outcome, outcomeColours[e.Outcome]}, {reason, Plain}, {ago(e.At, now), Faint}})
	}
	table := Table([]Column{{Name: "ENDED"}, {Name: "ID", ID: true}, {Name: "NAME", Min: nameMin},
		{Name: "OUTCOME"}, {Name: "REASON", Min: nameMin}, {Name: "AGO", Spare: 1}}, rows, st)
	if note != "" {
		table += st.Wrap(note, 0) + "\n"
	}
	return table
}
