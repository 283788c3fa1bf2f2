//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
	"github.com/holdfast-dev/holdfast/test/service"
)

// acpAgent is a real agent that speaks the protocol.
type acpAgent struct {
	name    string
	pkg     string // of npm, with its version
	program string // in the package
	args    []string
	prepare func(w *workplace) (env []string)
	auth    string // the method of authenticate; "": none
	mode    string // that the editor sets
	shell   func(command string) mockmodel.Step
	// forgets: the model may not be shown a call that was cut off by the death of the agent, and makes it again then.
	forgets bool
	// stores are the files below the home folder in which the agent has its sessions, as a pattern; "": not known.
	// Claude writes the file a moment after it asked: killed before, it does not find the session again.
	stores string
	// byMinute: the file of a session has the minute of its start in its name. A process that loads the session in that
	// minute overwrites it.
	byMinute bool
}

var realOpenCode = acpAgent{name: "opencode", args: []string{"acp"}, mode: "build",
	prepare: func(w *workplace) []string {
		text := strings.Replace(fmt.Sprintf(config, "", w.model.URL()), `"rm *"`, `"sh *"`, 1)
		w.write(filepath.Join(w.dir, "opencode.json"), text)
		return []string{"OPENCODE_TEST_HOME=" + w.home, "XDG_DATA_HOME=" + w.home + "/data",
			"XDG_CONFIG_HOME=" + w.home + "/config", "XDG_CACHE_HOME=" + w.home + "/cache",
			"XDG_STATE_HOME=" + w.home + "/state", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
			"OPENCODE_DISABLE_EXTERNAL_SKILLS=1", "OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_PURE=1"}
	},
	shell: bash,
}

var realClaude = acpAgent{name: "claude-agent-acp", pkg: "@agentclientprotocol/claude-agent-acp@0.49.0",
	program: ".bin/claude-agent-acp", mode: "acceptEdits", forgets: true, stores: ".claude/projects/*/*.jsonl",
	prepare: func(w *workplace) []string {
		w.write(filepath.Join(w.home, ".claude.json"),
			`{"hasCompletedOnboarding":true,"customApiKeyResponses":{"approved":["mock-key"],"rejected":[]}}`)
		return []string{"ANTHROPIC_BASE_URL=" + w.model.Root(), "ANTHROPIC_API_KEY=sk-ant-mock-key",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
			"CLAUDE_CONFIG_DIR=" + w.home + "/.claude"}
	},
	shell: func(command string) mockmodel.Step {
		return mockmodel.Tool("Bash", object{"command": command, "description": "a command", "timeout": longest})
	},
}

// path returns the path of the agent's program.
func (r *acpAgent) path(t *testing.T) string {
	t.Helper()
	if r.pkg == "" {
		return opencode
	}
	path, err := fetch(r.pkg, strings.ReplaceAll(r.pkg[strings.LastIndexByte(r.pkg, '/')+1:], "@", "-"), r.program)
	if err != nil {
		t.Fatalf("the agent is needed, and is not here: %v", err)
	}
	return path
}

// workplace is where a person works with an agent: a cell, a model, an editor, and the tape of what the agent says and
// gets.
type workplace struct {
	*testing.T
	*editor
	agent   *acpAgent
	bus     *bus.Bus
	nats    string
	model   *mockmodel.Model
	dir     string // what the agent works in
	home    string
	tape    string
	harness string
	session string
}

