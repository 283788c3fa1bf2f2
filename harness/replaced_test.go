package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// works runs Work until it returns by itself.
func (w *world) works(h *harness.Harness, k harness.Worker) (returned chan error) {
	w.t.Helper()
	check(w.t, h.Ready(w.ctx))
	returned = make(chan error, 1)
	go func() { returned <- h.Work(w.ctx, k) }()
	return returned
}

// half returns a process that had two sessions, the newer one that has claimed one of them, and the other session.
func (w *world) half() (old, newer *harness.Harness, kept *harness.Session) {
	w.t.Helper()
	old = w.connect()
	s := must[*harness.Session](w.t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
	kept = must[*harness.Session](w.t)(old.Open(w.ctx, "kept", harness.OpenOptions{}))
	newer = w.connect()
	must[*harness.Session](w.t)(newer.Claim(w.ctx, "s"))
	wantErr(w.t, ended(w.t, s.Context()), harness.ErrFenced)
	return old, newer, kept
}

// wantReplaced checks that a process has ended because a newer one, by, has replaced it.
func (w *world) wantReplaced(old *harness.Harness, by string) {
	w.t.Helper()
	err := ended(w.t, old.Context())
	r, ok := errors.AsType[*harness.ReplacedError](err)
	if !ok || r.Harness != me || r.Incarnation != by {
		w.t.Fatalf("the context ended with %v, want replaced by %s", err, by)
	}
	wantErr(w.t, err, harness.ErrFenced)
	_, err = old.Open(w.ctx, "s", harness.OpenOptions{})
	wantErr(w.t, err, harness.ErrFenced)
	wantErr(w.t, old.Ready(w.ctx), harness.ErrFenced)
	check(w.t, old.Close(w.ctx))
}

// wantAlive checks that a process lives after it has looked at all that it was given: it looks once more at the end of
// a call.
func (w *world) wantAlive(h *harness.Harness, sessions int) {
	w.t.Helper()
	natstest.Until(w.t, "the lost sessions to be forgotten", func() bool { return harness.Handles(h) == sessions })
	_, err := h.Claim(w.ctx, "nowhere")
	wantErr(w.t, err, harness.ErrNotFound)
	check(w.t, context.Cause(h.Context()))
}

// claimSilently claims a session for an incarnation, and sends no nudge.
func (w *world) claimSilently(id, incarnation string) uint64 {
	w.t.Helper()
	st := w.state(id)
	ev := events.New(w.bus.NewID(), events.HarnessSource(me, incarnation), ref(id), st.Epoch+1, time.Now(),
		events.SessionClaimed{Incarnation: incarnation})
	return must[uint64](w.t)(w.bus.Log.Append(w.ctx, ref(id), events.WriterHarness, st.Seq, []events.Event{ev}))
}

// TestWorkOfAReplacedProcess (R7): a newer process has claimed the only session of an older one, whose Work returns an
// error that names what happened.
func TestWorkOfAReplacedProcess(t *testing.T) {
	asks := harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		_, err := turn.AskOnce(ctx, "where", harness.Prompt{Questions: question()})
		return err
	}}
	asked := func(st *session.State) bool { return len(st.PendingPrompts()) == 1 }
	for name, begin := range map[string]func(w *world, old *harness.Harness) chan error{
		"it waits for work": func(w *world, old *harness.Harness) chan error {
			must[*harness.Session](w.t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
			return w.works(old, asks)
		},
		"its handler asks": func(w *world, old *harness.Harness) chan error {
			must[*harness.Session](w.t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
			out := w.works(old, asks)
			w.request("s", "t1", "deploy")
			w.until("s", "a question", asked)
			return out
		},
		"Work has taken the session": func(w *world, old *harness.Harness) chan error {
			w.released(old, "s")
			out := w.works(old, asks)
			w.request("s", "t1", "deploy")
			w.until("s", "a question", asked)
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			old := w.connect()
			returned := begin(w, old)
			newer := w.connect()
			must[*harness.Session](t)(newer.Open(w.ctx, "s", harness.OpenOptions{}))
			w.wantReplaced(old, newer.Incarnation())
			err := <-returned
			want := fmt.Sprintf("another process of harness %q has started (incarnation %s) and takes the place "+
				"of this one, which ends", me, newer.Incarnation())
			if r, ok := errors.AsType[*harness.ReplacedError](err); !ok || r.Incarnation != newer.Incarnation() ||
				!strings.HasSuffix(err.Error(), want) {
				t.Errorf("Work returned %v, want %s", err, want)
			}
			check(t, context.Cause(newer.Context()))
		})
	}
}

