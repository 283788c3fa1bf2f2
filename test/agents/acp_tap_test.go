//go:build agents

package agents

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tapeVar names the file that a tap writes: then this binary is the tap.
const tapeVar = "HOLDFAST_TEST_TAPE"

// Marks of the lines of a tape.
const (
	begun   = "pid "
	toAgent = "> "
	toProxy = "< "
)

// tape is the file of a tap.
type tape struct {
	mu   sync.Mutex
	file *os.File
}

func (t *tape) add(mark, line string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.file.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
	return err
}

// tap runs an agent, passes its lines on, and writes each line to the tape first. It begins when there is no file
// "hold" beside the tape, and ends as the agent does.
func tap(path string, command []string) int {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		return 1
	}
	t := &tape{file: file}
	// until the test has removed the file
	for range time.Tick(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "hold")); err != nil {
			break
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		return 1
	}
	if err := t.add(begun, fmt.Sprint(cmd.Process.Pid)); err != nil {
		return 1
	}
	go func() {
		// its end is the end of the agent's input
		_ = t.pass(toAgent, os.Stdin, in)
		_ = in.Close()
	}()
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		// its end is that of the agent, or of the proxy
		_ = t.pass(toProxy, out, os.Stdout)
	}()
	state, err := cmd.Process.Wait()
	if err != nil {
		return 1
	}
	select {
	case <-passed:
	case <-time.After(time.Second):
		// a command of the agent has its output still
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		_ = syscall.Kill(os.Getpid(), status.Signal())
	}
	return state.ExitCode()
}

// pass passes lines on until their end. A line has a newline.
func (t *tape) pass(mark string, from io.Reader, to io.Writer) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = t.add(mark, line)
		}
		if err == nil {
			_, err = io.WriteString(to, line)
		}
		if err != nil {
			return err
		}
	}
}
