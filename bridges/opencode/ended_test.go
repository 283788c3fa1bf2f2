package opencode

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// kept returns how much the newest bridge keeps of decisions, messages and calls.
func (st *stage) kept() (decisions, others int) {
	l := st.follower.serving.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked), len(l.awaited) + len(l.turnsAt) + len(l.messages) + len(l.owesAsk)
}

// forgotten waits until the newest bridge keeps nothing.
func (st *stage) forgotten(what string) {
	st.t.Helper()
	natstest.Until(st.t, what+" is forgotten", func() bool {
		decisions, others := st.kept()
		return decisions+others == 0
	})
}

// permit asks for a permission of a call, or without one.
func (st *stage) permit(prompt, message, call string) {
	if call != "" {
		st.permission("ses_1", prompt, message, call)
		return
	}
	p := object{"id": prompt, "sessionID": "ses_1", "permission": "doom_loop", "patterns": []string{"bash"}}
	st.set(func() {
		st.prompts[prompt] = p
		st.emitLocked("permission.asked", p)
	})
}

// TestForgetsDecisions: a server lives for long, and people decide. Nothing is kept of a decision whose turn ended,
// however the decision reached the server. Events and requests about it that come late, or again, send nothing and
// refuse nothing.
func TestForgetsDecisions(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.bridge()
	const rounds = 4
	for n := range rounds {
		message, call := fmt.Sprintf("msg_%d", n), fmt.Sprintf("call_%d", n)
		asked := []string{fmt.Sprintf("que_%d", n), fmt.Sprintf("per_%da", n), fmt.Sprintf("per_%db", n),
			fmt.Sprintf("per_%dc", n)}
		st.run("ses_1", message, call, "question")
		st.question("ses_1", asked[0], message, call)
		st.permit(asked[1], message, call)
		st.permit(asked[2], message, "")
		st.permit(asked[3], message, call)
		st.until("ses_1", "four prompts wait", awaits(4))
		st.answer("ses_1", asked[0], "q1", "Postgres")
		st.answer("ses_1", asked[1], events.PermissionQuestion, "once")
		st.answer("ses_1", asked[2], events.PermissionQuestion, "once")
		st.set(func() { st.settle("permission", asked[3], "reply", object{"reply": "once"}) })
		for _, id := range asked[:3] {
			natstest.Until(t, "the server has "+id, func() bool { return len(st.made(id+"/reply")) == 1 })
		}
		st.until("ses_1", "no prompt waits", awaits(0))
		st.finish("ses_1", message, call)
		st.until("ses_1", "the turn ended", func(s *fold.State) bool { return ended(s) && s.LastTurn.ID == message })
	}
	st.forgotten("all that was decided")
	before := len(st.made("/reply"))
	for n := range rounds {
		for _, typ := range []string{"permission.asked", "permission.replied"} {
			st.emit(typ, object{"id": fmt.Sprintf("per_%da", n), "requestID": fmt.Sprintf("per_%da", n),
				"sessionID": "ses_1", "permission": "bash", "patterns": []string{"rm x"}, "reply": replyReject})
		}
	}
	was := st.connections()
	st.cut()
	natstest.Until(t, "the bridge is connected again", func() bool { return st.connections() > was })
	st.run("ses_1", "msg_last", "call_last", "bash")
	st.finish("ses_1", "msg_last", "call_last")
	st.until("ses_1", "the last turn ended", func(s *fold.State) bool {
		return ended(s) && s.LastTurn.ID == "msg_last"
	})
	st.forgotten("what came late")
	if got := st.made("/reply"); len(got) != before {
		t.Errorf("sent: %q", got)
	}
	for _, e := range st.inLog("ses_1") {
		if f, ok := e.Fact.(events.PromptDelivered); ok && f.Refused != "" {
			t.Errorf("refused: %+v", f)
		}
	}
}

