package opencode

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// rejectedText is what the error of a call begins with whose permission was rejected.
const rejectedText = "The user rejected permission"

// callEnd is how a call ended in OpenCode: which decision its agent has.
type callEnd struct {
	session string
	call    string
	state   toolState
	replies map[string]string // by prompt: what OpenCode has replied to a permission of the call, as far as it was seen
}

// ends returns the ends of calls since the last call of ends, also those that are no news to the log.
func (t *Translator) ends() []callEnd {
	all := t.ended
	t.ended = nil
	return all
}

// endsCall records the end of a call of a living server.
func (t *Translator) endsCall(s *session, c *call, p *part) {
	if !t.live || p.State.Status != partCompleted && p.State.Status != partError {
		return
	}
	replies := map[string]string{}
	for _, q := range s.prompts {
		if q.call == c && q.reply != "" {
			replies[q.id] = q.reply
		}
	}
	t.ended = append(t.ended, callEnd{session: s.id, call: c.id, state: p.State, replies: replies})
}

// lacks reports whether the end of a call shows that its agent does not have a decision about a prompt, but another one
// or none. It is false where the end does not tell. final: nothing takes the place of an error. It is false if a
// turn brings the decision, and puts it there.
func (e *callEnd) lacks(prompt string, permission, final bool, a harness.Answer) bool {
	st := &e.state
	answered := a.Status == fold.Answered
	switch {
	case !permission && st.Status == partCompleted:
		asked := askedBy(st.Input)
		known := len(asked) > 0 || !answered
		return st.Metadata.Answers != nil && (!answered && correction(a) == "" ||
			known && !sameLabels(labelsOf(asked, asked, a), st.Metadata.Answers))
	case !permission:
		return final && (answered || !strings.Contains(st.Error, correction(a)))
	case st.Status == partCompleted:
		return permissionReply(a)["reply"] == replyReject
	case !final:
		return false
	case permissionReply(a)["reply"] != replyReject:
		return e.replies[prompt] == replyReject
	}
	_, feedback, _ := strings.Cut(st.Error, feedbackMark)
	return a.Text != "" && strings.HasPrefix(st.Error, rejectedText) &&
		strings.TrimSpace(feedback) != strings.TrimSpace(a.Text)
}

// sameLabels reports whether two lists of answers are the same. A question without an answer was skipped.
func sameLabels(one, other [][]string) bool {
	for i := range max(len(one), len(other)) {
		var a, b []string
		if i < len(one) {
			a = one[i]
		}
		if i < len(other) {
			b = other[i]
		}
		if !slices.Equal(a, b) {
			return false
		}
	}
	return true
}

// decidedByPerson reports whether a status is that of a decision that is brought to OpenCode.
func decidedByPerson(s fold.Status) bool {
	return s == fold.Answered || s == fold.Rejected || s == fold.Dismissed
}

// refuseUnmet refuses the decisions in the log that OpenCode's agent does not have, as the end of their call shows. The
// end of the call in the log is the receipt, so this comes first. A prompt of the call that still waits is withdrawn
// before: no decision about it can come between. The caller has the lock.
func (r *follower) refuseUnmet(ctx context.Context, s *harness.Session, e *callEnd) error {
	st := s.State()
	open := st.Tools[e.call] != nil
	var left []events.Fact
	for id, p := range st.Prompts {
		if open && p.Call == e.call && p.Status == fold.Awaiting {
			left = append(left, events.PromptWithdrawn{Prompt: id, Reason: events.ReasonCallEnded})
		}
	}
	if len(left) > 0 {
		if err := s.Relay(ctx, left...); err != nil {
			return err
		}
		st = s.State()
	}
	for _, id := range decisionsOf(st, e.call) {
		_, permission := askedFor(st, id)
		a, ok := r.decision(ctx, s, id)
		if !ok || !e.lacks(id, permission, open || r.process.ownRun(s.ID(), st), a) {
			continue
		}
		r.log.Warn("OpenCode has another decision", "session", s.ID(), "prompt", id)
		if err := s.Relay(ctx, events.PromptDelivered{Prompt: id, Refused: reasonLate}); err != nil {
			return err
		}
	}
	return nil
}

// ownRun reports whether the open turn is a run of OpenCode to which no handler brings its decisions.
func (l *process) ownRun(session string, st *fold.State) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return st.Turn != nil && (!isRequested(st.Turn) || l.undecided[session] == st.Turn.ID)
}

