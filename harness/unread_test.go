package harness_test

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// TestCallTakenInAnyWay: a process takes a call that an earlier one left: by Tool, by Append, by another question of
// the call, or by nothing but its end. Nothing here waits for the question of before. The call does not end without its
// decision, which is owed to the agent.
func TestCallTakenInAnyWay(t *testing.T) {
	for how, take := range map[string]func(w *world, s *harness.Session, turn *harness.Turn){
		"Tool": func(w *world, _ *harness.Session, turn *harness.Turn) {
			must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "watch", Background: true}))
		},
		"Append": func(w *world, s *harness.Session, _ *harness.Turn) {
			check(w.t, s.Append(w.ctx, events.ToolStarted{Call: "c1", Name: "watch", Background: true}))
		},
		"Append of a question": func(w *world, s *harness.Session, _ *harness.Turn) {
			check(w.t, s.Append(w.ctx, events.PromptRequested{Prompt: "three", Call: "c1",
				PromptKind: events.PromptQuestion, Questions: question(), Delivery: events.DeliverToolResult,
				OnOwnerLoss: events.LossKeep, Blocking: new(bool)}))
		},
		"Append of its question": func(w *world, s *harness.Session, _ *harness.Turn) {
			check(w.t, s.Append(w.ctx, events.PromptRequested{Prompt: "two", PromptKind: events.PromptQuestion,
				Questions: question(), Delivery: events.DeliverToolResult, OnOwnerLoss: events.LossKeep,
				Blocking: new(bool)}))
		},
		"Ask of a new question": func(w *world, s *harness.Session, _ *harness.Turn) {
			ask(w.ctx, s, left("three", "c1"))
			w.awaiting("s", "three")
		},
		"nothing": func(*world, *harness.Session, *harness.Turn) {},
	} {
		for when, before := range map[string]bool{", answered before": true, ", answered after": false} {
			if how == "nothing" && !before {
				// the answer ends a call that no process has
				continue
			}
			t.Run(how+when, func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				w.asksOutside()
				w.mustAnswer("s", "out", "blue")
				if before {
					w.mustAnswer("s", "one", "red")
				}
				h := w.connect()
				s := must[*harness.Session](t)(h.Claim(w.ctx, "s"))
				turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", Synthetic: true}))
				take(w, s, turn)
				check(t, h.Ready(w.ctx))
				if !before {
					w.mustAnswer("s", "one", "red")
				}
				natstest.Until(t, "the answer to be read", func() bool {
					p := s.State().Prompts["one"]
					return p != nil && p.Status == session.Answered
				})
				wantErr(t, s.Call("c1").Complete(w.ctx, "done"), harness.ErrUnread)
				wantErr(t, s.Append(w.ctx, events.ToolStarted{Call: "c1", Name: "watch", Background: true},
					events.ToolCompleted{Call: "c1", Output: []byte(`"done"`)}), harness.ErrUnread)
				check(t, turn.Complete(w.ctx, "stop"))
				w.until("s", "the decision to be owed", func(st *session.State) bool {
					for _, id := range st.Carry() {
						if id == "one" {
							return true
						}
					}
					return false
				})
			})
		}
	}
}

// TestCallOfATurnTakenByTool: a process adopts a turn, and attaches to its call by Tool. The call does not end without
// the decision that no Ask here has returned, and the turn leaves it owed.
func TestCallOfATurnTakenByTool(t *testing.T) {
	for name, before := range map[string]bool{"answered before": true, "answered after": false} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.asksInACall()
			if before {
				w.mustAnswer("s", "p1", "blue")
			}
			h := w.connect()
			s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Turn: true}))
			turn := s.OpenTurn()
			c := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
			check(t, h.Ready(w.ctx))
			if !before {
				w.mustAnswer("s", "p1", "blue")
			}
			natstest.Until(t, "the answer to be read", func() bool {
				p := s.State().Prompts["p1"]
				return p != nil && p.Status == session.Answered
			})
			wantErr(t, c.Complete(w.ctx, "done"), harness.ErrUnread)
			check(t, turn.Complete(w.ctx, "stop"))
			if _, owed := w.state("s").Owed(); !owed {
				t.Error("the decision is lost")
			}
		})
	}
}

