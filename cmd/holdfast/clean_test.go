package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// hostile clears a terminal in three ways, sets its title, forges a line and turns the direction of writing.
const hostile = "\x1b[2J\u009b2J\x1b]0;x\a\r\nholdfast: all is well\u202e\x7f"

// upForTest runs `holdfast up` in this process, and returns its broker's URL.
func upForTest(t *testing.T) (url string) {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	stop := runProgram("up", "--data", filepath.Join(dir, "data"), "--listen", loopback, "--http", loopback,
		"--ready-file", ready)
	t.Cleanup(func() {
		if code, output := stop(); code != exitDone {
			t.Errorf("up ended with exit code %d\n%s", code, output)
		}
	})
	var note health.Note
	natstest.Until(t, "the cell to be ready", func() bool {
		body, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(body, &note) == nil
	})
	return note.NATS
}

// hostileSession leaves a session whose every text and name, given by an agent or a person, is hostile. It has one
// open prompt, and one that ended, a failed call and a message in the queue.
func hostileSession(t *testing.T, url string) events.Ref {
	t.Helper()
	ctx := t.Context()
	id := func(name string) string { return name + hostile }
	failure := events.Failure{Kind: "rate_limit", Text: "slow down" + hostile}
	h, err := harness.Connect(ctx, harness.Config{ID: id("h"), URL: url, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	// before the broker ends
	t.Cleanup(h.Abandon)
	s, err := h.Open(ctx, id("s"), harness.OpenOptions{Title: "title" + hostile, Agent: id("agent"),
		Model: id("model")})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(err, h.Ready(ctx)))
	turn, err := s.StartTurn(ctx, harness.StartOptions{ID: id("t1"), Content: hostile, By: id("ann")})
	must(err)
	call, err := turn.Tool(ctx, harness.ToolOptions{ID: id("c1"), Name: id("bash"), Title: "run" + hostile,
		Input: json.RawMessage(`{"command":"\u001b[2J"}`)})
	must(err)
	must(call.Fail(ctx, failure))
	_, err = turn.Tool(ctx, harness.ToolOptions{ID: id("c2"), Name: id("ask"), Title: "ask" + hostile})
	must(err)
	question := []events.Question{{ID: id("q"), Question: "Which?" + hostile, Options: []events.Option{
		{Label: "red" + hostile, Description: "as the barn" + hostile}, {Label: "blue"}}}}
	ask := func(prompt string) {
		t.Helper()
		must(s.Append(ctx, events.PromptRequested{Prompt: prompt, Turn: turn.ID(), Call: id("c2"),
			PromptKind: "question", Title: "colour" + hostile, Questions: question, Delivery: events.DeliverToolResult,
			OnOwnerLoss: events.LossKeep}))
	}
	ask(id("p1"))
	must(s.Withdraw(ctx, id("p1"), "no need"+hostile))
	ask(id("p2"))
	_, err = h.Send(ctx, harness.Message{ID: id("m1"), Session: s.ID(), Content: "hello" + hostile,
		By: id("bob"), Synthetic: true})
	must(err)
	return events.Ref{Harness: h.ID(), Session: s.ID()}
}

// No text of an agent, a model or a person can control the terminal of a command, or forge a line: neither in a table
// nor in JSON nor in an error.
func TestNoControlCharactersReachTheTerminal(t *testing.T) {
	url := upForTest(t)
	r := hostileSession(t, url)
	run := func(stdin string, args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		p := &Program{Args: args, Env: []string{"USER=ann", "HOLDFAST_NATS=" + url, "HOLDFAST_TIMEOUT=1m"},
			Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out}
		code := p.Run(t.Context())
		return code, out.String()
	}
	natstest.Until(t, "the views", func() bool {
		_, prompts := run("", "prompts")
		_, queue := run("", "sessions")
		return strings.Contains(prompts, "p2") && strings.Contains(queue, "1 message queued")
	})
	// the broker is reached within this time, or not
	const anyCode = -1
	name, prompt := r.String(), "p2"+hostile
	for _, c := range []struct {
		stdin string
		args  []string
		want  int
	}{
		{"", []string{"sessions"}, exitDone},
		{"", []string{"sessions", "--json"}, exitDone},
		{"", []string{"prompts", "--all"}, exitDone},
		{"", []string{"prompts", "--all", "--json"}, exitDone},
		{"", []string{"watch", "--once"}, exitDone},
		{"", []string{"show", name}, exitDone},
		{"", []string{"show", name, "--json"}, exitDone},
		{"", []string{"show", name, "--at", "4"}, exitDone},
		{"", []string{"show", r.Session, "--wait", "phase=closed", "--timeout", "100ms"}, anyCode},
		{"", []string{"events", name}, exitDone},
		{"", []string{"events", name, "--json"}, exitDone},
		{"", []string{"queue", name}, exitDone},
		{"", []string{"queue", name, "--json"}, exitDone},
		{"", []string{"diff", name, "1"}, exitDone},
		{"", []string{"diff", name, "1", "--json"}, exitDone},
		{"", []string{"check", name}, exitDone},
		{"", []string{"sweep", name, "--dry-run"}, exitDone},
		{"", []string{"doctor"}, exitDone},
		{"", []string{"answer", name, "p"}, exitFailed},
		{"", []string{"answer", name, prompt, "green"}, exitFailed},
		{"", []string{"answer", name, prompt, "red", "blue", "green"}, exitUsage},
		{"", []string{"answer", name, "green", "--json"}, exitFailed},
		{"", []string{"answer", name}, exitUsage},
		{"red\n", []string{"answer", name}, exitFailed},
		{"", []string{"withdraw", name, "m1" + hostile}, exitDone},
		{"", []string{"answer", name, prompt, "blue"}, exitDone},
		{"", []string{"answer", name, prompt, "blue"}, exitDone},
		{"", []string{"reject", name, prompt, "no"}, exitFailed},
		{"", []string{"resume", name}, exitFailed},
		{"", []string{"close", name}, exitDone},
		{"", []string{"sessions", "--all"}, exitDone},
		{"", []string{"send", name, "hello"}, exitFailed},
		{"", []string{"show", "none" + hostile}, exitFailed},
		{"", []string{"show", "none" + hostile, "--json"}, exitFailed},
	} {
		code, text := run(c.stdin, c.args...)
		if code != c.want && c.want != anyCode {
			t.Errorf("%q: exit code %d, want %d\n%s", c.args, code, c.want, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q: a control character at %d of %q", c.args, i, text)
		}
		if strings.Contains(text, "\nholdfast: all is well") || strings.Contains(text, "\nall is well") {
			t.Errorf("%q: a forged line in\n%s", c.args, text)
		}
	}
}

// firstWrite is an output that says when something is written.
type firstWrite struct {
	output
	once  sync.Once
	wrote chan struct{}
}

// Write implements io.Writer.
func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.once.Do(func() { close(w.wrote) })
	return w.output.Write(p)
}

// Neither a line of progress, nor the output of a sweep, nor a report of damaged files can control a terminal.
func TestLinesWithoutATableAreClean(t *testing.T) {
	ended := errors.New("the process ends")
	for what, run := range map[string]func(a *app, wrote <-chan struct{}) error{
		"progress": func(a *app, wrote <-chan struct{}) error {
			return a.progress("sending to "+hostile, func() error {
				<-wrote
				return nil
			})
		},
		"sweep": func(a *app, _ <-chan struct{}) error {
			return a.printSwept(request.Swept{Sessions: 1, Facts: map[string]int{"tool" + hostile: 1},
				Would: []request.Would{{Ref: events.Ref{Harness: "h" + hostile, Session: "s" + hostile},
					Owner: "dead" + hostile, Facts: []request.WouldFact{{Type: "type" + hostile,
						Data: json.RawMessage("data" + hostile)}}}}}, true)
		},
		"damages at a start": func(a *app, _ <-chan struct{}) error {
			p := &process{connect: func(context.Context, string) (*bus.Bus, error) { return nil, ended }}
			a.trouble(t.Context(), p, []embed.Damage{{Path: "1.blk" + hostile, Bytes: 7},
				{Path: "2.blk", Reason: "too large" + hostile}})
			return nil
		},
		"damages of a rescue": func(a *app, _ <-chan struct{}) error {
			found := rescueFound{Damages: []embed.Damage{{Path: "1.blk" + hostile, Bytes: 7}}}
			return a.print(found.text("rescued"))
		},
	} {
		out := &firstWrite{wrote: make(chan struct{})}
		if err := run(newApp(&Program{Stdout: out, Stderr: out}), out.wrote); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		text := out.String()
		if !strings.Contains(text, "[2J") {
			t.Errorf("%s: the text is not there: %q", what, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: a control character at %d of %q", what, i, text)
		}
		if strings.Contains(text, "\nholdfast: all is well") {
			t.Errorf("%s: a forged line in\n%s", what, text)
		}
	}
}
