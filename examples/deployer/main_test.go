package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/service"
)

// childVariable makes the test binary run the program, so that a test can kill its process.
const childVariable = "HOLDFAST_EXAMPLE_DEPLOYER"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// world is a broker with all services, and a directory with a command.
type world struct {
	t   *testing.T
	ctx context.Context
	url string
	bus *bus.Bus
	dir string

	process *os.Process // the newest of the program
}

var shop = events.Ref{Harness: "deployer", Session: "shop"}

// script notes that it runs, waits for the file "go", and notes that it is over.
const script = "#!/bin/sh\necho \"$1\" >> ran\nuntil [ -e go ]; do sleep 0.1; done\necho deployed\n: > over\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	server := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, url: server.URL(), bus: natstest.Bus(t, server), dir: t.TempDir()}
	service.Run(t, w.bus)
	w.ok(os.WriteFile(filepath.Join(w.dir, "deploy.sh"), []byte(script), 0o700))
	// a command that outlived its process ends
	t.Cleanup(w.finish)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// finish lets the command end.
func (w *world) finish() {
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		w.t.Error(err)
	}
}

// command is the program as a separate process.
func (w *world) command() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), childVariable+"=1", "HOLDFAST_NATS="+w.url)
	return cmd
}

// starts runs the program as a separate process until kill, which sends SIGKILL.
func (w *world) starts() (kill func()) {
	w.t.Helper()
	return w.runs(w.command())
}

