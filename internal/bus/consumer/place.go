package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// placeCheckMS is the interval of checks of the consumer's place. A place beyond the stream's end is moved back when
// two checks in a row find it: a stream's leader can be behind for a moment.
const placeCheckMS = 2_000

// resetRequest asks for delivery from a sequence on.
type resetRequest struct {
	Seq uint64 `json:"seq"`
}

// Place is how far a consumer was delivered, and the end of its stream. A consumer beyond the end gets no message until
// the stream has grown to its place: the stream has lost its end, or a foreign request has reset the consumer.
type Place struct{ Delivered, End uint64 }

// Beyond reports whether the consumer is beyond the end of its stream.
func (p Place) Beyond() bool { return p.Delivered > p.End }

// Place returns the place of a source. [core.ErrNotFound] if it was never consumed.
func (cs *Consumers) Place(ctx context.Context, s Source) (Place, error) {
	c, err := cs.consumption(s, nil)
	if err != nil {
		return Place{}, err
	}
	p, _, err := c.place(ctx, c.find)
	return p, err
}

// place asks for the consumer's place first: the end can only be later.
func (c *consumption) place(ctx context.Context, find func(context.Context) (*jetstream.ConsumerInfo, error)) (Place,
	*jetstream.ConsumerInfo, error) {
	info, err := find(ctx)
	if err != nil {
		return Place{}, nil, err
	}
	stream, err := c.conn.StreamInfo(ctx, c.stream)
	if err != nil {
		return Place{}, nil, err
	}
	return Place{max(info.Delivered.Stream, info.AckFloor.Stream), stream.State.LastSeq}, info, nil
}

// watchPlace checks the consumer's place until ctx ends.
func (c *consumption) watchPlace(ctx context.Context) {
	tick := time.NewTicker(placeCheckMS * time.Millisecond)
	defer tick.Stop()
	// the last check found it beyond the end
	before := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		p, info, err := c.placeSoon(ctx)
		// the broker is away, or the consumer does not exist yet
		if err != nil {
			before = false
			continue
		}
		if p.Beyond() && before {
			c.moveBack(ctx, p, info)
		}
		before = p.Beyond()
	}
}

func (c *consumption) placeSoon(ctx context.Context) (Place, *jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	return c.place(ctx, c.info)
}

// errMoved is the reason for the end of a flow whose consumer another request has reset.
var errMoved = fmt.Errorf("%w: the consumer was moved", pull.ErrInterrupted)

// moveBack returns a consumer from beyond the stream's end. The active process ends its flow and continues behind what
// it has done. Without one the log's consumer continues with the last commit, so that a process becomes active: it
// compares all documents with the log. Timers are delivered from the first one: they are guarded. A consumer of
// documents cannot be reset to a place: it is deleted, and the next one begins with all documents as they are.
func (c *consumption) moveBack(ctx context.Context, p Place, info *jetstream.ConsumerInfo) {
	c.conn.Log.Warn().Str("service", c.durable).Uint64("seq", p.Delivered).
		Msg(fmt.Sprintf("the consumer is beyond the end of its stream, %d: it is moved back", p.End))
	c.mu.Lock()
	flow := c.flow
	if flow != nil && c.bucket == "" {
		c.beyond = &p
	}
	c.mu.Unlock()
	// its process moves it back, or the pin expires
	if flow == nil && pinned(info) != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	var err error
	switch {
	case c.bucket != "":
		err = c.call(ctx, "delete consumer", c.subject("DELETE"), nil, new(core.Nothing))
	case flow == nil:
		err = c.call(ctx, "reset consumer", c.subject("RESET"), c.restart(p.End), new(core.Nothing))
	}
	if err != nil {
		c.conn.Log.Warn().Str("service", c.durable).AnErr("err", err).Msg("the consumer was not moved back")
	}
	if flow != nil {
		flow.Fail(errMoved)
	}
}

// restart returns where delivery continues if it is unknown what was done.
func (c *consumption) restart(end uint64) resetRequest {
	if c.stream == c.conn.Cell.LogStream() {
		return resetRequest{max(end, 1)}
	}
	return resetRequest{1}
}

// resetTo returns what the active process resets its consumer to, nil for the ack floor, and the last message that was
// delivered until now.
func (c *consumption) resetTo(delivered uint64) (to any, before uint64) {
	c.mu.Lock()
	beyond := c.beyond
	c.beyond = nil
	c.mu.Unlock()
	switch {
	case c.bucket != "":
		return nil, delivered
	case beyond != nil && (c.done == 0 || c.done > beyond.End):
		// the second: the stream has lost its end
		return c.restart(beyond.End), beyond.End
	case beyond != nil:
		return resetRequest{c.done + 1}, min(delivered, beyond.End)
	case c.done > 0:
		return resetRequest{c.done + 1}, delivered
	}
	return nil, delivered
}

// moved checks the first delivery after a reset behind what this process has done: it must be the next stored message.
func (c *consumption) moved(ctx context.Context, first uint64) error {
	if c.done == 0 || len(c.filters) != 1 || first == c.done+1 {
		return nil
	}
	m, err := c.conn.Get(ctx, c.stream, core.GetRequest{Seq: c.done + 1, Next: c.filters[0]})
	switch {
	case errors.Is(err, core.ErrNotFound):
		// removed since it was delivered
		return nil
	case err != nil:
		return err
	case m.Seq < first:
		return errMoved
	}
	return nil
}
