package opencode

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// plays has the server run each message that it gets: a model call, an answer, idle. Events about the time before the
// message arrive late, as after an abort.
func (st *stage) plays() {
	st.set(func() {
		st.onPrompt = func(session string, body object) {
			message, _ := body["messageID"].(string)
			st.status(session, false)
			st.status(session, true)
			st.put(session, assistant("b-"+message, message, nil))
			st.part(session, "b-"+message, object{"id": "p-b-" + message, "type": "text", "text": "All done."})
			st.put(session, assistant("b-"+message, message, object{"finish": "stop",
				"time": object{"created": 1, "completed": 2}}))
			st.status(session, false)
		}
	})
}

func completed(s *fold.State) bool {
	return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == "completed" && s.Pending.Turn == nil
}

// An answer that is given while the server is dead becomes the result of the question's call, and the turn continues
// without a new message. The same holds for an answer after the restart.
func TestLiveAnswerAfterDeath(t *testing.T) {
	for name, whileDead := range map[string]bool{"while the server is dead": true, "after the restart": false} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.plays()
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "running", nil))
			st.question("ses_1", "que_1", "msg_1", "call_1")
			st.until("ses_1", "a question waits", awaits(1))
			st.kill()
			if whileDead {
				st.answer("ses_1", "que_1", "q1", "SQLite")
			}
			st.start()
			if !whileDead {
				st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
				natstest.Until(t, "the call is closed", func() bool { return len(st.made("PATCH")) == 1 })
				st.answer("ses_1", "que_1", "q1", "SQLite")
			}
			s := st.until("ses_1", "the turn completed", completed)
			if len(s.PendingPrompts()) != 0 {
				t.Errorf("prompts %v", s.PendingPrompts())
			}
			sent := st.made("POST", "prompt_async")
			if len(sent) != 1 || !strings.Contains(sent[0], `"messageID":"msg_1"`) ||
				!strings.Contains(sent[0], `"id":"p-msg_1"`) || !strings.Contains(sent[0], `"agent":"build"`) {
				t.Errorf("sent: %q", sent)
			}
			if got := st.made("PATCH", `\"Which?\"=\"SQLite\"`, `"status":"completed"`); len(got) != 1 {
				t.Errorf("the answer was stored %d times", len(got))
			}
			if got := st.kinds("ses_1"); slices.Contains(got, "turn.stopped") {
				t.Errorf("an event about the time before ended the turn: %v", got)
			}
			st.mu.Lock()
			defer st.mu.Unlock()
			if got := st.messages["ses_1"]; len(got) != 3 || got[1].Info["finish"] != finishCalls ||
				got[1].Info["error"] != nil {
				t.Errorf("%d messages, that of the call is %v", len(got), got[1].Info)
			}
		})
	}
}

// A permission that is granted after the death asks the model to call again: the command has not run. A rejection says
// so.
func TestLivePermissionAfterDeath(t *testing.T) {
	for name, x := range map[string]struct {
		want    string
		another bool // the bridge that brings the answer has not seen the permission
	}{
		"answer": {textPermitted, false}, "answer, another bridge": {textPermitted, true},
		"reject":                 {textNotAllowed + ": not here", false},
		"reject, another bridge": {textNotAllowed + ": not here", true},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.plays()
			stop := st.bridge()
			st.run("ses_1", "msg_1", "call_1", "bash")
			st.permission("ses_1", "per_1", "msg_1", "call_1")
			st.until("ses_1", "a permission waits", awaits(1))
			if x.another {
				stop()
			}
			st.kill()
			st.start()
			if x.another {
				st.bridge()
			}
			st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
			if strings.HasPrefix(name, "answer") {
				st.answer("ses_1", "per_1", events.PermissionQuestion, "once")
			} else {
				natstest.Until(t, "rejected", func() bool {
					return st.ask("reject", request.Reject{Ref: ref("ses_1"), Prompt: "per_1", By: "ada",
						Text: "not here"})
				})
			}
			st.until("ses_1", "the turn completed", completed)
			if got := st.made("PATCH", x.want); len(got) != 1 || len(st.made("prompt_async")) != 1 {
				t.Errorf("stored %q, sent %q", st.made("PATCH"), st.made("prompt_async"))
			}
		})
	}
}

