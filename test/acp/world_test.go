// Package acp tests `holdfast acp` as an editor starts it: with the real program, a real `up`, and a scripted agent.
// The test plays the editor and the agent.
package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/program"
)

const (
	patience   = 60 * time.Second // for events that must happen
	addressVar = "HOLDFAST_TEST_AGENT"
	longestMax = 1 << 20
)

var binary string

func TestMain(m *testing.M) {
	if address := os.Getenv(addressVar); address != "" {
		os.Exit(play(address))
	}
	os.Exit(program.Main(m.Run, map[string]*string{program.Holdfast: &binary}))
}

// play is the agent: the test has its input and output. It ends with its input, or when the test ends it.
func play(address string) int {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := fmt.Fprintln(conn, os.Getpid()); err != nil {
		return 1
	}
	fmt.Fprintln(os.Stderr, "the agent speaks")
	go func() {
		_, _ = io.Copy(os.Stdout, conn)
		// the test has closed the connection
		os.Exit(3)
	}()
	_, _ = io.Copy(conn, os.Stdin)
	return 0
}

// peer is a side of the proxy that the test plays.
type peer struct {
	t     *testing.T
	name  string
	to    io.WriteCloser
	lines chan string
}

func newPeer(t *testing.T, name string, to io.WriteCloser, from io.Reader) *peer {
	p := &peer{t: t, name: name, to: to, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		in := bufio.NewScanner(from)
		in.Buffer(nil, longestMax)
		for in.Scan() {
			p.lines <- in.Text()
		}
	}()
	return p
}

func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.to, format+"\n", args...); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// next returns the next line that the peer gets.
func (p *peer) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("%s: the end, in place of a line", p.name)
		}
		return line
	case <-time.After(patience):
		p.t.Fatalf("%s gets no line", p.name)
		return ""
	}
}

// gets returns the id of the next line, which has this text in it.
func (p *peer) gets(text string) (id string) {
	p.t.Helper()
	line := p.next()
	if !strings.Contains(line, text) {
		p.t.Fatalf("%s gets %s, want %q", p.name, line, text)
	}
	return idOf(p.t, line)
}

// rest returns all further lines up to the end.
func (p *peer) rest() (lines []string) {
	p.t.Helper()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return lines
			}
			lines = append(lines, line)
		case <-time.After(patience):
			p.t.Fatalf("%s: no end", p.name)
		}
	}
}

func idOf(t *testing.T, line string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return string(m.ID)
}

// proxy is a running `holdfast acp` with both of its peers.
type proxy struct {
	t      *testing.T
	cmd    *exec.Cmd
	editor *peer
	agent  *peer
	pid    int // of the agent
	ended  chan struct{}

	starts *net.TCPListener // of processes of the agent

	mu     sync.Mutex
	stderr bytes.Buffer
}

// Write keeps what the proxy writes to its standard error.
func (x *proxy) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stderr.Write(b)
}

func (x *proxy) output() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stderr.String()
}

// start starts the proxy, and returns when the agent runs.
func start(t *testing.T, url, harness string, flags ...string) *proxy {
	t.Helper()
	// a busy machine stores in time, too
	return startAs(t, append([]string{"acp", "--nats", url, "--harness", harness, "--content", "full", "--wait",
		patience.String()}, flags...)...)
}

// startAs starts the program with these arguments in front of the agent, and returns when the agent runs.
func startAs(t *testing.T, args ...string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	x := &proxy{t: t, cmd: exec.Command(binary, append(args, "--", os.Args[0])...), ended: make(chan struct{}),
		starts: listener.(*net.TCPListener)}
	x.cmd.Env = append(os.Environ(), addressVar+"="+listener.Addr().String())
	x.cmd.Stderr, x.cmd.SysProcAttr = x, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := x.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, end := io.Pipe()
	x.cmd.Stdout = end
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.editor = newPeer(t, "the editor", in, out)
	go func() {
		// the exit status is in the state
		_ = x.cmd.Wait()
		_ = end.Close()
		close(x.ended)
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		<-x.ended
		if t.Failed() {
			t.Logf("the proxy said:\n%s", x.output())
		}
	})
	x.begins()
	return x
}

// begins waits for the next process of the agent.
func (x *proxy) begins() {
	x.t.Helper()
	if err := x.starts.SetDeadline(time.Now().Add(patience)); err != nil {
		x.t.Fatal(err)
	}
	conn, err := x.starts.Accept()
	if err != nil {
		x.t.Fatalf("the agent does not start: %v: %s", err, x.output())
	}
	x.t.Cleanup(func() { _ = conn.Close() })
	x.agent = newPeer(x.t, "the agent", conn, conn)
	if x.pid, err = strconv.Atoi(x.agent.next()); err != nil {
		x.t.Fatal(err)
	}
}

