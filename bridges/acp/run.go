package acp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
)

// Limits of a runner.
const (
	outboxBytesMax = 16 << 20               // that wait for a peer; then its other side is not read
	moreWait       = 50 * time.Millisecond  // how long a call that is announced waits for its input
	goodbyeWait    = 3 * time.Second        // for the last facts, and for the end of the lease
	deliverWait    = time.Second            // for the last lines to the editor
	restartMin     = 250 * time.Millisecond // before the first restart of the agent; then twice as long each time
	restartMax     = 8 * time.Second
	restoreMax     = time.Minute // without a line of an agent that is restored
)

// Runner runs a [Proxy] between an editor, on its input and output, and a process of an agent. It appends the facts of
// a step, then sends its lines. It does not read the editor while 16 MiB wait for an agent that does not read: as in a
// pipe, the agent gets no cancellation then, and the end of the editor is noticed when the agent reads again.
//
// The agent works without a broker. A fact waits for at most Wait until it is stored; then its lines are sent all the
// same, and a prompt that is stored later says so: `late` in its native data. While a session is behind, nothing waits
// for it.
type Runner struct {
	Command agent.Command
	Harness harness.Config // a pool: each editor has a process of its own
	Content agent.Content
	// Require refuses to start the agent before the broker is reachable, for at most Connect.
	Require bool
	Connect time.Duration
	// Wait is how long a fact may take.
	Wait time.Duration
	// Linger is how long the agent may end its turns after the editor has left.
	Linger time.Duration
	// Restarts is how often the agent is started again, when its process has ended by itself, before it has ended a
	// turn. An agent that has not replied to initialize, or that can neither load nor resume a session, is not started
	// again.
	Restarts int
	// AskTool is the command of the question tool, which runs an [AskTool]. Sessions of the agent get it. Empty: they
	// do not.
	AskTool []string
	In      io.Reader // of the editor
	Out     io.Writer
	// Warn tells the user a sentence.
	Warn func(sentence string)

	restoreWait time.Duration // default: a minute

	// Of a [Headless]: it takes its session before the agent is started, and names turns that the log has begun.
	takes func(context.Context, *store) error
	turns chan requested
}

// EndedError says that the agent's process ended by itself, and is not started again.
type EndedError struct{ Reason string }

// Error implements error.
func (e *EndedError) Error() string { return "the agent's process ended: " + e.Reason }

// run is one run.
type run struct {
	*Runner
	proxy   *Proxy
	process *agent.Process
	editor  *outbox
	toAgent *outbox
	store   *store
	tools   *tools // nil: agents get no question tool
	gone    bool   // the editor has left
	ends    bool   // the agent is being ended
	fault   error

	down     bool   // the process has ended, and its lines are read
	why      string // it has
	restarts int    // since the agent has ended a turn
	replies  int    // to prompt requests, at the last restart

	exited, over  <-chan struct{}  // the process has ended; its lines are read, too
	linger, again <-chan time.Time // the editor's time is over; the agent is started again
	fromTools     <-chan toolLine  // of question tools
	more, mute    *time.Timer      // no further line of the agent is there; for long
}

// input is a line of the editor, or the end of its input.
type input struct {
	line []byte
	err  error
}

// Run runs until the agent has ended, the editor has left, or ctx ends. It returns an [*EndedError] if the agent ended
// by itself.
func (r *Runner) Run(ctx context.Context) error {
	cfg := r.Harness
	cfg.Pool = true
	if err := cfg.Validate(); err != nil {
		return err
	}
	st := newStore(cfg, r.Wait, r.Warn)
	if r.Require {
		first, cancel := context.WithTimeout(ctx, r.Connect)
		defer cancel()
		if err := st.connect(first); err != nil {
			return err
		}
	}
	if r.takes != nil {
		if err := r.takes(ctx, st); err != nil {
			st.leave(goodbyeWait, "")
			return err
		}
	}
	proxied := Config{Run: rand.Text()[:12], Content: r.Content}
	// else no person could read the question
	if !r.Content.Hidden() {
		proxied.Forms = st.reached
	}
	var asking *tools
	if len(r.AskTool) > 0 {
		var err error
		if asking, err = listenTools(); err != nil {
			st.leave(goodbyeWait, "")
			return err
		}
		defer asking.close()
		proxied.AskTool = func(key string) json.RawMessage { return r.askServer(asking.address(key)) }
	}
	process, err := agent.Start(r.Command)
	if err != nil {
		st.leave(goodbyeWait, "")
		return err
	}
	if !r.Require {
		st.connectLater()
	}
	own := *r
	x := &run{Runner: &own, proxy: New(proxied), process: process, tools: asking,
		exited: process.Exited(), editor: newOutbox(), toAgent: newOutbox(), store: st}
	if asking != nil {
		x.fromTools = asking.lines
	}
	go x.toAgent.write(process.Send)
	go x.editor.write(func(line []byte) error {
		_, err := r.Out.Write(append(slices.Clip(line), '\n'))
		return err
	})
	return x.loop(ctx)
}

