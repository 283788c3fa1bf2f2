package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Pending is a write in flight. Wait once for it.
type Pending struct {
	wait func(ctx context.Context) (uint64, error)
}

// PendingUntil returns the write whose result wait returns.
func PendingUntil(wait func(ctx context.Context) (uint64, error)) Pending { return Pending{wait: wait} }

// Wait blocks until the write's result is certain or ctx ends. It returns the sequence (log) or revision (buckets) and
// the same errors as the blocking form of the write. The zero Pending is done: (0, nil).
func (p Pending) Wait(ctx context.Context) (uint64, error) {
	if p.wait == nil {
		return 0, nil
	}
	return p.wait(ctx)
}

// Put publishes without a guard until it is acknowledged and synced, or ctx ends; the message may be stored twice.
func (c *Conn) Put(ctx context.Context, op, stream string, m *nats.Msg) (uint64, error) {
	for pace := NewBackoff(); ; {
		s := c.Send(ctx, m)
		seq, err := c.Ack(ctx, s)
		if err == nil {
			err = c.Syncs.Await(ctx, s.since, stream, seq)
		}
		if err == nil {
			return seq, nil
		}
		if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return 0, fmt.Errorf("%s: %w", op, err)
		}
		Pause(ctx, pace.NextBackOff())
	}
}

// idRefusalsMax is how often an id is refused because it is in process until the message is sent with another one.
const idRefusalsMax = 4

// Repeat waits for a publish with a message id and sends it again as long as its outcome is unknown. The leader of a
// stream with several copies may lose what it has proposed, and refuses the id until the window for duplicates has
// passed. The message gets another id then, so it may be stored twice. Sent again later, it gets the same ids.
func (c *Conn) Repeat(ctx context.Context, op string, msg *nats.Msg, s Sent) error {
	pace, refusals := NewBackoff(), 0
	for {
		_, err := c.Ack(ctx, s)
		if err == nil {
			return nil
		}
		held := idInProcess(err)
		if !held && !errors.Is(err, ErrUnreachable) || ctx.Err() != nil || c.NC.IsClosed() ||
			!Pause(ctx, pace.NextBackOff()) {
			return fmt.Errorf("%s: %w", op, err)
		}
		if held {
			refusals++
		}
		if held && refusals%idRefusalsMax == 0 {
			msg = withNextID(msg)
		}
		s = c.Send(ctx, msg)
	}
}

// withNextID returns a message with the id that follows its own.
func withNextID(msg *nats.Msg) *nats.Msg {
	next := *msg
	next.Header = maps.Clone(msg.Header)
	next.Header.Set(jetstream.MsgIDHeader, msg.Header.Get(jetstream.MsgIDHeader)+".again")
	return &next
}

// APIPrefix begins the subjects of the JetStream API.
const APIPrefix = "$JS.API."

// HeaderBatchSeq has the number of a message within its batch, from 1.
const HeaderBatchSeq = "Nats-Batch-Sequence"

// Limits of guarded writes.
const (
	// how long a refusal without a new message in the stream may mean that a proposal is in flight
	inFlightGraceMS = 100
	// refusals in a row, without a new message in the stream, until the guard itself counts as wrong
	refusedRoundsMax = 10
	// how long the leader of a log with several copies may answer from less than is stored: it has been elected, and
	// applies what is in its Raft log. Shorter than a person waits for an answer.
	leaderGraceMS = 8_000

	BatchMin         = 16      // messages from which one batch is quicker than single messages
	BatchMessagesMax = 1_000   // messages of a batch: the broker's limit
	BatchBytesMax    = 8 << 20 // bytes of a batch, about
	headerBatchID    = "Nats-Batch-Id"
	headerBatchEnd   = "Nats-Batch-Commit"
)

// Sent is one publish that waits for its acknowledgement.
type Sent struct {
	subject string
	at      time.Time
	paf     jetstream.PubAckFuture
	err     error // it could not even be sent

	since Uptime // the connection before it was sent

	done   bool // it has been waited for: the result
	seq    uint64
	failed error
}

// Send publishes; it blocks only while the window is full.
func (c *Conn) Send(ctx context.Context, m *nats.Msg) Sent {
	s := Sent{subject: m.Subject, at: time.Now(), since: c.Syncs.Uptime()}
	for {
		s.paf, s.err = c.js.PublishMsgAsync(m)
		if s.err != nil && c.NC.IsClosed() {
			s.err = nats.ErrConnectionClosed
		}
		if !errors.Is(s.err, jetstream.ErrTooManyStalledMsgs) || ctx.Err() != nil {
			return s
		}
	}
}

