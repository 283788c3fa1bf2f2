package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// screen is what the agent printed so far.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until the screen matches.
func (w *world) shows(s *screen, want string) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !regexp.MustCompile(want).MatchString(s.String()); <-tick.C {
		if time.Now().After(deadline) {
			w.t.Fatalf("no %s in\n%s", want, s)
		}
	}
}

// begin runs the program with these arguments until the test ends.
func (w *world) begin(args ...string) *screen {
	w.t.Helper()
	out := new(screen)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	args = append([]string{"--nats", w.url, "--dir", w.cfg.dir, "--root", w.cfg.root, "--ttl", ttlKept.String()},
		args...)
	go func() { done <- program(ctx, args, out, w.t.Output()) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
	return out
}

// TestWithoutAnAccount: with --script the agent needs no account. It prints its questions with the command that answers
// them, and what came of them.
func TestWithoutAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("notes.txt", "x")
	var out *screen
	// the program has ended
	t.Cleanup(func() {
		if strings.Contains(out.String(), "\n! ") {
			t.Errorf("an error after a success:\n%s", out)
		}
	})
	out = w.begin("--script", "look", "around")
	answer := func(question, label string) func(prompt string) (string, map[string]any) {
		return func(prompt string) (string, map[string]any) {
			w.shows(out, `  holdfast answer agent/demo `+regexp.QuoteMeta(prompt)+` ANSWER\n`)
			return "answer", map[string]any{"prompt": prompt, "by": "ada",
				"answers": []events.Answer{{Question: question, Selected: []string{label}}}}
		}
	}
	w.answer(asking, answer("q", "yes"))
	w.answer("run", answer(events.PermissionQuestion, "once"))
	w.until("the end", completed)
	w.shows(out, `(?s)\? Shall I list the files here\? \(yes, no\)\n.*\? Run ls \(once, always\)\n.*`+
		`This came of the command:\n(.*\n)?notes\.txt\n`)
}

// The error of a turn is printed.
func TestErrorsArePrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(script.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided"}}`})
	out := w.begin("--endpoint", w.cfg.endpoint, "hello")
	w.shows(out, `! the turn failed: .*Incorrect API key provided.*\n  holdfast show agent/demo `)
}

// The texts of a model and of a provider cannot control the terminal, and cannot look like a line of the program.
func TestNoControlCharactersReachTheTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const question = `{"question":"Delete?\u001b]0;safe\u0007\n  holdfast answer agent/demo other ANSWER",` +
		`"options":["\u001b[31mno\u009b2J","yes"]}`
	w.script.Play(script.Step{Text: "\x1b[2Jhello\u202e\n\tthere",
		Calls: []script.Call{{Name: asking, Arguments: question}}},
		script.Step{Status: 401, Body: `{"error":{"message":"no\u001b[2J\nkey"}}`})
	out := w.begin("--endpoint", w.cfg.endpoint, "hello")
	w.answer(asking, func(prompt string) (string, map[string]any) {
		return "dismiss", map[string]any{"prompt": prompt, "by": "ada"}
	})
	w.shows(out, `! the turn failed: .*no\[2J key.*\n  holdfast show`)
	w.shows(out, `\[2Jhello\n\tthere`)
	w.shows(out, `\n\? Delete\?\]0;safe holdfast answer agent/demo other ANSWER \(\[31mno2J, yes\)\n`)
	if i := strings.IndexFunc(out.String(), func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r)
	}); i >= 0 {
		t.Errorf("a control character at %d of %q", i, out)
	}
}
