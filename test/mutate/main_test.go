package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every condition of an if or of a switch without a tag is one guard; a switch over a value has none.
func TestGuards(t *testing.T) {
	const source = `package x
func f(a, b bool, n int) int {
	if a && b {
		return 1
	}
	switch {
	case a, func() bool { if b { return true }; return false }():
		return 2
	default:
	}
	switch n {
	case 3:
	}
	return 4
}
`
	changed, all, err := guards("x/x.go", []byte(source), 7)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range all {
		got = append(got, g.String())
	}
	want := "x/x.go:3: a && b|x/x.go:7: a|x/x.go:7: func() bool { if b { return true }; return false }()|x/x.go:7: b"
	if strings.Join(got, "|") != want {
		t.Errorf("guards: %s, want %s", strings.Join(got, "|"), want)
	}
	for _, want := range []string{
		"if (a && b) && hfGuard(7) {",
		"case (a) && hfGuard(8), (func() bool { if (b) && hfGuard(10) { return true }; return false }()) && " +
			"hfGuard(9):",
	} {
		if !strings.Contains(string(changed), want) {
			t.Errorf("no %q in\n%s", want, changed)
		}
	}
}

// Every operand of && and || is one guard of its own, wherever it stands; a chain of equal operators is one list.
func TestOperands(t *testing.T) {
	const source = `package x
func f(a, b, c, d bool) bool {
	if a && (b || !(c && d)) {
		return a || b && c || d
	}
	e := a == b
	return e
}
`
	changed, all, err := operands("x/x.go", []byte(source), 7)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range all {
		got = append(got, g.cond)
		if !isOperand(g.key()) {
			t.Errorf("%s is not known as an operand", g.key())
		}
	}
	want := "&& a; && b || !(c && d); || b; || !(c && d); && c; && d; || a; || b && c; && b; && c; || d"
	if strings.Join(got, "; ") != want {
		t.Errorf("operands: %s, want %s", strings.Join(got, "; "), want)
	}
	for _, want := range []string{
		"if ((a) || hfNeed(7)) && (((((b) && hfGuard(9)) || ((!(((c) || hfNeed(11)) && ((d) || hfNeed(12)))) " +
			"&& hfGuard(10))) || hfNeed(8))) {",
		"return ((a) && hfGuard(13)) || ((((b) || hfNeed(15)) && ((c) || hfNeed(16))) && hfGuard(14)) || " +
			"((d) && hfGuard(17))",
	} {
		if !strings.Contains(string(changed), want) {
			t.Errorf("no %q in\n%s", want, changed)
		}
	}
	if isOperand("x/x.go f: a && b") || isOperand("x/x.go f: func() { switch { case a: || } }") {
		t.Error("a whole guard is taken for an operand")
	}
}

