package sim

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// mistake changes what a decider has decided, as the planted bug would.
func (p *replica) mistake() {
	retry := p.of.Writer == events.WriterRetry
	switch p.w.cfg.Bug {
	case RetryRestarts:
		if r := p.st.Retry; retry && len(p.facts) == 0 && !p.looked[p.st.Ref()] && r.State == session.RetryScheduled && p.w.now.After(r.DueAt.Add(-time.Minute)) {
			p.restart(r)
		}
	case FollowUpTwice:
		p.again = p.followUpAgain()
	case QueueAfterFailure:
		if p.of.Writer == events.WriterCompaction && len(p.facts) == 0 && failedAlone(p.st) {
			p.facts = []events.Fact{events.TurnRequested{Turn: p.w.id("t"), Cause: events.CauseMessage, Message: p.st.Queue[0].ID}}
		}
	case FailureEmptyQueue:
		if l := p.st.LastCompaction; p.of.Writer == events.WriterCompaction && l != nil && l.Outcome == session.OutcomeFailed && len(p.st.Queue) > 0 {
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
		p.look = time.Time{}
	}
}

func (p *replica) restart(r session.Retry) {
	delay := time.Second
	p.facts = []events.Fact{events.RetryScheduled{Turn: r.Turn, Attempt: r.Attempt, DelayMS: delay.Milliseconds(), DueAt: p.w.now.Add(delay), Error: *r.Error}}
	p.look = p.w.now.Add(delay)
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
	return l != nil && l.Outcome == session.OutcomeFailed && s.Turn == nil && s.Pending == (session.Pending{}) && len(s.Queue) > 0 && s.Retry.State != session.RetryScheduled &&
		s.Compaction == nil && s.BlockedBy() == "" && s.Closed == nil
}