// A newer message of a person ends the turn that asked, and its question with it: nothing is sent over that message.
func TestLiveNewerMessage(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.kill()
	// the new process runs the newer message already
	st.set(func() {
		st.down, st.busy["ses_1"] = false, true
		st.putLocked("ses_1", object{"id": "msg_2", "role": "user", "time": object{"created": 3}})
		st.putLocked("ses_1", assistant("a-msg_2", "msg_2", nil))
	})
	s := st.until("ses_1", "the question is withdrawn", awaits(0))
	if s.Turn == nil || s.Turn.ID != "msg_2" {
		t.Errorf("the turn is %+v", s.Turn)
	}
	st.put("ses_1", assistant("a-msg_2", "msg_2", object{"finish": "stop",
		"time": object{"created": 3, "completed": 4}}))
	st.status("ses_1", false)
	st.until("ses_1", "the turn completed", completed)
	if got := st.made("prompt_async"); len(got) != 0 {
		t.Errorf("sent over a newer message: %q", got)
	}
}

// A message that is sent through Holdfast becomes one message in OpenCode, behind the others, for the same model,
// under an id that follows from the message.
func TestLiveSend(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.run("ses_1", "msg_000000000001x", "call_1", "bash")
	st.finish("ses_1", "msg_000000000001x", "call_1")
	was := st.until("ses_1", "the turn ended", ended)
	st.replyWith("more")
	s := st.until("ses_1", "the next turn completed", func(s *fold.State) bool {
		return completed(s) && s.LastTurn.ID != was.LastTurn.ID
	})
	sent := st.made("POST", "prompt_async")
	if len(sent) != 1 || !strings.Contains(sent[0], `"more"`) || !strings.Contains(sent[0], `"modelID":"big"`) {
		t.Fatalf("sent: %q", sent)
	}
	if len(s.Queue) != 0 {
		t.Errorf("the queue has %v", s.Queue)
	}
	if id := bodyOf(t, sent[0])["messageID"]; id != messageID(s.LastTurn.Message, "msg_000000000001x") {
		t.Errorf("the id of the message is %q", id)
	}
}

// bodyOf returns the body of a request.
func bodyOf(t *testing.T, made string) object {
	t.Helper()
	_, raw, _ := strings.Cut(made, "{")
	var body object
	if err := json.Unmarshal([]byte("{"+raw), &body); err != nil {
		t.Fatalf("%q: %v", made, err)
	}
	return body
}

// keeps stores a message that the server got, as OpenCode does: under the ids that it has.
func (st *stage) keeps(session string, body object) (message string) {
	message, _ = body["messageID"].(string)
	st.put(session, object{"id": message, "role": "user", "agent": "build",
		"model": object{"providerID": "mock", "modelID": "big"}, "time": object{"created": 1}})
	for _, p := range body["parts"].([]any) {
		st.part(session, message, p.(object))
	}
	return message
}

// ids returns the ids of a session's messages with a role.
func (f *fakeServer) ids(session, role string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages[session] {
		if m.Info["role"] == role {
			all = append(all, m.Info["id"].(string))
		}
	}
	return all
}

// replyWith sends a message to the session as a person does.
func (st *stage) replyWith(content string) {
	st.t.Helper()
	h, err := harness.Connect(st.t.Context(), harness.Config{ID: "sender", URL: st.server.URL()})
	if err != nil {
		st.t.Fatal(err)
	}
	defer h.Abandon()
	m := harness.Message{Harness: "oc", Session: "ses_1", Content: content, By: "ada"}
	if _, err := h.Send(st.t.Context(), m); err != nil {
		st.t.Fatal(err)
	}
}

