package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// inside is a process with one session, tested from within the package, and a second connection that writes as other
// processes do.
type inside struct {
	t    *testing.T
	ctx  context.Context
	peer *bus.Bus
	h    *Harness
	s    *Session
}

func newInside(t *testing.T, change ...func(*Config)) *inside {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	server := natstest.Start(t)
	x := &inside{t: t, ctx: ctx, peer: natstest.Bus(t, server)}
	cfg := Config{ID: "laptop", URL: server.URL(), TTL: time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if x.h, err = Connect(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.h.Abandon)
	if x.s, err = x.h.Open(ctx, "s", OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	return x
}

// appendUnnudged appends through the second connection, in the first epoch, and sends no nudge.
func (x *inside) appendUnnudged(by events.Writer, facts ...events.Fact) uint64 {
	x.t.Helper()
	return x.appendIn(1, by, facts...)
}

// appendIn is [inside.appendUnnudged] in an epoch.
func (x *inside) appendIn(epoch uint64, by events.Writer, facts ...events.Fact) uint64 {
	x.t.Helper()
	cs, err := x.peer.Log.Read(x.ctx, x.s.ref, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	var evs []events.Event
	for _, f := range facts {
		evs = append(evs, events.New(x.peer.NewID(), events.ServiceSource(string(by), "test"), x.s.ref, epoch,
			time.Now(), f))
	}
	seq, err := x.peer.Log.Append(x.ctx, x.s.ref, by, cs[len(cs)-1].Seq, evs)
	if err != nil {
		x.t.Fatal(err)
	}
	return seq
}

func (x *inside) turn(start StartOptions) *Turn {
	x.t.Helper()
	t, err := x.s.StartTurn(x.ctx, start)
	if err != nil {
		x.t.Fatal(err)
	}
	return t
}

func (x *inside) mustRelay(facts ...events.Fact) {
	x.t.Helper()
	if err := x.s.Relay(x.ctx, facts...); err != nil {
		x.t.Fatal(err)
	}
}

// dead is a life that has ended, under the lease that this process has.
func (x *inside) dead(cause error) *term {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return &term{incarnation: x.h.Incarnation(), lease: x.h.term.lease, ctx: ctx, cancel: cancel}
}

func brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 200*time.Millisecond)
}

func inPool(c *Config) { c.Pool = true }

// prompted is the request of prompt p1.
func prompted(turn string, delivery events.Delivery) events.PromptRequested {
	return events.PromptRequested{Prompt: "p1", Turn: turn, PromptKind: events.PromptQuestion, Delivery: delivery,
		Questions: []events.Question{{ID: "q", Question: "?"}}}
}

// workLoopOf is a Work of this process that does not run.
func (x *inside) workLoopOf(turn func(context.Context, *Turn) error) *workLoop {
	return &workLoop{h: x.h, w: Worker{Turn: turn, TurnsMax: 1}, late: x.ctx, busy: map[string]*place{}}
}

// TestWithoutAConnection: a read or write that fails is an error, and nothing else is used in its place.
func TestWithoutAConnection(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	turn.request = session.WorkTurn{Turn: "t1", Message: "m1"}
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"}, events.ToolCompleted{Call: "c1"},
		events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`), By: "ada"},
		prompted("t1", events.DeliverCallback))
	l, st := x.h.term, x.s.State()
	x.h.bus.Close()
	large := strings.Repeat("x", 2*events.ContentBytesMax)
	for name, do := range map[string]func(ctx context.Context) error{
		"content":     func(ctx context.Context) error { _, err := turn.Content(ctx); return err },
		"object":      func(ctx context.Context) error { _, err := turn.stored(ctx, "object"); return err },
		"result":      func(ctx context.Context) error { _, err := x.s.Result(ctx, "c1"); return err },
		"no result":   func(ctx context.Context) error { _, err := x.s.Result(ctx, "unknown"); return err },
		"answer":      func(ctx context.Context) error { _, err := x.s.Answer(ctx, "p1"); return err },
		"owner":       func(ctx context.Context) error { return x.s.verifyOwner(ctx) },
		"what is new": func(ctx context.Context) error { return x.s.catchUp(ctx) },
		"start again": func(ctx context.Context) error { return x.h.start(ctx, func(error) {}) },
		"reclaiming": func(context.Context) error {
			_, _, err := x.s.reclaiming(l, l, st.Epoch, st.Epoch)
			return err
		},
		"a doubt": func(context.Context) error {
			apart := newSession(x.h, events.Ref{Harness: "laptop", Session: "apart"})
			apart.st = session.New(apart.ref)
			return apart.settleDoubt(l, &doubtError{})
		},
		"take": func(ctx context.Context) error {
			_, err := x.s.take(ctx, l, false, func() ([]events.Fact, error) { return nil, errNothing })
			return err
		},
	} {
		ctx, cancel := brief(x.ctx)
		if err := do(ctx); err == nil || errors.Is(err, ErrUnknown) || errors.Is(err, errNothing) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	for what, do := range map[string]func(ctx context.Context) error{
		"harness: turn t2: content:": func(ctx context.Context) error {
			_, err := x.s.StartTurn(ctx, StartOptions{ID: "t2", Content: large})
			return err
		},
		": content: broker": func(ctx context.Context) error {
			_, err := x.h.Send(ctx, Message{Session: "s", Content: large})
			return err
		},
		"draining": func(ctx context.Context) error { return x.h.Close(ctx) },
	} {
		ctx, cancel := brief(x.ctx)
		if err := do(ctx); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
		cancel()
	}
}

// TestReadingEnds: a hint whose commit cannot be read does not keep the process reading.
func TestReadingEnds(t *testing.T) {
	x := newInside(t)
	x.h.bus.Close()
	x.s.readUpTo(x.s.State().Seq + 5)
	natstest.Until(t, "the reading to end", func() bool { return !Reading(x.s) })
}

// TestNothingRunsThatWasNotTaken: work that could not be taken, because it could not be stored, is not run.
func TestNothingRunsThatWasNotTaken(t *testing.T) {
	x := newInside(t)
	x.appendUnnudged(events.WriterRetry, events.TurnRequested{Turn: "t1", Cause: events.CauseResume})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	ran := 0
	k := x.workLoopOf(func(context.Context, *Turn) error { ran++; return nil })
	Unhold(x.s)
	if more, err := k.serveOnce(x.ctx, "s"); more || err != nil || ran > 0 {
		t.Errorf("a session that no caller has: %t, %v; ran %d", more, err, ran)
	}
	x.s.holders = 1
	x.h.bus.Close()
	if more, err := k.serveOnce(x.ctx, "s"); more || err == nil || ran > 0 {
		t.Errorf("without a connection: %t, %v; ran %d", more, err, ran)
	}
}

// TestWorkThatCannotBeRead: work whose words cannot be read is an error, and not nothing to do.
func TestWorkThatCannotBeRead(t *testing.T) {
	x := newInside(t)
	x.appendUnnudged(events.WriterCompaction,
		events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`), By: "ada"},
		events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	k := x.workLoopOf(func(context.Context, *Turn) error { return nil })
	if j, err := k.findWork(x.ctx, x.s); err != nil || j == nil || j.turn.Turn != "t1" {
		t.Fatalf("%+v, %v", j, err)
	}
	x.h.bus.Close()
	if j, err := k.findWork(x.ctx, x.s); err == nil {
		t.Errorf("%+v", j)
	}
}

