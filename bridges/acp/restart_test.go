package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// kill ends the agent's process and starts the next one. The supervisor has another incarnation then, unless it keeps
// its own.
func (w *world) kill(meanwhile func()) {
	w.do(w.proxy.AgentExited(w.now(), "exit 137"))
	if w.kept {
		w.do(w.proxy.AgentReturns(w.now(), "exit 137"))
		w.noCalls()
		meanwhile()
		w.do(w.proxy.AgentStarted(w.now()))
		return
	}
	w.owned = map[string]bool{}
	meanwhile()
	w.incarnation++
	w.do(w.proxy.AgentStarted(w.now()))
}

// noCalls checks that no call is open in the log, unless it waits for a person.
func (w *world) noCalls() {
	w.t.Helper()
	for _, st := range w.states {
		for id := range st.Tools {
			waits := false
			for _, q := range st.Prompts {
				waits = waits || q.Call == id && q.Status == "awaiting"
			}
			if !waits {
				w.t.Errorf("call %s of the dead process is open in the log", id)
			}
		}
	}
}

// decide answers every open prompt, as a person at the command line does.
func (w *world) decide() {
	for _, f := range w.prompts {
		for _, st := range w.states {
			if q := st.Prompts[f.Prompt]; q != nil && q.Status == "awaiting" {
				a := events.PromptAnswered{Prompt: f.Prompt, By: "ada"}
				for _, x := range f.Questions {
					if len(x.Options) > 0 {
						a.Answers = append(a.Answers, events.Answer{Question: x.ID,
							Selected: []string{x.Options[0].Label}})
					}
				}
				w.person(f.Prompt, a)
			}
		}
	}
}

// grant has the editor allow every permission that it was asked for.
func (w *world) grant() {
	for _, line := range w.to(Editor) {
		if m, err := parse([]byte(line)); err == nil && m.method == methodPermission {
			for _, raw := range list(members(m.params)["options"]) {
				if o := members(raw); text(o["kind"]) == "allow_once" {
					w.editor(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{"outcome":{"outcome":"selected",` +
						`"optionId":` + string(o["optionId"]) + `}}}`)
				}
			}
		}
	}
}

func (w *world) waits(prompt string) bool {
	q := w.states[w.of[prompt]].Prompts[prompt]
	return q != nil && q.Status == "awaiting"
}

// next is a process of the agent that replies to every request, and asks once for what the one before asked.
type next struct {
	w       *world
	caps    string
	refuses string // the method that it refuses
	seen    int    // lines of the log of the world
	budget  int    // lines that it reads before it is killed; negative: all
	asks    string // the permission request to repeat in the first prompt; "": none
	asked   bool
	waits   string // the prompt that waits for the permission
	log     []string
}

const (
	capsLoad   = `{"loadSession":true}`
	capsResume = `{"sessionCapabilities":{"resume":{}}}`
	textOld    = "what the editor has already"

	historyLines = 3
)

func start(w *world) *next { return &next{w: w, caps: capsLoad, seen: len(w.to(Agent)), budget: -1} }

// run replies to all lines that the agent has got since, until there is nothing more to say.
func (a *next) run() {
	for {
		lines := a.w.to(Agent)
		if a.seen >= len(lines) || a.budget == 0 {
			return
		}
		a.budget--
		line := lines[a.seen]
		m, err := parse([]byte(line))
		a.seen++
		if err != nil {
			a.w.t.Fatal(err)
		}
		reply := func(id, result string) { a.w.agent(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`) }
		session := string(encode(m.sessionID()))
		a.log = append(a.log, strings.TrimSuffix(m.method+" "+string(m.params), " "))
		switch {
		case m.isReply():
			if a.waits != "" {
				id := a.waits
				a.waits = ""
				reply(id, `{"stopReason":"end_turn"}`)
			}
		case !m.isRequest():
		case m.method == a.refuses:
			a.w.agent(`{"jsonrpc":"2.0","id":` + string(m.id) +
				`,"error":{"code":-32002,"message":"Resource not found"}}`)
		case m.method == "initialize":
			reply(string(m.id), `{"agentCapabilities":`+a.caps+`}`)
		case m.method == "session/new":
			reply(string(m.id), `{"sessionId":"fresh"}`)
		case m.method == methodLoad:
			for _, u := range []string{`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` +
				textOld + `"}`,
				`"sessionUpdate":"tool_call","toolCallId":"old","title":"` + textOld + `","status":"pending"`,
				`"sessionUpdate":"current_mode_update","currentModeId":"` + textOld + `"`} {
				a.w.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + session +
					`,"update":{` + u + `}}}`)
			}
			reply(string(m.id), "{}")
		case m.method == methodPrompt && a.asks != "":
			asks := a.asks
			a.asks, a.asked, a.waits = "", true, string(m.id)
			a.w.agent(asks)
		case m.method == methodPrompt:
			reply(string(m.id), `{"stopReason":"end_turn"}`)
		default:
			reply(string(m.id), "{}")
		}
	}
}

