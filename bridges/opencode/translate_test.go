package opencode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// script is an artificial stream: each line is an event's type and its properties, one second after the one before.
func script(lines ...string) []Record {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	records := make([]Record, 0, len(lines))
	for i, line := range lines {
		typ, props, _ := strings.Cut(line, " ")
		if props == "" {
			props = `{"sessionID":"ses_1"}`
		}
		raw := fmt.Sprintf(`{"id":"evt_%04d","type":%q,"properties":%s}`, i, typ, props)
		records = append(records, Record{At: start.Add(time.Duration(i) * time.Second), Event: json.RawMessage(raw)})
	}
	return records
}

// stepTexts returns one text per fact of the steps. The id of a session other than ses_1 precedes its facts.
func stepTexts(steps []Step) []string {
	var words []string
	for _, s := range steps {
		at := ""
		if s.Session != "ses_1" {
			at = s.Session + " "
		}
		if s.Restart {
			words = append(words, "restart")
			continue
		}
		if s.Open != nil {
			words = append(words,
				strings.TrimSpace(fmt.Sprintf("%sopened %s/%s/%s", at, s.Open.Parent, s.Open.ParentCall, s.Open.Root)))
		}
		if s.Claim {
			words = append(words, at+"claimed")
		}
		for _, f := range s.Facts {
			words = append(words, at+word(f))
		}
	}
	return words
}

func word(f events.Fact) string {
	w := string(f.Kind()) + " " + f.Subject()
	switch f := f.(type) {
	case events.MessageAccepted:
		w += fmt.Sprintf(" %s synthetic=%v", f.Content, f.Synthetic)
	case events.TurnStarted:
		w += fmt.Sprintf(" %s %s of=%s", f.Cause, f.Message, f.OfTurn)
	case events.TurnCompleted:
		w += " " + f.Finish
	case events.TurnFailed:
		w += fmt.Sprintf(" %s output=%v", f.Error.Kind, f.HadOutput)
	case events.TurnStopped:
		w += " " + f.Actor + ": " + f.Reason
	case events.ToolStarted:
		w += fmt.Sprintf(" %s %q %s", f.Name, f.Title, f.Input)
	case events.ToolCompleted:
		w += " " + string(f.Output)
	case events.ToolFailed:
		w += " " + f.Error.Kind
	case events.PromptRequested:
		w += fmt.Sprintf(" %s %s call=%s %d questions", f.PromptKind, f.Title, f.Call, len(f.Questions))
	case events.PromptAnswered:
		w += " " + text(f.Answers)
	case events.PromptRejected:
		w += " " + f.Text
	case events.CompactionFailed:
		w += " " + f.Error.Kind
	}
	return strings.TrimSpace(w)
}

const (
	created = `session.created {"sessionID":"ses_1","info":{"id":"ses_1","title":"a","version":"1"}}`
	busy    = `session.status {"sessionID":"ses_1","status":{"type":"busy"}}`
	idle    = `session.status {"sessionID":"ses_1","status":{"type":"idle"}}`
	asks    = `message.updated {"sessionID":"ses_1","info":{"id":"m1","role":"user","time":{}}}`
	asksIt  = `message.part.updated {"sessionID":"ses_1","part":{"id":"p1","messageID":"m1","type":"text",` +
		`"text":"do it"}}`
	answers1 = `message.updated {"sessionID":"ses_1","info":{"id":"a1","parentID":"m1","role":"assistant","time":{}}}`
)

// begun is the beginning of an ordinary turn, with its facts.
var (
	begun      = []string{created, asks, asksIt, busy, answers1}
	begunLines = []string{"opened //", `message.accepted m1 "do it" synthetic=false`, "turn.started m1 message m1 of="}
)

func tool(id, call, state string) string {
	return fmt.Sprintf(`message.part.updated {"sessionID":"ses_1","part":{"id":%q,"messageID":"a1","type":"tool",`+
		`"tool":"bash","callID":%q,"state":%s}}`, id, call, state)
}

