package sim

import (
	"encoding/json"
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
	adoptsAll   bool      // its predecessor is itself, which lost its lease and holds everything still
	before      string    // that predecessor, if it could only not renew
	slept       bool      // since the last renewal
	began       time.Time // this incarnation
}

const sessionsMax = 14 // of one harness

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

// begin takes a ticket and a lease. With the broker away it comes to that later.
func (p *process) begin() {
	w := p.w
	w.tickets++
	p.incarnation, p.ready, p.began = fmt.Sprint(w.tickets), false, w.now
	p.sessions, p.order, p.claim = map[events.Ref]*session.State{}, nil, nil
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
		p.begin()
		p.adoptsAll = true
	case p.w.now.Sub(l.renewed) > TTL/3:
		l.renewed, p.slept = p.w.now, false
	}
}

func (p *process) step() {
	if !p.alive || p.paused || p.w.away {
		return
	}
	if len(p.claim) > 0 {
		p.claimNext()
		return
	}
	if l := p.w.leases[p.incarnation]; l != nil && !p.ready {
		p.ready, l.ready, p.adoptsAll = true, true, false
		return
	}
	if len(p.order) == 0 || len(p.order) < sessionsMax && p.w.chance(25) {
		p.open(events.SessionOpened{Incarnation: p.incarnation})
		return
	}
	r := p.order[p.w.rng.IntN(len(p.order))]
	if st := p.sessions[r]; st.Closed == nil {
		p.act(st)
	}
}

func (p *process) source() string { return events.HarnessSource(p.harness, p.incarnation) }

