package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// typed is a holdfast on a terminal, and the person who types there.
type typed struct {
	t      *testing.T
	keys   *os.File
	screen *output
	ended  chan error
}

// columns is the width of the terminal.
const columns = 80

// typeIn starts holdfast, as a process, on a terminal.
func typeIn(t *testing.T, url string, args ...string) *typed {
	t.Helper()
	return typeOn(t, columns, url, args...)
}

// typeOn is typeIn on a terminal of so many columns.
func typeOn(t *testing.T, columns uint16, url string, args ...string) *typed {
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
	size := &unix.Winsize{Row: 24, Col: columns}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, size); err != nil {
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
	// it ends when the terminal does
	go func() { _, _ = io.Copy(x.screen, master) }()
	go func() { x.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		// it has ended, unless the test failed
		_ = cmd.Process.Kill()
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
	// commands read the document
	c.folded(ref)
	return c
}

// TestAnotherQuestionWhileAPersonTypes: an answer counts for the question that the terminal shows, and for no other.
func TestAnotherQuestionWhileAPersonTypes(t *testing.T) {
	c, ref := askingCell(t), events.Ref{Harness: "agent", Session: "s1"}
	x := typeIn(t, c.note.NATS, "answer", "s1")
	x.shows("size> ")
	c.append(ref, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult, Questions: []events.Question{{ID: "size", Question: "What is deleted?",
			Options: []events.Option{{Label: "nothing"}, {Label: "all"}, {Label: "large"}}}}})
	x.press("2\n")
	x.shows("has changed since it was shown")
	if code := x.end(); code != exitFailed {
		t.Errorf("exit code %d, and the screen shows %q", code, x.screen)
	}
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
			// the terminal is read: its echo
			x.shows("some")
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

// TestScreensFit: on a terminal of 80 columns nothing that a command shows is wider: results, notes beside them, and
// errors.
func TestScreensFit(t *testing.T) {
	c := cellWith(t, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptPermission,
		Delivery: events.DeliverToolResult, Title: strings.Repeat("删除生产环境里的旧表 ", 10),
		Questions: []events.Question{{ID: "may", Question: strings.Repeat("Is that what you want? ", 10),
			Options: []events.Option{{Label: "yes", Description: strings.Repeat("there is no way back ", 10)}}}}})
	c.append(events.Ref{Harness: "agent", Session: "s1"}, events.UsageReported{Turn: "t1",
		Tokens: events.Tokens{Input: 60_000}, ContextLimit: 200_000})
	c.folded(events.Ref{Harness: "agent", Session: "s1"})
	for line, want := range map[string]string{
		"show s1":                                "It would not be compacted",
		"check s1":                               "would not be compacted",
		"doctor":                                 "layout",
		"events s1":                              "prompt.requested",
		"prompts":                                "QUESTION",
		"sessions":                               "TITLE",
		"watch --once":                           "QUESTION",
		"queue s1":                               "no message waits",
		"answer s1 nope":                         "name it",
		"show nosuch":                            "no such session",
		"send --help":                            "--tls-key",
		"show s1 --wait phase=idle --timeout 3s": "not within 3s",
	} {
		x := typeIn(t, c.note.NATS, strings.Fields(line)...)
		x.end()
		x.shows(want)
		for _, l := range strings.Split(strings.ReplaceAll(x.screen.String(), "\r", ""), "\n") {
			l = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(l, "")
			if w := terminal.Width(l); w > columns {
				t.Errorf("holdfast %s: %d cells: %s", line, w, l)
			}
		}
	}
}

// TestHelpFitsTheTerminal: a help text is as wide as its terminal, and no wider than 80 columns without one. Its
// examples, which people copy, are whole.
func TestHelpFitsTheTerminal(t *testing.T) {
	widest := func(help string) int {
		most := 0
		for line := range strings.Lines(strings.ReplaceAll(help, "\r", "")) {
			if !strings.HasPrefix(line, "  holdfast ") {
				most = max(most, terminal.Width(strings.TrimRight(line, "\n")))
			}
		}
		return most
	}
	for _, width := range []int{44, 80, 120} {
		x := typeOn(t, uint16(width), natsDefault, "up", "--help")
		if code := x.end(); code != exitDone {
			t.Fatalf("exit code %d:\n%s", code, x.screen)
		}
		x.shows("--settled-prompts-kept-for")
		x.shows("  holdfast up --data /var/lib/holdfast")
		if w := widest(x.screen.String()); w > width || w < width-10 {
			t.Errorf("on a terminal of %d columns the help is %d wide:\n%s", width, w, x.screen)
		}
	}
	var out bytes.Buffer
	p := &Program{Args: []string{"up", "--help"}, Stdout: &out, Stderr: &out}
	if code, w := p.Run(t.Context()), widest(out.String()); code != exitDone || w > 80 || w < 70 {
		t.Errorf("without a terminal: exit code %d, %d columns:\n%s", code, w, &out)
	}
}
