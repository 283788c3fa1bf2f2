package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/internal/terminal"
)

// Limits of the printed text.
const (
	idShownMin      = 12 // terminal cells
	noteShownMax    = 68
	problemsShowMax = 5
)

// Text returns the result of a recording for a person.
func (p *Played) Text(st terminal.Style) string {
	var text strings.Builder
	switch {
	case p.Facts == 0 && len(p.Phases) == 0:
		fmt.Fprintf(&text, "%s: nothing to play: %s read, none of them begins a session\n", terminal.Clean(p.File),
			terminal.Plural(p.Records, "event"))
	case len(p.Left) == 0:
		text.WriteString("\nThe recording leaves nothing open.\n")
	default:
		text.WriteString("\nWhat the recording left open, and what became of it:\n\n")
		text.WriteString(p.LeftOpen(st))
		text.WriteByte('\n')
	}
	for _, id := range slices.Sorted(maps.Keys(p.Phases)) {
		fmt.Fprintf(&text, "Session %s is now %s.\n", terminal.Clean(id),
			st.Coloured(fmt.Sprint(p.Phases[id]), terminal.Strong))
	}
	for _, s := range p.Stranded {
		text.WriteString(st.Coloured("Left open without a running process: "+s, terminal.Alarm) + "\n")
	}
	text.WriteString(passedOver(p))
	return text.String()
}

// LeftOpen returns a table of what the recording left open, and how each was closed.
func (p *Played) LeftOpen(st terminal.Style) string {
	rows := make([][]terminal.Cell, len(p.Left))
	for i, l := range p.Left {
		paint, after := terminal.Good, "–"
		switch l.Outcome {
		case drill.OutcomeOpen:
			paint = terminal.Alarm
		case drill.OutcomeKept:
			paint = terminal.Wait
		}
		if l.AfterMS > 0 {
			after = terminal.Took(l.AfterMS)
		}
		rows[i] = []terminal.Cell{{Text: l.Entity}, {Text: l.Name}, {Text: l.ID},
			{Text: l.Outcome, Colour: paint}, {Text: l.Reason},
			{Text: cmp.Or(string(l.By), "–")}, {Text: after, Colour: terminal.Faint}}
	}
	return terminal.Table([]terminal.Column{{Name: "LEFT OPEN"}, {Name: "NAME"},
		{Name: "ID", Min: idShownMin, ID: true}, {Name: "BECAME"}, {Name: "WHY"}, {Name: "CLOSED BY"},
		{Name: "AFTER"}}, rows, st)
}

// passedOver returns what of the recording was not used, and why.
func passedOver(p *Played) string {
	unknown := 0
	for _, n := range p.Unknown {
		unknown += n
	}
	text := fmt.Sprintf("Passed over: %s, %d unreadable, %d of unknown kind, %d repeated, %d late.\n",
		terminal.Plural(p.Skipped, "line"), p.Strange, unknown, p.Repeated, p.Late)
	for i, problem := range p.Problems {
		if i == problemsShowMax {
			text += fmt.Sprintf("  … and %d more\n", len(p.Problems)-i)
			break
		}
		text += "  " + terminal.Clean(problem) + "\n"
	}
	for i, name := range slices.Sorted(maps.Keys(p.Unknown)) {
		if i == problemsShowMax {
			text += "  … and " + terminal.Plural(len(p.Unknown)-i, "kind") + " more\n"
			break
		}
		text += fmt.Sprintf("  unknown: %s (%d)\n", terminal.Clean(name), p.Unknown[name])
	}
	return text
}