// plan is how the agent of a recording is killed.
type plan struct {
	name     string
	at       int    // behind this entry
	again    bool   // the next process asks for the permission again
	answered string // while no process runs: "person", "editor"; "": when the turn has been restored
	caps     string
	refuses  string
	twice    int  // the next process is killed behind so many lines; negative: it is not
	cancels  bool // the editor cancels while no process runs
	leaves   bool // the editor leaves while no process runs
	kept     bool // the supervisor keeps its incarnation
}

// processes are the recordings, one for each process of their agents.
func processes(t *testing.T) map[string][]entry {
	t.Helper()
	all := map[string][]entry{}
	for name, entries := range transcripts(t) {
		for n := 1; len(entries) > 0; n++ {
			i := slices.IndexFunc(entries, func(e entry) bool { return e.Dir == "exit" })
			if i < 0 {
				i = len(entries) - 1
			}
			all[fmt.Sprintf("%s, process %d", name, n)] = entries[:i]
			entries = entries[i+1:]
		}
	}
	return all
}

// TestKilledAtEveryMessage kills each process of the agent of every recording behind every message. The editor sees one
// end for each prompt request, each permission once, no call that is pending for ever, and the history only if it waits
// for it, once. The answer reaches the agent once. The log has no fact that does not count, and nothing open. Modes are
// set before anything else is said.
func TestKilledAtEveryMessage(t *testing.T) {
	kills := 0
	for name, entries := range processes(t) {
		for at := 1; at <= len(entries); at++ {
			plans := []plan{{name: "plain"}, {name: "asks again", again: true},
				{name: "answered while dead", answered: "person"},
				{name: "answered while dead, asks again", answered: "person", again: true},
				{name: "the editor answers while dead", answered: "editor", again: true},
				{name: "resumes", caps: capsResume, again: true}, {name: "cannot load", caps: "{}"},
				{name: "cannot load, answered while dead", caps: "{}", answered: "person"},
				{name: "refuses to load", refuses: methodLoad}, {name: "refuses to start", refuses: "initialize"},
				{name: "refuses the mode", refuses: methodSetMode}, {name: "cancels", cancels: true},
				{name: "cancels, answered while dead", cancels: true, answered: "person"},
				{name: "the editor leaves", leaves: true, again: true}}
			for i := range plans {
				plans[i].twice = -1
			}
			// each with one of the ways to answer, by turns
			for twice := range 7 {
				plans = append(plans, []plan{{name: "answered later", again: true},
					{name: "the editor answers while dead", answered: "editor"},
					{name: "answered while dead", answered: "person", again: true}}[(at+twice)%3])
				last := &plans[len(plans)-1]
				last.twice, last.name = twice, fmt.Sprintf("again behind %d, %s", twice, last.name)
			}
			asks := slices.ContainsFunc(entries[:at], func(e entry) bool {
				return strings.Contains(string(e.Msg), methodPermission) || strings.Contains(string(e.Msg),
					methodElicitation)
			})
			// a supervisor that keeps its incarnation, and every second time another one
			for i, x := range plans {
				x.kept, x.name = true, x.name+", same incarnation"
				if (at+i)%2 == 0 {
					plans = append(plans, x)
				} else {
					plans[i] = x
				}
			}
			for _, x := range plans {
				if !asks && (x.again || x.answered != "") && x.twice < 0 && !x.leaves && x.caps == "" {
					// the same as another plan
					continue
				}
				kills++
				x.at, x.name = at, fmt.Sprintf("%s, killed behind %d, %s", name, at, x.name)
				killed(t, x, entries)
				if t.Failed() {
					return
				}
			}
		}
	}
	if kills < 6000 {
		t.Errorf("%d kills", kills)
	}
}

// killing is a recording whose agent is killed.
type killing struct {
	*world
	plan
	peers     *peers
	asked     string          // the permission that the recorded agent asked for
	requests  map[string]bool // of the editor: for prompts
	processes []*next
	waited    bool   // for an answer, at the kill
	load      string // the editor's own request for the history; "": none
	loaded    bool   // it had a reply, or some of the history, at the kill
}

func (k *killing) now() *next { return k.processes[len(k.processes)-1] }

// begin is the start of the next process.
func (k *killing) begin() {
	a := start(k.world)
	a.caps, a.refuses = firstOf(k.caps, capsLoad), k.refuses
	k.processes = append(k.processes, a)
}

