package harness

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// AskOnce asks people, and keeps the decision under a name: the same question is asked once for a message, however
// often its turn is run. It opens the call that waits for the answer, and ends it. Later calls with the same name
// return the kept decision, also when it was made while no process ran. Look at [Answer.Status]: a person may have
// rejected or dismissed the question, a message may have superseded it, its deadline may have passed. All of these are
// kept. A question that ended without a decision, with its turn, is asked again.
//
// ID, Call, Delivery and OnOwnerLoss of the prompt are set by AskOnce. Bring is not used: the end of the call is the
// receipt. Another question under a name that has a decision, or that still waits for one in this process, is
// [ErrNameTaken]: the decision was not about it. If an earlier process asked another question under the name, and it is
// still open, AskOnce withdraws that one, and asks this one under an id of its own: an answer to the question that a
// person saw before decides nothing here. Other errors are those of [Turn.Ask].
func (t *Turn) AskOnce(ctx context.Context, name string, p Prompt) (Answer, error) {
	release, err := t.begin(nameOfQuestion, name)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	p.Bring = nil
	ctx, cancel := t.within(ctx)
	defer cancel()
	for n := 1; ; {
		id, was, err := t.find(ctx, nameOfQuestion, name, n)
		if err != nil {
			return Answer{}, err
		}
		p.ID, p.Call, p.Delivery, p.OnOwnerLoss = id, id, events.DeliverToolResult, events.LossKeep
		switch {
		case was.decided():
			if err := t.sameQuestion(ctx, name, p, was.asked); err != nil {
				return Answer{}, err
			}
			a, err := t.s.decision(ctx, id, was.Seq)
			if err != nil {
				return Answer{}, err
			}
			return a, t.endCall(ctx, id, a)
		case was.ended:
			n++
			continue
		case was.own:
			// asked under this name before, by a call that ended without the decision
			if err := t.sameQuestion(ctx, name, p, was.asked); err != nil {
				return Answer{}, err
			}
		case was.asks():
			if err := t.sameQuestion(ctx, name, p, was.asked); errors.Is(err, ErrNameTaken) {
				if err := t.withdrawOther(ctx, id, was); err != nil && !errors.Is(err, errChanged) {
					return Answer{}, err
				}
				// it is withdrawn, or was decided meanwhile
				continue
			} else if err != nil {
				return Answer{}, err
			}
		}
		a, err := t.askNow(ctx, name, p, was.epoch)
		if !errors.Is(err, errChanged) {
			return a, err
		}
	}
}

// withdrawOther withdraws an open question of an earlier process, and ends its call: this process asks another one. It
// returns [errChanged] if the question is not as it was.
func (t *Turn) withdrawOther(ctx context.Context, id string, was recorded) error {
	facts := []events.Fact{events.PromptWithdrawn{Prompt: id, Reason: reasonOther}}
	open := t.s.State().Tools[id] != nil
	if open {
		facts = append(facts, events.ToolFailed{Call: id,
			Error: events.Failure{Kind: string(session.Withdrawn), Text: reasonOther}})
	}
	return t.s.append(ctx, func(st *session.State) (bool, error) {
		if err := t.running(st, was.epoch); err != nil {
			return false, err
		}
		now, _ := inState(st, nameOfQuestion, id)
		if !now.asks() || now.asked != was.asked || (st.Tools[id] != nil) != open {
			return false, errChanged
		}
		return false, nil
	}, facts...)
}

// reasonOther is why a question is withdrawn that an earlier process asked.
const reasonOther = "another question is asked in its place"

// askNow opens the call of a question and asks, or waits for the question that is open, and ends the call with the
// decision.
func (t *Turn) askNow(ctx context.Context, name string, p Prompt, epoch uint64) (Answer, error) {
	err := t.s.append(ctx, func(st *session.State) (bool, error) {
		if err := t.running(st, epoch); err != nil {
			return false, err
		}
		if _, ended := st.Ended(session.EntityTool, p.Call); ended {
			return false, errChanged
		}
		c := st.Tools[p.Call]
		return c != nil && ofLastOwner(st, c.Epoch), nil
	}, events.ToolStarted{Call: p.Call, Turn: t.id, Name: name, Title: p.Title})
	if err != nil {
		return Answer{}, err
	}
	a, err := t.s.ask(ctx, t, p)
	if err != nil {
		return a, err
	}
	// perhaps a decision about another text, which came before this one was stored
	if kept(a.Status, a.Reason) {
		was, _ := inState(t.s.State(), nameOfQuestion, p.ID)
		if err := t.sameQuestion(ctx, name, p, was.asked); err != nil {
			return Answer{}, err
		}
	}
	if !kept(a.Status, a.Reason) {
		t.s.mu.Lock()
		err := t.running(t.s.st, t.s.st.Epoch)
		t.s.mu.Unlock()
		// the question ended with the turn
		if err != nil {
			return a, err
		}
	}
	return a, t.endCall(ctx, p.Call, a)
}

// kept reports whether a settlement of a question is a decision: of a person, or by its deadline. Any other end of a
// question decides nothing.
func kept(status session.Status, reason string) bool {
	switch status {
	case session.Answered, session.Rejected, session.Dismissed, session.Superseded:
		return true
	case session.Expired:
		return reason == events.ReasonDeadline
	default:
		return false
	}
}

// sameQuestion compares a question with the one that was decided.
func (t *Turn) sameQuestion(ctx context.Context, name string, p Prompt, asked uint64) error {
	want, err := p.requested(t.id)
	if err != nil {
		return err
	}
	return t.s.sameShown(ctx, "question "+name, want, asked)
}

// decision returns a decision that is in the log, and adopts what still waits for it.
func (s *Session) decision(ctx context.Context, prompt string, seq uint64) (Answer, error) {
	if err := s.adoptSettled(ctx, prompt); err != nil {
		return Answer{}, err
	}
	return s.readAnswer(ctx, Prompt{ID: prompt}, seq)
}

// endCall ends the call of a question with the decision, unless the call has ended.
func (t *Turn) endCall(ctx context.Context, call string, a Answer) error {
	var end events.Fact
	if a.Status == session.Answered {
		output, err := encode(a.Answers)
		if err != nil {
			return about(err, "call %s: output", call)
		}
		end = events.ToolCompleted{Call: call, Output: output}
	} else {
		end = events.ToolFailed{Call: call, Error: events.Failure{Kind: string(a.Status), Text: clip(a.Text)}}
	}
	late, done := t.s.h.lastWord(ctx)
	defer done()
	err := t.s.appendLast(late, func(st *session.State) (bool, error) { return st.Tools[call] == nil, nil }, end)
	if errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}
