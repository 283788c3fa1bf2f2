// Package timer sets and cancels alarms at the broker, one for each session and purpose.
//
// An alarm says that it is time to check, and nothing else. It is set under a guard: an alarm that was decided on more
// of the session is kept. It fires never early and at least once, also after an outage of the broker.
package timer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// How an alarm is stored.
const (
	firedKept         = time.Hour // how long the broker keeps an alarm that has fired
	headerSchedule    = "Nats-Schedule"
	headerScheduleTo  = "Nats-Schedule-Target"
	headerScheduleTTL = "Nats-Schedule-TTL"
)

// Timer is an alarm at the broker. There is one for each What and session.
type Timer struct {
	What string     // one token: the service that decides
	Ref  events.Ref // at which session
	Due  time.Time  // the broker's time; an alarm for the past fires at once
	Body []byte     // comes back with the alarm
	Seq  uint64     // the session's last commit on which it was decided
}

// Timers sets and cancels the alarms of a cell. Its methods may be called concurrently.
type Timers struct {
	conn *core.Conn
}

// New returns the alarms of the cell of a connection.
func New(conn *core.Conn) *Timers { return &Timers{conn: conn} }

// Set sets an alarm, in place of the present one, under a guard: an alarm that was decided on more of the session than
// this one is kept, and the error is [core.ErrLostRace]. It fires never early, some 0.1 to 0.3 s late, at least once,
// also after an outage of the broker; [consumer.Due] delivers it. An alarm is kept for an hour after it fired:
// replacing it at once would cost the broker a purge, and a write of each consumer's state, for every alarm.
func (ts *Timers) Set(ctx context.Context, t Timer) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	m := &nats.Msg{Subject: ts.conn.Cell.TimerSubject(t.What, t.Ref), Data: t.Body, Header: nats.Header{
		// the library's own option drops the fraction: early
		headerSchedule:    {"@at " + t.Due.UTC().Format(time.RFC3339Nano)},
		headerScheduleTo:  {ts.conn.Cell.DueSubject(t.What, t.Ref)},
		headerScheduleTTL: {core.TTLSeconds(firedKept)},
		core.HeaderSeq:    {strconv.FormatUint(t.Seq, 10)},
	}}
	_, err := ts.conn.Begin(ctx, ts.alarm(m, t.Seq)).Wait(ctx)
	return err
}

// alarm returns the write of an alarm in place of the present one, if any.
func (ts *Timers) alarm(msg *nats.Msg, seq uint64) *core.Write {
	guard := uint64(0)
	setGuard := func(place uint64) {
		guard = place
		msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(place, 10)}
	}
	setGuard(0)
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		place := uint64(0)
		m, err := ts.conn.Get(ctx, ts.conn.Cell.TimerStream(), core.GetRequest{Last: msg.Subject})
		switch {
		case errors.Is(err, core.ErrNotFound) && !core.NoStream(err):
			// it fired, or was cancelled
		case err != nil:
			return core.Undecided, 0, err
		case decidedOn(m.Header) > seq:
			return core.Lost, 0, nil
		case decidedOn(m.Header) == seq && m.Header.Get(headerSchedule) == msg.Header.Get(headerSchedule) &&
			bytes.Equal(m.Data, msg.Data):
			return core.Stored, m.Seq, nil
		default:
			place = m.Seq
		}
		if place == guard {
			return core.Undecided, 0, nil
		}
		setGuard(place)
		return core.Moved, 0, nil
	}
	return &core.Write{Op: "set timer " + msg.Subject, Msg: msg, Verify: verify}
}

// decidedOn returns how much of its session an alarm was decided on; 0 if it does not say.
func decidedOn(h nats.Header) uint64 {
	seq, err := strconv.ParseUint(h.Get(core.HeaderSeq), 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

func (t Timer) validate() error {
	if err := t.Ref.Validate(); err != nil {
		return err
	}
	if what, err := events.Token(t.What); err != nil || what != t.What {
		return &events.FieldError{Field: "what", Err: fmt.Errorf("%w: %q: want one token", events.ErrMalformed, t.What)}
	}
	if t.Due.IsZero() {
		return &events.FieldError{Field: "due", Err: fmt.Errorf("%w: no instant", events.ErrMalformed)}
	}
	return nil
}

// Cancel removes an alarm. A missing alarm, or one that has fired, is a success.
func (ts *Timers) Cancel(ctx context.Context, what string, r events.Ref) error {
	if err := (Timer{What: what, Ref: r, Due: time.Now()}).validate(); err != nil {
		return fmt.Errorf("cancel timer: %w", err)
	}
	req := map[string]string{"filter": ts.conn.Cell.TimerSubject(what, r)}
	return ts.conn.Call(ctx, "cancel timer "+req["filter"], "STREAM.PURGE."+ts.conn.Cell.TimerStream(), req,
		new(core.Nothing))
}
