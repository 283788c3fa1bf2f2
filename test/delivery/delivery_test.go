// Package delivery has people answer questions that no Ask of a live process waits for. All services run on a real
// broker. Each answer reaches the agent by a turn, once, and an Ask that still waits keeps its answer.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
	"github.com/holdfast-dev/holdfast/test/service"
)

const (
	me       = "agent"
	id       = "s" // the session
	patience = 2 * time.Minute
)

var ref = events.Ref{Harness: me, Session: id}

// world is a broker with all services, and one agent.
type world struct {
	t     *testing.T
	ctx   context.Context
	bus   *bus.Bus
	url   string
	agent *harness.Harness
	s     *harness.Session
	turns chan session.WorkTurn // as Work handed them out
}

// newWorld starts a world whose agent takes turns, if turn is given.
func newWorld(t *testing.T, turn func(ctx context.Context, t *harness.Turn) error) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	server := natstest.Start(t)
	w := &world{t: t, ctx: ctx, bus: natstest.Bus(t, server), url: server.URL(), turns: make(chan session.WorkTurn, 64)}
	service.Run(w.t, w.bus)
	var err error
	w.agent, err = harness.Connect(ctx, harness.Config{ID: me, URL: server.URL()})
	w.ok(err)
	w.s, err = w.agent.Open(ctx, id, harness.OpenOptions{})
	w.ok(err)
	w.ok(w.agent.Ready(ctx))
	t.Cleanup(func() { w.ok(w.agent.Close(context.Background())) })
	if turn != nil {
		w.work(turn)
	}
	return w
}

// restart has the agent die, and the next process of it claim the session.
func (w *world) restart(adopt harness.Adopt) {
	w.t.Helper()
	w.agent.Abandon()
	var err error
	w.agent, err = harness.Connect(w.ctx, harness.Config{ID: me, URL: w.url})
	w.ok(err)
	w.s, err = w.agent.Claim(w.ctx, id, adopt)
	w.ok(err)
	w.ok(w.agent.Ready(w.ctx))
}

// work has the agent take turns.
func (w *world) work(turn func(ctx context.Context, t *harness.Turn) error) {
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() {
		done <- w.agent.Work(ctx, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
			if r := t.Request(); r.Message == "" && len(r.Prompts) == 0 {
				w.t.Errorf("turn %s, cause %s, does not say what it is about: %+v", r.Turn, r.Cause, r)
			}
			w.turns <- t.Request()
			return turn(ctx, t)
		}})
	}()
	w.t.Cleanup(func() {
		stop()
		w.ok(<-done)
	})
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits until the log of the session says so.
func (w *world) until(what string, ok func(*session.State) bool) *session.State {
	w.t.Helper()
	return natstest.UntilSession(w.t, w.bus, ref, what, ok)
}

// awaits waits until a prompt awaits a person and the log says whether an Ask waits for its answer.
func (w *world) awaits(prompt string, unattended bool) {
	w.t.Helper()
	w.until("prompt "+prompt, func(st *session.State) bool {
		p := st.Prompts[prompt]
		return p != nil && p.Status == session.Awaiting && p.Unattended == unattended
	})
}

// ask calls an Ask in the background and returns how it ended.
func ask(call func() (harness.Answer, error)) <-chan error {
	done := make(chan error, 1)
	go func() {
		a, err := call()
		if err == nil && (a.Status != session.Answered || a.Answers[0].Text != "blue") {
			err = errors.New("settled as " + string(a.Status))
		}
		done <- err
	}()
	return done
}

// answer answers a prompt as the person's program does.
func (w *world) answer(prompt string) {
	w.t.Helper()
	req := map[string]any{"harness": me, "session": id, "prompt": prompt, "by": "ada",
		"answers": []events.Answer{{Question: "q", Text: "blue"}}}
	natstest.Until(w.t, "the answer to "+prompt, func() bool {
		err := w.bus.Services.Request(w.ctx, ledger.Name, "answer", req, nil)
		refusal, refused := errors.AsType[*events.Refusal](err)
		// 404: the ledger has yet to fold the question
		if refused && refusal.Code != 503 && refusal.Code != 404 {
			w.t.Fatalf("%s cannot be answered: %v", prompt, err)
		}
		return err == nil
	})
}

