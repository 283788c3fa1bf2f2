package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAnswerReachesEveryAttempt: a turn has had the answer to its question and fails. The next attempt is given the
// answer with its request, and asking again under the same id returns the answer at once.
func TestAnswerReachesEveryAttempt(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	prompt := harness.Prompt{ID: "env", Questions: question()}
	type attempt struct {
		named  []session.TurnPrompt
		answer harness.Answer
		err    error
	}
	attempts := make(chan attempt, 4)
	w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		a := attempt{named: turn.Request().Prompts}
		a.answer, a.err = turn.Ask(ctx, prompt)
		attempts <- a
		if turn.Request().Cause != events.CauseMessage {
			return nil
		}
		return &harness.FailureError{Failure: events.Failure{Kind: "rate_limit"}}
	}})
	w.request("s", "t1", "deploy")
	w.awaiting("s", "env")
	w.mustAnswer("s", "env", "staging")
	next := func() (a attempt) {
		t.Helper()
		select {
		case a = <-attempts:
		case <-time.After(patience):
			t.Fatal("no attempt")
		}
		if a.err != nil || a.answer.Status != session.Answered || a.answer.Answers[0].Text != "staging" {
			t.Fatalf("%+v", a)
		}
		return a
	}
	if a := next(); len(a.named) != 0 {
		t.Errorf("the first attempt is given %+v", a.named)
	}
	failed := w.until("s", "the first attempt to fail", func(st *session.State) bool { return st.LastTurn != nil })
	w.append("s", events.WriterRetry,
		failed.Naming(events.TurnRequested{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1", Attempt: 1}))
	w.show("s")
	a := next()
	if len(a.named) != 1 || a.named[0].Prompt != "env" || a.named[0].Answers[0].Text != "staging" ||
		a.named[0].By == "" {
		t.Errorf("the retry is given %+v", a.named)
	}
	st := w.until("s", "the retry to complete", func(st *session.State) bool { return st.LastTurn.ID == "t2" })
	if st.Ignored.Count != 0 || len(st.LastTurn.Prompts) != 0 {
		t.Errorf("%+v", st)
	}
}

// TestAdoptedTurnIsGivenTheAnswer: a process adopts a turn and its question, which was answered while no process was
// there. Whether or not a continuation had been requested, Ask returns the answer, and the adopted turn is the one that
// continues: Work is handed no other turn for it.
func TestAdoptedTurnIsGivenTheAnswer(t *testing.T) {
	for _, requested := range []bool{false, true} {
		t.Run(fmt.Sprint("continuation requested: ", requested), func(t *testing.T) {
			w := newWorld(t)
			one := w.connect()
			s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
			must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			prompt := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
				// no Ask waits in this process
				Questions: question(), Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}))
			if requested {
				w.append("s", events.WriterReconciler,
					events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: one.Incarnation()})
			}
			w.mustAnswer("s", "p1", "blue")
			if st := w.state("s"); (st.Pending.Turn != nil) != requested {
				t.Fatalf("pending: %+v", st.Pending)
			}

			two := w.connect()
			s = must[*harness.Session](t)(two.Claim(w.ctx, "s",
				harness.Adopt{Turn: true, Prompts: []harness.Prompt{prompt}}))
			taken := make(chan string, 4)
			w.work(two, harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
				taken <- turn.ID()
				return nil
			}})
			check(t, two.Ready(w.ctx))
			turn := s.OpenTurn()
			if turn == nil || turn.ID() != "t1" {
				t.Fatalf("the open turn is %+v", turn)
			}
			a, err := turn.Ask(w.ctx, prompt)
			if err != nil || a.Answers[0].Text != "blue" {
				t.Fatalf("%+v %v", a, err)
			}
			check(t, turn.Complete(w.ctx, "stop"))
			st := w.state("s")
			if st.LastTurn.ID != "t1" || st.LastTurn.Outcome != session.OutcomeCompleted || st.Pending.Turn != nil {
				t.Errorf("%+v, pending %+v", st.LastTurn, st.Pending.Turn)
			}
			// this is taken next, and nothing before it
			w.request("s", "t9", "next")
			select {
			case id := <-taken:
				if id != "t9" {
					t.Errorf("turn %s was taken beside the adopted one", id)
				}
			case <-time.After(patience):
				t.Error("nothing is taken any more")
			}
		})
	}
}

