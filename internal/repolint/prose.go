package repolint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Each word has a class of one letter, so that this file does not match.
var (
	banned = regexp.MustCompile(`(?i)\b(who[e]ver|no[b]ody|some[b]ody|an[e]w|come[s] to|is no[n]e|goe[s] on|` +
		`has the s[a]y|to[l]d)\b`)

	// relative matches a sentence that begins with a relative clause: the subject stands behind a clause of
	// who or what.
	relative = regexp.MustCompile(`(?m)(^|[.:;!?] )(Who|What|Whichever|Whatever) [^?.]*[.]`)

	// relativeText is relative for a text that may end without a full stop, as help and errors do. A question may begin
	// with a relative pronoun.
	relativeText = regexp.MustCompile(`(^|[.:;!?]\s)(Who|What|Whichever|Whatever) [^?.]*([.]|$)`)

	// relativeStart is relative for a comment, which may begin in lower case and end without a full stop.
	relativeStart = regexp.MustCompile(`\A\s*(who|what|whichever|whatever) [^\n]*`)

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
			if f.Syntax != nil && !f.isBehindCode(p.first) {
				p.each(relativeStart, func(comment string, line int) {
					t.find(f.Path, line, "%q begins with a relative clause: put the subject first", firstWords(comment))
				})
			}
		}
		for _, p := range f.literals() {
			p.each(banned, func(word string, line int) {
				t.find(f.Path, line, "%q in a string or a name: name the one who acts, or use the verb that others "+
					"search for", word)
			})
			p.each(relativeText, func(sentence string, line int) {
				t.find(f.Path, line, "%q in a string begins with a relative clause: put the subject first",
					firstWords(sentence))
			})
		}
		t.lineLengths(f)
	}
}

// isBehindCode reports whether the comment of a line stands behind code: the meaning of a field, without a verb.
func (f *File) isBehindCode(line int) bool {
	n := 0
	for text := range strings.Lines(f.Text) {
		if n++; n == line {
			return !strings.HasPrefix(strings.TrimSpace(text), "//")
		}
	}
	return false
}

// literals returns the strings of Go code, and the names that it declares. A string that is joined from several ones
// is one passage.
func (f *File) literals() []passage {
	var all []passage
	if f.Syntax == nil {
		return nil
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if text, ok := joined(n); ok {
				all = append(all, passage{text, f.Line(n.Pos())})
				return false
			}
		case *ast.BasicLit:
			if text, ok := joined(n); ok {
				all = append(all, passage{text, f.Line(n.Pos())})
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

// joined returns the text of a string, or of strings that are joined by +, and whether an expression is nothing else.
func joined(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, okLeft := joined(e.X)
		right, okRight := joined(e.Y)
		return left + right, e.Op == token.ADD && okLeft && okRight
	}
	return "", false
}

// proseApplies reports whether the list holds for a file.
func proseApplies(f *File) bool {
	switch {
	case path.Ext(f.Path) == ".md":
		return !inTestdata(f.Path)
	default:
		return f.Syntax != nil || strings.HasSuffix(f.Path, ".story") || writtenHere(f.Path)
	}
}

// textKinds are the extensions of files, other than pages, Go and stories, that people of this repository write.
var textKinds = []string{".txtar", ".js", ".ts", ".py", ".css", ".html", ".yaml", ".yml", ".sh", ".tpl", ".conf"}

// textNames are such files without one of these extensions.
var textNames = []string{"NOTES.txt", "Makefile", "Dockerfile", ".ci/run", ".ci/subjects"}

// writtenHere reports whether a file is text of this repository that is neither a page, nor Go, nor a story: neither
// printed by a program, nor of another project, nor a snippet that breaks a rule.
func writtenHere(name string) bool {
	switch {
	case strings.Contains(name, "/vendor/"), under(name, "internal/repolint/testdata"):
		return false
	case inTestdata(name):
		return path.Ext(name) == ".txtar"
	default:
		return slices.Contains(textKinds, path.Ext(name)) || slices.Contains(textNames, path.Base(name)) ||
			slices.Contains(textNames, name)
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

// breakable reports whether a line can be broken: it is no row of a table, and no command of a script, rule of
// Prometheus or recipe of make, which have one line. Comments can be broken.
func breakable(name, line string) bool {
	switch path.Ext(name) {
	case ".md":
		return !strings.HasPrefix(line, "|")
	case ".js", ".ts", ".py", ".css", ".html", ".sh":
		return true
	default:
		return strings.HasPrefix(strings.TrimSpace(line), "#")
	}
}

// lineLengths reports lines of a page, and of other text that is not Go, that are too long to read side by side. A tab
// counts as four columns.
func (t *Tree) lineLengths(f *File) {
	if path.Ext(f.Path) != ".md" && !writtenHere(f.Path) {
		// Go has a rule of its own, and a story has the lines of its input
		return
	}
	inCode, n := false, 0
	for line := range strings.Lines(f.Text) {
		n++
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if !breakable(f.Path, line) {
			continue
		}
		columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")) + strings.Count(line, "\t")*(tabColumns-1)
		if columns > columnsMax && !inCode {
			t.find(f.Path, n, "%d columns: break the line at %d", columns, columnsMax)
		}
	}
}
