package harness_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// backup copies the files of the broker, which is stopped meanwhile. restore stops the broker, puts the copy in the
// place of its files, and starts it.
func (w *world) backup() (restore func()) {
	w.t.Helper()
	dir, copied := w.server.Config().Dir, w.t.TempDir()
	w.server.Shutdown()
	check(w.t, os.CopyFS(copied, os.DirFS(dir)))
	w.server = natstest.Restart(w.t, w.server)
	return func() {
		w.t.Helper()
		w.server.Shutdown()
		check(w.t, os.RemoveAll(dir))
		check(w.t, os.CopyFS(dir, os.DirFS(copied)))
		w.server = natstest.Restart(w.t, w.server)
	}
}

// loseTickets deletes the bucket of leases, and has it made again. A stream that is made again at once can have the
// messages of the deleted one, so this is repeated until the ticket is gone, or is a new one of a process that lives.
func (w *world) loseTickets() {
	w.t.Helper()
	nc := must[*nats.Conn](w.t)(nats.Connect(w.server.URL()))
	defer nc.Close()
	js := must[jetstream.JetStream](w.t)(jetstream.New(nc))
	was := w.drawn()
	natstest.Until(w.t, "the tickets to be lost", func() bool {
		check(w.t, js.DeleteStream(w.ctx, "KV_hf_leases"))
		check(w.t, w.bus.Layout.Ensure(w.ctx))
		return w.drawn() != was
	})
}

// TestANewProcessIsNewerAfterARestore: the files of the broker are replaced by an older copy, which knows nothing of a
// process that lives. The next process is newer than that one, and not the same incarnation.
func TestANewProcessIsNewerAfterARestore(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	through := func(c *harness.Config) { c.URL = l.url }
	first := w.connect(through)
	s := must[*harness.Session](t)(first.Open(w.ctx, "s", harness.OpenOptions{}))
	restore := w.backup()
	newest := first.Incarnation()
	for range 3 {
		newest = w.connect(through).Incarnation()
	}
	// a process that starts over is newer than one that began before that
	l.down.Store(true)
	l.cut()
	restore()
	next := w.connect()
	if !session.Older(newest, next.Incarnation()) {
		t.Errorf("the next process is %s, and a living one is %s", next.Incarnation(), newest)
	}
	claimed := must[*harness.Session](t)(next.Claim(w.ctx, "s"))
	check(t, claimed.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
	was := next.Incarnation()
	l.down.Store(false)
	wantErr(t, ended(t, s.Context()), harness.ErrFenced)
	if st := w.state("s"); st.Incarnation != was {
		t.Errorf("owned by %s, want %s", st.Incarnation, was)
	}
}

// TestTheLossOfTheTicketsReplacesNoNewProcess: the bucket of tickets and leases is lost. The next process of an
// exclusive harness gets the sessions of the one before it, whether that lives or not, and the latter ends.
func TestTheLossOfTheTicketsReplacesNoNewProcess(t *testing.T) {
	for name, alive := range map[string]bool{"the process before it is dead": false, "it lives": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			// so that the first ticket of a new bucket is below that of the owner
			for range 3 {
				check(t, w.connect().Close(w.ctx))
			}
			old := w.connect()
			for _, id := range []string{"s", "other"} {
				must[*harness.Session](t)(old.Open(w.ctx, id, harness.OpenOptions{}))
			}
			was := old.Incarnation()
			if !alive {
				old.Abandon()
			}
			w.loseTickets()
			next := w.connect()
			s := must[*harness.Session](t)(next.Claim(w.ctx, "s"))
			check(t, s.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
			if st := w.state("s"); st.Incarnation != next.Incarnation() || !session.Older(was, st.Incarnation) {
				t.Errorf("owned by %s, want %s", st.Incarnation, next.Incarnation())
			}
			if alive {
				w.wantReplaced(old, next.Incarnation())
			}
			must[*harness.Session](t)(next.Claim(w.ctx, "other"))
			check(t, context.Cause(next.Context()))
		})
	}
}

// TestAProcessThatStartsOverIsNewerThanItself: the bucket of tickets is lost, and the broker's clock may have been set
// back as well: the process does not draw an incarnation again, or below its own.
func TestAProcessThatStartsOverIsNewerThanItself(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	// its next incarnation is far ahead of the clock
	ahead := w.inTheWay(0)
	w.dropLease(h)
	natstest.Until(t, "the process to start over", func() bool { return session.Older(ahead, h.Incarnation()) })
	was := h.Incarnation()
	w.loseTickets()
	natstest.Until(t, "the process to start over without the tickets", func() bool {
		return h.Incarnation() != was || h.Context().Err() != nil
	})
	check(t, context.Cause(h.Context()))
	if !session.Older(was, h.Incarnation()) {
		t.Errorf("it was %s and is %s", was, h.Incarnation())
	}
	check(t, s.Regain(w.ctx))
	check(t, s.Append(w.ctx, events.TurnStarted{Turn: "t", Cause: events.CauseMessage}))
}

