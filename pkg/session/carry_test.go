package session_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

func asking(id, turn string) events.Fact {
	return events.PromptRequested{Prompt: id, Turn: turn, PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult}
}

func answering(id string) events.Fact {
	return events.PromptAnswered{Prompt: id, By: "ada", Owed: true}
}

func carriedIDs(list []session.Carried) (ids []string) {
	for _, c := range list {
		ids = append(ids, c.Prompt)
	}
	return ids
}

func wantCarried(t *testing.T, what string, list []session.Carried, want ...string) {
	t.Helper()
	if got := carriedIDs(list); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestCarriedIsBounded: a turn carries as many prompts as a fact may name. Those without a receipt go before those with
// one, and the newer ones before the older ones.
func TestCarriedIsBounded(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	for i := range 20 {
		id := fmt.Sprintf("p%02d", i)
		f.append(events.WriterHarness, asking(id, "t1"))
		f.append(events.WriterLedger, answering(id))
		f.append(events.WriterHarness, events.PromptDelivered{Prompt: id})
	}
	f.append(events.WriterHarness, asking("last", "t1"))
	f.append(events.WriterLedger, answering("last"))
	if got := carriedIDs(f.s.Turn.Prompts); len(got) != 21 || got[0] != "p00" || got[20] != "last" {
		t.Errorf("carried: %v", got)
	}
	for round := range 2 {
		ask, answer := []events.Fact{}, []events.Fact{}
		for i := range session.OpenPromptsMax {
			id := fmt.Sprintf("q%d.%03d", round, i)
			ask, answer = append(ask, asking(id, "t1")), append(answer, answering(id))
		}
		f.append(events.WriterHarness, ask...)
		f.append(events.WriterLedger, answer...)
		n := len(f.s.Turn.Prompts)
		if n < session.OpenPromptsMax || n > events.PromptsNamedMax {
			t.Errorf("%d prompts are carried", n)
		}
		if got := carriedIDs(f.s.Turn.Prompts); round == 0 && (n != 21+session.OpenPromptsMax || got[0] != "p00") ||
			round == 1 && (n != events.PromptsNamedMax || slices.Contains(got, "p19") || got[0] != "q0.072" &&
				got[0] != "last") {
			t.Errorf("round %d: %d prompts, %v", round, n, got)
		}
	}
	request := f.s.Continue("", "t1", "")
	if err := request.Validate(); err != nil {
		t.Error(err)
	}
}

// TestAnswersWithAReceiptGoFirst: of more decisions than a request names those with a receipt are left out first, also
// if they are newer.
func TestAnswersWithAReceiptGoFirst(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	for i := range session.OpenPromptsMax {
		id := fmt.Sprintf("old%03d", i)
		f.append(events.WriterHarness, asking(id, "t1"))
		f.append(events.WriterLedger, answering(id))
	}
	for i := range 40 {
		id := fmt.Sprintf("new%02d", i)
		f.append(events.WriterHarness, asking(id, "t1"))
		f.append(events.WriterLedger, answering(id))
		f.append(events.WriterHarness, events.PromptDelivered{Prompt: id})
	}
	whole := func(what string, ids []string) {
		t.Helper()
		if len(ids) != events.PromptsNamedMax || !slices.Contains(ids, "old000") || !slices.Contains(ids, "new39") ||
			slices.Contains(ids, "new00") {
			t.Errorf("%s: %d prompts, %v", what, len(ids), ids)
		}
	}
	whole("the turn", carriedIDs(f.s.Turn.Prompts))
	f.append(events.WriterHarness, events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
	whole("its request", f.s.Carry())
	if ids := f.s.Carry("more"); len(ids) != events.PromptsNamedMax || !slices.Contains(ids, "old000") ||
		ids[len(ids)-1] != "more" {
		t.Errorf("with one more: %d prompts, %v", len(ids), ids)
	}
}

// TestDeliveredWhereItIsNamed: a commit delivers a decision and names it in the turn that it begins. The turn carries
// it, however many it carries from the turn before.
func TestDeliveredWhereItIsNamed(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, asking("out", ""), events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.append(events.WriterLedger, answering("out"))
	for i := range 20 {
		id := fmt.Sprintf("p%02d", i)
		f.append(events.WriterHarness, asking(id, "t1"))
		f.append(events.WriterLedger, answering(id))
		f.append(events.WriterHarness, events.PromptDelivered{Prompt: id})
	}
	f.append(events.WriterHarness, events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
	f.append(events.WriterHarness, events.PromptDelivered{Prompt: "out"},
		events.TurnStarted{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1", Prompts: []string{"out"}})
	if got := carriedIDs(f.s.Turn.Prompts); len(got) != 21 || !slices.Contains(got, "out") {
		t.Errorf("carried: %v", got)
	}
}

// TestCarriedLeaves: a prompt leaves the lists when its process refuses it, or when a turn that was given it completes.
func TestCarriedLeaves(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}, asking("p1", "t1"),
		asking("p2", "t1"))
	f.append(events.WriterLedger, answering("p1"), answering("p2"))
	wantCarried(t, "settled", f.s.Turn.Prompts, "p1", "p2")
	f.append(events.WriterHarness, events.PromptDelivered{Prompt: "p1", Refused: "unknown request"})
	wantCarried(t, "refused", f.s.Turn.Prompts, "p2")
	f.append(events.WriterHarness, events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
	f.append(events.WriterRetry, f.s.Naming(events.TurnRequested{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1"}))
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t2", Cause: events.CauseRetry})
	f.append(events.WriterLedger, f.s.Naming(events.TurnRequested{Turn: "t3", Cause: events.CauseAnswer}))
	wantCarried(t, "asked for while t2 runs", f.s.Pending.Turn.Prompts, "p2")
	clone := f.s.Clone()
	f.append(events.WriterHarness, events.TurnCompleted{Turn: "t2"})
	if f.s.Pending.Turn != nil {
		t.Errorf("t2 has brought all that t3 was requested for, and t3 is still requested: %+v", f.s.Pending.Turn)
	}
	wantCarried(t, "the clone of before", clone.Pending.Turn.Prompts, "p2")
	if len(f.s.Prompts) != 0 {
		t.Errorf("not delivered: %v", keys(f.s.Prompts))
	}
}

// TestCarriedByItsMessage: an answer that waits in the queue as a message is not named beside it, also not by a request
// that names nothing and inherits what the turn before carried.
func TestCarriedByItsMessage(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
			Delivery: events.DeliverMessage}, asking("p2", "t1"))
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17"})
	d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "p1", By: "ada"}, f.src)
	if err != nil || len(f.s.Queue) != 0 {
		t.Fatal(err)
	}
	f.append(events.WriterLedger, d.Facts...)
	f.append(events.WriterLedger, answering("p2"))
	wantCarried(t, "both settled in the turn", f.s.Turn.Prompts, "p1", "p2")
	f.append(events.WriterRetry, events.TurnRequested{Turn: "t2", Cause: events.CauseResume, OfTurn: "t1"})
	wantCarried(t, "inherited", f.s.Pending.Turn.Prompts, "p2")
	message := f.s.Queue[0].ID
	f.append(events.WriterCompaction, events.MessageWithdrawn{Message: message, By: "ada"})
	if got := f.s.Carry(); !slices.Equal(got, []string{"p2"}) {
		t.Errorf("with the answer's message taken back: %v", got)
	}
}

// TestWorkBrings: the view of a requested turn has every decision that it brings, and nothing that its living process
// takes in by itself. The view changes when that changes.
func TestWorkBrings(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}, asking("p1", "t1"),
		asking("p2", ""))
	f.append(events.WriterLedger, events.TurnRequested{Turn: "t2", Cause: events.CauseMessage})
	f.append(events.WriterLedger, answering("p1"), answering("p2"))
	brought := func() (ids []string) {
		t.Helper()
		work, err := f.s.Work(f.src)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range work.Turn.Prompts {
			ids = append(ids, p.Prompt)
		}
		return ids
	}
	// if t1 fails, the next turn has its answer
	if got := brought(); !slices.Equal(got, []string{"p1"}) {
		t.Errorf("beside the living process: %v", got)
	}
	before := f.s.ViewClone()
	f.append(events.WriterHarness, events.TurnCompleted{Turn: "t1"})
	if got := brought(); !slices.Equal(got, []string{"p1"}) || session.WorkChanged(before, f.s) {
		t.Errorf("the turn that asked is over: %v", got)
	}
	before = f.s.ViewClone()
	f.append(events.WriterHarness, events.PromptDelivered{Prompt: "p1"})
	if got := brought(); len(got) != 0 || !session.WorkChanged(before, f.s) {
		t.Errorf("its process has it after all: %v", got)
	}

	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17"})
	if got := brought(); !slices.Equal(got, []string{"p2"}) {
		t.Errorf("its process is gone: %v", got)
	}
}

// TestLargeDecisionsAreOmitted: a view has as many decisions as an entry can hold, and a process that reads the log has
// all.
func TestLargeDecisionsAreOmitted(t *testing.T) {
	f := newFeeder(t)
	f.chunk = 1
	var large []events.Fact
	for i := range 10 {
		large = append(large, asking(fmt.Sprintf("p%d", i), ""))
	}
	f.append(events.WriterHarness, large...)
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17"})
	long := make([]byte, events.QuestionsBytesMax)
	for i := range long {
		long[i] = 'x'
	}
	for i := range 10 {
		f.append(events.WriterLedger, events.PromptRejected{Prompt: fmt.Sprintf("p%d", i),
			Text: string(long), By: "ada"})
	}
	f.append(events.WriterLedger, f.s.Continue("", "", ""))
	for _, whole := range []bool{false, true} {
		view := f.s.Work
		if whole {
			view = f.s.WorkWhole
		}
		work, err := view(f.src)
		if err != nil {
			t.Fatal(err)
		}
		omitted := 0
		for _, p := range work.Turn.Prompts {
			if p.Omitted {
				omitted++
			} else if len(p.Text) != len(long) {
				t.Errorf("prompt %s has a text of %d bytes", p.Prompt, len(p.Text))
			}
		}
		if len(work.Turn.Prompts) != 10 || whole != (omitted == 0) {
			t.Errorf("whole: %v, %d prompts, %d omitted", whole, len(work.Turn.Prompts), omitted)
		}
	}
}

// TestCarriedIsInherited: a turn has what its request named, and what the turn that it continues carried, also when its
// process repeats neither.
func TestCarriedIsInherited(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, asking("p1", ""), asking("p2", ""))
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17"})
	// p2 is settled only here
	f.append(events.WriterLedger, answering("p1"), answering("p2"), f.s.Continue("p1", "", ""))
	// as if it was claimed by commits that do not matter here
	f.s.Epoch, f.s.Owned = f.s.Epoch+1, true
	f.append(events.WriterReconciler, events.TurnRequested{Turn: "t1", Cause: events.CauseAnswer,
		Prompts: []string{"p2", "never", "p1"}})
	wantCarried(t, "requested", f.s.Pending.Turn.Prompts, "p2", "p1")
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseAnswer})
	wantCarried(t, "started", f.s.Turn.Prompts, "p2", "p1")
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
	f.e(events.TurnStarted{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1"})
	wantCarried(t, "begun by the process itself", f.s.Turn.Prompts, "p2", "p1")
	if f.s.LastTurn.Prompts != nil {
		t.Errorf("two turns carry them: %v", f.s.LastTurn.Prompts)
	}
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t2", Actor: events.ActorPerson, By: "ada"})
	f.e(events.TurnStopped{Turn: "t2", Actor: events.ActorPerson})
	f.append(events.WriterRetry, f.s.Naming(events.TurnRequested{Turn: "t3", Cause: events.CauseRetry, OfTurn: "t2"}))
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t3", Actor: events.ActorPerson, By: "ada"})
	wantCarried(t, "stopped before it began", f.s.LastTurn.Prompts, "p2", "p1")
	f.e(events.TurnStarted{Turn: "t4", Cause: events.CauseMessage, Message: "m4"})
	if len(f.s.Turn.Prompts)+len(f.s.Prompts) != 0 {
		t.Errorf("a person has continued without them: %v, %v", f.s.Turn.Prompts, keys(f.s.Prompts))
	}
}

// e says one fact as the owning process.
func (f *feeder) e(fact events.Fact) {
	f.t.Helper()
	before := f.s.Ignored.Count
	f.append(events.WriterHarness, fact)
	if f.s.Ignored.Count != before {
		f.t.Errorf("%s is ignored: %+v", fact.Kind(), f.s.Ignored.Last)
	}
}

// TestNamedIsNotOvertaken: a person's turn that names a decision brings it, and delivers it when it completes.
func TestNamedIsNotOvertaken(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.e(asking("p1", "t1"))
	f.append(events.WriterLedger, answering("p1"))
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}})
	f.e(events.TurnStarted{Turn: "t2", Cause: events.CauseMessage, Prompts: []string{"p1"}})
	f.e(events.TurnCompleted{Turn: "t2"})
	if e, ok := f.s.Ended(session.EntityPrompt, "p1"); !ok || e.DeliveredAt.IsZero() {
		t.Errorf("not delivered: %+v", e)
	}
}

