package reconciler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// left returns a session of a process that is gone, with a turn and a call, and with this parent.
func left(name, parent, call string) *session.State {
	s := owned(name, "17")
	s.Owned, s.Parent, s.ParentCall, s.Root = false, parent, call, parent
	return s
}

// listed returns a pass that has read this document.
func listed(t *testing.T, r *Reconciler, s *session.State) *pass {
	t.Helper()
	doc, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p := r.newPass(events.Ref{})
	p.document(t.Context(), new(session.Reader), kv.Entry{Key: events.SessionKey(s.Ref()), Value: doc}, mustNow(t, r))
	return p
}

// TestWhoIsAChild: a child is a session for which a call of another one waits. A session without a child is decided
// alone.
func TestWhoIsAChild(t *testing.T) {
	r := cutOff(t, true)
	for _, c := range []struct {
		name, parent, call string
		want               int
	}{
		{"a call waits for it", "root", "c0", 1},
		{"no call waits for it", "root", "", 0},
		{"a call without a parent", "", "c0", 0},
		{"its own call", "s", "c0", 0},
		{"no parent", "", "", 0},
	} {
		p := listed(t, r, left("s", c.parent, c.call))
		if n := len(p.snapshot.children); n != c.want || len(p.snapshot.states) != c.want || len(p.trees) != 1 {
			t.Errorf("%s: %d parents, states %v, %d trees", c.name, n, p.snapshot.states, len(p.trees))
		}
	}
}

// TestChildrenWithoutWork: a pass decides about no child in which nothing is open. Its parent has it as a child all the
// same.
func TestChildrenWithoutWork(t *testing.T) {
	r := cutOff(t, true)
	works, quiet := left("s", "root", "c0"), left("s", "root", "c0")
	quiet.Turn, quiet.Tools = nil, nil
	for trees, s := range []*session.State{quiet, works} {
		p := listed(t, r, s)
		if len(p.trees) != trees || len(p.snapshot.children) != 1 || p.snapshot.get(s.Ref()) == nil {
			t.Errorf("%d trees, want %d; children %v", len(p.trees), trees, p.snapshot.children)
		}
	}
}

// TestDepth: the depth of a session is the number of listed sessions above it, and of the first that is not listed. A
// circle has an end.
func TestDepth(t *testing.T) {
	p := cutOff(t, true).newPass(events.Ref{Harness: "h"})
	for name, parent := range map[string]string{"root": "", "kid": "root", "grandchild": "kid", "stray": "unlisted",
		"one": "other", "other": "one"} {
		p.snapshot.put(left(name, parent, "c0"))
	}
	for name, want := range map[string]int{"root": 0, "kid": 1, "grandchild": 2, "stray": 1, "one": treeDepthMax} {
		if got := p.depth(p.snapshot.get(events.Ref{Harness: "h", Session: name})); got != want {
			t.Errorf("%s: depth %d, want %d", name, got, want)
		}
	}
}

// TestAPassIsNotRepeated: a pass that has succeeded plans no other one.
func TestAPassIsNotRepeated(t *testing.T) {
	c := &cell{t: t, ctx: t.Context(), b: natstest.Bus(t, natstest.Start(t))}
	r := c.recovering("h", "17")
	if r.passOver(c.ctx, "h"); !r.plan.planned("h").IsZero() || r.tally.report().LastPass == nil {
		t.Errorf("the last pass: %+v; the next one at %s", r.tally.report().LastPass, r.plan.planned("h"))
	}
}

// TestATreeEndsWithItsContext: a pass that was cancelled decides about no further session of a tree.
func TestATreeEndsWithItsContext(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for ctx, want := range map[context.Context]int{t.Context(): 2, ended: 0} {
		p := cutOff(t, true).newPass(events.Ref{Harness: "h"})
		root := left("root", "", "")
		p.snapshot.children[root.Ref()] = []events.Ref{{Harness: "h", Session: "kid"}}
		p.tree(ctx, []*session.State{root, left("kid", "root", "c0")})
		if p.checked != want {
			t.Errorf("%v: %d sessions were decided, want %d", ctx.Err(), p.checked, want)
		}
	}
}

