// Package session folds the commits of a session into its [State], which is also its document. From the state it
// derives the views of people and harnesses, and the events that carry out a request.
//
//	commits ──▶ Fold ──▶ State ──▶ Blocker, Work   (views)
//	                       │
//	       request ────────┴────▶ facts to append, or a refusal
//
// Promises:
//
//  1. Fold is total: it never fails and never panics, whatever it is given. Unlawful events are ignored and counted,
//     unreadable ones are parked and counted. Either way the session's place in the log moves on.
//  2. Fold is deterministic and depends on nothing but the State: folding from the start and folding on from a stored
//     document are the same. A commit that was already folded changes nothing.
//  3. The first ending of an entity counts. A later one is noted as late where recovery came first.
//  4. An entity that ends closes what belongs to it: a turn its prompts and calls, a call its prompt, the session all.
//
// Everything here is pure: instants come from commits or are arguments.
package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// ErrNewerLayout says a document was written by a newer build: upgrade this one.
var ErrNewerLayout = errors.New("document of a newer layout")

// Why facts are ignored, in [IgnoredFact]: what ignored.last.why of a document says.
const (
	WhyNotOpen     = "not-open"        // the session has not begun
	WhyAlreadyOpen = "already-open"    // it has begun already
	WhyClosed      = "closed"          // it is closed
	WhyEpoch       = "epoch"           // of another ownership
	WhySource      = "source"          // of another process than the owner
	WhyNotOwner    = "not-owner"       // of the last owner, which is fenced
	WhyClosedID    = "closed-id"       // about what has ended
	WhyTurnEnded   = "turn-ended"      // in a turn that has ended
	WhyUnknown     = "unknown"         // about what never began
	WhyLimit       = "limit"           // one more than a session may hold
	WhyOpen        = "already-open-id" // begins what is open
	WhyClaim       = "claim-refused"   // the claimer may not have it
)

// Result is what folding one commit came to, beside the state.
type Result struct {
	Folded bool           // false: the commit was folded before, nothing changed
	Gap    bool           // the commit's guard names a predecessor that has not been folded: read the log
	Feed   []events.Event // what counted, in order, and what containment closed (Derived)
	Parked []Parked       // what could not be read, or was out of role
}

// Parked is one event that is to be kept for an operator.
type Parked struct {
	Index int    // in the commit, -1 for the whole
	Why   string // one token: malformed or out-of-role
	Err   error
}

// Why input is parked.
const (
	ParkMalformed = "malformed"
	ParkOutOfRole = "out-of-role"
)

// fold carries the events of one commit through the rules, one after the other.
type fold struct {
	*State
	c     *events.Commit
	e     *events.Event
	res   *Result
	mute  bool   // no caller needs what counted
	owner string // the source attribute of the owning process; "" until it is needed

	gone      map[string]Carried // settled prompts that this commit has delivered, which it may name
	openBytes int                // the result of [State.weigh], and what was opened since; 0 until it is needed
}

// Fold applies the next commit.
func (s *State) Fold(c *events.Commit) Result { return s.apply(c, false) }

// Expect applies a commit that may be appended, as [State.Fold] does, and returns no result. It is for callers that
// compute a possible state.
func (s *State) Expect(c *events.Commit) { s.apply(c, true) }

func (s *State) apply(c *events.Commit, mute bool) Result {
	var res Result
	if c.Seq <= s.Seq {
		return res
	}
	s.begin(c, &res)
	f := fold{State: s, c: c, res: &res, mute: mute}
	for i := range c.Events {
		f.e = &c.Events[i]
		f.event(i)
	}
	s.forgetUndelivered()
	s.restCompaction()
	s.restContinuations()
	s.Phase = s.phase()
	return res
}

