package harness_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// suspendedInAClaim has the lease of a process lost, and its claim stored without an acknowledgement. meanwhile is
// called between the two.
func (w *world) suspendedInAClaim(l *line, h *harness.Harness, s *harness.Session, meanwhile func()) {
	w.t.Helper()
	release := harness.Mute(s)
	// with the claim
	l.ends.Store(true)
	w.dropLease(h)
	natstest.Until(w.t, "the lease to be lost", func() bool { return harness.Suspended(s) })
	meanwhile()
	release()
	w.until("s", "the claim to be stored", func(st *session.State) bool { return st.Epoch == 2 })
}

// recovers is what recovery appends to the session s, if its owner lives, or is dead.
func (w *world) recovers(owner reconciler.Liveness) []events.Fact {
	w.t.Helper()
	d, err := reconciler.Decide(w.state("s"), reconciler.Input{Now: time.Now(),
		Owner: reconciler.Owner{Liveness: owner}}, w.source)
	check(w.t, err)
	return d.Facts
}

// TestTwoClaimsInDoubt: the claim after a lost lease is stored, its outcome is not known, and the lease is lost again:
// twice in a row. The process still has its session and its turn.
func TestTwoClaimsInDoubt(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(pool, func(cfg *harness.Config) { cfg.URL, cfg.TTL = l.url, 3*time.Second })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	w.suspendedInAClaim(l, h, s, func() {})
	for epoch := uint64(2); epoch <= 3; epoch++ {
		w.until("s", "the claim to be stored", func(st *session.State) bool { return st.Epoch == epoch })
		// the attempt to claim ends with its lease
		harness.Mute(s)()
		l.ends.Store(epoch == 2)
		l.cut()
		l.deaf.Store(false)
	}
	check(t, s.Regain(w.ctx))
	if st := w.state("s"); st.Epoch < 4 || st.Turn == nil || st.Turn.Epoch != st.Epoch {
		t.Errorf("epoch %d, turn %+v", st.Epoch, st.Turn)
	}
}

// dropNewLease deletes the lease of a process that starts over.
func (w *world) dropNewLease() {
	w.t.Helper()
	key := events.HarnessLeaseKey(me, w.drawn())
	e := must[kv.Entry](w.t)(w.bus.KV.Load(w.ctx, kv.Leases, key))
	check(w.t, w.bus.KV.Delete(w.ctx, kv.Leases, key, e.Rev))
}

// TestClaimStoredLate: the leader of the log holds the claim of a process that starts over, and the new lease is lost,
// too. The first claim is stored just before the second one arrives. The process still has its session and its turn.
func TestClaimStoredLate(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(pool, func(cfg *harness.Config) { cfg.URL = l.url })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	nc := must[*nats.Conn](t)(nats.Connect(w.server.URL()))
	defer nc.Close()
	var first *nats.Msg
	held := make(chan struct{})
	stores := func(m *nats.Msg, reply string) {
		to := &nats.Msg{Subject: "hf.log" + m.Subject[len(aside):], Header: m.Header, Data: m.Data, Reply: reply}
		if err := nc.PublishMsg(to); err != nil {
			t.Error(err)
		}
	}
	must[*nats.Subscription](t)(nc.Subscribe(aside+".>", func(m *nats.Msg) {
		switch {
		case first == nil:
			first = m
			close(held)
		case bytes.Equal(m.Data, first.Data):
			// sent again, in flight
		default:
			l.aside.Store(false)
			stores(first, "")
			stores(m, m.Reply)
		}
	}))
	check(t, nc.Flush())
	l.aside.Store(true)
	w.dropLease(h)
	<-held
	w.dropNewLease()
	check(t, s.Regain(w.ctx))
	if st := w.state("s"); st.Epoch < 3 || st.Turn == nil || st.Turn.Epoch != st.Epoch {
		t.Errorf("epoch %d, turn %+v", st.Epoch, st.Turn)
	}
}

// manyQuestions is how many large questions are more than a commit takes.
const manyQuestions = 12