// TestAdoptedCallBringsItsDecision: the process that continues a call is given what was decided for it.
func TestAdoptedCallBringsItsDecision(t *testing.T) {
	f := newFeeder(t)
	f.e(events.ToolStarted{Call: "c1", Name: "ask"})
	f.e(events.PromptRequested{Prompt: "p1", Call: "c1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult})
	f.append(events.WriterLedger, answering("p1"))
	// as if it was claimed by commits that do not matter here
	f.s.Epoch++
	if f.s.HasWork() {
		t.Error("a process that has adopted nothing is given the decision")
	}
	f.e(events.ToolStarted{Call: "c1", Name: "ask"})
	if work, err := f.s.Work(f.src); err != nil || work == nil || work.Prompts["p1"] == nil {
		t.Errorf("%+v %v", work, err)
	}
}

// orphan says that the owning process is gone.
func (f *feeder) orphan() {
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17"})
}

// claim gives the session a new epoch, as if by commits that do not matter here.
func (f *feeder) claim() { f.s.Epoch, f.s.Owned = f.s.Epoch+1, true }

// TestReceiptBeforeTheCallEnds: a prompt whose call its process has ended is not named again, also when the receipt
// came before that end, as that of a permission does.
func TestReceiptBeforeTheCallEnds(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.e(events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"})
	f.e(events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptPermission,
		Delivery: events.DeliverCallback})
	f.append(events.WriterLedger, answering("p1"))
	f.e(events.PromptDelivered{Prompt: "p1"})
	wantCarried(t, "permitted", f.s.Turn.Prompts, "p1")
	f.e(events.ToolCompleted{Call: "c1"})
	wantCarried(t, "done", f.s.Turn.Prompts)
}

// TestDecidedAfterTheRequest: a person's turn overtakes what was decided before it was asked for. A later decision,
// which the process that starts the turn may not have read, stays owed.
func TestDecidedAfterTheRequest(t *testing.T) {
	f := newFeeder(t)
	for _, id := range []string{"p1", "p2"} {
		f.e(events.PromptRequested{Prompt: id, PromptKind: events.PromptQuestion, Delivery: events.DeliverToolResult,
			Blocking: new(false)})
	}
	f.orphan()
	f.claim()
	// while it waits, no continuation is requested
	f.e(asking("q", ""))
	f.append(events.WriterLedger, answering("p1"))
	f.append(events.WriterCompaction, events.TurnRequested{Turn: "t2", Cause: events.CauseMessage, Message: "m2"})
	f.append(events.WriterLedger, answering("p2"))
	f.e(events.TurnStarted{Turn: "t2", Cause: events.CauseMessage, Message: "m2"})
	if f.s.Prompts["p1"] != nil || f.s.Prompts["p2"] == nil {
		t.Errorf("owed: %v, want p2 and not p1", keys(f.s.Prompts))
	}
}

// TestBackgroundCallTakesItsDecision: what was decided for a call that outlived its turn is its process's to take in.
// The next turn neither brings the decision nor delivers it, unless that process is gone.
func TestBackgroundCallTakesItsDecision(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.e(events.ToolStarted{Call: "c1", Turn: "t1", Name: "watch", Background: true})
	f.e(events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult, Blocking: new(false)})
	f.e(events.TurnCompleted{Turn: "t1"})
	f.append(events.WriterLedger, answering("p1"), f.s.Naming(events.TurnRequested{Turn: "t2",
		Cause: events.CauseMessage}))
	wantCarried(t, "requested", f.s.Pending.Turn.Prompts)
	if work, err := f.s.Work(f.src); err != nil || len(work.Turn.Prompts) != 0 || work.Prompts["p1"] == nil {
		t.Errorf("%+v %v", work, err)
	}
	before := f.s.ViewClone()
	gone := f.s.Clone()
	f.e(events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	f.e(events.TurnCompleted{Turn: "t2"})
	if f.s.Prompts["p1"] == nil {
		t.Error("shown as delivered while its call runs")
	}
	f.s = gone
	f.orphan()
	if got := f.s.Carry(); !slices.Equal(got, []string{"p1"}) || !session.WorkChanged(before, f.s) {
		t.Errorf("its process is gone: %v", got)
	}
}

// TestAdoptedQuestionIsStillAsked: a prompt that was adopted with its turn has the body that it had, for those who
// answer it and after they did.
func TestAdoptedQuestionIsStillAsked(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.e(events.PromptRequested{Prompt: "p1", Turn: "t1", Title: "Where to?", PromptKind: events.PromptQuestion,
		Delivery:  events.DeliverToolResult,
		Questions: []events.Question{{ID: "q", Question: "Where to?", Custom: true}}})
	f.claim()
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	if f.s.Prompts["p1"].Epoch != f.s.Epoch {
		t.Fatal("not adopted")
	}
	check := func(when string) {
		t.Helper()
		if b, err := f.s.Blocker("p1", f.src); err != nil || b.Title != "Where to?" || len(b.Questions) != 1 {
			t.Errorf("%s, people see %+v %v", when, b, err)
		}
	}
	check("before the answer")
	if _, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "p1", By: "ada",
		Answers: []events.Answer{{Question: "never asked"}}}, f.src); err == nil {
		t.Error("an answer to another question fits")
	}
	d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "p1", By: "ada",
		Answers: []events.Answer{{Question: "q", Text: "home"}}}, f.src)
	if err != nil {
		t.Fatal(err)
	}
	f.append(events.WriterLedger, d.Facts...)
	check("after the answer")
}