// decisionsOf returns the prompts of a call with a decision of a person of which the log has no receipt: those of the
// open call, and those that the open turn was given.
func decisionsOf(st *fold.State, call string) (prompts []string) {
	for id, p := range st.Prompts {
		if p.Call == call && decidedByPerson(p.Status) {
			prompts = append(prompts, id)
		}
	}
	if st.Turn != nil {
		for _, c := range st.Turn.Prompts {
			if of, _ := askedFor(st, c.Prompt); of == call && c.Had == 0 && st.Prompts[c.Prompt] == nil {
				prompts = append(prompts, c.Prompt)
			}
		}
	}
	slices.Sort(prompts)
	return prompts
}

// settledInServer stores what became of a decision about a prompt that the server has settled, if the prompt has no
// call whose end would say it: the receipt, or that its agent has another decision. A fact about the end of the turn
// comes after it. The caller has the lock.
func (r *follower) settledInServer(ctx context.Context, s *harness.Session, f events.Fact) error {
	id := settledPrompt(f)
	delivered := events.PromptDelivered{Prompt: id}
	if _, unseen := f.(events.PromptWithdrawn); unseen {
		r.process.mu.Lock()
		w := r.process.asked[id]
		sent := w != nil && w.decided
		r.process.mu.Unlock()
		if !sent {
			// the server will not find the prompt
			return nil
		}
		return s.Relay(ctx, delivered)
	}
	a, ok := r.decision(ctx, s, id)
	if !ok {
		return nil
	}
	if !r.translator.sessions[s.ID()].prompts[id].isSettledAs(a) {
		r.log.Warn("OpenCode has another decision", "session", s.ID(), "prompt", id)
		delivered.Refused = reasonLate
	}
	return s.Relay(ctx, delivered)
}

// isSettledAs reports whether the server has settled a prompt as a person has decided.
func (p *prompt) isSettledAs(a harness.Answer) bool {
	switch want := permissionReply(a); {
	case p.kind == events.PromptPermission && p.reply == replyReject:
		return want["reply"] == replyReject && (p.feedback == "" || p.feedback == want["message"])
	case p.kind == events.PromptPermission:
		return want["reply"] != replyReject
	case p.reply == replyReject:
		return a.Status != fold.Answered && correction(a) == ""
	}
	return (a.Status == fold.Answered || correction(a) != "") &&
		sameLabels(labelsOf(p.questions, p.questions, a), p.labels)
}

// hasDecision reports whether the log has a decision of a person about a prompt without a call, and no receipt.
func hasDecision(st *fold.State, prompt string) bool {
	p := st.Prompts[prompt]
	return p != nil && p.Call == "" && decidedByPerson(p.Status)
}

// settledPrompt returns the prompt that a fact settles, "" for other facts.
func settledPrompt(f events.Fact) string {
	switch f := f.(type) {
	case events.PromptAnswered:
		return f.Prompt
	case events.PromptRejected:
		return f.Prompt
	case events.PromptWithdrawn:
		return f.Prompt
	}
	return ""
}

// decision returns what a person has decided about a prompt. It gives no receipt.
func (r *follower) decision(ctx context.Context, s *harness.Session, prompt string) (a harness.Answer, ok bool) {
	l := r.process
	l.mu.Lock()
	w := l.asked[prompt]
	waits := w != nil && w.known != nil
	if !waits {
		w = &asking{session: s.ID(), cancel: func() {}, known: make(chan struct{}), decided: true}
		l.asked[prompt] = w
	}
	l.mu.Unlock()
	if !waits {
		p := harness.Prompt{ID: prompt}
		// no end of a call is the receipt
		if hasDecision(s.State(), prompt) {
			p.Bring = func(_ context.Context, a harness.Answer) error {
				w.learn(a)
				return errOwed
			}
		}
		a, err := s.Ask(ctx, p)
		if err != nil && !errors.Is(err, errOwed) {
			r.log.Warn("no decision", "session", s.ID(), "prompt", prompt, "err", err)
		}
		w.learn(a)
	}
	select {
	case <-w.known:
		return w.answer, w.answer.Status != ""
	case <-ctx.Done():
		return a, false
	}
}

