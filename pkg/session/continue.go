package session

import (
	"github.com/holdfast-dev/holdfast/pkg/codec"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// ContinuationsMax is how many turns recovery requests for decisions that nothing delivers, until a person acts again.
// An agent that takes none of them is not asked without end.
const ContinuationsMax = 10

// ContinuationsHeld is the state of [Continuations] after the last request, while a decision is still owed.
const ContinuationsHeld = "held"

// reasonNoProgress is why no more turns are requested.
const reasonNoProgress = "no_progress"

// Continuations counts the turns that recovery has requested for decisions since a person acted: decided about a
// prompt, sent a message, or asked for a turn.
type Continuations struct {
	Count  int    `json:"count"`
	State  string `json:"state,omitempty"` // held: no more are requested
	Reason string `json:"reason,omitempty"`
}

// countContinuation notes that recovery requests a turn for a decision, or that a person has.
func (f *fold) countContinuation(cause events.Cause, person bool) {
	switch {
	case person:
		f.personActs()
	case cause == events.CauseAnswer && f.c.Writer == events.WriterReconciler:
		f.Continuations = Continuations{Count: f.Continuations.Count + 1}
	}
}

// personActs has recovery request turns again.
func (f *fold) personActs() { f.Continuations = Continuations{} }

// restContinuations shows, once no more turns are requested, that decisions wait for a person to act.
func (s *State) restContinuations() {
	c := &s.Continuations
	c.State, c.Reason = "", ""
	if c.Count < ContinuationsMax {
		return
	}
	if _, owed := s.owed(); owed {
		c.State, c.Reason = ContinuationsHeld, reasonNoProgress
	}
}

// Owed returns the request for a turn that a decision of a person calls for when nothing else does: the session rests,
// and no completed turn has had the decision, nor will its own process take it in. ok is false without such a decision,
// also while a compaction, a retry or the queue goes first, because the turns that these request name the decision.
// A decision from before a failure that is not retried, or from before a person's stop, waits for a person as the
// queue does; a decision after it is a later act of that person. After [ContinuationsMax] requests the decision waits
// for a person, too: see [State.OwedAndHeld].
func (s *State) Owed() (f events.TurnRequested, ok bool) {
	if s.Continuations.Count >= ContinuationsMax {
		return f, false
	}
	return s.owed()
}

// OwedAndHeld returns the request that [State.Owed] would return if recovery had not requested so many turns in vain.
func (s *State) OwedAndHeld() (f events.TurnRequested, ok bool) {
	if s.Continuations.State != ContinuationsHeld {
		return f, false
	}
	return s.owed()
}

func continuationsFields(c *codec.Codec, n *Continuations) {
	codec.Number(c, `"count":`, &n.Count)
	codec.Some(c, `,"state":`, &n.State)
	codec.Some(c, `,"reason":`, &n.Reason)
	c.Mark(`}`)
}
