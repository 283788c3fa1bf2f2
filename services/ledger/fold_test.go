package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// recorder is a consumer that records what is delivered.
type recorder struct {
	want int
	got  []bus.Message
}

func (r *recorder) Takeover(context.Context) error { return nil }

func (r *recorder) Batch(_ context.Context, ms []bus.Message) (int, error) {
	r.got = append(r.got, ms...)
	if len(r.got) >= r.want {
		return len(ms), errFound
	}
	return len(ms), nil
}

// delivered returns the first n messages of the log as a consumer gets them.
func (w *world) delivered(n int) []bus.Message {
	w.t.Helper()
	r := &recorder{want: n}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- w.bus.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "recorder",
			BatchMax: 100},
			stopAt{r, cancel})
	}()
	<-ctx.Done()
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	if len(r.got) < n {
		w.t.Fatalf("delivered %d of %d", len(r.got), n)
	}
	return r.got[:n]
}

// stopAt ends the consumer when its recorder has enough.
type stopAt struct {
	*recorder
	stop func()
}

func (s stopAt) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	n, err := s.recorder.Batch(ctx, ms)
	if errors.Is(err, errFound) {
		s.stop()
	}
	return n, nil
}

func (w *world) folder() *folder { return newFolder(w.bus, Default(), zerolog.Nop()) }

func (w *world) load(key string) []byte {
	w.t.Helper()
	e, err := w.bus.KV.Load(w.t.Context(), kv.State, key)
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return e.Value
}

func (w *world) fold(f *folder, ms ...bus.Message) {
	w.t.Helper()
	if n, err := f.Batch(w.t.Context(), ms); err != nil || n != len(ms) {
		w.t.Fatalf("batch: %d of %d: %v", n, len(ms), err)
	}
}

// TestARestartFarFromTheBroker: after a restart every session of a batch was folded before, or lacks commits that were
// delivered to the process before, and its log is read. A reading takes several round trips, so sessions are read
// concurrently, and their notes stored concurrently.
func TestARestartFarFromTheBroker(t *testing.T) {
	const sessions, commits, roundTrip = 120, 3, 40 * time.Millisecond
	w := newWorld(t)
	for n := range sessions * commits {
		w.append(events.Ref{Harness: "h1", Session: fmt.Sprint("s", n%sessions)}, fact(n/sessions))
	}
	ms := w.delivered(sessions * commits)
	last := ms[len(ms)-sessions:]
	url := natstest.Far(t, w.server, roundTrip/2)
	far := natstest.Bus(t, w.server, func(c *bus.Config) { c.URL = url })
	for _, x := range []struct {
		what   string
		before []bus.Message // that are folded before the batch
	}{{"a gap", ms[:sessions]}, {"delivered again", ms}} {
		w.fold(w.folder(), x.before...)
		f := newFolder(far, Default(), zerolog.Nop())
		began := time.Now()
		w.fold(f, last...)
		if took := time.Since(began); took > sessions*roundTrip {
			t.Errorf("%s: a batch took %s", x.what, took)
		}
		for _, m := range ms[:sessions] {
			w.same(w.bus.Log.Decode(m).Ref)
		}
		if f.read.commits.Load() == 0 {
			t.Errorf("%s: no commit was read", x.what)
		}
	}
	f := newFolder(far, Default(), zerolog.Nop())
	ts, _ := f.group(last)
	for _, x := range ts {
		x.state, x.debt = session.New(x.ref), true
	}
	began := time.Now()
	if left, err := f.leaveFailed(t.Context(), ts); err != nil || len(left) != sessions {
		t.Errorf("%d sessions are left: %v", len(left), err)
	}
	if took := time.Since(began); took > sessions*roundTrip/2 {
		t.Errorf("notes took %s", took)
	}
	for _, x := range ts {
		if n := w.aside(x.ref); n == nil || n.Behind {
			t.Errorf("the note of %s: %+v", x.ref, n)
		}
	}
}

var blockerKey = events.BlockerKey(ref.Harness, ref.Session, ref.Session, "p1")

func TestRedeliveryWritesTheViewsThatMayBeOwed(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	ms := w.delivered(2)
	w.fold(w.folder(), ms...)
	doc, view := w.load(events.SessionKey(ref)), w.load(blockerKey)
	if view == nil {
		t.Fatal("no view")
	}
	e, err := w.bus.KV.Load(t.Context(), kv.State, blockerKey)
	if err != nil {
		t.Fatal(err)
	}
	// as if the first ledger had died before it
	if err := w.bus.KV.Delete(t.Context(), kv.State, blockerKey, e.Rev); err != nil {
		t.Fatal(err)
	}
	w.fold(w.folder(), ms...)
	if again := w.load(blockerKey); !bytes.Equal(again, view) {
		t.Errorf("the view was not written again: %s", again)
	}
	if !bytes.Equal(doc, w.load(events.SessionKey(ref))) {
		t.Error("folding again changed the document")
	}
}

