// Package sidecar serves the client for agent harnesses to a program in another language: JSON-RPC 2.0, one message a
// line, over a pair of pipes or a unix socket. One connection is one process of a harness. [Verbs] lists the methods.
//
// The end of the agent's stream is the death of the agent: the harness is abandoned before anything else, so that
// nothing that follows from the death is stored as the agent's doing.
package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// Protocol is the version of the methods; connect returns it.
const Protocol = 1

// Limits of a connection.
const (
	LineBytesMax  = 65 << 20 // of a message of the agent: the largest content, and its frame
	RequestsMax   = 1024     // requests and steps of the agent at once
	refusalsMax   = 4096     // short replies that wait for an agent that does not read
	leaveMax      = 10 * time.Second
	connectMax    = 10 * time.Second
	requestPrefix = "s" // ids of the sidecar's requests begin with it
)

// Errors of a connection.
var (
	// ErrGone says that the agent's stream ended without close: the agent is dead.
	ErrGone = errors.New("the agent has gone without close")
	// ErrShutdown is the cause of contexts when the sidecar is asked to end.
	ErrShutdown = errors.New("the sidecar was asked to end")
	// errCancelled is the cause of a request that the agent has cancelled.
	errCancelled = errors.New("cancelled by the agent")
	// errNotConnected says that connect comes first.
	errNotConnected = errors.New("not connected: call connect first")
	// errConnected says that a connection is one process of one harness.
	errConnected = errors.New("connected already: one connection is one process")
	// errBusy says that too many requests run.
	errBusy = fmt.Errorf("%d requests and steps run already: wait for some", RequestsMax)
	// errNoReader says that the agent sends and does not read.
	errNoReader = errors.New("the agent does not read its replies")
)

// Config says how the harnesses of the agents reach their cell.
type Config struct {
	Harness        harness.Config // connection and log; the agent names the rest in connect
	ConnectTimeout time.Duration  // how long connect tries to reach the broker; 0: 10 s
	LeaveTimeout   time.Duration  // of an orderly end: for the turns, and then for the harness; 0: 10 s
	// Orphaned is closed when the process of the agent has ended: a child of it may hold its stream open. nil: only the
	// end of the stream is the death of the agent.
	Orphaned <-chan struct{}
}

// agent is one connection: a process in another language.
type agent struct {
	cfg   Config
	log   *slog.Logger
	verbs map[string]*Verb
	out   writer
	ctx   context.Context // of all requests; ends after the harness was left
	dead  chan struct{}   // closed when the agent's stream has ended
	gone  chan struct{}   // closed after the harness was left: what waits for the agent gives up
	over  context.CancelCauseFunc

	refusals chan message // short replies, written apart, so that reading never waits for the agent to read

	mu       sync.Mutex
	h        *harness.Harness
	phase    connection
	dial     context.CancelFunc // ends the connect under way
	left     chan struct{}      // closed when an orderly end is done
	stopWork context.CancelCauseFunc
	workDone chan struct{}
	inflight map[string]context.CancelCauseFunc // requests of the agent, by id
	waiting  map[string]chan<- message          // requests of the sidecar, by id
	steps    map[string]*step
	sessions map[string]*held
	broken   error  // why the agent cannot be written to
	asked    uint64 // requests of the sidecar so far
	begun    uint64 // steps so far
}

// connection is how far a connection has come.
type connection int

const (
	apart      connection = iota // before connect
	connecting                   // connect runs
	connected                    // the harness lives
	leaving                      // an orderly end has begun
	ended                        // the harness was left
)

// Serve runs one connection until the agent's stream ends, or ctx ends, and then closes out if that is an io.Closer. It
// returns nil after an orderly end: the agent has called close or never connected, or ctx ended. After another end of
// the stream the error is ErrGone, with what was wrong.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = connectMax
	}
	if cfg.LeaveTimeout <= 0 {
		cfg.LeaveTimeout = leaveMax
	}
	if cfg.Harness.Log == nil {
		cfg.Harness.Log = slog.New(slog.DiscardHandler)
	}
	run, over := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &agent{cfg: cfg, log: cfg.Harness.Log, verbs: map[string]*Verb{}, out: writer{w: out}, ctx: run, over: over,
		dead: make(chan struct{}), gone: make(chan struct{}), refusals: make(chan message, refusalsMax),
		inflight: map[string]context.CancelCauseFunc{}, waiting: map[string]chan<- message{},
		steps: map[string]*step{}, sessions: map[string]*held{}}
	for _, v := range methods() {
		a.verbs[v.Name] = v
	}
	go a.refuse()
	// the rest is as the end of the stream, also while the stream stays open
	read := make(chan error, 2)
	go func() { read <- a.read(in) }()
	go func() {
		select {
		case <-cfg.Orphaned:
			read <- nil
		case <-a.gone:
		}
	}()
	var err error
	select {
	case err = <-read:
		err = a.die(err)
	case <-a.gone:
		err = a.die(nil)
	case <-ctx.Done():
		done := make(chan struct{})
		go func() { a.shutDown(); close(done) }()
		select {
		case <-done:
		case err = <-read:
			// the agent died meanwhile
			err = a.die(err)
		}
	}
	// releases a write that waits for an agent that does not read
	if c, ok := out.(io.Closer); ok {
		err = errors.Join(err, a.out.close(c))
	}
	return err
}

