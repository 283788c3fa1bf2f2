// Package terminal renders documents, views and facts as text for a terminal. It has no side effects: its arguments
// decide every byte, so tests compare the output with golden files.
//
// Titles, names and reasons come from agents and models. Only their printable characters reach a terminal: a title
// cannot move the cursor or colour the screen.
package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Style configures the rendering. The zero Style is plain text of any width.
type Style struct {
	Color  bool // ANSI colours, for terminals only
	Width  int  // columns, 0: not bounded
	Height int  // lines, 0: not bounded; for output that is redrawn in place
}

// Colour is the colour of a cell by its meaning.
type Colour string

// Paints by meaning.
const (
	Plain  Colour = ""
	Strong Colour = "1"
	Faint  Colour = "2"
	Good   Colour = "32"
	Alarm  Colour = "31"
	Wait   Colour = "33"
	Busy   Colour = "36"
	Later  Colour = "35"
)

// Cell is one cell of a table.
type Cell struct {
	Text   string
	Colour Colour
}

// Text returns cells without a colour.
func Text(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, t := range texts {
		cells[i].Text = t
	}
	return cells
}

// colour colours a text if the style has colours.
func (st Style) colour(text string, p Colour) string {
	if !st.Color || p == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// Coloured returns a text in a colour if the style has colours.
func (st Style) Coloured(text string, p Colour) string { return st.colour(Clean(text), p) }

// Clean returns a text as one line of printable characters.
func Clean(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unprintable(r):
			return -1
		}
		return r
	}, s))
}

// CleanLines is [Clean] for each line of a text.
func CleanLines(s string) string {
	all := strings.Split(s, "\n")
	for i, l := range all {
		indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
		all[i] = indent + Clean(l[len(indent):])
	}
	return strings.Join(all, "\n")
}

func unprintable(r rune) bool { return !Printable(r) }

// Printable reports whether a character is shown as it is. The others can control a terminal, or are not visible.
func Printable(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

// Age returns a duration in its largest units: 12ms, 3s, 4m10s, 2h05m, 3d4h.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Took returns a number of milliseconds as a duration: 12ms, 1.25s.
func Took(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%dms", ms)
	}
	return fmt.Sprintf("%.2fs", float64(ms)/1000)
}

// ago returns the age of an instant, "–" for the zero instant.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return Age(now.Sub(at))
}

// clockForm is the layout of instants: in UTC, with milliseconds.
const clockForm = "15:04:05.000"

// Clock returns the time of day of an instant.
func Clock(at time.Time) string { return at.UTC().Format(clockForm) }

// Plural returns a number with its noun.
func Plural(n int, noun string) string { return Count(n, noun, noun+"s") }

// Count returns a number with what is said of one, or of several.
func Count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
