// Package repolint checks how this repository is laid out and written: rules with a reason in the message.
//
// A rule sees the whole tree, so that it holds for folders that are not there yet. It says file, line and what to do.
// Each is shown to fail by a snippet in testdata; a rule that no snippet breaks fails the tests itself.
//
//	repolint.go  the tree and the list of rules
//	import.go    who may import what
//	size.go      how large things may get
//	part.go      who takes a whole connection
//	forbidden.go what code does not do: sleep, skip, draw numbers in pure code …
//	comment.go   what is documented, and where comments stand
//	layout.go    what has to be where
//	fact.go      what belongs to a new kind of fact
//	log.go       what log lines are made of
//	error.go     what errors begin with
//	name.go      which words names do not have
//	cite.go      what is cited is in the repository
//	text.go      what no file says
package repolint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Module is the import path of the repository's root.
const Module = "github.com/holdfast-dev/holdfast"

// File is one file of the tree. Syntax is nil unless it is Go outside testdata.
type File struct {
	Path   string // from the root, with slashes
	Text   string
	Syntax *ast.File
	Set    *token.FileSet
}

// Folder is the file's folder, "." for the root.
func (f *File) Folder() string { return path.Dir(f.Path) }

// Test says whether the file is a Go test.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Line is the line of a place in the file.
func (f *File) Line(pos token.Pos) int { return f.Set.Position(pos).Line }

// Finding is one breach of a rule.
type Finding struct {
	Path    string
	Line    int // 0: the file or folder as a whole
	Rule    string
	Message string // what is wrong, why, and what to do
}

// String is path:line: message (rule), as editors understand it.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", f.Path, f.Line, f.Message, f.Rule)
}

// Tree is the repository as the rules see it.
type Tree struct {
	Files []*File // in the order of their paths

	rule     string
	findings []Finding
}

// Load reads a tree. It fails when a file cannot be read, or Go cannot be parsed.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(uncommitted, name), d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case !d.Type().IsRegular(), name == ".git":
			// in a linked worktree it is a file
			return nil
		}
		f, err := load(root, name)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, f)
		return nil
	})
	return t, err
}

// uncommitted are the folders at the root that are never committed.
var uncommitted = []string{".git", ".cache", "bin", "holdfast-data"}

// textBytesMax is the largest file whose text is looked at; more is a recording, not text of ours.
const textBytesMax = 8 << 20

func load(root fs.FS, name string) (*File, error) {
	f := &File{Path: name, Set: token.NewFileSet()}
	if info, err := fs.Stat(root, name); err != nil || info.Size() > textBytesMax {
		return f, err
	}
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	f.Text = string(text)
	if strings.HasSuffix(name, ".go") && !inTestdata(name) {
		f.Syntax, err = parser.ParseFile(f.Set, name, text, parser.ParseComments)
	}
	return f, err
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// Rule is one rule of the repository.
type Rule struct {
	Name  string
	check func(*Tree)
}

// Rules are all rules.
func Rules() []Rule {
	return []Rule{
		{"imports", imports}, {"pure imports", pureImports}, {"assertions", assertions},
		{"function size", functionSizes}, {"interface size", interfaceSizes}, {"type size", typeSizes},
		{"small interfaces", smallInterfaces},
		{"line width", lineWidths},
		{"no sleep in tests", noSleep}, {"no skipped tests", noSkip}, {"no init", noInit},
		{"no package variables", noVariables},
		{"pure code", pure}, {"log keys", logs}, {"error texts", errorTexts},
		{"package names", packageNames}, {"names", names},
		{"exported names documented", documented}, {"package comments", packageComments},
		{"comments above", commentsAbove},
		{"package purpose", purposes},
		{"facts", facts}, {"services", services}, {"dependencies have reasons", dependencies},
		{"one number a decision", decisionNumbers},
		{"citations resolve", citations}, {"named tests exist", namedTests}, {"plain words", prose},
		{"nothing left to do", nothingLeft}, {"nothing names the workplace", noWorkplace},
	}
}

// Check is what all rules find, in the order of the rules and the paths.
func (t *Tree) Check() []Finding {
	t.findings = nil
	for _, r := range Rules() {
		t.rule = r.Name
		r.check(t)
	}
	return t.findings
}

func (t *Tree) find(name string, line int, format string, args ...any) {
	t.findings = append(t.findings, Finding{Path: name, Line: line, Rule: t.rule,
		Message: fmt.Sprintf(format, args...)})
}

// goFiles are the files with syntax, tests among them or not.
func (t *Tree) goFiles(tests bool) []*File {
	var files []*File
	for _, f := range t.Files {
		if f.Syntax != nil && (tests || !f.Test()) {
			files = append(files, f)
		}
	}
	return files
}

// packages are the Go files that are no tests, by folder, and the folders in order.
func (t *Tree) packages() (folders []string, files map[string][]*File) {
	files = make(map[string][]*File)
	for _, f := range t.goFiles(false) {
		if files[f.Folder()] == nil {
			folders = append(folders, f.Folder())
		}
		files[f.Folder()] = append(files[f.Folder()], f)
	}
	return folders, files
}

// has says whether there is a file of this path.
func (t *Tree) has(name string) bool {
	return slices.ContainsFunc(t.Files, func(f *File) bool { return f.Path == name })
}

// under says whether a path is this folder or below it.
func under(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
