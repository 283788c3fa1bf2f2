package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// folder is a minimal ledger: it folds the log into documents.
type folder struct {
	b     *bus.Bus
	cache map[events.Ref]*folded
}

type folded struct {
	state *session.State
	rev   uint64
}

func (f *folder) Takeover(context.Context) error { f.cache = map[events.Ref]*folded{}; return nil }

func (f *folder) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	touched := map[events.Ref]*folded{}
	for _, m := range ms {
		c := f.b.Log.Decode(m)
		d := f.cache[c.Ref]
		if d == nil {
			d = &folded{state: session.New(c.Ref)}
			if e, err := f.b.KV.Load(ctx, kv.State, events.SessionKey(c.Ref)); err == nil {
				if d.state, err = session.Decode(e.Value); err != nil {
					return 0, err
				}
				d.rev = e.Rev
			}
			f.cache[c.Ref] = d
		}
		d.state.Fold(&c)
		touched[c.Ref] = d
	}
	for r, d := range touched {
		doc, err := d.state.Encode()
		if err == nil {
			d.rev, err = f.b.KV.Store(ctx, kv.State, events.SessionKey(r), doc, d.rev)
		}
		if err != nil {
			delete(f.cache, r)
			return 0, err
		}
	}
	return len(ms), nil
}

// cell is a broker with a folder.
type cell struct {
	t   testing.TB
	ctx context.Context
	b   *bus.Bus
}

func newCell(t testing.TB, b *bus.Bus) *cell {
	c := &cell{t: t, b: b}
	var stop func()
	c.ctx, stop = context.WithCancel(context.Background())
	t.Cleanup(stop)
	c.fold()
	return c
}

// start starts a broker and a folder.
func start(t testing.TB) *cell { return newCell(t, natstest.Bus(t, natstest.Start(t))) }

// background runs a function until the test ends, and waits for its end.
func (c *cell) background(run func(context.Context) error) (stop func()) {
	return natstest.Background(c.t, run)
}

func (c *cell) fold() (stop func()) {
	return c.background(func(ctx context.Context) error {
		return c.b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "folder"},
			&folder{b: c.b})
	})
}

// TTLs of leases of processes that die, and of those that live: the machine may stall for half as long.
const (
	ttlShort = 4 * time.Second
	ttlLong  = 2 * time.Minute
)

// quick returns a configuration with short margins.
func quick() Config {
	cfg := Default()
	cfg.Grace, cfg.AdoptionGrace, cfg.Walk = 300*time.Millisecond, 2*time.Second, 5*time.Second
	return cfg
}

// reconcile runs a reconciler on this connection.
func (c *cell) reconcile(b *bus.Bus, cfg Config) (r *Reconciler, stop func()) {
	r, err := New(b, cfg, zerolog.Nop())
	if err != nil {
		c.t.Fatal(err)
	}
	stop = c.background(r.Run)
	natstest.Until(c.t, "the reconciler to know who lives", func() bool {
		select {
		case <-r.leases.ready:
			return true
		default:
			return false
		}
	})
	return r, stop
}

// settled waits until a reconciler has caught up and does nothing more, so that later effects have one cause. It is for
// reconcilers without a slow walk.
func (c *cell) settled(r *Reconciler) {
	c.t.Helper()
	var checks, walks uint64
	var since time.Time
	natstest.Until(c.t, "calm", func() bool {
		n := r.Counts()
		lag, _, err := c.b.Consumers.Lag(c.ctx, control.Documents(Name))
		if checks != n["looks"] || walks != n["walks"] || lag > 0 || err != nil {
			checks, walks, since = n["looks"], n["walks"], time.Now()
		}
		// longer than the pause between two walks
		return !since.IsZero() && time.Since(since) > 1500*time.Millisecond
	})
}

// process is a harness process.
type process struct {
	*cell
	harness, incarnation string
	lease                *lease.Lease
	value                lease.Record
	end                  context.CancelFunc
	seqs                 map[string]uint64
	epochs               map[string]uint64
}

// harness starts a process, which holds a lease from now on.
func (c *cell) harness(name, state string, ttl time.Duration) *process {
	c.t.Helper()
	n, err := c.b.Leases.Ticket(c.ctx, name, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{cell: c, harness: name, incarnation: strconv.FormatUint(n, 10), seqs: map[string]uint64{},
		epochs: map[string]uint64{}}
	p.value = lease.Record{ID: name, Incarnation: p.incarnation, Exclusive: true, State: state,
		TTLMS: ttl.Milliseconds()}
	p.lease, err = c.b.Leases.Acquire(c.ctx, events.HarnessLeaseKey(name, p.incarnation), p.body(), ttl)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, end := context.WithCancel(c.ctx)
	p.end = end
	p.lease.Keep(ctx, 0, nil)
	c.t.Cleanup(end)
	return p
}

func (p *process) body() []byte {
	body, err := json.Marshal(p.value)
	if err != nil {
		p.t.Fatal(err)
	}
	return body
}

// renew changes the state of the lease.
func (p *process) renew(state string) {
	p.t.Helper()
	p.value.State = state
	if err := p.lease.Renew(p.ctx, p.body()); err != nil {
		p.t.Fatal(err)
	}
}

// die is SIGKILL: there are no more renewals.
func (p *process) die() { p.end() }

// append appends facts, "<kind> <data>", to one of the process's sessions as one commit.
func (p *process) append(name string, lines ...events.Fact) {
	p.t.Helper()
	ref := events.Ref{Harness: p.harness, Session: name}
	var evs []events.Event
	for _, f := range lines {
		switch f.(type) {
		case events.SessionOpened, events.SessionClaimed:
			p.epochs[name]++
		}
		evs = append(evs, events.New(p.b.NewID(), events.HarnessSource(p.harness, p.incarnation), ref,
			max(p.epochs[name], 1), time.Now(), f))
	}
	seq, err := p.b.Log.Append(p.ctx, ref, events.WriterHarness, p.seqs[name], evs)
	if err != nil {
		p.t.Fatal(err)
	}
	p.seqs[name] = seq
}

// open opens a session with a turn and some calls.
func (p *process) open(name string, calls int) {
	p.t.Helper()
	facts := []events.Fact{events.SessionOpened{Incarnation: p.incarnation},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}}
	for i := range calls {
		facts = append(facts, events.ToolStarted{Call: fmt.Sprint("c", i), Turn: "t1", Name: "bash"})
	}
	p.append(name, facts...)
}

func question(prompt, turn, call string) events.PromptRequested {
	return events.PromptRequested{Prompt: prompt, Turn: turn, Call: call, PromptKind: events.PromptQuestion,
		Delivery:  events.DeliverToolResult,
		Questions: []events.Question{{ID: "q", Question: "Which?"}}}
}

// state returns the fold of a session's log.
func (c *cell) state(harness, name string) *session.State {
	c.t.Helper()
	return natstest.Session(c.t, c.b, events.Ref{Harness: harness, Session: name})
}

// recovered reports whether nothing of a session is open.
func recovered(s *session.State) bool { return !s.Owned && s.Turn == nil && len(s.Tools) == 0 }

// facts counts what the reconciler has appended to a session, by kind.
func (c *cell) facts(harness, name string) map[events.Kind]int {
	c.t.Helper()
	n := map[events.Kind]int{}
	commits, err := c.b.Log.Read(c.ctx, events.Ref{Harness: harness, Session: name}, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, commit := range commits {
		if commit.Writer != events.WriterReconciler {
			continue
		}
		for _, e := range commit.Events {
			n[e.Kind]++
		}
	}
	return n
}