// TestOwnCallsOverALostLease: the calls of a process are its own after a lost lease, also where its claim takes several
// commits: a program that reads a decision by itself ends its call.
func TestOwnCallsOverALostLease(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	turn := w.begins(h)
	s := turn.Session()
	check(t, h.Ready(w.ctx))
	c := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "watch", Background: true}))
	check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1",
		PromptKind: events.PromptQuestion, Questions: question(), Delivery: events.DeliverToolResult,
		OnOwnerLoss: events.LossKeep, Blocking: new(bool)}))
	w.mustAnswer("s", "p1", "red")
	w.dropLease(h)
	w.until("s", "the claim", func(st *session.State) bool { return st.Epoch == 2 })
	check(t, s.Regain(w.ctx))
	check(t, c.Complete(w.ctx, "red"))
}

// TestAnAskInAnAdoptedCallAdoptsItsTurn: a process adopts a call of a turn, and asks the question of the call, which is
// settled before the claim, after it, or after the Ask. The turn is this process's then: recovery leaves it alone.
func TestAnAskInAnAdoptedCallAdoptsItsTurn(t *testing.T) {
	for _, when := range []string{"before the claim", "after the claim", "after the Ask"} {
		t.Run(when, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.asksInACall()
			if when == "before the claim" {
				w.mustAnswer("s", "p1", "blue")
			}
			h := w.connect()
			s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Calls: []string{"c1"}}))
			check(t, h.Ready(w.ctx))
			if when == "after the claim" {
				w.mustAnswer("s", "p1", "blue")
				natstest.Until(t, "the answer to be read", func() bool {
					p := s.State().Prompts["p1"]
					return p != nil && p.Status == session.Answered
				})
			}
			is := s.OpenTurn()
			out := ask(w.ctx, is, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
			if when == "after the Ask" {
				w.awaiting("s", "p1")
				w.mustAnswer("s", "p1", "blue")
			}
			if a := got(t, out); a.err != nil || a.answer.Status != session.Answered {
				t.Fatalf("%+v", a)
			}
			if st := w.state("s"); st.Turn.Epoch != st.Epoch {
				t.Errorf("the Ask has not adopted the turn: %+v, epoch %d", st.Turn, st.Epoch)
			}
			check(t, s.Call("c1").Complete(w.ctx, "blue"))
			for _, f := range w.recovers(reconciler.Alive) {
				t.Errorf("recovery: %s %+v", f.Kind(), f)
			}
			check(t, is.Complete(w.ctx, "stop"))
		})
	}
}

// TestAppendedAfterAnAskGaveUp: an Ask gives up, and the program requests its prompt again by Append. The decision
// waits for the program, also over a lost lease.
func TestAppendedAfterAnAskGaveUp(t *testing.T) {
	for name, before := range map[string]bool{"answered before": true, "answered after": false} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			over, cancel := context.WithCancel(w.ctx)
			out := ask(over, s, left("p1", ""))
			w.awaiting("s", "p1")
			cancel()
			wantErr(t, got(t, out).err, context.Canceled)
			w.until("s", "that no Ask waits", func(st *session.State) bool { return st.Prompts["p1"].Unattended })
			check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
				Questions: question(), Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep,
				Blocking: new(bool)}))
			epoch := w.state("s").Epoch
			if before {
				w.mustAnswer("s", "p1", "red")
			}
			w.dropLease(h)
			w.until("s", "the claim", func(st *session.State) bool { return st.Epoch == epoch+1 })
			check(t, s.Regain(w.ctx))
			if !before {
				w.mustAnswer("s", "p1", "red")
			}
			_, owed := w.state("s").Owed()
			if recovers := len(w.recovers(reconciler.Alive)) > 0; owed || recovers {
				t.Errorf("the decision is owed: %t, and recovery acts: %t", owed, recovers)
			}
		})
	}
}