// die kills the agent once or twice.
func (k *killing) die() {
	k.waited = slices.ContainsFunc(k.prompts, func(f events.PromptRequested) bool { return k.waits(f.Prompt) })
	k.loaded = slices.ContainsFunc(k.to(Editor), func(line string) bool {
		m, _ := parse([]byte(line))
		return m.isReply() && string(m.id) == k.load || m.method == "session/update"
	})
	k.kill(func() {
		switch k.answered {
		case "person":
			k.decide()
		case "editor":
			k.grant()
		}
		if k.cancels {
			for _, s := range k.proxy.order {
				k.editor(strings.Replace(editorCancel, `"s1"`, string(encode(s.acp)), 1))
			}
		}
		if k.plan.leaves {
			k.do(k.proxy.EditorLeft(k.world.now()))
		}
		k.begin()
	})
	if k.again && k.waited {
		k.now().asks = k.asked
	}
	if k.twice >= 0 {
		k.now().budget, k.twice = k.twice, -1
		k.now().run()
		k.kill(k.begin)
		if k.again && k.waited && !slices.ContainsFunc(k.processes, func(a *next) bool { return a.asked }) {
			k.now().asks = k.asked
		}
	}
	k.now().run()
}

// sends plays a line of the editor.
func (k *killing) sends(m message) {
	if m.method == methodPrompt {
		k.requests[string(m.id)] = true
	}
	if m.method == methodLoad {
		k.load = string(m.id)
	}
	given := k.peers.given
	switch {
	case m.isReply() && given[Editor][string(m.id)] == "":
		// to a request that was never made
	case m.isReply():
		k.editor(string(m.withID([]byte(given[Editor][string(m.id)]))))
	default:
		k.editor(string(m.raw))
		if m.isRequest() && len(k.processes) == 0 {
			given[Agent][string(m.id)] = k.id(Agent, m.method)
		}
	}
	if len(k.processes) > 0 {
		k.now().run()
	}
}

// killed plays a recording until the agent is killed. The rest of what the editor said follows.
func killed(t *testing.T, x plan, entries []entry) {
	w := newWorld(t, agent.ContentTitles)
	w.kept = x.kept
	k := &killing{world: w, plan: x, peers: newPeers(w), requests: map[string]bool{}}
	for i, e := range entries {
		if i == x.at {
			k.die()
		}
		m, err := parse(e.Msg)
		switch {
		case err != nil, e.Dir == "start":
		case e.Dir == "agent" && i < x.at:
			if m.method == methodPermission {
				k.asked = string(m.raw)
			}
			k.peers.deliver(Agent, e.Msg)
		case e.Dir == "editor" && (i < x.at || !x.leaves):
			k.sends(m)
		}
	}
	if x.at >= len(entries) {
		k.die()
	}
	w.decide()
	k.now().run()
	k.check()
}

// check judges what the editor, the agents and the log have at the end.
func (k *killing) check() {
	wrong := slices.Concat(k.onTheScreen(), k.atTheAgents())
	if open := k.open(); len(open) > 0 {
		wrong = append(wrong, fmt.Sprintf("in the log is %v", open))
	}
	if len(wrong) > 0 || k.t.Failed() {
		k.t.Errorf("%s: %q\n%s\n%s\nnext process: %s", k.name, wrong, strings.Join(k.to(Editor), "\n"),
			strings.Join(k.facts, "\n"), strings.Join(k.now().log, "\n"))
	}
}

// onTheScreen judges what the editor got.
func (k *killing) onTheScreen() (wrong []string) {
	ends, open, asked, history := map[string]int{}, map[string]bool{}, map[string]int{}, 0
	for _, line := range k.to(Editor) {
		m, _ := parse([]byte(line))
		u := members(members(m.params)["update"])
		switch {
		case m.method == methodPermission || m.method == methodElicitation:
			asked[string(members(m.params)["toolCall"])]++
		case m.isReply() && k.requests[string(m.id)]:
			ends[string(m.id)]++
		case text(u["toolCallId"]) != "" && ended(text(u["status"])):
			delete(open, text(u["toolCallId"]))
		case text(u["sessionUpdate"]) == "tool_call":
			open[text(u["toolCallId"])] = true
		}
		if strings.Contains(line, textOld) {
			history++
		}
	}
	if own := k.load != "" && !k.loaded; history > 0 && !own || history > historyLines {
		wrong = append(wrong, fmt.Sprintf("the editor got %d lines of history", history))
	}
	for id := range k.requests {
		if ends[id] != 1 && !k.plan.leaves || ends[id] > 1 {
			wrong = append(wrong, fmt.Sprintf("%d ends of the request %s", ends[id], id))
		}
	}
	for about, n := range asked {
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("asked %d times for %s", n, about))
		}
	}
	if len(open) > 0 && !k.plan.leaves {
		wrong = append(wrong, fmt.Sprintf("on the screen is %v", open))
	}
	return wrong
}

