package opencode

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// event is one event of any of OpenCode's streams.
type event struct {
	ID         string
	Type       string
	Seq        *int64
	Properties json.RawMessage
}

// wrapsMax is the maximum depth of envelopes around an event.
const wrapsMax = 4

// unwrap returns the event in a received JSON object. `/event` sends the event itself, `/global/event` sends it under
// payload, and the durable log under syncEvent. Types in the durable log end in a version, and the durable log repeats
// events under the same id.
func unwrap(raw json.RawMessage) (event, error) {
	for range wrapsMax {
		var w struct {
			ID         string          `json:"id"`
			Type       string          `json:"type"`
			Seq        *int64          `json:"seq"`
			Properties json.RawMessage `json:"properties"`
			Data       json.RawMessage `json:"data"`
			Payload    json.RawMessage `json:"payload"`
			Event      json.RawMessage `json:"event"`
			SyncEvent  json.RawMessage `json:"syncEvent"`
		}
		if err := json.Unmarshal(raw, &w); err != nil && !misshapen(err) {
			return event{}, fmt.Errorf("not an event: %w", err)
		}
		switch {
		case isObject(w.SyncEvent):
			raw = w.SyncEvent
		case w.Type == "" && isObject(w.Payload):
			raw = w.Payload
		case w.Type == "" && isObject(w.Event):
			raw = w.Event
		case w.Type == "":
			return event{}, errors.New("not an event: it has no type")
		case len(w.Properties) == 0 && len(w.Data) > 0:
			return event{ID: w.ID, Type: cutVersion(w.Type), Seq: w.Seq, Properties: w.Data}, nil
		default:
			return event{ID: w.ID, Type: w.Type, Seq: w.Seq, Properties: w.Properties}, nil
		}
	}
	return event{}, fmt.Errorf("not an event: wrapped more than %d times", wrapsMax)
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// cutVersion removes the version from the type of a durable event: message.updated.1.
func cutVersion(typ string) string {
	if i := strings.LastIndexByte(typ, '.'); i > 0 && strings.Trim(typ[i+1:], "0123456789") == "" {
		return typ[:i]
	}
	return typ
}

// misshapen reports whether the JSON is well-formed but a field has an unexpected type. All other fields are decoded.
func misshapen(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}

// body has the properties of all translated events.
type body struct {
	ID          string          `json:"id"`
	SessionID   string          `json:"sessionID"`
	MessageID   string          `json:"messageID"`
	RequestID   string          `json:"requestID"`
	Info        json.RawMessage `json:"info"`
	Part        json.RawMessage `json:"part"`
	Status      statusInfo      `json:"status"`
	Error       *errorInfo      `json:"error"`
	Tool        *toolRef        `json:"tool"`
	Source      *toolRef        `json:"source"`
	Questions   json.RawMessage `json:"questions"`
	Answers     json.RawMessage `json:"answers"`
	Permission  string          `json:"permission"`
	Action      string          `json:"action"`
	Patterns    []string        `json:"patterns"`
	Resources   []string        `json:"resources"`
	Metadata    json.RawMessage `json:"metadata"`
	Always      json.RawMessage `json:"always"`
	Save        json.RawMessage `json:"save"`
	Reply       string          `json:"reply"`
	Message     string          `json:"message"`
	sessionInfo sessionInfo
	messageInfo messageInfo
	part        part
}

type statusInfo struct {
	Type    string `json:"type"`
	Message string `json:"message"` // of a retry: the error
	Next    int64  `json:"next"`    // of a retry: its instant, in milliseconds
}

type toolRef struct {
	MessageID string `json:"messageID"`
	CallID    string `json:"callID"`
}

type modelRef struct {
	ID         string `json:"id"`
	ModelID    string `json:"modelID"`
	ProviderID string `json:"providerID"`
}

// name returns provider/model, as in OpenCode's configuration.
func (m modelRef) name() string {
	id := m.ModelID
	if id == "" {
		id = m.ID
	}
	if m.ProviderID == "" || id == "" {
		return cutText(id, nameBytesMax)
	}
	return cutText(m.ProviderID+"/"+id, nameBytesMax)
}

type sessionInfo struct {
	ID        string   `json:"id"`
	ParentID  string   `json:"parentID"`
	Title     string   `json:"title"`
	Agent     string   `json:"agent"`
	Directory string   `json:"directory"`
	Version   string   `json:"version"`
	Model     modelRef `json:"model"`
}

type messageInfo struct {
	ID         string          `json:"id"`
	SessionID  string          `json:"sessionID"`
	Role       string          `json:"role"`
	ParentID   string          `json:"parentID"`
	Agent      string          `json:"agent"`
	Model      modelRef        `json:"model"`
	ModelID    string          `json:"modelID"`
	ProviderID string          `json:"providerID"`
	Finish     string          `json:"finish"`
	Summary    json.RawMessage `json:"summary"` // true on a summary message; an object on a user's message
	Error      *errorInfo      `json:"error"`
	Time       struct {
		Completed json.RawMessage `json:"completed"`
	} `json:"time"`
}

func (m *messageInfo) summary() bool   { return string(m.Summary) == "true" }
func (m *messageInfo) completed() bool { return len(small(m.Time.Completed, nameBytesMax)) > 0 }

type part struct {
	ID          string     `json:"id"`
	MessageID   string     `json:"messageID"`
	SessionID   string     `json:"sessionID"`
	Type        string     `json:"type"`
	CallID      string     `json:"callID"`
	Tool        string     `json:"tool"`
	State       toolState  `json:"state"`
	Text        string     `json:"text"`
	Synthetic   bool       `json:"synthetic"`
	Ignored     bool       `json:"ignored"`
	Filename    string     `json:"filename"`
	Prompt      string     `json:"prompt"`
	Tokens      tokensInfo `json:"tokens"`
	Description string     `json:"description"`
	Metadata    struct {
		Holdfast         sentMark `json:"holdfast"`
		ProviderExecuted bool     `json:"providerExecuted"`
	} `json:"metadata"`
}

type toolState struct {
	Status   string          `json:"status"`
	Input    json.RawMessage `json:"input"`
	Title    string          `json:"title"`
	Output   string          `json:"output"`
	Error    string          `json:"error"`
	Metadata struct {
		Exit        json.RawMessage `json:"exit"`
		SessionID   string          `json:"sessionId"`
		Interrupted bool            `json:"interrupted"`
		Answers     [][]string      `json:"answers"` // of a question; nil: the result does not say
	} `json:"metadata"`
}

type tokensInfo struct {
	Input     float64 `json:"input"`
	Output    float64 `json:"output"`
	Reasoning float64 `json:"reasoning"`
	Cache     struct {
		Read  float64 `json:"read"`
		Write float64 `json:"write"`
	} `json:"cache"`
}

type errorInfo struct {
	Name string `json:"name"`
	Data struct {
		Message         string            `json:"message"`
		StatusCode      int               `json:"statusCode"`
		ResponseHeaders map[string]string `json:"responseHeaders"`
		ResponseBody    string            `json:"responseBody"`
	} `json:"data"`
}

// handler translates one type of event. A careful handler releases held facts itself.
type handler struct {
	do      func(*Translator, *session, *body)
	careful bool
}

// handlers has the handler of each translated event type.
var handlers = map[string]handler{
	"session.created":       {do: (*Translator).sessionCreated},
	"session.updated":       {do: (*Translator).sessionUpdated},
	"session.deleted":       {do: (*Translator).sessionDeleted},
	"session.status":        {do: (*Translator).sessionStatus},
	"session.idle":          {do: (*Translator).sessionIdle},
	"session.error":         {do: (*Translator).sessionError},
	"session.compacted":     {do: (*Translator).sessionCompacted},
	"message.updated":       {do: (*Translator).messageUpdated},
	"message.removed":       {do: (*Translator).messageRemoved},
	"message.part.updated":  {do: (*Translator).partUpdated, careful: true},
	"question.asked":        {do: (*Translator).questionAsked, careful: true},
	"question.v2.asked":     {do: (*Translator).questionAsked, careful: true},
	"question.replied":      {do: (*Translator).questionReplied},
	"question.v2.replied":   {do: (*Translator).questionReplied},
	"question.rejected":     {do: (*Translator).questionRejected},
	"question.v2.rejected":  {do: (*Translator).questionRejected},
	"permission.asked":      {do: (*Translator).permissionAsked, careful: true},
	"permission.v2.asked":   {do: (*Translator).permissionAsked, careful: true},
	"permission.replied":    {do: (*Translator).permissionReplied, careful: true},
	"permission.v2.replied": {do: (*Translator).permissionReplied, careful: true},
}

// eventDisposed is the event of a server that forgets what it has in memory for a directory, and does not end.
const eventDisposed = "server.instance.disposed"

// takeDisposed reports whether the server has forgotten what it had in memory for a directory since the last call.
func (t *Translator) takeDisposed() bool {
	disposed := t.disposed
	t.disposed = false
	return disposed
}

// dispatch calls the event's handler. An event without a handler is either known to be irrelevant, or reported.
func (t *Translator) dispatch(ev event) {
	h, ok := handlers[ev.Type]
	switch {
	case ev.Type == "server.connected":
		if t.began && !t.live {
			t.restart()
		}
		return
	case ev.Type == eventDisposed:
		t.disposed = true
		return
	case !ok && silent(ev.Type):
		return
	case !ok:
		t.unknown(ev.Type)
		return
	}
	b, err := parseBody(ev)
	if err != nil {
		t.problem("record %d: %s: %v", t.report.Records, cutText(ev.Type, nameBytesMax), err)
		if !misshapen(err) {
			return
		}
	}
	t.strange(ev, &b)
	id := b.session()
	if id == "" {
		// an error of the server, or of an unnamed session
		return
	}
	s := t.session(id)
	s.events++
	if s.closed {
		t.report.Late++
		return
	}
	if !h.careful {
		t.release(s)
	}
	h.do(t, s, &b)
	t.tidy(s)
}

// parseBody decodes the properties. If the error is misshapen, all other fields are decoded.
func parseBody(ev event) (body, error) {
	var b body
	err := json.Unmarshal(ev.Properties, &b)
	if err != nil && !misshapen(err) {
		return b, err
	}
	errs := []error{err}
	if len(b.Part) > 0 {
		errs = append(errs, json.Unmarshal(b.Part, &b.part))
	}
	switch {
	case len(b.Info) == 0:
	case strings.HasPrefix(ev.Type, "session."):
		errs = append(errs, json.Unmarshal(b.Info, &b.sessionInfo))
	default:
		errs = append(errs, json.Unmarshal(b.Info, &b.messageInfo))
	}
	return b, errors.Join(errs...)
}

// session returns the id of the event's session, from any of the places that may hold it.
func (b *body) session() string {
	for _, id := range []string{b.SessionID, b.part.SessionID, b.messageInfo.SessionID, b.sessionInfo.ID} {
		if id != "" {
			return id
		}
	}
	return ""
}
