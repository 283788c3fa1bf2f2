package opencode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// stillOpen returns the calls and messages of a session that have no end in the store.
func (f *fakeServer) stillOpen(session string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages[session] {
		times, _ := m.Info["time"].(object)
		if m.Info["role"] == "assistant" && times["completed"] == nil {
			all = append(all, m.Info["id"].(string))
		}
		for _, p := range m.Parts {
			if state, ok := p["state"].(object); ok && (state["status"] == "running" || state["status"] == "pending") {
				all = append(all, p["id"].(string))
			}
		}
	}
	return all
}

// crash leaves a session with a sub-agent, a session in the back-off of a retry, half a compaction, and a question.
func (st *stage) crash() {
	st.t.Helper()
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "task")
	st.run("ses_1-sub", "msg_2", "call_2", "bash")
	st.part("ses_1-sub", "a-msg_2", storedTool("p-call_2", "call_2", "bash", "running",
		object{"metadata": object{"output": "half of it"}, "time": object{"start": 7}}))
	st.session("ses_retry")
	st.put("ses_retry", object{"id": "msg_3", "role": "user", "time": object{"created": 1}})
	st.put("ses_retry", assistant("a-msg_3", "msg_3", nil))
	st.run("ses_compact", "msg_4", "call_4", "bash")
	st.finish("ses_compact", "msg_4", "call_4")
	st.put("ses_compact", object{"id": "msg_5", "role": "user", "time": object{"created": 1}})
	st.part("ses_compact", "msg_5", object{"id": "p-5", "type": "compaction"})
	st.put("ses_compact", assistant("a-msg_5", "msg_5", object{"summary": true}))
	st.run("ses_ask", "msg_6", "call_6", "question")
	st.question("ses_ask", "que_1", "msg_6", "call_6")
	st.until("ses_ask", "a question waits", awaits(1))
	st.kill()
	// no bridge has seen it
	st.session("ses_else")
	st.put("ses_else", object{"id": "msg_7", "role": "user", "time": object{"created": 1}})
	st.put("ses_else", assistant("a-msg_7", "msg_7", nil))
	st.part("ses_else", "a-msg_7", storedTool("p-call_7", "call_7", "bash", "running", object{}))
}

// marked reports whether the server has a mark.
func (f *fakeServer) marked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mcp) == 1
}

var broken = []string{"ses_1", "ses_1-sub", "ses_retry", "ses_compact", "ses_ask"}

// A server that comes back is repaired: calls and messages get an end, sub-agents before their parents, and half a
// compaction is removed. The model is not shown that a call which was cut off ended well.
func TestLiveRepair(t *testing.T) {
	st := newStage(t)
	st.crash()
	st.start()
	natstest.Until(t, "everything has an end", func() bool {
		return !slices.ContainsFunc(broken, func(id string) bool { return len(st.stillOpen(id)) > 0 })
	})
	if got := st.made("DELETE"); len(got) != 2 || !strings.Contains(got[0], "a-msg_5") ||
		!strings.Contains(got[1], "message/msg_5") {
		t.Errorf("removed: %q", got)
	}
	closed := st.made("PATCH")
	if len(closed) != 3 {
		t.Fatalf("closed: %q", closed)
	}
	child := slices.IndexFunc(closed, func(c string) bool { return strings.Contains(c, "ses_1-sub/") })
	parent := slices.IndexFunc(closed, func(c string) bool { return strings.Contains(c, "session/ses_1/") })
	if child < 0 || parent < child {
		t.Errorf("the parent was repaired before its child: %q", closed)
	}
	if strings.Contains(closed[child], "half of it") || !strings.Contains(closed[child], `"interrupted":true`) ||
		!strings.Contains(closed[child], repairCall) || !strings.Contains(closed[child], `"start":7`) {
		t.Errorf("the call of the child: %s", closed[child])
	}
	if ask := st.made("PATCH", "ses_ask"); len(ask) != 1 || !strings.Contains(ask[0], repairQuestion) {
		t.Errorf("the question's call: %q", ask)
	}
	if got := st.stillOpen("ses_else"); len(got) == 0 {
		t.Error("a session that no bridge has seen was repaired: another process of OpenCode may run it")
	}
	// the question waits in Holdfast all the same
	st.until("ses_ask", "the question waits", func(s *fold.State) bool {
		return !s.Owned && len(s.PendingPrompts()) == 1
	})
}