// TestCompletedWithTheAnswer: an Ask has returned the answer of a call, and the turn completes without ending that
// call. The agent has the answer: no other turn is requested for it. An answer that no Ask has returned calls for
// another turn.
func TestCompletedWithTheAnswer(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	check(t, s.Append(w.ctx,
		events.PromptRequested{Prompt: "unread", Turn: "t1", PromptKind: events.PromptQuestion, Questions: question(),
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep, Blocking: new(bool)}))
	answered := make(chan harness.Answer, 1)
	go func() {
		a, err := turn.Ask(w.ctx, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "blue")
	w.mustAnswer("s", "unread", "red")
	if a := <-answered; a.Status != session.Answered {
		t.Fatalf("%+v", a)
	}
	check(t, turn.Complete(w.ctx, "stop"))
	st := w.state("s")
	f, ok := st.Owed()
	if st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 || !ok || len(f.Prompts) != 1 ||
		f.Prompts[0] != "unread" {
		t.Errorf("owed %v: %+v; last turn %+v, ignored %+v", ok, f, st.LastTurn, st.Ignored)
	}
}

// TestAdoptedTurnHasItsRequest: a process adopts a turn that another one took. The turn's request is what it was: the
// content of its message, its options, and the answer that it was given. A question that the turn asked itself is
// answered to the process that asks it again, and is not in the request.
func TestAdoptedTurnHasItsRequest(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Turn](t)(s.StartTurn(w.ctx,
		harness.StartOptions{ID: "t1", Content: "deploy", Message: "m1", By: "ada", Options: "large"}))
	for _, id := range []string{"given", "own"} {
		check(t, s.Append(w.ctx,
			events.PromptRequested{Prompt: id, Turn: "t1", PromptKind: events.PromptQuestion, Questions: question(),
				Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep, Blocking: new(bool)}))
	}
	w.mustAnswer("s", "given", "staging")
	must[*harness.Turn](t)(s.StartTurn(w.ctx,
		harness.StartOptions{ID: "t2", Cause: events.CauseAnswer, OfTurn: "t1", Message: "m1", Options: "large",
			Synthetic: true, Prompts: []string{"given"}}))
	check(t, s.Append(w.ctx,
		events.PromptRequested{Prompt: "later", Turn: "t2", PromptKind: events.PromptQuestion, Questions: question(),
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep, Blocking: new(bool)}))
	w.mustAnswer("s", "later", "noon")

	two := w.connect()
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s", harness.Adopt{Turn: true}))
	turn := s.OpenTurn()
	if turn == nil || turn.ID() != "t2" {
		t.Fatalf("%+v", turn)
	}
	r := turn.Request()
	if string(r.Content) != `"deploy"` || r.Cause != events.CauseAnswer || r.OfTurn != "t1" ||
		string(r.Options) != `"large"` {
		t.Errorf("%+v", r)
	}
	if content, err := turn.Content(w.ctx); err != nil || string(content) != `"deploy"` {
		t.Errorf("content %s, %v", content, err)
	}
	if len(r.Prompts) != 1 || r.Prompts[0].Prompt != "given" || r.Prompts[0].Answers[0].Text != "staging" {
		t.Errorf("%+v", r.Prompts)
	}
	a, err := turn.Ask(w.ctx, harness.Prompt{ID: "later", Questions: question()})
	if err != nil || a.Answers[0].Text != "noon" {
		t.Errorf("%+v %v", a, err)
	}
	check(t, turn.Complete(w.ctx, "stop"))
	if f, ok := w.state("s").Owed(); ok {
		t.Errorf("owed: %+v", f)
	}
}

// TestClaimOfOlderRules: a process claims a session whose document older rules have folded: it continues from the log.
func TestClaimOfOlderRules(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	old := w.state("s")
	old.Rules, old.Turn = 0, nil
	doc := must[[]byte](t)(old.Encode())
	w.put(events.SessionKey(ref("s")), doc)
	two := w.connect()
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s", harness.Adopt{Turn: true}))
	if turn := s.OpenTurn(); turn == nil || turn.ID() != "t1" {
		t.Errorf("the open turn is %+v", turn)
	}
}

