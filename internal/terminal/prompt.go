package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// statusColours maps the status of a prompt to its colour.
var statusColours = map[session.Status]Colour{
	session.Awaiting:   Wait,
	session.Answered:   Good,
	session.Rejected:   Alarm,
	session.Dismissed:  Faint,
	session.Withdrawn:  Faint,
	session.Superseded: Faint,
	session.Expired:    Alarm,
}

// Prompts returns a table of prompts in the given order.
func Prompts(bs []*session.Blocker, now time.Time, st Style) string {
	rows := make([][]Cell, len(bs))
	for i, b := range bs {
		rows[i] = []Cell{
			{b.Harness + "/" + b.Session, Strong},
			{b.Prompt, Plain},
			{string(b.Kind), Plain},
			{string(b.Status), statusColours[b.Status]},
			{ago(b.ArmedAt, now), Faint},
			{reach(b), Plain},
			{Asked(b), Plain},
		}
	}
	status := Column{Name: "STATUS", Spare: 3}
	if slices.ContainsFunc(bs, func(b *session.Blocker) bool { return !b.Awaits() }) {
		// it says what became of a prompt
		status.Spare = 0
	}
	return Table([]Column{{Name: "SESSION", ID: true}, {Name: "PROMPT", ID: true},
		{Name: "KIND"}, status, {Name: "AGE", Spare: 1}, {Name: "AGENT", Spare: 2}, {Name: "QUESTION", Min: textMin}},
		rows, st)
}

// reach reports whether an agent waits, and whether it has the decision.
func reach(b *session.Blocker) string {
	switch {
	case !b.Awaits() && !b.DeliveredAt.IsZero():
		return "has it"
	case b.Status == session.Answered, b.Status == session.Rejected:
		return "not delivered"
	case !b.Awaits():
		return "–"
	case b.Owned:
		return "waits"
	default:
		return "gone, answer kept"
	}
}

// Asked returns a prompt's questions in one line.
func Asked(b *session.Blocker) string {
	if b.Title != "" {
		return b.Title
	}
	for _, q := range b.Questions {
		return q.Question
	}
	return string(b.Kind)
}

// Prompt returns one prompt with its questions and options.
func Prompt(b *session.Blocker, now time.Time, st Style) string {
	var s strings.Builder
	head := []piece{text(string(b.Kind)), text(" "), name(b.Prompt, Strong), text(columnGap),
		coloured(string(b.Status), statusColours[b.Status]), text(columnGap), text(b.Title), text(columnGap),
		text(ago(b.ArmedAt, now) + " ago")}
	if b.Tool != nil {
		head = append(head, text(columnGap), text(fmt.Sprintf("(tool %s, call %s)", Clean(b.Tool.Name),
			Clean(b.Tool.Call))))
	}
	s.WriteString(st.paragraph(len(columnGap), head...) + "\n")
	for i := range b.Questions {
		s.WriteString(Question(&b.Questions[i], st))
	}
	if !b.Awaits() {
		s.WriteString(st.Wrap(fmt.Sprintf("  %s by %s: %s", b.Status, Clean(cmp.Or(b.By, "the agent")),
			Clean(cmp.Or(answers(b.Answers), b.Reason, "–"))), questionIndent) + "\n")
	}
	return s.String()
}

// Where the lines of a question, and those of an option, are continued.
const (
	questionIndent = 4
	optionIndent   = 7
)

// Question returns one question with its numbered options.
func Question(q *events.Question, st Style) string {
	var s strings.Builder
	how := "one of"
	switch {
	case len(q.Options) == 0:
		how = "your own text"
	case q.Multi && q.Custom:
		how = "any of, or your own text"
	case q.Multi:
		how = "any of"
	case q.Custom:
		how = "one of, or your own text"
	}
	s.WriteString(st.paragraph(questionIndent, text(columnGap), coloured(q.ID+":", Strong), text(" "), text(q.Question),
		text(" "), coloured("("+how+")", Faint)) + "\n")
	for i, o := range q.Options {
		option := []piece{text(fmt.Sprintf("    %d) ", i+1)), text(o.Label)}
		if o.Description != "" {
			option = append(option, text(columnGap), coloured(o.Description, Faint))
		}
		s.WriteString(st.paragraph(optionIndent, option...) + "\n")
	}
	return s.String()
}

func answers(as []events.Answer) string {
	var parts []string
	for _, a := range as {
		values := append([]string(nil), a.Selected...)
		if a.Text != "" {
			values = append(values, a.Text)
		}
		parts = append(parts, a.Question+"="+cmp.Or(strings.Join(values, ","), "(skipped)"))
	}
	return strings.Join(parts, " ")
}
