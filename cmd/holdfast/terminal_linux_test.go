package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// typed is a holdfast on a terminal, and the person who types there.
type typed struct {
	t      *testing.T
	keys   *os.File
	screen *output
	ended  chan error
}

// typeIn starts holdfast, as a process, on a terminal.
func typeIn(t *testing.T, url string, args ...string) *typed {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("holdfast", args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_NATS="+url, "USER=ann", "HOLDFAST_TIMEOUT=2m")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &typed{t: t, keys: master, screen: &output{}, ended: make(chan error, 1)}
	go func() { _, _ = io.Copy(x.screen, master) }() // it ends when the terminal does
	go func() { x.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		if err := errors.Join(slave.Close(), master.Close()); err != nil {
			t.Error(err)
		}
	})
	return x
}

// shows waits until the screen has a text.
func (x *typed) shows(text string) {
	x.t.Helper()
	natstest.Until(x.t, text, func() bool { return strings.Contains(x.screen.String(), text) })
}

// press sends what the person types.
func (x *typed) press(keys string) {
	x.t.Helper()
	if _, err := x.keys.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// end waits for the end of the process and returns its exit code.
func (x *typed) end() int {
	x.t.Helper()
	var err error
	natstest.Until(x.t, "the end of the process", func() bool {
		select {
		case err = <-x.ended:
			return true
		default:
			return false
		}
	})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return 0
}

// askingCell returns a cell in which a question waits.
func askingCell(t *testing.T) *upCell {
	t.Helper()
	return cellWith(t, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult, Questions: []events.Question{{ID: "size", Question: "What size?",
			Options: []events.Option{{Label: "small"}, {Label: "large"}}}}})
}

// cellWith returns a cell in which a prompt of the call c1 waits.
func cellWith(t *testing.T, prompt events.PromptRequested) *upCell {
	t.Helper()
	c, ref := startUp(t, t.TempDir()), events.Ref{Harness: "agent", Session: "s1"}
	c.append(ref, events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask"}, // its question outlives the agent, which has no lease
		prompt)
	c.folded(ref) // commands read the document
	return c
}

// TestInterruptedInput: Ctrl-C ends a command that reads from a terminal. Nothing was sent.
func TestInterruptedInput(t *testing.T) {
	c, ref := askingCell(t), events.Ref{Harness: "agent", Session: "s1"}
	for name, test := range map[string]struct {
		args  []string
		shows string
	}{
		"answer": {[]string{"answer", "s1"}, "size> "},
		"send":   {[]string{"send", "agent/s1", "-"}, "Ctrl-D ends it"},
	} {
		t.Run(name, func(t *testing.T) {
			x := typeIn(t, c.note.NATS, test.args...)
			x.shows(test.shows)
			x.press("some")
			x.shows("some") // the terminal is read: its echo
			x.press("\x03")
			x.shows("interrupted before")
			if code := x.end(); code != exitFailed {
				t.Errorf("exit code %d:\n%s", code, x.screen)
			}
		})
	}
	if st := c.folded(ref); len(st.PendingPrompts()) != 1 || len(st.Queue) != 0 {
		t.Errorf("something was sent: %+v", st)
	}
}

// TestAskedAgain: a person who types an answer that is not offered is shown what is, and asked again.
func TestAskedAgain(t *testing.T) {
	c := askingCell(t)
	x := typeIn(t, c.note.NATS, "answer", "s1")
	x.shows("size> ")
	x.press("green\n")
	x.shows(`"green" is not offered; one of 1) small, 2) large`)
	x.press("2\n")
	x.shows("answered p1 (agent/s1")
	if code := x.end(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, x.screen)
	}
}

// TestSkippedOnATerminal: an empty line skips a question only when the person says so a second time.
func TestSkippedOnATerminal(t *testing.T) {
	c, ref := askingCell(t), events.Ref{Harness: "agent", Session: "s1"}
	x := typeIn(t, c.note.NATS, "answer", "s1")
	x.shows("size> ")
	x.press("\n")
	x.shows("press enter again to skip it")
	if st := c.folded(ref); len(st.PendingPrompts()) != 1 {
		t.Errorf("the question is answered: %+v", st.Prompts)
	}
	x.press("green\n")
	x.shows(`"green" is not offered`)
	x.press("\n")
	x.shows("press enter again to skip it")
	x.press("\n")
	x.shows("answered p1 (agent/s1")
	if code := x.end(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, x.screen)
	}
}

// TestPermissionOnATerminal: a person who sees the only permission grants it without its name.
func TestPermissionOnATerminal(t *testing.T) {
	c := cellWith(t, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptPermission,
		Delivery: events.DeliverToolResult, Title: "Run ./deploy.sh staging"})
	x := typeIn(t, c.note.NATS, "answer", "s1")
	x.shows("Run ./deploy.sh staging")
	x.shows("no: holdfast reject agent/s1 p1 [REASON]")
	x.shows("permission> ")
	x.press("once\n")
	x.shows("answered p1, Run ./deploy.sh staging (agent/s1")
	if code := x.end(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, x.screen)
	}
}
