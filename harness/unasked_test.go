package harness_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// asksOutside has a process ask "out" outside of any turn, and "one" and "two" in the call c1, which outlives its turn.
func (w *world) asksOutside() {
	w.t.Helper()
	turn := w.begins(w.connect())
	must[*harness.Call](w.t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "watch", Background: true}))
	ask(w.ctx, turn.Session(), left("out", ""))
	w.awaiting("s", "out")
	for _, id := range []string{"one", "two"} {
		ask(w.ctx, turn, left(id, "c1"))
		w.awaiting("s", id)
	}
	check(w.t, turn.Complete(w.ctx, "stop"))
}

func left(id, call string) harness.Prompt {
	return harness.Prompt{ID: id, Call: call, Questions: question(), OnOwnerLoss: events.LossKeep, NonBlocking: true}
}

// TestAdoptedWithoutAnAsk: a process adopts prompts that no turn contains, or their call, and does not ask. Their
// answers, of before and of after the claim, are owed to the agent although the process lives.
func TestAdoptedWithoutAnAsk(t *testing.T) {
	prompts := func(ids ...string) (all []harness.Prompt) {
		for _, id := range ids {
			all = append(all, harness.Prompt{ID: id})
		}
		return all
	}
	for name, adopt := range map[string]harness.Adopt{
		"its prompts":        {Prompts: prompts("out", "one", "two")},
		"one of its prompts": {Prompts: prompts("out", "two")},
		"its call":           {Calls: []string{"c1"}, Prompts: prompts("out")},
		"both":               {Calls: []string{"c1"}, Prompts: prompts("out", "one", "two")},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.asksOutside()
			w.mustAnswer("s", "one", "red")
			h := w.connect()
			s := must[*harness.Session](t)(h.Claim(w.ctx, "s", adopt))
			check(t, h.Ready(w.ctx))
			for _, id := range []string{"two", "out"} {
				w.mustAnswer("s", id, "blue")
			}
			w.until("s", "the answers to be owed", func(st *session.State) bool {
				f, owed := st.Owed()
				return owed && len(f.Prompts) == 3
			})
			wantErr(t, s.Call("c1").Complete(w.ctx, "blue"), harness.ErrUnread)
		})
	}
}

// TestAdoptedThenAsked: a process adopts prompts that no turn contains, and asks again after the log says that no Ask
// waits for them. The Asks return the answers, also one of before the Ask, and no turn is owed.
func TestAdoptedThenAsked(t *testing.T) {
	w := newWorld(t)
	w.asksOutside()
	h := w.connect()
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Calls: []string{"c1"},
		Prompts: []harness.Prompt{{ID: "out"}, {ID: "one"}, {ID: "two"}}}))
	w.until("s", "the prompts to be unattended", func(st *session.State) bool {
		return st.Prompts["out"].Unattended && st.Prompts["one"].Unattended && st.Prompts["two"].Unattended
	})
	w.mustAnswer("s", "out", "blue")
	w.append("s", events.WriterReconciler, must[events.TurnRequested](t)(func() (events.TurnRequested, error) {
		f, _ := w.state("s").Owed()
		return f, nil
	}()))
	again := []chan asked{ask(w.ctx, s, left("out", "")), ask(w.ctx, s, left("one", "c1")),
		ask(w.ctx, s, left("two", "c1"))}
	w.until("s", "the requests", func(st *session.State) bool {
		return !st.Prompts["one"].Unattended && !st.Prompts["two"].Unattended
	})
	w.mustAnswer("s", "one", "blue")
	w.mustAnswer("s", "two", "blue")
	for _, out := range again {
		if a := got(t, out); a.err != nil || a.answer.Choice() != "blue" {
			t.Errorf("%+v", a)
		}
	}
	check(t, s.Call("c1").Complete(w.ctx, "blue"))
	w.until("s", "the request for a turn to be taken back", func(st *session.State) bool {
		_, owed := st.Owed()
		return !owed && st.Pending.Turn == nil && len(st.Prompts) == 0
	})
}

