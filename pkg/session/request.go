package session

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// Decision is what a request calls for: facts to append, or none because the request is fulfilled already, at Seq.
type Decision struct {
	Facts []events.Fact
	Seq   uint64
}

func (s *State) found() error {
	if !s.Opened() {
		return events.NotFound("session", s.Ref().String())
	}
	return nil
}

func (s *State) refuseClosed() error {
	if s.Closed == nil {
		return nil
	}
	c := s.Closed
	return events.Conflict("the session is closed ("+c.Reason+"): open another one",
		events.Standing{Status: string(Closed), Reason: c.Reason, By: c.By, At: c.At, Seq: c.Seq})
}

// Changeable refuses a request about a session that does not exist (404), or is closed (409).
func (s *State) Changeable() error {
	if err := s.found(); err != nil {
		return err
	}
	return s.refuseClosed()
}

// Answer decides on an answer. The error is an [*events.Refusal], or that a commit could not be read.
func (s *State) Answer(w request.Answer, src Source) (Decision, error) {
	p, err := s.awaitingPrompt(w.Prompt)
	if err != nil {
		return Decision{}, err
	}
	if p == nil {
		return s.tooLate(w.Prompt, Answered, w.Asked, src, func(found settlement) bool {
			return sameAnswers(found.answers, trimmed(w.Answers))
		})
	}
	if err := s.sameShown(w.Prompt, w.Asked, src); err != nil {
		return Decision{}, err
	}
	req, err := promptRequest(src, p.Seq, p.Epoch, w.Prompt)
	if err != nil {
		return Decision{}, err
	}
	answers, err := checkAnswers(req.Asked(), w.Answers, w.Unreadable)
	if err != nil {
		return Decision{}, err
	}
	facts := []events.Fact{events.PromptAnswered{Prompt: w.Prompt, Answers: answers, By: w.By, Owed: true}}
	return Decision{Facts: append(facts, s.Settlement(w.Prompt, Answered, req.Asked(), answers, "")...)}, nil
}

// Reject decides on a rejection.
func (s *State) Reject(w request.Reject, src Source) (Decision, error) {
	p, err := s.awaitingPrompt(w.Prompt)
	if err != nil {
		return Decision{}, err
	}
	if p == nil {
		return s.tooLate(w.Prompt, Rejected, w.Asked, src, func(found settlement) bool { return found.text == w.Text })
	}
	if err := s.sameShown(w.Prompt, w.Asked, src); err != nil {
		return Decision{}, err
	}
	if len(w.Text) > events.QuestionsBytesMax {
		return Decision{}, events.TooLarge("the text of a rejection is too long: shorten it", events.QuestionsBytesMax)
	}
	facts := []events.Fact{events.PromptRejected{Prompt: w.Prompt, Text: w.Text, By: w.By, Owed: true}}
	return Decision{Facts: append(facts, s.Settlement(w.Prompt, Rejected, nil, nil, w.Text)...)}, nil
}

// Dismiss decides on a dismissal.
func (s *State) Dismiss(w request.Dismiss, src Source) (Decision, error) {
	p, err := s.awaitingPrompt(w.Prompt)
	if err != nil {
		return Decision{}, err
	}
	if p == nil {
		return s.tooLate(w.Prompt, Dismissed, w.Asked, src, func(settlement) bool { return true })
	}
	if err := s.sameShown(w.Prompt, w.Asked, src); err != nil {
		return Decision{}, err
	}
	facts := []events.Fact{events.PromptDismissed{Prompt: w.Prompt, By: w.By}}
	return Decision{Facts: append(facts, s.Settlement(w.Prompt, Dismissed, nil, nil, "")...)}, nil
}

// awaitingPrompt is the prompt if it can be decided, nil if it was decided or closed; 404 if it never was.
func (s *State) awaitingPrompt(prompt string) (*Prompt, error) {
	if err := s.found(); err != nil {
		return nil, err
	}
	p := s.Prompts[prompt]
	if p.Awaits() {
		return p, nil
	}
	if p == nil && s.ended(EntityPrompt, prompt) == nil {
		if err := s.refuseClosed(); err != nil {
			return nil, err
		}
		return nil, events.NotFound("prompt", prompt)
	}
	return nil, nil
}

