// Package child runs a test's own binary once more, as another process that can be killed at any instant.
//
// A test binary calls [Role] first thing in its TestMain: "" says that it is the test itself; else it plays that role
// and ends. A child says lines on its standard output and is told lines on its standard input; when that ends its
// parent is gone, and so is the child ([Orders]). Its log, its standard error, goes to a file.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

const (
	roleVariable     = "HOLDFAST_TEST_ROLE"
	settingsVariable = "HOLDFAST_TEST_SETTINGS"
	linesMax         = 1024     // lines of a child that nobody has read yet; more are dropped
	logTailBytesMax  = 16 << 10 // of a log, for a message
	logMode          = 0o600
	parentGoneStatus = 3
)

// Role is what this process is to be, "" for the test itself.
func Role() string { return os.Getenv(roleVariable) }

// Settings decodes what the parent gave along.
func Settings(to any) error {
	if err := json.Unmarshal([]byte(os.Getenv(settingsVariable)), to); err != nil {
		return fmt.Errorf("child: settings of %s: %w", Role(), err)
	}
	return nil
}

// Say tells the parent a line.
func Say(line string) error {
	_, err := fmt.Println(line)
	return err
}

// Orders are the lines that the parent tells, until ctx ends. When the parent is gone the process ends at once.
func Orders(ctx context.Context) <-chan string {
	orders := make(chan string)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			select {
			case orders <- in.Text():
			case <-ctx.Done():
			}
		}
		os.Exit(parentGoneStatus)
	}()
	return orders
}

// Process is a child. Its methods are for one goroutine, but for Done.
type Process struct {
	role   string
	log    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	done   chan struct{}
	result error // of Wait, once done is closed
	struck bool
}

// Start starts this binary in a role, with settings as JSON. Its log is appended to the file.
func Start(role, log string, settings any) (*Process, error) {
	body, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("child: settings of %s: %w", role, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("child: %s: %w", role, err)
	}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, logMode)
	if err != nil {
		return nil, fmt.Errorf("child: log of %s: %w", role, err)
	}
	p := &Process{role: role, log: log, cmd: exec.Command(self), lines: make(chan string, linesMax),
		done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, settingsVariable+"="+string(body))
	p.cmd.Stderr = file
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("child: %s: %w", role, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("child: %s: %w", role, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("child: %s: %w", role, err)
	}
	go p.follow(out, file)
	return p, nil
}

// follow reads what the child says until it ends.
func (p *Process) follow(out io.Reader, log io.Closer) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		select {
		case p.lines <- lines.Text():
		default:
		}
	}
	p.result = p.cmd.Wait()
	if err := log.Close(); p.result == nil {
		p.result = err
	}
	close(p.done)
}

// Line is the next line that the child said.
func (p *Process) Line(ctx context.Context) (string, error) {
	select {
	case line := <-p.lines:
		return line, nil
	default:
	}
	select {
	case line := <-p.lines:
		return line, nil
	case <-p.done:
		return "", fmt.Errorf("child: %s ended: %w\n%s", p.role, p.result, p.Tail())
	case <-ctx.Done():
		return "", fmt.Errorf("child: %s says nothing: %w\n%s", p.role, ctx.Err(), p.Tail())
	}
}

// Tell tells the child a line.
func (p *Process) Tell(line string) error {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return fmt.Errorf("child: tell %s: %w", p.role, err)
	}
	return nil
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill is SIGKILL; it returns when the process is gone.
func (p *Process) Kill() {
	p.struck = true
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Stop is SIGSTOP: the process is there and does nothing until [Process.Continue].
func (p *Process) Stop() { p.signal(syscall.SIGSTOP) }

// Continue is SIGCONT.
func (p *Process) Continue() { p.signal(syscall.SIGCONT) }

// signal is for a process that may have ended by itself, which [Process.Fallen] tells.
func (p *Process) signal(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // an error says that it is gone
}

// Fallen is why the child ended although nobody killed it; nil while it runs, and for one that was killed.
func (p *Process) Fallen() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.struck {
		return nil
	}
	return fmt.Errorf("child: %s ended by itself: %v\n%s", p.role, p.result, p.Tail())
}

// Tail is the end of the child's log.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-logTailBytesMax):])
}