// TestAskAdoptsACallWithAnotherQuestion: an Ask adopts a call that an earlier process left. Nothing waits for the other
// question of that call: its answer is owed, and the call does not end without it.
func TestAskAdoptsACallWithAnotherQuestion(t *testing.T) {
	for name, answered := range map[string]bool{"a question that is open": false, "a settled question": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.asksOutside()
			w.mustAnswer("s", "out", "blue")
			if answered {
				w.mustAnswer("s", "one", "blue")
			}
			s := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
			out := ask(w.ctx, s, left("one", "c1"))
			w.until("s", "the call to be adopted", func(st *session.State) bool {
				return st.Tools["c1"].Epoch == 2 && st.Prompts["two"].Unattended
			})
			w.mustAnswer("s", "two", "red")
			if !answered {
				w.mustAnswer("s", "one", "blue")
			}
			if a := got(t, out); a.err != nil || a.answer.Choice() != "blue" {
				t.Fatalf("%+v", a)
			}
			wantErr(t, s.Call("c1").Complete(w.ctx, "blue"), harness.ErrUnread)
			w.until("s", "the other answer to be owed", func(st *session.State) bool {
				for _, id := range st.Carry() {
					if id == "two" {
						return true
					}
				}
				return false
			})
			if a := got(t, ask(w.ctx, s, left("two", "c1"))); a.err != nil || a.answer.Choice() != "red" {
				t.Errorf("%+v", a)
			}
			check(t, s.Call("c1").Complete(w.ctx, "blue"))
		})
	}
}

// TestAnAdoptionThatIsNotAwaited: an Ask or a Claim adopts what an earlier process left, and gives up before the
// adoption is known to be stored. The other answers of the adopted call, and that of the adopted prompt, are owed, and
// the call does not end without them.
func TestAnAdoptionThatIsNotAwaited(t *testing.T) {
	asks := func(ctx context.Context, _ *harness.Harness, s *harness.Session) error {
		_, err := s.Ask(ctx, left("one", "c1"))
		return err
	}
	byID := func(ctx context.Context, _ *harness.Harness, s *harness.Session) error {
		_, err := s.Ask(ctx, harness.Prompt{ID: "one"})
		return err
	}
	claims := func(ctx context.Context, h *harness.Harness, _ *harness.Session) error {
		_, err := h.Claim(ctx, "s", harness.Adopt{Calls: []string{"c1"}})
		return err
	}
	for name, c := range map[string]struct {
		adopts   func(context.Context, *harness.Harness, *harness.Session) error
		answered bool
	}{
		"Ask, the question is open":        {adopts: asks},
		"Ask by id, the question is open":  {adopts: byID},
		"Ask, the question is settled":     {adopts: asks, answered: true},
		"Claim of a session that it has":   {adopts: claims},
		"Claim, and a question is settled": {adopts: claims, answered: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.asksOutside()
			if c.answered {
				w.mustAnswer("s", "one", "blue")
			}
			h, l, acknowledge := deaf(w)
			s := must[*harness.Session](t)(h.Claim(w.ctx, "s"))
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			failed := make(chan error, 1)
			l.ends.Store(true)
			go func() { failed <- c.adopts(ctx, h, s) }()
			w.until("s", "the call to be adopted", func(st *session.State) bool { return st.Tools["c1"].Epoch == 2 })
			cancel()
			wantErr(t, <-failed, harness.ErrPending)
			acknowledge()
			w.until("s", "the other question to be unattended", func(st *session.State) bool {
				return st.Prompts["two"].Unattended && st.Prompts["one"].Unattended
			})
			w.mustAnswer("s", "two", "red")
			w.until("s", "the other answer to be owed", func(st *session.State) bool {
				return slices.Contains(st.Carry(), "two")
			})
			for _, p := range []string{"one", "two"} {
				wantErr(t, s.Call("c1").Complete(w.ctx, "blue"), harness.ErrUnread)
				out := ask(w.ctx, s, left(p, "c1"))
				if p == "one" && !c.answered {
					w.until("s", "the request", func(st *session.State) bool { return !st.Prompts["one"].Unattended })
					w.mustAnswer("s", "one", "red")
				}
				if a := got(t, out); a.err != nil || a.answer.Status != session.Answered {
					t.Errorf("%s: %+v", p, a)
				}
			}
			check(t, s.Call("c1").Complete(w.ctx, "blue"))
		})
	}
}