// say appends facts; a lost race is folded, and one that shows another owner ends this process's part in the session.
func (p *process) say(st *session.State, epoch uint64, facts ...events.Fact) bool {
	r := st.Ref()
	ok := p.w.append("harness "+p.incarnation, r, events.WriterHarness, p.source(), epoch, st.Seq, facts)
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
	p.keep(st)
	p.say(st, 1, f)
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
	if p.adoptsAll { // the turn first: a call and a prompt would adopt it too
		if st.Turn != nil {
			facts = append(facts, events.TurnStarted{Turn: st.Turn.ID, Cause: st.Turn.Cause})
		}
		for _, id := range sorted(st.Tools) {
			facts = append(facts, events.ToolStarted{Call: id, Turn: st.Tools[id].Turn, Name: st.Tools[id].Name})
		}
	}
	for _, id := range st.PendingPrompts() {
		if q := st.Prompts[id]; p.adoptsAll || p.w.chance(2) {
			facts = append(facts, events.PromptRequested{Prompt: id, Turn: q.Turn, Call: q.Call, PromptKind: q.Kind, Delivery: q.Delivery, OnOwnerLoss: q.OnOwnerLoss, Blocking: &q.Blocking})
		}
	}
	p.keep(st)
	if !p.say(st, st.Epoch+1, facts...) {
		p.forget(r)
	}
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// act does one lawful thing in a session, or a foolish one now and then.
func (p *process) act(st *session.State) {
	switch {
	case p.w.chance(60):
		p.w.log.appendRaw(st.Ref(), events.WriterHarness, p.w.log.last(st.Ref()), p.w.now, []byte(`{"not":"a batch"}`))
	case p.w.chance(150):
		p.say(st, st.Epoch, events.SessionClosed{Reason: "finished"})
	case p.w.chance(120):
		p.say(st, st.Epoch, events.SessionReleased{Reason: "shutdown"})
	case st.Pending.Stop != nil:
		p.say(st, st.Epoch, events.TurnStopped{Turn: st.Pending.Stop.Turn, Actor: st.Pending.Stop.Actor})
	case p.takesDecisions(st):
	case st.Pending.Turn != nil:
		t := st.Pending.Turn
		p.say(st, st.Epoch, events.TurnStarted{Turn: t.ID, Cause: t.Cause, OfTurn: t.OfTurn, Message: t.Message, Prompt: t.Prompt})
	case st.Turn == nil || st.Turn.Epoch != st.Epoch:
		m := p.w.id("m")
		p.say(st, st.Epoch, events.MessageAccepted{Message: m, Content: json.RawMessage(`"hello"`)}, events.TurnStarted{Turn: p.w.id("t"), Cause: events.CauseMessage, Message: m})
	default:
		p.inTurn(st)
	}
}

// takesDecisions hands what a person decided to the agent.
func (p *process) takesDecisions(st *session.State) bool {
	for _, id := range sorted(st.Prompts) {
		q := st.Prompts[id]
		if q.Status == session.Awaiting || q.Epoch != st.Epoch {
			continue
		}
		if c := st.Tools[q.Call]; c != nil && c.Epoch == st.Epoch {
			p.say(st, st.Epoch, events.ToolCompleted{Call: q.Call})
		} else {
			p.say(st, st.Epoch, events.PromptDelivered{Prompt: id})
		}
		return true
	}
	return false
}

func (p *process) inTurn(st *session.State) {
	turn := st.Turn.ID
	switch n := p.w.rng.IntN(12); {
	case n < 3:
		p.say(st, st.Epoch, events.ToolStarted{Call: p.w.id("c"), Turn: turn, Name: "bash", Background: p.w.chance(10)})
	case n < 5:
		p.ask(st, turn)
	case n == 5 && len(p.order) < sessionsMax:
		p.delegate(st, turn)
	case n < 9:
		p.endCall(st)
	case n == 9 && st.BlockedBy() == "":
		p.say(st, st.Epoch, events.TurnFailed{Turn: turn, Error: events.Failure{Kind: "server_error"}})
	case n == 10 && st.BlockedBy() == "":
		p.say(st, st.Epoch, events.TurnCompleted{Turn: turn, Finish: "stop"})
	default:
		p.say(st, st.Epoch, events.UsageReported{Turn: turn, Tokens: events.Tokens{Input: int64(p.w.rng.IntN(100_000))}})
	}
}

// ask opens a question of one of the sorts.
func (p *process) ask(st *session.State, turn string) {
	f := events.PromptRequested{Prompt: p.w.id("p"), Turn: turn, PromptKind: events.PromptQuestion, Title: "?",
		Questions: []events.Question{{ID: "q", Question: "?", Custom: true}}, Delivery: events.DeliverCallback}
	var facts []events.Fact
	switch p.w.rng.IntN(4) {
	case 0:
		f.Delivery, f.Call = events.DeliverToolResult, p.w.id("c")
		facts = append(facts, events.ToolStarted{Call: f.Call, Turn: turn, Name: "question"})
	case 1:
		f.Delivery = events.DeliverMessage
	case 2:
		f.Deadline = p.w.now.Add(time.Duration(p.w.rng.IntN(20)) * time.Second)
	}
	p.say(st, st.Epoch, append(facts, f)...)
}

// delegate starts a call that waits for a child session.
func (p *process) delegate(st *session.State, turn string) {
	call := p.w.id("c")
	if p.say(st, st.Epoch, events.ToolStarted{Call: call, Turn: turn, Name: "task"}) {
		p.open(events.SessionOpened{Incarnation: p.incarnation, Parent: st.Session, ParentCall: call, Root: st.Root})
	}
}

// endCall ends a call that no question waits in.
func (p *process) endCall(st *session.State) {
	for _, id := range sorted(st.Tools) {
		if st.Tools[id].Epoch != st.Epoch || slices.ContainsFunc(st.PendingPrompts(), func(q string) bool { return st.Prompts[q].Call == id }) {
			continue
		}
		if p.w.chance(3) {
			p.say(st, st.Epoch, events.ToolFailed{Call: id, Error: events.Failure{Kind: "exit", Text: "1"}})
		} else {
			p.say(st, st.Epoch, events.ToolCompleted{Call: id, Output: json.RawMessage(`"done"`)})
		}
		return
	}
}
