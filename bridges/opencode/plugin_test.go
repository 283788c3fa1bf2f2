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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		st.t.Fatal(err)
	}
	st.plugin = &Plugin{Listener: l, Token: pluginToken}
	return "http://" + l.Addr().String(), st.bridge()
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
	req.Header.Set("Expect", "100-continue") // the bridge says that it reads
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
	waits := make(chan int, 1) // a call that the log never has
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
	heard := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reads) }})
	go func() {
		status, _ := st.postsIn(heard, address+"/call", pluginToken, ask)
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