// tooLate tells what stands: the same decision again is a success; another decision is 409, and so is one about another
// question; closed without one is 410.
func (s *State) tooLate(prompt string, wanted Status, asked uint64, src Source, same func(settlement) bool) (Decision,
	error) {
	b, err := s.Blocker(prompt, src)
	if err != nil {
		return Decision{}, err
	}
	found, err := settled(src, b.Seq, prompt, b.Status)
	if err != nil {
		return Decision{}, err
	}
	if b.Status == wanted && same(found) {
		if err := s.sameShown(prompt, asked, src); err != nil {
			return Decision{}, err
		}
		return Decision{Seq: b.Seq}, nil
	}
	stands := events.Standing{Status: string(b.Status), Reason: b.Reason, Answers: b.Answers, By: b.By, At: b.ClosedAt,
		Seq: b.Seq, Prompt: prompt}
	if b.Status == Answered || b.Status == Rejected {
		return Decision{}, events.Conflict(fmt.Sprintf("prompt %s was %s by %s already", prompt, b.Status,
			orElse(b.By, "another person")), stands)
	}
	return Decision{}, events.Gone(fmt.Sprintf("prompt %s is %s (%s): it can no longer be decided", prompt, b.Status,
		orElse(b.Reason, "no reason given")), stands)
}

// Settlement returns the facts that follow a decision about a prompt whose asker is gone, and whose call no later
// process has adopted: its call is closed with the decision as its result, or the decision becomes a message, and the
// conversation continues when nothing else blocks it. It returns nothing while the asker is there, which then does all
// that itself. Status is the new status of the prompt; questions and answers belong to Answered, text to Rejected.
func (s *State) Settlement(prompt string, status Status, asked []events.Question, answers []events.Answer,
	text string) []events.Fact {
	p := s.Prompts[prompt]
	if p == nil || s.Owns(p.Epoch) || s.ownsCall(p.Call) {
		return nil
	}
	var facts []events.Fact
	message := ""
	switch {
	case s.Tools[p.Call] != nil:
		facts = append(facts, resultOf(p.Call, status, asked, answers, text))
	case p.Delivery == events.DeliverMessage && status == Answered:
		message = s.answerMessage(prompt, p)
		facts = append(facts, events.MessageAccepted{Message: message, Content: outputOf(asked, answers),
			Synthetic: true})
	}
	if !s.Continues(p, status) {
		return facts
	}
	return append(facts, s.continuation(prompt, p, message)...)
}

// ownsCall reports whether a call is open and the session's owner runs it: it ends the call itself.
func (s *State) ownsCall(call string) bool {
	c := s.Tools[call]
	return c != nil && s.Owns(c.Epoch)
}

// Continues reports whether a settlement of a prompt whose asker is gone continues the conversation. An answer and a
// rejection do. A dismissal, a deadline and a message that took the place of the prompt continue only the open turn
// that asked, and only if no person has stopped the session: they do not tell the agent what to do, and the queue hands
// out the message. The next turn names the prompt.
func (s *State) Continues(p *Prompt, status Status) bool {
	return status.callsForTurn() || s.openTurn(p.Turn) != "" && s.StoppedSeq == 0
}

// continuation requests one turn that continues the session, unless something still blocks or holds it.
func (s *State) continuation(prompt string, p *Prompt, message string) []events.Fact {
	next := s.Continued(p.Turn)
	if s.Runs(p.Turn) || s.Displaces(next) {
		// its owner continues by itself, or the turn that goes first names the decision
		return nil
	}
	for id, q := range s.Prompts {
		if id != prompt && q.Awaits() && q.Blocking {
			return nil
		}
	}
	for _, w := range s.WaitsFor {
		if c := s.Tools[w.Call]; c != nil && c.Turn == p.Turn && w.Call != p.Call {
			return nil
		}
	}
	return []events.Fact{s.Continue(prompt, next, message)}
}

