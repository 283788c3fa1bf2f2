package pull

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// AheadBytesMax is the most that one consumer is sent ahead.
const AheadBytesMax = heldBytesMax + askedMin*events.CommitBytesMax

// ChaseMax is how often the end of an open span is extended.
const ChaseMax = chaseMax

// Limits of a flow.
const (
	AskedMin      = askedMin
	HeldMax       = aheadBytesMax
	GapsAtOnceMax = gapsAtOnceMax
)

// StartUnguarded is [Start] for a flow that nothing ends on silence: the machine may stall.
func StartUnguarded(c *core.Conn, from Source, window int, first uint64) *Flow {
	f, status := start(c, from, window, first, Request{})
	c.NC.RemoveStatusListener(status)
	return f
}

// Receive takes a message as if it came from the connection.
func (f *Flow) Receive(m *nats.Msg) { f.receive(m) }

// Asked returns the messages in flight.
func (f *Flow) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Held returns the bytes that were delivered and not taken.
func (f *Flow) Held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held
}

// IsSilent reports whether a flow is silent at an instant, if nothing arrives until then.
func (f *Flow) IsSilent(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isSilent(at)
}

// Gaps returns how many gaps are filled at once.
func (f *Flow) Gaps() int { return len(f.gaps()) }

// SearchUpTo returns the traced messages behind the last delivery, up to a place.
func (f *Flow) SearchUpTo(ctx context.Context, last uint64) ([]Delivery, error) {
	return f.searchUpTo(ctx, last)
}

// Probe returns the traced messages that the consumer has delivered.
func (f *Flow) Probe(ctx context.Context) []Delivery {
	found, _ := f.probe(ctx)
	return found
}

// Following reads the next message of the source behind a place.
func (f *Flow) Following(ctx context.Context, after uint64) (*core.Raw, error) {
	return f.following(ctx, after)
}

// Subjects returns the subject that a flow subscribes to, and the reply subject of its pulls.
func (f *Flow) Subjects() (subscribed, reply string) { return f.sub.Subject, f.reply }

// Limits of one search.
const (
	TracedMax      = tracedMax
	TracedBytesMax = tracedBytesMax
)
