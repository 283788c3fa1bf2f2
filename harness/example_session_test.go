package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// painter is a cell, a harness of it, and an open session of that harness.
type painter struct {
	*cell
	harness *harness.Harness
	session *harness.Session
}

func paint(ctx context.Context) *painter {
	c := startCell(ctx)
	h, err := harness.Connect(ctx, harness.Config{ID: "painter", URL: c.url})
	fatal(err)
	s, err := h.Open(ctx, "wall", harness.OpenOptions{Title: "Paint the wall"})
	fatal(err)
	fatal(h.Ready(ctx))
	return &painter{cell: c, harness: h, session: s}
}

func (p *painter) stop() {
	fatal(p.harness.Close(context.Background()))
	p.cell.stop()
}

// turn starts the turn t1.
func (p *painter) turn(ctx context.Context) *harness.Turn {
	t, err := p.session.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "paint it", By: "ada"})
	fatal(err)
	return t
}

func (p *painter) ref() events.Ref {
	return events.Ref{Harness: p.harness.ID(), Session: p.session.ID()}
}

func colour() harness.Prompt {
	return harness.Prompt{ID: "colour", Questions: []events.Question{{ID: "colour", Question: "Which?", Custom: true}}}
}

// Open returns the session, whether it is new or left by an earlier process.
func ExampleHarness_Open() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	s, err := p.harness.Open(ctx, "door", harness.OpenOptions{Title: "Paint the door", Model: "small"})
	fatal(err)
	fmt.Println(s.ID(), s.State().Title, s.State().Epoch)
	// Output: door Paint the door 1
}

// Claim takes a session that another process left. Each claim begins an epoch.
func ExampleHarness_Claim() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.session.Release(ctx, "another process continues"))

	s, err := p.harness.Claim(ctx, "wall")
	fatal(err)
	fmt.Println(s.State().Title, s.State().Epoch)
	_, err = p.harness.Claim(ctx, "ceiling")
	fmt.Println(errors.Is(err, harness.ErrNotFound))
	// Output:
	// Paint the wall 2
	// true
}

// Ready ends the adoption: what the process has not claimed until then is left to recovery.
func ExampleHarness_Ready() {
	ctx := context.Background()
	c := startCell(ctx)
	defer c.stop()
	h, err := harness.Connect(ctx, harness.Config{ID: "painter", URL: c.url})
	fatal(err)
	// Claim here the sessions that an earlier process left, then:
	fatal(h.Ready(ctx))
	fmt.Println(h.ID(), h.Context().Err())
	fatal(h.Close(ctx))
	// Output: painter <nil>
}

// Close releases all sessions and the lease. Contexts of the harness end.
func ExampleHarness_Close() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.cell.stop()
	fatal(p.harness.Close(ctx))
	fmt.Println(errors.Is(context.Cause(p.session.Context()), harness.ErrReleased),
		errors.Is(context.Cause(p.harness.Context()), harness.ErrClosed), p.state(ctx, p.ref()).Owned)
	// Output: true true false
}

// Abandon stops at once, as a killed process does: the session stays owned until recovery sees the lease expire.
func ExampleHarness_Abandon() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.cell.stop()
	p.harness.Abandon()
	fmt.Println(errors.Is(context.Cause(p.session.Context()), harness.ErrClosed), p.state(ctx, p.ref()).Owned)
	// Output: true true
}

// AbandonBecause leaves like Abandon, and says in the lease how the process ended that this one supervises.
func ExampleHarness_AbandonBecause() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.cell.stop()
	fatal(p.harness.AbandonBecause(ctx, "exit status 1"))
	fmt.Println(errors.Is(context.Cause(p.session.Context()), harness.ErrClosed), p.state(ctx, p.ref()).Owned)
	// Output: true true
}

// Sessions returns the documents of the harness's sessions, for a process that starts.
func ExampleHarness_Sessions() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	// the ledger stores the document
	doc, err := p.state(ctx, p.ref()).Encode()
	fatal(err)
	_, err = p.bus.KV.Store(ctx, kv.State, events.SessionKey(p.ref()), doc, 0)
	fatal(err)

	all, unreadable, err := p.harness.Sessions(ctx)
	fatal(err)
	for _, st := range all {
		fmt.Println(st.Session, st.Phase, len(unreadable))
	}
	// Output: wall idle 0
}

// Work hands the work of all sessions to handlers, and returns when its context ends.
func ExampleHarness_Work() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := paint(ctx)
	defer p.stop()
	// a person sends a message
	p.request(ctx, p.ref(), "turn-1")

	fatal(p.harness.Work(ctx, harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
		defer cancel()
		fmt.Println(turn.Session().ID(), turn.ID(), turn.Request().Cause)
		// the turn completes
		return nil
	}}))
	// Output: wall turn-1 message
}

