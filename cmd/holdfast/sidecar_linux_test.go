package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// connectLine is what an agent writes first.
const connectLine = `{"jsonrpc":"2.0","id":1,"method":"connect","params":{"id":"orphan"}}` + "\n"

// shellAgent starts a shell as an agent; its descriptor 3 is the end of a pipe that this process holds open. It returns
// the other end, and what is written to the standard output of the agent and its children, with their errors.
func shellAgent(t *testing.T, url, script string) (agent *exec.Cmd, toSidecar io.Writer, out *bufio.Reader) {
	t.Helper()
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	agent = exec.CommandContext(ctx, "sh", "-c", script)
	agent.ExtraFiles = []*os.File{in}
	agent.Env = append(os.Environ(), "HOLDFAST_NATS="+url)
	// not closed by Wait, which returns before the sidecar has ended
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	agent.Stdout, agent.Stderr = write, write
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// the sidecar ends at the latest by it
		_ = w.Close()
		_ = read.Close()
	})
	_, _ = in.Close(), write.Close()
	return agent, w, bufio.NewReader(read)
}

// kill kills the agent, and waits until the system has given its children to another parent.
func kill(t *testing.T, agent *exec.Cmd) {
	t.Helper()
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// it was killed
	_ = agent.Wait()
}

// ends waits until the last process that writes to out has ended, and returns what it wrote.
func ends(t *testing.T, out io.Reader) string {
	t.Helper()
	ended := make(chan string, 1)
	go func() {
		body, err := io.ReadAll(out)
		if err != nil {
			body = append(body, err.Error()...)
		}
		ended <- string(body)
	}()
	select {
	case output := <-ended:
		return output
	case <-time.After(time.Minute):
		t.Fatal("the sidecar lives without its agent")
		panic("not reached")
	}
}

// TestSidecarOfADeadAgent: a sidecar ends with the process that started it, also if another process, here this one,
// holds its standard input open.
func TestSidecarOfADeadAgent(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	for _, command := range []string{"holdfast sidecar", "holdfast sidecar --parent $$"} {
		t.Run(command, func(t *testing.T) {
			agent, toSidecar, out := shellAgent(t, s.URL(), command+" <&3 3<&- & wait")
			if _, err := io.WriteString(toSidecar, connectLine); err != nil {
				t.Fatal(err)
			}
			for {
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatalf("connect: %q, %v", line, err)
				}
				if strings.Contains(line, `"result"`) {
					break
				}
			}
			kill(t, agent)
			if output := ends(t, out); !strings.Contains(output, "the agent has gone without close") {
				t.Errorf("it ended with %s", output)
			}
		})
	}
}

// TestSidecarOfAnAgentThatDiedBefore: a sidecar that begins after its agent has died serves nothing.
func TestSidecarOfAnAgentThatDiedBefore(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	agent, toSidecar, out := shellAgent(t, s.URL(),
		"(echo begun; read -r go; exec holdfast sidecar --parent $$) <&3 3<&- & wait")
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	kill(t, agent)
	if _, err := io.WriteString(toSidecar, "go\n"+connectLine); err != nil {
		t.Fatal(err)
	}
	output := ends(t, out)
	if want := fmt.Sprintf("process %d has ended, or did not start this sidecar", agent.Process.Pid); !strings.Contains(
		output, want) || strings.Contains(output, "result") {
		t.Errorf("it said %q, want %q", output, want)
	}
}

// TestSidecarWithoutReader: an agent that has closed the sidecar's output ends it with an error, and no signal does.
func TestSidecarWithoutReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer func() { _ = w.Close() }()
	cmd := exec.CommandContext(t.Context(), "holdfast", "sidecar")
	// stays open
	in, stop, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), stop.Close() }()
	var output bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, w, &output
	if _, err := io.WriteString(stop, "not JSON\n"); err != nil {
		t.Fatal(err)
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailed {
		t.Errorf("%v, want exit code %d", err, exitFailed)
	}
	if !strings.Contains(output.String(), "broken pipe") {
		t.Errorf("it said %q", output.String())
	}
}

// TestSidecarVerbose: -v logs what the client does, and without it only warnings are logged.
func TestSidecarVerbose(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	const verbose = "level=INFO"
	for _, flags := range []string{"", "-v"} {
		_, toSidecar, out := shellAgent(t, s.URL(), "exec holdfast sidecar "+flags+" <&3 3<&-")
		if _, err := io.WriteString(toSidecar, connectLine); err != nil {
			t.Fatal(err)
		}
		wants, output := []string{`"id":1,"result"`}, ""
		if flags != "" {
			// a line of the log may come after the reply
			wants = append(wants, verbose)
		}
		for _, want := range wants {
			for !strings.Contains(output, want) {
				line, err := out.ReadString('\n')
				if output += line; err != nil {
					t.Fatalf("with the flags %q: %q, %v", flags, output, err)
				}
			}
		}
		if _, err := io.WriteString(toSidecar, `{"jsonrpc":"2.0","id":2,"method":"close"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(output, `"id":2,"result"`) {
			line, err := out.ReadString('\n')
			if output += line; err != nil {
				t.Fatalf("with the flags %q: %q, %v", flags, output, err)
			}
		}
		if flags == "" && strings.Contains(output, verbose) {
			t.Errorf("without -v: %s", output)
		}
	}
}
