package mockmodel

import (
	"encoding/json"
	"net/http"
)

// responses is OpenAI's API of responses.
func (m *Model) responses(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model  string `json:"model"`
		System string `json:"instructions"`
		Input  []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
		} `json:"input"`
		Tools []json.RawMessage `json:"tools"`
	}
	if !decode(w, r, &q) {
		return
	}
	c := conversation{model: q.Model, system: q.System, tools: len(q.Tools)}
	for _, x := range q.Input {
		switch x.Type {
		case "function_call", "custom_tool_call", "local_shell_call":
			// of the same answer
			if n := len(c.messages); n > 0 && c.messages[n-1].Calls > 0 {
				c.messages[n-1].Calls++
				continue
			}
			c.messages = append(c.messages, Message{Role: "assistant", Calls: 1})
		case "function_call_output", "custom_tool_call_output":
			c.messages = append(c.messages, Message{Role: "tool", Text: textOf(x.Output)})
		case "message", "":
			c.messages = append(c.messages, Message{Role: x.Role, Text: textOf(x.Content)})
		}
	}
	step := Text("A title")
	// the agent asks without tools for titles and the like
	if c.tools > 0 {
		step = m.next(&c)
	}
	if m.refuse(w, step) {
		return
	}
	out := &responsesAnswer{stream: begin(w), id: "resp_" + m.callID(), model: q.Model}
	out.event("response.created", object{"response": out.response("in_progress")})
	m.writeAnswer(r, out, step)
}

// responsesAnswer is an answer on its way.
type responsesAnswer struct {
	stream
	id, model string
	written   string
	items     []any
}

func (a *responsesAnswer) event(name string, x object) {
	x["type"] = name
	a.send(name, x)
}

func (a *responsesAnswer) response(status string) object {
	return object{"id": a.id, "object": "response", "status": status, "model": a.model, "output": a.items}
}

func (a *responsesAnswer) message(status string) object {
	content := []any{}
	if status == "completed" {
		content = []any{object{"type": "output_text", "text": a.written, "annotations": []any{}}}
	}
	return object{"id": "msg_" + a.id, "type": "message", "role": "assistant", "status": status, "content": content}
}

func (a *responsesAnswer) text(word string) {
	if a.written == "" {
		a.event("response.output_item.added", object{"output_index": 0, "item": a.message("in_progress")})
	}
	a.written += word
	a.event("response.output_text.delta", object{"item_id": "msg_" + a.id, "output_index": 0, "content_index": 0,
		"delta": word})
}

// done ends an item.
func (a *responsesAnswer) done(item object) {
	a.event("response.output_item.done", object{"output_index": len(a.items), "item": item})
	a.items = append(a.items, item)
}

func (a *responsesAnswer) closes() {
	if a.written != "" && len(a.items) == 0 {
		a.done(a.message("completed"))
	}
}

func (a *responsesAnswer) call(id, name string, args json.RawMessage) {
	a.closes()
	item := object{"id": "fc_" + id, "type": "function_call", "call_id": id, "name": name, "arguments": string(args),
		"status": "completed"}
	a.event("response.output_item.added", object{"output_index": len(a.items), "item": item})
	a.done(item)
}

func (a *responsesAnswer) end() {
	a.closes()
	end := a.response("completed")
	end["usage"] = object{"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 10,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 110}
	a.event("response.completed", object{"response": end})
}
