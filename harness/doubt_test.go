package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// givenUp waits until the session has no owner in the log, by its owner's own release.
func (w *world) givenUp(id string) *session.State {
	w.t.Helper()
	return w.until(id, "the session to be given up", func(st *session.State) bool {
		return st.Opened() && !st.Owned && st.Left == session.LeftReleased
	})
}

// deaf lets a process take sessions whose acknowledgement never arrives. acknowledge ends that.
func deaf(w *world, change ...func(*harness.Config)) (h *harness.Harness, l *line, acknowledge func()) {
	l = newLine(w.t.(*testing.T), w.server.URL())
	h = w.connect(append(change, func(c *harness.Config) { c.URL, c.TTL = l.url, time.Minute })...)
	return h, l, func() {
		l.cut()
		l.deaf.Store(false)
	}
}

// deafOnHold is deaf with a released session s, whose policy is resume hold.
func deafOnHold(w *world) (h *harness.Harness, l *line, acknowledge func()) {
	w.t.Helper()
	h, l, acknowledge = deaf(w)
	hold := harness.OpenOptions{Policy: &events.PolicyPatch{Resume: events.Set(events.ResumeHold)}}
	check(w.t, must[*harness.Session](w.t)(h.Open(w.ctx, "s", hold)).Release(w.ctx, ""))
	return h, l, acknowledge
}

// TestClaimInDoubt checks that a claim which was stored, and whose caller has given up before it was known, does not
// leave the session with an owner that does not know it (V14): the session is released as soon as the broker is back.
func TestClaimInDoubt(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, w *world, h *harness.Harness, l *line) error{
		"Open, new": func(ctx context.Context, _ *world, h *harness.Harness, l *line) error {
			l.ends.Store(true)
			_, err := h.Open(ctx, "s", harness.OpenOptions{})
			return err
		},
		"Open, there": func(ctx context.Context, w *world, h *harness.Harness, l *line) error {
			w.released(w.connect(pool), "s")
			l.ends.Store(true)
			_, err := h.Open(ctx, "s", harness.OpenOptions{})
			return err
		},
		"Claim": func(ctx context.Context, w *world, h *harness.Harness, l *line) error {
			w.released(w.connect(pool), "s")
			l.ends.Store(true)
			_, err := h.Claim(ctx, "s")
			return err
		},
		"Work": func(ctx context.Context, w *world, h *harness.Harness, l *line) error {
			w.released(h, "s")
			w.request("s", "t1", "x")
			check(w.t, h.Ready(w.ctx))
			l.ends.Store(true)
			err := h.Work(ctx, harness.Worker{Turn: func(context.Context, *harness.Turn) error {
				return errors.New("it runs")
			}})
			return errors.Join(err, ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h, l, acknowledge := deaf(w, pool)
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			failed := make(chan error, 1)
			go func() { failed <- take(ctx, w, h, l) }()
			st := w.until("s", "the claim to be stored", func(st *session.State) bool {
				return st.Owned && st.Incarnation == h.Incarnation() && l.deaf.Load()
			})
			cancel()
			if err := <-failed; err == nil {
				t.Fatal("the call says that it succeeded")
			}
			acknowledge()
			after := w.givenUp("s")
			if after.Epoch != st.Epoch || after.Ignored.Count != 0 {
				t.Errorf("epoch %d after %d, ignored %+v", after.Epoch, st.Epoch, after.Ignored.Last)
			}
			if s, err := h.Claim(w.ctx, "s"); err != nil || s.State().Epoch != st.Epoch+1 {
				t.Errorf("claimed again: %v", err)
			}
		})
	}
}

