package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// aspect is one thing that a person asks about a session: its phase, or a turn, a call, a prompt, a message.
type aspect struct{ what, id string }

// state is what a document says about an aspect.
type state struct {
	name  string // a tool's name, a prompt's kind
	text  string
	ended bool
}

// aspectsInOrder is the order in which a person reads what differs; others follow, in the order of their names.
var aspectsInOrder = []string{"phase", "owner", session.EntityTurn, "wanted", "stop", "waits for", session.EntityTool,
	session.EntityPrompt, session.EntityMessage, "queue", "retry", session.EntityCompaction, "usage"}

// Compare returns a table of what a person sees differ between two documents; "" if that is nothing. Places, instants
// and counters of the fold are left out: [Diff] has all of it.
func Compare(before, after *session.State, st Style) string {
	was, is := aspects(before), aspects(after)
	all := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	rank := func(a aspect) int {
		if i := slices.Index(aspectsInOrder, a.what); i >= 0 {
			return i
		}
		return len(aspectsInOrder)
	}
	slices.SortFunc(all, func(a, b aspect) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.what, b.what), strings.Compare(a.id, b.id))
	})
	var rows [][]Cell
	for _, a := range slices.Compact(all) {
		b, n := was[a], is[a]
		// the document keeps the last endings only
		if b.text == n.text || b.ended && n.text == "" {
			continue
		}
		rows = append(rows, []Cell{{a.what, Plain}, {orDash(a.id), Plain}, {orDash(cmp.Or(n.name, b.name)), Plain},
			{orDash(b.text), Faint}, {orDash(n.text), outcomeColours[n.text]}})
	}
	if len(rows) == 0 {
		return ""
	}
	return Table([]Column{{Name: "WHAT"}, {Name: "ID", ID: true, Min: nameMin}, {Name: "NAME", Min: nameMin, Spare: 1},
		{Name: "BEFORE", Min: nameMin}, {Name: "AFTER", Min: nameMin}}, rows, st)
}

// aspects returns what a document says, without its history, its places in the log and its counters.
func aspects(s *session.State) map[aspect]state {
	all := map[aspect]state{}
	add := func(what, id, name, format string, args ...any) {
		if text := strings.TrimSpace(fmt.Sprintf(format, args...)); text != "" {
			all[aspect{what, id}] = state{name: name, text: text}
		}
	}
	for _, e := range s.Recent {
		all[aspect{e.Entity, e.ID}] = state{name: e.Name, text: outcome(e.Outcome, e.Reason), ended: true}
	}
	add("phase", "", "", "%s", s.Phase)
	if s.Owned {
		add("owner", "", "", "#%s e%d", shortNumber(s.Incarnation), s.Epoch)
	} else {
		add("owner", "", "", "%s", cmp.Or(s.Left, "none"))
	}
	add("title", "", "", "%s", s.Title)
	add("agent", "", "", "%s", s.Agent)
	add("model", "", "", "%s", s.Model)
	if c := s.Closed; c != nil {
		add("closed", "", "", "%s", c.Reason)
	}
	if t := s.Turn; t != nil {
		add(session.EntityTurn, t.ID, "", "open (%s, attempt %d)", t.Cause, max(t.Attempt, 1))
	}
	if t := s.Pending.Turn; t != nil {
		add("wanted", t.ID, "", "a turn (%s)", t.Cause)
	}
	if p := s.Pending.Stop; p != nil {
		add("stop", p.Turn, "", "wanted by %s", cmp.Or(p.By, p.Actor))
	}
	for _, w := range s.WaitsFor {
		add("waits for", w.Child, "", "call %s", w.Call)
	}
	for id, t := range s.Tools {
		add(session.EntityTool, id, t.Name, "runs")
	}
	for id, p := range s.Prompts {
		text := outcome(string(p.Status), p.Reason)
		if !p.Awaits() {
			text += ", not delivered"
		}
		add(session.EntityPrompt, id, string(p.Kind), "%s", text)
	}
	for _, m := range s.Queue {
		add(session.EntityMessage, m.ID, "", "queued")
	}
	if s.HeldSeq > 0 {
		add("queue", "", "", "waits for a person")
	}
	pending(s, add)
	policy(s, add)
	return all
}

// pending adds what happens by itself: retries, compactions, and the context that they depend on.
func pending(s *session.State, add func(what, id, name, format string, args ...any)) {
	if r := s.Retry; r.State == session.RetryAbandoned {
		add("retry", "", "", "given up: %s", r.Reason)
	} else if r.State != "" {
		add("retry", "", "", "attempt %d %s%s", r.Attempt, r.State, kindOf(r.Error))
	}
	if s.Continuations.State == session.ContinuationsHeld {
		add("answers", "", "", "not taken: %s", s.Continuations.Reason)
	}
	if c := s.Compaction; c != nil {
		add(session.EntityCompaction, c.ID, "", "%s", outcome(c.State, c.Reason))
	}
	if s.Usage != nil {
		add("usage", "", "", "%s", usage(s))
	}
	if s.Ignored.Count > 0 {
		add("ignored", "", "", "%s", Plural(int(s.Ignored.Count), "event"))
	}
	if s.Parked > 0 {
		add("parked", "", "", "%s", Plural(int(s.Parked), "event"))
	}
}

// policy adds the keys of `holdfast configure`.
func policy(s *session.State, add func(what, id, name, format string, args ...any)) {
	body, err := json.Marshal(s.Policy)
	keys := map[string]json.RawMessage{}
	// nothing in it can fail to encode
	if err != nil || json.Unmarshal(body, &keys) != nil {
		return
	}
	for key, value := range keys {
		add("policy", key, "", "%s", plainValue(value))
	}
}

// outcome returns how something ended, and why.
func outcome(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + " (" + reason + ")"
}
