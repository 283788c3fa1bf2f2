package opencode

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// object is a JSON object of the server.
type object = map[string]any

// fakeServer behaves as OpenCode 1.18.33 does, as far as the recordings show it: sessions and messages are stored;
// status, prompts and MCP entries are in the memory of the process.
type fakeServer struct {
	t   *testing.T
	srv *httptest.Server

	mu       sync.Mutex
	down     bool // connections are closed without an answer
	sessions []string
	messages map[string][]*fakeMessage
	seq      map[string]int // of a session's durable events
	busy     map[string]bool
	waits    map[string]object // by session that waits for a retry of its own: its status
	prompts  map[string]object // by id; questions and permissions
	mcp      object
	streams  map[chan string]bool
	events   int
	accepted int      // streams so far
	calls    []string // each request that changes something: method, path, body
	polls    int      // requests for what sessions do
	enough   int      // the number of looks at which reached is closed
	reached  chan struct{}
	where    map[string]string // directories of sessions that are not in /w
	asked    string            // the directory of the present request
	mute     string            // the next request with this in its path is carried out, and its reply is lost
	refuse   map[string]int    // by a part of method and path: the status that answers it
	deaf     string            // connections with this in their path are closed: the server has not got the request
	refused  int               // requests that refuse has answered
	unheard  int               // requests that deaf has dropped
	boots    int               // so many of the next requests for MCP entries get no reply
	// first has, by prompt, the answer of a person in OpenCode who is quicker than the next request about the prompt.
	// {} is a dismissal.
	first map[string]object
	// onStream is called, unlocked, before a stream is connected
	onStream func()
	// onReply is called, unlocked, after a decision about a prompt was taken and before its request is answered
	onReply func()
	// onSummarize is called, unlocked, before summarize is answered
	onSummarize func(session string)
	config      object // what the server says of its configuration
	// onPrompt is called, unlocked, after prompt_async was accepted
	onPrompt func(session string, body object)
}

type fakeMessage struct {
	Info  object   `json:"info"`
	Parts []object `json:"parts"`
}

func newFake(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, messages: map[string][]*fakeMessage{}, seq: map[string]int{}, refuse: map[string]int{},
		config: object{"compaction": object{"auto": false}}}
	f.forget()
	f.srv = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() { f.cut(); f.srv.Close() })
	return f
}

// forget clears the memory of the process.
func (f *fakeServer) forget() {
	f.busy, f.prompts, f.mcp, f.streams = map[string]bool{}, map[string]object{}, object{}, map[chan string]bool{}
	f.waits = map[string]object{}
}

// cut ends all streams.
func (f *fakeServer) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		close(s)
	}
	f.streams = map[chan string]bool{}
}

// kill ends the process; start begins the next one on the same store.
func (f *fakeServer) kill() {
	f.cut()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = true
	f.forget()
}

func (f *fakeServer) start() { f.set(func() { f.down = false }) }

func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// emit sends an event to all streams.
func (f *fakeServer) emit(typ string, properties any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.emitLocked(typ, properties)
}

func (f *fakeServer) emitLocked(typ string, properties any) {
	f.events++
	f.sendLocked(string(encode(object{"directory": "/w", "payload": object{"id": fmt.Sprintf("evt_%05d", f.events),
		"type": typ, "properties": properties}})))
}

// sendLocked sends one line of data to all streams.
func (f *fakeServer) sendLocked(data string) {
	for s := range f.streams {
		s <- data
	}
}

// session stores a session.
func (f *fakeServer) session(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions = append(f.sessions, id)
	f.emitLocked("session.created", object{"sessionID": id, "info": f.info(id)})
}

func (f *fakeServer) info(id string) object {
	parent, _, sub := strings.Cut(id, "-sub")
	info := object{"id": id, "title": "work " + id, "directory": "/w", "version": "1.18.33"}
	if sub {
		info["parentID"] = parent
	}
	if dir := f.where[id]; dir != "" {
		info["directory"] = dir
	}
	return info
}

// put stores a message or a newer version of it, and its event.
func (f *fakeServer) put(session string, info object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(session, info)
	f.emitLocked("message.updated", object{"sessionID": session, "info": info})
}

