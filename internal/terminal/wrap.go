package terminal

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
)

// piece is a part of a paragraph. A whole one is a name that a person copies into a command: it is never broken. One
// that is wider than the terminal has a line of its own.
type piece struct {
	Cell
	whole bool
}

// text returns a piece without a colour.
func text(s string) piece { return piece{Cell: Cell{Text: s}} }

// coloured returns a piece in a colour.
func coloured(s string, c Colour) piece { return piece{Cell: Cell{Text: s, Colour: c}} }

// name returns a piece that is not broken.
func name(s string, c Colour) piece { return piece{Cell{s, c}, true} }

// Wrap returns a text of one line as lines that fit the style's width. Lines after the first one are indented by hang
// cells. It breaks between words, and keeps a command in backquotes on one line if it fits there.
func (st Style) Wrap(s string, hang int) string { return st.paragraph(hang, text(s)) }

// WrapColoured is [Style.Wrap] in a colour.
func (st Style) WrapColoured(s string, c Colour, hang int) string {
	return st.paragraph(hang, coloured(s, c))
}

// word is what a line takes or leaves: a text without a place to break, and the spaces before it.
type word struct {
	piece
	before string
}

// paragraph returns pieces, one behind the other, as lines that fit the style's width; the last line has no line break.
// Lines after the first one are indented by hang cells, and by less on a terminal that is too narrow for that.
func (st Style) paragraph(hang int, pieces ...piece) string {
	cells := 0
	for i := range pieces {
		pieces[i].Text = printable(pieces[i].Text)
		cells += Width(pieces[i].Text)
	}
	if st.Width <= 0 || cells <= st.Width {
		var b strings.Builder
		for _, p := range pieces {
			b.WriteString(st.colour(p.Text, p.Colour))
		}
		return strings.TrimRight(b.String(), " ")
	}
	hang = min(hang, st.Width/2)
	p := paragraph{st: st, hang: hang}
	for _, w := range words(pieces, st.Width-hang) {
		p.add(w)
	}
	return p.end()
}

// paragraph collects lines.
type paragraph struct {
	st   Style
	hang int
	b    strings.Builder
	used int    // cells of the present line
	run  string // of one colour, not yet written
	of   Colour
}

// add adds a word to the present line, or to a new one.
func (p *paragraph) add(w word) {
	if p.used > p.hang && p.used+Width(w.before)+Width(w.Text) > p.st.Width {
		p.newLine(w)
		w.before = ""
	}
	for rest := w.Text; ; {
		part := rest
		if room := p.st.Width - p.used - Width(w.before); !w.whole && Width(rest) > room {
			part, rest = head(rest, max(room, 1))
			// a character that is wider than the line
			if part == "" {
				part, rest, _, _ = uniseg.FirstGraphemeClusterInString(rest, -1)
			}
		} else {
			rest = ""
		}
		p.write(w.before, Plain)
		p.write(part, w.Colour)
		if rest == "" {
			return
		}
		p.newLine(w)
		w.before = ""
	}
}

// write writes a text on the present line. Words of one colour, and the spaces between them, are coloured together.
func (p *paragraph) write(s string, c Colour) {
	if s == "" {
		return
	}
	p.used += Width(s)
	if c != p.of && strings.Trim(s, " ") != "" {
		p.flush()
		p.of = c
	}
	p.run += s
}

// flush writes what has been collected in one colour. The spaces behind it have none.
func (p *paragraph) flush() {
	body := strings.TrimRight(p.run, " ")
	p.b.WriteString(p.st.colour(body, p.of))
	p.b.WriteString(p.run[len(body):])
	p.run = ""
}

// newLine ends the present line, and begins the one of a word. A name that fits only without the indent has none.
func (p *paragraph) newLine(w word) {
	p.run = strings.TrimRight(p.run, " ")
	p.flush()
	p.b.WriteByte('\n')
	p.used, p.of = p.hang, Plain
	if w.whole && p.hang+Width(w.Text) > p.st.Width {
		p.used = 0
	}
	p.b.WriteString(strings.Repeat(" ", p.used))
}

func (p *paragraph) end() string {
	p.flush()
	return strings.TrimRight(p.b.String(), " ")
}

// words returns the words of pieces. A command in backquotes is one word if it fits in a line of so many cells.
func words(pieces []piece, most int) []word {
	var all []word
	before := ""
	for _, p := range pieces {
		if p.whole {
			all, before = append(all, word{p, before}), ""
			continue
		}
		for rest := p.Text; rest != ""; {
			body := strings.TrimLeft(rest, " ")
			before += rest[:len(rest)-len(body)]
			if body == "" {
				break
			}
			end := wordEnd(body, most)
			for _, part := range breakable(body[:end]) {
				all, before = append(all, word{piece{Cell: Cell{part, p.Colour}}, before}), ""
			}
			rest = body[end:]
		}
	}
	return all
}

// wordEnd returns where the first word of a text ends: at a space that is not in a command that fits.
func wordEnd(s string, most int) int {
	space := func(from int) int {
		if i := strings.IndexByte(s[from:], ' '); i >= 0 {
			return from + i
		}
		return len(s)
	}
	end := space(0)
	if open := strings.IndexByte(s[:end], '`'); open >= 0 && strings.Count(s[:end], "`")%2 == 1 {
		if last := strings.IndexByte(s[open+1:], '`'); last >= 0 {
			if whole := space(open + 1 + last); Width(s[:whole]) <= most {
				return whole
			}
		}
	}
	return end
}

// breakable returns the parts of a word between which a line may end: those of a script without spaces.
func breakable(s string) []string {
	// no wide character
	if len(s) == 0 || len(s) == Width(s) {
		return []string{s}
	}
	var parts []string
	for state := -1; s != ""; {
		var part string
		part, s, _, state = uniseg.FirstLineSegmentInString(s, state)
		wide := strings.IndexFunc(part, func(r rune) bool { return Width(string(r)) > 1 }) >= 0
		if n := len(parts); n > 0 && !wide && Width(parts[n-1]) == len(parts[n-1]) {
			// Latin words within it are not broken at a hyphen
			parts[n-1] += part
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// Finding is one result of a check: how bad it is, what was checked, what was found, and what to do about it.
type Finding struct {
	Level            Cell
	Check, Found, Do string
}

// levelWidth is the width of the levels of findings.
const levelWidth = 5

// Findings returns each finding with what to do about it below. The texts of findings are a column, unless the
// terminal is too narrow for one.
func Findings(all []Finding, st Style) string {
	widest := 0
	for _, f := range all {
		widest = max(widest, Width(Clean(f.Check)))
	}
	hang, padded := levelWidth+1, 0
	if column := hang + widest + 1; st.Width <= 0 || st.Width-column >= textMin {
		hang, padded = column, widest
	}
	var b strings.Builder
	for _, f := range all {
		check := Clean(f.Check)
		b.WriteString(st.paragraph(hang, coloured(fmt.Sprintf("%-*s", levelWidth, f.Level.Text), f.Level.Colour),
			text(" "), text(check), text(strings.Repeat(" ", max(padded-Width(check), 0)+1)), text(f.Found)) + "\n")
		if f.Do != "" {
			b.WriteString(st.Wrap("      → "+Clean(f.Do), adviceIndent) + "\n")
		}
	}
	return b.String()
}

// adviceIndent is where advice begins.
const adviceIndent = 8
