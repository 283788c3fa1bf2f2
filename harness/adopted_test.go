package harness_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// asksInACall has a process ask p1 in the call c1 of the turn t1. The next process of the harness supersedes it.
func (w *world) asksInACall() {
	w.t.Helper()
	h := w.connect()
	s := must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(w.t, h.Ready(w.ctx))
	turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
	w.awaiting("s", "p1")
}

// TestAnAdoptedCallDoesNotEndWithoutTheAnswer: a process adopts a call without asking again. The call does not end as
// if the agent had the decision about the call's question.
func TestAnAdoptedCallDoesNotEndWithoutTheAnswer(t *testing.T) {
	for name, adopt := range map[string]harness.Adopt{
		"its call":   {Turn: true, Calls: []string{"c1"}},
		"its prompt": {Turn: true, Prompts: []harness.Prompt{{ID: "p1"}}},
		"both":       {Turn: true, Calls: []string{"c1"}, Prompts: []harness.Prompt{{ID: "p1"}}},
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", answered before ", before), func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				w.asksInACall()
				if before {
					w.mustAnswer("s", "p1", "blue")
				}
				h := w.connect()
				s := must[*harness.Session](t)(h.Claim(w.ctx, "s", adopt))
				check(t, h.Ready(w.ctx))
				if !before {
					w.mustAnswer("s", "p1", "blue")
				}
				wantErr(t, s.Call("c1").Fail(w.ctx, events.Failure{Kind: "interrupted"}), harness.ErrUnread)
				a := must[harness.Answer](t)(s.OpenTurn().Ask(w.ctx,
					harness.Prompt{ID: "p1", Call: "c1", Questions: question()}))
				if a.Status != session.Answered {
					t.Errorf("%+v", a)
				}
				check(t, s.Call("c1").Complete(w.ctx, "blue"))
				check(t, s.OpenTurn().Complete(w.ctx, "stop"))
				if f, owed := w.state("s").Owed(); owed {
					t.Errorf("owed: %+v", f)
				}
			})
		}
	}
}

// TestAskAdoptsWhatIsSettled: a process claims without adopting, and asks again what was answered meanwhile. Its agent
// has the answer, so recovery does not bring it in another turn.
func TestAskAdoptsWhatIsSettled(t *testing.T) {
	w := newWorld(t)
	w.asksInACall()
	w.mustAnswer("s", "p1", "blue")
	h := w.connect()
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s"))
	a := must[harness.Answer](t)(s.Ask(w.ctx, harness.Prompt{ID: "p1", Call: "c1", Questions: question()}))
	if a.Status != session.Answered {
		t.Errorf("%+v", a)
	}
	check(t, h.Ready(w.ctx))
	in := reconciler.Input{Now: time.Now(), Owner: reconciler.Owner{Liveness: reconciler.Alive}}
	d := must[reconciler.Decision](t)(reconciler.Decide(w.state("s"), in, w.source))
	for _, f := range d.Facts {
		t.Errorf("recovery: %s %+v", f.Kind(), f)
	}
	check(t, s.Call("c1").Complete(w.ctx, "blue"))
	check(t, s.OpenTurn().Complete(w.ctx, "stop"))
	if f, owed := w.state("s").Owed(); owed {
		t.Errorf("owed: %+v", f)
	}
}

// TestUnattendedWithAFullBuffer: no caller learns that the buffer has no room for the fact that an Ask has given up, so
// it takes room all the same.
func TestUnattendedWithAFullBuffer(t *testing.T) {
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.BufferFactsMax, c.TTL = 3, time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	short, cancel := context.WithCancel(w.ctx)
	out := ask(short, s, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "p1")
	w.server.Shutdown()
	errs := make(chan error, 4)
	for i := range 4 {
		go func() {
			_, err := turn.Tool(w.ctx, harness.ToolOptions{ID: fmt.Sprint("c", i), Name: "bash"})
			errs <- err
		}()
	}
	wantErr(t, <-errs, harness.ErrBufferFull)
	cancel()
	wantErr(t, got(t, out).err, context.Canceled)
	w.back()
	for range 3 {
		check(t, <-errs)
	}
	w.until("s", "the prompt to be unattended", func(st *session.State) bool { return st.Prompts["p1"].Unattended })
}

