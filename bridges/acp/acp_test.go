package acp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Lines of the editor and of the agent. The agent's have %s for the id that the proxy gave.
const (
	editorNew    = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/src","mcpServers":[]}}`
	agentNew     = `{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`
	editorPrompt = `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1",` +
		`"prompt":[{"type":"text","text":"make it"}]}}`
	agentEnd  = `{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`
	agentCall = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
		`{"sessionUpdate":"tool_call","toolCallId":"c1","kind":"execute","title":"make","status":"pending"}}}`
	agentDone = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","rawOutput":"ok"}}}`
	agentAsks = `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1",` +
		`"toolCall":{"toolCallId":"c1","title":"make all","rawInput":{"command":"make all"}},"options":[` +
		`{"optionId":"o1","name":"Allow","kind":"allow_once"},{"optionId":"o2","name":"Allow","kind":"allow_always"},` +
		`{"optionId":"o3","name":"No","kind":"reject_once"},{"optionId":"o4","name":"Never","kind":"reject_always"}]}}`
	editorGrants = `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"o1"},` +
		`"_meta":{"x":1}}}`
	editorCancel = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`
)

// atTurn is a world in which a turn runs.
func atTurn(t *testing.T, content agent.Content) *world {
	t.Helper()
	w := newWorld(t, content)
	w.editor(editorNew)
	w.agent(fmt.Sprintf(agentNew, w.id(Agent, "session/new")))
	w.editor(editorPrompt)
	return w
}

// atPrompt is a world in which a permission is asked for.
func atPrompt(t *testing.T) *world {
	t.Helper()
	w := atTurn(t, agent.ContentTitles)
	w.agent(agentCall)
	w.agent(agentAsks)
	return w
}

// TestRecordedFirst checks that the facts of a step are appended before its lines are sent: a message, a call and a
// prompt are stored before they are shown or run, and an end before it is shown.
func TestRecordedFirst(t *testing.T) {
	w := newWorld(t, agent.ContentTitles)
	p := w.proxy
	first := func(steps []Step, kinds ...events.Kind) {
		t.Helper()
		var got []events.Kind
		for i, s := range steps {
			for _, f := range s.Facts {
				got = append(got, f.Kind())
			}
			if len(s.Facts) > 0 && i == len(steps)-1 && len(s.Lines) == 0 {
				t.Errorf("no line behind %v", got)
			}
			if len(got) < len(kinds) && len(s.Lines) > 0 && i == 0 {
				t.Errorf("lines %s before the facts %v", s.Lines[0].Raw, kinds)
			}
		}
		if !slices.Equal(got, kinds) {
			t.Errorf("facts %v, want %v", got, kinds)
		}
		w.do(steps)
	}
	first(p.FromEditor(w.now(), []byte(editorNew)))
	first(p.FromAgent(w.now(), fmt.Appendf(nil, agentNew, w.id(Agent, "session/new"))))
	if !w.states["s1"].Opened() {
		t.Error("the session is not open")
	}
	first(p.FromEditor(w.now(), []byte(editorPrompt)), "message.accepted", "turn.started")
	if steps := p.FromAgent(w.now(), []byte(agentCall)); len(steps) != 0 {
		t.Errorf("a call whose input is not known: %+v", steps)
	}
	first(p.Flush(), "tool.started")
	first(p.FromAgent(w.now(), []byte(agentAsks)), "prompt.requested")
	first(p.FromAgent(w.now(), []byte(agentDone)), "prompt.withdrawn", "tool.completed")
	first(p.FromAgent(w.now(), fmt.Appendf(nil, agentEnd, w.id(Agent, "session/prompt"))), "turn.completed")
}

// TestHeldCall checks that a call that is announced without its input is stored with the input of the next line, and
// without input if the next line has none.
func TestHeldCall(t *testing.T) {
	for next, want := range map[string]string{
		agentAsks: `"title":"make all","input":{"command":"make all"}`,
		strings.Replace(agentAsks, `"c1"`, `"c2"`, 1): `"title":"make"}`,
		`{"method":"x"}`: `"title":"make"}`,
		"no json":        `"title":"make"}`,
		agentDone:        `"title":"make"}`,
	} {
		w := atTurn(t, agent.ContentTitles)
		w.agent(agentCall)
		if len(w.to(Editor)) != 1 {
			t.Errorf("shown before it is stored: %v", w.to(Editor))
		}
		w.agent(next)
		if got := w.to(Editor); got[1] != agentCall || len(got) != 3 {
			t.Errorf("before %s: %v", next, got)
		}
		if i := slices.IndexFunc(w.facts, func(f string) bool {
			return strings.Contains(f, "tool.started") &&
				strings.Contains(f, want)
		}); i < 0 {
			t.Errorf("before %s: %v", next, w.facts)
		}
	}
}

// TestFirstAnswerCounts decides a permission in the editor and elsewhere, in each order: the agent gets one reply, that
// of the first.
func TestFirstAnswerCounts(t *testing.T) {
	person := map[string]events.Fact{
		`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"o2"}}}`: events.PromptAnswered{
			By:      "ada",
			Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"o2 (2)"}}}},
		`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"o4"}}}`: events.PromptAnswered{
			By:      "ada",
			Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"Never"}}}},
		`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"o3"}}}`: events.PromptRejected{
			By: "ada"},
		`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}`: events.PromptAnswered{By: "ada",
			Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"what is not there"}}}},
	}
	for want, decision := range person {
		w := atPrompt(t)
		id, prompt := w.id(Editor, "request_permission"), w.prompts[0].Prompt
		w.forget()
		switch f := decision.(type) {
		case events.PromptAnswered:
			f.Prompt = prompt
			w.person(prompt, f)
		case events.PromptRejected:
			f.Prompt = prompt
			w.person(prompt, f)
		}
		w.editor(fmt.Sprintf(editorGrants, id))
		if got := w.to(Agent); !slices.Equal(got, []string{want}) {
			t.Errorf("the agent got %v, want %s", got, want)
		}
		if w.proxy.Report().Late != 1 || len(w.facts) != 1 {
			t.Errorf("facts %v, %+v", w.facts, w.proxy.Report())
		}
	}
	// The editor is first. Its reply arrives as it wrote it.
	w := atPrompt(t)
	id, prompt := w.id(Editor, "request_permission"), w.prompts[0].Prompt
	w.forget()
	w.editor(fmt.Sprintf(editorGrants, id))
	w.editor(fmt.Sprintf(editorGrants, id))
	w.do(w.proxy.Decided(w.now(), prompt, harness.Answer{Status: fold.Rejected, By: "ada"}))
	if got := w.to(Agent); !slices.Equal(got, []string{fmt.Sprintf(editorGrants, "0")}) {
		t.Errorf("the agent got %v", got)
	}
}

// TestAnswerBehindAnother checks that an answer of the editor that was stored behind another one has no effect: what
// reaches the agent is the decision that stands.
func TestAnswerBehindAnother(t *testing.T) {
	w := atPrompt(t)
	steps := w.proxy.FromEditor(w.now(), fmt.Appendf(nil, editorGrants, w.id(Editor, "request_permission")))
	if len(steps) != 1 || len(steps[0].Lines) != 0 {
		t.Fatalf("an answer that may not stand: %+v", steps)
	}
	w.forget()
	for _, a := range []harness.Answer{
		{Status: fold.Rejected, By: "ada"}, {Status: fold.Answered, By: "ada"}, {Status: fold.Dismissed}} {
		w.do(w.proxy.Decided(w.now(), w.prompts[0].Prompt, a))
	}
	want := `{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"o3"}}}`
	if got := w.to(Agent); !slices.Equal(got, []string{want}) {
		t.Errorf("the agent got %v", got)
	}
}

// TestEditorDoesNotAnswer checks an editor that cancels a permission or does not know the method: the prompt is
// withdrawn, and the agent has the reply as it is.
func TestEditorDoesNotAnswer(t *testing.T) {
	for _, reply := range []string{
		`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`,
		`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not found"}}`,
		`{"jsonrpc":"2.0","id":%s,"result":7}`,
	} {
		w := atPrompt(t)
		id := w.id(Editor, "request_permission")
		w.forget()
		w.editor(fmt.Sprintf(reply, id))
		if got := w.to(Agent); !slices.Equal(got, []string{fmt.Sprintf(reply, "0")}) {
			t.Errorf("the agent got %v", got)
		}
		if len(w.facts) != 1 || !strings.Contains(w.facts[0], "prompt.withdrawn") {
			t.Errorf("facts %v", w.facts)
		}
	}
}

