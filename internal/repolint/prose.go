package repolint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The words are put together from parts, so that this file does not match.
var (
	banned = regexp.MustCompile(`(?i)\b(who` + `ever|no` + `body|some` + `body|an` + `ew|` +
		`come` + `s to|is no` + `ne|goe` + `s on|has the s` + `ay|to` + `ld)\b`)

	// relative matches a sentence that begins with a relative clause: the subject stands behind a clause of
	// who or what.
	relative = regexp.MustCompile(`(?m)(^|[.:;!?] )(Who|What|Whichever|Whatever) [^?.]*[.]`)

	code = regexp.MustCompile("`[^`\n]*`")
)

// columnsMax is how long a line of a page gets, in characters. Tables and code are exempt.
const columnsMax = 120

// prose reports words and sentences that are hard to read for people who do not speak English at home, and
// that engineers do not search for.
func prose(t *Tree) {
	for _, f := range t.Files {
		if !proseApplies(f) {
			continue
		}
		for _, p := range f.prose() {
			p.text = withoutCode(f, p.text)
			p.each(banned, func(word string, line int) {
				t.find(f.Path, line, "%q: name the one who acts, or use the verb that others search for", word)
			})
			p.each(relative, func(sentence string, line int) {
				t.find(f.Path, line, "%q begins with a relative clause: put the subject first", firstWords(sentence))
			})
		}
		for _, p := range f.literals() {
			p.each(banned, func(word string, line int) {
				t.find(f.Path, line, "%q in a string or a name: name the one who acts, or use the verb that others "+
					"search for", word)
			})
		}
		t.lineLengths(f)
	}
}

// literals returns the strings of Go code, and the names that it declares.
func (f *File) literals() []passage {
	var all []passage
	if f.Syntax == nil {
		return nil
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				all = append(all, passage{n.Value, f.Line(n.Pos())})
			}
		case *ast.Ident:
			if n.Obj != nil && n.Obj.Pos() == n.Pos() {
				all = append(all, passage{n.Name, f.Line(n.Pos())})
			}
		}
		return true
	})
	return all
}

// proseApplies reports whether the list holds for a file.
func proseApplies(f *File) bool {
	switch {
	case path.Ext(f.Path) == ".md":
		return !inTestdata(f.Path)
	default:
		return f.Syntax != nil || strings.HasSuffix(f.Path, ".story")
	}
}

// withoutCode removes code and the targets of links from the text of a page and keeps its lines.
func withoutCode(f *File, text string) string {
	if path.Ext(f.Path) != ".md" {
		return text
	}
	return link.ReplaceAllString(code.ReplaceAllString(fence.ReplaceAllStringFunc(text, lineFeeds), "x"), "]")
}

const wordsShown = 6

func firstWords(sentence string) string {
	words := strings.Fields(strings.TrimLeft(sentence, ".:;!? "))
	return strings.Join(words[:min(len(words), wordsShown)], " ")
}

// lineLengths reports lines of a page that are too long to read side by side.
func (t *Tree) lineLengths(f *File) {
	if path.Ext(f.Path) != ".md" {
		return // gofmt and review look after code
	}
	inCode, n := false, 0
	for line := range strings.Lines(f.Text) {
		n++
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		columns := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
		if columns > columnsMax && !inCode && !strings.HasPrefix(line, "|") {
			t.find(f.Path, n, "%d columns: break the line at %d", columns, columnsMax)
		}
	}
}
