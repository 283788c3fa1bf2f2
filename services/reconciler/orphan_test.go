package reconciler

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// simple are steps that leave only turns and calls open.
var simple = []string{steps[0], steps[1], steps[2], `tool.completed {"call":"c#"}`, `turn.completed {"turn":"t#"}`,
	`session.released {}`, `session.claimed {"incarnation":"18"}`}

// TestOrphanedAsDecided: plain returns the same facts as Decide, and no decision is needed after them.
func TestOrphanedAsDecided(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := randomOf(rt, newScript(rt), rapid.SampledFrom([][]string{steps, simple}).Draw(rt, "steps"))
		for _, name := range w.Names() {
			in := w.input(name)
			facts, ok := decideUnowned(w.State(name), in)
			if !ok {
				continue
			}
			d, err := Decide(w.State(name), in, w.Source)
			if err != nil {
				rt.Fatal(err)
			}
			if got, want := fmt.Sprintf("%#v", facts), fmt.Sprintf("%#v", d.Facts); got != want ||
				!d.CheckAt.IsZero() {
				rt.Fatalf("%s: said %s, not %s, to be looked at again %s", name, got, want, d.CheckAt)
			}
			in.Owner = Owner{}
			if d, err = Decide(d.After, in, w.Source); err != nil || len(d.Facts) > 0 || !d.CheckAt.IsZero() {
				rt.Fatalf("%s: after %v a second look finds %v, %v, and looks again %s", name, facts, d.Facts, err,
					d.CheckAt)
			}
		}
	})
}

// TestNeedsInterruptionsOnly: most sessions after a crash are plain; one that waits for a person, or has requested
// work, is not.
func TestNeedsInterruptionsOnly(t *testing.T) {
	const all = " tool.interrupted tool.interrupted turn.interrupted"
	for _, c := range []struct{ more, want string }{
		{``, " session.orphaned" + all},
		{`5 message.accepted {"message":"u","content":"x","synthetic":false}`, " session.orphaned" + all},
		{`5 session.released {}`, all},
		{`5 by=reconciler session.orphaned {"incarnation":"17","waits_for":[{"call":"a","child":"k"}]}`, "not plain"},
		{`5 prompt.requested {"prompt":"p","turn":"t","kind":"question","delivery":"message"}`, "not plain"},
		{`5 compaction.requested {"compaction":"k","reason":"manual","used":1,"limit":2}`, "not plain"},
		{"5 compaction.requested {\"compaction\":\"k\",\"reason\":\"manual\",\"used\":1,\"limit\":2}\n6 " +
			"compaction.started {\"compaction\":\"k\"}", "not plain"},
		{"5 prompt.requested {\"prompt\":\"p\",\"turn\":\"t\",\"kind\":\"question\",\"delivery\":\"message\"}\n6 " +
			"by=ledger prompt.answered {\"prompt\":\"p\",\"answers\":[],\"by\":\"u\"}\n7 prompt.delivered " +
			"{\"prompt\":\"p\"}\n8 turn.failed " +
			"{\"turn\":\"t\",\"error\":{\"kind\":\"e\",\"text\":\"e\"},\"had_output\":false}", "not plain"},
		{`5 turn.stop_requested {"turn":"t","actor":"person"}`, "not plain"},
		{`5 turn.requested {"turn":"r","cause":"retry","of_turn":"t"}`, "not plain"},
		{`5 session.closed {"reason":"r","by":"u"}`, "not plain"},
	} {
		y := newScript(t)
		y.facts("s", `1 session.opened {"incarnation":"17"}`)
		y.facts("s", `2 turn.started {"turn":"t","cause":"message"}`)
		y.facts("s", `3 tool.started {"call":"a","turn":"t","name":"bash"}`)
		y.facts("s", `4 tool.started {"call":"b","turn":"t","name":"bash","background":true}`)
		y.facts("s", strings.Split(c.more, "\n")...)
		for life, want := range map[Liveness]string{Dead: c.want, Alive: "not plain"} {
			if !y.State("s").Owned {
				want = c.want
			}
			facts, ok := decideUnowned(y.State("s"), Input{Now: began, Owner: Owner{Liveness: life}})
			got := "not plain"
			if ok {
				got = ""
			}
			for _, f := range facts {
				got += " " + string(f.Kind())
			}
			if got != want {
				t.Errorf("with %q, owner %s: %s, want%s", c.more, life, got, want)
			}
		}
	}
	y := newScript(t)
	y.facts("s", `1 session.opened {"incarnation":"17"}`)
	y.facts("k", `2 session.opened {"incarnation":"17","root":"s","parent":"s","parent_call":"a"}`)
	y.owner("s", "dead")
	if facts, ok := decideUnowned(y.State("s"), y.input("s")); ok {
		t.Errorf("a parent is plain: %v", facts)
	}
}

// TestWhoIsAlone: a session that waits for no other one, and no other one for it.
func TestWhoIsAlone(t *testing.T) {
	c := &cell{t: t, ctx: t.Context(), b: natstest.Bus(t, natstest.Start(t))}
	p := c.recovering("h", "17").newPass(events.Ref{Harness: "h"})
	y := newScript(t)
	for _, name := range []string{"alone", "parent", "child"} {
		more := ""
		if name == "child" {
			more = `,"root":"parent","parent":"parent","parent_call":"a"`
		}
		y.facts(name, `1 session.opened {"incarnation":"17"`+more+`}`)
		y.facts(name, `2 turn.started {"turn":"t","cause":"message"}`)
		y.facts(name, `3 tool.started {"call":"a","turn":"t","name":"bash"}`)
		if name == "child" {
			// its parent waits for that
			y.facts(name, `4 session.orphaned {"reason":"owner-lost","incarnation":"17"}`)
		}
		p.snapshot.put(y.State(name))
	}
	p.snapshot.children[y.State("parent").Ref()] = []events.Ref{y.State("child").Ref()}
	now, err := c.b.Clock.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"alone": true, "parent": false, "child": false} {
		d, err := p.decide(t.Context(), y.State(name), now, nil)
		if err != nil || len(d.Facts) == 0 || d.Alone != want || d.Rest != want || (d.After == nil) != want {
			t.Errorf("%s: alone %v, rest %v, after %v, %d facts, %v", name, d.Alone, d.Rest, d.After, len(d.Facts), err)
		}
	}
}