// next is the turn that the agent gets next.
func (w *world) next() session.WorkTurn {
	w.t.Helper()
	select {
	case t := <-w.turns:
		return t
	case <-w.ctx.Done():
		w.t.Fatal("the agent gets no turn")
		panic("unreachable")
	}
}

// brings checks that the agent's next turn brings the answer to one prompt, and that no other turn follows it: the one
// after it is that of a message which is sent then.
func (w *world) brings(prompt string) {
	w.t.Helper()
	got := w.next()
	if got.Cause != events.CauseAnswer || len(got.Prompts) != 1 || got.Prompts[0].Prompt != prompt ||
		len(got.Prompts[0].Answers) != 1 || got.Prompts[0].Answers[0].Text != "blue" {
		w.t.Fatalf("the agent gets %+v, want the answer to %s", got, prompt)
	}
	w.until("the end of that turn", func(st *session.State) bool {
		return st.LastTurn != nil && st.LastTurn.ID == got.Turn && st.Prompts[prompt] == nil
	})
	w.nothing()
}

// nothing checks that no turn is requested: the agent's next turn is that of a message which is sent now.
func (w *world) nothing() {
	w.t.Helper()
	_, err := w.agent.Send(w.ctx, harness.Message{Session: id, ID: "next", Content: "next", By: "ada"})
	w.ok(err)
	if got := w.next(); got.Message != "next" || len(got.Prompts) != 0 {
		w.t.Errorf("the agent gets %+v before the message", got)
	}
}

func question(prompt, call string) harness.Prompt {
	return harness.Prompt{ID: prompt, Call: call, OnOwnerLoss: events.LossKeep,
		Questions: []events.Question{{ID: "q", Question: "Which colour?", Custom: true}}}
}

func completes(context.Context, *harness.Turn) error { return nil }

// TestAnswerOutsideOfTurns: an Ask outside of any turn gave up, and its process lives. The answer calls for a turn.
func TestAnswerOutsideOfTurns(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t, completes)
	short, cancel := context.WithCancel(w.ctx)
	done := ask(func() (harness.Answer, error) { return w.s.Ask(short, question("p", "")) })
	w.awaits("p", false)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.awaits("p", true)
	w.answer("p")
	w.brings("p")
}

// TestAnswerToABackgroundCall: a call outlives its turn, and the Ask for its question gave up while the turn ran. The
// answer calls for a turn, in which the call ends with it.
func TestAnswerToABackgroundCall(t *testing.T) {
	// it mostly waits
	t.Parallel()
	gaveUp := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, turn *harness.Turn) error {
		switch r := turn.Request(); {
		case r.Cause == events.CauseAnswer:
			return turn.Session().Call("c").Complete(ctx, "blue")
		case r.Message != "first":
			return nil
		}
		call, err := turn.Tool(ctx, harness.ToolOptions{ID: "c", Name: "watch", Background: true})
		if err != nil {
			return err
		}
		short, cancel := context.WithCancel(ctx)
		done := ask(func() (harness.Answer, error) { return turn.Ask(short, question("p", call.ID())) })
		<-gaveUp
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	_, err := w.agent.Send(w.ctx, harness.Message{Session: id, ID: "first", Content: "go", By: "ada"})
	w.ok(err)
	w.next()
	w.awaits("p", false)
	close(gaveUp)
	w.awaits("p", true)
	w.until("the end of the turn", func(st *session.State) bool { return st.LastTurn != nil })
	w.answer("p")
	w.brings("p")
	w.until("the end of the call", func(st *session.State) bool { return len(st.Tools) == 0 })
}