// TestWhatIsSettledAgain: a session that could not be settled with others is tried again on its own; not one that was
// settled, and none after the pass was cancelled.
func TestWhatIsSettledAgain(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	failed := errors.New("refused")
	for name, c := range map[string]struct {
		ctx   context.Context
		err   error
		again bool
	}{
		"settled":              {t.Context(), nil, false},
		"failed":               {t.Context(), failed, true},
		"settled at the end":   {ended, nil, false},
		"failed after the end": {ended, failed, false},
	} {
		p := cutOff(t, true).newPass(events.Ref{Harness: "h"})
		before := p.r.Counts()["looks"]
		p.settled(c.ctx, control.Settled{After: owned("s", "17"), Err: c.err})
		if again := p.r.Counts()["looks"] > before; again != c.again || p.failed > 0 != c.again || p.checked != 1 {
			t.Errorf("%s: again %v, %d failed, %d checked", name, again, p.failed, p.checked)
		}
	}
}

// TestWhoIsDecidedAlone: a session that is a child, or has one, also one that only the index knows, is decided with the
// others.
func TestWhoIsDecidedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		parent, listed, known string
		alone                 bool
	}{
		"without a parent or child": {alone: true},
		"a child":                   {parent: "root"},
		"with a listed child":       {listed: "kid"},
		"with a child in the index": {known: "kid"},
	} {
		p := cutOff(t, true).newPass(events.Ref{Harness: "h"})
		s, kid := owned("s", "17"), owned("kid", "17")
		s.Parent = c.parent
		kid.Owned, kid.Turn, kid.Tools = false, nil, nil
		kid.Parent, kid.ParentCall, kid.Root = "s", "ended", "s"
		p.snapshot.put(s)
		p.snapshot.put(kid)
		if c.listed != "" {
			p.snapshot.children[s.Ref()] = []events.Ref{kid.Ref()}
		}
		if c.known != "" {
			p.r.children.record(kid)
		}
		d, err := p.decide(t.Context(), s, mustNow(t, p.r).Clock, nil)
		if err != nil || len(d.Facts) == 0 || d.Alone != c.alone {
			t.Errorf("%s: alone %v, %d facts, %v", name, d.Alone, len(d.Facts), err)
		}
	}
}

// TestWhoStillWaits: a decision notes that a session waits if calls were left in it, and forgets it only if it has
// ended them: one about an older state, in which the owner was still alive, saw none that was left.
func TestWhoStillWaits(t *testing.T) {
	r := cutOff(t, true)
	now := mustNow(t, r)
	r.leases.view.put("h", "18", &Seen{Exclusive: true, State: "ready", TTL: time.Hour, Since: now.here,
		Renewed: now.here})
	p := r.newPass(events.Ref{Harness: "h"})
	older := owned("older", "18")
	r.children.awaits(older.Ref(), true)
	if d, err := p.decide(t.Context(), older, now.Clock, nil); err != nil || len(d.Facts) > 0 ||
		!r.children.isAwaiting(older.Ref()) {
		t.Errorf("a state whose owner lives: %v, %v; it still waits: %v", d.Facts, err,
			r.children.isAwaiting(older.Ref()))
	}
	// it has claimed the session and has not adopted the call, whose child asks a person
	claimed, kid := owned("claimed", "18"), left("kid", "claimed", "c0")
	claimed.Epoch++
	kid.Turn, kid.Tools = nil, nil
	kid.Prompts = map[string]*session.Prompt{"p": {Status: session.Awaiting, Epoch: 1}}
	p.snapshot.put(kid)
	p.snapshot.children[claimed.Ref()] = []events.Ref{kid.Ref()}
	if _, err := p.decide(t.Context(), claimed, now.Clock, nil); err != nil || !r.children.isAwaiting(claimed.Ref()) {
		t.Errorf("a call that was left: %v; it waits: %v", err, r.children.isAwaiting(claimed.Ref()))
	}
	// a person's answer, whose commit cannot be read
	y := newScript(t)
	y.facts("asks", `1 session.opened {"incarnation":"17"}`)
	y.facts("asks", `2 turn.started {"turn":"t","cause":"message"}`)
	y.facts("asks", `3 prompt.requested {"prompt":"p","turn":"t","kind":"question","delivery":"message"}`)
	y.facts("asks", `4 by=ledger prompt.answered {"owed":true,"prompt":"p","answers":[],"by":"u"}`)
	asks := y.State("asks")
	unread := func(uint64) (*events.Commit, error) { return nil, errors.New("not read") }
	if _, err := p.decide(t.Context(), asks, now.Clock, unread); err == nil || !strings.Contains(err.Error(), "read") ||
		r.children.isAwaiting(asks.Ref()) {
		t.Errorf("a session without calls: %v; it waits: %v", err, r.children.isAwaiting(asks.Ref()))
	}
}
