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
// hfNeed(n) stands behind every operand of &&, and is called when that is false.
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

func hfNeed(n int) bool { return !hfGuard(n) }
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

// finder finds the guards of one file, [guards] or [operands], and numbers them from first.
type finder func(path string, text []byte, first int) (changed []byte, all []guard, err error)

// switchable writes the package's files with switches, and the list for -overlay that replaces them, into dir.
func switchable(dir, pkg string, find finder) (overlay string, all []guard, err error) {
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
		changed, found, err := find(filepath.ToSlash(path), text, len(all)+1)
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

// source is one file while its guards are found.
type source struct {
	path       string
	text       []byte
	set        *token.FileSet
	tree       *ast.File
	first      int
	fun        string         // the function that is looked at
	equal      map[string]int // how many guards have this key
	all        []guard
	insertions []insertion
}

type insertion struct {
	at   int
	text string
}

func parse(path string, text []byte, first int) (*source, error) {
	s := &source{path: path, text: text, set: token.NewFileSet(), first: first, equal: map[string]int{}}
	var err error
	s.tree, err = parser.ParseFile(s.set, path, text, parser.ParseComments)
	return s, err
}

// add counts an expression as a guard and returns its number. prefix stands before its text.
func (s *source) add(x ast.Expr, prefix string) int {
	flat := strings.Join(strings.Fields(string(s.text[s.offset(x.Pos()):s.offset(x.End())])), " ")
	g := guard{n: s.first + len(s.all), nth: 1, file: s.path, line: s.set.Position(x.Pos()).Line, fun: s.fun,
		cond: prefix + flat}
	s.equal[g.key()]++
	g.nth = s.equal[g.key()]
	s.all = append(s.all, g)
	return g.n
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

func (s *source) insert(at token.Pos, text string) {
	s.insertions = append(s.insertions, insertion{s.offset(at), text})
}

// changed returns the file with what was inserted. Insertions at one place keep their order.
func (s *source) changed() (changed []byte) {
	slices.SortStableFunc(s.insertions, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	done := 0
	for _, in := range s.insertions {
		changed = append(append(changed, s.text[done:in.at]...), in.text...)
		done = in.at
	}
	return append(changed, s.text[done:]...)
}

// guards finds the conditions of one file, and returns the file with a switch behind each, which makes it false.
func guards(path string, text []byte, first int) (changed []byte, all []guard, err error) {
	s, err := parse(path, text, first)
	if err != nil {
		return nil, nil, err
	}
	add := func(cond ast.Expr) {
		s.insert(cond.Pos(), "(")
		s.insert(cond.End(), fmt.Sprintf(") && hfGuard(%d)", s.add(cond, "")))
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.fun = n.Name.Name
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
	return s.changed(), s.all, nil
}

// operands finds the operands of && and || in one file, and returns the file with a switch behind each, which removes
// it: one of || is then false, one of && is true.
func operands(path string, text []byte, first int) (changed []byte, all []guard, err error) {
	s, err := parse(path, text, first)
	if err != nil {
		return nil, nil, err
	}
	seen := map[*ast.BinaryExpr]bool{}
	var chain func(b *ast.BinaryExpr)
	chain = func(b *ast.BinaryExpr) {
		seen[b] = true
		for _, side := range []ast.Expr{b.X, b.Y} {
			x := ast.Unparen(side)
			inner, _ := x.(*ast.BinaryExpr)
			if inner != nil && inner.Op == b.Op {
				chain(inner)
				continue
			}
			end := ") && hfGuard(%d))"
			if b.Op == token.LAND {
				end = ") || hfNeed(%d))"
			}
			n := s.add(x, b.Op.String()+" ")
			s.insert(x.Pos(), "((")
			if inner != nil && logical(inner) {
				chain(inner)
			}
			s.insert(x.End(), fmt.Sprintf(end, n))
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.fun = n.Name.Name
		case *ast.BinaryExpr:
			if logical(n) && !seen[n] {
				chain(n)
			}
		}
		return true
	})
	return s.changed(), s.all, nil
}

func logical(b *ast.BinaryExpr) bool { return b.Op == token.LAND || b.Op == token.LOR }

// isOperand reports whether the key is that of an operand.
func isOperand(key string) bool {
	_, cond, _ := strings.Cut(key, ": ")
	return strings.HasPrefix(cond, "&& ") || strings.HasPrefix(cond, "|| ")
}