// TestAnswerToASecondAsk: an Ask gave up, and the process asks again under the same id. The second Ask waits and
// returns the answer, and no turn is requested.
func TestAnswerToASecondAsk(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t, completes)
	call := func(ctx context.Context) <-chan error {
		return ask(func() (harness.Answer, error) { return w.s.Ask(ctx, question("p", "")) })
	}
	short, cancel := context.WithCancel(w.ctx)
	first := call(short)
	w.awaits("p", false)
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.awaits("p", true)
	second := call(w.ctx)
	w.awaits("p", false)
	w.answer("p")
	w.ok(<-second)
	w.nothing()
	st := w.until("the receipt", func(st *session.State) bool { return st.Prompts["p"] == nil })
	if st.Ignored.Count != 0 {
		t.Errorf("ignored: %+v", st.Ignored.Last)
	}
}

// TestAnswerToAnAdoptedPrompt: a process adopts a call in the background and its question, or a question outside of any
// turn, and does not ask. The answer calls for a turn. An Ask that comes late has an answer from after it, once.
func TestAnswerToAnAdoptedPrompt(t *testing.T) {
	for name, p := range map[string]harness.Prompt{"outside of any turn": question("p", ""),
		"of a call in the background": question("p", "c")} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", asked late ", late), func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t, nil)
				turn, err := w.s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"})
				w.ok(err)
				if p.Call != "" {
					_, err = turn.Tool(w.ctx, harness.ToolOptions{ID: p.Call, Name: "watch", Background: true})
					w.ok(err)
				}
				ask(func() (harness.Answer, error) { return w.s.Ask(w.ctx, p) })
				w.awaits("p", false)
				w.ok(turn.Complete(w.ctx, "stop"))
				w.restart(harness.Adopt{Calls: []string{"c"}, Prompts: []harness.Prompt{{ID: "p"}}})
				w.awaits("p", true)
				w.work(completes)
				if !late {
					w.answer("p")
					w.brings("p")
					return
				}
				again := ask(func() (harness.Answer, error) { return w.s.Ask(w.ctx, p) })
				w.awaits("p", false)
				w.answer("p")
				w.ok(<-again)
				if p.Call != "" {
					w.ok(w.s.Call(p.Call).Complete(w.ctx, "blue"))
				}
				w.nothing()
			})
		}
	}
}

// TestAnAgentThatTakesNoAnswer: an agent meets each request for a turn with a turn of its own, which names nothing. The
// requests end, the session shows why, and a person's resume begins again: the next turn brings the answer.
func TestAnAgentThatTakesNoAnswer(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t, nil)
	w.ok(w.s.Append(w.ctx, events.PromptRequested{Prompt: "p", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep,
		Questions: question("p", "").Questions}, events.PromptUnattended{Prompt: "p"}))
	w.answer("p")
	asked := 0
	for {
		st := w.until("a request, or the end of them", func(st *session.State) bool {
			return st.Pending.Turn != nil || st.Continuations.State != ""
		})
		if st.Pending.Turn == nil {
			break
		}
		asked++
		own, err := w.s.StartTurn(w.ctx, harness.StartOptions{Synthetic: true})
		w.ok(err)
		w.ok(own.Complete(w.ctx, "stop"))
	}
	st := w.until("the state", func(*session.State) bool { return true })
	want := session.Continuations{Count: session.ContinuationsMax, State: session.ContinuationsHeld,
		Reason: "no_progress"}
	if asked != session.ContinuationsMax || st.Continuations != want || st.Phase != session.Interrupted {
		t.Errorf("%d turns were requested, then %+v, phase %s", asked, st.Continuations, st.Phase)
	}
	resume := map[string]any{"harness": me, "session": id, "by": "ada"}
	natstest.Until(t, "the resume", func() bool {
		return w.bus.Services.Request(w.ctx, retry.Name, "resume", resume, nil) == nil
	})
	st = w.until("the requested turn", func(st *session.State) bool { return st.Pending.Turn != nil })
	if st.Continuations != (session.Continuations{}) || st.Phase != session.Queued {
		t.Errorf("after the resume: %+v, phase %s", st.Continuations, st.Phase)
	}
	w.work(completes)
	w.brings("p")
}

