package repolint

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// logKeys is the closed list of keys in logs, so that a search needs to know no others.
var logKeys = []string{"service", "session", "entity", "id", "seq", "epoch", "incarnation", "reason", "err", "took"}

// logMethods are zerolog's, each with a key and a value.
var logMethods = []string{"Str", "Strs", "Stringer", "Bool", "Int", "Int64", "Uint", "Uint64", "Float64", "Dur", "Time",
	"Any", "Interface", "RawJSON", "AnErr"}

// logs holds log lines to the list of keys.
func logs(t *Tree) {
	for _, f := range t.goFiles(false) {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && unnamedError(call) {
				t.find(f.Path, f.Line(call.Pos()), "Err logs under the key \"error\": write AnErr(\"err\", …)")
			}
			if !ok || len(call.Args) != 2 {
				return true
			}
			method, isMethod := call.Fun.(*ast.SelectorExpr)
			key, isLiteral := call.Args[0].(*ast.BasicLit)
			if !isMethod || !isLiteral || key.Kind != token.STRING || !slices.Contains(logMethods, method.Sel.Name) {
				return true
			}
			if word, err := strconv.Unquote(key.Value); err == nil && !slices.Contains(logKeys, word) {
				t.find(f.Path, f.Line(key.Pos()), "log key %q: the keys are %s; put the rest into the message", word,
					strings.Join(logKeys, ", "))
			}
			return true
		})
	}
}

// unnamedError reports whether a call is zerolog's Err at the end of a chain of calls. Its key is "error", not "err".
func unnamedError(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Err" || len(call.Args) != 1 {
		return false
	}
	_, chained := method.X.(*ast.CallExpr)
	return chained
}
