//go:build languages

package languages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/service"
)

var shop = events.Ref{Harness: "deployer", Session: "shop"}

// script notes that it runs, and ends when the file "go" is there.
const script = "#!/bin/sh\necho \"$1\" >> ran\nuntil [ -e go ]; do sleep 0.1; done\necho deployed\n"

// world is a broker with all services, and a directory with a command.
type world struct {
	*testing.T
	ctx     context.Context
	url     string
	bus     *bus.Bus
	dir     string
	program string // holdfast
	command []string
}

func newWorld(t *testing.T, program string, command []string) *world {
	t.Helper()
	server := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, url: server.URL(), bus: natstest.Bus(t, server), dir: t.TempDir(), program: program,
		command: command}
	service.Run(t, w.bus)
	w.ok(os.WriteFile(filepath.Join(w.dir, "deploy.sh"), []byte(script), 0o700))
	// a command that outlived its process ends
	t.Cleanup(w.finish)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// finish lets the command end.
func (w *world) finish() {
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		w.Error(err)
	}
}

// agent is a process of the example, with its sidecar.
type agent struct {
	w       *world
	cmd     *exec.Cmd
	out     *os.File
	sidecar int
	over    bool
}

// starts runs the example.
func (w *world) starts() *agent {
	w.Helper()
	cmd := exec.Command(w.command[0], w.command[1:]...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOLDFAST="+w.program, "HOLDFAST_NATS="+w.url)
	out, err := os.OpenFile(filepath.Join(w.dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.ok(err)
	cmd.Stdout, cmd.Stderr = out, out
	// as a terminal starts it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.ok(cmd.Start())
	a := &agent{w: w, cmd: cmd, out: out}
	w.Cleanup(func() { a.dies("agent") })
	natstest.Until(w, "the sidecar to run", func() bool {
		a.sidecar = sidecarOf(cmd.Process.Pid)
		return a.sidecar != 0
	})
	return a
}

// sidecarOf returns the sidecar that a process has started; 0 for none.
func sidecarOf(pid int) int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0
	}
	for _, list := range lists {
		body, err := os.ReadFile(list)
		if err != nil {
			// the thread has ended
			continue
		}
		for _, child := range strings.Fields(string(body)) {
			line, err := os.ReadFile("/proc/" + child + "/cmdline")
			if err != nil || !strings.Contains(string(line), "\x00sidecar\x00") {
				continue
			}
			if n, err := strconv.Atoi(child); err == nil {
				return n
			}
		}
	}
	return 0
}

// dies kills the agent or its sidecar. The other one ends by itself: the agent after the command that it runs.
func (a *agent) dies(which string) {
	if a.over {
		return
	}
	a.over = true
	pid := a.cmd.Process.Pid
	if which == "sidecar" {
		pid = a.sidecar
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		a.w.Error(err)
	}
	if which == "sidecar" {
		a.w.finish()
	}
	ended := make(chan error, 1)
	go func() { ended <- a.cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			a.w.Error("the agent ended without an error")
		}
	case <-time.After(time.Minute):
		a.w.Errorf("the agent lives after the %s was killed", which)
		if err := a.cmd.Process.Kill(); err != nil {
			a.w.Error(err)
		}
	}
	natstest.Until(a.w, "the sidecar to end", func() bool { return !runs(a.sidecar) })
	if err := a.out.Close(); err != nil {
		a.w.Error(err)
	}
}