// TestForgetsDecisionsOfTurns: turns bring decisions to runs that wait, and to runs that were answered in OpenCode.
// Nothing is kept of them when the turns have ended.
func TestForgetsDecisionsOfTurns(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]object{"taken": nil,
		"too late": {"answers": [][]string{{"Postgres"}}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t)
			st.plays()
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.question("ses_1", "que_1", "msg_1", "call_1")
			st.until("ses_1", "a question waits", awaits(1))
			st.set(func() {
				st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
				if first != nil {
					st.first = map[string]object{"que_1": first}
				}
			})
			st.recover("ses_1")
			st.answer("ses_1", "que_1", "q1", "SQLite")
			st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
			natstest.Until(t, "the decision is sent", func() bool { return len(st.made("que_1/reply")) == 1 })
			answer := "SQLite"
			if first != nil {
				answer = "Postgres"
			}
			st.questionEnds("completed", result([]string{answer}))
			s := st.until("ses_1", "the turn completed", completed)
			st.forgotten("the decision")
			if e, _ := s.Ended(fold.EntityPrompt, "que_1"); (e.Reason == "refused: "+reasonLate) != (first != nil) {
				t.Errorf("the question is %+v", e)
			}
		})
	}
}

// TestKeepsDecisions: OpenCode has a decision, and the log waits for the receipt. It is kept: a turn could still bring
// it.
func TestKeepsDecisions(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.permission("ses_1", "per_1", "msg_1", "call_1")
	st.until("ses_1", "a permission waits", awaits(1))
	st.answer("ses_1", "per_1", events.PermissionQuestion, "once")
	natstest.Until(t, "the server has it", func() bool { return len(st.made("per_1/reply")) == 1 })
	natstest.Until(t, "the Ask has ended", func() bool { _, others := st.kept(); return others == 0 })
	st.part("ses_1", "a-msg_1", storedTool("p-call_2", "call_2", "bash", "running", nil))
	st.until("ses_1", "another call runs", func(s *fold.State) bool { return len(s.Tools) == 2 })
	if n, _ := st.kept(); n != 1 {
		t.Errorf("%d decisions are kept", n)
	}
	st.finish("ses_1", "msg_1", "call_1")
	st.until("ses_1", "the turn ended", ended)
	st.forgotten("the decision")
}

// keepsSettled reports whether a decision that the server has replied to, and that nothing else waits for, is kept now.
func (st *stage) keepsSettled() bool {
	l := st.follower.serving.Load()
	l.mu.Lock()
	l.asked["que_0"] = &asking{session: "ses_1", cancel: func() {}, decided: true, settled: true}
	l.mu.Unlock()
	st.follower.mu.Lock()
	st.follower.forget(l, "ses_1")
	st.follower.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked["que_0"] != nil
}

// TestAHandlerKeepsDecisions: the server may have replied to a decision since the handler of a turn has read it, and
// the handler would bring it again as that of another person. So nothing that was decided is forgotten until the
// handler ends.
func TestAHandlerKeepsDecisions(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.plays()
	run, kept := st.onPrompt, make(chan bool, 1)
	st.set(func() {
		// the handler waits for the reply to its message meanwhile
		st.onPrompt = func(session string, body object) {
			kept <- st.keepsSettled()
			run(session, body)
		}
	})
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.permission("ses_1", "per_1", "msg_1", "call_1")
	st.until("ses_1", "a permission waits", awaits(1))
	st.kill()
	st.start()
	st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
	st.answer("ses_1", "per_1", events.PermissionQuestion, "once")
	st.until("ses_1", "the turn completed", completed)
	if !<-kept {
		t.Error("it is forgotten while a handler runs")
	}
	st.forgotten("what was decided")
}

