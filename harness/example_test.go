package harness_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The shortest complete harness: it connects, opens a session, asks a person within a turn, and leaves.
func Example() {
	ctx := context.Background()
	// `holdfast up`
	cell := startCell(ctx)
	defer cell.stop()

	h, err := harness.Connect(ctx, harness.Config{ID: "painter", URL: cell.url})
	fatal(err)
	s, err := h.Open(ctx, "wall", harness.OpenOptions{Title: "Paint the wall"})
	fatal(err)
	fatal(h.Ready(ctx))

	// of a process that was killed
	turn := s.OpenTurn()
	if turn == nil {
		start := harness.StartOptions{Content: "paint the wall", By: "ada"}
		// requested by an answer while no process ran
		if next := s.State().Pending.Turn; next != nil {
			start = harness.StartOptions{ID: next.ID}
		}
		turn, err = s.StartTurn(ctx, start)
		fatal(err)
	}

	go cell.person(ctx, events.Ref{Harness: "painter", Session: "wall"}, "", "red")
	answer, err := turn.AskOnce(ctx, "which-colour", harness.Prompt{
		Questions: []events.Question{{ID: "colour", Question: "Which colour?", Custom: true}}})
	fatal(err)
	fmt.Println(answer.By, "says", answer.Choice())

	fatal(turn.Complete(ctx, "stop"))
	fatal(h.Close(ctx))
	// Output: ada says red
}

// A harness is killed while it waits for an answer. Its next process claims the session together with the open
// question, and asks again under the same id: the person is asked once.
func Example_restart() {
	ctx := context.Background()
	cell := startCell(ctx)
	defer cell.stop()
	colour := harness.Prompt{ID: "which-colour", Call: "call-1",
		Questions: []events.Question{{ID: "colour", Question: "Which colour?", Custom: true}}}

	before, err := harness.Connect(ctx, harness.Config{ID: "painter", URL: cell.url})
	fatal(err)
	s, err := before.Open(ctx, "wall", harness.OpenOptions{})
	fatal(err)
	turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "paint the wall"})
	fatal(err)
	_, err = turn.Tool(ctx, harness.ToolOptions{ID: "call-1", Name: "ask_user"})
	fatal(err)
	waiting := make(chan error, 1)
	go func() {
		_, err := turn.Ask(ctx, colour)
		waiting <- err
	}()
	cell.waits(ctx, events.Ref{Harness: "painter", Session: "wall"}, colour.ID)
	// SIGKILL, in real life. Here the process lives on, to show that it is fenced.

	after, err := harness.Connect(ctx, harness.Config{ID: "painter", URL: cell.url})
	fatal(err)
	s, err = after.Claim(ctx, "wall", harness.Adopt{Prompts: []harness.Prompt{colour}})
	fatal(err)
	fatal(after.Ready(ctx))
	go cell.person(ctx, events.Ref{Harness: "painter", Session: "wall"}, "which-colour", "blue")
	turn = s.OpenTurn()
	answer, err := turn.Ask(ctx, colour)
	fatal(err)
	fmt.Println(answer.Status, answer.Choice())
	fatal(s.Call("call-1").Complete(ctx, answer.Answers))
	fatal(turn.Complete(ctx, ""))
	fatal(after.Close(ctx))
	fmt.Println("the one before is fenced:", errors.Is(<-waiting, harness.ErrFenced))
	// Output:
	// answered blue
	// the one before is fenced: true
}

// A pool of workers: a free member takes the work of sessions without an owner.
func Example_pool() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cell := startCell(ctx)
	defer cell.stop()

	h, err := harness.Connect(ctx, harness.Config{ID: "pool", URL: cell.url, Pool: true})
	fatal(err)
	s, err := h.Open(ctx, "report", harness.OpenOptions{})
	fatal(err)
	fatal(s.Release(ctx, "for another harness"))
	fatal(h.Ready(ctx))
	// a person sends a message
	cell.request(ctx, events.Ref{Harness: "pool", Session: "report"}, "turn-1")

	err = h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		// this example has one piece of work
		defer cancel()
		fmt.Println(turn.Session().ID(), turn.ID(), string(turn.Request().Content))
		return turn.Complete(ctx, "stop")
	}})
	fatal(err)
	fatal(h.Close(context.Background()))
	// Output: report turn-1 "sum it up"
}
