package repolint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// selectors calls visit with each pkg.Name in a file, pkg being the name as written.
func (f *File) selectors(visit func(pkg, name string, at token.Pos)) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				visit(x.Name, s.Sel.Name, s.Pos())
			}
		}
		return true
	})
}

func noSleep(t *Tree) {
	for _, f := range t.goFiles(true) {
		if !f.Test() && f.Folder() != "internal/natstest" {
			continue
		}
		f.selectors(func(pkg, name string, at token.Pos) {
			if pkg == "time" && name == "Sleep" {
				t.find(f.Path, f.Line(at), "time.Sleep: wait for the thing, not for a while: a channel, a watch, a "+
					"poll with a deadline, testing/synctest")
			}
		})
	}
}

// skips are how a test can end without having tested.
var skips = []string{"Skip", "Skipf", "SkipNow"}

func noSkip(t *Tree) {
	for _, f := range t.goFiles(true) {
		if !f.Test() {
			continue
		}
		f.selectors(func(pkg, name string, at token.Pos) {
			switch {
			case slices.Contains(skips, name):
				t.find(f.Path, f.Line(at), "%s.%s: a skipped test passes in silence; make what it needs, or generate "+
					"only what it wants", pkg, name)
			case pkg == "testing" && name == "Short":
				t.find(f.Path, f.Line(at), "testing.Short: a test does the same for everybody; how much of it is a "+
					"flag with a default")
			}
		})
	}
}

func noInit(t *Tree) {
	for _, f := range t.goFiles(true) {
		for _, d := range f.Syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.find(f.Path, f.Line(fn.Pos()), "func init: what happens at start is called in main")
			}
		}
	}
}

// variables are a package's variables: their names, and where they are declared.
type variables struct {
	names map[string]bool
	specs map[any]bool
}

// noVariables lets a package have tables and errors; nothing may be assigned to them.
func noVariables(t *Tree) {
	folders, files := t.packages()
	for _, folder := range folders {
		vars := variables{names: make(map[string]bool), specs: make(map[any]bool)}
		for _, f := range files[folder] {
			for _, d := range f.Syntax.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					t.declarations(f, g, vars)
				}
			}
		}
		for _, f := range files[folder] {
			t.assignments(f, vars)
		}
	}
}

func (t *Tree) declarations(f *File, g *ast.GenDecl, vars variables) {
	for _, spec := range g.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok || s.Names[0].Name == "_" || embedded(g.Doc) || embedded(s.Doc) {
			continue
		}
		vars.specs[s] = true
		for i, name := range s.Names {
			vars.names[name.Name] = true
			if len(s.Values) != len(s.Names) || !fixed(s.Values[i]) {
				t.find(f.Path, f.Line(name.Pos()), "var %s: package variables are tables and errors; all other state "+
					"belongs to a value", name.Name)
			}
		}
	}
}

// embedded says whether a variable is a file of the source tree.
func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed")
	})
}

// makers are the calls whose result is as good as a constant.
var makers = []string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "template.Must", "strings.NewReplacer"}

// fixed says whether a value is a table or an error: a composite literal, one of the makers, a table built on the
// spot, or the error of another package.
func fixed(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.UnaryExpr:
		return v.Op == token.AND && fixed(v.X)
	case *ast.SelectorExpr:
		// the error of another package, under a name of this one
		_, ok := v.X.(*ast.Ident)
		return ok && strings.HasPrefix(v.Sel.Name, "Err")
	case *ast.CallExpr:
		switch fn := v.Fun.(type) {
		case *ast.FuncLit:
			return true
		case *ast.SelectorExpr:
			x, ok := fn.X.(*ast.Ident)
			return ok && slices.Contains(makers, x.Name+"."+fn.Sel.Name)
		}
	}
	return false
}

// assignments finds writes to package variables.
func (t *Tree) assignments(f *File, vars variables) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		var targets []ast.Expr
		switch s := n.(type) {
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				targets = s.Lhs
			}
		case *ast.IncDecStmt:
			targets = []ast.Expr{s.X}
		}
		for _, target := range targets {
			if root := rootOf(target); root != nil && vars.names[root.Name] && !vars.local(root) {
				t.find(f.Path, f.Line(root.Pos()), "%s is assigned to: a package variable is a table, and a table "+
					"does not change", root.Name)
			}
		}
		return true
	})
}

// rootOf is the variable that an assignment changes: a of a.b[c].d.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// local says whether a name was declared within a function. The parser resolves names within a file; one that it does
// not know is of the package.
func (v variables) local(name *ast.Ident) bool {
	return name.Obj != nil && !v.specs[name.Obj.Decl]
}

// impureTime is what package time offers beside instants and durations.
var impureTime = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep",
	"Local", "LoadLocation"}

// pure finds clocks, chance and concurrency in pkg and every decide.go.
func pure(t *Tree) {
	for _, f := range t.goFiles(false) {
		if !isPure(f) {
			continue
		}
		f.selectors(func(pkg, name string, at token.Pos) {
			switch {
			case pkg == "time" && slices.Contains(impureTime, name):
				t.find(f.Path, f.Line(at), "time.%s in pure code: time is an argument", name)
			case pkg == "http" && !strings.HasPrefix(name, "Status"):
				t.find(f.Path, f.Line(at), "http.%s in pure code: nothing but the names of codes", name)
			}
		})
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				t.find(f.Path, f.Line(n.Pos()), "goroutines and channels in pure code: it computes, others wait")
			}
			return true
		})
	}
}
