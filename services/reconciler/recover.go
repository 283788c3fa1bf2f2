package reconciler

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// recover closes, keeps or continues each item that was left behind, by kind.
func (d *draft) recover() error {
	for _, id := range sortedKeys(d.Prompts) {
		p := d.Prompts[id]
		switch {
		case !p.Awaits() || p.OnOwnerLoss != events.LossExpire || d.Owns(p.Epoch):
		case d.reason() == events.ReasonShutdown:
			d.Add(events.PromptWithdrawn{Prompt: id, Reason: events.ReasonShutdown})
		default:
			d.Add(events.PromptExpired{Prompt: id, Reason: events.ReasonOwnerLost})
		}
	}
	for _, id := range sortedKeys(d.Prompts) {
		if p := d.Prompts[id]; p != nil && !p.Awaits() && !d.Owns(p.Epoch) {
			if err := d.settle(id, p); err != nil {
				return err
			}
		}
	}
	d.closeCalls()
	if c := d.Compaction; c.Running() && !d.Owns(c.Epoch) {
		d.Add(events.CompactionFailed{Compaction: c.ID,
			Error: events.Failure{Kind: d.reason(), Text: "the harness that compacted is gone"}})
	}
	d.continueDecided()
	d.endTurn()
	// a call of another turn may have waited for a prompt that went with this one
	d.closeCalls()
	if f, ok := d.Owed(); ok {
		d.Add(f)
	}
	return nil
}

func (d *draft) closeCalls() {
	for _, id := range sortedKeys(d.Tools) {
		if c := d.Tools[id]; c != nil && !d.Owns(c.Epoch) {
			d.closeCall(id, c)
		}
	}
	d.Flush()
}

// settle delivers a decision whose asker died before it read it: the decision becomes the call's output, and the
// conversation continues. A turn with a pending stop does not continue.
func (d *draft) settle(id string, p *session.Prompt) error {
	switch c := d.Tools[p.Call]; {
	case c == nil && !d.awaited(id, p):
		// it travels with the next turn
		return nil
	case c != nil && d.Owns(c.Epoch):
		// the process that adopted the call is responsible
		return nil
	}
	var asked []events.Question
	var answers []events.Answer
	text := p.Reason
	// the log has the text
	if p.Status == session.Answered || p.Status == session.Rejected && text == "" {
		b, err := d.Blocker(id, d.src)
		if err != nil {
			return err
		}
		asked, answers, text = b.Questions, b.Answers, b.Reason
	}
	// else the turn would bring the answer, and its message would bring it once more
	message := d.QueuedAnswer(id)
	for _, f := range d.Settlement(id, p.Status, asked, answers, text) {
		if _, next := f.(events.TurnRequested); next || !events.Lookup(f.Kind()).May(events.WriterReconciler) {
			// the continuation is decided after all facts
			continue
		}
		if m, ok := f.(events.MessageAccepted); ok {
			message = m.Message
		}
		d.Add(f)
	}
	if d.Runs(p.Turn) || p.SettledSeq <= d.waitsSince(p.Turn) || !d.Continues(p, p.Status) {
		// its owner continues without a request, or the decision waits for a person, or it calls for no turn
		return nil
	}
	next := d.Continue(id, d.Continued(p.Turn), message)
	if p.Status == session.Superseded && slices.ContainsFunc(d.Queue, func(m session.Message) bool {
		return m.ID == p.Reason
	}) {
		// the message that superseded the question gets its turn (P14)
		next.Cause, next.Message = events.CauseMessage, p.Reason
	}
	if next.Cause == events.CauseAnswer && d.Continuations.Count >= session.ContinuationsMax {
		// the decision waits for a person, as [session.State.Owed] has it
		return nil
	}
	d.nextTurns = append(d.nextTurns, next)
	return nil
}

// waitsSince returns the place in the log up to which decisions about prompts of a turn wait for a person: that of a
// person's stop and, unless the turn is open, of a failure that is not retried, or of a decision from before decisions
// called for turns.
func (d *draft) waitsSince(turn string) uint64 {
	if d.Turn != nil && d.Turn.ID == turn {
		return d.StoppedSeq
	}
	return max(d.StoppedSeq, d.HeldSeq, d.QuietSeq)
}

// continueDecided continues the open turn that was left behind after a decision that ended one of its calls: something
// else, such as a child, delayed the turn when the person decided. A resume of the turn takes its place. A decision
// from before a person's stop, and a dismissal after one, continue nothing.
func (d *draft) continueDecided() {
	t := d.Turn
	of := func(f events.TurnRequested) bool { return f.OfTurn == t.ID }
	if !d.leftTurn() || slices.ContainsFunc(d.nextTurns, of) {
		return
	}
	for _, c := range t.Prompts {
		if c.Seq == t.DecidedSeq && c.Seq > d.StoppedSeq && d.Continues(&session.Prompt{Turn: t.ID}, c.Status) {
			d.nextTurns = append(d.nextTurns, d.Continue(c.Prompt, t.ID, ""))
			return
		}
	}
}

