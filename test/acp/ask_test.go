package acp

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// opening is a request of the proxy that opens a session at the agent.
type opening struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Servers []struct {
			Name, Command string
			Args          []string
			Env           []struct{ Name, Value string }
		} `json:"mcpServers"`
	}
}

// opened returns the next request of the proxy, which opens a session.
func (x *proxy) opened(method string) *opening {
	x.t.Helper()
	line := x.agent.next()
	o := &opening{}
	if err := json.Unmarshal([]byte(line), o); err != nil || o.Method != method {
		x.t.Fatalf("the agent gets %s, want %s: %v", line, method, err)
	}
	return o
}

// tool starts the question tool of a session, as an agent does.
func (x *proxy) tool(o *opening) *peer {
	x.t.Helper()
	if len(o.Params.Servers) != 1 {
		x.t.Fatalf("MCP servers: %+v", o.Params.Servers)
	}
	server := o.Params.Servers[0]
	cmd := exec.Command(server.Command, server.Args...)
	cmd.Env, cmd.SysProcAttr = os.Environ(), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	for _, v := range server.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	out, end := io.Pipe()
	cmd.Stdout, cmd.Stderr = end, x
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		// it ends with its input
		_ = cmd.Wait()
		_ = end.Close()
		close(ended)
	}()
	x.t.Cleanup(func() {
		_ = in.Close()
		<-ended
	})
	p := newPeer(x.t, "the client of the tool", in, out)
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	p.gets(`"protocolVersion":"2025-06-18"`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	p.gets(`"name":"ask_user"`)
	return p
}

// asksBy calls the tool.
func (p *peer) asksBy(id, question string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"ask_user","arguments":{"question":%q,`+
		`"options":["red","blue"]}}}`, id, question)
}

// TestAskTool: an agent without questions of its own gets a tool that asks a person. The editor, which shows no forms,
// does not see the question. The answer is the result of the call. A question that the agent no longer needs is
// withdrawn, and one whose agent has died is answered to the next process.
func TestAskTool(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	const harness, id = "acp-ask", "acp-ask/s1"
	answer := func(prompt, label string) {
		t.Helper()
		if code, output := c.run("answer", id, prompt, label); code != 0 {
			t.Fatalf("answer: %d: %s", code, output)
		}
	}
	x := start(t, c.up.NATS, harness, "--ask-tool")
	hello := `{"jsonrpc":"2.0","id":%s,"result":{"agentCapabilities":{"loadSession":true}}}`
	x.editor.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	x.agent.send(hello, x.agent.gets("initialize"))
	x.editor.gets("loadSession")
	x.editor.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	o := x.opened("session/new")
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`, o.ID)
	x.editor.gets("s1")
	x.prompts("s1")
	tool := x.tool(o)

	tool.asksBy("a", "Which colour?")
	prompt := c.prompt(harness, "s1")
	if q := c.state(harness, "s1").Prompts[prompt]; q.Turn == "" {
		t.Errorf("the question: %+v", q)
	}
	answer(prompt, "blue")
	if got := tool.gets(`"text":"blue"`); got != `"a"` {
		t.Errorf("the reply has the id %s", got)
	}

	tool.asksBy("b", "Which size?")
	prompt = c.prompt(harness, "s1")
	tool.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`)
	c.until(harness, "s1", "the withdrawal", func(s *session.State) bool {
		return s.Prompts[prompt] == nil || s.Prompts[prompt].Status != session.Awaiting
	})

	tool.asksBy("c", "Which shape?")
	prompt = c.prompt(harness, "s1")
	x.killAgent()
	x.begins()
	x.agent.send(hello, x.agent.gets("initialize"))
	again := x.opened("session/load")
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, again.ID)
	answer(prompt, "red")
	turn := x.agent.gets("Which shape?. The user has now answered: red")
	next := x.tool(again)
	next.asksBy("d", "And now?")
	answer(c.prompt(harness, "s1"), "blue")
	next.gets(`"text":"blue"`)
	x.finishes(turn)
	c.until(harness, "s1", "the end of the turn", func(s *session.State) bool { return s.Turn == nil })
	next.asksBy("e", "Is it over?")
	prompt = c.prompt(harness, "s1")
	if code, output := c.run("reject", id, prompt); code != 0 {
		t.Fatalf("reject: %d: %s", code, output)
	}
	next.gets("The user declined to answer.")
	for _, line := range x.editor.unread() {
		if strings.Contains(line, "elicitation") {
			t.Errorf("the editor gets %s", line)
		}
	}
}

// unread returns the lines that the peer has got and not read.
func (p *peer) unread() (all []string) {
	for {
		select {
		case line := <-p.lines:
			all = append(all, line)
		default:
			return all
		}
	}
}

// TestAskToolInTheEditor: an editor that shows forms shows the question, and its answer is the result of the call. When
// holdfast acp ends, a call that waits ends with the reason.
func TestAskToolInTheEditor(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	const harness = "acp-ask-form"
	x := start(t, c.up.NATS, harness, "--ask-tool")
	x.editor.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
		`"clientCapabilities":{"elicitation":{"form":{}}}}}`)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, x.agent.gets("initialize"))
	x.editor.gets("result")
	x.editor.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	o := x.opened("session/new")
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`, o.ID)
	x.editor.gets("s1")
	x.prompts("s1")
	tool := x.tool(o)
	tool.asksBy("a", "Which colour?")
	x.editor.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"answer":"blue"}}}`,
		x.editor.gets("Which colour?"))
	tool.gets(`"text":"blue"`)
	tool.asksBy("b", "Which size?")
	c.prompt(harness, "s1")
	x.signal(syscall.SIGKILL)
	if got := tool.gets("holdfast acp has ended"); got != `"b"` {
		t.Errorf("the reply has the id %s", got)
	}
}
