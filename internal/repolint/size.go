package repolint

import (
	"go/ast"
	"strings"
	"unicode/utf8"
)

// Limits of sizes. Lines per file and files per package have no limit: such limits led to packing, not to design.
const (
	functionLinesMax     = 70
	methodsMax           = 20 // exported methods of a type, embedded ones excepted
	tabColumns           = 4
	interfaceMethodsMax  = 3
	interfaceOfManyLines = "an interface belongs to its user and has one to three methods; take what you need, or " +
		"split it"
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
				t.find(f.Path, f.Line(fn.Pos()), "%s has %d lines, at most %d: keep the branching here and move the "+
					"rest to helpers", fn.Name.Name, lines, functionLinesMax)
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

// largeTypes are the types with more exported methods than methodsMax, with the number that each may have. ADR 220 says
// why they are not split.
var largeTypes = map[string]int{"pkg/events.Cell": 28, "pkg/session.State": 69}

// typeSizes counts the exported methods of each type.
func typeSizes(t *Tree) {
	folders, files := t.packages()
	for _, folder := range folders {
		count := make(map[string]int)
		for _, f := range files[folder] {
			for _, d := range f.Syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv == nil || !fn.Name.IsExported() {
					continue
				}
				name := receiverName(fn)
				count[name]++
				limit := max(methodsMax, largeTypes[folder+"."+name])
				if count[name] == limit+1 {
					t.find(f.Path, f.Line(fn.Pos()), "%s has more than %d exported methods: move what belongs "+
						"together to a type of its own", name, limit)
				}
			}
		}
	}
}

// receiverName returns the name of the type that a method belongs to.
func receiverName(fn *ast.FuncDecl) string {
	if name := receiver(fn); name != nil {
		return name.Name
	}
	return ""
}

// lineWidths reports lines of Go that are too wide to read side by side. A tab counts as four columns.
func lineWidths(t *Tree) {
	for _, f := range t.goFiles(true) {
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")) + strings.Count(line, "\t")*(tabColumns-1)
			if columns > columnsMax {
				t.find(f.Path, n, "%d columns: break the line at %d", columns, columnsMax)
			}
		}
	}
}
