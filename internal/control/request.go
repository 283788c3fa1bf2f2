package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// RequestRacesMax is how often a request is decided again after another process wrote first. A harness that appends
// without a pause wins about nine of ten races against a request, which has to be read and decided first. So many lost
// races in a row are rarer than other failures.
const RequestRacesMax = 300

// Endpoint returns the endpoint of a verb. It decodes and checks each request, calls handle and encodes the reply.
// Refusals: those of handle; 400 for a malformed request.
func Endpoint[Q request.Checked, R any](
	v request.Verb[Q, R],
	handle func(context.Context, Q) (R, error),
) rpc.Endpoint {
	decoded := func(ctx context.Context, body []byte) ([]byte, error) {
		var q Q
		if err := events.ReadRequest(body, &q); err != nil {
			return nil, err
		}
		if err := q.Validate(); err != nil {
			return nil, events.BadRequest(err)
		}
		r, err := handle(ctx, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}
	return rpc.Endpoint{Verb: v.Name, TimeMax: v.TimeMax, Handle: decoded}
}

// Execution is a person's request to one session, and how to carry it out.
type Execution struct {
	Ref    events.Ref
	By     string // the person
	Writer events.Writer
	// Decide returns the facts that the request calls for, or the place in the log at which it is fulfilled already.
	Decide func(*session.State, session.Source, time.Time) (session.Decision, error)
	// Read returns the session, and a source of its commits. last is the state whose append lost a race, nil at first.
	// certain: with all commits that the log's leader has acknowledged.
	Read func(ctx context.Context, last *session.State, certain bool) (*session.State, session.Source, error)
	// Cached: Read returns less than the log has unless it is called with certain. An append proves that nothing was
	// missed. A decision that appends nothing is made again with certain.
	Cached bool
	// Author returns the source attribute of a fact. Nil: the person.
	Author func(events.Fact) string
	Log    zerolog.Logger
}

// Execute carries out a person's request. It decides on the session, appends the facts as one commit, and decides again
// when another process wrote first. It returns the facts that were appended, and the place in the log at which the
// request is fulfilled. Refusals: those of Decide; 400 for facts that are malformed; 503 when the log is full or after
// [RequestRacesMax] lost races.
func Execute(ctx context.Context, b *bus.Bus, x Execution) (session.Decision, error) {
	var last *session.State
	certain := !x.Cached
	for races := 0; races < RequestRacesMax; {
		s, src, err := x.Read(ctx, last, certain)
		if err != nil {
			return session.Decision{}, err
		}
		now, err := b.Clock.Now(ctx)
		if err != nil {
			return session.Decision{}, err
		}
		d, err := x.Decide(s, src, now)
		if err != nil || len(d.Facts) == 0 {
			if certain {
				return d, err
			}
			certain = true
			continue
		}
		d.Seq, err = b.Log.Append(ctx, x.Ref, x.Writer, s.Seq, x.events(b, s, d.Facts, now))
		switch {
		case err == nil:
			b.Hints.Nudge(x.Ref, d.Seq)
			x.Log.Info().
				Str("session", x.Ref.String()).
				Str("entity", string(d.Facts[0].Kind())).
				Str("id", d.Facts[0].Subject()).
				Uint64("seq", d.Seq).
				Msg("request")
			return d, nil
		case errors.Is(err, bus.ErrLostRace):
			last, certain, races = s, true, races+1
			continue
		case errors.Is(err, bus.ErrFull):
			return session.Decision{}, events.Unavailable("the log is full: " + err.Error())
		case events.IsMalformed(err):
			return session.Decision{}, events.BadRequest(err)
		}
		return session.Decision{}, err
	}
	return session.Decision{}, events.Unavailable(
		fmt.Sprintf("%s: another process wrote first %d times in a row: try again", x.Ref, RequestRacesMax),
	)
}

// events wraps facts in envelopes.
func (x *Execution) events(b *bus.Bus, s *session.State, facts []events.Fact, now time.Time) []events.Event {
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		author := events.PersonSource(x.By)
		if x.Author != nil {
			author = x.Author(f)
		}
		evs[i] = events.New(b.NewID(), author, x.Ref, s.Epoch, now, f)
	}
	return evs
}

// Execute carries out a person's request with the writer of this loop; see [Execute]. A nil author is the person.
func (l *Loop) Execute(
	ctx context.Context,
	r events.Ref,
	by string,
	author func(events.Fact) string,
	decide func(*session.State, session.Source, time.Time) (session.Decision, error),
) (session.Decision, error) {
	return Execute(ctx, l.bus, Execution{
		Ref: r, By: by, Writer: l.cfg.Writer, Decide: decide, Author: author, Log: l.cfg.Log,
		Read: func(ctx context.Context, last *session.State, _ bool) (s *session.State, _ session.Source, err error) {
			if last == nil {
				s, err = l.Current(ctx, r)
			} else {
				l.count.lostRaces.Add(1)
				s, err = l.CatchUp(ctx, last)
			}
			return s, l.Source(ctx), err
		},
	})
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
