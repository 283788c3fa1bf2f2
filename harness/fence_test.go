package harness_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// silently appends facts as a service does, and sends no nudge: a member of a pool, which does not follow the log,
// reads them when something else makes it read.
func (w *world) silently(id string, by events.Writer, decide func(*session.State) []events.Fact) uint64 {
	w.t.Helper()
	st := w.state(id)
	var evs []events.Event
	for _, f := range decide(st) {
		evs = append(evs, events.New(w.bus.NewID(), events.ServiceSource(string(by), "test"), ref(id), st.Epoch,
			time.Now(), f))
	}
	return must[uint64](w.t)(w.bus.Log.Append(w.ctx, ref(id), by, st.Seq, evs))
}

func (w *world) answerSilently(id, prompt string) uint64 {
	w.t.Helper()
	return w.silently(id, events.WriterLedger, func(st *session.State) []events.Fact {
		d, err := st.Answer(request.Answer{Ref: ref(id), Prompt: prompt, By: "ada",
			Answers: []events.Answer{{Question: "q", Text: "red"}}}, w.source)
		check(w.t, err)
		return d.Facts
	})
}

func (w *world) orphanSilently(id string) uint64 {
	w.t.Helper()
	return w.silently(id, events.WriterReconciler, func(st *session.State) []events.Fact {
		return []events.Fact{events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: st.Incarnation}}
	})
}

// TestNoAnswerBeforeTheFenceIsRead (R6): the log has an answer, and behind it the fence. In every order of reading, the
// process's Ask returns ErrFenced: the answer is the successor's.
func TestNoAnswerBeforeTheFenceIsRead(t *testing.T) {
	type place struct{ answer, fence uint64 }
	for name, read := range map[string]func(w *world, s *harness.Session, h *harness.Harness, at place){
		"the whole log at once": func(w *world, _ *harness.Session, _ *harness.Harness, at place) {
			w.bus.Hints.Nudge(ref("s"), at.fence)
		},
		"the answer first": func(w *world, _ *harness.Session, _ *harness.Harness, at place) {
			w.bus.Hints.Nudge(ref("s"), at.answer)
		},
		"when it starts over": func(w *world, _ *harness.Session, h *harness.Harness, _ place) { w.dropLease(h) },
		"when it appends": func(w *world, s *harness.Session, _ *harness.Harness, _ place) {
			wantErr(w.t, s.OpenTurn().Complete(w.ctx, ""), harness.ErrFenced)
		},
		"when it asks once again": nil,
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(pool)
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			p := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			// the answer was read, and no Ask has returned it yet
			if read == nil {
				check(t, s.Append(w.ctx,
					events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
						Questions: question(),
						Delivery:  events.DeliverCallback, OnOwnerLoss: events.LossKeep}))
				w.mustAnswer("s", "p1", "red")
				natstest.Until(t, "the answer to be read", func() bool {
					return s.State().Prompts["p1"].Status == session.Answered
				})
				w.orphanSilently("s")
				wantErr(t, got(t, ask(w.ctx, turn, p)).err, harness.ErrFenced)
				return
			}
			out := ask(w.ctx, turn, p)
			w.awaiting("s", "p1")
			read(w, s, h, place{w.answerSilently("s", "p1"), w.orphanSilently("s")})
			wantErr(t, got(t, out).err, harness.ErrFenced)
		})
	}
}

// TestAFenceBeforeTheClose: the session was taken from the process, and closed, before the process reads either. Each
// commit is judged by itself: the process was fenced, and the close has withdrawn a question of its successor.
func TestAFenceBeforeTheClose(t *testing.T) {
	w := newWorld(t)
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	asked := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep})
	w.awaiting("s", "p1")
	w.orphanSilently("s")
	w.bus.Hints.Nudge(ref("s"), w.silently("s", events.WriterLedger, func(*session.State) []events.Fact {
		return []events.Fact{events.SessionClosed{Reason: "finished", By: "ada"}}
	}))
	wantErr(t, got(t, asked).err, harness.ErrFenced)
	wantErr(t, ended(t, s.Context()), harness.ErrFenced)
}

