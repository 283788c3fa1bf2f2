// Package outage stops the broker of live agents with default settings, and starts it again. Their turns, calls,
// streams and questions continue, and a retry is made once. It also moves the services far away from the broker.
package outage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/test/service"
)

const (
	me         = "agent"
	longEnv    = "HOLDFAST_LONG"
	patience   = 5 * time.Minute // the time limit of a test's waits
	deltaEvery = 100 * time.Millisecond
	// checkedAfter is the time from the broker's return until the reconciler treats an owner without a lease as dead,
	// with the defaults: a TTL, the grace and the slow walk.
	checkedAfter = 15*time.Second + 5*time.Second + 5*time.Second
)

// The sessions' roles. Each session has one turn, which Work handles.
const (
	asks    = "asks"    // a question without a call, with a callback
	asksTo  = "asks-to" // a question whose answer is the result of a call
	calls   = "calls"   // a tool runs
	streams = "streams" // a model's answer is streamed
	fails   = "fails"   // the turn has failed, and is retried during the outage
)

var all = []string{asks, asksTo, calls, streams, fails}

// world is a broker with all services, and one agent.
type world struct {
	t      *testing.T
	ctx    context.Context
	server *embed.Server
	bus    *bus.Bus
	stop   func()       // ends the services
	leave  func() error // ends the agent

	running chan string   // each handler reports that it waits
	release chan struct{} // closed when tools and streams end

	mu    sync.Mutex
	begun map[string]int // the number of turns by session
}

// TestOutage shows R8: with the defaults, an outage of the broker of 1 to 120 s loses no open work of a live agent. The
// services either run through the outage or are started again with the broker, as in `holdfast up`.
func TestOutage(t *testing.T) {
	outages := []time.Duration{time.Second, 20 * time.Second}
	if os.Getenv(longEnv) != "" {
		outages = []time.Duration{time.Second, 5 * time.Second, 11 * time.Second, 20 * time.Second, 40 * time.Second,
			120 * time.Second}
	}
	for _, d := range outages {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, services restarted %t", d, restarted), func(t *testing.T) {
				// most of the time it waits
				t.Parallel()
				newWorld(t).rides(d, restarted)
			})
		}
	}
}

// rides runs one outage.
func (w *world) rides(d time.Duration, restarted bool) {
	w.work()
	before := map[string]*session.State{}
	for range len(all) - 1 {
		<-w.running
	}
	w.until(fails, "the retry", func(st *session.State) bool { return st.Retry.State == session.RetryScheduled })
	for _, id := range all {
		before[id] = w.state(id)
	}
	if restarted {
		w.stop()
		w.bus.Close()
	}
	w.server.Shutdown()
	<-time.After(d)
	w.server = natstest.Restart(w.t, w.server)
	if restarted {
		w.bus = natstest.Bus(w.t, w.server)
		w.stop = service.Run(w.t, w.bus)
	}
	back := time.Now()
	w.answer(asks, "blue")
	w.answer(asksTo, "red")
	for _, id := range []string{asks, asksTo} {
		w.until(id, "the end", func(st *session.State) bool { return st.LastTurn != nil })
	}
	w.until(fails, "the retry's end", func(st *session.State) bool {
		return st.LastTurn != nil && st.LastTurn.Outcome == session.OutcomeCompleted
	})
	// By now the reconciler would have recovered the sessions.
	<-time.After(time.Until(back.Add(checkedAfter)))
	close(w.release)
	for _, id := range all {
		w.check(id, before[id], w.until(id, "the end",
			func(st *session.State) bool { return st.LastTurn != nil && st.Turn == nil }))
	}
	w.ok(w.leave())
	w.stop()
}

// check compares a session before the outage with its end.
func (w *world) check(id string, before, st *session.State) {
	w.t.Helper()
	begun := 1
	if id == fails {
		begun = 2
	} else if before.Turn == nil || st.LastTurn.ID != before.Turn.ID {
		w.t.Errorf("%s: turn %+v was open, but another turn ended: %+v", id, before.Turn, st.LastTurn)
	}
	w.mu.Lock()
	if n := w.begun[id]; n != begun {
		w.t.Errorf("%s: %d turns were begun, want %d", id, n, begun)
	}
	w.mu.Unlock()
	if st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 {
		w.t.Errorf("%s: %+v, ignored %+v", id, st.LastTurn, st.Ignored.Last)
	}
	want := map[events.Kind]int{}
	switch id {
	case asks:
		want["prompt.requested"], want["prompt.answered"] = 1, 1
	case asksTo:
		want["prompt.requested"], want["prompt.answered"], want["tool.completed"] = 1, 1, 1
	case calls:
		want["tool.completed"] = 1
	case fails:
		want["turn.failed"], want["retry.scheduled"] = 1, 1
	}
	counts := w.countKinds(id)
	for _, k := range []events.Kind{"prompt.answered", "prompt.withdrawn", "prompt.expired", "tool.completed",
		"tool.interrupted", "turn.interrupted", "turn.failed",
		"turn.stopped", "retry.scheduled", "retry.abandoned", "session.orphaned"} {
		if counts[k] != want[k] {
			w.t.Errorf("%s: %d × %s, want %d", id, counts[k], k, want[k])
		}
	}
}

