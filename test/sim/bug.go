package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// mistake changes what a decider has decided, as the planted bug would.
func (p *replica) mistake() {
	retry := p.of.Writer == events.WriterRetry
	switch p.w.cfg.Bug {
	case RetryRestarts:
		if r := p.st.Retry; retry && len(p.facts) == 0 && !p.checked[p.st.Ref()] && r.State == session.RetryScheduled &&
			p.w.now.After(r.DueAt.Add(-time.Minute)) {
			p.restart(r)
		}
	case FollowUpTwice:
		p.again = p.followUpAgain()
	case QueueAfterFailure:
		if p.of.Writer == events.WriterCompaction && len(p.facts) == 0 && failedAlone(p.st) {
			p.facts = []events.Fact{events.TurnRequested{Turn: p.w.id("t"), Cause: events.CauseMessage,
				Message: p.st.Queue[0].ID}}
		}
	case FailureEmptyQueue:
		if l := p.st.LastCompaction; p.of.Writer == events.WriterCompaction && l != nil &&
			l.Outcome == session.OutcomeFailed && len(p.st.Queue) > 0 {
			p.facts = nil
			for _, m := range p.st.Queue {
				p.facts = append(p.facts, events.MessageWithdrawn{Message: m.ID})
			}
		}
	case ResumeUncounted:
		for i, f := range p.facts {
			if t, ok := f.(events.TurnRequested); ok && retry && t.Cause == events.CauseResume {
				t.Cause = events.CauseRetry
				p.facts[i] = t
			}
		}
	case AlarmsForgotten:
		p.nextCheck = time.Time{}
	}
}

func (p *replica) restart(r session.Retry) {
	delay := time.Second
	p.facts = []events.Fact{events.RetryScheduled{Turn: r.Turn, Attempt: r.Attempt, DelayMS: delay.Milliseconds(),
		DueAt: p.w.now.Add(delay), Error: *r.Error}}
	p.nextCheck = p.w.now.Add(delay)
}

// followUpAgain is the follow-up that was decided, under another id.
func (p *replica) followUpAgain() []events.Fact {
	for _, f := range p.facts {
		if t, ok := f.(events.TurnRequested); ok && t.Compaction != "" {
			t.Turn = fmt.Sprint(t.Turn, "-again")
			return []events.Fact{t}
		}
	}
	return nil
}

// failedAlone: the last turn failed, nothing is under way, and people have queued something.
func failedAlone(s *session.State) bool {
	l := s.LastTurn
	return l != nil && l.Outcome == session.OutcomeFailed && s.Turn == nil && s.Pending == (session.Pending{}) &&
		len(s.Queue) > 0 && s.Retry.State != session.RetryScheduled &&
		s.Compaction == nil && s.BlockedBy() == "" && s.Closed == nil
}

// Fold is the fold of a world with a bug.
func (b Bug) Fold(s *session.State, c *events.Commit) session.Result {
	pending, asked, turn := "", s.Pending.Turn, s.Turn
	if turn != nil {
		before := *turn
		turn = &before
	}
	if asked != nil {
		pending = asked.ID
	}
	again := c.Seq <= s.Seq
	res := s.Fold(c)
	if again {
		// a commit that is delivered again changes nothing, also in a world with a bug
		return res
	}
	switch b {
	case OwedDropped:
		dropOwed(s, pending, c)
	case AnswerNotCarried:
		forget(s)
	case AnswerAlone:
		if p := s.Pending.Turn; p != nil && len(p.Prompts) > 1 {
			alone := *p
			alone.Prompts = p.Prompts[len(p.Prompts)-1:]
			s.Pending.Turn = &alone
		}
	case BackgroundAdopts:
		if t := s.Turn; is[events.PromptRequested](c) && hasBackground(s) {
			adopted := *t
			adopted.Epoch = s.Epoch
			s.Turn = &adopted
		}
	case UnattendedForgotten:
		attend(s)
	case ContinuationsForgotten:
		s.Continuations = session.Continuations{}
	case ReceiptForgotten:
		forgetReceipts(s)
		if len(res.Feed) == 1 && is[events.PromptDelivered](c) && s.Pending.Turn == nil {
			s.Pending.Turn = asked
		}
	case AttendedKeepsRequest:
		if is[events.PromptAttended](c) && s.Pending.Turn == nil {
			s.Pending.Turn = asked
		}
	case RefusalDropsRequest:
		if asked != nil && len(asked.Prompts) > 1 && refuses(c) {
			s.Pending.Turn = nil
		}
	case RefusedStays:
		if refuses(c) && turn != nil && s.Turn != nil {
			s.Turn.Prompts = turn.Prompts
		}
	case MessagesForgotten:
		s.Recent = slices.DeleteFunc(s.Recent, func(e session.Ending) bool { return e.Entity == session.EntityMessage })
	case DismissedDropped:
		dropDismissed(s, c)
	case StopReleased:
		if is[events.MessageWithdrawn](c) {
			s.HeldSeq, s.StoppedSeq = 0, 0
		}
	}
	return res
}

