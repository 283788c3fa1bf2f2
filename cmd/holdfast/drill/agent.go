package drill

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Roles of an agent.
const (
	roleWorks   = "works"   // calls, a callback question, a kept question
	roleRuns    = "runs"    // one call, which it completes on request
	roleAsks    = "asks"    // a call, and a callback question
	roleAdopts  = "adopts"  // adopts the question of the earlier process
	roleResumes = "resumes" // takes the turn that an answer requested
	roleFails   = "fails"   // a turn that fails like a provider's request
	roleRetries = "retries" // takes the retry of that turn
	roleFull    = "full"    // a conversation that is nearly full; its step limits what it does
	roleGoesOn  = "goes-on" // takes everything that is requested
)

// roles describes each role for people.
var roles = map[string]string{
	roleWorks:   "an agent with three tool calls, a permission it waits for, and a question to you",
	roleRuns:    "an agent with one tool call",
	roleAsks:    "an agent with a tool call and a question to you",
	roleAdopts:  "the same agent again, which takes its question over",
	roleResumes: "the same agent again, which takes the work that waits",
	roleFails:   "an agent whose provider wants it to come back later",
	roleRetries: "the same agent again, which takes the turn once more",
	roleFull:    "an agent whose conversation is nearly full",
	roleGoesOn:  "the same agent again, which does all that waits",
}

// Ids of what the agents open.
const (
	turnFirst   = "turn-1"
	callCompile = "compile"
	callDeploy  = "deploy"
	callAsk     = "ask"
	promptMay   = "may-deploy"   // its answer goes to a callback in the process
	promptWhich = "which-target" // its answer is a call's result
	optionYes   = "staging"
	optionNo    = "production"
	person      = "drill"
	lineFinish  = "finish" // the director's request to complete the call
	leaveMaxS   = 5
)

// errDirectorGone is the cause when an agent's director has ended.
var errDirectorGone = errors.New("the director is gone")

// agent is one process of a harness.
type agent struct {
	spec  Spec
	lines chan string
	mu    sync.Mutex
	out   io.Writer
}

// Agent runs a child process: it reads its [Spec] and its instructions from in, and writes each [Report] as a line to
// out. It leaves gracefully if ctx or in ends. It returns an error if it could not play its role.
func Agent(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &agent{lines: make(chan string, 1), out: out}
	words := bufio.NewScanner(in)
	if !words.Scan() {
		return fmt.Errorf("agent: %w", errDirectorGone)
	}
	if err := json.Unmarshal(words.Bytes(), &a.spec); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	go func() {
		for words.Scan() {
			a.lines <- words.Text()
		}
		cancel(errDirectorGone)
	}()
	err := a.live(ctx)
	if err != nil {
		a.report(Report{Word: wordFailed, Text: err.Error()})
	}
	return err
}

// report writes a report. A write error means that the director has ended, and is ignored.
func (a *agent) report(r Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	line, err := json.Marshal(r)
	if err == nil {
		_, _ = a.out.Write(append(line, '\n'))
	}
}

// live connects, plays the role, and leaves.
func (a *agent) live(ctx context.Context) error {
	play := map[string]func(context.Context, *harness.Harness) error{
		roleWorks: a.works, roleRuns: a.runs, roleAsks: a.asks, roleAdopts: a.adopts, roleResumes: a.resumes,
		roleFails: a.fails, roleRetries: a.resumes, roleFull: a.full, roleGoesOn: a.goesOn,
	}[a.spec.Role]
	if play == nil {
		return fmt.Errorf("agent: there is no role %q", a.spec.Role)
	}
	h, err := harness.Connect(ctx, a.spec.Login.On(harness.Config{ID: a.spec.Harness, URL: a.spec.URL,
		Prefix: a.spec.Prefix,
		TTL:    time.Duration(a.spec.TTLMS) * time.Millisecond, Version: "drill",
		Log: slog.New(slog.DiscardHandler)}))
	if err != nil {
		return err
	}
	err = play(ctx, h)
	if ctx.Err() != nil {
		// a requested end is no error
		err = nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveMaxS*time.Second)
	defer cancel()
	if err = errors.Join(err, h.Close(late)); err == nil {
		a.report(Report{Word: wordLeft, Text: "in good order"})
	}
	return err
}

