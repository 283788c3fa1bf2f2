package compaction

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const objectNameMax = 256 // bytes of a reference

func (s *Service) endpoints() []rpc.Endpoint {
	return []rpc.Endpoint{
		control.Endpoint(request.CompactionSend, s.send),
		control.Endpoint(request.CompactionWithdraw, s.withdraw),
		control.Endpoint(request.CompactionCompact, s.compact),
		control.Endpoint(request.CompactionCheck, s.check),
	}
}

// counts are the service's counters, which only grow.
type counts struct{ sent, withdrawn, compacted atomic.Uint64 }

// Counts returns the service's counters by name.
func (s *Service) Counts() map[string]uint64 {
	all := s.loop.Counts()
	all["messages_accepted"], all["messages_withdrawn"], all["compactions_by_hand"] = s.count.sent.Load(),
		s.count.withdrawn.Load(), s.count.compacted.Load()
	return all
}

func (s *Service) send(ctx context.Context, q request.Send) (request.Changed, error) {
	if string(q.Content) == "null" {
		q.Content = nil
	}
	if (len(q.Content) == 0) == (q.Object == "") {
		return request.Changed{}, &events.Refusal{Code: http.StatusBadRequest, Field: "content",
			Message: "content or ref: want one of them"}
	}
	// Decoding accepts it. A harness's parser does not, and would lose all its work with it.
	if !utf8.Valid(q.Content) {
		return request.Changed{}, &events.Refusal{Code: http.StatusBadRequest, Field: "content",
			Message: "content: not UTF-8"}
	}
	if full, err := s.bus.Log.NearlyFull(ctx); err != nil {
		return request.Changed{}, err
	} else if full {
		return request.Changed{},
			events.Unavailable("the log is nearly full: close sessions, or raise its limit; nothing new " +
				"is taken in until then")
	}
	if err := s.stored(ctx, q.Object); err != nil {
		return request.Changed{}, err
	}
	return s.execute(ctx, q.Ref, q.By, &s.count.sent,
		func(st *session.State, src session.Source, now time.Time) (session.Decision, error) {
			if seq, err := s.sentLongAgo(ctx, st, q); seq != 0 || err != nil {
				return session.Decision{Seq: seq}, err
			}
			return Send(st, q, now, src)
		})
}

// stored refuses a reference to content that is not there.
func (s *Service) stored(ctx context.Context, name string) error {
	switch {
	case name == "":
		return nil
	case len(name) > objectNameMax:
		return &events.Refusal{Code: http.StatusBadRequest, Field: "ref",
			Message: fmt.Sprintf("ref: %d bytes: want at most %d", len(name), objectNameMax)}
	}
	err := s.bus.Objects.Has(ctx, name)
	if errors.Is(err, bus.ErrNotFound) {
		return events.NotFound("object", name)
	}
	return err
}

func (s *Service) withdraw(ctx context.Context, q request.Withdraw) (request.Changed, error) {
	return s.execute(ctx, q.Ref, q.By, &s.count.withdrawn,
		func(st *session.State, _ session.Source, now time.Time) (session.Decision, error) {
			if seq, err := s.withdrawnLongAgo(ctx, st, q); seq != 0 || err != nil {
				return session.Decision{Seq: seq}, err
			}
			return Withdraw(st, q, now)
		})
}

func (s *Service) compact(ctx context.Context, q request.Compact) (request.Changed, error) {
	return s.execute(ctx, q.Ref, q.By, &s.count.compacted,
		func(st *session.State, _ session.Source, now time.Time) (session.Decision, error) {
			return Compact(st, q, now)
		})
}

func (s *Service) check(ctx context.Context, q request.Check) (request.Verdict, error) {
	st, err := s.loop.Current(ctx, q.Ref)
	if err != nil {
		return request.Verdict{}, err
	}
	now, err := s.bus.Clock.Now(ctx)
	if err != nil {
		return request.Verdict{}, err
	}
	return Check(st, q, now)
}

// OfPerson reports whether the author of a fact of a request is the person. The author of a turn for a decision is the
// person, see [Withdraw]. The author of the other effects is this service.
func OfPerson(f events.Fact) bool {
	switch f := f.(type) {
	case events.MessageAccepted, events.MessageWithdrawn, events.PromptSuperseded:
		return true
	case events.TurnRequested:
		return f.Cause == events.CauseAnswer
	}
	return false
}

// execute carries out a request and counts it if something was appended. The person is the author of the request,
// this service is the author of its effects.
func (s *Service) execute(ctx context.Context, r events.Ref, by string, count *atomic.Uint64,
	decide func(*session.State, session.Source, time.Time) (session.Decision, error)) (request.Changed, error) {
	author := func(f events.Fact) string {
		if OfPerson(f) {
			return events.PersonSource(by)
		}
		return events.ServiceSource(Name, s.bus.Instance())
	}
	d, err := s.loop.Execute(ctx, r, by, author, decide)
	if err == nil && len(d.Facts) > 0 {
		count.Add(1)
	}
	return request.Changed{Seq: d.Seq}, err
}
