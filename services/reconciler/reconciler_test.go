package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestKilled is R1 and R2: all calls of a killed harness are closed once, with a reason; those of another one are
// untouched.
func TestKilled(t *testing.T) {
	// it mostly waits
	t.Parallel()
	c := start(t)
	c.reconcile(c.b, quick())
	dead, alive := c.harness("dead", "ready", ttlShort), c.harness("alive", "ready", ttlLong)
	for i := range 20 {
		dead.open(fmt.Sprint("s", i), 3)
	}
	alive.open("s", 3)
	dead.die()
	for i := range 20 {
		name := fmt.Sprint("s", i)
		natstest.Until(t, name+" to be recovered", func() bool { return recovered(c.state("dead", name)) })
		if got := c.facts("dead", name); got["session.orphaned"] != 1 || got["tool.interrupted"] != 3 ||
			got["turn.interrupted"] != 1 || len(got) != 3 {
			t.Errorf("%s: recovery said %v", name, got)
		}
	}
	if s := c.state("alive", "s"); !s.Owned || len(s.Tools) != 3 {
		t.Errorf("the living one's session was touched: %+v", s)
	}
}

// TestReadySupersedes: the items of an older incarnation are closed at once when the newer one is ready, even while the
// older one's lease lives; the fence names the newer one.
func TestReadySupersedes(t *testing.T) {
	c := start(t)
	cfg := quick()
	cfg.AdoptionGrace, cfg.Walk = time.Hour, time.Hour
	c.reconcile(c.b, cfg)
	old := c.harness("h", "ready", ttlLong)
	old.open("s", 2)
	newer := c.harness("h", "starting", ttlLong)
	natstest.Until(t, "the document", func() bool {
		_, err := c.b.KV.Load(c.ctx, kv.State, "session.h.s")
		return err == nil
	})
	if s := c.state("h", "s"); !s.Owned {
		t.Error("fenced before the newer incarnation said ready")
	}
	newer.renew("ready")
	natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", "s")) })
	if s := c.state("h", "s"); s.SupersededBy != newer.incarnation {
		t.Errorf("superseded by %q", s.SupersededBy)
	}
}

// TestAdoptionGrace: a newer incarnation that never becomes ready supersedes the older one after the adoption grace.
func TestAdoptionGrace(t *testing.T) {
	c := start(t)
	cfg := quick()
	cfg.AdoptionGrace, cfg.Walk = 500*time.Millisecond, time.Hour
	c.reconcile(c.b, cfg)
	c.harness("h", "ready", ttlLong).open("s", 1)
	c.harness("h", "starting", ttlLong)
	natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", "s")) })
}

// TestAdoptionTakesAsLongAsItNeeds: a new incarnation that is not ready, and claims one session after the other, has
// time for all of them, long after the adoption grace, and after the lease of the one before has ended and its grace
// has passed. Sessions that it does not claim are recovered when it claims no more.
func TestAdoptionTakesAsLongAsItNeeds(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const sessions, every = 40, 200 * time.Millisecond
	c := start(t)
	cfg := quick()
	// a shorter stall of the machine spoils nothing
	cfg.AdoptionGrace, cfg.Walk = 2*time.Second, 500*time.Millisecond
	c.reconcile(c.b, cfg)
	old := c.harness("h", "ready", ttlShort)
	for i := range sessions {
		old.open(fmt.Sprint("s", i), 1)
	}
	old.open("left", 1)
	old.die()
	next := c.harness("h", "starting", ttlLong)
	tick := time.NewTicker(every)
	defer tick.Stop()
	// 8 s: longer than the adoption grace, and longer than the lease and the grace of the one before
	for i := range sessions {
		<-tick.C
		name := fmt.Sprint("s", i)
		next.seqs[name], next.epochs[name] = old.seqs[name], old.epochs[name]
		next.append(name, events.SessionClaimed{Incarnation: next.incarnation},
			events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
			events.ToolStarted{Call: "c0", Turn: "t1", Name: "bash"})
	}
	if s := c.state("h", "left"); !s.Owned {
		t.Error("a session that was not reached yet was recovered")
	}
	natstest.Until(t, "recovery of what is not claimed", func() bool { return recovered(c.state("h", "left")) })
	if s := c.state("h", "left"); s.SupersededBy != next.incarnation {
		t.Errorf("superseded by %q", s.SupersededBy)
	}
	for i := range sessions {
		name := fmt.Sprint("s", i)
		if s := c.state("h", name); !s.Owned || s.Epoch != 2 || len(s.Tools) != 1 || len(c.facts("h", name)) != 0 {
			t.Errorf("%s: owned %t, epoch %d, recovery said %v", name, s.Owned, s.Epoch, c.facts("h", name))
		}
	}
}

