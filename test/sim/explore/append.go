package explore

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// requested is the request of a question with its newest text.
func (s *state) requested(i int, turn string) events.PromptRequested {
	return s.cfg.Asks[i].requested(turn, s.reworded[i])
}

// withoutDecision is the output of a call whose process has not read what was decided about its question.
const withoutDecision = `"done"`

// endCall ends the call although no Ask has returned a decision: its question may be open. The client refuses that if a
// person has decided, and the open turn has not brought the decision.
func (s *state) endCall(p *process) bool {
	c := s.st.Tools[call]
	if !s.runs(p) || c == nil || s.spent.ends >= s.cfg.Most.Ends {
		return false
	}
	for i, a := range s.cfg.Asks {
		q := s.st.Prompts[a.Prompt]
		if a.Call != call || q == nil {
			continue
		}
		_, brings := s.st.Carries(a.Prompt)
		brings = brings && q.Turn != s.st.Turn.ID
		bug := s.cfg.Bug == sim.CallEndsUnread || s.cfg.Bug == sim.CallTakenEndsUnread && p.took && s.holdsCall(p)
		if q.Status != session.Awaiting && !p.returned[i] && !brings && !bug {
			return false
		}
	}
	s.spent.ends++
	s.add(p, events.ToolCompleted{Call: call, Output: json.RawMessage(withoutDecision)})
	for i, a := range s.cfg.Asks {
		// its Ask returns that the question was withdrawn
		if a.Call == call {
			p.asking[i], p.appended[i], p.todo[i], p.unsaid[i] = false, false, false, false
		}
	}
	return true
}

// appendCall says again that a call runs which an earlier process has left: this process answers for it from now on. No
// Ask waits for its question. The log is to say so of a call in the background.
func (s *state) appendCall(p *process) bool {
	c := s.st.Tools[call]
	if !s.runs(p) || c == nil || c.Epoch == s.st.Epoch || s.spent.appends >= s.cfg.Most.Appends {
		return false
	}
	s.spent.appends++
	s.add(p, events.ToolStarted{Call: call, Turn: c.Turn, Name: c.Name, Background: c.Background})
	p.took = s.cfg.Bug == sim.CallTakenEndsUnread
	for i, a := range s.cfg.Asks {
		if a.Call == call && s.cfg.Bug != sim.CallTakenNotRecorded {
			p.leave(s, i)
		}
	}
	return true
}

// appendQuestion requests a question without an Ask: the program reads the decision by itself. One that is open gets
// another text, or is adopted from an earlier process, and the turn with it.
func (s *state) appendQuestion(p *process, i int, other bool) bool {
	a, t := s.cfg.Asks[i], s.st.Turn
	q := s.st.Prompts[a.Prompt]
	if _, ended := s.st.Ended(session.EntityPrompt, a.Prompt); ended || !s.runs(p) || s.stopping() {
		return false
	}
	if other && q == nil || !other && q != nil && q.Epoch == s.st.Epoch {
		return false
	}
	turn := turnOf(q)
	if q == nil && !a.Outside {
		if t == nil || t.Epoch == s.st.Epoch && t.ID != p.turn {
			return false
		}
		turn = t.ID
	}
	facts, ok := s.callOf(a, turn)
	if !ok || !s.spends(other) {
		return false
	}
	s.reworded[i] = s.reworded[i] != other
	s.add(p, append(facts, s.requested(i, turn))...)
	p.appended[i], p.unsaid[i], p.todo[i] = !p.asking[i], false, false
	if turn != "" && !a.Background && s.st.Turn != nil && s.st.Turn.ID == turn {
		if s.st.Turn.Epoch != s.st.Epoch {
			s.fail("P12: a question that is appended in turn %s does not adopt it", turn)
		}
		p.turn = turn
	}
	return true
}

// spends counts one more question that is appended. It returns false if the bound is met.
func (s *state) spends(other bool) bool {
	n, most := &s.spent.appends, s.cfg.Most.Appends
	if other {
		n, most = &s.spent.rewords, s.cfg.Most.Rewords
	}
	if *n >= most {
		return false
	}
	*n++
	return true
}

// callOf begins the call of a question if it is not open. ok is false if the call has ended.
func (s *state) callOf(a Ask, turn string) (facts []events.Fact, ok bool) {
	if a.Call == "" || s.st.Tools[a.Call] != nil {
		return nil, true
	}
	if _, ended := s.st.Ended(session.EntityTool, a.Call); ended {
		return nil, false
	}
	return []events.Fact{events.ToolStarted{Call: a.Call, Turn: turn, Name: "question", Background: a.Background}}, true
}

