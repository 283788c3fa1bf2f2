package board

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// cell is one `holdfast up` with its data and its ports. It can be killed and started again.
type cell struct {
	t          *testing.T
	dir        string
	nats, http string // host:port
	process    *exec.Cmd
	stderr     strings.Builder
}

// newCell starts a cell that the end of the test ends.
func newCell(t *testing.T) *cell {
	t.Helper()
	c := &cell{t: t, dir: t.TempDir(), nats: freePort(t), http: freePort(t)}
	t.Cleanup(func() {
		if c.process != nil {
			// a test may have stopped it
			c.signal(syscall.SIGCONT)
			c.end(syscall.SIGTERM)
		}
	})
	c.start()
	return c
}

// nextPort is the next port to try. It is below those that the system gives to outgoing connections: a cell that is
// started again needs the same port, and another connection must not have it meanwhile.
var nextPort = 20_000 + os.Getpid()%8_000

// freePort returns an address that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1_000 {
		nextPort++
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", nextPort))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}

// start runs the program and waits until it is ready.
func (c *cell) start(flags ...string) {
	c.t.Helper()
	ready := filepath.Join(c.dir, "ready.json")
	c.process = exec.Command(binary, append([]string{"up", "--data", filepath.Join(c.dir, "data"), "--listen", c.nats,
		"--http", c.http, "--ready-file", ready, "--log-level", "warn", "--json"}, flags...)...)
	c.process.Env = append(os.Environ(), "USER=ann")
	c.process.Stderr = &c.stderr
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
	pid := c.process.Process.Pid
	until(c.t, "the cell is ready", func() bool {
		body, err := os.ReadFile(ready)
		var note struct {
			PID int `json:"pid"`
		}
		return err == nil && json.Unmarshal(body, &note) == nil && note.PID == pid
	})
}

// signal sends a signal to the process.
func (c *cell) signal(signal syscall.Signal) {
	c.t.Helper()
	if err := c.process.Process.Signal(signal); err != nil {
		c.t.Fatal(err)
	}
}

// end sends a signal and waits for the end of the process.
func (c *cell) end(signal syscall.Signal) {
	c.t.Helper()
	c.signal(signal)
	// a killed process has failed
	_ = c.process.Wait()
	c.process = nil
}

// url is the address of the board.
func (c *cell) url() string { return "http://" + c.http + "/" }

// connect returns a connection to the broker.
func (c *cell) connect() *nats.Conn {
	c.t.Helper()
	nc, err := nats.Connect("nats://"+c.nats, nats.MaxReconnects(-1), nats.ReconnectWait(poll))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	return nc
}

// state returns the bucket of documents and views.
func (c *cell) state(nc *nats.Conn) jetstream.KeyValue {
	c.t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	kv, err := js.KeyValue(c.t.Context(), "hf_state")
	if err != nil {
		c.t.Fatal(err)
	}
	return kv
}

// agent attaches a harness.
func (c *cell) agent(id string) *harness.Harness {
	c.t.Helper()
	h, err := harness.Connect(c.t.Context(), harness.Config{ID: id, URL: "nats://" + c.nats})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(h.Abandon)
	if err := h.Ready(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return h
}

// open opens a session, with a turn.
func (c *cell) open(h *harness.Harness, id string, o harness.OpenOptions) (*harness.Session, *harness.Turn) {
	c.t.Helper()
	s, err := h.Open(c.t.Context(), id, o)
	if err != nil {
		c.t.Fatal(err)
	}
	turn, err := s.StartTurn(c.t.Context(), harness.StartOptions{Content: "begin", By: "ada"})
	if err != nil {
		c.t.Fatal(err)
	}
	return s, turn
}

// question is one question with options.
func question(id, text string, options ...string) events.Question {
	q := events.Question{ID: id, Question: text, Custom: true}
	for _, label := range options {
		q.Options = append(q.Options, events.Option{Label: label})
	}
	return q
}

// ask stores a question that is kept when its agent dies, with a call that waits for it.
func (c *cell) ask(s *harness.Session, turn *harness.Turn, id string, questions ...events.Question) {
	c.t.Helper()
	c.append(s, events.ToolStarted{Call: "call-" + id, Turn: turn.ID(), Name: "ask_user"},
		events.PromptRequested{Prompt: id, Turn: turn.ID(), Call: "call-" + id, PromptKind: events.PromptQuestion,
			Title: questions[0].Question, Questions: questions, Delivery: events.DeliverToolResult})
}

// permit asks for the permission to run a command.
func (c *cell) permit(s *harness.Session, turn *harness.Turn, id, title, command string) {
	c.t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		c.t.Fatal(err)
	}
	c.append(s, events.ToolStarted{Call: "call-" + id, Turn: turn.ID(), Name: "bash", Input: input},
		events.PromptRequested{Prompt: id, Turn: turn.ID(), Call: "call-" + id, PromptKind: events.PromptPermission,
			Title: title, Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
}

func (c *cell) append(s *harness.Session, facts ...events.Fact) {
	c.t.Helper()
	if err := s.Append(c.t.Context(), facts...); err != nil {
		c.t.Fatal(err)
	}
}

// entry reads the people's view of a prompt.
func (c *cell) entry(nc *nats.Conn, harness, root, session, prompt string) map[string]any {
	c.t.Helper()
	e, err := c.state(nc).Get(c.t.Context(), events.BlockerKey(harness, root, session, prompt))
	if err != nil {
		c.t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(e.Value(), &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

// request asks a service. The verb has the name of the service before it.
func (c *cell) request(nc *nats.Conn, verb string, body any) {
	c.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, "hf.svc."+verb, data)
	if err != nil {
		c.t.Fatal(err)
	}
	if code := reply.Header.Get("Nats-Service-Error-Code"); code != "" {
		c.t.Fatalf("%s: %s: %s", verb, code, reply.Data)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
