package sim_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// deciders are the other services' brains.
func deciders() []sim.Decider {
	return []sim.Decider{
		{Name: retry.Name, Writer: events.WriterRetry, Decide: decideRetry},
		{Name: compaction.Name, Writer: events.WriterCompaction, Decide: decideCompaction},
	}
}

// secondJitter is of the second replica: the two are configured differently, as while one version takes another's
// place.
const secondJitter = 0.5

// heard is the last sign of life: a start of the service counts as one.
func progressOf(in sim.Input) time.Time {
	if in.Start.After(in.Progress) {
		return in.Start
	}
	return in.Progress
}

func decideRetry(s *session.State, in sim.Input) (sim.Decision, error) {
	jitter := secondJitter * float64(in.Replica)
	d := retry.Decide(s, retry.Input{Now: in.Now, Progress: progressOf(in), Jitter: jitter})
	return sim.Decision{Facts: d.Facts, CheckAt: d.CheckAt, Local: d.Watch}, nil
}

// decideCompaction is the service with its claim: an idle session's place always comes at once.
func decideCompaction(s *session.State, in sim.Input) (sim.Decision, error) {
	d := compaction.Decide(s, compaction.Input{Now: in.Now, Progress: progressOf(in), Idle: true})
	if !d.Idle.IsZero() {
		return sim.Decision{}, fmt.Errorf("%s: an idle compaction has its place, and is not asked for", s.Ref())
	}
	return sim.Decision{Facts: d.Facts, CheckAt: d.CheckAt, Local: d.Watch}, nil
}

// requests are what people ask of them.
func requests() []sim.Request {
	return []sim.Request{
		{Name: "now", Writer: events.WriterRetry, Decide: func(s *session.State, _ sim.Ask) (session.Decision,
			error) {
			return retry.Now(s)
		}},
		{Name: "cancel", Writer: events.WriterRetry, Decide: func(s *session.State, _ sim.Ask) (session.Decision,
			error) {
			return retry.Cancel(s)
		}},
		{Name: "resume", Writer: events.WriterRetry, Decide: func(s *session.State, _ sim.Ask) (session.Decision,
			error) {
			return retry.Resume(s)
		}},
		{Name: "send", Writer: events.WriterCompaction, OfPerson: compaction.OfPerson, Decide: send},
		{Name: "send", Writer: events.WriterCompaction, OfPerson: compaction.OfPerson, Decide: send},
		{Name: "send", Writer: events.WriterCompaction, OfPerson: compaction.OfPerson, Decide: send},
		{Name: "withdraw", Writer: events.WriterCompaction, OfPerson: compaction.OfPerson,
			Decide: func(s *session.State, a sim.Ask) (session.Decision, error) {
				return compaction.Withdraw(s, request.Withdraw{Ref: s.Ref(), Message: a.Queued, By: a.By}, a.Now)
			}},
		{Name: "compact", Writer: events.WriterCompaction, OfPerson: compaction.OfPerson,
			Decide: func(s *session.State, a sim.Ask) (session.Decision, error) {
				return compaction.Compact(s, request.Compact{Ref: s.Ref(), Force: a.Force, By: a.By}, a.Now)
			}},
	}
}

func send(s *session.State, a sim.Ask) (session.Decision, error) {
	w := request.Send{Ref: s.Ref(), Message: a.Message, Content: json.RawMessage(`"go on"`), Synthetic: a.Synthetic,
		By: a.By}
	return compaction.Send(s, w, a.Now, a.Source)
}
