// Package opencode translates what an OpenCode server tells (its `/event` stream, live or recorded) into facts.
//
// The translation is a pure core: records in, [Step] values out, no clock and no I/O but the reader it is given. A step
// is what a harness would append to one session in one commit. Who appends them, under which lease and at which pace,
// is the caller's business: range over [Steps] for a recording, or feed a [Translator] record by record.
//
// # What begins and ends what
//
//	turn        begins when the session gets busy and a message waits, or with the first open assistant message; it is
//	            the whole run up to the idle event, however many model calls and compactions that takes. It has the id of
//	            the user's message. Its message is accepted in the commit that starts it: OpenCode hands out its messages
//	            itself, so none of them may wait in the queue.
//	call        begins with its first pending or running part and ends with its first completed or error part.
//	prompt      begins with asked, ends with replied or rejected. Its answer resolves a promise in the process that
//	            asked (a reply after a restart is a 404), so its delivery is callback and it expires with its owner.
//	compaction  begins with a summary message, ends with session.compacted, an error, or an idle event without either. It
//	            has the id of the summary message. OpenCode compacts by its own decision. What asks for a compaction in
//	            Holdfast is a service, and a harness may not say compaction.requested; so these facts come without a
//	            request, and a fold that knows no such compaction ignores them. The summary's tokens are not reported:
//	            they are not what the next call starts with.
//
// # Order
//
// An idle event is no proof that the parts are final: after an abort a call's last state comes about 0.3 s later. The
// abort of a person must not be lost in between, so the turn ends at once and takes its open calls and prompts with it;
// what comes later about them is counted in [Report] as late and says nothing more.
//
// OpenCode's own retry is part of the turn and no fact. An error is told before the idle event that it leads to, and
// may be followed by a compaction and a continuation instead: only at the idle event has the turn failed.
//
// # Restarts
//
// A second server.connected, once there is a session, means that the process had died: nothing else tells, there is no
// boot id. (A recorder that lost its connection and not its server is therefore taken for a restart.) Nothing of what
// it held goes on: late events about it are only counted, and what becomes of it is the reconciler's to say. Sessions
// that the new process goes on with are claimed.
package opencode

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Step is what a harness does with one session at one instant: open or claim it, then append all facts as one commit. A
// step with Restart set is about no session.
type Step struct {
	At time.Time // of the record it comes from
	// the process had died, and another one is there; if this is the last step, it says nothing
	Restart bool
	Died    time.Time             // with Restart: the last sign of life of the process that died
	Session string                // the session's id
	Open    *events.SessionOpened // the session begins; whoever appends it fills in the incarnation
	Claim   bool                  // the process before this one owned the session: claim it first
	Facts   []events.Fact         // may be empty when the session only opens
}

// stepFactsMax is how many facts one step has at most. The largest fact stays below 100 KiB, so a step fits a commit.
const stepFactsMax = 4

// Translator turns records into steps. It keeps what is open in each session and a bounded part of what has ended, so
// that a stream of any length takes bounded memory for each session; use one for each stream, from one goroutine. Make
// it with [NewTranslator].
type Translator struct {
	sessions map[string]*session
	ordered  []*session // by first appearance, so that nothing depends on the order of a map
	busy     []*session // those heard of lately, the newest last
	deleted  window     // ids of sessions that were deleted
	began    bool       // there was a session
	seen     window
	at       time.Time // of the record in hand; never goes back
	before   time.Time // of the record before it
	said     time.Time // of the newest step
	out      []Step
	report   Report
}

// NewTranslator is a translator that knows nothing yet.
func NewTranslator() *Translator {
	return &Translator{sessions: map[string]*session{}, seen: newWindow(seenMax), deleted: newWindow(deletedMax),
		report: Report{Unknown: map[string]int{}}}
}

// Steps translates a whole recording. The records are put in [Order] first; the slice itself stays as it is.
func Steps(records []Record) ([]Step, Report) {
	t := NewTranslator()
	var steps []Step
	for _, r := range Order(records) {
		steps = append(steps, t.Translate(r)...)
	}
	steps = append(steps, t.Flush()...)
	return steps, t.Report()
}

// Translate says what a harness does because of this record. Records come in order; see [Order]. What cannot be read or
// is not known is counted in the report and changes nothing. A call that is about to run, and a rejection whose text is
// told by the next record, are held back until then: see [Translator.Flush].
func (t *Translator) Translate(r Record) []Step {
	t.report.Records++
	ev, err := unwrap(r.Event)
	if err != nil {
		t.problem("record %d: %v", t.report.Records, err)
		return nil
	}
	if ev.ID != "" && !t.seen.add(ev.ID) {
		t.report.Duplicates++
		return nil
	}
	t.before, t.at = t.at, latest(t.at, r.At)
	t.dispatch(ev)
	return t.take()
}

// Flush says what is held back. Call it when the recording has ended, or when no further event is at hand.
func (t *Translator) Flush() []Step {
	for _, s := range t.ordered {
		t.release(s)
	}
	return t.take()
}

// take is what was said since the last time.
func (t *Translator) take() []Step {
	out := t.out
	t.out = nil
	return out
}

// say adds facts that stand together to the session's step at this instant, or begins a new one.
func (t *Translator) say(s *session, at time.Time, facts ...events.Fact) {
	step := t.step(s, at, len(facts))
	step.Facts = append(step.Facts, facts...)
	t.report.Facts += len(facts)
}

// step is the step that the next facts of the session belong to. The session is opened or claimed with it if need be.
func (t *Translator) step(s *session, at time.Time, room int) *Step {
	if n := len(t.out); n > 0 {
		last := &t.out[n-1]
		if last.Session == s.id && last.At.Equal(at) && len(last.Facts)+room <= stepFactsMax {
			return last
		}
	}
	step := Step{At: at, Session: s.id}
	switch {
	case !s.opened:
		s.opened, step.Open = true, s.opening()
	case s.claim:
		step.Claim = true
	}
	s.claim, t.said, t.report.Dead = false, at, false
	t.out = append(t.out, step)
	return &t.out[len(t.out)-1]
}

// restart ends everything that the process held. What becomes of it is not the bridge's to say.
func (t *Translator) restart() {
	t.report.Restarts++
	for _, s := range t.ordered {
		t.release(s)
	}
	for _, s := range t.ordered {
		lost := s.open()
		t.report.Lost = append(t.report.Lost, lost[:min(len(lost), lostMax-len(t.report.Lost))]...)
		s.lose()
	}
	t.out = append(t.out, Step{At: t.at, Restart: true, Died: t.before})
	t.report.Dead = true
}

// Report is what the translation came to so far. What is open at the end of a recording is what its process held when
// it died, or when the recording was stopped.
func (t *Translator) Report() Report {
	r := t.report
	r.Unknown = maps.Clone(r.Unknown)
	r.Problems = slices.Clone(r.Problems)
	r.Lost = slices.Clone(r.Lost)
	for _, s := range t.ordered {
		r.Open = append(r.Open, s.open()...)
	}
	r.Dead = r.Dead || len(r.Open) > 0
	return r
}
