// Package answer_test follows answers through random histories of people, processes and services, with the real fold,
// deciders and requests. It checks one property: a person's decision reaches the agent.
package answer_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

var (
	ref   = events.Ref{Harness: "h", Session: "s"}
	begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// world is one session, the processes of its harness, and people. Each step appends at most one commit, decided on the
// whole log, as the compare-and-set enforces.
type world struct {
	rng  *rand.Rand
	now  time.Time
	log  []*events.Commit
	st   *session.State
	ids  int
	runs *turn // the turn that the living process runs
	dead bool  // the owner, if the session has one
	inc  int   // of the newest process

	owed      map[string]uint64 // place of each decision that got status 200 and that no completed turn has had
	reached   map[string]bool   // in the context of a turn that completed, or the output of its call
	had       map[string]uint64 // the epoch of the process that gave a receipt
	overtaken map[string]bool
	callOf    map[string]string // by prompt
	asMessage map[string]string // by prompt: the message that the answer became
	output    map[string]uint64 // its place: a service ended its call with it, and no completed turn has had it
	ended     map[string]string // by turn: how it ended
	settled   map[string]bool   // prompts that a person or a process decided
	byHarness map[string]bool   // prompts that a process decided
	stoppedAt uint64            // place of a person's last stop
	stopSince uint64            // the same; 0 once a turn that a person asked for has begun
	givenUpAt uint64            // place where a retry was given up last
	oldAt     uint64            // place of the last decision without owed
	absent    map[string]bool   // prompts that no Ask waits for
	continued int               // turns that recovery requested for decisions since a person acted
	notRun    string            // the turn that the process has not adopted, and does not run
	deaf      bool              // the agent takes no turn that is requested for decisions
	still     bool              // a person's stop got status 200, and no person has asked for more since
	itsOwn    map[string]bool   // turns that the agent began, and prompts that it requested, by itself since that stop
	played    map[string]int    // by act: how often it had an effect
	commits   int               // of the session and its children
	kids      []*kid
	views     []*session.WorkTurn // what a client has seen
	named     map[string]bool     // prompts that a client has named from an old view
	fromOld   map[string]bool     // turns that a client took from an old view
	ofChild   map[string]bool     // turns that are requested because a child has settled
	seen
	trace []string
	wrong []string
}

// turn is a process's memory of its running turn: the answers in the model's context.
type turn struct {
	id      string
	context map[string]bool
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 15)), now: begin, st: session.New(ref), inc: 1,
		owed: map[string]uint64{}, reached: map[string]bool{}, had: map[string]uint64{}, overtaken: map[string]bool{},
		callOf: map[string]string{}, asMessage: map[string]string{},
		output: map[string]uint64{}, ended: map[string]string{}, settled: map[string]bool{},
		absent: map[string]bool{}, byHarness: map[string]bool{}, itsOwn: map[string]bool{}, named: map[string]bool{},
		fromOld: map[string]bool{}, ofChild: map[string]bool{}}
	w.deaf = w.chance(deafOneIn)
	w.process(events.SessionOpened{Incarnation: "1", Exclusive: new(true)})
	return w
}

func (w *world) id(prefix string) string {
	w.ids++
	return prefix + strconv.Itoa(w.ids)
}

func (w *world) source(seq uint64) (*events.Commit, error) {
	i := slices.IndexFunc(w.log, func(c *events.Commit) bool { return c.Seq == seq })
	if i < 0 {
		return nil, fmt.Errorf("commit %d is not in the log", seq)
	}
	return w.log[i], nil
}

// process appends facts as the owning process, service as a service.
func (w *world) process(facts ...events.Fact) {
	source := events.HarnessSource(ref.Harness, strconv.Itoa(w.inc))
	epoch := max(w.st.Epoch, 1)
	if _, claims := facts[0].(events.SessionClaimed); claims {
		epoch++
	}
	w.commit(events.WriterHarness, source, epoch, facts)
}

func (w *world) service(by events.Writer, facts ...events.Fact) {
	w.commit(by, events.ServiceSource(string(by), "x"), w.st.Epoch, facts)
}

func (w *world) person(by events.Writer, facts ...events.Fact) {
	w.personContinues(facts)
	w.commit(by, events.PersonSource("ada"), w.st.Epoch, facts)
}

