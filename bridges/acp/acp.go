// Package acp translates the traffic between an editor and an agent that speak the Agent Client Protocol (ACP).
//
// The translation is pure: lines in, [Step] values out. A [Proxy] stands between the two peers. It has no clock and no
// I/O: the caller reads and writes the lines, starts the agent, appends the facts and asks Holdfast. Every step is
// carried out in order: first its facts are appended, then its lines are sent. So nothing is shown or run before it is
// stored.
//
// # What passes
//
// Every line passes unchanged except for the ids of requests. Unknown methods, unknown notifications and `_meta` pass,
// too. The ids of requests are the proxy's own on both sides: an agent counts from 0 again after each start. The
// request id in `$/cancel_request` is translated with them. A line of JSON that has a member twice, or is a batch, does
// not pass, because its peers may disagree on what it says: [Report] counts it. A line that is no JSON passes.
//
// # What is recorded
//
//	session/new, load, resume, fork     the session, before the editor has the result
//	session/close, session/delete       released, closed
//	session/prompt                      message.accepted and turn.started, before the agent has the request
//	its result                          the end of the turn, before the editor has it
//	tool_call, tool_call_update         the start and the end of a call
//	session/request_permission          prompt.requested, before the editor has the request
//	elicitation/create                  the same
//	usage_update                        usage.reported
//
// The agent announces a call before its input is known. So a pending call waits for the next line, and its fact has the
// title and the input of that. [Proxy.Flush] ends the waiting when no further line is there.
//
// # Prompts
//
// A permission is a prompt that outlives its process (keep). The answer of the editor is a fact and nothing else. What
// reaches the agent is the decision that stands in the log, by [Proxy.Decided], from wherever it came. So the first
// answer counts, and a second one has no effect. A permission has no call in the log, because its decision is not the
// result of the call: the tool has not run. The answer to an elicitation is the result of its call.
//
// # Turns
//
// A session has one turn at a time. A prompt request that arrives during a turn waits in the proxy, and is recorded and
// sent when the turn has ended. The agent retries and compacts by itself, so a session is opened with both switched
// off.
//
// # Processes of the agent
//
// The editor's connection outlives the agent's process. At an end the caller hands over all lines of the process, calls
// [Proxy.AgentExited], carries out its steps, and only then gives up its incarnation. At the start of the next process,
// with the next incarnation, it calls [Proxy.AgentStarted]. The step that takes a session ([Step.Open]) names in
// [Step.Adopt] what continues; the caller adopts it in the same commit, and delivers the decisions about those prompts
// by [Proxy.Decided], also those that were made meanwhile. If it starts no other process, it calls [Proxy.AgentGone].
//
// A caller whose own process outlives that of the agent can keep its incarnation. It says so by [Proxy.AgentReturns],
// which ends the calls of the dead process in the log. Nothing is adopted then.
//
// The caller calls [Proxy.EditorLeft] when the connection of the editor ends, [Proxy.Stop] when a person stops the turn
// elsewhere, and [Proxy.TurnEnded] when the log has ended a turn. Time limits are the caller's: a process that does not
// reply while it is restored is ended, and the next one is started, as at any other death.
package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Side is a peer of the proxy.
type Side string

// The two peers.
const (
	Editor Side = "editor" // the client of the protocol
	Agent  Side = "agent"
)

// Line is a message to send, without the newline at its end.
type Line struct {
	To  Side
	Raw []byte
}

// Step is what a proxy does next: it appends the facts to the session in one commit, then it sends the lines. Lines to
// an editor that has left, or to a process that has ended, are dropped by the caller.
//
// The log may refuse the fact of an answer, because another decision stands. Such a step has no lines, and the decision
// follows by [Proxy.Decided]. The end of a prompt that the log has already is left out of its step in the same way.
type Step struct {
	At      time.Time
	Session string // the session's id in Holdfast; "" without facts
	// The process takes the session first, unless it has it: it opens it, or claims it if the log has it. The caller
	// sets the incarnation.
	Open *events.SessionOpened
	// The items that continue in the process which takes the session: part of the commit of Open. Items that have ended
	// meanwhile are left out. nil: nothing.
	Adopt *harness.Adopt
	// Inherit: the editor has opened the session, and no turn of this process runs in it. The caller that takes the
	// session by this step takes over what an earlier process left, and hands it to [Proxy.Inherit].
	Inherit bool
	Facts   []events.Fact
	Lines   []Line
}

