package harness

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestIDsOfNames: the ids of steps and questions are the same in every build: with other ids, a step would run again
// after an update. They show the letters and digits of ASCII, - and _.
func TestIDsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"azAZ09-_":               "azAZ09-_-ltqzsslmyp4j23daqg2w",
		"a/b: `{|}~ @[\\]^ é":    "a-b-----------------afplxwn6txhmfec5one5",
		strings.Repeat("x", 100): strings.Repeat("x", 60) + "-iuw5gjc5poejqt37g5sb",
	} {
		if got := nameID(nameOfStep, name, "message m1", 1); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestTwoInOneCommit: a commit has two questions, as one that adopts them has. Each is found by its own id.
func TestTwoInOneCommit(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	first, second := prompted("t1", events.DeliverCallback), prompted("t1", events.DeliverCallback)
	first.Title, second.Title, second.Prompt = "The wall", "The floor", "p2"
	x.mustRelay(first, second)
	p := x.s.State().Prompts["p2"]
	f, err := x.s.again(x.ctx, Prompt{ID: "p2"}, p)
	if again, ok := f.(events.PromptRequested); err != nil || !ok || again.Title != "The floor" {
		t.Errorf("asked again: %+v, %v", f, err)
	}
	same := Prompt{ID: "p2", Title: "The floor", Questions: second.Questions, Delivery: events.DeliverCallback}
	if err := turn.sameQuestion(x.ctx, "floor", same, p.Seq); err != nil {
		t.Errorf("compared: %v", err)
	}
}

// TestSyntheticEndsOfSteps: the end of a call that another writer made in the name of its tool says nothing about what
// the step has done: neither that it failed and may run again, nor its result.
func TestSyntheticEndsOfSteps(t *testing.T) {
	failed := Result{Outcome: session.OutcomeFailed, Error: &events.Failure{Kind: "rejected"}}
	if err := unknownOf("deploy", "c1", failed); err != nil {
		t.Errorf("the function failed: %v", err)
	}
	failed.Synthetic = true
	if err := unknownOf("deploy", "c1", failed); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("another writer failed it: %v", err)
	}

	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	call := nameID(nameOfStep, "deploy", "message m1", 1)
	x.mustRelay(events.ToolStarted{Call: call, Turn: "t1", Name: "deploy"})
	x.appendUnnudged(events.WriterLedger, events.ToolCompleted{Call: call, Synthetic: true,
		Output: json.RawMessage(`{"answers":[]}`)})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	if _, result, err := turn.stepBegins(x.ctx, "deploy", false, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("another writer completed it: %s, %v", result, err)
	}
}

// TestAboutAnotherTurn: the handle of a turn that has ended is first used for a step while another turn is open. It
// gets nothing that was kept for that turn.
func TestAboutAnotherTurn(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	old := &Turn{s: x.s, id: "t0", ctx: x.ctx}
	if key, _, _, err := old.about(x.ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("it is about %q, %v", key, err)
	}
	if err := turn.Complete(x.ctx, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := old.stillAbsent("new", x.s.State().Epoch, nil)(x.s.State()); !errors.Is(err, ErrEnded) {
		t.Errorf("without an open turn a step of an ended turn begins: %v", err)
	}
}

// TestCompactionOfAnEarlierEpoch: a process that starts over keeps its own compaction, and does not take one that an
// earlier process left.
func TestCompactionOfAnEarlierEpoch(t *testing.T) {
	x := newInside(t)
	x.appendUnnudged(events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 1, Limit: 2})
	if err := x.s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.mustRelay(events.CompactionStarted{Compaction: "k1"})
	next := &term{incarnation: "999999", ctx: x.ctx}
	// in this order: the epoch stays
	for _, earlier := range []bool{false, true} {
		want := 2
		x.s.mu.Lock()
		epoch := x.s.st.Epoch
		if earlier {
			want = 1
			x.s.st.Epoch++
			epoch++
		}
		x.s.mu.Unlock()
		facts, _, err := x.s.reclaiming(next, x.h.term, epoch, epoch)
		if err != nil || len(facts) != want {
			t.Errorf("of an earlier epoch %v: %v, %v, want %d facts", earlier, facts, err, want)
		}
	}
}

// TestTwoAnsweredInOneCommit: a commit answers two prompts. Each Ask gets its own answer.
func TestTwoAnsweredInOneCommit(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	second := prompted("t1", events.DeliverCallback)
	second.Prompt = "p2"
	x.mustRelay(prompted("t1", events.DeliverCallback), second)
	x.appendUnnudged(events.WriterLedger,
		events.PromptAnswered{Prompt: "p1", By: "ada", Answers: []events.Answer{{Question: "q", Text: "red"}}},
		events.PromptAnswered{Prompt: "p2", By: "bob", Answers: []events.Answer{{Question: "q", Text: "blue"}}})
	for prompt, want := range map[string]string{"p1": "red", "p2": "blue"} {
		if a, err := x.s.Answer(x.ctx, prompt); err != nil || a.Choice() != want {
			t.Errorf("%s: got %+v, %v, want %s", prompt, a, err, want)
		}
	}
}

// TestOfAnotherTurn: a stop, and a request, of another turn are not those of this one.
func TestOfAnotherTurn(t *testing.T) {
	x := newInside(t)
	x.s.mu.Lock()
	x.s.took = &session.WorkTurn{Turn: "t9", Message: "m9"}
	x.s.mu.Unlock()
	turn := x.turn(StartOptions{ID: "t1", Message: "m1", Content: "deploy"})
	if r := turn.Request(); r.Turn != "t1" || r.Message != "m1" {
		t.Errorf("it has the request %+v", r)
	}
	x.s.mu.Lock()
	x.s.st.Pending.Stop = &session.PendingStop{Turn: "t9", Actor: events.ActorPerson}
	err := x.s.stopOf("t1", nil)
	x.s.st.Pending.Stop = nil
	x.s.mu.Unlock()
	if err != nil {
		t.Errorf("it is stopped: %v", err)
	}
	if x.s.drop(ErrFenced); x.s.OpenTurn() != nil {
		t.Error("a process that lost the session has its turn")
	}
}
