package events

import "encoding/json"

// ContentBytesMax is the most content, in bytes of JSON, that travels in a fact or a request; more goes by reference.
const ContentBytesMax = 256 << 10

// MessageAccepted takes user input into the queue. Exactly one of Content and Ref carries it.
type MessageAccepted struct {
	Message   string          `json:"message"`
	Content   json.RawMessage `json:"content,omitempty"` // any JSON, usually a string
	Ref       string          `json:"ref,omitempty"`     // an object of the cell's object store
	Synthetic bool            `json:"synthetic"`         // not a person's wish: changes nothing a person chose
	By        string          `json:"by,omitempty"`
}

// Kind implements [Fact].
func (MessageAccepted) Kind() Kind { return "message.accepted" }

// Subject implements [Fact].
func (f MessageAccepted) Subject() string { return f.Message }

// Validate implements [Fact].
func (f MessageAccepted) Validate() error { return needID("message", f.Message) }

// MessageWithdrawn takes a queued message back.
type MessageWithdrawn struct {
	Message string `json:"message"`
	By      string `json:"by"`
}

// Kind implements [Fact].
func (MessageWithdrawn) Kind() Kind { return "message.withdrawn" }

// Subject implements [Fact].
func (f MessageWithdrawn) Subject() string { return f.Message }

// Validate implements [Fact].
func (f MessageWithdrawn) Validate() error { return needID("message", f.Message) }
