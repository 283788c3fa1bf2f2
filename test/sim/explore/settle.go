package explore

import "fmt"

// settleStepsMax is how many steps a world has for coming to rest.
const settleStepsMax = 120

// settle runs the world to rest: all processes are up, none fails, and people answer what is open. The
// last state has what was found.
func (s *state) settle() []*state {
	free := *s.cfg
	free.Most = Bounds{Starts: 255, Requests: 255}
	at := s.next()
	at.cfg, at.full = &free, false
	at.notes = []string{"all trouble is over"}
	way := []*state{at}
	for range settleStepsMax {
		n := at.next()
		if !n.settled() {
			break
		}
		way, at = append(way, n), n
		if len(at.found) > 0 {
			return way
		}
	}
	end := at.next()
	end.checkRest(len(way) > settleStepsMax)
	return append(way, end)
}

// settled makes the first step that there is to make: processes before services, services before time, time before
// people.
func (s *state) settled() bool {
	for i := range s.procs {
		p := &s.procs[i]
		if s.thaw(p) || s.startsOver(p) || s.claimAgain(p, whole) || s.storesRest(p) ||
			!s.othersUp(p) && s.start(p) || s.claim(p, everything) || s.readies(p) ||
			s.news(p) && s.readNews(p) || s.continues(p) {
			return true
		}
	}
	for i := range s.leases {
		if s.lingers(&s.leases[i]) || s.expire(&s.leases[i]) {
			return true
		}
	}
	if s.reconcile() {
		return true
	}
	for i := range s.cfg.Deciders {
		if s.decideBy(&s.cfg.Deciders[i]) {
			return true
		}
	}
	if s.due() || s.answer(0) || s.answer(1) {
		return true
	}
	return (s.waits(0) || s.waits(1)) && (s.request("now") || s.request("resume"))
}

// waits reports whether a decision waits for a person to resume the session: for one that was resumed, that has to do.
func (s *state) waits(i int) bool { return s.undelivered(i) && s.fates[i] != promised }

// undelivered reports whether a person has decided about a prompt, and no model has the decision.
func (s *state) undelivered(i int) bool { return s.fates[i].due() || s.fates[i] == output }

// othersUp says whether a process need not be started, for another has the session or may take it. (One that starts in
// an exclusive harness takes the other's place.)
func (s *state) othersUp(p *process) bool {
	for i := range s.procs {
		if q := &s.procs[i]; q != p && q.phase != down && (s.owns(q) || s.st.Claimable(fmt.Sprint(q.inc))) {
			return true
		}
	}
	return false
}

// continues runs a process to its end without trouble.
func (s *state) continues(p *process) bool {
	for i := range p.todo {
		if (p.todo[i] || s.leftInCall(p, i)) && s.ask(p, i) || s.asksInCall(p, i) {
			return true
		}
	}
	for i := range p.unsaid {
		if s.recordUnattended(p, i) {
			return true
		}
	}
	for i := range p.appended {
		if s.takeIn(p, i) {
			return true
		}
	}
	for i := range p.late {
		if s.receiveLate(p, i) {
			return true
		}
	}
	return s.receive(p) || s.closeCall(p) || s.takeChosen(p) || s.work(p) || s.complete(p)
}

// checkRest: nothing is stuck (V14), and each decision has reached a model, or something came after it (V15).
func (s *state) checkRest(restless bool) {
	if restless {
		s.fail("V14: the world does not come to rest")
		return
	}
	alive := false
	for i := range s.procs {
		alive = alive || s.procs[i].phase != down && s.owns(&s.procs[i])
	}
	if stuck := s.law.Stuck(s.st, alive); stuck != "" {
		s.fail("%s", stuck)
	}
	if s.st.Owned && !alive {
		s.fail("V2: the session is owned by incarnation %s, which is gone", s.st.Incarnation)
	}
	for i := range s.fates {
		if s.undelivered(i) {
			s.fail("V15: a person decided about prompt %s and got 200; all is settled, no model has heard of it, and "+
				"no later act overtook it", s.cfg.Asks[i].Prompt)
		}
	}
}
