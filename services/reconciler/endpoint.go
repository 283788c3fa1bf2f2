package reconciler

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the endpoints.
const (
	sweepMax     = 5 * time.Minute // for one sweep
	wouldMax     = 200             // sessions that a dry run lists; it counts the others
	wouldFactMax = 20              // facts that it lists of each
)

// SweepRequest requests a pass: over one session, a harness's, or all. A dry run appends nothing.
type SweepRequest struct {
	Harness string `json:"harness,omitempty"`
	Session string `json:"session,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// SweepReply is the result of a pass.
type SweepReply struct {
	// decided: something of them is open, or they have no living owner
	Sessions int               `json:"sessions"`
	Facts    map[string]int    `json:"facts"`           // appended (or that would be), by kind
	Failed   int               `json:"failed"`          // sessions that could not be recovered
	Would    []Would           `json:"would,omitempty"` // of a dry run
	More     int               `json:"more,omitempty"`  // sessions of a dry run that are not listed
	Suspects []control.Suspect `json:"suspects,omitempty"`
}

// Would is what a dry run would append to one session.
type Would struct {
	events.Ref
	Owner string        `json:"owner"` // alive, starting, dead, or none
	Facts []WouldBeFact `json:"facts"`
	More  int           `json:"more,omitempty"` // facts that are not listed
}

// WouldBeFact is a fact that a dry run would append.
type WouldBeFact struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Count is the number of times that an outcome was recorded for a reason.
type Count struct {
	Outcome string `json:"outcome"` // kind of the fact
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
}

// LastPass is the last completed pass.
type LastPass struct {
	At       time.Time `json:"at"` // its end, by the reconciler's clock
	TookMS   int64     `json:"took_ms"`
	Harness  string    `json:"harness,omitempty"` // empty: all
	Sessions int       `json:"sessions"`
	Facts    int       `json:"facts"`
	Failed   int       `json:"failed"`
}

// Report is what this reconciler has done since its start.
type Report struct {
	Since    time.Time         `json:"since"`
	Instance string            `json:"instance"`
	Counts   []Count           `json:"counts"`
	LastPass *LastPass         `json:"last_pass,omitempty"`
	Suspects []control.Suspect `json:"suspects"`
}

func (r *Reconciler) endpoints() []bus.Endpoint {
	return []bus.Endpoint{{Verb: "sweep", Handle: r.sweep, TimeMax: sweepMax}, {Verb: "report", Handle: r.report}}
}

// sweep runs the requested pass.
func (r *Reconciler) sweep(ctx context.Context, body []byte) ([]byte, error) {
	var req SweepRequest
	if err := events.ReadRequest(body, &req); err != nil {
		return nil, err
	}
	scope := events.Ref{Harness: req.Harness, Session: req.Session}
	if err := checkScope(scope); err != nil {
		return nil, events.BadRequest(err)
	}
	select {
	case <-r.leases.ready:
	default:
		return nil, events.Unavailable("the reconciler does not know yet who lives: ask again")
	}
	if scope.Session != "" {
		if s, err := r.loop.Current(ctx, scope); err != nil {
			return nil, err
		} else if s.Seq == 0 {
			return nil, events.NotFound("session", scope.String())
		}
	}
	p := r.newPass(scope)
	var reply SweepReply
	if req.DryRun {
		if err := p.dryRun(ctx, &reply); err != nil {
			return nil, err
		}
	} else if err := p.run(ctx); err != nil {
		return nil, err
	}
	reply.Sessions, reply.Failed, reply.Facts = p.looked, p.failed, p.facts
	reply.Suspects = r.loop.Suspects()
	return json.Marshal(reply)
}

func checkScope(scope events.Ref) error {
	one := scope
	if one.Session == "" {
		one.Session = "any"
	}
	if one.Harness == "" && scope.Session == "" {
		one.Harness = "any"
	}
	return one.Validate()
}

// dryRun decides without appending.
func (p *pass) dryRun(ctx context.Context, reply *SweepReply) error {
	if err := p.collect(ctx); err != nil {
		return err
	}
	now, err := p.r.now(ctx)
	if err != nil {
		return err
	}
	src := p.r.loop.Source(ctx)
	for _, t := range p.trees {
		for _, s := range p.inScope(t) {
			p.looked++
			owner, err := p.r.judge(ctx, s, now)
			if err != nil {
				return err
			}
			d, err := p.family(now, src).decide(ctx, s, owner, 0)
			if err != nil {
				p.failed++
				continue
			}
			p.count(d.Facts)
			reply.would(s, owner, d)
		}
	}
	slices.SortFunc(reply.Would, func(a, b Would) int {
		return cmp.Or(cmp.Compare(a.Harness, b.Harness), cmp.Compare(a.Session, b.Session))
	})
	return nil
}

func (y *SweepReply) would(s *session.State, owner Owner, d Decision) {
	switch {
	case len(d.Facts) == 0:
		return
	case len(y.Would) >= wouldMax:
		y.More++
		return
	}
	w := Would{Ref: s.Ref(), Owner: "none"}
	if s.Owned {
		w.Owner = owner.Life.String()
	}
	for i, f := range d.Facts {
		if i >= wouldFactMax {
			w.More = len(d.Facts) - i
			break
		}
		w.Facts = append(w.Facts, WouldBeFact{events.TypePrefix + string(f.Kind()), encode(f)})
	}
	y.Would = append(y.Would, w)
}

func (r *Reconciler) report(context.Context, []byte) ([]byte, error) {
	rep := r.tally.report()
	rep.Instance = r.bus.Instance()
	rep.Suspects = append([]control.Suspect{}, r.loop.Suspects()...) // a list, even an empty one
	return json.Marshal(rep)
}

// tally counts the appended facts since the start.
type tally struct {
	mu     sync.Mutex
	since  time.Time
	counts map[Count]int // with Count 0
	last   *LastPass
}

func newTally() *tally { return &tally{since: time.Now().UTC(), counts: map[Count]int{}} }

func (t *tally) count(facts []events.Fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range facts {
		t.counts[Count{Outcome: string(f.Kind()), Reason: reasonOf(f)}]++
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
	t.last = &LastPass{At: time.Now().UTC(), TookMS: took.Milliseconds(), Harness: p.scope.Harness, Sessions: p.looked, Facts: p.said(), Failed: p.failed}
}

func (t *tally) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	rep := Report{Since: t.since, LastPass: t.last, Counts: []Count{}}
	for c, n := range t.counts {
		c.Count = n
		rep.Counts = append(rep.Counts, c)
	}
	slices.SortFunc(rep.Counts, func(a, b Count) int {
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

// said returns how many facts were appended.
func (p *pass) said() int {
	n := 0
	for _, of := range p.facts {
		n += of
	}
	return n
}
