package opencode

import (
	"fmt"
	"strings"
	"testing"
)

// feed translates lines one by one. Ids and instants continue from call to call.
type feed struct {
	t *Translator
	n int
}

func (f *feed) translate(lines ...string) (words []string) {
	for _, r := range script(lines...) {
		r.Event = []byte(strings.Replace(string(r.Event), `"evt_`, fmt.Sprintf(`"evt_%d_`, f.n), 1))
		f.n++
		words = append(words, stepTexts(f.t.Translate(r))...)
	}
	return words
}

// round returns one turn with a call and a permission. n makes its ids unique.
func round(n int) []string {
	named := strings.NewReplacer(`"m1"`, fmt.Sprintf(`"m1-%d"`, n), `"a1"`, fmt.Sprintf(`"a1-%d"`, n), `"p1"`,
		fmt.Sprintf(`"p1-%d"`, n),
		`"p2"`, fmt.Sprintf(`"p2-%d"`, n), `"c1"`, fmt.Sprintf(`"c1-%d"`, n), `"r1"`, fmt.Sprintf(`"r1-%d"`, n))
	lines := []string{asks, asksIt, busy, answers1, tool("p2", "c1", running), permission("r1", "c1", "rm"),
		replied("r1", "once"),
		tool("p2", "c1", `{"status":"completed","output":"x"}`),
		`message.part.updated {"sessionID":"ses_1","part":{"id":"p3","messageID":"a1","type":"step-finish",` +
			`"tokens":{"input":5}}}`,
		finished("a1", "m1", "stop"), idle, asksIt}
	for i := range lines {
		lines[i] = named.Replace(lines[i])
	}
	return lines
}

// entities returns the number of entities that a session holds.
func (s *session) entities() int {
	return len(s.messages) + len(s.orderedMessages) + len(s.calls) + len(s.callParts) + len(s.prompts) +
		len(s.orderedPrompts)
}

// TestForgetting checks that a long session is translated like a short one, in bounded memory.
func TestForgetting(t *testing.T) {
	const rounds = 3_000
	f := &feed{t: NewTranslator()}
	f.translate(created)
	var first string
	most := 0
	for n := range rounds {
		got := strings.Join(f.translate(round(n)...), "\n")
		got = strings.ReplaceAll(got, fmt.Sprintf("-%d", n), "")
		if n == 0 {
			first = got
		}
		if got != first {
			t.Fatalf("round %d is translated as\n%s\nwant\n%s", n, got, first)
		}
		most = max(most, f.t.sessions["ses_1"].entities())
	}
	s := f.t.sessions["ses_1"]
	if limit := 2 * (2*messagesKept + 2*messagesKept + 4*promptsKept); most > limit {
		t.Errorf("%d entities are in memory, more than %d", most, limit)
	}
	if len(s.gone.ids) != goneMax || len(s.turnIDs.ids) != turnsKept {
		t.Errorf("%d ids of removed entities and %d of turns are in memory", len(s.gone.ids), len(s.turnIDs.ids))
	}
	if !strings.Contains(first, "tool.completed") || !strings.Contains(first, "prompt.answered") ||
		!strings.Contains(first, "turn.completed") {
		t.Errorf("a round is translated as\n%s", first)
	}
}

// TestLateAboutTheForgotten checks that events about removed entities are counted as late, and add no facts.
func TestLateAboutTheForgotten(t *testing.T) {
	f := &feed{t: NewTranslator()}
	f.translate(created)
	for n := range 3 * messagesKept {
		f.translate(round(n)...)
	}
	again := strings.Join(f.translate(strings.Split(strings.ReplaceAll(strings.Join(round(9_999),
		"\n"), "c1-9999", "c1-300"),
		"\n")...), "\n")
	if strings.Contains(again, "tool.started c1-300") || !strings.Contains(again, "tool.started p2-9999") {
		t.Errorf("the provider's id of a removed call is used again:\n%s", again)
	}
	for name, line := range map[string]string{
		"message": `message.updated {"sessionID":"ses_1","info":{"id":"m1-300","role":"user","summary":{},"time":{}}}`,
		"part":    strings.ReplaceAll(asksIt, "m1", "m1-300"),
		"call":    strings.NewReplacer("p2", "p2-300", `"a1"`, `"a1-300"`).Replace(tool("p2", "c1", running)),
		"asked":   strings.ReplaceAll(permission("r1", "c1", "rm"), "r1", "r1-300"),
		"replied": strings.ReplaceAll(replied("r1", "once"), "r1", "r1-300"),
	} {
		late := f.t.Report().Late
		if got := f.translate(line, busy, idle); len(got) != 0 {
			t.Errorf("%s: facts %v", name, got)
		}
		if got := f.t.Report().Late; got != late+1 {
			t.Errorf("%s: %d late events, want one more than %d", name, got, late)
		}
	}
}

