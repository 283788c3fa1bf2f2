package sidecar_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/sidecar"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/service"
)

const patience = time.Minute // no test waits longer for anything

var shop = events.Ref{Harness: "deployer", Session: "shop"}

// object is a JSON object.
type object = map[string]any

// world is a broker with all services.
type world struct {
	*testing.T
	server *embed.Server
	bus    *bus.Bus
	ctx    context.Context
	out    func(io.Writer) io.Writer // what the sidecar writes to, around the pipe; nil: the pipe
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	t.Cleanup(cancel)
	w := &world{T: t, server: s, bus: natstest.Bus(t, s), ctx: ctx}
	service.Run(t, w.bus)
	return w
}

// message is a message as the agent sees it.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *sidecar.Error  `json:"error"`
}

// name returns the name of the error; empty for none.
func (m message) name() string {
	if m.Error == nil {
		return ""
	}
	return m.Error.Data.Error
}

// peer is an agent at the other end of two pipes.
type peer struct {
	t     *testing.T
	w     io.WriteCloser
	asked chan message // requests and notifications of the sidecar
	stray chan message // replies without an id
	ended chan error   // what Serve returned
	stop  context.CancelFunc

	mu      sync.Mutex
	n       int
	replies map[string]chan message
	methods map[string]string // of requests, by id
	called  map[string]bool
	page    *page
}

// begins starts a sidecar with an agent that is not connected yet.
func (w *world) begins(change ...func(*sidecar.Config)) *peer {
	w.Helper()
	toSidecar, agentWrites := io.Pipe()
	agentReads, fromSidecar := io.Pipe()
	cfg := sidecar.Config{Harness: harness.Config{URL: w.server.URL()}, ConnectTimeout: patience}
	for _, c := range change {
		c(&cfg)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &peer{t: w.T, w: agentWrites, asked: make(chan message, 100), stray: make(chan message, 100),
		ended: make(chan error, 1), stop: stop, replies: map[string]chan message{}, methods: map[string]string{},
		called: map[string]bool{},
		page:   readPage(w)}
	var out io.Writer = fromSidecar
	if w.out != nil {
		out = w.out(out)
	}
	go func() { p.ended <- errors.Join(sidecar.Serve(ctx, cfg, toSidecar, out), fromSidecar.Close()) }()
	read := make(chan struct{})
	go func() { defer close(read); p.read(agentReads) }()
	w.Cleanup(func() {
		stop()
		if err := agentWrites.Close(); err != nil {
			w.Error(err)
		}
		<-read
	})
	return p
}

// read hands out what the sidecar writes.
func (p *peer) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
			p.t.Errorf("the sidecar wrote %.200s: %v", line, err)
			continue
		}
		if m.Error != nil {
			p.page.checkError(p.t, line, m.Error)
		}
		switch {
		case m.Method != "":
			p.mu.Lock()
			p.called[m.Method] = true
			p.mu.Unlock()
			p.page.check(p.t, m.Method+" params", m.Params)
			p.asked <- m
		case string(m.ID) == "null":
			p.stray <- m
		default:
			p.mu.Lock()
			to := p.replies[string(m.ID)]
			method := p.methods[string(m.ID)]
			delete(p.replies, string(m.ID))
			p.mu.Unlock()
			if m.Error == nil {
				p.page.check(p.t, method+" result", m.Result)
			}
			if to == nil {
				p.t.Errorf("a reply to nothing: %.200s", line)
				continue
			}
			to <- m
		}
	}
}

// write writes one line.
func (p *peer) write(line []byte) {
	p.t.Helper()
	if _, err := p.w.Write(append(bytes.TrimSpace(line), '\n')); err != nil {
		p.t.Fatal(err)
	}
}

