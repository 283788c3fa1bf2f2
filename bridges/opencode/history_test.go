package opencode

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// vocabulary has every kind of event, about a few entities, so that events about the same entity are frequent.
func vocabulary() []string {
	words := []string{`server.connected {}`, `server.heartbeat {}`}
	for _, ses := range []string{"ses_1", "ses_2"} {
		of := func(lines ...string) {
			for _, l := range lines {
				words = append(words, strings.ReplaceAll(l, "ses_1", ses))
			}
		}
		of(created, busy, busy, idle, idle, "session.idle", "session.compacted",
			`session.created {"sessionID":"ses_1","info":{"id":"ses_1","parentID":"ses_2","title":"look"}}`,
			`session.status {"sessionID":"ses_1","status":{"type":"retry"}}`,
			`session.error {"sessionID":"ses_1","error":{"name":"MessageAbortedError"}}`,
			`session.error {"sessionID":"ses_1","error":{"name":"APIError","data":{"statusCode":503}}}`,
			`message.removed {"sessionID":"ses_1","messageID":"m2"}`,
			`message.part.updated {"sessionID":"ses_1","part":{"id":"p7","messageID":"m3","type":"compaction"}}`,
			`message.part.updated {"sessionID":"ses_1","part":{"id":"p6","messageID":"m3","type":"text","text":"go `+
				`on","synthetic":true}}`,
			`message.part.updated {"sessionID":"ses_1","part":{"id":"p5","messageID":"a1","type":"step-finish",`+
				`"tokens":{"input":5}}}`,
			`message.updated {"sessionID":"ses_1","info":{"id":"s1","parentID":"m3","role":"assistant",`+
				`"summary":true}}`,
			`message.updated {"sessionID":"ses_1","info":{"id":"s1","parentID":"m3","role":"assistant",`+
				`"summary":true,"time":{"completed":1},"error":{"name":"APIError"}}}`,
			question(`[{"question":"?"}]`), `question.replied {"sessionID":"ses_1","requestID":"q","answers":[["x"]]}`,
			`question.rejected {"sessionID":"ses_1","requestID":"q"}`,
			permission("r1", "c1", "rm"), replied("r1", "reject"), replied("r1", "always"))
		for _, m := range []string{"m1", "m2", "m3"} {
			of(strings.ReplaceAll(asks, "m1", m), strings.ReplaceAll(asksIt, "m1", m))
			for _, a := range []string{"a1", "a2", "a3"} {
				of(strings.NewReplacer("m1", m, "a1", a).Replace(answers1), finished(a, m, "stop"),
					finished(a, m, "tool-calls"))
			}
		}
		for _, state := range []string{`{"status":"pending"}`, running,
			`{"status":"running","metadata":{"sessionId":"ses_2"}}`, `{"status":"completed","output":"x"}`,
			`{"status":"error","error":"x"}`, `{"status":"levitating"}`} {
			for _, a := range []string{"a1", "a2", "a4"} {
				of(strings.ReplaceAll(tool("p1"+a, "c1", state), `"a1"`, `"`+a+`"`),
					strings.ReplaceAll(strings.ReplaceAll(tool("p2"+a, "c2", state), `"a1"`, `"`+a+`"`), "bash",
						"task"))
			}
		}
	}
	words = append(words, `session.deleted {"sessionID":"ses_2","info":{"id":"ses_2"}}`)
	return words
}

// TestAnyHistory: for events in any order, the translation is valid and deterministic.
func TestAnyHistory(t *testing.T) {
	const histories, length = 800, 80
	words := vocabulary()
	for seed := range uint64(histories) {
		rng := rand.New(rand.NewPCG(seed, 1))
		lines := make([]string, length)
		for i := range lines {
			lines[i] = words[rng.IntN(len(words))]
		}
		records := script(lines...)
		steps, report := Steps(records)
		checkSteps(t, steps)
		if again, _ := Steps(records); text(again) != text(steps) {
			t.Errorf("the second translation differs")
		}
		checkReport(t, steps, report)
		foldsAsReported(t, steps, report)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s\nfacts:\n%s", seed, strings.Join(lines, "\n"), strings.Join(stepTexts(steps), "\n"))
		}
	}
}

// checkReport compares the open entities of the report with those of the model at the end.
func checkReport(t *testing.T, steps []Step, report Report) {
	t.Helper()
	l := replayed(steps)
	var open []string
	for id := range l.open {
		if !strings.Contains(id, "/message/") {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	got := slices.Clone(report.Open)
	slices.Sort(got)
	if !slices.Equal(got, open) {
		t.Errorf("open in the report: %v, in the facts: %v", got, open)
	}
}