func (f *fakeServer) putLocked(session string, info object) {
	info["sessionID"] = session
	f.seq[session]++
	for _, m := range f.messages[session] {
		if m.Info["id"] == info["id"] {
			m.Info = info
			return
		}
	}
	f.messages[session] = append(f.messages[session], &fakeMessage{Info: info, Parts: []object{}})
}

// part stores a part of a message, and its event.
func (f *fakeServer) part(session, message string, part object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.partLocked(session, message, part)
}

func (f *fakeServer) partLocked(session, message string, part object) {
	part["sessionID"], part["messageID"] = session, message
	f.seq[session]++
	for _, m := range f.messages[session] {
		if m.Info["id"] != message {
			continue
		}
		i := slices.IndexFunc(m.Parts, func(p object) bool { return p["id"] == part["id"] })
		if i >= 0 {
			m.Parts[i] = part
		} else {
			m.Parts = append(m.Parts, part)
		}
	}
	f.emitLocked("message.part.updated", object{"sessionID": session, "part": part})
}

// status sets what a session does, with its event.
func (f *fakeServer) status(session string, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.statusLocked(session, busy)
}

func (f *fakeServer) statusLocked(session string, busy bool) {
	delete(f.busy, session)
	if busy {
		f.busy[session] = true
		f.emitLocked("session.status", object{"sessionID": session, "status": object{"type": "busy"}})
		return
	}
	f.emitLocked("session.status", object{"sessionID": session, "status": object{"type": "idle"}})
	f.emitLocked("session.idle", object{"sessionID": session})
}

// fails has the model call of a run fail: the run waits for the server's own retry.
func (f *fakeServer) fails(session, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := object{"type": "retry", "attempt": 1, "message": text, "next": time.Now().Add(time.Minute).UnixMilli()}
	f.busy[session], f.waits[session] = true, w
	f.emitLocked("session.status", object{"sessionID": session, "status": w})
}

func storedTool(id, call, name, status string, more object) object {
	state := object{"status": status, "input": object{"command": "make"}}
	if name == "question" {
		state["input"] = object{"questions": []object{{"question": "Which?", "header": "W"}}}
	}
	for k, v := range more {
		state[k] = v
	}
	return object{"id": id, "type": "tool", "callID": call, "tool": name, "state": state}
}

func assistant(id, parent string, more object) object {
	info := object{"id": id, "role": "assistant", "parentID": parent, "modelID": "big", "providerID": "mock",
		"time": object{"created": 1}}
	for k, v := range more {
		info[k] = v
	}
	return info
}

// run begins a turn: a user's message and a model call with a running tool.
func (f *fakeServer) run(session, message, call, name string) {
	f.session(session)
	f.put(session, object{"id": message, "role": "user", "agent": "build",
		"model": object{"providerID": "mock", "modelID": "big"}, "time": object{"created": 1}})
	f.part(session, message, object{"id": "p-" + message, "type": "text", "text": "do it"})
	f.status(session, true)
	f.put(session, assistant("a-"+message, message, nil))
	f.part(session, "a-"+message, storedTool("p-"+call, call, name, "running", nil))
}

// question asks a question in a call.
func (f *fakeServer) question(session, id, message, call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := object{"id": id, "sessionID": session, "tool": object{"messageID": "a-" + message, "callID": call},
		"questions": []object{{"question": "Which?", "header": "W", "options": []object{{"label": "Postgres"},
			{"label": "SQLite"}}}}}
	f.prompts[id] = q
	f.emitLocked("question.asked", q)
}

// permission asks for a permission in a call.
func (f *fakeServer) permission(session, id, message, call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := object{"id": id, "sessionID": session, "tool": object{"messageID": "a-" + message, "callID": call},
		"permission": "bash", "patterns": []string{"rm x"}, "metadata": object{"command": "rm x"},
		"always": []string{"rm *"}}
	f.prompts[id] = p
	f.emitLocked("permission.asked", p)
}

// finish ends a turn as the recordings show it: the call, the step, the next step, idle.
func (f *fakeServer) finish(session, message, call string) {
	f.part(session, "a-"+message, storedTool("p-"+call, call, "bash", "completed", object{"output": "done"}))
	f.put(session, assistant("a-"+message, message, object{"finish": "stop",
		"time": object{"created": 1, "completed": 2}}))
	f.status(session, false)
}

