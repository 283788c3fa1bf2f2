package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ErrMalformed is in the chain of every error about input that cannot be read. Do not retry with the same input.
var ErrMalformed = errors.New("malformed")

// ErrOutOfRole is in the chain of every error about a fact that its writer may not append.
var ErrOutOfRole = errors.New("out of role")

// FieldError names the field of a request, a fact or a policy that is invalid.
type FieldError struct {
	Field string
	Err   error
}

// Error returns the field and the reason.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason, usually [ErrMalformed].
func (e *FieldError) Unwrap() error { return e.Err }

func bad(field, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)}
}

// Standing is the ending that was there before a request.
type Standing struct {
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Answers []Answer  `json:"answers,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Seq     uint64    `json:"seq,omitempty"`
	Prompt  string    `json:"prompt,omitempty"`
}

// Refusal is the error reply of a service: an HTTP-like code, a sentence for people, and a body whose shape depends on
// the code (see the contract, section 4). It travels in the micro headers and as the reply's JSON body.
type Refusal struct {
	Code      int               // HTTP-like status
	Message   string            // what is wrong, and what to do
	Field     string            // 400, 403: the field
	What      string            // 404: what does not exist
	Stands    *Standing         // 409, 410
	LimitMax  int               // 413: bytes
	Questions map[string]string // 422: reason by question id
}

// Error returns the message, and the code behind it: a person reads the words first.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Message, r.Code) }

// Body returns the JSON body of the reply.
func (r *Refusal) Body() []byte {
	var v any
	switch {
	case r.Questions != nil:
		v = map[string]any{"questions": r.Questions, "reason": r.Message}
	case r.Stands != nil:
		v = r.Stands
	case r.What != "":
		v = map[string]string{"what": r.What}
	case r.LimitMax > 0:
		v = map[string]int{"limit": r.LimitMax}
	case r.Field != "":
		v = map[string]string{"field": r.Field, "reason": r.Message}
	default:
		v = map[string]string{"reason": r.Message}
	}
	body, err := json.Marshal(v)
	// a Refusal always encodes
	if err != nil {
		return []byte(`{}`)
	}
	return body
}

// ParseRefusal decodes a refusal from a reply's code, description and body.
func ParseRefusal(code int, message string, body []byte) *Refusal {
	r := &Refusal{Code: code, Message: message}
	var v struct {
		Standing
		Field     string            `json:"field"`
		What      string            `json:"what"`
		Limit     int               `json:"limit"`
		Questions map[string]string `json:"questions"`
	}
	if json.Unmarshal(body, &v) != nil {
		return r
	}
	r.Field, r.What, r.LimitMax, r.Questions = v.Field, v.What, v.Limit, v.Questions
	if v.Status != "" {
		r.Stands = &v.Standing
	}
	return r
}

// BadRequest refuses a malformed request (400). The field is that of a [FieldError] in the chain. The code says
// that the request is malformed, so the message, which a person reads, does not repeat it.
func BadRequest(err error) *Refusal {
	r := &Refusal{Code: http.StatusBadRequest,
		Message: strings.Replace(err.Error(), ErrMalformed.Error()+": ", "", 1)}
	if fe, ok := errors.AsType[*FieldError](err); ok {
		r.Field = fe.Field
	} else {
		r.Field = "body"
	}
	return r
}

// ReadRequest decodes a service's request. It refuses a malformed one (400) and names the field. An empty body is read
// as {}.
func ReadRequest(body []byte, to any) error {
	if len(body) == 0 {
		body = []byte(`{}`)
	}
	err := ReadJSON(body, to)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return &Refusal{
			Code:    http.StatusBadRequest,
			Field:   wrong.Field,
			Message: fmt.Sprintf("%s: want %s, got %s", wrong.Field, wrong.Type, wrong.Value),
		}
	}
	return BadRequest(fmt.Errorf("%w: the request is not JSON: %v", ErrMalformed, err))
}

// NotYours refuses a request whose body names another sender than its subject (403).
func NotYours(field, message string) *Refusal {
	return &Refusal{Code: http.StatusForbidden, Message: message, Field: field}
}

// NotFound refuses a request about something that does not exist (404).
func NotFound(what, id string) *Refusal {
	return &Refusal{Code: http.StatusNotFound, Message: fmt.Sprintf("no such %s: %s", what, id), What: what}
}

// Conflict refuses a request that contradicts an earlier decision (409).
func Conflict(message string, stands Standing) *Refusal {
	return &Refusal{Code: http.StatusConflict, Message: message, Stands: &stands}
}

// Gone refuses a request about something that has ended differently (410).
func Gone(message string, stands Standing) *Refusal {
	return &Refusal{Code: http.StatusGone, Message: message, Stands: &stands}
}

// TooLarge refuses content over the limit, in bytes (413).
func TooLarge(message string, limitBytes int) *Refusal {
	return &Refusal{Code: http.StatusRequestEntityTooLarge, Message: message, LimitMax: limitBytes}
}

// Unavailable refuses a request that may be retried (503).
func Unavailable(message string) *Refusal {
	return &Refusal{Code: http.StatusServiceUnavailable, Message: message}
}
