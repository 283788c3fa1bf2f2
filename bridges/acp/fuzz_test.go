package acp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// FuzzProxy plays random lines of both sides, deaths, restarts, answers from elsewhere and editors that leave. No fact
// is one that the fold ignores, each request of an editor has at most one reply, a line never makes the proxy panic,
// and at the end, when the agent is given up, everything has ended and nothing is kept.
func FuzzProxy(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		seed := make([]byte, 40+rng.IntN(400))
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		// the incarnation, when the agent's process ends
		for _, kept := range []bool{false, true} {
			l := &fuzzed{world: begun(t), script: script, replies: map[string]int{}, screen: map[string]bool{},
				replied: map[string]bool{}}
			l.kept = kept
			l.since = len(l.to(Agent))
			l.seen = len(l.lines)
			for len(l.script) > 0 && !t.Failed() {
				l.step()
			}
			l.finish()
			if t.Failed() {
				t.Fatalf("kept %v: %s", kept, strings.Join(l.log, "\n"))
			}
		}
	})
}

// fuzzed is a random sequence of events around a proxy.
type fuzzed struct {
	*world
	script  []byte
	asked   int // by the editor, so far
	asks    int // by the present process of the agent
	dead    bool
	gone    bool
	replies map[string]int  // that the present editor got, by request
	replied map[string]bool // the requests that the agent has replied to
	since   int             // lines that the processes before got
	seen    int             // lines that were judged
	screen  map[string]bool
	log     []string
}

// next returns the next number of the script below n.
func (l *fuzzed) next(n int) int {
	if len(l.script) == 0 {
		return 0
	}
	b := l.script[0]
	l.script = l.script[1:]
	return int(b) % n
}

func (l *fuzzed) pick(of ...string) string { return of[l.next(len(of))] }

func (l *fuzzed) deliver(side Side, line string) {
	l.log = append(l.log, string(side)+" "+line)
	if side == Editor {
		l.editor(line)
	} else {
		l.agent(line)
	}
	l.countReplies()
}

// request sends a request of the editor. Its id is new.
func (l *fuzzed) request(method, params string) {
	l.asked++
	id := fmt.Sprintf("%d", 10_000+l.asked)
	l.replies[id] = 0
	l.deliver(Editor, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+`}`)
}

// pending returns the requests to a side that it has not replied to, oldest first, since this line.
func pending(lines []string, replied map[string]bool) (all []message) {
	for _, line := range lines {
		if m, err := parse([]byte(line)); err == nil && m.isRequest() && !replied[string(m.id)] {
			all = append(all, m)
		}
	}
	return all
}

// countReplies counts the replies to the present editor.
func (l *fuzzed) countReplies() {
	for _, line := range l.lines[l.seen:] {
		m, err := parse(line.Raw)
		if err != nil || line.To != Editor {
			continue
		}
		l.shows(m)
		if !m.isReply() {
			continue
		}
		n, mine := l.replies[string(m.id)]
		if !mine || n > 0 {
			l.t.Errorf("reply %d, of the present editor's request %v: %s", n+1, mine, line.Raw)
		}
		l.replies[string(m.id)]++
	}
	l.seen = len(l.lines)
}

