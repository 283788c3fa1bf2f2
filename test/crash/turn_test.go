package crash

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// turn runs one turn: the open one, one adopted from an earlier process, or a new one.
func (a *agent) turn(ctx context.Context, s *harness.Session) {
	ctx, cancel := context.WithTimeout(ctx, turnMax)
	defer cancel()
	t := s.OpenTurn()
	if t != nil {
		a.goOn(ctx, t)
	} else {
		start := harness.StartOptions{ID: a.id("t"), Message: a.id("m"), By: "ada"}
		start.Content = start.Message
		var err error
		t, err = s.StartTurn(ctx, start)
		if !a.acked(s, err, events.MessageAccepted{Message: start.Message}, events.TurnStarted{Turn: start.ID}) {
			return
		}
	}
	inTurn, stop := context.WithCancel(t.Context())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	for range a.rnd.IntN(stepsMax) + 1 {
		if inTurn.Err() != nil || a.resting() {
			break
		}
		a.step(inTurn, t)
		a.pause(inTurn)
	}
	// else left open: the next turn replaces it
	if a.resting() || a.chance(90) {
		a.end(ctx, t)
	}
}

// step runs one random step of a turn.
func (a *agent) step(ctx context.Context, t *harness.Turn) {
	switch n := a.rnd.IntN(100); {
	case n < 35:
		a.tool(ctx, t)
	case n < 45:
		for range 3 {
			// left open: they end with their turn, or with recovery
			a.openTool(ctx, t, a.chance(20))
		}
	case n < 70:
		a.ask(ctx, t)
	case n < 78:
		a.askTwo(ctx, t)
	case n < 82:
		a.askOutside(ctx, t)
	case n < 90 && a.depth < depthMax:
		a.delegate(ctx, t)
	default:
		tokens := events.Tokens{Input: a.rnd.Int64N(contextLimit), Output: 10}
		report := events.UsageReported{Turn: t.ID(), Model: "m", Tokens: tokens, ContextLimit: contextLimit}
		a.acked(t.Session(), t.Session().Append(ctx, report), report)
	}
}

// openTool starts a call; nil if it failed.
func (a *agent) openTool(ctx context.Context, t *harness.Turn, background bool) *harness.Call {
	tool := harness.ToolOptions{ID: a.id("c"), Name: "bash", Title: "make", Background: background}
	call, err := t.Tool(ctx, tool)
	if !a.acked(t.Session(), err, events.ToolStarted{Call: tool.ID}) {
		return nil
	}
	return call
}

// tool runs a call from its start to its end.
func (a *agent) tool(ctx context.Context, t *harness.Turn) {
	call := a.openTool(ctx, t, false)
	if call == nil {
		return
	}
	a.pause(ctx)
	a.endCall(ctx, t.Session(), call)
}

func (a *agent) endCall(ctx context.Context, s *harness.Session, call *harness.Call) {
	if a.chance(80) {
		a.acked(s, call.Complete(ctx, "done"), events.ToolCompleted{Call: call.ID()})
		return
	}
	a.acked(s, call.Fail(ctx, events.Failure{Kind: "exit", Text: "1"}), events.ToolFailed{Call: call.ID()})
}

// question returns a random prompt: with a call or without, kept or not, blocking or not, with a deadline or not.
func (a *agent) question(call *harness.Call) harness.Prompt {
	p := harness.Prompt{ID: a.id("p"), Title: "which?", NonBlocking: a.chance(10)}
	if call != nil {
		p.Call = call.ID()
	}
	switch a.rnd.IntN(4) {
	case 0:
		// a callback, without questions of its own
		p.Kind = events.PromptPermission
	case 1:
		p.Questions, p.Delivery = ask(), events.DeliverCallback
		if a.chance(30) {
			p.OnOwnerLoss = events.LossKeep
		}
	case 2:
		p.Questions, p.Delivery = ask(), events.DeliverMessage
	default:
		// with a call its result, else a callback
		p.Questions = ask()
	}
	if a.chance(20) {
		p.Deadline = time.Now().Add(time.Duration(a.rnd.IntN(deadlineMax)) * time.Millisecond)
	}
	return p
}

func ask() []events.Question {
	return []events.Question{{ID: "q", Question: "which?", Custom: true}}
}