// TestAnswerTakenBack: an answer that became a message, which its person withdrew, is named by no turn, however long
// ago that was.
func TestAnswerTakenBack(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.e(events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverMessage})
	f.orphan()
	d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "p1", By: "ada"}, f.src)
	if err != nil {
		t.Fatal(err)
	}
	f.append(events.WriterLedger, d.Facts...)
	f.append(events.WriterCompaction, events.MessageWithdrawn{Message: f.s.Queue[0].ID, By: "ada"})
	again := f.s.Prompts["p1"]
	if got := f.s.Carry(); len(got) != 0 || again == nil || again.Status != session.Awaiting {
		t.Errorf("%v is still owed, and the prompt is %+v", got, again)
	}
	for i := range session.RecentMax {
		id := fmt.Sprint("m", i)
		f.append(events.WriterCompaction, events.MessageAccepted{Message: id, Content: []byte(`1`), Synthetic: true},
			events.MessageWithdrawn{Message: id, By: "ada"})
	}
	if got := f.s.Carry(); len(got) != 0 {
		t.Errorf("long ago: %v", got)
	}
}

// TestCarriedIDStaysClosed: an id is closed for as long as a turn carries the decision that was made under it.
func TestCarriedIDStaysClosed(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.e(asking("p1", "t1"))
	f.append(events.WriterLedger, answering("p1"))
	f.e(events.PromptDelivered{Prompt: "p1"})
	for i := range session.RecentMax {
		id := fmt.Sprint("c", i)
		f.e(events.ToolStarted{Call: id, Turn: "t1", Name: "bash"})
		f.e(events.ToolCompleted{Call: id})
	}
	f.append(events.WriterHarness, asking("p1", "t1"))
	f.mustIgnore(1, session.WhyClosedID)
}