// Append stores facts for which there is no method, all or none.
func ExampleSession_Append() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.session.Append(ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.ToolStarted{Call: "c1", Turn: "t1", Name: "paint"}))
	fmt.Println(p.session.State().Phase, p.session.State().Tools["c1"].Name)
	err := p.session.Append(ctx, events.ToolCompleted{Call: "unknown"})
	fmt.Println(errors.Is(err, harness.ErrUnknown))
	// Output:
	// running paint
	// true
}

// Relay stores what a foreign system reported, also facts that do not count.
func ExampleSession_Relay() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.session.Relay(ctx, events.ToolCompleted{Call: "unknown", Output: json.RawMessage(`"done"`)}))
	fmt.Println(p.session.State().Ignored.Count)
	// Output: 1
}

// Release leaves a session to other processes.
func ExampleSession_Release() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.session.Release(ctx, "this worker ends"))
	fmt.Println(p.session.State().Owned, errors.Is(context.Cause(p.session.Context()), harness.ErrReleased))
	// Output: false true
}

// Close ends a session for good.
func ExampleSession_Close() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fatal(p.session.Close(ctx, "finished"))
	_, err := p.harness.Claim(ctx, "wall")
	fmt.Println(p.session.State().Phase, errors.Is(err, harness.ErrSessionClosed))
	// Output: closed true
}

// Regain returns once this process owns the session. After a lost lease it waits for the next claim.
func ExampleSession_Regain() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fmt.Println(p.session.Regain(ctx))
	fatal(p.session.Release(ctx, "done"))
	fmt.Println(errors.Is(p.session.Regain(ctx), harness.ErrReleased))
	// Output:
	// <nil>
	// true
}

// Confirm asks the log whether this process owns the session.
func ExampleSession_Confirm() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	fmt.Println(p.session.Confirm(ctx))
	fatal(p.session.Release(ctx, "done"))
	fmt.Println(errors.Is(p.session.Confirm(ctx), harness.ErrReleased))
	// Output:
	// <nil>
	// true
}

// Ask waits for a person, outside of any turn.
func ExampleSession_Ask() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	go p.person(ctx, p.ref(), "colour", "red")
	answer, err := p.session.Ask(ctx, colour())
	fatal(err)
	fmt.Println(answer.Status, answer.By, answer.Answers[0].Text)
	// Output: answered ada red
}

// Requested returns what a prompt asks, for a process that shows it again.
func ExampleSession_Requested() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	go func() {
		p.waits(ctx, p.ref(), "colour")
		asked, err := p.session.Requested(ctx, "colour")
		fatal(err)
		fmt.Println(asked.Questions[0].Question)
		fatal(p.session.Withdraw(ctx, "colour", "no-longer-needed"))
	}()
	_, err := p.session.Ask(ctx, colour())
	fatal(err)
	// Output: Which?
}

// Withdraw takes a question back. The Ask that waits for it returns.
func ExampleSession_Withdraw() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	go func() {
		p.waits(ctx, p.ref(), "colour")
		fatal(p.session.Withdraw(ctx, "colour", "no-longer-needed"))
	}()
	answer, err := p.session.Ask(ctx, colour())
	fatal(err)
	fmt.Println(answer.Status, answer.Reason)
	// Output: withdrawn no-longer-needed
}

// Refuse reports that the agent cannot use an answer.
func ExampleSession_Refuse() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn := p.turn(ctx)
	call, err := turn.Tool(ctx, harness.ToolOptions{ID: "c1", Name: "ask_user"})
	fatal(err)
	question := colour()
	question.Call = call.ID()
	go p.person(ctx, p.ref(), "colour", "transparent")
	_, err = turn.Ask(ctx, question)
	fatal(err)
	fatal(p.session.Refuse(ctx, "colour", "no such paint"))
	fatal(call.Complete(ctx, "no colour"))
	e, _ := p.session.State().Ended(session.EntityPrompt, "colour")
	fmt.Println(e.Outcome, e.Reason)
	// Output: answered refused: no such paint
}

// StartTurn begins a turn with the message of a person.
func ExampleSession_StartTurn() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	turn, err := p.session.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "paint it", By: "ada"})
	fatal(err)
	fmt.Println(turn.ID(), p.session.State().Phase)
	// Output: t1 running
}

// Result returns how a call of an earlier process ended.
func ExampleSession_Result() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	call, err := p.turn(ctx).Tool(ctx, harness.ToolOptions{ID: "c1", Name: "paint"})
	fatal(err)
	fatal(call.Complete(ctx, "painted"))
	result, err := p.session.Result(ctx, "c1")
	fatal(err)
	fmt.Println(result.Outcome, string(result.Output))
	// Output: completed "painted"
}

// Answer returns how a prompt was settled, for a turn whose request names it.
func ExampleSession_Answer() {
	ctx := context.Background()
	p := paint(ctx)
	defer p.stop()
	go p.person(ctx, p.ref(), "colour", "red")
	_, err := p.session.Ask(ctx, colour())
	fatal(err)
	answer, err := p.session.Answer(ctx, "colour")
	fatal(err)
	fmt.Println(answer.Status, answer.Answers[0].Text)
	// Output: answered red
}
