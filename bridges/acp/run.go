package acp

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
)

// Limits of a runner.
const (
	outboxBytesMax = 16 << 20              // that wait for a peer; then its other side is not read
	moreWait       = 50 * time.Millisecond // how long a call that is announced waits for its input
	goodbyeWait    = 3 * time.Second       // for the last facts, and for the end of the lease
	deliverWait    = time.Second           // for the last lines to the editor
)

// Runner runs a [Proxy] between an editor, on its input and output, and a process of an agent. It appends the facts of
// a step, then sends its lines.
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
	In     io.Reader // of the editor
	Out    io.Writer
	// Say tells the user a sentence.
	Say func(sentence string)
}

// EndedError says that the agent's process ended by itself.
type EndedError struct{ Reason string }

// Error implements error.
func (e *EndedError) Error() string { return "acp: the agent's process ended: " + e.Reason }

// run is one run.
type run struct {
	*Runner
	proxy   *Proxy
	process *agent.Process
	editor  *outbox
	toAgent *outbox
	store   *store
	gone    bool // the editor has left
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
	st := newStore(cfg, r.Wait, r.Say)
	if r.Require {
		first, cancel := context.WithTimeout(ctx, r.Connect)
		defer cancel()
		if err := st.connect(first); err != nil {
			return err
		}
	}
	process, err := agent.Start(r.Command)
	if err != nil {
		st.leave(goodbyeWait, "")
		return err
	}
	if !r.Require {
		st.connectLater()
	}
	x := &run{Runner: r, proxy: New(Config{Run: rand.Text()[:12], Content: r.Content}), process: process,
		editor: newOutbox(), toAgent: newOutbox(), store: st}
	go x.toAgent.write(process.Send)
	go x.editor.write(func(line []byte) error {
		_, err := r.Out.Write(append(slices.Clip(line), '\n'))
		return err
	})
	return x.loop(ctx)
}

// loop hands lines and decisions to the proxy, one after the other.
func (x *run) loop(ctx context.Context) error {
	inputs := make(chan input)
	stop := make(chan struct{})
	defer close(stop)
	go readLines(x.In, inputs, stop)
	more := time.NewTimer(moreWait)
	defer more.Stop()
	var linger <-chan time.Time
	stopping := false
	end := func() {
		if !stopping {
			stopping = true
			go x.process.Stop()
		}
	}
	done := ctx.Done()
	for {
		editor, lines := inputs, x.process.Lines()
		if x.toAgent.full() || x.gone {
			editor = nil
		}
		if x.editor.full() && !x.gone {
			lines = nil
		}
		select {
		case in := <-editor:
			if in.err == nil {
				x.do(x.proxy.FromEditor(time.Now(), in.line))
				continue
			}
			if !errors.Is(in.err, io.EOF) {
				x.Say("the editor's input cannot be read: " + in.err.Error())
			}
			x.gone = true
			x.do(x.proxy.EditorLeft(time.Now()))
			linger = time.After(x.Linger)
		case line, ok := <-lines:
			if !ok {
				<-x.process.Done()
				return x.ended(stopping)
			}
			x.do(x.proxy.FromAgent(time.Now(), line))
			more.Reset(moreWait)
		case <-more.C:
			x.do(x.proxy.Flush())
		case d := <-x.store.decided:
			x.decided(d)
		case id := <-x.store.stops:
			x.do(x.proxy.Stop(time.Now(), id))
		case <-x.editor.drained:
		case <-x.toAgent.drained:
		case <-linger:
			x.Say("the editor has left, and the turn has not ended in time: the agent is ended")
			end()
		case <-done:
			done = nil
			end()
		}
		if x.gone && !x.proxy.busy() {
			end()
		}
	}
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
			for _, f := range x.store.append(s) { // the editor's answers count as they are
				if id, a, ok := answerOf(f); ok {
					x.do(x.proxy.Decided(time.Now(), id, a))
				}
			}
		}
		for _, l := range s.Lines {
			if l.To == Agent {
				x.toAgent.put(l.Raw)
			} else if !x.gone {
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
	if q := x.proxy.prompts[d.prompt]; q != nil && q.said != nil {
		if id, a, ok := answerOf(q.said); ok {
			x.do(x.proxy.Decided(time.Now(), id, a))
		}
	}
}

// busy reports whether a turn is open.
func (p *Proxy) busy() bool {
	for _, s := range p.sessions {
		if s.turn != nil {
			return true
		}
	}
	return false
}

// ended ends the run: the agent's process has ended, and its lines are read.
func (x *run) ended(asked bool) error {
	x.do(x.proxy.Flush())
	why := x.process.Exit()
	x.do(x.proxy.AgentExited(time.Now(), why))
	if asked {
		x.store.leave(goodbyeWait, "")
	} else {
		x.store.leave(goodbyeWait, "the agent's process ended: "+why)
	}
	for _, s := range x.proxy.AgentGone(time.Now(), why) { // recovery has recorded the ends
		s.Session = ""
		x.do([]Step{s})
	}
	x.editor.end(deliverWait)
	x.toAgent.end(0)
	if asked {
		return nil
	}
	return &EndedError{why}
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
		if err != nil { // the peer has left: its end is noticed elsewhere
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
