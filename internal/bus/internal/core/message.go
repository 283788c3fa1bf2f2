package core

import (
	"time"
)

// Message is one message of a source.
type Message struct {
	Subject     string // [consumer.StateDocs]: the key
	Header      map[string][]string
	Body        []byte
	Seq         uint64 // in the stream; for [consumer.StateDocs] also the revision
	At          time.Time
	Redelivered bool // it was delivered before, and perhaps handled; false proves nothing
	Deleted     bool // [consumer.StateDocs]: the key was deleted
}