// TestAProcessWithASessionLeftContinues: a process that has a session left continues, also after the newer process that
// has claimed another one has died. It ends when its last session is claimed, or when it gives that up: it can never
// claim the first one again.
func TestAProcessWithASessionLeftContinues(t *testing.T) {
	for name, end := range map[string]func(w *world, kept *harness.Session, died string) (by string){
		"the last one is claimed": func(w *world, _ *harness.Session, _ string) string {
			next := w.connect()
			must[*harness.Session](w.t)(next.Claim(w.ctx, "kept"))
			return next.Incarnation()
		},
		"the last one is released": func(w *world, kept *harness.Session, died string) string {
			check(w.t, kept.Release(w.ctx, "done"))
			return died
		},
		"the last one is closed": func(w *world, _ *harness.Session, died string) string {
			w.append("kept", events.WriterLedger, events.SessionClosed{Reason: "finished", By: "ada"})
			return died
		},
		"recovery takes the last one, for no other process": func(w *world, _ *harness.Session, died string) string {
			w.append("kept", events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost,
				Incarnation: w.state("kept").Incarnation})
			return died
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			old, newer, kept := w.half()
			newer.Abandon()
			w.wantAlive(old, 1)
			check(t, kept.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
			w.wantReplaced(old, end(w, kept, newer.Incarnation()))
		})
	}
}

// TestMembersOfAPoolAreNotReplaced: a member of a pool lives when another process has the session that it had or wants.
// An exclusive process lives when a member of a pool has taken its session.
func TestMembersOfAPoolAreNotReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		old, newer []func(*harness.Config)
		lose       func(w *world, old, newer *harness.Harness)
	}{
		"recovery, and another member": {[]func(*harness.Config){pool}, []func(*harness.Config){pool},
			func(w *world, old, newer *harness.Harness) {
				s := must[*harness.Session](w.t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
				w.append("s", events.WriterReconciler,
					events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: old.Incarnation()})
				must[*harness.Session](w.t)(newer.Claim(w.ctx, "s"))
				wantErr(w.t, ended(w.t, s.Context()), harness.ErrFenced)
				_, err := old.Claim(w.ctx, "s")
				wantErr(w.t, err, harness.ErrOwned)
			}},
		"a member wants what an exclusive process has": {[]func(*harness.Config){pool}, nil,
			func(w *world, old, newer *harness.Harness) {
				must[*harness.Session](w.t)(newer.Open(w.ctx, "s", harness.OpenOptions{}))
				_, err := old.Claim(w.ctx, "s")
				wantErr(w.t, err, harness.ErrFenced)
			}},
		"a member takes an exclusive process's": {nil, []func(*harness.Config){pool},
			func(w *world, old, newer *harness.Harness) {
				s := must[*harness.Session](w.t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
				must[*harness.Session](w.t)(newer.Claim(w.ctx, "s"))
				wantErr(w.t, ended(w.t, s.Context()), harness.ErrFenced)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			old, newer := w.connect(c.old...), w.connect(c.newer...)
			c.lose(w, old, newer)
			w.wantAlive(old, 0)
			out := w.works(old, harness.Worker{Turn: func(context.Context, *harness.Turn) error { return nil }})
			w.released(old, "free")
			w.request("free", "t1", "deploy")
			st := w.until("free", "the turn to complete", func(st *session.State) bool {
				return st.LastTurn != nil && st.LastTurn.ID == "t1"
			})
			if st.LastTurn.Outcome != session.OutcomeCompleted {
				t.Errorf("%+v", st.LastTurn)
			}
			select {
			case err := <-out:
				t.Errorf("Work returned %v", err)
			default:
			}
		})
	}
}

// TestAProcessThatIsNewestAgainContinues: a process that has drawn the newest incarnation after a newer process had
// claimed one of its sessions is not replaced by that one, and can claim the session again.
func TestAProcessThatIsNewestAgainContinues(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	old, newer, kept := w.half()
	// without the ticket the process cannot find out that another one has drawn a newer incarnation
	e := must[kv.Entry](t)(w.bus.KV.Load(w.ctx, kv.Leases, events.TicketKey(me)))
	check(t, w.bus.KV.Delete(w.ctx, kv.Leases, events.TicketKey(me), e.Rev))
	w.dropLease(old)
	natstest.Until(t, "the process to start over", func() bool {
		return session.Older(newer.Incarnation(), old.Incarnation())
	})
	check(t, kept.Release(w.ctx, "done"))
	w.wantAlive(old, 0)
	must[*harness.Session](t)(old.Claim(w.ctx, "s"))
	w.wantReplaced(newer, old.Incarnation())
}