// Config configures a proxy.
type Config struct {
	// Run is different for each process of the proxy. It is part of the ids of turns, messages, calls and prompts.
	Run string
	// Content is how much of the user's content is stored.
	Content agent.Content
	// AskTool returns the MCP server with the question tool for a session, as the protocol writes it. The key names the
	// session to the tool. nil: agents get no such tool.
	AskTool func(key string) json.RawMessage
	// Forms reports, when an editor that shows no forms connects, whether people can answer elsewhere. Then the proxy
	// says to the agent that forms are shown, and people answer them outside of the editor. nil: they cannot.
	Forms func() bool
}

// Report counts what was not translated.
type Report struct {
	Lines   int // read so far, from both sides
	Facts   int // produced so far
	Foreign int // lines that are no JSON; they passed
	// Refused lines did not pass: batches, members that are there twice, text behind the object.
	Refused int
	Late    int            // replies to requests that are not waiting, and events about ended items
	Outside int            // updates of calls outside of any turn; they passed
	Unknown map[string]int // methods and kinds of updates without a translation, by name; they passed
}

// unknownMax is how many unknown names are counted separately.
const unknownMax = 1000

// Proxy stands between an editor and an agent. Use it from one goroutine. Make it with [New].
type Proxy struct {
	cfg      Config
	at       time.Time
	out      []Step
	n        uint64             // of the newest id that the proxy has given
	asked    map[uint64]*asking // requests of the editor, by their id at the agent
	asks     map[uint64]*ask    // requests of the agent, by their id at the editor
	prompts  map[string]*prompt // that wait for a decision, by their id in Holdfast
	sessions map[string]*session
	order    []*session // by first appearance
	held     *held

	phase    phase
	init     json.RawMessage            // what initialize said to the agent
	forms    bool                       // the editor shows forms
	offered  bool                       // initialize said that forms are shown, and the editor shows none
	greeting json.RawMessage            // what the agent replied
	caps     map[string]json.RawMessage // what the agent can do
	auth     json.RawMessage            // what the editor said in authenticate; in memory only
	chores   []chore
	deferred []postponed               // of the editor, for the next process of the agent
	late     map[string]harness.Answer // about prompts of the process that has ended
	kept     bool                      // the caller keeps its incarnation when the agent's process ends
	away     bool                      // the editor has left
	turns    int                       // replies of the agent to prompt requests
	greet    bool                      // the next editor has to be greeted in the agent's place
	askers   map[string]string         // sessions of the agent, by the keys of their question tools
	named    map[string]string         // keys of question tools, by the editor's ids of requests without a reply
	begun    map[string]string         // turns that the log has begun, by the id of their prompt request

	report Report
}

// asking is a request of the editor that the agent has.
type asking struct {
	id  json.RawMessage // the editor's
	msg message
	s   *session // of session/prompt

	gone bool          // its editor has left: it has no reply
	lost bool          // of session/prompt: no process of the agent has it
	then func(message) // it restores the agent; without an id it is the proxy's own
}

// ask is a request of the agent that the editor has.
type ask struct {
	id     json.RawMessage // the agent's
	prompt *prompt         // nil: the request passes
	kept   json.RawMessage // the result that a person has decided before
}

// New returns a proxy that has seen nothing.
func New(cfg Config) *Proxy {
	return &Proxy{cfg: cfg, asked: map[uint64]*asking{}, asks: map[uint64]*ask{}, prompts: map[string]*prompt{},
		sessions: map[string]*session{}, late: map[string]harness.Answer{}, begun: map[string]string{},
		askers: map[string]string{}, named: map[string]string{},
		report: Report{Unknown: map[string]int{}}}
}

// Report returns what was counted so far.
func (p *Proxy) Report() Report {
	r := p.report
	r.Unknown = maps.Clone(r.Unknown)
	return r
}

// FromEditor returns what to do about a line of the editor, without its newline, that was read at this instant.
func (p *Proxy) FromEditor(at time.Time, raw []byte) []Step {
	p.away = false
	m, ok := p.receive(at, raw, Agent)
	switch {
	case !ok:
	case p.phase == running:
		p.fromEditor(m, false)
	default:
		p.postpone(m)
	}
	return p.take()
}

