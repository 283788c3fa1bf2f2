package mockmodel

import (
	"encoding/json"
	"net/http"
)

// anthropicBlock is a part of a message: a text, a call, or the result of one.
type anthropicBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// shownBy returns a message of Anthropic's API. A message of the user has results and texts in it.
func shownBy(role string, content json.RawMessage) []Message {
	var blocks []anthropicBlock
	if json.Unmarshal(content, &blocks) != nil {
		return []Message{{Role: role, Text: textOf(content)}}
	}
	message := Message{Role: role}
	var results []Message
	for _, b := range blocks {
		switch b.Type {
		case "text":
			message.Text += b.Text
		case "tool_use":
			message.Calls++
		case "tool_result":
			results = append(results, Message{Role: "tool", Text: textOf(b.Content)})
		}
	}
	if message.Text == "" && message.Calls == 0 {
		return results
	}
	return append(results, message)
}

// messages is Anthropic's API of messages.
func (m *Model) messages(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []json.RawMessage `json:"tools"`
	}
	if !decode(w, r, &q) {
		return
	}
	c := conversation{model: q.Model, system: textOf(q.System), tools: len(q.Tools)}
	for _, x := range q.Messages {
		c.messages = append(c.messages, shownBy(x.Role, x.Content)...)
	}
	step := Text("A title")
	// the agent asks without tools for titles and the like
	if c.tools > 0 {
		step = m.next(&c)
	}
	if m.refuse(w, step) {
		return
	}
	usage := map[string]int{"input_tokens": 100, "output_tokens": 10}
	message := object{"id": "msg_" + m.callID(), "type": "message", "role": "assistant", "model": q.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	if !q.Stream {
		message["content"], message["stop_reason"] = []any{object{"type": "text", "text": step.Text}}, "end_turn"
		w.Header().Set("Content-Type", "application/json")
		// an agent that has left needs no answer
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	out := &anthropicAnswer{stream: begin(w)}
	out.send("message_start", object{"type": "message_start", "message": message})
	m.writeAnswer(r, out, step)
}

// anthropicAnswer is an answer on its way.
type anthropicAnswer struct {
	stream
	blocks int
	open   bool // the newest block is a text without an end
	calls  int
}

func (a *anthropicAnswer) block(kind string, x object) {
	x["type"], x["index"] = "content_block_"+kind, a.blocks
	a.send("content_block_"+kind, x)
}

func (a *anthropicAnswer) text(word string) {
	if !a.open {
		a.open = true
		a.block("start", object{"content_block": object{"type": "text", "text": ""}})
	}
	a.block("delta", object{"delta": object{"type": "text_delta", "text": word}})
}

func (a *anthropicAnswer) closes() {
	if a.open {
		a.block("stop", object{})
		a.open = false
		a.blocks++
	}
}

func (a *anthropicAnswer) call(id, name string, args json.RawMessage) {
	a.closes()
	a.calls++
	a.block("start", object{"content_block": object{"type": "tool_use", "id": "toolu_" + id, "name": name,
		"input": object{}}})
	a.block("delta", object{"delta": object{"type": "input_json_delta", "partial_json": string(args)}})
	a.block("stop", object{})
	a.blocks++
}

func (a *anthropicAnswer) end() {
	a.closes()
	reason := "end_turn"
	if a.calls > 0 {
		reason = "tool_use"
	}
	a.send("message_delta", object{"type": "message_delta", "usage": map[string]int{"output_tokens": 10},
		"delta": object{"stop_reason": reason, "stop_sequence": nil}})
	a.send("message_stop", object{"type": "message_stop"})
}
