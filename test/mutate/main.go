// Command mutate removes guards one by one, by machine, and reports those whose removal no test notices.
//
// A guard is the condition of an if statement or of a case of a switch without a tag. Each mutant makes one of them false.
// The mutant is compiled with go test's -overlay, so no file of the repository changes. Survivors that do not matter are
// listed in survivors.txt with the reason; any other survivor makes the command fail.
//
//	go run ./test/mutate -pkg ./services/reconciler -files pass.go,plan.go
//	go run ./test/mutate -pkg ./harness -part 2/4
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed survivors.txt
var survivors string

// mutant is one guard and the file without it.
type mutant struct {
	file string // path of the source file, as it was given
	line int
	cond string // its text
	text []byte // of the whole file with the condition made false
}

// key names the guard without its line, which moves. Two equal guards of a file share it.
func (m mutant) key() string { return fmt.Sprintf("%s: %s", filepath.ToSlash(m.file), m.cond) }

func main() {
	pkg := flag.String("pkg", "", "package `folder` whose guards are removed, as ./harness")
	files := flag.String("files", "", "only these `files` of it, separated by commas")
	tests := flag.String("tests", "", "packages whose tests are run, separated by spaces; default: the package itself")
	run := flag.String("run", "", "go test's -run")
	limit := flag.Duration("limit", 3*time.Minute, "how long the tests may take for one mutant; a test that hangs has noticed it")
	part := flag.String("part", "1/1", "which `part` of the mutants, as 2/4")
	flag.Parse()
	if *pkg == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	all, err := mutants(*pkg, *files)
	fatal(err)
	var nth, of int
	if _, err := fmt.Sscanf(*part, "%d/%d", &nth, &of); err != nil || nth < 1 || nth > of {
		fatal(fmt.Errorf("-part %s: want n/m with n from 1 to m", *part))
	}
	packages := strings.Fields(*tests)
	if len(packages) == 0 {
		packages = []string{*pkg}
	}
	listed := reasons(survivors)
	dir, err := os.MkdirTemp("", "mutate")
	fatal(err)
	lived, known, tried := 0, 0, 0
	for i, m := range all {
		if i%of != nth-1 {
			continue
		}
		tried++
		killed, by := try(dir, m, packages, *run, *limit)
		reason, ok := listed[m.key()]
		switch {
		case killed:
			fmt.Printf("killed    %s:%d: %s (%s)\n", m.file, m.line, m.cond, by)
		case ok:
			known++
			fmt.Printf("known     %s:%d: %s (%s)\n", m.file, m.line, m.cond, reason)
		default:
			lived++
			fmt.Printf("SURVIVED  %s:%d: %s\n", m.file, m.line, m.cond)
		}
	}
	fmt.Printf("%d mutants, %d survived, %d of them known\n", tried, lived+known, known)
	fatal(os.RemoveAll(dir))
	if lived > 0 {
		os.Exit(1)
	}
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// reasons reads the list: a guard's key, a tab, the reason.
func reasons(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if key, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			found[key] = reason
		}
	}
	return found
}

// mutants finds the guards of a package's files.
func mutants(folder, only string) (all []mutant, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || only != "" && !slices.Contains(strings.Split(only, ","), name) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := guards(path, text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no guards in %s %s", folder, only)
	}
	return all, nil
}

// guards finds the conditions of one file.
func guards(path string, text []byte) (all []mutant, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, text, 0)
	if err != nil {
		return nil, err
	}
	add := func(cond ast.Expr) {
		from, to := set.Position(cond.Pos()).Offset, set.Position(cond.End()).Offset
		changed := slices.Concat(text[:from], []byte("(("), text[from:to], []byte(") && false)"), text[to:])
		flat := strings.Join(strings.Fields(string(text[from:to])), " ")
		all = append(all, mutant{file: path, line: set.Position(cond.Pos()).Line, cond: flat, text: changed})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
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
	return all, nil
}

// try runs the tests against one mutant and reports whether they noticed, and which did.
func try(dir string, m mutant, packages []string, run string, limit time.Duration) (killed bool, by string) {
	name := filepath.Join(dir, fmt.Sprintf("%x.go", sha256.Sum256(m.text)))
	fatal(os.WriteFile(name, m.text, 0o600))
	path, err := filepath.Abs(m.file)
	fatal(err)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: name}})
	fatal(err)
	list := filepath.Join(dir, "overlay.json")
	fatal(os.WriteFile(list, overlay, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	args := []string{"test", "-vet=off", "-failfast", "-overlay", list, "-timeout", limit.String()}
	if run != "" {
		args = append(args, "-run", run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false, ""
	}
	for line := range bytes.Lines(out) {
		text := strings.TrimSpace(string(line))
		if test, ok := strings.CutPrefix(text, "--- FAIL: "); ok {
			return true, test
		}
		if strings.Contains(text, "declared and not used") || strings.Contains(text, "[build failed]") {
			return true, "it does not compile"
		}
	}
	return true, "no test ended"
}
