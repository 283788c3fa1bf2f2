// Package log appends commits to the log of a cell under the guard of their session, and reads and follows the log.
//
// Each append names the session's last commit that its writer has folded. The leader of the stream answers the reads
// that decisions depend on. The feed repeats, by kind, the facts that counted.
package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Headers on the wire.
const (
	headerContentType = "Content-Type"
	headerHarness     = "Hf-Harness"
	headerSession     = "Hf-Session"
)

const (
	readSinglesMax = 16      // commits of a session that are read one by one before a reader is created
	oddKind        = "other" // where the feed puts kinds that are not two tokens of a subject
)

// Log is the log of a cell, with its feed. Its methods may be called concurrently.
type Log struct {
	conn *core.Conn
	room room
}

// New returns the log of the cell of a connection.
func New(conn *core.Conn) *Log { return &Log{conn: conn} }

// Last is the last commit of a session that a writer has folded.
type Last struct {
	Seq   uint64 // 0: none
	First string // the id of its first event, "" if it is not known: a restored log may have another commit there
	On    uint64 // how often the connection had been restored when the log had that commit
}

// LastOf returns a commit as the last one that a writer has folded.
func LastOf(c *events.Commit) Last {
	if len(c.Events) == 0 {
		return Last{Seq: c.Seq}
	}
	return Last{Seq: c.Seq, First: c.Events[0].ID}
}

// Append is [Log.AppendAsync] of a writer that knows its last commit. Before anything is sent on a newer connection
// than the one on which the log had that commit, and before the same events are sent again, the log is asked for
// it. The error is [core.ErrLostRace] if another one is in its place.
func (last Last) Append(ctx context.Context, l *Log, r events.Ref, w events.Writer,
	evs []events.Event) core.Pending {
	return l.appendAsync(ctx, r, w, last, &last.On, evs)
}

// Append stores facts of one session as one commit and returns its place in the log. after is the session's last commit
// that the writer has folded, 0 for none: if another writer was first, nothing is stored and the error is
// [core.ErrLostRace]. The same events appended again with the same after are recognised by the first one's id: Append
// returns their place. [core.ErrFull]: the log's limits refuse. [core.ErrUnreachable]: ctx ended and the commit's
// outcome is unknown; append the same again. [core.ErrLogBehind]: the log does not have the commit after any more.
// Facts that no reader could read are refused with an error of pkg/events. A service that finds the log filled by
// others raises its limit, once in the log's life, so that recovery and closing have space.
func (l *Log) Append(ctx context.Context, r events.Ref, w events.Writer, after uint64, evs []events.Event) (uint64,
	error) {
	seq, err := l.AppendAsync(ctx, r, w, after, evs).Wait(ctx)
	if w == events.WriterHarness || !errors.Is(err, core.ErrFull) {
		return seq, err
	}
	raised, raiseErr := l.RaiseLimit(ctx)
	if raiseErr != nil {
		return 0, errors.Join(err, raiseErr)
	}
	if raised {
		l.conn.Log.Warn().Str("entity",
			l.conn.Cell.LogStream()).Msg("the log is full: its limit was raised by a tenth, which happens once; make " +
			"room, or raise it further")
	}
	// also if another service has just raised it
	return l.AppendAsync(ctx, r, w, after, evs).Wait(ctx)
}

// AppendAsync is [Log.Append] without waiting, for concurrent commits of many sessions. It blocks only while the window
// of unacknowledged publishes is full. The caller may reuse the events when it returns.
func (l *Log) AppendAsync(ctx context.Context, r events.Ref, w events.Writer, after uint64,
	evs []events.Event) core.Pending {
	return l.appendAsync(ctx, r, w, Last{Seq: after}, nil, evs)
}

