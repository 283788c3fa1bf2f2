package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// lease is a harness process's lease in the bucket.
type lease struct {
	harness string
	renewed time.Time
	ready   bool
}

// process is one incarnation of a harness: an honest client of the protocol.
type process struct {
	w           *world
	harness     string
	incarnation string
	alive       bool
	paused      bool
	ready       bool
	claim       []events.Ref // what is still to be claimed before it is ready
	sessions    map[events.Ref]*session.State
	order       []events.Ref
	adoptsAll   bool         // its predecessor is itself, which lost its lease and holds everything still
	before      string       // that predecessor, if it could only not renew
	slept       bool         // since the last renewal
	began       time.Time    // this incarnation
	resumes     time.Time    // suspended at least until then
	doubts      []events.Ref // claims that may be stored
	absent      map[decision]absence
}

const sessionsMax = 14 // of one harness, in a wild world

func (w *world) sessionsMax() int { return max(sessionsMax/w.settled, 3) }

// spawn starts a process. A successor claims what the harness had.
func (w *world) spawn(harness string, before *process) {
	p := &process{w: w, harness: harness, alive: true, sessions: map[events.Ref]*session.State{}}
	if before == nil {
		w.procs = append(w.procs, p)
	} else {
		w.procs[slices.Index(w.procs, before)] = p
	}
	p.begin()
}

// begin takes a ticket and a lease. With the broker away it does so later.
func (p *process) begin() {
	w := p.w
	w.tickets++
	p.incarnation, p.ready, p.began = fmt.Sprint(w.tickets), false, w.now
	p.sessions, p.order, p.claim, p.doubts = map[events.Ref]*session.State{}, nil, nil, nil
	if !p.adoptsAll {
		p.absent = map[decision]absence{}
	}
	w.leases[p.incarnation] = &lease{harness: p.harness, renewed: w.now}
	for _, r := range w.log.sessions {
		if r.Harness == p.harness {
			p.claim = append(p.claim, r)
		}
	}
}

func (p *process) kill() {
	p.alive = false
	p.w.report.Kills++
}

// renew keeps the lease; one that is gone means to start over, with all that this process still holds.
func (p *process) renew() {
	if !p.alive || p.paused {
		return
	}
	l := p.w.leases[p.incarnation]
	switch {
	case l == nil:
		p.before = ""
		if !p.slept {
			p.before = p.incarnation
		}
		// it is the same process still
		p.adoptsAll = true
		p.begin()
	case p.w.now.Sub(l.renewed) > TTL/3:
		l.renewed, p.slept = p.w.now, false
	}
}

func (p *process) step() {
	if !p.alive || p.paused || p.w.away {
		return
	}
	p.settleDoubts()
	if len(p.claim) > 0 {
		p.claimNext()
		return
	}
	if l := p.w.leases[p.incarnation]; l != nil && !p.ready {
		p.ready, l.ready, p.adoptsAll = true, true, false
		return
	}
	if p.ready && p.w.chance(12) && p.takeWork() {
		return
	}
	if len(p.order) == 0 || len(p.order) < p.w.sessionsMax() && p.w.chance(25) {
		p.open(events.SessionOpened{Incarnation: p.incarnation})
		return
	}
	r := p.order[p.w.rng.IntN(len(p.order))]
	if st := p.sessions[r]; st.Closed == nil {
		p.act(st)
	}
}

func (p *process) source() string { return events.HarnessSource(p.harness, p.incarnation) }

// append appends facts. A lost race is folded, and one that shows another owner ends this process's part in the
// session.
func (p *process) append(st *session.State, epoch uint64, facts ...events.Fact) bool {
	r := st.Ref()
	ok := p.w.append("harness "+p.incarnation, r, events.WriterHarness, from(p.source()), epoch, st.Seq, facts)
	if ok {
		for _, f := range facts {
			if t, starts := f.(events.TurnStarted); starts {
				p.w.contexts(r, st, t)
			}
		}
	}
	if ok && !p.w.settling && p.w.chance(doubtOneIn) {
		p.w.report.Doubts++
		// the caller has given up: what became of it is seen when the log is read
		p.forget(r)
		if p.w.cfg.Bug != ClaimForgotten {
			p.doubts = append(p.doubts, r)
		}
		return false
	}
	p.w.log.foldOn(st)
	if st.Closed != nil || !st.Owned || st.Incarnation != p.incarnation {
		p.forget(r)
	}
	return ok
}

func (p *process) forget(r events.Ref) {
	delete(p.sessions, r)
	p.order = slices.DeleteFunc(p.order, func(x events.Ref) bool { return x == r })
}

func (p *process) keep(st *session.State) {
	if p.sessions[st.Ref()] == nil {
		p.order = append(p.order, st.Ref())
	}
	p.sessions[st.Ref()] = st
}

func (p *process) open(f events.SessionOpened) {
	st := session.New(events.Ref{Harness: p.harness, Session: p.w.id("s")})
	p.w.deaf[st.Ref()] = p.w.chance(deafOneIn)
	p.keep(st)
	f.ContextLimit, f.Policy = contextLimit, p.w.policy()
	p.append(st, 1, f)
}

// claimNext takes one session over, adopting what it can go on with.
func (p *process) claimNext() {
	r := p.claim[0]
	p.claim = p.claim[1:]
	st := p.w.newest(r)
	if !st.Claimable(p.incarnation) || !p.adoptsAll && p.w.chance(4) {
		return
	}
	facts := []events.Fact{events.SessionClaimed{Incarnation: p.incarnation}}
	// the turn first: a call and a prompt would adopt it too
	if p.adoptsAll || p.w.chance(4) {
		if st.Turn != nil {
			facts = append(facts, events.TurnStarted{Turn: st.Turn.ID, Cause: st.Turn.Cause})
		}
		for _, id := range sorted(st.Tools) {
			facts = append(facts, events.ToolStarted{Call: id, Turn: st.Tools[id].Turn, Name: st.Tools[id].Name})
		}
	}
	for _, id := range st.PendingPrompts() {
		if q := st.Prompts[id]; p.adoptsAll || p.w.chance(2) {
			facts = append(facts, again(id, q))
			if p.absent[decision{r, id}] != attends {
				// its new request takes this back
				facts = append(facts, events.PromptUnattended{Prompt: id})
			}
		}
	}
	facts = append(facts, p.attended(st)...)
	p.keep(st)
	if !p.append(st, st.Epoch+1, facts...) {
		p.forget(r)
		return
	}
	if !p.adoptsAll {
		p.asksNothing(st)
	}
}

// attended is what a process that claims its own session again says of the decisions that its Asks wait for.
func (p *process) attended(st *session.State) (facts []events.Fact) {
	if !p.adoptsAll || !st.Owned || p.before == "" || st.Incarnation != p.before {
		return nil
	}
	for _, id := range sorted(st.Prompts) {
		q := st.Prompts[id]
		over := q.Turn != "" && st.Tools[q.Call] == nil && (st.Turn == nil || st.Turn.ID != q.Turn)
		if q.Status != session.Awaiting && q.Epoch == st.Epoch && !over && p.absent[decision{st.Ref(), id}] == attends {
			facts = append(facts, events.PromptAttended{Prompt: id})
		}
	}
	return facts
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