// runs runs a process until kill.
func (w *world) runs(cmd *exec.Cmd) (kill func()) {
	w.t.Helper()
	out, err := os.OpenFile(filepath.Join(w.dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.ok(err)
	if cmd.Stdout = out; cmd.Stderr == nil {
		cmd.Stderr = out
	}
	w.ok(cmd.Start())
	w.process = cmd.Process
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		if err := cmd.Process.Kill(); err != nil {
			w.t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			w.t.Error("the program ended by itself before it was killed")
		}
		if err := out.Close(); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(kill)
	return kill
}

// until waits until the session in the log meets the condition.
func (w *world) until(what string, ok func(*session.State) bool) (st *session.State) {
	w.t.Helper()
	natstest.Until(w.t, what, func() bool {
		st = session.New(shop)
		cs, err := w.bus.Log.Read(w.ctx, shop, 1)
		w.ok(err)
		for i := range cs {
			st.Fold(&cs[i])
		}
		return ok(st)
	})
	return st
}

// prompt waits until a question waits for a person, and returns its id.
func (w *world) prompt(name string) string {
	w.t.Helper()
	st := w.until("question "+name, func(st *session.State) bool {
		return strings.HasPrefix(st.BlockedBy(), name+"-")
	})
	return st.BlockedBy()
}

// answers answers a question.
func (w *world) answers(name, question, label, text string) {
	w.t.Helper()
	answer := events.Answer{Question: question, Text: text}
	if label != "" {
		answer.Selected = []string{label}
	}
	w.ok(w.bus.Services.Request(w.ctx, "ledger", "answer", map[string]any{"harness": shop.Harness,
		"session": shop.Session, "prompt": w.prompt(name), "by": "ada", "answers": []events.Answer{answer}}, nil))
}

// ran returns what the command noted.
func (w *world) ran() string {
	body, err := os.ReadFile(filepath.Join(w.dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(body)
}

// deploy sends the message.
func (w *world) deploy() {
	w.t.Helper()
	w.ok(w.bus.Services.Request(w.ctx, "compaction", "send", map[string]any{"harness": shop.Harness,
		"session": shop.Session, "message": "m1", "content": "deploy", "by": "ada"}, nil))
}

// The steps from the command's death on: the program asks whether the deployment is up.
var cutOff = []string{"command", "asked after the command", "answered after the command while dead", "all"}

// TestKilledAtEveryStep kills the program at one step, at none, or at all, and starts it again: each question is asked
// once, the command runs once, with the answer, and the turn completes.
func TestKilledAtEveryStep(t *testing.T) {
	steps := append([]string{"none", "opened", "sent while dead", "asked", "answered while dead", "permission",
		"permitted while dead", "ended"}, cutOff...)
	for _, at := range steps {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			kill := w.starts()
			again := func(step string) {
				if at == step || at == "all" {
					kill()
					kill = w.starts()
				}
			}
			dead := func(step string, do func()) {
				if at != step && at != "all" {
					do()
					return
				}
				kill()
				do()
				kill = w.starts()
			}
			w.until("the session", func(st *session.State) bool { return st.Opened() })
			again("opened")
			dead("sent while dead", w.deploy)
			w.prompt("which-env")
			again("asked")
			dead("answered while dead", func() { w.answers("which-env", "env", "staging", "") })
			w.prompt("may-deploy")
			again("permission")
			dead("permitted while dead", func() { w.answers("may-deploy", events.PermissionQuestion, "once", "") })
			natstest.Until(t, "the command to run", func() bool { return w.ran() != "" })
			if slices.Contains(cutOff, at) {
				kill()
				kill = w.starts()
				w.prompt("is-it-up")
				again("asked after the command")
				dead("answered after the command while dead", func() { w.answers("is-it-up", "up", "", "yes") })
			}
			w.finish()
			ended := func(st *session.State) bool {
				return st.LastTurn != nil && st.Turn == nil && st.Pending.Turn == nil
			}
			before := w.until("the end", ended).Incarnation
			again("ended")
			w.wantOnce(w.until("the end, and the process that is there now", func(st *session.State) bool {
				return ended(st) && (st.Incarnation != before || at != "ended" && at != "all")
			}), at)
		})
	}
}

// TestCommandFails: a command that fails is run once more, and people read what it printed.
func TestCommandFails(t *testing.T) {
	w := newWorld(t)
	w.ok(os.WriteFile(filepath.Join(w.dir, "deploy.sh"),
		[]byte("#!/bin/sh\necho \"$1\" >> ran\necho disk full on node 7 >&2\nexit 3\n"), 0o700))
	w.starts()
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	w.deploy()
	w.prompt("which-env")
	w.answers("which-env", "env", "staging", "")
	w.prompt("may-deploy")
	w.answers("may-deploy", events.PermissionQuestion, "once", "")
	st := w.until("the end", func(st *session.State) bool {
		return st.LastTurn != nil && st.Turn == nil && st.Pending.Turn == nil && st.LastTurn.Cause == events.CauseRetry
	})
	if e := st.LastTurn.Error; e == nil || !strings.Contains(e.Text, "exit status 3: disk full on node 7") {
		t.Errorf("people read %+v", e)
	}
	if got := w.ran(); got != "staging\nstaging\n" {
		t.Errorf("it ran for %q", got)
	}
}

// TestStartedTwice: the first process ends when a second one is started, and prints why.
func TestStartedTwice(t *testing.T) {
	w := newWorld(t)
	first := w.command()
	var printed strings.Builder
	first.Stderr = &printed
	w.ok(first.Start())
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	t.Cleanup(func() {
		if err := first.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	w.starts()
	var err error
	natstest.Until(t, "the first process to end", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Errorf("it ended with %v, want an exit status", err)
	}
	if want := `another process of harness "deployer" has started`; !strings.Contains(printed.String(), want) {
		t.Errorf("it printed %q, want %s", printed.String(), want)
	}
}

// wantOnce checks what has become of it.
func (w *world) wantOnce(st *session.State, at string) {
	w.t.Helper()
	if l := st.LastTurn; l.Outcome != session.OutcomeCompleted || len(st.Prompts) > 0 {
		w.t.Errorf("%+v %+v, prompts %v", l, l.Error, st.Prompts)
	}
	if w.ran() != "staging\n" {
		w.t.Errorf("the command ran as %q", w.ran())
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
	want := 2
	if slices.Contains(cutOff, at) {
		want = 3
	}
	if len(asked) != want {
		w.t.Errorf("asked %v, want %d questions", asked, want)
	}
}

// TestREADME: the page shows this program, in at most 60 lines.
func TestREADME(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(page), "```go deployer\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !found || !strings.HasSuffix(string(program), "\n"+shown) {
		t.Error("the page shows another program than main.go")
	}
	if n := strings.Count(shown, "\n"); n > 60 {
		t.Errorf("%d lines", n)
	}
}