func (l *Log) appendAsync(ctx context.Context, r events.Ref, w events.Writer, last Last, on *uint64,
	evs []events.Event) core.Pending {
	after := last.Seq
	op := "append to " + r.String()
	err := r.Validate()
	var body []byte
	if err == nil {
		body, err = events.EncodeBatch(evs)
	}
	if err != nil {
		return failed(fmt.Errorf("%s: %w", op, err))
	}
	guard := l.conn.Cell.LogGuard(r)
	msg := &nats.Msg{Subject: l.conn.Cell.LogSubject(r, w), Data: body, Header: nats.Header{
		headerContentType:                       {events.BatchContentType},
		jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(after, 10)},
		jetstream.ExpectedLastSubjSeqSubjHeader: {guard},
	}}
	first, n := evs[0].ID, len(evs)
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		c, err := l.next(ctx, guard, after)
		switch {
		case errors.Is(err, core.ErrNotFound) && !core.NoStream(err):
			// a writer folds only stored commits, so the log has lost its end
			if c.Seq < after {
				v, err := l.endBefore(ctx, after)
				return v, c.Seq, err
			}
			// the log was restored, and written since
			if last.First != "" && LastOf(&c).First != last.First {
				return core.Lost, 0, nil
			}
			return core.Undecided, 0, nil
		case err != nil:
			return core.Undecided, 0, err
		}
		if c.Writer == w && c.Guard == after && len(c.Events) == n && c.Events[0].ID == first {
			return core.Stored, c.Seq, nil
		}
		return core.Lost, 0, nil
	}
	write := &core.Write{Op: op, Msg: msg, Verify: verify, On: on, Synced: l.conn.Cell.LogStream()}
	if l.conn.Together.Load() {
		return l.conn.BeginBatched(guard, write)
	}
	return l.conn.Begin(ctx, write)
}

// endBefore is the verdict about a log whose session ends before a commit that was stored. It is certain if the log has
// other commits at that place, or has only one copy.
func (l *Log) endBefore(ctx context.Context, after uint64) (core.Verdict, error) {
	info, err := l.conn.StreamInfo(ctx, l.conn.Cell.LogStream())
	switch {
	case err != nil:
		return core.Undecided, err
	case info.State.LastSeq < after && info.Config.Replicas > 1:
		return core.Starting, nil
	}
	return core.Behind, nil
}

// next returns a session's first commit behind a place in the log, [core.ErrNotFound] without one. It searches from the
// session's end: forwards, the broker would search through all later writes of all sessions.
func (l *Log) next(ctx context.Context, guard string, after uint64) (events.Commit, error) {
	stream := l.conn.Cell.LogStream()
	end, err := l.conn.Get(ctx, stream, core.GetRequest{Last: guard})
	if err != nil {
		return events.Commit{}, err
	}
	newest := l.commit(end)
	if newest.Seq <= after {
		return newest, fmt.Errorf("%w: %s: no commit after %d", core.ErrNotFound, newest.Ref, after)
	}
	chain, _, err := l.chain(ctx, end, after+1)
	switch {
	case err != nil:
		return newest, err
	case chain != nil:
		return chain[0], nil
	}
	m, err := l.conn.Get(ctx, stream, core.GetRequest{Seq: after + 1, Next: guard})
	if err != nil {
		return newest, err
	}
	return l.commit(m), nil
}

// failed is a write that failed before it was sent.
func failed(err error) core.Pending {
	return core.PendingUntil(func(context.Context) (uint64, error) { return 0, err })
}

