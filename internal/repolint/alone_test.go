package repolint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackagesWithoutTheRaceDetector: the Makefile leaves out of `make race` only packages that start no goroutine, in
// their tests either.
func TestPackagesWithoutTheRaceDetector(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ALONE\s*:= (\S+)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no ALONE")
	}
	alone := regexp.MustCompile("^(" + string(line[1]) + ")$")
	found := 0
	for _, pattern := range []string{"../../*/*", "../../*/*/*"} {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if alone.MatchString(strings.TrimPrefix(filepath.ToSlash(folder), "../../")) {
				found++
				startsNoGoroutine(t, folder)
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d packages of ALONE, want 5 or more", found)
	}
}

func startsNoGoroutine(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, _ := n.(*ast.SelectorExpr)
			if _, begins := n.(*ast.GoStmt); begins || selector != nil && selector.Sel.Name == "Parallel" {
				t.Errorf("%s: starts a goroutine: take its package out of ALONE in the Makefile", set.Position(n.Pos()))
			}
			return true
		})
	}
}
