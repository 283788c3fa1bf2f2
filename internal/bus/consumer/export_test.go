package consumer

import "context"

// Moved checks the first delivery behind what a process has done.
func (cs *Consumers) Moved(ctx context.Context, s Source, done, first uint64) error {
	c, err := cs.consumption(s, nil)
	if err != nil {
		return err
	}
	c.done = done
	return c.moved(ctx, first)
}
