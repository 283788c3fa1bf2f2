package explore

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/invariants"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// Sizes of the world.
const (
	processes = 2
	promptsN  = 2
)

// Names of what is in the world.
const (
	harnessID = "h"
	sessionID = "s"
	call      = "c1"
)

// ref names the one session.
func ref() events.Ref { return events.Ref{Harness: harnessID, Session: sessionID} }

// phase is how far a process is.
type phase uint8

const (
	down phase = iota
	starting
	ready
)

// health is the state of a lease.
type health uint8

const (
	live   health = iota
	lapsed        // it has ended, and its owner is still excused
	over          // its owner is dead for the reconciler
)

// lease is one incarnation's lease as the reconciler sees it.
type lease struct {
	inc     uint64
	ready   bool
	claimed bool // it has claimed the session
	late    bool // it was not ready when its adoption grace ended
	health  health
}

// process is one of the harness's processes.
type process struct {
	phase   phase
	stopped bool // by SIGSTOP
	inc     uint64
	mine    bool          // it owns the session, as far as it knows
	held    bool          // it knows that its lease is lost: it waits for the next one
	epoch   uint64        // of that ownership
	knew    uint64        // the incarnation of that ownership
	again   bool          // it has started over
	claims  []uint64      // incarnations whose claims are in doubt; never changed in place
	sentAs  []uint64      // the same, also where the process has forgotten it; never changed in place
	rest    []events.Fact // what a claim adopts, and its first commit does not hold; never changed in place
	compact bool          // it compacts

	turn     string         // its handler runs this turn; "": none
	asking   [promptsN]bool // an Ask waits
	todo     [promptsN]bool // the handler has adopted it and is to ask again
	returned [promptsN]bool // an Ask has returned the decision
	receipt  [promptsN]bool // the receipt is still to be stored
	late     [promptsN]bool // an Ask still waits after its turn has completed
	unsaid   [promptsN]bool // no Ask waits for a question outside of turns, and the log is to say so
	took     bool           // it has taken the call by Append, in a world with a bug
	appended [promptsN]bool // the program has requested the question without an Ask, and reads the decision by itself

	options *events.TurnStarted // Worker.Options is asked about this turn; never changed in place
}

// spent is how often something has happened that a bound is set for.
type spent struct {
	crashes, freezes, lapses, starts, failures, gaveUp, messages, stops, requests, rejects, itself,
	careless, policies, fills, doubts, splits, refusals, ends, appends,
	rewords, options, fulls, dismissals uint8
}

// fate is what became of a decision.
type fate uint8

const (
	undecided fate = iota
	decided        // the person got 200
	output         // a call has ended with it: the next turn reads it
	received       // a model's context has it
	overtaken      // by a later act of a person
	promised       // a person has resumed the session for it
	dismissed      // it calls for no turn: the next one names it
)

// due reports whether a person got 200 for a decision that no model has.
func (f fate) due() bool { return f == decided || f == promised }

// entry is one commit of the log, and the way here.
type entry struct {
	c    events.Commit
	prev *entry
}

// state is a whole world. It is never changed: each step makes a new one.
type state struct {
	cfg *Config
	now time.Time
	log *entry
	st  *session.State
	law *invariants.Log

	procs  [processes]process
	leases []lease
	sent   []sent // never changed in place
	drawn  uint64 // tickets
	ids    int
	full   bool // the log, which stores nothing
	fates  [promptsN]fate
	// reworded is whether the newest body of a question asks something else than the first
	reworded [promptsN]bool
	spent    spent

	found []string // violations of the step that made this state
	notes []string // what the step did, for traces
}

// began is the first instant of every world.
const began = 1_800_000_000

