package mockmodel

import (
	"cmp"
	"encoding/json"
	"net/http"
)

type chatMessage struct {
	Role    string            `json:"role"`
	Content json.RawMessage   `json:"content"`
	Calls   []json.RawMessage `json:"tool_calls"`
}

// textOf returns the text of a content, which is a string or a list of parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// chat is OpenAI's API of chat completions.
func (m *Model) chat(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model    string            `json:"model"`
		Messages []chatMessage     `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if !decode(w, r, &q) {
		return
	}
	c := conversation{model: q.Model, tools: len(q.Tools)}
	for i := range q.Messages {
		if x := &q.Messages[i]; x.Role == "system" {
			c.system += textOf(x.Content)
		} else {
			c.messages = append(c.messages, Message{x.Role, textOf(x.Content), len(x.Calls)})
		}
	}
	step := m.next(&c)
	if m.refuse(w, step) {
		return
	}
	out := &chatAnswer{stream: begin(w), model: q.Model, used: step.Used}
	out.delta(object{"role": "assistant", "content": ""}, "")
	m.writeAnswer(r, out, step)
}

// chatAnswer is an answer on its way.
type chatAnswer struct {
	stream
	model string
	calls int
	used  int // tokens of input
}

func (a *chatAnswer) text(word string) { a.delta(object{"content": word}, "") }

func (a *chatAnswer) call(id, name string, args json.RawMessage) {
	a.delta(object{"tool_calls": []any{object{"index": a.calls, "type": "function", "id": id,
		"function": object{"name": name, "arguments": string(args)}}}}, "")
	a.calls++
}

func (a *chatAnswer) end() {
	finish := "stop"
	if a.calls > 0 {
		finish = "tool_calls"
	}
	a.delta(object{}, finish)
	a.writeData("[DONE]")
}

func (a *chatAnswer) delta(delta object, finish string) {
	choice := object{"index": 0, "delta": delta, "finish_reason": nil}
	chunk := object{"id": "chatcmpl", "object": "chat.completion.chunk", "created": 1, "model": a.model,
		"choices": []any{choice}}
	if finish != "" {
		choice["finish_reason"] = finish
		used := cmp.Or(a.used, 100)
		chunk["usage"] = map[string]int{"prompt_tokens": used, "completion_tokens": 10, "total_tokens": used + 10}
	}
	a.send("", chunk)
}
