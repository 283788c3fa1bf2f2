package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// begun is a world with an agent that can load sessions, and the session s1.
func begun(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, agent.ContentTitles)
	w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	w.reply("initialize", `"result":{"agentCapabilities":`+capsLoad+`}`)
	w.editor(editorNew)
	w.reply("session/new", `"result":{"sessionId":"s1","configOptions":[{"id":"model","currentValue":"m1"}]}`)
	return w
}

// asked is a world in which the agent of begun asks for a permission.
func asked(t *testing.T) *world {
	t.Helper()
	w := begun(t)
	w.editor(editorPrompt)
	w.agent(agentCall)
	w.agent(agentAsks)
	return w
}

// reply has the agent reply to the newest request of a method.
func (w *world) reply(method, what string) {
	w.t.Helper()
	w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, `"`+method+`"`) + `,` + what + `}`)
}

// revive has a next process of the agent reply to everything from here on.
func (w *world) revive() *next {
	a := start(w)
	w.kill(func() { a.seen = len(w.to(Agent)) })
	a.run()
	return a
}

func (w *world) count(to Side, with string) (n int) {
	for _, line := range w.to(to) {
		n += strings.Count(line, with)
	}
	return n
}

func (w *world) last(to Side) string {
	lines := w.to(to)
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

func notify(what string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{` + what + `}}}`
}

// TestOwnRequestsAreLost kills a process while it is restored. The editor knows nothing of those requests.
func TestOwnRequestsAreLost(t *testing.T) {
	w := begun(t)
	w.kill(func() {})
	w.forget()
	w.do(w.proxy.AgentExited(w.now(), "exit 137"))
	if got := w.to(Editor); len(got) > 0 {
		t.Errorf("the editor got %v", got)
	}
}

// TestRepliesToTheDead checks that the next process gets no reply to a request of the one before, and that a request of
// its own has its reply at once, also while it is restored.
func TestRepliesToTheDead(t *testing.T) {
	w := begun(t)
	read := `{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/a"}}`
	w.agent(read)
	old := w.id(Editor, "fs/read")
	w.kill(func() { w.editor(`{"jsonrpc":"2.0","id":` + old + `,"result":{"content":"a"}}`) })
	w.editor(`{"jsonrpc":"2.0","id":` + old + `,"result":{"content":"b"}}`)
	w.reply("initialize", `"result":{}`)
	w.agent(read)
	sent := len(w.to(Agent))
	w.editor(`{"jsonrpc":"2.0","id":` + w.id(Editor, "fs/read") + `,"result":{"content":"c"}}`)
	if got := w.to(Agent)[sent:]; !slices.Equal(got, []string{`{"jsonrpc":"2.0","id":7,"result":{"content":"c"}}`}) {
		t.Errorf("while it is restored, the agent got %v", got)
	}
	w.reply(methodLoad, `"result":{}`)
	w.editor(`{"jsonrpc":"2.0","id":` + old + `,"result":{"content":"d"}}`)
	if n := w.count(Agent, `"content"`); n != 1 || w.proxy.Report().Late != 3 {
		t.Errorf("%d replies, %+v", n, w.proxy.Report())
	}
}

// TestLinesOfTheDead checks that lines which arrive behind the death of their process have no effect.
func TestLinesOfTheDead(t *testing.T) {
	w := asked(t)
	end := fmt.Sprintf(agentEnd, w.id(Agent, methodPrompt))
	w.do(w.proxy.AgentExited(w.now(), "exit 137"))
	w.forget()
	for _, line := range []string{end, agentDone, agentAsks, "no json"} {
		w.agent(line)
	}
	if len(w.lines)+len(w.facts) > 0 || w.proxy.Report().Late != 4 {
		t.Errorf("lines %s, facts %v, %+v", w.lines, w.facts, w.proxy.Report())
	}
	if steps := w.proxy.AgentExited(w.now(), "exit 137"); len(steps) > 0 {
		t.Errorf("a second end: %v", steps)
	}
}

// TestSeveralPromptsOfATurn checks that a turn which waited for two answers continues when it has both, with both.
func TestSeveralPromptsOfATurn(t *testing.T) {
	w := asked(t)
	w.agent(strings.NewReplacer(`"c1"`, `"c2"`, `"id":0`, `"id":1`, "make all", "make test").Replace(agentAsks))
	prompts := slices.Clone(w.prompts)
	a := w.revive()
	for n, f := range prompts {
		if got := w.count(Agent, "has now answered"); got != 0 {
			t.Errorf("behind %d answers the agent was asked to continue", n)
		}
		w.person(f.Prompt, events.PromptAnswered{Prompt: f.Prompt, By: "ada", Answers: []events.Answer{
			{Question: events.PermissionQuestion, Selected: []string{"Allow"}}}})
		if n == 0 {
			// the process has not read the first answer
			w.agent(notify(`"sessionUpdate":"agent_message_chunk"`))
		}
	}
	a.run()
	line := a.log[len(a.log)-1]
	if !strings.Contains(line, "make all") || !strings.Contains(line, "make test") || w.count(Agent,
		methodPrompt) != 2 {
		t.Errorf("the agent read %s", line)
	}
	if w.last(Editor) != fmt.Sprintf(agentEnd, "2") || len(w.open()) > 0 {
		t.Errorf("the editor got %s; open %v", w.last(Editor), w.open())
	}
}

// TestHistoryOfALoad checks that the history which an agent sends while the proxy loads a session does not reach the
// editor, and that all that follows does. The history of a load of the editor reaches it.
func TestHistoryOfALoad(t *testing.T) {
	chunk := notify(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}`)
	w := begun(t)
	w.kill(func() {})
	w.reply("initialize", `"result":{}`)
	w.agent(chunk)
	if n := w.count(Editor, "hello"); n != 0 {
		t.Error("the editor got the history")
	}
	w.reply(methodLoad, `"result":{}`)
	w.agent(chunk)
	if n := w.count(Editor, "hello"); n != 1 {
		t.Errorf("behind the load the editor got %d lines", n)
	}
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1"}}`)
	w.agent(chunk)
	w.reply(methodLoad, `"result":{}`)
	if n := w.count(Editor, "hello"); n != 2 || !strings.Contains(w.last(Editor), `"id":7`) {
		t.Errorf("with a load of its own the editor got %d lines, the last %s", n, w.last(Editor))
	}
}

