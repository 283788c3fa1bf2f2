package control

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// alarmHorizon is how far ahead an alarm is set. The broker counts instants in 64 bits of nanoseconds: an alarm for the
// year 9999 fires at once, again each time it is set. The walk finds a later check, within localHorizon of its instant.
const alarmHorizon = 365 * 24 * time.Hour

// remember schedules the next check of a session: with a durable alarm, unless [Decision.Local] is set, and in memory
// if it is due within localHorizon.
func (l *Loop) remember(ctx context.Context, s *session.State, d Decision, now events.Clock) error {
	w := &check{ref: s.Ref(), seq: s.Seq, at: d.CheckAt, epoch: now.Epoch}
	if d.CheckAt.IsZero() {
		l.queue.drop(w)
		return nil
	}
	if !d.Local && d.CheckAt.Sub(now.Now) <= alarmHorizon {
		if err := l.alarm(ctx, w, d.CheckAt); err != nil {
			return err
		}
	}
	if d.CheckAt.Sub(now.Now) > localHorizon {
		l.queue.drop(w)
		return nil
	}
	if d.Ahead {
		w.ready = l.ahead(ctx, s, events.Clock{Now: d.CheckAt, Steps: now.Steps, Epoch: now.Epoch})
	}
	l.queue.set(w)
	return nil
}

// alarm sets the session's alarm at the broker, unless this process has set the same one. An alarm of a process that
// has decided on a later commit stays.
func (l *Loop) alarm(ctx context.Context, w *check, at time.Time) error {
	r := w.ref
	l.mu.Lock()
	known := l.timers[r].Equal(at)
	l.mu.Unlock()
	if known {
		return nil
	}
	t := timer.Timer{What: l.cfg.Service, Ref: r, Due: at, Body: alarmBody(at), Seq: w.seq}
	switch err := l.bus.Timers.Set(ctx, t); {
	case errors.Is(err, bus.ErrLostRace):
		return nil
	case err != nil:
		return err
	}
	l.mu.Lock()
	if len(l.timers) >= timersKnownMax {
		clear(l.timers)
	}
	l.timers[r] = at
	l.mu.Unlock()
	return nil
}

func alarmBody(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339Nano)) }

// alarms checks sessions whose timers have fired.
type alarms struct{ l *Loop }

// Takeover implements [consumer.Handler].
func (alarms) Takeover(context.Context) error { return nil }

// Batch implements [consumer.Handler].
func (h alarms) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	return h.l.batch(ctx, len(ms), func(i int) func() {
		_, r, err := h.l.bus.Cell().ParseDue(ms[i].Subject)
		if err != nil || ms[i].Deleted || h.l.alarmHandled(r, ms[i].Body) {
			// not a session, or done already
			return nil
		}
		return func() { h.l.Check(ctx, r) }
	})
}

// alarmHandled reports whether this process did, or is about to do, what an alarm is about: it sent the commit at that
// instant, or has it in memory. If the process dies first, the next active one walks over everything.
func (l *Loop) alarmHandled(r events.Ref, body []byte) bool {
	l.mu.Lock()
	delete(l.timers, r)
	l.mu.Unlock()
	return l.queue.alarmHandled(r, body)
}
