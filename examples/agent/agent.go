package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Texts for the model besides the conversation.
const (
	systemWords  = "You are a careful assistant. Use the tools when they help, and ask the user when you are not sure."
	notMadeWords = "The call was not made: the turn ended before."
	cutOffWords  = "The call was cut off. It may have had its effect, or a part of it."
	summaryWords = "Summary of the conversation so far:\n"
	compactWords = "Summarise this conversation so that you can continue it: what the user wants, what was done, " +
		"what was found, what is next. Plain text, no tools.\n\n"
)

const (
	stepsMax      = 50  // model calls of one turn
	halvingsMax   = 6   // attempts to halve the text of a summary that does not fit into the model
	titleBytesMax = 150 // bytes
)

// options are stored with a turn, so that a retry makes the same request.
type options struct {
	Model string `json:"model"`
}

// agent answers users' messages with the help of a model and of tools.
type agent struct {
	cfg     config
	model   *client
	out     io.Writer // prints the model's output as it arrives
	mu      sync.Mutex
	allowed map[string]bool // commands that need no permission
}

// worker is the agent's interface to Holdfast.
func (a *agent) worker() harness.Worker {
	return harness.Worker{Turn: a.turn, Compact: a.compact,
		Options: func(*harness.Session, session.WorkTurn) any { return options{Model: a.cfg.model} }}
}

// turn runs a requested turn: a new message, a retry or a resume. It continues from the entries of the conversation, so
// no step is done twice. Holdfast decides what follows an error; turn itself never retries.
func (a *agent) turn(ctx context.Context, t *harness.Turn) (err error) {
	defer func() { a.showEnd(ctx, err) }()
	s := t.Session()
	c, err := open(a.cfg.dir, s.ID(), s.State().Epoch)
	if err != nil {
		return err
	}
	opts := options{Model: a.cfg.model}
	if _, err := t.Options(&opts); err != nil {
		return err
	}
	// Each result must stand right behind its call.
	if err := a.settle(ctx, t, c); err != nil {
		return err
	}
	if err := a.addMessage(ctx, t, c); err != nil {
		return err
	}
	for step := range stepsMax {
		if c.answered() {
			return t.Complete(ctx, "stop")
		}
		if err := a.step(ctx, t, c, opts, step); err != nil {
			return err
		}
	}
	return &harness.FailureError{Failure: events.Failure{Kind: "too_many_steps",
		Text: fmt.Sprintf("no end after %d model calls", stepsMax)}, HadOutput: true}
}

// addMessage adds the turn's message to the conversation, unless an earlier attempt has added it.
func (a *agent) addMessage(ctx context.Context, t *harness.Turn, c *conversation) error {
	id := t.Request().Message
	if id == "" || c.has(id) {
		return nil
	}
	content, err := t.Content(ctx)
	if err != nil {
		return err
	}
	var text string
	if json.Unmarshal(content, &text) != nil {
		// other JSON, which the model can read
		text = string(content)
	}
	return c.add(entry{Message: id, message: message{Role: "user", Content: text}})
}

// settle adds results for the calls of a dead process. A question that still waits is asked again under its id, so that
// people see one question. Any other call has the result that the log knows, or an unknown one.
func (a *agent) settle(ctx context.Context, t *harness.Turn, c *conversation) error {
	s := t.Session()
	for _, call := range c.dangling() {
		if call.Function.Name == asking && s.State().Prompts[promptOf(call.ID)] != nil {
			in := callContext{turn: t, id: call.ID}
			if err := json.Unmarshal([]byte(call.Function.Arguments), &in.args); err != nil {
				// it was asked with them
				return err
			}
			if err := a.run(ctx, c, toolNamed(asking), in, s.Call(call.ID)); err != nil {
				return err
			}
			continue
		}
		if err := a.settleOne(ctx, s, c, call); err != nil {
			return err
		}
	}
	return nil
}