// TestStoppedRequestKeepsWhatWasCarried: a turn was requested beside one that runs, which fails. When a person stops
// the requested turn, what the other one carried is named by the next turn all the same.
func TestStoppedRequestKeepsWhatWasCarried(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.append(events.WriterLedger, events.TurnRequested{Turn: "t2", Cause: events.CauseAnswer})
	f.e(asking("p1", "t1"))
	f.append(events.WriterLedger, answering("p1"))
	f.e(events.PromptDelivered{Prompt: "p1"})
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t2", Actor: events.ActorPerson, By: "ada"})
	if got := f.s.Carry(); !slices.Equal(got, []string{"p1"}) {
		t.Errorf("the next turn names %v", got)
	}
}

// TestAnAnswerTakenBackLetsNothingBegin: a person stops a turn, answers a question whose asker is gone, and takes back
// the message that this answer had become. The stop holds as before: no decision from before it calls for a turn, and
// the queue waits.
func TestAnAnswerTakenBackLetsNothingBegin(t *testing.T) {
	f := newFeeder(t)
	f.e(events.PromptRequested{Prompt: "old", PromptKind: events.PromptQuestion, Delivery: events.DeliverMessage,
		Blocking: new(bool)})
	f.orphan()
	f.claim()
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.e(asking("p1", "t1"))
	f.append(events.WriterLedger, answering("p1"))
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m2", Content: []byte(`"x"`)})
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
	stopped := f.s.Seq
	f.e(events.TurnStopped{Turn: "t1", Actor: events.ActorPerson})
	d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: "old", By: "ada"}, f.src)
	if err != nil {
		t.Fatal(err)
	}
	f.person(events.WriterLedger, "ada", d.Facts...)
	if f.s.Pending.Turn == nil || !f.s.QueueMoves() {
		t.Fatalf("the answer calls for no turn: %+v", f.s.Pending)
	}
	f.person(events.WriterCompaction, "ada", events.MessageWithdrawn{Message: f.s.Pending.Turn.Message, By: "ada"})
	owed, ok := f.s.Owed()
	if ok || f.s.QueueMoves() || f.s.HeldSeq != stopped {
		t.Errorf("owed %v %+v, held %d, want %d", ok, owed, f.s.HeldSeq, stopped)
	}
}

