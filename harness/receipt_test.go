package harness_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// watched is a context that reports when a call has seen its end.
type watched struct {
	context.Context
	seen chan struct{}
	once *sync.Once
}

func watch(ctx context.Context) (watched, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	return watched{ctx, make(chan struct{}), new(sync.Once)}, cancel
}

// Err implements [context.Context]. An ended context is asked why it has ended.
func (c watched) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.once.Do(func() { close(c.seen) })
	}
	return err
}

// Value hides the context inside, so that [context.Cause] calls Err.
func (c watched) Value(any) any { return nil }

// TestAskWaitsForItsReceipt: a process claims its session again after a lost lease, and the claim has the receipt for
// an answer that an Ask waits for. The context of that Ask ends before the outcome of the claim is known. The log says
// that this process has the answer, so the Ask returns it.
func TestAskWaitsForItsReceipt(t *testing.T) {
	for name, c := range map[string]struct {
		asksLater bool // the answer was read before the Ask began
		lostAgain bool // the lease of the claim is lost before its outcome is known
	}{
		"while it asks": {}, "before it asks": {asksLater: true}, "in doubt": {lostAgain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			w := newWorld(t)
			l := newLine(t, w.server.URL())
			h := w.connect(pool, func(cfg *harness.Config) { cfg.URL = l.url })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			ctx, cancel := watch(w.ctx)
			defer cancel()
			p := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			var out chan asked
			if c.asksLater {
				check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
					Questions: question(), Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}))
				w.mustAnswer("s", "p1", "red")
				natstest.Until(t, "the answer to be read", func() bool {
					return s.State().Prompts["p1"].Status == session.Answered
				})
			} else {
				out = ask(ctx, s, p)
				w.awaiting("s", "p1")
				w.answerSilently("s", "p1")
			}
			release := harness.Mute(s)
			l.ends.Store(true) // with the claim
			w.dropLease(h)
			natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
			if c.asksLater {
				out = ask(ctx, s, p)
				natstest.Until(t, "the Ask to wait", func() bool { return harness.Waiting(s) == 1 })
			}
			release()
			w.until("s", "the receipt to be stored", func(st *session.State) bool {
				return st.Epoch == 2 && st.Prompts["p1"] == nil
			})
			cancel()
			<-ctx.seen
			if c.lostAgain {
				harness.Mute(s)() // the attempt to claim ends with its lease
			}
			l.cut()
			l.deaf.Store(false)
			if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
				t.Errorf("the log has the receipt, and the Ask returned %+v", a)
			}
			if epoch := s.State().Epoch; c.lostAgain && epoch < 3 {
				t.Errorf("the answer was returned under epoch %d, before the session was claimed again", epoch)
			}
		})
	}
}

// fills appends to a session until the log has no room, not even for a small fact.
func (w *world) fills(filler *harness.Session) {
	w.t.Helper()
	for _, content := range []string{`"` + strings.Repeat("x", 4<<10) + `"`, ``} {
		var err error
		for err == nil {
			if content == "" { // less than what others append
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
	s := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b := natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = 128 << 10 })
	w := &world{t: t, server: s, bus: b, ctx: ctx, folded: map[string]*session.State{}}
	h := w.connect(pool)
	asks := must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	short, giveUp := context.WithCancel(ctx)
	defer giveUp()
	answered := ask(ctx, asks, harness.Prompt{ID: "answered", Questions: question(), OnOwnerLoss: events.LossKeep})
	unread := ask(short, asks, harness.Prompt{ID: "unattended", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("session", "answered")
	w.awaiting("session", "unattended")
	answer := w.answerSilently("session", "answered")
	w.fills(filler)
	b.Hints.Nudge(ref("session"), answer)
	check(t, got(t, answered).err)
	giveUp()
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

// TestRefusedReceiptOfAStop: the log is full when the process stores the receipt for the stop of a turn that has ended.
// The broker refuses the receipt. It is stored once the log has room again, and the next turn of the agent completes.
func TestRefusedReceiptOfAStop(t *testing.T) {
	s := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b := natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = 128 << 10 })
	w := &world{t: t, server: s, bus: b, ctx: ctx, folded: map[string]*session.State{}}
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
	s := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b := natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = 128 << 10 })
	w := &world{t: t, server: s, bus: b, ctx: ctx, folded: map[string]*session.State{}}
	h := w.connect()
	ends := must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	running, full := make(chan struct{}), make(chan struct{})
	w.work(h, harness.Worker{Turn: func(context.Context, *harness.Turn) error {
		close(running) // a second time it panics: the turn runs once
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
			t.Parallel() // it mostly waits
			w := newWorld(t)
			s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
			short, giveUp := context.WithCancel(w.ctx)
			defer giveUp()
			out := ask(short, s, harness.Prompt{ID: "p1", Title: "Paint", Questions: question(),
				OnOwnerLoss: events.LossKeep})
			w.awaiting("s", "p1")
			if c.another {
				s = must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
			} else {
				giveUp()
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
