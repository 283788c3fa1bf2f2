package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// lateMax is how late a precise timer may fire on a shared machine.
const lateMax = 2 * time.Second

// cell is a broker with a ledger. The tests write sessions as their harness does.
type cell struct {
	t   testing.TB
	ctx context.Context
	b   *bus.Bus
}

func newCell(t testing.TB, b *bus.Bus) *cell {
	c := &cell{t: t, ctx: t.Context(), b: b}
	l, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c.background(l.Run)
	return c
}

func start(t testing.TB) (*cell, *bus.Bus) {
	b := natstest.Bus(t, natstest.Start(t))
	return newCell(t, b), b
}

// background runs a function until stop is called or the test ends.
func (c *cell) background(run func(context.Context) error) (stop func()) {
	// some connections are cut on purpose
	return natstest.Background(c.t, run, bus.ErrUnreachable)
}

// serve runs a retry service on this connection.
func (c *cell) serve(b *bus.Bus, cfg retry.Config) (stop func()) {
	c.t.Helper()
	r, err := retry.New(b, cfg, zerolog.Nop())
	if err != nil {
		c.t.Fatal(err)
	}
	return c.background(r.Run)
}

func ref(name string) events.Ref { return events.Ref{Harness: "h", Session: name} }

// read returns the session folded from the log, and its commits.
func (c *cell) read(name string) (*session.State, []events.Commit) {
	c.t.Helper()
	commits, err := c.b.Log.Read(c.ctx, ref(name), 0)
	if err != nil {
		c.t.Fatal(err)
	}
	s := session.New(ref(name))
	for i := range commits {
		s.Fold(&commits[i])
	}
	return s, commits
}

// append appends facts of the harness. It tries again when another writer was first.
func (c *cell) append(name string, facts ...events.Fact) {
	c.t.Helper()
	natstest.Append(c.t, c.b, ref(name), "1", facts...)
}

func (c *cell) opened(name string, policy *events.PolicyPatch) {
	c.t.Helper()
	c.append(name, events.SessionOpened{Incarnation: "1", Policy: policy},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Options: []byte(`{"model":"big"}`)})
}

func failed(turn, kind string) events.Fact {
	return events.TurnFailed{Turn: turn, Error: events.Failure{Kind: kind, Text: "x"}}
}

// until waits until ok returns true for the session.
func (c *cell) until(name, what string, ok func(*session.State) bool) *session.State {
	c.t.Helper()
	return natstest.UntilSession(c.t, c.b, ref(name), what, ok)
}

func scheduled(s *session.State) bool { return s.Retry.State == session.RetryScheduled }
func starting(s *session.State) bool  { return s.Retry.State == session.RetryStarting }

// ofKind returns the facts of one kind in the session's log, and the broker's time of each.
func (c *cell) ofKind(name string, k events.Kind) (facts []events.Fact, at []time.Time) {
	c.t.Helper()
	_, commits := c.read(name)
	for _, x := range commits {
		for i := range x.Events {
			if x.Events[i].Kind == k {
				facts, at = append(facts, x.Events[i].Fact), append(at, x.At)
			}
		}
	}
	return facts, at
}

// TestComesBack: a failed turn is requested once, when it is due, with the same message and options. The next failure
// has a longer delay (T1, T6, T13).
func TestComesBack(t *testing.T) {
	c, b := start(t)
	c.serve(b, retry.Default())
	pulse := natstest.Feel(t)
	c.opened("s", nil)
	c.append("s", failed("t1", "server_error"))
	s := c.until("s", "to be scheduled", func(s *session.State) bool { return scheduled(s) || starting(s) })
	if d := s.Retry.DueAt.Sub(s.LastTurn.At); d != 2*time.Second || s.Retry.Attempt != 1 {
		t.Errorf("due after %s: %+v", d, s.Retry)
	}
	s = c.until("s", "to be asked for again", starting)
	asked, at := c.ofKind("s", "turn.requested")
	f := asked[0].(events.TurnRequested)
	if late := at[0].Sub(s.LastTurn.At) - 2*time.Second; late < 0 || late > lateMax+pulse.Lost() {
		t.Errorf("%s late", late)
	}
	if f.Cause != events.CauseRetry || f.OfTurn != "t1" || f.Attempt != 1 || string(f.Options) != `{"model":"big"}` {
		t.Errorf("requested %+v", f)
	}
	c.append("s", events.TurnStarted{Turn: f.Turn})
	c.append("s", failed(f.Turn, "server_error"))
	s = c.until("s", "to be scheduled again", func(s *session.State) bool { return s.Retry.Attempt > 1 })
	if d := s.Retry.DueAt.Sub(s.LastTurn.At); d != 4*time.Second || s.Retry.Attempt != 2 || len(asked) != 1 {
		t.Errorf("due after %s: %+v", d, s.Retry)
	}
}

