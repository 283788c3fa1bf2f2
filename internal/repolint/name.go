package repolint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// replaced are words that names of functions, types, fields, constants and package variables do not have, each with
// the words to use instead.
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

// names reports names with a word that has been replaced by the one that others use. Local variables and parameters
// are exempt: their declaration is in sight.
func names(t *Tree) {
	for _, f := range t.goFiles(true) {
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				t.checkName(f, d.Name)
			case *ast.GenDecl:
				t.checkSpecs(f, d)
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						t.checkName(f, name)
					}
				}
			}
			return true
		})
	}
}

func (t *Tree) checkSpecs(f *File, d *ast.GenDecl) {
	if d.Tok == token.IMPORT {
		return
	}
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			t.checkName(f, s.Name)
		case *ast.ValueSpec:
			for _, name := range s.Names {
				t.checkName(f, name)
			}
		}
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