// TestClaimsThatCannotBeRead: during an outage of the log, a pass records that no incarnation can claim.
func TestClaimsThatCannotBeRead(t *testing.T) {
	server := natstest.Start(t)
	b := natstest.Bus(t, server)
	r, err := New(b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	now, err := r.now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.leases.start(now.here)
	r.leases.seen("h", "18", kv.Entry{Key: "harness.h.18", Value: leaseBody(t, "18", lease.Starting), At: now.Now}, now)
	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), b.Cell().LogStream()); err != nil {
		t.Fatal(err)
	}
	if err := r.learnClaims(t.Context(), "h"); err == nil {
		t.Fatal("a log that is not there was read")
	}
	if l := r.leases.view.Leases["h"]["18"]; !l.Unread {
		t.Errorf("%+v", l)
	}
}

// TestReleased is R16: after the release of a lease there is no grace.
func TestReleased(t *testing.T) {
	c := start(t)
	cfg := quick()
	cfg.Grace, cfg.Walk = time.Hour, time.Hour
	r, _ := c.reconcile(c.b, cfg)
	p := c.harness("h", "ready", ttlLong)
	p.open("s", 1)
	p.append("s", events.PromptRequested{Prompt: "p", Turn: "t1", Call: "c0", PromptKind: events.PromptPermission,
		Delivery: events.DeliverCallback})
	p.append("s", events.SessionReleased{})
	// it forgot to release this one
	p.open("kept", 1)
	c.settled(r)
	p.end()
	if err := p.lease.Release(c.ctx); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "recovery", func() bool {
		return recovered(c.state("h", "s")) && recovered(c.state("h", "kept"))
	})
	s := c.state("h", "s")
	if e, _ := s.Ended(session.EntityPrompt, "p"); e.Outcome != string(session.Withdrawn) ||
		e.Reason != events.ReasonShutdown {
		t.Errorf("the callback prompt ended as %+v", e)
	}
	if n := c.facts("h", "s")["session.orphaned"]; n != 0 {
		t.Error("a released session was orphaned")
	}
}

// TestAbandoned is R20: a supervisor writes into the lease how its process ended. All its sessions are orphaned at
// once, with that as the detail.
func TestAbandoned(t *testing.T) {
	c := start(t)
	cfg := quick()
	cfg.Grace, cfg.Walk = time.Hour, time.Hour
	r, _ := c.reconcile(c.b, cfg)
	p := c.harness("h", "ready", ttlLong)
	p.open("s", 1)
	p.open("more", 2)
	c.settled(r)
	p.end()
	p.value.Abandoned = "killed\n by \x1b[2JSIGKILL" + strings.Repeat("!", 8<<10)
	p.renew("draining")
	for _, name := range []string{"s", "more"} {
		natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", name)) })
		detail, n := "", 0
		commits, err := c.b.Log.Read(c.ctx, events.Ref{Harness: "h", Session: name}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, commit := range commits {
			for _, e := range commit.Events {
				if f, ok := e.Fact.(events.SessionOrphaned); ok {
					detail, n = f.Detail, n+1
				}
			}
		}
		if n != 1 || !strings.HasPrefix(detail, "killed  by  [2JSIGKILL!") || len(detail) > events.DetailBytesMax {
			t.Errorf("%s: orphaned %d times: %q", name, n, detail)
		}
	}
}

// TestTwoReplicas is R3: two concurrent reconcilers append everything once.
func TestTwoReplicas(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s))
	c.reconcile(c.b, quick())
	c.reconcile(natstest.Bus(t, s), quick())
	p := c.harness("h", "ready", ttlShort)
	for i := range 50 {
		p.open(fmt.Sprint("s", i), 4)
	}
	p.die()
	for i := range 50 {
		name := fmt.Sprint("s", i)
		natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", name)) })
		st := c.state("h", name)
		if got := c.facts("h", name); got["session.orphaned"] != 1 || got["tool.interrupted"] != 4 ||
			got["turn.interrupted"] != 1 || st.Ignored.Count != 0 {
			t.Errorf("%s: recovery said %v, ignored %d", name, got, st.Ignored.Count)
		}
	}
}

