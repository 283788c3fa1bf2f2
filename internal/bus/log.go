package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Headers on the wire.
const (
	headerContentType = "Content-Type"
	headerHarness     = "Hf-Harness"
	headerSession     = "Hf-Session"
	headerSeq         = "Hf-Seq"
)

const (
	readSinglesMax = 16      // commits of a session that are read one by one before a reader is created
	oddKind        = "other" // where the feed puts kinds that are not two tokens of a subject
)

// Append stores facts of one session as one commit and returns its place in the log. after is the session's last commit
// that the writer has folded, 0 for none: if another writer was first, nothing is stored and the error is
// [ErrLostRace]. The same events appended again with the same after are recognised by the first one's id: Append
// returns their place. [ErrFull]: the log's limits refuse. [ErrUnreachable]: ctx ended and the commit's outcome is
// unknown; append the same again. [ErrLogBehind]: the log does not have the commit after any more. Facts that no reader
// could read are refused with an error of pkg/events. A service that finds the log filled by others raises its limit,
// once in the log's life, so that recovery and closing have space.
func (b *Bus) Append(ctx context.Context, r events.Ref, w events.Writer, after uint64, evs []events.Event) (uint64,
	error) {
	seq, err := b.AppendAsync(ctx, r, w, after, evs).Wait(ctx)
	if w == events.WriterHarness || !errors.Is(err, ErrFull) {
		return seq, err
	}
	raised, raiseErr := b.RaiseLogLimit(ctx)
	if raiseErr != nil {
		return 0, errors.Join(err, raiseErr)
	}
	if raised {
		b.log.Warn().Str("entity",
			b.cell.LogStream()).Msg("the log is full: its limit was raised by a tenth, which happens once; make " +
			"room, or raise it further")
	}
	return b.AppendAsync(ctx, r, w, after, evs).Wait(ctx) // also if another service has just raised it
}

// AppendAsync is [Bus.Append] without waiting, for concurrent commits of many sessions. It blocks only while the window
// of unacknowledged publishes is full. The caller may reuse the events when it returns.
func (b *Bus) AppendAsync(ctx context.Context, r events.Ref, w events.Writer, after uint64,
	evs []events.Event) Pending {
	op := "append to " + r.String()
	err := r.Validate()
	var body []byte
	if err == nil {
		body, err = events.EncodeBatch(evs)
	}
	if err != nil {
		return failed(fmt.Errorf("bus: %s: %w", op, err))
	}
	guard := b.cell.LogGuard(r)
	msg := &nats.Msg{Subject: b.cell.LogSubject(r, w), Data: body, Header: nats.Header{
		headerContentType:                       {events.BatchContentType},
		jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(after, 10)},
		jetstream.ExpectedLastSubjSeqSubjHeader: {guard},
	}}
	first, n := evs[0].ID, len(evs)
	look := func(ctx context.Context) (verdict, uint64, error) {
		c, err := b.next(ctx, guard, after)
		switch {
		case errors.Is(err, ErrNotFound) && !noStream(err):
			if c.Seq < after { // a writer folds only stored commits, so the log has lost its end
				v, err := b.endBefore(ctx, after)
				return v, c.Seq, err
			}
			return undecided, 0, nil
		case err != nil:
			return undecided, 0, err
		}
		if c.Writer == w && c.Guard == after && len(c.Events) == n && c.Events[0].ID == first {
			return stored, c.Seq, nil
		}
		return lost, 0, nil
	}
	if b.together.Load() {
		return b.beginBatched(guard, &write{op: op, msg: msg, look: look})
	}
	return b.begin(ctx, &write{op: op, msg: msg, look: look})
}

// endBefore is the verdict about a log whose session ends before a commit that was stored. It is certain if the log has
// other commits at that place, or has only one copy.
func (b *Bus) endBefore(ctx context.Context, after uint64) (verdict, error) {
	info, err := b.streamInfo(ctx, b.cell.LogStream())
	switch {
	case err != nil:
		return undecided, err
	case info.State.LastSeq < after && info.Config.Replicas > 1:
		return starting, nil
	}
	return behind, nil
}

