package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// Codes of errors that no harness has reported: those of JSON-RPC, and two of HTTP.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeNoMethod = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeTooLarge = http.StatusRequestEntityTooLarge
	codeBusy     = http.StatusTooManyRequests
)

// Error is the error of a reply. A program decides by data.error.
type Error struct {
	Code    int        `json:"code"`    // of the contract (400 to 503), or of JSON-RPC
	Message string     `json:"message"` // for people
	Data    *ErrorData `json:"data,omitempty"`
}

// ErrorData says what an error is. The sidecar sets error, and what belongs to it. The agent sets failure, provider and
// had_output where a turn or a compaction fails; it may return the data of an error of the sidecar as it is.
type ErrorData struct {
	Error   string          `json:"error,omitempty"`   // the name of the error, from the list of errors
	Ending  *Ending         `json:"ending,omitempty"`  // ended: how
	Step    string          `json:"step,omitempty"`    // outcome_unknown: its name
	Call    string          `json:"call,omitempty"`    // outcome_unknown: the call that has it in the log
	Reason  string          `json:"reason,omitempty"`  // outcome_unknown, stopped: why
	Actor   string          `json:"actor,omitempty"`   // stopped: person, compaction or stall
	By      string          `json:"by,omitempty"`      // stopped: the person
	Refusal json.RawMessage `json:"refusal,omitempty"` // refused: the body of the service's reply
	Message string          `json:"message,omitempty"` // send: the id of the message; send it again under this id

	Failure   *events.Failure `json:"failure,omitempty"`    // what failed, where the agent knows the kind
	Provider  *Provider       `json:"provider,omitempty"`   // what a provider answered; the kind follows from it
	HadOutput bool            `json:"had_output,omitempty"` // something of the turn was shown already
}

