package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// RequestRacesMax is how often a request is decided again after another process wrote first. A harness that appends
// without a pause wins about nine of ten races against a request, which has to be read and decided first. So many lost
// races in a row are rarer than other failures.
const RequestRacesMax = 300

// NeedID checks that a field of a request is an id: 1 to 128 bytes as a token.
func NeedID(field, id string) error {
	if _, err := events.Token(id); err != nil {
		return &events.FieldError{Field: field, Err: err}
	}
	return nil
}

// CarryOut applies a person's request to a session. It decides on the session in the log, appends the facts in the
// person's name, and decides again when another process wrote first. It returns the place in the log at which the
// request is fulfilled. Refusals: those of decide; 400 for an invalid name; 503 after [RequestRacesMax] lost races.
func (l *Loop) CarryOut(
	ctx context.Context,
	r events.Ref,
	by string,
	decide func(*session.State) (session.Decision, error),
) (uint64, error) {
	if err := errors.Join(r.Validate(), NeedID("by", by)); err != nil {
		return 0, events.BadRequest(err)
	}
	s, err := l.Current(ctx, r)
	if err != nil {
		return 0, err
	}
	for range RequestRacesMax {
		d, err := decide(s)
		if err != nil || len(d.Facts) == 0 {
			return d.Seq, err
		}
		now, err := l.bus.Now(ctx)
		if err != nil {
			return 0, err
		}
		evs := make([]events.Event, len(d.Facts))
		for i, f := range d.Facts {
			evs[i] = events.New(l.bus.NewID(), events.PersonSource(by), r, s.Epoch, now, f)
		}
		seq, err := l.bus.Append(ctx, r, l.cfg.Writer, s.Seq, evs)
		switch {
		case err == nil:
			l.bus.Nudge(r, seq)
			l.cfg.Log.Info().
				Str("session", r.String()).
				Str("entity", string(d.Facts[0].Kind())).
				Str("id", d.Facts[0].Subject()).
				Uint64("seq", seq).
				Msg("request")
			return seq, nil
		case errors.Is(err, bus.ErrLostRace):
			l.count.lostRaces.Add(1)
			if s, err = l.CatchUp(ctx, s); err != nil {
				return 0, err
			}
			continue
		case events.IsMalformed(err):
			return 0, events.BadRequest(err)
		}
		return 0, err
	}
	return 0, events.Unavailable(
		fmt.Sprintf("%s: another process wrote first %d times in a row: try again", r, RequestRacesMax),
	)
}

// Current returns a session as it is in the log now: its document, and the commits after that. A session without a
// document is a new one.
func (l *Loop) Current(ctx context.Context, r events.Ref) (*session.State, error) {
	s, err := l.Load(ctx, r)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		s = session.New(r)
	case errors.Is(err, session.ErrNewerLayout):
		return nil, events.Unavailable(err.Error() + ": upgrade this service")
	case err != nil:
		return nil, err
	}
	return l.CatchUp(ctx, s)
}
