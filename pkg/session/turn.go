package session

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func (f *fold) applyTurn() (why string, ok bool) {
	switch fact := f.e.Fact.(type) {
	case events.TurnRequested:
		return f.turnRequested(fact), true
	case events.TurnStarted:
		return f.turnStarted(fact), true
	case events.TurnCompleted:
		return f.turnEnds(fact.Turn, OutcomeCompleted, fact.Finish, nil), true
	case events.TurnFailed:
		return f.turnFailed(fact), true
	case events.TurnStopRequested:
		return f.turnStopRequested(fact), true
	case events.TurnStopped:
		return f.turnStopped(fact), true
	case events.TurnInterrupted:
		return f.turnEnds(fact.Turn, OutcomeInterrupted, fact.Reason, nil), true
	}
	return "", false
}

// turnRequested: a newer request replaces a pending one.
func (f *fold) turnRequested(fact events.TurnRequested) string {
	if f.Turn != nil && f.Turn.ID == fact.Turn || f.ended(EntityTurn, fact.Turn) != nil {
		return whyClosedID
	}
	f.Pending.Turn = &PendingTurn{ID: fact.Turn, Cause: fact.Cause, OfTurn: fact.OfTurn, Message: fact.Message, Attempt: fact.Attempt,
		Options: fact.Options, Compaction: fact.Compaction, Prompt: fact.Prompt, At: f.c.At, Seq: f.c.Seq}
	switch fact.Cause {
	case events.CauseRetry, events.CauseResume:
		f.Retry.State = RetryStarting
		f.Retry.Turn = orElse(f.Retry.Turn, fact.OfTurn)
		if fact.Cause == events.CauseResume {
			f.Retry.Resumes++
		}
	}
	if l := f.LastCompaction; l != nil && fact.Compaction == l.ID {
		l.FollowUp = ""
	}
	return ""
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// turnStarted ends the turn it comes over, takes its message and prompt along, and clears what was pending.
func (f *fold) turnStarted(fact events.TurnStarted) string {
	if t := f.Turn; t != nil && t.ID == fact.Turn {
		return f.turnAgain(fact)
	}
	if f.ended(EntityTurn, fact.Turn) != nil {
		return whyClosedID
	}
	if t := f.Turn; t != nil {
		outcome, reason := OutcomeStopped, events.ReasonReplaced
		if fact.OfTurn == t.ID {
			outcome, reason = OutcomeContinued, ""
		}
		f.endTurn(outcome, reason, nil)
		f.derive(events.TurnStopped{Turn: t.ID, Reason: orElse(reason, OutcomeContinued)})
	}
	byPerson := !fact.Synthetic && (fact.Cause == events.CauseMessage || fact.Cause == events.CauseFollowUp && fact.Message != "")
	prompt := fact.Prompt
	if p := f.Pending.Turn; p != nil && p.ID == fact.Turn {
		prompt = orElse(prompt, p.Prompt)
	}
	f.Turn = &Turn{ID: fact.Turn, Cause: fact.Cause, Synthetic: fact.Synthetic, OfTurn: fact.OfTurn, Message: fact.Message,
		Since: f.c.At, Attempt: max(fact.Attempt, 1), Epoch: f.Epoch, Options: fact.Options}
	f.take(fact.Message)
	f.deliver(prompt, f.c.At)
	f.deliverOrphans()
	f.Pending.Turn = nil
	switch {
	case byPerson:
		f.Retry = Retry{}
		f.ActiveAt = f.c.At
	case f.Retry.State != RetryAbandoned || fact.Cause == events.CauseRetry || fact.Cause == events.CauseResume:
		f.Retry = Retry{Attempt: f.Retry.Attempt, SameFailures: f.Retry.SameFailures, Resumes: f.Retry.Resumes}
	}
	return ""
}

// turnAgain: the same id while it is open is adoption by a newer epoch, else nothing new.
func (f *fold) turnAgain(fact events.TurnStarted) string {
	if f.Turn.Epoch == f.Epoch {
		return whyOpen
	}
	f.Turn.Epoch = f.Epoch
	if fact.Options != nil {
		f.Turn.Options = fact.Options
	}
	if p := f.Pending.Turn; p != nil && p.ID == fact.Turn {
		f.Pending.Turn = nil
	}
	return ""
}

// take removes a message from the queue: a turn has it.
func (f *fold) take(message string) {
	if message == "" {
		return
	}
	i := slices.IndexFunc(f.Queue, func(m Message) bool { return m.ID == message })
	if i < 0 {
		return
	}
	f.Queue = slices.Delete(f.Queue, i, i+1)
	f.end(Ending{Entity: EntityMessage, ID: message, Outcome: OutcomeDelivered})
}

// turnEnds is an ordinary ending of the turn it names.
func (f *fold) turnEnds(turn, outcome, reason string, failure *events.Failure) string {
	switch {
	case f.Turn != nil && f.Turn.ID == turn:
		f.endTurn(outcome, reason, failure)
	case f.ended(EntityTurn, turn) != nil:
		return whyClosedID
	default:
		return whyUnknown
	}
	if outcome == OutcomeCompleted {
		f.Retry = Retry{}
	}
	return ""
}

func (f *fold) turnFailed(fact events.TurnFailed) string {
	failure := cutFailure(fact.Error)
	before := f.Retry.Error
	if l := f.LastTurn; before == nil && l != nil {
		before = l.Error
	}
	if why := f.turnEnds(fact.Turn, OutcomeFailed, failure.Kind, failure); why != "" {
		return why
	}
	f.LastTurn.HadOutput = fact.HadOutput
	if before == nil || before.Kind == failure.Kind {
		f.Retry.SameFailures++
	} else {
		f.Retry.SameFailures = 1
	}
	return ""
}

// turnStopRequested is pending work until the receipt, for the process that runs or ran the turn. A turn nobody has
// started yet is simply no longer wanted.
func (f *fold) turnStopRequested(fact events.TurnStopRequested) string {
	known := false
	if p := f.Pending.Turn; p != nil && fact.Actor == events.ActorPerson {
		known = p.ID == fact.Turn
		f.Pending.Turn = nil
	}
	open := f.Turn != nil && f.Turn.ID == fact.Turn
	past := f.ended(EntityTurn, fact.Turn) != nil
	switch {
	case open || past && f.Owned:
		f.Pending.Stop = &PendingStop{Turn: fact.Turn, Actor: fact.Actor, By: cut(fact.By, NameBytesMax), Reason: cut(fact.Reason, TextBytesMax), At: f.c.At, Seq: f.c.Seq}
	case !known && !past:
		return whyUnknown
	}
	if l := f.LastTurn; past && l != nil && l.ID == fact.Turn && fact.Actor == events.ActorPerson {
		l.Actor = fact.Actor
	}
	return ""
}

// turnStopped ends the turn, or is the receipt for one that ended before its stop was heard of.
func (f *fold) turnStopped(fact events.TurnStopped) string {
	receipt := f.Pending.Stop != nil && f.Pending.Stop.Turn == fact.Turn
	why := f.turnEnds(fact.Turn, OutcomeStopped, fact.Reason, nil)
	if why == "" {
		f.LastTurn.Actor = fact.Actor
	}
	if receipt {
		f.Pending.Stop = nil
		return ""
	}
	return why
}

// endTurn closes the open turn with what belongs to it. The turn's own ending comes last, so that it outlives those of
// its calls among the endings that are kept.
func (f *fold) endTurn(outcome, reason string, failure *events.Failure) {
	t := f.Turn
	for _, id := range sortedKeys(f.Prompts) {
		if p := f.Prompts[id]; p.Turn == t.ID {
			f.withdraw(id, events.ReasonTurnEnded)
		}
	}
	for _, id := range sortedKeys(f.Tools) {
		if c := f.Tools[id]; c.Turn == t.ID && !c.Background {
			f.endCallContained(id, OutcomeEndedWithTurn, events.ReasonTurnEnded)
		}
	}
	reason = cut(reason, TextBytesMax)
	f.LastTurn = &LastTurn{ID: t.ID, Outcome: outcome, Reason: reason, At: f.c.At, Error: failure, Message: t.Message, Options: t.Options,
		Cause: t.Cause, OfTurn: t.OfTurn, Attempt: t.Attempt, Synthetic: t.Synthetic, Seq: f.c.Seq}
	f.end(Ending{Entity: EntityTurn, ID: t.ID, Outcome: outcome, Reason: reason})
	f.Turn = nil
}