func (l *fuzzed) step() {
	session := l.pick("s1", "s1", "s1", "s2")
	switch l.next(16) {
	case 0, 1:
		l.request(l.pick(methodPrompt, methodPrompt, "session/new", methodLoad, methodResume, methodSetMode,
			methodSetOption,
			"session/list", "initialize", "authenticate", "logout", "x/unknown", "session/fork"),
			`{"sessionId":"`+session+`","modeId":"`+l.pick("a", "b")+`","configId":"c","value":"1"}`)
	case 2, 3, 4:
		l.deliver(Agent, strings.ReplaceAll(notify(l.update()), "s1", session))
	case 5:
		l.asks++
		about := `"toolCall":{"toolCallId":"c` + l.pick("1", "2") + `","title":"` + l.pick("x", "y") +
			`"},"options":[{"optionId":"o1",` +
			`"name":"Allow"},{"optionId":"o2","kind":"reject_once","name":"No"}]`
		method := l.pick(methodPermission, methodPermission, methodElicitation, "fs/read_text_file")
		l.deliver(Agent, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"sessionId":"%s",`+
			`"toolCallId":"c1",`+
			`"requestedSchema":{"properties":{"a":{"type":"string"}}},%s}}`, l.asks, method, session, about))
	case 6, 7:
		l.editorAnswers()
	case 8, 9, 10:
		good := `"result":{"stopReason":"end_turn","sessionId":"` + session + `","agentCapabilities":` + capsLoad + `}`
		l.agentAnswers(l.pick(good, good, good, good, good, good, `"error":{"code":1,"message":"no"}`, `"result":null`))
	case 11:
		l.personAnswers()
	case 12:
		l.process()
	case 13:
		l.deliver(Editor, l.pick(strings.ReplaceAll(editorCancel, "s1", session), fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, 10_000+l.asked-l.next(4)),
			"no json", `{"a":1,"a":2}`, `{"jsonrpc":"2.0","method":"x/unknown"}`))
	case 14:
		l.outside(session)
	case 15:
		if l.next(3) == 0 {
			l.log = append(l.log, "the editor leaves")
			l.do(l.proxy.EditorLeft(l.now()))
			l.countReplies()
			clear(l.replies)
			clear(l.screen)
		}
	}
}

func (l *fuzzed) update() string {
	call := `"toolCallId":"c` + l.pick("1", "2", "3") + `","title":"x"`
	return l.pick(`"sessionUpdate":"tool_call",`+call, `"sessionUpdate":"tool_call","status":"in_progress",`+call,
		`"sessionUpdate":"tool_call_update","status":"completed",`+call,
		`"sessionUpdate":"tool_call_update","status":"failed",`+call,
		`"sessionUpdate":"agent_message_chunk","content":{"text":"x"}`,
		`"sessionUpdate":"current_mode_update","currentModeId":"m"`,
		`"sessionUpdate":"config_option_update","configOptions":[{"id":"c","currentValue":"2"}]`,
		`"sessionUpdate":"usage_update","used":`+l.pick("1", "2"), `"sessionUpdate":"user_message_chunk"`)
}

func (l *fuzzed) editorAnswers() {
	all := pending(l.to(Editor), nil)
	if len(all) == 0 {
		return
	}
	m := all[max(0, len(all)-1-l.next(5))]
	l.deliver(Editor, `{"jsonrpc":"2.0","id":`+string(m.id)+`,`+l.pick(
		`"result":{"outcome":{"outcome":"selected","optionId":"o1"},"action":"accept","content":{"a":"b"}}`,
		`"result":{"outcome":{"outcome":"selected","optionId":"o2"},"action":"decline"}`,
		`"result":{"outcome":{"outcome":"cancelled"},"action":"cancel"}`, `"error":{}`)+`}`)
}

func (l *fuzzed) agentAnswers(what string) {
	all := pending(l.to(Agent)[l.since:], l.replied)
	if len(all) == 0 {
		return
	}
	m := all[0]
	if l.next(4) == 0 {
		m = all[l.next(len(all))]
	}
	l.replied[string(m.id)] = true
	l.deliver(Agent, `{"jsonrpc":"2.0","id":`+string(m.id)+`,`+what+`}`)
}

func (l *fuzzed) personAnswers() {
	for _, f := range l.prompts {
		if st := l.states[l.of[f.Prompt]]; st.Prompts[f.Prompt] != nil && st.Prompts[f.Prompt].Status == fold.Awaiting {
			l.log = append(l.log, "a person answers "+f.Prompt)
			if l.next(2) == 0 {
				l.person(f.Prompt, events.PromptRejected{Prompt: f.Prompt, By: "ada"})
			} else {
				l.person(f.Prompt, events.PromptAnswered{Prompt: f.Prompt, By: "ada", Answers: []events.Answer{
					{Question: f.Questions[0].ID, Text: "so"}}})
			}
			l.countReplies()
			return
		}
	}
	// late, and not of the log
	if len(l.prompts) > 0 {
		l.do(l.proxy.Decided(l.now(), l.prompts[l.next(len(l.prompts))].Prompt, harness.Answer{Status: fold.Withdrawn}))
		l.countReplies()
	}
}

// process ends the process of the agent, or starts the next one, or gives it up.
func (l *fuzzed) process() {
	switch {
	case !l.dead:
		l.log = append(l.log, "the agent ends")
		l.do(l.proxy.AgentExited(l.now(), "exit"))
		l.dead = true
		if l.kept {
			l.do(l.proxy.AgentReturns(l.now(), "exit"))
			l.noCalls()
		} else {
			l.owned = map[string]bool{}
		}
	case l.next(8) == 0:
		l.giveUp()
	default:
		l.log = append(l.log, "the agent starts")
		l.since = len(l.to(Agent))
		l.dead, l.asks = false, 0
		if !l.kept {
			l.incarnation++
			l.owned = map[string]bool{}
		}
		l.gone = false
		l.do(l.proxy.AgentStarted(l.now()))
	}
	l.countReplies()
}

func (l *fuzzed) giveUp() {
	l.log = append(l.log, "the agent is given up")
	if !l.gone && !l.kept {
		l.incarnation++
	}
	l.gone, l.dead = true, true
	l.do(l.proxy.AgentGone(l.now(), "gone"))
	l.countReplies()
}

// outside ends a turn from outside.
func (l *fuzzed) outside(session string) {
	st := l.states[session]
	if st == nil || st.Turn == nil || !l.owned[session] {
		return
	}
	if l.next(2) == 0 {
		l.log = append(l.log, "a person stops "+session)
		l.do(l.proxy.Stop(l.now(), st.Turn.ID, events.ActorPerson, "enough"))
	} else {
		l.log = append(l.log, "the log ends the turn of "+session)
		turn := st.Turn.ID
		l.commit(st, events.WriterReconciler, events.ServiceSource("reconciler", "1"), st.Epoch,
			events.TurnInterrupted{Turn: turn, Reason: events.ReasonOwnerLost})
		l.do(l.proxy.TurnEnded(l.now(), turn, "recovered"))
	}
	l.countReplies()
}

// finish gives the agent up, and judges what is left.
func (l *fuzzed) finish() {
	if !l.dead {
		l.process()
	}
	l.giveUp()
	l.do(l.proxy.Flush())
	for id, n := range l.replies {
		if n != 1 {
			l.t.Errorf("%d replies to the request %s", n, id)
		}
	}
	for id, st := range l.states {
		if st.Turn != nil || len(st.Tools)+len(st.Queue)+len(st.PendingPrompts()) > 0 {
			l.t.Errorf("%s: open in the log: %v", id, l.open())
		}
	}
	if len(l.screen) > 0 {
		l.t.Errorf("open on the screen: %v", l.screen)
	}
	p := l.proxy
	if n := len(p.asked) + len(p.asks) + len(p.prompts) + len(p.deferred) + len(p.late) + len(p.chores); n > 0 ||
		p.held != nil {
		l.t.Errorf("%d items are kept: %+v", n, p)
	}
	for _, s := range p.order {
		if s.turn != nil || s.current != nil ||
			len(s.calls)+len(s.waiting)+len(s.unread)+len(s.replayed)+len(s.loose) > 0 {
			l.t.Errorf("kept: %+v", s)
		}
	}
}

// shows keeps the calls that were announced to the editors and have not ended. Calls of sessions that the proxy does
// not know pass.
func (l *fuzzed) shows(m message) {
	u := members(members(m.params)["update"])
	id := m.sessionID() + "/" + text(u["toolCallId"])
	switch {
	case text(u["toolCallId"]) == "" || l.proxy.sessions[m.sessionID()] == nil:
	case ended(text(u["status"])):
		delete(l.screen, id)
	case text(u["sessionUpdate"]) == "tool_call":
		l.screen[id] = true
	}
	maps.DeleteFunc(l.screen, func(id string, _ bool) bool { return l.proxy.sessions[id[:2]] == nil })
}