// Ack waits for the acknowledgement: the sequence, or a translated error. [ErrUnreachable] means that the outcome is
// unknown.
func (c *Conn) Ack(ctx context.Context, s Sent) (uint64, error) {
	if s.done {
		return s.seq, s.failed
	}
	if s.err != nil {
		return 0, Translate("publish to "+s.subject, s.err)
	}
	ok, failed := s.paf.Ok(), s.paf.Err()
	for {
		changed := c.Denied.Next()
		if err := c.Denied.Since(s.subject, s.at); err != nil {
			return 0, err
		}
		select {
		case a := <-ok:
			c.observe(ctx, nil)
			return a.Sequence, nil
		case err := <-failed:
			err = Translate("publish to "+s.subject, err)
			c.observe(ctx, err)
			return 0, err
		case <-changed:
		case <-ctx.Done():
			return 0, c.Late("publish to "+s.subject, ctx.Err())
		}
	}
}

// SendBatch publishes messages to one stream as the broker's atomic batch: it accepts all or none, stores them one
// after the other and syncs once. The acknowledgement is that of the last message, and holds for all of them. A power
// failure before it can leave the first messages of the batch without the others, so callers that need two messages
// together must handle half of them. The messages are not changed, so they can be sent one by one if the batch is
// refused.
func (c *Conn) SendBatch(ctx context.Context, msgs []*nats.Msg) Sent {
	id := NewSecret()
	for i, m := range msgs {
		m = &nats.Msg{Subject: m.Subject, Data: m.Data, Header: maps.Clone(m.Header)}
		m.Header[headerBatchID], m.Header[HeaderBatchSeq] = []string{id}, []string{strconv.Itoa(i + 1)}
		if i == len(msgs)-1 {
			m.Header[headerBatchEnd] = []string{"1"}
			return c.Send(ctx, m)
		}
		if err := c.NC.PublishMsg(m); err != nil {
			return Sent{subject: m.Subject, at: time.Now(), err: err}
		}
	}
	// a batch of nothing is a mistake of this package
	return Sent{err: nats.ErrBadSubject}
}

// Verdict is the stream's own state about a write whose publish was refused or got no answer.
type Verdict int

const (
	Undecided Verdict = iota // neither this write nor another one: send it again
	Stored                   // it is stored: only the acknowledgement was lost
	Lost                     // another one is stored
	// the stream ends before the guard's message: that was lost, unless the leader is still starting
	Behind
	Starting // as behind, but the leader may not have applied yet what is stored
	Moved    // the write is valid under another guard, which is set now: send it again
)

// Write is a publish under a guard, with the function that finds out its outcome.
type Write struct {
	Op  string // what is done, and to what, for errors
	Msg *nats.Msg
	// Verify asks the stream's leader; it may set a newer guard in msg under which the same write is valid.
	Verify func(ctx context.Context) (Verdict, uint64, error)
	// On is how often the connection had been restored when the stream was compared with what the guard stands for
	// ([Conn.Reconnects]). A stream that was restored from an older copy can have another message in its place. So
	// Verify is asked before each publish on a newer connection. nil: the guard is enough.
	On *uint64
	// Synced is the stream that has to be synced up to the write before its result is certain, "" if others can make
	// the write again after a cut of the power.
	Synced string
	// BusyMax limits how long the write is sent again while each answer is that others with its guard are in flight; 0:
	// [leaderGraceMS].
	BusyMax time.Duration
}

// busyMax returns the limit for refusals because of writes in flight.
func (w *Write) busyMax() time.Duration {
	if w.BusyMax > 0 {
		return w.BusyMax
	}
	return leaderGraceMS * time.Millisecond
}

// Begin sends a guarded write; the result is certain when Wait returns without [ErrUnreachable].
func (c *Conn) Begin(ctx context.Context, w *Write) Pending {
	s := c.sendOn(ctx, w, w.On)
	return Pending{wait: func(ctx context.Context) (uint64, error) { return c.settle(ctx, w, s) }}
}

// restoredSince says whether the connection was restored since it had been restored so often. nil: it does not matter.
func (c *Conn) restoredSince(on *uint64) bool { return on != nil && *on != c.Reconnects() }