func finished(id, parent, finish string) string {
	return fmt.Sprintf(`message.updated {"sessionID":"ses_1","info":{"id":%q,"parentID":%q,"role":"assistant",`+
		`"time":{"completed":9},"finish":%q}}`, id, parent, finish)
}

const running = `{"status":"running","input":{"command":"ls"}}`

// TestTranslation has the cases that no recording shows: the facts of these events after the beginning of a turn.
func TestTranslation(t *testing.T) {
	for _, tt := range []struct {
		name string
		when []string
		then []string
	}{
		{"a call that is pending is said with what it is called with",
			[]string{tool("p2", "c1", `{"status":"pending","input":{}}`), tool("p2", "c1", running)},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`}},
		{"a call that stays pending is said all the same",
			[]string{tool("p2", "c1", `{"status":"pending","input":{}}`)},
			[]string{`tool.started c1 bash ""`}},
		{"running again and again is no news",
			[]string{tool("p2", "c1", running), tool("p2", "c1", running), tool("p2", "c1",
				`{"status":"completed","output":"x"}`), tool("p2", "c1", `{"status":"completed","output":"y"}`)},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, `tool.completed c1 "x"`}},
		{"a call first seen when it was over has a beginning too",
			[]string{tool("p2", "c1", `{"status":"error","error":"no","input":{"command":"ls"}}`)},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, "tool.failed c1 tool_error"}},
		{"a provider that gives the same call id twice",
			[]string{tool("p2", "c1", running), tool("p2", "c1", `{"status":"completed","output":"x"}`),
				tool("p3", "c1", running)},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, `tool.completed c1 "x"`,
				`tool.started p3 bash "ls" {"command":"ls"}`}},
		{"an abort ends the turn at once, and what comes late opens nothing again",
			[]string{tool("p2", "c1", running),
				`session.error {"sessionID":"ses_1","error":{"name":"MessageAbortedError"}}`, idle, "session.idle",
				tool("p2", "c1", running), tool("p3", "c2", running),
				tool("p2", "c1", `{"status":"completed","output":"x"}`), idle},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, "turn.stopped m1 person: aborted in OpenCode"}},
		{"an abort while OpenCode's own retry waits leaves neither error nor finish",
			[]string{`session.status {"sessionID":"ses_1","status":{"type":"retry","attempt":1,"message":"x",` +
				`"next":1}}`, idle},
			[]string{"turn.stopped m1 person: " + reasonBackOff}},
		{"a person's own command ends with it, without a finish",
			[]string{tool("p2", "c1", running),
				`message.updated {"sessionID":"ses_1","info":{"id":"a1","parentID":"m1","role":"assistant",` +
					`"time":{"completed":1}}}`,
				tool("p2", "c1", `{"status":"completed","output":"x"}`), idle},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, `tool.completed c1 "x"`, "turn.completed m1"}},
		{"a command in a message without an end",
			[]string{tool("p2", "c1", running), tool("p2", "c1", `{"status":"completed","output":"x"}`), idle},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, `tool.completed c1 "x"`,
				"turn.stopped m1 person: " + reasonNoFinish}},
		{"an answer without a finish or a word",
			[]string{`message.updated {"sessionID":"ses_1","info":{"id":"a1","parentID":"m1","role":"assistant",` +
				`"time":{"completed":1}}}`, idle},
			[]string{"turn.stopped m1 person: " + reasonNoFinish}},
		{"an idle event without an end is a stop, too",
			[]string{idle}, []string{"turn.stopped m1 person: " + reasonNoFinish}},
		{"a repeated event of an older model call does not affect the newest",
			[]string{finished("a1", "m1", "tool-calls"),
				`message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m1","role":"assistant"}}`,
				finished("a1", "m1", "stop"), idle},
			[]string{"turn.stopped m1 person: " + reasonNoFinish}},
		{"an error after which the run continues is no failure",
			[]string{`session.error {"sessionID":"ses_1","error":{"name":"UnknownError","data":{"message":"x"}}}`,
				finished("a1", "m1", "stop"), idle},
			[]string{"turn.completed m1 stop"}},
		{"an error after the last answer is one",
			[]string{finished("a1", "m1", "tool-calls"),
				`session.error {"sessionID":"ses_1","error":{"name":"APIError","data":{"statusCode":500}}}`, idle},
			[]string{"turn.failed m1 server_error output=false"}},
		{"an overflow that no compaction solves",
			[]string{`session.error {"sessionID":"ses_1","error":{"name":"ContextOverflowError"}}`, idle},
			[]string{"turn.failed m1 context_exceeded output=false"}},
		{"a compaction that fails within a turn fails both",
			[]string{finished("a1", "m1", "tool-calls"),
				`message.updated {"sessionID":"ses_1","info":{"id":"s1","parentID":"m9","role":"assistant",` +
					`"summary":true,"time":{}}}`,
				`session.error {"sessionID":"ses_1","error":{"name":"APIError","data":{"statusCode":429}}}`, idle},
			[]string{"compaction.started s1", "compaction.failed s1 rate_limit",
				"turn.failed m1 rate_limit output=false"}},
		{"a second message during the first one's turn continues it",
			[]string{`message.updated {"sessionID":"ses_1","info":{"id":"m2","role":"user"}}`,
				`message.part.updated {"sessionID":"ses_1","part":{"id":"p9","messageID":"m2","type":"text",` +
					`"text":"and that"}}`,
				busy, finished("a1", "m1", "tool-calls"),
				`message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m2","role":"assistant"}}`},
			[]string{`message.accepted m2 "and that" synthetic=false`, "turn.started m2 message m2 of=m1"}},
		{"after an answer it begins a turn of its own",
			[]string{`message.updated {"sessionID":"ses_1","info":{"id":"m2","role":"user"}}`, finished("a1", "m1",
				"stop"), `message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m2","role":"assistant"}}`},
			[]string{"turn.completed m1 stop", `message.accepted m2 "" synthetic=false`,
				"turn.started m2 message m2 of="}},
		{"a message that was taken back is not taken",
			[]string{`message.updated {"sessionID":"ses_1","info":{"id":"m2","role":"user"}}`,
				`message.removed {"sessionID":"ses_1","messageID":"m2"}`,
				`message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m2","role":"assistant"}}`}, nil},
		{"a message of OpenCode's own begins a synthetic turn",
			[]string{finished("a1", "m1", "stop"), idle,
				`message.updated {"sessionID":"ses_1","info":{"id":"m2","role":"user"}}`,
				`message.part.updated {"sessionID":"ses_1","part":{"id":"p9","messageID":"m2","type":"text",` +
					`"text":"go on","synthetic":true}}`, busy},
			[]string{"turn.completed m1 stop", `message.accepted m2 "go on" synthetic=true`,
				"turn.started m2 message m2 of="}},
		{"the same message worked on again is a turn of its own",
			[]string{finished("a1", "m1", "stop"), idle,
				`message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m1","role":"assistant"}}`},
			[]string{"turn.completed m1 stop", "turn.started a2 resume m1 of=m1"}},
		{"a message that asks for a compaction begins no turn in any order of its events",
			[]string{finished("a1", "m1", "stop"), idle,
				`message.part.updated {"sessionID":"ses_1","part":{"id":"p9","messageID":"m2","type":"compaction"}}`,
				`message.part.updated {"sessionID":"ses_1","part":{"id":"p8","messageID":"m2","type":"text",` +
					`"text":"x"}}`, `message.updated {"sessionID":"ses_1","info":{"id":"m2","role":"user"}}`, busy},
			[]string{"turn.completed m1 stop"}},
		{"an abort of a compaction",
			[]string{finished("a1", "m1", "stop"), idle,
				`message.updated {"sessionID":"ses_1","info":{"id":"s1","role":"assistant","summary":true}}`,
				`session.error {"sessionID":"ses_1","error":{"name":"MessageAbortedError"}}`, idle},
			[]string{"turn.completed m1 stop", "compaction.started s1", "compaction.failed s1 aborted"}},
		{"a model call's usage is reported once, also if it arrives late",
			[]string{finished("a1", "m1", "stop"), idle,
				`message.part.updated {"sessionID":"ses_1","part":{"id":"p9","messageID":"a1","type":"step-finish",` +
					`"tokens":{"input":5}}}`,
				`message.part.updated {"sessionID":"ses_1","part":{"id":"p9","messageID":"a1","type":"step-finish",` +
					`"tokens":{"input":5}}}`},
			[]string{"turn.completed m1 stop", "usage.reported m1"}},
		{"a deleted session stays closed after any event",
			[]string{tool("p2", "c1", running), `session.deleted {"sessionID":"ses_1","info":{"id":"ses_1"}}`, idle,
				tool("p2", "c1", `{"status":"error"}`), busy, answers1},
			[]string{`tool.started c1 bash "ls" {"command":"ls"}`, "session.closed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps, _ := Steps(script(slices.Concat(begun, tt.when)...))
			checkSteps(t, steps)
			if got, want := stepTexts(steps), slices.Concat(begunLines, tt.then); !slices.Equal(got, want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
		})
	}
}