// begin moves the session to a commit, before its events are folded.
func (s *State) begin(c *events.Commit, res *Result) {
	res.Folded = true
	res.Gap = c.Guarded && c.Guard > s.Seq
	if res.Gap && s.Seq == 0 {
		s.tombstone(c)
	}
	s.Seq, s.UpdatedAt = c.Seq, c.At
	s.Commits++
	if c.Err != nil {
		s.Parked++
		res.Parked = append(res.Parked, Parked{Index: -1, Why: ParkMalformed, Err: c.Err})
	}
}

// tombstone: the first commit that the log still has names a predecessor, so the session was closed and purged.
func (s *State) tombstone(c *events.Commit) {
	s.Closed = &Closing{Reason: "purged", At: c.At, Seq: c.Seq, Purged: true}
}

// event sorts one event into parked, unknown, ignored or counted.
func (f *fold) event(i int) {
	spec := events.Lookup(f.e.Kind)
	if f.e.Foreign {
		spec = nil
	}
	switch {
	case f.e.Err != nil && f.e.Fact == nil:
		f.park(i, ParkMalformed, f.e.Err)
		return
	case spec == nil:
		f.UnknownFacts++
		return
	case !spec.May(f.c.Writer):
		f.park(i, ParkOutOfRole, fmt.Errorf("%w: %s is not for the %s to say", events.ErrOutOfRole, f.e.Kind,
			f.c.Writer))
		return
	case f.e.Fact == nil || f.e.Fact.Kind() != f.e.Kind:
		// no decoder makes such an event
		f.park(i, ParkMalformed, events.ErrMalformed)
		return
	case f.e.Err != nil:
		// the event counts all the same
		f.park(i, ParkMalformed, f.e.Err)
	}
	if why := f.admit(); why != "" {
		f.ignore(why, spec)
		return
	}
	n := len(f.res.Feed)
	// before what it closes by containment
	f.feed(*f.e)
	if why := f.apply(); why != "" {
		f.res.Feed = f.res.Feed[:n]
		f.ignore(why, spec)
	}
}

func (f *fold) feed(e events.Event) {
	if f.mute {
		return
	}
	if f.res.Feed == nil {
		f.res.Feed = make([]events.Event, 0, len(f.c.Events))
	}
	f.res.Feed = append(f.res.Feed, e)
}

func (f *fold) park(i int, why string, err error) {
	f.State.Parked++
	f.res.Parked = append(f.res.Parked, Parked{Index: i, Why: why, Err: err})
}

// ignore counts a fact that changed nothing else; a result that came too late is noted where it belongs.
func (f *fold) ignore(why string, spec *events.Spec) {
	f.Ignored.Count++
	f.Ignored.Last = &IgnoredFact{Type: f.e.Type(), Writer: string(f.c.Writer), Why: why, Seq: f.c.Seq}
	if spec.Ends == "" || f.c.Writer != events.WriterHarness {
		return
	}
	e := f.ended(spec.Ends, f.e.Fact.Subject())
	if e == nil || e.Late != nil {
		return
	}
	recovered := e.Outcome == OutcomeInterrupted || e.Outcome == string(Expired)
	if recovered || f.e.Epoch < f.Epoch || why == WhyNotOwner {
		e.Late = &Late{Seq: f.c.Seq, At: f.c.At}
	}
}

// admit reports whether the writer may append at all: "" or why not.
func (f *fold) admit() string {
	switch fact := f.e.Fact.(type) {
	case events.SessionOpened:
		return f.admitOpened(fact)
	case events.SessionClaimed:
		return f.admitClaimed(fact)
	}
	_, closes := f.e.Fact.(events.SessionClosed)
	switch {
	case !f.Opened() && closes && f.c.Writer == events.WriterLedger && f.e.Epoch == 1:
		// a session that never began may be closed
		return ""
	case !f.Opened():
		return WhyNotOpen
	case f.Closed != nil:
		return WhyClosed
	case f.e.Epoch != f.Epoch:
		return WhyEpoch
	case f.c.Writer != events.WriterHarness:
		return ""
	case f.e.Source != f.ownerSource() && !events.IsHarnessSource(f.e.Source, f.Harness, f.Incarnation):
		return WhySource
	case !f.Owned:
		return WhyNotOwner
	}
	return ""
}

