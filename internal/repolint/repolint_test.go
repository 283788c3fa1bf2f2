package repolint

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// update writes down what the rules find in the snippets instead of comparing it.
var update = flag.Bool("update", false, "write the findings to testdata")

// The repository keeps every rule.
func TestRepository(t *testing.T) {
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 20 {
		t.Fatalf("only %d files: this is not the repository", len(tree.Files))
	}
	for _, f := range tree.Check() {
		t.Error(f)
	}
}

const findings = "findings"

// Each snippet breaks the rule it is named after, in the places listed at its end and in no other. So a rule that
// cannot fail is seen, and so is one that fails too often: the snippets have near misses too.
func TestRulesFail(t *testing.T) {
	for _, r := range Rules() {
		t.Run(r.Name, func(t *testing.T) {
			file := filepath.Join("testdata", strings.ReplaceAll(r.Name, " ", "-")+".txtar")
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatalf("rule %q has no snippet that breaks it: %v", r.Name, err)
			}
			got := checkSnippet(t, archive, r.Name)
			if got == "" {
				t.Fatalf("rule %q finds nothing in %s", r.Name, file)
			}
			if *update {
				rewrite(t, file, archive, got)
			}
			if want := section(archive, findings); got != want {
				t.Errorf("found\n%swant\n%s", got, want)
			}
		})
	}
}

// checkSnippet is what one rule finds in a snippet, a line each.
func checkSnippet(t *testing.T, archive *txtar.Archive, rule string) string {
	t.Helper()
	root := fstest.MapFS{}
	for _, f := range archive.Files {
		if f.Name != findings {
			// A snippet breaks its words with a bar where it must not say them itself.
			root[f.Name] = &fstest.MapFile{Data: bytes.ReplaceAll(f.Data, []byte("¦"), nil)}
		}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range tree.Check() {
		if f.Rule == rule {
			b.WriteString(f.String() + "\n")
		}
	}
	return b.String()
}

func section(archive *txtar.Archive, name string) string {
	for _, f := range archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func rewrite(t *testing.T, file string, archive *txtar.Archive, got string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == findings })
	archive.Files = append(archive.Files, txtar.File{Name: findings, Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every snippet belongs to a rule that still exists.
func TestSnippetsHaveRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(Rules()) {
		t.Errorf("%d snippets for %d rules: %v", len(files), len(Rules()), files)
	}
}

// Go that cannot be parsed is an error, not an empty finding.
func TestLoadFails(t *testing.T) {
	_, err := Load(fstest.MapFS{"pkg/x/x.go": {Data: []byte("package x\nfunc {")}})
	if err == nil || !strings.Contains(err.Error(), "pkg/x/x.go:2") {
		t.Errorf("%v, want the place of the syntax error", err)
	}
}

// Limits hold to the line: what is just within is not found.
func TestSizesToTheLine(t *testing.T) {
	function := func(lines int) string {
		return "// Package x is.\npackage x\nfunc f() {\n" + strings.Repeat("\t_ = 1\n", lines-2) + "}\n"
	}
	table := "package x\nfunc f() {\n\t_ = []int{\n" + strings.Repeat("\t\t1,\n", 200) + "\t}\n}\n"
	one := func(name, text string) fstest.MapFS { return fstest.MapFS{name: {Data: []byte(text)}} }
	for _, c := range []struct {
		name, rule string
		tree       fstest.MapFS
		found      bool
	}{
		{"a function of 70 lines", "function size", one("pkg/x/x.go", function(70)), false},
		{"a function of 71 lines", "function size", one("pkg/x/x.go", function(71)), true},
		{"a test function of 71 lines", "function size", one("pkg/x/x_test.go", function(71)), true},
		{"a test of one long table", "function size", one("pkg/x/x_test.go", table), false},
		{"the same table in code", "function size", one("pkg/x/x.go", table), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := Load(c.tree)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(tree.Check(), func(f Finding) bool { return f.Rule == c.rule })
			if found != c.found {
				t.Errorf("found: %v, want %v", found, c.found)
			}
		})
	}
}
