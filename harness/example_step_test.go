package harness_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
)

// Step runs a function once for a message, and returns its result each time.
func ExampleStep() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	for range 2 {
		litres, err := harness.Step(ctx, turn, "buy-paint", func(context.Context) (int, error) {
			fmt.Println("in the shop")
			return 5, nil
		})
		fatal(err)
		fmt.Println(litres, "litres")
	}
	// Output:
	// in the shop
	// 5 litres
	// 5 litres
}

// A step that was cut off may have had its effect. It is not run again, unless it is declared idempotent.
func ExampleStep_unknown() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	cut, cancel := context.WithCancel(ctx)
	_, err := harness.Step(cut, turn, "buy-paint", func(ctx context.Context) (int, error) {
		// SIGKILL, in real life
		cancel()
		return 0, ctx.Err()
	})
	fmt.Println("cut off:", errors.Is(err, context.Canceled), errors.Is(err, harness.ErrOutcomeUnknown))
	_, err = harness.Step(ctx, turn, "buy-paint", func(context.Context) (int, error) { return 5, nil })
	fmt.Println("unknown:", errors.Is(err, harness.ErrOutcomeUnknown))
	litres, err := harness.Step(ctx, turn, "count-paint", func(context.Context) (int, error) { return 5, nil })
	fatal(err)
	fmt.Println(litres, "litres are there")
	// Output:
	// cut off: true true
	// unknown: true
	// 5 litres are there
}

// AskOnce asks a question once for a message, and returns the decision each time.
func ExampleTurn_AskOnce() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	go p.person(ctx, p.ref(), "", "red")
	for range 2 {
		answer, err := turn.AskOnce(ctx, "colour", colour())
		fatal(err)
		fmt.Println(answer.Answers[0].Text)
	}
	// Output:
	// red
	// red
}
