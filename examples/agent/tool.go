package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	outputBytesMax = 32 << 10        // bytes of a tool's output that the model gets
	killAfter      = 2 * time.Second // from the signal to a command until the tool stops waiting for it
	callFailed     = "tool_error"    // the failure kind of a call that failed by itself
)

// toolSpec describes a tool to the endpoint.
type toolSpec struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// tool is a tool that the model may call.
type tool struct {
	name, description, parameters string
	run                           func(a *agent, ctx context.Context, c callContext) (string, error)
}

// callContext is the context of a tool's call.
type callContext struct {
	turn *harness.Turn
	id   string // of the call
	args struct {
		Path     string   `json:"path"`
		Command  string   `json:"command"`
		Question string   `json:"question"`
		Options  []string `json:"options"`
	}
}

// asking is the tool whose result is a person's answer.
const asking = "ask_user"

// tools are all tools by name.
var tools = []tool{
	{"read_file", "Read a file of the working directory.",
		`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`, (*agent).readFile},
	{"run", "Run a shell command in the working directory. The user is asked for permission first.",
		`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`, (*agent).command},
	{asking, "Ask the user a question and wait for the answer, for however long that takes.",
		`{"type":"object","properties":{"question":{"type":"string"},"options":{"type":"array",` +
			`"items":{"type":"string"}}},"required":["question"]}`, (*agent).question},
}

func toolSpecs() []toolSpec {
	specs := make([]toolSpec, len(tools))
	for i, t := range tools {
		specs[i].Type = "function"
		specs[i].Function.Name, specs[i].Function.Description, specs[i].Function.Parameters = t.name, t.description,
			json.RawMessage(t.parameters)
	}
	return specs
}

func toolNamed(name string) *tool {
	for i := range tools {
		if tools[i].name == name {
			return &tools[i]
		}
	}
	return nil
}

// readFile reads a file. The path must be below the working directory.
func (a *agent) readFile(_ context.Context, c callContext) (string, error) {
	root, err := os.OpenRoot(a.cfg.root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(c.args.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, outputBytesMax))
	return string(raw), err
}

// command runs a command, if the user permits it.
func (a *agent) command(ctx context.Context, c callContext) (string, error) {
	if c.args.Command == "" {
		return "", errors.New("no command")
	}
	if err := a.permission(ctx, c); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", c.args.Command)
	cmd.Dir, cmd.WaitDelay = a.cfg.root, killAfter
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := cut(out.String(), outputBytesMax)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return fmt.Sprintf("%s\n(exit code %d)", text, exit.ExitCode()), nil
	}
	return text, err
}

// once and always are the labels of a permission's options, as in all harnesses.
const always = "always"

// permission asks whether a command may run. "always" holds for this command in this process.
func (a *agent) permission(ctx context.Context, c callContext) error {
	a.mu.Lock()
	may := a.allowed[c.args.Command]
	a.mu.Unlock()
	if may {
		return nil
	}
	title := "Run " + cut(c.args.Command, titleBytesMax)
	a.showQuestion(c.turn.Session(), c.id+".may", title, "once", always)
	answer, err := c.turn.Ask(ctx, harness.Prompt{ID: c.id + ".may", Call: c.id, Kind: events.PromptPermission,
		Title: title})
	switch {
	case err != nil:
		return err
	case answer.Status == session.Rejected && answer.Text != "":
		return fmt.Errorf("the user says no: %s", answer.Text)
	case answer.Status != session.Answered:
		return fmt.Errorf("no permission: the request was %s", answer.Status)
	}
	for _, one := range answer.Answers {
		for _, label := range one.Selected {
			if label == always {
				a.mu.Lock()
				a.allowed[c.args.Command] = true
				a.mu.Unlock()
			}
		}
	}
	return nil
}

// promptOf returns the id of the question of a call: the same in each process.
func promptOf(call string) string { return call + ".ask" }

// question asks the user. The answer is the call's result. If this process has ended by then, the next one finds the
// answer in the log.
func (a *agent) question(ctx context.Context, c callContext) (string, error) {
	q := events.Question{ID: "q", Question: c.args.Question, Custom: true}
	for _, label := range c.args.Options {
		q.Options = append(q.Options, events.Option{Label: label})
	}
	a.showQuestion(c.turn.Session(), promptOf(c.id), c.args.Question, c.args.Options...)
	answer, err := c.turn.Ask(ctx, harness.Prompt{ID: promptOf(c.id), Call: c.id, Questions: []events.Question{q},
		Title: cut(c.args.Question, titleBytesMax)})
	switch {
	case err != nil:
		return "", err
	case answer.Status == session.Superseded:
		return "", errors.New("answered in chat: see the user's next message")
	case answer.Status != session.Answered:
		return "", fmt.Errorf("no answer: the question was %s %s", answer.Status, answer.Text)
	}
	return words(answer.Answers), nil
}

// words returns the answers as a text.
func words(answers []events.Answer) string {
	var all []string
	for _, one := range answers {
		all = append(all, one.Selected...)
		if one.Text != "" {
			all = append(all, one.Text)
		}
	}
	if len(all) == 0 {
		return "(the user skipped the question)"
	}
	return strings.Join(all, ", ")
}

// cut returns at most max bytes of s. A truncated text ends with a mark.
func cut(s string, bytesMax int) string {
	if len(s) <= bytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:bytesMax], "") + " …"
}
