package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// leased is what a lease says.
type leased struct {
	ID          string `json:"id"`
	Incarnation string `json:"incarnation"`
	Exclusive   bool   `json:"exclusive"`
	State       string `json:"state"`
	TTLMS       int64  `json:"ttl_ms"`
	Host        string `json:"host"`
}

func (w *world) lease(incarnation string) (l leased, ok bool) {
	w.t.Helper()
	e, err := w.bus.KV.Load(w.ctx, kv.Leases, events.HarnessLeaseKey(me, incarnation))
	if errors.Is(err, bus.ErrNotFound) {
		return l, false
	}
	check(w.t, err)
	check(w.t, json.Unmarshal(e.Value, &l))
	return l, true
}

// The lease says what the process is, and what it is about to do.
func TestLease(t *testing.T) {
	w := newWorld(t)
	h := w.connect(pool)
	host := must[string](t)(os.Hostname())
	want := leased{ID: me, Incarnation: h.Incarnation(), State: "starting", TTLMS: ttl.Milliseconds(), Host: host}
	if l, _ := w.lease(h.Incarnation()); l != want {
		t.Errorf("%+v", l)
	}
	check(t, h.Ready(w.ctx))
	want.State = "ready"
	if l, _ := w.lease(h.Incarnation()); l != want {
		t.Errorf("%+v", l)
	}
	other := w.connect(func(c *harness.Config) { c.Host = "named" })
	if l, _ := w.lease(other.Incarnation()); !l.Exclusive || l.Incarnation == h.Incarnation() || l.Host != "named" {
		t.Errorf("%+v", l)
	}
}

// TestLeaseLostAndStartedOver: after the loss of a lease the work's contexts end, then the client starts over with the
// turn, the call and the question that it still holds; a waiting question continues to wait.
func TestLeaseLostAndStartedOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(*harness.Config)
		ended bool // the contexts are cancelled
	}{
		{"restart", func(c *harness.Config) { c.OnLeaseLoss = harness.LeaseRestart }, true},
		{"restart of a pool's member", func(c *harness.Config) {
			c.Pool, c.OnLeaseLoss = true, harness.LeaseRestart
		}, true},
		{"by default", func(*harness.Config) {}, false},
		{"by default, a pool's member", pool, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(c.set)
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
			out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
			cb := ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question()})
			w.awaiting("s", "p1")
			w.awaiting("s", "p2")
			check(t, h.Ready(w.ctx))
			first, before := h.Incarnation(), turn.Context()
			w.dropLease(h)
			st := w.until("s", "the session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
			if c.ended {
				wantErr(t, ended(t, before), harness.ErrLeaseLost)
			}
			check(t, s.Regain(w.ctx))
			natstest.Until(t, "the new lease to be ready", func() bool {
				l, _ := w.lease(h.Incarnation())
				return h.Incarnation() != first && l.State == "ready"
			})
			if !st.Owned || st.Ignored.Count != 0 || st.Turn.Epoch != 2 || st.Tools["c1"].Epoch != 2 ||
				st.Prompts["p1"].Epoch != 2 || st.Prompts["p2"].Epoch != 2 {
				t.Errorf("%+v", st)
			}
			if after := turn.Context(); after.Err() != nil || c.ended == (after == before) {
				t.Errorf("the turn's context after it: %v, the same one: %v", after.Err(), after == before)
			}
			w.mustAnswer("s", "p1", "red")
			w.mustAnswer("s", "p2", "blue")
			for _, o := range []chan asked{out, cb} {
				if a := got(t, o); a.err != nil || a.answer.Status != session.Answered {
					t.Fatalf("%+v", a)
				}
			}
			check(t, call.Complete(w.ctx, "red"))
			check(t, turn.Complete(w.ctx, ""))
			if st := w.state("s"); st.Ignored.Count != 0 || st.Phase != session.Idle {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestStopWhileTheLeaseIsLost: the start of a turn waits while the lease is lost, and a person stops the session. The
// claim ends the wait for the receipt of the stop. The start is refused, and the stop holds; a second call begins the
// turn. A start is not refused if what it takes is newer than the stop, or if a person has requested a turn since.
func TestStopWhileTheLeaseIsLost(t *testing.T) {
	own := harness.StartOptions{ID: "t1", Synthetic: true, Options: "go on"}
	options := harness.StartOptions{ID: "t1", Synthetic: true, Content: "x"}
	queued := harness.StartOptions{ID: "t1", Message: "m1"}
	later := events.MessageAccepted{Message: "m2", By: "ada"}
	request := func(turn string) events.Fact {
		return events.TurnRequested{Turn: turn, Cause: events.CauseMessage, Message: "m1"}
	}
	service, ada := events.ServiceSource("ledger", "test"), events.PersonSource("ada")
	for name, c := range map[string]struct {
		start harness.StartOptions
		by    string      // the author of what follows the stop
		after events.Fact // what follows the stop; nil: nothing
		holds bool
	}{
		"a queued message":                  {queued, "", nil, true},
		"a turn of the agent":               {own, "", nil, true},
		"a message of the agent":            {options, "", nil, true},
		"a person's message":                {harness.StartOptions{ID: "t1", Content: "and this"}, "", nil, false},
		"a message from after the stop":     {harness.StartOptions{ID: "t1", Message: "m2"}, ada, later, false},
		"a message from before the stop":    {queued, ada, later, true},
		"a service's request":               {own, service, request("t1"), false},
		"beside a service's request":        {own, service, request("r2"), true},
		"in place of one that ada requests": {own, ada, request("r2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, s.Append(w.ctx, events.MessageAccepted{Message: "m1", By: "ada"}))
			w.append("s", events.WriterLedger, request("r1"))
			write := harness.Mute(s)
			started := make(chan error, 1)
			go func() {
				_, err := s.StartTurn(w.ctx, c.start)
				started <- err
			}()
			natstest.Until(t, "the start to wait", func() bool { return harness.Waiting(s) == 1 })
			w.dropLease(h)
			natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
			w.append("s", events.WriterLedger,
				events.TurnStopRequested{Turn: "r1", Actor: events.ActorPerson, By: "ada"})
			if c.after != nil {
				w.appendFrom("s", c.by, c.after)
			}
			write()
			err := <-started
			if !c.holds {
				check(t, err)
				return
			}
			wantErr(t, err, harness.ErrStopped)
			if st := w.state("s"); st.Turn != nil || st.StoppedSeq == 0 {
				t.Errorf("turn %+v, stopped at %d", st.Turn, st.StoppedSeq)
			}
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, c.start))
			if err := turn.Context().Err(); err != nil {
				t.Errorf("a turn that the agent begins after the stop ends by %v", err)
			}
		})
	}
}

