package opencode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func permission(id, call, pattern string) string {
	return fmt.Sprintf(`permission.asked {"sessionID":"ses_1","id":%q,"permission":"bash","patterns":[%q],`+
		`"metadata":{},"always":[],"tool":{"messageID":"a1","callID":%q}}`, id, pattern, call)
}

func replied(id, reply string) string {
	return fmt.Sprintf(`permission.replied {"sessionID":"ses_1","requestID":%q,"reply":%q}`, id, reply)
}

func question(questions string) string {
	return `question.asked {"sessionID":"ses_1","id":"q","questions":` + questions +
		`,"tool":{"messageID":"a1","callID":"c1"}}`
}

// TestPrompts checks the translation of people's answers, after two calls have begun.
func TestPrompts(t *testing.T) {
	const pending, failed = `{"status":"pending"}`,
		`{"status":"error","error":"The user rejected permission to use this specific tool call with the following ` +
			`feedback: use rm -i"}`
	const asked1, asked2 = "prompt.requested r1 permission bash: rm 1 call=c1 0 questions",
		"prompt.requested r2 permission bash: rm 2 call=c2 0 questions"
	asked := []string{tool("p2", "c1", pending), permission("r1", "c1", "rm 1"), tool("p3", "c2", pending),
		permission("r2", "c2", "rm 2")}
	began := []string{`tool.started c1 bash "rm 1"`, asked1, `tool.started c2 bash "rm 2"`, asked2}
	for _, tt := range []struct {
		name string
		when []string
		then []string
	}{
		{"a rejection with a text, and what it takes with it",
			slices.Concat(asked, []string{replied("r1", "reject"), replied("r2", "reject"), tool("p2", "c1", failed),
				tool("p3", "c2", `{"status":"error","error":"The user rejected permission"}`)}),
			slices.Concat(began, []string{"prompt.rejected r1 use rm -i", "tool.failed c1 rejected",
				"prompt.rejected r2", "tool.failed c2 rejected"})},
		{"the other call's error first", slices.Concat(asked, []string{replied("r1", "reject"), replied("r2", "reject"),
			tool("p3", "c2", `{"status":"error","error":"no"}`), tool("p2", "c1", failed)}),
			slices.Concat(began, []string{"prompt.rejected r2", "tool.failed c2 rejected",
				"prompt.rejected r1 use rm -i", "tool.failed c1 rejected"})},
		{"another call's end between a rejection and its text",
			slices.Concat(asked, []string{tool("p4", "c3", running), replied("r1", "reject"),
				tool("p4", "c3", `{"status":"completed","output":"x"}`), tool("p2", "c1", failed)}),
			slices.Concat(began, []string{`tool.started c3 bash "ls" {"command":"ls"}`, `tool.completed c3 "x"`,
				"prompt.rejected r1 use rm -i", "tool.failed c1 rejected"})},
		{"a rejection that nothing follows is not held back for ever",
			slices.Concat(asked, []string{replied("r1", "reject")}),
			slices.Concat(began, []string{"prompt.rejected r1"})},
		{"a rejection and then an abort", slices.Concat(asked, []string{replied("r1", "reject"),
			`session.error {"sessionID":"ses_1","error":{"name":"MessageAbortedError"}}`, tool("p2", "c1", failed)}),
			slices.Concat(began, []string{"prompt.rejected r1", "turn.stopped m1 person: " + reasonAborted})},
		{"once, and always", slices.Concat(asked, []string{replied("r1", "once"), replied("r2", "always")}),
			slices.Concat(began, []string{`prompt.answered r1 [{"question":"permission","selected":["once"]}]`,
				`prompt.answered r2 [{"question":"permission","selected":["always"]}]`})},
		{"a second reply, and one to nothing",
			slices.Concat(asked, []string{replied("r1", "once"), replied("r1", "reject"), replied("r9", "once")}),
			slices.Concat(began, []string{`prompt.answered r1 [{"question":"permission","selected":["once"]}]`})},
		{"a reply after the call has ended", slices.Concat(asked,
			[]string{tool("p2", "c1", `{"status":"completed","output":"x"}`), replied("r1", "once")}),
			slices.Concat(began, []string{`tool.completed c1 "x"`})},
		{"asked again while it is open", []string{permission("r1", "c9", "rm 1"), permission("r1", "c9", "rm 2")},
			[]string{"prompt.requested r1 permission bash: rm 1 call= 0 questions",
				"prompt.requested r1 permission bash: rm 2 call= 0 questions"}},
		{"asked again when it is closed", []string{permission("r1", "c9", "rm 1"), replied("r1", "once"),
			permission("r1", "c9", "rm 1")},
			[]string{"prompt.requested r1 permission bash: rm 1 call= 0 questions",
				`prompt.answered r1 [{"question":"permission","selected":["once"]}]`}},
		{"the newer shape of a permission",
			[]string{`permission.v2.asked {"sessionID":"ses_1","id":"r1","action":"edit","resources":["a","b"]}`,
				`permission.v2.replied {"sessionID":"ses_1","requestID":"r1","reply":"reject","message":"not so"}`},
			[]string{"prompt.requested r1 permission edit: a, b call= 0 questions", "prompt.rejected r1 not so"}},
		{"answers by their places: offered, one's own, skipped", []string{
			question(`[{"question":"A?","options":[{"label":"x"},{"label":"y"}],"multiple":true},{"question":"B?",` +
				`"options":[{"label":"x"}]},{"question":"C?","options":[]}]`),
			`question.replied {"sessionID":"ses_1","requestID":"q","answers":[["y","x"],["mine"]]}`},
			[]string{"prompt.requested q question A? call= 3 questions",
				`prompt.answered q [{"question":"q1","selected":["y","x"]},{"question":"q2","selected":[],` +
					`"text":"mine"},{"question":"q3","selected":[]}]`}},
		{"questions that are no list stand all the same", []string{question(`{"why":"not"}`),
			`question.replied {"sessionID":"ses_1","requestID":"q","answers":"yes"}`},
			[]string{`prompt.requested q question {"why":"not"} call= 0 questions`, "prompt.answered q []"}},
		{"a question without a text stands all the same", []string{question(`[{"header":"","options":null}]`)},
			[]string{"prompt.requested q question  call= 1 questions"}},
		{"questions beyond the limit stand all the same",
			[]string{question(`[{"question":"` + strings.Repeat("x", events.QuestionsBytesMax) + `"}]`)},
			[]string{"prompt.requested q question " + strings.Repeat("x", titleBytesMax-len("…")) +
				"… call= 0 questions"}},
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

// TestPromptExpires: an answer goes to a callback of the asking process, so every prompt of OpenCode expires with it.
func TestPromptExpires(t *testing.T) {
	steps, _ := Steps(script(slices.Concat(begun,
		[]string{permission("r1", "c1", "rm"), question(`[{"question":"?","multiple":true,"custom":false}]`)})...))
	var prompts []events.PromptRequested
	for _, s := range steps {
		for _, f := range s.Facts {
			if p, ok := f.(events.PromptRequested); ok {
				prompts = append(prompts, p)
			}
		}
	}
	if len(prompts) != 2 {
		t.Fatalf("%d prompts, want 2", len(prompts))
	}
	for _, p := range prompts {
		if p.Delivery != events.DeliverCallback || p.Loss() != events.LossExpire || !p.Blocks() || p.Turn != "m1" {
			t.Errorf("%+v: want a blocking callback of turn m1 that expires", p)
		}
	}
	if q := prompts[1].Questions[0]; q.ID != "q1" || !q.Multi || q.Custom {
		t.Errorf("%+v: want q1, several answers, no free text", q)
	}
	const native = `{"permission":"bash","patterns":["rm"],"always":[],"metadata":{}}`
	if native != string(prompts[0].Native) {
		t.Errorf("native is %s", native)
	}
}

// TestSubAgents: a child has its parent, its root and, if it is unambiguous, the call that waits for it.
func TestSubAgents(t *testing.T) {
	task := func(part, call, state string) string {
		return strings.Replace(tool(part, call, state), `"bash"`, `"task"`, 1)
	}
	child := func(id, parent, title string) string {
		return fmt.Sprintf(`session.created {"sessionID":%q,"info":{"id":%q,"parentID":%q,"title":%q}}`, id, id, parent,
			title)
	}
	const command, search = `{"status":"running","input":{"description":"look"}}`,
		`{"status":"running","input":{"description":"search"}}`
	for _, tt := range []struct {
		name string
		when []string
		then []string
	}{
		{"the only call there is", []string{task("p2", "c1", `{"status":"pending"}`), child("ses_2", "ses_1", "look")},
			[]string{`tool.started c1 task ""`, "ses_2 opened ses_1/c1/ses_1"}},
		{"two calls with different descriptions", []string{task("p2", "c1", command), task("p3", "c2", search),
			child("ses_2", "ses_1", "search (@general subagent)"), child("ses_3", "ses_1", "look (@general subagent)")},
			[]string{`tool.started c1 task "look" {"description":"look"}`,
				`tool.started c2 task "search" {"description":"search"}`, "ses_2 opened ses_1/c2/ses_1",
				"ses_3 opened ses_1/c1/ses_1"}},
		{"two calls with the same description",
			[]string{task("p2", "c1", command), task("p3", "c2", command), child("ses_2", "ses_1", "look")},
			[]string{`tool.started c1 task "look" {"description":"look"}`,
				`tool.started c2 task "look" {"description":"look"}`, "ses_2 opened ses_1//ses_1"}},
		{"two calls, one of which names it", []string{task("p2", "c1", command),
			task("p3", "c2", `{"status":"running","metadata":{"sessionId":"ses_2"}}`), child("ses_2", "ses_1", "look")},
			[]string{`tool.started c1 task "look" {"description":"look"}`, `tool.started c2 task ""`,
				"ses_2 opened ses_1/c2/ses_1"}},
		{"no call", []string{child("ses_2", "ses_1", "look")}, []string{"ses_2 opened ses_1//ses_1"}},
		{"a grandchild has the outermost root", []string{child("ses_2", "ses_1", "a"), child("ses_3", "ses_2", "b")},
			[]string{"ses_2 opened ses_1//ses_1", "ses_3 opened ses_2//ses_1"}},
		{"its own parent", []string{child("ses_2", "ses_2", "a")}, []string{"ses_2 opened //"}},
		{"a message of the agent to its sub-agent is synthetic",
			[]string{task("p2", "c1", command), child("ses_2", "ses_1", "look"),
				`message.updated {"sessionID":"ses_2","info":{"id":"m2","role":"user"}}`,
				`message.part.updated {"sessionID":"ses_2","part":{"id":"p9","messageID":"m2","type":"text",` +
					`"text":"look"}}`,
				`session.status {"sessionID":"ses_2","status":{"type":"busy"}}`, `session.idle {"sessionID":"ses_2"}`,
				task("p2", "c1", `{"status":"completed","output":"found"}`)},
			[]string{`tool.started c1 task "look" {"description":"look"}`, "ses_2 opened ses_1/c1/ses_1",
				`ses_2 message.accepted m2 "look" synthetic=true`, "ses_2 turn.started m2 message m2 of=",
				"ses_2 turn.stopped m2 person: " + reasonNoFinish, `tool.completed c1 "found"`}},
		{"a restart takes parent and child", []string{task("p2", "c1", command), child("ses_2", "ses_1", "look"),
			`server.connected {}`,
			`message.updated {"sessionID":"ses_2","info":{"id":"a9","parentID":"m9","role":"assistant"}}`},
			[]string{`tool.started c1 task "look" {"description":"look"}`, "ses_2 opened ses_1/c1/ses_1", "restart",
				"ses_2 claimed", "ses_2 turn.started m9 message m9 of="}},
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
