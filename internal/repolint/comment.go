package repolint

import (
	"go/ast"
	"go/doc"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

// documented wants a comment on every exported name outside tests. The name in a group may be explained by the group.
func documented(t *Tree) {
	for _, f := range t.goFiles(false) {
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && empty(d.Doc) {
					t.undocumented(f, d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t.documentedSpec(f, d, spec)
				}
			}
		}
	}
}

func (t *Tree) documentedSpec(f *File, d *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && empty(d.Doc) && empty(s.Doc) {
			t.undocumented(f, s.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && empty(d.Doc) && empty(s.Doc) && empty(s.Comment) {
				t.undocumented(f, name)
			}
		}
	}
}

func (t *Tree) undocumented(f *File, name *ast.Ident) {
	t.find(f.Path, f.Line(name.Pos()), "%s is exported and not documented: say its shape, its unit, its errors",
		name.Name)
}

func empty(c *ast.CommentGroup) bool { return c == nil || strings.TrimSpace(c.Text()) == "" }

// exportedReceiver reports whether a function has no receiver, or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	name := receiver(d)
	return name != nil && name.IsExported()
}

// receiver returns the name of the type that a method belongs to, nil for another receiver.
func receiver(d *ast.FuncDecl) *ast.Ident {
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}

// commentsAbove reports comments behind the statements of functions. Rows of tables, fields and single arguments keep
// theirs, and so does what a tool reads.
func commentsAbove(t *Tree) {
	for _, f := range t.goFiles(true) {
		rows := f.rows()
		lines := strings.Split(f.Text, "\n")
		for _, group := range f.Syntax.Comments {
			c := group.List[0]
			at := f.Set.Position(c.Pos())
			code := strings.TrimSpace(lines[at.Line-1][:at.Column-1])
			if code != "" && !strings.HasSuffix(code, ",") && !strings.HasPrefix(c.Text, "//nolint") &&
				!rows[at.Line] && f.inFunction(c.Pos()) {
				t.find(f.Path, at.Line, "a comment behind a statement: write it above")
			}
		}
	}
}

// rows returns the lines of fields, of methods of interfaces, and of elements of composite literals of several lines.
func (f *File) rows() map[int]bool {
	rows := make(map[int]bool)
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FieldList:
			for _, field := range n.List {
				rows[f.Line(field.Pos())] = true
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				rows[f.Line(e.Pos())] = f.Line(e.Pos()) > f.Line(n.Lbrace) && f.Line(e.Pos()) < f.Line(n.Rbrace)
			}
		}
		return true
	})
	return rows
}

// inFunction reports whether a place is in the body of a function.
func (f *File) inFunction(pos token.Pos) bool {
	return slices.ContainsFunc(f.Syntax.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Body != nil && fn.Body.Lbrace < pos && pos < fn.Body.Rbrace
	})
}

// purposeMax is the longest first sentence of a package comment, in characters: one purpose, one row of a table.
const purposeMax = 160

// purposes requires that the first sentence of each package comment names the one purpose of the package.
func purposes(t *Tree) {
	folders, files := t.packages()
	for _, folder := range folders {
		for _, f := range files[folder] {
			if empty(f.Syntax.Doc) {
				continue
			}
			sentence := new(doc.Package).Synopsis(f.Syntax.Doc.Text())
			switch n := utf8.RuneCountInString(sentence); {
			case n > purposeMax:
				t.find(f.Path, 1, "the first sentence has %d characters, at most %d: name the one purpose of the "+
					"package, and describe it in the sentences that follow", n, purposeMax)
			case !strings.HasSuffix(sentence, "."):
				t.find(f.Path, 1, "the package comment does not begin with a sentence: name the one purpose of the "+
					"package")
			}
		}
	}
}

// packageComments wants one package comment a package, in one file.
func packageComments(t *Tree) {
	folders, files := t.packages()
	for _, folder := range folders {
		var with []*File
		for _, f := range files[folder] {
			if !empty(f.Syntax.Doc) {
				with = append(with, f)
			}
		}
		name := files[folder][0].Syntax.Name.Name
		switch {
		case len(with) == 0:
			t.find(files[folder][0].Path, 1, "package %s has no package comment: what it is for, what it promises, "+
				"what happens under failure", name)
		case len(with) > 1:
			t.find(with[1].Path, 1, "package %s has a second package comment, the first is in %s: one design page a "+
				"package", name, with[0].Path)
		case name != "main" && !strings.HasPrefix(with[0].Syntax.Doc.Text(), "Package "+name+" "):
			t.find(with[0].Path, 1, "the package comment begins otherwise than \"Package %s …\"", name)
		}
	}
}
