package answer_test

import (
	"encoding/json"
	"flag"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
)

var (
	chains = flag.Int("chains", histories, "how many random histories")
	from   = flag.Uint64("from", 0, "the first seed")
)

const (
	histories = 20_000
	stepsMax  = 44
	triesMax  = 3
	restMax   = 400
	restIdle  = 4

	// at least one in so many histories has each act
	playedOneIn = 200
)

// TestAnswersReachTheAgent plays random sequences of questions, answers, failures, crashes, compactions, retries and
// stops. Each attempt of a turn lists every decision that the agent has not received (V15), once. After the last
// failure, every decision reaches the agent without another act of a person: it is in the context of a completed turn,
// or it is the output of its call. Decisions older than a person's stop, or older than a failure without a retry, wait
// until a person continues.
func TestAnswersReachTheAgent(t *testing.T) {
	var decided, resumed int
	all, played := seen{}, map[string]int{}
	quiet, possible := acts(), append(acts(), troubles()...)
	for seed := *from; seed < *from+uint64(*chains); seed++ {
		w := newWorld(seed)
		w.played = played
		may := quiet
		if w.chance(2) {
			may = possible
		}
		for range stepsMax {
			w.step(may)
			w.several += max(0, min(1, len(w.owed)-1))
		}
		decided += len(w.owed) + len(w.reached)
		if w.st.LastTurn != nil && w.st.LastTurn.Outcome == session.OutcomeInterrupted {
			resumed++
		}
		w.rest(false)
		for p, at := range w.owed {
			if w.st.Closed == nil && at > w.heldSince() {
				w.fail("prompt %s was decided at %d, all has come to rest, and no turn is requested for that", p, at)
			}
		}
		w.rest(true)
		for p := range w.owed {
			w.fail("prompt %s was decided, all has come to rest, and no agent has had the decision", p)
		}
		all.add(w.seen)
		if len(w.wrong) > 0 {
			t.Fatalf("seed %d:\n%s\n\n%s", seed, strings.Join(w.trace, "\n"), strings.Join(w.wrong, "\n"))
		}
	}
	t.Logf("%d decisions, %d histories that ended in a crash, %+v", decided, resumed, all)
	t.Logf("acts that had an effect: %v", played)
	for _, a := range possible {
		if played[a.name] < *chains/playedOneIn {
			t.Errorf("the act %q had an effect %d times in %d histories", a.name, played[a.name], *chains)
		}
	}
	if decided < *chains*4/5 || resumed < *chains/100 || !all.enough(*chains) {
		t.Error("the histories do not have what this test is about")
	}
}

func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// act is something that happens in a history. It has no effect in a world in which it is not possible.
type act struct {
	name   string
	weight int // of the sum of all weights
	do     func(*world)
}

// acts returns what may happen in a step. The test fails if one of them never has an effect.
func acts() []act {
	return []act{
		{"dismiss", 12, (*world).dismisses},
		{"end outside", 12, (*world).endsOutside},
		{"stop", 40, (*world).stops},
		{"retry now", 18, (*world).retriesNow},
		{"resume", 18, (*world).resumes},
		{"compact", 18, (*world).compacts},
		{"repeat a receipt", 22, (*world).repeats},
		{"ask again", 22, (*world).asksAgain},
		{"give up", 44, (*world).givesUp},
		{"late receipt", 44, (*world).receivesLate},
		{"policy", 7, (*world).decidesItself},
		{"end many", 4, (*world).endsMany},
		{"ask many", 6, (*world).asksMany},
		{"by itself", 44, (*world).byItself},
		{"ask", 66, (*world).ask},
		{"settle", 88, (*world).settlePrompt},
		{"read or end", 44, (*world).acts},
		{"crash", 22, (*world).crash},
		{"restart", 22, (*world).restart},
		{"send", 22, (*world).send},
		{"release", 7, (*world).releases},
		{"withdraw a message", 7, func(w *world) { w.withdraws("") }},
		{"take an answer back", 110, func(w *world) { w.withdraws("answer-") }},
		{"claim again", 18, (*world).claimsAgain},
		{"take an old view", 60, (*world).takesOld},
		{"start a child", 14, (*world).startsChild},
		{"move a child", 30, (*world).movesChild},
		{"end the call of a child", 60, (*world).endsChildCall},
		{"hold or resume after a crash", 12, (*world).configures},
		{"work", 180, func(w *world) { w.works(); w.decide(w.rng.IntN(3)) }},
	}
}