// idle has a session in which a turn has completed.
func (st *stage) idle() {
	st.t.Helper()
	st.run("ses_1", "msg_000000000001x", "call_1", "bash")
	st.finish("ses_1", "msg_000000000001x", "call_1")
	st.until("ses_1", "the turn ended", completed)
}

// nextCompleted reports whether a turn has completed after that of [stage.idle].
func nextCompleted(s *fold.State) bool {
	return completed(s) && s.LastTurn.Message != "msg_000000000001x"
}

// count returns how many facts of a kind a session has.
func (st *stage) count(session, kind string) (n int) {
	st.t.Helper()
	for _, k := range st.kinds(session) {
		if k == kind {
			n++
		}
	}
	return n
}

// A message that OpenCode has is not sent as another one when its turn is resumed: the id follows from the message, and
// not from the turn. It is sent again as the message that it is.
func TestLiveResumeIsTheSameMessage(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.idle()
	st.set(func() {
		st.onPrompt = func(session string, body object) {
			message := st.keeps(session, body)
			st.status(session, true)
			st.put(session, assistant("b1-"+message, message, nil))
		}
	})
	st.replyWith("more")
	st.until("ses_1", "the model is called", func(s *fold.State) bool { return s.Turn != nil })
	natstest.Until(t, "the server runs it", func() bool { return len(st.ids("ses_1", "assistant")) == 2 })
	st.kill()
	st.plays()
	st.start()
	st.until("ses_1", "the turn was interrupted", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn.Outcome == fold.OutcomeInterrupted
	})
	natstest.Until(t, "the turn is resumed", func() bool {
		return st.bus.Services.Request(t.Context(), retry.Name, "resume", request.Retry{Ref: ref("ses_1"), By: "ada"},
			nil) == nil
	})
	st.until("ses_1", "the turn completed", completed)
	sent := st.made("POST", "prompt_async")
	if len(sent) != 2 {
		t.Fatalf("sent: %q", sent)
	}
	first, again := bodyOf(t, sent[0]), bodyOf(t, sent[1])
	if first["messageID"] != again["messageID"] || !reflect.DeepEqual(unmarked(first), unmarked(again)) {
		t.Errorf("sent %v, then %v", first, again)
	}
	if got := st.ids("ses_1", "user"); len(got) != 2 {
		t.Errorf("the messages of the person: %v", got)
	}
}

// unmarked returns the parts of a request without the mark of the turn.
func unmarked(body object) (parts []object) {
	for _, p := range body["parts"].([]any) {
		p := maps.Clone(p.(object))
		delete(p, "metadata")
		parts = append(parts, p)
	}
	return parts
}

// A bridge dies after it has stored that a turn began. The next bridge sends the message if the server has not got it,
// and only then; in each case the turn ends as OpenCode ended it.
func TestLiveBridgeKilledBeforeItSent(t *testing.T) {
	for name, x := range map[string]struct {
		answers string // what the server has of the turn when the next bridge begins
		sent    int
	}{"not sent": {"", 1}, "at work": {"some", 1}, "over": {"all", 1}} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			stop := st.bridge()
			st.idle()
			run := func(session string, body object) {
				message := st.keeps(session, body)
				st.status(session, true)
				st.put(session, assistant("b-"+message, message, nil))
			}
			end := func() {
				ids := st.ids("ses_1", "user")
				message := ids[len(ids)-1]
				st.put("ses_1", assistant("b-"+message, message, object{"finish": "stop",
					"time": object{"created": 1, "completed": 2}}))
				st.status("ses_1", false)
			}
			st.set(func() {
				st.onPrompt = run
				if x.answers == "" {
					st.deaf = "prompt_async"
				}
			})
			st.replyWith("more")
			natstest.Until(t, "the bridge has sent it, or has tried to", func() bool {
				st.mu.Lock()
				defer st.mu.Unlock()
				return st.unheard > 0 || len(st.messages["ses_1"]) == 4
			})
			st.until("ses_1", "a turn began", func(s *fold.State) bool { return s.Turn != nil })
			stop()
			if x.answers == "all" {
				end()
			}
			st.set(func() { st.deaf = "" })
			st.bridge()
			natstest.Until(t, "the server has the message", func() bool { return len(st.ids("ses_1", "user")) == 2 })
			if x.answers != "all" {
				natstest.Until(t, "the server runs it", func() bool { return len(st.ids("ses_1", "assistant")) == 2 })
				end()
			}
			s := st.until("ses_1", "the turn ended", func(s *fold.State) bool {
				return ended(s) && s.LastTurn.Message != "msg_000000000001x"
			})
			if s.LastTurn.Outcome != fold.OutcomeCompleted {
				t.Errorf("the turn is %s: %s", s.LastTurn.Outcome, s.LastTurn.Reason)
			}
			if got := st.made("POST", "prompt_async"); len(got) != x.sent {
				t.Errorf("sent: %q", got)
			}
			if got := st.count("ses_1", "message.accepted"); got != 2 {
				t.Errorf("%d messages are recorded", got)
			}
			if got := st.count("ses_1", "turn.completed"); got != 2 {
				t.Errorf("%d turns completed: %v", got, st.kinds("ses_1"))
			}
		})
	}
}

