package repolint

import (
	"go/ast"
	"path"
)

// busPath is the import path of the connection with its parts.
const busPath = Module + "/internal/bus"

// smallInterfaces checks that a function to which a connection is passed needs more of it than one part. Helpers for
// tests and measurements are free to take all of it.
func smallInterfaces(t *Tree) {
	for _, f := range t.goFiles(false) {
		name := f.importName(busPath)
		if name == "" || f.importName("testing") != "" || top2(f.Folder()) == "bench" {
			continue
		}
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for _, param := range connections(fn, name) {
				if part, one := onePart(fn.Body, param.Name); one {
					t.find(f.Path, f.Line(fn.Pos()), "%s uses %s.%s of a *bus.Bus and nothing else: take that "+
						"part, or an interface with the methods that are called", fn.Name.Name, param.Name, part)
				}
			}
		}
	}
}

// importName returns the name by which a file uses a package, "" if it does not import it.
func (f *File) importName(imported string) string {
	for _, spec := range f.Syntax.Imports {
		switch {
		case importOf(spec) != imported:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return path.Base(imported)
		}
	}
	return ""
}

// connections returns the parameters of a function that are a pointer to a Bus of the package of this name.
func connections(fn *ast.FuncDecl, pkg string) (all []*ast.Ident) {
	for _, field := range fn.Type.Params.List {
		star, ok := field.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		sel, ok := star.X.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Bus" {
			continue
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == pkg {
			all = append(all, field.Names...)
		}
	}
	return all
}

// onePart reports whether a body uses a variable only as variable.Part, with one Part that is a field, not a method.
func onePart(body *ast.BlockStmt, variable string) (part string, one bool) {
	parts, methods, whole := map[string]bool{}, false, false
	called := map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[n.Fun] = true
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && id.Name == variable {
				part = n.Sel.Name
				parts[part] = true
				methods = methods || called[n]
				return false
			}
		case *ast.Ident:
			whole = whole || n.Name == variable
		}
		return true
	})
	return part, len(parts) == 1 && !methods && !whole
}
