package answer_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// kidsMax is how many children a session has, kidSteps how many steps recovery needs at most for one of them.
const (
	kidsMax  = 3
	kidSteps = 10
)

// kid is a child of the session, with a log of its own. The same process owns both.
type kid struct {
	w    *world
	ref  events.Ref
	call string // the parent's call that waits for it
	st   *session.State
	log  []*events.Commit
}

func (k *kid) source(seq uint64) (*events.Commit, error) {
	i := slices.IndexFunc(k.log, func(c *events.Commit) bool { return c.Seq == seq })
	if i < 0 {
		return nil, fmt.Errorf("commit %d is not in the log of %s", seq, k.ref)
	}
	return k.log[i], nil
}

// owner appends facts as the process that owns the child.
func (k *kid) owner(facts ...events.Fact) {
	epoch := max(k.st.Epoch, 1)
	if _, claims := facts[0].(events.SessionClaimed); claims {
		epoch++
	}
	k.commit(events.WriterHarness, events.HarnessSource(ref.Harness, strconv.Itoa(k.w.inc)), epoch, facts)
}

func (k *kid) commit(by events.Writer, source string, epoch uint64, facts []events.Fact) {
	w := k.w
	c := &events.Commit{Ref: k.ref, Writer: by, Seq: uint64(len(k.log) + 1), At: w.now}
	for _, f := range facts {
		c.Events = append(c.Events, events.New(w.id("e"), source, k.ref, epoch, w.now, f))
		w.trace = append(w.trace, fmt.Sprintf("child %s: %d %s %s %+v", k.ref.Session, c.Seq, by, f.Kind(), f))
	}
	k.log = append(k.log, c)
	w.commits++
	k.st.Fold(c)
}

// gone reports whether the newest process is dead.
func (k *kid) gone() bool { return k.w.dead && k.w.st.Incarnation == strconv.Itoa(k.w.inc) }

// alive reports whether the process that owns the child lives.
func (k *kid) alive() bool {
	return k.st.Owned && k.st.Incarnation == strconv.Itoa(k.w.inc) && !k.gone()
}

func (k *kid) settled() bool { return !reconciler.Unsettled(k.st) }

// moves makes the child do what is next: a person answers it, its process ends its turn, or a new process takes the
// turn that is requested.
func (k *kid) moves() {
	w := k.w
	if k.recovers(); k.settled() {
		return
	}
	if ids := k.st.PendingPrompts(); len(ids) > 0 && w.chance(2) {
		if d, err := k.st.Answer(request.Answer{Ref: k.ref, Prompt: ids[0], By: "bob"}, k.source); err == nil {
			k.commit(events.WriterLedger, events.PersonSource("bob"), k.st.Epoch, d.Facts)
		}
		return
	}
	t, p := k.st.Turn, k.st.Pending.Turn
	switch {
	case t != nil && k.alive() && t.Epoch == k.st.Epoch:
		k.ends(t.ID)
	case p == nil || k.st.Owned && !k.alive():
	case k.st.Owned:
		k.owner(started(p))
	case k.gone() || !k.st.Claimable(strconv.Itoa(w.inc)):
		// another process starts
		if !w.alive() {
			w.inc++
			w.dead = w.st.Owned
		}
	default:
		k.owner(events.SessionClaimed{Incarnation: strconv.Itoa(w.inc), Exclusive: new(true)}, started(p))
	}
}

func started(p *session.PendingTurn) events.TurnStarted {
	return events.TurnStarted{Turn: p.ID, Cause: p.Cause, Synthetic: true, OfTurn: p.OfTurn, Message: p.Message}
}

// ends ends the child's turn. Its process has read what was decided.
func (k *kid) ends(turn string) {
	var facts []events.Fact
	for id, p := range k.st.Prompts {
		if p.Status != session.Awaiting {
			// a child asks once
			facts = append(facts, events.PromptDelivered{Prompt: id})
		}
	}
	switch {
	case len(k.st.PendingPrompts()) > 0:
		return
	case k.w.chance(3):
		facts = append(facts, events.TurnFailed{Turn: turn, Error: events.Failure{Kind: "quota", Text: "x"}})
	default:
		facts = append(facts, events.TurnCompleted{Turn: turn})
	}
	k.owner(facts...)
}

// recovers is the child's own recovery, which goes before that of its parent.
func (k *kid) recovers() {
	for range kidSteps {
		owner := reconciler.Owner{Liveness: reconciler.Alive}
		if !k.alive() {
			owner.Liveness = reconciler.Dead
		}
		d, err := reconciler.Decide(k.st, reconciler.Input{Now: k.w.now, Owner: owner}, k.source)
		if err != nil {
			k.w.fail("reconciler, child %s: %v", k.ref.Session, err)
		}
		if err != nil || len(d.Facts) == 0 {
			return
		}
		k.commit(events.WriterReconciler, events.ServiceSource(string(events.WriterReconciler), "x"), k.st.Epoch,
			d.Facts)
	}
	k.w.fail("recovery of child %s does not end", k.ref.Session)
}

// children returns the children's states after their own recovery.
func (w *world) children() []*session.State {
	var all []*session.State
	for _, k := range w.kids {
		k.recovers()
		all = append(all, k.st)
	}
	return all
}