// die ends the connection of an agent whose stream ended. Nothing is stored for it any more; an orderly end that it has
// asked for is finished.
func (a *agent) die(cause error) error {
	close(a.dead)
	a.mu.Lock()
	was, left, h := a.phase, a.left, a.h
	// a connect may not have begun yet
	lived := was == connected || len(a.inflight) > 0
	cause = errors.Join(cause, a.broken)
	if was != leaving {
		a.phase = ended
	}
	a.mu.Unlock()
	switch {
	case was == leaving:
		<-left
	case h != nil:
		// before anything else: what a request of the dead returns now must not be stored
		h.Abandon()
	}
	a.end(ErrGone)
	if was != leaving && (lived || cause != nil) {
		return errors.Join(ErrGone, cause)
	}
	return nil
}

// end lets everything go that waits for the agent. The harness was left before.
func (a *agent) end(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase = ended
	select {
	case <-a.gone:
	default:
		close(a.gone)
	}
	a.over(cause)
}

// shutDown ends the connection in order, on the request of an operator. The turns are cancelled, and have a while to
// end.
func (a *agent) shutDown() {
	go a.notify(methodShutdown, struct{}{})
	if err := a.leave(ErrShutdown)(); err != nil && !errors.Is(err, errNotConnected) {
		a.log.Warn("the sidecar ends, and its sessions are not all released", "err", err)
	}
	a.end(ErrShutdown)
}

// leave begins an orderly end, and returns what finishes it: the end of work, and then of the harness. A second one
// waits for the first.
func (a *agent) leave(cause error) (finish func() error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.phase {
	case apart, ended:
		return func() error { return errNotConnected }
	case connecting:
		// connect abandons what it gets
		a.phase = ended
		a.dial()
		return func() error { return nil }
	case leaving:
		left := a.left
		return func() error { <-left; return nil }
	}
	a.phase, a.left = leaving, make(chan struct{})
	h, stop, done := a.h, a.stopWork, a.workDone
	return func() error {
		defer close(a.left)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), a.cfg.LeaveTimeout)
		defer cancel()
		if stop != nil {
			stop(cause)
			select {
			case <-done:
			case <-a.dead:
				// it does not end its turns: recovery does
			case <-ctx.Done():
			}
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), a.cfg.LeaveTimeout)
		defer cancel()
		return h.Close(last)
	}
}

// harness returns the harness of the connection.
func (a *agent) harness() (*harness.Harness, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.h == nil {
		return nil, errNotConnected
	}
	return a.h, nil
}

// read handles the agent's messages until its stream ends. It waits for nothing else, so that the end is noticed at
// once.
func (a *agent) read(in io.Reader) error {
	r := newLines(in)
	for {
		line, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTooLong):
			err = a.reject(nil, codeTooLarge, err)
		case len(line) > 0:
			// without an error
			err = a.handle(line)
		}
		if err != nil {
			return err
		}
	}
}

// handle handles one line.
func (a *agent) handle(line []byte) error {
	if !json.Valid(line) {
		return a.reject(nil, codeParse, errNotJSON)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return a.reject(nil, codeInvalid, errNotMessage)
	}
	switch {
	case m.JSONRPC != "2.0":
		return a.reject(m.replyID(), codeInvalid, errNotMessage)
	case m.Method == nil:
		return a.reply(m)
	case m.ID == nil:
		a.notified(*m.Method, m.Params)
		return nil
	case m.replyID() == nil:
		return a.reject(nil, codeInvalid, errID)
	}
	return a.request(m)
}