// TestOpenIsRemembered checks that open entities are kept, however many events follow: a call of a long turn with a
// permission, and a pending message.
func TestOpenIsRemembered(t *testing.T) {
	f := &feed{t: NewTranslator()}
	f.translate(created, asks, asksIt, busy, answers1, tool("p9", "c9", running), permission("r9", "c9", "rm"))
	f.translate(strings.ReplaceAll(asks, "m1", "waits"))
	for n := range 5 * messagesKept {
		a := fmt.Sprintf(`"a-%d"`, n)
		call := strings.NewReplacer(`"a1"`, a, `"p1"`, fmt.Sprintf(`"x-%d"`, n))
		f.translate(strings.ReplaceAll(answers1, `"a1"`, a), call.Replace(tool("p1", fmt.Sprintf("k-%d", n), running)),
			call.Replace(tool("p1", fmt.Sprintf("k-%d", n), `{"status":"completed","output":"x"}`)))
	}
	s := f.t.sessions["ses_1"]
	if n := len(s.turn.calls); n > 4*messagesKept+2 {
		t.Errorf("an open turn holds %d calls", n)
	}
	if len(s.messages) > 2*messagesKept+2 {
		t.Errorf("%d messages are in memory", len(s.messages))
	}
	got := strings.Join(f.translate(replied("r9", "once"), tool("p9", "c9", `{"status":"completed","output":"x"}`),
		finished("a1", "m1", "stop")), "\n")
	if !strings.Contains(got, "prompt.answered r9") || !strings.Contains(got, "tool.completed c9") {
		t.Errorf("open entities are translated as\n%s", got)
	}
	if len(s.pending) != 1 || s.pending[0].id != "waits" {
		t.Errorf("%d messages wait", len(s.pending))
	}
}

// TestManySessions checks that only the ids of deleted sessions are kept, and that inactive sessions take little
// memory.
func TestManySessions(t *testing.T) {
	const sessions = 3 * busyMax
	f := &feed{t: NewTranslator()}
	in := func(id string, lines ...string) []string {
		for i := range lines {
			lines[i] = strings.ReplaceAll(lines[i], "ses_1", id)
		}
		return f.translate(lines...)
	}
	for n := range sessions {
		id := fmt.Sprint("ses_d", n)
		in(id, append([]string{created}, round(n)...)...)
		in(id, `session.deleted {"sessionID":"ses_1","info":{"id":"ses_1"}}`)
	}
	if len(f.t.sessions) != 0 || len(f.t.ordered) != 0 || len(f.t.busy) != 0 {
		t.Errorf("%d deleted sessions are in memory, %d in order, %d busy", len(f.t.sessions), len(f.t.ordered),
			len(f.t.busy))
	}
	late := f.t.Report().Late
	if got := in("ses_d7", created, asks); len(got) != 0 || f.t.Report().Late != late+2 || len(f.t.sessions) != 0 {
		t.Errorf("a deleted session adds %v, %d late", got, f.t.Report().Late-late)
	}
	if got := f.translate("server.connected {}", created); len(got) == 0 || got[0] != "restart" {
		t.Errorf("a restart after all sessions were deleted is translated as %v", got)
	}
	for n := range sessions {
		id := fmt.Sprint("ses_k", n)
		in(id, created)
		for r := range 2*messagesIdle + 5 {
			in(id, round(r)...)
		}
	}
	first, last := f.t.sessions["ses_k0"], f.t.sessions[fmt.Sprint("ses_k", sessions-1)]
	if len(f.t.busy) != busyMax || len(first.messages) != messagesIdle || len(last.messages) <= messagesIdle {
		t.Errorf("%d are busy; the first holds %d messages, the last %d", len(f.t.busy), len(first.messages),
			len(last.messages))
	}
	if got := in("ses_k0", round(999)...); !strings.Contains(strings.Join(got, "\n"), "turn.completed") {
		t.Errorf("active again it is translated as %v", got)
	}
}

// TestLostIsBounded checks that any number of restarts takes bounded memory.
func TestLostIsBounded(t *testing.T) {
	f := &feed{t: NewTranslator()}
	f.translate(created)
	// Each restart loses a turn, a call and a prompt.
	for n := range lostMax / 2 {
		f.translate("server.connected {}")
		f.translate(round(n)[:6]...)
	}
	if got := len(f.t.Report().Lost); got != lostMax {
		t.Errorf("%d entries, want %d", got, lostMax)
	}
}