// A run that OpenCode ends before its first model call is over, also in a bridge that did not send it.
func TestLiveBridgeKilledBeforeTheModelWasCalled(t *testing.T) {
	st := newStage(t)
	stop := st.bridge()
	st.idle()
	st.set(func() {
		st.onPrompt = func(session string, body object) {
			st.keeps(session, body)
			st.status(session, true)
		}
	})
	st.replyWith("more")
	natstest.Until(t, "the server runs it", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.busy["ses_1"]
	})
	stop()
	st.bridge()
	natstest.Until(t, "the turn ended", func() bool {
		// as often as it takes until the bridge has looked
		st.emit("session.idle", object{"sessionID": "ses_1"})
		s := natstest.Session(t, st.bus, ref("ses_1"))
		return s.Turn == nil && s.LastTurn.Message != "msg_000000000001x"
	})
	if got := st.made("POST", "prompt_async"); len(got) != 1 {
		t.Errorf("sent: %q", got)
	}
}

// The same for a turn that brings a decision: the result of the call is stored, and the message is sent again.
func TestLiveBridgeKilledBeforeItContinued(t *testing.T) {
	for _, kind := range []string{"question", "permission"} {
		t.Run(kind, func(t *testing.T) {
			st := newStage(t)
			stop := st.bridge()
			prompt, question, label := "que_1", "q1", "SQLite"
			if kind == "question" {
				st.run("ses_1", "msg_1", "call_1", "question")
				st.question("ses_1", prompt, "msg_1", "call_1")
			} else {
				prompt, question, label = "per_1", events.PermissionQuestion, "once"
				st.run("ses_1", "msg_1", "call_1", "bash")
				st.permission("ses_1", prompt, "msg_1", "call_1")
			}
			st.until("ses_1", "a prompt waits", awaits(1))
			st.kill()
			st.plays()
			st.set(func() { st.down, st.deaf = false, "prompt_async" })
			st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
			st.answer("ses_1", prompt, question, label)
			natstest.Until(t, "the bridge tries to send", func() bool { return st.deafTo() > 0 })
			stop()
			st.set(func() { st.deaf = "" })
			st.bridge()
			st.until("ses_1", "the turn completed", completed)
			if got := st.made("POST", "prompt_async", `"messageID":"msg_1"`); len(got) != 1 {
				t.Errorf("sent: %q", got)
			}
			want := textPermitted
			if kind == "question" {
				want = `\"Which?\"=\"SQLite\"`
			}
			if got := st.made("PATCH", want); len(got) == 0 || len(st.made("PATCH", textMayHaveRun)) > 0 {
				t.Errorf("stored: %q", st.made("PATCH"))
			}
		})
	}
}

