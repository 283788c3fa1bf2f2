// Package mockmodel is a model for tests of real agents: a server that is compatible with OpenAI's chat completions and
// answers by scripts. A script is found by its name, which the newest message of the user has between << and >>. The
// conversation tells which step is next: one step for each answer of the model with calls that it already has. So the
// model has no state that an agent's death could contradict, gates excepted.
package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Step is one answer of the model.
type Step struct {
	Text  string
	Calls []Call
	// Status answers with an error as long as the gate is closed.
	Status int
	// Gate holds the step back until [Model.Open] opens the gate of this name: an answer of text stops after its first
	// word, an error is repeated, any other answer does not begin.
	Gate string
}

// Call is a call of a tool.
type Call struct {
	Tool string
	Args any
}

// Text answers with a text.
func Text(text string) Step { return Step{Text: text} }

// Tool answers with one call.
func Tool(name string, args any) Step { return Step{Calls: []Call{{name, args}}} }

// Summary is the name of the script for requests of a summary, which have no name of their own.
const Summary = "summary"

// Message is one message of a conversation as the model was shown it.
type Message struct {
	Role  string
	Text  string
	Calls int // of an answer
}

// Model is a running server. Use [Start].
type Model struct {
	srv *httptest.Server

	mu      sync.Mutex
	scripts map[string][]Step
	gates   map[string]chan struct{}
	seen    map[string][][]Message
	calls   int
}

// Start returns a model on a free port of the loopback interface. Close it.
func Start() *Model {
	m := &Model{scripts: map[string][]Step{Summary: {Text("A summary of the conversation.")}},
		gates: map[string]chan struct{}{}, seen: map[string][][]Message{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
	m.srv = httptest.NewServer(mux)
	return m
}

// URL returns the base address of the API.
func (m *Model) URL() string { return m.srv.URL + "/v1" }

// Close ends the server, and with it all answers that a gate holds.
func (m *Model) Close() {
	m.srv.CloseClientConnections()
	m.srv.Close()
}

// Script sets the steps of a script. After the last step the answer is a text.
func (m *Model) Script(name string, steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts[name] = steps
}

// Open opens a gate for good.
func (m *Model) Open(gate string) { close(m.gate(gate)) }

// Requests returns the conversations that the model was shown for a script, oldest first.
func (m *Model) Requests(name string) [][]Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([][]Message(nil), m.seen[name]...)
}

func (m *Model) gate(name string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gates[name] == nil {
		m.gates[name] = make(chan struct{})
	}
	return m.gates[name]
}

type chatMessage struct {
	Role    string            `json:"role"`
	Content json.RawMessage   `json:"content"`
	Calls   []json.RawMessage `json:"tool_calls"`
}

// text returns the content, which is a string or a list of parts.
func (c *chatMessage) text() string {
	var text string
	if json.Unmarshal(c.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(c.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}

type chatRequest struct {
	Model    string            `json:"model"`
	Messages []chatMessage     `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

// next returns the script that a request is about, and its next step.
func (m *Model) next(q *chatRequest) (name string, step Step) {
	last, system := -1, ""
	for i := range q.Messages {
		switch q.Messages[i].Role {
		case "user":
			last = i
		case "system":
			system += q.Messages[i].text()
		}
	}
	if last < 0 {
		return "", Text("There is no message.")
	}
	text := q.Messages[last].text()
	if strings.Contains(system, "title generator") {
		return "", Text("A title")
	}
	_, rest, named := strings.Cut(text, "<<")
	if name, _, _ = strings.Cut(rest, ">>"); !named {
		name = ""
	}
	if len(q.Tools) == 0 && (strings.Contains(system, "summar") || strings.Contains(text, "summar")) {
		name = Summary
	}
	answers := 0
	for i := range q.Messages[last+1:] {
		if len(q.Messages[last+1+i].Calls) > 0 {
			answers++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[name] = append(m.seen[name], shown(q.Messages))
	if steps := m.scripts[name]; answers < len(steps) {
		return name, steps[answers]
	}
	return name, Text("The script is over.")
}

func shown(messages []chatMessage) (all []Message) {
	for i := range messages {
		if c := &messages[i]; c.Role != "system" {
			all = append(all, Message{c.Role, c.text(), len(c.Calls)})
		}
	}
	return all
}

func (m *Model) chat(w http.ResponseWriter, r *http.Request) {
	var q chatRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, step := m.next(&q)
	opened := make(chan struct{})
	close(opened)
	if step.Gate != "" {
		opened = m.gate(step.Gate)
	}
	if step.Status != 0 {
		select {
		case <-opened:
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(step.Status)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"status %d by script","type":"server_error"}}`, step.Status)
			return
		}
	}
	out := &stream{w: w, model: q.Model}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	words := strings.SplitAfter(step.Text, " ")
	out.delta(map[string]any{"role": "assistant", "content": ""}, "")
	if step.Text != "" {
		out.delta(map[string]any{"content": words[0]}, "")
	}
	select {
	case <-opened:
	case <-r.Context().Done():
		return
	}
	finish := "stop"
	for _, word := range words[1:] {
		out.delta(map[string]any{"content": word}, "")
	}
	for i, c := range step.Calls {
		finish = "tool_calls"
		args, err := json.Marshal(c.Args)
		if err != nil {
			return
		}
		out.delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "type": "function",
			"id": m.callID(), "function": map[string]any{"name": c.Tool, "arguments": string(args)}}}}, "")
	}
	out.delta(map[string]any{}, finish)
	out.say("[DONE]")
}

// callID returns an id that no other call has.
func (m *Model) callID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return fmt.Sprintf("call_%d", m.calls)
}

// stream is an answer on its way.
type stream struct {
	w     http.ResponseWriter
	model string
}

func (s *stream) delta(delta map[string]any, finish string) {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	chunk := map[string]any{"id": "chatcmpl", "object": "chat.completion.chunk", "created": 1, "model": s.model,
		"choices": []any{choice}}
	if finish != "" {
		choice["finish_reason"] = finish
		chunk["usage"] = map[string]int{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	}
	raw, err := json.Marshal(chunk)
	if err != nil {
		return
	}
	s.say(string(raw))
}

func (s *stream) say(data string) {
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", data)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
