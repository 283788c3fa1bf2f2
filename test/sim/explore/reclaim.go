package explore

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// sent is a claim on its way to the log, whose process has stopped waiting for it.
type sent struct {
	p      int // its process
	inc    uint64
	before *session.State
	facts  []events.Fact
}

// canArrive reports whether the compare-and-set of a claim on its way would still succeed.
func (s *state) canArrive(c sent) bool { return c.before.Seq == s.st.Seq }

// startsOver draws the next incarnation of a process that has lost its lease. Its session stays suspended.
func (s *state) startsOver(p *process) bool {
	if !p.held || p.stopped || s.lease(p.inc).health == live {
		return false
	}
	// another process has drawn a ticket since: this one is retired
	if !s.cfg.Pool && s.drawn > p.inc {
		*p = process{inc: p.inc}
		s.record("process %s finds that another took its place, and ends", s.name(p))
		return true
	}
	s.draw(p)
	p.phase, p.again = starting, true
	s.record("process %s starts over", s.name(p))
	return true
}

// How a claim after a lost lease is stored.
const (
	whole     = 99 // in one commit
	claimOnly = 0  // what is adopted follows in another commit
	andOne    = 1  // one adopted item is in the first commit
)

// claimAgain claims, under the next incarnation of a process that has lost its lease, the session if no other process
// took it, and continues all of it. The first commit has the claim and the given number of adopted items.
func (s *state) claimAgain(p *process, first int) bool {
	facts, rest, ok := s.claimsAgain(p, first)
	switch {
	case !ok:
		return false
	case facts != nil && s.full:
		// it is refused, and tried again
		if s.cfg.Bug != sim.FullLogFences {
			return false
		}
		s.loses(p)
		return true
	}
	if facts == nil {
		s.record("process %s has lost the session", s.name(p))
		if s.st.Owned && slices.Contains(p.sentAs, s.ownerInc()) {
			s.fail("P12: a living process loses its session to its own claim")
		}
		s.loses(p)
		return true
	}
	s.record("process %s claims the session again", s.name(p))
	s.appendClaim(p.inc, s.st, facts)
	p.mine, p.held, p.epoch, p.knew, p.claims, p.sentAs = true, false, s.st.Epoch, p.inc, nil, nil
	p.rest = slices.Concat(rest, p.rest)
	if s.st.Turn == nil || s.st.Turn.ID != p.turn {
		s.endHandler(p)
	}
	c := s.st.Compaction
	p.compact = p.compact && s.compacting() && c.Epoch == s.st.Epoch
	return true
}

// claimInDoubt sends such a claim. The lease is lost before the process learns what became of it.
func (s *state) claimInDoubt(p *process, first int) bool {
	facts, _, ok := s.claimsAgain(p, first)
	if !ok || facts == nil || s.spent.lapses >= s.cfg.Most.Lapses || s.spent.doubts >= s.cfg.Most.Doubts {
		return false
	}
	s.spent.lapses++
	s.spent.doubts++
	s.record("process %s sends a claim, and loses its lease before it knows the outcome", s.name(p))
	s.lease(p.inc).health = lapsed
	if s.cfg.Bug != sim.ClaimInDoubtForgotten {
		p.claims = append(slices.Clone(p.claims), p.inc)
	}
	p.sentAs = append(slices.Clone(p.sentAs), p.inc)
	s.sent = append(slices.Clone(s.sent), sent{p: s.index(p), inc: p.inc, before: s.st, facts: facts})
	return true
}

// arrives stores a claim that was sent, if the compare-and-set permits it.
func (s *state) arrives(i int) bool {
	if i >= len(s.sent) || !s.canArrive(s.sent[i]) {
		return false
	}
	c := s.sent[i]
	s.sent = slices.Delete(slices.Clone(s.sent), i, i+1)
	s.record("the claim of incarnation %d arrives", c.inc)
	s.appendClaim(c.inc, c.before, c.facts)
	return true
}

// claimsAgain returns the first commit of a claim after a lost lease, nil when the session is lost, and its rest.
func (s *state) claimsAgain(p *process, first int) (facts, rest []events.Fact, ok bool) {
	if !p.held || p.stopped || p.phase != starting || s.lease(p.inc).health != live {
		return nil, nil, false
	}
	st := s.st
	doubtful := st.Epoch > p.epoch && slices.Contains(p.claims, s.ownerInc())
	if !p.mine || !st.Owned || !doubtful && (st.Epoch != p.epoch || s.ownerInc() != p.knew) {
		return nil, nil, first == whole
	}
	if !st.Exclusive {
		facts = append(facts, events.SessionReleased{Reason: "lease-lost"})
	}
	claimed := events.SessionClaimed{Incarnation: fmt.Sprint(p.inc)}
	if s.cfg.Pool {
		claimed.Exclusive = new(bool)
	}
	facts = append(facts, claimed)
	if c := st.Compaction; p.compact && s.compacting() && c.Epoch >= p.epoch {
		facts = append(facts, events.CompactionStarted{Compaction: c.ID})
	}
	again := append(s.adopting(ofOwn, p.epoch), s.reports(p)...)
	if first == whole {
		return append(facts, again...), nil, true
	}
	if first >= len(again) || s.spent.splits >= s.cfg.Most.Splits {
		return nil, nil, false
	}
	s.spent.splits++
	return append(facts, again[:first]...), again[first:], true
}

