// Package script is a test server for clients of endpoints that are compatible with OpenAI's chat completions. A script
// determines its answers, failures and usage.
package script

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Bytes per token, if the server counts tokens.
const bytesPerToken = 4

// Call is a tool call that the model requests.
type Call struct {
	Name      string
	Arguments string // JSON
}

// Step is one answer. The zero Step is an empty stream with a finish mark.
type Step struct {
	Status     int    // status of an error response, with Body; 0: a stream
	Body       string // of an error response
	RetryAfter string // a header
	Date       string // a header; default: the present time
	InStream   string // JSON of an error in the middle of the stream, after Text

	Text   string // sent in several chunks
	Calls  []Call
	Finish string // default: stop, or tool_calls
	Cut    bool   // the stream ends without its finish mark
	Used   int64  // tokens of the prompt; 0: counted from the messages
	Hold   func() // called in the middle of the stream, which continues when Hold returns
}

// Request is a request that the server received.
type Request struct {
	Model    string
	Messages []Message
	Tools    int  // number of offered tools
	Summary  bool // a request for a summary, which offers no tools
	Refused  bool // over the limit
}

// Message is a message of a request.
type Message struct {
	Role       string    `json:"role"`
	Content    string    `json:"content"`
	ToolCallID string    `json:"tool_call_id"`
	ToolCalls  []CallRef `json:"tool_calls"`
}

// CallRef refers to a call of an earlier answer.
type CallRef struct {
	ID string `json:"id"`
}

// Server is the endpoint: an [http.Handler]. A request without tools takes the next of Summaries, and any other request
// the next of Steps. The last step is repeated. A conversation with a call without a result, or a result without a
// call, is refused, as by real endpoints.
type Server struct {
	Steps     []Step
	Summaries []Step
	// Reply is optional. It returns the answer instead of Steps and Summaries. Concurrent requests call it
	// concurrently.
	Reply func(Request) Step
	// LimitMax is the context size in tokens, counted from the size of the messages. A larger request is refused with
	// context_length_exceeded. 0: no limit.
	LimitMax int64

	mu       sync.Mutex
	requests []Request
}

// Requests returns all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Play sets the steps that follow, in place of those that remain.
func (s *Server) Play(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Steps = steps
}

// Summarise replaces the remaining steps for summaries.
func (s *Server) Summarise(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Summaries = steps
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string            `json:"model"`
		Messages []Message         `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(raw, &asked) != nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, `{"error":{"message":"not a chat completion"}}`, http.StatusBadRequest)
		return
	}
	q := Request{Model: asked.Model, Messages: asked.Messages, Tools: len(asked.Tools), Summary: len(asked.Tools) == 0}
	used := tokens(asked.Messages)
	q.Refused = s.LimitMax > 0 && used > s.LimitMax
	if wrong := unpaired(asked.Messages); wrong != "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, wrong)
		return
	}
	step := s.next(q)
	if step.Used > 0 {
		used = step.Used
	}
	switch {
	case q.Refused:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, your `+
			`messages resulted in %d tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
			s.LimitMax, used)
	case step.Status != 0:
		if step.RetryAfter != "" {
			w.Header().Set("Retry-After", step.RetryAfter)
		}
		if step.Date != "" {
			w.Header().Set("Date", step.Date)
		}
		w.WriteHeader(step.Status)
		fmt.Fprint(w, step.Body)
	default:
		stream(w, &step, used)
	}
}

// next records a request and returns its step.
func (s *Server) next(q Request) Step {
	s.mu.Lock()
	s.requests = append(s.requests, q)
	reply := s.Reply
	s.mu.Unlock()
	if reply != nil && !q.Refused {
		return reply(q)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &s.Steps
	if q.Summary {
		list = &s.Summaries
	}
	switch {
	case q.Refused || len(*list) == 0:
		return Step{Text: "ok"}
	case len(*list) == 1:
		return (*list)[0]
	}
	step := (*list)[0]
	*list = (*list)[1:]
	return step
}

// unpaired returns the first mismatch of calls and results. Results must stand right behind the message with their
// calls.
func unpaired(messages []Message) string {
	open := map[string]bool{}
	for i, m := range messages {
		switch {
		case m.Role == "tool" && !open[m.ToolCallID]:
			return fmt.Sprintf("message %d: a result for %q, which no call right before it wants", i, m.ToolCallID)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
			continue
		case len(open) > 0:
			return fmt.Sprintf("message %d: %d calls before it have no result", i, len(open))
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%d calls have no result", len(open))
	}
	return ""
}

func tokens(messages []Message) int64 {
	bytes := 0
	for _, m := range messages {
		bytes += len(m.Content) + bytesPerToken
	}
	return int64(bytes / bytesPerToken)
}

// stream sends an answer as a stream.
func stream(w http.ResponseWriter, step *Step, used int64) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = []byte(`{"error":{"message":"the script cannot be encoded"}}`)
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	fmt.Fprint(w, ": a comment, as some send to keep the line open\n\n")
	half := len(step.Text) / 2
	for _, piece := range []string{step.Text[:half], step.Text[half:]} {
		if piece != "" {
			send(delta(map[string]any{"content": piece}, nil))
		}
		if step.Hold != nil {
			step.Hold()
			step.Hold = nil
		}
	}
	for i, c := range step.Calls {
		send(delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": fmt.Sprint("call_", i),
			"type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}}}, nil))
		send(delta(map[string]any{"tool_calls": []any{map[string]any{"index": i,
			"function": map[string]any{"arguments": c.Arguments}}}}, nil))
	}
	switch {
	case step.InStream != "":
		fmt.Fprintf(w, "data: %s\n\n", step.InStream)
		return
	case step.Cut:
		return
	}
	finish := step.Finish
	if finish == "" {
		finish = "stop"
		if len(step.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	send(delta(map[string]any{}, finish))
	send(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": used,
		"completion_tokens": len(step.Text)/bytesPerToken + 1, "total_tokens": used}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func delta(d map[string]any, finish any) map[string]any {
	return map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}}
}