// takeIn has the program read a decision that no Ask waits for.
func (s *state) takeIn(p *process, i int) bool {
	q := s.st.Prompts[s.cfg.Asks[i].Prompt]
	apart := s.cfg.Asks[i].apart()
	if !p.appended[i] || !s.runs(p) || q == nil || q.Awaits() {
		return false
	}
	if !apart && !s.has(q) && (!s.handles(p) || q.Turn != p.turn) {
		// it is another turn's, which this process does not run
		return false
	}
	if apart && s.fates[i] == received {
		s.fail("V15: a turn has brought the decision about prompt %s, and process %s, which waits for it, takes it in",
			s.cfg.Asks[i].Prompt,
			s.name(p))
	}
	s.hand(p, i)
	return true
}

// waitsByAppend reports whether the program is to take in a decision that outlives its turn, and no Ask waits for it.
func (s *state) waitsByAppend(p *process, i int, q *session.Prompt) bool {
	return p.appended[i] && s.cfg.Asks[i].apart() && !q.Unattended && s.cfg.Bug != sim.AppendedNotAttended
}

// unlessFull makes a step only if it stores nothing or the log has room.
func unlessFull(do func(*state) bool) func(*state) bool {
	return func(s *state) bool {
		before := s.st.Seq
		return do(s) && (!s.full || s.st.Seq == before)
	}
}

// fillLog fills the log: nothing is stored until it has room.
func (s *state) fillLog() bool {
	if s.full || s.spent.fulls >= s.cfg.Most.Fulls {
		return false
	}
	s.spent.fulls++
	s.full = true
	s.record("the log is full")
	return true
}

// makeRoom ends that.
func (s *state) makeRoom() bool {
	if !s.full {
		return false
	}
	s.full = false
	s.record("the log has room")
	return true
}

// choose asks Worker.Options about the requested turn, in a session of this process or in one without an owner. The
// decisions that the turn brings are read before that.
func (s *state) choose(p *process) bool {
	st := s.st
	own := s.runs(p) && (p.phase == ready || p.again)
	if !own && !s.free(p) || p.options != nil || st.Pending.Stop != nil || !s.takeable() ||
		s.withdraws(p) || s.spent.options >= s.cfg.Most.Options {
		return false
	}
	s.spent.options++
	f := s.started(st)
	p.options = &f
	s.record("process %s asks for the options of turn %s, which brings %v", s.name(p), f.Turn, f.Prompts)
	return true
}

// takeChosen takes the turn when Worker.Options has returned, unless it is no longer as it was: then Work asks again.
func (s *state) takeChosen(p *process) bool {
	if p.options == nil || !s.runs(p) && !s.free(p) {
		return false
	}
	f := *p.options
	p.options = nil
	if p.mine {
		s.storeRest(p)
		s.receive(p)
	}
	t := s.st.Pending.Turn
	if t == nil || t.ID != f.Turn && f.Turn != s.started(s.st).Turn || !s.takeable() || s.changed(p, &f) {
		s.record("process %s has the options of a turn that is no longer as it was", s.name(p))
		return true
	}
	s.takeWork(p, f)
	s.endHandler(p)
	p.turn = s.st.Turn.ID
	return true
}

// free reports whether the session has no owner, and this process may take it with its work.
func (s *state) free(p *process) bool {
	return p.phase == ready && !p.mine && !p.stopped && !p.held && s.lease(p.inc).health == live && !s.st.Owned &&
		s.st.Claimable(fmt.Sprint(p.inc))
}

// changed reports whether the requested turn brings something else than when it was read.
func (s *state) changed(p *process, f *events.TurnStarted) bool {
	now := s.started(s.st)
	gone := slices.ContainsFunc(f.Prompts, func(id string) bool { return !slices.Contains(now.Prompts, id) })
	more := slices.ContainsFunc(now.Prompts, func(id string) bool { return !slices.Contains(f.Prompts, id) })
	without := s.cfg.Bug == sim.OptionsWithout || s.cfg.Bug == sim.FreeOptionsWithout && !p.mine
	return gone && s.cfg.Bug != sim.OptionsOfBefore || more && !without
}

// takeable reports whether a requested turn may be taken now.
func (s *state) takeable() bool {
	p := s.st.Pending.Turn
	return p != nil && s.st.Pending.Compaction == nil && !s.compacting() && (s.idleTurn() || p.OfTurn == s.st.Turn.ID)
}