// exit waits until the proxy has ended, and returns its exit code.
func (x *proxy) exit() int {
	x.t.Helper()
	select {
	case <-x.ended:
		return x.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		x.t.Fatal("the proxy does not end")
		return 0
	}
}

func (x *proxy) signal(s syscall.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}

func (x *proxy) killAgent() {
	x.t.Helper()
	if err := syscall.Kill(x.pid, syscall.SIGKILL); err != nil {
		x.t.Fatal(err)
	}
}

// saw waits until the proxy has said a sentence.
func (x *proxy) saw(text string) {
	x.t.Helper()
	natstest.Until(x.t, fmt.Sprintf("%q on standard error", text), func() bool {
		return strings.Contains(x.output(), text)
	})
}

// opens opens a session, with this id at the agent.
func (x *proxy) opens(id string) {
	x.t.Helper()
	x.editor.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":%q}}`, x.agent.gets("session/new"), id)
	x.editor.gets(id)
}

// prompts begins a turn, and returns the id of the request at the agent.
func (x *proxy) prompts(id string) string {
	x.t.Helper()
	x.editor.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":%q,`+
		`"prompt":[{"type":"text","text":"do it"}]}}`, id)
	return x.agent.gets("session/prompt")
}

// asks begins a call and asks for its permission. It returns the id of the request at the editor.
func (x *proxy) asks(id string) string {
	x.t.Helper()
	x.agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":`+
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"rm","kind":"execute","status":"in_progress"}}}`, id)
	x.editor.gets("tool_call")
	x.agent.send(`{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{"sessionId":%q,`+
		`"toolCall":{"toolCallId":"c1"},"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},`+
		`{"optionId":"no","name":"Reject","kind":"reject_once"}]}}`, id)
	return x.editor.gets("session/request_permission")
}

// finishes ends the turn.
func (x *proxy) finishes(request string) {
	x.t.Helper()
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, request)
	if got := x.editor.gets("end_turn"); got != `"turn"` {
		x.t.Errorf("the reply has the id %s", got)
	}
}

// cell is a running `holdfast up`.
type cell struct {
	t   *testing.T
	up  *program.Process
	bus *bus.Bus
}

func newCell(t *testing.T) *cell {
	t.Helper()
	c := &cell{t: t}
	c.start(t.TempDir(), "127.0.0.1:0")
	return c
}

func (c *cell) start(data, listen string) {
	c.t.Helper()
	c.up = program.Run(c.t, binary, nil, "up", "--data", data, "--listen", listen, "--http", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	b, err := bus.Open(ctx, bus.Config{URL: c.up.NATS})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(b.Close)
	c.bus = b
}

func (c *cell) state(harness, id string) *session.State {
	c.t.Helper()
	return natstest.Session(c.t, c.bus, events.Ref{Harness: harness, Session: id})
}

// until waits until a session is as it should be.
func (c *cell) until(harness, id, what string, ok func(*session.State) bool) *session.State {
	c.t.Helper()
	return natstest.UntilSession(c.t, c.bus, events.Ref{Harness: harness, Session: id}, what, ok)
}

// facts returns the facts of a session, each as its kind and its data.
func (c *cell) facts(harness, id string) (all []string) {
	c.t.Helper()
	commits, err := c.bus.Log.Read(c.t.Context(), events.Ref{Harness: harness, Session: id}, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range commits {
		for _, e := range commits[i].Events {
			data, err := json.Marshal(e.Fact)
			if err != nil {
				c.t.Fatal(err)
			}
			all = append(all, string(e.Kind)+" "+string(data))
		}
	}
	return all
}

// run runs a command of holdfast, and returns its exit code and its output.
func (c *cell) run(args ...string) (code int, output string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, append(args, "--nats", c.up.NATS)...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return 0, string(out)
}

// prompt waits until a session has a prompt that awaits an answer, and returns its id.
func (c *cell) prompt(harness, id string) (prompt string) {
	c.t.Helper()
	c.until(harness, id, "a prompt", func(s *session.State) bool {
		for p, q := range s.Prompts {
			if q.Status == session.Awaiting {
				prompt = p
			}
		}
		return prompt != ""
	})
	return prompt
}