// work starts the agent with the defaults, and one turn in each session.
func (w *world) work() {
	w.t.Helper()
	h, err := harness.Connect(w.ctx, harness.Config{ID: me, URL: w.server.URL()})
	w.ok(err)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	w.leave = func() error {
		cancel()
		return errors.Join(<-done, h.Close(w.ctx))
	}
	for _, id := range all {
		_, err := h.Open(w.ctx, id, harness.OpenOptions{})
		w.ok(err)
	}
	w.ok(h.Ready(w.ctx))
	go func() { done <- h.Work(ctx, harness.Worker{Turn: w.turn}) }()
	for _, id := range all {
		_, err := h.Send(w.ctx, harness.Message{Session: id, Content: "go", By: "ada"})
		w.ok(err)
	}
}

// turn handles the turn of each of the agent's sessions.
func (w *world) turn(ctx context.Context, t *harness.Turn) error {
	id := t.Session().ID()
	w.mu.Lock()
	w.begun[id]++
	first := w.begun[id] == 1
	w.mu.Unlock()
	switch id {
	case asks:
		w.running <- id
		return answered(t.Ask(ctx, harness.Prompt{ID: "p", Questions: question(),
			OnOwnerLoss: events.LossKeep}))("blue")
	case asksTo:
		call, err := t.Tool(ctx, harness.ToolOptions{Name: "ask_user"})
		if err != nil {
			return err
		}
		w.running <- id
		if err := answered(t.Ask(ctx, harness.Prompt{ID: "p", Call: call.ID(),
			Questions: question()}))("red"); err != nil {
			return err
		}
		return call.Complete(ctx, "red")
	case calls:
		call, err := t.Tool(ctx, harness.ToolOptions{Name: "make"})
		if err != nil {
			return err
		}
		w.running <- id
		select {
		case <-w.release:
			return call.Complete(ctx, "made")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case streams:
		return w.stream(ctx, t)
	}
	if first {
		return &harness.FailureError{Failure: events.Failure{Kind: "rate_limit", Text: "slow down",
			RetryAfterMS: time.Second.Milliseconds()}}
	}
	return nil
}

// stream is a model's answer that continues until it is released.
func (w *world) stream(ctx context.Context, t *harness.Turn) error {
	m := t.Stream()
	tick := time.NewTicker(deltaEvery)
	defer tick.Stop()
	w.running <- streams
	for {
		select {
		case <-tick.C:
			m.Delta(true)
		case <-w.release:
			m.Finish("stop")
			return m.Err(nil)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// answered returns an error if a question was not settled with the answer.
func answered(a harness.Answer, err error) func(want string) error {
	return func(want string) error {
		if err == nil && (len(a.Answers) != 1 || a.Answers[0].Text != want) {
			err = fmt.Errorf("settled as %+v, want the answer %q", a, want)
		}
		return err
	}
}

func question() []events.Question {
	return []events.Question{{ID: "q", Question: "Which colour?", Custom: true}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	server := natstest.Start(t)
	w := &world{t: t, ctx: ctx, server: server, bus: natstest.Bus(t, server), running: make(chan string, len(all)),
		release: make(chan struct{}), begun: map[string]int{}}
	w.stop = service.Run(w.t, w.bus)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func ref(id string) events.Ref { return events.Ref{Harness: me, Session: id} }

// state returns a session folded from its log.
func (w *world) state(id string) *session.State {
	w.t.Helper()
	return natstest.Session(w.t, w.bus, ref(id))
}

func (w *world) until(id, what string, ok func(*session.State) bool) *session.State {
	w.t.Helper()
	return natstest.UntilSession(w.t, w.bus, ref(id), what, ok)
}

// countKinds returns the number of facts in the session's log by kind.
func (w *world) countKinds(id string) map[events.Kind]int {
	w.t.Helper()
	cs, err := w.bus.Log.Read(w.ctx, ref(id), 0)
	w.ok(err)
	n := map[events.Kind]int{}
	for _, c := range cs {
		for _, e := range c.Events {
			n[e.Kind]++
		}
	}
	return n
}

// answer answers the session's question as soon as the ledger accepts it.
func (w *world) answer(id, text string) {
	w.t.Helper()
	req := map[string]any{"harness": me, "session": id, "prompt": "p", "by": "ada",
		"answers": []events.Answer{{Question: "q", Text: text}}}
	natstest.Until(w.t, "the answer to "+id, func() bool {
		err := w.bus.Services.Request(w.ctx, ledger.Name, "answer", req, nil)
		refusal, refused := errors.AsType[*events.Refusal](err)
		if refused && refusal.Code != 503 {
			w.t.Fatalf("%s cannot be answered: %v", id, err)
		}
		return err == nil
	})
}
