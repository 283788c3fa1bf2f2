package control

import (
	"context"
	"errors"
	"sync"
)

// Together runs the parts of a service until ctx ends or one of them fails; then it ends the others, waits for all and
// returns what failed. A part that returns nil while ctx lives has done its work: the others go on.
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