// TestWhatAnEarlierEpochAsked: a process that starts over claims again what is its own, and not a question that an
// earlier process left and this one did not adopt.
func TestWhatAnEarlierEpochAsked(t *testing.T) {
	x := newInside(t)
	x.mustRelay(prompted("", events.DeliverMessage))
	second, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	st := x.s.State()
	st.Epoch, st.Incarnation = 2, second.incarnation
	x.s.mu.Lock()
	x.s.st = st
	x.s.mu.Unlock()
	next, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	facts, rest, err := x.s.reclaiming(next, second, 2, 2)
	if err != nil || len(facts) != 1 || len(rest) > 0 || facts[0].Kind() != (events.SessionClaimed{}).Kind() {
		t.Errorf("%v, %v, %v", facts, rest, err)
	}
}

// TestConfigIsChecked: a configuration that cannot be is refused before anything is connected; where no broker is
// named it is the one on this machine.
func TestConfigIsChecked(t *testing.T) {
	if h, err := Connect(t.Context(), Config{}); h != nil || err == nil ||
		!strings.Contains(err.Error(), "config: ID") {
		t.Errorf("%v", err)
	}
	if got := (Config{}).withDefaults().URL; got != "nats://127.0.0.1:4222" {
		t.Errorf("connects to %q", got)
	}
}

// TestWorkOfAClosedSession: work that is offered of a session which cannot be claimed is an error, and nothing to
// go on with.
func TestWorkOfAClosedSession(t *testing.T) {
	x := newInside(t)
	if err := x.s.Close(x.ctx, "finished"); err != nil {
		t.Fatal(err)
	}
	k := x.workLoopOf(func(context.Context, *Turn) error { return nil })
	if more, err := k.takeOver(x.ctx, "s"); more || !errors.Is(err, ErrSessionClosed) {
		t.Errorf("%t, %v", more, err)
	}
	x.h.mu.Lock()
	x.h.state = buslease.Draining
	x.h.mu.Unlock()
	if more, err := k.takeOver(x.ctx, "s"); more || !errors.Is(err, ErrClosed) {
		t.Errorf("a process that leaves: %t, %v", more, err)
	}
	x.h.mu.Lock()
	x.h.state = buslease.Starting
	x.h.mu.Unlock()
}

// TestNoReadWithoutASession: without a session to read, no read starts and Work is not signalled.
func TestNoReadWithoutASession(t *testing.T) {
	x := newInside(t)
	k := x.workLoopOf(nil)
	k.handOut(x.ctx)
	k.wg.Wait()
	if len(x.h.workReady) > 0 || k.running > 0 {
		t.Error("Work is signalled")
	}
	if x.h.notifyWork("s"); len(x.h.dirty) > 0 {
		t.Error("sessions are collected that no Work looks at")
	}
	if err := x.h.Ready(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.h.working = true
	ctx, cancel := brief(x.ctx)
	defer cancel()
	if err := x.h.Work(ctx, Worker{}); err == nil {
		t.Error("Work runs twice")
	}
	x.h.working = false
}

// TestOffers: an entry of the work view is kept until it is deleted; an unreadable one is left out.
func TestOffers(t *testing.T) {
	x := newInside(t)
	key := events.WorkKey(events.Ref{Harness: "laptop", Session: "o"})
	for i, c := range []struct {
		u    kv.Update
		want int
	}{
		{kv.Update{Entry: kv.Entry{Key: key, Value: []byte(`{"session":`)}}, 0},
		{kv.Update{Entry: kv.Entry{Key: key, Value: []byte(`{"session":"o"}`)}}, 1},
		{kv.Update{Entry: kv.Entry{Key: key, Deleted: true}}, 0},
	} {
		if err := x.h.offered(c.u); err != nil {
			t.Fatal(err)
		}
		x.h.mu.Lock()
		if len(x.h.offers) != c.want {
			t.Errorf("%d: offers %v", i, x.h.offers)
		}
		x.h.mu.Unlock()
	}
}

// TestALeavingProcess: a process that leaves takes no session, settles no doubt, gives nothing up and does not say
// ready.
func TestALeavingProcess(t *testing.T) {
	x := newInside(t)
	Unhold(x.s)
	x.h.mu.Lock()
	x.h.state = buslease.Draining
	x.h.mu.Unlock()
	if _, err := x.h.session("other"); !errors.Is(err, ErrClosed) {
		t.Errorf("session: %v", err)
	}
	if x.h.settleLater(x.s, x.h.term, &doubtError{err: bus.ErrUnreachable}); Users(x.h, "s") != 0 {
		t.Error("a doubt is settled")
	}
	if x.h.releaseUnused(x.s); x.s.leaving {
		t.Error("a session is given up")
	}
	if err := x.h.Ready(x.ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("ready: %v", err)
	}
}

// TestALeavingProcessStartsOver: a process that closes takes another incarnation, whose lease says so from the first
// renewal on.
func TestALeavingProcessStartsOver(t *testing.T) {
	x := newInside(t, func(c *Config) { c.TTL = 2 * time.Second })
	x.h.mu.Lock()
	x.h.state = buslease.Draining
	x.h.mu.Unlock()
	l, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	states, first := []string{}, time.Time{}
	natstest.Until(t, "a renewal", func() bool {
		e, err := x.peer.KV.Load(x.ctx, kv.Leases, events.HarnessLeaseKey("laptop", l.incarnation))
		if err != nil {
			t.Fatal(err)
		}
		var is buslease.Record
		if err := json.Unmarshal(e.Value, &is); err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = is.RenewedAt
		}
		states = append(states, is.State)
		return is.RenewedAt.After(first)
	})
	if slices.ContainsFunc(states, func(s string) bool { return s != buslease.Draining }) {
		t.Errorf("its lease says %v", states)
	}
}

// TestNoSessionIsKeptThatIsNotOwned: a session without an owner and without callers is removed from the map.
func TestNoSessionIsKeptThatIsNotOwned(t *testing.T) {
	x := newInside(t)
	if err := x.s.Release(x.ctx, "done"); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the handle to be forgotten", func() bool {
		x.h.mu.Lock()
		defer x.h.mu.Unlock()
		return len(x.h.sessions) == 0
	})
	if err := x.s.releaseIfUnused(); err != nil {
		t.Errorf("a session that is not this process's: %v", err)
	}
	x.s.mu.Lock()
	x.s.st.Owned, x.s.st.Incarnation, x.s.st.Epoch = true, "99", 7
	x.s.checkOwnership()
	x.s.mu.Unlock()
	if err := x.s.Regain(x.ctx); !errors.Is(err, ErrReleased) {
		t.Errorf("after another process took it: %v", err)
	}
}

// TestTheLogLostItsEnd: a session whose log no longer has what was read of it is not this process's any more.
func TestTheLogLostItsEnd(t *testing.T) {
	x := newInside(t)
	x.s.mu.Lock()
	x.s.st.Seq += 1_000
	x.s.mu.Unlock()
	if err := x.s.Relay(x.ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}); !errors.Is(err, ErrFenced) {
		t.Errorf("%v, want ErrFenced", err)
	}
}