// next returns a session's first commit behind a place in the log, [ErrNotFound] without one. It searches from the
// session's end: forwards, the broker would search through all later writes of all sessions.
func (b *Bus) next(ctx context.Context, guard string, after uint64) (events.Commit, error) {
	stream := b.cell.LogStream()
	end, err := b.get(ctx, stream, getRequest{Last: guard})
	if err != nil {
		return events.Commit{}, err
	}
	newest := b.commit(end)
	if newest.Seq <= after {
		return newest, fmt.Errorf("%w: %s: no commit after %d", ErrNotFound, newest.Ref, after)
	}
	chain, err := b.chain(ctx, end, after+1)
	switch {
	case err != nil:
		return newest, err
	case chain != nil:
		return chain[0], nil
	}
	m, err := b.get(ctx, stream, getRequest{Seq: after + 1, Next: guard})
	if err != nil {
		return newest, err
	}
	return b.commit(m), nil
}

// failed is a write that failed before it was sent.
func failed(err error) Pending {
	return Pending{wait: func(context.Context) (uint64, error) { return 0, err }}
}

// Read returns a session's commits from a place in the log on, oldest first. They come from the log's leader and
// include all commits that were acknowledged before the call.
func (b *Bus) Read(ctx context.Context, r events.Ref, from uint64) ([]events.Commit, error) {
	var all []events.Commit
	err := b.Each(ctx, r, from, func(c events.Commit) error {
		all = append(all, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Each calls fn with the commits that [Bus.Read] returns, one after the other, in the caller's goroutine, so that a
// session of any length can be read. An error of fn ends it and is returned unchanged.
func (b *Bus) Each(ctx context.Context, r events.Ref, from uint64, fn func(events.Commit) error) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("bus: read %s: %w", r, err)
	}
	stream, guard := b.cell.LogStream(), b.cell.LogGuard(r)
	from = max(from, 1)
	end, err := b.get(ctx, stream, getRequest{Last: guard})
	switch {
	case errors.Is(err, ErrNotFound) && !noStream(err), err == nil && end.Seq < from:
		return nil
	case err != nil:
		return fmt.Errorf("bus: read %s: %w", r, err)
	}
	chain, err := b.chain(ctx, end, from)
	if err != nil {
		return translate("read "+r.String(), err)
	}
	for _, c := range chain {
		if err := fn(c); err != nil {
			return err
		}
	}
	if chain != nil {
		return nil
	}
	var own error
	take := func(m *message) error {
		from, own = m.Seq+1, fn(b.commit(m))
		return own
	}
	for n := 0; from <= end.Seq; n++ {
		if n == readSinglesMax {
			err := b.replay(ctx, span{stream: stream, filter: guard, from: from, last: end.Seq}, take)
			if own != nil || !errors.Is(err, ErrForbidden) { // a user without a reader continues one by one
				return cmp.Or(own, translate("read "+r.String(), err))
			}
		}
		m, err := b.get(ctx, stream, getRequest{Seq: from, Next: guard})
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bus: read %s: %w", r, err)
		}
		if err := take(m); err != nil {
			return err
		}
	}
	return nil
}

// chain reads back from a session's newest commit by the guards, each of which names the predecessor: the broker
// accepted it because nothing is between them. This is cheap for the broker, while the search for the next message of
// one of many subjects reads all later writes. It returns nil if the chain is too long or broken: a commit without a
// guard, or purged, or one of several that a batch stored under the same guard.
func (b *Bus) chain(ctx context.Context, newest *message, from uint64) ([]events.Commit, error) {
	m, c := newest, b.commit(newest)
	all := []events.Commit{c}
	for c.Guarded {
		if alone, err := b.aloneInBatch(ctx, m, b.cell.LogGuard(c.Ref)); err != nil || !alone {
			return nil, err
		}
		if c.Guard < from {
			slices.Reverse(all)
			return all, nil
		}
		if len(all) == readSinglesMax {
			return nil, nil
		}
		var err error
		m, err = b.get(ctx, b.cell.LogStream(), getRequest{Seq: c.Guard})
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if c = b.commit(m); c.Ref != all[0].Ref {
			return nil, nil
		}
		all = append(all, c)
	}
	return nil, nil
}

// aloneInBatch reports whether no earlier message of this one's batch belongs to the same session. The broker compares
// the guards of a batch with the stream before the batch, so it accepts several commits of a session under the same
// guard. Messages of a batch are adjacent, so the search is short.
func (b *Bus) aloneInBatch(ctx context.Context, m *message, guard string) (bool, error) {
	n, err := strconv.ParseUint(m.Header.Get(headerBatchSeq), 10, 64)
	if err != nil || n <= 1 || n > m.Seq { // no batch, or its first message
		return true, nil
	}
	first, err := b.get(ctx, b.cell.LogStream(), getRequest{Seq: m.Seq - n + 1, Next: guard})
	if err != nil {
		return false, err
	}
	return first.Seq == m.Seq, nil
}

// Commit reads one commit by its place in the log; [ErrNotFound] if it was purged or never existed.
func (b *Bus) Commit(ctx context.Context, seq uint64) (events.Commit, error) {
	if seq == 0 {
		return events.Commit{}, fmt.Errorf("%w: commit 0: the log begins with 1", ErrNotFound)
	}
	m, err := b.get(ctx, b.cell.LogStream(), getRequest{Seq: seq})
	if err != nil {
		return events.Commit{}, err
	}
	return b.commit(m), nil
}

// Scan calls fn with every commit of the log from a place on, in order, up to the log's end at the time of the call.
// Unreadable commits have Err set. An error of fn ends it and is returned unchanged.
func (b *Bus) Scan(ctx context.Context, from uint64, fn func(events.Commit) error) error {
	last, err := b.LastSeq(ctx)
	if err != nil {
		return err
	}
	s := span{stream: b.cell.LogStream(), filter: b.cell.LogSubjects(), from: max(from, 1), last: last}
	return b.replay(ctx, s, func(m *message) error { return fn(b.commit(m)) })
}

// Since calls fn with the commits of a harness's sessions that were stored at an instant of the broker's clock or
// later, in order, up to the log's end at the time of the call. Unreadable commits have Err set. An error of fn ends it
// and is returned unchanged.
func (b *Bus) Since(ctx context.Context, harness string, since time.Time, fn func(events.Commit) error) error {
	last, err := b.LastSeq(ctx)
	if err != nil {
		return err
	}
	stream, filter := b.cell.LogStream(), b.cell.LogOf(harness)
	first, err := b.get(ctx, stream, getRequest{Since: &since, Next: filter})
	if errors.Is(err, ErrNotFound) && !noStream(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bus: read %s since %s: %w", harness, since, err)
	}
	s := span{stream: stream, filter: filter, from: first.Seq, last: last}
	return b.replay(ctx, s, func(m *message) error { return fn(b.commit(m)) })
}

// ScanMessages is [Bus.Scan] for the stored messages, readable or not.
func (b *Bus) ScanMessages(ctx context.Context, from uint64, fn func(Message) error) error {
	last, err := b.LastSeq(ctx)
	if err != nil {
		return err
	}
	s := span{stream: b.cell.LogStream(), filter: b.cell.LogSubjects(), from: max(from, 1), last: last}
	return b.replay(ctx, s, func(m *message) error {
		return fn(Message{Subject: m.Subject, Header: m.Header, Body: m.Data, Seq: m.Seq, At: m.Time})
	})
}

// LastSeq returns the place of the log's last commit, also if it was purged, 0 for none.
func (b *Bus) LastSeq(ctx context.Context) (uint64, error) {
	info, err := b.streamInfo(ctx, b.cell.LogStream())
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// commit decodes a stored message. It never fails: an error is in Err.
func (b *Bus) commit(m *message) events.Commit {
	c := events.Commit{Seq: m.Seq, At: m.Time}
	c.Ref, c.Writer, c.Err = b.cell.ParseLog(m.Subject)
	if c.Err != nil {
		return c
	}
	if m.Header.Get(jetstream.ExpectedLastSubjSeqSubjHeader) == b.cell.LogGuard(c.Ref) {
		n, err := strconv.ParseUint(m.Header.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
		c.Guard, c.Guarded = n, err == nil
	}
	c.Events, c.Err = events.DecodeBatch(c.Ref, m.Data)
	return c
}

// Decode decodes a message of the log, as [Bus.Consume] delivers it. It never fails: an error is in Err of the commit
// or of single events.
func (b *Bus) Decode(m Message) events.Commit {
	return b.commit(&message{Subject: m.Subject, Seq: m.Seq, Data: m.Body, Time: m.At, Header: m.Header})
}

// PurgeSession removes a session's commits before keepFrom. keepFrom must be a commit of the session: the session's
// next compare-and-set is checked against the rest.
func (b *Bus) PurgeSession(ctx context.Context, r events.Ref, keepFrom uint64) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("bus: purge %s: %w", r, err)
	}
	m, err := b.get(ctx, b.cell.LogStream(), getRequest{Seq: max(keepFrom, 1), Next: b.cell.LogGuard(r)})
	if err != nil {
		return fmt.Errorf("bus: purge %s: %w", r, err)
	}
	if m.Seq != keepFrom {
		return fmt.Errorf("%w: purge %s: %d is not one of its commits", ErrNotFound, r, keepFrom)
	}
	req := map[string]any{"filter": b.cell.LogGuard(r), "seq": keepFrom}
	var resp struct{}
	return b.call(ctx, "purge "+r.String(), "STREAM.PURGE."+b.cell.LogStream(), req, &resp)
}

// repeat waits for a publish with a message id and sends it again as long as its outcome is unknown.
func (b *Bus) repeat(ctx context.Context, op string, msg *nats.Msg, s sent) error {
	pace := newBackoff()
	for {
		_, err := b.ack(ctx, s)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil || b.nc.IsClosed() || !pause(ctx, pace.NextBackOff()) {
			return fmt.Errorf("bus: %s: %w", op, err)
		}
		s = b.send(ctx, msg)
	}
}

// Fed are the facts of one commit that counted, for the feed.
type Fed struct {
	Ref    events.Ref
	Seq    uint64 // the commit with which they count
	Events []events.Event
}

// Feed publishes facts that counted once more, one message each, by kind, in this order. Wait returns when all are
// stored. A second feed of the same facts is recognised for a while. Without a feed it does nothing. To a broker that
// syncs each write it sends them together, as [Bus.StoreDocs] does.
func (b *Bus) Feed(ctx context.Context, fs ...Fed) Pending {
	if b.cfg.FeedAge < 0 {
		return Pending{}
	}
	var msgs []*nats.Msg
	for _, f := range fs {
		place := strconv.FormatUint(f.Seq, 10)
		for i := range f.Events {
			body, err := events.EncodeEvent(&f.Events[i])
			if err != nil {
				return failed(fmt.Errorf("bus: feed %s: %w", f.Ref, err))
			}
			msgs = append(msgs, &nats.Msg{Subject: b.cell.FeedSubject(feedKind(f.Events[i].Kind)), Data: body,
				Header: nats.Header{
					headerContentType:     {events.EventContentType},
					headerHarness:         {f.Ref.Harness},
					headerSession:         {f.Ref.Session},
					headerSeq:             {place},
					jetstream.MsgIDHeader: {place + "." + strconv.Itoa(i)},
				}})
		}
	}
	now, later := b.feedTogether(msgs)
	under := b.sendFeed(ctx, now)
	return Pending{wait: func(ctx context.Context) (uint64, error) {
		for len(now) > 0 {
			if err := b.fed(ctx, now, under); err != nil {
				return 0, err
			}
			now, later = b.feedTogether(later)
			under = b.sendFeed(ctx, now)
		}
		return 0, nil
	}}
}

// feedKind returns the kind as tokens of a subject. Unknown kinds may have any form, so they go to one place.
func feedKind(k events.Kind) events.Kind {
	entity, verb, two := strings.Cut(string(k), ".")
	for _, part := range []string{entity, verb} {
		if t, err := events.Token(part); err != nil || t != part || !two {
			return oddKind + "." + oddKind
		}
	}
	return k
}
