package events

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Limits of content, in bytes of JSON.
const (
	ContentBytesMax = 256 << 10 // in a fact or a request; larger content goes by reference
	ObjectBytesMax  = 64 << 20  // of one object
)

// ObjectName returns the name, in the cell's object store, of content of a session. It is derived from the content: the
// same content has the same name, and different contents have different names.
func ObjectName(r Ref, content []byte) string {
	sum := sha256.Sum256(content)
	return r.tokens() + "." + hex.EncodeToString(sum[:])
}

// ParseObjectName returns the session of an object.
func ParseObjectName(name string) (Ref, error) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 || len(parts[2]) != 2*sha256.Size {
		return Ref{}, fmt.Errorf("%w: not an object of a session: %.100q", ErrMalformed, name)
	}
	return parseRef(parts[0], parts[1])
}

// MessageAccepted takes user input into the queue. Exactly one of Content and Ref carries it.
type MessageAccepted struct {
	Message   string          `json:"message"`
	Content   json.RawMessage `json:"content,omitempty"` // any JSON, usually a string
	Ref       string          `json:"ref,omitempty"`     // an object of the cell's object store
	Synthetic bool            `json:"synthetic"`         // not from a person: changes nothing that a person chose
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
