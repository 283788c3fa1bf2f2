package reconciler

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// source is the source of facts that are folded before they are appended.
const source = "/service/" + Name

// factsMore is how many facts a decision usually has beside those for the open items: the orphaning, and the end of the
// turn.
const factsMore = 2

// Input is what a decision depends on beside the session.
type Input struct {
	Now      time.Time        // by the broker's clock
	Steps    events.Steps     // of the broker's clock
	Owner    Owner            // of the session; ignored for a session without one
	Children []*session.State // the sessions whose parent this one is, after their own recovery
}

// Decision is what the reconciler has to do about a session now.
type Decision struct {
	Facts   []events.Fact // to append, in this order
	CheckAt time.Time     // when to decide again; zero: at the next change
	// the session after the facts, at its present place in the log; without facts, the session itself
	After *session.State
}

// Decide returns what recovery and deadlines require of a session. After its facts are appended, Decide returns nothing
// until CheckAt. It changes neither the session nor its children. An error means that a commit which the session refers
// to could not be read: then nothing is decided.
//
//	closed, or never opened     nothing
//	owned, owner alive          deadlines, open items of earlier epochs, and decisions that nothing else delivers
//	owned, owner starting       deadlines: the owner may still adopt open items of earlier epochs
//	owned, owner dead           session.orphaned, then everything
//	without an owner            everything
func Decide(s *session.State, in Input, src session.Source) (Decision, error) {
	if !s.Open() {
		return Decision{After: s}, nil
	}
	d := newDraft(s, in, src)
	d.Facts = make([]events.Fact, 0, len(s.Tools)+len(s.Prompts)+factsMore)
	dead := s.Owned && in.Owner.Liveness == Dead
	if dead || !s.Owned {
		d.fence(dead)
	}
	d.expireOverdue()
	if d.Owned {
		d.CheckAt(in.Owner.CheckAt)
	}
	if !d.Owned || in.Owner.Liveness == Alive {
		if err := d.recover(); err != nil {
			return Decision{After: s}, err
		}
	}
	return Decision{Facts: d.Facts, CheckAt: d.Next, After: d.State}, nil
}

// Fence returns the facts that fence a session of a tree whose owner is dead, before any session of the tree is
// decided: the orphaning, with every open call that has a known child. It returns nil if there is nothing to fence.
func Fence(s *session.State, in Input) []events.Fact {
	if !s.Open() || !s.Owned || in.Owner.Liveness != Dead {
		return nil
	}
	f := orphaning(s, in)
	for _, call := range sortedKeys(s.Tools) {
		for _, c := range childrenOf(in.Children, call) {
			f.WaitsFor = append(f.WaitsFor, events.WaitFor{Call: call, Child: c.Session})
		}
	}
	return []events.Fact{f}
}

func orphaning(s *session.State, in Input) events.SessionOrphaned {
	return events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: s.Incarnation,
		SupersededBy: in.Owner.SupersededBy, Detail: in.Owner.Detail}
}

// draft is a decision under construction.
type draft struct {
	session.Draft
	in        Input
	src       session.Source
	nextTurns []events.TurnRequested // continuations that are needed; one is requested
}

func newDraft(s *session.State, in Input, src session.Source) *draft {
	return &draft{Draft: session.NewDraft(s, events.WriterReconciler, source, in.Now), in: in, src: src}
}

// leftTurn reports whether the open turn was left behind: the session's owner has adopted neither it nor a call that it
// waits for. A call in the background outlives its turn, so a process that has adopted only such calls, with their
// prompts, does not run the turn.
func (d *draft) leftTurn() bool { return d.Turn != nil && !d.Runs(d.Turn.ID) }

// reason returns why the items that were left behind end.
func (d *draft) reason() string { return leftReason(d.State, d.Owned) }

// fence appends that the owner is gone, and which calls are held for which child, if that is new.
func (d *draft) fence(dead bool) {
	f := orphaning(d.State, d.in)
	news := dead
	// nothing is held, and nothing will be
	if len(d.WaitsFor)+len(d.in.Children) == 0 {
		if news {
			d.Add(f)
		}
		return
	}
	for _, w := range d.WaitsFor {
		if c := d.Tools[w.Call]; c != nil && !d.stopping(c.Turn) {
			f.WaitsFor = append(f.WaitsFor, w)
		}
	}
	for _, call := range sortedKeys(d.Tools) {
		if d.stopping(d.Tools[call].Turn) {
			continue
		}
		for _, child := range d.unsettled(call) {
			if w := (events.WaitFor{Call: call, Child: child}); !slices.Contains(f.WaitsFor, w) {
				f.WaitsFor = append(f.WaitsFor, w)
				news = true
			}
		}
	}
	if news {
		d.Add(f)
	}
}

// expireOverdue ends the prompts whose deadline has passed, with and without an owner: a live harness reads it in its
// view.
func (d *draft) expireOverdue() {
	for _, id := range sortedKeys(d.Prompts) {
		p := d.Prompts[id]
		switch {
		case !p.Awaits() || p.Deadline == nil:
		case p.Due(d.in.Steps).After(d.in.Now):
			d.CheckAt(p.Due(d.in.Steps))
		default:
			d.Add(events.PromptExpired{Prompt: id, Reason: events.ReasonDeadline})
		}
	}
}

// stopping reports whether a stop of this turn is pending that no live owner will carry out.
func (d *draft) stopping(turn string) bool {
	t := d.Turn
	return turn != "" && d.Pending.Stop.Of(turn) && t != nil && t.ID == turn &&
		(d.in.Owner.Liveness == Dead || d.leftTurn())
}

func sortedKeys[T any](m map[string]T) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