// made returns the requests that changed something and whose text has all of these words.
func (f *fakeServer) made(words ...string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(c, w) }) {
			all = append(all, c)
		}
	}
	return all
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

func (f *fakeServer) serve(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/global/event" {
		f.stream(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	if f.down {
		f.mu.Unlock()
		hangUp(w)
		return
	}
	route := req.Method + " " + req.URL.Path
	if f.boots > 0 && route == "GET /mcp" {
		f.boots--
		f.mu.Unlock()
		<-req.Context().Done()
		return
	}
	if f.deaf != "" && strings.Contains(route, f.deaf) {
		f.unheard++
		f.mu.Unlock()
		hangUp(w)
		return
	}
	if req.Method != http.MethodGet && req.URL.Path != "/sync/history" {
		f.calls = append(f.calls, route+" "+string(body))
	}
	for part, status := range f.refuse {
		if strings.Contains(route, part) {
			f.refused++
			f.mu.Unlock()
			if status == http.StatusOK {
				w.Header().Set("Content-Type", "text/html")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>no</html>")
			return
		}
	}
	f.asked = req.URL.Query().Get("directory")
	status, reply, then := f.answer(req.Method, strings.Split(strings.Trim(req.URL.Path, "/"), "/"), body)
	raw := encode(reply)
	muted := f.mute != "" && strings.Contains(route, f.mute)
	if muted {
		f.mute = ""
	}
	taken := f.onReply
	f.mu.Unlock()
	if taken != nil && strings.Contains(route, "/reply") {
		taken()
	}
	if muted {
		hangUp(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, _ = w.Write(raw)
	}
	if then != nil {
		then()
	}
}

// answer is the table of the endpoints.
func (f *fakeServer) answer(method string, path []string, raw []byte) (status int, reply any, then func()) {
	var body object
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &body); err != nil {
			return http.StatusBadRequest, err.Error(), nil
		}
	}
	at := method + " " + path[0]
	if len(path) > 1 {
		at += "/" + path[len(path)-1]
	}
	switch {
	case at == "GET mcp":
		return http.StatusOK, f.mcp, nil
	case at == "POST mcp":
		f.mcp[body["name"].(string)] = object{"status": "disabled"}
		return http.StatusOK, f.mcp, nil
	case at == "GET session/status":
		if f.polls++; f.reached != nil && f.polls > f.enough {
			close(f.reached)
			f.reached = nil
		}
		all := object{}
		for id := range f.busy {
			if f.elsewhere(id) {
				continue
			}
			all[id] = object{"type": "busy"}
			if w := f.waits[id]; w != nil {
				all[id] = w
			}
		}
		return http.StatusOK, all, nil
	case at == "GET question", at == "GET permission":
		all := []object{}
		for _, p := range f.prompts {
			id, _ := p["sessionID"].(string)
			if (p["permission"] != nil) == (path[0] == "permission") && !f.elsewhere(id) {
				all = append(all, p)
			}
		}
		return http.StatusOK, all, nil
	case path[0] == "question" || path[0] == "permission":
		return f.settle(path[0], path[1], path[2], body)
	case path[0] == "sync":
		return f.sync(path[1], body)
	case at == "GET config/providers":
		return http.StatusOK, object{"providers": []object{{"id": "mock", "models": object{"big": object{
			"limit": object{"context": 1000, "output": 100}}}}}}, nil
	case at == "GET config":
		return http.StatusOK, f.config, nil
	case at == "GET session":
		all := []object{}
		for _, id := range f.sessions {
			all = append(all, f.info(id))
		}
		return http.StatusOK, all, nil
	case path[0] == "session":
		return f.ofSession(method, path, body)
	}
	return http.StatusNotFound, object{"name": "NotFoundError"}, nil
}

// elsewhere reports whether a session is in another directory than the one of the present request.
func (f *fakeServer) elsewhere(id string) bool { return f.where[id] != "" && f.where[id] != f.asked }

// settle answers a prompt. A prompt that is settled is not found.
func (f *fakeServer) settle(kind, id, action string, body object) (int, any, func()) {
	if decided := f.first[id]; decided != nil {
		delete(f.first, id)
		action := "reply"
		if len(decided) == 0 {
			action = "reject"
		}
		f.settle(kind, id, action, decided)
	}
	p := f.prompts[id]
	if p == nil || f.elsewhere(p["sessionID"].(string)) {
		return http.StatusNotFound, object{"name": "NotFoundError"}, nil
	}
	delete(f.prompts, id)
	reply := object{"sessionID": p["sessionID"], "requestID": id}
	switch {
	case action == "reject":
		f.emitLocked("question.rejected", reply)
	case kind == "question":
		reply["answers"] = body["answers"]
		f.emitLocked("question.replied", reply)
	default:
		reply["reply"], reply["message"] = body["reply"], body["message"]
		f.emitLocked("permission.replied", reply)
	}
	return http.StatusOK, true, nil
}

// sync is the durable log: its last sequence, and an event that is appended if it is the next one.
func (f *fakeServer) sync(action string, body object) (int, any, func()) {
	if action == "history" {
		all := []object{}
		for id, seq := range f.seq {
			all = append(all, object{"id": "evt_00000000000000000000000000", "aggregate_id": id, "seq": seq})
		}
		return http.StatusOK, all, nil
	}
	e := body["events"].([]any)[0].(object)
	id := e["aggregateID"].(string)
	if int(e["seq"].(float64)) != f.seq[id]+1 {
		return http.StatusBadRequest, object{"name": "conflict"}, nil
	}
	// it publishes no event
	f.putLocked(id, e["data"].(object)["info"].(object))
	return http.StatusOK, object{"sessionID": id}, nil
}

func (f *fakeServer) ofSession(method string, path []string, body object) (int, any, func()) {
	id := path[1]
	if !slices.Contains(f.sessions, id) {
		return http.StatusNotFound, object{"name": "NotFoundError"}, nil
	}
	switch {
	case len(path) == 2:
		return http.StatusOK, f.info(id), nil
	case path[2] == "children":
		all := []object{}
		for _, other := range f.sessions {
			if strings.HasPrefix(other, id+"-sub") {
				all = append(all, f.info(other))
			}
		}
		return http.StatusOK, all, nil
	case path[2] == "abort":
		// it leaves neither an error nor a finish
		if f.waits[id] != nil {
			delete(f.waits, id)
			f.statusLocked(id, false)
		}
		return http.StatusOK, true, nil
	case path[2] == "summarize":
		hook := f.onSummarize
		return http.StatusOK, true, func() {
			if hook != nil {
				hook(id)
			}
		}
	case path[2] == "prompt_async":
		hook := f.onPrompt
		return http.StatusNoContent, nil, func() {
			if hook != nil {
				hook(id, body)
			}
		}
	case len(path) == 3:
		all := []*fakeMessage{}
		return http.StatusOK, append(all, f.messages[id]...), nil
	case method == http.MethodPatch:
		f.partLocked(id, body["messageID"].(string), body)
		return http.StatusOK, body, nil
	case method == http.MethodDelete:
		f.messages[id] = slices.DeleteFunc(f.messages[id], func(m *fakeMessage) bool { return m.Info["id"] == path[3] })
		f.emitLocked("message.removed", object{"sessionID": id, "messageID": path[3]})
		return http.StatusOK, true, nil
	}
	return http.StatusNotFound, object{"name": "NotFoundError"}, nil
}

// stream serves the events until the stream is cut.
func (f *fakeServer) stream(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	hook := f.onStream
	f.onStream = nil
	f.mu.Unlock()
	if hook != nil {
		hook()
	}
	s := make(chan string, 1000)
	f.mu.Lock()
	if f.down {
		f.mu.Unlock()
		hangUp(w)
		return
	}
	f.streams[s] = true
	f.accepted++
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: "+`{"payload":{"type":"server.connected","properties":{}}}`+"\n\n")
	flusher, ok := w.(http.Flusher)
	if !ok {
		return
	}
	flusher.Flush()
	for {
		select {
		case data, open := <-s:
			if !open {
				hangUp(w)
				return
			}
			_, _ = io.WriteString(w, "data: "+data+"\n\n")
			flusher.Flush()
		case <-req.Context().Done():
			f.mu.Lock()
			delete(f.streams, s)
			f.mu.Unlock()
			return
		}
	}
}