func TestAPausedLedgerOverwritesNothing(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.TurnCompleted{Turn: "t1"})
	ms := w.delivered(3)
	old, young := w.folder(), w.folder()
	w.fold(old, ms[0])
	w.fold(young, ms...)
	doc := w.load(events.SessionKey(ref))
	if n, err := old.Batch(t.Context(), ms[1:2]); !errors.Is(err, bus.ErrLostRace) || n != 0 {
		t.Errorf("acked %d, %v", n, err)
	}
	if !bytes.Equal(doc, w.load(events.SessionKey(ref))) {
		t.Error("the document was overwritten")
	}
	// it has an empty cache, and nothing is left to do
	w.fold(old, ms[1:]...)
}

func TestAGapIsReadFromTheLog(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.ToolStarted{Call: "c2", Turn: "t1", Name: "bash"})
	ms := w.delivered(3)
	f := w.folder()
	w.fold(f, ms[0])
	w.fold(f, ms[2])
	st, err := session.Decode(w.load(events.SessionKey(ref)))
	if err != nil || st.Commits != 3 || st.Tools["c1"] == nil || st.Tools["c2"] == nil {
		t.Errorf("%v %+v", err, st)
	}
	// late
	w.fold(f, ms[1])
	if st, _ := session.Decode(w.load(events.SessionKey(ref))); st.Commits != 3 {
		t.Errorf("commits %d", st.Commits)
	}
}

// appendOdd appends an event as a foreign writer can.
func (w *world) appendOdd(r events.Ref, e events.Event) {
	w.t.Helper()
	seq, err := w.bus.Log.Append(w.t.Context(), r, events.WriterHarness, w.seq[r], []events.Event{e})
	if err != nil {
		w.t.Fatal(err)
	}
	w.seq[r] = seq
}

func TestStrangeFactsAreParkedAndEverythingElseGoesOn(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.appendOdd(ref, events.Event{ID: "x", Source: events.HarnessSource("h1", "1"), Kind: "tool.started", Subject: "c9",
		Session: "s1", Epoch: 1, Data: []byte(`{"call":9}`)})
	w.appendAs(ref, events.WriterHarness, events.HarnessSource("h1", "1"),
		events.ToolInterrupted{Call: "c1", Reason: "x"})
	w.appendOdd(ref, events.Event{ID: "y", Source: events.HarnessSource("h1", "1"), Kind: "tool.vanished",
		Subject: "c1", Session: "s1", Epoch: 1, Data: []byte(`{}`)})
	w.appendAs(ref, events.WriterHarness, events.HarnessSource("h2", "1"), events.ToolCompleted{Call: "c1"})
	w.append(ref, events.ToolStarted{Call: "c2", Turn: "t1", Name: "bash"})
	w.fold(w.folder(), w.delivered(7)...)
	st, err := session.Decode(w.load(events.SessionKey(ref)))
	if err != nil || st.Parked != 2 || st.UnknownFacts != 1 || st.Ignored.Count != 1 ||
		st.Ignored.Last.Why != "source" {
		t.Errorf("%v parked %d unknown %d ignored %+v", err, st.Parked, st.UnknownFacts, st.Ignored)
	}
	if st.Tools["c1"] == nil || st.Tools["c2"] == nil || st.Seq != w.seq[ref] {
		t.Errorf("tools %v", st.Tools)
	}
}