// TestTwoVersions: two services of different versions run on separate connections. Each turn is retried once.
func TestTwoVersions(t *testing.T) {
	server := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, server))
	for _, v := range []string{"0.1.0", "9.9.9"} {
		cfg := retry.Default()
		// Both services walk continuously.
		cfg.Version, cfg.Walk = v, 300*time.Millisecond
		c.serve(natstest.Bus(t, server), cfg)
	}
	const sessions = 40
	for i := range sessions {
		c.opened(fmt.Sprint("s", i), nil)
		c.append(fmt.Sprint("s", i), failed("t1", "server_error"))
	}
	for i := range sessions {
		name := fmt.Sprint("s", i)
		c.until(name, "to be asked for again", starting)
		once, _ := c.ofKind(name, "retry.scheduled")
		asked, _ := c.ofKind(name, "turn.requested")
		if s, _ := c.read(name); len(once) != 1 || len(asked) != 1 || s.Ignored.Count > 0 {
			t.Errorf("%s: scheduled %v, requested %v, ignored %+v", name, once, asked, s.Ignored.Last)
		}
	}
}

// TestFailOver: the active service is cut off while retries wait, and some come due before another service is active.
// Each turn is requested exactly once.
func TestFailOver(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	server := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, server))
	first := natstest.Bus(t, server)
	c.serve(first, retry.Default())
	const sessions = 60
	for i := range sessions {
		c.opened(fmt.Sprint("s", i), nil)
		c.append(fmt.Sprint("s", i), failed("t1", "server_error"))
	}
	c.until("s0", "to be scheduled", func(s *session.State) bool { return s.Retry.State != "" })
	// no handover, as after a kill
	first.Close()
	c.serve(natstest.Bus(t, server), retry.Default())
	for i := range sessions {
		name := fmt.Sprint("s", i)
		c.until(name, "to be asked for again", starting)
		once, _ := c.ofKind(name, "retry.scheduled")
		asked, _ := c.ofKind(name, "turn.requested")
		if len(once) != 1 || len(asked) != 1 {
			t.Errorf("%s: scheduled %d times, requested %d times", name, len(once), len(asked))
		}
	}
}