// TestAgentTakesBack checks permissions that the agent no longer waits for: the call ends, the turn ends, or the
// request is cancelled. A later answer of the editor has no effect on the log.
func TestAgentTakesBack(t *testing.T) {
	for name, after := range map[string]func(w *world){
		"call": func(w *world) { w.agent(agentDone) },
		"turn": func(w *world) { w.agent(fmt.Sprintf(agentEnd, w.id(Agent, "session/prompt"))) },
		"cancelled": func(w *world) {
			w.agent(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0,"_meta":{}}}`)
			want := `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` +
				w.id(Editor, "request_permission") + `,"_meta":{}}}`
			if got := w.to(Editor); got[len(got)-1] != want {
				w.t.Errorf("the editor got %s, want %s", got[len(got)-1], want)
			}
		},
	} {
		w := atPrompt(t)
		id := w.id(Editor, "request_permission")
		sent := len(w.to(Agent))
		after(w)
		if more := w.to(Agent)[sent:]; name == "turn" && len(more) > 0 {
			t.Errorf("a reply after the turn: %v", more)
		}
		if st := w.states["s1"]; len(st.PendingPrompts()) > 0 {
			t.Errorf("%s: a prompt is open", name)
		}
		w.forget()
		w.editor(fmt.Sprintf(editorGrants, id))
		if len(w.facts)+len(w.to(Agent)) > 0 {
			t.Errorf("%s: facts %v, lines %v", name, w.facts, w.to(Agent))
		}
	}
}

// TestPromptsWait checks that a session has one turn at a time: a prompt request that arrives during a turn is recorded
// and sent when the turn has ended. One that is cancelled meanwhile is answered, and never recorded.
func TestPromptsWait(t *testing.T) {
	w := atTurn(t, agent.ContentTitles)
	ask := func(id string) { w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":`+id, 1)) }
	ask("3")
	ask(`"four"`)
	ask("5")
	w.editor(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"four"}}`)
	cancelled := `{"jsonrpc":"2.0","id":"four","error":{"code":-32800,`
	if got := w.to(Editor); !strings.HasPrefix(got[len(got)-1], cancelled) {
		t.Errorf("the editor got %v", got)
	}
	prompts := func() (n int) {
		for _, line := range w.to(Agent) {
			if strings.Contains(line, "session/prompt") {
				n++
			}
		}
		return n
	}
	for n := 1; n <= 2; n++ {
		if prompts() != n {
			t.Errorf("%d prompts were sent, want %d", prompts(), n)
		}
		w.agent(fmt.Sprintf(agentEnd, w.id(Agent, "session/prompt")))
	}
	got := w.to(Editor)
	if want := fmt.Sprintf(agentEnd, "3"); got[len(got)-1] != want {
		t.Errorf("the editor got %v", got)
	}
	ask("6")
	w.editor(editorCancel)
	got = w.to(Editor)
	if want := `{"jsonrpc":"2.0","id":6,"result":{"stopReason":"cancelled"}}`; got[len(got)-1] != want {
		t.Errorf("the editor got %v", got)
	}
	if got := w.to(Agent); got[len(got)-1] != editorCancel {
		t.Errorf("the agent got %v", got)
	}
	w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, "session/prompt") + `,"result":{"stopReason":"cancelled"}}`)
	if got := w.to(Editor); got[len(got)-1] != `{"jsonrpc":"2.0","id":5,"result":{"stopReason":"cancelled"}}` {
		t.Errorf("the editor got %v", got)
	}
	if open := w.open(); len(open) > 0 || prompts() != 3 {
		t.Errorf("%v is open after %d prompts", open, prompts())
	}
}

// TestEnds checks how replies to a prompt request end the turn.
func TestEnds(t *testing.T) {
	for reply, want := range map[string]string{
		`"result":{"stopReason":"max_tokens"}`:                              `completed "finish":"max_tokens"}`,
		`"result":{}`:                                                       `completed {"turn":"turn-1-3"}`,
		`"result":null`:                                                     `completed {"turn":"turn-1-3"}`,
		`"result":{"stopReason":"cancelled"}`:                               `stopped "actor":"person"`,
		`"result":{"stopReason":"refusal"}`:                                 `failed "kind":"model_refusal"`,
		`"error":{"code":-32000,"message":"x"}`:                             `failed "kind":"authentication"`,
		`"error":{"code":-32603,"message":"429 rate limit"}`:                `failed "kind":"rate_limit"`,
		`"error":{"code":-32603,"message":"?","data":"insufficient_quota"}`: `failed "kind":"quota"`,
		`"error":7`: `failed "kind":"unknown"`,
	} {
		w := atTurn(t, agent.ContentTitles)
		id := w.id(Agent, "session/prompt")
		w.forget()
		line := `{"jsonrpc":"2.0","id":%s,` + reply + `}`
		w.agent(fmt.Sprintf(line, id))
		outcome, rest, _ := strings.Cut(want, " ")
		if len(w.facts) != 1 || !strings.Contains(w.facts[0], " turn."+outcome+" ") ||
			!strings.Contains(w.facts[0], rest) {
			t.Errorf("%s: %v, want %s", reply, w.facts, want)
		}
		if got := w.to(Editor); !slices.Equal(got, []string{fmt.Sprintf(line, "2")}) {
			t.Errorf("%s: the editor got %v", reply, got)
		}
	}
}

// TestStrangeLines checks that lines that two readers may read in two ways do not pass, that other lines do, and that
// none of them changes what follows.
func TestStrangeLines(t *testing.T) {
	refused := []string{`[]`, `[{"jsonrpc":"2.0","id":1,"method":"session/prompt"}]`, `{"id":1,"id":2,"method":"x"}`,
		`{"id":1,"method":"x","\u0069d":2}`, `{"method":"x"} {"method":"y"}`, `{"id":1,"method":7}`}
	passes := []string{"", "  ", "text", `"text"`, "7", "{", `{"id":`, "\xff\xfe",
		`{"method":"x","params":{"a":1,"a":2}}`,
		`{"ID":7,"METHOD":"session/prompt"}`, `{}`, `{"jsonrpc":"2.0","method":"session/update","params":7}`,
		`{"method":"session/update","params":{"sessionId":7,"update":[]}}`, strings.Repeat("x", 1<<20),
		strings.Repeat("[", 20_000)}
	for _, from := range []Side{Editor, Agent} {
		w := newWorld(t, agent.ContentTitles)
		send := w.editor
		if from == Agent {
			send = w.agent
		}
		for _, line := range refused {
			send(line)
		}
		if r := w.proxy.Report(); len(w.lines) > 0 || r.Refused != len(refused) {
			t.Errorf("%s: %s passed; %+v", from, w.lines, r)
		}
		for _, line := range passes {
			send(line)
		}
		if got := w.to(other(from)); !slices.Equal(got, passes) || len(w.facts) > 0 {
			t.Errorf("%s: passed %.200q", from, got)
		}
		send(`{"id":99,"result":{}}`)
		send(`{"id":"1","result":{}}`)
		send(`{"id":-1,"error":{}}`)
		if r := w.proxy.Report(); r.Late != 3 {
			t.Errorf("%s: replies to nothing: %+v", from, r)
		}
	}
}

// TestCalls checks calls whose updates are late, twice, or the first sign of them.
func TestCalls(t *testing.T) {
	update := func(call, what string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"toolCallId":"` + call +
			`",` + what + `}}}`
	}
	w := atTurn(t, agent.ContentTitles)
	w.forget()
	lines := []string{
		update("c1", `"sessionUpdate":"tool_call_update","status":"completed"`), // no announcement before it
		update("c1", `"sessionUpdate":"tool_call_update","status":"failed"`),
		update("c1", `"sessionUpdate":"tool_call","status":"in_progress","_meta":{"claudeCode":{"toolName":"Bash"}}`),
		update("c1", `"sessionUpdate":"tool_call","status":"in_progress"`), // announced again while it runs
		update("c2", `"sessionUpdate":"tool_call","status":"failed","content":[{"content":{"text":"no"}}]`),
		update("", `"sessionUpdate":"tool_call","status":"failed"`),
		update("c3", `"sessionUpdate":"tool_call"`),
	}
	for _, line := range lines {
		w.agent(line)
	}
	w.agent(fmt.Sprintf(agentEnd, "4"))
	w.do(w.proxy.Flush())
	if got := w.to(Editor); !slices.Equal(got[:len(lines)], lines) {
		t.Errorf("the editor got %v", got)
	}
	var kinds []string
	for _, f := range w.facts {
		words := strings.Fields(f)
		kinds = append(kinds, words[2])
	}
	want := []string{"tool.started", "tool.completed", "tool.started", "tool.started", "tool.failed", "tool.started",
		"turn.completed"}
	if !slices.Equal(kinds, want) {
		t.Errorf("facts %v, want %v", w.facts, want)
	}
	if !strings.Contains(w.facts[2], `"call":"c1-1-6`) || !strings.Contains(w.facts[2], `"name":"Bash"`) {
		t.Errorf("a call under a used id: %s", w.facts[2])
	}
}

