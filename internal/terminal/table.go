package terminal

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Column describes one column of a [Table]. The zero values are a column that is never cut and never left out.
type Column struct {
	// Name is the header.
	Name string
	// Min is how many terminal cells of a long text are kept at least; 0: the column is never cut.
	Min int
	// Spare orders the columns that are left out when a table does not fit, the greatest first; 0: never left out.
	Spare int
	// ID marks a column of names. With a Min a long one is cut in its middle, because similar names differ at their
	// ends. Without, a person copies it into a command: it is whole, on a line of its own if the table does not fit.
	ID bool
}

// Columns returns columns that are never cut.
func Columns(names ...string) []Column {
	all := make([]Column, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

// escapes matches what colours a text.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// columnGap separates two columns.
const columnGap = "  "

// Table returns rows under a header. Without a width in the style, each column is as wide as its longest cell.
// Otherwise columns that can be spared are left out until the others fit, and the longest ones are cut; where that is
// not enough, a name that must be whole has a line of its own above the rest of its row. Widths are terminal cells.
func Table(columns []Column, rows [][]Cell, st Style) string {
	head := make([]Cell, len(columns))
	for i, c := range columns {
		head[i] = Cell{c.Name, Faint}
	}
	var b strings.Builder
	for _, lines := range layOut(columns, append([][]Cell{head}, rows...), st) {
		for _, l := range lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// layOut returns the lines of each row.
func layOut(columns []Column, rows [][]Cell, st Style) [][]string {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i := range row {
			widths[i] = max(widths[i], Width(Clean(row[i].Text)))
		}
	}
	shown := make([]int, len(columns))
	for i := range shown {
		shown[i] = i
	}
	if st.Width > 0 {
		shown = fitting(columns, widths, shown, st.Width)
		whole := slices.IndexFunc(columns, func(c Column) bool { return c.ID && c.Min == 0 })
		if whole >= 0 && needed(columns, widths, shown) > st.Width {
			return stacked(columns, rows, whole, st)
		}
		shrink(columns, widths, shown, st.Width)
	}
	lines := make([][]string, len(rows))
	for i, row := range rows {
		lines[i] = []string{line(row, columns, widths, shown, st)}
	}
	return lines
}

// stacked returns the lines of each row with one column on a line of its own, above the others.
func stacked(columns []Column, rows [][]Cell, above int, st Style) [][]string {
	lines, rest := make([][]string, len(rows)), make([][]Cell, len(rows))
	for i, row := range rows {
		lines[i] = []string{st.Coloured(row[above].Text, row[above].Colour)}
		rest[i] = slices.Delete(slices.Clone(row), above, above+1)
	}
	if len(columns) == 1 {
		return lines
	}
	st.Width = max(st.Width-len(columnGap), 1)
	for i, below := range layOut(slices.Delete(slices.Clone(columns), above, above+1), rest, st) {
		for _, l := range below {
			// A line that is wider is a name, which is whole: it has no indent.
			if Width(escapes.ReplaceAllString(l, "")) <= st.Width {
				l = columnGap + l
			}
			lines[i] = append(lines[i], l)
		}
	}
	return lines
}

// fitting returns the columns that are shown: the others are left out, because even the least widths do not fit.
func fitting(columns []Column, widths, shown []int, width int) []int {
	for {
		spare := -1
		for at, i := range shown {
			if columns[i].Spare > 0 && (spare < 0 || columns[i].Spare > columns[shown[spare]].Spare) {
				spare = at
			}
		}
		if needed(columns, widths, shown) <= width || spare < 0 {
			return shown
		}
		shown = slices.Delete(shown, spare, spare+1)
	}
}

// needed returns the least width of a table of these columns.
func needed(columns []Column, widths, shown []int) int {
	need := len(columnGap) * (len(shown) - 1)
	for _, i := range shown {
		need += least(columns, widths, i)
	}
	return need
}

// least returns the width below which a column is not cut.
func least(columns []Column, widths []int, i int) int {
	if columns[i].Min == 0 {
		return widths[i]
	}
	return min(widths[i], columns[i].Min)
}

// shrink takes cells from the widest columns that may be cut, until the table fits or all have their least widths. On a
// terminal that is too narrow for these, such a column keeps the width of its header: none is pushed out by others.
func shrink(columns []Column, widths, shown []int, width int) {
	need := len(columnGap) * (len(shown) - 1)
	for _, i := range shown {
		need += widths[i]
	}
	for _, kept := range []func(i int) int{
		func(i int) int { return least(columns, widths, i) },
		func(i int) int { return min(least(columns, widths, i), Width(columns[i].Name)) },
	} {
		for ; need > width; need-- {
			widest := -1
			for _, i := range shown {
				if columns[i].Min > 0 && widths[i] > kept(i) && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
}

// line returns one row: the shown columns, padded to their widths, and cut at the style's width.
func line(row []Cell, columns []Column, widths, shown []int, st Style) string {
	var b strings.Builder
	used := 0
	for at, i := range shown {
		if i >= len(row) {
			break
		}
		if at > 0 {
			b.WriteString(columnGap)
			used += len(columnGap)
		}
		room := widths[i]
		if st.Width > 0 {
			room = min(room, max(st.Width-used, 0))
		}
		text := Clean(row[i].Text)
		if columns[i].ID {
			text = cutMiddle(text, room)
		} else {
			text = Cut(text, room)
		}
		b.WriteString(st.colour(text, row[i].Colour))
		if at < len(shown)-1 {
			b.WriteString(strings.Repeat(" ", max(room-Width(text), 0)))
		}
		used += room
		if st.Width > 0 && used+len(columnGap) >= st.Width {
			break
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Width returns how many cells of a terminal a text takes: two for East Asian wide characters and most emoji.
func Width(s string) int { return uniseg.StringWidth(s) }

// Cut shortens a text to a number of terminal cells, with an ellipsis. It does not cut within a character.
func Cut(s string, cells int) string {
	if Width(s) <= cells {
		return s
	}
	if cells <= 0 {
		return ""
	}
	head, _ := head(s, cells-1)
	return head + "…"
}

// cutMiddle is [Cut] and keeps both ends.
func cutMiddle(s string, cells int) string {
	if Width(s) <= cells {
		return s
	}
	if cells <= 0 {
		return ""
	}
	first, rest := head(s, cells/2)
	room := cells - 1 - Width(first)
	for rest != "" && Width(rest) > room {
		_, rest, _, _ = uniseg.FirstGraphemeClusterInString(rest, -1)
	}
	return first + "…" + rest
}

// head returns the characters at the beginning of a text that fit, and the rest.
func head(s string, cells int) (first, rest string) {
	rest = s
	for rest != "" {
		_, after, width, _ := uniseg.FirstGraphemeClusterInString(rest, -1)
		if width > cells {
			break
		}
		cells, rest = cells-width, after
	}
	return s[:len(s)-len(rest)], rest
}