// TestAnswersTakenBack: a person stops a turn, and answers two questions whose askers are gone. Both answers become
// messages. When the newer one is taken back, the older one still calls for its turn, and the queue waits since the
// stop. When both are taken back, nothing begins. A turn that ended badly since then is what the queue waits for.
func TestAnswersTakenBack(t *testing.T) {
	f := newFeeder(t)
	for _, id := range []string{"p1", "p2"} {
		f.e(optional(id, "", events.DeliverMessage))
	}
	f.orphan()
	f.claim()
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
	held := f.s.Seq
	f.e(events.TurnStopped{Turn: "t1", Actor: events.ActorPerson})
	answer := func(prompt string) string {
		t.Helper()
		d, err := f.s.Answer(request.Answer{Ref: f.s.Ref(), Prompt: prompt, By: "ada"}, f.src)
		if err != nil {
			t.Fatal(err)
		}
		f.person(events.WriterLedger, "ada", d.Facts...)
		if p := f.s.Pending.Turn; p == nil || p.Held != held || f.s.HeldSeq != 0 {
			t.Fatalf("after the answer to %s: %+v, held %d", prompt, p, f.s.HeldSeq)
		}
		return f.s.Pending.Turn.Message
	}
	takeBack := func(message string) {
		t.Helper()
		f.person(events.WriterCompaction, "ada", events.MessageWithdrawn{Message: message, By: "ada"})
		if f.s.Pending.Turn != nil || f.s.HeldSeq != held || f.s.QueueMoves() {
			t.Errorf("without %s: %+v, held %d, want %d", message, f.s.Pending.Turn, f.s.HeldSeq, held)
		}
	}
	older, newer := answer("p1"), answer("p2")
	takeBack(newer)
	owed, ok := f.s.Owed()
	if !ok || owed.Message != older {
		t.Fatalf("owed %v %+v, want the turn of %s", ok, owed, older)
	}
	both := f.s.Clone()
	takeBack(older)
	if owed, ok := f.s.Owed(); ok {
		t.Errorf("owed %+v", owed)
	}

	f.s = both
	f.e(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
	f.person(events.WriterLedger, "ada", owed)
	f.e(events.TurnFailed{Turn: "own", Error: events.Failure{Kind: "authentication"}})
	held = f.s.Seq
	takeBack(older)
}

// TestAnsweredWhileAnotherWaits: a turn is requested for a person's answer, and the open turn of the agent fails. The
// queue waits since that failure. A second answer lets it move, until that answer is taken back.
func TestAnsweredWhileAnotherWaits(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}})
	f.e(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m2", Content: []byte(`"x"`), Synthetic: true},
		events.MessageAccepted{Message: "m3", Content: []byte(`"x"`), Synthetic: true})
	f.person(events.WriterLedger, "ada", events.TurnRequested{Turn: "t2", Cause: events.CauseAnswer, Message: "m2"})
	f.e(events.TurnFailed{Turn: "own", Error: events.Failure{Kind: "authentication"}})
	failed := f.s.Seq
	f.person(events.WriterLedger, "ada", events.TurnRequested{Turn: "t3", Cause: events.CauseAnswer, Message: "m3"})
	f.person(events.WriterCompaction, "ada", events.MessageWithdrawn{Message: "m3", By: "ada"})
	if f.s.HeldSeq != failed {
		t.Errorf("held %d, want %d", f.s.HeldSeq, failed)
	}
}

