package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Input is what a decider knows beside the document.
type Input struct {
	Now      time.Time // the broker's
	Start    time.Time // of this process
	Progress time.Time // last ping of the session's harness that this process heard; zero: none
	Replica  int       // which of the service's processes decides: they may be of different versions
	Source   session.Source
}

// Decision is what a decider would append now, as one commit, and when it wants to look again; zero: at the next
// change.
type Decision struct {
	Facts   []events.Fact
	CheckAt time.Time
	Local   bool // the check needs no timer that outlives this process
}

// Decider is one more service's brain. It runs twice at the same time.
type Decider struct {
	Name   string // the service's: of its timers, and in the source of its facts
	Writer events.Writer
	Decide func(s *session.State, in Input) (Decision, error)
}

// service is a decider as the broker knows it: the place of its durable consumers, which its replicas share, and its
// timers.
type service struct {
	Decider

	seen   map[events.Ref]uint64 // revision of each document that was acknowledged
	timers map[events.Ref]alarm  // one a session
	fired  []events.Ref          // that went off and were not acknowledged yet

	replicas [2]*replica
}

// alarm is a timer at the broker, with the place in the log of the session that it was decided on.
type alarm struct {
	due time.Time
	seq uint64
}

// replica is one process of a decider. It is killed between any two steps: then what it knew is gone, and what it did
// not acknowledge comes again.
type replica struct {
	w      *world
	of     *service
	n      int
	start  time.Time
	pings  map[events.Ref]time.Time // pings
	checks map[events.Ref]time.Time // checks that need no timer
	cursor int                      // of the walk over all documents
	first  int                      // what is left of the first one

	busy      bool // from a trigger to its acknowledgement
	alarm     bool // a timer was the trigger
	rev       uint64
	st        *session.State
	facts     []events.Fact
	nextCheck time.Time
	local     bool
	races     int
	again     []events.Fact // a planted bug's
	checked   map[events.Ref]bool
}

func newService(w *world, d Decider) *service {
	s := &service{Decider: d, seen: map[events.Ref]uint64{}, timers: map[events.Ref]alarm{}}
	for n := range s.replicas {
		s.replicas[n] = newReplica(w, s, n)
	}
	return s
}

func newReplica(w *world, s *service, n int) *replica {
	return &replica{first: len(w.log.sessions), w: w, of: s, n: n, start: w.now, pings: map[events.Ref]time.Time{},
		checks: map[events.Ref]time.Time{}, checked: map[events.Ref]bool{}}
}

// Timers of the make-believe broker.
const (
	lateMaxMS     = 260
	lostOneIn     = 25 // the walk is there for these
	doubledOneIn  = 8
	forgottenIn   = 25 // documents that are acknowledged without a look: tried three times, and left to the walk
	walkOneIn     = 6  // looks that are the walk's, while there are triggers
	replicaKillIn = 250
)

// fire has the timers go off that are due: late, and now and then twice, or not at all.
func (s *service) fire(w *world) {
	if len(s.timers) == 0 {
		return
	}
	for _, r := range w.log.sessions {
		a, ok := s.timers[r]
		if !ok || w.now.Before(a.due.Add(time.Duration(w.rng.IntN(lateMaxMS))*time.Millisecond)) {
			continue
		}
		delete(s.timers, r)
		w.report.Alarms++
		if w.settling || w.cfg.NoWalk || !w.chance(lostOneIn) {
			s.fired = append(s.fired, r)
		}
		if w.chance(doubledOneIn) {
			s.fired = append(s.fired, r)
		}
	}
}

// step is one of: take a trigger and decide, append, set the timer and acknowledge.
func (p *replica) step() {
	switch {
	case p.w.away:
	case !p.busy:
		p.take()
	case len(p.facts) > 0:
		p.append()
	default:
		p.acknowledge()
	}
}

// take takes the next trigger: a timer, a document that is newer than what was acknowledged, or the walk's next.
func (p *replica) take() {
	ref, ok := p.trigger()
	if !ok {
		return
	}
	d := p.w.docs[ref]
	if d == nil {
		return
	}
	p.busy, p.rev, p.st, p.races = true, d.rev, d.state(), 0
	if !p.w.settling && !p.w.cfg.NoWalk && !p.alarm && p.w.chance(forgottenIn) {
		return
	}
	p.decide()
}

