package explore

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Tokens of a turn that fills the context.
const (
	contextLimit = 100
	contextFull  = 99
)

// stopping reports whether a stop keeps the agent from acting: an agent that reacts to stops acts until its receipt.
func (s *state) stopping() bool { return s.st.Pending.Stop != nil && !s.cfg.Reacts }

// stopped reports whether a person has stopped the turn that the process runs.
func (s *state) stopped(p *process) bool {
	stop := s.st.Pending.Stop
	return s.handles(p) && stop != nil && stop.Turn == p.turn && stop.Actor == events.ActorPerson
}

// reacts completes the stopped turn with all that is open in it. The agent abandons its questions.
func (s *state) reacts(p *process) bool {
	if !s.cfg.Reacts || !s.stopped(p) || !s.asksInTurn(p) && len(s.st.Tools) == 0 {
		return false
	}
	var facts []events.Fact
	if c := s.st.Tools[call]; c != nil && c.Epoch == s.st.Epoch {
		facts = append(facts, events.ToolCompleted{Call: call, Output: json.RawMessage(`"abandoned"`)})
	}
	s.add(p, append(facts, events.TurnCompleted{Turn: p.turn, Finish: "stop"})...)
	return true
}

// fill reports that the turn has filled the context.
func (s *state) fill(p *process) bool {
	if !s.handles(p) || s.stopping() || s.spent.fills >= s.cfg.Most.Fills {
		return false
	}
	s.spent.fills++
	s.add(p, events.UsageReported{Turn: p.turn, Model: "m", Tokens: events.Tokens{Input: contextFull},
		ContextLimit: contextLimit})
	return true
}

// windsDown ends the turn for the compaction: the process has not read that a person has stopped the turn, too.
func (s *state) windsDown(p *process) bool {
	if !s.stopped(p) || s.st.Turn.Compaction == "" {
		return false
	}
	s.add(p, events.TurnStopped{Turn: p.turn, Actor: events.ActorCompaction})
	return true
}