// step plays one act that has an effect, and counts it. It gives up after a few acts without an effect.
func (w *world) step(all []act) {
	w.now = w.now.Add(time.Duration(w.rng.IntN(5000)) * time.Millisecond)
	for range triesMax {
		if w.st.Closed != nil || w.plays(all) {
			return
		}
	}
}

// plays plays one act, and reports whether it had an effect.
func (w *world) plays(all []act) bool {
	sum := 0
	for i := range all {
		sum += all[i].weight
	}
	n, i := w.rng.IntN(sum), 0
	for ; n >= all[i].weight; i++ {
		n -= all[i].weight
	}
	before, dead, inc := w.commits, w.dead, w.inc
	all[i].do(w)
	if w.commits == before && w.dead == dead && w.inc == inc {
		return false
	}
	w.played[all[i].name]++
	return true
}

func (w *world) alive() bool { return w.st.Owned && !w.dead }

// ask makes the living process ask, inside or outside its turn, with or without a call.
func (w *world) ask() {
	if !w.alive() || len(w.st.PendingPrompts()) > 2 {
		return
	}
	f := events.PromptRequested{Prompt: w.id("p"), PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult}
	f.OnOwnerLoss = events.LossKeep
	switch w.rng.IntN(3) {
	case 0:
		f.Delivery = events.DeliverMessage
	case 1:
		f.Delivery = events.DeliverCallback
	}
	if w.chance(4) {
		f.Blocking = new(false)
	}
	if w.chance(6) {
		f.Deadline = w.now.Add(time.Duration(w.rng.IntN(60)) * time.Second)
		w.limited++
	}
	var facts []events.Fact
	if w.runs != nil {
		f.Turn = w.runs.id
		if w.chance(2) {
			f.Call = w.id("c")
			w.callOf[f.Prompt] = f.Call
			started := events.ToolStarted{Call: f.Call, Turn: f.Turn, Name: "ask", Background: w.chance(2)}
			if started.Background {
				w.outside++
			}
			facts = append(facts, started)
		}
	} else {
		if !w.chance(4) {
			return
		}
		w.outside++
	}
	w.process(append(facts, f)...)
}

// settlePrompt answers or rejects one of the waiting prompts as a person.
func (w *world) settlePrompt() {
	ids := w.st.PendingPrompts()
	if len(ids) == 0 {
		return
	}
	id := ids[w.rng.IntN(len(ids))]
	var d session.Decision
	var err error
	if w.chance(4) {
		d, err = w.st.Reject(request.Reject{Ref: ref, Prompt: id, Text: "no", By: "ada"}, w.source)
	} else {
		d, err = w.st.Answer(request.Answer{Ref: ref, Prompt: id, By: "ada"}, w.source)
	}
	if err != nil {
		w.fail("prompt %s waits and cannot be decided: %v", id, err)
		return
	}
	for _, f := range d.Facts {
		if m, ok := f.(events.MessageAccepted); ok {
			w.asMessage[id] = m.Message
		}
	}
	w.person(events.WriterLedger, w.asOld(d.Facts)...)
}

// dismisses dismisses one of the waiting prompts as a person. A dismissal does not continue a stopped session.
func (w *world) dismisses() {
	ids := w.st.PendingPrompts()
	if len(ids) == 0 {
		return
	}
	id := ids[w.rng.IntN(len(ids))]
	d, err := w.st.Dismiss(request.Dismiss{Ref: ref, Prompt: id, By: "ada"}, w.source)
	if err != nil {
		w.fail("prompt %s waits and cannot be dismissed: %v", id, err)
		return
	}
	w.dismissed++
	w.continued = 0
	w.person(events.WriterLedger, d.Facts...)
}

// acts advances the turn of the living process: it reads a decision, or ends the turn with success or failure.
func (w *world) acts() {
	t := w.runs
	if !w.alive() || t == nil {
		return
	}
	w.takeIn(t)
	if w.chance(2) {
		w.ends(t, w.rng.IntN(6))
	}
}

