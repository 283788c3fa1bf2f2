package harness_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// inAClaim has a process ask outside of any turn, or in a turn, and lose its lease. A person answers, and the claim of
// the session is stored without an acknowledgement: the process does not know that it has the session again. end ends
// the context of the Ask. again gives the process its connection back.
func (w *world) inAClaim(of func(s *harness.Session) asker, asksLater bool) (s *harness.Session, out chan asked,
	end, again func()) {
	w.t.Helper()
	l := newLine(w.t, w.server.URL())
	h := w.connect(pool, func(cfg *harness.Config) { cfg.URL = l.url })
	s = must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(w.t, h.Ready(w.ctx))
	by := of(s)
	ctx, cancel := context.WithCancel(w.ctx)
	w.t.Cleanup(cancel)
	p := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
	if asksLater {
		f := events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion, Questions: question(),
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}
		if turn, ok := by.(*harness.Turn); ok {
			f.Turn = turn.ID()
		}
		check(w.t, s.Append(w.ctx, f))
		w.mustAnswer("s", "p1", "red")
		natstest.Until(w.t, "the answer to be read", func() bool {
			return s.State().Prompts["p1"].Status == session.Answered
		})
	} else {
		out = ask(ctx, by, p)
		w.awaiting("s", "p1")
		w.answerSilently("s", "p1")
	}
	w.suspendedInAClaim(l, h, s, func() {
		if asksLater {
			out = ask(ctx, by, p)
			natstest.Until(w.t, "the Ask to wait", func() bool { return harness.Waiting(s) == 1 })
		}
	})
	if q := w.state("s").Prompts["p1"]; q == nil || q.Epoch != 2 {
		w.t.Errorf("after the claim the prompt is %+v", q)
	}
	return s, out, cancel, func() {
		l.cut()
		l.deaf.Store(false)
	}
}

// outsideOrInATurn are the ways to ask: outside of any turn, and in one.
func (w *world) outsideOrInATurn() map[string]func(s *harness.Session) asker {
	return map[string]func(s *harness.Session) asker{
		"outside": func(s *harness.Session) asker { return s },
		"in a turn": func(s *harness.Session) asker {
			return must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		},
	}
}

// TestAskInAClaim: a process claims its session again after a lost lease while an Ask waits, and the answer is in the
// log. The Ask returns the answer when the claim is known to be stored, and gives the receipt. No turn is owed.
func TestAskInAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		asksLater bool // the answer was read before the Ask began
		lostAgain bool // the lease of the claim is lost before its outcome is known
	}{
		"while it asks": {}, "before it asks": {asksLater: true}, "in doubt": {lostAgain: true},
	} {
		for _, place := range []string{"outside", "in a turn"} {
			t.Run(name+" "+place, func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				s, out, _, again := w.inAClaim(w.outsideOrInATurn()[place], c.asksLater)
				if f, owed := w.state("s").Owed(); owed {
					t.Errorf("while an Ask waits for the answer, a turn is owed: %+v", f)
				}
				if c.lostAgain {
					// the attempt to claim ends with its lease
					harness.Mute(s)()
				}
				again()
				if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
					t.Errorf("the Ask returned %+v", a)
				}
				if epoch := s.State().Epoch; c.lostAgain && epoch < 3 {
					t.Errorf("the answer was returned under epoch %d, before the session was claimed again", epoch)
				}
				w.until("s", "the receipt", func(st *session.State) bool { return st.Prompts["p1"] == nil })
			})
		}
	}
}

// TestAskEndsInAClaim: the context of an Ask ends while the claim of its session is under way. The Ask returns at once,
// without the answer, although the broker is away. The answer stays owed to the agent: outside of a turn as soon as the
// session rests, in a turn when that turn has ended, however it ends.
func TestAskEndsInAClaim(t *testing.T) {
	for _, place := range []string{"outside", "in a turn"} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprint(place, ", asks later: ", later), func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				s, out, end, again := w.inAClaim(w.outsideOrInATurn()[place], later)
				end()
				wantErr(t, got(t, out).err, context.Canceled)
				again()
				if place == "in a turn" {
					check(t, s.OpenTurn().Complete(w.ctx, ""))
				}
				w.until("s", "a turn to be owed for the answer", func(st *session.State) bool {
					f, owed := st.Owed()
					return owed && f.Prompt == "p1"
				})
			})
		}
	}
}