// TestLoadOfTheEditorIsLost checks a session/load that no process has replied to. It is repeated, unless the editor has
// a part of the history.
func TestLoadOfTheEditorIsLost(t *testing.T) {
	for _, part := range []bool{false, true} {
		for _, session := range []string{"s1", "s2"} {
			w := begun(t)
			w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"` + session + `"}}`)
			if part {
				w.agent(strings.ReplaceAll(notify(`"sessionUpdate":"user_message_chunk"`), "s1", session))
			}
			w.revive()
			if got, old := w.count(Editor, `"id":7,"error"`), w.count(Editor, textOld); part != (got == 1) ||
				part != (old == 0) ||
				!part && w.count(Editor, `"id":7,"result"`) != 1 {
				t.Errorf("%s, a part was shown %v: the editor got %v", session, part, w.to(Editor))
			}
			if s := w.proxy.sessions["s2"]; s != nil && part {
				t.Error("a session that was never loaded is kept")
			}
		}
	}
}

// TestGrantIsUsedOnce checks that a decision about a permission of a dead process is the reply to one equal request.
// Another request, and a second equal one, are shown.
func TestGrantIsUsedOnce(t *testing.T) {
	for _, other := range []string{agentAsks, strings.ReplaceAll(agentAsks, `"command":"make all"`, `"command":"rm"`),
		strings.ReplaceAll(agentAsks, `"title":"make all"`, `"title":"rm"`),
		strings.ReplaceAll(agentAsks, `"name":"Allow"`, `"name":"Grant"`)} {
		w := asked(t)
		w.kill(func() { w.decide() })
		a := start(w)
		a.seen--
		a.asks = agentAsks
		if other != agentAsks {
			a.asks = other
		}
		a.run()
		if other == agentAsks {
			if got := w.last(Editor); w.count(Agent, `"optionId":"o1"`) != 1 || got != fmt.Sprintf(agentEnd, "2") {
				t.Errorf("the agent got %v, the editor %s", w.to(Agent), got)
			}
			w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
			// in another turn
			w.agent(agentAsks)
		}
		if n := w.count(Editor, methodPermission); n != 2 {
			t.Errorf("%s: shown %d times", other, n)
		}
	}
	w := asked(t)
	w.kill(func() { w.decide() })
	a := start(w)
	a.seen--
	// initialize, session/load
	a.budget = 2
	a.run()
	w.agent(agentAsks)
	w.agent(agentAsks)
	if n := w.count(Editor, methodPermission); n != 2 {
		t.Errorf("asked three times, shown %d times", n)
	}
}

// TestGrantOfAnotherOption checks that a decision reaches the next process under the option's id there, and that a
// rejection is one, too.
func TestGrantOfAnotherOption(t *testing.T) {
	for _, c := range []struct {
		output events.Fact
		want   string
	}{
		{events.PromptAnswered{By: "ada", Answers: []events.Answer{{Question: events.PermissionQuestion,
			Selected: []string{"Never"}}}}, `"optionId":"x4"`},
		{events.PromptRejected{By: "ada"}, `"optionId":"x3"`},
	} {
		w := asked(t)
		id := w.prompts[0].Prompt
		w.kill(func() {
			switch f := c.output.(type) {
			case events.PromptAnswered:
				f.Prompt = id
				w.person(id, f)
			case events.PromptRejected:
				f.Prompt = id
				w.person(id, f)
			}
		})
		a := start(w)
		a.seen--
		a.asks = strings.NewReplacer(`"o3"`, `"x3"`, `"o4"`, `"x4"`).Replace(agentAsks)
		a.run()
		if w.count(Agent, c.want) != 1 || w.count(Editor, methodPermission) != 1 {
			t.Errorf("%v: the agent got %v", c.output, w.to(Agent))
		}
	}
}

// TestKilledBeforeItAsksAgain kills the next process between the answer and its request: the decision still counts, and
// the process behind it reads the answer unless the other one has worked on it.
func TestKilledBeforeItAsksAgain(t *testing.T) {
	for _, sent := range []string{"", agentCall, notify(`"sessionUpdate":"plan"`),
		notify(`"sessionUpdate":"agent_thought_chunk"`), notify(`"sessionUpdate":"agent_message_chunk"`),
		strings.NewReplacer(`"c1"`, `"c2"`, "make all", "make test").Replace(agentAsks)} {
		w := asked(t)
		w.kill(func() { w.decide() })
		a := start(w)
		a.seen--
		a.budget = 2
		a.run()
		if sent != "" {
			w.agent(sent)
		}
		w.kill(func() { w.decide() })
		a = start(w)
		a.seen--
		a.asks = agentAsks
		a.run()
		again := strings.Contains(strings.Join(a.log, ""), "make all. The user has now answered")
		if again != (sent == "") || w.count(Editor, `"title":"make all"`) != 1 {
			t.Errorf("behind %q: read again %v; %v", sent, again, w.to(Editor))
		}
		if len(w.open()) > 0 || w.last(Editor) != fmt.Sprintf(agentEnd, "2") {
			t.Errorf("behind %q: %v is open; %s", sent, w.open(), w.last(Editor))
		}
	}
}

// TestCallsOfTheDead checks which calls fail on the screen when their process ends: those that ran, once, and not the
// one that waits for an answer.
func TestCallsOfTheDead(t *testing.T) {
	w := asked(t)
	w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c2","status":"in_progress"`))
	w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c3","status":"completed"`))
	// held back
	w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c4"`))
	w.forget()
	failed := func() (ids []string) {
		for _, line := range w.to(Editor) {
			m, _ := parse([]byte(line))
			if u := members(members(m.params)["update"]); text(u["status"]) == statusFailed {
				ids = append(ids, text(u["toolCallId"]))
			}
		}
		return ids
	}
	a := w.revive()
	if got := failed(); !slices.Equal(got, []string{"c2", "c4"}) {
		t.Errorf("%v failed", got)
	}
	// of the dead process
	w.agent(notify(`"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"`))
	w.decide()
	if got := failed(); !slices.Equal(got, []string{"c2", "c4", "c1"}) {
		t.Errorf("%v failed", got)
	}
	// the next process has the same id for its call
	w.agent(agentCall)
	w.agent(agentDone)
	a.run()
	if len(w.open()) > 0 || !strings.Contains(strings.Join(w.facts, ""), "tool.completed") {
		t.Errorf("open %v, facts %v", w.open(), w.facts)
	}
}

// TestSameIdOfACall checks a next process that begins a call under the id of one that waits for an answer. The answer
// does not end the new call on the screen.
func TestSameIdOfACall(t *testing.T) {
	w := asked(t)
	w.revive()
	w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c1","status":"in_progress"`))
	w.forget()
	w.decide()
	if n := w.count(Editor, statusFailed); n != 0 {
		t.Errorf("the editor got %v", w.to(Editor))
	}
}