// settleOne adds the result that the log knows of a call, or an unknown one.
func (a *agent) settleOne(ctx context.Context, s *harness.Session, c *conversation, call toolCall) error {
	r, err := s.Result(ctx, call.ID)
	if err != nil && !errors.Is(err, harness.ErrUnknown) {
		return err
	}
	return c.add(entry{message: message{Role: "tool", ToolCall: call.ID, Content: resultWords(call, r)}})
}

// resultWords returns the text for the model about a call of a dead process. A granted permission does not show whether
// the command ran.
func resultWords(call toolCall, r harness.Result) string {
	var answers []events.Answer
	switch {
	case r.Error != nil:
		return "Error: " + r.Error.Text
	case r.Output == nil, r.Synthetic && call.Function.Name != asking:
		return cutOffWords
	case r.Synthetic && json.Unmarshal(r.Output, &answers) == nil:
		return words(answers)
	default:
		return string(r.Output)
	}
}

// step makes one model call and runs the tools that it calls.
func (a *agent) step(ctx context.Context, t *harness.Turn, c *conversation, opts options, step int) error {
	reply, used, err := a.ask(ctx, t, c, opts)
	if err != nil {
		return err
	}
	for i := range reply.ToolCalls {
		// Some providers count from 0 each time, and so does step in a turn that the next process continues: the epoch
		// makes its ids others.
		reply.ToolCalls[i].ID = fmt.Sprintf("%s.%d.%d.%d", t.ID(), c.epoch, step, i)
	}
	if err := c.add(entry{message: reply}); err != nil {
		return err
	}
	// Usage is reported just before the step's results, so that one commit has both.
	if used != nil {
		if err := t.Usage(ctx, harness.Usage{Model: opts.Model, Tokens: *used, InputIncludesCached: true,
			ContextLimit: a.cfg.contextLimit}); err != nil {
			return err
		}
	}
	for i, call := range reply.ToolCalls {
		if err := a.call(ctx, t, c, call); err != nil {
			return errors.Join(err, c.notMade(reply.ToolCalls[i+1:]...))
		}
	}
	return nil
}

// ask makes the model call of a step, and reports its usage.
func (a *agent) ask(ctx context.Context, t *harness.Turn, c *conversation,
	opts options) (reply message, used *events.Tokens, err error) {
	m := t.Stream()
	reply, err = a.model.stream(ctx, request{Model: opts.Model, Messages: c.messages(), Tools: toolSpecs()}, follower{
		delta: func(text string, output bool) {
			m.Delta(output)
			a.show(text)
		},
		finish: m.Finish,
		usage:  func(tokens events.Tokens) { used = &tokens },
	})
	if ctx.Err() != nil {
		return reply, nil, context.Cause(ctx)
	}
	return reply, used, m.Err(err)
}

// show prints the model's output. A failed write is ignored, because the conversation has the output.
func (a *agent) show(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := io.WriteString(a.out, printable(text)); err != nil {
		a.out = io.Discard
	}
}

// printable removes control characters, so that the text of a model or a provider cannot control the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r != utf8.RuneError && unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

// oneLine puts a text on one line, so that it cannot look like a line of this program.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// showEnd prints the end of a turn: the error that it failed with, and what follows.
func (a *agent) showEnd(ctx context.Context, err error) {
	switch {
	case err == nil:
		// the turn is complete, which ended its context
		a.show("\n")
	case ctx.Err() != nil:
		// the process leaves, or a person stopped the turn
		a.show(fmt.Sprintf("\n! the turn ends: %v\n", context.Cause(ctx)))
	default:
		a.show(fmt.Sprintf("\n! the turn failed: %s\n  holdfast show %s/%s   # when it is tried again\n",
			oneLine(err.Error()), a.cfg.harness, a.cfg.session))
	}
}

// showQuestion prints a question or a permission of the agent, and how it is answered.
func (a *agent) showQuestion(s *harness.Session, prompt, question string, options ...string) {
	if len(options) > 0 {
		question += " (" + strings.Join(options, ", ") + ")"
	}
	a.show(fmt.Sprintf("\n? %s\n  holdfast answer %s/%s %s ANSWER\n", oneLine(question), a.cfg.harness, s.ID(), prompt))
}

