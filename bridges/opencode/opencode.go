// Package opencode translates the events of an OpenCode server (its `/event` stream, live or recorded) into facts.
//
// The translation is pure: records in, [Step] values out. It has no clock and no I/O except the reader that it is
// given. A step is what a harness appends to one session in one commit. The caller decides who appends the steps, under
// which lease and at which pace: range over [Steps] for a recording, or pass records one by one to a [Translator].
//
// # Begin and end of each entity
//
//	turn        begins when the session becomes busy while a message waits, or with the first open assistant message.
//	            It ends at the idle event, after any number of model calls and compactions. It has the id of the
//	            user's message. The message is accepted in the commit that starts the turn: OpenCode dispatches its
//	            messages itself, so none of them may wait in the queue.
//	call        begins with its first pending or running part and ends with its first completed or error part.
//	prompt      begins with asked, ends with replied or rejected. Its answer resolves a promise in the asking process
//	            (a reply after a restart is a 404), so its delivery is callback and it expires with its owner.
//	compaction  begins with a summary message, ends with session.compacted, an error, or an idle event without
//	            either. It has the id of the summary message. OpenCode decides by itself when to compact. In Holdfast
//	            a service requests a compaction, and a harness must not write compaction.requested. So these facts
//	            have no request, and a fold that does not know the compaction ignores them. The summary's tokens are
//	            not reported, because the next call does not start with them.
//
// # Order
//
// After an idle event, parts may still change: after an abort the last state of a call arrives about 0.3 s later. A
// person's abort must not be lost in between. So the turn ends at once, together with its open calls and prompts, and
// later events about them are only counted as late in [Report].
//
// OpenCode's own retry is part of the turn and not a fact. An error arrives before its idle event, and a compaction and
// a continuation may follow instead. So the turn fails only at the idle event.
//
// # Restarts
//
// A second server.connected, after the first session, means that the process died. There is no other sign, and no boot
// id. (A recorder that lost its connection, but not its server, looks the same.) The new process continues nothing that
// the old one held. Late events about it are only counted, and the reconciler recovers it. Sessions that the new
// process continues are claimed.
package opencode

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Step is what a harness does with one session at one instant: it opens or claims the session, then appends all facts
// as one commit. A step with Restart set has no session.
type Step struct {
	At time.Time // of the record
	// The process died and another one runs. If this is the last step, the new process does nothing.
	Restart bool
	Died    time.Time             // with Restart: the instant of the dead process's last event
	Session string                // the session's id
	Open    *events.SessionOpened // the session begins; the caller sets the incarnation
	Claim   bool                  // an earlier process owned the session: claim it first
	Facts   []events.Fact         // may be empty if the session is only opened
}

// stepFactsMax is the maximum number of facts in one step. A fact is smaller than 100 KiB, so a step fits a commit.
const stepFactsMax = 4

// Translator turns records into steps. It keeps the open entities of each session and a bounded number of ended ones,
// so a stream of any length takes bounded memory for each session. Use one Translator for each stream, from one
// goroutine. Create it with [NewTranslator].
type Translator struct {
	sessions map[string]*session
	ordered  []*session // by first appearance, so that the output does not depend on map order
	busy     []*session // recently active sessions, the newest last
	deleted  window     // ids of sessions that were deleted
	began    bool       // a session has appeared
	backOffs []backOff  // since the last takeBackOffs
	ended    []callEnd  // since the last ends
	disposed bool       // since the last takeDisposed
	live     bool       // the stream is that of a living server
	seen     window
	at       time.Time // instant of the current record; never decreases
	before   time.Time // instant of the previous record
	stepped  time.Time // of the newest step
	out      []Step
	report   Report
	limits   map[string]int64 // of models, in tokens: how much context they may have
	content  agent.Content    // how much of the user's content is in the facts
}

// NewTranslator returns a translator without any state.
func NewTranslator() *Translator {
	return &Translator{sessions: map[string]*session{}, seen: newWindow(seenMax), deleted: newWindow(deletedMax),
		content: agent.ContentFull, report: Report{Unknown: map[string]int{}}}
}

// Steps translates a whole recording. It sorts a copy of the records with [Order].
func Steps(records []Record) ([]Step, Report) {
	t := NewTranslator()
	var steps []Step
	for _, r := range Order(records) {
		steps = append(steps, t.Translate(r)...)
	}
	steps = append(steps, t.Flush()...)
	return steps, t.Report()
}

// Translate returns what a harness does because of this record. Records must be in order; see [Order]. Unreadable and
// unknown data is counted in the report and changes nothing else. Translate holds back a call that is about to run, and
// a rejection whose text is in the next record: see [Translator.Flush].
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

// Flush returns the facts that are held back. Call it at the end of a recording, or when no further event is available.
func (t *Translator) Flush() []Step {
	for _, s := range t.ordered {
		t.release(s)
	}
	return t.take()
}

// take returns the steps since the last take.
func (t *Translator) take() []Step {
	out := t.out
	t.out = nil
	return out
}

// add adds the facts to the session's step at this instant, or begins a new step. The facts stay in one step.
func (t *Translator) add(s *session, at time.Time, facts ...events.Fact) {
	step := t.step(s, at, len(facts))
	for _, f := range facts {
		step.Facts = append(step.Facts, t.limit(f))
	}
	t.report.Facts += len(facts)
}

// step returns the step for the session's next facts. A new step opens or claims the session if necessary.
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
		s.opened, step.Open = true, t.limitOpening(s.opening())
	case s.claim:
		step.Claim = true
	}
	s.claim, t.stepped, t.report.Dead = false, at, false
	t.out = append(t.out, step)
	return &t.out[len(t.out)-1]
}

// restart marks everything that the process held as lost. The reconciler recovers it, not the bridge.
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

// Report returns the result of the translation so far. Open lists what the process held when it died or when the
// recording stopped.
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