// reports is what a claim after a lost lease says beside what it adopts: what the process has read, and what its Asks
// wait for, of the epoch that it knew, or of one of its claims in doubt.
func (s *state) reports(p *process) (facts []events.Fact) {
	for i, a := range s.cfg.Asks {
		q := s.st.Prompts[a.Prompt]
		switch {
		case q == nil || q.Epoch < p.epoch:
		case q.Status == session.Awaiting:
			// its new request takes that back, also that of a claim in doubt, whose rest was not stored
			unasked := a.apart() && !p.asking[i] && !p.appended[i] && s.cfg.Bug != sim.UnaskedByTheLog
			if q.Unattended || unasked {
				facts = append(facts, events.PromptUnattended{Prompt: a.Prompt})
			}
		case p.returned[i] && s.owesReceipt(i):
			facts = append(facts, events.PromptDelivered{Prompt: a.Prompt})
		// returned: the end of its call is the receipt
		case p.returned[i] || (p.asking[i] || p.late[i]) && !s.isOver(q), s.waitsByAppend(p, i, q):
			facts = append(facts, events.PromptAttended{Prompt: a.Prompt})
		}
	}
	if t := s.st.Turn; t != nil && t.Epoch >= p.epoch {
		for _, c := range t.Prompts {
			if c.Had >= p.epoch {
				facts = append(facts, events.PromptDelivered{Prompt: c.Prompt})
			}
		}
	}
	return facts
}

// isOver reports whether the turn of a prompt is over: an Ask that still waits for its decision may end with the turn.
func (s *state) isOver(q *session.Prompt) bool {
	return q.Turn != "" && (s.st.Turn == nil || s.st.Turn.ID != q.Turn) && s.st.Tools[q.Call] == nil
}

// appendClaim stores a claim, which releases what an earlier incarnation of the same process has.
func (s *state) appendClaim(inc uint64, before *session.State, facts []events.Fact) {
	s.appendAs(events.WriterHarness, func(f events.Fact) string {
		if _, old := f.(events.SessionReleased); old {
			return events.HarnessSource(harnessID, before.Incarnation)
		}
		return events.HarnessSource(harnessID, fmt.Sprint(inc))
	}, before.Epoch, facts...)
	s.lease(inc).claimed = true
}

// storesRest stores what is left of a claim.
func (s *state) storesRest(p *process) bool {
	if len(p.rest) == 0 || !s.runs(p) {
		return false
	}
	s.storeRest(p)
	return true
}

// storeRest stores what is left of a claim, without the items that have ended meanwhile.
func (s *state) storeRest(p *process) {
	rest := p.rest
	p.rest = nil
	c := events.Commit{Ref: ref(), Writer: events.WriterHarness, Seq: s.st.Seq + 1, Guard: s.st.Seq, Guarded: true,
		At: s.now}
	trial, counts := s.st.Try(c), []events.Fact(nil)
	for _, f := range rest {
		if trial.Add(events.New("e", p.source(), ref(), p.epoch, s.now, f)) == "" {
			counts = append(counts, f)
		}
	}
	if len(counts) > 0 {
		s.append(events.WriterHarness, p.source(), p.epoch, counts...)
	}
}

// loses ends a process's part in the session.
func (s *state) loses(p *process) {
	if s.st.Closed == nil && s.st.Owned && s.st.Epoch == p.epoch && s.ownerInc() == p.knew {
		s.fail("P12: living process %s gives up a session that is its own by the log", s.name(p))
	}
	s.endHandler(p)
	*p = process{phase: p.phase, inc: p.inc, again: p.again}
}

// ends reports what recovery has ended of what a living owner runs and waits for.
func (s *state) ends(before *session.State, were [processes]process) {
	for i := range s.procs {
		p := &were[i]
		// where the adoption grace ends, recovery takes what the process has not adopted yet
		if p.phase == down || p.stopped || !s.owns(p) || s.lease(p.inc).health != live || s.lease(p.inc).late {
			continue
		}
		if p.turn != "" && before.Turn != nil && before.Turn.ID == p.turn && s.st.Turn == nil {
			s.fail("P12: recovery ends turn %s, which a living process runs", p.turn)
		}
		if c := before.Tools[call]; c != nil && c.Epoch == before.Epoch && s.st.Tools[call] == nil {
			s.fail("P12: recovery ends call %s, which a living process runs", call)
		}
		for k, a := range s.cfg.Asks {
			if q := before.Prompts[a.Prompt]; (p.asking[k] || p.appended[k]) && q != nil && q.Awaits() && !s.awaits(k) {
				s.fail("P12: recovery ends prompt %s, which a living process waits for", a.Prompt)
			}
		}
	}
}

// index is the place of a process.
func (s *state) index(p *process) int {
	for i := range s.procs {
		if p == &s.procs[i] {
			return i
		}
	}
	return -1
}