// fromEditor handles a message of the editor. One whose editor is gone has no reply.
func (p *Proxy) fromEditor(m message, gone bool) {
	switch {
	case m.isRequest():
		p.editorAsks(&asking{id: m.id, msg: m, gone: gone})
	case m.isReply():
		p.editorReplies(m)
	case m.method == methodCancelRequest:
		p.cancelRequest(m, Agent)
	case m.method == methodCancel:
		p.cancelTurn(m)
	default:
		p.known(m.method, "initialized", methodCancelRequest)
		p.send(Agent, m.raw)
	}
}

// FromAgent returns what to do about a line of the agent, without its newline, that was read at this instant.
func (p *Proxy) FromAgent(at time.Time, raw []byte) []Step {
	if p.phase == down || p.phase == given {
		p.report.Lines++
		p.report.Late++
		return nil
	}
	m, ok := p.receive(at, raw, Editor)
	if !ok {
		return p.take()
	}
	if !p.completes(m) {
		p.release()
	}
	switch {
	case m.isRequest():
		p.agentAsks(m)
	case m.isReply():
		p.agentReplies(m)
	case m.method == methodCancelRequest:
		p.cancelRequest(m, Editor)
	case m.method == "session/update":
		p.updated(m)
	default:
		p.known(m.method)
		p.send(Editor, m.raw)
	}
	return p.take()
}

// Flush returns what is held back. Call it when no further line of the agent is available.
func (p *Proxy) Flush() []Step {
	p.release()
	return p.take()
}

// receive parses a line. A line without JSON passes to the other side.
func (p *Proxy) receive(at time.Time, raw []byte, to Side) (m message, ok bool) {
	p.report.Lines++
	p.receivedAt(at)
	m, err := parse(raw)
	switch {
	case err == nil:
		return m, true
	case isForeign(err):
		p.report.Foreign++
		p.release()
		if to == Editor || p.phase == running {
			p.send(to, raw)
		}
	default:
		p.report.Refused++
	}
	return m, false
}

func (p *Proxy) receivedAt(at time.Time) {
	if at.After(p.at) {
		p.at = at
	}
}

// take returns the steps since the last take.
func (p *Proxy) take() []Step {
	out := p.out
	p.out = nil
	return out
}

// send adds a line behind the facts so far. An editor that has left gets none.
func (p *Proxy) send(to Side, raw []byte) {
	if to == Editor && p.away {
		return
	}
	if n := len(p.out); n > 0 {
		p.out[n-1].Lines = append(p.out[n-1].Lines, Line{to, raw})
		return
	}
	p.out = append(p.out, Step{At: p.at, Lines: []Line{{to, raw}}})
}

// record adds facts of a session. Facts of one session with no line between them are one commit.
func (p *Proxy) record(s *session, facts ...events.Fact) {
	if len(facts) == 0 && s.opened {
		return
	}
	p.report.Facts += len(facts)
	if n := len(p.out); n > 0 && p.out[n-1].Session == s.id && len(p.out[n-1].Lines) == 0 {
		p.out[n-1].Facts = append(p.out[n-1].Facts, facts...)
		return
	}
	step := Step{At: p.at, Session: s.id, Facts: facts}
	if !s.opened {
		s.opened, step.Open, step.Adopt = true, p.opening(s), p.adoption(s)
	}
	p.out = append(p.out, step)
}

// editorAsks passes a request of the editor to the agent. A prompt request begins a turn.
func (p *Proxy) editorAsks(q *asking) {
	m := q.msg
	if m.method == "initialize" && p.greet {
		p.greet, p.forms = false, showsForms(m.params)
		p.answer(q, replyTo(q.id, "result", p.greeting))
		return
	}
	if m.method == methodPrompt && m.sessionID() != "" {
		p.promptAsked(q)
		return
	}
	p.known(m.method, "initialize", "authenticate", "logout", "session/new", "session/load", "session/resume",
		"session/list", methodPrompt, "session/close", "session/delete", "session/fork", "session/set_mode",
		"session/set_model", "session/set_config_option")
	if id := m.sessionID(); m.method == methodLoad && id != "" {
		p.session(id).loading = true
	}
	if m.method == "initialize" {
		m = p.withForms(m)
	}
	q.msg = p.withTool(m)
	p.forward(q)
}

// answer sends the reply to a request of the editor.
func (p *Proxy) answer(q *asking, line []byte) {
	if !q.gone {
		p.send(Editor, line)
	}
}