// TestReceiptsBeforeATurnEnds: an Ask has returned the answer of a call that is still open. However the turn ends, the
// agent has the answer: no other turn is requested for it.
func TestReceiptsBeforeATurnEnds(t *testing.T) {
	for name, c := range map[string]struct {
		more int // questions that are asked and answered after it
		end  func(w *world, s *harness.Session, turn *harness.Turn)
	}{
		"by a fact": {end: func(w *world, s *harness.Session, turn *harness.Turn) {
			check(w.t, s.Append(w.ctx, events.TurnCompleted{Turn: turn.ID()}))
		}},
		"by a turn in its place": {end: func(w *world, s *harness.Session, _ *harness.Turn) {
			own, err := s.StartTurn(w.ctx, harness.StartOptions{ID: "own", Synthetic: true})
			check(w.t, err)
			check(w.t, own.Complete(w.ctx, "stop"))
		}},
		"after many questions": {more: 2*session.RecentMax + 2,
			end: func(w *world, _ *harness.Session, turn *harness.Turn) {
				check(w.t, turn.Complete(w.ctx, "stop"))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
			prompts := []harness.Prompt{{ID: "p1", Call: "c1", Questions: question()}}
			for i := range c.more {
				prompts = append(prompts, harness.Prompt{ID: fmt.Sprint("q", i), Questions: question()})
			}
			for _, p := range prompts {
				out := ask(w.ctx, turn, p)
				w.awaiting("s", p.ID)
				w.mustAnswer("s", p.ID, "blue")
				check(t, got(t, out).err)
			}
			c.end(w, s, turn)
			if f, owed := w.state("s").Owed(); owed {
				t.Errorf("owed %+v", f)
			}
		})
	}
}

// TestReceiptsAfterALostLease: an Ask has returned an answer, and the receipt is stored. The process starts over and
// continues the turn under the next epoch. It still has the answer: its own turn in place of that turn leaves nothing
// owed.
func TestReceiptsAfterALostLease(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "blue")
	check(t, got(t, out).err)
	w.until("s", "the receipt", func(st *session.State) bool {
		c, ok := st.Carries("p1")
		return ok && c.Had == 1
	})
	for epoch := uint64(2); epoch < 4; epoch++ {
		w.dropLease(h)
		w.until("s", "the session to be claimed again", func(st *session.State) bool {
			c, ok := st.Carries("p1")
			return ok && st.Epoch == epoch && c.Had == epoch
		})
	}
	own := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "own", Synthetic: true}))
	check(t, own.Complete(w.ctx, "stop"))
	st := w.state("s")
	if f, owed := st.Owed(); owed || st.Ignored.Count != 0 {
		t.Errorf("owed %+v, ignored %+v", f, st.Ignored)
	}
}

