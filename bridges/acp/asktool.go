package acp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/agent"
)

// The question tool is an MCP server that the agent starts: this program again, which asks through the proxy. A
// question is an elicitation of the agent for the proxy, with an id that no agent gives. So it is recorded, answered
// and carried over the death of the agent as any other one.

// askServer is the name of the MCP server in the request that opens a session.
const askServer = "holdfast"

// askPrefix begins the ids of the questions of the tool, as JSON.
const askPrefix = `"holdfast-ask-`

// AskVariable is the variable that tells the MCP server where it asks.
const AskVariable = "HOLDFAST_ASK"

// askHelloMax is how long a connection to the proxy may take to say who it is.
const askHelloMax = 10 * time.Second

// toolAsked is a line of the tool about one of its calls: a question, or that it needs no answer any more.
type toolAsked struct {
	Call   string          `json:"call"`
	Params json.RawMessage `json:"params,omitempty"` // of elicitation/create, without a session
	Cancel bool            `json:"cancel,omitempty"`
}

// toolAnswered is a line for the tool.
type toolAnswered struct {
	Call   string          `json:"call"`
	Result json.RawMessage `json:"result,omitempty"` // of elicitation/create
	Error  string          `json:"error,omitempty"`
}

// toolLine is a line of a tool with the session that it asks in.
type toolLine struct {
	toolAsked
	session string // the name of the session that the tool has
	id      string // of the question at the proxy
	to      *toolPeer
}

// toolPeer is a connection of a tool.
type toolPeer struct {
	mu   sync.Mutex
	conn net.Conn
}

func (t *toolPeer) reply(a toolAnswered) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// a tool that has ended needs no answer
	_, _ = t.conn.Write(append(encode(a), '\n'))
}

// tools has the connections of the question tools of a run. Its secret is in the environment of the tools alone.
type tools struct {
	listener net.Listener
	secret   string
	lines    chan toolLine
	stop     chan struct{}
	waits    map[string]toolLine // of the loop: questions by their id at the proxy
}

func listenTools() (*tools, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the question tool: %w", err)
	}
	t := &tools{listener: l, secret: rand.Text(), lines: make(chan toolLine), stop: make(chan struct{}),
		waits: map[string]toolLine{}}
	go t.accept()
	return t, nil
}

// address is the value of [AskVariable] for a session.
func (t *tools) address(session string) string {
	return t.listener.Addr().String() + " " + t.secret + " " + session
}

func (t *tools) close() {
	close(t.stop)
	_ = t.listener.Close()
}

func (t *tools) accept() {
	for n := 1; ; n++ {
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		go t.read(conn, n)
	}
}

// read takes in the lines of one tool. The first one says which session it asks in.
func (t *tools) read(conn net.Conn, n int) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(askHelloMax))
	hello, err := agent.ReadLine(in)
	secret, session, _ := strings.Cut(string(hello), " ")
	if err != nil || secret != t.secret {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	peer := &toolPeer{conn: conn}
	for {
		line, err := agent.ReadLine(in)
		if err != nil {
			// the question stays: the agent may have died
			return
		}
		l := toolLine{session: session, to: peer}
		if json.Unmarshal(line, &l.toolAsked) != nil {
			return
		}
		l.id = fmt.Sprintf(`%s%d-%x"`, askPrefix, n, l.Call)
		select {
		case t.lines <- l:
		case <-t.stop:
			return
		}
	}
}

// asked takes in a line of a tool, as one of the agent.
func (x *run) asked(l toolLine) {
	if l.Cancel {
		x.do(x.proxy.FromAgent(time.Now(), fmt.Appendf(nil,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, l.id)))
		return
	}
	session := x.proxy.askers[l.session]
	if session == "" || x.down {
		l.to.reply(toolAnswered{Call: l.Call, Error: "no session is open"})
		return
	}
	x.tools.waits[l.id] = l
	x.do(x.proxy.FromAgent(time.Now(), requestOf(json.RawMessage(l.id), methodElicitation,
		withMember(l.Params, "sessionId", encode(session)))))
}

