package answer_test

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// stopped counts the stops that histories must have.
type stopped struct {
	early  int // stops before the first turn that were stored
	second int // stops that were stored while an earlier stop was not confirmed
	long   int // stops of a last turn whose ending is not kept
	passed int // turns that completed although a person had stopped them
}

func (s *stopped) add(o stopped) {
	s.early, s.second = s.early+o.early, s.second+o.second
	s.long, s.passed = s.long+o.long, s.passed+o.passed
}

// enough reports whether so many histories have these stops.
func (s *stopped) enough(histories int) bool {
	for _, c := range [...]struct{ n, oneIn int }{{s.early, 2000}, {s.second, 50}, {s.long, 2000}, {s.passed, 200}} {
		if c.n < histories/c.oneIn {
			return false
		}
	}
	return true
}

// stops sends a stop as a person. A stop that status 200 answers counts, also if no fact was appended for it: no
// service requests a turn until a person asks for one, see [world.requestedAfterStop]. A second stop at once appends
// nothing.
func (w *world) stops() {
	st := w.st
	d, err := st.Stop(request.Stop{Ref: ref, By: "ada", Force: w.chance(3)})
	if err != nil {
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("stop by ada: 200, %d facts, seq %d", len(d.Facts), d.Seq))
	if len(d.Facts) > 0 {
		w.countStop(st, d.Facts)
	}
	w.person(events.WriterLedger, d.Facts...)
	w.still = true
	clear(w.itsOwn)
	if again, err := w.st.Stop(request.Stop{Ref: ref, By: "ada", Force: true}); err != nil || len(again.Facts) > 0 {
		w.fail("a person has just stopped the session, and a second stop appends %v (%v)", again.Facts, err)
	}
}

// countStop counts a stop that appends facts to the state before it.
func (w *world) countStop(st *session.State, facts []events.Fact) {
	if _, requests := facts[0].(events.TurnRequested); requests {
		w.early++
	}
	if st.Pending.Stop != nil && st.Pending.Stop.Actor == events.ActorPerson {
		w.second++
	}
	if l := st.LastTurn; l != nil && st.Turn == nil && st.Pending.Turn == nil {
		if _, kept := st.Ended(session.EntityTurn, l.ID); !kept {
			w.long++
		}
	}
}

// personContinues ends the rest after a stop if facts of a person ask for more. A dismissal does not ask for more, nor
// does a message that the person takes back, nor a change of the policy.
func (w *world) personContinues(facts []events.Fact) {
	for _, f := range facts {
		switch f := f.(type) {
		case events.PromptAnswered, events.PromptRejected, events.TurnRequested, events.CompactionRequested:
			w.still = false
		case events.MessageAccepted:
			w.still = w.still && f.Synthetic
		}
	}
}

// requestedAfterStop fails if a service requests a turn after a person's stop that got status 200, unless a person has
// asked for more since, or the turn follows a turn or a prompt that the agent began by itself after the stop.
func (w *world) requestedAfterStop(f events.TurnRequested, by events.Writer) {
	if w.still && !w.itsOwn[f.OfTurn] && !w.itsOwn[f.Prompt] {
		w.fail("turn %s (%s, message %q) is requested by %s after a stop that got status 200", f.Turn, f.Cause,
			f.Message, by)
	}
}