// TestAnOldStateRefusesNothing: a fact that is not lawful by what this process has read is tried again by what the
// log says.
func TestAnOldStateRefusesNothing(t *testing.T) {
	// it reads only the reported sessions
	x := newInside(t, inPool)
	turn := x.turn(StartOptions{ID: "t1"})
	x.appendUnnudged(events.WriterReconciler, events.TurnInterrupted{Turn: "t1", Reason: "test"})
	x.appendUnnudged(events.WriterRetry, events.TurnRequested{Turn: "t2", Cause: events.CauseResume, OfTurn: "t1"})
	if err := turn.Complete(x.ctx, ""); !errors.Is(err, ErrEnded) {
		t.Errorf("a turn that another process has ended: %v", err)
	}
	x.mustRelay(prompted("", events.DeliverCallback))
	x.appendUnnudged(events.WriterLedger, events.PromptDismissed{Prompt: "p1", By: "ada"})
	if err := x.s.Append(x.ctx, events.PromptDelivered{Prompt: "p1"}); err != nil {
		t.Errorf("the receipt of a prompt that another process has settled: %v", err)
	}
}

// TestNoReceiptWhileTheTurnRuns: an Ask has returned the answer of an open call. The end of the call is the receipt,
// and a turn that is started again while it is open does not end.
func TestNoReceiptWhileTheTurnRuns(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	if _, err := turn.Tool(x.ctx, ToolOptions{ID: "c1", Name: "ask"}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := turn.Ask(x.ctx, Prompt{ID: "p1", Call: "c1"})
		answered <- err
	}()
	natstest.Until(t, "the prompt to be open", func() bool { return x.s.State().Prompts["p1"] != nil })
	x.appendUnnudged(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada", Owed: true})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if err := x.s.Append(x.ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}); err == nil {
		t.Error("a turn that is open is started again")
	}
	// behind what was queued
	x.mustRelay(events.ToolStarted{Call: "c2", Turn: "t1", Name: "bash"})
	if st := x.s.State(); st.Prompts["p1"] == nil {
		t.Errorf("the receipt was given before the call has ended: %+v", st.Recent)
	}
}

// TestCommitsOutOfOrder: a commit that is heard of, and is not the next one, is not folded before those in between.
func TestCommitsOutOfOrder(t *testing.T) {
	x := newInside(t, inPool)
	x.turn(StartOptions{ID: "t1"})
	x.appendUnnudged(events.WriterReconciler, events.TurnInterrupted{Turn: "t1", Reason: "test"})
	last := x.appendUnnudged(events.WriterRetry, events.TurnRequested{Turn: "t2", Cause: events.CauseResume,
		OfTurn: "t1"})
	if err := x.peer.Log.ScanMessages(x.ctx, last,
		func(m bus.Message) error { x.s.receive(m); return nil }); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "it to be read", func() bool { return x.s.State().Seq == last })
	if st := x.s.State(); st.LastTurn == nil || st.Turn != nil || st.Commits != 4 {
		t.Errorf("%d commits, turn %+v", st.Commits, st.Turn)
	}
	newSession(x.h, events.Ref{Harness: "laptop", Session: "unread"}).receive(bus.Message{Seq: 1})
}

// TestOneCommitOfUsageAndEnd: a report that is made just before the end of its turn is in the same commit.
func TestOneCommitOfUsageAndEnd(t *testing.T) {
	const rounds = 20
	x := newInside(t)
	for i := range rounds {
		turn := x.turn(StartOptions{ID: fmt.Sprint("t", i)})
		used := Usage{Model: fmt.Sprint("m", i), Tokens: events.Tokens{Input: 1}}
		if err := errors.Join(turn.Usage(x.ctx, used), turn.Complete(x.ctx, "")); err != nil {
			t.Fatal(err)
		}
	}
	// the machine may stand still in between, now and then
	if n := x.s.State().Commits; n > 1+2*rounds+rounds/2 {
		t.Errorf("%d commits of %d turns", n, rounds)
	}
}

// TestReportsWaitForCompany: a report is not sent at once, so that what comes of the model's answer travels with it.
func TestReportsWaitForCompany(t *testing.T) {
	x := newInside(t)
	waited := false
	// the machine may stand still for longer than it waits
	for i := 0; i < 20 && !waited; i++ {
		turn := x.turn(StartOptions{ID: fmt.Sprint("t", i)})
		natstest.Until(t, "nothing to be sent", func() bool {
			x.s.mu.Lock()
			defer x.s.mu.Unlock()
			return !x.s.running
		})
		if err := turn.Usage(x.ctx, Usage{Model: "m", Tokens: events.Tokens{Input: 1}}); err != nil {
			t.Fatal(err)
		}
		x.s.mu.Lock()
		waited = len(x.s.queue) > 0 && !x.s.running
		x.s.mu.Unlock()
	}
	if !waited {
		t.Error("each report is sent at once")
	}
}

// TestReportsThatCannotBe: a report that is not lawful is refused, also where it would only be held back.
func TestReportsThatCannotBe(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	if err := turn.Usage(x.ctx, Usage{Model: "m", Tokens: events.Tokens{Input: 1}}); err != nil {
		t.Fatal(err)
	}
	negative := Usage{Model: "m", Tokens: events.Tokens{Input: 1, Output: -1}}
	if err := turn.Usage(x.ctx, negative); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("%v", err)
	}
	// nothing is held back
	x.s.releaseUsage()
	if n := Waiting(x.s); n > 1 {
		t.Errorf("%d reports wait", n)
	}
}

// TestTheNewestReportStands: the broker refuses a report, and a newer one waits or is queued. The refused one does not
// come behind the newer one.
func TestTheNewestReportStands(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	x.s.writing <- struct{}{}
	defer func() { <-x.s.writing }()
	report := func(tokens int64) {
		t.Helper()
		if err := turn.Usage(x.ctx, Usage{Tokens: events.Tokens{Input: tokens}, ContextLimit: 100_000}); err != nil {
			t.Fatal(err)
		}
	}
	report(10_000)
	report(20_000)
	x.s.mu.Lock()
	first := x.s.queue[0]
	x.s.queue = without(x.s.queue, first)
	x.s.fail(first, ErrFull)
	x.s.mu.Unlock()
	if n := Reported(x.s); n != -1 {
		t.Errorf("the report of %d tokens is held back behind a newer one", n)
	}
	x.s.mu.Lock()
	second := x.s.queue[0]
	x.s.usage.held = &events.UsageReported{Turn: "t1", Tokens: events.Tokens{Input: 20_001}}
	x.s.queue = without(x.s.queue, second)
	x.s.fail(second, ErrFull)
	x.s.mu.Unlock()
	if n := Reported(x.s); n != 20_001 {
		t.Errorf("the report of %d tokens is held back, want 20,001", n)
	}
}

// TestHeldReportKeepsItsPlace: a report that was held back is queued when it is due. No newer report is queued before
// it: the session is locked from when the report is taken until it is queued.
func TestHeldReportKeepsItsPlace(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.s.writing <- struct{}{}
	defer func() { <-x.s.writing }()
	x.s.mu.Lock()
	x.s.usage.held = &events.UsageReported{Turn: "t1", Tokens: events.Tokens{Input: 1}}
	x.s.mu.Unlock()
	taken := func() bool { return x.s.usage.held == nil && len(x.s.queue) == 0 }
	// nothing can be queued
	x.h.buffer.mu.Lock()
	released := make(chan struct{})
	go func() {
		defer close(released)
		x.s.releaseUsage()
	}()
	overtaken := false
	natstest.Until(t, "the report to be taken", func() bool {
		if !x.s.mu.TryLock() {
			return true
		}
		defer x.s.mu.Unlock()
		overtaken = taken()
		return overtaken
	})
	x.h.buffer.mu.Unlock()
	<-released
	if overtaken {
		t.Error("the session was unlocked while the report was neither held back nor queued")
	}
	if n := Waiting(x.s); n != 1 {
		t.Errorf("%d reports wait", n)
	}
}