// begin opens the session and starts a turn with a call.
func (a *agent) begin(ctx context.Context, h *harness.Harness, title string) (*harness.Session, *harness.Turn, error) {
	s, err := h.Open(ctx, a.spec.Session, harness.OpenOptions{Title: title, Agent: "drill"})
	if err != nil {
		return nil, nil, err
	}
	if err := h.Ready(ctx); err != nil {
		return nil, nil, err
	}
	turn, err := s.StartTurn(ctx, harness.StartOptions{ID: turnFirst, Content: title, By: person})
	if err != nil {
		return nil, nil, err
	}
	_, err = turn.Tool(ctx, harness.ToolOptions{ID: callCompile, Name: "bash", Title: "make"})
	return s, turn, err
}

// question asks a question. With a callback, the answer reaches only a process that waits for it.
func question(id, call string, delivery events.Delivery) harness.Prompt {
	return harness.Prompt{ID: id, Call: call, Title: "Where to?", Delivery: delivery, Questions: []events.Question{
		{ID: "target", Question: "Where to?", Options: []events.Option{{Label: optionYes}, {Label: optionNo}}}}}
}

// works opens as much as an agent can have open.
func (a *agent) works(ctx context.Context, h *harness.Harness) error {
	_, turn, err := a.begin(ctx, h, "killed while it works")
	if err != nil {
		return err
	}
	for id, name := range map[string]string{callDeploy: "bash", callAsk: "ask_user"} {
		if _, err := turn.Tool(ctx, harness.ToolOptions{ID: id, Name: name}); err != nil {
			return err
		}
	}
	settled := make(chan error, 2)
	ask := func(p harness.Prompt) {
		_, err := turn.Ask(ctx, p)
		settled <- err
	}
	go ask(harness.Prompt{ID: promptMay, Call: callDeploy, Kind: events.PromptPermission, Title: "Deploy?"})
	go ask(question(promptWhich, callAsk, events.DeliverToolResult))
	return <-settled
}

