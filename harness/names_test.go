package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestStepOfAMessageIDUsedAgain: the id of a message was used long ago, and is used for another message now. The steps
// and questions of the first one are not those of the second, whether the session still has their endings or not.
func TestStepOfAMessageIDUsedAgain(t *testing.T) {
	for name, forgotten := range map[string]bool{"endings forgotten": true, "endings known": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var c, filler counter
			turn := w.begins(w.connect())
			s := turn.Session()
			ends := func(turn *harness.Turn, steps int, name string) {
				for i := range steps {
					must[string](t)(harness.Step(w.ctx, turn, fmt.Sprint(name, i), filler.run))
				}
			}
			// their endings are forgotten after that of the message
			ends(turn, 5, "before ")
			must[string](t)(harness.Step(w.ctx, turn, "deploy", c.run, harness.StepInput("v1")))
			w.decides(turn, "colour", "red")
			check(t, turn.Complete(w.ctx, ""))
			turn = must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{Message: "m2", Content: "wait"}))
			known := func(entity, id string) bool {
				_, ok := s.State().Ended(entity, id)
				return ok
			}
			for i := 0; known(session.EntityMessage, "m1"); i++ {
				ends(turn, 1, fmt.Sprint("filler ", i))
			}
			if forgotten {
				ends(turn, session.RecentMax, "more ")
			}
			check(t, turn.Complete(w.ctx, ""))
			turn = must[*harness.Turn](t)(s.StartTurn(w.ctx,
				harness.StartOptions{Message: "m1", Content: "once more"}))
			if known(session.EntityTool, harness.StepCall("m1", "deploy")) == forgotten {
				t.Fatalf("the ending of the first step is known: %v", forgotten)
			}
			again, err := harness.Step(w.ctx, turn, "deploy", c.run, harness.StepInput("v2"))
			if err != nil || again != "run 2" {
				t.Fatalf("for the second message: got %q, %v", again, err)
			}
			wantKept(t, w.ctx, turn, &c, "run 2")
			if forgotten {
				return
			}
			out := w.askOnce(turn, "colour", colourful())
			id := harness.QuestionID("m1", "colour", 2)
			w.awaiting("s", id)
			w.mustAnswer("s", id, "blue")
			if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "blue" {
				t.Errorf("got %+v", a)
			}
			_, turn = w.after()
			wantKept(t, w.ctx, turn, &c, "run 2")
		})
	}
}

