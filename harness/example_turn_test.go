package harness_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Ask waits for a person. The end of the call is the receipt for the answer.
func ExampleTurn_Ask() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	call, err := turn.Tool(ctx, harness.ToolOptions{ID: "c1", Name: "ask_user"})
	fatal(err)
	question := colour()
	question.Call = call.ID()
	go p.person(ctx, p.ref(), "colour", "red")
	answer, err := turn.Ask(ctx, question)
	fatal(err)
	fatal(call.Complete(ctx, answer.Answers))
	fmt.Println(answer.Answers[0].Text)
	// Output: red
}

// Usage reports the tokens of the model's last call, of which the input counts. It does not wait.
func ExampleTurn_Usage() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	fatal(turn.Usage(ctx, harness.Usage{Model: "small", Tokens: events.Tokens{Input: 1200, Output: 34}}))
	fatal(turn.Complete(ctx, "stop"))
	fmt.Println(p.session.State().Usage.Used)
	// Output: 1200
}

// Decisions returns what people have decided about the prompts that the turn brings to the agent.
func ExampleTurn_Decisions() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	// no Ask waits for it
	fatal(p.session.Append(ctx, events.PromptRequested{Prompt: "colour", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback, Questions: colour().Questions}))
	p.person(ctx, p.ref(), "colour", "red")
	turn, err := p.session.StartTurn(ctx, harness.StartOptions{ID: "t1", Prompts: []string{"colour"}})
	fatal(err)
	decisions, err := turn.Decisions(ctx)
	fatal(err)
	// the receipt
	fatal(turn.Complete(ctx, "stop"))
	fmt.Println(decisions[0].Status, decisions[0].Answers[0].Text)
	// Output: answered red
}

// Content returns the message of the turn.
func ExampleTurn_Content() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := paint(ctx)
	defer p.stop()
	p.request(ctx, p.ref(), "turn-1")
	fatal(p.harness.Work(ctx, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		defer cancel()
		content, err := turn.Content(ctx)
		fmt.Println(string(content))
		return err
	}}))
	// Output: "sum it up"
}

// Complete ends a turn, and what is open in it.
func ExampleTurn_Complete() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	fatal(turn.Complete(ctx, "stop"))
	fmt.Println(p.session.State().LastTurn.Outcome, errors.Is(turn.Complete(ctx, "stop"), harness.ErrEnded))
	// Output: completed true
}

// Fail ends a turn in an error whose kind is known.
func ExampleTurn_Fail() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.turn(ctx).Fail(ctx, events.Failure{Kind: "rate_limit", Text: "slow down", RetryAfterMS: 2000}, false))
	last := p.session.State().LastTurn
	fmt.Println(last.Outcome, last.Error.Kind, failure.Retryable(last.Error.Kind))
	// Output: failed rate_limit true
}

// FailWith classifies the error of a provider.
func ExampleTurn_FailWith() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.turn(ctx).FailWith(ctx, &harness.ProviderError{Raw: failure.Raw{Status: 401, Text: "invalid API key"}}))
	last := p.session.State().LastTurn
	fmt.Println(last.Error.Kind, failure.Retryable(last.Error.Kind))
	// Output: authentication false
}

// Stop confirms that a person's stop was obeyed.
func ExampleTurn_Stop() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	p.append(ctx, p.ref(), events.WriterLedger, events.TurnStopRequested{Turn: turn.ID(), Actor: "person", By: "ada"})

	<-turn.Context().Done()
	stop, _ := errors.AsType[*harness.StopError](context.Cause(turn.Context()))
	fatal(turn.Stop(ctx, stop.Actor, stop.Reason))
	fmt.Println(p.session.State().LastTurn.Outcome, stop.Actor, stop.By)
	// Output: stopped person ada
}

// Tool stores that a call is about to run. Run the tool after it has returned.
func ExampleTurn_Tool() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	call, err := p.turn(ctx).Tool(ctx, harness.ToolOptions{ID: "c1", Name: "paint",
		Input: map[string]string{"colour": "red"}})
	fatal(err)
	fmt.Println(p.session.State().Tools[call.ID()].Name)
	// Output: paint
}

// Complete ends a call with its output.
func ExampleCall_Complete() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	call, err := p.turn(ctx).Tool(ctx, harness.ToolOptions{ID: "c1", Name: "paint"})
	fatal(err)
	fatal(call.Complete(ctx, map[string]bool{"painted": true}))
	e, _ := p.session.State().Ended(session.EntityTool, "c1")
	fmt.Println(e.Outcome)
	// Output: completed
}

// Fail ends a call in an error. The turn continues.
func ExampleCall_Fail() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	call, err := p.turn(ctx).Tool(ctx, harness.ToolOptions{ID: "c1", Name: "paint"})
	fatal(err)
	fatal(call.Fail(ctx, events.Failure{Kind: "tool_error", Text: "no paint left"}))
	e, _ := p.session.State().Ended(session.EntityTool, "c1")
	fmt.Println(e.Outcome, p.session.State().Phase)
	// Output: failed running
}

// TestEveryVerbHasAnExample checks that each method that takes a context has an example with an output.
func TestEveryVerbHasAnExample(t *testing.T) {
	shown := examples(t)
	verbs := 0
	for _, v := range []any{&harness.Harness{}, &harness.Session{}, &harness.Turn{}, &harness.Call{}} {
		for m := range reflect.TypeOf(v).Methods() {
			if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
				continue
			}
			verbs++
			name := "Example" + reflect.TypeOf(v).Elem().Name() + "_" + m.Name
			if !shown[name] {
				t.Errorf("%s is missing, or has no output", name)
			}
		}
	}
	if verbs < 20 {
		t.Errorf("%d verbs: the methods were not found", verbs)
	}
}

// examples returns the examples of the package that have an output.
func examples(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("example_*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
				continue
			}
			for _, c := range f.Comments {
				inside := c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End()
				shown[fn.Name.Name] = shown[fn.Name.Name] || inside && strings.HasPrefix(c.Text(), "Output:")
			}
		}
	}
	return shown
}
