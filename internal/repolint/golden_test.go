package repolint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMakeGoldenRunsAllThatWrite: each test that can read the flag -update matches GOLDEN in the Makefile, so
// `make golden` runs it.
func TestMakeGoldenRunsAllThatWrite(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^GOLDEN\s*:= (\S+)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no GOLDEN")
	}
	golden := regexp.MustCompile("^(" + string(line[1]) + ")$")
	found := 0
	for _, pattern := range []string{"../../*/*/*_test.go", "../../*/*/*/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		folders := map[string][]string{}
		for _, name := range names {
			folders[filepath.Dir(name)] = append(folders[filepath.Dir(name)], name)
		}
		for folder, names := range folders {
			for _, test := range testsThatUse(t, names, "update") {
				found++
				if !golden.MatchString(test) {
					t.Errorf("%s: %s writes files with -update: name it in GOLDEN in the Makefile", folder, test)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d tests that write golden files, want 20 or more", found)
	}
}

// testsThatUse returns the tests of a package that reach a variable of its tests, directly or through functions that
// they name.
func testsThatUse(t *testing.T, files []string, name string) (tests []string) {
	t.Helper()
	uses, declared := map[string]map[string]bool{}, false
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			declared = declared || declares(d, name)
			fn, _ := d.(*ast.FuncDecl)
			if fn == nil || fn.Body == nil {
				continue
			}
			named := map[string]bool{}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, _ := n.(*ast.Ident); id != nil {
					named[id.Name] = true
				}
				return true
			})
			uses[fn.Name.Name] = named
		}
	}
	if !declared {
		return nil
	}
	reach := map[string]bool{name: true}
	for grown := true; grown; {
		grown = false
		for fn, named := range uses {
			for of := range named {
				if reach[of] && !reach[fn] {
					reach[fn], grown = true, true
				}
			}
		}
	}
	for fn := range reach {
		if strings.HasPrefix(fn, "Test") && fn != "TestMain" {
			tests = append(tests, fn)
		}
	}
	return tests
}

// declares reports whether a declaration is that of a variable.
func declares(d ast.Decl, name string) bool {
	g, _ := d.(*ast.GenDecl)
	if g == nil || g.Tok != token.VAR {
		return false
	}
	return slices.ContainsFunc(g.Specs, func(s ast.Spec) bool {
		v, _ := s.(*ast.ValueSpec)
		return v != nil && slices.ContainsFunc(v.Names, func(id *ast.Ident) bool { return id.Name == name })
	})
}
