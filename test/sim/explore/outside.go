package explore

import (
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// opensOutside reports whether a question outside of turns is open.
func (s *state) opensOutside() bool {
	for i, a := range s.cfg.Asks {
		if a.Outside && s.awaits(i) {
			return true
		}
	}
	return false
}

// leave has no Ask wait for a question outside of turns that the process has just adopted, if it has. The log is to say
// so in a commit of its own: the process may die, ask, or lose its lease before that.
func (p *process) leave(s *state, i int) {
	q := s.st.Prompts[s.cfg.Asks[i].Prompt]
	p.unsaid[i] = s.cfg.Asks[i].Outside && s.cfg.Bug != sim.UnaskedNotSaid && q != nil && q.Epoch == s.st.Epoch
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
	case q == nil && !ended, q != nil && q.Status == session.Awaiting: // also one of an earlier process
		s.add(p, a.requested(""))
	default:
		return false
	}
	p.asking[i], p.unsaid[i] = true, false
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
	s.add(p, a.requested(""))
	p.leave(s, i)
	return true
}

// sayUnattended says that no Ask waits for a question outside of turns.
func (s *state) sayUnattended(p *process, i int) bool {
	id := s.cfg.Asks[i].Prompt
	if q := s.st.Prompts[id]; !p.unsaid[i] || !s.runs(p) || q == nil || q.Epoch != s.st.Epoch {
		return false
	}
	p.unsaid[i] = false
	s.add(p, events.PromptUnattended{Prompt: id})
	return true
}
