package opencode

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// pluginToken is the token of the bridges of a stage.
const pluginToken = "a secret of the test" //nolint:gosec // no credential of anything

// plugged runs a bridge that the plugin can ask, and returns where.
func (st *stage) plugged() (address string, stop func()) {
	st.t.Helper()
	address = st.listens()
	return address, st.bridge()
}

// listens is where the plugin can ask the next bridge.
func (st *stage) listens() (address string) {
	st.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		st.t.Fatal(err)
	}
	st.plugin = &Plugin{Listener: l, Token: pluginToken}
	return "http://" + l.Addr().String()
}

// marks returns the marks of the server.
func (st *stage) marks() []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	names := []string{}
	for name := range st.mcp {
		names = append(names, name)
	}
	return names
}

// posts sends a request as the plugin does, and returns the status and the text of the reply.
func (st *stage) posts(url, token string, body any) (status int, text string) {
	return st.postsIn(st.t.Context(), url, token, body)
}

func (st *stage) postsIn(ctx context.Context, url, token string, body any) (status int, text string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(encode(body)))
	if err != nil {
		st.t.Error(err)
		return 0, ""
	}
	// the bridge says that it reads
	req.Header.Set("Expect", "100-continue")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(raw)
}

func asksFor(session, call string, marks []string) object {
	return object{"session": session, "call": call, "marks": marks}
}

// TestPluginStored: the plugin asks before the bridge has heard of a call. The reply comes when the log has its begin.
// The plugin may name the call or its part.
func TestPluginStored(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	address, _ := st.plugged()
	st.asks("ses_1", "msg_1")
	for _, id := range []string{"call_1", "p-call_1"} {
		replies := make(chan int, 1)
		go func() {
			status, _ := st.posts(address+"/call", pluginToken, asksFor("ses_1", id, st.marks()))
			replies <- status
		}()
		if id == "call_1" {
			st.until("ses_1", "the turn runs", func(s *fold.State) bool { return s.Turn != nil })
			if len(replies) > 0 {
				t.Fatal("a call may run that is not stored")
			}
			st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "bash", "running", nil))
		}
		if status := <-replies; status != http.StatusNoContent {
			t.Fatalf("%s: status %d", id, status)
		}
		if s := natstest.Session(t, st.bus, ref("ses_1")); s.Tools["call_1"] == nil {
			t.Errorf("%s: it may run, and the log has %v", id, s.Tools)
		}
	}
}

// TestPluginFenced: a process that the bridge does not follow, or does not follow yet, runs nothing.
func TestPluginFenced(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	address, _ := st.plugged()
	old := st.marks()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	if status, text := st.posts(address+"/call", pluginToken, asksFor("ses_1", "call_1", nil)); status !=
		http.StatusServiceUnavailable || !strings.Contains(text, "does not follow this process of OpenCode yet") {
		t.Errorf("without a mark: %d, %s", status, text)
	}
	// a call that the log never has
	waits := make(chan int, 1)
	go func() {
		status, _ := st.posts(address+"/call", pluginToken, asksFor("ses_1", "call_9", old))
		waits <- status
	}()
	st.kill()
	st.start()
	natstest.Until(t, "the next process is marked", func() bool {
		now := st.marks()
		return len(now) == 1 && now[0] != old[0]
	})
	st.until("ses_1", "the turn is interrupted", func(s *fold.State) bool { return s.Turn == nil })
	if status := <-waits; status != http.StatusServiceUnavailable {
		t.Errorf("a request of the process that ended: %d", status)
	}
	natstest.Until(t, "the old process is fenced", func() bool {
		status, text := st.posts(address+"/call", pluginToken, asksFor("ses_1", "call_1", old))
		return status == http.StatusConflict && strings.Contains(text, "another process")
	})
}

// TestPluginOver: recovery closed a call while the bridge slept, before the call ran. It does not run then.
func TestPluginOver(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	address, _ := st.plugged()
	st.run("ses_1", "msg_1", "call_1", "bash")
	s := st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	st.recover("ses_1", events.ToolInterrupted{Call: "call_1", Reason: events.ReasonOwnerLost},
		events.TurnInterrupted{Turn: s.Turn.ID, Reason: events.ReasonOwnerLost})
	status, text := st.posts(address+"/call", pluginToken, asksFor("ses_1", "call_1", st.marks()))
	if status != http.StatusConflict || !strings.Contains(text, "closed before it ran") {
		t.Errorf("%d, %s", status, text)
	}
	st.part("ses_1", "a-msg_1", storedTool("p-call_2", "call_2", "bash", "running", nil))
	if status, text := st.posts(address+"/call", pluginToken, asksFor("ses_1", "call_2", st.marks())); status !=
		http.StatusNoContent {
		t.Errorf("the next call of the run: %d, %s", status, text)
	}
}

// step begins the model call of a run.
func (st *stage) step(session, message string) {
	st.part(session, "a-"+message, object{"id": "s-" + message, "type": "step-start"})
}