// awaited reports whether a settled prompt without a call is what the open turn waited for, or the conversation outside
// of a turn of a dead owner: the owner died only now, or nothing followed the decision. An older decision is not
// considered again: a person may have stopped its continuation, which is then the last turn. A decision before a
// person's stop waits for that person.
func (d *draft) awaited(id string, p *session.Prompt) bool {
	if p.Turn != "" {
		return d.Turn != nil && d.Turn.ID == p.Turn
	}
	if l := d.LastTurn; l != nil && slices.ContainsFunc(l.Prompts, func(c session.Carried) bool {
		return c.Prompt == id
	}) {
		// a turn has had it: retry decides about another attempt
		return false
	}
	if d.Turn != nil || p.SettledSeq <= d.HeldSeq {
		return false
	}
	newest := p.Status != session.Superseded && (d.LastTurn == nil || d.LastTurn.Seq < p.SettledSeq)
	return len(d.Facts) > 0 || !d.Owned && newest
}

// closeCall ends a call that was left behind, unless it waits for a person or for a child.
func (d *draft) closeCall(id string, c *session.Tool) {
	stopping := d.stopping(c.Turn)
	switch {
	case d.awaitsPerson(func(p *session.Prompt) bool { return p.Call == id }):
		// with a pending stop it ends with its turn
		return
	case !stopping && d.held(id):
		return
	}
	kids := childrenOf(d.in.Children, id)
	if stopping || len(kids) == 0 && !d.waited(id) {
		d.PutOff(events.ToolInterrupted{Call: id, Reason: d.reason(), Outcome: events.OutcomeUnknown})
		return
	}
	result, whole := d.becameOf(id, kids)
	d.Add(result)
	p, stop := d.Policy, d.Pending.Stop
	if stop.Of(c.Turn) && stop.Actor == events.ActorPerson {
		// the process that owes the receipt of the stop ends the turn
		return
	}
	if whole && d.Turn != nil && d.Turn.ID == c.Turn && !d.Runs(c.Turn) && p.Resume == events.ResumeAuto &&
		d.Retry.Resumes < p.ResumeMax {
		next := d.Continue("", c.Turn, "")
		next.Cause = events.CauseResume
		d.nextTurns = append(d.nextTurns, next)
	}
}

func (d *draft) awaitsPerson(which func(*session.Prompt) bool) bool {
	for _, p := range d.Prompts {
		if p.Awaits() && which(p) {
			return true
		}
	}
	return false
}

// endTurn ends the open turn if it was left behind and nothing keeps it: a person, a child, or a continuation.
func (d *draft) endTurn() {
	t := d.Turn
	switch {
	case !d.leftTurn():
		d.continueOnce("")
	case d.stopping(t.ID):
		d.Add(events.TurnStopped{Turn: t.ID, Actor: d.Pending.Stop.Actor, Reason: d.Pending.Stop.Reason})
	case d.keeps(t.ID):
		d.continueOnce(t.ID)
	case !d.continueOnce(t.ID):
		d.Add(events.TurnInterrupted{Turn: t.ID, Reason: d.reason()})
	}
}

// keeps reports whether something in a turn still waits or runs. A question of a call in the background that the owner
// has does not keep the turn: its answer goes to that call.
func (d *draft) keeps(turn string) bool {
	if d.awaitsPerson(func(p *session.Prompt) bool {
		c := d.Tools[p.Call]
		return p.Turn == turn && (c == nil || !c.Background || !d.Owns(c.Epoch))
	}) {
		return true
	}
	for _, c := range d.Tools {
		// calls that are open now were kept; a background call outlives its turn
		if c.Turn == turn && !c.Background {
			return true
		}
	}
	return false
}

// continueOnce requests the one continuation that is needed and reports whether the turn has one now. A turn that a
// person requested meanwhile is kept; the continuation waits while the turn waits for a person or a child.
func (d *draft) continueOnce(turn string) bool {
	if p := d.Pending.Turn; p != nil {
		return turn != "" && p.OfTurn == turn
	}
	var best *events.TurnRequested
	for i := range d.nextTurns {
		f := &d.nextTurns[i]
		if turn != "" && f.OfTurn != turn || f.Cause == events.CauseAnswer && d.Displaces(f.OfTurn) {
			// the decision stays owed
			continue
		}
		if best == nil || rank(f.Cause) > rank(best.Cause) {
			best = f
		}
	}
	if best == nil || d.BlockedBy() != "" || d.holds(best.OfTurn) {
		return false
	}
	// decisions since then are named, too
	d.Add(d.Naming(*best))
	return true
}

// rank orders continuations: a person's message last, then a person's answer.
func rank(c events.Cause) int {
	return slices.Index([]events.Cause{events.CauseResume, events.CauseAnswer, events.CauseMessage}, c)
}
