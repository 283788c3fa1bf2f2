package crash

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// contextLimit is the size of a conversation's context, in tokens.
const contextLimit = 100_000

// Kinds of failures: some are retried, some are not.
var (
	turnFailures = []string{"server_error", "server_error", "rate_limit", "empty_output", "authentication",
		"context_exceeded"}
	compactionFailures = []string{"server_error", "bad_summary", "model_not_found"}
)

const (
	failPercent     = 30    // of turns, and of compactions
	retryAfterMaxMS = 4_000 // the longest delay that a provider asks for
)

func (a *agent) failure(kinds []string) events.Failure {
	f := events.Failure{Kind: kinds[a.rnd.IntN(len(kinds))], Text: "no"}
	if f.Kind == "rate_limit" {
		f.RetryAfterMS = a.rnd.Int64N(retryAfterMaxMS)
	}
	return f
}

// end ends a turn, with success or a failure. While the world settles, nothing fails.
func (a *agent) end(ctx context.Context, t *harness.Turn) {
	s := t.Session()
	how, stopped := errors.AsType[*harness.StopError](context.Cause(t.Context()))
	switch {
	case stopped:
		a.acked(s, t.Stop(ctx, how.Actor, "as you say"), events.TurnStopped{Turn: t.ID()})
	case a.resting() || !a.chance(failPercent):
		a.acked(s, t.Complete(ctx, "stop"), events.TurnCompleted{Turn: t.ID()})
	default:
		a.acked(s, t.Fail(ctx, a.failure(turnFailures), a.chance(50)), events.TurnFailed{Turn: t.ID()})
	}
}

// asked runs a requested turn with one call.
func (w *worker) asked(ctx context.Context, t *harness.Turn) error {
	a := w.agent(w.made.Add(1))
	s := t.Session()
	a.j.write(note{Ref: a.ref(s), Kind: "turn.started", ID: t.ID(), Seq: s.State().Seq})
	a.reads(ctx, t)
	for _, p := range t.Request().Prompts {
		// the process may not own the session now
		if p.Omitted {
			continue
		}
		a.settled(s, p.Prompt, harness.Answer{Status: p.Status, Answers: p.Answers, Text: p.Text, By: p.By,
			Reason: p.Reason})
	}
	a.tool(ctx, t)
	if !a.resting() && a.chance(30) {
		tokens := events.Tokens{Input: a.rnd.Int64N(contextLimit), Output: 10}
		if err := t.Usage(ctx, harness.Usage{Model: "m", Tokens: tokens, ContextLimit: contextLimit}); err != nil {
			a.unexpected("usage", err)
		}
	}
	a.pause(ctx)
	if ctx.Err() != nil && t.Context().Err() == nil && a.chance(50) {
		// Work has ended: the next one runs the turn
		return context.Cause(ctx)
	}
	a.end(ctx, t)
	return nil
}

// reads checks that a turn has the content of its message: a message contains its own id, unless it is an answer.
func (a *agent) reads(ctx context.Context, t *harness.Turn) {
	r := t.Request()
	if !strings.HasPrefix(r.Message, "m-") {
		// none, or an answer
		return
	}
	content, err := t.Content(ctx)
	switch want := quoted(r.Message); {
	case errors.Is(err, harness.ErrUnknown) && r.OfTurn != "":
		// the turn that this one continues took it long ago
	case err != nil:
		a.unexpected("content", err)
	case string(content) != want:
		a.j.write(note{Ref: a.ref(t.Session()),
			Wrong: "turn " + t.ID() + " (" + string(r.Cause) + ") has message " + want + " and is given " +
				string(content)})
	}
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		// texts always encode
		panic(err)
	}
	return string(b)
}

// compact compacts a conversation, or fails to.
func (w *worker) compact(ctx context.Context, _ *harness.Session, _ session.WorkCompaction) (int64, error) {
	a := w.agent(w.made.Add(1))
	for range stepsMax {
		a.pause(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case !a.resting() && a.chance(failPercent):
		return 0, &harness.FailureError{Failure: a.failure(compactionFailures)}
	case a.resting():
		return 1, nil
	}
	return a.rnd.Int64N(contextLimit), nil
}