// TestNotOfThisTurn checks calls and permissions that are not the open turn's: they pass, and begin no call in the log.
func TestNotOfThisTurn(t *testing.T) {
	w := atPrompt(t)
	w.agent(agentDone)
	w.agent(fmt.Sprintf(agentEnd, w.id(Agent, "session/prompt")))
	w.forget()
	w.agent(agentCall)
	w.agent(agentDone)
	w.agent(agentAsks)
	w.editor(editorPrompt)
	loose := w.id(Editor, "request_permission")
	// the person's message has taken its place
	w.editor(fmt.Sprintf(editorGrants, loose))
	w.agent(agentDone)
	w.agent(agentAsks)
	w.agent(strings.Replace(agentAsks, `"toolCallId":"c1",`, "", 1))
	var kinds []string
	for _, f := range w.facts {
		kinds = append(kinds, strings.Fields(f)[2])
	}
	want := []string{"prompt.requested", "message.accepted", "turn.started", "prompt.requested", "prompt.requested"}
	if !slices.Equal(kinds, want) {
		t.Errorf("facts %v, want %v", w.facts, want)
	}
	if got := len(w.to(Editor)); got != 6 {
		t.Errorf("%d lines passed: %v", got, w.to(Editor))
	}
}

// TestLoadInATurn checks that a reload during a turn ends no call on the screen: this process may run it.
func TestLoadInATurn(t *testing.T) {
	load := `{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1"}}`
	w := atTurn(t, agent.ContentTitles)
	w.editor(load)
	w.agent(agentCall)
	w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, "session/load") + `,"result":{}}`)
	if got := w.to(Editor); len(got) != 3 || got[1] != agentCall {
		t.Errorf("the editor got %v", got)
	}
	w.agent(fmt.Sprintf(agentEnd, w.id(Agent, "session/prompt")))
	w.editor(load)
	w.agent(agentCall)
	w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, "session/load") + `,"result":{}}`)
	got := w.to(Editor)
	if len(got) != 7 || got[5] != string(failedUpdate("s1", "c1", textReplayed)) {
		t.Errorf("the editor got %v", got)
	}
}