// TestACallDoesNotEndWithoutTheAnswer: an Ask gave up at its deadline, and then the person answered. The end of the
// call would count as the delivery of an answer that the agent does not have. It is refused until an Ask has returned
// the answer; if the turn ends without that, another turn is requested for it.
func TestACallDoesNotEndWithoutTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, call *harness.Call) error
		read bool
	}{
		"failed": {end: func(w *world, call *harness.Call) error {
			return call.Fail(w.ctx, events.Failure{Kind: "timeout"})
		}},
		"completed": {end: func(w *world, call *harness.Call) error {
			return call.Complete(w.ctx, "whatever")
		}},
		"after another Ask": {read: true, end: func(w *world, call *harness.Call) error {
			return call.Complete(w.ctx, "blue")
		}},
		"failed after an Ask": {read: true, end: func(w *world, call *harness.Call) error {
			return call.Fail(w.ctx, events.Failure{Kind: "no"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
			short, cancel := context.WithCancel(w.ctx)
			gaveUp := make(chan error, 1)
			go func() {
				_, err := turn.Ask(short, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
				gaveUp <- err
			}()
			w.awaiting("s", "p1")
			cancel()
			wantErr(t, <-gaveUp, context.Canceled)
			w.mustAnswer("s", "p1", "blue")
			if c.read {
				a := must[harness.Answer](t)(turn.Ask(w.ctx,
					harness.Prompt{ID: "p1", Call: "c1", Questions: question()}))
				if a.Status != session.Answered {
					t.Errorf("%+v", a)
				}
				check(t, c.end(w, call))
			} else {
				wantErr(t, c.end(w, call), harness.ErrUnread)
			}
			check(t, turn.Complete(w.ctx, "stop"))
			if f, owed := w.state("s").Owed(); owed == c.read {
				t.Errorf("owed: %v, %+v", owed, f)
			}
		})
	}
}

// TestUnattended: the log says that nothing waits for a decision where only this process could take it in, and no Ask
// does.
func TestUnattended(t *testing.T) {
	for name, c := range map[string]struct {
		turn, background, another bool
		want                      bool
	}{
		"outside of any turn":        {want: true},
		"another Ask waits":          {another: true},
		"in a turn":                  {turn: true},
		"of a call in a turn's back": {turn: true, background: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			ask, p := s.Ask, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			if c.turn {
				turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
				p.Call = must[*harness.Call](t)(turn.Tool(w.ctx,
					harness.ToolOptions{ID: "c1", Name: "ask", Background: c.background})).ID()
				ask = turn.Ask
			}
			short, cancel := context.WithCancel(w.ctx)
			gaveUp := make(chan error, 1)
			go func() {
				_, err := ask(short, p)
				gaveUp <- err
			}()
			w.awaiting("s", "p1")
			if c.another {
				// until the world ends
				go func() { _, _ = ask(w.ctx, p) }()
				natstest.Until(t, "the other Ask", func() bool { return harness.Asks(s, "p1") == 2 })
			}
			cancel()
			wantErr(t, <-gaveUp, context.Canceled)
			if c.want {
				w.until("s", "the prompt to be unattended", func(st *session.State) bool {
					return st.Prompts["p1"].Unattended
				})
				return
			}
			check(t, s.Append(w.ctx,
				events.MessageAccepted{Message: "m1", Synthetic: true, Content: json.RawMessage(`"x"`)}))
			if w.state("s").Prompts["p1"].Unattended {
				t.Error("the prompt is unattended")
			}
		})
	}
}

// TestUnattendedAfterALostLease: a process starts over, and asks its open questions again. Nothing waits for one of
// them: the log says so under the new epoch, too. An Ask waits for the other one.
func TestUnattendedAfterALostLease(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	short, cancel := context.WithCancel(w.ctx)
	gaveUp := make(chan error, 2)
	for id, ctx := range map[string]context.Context{"left": short, "waits": w.ctx} {
		go func() {
			_, err := s.Ask(ctx, harness.Prompt{ID: id, Questions: question(), OnOwnerLoss: events.LossKeep})
			gaveUp <- err
		}()
		w.awaiting("s", id)
	}
	cancel()
	wantErr(t, <-gaveUp, context.Canceled)
	w.until("s", "the prompt to be unattended", func(st *session.State) bool { return st.Prompts["left"].Unattended })
	w.dropLease(h)
	w.until("s", "the prompts under the next epoch", func(st *session.State) bool {
		left, waits := st.Prompts["left"], st.Prompts["waits"]
		return st.Epoch == 2 && left.Epoch == 2 && left.Unattended && waits.Epoch == 2 && !waits.Unattended
	})
	w.mustAnswer("s", "left", "blue")
	if f, ok := w.state("s").Owed(); ok {
		t.Errorf("owed while a question blocks: %+v", f)
	}
	w.mustAnswer("s", "waits", "red")
	check(t, <-gaveUp)
	w.until("s", "a turn to be owed for the one answer", func(st *session.State) bool {
		f, ok := st.Owed()
		return ok && len(f.Prompts) == 1 && f.Prompts[0] == "left"
	})
}

// TestUnattendedOnce: an Ask that does not even begin says no more than the one before it. One that is refused because
// another Ask has returned the answer says nothing: the agent has the answer.
func TestUnattendedOnce(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask", Background: true}))
	p := harness.Prompt{ID: "p1", Call: "c1", Questions: question()}
	over, cancel := context.WithCancel(w.ctx)
	gaveUp := ask(over, turn, p)
	w.awaiting("s", "p1")
	cancel()
	wantErr(t, got(t, gaveUp).err, context.Canceled)
	w.until("s", "the prompt to be unattended", func(st *session.State) bool { return st.Prompts["p1"].Unattended })
	count := func(after string) (n int) {
		check(t, s.Append(w.ctx,
			events.MessageAccepted{Message: after, Synthetic: true, Content: json.RawMessage(`"x"`)}))
		for _, c := range must[[]events.Commit](t)(w.bus.Log.Read(w.ctx, ref("s"), 0)) {
			for i := range c.Events {
				if c.Events[i].Kind == (events.PromptUnattended{}).Kind() {
					n++
				}
			}
		}
		return n
	}
	_, err := turn.Ask(over, p)
	wantErr(t, err, context.Canceled)
	if n := count("m1"); n != 1 {
		t.Errorf("said %d times after an Ask that did not begin", n)
	}

	waits := ask(w.ctx, turn, p)
	w.until("s", "the prompt to be asked again", func(st *session.State) bool { return !st.Prompts["p1"].Unattended })
	w.mustAnswer("s", "p1", "blue")
	check(t, got(t, waits).err)
	_, err = turn.Ask(w.ctx, p)
	wantErr(t, err, harness.ErrClosedID)
	if n := count("m2"); n != 1 || w.state("s").Prompts["p1"].Unattended {
		t.Errorf("said %d times after an Ask of what the agent has", n)
	}
}