// atTheAgents judges what the processes behind the first one read.
func (k *killing) atTheAgents() (wrong []string) {
	brought := 0
	for _, a := range k.processes {
		n := strings.Count(strings.Join(a.log, ""), "has now answered")
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("a process read the answer %d times", n))
		}
		brought += n
		first := func(method string) int {
			return slices.IndexFunc(a.log, func(m string) bool { return strings.HasPrefix(m, method) })
		}
		if prompt, set := first(methodPrompt), first("session/set_"); prompt >= 0 && set > prompt {
			wrong = append(wrong, "a prompt before the mode")
		}
	}
	if k.waited && brought == 0 && k.refuses == "" && k.caps != "{}" && !k.cancels {
		wrong = append(wrong, "no process read the answer")
	}
	return wrong
}

// TestNotRestored checks what the editor sees when the next process does not have the session: one end of its request,
// with the reason, and nothing open.
func TestNotRestored(t *testing.T) {
	for failing, data := range map[string]string{"initialize": `"no such thing"`,
		"session/load": `{"details":"no previous session"}`, "session/set_mode": `["no words"]`} {
		want := failing + ": no such thing"
		if failing == "session/load" {
			want += ": no previous session"
		}
		w := newWorld(t, agent.ContentTitles)
		w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
		w.agent(`{"jsonrpc":"2.0","id":1,"result":{"agentCapabilities":{"loadSession":true}}}`)
		w.editor(editorNew)
		w.agent(fmt.Sprintf(agentNew, w.id(Agent, "session/new")))
		w.editor(`{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s1",` +
			`"modeId":"read-only"}}`)
		w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, "session/set_mode") + `,"result":{}}`)
		w.editor(editorPrompt)
		w.agent(agentCall)
		w.do(w.proxy.Flush())
		w.kill(func() {})
		for _, method := range []string{"initialize", "session/load", "session/set_mode"} {
			id := w.id(Agent, `"`+method+`"`)
			if method == failing {
				w.agent(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32002,"message":"no such thing",` +
					`"data":` + data + `}}`)
				break
			}
			w.agent(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		}
		got := w.to(Editor)
		if last := got[len(got)-1]; !strings.HasPrefix(last, `{"jsonrpc":"2.0","id":2,"error":`) ||
			!strings.Contains(last, want+`"`) {
			t.Errorf("%s: the editor got %s", failing, last)
		}
		if open := w.open(); len(open) > 0 {
			t.Errorf("%s: %v is open", failing, open)
		}
		if strings.Contains(strings.Join(w.to(Agent)[5:], ""), "session/prompt") {
			t.Errorf("%s: the agent got a prompt without its session: %v", failing, w.to(Agent))
		}
	}
}

// TestCancelledWhileDead checks that a turn which is cancelled while no process of the agent runs ends as cancelled.
func TestCancelledWhileDead(t *testing.T) {
	w := atTurn(t, agent.ContentTitles)
	w.editor(strings.Replace(editorPrompt, `"id":2`, `"id":3`, 1))
	w.kill(func() { w.editor(editorCancel) })
	got := w.to(Editor)
	want := []string{`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}`}
	if !slices.Equal(got[len(got)-2:], want) || len(w.open()) > 0 {
		t.Errorf("the editor got %v; open %v", got, w.open())
	}
}

// TestKilledTwice kills the next process while it is restored, and while the turn continues in it.
func TestKilledTwice(t *testing.T) {
	w := newWorld(t, agent.ContentTitles)
	w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	w.agent(`{"jsonrpc":"2.0","id":1,"result":{"agentCapabilities":{"loadSession":true}}}`)
	w.editor(editorNew)
	w.agent(fmt.Sprintf(agentNew, w.id(Agent, "session/new")))
	w.editor(editorPrompt)
	w.agent(agentCall)
	w.agent(agentAsks)
	id := w.id(Editor, "request_permission")
	w.kill(func() {})
	// during initialize
	w.kill(func() {})
	w.agent(`{"jsonrpc":"2.0","id":` + w.id(Agent, `"initialize"`) + `,"result":{}}`)
	// during session/load
	w.kill(func() { w.editor(fmt.Sprintf(editorGrants, id)) })
	last := start(w)
	last.seen--
	last.asks = agentAsks
	last.run()
	ends := 0
	for _, line := range w.to(Editor) {
		if strings.Contains(line, "stopReason") {
			ends++
		}
	}
	if n := strings.Count(strings.Join(w.to(Editor), ""), "request_permission"); n != 1 || ends != 1 {
		t.Errorf("%d permissions, %d ends: %v", n, ends, w.to(Editor))
	}
	if open := w.open(); len(open) > 0 {
		t.Errorf("%v is open", open)
	}
}