// A bridge dies after it has begun the turn of a decision, for which the server that asked still waits. The next bridge
// brings it.
func TestLiveBridgeKilledBeforeItSentADecision(t *testing.T) {
	st := newStage(t)
	stop := st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"], st.deaf = http.StatusInternalServerError, "que_1/reply"
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.until("ses_1", "the turn of the decision began", func(s *fold.State) bool {
		return s.Turn != nil && s.Turn.Cause == events.CauseAnswer
	})
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
	natstest.Until(t, "the bridge tries to bring it", func() bool { return st.deafTo() > 0 })
	stop()
	st.set(func() { st.deaf = "" })
	st.bridge()
	natstest.Until(t, "the server has the answer", func() bool {
		return len(st.made("question/que_1/reply", "SQLite")) == 1
	})
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "completed", object{"output": "x"}))
	st.finish("ses_1", "msg_1", "call_x")
	st.until("ses_1", "the turn completed", completed)
}

// deafTo returns how many requests the server has not got.
func (f *fakeServer) deafTo() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unheard
}

// A message that a process of the server may not have got is not sent to a process that may be the next one. Once it is
// known as the next one, the turn is begun there.
func TestLiveSendToAnotherProcess(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.idle()
	st.set(func() { st.deaf = "prompt_async" })
	st.replyWith("more")
	natstest.Until(t, "the bridge tries to send", func() bool { return st.deafTo() > 0 })
	st.kill()
	asked := 0
	// the bridge cannot see which process this is
	st.set(func() {
		st.down, st.deaf, st.refuse["GET /mcp"] = false, "", http.StatusServiceUnavailable
		asked = st.refused
	})
	natstest.Until(t, "it has tried a few times", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.refused > asked+5
	})
	if got := st.made("prompt_async"); len(got) != 0 {
		t.Errorf("another process got %q", got)
	}
	st.set(func() { delete(st.refuse, "GET /mcp") })
	st.until("ses_1", "the turn completed", nextCompleted)
	if got := st.made("POST", "prompt_async"); len(got) != 1 {
		t.Errorf("sent: %q", got)
	}
	if got := st.kinds("ses_1"); slices.Contains(got, "turn.interrupted") {
		t.Errorf("the turn was interrupted: %v", got)
	}
}

// An answer that is given while the next process of the server is dead, too, is taken by a bridge that cannot bring it.
// The process after that one gets it, without a person.
func TestLiveAnswerBetweenTwoDeaths(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "running", nil))
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.kill()
	st.start()
	st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
	natstest.Until(t, "the bridge is connected", func() bool { return st.connections() > 1 })
	st.run("ses_2", "msg_2", "call_2", "bash")
	st.until("ses_2", "the bridge has seen a turn", func(s *fold.State) bool { return s.Turn != nil })
	// the comparison at the connection may have shown that; only the stream shows this, and the bridge takes work then
	st.finish("ses_2", "msg_2", "call_2")
	st.until("ses_2", "it takes work", ended)
	st.kill()
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.until("ses_1", "the turn of the answer began", func(s *fold.State) bool {
		return s.Turn != nil && s.Turn.Cause == events.CauseAnswer
	})
	st.start()
	st.until("ses_1", "the turn completed", completed)
	if got := st.made("PATCH", `\"Which?\"=\"SQLite\"`, `"status":"completed"`); len(got) != 1 {
		t.Errorf("the answer was stored %d times", len(got))
	}
	if got := st.made("POST", "prompt_async", `"messageID":"msg_1"`); len(got) != 1 {
		t.Errorf("sent: %q", got)
	}
	if got := st.count("ses_1", "turn.interrupted"); got != 0 {
		t.Errorf("%d turns were interrupted: %v", got, st.kinds("ses_1"))
	}
}

