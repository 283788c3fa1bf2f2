package control

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// effectMax is how long an effect may take.
const effectMax = 30 * time.Second

// Effect does something outside of the log, a request to a web server for instance, and returns the facts that record
// its outcome. The loop appends them behind [Decision.Facts]. As long as they are not in the log, the session calls for
// the effect.
//
//   - An effect runs at least once. It runs again when, between the effect and the append, the process ends or another
//     process writes to the session. The receiver needs a key by which it knows a repetition: take one that follows
//     from the log, such as the ids of session and prompt. An effect that records nothing runs at each check.
//   - It runs at the instant of its decision, not ahead of it, and on the newest state: the loop reads the log's leader
//     first, and decides again if there is more.
//   - A process runs one effect of a session at a time. Another check of the session meanwhile is dropped: the running
//     one decides again when it loses the race for its append.
//   - An error is a failed attempt: after three of them the session is a suspect, and the next slow walk tries again.
//     An outcome that must not be tried again is a fact.
//     Facts that are returned beside an error are appended: of several calls, those that succeeded are not repeated.
//   - Its ctx ends after 30 s. Until the effect returns it takes one of [Config.AtOnceMax]. Other sessions are not
//     delayed.
type Effect func(ctx context.Context) ([]events.Fact, error)

// affect runs the effect of a decision. It returns the decision with the facts that record the outcome, and without any
// facts if the effect failed and recorded nothing.
func affect(ctx context.Context, d Decision) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, effectMax)
	defer cancel()
	facts, err := d.Effect(ctx)
	if d.After = nil; err != nil && len(facts) == 0 {
		d.Facts = nil
		return d, err
	}
	d.Facts = slices.Concat(d.Facts, facts)
	return d, err
}

// beginEffect reports whether no effect of a session runs, and records that one does from now on.
func (l *Loop) beginEffect(r events.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.effects[r] {
		return false
	}
	l.effects[r] = true
	return true
}

// endEffect records that the effect of a session has ended, and its facts are appended.
func (l *Loop) endEffect(r events.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.effects, r)
}
