// Package request has the requests that services carry out, with their replies, in one table.
//
// The table feeds the endpoints of the services, the permissions of a secured cell, AsyncAPI, the command line and the
// harness client. To add a request: add its type and its line in the table, a handler in the service, and its row in
// section 4 of the contract.
package request

import (
	"encoding/json"
	"errors"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Changed is the reply to a request that changes a session: its place in the log. A document with this seq or a
// greater one includes it.
type Changed struct {
	Seq uint64 `json:"seq,omitempty"`
}

// id is a field of a request that has to be an id.
type id struct{ field, value string }

// validate checks a session's name and other ids of a request.
func validate(r events.Ref, ids ...id) error {
	err := r.Validate()
	for _, x := range ids {
		if _, bad := events.Token(x.value); bad != nil {
			err = errors.Join(err, &events.FieldError{Field: x.field, Err: bad})
		}
	}
	return err
}

// Answer is a person's answer to a prompt. Refusals: 400, 404, 409, 410, 422.
type Answer struct {
	events.Ref
	Prompt  string          `json:"prompt"`
	Answers []events.Answer `json:"answers"`
	By      string          `json:"by"`
	// Asked is the seq of the entry of the people's view that the person saw: an answer to another question than that
	// one is refused (409). 0: whichever question is open.
	Asked uint64 `json:"asked,omitempty"`

	Unreadable map[string]string `json:"-"` // by question: why its answer cannot be read
}

// Validate checks the ids.
func (q Answer) Validate() error { return validate(q.Ref, id{"prompt", q.Prompt}, id{"by", q.By}) }

// UnmarshalJSON reads a request. It records answers that are not text in Unreadable instead of failing, so that the
// refusal can name their question.
func (q *Answer) UnmarshalJSON(body []byte) error {
	var v struct {
		events.Ref
		Prompt  string          `json:"prompt"`
		Answers json.RawMessage `json:"answers"`
		By      string          `json:"by"`
		Asked   uint64          `json:"asked"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	*q = Answer{Ref: v.Ref, Prompt: v.Prompt, By: v.By, Asked: v.Asked, Unreadable: map[string]string{}}
	var raws []json.RawMessage
	if json.Unmarshal(v.Answers, &raws) != nil {
		q.Unreadable[""] = "answers: want a list of {question, selected, text}"
		return nil
	}
	for _, raw := range raws {
		var a events.Answer
		err := json.Unmarshal(raw, &a)
		if err != nil {
			q.Unreadable[a.Question] = "not text: " + err.Error()
		}
		q.Answers = append(q.Answers, a)
	}
	return nil
}

// Reject refuses a prompt. With a text it is a correction that the model reads. Refusals: 400, 404, 409, 410, 413.
type Reject struct {
	events.Ref
	Prompt string `json:"prompt"`
	Text   string `json:"text,omitempty"`
	By     string `json:"by"`
	Asked  uint64 `json:"asked,omitempty"` // as in [Answer]
}

// Validate checks the ids.
func (q Reject) Validate() error { return validate(q.Ref, id{"prompt", q.Prompt}, id{"by", q.By}) }

// Dismiss closes a prompt without an answer. Refusals: 400, 404, 409, 410.
type Dismiss struct {
	events.Ref
	Prompt string `json:"prompt"`
	By     string `json:"by"`
	Asked  uint64 `json:"asked,omitempty"` // as in [Answer]
}

// Validate checks the ids.
func (q Dismiss) Validate() error { return validate(q.Ref, id{"prompt", q.Prompt}, id{"by", q.By}) }

// Stop stops the turn that runs or is requested. With Force it also stops a turn that waits for a person. Refusals:
// 400, 404, 409.
type Stop struct {
	events.Ref
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Force  bool   `json:"force,omitempty"`
}

// Validate checks the ids.
func (q Stop) Validate() error { return validate(q.Ref, id{"by", q.By}) }

// Close ends a session for good. Refusals: 400, 404.
type Close struct {
	events.Ref
	Reason string `json:"reason"` // finished, archived or deleted
	By     string `json:"by"`
}

// Validate checks the ids.
func (q Close) Validate() error { return validate(q.Ref, id{"by", q.By}) }

// Configure changes the policy of a session. Refusals: 400, 404, 409.
type Configure struct {
	events.Ref
	Policy          *events.PolicyPatch `json:"policy,omitempty"`
	ProviderChanged bool                `json:"provider_changed,omitempty"`
	By              string              `json:"by"`
}

// Validate checks the ids.
func (q Configure) Validate() error { return validate(q.Ref, id{"by", q.By}) }

// Retry is a person's request about the retry of a session: now, cancel or resume. Refusals: 400, 404, 409.
type Retry struct {
	events.Ref
	By string `json:"by"`
}

// Validate checks the ids.
func (q Retry) Validate() error { return validate(q.Ref, id{"by", q.By}) }

// Send is user input for a session. Exactly one of Content and Object carries it. Refusals: 400, 404, 409, 413, 503.
type Send struct {
	events.Ref
	Message   string          `json:"message"`           // its id, the sender's choice: the same when it is sent again
	Content   json.RawMessage `json:"content,omitempty"` // any JSON but null
	Object    string          `json:"ref,omitempty"`     // an object of the cell's store
	Synthetic bool            `json:"synthetic,omitempty"`
	By        string          `json:"by"`
}

// Validate checks the ids.
func (q Send) Validate() error { return validate(q.Ref, id{"message", q.Message}, id{"by", q.By}) }

// Withdraw takes a message back that no turn has taken. Refusals: 400, 404, 409.
type Withdraw struct {
	events.Ref
	Message string `json:"message"`
	By      string `json:"by"`
}

// Validate checks the ids.
func (q Withdraw) Validate() error { return validate(q.Ref, id{"message", q.Message}, id{"by", q.By}) }

// Compact compacts a conversation at any usage. With Force it supersedes first what waits for a person. Refusals: 400,
// 404, 409.
type Compact struct {
	events.Ref
	By    string `json:"by"`
	Force bool   `json:"force,omitempty"`
}

// Validate checks the ids.
func (q Compact) Validate() error { return validate(q.Ref, id{"by", q.By}) }