// TestAnAdoptedCallKeepsItsTurn: a process adopts a call of a turn, and nothing else. Work takes no turn that would end
// the call with its turn, until the call has ended.
func TestAnAdoptedCallKeepsItsTurn(t *testing.T) {
	w := newWorld(t)
	w.asksInACall()
	h := w.connect()
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Calls: []string{"c1"}}))
	check(t, h.Ready(w.ctx))
	w.append("s", events.WriterReconciler, events.TurnRequested{Turn: "a1", Cause: events.CauseAnswer, OfTurn: "t1"})
	taken := make(chan string, 1)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	go func() {
		_ = h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
			taken <- t.ID()
			return t.Complete(ctx, "stop")
		}})
	}()
	w.show("s")
	check(t, s.Call("c1").Complete(w.ctx, "blue"))
	w.show("s")
	if id := <-taken; id != "a1" {
		t.Errorf("%s is taken", id)
	}
	if e, _ := w.state("s").Ended(session.EntityTool, "c1"); e.Outcome != "completed" {
		t.Errorf("the call: %+v", e)
	}
}

// TestAskAdoptsNothing: a prompt outside of any turn and call is answered while no process runs. The next process has
// nothing to adopt for it, and gets the answer.
func TestAskAdoptsNothing(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	p := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
	ask(w.ctx, s, p)
	w.awaiting("s", "p1")
	s = must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
	w.mustAnswer("s", "p1", "blue")
	if a := got(t, ask(w.ctx, s, p)); a.err != nil || a.answer.Status != session.Answered {
		t.Errorf("got %+v", a)
	}
}

// TestGivenUpOutsideOfACall: an Ask outside of any call gave up, and then the person answered. That holds back no fact:
// only the end of a call would count as the delivery of the answer.
func TestGivenUpOutsideOfACall(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	ctx, cancel := context.WithCancel(w.ctx)
	out := ask(ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	cancel()
	wantErr(t, got(t, out).err, context.Canceled)
	w.mustAnswer("s", "p1", "blue")
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
	check(t, call.Complete(w.ctx, "done"))
}

// TestCallWhoseAnswerTheNextTurnHas: the Ask of a call in the background gave up, and the person answered. The next
// turn brings the answer to the agent, so that the call may end.
func TestCallWhoseAnswerTheNextTurnHas(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	s := turn.Session()
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask", Background: true}))
	ctx, cancel := context.WithCancel(w.ctx)
	out := ask(ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "p1")
	cancel()
	wantErr(t, got(t, out).err, context.Canceled)
	w.mustAnswer("s", "p1", "blue")
	wantErr(t, call.Complete(w.ctx, "blue"), harness.ErrUnread)
	check(t, turn.Complete(w.ctx, ""))
	wantErr(t, call.Complete(w.ctx, "blue"), harness.ErrUnread)
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", Prompts: []string{"p1"}}))
	check(t, call.Complete(w.ctx, "blue"))
}

// TestAdoptedInTheBackground: a process adopts a call in the background, or a question of it that waits or is answered,
// and not the turn. The turn has no handle there and is recovered; the call is the process's, with the answer.
func TestAdoptedInTheBackground(t *testing.T) {
	for name, adopt := range map[string]harness.Adopt{
		"its call": {Calls: []string{"c1"}}, "its question": {Prompts: []harness.Prompt{{ID: "p1"}}},
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", answered before: ", before), func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				turn := w.begins(w.connect())
				must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "watch", Background: true}))
				ask(w.ctx, turn, left("p1", "c1"))
				w.awaiting("s", "p1")
				if before {
					w.mustAnswer("s", "p1", "blue")
				}
				h := w.connect()
				s := must[*harness.Session](t)(h.Claim(w.ctx, "s", adopt))
				check(t, h.Ready(w.ctx))
				if own := s.OpenTurn(); own != nil {
					t.Errorf("the process has turn %s, and did not adopt it", own.ID())
				}
				in := reconciler.Input{Now: time.Now(), Owner: reconciler.Owner{Liveness: reconciler.Alive}}
				d := must[reconciler.Decision](t)(reconciler.Decide(w.state("s"), in, w.source))
				w.append("s", events.WriterReconciler, d.Facts...)
				st := w.state("s")
				if st.Turn != nil || !st.Owns(st.Tools["c1"].Epoch) {
					t.Errorf("turn %+v, call %+v", st.Turn, st.Tools["c1"])
				}
				if !before {
					w.mustAnswer("s", "p1", "blue")
				}
				if a := must[harness.Answer](t)(s.Ask(w.ctx, left("p1", "c1"))); a.Status != session.Answered {
					t.Errorf("%+v", a)
				}
				check(t, s.Call("c1").Complete(w.ctx, "blue"))
			})
		}
	}
}

