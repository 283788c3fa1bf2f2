//go:build agents

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/child"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
	"github.com/holdfast-dev/holdfast/test/service"
)

// config has a model of the test, and permissions that ask for rm.
const config = `{%s"autoupdate": false, "share": "disabled", "enabled_providers": ["mock"],
 "model": "mock/big", "small_model": "mock/big",
 "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock",
  "options": {"baseURL": %q, "apiKey": "none"},
  "models": {"big": {"name": "Big", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}},
 "permission": {"edit": "ask", "bash": {"*": "allow", "rm *": "ask"}}}`

// world is a cell, a model, a server of OpenCode, and a bridge between them.
type world struct {
	*testing.T
	bus    *bus.Bus
	nats   string
	model  *mockmodel.Model
	dir    string // what OpenCode works in
	home   string
	port   int
	server *child.Process
	client *http.Client
	env    []string // of OpenCode, beside what every test has
	pure   bool     // OpenCode loads no plugins
}

// newWorld has a bridge with these options.
func newWorld(t *testing.T, bridged ...string) *world {
	t.Helper()
	w := newServer(t)
	w.pure = true
	w.starts()
	w.bridges(w.url(), nil, bridged...)
	return w
}

// newServer is a world without a bridge, whose server is not started yet.
func newServer(t *testing.T) *world {
	t.Helper()
	s := natstest.Start(t)
	w := &world{T: t, bus: natstest.Bus(t, s), nats: s.URL(), model: mockmodel.Start(), dir: t.TempDir(),
		home: t.TempDir(), client: &http.Client{Timeout: 20 * time.Second}}
	t.Cleanup(w.model.Close)
	service.Run(t, w.bus)
	w.configures("")
	if out, err := exec.Command("git", "-C", w.dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	// commands that outlived their server end
	t.Cleanup(func() { w.write("go") })
	w.port = w.freePort()
	return w
}

// configures writes the configuration of OpenCode, which begins with some members of its own.
func (w *world) configures(more string) {
	w.Helper()
	w.ok(os.WriteFile(filepath.Join(w.dir, "opencode.json"), fmt.Appendf(nil, config, more, w.model.URL()), 0o600))
}

// freePort returns a port that no program has at the moment.
func (w *world) freePort() int {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.ok(err)
	w.ok(l.Close())
	return l.Addr().(*net.TCPAddr).Port
}

// bridges starts a bridge, and waits until it has marked the server.
func (w *world) bridges(url string, env []string, args ...string) *child.Process {
	w.Helper()
	cmd := exec.Command(binary, append([]string{"bridge", "opencode", "--url", url, "--nats", w.nats}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	bridge := w.process("the bridge", cmd)
	w.Cleanup(bridge.Kill)
	natstest.Until(w, "the bridge has marked the server", func() bool {
		return strings.Contains(bridge.Log(), "connected to OpenCode")
	})
	return bridge
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) write(name string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), nil, 0o600); err != nil {
		w.Error(err)
	}
}

func (w *world) url() string { return fmt.Sprintf("http://127.0.0.1:%d", w.port) }

// process starts a program that ends with this one. If the test fails, it prints the log.
func (w *world) process(name string, cmd *exec.Cmd) *child.Process {
	w.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c, err := child.Run(name, filepath.Join(w.TempDir(), "log"), cmd)
	w.ok(err)
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("the log of %s:\n%s", name, c.Tail())
		}
	})
	return c
}

// probeMax is how long a request to a server that boots may take: it never answers some of them.
const probeMax = 3 * time.Second

// starts starts the server on its port and its store. A port that another program has for a moment is tried again.
func (w *world) starts() {
	w.Helper()
	w.server = w.serve()
	natstest.Until(w, "OpenCode answers", func() bool {
		if w.server.Fallen() != nil {
			w.server = w.serve()
		}
		ctx, cancel := context.WithTimeout(w.Context(), probeMax)
		defer cancel()
		return w.tryIn(ctx, http.MethodGet, "/global/health", nil, nil) == nil
	})
}

// serve starts a process of the server: without an account, and without anything of the user's.
func (w *world) serve() *child.Process {
	w.Helper()
	cmd := exec.Command(opencode, "serve", "--hostname", "127.0.0.1", "--port", fmt.Sprint(w.port), "--print-logs")
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "OPENCODE_TEST_HOME=" + w.home,
		"TMPDIR=" + os.TempDir(),
		"XDG_DATA_HOME=" + w.home + "/data", "XDG_CONFIG_HOME=" + w.home + "/config",
		"XDG_CACHE_HOME=" + w.home + "/cache", "XDG_STATE_HOME=" + w.home + "/state",
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1",
		"OPENCODE_DISABLE_CLAUDE_CODE=1"}
	if w.pure {
		cmd.Env = append(cmd.Env, "OPENCODE_PURE=1")
	}
	cmd.Env = append(cmd.Env, w.env...)
	p := w.process("OpenCode", cmd)
	w.Cleanup(p.Kill)
	return p
}