// TestClaimInDoubtIsHandedOver checks that a session whose claim was in doubt goes to the next call that wants it,
// without another claim; and that what this one adopts is adopted, though the first one did not name it.
func TestClaimInDoubtIsHandedOver(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c2", Name: "bash"}))
	for _, id := range []string{"p1", "p2"} {
		ask(w.ctx, turn, harness.Prompt{ID: id, Questions: question()})
		w.awaiting("s", id)
	}
	h, l, acknowledge := deaf(w)
	ctx, cancel := context.WithCancel(w.ctx)
	failed := make(chan error, 1)
	l.ends.Store(true)
	go func() {
		_, err := h.Claim(ctx, "s", harness.Adopt{Calls: []string{"c1"}, Prompts: []harness.Prompt{{ID: "p1"}}})
		failed <- err
	}()
	claimed := w.until("s", "the claim to be stored", func(st *session.State) bool { return st.Epoch == 2 })
	again := make(chan *harness.Session, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		s, err := h.Claim(w.ctx, "s",
			harness.Adopt{Turn: true, Calls: []string{"c1", "c2"}, Prompts: []harness.Prompt{{ID: "p1"}, {ID: "p2"}}})
		if err != nil {
			t.Error(err)
		}
		again <- s
	}()
	<-started
	natstest.Until(t, "the second call to wait", func() bool { return harness.Users(h, "s") == 2 })
	cancel()
	wantErr(t, <-failed, harness.ErrUnreachable)
	acknowledge()
	s = <-again
	if s == nil {
		t.FailNow()
	}
	// it was not given up
	check(t, s.Append(w.ctx, events.MessageAccepted{Message: "m"}))
	st := w.state("s")
	if st.Epoch != 2 || !st.Owned || st.Tools["c1"].Epoch != 2 || st.Tools["c2"].Epoch != 2 || st.Turn.Epoch != 2 ||
		st.Prompts["p1"].Epoch != 2 || st.Prompts["p2"].Epoch != 2 {
		t.Errorf("%+v", st)
	}
	if st.Commits != claimed.Commits+2 || st.Ignored.Count != 0 {
		t.Errorf("%d commits after the claim, ignored %+v", st.Commits-claimed.Commits, st.Ignored.Last)
	}
	must[*harness.Session](t)(h.Claim(w.ctx, "s",
		harness.Adopt{Turn: true, Calls: []string{"c1"}, Prompts: []harness.Prompt{{ID: "p1"}}}))
	if again := w.state("s"); again.Seq != st.Seq {
		t.Error("what was adopted is adopted again")
	}
}

// TestWorkFindsWhatItTook checks that a turn which Work took, in a commit whose outcome was in doubt, is not left
// without a handler: the next Work that finds the session fails the turn, which no handler has run, and gives the
// session up, so that the turn is tried again.
func TestWorkFindsWhatItTook(t *testing.T) {
	w := newWorld(t)
	h, l, acknowledge := deaf(w)
	w.released(h, "s")
	w.request("s", "t1", "x")
	ctx, cancel := context.WithCancel(w.ctx)
	worker := harness.Worker{Turn: func(_ context.Context, turn *harness.Turn) error {
		t.Errorf("%s runs", turn.ID())
		return nil
	}}
	ended := make(chan error, 1)
	check(t, h.Ready(w.ctx))
	l.ends.Store(true)
	go func() { ended <- h.Work(ctx, worker) }()
	w.until("s", "the turn to be taken", func(st *session.State) bool { return st.Turn != nil })
	cancel()
	check(t, <-ended)
	w.work(h, worker)
	natstest.Until(t, "the next Work to wait for it", func() bool { return harness.Users(h, "s") >= 2 })
	acknowledge()
	wantUnmade(t, w.givenUp("s"))
}

// wantUnmade checks that the turn t1, which Work took and no handler ran, has failed as interrupted.
func wantUnmade(t *testing.T, st *session.State) {
	t.Helper()
	if l := st.LastTurn; st.Turn != nil || l == nil || l.ID != "t1" || l.Error == nil ||
		l.Error.Kind != failure.Interrupted || st.Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("open %+v, ended %+v, epoch %d, ignored %+v", st.Turn, l, st.Epoch, st.Ignored)
	}
}

// TestTurnInDoubt checks that a turn which Work took with the claim of its session, in a commit whose outcome was in
// doubt when Work ended, fails as one that was cut off when the session is released: it is tried again, also under
// resume hold, because no handler has run it. A call of Open that waited for the session has the turn and its request.
func TestTurnInDoubt(t *testing.T) {
	for _, opens := range []bool{false, true} {
		t.Run(fmt.Sprintf("opened %t", opens), func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h, l, acknowledge := deafOnHold(w)
			w.request("s", "t1", "x")
			check(t, h.Ready(w.ctx))
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			ended := make(chan error, 1)
			l.ends.Store(true)
			go func() {
				ended <- h.Work(ctx, harness.Worker{Turn: func(context.Context, *harness.Turn) error {
					t.Error("a handler runs")
					return nil
				}})
			}()
			w.until("s", "the turn to be taken", func(st *session.State) bool { return st.Turn != nil })
			again := make(chan *harness.Session, 1)
			if opens {
				go func() {
					defer close(again)
					s, err := h.Open(w.ctx, "s", harness.OpenOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					again <- s
				}()
				natstest.Until(t, "Open to wait", func() bool { return harness.Users(h, "s") >= 3 })
			}
			cancel()
			check(t, <-ended)
			acknowledge()
			if !opens {
				wantUnmade(t, w.givenUp("s"))
				return
			}
			s := <-again
			if s == nil {
				t.FailNow()
			}
			turn := s.OpenTurn()
			if turn == nil || turn.ID() != "t1" || string(turn.Request().Content) != `"x"` {
				t.Fatalf("Open has the turn %+v", turn)
			}
			check(t, turn.Complete(w.ctx, ""))
		})
	}
}