// runs reports whether a process runs.
func runs(pid int) bool {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(body), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func (w *world) until(what string, ok func(*session.State) bool) *session.State {
	w.Helper()
	return natstest.UntilSession(w, w.bus, shop, what, ok)
}

// prompt waits until a question waits for a person, and returns its id.
func (w *world) prompt(name string) string {
	w.Helper()
	st := w.until("question "+name, func(st *session.State) bool { return strings.HasPrefix(st.BlockedBy(), name+"-") })
	return st.BlockedBy()
}

func (w *world) answers(name string, answer events.Answer) {
	w.Helper()
	w.ok(w.bus.Services.Request(w.ctx, "ledger", "answer", map[string]any{"harness": shop.Harness,
		"session": shop.Session, "prompt": w.prompt(name), "by": "ada", "answers": []events.Answer{answer}}, nil))
}

// ran returns what the command noted.
func (w *world) ran() string {
	body, err := os.ReadFile(filepath.Join(w.dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return string(body)
}

// killsAtEveryStep kills the agent or its sidecar at one step, or at all, and starts it again: each question is asked
// once, the command runs once, with the answer, and the turn completes.
func killsAtEveryStep(t *testing.T, program string, command []string) {
	for _, c := range []struct{ at, which string }{{"none", ""}, {"asked", "agent"}, {"answered while dead", "sidecar"},
		{"permission", "agent"}, {"permitted while dead", "agent"}, {"command", "agent"}, {"command", "sidecar"},
		{"all", "agent"}} {
		t.Run(c.at+" "+c.which, func(t *testing.T) {
			w := newWorld(t, program, command)
			a := w.starts()
			reaches := func(step string, do func()) {
				killed := c.at == step || c.at == "all"
				if killed {
					a.dies(c.which)
				}
				do()
				if killed {
					a = w.starts()
				}
			}
			nothing := func() {}
			w.until("the session", func(st *session.State) bool { return st.Opened() })
			w.ok(w.bus.Services.Request(w.ctx, "compaction", "send", map[string]any{"harness": shop.Harness,
				"session": shop.Session, "message": "m1", "content": "deploy", "by": "ada"}, nil))
			w.prompt("which-env")
			reaches("asked", nothing)
			reaches("answered while dead", func() {
				w.answers("which-env", events.Answer{Question: "env", Selected: []string{"staging"}})
			})
			w.prompt("may-deploy")
			reaches("permission", nothing)
			reaches("permitted while dead", func() {
				w.answers("may-deploy", events.Answer{Question: events.PermissionQuestion, Selected: []string{"once"}})
			})
			natstest.Until(t, "the command to run", func() bool { return w.ran() != "" })
			reaches("command", nothing)
			asked := 2
			if c.at == "command" || c.at == "all" {
				w.answers("is-it-up", events.Answer{Question: "up", Text: "yes"})
				asked = 3
			}
			w.finish()
			st := w.until("the end", func(st *session.State) bool {
				return st.LastTurn != nil && st.Turn == nil && st.Pending.Turn == nil
			})
			w.wantOnce(st, asked)
		})
	}
}

// testWhatIsMissing: without a broker, or without holdfast, an example ends with one sentence that says what to start,
// or to install, and no trace of calls.
func testWhatIsMissing(t *testing.T, program string, command []string) {
	const nowhere = "nats://127.0.0.1:1"
	for what, c := range map[string]struct{ program, want string }{
		"broker": {program, "no broker answers at " + nowhere +
			": nothing listens there: start one with `holdfast up`, or give the address of another one"},
		"holdfast": {filepath.Join(t.TempDir(), "holdfast"), "install holdfast, or set HOLDFAST to it"},
	} {
		t.Run("no "+what, func(t *testing.T) {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "HOLDFAST="+c.program, "HOLDFAST_NATS="+nowhere, "HOLDFAST_TIMEOUT=1s")
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit status 1", err)
			}
			var lines []string
			for line := range strings.Lines(string(out)) {
				// of the sidecar, while it tries
				if !strings.Contains(line, "level=WARN") {
					lines = append(lines, strings.TrimSpace(line))
				}
			}
			if len(lines) != 1 || !strings.HasSuffix(lines[0], c.want) {
				t.Errorf("it printed\n%s\nwant one line, ... %s", out, c.want)
			}
		})
	}
}

// stopsAtOnce: Ctrl-C ends an example as a shell expects it, with a sentence at most, and its session is left.
func stopsAtOnce(t *testing.T, program string, command []string) {
	t.Run("Ctrl-C", func(t *testing.T) {
		w := newWorld(t, program, command)
		a := w.starts()
		w.until("the session", func(st *session.State) bool { return st.Opened() })
		a.over = true
		// the terminal sends it to the sidecar, too
		w.ok(syscall.Kill(-a.cmd.Process.Pid, syscall.SIGINT))
		err := a.cmd.Wait()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatalf("it ended with %v", err)
		}
		status, ok := exit.Sys().(syscall.WaitStatus)
		if code := exit.ExitCode(); code != 128+int(syscall.SIGINT) && !(ok && status.Signal() == syscall.SIGINT) {
			t.Errorf("it ended with %v, want exit status 130, or the signal", err)
		}
		natstest.Until(t, "the sidecar to end", func() bool { return !runs(a.sidecar) })
		w.ok(a.out.Close())
		output, err := os.ReadFile(filepath.Join(w.dir, "out"))
		w.ok(err)
		if text := string(output); strings.Count(text, "\n") > 1 || text != "" && !strings.HasPrefix(text, "Stopped.") {
			t.Errorf("it said %s", text)
		}
	})
}

// wantOnce checks what has become of it.
func (w *world) wantOnce(st *session.State, questions int) {
	w.Helper()
	if l := st.LastTurn; l.Outcome != session.OutcomeCompleted || len(st.Prompts) > 0 {
		out, err := os.ReadFile(filepath.Join(w.dir, "out"))
		w.Errorf("%+v %+v, prompts %v\n%s %v", l, l.Error, st.Prompts, out, err)
	}
	if w.ran() != "staging\n" {
		w.Errorf("the command ran as %q", w.ran())
	}
	cs, err := w.bus.Log.Read(w.ctx, shop, 1)
	w.ok(err)
	asked := map[string]bool{}
	for i := range cs {
		for n := range cs[i].Events {
			if f, ok := cs[i].Events[n].Fact.(events.PromptRequested); ok {
				asked[f.Prompt] = true
			}
		}
	}
	if len(asked) != questions {
		w.Errorf("asked %v, want %d questions", asked, questions)
	}
}

// built builds holdfast.
func built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// example returns the path of an example.
func example(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../examples", path))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPython runs the example with the Python of the system.
func TestPython(t *testing.T) {
	program, command := built(t), []string{"python3", example(t, "python/deployer.py")}
	testWhatIsMissing(t, program, command)
	stopsAtOnce(t, program, command)
	killsAtEveryStep(t, program, command)
}

// TestTypeScript compiles the example with the compiler of npm, and runs it with the Node of the system. Where npm
// cannot install the compiler the test says so.
func TestTypeScript(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example(t, "typescript"))); err != nil {
		t.Fatal(err)
	}
	install := exec.Command("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Logf("NOT RUN: the compiler cannot be installed: %v\n%s", err, out)
		return
	}
	build := exec.Command("npm", "run", "build")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, command := built(t), []string{"node", filepath.Join(dir, "build", "deployer.js")}
	testWhatIsMissing(t, program, command)
	stopsAtOnce(t, program, command)
	killsAtEveryStep(t, program, command)
}