// ask asks people, with or without a call, and uses the answer as a harness does.
func (a *agent) ask(ctx context.Context, t *harness.Turn) {
	s := t.Session()
	var call *harness.Call
	if a.chance(75) {
		if call = a.openTool(ctx, t, false); call == nil {
			return
		}
	}
	p := a.question(call)
	if a.await(ctx, t, p) && call != nil {
		a.acked(s, call.Complete(ctx, "as you say"), events.ToolCompleted{Call: call.ID()})
	} else if call != nil && a.chance(50) {
		a.endCall(ctx, s, call)
	}
}

// askTwo asks two questions at once, without calls, and waits for both.
func (a *agent) askTwo(ctx context.Context, t *harness.Turn) {
	var both sync.WaitGroup
	for range 2 {
		p := a.question(nil)
		p.OnOwnerLoss = events.LossKeep
		asker := &agent{worker: a.worker, rnd: rand.New(rand.NewPCG(a.rnd.Uint64(), a.rnd.Uint64())), depth: a.depth}
		both.Go(func() { asker.await(ctx, t, p) })
	}
	both.Wait()
}

// askOutside asks a question that belongs to no turn, or to a call in the background. If Ask gives up, it is sometimes
// called again under the same id; otherwise a turn has to bring the answer.
func (a *agent) askOutside(ctx context.Context, t *harness.Turn) {
	s, call := t.Session(), (*harness.Call)(nil)
	if a.chance(30) {
		if call = a.openTool(ctx, t, true); call == nil {
			return
		}
	}
	p := a.question(call)
	p.NonBlocking, p.OnOwnerLoss = a.chance(80), events.LossKeep
	asks := s.Ask
	if call != nil {
		asks = t.Ask
	}
	for range 1 + a.rnd.IntN(2) {
		short, cancel := context.WithTimeout(ctx, time.Duration(a.rnd.IntN(askMaxMS))*time.Millisecond)
		x, err := asks(short, p)
		cancel()
		if err == nil {
			a.settled(s, p.ID, x)
			break
		}
		a.unexpected("ask", err)
	}
	if call != nil && a.chance(50) {
		a.endCall(ctx, s, call)
	}
}

// await waits for a prompt's settlement, for a limited time. It reports whether it came.
func (a *agent) await(ctx context.Context, t *harness.Turn, p harness.Prompt) bool {
	most := time.Duration(a.rnd.IntN(askMaxMS)) * time.Millisecond
	if a.chance(patientAsks) {
		most = turnMax
	}
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	x, err := t.Ask(short, p)
	if err == nil {
		a.settled(t.Session(), p.ID, x)
		return true
	}
	a.unexpected("ask", err)
	if ctx.Err() == nil && a.chance(50) {
		a.acked(t.Session(), t.Session().Withdraw(ctx, p.ID, "never mind"), events.PromptWithdrawn{Prompt: p.ID})
	}
	return false
}

// goOn finishes an adopted turn.
func (a *agent) goOn(ctx context.Context, t *harness.Turn) {
	s, st := t.Session(), t.Session().State()
	for _, id := range slices.Sorted(maps.Keys(st.Prompts)) {
		if p := st.Prompts[id]; p.Status == session.Awaiting && p.Epoch == st.Epoch && a.chance(50) {
			a.await(ctx, t, harness.Prompt{ID: id})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(st.Tools)) {
		if st.Tools[id].Epoch == st.Epoch && a.chance(50) {
			a.endCall(ctx, s, s.Call(id))
		}
	}
}

// delegate starts a child session while a call waits for it.
func (a *agent) delegate(ctx context.Context, t *harness.Turn) {
	s := t.Session()
	call := a.openTool(ctx, t, false)
	if call == nil {
		return
	}
	kid, err := a.h.Open(ctx, a.id("k"),
		harness.OpenOptions{Parent: s.ID(), ParentCall: call.ID(), Root: s.State().Root, Title: "part of the work"})
	if err != nil {
		a.unexpected("open", err)
		return
	}
	a.owns(kid)
	below := &agent{worker: a.worker, rnd: a.rnd, depth: a.depth + 1}
	below.turn(ctx, kid)
	switch {
	case a.chance(60):
		a.acked(kid, kid.Close(ctx, "finished"), events.SessionClosed{})
	case a.chance(50):
		a.acked(kid, kid.Release(ctx, "done"), events.SessionReleased{})
	}
	a.endCall(ctx, s, call)
}
