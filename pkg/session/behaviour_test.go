package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// behaviours are the lines that have to be shown, here or by a service's stories: people's prompts, recovery, retry,
// compaction, and the numbered rules of the contract's section 2 (§2.1 to §2.8).
func behaviours() []string {
	var ids []string
	for letter, last := range map[string]int{"P": 23, "R": 20, "T": 19, "C": 18, "§2.": 8} {
		for n := 1; n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%s%d", letter, n))
		}
	}
	slices.Sort(ids)
	return ids
}

var idRE = regexp.MustCompile(`(?:P|R|T|C|V|§2\.|§)\d+`)

// TestEveryBehaviourIsShown: each line is named by the opening of a story, or by a line of testdata/elsewhere.txt.
func TestEveryBehaviourIsShown(t *testing.T) {
	shown := map[string][]string{}
	stories, err := filepath.Glob("testdata/*.story")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := filepath.Glob("../../services/*/testdata/*.story")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(stories, theirs...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n\n")
		ids := idRE.FindAllString(first, -1)
		if len(ids) == 0 {
			t.Errorf("%s: its opening names no behaviour", file)
		}
		for _, id := range ids {
			shown[id] = append(shown[id], file)
		}
	}
	for _, row := range elsewhere(t) {
		id, folder, test := row[0], row[1], row[2]
		if !hasTest(t, folder, test) {
			t.Errorf("testdata/elsewhere.txt: %s is to be shown by %s in %s, which has no such test", id, test, folder)
		}
		shown[id] = append(shown[id], folder+"."+test)
	}
	for _, id := range behaviours() {
		if len(shown[id]) == 0 {
			t.Errorf("%s: no story's opening names it, and no line of testdata/elsewhere.txt: tell it", id)
		}
	}
}

func elsewhere(t *testing.T) (rows [][3]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/elsewhere.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 3 {
			t.Fatalf("testdata/elsewhere.txt: want id, folder, test: %s", line)
		}
		rows = append(rows, [3]string{f[0], f[1], f[2]})
	}
	return rows
}

func hasTest(t *testing.T, folder, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+test+"(") {
			return true
		}
	}
	return false
}
