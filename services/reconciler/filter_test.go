package reconciler

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// watching returns a reconciler that has seen the leases of these incarnations of h, living or long gone.
func watching(now time.Time, alive map[string]bool) *Reconciler {
	r := &Reconciler{leases: newLeaseBook(Margins{}), plan: newPlan()}
	start := now.Add(-time.Hour)
	r.leases.start(start)
	r.leases.renewed(now)
	for incarnation, alive := range alive {
		l := &Seen{Exclusive: true, State: "ready", TTL: time.Second, Since: start, Renewed: now}
		if !alive {
			l.Renewed, l.Ended = start, start
		}
		r.leases.view.put("h", incarnation, l)
	}
	return r
}

// both returns a moment at which both clocks show the same.
func both(now time.Time) moment { return moment{events.Clock{Now: now}, now} }

// skipped returns the filter's result for a stored document.
func skipped(t rapid.TB, r *Reconciler, s *session.State, now time.Time) bool {
	doc, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	h, err := session.ReadHead(doc)
	if err != nil {
		t.Fatal(err)
	}
	return !h.DueWithin(control.Horizon, events.Clock{Now: now}) && r.restsAt(s.Ref(), &h, both(now))
}

// TestSkippedDocumentsNeedNoDecision: a document that the filter skips needs no decision.
func TestSkippedDocumentsNeedNoDecision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := randomOf(rt, newScript(rt), rapid.SampledFrom([][]string{steps, simple}).Draw(rt, "steps"))
		r := watching(w.Now, map[string]bool{"17": rapid.Bool().Draw(rt, "17"), "18": rapid.Bool().Draw(rt, "18")})
		for _, name := range w.Names() {
			s := w.State(name)
			h := s.Head()
			unchanged := !h.DueWithin(control.Horizon, events.Clock{Now: w.Now}) &&
				r.restsUnchangedAt(s.Ref(), &h, both(w.Now))
			// a child never is
			s.Parent, s.ParentCall = "", ""
			if (skipped(rt, r, s, w.Now) || !s.Open()) && !r.needsNoDecision(s, both(w.Now)) {
				rt.Fatalf("calm, but not quiet: %+v", s)
			}
			owner, _ := r.leases.checkOwner(s, both(w.Now))
			d, err := Decide(s, Input{Now: w.Now, Owner: owner}, w.Source)
			if err != nil {
				rt.Fatal(err)
			}
			if (unchanged || skipped(rt, r, s, w.Now)) && len(d.Facts) > 0 {
				rt.Fatalf("calm, but %v is decided: %+v", d.Facts, s)
			}
		}
	})
}