// TestNoAnswerWithTheClose: the log has an answer, and behind it the session's close. There is no agent left to take
// it.
func TestNoAnswerWithTheClose(t *testing.T) {
	w := newWorld(t)
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	answered := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	open := ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question()})
	w.awaiting("s", "p1")
	w.awaiting("s", "p2")
	w.answerSilently("s", "p1")
	w.bus.Hints.Nudge(ref("s"), w.silently("s", events.WriterLedger, func(*session.State) []events.Fact {
		return []events.Fact{events.SessionClosed{Reason: "finished", By: "ada"}}
	}))
	wantErr(t, got(t, answered).err, harness.ErrSessionClosed)
	if a := got(t, open); a.err != nil || a.answer.Status != session.Withdrawn {
		t.Errorf("%+v: the close has withdrawn it", a)
	}
}

// TestNoAnswerWithAnOverdueLease (R6): a process whose lease is overdue by its own clock hands out no answer before the
// lease is lost and the session is its own again.
func TestNoAnswerWithAnOverdueLease(t *testing.T) {
	for name, c := range map[string]struct {
		asksLater bool // the answer was read before the Ask began
		whole     bool // the answer is read together with a commit after it, not by following the log
	}{
		"while it asks": {}, "before it asks": {asksLater: true}, "the whole log at once": {whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			l := newLine(t, w.server.URL())
			h := w.connect(func(cfg *harness.Config) { cfg.Pool, cfg.URL = c.whole, l.url })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			lose, overdue, err := harness.Unkept(w.ctx, h, time.Second)
			check(t, err)
			check(t, s.Append(w.ctx,
				events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
					Questions: question(),
					Delivery:  events.DeliverCallback}))
			var out chan asked
			asks := func() {
				out = ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
				natstest.Until(t, "the Ask to wait", func() bool {
					return len(out) > 0 || harness.Asks(s, "p1") == 1
				})
			}
			if !c.asksLater {
				asks()
			}
			natstest.Until(t, "the lease to be overdue", overdue)
			if w.answerSilently("s", "p1"); c.whole {
				w.append("s", events.WriterLedger, events.SessionConfigured{By: "ada"})
			}
			natstest.Until(t, "the answer to be read", func() bool {
				p := s.State().Prompts["p1"]
				return p == nil || p.Status != session.Awaiting
			})
			if c.asksLater {
				asks()
			} else {
				natstest.Until(t, "the answer to be held back", func() bool {
					return len(out) > 0 || harness.Verifying(s)
				})
			}
			if c.asksLater {
				natstest.Until(t, "the Ask to have read the answer", func() bool {
					return len(out) > 0 || l.reads.Load() > 0
				})
			}
			// meanwhile it does not read over and over
			for before, n := l.reads.Load(), 0; n < 50; n++ {
				if w.state("s"); l.reads.Load() > before+2 {
					t.Fatalf("%d reads while the lease is overdue", l.reads.Load()-before)
				}
			}
			lose()
			if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
				t.Fatalf("%+v", a)
			}
			if n := s.State().Epoch; n != 2 {
				t.Errorf("the answer was handed out under epoch %d, before the session was claimed again", n)
			}
			check(t, turn.Complete(w.ctx, ""))
		})
	}
}

// TestAskedAgainWithoutAdoption (R7): a process that claims a session and adopts nothing asks again under the same id:
// it thereby adopts the question, its call and its turn, and the answer is its own.
func TestAskedAgainWithoutAdoption(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	p := harness.Prompt{ID: "p1", Call: "c1", Questions: question()}
	ask(w.ctx, turn, p)
	w.awaiting("s", "p1")

	two := w.connect()
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s"))
	if st := w.state("s"); st.Epoch != 2 || st.Prompts["p1"].Epoch != 1 {
		t.Fatalf("epoch %d, the question's %d", st.Epoch, st.Prompts["p1"].Epoch)
	}
	out := ask(w.ctx, s, p)
	// under the present epoch
	w.awaiting("s", "p1")
	if st := w.state("s"); st.Tools["c1"].Epoch != 2 || st.Turn == nil || st.Turn.Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("its call and its turn were not adopted: %+v, %+v", st.Tools["c1"], st.Turn)
	}
	w.mustAnswer("s", "p1", "red")
	if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Fatalf("%+v", a)
	}
}