// runs has one call, and reports whether its completion was stored. A harness that is fenced stops.
func (a *agent) runs(ctx context.Context, h *harness.Harness) error {
	s, _, err := a.begin(ctx, h, "paused while it works")
	if err != nil {
		return err
	}
	a.report(Report{Word: wordReady})
	select {
	case <-a.lines:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.Call(callCompile).Complete(ctx, "compiled"); err != nil {
		for _, lost := range []error{harness.ErrFenced, harness.ErrLeaseLost} {
			if errors.Is(err, lost) {
				a.report(Report{Word: wordRefused, Text: strings.TrimPrefix(lost.Error(), "harness: "), Fenced: true})
				return nil
			}
		}
		a.report(Report{Word: wordRefused, Text: err.Error()})
		return nil
	}
	a.report(Report{Word: wordStored, Text: "the result of its call"})
	return nil
}

// asks waits for an answer that only this process can use.
func (a *agent) asks(ctx context.Context, h *harness.Harness) error {
	_, turn, err := a.begin(ctx, h, map[string]string{actRestart: "restarted while it asks",
		actSteady: "lives, and leaves"}[a.spec.Session])
	if err != nil {
		return err
	}
	if _, err := turn.Tool(ctx, harness.ToolOptions{ID: callAsk, Name: "ask_user"}); err != nil {
		return err
	}
	_, err = turn.Ask(ctx, question(promptMay, callAsk, events.DeliverCallback))
	return err
}

// adopts adopts the question of an earlier process.
func (a *agent) adopts(ctx context.Context, h *harness.Harness) error {
	p := question(promptMay, callAsk, events.DeliverCallback)
	s, err := h.Claim(ctx, a.spec.Session, harness.Adopt{Prompts: []harness.Prompt{p}})
	if err != nil {
		return err
	}
	if err := h.Ready(ctx); err != nil {
		return err
	}
	a.report(Report{Word: wordReady})
	turn := s.OpenTurn()
	if turn == nil {
		return errors.New("agent: the turn was not taken over")
	}
	answer, err := turn.Ask(ctx, p)
	if err != nil {
		return err
	}
	a.report(Report{Word: wordAnswered, Text: cmp.Or(answer.Choice(), string(answer.Status))})
	if err := s.Call(callAsk).Complete(ctx, answer.Answers); err != nil {
		return err
	}
	return turn.Complete(ctx, "stop")
}

// resumes takes the turn that was requested while no process ran.
func (a *agent) resumes(ctx context.Context, h *harness.Harness) error {
	if err := h.Ready(ctx); err != nil {
		return err
	}
	return h.Work(ctx, harness.Worker{Turn: func(_ context.Context, t *harness.Turn) error {
		r := t.Request()
		a.report(Report{Word: wordTook,
			Text: strings.TrimSpace(fmt.Sprintf("turn %s, cause: %s %s", t.ID(), r.Cause, r.Options))})
		return nil
	}})
}

// fails has a turn that its provider refuses to serve now.
func (a *agent) fails(ctx context.Context, h *harness.Harness) error {
	s, err := h.Open(ctx, a.spec.Session, harness.OpenOptions{Title: "fails, and is killed", Agent: "drill"})
	if err == nil {
		err = h.Ready(ctx)
	}
	if err != nil {
		return err
	}
	turn, err := s.StartTurn(ctx, harness.StartOptions{ID: turnFirst, Content: "work", By: person,
		Options: map[string]string{"model": modelOfTurn}})
	if err != nil {
		return err
	}
	if err := turn.Fail(ctx, events.Failure{Kind: "rate_limit", Text: "come back later",
		Status: http.StatusTooManyRequests, RetryAfterMS: retryAfterMS}, false); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// full has a conversation that is nearly full. It runs the compaction up to the step at which it is killed.
func (a *agent) full(ctx context.Context, h *harness.Harness) error {
	s, err := h.Open(ctx, a.spec.Session, harness.OpenOptions{Title: "compacted", Agent: "drill",
		ContextLimit: contextLimit})
	if err == nil {
		err = h.Ready(ctx)
	}
	if err != nil {
		return err
	}
	turn, err := s.StartTurn(ctx, harness.StartOptions{ID: turnFirst, Content: "a long story", By: person})
	if err == nil {
		err = turn.Usage(ctx, harness.Usage{Model: modelOfTurn, Tokens: events.Tokens{Input: contextUsed}})
	}
	if err == nil {
		err = turn.Complete(ctx, "stop")
	}
	if err != nil {
		return err
	}
	a.report(Report{Word: wordReady})
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	w := harness.Worker{Compact: func(context.Context, *harness.Session, session.WorkCompaction) (int64, error) {
		return contextAfter, nil
	}}
	switch strings.TrimPrefix(a.spec.Session, actCompactPre) {
	case "ask":
		return hang(ctx)
	case "start":
		w.Compact = func(ctx context.Context, _ *harness.Session, _ session.WorkCompaction) (int64, error) {
			return 0, hang(ctx)
		}
	case "turn":
		w.Turn = func(ctx context.Context, _ *harness.Turn) error { return hang(ctx) }
	}
	return h.Work(ctx, w)
}

// goesOn carries out every request.
func (a *agent) goesOn(ctx context.Context, h *harness.Harness) error {
	if err := h.Ready(ctx); err != nil {
		return err
	}
	return h.Work(ctx, harness.Worker{
		Compact: func(context.Context, *harness.Session, session.WorkCompaction) (int64, error) {
			a.report(Report{Word: wordTook, Text: "the compaction"})
			return contextAfter, nil
		},
		Turn: func(_ context.Context, t *harness.Turn) error {
			r := t.Request()
			a.report(Report{Word: wordTook, Text: fmt.Sprintf("message %s, cause: %s", r.Message, r.Cause)})
			return nil
		},
	})
}
