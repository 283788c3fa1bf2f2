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
	stoppedAt uint64 // place of a person's last stop
	givenUpAt uint64 // place where a retry was given up last
	itself    int    // turns that a process began without a request while decisions were undelivered
	trace     []string
	wrong     []string
}

// turn is a process's memory of its running turn: the answers in the model's context.
type turn struct {
	id      string
	context map[string]bool
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 15)), now: begin, st: session.New(ref), inc: 1,
		owed:    map[string]uint64{},
		reached: map[string]bool{}, had: map[string]uint64{}, overtaken: map[string]bool{}}
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
	w.commit(by, events.PersonSource("ada"), w.st.Epoch, facts)
}

func (w *world) commit(by events.Writer, source string, epoch uint64, facts []events.Fact) {
	if len(facts) == 0 {
		return
	}
	w.now = w.now.Add(10 * time.Millisecond)
	c := &events.Commit{Ref: ref, Writer: by, Seq: uint64(len(w.log) + 1), At: w.now}
	for _, f := range facts {
		c.Events = append(c.Events, events.New(w.id("e"), source, ref, epoch, w.now, f))
		raw, err := json.Marshal(f)
		if err != nil {
			panic(err) // facts always encode
		}
		w.trace = append(w.trace, fmt.Sprintf("%d %s %s %s", c.Seq, by, f.Kind(), raw))
	}
	w.log = append(w.log, c)
	for i := range c.Events {
		w.before(c.Events[i].Fact)
		one := *c
		one.Events = c.Events[i : i+1]
		after := w.st.Clone()
		after.Fold(&one)
		after.Seq, after.Commits = w.st.Seq, w.st.Commits
		of := about{adopted: w.st.Turn != nil && w.st.Turn.ID == c.Events[i].Fact.Subject(), seq: c.Seq,
			requested: w.st.Pending.Turn != nil && w.st.Pending.Turn.ID == c.Events[i].Fact.Subject()}
		counted := after.Ignored.Count == w.st.Ignored.Count
		if !counted && by != events.WriterHarness {
			w.fail("%s by %s does not count: %+v", c.Events[i].Fact.Kind(), by, after.Ignored.Last)
		}
		w.st = after
		if counted {
			w.counted(c.Events[i].Fact, of)
			w.shown(c.Events[i].Fact)
		}
	}
	w.st.Seq, w.st.Commits = c.Seq, uint64(len(w.log))
	if w.st.Turn == nil || w.runs != nil && w.runs.id != w.st.Turn.ID {
		w.runs = nil
	}
}

func (w *world) fail(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// before records what a fact is about to end.
func (w *world) before(f events.Fact) {
	if back, ok := f.(events.MessageWithdrawn); ok {
		for id, p := range w.st.Prompts {
			if events.DeriveID("answer", w.st.Session, id, strconv.FormatUint(p.Seq, 10)) == back.Message {
				delete(w.owed, id) // the answer is taken back
			}
		}
	}
	done, ok := f.(events.TurnCompleted)
	if !ok || w.st.Turn == nil || w.st.Turn.ID != done.Turn {
		return
	}
	if w.runs != nil && w.runs.id == done.Turn {
		for p := range w.runs.context {
			w.reached[p] = true
			delete(w.owed, p)
		}
	}
}

// about is the place of a fact, and whether its turn was open or requested before it.
type about struct {
	seq                uint64
	adopted, requested bool
}

// counted checks a counted fact against V15. An adopted turn is not a new attempt, and neither is a turn that a process
// starts without a request: it delivers only the decisions that it lists.
func (w *world) counted(f events.Fact, of about) {
	switch f := f.(type) {
	case events.PromptAnswered:
		w.owed[f.Prompt] = of.seq
	case events.PromptRejected:
		w.owed[f.Prompt] = of.seq
	case events.TurnStopRequested:
		if f.Actor == events.ActorPerson {
			w.stoppedAt = of.seq
		}
	case events.RetryAbandoned:
		w.givenUpAt = of.seq
	case events.ToolCompleted:
		w.callEnds(f.Call)
	case events.ToolFailed:
		w.callEnds(f.Call)
	case events.TurnRequested:
		w.attempt("requested", f.Turn, w.st.Pending.Turn.Prompts)
	case events.TurnStarted:
		switch t := w.st.Turn; {
		case of.adopted:
		case of.requested:
			w.attempt("started", f.Turn, t.Prompts)
		case !t.Synthetic && t.Cause == events.CauseMessage:
			for p, at := range w.owed { // a person continued, in a turn that the harness began without a request
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
func (w *world) callEnds(call string) {
	for _, e := range w.st.Recent {
		if e.Entity == session.EntityPrompt && e.Call == call && w.owed[e.ID] != 0 {
			w.reached[e.ID] = true
			delete(w.owed, e.ID)
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
	return w.st.Owned && p.Epoch == w.st.Epoch &&
		(p.Turn == "" || w.st.Tools[p.Call] != nil || w.st.Turn != nil && w.st.Turn.ID == p.Turn)
}

// byCall reports whether a decision was the output of a call.
func (w *world) byCall(prompt string) bool {
	e, ok := w.st.Ended(session.EntityPrompt, prompt)
	return ok && e.Call != ""
}

// services lets one of them decide once.
func (w *world) decide(n int) {
	switch n {
	case 0:
		owner := reconciler.Owner{Life: reconciler.Alive}
		if w.dead {
			owner.Life = reconciler.Dead
		}
		d, err := reconciler.Decide(w.st, reconciler.Input{Now: w.now, Owner: owner}, w.source)
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
