package harness

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// forWorkOf returns the turn that this process leaves to its Work.
func forWorkOf(s *Session) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forWork
}

// TestTakenAgainWithItsTurn: a program opens, or claims, a session that it has, while it runs the open turn. The turn
// is not left to Work: a handler would run it a second time.
func TestTakenAgainWithItsTurn(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	if _, err := x.h.Open(x.ctx, "s", OpenOptions{}); err != nil || forWorkOf(x.s) != "" {
		t.Errorf("opened: %q is left to Work, %v", forWorkOf(x.s), err)
	}
	_, err := x.h.Claim(x.ctx, "s", Adopt{Turn: true, ForWork: true})
	if err != nil || forWorkOf(x.s) != "" {
		t.Errorf("claimed: %q is left to Work, %v", forWorkOf(x.s), err)
	}
}

// TestAdoptedLaterForWork: a process claims a session, and adopts its open turn for Work by a second claim. The turn is
// left to Work: under the epoch of this process, recovery would not handle it either.
func TestAdoptedLaterForWork(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	h, err := Connect(x.ctx, Config{ID: x.h.cfg.ID, URL: x.h.cfg.URL, TTL: x.h.cfg.TTL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Abandon)
	s, err := h.Claim(x.ctx, "s")
	if err != nil || forWorkOf(s) != "" {
		t.Fatalf("claimed: %v", err)
	}
	if _, err := h.Claim(x.ctx, "s", Adopt{Turn: true, ForWork: true}); err != nil || forWorkOf(s) != "t1" {
		t.Errorf("adopted: %q is left to Work, %v", forWorkOf(s), err)
	}
}

// TestReclaimingOnlyItsOwn: a process that starts over takes a session back only if no other process had it since, and
// continues only the items of its own epoch.
func TestReclaimingOnlyItsOwn(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.appendUnnudged(events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 1, Limit: 2})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.s.mu.Lock()
	as := *x.s.st
	x.s.mu.Unlock()
	next := &term{incarnation: "999999", ctx: x.ctx}
	for name, c := range map[string]struct {
		change func(st *session.State)
		err    error
		facts  int
	}{
		"as it was": {change: func(*session.State) {}, facts: 2},
		"released": {change: func(st *session.State) { st.Owned, st.Left = false, session.LeftReleased },
			err: ErrReleased},
		"orphaned": {change: func(st *session.State) { st.Owned, st.Left = false, session.LeftOrphaned },
			err: ErrFenced},
		"released by another process": {change: func(st *session.State) {
			st.Owned, st.Left = false, session.LeftReleased
			st.Epoch++
		}, err: ErrFenced},
		"of a later epoch":       {change: func(st *session.State) { st.Epoch++ }, err: ErrFenced},
		"of another incarnation": {change: func(st *session.State) { st.Incarnation = "12345" }, err: ErrFenced},
		"a turn that it has not": {change: func(st *session.State) {
			turn := *st.Turn
			turn.Epoch--
			st.Turn = &turn
		}, facts: 1},
		"a compaction that it runs": {change: func(st *session.State) { runCompaction(st, st.Epoch) }, facts: 3},
		"a compaction that it left": {change: func(st *session.State) { runCompaction(st, st.Epoch-1) }, facts: 2},
		"a compaction that waits": {change: func(st *session.State) {
			runCompaction(st, st.Epoch)
			st.Compaction.State = as.Compaction.State
		}, facts: 2},
	} {
		st := as
		c.change(&st)
		x.s.mu.Lock()
		was := x.s.st
		x.s.st = &st
		x.s.mu.Unlock()
		facts, _, err := x.s.reclaiming(next, x.h.term, as.Epoch, as.Epoch)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || len(facts) != c.facts {
			t.Errorf("%s: %v, %v, want %d facts, %v", name, facts, err, c.facts, c.err)
		}
		x.s.mu.Lock()
		x.s.st = was
		x.s.mu.Unlock()
	}
}

func runCompaction(st *session.State, epoch uint64) {
	c := *st.Compaction
	c.State, c.Epoch = session.CompactionRunning, epoch
	st.Compaction = &c
}

