package harness_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// line is a network between a harness and the broker, which can be made to swallow what the broker says.
type line struct {
	url     string
	deaf    atomic.Bool  // the broker receives, and its answers are lost
	ends    atomic.Bool  // it becomes deaf with the next append to the log
	aside   atomic.Bool  // appends to the log go to a subject that the log does not store
	down    atomic.Bool  // no connection is possible
	reads   atomic.Int64 // requests to read the log that have passed
	mu      sync.Mutex
	through []net.Conn
}

func newLine(t testing.TB, to string) *line {
	t.Helper()
	target := must[*url.URL](t)(url.Parse(to)).Host
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	l := &line{url: "nats://" + listener.Addr().String()}
	t.Cleanup(func() {
		check(t, listener.Close())
		l.cut()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				// closed
				return
			}
			broker, err := net.Dial("tcp", target)
			if err == nil && l.down.Load() {
				broker.Close()
				err = io.EOF
			}
			if err != nil {
				client.Close()
				continue
			}
			l.mu.Lock()
			l.through = append(l.through, client, broker)
			l.mu.Unlock()
			go func() { _, _ = io.Copy(appendWatcher{broker, l}, client); broker.Close() }()
			go func() { _, _ = io.Copy(swallower{client, &l.deaf}, broker); client.Close() }()
		}
	}()
	return l
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.through {
		c.Close()
	}
	l.through = nil
}

// appendWatcher passes on what a harness says, and makes the line deaf when it appends.
type appendWatcher struct {
	to io.Writer
	l  *line
}

func (s appendWatcher) Write(p []byte) (int, error) {
	if s.l.ends.Load() && bytes.Contains(p, []byte("HPUB hf.log.")) {
		s.l.ends.Store(false)
		s.l.deaf.Store(true)
	}
	if s.l.aside.Load() {
		sent := bytes.ReplaceAll(p, []byte("HPUB hf.log."), []byte("HPUB "+aside+"."))
		if _, err := s.to.Write(sent); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	s.l.reads.Add(int64(bytes.Count(p, []byte("$JS.API.STREAM.MSG.GET.HF_LOG"))))
	return s.to.Write(p)
}

// aside is where appends go that the log must not store. It is as long as the beginning of the log's subjects.
const aside = "no.log"

type swallower struct {
	to   io.Writer
	deaf *atomic.Bool
}

func (s swallower) Write(p []byte) (int, error) {
	if s.deaf.Load() {
		return len(p), nil
	}
	return s.to.Write(p)
}

// TestLostAcknowledgement: the commit is stored, its acknowledgement is lost with the connection: the caller gets its
// true result, and it is stored once.
func TestLostAcknowledgement(t *testing.T) {
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(func(c *harness.Config) { c.URL = l.url })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	l.deaf.Store(true)
	called := make(chan error, 1)
	go func() {
		_, err := turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"})
		called <- err
	}()
	stored := w.until("s", "the call to be stored", func(st *session.State) bool { return st.Tools["c1"] != nil })
	l.cut()
	l.deaf.Store(false)
	check(t, <-called)
	check(t, s.Call("c1").Complete(w.ctx, "done"))
	if st := w.state("s"); st.Commits != stored.Commits+1 || st.Ignored.Count != 0 || s.State().Seq != st.Seq {
		t.Errorf("%d commits after the call began, %d ignored", st.Commits-stored.Commits, st.Ignored.Count)
	}
}

// TestAppendsWhileTheLogStoresNothing is R8 with a broker that answers: the leader of the log has lost the other nodes.
// It keeps the first copy of each commit in flight, and refuses further ones for longer than a service waits. The calls
// return when it stores again, as after any outage, also if it stores the first copy at last.
func TestAppendsWhileTheLogStoresNothing(t *testing.T) {
	// it mostly waits
	t.Parallel()
	// a service waits 2 s for an acknowledgement, then 8 s
	const refused = 12 * time.Second
	for name, first := range map[string]bool{"the first copy is lost": false, "the first copy is stored": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			l := newLine(t, w.server.URL())
			h := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, time.Minute })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			before := w.state("s").Commits
			leader := w.leaderWithoutNodes(l, first, refused)
			call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
			if since := leader(); since < refused {
				t.Errorf("the call returned after %s", since)
			}
			check(t, call.Complete(w.ctx, "done"))
			if st := w.state("s"); st.Commits != before+2 || st.Ignored.Count != 0 {
				t.Errorf("%d commits, want %d; %d facts ignored", st.Commits, before+2, st.Ignored.Count)
			}
			leader = w.leaderWithoutNodes(l, first, refused)
			must[*harness.Session](t)(h.Open(w.ctx, "other", harness.OpenOptions{}))
			if since := leader(); since < refused {
				t.Errorf("the session was opened after %s", since)
			}
			if st := w.state("other"); st.Commits != 1 || !st.Owned {
				t.Errorf("%d commits of the opened session, owned: %v", st.Commits, st.Owned)
			}
		})
	}
}

