package repolint

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// errorTexts keeps names of packages out of errors: a person or an agent reads them, and does not know our packages.
// The harness is a library: its errors begin with its name, as those of the standard library do.
func errorTexts(t *Tree) {
	for _, f := range t.goFiles(false) {
		if !slices.ContainsFunc([]string{"pkg", "internal", "services", "bridges", "cmd"}, func(top string) bool {
			return under(f.Folder(), top)
		}) {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !slices.Contains([]string{"errors.New", "fmt.Errorf"}, callee(call)) {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			first, _, cut := strings.Cut(text, ": ")
			if err == nil && cut && slices.Contains(strings.Split(f.Folder(), "/"), first) {
				t.find(f.Path, f.Line(literal.Pos()), "%q is the name of a package, and people read errors: say what "+
					"was done, and to what", first)
			}
			return true
		})
	}
}

// callee returns the name of a function of another package, as it is called.
func callee(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}