// TestStopOfAnAdoptedCall: a person stops a turn of which a process has adopted one call. The handle of the turn tells
// that process, which confirms the stop. Another call of the turn, or one in the background, gives no handle.
func TestStopOfAnAdoptedCall(t *testing.T) {
	for name, c := range map[string]struct {
		adopt harness.Adopt
		early bool // the stop is there before the handle
		taken bool // by the next process, with the call
		none  bool
	}{
		"the stop after the handle": {adopt: harness.Adopt{Calls: []string{"c1"}}},
		"the stop before it":        {adopt: harness.Adopt{Calls: []string{"c1"}}, early: true},
		"a call in the background":  {adopt: harness.Adopt{Calls: []string{"c2"}}, none: true},
		"no call":                   {none: true},
		"the next process's call":   {adopt: harness.Adopt{Calls: []string{"c1"}}, taken: true, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			turn := w.begins(w.connect())
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c2", Name: "watch", Background: true}))
			h := w.connect()
			s := must[*harness.Session](t)(h.Claim(w.ctx, "s", c.adopt))
			check(t, h.Ready(w.ctx))
			stop := func() {
				_, err := w.decide("s", events.WriterLedger, func(st *session.State) ([]events.Fact, error) {
					d, err := st.Stop(request.Stop{Ref: ref("s"), By: "ada"})
					return d.Facts, err
				})
				check(t, err)
			}
			if c.taken {
				must[*harness.Session](t)(w.connect().Claim(w.ctx, "s", c.adopt))
				<-s.Context().Done()
			}
			if c.early {
				stop()
				natstest.Until(t, "the stop to be read", func() bool { return s.State().Pending.Stop != nil })
			}
			is := s.OpenTurn()
			if c.none {
				if is != nil {
					t.Errorf("a handle of %s", is.ID())
				}
				return
			}
			if is == nil || is.ID() != "t1" || string(is.Request().Content) != `"deploy"` {
				t.Fatalf("the handle is %+v", is)
			}
			if !c.early {
				check(t, is.Context().Err())
				stop()
			}
			select {
			case <-is.Context().Done():
			case <-w.ctx.Done():
				t.Fatal("nothing tells the process of the stop")
			}
			wantErr(t, context.Cause(is.Context()), harness.ErrStopped)
			check(t, is.Stop(w.ctx, events.ActorPerson, "stopped"))
			st := w.state("s")
			if st.Turn != nil || st.LastTurn.Outcome != session.OutcomeStopped || st.Pending.Stop != nil ||
				st.Tools["c1"] != nil {
				t.Errorf("turn %+v, last %+v, stop %+v, calls %v", st.Turn, st.LastTurn, st.Pending.Stop, st.Tools)
			}
		})
	}
}
