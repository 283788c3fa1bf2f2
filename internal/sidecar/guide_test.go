package sidecar_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/sidecar"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// guideLines returns the messages of the guide's turn in their order, with the sign of their sender before each.
func guideLines(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```text\n")
	text, _, ended := strings.Cut(text, "```\n")
	if !found || !ended {
		t.Fatal("the guide has no block of text")
	}
	for line := range strings.Lines(text) {
		// continues the line before
		if strings.HasPrefix(line, " ") {
			all[len(all)-1] += strings.TrimSpace(line)
			continue
		}
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// named is the names that the cell gives, which differ from those of the page: from the page's to the cell's.
type named map[string]string

// misses returns the path of what a message of the page has and the message of the sidecar has not, "" for nothing.
func (n named) misses(path string, page, cell any) string {
	switch page := page.(type) {
	case object:
		is, ok := cell.(object)
		if !ok {
			return path
		}
		for key, want := range page {
			text, _ := is[key].(string)
			if name, ok := want.(string); ok && text != "" && (key == "incarnation" || key == "turn" || key == "step") {
				n[`"`+key+`":"`+name+`"`] = `"` + key + `":"` + text + `"`
				continue
			}
			if miss := n.misses(path+"."+key, want, is[key]); miss != "" {
				return miss
			}
		}
		return ""
	default:
		if page != cell {
			return path
		}
		return ""
	}
}

// TestTurnOfTheGuide: the sidecar and a cell hold the conversation of the guide to agents, message by message.
func TestTurnOfTheGuide(t *testing.T) {
	w := newWorld(t)
	toSidecar, agent := io.Pipe()
	answers, fromSidecar := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- sidecar.Serve(t.Context(), sidecar.Config{Harness: harness.Config{URL: w.server.URL()},
			ConnectTimeout: patience}, toSidecar, fromSidecar)
	}()
	received := make(chan object, 100)
	go func() {
		for d := json.NewDecoder(answers); ; {
			var m object
			if err := d.Decode(&m); err != nil {
				return
			}
			received <- m
		}
	}()
	names, count := named{}, 0
	for _, line := range guideLines(t) {
		sign, text, _ := strings.Cut(line, " ")
		if sign == ">" {
			for page, cell := range names {
				text = strings.ReplaceAll(text, page, cell)
			}
			if _, err := io.WriteString(agent, text+"\n"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var want object
		if err := json.Unmarshal([]byte(text), &want); err != nil || sign != "<" {
			t.Fatalf("%s: %v", line, err)
		}
		// people do this meanwhile
		switch {
		case want["method"] == "turn":
			w.send("m1", "deploy")
		case strings.Contains(text, `"choice":"staging"`):
			w.answer("env", "staging")
		}
		count++
		is := take(t, line, received)
		if miss := names.misses("", want, is); miss != "" {
			t.Fatalf("the page has at %s what the sidecar has not\npage: %s\ncell: %v", miss, text, is)
		}
	}
	if w.outcome(session.OutcomeCompleted); count < 7 || len(names) != 3 {
		t.Errorf("%d messages of the sidecar, names %v", count, names)
	}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := take(t, "the end", ended); !errors.Is(err, sidecar.ErrGone) {
		t.Errorf("%v: the guide's agent does not close its sessions", err)
	}
}