// TestModes checks which modes and options the next process has before anything else is said to it: those that were set
// last, by the editor or by the agent, in that order.
func TestModes(t *testing.T) {
	option := `{"jsonrpc":"2.0","id":5,"method":"session/set_config_option","params":{"sessionId":"s1",` +
		`"configId":"%s",` +
		`"value":"%s"}}`
	mode := `{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"%s"}}`
	set := func(line, result string) func(w *world) {
		return func(w *world) {
			w.editor(line)
			m, _ := parse([]byte(line))
			w.reply(m.method, result)
		}
	}
	sends := func(what string) func(w *world) { return func(w *world) { w.agent(notify(what)) } }
	const ok = `"result":{}`
	for name, c := range map[string]struct {
		before []func(w *world)
		want   []string // id and value
	}{
		"none":    {nil, nil},
		"a mode":  {[]func(w *world){set(fmt.Sprintf(mode, "plan"), ok)}, []string{"mode plan"}},
		"refused": {[]func(w *world){set(fmt.Sprintf(mode, "plan"), `"error":{}`)}, nil},
		"two modes": {[]func(w *world){set(fmt.Sprintf(mode, "a"), ok), set(fmt.Sprintf(mode, "b"), ok)},
			[]string{"mode b"}},
		"the agent's": {[]func(w *world){sends(`"sessionUpdate":"current_mode_update","currentModeId":"ask"`)},
			[]string{"mode ask"}},
		"older form": {[]func(w *world){sends(`"sessionUpdate":"current_mode_update","modeId":"ask"`)},
			[]string{"mode ask"}},
		"no mode": {[]func(w *world){sends(`"sessionUpdate":"current_mode_update"`)}, nil},
		"the agent's is last": {[]func(w *world){set(fmt.Sprintf(mode, "a"), ok),
			sends(`"sessionUpdate":"current_mode_update","currentModeId":"b"`)}, []string{"mode b"}},
		"the editor's is last": {[]func(w *world){sends(`"sessionUpdate":"current_mode_update","currentModeId":"b"`),
			set(fmt.Sprintf(mode, "a"), ok)}, []string{"mode a"}},
		"order": {[]func(w *world){set(fmt.Sprintf(option, "x", "1"), ok), set(fmt.Sprintf(mode, "a"), ok),
			set(fmt.Sprintf(option, "y", "2"), ok), set(fmt.Sprintf(option, "x", "3"), ok)},
			[]string{"mode a", "y 2", "x 3"}},
		"options of the agent": {[]func(w *world){sends(`"sessionUpdate":"config_option_update","configOptions":[` +
			`{"id":"mode","currentValue":"read-only"},{"id":"model","currentValue":"m1"},{"id":"none"},` +
			`{"id":"null","currentValue":null},{"currentValue":"x"},{"id":"b","type":"boolean","currentValue":true}]`)},
			[]string{"mode read-only", "b true boolean"}}, // the model is the one that it began with
		"options back": {[]func(w *world){set(fmt.Sprintf(option, "model", "m2"), ok),
			sends(`"sessionUpdate":"config_option_update","configOptions":[{"id":"model","currentValue":"m1"}]`)},
			[]string{"model m1"}},
		"in a result": {[]func(w *world){set(fmt.Sprintf(option, "x", "1"), `"result":{"configOptions":[{"id":"x",`+
			`"currentValue":"1"},{"id":"z","currentValue":"9"}]}`),
			sends(`"sessionUpdate":"config_option_update","configOptions":[{"id":"z","currentValue":"9"}]`)},
			[]string{"x 1"}},
		"a model": {[]func(w *world){set(`{"jsonrpc":"2.0","id":5,"method":"session/set_model","params":{`+
			`"sessionId":"s1",`+
			`"modelId":"m3"}}`, ok)}, []string{"model m3"}},
		"opened again": {[]func(w *world){set(fmt.Sprintf(mode, "a"), ok), set(fmt.Sprintf(option, "x", "1"), ok),
			set(fmt.Sprintf(option, "y", "1"), ok),
			set(`{"jsonrpc":"2.0","id":5,"method":"session/set_model","params":{`+
				`"sessionId":"s1","modelId":"m3"}}`, ok),
			set(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{`+
				`"sessionId":"s1"}}`, `"result":{"modes":{"currentModeId":"shown"},"models":{"currentModelId":"m4"},`+
				`"configOptions":[{"id":"x","currentValue":"2"}]}`)}, []string{"mode shown", "x 2", "y 1", "model m4"}},
		"opened again, nothing said": {[]func(w *world){set(fmt.Sprintf(mode, "a"), ok), set(`{"jsonrpc":"2.0","id":7,`+
			`"method":"session/resume","params":{"sessionId":"s1"}}`, ok)}, []string{"mode a"}},
	} {
		for _, open := range []bool{true, false} {
			w := begun(t)
			if open {
				w.editor(editorPrompt)
			}
			for _, do := range c.before {
				do(w)
			}
			a := w.revive()
			var got []string
			for i, line := range a.log[2:] {
				params := members([]byte(line[strings.Index(line, "{"):]))
				switch {
				case strings.HasPrefix(line, "session/set_"):
					value := firstOf(text(params["value"]), string(params["value"]), text(params["modeId"]),
						text(params["modelId"]))
					id := firstOf(text(params["configId"]), strings.TrimPrefix(strings.Fields(line)[0], "session/set_"))
					got = append(got, strings.TrimSpace(id+" "+value+" "+text(params["type"])))
					if text(params["sessionId"]) != "s1" {
						t.Errorf("%s: %s", name, line)
					}
				case i != len(c.want) || !open:
					t.Errorf("%s, in a turn %v: the agent read %v", name, open, a.log)
				}
			}
			if !slices.Equal(got, c.want) || a.log[1][:len(methodLoad)] != methodLoad {
				t.Errorf("%s, in a turn %v: set %q, want %q; %v", name, open, got, c.want, a.log)
			}
		}
	}
}

// TestModesMeanwhile checks a mode that the editor asks for when no process can have it. It precedes the turn that was
// open, and follows what the editor has said before about its session.
func TestModesMeanwhile(t *testing.T) {
	mode := `{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"plan"}}`
	for name, do := range map[string]func(w *world, a *next){
		"without a reply": func(w *world, a *next) {
			w.editor(mode)
			w.kill(func() { a.seen = len(w.to(Agent)) })
			a.run()
		},
		"while dead": func(w *world, a *next) {
			w.kill(func() { w.editor(mode); a.seen = len(w.to(Agent)) })
			a.run()
		},
		"while restored": func(w *world, a *next) {
			w.kill(func() { a.seen = len(w.to(Agent)) })
			w.editor(mode)
			a.run()
		},
		"and killed again": func(w *world, a *next) {
			w.kill(func() { w.editor(mode); a.seen = len(w.to(Agent)) })
			a.budget = 2
			a.run()
			w.kill(func() { a.seen, a.budget, a.log = len(w.to(Agent)), -1, nil })
			a.run()
		},
	} {
		w := begun(t)
		w.editor(editorPrompt)
		a := start(w)
		do(w, a)
		var methods []string
		for _, line := range a.log {
			methods = append(methods, strings.Fields(line)[0])
		}
		want := []string{"initialize", methodLoad, methodSetMode, methodPrompt}
		if !slices.Equal(methods, want) || w.count(Editor, `{"jsonrpc":"2.0","id":5,"result":{}}`) != 1 {
			t.Errorf("%s: the agent read %v, the editor %v", name, a.log, w.to(Editor))
		}
		if len(w.proxy.sessions["s1"].settings.list) != 1 {
			t.Errorf("%s: the mode is not remembered", name)
		}
	}
	w := begun(t)
	w.kill(func() { w.editor(editorPrompt); w.editor(mode) })
	a := start(w)
	a.seen--
	a.run()
	if last := a.log[len(a.log)-1]; !strings.HasPrefix(last, methodSetMode) {
		t.Errorf("the mode precedes a prompt that was there before it: %v", a.log)
	}
}

const cancelRequestTwo = `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`

// TestCancelledLost checks that a turn which no process has ends at once when it is cancelled while it waits for an
// answer in the next process, and that a request behind it is then sent.
func TestCancelledLost(t *testing.T) {
	for name, c := range map[string]struct {
		cancel func(w *world)
		want   string
	}{
		"the turn": {func(w *world) { w.editor(editorCancel) },
			`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}`},
		"the request": {func(w *world) { w.editor(cancelRequestTwo) },
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32800,`},
		"elsewhere": {func(w *world) { w.stop() },
			`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}`},
	} {
		w := asked(t)
		w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c9","status":"completed"`))
		w.revive()
		w.forget()
		c.cancel(w)
		if got := w.to(Editor); len(got) != 2 || !strings.Contains(got[0], textNotRun) || !strings.HasPrefix(got[1],
			c.want) {
			t.Errorf("%s: the editor got %v", name, got)
		}
		if n := w.count(Agent, "cancel"); n != 0 || len(w.open()) > 0 || !strings.Contains(w.facts[len(w.facts)-1],
			"turn.stopped") {
			t.Errorf("%s: the agent got %v; open %v; %v", name, w.to(Agent), w.open(), w.facts)
		}
		w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
		w.reply(methodPrompt, `"result":{"stopReason":"end_turn"}`)
		if got := w.last(Editor); got != fmt.Sprintf(agentEnd, "3") {
			t.Errorf("%s: the editor got %s", name, got)
		}
	}
}

// TestStop checks that a person stops a running turn from outside of the editor.
func TestStop(t *testing.T) {
	w := atTurn(t, agent.ContentTitles)
	turn := w.states["s1"].Turn.ID
	w.do(w.proxy.Stop(w.now(), turn+"0", events.ActorPerson, ""))
	if n := w.count(Agent, methodCancel); n != 0 {
		t.Error("another turn is stopped")
	}
	w.stop()
	if m, err := parse([]byte(w.last(Agent))); err != nil || m.method != methodCancel || m.sessionID() != "s1" {
		t.Errorf("the agent got %s", w.last(Agent))
	}
	w.reply(methodPrompt, `"result":{"stopReason":"cancelled"}`)
	if end := w.facts[len(w.facts)-1]; !strings.Contains(end, `"actor":"person","reason":"enough"`) {
		t.Errorf("the turn ends with %s", end)
	}
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
	sent := len(w.to(Agent))
	w.do(w.proxy.Stop(w.now(), turn, events.ActorPerson, ""))
	if got := w.to(Agent)[sent:]; len(got) > 0 {
		t.Errorf("the next turn is stopped: %v", got)
	}
}

