package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Head returns the place of a session's last commit in the log, from its leader; 0 when the log has none.
func (b *Bus) Head(ctx context.Context, r events.Ref) (uint64, error) {
	if err := r.Validate(); err != nil {
		return 0, fmt.Errorf("bus: last commit of %s: %w", r, err)
	}
	m, err := b.get(ctx, b.cell.LogStream(), getRequest{Last: b.cell.LogGuard(r)})
	switch {
	case errors.Is(err, ErrNotFound) && !noStream(err):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return m.Seq, nil
}

// Heads returns the place of each session's last commit in the log, of one harness or, without one, of all. It reads no
// bodies. A lagging replica may answer, so a head can be older than the result of [Bus.Head], never newer. It starts
// again after an interruption, until ctx ends; if a damaged file of the stream interrupts it repeatedly, it returns
// what it has.
func (b *Bus) Heads(ctx context.Context, harness string) (map[events.Ref]uint64, error) {
	filter := b.cell.LogSubjects()
	if harness != "" {
		filter = b.cell.LogOf(harness)
	}
	heads := map[events.Ref]uint64{}
	for pace, silent := newBackoff(), 0; ; {
		before := len(heads)
		err := b.headsOnce(ctx, filter, heads)
		if silent++; len(heads) > before || errors.Is(err, ErrUnreachable) {
			silent = 0
		}
		switch {
		case err == nil, silent == headsSilentMax && ctx.Err() == nil:
			return heads, nil
		case ctx.Err() != nil:
			return nil, b.late("read the ends of sessions", ctx.Err())
		case !errors.Is(err, ErrUnreachable) && !errors.Is(err, errInterrupted):
			return nil, err
		case !pause(ctx, pace.NextBackOff()):
			return nil, b.late("read the ends of sessions", ctx.Err())
		}
	}
}

// headsSilentMax is how often a reader may be silent, although the broker reports more, until the rest counts as
// unreadable.
const headsSilentMax = 2

func (b *Bus) headsOnce(ctx context.Context, filter string, heads map[events.Ref]uint64) error {
	stream := b.cell.LogStream()
	cfg := jetstream.ConsumerConfig{
		Name:              "read-" + nuid.Next(),
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     filter,
		HeadersOnly:       true,
		InactiveThreshold: replayIdleMax,
		MemoryStorage:     true,
		Replicas:          1,
	}
	var info jetstream.ConsumerInfo
	create := createConsumer{Stream: stream, Config: cfg, Action: "create"}
	if err := b.call(ctx, "read "+stream, "CONSUMER.CREATE."+stream+"."+cfg.Name+"."+filter, create,
		&info); err != nil {
		return err
	}
	defer b.forget(stream, cfg.Name)
	if info.NumPending == 0 {
		return nil
	}
	f := b.flow(stream, cfg.Name, replayWindowMax, 1, pull{})
	defer f.close()
	for {
		soon, cancel := context.WithTimeout(ctx, replaySilentMS*time.Millisecond)
		ds, err := f.take(soon, replayWindowMax)
		cancel()
		if err != nil {
			return fmt.Errorf("%w: %s", errInterrupted, err)
		}
		for _, d := range ds {
			if r, _, err := b.cell.ParseLog(d.msg.Subject); err == nil {
				heads[r] = max(heads[r], d.seq)
			}
			if d.pending == 0 {
				return nil
			}
		}
	}
}

// Acked returns how far a source has been acknowledged: every message up to there was handled, and its result stored.
// [ErrNotFound] if it was never consumed.
func (b *Bus) Acked(ctx context.Context, s Source) (uint64, error) {
	c, err := b.consumption(s, nil)
	if err != nil {
		return 0, err
	}
	info, err := c.info(ctx)
	if err != nil {
		return 0, err
	}
	return info.AckFloor.Stream, nil
}