// TestWorkEndsInAClaim: the lease is lost while an Ask of a handler waits, and the answer is stored. The broker goes
// away while the claim of the session is under way, and then the context of Work ends. Work returns without the broker.
func TestWorkEndsInAClaim(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(pool, func(cfg *harness.Config) { cfg.URL = l.url })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
			_, err := t.Ask(ctx, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
			return err
		}})
	}()
	w.request("s", "t1", "x")
	w.awaiting("s", "p1")
	w.answerSilently("s", "p1")
	w.suspendedInAClaim(l, h, s, func() {})
	l.down.Store(true)
	l.cut()
	cancel()
	select {
	case err := <-done:
		check(t, err)
	case <-time.After(harness.LastWordMax + 5*time.Second):
		t.Error("Work does not return while the broker is away")
	}
	l.down.Store(false)
	l.deaf.Store(false)
	w.until("s", "the answer to be kept for the next attempt", func(st *session.State) bool {
		c, ok := st.Carries("p1")
		return ok && c.Had == 0 || st.Prompts["p1"] != nil
	})
}

// fills appends to a session until the log has no room, not even for a small fact.
func (w *world) fills(filler *harness.Session) {
	w.t.Helper()
	for _, content := range []string{`"` + strings.Repeat("x", 4<<10) + `"`, ``} {
		var err error
		for err == nil {
			// less than what others append
			if content == "" {
				err = filler.Relay(w.ctx, events.PromptUnattended{Prompt: "x"})
			} else {
				err = filler.Append(w.ctx, events.MessageAccepted{Message: w.bus.NewID(), Content: []byte(content)})
			}
		}
		wantErr(w.t, err, harness.ErrFull)
	}
}