// stop has a person stop the turn of the session outside of the editor.
func (w *world) stop() {
	w.do(w.proxy.Stop(w.now(), w.states["s1"].Turn.ID, events.ActorPerson, "enough"))
}

// TestStopAtAPermission checks that the agent gets one reply to the permission for which it waits when its turn is
// stopped outside of the editor, or when the log has ended it. An agent may wait for it before it ends the turn.
func TestStopAtAPermission(t *testing.T) {
	for _, ended := range []bool{false, true} {
		w := asked(t)
		id := w.id(Editor, methodPermission)
		if ended {
			turn := w.states["s1"].Turn.ID
			w.commit(w.states["s1"], events.WriterReconciler, events.ServiceSource("reconciler", "1"),
				w.states["s1"].Epoch, events.TurnStopped{Turn: turn, Actor: events.ActorPerson})
			w.do(w.proxy.TurnEnded(w.now(), turn, "enough"))
		} else {
			w.stop()
		}
		w.editor(`{"jsonrpc":"2.0","id":` + id + `,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`)
		got := w.to(Agent)
		if n := w.count(Agent, `"outcome":"cancelled"`); n != 1 || w.count(Agent, `"selected"`) != 0 ||
			!strings.Contains(got[len(got)-2], methodCancel) {
			t.Errorf("ended %v: %d replies: %v", ended, n, got)
		}
		w.reply(methodPrompt, `"result":{"stopReason":"cancelled"}`)
		if len(w.open()) > 0 {
			t.Errorf("ended %v: open %v", ended, w.open())
		}
	}
}

// TestCancelledBeforeTheDeath checks a turn that is cancelled when its process ends before it has replied.
func TestCancelledBeforeTheDeath(t *testing.T) {
	w := begun(t)
	w.editor(editorPrompt)
	w.editor(editorCancel)
	a := w.revive()
	if w.last(Editor) != `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}` || len(w.open()) > 0 ||
		len(a.log) != 2 {
		t.Errorf("the editor got %s; the agent read %v", w.last(Editor), a.log)
	}
}