// TestReceiptAfterTheTurn: the receipt for an answer comes after a person's message has requested a turn that names
// it. If the turn that asked has completed, its agent has the answer, and no other turn is requested for it, whatever
// becomes of the message's turn. If the turn that asked has failed, its memory is gone with it.
func TestReceiptAfterTheTurn(t *testing.T) {
	for name, c := range map[string]struct {
		end  events.Fact
		want bool
	}{
		"completed": {events.TurnCompleted{Turn: "t1"}, false},
		"failed":    {events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "authentication"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
			f.e(optional("p1", "t1", events.DeliverCallback))
			f.append(events.WriterLedger, answering("p1"))
			f.e(c.end)
			f.append(events.WriterCompaction, events.MessageAccepted{Message: "m2", Content: []byte(`"x"`)},
				f.s.Naming(events.TurnRequested{Turn: "t2", Cause: events.CauseMessage, Message: "m2"}))
			f.e(events.PromptDelivered{Prompt: "p1"})
			wantCarried(t, "requested", f.s.Pending.Turn.Prompts, "p1")
			f.e(events.TurnStarted{Turn: "t2"})
			f.e(events.TurnFailed{Turn: "t2", Error: events.Failure{Kind: "authentication"}})
			if got := f.s.Carry(); !slices.Equal(got, []string{"p1"}) {
				t.Errorf("the next turn names %v", got)
			}
			f.e(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
			f.e(events.TurnCompleted{Turn: "own"})
			if owed, ok := f.s.Owed(); ok != c.want {
				t.Errorf("owed: %v %+v", ok, owed)
			}
		})
	}
}

