package opencode

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// The states of a call that has ended in OpenCode.
const (
	partCompleted = "completed"
	partError     = "error"
)

// call is a tool part. Its id is the provider's call id, which prompts use, too. Some providers restart their ids in
// each response. Then the later call has the part's id.
type call struct {
	id          string
	turn        *turn
	name        string
	title       string
	description string
	input       json.RawMessage
	child       string // the sub-agent's session
	begun       bool   // its fact is appended or held back
	done        bool
	rejected    bool     // a person rejected its permission
	ofModel     bool     // OpenCode runs it for a model
	names       []string // its keys in [session].callParts
}

// join adds the call to its turn.
func (c *call) join(u *turn) {
	c.turn, c.begun = u, true
	u.calls, u.hadOutput = append(u.calls, c), true
}

func (c *call) end() { c.done, c.input = true, nil }

// partUpdated handles one part of a message: text, a call, a model call's usage, a request for a compaction.
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
	case "step-start":
		m.stepped = true
	case "step-finish":
		t.usage(s, m, p)
	case "compaction":
		m.compaction = true
		s.forget(m)
	case "text", "file", "subtask", "reasoning":
		s.text(m, p)
	}
}

// forget removes a message from the pending ones.
func (s *session) forget(m *message) {
	for i, waiting := range s.pending {
		if waiting == m {
			s.pending = append(s.pending[:i:i], s.pending[i+1:]...)
			return
		}
	}
}

// text records a user's text, or that a model call had output.
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

// userPartsMax is the maximum number of parts of one message that are kept.
const userPartsMax = 1000

// toolPart appends the begin of a call once, and its end once. A pending call is held back for one record, because the
// next one usually has its input.
func (t *Translator) toolPart(s *session, m *message, p *part) {
	c := s.call(m, p)
	t.endsCall(s, c, p)
	if c.done {
		t.release(s)
		t.report.Late++
		return
	}
	c.describe(p)
	c.ofModel = m.stepped && !p.Metadata.ProviderExecuted
	switch p.State.Status {
	case "pending", "running":
		t.toolOpen(s, m, c, p)
	case partCompleted, partError:
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
	t.add(s, t.at, c.begin())
}

// adopt finds the call's turn. If the stream began in the middle of a run, adopt begins a turn.
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
	if p.State.Status == partError {
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
		t.add(s, t.at, c.begin())
	}
	t.add(s, t.at, c.finish(p))
	c.end()
	for _, q := range c.turn.prompts {
		q.done = q.done || q.call == c
	}
}

// call returns the call of a part.
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

// named returns the open call that a prompt names, or nil.
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

// describe records the part's data about the call.
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
		// Tools accept any input; the title is optional.
		in.Description = ""
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

// finish returns the fact that ends the call. For OpenCode, a shell command that failed, timed out or was aborted is
// completed; its exit code is kept with its output.
func (c *call) finish(p *part) events.Fact {
	st := &p.State
	if st.Status == partCompleted {
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

// output returns the call's text, or an object of text and exit code. The exit code is null if the command was aborted.
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

// usage reports the tokens of a model call, even after the turn has ended, because it does not affect the turn. The
// usage of a summary is omitted, because the next call does not start with it.
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
	t.add(s, t.at, events.UsageReported{Turn: m.turn.id, Model: m.model, ContextLimit: t.limits[m.model],
		Tokens: events.Tokens{Input: tokens(k.Input), CacheRead: tokens(k.Cache.Read),
			CacheWrite: tokens(k.Cache.Write), Output: tokens(k.Output), Reasoning: tokens(k.Reasoning)}})
}

func tokens(n float64) int64 { return int64(min(max(n, 0), tokensMax)) }