// TestClosedInATurn checks a session that is closed while a prompt request is open: the late reply passes.
func TestClosedInATurn(t *testing.T) {
	w := atPrompt(t)
	id := w.id(Agent, "session/prompt")
	w.editor(`{"jsonrpc":"2.0","id":8,"method":"session/close","params":{"sessionId":"s1"}}`)
	w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, "session/close") + `,"result":{}}`)
	w.forget()
	w.agent(fmt.Sprintf(agentEnd, id))
	if got := w.to(Editor); !slices.Equal(got, []string{fmt.Sprintf(agentEnd, "2")}) || len(w.facts) > 0 {
		t.Errorf("the editor got %v; facts %v", got, w.facts)
	}
}

// TestManyOptions checks a permission with more options than a question has in the log.
func TestManyOptions(t *testing.T) {
	w := atTurn(t, agent.ContentTitles)
	var options []string
	for i := range 3 * optionsMax {
		options = append(options, fmt.Sprintf(`{"optionId":"x%d","name":"Allow"}`, i))
	}
	w.agent(`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{},` +
		`"options":[` + strings.Join(options, ",") + `]}}`)
	if n := len(w.prompts[0].Questions[0].Options); n != optionsMax {
		t.Errorf("%d options", n)
	}
	id := w.id(Editor, "request_permission")
	w.editor(`{"jsonrpc":"2.0","id":` + id + `,"result":{"outcome":{"outcome":"selected","optionId":"x299"}}}`)
	got := w.to(Agent)
	want := `{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"x299"}}}`
	if got[len(got)-1] != want {
		t.Errorf("the agent got %v", got)
	}
}

