package reconciler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// planned returns when the next pass over a harness is due; zero for none.
func (p *plan) planned(harness string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, at, _ := p.due.Get(harness)
	return at
}

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

// TestPlanKeepsTheEarliest: of the passes that are planned while one is under way the earliest counts, and none begins
// sooner than the pause after it.
func TestPlanKeepsTheEarliest(t *testing.T) {
	p, now := newPlan(), time.Now()
	early, late := now.Add(time.Minute), now.Add(time.Hour)
	for name, begin := range map[string]func(string){
		"pass": func(h string) { p.add(h, now); p.popDue(now) },
		"held": func(h string) { p.add(h, late); p.hold(h, now) },
	} {
		begin(name)
		for _, at := range []time.Time{late, early, late} {
			p.add(name, at)
		}
		if at := p.planned(name); !at.IsZero() {
			t.Errorf("%s: planned at %s while one is under way", name, at)
		}
		p.done(name)
		if at := p.planned(name); !at.Equal(early) {
			t.Errorf("%s: planned at %s, want %s", name, at, early)
		}
		p.add(name, now)
		if at := p.planned(name); !at.Equal(p.after[name]) {
			t.Errorf("%s: planned at %s, want the end of the pause, %s", name, at, p.after[name])
		}
	}
	p.add("kept", late)
	p.hold("kept", now)
	p.done("kept")
	if at := p.planned("kept"); !at.Equal(late) {
		t.Errorf("planned before it was held: %s, want %s", at, late)
	}
}

// TestWalkAndPassDoNotRace: a walk over everything during the recovery of a dead harness loses no race, and misses no
// session.
func TestWalkAndPassDoNotRace(t *testing.T) {
	const sessions = 300
	c := &cell{t: t, ctx: t.Context(), b: natstest.Bus(t, natstest.Start(t))}
	c.populate(sessions, 3, "h", "17")
	r := c.recovering("h", "17")
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
		return len(r.plan.busy) == 0 && r.plan.due.Len() == 0
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