// TestStopConfirmedDuringAStart: the process stores the receipt of a stop while a call of StartTurn is under way. The
// call is refused: the program did not know of the stop when it made the call. So is a call that was made when the
// process had read the stop and its receipt was not stored, and one beside which the agent begins another turn. A call
// that is made after the receipt begins the turn. A start that is not lawful gets its own error.
func TestStopConfirmedDuringAStart(t *testing.T) {
	for name, c := range map[string]struct {
		id   string
		read bool // the process has read the stop before the call
		open bool // the agent begins another turn after the receipt
		want error
	}{
		"stopped during the call": {id: "t2", want: harness.ErrStopped},
		"stopped before the call": {id: "t2", read: true, want: harness.ErrStopped},
		"another turn is open":    {id: "t2", open: true, want: harness.ErrStopped},
		"a turn that has ended":   {id: "t1", want: harness.ErrClosedID},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			check(t, turn.Complete(w.ctx, ""))
			write := harness.Mute(s)
			stop := func() {
				w.append("s", events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson})
				natstest.Until(t, "the receipt to wait", func() bool { return harness.Waiting(s) == 1 })
			}
			if c.read {
				stop()
			}
			start := harness.StartOptions{ID: c.id, Synthetic: true, Options: marshaler(func() {
				if !c.read {
					stop()
				}
				write()
				natstest.Until(t, "the receipt", func() bool { return s.State().Pending.Stop == nil })
				if c.open {
					must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "beside", Synthetic: true}))
				}
			})}
			_, err := s.StartTurn(w.ctx, start)
			if wantErr(t, err, c.want); !errors.Is(c.want, harness.ErrStopped) {
				return
			}
			start.Options = nil
			turn = must[*harness.Turn](t)(s.StartTurn(w.ctx, start))
			check(t, turn.Complete(w.ctx, ""))
		})
	}
}

// TestAnsweredBeforeTheLeaseWasLost: the commit that claims again keeps what an Ask has returned to a call: under the
// epoch before, recovery would take it for lost and deliver it again. The end of the call is the receipt.
func TestAnsweredBeforeTheLeaseWasLost(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "red")
	check(t, got(t, out).err)
	before := w.state("s")
	w.dropLease(h)
	st := w.until("s", "the session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
	if p := st.Prompts["p1"]; p == nil || p.Epoch != 2 || st.Commits != before.Commits+1 ||
		st.Tools["c1"].Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("%+v, %+v", p, st)
	}
	check(t, call.Complete(w.ctx, "red"))
	if e, ok := w.state("s").Ended(session.EntityPrompt, "p1"); !ok || e.DeliveredAt.IsZero() {
		t.Errorf("%+v", e)
	}
}

