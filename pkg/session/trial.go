package session

import "github.com/holdfast-dev/holdfast/pkg/events"

// Trial folds a commit that is being put together, one event after the other, into a copy of the state. Its writer
// learns of each event whether the fold of the whole commit will count it. It is made by [State.Try].
type Trial struct {
	state *State
	c     events.Commit
	res   Result
	fold  fold
}

// Try begins the trial of the commit that its writer is about to append. Events of c are ignored: add them with
// [Trial.Add]. The state itself stays as it is.
func (s *State) Try(c events.Commit) *Trial {
	t := &Trial{state: s.Clone(), c: c}
	t.c.Events = nil
	t.state.begin(&t.c, &t.res)
	t.fold = fold{State: t.state, c: &t.c, res: &t.res, mute: true}
	return t
}

// State is the state between two events of the commit. It is the trial's own: read it only.
func (t *Trial) State() *State { return t.state }

// Add folds the commit's next event. It returns "" if the event counts, and also if its kind is unknown to this build,
// else the reason why the fold will ignore or park it. Limits that the fold checks once a commit are checked against
// the commit.
func (t *Trial) Add(e events.Event) (why string) {
	ignored, parked := t.state.Ignored.Count, len(t.res.Parked)
	t.c.Events = append(t.c.Events, e)
	n := len(t.c.Events) - 1
	t.fold.e = &t.c.Events[n]
	t.fold.event(n)
	switch {
	case t.state.Ignored.Count != ignored:
		return t.state.Ignored.Last.Why
	case len(t.res.Parked) != parked:
		return t.res.Parked[parked].Why
	}
	return ""
}
