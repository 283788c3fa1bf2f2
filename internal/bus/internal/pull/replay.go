package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// Limits of reading.
const (
	ReplayWindowMax = 8_192       // messages pulled ahead
	IdleMax         = time.Minute // the broker removes the consumer of a reader that ended after this time
	// without a delivery for this long, although there is more: start again at the present place
	SilentMS = 2_000
	chaseMax = 16 // how often an open span is extended: with a writer that never pauses, a reader may never be level
)

// Span is a range of messages: those of a filter from a sequence on, up to last. With open set, messages written during
// the reading are read, too, until none is left.
type Span struct {
	Stream, Filter string
	From, Last     uint64
	Open           bool
}

// Replay calls fn with every stored message of the span, once, in order, in the caller's goroutine. It survives lost
// messages, restarts of the broker and lagging replicas: it ends only when the leader has no more. An error of fn ends
// it and is returned unchanged.
//
// Of an open span it reads what replaced messages of the span, too: a message of Last or before may be replaced by one
// behind Last before it is read. It looks for those until it finds no further one, at most chaseMax times.
func Replay(ctx context.Context, c *core.Conn, s Span, fn func(*core.Raw) error) error {
	pace, chased := core.NewBackoff(), 0
	for s.From <= s.Last {
		before := s.From
		err := replayOnce(ctx, c, &s, fn)
		var mine CallbackError
		switch {
		case errors.As(err, &mine):
			return mine.Unwrap()
		case ctx.Err() != nil:
			return c.Late("read "+s.Stream, ctx.Err())
		case err != nil && !errors.Is(err, core.ErrUnreachable) && !errors.Is(err, ErrInterrupted):
			return err
		case s.From > s.Last && !s.Open:
			return nil
		}
		m, err := c.Get(ctx, s.Stream, core.GetRequest{Seq: s.From, Next: s.Filter})
		switch {
		case errors.Is(err, core.ErrNotFound):
			return nil
		case err != nil:
			return err
		case m.Seq > s.Last && (!s.Open || chased == chaseMax):
			// the rest was purged, or replaced by later messages
			return nil
		case s.From > before:
			pace.Reset()
			if m.Seq > s.Last {
				chased++
			}
		case !core.Pause(ctx, pace.NextBackOff()):
			return c.Late("read "+s.Stream, ctx.Err())
		}
		s.Last = max(s.Last, m.Seq)
	}
	return nil
}

// replayOnce reads with one consumer and moves s.from behind the last message read. nil: it has read to the end of its
// replica.
func replayOnce(ctx context.Context, c *core.Conn, s *Span, fn func(*core.Raw) error) error {
	name, pending, err := CreateReader(ctx, c, s.Stream, s.Filter, s.From)
	if err != nil {
		return err
	}
	defer Forget(c, s.Stream, name)
	if pending == 0 {
		return nil
	}
	began := time.Now()
	f := Start(c, Source{Stream: s.Stream, Consumer: name, Filters: []string{s.Filter}, After: s.From - 1},
		ReplayWindowMax, 1, Request{})
	defer f.Close()
	for {
		ds, err := takeSoon(ctx, c, f, began)
		if err == nil {
			err = WithHeaders(ctx, c, s.Stream, ds)
		}
		if err != nil {
			return err
		}
		for _, d := range ds {
			if d.Seq > s.Last && !s.Open {
				s.From = d.Seq
				return nil
			}
			if err := fn(&core.Raw{Subject: d.Msg.Subject, Seq: d.Seq, Header: d.Msg.Header, Data: d.Msg.Data,
				Time: d.At}); err != nil {
				return Callback(err)
			}
			s.From = d.Seq + 1
			if d.Pending == 0 || s.From > s.Last && !s.Open {
				return nil
			}
		}
	}
}

// takeSoon is flow.take with a time limit: the last message may have been lost.
func takeSoon(ctx context.Context, c *core.Conn, f *Flow, began time.Time) ([]Delivery, error) {
	soon, cancel := context.WithTimeout(ctx, SilentMS*time.Millisecond)
	defer cancel()
	ds, err := f.Take(soon, ReplayWindowMax)
	if err == nil {
		return ds, nil
	}
	if denied := c.Denied.Since(f.subject, began); denied != nil {
		return nil, denied
	}
	if ctx.Err() == nil && soon.Err() != nil {
		// the last messages
		if ds, traced := f.searchTraced(ctx, err); traced == nil {
			return ds, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
}