// TestTicketsOfAnOlderForm: the key of the tickets has an entry of a process that drew the entry's revision. A new
// process is newer than that one, and takes its session; the older one finds that the newer one has drawn since.
func TestTicketsOfAnOlderForm(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	var rev uint64
	for range 3 {
		rev = must[uint64](t)(w.bus.KV.Store(w.ctx, kv.Leases, events.TicketKey(me), []byte(w.bus.Instance()), rev))
	}
	opened := events.New(w.bus.NewID(), events.HarnessSource(me, "3"), ref("s"), 1, time.Now(),
		events.SessionOpened{Incarnation: "3"})
	must[uint64](t)(w.bus.Log.Append(w.ctx, ref("s"), events.WriterHarness, 0, []events.Event{opened}))
	if drawn := w.drawn(); drawn != "3" {
		t.Errorf("the older process has drawn %s, want 3", drawn)
	}
	h := w.connect()
	if !session.Older("3", h.Incarnation()) {
		t.Errorf("%s is not newer than 3", h.Incarnation())
	}
	s := must[*harness.Session](t)(h.Claim(w.ctx, "s"))

	// a process of the older form draws a ticket; its number is below that of the newer process and replaces nothing
	e := must[kv.Entry](t)(w.bus.KV.Load(w.ctx, kv.Leases, events.TicketKey(me)))
	must[uint64](t)(w.bus.KV.Store(w.ctx, kv.Leases, e.Key, []byte("an older process"), e.Rev))
	was := h.Incarnation()
	w.dropLease(h)
	natstest.Until(t, "the process to start over", func() bool {
		return h.Incarnation() != was || h.Context().Err() != nil
	})
	check(t, context.Cause(h.Context()))
	check(t, s.Regain(w.ctx))
	if !session.Older(was, h.Incarnation()) {
		t.Errorf("it was %s and is %s", was, h.Incarnation())
	}
}

// unread forgets what was read of a session.
func (w *world) unread(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.folded, id)
}

// TestARestoredLogFencesWhoKnowsMore: the files of the broker are replaced by an older copy, and another process stores
// a commit at the place of the last one that a living process has stored. That process does not write behind it.
func TestARestoredLogFencesWhoKnowsMore(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	old := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, 2*patience })
	s := must[*harness.Session](t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
	restore := w.backup()
	check(t, s.Append(w.ctx, events.TurnStarted{Turn: "lost", Cause: events.CauseMessage}))
	at := w.state("s").Seq
	l.down.Store(true)
	l.cut()
	restore()
	w.unread("s")
	if seq := w.append("s", events.WriterLedger, events.SessionConfigured{By: "ada"}); seq != at {
		t.Fatalf("stored at %d, want the place %d of the lost commit", seq, at)
	}
	l.down.Store(false)
	wantErr(t, s.Append(w.ctx, events.TurnCompleted{Turn: "lost"}), harness.ErrFenced)
	w.unread("s")
	if st := w.state("s"); st.Seq != at {
		t.Errorf("the session ends at %d, want %d", st.Seq, at)
	}
}

// TestARestoredLogThatEndsEarlier: the files of the broker are replaced by an older copy, and nothing is stored at the
// place of the last commit that a living process has stored. That process learns of it at its next append, which stores
// nothing.
func TestARestoredLogThatEndsEarlier(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	old := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, 2*patience })
	s := must[*harness.Session](t)(old.Open(w.ctx, "s", harness.OpenOptions{}))
	restore, at := w.backup(), w.state("s").Seq
	check(t, s.Append(w.ctx, events.TurnStarted{Turn: "lost", Cause: events.CauseMessage}))
	l.down.Store(true)
	l.cut()
	restore()
	w.unread("s")
	l.down.Store(false)
	wantErr(t, s.Append(w.ctx, events.TurnCompleted{Turn: "lost"}), harness.ErrFenced)
	w.unread("s")
	if st := w.state("s"); st.Seq != at {
		t.Errorf("the session ends at %d, want %d", st.Seq, at)
	}
}
