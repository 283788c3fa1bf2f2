package opencode

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
	compactions "github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// reply is what the plugin got.
type reply struct {
	status int
	place  place
	text   string
}

// types has a person type a message in OpenCode, which the plugin holds until the reply is there.
func (st *stage) types(address, session, message, text string) <-chan reply {
	out := make(chan reply, 1)
	marks := st.marks()
	go func() {
		for {
			status, body := st.posts(address+"/message", pluginToken, object{"session": session, "message": message,
				"text": text, "marks": marks})
			if status == http.StatusAccepted {
				continue
			}
			got := reply{status: status, text: body}
			if status == http.StatusOK {
				if err := json.Unmarshal([]byte(body), &got.place); err != nil {
					st.t.Error(err)
				}
			}
			out <- got
			return
		}
	}()
	return out
}

// takesIn stores the message of a person, and answers it.
func (st *stage) takesIn(session, message, part, text string, mark any) {
	st.put(session, object{"id": message, "role": "user", "agent": "build",
		"model": object{"providerID": "mock", "modelID": "big"}, "time": object{"created": 1}})
	st.part(session, message, object{"id": part, "type": "text", "text": text, "metadata": object{"holdfast": mark}})
	st.status(session, true)
	st.put(session, assistant("b-"+message, message, nil))
	st.put(session, assistant("b-"+message, message, object{"finish": "stop",
		"time": object{"created": 1, "completed": 2}}))
	st.status(session, false)
}

// queued is a stage with a run, behind which messages wait.
func queued(t *testing.T) (st *stage, address string, stop func()) {
	t.Helper()
	st = newStage(t)
	st.drive = Drive{Queue: true}
	st.set(func() {
		st.onPrompt = func(session string, body object) {
			part := body["parts"].([]any)[0].(object)
			st.takesIn(session, body["messageID"].(string), part["id"].(string), part["text"].(string),
				part["metadata"].(object)["holdfast"])
		}
	})
	address, stop = st.plugged()
	st.run("ses_1", "msg_00000000000100000000000000", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	return st, address, stop
}

func waiting(n int) func(*fold.State) bool {
	return func(s *fold.State) bool { return len(s.Queue) == n }
}

func allAnswered(s *fold.State) bool { return completed(s) && len(s.Queue) == 0 }

// TestQueueHolds: messages that are typed while a run works wait. Each one has a turn of its own, in order, under an id
// behind all that OpenCode has by then. A message of a sub-agent, and one of a bridge that does not drive the queue, is
// not held.
func TestQueueHolds(t *testing.T) {
	t.Parallel()
	st, address, _ := queued(t)
	first := st.types(address, "ses_1", "msg_2", "more")
	st.until("ses_1", "one waits", waiting(1))
	second := st.types(address, "ses_1", "msg_3", "and more")
	st.until("ses_1", "two wait", waiting(2))
	if got := <-st.types(address, "ses_1-sub", "msg_4", "a part"); got.status != http.StatusServiceUnavailable {
		t.Errorf("of a session that OpenCode does not have: %+v", got)
	}
	st.session("ses_1-sub")
	if got := <-st.types(address, "ses_1-sub", "msg_4", "a part"); got.status != http.StatusNoContent {
		t.Errorf("of a sub-agent: %+v", got)
	}
	checked := time.Now().Add(2 * idleEvery)
	natstest.Until(t, "the bridge has looked at the messages", func() bool { return time.Now().After(checked) })
	st.finish("ses_1", "msg_00000000000100000000000000", "call_1")
	newest := "msg_00000000000100000000000000"
	for n, held := range []<-chan reply{first, second} {
		got := <-held
		if got.status != http.StatusOK || got.place.Message <= newest || got.place.Mark.Turn == "" {
			t.Fatalf("message %d: %+v", n, got)
		}
		newest = got.place.Message
		st.takesIn("ses_1", got.place.Message, got.place.Part, "more", got.place.Mark)
	}
	st.until("ses_1", "all are answered", allAnswered)
	kinds := st.kinds("ses_1")
	count := func(kind string) (n int) {
		for _, k := range kinds {
			if k == kind {
				n++
			}
		}
		return n
	}
	if count("message.accepted") != 3 || count("turn.completed") != 3 || len(st.made("prompt_async")) != 0 {
		t.Errorf("the log has %v, sent: %q", kinds, st.made("prompt_async"))
	}
}

// TestQueueNotDriven: without --drive queue the plugin holds nothing.
func TestQueueNotDriven(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	address, _ := st.plugged()
	st.session("ses_1")
	if got := <-st.types(address, "ses_1", "msg_1", "x"); got.status != http.StatusNoContent {
		t.Errorf("%+v", got)
	}
}

// TestQueueKilled: OpenCode is killed while messages wait in its memory. They are in the queue, and the next process
// gets each one, as a message of its own.
func TestQueueKilled(t *testing.T) {
	t.Parallel()
	st, address, _ := queued(t)
	st.types(address, "ses_1", "msg_2", "more")
	st.until("ses_1", "one waits", waiting(1))
	st.types(address, "ses_1", "msg_3", "and more")
	st.until("ses_1", "two wait", waiting(2))
	st.kill()
	st.start()
	st.until("ses_1", "the turn is interrupted", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn.Outcome == fold.OutcomeInterrupted && len(s.Queue) == 2
	})
	// as after any crash, until a person resumes
	if sent := st.made("prompt_async"); len(sent) > 0 {
		t.Errorf("sent before a person resumed: %q", sent)
	}
	natstest.Until(t, "a person resumes", func() bool {
		return st.bus.Services.Request(t.Context(), retry.Name, "resume", request.Retry{Ref: ref("ses_1"), By: "ada"},
			nil) == nil
	})
	st.until("ses_1", "all are answered", allAnswered)
	sent := st.made("prompt_async")
	if len(sent) != 3 || !strings.Contains(sent[1], `"more"`) || !strings.Contains(sent[2], `"and more"`) {
		t.Errorf("sent: %q", sent)
	}
}