// A module with tests that notice, hang, overlook and never reach a guard: the tool reports which.
func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n",
		"x.go": `package x

import "os"

func noticed(n int) int { if n > 1 { return 1 }; return n }

func hangs(n int) { for { if n > 0 { return } } }

func overlooked(n int) int { if n > 1 { return n }; if n > 1 { return n }; return n }

func unreached(n int) int { if n > 100 { return 0 }; return n }

func once(file string) bool {
	if os.Remove(file) == nil { return true }
	return true
}

func both(a, b int) bool { return a > 0 && b > 0 }

func either(a, b int) bool { return a > 0 || b > 0 }
`,
		"x_test.go": `package x

import "testing"

func TestNoticed(t *testing.T)    { if noticed(2) != 1 { t.Error("2") } }
func TestHangs(t *testing.T)      { hangs(1) }
func TestOverlooked(t *testing.T) { if overlooked(2) != 2 { t.Error("2") } }
func TestUnreached(t *testing.T)  { if unreached(2) != 2 { t.Error("2") } }
func TestBoth(t *testing.T)       { if both(0, 1) { t.Error("0 1") } }
func TestEither(t *testing.T)     { if !either(0, 1) { t.Error("0 1") } }
func TestRed(t *testing.T)        { noticed(2); t.Error("always") }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	verdicts(t, guards, map[string]outcome{
		"x.go noticed: n > 1":               {killed: true, by: "TestNoticed"},
		"x.go overlooked: n > 1":            {by: "true in 1 tests"},
		"x.go overlooked: n > 1 #2":         {by: "true in no test"},
		"x.go hangs: n > 0":                 {killed: true, by: "TestHangs, which hung"},
		"x.go unreached: n > 100":           {by: "true in no test"},
		"x.go once: os.Remove(file) == nil": {by: "true in no test"},
	})
	verdicts(t, operands, map[string]outcome{
		"x.go both: && a > 0":   {killed: true, by: "TestBoth"},
		"x.go both: && b > 0":   {by: "true in no test"},
		"x.go either: || a > 0": {by: "true in no test"},
		"x.go either: || b > 0": {killed: true, by: "TestEither"},
	})
}

// verdicts tries the guards of the module in the current folder.
func verdicts(t *testing.T, find finder, want map[string]outcome) {
	t.Helper()
	cache := t.TempDir()
	overlay, all, err := switchable(cache, ".", find)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := build(cache, overlay, ".")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := bin.reach(cache, regexp.MustCompile("."), 2, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tests {
		if tests[i].bin = bin; tests[i].Name == "TestRed" {
			t.Error("a test that is red with all guards is used")
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d guards: %v", len(all), all)
	}
	for _, g := range all {
		expected := want[g.key()]
		if got := try(g, tests, 2*time.Second); got != expected {
			t.Errorf("%s: %+v, want %+v", g, got, expected)
		}
	}
}

// The output of the tests names the first failure, and whether they hung.
func TestVerdict(t *testing.T) {
	r := verdict([]byte("=== RUN\n    --- FAIL: TestA/sub (0s)\n--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n"),
		true)
	if r.test != "TestA" || r.hung || !r.red {
		t.Errorf("%+v", r)
	}
	if r := verdict([]byte("panic: test timed out after 1s\n"), true); r.test != "" || !r.hung {
		t.Errorf("%+v", r)
	}
}

// Quickest first, in runs that grow, each of one package's tests.
func TestGroups(t *testing.T) {
	a, b := &binary{pkg: "a"}, &binary{pkg: "b"}
	var got []string
	for _, group := range groups([]one{
		{"4", 4, nil, a}, {"1", 1, nil, a}, {"3", 3, nil, b}, {"2", 2, nil, a}, {"5", 5, nil, a},
	}) {
		var names []string
		for _, one := range group {
			names = append(names, one.bin.pkg+one.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if s := strings.Join(got, "|"); s != "a1|a2 a4|b3|a5" {
		t.Error(s)
	}
}

// The list of survivors gives a reason for each, and comments are no entries.
func TestSurvivorsHaveReasons(t *testing.T) {
	if got := reasons("# a comment\tx\nx/x.go: a\tbecause\nno reason\n"); len(got) != 1 ||
		got["x/x.go: a"] != "because" {
		t.Errorf("%v", got)
	}
	for i, line := range strings.Split(strings.TrimSpace(survivors), "\n") {
		key, reason, ok := strings.Cut(line, "\t")
		if !strings.HasPrefix(line, "#") && (!ok || key == "" || len(reason) < 10) {
			t.Errorf("survivors.txt:%d: no reason: %s", i+1, line)
		}
	}
}

// An entry of the list whose guard is gone is reported, and one of another package is not.
func TestStale(t *testing.T) {
	listed := map[string]string{"x/x.go f: a": "because", "x/x.go f: b": "because", "y/y.go f: b": "because"}
	got := stale(listed, []guard{{file: "x/x.go", fun: "f", cond: "a", nth: 1}})
	if len(got) != 1 || got[0] != "x/x.go f: b" {
		t.Errorf("%v", got)
	}
}

// Each entry of the list names a guard or an operand of this repository.
func TestSurvivorsExist(t *testing.T) {
	listed, files := reasons(survivors), map[string]bool{}
	var all []guard
	for key := range listed {
		file, _, _ := strings.Cut(key, " ")
		if files[file] {
			continue
		}
		files[file] = true
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, find := range []finder{guards, operands} {
			_, found, err := find(file, text, 1)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
	}
	for _, key := range stale(listed, all) {
		t.Errorf("survivors.txt: %s: no such guard", key)
	}
}