// TestGreatChangesAreReportedAtOnce: a great change is stored at once, and so is a report about another turn.
func TestGreatChangesAreReportedAtOnce(t *testing.T) {
	s := &Session{st: session.New(events.Ref{})}
	report := func(turn, model string, limit, input int64) events.UsageReported {
		return events.UsageReported{Turn: turn, Model: model, ContextLimit: limit, Tokens: events.Tokens{Input: input}}
	}
	for name, c := range map[string]struct {
		was, is events.UsageReported
		limit   int64
		want    bool
	}{
		"another turn":            {report("t", "m", 0, 100_000), report("u", "m", 0, 100_000), 0, true},
		"another model":           {report("t", "m", 0, 100_000), report("t", "n", 0, 100_000), 0, true},
		"another limit":           {report("t", "m", 0, 100_000), report("t", "m", 5, 100_000), 0, true},
		"little, without a limit": {report("t", "m", 0, 100_000), report("t", "m", 0, 100_500), 0, false},
		"much, without a limit":   {report("t", "m", 0, 100_000), report("t", "m", 0, 102_000), 0, true},
		"little of the session's": {report("t", "m", 0, 100_000), report("t", "m", 0, 102_000), 1_000_000, false},
		"much of the session's":   {report("t", "m", 0, 100_000), report("t", "m", 0, 120_000), 1_000_000, true},
	} {
		s.usage.stored, s.st.Policy.ContextLimit = c.was, c.limit
		if got := s.storedAtOnce(c.is); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestContentOfATurn: where the words of a turn's message are found, and what is said where they are not.
func TestContentOfATurn(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "here", Content: "in the log", By: "ada"})
	name, err := x.h.bus.Objects.Put(x.ctx, x.s.ref, []byte(`"beside it"`))
	if err != nil {
		t.Fatal(err)
	}
	x.mustRelay(events.MessageAccepted{Message: "large", Ref: name, By: "ada"})
	for _, c := range []struct {
		request session.WorkTurn
		want    string
		err     error
	}{
		{session.WorkTurn{}, "", nil},
		{session.WorkTurn{Message: "here"}, `"in the log"`, nil},
		{session.WorkTurn{Message: "large"}, `"beside it"`, nil},
		{session.WorkTurn{Message: "long ago", Ref: name}, `"beside it"`, nil},
		{session.WorkTurn{Message: "long ago", Content: json.RawMessage(`1`)}, `1`, nil},
		{session.WorkTurn{Message: "long ago"}, "", ErrUnknown},
		{session.WorkTurn{Message: "here", Ref: "gone"}, "", ErrUnknown},
	} {
		turn.request = c.request
		if got, err := turn.Content(x.ctx); string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v: %s, %v", c.request, got, err)
		}
	}
	if st := x.s.State(); st.Turn.Cause != events.CauseMessage {
		t.Errorf("a turn without a cause: %q", st.Turn.Cause)
	}
	var options struct{ Model string }
	turn.request = session.WorkTurn{}
	if ok, err := turn.Options(&options); ok || err != nil {
		t.Errorf("no options: %t, %v", ok, err)
	}
	turn.request.Options = json.RawMessage(`[]`)
	if ok, err := turn.Options(&options); !ok || err == nil {
		t.Errorf("other options: %t, %v", ok, err)
	}
}

// TestContentOfAPurgedCommit: the content of a purged commit is an error, and not empty.
func TestContentOfAPurgedCommit(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"})
	x.mustRelay(events.ToolCompleted{Call: "c1", Output: json.RawMessage(`1`)})
	x.mustRelay(events.TurnCompleted{Turn: "t1"})
	if err := x.peer.Log.PurgeSession(x.ctx, x.s.ref, x.s.State().Seq); err != nil {
		t.Fatal(err)
	}
	if r, err := x.s.Result(x.ctx, "c1"); err == nil {
		t.Errorf("%+v", r)
	}
	gone := &session.Prompt{Seq: 1, Status: session.Awaiting}
	if f, err := x.s.again(x.ctx, Prompt{ID: "p1"}, gone); err == nil || errors.Is(err, events.ErrMalformed) {
		t.Errorf("%v, %v", f, err)
	}
	if a, err := x.s.readAnswer(x.ctx, Prompt{ID: "p1"}, 1); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := x.s.readAnswer(x.ctx, Prompt{ID: "p1"}, x.s.State().Seq); !errors.Is(err, ErrUnknown) {
		t.Errorf("no settlement there: %+v, %v", a, err)
	}
	x.s.mu.Lock()
	x.s.st.Prompts = map[string]*session.Prompt{"p1": gone}
	x.s.mu.Unlock()
	if facts, err := x.s.adoption(x.ctx, []Adopt{{Prompts: []Prompt{{ID: "p1"}}}}, 9); err == nil {
		t.Errorf("adopted: %v", facts)
	}
	if now, _, err := x.s.adopting(x.ctx, nil, []Adopt{{Prompts: []Prompt{{ID: "p1"}}}}, 9); err == nil {
		t.Errorf("adopted in a claim: %v", now)
	}
}

// TestAttachToASettledPrompt: a prompt that is settled and not delivered names the commit that settled it.
func TestAttachToASettledPrompt(t *testing.T) {
	x := newInside(t)
	st := session.New(x.s.ref)
	st.Prompts = map[string]*session.Prompt{"p1": {Status: session.Answered, SettledSeq: 7}}
	if done, seq, err := x.s.attach(st, "p1"); !done || seq != 7 || err != nil {
		t.Errorf("%t, %d, %v", done, seq, err)
	}
}

// TestVerifyingFails: where it cannot be known who owns the session, the Asks whose settlement was read return
// why; those that wait for a person go on waiting.
func TestVerifyingFails(t *testing.T) {
	x := newInside(t)
	s := newSession(x.h, events.Ref{Harness: "laptop", Session: "apart"})
	read, waits := s.expect("read"), s.expect("waits")
	read.seq = 5
	s.verify()
	if !read.settled() || !errors.Is(read.err, ErrReleased) || waits.settled() || len(s.waiters) != 1 {
		t.Errorf("read: %t, %v; waits: %t", read.settled(), read.err, waits.settled())
	}
	if s.unexpect("waits", waits); len(s.waiters) > 0 {
		t.Error("no Ask waits, and the prompt still has a waiter")
	}
}

// TestRefusedAfterTheFence: the session is taken while a commit is under way, and then the broker refuses that commit
// for another reason. The caller has its error by then.
func TestRefusedAfterTheFence(t *testing.T) {
	x := newInside(t)
	o, err := x.s.newWrite([]events.Fact{events.MessageAccepted{Message: "m1", Synthetic: true}})
	if err != nil {
		t.Fatal(err)
	}
	x.s.writing <- struct{}{}
	if err := x.s.queueUp(false, o); err != nil {
		t.Fatal(err)
	}
	x.s.mu.Lock()
	x.s.unacked = &unacked{first: "e1", writes: []*write{o}}
	x.s.mu.Unlock()
	x.s.drop(ErrFenced)
	x.s.mu.Lock()
	x.s.settleUnacked(ErrFull)
	x.s.mu.Unlock()
	<-x.s.writing
	if <-o.done; !errors.Is(o.err, ErrFenced) {
		t.Error(o.err)
	}
}