// TestAdoptedInItsTurn: the log does not say that no Ask waits for a question that was adopted with its turn, for one
// that an Ask waits for, or for one of this process that was not named.
func TestAdoptedInItsTurn(t *testing.T) {
	w := newWorld(t)
	w.asksInACall()
	h := w.connect()
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Turn: true, Calls: []string{"c1"},
		Prompts: []harness.Prompt{{ID: "p1"}}}))
	short, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ask(short, s, left("out", ""))
	w.awaiting("s", "out")
	check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "other", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback}))
	must[*harness.Session](t)(h.Claim(w.ctx, "s"))
	must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Prompts: []harness.Prompt{{ID: "p1"}, {ID: "out"}}}))
	// behind what was said of the prompts
	check(t, s.Append(w.ctx,
		events.MessageAccepted{Message: "m1", Synthetic: true, Content: json.RawMessage(`"x"`)}))
	for id, p := range w.state("s").Prompts {
		if p.Unattended {
			t.Errorf("prompt %s: %+v", id, p)
		}
	}
}

// TestAdoptedByAClaimInDoubt: a claim that adopts a prompt is stored, and its caller gives up before that is known. The
// next call finds the session, and names nothing: the log says all the same that no Ask waits for the prompt.
func TestAdoptedByAClaimInDoubt(t *testing.T) {
	for name, take := range map[string]func(h *harness.Harness, ctx context.Context) (*harness.Session, error){
		"Claim": func(h *harness.Harness, ctx context.Context) (*harness.Session, error) { return h.Claim(ctx, "s") },
		"Open": func(h *harness.Harness, ctx context.Context) (*harness.Session, error) {
			return h.Open(ctx, "s", harness.OpenOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			w.asksOutside()
			h, l, acknowledge := deaf(w)
			ctx, cancel := context.WithCancel(w.ctx)
			failed := make(chan error, 1)
			l.ends.Store(true)
			go func() {
				_, err := h.Claim(ctx, "s", harness.Adopt{Prompts: []harness.Prompt{{ID: "out"}}})
				failed <- err
			}()
			w.until("s", "the claim to be stored", func(st *session.State) bool { return st.Epoch == 2 })
			found := make(chan error, 1)
			go func() {
				_, err := take(h, w.ctx)
				found <- err
			}()
			natstest.Until(t, "the second call to wait", func() bool { return harness.Users(h, "s") == 2 })
			cancel()
			wantErr(t, <-failed, harness.ErrUnreachable)
			acknowledge()
			check(t, <-found)
			st := w.until("s", "the prompt to be unattended", func(st *session.State) bool {
				return st.Prompts["out"].Unattended
			})
			if st.Epoch != 2 || st.Prompts["one"].Unattended || st.Prompts["two"].Unattended {
				t.Errorf("epoch %d, %+v, %+v", st.Epoch, st.Prompts["one"], st.Prompts["two"])
			}
		})
	}
}

