package acp

import (
	"encoding/json"
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

	turn *turn
	// A turn was begun since the editor has opened the session.
	begunHere bool
	waiting   []*asking // prompt requests that arrived during the turn

	calls    map[string]*call // of the open turn, by the agent's id
	before   map[string]bool  // the ids of the calls of the turn before
	replayed []string         // calls that a replay has left open
	loose    []string         // calls of no open turn that are open on the screen
	used     events.UsageReported

	current   *asking         // the prompt request that has no reply yet, of the turn if there is one
	begun     json.RawMessage // the parameters that load it
	shown     bool            // the editor has a part of the history that it loads
	settings  settings
	restoring bool   // the next process loads it: the editor has the history
	failed    string // why the present process does not have it, or not in its mode
	grants    []grantKept
	unread    []string // decisions that the agent has not read yet
}

// session returns the session with this id at the agent. The first use of an id makes it.
func (p *Proxy) session(acp string) *session {
	s := p.sessions[acp]
	if s == nil {
		s = &session{acp: acp, id: ident("ses", acp), calls: map[string]*call{}}
		p.sessions[acp] = s
		p.order = append(p.order, s)
	}
	return s
}

// opening returns the fact that opens a session. The agent retries and compacts by itself, and may be silent for as
// long as it likes: what it does between two calls is in no fact, so Holdfast does not end a turn for its silence.
func (p *Proxy) opening(s *session) *events.SessionOpened {
	o := &events.SessionOpened{Policy: &events.PolicyPatch{AutoRetry: events.Set(false),
		CompactionThreshold: events.Set(1.0), StallAfterS: events.Set[int64](0)}}
	if cwd := p.cfg.Content.Title(s.cwd); cwd != "" {
		o.Native = encode(map[string]string{"cwd": cwd})
	}
	return o
}

// replied records what the reply of the agent to a request of the editor says about a session. It returns the session
// that the editor has opened.
func (p *Proxy) replied(q *asking, m message) *session {
	asked, ok := members(q.msg.params), m.failed == nil
	switch q.msg.method {
	case "initialize":
		if ok {
			p.init = q.msg.params
			p.greeted(m)
		}
	case "authenticate":
		if ok {
			p.auth = q.msg.params
		}
	case "logout":
		if ok {
			p.auth = nil
		}
	case methodSetMode, methodSetModel, methodSetOption:
		if s := p.sessions[q.msg.sessionID()]; ok && s != nil {
			s.settings.set(setting{q.msg.method, text(asked["configId"]), q.msg.params})
			s.settings.known(m.result)
		}
	case "session/new", "session/fork":
		id := text(members(m.result)["sessionId"])
		if ok && id != "" {
			s := p.session(id)
			s.cwd, s.begun = text(asked["cwd"]), withMember(q.msg.params, "sessionId", encode(id))
			s.settings.known(m.result)
			p.record(s)
		}
	case methodLoad, methodResume:
		if q.msg.sessionID() == "" {
			return nil
		}
		s := p.session(q.msg.sessionID())
		s.loading, s.shown = false, false
		if !ok {
			s.replayed = nil
			p.forget(s)
			return nil
		}
		s.cwd, s.begun, s.failed = text(asked["cwd"]), q.msg.params, ""
		s.settings.opened(s.acp, m.result)
		// the log may have lost it: it is taken again
		s.opened, s.begunHere = false, false
		p.record(s)
		if n := len(p.out); n > 0 && p.out[n-1].Open != nil && s.turn == nil && len(s.waiting) == 0 {
			p.out[n-1].Inherit = true
		}
		p.closeReplayed(s)
		return s
	case "session/close", "session/delete":
		deleted := q.msg.method == "session/delete"
		if id := q.msg.sessionID(); ok && id != "" && (deleted || p.sessions[id] != nil) {
			p.leave(p.session(id), deleted)
		}
	}
	return nil
}

// leave ends the part of this process in a session.
func (p *Proxy) leave(s *session, deleted bool) {
	switch {
	case deleted:
		p.record(s, events.SessionClosed{Reason: "deleted"})
	case s.opened:
		p.record(s, events.SessionReleased{Reason: "closed by the editor"})
	}
	p.cancelAllWaiting(s)
	if q := s.current; q != nil && q.lost {
		s.current = nil
		p.answer(q, cancelled(q.id))
	}
	p.endTurn(s)
	s.opened, s.begun, s.loose = false, nil, nil
	p.forget(s)
}

// forget drops a session that this process does not have, unless something of it is open.
func (p *Proxy) forget(s *session) {
	if !s.opened && s.begun == nil && s.current == nil && len(s.waiting) == 0 && !p.asksIn(s) {
		delete(p.sessions, s.acp)
		p.order = slices.DeleteFunc(p.order, func(o *session) bool { return o == s })
	}
}

// closeReplayed ends the calls that a replay has left open on the screen of the editor. This process of the agent does
// not run them.
func (p *Proxy) closeReplayed(s *session) {
	for _, id := range s.replayed {
		switch {
		case s.turn == nil:
			p.send(Editor, failedUpdate(s.acp, id, textReplayed))
		case s.calls[id] == nil:
			s.loose = follow(s.loose, id, "")
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

// follow returns the calls that are open when this one has this status.
func follow(open []string, id, status string) []string {
	i := slices.Index(open, id)
	switch {
	case i >= 0 && ended(status):
		return slices.Delete(open, i, i+1)
	case i < 0 && !ended(status):
		return append(open, id)
	}
	return open
}

// updated records what a notification of the agent says about a session, and passes it on.
func (p *Proxy) updated(m message) {
	u := members(members(m.params)["update"])
	s := p.sessions[m.sessionID()]
	// the agent speaks before its reply to session/new
	if s == nil {
		p.report.Outside++
		p.send(Editor, m.raw)
		return
	}
	if s.restoring {
		// the editor has the history
		return
	}
	s.shown = s.shown || s.loading
	switch kind := text(u["sessionUpdate"]); kind {
	case "tool_call", "tool_call_update":
		s.atWork()
		p.callUpdated(s, u, m.raw)
		return
	case "usage_update":
		p.used(s, u)
	case "agent_message_chunk":
		s.atWork()
		if s.turn != nil && text(members(u["content"])["text"]) != "" {
			s.turn.hadOutput = true
		}
	case "agent_thought_chunk", "plan":
		s.atWork()
	case "current_mode_update", "config_option_update":
		s.settings.updated(s.acp, u)
	case "user_message_chunk", "available_commands_update", "session_info_update":
	default:
		p.known("session/update " + agent.Name(kind))
	}
	p.send(Editor, m.raw)
}
