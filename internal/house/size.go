package house

import (
	"go/ast"
	"strings"
)

// Limits of sizes. Beyond them nobody keeps a thing in mind.
const (
	functionLinesMax     = 70
	fileLinesMax         = 400
	testFileLinesMax     = 600
	packageFilesMax      = 12 // without tests
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

func fileSizes(t *Tree) {
	for _, f := range t.goFiles(true) {
		lines, most := strings.Count(f.Text, "\n"), fileLinesMax
		if f.Test() {
			most = testFileLinesMax
		}
		if lines > most {
			t.find(f.Path, lines, "%d lines, at most %d: a file is one noun; find the second one in it", lines, most)
		}
	}
}

func packageSizes(t *Tree) {
	folders, files := t.packages()
	for _, folder := range folders {
		if n := len(files[folder]); n > packageFilesMax {
			t.find(folder, 0, "%d files beside tests, at most %d: there is a second package in it", n, packageFilesMax)
		}
	}
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
