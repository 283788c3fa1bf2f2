package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Limits of a process.
const (
	// LineBytesMax is the longest line of an agent or an editor, in bytes. Lines have files and pictures in them.
	LineBytesMax = 64 << 20
	linesAhead   = 64              // lines of an agent that are read before they are taken
	tailBytesMax = 1 << 20         // bytes of a dead process that are read: what a pipe can hold
	tailWait     = time.Second     // how long a dead process's output may stay open without a byte
	stopWait     = 5 * time.Second // how long a process may take to end after its input has ended
	readBytes    = 64 << 10
)

// ErrLineTooLong says that a line has more than [LineBytesMax] bytes.
var ErrLineTooLong = fmt.Errorf("a line has more than %d MiB", LineBytesMax>>20)

// ErrMute says that a process has closed its output, and did not end in the time that it has for that.
var ErrMute = errors.New("it closed its output, and did not end")

// Command is how an agent is started.
type Command struct {
	Path string
	Args []string // without the program's name
	Dir  string   // default: that of this process
	Env  []string // default: that of this process
	// Stderr gets what the agent writes to its standard error. Default: nothing.
	Stderr io.Writer
}

// Process is one process of an agent, in a process group of its own. Its input and output are lines. Make it with
// [Start]. All methods may be called at the same time.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan []byte
	exited chan struct{} // the process has ended
	done   chan struct{} // and its lines are read

	writing sync.Mutex

	mu     sync.Mutex
	fault  error // why this package ended it
	reason string
}

// Start starts an agent.
func Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.WaitDelay = c.Dir, c.Env, c.Stderr, tailWait
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, end, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	cmd.Stdout = end
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, errors.Join(err, in.Close(), out.Close(), end.Close()))
	}
	p := &Process{cmd: cmd, in: in, lines: make(chan []byte, linesAhead), exited: make(chan struct{}),
		done: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(out)
	}()
	go p.wait(end, out, read)
	return p, nil
}

// PID is the id of the process, and of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Lines are the lines that the agent writes, without the newline. A slow reader stops the agent. The channel is closed
// when the process has ended and all its lines were taken.
func (p *Process) Lines() <-chan []byte { return p.lines }

// Done is closed when the process has ended and all its lines were taken.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited is closed when the process has ended. Lines of it may be left.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit says how the process ended, in one line: "exit status 1". It is empty until [Process.Done] is closed.
func (p *Process) Exit() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// Send writes a line. It waits while the agent does not read. An error says that the agent does not get it.
func (p *Process) Send(line []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.in.Write(append(bytes.Clone(line), '\n'))
	return err
}

// Kill ends the process and its group at once.
func (p *Process) Kill() {
	select {
	case <-p.exited:
		// the group was killed with it; its id may be another's by now
	default:
		killGroup(p.cmd.Process)
	}
}

// Stop ends the input of the process, and kills its group unless it ends within 5 s. It returns when the process has
// ended. Its lines have to be taken meanwhile.
func (p *Process) Stop() {
	// it may be closed already
	_ = p.in.Close()
	patience := time.NewTimer(stopWait)
	defer patience.Stop()
	select {
	case <-p.exited:
	case <-patience.C:
		p.Kill()
		<-p.exited
	}
}

// wait collects the process.
func (p *Process) wait(end, out *os.File, read <-chan struct{}) {
	// the process has its own
	_ = end.Close()
	// commands that the agent started do not outlive it
	killRest(p.cmd)
	// Wait closes the input
	err := p.cmd.Wait()
	reason := p.ended(err)
	close(p.exited)
	// A process that left the group may have the output still.
	if out.SetReadDeadline(time.Now().Add(tailWait)) != nil {
		late := time.AfterFunc(tailWait, func() { _ = out.Close() })
		defer late.Stop()
	}
	<-read
	_ = out.Close()
	p.mu.Lock()
	p.reason = reason
	p.mu.Unlock()
	close(p.done)
}

// ended returns how the process ended.
func (p *Process) ended(err error) string {
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	state := p.cmd.ProcessState
	switch {
	case fault != nil:
		return fault.Error()
	case state != nil:
		return state.String()
	default:
		return err.Error()
	}
}

// read passes the lines on.
func (p *Process) read(out *os.File) {
	defer close(p.lines)
	in := bufio.NewReaderSize(&tail{file: out, exited: p.exited, left: tailBytesMax}, readBytes)
	for {
		line, err := ReadLine(in)
		if err == nil || len(line) > 0 && !errors.Is(err, ErrLineTooLong) {
			p.lines <- line
		}
		if errors.Is(err, ErrLineTooLong) {
			p.mu.Lock()
			p.fault = err
			p.mu.Unlock()
			p.Kill()
		}
		if err != nil {
			go p.endMute()
			return
		}
	}
}

// endMute ends a process that has closed its output, as [Process.Stop] does: no peer learns anything of it any more.
func (p *Process) endMute() {
	select {
	case <-p.exited:
		return
	default:
	}
	// it may be closed already
	_ = p.in.Close()
	patience := time.NewTimer(stopWait)
	defer patience.Stop()
	select {
	case <-p.exited:
	case <-patience.C:
		p.mu.Lock()
		if p.fault == nil {
			p.fault = ErrMute
		}
		p.mu.Unlock()
		p.Kill()
	}
}

// ReadLine returns the next line without the newline. With an error it returns what it has read of the last line.
func ReadLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > LineBytesMax {
			return nil, ErrLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// tail reads the output of a process. After the process has ended it returns what is left in the pipe, up to a limit,
// and ends when nothing more arrives: another process may keep the pipe open.
type tail struct {
	file   *os.File
	exited <-chan struct{}
	left   int
}

// Read implements [io.Reader].
func (t *tail) Read(b []byte) (int, error) {
	for {
		over := false
		select {
		case <-t.exited:
			over = true
			if t.left <= 0 {
				return 0, io.EOF
			}
			// without deadlines wait closes the file
			_ = t.file.SetReadDeadline(time.Now().Add(tailWait))
		default:
		}
		n, err := t.file.Read(b)
		if over {
			t.left -= n
		}
		if n > 0 || err == nil {
			return n, nil
		}
		if over || !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, io.EOF
		}
	}
}