// TestRequestedWithoutAnAsk: a prompt that Append has requested has no Ask. Its decision waits for the process, until
// the process says that nothing waits for it, or leaves. A close drops it, and shows it as not delivered.
func TestRequestedWithoutAnAsk(t *testing.T) {
	for name, ends := range map[string]struct {
		do   func(ctx context.Context, s *harness.Session) error
		owed bool
	}{
		"unattended": {func(ctx context.Context, s *harness.Session) error {
			return s.Append(ctx, events.PromptUnattended{Prompt: "p1"})
		}, true},
		"released": {func(ctx context.Context, s *harness.Session) error { return s.Release(ctx, "done") }, true},
		"closed":   {func(ctx context.Context, s *harness.Session) error { return s.Close(ctx, "finished") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
				Questions: question(), Delivery: events.DeliverMessage}))
			w.mustAnswer("s", "p1", "red")
			if f, owed := w.state("s").Owed(); owed {
				t.Errorf("owed while the process may ask: %+v", f)
			}
			check(t, ends.do(w.ctx, s))
			st := w.state("s")
			if f, owed := st.Owed(); owed != ends.owed {
				t.Errorf("owed: %v, %+v", owed, f)
			}
			e, _ := st.Ended(session.EntityPrompt, "p1")
			if !e.DeliveredAt.IsZero() || e.Outcome != string(session.Answered) {
				t.Errorf("people see %+v", e)
			}
		})
	}
}

// TestAppendedOverALostLease: a program requests a prompt by Append, without an Ask, and its lease is lost. The prompt
// waits for the program, which still has the session, and so does the decision about it, also one of before the claim.
// An adopted prompt that no Ask waits for is the opposite: its decision is owed.
func TestAppendedOverALostLease(t *testing.T) {
	for name, c := range map[string]struct {
		call                           string
		before, given, adopt, recorded bool
	}{
		"answered before the claim":                 {before: true},
		"answered after the claim":                  {},
		"in a call, answered before the claim":      {call: "c1", before: true},
		"in a call, answered after the claim":       {call: "c1"},
		"an Ask gave up, answered before the claim": {before: true, given: true},
		"an Ask gave up, answered after the claim":  {given: true},
		"adopted without an Ask, answered before":   {before: true, adopt: true},
		"adopted without an Ask, answered after":    {adopt: true},
		"adopted with its call, answered before":    {call: "c1", before: true, adopt: true},
		"an Ask gave up in a call, answered before": {call: "c1", before: true, given: true},
		"an Ask gave up in a call, answered after":  {call: "c1", given: true},
		"the program says so, answered before":      {before: true, recorded: true},
		"the program says so, answered after":       {recorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "watch", Background: true}))
			asks := left("p1", c.call)
			f := events.PromptRequested{Prompt: "p1", Call: c.call, PromptKind: events.PromptQuestion,
				Questions: question(), Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep,
				Blocking: new(bool)}
			if c.call != "" {
				f.Turn = "t1"
			}
			check(t, s.Append(w.ctx, f))
			check(t, turn.Complete(w.ctx, "stop"))
			if c.adopt {
				h = w.connect()
				adopt := harness.Adopt{Prompts: []harness.Prompt{{ID: "p1"}}}
				if c.call != "" {
					adopt.Calls = []string{c.call}
				}
				s = must[*harness.Session](t)(h.Claim(w.ctx, "s", adopt))
				check(t, h.Ready(w.ctx))
			}
			if c.given {
				over, cancel := context.WithCancel(w.ctx)
				out := ask(over, s, asks)
				w.awaiting("s", "p1")
				cancel()
				wantErr(t, got(t, out).err, context.Canceled)
			}
			if c.recorded {
				check(t, s.Append(w.ctx, events.PromptUnattended{Prompt: "p1"}))
			}
			epoch := w.state("s").Epoch
			if c.before {
				w.mustAnswer("s", "p1", "red")
			}
			w.dropLease(h)
			w.until("s", "the claim", func(st *session.State) bool { return st.Epoch == epoch+1 })
			check(t, s.Regain(w.ctx))
			if !c.before {
				w.mustAnswer("s", "p1", "red")
			}
			_, owed := w.state("s").Owed()
			recovers, due := len(w.recovers(reconciler.Alive)) > 0, c.given || c.adopt || c.recorded
			if owed != due || recovers != due {
				t.Errorf("the decision is owed: %t, and recovery acts: %t", owed, recovers)
			}
		})
	}
}
