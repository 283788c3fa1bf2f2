package compaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the endpoints.
const (
	objectNameMax = 256                     // bytes of a reference
	racesMax      = control.RequestRacesMax // lost in a row, then the request is refused
)

// changedReply is the reply to a request: its place in the log. A document with this seq or a greater one includes it.
type changedReply struct {
	Seq uint64 `json:"seq,omitempty"`
}

func (s *Service) endpoints() []bus.Endpoint {
	return []bus.Endpoint{
		{Verb: "send", Handle: s.send},
		{Verb: "withdraw", Handle: s.withdraw},
		{Verb: "compact", Handle: s.compact},
		{Verb: "check", Handle: s.check},
	}
}

// counts are the service's counters, which only grow.
type counts struct{ sent, withdrawn, compacted atomic.Uint64 }

// Counts returns the service's counters by name.
func (s *Service) Counts() map[string]uint64 {
	all := s.loop.Counts()
	all["messages_accepted"], all["messages_withdrawn"], all["compactions_by_hand"] = s.count.sent.Load(), s.count.withdrawn.Load(), s.count.compacted.Load()
	return all
}

// need reports the missing ids of a request.
func need(r events.Ref, ids ...[2]string) error {
	err := r.Validate()
	for _, id := range ids {
		if _, bad := events.Token(id[1]); bad != nil {
			err = errors.Join(err, &events.FieldError{Field: id[0], Err: bad})
		}
	}
	if err != nil {
		return events.BadRequest(err)
	}
	return nil
}

func (s *Service) send(ctx context.Context, body []byte) ([]byte, error) {
	var w SendWish
	if err := events.ReadRequest(body, &w); err != nil {
		return nil, err
	}
	if err := need(w.Ref, [2]string{"message", w.Message}, [2]string{"by", w.By}); err != nil {
		return nil, err
	}
	if string(w.Content) == "null" {
		w.Content = nil
	}
	if (len(w.Content) == 0) == (w.Object == "") {
		return nil, &events.Refusal{Code: http.StatusBadRequest, Field: "content", Message: "content or ref: want one of them"}
	}
	if !utf8.Valid(w.Content) { // decoding accepts it; a harness's parser does not, and would lose its whole view
		return nil, &events.Refusal{Code: http.StatusBadRequest, Field: "content", Message: "content: not UTF-8"}
	}
	if full, err := s.bus.NearlyFull(ctx); err != nil {
		return nil, err
	} else if full {
		return nil, events.Unavailable("the log is nearly full: close sessions, or raise its limit; nothing new is taken in until then")
	}
	if err := s.stored(ctx, w.Object); err != nil {
		return nil, err
	}
	return s.carryOut(ctx, w.Ref, w.By, &s.count.sent, func(st *session.State, now time.Time, src session.Source) (Outcome, error) {
		return Send(st, w, now, src)
	})
}

// stored refuses a reference to content that is not there.
func (s *Service) stored(ctx context.Context, name string) error {
	switch {
	case name == "":
		return nil
	case len(name) > objectNameMax:
		return &events.Refusal{Code: http.StatusBadRequest, Field: "ref", Message: fmt.Sprintf("ref: %d bytes: want at most %d", len(name), objectNameMax)}
	}
	err := s.bus.HasObject(ctx, name)
	if errors.Is(err, bus.ErrNotFound) {
		return events.NotFound("object", name)
	}
	return err
}

func (s *Service) withdraw(ctx context.Context, body []byte) ([]byte, error) {
	var w WithdrawWish
	if err := events.ReadRequest(body, &w); err != nil {
		return nil, err
	}
	if err := need(w.Ref, [2]string{"message", w.Message}, [2]string{"by", w.By}); err != nil {
		return nil, err
	}
	return s.carryOut(ctx, w.Ref, w.By, &s.count.withdrawn, func(st *session.State, now time.Time, _ session.Source) (Outcome, error) {
		return Withdraw(st, w, now)
	})
}

func (s *Service) compact(ctx context.Context, body []byte) ([]byte, error) {
	var w CompactWish
	if err := events.ReadRequest(body, &w); err != nil {
		return nil, err
	}
	if err := need(w.Ref, [2]string{"by", w.By}); err != nil {
		return nil, err
	}
	return s.carryOut(ctx, w.Ref, w.By, &s.count.compacted, func(st *session.State, now time.Time, _ session.Source) (Outcome, error) {
		return Compact(st, w, now)
	})
}

func (s *Service) check(ctx context.Context, body []byte) ([]byte, error) {
	var w CheckWish
	if err := events.ReadRequest(body, &w); err != nil {
		return nil, err
	}
	if err := need(w.Ref); err != nil {
		return nil, err
	}
	st, err := s.loop.Current(ctx, w.Ref)
	if err != nil {
		return nil, err
	}
	now, err := s.bus.Now(ctx)
	if err != nil {
		return nil, err
	}
	v, err := Check(st, w, now)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// carryOut decides about a request and appends the result as one commit, until no other writer was first.
func (s *Service) carryOut(ctx context.Context, r events.Ref, by string, count *atomic.Uint64,
	decide func(*session.State, time.Time, session.Source) (Outcome, error)) ([]byte, error) {
	st, err := s.loop.Current(ctx, r)
	if err != nil {
		return nil, err
	}
	for range racesMax {
		now, err := s.bus.Now(ctx)
		if err != nil {
			return nil, err
		}
		o, err := decide(st, now, s.loop.Source(ctx))
		if err != nil {
			return nil, err
		}
		if len(o.Facts) == 0 {
			return json.Marshal(changedReply{o.Seq})
		}
		seq, err := s.bus.Append(ctx, r, events.WriterCompaction, st.Seq, s.events(st, by, o.Facts, now))
		switch {
		case err == nil:
			s.bus.Nudge(r, seq)
			count.Add(1)
			s.log.Info().Str("session", r.String()).Str("entity", string(o.Facts[0].Kind())).Str("id", o.Facts[0].Subject()).Uint64("seq", seq).Msg("wish")
			return json.Marshal(changedReply{seq})
		case errors.Is(err, bus.ErrLostRace):
			if st, err = s.loop.CatchUp(ctx, st); err != nil {
				return nil, err
			}
			continue
		case errors.Is(err, bus.ErrFull):
			return nil, events.Unavailable("the log is full: " + err.Error())
		case events.IsMalformed(err):
			return nil, events.BadRequest(err)
		}
		return nil, err
	}
	return nil, events.Unavailable(fmt.Sprintf("%s: somebody else wrote first %d times in a row: try again", r, racesMax))
}

// events wraps facts: the person is the source of the request, this service of its effects.
func (s *Service) events(st *session.State, by string, facts []events.Fact, now time.Time) []events.Event {
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		from := events.ServiceSource(Name, s.bus.Instance())
		switch f.(type) {
		case events.MessageAccepted, events.MessageWithdrawn, events.PromptSuperseded:
			from = events.PersonSource(by)
		}
		evs[i] = events.New(s.bus.NewID(), from, st.Ref(), st.Epoch, now, f)
	}
	return evs
}