// dropOwed has a turn that was not requested begin as if nothing had been decided before it.
func dropOwed(s *session.State, pending string, c *events.Commit) {
	t := s.Turn
	if t == nil || t.ID == pending || !begins(c, t.ID) {
		return
	}
	for id, p := range s.Prompts {
		if p.Status != session.Awaiting && p.Turn != t.ID && s.Tools[p.Call] == nil {
			delete(s.Prompts, id)
		}
	}
	if l := s.LastTurn; l != nil && len(l.Prompts) > 0 {
		last := *l
		last.Prompts = nil
		s.LastTurn = &last
	}
}

// dropDismissed forgets what a commit dismisses.
func dropDismissed(s *session.State, c *events.Commit) {
	for i := range c.Events {
		f, ok := c.Events[i].Fact.(events.PromptDismissed)
		if !ok {
			continue
		}
		delete(s.Prompts, f.Prompt)
		if s.Turn != nil {
			s.Turn.Prompts = slices.DeleteFunc(slices.Clone(s.Turn.Prompts), func(c session.Carried) bool {
				return c.Prompt == f.Prompt
			})
		}
	}
}

// is reports whether a commit has a fact of a type.
func is[F events.Fact](c *events.Commit) bool {
	return slices.ContainsFunc(c.Events, func(e events.Event) bool { _, ok := e.Fact.(F); return ok })
}

// refuses reports whether a commit says that the harness cannot use a decision.
func refuses(c *events.Commit) bool {
	return slices.ContainsFunc(c.Events, func(e events.Event) bool {
		f, ok := e.Fact.(events.PromptDelivered)
		return ok && f.Refused != ""
	})
}

// attend takes every prompt for one that its asker waits for.
func attend(s *session.State) {
	for id, p := range s.Prompts {
		if p.Unattended {
			waited := *p
			waited.Unattended = false
			s.Prompts[id] = &waited
		}
	}
}

// forgetReceipts clears the epochs of receipts.
func forgetReceipts(s *session.State) {
	clean := func(list []session.Carried) []session.Carried {
		list = slices.Clone(list)
		for i := range list {
			list[i].Had = 0
		}
		return list
	}
	if s.Turn != nil {
		s.Turn.Prompts = clean(s.Turn.Prompts)
	}
	if l := s.LastTurn; l != nil && len(l.Prompts) > 0 {
		last := *l
		last.Prompts = clean(l.Prompts)
		s.LastTurn = &last
	}
}

// begins reports whether a commit starts a turn, and does not adopt it.
func begins(c *events.Commit, turn string) bool {
	starts, adopts := false, false
	for i := range c.Events {
		switch f := c.Events[i].Fact.(type) {
		case events.TurnStarted:
			starts = starts || f.Turn == turn
		case events.SessionClaimed:
			adopts = true
		}
	}
	return starts && !adopts
}

// forget takes what a turn names for delivered as soon as the turn begins, and keeps nothing of it for the next
// attempt.
func forget(s *session.State) {
	if t := s.Turn; t != nil {
		for _, c := range t.Prompts {
			if p := s.Prompts[c.Prompt]; p != nil && p.Turn != t.ID {
				delete(s.Prompts, c.Prompt)
			}
		}
	}
	if l := s.LastTurn; l != nil && len(l.Prompts) > 0 {
		last := *l
		last.Prompts = nil
		s.LastTurn = &last
	}
}

// Planted is what a service says in a world with a bug, in place of what it decided.
func (b Bug) Planted(w events.Writer, s *session.State, facts []events.Fact) []events.Fact {
	if b == AdoptedTurnTaken && w == events.WriterReconciler && len(facts) == 0 {
		return continues(s)
	}
	if b == BackgroundRuns && w == events.WriterReconciler && hasBackground(s) {
		return nil
	}
	if b == CallDoesNotRun && w == events.WriterReconciler && len(facts) == 0 && hasCallOnly(s) {
		return []events.Fact{events.TurnInterrupted{Turn: s.Turn.ID, Reason: events.ReasonOwnerLost}}
	}
	if b == OwedNotRequested && w == events.WriterReconciler && s.Turn == nil {
		return slices.DeleteFunc(slices.Clone(facts), func(f events.Fact) bool {
			t, ok := f.(events.TurnRequested)
			return ok && t.Cause == events.CauseAnswer
		})
	}
	return facts
}

// hasBackground reports whether the owner has a call in the background of the open turn.
func hasBackground(s *session.State) bool {
	for _, c := range s.Tools {
		if t := s.Turn; t != nil && c.Background && c.Turn == t.ID && s.Owns(c.Epoch) {
			return true
		}
	}
	return false
}

// hasCallOnly reports whether the owner has a call of the open turn, and not the turn.
func hasCallOnly(s *session.State) bool {
	return s.Turn != nil && !s.Owns(s.Turn.Epoch) && s.Runs(s.Turn.ID)
}

// continues is a continuation of a turn that a process has adopted, for a prompt that was decided.
func continues(s *session.State) []events.Fact {
	t := s.Turn
	if t == nil || !s.Owned || t.Epoch != s.Epoch || s.Epoch == 1 || s.Pending.Turn != nil || s.BlockedBy() != "" {
		return nil
	}
	for _, id := range sorted(s.Prompts) {
		if p := s.Prompts[id]; p.Status != session.Awaiting && p.Turn == t.ID && s.Tools[p.Call] == nil {
			return []events.Fact{s.Continue(id, t.ID, "")}
		}
	}
	return nil
}