// TestPluginMissing: the bridge warns once of a process of OpenCode whose plugin does not ask.
func TestPluginMissing(t *testing.T) {
	t.Parallel()
	const ran, took = "its plugin did not ask", "its plugin did not hold"
	call := func(st *stage, id, status string, metadata object) {
		p := storedTool("p-"+id, id, "bash", status, object{"output": "x", "error": "x"})
		p["metadata"] = metadata
		st.part("ses_1", "a-msg_1", p)
	}
	for name, x := range map[string]struct {
		queue bool
		runs  func(st *stage, address string)
		want  map[string]int
	}{
		"two calls": {false, func(st *stage, _ string) {
			st.step("ses_1", "msg_1")
			for _, id := range []string{"call_1", "call_2"} {
				call(st, id, "running", nil)
				call(st, id, "completed", nil)
			}
		}, map[string]int{ran: 1, took: 0}},
		"it asks": {false, func(st *stage, address string) {
			st.step("ses_1", "msg_1")
			call(st, "call_1", "running", nil)
			if status, text := st.posts(address+"/call", pluginToken, asksFor("ses_1", "call_1", st.marks())); status !=
				http.StatusNoContent {
				st.t.Errorf("%d, %s", status, text)
			}
			call(st, "call_1", "completed", nil)
		}, map[string]int{ran: 0, took: 0}},
		"a call that failed": {false, func(st *stage, _ string) {
			st.step("ses_1", "msg_1")
			call(st, "call_1", "running", nil)
			call(st, "call_1", "error", nil)
		}, map[string]int{ran: 0, took: 0}},
		"a command of a person": {false, func(st *stage, _ string) {
			call(st, "call_1", "running", nil)
			call(st, "call_1", "completed", nil)
		}, map[string]int{ran: 0, took: 0}},
		"a call of the provider": {false, func(st *stage, _ string) {
			st.step("ses_1", "msg_1")
			call(st, "call_1", "running", object{"providerExecuted": true})
			call(st, "call_1", "completed", object{"providerExecuted": true})
		}, map[string]int{ran: 0, took: 0}},
		"a message": {true, func(*stage, string) {}, map[string]int{ran: 0, took: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t)
			st.drive = Drive{Queue: x.queue}
			address, log := st.listens(), st.logs()
			natstest.Until(t, "the bridge is connected", func() bool { return log.has("connected to OpenCode") })
			st.asks("ses_1", "msg_1")
			x.runs(st, address)
			st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": "stop",
				"time": object{"created": 1, "completed": 2}}))
			st.status("ses_1", false)
			st.until("ses_1", "the turn completed", completed)
			for text, want := range x.want {
				if got := log.count(text); got != want {
					t.Errorf("%q is there %d times, want %d", text, got, want)
				}
			}
		})
	}
}

// TestPluginHoldsOthers: messages that no plugin holds, and a plugin that holds messages, are no reason for a warning.
func TestPluginHoldsOthers(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]func(st *stage, address string) (session string){
		"of a sub-agent": func(st *stage, _ string) string {
			st.asks("ses_1-sub", "msg_1")
			return "ses_1-sub"
		},
		"of OpenCode itself": func(st *stage, _ string) string {
			st.session("ses_1")
			st.put("ses_1", object{"id": "msg_1", "role": "user", "time": object{"created": 1}})
			st.part("ses_1", "msg_1", object{"id": "p", "type": "text", "text": "A person ran it.", "synthetic": true})
			st.status("ses_1", true)
			st.put("ses_1", assistant("a-msg_1", "msg_1", nil))
			return "ses_1"
		},
		"behind one that the plugin held": func(st *stage, address string) string {
			st.session("ses_2")
			if got := <-st.types(address, "ses_2", "msg_0", "more"); got.status != http.StatusOK {
				st.t.Errorf("%+v", got)
			}
			st.asks("ses_1", "msg_1")
			return "ses_1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t)
			st.drive = Drive{Queue: true}
			address, log := st.listens(), st.logs()
			natstest.Until(t, "the bridge is connected", func() bool { return log.has("connected to OpenCode") })
			id := runs(st, address)
			st.until(id, "the turn runs", func(s *fold.State) bool { return s.Turn != nil })
			if got := log.count("its plugin did not"); got != 0 {
				t.Errorf("warned %d times", got)
			}
		})
	}
}

// TestPluginOfAnotherToken: the bridge warns once of a plugin that has another secret.
func TestPluginOfAnotherToken(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	address, log := st.listens(), st.logs()
	for range 2 {
		if status, _ := st.posts(address+"/call", "guess", object{}); status != http.StatusUnauthorized {
			t.Errorf("status %d", status)
		}
	}
	if got := log.count("another token"); got != 1 {
		t.Errorf("warned %d times", got)
	}
}

// TestPluginRefuses: requests that are not the plugin's.
func TestPluginRefuses(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	address, stop := st.plugged()
	ask := asksFor("ses_1", "call_1", st.marks())
	for name, x := range map[string]struct {
		path, token string
		body        any
		status      int
	}{
		"another token": {"/call", "guess", ask, http.StatusUnauthorized},
		"no token":      {"/call", "", ask, http.StatusUnauthorized},
		"another path":  {"/calls", pluginToken, ask, http.StatusNotFound},
		"no call":       {"/call", pluginToken, object{"session": "ses_1"}, http.StatusBadRequest},
		"no session":    {"/call", pluginToken, object{"call": "call_1"}, http.StatusBadRequest},
		"a list":        {"/call", pluginToken, []int{1}, http.StatusBadRequest},
		"a megabyte": {"/call", pluginToken, asksFor("ses_1", strings.Repeat("x", pluginBytesMax), nil),
			http.StatusBadRequest},
		"another's marks": {"/call", pluginToken, asksFor("ses_1", "call_1", []string{"x"}),
			http.StatusServiceUnavailable},
	} {
		if status, text := st.posts(address+x.path, x.token, x.body); status != x.status {
			t.Errorf("%s: %d, %s", name, status, text)
		}
	}
	waits, reads := make(chan int, 1), make(chan struct{})
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reads) }})
	go func() {
		status, _ := st.postsIn(traced, address+"/call", pluginToken, ask)
		waits <- status
	}()
	<-reads
	stop()
	if status := <-waits; status != http.StatusServiceUnavailable {
		t.Errorf("when the bridge ends: %d", status)
	}
	if status, _ := st.posts(address+"/call", pluginToken, ask); status != 0 {
		t.Errorf("after the bridge has ended: %d", status)
	}
}