// TestRestarts checks the report about the entities that a dead process held. The bridge appends no facts about them.
func TestRestarts(t *testing.T) {
	asked := `question.asked {"sessionID":"ses_1","id":"q","questions":[{"question":"?","options":[]}],` +
		`"tool":{"messageID":"a1","callID":"c1"}}`
	const connected = `server.connected {}`
	began := slices.Concat(begunLines, []string{`tool.started c1 bash "ls" {"command":"ls"}`,
		"prompt.requested q question ? call=c1 1 questions", "restart"})
	for _, tt := range []struct {
		name string
		when []string
		then []string
	}{
		{"the abort that cleans up", []string{idle, "session.idle"}, nil},
		{"a late answer, a repaired call and a repaired message", []string{
			`question.replied {"sessionID":"ses_1","requestID":"q","answers":[["x"]]}`,
			tool("p2", "c1", `{"status":"error","error":"interrupted","metadata":{"interrupted":true}}`),
			`message.updated {"sessionID":"ses_1","info":{"id":"a1","parentID":"m1","role":"assistant",` +
				`"time":{"completed":1},"error":{"name":"MessageAbortedError"}}}`,
			`session.error {"sessionID":"ses_1","error":{"name":"MessageAbortedError"}}`, idle}, nil},
		{"a repaired call of a message that was never seen", []string{
			`message.part.updated {"sessionID":"ses_1","part":{"id":"p7","messageID":"a7","type":"tool",` +
				`"tool":"bash","callID":"c7","state":{"status":"error","error":"x"}}}`}, nil},
		{"the next message is work of the new process", []string{
			`message.updated {"sessionID":"ses_1","info":{"id":"m2","role":"user"}}`,
			`message.part.updated {"sessionID":"ses_1","part":{"id":"p9","messageID":"m2","type":"text",` +
				`"text":"again"}}`, busy, idle},
			[]string{"claimed", `message.accepted m2 "again" synthetic=false`, "turn.started m2 message m2 of=",
				"turn.stopped m2 person: " + reasonNoFinish}},
		{"a summary of what was seen before is no new message", []string{asks, busy, idle}, nil},
		{"it died twice", []string{connected, idle}, []string{"restart"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps, report := Steps(script(slices.Concat([]string{connected}, begun,
				[]string{tool("p2", "c1", running), asked, connected}, tt.when)...))
			checkSteps(t, steps)
			if got, want := stepTexts(steps), slices.Concat(began, tt.then); !slices.Equal(got, want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
			if want := []string{"ses_1/prompt/q", "ses_1/tool/c1", "ses_1/turn/m1"}; !slices.Equal(report.Lost, want) ||
				len(report.Open) > 0 {
				t.Errorf("lost %v, want %v; open %v", report.Lost, want, report.Open)
			}
		})
	}
}

// TestEndOfRecording: if the process is dead at the end of a recording, everything stays open, including held facts.
func TestEndOfRecording(t *testing.T) {
	steps, report := Steps(script(append(slices.Clone(begun), tool("p2", "c1", running),
		tool("p3", "c2", `{"status":"pending"}`))...))
	checkSteps(t, steps)
	want := []string{"ses_1/tool/c1", "ses_1/tool/c2", "ses_1/turn/m1"}
	if !slices.Equal(report.Open, want) || len(report.Lost) > 0 {
		t.Errorf("open %v, want %v; lost %v", report.Open, want, report.Lost)
	}
	if last := steps[len(steps)-1]; len(last.Facts) != 1 || last.Facts[0].Subject() != "c2" {
		t.Errorf("the last step is %+v, want the pending call", last)
	}
}

// TestDead: the report shows whether the recorded process is alive at the end.
func TestDead(t *testing.T) {
	pending := tool("p2", "c1", `{"status":"pending"}`)
	for _, tt := range []struct {
		name string
		when []string
		want bool
	}{
		{"settled", []string{idle}, false},
		{"cut off in a turn", []string{pending}, true},
		{"restarted, and nothing since", []string{pending, `server.connected {}`, idle}, true},
		{"restarted, and at work since", []string{`server.connected {}`,
			`message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m1","role":"assistant"}}`}, true},
		{"restarted, and settled since", []string{`server.connected {}`,
			`message.updated {"sessionID":"ses_1","info":{"id":"a2","parentID":"m1","role":"assistant"}}`, idle},
			false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, report := Steps(script(slices.Concat(begun, tt.when)...)); report.Dead != tt.want {
				t.Errorf("dead is %v, want %v", report.Dead, tt.want)
			}
		})
	}
}

