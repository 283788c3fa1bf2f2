package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestFenced (R6): the contexts of a process whose session was taken end, at every point, and none of its later facts
// counts.
func TestFenced(t *testing.T) {
	for _, c := range []struct {
		name string
		take func(w *world)
	}{
		{"by the reconciler", func(w *world) {
			if _, err := w.decide("s", events.WriterReconciler, func(st *session.State) ([]events.Fact, error) {
				return []events.Fact{events.SessionOrphaned{Reason: events.ReasonOwnerLost,
					Incarnation: st.Incarnation}}, nil
			}); err != nil {
				w.t.Fatal(err)
			}
		}},
		{"by a newer incarnation", func(w *world) {
			newer := w.connect()
			must[*harness.Session](w.t)(newer.Claim(w.ctx, "s"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
			w.awaiting("s", "p1")
			c.take(w)
			// noticed by losing the race, or by a nudge
			_, err := turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"})
			wantErr(t, err, harness.ErrFenced)
			wantErr(t, ended(t, turn.Context()), harness.ErrFenced)
			wantErr(t, ended(t, s.Context()), harness.ErrFenced)
			wantErr(t, got(t, out).err, harness.ErrFenced)
			wantErr(t, turn.Complete(w.ctx, ""), harness.ErrFenced)
			st := w.state("s")
			if st.Ignored.Count != 0 || len(st.Tools) != 0 || st.Prompts["p1"].Status != session.Awaiting {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestClaimAfterFence: a fenced process may claim a session again that has no owner; a superseded one may not.
func TestClaimAfterFence(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	w.append("s", events.WriterReconciler,
		events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: h.Incarnation()})
	wantErr(t, ended(t, s.Context()), harness.ErrFenced)
	again := must[*harness.Session](t)(h.Claim(w.ctx, "s"))
	if again.State().Epoch != 2 || again.Context().Err() != nil {
		t.Errorf("%+v", again.State())
	}
	newer := w.connect()
	must[*harness.Session](t)(newer.Claim(w.ctx, "s"))
	wantErr(t, ended(t, again.Context()), harness.ErrFenced)
	_, err := h.Claim(w.ctx, "s")
	wantErr(t, err, harness.ErrFenced)
}

// TestRestartWithAdoption (R7): the next process claims the session together with its question, and gets the answer,
// also one that came while no process ran. Items that it does not adopt keep their old epoch, for recovery.
func TestRestartWithAdoption(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	for i := range 3 {
		id := fmt.Sprint(i)
		must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c" + id, Name: "ask"}))
		if i < 2 {
			ask(w.ctx, turn, harness.Prompt{ID: "p" + id, Call: "c" + id, Questions: question()})
			w.awaiting("s", "p"+id)
		}
	}
	// a callback that is not rebuilt
	ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question()})
	w.awaiting("s", "p2")
	// reaches the log; the process dies before its call is closed (P13)
	w.mustAnswer("s", "p1", "early")

	two := w.connect()
	before := w.state("s").Commits
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s",
		harness.Adopt{Prompts: []harness.Prompt{{ID: "p0"}, {ID: "p1"}, {ID: "never"}}}))
	st := w.state("s")
	if st.Commits != before+1 || st.Ignored.Count != 0 {
		t.Errorf("claimed in %d commits, %d ignored", st.Commits-before, st.Ignored.Count)
	}
	if st.Epoch != 2 || st.Prompts["p0"].Epoch != 2 || st.Tools["c0"].Epoch != 2 || st.Tools["c1"].Epoch != 2 ||
		st.Turn.Epoch != 2 {
		t.Errorf("not adopted: %+v", st)
	}
	if st.Tools["c2"].Epoch != 1 || st.Prompts["p2"].Epoch != 1 {
		t.Errorf("adopted without being asked to: %+v", st)
	}
	turn = s.OpenTurn()
	if turn == nil || turn.ID() != "t1" {
		t.Fatalf("%+v", turn)
	}
	a, err := turn.Ask(w.ctx, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
	if err != nil || a.Answers[0].Text != "early" {
		t.Fatalf("%+v %v", a, err)
	}
	check(t, s.Call("c1").Complete(w.ctx, a.Answers))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p0", Call: "c0", Questions: question()})
	w.mustAnswer("s", "p0", "late")
	if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "late" {
		t.Fatalf("%+v", a)
	}
	check(t, s.Call("c0").Complete(w.ctx, 1))
	if st := w.state("s"); st.Commits != before+4 || st.Ignored.Count != 0 || st.Prompts["p0"] != nil ||
		st.Prompts["p1"] != nil {
		t.Errorf("%d commits, %+v", st.Commits-before, st)
	}
}

// Many sessions are claimed at once, each with its question, and every question is answered after that.
func TestRestartOfMany(t *testing.T) {
	const sessions = 200
	w := newWorld(t)
	one := w.connect()
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			s, err := one.Open(w.ctx, fmt.Sprint(i), harness.OpenOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			turn, err := s.StartTurn(w.ctx, harness.StartOptions{ID: "t", Content: "x"})
			if err != nil {
				t.Error(err)
				return
			}
			ask(w.ctx, turn, harness.Prompt{ID: "p", Questions: question(), OnOwnerLoss: events.LossKeep})
			w.awaiting(fmt.Sprint(i), "p")
		})
	}
	wg.Wait()
	two := w.connect()
	for i := range sessions {
		wg.Go(func() {
			s, err := two.Claim(w.ctx, fmt.Sprint(i), harness.Adopt{Prompts: []harness.Prompt{{ID: "p"}}})
			if err != nil {
				t.Error(err)
				return
			}
			out := ask(w.ctx, s.OpenTurn(), harness.Prompt{ID: "p", Questions: question()})
			if err := w.answer(fmt.Sprint(i), "p", fmt.Sprint("answer ", i)); err != nil {
				t.Error(err)
			}
			if a := <-out; a.err != nil || a.answer.Answers[0].Text != fmt.Sprint("answer ", i) {
				t.Errorf("%d: %+v", i, a)
			}
		})
	}
	wg.Wait()
}

// TestCleanShutdown (R16): a process that leaves in order says so: callback prompts are withdrawn, sessions released,
// the lease is gone.
func TestCleanShutdown(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	gone := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	kept := ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question(), Delivery: events.DeliverMessage})
	w.awaiting("s", "p1")
	w.awaiting("s", "p2")
	before, lease := w.state("s").Commits, events.HarnessLeaseKey(me, h.Incarnation())
	check(t, h.Close(w.ctx))
	st := w.state("s")
	e, ok := st.Ended(session.EntityPrompt, "p1")
	if !ok || e.Outcome != string(session.Withdrawn) || e.Reason != events.ReasonShutdown {
		t.Errorf("%+v", e)
	}
	if st.Owned || st.Left != session.LeftReleased || st.Prompts["p2"].Status != session.Awaiting ||
		st.Commits != before+1 || st.Ignored.Count != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := w.bus.KV.Load(w.ctx, kv.Leases, lease); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("the lease is still there: %v", err)
	}
	if a := got(t, gone); a.err != nil || a.answer.Status != session.Withdrawn ||
		a.answer.Reason != events.ReasonShutdown {
		t.Errorf("%+v", a)
	}
	wantErr(t, got(t, kept).err, harness.ErrReleased)
	wantErr(t, context.Cause(h.Context()), harness.ErrClosed)
	_, err := h.Open(w.ctx, "other", harness.OpenOptions{})
	wantErr(t, err, harness.ErrClosed)
	wantErr(t, turn.Complete(w.ctx, ""), harness.ErrReleased)
}

