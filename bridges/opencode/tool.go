package opencode

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// call is a tool part. Its id is the provider's id of the call, as prompts name it too; a provider that counts anew in
// each answer gives the same id twice, and the later one goes by the part's id.
type call struct {
	id          string
	turn        *turn
	name        string
	title       string
	description string
	input       json.RawMessage
	child       string // the sub-agent's session
	begun       bool   // said, or held back
	done        bool
	rejected    bool     // a person said no to what it asked
	names       []string // what it is found by in [session].callParts
}

// join begins the call as a part of its turn.
func (c *call) join(u *turn) {
	c.turn, c.begun = u, true
	u.calls, u.hadOutput = append(u.calls, c), true
}

func (c *call) end() { c.done, c.input = true, nil }

// partUpdated follows one part of a message: text, a call, what a model call used, the wish for a compaction.
func (t *Translator) partUpdated(s *session, b *body) {
	p := &b.part
	if p.Type != "tool" {
		t.release(s)
	}
	if p.MessageID == "" {
		t.problem("record %d: a part without a message", t.report.Records)
		return
	}
	if s.gone.has(goneMessage + p.MessageID) {
		t.release(s)
		t.report.Late++
		return
	}
	m := s.message(p.MessageID)
	switch p.Type {
	case "tool":
		t.toolPart(s, m, p)
	case "step-finish":
		t.usage(s, m, p)
	case "compaction":
		m.compaction = true
		s.forget(m)
	case "text", "file", "subtask", "reasoning":
		s.text(m, p)
	}
}

// forget takes a message out of those that wait for a turn.
func (s *session) forget(m *message) {
	for i, waiting := range s.pending {
		if waiting == m {
			s.pending = append(s.pending[:i:i], s.pending[i+1:]...)
			return
		}
	}
}

// text notes what a user wrote, or that a model call had output.
func (s *session) text(m *message, p *part) {
	if m.role == "assistant" {
		if m.turn != nil && !m.summary && p.Text != "" {
			m.turn.hadOutput = true
		}
		return
	}
	if p.Ignored || m.taken {
		return
	}
	text := p.Text
	switch {
	case p.Type == "subtask":
		text = p.Prompt
	case p.Type == "file" && p.Filename != "":
		text = "[file " + p.Filename + "]"
	case p.Type == "file":
		text = "[file]"
	}
	for i := range m.parts {
		if m.parts[i].id == p.ID {
			m.parts[i].text = text
			return
		}
	}
	if len(m.parts) < userPartsMax {
		m.parts = append(m.parts, userPart{id: p.ID, text: text, synthetic: p.Synthetic})
	}
}

// userPartsMax is how many parts of one message are looked at.
const userPartsMax = 1000

// toolPart says when a call begins, once, and when it ends, once. A pending call is held back for one record: the next
// one usually says what it was called with.
func (t *Translator) toolPart(s *session, m *message, p *part) {
	c := s.call(m, p)
	if c.done {
		t.release(s)
		t.report.Late++
		return
	}
	c.describe(p)
	switch p.State.Status {
	case "pending", "running":
		t.toolOpen(s, m, c, p)
	case "completed", "error":
		t.toolEnd(s, m, c, p)
	default:
		t.release(s)
	}
}

func (t *Translator) toolOpen(s *session, m *message, c *call, p *part) {
	if c.begun {
		if !t.releaseCall(s, c) {
			t.release(s)
		}
		return
	}
	t.release(s)
	if !t.adopt(s, m, c) {
		return
	}
	if p.State.Status == "pending" {
		s.held = append(s.held, held{at: t.at, call: c})
		return
	}
	t.say(s, t.at, c.begin())
}

// adopt finds the call's turn. A call of a run that the stream has not seen the beginning of begins one here.
func (t *Translator) adopt(s *session, m *message, c *call) bool {
	switch {
	case m.turn == nil && m.role == "" && s.turn != nil:
		m.turn = s.turn
	case m.turn == nil && m.role == "":
		t.resume(s, m, "")
		m.turn = s.turn
	}
	if m.role == "" {
		m.role = "assistant"
	}
	if m.turn == nil || m.turn.ended {
		c.end()
		t.report.Late++
		return false
	}
	c.join(m.turn)
	return true
}

func (t *Translator) toolEnd(s *session, m *message, c *call, p *part) {
	if p.State.Status == "error" {
		s.complain(c, p.State.Error)
	}
	if !t.releaseCall(s, c) && !s.holdsRejections() {
		t.release(s)
	}
	if !c.begun {
		if s.turn == nil || m.turn != s.turn {
			c.end()
			t.report.Late++
			return
		}
		c.join(m.turn)
		t.say(s, t.at, c.begin())
	}
	t.say(s, t.at, c.finish(p))
	c.end()
	for _, q := range c.turn.prompts {
		q.done = q.done || q.call == c
	}
}