// TestKeptFacts: the session cannot be read, and the queue fails. A fact without a caller, such as an adoption after a
// lost lease, is stored with the next one, or given up with the session.
func TestKeptFacts(t *testing.T) {
	x := newInside(t)
	fail := func(id string) {
		x.s.writing <- struct{}{}
		if err := x.s.queueFirst([][]events.Fact{{events.MessageAccepted{Message: id, Synthetic: true}}}); err != nil {
			t.Fatal(err)
		}
		x.s.failQueue(errNothing)
	}
	fail("m1")
	<-x.s.writing
	if err := x.s.Append(x.ctx, events.MessageAccepted{Message: "m2", Synthetic: true}); err != nil {
		t.Fatal(err)
	}
	q := x.s.State().Queue
	if len(q) != 2 || q[0].ID != "m1" || q[1].ID != "m2" {
		t.Errorf("%+v", q)
	}
	fail("m3")
	x.s.drop(ErrFenced)
	<-x.s.writing
	if b := &x.h.buffer; b.facts != 0 || b.bytes != 0 {
		t.Errorf("%d facts, %d bytes wait of a session that was taken", b.facts, b.bytes)
	}
}

// doubtfulStart calls the step, and ends its context while the start of its call is in doubt. Nothing is written until
// the caller receives from x.s.writing.
func (x *inside) doubtfulStart(step func(context.Context) error) {
	x.t.Helper()
	x.s.writing <- struct{}{}
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- step(ctx) }()
	x.queued(1)
	x.s.mu.Lock()
	x.s.unacked = &unacked{writes: x.s.queue}
	x.s.mu.Unlock()
	cancel()
	if err := <-ended; !errors.Is(err, ErrPending) {
		x.t.Fatalf("%v, want ErrPending", err)
	}
}

// queued waits until n writes of the session wait.
func (x *inside) queued(n int) {
	x.t.Helper()
	natstest.Until(x.t, fmt.Sprint(n, " writes to wait"), func() bool { return Waiting(x.s) == n })
}

// TestNotRunOfARefusedStart: the context of a step ends while the start of its call is in doubt, and a second call of
// the step waits behind that. The broker refuses the start together with the fact that the function did not run. That
// fact is tried again, and does not end the call of the second one, which has the same id: its function runs once.
func TestNotRunOfARefusedStart(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	runs := 0
	step := func(ctx context.Context) error {
		_, err := Step(ctx, turn, "deploy", func(ctx context.Context) (int, error) {
			runs++
			for call := range x.s.State().Tools {
				if x.s.knowsNotRun(call) {
					t.Errorf("the function of call %s runs, and the process takes it for one that did not run", call)
				}
			}
			// the kept result is queued before this message
			return runs, x.s.Append(ctx, events.MessageAccepted{Message: fmt.Sprint("run ", runs), Synthetic: true})
		})
		return err
	}
	x.doubtfulStart(step)
	second := make(chan error, 1)
	// it lost a race
	x.s.unsend()
	x.queued(2)
	go func() { second <- step(x.ctx) }()
	x.queued(3)
	x.s.mu.Lock()
	ops, evs, _ := x.s.pick()
	if len(ops) == 2 {
		x.s.unacked = &unacked{first: evs[0].ID, writes: ops}
		x.s.settleUnacked(ErrFull)
	}
	x.s.mu.Unlock()
	<-x.s.writing
	if len(ops) != 2 {
		t.Fatalf("%d writes in the commit, want the start and that it did not run", len(ops))
	}
	if err := errors.Join(<-second, step(x.ctx)); err != nil || runs != 1 {
		t.Errorf("the function ran %d times, %v", runs, err)
	}
}

// TestNotRunIsKnownHere: the context of a step ends while its start is under way, and the start is stored. The broker
// refuses the fact that the function did not run. The next call of the step waits behind that fact, and knows it from
// the process: it runs the function, once.
func TestNotRunIsKnownHere(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	runs := 0
	step := func(ctx context.Context) error {
		_, err := Step(ctx, turn, "deploy", func(context.Context) (int, error) {
			runs++
			return runs, nil
		})
		return err
	}
	x.doubtfulStart(step)
	second := make(chan error, 1)
	x.queued(2)
	// it lost a race
	x.s.unsend()
	x.s.mu.Lock()
	end := x.s.queue[1]
	x.s.queue = x.s.queue[:1]
	x.s.mu.Unlock()
	<-x.s.writing
	natstest.Until(t, "the start to be stored", func() bool { return len(x.s.State().Tools) == 1 })
	x.s.writing <- struct{}{}
	x.s.mu.Lock()
	// the broker has refused it
	x.s.kept = []*write{end}
	x.s.mu.Unlock()
	go func() { second <- step(x.ctx) }()
	x.queued(2)
	x.s.mu.Lock()
	x.s.unacked = &unacked{writes: []*write{end}}
	// once more
	x.s.settleUnacked(ErrFull)
	x.s.mu.Unlock()
	<-x.s.writing
	if err := errors.Join(<-second, step(x.ctx)); err != nil || runs != 1 {
		t.Errorf("the function ran %d times, %v", runs, err)
	}
}

// TestWorkEndsWhileItTakes: the context of Work ends while the start of a turn is under way, and the start is stored
// after that. No handler runs the turn. The next Work runs it, whether the start was stored before or during it, and
// without a Work the program gets it from OpenTurn. It has the request in each case.
func TestWorkEndsWhileItTakes(t *testing.T) {
	for _, next := range []string{"Work", "Work before the start is stored", "OpenTurn"} {
		t.Run(next, func(t *testing.T) {
			x := newInside(t)
			x.appendUnnudged(events.WriterLedger, events.MessageAccepted{Message: "m1", Content: []byte(`"x"`)},
				events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
			if err := errors.Join(x.s.catchUp(x.ctx), x.h.Ready(x.ctx)); err != nil {
				t.Fatal(err)
			}
			ran := make(chan *Turn, 1)
			work := func(ctx context.Context) chan error {
				ended := make(chan error, 1)
				go func() {
					ended <- x.h.Work(ctx, Worker{Turn: func(_ context.Context, turn *Turn) error {
						ran <- turn
						return nil
					}})
				}()
				return ended
			}
			x.s.writing <- struct{}{}
			ctx, cancel := context.WithCancel(x.ctx)
			defer cancel()
			first := work(ctx)
			natstest.Until(t, "the start to wait", func() bool { return Waiting(x.s) == 1 })
			x.s.mu.Lock()
			x.s.unacked = &unacked{writes: x.s.queue}
			x.s.mu.Unlock()
			cancel()
			if err := <-first; err != nil {
				t.Fatal(err)
			}
			// it lost a race
			x.s.unsend()
			if turn := x.s.OpenTurn(); turn != nil {
				t.Fatalf("the turn %s is open before its start is stored", turn.ID())
			}
			stored := func() {
				<-x.s.writing
				natstest.Until(t, "the start to be stored", func() bool { return x.s.State().Turn != nil })
			}
			var turn *Turn
			if next == "OpenTurn" {
				stored()
				turn = x.s.OpenTurn()
			} else {
				if next == "Work" {
					stored()
				}
				ctx, cancel := context.WithCancel(x.ctx)
				defer cancel()
				second := work(ctx)
				if next != "Work" {
					natstest.Until(t, "the second Work to take the turn", func() bool { return Waiting(x.s) == 2 })
					<-x.s.writing
				}
				select {
				case turn = <-ran:
				case <-x.ctx.Done():
					t.Fatal("no handler runs the turn")
				}
				cancel()
				if err := <-second; err != nil {
					t.Error(err)
				}
			}
			if turn == nil || turn.ID() != "t1" || string(turn.Request().Content) != `"x"` {
				t.Fatalf("got the turn %+v", turn)
			}
		})
	}
}

// TestWorkEndsWhileItTakesACompaction: the context of Work ends while the start of a compaction is under way. No
// handler makes it. If its start is stored, it fails at once, and does not wait until it is taken for stalled. Else it
// stays requested.
func TestWorkEndsWhileItTakesACompaction(t *testing.T) {
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprintf("stored %t", stored), func(t *testing.T) {
			x := newInside(t)
			x.appendUnnudged(events.WriterCompaction,
				events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
			if err := errors.Join(x.s.catchUp(x.ctx), x.h.Ready(x.ctx)); err != nil {
				t.Fatal(err)
			}
			x.s.writing <- struct{}{}
			ctx, cancel := context.WithCancel(x.ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- x.h.Work(ctx, Worker{Compact: func(context.Context, *Session,
					session.WorkCompaction) (int64, error) {
					t.Error("the compaction is made")
					return 0, nil
				}})
			}()
			natstest.Until(t, "the start to wait", func() bool { return Waiting(x.s) == 1 })
			x.s.mu.Lock()
			x.s.unacked = &unacked{writes: x.s.queue}
			x.s.mu.Unlock()
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if stored {
				// it lost a race, and is sent again
				x.s.unsend()
			} else {
				x.s.mu.Lock()
				x.s.settleUnacked(ErrFull)
				x.s.mu.Unlock()
			}
			<-x.s.writing
			natstest.Until(t, "nothing to wait", func() bool { return Waiting(x.s) == 0 })
			st := x.s.State()
			if l := st.LastCompaction; stored && (l == nil || l.ErrorKind() != failure.Interrupted) {
				t.Errorf("got the last compaction %+v, and the open one %+v", l, st.Compaction)
			}
			if c := st.Compaction; !stored && (c == nil || c.State != session.CompactionRequested) {
				t.Errorf("got the compaction %+v", c)
			}
		})
	}
}

