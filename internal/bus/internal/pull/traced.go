package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// A node of nats-server that receives a message from another node obeys the author's request to trace it: with
// headerTraceOnly it reports the message, and does not deliver it. So one message can be missing in a delivery each
// time, and its reader would begin again for ever. Nothing at the broker prevents such a message from being stored
// (ADR 233). A flow reads it from the stream by a request, whose reply has the header in its body.

// headerTrace is the header with which a message is traced.
const headerTrace = "Nats-Trace-Dest"

// Limits of one search for traced messages. A user stores them faster than one request after the other reads them, so
// many requests are on the way at once: with places that follow each other, and with gaps that do.
const (
	tracedMax      = 1_024
	tracedBytesMax = 8 << 20
	tracedFewMax   = 4         // of each gap but the first one
	gapsAtOnceMax  = 32        // gaps that are searched at once
	aheadMax       = 32        // places that are read at once
	placesBytesMax = 512 << 10 // of such places, as long as their number is raised
	probesMax      = 5         // in a row that find nothing
	probeEvery     = 20 * time.Millisecond
)

// place returns the message behind which the next one is due.
func (f *Flow) place() uint64 { return max(f.last, f.from.After) }

// search is the result of the search in one gap.
type search struct {
	gap   Delivery
	found []Delivery
	rest  Delivery // of the gap, behind found
	err   error
}

// fillGaps puts the traced messages of the first gaps in their places; as many as one search finds. The buffer begins
// with a gap. It ends the flow if another message is missing in that one, too.
func (f *Flow) fillGaps(ctx context.Context) {
	searches := f.gaps()
	if !f.from.Newest {
		var all errgroup.Group
		for i := range searches {
			most := tracedFewMax
			if i == 0 {
				most = tracedMax
			}
			all.Go(func() error {
				x := &searches[i]
				x.found, x.rest, x.err = f.traced(ctx, x.gap, most)
				return nil
			})
		}
		// no function returns an error
		_ = all.Wait()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	first := searches[0]
	switch {
	case f.err != nil:
	case first.err != nil && ctx.Err() != nil:
		// the gap stays for the next call
	case first.err != nil:
		f.failLocked(fmt.Errorf("%w: delivery %d is missing before message %d: %w", ErrInterrupted, first.gap.number,
			first.gap.Seq, first.err))
	default:
		f.fillLocked(searches)
	}
	f.notify()
}

// gaps returns the first gaps of the buffer.
func (f *Flow) gaps() (all []search) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.buf {
		if d.Msg == nil && len(all) < gapsAtOnceMax {
			all = append(all, search{gap: d})
		}
	}
	return all
}

// fillLocked puts what was found in the place of the gaps. A gap with an error stays until it is the first one. f.mu is
// held.
func (f *Flow) fillLocked(searches []search) {
	buf := make([]Delivery, 0, len(f.buf)+len(searches))
	for _, d := range f.buf {
		if d.Msg != nil || len(searches) == 0 {
			buf = append(buf, d)
			continue
		}
		x := searches[0]
		searches = searches[1:]
		switch {
		case x.err != nil:
			buf = append(buf, d)
			continue
		case x.rest.Seq > 0:
			x.found = append(x.found, x.rest)
		}
		for _, found := range x.found {
			if found.Msg != nil {
				f.held += len(found.Msg.Data) + messageBytes
			}
		}
		buf = append(buf, x.found...)
	}
	f.buf, f.probes = buf, probesMax
}

// searchTraced returns traced messages behind the last delivery of a flow that became silent: a pull that only traced
// messages filled has ended, and the broker sends no heart-beat without one. It reads as many as were pulled, and if
// those were all, the flow continues with the next pull. It returns why, and no message, if there are none.
func (f *Flow) searchTraced(ctx context.Context, why error) ([]Delivery, error) {
	ds, err := f.searchUpTo(ctx, 0)
	if len(ds) == 0 || err != nil && !errors.Is(err, errNotTraced) {
		return nil, why
	}
	return ds, nil
}