// Read returns a session's commits from a place in the log on, oldest first. They come from the log's leader and
// include all commits that were acknowledged before the call.
func (l *Log) Read(ctx context.Context, r events.Ref, from uint64) ([]events.Commit, error) {
	var all []events.Commit
	err := l.Each(ctx, r, from, func(c events.Commit) error {
		all = append(all, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Each calls fn with the commits that [Log.Read] returns, one after the other, in the caller's goroutine, so that a
// session of any length can be read. An error of fn ends it and is returned unchanged.
func (l *Log) Each(ctx context.Context, r events.Ref, from uint64, fn func(events.Commit) error) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("read %s: %w", r, err)
	}
	stream, guard := l.conn.Cell.LogStream(), l.conn.Cell.LogGuard(r)
	from = max(from, 1)
	end, err := l.conn.Get(ctx, stream, core.GetRequest{Last: guard})
	switch {
	case errors.Is(err, core.ErrNotFound) && !core.NoStream(err), err == nil && end.Seq < from:
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", r, err)
	}
	chain, long, err := l.chain(ctx, end, from)
	if err != nil {
		return core.Translate("read "+r.String(), err)
	}
	for _, c := range chain {
		if err := fn(c); err != nil {
			return err
		}
	}
	if chain != nil {
		return nil
	}
	singles := readSinglesMax
	// the chain has counted them
	if long {
		singles = 0
	}
	var own error
	take := func(m *core.Raw) error {
		from, own = m.Seq+1, fn(l.commit(m))
		return own
	}
	for n := 0; from <= end.Seq; n++ {
		if n == singles {
			err := pull.Replay(ctx, l.conn, pull.Span{Stream: stream, Filter: guard, From: from, Last: end.Seq}, take)
			// a user without a reader continues one by one
			if own != nil || !errors.Is(err, core.ErrForbidden) {
				return cmp.Or(own, core.Translate("read "+r.String(), err))
			}
		}
		m, err := l.conn.Get(ctx, stream, core.GetRequest{Seq: from, Next: guard})
		if errors.Is(err, core.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", r, err)
		}
		if err := take(m); err != nil {
			return err
		}
	}
	return nil
}

// chain reads back from a session's newest commit by the guards, each of which names the predecessor: the broker
// accepted it because nothing is between them. This is cheap for the broker, while the search for the next message of
// one of many subjects reads all later writes. It returns nil and long if the chain is too long, and nil if it is
// broken: a commit without a guard, or purged, or one of several that a batch stored under the same guard.
func (l *Log) chain(ctx context.Context, newest *core.Raw, from uint64) (all []events.Commit, long bool, err error) {
	m, c := newest, l.commit(newest)
	all = []events.Commit{c}
	for c.Guarded {
		if alone, err := l.aloneInBatch(ctx, m, l.conn.Cell.LogGuard(c.Ref)); err != nil || !alone {
			return nil, false, err
		}
		if c.Guard < from {
			slices.Reverse(all)
			return all, false, nil
		}
		if len(all) == readSinglesMax {
			return nil, true, nil
		}
		m, err = l.conn.Get(ctx, l.conn.Cell.LogStream(), core.GetRequest{Seq: c.Guard})
		if errors.Is(err, core.ErrNotFound) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if c = l.commit(m); c.Ref != all[0].Ref {
			return nil, false, nil
		}
		all = append(all, c)
	}
	return nil, false, nil
}

// aloneInBatch reports whether no earlier message of this one's batch belongs to the same session. The broker compares
// the guards of a batch with the stream before the batch, so it accepts several commits of a session under the same
// guard. Messages of a batch are adjacent, so the search is short.
func (l *Log) aloneInBatch(ctx context.Context, m *core.Raw, guard string) (bool, error) {
	n, err := strconv.ParseUint(m.Header.Get(core.HeaderBatchSeq), 10, 64)
	// no batch, or its first message
	if err != nil || n <= 1 || n > m.Seq {
		return true, nil
	}
	first, err := l.conn.Get(ctx, l.conn.Cell.LogStream(), core.GetRequest{Seq: m.Seq - n + 1, Next: guard})
	if err != nil {
		return false, err
	}
	return first.Seq == m.Seq, nil
}

// Commit reads one commit by its place in the log; [core.ErrNotFound] if it was purged or never existed.
func (l *Log) Commit(ctx context.Context, seq uint64) (events.Commit, error) {
	if seq == 0 {
		return events.Commit{}, fmt.Errorf("%w: commit 0: the log begins with 1", core.ErrNotFound)
	}
	m, err := l.conn.Get(ctx, l.conn.Cell.LogStream(), core.GetRequest{Seq: seq})
	if err != nil {
		return events.Commit{}, err
	}
	return l.commit(m), nil
}

// Scan calls fn with every commit of the log from a place on, in order, up to the log's end at the time of the call.
// Unreadable commits have Err set. An error of fn ends it and is returned unchanged.
func (l *Log) Scan(ctx context.Context, from uint64, fn func(events.Commit) error) error {
	last, err := l.LastSeq(ctx)
	if err != nil {
		return err
	}
	s := pull.Span{Stream: l.conn.Cell.LogStream(), Filter: l.conn.Cell.LogSubjects(), From: max(from, 1), Last: last}
	return pull.Replay(ctx, l.conn, s, func(m *core.Raw) error { return fn(l.commit(m)) })
}

// Since calls fn with the commits of a harness's sessions that were stored at an instant of the broker's clock or
// later, in order, up to the log's end at the time of the call. Unreadable commits have Err set. An error of fn ends it
// and is returned unchanged.
func (l *Log) Since(ctx context.Context, harness string, since time.Time, fn func(events.Commit) error) error {
	last, err := l.LastSeq(ctx)
	if err != nil {
		return err
	}
	stream, filter := l.conn.Cell.LogStream(), l.conn.Cell.LogOf(harness)
	first, err := l.conn.Get(ctx, stream, core.GetRequest{Since: &since, Next: filter})
	if errors.Is(err, core.ErrNotFound) && !core.NoStream(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s since %s: %w", harness, since, err)
	}
	s := pull.Span{Stream: stream, Filter: filter, From: first.Seq, Last: last}
	return pull.Replay(ctx, l.conn, s, func(m *core.Raw) error { return fn(l.commit(m)) })
}

// ScanMessages is [Log.Scan] for the stored messages, readable or not.
func (l *Log) ScanMessages(ctx context.Context, from uint64, fn func(core.Message) error) error {
	last, err := l.LastSeq(ctx)
	if err != nil {
		return err
	}
	s := pull.Span{Stream: l.conn.Cell.LogStream(), Filter: l.conn.Cell.LogSubjects(), From: max(from, 1), Last: last}
	return pull.Replay(ctx, l.conn, s, func(m *core.Raw) error {
		return fn(core.Message{Subject: m.Subject, Header: m.Header, Body: m.Data, Seq: m.Seq, At: m.Time})
	})
}

// LastSeq returns the place of the log's last commit, also if it was purged, 0 for none.
func (l *Log) LastSeq(ctx context.Context) (uint64, error) {
	stream, life := l.conn.Cell.LogStream(), l.conn.Syncs.Uptime()
	info, err := l.conn.StreamInfo(ctx, stream)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, l.conn.Syncs.Await(ctx, life, stream, info.State.LastSeq)
}

// commit decodes a stored message. It never fails: an error is in Err.
func (l *Log) commit(m *core.Raw) events.Commit {
	c := events.Commit{Seq: m.Seq, At: m.Time}
	c.Ref, c.Writer, c.Err = l.conn.Cell.ParseLog(m.Subject)
	if c.Err != nil {
		return c
	}
	if m.Header.Get(jetstream.ExpectedLastSubjSeqSubjHeader) == l.conn.Cell.LogGuard(c.Ref) {
		n, err := strconv.ParseUint(m.Header.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
		c.Guard, c.Guarded = n, err == nil
	}
	c.Events, c.Err = events.DecodeBatch(c.Ref, m.Data)
	return c
}

// Decode decodes a message of the log, as [consumer.Consumers.Consume] delivers it. It never fails: an error is in Err
// of the commit or of single events.
func (l *Log) Decode(m core.Message) events.Commit {
	return l.commit(&core.Raw{Subject: m.Subject, Seq: m.Seq, Data: m.Body, Time: m.At, Header: m.Header})
}

// PurgeSession removes a session's commits before keepFrom. keepFrom must be a commit of the session: the session's
// next compare-and-set is checked against the rest.
func (l *Log) PurgeSession(ctx context.Context, r events.Ref, keepFrom uint64) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("purge %s: %w", r, err)
	}
	m, err := l.conn.Get(ctx, l.conn.Cell.LogStream(),
		core.GetRequest{Seq: max(keepFrom, 1), Next: l.conn.Cell.LogGuard(r)})
	if err != nil {
		return fmt.Errorf("purge %s: %w", r, err)
	}
	if m.Seq != keepFrom {
		return fmt.Errorf("%w: purge %s: %d is not one of its commits", core.ErrNotFound, r, keepFrom)
	}
	req := map[string]any{"filter": l.conn.Cell.LogGuard(r), "seq": keepFrom}
	var resp struct{}
	return l.conn.Call(ctx, "purge "+r.String(), "STREAM.PURGE."+l.conn.Cell.LogStream(), req, &resp)
}