// Displaces reports whether a turn that is requested for a decision about a prompt of this turn would take the place of
// another turn, so that its message is dropped: of the open one, of one that is requested, of what follows a
// compaction, or of a retry. These name the decision, or [State.Owed] requests a turn for it later.
func (s *State) Displaces(ofTurn string) bool {
	if s.Turn != nil {
		return s.Turn.ID != ofTurn
	}
	if p := s.Pending.Turn; p != nil && (p.Cause != events.CauseAnswer || p.OfTurn != "" && p.OfTurn != ofTurn) {
		return true
	}
	return s.CompactionFirst() || s.RetryFirst() && s.LastTurn.ID != ofTurn
}

// Runs reports whether this turn is open and the session's owner runs it, or a call that the turn waits for: no other
// turn may take its place.
func (s *State) Runs(turn string) bool {
	if turn == "" || s.Turn == nil || s.Turn.ID != turn {
		return false
	}
	if s.Owns(s.Turn.Epoch) {
		return true
	}
	for _, c := range s.Tools {
		if c.Turn == turn && !c.Background && s.Owns(c.Epoch) {
			return true
		}
	}
	return false
}

// Continue returns the request for the turn that continues the session after a settled prompt or, without a prompt,
// after a child has settled. It names every prompt that [State.Carry] lists, and the message of the turn unless another
// one is given. Its id depends on the session's place in the log alone, so a decision that is made twice requests one
// turn.
func (s *State) Continue(prompt, ofTurn, message string) events.TurnRequested {
	f := events.TurnRequested{Turn: events.DeriveID("turn", s.Session, prompt, ofTurn, fmt.Sprint(s.Seq)),
		Cause: events.CauseAnswer, OfTurn: ofTurn, Message: message, Prompt: prompt}
	switch {
	case s.Turn != nil && s.Turn.ID == ofTurn:
		f.Options, f.Message = s.Turn.Options, orElse(message, s.Turn.Message)
	case s.LastTurn != nil && s.LastTurn.ID == ofTurn:
		f.Options = s.LastTurn.Options
		// its agent has done what the message asked for
		if s.LastTurn.Outcome != OutcomeCompleted {
			f.Message = orElse(message, s.LastTurn.Message)
		}
	case s.LastTurn != nil:
		// the turn that asked is not kept: the session continues as it ran last
		f.Options = s.LastTurn.Options
	}
	return s.Naming(f)
}

// Stop decides on a stop. A session in which nothing runs, and nothing would begin by itself, needs none: that is a
// success. In a session that has had no turn, the turn that would begin is requested and stopped in one commit. The
// person is the author of the stop, the service is the author of the request.
func (s *State) Stop(w request.Stop) (Decision, error) {
	if err := s.Changeable(); err != nil {
		return Decision{}, err
	}
	if id := s.BlockedBy(); id != "" && !w.Force {
		return Decision{}, events.Conflict("prompt "+id+" waits for an answer: answer, reject or dismiss it, or stop "+
			"with force",
			events.Standing{Status: string(Waiting), Reason: "a blocking prompt is open", Prompt: id,
				Seq: s.Prompts[id].Seq, At: s.Prompts[id].Since})
	}
	turns := s.toStop()
	switch {
	case len(turns) == 0 && s.follows():
		// the session has had no turn
		first := s.firstTurn()
		return Decision{Facts: []events.Fact{first, events.TurnStopRequested{Turn: first.Turn,
			Actor: events.ActorPerson, By: w.By, Reason: w.Reason}}}, nil
	case len(turns) == 0:
		return Decision{Seq: s.Seq}, nil
	}
	if p := s.Pending.Stop; len(turns) == 1 && p.Of(turns[0]) && p.Actor == events.ActorPerson &&
		!s.begins() {
		// that stop holds all that this one would hold
		return Decision{Seq: p.Seq}, nil
	}
	var d Decision
	for _, turn := range turns {
		d.Facts = append(d.Facts, events.TurnStopRequested{Turn: turn, Actor: events.ActorPerson, By: w.By,
			Reason: w.Reason})
	}
	return d, nil
}

