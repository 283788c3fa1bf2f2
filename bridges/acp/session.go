package acp

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// session is what the proxy knows of a session of the agent.
type session struct {
	acp     string // its id at the agent
	id      string // its id in Holdfast
	opened  bool   // this process has taken it
	loading bool   // the agent replays its history
	cwd     string

	turn    *turn
	waiting []*asking // prompt requests that arrived during the turn

	calls    map[string]*call // of the open turn, by the agent's id
	before   map[string]bool  // the ids of the calls of the turn before
	replayed []string         // calls that a replay has left open
	used     events.UsageReported
}

// session returns the session with this id at the agent. The first use of an id makes it.
func (p *Proxy) session(acp string) *session {
	s := p.sessions[acp]
	if s == nil {
		s = &session{acp: acp, id: ident("ses", acp), calls: map[string]*call{}}
		p.sessions[acp] = s
	}
	return s
}

// opening returns the fact that opens a session. The agent retries and compacts by itself.
func (p *Proxy) opening(s *session) *events.SessionOpened {
	o := &events.SessionOpened{Policy: &events.PolicyPatch{AutoRetry: events.Set(false),
		CompactionThreshold: events.Set(1.0)}}
	if cwd := p.cfg.Content.Title(s.cwd); cwd != "" {
		o.Native = encode(map[string]string{"cwd": cwd})
	}
	return o
}

// replied records what the reply of the agent to a request of the editor says about a session.
func (p *Proxy) replied(q *asking, m message) {
	asked, ok := members(q.msg.params), m.failed == nil
	switch q.msg.method {
	case "session/new", "session/fork":
		id := text(members(m.result)["sessionId"])
		if ok && id != "" {
			s := p.session(id)
			s.cwd = text(asked["cwd"])
			p.record(s)
		}
	case "session/load", "session/resume":
		if q.msg.sessionID() == "" {
			return
		}
		s := p.session(q.msg.sessionID())
		s.loading = false
		if !ok {
			s.replayed = nil
			p.forget(s)
			return
		}
		s.cwd = text(asked["cwd"])
		p.record(s)
		p.closeReplayed(s)
	case "session/close", "session/delete":
		deleted := q.msg.method == "session/delete"
		if id := q.msg.sessionID(); ok && id != "" && (deleted || p.sessions[id] != nil) {
			p.leave(p.session(id), deleted)
		}
	}
}

// leave ends the part of this process in a session.
func (p *Proxy) leave(s *session, deleted bool) {
	switch {
	case deleted:
		p.record(s, events.SessionClosed{Reason: "deleted"})
	case s.opened:
		p.record(s, events.SessionReleased{Reason: "closed by the editor"})
	}
	p.settleAll(s)
	s.turn, s.opened = nil, false
	p.forget(s)
}

// forget drops a session that this process does not have, unless requests for it are open.
func (p *Proxy) forget(s *session) {
	if !s.opened && s.turn == nil && len(s.waiting) == 0 {
		delete(p.sessions, s.acp)
	}
}

// closeReplayed ends the calls that a replay has left open on the screen of the editor. This process of the agent does
// not run them.
func (p *Proxy) closeReplayed(s *session) {
	for _, id := range s.replayed {
		if s.turn == nil {
			p.send(Editor, failedUpdate(s.acp, id, textReplayed))
		}
	}
	s.replayed = nil
}

// textReplayed is what the editor shows for a call that a replay has left open.
const textReplayed = "Interrupted: this process of the agent does not run it. It may have had an effect."

// failedUpdate is an update that ends a call on the screen of the editor.
func failedUpdate(session, call, why string) []byte {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type block struct {
		Type    string  `json:"type"`
		Content content `json:"content"`
	}
	type update struct {
		Kind    string  `json:"sessionUpdate"`
		Call    string  `json:"toolCallId"`
		Status  string  `json:"status"`
		Content []block `json:"content"`
	}
	type params struct {
		Session string `json:"sessionId"`
		Update  update `json:"update"`
	}
	return encode(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  params `json:"params"`
	}{"2.0", "session/update", params{session, update{"tool_call_update", call, statusFailed,
		[]block{{"content", content{"text", why}}}}}})
}

// replay follows the calls of a history.
func (s *session) replay(id, status string) {
	i := slices.Index(s.replayed, id)
	switch {
	case i >= 0 && ended(status):
		s.replayed = slices.Delete(s.replayed, i, i+1)
	case i < 0 && !ended(status):
		s.replayed = append(s.replayed, id)
	}
}

// updated records what a notification of the agent says about a session, and passes it on.
func (p *Proxy) updated(m message) {
	u := members(members(m.params)["update"])
	s := p.sessions[m.sessionID()]
	if s == nil { // the agent speaks before its reply to session/new
		p.report.Outside++
		p.send(Editor, m.raw)
		return
	}
	switch kind := text(u["sessionUpdate"]); kind {
	case "tool_call", "tool_call_update":
		p.callUpdated(s, u, m.raw)
		return
	case "usage_update":
		p.used(s, u)
	case "agent_message_chunk":
		if s.turn != nil && text(members(u["content"])["text"]) != "" {
			s.turn.hadOutput = true
		}
	case "user_message_chunk", "agent_thought_chunk", "plan", "available_commands_update", "current_mode_update",
		"config_option_update", "session_info_update":
	default:
		p.known("session/update " + agent.Name(kind))
	}
	p.send(Editor, m.raw)
}
