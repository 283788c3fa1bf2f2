package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	statusCompleted = "completed"
	statusFailed    = "failed"
)

// kindTool is the kind of the failure of a call.
const kindTool = "tool_error"

func ended(status string) bool { return status == statusCompleted || status == statusFailed }

// call is a call of the open turn.
type call struct {
	id      string // in Holdfast
	acp     string
	kind    string
	name    string
	title   string
	input   json.RawMessage
	output  json.RawMessage
	content json.RawMessage
	done    bool // it has ended on the screen
	closed  bool // it has ended in the log
	lost    bool // the process that ran it has ended
	prompts []*prompt
}

// held is the announcement of a call that waits for the next line.
type held struct {
	s    *session
	call *call
	line []byte
}

// merge takes in what an update says about a call.
func (c *call) merge(u map[string]json.RawMessage) {
	set := func(to *string, from json.RawMessage) {
		if s := text(from); s != "" {
			*to = s
		}
	}
	set(&c.kind, u["kind"])
	set(&c.title, u["title"])
	set(&c.name, u["name"])
	set(&c.name, members(members(u["_meta"])["claudeCode"])["toolName"])
	if raw := u["rawInput"]; len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" {
		c.input = raw
	}
	if raw := u["rawOutput"]; len(raw) > 0 && string(raw) != "null" {
		c.output = raw
	}
	if raw := u["content"]; len(list(raw)) > 0 {
		c.content = raw
	}
}

// outputText returns the text of the content of a call.
func (c *call) outputText() string {
	var texts []string
	for _, raw := range list(c.content) {
		if s := text(members(members(raw)["content"])["text"]); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// callUpdated records the start and the end of a call.
func (p *Proxy) callUpdated(s *session, u map[string]json.RawMessage, line []byte) {
	acp, status := text(u["toolCallId"]), text(u["status"])
	announced := text(u["sessionUpdate"]) == "tool_call"
	c := s.calls[acp]
	switch {
	case s.loading:
		s.replayed = follow(s.replayed, acp, status)
	case s.turn == nil:
		s.loose = follow(s.loose, acp, status)
		p.report.Outside++
	case acp == "", c == nil && !announced && s.before[acp]:
		s.loose = follow(s.loose, acp, status)
		p.report.Late++
	case c == nil, (c.done || c.lost) && announced:
		p.announced(s, u, line)
		return
	case c.done, c.lost:
		p.report.Late++
	default:
		c.merge(u)
		// the announcement, if it waits for this update
		p.release()
		if ended(status) {
			p.endCall(s, c, status)
		}
	}
	p.send(Editor, line)
}

// announced begins a call. The announcement of a pending call waits for the next line.
func (p *Proxy) announced(s *session, u map[string]json.RawMessage, line []byte) {
	c := p.newCall(s, text(u["toolCallId"]))
	c.merge(u)
	p.held = &held{s: s, call: c, line: line}
	if status := text(u["status"]); status != "" && status != "pending" {
		p.release()
		if ended(status) {
			p.endCall(s, c, status)
		}
	}
}

// newCall makes a call. An agent may use an id again, and a closed id opens no call in the log.
func (p *Proxy) newCall(s *session, acp string) *call {
	p.n++
	c := &call{acp: acp, id: ident("call", fmt.Sprintf("%s-%s-%d", acp, p.cfg.Run, p.n))}
	if was := s.calls[acp]; was != nil {
		// the screen has the new call in its place
		was.done = true
	}
	s.calls[acp], s.loose = c, follow(s.loose, acp, statusCompleted)
	return c
}

// completes reports whether a line of the agent says more about the call that is held back.
func (p *Proxy) completes(m message) bool {
	if p.held == nil || m.sessionID() != p.held.s.acp {
		return false
	}
	params := members(m.params)
	switch m.method {
	case "session/update":
		u := members(params["update"])
		return text(u["sessionUpdate"]) == "tool_call_update" && text(u["toolCallId"]) == p.held.call.acp
	case methodPermission:
		return text(members(params["toolCall"])["toolCallId"]) == p.held.call.acp
	}
	return false
}

// release records the call that is held back, and sends its announcement.
func (p *Proxy) release() {
	h := p.held
	if h == nil {
		return
	}
	p.held = nil
	p.startCall(h.s, h.call)
	p.send(Editor, h.line)
}

func (p *Proxy) startCall(s *session, c *call) {
	f := events.ToolStarted{Call: c.id, Name: name(firstOf(c.name, c.kind, "tool")),
		Title: p.cfg.Content.Title(c.title), Input: p.cfg.Content.Input(c.input)}
	if s.turn != nil {
		f.Turn, s.turn.hadOutput = s.turn.id, true
	}
	p.record(s, f)
}

// endCall records the end of a call. Its permissions end with it.
func (p *Proxy) endCall(s *session, c *call, status string) {
	c.done, c.closed = true, true
	for _, q := range c.prompts {
		p.withdraw(q, events.ReasonCallEnded)
	}
	if status == statusFailed {
		p.record(s, events.ToolFailed{Call: c.id, Error: events.Failure{Kind: kindTool,
			Text: p.cfg.Content.Text(firstOf(text(c.output), c.outputText(), "the call failed"))}})
		return
	}
	output := c.output
	if output == nil && c.content != nil {
		output = encode(c.outputText())
	}
	p.record(s, events.ToolCompleted{Call: c.id, Output: p.cfg.Content.Output(output)})
	c.input, c.output, c.content = nil, nil, nil
}

// name is a word of the protocol that is stored as it is.
func name(s string) string { return agent.Name(s) }

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
