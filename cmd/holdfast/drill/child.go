package drill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Spec describes an agent's role. It is the first line of the agent's standard input, as JSON.
type Spec struct {
	Role    string `json:"role"`
	Harness string `json:"harness"`
	Session string `json:"session"`
	URL     string `json:"url"`
	Login   Login  `json:"login"`
	Prefix  string `json:"prefix,omitempty"`
	TTLMS   int64  `json:"ttl_ms"`
}

// Report is a line of an agent's output: what it did, or the reply that it got.
type Report struct {
	Word   string `json:"said"` // one of the words below
	Text   string `json:"text,omitempty"`
	Fenced bool   `json:"fenced,omitempty"` // refused because another process has claimed the session
}

// Words of a report.
const (
	wordReady    = "ready"    // it works; it has its lease
	wordRefused  = "refused"  // a commit was refused: it stops
	wordStored   = "stored"   // a commit was stored
	wordAnswered = "answered" // it has the answer to its question
	wordTook     = "took"     // it took a requested turn
	wordLeft     = "left"     // it left gracefully
	wordFailed   = "failed"   // it cannot continue
)

// child is one agent's process.
type child struct {
	d       *drill
	act     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	reports chan Report   // closed at the end of its output
	gone    chan struct{} // closed when it has ended
	err     error         // the result of the process, after gone is closed
	once    sync.Once
}

// start starts an agent for an act. Its process lives until the drill ends it.
func (d *drill) start(act, role string) (*child, error) {
	c := &child{d: d, act: act, cmd: d.Command(), reports: make(chan Report, 16), gone: make(chan struct{})}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("agent %s: %w", role, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", role, err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("agent %s: %w", role, err)
	}
	d.mu.Lock()
	d.children = append(d.children, c)
	d.mu.Unlock()
	d.report(act, whoDrill, "starts process %d: %s", c.cmd.Process.Pid, roles[role])
	go c.listen(out)
	spec, err := json.Marshal(Spec{Role: role, Harness: d.names[act], Session: act, URL: d.URL, Login: d.Login,
		Prefix: d.Prefix, TTLMS: d.TTL.Milliseconds()})
	if err == nil {
		err = c.send(string(spec))
	}
	return c, err
}

// send writes a line to the agent.
func (c *child) send(line string) error {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return fmt.Errorf("talk to process %d: %w", c.cmd.Process.Pid, err)
	}
	return nil
}

// listen passes on the agent's reports until it has ended.
func (c *child) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			r = Report{Word: wordFailed, Text: lines.Text()}
		}
		if r.Word != wordReady {
			c.d.report(c.act, whoAgent, "process %d says: %s: %s", c.cmd.Process.Pid, r.Word, r.Text)
		}
		c.reports <- r
	}
	close(c.reports)
	c.err = c.cmd.Wait()
	close(c.gone)
}

// expect waits for the agent's next report, which must have this word.
func (c *child) expect(ctx context.Context, want string, limit time.Duration) (Report, time.Duration, error) {
	began := time.Now()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case r, ok := <-c.reports:
		if !ok {
			return r, time.Since(began), fmt.Errorf("the process ended without a report: %w", errLate)
		}
		if r.Word != want {
			return r, time.Since(began), fmt.Errorf("the process reports: %s %s", r.Word, r.Text)
		}
		return r, time.Since(began), nil
	case <-late.C:
		return Report{}, time.Since(began), fmt.Errorf("%w: no report from the process", errLate)
	case <-ctx.Done():
		return Report{}, time.Since(began), context.Cause(ctx)
	}
}

// signal sends the process a signal.
func (c *child) signal(s syscall.Signal, why string) error {
	c.d.report(c.act, whoDrill, "%s to process %d, %s", names[s], c.cmd.Process.Pid, why)
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s to process %d: %w", names[s], c.cmd.Process.Pid, err)
	}
	return nil
}

// names has the names of the signals.
var names = map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", suspendProcess: "SIGSTOP",
	resumeProcess: "SIGCONT", syscall.SIGTERM: "SIGTERM"}

// end closes the process's input, and kills it if it does not leave.
func (c *child) end() error {
	var err error
	c.once.Do(func() {
		// it has ended already
		if err = c.in.Close(); errors.Is(err, os.ErrClosed) {
			err = nil
		}
		go func() {
			// The reports are discarded.
			for range c.reports {
			}
		}()
		// A suspended process cannot read the end of its input. A process that has ended needs no signal.
		_ = c.cmd.Process.Signal(resumeProcess)
		late := time.NewTimer(endMaxS * time.Second)
		defer late.Stop()
		select {
		case <-c.gone:
		case <-late.C:
			err = errors.Join(err, c.cmd.Process.Kill())
			<-c.gone
		}
	})
	return err
}

// endChildren ends all processes of the drill.
func (d *drill) endChildren() error {
	var errs []error
	for _, c := range d.children {
		errs = append(errs, c.end())
	}
	return errors.Join(errs...)
}
