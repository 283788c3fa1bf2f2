package invariants

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// had is a decision that calls for no turn: the harness stated it, or an owner gave the receipt for it.
type had struct {
	own   bool   // the harness stated it
	epoch uint64 // of the owner
	turn  string // the open turn that has it; "": a turn that completed, or that its owner replaced
}

// receipts follows what owners have. A receipt in a turn that ends without completing settles nothing: the next attempt
// begins without a memory.
func (x *Log) receipts(e *events.Event) {
	s := x.before
	open := ""
	if s.Turn != nil {
		open = s.Turn.ID
	}
	switch f := e.Fact.(type) {
	case events.PromptAnswered:
		x.stated(f.Prompt)
	case events.PromptRejected:
		x.stated(f.Prompt)
	case events.PromptDelivered:
		// its turn ended without completing
		cut := func(c session.Carried) bool { return c.Prompt == f.Prompt }
		if f.Refused == "" && (open != "" || s.LastTurn == nil || !slices.ContainsFunc(s.LastTurn.Prompts, cut)) {
			x.had[f.Prompt] = had{epoch: s.Epoch, turn: open}
		}
	case events.TurnStarted:
		x.begins(open, f)
		if p := s.Pending.Turn; p != nil && p.ID == f.Turn && p.ID != open {
			x.needless("begins", f.Turn, p.Cause, p.Message, x.brings(f))
		}
	case events.TurnRequested:
		x.needless("is requested", f.Turn, f.Cause, f.Message, f.Prompts)
	case events.TurnCompleted:
		x.ends(f.Turn, true)
	case events.TurnFailed:
		x.ends(f.Turn, false)
	case events.TurnInterrupted:
		x.ends(f.Turn, false)
	case events.TurnStopped:
		x.ends(f.Turn, false)
	}
}

// stated records a decision of the harness itself.
func (x *Log) stated(prompt string) {
	if x.c.Writer == events.WriterHarness {
		x.had[prompt] = had{own: true, epoch: x.before.Epoch}
	}
}

// begins follows the decisions of the open turn when another one begins. A process that continues or replaces its own
// turn keeps what it has.
func (x *Log) begins(open string, f events.TurnStarted) {
	s := x.before
	if open == "" || open == f.Turn {
		return
	}
	for id, h := range x.had {
		switch {
		case h.turn != open:
		case f.OfTurn == open:
			h.turn = f.Turn
			x.had[id] = h
		case s.Turn.Epoch == s.Epoch && s.Owned:
			h.turn = ""
			x.had[id] = h
		default:
			delete(x.had, id)
		}
	}
}

func (x *Log) ends(turn string, completed bool) {
	for id, h := range x.had {
		switch {
		case h.turn != turn || h.own:
		case completed:
			h.turn = ""
			x.had[id] = h
		default:
			delete(x.had, id)
		}
	}
}

// needless reports a turn that only decisions call for, if its agent has all of them or a person has stopped them.
func (x *Log) needless(what, turn string, cause events.Cause, message string, named []string) {
	if cause != events.CauseAnswer || message != "" || len(named) == 0 {
		return
	}
	if !slices.ContainsFunc(named, x.needed) {
		x.fail("V15: turn %s %s, and its owner has these decisions, or a person has stopped them: %v", turn, what,
			named)
	}
}

// needed reports whether a decision may call for a turn.
func (x *Log) needed(prompt string) bool {
	s := x.before
	h, has := x.had[prompt]
	d, owed := x.debts[prompt]
	switch {
	case has && h.own:
		return false
	case owed && d.call == "" && x.left != x.c.Seq && x.attended(prompt, ""):
		// its asker waits for it, outside of any turn
		return false
	case owed && d.at <= x.noTurnSeq && x.c.Writer == events.WriterReconciler && x.kept(prompt):
		// a ledger from before the rule has stored it, or one after it
		return false
	case owed && x.c.Writer == events.WriterRetry:
		// a person resumes what waits since the stop
		return true
	case owed:
		return d.at > x.lastStop || x.called() > x.lastStop
	}
	return !has || !s.Owned || x.left == x.c.Seq || h.epoch != s.Epoch
}

// kept reports whether no process has left a prompt behind: recovery continues what was left, however it was decided.
func (x *Log) kept(prompt string) bool {
	s := x.before
	p := s.Prompts[prompt]
	return s.Owned && x.left != x.c.Seq && s.Turn == nil && (p == nil || p.Epoch == s.Epoch)
}

// Had are the decisions that call for no turn while this epoch lasts, sorted: what the harness stated itself, and what
// the owner has, with the open turn that has it.
func (x *Log) Had(epoch uint64) (own, received, turns []string) {
	for _, id := range slices.Sorted(maps.Keys(x.had)) {
		switch h := x.had[id]; {
		case h.own:
			own = append(own, id)
		case h.epoch == epoch:
			received, turns = append(received, id), append(turns, h.turn)
		}
	}
	return own, received, turns
}

// Acts are the places of what [Log.Called] is the last of: if a message is taken back, another one counts.
func (x *Log) Acts() []uint64 {
	return append([]uint64{x.person}, slices.Sorted(maps.Values(x.sent))...)
}

// LastStop is the place of a person's last stop.
func (x *Log) LastStop() uint64 { return x.lastStop }