// askServer returns the question tool as an MCP server of the protocol.
func (r *Runner) askServer(address string) json.RawMessage {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	return encode(struct {
		Name    string     `json:"name"`
		Command string     `json:"command"`
		Args    []string   `json:"args"`
		Env     []variable `json:"env"`
	}{askServer, r.AskTool[0], r.AskTool[1:], []variable{{AskVariable, address}}})
}

// loop hands lines and decisions to the proxy, one after the other.
func (x *run) loop(ctx context.Context) error {
	inputs := make(chan input)
	stop := make(chan struct{})
	defer close(stop)
	go readLines(x.In, inputs, stop)
	x.restoreWait = cmp.Or(x.restoreWait, restoreMax)
	x.more, x.mute = time.NewTimer(moreWait), time.NewTimer(x.restoreWait)
	defer x.more.Stop()
	defer x.mute.Stop()
	done := ctx.Done()
	for {
		editor, lines := inputs, x.process.Lines()
		if x.toAgent.full() || x.gone || x.fault != nil {
			editor = nil
		}
		if x.over != nil || x.down || x.editor.full() && !x.gone && !x.ends && x.exited != nil {
			lines = nil
		}
		select {
		case in := <-editor:
			x.fromEditor(in)
		case line, ok := <-lines:
			x.fromAgent(line, ok)
		case <-x.over:
			x.died()
		case <-x.again:
			x.restart()
		case <-x.mute.C:
			x.endHanging()
		case <-x.exited:
			// the process has ended, and the rest of its output is limited
			x.exited = nil
		case <-x.more.C:
			x.do(x.proxy.Flush())
		case d := <-x.store.decided:
			x.decided(d)
		case s := <-x.store.stops:
			x.stopped(s)
		case in := <-x.store.inherited:
			x.do(x.proxy.Inherit(time.Now(), in))
		case l := <-x.fromTools:
			x.asked(l)
		case b := <-x.turns:
			x.store.begun(b.turn)
			x.proxy.Requested(b.id, b.turn.ID())
		case <-x.editor.drained:
		case <-x.toAgent.drained:
		case <-x.linger:
			x.Warn("the editor has left, and the turn has not ended in time: the agent is ended")
			x.end()
		case <-done:
			done = nil
			x.end()
		}
		if x.gone && !x.proxy.busy() {
			x.end()
		}
		if x.down && (x.ends || x.again == nil) {
			return x.ended()
		}
	}
}

// stopped has a turn stopped that was stopped outside of the editor.
func (x *run) stopped(s stopped) {
	if s.ended {
		x.do(x.proxy.TurnEnded(time.Now(), s.turn, firstOf(s.reason, reasonStopped)))
		return
	}
	x.do(x.proxy.Stop(time.Now(), s.turn, s.actor, s.reason))
}

// end ends the agent.
func (x *run) end() {
	if !x.ends {
		x.ends = true
		go x.process.Stop()
	}
}

// fromEditor takes in a line of the editor, or the end of its input.
func (x *run) fromEditor(in input) {
	if in.err == nil {
		x.do(x.proxy.FromEditor(time.Now(), in.line))
		return
	}
	if !errors.Is(in.err, io.EOF) {
		x.Warn("the editor's input cannot be read: " + in.err.Error())
	}
	// the editor is there: its requests get an error
	if errors.Is(in.err, agent.ErrLineTooLong) {
		x.fault = fmt.Errorf("the editor's input: %w", in.err)
		x.end()
		return
	}
	x.gone = true
	x.do(x.proxy.EditorLeft(time.Now()))
	x.linger = time.After(x.Linger)
}

// fromAgent takes in a line of the agent, or the end of its lines.
func (x *run) fromAgent(line []byte, ok bool) {
	if !ok {
		x.over = x.process.Done()
		return
	}
	x.do(x.proxy.FromAgent(time.Now(), line))
	x.more.Reset(moreWait)
	x.mute.Reset(x.restoreWait)
}

// endHanging ends a process of the agent that does not reply while it is restored.
func (x *run) endHanging() {
	if x.proxy.hangs() {
		x.Warn("the agent does not reply while its sessions are loaded: its process is ended")
		x.process.Kill()
	}
	x.mute.Reset(x.restoreWait)
}

// died takes in the end of the agent's process, and decides when the next one is started.
func (x *run) died() {
	x.down, x.over, x.why = true, nil, x.process.Exit()
	x.do(x.proxy.AgentExited(time.Now(), x.why))
	x.toAgent.end(0)
	if x.again = x.pause(); x.again != nil {
		x.do(x.proxy.AgentReturns(time.Now(), x.why))
	}
}