// Ending is how something ended that the agent took for open.
type Ending struct {
	Entity  string    `json:"entity"` // turn, tool, prompt …
	ID      string    `json:"id"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}

// Provider is an error as a provider of models reported it.
type Provider struct {
	Status     int    `json:"status,omitempty"`      // HTTP status
	Code       string `json:"code,omitempty"`        // the provider's code or type
	Text       string `json:"text,omitempty"`        // for people; also searched for words
	Body       string `json:"body,omitempty"`        // searched for words, but not shown
	RetryAfter string `json:"retry_after,omitempty"` // the header: seconds
}

// ErrorKind is one line of the list of errors.
type ErrorKind struct {
	Name string
	Code int
	err  error
	Text string // for people
}

// errorKinds is the list. The first line that is in the chain of an error counts.
var errorKinds = []ErrorKind{
	{Name: "outcome_unknown", Code: http.StatusConflict, err: harness.ErrOutcomeUnknown},
	{Name: "name_taken", Code: http.StatusConflict, err: harness.ErrNameTaken},
	{Name: "pending", Code: http.StatusServiceUnavailable, err: harness.ErrPending},
	{Name: "stopped", Code: http.StatusConflict, err: harness.ErrStopped},
	{Name: "fenced", Code: http.StatusConflict, err: harness.ErrFenced},
	{Name: "lease_lost", Code: http.StatusConflict, err: harness.ErrLeaseLost},
	{Name: "session_closed", Code: http.StatusConflict, err: harness.ErrSessionClosed},
	{Name: "released", Code: http.StatusConflict, err: harness.ErrReleased},
	{Name: "owned", Code: http.StatusConflict, err: harness.ErrOwned},
	{Name: "ended", Code: http.StatusConflict, err: harness.ErrEnded},
	{Name: "unread", Code: http.StatusConflict, err: harness.ErrUnread},
	{Name: "not_ready", Code: http.StatusConflict, err: harness.ErrNotReady},
	{Name: "running", Code: http.StatusConflict, err: harness.ErrRunning},
	{Name: "limit", Code: http.StatusConflict, err: harness.ErrLimit},
	{Name: "closed", Code: http.StatusConflict, err: harness.ErrClosed},
	{Name: "not_connected", Code: http.StatusConflict, err: errNotConnected},
	{Name: "connected", Code: http.StatusConflict, err: errConnected},
	{Name: "closed_id", Code: http.StatusGone, err: harness.ErrClosedID},
	{Name: "unknown", Code: http.StatusNotFound, err: harness.ErrUnknown},
	{Name: "not_found", Code: http.StatusNotFound, err: harness.ErrNotFound},
	{Name: "no_cell", Code: http.StatusNotFound, err: harness.ErrNoCell},
	{Name: "forbidden", Code: http.StatusForbidden, err: harness.ErrForbidden},
	{Name: "malformed", Code: http.StatusBadRequest, err: events.ErrMalformed},
	{Name: "out_of_role", Code: http.StatusForbidden, err: events.ErrOutOfRole},
	{Name: "buffer_full", Code: http.StatusServiceUnavailable, err: harness.ErrBufferFull},
	{Name: "full", Code: http.StatusServiceUnavailable, err: harness.ErrFull},
	{Name: "unreachable", Code: http.StatusServiceUnavailable, err: harness.ErrUnreachable},
	{Name: "shutdown", Code: http.StatusServiceUnavailable, err: ErrShutdown},
	{Name: "gone", Code: http.StatusServiceUnavailable, err: ErrGone},
	{Name: "cancelled", Code: http.StatusServiceUnavailable, err: errCancelled},
	{Name: "cancelled", Code: http.StatusServiceUnavailable, err: context.Canceled},
	{Name: "unreachable", Code: http.StatusServiceUnavailable, err: context.DeadlineExceeded},
}

// nameRefused is the name of an error that a service has replied with; its code is that of the reply.
const nameRefused = "refused"

// nameInternal is the name of an error that is in no list.
const nameInternal = "internal"

// protocolNames are the names of the errors that concern a message, by code.
var protocolNames = map[int]string{codeParse: "not_json", codeInvalid: "invalid", codeNoMethod: "no_method",
	codeParams: "params", codeTooLarge: "too_large", codeBusy: "busy"}

// ErrorKinds returns the list of errors: each name with its code. The code of refused is that of the service's reply.
func ErrorKinds() []ErrorKind {
	var list []ErrorKind
	seen := map[string]bool{}
	for _, k := range errorKinds {
		if !seen[k.Name] {
			seen[k.Name] = true
			list = append(list, ErrorKind{Name: k.Name, Code: k.Code, Text: plain(k.err)})
		}
	}
	for _, e := range []struct {
		code int
		text string
	}{
		{codeParse, errNotJSON.Error()}, {codeInvalid, errNotMessage.Error()},
		{codeNoMethod, "there is no such method"}, {codeParams, "the params do not fit the method"},
		{codeTooLarge, errTooLong.Error()}, {codeBusy, errBusy.Error()},
	} {
		list = append(list, ErrorKind{Name: protocolNames[e.code], Code: e.code, Text: e.text})
	}
	return append(list,
		ErrorKind{Name: nameRefused, Code: http.StatusBadRequest,
			Text: "a service refused the request; the code is that of its reply, 400 to 503"},
		ErrorKind{Name: nameInternal, Code: codeInternal, Text: "an error without a name: the message says what it is"})
}

// protocolError is the error of a message that was not run.
func protocolError(code int, err error) *Error {
	return &Error{Code: code, Message: err.Error(), Data: &ErrorData{Error: protocolNames[code]}}
}

// errorOf returns an error for a reply.
func errorOf(err error) *Error {
	e := &Error{Code: codeInternal, Message: plain(err), Data: &ErrorData{Error: nameInternal}}
	if r, ok := errors.AsType[*events.Refusal](err); ok {
		e.Code, e.Data.Error, e.Data.Refusal = r.Code, nameRefused, r.Body()
	}
	for _, k := range errorKinds {
		if errors.Is(err, k.err) && e.Data.Error != nameRefused {
			e.Code, e.Data.Error = k.Code, k.Name
			break
		}
	}
	if u, ok := errors.AsType[*harness.UnknownOutcomeError](err); ok {
		e.Data.Step, e.Data.Call, e.Data.Reason = u.Step, u.Call, u.Reason
	}
	if s, ok := errors.AsType[*harness.StopError](err); ok {
		e.Data.Actor, e.Data.By, e.Data.Reason = s.Actor, s.By, s.Reason
	}
	if s, ok := errors.AsType[*harness.EndedError](err); ok {
		e.Data.Ending = &Ending{Entity: s.Stands.Entity, ID: s.Stands.ID, Outcome: s.Stands.Outcome,
			Reason: s.Stands.Reason, At: s.Stands.At}
	}
	if s, ok := errors.AsType[*sentError](err); ok {
		e.Data.Message = s.id
	}
	return e
}

// plain returns the text of an error without the name of the Go package, which the agent does not see.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "harness: ", "") }

// sentError is the error of a message under an id that the harness chose.
type sentError struct {
	id  string
	err error
}

// Error implements error.
func (e *sentError) Error() string { return e.err.Error() }

// Unwrap returns what was wrong.
func (e *sentError) Unwrap() error { return e.err }

// clipText shortens a text that the log keeps: a turn whose end cannot be stored would stay open.
func clipText(text string) string {
	if len(text) <= failureBytes {
		return text
	}
	return strings.ToValidUTF8(text[:failureBytes], "") + "…"
}

// failed returns the agent's error as one that the harness stores the end of a turn from.
func (e *Error) failed() error {
	text := clipText(e.Message)
	if text == "" {
		text = "the agent named no reason"
	}
	d := e.Data
	switch {
	case d == nil:
	case d.Failure != nil && d.Failure.Kind != "":
		f := *d.Failure
		if f.Text == "" {
			f.Text = text
		}
		f.Kind, f.Text = clip(f.Kind), clipText(f.Text)
		return &harness.FailureError{Failure: f, HadOutput: d.HadOutput}
	case d.Provider != nil:
		p := failure.Raw{Status: d.Provider.Status, Code: d.Provider.Code, Text: d.Provider.Text, Body: d.Provider.Body,
			RetryAfter: d.Provider.RetryAfter}
		if p.Text == "" {
			p.Text = text
		}
		p.Text = clipText(p.Text)
		return &harness.ProviderError{Raw: p, HadOutput: d.HadOutput}
	case d.Error == errorKinds[0].Name:
		return fmt.Errorf("%w: step %s (call %s): %s", harness.ErrOutcomeUnknown, clip(d.Step), clip(d.Call),
			clip(d.Reason))
	case d.HadOutput:
		f := failure.Classify(failure.Raw{Text: text})
		if f.Kind == failure.Unknown {
			f.Kind = failure.HandlerError
		}
		return &harness.FailureError{Failure: f, HadOutput: true}
	}
	return errors.New(text)
}