// answers hands a reply of the proxy to the tool that asked. It returns false for another line.
func (t *tools) answers(raw []byte) bool {
	if t == nil || !bytes.Contains(raw, []byte(askPrefix)) {
		return false
	}
	m, err := parse(raw)
	if err != nil || !isTool(m.id) {
		return false
	}
	if l, ok := t.waits[string(m.id)]; ok && m.isReply() {
		delete(t.waits, string(m.id))
		go l.to.reply(toolAnswered{Call: l.Call, Result: m.result, Error: text(members(m.failed)["message"])})
	}
	return true
}

func isTool(id json.RawMessage) bool { return strings.HasPrefix(string(id), askPrefix) }

// withTool adds the question tool to the MCP servers of a request that opens a session.
func (p *Proxy) withTool(m message) message {
	if p.cfg.AskTool == nil || !slices.Contains([]string{"session/new", "session/fork", methodLoad, methodResume},
		m.method) {
		return m
	}
	servers := list(members(m.params)["mcpServers"])
	for _, s := range servers {
		if text(members(s)["name"]) == askServer {
			// it was added before, or the editor has its own
			return m
		}
	}
	key := p.newID("ask")
	if id := m.sessionID(); id != "" && m.method != "session/fork" {
		p.askers[key] = id
	}
	servers = append(servers, p.cfg.AskTool(key))
	with, err := parse(splice(m.raw, m.spans, "params", withMember(m.params, "mcpServers", encode(servers))))
	if err != nil {
		return m
	}
	p.named[string(m.id)] = key
	return with
}

// openedWith notes the session that a question tool asks in.
func (p *Proxy) openedWith(request json.RawMessage, session string) {
	if key, ok := p.named[string(request)]; ok && session != "" {
		p.askers[key] = session
	}
	delete(p.named, string(request))
}

// AskTool is the MCP server of the question tool. It serves one agent on its input and output.
type AskTool struct {
	In  io.Reader
	Out io.Writer
	// Address is the value of [AskVariable].
	Address string
	Version string

	progressEvery time.Duration // default: 10 s
	mu            sync.Mutex
	conn          net.Conn
	calls         map[string]toolCall // by the id of the request
	ended         error
}

// toolCall is a call that waits for a person.
type toolCall struct {
	id   json.RawMessage
	done chan struct{}
}

const askProgress = 10 * time.Second // some agents give a call up that says nothing for a minute

