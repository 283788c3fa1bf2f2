package reconciler

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestSweepOfAnUnknownSession: a session that has no event is not found, also by a dry run.
func TestSweepOfAnUnknownSession(t *testing.T) {
	c := start(t)
	r := c.recovering("h", "17")
	for _, dry := range []bool{false, true} {
		_, err := r.sweep(c.ctx, request.Sweep{Harness: "h", Session: "absent", DryRun: dry})
		if no, ok := errors.AsType[*events.Refusal](err); !ok || no.Code != http.StatusNotFound {
			t.Errorf("dry run: %t: %v", dry, err)
		}
	}
}

// TestSweepWithoutTheBroker: a sweep that cannot read or write is an error, and no empty reply.
func TestSweepWithoutTheBroker(t *testing.T) {
	r := cutOff(t, true)
	for _, q := range []request.Sweep{{Harness: "h"}, {Harness: "h", DryRun: true}, {Harness: "h", Session: "s"}} {
		reply, err := r.sweep(t.Context(), q)
		if _, refused := errors.AsType[*events.Refusal](err); err == nil || refused {
			t.Errorf("%+v: %+v, %v", q, reply, err)
		}
	}
	// the leases cannot be read any more, and the owner of a session is not known
	p, now := r.newPass(events.Ref{Harness: "h"}), mustNow(t, r)
	s := owned("s", "99")
	p.trees[s.Ref()] = []*session.State{s}
	if err := p.decideDry(t.Context(), now, &request.Swept{}); err == nil {
		t.Error("a dry run without the owner of a session succeeds")
	}
}

func mustNow(t *testing.T, r *Reconciler) moment {
	t.Helper()
	now, err := r.now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestDryRunOfAnUnreadableChild: a session whose child cannot be read counts as failed in a dry run, and is not listed.
func TestDryRunOfAnUnreadableChild(t *testing.T) {
	c := start(t)
	if _, err := c.b.KV.Store(c.ctx, kv.State, "session.h.kid", []byte(`{"v":1,"seq":`), 0); err != nil {
		t.Fatal(err)
	}
	p := c.harness("h", "ready", ttlLong)
	p.open("root", 1)
	root := events.Ref{Harness: "h", Session: "root"}
	natstest.Until(t, "the document", func() bool {
		_, err := c.b.KV.Load(c.ctx, kv.State, events.SessionKey(root))
		return err == nil
	})
	r := c.recovering("h", p.incarnation)
	r.children.add(events.Ref{Harness: "h", Session: "kid"}, "root", "c0")
	got, err := r.sweep(c.ctx, request.Sweep{Harness: "h", DryRun: true})
	if err != nil || got.Failed != 1 || got.Sessions != 1 || len(got.Would) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDryRunBelowADeadOwner: a dry run fences nothing, and shows what follows the fence of a child.
func TestDryRunBelowADeadOwner(t *testing.T) {
	c := start(t)
	r := c.leftWithChild("root")
	natstest.Until(t, "the documents", func() bool {
		root, err := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: "root"})
		kid, errKid := r.loop.Load(c.ctx, events.Ref{Harness: "h", Session: "kid"})
		return err == nil && errKid == nil && len(root.Tools) == 1 && len(kid.Tools) == 1
	})
	got, err := r.sweep(c.ctx, request.Sweep{Harness: "h", DryRun: true})
	if err != nil || got.Failed > 0 || len(got.Would) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDryRunIsBounded: a dry run lists a limited number of sessions, and of facts of each, and counts the others. A
// session to which nothing would be appended is neither.
func TestDryRunIsBounded(t *testing.T) {
	const facts = wouldFactMax + 3
	d := Decision{Facts: slices.Repeat([]events.Fact{events.ToolInterrupted{Call: "c"}}, facts)}
	var y request.Swept
	would(&y, owned("quiet", "17"), Owner{Liveness: Dead}, Decision{})
	for i := range wouldMax + 2 {
		would(&y, owned(fmt.Sprint("s", i), "17"), Owner{Liveness: Dead}, d)
	}
	if len(y.Would) != wouldMax || y.More != 2 {
		t.Fatalf("%d sessions are listed, and %d are counted", len(y.Would), y.More)
	}
	if w := y.Would[0]; w.Session != "s0" || len(w.Facts) != wouldFactMax || w.More != facts-wouldFactMax {
		t.Errorf("%s: %d facts are listed, and %d are counted", w.Session, len(w.Facts), w.More)
	}
}
