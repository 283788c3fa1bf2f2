package bustest

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// HandlerFunc handles each batch and is done with all of it.
type HandlerFunc func([]bus.Message)

// Takeover implements the handler of a consumer.
func (HandlerFunc) Takeover(context.Context) error { return nil }

// Batch implements the handler of a consumer.
func (f HandlerFunc) Batch(_ context.Context, ms []bus.Message) (int, error) {
	f(ms)
	return len(ms), nil
}