// TestClaimWithoutItsRest checks that a claim which was stored, and whose adoptions do not all fit into its commit and
// cannot be stored after it, does not leave the session with an owner that its caller does not know. That the last of
// them could be stored changes nothing.
func TestClaimWithoutItsRest(t *testing.T) {
	for name, small := range map[string]func(c *harness.Config){
		"none":     func(c *harness.Config) { c.BufferFactsMax = 3 },
		"the last": func(c *harness.Config) { c.BufferBytesMax = 300 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			adopt := w.largePrompts(20)
			two := w.connect(small)
			_, err := two.Claim(w.ctx, "s", adopt)
			wantErr(t, err, harness.ErrBufferFull)
			if st := w.givenUp("s"); st.Epoch != 2 {
				t.Errorf("epoch %d", st.Epoch)
			}
			three := w.connect()
			must[*harness.Session](t)(three.Claim(w.ctx, "s"))
		})
	}
}

// TestUnusedInALostLease checks that a session which no caller was given is not claimed again after a lost lease.
func TestUnusedInALostLease(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = 2 * time.Second })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	kept := must[*harness.Session](t)(h.Open(w.ctx, "kept", harness.OpenOptions{}))
	harness.Unhold(s)
	before := h.Incarnation()
	w.dropLease(h)
	natstest.Until(t, "the process to start over", func() bool { return h.Incarnation() != before })
	check(t, kept.Regain(w.ctx))
	wantErr(t, s.Regain(w.ctx), harness.ErrLeaseLost)
	if st := w.state("s"); st.Epoch != 1 {
		t.Errorf("claimed again: epoch %d", st.Epoch)
	}
}

// TestCloseWhileClaiming checks that Close returns when its context ends, also while a call waits for the broker to
// take a session; and that this call then returns.
func TestCloseWhileClaiming(t *testing.T) {
	for name, lost := range map[string]bool{"lease in date": false, "lease lost": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(func(c *harness.Config) {
				if c.TTL = time.Minute; lost {
					c.TTL, c.OnLeaseLoss = time.Second, harness.LeaseRestart
				}
			})
			s := must[*harness.Session](t)(h.Open(w.ctx, "other", harness.OpenOptions{}))
			w.server.Shutdown()
			opened := make(chan error, 1)
			go func() {
				_, err := h.Open(context.Background(), "s", harness.OpenOptions{})
				opened <- err
			}()
			natstest.Until(t, "the call to wait", func() bool { return harness.Users(h, "s") == 1 })
			if lost {
				wantErr(t, ended(t, s.Context()), harness.ErrLeaseLost)
			}
			ctx, cancel := short(w.ctx)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- h.Close(ctx) }()
			select {
			case err := <-closed:
				if err == nil {
					t.Error("closed without a broker")
				}
			case <-time.After(patience):
				t.Fatal("Close does not return")
			}
			select {
			case err := <-opened:
				wantErr(t, err, harness.ErrClosed)
			case <-time.After(patience):
				t.Fatal("Open does not return")
			}
		})
	}
}

// TestReadyInDoubt checks that a state of the lease whose acknowledgement was lost is said again by the next renewal.
func TestReadyInDoubt(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, 3*time.Second })
	l.down.Store(true)
	l.cut()
	ctx, cancel := short(w.ctx)
	defer cancel()
	if err := h.Ready(ctx); err == nil {
		t.Fatal("ready without a broker")
	}
	l.down.Store(false)
	natstest.Until(t, "the lease to say ready", func() bool {
		record, _ := w.lease(h.Incarnation())
		return record.State == "ready"
	})
}