// TestStepOfARequestedTurn: a turn without a message continues another one through a turn that was only requested: a
// person stopped it, or its start does not repeat what it continues. The steps are those of the first turn.
func TestStepOfARequestedTurn(t *testing.T) {
	for name, goOn := range map[string]func(w *world, s *harness.Session){
		"stopped before it began": func(w *world, s *harness.Session) {
			w.append("s", events.WriterLedger,
				events.TurnStopRequested{Turn: "t2", Actor: events.ActorPerson, By: "ada"})
		},
		"begun by its id alone": func(w *world, s *harness.Session) {
			natstest.Until(w.t, "the request to be read", func() bool { return s.State().Pending.Turn != nil })
			turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2"}))
			check(w.t, turn.FailWith(w.ctx, errors.New("no luck")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var c counter
			s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
			must[string](t)(harness.Step(w.ctx, turn, "deploy", c.run))
			check(t, turn.FailWith(w.ctx, errors.New("no luck")))
			w.append("s", events.WriterRetry, events.TurnRequested{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1"})
			goOn(w, s)
			seq := w.append("s", events.WriterLedger,
				events.TurnRequested{Turn: "t3", Cause: events.CauseResume, OfTurn: "t2"})
			natstest.Until(t, "the request to be read", func() bool { return s.State().Seq >= seq })
			turn = must[*harness.Turn](t)(s.StartTurn(w.ctx,
				harness.StartOptions{ID: "t3", Cause: events.CauseResume, OfTurn: "t2"}))
			wantKept(t, w.ctx, turn, &c, "run 1")
		})
	}
}

// TestStepOfAnEndedTurn: a turn that has ended runs no step, whether another turn is open or none.
func TestStepOfAnEndedTurn(t *testing.T) {
	w := newWorld(t)
	var c counter
	turn := w.begins(w.connect())
	check(t, turn.Complete(w.ctx, ""))
	_, err := harness.Step(w.ctx, turn, "deploy", c.run)
	wantErr(t, err, harness.ErrEnded)
	next := must[*harness.Turn](t)(turn.Session().StartTurn(w.ctx, harness.StartOptions{}))
	_, err = harness.Step(w.ctx, turn, "deploy", c.run)
	wantErr(t, err, harness.ErrEnded)
	c.wants(t, 0)
	check(t, next.Complete(w.ctx, ""))
}

// TestStepInputs: an input that cannot be stored is refused before the function runs. A call without an input gets the
// result of a call with one, and the other way round.
func TestStepInputs(t *testing.T) {
	w := newWorld(t)
	var c counter
	turn := w.begins(w.connect())
	for name, input := range map[string]any{
		"no JSON":   make(chan int),
		"too large": strings.Repeat("x", 2*events.CommitBytesMax),
	} {
		if _, err := harness.Step(w.ctx, turn, "deploy", c.run, harness.StepInput(input)); err == nil {
			t.Errorf("%s: the step ran", name)
		}
		c.wants(t, 0)
	}
	must[string](t)(harness.Step(w.ctx, turn, "deploy", c.run, harness.StepInput("x")))
	wantKept(t, w.ctx, turn, &c, "run 1")
	must[string](t)(harness.Step(w.ctx, turn, "late", c.run))
	if got, err := harness.Step(w.ctx, turn, "late", c.run, harness.StepInput("x")); err != nil || got != "run 2" {
		t.Errorf("with an input for the first time: got %q, %v", got, err)
	}
}

// TestStepResultThatIsTooLarge: the object store refuses a result, and the next call says that the outcome is unknown.
// The end of a call with such an output is refused: the call stays open, and does not end without its output.
func TestStepResultThatIsTooLarge(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	large := strings.Repeat("x", events.ObjectBytesMax)
	_, err := harness.Step(w.ctx, turn, "deploy", func(context.Context) (string, error) { return large, nil })
	if refusal, ok := errors.AsType[*events.Refusal](err); !ok {
		t.Fatalf("got %v, want the refusal of its result: %v", err, refusal)
	}
	if st := w.state("s"); len(st.Tools) > 0 {
		t.Errorf("open: %v", st.Tools)
	}
	wantUnknown(t, w.ctx, turn, "result-not-kept")

	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
	err = call.Complete(w.ctx, large)
	if refusal, ok := errors.AsType[*events.Refusal](err); !ok {
		t.Errorf("got %v, want the refusal of its output: %v", err, refusal)
	}
	if st := w.state("s"); st.Tools["c1"] == nil {
		t.Error("the call has ended without its output")
	}
}

// TestStepThatFailsAfterTheFence: the session is taken while a step runs, and its function fails. The caller gets both
// errors: without the second one it would try again.
func TestStepThatFailsAfterTheFence(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	noLuck := errors.New("no luck")
	_, err := harness.Step(context.WithoutCancel(w.ctx), turn, "deploy", func(ctx context.Context) (int, error) {
		w.after()
		<-ctx.Done()
		return 0, noLuck
	})
	wantErr(t, err, noLuck)
	wantErr(t, err, harness.ErrFenced)
	if errors.Is(err, harness.ErrEnded) {
		t.Errorf("the next process has the turn, which is open: %v", err)
	}
}

// TestAskOnceNames: a question needs a name, and one that is asked at this moment is refused.
func TestAskOnceNames(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	_, err := turn.AskOnce(w.ctx, "", colourful())
	wantErr(t, err, events.ErrMalformed)
	first := w.askOnce(turn, "colour", colourful())
	id := harness.QuestionID("m1", "colour", 1)
	w.awaiting("s", id)
	_, err = turn.AskOnce(w.ctx, "colour", colourful())
	wantErr(t, err, harness.ErrRunning)
	w.mustAnswer("s", id, "red")
	check(t, got(t, first).err)
}

// TestAskOnceEndsItsCall: the call of a question has the answers as its output, and fails with the decision if that is
// no answer.
func TestAskOnceEndsItsCall(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	s := turn.Session()
	w.decides(turn, "colour", "red")
	r := must[harness.Result](t)(s.Result(w.ctx, harness.QuestionID("m1", "colour", 1)))
	want := `[{"question":"q","selected":[],"text":"red"}]`
	if r.Outcome != session.OutcomeCompleted || string(r.Output) != want {
		t.Errorf("answered: %s %s, want %s", r.Outcome, r.Output, want)
	}
	rejected := w.askOnce(turn, "floor", colourful())
	id := harness.QuestionID("m1", "floor", 1)
	w.awaiting("s", id)
	w.append("s", events.WriterLedger, events.PromptRejected{Prompt: id, By: "ada", Text: "no floor"})
	check(t, got(t, rejected).err)
	r = must[harness.Result](t)(s.Result(w.ctx, id))
	if r.Outcome != session.OutcomeFailed || r.Error.Kind != string(session.Rejected) || r.Error.Text != "no floor" {
		t.Errorf("rejected: %+v, %+v", r, r.Error)
	}
}

// TestAskOnceOfAnAdoptedPrompt: the next process adopts a question in the commit that claims the session, so that
// commit has other facts before the question. It is the same question.
func TestAskOnceOfAnAdoptedPrompt(t *testing.T) {
	w := newWorld(t)
	first := w.askOnce(w.begins(w.connect()), "colour", colourful())
	id := harness.QuestionID("m1", "colour", 1)
	w.awaiting("s", id)
	s := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s",
		harness.Adopt{Turn: true, Prompts: []harness.Prompt{{ID: id}}}))
	second := w.askOnce(s.OpenTurn(), "colour", colourful())
	w.mustAnswer("s", id, "red")
	if a := got(t, second); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Errorf("got %+v", a)
	}
	wantErr(t, got(t, first).err, harness.ErrFenced)
	w.wantAsked(1)
}