// TestCompactionWithoutHandlers: a Work without Compact takes a compaction to fail it if it runs turns, and else takes
// nothing, also no turn behind it.
func TestCompactionWithoutHandlers(t *testing.T) {
	x := newInside(t)
	x.appendUnnudged(events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual},
		events.TurnRequested{Turn: "t1", Cause: events.CauseMessage})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	if item, err := x.workLoopOf(nil).findWork(x.ctx, x.s); item != nil || err != nil {
		t.Errorf("a Work without handlers takes %+v, %v", item, err)
	}
	item, err := x.workLoopOf(func(context.Context, *Turn) error { return nil }).findWork(x.ctx, x.s)
	if err != nil || item == nil || item.compaction == nil || !errors.Is(item.refused, errNoCompact) {
		t.Errorf("a Work that runs turns takes %+v, %v", item, err)
	}
}

// TestWorkReleasesNothingThatIsClaimed: a session that Work took in a pool is the program's from the commit on that
// gave it to a second call, also while a release of it waits.
func TestWorkReleasesNothingThatIsClaimed(t *testing.T) {
	x := newInside(t, inPool)
	x.s.takenByWork()
	x.s.writing <- struct{}{}
	released := make(chan error, 1)
	go func() {
		_, err := x.workLoopOf(nil).releaseTaken(x.ctx, x.s)
		released <- err
	}()
	natstest.Until(t, "the release to wait", func() bool { return Waiting(x.s) == 1 })
	x.s.mu.Lock()
	// as by Claim
	x.s.works, x.s.holders = false, 2
	x.s.mu.Unlock()
	<-x.s.writing
	if err := <-released; err != nil || x.s.isApart() {
		t.Errorf("released: %t, %v", x.s.isApart(), err)
	}
	x.s.takenByWork()
	if x.s.isWorks() {
		t.Error("Work took it, although the program has it, too")
	}
}

// TestLastWordIsSentAgain: the end of a turn waits when its caller gives up. It stays in the queue, and is sent again
// after the broker has refused it.
func TestLastWordIsSentAgain(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.s.writing <- struct{}{}
	ctx, cancel := context.WithCancel(x.ctx)
	result := make(chan error, 1)
	go func() { result <- x.s.appendLast(ctx, nil, events.TurnCompleted{Turn: "t1"}) }()
	natstest.Until(t, "the end to wait", func() bool { return Waiting(x.s) == 1 })
	cancel()
	if err := <-result; !errors.Is(err, ErrPending) {
		t.Fatalf("got %v", err)
	}
	x.s.mu.Lock()
	x.s.unacked = &unacked{writes: x.s.queue}
	x.s.settleUnacked(ErrFull)
	x.s.mu.Unlock()
	<-x.s.writing
	natstest.Until(t, "the end to be stored", func() bool { return x.s.State().Turn == nil })
	x.s.handOnTurn("t1")
	if x.s.forWork != "" {
		t.Errorf("the turn %s has ended, and is left to the next Work", x.s.forWork)
	}
}

