package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	apiPrefix = "$JS.API."
	// how long a refusal without a new message in the stream may mean that a proposal is in flight
	inFlightGraceMS = 100
	// refusals in a row, without a new message in the stream, until the guard itself counts as wrong
	refusedRoundsMax = 10
	// how long the leader of a log with several copies may answer from less than is stored: it has been elected, and
	// applies what is in its Raft log. Shorter than a person waits for an answer.
	leaderGraceMS = 8_000

	batchMin         = 16      // messages from which one batch is quicker than single messages
	batchMessagesMax = 1_000   // messages of a batch: the broker's limit
	batchBytesMax    = 8 << 20 // bytes of a batch, about
	headerBatchID    = "Nats-Batch-Id"
	headerBatchSeq   = "Nats-Batch-Sequence"
	headerBatchEnd   = "Nats-Batch-Commit"

	replayWindowMax = 8_192       // messages pulled ahead
	replayIdleMax   = time.Minute // the broker removes the consumer of a reader that ended after this time
	// without a delivery for this long, although there is more: start again at the present place
	replaySilentMS = 2_000
)

// sent is one publish that waits for its acknowledgement.
type sent struct {
	subject string
	at      time.Time
	paf     jetstream.PubAckFuture
	err     error // it could not even be sent

	done   bool // it has been waited for: the result
	seq    uint64
	failed error
}

// send publishes; it blocks only while the window is full.
func (b *Bus) send(ctx context.Context, m *nats.Msg) sent {
	s := sent{subject: m.Subject, at: time.Now()}
	for {
		s.paf, s.err = b.js.PublishMsgAsync(m)
		if s.err != nil && b.nc.IsClosed() {
			s.err = nats.ErrConnectionClosed
		}
		if !errors.Is(s.err, jetstream.ErrTooManyStalledMsgs) || ctx.Err() != nil {
			return s
		}
	}
}

// ack waits for the acknowledgement: the sequence, or a translated error. [ErrUnreachable] means that the outcome is
// unknown.
func (b *Bus) ack(ctx context.Context, s sent) (uint64, error) {
	if s.done {
		return s.seq, s.failed
	}
	if s.err != nil {
		return 0, translate("publish to "+s.subject, s.err)
	}
	ok, failed := s.paf.Ok(), s.paf.Err()
	for {
		changed := b.denied.next()
		if err := b.denied.since(s.subject, s.at); err != nil {
			return 0, err
		}
		select {
		case a := <-ok:
			b.heard(ctx, nil)
			return a.Sequence, nil
		case err := <-failed:
			err = translate("publish to "+s.subject, err)
			b.heard(ctx, err)
			return 0, err
		case <-changed:
		case <-ctx.Done():
			return 0, b.late("publish to "+s.subject, ctx.Err())
		}
	}
}

// sendBatch publishes messages to one stream as the broker's atomic batch: it accepts all or none, stores them one
// after the other and syncs once. The acknowledgement is that of the last message, and holds for all of them. A power
// failure before it can leave the first messages of the batch without the others, so callers that need two messages
// together must handle half of them. The messages are not changed, so they can be sent one by one if the batch is
// refused.
func (b *Bus) sendBatch(ctx context.Context, msgs []*nats.Msg) sent {
	id := nuid.Next()
	for i, m := range msgs {
		m = &nats.Msg{Subject: m.Subject, Data: m.Data, Header: maps.Clone(m.Header)}
		m.Header[headerBatchID], m.Header[headerBatchSeq] = []string{id}, []string{strconv.Itoa(i + 1)}
		if i == len(msgs)-1 {
			m.Header[headerBatchEnd] = []string{"1"}
			return b.send(ctx, m)
		}
		if err := b.nc.PublishMsg(m); err != nil {
			return sent{subject: m.Subject, at: time.Now(), err: err}
		}
	}
	return sent{err: nats.ErrBadSubject} // a batch of nothing is a mistake of this package
}

// late returns the error for a caller whose time is over: the reason of a refused login, if there is one.
func (b *Bus) late(op string, err error) error {
	if auth := b.authErr.Load(); auth != nil {
		return *auth
	}
	return unreachable(op, err)
}

// verdict is the stream's own state about a write whose publish was refused or got no answer.
type verdict int

const (
	undecided verdict = iota // neither this write nor another one: send it again
	stored                   // it is stored: only the acknowledgement was lost
	lost                     // another one is stored
	// the stream ends before the guard's message: that was lost, unless the leader is still starting
	behind
	starting // as behind, but the leader may not have applied yet what is stored
	moved    // the write is valid under another guard, which is set now: send it again
)