// TestCompactionOutlivesALostLease: a running compaction continues, too.
func TestCompactionOutlivesALostLease(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	w.append("s", events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 90, Limit: 100})
	check(t, s.Append(w.ctx, events.CompactionStarted{Compaction: "k1"}))
	w.dropLease(h)
	st := w.until("s", "the session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
	if st.Compaction == nil || st.Compaction.Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("%+v", st.Compaction)
	}
	check(t, s.Append(w.ctx, events.CompactionCompleted{Compaction: "k1"}))
}

// TestLeaseLostAndFenced (R6): a session that another process took while the lease was lost is not claimed again.
func TestLeaseLostAndFenced(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	kept := must[*harness.Session](t)(h.Open(w.ctx, "kept", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	evs := []events.Event{events.New(w.bus.NewID(), events.ServiceSource("reconciler", "test"), ref("s"), 1, time.Now(),
		events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: h.Incarnation()})}
	// without a nudge
	if _, err := w.bus.Log.Append(w.ctx, ref("s"), events.WriterReconciler, w.state("s").Seq, evs); err != nil {
		t.Fatal(err)
	}
	first := h.Incarnation()
	w.dropLease(h)
	wantErr(t, got(t, out).err, harness.ErrFenced)
	_, err := turn.Tool(w.ctx, harness.ToolOptions{Name: "bash"})
	wantErr(t, err, harness.ErrFenced)
	wantErr(t, s.Regain(w.ctx), harness.ErrFenced)
	w.until("kept", "the other session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
	check(t, kept.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
	natstest.Until(t, "all sessions to be looked at", func() bool { return h.Incarnation() != first })
	if st := w.state("s"); st.Owned || st.Epoch != 1 {
		t.Errorf("what recovery took was claimed again by itself: owned %t, epoch %d", st.Owned, st.Epoch)
	}
	again := must[*harness.Session](t)(h.Claim(w.ctx, "s"))
	if again.State().Epoch != 2 {
		t.Errorf("%+v", again.State())
	}
}

// R6: a process that was paused while another took its place does not take it back.
func TestAWokenProcessIsNotItsSuccessorsSuccessor(t *testing.T) {
	for _, c := range []struct {
		name   string
		notify func(w *world, old, successor *harness.Harness)
	}{
		{"its lease was lost", func(w *world, old, _ *harness.Harness) { w.dropLease(old) }},
		{"a session notifies it", func(w *world, old, successor *harness.Harness) {
			w.append("s", events.WriterReconciler,
				events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: old.Incarnation(),
					SupersededBy: successor.Incarnation()})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			old := w.connect()
			s := must[*harness.Session](t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
			also := must[*harness.Session](t)(old.Open(w.ctx, "also", harness.OpenOptions{}))
			successor := w.connect()
			c.notify(w, old, successor)
			wantErr(t, ended(t, old.Context()), harness.ErrFenced)
			for _, s := range []*harness.Session{s, also} {
				// fenced, or its lease lost: both are true
				if err := ended(t, s.Context()); err == nil {
					t.Error("the context ended without a cause")
				}
				wantErr(t, s.Regain(w.ctx), harness.ErrFenced)
			}
			_, err := old.Open(w.ctx, "new", harness.OpenOptions{})
			wantErr(t, err, harness.ErrFenced)
			wantErr(t, old.Work(w.ctx, harness.Worker{}), harness.ErrFenced)
			if drawn := w.drawn(); drawn != successor.Incarnation() {
				t.Errorf("incarnation %s was drawn after %s", drawn, successor.Incarnation())
			}
			check(t, old.Close(w.ctx))
		})
	}
}

// TestSupersededByItsOwnNextIncarnation: a process that starts over loses a session to recovery, which names the
// incarnation that the process itself has taken. It is not superseded: it continues with its other sessions.
func TestSupersededByItsOwnNextIncarnation(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	kept := must[*harness.Session](t)(h.Open(w.ctx, "kept", harness.OpenOptions{}))
	first := h.Incarnation()
	ahead := w.inTheWay(4)
	w.dropLease(h)
	var drawn string
	natstest.Until(t, "the next incarnation to be drawn", func() bool {
		drawn = w.drawn()
		return session.Older(ahead, drawn)
	})
	w.append("s", events.WriterReconciler,
		events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: first, SupersededBy: drawn})
	natstest.Until(t, "the fence to be noticed", func() bool { return s.Context().Err() != nil })
	wantErr(t, context.Cause(s.Context()), harness.ErrFenced)
	natstest.Until(t, "the process to have started over", func() bool {
		return h.Incarnation() != first || h.Context().Err() != nil
	})
	check(t, context.Cause(h.Context()))
	check(t, kept.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
}

// An attempt to start over that fails half-way, after its incarnation was drawn, is not taken for another process's.
func TestStartingOverTakesSeveralAttempts(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	w.inTheWay(3)
	w.dropLease(h)
	w.until("s", "the session to be claimed again", func(st *session.State) bool { return st.Epoch > 1 })
	check(t, s.Regain(w.ctx))
	w.until("s", "its owner to be the present incarnation", func(st *session.State) bool {
		return st.Owned && st.Incarnation == h.Incarnation()
	})
	check(t, h.Context().Err())
}

// LeaseStop: everything ends, for good.
func TestLeaseLostForGood(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.OnLeaseLoss = harness.LeaseStop })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	w.dropLease(h)
	wantErr(t, ended(t, h.Context()), harness.ErrLeaseLost)
	wantErr(t, ended(t, turn.Context()), harness.ErrLeaseLost)
	wantErr(t, got(t, out).err, harness.ErrLeaseLost)
	_, err := h.Open(w.ctx, "other", harness.OpenOptions{})
	wantErr(t, err, harness.ErrLeaseLost)
	if st := w.state("s"); st.Epoch != 1 {
		t.Errorf("claimed again: %+v", st)
	}
}

// callInAnOutage asks p1 in a turn, stops the broker while a call begins, and starts it again after wait. It returns
// when the call is stored.
func (w *world) callInAnOutage(ttl time.Duration, wait func(*harness.Session)) (*harness.Harness, *harness.Turn,
	chan asked) {
	w.t.Helper()
	h := w.connect(func(c *harness.Config) { c.TTL = ttl })
	s := must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	w.server.Shutdown()
	called := make(chan error, 1)
	go func() {
		_, err := turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"})
		called <- err
	}()
	wait(s)
	w.back()
	check(w.t, <-called)
	return h, turn, out
}

// The broker restarts while an Ask waits and a call begins: the call is stored once it is back, the answer arrives.
func TestBrokerRestart(t *testing.T) {
	w := newWorld(t)
	h, _, out := w.callInAnOutage(time.Minute, func(*harness.Session) {})
	w.mustAnswer("s", "p1", "red")
	if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Fatalf("%+v", a)
	}
	if st := w.state("s"); st.Epoch != 1 || st.Ignored.Count != 0 || st.Tools["c1"] == nil {
		t.Errorf("%+v", st)
	}
	check(t, h.Close(w.ctx))
}

