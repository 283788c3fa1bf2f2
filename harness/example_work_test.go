package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// The provider is down. The handler says so and returns; when it is time, it is handed the same turn again, with the
// options that it had. The handler itself never tries again.
func Example_retry() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cell := startCell(ctx)
	defer cell.stop()
	wall := events.Ref{Harness: "painter", Session: "wall"}

	h, err := harness.Connect(ctx, harness.Config{ID: wall.Harness, URL: cell.url})
	fatal(err)
	_, err = h.Open(ctx, wall.Session, harness.OpenOptions{})
	fatal(err)
	fatal(h.Ready(ctx))
	// a person sends a message
	cell.request(ctx, wall, "turn-1")
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		failed := cell.until(ctx, wall, func(st *session.State) bool { return st.LastTurn != nil })
		fmt.Println("failed:", failed.LastTurn.Error.Kind, "retryable:", failure.Retryable(failed.LastTurn.Error.Kind))
		// the retry service, when it is time
		cell.append(context.Background(), wall, events.WriterRetry,
			events.TurnRequested{Turn: "turn-2", Cause: events.CauseRetry, OfTurn: "turn-1", Attempt: 1,
				Message: failed.LastTurn.Message,
				Options: failed.LastTurn.Options})
	}()

	err = h.Work(ctx, harness.Worker{
		Options: func(*harness.Session, session.WorkTurn) any { return map[string]string{"model": "small"} },
		Turn: func(ctx context.Context, turn *harness.Turn) error {
			r := turn.Request()
			fmt.Println(turn.ID(), r.Cause, string(r.Options))
			if r.Cause == events.CauseMessage {
				return &harness.ProviderError{Raw: failure.Raw{Status: 503, Text: "overloaded"}}
			}
			// this example has one turn
			defer cancel()
			return turn.Complete(ctx, "stop")
		},
	})
	fatal(err)
	<-asked
	fatal(h.Close(context.Background()))
	// Output:
	// turn-1 message {"model":"small"}
	// failed: server_error retryable: true
	// turn-2 retry {"model":"small"}
}

// A model call is followed while it streams: that keeps the turn from being taken for stalled, tells what was counted,
// and knows in the end whether the stream was whole.
func ExampleStream() {
	ctx := context.Background()
	cell := startCell(ctx)
	defer cell.stop()
	h, err := harness.Connect(ctx, harness.Config{ID: "painter", URL: cell.url})
	fatal(err)
	s, err := h.Open(ctx, "wall", harness.OpenOptions{})
	fatal(err)
	turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "paint the wall"})
	fatal(err)

	stream := turn.Stream()
	for i, word := range []string{"I ", "paint ", "the "} {
		stream.Delta(word != "")
		// costs little
		fatal(turn.Usage(ctx, harness.Usage{Model: "small", Tokens: events.Tokens{Input: int64(1000 + i)}}))
	}
	// it ended, and no finish mark had come
	err = stream.Err(nil)
	fatal(turn.FailWith(ctx, err))

	st := s.State()
	fmt.Println(st.LastTurn.Error.Kind, "had output:", st.LastTurn.HadOutput, "used:", st.Usage.Used)
	fatal(h.Close(ctx))
	// Output: stream_truncated had output: true used: 1002
}

// Compaction is work like a turn: a service has decided that it is time, and the handler makes the summary.
func Example_compaction() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cell := startCell(ctx)
	defer cell.stop()
	wall := events.Ref{Harness: "painter", Session: "wall"}
	h, err := harness.Connect(ctx, harness.Config{ID: wall.Harness, URL: cell.url})
	fatal(err)
	_, err = h.Open(ctx, wall.Session, harness.OpenOptions{})
	fatal(err)
	fatal(h.Ready(ctx))
	cell.append(ctx, wall, events.WriterCompaction,
		events.CompactionRequested{Compaction: "compaction-1", Reason: events.CompactManual})
	go func() {
		st := cell.until(context.Background(), wall, func(st *session.State) bool { return st.LastCompaction != nil })
		fmt.Println(st.LastCompaction.Outcome, st.LastCompaction.Error.Kind)
		cancel()
	}()

	err = h.Work(ctx, harness.Worker{Compact: func(_ context.Context, s *harness.Session,
		c session.WorkCompaction) (usedAfter int64, err error) {
		fmt.Println("compact", s.ID(), "because", c.Reason)
		// the summary of the model
		summary := `{"tool":"paint","colour":"red"}`
		if err := harness.ValidateSummary(summary); err != nil {
			return 0, err
		}
		return int64(len(summary) / 4), nil
	}})
	fatal(err)
	fatal(h.Close(context.Background()))
	// Output:
	// compact wall because manual
	// failed bad_summary
}

// Any program can send a message. Once that returned, the message is stored, and will be delivered once.
func ExampleHarness_Send() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cell := startCell(ctx)
	defer cell.stop()
	wall := events.Ref{Harness: "painter", Session: "wall"}
	// the compaction service
	go cell.takeMessages(ctx)

	h, err := harness.Connect(ctx, harness.Config{ID: wall.Harness, URL: cell.url})
	fatal(err)
	_, err = h.Open(ctx, wall.Session, harness.OpenOptions{})
	fatal(err)
	fatal(h.Ready(ctx))
	id, err := h.Send(ctx, harness.Message{Session: "wall", ID: "message-1", Content: "paint it red", By: "ada"})
	fatal(err)
	fmt.Println("stored:", id)

	err = h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		defer cancel()
		content, err := turn.Content(ctx)
		fmt.Println(turn.Request().Message, string(content))
		return err
	}})
	fatal(err)
	fatal(h.Close(context.Background()))
	// Output:
	// stored: message-1
	// message-1 "paint it red"
}

// until returns when the session's log says so.
func (c *cell) until(ctx context.Context, r events.Ref, ok func(*session.State) bool) *session.State {
	for {
		st := c.state(ctx, r)
		if ok(st) {
			return st
		}
		select {
		case <-ctx.Done():
			fatal(ctx.Err())
		default:
		}
	}
}

// takeMessages is the least that takes messages.
func (c *cell) takeMessages(ctx context.Context) {
	fatal(c.bus.Services.Serve(ctx, "compaction", "0.0.1", "a stand-in",
		[]rpc.Endpoint{{Verb: "send", Handle: func(ctx context.Context, body []byte) ([]byte, error) {
			var m events.MessageAccepted
			var to struct{ Harness, Session string }
			if err := errors.Join(json.Unmarshal(body, &m), json.Unmarshal(body, &to)); err != nil {
				return nil, err
			}
			c.append(ctx, events.Ref{Harness: to.Harness, Session: to.Session}, events.WriterCompaction, m,
				events.TurnRequested{Turn: "turn-1", Cause: events.CauseMessage, Message: m.Message})
			return []byte(`{}`), nil
		}}}))
}