// TestDeliveredInTheSameCommit: a service ends a call with the answer of its prompt and requests a turn that names the
// prompt. The request carries the prompt, also if so much has ended since that the ending of the prompt is not kept.
func TestDeliveredInTheSameCommit(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.e(events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask", Background: true})
	f.e(events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverToolResult})
	f.append(events.WriterLedger, answering("p1"))
	for i := range session.RecentMax {
		call := fmt.Sprint("bash", i)
		f.e(events.ToolStarted{Call: call, Turn: "t1", Name: "bash"})
		f.e(events.ToolCompleted{Call: call})
	}
	f.e(events.TurnCompleted{Turn: "t1"})
	f.orphan()
	f.append(events.WriterReconciler, events.ToolCompleted{Call: "c1", Synthetic: true},
		events.TurnRequested{Turn: "t2", Cause: events.CauseAnswer, Prompt: "p1", Prompts: []string{"p1"}})
	wantCarried(t, "requested", f.s.Pending.Turn.Prompts, "p1")
}

// TestReceivedWhileRequested: a turn is requested for an answer that its process then takes in, or refuses. The turn
// has nothing to bring, and is taken back.
func TestReceivedWhileRequested(t *testing.T) {
	for _, refused := range []string{"", "unknown request"} {
		f := undelivered(t, true)
		f.e(events.TurnCompleted{Turn: "t1"})
		owed, ok := f.s.Owed()
		if !ok {
			t.Fatal("no turn is requested for an answer that was not read")
		}
		f.append(events.WriterReconciler, owed)
		f.e(events.PromptDelivered{Prompt: "p1", Refused: refused})
		if p := f.s.Pending.Turn; p != nil {
			t.Errorf("turn %s is still requested, with %v", p.ID, p.Prompts)
		}
	}
}

