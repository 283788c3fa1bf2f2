package request

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Get asks for one session's document, as it is in the log now, or as it was. Refusals: 400, 404, 503; with At also 409
// and 410.
type Get struct {
	events.Ref
	At uint64 `json:"at,omitempty"` // a place of the log: the fold of the commits up to it; 0: now
	By string `json:"by,omitempty"` // one request with At of each person runs at a time
}

// Document is a session's document.
type Document struct {
	Document json.RawMessage `json:"document"`
}

// ListMax is the most documents of a page.
const ListMax = 1000

// List asks for a page of documents, in the order of their keys. Each field that is set is a filter. Refusals: 400.
type List struct {
	Harness string `json:"harness,omitempty"`
	Session string `json:"session,omitempty"` // not a filter; a session is read with get
	Phase   string `json:"phase,omitempty"`   // one of session.Phases
	Root    string `json:"root,omitempty"`
	Waiting bool   `json:"waiting,omitempty"` // for a person
	After   string `json:"after,omitempty"`   // Next of the page before
	Limit   int    `json:"limit,omitempty"`   // default 100, at most ListMax
}

// Validate checks the harness and the limit.
func (q List) Validate() error {
	if q.Harness != "" {
		if _, err := events.Token(q.Harness); err != nil {
			return &events.FieldError{Field: "harness", Err: err}
		}
	}
	if q.Limit < 0 {
		return &events.FieldError{Field: "limit",
			Err: fmt.Errorf("%w: %d: want 1 or more; a page holds at most %d", events.ErrMalformed, q.Limit, ListMax)}
	}
	return nil
}

// Documents is a page of documents.
type Documents struct {
	Documents []json.RawMessage `json:"documents"`
	Next      string            `json:"next,omitempty"` // After of the next page, empty at the end
}

// Check asks whether the conversation would be compacted now without a request, or with other numbers, in tokens.
// Refusals: 400, 404.
type Check struct {
	events.Ref
	Used  *int64 `json:"used,omitempty"`
	Limit *int64 `json:"limit,omitempty"`
}

// Verdict reports whether the conversation would be compacted, and why.
type Verdict struct {
	Would  bool      `json:"would"`
	Reason string    `json:"reason"`
	Used   int64     `json:"used"`            // tokens, 0: unknown
	Limit  int64     `json:"limit"`           // tokens, 0: unknown
	At     time.Time `json:"at,omitzero"`     // when it will have been idle for long enough
	State  string    `json:"state,omitempty"` // of the document's compaction
}
