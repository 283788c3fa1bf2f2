package languages

import (
	"os"
	"strings"
	"testing"
)

const linesMax = 60 // of an example

// TestPages: an example has at most 60 lines, and the README shows lines of it.
func TestPages(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for mark, path := range map[string]string{"python": "../../examples/python/deployer.py",
		"typescript": "../../examples/typescript/deployer.ts"} {
		program, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(program), "\n"); n > linesMax {
			t.Errorf("%s has %d lines, at most %d", path, n, linesMax)
		}
		_, shown, found := strings.Cut(string(page), "```"+mark+"\n")
		if shown, _, _ = strings.Cut(shown, "```"); !found || !strings.Contains(string(program), shown) {
			t.Errorf("the README shows other lines than %s", path)
		}
	}
}