// TestOldAnswers: the logs and documents are from before decisions called for turns, and many sessions have an answer
// that no receipt follows. The first start requests no turn for them. An answer of today calls for one.
func TestOldAnswers(t *testing.T) {
	// it mostly waits
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, bus: natstest.Bus(t, natstest.Start(t))}
	const today = "today"
	old := map[string]bool{}
	for i := range 20 {
		old[fmt.Sprint("old-", i)] = true
		w.past(fmt.Sprint("old-", i), false)
	}
	w.past(today, true)
	service.Run(w.t, w.bus)
	for name := range old {
		natstest.Until(t, "the document of "+name, func() bool {
			st := w.document(name)
			return st.Rules == session.FoldRules
		})
	}
	natstest.Until(t, "a turn for the answer of today", func() bool { return w.document(today).Pending.Turn != nil })
	var swept request.Swept
	natstest.Until(t, "a pass over all sessions", func() bool {
		dry := request.Sweep{Harness: me, DryRun: true}
		return w.bus.Services.Request(ctx, reconciler.Name, "sweep", dry, &swept) == nil
	})
	if len(swept.Facts) != 0 {
		t.Errorf("still to be appended: %v", swept.Facts)
	}
	for name := range old {
		if st := w.document(name); st.Pending.Turn != nil || st.Continuations.Count != 0 {
			t.Errorf("%s: turn %+v was requested", name, st.Pending.Turn)
		}
	}
}

// past writes the log of a session whose answer was not read, and the document that a build of that time had made.
func (w *world) past(name string, owed bool) {
	w.t.Helper()
	r := events.Ref{Harness: me, Session: name}
	st := session.New(r)
	add := func(by events.Writer, source string, facts ...events.Fact) {
		evs := make([]events.Event, len(facts))
		for i, f := range facts {
			evs[i] = events.New(w.bus.NewID(), source, r, 1, time.Now(), f)
		}
		seq, err := w.bus.Log.Append(w.ctx, r, by, st.Seq, evs)
		w.ok(err)
		st.Fold(&events.Commit{Ref: r, Writer: by, Seq: seq, Guard: st.Seq, Guarded: true, At: time.Now().UTC(),
			Events: evs})
	}
	owner := events.HarnessSource(me, "17")
	add(events.WriterHarness, owner, events.SessionOpened{Incarnation: "17"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage},
		events.PromptRequested{Prompt: "p", Turn: "t", PromptKind: events.PromptQuestion, OnOwnerLoss: events.LossKeep,
			Delivery: events.DeliverCallback, Questions: question("p", "").Questions})
	add(events.WriterLedger, events.PersonSource("ada"), events.PromptAnswered{Prompt: "p", By: "ada", Owed: owed,
		Answers: []events.Answer{{Question: "q", Text: "blue"}}})
	add(events.WriterHarness, owner, events.TurnCompleted{Turn: "t"}, events.SessionReleased{Reason: "done"})
	st.Rules, st.QuietSeq = 0, 0
	doc, err := st.Encode()
	w.ok(err)
	_, err = w.bus.KV.Store(w.ctx, kv.State, events.SessionKey(r), doc, 0)
	w.ok(err)
}

// document is a session's document.
func (w *world) document(name string) *session.State {
	w.t.Helper()
	e, err := w.bus.KV.Load(w.ctx, kv.State, events.SessionKey(events.Ref{Harness: me, Session: name}))
	w.ok(err)
	st, err := session.Decode(e.Value)
	w.ok(err)
	return st
}