// ownerSource returns what the owning process writes as its source. It changes with the owner only.
func (f *fold) ownerSource() string {
	if f.owner == "" {
		f.owner = events.HarnessSource(f.Harness, f.Incarnation)
	}
	return f.owner
}

// apply passes a fact that is permitted to its family: "" if it counted, or why it changed nothing.
func (f *fold) apply() string {
	switch fact := f.e.Fact.(type) {
	case events.SessionOpened:
		return f.opened(fact)
	case events.SessionClaimed:
		return f.claimed(fact)
	case events.SessionConfigured:
		return f.configured(fact)
	case events.SessionReleased:
		return f.released()
	case events.SessionOrphaned:
		return f.orphaned(fact)
	case events.SessionClosed:
		return f.closed(fact)
	case events.MessageAccepted:
		return f.messageAccepted(fact)
	case events.MessageWithdrawn:
		return f.messageWithdrawn(fact)
	case events.UsageReported:
		return f.usageReported(fact)
	case events.RetryScheduled:
		return f.retryScheduled(fact)
	case events.RetryAbandoned:
		return f.retryAbandoned(fact)
	}
	if why, ok := f.applyTurn(); ok {
		return why
	}
	if why, ok := f.applyTool(); ok {
		return why
	}
	if why, ok := f.applyPrompt(); ok {
		return why
	}
	return f.applyCompaction()
}

// phase is the first that holds.
func (s *State) phase() Phase {
	switch {
	case s.Closed != nil:
		return Closed
	case s.BlockedBy() != "" || len(s.WaitsFor) > 0:
		return Waiting
	case s.CompactionOpen():
		return Compacting
	case s.Turn != nil && s.Owns(s.Turn.Epoch):
		return Running
	case s.RetryPlanned():
		return Retrying
	case s.Pending.Turn != nil || len(s.Queue) > 0:
		return Queued
	case s.Turn != nil || s.LastTurn != nil && s.LastTurn.Outcome == OutcomeInterrupted || s.cutShort(),
		s.Continuations.State == ContinuationsHeld:
		return Interrupted
	}
	return Idle
}

// cutShort: a turn was stopped for a compaction, and its process was gone before it could go on; the policy has a
// person say whether it does (R14).
func (s *State) cutShort() bool {
	c := s.Compaction
	return c != nil && c.State == CompactionHeld && s.crashHeld()
}

// ended finds how something ended, nil if it has not, or too long ago.
func (s *State) ended(entity, id string) *Ending {
	for i := len(s.Recent) - 1; i >= 0; i-- {
		if s.Recent[i].Entity == entity && s.Recent[i].ID == id {
			return &s.Recent[i]
		}
	}
	return nil
}

// Ended returns how something ended; ok is false if it has not, or so long ago that it is no longer kept.
func (s *State) Ended(entity, id string) (e Ending, ok bool) {
	if p := s.ended(entity, id); p != nil {
		return *p, true
	}
	return Ending{}, false
}

// end keeps an ending.
func (f *fold) end(e Ending) {
	e.At, e.Seq, e.Reason = f.c.At, f.c.Seq, cut(e.Reason, TextBytesMax)
	if n := len(f.Recent); n >= RecentMax {
		copy(f.Recent, f.Recent[n-RecentMax+1:])
		f.Recent = f.Recent[:RecentMax-1]
	}
	// all that this commit ends at once
	if len(f.Recent) == cap(f.Recent) {
		f.Recent = slices.Grow(f.Recent, min(len(f.c.Events), RecentMax-len(f.Recent)))
	}
	f.Recent = append(f.Recent, e)
}

// derive feeds what containment closed.
func (f *fold) derive(fact events.Fact) {
	if f.mute {
		return
	}
	e := events.New(f.e.ID+"/"+string(fact.Kind())+"/"+fact.Subject(), f.e.Source, f.Ref(), f.Epoch, f.e.Time, fact)
	e.Derived = true
	f.feed(e)
}