// relay stores facts as they come. Before the end of a call, the decisions are refused that its agent does not have.
// Before the end of a prompt without a call comes what became of a decision in the log.
func (r *follower) relay(ctx context.Context, s *harness.Session, facts []events.Fact, ends []callEnd) error {
	from := 0
	facts = stopsOf(s.State(), facts)
	for i, f := range facts {
		var first func() error
		call := endedCall(f)
		at := slices.IndexFunc(ends, func(e callEnd) bool { return e.session == s.ID() && e.call == call })
		switch {
		case call != "" && at >= 0 && hasPrompts(s.State(), call):
			first = func() error { return r.refuseUnmet(ctx, s, &ends[at]) }
		case hasDecision(s.State(), settledPrompt(f)):
			first = func() error { return r.settledInServer(ctx, s, f) }
		default:
			continue
		}
		if i > from {
			if err := s.Relay(ctx, facts[from:i]...); err != nil {
				return err
			}
			from = i
		}
		if err := first(); err != nil {
			return err
		}
	}
	return s.Relay(ctx, facts[from:]...)
}

// stopsOf names who stopped a turn: not a person, if OpenCode ended the run because a service had asked for its stop.
// After a person's stop nothing continues.
func stopsOf(st *fold.State, facts []events.Fact) []events.Fact {
	asked := st.Pending.Stop
	if asked == nil || asked.Actor == events.ActorPerson {
		return facts
	}
	facts = slices.Clone(facts)
	for i, f := range facts {
		if stopped, ok := f.(events.TurnStopped); ok && asked.Of(stopped.Turn) {
			stopped.Actor, stopped.Reason = asked.Actor, asked.Reason
			facts[i] = stopped
		}
	}
	return facts
}

// hasPrompts reports whether a call has a prompt that waits for a decision or a receipt.
func hasPrompts(st *fold.State, call string) bool {
	for _, p := range st.Prompts {
		if p.Call == call {
			return true
		}
	}
	return len(decisionsOf(st, call)) > 0
}

// inSteps reports whether the end of a call is a fact of the steps.
func inSteps(steps []Step, e *callEnd) bool {
	return slices.ContainsFunc(steps, func(step Step) bool {
		return step.Session == e.session &&
			slices.ContainsFunc(step.Facts, func(f events.Fact) bool { return endedCall(f) == e.call })
	})
}

// endedCall returns the call that a fact ends, "" for other facts.
func endedCall(f events.Fact) string {
	switch f := f.(type) {
	case events.ToolCompleted:
		return f.Call
	case events.ToolFailed:
		return f.Call
	}
	return ""
}

// refuseOther refuses the decisions of a turn that OpenCode's agent does not have, as the messages of its session show:
// the call has another result. A person has decided in OpenCode before the turn looked. left: the call of one decision
// has no result, or is not found.
func (r *follower) refuseOther(l *process, t *harness.Turn, messages []openMessage) (left bool) {
	s, w := t.Session(), t.Request()
	st := s.State()
	for i := range w.Prompts {
		p := &w.Prompts[i]
		call, permission := r.callOf(s.ID(), st, p.Prompt)
		e := endOf(messages, p, call, permission)
		if e == nil || !decidedByPerson(p.Status) {
			left = true
			continue
		}
		a := harness.Answer{Status: p.Status, Answers: p.Answers, Text: p.Text}
		if e.lacks(p.Prompt, permission, false, a) || permission && e.failedOtherwise(a) {
			// the log of the bridge says so
			_ = r.refuseLate(l, s, p.Prompt)
		}
	}
	return left
}

// failedOtherwise reports whether a call that failed by itself shows that its agent had another decision about its
// permission: it was rejected, or it ran.
func (e *callEnd) failedOtherwise(a harness.Answer) bool {
	permitted := permissionReply(a)["reply"] != replyReject
	return e.state.Status == partError && permitted == strings.HasPrefix(e.state.Error, rejectedText)
}

// endOf returns how the call that waited for a prompt ended, nil if it has no result in the messages.
func endOf(messages []openMessage, p *fold.TurnPrompt, call string, permission bool) *callEnd {
	for i := range messages {
		for k := range messages[i].parts {
			c := &messages[i].parts[k]
			if call != "" && c.ended(permission) && waitedFor(c, p, call) {
				return &callEnd{state: c.State}
			}
		}
	}
	return nil
}

// callOf returns the call that waited for a prompt, "" if it is not known, and whether the prompt was a permission. st
// is what the log has of the session.
func (r *follower) callOf(session string, st *fold.State, prompt string) (call string, permission bool) {
	r.mu.Lock()
	call, permission = r.translator.asked(session, prompt)
	r.mu.Unlock()
	if call == "" {
		// an earlier bridge saw it
		return askedFor(st, prompt)
	}
	return call, permission
}
