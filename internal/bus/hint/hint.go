// Package hint sends and receives what may be lost: nudges of a harness and signs of life of a session.
//
// A hint saves time and decides nothing. A message that a stream delivered is no hint.
package hint

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Hints sends and receives the hints of a cell. Its methods may be called concurrently.
type Hints struct {
	conn *core.Conn
}

// New returns the hints of the cell of a connection.
func New(conn *core.Conn) *Hints { return &Hints{conn: conn} }

// nudge is the body of a nudge.
type nudge struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
}

// Nudge hints to the session's harness that seq was appended to it. It may be lost.
func (hs *Hints) Nudge(r events.Ref, seq uint64) {
	body, err := json.Marshal(nudge{Session: r.Session, Seq: seq})
	if err == nil {
		err = hs.conn.NC.Publish(hs.conn.Cell.NudgeSubject(r.Harness), body)
	}
	if err != nil {
		hs.conn.Log.Debug().Str("session", r.String()).AnErr("err", err).Msg("not nudged")
	}
}

// OnNudge calls fn for each nudge to this harness, one at a time, until ctx ends. It returns when the broker has the
// subscription.
func (hs *Hints) OnNudge(ctx context.Context, harness string, fn func(session string, seq uint64)) error {
	subject := hs.conn.Cell.NudgeSubject(harness)
	return hs.onHint(ctx, hs.conn.Cell.NudgeFilter(harness), func(m *nats.Msg) {
		var n nudge
		if m.Subject != subject || core.Delivered(m.Header, m.Reply) {
			hs.conn.Log.Debug().Str("entity", m.Subject).Msg("nudge that a stream delivered")
			return
		}
		if err := json.Unmarshal(m.Data, &n); err != nil || n.Session == "" {
			hs.conn.Log.Debug().Str("entity", m.Subject).AnErr("err", err).Msg("unreadable nudge")
			return
		}
		fn(n.Session, n.Seq)
	})
}

// Progress hints that a session is alive. It may be lost. Send at most one a second.
func (hs *Hints) Progress(r events.Ref) {
	if err := hs.conn.NC.Publish(hs.conn.Cell.ProgressSubject(r), nil); err != nil {
		hs.conn.Log.Debug().Str("session", r.String()).AnErr("err", err).Msg("progress not sent")
	}
}

// OnProgress calls fn for each progress ping of any session, one at a time, until ctx ends. It returns when the broker
// has the subscription.
func (hs *Hints) OnProgress(ctx context.Context, fn func(events.Ref)) error {
	prefix := hs.conn.Cell.Prefix() + ".progress."
	return hs.onHint(ctx, prefix+"*.*", func(m *nats.Msg) {
		rest, ours := strings.CutPrefix(m.Subject, prefix)
		harness, session, _ := strings.Cut(rest, ".")
		if !ours || len(m.Data) > 0 || core.Delivered(m.Header, m.Reply) {
			hs.conn.Log.Debug().Str("entity", m.Subject).Msg("not a sign of life: a harness did not publish it here")
			return
		}
		h, err := events.ID(harness)
		s, err2 := events.ID(session)
		if err != nil || err2 != nil {
			hs.conn.Log.Debug().Str("entity", m.Subject).AnErr("err",
				errors.Join(err, err2)).Msg("unreadable sign of life")
			return
		}
		fn(events.Ref{Harness: h, Session: s})
	})
}

// onHint subscribes until ctx ends and returns when the broker has the subscription.
func (hs *Hints) onHint(ctx context.Context, subject string, fn nats.MsgHandler) error {
	if err := hs.conn.AwaitConnected(ctx); err != nil {
		return hs.conn.Late("subscribe to "+subject, err)
	}
	sub, err := hs.conn.NC.Subscribe(subject, fn)
	if err != nil {
		return core.Translate("subscribe to "+subject, err)
	}
	started := time.Now()
	context.AfterFunc(ctx, func() {
		if err := core.IgnoreClosed(sub.Unsubscribe()); err != nil {
			hs.conn.Log.Debug().Str("entity", subject).AnErr("err", err).Msg("not unsubscribed")
		}
	})
	if err := hs.flush(ctx); err != nil {
		return hs.conn.Late("subscribe to "+subject, err)
	}
	return hs.conn.Denied.Since(subject, started)
}

// flush returns when the broker has processed everything sent so far. After a lost connection it waits for the next
// one, on which the client subscribes again.
func (hs *Hints) flush(ctx context.Context) error {
	for {
		once, cancel := context.WithTimeout(ctx, core.RequestTimeoutMS*time.Millisecond)
		err := hs.conn.NC.FlushWithContext(once)
		cancel()
		// so a flush ends when its connection is lost
		lost := errors.Is(err, nats.ErrConnectionClosed) && !hs.conn.NC.IsClosed()
		if !lost {
			return err
		}
		if err := hs.conn.AwaitConnected(ctx); err != nil {
			return err
		}
	}
}
