package reconciler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestPlanHasOnePassAHarness: a caller out of turn skips a harness whose pass runs or has ended since, and plans one
// instead; a pass that is due meanwhile waits.
func TestPlanHasOnePassAHarness(t *testing.T) {
	p := newPlan()
	due := func(at time.Time) []string { d, _ := p.popDue(at); return d }
	listed := time.Now()
	p.add("h", listed)
	if got := due(listed); !slices.Equal(got, []string{"h"}) {
		t.Fatalf("due %v", got)
	}
	if p.hold("h", listed) {
		t.Error("held under a pass")
	}
	p.done("h")
	if p.hold("h", listed) {
		t.Error("held with a list from before the last pass")
	}
	soon := time.Now().Add(time.Second)
	if got := due(soon); !slices.Equal(got, []string{"h"}) {
		t.Errorf("a pass in its place: due %v", got)
	}
	p.done("h")
	if !p.hold("h", soon) {
		t.Error("not held with a newer list")
	}
	p.add("h", listed)
	if got := due(soon); len(got) > 0 {
		t.Errorf("due %v while it is held", got)
	}
	p.done("h")
	if got := due(soon); !slices.Equal(got, []string{"h"}) {
		t.Errorf("due %v when it is no longer held", got)
	}
}

// TestWalkAndPassDoNotRace: a walk over everything during the recovery of a dead harness loses no race, and misses no
// session.
func TestWalkAndPassDoNotRace(t *testing.T) {
	const sessions = 300
	c := &cell{t: t, ctx: t.Context(), b: natstest.Bus(t, natstest.Start(t))}
	c.populate(sessions, 3, "h", "17")
	r := c.judging("h", "17")
	passes := c.background(func(ctx context.Context) error { r.plan.run(ctx, r.passOver); return nil })
	for range 3 {
		r.passSoon("h")
		if err := r.passOverAll(c.ctx); err != nil {
			t.Fatal(err)
		}
	}
	idle := func() bool {
		r.plan.mu.Lock()
		defer r.plan.mu.Unlock()
		return len(r.plan.busy) == 0 && r.plan.due["h"].IsZero()
	}
	natstest.Until(t, "all passes", idle)
	passes()
	if n := r.Counts()["lost_races"]; n > 0 {
		t.Errorf("%d races lost to oneself", n)
	}
	for i := range sessions {
		name := fmt.Sprint("s", i)
		if got := c.facts("h", name); got["session.orphaned"] != 1 || got["tool.interrupted"] != 3 ||
			got["turn.interrupted"] != 1 {
			t.Fatalf("%s: recovery said %v", name, got)
		}
	}
}
