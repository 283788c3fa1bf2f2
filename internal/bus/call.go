package bus

import (
	"context"

	"github.com/holdfast-dev/holdfast/pkg/request"
)

// Call sends the request of a verb and returns its reply. Errors: those of [Bus.Request].
func Call[Q request.Checked, R any](ctx context.Context, b *Bus, v request.Verb[Q, R], q Q) (R, error) {
	var r R
	err := b.Request(ctx, v.Service, v.Name, q, &r)
	return r, err
}
