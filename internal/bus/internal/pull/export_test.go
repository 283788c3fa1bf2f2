package pull

import (
	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// AheadBytesMax is the most that one consumer is sent ahead.
const AheadBytesMax = heldBytesMax + askedMin*events.CommitBytesMax

// Limits of a flow.
const (
	AskedMin = askedMin
	HeldMax  = aheadBytesMax
)

// Receive takes a message as if it came from the connection.
func (f *Flow) Receive(m *nats.Msg) { f.receive(m) }

// Asked returns the messages in flight.
func (f *Flow) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Subjects returns the subject that a flow subscribes to, and the reply subject of its pulls.
func (f *Flow) Subjects() (subscribed, reply string) { return f.sub.Subject, f.reply }

// TracedMax is the most traced messages that one search reads.
const TracedMax = tracedMax
