package explore

import (
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// foreground reports whether the call is open, of the open turn, and one that the turn waits for.
func (s *state) foreground() bool {
	c, t := s.st.Tools[call], s.st.Turn
	return c != nil && !c.Background && t != nil && c.Turn == t.ID
}

// holdsCall reports whether a process has adopted the call of the open turn, and not the turn.
func (s *state) holdsCall(p *process) bool {
	return s.runs(p) && p.turn == "" && s.foreground() && s.st.Tools[call].Epoch == s.st.Epoch &&
		s.st.Turn.Epoch < s.st.Epoch
}

// asksInCall asks the question of an adopted call. The turn is adopted with it, also when the question is settled.
func (s *state) asksInCall(p *process, i int) bool {
	a := s.cfg.Asks[i]
	q := s.st.Prompts[a.Prompt]
	if a.Call != call || !s.holdsCall(p) || q == nil || p.asking[i] || p.returned[i] || s.stopping() {
		return false
	}
	t := s.st.Turn
	if q.Status == session.Awaiting {
		s.add(p, s.requested(i, t.ID))
	} else {
		s.add(p, events.TurnStarted{Turn: t.ID, Cause: t.Cause, Synthetic: t.Synthetic, OfTurn: t.OfTurn,
			Message: t.Message, Attempt: t.Attempt})
	}
	if s.st.Turn == nil || s.st.Turn.Epoch != s.st.Epoch {
		s.fail("P12: an Ask in call %s does not adopt turn %s", call, t.ID)
		return true
	}
	p.turn = t.ID
	if p.asking[i] = s.awaits(i); !p.asking[i] {
		s.hand(p, i)
	}
	return true
}

// leftInCall reports whether a question belongs to an open call of this process, and nothing here has asked it: an
// earlier process did, and this one has adopted the call or the turn.
func (s *state) leftInCall(p *process, i int) bool {
	c, q := s.st.Tools[call], s.st.Prompts[s.cfg.Asks[i].Prompt]
	return s.handles(p) && c != nil && c.Epoch == s.st.Epoch && !c.Background && q != nil && q.Call == call &&
		!p.asking[i] && !p.appended[i] && !p.returned[i]
}

// brought reports whether the process runs a turn that was given a decision, of which it has not given the receipt.
func (s *state) brought(p *process, i int) bool {
	c, ok := s.st.Carries(s.cfg.Asks[i].Prompt)
	return ok && c.Had == 0 && s.handles(p) && !p.returned[i]
}

// refuse reports that the harness cannot use a decision. That is its receipt: people see it, and no turn brings the
// decision again.
func (s *state) refuse(p *process, i int) bool {
	id := s.cfg.Asks[i].Prompt
	use := s.fates[i].due() || s.brought(p, i)
	if !use || !s.runs(p) || len(p.rest) > 0 || s.spent.refusals >= s.cfg.Most.Refusals {
		return false
	}
	f := events.PromptDelivered{Prompt: id, Refused: "no"}
	c := events.Commit{Ref: ref(), Writer: events.WriterHarness, Seq: s.st.Seq + 1, Guard: s.st.Seq, Guarded: true,
		At: s.now}
	if s.st.Try(c).Add(events.New("e", p.source(), ref(), p.epoch, s.now, f)) != "" {
		// it counts as delivered
		return false
	}
	s.spent.refusals++
	p.appended[i] = false
	s.add(p, f)
	s.fates[i] = received
	return true
}