// sit starts the editor and opens a session. Without a broker nothing listens on its address.
func sit(t *testing.T, agent *acpAgent, broker bool) *workplace {
	t.Helper()
	d := &workplace{T: t, agent: agent, model: mockmodel.Start(), dir: t.TempDir(), home: t.TempDir(),
		nats: "nats://127.0.0.1:1", harness: agent.name}
	t.Cleanup(d.model.Close)
	if broker {
		s := natstest.Start(t)
		d.nats, d.bus = s.URL(), natstest.Bus(t, s)
		service.Run(t, d.bus)
	}
	d.tape = filepath.Join(t.TempDir(), "tape")
	if out, err := exec.Command("git", "-C", d.dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	args := []string{"acp", "--nats", d.nats, "--harness", d.harness, "--linger", "0s"}
	if broker {
		// a busy machine stores in time, too
		args = append(args, "--require", "--wait", patience.String())
	}
	cmd := exec.Command(binary, append(append(args, "--", os.Args[0], agent.path(t)), agent.args...)...)
	cmd.Dir = d.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.home, "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8",
		"TERM=dumb", tapeVar + "=" + d.tape}, agent.prepare(d)...)
	d.editor = edit(t, cmd)
	t.Cleanup(func() {
		// commands that outlived their agent end
		d.write(filepath.Join(d.dir, "go"), "")
		d.release()
		if t.Failed() {
			for i, p := range d.processes() {
				t.Logf("process %d got\n%s\nand said\n%s", i+1, brief(p.got), brief(p.sent))
			}
		}
	})
	d.does("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": "test", "version": "0"},
		"clientCapabilities": object{"fs": object{"readTextFile": false, "writeTextFile": false}}}, nil)
	if agent.auth != "" {
		d.does("authenticate", object{"methodId": agent.auth}, nil)
	}
	var opened struct {
		Session string `json:"sessionId"`
	}
	d.does("session/new", object{"cwd": d.dir, "mcpServers": []any{}}, &opened)
	d.session = opened.Session
	d.does("session/set_mode", object{"sessionId": d.session, "modeId": agent.mode}, nil)
	if agent.byMinute && broker {
		began := time.Now().Truncate(time.Minute)
		natstest.Until(t, "the next minute", func() bool { return time.Now().Truncate(time.Minute).After(began) })
	}
	return d
}

func (d *workplace) write(path, text string) {
	d.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

// begins sends a message, which names the script of the model. It returns the id of the request.
func (d *workplace) begins(script string) (id string) {
	d.Helper()
	return d.calls("session/prompt", object{"sessionId": d.session,
		"prompt": []object{{"type": "text", "text": "Please. <<" + script + ">>"}}})
}

// asked waits for a permission request of an agent that has stored its session.
func (d *workplace) asked() wire {
	d.Helper()
	m := d.editor.asked()
	d.stored()
	return m
}

// stored waits until the agent has stored its session.
func (d *workplace) stored() {
	d.Helper()
	natstest.Until(d.T, "the agent stores its session", func() bool {
		files, err := filepath.Glob(filepath.Join(d.home, d.agent.stores))
		if err != nil {
			d.Fatal(err)
		}
		return len(files) > 0
	})
}

// hasRun is what a command that needs a permission prints.
const hasRun = "it has run"

// asksOf is a command that needs a permission. It leaves a line in the file for each time that it runs.
func asksOf(file string) string { return "sh -c 'echo " + hasRun + " | tee -a " + file + "'" }

// ran returns how often that command has run.
func (d *workplace) ran(file string) int {
	text, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), hasRun)
}

// hold keeps the next process of the agent from starting until release.
func (d *workplace) hold() { d.write(filepath.Join(filepath.Dir(d.tape), "hold"), "") }

func (d *workplace) release() { _ = os.Remove(filepath.Join(filepath.Dir(d.tape), "hold")) }

// process is what the tape has of one process of the agent.
type process struct {
	pid  int
	got  []string // lines that it got
	sent []string // lines that it said
}

func (d *workplace) processes() (all []process) {
	d.Helper()
	text, err := os.ReadFile(d.tape)
	if err != nil {
		d.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			// it is being written
			break
		}
		if pid, ok := strings.CutPrefix(line, begun); ok {
			n, err := strconv.Atoi(pid)
			if err != nil {
				d.Fatal(err)
			}
			all = append(all, process{pid: n})
			continue
		}
		p := &all[len(all)-1]
		if got, ok := strings.CutPrefix(line, toAgent); ok {
			p.got = append(p.got, got)
		} else {
			p.sent = append(p.sent, strings.TrimPrefix(line, toProxy))
		}
	}
	return all
}