// toStop are the turns that run, will run, or would be tried again a moment later; and the last one, after which
// something would begin by itself: when the conversation has been compacted, for a queued message, or for a decision.
func (s *State) toStop() []string {
	switch {
	case s.Turn != nil:
		return []string{s.Turn.ID}
	case s.Pending.Turn != nil:
		return []string{s.Pending.Turn.ID}
	}
	var turns []string
	if s.RetryPlanned() {
		turns = append(turns, s.Retry.Turn)
	}
	// another one, which failed while that one waits
	undecided := s.FailureUndecided() && s.LastTurn.Actor != events.ActorPerson
	if undecided || s.LastTurn != nil && s.follows() {
		turns = append(turns, s.LastTurn.ID)
	}
	return slices.Compact(turns)
}

// firstTurn returns the request for the turn that would begin by itself in a session that has had none, for a stop that
// has to name a turn.
func (s *State) firstTurn() events.TurnRequested {
	f := events.TurnRequested{Turn: events.DeriveID("turn", s.Session, "stopped", fmt.Sprint(s.Seq)),
		Cause: events.CauseMessage}
	if len(s.Queue) > 0 {
		f.Message = s.Queue[0].ID
	}
	return s.Naming(f)
}

// begins reports whether a turn would begin by itself although a person's stop is not confirmed: for an act that is
// newer than the stop.
func (s *State) begins() bool { return s.Pending.Turn != nil || s.RetryPlanned() || s.follows() }

// follows reports whether a turn could be requested for what waits, and no stop holds that: when the conversation has
// been compacted, for a decision, or for a queued message. A message that waits since a failure is one of these: it
// begins when the agent has completed a turn of its own.
func (s *State) follows() bool {
	queued := len(s.Queue) > 0 && (s.QueueMoves() || s.Queue[len(s.Queue)-1].Seq > s.StoppedSeq)
	return s.afterCompaction() || s.decisionWaits() || queued
}

// afterCompaction reports whether a turn continues by itself when the open compaction, or the last one, is over.
func (s *State) afterCompaction() bool {
	c, t := s.Compaction, s.LastTurn
	switch {
	case s.Turn != nil:
		// a stop of that turn ends what follows
		return false
	case !s.CompactionOpen():
		return s.FollowUp() != ""
	}
	return c.FollowUp == events.FollowContinue && t != nil && t.ID == c.Turn && t.Outcome != OutcomeCompleted &&
		t.Actor != events.ActorPerson
}

// Close decides on the end of a session.
func (s *State) Close(w request.Close) (Decision, error) {
	if err := s.found(); err != nil {
		return Decision{}, err
	}
	if s.Closed != nil {
		return Decision{Seq: s.Closed.Seq}, nil
	}
	reason := orElse(w.Reason, "finished")
	if !slices.Contains([]string{"finished", "archived", "deleted"}, reason) {
		return Decision{}, &events.Refusal{Code: http.StatusBadRequest, Field: "reason",
			Message: fmt.Sprintf("reason %q: want finished, archived or deleted", reason)}
	}
	return Decision{Facts: []events.Fact{events.SessionClosed{Reason: reason, By: w.By}}}, nil
}

// Configure decides on a change of policy.
func (s *State) Configure(w request.Configure) (Decision, error) {
	if err := w.Policy.Validate(); err != nil {
		return Decision{}, events.BadRequest(err)
	}
	if err := s.Changeable(); err != nil {
		return Decision{}, err
	}
	if w.Policy == nil && !w.ProviderChanged {
		return Decision{}, &events.Refusal{Code: http.StatusBadRequest, Field: "policy",
			Message: "nothing to change: give a policy, or provider_changed"}
	}
	return Decision{Facts: []events.Fact{events.SessionConfigured{Policy: w.Policy, ProviderChanged: w.ProviderChanged,
		By: w.By}}}, nil
}

// Deadlines is the next instant at which an awaiting prompt expires, zero for none.
func (s *State) Deadlines(steps events.Steps) time.Time {
	var next time.Time
	for _, p := range s.Prompts {
		if !p.Awaits() || p.Deadline == nil {
			continue
		}
		if at := p.Due(steps); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
