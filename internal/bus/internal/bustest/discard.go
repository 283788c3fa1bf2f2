package bustest

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// Discard handles batches by dropping them.
type Discard struct{}

// Takeover implements [consumer.Handler].
func (Discard) Takeover(context.Context) error { return nil }

// Batch implements [consumer.Handler].
func (Discard) Batch(_ context.Context, ms []bus.Message) (int, error) { return len(ms), nil }
