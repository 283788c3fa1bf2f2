package compaction

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

// cell is a broker with a ledger.
type cell struct {
	t   testing.TB
	ctx context.Context
	b   *bus.Bus
}

// start starts a broker and a ledger.
func start(t testing.TB) *cell { return newCell(t, natstest.Bus(t, natstest.Start(t))) }

func newCell(t testing.TB, b *bus.Bus) *cell {
	c := &cell{t: t, b: b, ctx: t.Context()}
	l, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	c.check(err)
	c.background(l.Run)
	return c
}

func (c *cell) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// background runs a function until the test ends, and waits for its end.
func (c *cell) background(run func(context.Context) error) (stop func()) {
	return natstest.Background(c.t, run)
}

// compaction runs a service on this connection, and waits until it answers.
func (c *cell) compaction(b *bus.Bus, cfg Config) (s *Service, stop func()) {
	c.t.Helper()
	s, err := New(b, cfg, zerolog.Nop())
	c.check(err)
	stop = c.background(s.Run)
	natstest.Until(c.t, "the service to answer", func() bool {
		err := b.Services.Request(c.ctx, Name, "check", struct{}{}, nil)
		refusal, ok := errors.AsType[*events.Refusal](err)
		return ok && refusal.Code != 503
	})
	return s, stop
}

// ask sends a request and returns the seq of its reply.
func (c *cell) ask(verb string, w any) (uint64, error) {
	var reply request.Changed
	err := c.b.Services.Request(c.ctx, Name, verb, w, &reply)
	return reply.Seq, err
}

// harness is a harness process as the log shows it.
type harness struct {
	*cell
	name, incarnation string
	seqs              map[string]uint64
}

func (c *cell) harness(name string) *harness {
	c.t.Helper()
	n, err := c.b.Leases.Ticket(c.ctx, name, 0)
	c.check(err)
	return &harness{cell: c, name: name, incarnation: strconv.FormatUint(n, 10), seqs: map[string]uint64{}}
}

func (h *harness) ref(name string) events.Ref { return events.Ref{Harness: h.name, Session: name} }

// append appends facts to a session as one commit. It tries again when another writer was first.
func (h *harness) append(name string, facts ...events.Fact) {
	h.t.Helper()
	natstest.Append(h.t, h.b, h.ref(name), h.incarnation, facts...)
}

// state returns the fold of a session's log.
func (c *cell) state(r events.Ref) *session.State {
	c.t.Helper()
	return natstest.Session(c.t, c.b, r)
}

// until waits until a session's log says something.
func (c *cell) until(r events.Ref, what string, is func(*session.State) bool) *session.State {
	c.t.Helper()
	return natstest.UntilSession(c.t, c.b, r, what, is)
}

// open opens a session whose first turn has completed with this many of 1,000 tokens used.
func (h *harness) open(name string, used int64, policy *events.PolicyPatch) events.Ref {
	h.t.Helper()
	h.append(name, events.SessionOpened{Incarnation: h.incarnation, ContextLimit: 1000, Policy: policy},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.UsageReported{Turn: "t1", Model: "m", Tokens: events.Tokens{Input: used}},
		events.TurnCompleted{Turn: "t1"})
	return h.ref(name)
}

func text(s string) json.RawMessage { return json.RawMessage(strconv.Quote(s)) }

func message(r events.Ref, id string) request.Send {
	return request.Send{Ref: r, Message: id, Content: text(id), By: "ada"}
}
