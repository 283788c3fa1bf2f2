package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// cutOff returns a reconciler whose connection is closed, before or after it learned the broker's time.
func cutOff(t *testing.T, knowsTime bool) *Reconciler {
	t.Helper()
	b := natstest.Bus(t, natstest.Start(t))
	r, err := New(b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if knowsTime {
		if _, err := r.now(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	r.leases.renewed(now)
	r.leases.start(now.Add(-time.Hour))
	gone := &Seen{Exclusive: true, State: "ready", TTL: time.Second, Renewed: now, Ended: now, Released: true}
	r.leases.view.put("h", "17", gone)
	b.Close()
	return r
}

// owned returns a session of an incarnation, with a turn and a call.
func owned(name, incarnation string) *session.State {
	s := session.New(events.Ref{Harness: "h", Session: name})
	s.Epoch, s.Owned, s.Incarnation, s.Exclusive, s.Seq = 1, true, incarnation, true, 1
	s.Turn = &session.Turn{ID: "t1", Epoch: 1}
	s.Tools = map[string]*session.Tool{"c0": {Epoch: 1, Turn: "t1", Name: "bash"}}
	return s
}

// TestWithoutTheBroker: a read or write that fails without the broker is an error, is counted as failed and is planned
// again. No session counts as recovered.
func TestWithoutTheBroker(t *testing.T) {
	ctx := t.Context()
	brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := cutOff(t, false).learnClaims(brief, "h"); err == nil {
		t.Error("claims were read, and the broker's time was never known")
	}
	r := cutOff(t, true)
	if err := r.learnClaims(ctx, "h"); err != nil {
		t.Errorf("no incarnation is starting, so nothing is read: %v", err)
	}
	present := time.Now()
	starts := &Seen{Exclusive: true, State: lease.Starting, TTL: time.Minute, Since: present, Renewed: present}
	r.leases.view.put("h", "18", starts)
	if err := r.learnClaims(ctx, "h"); err == nil || !r.leases.view.Leases["h"]["18"].Checked.IsZero() {
		t.Errorf("the log was read for claims: %v", err)
	}
	if err := r.passOverAll(ctx); err == nil {
		t.Error("a pass over everything succeeded")
	}
	if r.passOver(ctx, "other"); r.plan.planned("other").IsZero() {
		t.Error("a pass that failed is not planned again")
	}
	ended, end := context.WithCancel(ctx)
	end()
	if r.passOver(ended, "ended"); !r.plan.planned("ended").IsZero() {
		t.Error("a pass that was cancelled is planned again")
	}
	now, err := r.now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := r.checkOwner(ctx, owned("s", "99"), now); err == nil || o.Liveness == Dead {
		t.Errorf("an owner that was never seen: %+v, %v", o, err)
	}
	if o, err := r.checkOwner(ctx, session.New(events.Ref{Harness: "h", Session: "s"}), now); err != nil ||
		o != (Owner{}) {
		t.Errorf("the owner of a session without one: %+v, %v", o, err)
	}
}

// TestFailuresOfAPass: each session that a pass could not fence, decide or write counts as failed, and is reported with
// the first reason.
func TestFailuresOfAPass(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(context.Context, *pass)
		reason string
	}{
		"a fence that is not written": {func(ctx context.Context, p *pass) {
			p.fence(ctx, owned("s", "17"))
		}, "append"},
		"a fence whose owner is not known": {func(ctx context.Context, p *pass) {
			p.fence(ctx, owned("s", "99"))
		}, "hf_leases"},
		"a session that is not written": {func(ctx context.Context, p *pass) {
			p.over(ctx, [][]*session.State{{owned("s", "17")}})
		}, "append"},
		"a decision whose owner is unknown": {func(ctx context.Context, p *pass) {
			p.settle(ctx, owned("s", "99"))
		}, "hf_leases"},
		"one of several that is not written": {func(ctx context.Context, p *pass) {
			p.settle(ctx, owned("s", "17"))
		}, "append"},
	} {
		t.Run(name, func(t *testing.T) {
			p := cutOff(t, true).newPass(events.Ref{Harness: "h"})
			c.do(t.Context(), p)
			x := p.r.loop.Suspects()
			if p.failed != 1 || len(x) != 1 || !strings.Contains(strings.ToLower(x[0].Reason), c.reason) ||
				len(p.facts) > 0 {
				t.Errorf("%d failed, counted %v, suspects %+v", p.failed, p.facts, x)
			}
		})
	}
}

// TestUnreadableChild: a parent whose child cannot be read is fenced, and its call held for the child. It is not
// decided, and counts as failed.
func TestUnreadableChild(t *testing.T) {
	c := start(t)
	if _, err := c.b.KV.Store(c.ctx, kv.State, "session.h.kid", []byte(`{"v":1,"seq":`), 0); err != nil {
		t.Fatal(err)
	}
	p := c.harness("h", "ready", ttlLong)
	p.open("root", 1)
	r := c.recovering("h", p.incarnation)
	r.children.add(events.Ref{Harness: "h", Session: "kid"}, "root", "c0")
	x := r.newPass(events.Ref{Harness: "h"})
	root := c.state("h", "root")
	x.snapshot.children[root.Ref()] = []events.Ref{{Harness: "h", Session: "kid"}}
	if x.settle(c.ctx, root); x.failed != 1 || len(c.facts("h", "root")) > 0 {
		t.Errorf("settled: %d failed, recovery said %v", x.failed, c.facts("h", "root"))
	}
	x.failed = 0
	x.fence(c.ctx, root)
	held := []events.WaitFor{{Call: "c0", Child: "kid"}}
	if root = c.state("h", "root"); x.failed > 0 || root.Owned || !slices.Equal(root.WaitsFor, held) {
		t.Errorf("fenced: %d failed, owned: %v, it waits for %v, want %v", x.failed, root.Owned, root.WaitsFor, held)
	}
}

// TestForeignDocuments: an entry that is not a session's document is neither in a pass nor a suspect.
func TestForeignDocuments(t *testing.T) {
	c := start(t)
	r := c.recovering("h", "17")
	x := r.newPass(events.Ref{})
	now, err := r.now(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	x.document(c.ctx, new(session.Reader), kv.Entry{Key: "session.h", Value: []byte(`{"v":1,"seq":`)}, now)
	if s := r.loop.Suspects(); len(s) > 0 || len(x.trees) > 0 {
		t.Errorf("suspects %+v, trees %v", s, x.trees)
	}
}

// TestAPassTakesWhatIsDue: a pass decides about a deadline that no alarm has brought up, and about no later one.
func TestAPassTakesWhatIsDue(t *testing.T) {
	c := start(t)
	r := c.recovering("h", "17")
	now, err := r.now(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]int{-time.Second: 1, control.Horizon / 2: 1, 2 * control.Horizon: 0} {
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		deadline := now.Now.Add(at)
		s.Epoch, s.Prompts = 1, map[string]*session.Prompt{"p": {Status: session.Awaiting, Epoch: 1,
			Deadline: &deadline}}
		s.Owned, s.Incarnation, s.Exclusive, s.UpdatedAt = true, "17", true, now.Now
		doc, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r.leases.view.put("h", "17", &Seen{Exclusive: true, State: "ready", TTL: time.Hour, Since: now.here,
			Renewed: now.here})
		x := r.newPass(events.Ref{})
		x.document(c.ctx, new(session.Reader), kv.Entry{Key: events.SessionKey(s.Ref()), Value: doc}, now)
		if len(x.trees) != want {
			t.Errorf("due in %s: %d trees, want %d", at, len(x.trees), want)
		}
	}
}

// TestOlderRules: a pass leaves a session to the ledger whose document older rules have folded, and its parent has it
// as a child.
func TestOlderRules(t *testing.T) {
	c := start(t)
	p := c.harness("h", "ready", ttlLong)
	p.open("root", 1)
	p.append("kid", events.SessionOpened{Incarnation: p.incarnation, Parent: "root", ParentCall: "c0", Root: "root"},
		events.TurnStarted{Turn: "k1", Cause: events.CauseMessage, Synthetic: true})
	// p's lease is unknown: each session is decided
	r := c.recovering("h", "17")
	now, err := r.now(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for rules, want := range map[int]int{0: 0, session.FoldRules: 1} {
		x := r.newPass(events.Ref{})
		kid := c.state("h", "kid")
		kid.Rules = rules
		doc, err := kid.Encode()
		if err != nil {
			t.Fatal(err)
		}
		x.document(c.ctx, new(session.Reader), kv.Entry{Key: events.SessionKey(kid.Ref()), Value: doc}, now)
		if len(x.trees) != want || len(x.snapshot.children) != 1 {
			t.Errorf("rules %d: trees %v, children %v", rules, x.trees, x.snapshot.children)
		}
	}
}

// TestAwaitedChildren: the reconciler notes which parents wait for a child, and forgets those that no longer do.
func TestAwaitedChildren(t *testing.T) {
	c := start(t)
	p := c.harness("h", "ready", ttlLong)
	p.open("root", 1)
	p.append("kid", events.SessionOpened{Incarnation: p.incarnation, Parent: "root", ParentCall: "c0", Root: "root"},
		events.TurnStarted{Turn: "k1", Cause: events.CauseMessage, Synthetic: true}, question("p1", "k1", ""))
	r := c.recovering("h", p.incarnation)
	x := r.newPass(events.Ref{Harness: "h"})
	kid, root := c.state("h", "kid"), c.state("h", "root")
	x.snapshot.put(kid)
	x.snapshot.children[root.Ref()] = []events.Ref{kid.Ref()}
	if x.settle(c.ctx, root); !r.children.isAwaiting(root.Ref()) {
		t.Error("the parent does not wait for a child that asks a person")
	}
	root = c.state("h", "root")
	if len(root.Tools) != 1 {
		t.Fatalf("the parent's call was closed: %v", c.facts("h", "root"))
	}
	x.snapshot.children[root.Ref()] = []events.Ref{{Harness: "h", Session: "gone"}}
	x.settle(c.ctx, root)
	if r.children.isAwaiting(root.Ref()) {
		t.Errorf("the parent still waits for a child that is gone: %v", c.facts("h", "root"))
	}
}

// TestUnfencedChild: a change of a fenced parent decides nothing about it while a child is not fenced: its process may
// only be asleep. A pass is planned, which fences the child first.
func TestUnfencedChild(t *testing.T) {
	c := start(t)
	r := c.leftWithChild("root")
	for _, x := range []struct {
		fence   string
		decided bool
	}{{"root", false}, {"kid", true}} {
		r.newPass(events.Ref{Harness: "h"}).fence(c.ctx, c.state("h", x.fence))
		natstest.Until(t, "the documents", func() bool {
			s, err := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: x.fence})
			return err == nil && !s.Owned
		})
		now, err := r.now(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.decide(c.ctx, c.state("h", "root"), now.Clock, r.loop.Source(c.ctx))
		if err != nil {
			t.Fatal(err)
		}
		if due, _ := r.plan.popDue(time.Now()); len(d.Facts) > 0 != x.decided || len(due) > 0 == x.decided {
			t.Errorf("%s is fenced: decided %v, passes %v", x.fence, d.Facts, due)
		}
	}
}

// TestLeaseBook: what the book of leases keeps of each change of a lease, and which passes the change needs.
func TestLeaseBook(t *testing.T) {
	k := newLeaseBook(Margins{Adoption: 5 * time.Second, Unknown: 15 * time.Second})
	at := func(n float64) moment { return both(sec(n)) }
	value := func(state string, ttlMS int64) []byte {
		body, err := json.Marshal(lease.Record{ID: "h", Incarnation: "17", Exclusive: true, State: state,
			TTLMS: ttlMS})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	k.seen("h", "16", kv.Entry{Value: value("ready", 1000), At: sec(3)}, at(10))
	if l := k.view.Leases["h"]["16"]; !l.Since.Equal(sec(3)) || !l.Renewed.Equal(sec(3)) {
		t.Errorf("renewed before this process looked: since %s", l.Since.Sub(began))
	}
	k.start(sec(10))
	if got := k.seen("h", "17", kv.Entry{Value: value(lease.Starting, 1000)}, at(11)); !got.Equal(sec(16)) {
		t.Errorf("one that starts: a pass at %s", got.Sub(began))
	}
	if got := k.seen("h", "17", kv.Entry{Value: value(lease.Starting, 1000)}, at(12)); !got.IsZero() {
		t.Errorf("one that is renewed: a pass at %s", got.Sub(began))
	}
	if got := k.seen("h", "17", kv.Entry{Value: value("ready", 1000)}, at(13)); !got.Equal(sec(13)) {
		t.Errorf("one that is ready: a pass at %s", got.Sub(began))
	}
	for body, want := range map[string]Seen{
		"no JSON":                   {State: "ready", TTL: 15 * time.Second},
		string(value("ready", 0)):   {Exclusive: true, State: "ready", TTL: 15 * time.Second},
		string(value("ready", -1)):  {Exclusive: true, State: "ready", TTL: 15 * time.Second},
		string(value("ready", 700)): {Exclusive: true, State: "ready", TTL: 700 * time.Millisecond},
	} {
		if got := readLease([]byte(body), k.margins.Unknown); *got != want {
			t.Errorf("%s: %+v", body, got)
		}
	}
	k.seen("h", "17", kv.Entry{Deleted: true}, at(14))
	if k.forget("h", sec(14).Add(endedKept)); k.view.Leases["h"]["17"] == nil {
		t.Error("forgotten too early")
	}
	if k.forget("h", sec(15).Add(endedKept)); k.view.Leases["h"]["17"] != nil || k.view.Leases["h"]["16"] == nil {
		t.Errorf("kept: %v", k.view.Leases["h"])
	}
}

// TestServicesAreRecorded: a service's start is new, its renewals are not, and its next start after its end is new
// again.
func TestServicesAreRecorded(t *testing.T) {
	k := newLeaseBook(Margins{})
	var got []bool
	for _, alive := range []bool{true, true, false} {
		got = append(got, k.service("service.ledger.1", alive))
	}
	k.start(sec(0))
	for _, alive := range []bool{true, true, false, true} {
		got = append(got, k.service("service.ledger.1", alive))
	}
	if want := []bool{false, false, false, true, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("new: %v, want %v", got, want)
	}
}

// TestOverdueLeasesAreEnded: a lease that the broker keeps for longer than its TTL ends here, and a pass over its
// harness follows; one that was deleted or renewed does not end here.
func TestOverdueLeasesAreEnded(t *testing.T) {
	c := start(t)
	r := c.recovering("other", "1")
	kept, renewed := c.harness("h", "ready", ttlLong), c.harness("h", "ready", ttlLong)
	long := time.Now().Add(-time.Hour)
	rev := func(p *process) uint64 {
		e, err := c.b.KV.Load(c.ctx, kv.Leases, events.HarnessLeaseKey("h", p.incarnation))
		if err != nil {
			t.Fatal(err)
		}
		return e.Rev
	}
	was := rev(renewed)
	renewed.renew("ready")
	for id, rev := range map[string]uint64{kept.incarnation: rev(kept), renewed.incarnation: was, "999": 1} {
		l := &Seen{State: "ready", TTL: time.Second, Kept: time.Second, Received: long, Renewed: long, Rev: rev}
		r.leases.view.put("h", id, l)
	}
	c.background(r.findOverdue)
	ended := func(id string) bool {
		r.leases.mu.Lock()
		defer r.leases.mu.Unlock()
		return !r.leases.view.Leases["h"][id].Ended.IsZero()
	}
	natstest.Until(t, "the overdue lease to end", func() bool { return ended(kept.incarnation) })
	natstest.Until(t, "a pass", func() bool {
		return !r.plan.planned("h").IsZero()
	})
	if ended(renewed.incarnation) || ended("999") {
		t.Errorf("ended: the renewed one %t, the one that is gone %t", ended(renewed.incarnation), ended("999"))
	}
}

// TestWatchEnds: the watch of leases ends without an error at a requested end.
func TestWatchEnds(t *testing.T) {
	r := start(t).recovering("h", "17")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.watchLeases(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPlanReturnsTheNextCheck: a harness that is not due is not taken, and the plan returns the time until then.
func TestPlanReturnsTheNextCheck(t *testing.T) {
	p, now := newPlan(), time.Now()
	p.add("h", now.Add(3*time.Second))
	p.add("later", now.Add(time.Hour))
	if due, next := p.popDue(now); len(due) > 0 || next != 3*time.Second {
		t.Errorf("due %v, next in %s", due, next)
	}
	if due, next := p.popDue(now.Add(3 * time.Second)); !slices.Equal(due, []string{"h"}) || next != planIdle {
		t.Errorf("due %v, next in %s", due, next)
	}
}

// TestForeignLeases: a key among the leases that names no service and no harness is no start of a service.
func TestForeignLeases(t *testing.T) {
	c := start(t)
	r := c.recovering("other", "1")
	c.background(r.watchLeases)
	for _, key := range []string{"service.odd", events.HarnessLeaseKey("h", "7")} {
		if _, err := c.b.Leases.Acquire(c.ctx, key, []byte("{}"), ttlLong); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Until(t, "the lease behind it", func() bool {
		r.leases.mu.Lock()
		defer r.leases.mu.Unlock()
		return r.leases.view.Leases["h"]["7"] != nil
	})
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	if len(r.leases.services) > 0 {
		t.Errorf("services %v", r.leases.services)
	}
}
