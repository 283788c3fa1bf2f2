package core

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
)

// batchedWrite is a guarded write that may be sent in a batch with others.
type batchedWrite struct {
	w    *Write
	key  string        // the subject of its guard: the broker does not compare the subjects of a batch's writes
	done chan struct{} // closed when s is set
	s    Sent          // the outcome
}

// BeginBatched is [Conn.Begin] for concurrent writes: those that are added while others are sent form the next batch. A
// write whose context ends before that is removed.
func (c *Conn) BeginBatched(key string, w *Write) Pending {
	x := &batchedWrite{w: w, key: key, done: make(chan struct{})}
	remove := c.appends.Add(x)
	return Pending{wait: func(ctx context.Context) (uint64, error) {
		select {
		case <-x.done:
			return c.settle(ctx, w, x.s)
		case <-ctx.Done():
			remove()
			return 0, fmt.Errorf("%s: %w", w.Op, c.Late("publish to "+w.Msg.Subject, ctx.Err()))
		}
	}}
}

// sendBatched sends writes as one batch, or one by one if they are few or the batch is refused, and waits for the
// acknowledgements.
func (c *Conn) sendBatched(writes []*batchedWrite) {
	// a missing acknowledgement soon becomes an error
	ctx := context.Background()
	stale := func(x *batchedWrite) bool { return c.restoredSince(x.w.On) }
	if len(writes) >= BatchMin && !slices.ContainsFunc(writes, stale) {
		since, msgs := c.Syncs.Uptime(), make([]*nats.Msg, len(writes))
		for i, x := range writes {
			msgs[i] = x.w.Msg
		}
		if last, err := c.Ack(ctx, c.SendBatch(ctx, msgs)); err == nil {
			for i, x := range writes {
				x.s = Sent{done: true, seq: last - uint64(len(writes)-1-i), since: since}
				close(x.done)
			}
			return
		}
	}
	for _, x := range writes {
		x.s = c.sendOn(ctx, x.w, x.w.On)
	}
	for _, x := range writes {
		s := Sent{subject: x.s.subject, at: x.s.at, done: true, since: x.s.since}
		s.seq, s.failed = c.Ack(ctx, x.s)
		x.s = s
		close(x.done)
	}
}