// TestMostDocumentsAreSkipped: most sessions need no decision, and the filter skips their documents.
func TestMostDocumentsAreSkipped(t *testing.T) {
	now := began.Add(time.Hour)
	for _, c := range []struct {
		name string
		more string
		want map[bool]bool // by whether the owner lives
	}{
		{"open", `3 tool.started {"call":"c","turn":"t","name":"bash"}`, map[bool]bool{true: true, false: false}},
		{"asks", `3 prompt.requested {"prompt":"p","turn":"t","kind":"question","delivery":"message"}`,
			map[bool]bool{true: true, false: false}},
		{"asks until", `3 prompt.requested {"prompt":"p","turn":"t","kind":"question","delivery":"message",` +
			`"deadline":"2026-01-01T00:00:40Z"}`, map[bool]bool{true: false, false: false}},
		{"done", `3 turn.completed {"turn":"t"}`, map[bool]bool{true: true, false: false}},
		{"claimed", "3 turn.completed {\"turn\":\"t\"}\n4 session.claimed {\"incarnation\":\"18\"}\n5 turn.started " +
			"{\"turn\":\"u\",\"cause\":\"message\"}\n6 tool.started {\"call\":\"d\",\"turn\":\"u\",\"name\":\"bash\"}",
			map[bool]bool{true: true, false: false}},
		{"left a turn", `4 session.claimed {"incarnation":"18"}`, map[bool]bool{true: false, false: false}},
		{"left a call", "3 tool.started {\"call\":\"c\",\"name\":\"bash\"}\n4 turn.completed {\"turn\":\"t\"}\n4 " +
			"session.claimed {\"incarnation\":\"18\"}", map[bool]bool{true: false, false: false}},
		{"released", "3 turn.completed {\"turn\":\"t\"}\n4 session.released {}",
			map[bool]bool{true: true, false: true}},
		{"released in a turn", `3 session.released {}`, map[bool]bool{true: false, false: false}},
		{"released with a call",
			"3 tool.started {\"call\":\"c\",\"name\":\"bash\"}\n4 turn.completed {\"turn\":\"t\"}\n5 " +
				"session.released {}", map[bool]bool{true: false, false: false}},
		{"released and asks",
			"3 prompt.requested {\"prompt\":\"p\",\"kind\":\"question\",\"delivery\":\"message\"}\n" +
				"4 turn.completed {\"turn\":\"t\"}\n5 session.released {}", map[bool]bool{true: false, false: false}},
		{"released compacting", "3 compaction.requested " +
			"{\"compaction\":\"k\",\"reason\":\"manual\",\"used\":1,\"limit\":2}\n4 compaction.started " +
			"{\"compaction\":\"k\"}\n5 turn.completed {\"turn\":\"t\"}\n6 session.released {}",
			map[bool]bool{true: false, false: false}},
		{"answered and not read",
			"3 prompt.requested {\"prompt\":\"p\",\"turn\":\"t\",\"kind\":\"question\",\"delivery\":\"message\"}\n4 " +
				"by=ledger prompt.answered {\"owed\":true,\"prompt\":\"p\",\"answers\":[],\"by\":\"u\"}\n5 " +
				"turn.completed " +
				"{\"turn\":\"t\"}", map[bool]bool{true: false, false: false}},
		{"received in a turn that failed, and another completed",
			"3 prompt.requested {\"prompt\":\"p\",\"turn\":\"t\",\"kind\":\"question\",\"delivery\":\"message\"}\n4 " +
				"by=ledger prompt.answered {\"owed\":true,\"prompt\":\"p\",\"answers\":[],\"by\":\"u\"}\n5 " +
				"prompt.delivered " +
				"{\"prompt\":\"p\"}\n6 turn.failed " +
				"{\"turn\":\"t\",\"error\":{\"kind\":\"e\",\"text\":\"e\"},\"had_output\":false}\n7 turn.started " +
				"{\"turn\":\"own\",\"cause\":\"message\",\"synthetic\":true}\n8 turn.completed {\"turn\":\"own\"}",
			map[bool]bool{true: false, false: false}},
		{"closed", `3 session.closed {"reason":"r","by":"u"}`, map[bool]bool{true: true, false: true}},
	} {
		y := newScript(t)
		y.facts("s", `1 session.opened {"incarnation":"17"}`)
		y.facts("s", `2 turn.started {"turn":"t","cause":"message"}`)
		y.facts("s", strings.Split(c.more, "\n")...)
		for alive, want := range c.want {
			r := watching(now, map[string]bool{y.State("s").Incarnation: alive})
			if got := skipped(t, r, y.State("s"), now); got != want {
				t.Errorf("%s, owner alive %v: calm %v", c.name, alive, got)
			}
			if got := r.needsNoDecision(y.State("s"), both(now)); got != want {
				t.Errorf("%s, owner alive %v: quiet %v", c.name, alive, got)
			}
		}
		if skipped(t, watching(now, nil), y.State("s"), now) && y.State("s").Owned {
			t.Errorf("%s: calm, though its owner's lease was never seen", c.name)
		}
		y.State("s").Parent, y.State("s").ParentCall = "p", "c"
		if skipped(t, watching(now, map[string]bool{y.State("s").Incarnation: true}), y.State("s"), now) {
			t.Errorf("%s: a child is not read", c.name)
		}
	}
}

// TestADecisionIsNotSkipped: a resting session is decided while a person's decision needs a turn, and only then.
func TestADecisionIsNotSkipped(t *testing.T) {
	now := began.Add(time.Hour)
	y := newScript(t)
	y.facts("s", `1 session.opened {"incarnation":"17"}`)
	y.facts("s", `2 turn.started {"turn":"t","cause":"message"}`)
	y.facts("s", `3 prompt.requested {"prompt":"p","turn":"t","kind":"question","delivery":"message"}`)
	y.facts("s", `4 by=ledger prompt.answered {"owed":true,"prompt":"p","answers":[],"by":"u"}`)
	r := watching(now, map[string]bool{"17": true})
	for _, c := range []struct {
		fact string
		want bool
	}{{`5 turn.completed {"turn":"t"}`, false}, {`6 prompt.delivered {"prompt":"p"}`, true}} {
		y.facts("s", c.fact)
		if got := r.needsNoDecision(y.State("s"), both(now)); got != c.want {
			t.Errorf("after %s: quiet %v", c.fact, got)
		}
	}
}

// TestALivingOwnerIsPassedOverInTime: skipping a session's document does not delay the pass that its owner's death
// needs.
func TestALivingOwnerIsPassedOverInTime(t *testing.T) {
	now := began.Add(time.Hour)
	r := watching(now, map[string]bool{"17": true})
	r.leases.view.put("h", "18",
		&Seen{Exclusive: true, State: lease.Starting, Since: now, Renewed: now, TTL: time.Second})
	r.leases.margins.Adoption, r.leases.margins.AdoptionMax = time.Minute, time.Hour
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Epoch, s.Owned, s.Incarnation, s.Exclusive = 1, true, "17", true
	if !skipped(t, r, s, now) || r.plan.planned("h").IsZero() {
		t.Errorf("looked at again at %s", r.plan.planned("h"))
	}
}
