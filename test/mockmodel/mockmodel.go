// Package mockmodel is a model for tests of real agents: a server that answers by scripts.
//
// It is compatible with four APIs: OpenAI's chat completions and responses, Anthropic's messages, and Gemini's
// generateContent. A script is found by its name, which a message of the user has between << and >>; the newest message
// with a name counts. The conversation tells which step is next: one step for each answer of the model with calls
// behind that message. So the model has no state that an agent's death could contradict, gates excepted.
package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
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
	// Until repeats the step until the result of a call has this text: an agent may show the model a call that was cut
	// off, or may not.
	Until string
	// Used is how many tokens of input the answer says that it took, in the API of chat completions. 0: 100.
	Used int
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

// Title is the name of the script for requests of a title.
const Title = "title"

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
	m := &Model{scripts: map[string][]Step{Summary: {Text("A summary of the conversation.")},
		Title: {Text("A title")}},
		gates: map[string]chan struct{}{}, seen: map[string][][]Message{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"input_tokens":100}`))
	})
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1beta/models/{call}", m.gemini)
	m.srv = httptest.NewServer(mux)
	return m
}

// URL returns the base address of the APIs of OpenAI.
func (m *Model) URL() string { return m.srv.URL + "/v1" }

// Root returns the base address of the other APIs.
func (m *Model) Root() string { return m.srv.URL }

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

// conversation is a request in any of the APIs.
type conversation struct {
	model    string
	system   string
	messages []Message // without those of the system
	tools    int
}

// answer writes an answer in one of the APIs.
type answer interface {
	text(word string)
	call(id, name string, args json.RawMessage)
	end() // of an answer
}

var named = regexp.MustCompile(`<<([\w-]+)>>`)

// script returns the name of the script that a conversation is about, and the messages behind the one that names it.
func (c *conversation) script() (name string, behind []Message) {
	for i, m := range slices.Backward(c.messages) {
		if found := named.FindStringSubmatch(m.Text); m.Role == "user" && found != nil {
			return found[1], c.messages[i+1:]
		}
	}
	return "", nil
}

// stepOf returns the first step that is not over behind a message.
func stepOf(steps []Step, behind []Message) Step {
	for _, s := range steps {
		i := slices.IndexFunc(behind, func(m Message) bool {
			if s.Until != "" {
				return m.Role == "tool" && strings.Contains(m.Text, s.Until)
			}
			return m.Calls > 0
		})
		if i < 0 {
			return s
		}
		behind = behind[i+1:]
	}
	return Text("The script is over.")
}

// next returns the next step of the script that a conversation is about.
func (m *Model) next(c *conversation) Step {
	newest := ""
	for _, x := range c.messages {
		if x.Role == "user" {
			newest = x.Text
		}
	}
	if newest == "" {
		return Text("There is no message.")
	}
	name, behind := c.script()
	if c.tools == 0 && (strings.Contains(c.system, "summar") || strings.Contains(newest, "summar")) {
		name = Summary
	}
	if strings.Contains(c.system, "title generator") {
		name, behind = Title, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[name] = append(m.seen[name], c.messages)
	return stepOf(m.scripts[name], behind)
}

// refuse answers with the error of a step whose gate is closed.
func (m *Model) refuse(w http.ResponseWriter, s Step) (refused bool) {
	if s.Status == 0 {
		return false
	}
	if s.Gate != "" {
		select {
		case <-m.gate(s.Gate):
			return false
		default:
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.Status)
	_, _ = fmt.Fprintf(w, `{"type":"error","error":{"message":"status %d by script","type":"server_error"}}`, s.Status)
	return true
}

// writeAnswer writes an answer.
func (m *Model) writeAnswer(r *http.Request, out answer, s Step) {
	words := strings.SplitAfter(s.Text, " ")
	if s.Text != "" {
		out.text(words[0])
	}
	if s.Gate != "" {
		select {
		case <-m.gate(s.Gate):
		case <-r.Context().Done():
			return
		}
	}
	for _, word := range words[1:] {
		out.text(word)
	}
	for _, c := range s.Calls {
		args, err := json.Marshal(c.Args)
		if err != nil {
			return
		}
		out.call(m.callID(), c.Tool, args)
	}
	out.end()
}

// callID returns an id that no other call has.
func (m *Model) callID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return fmt.Sprintf("call_%d", m.calls)
}

// decode reads a request.
func decode(w http.ResponseWriter, r *http.Request, to any) (ok bool) {
	if err := json.NewDecoder(r.Body).Decode(to); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

// stream writes events of an answer.
type stream struct{ w http.ResponseWriter }

func begin(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return stream{w}
}

// send writes an event; its name may be empty.
func (s stream) send(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		return
	}
	if name != "" {
		_, _ = fmt.Fprintf(s.w, "event: %s\n", name)
	}
	s.writeData(string(raw))
}

func (s stream) writeData(data string) {
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", data)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// object is an object of JSON.
type object = map[string]any
