package opencode

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
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
	for verb, want := range map[string]string{"answer": textPermitted, "reject": textNotAllowed + ": not here"} {
		t.Run(verb, func(t *testing.T) {
			st := newStage(t)
			st.plays()
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "bash")
			st.permission("ses_1", "per_1", "msg_1", "call_1")
			st.until("ses_1", "a permission waits", awaits(1))
			st.kill()
			st.start()
			st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
			if verb == "answer" {
				st.answer("ses_1", "per_1", events.PermissionQuestion, "once")
			} else {
				natstest.Until(t, "rejected", func() bool {
					return st.ask("reject", request.Reject{Ref: ref("ses_1"), Prompt: "per_1", By: "ada",
						Text: "not here"})
				})
			}
			st.until("ses_1", "the turn completed", completed)
			if got := st.made("PATCH", want); len(got) != 1 || len(st.made("prompt_async")) != 1 {
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
	st.set(func() { // the new process runs the newer message already
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
// under an id that follows from its turn.
func TestLiveSend(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.run("ses_1", "msg_000000000001x", "call_1", "bash")
	st.finish("ses_1", "msg_000000000001x", "call_1")
	was := st.until("ses_1", "the turn ended", ended)
	h, err := harness.Connect(t.Context(), harness.Config{ID: "sender", URL: st.server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Abandon()
	more := harness.Message{Harness: "oc", Session: "ses_1", Content: "more", By: "ada"}
	if _, err := h.Send(t.Context(), more); err != nil {
		t.Fatal(err)
	}
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
	id := messageID(s.LastTurn.ID, "msg_000000000001x")
	if !strings.HasPrefix(id, "msg_000000000001") || id != messageID(s.LastTurn.ID, id) ||
		id == messageID("another", id) || messageID("t", "m1") != "" {
		t.Errorf("the id of the turn's message is %q", id)
	}
}
