package log

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// Follow calls fn with the commits that are written to the log from now on, of one harness or, without one, of all: in
// order, without gaps, as messages for [Log.Decode]. It blocks until ctx ends (nil). After an interruption it continues
// where it was; in a log that has lost its end, from there. Only [core.ErrForbidden] and a closed Bus end it otherwise.
//
// live is called with the place from which fn has received, or will receive, everything in the log; and with 0 if that
// may take longer than usual, because delivery was interrupted. fn and live run in the caller's goroutine.
//
// A commit that fn received was acknowledged to its writer, or will be; but fn may not have received every acknowledged
// commit yet. So a decision that uses it must be stored under a guard, and a reply without an append must be read
// ([Log.Read]).
func (l *Log) Follow(ctx context.Context, harness string, live func(from uint64), fn func(core.Message)) error {
	f := following{log: l, filter: l.conn.Cell.LogSubjects(), live: live, fn: fn}
	if harness != "" {
		f.filter = l.conn.Cell.LogOf(harness)
	}
	for pace := core.NewBackoff(); ; {
		was := f.next
		err := f.run(ctx)
		live(0)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, core.ErrForbidden):
			return err
		}
		l.conn.Log.Info().AnErr("err", err).Str("entity", l.conn.Cell.LogStream()).Msg("the log is followed again")
		if err := l.conn.AwaitConnected(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if f.next != was {
			pace = core.NewBackoff()
		}
		core.Pause(ctx, pace.NextBackOff())
	}
}

// following is one call of Follow.
type following struct {
	log         *Log
	filter      string
	live        func(uint64)
	fn          func(core.Message)
	began, next uint64 // where it began, and continues; 0: not yet
}

// run delivers until an interruption.
func (f *following) run(ctx context.Context) error {
	stream := f.log.conn.Cell.LogStream()
	setup, cancel := context.WithTimeout(ctx, pull.SetupTimeoutMS*time.Millisecond)
	defer cancel()
	last, err := f.log.LastSeq(setup)
	if err != nil {
		return err
	}
	// the second: the log has lost its end, or was created again
	if f.began == 0 || f.next > last+1 {
		f.began, f.next = last+1, last+1
	}
	name, _, err := pull.CreateReader(setup, f.log.conn, stream, f.filter, f.next)
	if err != nil {
		return err
	}
	defer pull.Forget(f.log.conn, stream, name)
	from := pull.Source{Stream: stream, Consumer: name, Filters: []string{f.filter}, After: f.next - 1}
	in := pull.Start(f.log.conn, from, pull.WindowMax, 1, pull.Request{})
	defer in.Close()
	f.live(f.began)
	for {
		ds, err := in.Take(ctx, pull.WindowMax)
		if err == nil {
			err = pull.WithHeaders(ctx, f.log.conn, stream, ds)
		}
		if err != nil {
			return err
		}
		if err := in.Synced(ctx, ds); err != nil {
			return err
		}
		for _, d := range ds {
			f.fn(core.Message{Subject: d.Msg.Subject, Header: d.Msg.Header, Body: d.Msg.Data, Seq: d.Seq, At: d.At})
			f.next = d.Seq + 1
		}
	}
}