// forgetful replaces the endings that the session keeps by as many of other items, of commits from seq on.
func (x *inside) forgetful(seq uint64) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.st.Recent = nil
	for i := range session.RecentMax {
		x.s.st.Recent = append(x.s.st.Recent, session.Ending{Entity: session.EntityTool, ID: fmt.Sprint("other", i),
			Outcome: session.OutcomeCompleted, Seq: seq})
	}
}

// TestFoundOfManyEndings: a turn has more endings than the session keeps. A step that is open is found as open, and is
// not run again; one that has ended is found in the log.
func TestFoundOfManyEndings(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	open, ended := nameID(nameOfStep, "open", "message m1", 1), nameID(nameOfStep, "ended", "message m1", 1)
	x.mustRelay(events.ToolStarted{Call: open, Turn: "t1", Name: "open"},
		events.ToolStarted{Call: ended, Turn: "t1", Name: "ended"}, events.ToolCompleted{Call: ended})
	// it ends the open call, too
	if err := turn.Complete(x.ctx, ""); err != nil {
		t.Fatal(err)
	}
	// the second turn is of the same message, and began after the step
	turn = x.turn(StartOptions{ID: "t2", Message: "m1"})
	x.mustRelay(events.ToolStarted{Call: open + "2", Turn: "t2", Name: "open"})
	x.forgetful(x.s.State().Seq - 2)
	if _, r, err := turn.find(x.ctx, nameOfStep, "ended", 1); err != nil || !r.ended {
		t.Errorf("the step of the turn before: %+v, %v", r, err)
	}
	x.s.mu.Lock()
	x.s.st.Tools[nameID(nameOfStep, "now", "message m1", 1)] = x.s.st.Tools[open+"2"]
	x.s.mu.Unlock()
	x.forgetful(math.MaxInt64)
	if _, r, err := turn.find(x.ctx, nameOfStep, "now", 1); err != nil || !r.open {
		t.Errorf("the open step: %+v, %v", r, err)
	}
}

// TestAPromptIsNoStep: a prompt has the id of a step, which an agent is free to give it. Its decision is not the result
// of the step.
func TestAPromptIsNoStep(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	p := prompted("t1", events.DeliverCallback)
	p.Prompt = nameID(nameOfStep, "deploy", "message m1", 1)
	find := func(when string) {
		t.Helper()
		if _, r, err := turn.find(x.ctx, nameOfStep, "deploy", 1); err != nil || r.open || r.ended {
			t.Errorf("%s: the step is %+v, %v", when, r, err)
		}
	}
	x.mustRelay(p)
	find("open")
	x.appendUnnudged(events.WriterLedger,
		events.PromptAnswered{Prompt: p.Prompt, By: "ada", Answers: []events.Answer{{Question: "q", Text: "red"}}})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.s.mu.Lock()
	delete(x.s.st.Prompts, p.Prompt)
	x.s.mu.Unlock()
	if _, ended := x.s.State().Ended(session.EntityPrompt, p.Prompt); !ended {
		t.Error("the session has no ending of the prompt")
	}
	find("answered")
	x.forgetful(math.MaxInt64)
	find("answered long ago")
}

// TestEndsWith: Asks return a settlement from after the end of the session only where the release or the close made it,
// and never an answer.
func TestEndsWith(t *testing.T) {
	for _, c := range []struct {
		w    waiter
		why  error
		want bool
	}{
		{waiter{seq: 5, answer: Answer{Status: session.Withdrawn}}, ErrReleased, true},
		{waiter{seq: 5, answer: Answer{Status: session.Withdrawn}}, ErrSessionClosed, true},
		{waiter{seq: 5, answer: Answer{Status: session.Withdrawn}}, ErrLeaseLost, false},
		{waiter{seq: 5, answer: Answer{Status: session.Withdrawn}}, ErrFenced, false},
		{waiter{seq: 5, answer: Answer{Status: session.Answered}}, ErrReleased, false},
		{waiter{answer: Answer{Status: session.Withdrawn}}, ErrReleased, false},
	} {
		if got := c.w.endsWith(c.why); got != c.want {
			t.Errorf("%s at %d, %v: %t", c.w.answer.Status, c.w.seq, c.why, got)
		}
	}
}