// call is the call of a part.
func (s *session) call(m *message, p *part) *call {
	key := p.ID
	if key == "" {
		key = m.id + "/" + p.CallID
	}
	c := s.calls[key]
	if c == nil {
		id := p.CallID
		if _, taken := s.callParts[id]; taken || id == "" || s.gone.has(goneCall+id) {
			id = key
		}
		c = &call{id: ident("call", id), name: cutText(p.Tool, nameBytesMax),
			names: []string{id, m.id + "/" + p.CallID}}
		s.calls[key] = c
		m.calls = append(m.calls, key)
		for _, name := range c.names {
			s.callParts[name] = key
		}
	}
	return c
}

// named is the open call that a prompt names, nil if there is none.
func (s *session) named(ref *toolRef) *call {
	if ref == nil {
		return nil
	}
	c := s.calls[s.callParts[ref.MessageID+"/"+ref.CallID]]
	if c == nil || c.done || !c.begun {
		return nil
	}
	return c
}

// describe notes what the part says about the call.
func (c *call) describe(p *part) {
	if c.name == "" {
		c.name = "tool"
	}
	if child := p.State.Metadata.SessionID; child != "" {
		c.child = ident("ses", child)
	}
	var in struct {
		Description string `json:"description"`
		Command     string `json:"command"`
		FilePath    string `json:"filePath"`
		Path        string `json:"path"`
		Pattern     string `json:"pattern"`
		URL         string `json:"url"`
		Query       string `json:"query"`
	}
	if err := json.Unmarshal(p.State.Input, &in); err != nil {
		in.Description = "" // tools may be called with anything; a title is only a kindness
	}
	c.description = in.Description
	for _, title := range []string{p.State.Title, in.Description, in.Command, in.FilePath, in.Path, in.Pattern, in.URL,
		in.Query} {
		if title != "" {
			c.title = cutText(title, titleBytesMax)
			break
		}
	}
	if raw := strings.TrimSpace(string(p.State.Input)); raw != "" && raw != "{}" && raw != "null" {
		if c.input = small(p.State.Input, inputBytesMax); c.input == nil {
			c.input = jsonText(raw, inputBytesMax)
		}
	}
}

func (c *call) begin() events.Fact {
	return events.ToolStarted{Call: c.id, Turn: c.turn.id, Name: c.name, Title: c.title, Input: c.input}
}

// finish is how the call ended. A shell command that failed, ran out of time or was aborted is completed to OpenCode;
// its exit code is kept with its output.
func (c *call) finish(p *part) events.Fact {
	st := &p.State
	if st.Status == "completed" {
		return events.ToolCompleted{Call: c.id, Output: output(st)}
	}
	kind := kindTool
	switch {
	case c.rejected:
		kind = kindRejected
	case st.Metadata.Interrupted:
		kind = failure.Aborted
	}
	return events.ToolFailed{Call: c.id, Error: events.Failure{Kind: kind, Text: cutText(st.Error, errorBytesMax)}}
}

// output is the call's text; with an exit code (null: it has none, because it was aborted) an object of both.
func output(st *toolState) json.RawMessage {
	text := jsonText(st.Output, contentBytesMax)
	exit := st.Metadata.Exit
	if len(exit) == 0 || len(exit) > nameBytesMax {
		return text
	}
	return encode(struct {
		Exit json.RawMessage `json:"exit"`
		Text json.RawMessage `json:"text"`
	}{exit, text})
}

// usage reports what a model call counted, also when that is told after the turn's end: it says nothing about a turn's
// life. A summary's is not what the next call starts with.
func (t *Translator) usage(s *session, m *message, p *part) {
	if m.summary || m.used[p.ID] {
		return
	}
	m.used[p.ID] = true
	if u := m.turn; u == nil || u.ended && (u.lost || s.turn != nil || s.lastTurn != u.id) {
		t.report.Late++
		return
	}
	k := &p.Tokens
	t.say(s, t.at, events.UsageReported{Turn: m.turn.id, Model: m.model, Tokens: events.Tokens{
		Input: tokens(k.Input), CacheRead: tokens(k.Cache.Read), CacheWrite: tokens(k.Cache.Write),
		Output: tokens(k.Output), Reasoning: tokens(k.Reasoning)}})
}

func tokens(n float64) int64 { return int64(min(max(n, 0), tokensMax)) }