// takeIn adds the decisions about the running turn's own prompts to its context and appends the receipts. A call ends
// with its decision as output.
func (w *world) takeIn(t *turn) {
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		p := w.st.Prompts[id]
		if p == nil || p.Status == session.Awaiting || p.Epoch != w.st.Epoch || w.absent[id] || w.chance(3) {
			continue
		}
		w.receives(id)
	}
}

// ends ends the running turn. A process that has not read a stop yet ends its turn as if there was none.
func (w *world) ends(t *turn, how int) {
	if p := w.st.Pending.Stop; p != nil && p.Turn == t.id && !w.chance(3) {
		w.process(events.TurnStopped{Turn: t.id, Actor: p.Actor})
		return
	}
	kinds := []string{"rate_limit", "authentication", "context_exceeded"}
	if how < len(kinds) {
		w.process(events.TurnFailed{Turn: t.id, Error: events.Failure{Kind: kinds[how], Text: "x"}})
		return
	}
	if w.st.BlockedBy() != "" {
		// a program that waits for its answer does not complete its turn
		return
	}
	w.process(events.TurnCompleted{Turn: t.id})
}

func (w *world) crash() {
	if w.alive() {
		w.dead, w.runs = true, nil
	}
}

// restart begins a new process. It claims the session at once and adopts or leaves the open turn, or it waits for work.
func (w *world) restart() {
	if w.alive() || w.st.Closed != nil {
		return
	}
	w.inc++
	w.dead = w.st.Owned
	if w.chance(2) || !w.st.Claimable(strconv.Itoa(w.inc)) {
		return
	}
	facts := []events.Fact{events.SessionClaimed{Incarnation: strconv.Itoa(w.inc), Exclusive: new(true)}}
	t := w.st.Turn
	if t != nil && w.chance(2) {
		facts = append(facts, events.TurnStarted{Turn: t.ID, Cause: t.Cause, Synthetic: t.Synthetic, OfTurn: t.OfTurn,
			Message: t.Message})
	}
	whole := len(facts) > 1
	part := w.rng.IntN(partsN)
	for _, id := range slices.Sorted(maps.Keys(w.st.Tools)) {
		if c := w.st.Tools[id]; part == partAll || part == partBackground && c.Background || w.chance(3) {
			facts = append(facts, events.ToolStarted{Call: id, Turn: c.Turn, Name: c.Name, Background: c.Background})
		}
	}
	for _, id := range w.st.PendingPrompts() {
		c := w.st.Tools[w.st.Prompts[id].Call]
		apart := c != nil && c.Background
		if part == partAll || part == partBackground && apart && w.chance(2) || part == partSome && w.chance(3) {
			facts = append(facts, w.repeated(id))
			whole = whole || !apart
		}
	}
	w.dead = false
	w.process(facts...)
	defer w.asksNothing()
	if t == nil || w.st.Turn == nil {
		return
	}
	if w.st.Turn.Epoch == w.st.Epoch && whole {
		w.runs = w.reads(t.ID, t.Prompts)
	} else if len(facts) > 1 {
		w.apartOnly++
	}
	w.notRun = ""
	if !whole {
		w.notRun = t.ID
	}
}

// A process that restarts adopts everything, only what is in the background, or some of it.
const (
	partAll = iota
	partBackground
	partSome
	partsN
)

// repeated returns the request of a waiting prompt as it was last appended.
func (w *world) repeated(id string) events.Fact {
	var last events.PromptRequested
	for _, c := range w.log {
		for i := range c.Events {
			if f, ok := c.Events[i].Fact.(events.PromptRequested); ok && f.Prompt == id {
				last = f
			}
		}
	}
	return last
}

