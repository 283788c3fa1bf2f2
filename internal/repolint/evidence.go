package repolint

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// testNamed matches a test that a page names, with the names of subtests below it.
var testNamed = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*(?:/[\w'-]+)*`)

// pattern matches the argument of a command that chooses tests: it need not be a test's name.
var pattern = regexp.MustCompile(`-run[ =]\S+`)

// namedTests reports every test that a page names and no package has. A subtest has to be a string of the test's
// package. Records of decisions and the list of changes name what there was then.
func namedTests(t *Tree) {
	folders, literals := t.tests()
	for _, f := range t.Files {
		if path.Ext(f.Path) != ".md" || f.Folder() == decisions || f.Path == changeList || inTestdata(f.Path) {
			continue
		}
		for n, line := range strings.Split(f.Text, "\n") {
			for _, name := range testNamed.FindAllString(pattern.ReplaceAllString(line, ""), -1) {
				parts := strings.Split(name, "/")
				folder, ok := folders[parts[0]]
				for _, part := range parts[1:] {
					ok = ok && (literals[folder][part] || literals[folder][strings.ReplaceAll(part, "_", " ")])
				}
				if !ok {
					t.find(f.Path, n+1, "there is no test %s: name a test that shows it", name)
				}
			}
		}
	}
}

// changeList is the list of changes of each version.
const changeList = "CHANGELOG.md"

// tests returns the folder of each test, and the strings in the tests of each folder.
func (t *Tree) tests() (folders map[string]string, literals map[string]map[string]bool) {
	folders, literals = map[string]string{}, map[string]map[string]bool{}
	for _, f := range t.goFiles(true) {
		if !f.Test() {
			continue
		}
		at := f.Folder()
		if literals[at] == nil {
			literals[at] = map[string]bool{}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					folders[n.Name.Name] = at
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					literals[at][text] = true
				}
			}
			return true
		})
	}
	return folders, literals
}