// asksMany has Asks wait for more questions than a commit takes.
func (w *world) asksMany(s *harness.Session) {
	w.t.Helper()
	for i := range manyQuestions {
		id := fmt.Sprint("p", i)
		ask(w.ctx, s, harness.Prompt{ID: id, Questions: []events.Question{{ID: "q",
			Question: strings.Repeat("x", 60<<10)}}})
		w.awaiting("s", id)
	}
}

// allAdopted reports whether all questions of [world.asksMany] are of the present owner.
func allAdopted(st *session.State) bool {
	for i := range manyQuestions {
		if p := st.Prompts[fmt.Sprint("p", i)]; p == nil || p.Epoch != st.Epoch {
			return false
		}
	}
	return true
}

// TestSplitClaimInDoubt: a process has more open questions than a commit takes. The first commit of the claim after a
// lost lease is stored, its outcome is not known, and the lease is lost again. Every question is still the process's.
func TestSplitClaimInDoubt(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(pool, func(cfg *harness.Config) { cfg.URL = l.url })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	w.asksMany(s)
	w.suspendedInAClaim(l, h, s, func() {})
	// the attempt to claim ends with its lease
	harness.Mute(s)()
	l.cut()
	l.deaf.Store(false)
	w.until("s", "every question to be adopted", func(st *session.State) bool {
		return st.Epoch >= 3 && allAdopted(st)
	})
	for _, f := range w.recovers(reconciler.Alive) {
		t.Errorf("recovery of a living owner: %s %+v", f.Kind(), f)
	}
}

// leaderless is a network on which, once it is armed, claims reach the log, and other appends find no leader.
type leaderless struct {
	to      io.Writer
	armed   *atomic.Bool
	refused *atomic.Int64
}

// Write implements [io.Writer].
func (l leaderless) Write(p []byte) (int, error) {
	asked := p
	if l.armed.Load() && bytes.Contains(p, []byte("HPUB hf.log.")) && !bytes.Contains(p, []byte("session.claimed")) {
		l.refused.Add(1)
		asked = bytes.ReplaceAll(p, []byte("HPUB hf.log."), []byte("HPUB no.log."))
	}
	if _, err := l.to.Write(asked); err != nil {
		return 0, err
	}
	return len(p), nil
}

// through returns the address of a network to a broker. write wraps what goes to the broker.
func through(t testing.TB, to string, write func(io.Writer) io.Writer) string {
	t.Helper()
	target := must[*url.URL](t)(url.Parse(to)).Host
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { check(t, listener.Close()) })
	copies := func(to io.WriteCloser, w io.Writer, from io.Reader) {
		_, _ = io.Copy(w, from)
		// it may be closed
		_ = to.Close()
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go copies(broker, write(broker), client)
			go copies(client, client, broker)
		}
	}()
	return "nats://" + listener.Addr().String()
}

// TestNotReadyBeforeTheRestOfAClaim: a process has more open questions than a commit takes. After a lost lease the
// first commit of its claim is stored, and then the log has no leader for a while; or the lease is lost once more, and
// that happens again. The lease is not ready before the rest is stored: recovery would end the questions of a living
// process.
func TestNotReadyBeforeTheRestOfAClaim(t *testing.T) {
	for name, losses := range map[string]uint64{"lost once": 1, "lost twice": 2} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			var armed atomic.Bool
			var refused atomic.Int64
			h := w.connect(func(cfg *harness.Config) {
				cfg.Pool = true
				cfg.URL = through(t, w.server.URL(), func(to io.Writer) io.Writer {
					return leaderless{to, &armed, &refused}
				})
			})
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			w.asksMany(s)
			armed.Store(true)
			var st *session.State
			for n := range losses {
				if n == 0 {
					w.dropLease(h)
				} else {
					w.dropNewLease()
				}
				st = w.until("s", "the claim to be stored", func(st *session.State) bool { return st.Epoch >= n+2 })
				tried := refused.Load()
				natstest.Until(t, "the rest to be tried again", func() bool { return refused.Load() > tried+2 })
			}
			ready := func() bool {
				e, err := w.bus.KV.Load(w.ctx, kv.Leases, events.HarnessLeaseKey(me, st.Incarnation))
				return err == nil && bytes.Contains(e.Value, []byte(`"state":"ready"`))
			}
			if ready() {
				t.Errorf("the lease is ready, and recovery would append %+v", w.recovers(reconciler.Alive))
			}
			armed.Store(false)
			natstest.Until(t, "the lease to be ready", ready)
			if st := w.state("s"); !allAdopted(st) {
				t.Error("the lease is ready, and some questions are not adopted")
			}
		})
	}
}

