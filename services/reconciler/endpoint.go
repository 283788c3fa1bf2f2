package reconciler

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the endpoints.
const (
	wouldMax     = 200 // sessions listed by a dry run; the others are only counted
	wouldFactMax = 20  // facts listed of each
)

func (r *Reconciler) endpoints() []rpc.Endpoint {
	return []rpc.Endpoint{
		control.Endpoint(request.ReconcilerSweep, r.sweep),
		control.Endpoint(request.ReconcilerReport, r.report),
	}
}

// sweep runs the requested pass.
func (r *Reconciler) sweep(ctx context.Context, q request.Sweep) (request.Swept, error) {
	select {
	case <-r.leases.ready:
	default:
		return request.Swept{}, events.Unavailable("the reconciler does not know yet who lives: ask again")
	}
	scope := events.Ref{Harness: q.Harness, Session: q.Session}
	if scope.Session != "" {
		if s, err := r.loop.Current(ctx, scope); err != nil {
			return request.Swept{}, err
		} else if s.Seq == 0 {
			return request.Swept{}, events.NotFound("session", scope.String())
		}
	}
	p := r.newPass(scope)
	var reply request.Swept
	if q.DryRun {
		if err := p.dryRun(ctx, &reply); err != nil {
			return request.Swept{}, err
		}
	} else if err := p.run(ctx); err != nil {
		return request.Swept{}, err
	}
	reply.Sessions, reply.Failed, reply.Facts = p.checked, p.failed, p.facts
	reply.Suspects = r.loop.Suspects()
	return reply, nil
}

// dryRun decides without appending.
func (p *pass) dryRun(ctx context.Context, reply *request.Swept) error {
	if err := p.collect(ctx); err != nil {
		return err
	}
	now, err := p.r.now(ctx)
	if err != nil {
		return err
	}
	err = p.decideDry(ctx, now, reply)
	slices.SortFunc(reply.Would, func(a, b request.Would) int {
		return cmp.Or(cmp.Compare(a.Harness, b.Harness), cmp.Compare(a.Session, b.Session))
	})
	return err
}

// decideDry lists what would be appended to the sessions that were collected. A session that cannot be decided counts
// as failed.
func (p *pass) decideDry(ctx context.Context, now moment, reply *request.Swept) error {
	src := p.r.loop.Source(ctx)
	for _, t := range p.trees {
		for _, s := range p.inScope(t) {
			p.checked++
			owner, err := p.r.checkOwner(ctx, s, now)
			if err != nil {
				return err
			}
			f := p.treeAt(now, src)
			f.dry = true
			d, err := f.decide(ctx, s, owner, 0)
			if err != nil {
				p.failed++
				continue
			}
			p.count(d.Facts)
			would(reply, s, owner, d)
		}
	}
	return nil
}

// would lists what a dry run would append to a session.
func would(y *request.Swept, s *session.State, owner Owner, d Decision) {
	switch {
	case len(d.Facts) == 0:
		return
	case len(y.Would) >= wouldMax:
		y.More++
		return
	}
	w := request.Would{Ref: s.Ref(), Owner: "none"}
	if s.Owned {
		w.Owner = owner.Liveness.String()
	}
	for i, f := range d.Facts {
		if i >= wouldFactMax {
			w.More = len(d.Facts) - i
			break
		}
		w.Facts = append(w.Facts, request.WouldFact{Type: events.TypePrefix + string(f.Kind()), Data: encode(f)})
	}
	y.Would = append(y.Would, w)
}

func (r *Reconciler) report(context.Context, request.Scope) (request.Report, error) {
	rep := r.tally.report()
	rep.Instance = r.bus.Instance()
	// a list, also of none
	rep.Suspects = append([]request.Suspect{}, r.loop.Suspects()...)
	return rep, nil
}

// tally counts the appended facts since the start.
type tally struct {
	mu     sync.Mutex
	since  time.Time
	counts map[request.Count]int // with Count 0
	last   *request.LastPass
}

func newTally() *tally { return &tally{since: time.Now().UTC(), counts: map[request.Count]int{}} }

func (t *tally) count(facts []events.Fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range facts {
		t.counts[request.Count{Outcome: string(f.Kind()), Reason: reasonOf(f)}]++
	}
}

// reasonOf returns why a fact was appended.
func reasonOf(f events.Fact) string {
	switch f := f.(type) {
	case events.SessionOrphaned:
		return f.Reason
	case events.PromptExpired:
		return f.Reason
	case events.PromptWithdrawn:
		return f.Reason
	case events.ToolInterrupted:
		return f.Reason
	case events.ToolFailed:
		return f.Error.Kind
	case events.ToolCompleted:
		return "settled"
	case events.TurnInterrupted:
		return f.Reason
	case events.TurnStopped:
		return f.Actor
	case events.TurnRequested:
		return string(f.Cause)
	case events.CompactionFailed:
		return f.Error.Kind
	}
	return ""
}

func (t *tally) passed(p *pass, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = &request.LastPass{At: time.Now().UTC(), TookMS: took.Milliseconds(), Harness: p.scope.Harness,
		Sessions: p.checked, Facts: p.factCount(), Failed: p.failed}
}

func (t *tally) report() request.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	rep := request.Report{Since: t.since, LastPass: t.last, Counts: []request.Count{}}
	for c, n := range t.counts {
		c.Count = n
		rep.Counts = append(rep.Counts, c)
	}
	slices.SortFunc(rep.Counts, func(a, b request.Count) int {
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason))
	})
	return rep
}

// count counts the appended facts of a pass.
func (p *pass) count(facts []events.Fact) {
	for _, f := range facts {
		p.facts[string(f.Kind())]++
	}
}

// factCount returns how many facts were appended.
func (p *pass) factCount() int {
	n := 0
	for _, of := range p.facts {
		n += of
	}
	return n
}