func root(cfg *Config) *state {
	s := &state{cfg: cfg, now: time.Unix(began, 0).UTC(), st: session.New(ref()), law: invariants.New(0)}
	p := &s.procs[0]
	s.begin(p)
	opened := events.SessionOpened{Incarnation: fmt.Sprint(p.inc),
		Policy: &events.PolicyPatch{RetryMax: events.Set(cfg.retryMax()), ResumeMax: events.Set(cfg.retryMax())}}
	if cfg.Pool {
		opened.Exclusive = new(bool)
		s.begin(&s.procs[1])
		s.procs[1].phase, s.leases[1].ready = ready, true
	}
	p.phase, s.leases[0].ready, p.mine, p.epoch, p.knew, p.turn = ready, true, true, 1, p.inc, "t1"
	s.append(events.WriterHarness, p.source(), 1, opened)
	s.append(events.WriterHarness, p.source(), 1, events.MessageAccepted{Message: "m0", Content: []byte(`"go"`)},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m0"})
	p.turn = "t1"
	s.notes = nil
	s.record("process 0 owns the session and runs turn t1")
	return s
}

// next is a copy to change.
func (s *state) next() *state {
	n := *s
	n.leases = append([]lease(nil), s.leases...)
	n.found, n.notes = nil, nil
	return &n
}

func (s *state) fail(format string, args ...any) {
	s.found = append(s.found, fmt.Sprintf(format, args...))
}

// record says what the step does, while a trace is written.
func (s *state) record(format string, args ...any) {
	if s.cfg.tracing {
		s.notes = append(s.notes, fmt.Sprintf(format, args...))
	}
}

func (p *process) source() string { return events.HarnessSource(harnessID, fmt.Sprint(p.inc)) }

// begin draws a ticket and takes a lease.
func (s *state) begin(p *process) {
	*p = process{phase: starting}
	s.draw(p)
}

// draw gives a process its next incarnation, with a lease.
func (s *state) draw(p *process) {
	s.drawn++
	p.inc = s.drawn
	s.leases = append(s.leases, lease{inc: p.inc})
}

func (s *state) lease(inc uint64) *lease {
	for i := range s.leases {
		if s.leases[i].inc == inc {
			return &s.leases[i]
		}
	}
	return nil
}

// owns says whether the log has this process as the session's owner, under the epoch that it knows.
func (s *state) owns(p *process) bool {
	return s.st.Owned && s.st.Incarnation == fmt.Sprint(p.inc) && s.st.Epoch == p.epoch
}

// source finds a commit.
func (s *state) source(seq uint64) (*events.Commit, error) {
	for e := s.log; e != nil; e = e.prev {
		if e.c.Seq == seq {
			return &e.c, nil
		}
	}
	return nil, fmt.Errorf("explore: no commit %d", seq)
}

// append stores one commit under the newest state, as the compare-and-set requires, and checks it against the
// rules. All facts of a writer that may say them have to count.
func (s *state) append(w events.Writer, source string, epoch uint64, facts ...events.Fact) {
	from := func(events.Fact) string { return source }
	s.appendAs(w, from, epoch, facts...)
}

func (s *state) appendAs(w events.Writer, source func(events.Fact) string, epoch uint64, facts ...events.Fact) {
	before := s.st
	c := events.Commit{Ref: ref(), Writer: w, Seq: before.Seq + 1, Guard: before.Seq, Guarded: true, At: s.now}
	for _, f := range facts {
		if _, claims := f.(events.SessionClaimed); claims {
			epoch = before.Epoch + 1
		}
		s.ids++
		c.Events = append(c.Events, events.New(fmt.Sprint("e", s.ids), source(f), ref(), epoch, s.now, f))
	}
	s.st = before.Clone()
	res := s.cfg.Bug.Fold(s.st, &c)
	s.log = &entry{c: c, prev: s.log}
	s.law = s.law.Clone()
	s.found = append(s.found, s.law.Commit(before, &c, res.Feed)...)
	if s.st.Ignored.Count != before.Ignored.Count || len(res.Parked) > 0 {
		s.fail("V12: %s said %s, and a fact of that does not count: %v", w, factsText(facts), s.st.Ignored.Last)
	}
	if s.cfg.tracing {
		s.record("%s: %s", w, factsText(facts))
	}
	s.feed(before, res.Feed)
}

// feed follows what became of decisions, and takes handlers away from turns that have ended.
func (s *state) feed(before *session.State, feed []events.Event) {
	for i := range feed {
		e := &feed[i]
		switch f := e.Fact.(type) {
		case events.PromptAnswered:
			s.decide(f.Prompt)
		case events.PromptRejected:
			s.decide(f.Prompt)
		case events.PromptDismissed:
			if i := s.cfg.index(f.Prompt); i >= 0 {
				s.fates[i] = dismissed
			}
		case events.ToolCompleted:
			s.callEnds(f.Call, e.Derived || string(f.Output) == withoutDecision)
		case events.ToolFailed:
			s.callEnds(f.Call, e.Derived)
		case events.TurnStarted:
			if t := before.Turn; t == nil || t.ID != f.Turn {
				s.turnBegins(f)
			}
		case events.TurnCompleted:
			s.agentEnds()
		case events.TurnFailed:
			s.attemptEnds(before, f.Turn)
		case events.TurnInterrupted:
			s.attemptEnds(before, f.Turn)
		case events.TurnStopped:
			s.attemptEnds(before, f.Turn)
		case events.MessageWithdrawn:
			s.takenBack(before, f.Message)
			// with the turn that was resumed
			if p := before.Pending.Turn; p != nil && p.Message == f.Message {
				s.promisesEnd()
			}
		}
	}
	for i := range s.procs {
		p := &s.procs[i]
		if p.turn != "" && (s.st.Turn == nil || s.st.Turn.ID != p.turn) && s.owns(p) {
			s.endHandler(p)
		}
	}
}

// takenBack: a person takes an answer back with the message that it had become.
func (s *state) takenBack(before *session.State, message string) {
	for i, a := range s.cfg.Asks {
		q := before.Prompts[a.Prompt]
		if q != nil && message ==
			events.DeriveID("answer", sessionID, a.Prompt, fmt.Sprint(max(q.Seq, q.ReopenedSeq))) {
			s.fates[i] = overtaken
			// the decision is no longer the one that an Ask has returned
			for k := range s.procs {
				s.procs[k].returned[i], s.procs[k].receipt[i] = false, false
			}
		}
	}
}

// endHandler ends the Asks of a turn with its handler.
func (s *state) endHandler(p *process) {
	p.turn, p.todo = "", [promptsN]bool{}
	for i, a := range s.cfg.Asks {
		p.asking[i], p.appended[i] = p.asking[i] && a.apart(), p.appended[i] && a.apart()
	}
}

// decide: a person got 200.
func (s *state) decide(prompt string) {
	if i := s.cfg.index(prompt); i >= 0 {
		s.fates[i] = decided
	}
}

// callEnds: the output of a call has the decision, unless its process has ended it without.
func (s *state) callEnds(id string, without bool) {
	for i := range s.fates {
		if s.fates[i].due() && s.cfg.Asks[i].Call == id && id != "" && !without {
			s.fates[i] = output
		}
	}
}

// turnBegins: a model's context has what the turn names, the message that it takes, and the results of all calls.
func (s *state) turnBegins(f events.TurnStarted) {
	for i := range s.fates {
		switch {
		case s.fates[i] == output, s.fates[i].due() && s.law.Brings(f.Turn, s.cfg.Asks[i].Prompt):
			s.fates[i] = received
		}
	}
}

// agentEnds: a process has ended its turn by itself. Decisions that it has not read stay.
func (s *state) agentEnds() {
	for i := range s.fates {
		if s.fates[i] == output {
			// its own call
			s.fates[i] = received
		}
	}
}

// personActs: what a person does later overtakes what was decided before.
func (s *state) personActs() {
	for i := range s.fates {
		if s.undelivered(i) {
			s.fates[i] = overtaken
		}
	}
}

// resumes: a person resumes the session, and the turn that is requested for that brings decisions from before a stop.
func (s *state) resumes() {
	p := s.st.Pending.Turn
	if p == nil {
		return
	}
	for _, c := range p.Prompts {
		if i := s.cfg.index(c.Prompt); i >= 0 && s.fates[i] == overtaken {
			s.fates[i] = promised
		}
	}
}

// attemptEnds: the open turn ended without completing. If no retry follows, a person has to resume once more.
func (s *state) attemptEnds(before *session.State, turn string) {
	if before.Turn != nil && before.Turn.ID == turn {
		s.promisesEnd()
	}
}

// promisesEnd: what a person has resumed the session for has to be resumed once more.
func (s *state) promisesEnd() {
	for i := range s.fates {
		if s.fates[i] == promised {
			s.fates[i] = decided
		}
	}
}

// view is what the reconciler knows beside the document. Leases that are over ended long ago, those that have lapsed
// just now. A process that is not ready has begun or claimed just now, unless its adoption grace has ended.
func (s *state) view() sim.View {
	const long = time.Hour
	v := sim.View{Now: s.now, Start: s.now.Add(-10 * long), Renewed: s.now, Source: s.source}
	for _, l := range s.leases {
		seen := sim.Lease{Harness: harnessID, Incarnation: fmt.Sprint(l.inc), Ready: l.ready, Since: s.now,
			Renewed: s.now}
		if l.claimed {
			seen.Claimed = s.now
		}
		if l.late {
			seen.Since, seen.Claimed = s.now.Add(-2*long), time.Time{}
		}
		switch l.health {
		case lapsed:
			seen.Ended = s.now
		case over:
			seen.Since, seen.Renewed, seen.Ended = s.now.Add(-2*long), s.now.Add(-long), s.now.Add(-long)
		}
		v.Leases = append(v.Leases, seen)
	}
	return v
}