// TestQueueNotTaken: a person aborts a message in OpenCode that the plugin has got back, so OpenCode does not store it.
// It is in the log, and is sent.
func TestQueueNotTaken(t *testing.T) {
	t.Parallel()
	st, address, _ := queued(t)
	held := st.types(address, "ses_1", "msg_2", "more")
	st.until("ses_1", "one waits", waiting(1))
	st.finish("ses_1", "msg_00000000000100000000000000", "call_1")
	got := <-held
	st.until("ses_1", "it is answered", allAnswered)
	if sent := st.made("prompt_async"); len(sent) != 1 || !strings.Contains(sent[0], got.place.Message) ||
		!strings.Contains(sent[0], got.place.Part) {
		t.Errorf("the plugin got %+v, sent: %q", got, sent)
	}
}

// TestQueueWithdrawn: a message that a person withdraws from the queue is refused in OpenCode.
func TestQueueWithdrawn(t *testing.T) {
	t.Parallel()
	st, address, _ := queued(t)
	held := st.types(address, "ses_1", "msg_2", "more")
	s := st.until("ses_1", "one waits", waiting(1))
	natstest.Until(t, "it is withdrawn", func() bool {
		return st.bus.Services.Request(t.Context(), compactions.Name, "withdraw", request.Withdraw{Ref: ref("ses_1"),
			Message: s.Queue[0].ID, By: "ada"}, nil) == nil
	})
	if got := <-held; got.status != http.StatusConflict || !strings.Contains(got.text, "withdrawn") {
		t.Errorf("%+v", got)
	}
}

// TestQueueNextBridge: the bridge is started again while the plugin holds a message, and sends it before the plugin
// asks again. The plugin gets the ids of the message that is there.
func TestQueueNextBridge(t *testing.T) {
	t.Parallel()
	st, address, stop := queued(t)
	first := st.types(address, "ses_1", "msg_2", "more")
	st.until("ses_1", "one waits", waiting(1))
	stop()
	<-first
	address, _ = st.plugged()
	st.finish("ses_1", "msg_00000000000100000000000000", "call_1")
	st.until("ses_1", "it is answered", allAnswered)
	got := <-st.types(address, "ses_1", "msg_2", "more")
	sent := st.made("prompt_async")
	if got.status != http.StatusOK || len(sent) != 1 || !strings.Contains(sent[0], got.place.Message) ||
		got.place.Mark.Turn == "" {
		t.Errorf("the plugin got %+v, sent: %q", got, sent)
	}
	if n := len(slices.DeleteFunc(st.kinds("ses_1"), func(k string) bool { return k != "message.accepted" })); n != 2 {
		t.Errorf("%d messages are in the log", n)
	}
}

// TestQueueHeldIsTriedAgain: the turn of a message that the plugin held fails, and is tried again. The plugin has given
// the message to OpenCode long ago, so the bridge sends it, also if a late request of the plugin still waits.
func TestQueueHeldIsTriedAgain(t *testing.T) {
	t.Parallel()
	st := driven(t, Drive{Queue: true, Retry: true})
	address, _ := st.plugged()
	st.session("ses_1")
	got := <-st.types(address, "ses_1", "msg_1", "do it")
	st.put("ses_1", object{"id": got.place.Message, "role": "user", "agent": "build",
		"model": object{"providerID": "mock", "modelID": "big"}, "time": object{"created": 1}})
	st.part("ses_1", got.place.Message, object{"id": got.place.Part, "type": "text", "text": "do it",
		"metadata": object{"holdfast": got.place.Mark}})
	st.status("ses_1", true)
	st.put("ses_1", assistant("a-1", got.place.Message, nil))
	st.fails("ses_1", "overloaded_error")
	st.until("ses_1", "a retry is scheduled", scheduled)
	natstest.Until(t, "the failed model call is removed", func() bool { return len(st.made("DELETE", "/a-1")) == 1 })
	_, end := st.follower.heldMessage(st.follower.serving.Load(), "ses_1", queuedPrefix+"msg_1")
	defer end()
	st.retryNow("ses_1")
	st.until("ses_1", "the turn completed", completed)
	if sent := st.made("prompt_async"); len(sent) != 1 || !strings.Contains(sent[0], got.place.Message) {
		t.Errorf("sent: %q", sent)
	}
}
