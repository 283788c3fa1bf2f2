// Package child runs a test's own binary as another process, which can be killed at any instant.
//
// A test binary calls [Role] at the start of its TestMain. If Role returns "", the process is the test itself.
// Otherwise it plays that role and ends. A child writes lines to its standard output and reads lines from its standard
// input. If its input ends, its parent has ended, and the child ends, too ([Orders]). Its log, which is its standard
// error, goes to a file.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

const (
	roleVariable     = "HOLDFAST_TEST_ROLE"
	settingsVariable = "HOLDFAST_TEST_SETTINGS"
	linesMax         = 1024     // unread lines of a child; further lines are dropped
	logTailBytesMax  = 16 << 10 // bytes of a log in an error message
	logMode          = 0o600
	parentGoneStatus = 3
)

// Role returns this process's role, or "" for the test itself.
func Role() string { return os.Getenv(roleVariable) }

// Settings decodes the settings from the parent.
func Settings(to any) error {
	if err := json.Unmarshal([]byte(os.Getenv(settingsVariable)), to); err != nil {
		return fmt.Errorf("child: settings of %s: %w", Role(), err)
	}
	return nil
}

// Print writes a line to the parent.
func Print(line string) error {
	_, err := fmt.Println(line)
	return err
}

// Orders returns the lines from the parent, until ctx ends. If the parent ends, the process exits at once.
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

// Process is a child process. Its methods, except Done, are for one goroutine.
type Process struct {
	role   string
	log    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	done   chan struct{}
	result error // of Wait, after done is closed
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
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, settingsVariable+"="+string(body))
	return Run(role, log, cmd)
}

// Run starts a command as a child with this name. Its log is appended to the file. A child that is another program has
// to be killed at the end of the test.
func Run(name, log string, cmd *exec.Cmd) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, logMode)
	if err != nil {
		return nil, fmt.Errorf("child: log of %s: %w", name, err)
	}
	p := &Process{role: name, log: log, cmd: cmd, lines: make(chan string, linesMax), done: make(chan struct{})}
	p.cmd.Stderr = file
	p.in, err = p.cmd.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("child: %s: %w", name, err), file.Close())
	}
	go p.follow(out, file)
	return p, nil
}

// follow reads the child's lines until it ends.
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

// Line returns the child's next line.
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
		return "", fmt.Errorf("child: %s wrote no line: %w\n%s", p.role, ctx.Err(), p.Tail())
	}
}

// Send writes a line to the child.
func (p *Process) Send(line string) error {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return fmt.Errorf("child: write to %s: %w", p.role, err)
	}
	return nil
}

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() {
	p.Strike()
	<-p.done
}

// Strike sends SIGKILL and does not wait: a process whose disk stands still ends later.
func (p *Process) Strike() {
	p.struck = true
	p.signal(syscall.SIGKILL)
}

// Terminate sends SIGTERM and waits until the process has ended. It returns the result of the process.
func (p *Process) Terminate(ctx context.Context) error {
	p.struck = true
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return p.result
	case <-ctx.Done():
		return fmt.Errorf("child: %s does not end: %w\n%s", p.role, ctx.Err(), p.Tail())
	}
}

// Stop sends SIGSTOP: the process is suspended until [Process.Continue].
func (p *Process) Stop() { p.signal(syscall.SIGSTOP) }

// Continue sends SIGCONT.
func (p *Process) Continue() { p.signal(syscall.SIGCONT) }

// signal sends a signal. The process may have ended by itself, which [Process.Fallen] reports.
func (p *Process) signal(s syscall.Signal) {
	// an error means that the process has ended
	_ = p.cmd.Process.Signal(s)
}

// Fallen returns the reason why the child ended without Kill. It returns nil for a child that runs or was killed.
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

// Tail returns the end of the child's log.
func (p *Process) Tail() string {
	text := p.Log()
	return text[max(0, len(text)-logTailBytesMax):]
}

// Log returns the child's log.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
