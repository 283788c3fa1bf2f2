package repolint

import (
	"go/ast"
	"slices"
	"strings"
)

// replaced are words that names do not have, each with the words to use instead.
var replaced = map[string]string{
	"tell": "send, notify or report", "tells": "send, notify or report",
	"say": "log, record, print or write", "says": "want, text or output", "said": "text, output or recorded",
	"hear": "receive", "hears": "receive", "heard": "received or last seen",
	"look": "check or read", "looks": "checks", "looked": "checked",
	"wake": "resume or check", "wakes": "resumes or checks",
	"judge": "the name of the result, such as verdict or liveness", "judged": "decided, checked or compared",
	"judging": "deciding or checking",
	"kin":     "child index or tree", "family": "tree or root session",
	"wish": "request", "desk": "draft", "calm": "a word for what is skipped or tried again",
	"lives": "alive, kept or the number of processes",
}

// names reports declared names with a word that has been replaced by the one that others use.
func names(t *Tree) {
	for _, f := range t.goFiles(true) {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					t.checkName(f, n.Name)
				}
			case *ast.Ident:
				if n.Obj != nil && n.Obj.Pos() == n.Pos() {
					t.checkName(f, n)
				}
			}
			return true
		})
	}
}

func (t *Tree) checkName(f *File, name *ast.Ident) {
	for _, word := range splitName(name.Name) {
		if use, ok := replaced[strings.ToLower(word)]; ok {
			t.find(f.Path, f.Line(name.Pos()), "%s has the word %q: use %s", name.Name, word, use)
		}
	}
}

// splitName returns the words of a name in mixed case.
func splitName(name string) []string {
	var words []string
	begin := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		upper := i < len(runes) && isUpper(runes[i])
		starts := upper && (!isUpper(runes[i-1]) || i+1 < len(runes) && isLower(runes[i+1]))
		if i == len(runes) || starts || runes[i] == '_' {
			words = append(words, strings.Trim(string(runes[begin:i]), "_"))
			begin = i
		}
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }

func isLower(r rune) bool { return r >= 'a' && r <= 'z' }
