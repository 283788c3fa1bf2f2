package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// What the model is told beside the conversation.
const (
	systemWords  = "You are a careful assistant. Use the tools when they help, and ask the user when you are not sure."
	notMadeWords = "The call was not made: the turn ended before."
	cutOffWords  = "The call was cut off. It may have had its effect, or a part of it."
	summaryWords = "Summary of the conversation so far:\n"
	compactWords = "Summarise this conversation so that you can go on with it: what the user wants, what was done, " +
		"what was found, what is next. Plain text, no tools.\n\n"
)

const (
	stepsMax      = 50  // model calls of one turn
	halvingsMax   = 6   // how often what is to be summarised is halved because it does not fit itself
	titleBytesMax = 150 // bytes
)

// options are what makes a turn the same request when it is tried again.
type options struct {
	Model string `json:"model"`
}

// agent answers what users say, with the help of a model and of tools.
type agent struct {
	cfg     config
	model   *client
	out     io.Writer // what the model says, as it comes
	mu      sync.Mutex
	allowed map[string]bool // commands that may always run
}

// worker is the agent as Holdfast sees it.
func (a *agent) worker() harness.Worker {
	return harness.Worker{Turn: a.turn, Compact: a.compact,
		Options: func(*harness.Session, session.WorkTurn) any { return options{Model: a.cfg.model} }}
}

// turn runs a turn that was asked for: a new message, or one that failed or was cut off and is tried again. It goes on
// from what the conversation has, so nothing is done twice. Its errors are what Holdfast decides about; it never tries
// again by itself.
func (a *agent) turn(ctx context.Context, t *harness.Turn) error {
	s := t.Session()
	c, err := open(a.cfg.dir, s.ID(), s.State().Epoch)
	if err != nil {
		return err
	}
	opts := options{Model: a.cfg.model}
	if _, err := t.Options(&opts); err != nil {
		return err
	}
	if err := a.settle(ctx, s, c); err != nil { // results stand right behind their calls
		return err
	}
	if err := a.hear(ctx, t, c); err != nil {
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

// hear puts the turn's message into the conversation, unless it is there from an earlier attempt.
func (a *agent) hear(ctx context.Context, t *harness.Turn, c *conversation) error {
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
		text = string(content) // some other JSON: the model can read it
	}
	return c.add(entry{Message: id, message: message{Role: "user", Content: text}})
}

// settle gives a result to the calls of a process that died: what was answered meanwhile, or that nobody knows.
func (a *agent) settle(ctx context.Context, s *harness.Session, c *conversation) error {
	for _, call := range c.dangling() {
		r, err := s.Result(ctx, call.ID)
		if err != nil && !errors.Is(err, harness.ErrUnknown) {
			return err
		}
		if err := c.add(entry{message: message{Role: "tool", ToolCall: call.ID,
			Content: resultWords(call, r)}}); err != nil {
			return err
		}
	}
	return nil
}

// resultWords is what the model is told about a call of a process that died. A permission that was given says nothing
// about whether the command has run.
func resultWords(call toolCall, r harness.Result) string {
	var answered struct {
		Answers []events.Answer `json:"answers"`
	}
	switch {
	case r.Error != nil:
		return "Error: " + r.Error.Text
	case r.Output == nil, r.Synthetic && call.Function.Name != asking:
		return cutOffWords
	case r.Synthetic && json.Unmarshal(r.Output, &answered) == nil:
		return words(answered.Answers)
	default:
		return string(r.Output)
	}
}

// step is one model call, and the calls of tools that come of it.
func (a *agent) step(ctx context.Context, t *harness.Turn, c *conversation, opts options, step int) error {
	said, used, err := a.ask(ctx, t, c, opts)
	if err != nil {
		return err
	}
	for i := range said.ToolCalls {
		said.ToolCalls[i].ID = fmt.Sprintf("%s.%d.%d", t.ID(), step, i) // some providers count from 0 each time
	}
	if err := c.add(entry{message: said}); err != nil {
		return err
	}
	if used != nil { // just before what comes of it, so that both are one commit
		if err := t.Usage(ctx, harness.Usage{Model: opts.Model, Tokens: *used, InputIncludesCached: true,
			ContextLimit: a.cfg.contextLimit}); err != nil {
			return err
		}
	}
	for i, call := range said.ToolCalls {
		if err := a.call(ctx, t, c, call); err != nil {
			return errors.Join(err, c.notMade(said.ToolCalls[i+1:]...))
		}
	}
	return nil
}

// ask makes the model call of a step, and says what it counted.
func (a *agent) ask(ctx context.Context, t *harness.Turn, c *conversation,
	opts options) (said message, used *events.Tokens, err error) {
	m := t.Stream()
	said, err = a.model.stream(ctx, request{Model: opts.Model, Messages: c.messages(), Tools: toolSpecs()}, follower{
		delta: func(text string, output bool) {
			m.Delta(output)
			a.show(text)
		},
		finish: m.Finish,
		usage:  func(tokens events.Tokens) { used = &tokens },
	})
	if ctx.Err() != nil {
		return said, nil, context.Cause(ctx)
	}
	return said, used, m.Err(err)
}

// show prints what the model says. That nobody reads it is no matter: it is in the conversation all the same.
func (a *agent) show(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := io.WriteString(a.out, text); err != nil {
		a.out = io.Discard
	}
}

// call runs a tool. Its result is on the disk before the log says that the call is over.
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
	h, err := t.Tool(ctx, harness.Tool{ID: call.ID, Name: name, Title: cut(call.Function.Arguments, titleBytesMax),
		Input: json.RawMessage(call.Function.Arguments)})
	if err != nil && ctx.Err() != nil && !errors.Is(err, harness.ErrPending) {
		return errors.Join(context.Cause(ctx), c.notMade(call))
	}
	if err != nil {
		return err
	}
	text, failed := known.run(a, ctx, in)
	if ctx.Err() != nil {
		return context.Cause(ctx) // what became of it, recovery says, or the turn's end
	}
	if failed != nil {
		text = "Error: " + failed.Error()
	}
	if err := c.add(entry{message: message{Role: "tool", ToolCall: call.ID, Content: text}}); err != nil {
		return err
	}
	late := context.WithoutCancel(ctx)
	if failed != nil {
		return ended(h.Fail(late, events.Failure{Kind: callFailed, Text: failed.Error()}))
	}
	return ended(h.Complete(late, text))
}

// ended passes over what others had ended already.
func ended(err error) error {
	if errors.Is(err, harness.ErrEnded) {
		return nil
	}
	return err
}

// compact puts a summary in place of the conversation. What does not fit into the model itself is cut from the front.
func (a *agent) compact(ctx context.Context, s *harness.Session,
	_ session.WorkCompaction) (usedAfter int64, err error) {
	c, err := open(a.cfg.dir, s.ID(), s.State().Epoch)
	if err != nil {
		return 0, err
	}
	if err := a.settle(ctx, s, c); err != nil {
		return 0, err
	}
	text := c.told()
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
		if err := harness.SummaryOK(summary); err != nil {
			return 0, err
		}
		return usedAfter, c.summarise(summary)
	}
	return 0, err
}

// summary asks the model for one. What comes out is what the next call starts with.
func (a *agent) summary(ctx context.Context, s *harness.Session,
	text string) (summary string, tokens int64, err error) {
	finished := false
	said, err := a.model.stream(ctx, request{Model: a.cfg.model,
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
	return said.Content, tokens, nil
}