// try sends a request to the server.
func (w *world) try(method, path string, in, out any) error {
	w.Helper()
	return w.tryIn(w.Context(), method, path, in, out)
}

func (w *world) tryIn(ctx context.Context, method, path string, in, out any) error {
	raw, err := json.Marshal(in)
	w.ok(err)
	req, err := http.NewRequestWithContext(ctx, method, w.url()+path, bytes.NewReader(raw))
	w.ok(err)
	req.Header.Set("Content-Type", "application/json")
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || out == nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s\n%s", method, path, res.Status, body)
	}
	return json.Unmarshal(body, out)
}

// message is a message as the server shows it.
type message struct {
	Info struct {
		ID      string `json:"id"`
		Role    string `json:"role"`
		Summary any    `json:"summary"`
		Time    struct {
			Completed int64 `json:"completed"`
		} `json:"time"`
	} `json:"info"`
	Parts []struct {
		Type     string `json:"type"`
		Tool     string `json:"tool"`
		Text     string `json:"text"`
		Metadata struct {
			Holdfast struct {
				Turn string `json:"turn"`
			} `json:"holdfast"`
		} `json:"metadata"`
		State struct {
			Status string `json:"status"`
			Output string `json:"output"`
			Error  string `json:"error"`
		} `json:"state"`
	} `json:"parts"`
}

// messages returns what the server has of a session.
func (w *world) messages(id string) (all []message) {
	w.Helper()
	natstest.Until(w, "the server shows the session", func() bool {
		return w.try(http.MethodGet, "/session/"+id+"/message", nil, &all) == nil
	})
	return all
}

// open returns what has no end in the store of the server: calls, messages, and requests of a compaction.
func (w *world) open(id string) (all []string) {
	w.Helper()
	for _, m := range w.messages(id) {
		if m.Info.Role == "assistant" && m.Info.Time.Completed == 0 {
			all = append(all, m.Info.ID)
		}
		for _, p := range m.Parts {
			if p.Type == "tool" && (p.State.Status == "running" || p.State.Status == "pending") {
				all = append(all, p.Tool)
			}
			if p.Type == "compaction" {
				all = append(all, p.Type)
			}
		}
	}
	return all
}

// count returns how many messages of a role a session has.
func (w *world) count(id, role string) (n int) {
	w.Helper()
	for _, m := range w.messages(id) {
		if m.Info.Role == role {
			n++
		}
	}
	return n
}

// begins makes a session and sends it a message, which names the script of the model.
func (w *world) begins(script string) (id string) {
	w.Helper()
	id = w.opens(script)
	w.postMessage(id, "Please. <<"+script+">>")
	return id
}

// opens makes a session.
func (w *world) opens(title string) (id string) {
	w.Helper()
	var s struct {
		ID string `json:"id"`
	}
	natstest.Until(w, "a session", func() bool {
		return w.try(http.MethodPost, "/session", map[string]string{"title": title}, &s) == nil
	})
	return s.ID
}

// postMessage sends a message to OpenCode, as its screens do.
func (w *world) postMessage(id, text string) {
	w.Helper()
	w.ok(w.try(http.MethodPost, "/session/"+id+"/prompt_async", map[string]any{
		"parts": []map[string]string{{"type": "text", "text": text}}}, nil))
}

// types runs a command of a person.
func (w *world) types(args ...string) {
	w.Helper()
	out, err := exec.Command(binary, append(args, "--nats", w.nats)...).CombinedOutput()
	if err != nil {
		w.Fatalf("holdfast %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func ref(id string) events.Ref { return events.Ref{Harness: "opencode", Session: id} }

// until waits for a state of a session in the log.
func (w *world) until(id, what string, ok func(*session.State) bool) *session.State {
	w.Helper()
	return natstest.UntilSession(w, w.bus, ref(id), what, ok)
}

// prompt waits until a session has an open prompt, and returns its id.
func (w *world) prompt(id string) (prompt string) {
	w.Helper()
	w.until(id, "a prompt waits", func(s *session.State) bool {
		all := s.PendingPrompts()
		if len(all) == 1 {
			prompt = all[0]
		}
		return len(all) == 1
	})
	return prompt
}

// saw reports whether the newest request of a script shows the model a text as the result of a call.
func (w *world) saw(script, text string) bool {
	all := w.model.Requests(script)
	if len(all) == 0 {
		return false
	}
	for _, m := range all[len(all)-1] {
		if m.Role == "tool" && strings.Contains(m.Text, text) {
			return true
		}
	}
	return false
}