// TestOpenAdoptsALaterAttempt: the attempts of a message before the open turn are no adoptions of that turn.
func TestOpenAdoptsALaterAttempt(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	for n := 2; n <= 6; n++ {
		check(t, turn.FailWith(w.ctx, errors.New("no luck")))
		turn = w.continues(turn.Session(), fmt.Sprint("t", n), turn.ID(), events.CauseRetry)
	}
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	if turn := s.OpenTurn(); turn == nil || turn.ID() != "t6" {
		t.Errorf("the open turn is %+v, want t6", turn)
	}
}

// TestStepOfTheNearestMessage: a turn without a message continues one with a message of its own, which continues one of
// another message. The steps are those of the nearest message.
func TestStepOfTheNearestMessage(t *testing.T) {
	w := newWorld(t)
	var c counter
	turn := w.begins(w.connect())
	s := turn.Session()
	must[string](t)(harness.Step(w.ctx, turn, "deploy", c.run))
	turn = must[*harness.Turn](t)(s.StartTurn(w.ctx,
		harness.StartOptions{ID: "t2", OfTurn: "t1", Message: "m2", Content: "once more"}))
	if got, err := harness.Step(w.ctx, turn, "deploy", c.run); err != nil || got != "run 2" {
		t.Fatalf("of the second message: got %q, %v", got, err)
	}
	check(t, turn.FailWith(w.ctx, errors.New("no luck")))
	turn = must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t3", OfTurn: "t2"}))
	wantKept(t, w.ctx, turn, &c, "run 2")
}

// TestOpenLeavesARequestedTurn: a turn was requested while no process ran. Open does not adopt the turn that was cut
// off: the one that was requested has its place.
func TestOpenLeavesARequestedTurn(t *testing.T) {
	w := newWorld(t)
	w.begins(w.connect())
	w.append("s", events.WriterReconciler,
		events.TurnRequested{Turn: "a1", Cause: events.CauseAnswer, OfTurn: "t1"})
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	if st := w.state("s"); s.OpenTurn() != nil || st.Pending.Turn == nil || st.Turn == nil ||
		st.Turn.Epoch == st.Epoch {
		t.Errorf("open %+v, requested %+v", st.Turn, st.Pending.Turn)
	}
}

// TestOpenOfAnothersSession: a member of the pool opens a session that another one has, with its open turn. Nothing is
// stored.
func TestOpenOfAnothersSession(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect(pool))
	before := w.state("s").Seq
	_, err := w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{})
	wantErr(t, err, harness.ErrOwned)
	if st := w.state("s"); st.Seq != before {
		t.Errorf("stored up to %d, want %d", st.Seq, before)
	}
	check(t, turn.Complete(w.ctx, ""))
}

// TestAdoptATurnThatHasEnded: nothing is left of the turn that a claim is to continue.
func TestAdoptATurnThatHasEnded(t *testing.T) {
	w := newWorld(t)
	check(t, w.begins(w.connect()).Complete(w.ctx, ""))
	if _, turn := w.after(); turn != nil {
		t.Errorf("the turn %s is open", turn.ID())
	}
}

// TestStartOfATurnThatWasLeft: a process claims a session without its open turn, and then starts that turn again. The
// turn is adopted by that: attached to, it would be left to recovery while it runs.
func TestStartOfATurnThatWasLeft(t *testing.T) {
	w := newWorld(t)
	w.begins(w.connect())
	s := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	if st := w.state("s"); st.Turn == nil || st.Turn.ID != "t1" || st.Turn.Epoch != st.Epoch {
		t.Errorf("the open turn is %+v", st.Turn)
	}
	check(t, turn.Complete(w.ctx, ""))
}