// TestLeftTurnKeepsOtherAnswers: a turn is left to the next Work. An answer that was returned meanwhile in a call in
// the background is still known to be returned, so its call ends.
func TestLeftTurnKeepsOtherAnswers(t *testing.T) {
	for _, in := range []string{"", "t1"} {
		x := newInside(t)
		x.turn(StartOptions{ID: "t1"})
		x.mustRelay(events.ToolStarted{Call: "c1", Turn: in, Name: "ask", Background: true},
			events.PromptRequested{Prompt: "p1", Call: "c1", Turn: in, PromptKind: events.PromptQuestion,
				Delivery: events.DeliverToolResult})
		x.appendUnnudged(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada", Owed: true})
		if err := x.s.catchUp(x.ctx); err != nil {
			t.Fatal(err)
		}
		if a, err := x.s.Ask(x.ctx, Prompt{ID: "p1", Call: "c1"}); err != nil || a.Status != session.Answered {
			t.Fatalf("got %+v, %v", a, err)
		}
		x.s.handOnTurn("t1")
		if err := x.s.Call("c1").Complete(x.ctx, "x"); err != nil {
			t.Errorf("in turn %q: %v", in, err)
		}
	}
}

// TestTakenTurnHasItsRequest: the start of a turn is stored, and its handle is made, before the Work that took the turn
// has left it. The handle gets the request.
func TestTakenTurnHasItsRequest(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	turn.request = session.WorkTurn{}
	x.s.handOnTaken(&workItem{turn: &session.WorkTurn{Turn: "t1", Message: "m1"}})
	if r := turn.Request(); r.Message != "m1" {
		t.Errorf("got the request %+v", r)
	}
}

// TestLargeIndexIsDropped: what a turn has read of the log is kept for the next turn, unless it is large. Turns count
// as calls do. The turn that has read it keeps it.
func TestLargeIndexIsDropped(t *testing.T) {
	for _, c := range []struct {
		begins, turns int
		by            string // the turn that looked for something last
		kept          bool
	}{
		{indexMax / 2, indexMax / 2, "t0", true},
		{indexMax / 2, indexMax/2 + 1, "t0", false},
		{0, indexMax + 1, "t0", false},
		{indexMax + 1, 0, "t0", false},
		{indexMax + 1, indexMax, "t1", true},
	} {
		x := newInside(t)
		turn := x.turn(StartOptions{ID: "t1"})
		index := &logIndex{turn: c.by, st: x.s.State(), ends: map[string]session.Ending{}, begins: map[string]uint64{},
			turns: map[string]turnOf{}}
		for i := range c.begins {
			index.begins[fmt.Sprint(i)] = 1
		}
		for i := range c.turns {
			index.turns[fmt.Sprint(i)] = turnOf{}
		}
		x.s.index = index
		if err := turn.inLog(x.ctx, func(*logIndex) {}); err != nil {
			t.Fatal(err)
		}
		if kept := x.s.index == index; kept != c.kept {
			t.Errorf("%d calls and %d turns, read by %s: kept %t", c.begins, c.turns, c.by, kept)
		}
	}
}

// TestALifeThatHasEnded: a session under a lease that was lost is not owned, also before that was noticed; one
// that this process gives up is given up.
func TestALifeThatHasEnded(t *testing.T) {
	x := newInside(t)
	lost := x.dead(ErrLeaseLost)
	x.s.mu.Lock()
	x.s.term = lost
	x.s.mu.Unlock()
	ctx, cancel := brief(x.ctx)
	defer cancel()
	if err := x.s.verifyOwner(ctx); !errors.Is(err, context.DeadlineExceeded) || !Suspended(x.s) {
		t.Errorf("%v", err)
	}
	other, err := x.h.Open(x.ctx, "other", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	over := x.dead(ErrClosed)
	other.mu.Lock()
	other.term = over
	other.mu.Unlock()
	if other.suspend(over); !other.isApart() {
		t.Error("a session of a process that has left waits for a lease")
	}
	ended := x.dead(ErrLeaseLost)
	x.h.mu.Lock()
	was := x.h.term
	x.h.term = ended
	x.h.mu.Unlock()
	if l, err := x.h.mayTake(ctx, x.s); l != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("taken without a lease: %v", err)
	}
	x.h.mu.Lock()
	x.h.term = was
	x.h.mu.Unlock()
}

// TestReadAfterALostLease: the session is to be read before waiting facts are decided again, and its lease is lost. It
// waits for the next incarnation, and so do the facts.
func TestReadAfterALostLease(t *testing.T) {
	x := newInside(t)
	o, err := x.s.newWrite([]events.Fact{events.MessageAccepted{Message: "m1", Synthetic: true}})
	if err != nil {
		t.Fatal(err)
	}
	x.s.writing <- struct{}{}
	if err := x.s.queueUp(false, o); err != nil {
		t.Fatal(err)
	}
	lost := x.dead(ErrLeaseLost)
	x.s.mu.Lock()
	x.s.term = lost
	x.s.mu.Unlock()
	if x.s.readOrFail(lost) || !Suspended(x.s) || Waiting(x.s) != 1 {
		t.Errorf("suspended: %t, %d facts wait", Suspended(x.s), Waiting(x.s))
	}
	<-x.s.writing
	x.s.drop(ErrFenced)
}

// TestVerifyingAnOverdueLease: an Ask whose context ends does not wait until an overdue lease is lost.
func TestVerifyingAnOverdueLease(t *testing.T) {
	x := newInside(t)
	_, overdue, err := Unkept(x.ctx, x.h, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the lease to be overdue", overdue)
	ctx, cancel := context.WithCancel(x.ctx)
	cancel()
	out := make(chan error, 1)
	go func() { out <- x.s.verifyOwner(ctx) }()
	select {
	case err := <-out:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-x.ctx.Done():
		t.Fatal("it waits for the lease")
	}
}

// slowRead is a context under which the first read waits.
type slowRead struct {
	context.Context
	once         sync.Once
	began, ended chan struct{}
}

func (c *slowRead) Done() <-chan struct{} {
	c.once.Do(func() {
		close(c.began)
		<-c.ended
	})
	return c.Context.Done()
}

// TestALeaseThatRunsOutWhileTheLogIsRead: the lease is in date when the log begins to be read, and overdue after it.
// Another process may have the session by then, so this one is not known to own it.
func TestALeaseThatRunsOutWhileTheLogIsRead(t *testing.T) {
	x := newInside(t, inPool)
	_, overdue, err := Unkept(x.ctx, x.h, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	last := x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	slow := &slowRead{Context: ctx, began: make(chan struct{}), ended: make(chan struct{})}
	out := make(chan error, 1)
	go func() { out <- x.s.verifyOwner(slow) }()
	<-slow.began
	natstest.Until(t, "the lease to be overdue", overdue)
	close(slow.ended)
	natstest.Until(t, "the log to be read", func() bool { return x.s.State().Seq == last })
	cancel()
	if err := <-out; !errors.Is(err, context.Canceled) {
		t.Errorf("%v: a process with an overdue lease owns the session", err)
	}
}

// TestHintDuringAFailedRead: a nudge arrives while the session is read because of another one, and that read fails. The
// session is read again. A read that fails without a nudge ends.
func TestHintDuringAFailedRead(t *testing.T) {
	x := newInside(t, inPool)
	x.s.mu.Lock()
	x.s.want, x.s.hinted, x.s.reading = x.s.st.Seq+1, false, true
	x.s.mu.Unlock()
	seq := x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
	x.s.readUpTo(seq)
	if x.s.endFailedRead() {
		t.Error("the nudge is lost")
	}
	x.s.readOn()
	if st := x.s.State(); st.Seq != seq || Reading(x.s) {
		t.Errorf("read up to %d of %d", st.Seq, seq)
	}
	x.s.mu.Lock()
	x.s.want, x.s.hinted, x.s.reading = seq+1, false, true
	x.s.mu.Unlock()
	if !x.s.endFailedRead() || Reading(x.s) {
		t.Error("it reads on")
	}
}

// TestReadTurn: the handle of an adopted turn receives the request of that turn, once.
func TestReadTurn(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1", Content: "x", Message: "m1"})
	st, idle := x.s.State(), x.s.State()
	idle.Turn = nil
	adopted, other := &Turn{s: x.s, id: "t1"}, &Turn{s: x.s, id: "t0"}
	for name, read := range map[string]error{
		"no open turn":              x.s.readTurn(x.ctx, nil, st),
		"the turn has ended since":  x.s.readTurn(x.ctx, other, idle),
		"another turn is open":      x.s.readTurn(x.ctx, other, st),
		"the turn that was adopted": x.s.readTurn(x.ctx, adopted, st),
	} {
		if read != nil {
			t.Errorf("%s: %v", name, read)
		}
	}
	if r := adopted.Request(); r.Turn != "t1" || string(r.Content) != `"x"` || other.Request().Turn != "" {
		t.Errorf("%+v; of another turn: %+v", r, other.Request())
	}
	x.h.bus.Close()
	ctx, cancel := brief(x.ctx)
	defer cancel()
	if err := x.s.readTurn(ctx, adopted, st); err != nil {
		t.Errorf("it reads what it has: %v", err)
	}
	if err := x.s.readTurn(ctx, &Turn{s: x.s, id: "t1"}, st); err == nil {
		t.Error("the request of a turn cannot be read, and that is no error")
	}
}

// TestStartsOverWithoutATicket: where no ticket can be found, because it was removed, a process starts over all
// the same.
func TestStartsOverWithoutATicket(t *testing.T) {
	x := newInside(t)
	e, err := x.peer.KV.Load(x.ctx, kv.Leases, events.TicketKey("laptop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.peer.KV.Delete(x.ctx, kv.Leases, events.TicketKey("laptop"), e.Rev); err != nil {
		t.Fatal(err)
	}
	if l, err := x.h.beginAgain(); err != nil || l == nil {
		t.Errorf("%v", err)
	}
}

// TestAClaimInDoubtIsFound: a process that starts over finds its own claim with an unknown outcome, and continues.
func TestAClaimInDoubtIsFound(t *testing.T) {
	x := newInside(t)
	sent, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	x.s.suspend(x.h.term)
	x.s.mu.Lock()
	x.s.claiming = []string{sent.incarnation}
	after := x.s.st.Seq
	x.s.mu.Unlock()
	claim := events.New(x.peer.NewID(), events.HarnessSource("laptop", sent.incarnation), x.s.ref, 2, time.Now(),
		events.SessionClaimed{Incarnation: sent.incarnation})
	if _, err := x.peer.Log.Append(x.ctx, x.s.ref, events.WriterHarness, after, []events.Event{claim}); err != nil {
		t.Fatal(err)
	}
	next, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.s.reclaim(next); err != nil || x.s.isApart() || x.s.State().Incarnation != next.incarnation {
		t.Errorf("%v, owned by %s of %s", err, x.s.State().Incarnation, next.incarnation)
	}
	x.s.suspend(next)
	// the session may be locked first, or the end of the lease be seen first
	for range 20 {
		if err := x.s.reclaim(x.dead(ErrLeaseLost)); err == nil || !Suspended(x.s) {
			t.Fatalf("under a lease that is lost as well: %v", err)
		}
	}
}

// TestClaimsWithAnOutcomeAreForgotten: a process loses its lease again and again. It remembers no claim from before it
// knew again that it owns the session: the list would grow for as long as the process lives.
func TestClaimsWithAnOutcomeAreForgotten(t *testing.T) {
	x := newInside(t)
	for range 3 {
		x.s.suspend(x.h.term)
		next, err := x.h.begin(x.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.s.reclaim(next); err != nil {
			t.Fatal(err)
		}
		if x.s.hasClaimed(next.incarnation) {
			t.Errorf("the claim under %s has its outcome, and is remembered", next.incarnation)
		}
	}
}

// TestTakenUnderALostLease: the lease is lost while a claim is under way, and the claim is stored. The session is
// suspended at once, without a wait for the broker: its context ends. The program has it again after the process has
// started over.
func TestTakenUnderALostLease(t *testing.T) {
	x := newInside(t, func(c *Config) { c.OnLeaseLoss = LeaseRestart })
	lost := x.dead(ErrLeaseLost)
	x.s.suspend(x.h.term)
	if !x.s.begin(lost) || !Suspended(x.s) || !errors.Is(context.Cause(x.s.Context()), ErrLeaseLost) {
		t.Errorf("suspended: %t, the context ended with %v", Suspended(x.s), context.Cause(x.s.Context()))
	}
	next, err := x.h.begin(x.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.s.reclaim(next); err != nil || Suspended(x.s) || x.s.Context().Err() != nil {
		t.Errorf("%v; suspended: %t, %v", err, Suspended(x.s), x.s.Context().Err())
	}
}

// TestTooLargeToAdopt: an adoption that no commit can hold is refused before anything is sent, without a doubt about
// it.
func TestTooLargeToAdopt(t *testing.T) {
	x := newInside(t)
	large := strings.Repeat("x", 2*events.CommitBodyMax)
	_, err := x.h.Open(x.ctx, "large", OpenOptions{Title: large})
	if doubt, ok := errors.AsType[*doubtError](err); err == nil || ok {
		t.Errorf("%v", doubt)
	}
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(prompted("t1", events.DeliverCallback))
	if _, _, err := x.s.adopting(x.ctx, nil, []Adopt{{Prompts: []Prompt{{ID: "p1", Title: large}}}}, 9); err == nil {
		t.Error("adopted")
	}
	if err := noRoom(false, "s"); err != nil {
		t.Errorf("room enough: %v", err)
	}
}

// TestReleaseWhileSomebodyAnswers: a session is released although a prompt that was to be withdrawn is settled
// meanwhile.
func TestReleaseWhileSomebodyAnswers(t *testing.T) {
	x := newInside(t, inPool)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(prompted("t1", events.DeliverCallback))
	x.appendUnnudged(events.WriterLedger, events.PromptDismissed{Prompt: "p1", By: "ada"})
	if err := x.s.Release(x.ctx, "done"); err != nil {
		t.Error(err)
	}
}

// slow is a timeout by its type, not by its words.
type slow struct{ error }

func (slow) Timeout() bool   { return true }
func (slow) Temporary() bool { return true }

// TestTextsOfErrors: the words and kinds of errors.
func TestTextsOfErrors(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{(&EndedError{Stands: session.Ending{Entity: "turn", ID: "t", Outcome: "failed", Reason: "quota"}}).Error(),
			"turn t: failed (quota)"},
		{(&StopError{Actor: "person", By: "ada", Reason: "enough"}).Error(), "by person ada: enough"},
	} {
		if !strings.HasSuffix(c.got, c.want) {
			t.Errorf("%q does not end in %q", c.got, c.want)
		}
	}
	if f, _ := failureOf(fmt.Errorf("call: %w", slow{errors.New("x")})); f.Kind != failure.Network {
		t.Errorf("a timeout is %q", f.Kind)
	}
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"}, events.ToolCompleted{Call: "c1"},
		prompted("t1", events.DeliverCallback),
		events.PromptWithdrawn{Prompt: "p1", Reason: "x"}, events.TurnCompleted{Turn: "t1"})
	for _, f := range []events.Fact{events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"},
		prompted("t1", events.DeliverCallback)} {
		if err := x.s.Append(x.ctx, f); !errors.Is(err, ErrClosedID) || errors.Is(err, ErrEnded) {
			t.Errorf("%s under an id that was used: %v", f.Kind(), err)
		}
	}
	ctx, cancel := context.WithCancel(x.ctx)
	cancel()
	if h, err := Connect(ctx, Config{ID: "laptop", URL: "nats://127.0.0.1:1"}); h != nil || err == nil {
		t.Errorf("connected: %v", err)
	}
}

// TestACompactionThatLostItsLease: a compaction that is cut off because the lease was lost has failed for that reason,
// whatever its handler returns.
func TestACompactionThatLostItsLease(t *testing.T) {
	x := newInside(t)
	x.appendUnnudged(events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 1, Limit: 2})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.mustRelay(events.CompactionStarted{Compaction: "k1"})
	k := x.workLoopOf(nil)
	k.w.Compact = func(context.Context, *Session, session.WorkCompaction) (int64, error) {
		x.s.cancel(ErrLeaseLost)
		return 0, errors.New("invalid api key")
	}
	if err := k.compact(x.ctx, x.s, session.WorkCompaction{Compaction: "k1"}); err != nil {
		t.Fatal(err)
	}
	if c := x.s.State().LastCompaction; c == nil || c.Error == nil || c.Error.Kind != failureLeaseLost {
		t.Errorf("%+v", c)
	}
}

// TestCloseReportsTheLease: a lease that could not be given back is reported by Close, beside what else failed.
func TestCloseReportsTheLease(t *testing.T) {
	x := newInside(t)
	x.h.bus.Close()
	ctx, cancel := brief(x.ctx)
	defer cancel()
	err := x.h.Close(ctx)
	if err == nil || !strings.Contains(err.Error(), "delete "+events.HarnessLeaseKey("laptop", x.h.Incarnation())) {
		t.Errorf("%v", err)
	}
}