// TestSessions checks what requests say about sessions.
func TestSessions(t *testing.T) {
	w := newWorld(t, agent.ContentTitles)
	ask := func(method, params, result string) {
		w.editor(`{"jsonrpc":"2.0","id":9,"method":"` + method + `","params":` + params + `}`)
		w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, method) + `,` + result + `}`)
	}
	unnamed := events.DeriveID("ses", "")
	owned := func(id string) string {
		st := w.states[id]
		switch {
		case st == nil:
			return "unknown"
		case st.Closed != nil:
			return "closed"
		case st.Owned:
			return "owned"
		}
		return "released"
	}
	for _, c := range []struct{ method, params, result, session, want string }{
		{"session/new", `{"cwd":"/a"}`, `"error":{"code":1,"message":"no"}`, "s1", "unknown"},
		{"session/new", `{"cwd":"/a"}`, `"result":{}`, "s1", "unknown"},
		{"session/new", `{"cwd":"/a"}`, `"result":{"sessionId":"s1"}`, "s1", "owned"},
		{"session/fork", `{"sessionId":"s1"}`, `"result":{"sessionId":"s2"}`, "s2", "owned"},
		{"session/close", `{"sessionId":"s2"}`, `"error":{}`, "s2", "owned"},
		{"session/close", `{"sessionId":"s2"}`, `"result":{}`, "s2", "released"},
		{"session/close", `{"sessionId":"s9"}`, `"result":{}`, "s9", "unknown"},
		{"session/load", `{"sessionId":"s2"}`, `"error":{}`, "s2", "released"},
		{"session/load", `{"sessionId":"s2"}`, `"result":null`, "s2", "owned"},
		{"session/resume", `{"sessionId":"a.b c"}`, `"result":{}`, "a.b c", "owned"},
		{"session/delete", `{"sessionId":"s2"}`, `"result":{}`, "s2", "closed"},
		{"session/load", `{}`, `"result":{}`, unnamed, "unknown"},
		{"session/delete", `{}`, `"result":{}`, unnamed, "unknown"},
		{"session/prompt", `{}`, `"result":{}`, unnamed, "unknown"},
	} {
		ask(c.method, c.params, c.result)
		if got := owned(c.session); got != c.want {
			t.Errorf("%s %s, reply %s: session %s is %s, want %s", c.method, c.params, c.result, c.session, got, c.want)
		}
	}
	if w.proxy.sessions[""] != nil {
		t.Error("a session without an id is kept")
	}
	// A session id that no token can be: what is recorded has a derived id.
	long := strings.Repeat("x", 1000)
	ask("session/resume", `{"sessionId":"`+long+`"}`, `"result":{}`)
	if w.states[events.DeriveID("ses", long)] == nil {
		t.Errorf("sessions %v", w.states)
	}
}

