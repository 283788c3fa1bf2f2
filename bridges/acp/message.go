package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Methods that the proxy looks into.
const (
	methodPrompt        = "session/prompt"
	methodCancel        = "session/cancel"
	methodLoad          = "session/load"
	methodResume        = "session/resume"
	methodPermission    = "session/request_permission"
	methodElicitation   = "elicitation/create"
	methodCancelRequest = "$/cancel_request"
)

// message is a JSON-RPC message with the bytes that it was read from.
type message struct {
	raw    []byte
	spans  []span
	id     json.RawMessage // nil: a notification
	method string
	params json.RawMessage
	result json.RawMessage
	failed json.RawMessage // the member "error"
}

// span is a member of a JSON object and the place of its value.
type span struct {
	name       string
	begin, end int
}

// errForeign says that a line is no JSON object.
var errForeign = errors.New("no JSON object")

func isForeign(err error) bool { return errors.Is(err, errForeign) }

// parse reads a message. The error is errForeign for a line that is neither a JSON object nor an array.
func parse(raw []byte) (message, error) {
	m := message{raw: raw}
	text := bytes.TrimSpace(raw)
	if len(text) > 0 && text[0] == '[' && json.Valid(text) {
		return m, errors.New("a batch")
	}
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		if len(text) > 0 && text[0] == '{' && startsWithObject(text) {
			return m, errors.New("text behind the object")
		}
		return m, errForeign
	}
	var err error
	if m.spans, err = spansOf(raw); err != nil {
		return m, err
	}
	for _, s := range m.spans {
		value := json.RawMessage(raw[s.begin:s.end])
		switch s.name {
		case "id":
			m.id = value
		case "method":
			if err := json.Unmarshal(value, &m.method); err != nil {
				return m, fmt.Errorf("method: %w", err)
			}
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failed = value
		}
	}
	return m, nil
}

// startsWithObject reports whether a text begins with a whole JSON object.
func startsWithObject(text []byte) bool {
	var object json.RawMessage
	return json.NewDecoder(bytes.NewReader(text)).Decode(&object) == nil
}

// spansOf returns the members of a JSON object in their order. A member that is there twice is an error.
func spansOf(raw []byte) ([]span, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("no object")
	}
	var spans []span
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if slices.ContainsFunc(spans, func(s span) bool { return s.name == name }) {
			return nil, fmt.Errorf("the member %.40q is there twice", name)
		}
		end := int(dec.InputOffset())
		spans = append(spans, span{name, end - len(value), end})
	}
	return spans, nil
}

func (m *message) isRequest() bool { return m.method != "" && m.id != nil }
func (m *message) isReply() bool   { return m.method == "" && m.id != nil }

// withID returns the bytes of the message with another id.
func (m *message) withID(id json.RawMessage) []byte { return splice(m.raw, m.spans, "id", id) }

// withParam returns the bytes of the message with another value of a parameter.
func (m *message) withParam(name string, value json.RawMessage) []byte {
	spans, err := spansOf(m.params)
	if err != nil {
		return m.raw
	}
	return splice(m.raw, m.spans, "params", splice(m.params, spans, name, value))
}

// withMember returns a JSON object with another value of a member.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	all := members(object)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all[name] = value
	return encode(all)
}

func splice(raw []byte, spans []span, name string, value []byte) []byte {
	for _, s := range spans {
		if s.name == name {
			return slices.Concat(raw[:s.begin], value, raw[s.end:])
		}
	}
	return raw
}

// ownID returns the id of a reply, if it is one that the proxy can have given.
func (m *message) ownID() (uint64, bool) {
	id, err := strconv.ParseUint(string(m.id), 10, 64)
	return id, err == nil
}

func (m *message) sessionID() string { return text(members(m.params)["sessionId"]) }

// members returns the members of a JSON object by their exact names; none for other JSON.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// list returns the elements of a JSON array; none for other JSON.
func list(raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// text returns a JSON string; "" for other JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// count returns a JSON number as a whole number within the limits of a count; 0 for other JSON.
func count(raw json.RawMessage) int64 {
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0
	}
	return int64(max(0, min(f, tokensMax)))
}

// tokensMax is the largest count of tokens that is recorded.
const tokensMax = 1_000_000_000

// encode returns v as JSON. It gets strings, numbers and JSON that was decoded before, so it cannot fail.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
