package control

import (
	"context"
	"errors"
	"sync"
)

// Together runs the parts of a service until ctx ends or one of them fails. Then it ends the others, waits for all and
// returns their errors. A part that returns nil while ctx is alive does not end the others.
func Together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			if errs[i] = part(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