func (w *world) commit(by events.Writer, source string, epoch uint64, facts []events.Fact) {
	if len(facts) == 0 {
		return
	}
	w.now = w.now.Add(10 * time.Millisecond)
	c := &events.Commit{Ref: ref, Writer: by, Seq: uint64(len(w.log) + 1), At: w.now}
	for _, f := range facts {
		writer := source
		_, requests := f.(events.TurnRequested)
		if requests && stops(facts) || by == events.WriterCompaction && !compaction.OfPerson(f) {
			// the turn that the stop has to name, or an effect
			writer = events.ServiceSource(string(by), "x")
		}
		c.Events = append(c.Events, events.New(w.id("e"), writer, ref, epoch, w.now, f))
		raw, err := json.Marshal(f)
		if err != nil {
			// facts always encode
			panic(err)
		}
		w.trace = append(w.trace, fmt.Sprintf("%d %s %s %s", c.Seq, by, f.Kind(), raw))
	}
	w.log = append(w.log, c)
	w.commits++
	whole := w.st.Clone()
	whole.Fold(c)
	for i := range c.Events {
		w.before(c.Events[i].Fact)
		w.displaces(c.Events[i].Fact, by)
		one := *c
		one.Events = c.Events[i : i+1]
		after := w.st.Clone()
		after.Fold(&one)
		after.Seq, after.Commits = w.st.Seq, w.st.Commits
		of := about{by: by, adopted: w.st.Turn != nil && w.st.Turn.ID == c.Events[i].Fact.Subject(), seq: c.Seq,
			requested: w.st.Pending.Turn != nil && w.st.Pending.Turn.ID == c.Events[i].Fact.Subject()}
		of.byPerson = of.requested && w.st.Pending.Turn.By != "" || w.takesPersonsPlace(c.Events[i].Fact)
		counted := after.Ignored.Count == w.st.Ignored.Count
		if !counted && by != events.WriterHarness {
			w.fail("%s by %s does not count: %+v", c.Events[i].Fact.Kind(), by, after.Ignored.Last)
		}
		w.st = after
		if l := w.st.LastTurn; l != nil {
			w.ended[l.ID] = l.Outcome
		}
		if counted {
			w.counted(c.Events[i].Fact, of)
			w.shown(c.Events[i].Fact)
		}
	}
	// a commit may name its deliveries, so its events differ from as many commits
	w.st = whole
	if w.st.Turn == nil || w.runs != nil && w.runs.id != w.st.Turn.ID {
		w.runs = nil
	}
	w.keepsView()
}

// stops reports whether facts are those of a person's stop.
func stops(facts []events.Fact) bool {
	s, ok := facts[len(facts)-1].(events.TurnStopRequested)
	return ok && s.Actor == events.ActorPerson
}

