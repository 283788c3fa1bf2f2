package rpc

import (
	"context"

	"github.com/holdfast-dev/holdfast/pkg/request"
)

// requester sends a request to a service.
type requester interface {
	Request(ctx context.Context, service, verb string, req, reply any) error
}

// Call sends the request of a verb and returns its reply. Errors: those of [Services.Request].
func Call[Q request.Checked, R any](ctx context.Context, to requester, v request.Verb[Q, R], q Q) (R, error) {
	var r R
	err := to.Request(ctx, v.Service, v.Name, q, &r)
	return r, err
}