// TestPromptsWhileDead checks prompt requests that arrive while no process runs: they follow in order, except those
// that are cancelled.
func TestPromptsWhileDead(t *testing.T) {
	w := begun(t)
	prompt := func(id string) { w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":`+id, 1)) }
	w.kill(func() {
		prompt("3")
		w.editor(strings.Replace(editorCancel, "s1", "s9", 1))
		w.editor(editorCancel)
		prompt("4")
		prompt("5")
		w.editor("no json")
		w.editor(`{"jsonrpc":"2.0","method":"x/unknown"}`)
		w.editor(`{"jsonrpc":"2.0","id":6,"method":"session/list"}`)
	})
	a := start(w)
	a.seen--
	a.run()
	var ends []string
	for _, line := range w.to(Editor) {
		if m, _ := parse([]byte(line)); m.isReply() && strings.Contains(line, "stopReason") {
			ends = append(ends, string(m.id)+" "+text(members(m.result)["stopReason"]))
		}
	}
	if !slices.Equal(ends, []string{"3 cancelled", "4 end_turn", "5 end_turn"}) || w.count(Agent, "no json") != 0 ||
		w.count(Agent, "x/unknown") != 1 || w.count(Editor, `"id":6,"result"`) != 1 {
		t.Errorf("ends %v; the agent got %v", ends, w.to(Agent))
	}
}

// TestWaitingRequestsOfALostTurn checks requests that wait behind a turn that cannot continue: each has one end.
func TestWaitingRequestsOfALostTurn(t *testing.T) {
	for _, refuses := range []string{methodLoad, "initialize"} {
		w := begun(t)
		w.editor(editorPrompt)
		w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
		a := start(w)
		a.refuses = refuses
		w.kill(func() { a.seen = len(w.to(Agent)) })
		a.run()
		w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":4`, 1))
		for _, id := range []string{"2", "3", "4"} {
			if n := w.count(Editor, `"id":`+id+`,"error":{"code":-32603,`); n != 1 {
				t.Errorf("%s: %d ends of %s: %v", refuses, n, id, w.to(Editor))
			}
		}
		if len(w.open()) > 0 || w.count(Agent, methodPrompt) != 1 {
			t.Errorf("%s: open %v; the agent got %v", refuses, w.open(), w.to(Agent))
		}
		a.refuses = ""
		w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1"}}`)
		a.run()
		w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":5`, 1))
		a.run()
		if w.last(Editor) != fmt.Sprintf(agentEnd, "5") {
			t.Errorf("%s: behind a load of the editor: %s", refuses, w.last(Editor))
		}
	}
}

// TestNotOpenedHere checks sessions that the next process cannot have, because nothing says how to load them.
func TestNotOpenedHere(t *testing.T) {
	w := newWorld(t, agent.ContentTitles)
	w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	w.reply("initialize", `"result":{"agentCapabilities":`+capsLoad+`}`)
	w.editor(editorPrompt)
	w.revive()
	if n := w.count(Editor, `"id":2,"error"`); n != 1 || len(w.open()) > 0 {
		t.Errorf("%d ends, open %v", n, w.open())
	}
	// TestKeepsNothing
	if len(w.proxy.sessions) != 0 {
		w.revive()
	}
	if len(w.proxy.sessions)+len(w.proxy.order) > 0 {
		t.Error("the session is kept")
	}
}

// TestRequestsOfTheDead checks what becomes of requests that a process had when it ended: those that can be repeated
// are, and the others have an error.
func TestRequestsOfTheDead(t *testing.T) {
	w := begun(t)
	for i, method := range append(slices.Clone(repeatable), "session/fork", "x/unknown") {
		w.editor(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"n":%d}}`, 100+i, method, i))
	}
	w.forget()
	a := w.revive()
	var got []string
	for _, line := range a.log {
		if strings.Contains(line, `{"n":`) {
			got = append(got, strings.Fields(line)[0])
		}
	}
	if !slices.Equal(got, repeatable) {
		t.Errorf("repeated %v", got)
	}
	if n, e := w.count(Editor, `,"result":`), w.count(Editor, `"error":{"code":-32603`); n != len(repeatable) ||
		e != 2 {
		t.Errorf("%d results and %d errors: %v", n, e, w.to(Editor))
	}
}

// TestAuthenticated checks that the next process is authenticated as the one before, until the user logs out.
func TestAuthenticated(t *testing.T) {
	w := begun(t)
	w.editor(`{"jsonrpc":"2.0","id":5,"method":"authenticate","params":{"methodId":"key"}}`)
	w.reply("authenticate", `"result":{}`)
	a := w.revive()
	if !slices.Equal(a.log[1:2], []string{`authenticate {"methodId":"key"}`}) || len(a.log) != 3 {
		t.Errorf("the agent read %v", a.log)
	}
	a = start(w)
	a.refuses = "authenticate"
	w.kill(func() { a.seen = len(w.to(Agent)) })
	a.run()
	w.editor(editorPrompt)
	if w.count(Agent, methodPrompt) != 1 {
		t.Error("the sessions say whether it was needed")
	}
	w.editor(`{"jsonrpc":"2.0","id":5,"method":"logout","params":{}}`)
	w.reply("logout", `"result":{}`)
	if a := w.revive(); strings.Contains(strings.Join(a.log, ""), "authenticate") {
		t.Errorf("the agent read %v", a.log)
	}
}

// TestGone checks an agent that is not started again: everything that is open ends, and later requests fail, until
// there is a next process.
func TestGone(t *testing.T) {
	w := asked(t)
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}`)
	ask := w.id(Editor, methodPermission)
	w.incarnation++
	w.do(w.proxy.AgentExited(w.now(), "exit 1"))
	w.owned = map[string]bool{}
	w.forget()
	w.editor(fmt.Sprintf(editorGrants, ask))
	w.do(w.proxy.AgentGone(w.now(), "exit 1, six times"))
	w.editor(`{"jsonrpc":"2.0","id":8,"method":"session/list"}`)
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":9`, 1))
	w.editor(fmt.Sprintf(editorGrants, ask))
	w.editor(editorCancel)
	w.agent(agentDone)
	w.do(w.proxy.AgentExited(w.now(), "exit 1"))
	w.editor(`{"jsonrpc":"2.0","id":11,"method":"session/list"}`)
	for _, id := range []string{"2", "3", "7", "8", "9", "11"} {
		if n := w.count(Editor, `"id":`+id+`,"error":{"code":-32603,`); n != 1 {
			t.Errorf("%d ends of %s: %v", n, id, w.to(Editor))
		}
	}
	if len(w.open()) > 0 || len(w.to(Agent)) > 0 || w.count(Editor, textNotRun) != 1 {
		t.Errorf("open %v, the agent got %v", w.open(), w.to(Agent))
	}
	w.incarnation++
	w.owned = map[string]bool{}
	a := start(w)
	w.do(w.proxy.AgentStarted(w.now()))
	a.run()
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":10`, 1))
	a.run()
	if w.last(Editor) != fmt.Sprintf(agentEnd, "10") || w.count(Editor, `"id":7,"result"`) > 0 {
		t.Errorf("behind a start: %v", w.to(Editor))
	}
	// Without the end of the process before: the end is part of it.
	w = asked(t)
	w.incarnation++
	steps := w.proxy.AgentGone(w.now(), "exit 1")
	w.owned = map[string]bool{}
	w.do(steps)
	if len(w.open()) > 0 || w.count(Editor, `"id":2,"error"`) != 1 {
		t.Errorf("open %v; the editor got %v", w.open(), w.to(Editor))
	}
}

// TestGoneOutsideOfATurn checks that a permission of no turn is withdrawn when the agent is not started again.
func TestGoneOutsideOfATurn(t *testing.T) {
	w := begun(t)
	w.agent(agentAsks)
	w.incarnation++
	w.do(w.proxy.AgentExited(w.now(), "exit 1"))
	w.owned = map[string]bool{}
	w.do(w.proxy.AgentGone(w.now(), "exit 1"))
	if len(w.open()) > 0 || len(w.proxy.prompts)+len(w.proxy.asks) > 0 {
		t.Errorf("open %v", w.open())
	}
}

// TestOutsideOfATurn checks a permission of no turn, whose process ends: the next one adopts it, and the answer is for
// an equal request. It is nothing that a later turn waits for.
func TestOutsideOfATurn(t *testing.T) {
	w := begun(t)
	w.agent(agentAsks)
	w.revive()
	if len(w.states["s1"].PendingPrompts()) != 1 || !w.owned["s1"] {
		t.Fatal("the prompt is not adopted")
	}
	w.decide()
	w.agent(agentAsks)
	if n := w.count(Editor, methodPermission); n != 1 || w.count(Agent, `"optionId":"o1"`) != 1 || len(w.open()) > 0 {
		t.Errorf("shown %d times; the agent got %v; open %v", n, w.to(Agent), w.open())
	}
	w = begun(t)
	w.agent(agentAsks)
	w.revive()
	w.editor(editorPrompt)
	w.decide()
	a := w.revive()
	if strings.Contains(strings.Join(a.log, ""), "has now answered") || w.count(Agent, textRestarted) != 1 {
		t.Errorf("the agent read %v", a.log)
	}
}

// TestTurnEnded checks a turn that the log has ended: nothing more is recorded of it, the agent is asked to stop, and
// the request of the editor has one end.
func TestTurnEnded(t *testing.T) {
	ends := func(w *world) string {
		st := w.states["s1"]
		id := st.Turn.ID
		w.commit(st, events.WriterReconciler, events.ServiceSource("reconciler", "1"), st.Epoch,
			events.TurnInterrupted{Turn: id, Reason: events.ReasonOwnerLost})
		return id
	}
	w := asked(t)
	end := fmt.Sprintf(agentEnd, w.id(Agent, methodPrompt))
	// held back
	w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c4"`))
	id := ends(w)
	w.do(w.proxy.TurnEnded(w.now(), "another", "recovered"))
	w.forget()
	w.do(w.proxy.TurnEnded(w.now(), id, "recovered"))
	if w.count(Agent, methodCancel) != 1 || w.count(Editor, "c4") != 1 {
		t.Errorf("lines %s", w.lines)
	}
	w.agent(agentDone)
	// waits: the agent works on the other one
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
	if w.count(Agent, methodPrompt) != 0 {
		t.Error("the agent has two requests of a session")
	}
	w.agent(end)
	if w.count(Editor, `"id":2,"result"`) != 1 || w.count(Agent, methodPrompt) != 1 {
		t.Errorf("lines %s", w.lines)
	}
	w.reply(methodPrompt, `"result":{}`)
	if len(w.open()) > 0 || w.last(Editor) != `{"jsonrpc":"2.0","id":3,"result":{}}` {
		t.Errorf("open %v, %s", w.open(), w.last(Editor))
	}
	// The process ends before it has replied, and before the log has ended the turn.
	for _, first := range []bool{false, true} {
		w = asked(t)
		w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
		if first {
			w.do(w.proxy.TurnEnded(w.now(), ends(w), "recovered"))
		}
		w.do(w.proxy.AgentExited(w.now(), "exit 1"))
		if !first {
			w.do(w.proxy.TurnEnded(w.now(), ends(w), "recovered"))
		}
		if n := w.count(Editor, `"id":2,`); n != 1 {
			t.Errorf("%d ends: %v", n, w.to(Editor))
		}
		a := w.revive()
		if n := w.count(Agent, methodPrompt); n != 2 || w.last(Editor) != fmt.Sprintf(agentEnd, "3") {
			t.Errorf("%d prompts: %v; the editor got %s", n, a.log, w.last(Editor))
		}
	}
}

// TestClosedWhileLost checks a session that is closed while its turn waits for an answer in the next process.
func TestClosedWhileLost(t *testing.T) {
	w := asked(t)
	a := w.revive()
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/close","params":{"sessionId":"s1"}}`)
	a.run()
	for _, id := range []string{"2", "3"} {
		if n := w.count(Editor, `"id":`+id+`,"result":{"stopReason":"cancelled"}`); n != 1 {
			t.Errorf("%d ends of %s: %v", n, id, w.to(Editor))
		}
	}
	if len(w.proxy.sessions)+len(w.proxy.prompts)+len(w.proxy.asks)+len(w.proxy.asked) > 0 {
		t.Errorf("kept: %+v", w.proxy)
	}
	if a := w.revive(); len(a.log) != 1 {
		t.Errorf("a closed session is loaded: %v", a.log)
	}
}

// TestClosedAtTheDeath checks a session that is closed in a turn, when the process ends before it has replied to the
// prompt request: the request has its end.
func TestClosedAtTheDeath(t *testing.T) {
	w := asked(t)
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/close","params":{"sessionId":"s1"}}`)
	w.reply("session/close", `"result":{}`)
	w.revive()
	if n := w.count(Editor, `"id":2,`); n != 1 || len(w.proxy.sessions) > 0 {
		t.Errorf("%d ends: %v", n, w.to(Editor))
	}
	w = asked(t)
	end := fmt.Sprintf(agentEnd, w.id(Agent, methodPrompt))
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/close","params":{"sessionId":"s1"}}`)
	w.reply("session/close", `"result":{}`)
	w.agent(end)
	if len(w.proxy.sessions) > 0 {
		t.Error("a closed session is kept")
	}
}

// TestDecidedWhileDead checks a decision that is handed over while no process runs, twice, and once more when there is
// one. It reaches the process once. So does the answer of an editor that has said it twice.
func TestDecidedWhileDead(t *testing.T) {
	yes := harness.Answer{Status: fold.Answered, By: "ada", Answers: []events.Answer{
		{Question: events.PermissionQuestion, Selected: []string{"Allow"}}}}
	w := asked(t)
	id, ask := w.prompts[0].Prompt, w.id(Editor, methodPermission)
	w.kill(func() {
		for range 2 {
			w.do(w.proxy.Decided(w.now(), id, yes))
			// has no effect: there is a decision
			w.editor(fmt.Sprintf(editorGrants, ask))
		}
	})
	a := start(w)
	a.seen--
	a.run()
	w.do(w.proxy.Decided(w.now(), id, yes))
	if n := w.count(Agent, "has now answered"); n != 1 || w.proxy.Report().Late != 1 {
		t.Errorf("brought %d times, %+v", n, w.proxy.Report())
	}
	if len(w.proxy.late)+len(w.proxy.asks)+len(w.proxy.prompts) > 0 {
		t.Error("what has ended is kept")
	}
	w = asked(t)
	ask = w.id(Editor, methodPermission)
	w.kill(func() { w.editor(fmt.Sprintf(editorGrants, ask)); w.editor(fmt.Sprintf(editorGrants, ask)) })
	a = start(w)
	a.seen--
	a.run()
	if n := strings.Count(strings.Join(w.facts, ""), "prompt.answered"); n != 1 || w.proxy.Report().Late != 1 {
		t.Errorf("%d answers, %+v", n, w.proxy.Report())
	}
}

// TestManyRequestsWhileDead checks that what is kept for the next process is limited, in lines and in bytes.
func TestManyRequestsWhileDead(t *testing.T) {
	large := strings.Repeat("x", deferredBytesMax/2)
	w := begun(t)
	w.do(w.proxy.AgentExited(w.now(), "exit 1"))
	for i := range 3 {
		w.editor(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x/%s"}`, 1000+i, large[:len(large)-100]))
	}
	if n := w.count(Editor, `"error":{"code":-32603`); n != 1 {
		t.Errorf("%d large requests were refused", n)
	}
	w.proxy.deferred = nil
	w.forget()
	for i := range deferredMax + 1 {
		w.editor(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, 1000+i))
		if i == deferredMax {
			w.editor(`{"jsonrpc":"2.0","method":"x"}`)
		}
	}
	if n := w.count(Editor, `"error":{"code":-32603`); n != 1 || len(w.proxy.deferred) != deferredMax ||
		w.proxy.Report().Late != 1 {
		t.Errorf("%d requests were refused, %d are kept", n, len(w.proxy.deferred))
	}
}

// TestEditorReturns checks an editor that leaves in a turn. The turn and its prompt stay; the next editor is greeted in
// the agent's place, has no reply to the requests of the first one, and is shown the prompt when it has the session.
func TestEditorReturns(t *testing.T) {
	for _, dies := range []bool{false, true} {
		for _, method := range []string{methodLoad, methodResume} {
			w := asked(t)
			w.editor(`{"jsonrpc":"2.0","id":4,"method":"x/unknown"}`)
			w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
			w.agent(strings.Replace(`{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{}}`, "s9", "s1", 1))
			old, end := w.id(Editor, methodPermission), fmt.Sprintf(agentEnd, w.id(Agent, methodPrompt))
			// held back
			w.agent(notify(`"sessionUpdate":"tool_call","toolCallId":"c4"`))
			w.do(w.proxy.EditorLeft(w.now()))
			if got := w.last(Agent); got != string(errorTo([]byte("9"), codeInternal, textAway)) {
				t.Errorf("the agent got %s", got)
			}
			w.forget()
			w.agent(`{"jsonrpc":"2.0","id":10,"method":"fs/read_text_file","params":{}}`)
			w.agent(notify(`"sessionUpdate":"agent_message_chunk"`))
			if got := w.to(Agent); len(got) != 1 || !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":10,"error"`) ||
				len(w.to(Editor)) > 0 {
				t.Errorf("without an editor: %s", w.lines)
			}
			a := start(w)
			if dies {
				a = w.revive()
			}
			w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
			if got := w.to(Editor); len(got) != 1 ||
				got[0] != `{"jsonrpc":"2.0","id":0,"result":{"agentCapabilities":`+capsLoad+`}}` {
				t.Errorf("the next editor got %v", got)
			}
			// an id of the first editor
			w.editor(fmt.Sprintf(editorGrants, old))
			w.editor(cancelRequestTwo)
			w.editor(`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{"sessionId":"s1"}}`)
			a.run()
			got := w.to(Editor)
			at := slices.IndexFunc(got, func(l string) bool { return strings.HasPrefix(l, `{"jsonrpc":"2.0","id":2,`) })
			if at < 0 || len(got) < at+2 || !strings.Contains(got[at+1], methodPermission) || w.count(Editor,
				methodPermission) != 1 {
				t.Fatalf("died %v, %s: the next editor got %v", dies, method, got)
			}
			id := w.id(Editor, methodPermission)
			w.editor(fmt.Sprintf(editorGrants, id))
			w.editor(fmt.Sprintf(editorGrants, id))
			if dies {
				a.run()
			} else {
				w.agent(end)
				a.run()
			}
			if n := w.count(Editor, "stopReason"); n != 0 || len(w.open()) > 0 {
				t.Errorf("died %v: %d ends of requests of the first editor: %v; open %v", dies, n, w.to(Editor),
					w.open())
			}
			if n := w.count(Agent, `"optionId":"o1"`) + w.count(Agent, "has now answered"); n != 1 {
				t.Errorf("died %v: the answer was brought %d times: %v", dies, n, w.to(Agent))
			}
			if r := w.proxy.Report(); r.Late != 3 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestEditorLeavesWhileDead checks what becomes of the requests of an editor that leaves while no process runs: its
// prompts and modes follow, without a reply, and what it has notified is dropped.
func TestEditorLeavesWhileDead(t *testing.T) {
	w := begun(t)
	w.kill(func() {
		w.editor(`{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"plan"}}`)
		w.editor(editorPrompt)
		w.editor(`{"jsonrpc":"2.0","method":"x/unknown"}`)
		w.do(w.proxy.EditorLeft(w.now()))
		w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	})
	w.forget()
	a := &next{w: w, caps: capsLoad, budget: -1}
	w.kill(func() {})
	a.run()
	if len(w.open()) > 0 || w.count(Agent, methodSetMode) != 1 || w.count(Agent, methodPrompt) != 1 ||
		w.count(Agent, "x/unknown") != 0 {
		t.Errorf("the agent read %v", a.log)
	}
	if got := w.to(Editor); len(got) != 1 || !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":0,"result"`) {
		t.Errorf("the editor got %v", got)
	}
	// Before the agent has greeted the first editor, it greets the next one itself.
	w = newWorld(t, agent.ContentTitles)
	w.do(w.proxy.EditorLeft(w.now()))
	w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.editor(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	if n := w.count(Agent, "initialize"); n != 2 {
		t.Errorf("%d times initialize", n)
	}
}

// TestShownAgain checks that a prompt is shown again to an editor that opens its session again: as long as it is open,
// and any of the replies counts, once.
func TestShownAgain(t *testing.T) {
	load := `{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1"}}`
	for _, first := range []bool{false, true} {
		w := asked(t)
		ids := []string{w.id(Editor, methodPermission)}
		w.editor(load)
		w.reply(methodLoad, `"result":{}`)
		ids = append(ids, w.id(Editor, methodPermission))
		if ids[0] == ids[1] || w.count(Editor, methodPermission) != 2 {
			t.Fatalf("shown under %v", ids)
		}
		if first {
			slices.Reverse(ids)
		}
		w.forget()
		w.editor(fmt.Sprintf(editorGrants, ids[1]))
		w.editor(fmt.Sprintf(editorGrants, ids[0]))
		if got := w.to(Agent); !slices.Equal(got, []string{fmt.Sprintf(editorGrants, "0")}) || len(w.proxy.asks) > 0 {
			t.Errorf("the agent got %v", got)
		}
		w.editor(load)
		w.reply(methodLoad, `"result":{}`)
		w.editor(load)
		w.reply(methodLoad, `"error":{}`)
		if n := w.count(Editor, methodPermission); n != 0 {
			t.Error("an answered prompt is shown")
		}
	}
	// of another session, and one that the editor has answered while the log has not
	w := asked(t)
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s2"}}`)
	w.reply(methodLoad, `"result":{}`)
	w.proxy.FromEditor(w.now(), fmt.Appendf(nil, editorGrants, w.id(Editor, methodPermission)))
	w.editor(load)
	w.reply(methodLoad, `"result":{}`)
	if n := w.count(Editor, methodPermission); n != 1 {
		t.Errorf("shown %d times", n)
	}
}

// TestKeepsNothing checks that a proxy keeps nothing of what has ended, and restarts do not add to it.
func TestKeepsNothing(t *testing.T) {
	w := begun(t)
	for range 5 {
		w.editor(editorPrompt)
		w.agent(agentCall)
		w.agent(agentAsks)
		a := w.revive()
		w.decide()
		a.run()
		w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s7"}}`)
		w.revive()
	}
	p, s := w.proxy, w.proxy.sessions["s1"]
	if n := len(p.asked) + len(p.asks) + len(p.prompts) + len(p.deferred) + len(p.late) + len(p.chores); n > 0 {
		t.Errorf("%d items are kept", n)
	}
	if len(s.calls)+len(s.grants)+len(s.unread)+len(s.waiting)+len(s.replayed) > 0 || len(p.sessions) != 2 ||
		len(p.order) != 2 {
		t.Errorf("kept: %+v; %d sessions", s, len(p.sessions))
	}
}

// TestTurnAndLoosePrompt checks that a turn does not wait for a permission that was asked before it.
func TestTurnAndLoosePrompt(t *testing.T) {
	w := begun(t)
	w.agent(strings.Replace(agentAsks, methodPermission, methodElicitation, 1))
	// the log has not yet withdrawn it
	w.proxy.FromEditor(w.now(), []byte(editorPrompt))
	w.proxy.AgentExited(w.now(), "exit 1")
	w.forget()
	w.lines = append(w.lines, linesOf(w.proxy.AgentStarted(w.now()))...)
	for _, method := range []string{"initialize", methodLoad} {
		reply := `{"jsonrpc":"2.0","id":` + w.id(Agent, `"`+method+`"`) + `,"result":{}}`
		w.lines = append(w.lines, linesOf(w.proxy.FromAgent(w.now(), []byte(reply)))...)
	}
	if n := w.count(Agent, textRestarted); n != 1 {
		t.Errorf("the agent got %v", w.to(Agent))
	}
}

func linesOf(steps []Step) (all []Line) {
	for _, s := range steps {
		all = append(all, s.Lines...)
	}
	return all
}

// TestOrderBehindADeath checks that requests which the dead process had precede those that were made later.
func TestOrderBehindADeath(t *testing.T) {
	w := begun(t)
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"n":1}}`)
	w.editor(`{"jsonrpc":"2.0","id":8,"method":"session/list","params":{"n":2}}`)
	a := start(w)
	w.kill(func() {
		w.editor(`{"jsonrpc":"2.0","id":9,"method":"session/list","params":{"n":3}}`)
		a.seen = len(w.to(Agent))
	})
	a.run()
	want := []string{`session/list {"n":1}`, `session/list {"n":2}`, `session/list {"n":3}`}
	if got := a.log[2:]; !slices.Equal(got, want) {
		t.Errorf("the agent read %v", got)
	}
}

// TestLoadBehindADeath checks that nothing of a load which a dead process did not finish is left: the next turn is
// recorded, and the next load is repeated.
func TestLoadBehindADeath(t *testing.T) {
	load := `{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1"}}`
	w := begun(t)
	w.editor(load)
	// of the history
	w.agent(agentCall)
	w.revive()
	if w.count(Editor, textReplayed) != 1 || w.count(Editor, `"id":7,"error"`) != 1 {
		t.Errorf("the editor got %v", w.to(Editor))
	}
	w.editor(editorPrompt)
	w.forget()
	w.agent(agentCall)
	w.agent(agentDone)
	if !strings.Contains(strings.Join(w.facts, ""), "tool.completed") {
		t.Errorf("facts %v", w.facts)
	}
	w.endTwo()
	w.editor(load)
	w.revive()
	if w.count(Editor, `"id":7,"result"`) != 1 {
		t.Errorf("the editor got %v", w.to(Editor))
	}
}

// endTwo has the agent end the turn of the request 2.
func (w *world) endTwo() {
	w.t.Helper()
	for id, q := range w.proxy.asked {
		if string(q.id) == "2" {
			w.agent(fmt.Sprintf(agentEnd, number(id)))
			return
		}
	}
	w.t.Fatal("no request")
}

// TestLooseCalls checks calls that are on the screen and of no open turn when their process ends: announced behind the
// end of a turn, left open by one, and shown by a reload in one. They fail on the screen, once.
func TestLooseCalls(t *testing.T) {
	w := begun(t)
	w.editor(editorPrompt)
	w.agent(agentCall)
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c2"`))
	w.reply(methodPrompt, `"result":{"stopReason":"end_turn"}`)
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c3"`))
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c4"`))
	w.agent(strings.ReplaceAll(agentDone, `"c1"`, `"c4"`))
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c6"`))
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
	// of the turn before
	w.agent(strings.ReplaceAll(agentDone, `"c1"`, `"c2"`))
	// again, as a call of this turn
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c3"`))
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1"}}`)
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c5"`))
	w.agent(strings.ReplaceAll(agentCall, `"c1"`, `"c3"`))
	w.reply(methodLoad, `"result":{}`)
	w.forget()
	w.revive()
	w.revive()
	for id, want := range map[string]int{"c1": 1, "c2": 0, "c3": 1, "c4": 0, "c5": 1, "c6": 1} {
		if n := w.count(Editor, `"toolCallId":"`+id+`"`); n != want {
			t.Errorf("%s failed %d times on the screen: %v", id, n, w.to(Editor))
		}
	}
	if s := w.proxy.sessions["s1"]; len(s.loose)+len(s.replayed) > 0 {
		t.Errorf("kept: %+v", s)
	}
}

// TestDecidedBeforeGone checks that a decision which no process could have is not followed by a second end of its
// prompt.
func TestDecidedBeforeGone(t *testing.T) {
	w := begun(t)
	w.agent(agentAsks)
	id := w.prompts[0].Prompt
	w.do(w.proxy.AgentExited(w.now(), "exit 1"))
	w.do(w.proxy.Decided(w.now(), id, harness.Answer{Status: fold.Rejected, By: "ada"}))
	for _, s := range w.proxy.AgentGone(w.now(), "exit 1") {
		if len(s.Facts) > 0 {
			t.Errorf("facts %v", s.Facts)
		}
	}
}

// TestKilledAtAMode kills the process that has the editor's request for a mode, with a prompt behind it. The mode still
// precedes the prompt.
func TestKilledAtAMode(t *testing.T) {
	w := begun(t)
	a := start(w)
	w.kill(func() {
		w.editor(`{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"plan"}}`)
		w.editor(editorPrompt)
		a.seen = len(w.to(Agent))
	})
	// initialize, session/load
	a.budget = 2
	a.run()
	w.kill(func() { a.seen, a.budget, a.log = len(w.to(Agent)), -1, nil })
	a.run()
	if len(a.log) != 4 || !strings.HasPrefix(a.log[2], methodSetMode) || !strings.HasPrefix(a.log[3], methodPrompt) {
		t.Errorf("the agent read %v", a.log)
	}
}

// TestAsksWhileRestored checks a permission that a process asks for before it has its sessions: it has the answer at
// once, because it may wait for it.
func TestAsksWhileRestored(t *testing.T) {
	w := begun(t)
	w.kill(func() {})
	w.reply("initialize", `"result":{}`)
	w.agent(agentAsks)
	w.editor(fmt.Sprintf(editorGrants, w.id(Editor, methodPermission)))
	if got := w.last(Agent); got != fmt.Sprintf(editorGrants, "0") {
		t.Errorf("the agent got %s", got)
	}
}

// TestStartedAgain checks that a start without an end before it has no effect.
func TestStartedAgain(t *testing.T) {
	w := begun(t)
	if steps := w.proxy.AgentStarted(w.now()); len(steps) > 0 {
		t.Errorf("while it runs: %v", steps)
	}
	w.kill(func() {})
	if steps := w.proxy.AgentStarted(w.now()); len(steps) > 0 {
		t.Errorf("while it is restored: %v", steps)
	}
}

// TestNeverGreeted checks an agent without initialize: its next process has no session.
func TestNeverGreeted(t *testing.T) {
	w := atTurn(t, agent.ContentTitles)
	w.revive()
	if n := w.count(Editor, `"id":2,"error"`); n != 1 || len(w.open()) > 0 || w.count(Agent, textRestarted) > 0 {
		t.Errorf("%d ends; open %v; the agent got %v", n, w.open(), w.to(Agent))
	}
}

// TestAnsweredOnce checks that the reply of an editor is taken once, also if the process that recorded it ends before
// the decision is handed over.
func TestAnsweredOnce(t *testing.T) {
	w := asked(t)
	ask := w.id(Editor, methodPermission)
	restart := func() (facts int) {
		w.proxy.AgentExited(w.now(), "exit 1")
		w.editor(fmt.Sprintf(editorGrants, ask))
		w.lines = append(w.lines, linesOf(w.proxy.AgentStarted(w.now()))...)
		for _, method := range []string{"initialize", methodLoad} {
			steps := w.proxy.FromAgent(w.now(), []byte(`{"jsonrpc":"2.0","id":`+w.id(Agent,
				`"`+method+`"`)+`,"result":{}}`))
			w.lines = append(w.lines, linesOf(steps)...)
			for _, s := range steps {
				facts += len(s.Facts)
			}
		}
		return facts
	}
	if n := restart(); n != 1 || w.proxy.Report().Late != 0 {
		t.Errorf("%d facts, %+v", n, w.proxy.Report())
	}
	if n := restart(); n != 0 || w.proxy.Report().Late != 1 {
		t.Errorf("%d facts of the second process, %+v", n, w.proxy.Report())
	}
}

// TestAdopts checks what a step names that takes a session: the turn and the prompts of the dead process in it, and
// nothing of another session or of the present process.
func TestAdopts(t *testing.T) {
	adopted := func(steps []Step) (all []string) {
		for _, s := range steps {
			if s.Adopt == nil {
				continue
			}
			all = append(all, fmt.Sprint(s.Session, " ", s.Adopt.Turn))
			for _, q := range s.Adopt.Prompts {
				all = append(all, q.ID)
			}
		}
		return all
	}
	w := asked(t)
	w.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s2"}}`)
	w.reply(methodLoad, `"result":{}`)
	w.agent(strings.NewReplacer("s1", "s2", `"id":0`, `"id":1`).Replace(agentAsks))
	first, second := w.prompts[0].Prompt, w.prompts[1].Prompt
	w.kill(func() {})
	w.reply("initialize", `"result":{}`)
	w.reply(methodLoad, `"result":{}`)
	got := adopted(w.proxy.FromAgent(w.now(), []byte(`{"jsonrpc":"2.0","id":`+w.id(Agent, "s2")+`,"result":{}}`)))
	if want := []string{"s1 true", first, "s2 false", second}; !slices.Equal(got, want) {
		t.Errorf("adopted %v, want %v", got, want)
	}
	w = begun(t)
	w.kill(func() {})
	w.reply("initialize", `"result":{}`)
	if got := adopted(w.proxy.FromAgent(w.now(), []byte(agentAsks))); len(got) > 0 {
		t.Errorf("a prompt of the present process: %v", got)
	}
	w = begun(t)
	w.revive()
	if got := adopted(w.proxy.FromEditor(w.now(), []byte(editorPrompt))); len(got) > 0 {
		t.Errorf("a turn of the present process: %v", got)
	}
}

// TestQuestionOfTheDead checks a question whose process has ended: an answer is the result of its call, and a rejection
// is its failure.
func TestQuestionOfTheDead(t *testing.T) {
	for _, answered := range []bool{true, false} {
		w := begun(t)
		w.editor(editorPrompt)
		w.agent(agentCall)
		w.agent(fmt.Sprintf(agentElicits, schemaAll))
		id := w.prompts[0].Prompt
		a := w.revive()
		w.forget()
		if answered {
			w.person(id, events.PromptAnswered{Prompt: id, By: "ada",
				Answers: []events.Answer{{Question: "q1", Selected: []string{"a"}}}})
		} else {
			w.person(id, events.PromptRejected{Prompt: id, By: "ada"})
		}
		facts := strings.Join(w.facts, "")
		if strings.Contains(facts, "tool.completed") != answered || strings.Contains(facts, "tool.failed") == answered {
			t.Errorf("answered %v: facts %v", answered, w.facts)
		}
		a.seen = 0
		a.run()
		if len(w.open()) > 0 || w.last(Editor) != fmt.Sprintf(agentEnd, "2") {
			t.Errorf("answered %v: open %v, the editor got %v", answered, w.open(), w.to(Editor))
		}
	}
}

// TestQuestionThatIsPutAway checks a question whose process has ended, and that a person dismisses: its call ends in
// the log before the turn does.
func TestQuestionThatIsPutAway(t *testing.T) {
	w := begun(t)
	w.kept = true
	w.editor(editorPrompt)
	w.agent(agentCall)
	w.agent(fmt.Sprintf(agentElicits, schemaAll))
	w.kill(func() {})
	w.do(w.proxy.Decided(w.now(), w.prompts[0].Prompt, harness.Answer{Status: fold.Dismissed}))
	w.noCalls()
	if n := strings.Count(strings.Join(w.facts, ""), "tool.failed"); n != 1 {
		t.Errorf("%d calls fail: %v", n, w.facts)
	}
}

// TestGrantWithoutInput checks permissions without an input: the content and the files say whether they are equal.
func TestGrantWithoutInput(t *testing.T) {
	asks := strings.Replace(agentAsks, `"rawInput":{"command":"make all"}`,
		`"content":[{"a":1}],"locations":[{"b":1}]`, 1)
	for _, next := range []string{asks, strings.Replace(asks, `"a":1`, `"a":2`, 1), strings.Replace(asks, `"b":1`,
		`"b":2`, 1)} {
		w := begun(t)
		w.editor(editorPrompt)
		w.agent(asks)
		w.kill(func() { w.decide() })
		a := start(w)
		a.seen--
		a.asks = next
		a.run()
		if n := w.count(Editor, methodPermission); (n == 1) != (next == asks) {
			t.Errorf("%s: shown %d times", next, n)
		}
	}
}

// TestEditorLeavesAtAnAnnouncement checks that a call which is held back is shown to the editor that leaves, and
// recorded.
func TestEditorLeavesAtAnAnnouncement(t *testing.T) {
	w := begun(t)
	w.editor(editorPrompt)
	w.agent(agentCall)
	w.forget()
	w.do(w.proxy.EditorLeft(w.now()))
	if len(w.facts) != 1 || !strings.Contains(w.facts[0], "tool.started") || w.last(Editor) != agentCall {
		t.Errorf("facts %v, lines %s", w.facts, w.lines)
	}
}