// TestNamedByID: a question without a text of its own is one that was asked before. A permission is not: the text of
// another kind of prompt would be shown for it.
func TestNamedByID(t *testing.T) {
	for _, c := range []struct {
		p    Prompt
		want bool
	}{
		{Prompt{ID: "p1"}, true},
		{Prompt{ID: "p1", Kind: events.PromptQuestion}, true},
		{Prompt{ID: "p1", Kind: events.PromptPermission}, false},
		{Prompt{ID: "p1", Title: "The wall"}, false},
		{Prompt{ID: "p1", Questions: []events.Question{{ID: "q", Question: "?"}}}, false},
	} {
		if got := c.p.byID(); got != c.want {
			t.Errorf("%+v: %t", c.p, got)
		}
	}
}

// TestAnErrorIsNoDecision: an Ask ends with an error although a settlement was read. The agent does not have the
// decision: nothing records that it was returned, and the next Ask returns it.
func TestAnErrorIsNoDecision(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	x.mustRelay(prompted("t1", events.DeliverCallback))
	w := x.s.expect("p1")
	x.s.mu.Lock()
	delete(x.s.waiters, "p1")
	w.seq = x.s.st.Seq
	w.settle(Answer{Status: session.Answered}, errNothing)
	x.s.mu.Unlock()
	p := Prompt{ID: "p1"}
	f, err := p.requested(turn.id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.askWith(x.ctx, turn, w, p, f); !errors.Is(err, errNothing) {
		t.Errorf("the Ask returned %v", err)
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if _, returned := x.s.returned["p1"]; returned {
		t.Error("the decision counts as returned")
	}
}

// TestAdoptionOfTheTurn: the open turn is adopted if one of the named items is it, or is a settled prompt of it; a
// prompt of another turn does not adopt it.
func TestAdoptionOfTheTurn(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.s.mu.Lock()
	x.s.st.Prompts = map[string]*session.Prompt{
		"of t0": {Status: session.Answered, Turn: "t0"},
		"of t1": {Status: session.Answered, Turn: "t1"},
	}
	x.s.mu.Unlock()
	named := func(ids ...string) (all []Prompt) {
		for _, id := range ids {
			all = append(all, Prompt{ID: id})
		}
		return all
	}
	for name, c := range map[string]struct {
		adopt []Adopt
		want  int
	}{
		"the turn and, later, a call":    {[]Adopt{{Turn: true}, {Calls: []string{"c1"}}}, 1},
		"the turn and a foreign prompt":  {[]Adopt{{Turn: true, Prompts: named("of t0")}}, 1},
		"a prompt of it and a foreign":   {[]Adopt{{Prompts: named("of t1", "of t0")}}, 1},
		"a prompt of another turn":       {[]Adopt{{Prompts: named("of t0")}}, 0},
		"a call that has ended, no turn": {[]Adopt{{Calls: []string{"c1"}}}, 0},
	} {
		facts, err := x.s.adoption(x.ctx, c.adopt, math.MaxUint64)
		if err != nil || len(facts) != c.want {
			t.Errorf("%s: %v, %v, want %d facts", name, facts, err, c.want)
		}
	}
}

// TestTwoDecisionsInOneCommit: a commit has two decisions about one prompt. The Ask returns the one that counts.
func TestTwoDecisionsInOneCommit(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(prompted("t1", events.DeliverCallback))
	x.appendUnnudged(events.WriterLedger,
		events.PromptAnswered{Prompt: "p1", By: "ada", Answers: []events.Answer{{Question: "q", Text: "red"}}},
		events.PromptDismissed{Prompt: "p1", By: "bob"})
	if a, err := x.s.Answer(x.ctx, "p1"); err != nil || a.Status != session.Answered || a.Choice() != "red" {
		t.Errorf("got %+v, %v, want red", a, err)
	}
}

// TestCarriedWithoutItsPlace: the request of a turn names an answer without its commit. The Ask for it reads the
// settlement that the session has.
func TestCarriedWithoutItsPlace(t *testing.T) {
	x := newInside(t)
	st := session.New(x.s.ref)
	st.Turn = &session.Turn{ID: "t2", Prompts: []session.Carried{{Prompt: "p1"}}}
	st.Prompts = map[string]*session.Prompt{"p1": {Status: session.Answered, SettledSeq: 7}}
	if done, seq, err := x.s.attach(st, "p1"); !done || seq != 7 || err != nil {
		t.Errorf("%t, %d, %v", done, seq, err)
	}
}

// TestUnreadDecisions: the end of a call is refused if a person has decided about its prompt and no Ask has returned,
// or will return, that decision. Any other end of a call is stored.
func TestUnreadDecisions(t *testing.T) {
	x := newInside(t)
	for name, c := range map[string]struct {
		status                            session.Status
		call                              string
		gaveUp, adopted, waited, returned bool
		refused                           bool
	}{
		"answered, the Ask gave up":  {status: session.Answered, gaveUp: true, refused: true},
		"rejected, the Ask gave up":  {status: session.Rejected, gaveUp: true, refused: true},
		"dismissed, the Ask gave up": {status: session.Dismissed, gaveUp: true},
		"still open":                 {status: session.Awaiting, gaveUp: true},
		"returned by a later Ask":    {status: session.Answered, gaveUp: true, returned: true},
		"the prompt of another call": {status: session.Answered, gaveUp: true, call: "c2"},
		"adopted, without an Ask":    {status: session.Answered, adopted: true, refused: true},
		"adopted, an Ask waits":      {status: session.Answered, adopted: true, waited: true},
		"asked without an Ask":       {status: session.Answered},
		"rejected, without an Ask":   {status: session.Rejected},
	} {
		st := session.New(x.s.ref)
		st.Turn = &session.Turn{ID: "t1"}
		st.Prompts = map[string]*session.Prompt{"p1": {Status: c.status, Turn: "t1", Call: "c1"}}
		end := events.ToolCompleted{Call: "c1"}
		if c.call != "" {
			end.Call = c.call
		}
		x.s.mu.Lock()
		x.s.gaveUp, x.s.adopted = map[string]bool{"p1": c.gaveUp}, map[string]bool{"c1": c.adopted}
		x.s.waiters, x.s.returned = map[string]*waiter{}, map[string]string{}
		if c.waited {
			x.s.waiters["p1"] = &waiter{}
		}
		if c.returned {
			x.s.returned["p1"] = "t1"
		}
		err := x.s.unread(st, []events.Event{{Fact: end}})
		clear(x.s.waiters)
		x.s.mu.Unlock()
		if errors.Is(err, ErrUnread) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v, want refused: %t", name, err, c.refused)
		}
	}
}

// TestForgettingKeepsWhatIsNeeded: a process that has returned, or given up, many prompts forgets those that the
// session does not have any more, and no others.
func TestForgettingKeepsWhatIsNeeded(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(prompted("t1", events.DeliverCallback))
	x.s.mu.Lock()
	for i := range returnedMax {
		x.s.gaveUp[fmt.Sprint(i)], x.s.returned[fmt.Sprint(i)] = true, "t0"
		x.s.unasks[fmt.Sprint(i)] = true
	}
	x.s.gaveUp["p1"], x.s.returned["ended"], x.s.returned["p1"] = true, "t0", "t0"
	x.s.shown["p1"] = shown{seq: x.s.st.Prompts["p1"].Seq}
	for i := range returnedMax - 1 {
		x.s.shown[fmt.Sprint(i)] = shown{}
	}
	x.s.st.Recent = append(x.s.st.Recent, session.Ending{Entity: session.EntityPrompt, ID: "ended",
		Outcome: string(session.Answered), Seq: 1})
	x.s.mu.Unlock()
	// its request is in doubt: the session may have it later
	x.s.abandonAsk("new")
	x.s.have("ended", 1)
	kept := len(x.s.shown)
	x.s.keepShown("last", shown{})
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.s.shown["p1"].seq == 0 || kept != returnedMax || len(x.s.shown) != 1 {
		t.Errorf("shown: %d of %d, p1: %+v", len(x.s.shown), kept, x.s.shown["p1"])
	}
	if !x.s.gaveUp["p1"] || !x.s.gaveUp["new"] || len(x.s.gaveUp) != 2 {
		t.Errorf("given up: %d, p1: %t, new: %t", len(x.s.gaveUp), x.s.gaveUp["p1"], x.s.gaveUp["new"])
	}
	if !x.s.unasks["new"] || len(x.s.unasks) != 1 {
		t.Errorf("said to be without an Ask: %d, new: %t", len(x.s.unasks), x.s.unasks["new"])
	}
	if x.s.returned["p1"] == "" || x.s.returned["ended"] == "" || len(x.s.returned) != 2 {
		t.Errorf("returned: %d, %q, %q", len(x.s.returned), x.s.returned["p1"], x.s.returned["ended"])
	}
}

// TestReceiptsOfAnEndedTurn: the end of a turn gives the receipts for what the Asks of that turn have returned. What
// was returned in another turn, which failed, is not delivered by it.
func TestReceiptsOfAnEndedTurn(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(prompted("t1", events.DeliverCallback))
	x.appendUnnudged(events.WriterLedger,
		events.PromptAnswered{Prompt: "p1", By: "ada", Answers: []events.Answer{{Question: "q", Text: "red"}}})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	for i, in := range []string{"t0", "t1"} {
		x.s.mu.Lock()
		x.s.returned["p1"] = in
		x.s.mu.Unlock()
		x.s.haveOf("t1")
		call := fmt.Sprint("c", i)
		// stored after the receipt
		x.mustRelay(events.ToolStarted{Call: call, Turn: "t1", Name: "x"}, events.ToolCompleted{Call: call})
		if _, open := x.s.State().Prompts["p1"]; open != (in == "t0") {
			t.Errorf("returned in %s: the answer waits for its receipt: %t", in, open)
		}
	}
}

// TestReclaimingRecordsWhatIsUnattended: Asks gave up open questions outside of any turn, or of a call in the
// background, and a claim in doubt has requested one again, which took back that the log said so. The next claim says
// it once more: otherwise no turn brings the decision to the agent. A question that was requested without an Ask waits
// for the process.
func TestReclaimingRecordsWhatIsUnattended(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	question := []events.Question{{ID: "q", Question: "?", Custom: true}}
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask", Background: true},
		events.ToolStarted{Call: "c2", Turn: "t1", Name: "ask"})
	asked := func(prompt, call string) events.PromptRequested {
		f := events.PromptRequested{Prompt: prompt, Call: call, PromptKind: events.PromptQuestion, Questions: question,
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep, Blocking: new(bool)}
		if call != "" {
			f.Turn = turn.ID()
		}
		return f
	}
	x.mustRelay(asked("outside", ""), asked("background", "c1"), asked("in-turn", "c2"), asked("waits", ""))
	x.mustRelay(asked("appended", ""), asked("given-up", ""), events.PromptUnattended{Prompt: "given-up"})
	x.s.expect("waits")
	x.s.mu.Lock()
	for _, id := range []string{"outside", "background", "in-turn", "waits"} {
		x.s.unasks[id] = true
	}
	x.s.mu.Unlock()
	claim := func() ([]events.Fact, error) {
		facts, _, err := x.s.reclaiming(&term{incarnation: "999999", ctx: x.ctx}, x.h.term, x.s.State().Epoch, 1)
		return facts, err
	}
	// it is in doubt
	if _, err := claim(); err != nil {
		t.Fatal(err)
	}
	// as the rest of a claim is stored
	again, err := x.s.newWrite([]events.Fact{asked("given-up", "")})
	if err == nil {
		again.relay = true
		err = x.s.queueUp(false, again)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-again.done
	facts, err := claim()
	var unattended []string
	for _, f := range facts {
		if f, ok := f.(events.PromptUnattended); ok {
			unattended = append(unattended, f.Prompt)
		}
	}
	slices.Sort(unattended)
	if err != nil || !slices.Equal(unattended, []string{"background", "given-up", "outside"}) {
		t.Errorf("unattended: %v, %v", unattended, err)
	}
}

// TestKeptDecisionWithoutAnAsk: what a claim after a lost lease says about a decision that no Ask waits for. The
// program that requested the prompt takes it in, unless this process has called the prompt unattended, also in a fact
// that is not stored yet, or the prompt is of a turn, whose end says the same. An Ask takes it in unless that turn is
// over.
func TestKeptDecisionWithoutAnAsk(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask", Background: true},
		events.ToolStarted{Call: "c2", Turn: "t1", Name: "ask"})
	for name, c := range map[string]struct {
		prompt          session.Prompt
		queued, attends bool
		asked           bool
	}{
		"outside of turns":     {attends: true},
		"in the background":    {prompt: session.Prompt{Turn: "t1", Call: "c1"}, attends: true},
		"in a turn":            {prompt: session.Prompt{Turn: "t1"}},
		"in a call":            {prompt: session.Prompt{Turn: "t1", Call: "c2"}},
		"called unattended":    {prompt: session.Prompt{Unattended: true}},
		"to be called that":    {queued: true},
		"asked in a turn":      {prompt: session.Prompt{Turn: "t1"}, asked: true, attends: true},
		"asked in an old turn": {prompt: session.Prompt{Turn: "t0"}, asked: true},
		"asked in an old call": {prompt: session.Prompt{Turn: "t0", Call: "c1"}, queued: true, asked: true,
			attends: true},
		"asked outside of turns": {prompt: session.Prompt{Unattended: true}, asked: true, attends: true},
		"to be, in a background": {prompt: session.Prompt{Turn: "t1", Call: "c1"}, queued: true},
	} {
		c.prompt.Status = session.Answered
		x.s.mu.Lock()
		x.s.st.Prompts = map[string]*session.Prompt{"p1": &c.prompt}
		x.s.unasks = map[string]bool{"p1": c.queued}
		x.s.waiters = map[string]*waiter{}
		if c.asked {
			x.s.waiters["p1"] = &waiter{done: make(chan struct{})}
		}
		x.s.mu.Unlock()
		if f := x.s.keptDecision("p1"); (f != nil) != c.attends {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := x.s.keptDecision("unknown"); f != nil {
		t.Errorf("unknown: %+v", f)
	}
}

// TestReclaimingAfterAClaimInDoubt: a claim after a lost lease was stored, and the rest that it was to adopt was not.
// The next claim adopts what was this process's before the first one. After a claim that is known, it does not.
func TestReclaimingAfterAClaimInDoubt(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "make"})
	x.s.mu.Lock()
	st := *x.s.st
	x.s.mu.Unlock()
	turn := *st.Turn
	turn.Prompts = []session.Carried{{Prompt: "p0", Status: session.Answered, Had: st.Epoch}}
	st.Turn = &turn
	st.Compaction = &session.Compaction{ID: "k1", State: session.CompactionRunning, Epoch: st.Epoch}
	st.Epoch++
	x.s.mu.Lock()
	was := x.s.st
	x.s.st = &st
	x.s.mu.Unlock()
	all := []events.Kind{"session.claimed", "compaction.started", "turn.started", "tool.started", "prompt.delivered"}
	for from, want := range map[uint64][]events.Kind{st.Epoch - 1: all, st.Epoch: all[:1]} {
		facts, _, err := x.s.reclaiming(&term{incarnation: "999999", ctx: x.ctx}, x.h.term, st.Epoch, from)
		var kinds []events.Kind
		for _, f := range facts {
			kinds = append(kinds, f.Kind())
		}
		if err != nil || !slices.Equal(kinds, want) {
			t.Errorf("from epoch %d: %v, %v, want %v", from, kinds, err, want)
		}
	}
	x.s.mu.Lock()
	x.s.st = was
	x.s.mu.Unlock()
}