// request runs a request of the agent.
func (a *agent) request(m message) error {
	v := a.verbs[*m.Method]
	if v == nil {
		return a.reject(m.ID, codeNoMethod, fmt.Errorf("there is no method %q", clip(*m.Method)))
	}
	params, err := v.read(m.Params)
	if err != nil {
		return a.reject(m.ID, codeParams, fmt.Errorf("%s: %w", v.Name, err))
	}
	ctx, cancel := context.WithCancelCause(a.ctx)
	id := string(m.ID)
	a.mu.Lock()
	twice := a.inflight[id] != nil
	full := len(a.inflight)+len(a.steps) >= RequestsMax
	if !twice && !full {
		a.inflight[id] = cancel
	}
	a.mu.Unlock()
	switch {
	case twice:
		// a reply under this id would be taken for that of the first one
		cancel(nil)
		return a.reject(nil, codeInvalid, fmt.Errorf("a request with the id %s runs already", clip(id)))
	case full:
		cancel(nil)
		return a.reject(m.ID, codeBusy, errBusy)
	}
	run := func() (any, error) { return v.run(a, ctx, params) }
	switch {
	case v.inline:
		// in the order of the messages; it does not wait
		result, err := run()
		run = func() (any, error) { return result, err }
	case v.Name == methodClose:
		// begun before the end of the stream is read, which may follow it
		finish := a.leave(errCancelled)
		run = func() (any, error) {
			if err := finish(); err != nil {
				return nil, err
			}
			return Nothing{}, nil
		}
	}
	go func() {
		result, err := run()
		a.mu.Lock()
		// before the reply: the agent may use the id again after it
		delete(a.inflight, id)
		a.mu.Unlock()
		cancel(nil)
		// an error has ended the harness
		_ = a.write(answer(m.ID, result, err))
	}()
	return nil
}

// notified handles a notification of the agent: what only a reply would make certain is not run.
func (a *agent) notified(method string, raw json.RawMessage) {
	v := a.verbs[method]
	if v == nil || !v.inline {
		a.log.Warn("a notification of the agent is ignored: without an id its outcome has no reader", "id",
			clip(method))
		return
	}
	params, err := v.read(raw)
	if err == nil {
		_, err = v.run(a, a.ctx, params)
	}
	if err != nil {
		a.log.Warn("a notification of the agent had no effect", "id", method, "err", err)
	}
}

// cancelRequest ends the context of a request of the agent.
func (a *agent) cancelRequest(id json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.inflight[string(id)]; cancel != nil {
		cancel(errCancelled)
	}
}

// reply hands a reply of the agent to the request that waits for it.
func (a *agent) reply(m message) error {
	if (m.Result == nil) == (m.Error == nil) {
		return a.reject(m.replyID(), codeInvalid, errNotMessage)
	}
	var id string
	// nothing waits under an id that is no text
	_ = json.Unmarshal(m.ID, &id)
	a.mu.Lock()
	to := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if to == nil {
		a.log.Warn("a reply of the agent is ignored: nothing waits for it", "id", clip(string(m.ID)))
		return nil
	}
	to <- m
	return nil
}

// ask sends a request to the agent and waits for its reply: however long that takes, or until the agent is gone. It
// calls sent after the request was written. A request that cannot be written has no reply: it waits, too, until the
// harness was left, because an error that returns earlier would be stored as the agent's.
func (a *agent) ask(method string, params any, sent func()) (message, error) {
	reply := make(chan message, 1)
	a.mu.Lock()
	a.asked++
	id := requestPrefix + strconv.FormatUint(a.asked, 10)
	a.waiting[id] = reply
	a.mu.Unlock()
	if a.send(method, json.RawMessage(strconv.Quote(id)), params) == nil {
		sent()
	}
	select {
	case m := <-reply:
		return m, nil
	case <-a.gone:
		return message{}, ErrGone
	}
}

// notify sends a notification to the agent.
func (a *agent) notify(method string, params any) {
	// an error has ended the harness
	_ = a.send(method, nil, params)
}

func (a *agent) send(method string, id json.RawMessage, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return a.write(message{JSONRPC: "2.0", ID: id, Method: &method, Params: raw})
}

// write writes a message. It waits for an agent that does not read. An agent that cannot be written to is as good as
// dead: the harness is abandoned.
func (a *agent) write(m message) error {
	err := a.out.write(m)
	if err != nil {
		a.lost(err)
	}
	return err
}

// lost ends the harness of an agent that cannot be written to.
func (a *agent) lost(err error) {
	a.mu.Lock()
	h, was := a.h, a.phase
	if was == leaving || was == ended {
		a.mu.Unlock()
		return
	}
	a.phase, a.broken = ended, err
	a.mu.Unlock()
	a.log.Warn("the agent cannot be written to: its harness is abandoned", "err", err)
	go func() {
		if h != nil {
			h.Abandon()
		}
		a.end(ErrGone)
	}()
}

// reject replies with an error without waiting. An agent that has so many of them and does not read is ended.
func (a *agent) reject(id json.RawMessage, code int, err error) error {
	select {
	case a.refusals <- refusal(id, code, err):
		return nil
	default:
		return errNoReader
	}
}

// refuse writes the short replies.
func (a *agent) refuse() {
	for {
		select {
		case m := <-a.refusals:
			// an error has ended the harness
			_ = a.write(m)
		case <-a.gone:
			return
		}
	}
}