// TestConnectAndCloseInDoubt checks that a lease ends by itself whose process does not know that it has it, or could
// not give it back.
func TestConnectAndCloseInDoubt(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, time.Second })
	l.deaf.Store(true)
	ctx, cancel := short(w.ctx)
	defer cancel()
	if err := h.Close(ctx); err == nil {
		t.Error("closed without a broker")
	}
	connected := make(chan error, 1)
	go func() {
		ctx, cancel := short(w.ctx)
		defer cancel()
		_, err := harness.Connect(ctx, harness.Config{ID: me, URL: l.url, TTL: time.Second})
		connected <- err
	}()
	wantErr(t, <-connected, harness.ErrUnreachable)
	natstest.Until(t, "no lease to be left", func() bool {
		left := 0
		check(t, w.bus.KV.List(w.ctx, kv.Leases, events.HarnessLeaseKeys(me),
			func(kv.Entry) error { left++; return nil }))
		return left == 0
	})
}

// TestSendInDoubt checks that a message whose service did not answer is taken once when it is sent again under the id
// that came with the error.
func TestSendInDoubt(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	ctx, cancel := short(w.ctx)
	defer cancel()
	id, err := h.Send(ctx, harness.Message{Session: "s", Content: "x"})
	if err == nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	taken := make(chan string, 2)
	w.serve(func(body map[string]any) error {
		taken <- fmt.Sprint(body["message"])
		return nil
	})
	again, err := h.Send(w.ctx, harness.Message{Session: "s", Content: "x", ID: id})
	check(t, err)
	if got := <-taken; again != id || got != id {
		t.Errorf("sent as %s, again as %s, taken as %s", id, again, got)
	}
}

// TestUncertainOutcomes checks that each row of the package comment's table names a test that exists.
func TestUncertainOutcomes(t *testing.T) {
	doc := string(must[[]byte](t)(os.ReadFile("harness.go")))
	_, table, _ := strings.Cut(doc, "# Uncertain outcomes")
	table, _, _ = strings.Cut(table, "\npackage harness")
	var tests strings.Builder
	for _, file := range must[[]string](t)(filepath.Glob("*_test.go")) {
		tests.Write(must[[]byte](t)(os.ReadFile(file)))
	}
	rows := 0
	for line := range strings.Lines(table) {
		names, ok := strings.CutPrefix(line, "//\t    Test")
		if !ok {
			continue
		}
		rows++
		for name := range strings.SplitSeq(strings.TrimSpace("Test"+names), ", ") {
			if !strings.Contains(tests.String(), "func "+name+"(") {
				t.Errorf("no test is called %s", name)
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows name a test", rows)
	}
}

// TestCompactionInDoubt checks that a compaction which Work took with the claim of its session, in a commit whose
// outcome was in doubt when Work ended, fails as one that is cut off, and is tried again. The process lives: it is not
// left to recovery, whose reason is that of a process that is gone, and then a person has to continue it under resume
// hold. The session is released, or goes to a call of Open that waited for it.
func TestCompactionInDoubt(t *testing.T) {
	for _, opens := range []bool{false, true} {
		t.Run(fmt.Sprintf("opened %t", opens), func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h, l, acknowledge := deafOnHold(w)
			w.append("s", events.WriterCompaction,
				events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
			w.show("s")
			check(t, h.Ready(w.ctx))
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			ended := make(chan error, 1)
			l.ends.Store(true)
			go func() {
				ended <- h.Work(ctx, harness.Worker{Compact: func(context.Context, *harness.Session,
					session.WorkCompaction) (int64, error) {
					t.Error("the compaction is made")
					return 0, nil
				}})
			}()
			w.until("s", "the compaction to be taken", func(st *session.State) bool {
				return st.Compaction != nil && st.Compaction.State == session.CompactionRunning
			})
			again := make(chan error, 1)
			if opens {
				go func() {
					_, err := h.Open(w.ctx, "s", harness.OpenOptions{})
					again <- err
				}()
				natstest.Until(t, "Open to wait", func() bool { return harness.Users(h, "s") >= 3 })
			}
			cancel()
			check(t, <-ended)
			acknowledge()
			var st *session.State
			if opens {
				check(t, <-again)
				st = w.until("s", "the compaction to end", func(st *session.State) bool { return st.Compaction == nil })
			} else {
				st = w.givenUp("s")
			}
			if c := st.LastCompaction; c == nil || c.ErrorKind() != failure.Interrupted || !st.CompactAgain() ||
				st.Owned != opens || st.Epoch != 2 || st.Ignored.Count != 0 {
				t.Errorf("last compaction %+v, open %+v, owned %t in epoch %d", c, st.Compaction, st.Owned, st.Epoch)
			}
		})
	}
}
