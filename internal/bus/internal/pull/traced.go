package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// A node of nats-server that receives a message from another node obeys the author's request to trace it: with
// headerTraceOnly it reports the message, and does not deliver it. So one message can be missing in a delivery each
// time, and its reader would begin again for ever. Nothing at the broker prevents such a message from being stored
// (ADR 233). A flow reads it from the stream by a request, whose reply has the header in its body.

// headerTrace is the header with which a message is traced.
const headerTrace = "Nats-Trace-Dest"

// Limits of one search for traced messages.
const (
	tracedMax      = 1_024
	tracedBytesMax = 8 << 20
)

// place returns the message behind which the next one is due.
func (f *Flow) place() uint64 { return max(f.last, f.from.After) }

// fillGap puts the traced messages of a gap in its place, at the beginning of the buffer; as many as one search finds.
// It ends the flow if another message is missing, too.
func (f *Flow) fillGap(ctx context.Context, gap Delivery) {
	var found []Delivery
	rest, err := Delivery{}, error(nil)
	if !f.from.Newest {
		found, rest, err = f.traced(ctx, gap)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
	case err != nil && ctx.Err() != nil:
		// the gap stays for the next call
	case err != nil:
		f.failLocked(fmt.Errorf("%w: delivery %d is missing before message %d: %w", ErrInterrupted, gap.number, gap.Seq,
			err))
	default:
		if rest.Seq > 0 {
			found = append(found, rest)
		}
		f.buf = append(found, f.buf[1:]...)
		for _, d := range found {
			if d.Msg != nil {
				f.held += len(d.Msg.Data) + messageBytes
			}
		}
	}
	f.notify()
}

// searchTraced returns traced messages behind the last delivery of a flow that became silent: a pull that only traced
// messages filled has ended, and the broker sends no heart-beat without one. It returns why, and no message, if there
// are none.
func (f *Flow) searchTraced(ctx context.Context, why error) ([]Delivery, error) {
	f.mu.Lock()
	gap := Delivery{after: f.place(), number: f.next}
	f.mu.Unlock()
	if gap.number == 0 || f.from.Newest {
		return nil, why
	}
	found, _, err := f.traced(ctx, gap)
	if len(found) == 0 || err != nil && !errors.Is(err, errNotTraced) {
		return nil, why
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.next = found[len(found)-1].Seq, f.next+uint64(len(found))
	return found, nil
}

// errNotTraced means that a message is missing which was not traced.
var errNotTraced = errors.New("it was not traced")

// traced reads the messages of a gap. It returns those before the first one that was not traced, with an error for that
// one, and the rest of the gap if there are more than one search reads. A gap without an end, Seq 0, reaches to the
// first message that was not traced.
func (f *Flow) traced(ctx context.Context, gap Delivery) (found []Delivery, rest Delivery, err error) {
	bytes := 0
	for {
		m, err := f.following(ctx, gap.after)
		switch {
		case err != nil && !errors.Is(err, core.ErrNotFound):
			return found, rest, err
		case err != nil, gap.Seq > 0 && m.Seq >= gap.Seq:
			return found, rest, nil
		case len(m.Header[headerTrace]) == 0:
			return found, rest, fmt.Errorf("message %d: %w", m.Seq, errNotTraced)
		}
		found = append(found, f.delivered(m, gap.number))
		gap.after, gap.number, bytes = m.Seq, gap.number+1, bytes+len(m.Data)
		if len(found) >= tracedMax || bytes >= tracedBytesMax {
			if gap.Seq > 0 {
				rest = gap
			}
			return found, rest, nil
		}
	}
}

// following reads the next message of the source behind a place.
func (f *Flow) following(ctx context.Context, after uint64) (next *core.Raw, err error) {
	for _, filter := range f.from.Filters {
		m, failed := f.conn.Get(ctx, f.from.Stream, core.GetRequest{Seq: after + 1, Next: filter})
		switch {
		case failed != nil && !errors.Is(failed, core.ErrNotFound), failed != nil && core.NoStream(failed):
			return nil, failed
		case failed != nil:
			err = failed
		case next == nil || m.Seq < next.Seq:
			next = m
		}
	}
	if next != nil {
		return next, nil
	}
	return nil, err
}

// delivered returns a message as the delivery of this number. Its place in the delivery is not known to be the last.
func (f *Flow) delivered(m *core.Raw, number uint64) Delivery {
	const attempt, pending = "1", 1
	reply := "$JS.ACK." + f.from.Stream + "." + f.from.Consumer + "." + attempt
	for _, n := range []uint64{m.Seq, number, uint64(m.Time.UnixNano()), pending} {
		reply += "." + strconv.FormatUint(n, 10)
	}
	h := m.Header
	// the author's request has no effect on a reader
	for key := range h {
		if slices.Contains([]string{headerTrace, HeaderPin}, key) {
			delete(h, key)
		}
	}
	return Delivery{Msg: &nats.Msg{Subject: m.Subject, Reply: reply, Header: h, Data: m.Data, Sub: f.sub}, Seq: m.Seq,
		Pending: pending, At: m.Time.UTC(), Got: time.Now()}
}