// stall is a network that stands still from the moment in which some bytes are about to pass.
type stall struct {
	mu     sync.Mutex
	needle []byte
	held   chan struct{} // closed when it stands still
	on     chan struct{} // closed when it continues
}

func (l *stall) at(needle string) (held, on chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.needle, l.held, l.on = []byte(needle), make(chan struct{}), make(chan struct{})
	return l.held, l.on
}

type stalled struct {
	to io.Writer
	l  *stall
}

// Write implements [io.Writer].
func (s stalled) Write(p []byte) (int, error) {
	s.l.mu.Lock()
	hit, on := s.l.needle != nil && bytes.Contains(p, s.l.needle), s.l.on
	if hit {
		s.l.needle = nil
		close(s.l.held)
	}
	s.l.mu.Unlock()
	if hit {
		<-on
	}
	return s.to.Write(p)
}

// TestResultReadAcrossTheFence (R6): the network stands still while Session.Result reads an answer in the log, for
// longer than the lease, and recovery takes the session. The process does not get the answer.
func TestResultReadAcrossTheFence(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	var l stall
	h := w.connect(func(c *harness.Config) {
		c.Pool, c.TTL = true, 2*time.Second
		c.URL = through(t, w.server.URL(), func(to io.Writer) io.Writer { return stalled{to, &l} })
	})
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1",
		PromptKind: events.PromptQuestion, Questions: question(), Delivery: events.DeliverToolResult,
		OnOwnerLoss: events.LossKeep}))
	w.endsCallSilently()
	e, _ := w.state("s").Ended(session.EntityTool, "c1")
	natstest.Until(t, "the end of the call to be read", func() bool {
		w.bus.Hints.Nudge(ref("s"), e.Seq)
		return s.State().Seq >= e.Seq
	})
	held, on := l.at(fmt.Sprintf(`{"seq":%d}`, e.Seq))
	type result struct {
		harness.Result
		err error
	}
	out := make(chan result, 1)
	go func() {
		r, err := s.Result(w.ctx, "c1")
		out <- result{r, err}
	}()
	<-held
	natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
	w.orphanSilently("s")
	close(on)
	if r := <-out; r.Output != nil || r.err == nil {
		t.Errorf("a process whose session was taken got %s, %v", r.Output, r.err)
	}
}

// TestReturnedToACallThatIsCutOff: the Ask of a call in the background has returned an answer, and the process dies
// before the end of the call, which is the receipt. A turn brings the answer, also if the turn that began the call has
// completed in between, or the process has lost its lease and claimed its session again.
func TestReturnedToACallThatIsCutOff(t *testing.T) {
	for name, c := range map[string]struct{ inTurn, loses bool }{
		"after its turn": {}, "after its turn, and a lost lease": {loses: true},
		"in its turn": {inTurn: true}, "in its turn, and a lost lease": {inTurn: true, loses: true},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect(pool)
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "deploy", Background: true}))
			by := asker(turn)
			if !c.inTurn {
				check(t, turn.Complete(w.ctx, ""))
				by = s
			}
			check(t, got(t, w.answered(ask(w.ctx, by, harness.Prompt{ID: "p1", Call: "c1", Questions: question()}),
				"p1")).err)
			if c.inTurn {
				check(t, turn.Complete(w.ctx, ""))
			}
			if c.loses {
				w.dropLease(h)
				w.until("s", "the claim", func(st *session.State) bool { return st.Epoch == 2 })
				check(t, s.Regain(w.ctx))
			}
			h.Abandon()
			brings := false
			facts := w.recovers(reconciler.Dead)
			for _, f := range facts {
				r, ok := f.(events.TurnRequested)
				brings = brings || ok && r.Prompt == "p1"
			}
			if !brings {
				t.Errorf("no turn brings the answer: %+v", facts)
			}
		})
	}
}
