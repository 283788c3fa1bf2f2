package pull

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// WithHeaders reads the headers of deliveries that came without: the library drops a header that it cannot read. A
// message that is gone meanwhile stays without.
func WithHeaders(ctx context.Context, c *core.Conn, stream string, ds []Delivery) error {
	var all errgroup.Group
	all.SetLimit(core.HeadersAtOnce)
	for i := range ds {
		if ds[i].Msg.Header != nil {
			continue
		}
		all.Go(func() error {
			m, err := c.Get(ctx, stream, core.GetRequest{Seq: ds[i].Seq})
			switch {
			case err == nil:
				ds[i].Msg.Header = m.Header
			case !errors.Is(err, core.ErrNotFound) || core.NoStream(err):
				return err
			}
			return nil
		})
	}
	return all.Wait()
}
