package harness_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Choice is the option or the text of an answer to one question. ChoiceOf is that of one question of several.
func ExampleAnswer_Choice() {
	one := harness.Answer{Status: session.Answered, Answers: []events.Answer{
		{Question: "env", Selected: []string{"staging"}}}}
	fmt.Println(one.Choice())
	two := harness.Answer{Status: session.Answered, Answers: []events.Answer{
		{Question: "env", Selected: []string{"staging"}},
		{Question: "when", Text: "at noon"}}}
	fmt.Println(two.ChoiceOf("when"))
	// Output:
	// staging
	// at noon
}

// Validate names the field that is wrong.
func ExampleConfig_Validate() {
	cfg := harness.Config{URL: "nats://127.0.0.1:4222"}
	fmt.Println(cfg.Validate() != nil)
	cfg.ID = "painter"
	fmt.Println(cfg.Validate())
	// Output:
	// true
	// <nil>
}

// A summary that is no text fails the compaction as bad_summary.
func ExampleValidateSummary() {
	fmt.Println(harness.ValidateSummary("The wall is red, the door is open."))
	err := harness.ValidateSummary(`{"tool":"paint"}`)
	f, _ := errors.AsType[*harness.FailureError](err)
	fmt.Println(f.Failure.Kind)
	// Output:
	// <nil>
	// bad_summary
}

// Stream follows one call of a model. A stream that ends before its finish mark is a failure that can be tried again.
func ExampleTurn_Stream() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	whole, cut := turn.Stream(), turn.Stream()
	whole.Delta(true)
	whole.Finish("stop")
	cut.Delta(true)
	fmt.Println(whole.HadOutput(), whole.Err(io.EOF))
	f, _ := errors.AsType[*harness.FailureError](cut.Err(io.EOF))
	fmt.Println(f.HadOutput, f.Failure.Kind)
	// Output:
	// true <nil>
	// true stream_truncated
}

// Options are what makes a turn the same request when it is tried again.
func ExampleTurn_Options() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	type options struct{ Model string }
	turn, err := p.session.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "paint it",
		Options: options{Model: "small"}})
	fatal(err)
	var o options
	has, err := turn.Options(&o)
	fatal(err)
	fmt.Println(has, o.Model, turn.Request().Cause)
	// Output: true small message
}

// Call returns a call of the session by its id, to end it where it was not begun.
func ExampleSession_Call() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	_, err := p.turn(ctx).Tool(ctx, harness.ToolOptions{ID: "c1", Name: "paint"})
	fatal(err)
	fatal(p.session.Call("c1").Complete(ctx, "red"))
	fmt.Println(len(p.session.State().Tools), "calls are open")
	// Output: 0 calls are open
}

// OpenTurn returns the turn that runs, or that a dead process left and this one has adopted.
func ExampleSession_OpenTurn() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fmt.Println(p.session.OpenTurn() == nil)
	turn := p.turn(ctx)
	fmt.Println(p.session.OpenTurn().ID() == turn.ID(), turn.Context().Err())
	fatal(turn.Complete(ctx, "stop"))
	fmt.Println(p.session.OpenTurn() == nil)
	// Output:
	// true
	// true <nil>
	// true
}

// WaitFor frees the place of a turn while its handler waits for the turns of sub-agents.
func ExampleTurn_WaitFor() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	fatal(turn.WaitFor(func() error {
		child, err := p.harness.Open(ctx, "door", harness.OpenOptions{Title: "Paint the door"})
		if err != nil {
			return err
		}
		of, err := child.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "the door, too"})
		if err != nil {
			return err
		}
		return of.Complete(ctx, "stop")
	}))
	fatal(turn.Complete(ctx, "stop"))
	fmt.Println(p.session.State().LastTurn.Outcome)
	// Output: completed
}

// Idempotent has a step that was cut off run again. StepInput refuses another input under the same name.
func ExampleIdempotent() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	count := func(shelf string) (int, error) {
		return harness.Step(ctx, turn, "count-paint", func(context.Context) (int, error) { return 5, nil },
			harness.Idempotent(), harness.StepInput(shelf))
	}
	litres, err := count("left")
	fatal(err)
	_, err = count("right")
	fmt.Println(litres, errors.Is(err, harness.ErrNameTaken))
	// Output: 5 true
}

// Progress is a sign of life of a turn that has nothing to store.
func ExampleSession_Progress() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	p.session.Progress()
	fmt.Println(p.session.Context().Err(), p.harness.Context().Err(), p.harness.Incarnation() != "")
	// Output: <nil> <nil> true
}