// TestShuffled plays the recordings with lines missing, doubled and in another order. Each fact still counts in the
// fold, no prompt request of the editor has two replies, and the proxy keeps nothing of ended turns.
func TestShuffled(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, entries := range transcripts(t) {
		for range 10 {
			w := newWorld(t, agent.ContentTitles)
			n := len(entries)
			for range 2 * n {
				e := entries[rng.IntN(n)]
				m, err := parse(e.Msg)
				if err != nil {
					continue
				}
				raw := e.Msg
				// to one of the requests so far
				if m.isReply() {
					raw = m.withID(fmt.Appendf(nil, "%d", 1+rng.IntN(int(w.proxy.n)+1)))
				}
				if e.Dir == "editor" {
					w.editor(string(raw))
				} else {
					w.agent(string(raw))
				}
			}
			w.do(w.proxy.Flush())
			sent, replied := 0, 0
			for _, l := range w.lines {
				m, err := parse(l.Raw)
				switch {
				case err != nil:
				case l.To == Agent && m.isRequest():
					sent++
				case l.To == Editor && m.isReply():
					replied++
				}
			}
			if replied > sent {
				t.Errorf("%s: %d replies to %d requests", name, replied, sent)
			}
			if t.Failed() {
				t.Fatal(strings.Join(w.facts, "\n"))
			}
			for _, s := range w.proxy.sessions {
				if s.turn == nil && len(s.calls) > 0 {
					t.Errorf("%s: %d calls without a turn", name, len(s.calls))
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestLoadedAgain: a session that the editor loads once more is taken once more: the log may have lost it.
func TestLoadedAgain(t *testing.T) {
	p := New(Config{Run: "r"})
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for n := range 2 {
		p.FromEditor(at, []byte(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s1"}}`))
		steps := p.FromAgent(at, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, n+1))
		if len(steps) != 1 || steps[0].Open == nil || steps[0].Session != "s1" {
			t.Errorf("load %d: %+v", n+1, steps)
		}
	}
}