// write is a publish under a guard, with the function that finds out its outcome.
type write struct {
	op  string // what is done, and to what, for errors
	msg *nats.Msg
	// look asks the stream's leader; it may set a newer guard in msg under which the same write is valid.
	look func(ctx context.Context) (verdict, uint64, error)
}

// begin sends a guarded write; the result is certain when Wait returns without [ErrUnreachable].
func (b *Bus) begin(ctx context.Context, w *write) Pending {
	s := b.send(ctx, w.msg)
	return Pending{wait: func(ctx context.Context) (uint64, error) { return b.settle(ctx, w, s) }}
}

// settle waits for a write and, if it was refused or not answered, finds out its outcome, and sends it again under the
// same guard if it was not stored.
func (b *Bus) settle(ctx context.Context, w *write, s sent) (uint64, error) {
	pace, began := newBackoff(), time.Now()
	for refused := 0; ; {
		seq, err := b.ack(ctx, s)
		if err == nil {
			return seq, nil
		}
		if !errors.Is(err, ErrLostRace) && !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return 0, fmt.Errorf("bus: %s: %w", w.op, err)
		}
		if errors.Is(err, ErrLostRace) {
			refused++
		}
		v, seq, err := b.lookAgain(ctx, w, errors.Is(err, ErrLostRace))
		switch {
		case err != nil:
			return 0, fmt.Errorf("bus: %s: %w", w.op, err)
		case v == stored:
			return seq, nil
		case v == lost:
			return 0, fmt.Errorf("%w: %s", ErrLostRace, w.op)
		case v == starting && time.Since(began) < leaderGraceMS*time.Millisecond:
			if !pause(ctx, pace.NextBackOff()) {
				return 0, b.late(w.op, ctx.Err())
			}
		case refused >= refusedRoundsMax && (v == behind || v == starting):
			return 0, fmt.Errorf("%w: %s: its guard is a commit that the log does not have any more; the last one "+
				"there is %d", ErrLogBehind, w.op, seq)
		case refused >= refusedRoundsMax:
			return 0, fmt.Errorf("%w: %s: refused %d times with nothing new: the stream never had what the guard names",
				ErrLostRace, w.op, refused)
		case refused == 0 && !pause(ctx, pace.NextBackOff()):
			return 0, b.late(w.op, ctx.Err())
		}
		s = b.send(ctx, w.msg)
	}
}

// lookAgain polls until the outcome is known, as long as a proposal may be in flight.
func (b *Bus) lookAgain(ctx context.Context, w *write, refused bool) (verdict, uint64, error) {
	started, pace := time.Now(), newBackoff()
	for {
		v, seq, err := w.look(ctx)
		if err != nil || v != undecided && v != behind && v != starting || !refused ||
			time.Since(started) > inFlightGraceMS*time.Millisecond {
			return v, seq, err
		}
		if !pause(ctx, pace.NextBackOff()/2) {
			return undecided, 0, b.late(w.op, ctx.Err())
		}
	}
}

// pause waits and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// call sends a request to the JetStream API (subject without its prefix) and decodes the reply into resp. It tries
// again while the broker or a leader is away, until ctx ends, so it is only for requests that may be repeated. Errors
// are translated.
func (b *Bus) call(ctx context.Context, op, subject string, req, resp any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("bus: %s: %w", op, err)
	}
	if req == nil {
		body = nil
	}
	try := func() error {
		err := b.callOnce(ctx, op, apiPrefix+subject, body, resp)
		if err != nil && (ctx.Err() != nil || b.nc.IsClosed() || !errors.Is(err, ErrUnreachable)) {
			return backoff.Permanent(err)
		}
		return err
	}
	var last error
	err = backoff.RetryNotify(try, backoff.WithContext(newBackoff(), ctx), func(err error, _ time.Duration) {
		last = err
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	if last == nil {
		last = err
	}
	return b.late(op, last)
}

func (b *Bus) callOnce(ctx context.Context, op, subject string, body []byte, resp any) error {
	err := b.exchange(ctx, op, subject, body, resp)
	b.heard(ctx, err)
	return err
}

func (b *Bus) exchange(ctx context.Context, op, subject string, body []byte, resp any) error {
	started := time.Now()
	attempt, leave := b.attempts.enter(ctx)
	defer leave()
	m, err := b.nc.RequestWithContext(attempt, subject, body)
	if denied := b.denied.since(subject, started); denied != nil {
		return denied
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, op, err)
	case err != nil:
		return translate(op, err)
	}
	if q, ok := resp.(*getReply); ok && q.quickly(m.Data) {
		return nil
	}
	if bytes.Contains(m.Data, []byte(`"error"`)) {
		var failed struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &failed); err == nil && failed.Error != nil {
			return translate(op, failed.Error)
		}
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("bus: %s: reply: %w", op, err)
	}
	return nil
}

