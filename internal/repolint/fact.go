package repolint

import (
	"go/ast"
	"regexp"
	"strings"
)

const (
	vocabulary = "pkg/events"
	kindsFile  = "pkg/events/kinds.go"
	foldFolder = "pkg/session"
)

// facts wants what belongs to a new kind of fact: its line in the table of kinds, its case in the fold, its story.
func facts(t *Tree) {
	table, cases := t.tableOfKinds(), t.foldedTypes()
	for _, f := range t.goFiles(false) {
		if f.Folder() != vocabulary {
			continue
		}
		for _, d := range f.Syntax.Decls {
			name, kind := kindMethod(d)
			line := f.Line(d.Pos())
			switch {
			case name == "" || kind == "":
			case !table[name]:
				t.find(f.Path, line, "%s (%s) has no line in the table of %s: who may say it?", name, kind, kindsFile)
			case !cases[name]:
				t.find(f.Path, line, "%s (%s) has no case in %s: what does it change?", name, kind, foldFolder)
			case !t.inStory(kind):
				t.find(f.Path, line, "%s (%s) is in no story under testdata: when does it happen, and what is seen "+
					"then?", name, kind)
			}
		}
	}
}

// kindMethod takes func (T) Kind() Kind { return "k" } apart.
func kindMethod(d ast.Decl) (typ, kind string) {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Name.Name != "Kind" || fn.Recv == nil || len(fn.Body.List) != 1 {
		return "", ""
	}
	receiver, ok := fn.Recv.List[0].Type.(*ast.Ident)
	result, returns := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || !returns || len(result.Results) != 1 {
		return "", ""
	}
	if literal, ok := result.Results[0].(*ast.BasicLit); ok {
		kind = strings.Trim(literal.Value, `"`)
	}
	return receiver.Name, kind
}

// tableOfKinds are the types T of spec[T](…) in the table of kinds.
func (t *Tree) tableOfKinds() map[string]bool {
	types := make(map[string]bool)
	for _, f := range t.goFiles(false) {
		if f.Path != kindsFile {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.IndexExpr); ok {
				fn, named := call.X.(*ast.Ident)
				typ, plain := call.Index.(*ast.Ident)
				if named && plain && fn.Name == "spec" {
					types[typ.Name] = true
				}
			}
			return true
		})
	}
	return types
}

// foldedTypes are the types events.T that the fold has a case for.
func (t *Tree) foldedTypes() map[string]bool {
	types := make(map[string]bool)
	for _, f := range t.goFiles(false) {
		if f.Folder() != foldFolder {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok {
				return true
			}
			for _, e := range clause.List {
				if s, ok := e.(*ast.SelectorExpr); ok {
					types[s.Sel.Name] = true
				}
			}
			return true
		})
	}
	return types
}

// inStory reports whether a story names this kind.
func (t *Tree) inStory(kind string) bool {
	word := regexp.MustCompile(`(^|[^a-z_.])` + regexp.QuoteMeta(kind) + `($|[^a-z_.])`)
	for _, f := range t.Files {
		ours := under(f.Folder(), "pkg") || under(f.Folder(), "services") || under(f.Folder(), "harness")
		if ours && inTestdata(f.Path) && word.MatchString(f.Text) {
			return true
		}
	}
	return false
}