func (w *world) fail(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// before records what a fact is about to end.
func (w *world) before(f events.Fact) {
	if back, ok := f.(events.MessageWithdrawn); ok {
		for id, m := range w.asMessage {
			if m == back.Message {
				// the answer is taken back
				delete(w.owed, id)
				delete(w.asMessage, id)
				delete(w.settled, id)
				delete(w.reached, id)
				if w.runs != nil {
					delete(w.runs.context, id)
				}
				w.reopened++
			}
		}
	}
	if asks, ok := f.(events.PromptRequested); ok {
		w.itsOwn[asks.Prompt] = true
	}
	done, ok := f.(events.TurnCompleted)
	if !ok || w.st.Turn == nil || w.st.Turn.ID != done.Turn {
		return
	}
	if p := w.st.Pending.Stop; p != nil && p.Turn == done.Turn && p.Actor == events.ActorPerson {
		w.passed++
	}
	if w.runs != nil && w.runs.id == done.Turn {
		for p := range w.runs.context {
			w.reached[p] = true
			delete(w.owed, p)
			delete(w.output, p)
		}
	}
}

// displaces checks that a service requests no turn for a decision in place of another turn's retry, or of what follows
// a compaction.
func (w *world) displaces(f events.Fact, by events.Writer) {
	r, ok := f.(events.TurnRequested)
	if !ok || r.Cause != events.CauseAnswer || w.st.Turn != nil || by == events.WriterCompaction {
		return
	}
	p, l := w.st.Pending.Turn, w.st.LastTurn
	if p != nil && p.OfTurn != r.OfTurn && (p.Cause == events.CauseRetry || p.Cause == events.CauseResume ||
		p.Cause == events.CauseFollowUp) {
		w.fail("V15: turn %s for a decision takes the place of turn %s (%s)", r.Turn, p.ID, p.Cause)
	}
	if w.st.RetryFirst() && w.st.RetryPlanned() && l.ID != r.OfTurn {
		w.fail("V15: turn %s for a decision takes the place of the retry of turn %s", r.Turn, l.ID)
	}
}

// about is the place of a fact, and whether its turn was open or requested before it.
type about struct {
	by                 events.Writer
	seq                uint64
	adopted, requested bool
	byPerson           bool // a person requested the turn, or one in whose place the agent begins this one
}

// takesPersonsPlace reports whether a turn begins in the place of one that a person requested. An answer that waits as
// a message does not count: the person can take it back.
func (w *world) takesPersonsPlace(f events.Fact) bool {
	started, ok := f.(events.TurnStarted)
	p := w.st.Pending.Turn
	if !ok || p == nil || p.By == "" || p.ID == started.Turn {
		return false
	}
	return p.Cause != events.CauseAnswer || p.Message == "" || p.Message == started.Message ||
		!slices.ContainsFunc(w.st.Queue, func(m session.Message) bool { return m.ID == p.Message })
}

// counted checks a counted fact against V15. An adopted turn is not a new attempt, and neither is a turn that a process
// starts without a request: it delivers only the decisions that it lists.
func (w *world) counted(f events.Fact, of about) {
	w.continues(f, of.by)
	switch f := f.(type) {
	case events.PromptRequested:
		delete(w.absent, f.Prompt)
	case events.PromptUnattended:
		w.absent[f.Prompt] = true
	case events.PromptAnswered:
		w.decided(f.Prompt, f.Owed, of)
	case events.PromptRejected:
		w.decided(f.Prompt, f.Owed, of)
	case events.TurnStopRequested:
		if f.Actor == events.ActorPerson {
			w.stoppedAt, w.stopSince = of.seq, of.seq
		}
	case events.RetryAbandoned:
		w.givenUpAt = of.seq
	case events.ToolCompleted:
		w.callEnds(f.Call, of)
	case events.ToolFailed:
		w.callEnds(f.Call, of)
	case events.TurnRequested:
		w.requestedAfterStop(f, of.by)
		w.attempt("requested", f.Turn, w.st.Pending.Turn.Prompts)
		w.needless("requested", f.Cause, f.Turn, f.Message, append(f.Prompts, f.Prompt), of)
	case events.TurnStarted:
		byPerson := !w.st.Turn.Synthetic && w.st.Turn.Message != "" && w.st.Turn.Cause == events.CauseMessage
		// a person's message that a compaction came before
		sent := w.st.Turn.Cause == events.CauseFollowUp && !w.st.Turn.Synthetic && w.st.Turn.MessageSeq > w.stopSince
		// a stop that moved to this turn holds what it held
		stop := w.st.Pending.Stop
		if !of.adopted && (of.byPerson || byPerson || sent) && (stop == nil || stop.Turn != f.Turn) {
			w.stopSince, w.still = 0, false
		}
		if !of.adopted && (stop == nil || stop.Turn != f.Turn) {
			w.itsOwn[f.Turn] = true
		}
		switch t := w.st.Turn; {
		case of.adopted:
		case w.fromOld[f.Turn]:
			// an old view does not have what was decided since
		case of.requested:
			w.attempt("started", f.Turn, t.Prompts)
			w.needless("started", t.Cause, f.Turn, t.Message, ids(t.Prompts), of)
		case byPerson:
			// a person continued, in a turn that the harness began without a request
			for p, at := range w.owed {
				if at <= max(t.MessageSeq, 1) && !w.waitsElsewhere(p) {
					w.overtaken[p] = true
					delete(w.owed, p)
				}
			}
		}
	case events.SessionClosed:
		clear(w.owed)
	}
}

// decided records a decision. A process has its own decisions.
func (w *world) decided(prompt string, owed bool, of about) {
	w.settled[prompt] = true
	if of.by == events.WriterHarness {
		w.byHarness[prompt] = true
		return
	}
	delete(w.byHarness, prompt)
	w.owed[prompt] = of.seq
	if !owed {
		w.oldAt = of.seq
	}
}

func ids(list []session.Carried) (all []string) {
	for _, c := range list {
		all = append(all, c.Prompt)
	}
	return all
}

// needless checks a turn that only decisions call for: one of them is newer than a person's stop and has reached no
// agent yet. A prompt that was not decided, such as one that a message took the place of, is not judged.
func (w *world) needless(what string, cause events.Cause, id, message string, named []string, of about) {
	if r := w.st.Pending.Turn; what == "requested" && r.Prompt == "" && len(w.kids) > 0 {
		w.ofChild[id] = true
	}
	if cause != events.CauseAnswer || message != "" || w.ofChild[id] {
		return
	}
	for _, p := range named {
		if what == "requested" && w.attended(p) {
			// its asker waits for it, outside of any turn, or in a call
			continue
		}
		if q := w.st.Prompts[p]; what == "requested" && of.by == events.WriterReconciler && w.owed[p] != 0 &&
			w.owed[p] <= w.oldAt && w.alive() && w.st.Turn == nil && (q == nil || q.Epoch == w.st.Epoch) {
			// a ledger from before the rule has stored it, or one after it
			continue
		}
		since := w.stopSince
		if what == "requested" && of.by == events.WriterRetry {
			// a person resumes what waits since the stop
			since = 0
		}
		if at := max(w.owed[p], w.output[p]); at > since || p != "" && (!w.settled[p] || w.overtaken[p] || w.named[p]) {
			return
		}
	}
	w.fail("V15: turn %s is %s for decisions that the agent has, or that a person has stopped: %v", id, what, named)
}

// shown compares what people see with what agents have. A prompt shows as delivered only after a receipt, a completed
// turn with it, or the end of its call.
func (w *world) shown(f events.Fact) {
	if _, receipt := f.(events.PromptDelivered); receipt {
		return
	}
	for _, e := range w.st.Recent {
		if e.Entity == session.EntityPrompt && e.DeliveredAt.Equal(w.now) && w.owed[e.ID] != 0 {
			w.fail("prompt %s is shown as delivered by %s, and no agent has had the decision", e.ID, f.Kind())
		}
	}
}

// callEnds records the delivery of an answer as the output of its call.
func (w *world) callEnds(call string, of about) {
	for id, c := range w.callOf {
		if c == call && w.owed[id] != 0 {
			if of.by != events.WriterHarness {
				_, carried := w.st.Carries(id)
				if !carried || w.st.Runs(w.st.Turn.ID) {
					// no agent has read that output
					continue
				}
				// the next attempt of the open turn reads it
				w.output[id] = w.owed[id]
			}
			w.reached[id] = true
			delete(w.owed, id)
		}
	}
}

// attempt checks V15: every undelivered decision is listed by the attempt, waits in the queue as a message, or is in
// the view of a living process.
func (w *world) attempt(what, id string, named []session.Carried) {
	for _, c := range named {
		if w.reached[c.Prompt] && what == "requested" && w.had[c.Prompt] == 0 && !w.byCall(c.Prompt) {
			w.fail("turn %s is %s with prompt %s, which a completed turn has had", id, what, c.Prompt)
		}
	}
	for p := range w.owed {
		has := slices.ContainsFunc(named, func(c session.Carried) bool { return c.Prompt == p })
		if !has && !w.waitsElsewhere(p) {
			w.fail("V15: turn %s is %s without prompt %s, which was decided and has not reached the agent", id, what, p)
		}
	}
}

func (w *world) waitsElsewhere(prompt string) bool {
	p := w.st.Prompts[prompt]
	switch {
	case p == nil:
		return false
	case p.Delivery == events.DeliverMessage && len(w.st.Queue) > 0:
		return true
	}
	return w.attended(prompt) || w.st.Owned && p.Epoch == w.st.Epoch && w.st.Turn != nil && w.st.Turn.ID == p.Turn
}

// attended reports whether an Ask of the owner waits for a decision outside of any turn, or in a call.
func (w *world) attended(prompt string) bool {
	p := w.st.Prompts[prompt]
	return p != nil && w.st.Owned && p.Epoch == w.st.Epoch && !w.absent[prompt] &&
		(p.Turn == "" || w.st.Tools[p.Call] != nil)
}

// byCall reports whether a decision was the output of a call.
func (w *world) byCall(prompt string) bool {
	return w.callOf[prompt] != ""
}

// services lets one of them decide once.
func (w *world) decide(n int) {
	switch n {
	case 0:
		owner := reconciler.Owner{Liveness: reconciler.Alive}
		if w.dead {
			owner.Liveness = reconciler.Dead
		}
		d, err := reconciler.Decide(w.st, reconciler.Input{Now: w.now, Owner: owner, Children: w.children()},
			w.source)
		if err != nil {
			w.fail("reconciler: %v", err)
		}
		w.service(events.WriterReconciler, d.Facts...)
	case 1:
		w.service(events.WriterRetry, retry.Decide(w.st, retry.Input{Now: w.now, Progress: w.now}).Facts...)
	default:
		w.service(events.WriterCompaction,
			compaction.Decide(w.st, compaction.Input{Now: w.now, Progress: w.now}).Facts...)
	}
}