// TestForget: what a decision is kept for.
func TestForget(t *testing.T) {
	t.Parallel()
	const busy = `session.status {"sessionID":"ses_1","status":{"type":"busy"}}`
	asked := []string{created, busy, permission("per_1", "c1", "rm")}
	settled := append(slices.Clone(asked), replied("per_1", "once"))
	for name, c := range map[string]struct {
		lines []string
		more  func(*process, *asking)
		after func(*session)
		kept  bool
	}{
		"settled":                {lines: settled},
		"the server asks":        {lines: asked, kept: true},
		"asked, and replied":     {lines: asked, more: func(_ *process, a *asking) { a.settled = true }, kept: true},
		"not shown, and replied": {lines: asked[:1], more: func(_ *process, a *asking) { a.settled = true }},
		"not shown":              {lines: asked[:1], kept: true},
		"no session":             {kept: true},
		"an Ask waits": {lines: settled, kept: true,
			more: func(l *process, _ *asking) { l.awaited["per_1"] = 1 }},
		"a handler runs": {lines: settled, kept: true,
			more: func(l *process, _ *asking) { l.turnsAt["ses_1"] = 1 }},
		"another session's handler": {lines: settled, more: func(l *process, _ *asking) { l.turnsAt["ses_2"] = 1 }},
		"not decided": {lines: settled, kept: true,
			more: func(_ *process, a *asking) { a.decided = false }},
		"of another session": {lines: settled, kept: true,
			more: func(_ *process, a *asking) { a.session = "ses_2" }},
		"recovery closed it": {lines: settled, kept: true,
			after: func(s *session) { s.prompts["per_1"].unsettled = true }},
		"the translator forgot it": {lines: settled, after: func(s *session) {
			delete(s.prompts, "per_1")
			s.gone.add(gonePrompt + "per_1")
		}},
		"the session is deleted": {lines: append(slices.Clone(asked),
			`session.deleted {"sessionID":"ses_1","info":{"id":"ses_1"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &feed{t: NewLiveTranslator()}
			f.translate(c.lines...)
			r := &follower{translator: f.t}
			a := &asking{session: "ses_1", decided: true}
			l := &process{asked: map[string]*asking{"per_1": a}, sent: map[string]bool{}, awaited: map[string]int{},
				turnsAt: map[string]int{}}
			// another decision of the session
			l.asked["per_2"] = &asking{session: "ses_1"}
			if c.more != nil {
				c.more(l, a)
			}
			if c.after != nil {
				c.after(f.t.sessions["ses_1"])
			}
			r.forget(l, "ses_1")
			if _, kept := l.asked["per_1"]; kept != c.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}

// TestKeepsPrompt: which prompts and messages the log of a session still has.
func TestKeepsPrompt(t *testing.T) {
	t.Parallel()
	named := []fold.Carried{{Prompt: "p"}}
	for name, c := range map[string]struct {
		change          func(*fold.State)
		prompt, message bool
	}{
		"nothing":      {func(*fold.State) {}, false, false},
		"a prompt":     {func(s *fold.State) { s.Prompts = map[string]*fold.Prompt{"p": {}} }, true, false},
		"an open turn": {func(s *fold.State) { s.Turn = &fold.Turn{Prompts: named, Message: "m"} }, true, true},
		"the last turn": {func(s *fold.State) {
			s.LastTurn = &fold.LastTurn{Prompts: named, Message: "m"}
		}, true, false},
		"a requested turn": {func(s *fold.State) {
			s.Pending.Turn = &fold.PendingTurn{Prompts: named, Message: "m"}
		}, true, true},
		"a queue": {func(s *fold.State) { s.Queue = []fold.Message{{ID: "m"}} }, false, true},
		"others": {func(s *fold.State) {
			s.Turn, s.Queue = &fold.Turn{Message: "n"}, []fold.Message{{ID: "o"}}
			s.Prompts = map[string]*fold.Prompt{"q": {}}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fold.New(ref("ses_1"))
			c.change(s)
			if p, m := keepsPrompt(s, "p"), keepsMessage(s, "m"); p != c.prompt || m != c.message {
				t.Errorf("the prompt is kept: %v, the message: %v", p, m)
			}
		})
	}
	if keepsPrompt(nil, "p") || keepsMessage(nil, "m") {
		t.Error("kept without a session")
	}
}

// TestForgetsMessages: messages that the plugin has held are forgotten with their turns, and so is one that a person
// withdraws. The plugin asks for one again, late: it gets the same ids, and nothing is sent.
func TestForgetsMessages(t *testing.T) {
	t.Parallel()
	st, address, _ := queued(t)
	held := st.types(address, "ses_1", "msg_2", "more")
	st.until("ses_1", "one waits", waiting(1))
	st.finish("ses_1", "msg_00000000000100000000000000", "call_1")
	first := <-held
	st.takesIn("ses_1", first.place.Message, first.place.Part, "more", first.place.Mark)
	st.until("ses_1", "all are answered", allAnswered)
	st.forgotten("the message")
	if again := <-st.types(address, "ses_1", "msg_2", "more"); again != first {
		t.Errorf("first %+v, again %+v", first, again)
	}
	st.forgotten("the message, again")
	if got := st.made("prompt_async"); len(got) > 0 || !st.follower.serving.Load().holdsAny() {
		t.Errorf("sent: %q", got)
	}
}

// TestKeepsMessages: the plugin gives a request up, and asks again when the turn of the message has begun. The message
// is the plugin's to store, with all its parts.
func TestKeepsMessages(t *testing.T) {
	t.Parallel()
	st, address, _ := queued(t)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	done := make(chan struct{})
	go func() {
		defer close(done)
		st.postsIn(ctx, address+"/message", pluginToken, object{"session": "ses_1", "message": "msg_2", "text": "more",
			"marks": st.marks()})
	}()
	st.until("ses_1", "it waits", waiting(1))
	giveUp()
	<-done
	l := st.follower.serving.Load()
	natstest.Until(t, "the bridge has seen that", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		h := l.messages[queuedPrefix+"msg_2"]
		return h == nil || h.requests == 0
	})
	st.finish("ses_1", "msg_00000000000100000000000000", "call_1")
	st.until("ses_1", "its turn is open", func(s *fold.State) bool { return s.Turn != nil && len(s.Queue) == 0 })
	got := <-st.types(address, "ses_1", "msg_2", "more")
	st.takesIn("ses_1", got.place.Message, got.place.Part, "more", got.place.Mark)
	st.until("ses_1", "all are answered", allAnswered)
	if sent := st.made("prompt_async"); len(sent) > 0 {
		t.Errorf("sent: %q", sent)
	}
	st.forgotten("the message")
}

// TestForgetsCalls: a call that the plugin did not ask for, and that ends with its turn, owes nothing.
func TestForgetsCalls(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.plugged()
	st.asks("ses_1", "msg_1")
	st.step("ses_1", "msg_1")
	// the bridge reads the server when it connects, and a call that it finds then owes nothing
	st.until("ses_1", "the turn is open", func(s *fold.State) bool { return s.Turn != nil })
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "bash", "running", nil))
	natstest.Until(t, "the call owes a question", func() bool { _, others := st.kept(); return others == 1 })
	st.emit("session.error", object{"sessionID": "ses_1", "error": object{"name": abortedError}})
	st.status("ses_1", false)
	st.until("ses_1", "the turn ended", ended)
	st.forgotten("the call")
}

// TestForgetHeld: a message stays while a request of the plugin waits for it, whatever the log has; a call stays with
// its session.
func TestForgetHeld(t *testing.T) {
	t.Parallel()
	r := &follower{translator: NewLiveTranslator()}
	l := &process{messages: map[string]*heldMessage{"over": {session: "ses_1"},
		"asked for": {session: "ses_1", requests: 1}, "of another session": {session: "ses_2"}},
		owesAsk: map[callKey]bool{{"ses_1", "call_1"}: true, {"ses_2", "call_1"}: true}}
	r.forget(l, "ses_1")
	if l.messages["over"] != nil || len(l.messages) != 2 {
		t.Errorf("messages: %v", l.messages)
	}
	if l.owesAsk[callKey{"ses_1", "call_1"}] || len(l.owesAsk) != 1 {
		t.Errorf("calls: %v", l.owesAsk)
	}
}

// TestLearnsOnce: an Ask brings a second decision if the first one was taken back while it was brought. The first one,
// which was sent, stays the one to compare.
func TestLearnsOnce(t *testing.T) {
	t.Parallel()
	a := &asking{known: make(chan struct{})}
	a.learn(harness.Answer{Status: fold.Answered})
	a.learn(harness.Answer{Status: fold.Rejected})
	<-a.known
	if a.answer.Status != fold.Answered {
		t.Errorf("the decision is %s", a.answer.Status)
	}
}