// TestRefusedReceipts: the log is full when an Ask returns an answer, and when another Ask gives up. The broker refuses
// the receipt of the one and prompt.unattended of the other, for which no caller waits. Both are stored once the log
// has room again.
func TestRefusedReceipts(t *testing.T) {
	w := newWorld(t, smallLog)
	ctx, b := w.ctx, w.bus
	h := w.connect(pool)
	asks := must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	short, releaseUnused := context.WithCancel(ctx)
	defer releaseUnused()
	answered := ask(ctx, asks, harness.Prompt{ID: "answered", Questions: question(), OnOwnerLoss: events.LossKeep})
	unread := ask(short, asks, harness.Prompt{ID: "unattended", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("session", "answered")
	w.awaiting("session", "unattended")
	answer := w.answerSilently("session", "answered")
	w.fills(filler)
	b.Hints.Nudge(ref("session"), answer)
	check(t, got(t, answered).err)
	releaseUnused()
	wantErr(t, got(t, unread).err, context.Canceled)
	natstest.Until(t, "both facts to be refused", func() bool {
		return harness.Kept(asks) == 2
	})
	if raised := must[bool](t)(b.Log.RaiseLimit(ctx)); !raised {
		t.Fatal("the limit of the log was not raised")
	}
	w.until("session", "the receipt, and that no Ask waits", func(st *session.State) bool {
		return st.Prompts["answered"] == nil && st.Prompts["unattended"].Unattended
	})
}

// TestClaimAgainInAFullLog: the log is full when a process that starts over claims its sessions. The broker refuses the
// claims. The process loses neither its session nor the question that waits in it, and claims again until there is
// room.
func TestClaimAgainInAFullLog(t *testing.T) {
	w := newWorld(t, smallLog)
	ctx, b := w.ctx, w.bus
	h := w.connect(pool)
	asks := must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	check(t, h.Ready(ctx))
	turn := must[*harness.Turn](t)(asks.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(ctx, turn, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("session", "p1")
	w.fills(filler)
	nc := must[*nats.Conn](t)(nats.Connect(w.server.URL()))
	defer nc.Close()
	claims := must[*nats.Subscription](t)(nc.SubscribeSync(
		b.Cell().LogSubject(ref("session"), events.WriterHarness)))
	check(t, nc.Flush())
	w.dropLease(h)
	// the second one would be the settlement of a claim in doubt
	for range 3 {
		must[*nats.Msg](t)(claims.NextMsgWithContext(ctx))
	}
	select {
	case a := <-out:
		t.Fatalf("the Ask returned: %+v, %v", a.answer, a.err)
	case <-asks.Context().Done():
		t.Fatalf("the session ended: %v", context.Cause(asks.Context()))
	default:
	}
	if raised := must[bool](t)(b.Log.RaiseLimit(ctx)); !raised {
		t.Fatal("the limit of the log was not raised")
	}
	check(t, h.Ready(ctx))
	w.mustAnswer("session", "p1", "red")
	if a := got(t, out); a.err != nil || a.answer.Choice() != "red" {
		t.Errorf("%+v, %v", a.answer, a.err)
	}
	check(t, turn.Complete(ctx, "stop"))
}

// TestRefusedReceiptOfAStop: the log is full when the process stores the receipt for the stop of a turn that has ended.
// The broker refuses the receipt. It is stored once the log has room again, and the next turn of the agent completes.
func TestRefusedReceiptOfAStop(t *testing.T) {
	w := newWorld(t, smallLog)
	ctx, b := w.ctx, w.bus
	h := w.connect(pool)
	stopped := must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(stopped.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	check(t, turn.Complete(ctx, ""))
	write := harness.Mute(stopped)
	stop := w.append("session", events.WriterLedger,
		events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
	w.fills(filler)
	write()
	b.Hints.Nudge(ref("session"), stop)
	natstest.Until(t, "the receipt to be refused", func() bool { return harness.Kept(stopped) == 1 })
	if raised := must[bool](t)(b.Log.RaiseLimit(ctx)); !raised {
		t.Fatal("the limit of the log was not raised")
	}
	// the log has it before its writer knows, and until then a turn is refused
	natstest.Until(t, "the receipt", func() bool { return stopped.State().Pending.Stop == nil })
	turn = must[*harness.Turn](t)(stopped.StartTurn(ctx, harness.StartOptions{ID: "t2", Synthetic: true}))
	check(t, turn.Complete(ctx, ""))
}

// TestRefusedEnd: the log is full when a handler returns, and the broker refuses the end of its turn. The
// end is stored once the log has room again.
func TestRefusedEnd(t *testing.T) {
	w := newWorld(t, smallLog)
	ctx, b := w.ctx, w.bus
	h := w.connect()
	ends := must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	running, full := make(chan struct{}), make(chan struct{})
	w.work(h, harness.Worker{Turn: func(context.Context, *harness.Turn) error {
		// a second time it panics: the turn runs once
		close(running)
		<-full
		return nil
	}})
	w.request("session", "t1", "x")
	<-running
	w.fills(filler)
	close(full)
	natstest.Until(t, "the end to be refused", func() bool { return harness.Kept(ends) == 1 })
	if raised := must[bool](t)(b.Log.RaiseLimit(ctx)); !raised {
		t.Fatal("the limit of the log was not raised")
	}
	st := w.until("session", "the end", func(st *session.State) bool { return st.Turn == nil && st.LastTurn != nil })
	if st.LastTurn.Outcome != session.OutcomeCompleted || st.Ignored.Count != 0 {
		t.Errorf("the turn ended as %+v", st.LastTurn)
	}
}

// TestAskByIDAlone: an Ask names an open prompt by its id alone. If the prompt has to be requested again, because no
// Ask waited for it or because an earlier process asked it, people see the question as it was asked.
func TestAskByIDAlone(t *testing.T) {
	for name, c := range map[string]struct{ another bool }{"unattended": {}, "of an earlier process": {another: true}} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			short, releaseUnused := context.WithCancel(w.ctx)
			defer releaseUnused()
			out := ask(short, s, harness.Prompt{ID: "p1", Title: "Paint", Questions: question(),
				OnOwnerLoss: events.LossKeep})
			w.awaiting("s", "p1")
			if c.another {
				s = must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
			} else {
				releaseUnused()
				wantErr(t, got(t, out).err, context.Canceled)
				w.until("s", "the prompt to be unattended", func(st *session.State) bool {
					return st.Prompts["p1"].Unattended
				})
			}
			out = ask(w.ctx, s, harness.Prompt{ID: "p1"})
			st := w.until("s", "the prompt to be asked again", func(st *session.State) bool {
				p := st.Prompts["p1"]
				return p.Epoch == st.Epoch && !p.Unattended
			})
			b, err := st.Blocker("p1", w.source)
			check(t, err)
			if b.Title != "Paint" || len(b.Questions) != 1 || b.OnOwnerLoss != events.LossKeep {
				t.Errorf("people see %+v", b)
			}
			w.mustAnswer("s", "p1", "blue")
			if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "blue" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestAskByIDWithFields: an Ask names the prompt of an earlier process by its id, and sets a deadline, its call and
// what becomes of it when this process dies. The question stays as it was asked, and these fields apply.
func TestAskByIDWithFields(t *testing.T) {
	w := newWorld(t)
	first := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, first.Append(w.ctx, events.ToolStarted{Call: "c1", Name: "ask"}))
	ask(w.ctx, first, harness.Prompt{ID: "p1", Title: "Paint", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "p1")
	s := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
	due := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	ask(w.ctx, s, harness.Prompt{ID: "p1", Call: "c1", Deadline: due, OnOwnerLoss: events.LossExpire,
		Delivery: events.DeliverMessage, NonBlocking: true, Native: "extra"})
	st := w.until("s", "the prompt to be asked again", func(st *session.State) bool {
		return st.Prompts["p1"].Epoch == st.Epoch
	})
	p := st.Prompts["p1"]
	if p.Call != "c1" || p.Deadline == nil || !p.Deadline.Equal(due) || p.OnOwnerLoss != events.LossExpire ||
		p.Delivery != events.DeliverMessage || p.Blocking {
		t.Errorf("the prompt is %+v", p)
	}
	b, err := st.Blocker("p1", w.source)
	check(t, err)
	if b.Title != "Paint" || len(b.Questions) != 1 {
		t.Errorf("people see %+v", b)
	}
	c, err := w.source(p.Seq)
	check(t, err)
	if f, ok := c.Events[len(c.Events)-1].Fact.(events.PromptRequested); !ok || string(f.Native) != `"extra"` {
		t.Errorf("the request is %+v", c.Events)
	}
}

// TestAskByIDOfAnOpenPrompt: an Ask that names the open prompt of its own process by id waits with the Ask before it.
// It needs nothing of the log, so an outage does not end it.
func TestAskByIDOfAnOpenPrompt(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	first := ask(w.ctx, s, harness.Prompt{ID: "p1", Title: "Paint", Questions: question()})
	w.awaiting("s", "p1")
	check(t, s.Append(w.ctx, events.ToolStarted{Call: "c1", Name: "bash"}))
	// the question cannot be read
	check(t, w.bus.Log.PurgeSession(w.ctx, events.Ref{Harness: me, Session: "s"}, s.State().Seq))
	second := ask(w.ctx, s, harness.Prompt{ID: "p1"})
	natstest.Until(t, "two Asks", func() bool { return harness.Asks(s, "p1") == 2 })
	check(t, s.Append(w.ctx, events.PromptAnswered{Prompt: "p1", By: "policy"}))
	for _, out := range []chan asked{first, second} {
		if a := got(t, out); a.err != nil || a.answer.By != "policy" {
			t.Errorf("%+v", a)
		}
	}
}

// TestAskByIDAfterTheEnd: an Ask by id alone in an abandoned process says that the process is closed.
func TestAskByIDAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	ask(w.ctx, s, harness.Prompt{ID: "p1", Title: "Paint", Questions: question()})
	w.awaiting("s", "p1")
	h.Abandon()
	_, err := s.Ask(w.ctx, harness.Prompt{ID: "p1"})
	wantErr(t, err, harness.ErrClosed)
}
