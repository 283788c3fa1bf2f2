package reconciler

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// world is a random history of a parent and its child, with the decisions about it.
type world struct {
	*script
	t     *rapid.T
	steps []string
}

// steps are things that may happen at any time; the fold ignores unlawful ones.
var steps = []string{
	`turn.started {"turn":"t#","cause":"message"}`,
	`tool.started {"call":"c#","turn":"t#","name":"bash"}`,
	`tool.started {"call":"b#","turn":"t#","name":"bash","background":true}`,
	`prompt.requested {"prompt":"p#","turn":"t#","call":"c#","kind":"question","delivery":"tool-result"}`,
	`prompt.requested {"prompt":"q#","turn":"t#","call":"c#","kind":"permission","delivery":"callback"}`,
	`prompt.requested {"prompt":"m#","kind":"plan","delivery":"message","blocking":false}`,
	`prompt.requested {"prompt":"d#","turn":"t#","call":"c#","kind":"question","delivery":"tool-result",` +
		`"deadline":"2026-01-01T00:00:40Z"}`,
	`prompt.answered {"prompt":"p#","answers":[],"by":"u"}`,
	`prompt.rejected {"prompt":"q#","by":"u"}`,
	`prompt.dismissed {"prompt":"m#","by":"u"}`,
	`turn.stop_requested {"turn":"t#","actor":"person"}`,
	`turn.requested {"turn":"r#","cause":"retry","of_turn":"t#"}`,
	`message.accepted {"message":"u#","content":"x","synthetic":false}`,
	`compaction.requested {"compaction":"k#","reason":"manual","used":1,"limit":2}`,
	`compaction.started {"compaction":"k#"}`,
	`turn.failed {"turn":"t#","error":{"kind":"e","text":"e"},"had_output":false}`,
	`turn.completed {"turn":"t#"}`,
	`session.released {}`,
	`session.claimed {"incarnation":"18"}`,
}

// something appends a random fact, which may or may not count.
func (w *world) something() {
	name := rapid.SampledFrom([]string{"s", "k"}).Draw(w.t, "session")
	step := rapid.SampledFrom(w.steps).Draw(w.t, "step")
	n := strconv.Itoa(rapid.IntRange(0, 2).Draw(w.t, "n"))
	kind, data, _ := strings.Cut(strings.ReplaceAll(step, "#", n), " ")
	w.append(name, kind, data)
}

// random makes a random history of two sessions, and owners for them.
func random(t *rapid.T, y *script) *world { return randomOf(t, y, steps) }

// randomOf makes a random history with these steps.
func randomOf(t *rapid.T, y *script, steps []string) *world {
	w := &world{script: y, t: t, steps: steps}
	w.facts("s", `1 session.opened {"incarnation":"17"}`)
	w.facts("s", `2 turn.started {"turn":"t0","cause":"message"}`)
	w.facts("s", `3 tool.started {"call":"c0","turn":"t0","name":"task"}`)
	w.facts("k", `4 session.opened {"incarnation":"17","parent":"s","parent_call":"c0","root":"s"}`)
	for range rapid.IntRange(0, 25).Draw(t, "steps") {
		w.something()
	}
	w.Now = began.Add(time.Duration(rapid.IntRange(5, 60).Draw(t, "now")) * time.Second)
	for _, name := range w.Names() {
		w.owners[name] = Owner{Liveness: Liveness(rapid.IntRange(int(Alive), int(Dead)).Draw(t, "life"))}
	}
	return w
}

// TestDecidingTwice: each decided fact counts, and a second decision, also on the stored document, returns nothing
// (V3).
func TestDecidingTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := random(rt, newScript(rt))
		// decide checks all of that
		first := w.decide()
		second := ""
		for _, name := range w.Names() {
			doc, err := w.State(name).Encode()
			if err != nil {
				rt.Fatal(err)
			}
			s, err := session.Decode(doc)
			if err != nil {
				rt.Fatal(err)
			}
			d, err := Decide(s, w.input(name), w.Source)
			if err != nil {
				rt.Fatal(err)
			}
			for _, f := range d.Facts {
				second += fmt.Sprintf("%s %s %s\n", name, f.Kind(), story.JSON(rt, f))
			}
		}
		if second != "" {
			rt.Fatalf("after\n%s\na second look finds\n%s", first, second)
		}
	})
}

// TestNothingIsLeftOpen: after recovery only items that wait for a person or a child are open under a dead epoch (V2).
func TestNothingIsLeftOpen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := random(rt, newScript(rt))
		for _, name := range w.Names() {
			if w.owners[name].Liveness == Starting {
				w.owners[name] = Owner{Liveness: Alive}
			}
		}
		w.decide()
		for _, name := range w.Names() {
			s := w.State(name)
			d := newDraft(s, w.input(name), nil)
			for id, p := range s.Prompts {
				if !d.Owns(p.Epoch) && p.Status == session.Awaiting && p.OnOwnerLoss != events.LossKeep {
					rt.Fatalf("%s: prompt %s is open", name, id)
				}
			}
			for id, c := range s.Tools {
				if !d.Owns(c.Epoch) && len(d.unsettled(id)) == 0 && !d.awaitsPerson(func(p *session.Prompt) bool {
					return p.Call == id
				}) {
					rt.Fatalf("%s: call %s is open", name, id)
				}
			}
			if turn := s.Turn; d.leftTurn() && !d.keeps(turn.ID) &&
				(s.Pending.Turn == nil || s.Pending.Turn.OfTurn != turn.ID) {
				rt.Fatalf("%s: turn %s is open", name, turn.ID)
			}
			if c := s.Compaction; c != nil && !d.Owns(c.Epoch) && c.State == session.CompactionRunning {
				rt.Fatalf("%s: compaction %s is open", name, c.ID)
			}
		}
	})
}

// TestTheLivingAreLeftAlone: of the items that a live owner opened or adopted, recovery ends only prompts whose
// deadline has passed (N: never answer, expire or close for an owner that may be alive).
func TestTheLivingAreLeftAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := random(rt, newScript(rt))
		for _, name := range w.Names() {
			s := w.State(name)
			if !s.Owned {
				continue
			}
			w.owners[name] = Owner{Liveness: Liveness(rapid.IntRange(int(Alive), int(Starting)).Draw(rt, "alive"))}
			d, err := Decide(s, w.input(name), w.Source)
			if err != nil {
				rt.Fatal(err)
			}
			after := d.After
			for id, c := range s.Tools {
				if c.Epoch == s.Epoch && after.Tools[id] == nil {
					rt.Fatalf("%s: call %s of a live owner was closed by %v", name, id, d.Facts)
				}
			}
			for id, p := range s.Prompts {
				q := after.Prompts[id]
				if p.Epoch == s.Epoch && (q == nil || q.Status != p.Status && q.Reason != events.ReasonDeadline) {
					rt.Fatalf("%s: prompt %s of a live owner was closed by %v", name, id, d.Facts)
				}
			}
			if turn := s.Turn; turn != nil && turn.Epoch == s.Epoch && (after.Turn == nil || after.Turn.ID != turn.ID) {
				rt.Fatalf("%s: the turn of a live owner was closed by %v", name, d.Facts)
			}
			if !after.Owned {
				rt.Fatalf("%s: was taken from a live owner", name)
			}
		}
	})
}