// Run serves until the input ends.
func (t *AskTool) Run(ctx context.Context) error {
	parts := strings.SplitN(t.Address, " ", 3)
	if len(parts) != 3 {
		return fmt.Errorf("%s is not set: holdfast acp --ask-tool starts this", AskVariable)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", parts[0])
	if err != nil {
		return fmt.Errorf("holdfast acp does not answer: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s %s\n", parts[1], parts[2]); err != nil {
		return fmt.Errorf("holdfast acp has ended: %w", err)
	}
	t.conn, t.calls = conn, map[string]toolCall{}
	if t.progressEvery == 0 {
		t.progressEvery = askProgress
	}
	go t.receive()
	in := bufio.NewReader(t.In)
	for {
		line, err := agent.ReadLine(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m, err := parse(line); err == nil {
			t.serve(m)
		}
	}
}

// serve handles a message of the agent.
func (t *AskTool) serve(m message) {
	switch m.method {
	case "initialize":
		version := firstOf(text(members(m.params)["protocolVersion"]), "2025-06-18")
		t.writeLine(replyTo(m.id, "result", encode(map[string]any{"protocolVersion": version,
			"capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo":   map[string]string{"name": askServer, "version": t.Version}})))
	case "ping":
		t.writeLine(replyTo(m.id, "result", json.RawMessage("{}")))
	case "tools/list":
		t.writeLine(replyTo(m.id, "result", json.RawMessage(askTools)))
	case "tools/call":
		t.call(m)
	case "notifications/cancelled":
		id := string(members(m.params)["requestId"])
		if t.finish(id) != nil {
			t.sendAsked(toolAsked{Call: id, Cancel: true})
		}
	default:
		if m.isRequest() {
			t.writeLine(errorTo(m.id, codeNoMethod, "this server has one tool, and nothing else"))
		}
	}
}

// askTools is the list of tools.
const askTools = `{"tools":[{"name":"ask_user","description":"Ask the user a question and wait for the answer. ` +
	`Use it when a decision is the user's, or when you need something that only the user knows. The user may take ` +
	`long to answer.","inputSchema":{"type":"object","required":["question"],"properties":{` +
	`"question":{"type":"string","description":"the question, with all that is needed to answer it"},` +
	`"options":{"type":"array","items":{"type":"string"},` +
	`"description":"the answers to choose from; without them the user types one"},` +
	`"multiple":{"type":"boolean","description":"several options may be chosen"}}}}]}`

// call asks the question of a call.
func (t *AskTool) call(m message) {
	params := members(m.params)
	in := members(params["arguments"])
	question := text(in["question"])
	if text(params["name"]) != "ask_user" || question == "" {
		t.writeLine(errorTo(m.id, codeParams, "want the tool ask_user with a question"))
		return
	}
	field := map[string]any{"type": "string", "description": question}
	if options := list(in["options"]); len(options) > 0 {
		field["enum"] = options
		if string(in["multiple"]) == "true" {
			field = map[string]any{"type": "array", "description": question,
				"items": map[string]any{"type": "string", "enum": options}}
		}
	}
	c := toolCall{m.id, make(chan struct{})}
	t.mu.Lock()
	ended := t.ended
	t.calls[string(m.id)] = c
	t.mu.Unlock()
	if ended != nil {
		t.answered(toolAnswered{Call: string(m.id), Error: ended.Error()})
		return
	}
	if token := members(params["_meta"])["progressToken"]; len(token) > 0 {
		go t.progress(c, token)
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"answer": field}}
	t.sendAsked(toolAsked{Call: string(m.id), Params: encode(map[string]any{"mode": "form", "message": question,
		"requestedSchema": schema})})
}

// codeParams is the error of a request with other parameters.
const codeParams = -32602

// progress tells the agent that a call still waits.
func (t *AskTool) progress(c toolCall, token json.RawMessage) {
	every := time.NewTicker(t.progressEvery)
	defer every.Stop()
	for n := 1; ; n++ {
		select {
		case <-every.C:
			t.writeLine(fmt.Appendf(nil,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,`+
					`"progress":%d,"message":"waiting for the user"}}`, token, n))
		case <-c.done:
			return
		}
	}
}

// receive records the answers of the proxy.
func (t *AskTool) receive() {
	in := bufio.NewReader(t.conn)
	for {
		line, err := agent.ReadLine(in)
		if err != nil {
			break
		}
		var a toolAnswered
		if json.Unmarshal(line, &a) == nil {
			t.answered(a)
		}
	}
	t.mu.Lock()
	t.ended = errors.New("holdfast acp has ended")
	var open []string
	for id := range t.calls {
		open = append(open, id)
	}
	t.mu.Unlock()
	for _, id := range open {
		t.answered(toolAnswered{Call: id, Error: t.ended.Error()})
	}
}

// answered ends a call with what was decided.
func (t *AskTool) answered(a toolAnswered) {
	c := t.finish(a.Call)
	if c == nil {
		return
	}
	reply, failed := a.Error, a.Error != ""
	result := members(a.Result)
	switch text(result["action"]) {
	case actionAccept:
		answer := members(result["content"])["answer"]
		reply = firstOf(text(answer), string(answer), "The user gave no answer.")
	case actionDecline:
		reply = "The user declined to answer."
	case actionCancel:
		reply, failed = "The question was withdrawn.", true
	}
	t.writeLine(replyTo(c.id, "result", encode(map[string]any{"isError": failed,
		"content": []map[string]string{{"type": "text", "text": reply}}})))
}

// finish takes a call out of those that wait; nil if it does not wait.
func (t *AskTool) finish(id string) *toolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.calls[id]
	if !ok {
		return nil
	}
	delete(t.calls, id)
	close(c.done)
	return &c
}

func (t *AskTool) sendAsked(a toolAsked) { _, _ = t.conn.Write(append(encode(a), '\n')) } // receive notices its end

func (t *AskTool) writeLine(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// an agent that has ended closes the input, too
	_, _ = t.Out.Write(append(line, '\n'))
}