// byItself makes the living process start a turn without a request, with a person's message or without one. The new
// turn replaces the turn that the process runs; the process keeps that turn's receipts.
func (w *world) byItself() {
	if !w.alive() || w.st.Turn != nil && w.runs == nil || w.st.BlockedBy() != "" && w.chance(2) {
		return
	}
	if len(w.owed) > 0 {
		w.itself++
	}
	f := events.TurnStarted{Turn: w.id("t"), Cause: events.CauseMessage, Synthetic: !w.chance(3)}
	var facts []events.Fact
	if w.chance(4) {
		f.Synthetic, f.Message = false, w.id("m")
		facts = append(facts, events.MessageAccepted{Message: f.Message, Content: json.RawMessage(`"x"`)})
	}
	// it takes a queued message without a request
	if q := w.st.Queue; len(q) > 0 && !q[0].Synthetic && w.chance(3) {
		f.Synthetic, f.Message, facts = false, q[0].ID, nil
	}
	if t := w.runs; t != nil {
		for p := range t.context {
			if w.had[p] == w.st.Epoch {
				w.reached[p] = true
				delete(w.owed, p)
			}
		}
	}
	w.process(append(facts, f)...)
	w.runs = &turn{id: f.Turn, context: map[string]bool{}}
}

// decidesItself makes the living process decide one of its own prompts, by a policy.
func (w *world) decidesItself() {
	ids := w.st.PendingPrompts()
	if !w.alive() || len(ids) == 0 {
		return
	}
	id := ids[w.rng.IntN(len(ids))]
	if w.st.Prompts[id].Epoch == w.st.Epoch {
		w.policies++
		w.process(events.PromptAnswered{Prompt: id, By: "policy"})
	}
}

// receivesLate returns an Ask after the turn that asked has ended. If that turn completed and no other one is open, its
// agent has the answer.
func (w *world) receivesLate() {
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		p := w.st.Prompts[id]
		over := p.Turn != "" && w.ended[p.Turn] != "" && w.st.Tools[p.Call] == nil
		if !w.alive() || !over || p.Status == session.Awaiting || p.Epoch != w.st.Epoch || w.owed[id] == 0 {
			continue
		}
		w.had[id] = w.st.Epoch
		if w.ended[p.Turn] == session.OutcomeCompleted {
			w.late++
		}
		switch {
		case w.runs != nil:
			// the log has the receipt in this turn
			w.runs.context[id] = true
		case w.ended[p.Turn] == session.OutcomeCompleted && w.st.Turn == nil && !w.brought(id):
			w.reached[id] = true
			delete(w.owed, id)
		}
		w.process(events.PromptDelivered{Prompt: id})
		return
	}
}

// endsMany makes the living process end more calls than the session remembers.
func (w *world) endsMany() {
	if !w.alive() || w.runs == nil {
		return
	}
	w.crowds++
	var facts []events.Fact
	for range session.RecentMax + 1 {
		call := w.id("c")
		facts = append(facts, events.ToolStarted{Call: call, Turn: w.runs.id, Name: "bash"},
			events.ToolCompleted{Call: call})
	}
	w.process(facts...)
}

// endsOutside makes the living process end more calls in the background than the session remembers, outside of turns.
func (w *world) endsOutside() {
	if !w.alive() || w.runs != nil {
		return
	}
	w.apart++
	var facts []events.Fact
	for range session.RecentMax + 1 {
		call := w.id("c")
		facts = append(facts, events.ToolStarted{Call: call, Name: "bash", Background: true},
			events.ToolCompleted{Call: call})
	}
	w.process(facts...)
}

// releases makes the living process release the session with everything that is open.
func (w *world) releases() {
	if w.alive() {
		w.process(events.SessionReleased{})
		w.runs = nil
	}
}