func TestRebuildMakesDocumentsAndViewsFromTheLogAlone(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	doc, view := w.load(events.SessionKey(ref)), w.load(blockerKey)
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.SessionKey(ref))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.bus.KV.Store(t.Context(), kv.State, e.Key,
		[]byte(strings.Replace(string(doc), "a session", "a lie", 1)), e.Rev); err != nil {
		t.Fatal(err)
	}
	stray := events.SessionKey(events.Ref{Harness: "h1", Session: "stray"})
	for _, key := range []string{stray, events.BlockerKey("h1", "s1", "s1", "stray")} {
		if _, err := w.bus.KV.Store(t.Context(), kv.State, key, doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	v, err := w.bus.KV.Load(t.Context(), kv.State, blockerKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bus.KV.Delete(t.Context(), kv.State, blockerKey, v.Rev); err != nil {
		t.Fatal(err)
	}
	if reply := w.rebuild(l, request.Rebuild{}); reply.Sessions != 1 || reply.Changed != 1 || reply.Removed != 1 ||
		len(reply.Failed) > 0 {
		t.Errorf("%+v", reply)
	}
	if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, doc) {
		t.Errorf("document: %s", got)
	}
	if got := w.load(blockerKey); !bytes.Equal(got, view) {
		t.Errorf("view: %s", got)
	}
	if w.load(stray) != nil || w.load(events.BlockerKey("h1", "s1", "s1", "stray")) != nil {
		t.Error("strays are still there")
	}
	if reply := w.rebuild(l, request.Rebuild{}); reply.Changed+reply.Removed+reply.Views != 0 {
		t.Errorf("a second rebuild changed something: %+v", reply)
	}
}

// rebuild runs a rebuild on a ledger that does not serve.
func (w *world) rebuild(l *Ledger, req request.Rebuild) (reply request.Rebuilt) {
	w.t.Helper()
	reply, err := l.rebuild(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply
}

func TestRetentionLeavesATombstoneThatStillGuards(t *testing.T) {
	w := newWorld(t)
	cfg := Default()
	cfg.ClosedKeptFor = time.Second
	cfg.RetainEvery = 100 * time.Millisecond
	w.during(cfg, func() {
		w.open(ref)
		w.document(ref, w.seq[ref])
		if r := w.ask("close", request.Close{Ref: ref, Reason: "finished", By: "ada"}, nil); r != nil {
			t.Fatal(r)
		}
		w.gone(events.SessionKey(ref))
	})
	left, err := w.bus.Log.Read(t.Context(), ref, 0)
	if err != nil || len(left) != 1 || left[0].Guard == 0 {
		t.Fatalf("%v: %d commits left", err, len(left))
	}
	evs := []events.Event{events.New("again", events.HarnessSource("h1", "2"), ref, 1, time.Unix(0, 0),
		events.SessionOpened{Incarnation: "2"})}
	if _, err := w.bus.Log.Append(t.Context(), ref, events.WriterHarness, 0, evs); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("the id was opened again: %v", err)
	}
	w.seq[ref] = left[0].Seq
	w.run(Default())
	w.appendAs(ref, events.WriterHarness, events.HarnessSource("h1", "2"), events.SessionOpened{Incarnation: "2"})
	if st := w.document(ref, w.seq[ref]); st.Phase != session.Closed || !st.Closed.Purged {
		t.Errorf("%s %+v", st.Phase, st.Closed)
	}
}

func TestANewerDocumentIsLeftAloneAndOthersGoOn(t *testing.T) {
	w := newWorld(t)
	newer := []byte(`{"v":2,"harness":"h1","session":"s1","turn":"a shape of the future"}`)
	if _, err := w.bus.KV.Store(t.Context(), kv.State, events.SessionKey(ref), newer, 0); err != nil {
		t.Fatal(err)
	}
	w.run(Default())
	w.open(ref)
	other := events.Ref{Harness: "h1", Session: "s2"}
	w.open(other)
	w.document(other, w.seq[other])
	if got := w.load(events.SessionKey(ref)); !bytes.Equal(got, newer) {
		t.Errorf("it was overwritten: %s", got)
	}
	// it serves by now
	if r := w.ask("list", struct{}{}, nil); r != nil {
		t.Fatal(r)
	}
	// its commits are parked for an operator
	for i, m := range stored(t, w.server.URL(), w.bus.Cell().ParkedStream()) {
		if i >= 2 || !strings.Contains(m.Subject, parkNewer) {
			t.Errorf("parked %s %v", m.Subject, m.Header)
		}
	}
	if msgs, _ := w.parkedUsage(); msgs != 2 {
		t.Errorf("%d of its 2 commits are parked", msgs)
	}
	err := w.bus.Services.Request(t.Context(), Name, "answer", answer("a"), nil)
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != 503 || !strings.Contains(r.Message, "upgrade") {
		t.Errorf("an answer there: %v", err)
	}
}

func TestWhatIsNoDocumentIsReplacedByTheLogsOwn(t *testing.T) {
	w := newWorld(t)
	if _, err := w.bus.KV.Store(t.Context(), kv.State, events.SessionKey(ref), []byte(`garbage`), 0); err != nil {
		t.Fatal(err)
	}
	w.open(ref)
	w.fold(w.folder(), w.delivered(2)[1:]...)
	if st, err := session.Decode(w.load(events.SessionKey(ref))); err != nil || st.Commits != 2 ||
		st.Title != "a session" {
		t.Errorf("%v %+v", err, st)
	}
}