// forward sends a request of the editor under an id of the proxy.
func (p *Proxy) forward(q *asking) {
	id := p.nextID()
	p.asked[id] = q
	p.send(Agent, q.msg.withID(number(id)))
}

// agentReplies passes a reply of the agent to the editor, under the id that the editor gave.
func (p *Proxy) agentReplies(m message) {
	id, ok := m.ownID()
	q := p.asked[id]
	if !ok || q == nil {
		p.report.Late++
		return
	}
	delete(p.asked, id)
	if q.then != nil {
		q.then(m)
		return
	}
	line := m.withID(q.id)
	if q.s != nil {
		p.promptReplied(q, m, line)
		return
	}
	s := p.replied(q, m)
	p.openedWith(q.id, text(members(m.result)["sessionId"]))
	p.answer(q, line)
	if s != nil {
		p.showAgain(s)
	}
}

// agentAsks passes a request of the agent to the editor.
func (p *Proxy) agentAsks(m message) {
	if p.isHidden(m.method, m.id) && !p.isAnswerable(m) {
		p.send(Agent, replyTo(m.id, "result", (&form{unasked: true}).reply(harness.Answer{})))
		return
	}
	id := p.nextID()
	a := &ask{id: m.id}
	p.asks[id] = a
	switch m.method {
	case methodPermission:
		p.permissionAsked(a, m)
	case methodElicitation:
		p.elicitationAsked(a, m)
	default:
		p.known(m.method, "fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output",
			"terminal/release", "terminal/wait_for_exit", "terminal/kill")
	}
	switch {
	case a.kept != nil:
		delete(p.asks, id)
		p.send(Agent, replyTo(a.id, "result", a.kept))
	case p.away && a.prompt == nil:
		delete(p.asks, id)
		p.send(Agent, errorTo(a.id, codeInternal, textAway))
	case p.away, p.isHidden(m.method, a.id):
		delete(p.asks, id)
	default:
		p.send(Editor, m.withID(number(id)))
	}
}

// editorReplies passes a reply of the editor to the agent, unless it decides about a prompt.
func (p *Proxy) editorReplies(m message) {
	id, ok := m.ownID()
	a := p.asks[id]
	if !ok || a == nil {
		p.report.Late++
		return
	}
	delete(p.asks, id)
	if a.prompt != nil {
		if a.prompt.decides(m) {
			p.promptAnswered(a.prompt, m)
		}
		return
	}
	p.send(Agent, m.withID(a.id))
}

// cancelRequest passes the cancellation of a request on, with the request's id on the other side. A request that has
// its reply needs no cancellation.
func (p *Proxy) cancelRequest(m message, to Side) {
	of := members(m.params)["requestId"]
	if to == Agent {
		for id, q := range p.asked {
			if !q.gone && string(q.id) == string(of) {
				p.send(to, m.withParam("requestId", number(id)))
				return
			}
		}
		if p.cancelWaiting(of) || p.cancelLost(of) {
			return
		}
	} else {
		for id, a := range p.asks {
			if string(a.id) == string(of) {
				p.withdraw(a.prompt, reasonAgent)
				p.send(to, m.withParam("requestId", number(id)))
				return
			}
		}
		// that no editor has
		for _, q := range p.prompts {
			if string(q.agent) == string(of) && !q.lost {
				p.withdraw(q, reasonAgent)
				return
			}
		}
	}
	p.report.Late++
}

// known counts the name of a method that is not in the list.
func (p *Proxy) known(name string, names ...string) {
	if slices.Contains(names, name) {
		return
	}
	name = agent.Name(name)
	if _, counted := p.report.Unknown[name]; !counted && len(p.report.Unknown) >= unknownMax {
		name = "more"
	}
	p.report.Unknown[name]++
}

func (p *Proxy) nextID() uint64 {
	p.n++
	return p.n
}

func number(id uint64) json.RawMessage { return strconv.AppendUint(nil, id, 10) }

// newID returns an id in Holdfast that no process of the proxy gives again.
func (p *Proxy) newID(what string) string {
	p.n++
	return ident(what, fmt.Sprintf("%s-%s-%d", what, p.cfg.Run, p.n))
}

// ident returns an id that is valid in Holdfast: the foreign one if it fits, or one derived from it.
func ident(prefix, id string) string {
	if _, err := events.Token(id); err != nil {
		return events.DeriveID(prefix, id)
	}
	return id
}