// begins sends a request and does not wait.
func (p *peer) begins(method string, params any) (id string, reply chan message) {
	p.t.Helper()
	p.mu.Lock()
	p.n++
	id = fmt.Sprint(p.n)
	reply = make(chan message, 1)
	p.replies[id] = reply
	p.called[method], p.methods[id] = true, method
	p.mu.Unlock()
	line, err := json.Marshal(object{"jsonrpc": "2.0", "id": p.n, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(line)
	return id, reply
}

// notifies sends a notification.
func (p *peer) notifies(method string, params any) {
	p.t.Helper()
	line, err := json.Marshal(object{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(line)
}

// calls sends a request and waits for its reply.
func (p *peer) calls(method string, params any) message {
	p.t.Helper()
	_, reply := p.begins(method, params)
	return take(p.t, method, reply)
}

// wants sends a request that succeeds, and returns its result.
func (p *peer) wants(method string, params any) object {
	p.t.Helper()
	m := p.calls(method, params)
	if m.Error != nil {
		p.t.Fatalf("%s: %d %s: %s", method, m.Error.Code, m.name(), m.Error.Message)
	}
	var result object
	if err := json.Unmarshal(m.Result, &result); err != nil {
		p.t.Fatalf("%s: %s: %v", method, m.Result, err)
	}
	return result
}

// fails sends a request that fails under a name.
func (p *peer) fails(name, method string, params any) message {
	p.t.Helper()
	m := p.calls(method, params)
	if m.name() != name {
		p.t.Fatalf("%s: error %q (%+v), want %q", method, m.name(), m.Error, name)
	}
	return m
}

// receives waits for a request or a notification of the sidecar.
func (p *peer) receives(method string) (m message, params object) {
	p.t.Helper()
	m = take(p.t, method, p.asked)
	if m.Method != method {
		p.t.Fatalf("the sidecar called %s %s, want %s", m.Method, m.Params, method)
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		p.t.Fatal(err)
	}
	return m, params
}

// replies answers a request of the sidecar: with an *sidecar.Error, or a result.
func (p *peer) answers(m message, result any) {
	p.t.Helper()
	reply := object{"jsonrpc": "2.0", "id": m.ID, "result": result}
	if e, ok := result.(*sidecar.Error); ok {
		delete(reply, "result")
		reply["error"] = e
	}
	line, err := json.Marshal(reply)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(line)
}

// dies ends the agent's stream without close, and waits for the end of the sidecar.
func (p *peer) dies() {
	p.t.Helper()
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.end(); !errors.Is(err, sidecar.ErrGone) {
		p.t.Fatalf("the sidecar ended with %v, want ErrGone", err)
	}
}

// end waits for the end of the sidecar.
func (p *peer) end() error {
	p.t.Helper()
	return take(p.t, "the end of the sidecar", p.ended)
}

func take[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing came", what)
		panic("not reached")
	}
}

// connected starts a sidecar with an agent that has opened its session.
func (w *world) connected(change ...func(*sidecar.Config)) *peer {
	w.Helper()
	p := w.begins(change...)
	p.wants("connect", object{"id": shop.Harness, "ttl_ms": 6000})
	p.wants("open", object{"session": shop.Session, "title": "Deploy the shop"})
	p.wants("ready", object{})
	return p
}

// works starts a sidecar with an agent that works.
func (w *world) works(options object, change ...func(*sidecar.Config)) (p *peer, id string, reply chan message) {
	w.Helper()
	p = w.connected(change...)
	id, reply = p.begins("work", options)
	return p, id, reply
}

func (w *world) request(name, verb string, body object) {
	w.Helper()
	body["harness"], body["session"] = shop.Harness, shop.Session
	if err := w.bus.Services.Request(w.ctx, name, verb, body, nil); err != nil {
		w.Fatal(err)
	}
}

// send sends a message of a person.
func (w *world) send(id, text string) {
	w.Helper()
	w.request("compaction", "send", object{"message": id, "content": text, "by": "ada"})
}

// answer answers the prompt that waits.
func (w *world) answer(question, label string) {
	w.Helper()
	st := w.until("a question", func(st *session.State) bool { return st.BlockedBy() != "" })
	answer := events.Answer{Question: question, Selected: []string{label}}
	w.request("ledger", "answer", object{"prompt": st.BlockedBy(), "by": "ada", "answers": []events.Answer{answer}})
}

func (w *world) until(what string, ok func(*session.State) bool) *session.State {
	w.Helper()
	return natstest.UntilSession(w, w.bus, shop, what, ok)
}

// outcome waits until a turn has ended and none is requested.
func (w *world) outcome(want string) *session.State {
	w.Helper()
	st := w.until("the end of the turn", func(st *session.State) bool { return st.LastTurn != nil && st.Turn == nil })
	if st.LastTurn.Outcome != want {
		w.Fatalf("the turn ended as %s: %+v, want %s", st.LastTurn.Outcome, st.LastTurn.Error, want)
	}
	return st
}

// at returns the two fields that name a turn, with others.
func at(turn, more object) object {
	all := object{"session": turn["session"], "turn": turn["turn"]}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// prompt waits until a prompt waits for a decision.
func (w *world) prompt(id string) {
	w.Helper()
	w.until("prompt "+id, func(st *session.State) bool {
		return st.Prompts[id] != nil && st.Prompts[id].Status == session.Awaiting
	})
}

// compacted waits for the end of a compaction.
func (w *world) compacted(completed bool) *session.State {
	w.Helper()
	st := w.until("the end of the compaction", func(st *session.State) bool {
		return st.LastCompaction != nil && st.Compaction == nil
	})
	if got := st.LastCompaction.Outcome == session.OutcomeCompleted; got != completed {
		w.Errorf("the compaction ended as %+v", st.LastCompaction)
	}
	return st
}
