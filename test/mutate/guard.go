package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// guard is one condition that can be switched off.
type guard struct {
	n    int    // its number in the package
	file string // path of the source file, relative to the repository
	line int
	fun  string // the function that it stands in
	cond string // its text, on one line
	nth  int    // among the equal guards of the function, from 1
}

// key names the guard without its line, which moves.
func (g guard) key() string {
	key := fmt.Sprintf("%s %s: %s", g.file, g.fun, g.cond)
	if g.nth > 1 {
		key += fmt.Sprintf(" #%d", g.nth)
	}
	return key
}

func (g guard) String() string { return fmt.Sprintf("%s:%d: %s", g.file, g.line, g.cond) }

const (
	offVariable     = "HF_MUTATE_OFF"     // number of the guard that is false
	reachedVariable = "HF_MUTATE_REACHED" // file that gets the number of every guard that was true
)

// helper is the file added to the package: hfGuard(n) stands behind every condition, and is called when it is true.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	hfGuardOff, _ = strconv.Atoi(os.Getenv("` + offVariable + `"))
	hfGuardFile   = os.Getenv("` + reachedVariable + `")
	hfGuardSeen   [%d]atomic.Bool
)

func hfGuard(n int) bool {
	if hfGuardFile != "" && !hfGuardSeen[n].Swap(true) {
		if f, err := os.OpenFile(hfGuardFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(strconv.Itoa(n) + "\n")
			_ = f.Close()
		}
	}
	return n != hfGuardOff
}
`

// folder is a package as the go command lists it.
type folder struct {
	Dir, Name string
	GoFiles   []string
}

func list(pkg string) (f folder, err error) {
	out, err := exec.Command("go", "list", "-json=Dir,Name,GoFiles", pkg).Output()
	if err != nil {
		return f, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return f, json.Unmarshal(out, &f)
}

// switchable writes the package's files with switches, and the list for -overlay that replaces them, into dir.
func switchable(dir, pkg string) (overlay string, all []guard, err error) {
	f, err := list(pkg)
	if err != nil {
		return "", nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	replace := map[string]string{}
	write := func(name string, text []byte) error {
		copied := filepath.Join(dir, name)
		replace[filepath.Join(f.Dir, name)] = copied
		return os.WriteFile(copied, text, 0o600)
	}
	for _, name := range f.GoFiles {
		text, err := os.ReadFile(filepath.Join(f.Dir, name))
		if err != nil {
			return "", nil, err
		}
		path, err := filepath.Rel(here, filepath.Join(f.Dir, name))
		if err != nil {
			return "", nil, err
		}
		changed, found, err := guards(filepath.ToSlash(path), text, len(all)+1)
		if err != nil {
			return "", nil, err
		}
		all = append(all, found...)
		if err := write(name, changed); err != nil {
			return "", nil, err
		}
	}
	if len(all) == 0 {
		return "", nil, fmt.Errorf("no guards in %s", pkg)
	}
	if err := write("hf_guard_switch.go", fmt.Appendf(nil, helper, f.Name, len(all)+1)); err != nil {
		return "", nil, err
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, all, os.WriteFile(overlay, body, 0o600)
}

// guards finds the conditions of one file, numbers them from first, and returns the file with a switch behind each.
func guards(path string, text []byte, first int) (changed []byte, all []guard, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	type insertion struct {
		at   int
		text string
	}
	var insertions []insertion
	fun, equal := "", map[string]int{}
	add := func(cond ast.Expr) {
		from, to := set.Position(cond.Pos()).Offset, set.Position(cond.End()).Offset
		flat := strings.Join(strings.Fields(string(text[from:to])), " ")
		g := guard{n: first + len(all), nth: 1, file: path, line: set.Position(cond.Pos()).Line, fun: fun, cond: flat}
		equal[g.key()]++
		g.nth = equal[g.key()]
		all = append(all, g)
		insertions = append(insertions, insertion{from, "("}, insertion{to, fmt.Sprintf(") && hfGuard(%d)", g.n)})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			fun = n.Name.Name
		case *ast.IfStmt:
			add(n.Cond)
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				if clause, ok := c.(*ast.CaseClause); ok && n.Tag == nil {
					for _, cond := range clause.List {
						add(cond)
					}
				}
			}
		}
		return true
	})
	slices.SortStableFunc(insertions, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	done := 0
	for _, in := range insertions {
		changed = append(append(changed, text[done:in.at]...), in.text...)
		done = in.at
	}
	return append(changed, text[done:]...), all, nil
}
