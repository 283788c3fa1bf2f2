package control

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// alarmHorizon is how far ahead an alarm is set. The broker counts instants in 64 bits of nanoseconds: an alarm for the year
// 9999 goes off at once, again each time it is set. What is due later is found by the walk, within localHorizon of its instant.
const alarmHorizon = 365 * 24 * time.Hour

// remember sees to the next look at a session as it is now: a durable alarm, unless the look needs none, and if it is
// soon, a wake of this process.
func (l *Loop) remember(ctx context.Context, s *session.State, d Decision, now events.Clock) error {
	w := &wake{ref: s.Ref(), seq: s.Seq, at: d.Look, epoch: now.Epoch}
	if d.Look.IsZero() {
		l.wakes.drop(w)
		return nil
	}
	if !d.Local && d.Look.Sub(now.Now) <= alarmHorizon {
		if err := l.alarm(ctx, w, d.Look); err != nil {
			return err
		}
	}
	if d.Look.Sub(now.Now) > localHorizon {
		l.wakes.drop(w)
		return nil
	}
	if d.Ahead {
		w.ready = l.ahead(ctx, s, events.Clock{Now: d.Look, Steps: now.Steps, Epoch: now.Epoch})
	}
	l.wakes.set(w)
	return nil
}

// alarm has the broker tell when the time has come, unless it will. Whoever has decided on more of the session has seen to
// that.
func (l *Loop) alarm(ctx context.Context, w *wake, look time.Time) error {
	r := w.ref
	l.mu.Lock()
	known := l.timers[r].Equal(look)
	l.mu.Unlock()
	if known {
		return nil
	}
	t := bus.Timer{What: l.cfg.Service, Ref: r, Due: look, Body: alarmBody(look), Seq: w.seq}
	switch err := l.bus.SetTimer(ctx, t); {
	case errors.Is(err, bus.ErrLostRace):
		return nil
	case err != nil:
		return err
	}
	l.mu.Lock()
	if len(l.timers) >= timersKnownMax {
		clear(l.timers)
	}
	l.timers[r] = look
	l.mu.Unlock()
	return nil
}

func alarmBody(look time.Time) []byte { return []byte(look.UTC().Format(time.RFC3339Nano)) }

// alarms hears of sessions whose timers have gone off.
type alarms struct{ l *Loop }

// Takeover implements [bus.Handler].
func (alarms) Takeover(context.Context) error { return nil }

// Batch implements [bus.Handler].
func (h alarms) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	return h.l.batch(ctx, len(ms), func(i int) func() {
		_, r, err := h.l.bus.Cell().ParseDue(ms[i].Subject)
		if err != nil || ms[i].Deleted || h.l.seenTo(r, ms[i].Body) {
			return nil // nobody's session, or it is done
		}
		return func() { h.l.Look(ctx, r) }
	})
}

// seenTo says whether what an alarm is about was, or is about to be, done here: it was sent at that instant, or waits in
// front of this process. Should the process die first, whoever takes over walks over everything.
func (l *Loop) seenTo(r events.Ref, body []byte) bool {
	l.mu.Lock()
	delete(l.timers, r)
	l.mu.Unlock()
	return l.wakes.rings(r, body)
}