// Opening what is there is claiming it; opening it twice is one session.
func TestOpen(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	var wg sync.WaitGroup
	got := make([]*harness.Session, 8)
	for i := range got {
		wg.Go(func() { got[i] = must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{Title: "a"})) })
	}
	wg.Wait()
	for _, s := range got {
		if s != got[0] {
			t.Error("two handles of one session")
		}
	}
	check(t, got[0].Release(w.ctx, "bye"))
	wantErr(t, ended(t, got[0].Context()), harness.ErrReleased)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{Title: "b"}))
	st := w.state("s")
	if st.Epoch != 2 || st.Commits != 3 || st.Title != "a" || s.State().Epoch != 2 {
		t.Errorf("%+v", st)
	}
	w.show("s")
	all, unreadable, err := h.Sessions(w.ctx)
	check(t, err)
	if len(unreadable) != 0 || len(all) != 1 || all[0].Session != "s" || all[0].Epoch != 2 {
		t.Errorf("%+v", all)
	}
}

// A document that lags behind the log does not matter: the log is read on from it.
func TestClaimReadsOnFromTheDocument(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	w.show("s")
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	two := w.connect()
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s"))
	if st := s.State(); st.Commits != 3 || st.Turn == nil || st.Turn.ID != "t1" {
		t.Errorf("%+v", st)
	}
	// It says that this process has the session, which it has released since.
	w.show("s")
	check(t, s.Release(w.ctx, ""))
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s"))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2"}))
	// It says that the session is open, which it is no longer.
	w.show("s")
	check(t, s.Close(w.ctx, "finished"))
	_, err := two.Claim(w.ctx, "s")
	wantErr(t, err, harness.ErrSessionClosed)
	if st := w.state("s"); st.Ignored.Count != 0 {
		t.Errorf("%+v", st.Ignored)
	}
}

// TestNoNewSessionInAFullLog: while the log is nearly full no session is opened; those that are there can be claimed.
func TestNoNewSessionInAFullLog(t *testing.T) {
	const logBytes = 128 << 10
	s := natstest.Start(t)
	b := natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = logBytes })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w := &world{t: t, server: s, bus: b, ctx: ctx, folded: map[string]*session.State{}}
	before := w.connect()
	old, err := before.Open(ctx, "old", harness.OpenOptions{})
	check(t, err)
	for {
		used, most, err := b.Log.Usage(ctx)
		check(t, err)
		if used >= most/10*9 {
			break
		}
		check(t, old.Append(ctx,
			events.MessageAccepted{Message: b.NewID(), Content: []byte(`"` + strings.Repeat("x", 4<<10) + `"`)}))
	}
	check(t, before.Close(ctx))
	after := w.connect()
	if _, err := after.Open(ctx, "new", harness.OpenOptions{}); !errors.Is(err, harness.ErrFull) {
		t.Errorf("a new one: %v, want ErrFull", err)
	}
	if _, err := after.Open(ctx, "old", harness.OpenOptions{}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}