// withdraws takes back a message as a person, of those whose id begins so. A message may carry an answer. It returns
// false without such a message.
func (w *world) withdraws(prefix string) bool {
	var ids []string
	for _, m := range w.st.Queue {
		if strings.HasPrefix(m.ID, prefix) {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return false
	}
	o, err := compaction.Withdraw(w.st,
		request.Withdraw{Ref: ref, Message: ids[w.rng.IntN(len(ids))], By: "ada"}, w.now)
	if err == nil {
		if w.stopSince > 0 {
			w.released++
		}
		w.person(events.WriterCompaction, o.Facts...)
	}
	return true
}

// reads returns a turn that has the given answers in its context. An answer to the turn's own question without a
// receipt returns to the process that asks again, and is not given with the turn.
func (w *world) reads(id string, given []session.Carried) *turn {
	t := &turn{id: id, context: map[string]bool{}}
	for _, c := range given {
		if p := w.st.Prompts[c.Prompt]; p == nil || p.Turn != id {
			t.context[c.Prompt] = true
		}
	}
	return t
}

func (w *world) send() {
	o, err := compaction.Send(w.st,
		request.Send{Ref: ref, Message: w.id("m"), Content: json.RawMessage(`"x"`), By: "ada"}, w.now, w.source)
	if err == nil {
		w.person(events.WriterCompaction, o.Facts...)
	}
}

// retriesNow, resumes and compacts send these requests of a person.
func (w *world) retriesNow() {
	if d, err := retry.Now(w.st); err == nil {
		w.person(events.WriterRetry, d.Facts...)
	}
}

func (w *world) resumes() {
	if d, err := retry.Resume(w.st); err == nil {
		w.person(events.WriterRetry, d.Facts...)
	}
}

// configures changes as a person whether an interrupted turn waits for a person.
func (w *world) configures() {
	resume := events.ResumeHold
	if w.st.Policy.Resume == resume {
		resume = events.ResumeAuto
	}
	patch := &events.PolicyPatch{Resume: events.Set(resume)}
	d, err := w.st.Configure(request.Configure{Ref: ref, Policy: patch, By: "ada"})
	if err == nil {
		w.person(events.WriterLedger, d.Facts...)
	}
}

func (w *world) compacts() {
	if o, err := compaction.Compact(w.st, request.Compact{Ref: ref, By: "ada"}, w.now); err == nil {
		w.person(events.WriterCompaction, o.Facts...)
	}
}

// works takes the pending work, and claims the session first if it has no owner. A turn that the process runs or has
// adopted ends before the next one starts.
func (w *world) works() {
	var facts []events.Fact
	switch {
	case w.dead && w.st.Owned:
		return
	case !w.st.Owned && !w.st.Claimable(strconv.Itoa(w.inc)):
		w.inc++
		return
	case !w.st.Owned:
		facts = append(facts, events.SessionClaimed{Incarnation: strconv.Itoa(w.inc), Exclusive: new(true)})
	}
	c, p, t := w.st.Compaction, w.st.Pending, w.st.Turn
	free := t == nil || t.Epoch < w.st.Epoch || !w.st.Owned
	switch {
	case p.Stop != nil && t != nil && p.Stop.Turn == t.ID && w.st.Owned && t.Epoch == w.st.Epoch:
		w.process(events.TurnStopped{Turn: t.ID, Actor: p.Stop.Actor})
	case p.Stop != nil && w.st.Owned && (t == nil || t.ID != p.Stop.Turn):
		w.process(events.TurnStopped{Turn: p.Stop.Turn, Actor: p.Stop.Actor})
	case p.Compaction != nil && free:
		w.dead = false
		w.process(append(facts, events.CompactionStarted{Compaction: p.Compaction.ID})...)
	case c != nil && c.State == session.CompactionRunning && w.alive() && c.Epoch == w.st.Epoch:
		w.process(events.CompactionCompleted{Compaction: c.ID, UsedAfter: 10})
	case p.Turn != nil && (c == nil || c.State != session.CompactionRunning) && free:
		work, err := w.st.WorkWhole(w.source)
		if err != nil {
			w.fail("work: %v", err)
			return
		}
		w.takes(facts, work.Turn)
	}
}

func (w *world) takes(claim []events.Fact, r *session.WorkTurn) {
	var ids []string
	given := map[string]bool{}
	for _, p := range r.Prompts {
		ids, given[p.Prompt] = append(ids, p.Prompt), true
	}
	prior := w.runs
	w.dead = false
	if w.deaf && r.Cause == events.CauseAnswer {
		own := w.id("t")
		w.process(append(claim, events.TurnStarted{Turn: own, Cause: events.CauseMessage, Synthetic: !w.chance(3)})...)
		w.runs = &turn{id: own, context: map[string]bool{}}
		return
	}
	byPerson := !r.Synthetic &&
		(r.Cause == events.CauseMessage || r.Cause == events.CauseFollowUp && r.Message != "" && r.OfTurn == "")
	w.process(append(claim, events.TurnStarted{Turn: r.Turn, Cause: r.Cause, Synthetic: !byPerson, OfTurn: r.OfTurn,
		Message: r.Message,
		Prompt:  r.Prompt, Prompts: ids, Attempt: r.Attempt})...)
	if w.st.Turn == nil || w.st.Turn.ID != r.Turn {
		return
	}
	w.runs = &turn{id: r.Turn, context: given}
	// an answer that became a message is the message
	if r.Message != "" && strings.HasPrefix(r.Message, "answer-") {
		for _, c := range w.st.Turn.Prompts {
			w.runs.context[c.Prompt] = true
		}
		w.once(r.Message)
	}
	// the same process continues: it remembers
	if prior != nil && prior.id == r.OfTurn {
		maps.Copy(w.runs.context, prior.context)
	}
}

// once fails if an answer that its asker has received, or that a completed turn has had, is also handed out as a
// message.
func (w *world) once(message string) {
	for p := range w.settled {
		if w.had[p] == 0 && !w.reached[p] {
			continue
		}
		if message == w.asMessage[p] {
			w.fail("the answer to prompt %s is handed out as message %s, and the agent has had it", p, message)
		}
	}
}

// heldSince returns the place in the log before which decisions wait for a person: the end of a turn without a retry,
// the end of its retry, a person's stop, the bound on turns for decisions, or a decision of a ledger from before the
// rule.
func (w *world) heldSince() uint64 {
	l := w.st.LastTurn
	switch {
	case w.st.Held(), w.continued >= session.ContinuationsMax:
		return w.st.Seq
	case l == nil || l.Outcome == session.OutcomeCompleted:
		return max(w.stopSince, w.oldAt)
	case l.Actor == events.ActorPerson:
		return max(w.stoppedAt, w.givenUpAt, w.oldAt)
	}
	return max(l.Seq, w.givenUpAt, w.stoppedAt, w.oldAt)
}

// rest stops all failures. People answer every prompt, and continue what they stopped if continues is set; one process
// lives, takes all work and completes it.
func (w *world) rest(continues bool) {
	idle := 0
	for i := range restMax {
		if w.st.Closed != nil || len(w.owed) == 0 && i > 0 || idle > restIdle && !continues {
			return
		}
		idle++
		before := len(w.log)
		w.now = w.now.Add(70 * time.Second)
		if w.dead || !w.st.Owned && w.st.Turn == nil && w.st.Pending.Turn == nil {
			w.decide(0)
		}
		for len(w.st.PendingPrompts()) > 0 {
			before := len(w.log)
			w.settlePrompt()
			if len(w.log) == before {
				break
			}
		}
		w.works()
		if t := w.runs; t != nil && w.alive() {
			w.takeIn(t)
			w.ends(t, len("completes"))
		} else if t := w.st.Turn; t != nil && w.alive() && t.Epoch == w.st.Epoch && t.ID != w.notRun {
			w.runs = w.reads(t.ID, t.Prompts)
		}
		for _, k := range w.kids {
			k.moves()
		}
		w.restOutside()
		for n := range 3 {
			w.decide(n)
		}
		if len(w.log) != before || slices.ContainsFunc(w.kids, func(k *kid) bool { return !k.settled() }) {
			idle = 0
		}
		if continues && idle > restIdle && w.st.Turn == nil && w.st.Pending.Turn == nil &&
			w.st.Pending.Compaction == nil {
			// a person continues
			w.send()
		}
	}
}

// restOutside delivers what was decided outside of the running turn: Ask returns, and the call that waited ends with
// the answer. Everything else that the process adopted ends.
func (w *world) restOutside() {
	if !w.alive() || w.runs != nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		p := w.st.Prompts[id]
		c := w.st.Tools[p.Call]
		switch {
		case p.Status == session.Awaiting || p.Epoch != w.st.Epoch || w.absent[id]:
			continue
		case c != nil && c.Epoch == w.st.Epoch:
			w.process(events.ToolCompleted{Call: p.Call, Output: json.RawMessage(`"answered"`)})
		case p.Turn == "":
			w.process(events.PromptDelivered{Prompt: id})
		default:
			continue
		}
		w.reached[id] = true
		delete(w.owed, id)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.st.Tools)) {
		switch c := w.st.Tools[id]; {
		case c.Epoch != w.st.Epoch, c.Background:
			// a server in the background has no end of its own
		case !w.unread(id):
			w.process(events.ToolCompleted{Call: id})
			return
		case w.st.Turn != nil:
			// it adopted the call without its turn: no other turn can bring the decision
			w.asksAgain()
			return
		}
	}
}