// TestRestarts: a hundred restarts with scheduled retries change neither instant nor attempt. There is one alarm all
// the time. A retry that comes due meanwhile is requested once (T14).
func TestRestarts(t *testing.T) {
	server := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, server))
	b := natstest.Bus(t, server)
	stop := c.serve(b, retry.Default())
	c.opened("far", nil)
	c.append("far", events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit", RetryAfterMS: 900_000}})
	armed := c.until("far", "to be scheduled", scheduled)
	c.opened("soon", nil)
	c.append("soon", failed("t1", "server_error"))
	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	timer := func() (instant string, n uint64) {
		var info struct {
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		subject := "hf.timer.retry.h.far"
		m, err := nc.Request("$JS.API.STREAM.INFO.HF_TIMERS", []byte(`{"subjects_filter":"`+subject+`"}`), time.Minute)
		if err == nil {
			err = json.Unmarshal(m.Data, &info)
		}
		js, err2 := nc.JetStream()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		last, err := js.GetLastMsg("HF_TIMERS", subject)
		if err != nil {
			return "", 0
		}
		return last.Header.Get("Nats-Schedule"), info.State.Subjects[subject]
	}
	want := "@at " + armed.Retry.DueAt.Format(time.RFC3339Nano)
	natstest.Until(t, "the timer to be set", func() bool { at, n := timer(); return at == want && n == 1 })
	stop()
	for range 100 {
		r, err := retry.New(b, retry.Default(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		stop = c.background(r.Run)
		natstest.Until(t, "a walk over everything", func() bool { return r.Counts()["walks"] > 0 })
		stop()
		if at, n := timer(); at != want || n != 1 {
			t.Fatalf("%d timers, the last for %q, want one for %q", n, at, want)
		}
	}
	s, commits := c.read("far")
	if s.Retry.Attempt != 1 || !s.Retry.DueAt.Equal(armed.Retry.DueAt) || len(commits) != 3 {
		t.Errorf("after the restarts: %+v, %d commits", s.Retry, len(commits))
	}
	c.serve(b, retry.Default())
	c.until("soon", "to be asked for again", starting)
	if asked, _ := c.ofKind("soon", "turn.requested"); len(asked) != 1 {
		t.Errorf("requested %d times", len(asked))
	}
}

// TestStall: a silent turn fails. A turn with pings does not, and the pings append nothing (T18).
func TestStall(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	c, b := start(t)
	c.serve(b, retry.Default())
	const stallS = 2
	silent, active := "", ""
	natstest.RetryStalled(t, stallS*time.Second/4, func() error {
		silent, active = "silent"+b.NewID(), "heard"+b.NewID()
		patience := &events.PolicyPatch{StallAfterS: events.Set[int64](stallS)}
		c.opened(active, patience)
		c.opened(silent, patience)
		c.until(silent, "to have stalled", func(s *session.State) bool {
			b.Hints.Progress(ref(active))
			return s.Turn == nil
		})
		if h, commits := c.read(active); h.Turn == nil || len(commits) != 1 {
			return fmt.Errorf("the turn with pings ended: %+v after %d commits", h.LastTurn, len(commits))
		}
		return nil
	})
	s, commits := c.read(silent)
	if s.LastTurn.Error.Kind != "stalled" || s.LastTurn.Actor != events.ActorStall || s.Pending.Stop == nil {
		t.Errorf("ended as %+v", s.LastTurn)
	}
	if took := commits[1].At.Sub(commits[0].At); took < stallS*time.Second || len(commits[1].Events) != 2 {
		t.Errorf("failed after %s with %d facts in one commit", took, len(commits[1].Events))
	}
	c.until(active, "to have stalled when nothing is heard of it any more",
		func(s *session.State) bool { return s.Turn == nil })
}

// TestOverdue: retries that came due while no service ran are requested when one starts: the first one at once, then
// 100 a second, however often the documents are read meanwhile (T14).
func TestOverdue(t *testing.T) {
	c, b := start(t)
	const sessions = 150
	for i := range sessions {
		name := fmt.Sprint("s", i)
		c.opened(name, nil)
		c.append(name, failed("t1", "server_error"))
		s, _ := c.read(name)
		evs := []events.Event{events.New(b.NewID(), events.ServiceSource(retry.Name, "x"), ref(name), 1, time.Now(),
			events.RetryScheduled{
				Turn: "t1", Attempt: 1, DelayMS: 2000, DueAt: time.Now().Add(-time.Minute), Error: *s.LastTurn.Error})}
		if _, err := b.Log.Append(c.ctx, ref(name), events.WriterRetry, s.Seq, evs); err != nil {
			t.Fatal(err)
		}
	}
	cfg := retry.Default()
	cfg.Walk = 200 * time.Millisecond
	pulse := natstest.Feel(t)
	c.serve(b, cfg)
	var fired []time.Time
	for i := range sessions {
		name := fmt.Sprint("s", i)
		c.until(name, "to be asked for again", starting)
		_, at := c.ofKind(name, "turn.requested")
		if fired = append(fired, at...); len(at) != 1 {
			t.Errorf("%s was requested %d times", name, len(at))
		}
	}
	inTurn(t, pulse, fired)
}

// inTurn checks the pace of overdue retries: 100 a second after the first one, which may be late: the broker stores it
// while everything begins.
func inTurn(t *testing.T, pulse *natstest.Pulse, fired []time.Time) {
	t.Helper()
	late := 250*time.Millisecond + pulse.Lost()
	slices.SortFunc(fired, time.Time.Compare)
	for i, at := range fired {
		if early := fired[0].Add(time.Duration(i) * 10 * time.Millisecond).Sub(at); early > late {
			t.Fatalf("number %d of %d fired %s too early; the first may have been %s late", i, len(fired), early, late)
		}
	}
}

// TestOverdueOutage: retries that came due while the broker was away, and the service ran, are spread when the broker
// is back (T14).
func TestOverdueOutage(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	server := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, server))
	c.serve(natstest.Bus(t, server), retry.Default())
	// longer than a failover
	const sessions, overdue = 60, 6 * time.Second
	// time to arm all alarms
	const wait = 8 * time.Second
	for i := range sessions {
		c.opened(fmt.Sprint("s", i), nil)
		c.append(fmt.Sprint("s", i), events.TurnFailed{Turn: "t1",
			Error: events.Failure{Kind: "rate_limit", RetryAfterMS: wait.Milliseconds()}})
	}
	var last time.Time
	for i := range sessions {
		s := c.until(fmt.Sprint("s", i), "to be scheduled", func(s *session.State) bool { return s.Retry.State != "" })
		last = s.Retry.DueAt
	}
	server.Shutdown()
	back := last.Add(overdue)
	natstest.Until(t, "retries to be long overdue", func() bool { return time.Now().After(back) })
	pulse := natstest.Feel(t)
	natstest.Restart(t, server)
	var fired []time.Time
	for i := range sessions {
		name := fmt.Sprint("s", i)
		c.until(name, "to be asked for again", starting)
		_, at := c.ofKind(name, "turn.requested")
		if len(at) != 1 {
			t.Errorf("%s was requested %d times", name, len(at))
		}
		if at[0].After(back) {
			fired = append(fired, at[0])
		}
	}
	if len(fired) == 0 {
		t.Error("all retries were requested before the broker was away")
	}
	inTurn(t, pulse, fired)
}

// TestRequests: the replies and refusals of the endpoints.
func TestRequests(t *testing.T) {
	c, b := start(t)
	c.serve(b, retry.Default())
	c.opened("s", nil)
	c.append("s", events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit", RetryAfterMS: 600_000}})
	c.until("s", "to be scheduled", scheduled)
	ask := func(verb string, req any) (seq uint64, r *events.Refusal) {
		t.Helper()
		var reply struct{ Seq uint64 }
		err := b.Services.Request(c.ctx, retry.Name, verb, req, &reply)
		if err == nil {
			return reply.Seq, nil
		}
		r, ok := errors.AsType[*events.Refusal](err)
		if !ok {
			t.Fatal(err)
		}
		return 0, r
	}
	natstest.Until(t, "the service to answer",
		func() bool { _, r := ask("now", request.Retry{}); return r.Code != http.StatusServiceUnavailable })
	for name, x := range map[string]struct {
		verb  string
		req   any
		code  int
		field string
	}{
		"no person":       {"now", request.Retry{Ref: ref("s")}, 400, "by"},
		"no session":      {"cancel", request.Retry{Ref: events.Ref{Harness: "h"}, By: "ada"}, 400, "session"},
		"not JSON":        {"resume", "x", 400, "body"},
		"wrong type":      {"now", map[string]any{"harness": "h", "session": "s", "by": 7}, 400, "by"},
		"unknown":         {"now", request.Retry{Ref: ref("unknown"), By: "ada"}, 404, ""},
		"nothing to stop": {"cancel", request.Retry{Ref: ref("unknown"), By: "ada"}, 404, ""},
	} {
		if _, r := ask(x.verb, x.req); r == nil || r.Code != x.code || r.Field != x.field {
			t.Errorf("%s: %+v", name, r)
		}
	}
	req := request.Retry{Ref: ref("s"), By: "ada"}
	seq, r := ask("cancel", req)
	s, commits := c.read("s")
	if r != nil || seq != s.Seq || s.Retry.Reason != retry.ReasonCancelled ||
		commits[len(commits)-1].Events[0].Source != events.PersonSource("ada") {
		t.Errorf("cancelled at %d, %v: %+v", seq, r, s.Retry)
	}
	seq, r = ask("now", req)
	if s, _ = c.read("s"); r != nil || seq != s.Seq || s.Pending.Turn == nil || s.Pending.Turn.By != "ada" {
		t.Errorf("now at %d, %v: %+v", seq, r, s.Pending.Turn)
	}
	if again, r := ask("resume", req); r != nil || again != seq {
		t.Errorf("the same again: %d, %v", again, r)
	}
	if _, r = ask("cancel", req); r == nil || r.Code != 409 || r.Stands.Status != session.RetryStarting ||
		r.Stands.Seq != seq {
		t.Errorf("too late: %+v", r)
	}
}

func TestConfig(t *testing.T) {
	if err := retry.Default().Validate(); err != nil {
		t.Error(err)
	}
	for _, jitter := range []float64{-0.1, 1.1, math.NaN()} {
		err := retry.Config{Jitter: jitter}.Validate()
		for _, field := range []string{"retry-jitter", "walk", "at-once-max"} {
			if err == nil || !strings.Contains(err.Error(), "config: "+field+":") {
				t.Errorf("jitter %v: %s is not named: %v", jitter, field, err)
			}
		}
	}
}
