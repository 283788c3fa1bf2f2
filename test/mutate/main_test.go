package main

import (
	"strings"
	"testing"
)

// Every condition of an if or of a switch without a tag is one mutant; a switch over a value has none.
func TestGuards(t *testing.T) {
	const source = `package x
func f(a, b bool, n int) int {
	if a && b {
		return 1
	}
	switch {
	case a, b:
		return 2
	default:
	}
	switch n {
	case 3:
	}
	return 4
}
`
	all, err := guards("x/x.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.key())
		if !strings.Contains(string(m.text), "(("+m.cond+") && false)") || strings.Count(string(m.text), "false") != 1 {
			t.Errorf("mutant of %s:\n%s", m.cond, m.text)
		}
	}
	if want := "x/x.go: a && b|x/x.go: a|x/x.go: b"; strings.Join(got, "|") != want {
		t.Errorf("guards: %s, want %s", strings.Join(got, "|"), want)
	}
}

// The list of survivors gives a reason for each, and comments are no entries.
func TestSurvivorsHaveReasons(t *testing.T) {
	if got := reasons("# a comment\tx\n./x/x.go: a\tbecause\nno reason\n"); len(got) != 1 || got["./x/x.go: a"] != "because" {
		t.Errorf("%v", got)
	}
	for i, line := range strings.Split(strings.TrimSpace(survivors), "\n") {
		if key, reason, ok := strings.Cut(line, "\t"); !strings.HasPrefix(line, "#") && (!ok || key == "" || len(reason) < 10) {
			t.Errorf("survivors.txt:%d: no reason: %s", i+1, line)
		}
	}
}
