package explore

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// opensOutside reports whether a question outside of turns is open.
func (s *state) opensOutside() bool {
	for i, a := range s.cfg.Asks {
		if a.apart() && s.awaits(i) {
			return true
		}
	}
	return false
}

// leave has no Ask wait for a question outside of turns that the process has just adopted, if it has. The log is to say
// so in a commit of its own: the process may die, ask, or lose its lease before that.
func (p *process) leave(s *state, i int) {
	q := s.st.Prompts[s.cfg.Asks[i].Prompt]
	waits := p.asking[i] || p.appended[i] || s.cfg.Bug == sim.UnaskedNotRecorded
	p.unsaid[i] = s.cfg.Asks[i].apart() && !waits && q != nil && s.has(q)
}

// askOutside asks a question that belongs to no turn, or asks again what was adopted or given up.
func (s *state) askOutside(p *process, i int) bool {
	a := s.cfg.Asks[i]
	if !s.runs(p) || p.asking[i] || p.returned[i] {
		return false
	}
	q := s.st.Prompts[a.Prompt]
	_, ended := s.st.Ended(session.EntityPrompt, a.Prompt)
	switch {
	case q != nil && q.Status != session.Awaiting && q.Epoch == s.st.Epoch:
		p.unsaid[i] = false
		s.hand(p, i)
		return true
	case q != nil && q.Status == session.Awaiting && q.Epoch == s.st.Epoch && !q.Unattended:
		s.record("process %s asks %s again", s.name(p), a.Prompt)
	case q == nil && !ended && a.Outside, q != nil && q.Status == session.Awaiting:
		// also one of an earlier process
		s.add(p, s.requested(i, turnOf(q)))
	default:
		return false
	}
	p.asks(i)
	return true
}

// adoptLate adopts a question outside of turns that an earlier process has left, in a session that this process has
// already, and does not ask.
func (s *state) adoptLate(p *process, i int) bool {
	a := s.cfg.Asks[i]
	q := s.st.Prompts[a.Prompt]
	if !a.Outside || !s.runs(p) || !s.awaits(i) || q.Epoch == s.st.Epoch {
		return false
	}
	s.add(p, s.requested(i, ""))
	p.leave(s, i)
	return true
}

// recordUnattended says that no Ask waits for a question outside of turns.
func (s *state) recordUnattended(p *process, i int) bool {
	id := s.cfg.Asks[i].Prompt
	if q := s.st.Prompts[id]; !p.unsaid[i] || !s.runs(p) || q == nil || q.Unattended || !s.has(q) {
		return false
	}
	p.unsaid[i] = false
	s.add(p, events.PromptUnattended{Prompt: id})
	return true
}

// has reports whether the owner has a prompt, or the call that asks it.
func (s *state) has(q *session.Prompt) bool {
	c := s.st.Tools[q.Call]
	return q.Epoch == s.st.Epoch || c != nil && c.Epoch == s.st.Epoch
}

// turnOf returns the turn of a prompt, "" of none.
func turnOf(q *session.Prompt) string {
	if q == nil {
		return ""
	}
	return q.Turn
}

// background is the question of a call in the background, -1 for none.
func (s *state) background() int {
	return slices.IndexFunc(s.cfg.Asks[:], func(a Ask) bool { return a.Background })
}

// calls reports whether a call is open that its turn waits for.
func (s *state) calls() bool {
	for _, c := range s.st.Tools {
		if !c.Background {
			return true
		}
	}
	return false
}
