//go:build agents

package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const (
	patience = 2 * time.Minute // for anything that a real agent must do
	logMax   = 16 << 10        // of what it has written, for an error
)

// wire is a message of the protocol.
type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Session string          `json:"sessionId"`
		Mode    string          `json:"modeId"`
		Value   json.RawMessage `json:"value"` // of an option, which may be the mode
		Update  struct {
			Kind   string `json:"sessionUpdate"`
			Call   string `json:"toolCallId"`
			Status string `json:"status"`
		} `json:"update"`
		Call struct {
			ID    string          `json:"toolCallId"`
			Title string          `json:"title"`
			Input json.RawMessage `json:"rawInput"`
		} `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"options"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// editor is the client of the protocol, which the test plays: it runs `holdfast acp`.
type editor struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser

	mu     sync.Mutex
	n      int    // requests so far
	allows bool   // each permission is granted at once
	got    []wire // all lines
	raw    []string
	sent   []string
	over   bool
	log    strings.Builder
}

// Write keeps what the proxy and the agent write to their standard error.
func (e *editor) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Write(b)
}

func (e *editor) output() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.String()
}

// edit starts an editor's agent.
func edit(t *testing.T, cmd *exec.Cmd) *editor {
	t.Helper()
	e := &editor{T: t, cmd: cmd}
	cmd.Stderr, cmd.SysProcAttr = e, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, end := io.Pipe()
	cmd.Stdout = end
	var err error
	if e.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go e.read(out)
	ended := make(chan struct{})
	go func() {
		// the exit status is in the state
		_ = cmd.Wait()
		_ = end.Close()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = e.in.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-ended
			t.Error("the program does not end")
		}
		if t.Failed() {
			t.Logf("the editor got\n%s", e.shown())
			text := e.output()
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), text[max(0, len(text)-logMax):])
		}
	})
	return e
}

// read takes the lines in, and answers the requests that an editor answers by itself.
func (e *editor) read(out io.Reader) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			e.mu.Lock()
			e.over = true
			e.mu.Unlock()
			return
		}
		var m wire
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			e.Errorf("no JSON: %q", line)
		}
		e.mu.Lock()
		e.got, e.raw = append(e.got, m), append(e.raw, strings.TrimSuffix(line, "\n"))
		allows := e.allows
		e.mu.Unlock()
		switch {
		case m.Method == "" || m.ID == nil:
		case m.Method == "session/request_permission":
			if allows {
				e.grants(&m)
			}
		default:
			e.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		}
	}
}

func (e *editor) send(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	e.mu.Lock()
	e.sent = append(e.sent, line)
	e.mu.Unlock()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		e.Errorf("the proxy does not read: %v", err)
	}
}

// once returns the option that allows a call once.
func (m *wire) once() (id, name string) {
	for _, o := range m.Params.Options {
		if o.Kind == "allow_once" {
			return o.ID, o.Name
		}
	}
	return "", ""
}

func (e *editor) grants(m *wire) {
	id, _ := m.once()
	e.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, m.ID, id)
}

// calls sends a request, and returns its id.
func (e *editor) calls(method string, params any) (id string) {
	e.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		e.Fatal(err)
	}
	e.mu.Lock()
	e.n++
	id = fmt.Sprintf(`"e%d"`, e.n)
	e.mu.Unlock()
	e.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, raw)
	return id
}

// does sends a request, and returns its result.
func (e *editor) does(method string, params any, to any) {
	e.Helper()
	m := e.reply(e.calls(method, params), method)
	if m.Error != nil {
		e.Fatalf("%s: %s %s", method, m.Error.Message, m.Error.Data)
	}
	if to != nil {
		if err := json.Unmarshal(m.Result, to); err != nil {
			e.Fatalf("%s: %v", method, err)
		}
	}
}

// reply waits for the reply to a request.
func (e *editor) reply(id, what string) wire {
	e.Helper()
	return e.gets("the reply to "+what, func(m *wire) bool { return m.Method == "" && string(m.ID) == id })
}

// gets waits for a line, and returns the first one.
func (e *editor) gets(what string, is func(*wire) bool) (found wire) {
	e.Helper()
	natstest.Until(e, what, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		i := slices.IndexFunc(e.got, func(m wire) bool { return is(&m) })
		if i >= 0 {
			found = e.got[i]
		} else if e.over {
			e.Fatalf("the program has ended before %s", what)
		}
		return i >= 0
	})
	return found
}

// asked waits for a permission request.
func (e *editor) asked() wire {
	e.Helper()
	return e.gets("a permission request", func(m *wire) bool { return m.Method == "session/request_permission" })
}

// shown returns the lines that the editor got.
func (e *editor) shown() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return brief(e.raw)
}

// brief returns lines, cut.
func brief(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "%.400s\n", line)
	}
	return b.String()
}

// whole checks what the editor has at the end: one reply to each request, so many permission requests, and no call that
// stays open.
func (e *editor) whole(permissions int) {
	e.Helper()
	e.mu.Lock()
	n := e.n
	replies, calls, asked := map[string]int{}, map[string]string{}, 0
	for i := range e.got {
		m := &e.got[i]
		switch {
		case m.Method == "":
			replies[string(m.ID)]++
		case m.Method == "session/request_permission":
			asked++
			if _, ok := calls[m.Params.Call.ID]; !ok {
				calls[m.Params.Call.ID] = "asked"
			}
		case m.Params.Update.Call != "":
			if status := m.Params.Update.Status; status != "" || calls[m.Params.Update.Call] == "" {
				calls[m.Params.Update.Call] = status
			}
		}
	}
	e.mu.Unlock()
	for i := range n {
		if id := fmt.Sprintf(`"e%d"`, i+1); replies[id] != 1 {
			e.Errorf("request %s has %d replies", id, replies[id])
		}
	}
	if len(replies) != n {
		e.Errorf("%d requests have replies: %v", n, replies)
	}
	if asked != permissions {
		e.Errorf("%d permission requests, want %d", asked, permissions)
	}
	for id, status := range calls {
		if status != "completed" && status != "failed" {
			e.Errorf("the call %s stays %q", id, status)
		}
	}
}