// TestStopOfARetryThatWasForgotten: a person stops the retry of a turn whose ending is no longer kept. The retry is
// given up.
func TestStopOfARetryThatWasForgotten(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.e(events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "rate_limit"}})
	f.append(events.WriterRetry, events.RetryScheduled{Turn: "t1", Attempt: 1, DelayMS: 2000, DueAt: storyBegin,
		Error: events.Failure{Kind: "rate_limit"}})
	for i := range session.RecentMax {
		call := fmt.Sprint("bash", i)
		f.e(events.ToolStarted{Call: call, Name: "bash"})
		f.e(events.ToolCompleted{Call: call})
	}
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
	if f.s.Retry.State != session.RetryAbandoned || f.s.Ignored.Count != 0 {
		t.Errorf("%+v, ignored %+v", f.s.Retry, f.s.Ignored.Last)
	}
}

// TestARequestIsComplete: a person stops a turn and then answers, and the turn stops after its receipt. The turn that
// is requested for the answer has the options of that turn, and its view has the question beside the answer.
func TestARequestIsComplete(t *testing.T) {
	f := newFeeder(t)
	f.e(events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m1", Options: []byte(`{"model":"big"}`)})
	f.e(events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion, Title: "Colour",
		Questions: []events.Question{{ID: "q", Question: "Which?"}}, Delivery: events.DeliverCallback})
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
	f.append(events.WriterLedger, answering("p1"))
	f.e(events.PromptDelivered{Prompt: "p1"})
	f.e(events.TurnStopped{Turn: "t1", Actor: events.ActorPerson})
	owed, ok := f.s.Owed()
	if !ok || owed.OfTurn != "t1" || string(owed.Options) != `{"model":"big"}` {
		t.Fatalf("owed %v: %+v", ok, owed)
	}
	f.append(events.WriterReconciler, owed)
	work, err := f.s.Work(f.src)
	if err != nil || len(work.Turn.Prompts) != 1 {
		t.Fatalf("%+v %v", work, err)
	}
	p := work.Turn.Prompts[0]
	if p.Title != "Colour" || len(p.Questions) != 1 || p.Questions[0].Question != "Which?" {
		t.Errorf("%+v", p)
	}
}