// TestStartsLate: a process that died before the reconciler started is found at its start, without its lease.
func TestStartsLate(t *testing.T) {
	c := start(t)
	p := c.harness("h", "ready", ttlLong)
	p.open("s", 2)
	p.end()
	if err := p.lease.Release(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.harness("h", "ready", ttlLong)
	natstest.Until(t, "the document", func() bool {
		_, err := c.b.KV.Load(c.ctx, kv.State, "session.h.s")
		return err == nil
	})
	c.reconcile(c.b, quick())
	natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", "s")) })
}

// TestTree is R1 and P16: a tree whose child waits for a person is held, and its root continues when the child has
// settled.
func TestTree(t *testing.T) {
	// it mostly waits
	t.Parallel()
	c := start(t)
	cfg := quick()
	cfg.Walk = time.Hour
	r, _ := c.reconcile(c.b, cfg)
	p := c.harness("h", "ready", ttlShort)
	p.open("root", 2)
	for i, name := range []string{"waits", "works"} {
		p.append(name, events.SessionOpened{Incarnation: p.incarnation, Parent: "root", ParentCall: fmt.Sprint("c", i),
			Root: "root"},
			events.TurnStarted{Turn: "k1", Cause: events.CauseMessage, Synthetic: true},
			events.ToolStarted{Call: "k", Turn: "k1", Name: "question"})
	}
	p.append("waits", question("p1", "k1", "k"))
	p.die()
	natstest.Until(t, "recovery", func() bool {
		s := c.state("h", "root")
		return !s.Owned && len(s.Tools) == 1 && recovered(c.state("h", "works")) && !c.state("h", "waits").Owned
	})
	s := c.state("h", "root")
	if s.Tools["c0"] == nil || s.Turn == nil || s.Phase != session.Waiting {
		t.Fatalf("the root does not wait: %s %v", s.Phase, s.Tools)
	}
	c.fencedFirst("h", "root", "waits", "works")
	next := c.harness("h", "ready", ttlLong)
	c.settled(r)
	next.seqs["waits"], next.epochs["waits"] = c.state("h", "waits").Seq, 1
	next.append("waits", events.SessionClaimed{Incarnation: next.incarnation},
		events.TurnStarted{Turn: "k2", Cause: events.CauseAnswer, OfTurn: "k1", Synthetic: true},
		events.TurnCompleted{Turn: "k2"})
	natstest.Until(t, "the root to go on", func() bool {
		s := c.state("h", "root")
		return s.Pending.Turn != nil && len(s.Tools) == 0
	})
	s = c.state("h", "root")
	if e, _ := s.Ended(session.EntityTool, "c0"); e.Outcome != session.OutcomeCompleted ||
		s.Pending.Turn.OfTurn != "t1" || s.Pending.Turn.Cause != events.CauseResume {
		t.Errorf("call %+v, pending %+v", e, s.Pending.Turn)
	}
	if n := c.facts("h", "root")["turn.requested"]; n != 1 {
		t.Errorf("%d continuations", n)
	}
}

// TestFenceReadsTheLog: documents lag behind the log. A refused fence reads the log, once: then it fences a session
// whose owner is dead at the first attempt, and skips one that a living process has claimed since.
func TestFenceReadsTheLog(t *testing.T) {
	c := &cell{t: t, b: natstest.Bus(t, natstest.Start(t))}
	var end func()
	c.ctx, end = context.WithCancel(context.Background())
	t.Cleanup(end)
	stop := c.fold()
	old := c.harness("h", "ready", ttlLong)
	for _, root := range []string{"dead", "claimed"} {
		old.open(root, 1)
		old.append(root+"-child",
			events.SessionOpened{Incarnation: old.incarnation, Parent: root, ParentCall: "c0", Root: root},
			events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Synthetic: true},
			events.ToolStarted{Call: "k", Turn: "t1", Name: "bash"})
	}
	natstest.Until(t, "the documents", func() bool {
		n := 0
		err := c.b.KV.List(c.ctx, kv.State, events.SessionKeys("h"), func(kv.Entry) error { n++; return nil })
		return err == nil && n == 4
	})
	// from now on they lag
	stop()
	next := c.harness("h", "starting", ttlLong)
	for _, name := range []string{"dead", "dead-child"} {
		old.append(name, events.ToolStarted{Call: "late", Turn: "t1", Name: "bash"})
	}
	for _, name := range []string{"claimed", "claimed-child"} {
		next.seqs[name], next.epochs[name] = old.seqs[name], old.epochs[name]
		next.append(name, events.SessionClaimed{Incarnation: next.incarnation})
	}
	r, err := New(c.b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r.leases.renewed(now)
	r.leases.view.put("h", old.incarnation,
		&Seen{Exclusive: true, State: "ready", TTL: ttlLong, Since: now, Renewed: now, Ended: now, Released: true})
	// it supersedes nothing
	r.leases.view.put("h", next.incarnation, &Seen{State: "ready", TTL: ttlLong, Since: now, Renewed: now})
	r.leases.start(now)
	p := r.newPass(events.Ref{Harness: "h"})
	if err := p.run(c.ctx); err != nil || p.failed > 0 || p.facts["session.orphaned"] != 2 {
		t.Errorf("the pass: %v, %d failed, counted %v", err, p.failed, p.facts)
	}
	for _, name := range []string{"dead", "dead-child"} {
		if s := c.state("h", name); !recovered(s) || c.facts("h", name)["session.orphaned"] != 1 ||
			c.facts("h", name)["tool.interrupted"] != 2 {
			t.Errorf("%s: %+v, recovery said %v", name, s, c.facts("h", name))
		}
	}
	for _, name := range []string{"claimed", "claimed-child"} {
		if s := c.state("h", name); !s.Owned || s.Incarnation != next.incarnation ||
			c.facts("h", name)["session.orphaned"] != 0 {
			t.Errorf("%s: owned %t by %s, recovery said %v", name, s.Owned, s.Incarnation, c.facts("h", name))
		}
	}
}

// TestCircle: sessions that are each other's children are recovered all the same.
func TestCircle(t *testing.T) {
	// it mostly waits
	t.Parallel()
	c := start(t)
	c.reconcile(c.b, quick())
	p := c.harness("h", "ready", ttlShort)
	for name, parent := range map[string]string{"a": "b", "b": "a", "self": "self"} {
		p.append(name, events.SessionOpened{Incarnation: p.incarnation, Parent: parent, ParentCall: "c0", Root: "a"},
			events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
			events.ToolStarted{Call: "c0", Turn: "t1", Name: "task"})
	}
	p.die()
	for _, name := range []string{"a", "b", "self"} {
		natstest.Until(t, name, func() bool { return recovered(c.state("h", name)) })
	}
}

// fencedFirst checks that a session was fenced, and that it was decided after the sessions below it were fenced.
func (c *cell) fencedFirst(harness, root string, below ...string) {
	c.t.Helper()
	_, decided := c.recovery(harness, root)
	for _, name := range append(below, root) {
		if fenced, _ := c.recovery(harness, name); fenced == 0 || decided != 0 && decided < fenced {
			c.t.Errorf("%s was fenced in commit %d, %s was decided in %d", name, fenced, root, decided)
		}
	}
}

// recovery returns the commits in which a session was first fenced, and first decided; 0: none.
func (c *cell) recovery(harness, name string) (fenced, decided uint64) {
	c.t.Helper()
	commits, err := c.b.Log.Read(c.ctx, events.Ref{Harness: harness, Session: name}, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, commit := range commits {
		if commit.Writer != events.WriterReconciler {
			continue
		}
		for _, e := range commit.Events {
			switch orphaned := e.Kind == "session.orphaned"; {
			case orphaned && fenced == 0:
				fenced = commit.Seq
			case !orphaned && decided == 0:
				decided = commit.Seq
			}
		}
	}
	return fenced, decided
}

// TestServiceStarts: the start of any service triggers a pass over everything.
func TestServiceStarts(t *testing.T) {
	c := start(t)
	cfg := quick()
	cfg.Walk = time.Hour
	r, _ := c.reconcile(c.b, cfg)
	p := c.harness("h", "ready", ttlLong)
	p.open("s", 1)
	// no further renewal, which would be a trigger
	p.end()
	c.settled(r)
	// without a trigger: only a read finds it
	r.leases.mu.Lock()
	r.leases.view.put("h", p.incarnation,
		&Seen{Exclusive: true, State: "ready", TTL: time.Second, Ended: time.Now(), Released: true})
	r.leases.mu.Unlock()
	c.background(func(ctx context.Context) error { return control.Register(ctx, c.b, "ledger", "1") })
	natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", "s")) })
}

// TestLaggingWatch: an owner whose lease was not read yet is not dead, for any duration of the watch.
func TestLaggingWatch(t *testing.T) {
	c := start(t)
	r, err := New(c.b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	now, err := r.now(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	// without any lease
	r.leases.start(now.here.Add(-time.Hour))
	r.leases.renewed(now.here)
	alive := c.harness("h", "ready", ttlLong)
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Owned, s.Exclusive, s.Epoch, s.Incarnation = true, true, 1, alive.incarnation
	if o, err := r.checkOwner(c.ctx, s, now); err != nil || o.Liveness != Alive || o.CheckAt.IsZero() {
		t.Errorf("the living one: %+v, %v", o, err)
	}
	s.Incarnation = "999999"
	if o, err := r.checkOwner(c.ctx, s, now); err != nil || o.Liveness != Dead {
		t.Errorf("one that is not there: %+v, %v", o, err)
	}
}

// TestDeletionsOfUnknownLeasesAreCounted: the watch of the leases also reports deletions of leases that never were. The
// broker stores them, so each counts for its harness.
func TestDeletionsOfUnknownLeasesAreCounted(t *testing.T) {
	const deletions, lease = 3, "9"
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s))
	r, err := New(c.b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c.background(r.watchLeases)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	put := func(incarnation string, h nats.Header) {
		subject := "$KV." + c.b.Cell().LeaseBucket() + "." + events.HarnessLeaseKey("h", incarnation)
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: h}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range deletions {
		put(fmt.Sprint(n+1), nats.Header{"KV-Operation": {"DEL"}})
	}
	put(lease, nil)
	counted := 0
	natstest.Until(t, "the lease behind the deletions to be seen", func() bool {
		k := r.leases
		k.mu.Lock()
		defer k.mu.Unlock()
		if w := k.written[events.HarnessLeaseKeys("h")]; w != nil {
			counted = w.since
		}
		return k.view.Leases["h"][lease] != nil
	})
	// a watch that begins again reports and counts deletions again
	if counted < deletions+1 {
		t.Errorf("%d changes are counted, want %d", counted, deletions+1)
	}
}

// TestPassReportsWhatItCannotRead: a pass reports unreadable documents itself, because another replica may be the
// consumer.
func TestPassReportsWhatItCannotRead(t *testing.T) {
	c := start(t)
	r, err := New(c.b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.b.KV.Store(c.ctx, kv.State, "session.h.broken", []byte(`{"v":1,"seq":`), 0); err != nil {
		t.Fatal(err)
	}
	if err := r.passOverAll(c.ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.loop.Suspects(); len(got) != 1 || got[0].Session != "broken" {
		t.Errorf("suspects %+v", got)
	}
}

// TestDeadline is P19: within a second; also if it passed while no reconciler ran.
func TestDeadline(t *testing.T) {
	c := start(t)
	cfg := quick()
	cfg.Walk = time.Hour
	p := c.harness("h", "ready", ttlLong)
	past := question("late", "t1", "c0")
	past.Deadline = time.Now().Add(-time.Hour)
	p.open("past", 1)
	p.append("past", past)
	c.reconcile(c.b, cfg)
	expired := func(name, prompt string) bool {
		p := c.state("h", name).Prompts[prompt]
		return p != nil && p.Status == session.Expired && p.Reason == events.ReasonDeadline
	}
	natstest.Until(t, "the past deadline", func() bool { return expired("past", "late") })
	soon, pulse := question("soon", "t1", "c0"), natstest.Feel(t)
	soon.Deadline = time.Now().Add(1500 * time.Millisecond)
	p.open("soon", 1)
	p.append("soon", soon)
	natstest.Until(t, "the deadline", func() bool { return expired("soon", "soon") })
	if late := c.state("h", "soon").UpdatedAt.Sub(soon.Deadline); late < 0 || late > time.Second+pulse.Lost() {
		t.Errorf("expired %s after the deadline", late)
	}
	if s := c.state("h", "soon"); s.Tools["c0"] == nil {
		t.Error("the call of a living owner was closed")
	}
}

// TestUnreadable is R11: an unreadable session does not stop the others, and is reported.
func TestUnreadable(t *testing.T) {
	// it mostly waits
	t.Parallel()
	c := start(t)
	if _, err := c.b.KV.Store(c.ctx, kv.State, "session.h.broken", []byte(`{"v":1,"seq":`), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.b.KV.Store(c.ctx, kv.State, "session.h.newer", []byte(`{"v":99}`), 0); err != nil {
		t.Fatal(err)
	}
	r, _ := c.reconcile(c.b, quick())
	p := c.harness("h", "ready", ttlShort)
	p.open("s", 2)
	p.die()
	natstest.Until(t, "recovery", func() bool { return recovered(c.state("h", "s")) })
	natstest.Until(t, "suspects", func() bool { return len(r.loop.Suspects()) == 2 })
	var rep request.Report
	natstest.Until(t, "a pass", func() bool {
		rep = request.Report{}
		err := c.b.Services.Request(c.ctx, Name, "report", nil, &rep)
		return err == nil && rep.LastPass != nil && len(rep.Counts) > 2
	})
	if len(rep.Suspects) != 2 || !strings.Contains(fmt.Sprint(rep.Suspects), "newer") {
		t.Errorf("suspects %+v", rep.Suspects)
	}
	// nothing else is repaired: its count would differ
	want := map[string]int{"session.orphaned": 1, "tool.interrupted": 2, "turn.interrupted": 1}
	for _, n := range rep.Counts {
		if n.Reason != events.ReasonOwnerLost || want[n.Outcome] != n.Count {
			t.Errorf("counted %+v", n)
		}
	}
}

// TestBrokerAway is R8: the broker is away for longer than every TTL; when it is back, no living process is called
// dead.
func TestBrokerAway(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s))
	cfg := quick()
	cfg.AdoptionGrace = time.Hour
	c.reconcile(c.b, cfg)
	// the broker must be back before that, and the test a little later
	const ttl = 8 * time.Second
	p := c.harness("h", "ready", ttl)
	p.open("s", 1)
	natstest.Until(t, "the document", func() bool {
		_, err := c.b.KV.Load(c.ctx, kv.State, "session.h.s")
		return err == nil
	})
	// its lease is lost with the broker, and it starts over with a new incarnation
	p.end()
	s.Shutdown()
	<-time.After(ttl + 500*time.Millisecond)
	natstest.Restart(t, s)
	natstest.Until(t, "the broker", c.b.Connected)
	again := c.harness("h", "starting", ttlLong)
	// a slow start: the grace alone would have passed
	<-time.After(cfg.Grace + 500*time.Millisecond)
	again.seqs["s"], again.epochs["s"] = p.seqs["s"], 1
	again.append("s", events.SessionClaimed{Incarnation: again.incarnation},
		events.ToolStarted{Call: "c0", Turn: "t1", Name: "bash"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	again.renew("ready")
	if n := c.facts("h", "s"); len(n) > 0 {
		t.Errorf("recovery said %v", n)
	}
}

// TestSweep: a sweep appends what its dry run returns, and the dry run appends nothing; a second sweep finds nothing.
func TestSweep(t *testing.T) {
	c := start(t)
	r, err := New(c.b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r.leases.start(now)
	r.leases.renewed(now)
	p := c.harness("h", "ready", ttlLong)
	r.leases.view.put("h", p.incarnation, &Seen{TTL: time.Second, Ended: now, Released: true})
	p.open("s", 2)
	p.open("other", 1)
	natstest.Until(t, "the documents", func() bool {
		_, err := c.b.KV.Load(c.ctx, kv.State, "session.h.s")
		_, err2 := c.b.KV.Load(c.ctx, kv.State, "session.h.other")
		return err == nil && err2 == nil
	})
	sweep := func(req request.Sweep) (reply request.Swept) {
		t.Helper()
		reply, err := r.sweep(c.ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	dry := sweep(request.Sweep{Harness: "h", Session: "s", DryRun: true})
	want := map[string]int{"session.orphaned": 1, "tool.interrupted": 2, "turn.interrupted": 1}
	if len(dry.Would) != 1 || dry.Would[0].Owner != "dead" || len(dry.Would[0].Facts) != 4 ||
		string(dry.Would[0].Facts[3].Data) != `{"turn":"t1","reason":"owner-lost"}` {
		t.Errorf("the dry run would: %+v", dry.Would)
	}
	if !maps.Equal(dry.Facts, want) || dry.Sessions != 1 || recovered(c.state("h", "s")) {
		t.Errorf("the dry run: %+v", dry)
	}
	if got := sweep(request.Sweep{Harness: "h", Session: "s"}); !maps.Equal(got.Facts, want) ||
		!recovered(c.state("h", "s")) || recovered(c.state("h", "other")) {
		t.Errorf("the sweep of one: %+v", got)
	}
	sweep(request.Sweep{})
	natstest.Until(t, "the other", func() bool { return recovered(c.state("h", "other")) })
	if got := sweep(request.Sweep{Harness: "h"}); len(got.Facts) != 0 || got.Failed != 0 {
		t.Errorf("a second sweep: %+v", got)
	}
}

// TestSweepRefuses: an invalid scope is refused with its field.
func TestSweepRefuses(t *testing.T) {
	c := start(t)
	c.reconcile(c.b, quick())
	for body, field := range map[string]string{`{"session":"s"}`: "harness", `[]`: "body",
		`{"harness":"` + strings.Repeat("x", 200) + `"}`: "harness"} {
		err := c.b.Services.Request(c.ctx, Name, "sweep", json.RawMessage(body), nil)
		if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != http.StatusBadRequest || r.Field != field {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}

// TestConfig: the error lists all invalid fields.
func TestConfig(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	err := Config{Grace: -1, AdoptionGrace: -1}.Validate()
	for _, field := range []string{"grace", "adoption-grace", "walk", "at-once-max"} {
		if err == nil || !strings.Contains(err.Error(), "config: "+field+":") {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
}