// TestARetryBringsNothingThatACallHas: the turn of a call in the background fails. The call continues with the
// decision that its Ask has returned, and the next attempt of the turn does not bring it a second time.
func TestARetryBringsNothingThatACallHas(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "watch", Background: true}))
	out := ask(w.ctx, turn, left("p1", "c1"))
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "red")
	if a := got(t, out); a.err != nil {
		t.Fatal(a.err)
	}
	check(t, turn.Fail(w.ctx, events.Failure{Kind: "rate_limit", Text: "slow down"}, false))
	if c := w.state("s").Carry(); len(c) != 0 {
		t.Errorf("the next attempt names %v, which the call of this living process has", c)
	}
}

// TestRefusedWhileOptionsAreAsked: the harness refuses one of the decisions that a requested turn brings while
// Worker.Options is asked for that turn. The turn does not bring it.
func TestRefusedWhileOptionsAreAsked(t *testing.T) {
	w := newWorld(t)
	w.asksOutside()
	h := w.connect()
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Calls: []string{"c1"},
		Prompts: []harness.Prompt{{ID: "out"}, {ID: "one"}, {ID: "two"}}}))
	check(t, h.Ready(w.ctx))
	w.until("s", "the prompts to be unattended", func(st *session.State) bool {
		return st.Prompts["out"].Unattended && st.Prompts["one"].Unattended && st.Prompts["two"].Unattended
	})
	for _, id := range []string{"out", "one", "two"} {
		w.mustAnswer("s", id, "blue")
	}
	f, _ := w.state("s").Owed()
	w.append("s", events.WriterReconciler, f)
	asked, goOn, given := make(chan struct{}, 2), make(chan struct{}), make(chan session.WorkTurn, 1)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- h.Work(ctx, harness.Worker{Options: func(*harness.Session, session.WorkTurn) any {
			asked <- struct{}{}
			<-goOn
			return "x"
		}, Turn: func(_ context.Context, t *harness.Turn) error {
			given <- t.Request()
			return nil
		}})
	}()
	w.show("s")
	<-asked
	check(t, s.Refuse(w.ctx, "out", "no longer"))
	w.until("s", "the receipt", func(st *session.State) bool { return st.Prompts["out"] == nil })
	close(goOn)
	is := <-given
	if len(is.Prompts) != 2 {
		t.Errorf("the turn brings %d decisions, want 2", len(is.Prompts))
	}
	for _, p := range is.Prompts {
		if p.Prompt == "out" {
			t.Errorf("the turn brings what was refused: %+v", p)
		}
	}
	cancel()
	check(t, <-done)
}

// TestAnsweredWhileOptionsAreAsked: a person decides while Worker.Options is asked for a requested turn, in a session
// of this process. The turn brings that decision, too.
func TestAnsweredWhileOptionsAreAsked(t *testing.T) {
	w := newWorld(t)
	w.asksOutside()
	h := w.connect()
	must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Prompts: []harness.Prompt{{ID: "out"}}}))
	check(t, h.Ready(w.ctx))
	w.until("s", "the prompt to be unattended", func(st *session.State) bool { return st.Prompts["out"].Unattended })
	w.append("s", events.WriterCompaction, events.MessageAccepted{Message: "m9", Content: []byte(`"go on"`), By: "ada"},
		events.TurnRequested{Turn: "t9", Cause: events.CauseMessage, Message: "m9"})
	asked, goOn, given := make(chan int, 4), make(chan struct{}), make(chan session.WorkTurn, 1)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- h.Work(ctx, harness.Worker{Options: func(_ *harness.Session, t session.WorkTurn) any {
			asked <- len(t.Prompts)
			<-goOn
			return "x"
		}, Turn: func(_ context.Context, t *harness.Turn) error {
			given <- t.Request()
			return nil
		}})
	}()
	w.show("s")
	before := <-asked
	w.mustAnswer("s", "out", "blue")
	close(goOn)
	is := <-given
	if len(is.Prompts) != before+1 || !slices.ContainsFunc(is.Prompts, func(p session.TurnPrompt) bool {
		return p.Prompt == "out" && len(p.Answers) == 1
	}) {
		t.Errorf("the turn brings %+v, want what was decided before (%d), and out", is.Prompts, before)
	}
	cancel()
	check(t, <-done)
}