// TestDied: a restart has the instant of the dead process's last event, so that a replay can release its lease then.
func TestDied(t *testing.T) {
	records := script(append(slices.Clone(begun), `server.heartbeat {}`, `server.connected {}`)...)
	steps, _ := Steps(records)
	last := steps[len(steps)-1]
	if n := len(records); !last.Restart || !last.Died.Equal(records[n-2].At) || !last.At.Equal(records[n-1].At) {
		t.Errorf("got %+v", last)
	}
}

// TestAttachedLate: a stream that begins in the middle of a run opens the session and the turn with their first event.
func TestAttachedLate(t *testing.T) {
	for _, tt := range []struct {
		name string
		when []string
		then []string
	}{
		{"at a model call", []string{answers1, asks, finished("a1", "m1", "stop"), idle},
			[]string{"opened //", "turn.started m1 message m1 of=", "turn.completed m1 stop"}},
		{"at a call", []string{tool("p2", "c1", running), tool("p2", "c1", `{"status":"completed"}`), answers1, idle},
			[]string{"opened //", "turn.started a1 message  of=", `tool.started c1 bash "ls" {"command":"ls"}`,
				`tool.completed c1 ""`, "turn.stopped a1 person: " + reasonNoFinish}},
		{"at the end of a call", []string{tool("p2", "c1", `{"status":"completed"}`), finished("a1", "m1", "stop"),
			idle}, nil},
		{"at the end of a compaction",
			[]string{`message.updated {"sessionID":"ses_1","info":{"id":"s1","role":"assistant","summary":true,` +
				`"time":{"completed":1}}}`, "session.compacted"}, nil},
		{"at the end of a prompt", []string{`question.replied {"sessionID":"ses_1","requestID":"q","answers":[]}`},
			nil},
		{"at a prompt", []string{`question.asked {"sessionID":"ses_1","id":"q","questions":[{"question":"?"}],` +
			`"tool":{"messageID":"a1","callID":"c1"}}`, `question.rejected {"sessionID":"ses_1","requestID":"q"}`},
			[]string{"opened //", "prompt.requested q question ? call= 1 questions", "prompt.rejected q"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps, _ := Steps(script(tt.when...))
			checkSteps(t, steps)
			if got := stepTexts(steps); !slices.Equal(got, tt.then) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.then, "\n  "))
			}
		})
	}
}
