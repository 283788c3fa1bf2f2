package readme_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProgramsOfGuides compiles each Go program of the guides and of the contract. A block that is no program is an
// expression, or, marked as a part, lines of the deployer, which its own tests run.
func TestProgramsOfGuides(t *testing.T) {
	// beside TestOutage, which waits
	t.Parallel()
	v := newVisitor(t)
	deployer, err := os.ReadFile(root + "/examples/deployer/main.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(root + "/docs/guide/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d guides: %v", len(files), err)
	}
	seen := 0
	for _, file := range append(files, root+"/docs/contract.md") {
		for i, b := range blocks(t, file) {
			if !strings.HasPrefix(b.mark, "go") {
				continue
			}
			seen++
			name := fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(file), ".md"), i)
			switch {
			case b.mark == "go part":
				if !strings.Contains(string(deployer), b.text) {
					t.Errorf("%s: the deployer does not have these lines:\n%s", file, b.text)
				}
			case strings.HasPrefix(b.text, "package main\n"):
				v.builds(name, b)
			default:
				v.builds(name, block{text: "package main\n\nimport \"github.com/holdfast-dev/holdfast/harness\"\n\n" +
					"var _ = " + b.text + "\nfunc main() {}\n"})
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d blocks of Go were found", seen)
	}
}

// TestAgentGuide runs the program of the guide to agents, and all commands of the page in their order, on a cell.
func TestAgentGuide(t *testing.T) {
	// beside TestOutage, which waits
	t.Parallel()
	v := newVisitor(t)
	v.env = append(v.env, "PATH="+v.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	v.types("go build -o " + filepath.Join(v.dir, "holdfast") + " ./cmd/holdfast")
	var lines []string
	program := ""
	for _, b := range blocks(t, root+"/docs/guide/agent.md") {
		switch b.mark {
		case "sh":
			lines = append(lines, b.lines()...)
		case "go":
			program = v.builds("reviewer", b)
		}
	}
	v.starts(filepath.Join(v.dir, "holdfast"), "up")
	var note struct{ NATS string }
	v.until(func() error {
		body, err := os.ReadFile(filepath.Join(v.dir, "ready.json"))
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &note)
	})
	v.env = append(v.env, "HOLDFAST_NATS="+note.NATS)
	v.starts(program)
	v.types("holdfast show reviewer/docs --wait owned=true")
	// shows waits until a command prints it.
	shows := func(line, want string) {
		v.until(func() error {
			output, err := v.tries(line)
			if err == nil && !regexp.MustCompile("(?m)"+want).MatchString(output) {
				err = errors.New("no " + want + " in:\n" + output)
			}
			return err
		})
	}
	const events = "holdfast events reviewer/docs"
	// a reader sees this then
	after := map[string]func(line string){
		"holdfast events reviewer/docs": func(line string) {
			shows(line, `turn\.completed`)
			if output := v.types(line); strings.Count(output, "tool.completed") != 3 {
				t.Errorf("not one call for each of three words:\n%s", output)
			}
		},
		"holdfast show reviewer/docs": func(line string) { shows(line, `authentication`) },
		"holdfast send reviewer/docs slow": func(string) { // the third message begins its first step
			shows(events, `(?s)(tool\.started +word-0.*){3}`)
		},
		"holdfast stop reviewer/docs":    func(string) { shows(events, `turn\.stopped`) },
		"holdfast compact reviewer/docs": func(string) { shows(events, `compaction\.completed`) },
	}
	for _, line := range lines {
		v.types(line)
		if then := after[line]; then != nil {
			then(line)
			delete(after, line)
		}
	}
	for line := range after {
		t.Errorf("the page does not have the command %s", line)
	}
}