// searchUpTo returns traced messages behind the last delivery, at most as many as were pulled; only those up to a place
// if that is not 0.
func (f *Flow) searchUpTo(ctx context.Context, last uint64) ([]Delivery, error) {
	f.mu.Lock()
	gap, most := Delivery{after: f.place(), number: f.next}, min(f.asked, tracedMax)
	if len(f.buf) > 0 {
		// they come before what a search finds
		most = 0
	}
	f.mu.Unlock()
	if last > 0 {
		gap.Seq = last + 1
	}
	if gap.number == 0 || most == 0 || f.from.Newest {
		return nil, nil
	}
	found, _, err := f.traced(ctx, gap, most)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(found) == 0:
		return nil, err
	// a delivery has arrived meanwhile, so the buffer has these messages as a gap
	case f.next != gap.number:
		return nil, nil
	}
	f.last, f.next, f.asked = found[len(found)-1].Seq, f.next+uint64(len(found)), f.asked-len(found)
	f.probes = probesMax
	if errors.Is(f.err, ErrSilent) && f.asked == 0 && !f.missed {
		f.err = nil
	}
	if f.err == nil {
		if err := f.refill(); err != nil {
			f.failLocked(fmt.Errorf("%w: %w", ErrInterrupted, err))
		}
	}
	return found, err
}

// probe returns traced messages that the consumer has delivered, without the wait for silence, as long as there are
// some. Without one it returns when to probe again.
func (f *Flow) probe(ctx context.Context) (found []Delivery, again <-chan time.Time) {
	f.mu.Lock()
	probes, place := f.probes, f.place()
	f.mu.Unlock()
	if f.from.Delivered == nil || probes == 0 {
		return nil, nil
	}
	last, err := f.from.Delivered(ctx)
	if err == nil && last > place {
		found, err = f.searchUpTo(ctx, last)
	}
	if len(found) > 0 {
		return found, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.probes = max(f.probes-1, 0); err != nil && !errors.Is(err, errNotTraced) {
		f.probes = 0
	}
	return nil, time.After(probeEvery)
}

// errNotTraced means that a message is missing which was not traced.
var errNotTraced = errors.New("it was not traced")

// traced reads the messages of a gap. It returns those before the first one that was not traced, with an error for that
// one, and the rest of the gap if there are more than one search reads. A gap without an end, Seq 0, reaches to the
// first message that was not traced.
func (f *Flow) traced(ctx context.Context, gap Delivery, most int) (found []Delivery, rest Delivery, err error) {
	for bytes, ahead := 0, 1; ; {
		before := bytes
		ms, failed := f.followers(ctx, gap.after, min(ahead, most-len(found)))
		for _, m := range ms {
			switch {
			case gap.Seq > 0 && m.Seq >= gap.Seq:
				return found, rest, nil
			case len(m.Header[headerTrace]) == 0:
				return found, rest, fmt.Errorf("message %d: %w", m.Seq, errNotTraced)
			}
			found = append(found, f.delivered(m, gap.number))
			gap.after, gap.number, bytes = m.Seq, gap.number+1, bytes+len(m.Data)
		}
		switch {
		case errors.Is(failed, core.ErrNotFound):
			return found, rest, nil
		case failed != nil:
			return found, rest, failed
		case len(found) >= most || bytes >= tracedBytesMax:
			if gap.Seq > 0 {
				rest = gap
			}
			return found, rest, nil
		case len(ms) == ahead && bytes-before <= placesBytesMax/2:
			ahead = min(2*ahead, aheadMax)
		default:
			ahead = max(ahead/2, 1)
		}
	}
}

// followers reads the next messages of the source behind a place, as far as they are at one of so many places that
// follow it, and the one behind those. The error is that of the place behind the last message.
func (f *Flow) followers(ctx context.Context, after uint64, places int) ([]*core.Raw, error) {
	next, failed := make([]*core.Raw, places), make([]error, places)
	var all errgroup.Group
	for i := range places {
		all.Go(func() error {
			next[i], failed[i] = f.following(ctx, after+uint64(i))
			return nil
		})
	}
	// no function returns an error
	_ = all.Wait()
	var ms []*core.Raw
	for i := uint64(0); i < uint64(places); {
		if failed[i] != nil {
			return ms, failed[i]
		}
		ms = append(ms, next[i])
		i = next[i].Seq - after
	}
	return ms, nil
}

// following reads the next message of the source behind a place.
func (f *Flow) following(ctx context.Context, after uint64) (next *core.Raw, err error) {
	for _, filter := range f.from.Filters {
		m, failed := f.conn.Get(ctx, f.from.Stream, core.GetRequest{Seq: after + 1, Next: filter})
		switch {
		case failed != nil && !errors.Is(failed, core.ErrNotFound), core.NoStream(failed):
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
