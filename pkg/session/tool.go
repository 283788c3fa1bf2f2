package session

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/codec"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func (f *fold) applyTool() (why string, ok bool) {
	switch fact := f.e.Fact.(type) {
	case events.ToolStarted:
		return f.toolStarted(fact), true
	case events.ToolCompleted:
		return f.toolEnds(fact.Call, OutcomeCompleted, ""), true
	case events.ToolFailed:
		return f.toolEnds(fact.Call, OutcomeFailed, orElse(fact.Error.Text, fact.Error.Kind)), true
	case events.ToolInterrupted:
		return f.toolEnds(fact.Call, OutcomeInterrupted, fact.Reason), true
	}
	return "", false
}

// toolStarted opens a call, adopts it under a newer epoch, or brings a newer title.
func (f *fold) toolStarted(fact events.ToolStarted) string {
	if c := f.Tools[fact.Call]; c != nil {
		if len(f.Tools) <= longTitlesMax {
			c.Title = cut(orElse(fact.Title, c.Title), TitleBytesMax)
		}
		f.adoptCall(fact.Call)
		return ""
	}
	switch {
	case f.ended(EntityTool, fact.Call) != nil:
		return WhyClosedID
	case f.turnIsOver(fact.Turn):
		return WhyTurnEnded
	case len(f.Tools) >= OpenCallsMax || !f.room(callBytes+holdBytes+holdTexts*jsonBytes(fact.Call), fact.Call,
		fact.Turn, cut(fact.Name, NameBytesMax), cut(fact.Title, TitleBytesMax)):
		return WhyLimit
	}
	if f.Tools == nil {
		f.Tools = map[string]*Tool{}
	}
	name, title := NameBytesMax, TitleBytesMax
	if len(f.Tools) >= longTitlesMax {
		name, title = shortBytesMax, shortBytesMax
	}
	f.Tools[fact.Call] = &Tool{Name: cut(fact.Name, name), Title: cut(fact.Title, title), Turn: f.openTurn(fact.Turn),
		Since: f.c.At, Epoch: f.Epoch, Background: fact.Background}
	for _, p := range f.Prompts {
		f.link(p)
	}
	return ""
}

// turnIsOver: what a harness says of a turn that has ended no longer opens anything.
func (s *State) turnIsOver(turn string) bool {
	return turn != "" && (s.Turn == nil || s.Turn.ID != turn) && s.turnEnded(turn)
}

// openTurn is the turn if it is the open one; what names an unknown turn is opened without one.
func (s *State) openTurn(turn string) string {
	if s.Turn != nil && s.Turn.ID == turn {
		return turn
	}
	return ""
}

// adoptCall: the newer epoch answers for the call from now on, so it is no longer held for a child.
func (f *fold) adoptCall(call string) {
	if c := f.Tools[call]; c != nil {
		c.Epoch = f.Epoch
		f.unhold(call)
		for _, p := range f.Prompts {
			if p.Call == call && !p.Awaits() {
				// the process that has the call takes the decision in
				p.Epoch = f.Epoch
			}
		}
	}
}

func (f *fold) unhold(call string) {
	f.WaitsFor = slices.DeleteFunc(f.WaitsFor, func(w events.WaitFor) bool { return w.Call == call })
}

// toolEnds closes a call that a fact says has ended: its awaiting prompt is withdrawn, its settled one delivered. If a
// service ends the call, a decision of a person stays owed unless the open turn carries it on.
func (f *fold) toolEnds(call, outcome, reason string) string {
	c := f.Tools[call]
	switch {
	case c == nil && f.ended(EntityTool, call) != nil:
		return WhyClosedID
	case c == nil:
		return WhyUnknown
	}
	f.closeCall(call, outcome, reason)
	had := false
	for _, id := range sortedKeys(f.Prompts) {
		if p := f.Prompts[id]; p.Call == call {
			settled := !p.Awaits()
			f.withdraw(id, events.ReasonCallEnded)
			if p.Status.byPerson() && f.c.Writer != events.WriterHarness && !f.carriedOn(id) {
				// it is in the log as a result, and does not become a message
				p.Delivery = events.DeliverToolResult
				continue
			}
			if p.Status.byPerson() && f.c.Writer != events.WriterHarness {
				f.Turn.DecidedSeq = p.SettledSeq
			}
			f.deliver(id, f.c.At)
			if f.c.Writer == events.WriterHarness {
				// the harness has ended the call with it
				f.notCarried(id)
				had = had || settled
			}
		}
	}
	if had {
		f.dropNeedless()
	}
	if t := f.Turn; t != nil && f.c.Writer == events.WriterHarness {
		for _, c := range t.Prompts {
			if e := f.ended(EntityPrompt, c.Prompt); e != nil && e.Call == call {
				// likewise; there was a receipt before
				f.notCarried(c.Prompt)
			}
		}
	}
	return ""
}

// carriedOn reports whether the next attempt of the open turn names a decision: the turn carries it, and has no owner
// that may complete it without the decision.
func (f *fold) carriedOn(prompt string) bool {
	_, carried := f.Carries(prompt)
	return carried && !f.Runs(f.Turn.ID)
}

// endCallContained closes a call because what it belonged to has ended. It delivers nothing; its prompts are the
// caller's.
func (f *fold) endCallContained(call, outcome, reason string) {
	f.closeCall(call, outcome, reason)
	f.derive(events.ToolFailed{Call: call, Error: events.Failure{Kind: outcome}, Synthetic: true})
}

func (f *fold) closeCall(call, outcome, reason string) {
	f.end(Ending{Entity: EntityTool, ID: call, Name: f.Tools[call].Name, Outcome: outcome, Reason: reason})
	delete(f.Tools, call)
	f.unhold(call)
}

func toolFields(c *codec.Codec, t *Tool) {
	codec.Text(c, `{"name":`, &t.Name)
	codec.Some(c, `,"title":`, &t.Title)
	codec.Some(c, `,"turn":`, &t.Turn)
	codec.Time(c, `,"since":`, &t.Since)
	codec.Number(c, `,"epoch":`, &t.Epoch)
	codec.Flag(c, `,"background":`, &t.Background)
	c.Mark(`}`)
}
