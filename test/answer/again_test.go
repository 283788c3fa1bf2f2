package answer_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// claimsAgain makes a process that has lost its lease claim its session under its next incarnation. It adopts what it
// had, repeats the receipts of the open turn, and says that its Asks wait for decisions. Some of them return at once.
func (w *world) claimsAgain() {
	st, was := w.st, w.st.Epoch
	if !w.alive() {
		return
	}
	w.inc++
	facts := []events.Fact{events.SessionClaimed{Incarnation: strconv.Itoa(w.inc), Exclusive: new(true)}}
	var repeated []string
	if t := st.Turn; t != nil && t.Epoch == was {
		facts = append(facts, events.TurnStarted{Turn: t.ID, Cause: t.Cause, Synthetic: t.Synthetic, OfTurn: t.OfTurn,
			Message: t.Message})
		for _, c := range t.Prompts {
			if c.Had == was {
				repeated = append(repeated, c.Prompt)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(st.Tools)) {
		if c := st.Tools[id]; c.Epoch == was {
			facts = append(facts, events.ToolStarted{Call: id, Turn: c.Turn, Name: c.Name, Background: c.Background})
		}
	}
	var attended []string
	for _, id := range slices.Sorted(maps.Keys(st.Prompts)) {
		switch p := st.Prompts[id]; {
		case p.Epoch != was:
		case p.Status == session.Awaiting:
			facts = append(facts, w.repeated(id))
			if w.absent[id] {
				facts = append(facts, events.PromptUnattended{Prompt: id})
			}
		case !w.absent[id] && (p.Turn == "" || st.Tools[p.Call] != nil || w.runs != nil && p.Turn == w.runs.id):
			attended = append(attended, id)
			facts = append(facts, events.PromptAttended{Prompt: id})
		}
	}
	if c := st.Compaction; c != nil && c.State == session.CompactionRunning && c.Epoch == was {
		facts = slices.Insert(facts, 1, events.Fact(events.CompactionStarted{Compaction: c.ID}))
	}
	runs := w.runs
	for _, id := range repeated {
		facts = append(facts, events.PromptDelivered{Prompt: id})
		w.had[id] = was + 1
		w.afterClaim++
	}
	w.process(facts...)
	if runs != nil && w.st.Turn != nil && w.st.Turn.ID == runs.id {
		w.runs = runs
	}
	for _, id := range attended {
		w.waited++
		if w.st.Prompts[id] != nil && w.chance(2) {
			w.receives(id)
		}
	}
}

// keepsView remembers the work that a client sees, for [world.takesOld].
func (w *world) keepsView() {
	p := w.st.Pending.Turn
	if p == nil {
		return
	}
	if n := len(w.views); n > 0 && w.views[n-1].Turn == p.ID && len(w.views[n-1].Prompts) == len(p.Prompts) {
		return
	}
	work, err := w.st.WorkWhole(w.source)
	if err != nil || work.Turn == nil {
		w.fail("work: %v", err)
		return
	}
	w.views = append(w.views, work.Turn)
}

// takesOld makes the living process take a turn as an old view has it: under the id of that view, and with the prompts
// that it names. Its message is taken if it still waits.
func (w *world) takesOld() {
	if n := len(w.views); !w.alive() || w.st.Turn != nil || n == 0 {
		return
	}
	r := w.views[w.rng.IntN(len(w.views))]
	p := w.st.Pending.Turn
	if len(r.Prompts) == 0 || p != nil && p.ID == r.Turn && len(p.Prompts) == len(r.Prompts) || w.ended[r.Turn] != "" {
		return
	}
	f := events.TurnStarted{Turn: r.Turn, Cause: r.Cause, Synthetic: true, OfTurn: r.OfTurn, Prompt: r.Prompt}
	waits := slices.ContainsFunc(w.st.Queue, func(m session.Message) bool { return m.ID == r.Message })
	if waits && !strings.HasPrefix(r.Message, "answer-") {
		f.Message = r.Message
	}
	context := map[string]bool{}
	for _, c := range r.Prompts {
		f.Prompts = append(f.Prompts, c.Prompt)
		// unless the answer was taken back, or waits as a message, which another turn takes
		if w.settled[c.Prompt] && w.st.QueuedAnswer(c.Prompt) == "" {
			context[c.Prompt] = true
		}
	}
	w.oldViews++
	w.fromOld[r.Turn] = true
	w.process(f)
	if w.st.Turn == nil || w.st.Turn.ID != r.Turn {
		return
	}
	// it has read the log, and names what an agent has had once more
	for _, c := range w.st.Turn.Prompts {
		context[c.Prompt] = true
		// if this turn ends without completing, another one follows what the agent began
		if w.owed[c.Prompt] == 0 {
			w.itsOwn[c.Prompt] = true
		}
		delete(w.reached, c.Prompt)
		w.named[c.Prompt] = true
	}
	w.runs = &turn{id: r.Turn, context: context}
}

// startsChild makes the running turn call another agent, whose session is this session's child.
func (w *world) startsChild() {
	if !w.alive() || w.runs == nil || len(w.kids) >= kidsMax {
		return
	}
	k := &kid{ref: events.Ref{Harness: ref.Harness, Session: w.id("k")}, call: w.id("c"), w: w}
	k.st = session.New(k.ref)
	w.process(events.ToolStarted{Call: k.call, Turn: w.runs.id, Name: "task"})
	if w.st.Tools[k.call] == nil {
		return
	}
	k.owner(events.SessionOpened{Incarnation: strconv.Itoa(w.inc), Exclusive: new(true), Parent: ref.Session,
		Root: ref.Session, ParentCall: k.call}, events.TurnStarted{Turn: w.id("t"), Cause: events.CauseMessage,
		Message: w.id("m")})
	if w.chance(2) {
		k.owner(events.PromptRequested{Prompt: w.id("p"), Turn: k.st.Turn.ID, PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
	}
	w.kids = append(w.kids, k)
}

// movesChild makes one child do what is next.
func (w *world) movesChild() {
	if len(w.kids) > 0 {
		w.kids[w.rng.IntN(len(w.kids))].moves()
	}
}

// output is what the asker of a child answers with.
var output = json.RawMessage(`"done"`)

// endsChildCall ends the call of a child that has settled, if the process that waits for the child lives.
func (w *world) endsChildCall() {
	for _, k := range w.kids {
		if c := w.st.Tools[k.call]; w.alive() && c != nil && c.Epoch == w.st.Epoch && k.settled() {
			w.process(events.ToolCompleted{Call: k.call, Output: output})
			return
		}
	}
}