func (p *replica) trigger() (events.Ref, bool) {
	s, w := p.of, p.w
	if p.alarm = len(s.fired) > 0; p.alarm {
		return s.fired[w.rng.IntN(len(s.fired))], true
	}
	if r, ok := p.dequeue(); ok {
		return r, true
	}
	n := len(w.log.sessions)
	if n == 0 {
		return events.Ref{}, false
	}
	if w.settling || w.cfg.NoWalk || !w.chance(walkOneIn) {
		for i, from := 0, w.rng.IntN(n); i < n; i++ {
			if r := w.log.sessions[(from+i)%n]; w.docs[r] != nil && w.docs[r].rev > s.seen[r] {
				return r, true
			}
		}
	}
	if w.cfg.NoWalk {
		if p.first == 0 {
			return events.Ref{}, false
		}
		p.first--
	}
	p.cursor++
	return w.log.sessions[p.cursor%n], true
}

// wake is a session that this process wanted to look at by now.
func (p *replica) dequeue() (events.Ref, bool) {
	if len(p.checks) > 0 {
		for _, r := range p.w.log.sessions {
			if at, ok := p.checks[r]; ok && !at.After(p.w.now) {
				delete(p.checks, r)
				return r, true
			}
		}
	}
	return events.Ref{}, false
}

func (p *replica) decide() {
	in := Input{Now: p.w.now, Start: p.start, Progress: p.pings[p.st.Ref()], Replica: p.n, Source: p.w.log.source}
	d, err := p.of.Decide(p.st, in)
	if err != nil {
		p.w.fail("%s decides on %s: %v", p.of.Name, p.st.Ref(), err)
	}
	p.facts, p.nextCheck, p.local = d.Facts, d.CheckAt, d.Local
	p.mistake()
	p.checked[p.st.Ref()] = true
}

// append stores the decision. If another writer was first, the replica folds what it missed and decides again.
func (p *replica) append() {
	r := p.st.Ref()
	if p.w.append(p.of.Name, r, p.of.Writer, from(p.source()), p.st.Epoch, p.st.Seq, p.facts) {
		p.facts = p.again
		p.again = nil
		p.w.log.foldOn(p.st)
		return
	}
	p.w.log.foldOn(p.st)
	if p.races++; p.races >= racesMax {
		p.busy, p.facts, p.again = false, nil, nil
		return
	}
	p.decide()
}

func (p *replica) source() string { return events.ServiceSource(p.of.Name, fmt.Sprint(p.n)) }

// acknowledge sets the timer, if one is wanted, and then acknowledges.
func (p *replica) acknowledge() {
	r := p.st.Ref()
	switch {
	case p.nextCheck.IsZero():
	case p.local:
		p.checks[r], p.nextCheck = p.nextCheck, time.Time{}
	default:
		p.of.set(r, alarm{p.nextCheck, p.st.Seq})
		p.nextCheck = time.Time{}
		return
	}
	p.busy = false
	if !p.alarm {
		p.of.seen[r] = max(p.of.seen[r], p.rev)
	} else if i := slices.Index(p.of.fired, r); i >= 0 {
		p.of.fired = slices.Delete(p.of.fired, i, i+1)
	}
	if d := p.w.docs[r]; p.w.cfg.NoWalk && p.of.seen[r] == d.rev && !slices.Contains(p.of.fired, r) {
		p.w.checkAlarm(p.of, d.state())
	}
}

// set writes a timer in the place of the one that is there, unless that was decided on more.
func (s *service) set(r events.Ref, a alarm) {
	if was, ok := s.timers[r]; !ok || was.seq <= a.seq {
		s.timers[r] = a
	}
}

// ping is heard by the replicas that are there.
func (w *world) ping(r events.Ref) {
	for _, s := range w.services {
		for _, p := range s.replicas {
			p.pings[r] = w.now
		}
	}
}

// decideAll has every decider do what its triggers call for, and, if asked to, look at every session.
func (w *world) decideAll(walk bool) {
	for _, s := range w.services {
		p := s.replicas[0]
		n := 0
		if walk {
			n = len(w.log.sessions)
		}
		for p.busy || s.triggered(w) {
			p.step()
		}
		for ; n > 0; n-- {
			for p.step(); p.busy; {
				p.step()
			}
		}
	}
}

// triggered says whether anything is waiting for this service.
func (s *service) triggered(w *world) bool {
	for _, r := range w.log.sessions {
		if w.docs[r] != nil && w.docs[r].rev > s.seen[r] {
			return true
		}
	}
	for _, at := range s.replicas[0].checks {
		if !at.After(w.now) {
			return true
		}
	}
	return len(s.fired) > 0
}
