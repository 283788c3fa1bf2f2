package house

import "go/ast"

// Limits of sizes. Lines a file and files a package have none: such limits led to packing, not to design.
const (
	functionLinesMax     = 70
	interfaceMethodsMax  = 3
	interfaceOfManyLines = "an interface belongs to its user and has one to three methods; take what you need, or split it"
)

// functionSizes counts the lines of functions. In tests the rows of a table are not counted: they are data.
func functionSizes(t *Tree) {
	for _, f := range t.goFiles(true) {
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			lines := f.Line(fn.End()) - f.Line(fn.Pos()) + 1
			if f.Test() {
				lines -= f.tableLines(fn)
			}
			if lines > functionLinesMax {
				t.find(f.Path, f.Line(fn.Pos()), "%s has %d lines, at most %d: keep the branching here and move the rest to helpers", fn.Name.Name, lines, functionLinesMax)
			}
		}
	}
}

// tableLines are the lines of a function that lie within its outermost composite literals.
func (f *File) tableLines(fn *ast.FuncDecl) int {
	lines := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if ok {
			lines += f.Line(literal.End()) - f.Line(literal.Pos())
		}
		return !ok
	})
	return lines
}

func interfaceSizes(t *Tree) {
	for _, f := range t.goFiles(false) {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > interfaceMethodsMax {
				t.find(f.Path, f.Line(i.Pos()), "%d methods: %s", i.Methods.NumFields(), interfaceOfManyLines)
			}
			return true
		})
	}
}