// call runs a tool. The result is on disk before the log shows that the call has ended.
func (a *agent) call(ctx context.Context, t *harness.Turn, c *conversation, call toolCall) error {
	name := call.Function.Name
	known := toolNamed(name)
	in := callContext{turn: t, id: call.ID}
	if known == nil {
		return c.add(entry{message: message{Role: "tool", ToolCall: call.ID,
			Content: "Error: there is no tool " + name}})
	}
	if err := json.Unmarshal([]byte(call.Function.Arguments), &in.args); err != nil {
		return c.add(entry{message: message{Role: "tool", ToolCall: call.ID,
			Content: "Error: the arguments are not what the tool takes: " + err.Error()}})
	}
	h, err := t.Tool(ctx, harness.ToolOptions{ID: call.ID, Name: name,
		Title: cut(call.Function.Arguments, titleBytesMax),
		Input: json.RawMessage(call.Function.Arguments)})
	if err != nil && ctx.Err() != nil && !errors.Is(err, harness.ErrPending) {
		return errors.Join(context.Cause(ctx), c.notMade(call))
	}
	if err != nil {
		return err
	}
	return a.run(ctx, c, known, in, h)
}

// run runs the tool of an open call, and ends the call.
func (a *agent) run(ctx context.Context, c *conversation, known *tool, in callContext, h *harness.Call) error {
	text, failed := known.run(a, ctx, in)
	if ctx.Err() != nil {
		// The turn's end or the recovery records how the call ended.
		return context.Cause(ctx)
	}
	if failed != nil {
		text = "Error: " + failed.Error()
	}
	if err := c.add(entry{message: message{Role: "tool", ToolCall: in.id, Content: text}}); err != nil {
		return err
	}
	late := context.WithoutCancel(ctx)
	if failed != nil {
		return ended(h.Fail(late, events.Failure{Kind: callFailed, Text: failed.Error()}))
	}
	return ended(h.Complete(late, text))
}

// ended ignores the error if the call or the turn has already ended.
func ended(err error) error {
	if errors.Is(err, harness.ErrEnded) {
		return nil
	}
	return err
}

// compact replaces the conversation by a summary. If the conversation does not fit into the model, compact removes its
// beginning.
func (a *agent) compact(ctx context.Context, s *harness.Session,
	_ session.WorkCompaction) (usedAfter int64, err error) {
	c, err := open(a.cfg.dir, s.ID(), s.State().Epoch)
	if err != nil {
		return 0, err
	}
	// no question waits while the conversation is compacted
	for _, call := range c.dangling() {
		if err := a.settleOne(ctx, s, c, call); err != nil {
			return 0, err
		}
	}
	text := c.transcript()
	for range halvingsMax {
		var summary string
		summary, usedAfter, err = a.summary(ctx, s, text)
		if overflowed(err) {
			text = "(cut) … " + strings.ToValidUTF8(text[len(text)/2:], "")
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := harness.ValidateSummary(summary); err != nil {
			return 0, err
		}
		return usedAfter, c.summarise(summary)
	}
	return 0, err
}

// summary asks the model for a summary. tokens is the size of the summary in output tokens: the next
// call starts with them.
func (a *agent) summary(ctx context.Context, s *harness.Session,
	text string) (summary string, tokens int64, err error) {
	finished := false
	reply, err := a.model.stream(ctx, request{Model: a.cfg.model,
		Messages: []message{{Role: "user", Content: compactWords + text}}}, follower{
		delta:  func(string, bool) { s.Progress() },
		finish: func(string) { finished = true },
		usage:  func(t events.Tokens) { tokens = t.Output },
	})
	switch {
	case ctx.Err() != nil:
		return "", 0, context.Cause(ctx)
	case err != nil:
		return "", 0, err
	case !finished:
		return "", 0, &harness.FailureError{Failure: events.Failure{Kind: "stream_truncated",
			Text: "the summary ended before its finish mark"}}
	}
	return reply.Content, tokens, nil
}
