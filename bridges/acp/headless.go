package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// codeNoMethod is the error of a request that the peer does not offer.
const codeNoMethod = -32601

// Headless continues one session without an editor: it is the client of the agent itself. It takes the turns that
// people and Holdfast request in the session, and hands the agent their messages, and the decisions that they bring.
// Permissions and questions of the agent are answered in Holdfast.
type Headless struct {
	// Runner runs the agent. In and Out are not used, and the broker is required.
	Runner
	// Session is the session's id, at the agent and in Holdfast.
	Session string
	// Dir is the directory of the session.
	Dir string
	// Ready is called when the agent has the session.
	Ready func(*fold.State)
	// Text gets what the agent says in a turn, in pieces.
	Text func(piece string)
	// Asked is called when a permission or a question of the agent is in the log, and waits for a person. It is called
	// again if the session was lost meanwhile and is taken again.
	Asked func(events.PromptRequested)
}

// requested is a turn that the log has begun, and the request that the agent gets for it.
type requested struct {
	id   json.RawMessage
	turn *harness.Turn
}

// Run runs until ctx ends, or the agent has ended for good. It returns [harness.ErrOwned] while another process has the
// session.
func (c *Headless) Run(ctx context.Context) error {
	fromEditor, toProxy := io.Pipe()
	fromProxy, toEditor := io.Pipe()
	e := &headless{Headless: c, to: toProxy, waits: map[string]chan message{}, claimed: make(chan claimed, 1)}
	r := c.Runner
	r.In, r.Out, r.Require, r.turns, r.Linger = fromEditor, toEditor, true, make(chan requested), 0
	r.Command.Dir = c.Dir
	e.turns = r.turns
	r.takes = func(ctx context.Context, st *store) error {
		s, err := st.h.Claim(ctx, c.Session)
		if err == nil {
			st.asked = c.Asked
			st.has(s)
			e.claimed <- claimed{st.h, s}
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	running.Go(func() { e.read(fromProxy) })
	running.Go(func() {
		if err := e.serve(ctx); err != nil && ctx.Err() == nil {
			cancel(&headlessError{err})
		}
	})
	err := r.Run(ctx)
	failed, _ := errors.AsType[*headlessError](context.Cause(ctx))
	cancel(nil)
	// of a pipe: no error
	_, _ = toEditor.Close(), fromEditor.Close()
	running.Wait()
	if failed != nil && err == nil {
		return failed.error
	}
	return err
}

// headlessError is why the client has ended the agent.
type headlessError struct{ error }

// claimed is a session, and the process that has it.
type claimed struct {
	h *harness.Harness
	s *harness.Session
}

// headless is a client of the agent behind a proxy.
type headless struct {
	*Headless
	to      io.Writer
	claimed chan claimed
	turns   chan<- requested

	mu      sync.Mutex
	n       int
	waits   map[string]chan message // for replies, by the id of the request
	talking bool                    // a turn runs: its text is shown
}

// serve begins the conversation with the agent, and works for the session until ctx ends.
func (e *headless) serve(ctx context.Context) error {
	var c claimed
	select {
	case c = <-e.claimed:
	case <-ctx.Done():
		return nil
	}
	hello, err := e.ask(ctx, "initialize", json.RawMessage(`{"protocolVersion":1,"clientCapabilities":{}}`))
	if err != nil {
		return err
	}
	caps := members(members(hello)["agentCapabilities"])
	method := methodLoad
	if string(caps["loadSession"]) != "true" {
		if method = methodResume; members(caps["sessionCapabilities"])["resume"] == nil {
			return errors.New(textCannotLoad)
		}
	}
	params := encode(struct {
		Session string   `json:"sessionId"`
		Dir     string   `json:"cwd"`
		Servers []string `json:"mcpServers"`
	}{e.Session, e.Dir, []string{}})
	if _, err := e.ask(ctx, method, params); err != nil {
		return err
	}
	e.Ready(c.s.State())
	return c.h.Work(ctx, harness.Worker{Sessions: []string{e.Session}, TurnsMax: 1,
		Turn: func(turn context.Context, t *harness.Turn) error { return e.turn(ctx, turn, t) }})
}

// turn hands a turn to the agent. The proxy records its end.
func (e *headless) turn(ctx, turn context.Context, t *harness.Turn) error {
	prompt, err := promptOf(turn, t)
	if err != nil {
		return err
	}
	id, reply := e.expect()
	select {
	case e.turns <- requested{id, t}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	e.talk(true)
	defer e.talk(false)
	e.send(requestOf(id, methodPrompt, encode(struct {
		Session string  `json:"sessionId"`
		Prompt  []block `json:"prompt"`
	}{e.Session, []block{{"text", prompt}}})))
	var m message
	select {
	case m = <-reply:
		// also after a stop: the agent ends the turn
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	late := time.NewTimer(e.Wait)
	defer late.Stop()
	select {
	case <-turn.Done():
		return nil
	case <-late.C:
		// the proxy's word of the end waits for the log, and Work has the same one
	}
	if m.failed != nil {
		return &harness.FailureError{Failure: failureOf(e.Content, m.failed), HadOutput: true}
	}
	return nil
}

// promptOf returns what the agent reads for a turn: the decisions that the turn brings, then its message. An agent that
// was interrupted has the message already.
func promptOf(ctx context.Context, t *harness.Turn) (string, error) {
	decisions, err := t.Decisions(ctx)
	if err != nil {
		return "", err
	}
	r := t.Request()
	var all []string
	for _, p := range decisions {
		all = append(all, textOfDecision(&p))
	}
	if r.Cause != events.CauseResume && r.Cause != events.CauseAnswer {
		content, err := t.Content(ctx)
		if err != nil {
			return "", err
		}
		if message := firstOf(text(content), string(content)); message != "" {
			all = append(all, message)
		}
	}
	if len(all) == 0 {
		return textRestarted, nil
	}
	return strings.Join(all, "\n"), nil
}

// ask sends a request and returns the result of the agent.
func (e *headless) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	id, reply := e.expect()
	e.send(requestOf(id, method, params))
	select {
	case m := <-reply:
		if m.failed != nil {
			return nil, fmt.Errorf("%s: %s", method, reasonOf(m.failed))
		}
		return m.result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// expect returns the id of a new request, and where its reply arrives.
func (e *headless) expect() (json.RawMessage, <-chan message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	id, reply := encode(e.n), make(chan message, 1)
	e.waits[string(id)] = reply
	return id, reply
}

func (e *headless) talk(on bool) {
	e.mu.Lock()
	e.talking = on
	e.mu.Unlock()
	if !on {
		e.Text("\n")
	}
}

// send writes a line to the proxy. The proxy that has ended reads no more.
func (e *headless) send(line []byte) { _, _ = e.to.Write(append(line, '\n')) }

// read takes in the lines of the proxy until its end.
func (e *headless) read(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		line, err := agent.ReadLine(in)
		if err != nil {
			return
		}
		m, err := parse(line)
		if err != nil {
			continue
		}
		e.mu.Lock()
		reply, talking := e.waits[string(m.id)], e.talking
		if m.isReply() {
			delete(e.waits, string(m.id))
		}
		e.mu.Unlock()
		switch {
		case m.isReply() && reply != nil:
			reply <- m
		case m.isRequest() && m.method != methodPermission && m.method != methodElicitation:
			go e.send(errorTo(m.id, codeNoMethod, "no editor is here"))
		case talking && m.method == "session/update":
			u := members(members(m.params)["update"])
			if text(u["sessionUpdate"]) == "agent_message_chunk" {
				e.Text(text(members(u["content"])["text"]))
			}
		}
	}
}

func requestOf(id json.RawMessage, method string, params json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, encode(method), params)
}

// has notes a session that this process has claimed before the agent was started.
func (st *store) has(s *harness.Session) {
	r := newRecord(s.ID())
	r.s, r.taken, r.open = s, 1, &events.SessionOpened{}
	st.mu.Lock()
	st.records[r.id] = r
	st.mu.Unlock()
	st.working.Go(func() { st.awaitLoss(s.Context(), r) })
}

// begun notes a turn that the log has begun at the request of others.
func (st *store) begun(t *harness.Turn) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if r := st.records[t.Session().ID()]; r != nil && r.lost == nil {
		st.put(r, &entryOf{turn: t, done: make(chan struct{}), late: r.behind})
	}
}