// sendOn publishes a guarded write if the connection was not restored since the stream was compared. If it was, nothing
// is sent, and the result is that of a publish without an answer, after which the stream is asked.
func (c *Conn) sendOn(ctx context.Context, w *Write, on *uint64) Sent {
	if c.restoredSince(on) {
		return Sent{done: true, failed: fmt.Errorf("%w: publish to %s: the connection was restored", ErrUnreachable,
			w.Msg.Subject)}
	}
	return c.Send(ctx, w.Msg)
}

// settle waits for a write and, if it was refused or not answered, finds out its outcome, and sends it again under the
// same guard if it was not stored.
func (c *Conn) settle(ctx context.Context, w *Write, s Sent) (uint64, error) {
	pace := NewBackoff()
	var waiting, starting streak
	for refused, short, known := 0, false, true; ; {
		seq, err := c.Ack(ctx, s)
		if err == nil {
			err = c.writeSynced(ctx, w, s.since, seq)
		}
		if err == nil {
			return seq, nil
		}
		if !errors.Is(err, ErrLostRace) && !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return 0, fmt.Errorf("%s: %w", w.Op, err)
		}
		lost, busy := errors.Is(err, ErrLostRace), inFlight(err)
		known = known && lost
		if lost && !busy {
			refused++
		}
		waited, on := waiting.lasts(busy), w.On
		if on != nil {
			n := c.Reconnects()
			on = &n
		}
		since := c.Syncs.Uptime()
		v, seq, err := c.checkAgain(ctx, w, lost)
		if err == nil && v == Stored {
			if synced := c.writeSynced(ctx, w, since, seq); synced != nil {
				if ctx.Err() != nil {
					return 0, fmt.Errorf("%s: %w", w.Op, synced)
				}
				// verify once more
				s = Sent{done: true, failed: synced}
				continue
			}
		}
		if short && v == Undecided {
			// for lack of the guard's commit, which the leader has applied since
			refused = 0
		}
		short = v == Starting
		started := starting.lasts(short && lost)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%s: %w", w.Op, err)
		case v == Stored:
			return seq, nil
		case v == Lost:
			return 0, fmt.Errorf("%w: %s", ErrLostRace, w.Op)
		case v == Starting && started < leaderGraceMS*time.Millisecond:
			if !Pause(ctx, pace.NextBackOff()) {
				return 0, c.Late(w.Op, ctx.Err())
			}
		case refused >= refusedRoundsMax && (v == Behind || v == Starting):
			return 0, fmt.Errorf("%w: %s: its guard is a commit that the log does not have any more; the last one "+
				"there is %d", ErrLogBehind, w.Op, seq)
		case refused >= refusedRoundsMax:
			return 0, fmt.Errorf("%w: %s: refused %d times with nothing new: the stream never had what the guard names",
				ErrLostRace, w.Op, refused)
		case busy && known && v == Undecided && waited >= w.busyMax():
			return 0, fmt.Errorf("%w: %s", ErrBusy, w.Op)
		case busy && v == Undecided && waited >= w.busyMax():
			return 0, fmt.Errorf("%w: %s", ErrInFlight, w.Op)
		case !lost && refused == 0 && !Pause(ctx, pace.NextBackOff()):
			return 0, c.Late(w.Op, ctx.Err())
		}
		s = c.sendOn(ctx, w, on)
	}
}

// writeSynced waits until a stored write is synced, if its result depends on that.
func (c *Conn) writeSynced(ctx context.Context, w *Write, since Uptime, seq uint64) error {
	if w.Synced == "" {
		return nil
	}
	return c.Syncs.Await(ctx, since, w.Synced, seq)
}

// streak measures how long the broker has given the same answer. An outage before it does not count.
type streak struct{ began time.Time }

// lasts returns how long the answer has been given without another one in between; given says whether it is this time.
func (s *streak) lasts(given bool) time.Duration {
	if !given {
		s.began = time.Time{}
		return 0
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began)
}

// checkAgain polls until the outcome is known, as long as a proposal may be in flight.
func (c *Conn) checkAgain(ctx context.Context, w *Write, refused bool) (Verdict, uint64, error) {
	started, pace := time.Now(), NewBackoff()
	for {
		v, seq, err := w.Verify(ctx)
		if err != nil || v != Undecided && v != Behind && v != Starting || !refused ||
			time.Since(started) > inFlightGraceMS*time.Millisecond {
			return v, seq, err
		}
		if !Pause(ctx, pace.NextBackOff()/2) {
			return Undecided, 0, c.Late(w.Op, ctx.Err())
		}
	}
}