// R8: the broker is away for longer than the TTL. The process starts over by itself and nothing is lost, not even what
// it said meanwhile.
func TestOutageLongerThanTheTTL(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h, turn, out := w.callInAnOutage(time.Second, func(s *harness.Session) {
		natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
	})
	w.awaiting("s", "p1")
	if err := turn.Context().Err(); err != nil {
		t.Errorf("the context of the turn ended: %v", err)
	}
	w.mustAnswer("s", "p1", "red")
	if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Fatalf("%+v", a)
	}
	if st := w.state("s"); st.Epoch < 2 || !st.Owned || st.Ignored.Count != 0 || st.Tools["c1"].Epoch != st.Epoch ||
		st.Turn.Epoch != st.Epoch {
		t.Errorf("%+v", st)
	}
	check(t, h.Close(w.ctx))
}

// TestReadyOutlivesALostLease checks that Ready, called while the broker is away for longer than the TTL, returns once
// the process has started over. With LeaseStop it returns the reason.
func TestReadyOutlivesALostLease(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, loss := range map[string]harness.LeaseLoss{"ride out": harness.LeaseRideOut,
		"restart": harness.LeaseRestart, "stop": harness.LeaseStop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.connect(func(c *harness.Config) {
				// it could not open the session any more
				if c.OnLeaseLoss = loss; loss != harness.LeaseStop {
					c.TTL = time.Second
				}
			})
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			first := h.Incarnation()
			w.server.Shutdown()
			out := make(chan error, 1)
			go func() { out <- h.Ready(w.ctx) }()
			if loss == harness.LeaseStop {
				wantErr(t, <-out, harness.ErrLeaseLost)
				w.back()
				return
			}
			natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
			w.back()
			check(t, <-out)
			if h.Incarnation() == first {
				t.Errorf("incarnation %s outlived the outage", first)
			}
			// a slow machine loses it once more
			natstest.Until(t, "the lease to say ready", func() bool {
				record, _ := w.lease(h.Incarnation())
				return record.State == "ready"
			})
			check(t, h.Close(w.ctx))
		})
	}
}

// Sessions that are opened while leases come and go are all usable: none falls between two incarnations.
func TestBetweenTwoIncarnations(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const openers, losses = 8, 3
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = time.Second })
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for i := range openers {
		wg.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-enough:
					return
				default:
				}
				s, err := h.Open(w.ctx, fmt.Sprint(i, "-", j), harness.OpenOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				wg.Go(func() {
					if _, err := s.StartTurn(w.ctx, harness.StartOptions{ID: "t"}); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	for range losses {
		before := h.Incarnation()
		w.dropLease(h)
		natstest.Until(t, "a new incarnation", func() bool { return h.Incarnation() != before })
	}
	close(enough)
	wg.Wait()
}