// leaderWithoutNodes is the log's leader for what is appended over the line: the first copy is in flight, further ones
// are refused for some time. Then it stores what comes, and the first copy if it is said so. since returns how long ago
// the first one came.
func (w *world) leaderWithoutNodes(l *line, first bool, refused time.Duration) (since func() time.Duration) {
	w.t.Helper()
	nc := must[*nats.Conn](w.t)(nats.Connect(w.server.URL()))
	var began atomic.Pointer[time.Time]
	_, err := nc.Subscribe(aside+".>", func(m *nats.Msg) {
		now := time.Now()
		if began.CompareAndSwap(nil, &now) {
			held := &nats.Msg{Subject: "hf.log" + m.Subject[len(aside):], Header: m.Header, Data: m.Data}
			time.AfterFunc(refused, func() {
				if first {
					check(w.t, nc.PublishMsg(held))
				}
				l.aside.Store(false)
			})
			return
		}
		check(w.t, m.Respond([]byte(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`)))
	})
	check(w.t, err)
	check(w.t, nc.Flush())
	l.aside.Store(true)
	return func() time.Duration {
		// another leader follows
		nc.Close()
		return time.Since(*began.Load())
	}
}

// TestOutcomeInDoubtWhenTheLeaseIsLost: the same, and the lease is lost before the harness is back: the new incarnation
// finds the commit in the log, reports it to its caller, and continues with the call.
func TestOutcomeInDoubtWhenTheLeaseIsLost(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(func(c *harness.Config) { c.URL = l.url })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	l.deaf.Store(true)
	called := make(chan error, 2)
	begin := func(id string) {
		_, err := turn.Tool(w.ctx, harness.ToolOptions{ID: id, Name: "bash"})
		called <- err
	}
	go begin("c1")
	w.until("s", "the call to be stored", func(st *session.State) bool { return st.Tools["c1"] != nil })
	// behind it
	go begin("c2")
	natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
	l.cut()
	l.deaf.Store(false)
	check(t, <-called)
	check(t, <-called)
	st := w.state("s")
	if st.Epoch < 2 || st.Ignored.Count != 0 || st.Tools["c1"].Epoch != st.Epoch || st.Tools["c2"].Epoch != st.Epoch ||
		st.Commits > 2+1+1+st.Epoch {
		t.Errorf("%+v", st)
	}
}

// A session is being opened while the lease is lost: the new incarnation has it, too.
func TestOpenedWhileTheLeaseIsLost(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	l := newLine(t, w.server.URL())
	h := w.connect(func(c *harness.Config) { c.URL, c.TTL = l.url, 2*time.Second })
	before := must[*harness.Session](t)(h.Open(w.ctx, "before", harness.OpenOptions{}))
	l.deaf.Store(true)
	opened := make(chan *harness.Session, 1)
	go func() { opened <- must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{})) }()
	natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(before) })
	l.cut()
	l.deaf.Store(false)
	s := <-opened
	check(t, s.Regain(w.ctx))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
}

// The harness alone is cut off while the answer is given, so that no nudge reaches it: it looks when it is back. No
// ledger runs here, so nothing else can tell it.
func TestLostNudge(t *testing.T) {
	eachKind(t, func(t *testing.T, kind func(*harness.Config)) {
		w := newWorld(t)
		l := newLine(t, w.server.URL())
		h := w.connect(kind, func(c *harness.Config) { c.URL, c.TTL = l.url, time.Minute })
		s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
		w.awaiting("s", "p1")
		l.down.Store(true)
		l.cut()
		w.mustAnswer("s", "p1", "red")
		l.down.Store(false)
		if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
			t.Fatalf("%+v", a)
		}
	})
}

// The nudge is lost and nothing else happens: the work view tells.
func TestTheWorkViewIsTheCertainWay(t *testing.T) {
	eachKind(t, func(t *testing.T, kind func(*harness.Config)) {
		w := newWorld(t)
		h := w.connect(kind)
		s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
		w.awaiting("s", "p1")
		ev := events.New(w.bus.NewID(), events.PersonSource("ada"), ref("s"), 1, time.Now(),
			events.PromptRejected{Prompt: "p1", By: "ada"})
		if _, err := w.bus.Log.Append(w.ctx, ref("s"), events.WriterLedger, w.state("s").Seq,
			[]events.Event{ev}); err != nil {
			t.Fatal(err)
		}
		w.show("s")
		if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
			t.Fatalf("%+v", a)
		}
	})
}

// A nudge is lost and the next one is not: both commits are read.
func TestANudgeAfterALostOne(t *testing.T) {
	eachKind(t, func(t *testing.T, kind func(*harness.Config)) {
		w := newWorld(t)
		h := w.connect(kind)
		s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		first := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
		second := ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question()})
		w.awaiting("s", "p1")
		w.awaiting("s", "p2")
		ev := events.New(w.bus.NewID(), events.PersonSource("ada"), ref("s"), 1, time.Now(),
			events.PromptRejected{Prompt: "p1", By: "ada"})
		if _, err := w.bus.Log.Append(w.ctx, ref("s"), events.WriterLedger, w.state("s").Seq,
			[]events.Event{ev}); err != nil {
			t.Fatal(err)
		}
		w.append("s", events.WriterLedger, events.PromptRejected{Prompt: "p2", By: "ada"})
		for _, out := range []chan asked{first, second} {
			if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
				t.Fatalf("%+v", a)
			}
		}
	})
}

// A false nudge, about what is not there or another's, does no harm.
func TestFalseNudges(t *testing.T) {
	eachKind(t, func(t *testing.T, kind func(*harness.Config)) {
		w := newWorld(t)
		h := w.connect(kind)
		s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		other := must[*harness.Session](t)(h.Open(w.ctx, "other", harness.OpenOptions{}))
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
		w.awaiting("s", "p1")
		check(t, other.Append(w.ctx, events.TurnStarted{Turn: "o", Cause: events.CauseMessage}))
		// another session's commit
		w.bus.Hints.Nudge(ref("s"), other.State().Seq)
		// in the future
		w.bus.Hints.Nudge(ref("s"), 1_000_000)
		w.bus.Hints.Nudge(ref("none"), 1)
		ev := events.New(w.bus.NewID(), events.PersonSource("ada"), ref("s"), 1, time.Now(),
			events.SessionConfigured{ProviderChanged: true, By: "ada"})
		// without a nudge
		if _, err := w.bus.Log.Append(w.ctx, ref("s"), events.WriterLedger, w.state("s").Seq,
			[]events.Event{ev}); err != nil {
			t.Fatal(err)
		}
		w.mustAnswer("s", "p1", "red")
		if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
			t.Fatalf("%+v", a)
		}
		// but for the receipt
		if st, want := s.State(), w.state("s"); st.Turn.ID != "t1" || st.Commits < want.Commits-1 {
			t.Errorf("folded %d of %d commits", st.Commits, want.Commits)
		}
		natstest.Until(t, "the false hints to be forgotten", func() bool { return !harness.Reading(s) })
	})
}

// A nudge that arrives during the read of a false nudge is not merged into it: that read can have ended before the
// commit.
func TestANudgeDuringARead(t *testing.T) {
	w := newWorld(t)
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	check(t, harness.NudgeDuringFalseRead(s, 1_000_000, func() uint64 {
		ev := events.New(w.bus.NewID(), events.PersonSource("ada"), ref("s"), 1, time.Now(),
			events.PromptRejected{Prompt: "p1", By: "ada"})
		return must[uint64](t)(w.bus.Log.Append(w.ctx, ref("s"), events.WriterLedger, w.state("s").Seq,
			[]events.Event{ev}))
	}))
	if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
		t.Fatalf("%+v", a)
	}
	natstest.Until(t, "the false hint to be forgotten", func() bool { return !harness.Reading(s) })
}

// eachKind runs a test with a process that follows what is written of its sessions, and with a member of a pool, which
// reads when it is nudged.
func eachKind(t *testing.T, test func(*testing.T, func(*harness.Config))) {
	for name, kind := range map[string]func(*harness.Config){"follows": func(*harness.Config) {}, "reads": pool} {
		t.Run(name, func(t *testing.T) { test(t, kind) })
	}
}

// TestAnAnswerWithoutANudge: without a nudge and without a ledger a process that follows the log gets the answer.
func TestAnAnswerWithoutANudge(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	// the second after the broker was away
	for _, id := range []string{"p1", "p2"} {
		out := ask(w.ctx, turn, harness.Prompt{ID: id, Questions: question()})
		w.awaiting("s", id)
		w.whisper("s", events.PromptRejected{Prompt: id, By: "ada"})
		if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
			t.Fatalf("%+v", a)
		}
		w.server.Shutdown()
		w.back()
	}
}

// whisper appends a fact of a person without a nudge.
func (w *world) whisper(id string, fact events.Fact) uint64 {
	w.t.Helper()
	return w.whisperAs(id, events.WriterLedger, events.PersonSource("ada"), fact)
}

func (w *world) whisperAs(id string, by events.Writer, source string, fact events.Fact) uint64 {
	w.t.Helper()
	for {
		st := w.state(id)
		ev := events.New(w.bus.NewID(), source, ref(id), st.Epoch, time.Now(), fact)
		seq, err := w.bus.Log.Append(w.ctx, ref(id), by, st.Seq, []events.Event{ev})
		if err == nil {
			return seq
		}
		// a receipt came between
		if !errors.Is(err, bus.ErrLostRace) {
			w.t.Fatal(err)
		}
	}
}

// TestWhatComesWhileASessionIsTaken: a commit that arrives while a process takes the session is not lost, though the
// process could not fold it yet.
func TestWhatComesWhileASessionIsTaken(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	natstest.Until(t, "the log to be followed", func() bool { return harness.Following(h) })
	begin := harness.Hold(s)
	seq := w.whisper("s", events.PromptRejected{Prompt: "p1", By: "ada"})
	natstest.Until(t, "it to be heard of", func() bool { return harness.LogSeen(s) >= seq })
	select {
	case a := <-out:
		t.Fatalf("settled before the session was taken: %+v", a)
	default:
	}
	begin()
	if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
		t.Fatalf("%+v", a)
	}
}

// TestACommitWithoutAGuard: a foreign commit without a guard cannot be folded as it arrives; the session is read.
func TestACommitWithoutAGuard(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	nc := must[*nats.Conn](t)(nats.Connect(w.server.URL()))
	defer nc.Close()
	ev := events.New("e", events.PersonSource("ada"), ref("s"), 1, time.Now(),
		events.PromptRejected{Prompt: "p1", By: "ada"})
	body := must[[]byte](t)(events.EncodeBatch([]events.Event{ev}))
	_, err := nc.Request(w.bus.Cell().LogSubject(ref("s"), events.WriterLedger), body, patience)
	check(t, err)
	if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
		t.Fatalf("%+v", a)
	}
}

// TestWhatWasWrittenBeforeTheLogIsFollowed: a commit from before the log was followed, without a nudge, is read when it
// is.
func TestWhatWasWrittenBeforeTheLogIsFollowed(t *testing.T) {
	w := newWorld(t)
	// a pool follows nothing
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	seq := w.whisper("s", events.PromptRejected{Prompt: "p1", By: "ada"})
	harness.Live(h, seq+1)
	if a := got(t, out); a.err != nil || a.answer.Status != session.Rejected {
		t.Fatalf("%+v", a)
	}
}