// A bridge dies between a resume and its message, whose earlier attempt has an answer. The next bridge sends it.
func TestLiveBridgeKilledBeforeItResumed(t *testing.T) {
	for name, x := range map[string]struct {
		reached bool // the server has the message of the resume, and has run it
		sent    int
	}{"not sent": {false, 2}, "over": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			stop := st.bridge()
			st.idle()
			st.set(func() {
				st.onPrompt = func(session string, body object) {
					message := st.keeps(session, body)
					st.status(session, true)
					st.put(session, assistant("b1-"+message, message, nil))
				}
			})
			st.replyWith("more")
			natstest.Until(t, "the server runs it", func() bool { return len(st.ids("ses_1", "assistant")) == 2 })
			st.kill()
			st.start()
			was := st.until("ses_1", "the turn was interrupted", func(s *fold.State) bool {
				return s.Turn == nil && s.LastTurn.Outcome == fold.OutcomeInterrupted
			}).LastTurn.ID
			answer := func(session string, body object) {
				message := st.keeps(session, body)
				st.put(session, assistant("b2-"+message, message, object{"finish": "stop",
					"time": object{"created": 1, "completed": 2}}))
				st.status(session, false)
			}
			// the bridge does not see that it ended: its events are lost
			if x.reached {
				st.set(func() {
					st.onPrompt = func(session string, body object) { st.cut(); stop(); answer(session, body) }
				})
			} else {
				st.set(func() { st.onPrompt, st.deaf = answer, "prompt_async" })
			}
			natstest.Until(t, "the turn is resumed", func() bool {
				return st.bus.Services.Request(t.Context(), retry.Name, "resume", request.Retry{Ref: ref("ses_1"),
					By: "ada"}, nil) == nil
			})
			natstest.Until(t, "the bridge has sent it, or has tried to", func() bool {
				return st.deafTo() > 0 || len(st.ids("ses_1", "assistant")) == 3
			})
			stop()
			st.set(func() { st.deaf = "" })
			st.bridge()
			s := st.until("ses_1", "the resumed turn ended", func(s *fold.State) bool {
				return ended(s) && s.LastTurn.ID != was
			})
			if s.LastTurn.Outcome != fold.OutcomeCompleted {
				t.Errorf("the turn is %s: %s %+v", s.LastTurn.Outcome, s.LastTurn.Reason, s.LastTurn.Error)
			}
			if got := st.made("POST", "prompt_async"); len(got) != x.sent {
				t.Errorf("sent: %q", got)
			}
		})
	}
}

// A message whose reply is lost is sent again under the same ids, and its turn does not fail.
func TestLiveSendReplyLost(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.idle()
	st.set(func() { st.mute = "prompt_async" })
	st.replyWith("more")
	s := st.until("ses_1", "the turn ended", func(s *fold.State) bool {
		return ended(s) && s.LastTurn.Message != "msg_000000000001x"
	})
	if !completed(s) {
		t.Errorf("the turn is %s: %+v", s.LastTurn.Outcome, s.LastTurn.Error)
	}
	if sent := st.made("POST", "prompt_async"); len(sent) != 2 || sent[0] != sent[1] {
		t.Errorf("sent: %q", sent)
	}
}

// The id of a message sorts behind the newest one of the session, and before all that follow it: no clock decides it.
func TestMessageID(t *testing.T) {
	for newest, next := range map[string]string{
		"":                               "msg_000000000002",
		"msg_1f87ac8e5001EsKnYFL2yC7FKN": "msg_1f87ac8e5003",
		"msg_1f87ac8effffEsKnYFL2yC7FKN": "msg_1f87ac8f0001",
		messageID("m", "msg_1f87ac8e5001EsKnYFL2yC"): "msg_1f87ac8e5004",
		"msg_ffffffffffffEsKnYFL2yC7FKN":             "msg_g",
		"msg_1":                                      "msg_2",
		"msg_not-an-instant":                         "msg_o",
	} {
		id := messageID("m", newest)
		if id <= newest || id >= next || !strings.HasPrefix(id, "msg_") {
			t.Errorf("behind %q: %q, want one before %q", newest, id, next)
		}
		if !isSent(id, "m") || isSent(id, "n") || isSent(id, "") || isSent(newest, "n") {
			t.Errorf("%q is not recognised", id)
		}
	}
}