// kill kills the newest process of the agent, and nothing else, and waits until the proxy knows that.
func (d *workplace) kill() {
	d.Helper()
	const notice = "it is started again"
	all, n := d.processes(), strings.Count(d.output(), notice)
	if err := syscall.Kill(all[len(all)-1].pid, syscall.SIGKILL); err != nil {
		d.Fatal(err)
	}
	natstest.Until(d, "the proxy knows of the death", func() bool { return strings.Count(d.output(), notice) > n })
}

// starts waits until so many processes of the agent have begun, and the newest one has got a request.
func (d *workplace) starts(n int, method string) {
	d.Helper()
	natstest.Until(d, fmt.Sprintf("process %d of the agent gets %s", n, method), func() bool {
		all := d.processes()
		return len(all) >= n && slices.ContainsFunc(all[n-1].got, func(line string) bool {
			return strings.Contains(line, method)
		})
	})
}

// state returns the session in the log.
func (d *workplace) state() *session.State {
	d.Helper()
	return natstest.Session(d, d.bus, events.Ref{Harness: d.harness, Session: d.session})
}

// until waits for a state of the session in the log.
func (d *workplace) until(what string, ok func(*session.State) bool) {
	d.Helper()
	natstest.UntilSession(d, d.bus, events.Ref{Harness: d.harness, Session: d.session}, what, ok)
}

// answers has a person grant a permission in a terminal.
func (d *workplace) answers(asked wire) {
	d.Helper()
	var prompt string
	d.until("a prompt waits", func(s *session.State) bool {
		for _, p := range s.PendingPrompts() {
			prompt = p
		}
		return prompt != ""
	})
	_, name := asked.once()
	out, err := exec.Command(binary, "answer", d.harness+"/"+d.session, prompt, name, "--nats", d.nats).CombinedOutput()
	if err != nil {
		d.Fatalf("holdfast answer: %v\n%s", err, out)
	}
	d.until("the answer", func(s *session.State) bool {
		return s.Prompts[prompt] == nil || s.Prompts[prompt].Status != session.Awaiting
	})
}

// ends waits for the end of a turn, and checks what the editor and the log have.
func (d *workplace) ends(request string, permissions int) {
	d.Helper()
	m := d.reply(request, "session/prompt")
	if m.Error != nil || !strings.Contains(string(m.Result), `"end_turn"`) {
		d.Errorf("the turn ends with %s, %+v", m.Result, m.Error)
	}
	d.until("the turn completed", completed)
	d.check(permissions)
}

// check checks what the editor has at the end, what each process of the agent got first, and that the log has nothing
// open.
func (d *workplace) check(permissions int) {
	d.Helper()
	d.whole(permissions)
	for i, p := range d.processes() {
		d.first(i, p)
	}
	if d.bus == nil {
		return
	}
	s := d.state()
	if len(s.Tools) > 0 || len(s.PendingPrompts()) > 0 || s.Turn != nil || s.Ignored.Count > 0 {
		d.Errorf("the log has %d calls and %d prompts open, turn %+v, ignored %+v", len(s.Tools),
			len(s.PendingPrompts()), s.Turn, s.Ignored)
	}
}

// first checks that a process of the agent has the session and its mode before it gets anything else.
func (d *workplace) first(n int, p process) {
	d.Helper()
	want := []string{"initialize"}
	if d.agent.auth != "" {
		want = append(want, "authenticate")
	}
	want = append(want, map[bool]string{true: "session/new", false: "session/load"}[n == 0])
	moded := false
	for i, line := range p.got {
		var m wire
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			d.Fatalf("%s: %v", line, err)
		}
		switch {
		case i < len(want) && m.Method == want[i]:
		case i >= len(want) && strings.HasPrefix(m.Method, "session/set_"):
			moded = moded || m.Params.Mode == d.agent.mode || string(m.Params.Value) == strconv.Quote(d.agent.mode)
		case i >= len(want) && moded:
			return
		default:
			d.Errorf("message %d for process %d of the agent is %.300s, want %v and its mode", i, n+1, line, want)
			return
		}
	}
}