// getRequest requests one message: by sequence, the first of a subject from a sequence on, or the last of a subject.
type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	// Since, with Next and without Seq: the first one stored then or later.
	Since *time.Time `json:"start_time,omitempty"`
}

// message is one stored message.
type message struct {
	Subject string      `json:"subject"`
	Seq     uint64      `json:"seq"`
	RawHead []byte      `json:"hdrs"`
	Data    []byte      `json:"data"`
	Time    time.Time   `json:"time"`
	Header  nats.Header `json:"-"`
}

// get reads one message from the stream's leader; [ErrNotFound] without one.
func (b *Bus) get(ctx context.Context, stream string, req getRequest) (*message, error) {
	var resp getReply
	if err := b.call(ctx, "read "+stream, "STREAM.MSG.GET."+stream, req, &resp); err != nil {
		return nil, err
	}
	m := resp.Message
	if m == nil {
		return nil, fmt.Errorf("%w: read %s: empty reply", ErrUnreachable, stream)
	}
	if len(m.RawHead) > 0 {
		m.Header = headerOf(m.RawHead)
	}
	return m, nil
}

// span is a range of messages: those of a filter from a sequence on, up to last. With open set, messages written during
// the reading are read, too, until none is left.
type span struct {
	stream, filter string
	from, last     uint64
	open           bool
}

// replay calls fn with every stored message of the span, once, in order, in the caller's goroutine. It survives lost
// messages, restarts of the broker and lagging replicas: it ends only when the leader has no more. An error of fn ends
// it and is returned unchanged.
func (b *Bus) replay(ctx context.Context, s span, fn func(*message) error) error {
	pace := newBackoff()
	for s.from <= s.last {
		before := s.from
		err := b.replayOnce(ctx, &s, fn)
		var mine callbackError
		switch {
		case errors.As(err, &mine):
			return mine.error
		case ctx.Err() != nil:
			return b.late("read "+s.stream, ctx.Err())
		case err != nil && !errors.Is(err, ErrUnreachable) && !errors.Is(err, errInterrupted):
			return err
		case s.from > s.last:
			return nil
		}
		m, err := b.get(ctx, s.stream, getRequest{Seq: s.from, Next: s.filter})
		switch {
		case errors.Is(err, ErrNotFound), err == nil && m.Seq > s.last:
			return nil // the rest was purged, or replaced by later messages
		case err != nil:
			return err
		case s.from > before:
			pace.Reset()
		case !pause(ctx, pace.NextBackOff()):
			return b.late("read "+s.stream, ctx.Err())
		}
	}
	return nil
}

// replayOnce reads with one consumer and moves s.from behind the last message read. nil: it has read to the end of its
// replica.
func (b *Bus) replayOnce(ctx context.Context, s *span, fn func(*message) error) error {
	name, pending, err := b.reader(ctx, s.stream, s.filter, s.from)
	if err != nil {
		return err
	}
	defer b.forget(s.stream, name)
	if pending == 0 {
		return nil
	}
	began := time.Now()
	f := b.flow(s.stream, name, replayWindowMax, 1, pull{})
	defer f.close()
	for {
		ds, err := b.takeSoon(ctx, f, began)
		if err == nil {
			err = b.withHeaders(ctx, s.stream, ds)
		}
		if err != nil {
			return err
		}
		for _, d := range ds {
			if d.seq > s.last && !s.open {
				s.from = d.seq
				return nil
			}
			if err := fn(&message{Subject: d.msg.Subject, Seq: d.seq, Header: d.msg.Header, Data: d.msg.Data,
				Time: d.at}); err != nil {
				return callbackError{err}
			}
			s.from = d.seq + 1
			if d.pending == 0 || s.from > s.last && !s.open {
				return nil
			}
		}
	}
}

// takeSoon is flow.take with a time limit: the last message may have been lost.
func (b *Bus) takeSoon(ctx context.Context, f *flow, began time.Time) ([]delivery, error) {
	soon, cancel := context.WithTimeout(ctx, replaySilentMS*time.Millisecond)
	defer cancel()
	ds, err := f.take(soon, replayWindowMax)
	if err == nil {
		return ds, nil
	}
	if denied := b.denied.since(f.subject, began); denied != nil {
		return nil, denied
	}
	return nil, fmt.Errorf("%w: %w", errInterrupted, err)
}

// forget deletes a consumer without waiting for the reply; otherwise the broker would remove it later.
func (b *Bus) forget(stream, consumer string) {
	if err := b.nc.PublishRequest(apiPrefix+"CONSUMER.DELETE."+stream+"."+consumer, nats.NewInbox(), nil); err != nil {
		b.log.Debug().AnErr("err", err).Str("entity", "consumer").Str("id", consumer).Msg("left to expire")
	}
}