// A call that waited for a permission, and that no process ran, is not said to have had an effect. A call that ran may
// ask later: then it may.
func TestLiveRepairOfACallThatNeverRan(t *testing.T) {
	st := newStage(t)
	st.bridge()
	for i, metadata := range []object{nil, {"output": ""}} {
		session, message, call := fmt.Sprintf("ses_%d", i), fmt.Sprintf("msg_%d", i), fmt.Sprintf("call_%d", i)
		st.run(session, message, call, "bash")
		st.permission(session, "per_"+session, message, call)
		if metadata != nil {
			st.part(session, "a-"+message, storedTool("p-"+call, call, "bash", "running", object{"metadata": metadata}))
		}
		st.until(session, "a permission waits", awaits(1))
	}
	st.run("ses_2", "msg_2", "call_2", "bash")
	st.until("ses_2", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	st.kill()
	st.start()
	natstest.Until(t, "all are repaired", func() bool { return len(st.made("PATCH")) == 3 })
	for session, want := range map[string]string{"ses_0": repairWaited, "ses_1": repairCall, "ses_2": repairCall} {
		if got := st.made("PATCH", "session/"+session+"/", want); len(got) != 1 {
			t.Errorf("%s: %q", session, st.made("PATCH", session))
		}
	}
}

// A session that the new process runs is left alone, and so are all sessions of a process that only lost its
// connection.
func TestLiveRepairLeavesTheLivingAlone(t *testing.T) {
	st := newStage(t)
	st.crash()
	st.set(func() { st.down, st.busy["ses_1-sub"] = false, true })
	natstest.Until(t, "the others are repaired", func() bool { return len(st.stillOpen("ses_1")) == 0 })
	natstest.Until(t, "the mark is set", st.marked)
	if got := st.stillOpen("ses_1-sub"); len(got) != 2 {
		t.Errorf("of a session that runs, only %v is open", got)
	}
	before, streams := len(st.made("PATCH")), st.connections()
	// idle, and its last events are about to come
	st.set(func() { delete(st.busy, "ses_1-sub") })
	st.cut()
	natstest.Until(t, "connected again", func() bool { return st.connections() > streams })
	st.run("ses_new", "msg_9", "call_9", "bash")
	st.until("ses_new", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	if got := st.made("PATCH"); len(got) != before {
		t.Errorf("a living process was repaired: %q", got[before:])
	}
}

// A server that refuses an endpoint is asked once; everything else is repaired.
func TestLiveRepairRefused(t *testing.T) {
	for name, status := range map[string]int{"not found": http.StatusNotFound, "a web page": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.crash()
			st.set(func() { st.down, st.refuse["/sync/replay"] = false, status })
			natstest.Until(t, "the mark is set", st.marked)
			if got := st.made("/sync/replay"); len(got) != 1 {
				t.Errorf("asked %d times", len(got))
			}
			if got := st.made("PATCH"); len(got) != 3 {
				t.Errorf("closed: %q", got)
			}
		})
	}
}

func TestHalfCompaction(t *testing.T) {
	user := `{"info":{"id":"m1","role":"user"},"parts":[{"type":"compaction"}]}`
	summary := func(more string) string {
		return `{"info":{"id":"s1","role":"assistant","parentID":"m1","summary":true,"time":{` + more + `}},"parts":[]}`
	}
	other := `{"info":{"id":"m2","role":"user"},"parts":[{"type":"text","text":"go"}]}`
	answer := `{"info":{"id":"a2","role":"assistant","parentID":"m2","time":{}},"parts":[]}`
	for _, x := range []struct {
		name     string
		messages []string
		want     []string
	}{
		{"none", []string{other, answer}, nil},
		{"cut off", []string{other, answer, user, summary("")}, []string{"s1", "m1"}},
		{"cut off before the summary", []string{user}, []string{"m1"}},
		{"ended", []string{user, summary(`"completed":2`)}, nil},
		{"a person wrote more", []string{user, summary(""), other, answer}, []string{"s1", "m1"}},
	} {
		var n Snapshot
		for _, m := range x.messages {
			var v Message
			if err := json.Unmarshal([]byte(m), &v); err != nil {
				t.Fatal(err)
			}
			n.Messages = append(n.Messages, v)
		}
		if got := halfCompaction(decodeMessages(&n)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// The event of a new connection is no restart of a living server.
func TestLiveTranslatorConnected(t *testing.T) {
	tr := NewLiveTranslator()
	for i, e := range []string{`{"type":"session.created","properties":{"sessionID":"s1","info":{"id":"s1"}}}`,
		`{"type":"server.connected","properties":{}}`} {
		for _, s := range tr.Translate(Record{Event: json.RawMessage(e)}) {
			if s.Restart {
				t.Errorf("event %d is a restart", i)
			}
		}
	}
	if tr.Report().Restarts != 0 {
		t.Error("a restart was counted")
	}
}