// pause returns the pause before the agent is started again; nil: it is not.
func (x *run) pause() <-chan time.Time {
	if n := x.proxy.turns; n > x.replies {
		x.replies, x.restarts = n, 0
	}
	if x.ends || x.restarts >= x.Restarts || !x.proxy.canReturn() {
		return nil
	}
	wait := min(restartMin<<min(x.restarts, 10), restartMax)
	x.restarts++
	x.Warn(fmt.Sprintf("the agent's process ended (%s): it is started again in %s (%d of %d)", x.why, wait, x.restarts,
		x.Restarts))
	return time.After(wait)
}

// restart starts the next process of the agent, or decides when to try again.
func (x *run) restart() {
	process, err := agent.Start(x.Command)
	if err != nil {
		x.why = err.Error()
		x.again = x.pause()
		return
	}
	x.process, x.exited, x.toAgent = process, process.Exited(), newOutbox()
	if x.tools != nil {
		// the tools of the dead process are gone
		clear(x.tools.waits)
	}
	x.down, x.again = false, nil
	go x.toAgent.write(process.Send)
	x.mute.Reset(x.restoreWait)
	x.do(x.proxy.AgentStarted(time.Now()))
}

// readLines reads the editor's lines until its input ends.
func readLines(r io.Reader, to chan<- input, stop <-chan struct{}) {
	in := bufio.NewReader(r)
	for {
		line, err := agent.ReadLine(in)
		if len(line) > 0 || err == nil {
			select {
			case to <- input{line: line}:
			case <-stop:
				return
			}
		}
		if err != nil {
			select {
			case to <- input{err: err}:
			case <-stop:
			}
			return
		}
	}
}

// do carries steps out: the facts of each of them first, then its lines.
func (x *run) do(steps []Step) {
	for i := range steps {
		s := &steps[i]
		if s.Session != "" {
			// the editor's answers count as they are
			for _, f := range x.store.append(s) {
				if id, a, ok := answerOf(f); ok {
					x.do(x.proxy.Decided(time.Now(), id, a))
				}
			}
		}
		for _, l := range s.Lines {
			if l.To == Agent && x.tools.answers(l.Raw) {
				continue
			}
			if l.To == Agent {
				// a process that has ended gets no more
				x.toAgent.put(l.Raw)
			} else if !x.gone && !(x.ends && x.editor.full()) {
				// an editor that does not read stops no end
				x.editor.put(l.Raw)
			}
		}
	}
}

// decided hands a decision of the log to the proxy. If the log cannot say it, an answer of the editor counts as it is.
func (x *run) decided(d decision) {
	if !x.store.stands(d) {
		return
	}
	if d.err == nil {
		x.do(x.proxy.Decided(time.Now(), d.prompt, d.answer))
		return
	}
	if q := x.proxy.prompts[d.prompt]; q != nil && q.decision != nil {
		if id, a, ok := answerOf(q.decision); ok {
			x.do(x.proxy.Decided(time.Now(), id, a))
		}
	}
}

// busy reports whether a turn is open that the agent has, or has had.
func (p *Proxy) busy() bool {
	for _, s := range p.sessions {
		if s.turn != nil && !s.turn.inherited {
			return true
		}
	}
	return false
}

// ended ends the run: the agent's process has ended, and there is no next one.
func (x *run) ended() error {
	if x.ends {
		x.store.leave(goodbyeWait, "")
	} else {
		x.store.leave(goodbyeWait, "the agent's process ended: "+x.why)
	}
	// recovery has recorded the ends
	for _, s := range x.proxy.AgentGone(time.Now(), x.why) {
		s.Session = ""
		x.do([]Step{s})
	}
	x.editor.end(deliverWait)
	if x.ends {
		return x.fault
	}
	return &EndedError{x.why}
}

// outbox holds the lines for a peer until it reads them.
type outbox struct {
	drained chan struct{} // it is not full any more

	mu     sync.Mutex
	news   *sync.Cond
	lines  [][]byte
	bytes  int
	closed bool
	done   chan struct{}
}

func newOutbox() *outbox {
	o := &outbox{drained: make(chan struct{}, 1), done: make(chan struct{})}
	o.news = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) put(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.lines, o.bytes = append(o.lines, line), o.bytes+len(line)
		o.news.Signal()
	}
}

func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes > outboxBytesMax
}

// write sends the lines until the outbox is ended, or the peer does not read any more.
func (o *outbox) write(send func([]byte) error) {
	defer close(o.done)
	for {
		o.mu.Lock()
		for len(o.lines) == 0 && !o.closed {
			o.news.Wait()
		}
		if len(o.lines) == 0 {
			o.mu.Unlock()
			return
		}
		line := o.lines[0]
		o.lines = o.lines[1:]
		o.mu.Unlock()
		err := send(line)
		o.mu.Lock()
		o.bytes -= len(line)
		// the peer has left: its end is noticed elsewhere
		if err != nil {
			o.closed, o.lines, o.bytes = true, nil, 0
		}
		o.mu.Unlock()
		select {
		case o.drained <- struct{}{}:
		default:
		}
	}
}

// end sends what is left, for at most this long.
func (o *outbox) end(wait time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.news.Signal()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-time.After(wait):
	}
}