// TestASleepingProcessLearnsThatItWasReplaced (R6): the connection of a process without anything to do stands still, or
// is cut, while a newer process claims its session. The nudge is lost. Its lease is in date all the time.
func TestASleepingProcessLearnsThatItWasReplaced(t *testing.T) {
	for name, sleep := range map[string]func(l *line) (resume func()){
		"its connection was cut": func(l *line) func() {
			l.down.Store(true)
			l.cut()
			return func() { l.down.Store(false) }
		},
		"the connection loses the claim": func(l *line) func() {
			l.deaf.Store(true)
			return func() { l.deaf.Store(false); l.cut() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			l := newLine(t, w.server.URL())
			old := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, 2*patience })
			must[*harness.Session](t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
			out := w.works(old, harness.Worker{})
			natstest.Until(t, "the log to be followed", func() bool { return harness.Following(old) })
			resume := sleep(l)
			newer := w.connect()
			w.claimSilently("s", newer.Incarnation())
			resume()
			w.wantReplaced(old, newer.Incarnation())
			wantErr(t, <-out, harness.ErrFenced)
		})
	}
}

// TestAClaimFromBeforeTheLogIsFollowed: a session in which nothing waits is read when the log is followed. A claim from
// before that, without a nudge, reaches the process.
func TestAClaimFromBeforeTheLogIsFollowed(t *testing.T) {
	w := newWorld(t)
	// a pool follows nothing
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	harness.Live(h, w.orphanSilently("s")+1)
	wantErr(t, ended(t, s.Context()), harness.ErrFenced)
}

// TestClaimsThatAreReadLate: the process that was the last to claim a session gets the claims of others and its own
// once more, in every order. It lives and keeps the session.
func TestClaimsThatAreReadLate(t *testing.T) {
	w := newWorld(t)
	var hs []*harness.Harness
	var s *harness.Session
	seqs := []uint64{}
	for range 3 {
		h := w.connect()
		s = must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		hs, seqs = append(hs, h), append(seqs, w.state("s").Seq)
	}
	newest := hs[2]
	for _, old := range hs[:2] {
		if _, ok := errors.AsType[*harness.ReplacedError](ended(t, old.Context())); !ok {
			t.Errorf("an older process ended with %v", context.Cause(old.Context()))
		}
	}
	var late []bus.Message
	check(t, w.bus.Log.ScanMessages(w.ctx, 0, func(m bus.Message) error {
		late = append(late, m)
		return nil
	}))
	if len(late) != len(seqs) {
		t.Fatalf("the log has %d commits, want %d", len(late), len(seqs))
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 1, 1}, {1, 0, 1, 2, 2, 0}} {
		for _, i := range order {
			harness.Receive(s, late[i])
			w.bus.Hints.Nudge(ref("s"), seqs[i])
			harness.Live(newest, seqs[i])
		}
	}
	check(t, s.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
	w.wantAlive(newest, 1)
	if st := w.state("s"); st.Incarnation != newest.Incarnation() || st.Ignored.Count != 0 {
		t.Errorf("owned by %s, ignored %+v", st.Incarnation, st.Ignored)
	}
}

// TestWorkThatOnlyANewerProcessMayTake: a process without a session ends when it is to take work in one that a newer
// process has had, or that recovery has taken for a newer process: it could never take it.
func TestWorkThatOnlyANewerProcessMayTake(t *testing.T) {
	for name, take := range map[string]func(w *world, first, newer *harness.Harness){
		"a newer process has had it": func(w *world, _, newer *harness.Harness) { w.released(newer, "s") },
		"recovery took it for a newer process": func(w *world, first, newer *harness.Harness) {
			must[*harness.Session](w.t)(first.Open(w.ctx, "s", harness.OpenOptions{}))
			w.append("s", events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost,
				Incarnation: first.Incarnation(), SupersededBy: newer.Incarnation()})
			w.wantReplaced(first, newer.Incarnation())
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			first, old, newer := w.connect(), w.connect(), w.connect()
			out := w.works(old, harness.Worker{Turn: func(context.Context, *harness.Turn) error { return nil }})
			take(w, first, newer)
			w.wantAlive(old, 0)
			w.request("s", "t1", "deploy")
			w.wantReplaced(old, newer.Incarnation())
			wantErr(t, <-out, harness.ErrFenced)
			if st := w.state("s"); st.Turn != nil || st.Pending.Turn == nil {
				t.Errorf("%+v, %+v", st.Turn, st.Pending)
			}
		})
	}
}
