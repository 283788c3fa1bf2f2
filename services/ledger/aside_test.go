package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// operator is a plain NATS client with all rights.
func (w *world) operator() nats.JetStreamContext {
	w.t.Helper()
	nc, err := nats.Connect(w.server.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	js, err := nc.JetStream()
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}

// folded returns the document that the fold of the log gives.
func (w *world) folded(r events.Ref) []byte {
	w.t.Helper()
	commits, err := w.bus.Log.Read(w.t.Context(), r, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	st := session.New(r)
	for i := range commits {
		st.Fold(&commits[i])
	}
	doc, err := st.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return doc
}

// same waits until a session's document equals the fold of its log.
func (w *world) same(r events.Ref) {
	w.t.Helper()
	want := w.folded(r)
	natstest.Until(w.t, "the document of "+r.String()+" to be what the log says", func() bool {
		return bytes.Equal(w.load(events.SessionKey(r)), want)
	})
}

// aside returns the note of a session that was set aside; nil for none.
func (w *world) aside(r events.Ref) *Aside {
	w.t.Helper()
	var note Aside
	body := w.load(events.AsideKey(r))
	if body == nil {
		return nil
	}
	if err := json.Unmarshal(body, &note); err != nil {
		w.t.Fatal(err)
	}
	return &note
}

var at0 = time.Unix(0, 0)

var other = events.Ref{Harness: "h1", Session: "other"}

// back waits until no session is set aside, by a ledger that has set aside and taken back this many.
func (w *world) back(l *Ledger, sessions uint64) {
	w.t.Helper()
	natstest.Until(w.t, "what was set aside to be back", func() bool {
		n := l.Counts()
		return n["set_aside_back"] >= sessions
	})
	if n := l.Counts(); n["set_aside_back"] != sessions || w.aside(ref) != nil {
		w.t.Errorf("counted %v, note %+v", n, w.aside(ref))
	}
}

// answered answers the question of a session, without a delivery.
func (w *world) answered(r events.Ref) uint64 {
	w.t.Helper()
	return w.appendAs(r, events.WriterLedger, events.PersonSource("ada"),
		events.PromptAnswered{Prompt: "p1", By: "ada",
			Answers: []events.Answer{{Question: "q", Selected: []string{"a"}}}})
}

// TestAWrongDocumentStopsOnlyItsSession: a document with a wrong place in the log cannot be rendered. Its session is
// set aside, the others of the batch are folded, and it comes back automatically: its document is rebuilt from the log.
func TestAWrongDocumentStopsOnlyItsSession(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	at := w.answered(ref)
	w.appendAs(ref, events.WriterLedger, events.PersonSource("ada"),
		events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson})
	w.open(other)
	ms := w.delivered(6)
	w.fold(w.folder(), ms[:3]...)
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.SessionKey(ref))
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(e.Value, fmt.Appendf(nil, `"settled_seq":%d`, at), []byte(`"settled_seq":99999`), 1)
	if bytes.Equal(wrong, e.Value) {
		t.Fatalf("nothing to replace in %s", e.Value)
	}
	if _, err := w.bus.KV.Store(t.Context(), kv.State, e.Key, wrong, e.Rev); err != nil {
		t.Fatal(err)
	}
	f := w.folder()
	w.fold(f, ms[3:]...)
	if n := w.aside(ref); n == nil || !n.Behind || w.aside(other) != nil {
		t.Errorf("set aside: %+v, %+v", n, w.aside(other))
	}
	w.same(other)
	w.apart(f)
	w.same(ref)
	natstest.Until(t, "it to be back", func() bool { return w.aside(ref) == nil })
}

// apart runs a folder's work on set-aside sessions until the test ends.
func (w *world) apart(f *folder) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.workApart(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// TestARemovedMessageDelaysNoOtherSession: a commit that the harness's view needs was removed from the log. The
// other sessions continue, and so does the session's document.
func TestARemovedMessageDelaysNoOtherSession(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	at := w.answered(ref)
	w.appendAs(ref, events.WriterLedger, events.PersonSource("ada"),
		events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson})
	w.open(other)
	w.fold(w.folder(), w.delivered(6)...)
	if err := w.operator().DeleteMsg(w.bus.Cell().LogStream(), at); err != nil {
		t.Fatal(err)
	}
	w.run(Default())
	w.append(other, events.TurnCompleted{Turn: "t1"})
	w.same(other)
	end := w.append(ref, events.TurnStopped{Turn: "t1", Actor: events.ActorPerson})
	if st := w.document(ref, end); st.Seq != end {
		t.Errorf("document at %d", st.Seq)
	}
}

// stateMax limits the size of an entry of the state bucket; -1: no limit.
func (w *world) stateMax(most int32) { w.streamMax("KV_"+w.bus.Cell().StateBucket(), most) }

func (w *world) streamMax(name string, most int32) {
	w.t.Helper()
	js := w.operator()
	info, err := js.StreamInfo(name)
	if err != nil {
		w.t.Fatal(err)
	}
	info.Config.MaxMsgSize = most
	if _, err := js.UpdateStream(&info.Config); err != nil {
		w.t.Fatal(err)
	}
}

// tooLarge makes a document too large for a limit of 3,000 bytes.
func (w *world) tooLarge(r events.Ref) {
	w.t.Helper()
	for i := range 40 {
		w.append(r, events.ToolStarted{Call: fmt.Sprint("call", i), Turn: "t1", Name: strings.Repeat("n", 90),
			Title: strings.Repeat("t", 150)})
	}
}

// TestSetAsideUntilTheCauseIsGone: a session whose document the broker refuses is set aside and reported; the others
// continue; the next active ledger knows of it; without the cause it comes back, with every fact in its document and in
// the feed.
func TestSetAsideUntilTheCauseIsGone(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.open(other)
	w.stateMax(3_000)
	w.during(Default(), func() {
		w.document(ref, w.seq[ref])
		w.tooLarge(ref)
		natstest.Until(t, "the session to be set aside", func() bool { return w.aside(ref) != nil })
		w.append(other, events.TurnCompleted{Turn: "t1"})
		w.same(other)
		natstest.Until(t, "it to be tried again", func() bool { n := w.aside(ref); return n != nil && n.Failures > 0 })
	})
	if n := w.aside(ref); n == nil || !n.Behind || n.Reason == "" || n.Since.IsZero() || n.From > n.To {
		t.Fatalf("note %+v", n)
	}
	l := w.run(Default())
	w.append(ref, events.ToolCompleted{Call: "call0"})
	w.append(other, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	w.same(other)
	w.stateMax(-1)
	w.same(ref)
	w.back(l, 1)
	fed := map[string]bool{}
	sub, err := w.operator().SubscribeSync(w.bus.Cell().FeedSubject("tool.started"), nats.DeliverAll())
	if err != nil {
		t.Fatal(err)
	}
	// two sessions are opened with a call each
	for len(fed) < 42 {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatalf("%d calls fed: %v", len(fed), err)
		}
		fed[m.Header.Get("Hf-Session")+events.DecodeEvent(m.Data).Subject] = true
	}
	w.append(ref, events.ToolCompleted{Call: "call1"})
	w.same(ref)
}

// TestAnInactiveLedgerLeavesWhatIsSetAside: a process that is no longer the active one does not try sessions that it
// has set aside, and does not store their notes again.
func TestAnInactiveLedgerLeavesWhatIsSetAside(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.stateMax(3_000)
	w.tooLarge(ref)
	before, now := w.folder(), w.folder()
	w.fold(before, w.delivered(int(w.seq[ref]))...)
	if w.aside(ref) == nil {
		t.Fatal("nothing was set aside")
	}
	before.LeadershipLost()
	w.stateMax(-1)
	if err := now.Takeover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.apart(now)
	w.same(ref)
	natstest.Until(t, "it to be back", func() bool { return w.aside(ref) == nil })
	before.tryApart(t.Context(), ref)
	if n := w.aside(ref); n != nil || before.count.back.Load() > 0 {
		t.Errorf("an inactive ledger tried the session, and noted %+v", n)
	}
}

// TestViewsOwedToABusySession: the views of a session that was set aside are written, although the session is folded
// with the others meanwhile, and each attempt to write them apart loses its race against a newer document.
func TestViewsOwedToABusySession(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	for i := range showAttempts {
		w.append(ref, events.ToolStarted{Call: fmt.Sprint("busy", i), Turn: "t1", Name: "bash"})
	}
	f, opened := w.folder(), 2
	ms := w.delivered(opened + showAttempts)
	w.fold(f, ms[:opened]...)
	view := w.load(blockerKey)
	e, err := w.bus.KV.Load(t.Context(), kv.State, blockerKey)
	if err != nil || len(view) == 0 {
		t.Fatal(err)
	}
	if err := w.bus.KV.Delete(t.Context(), kv.State, blockerKey, e.Rev); err != nil {
		t.Fatal(err)
	}
	attempts := 0
	err = f.apart.show(ref, &owedViews{}, func() error {
		c := catcher{f: f, note: Aside{Ref: ref}}
		if c.st, c.rev, err = loadDoc(t.Context(), w.bus.KV, ref); err != nil {
			t.Fatal(err)
		}
		w.fold(f, ms[opened+attempts])
		attempts++
		err := c.storeWith(t.Context(), nil)
		if !errors.Is(err, bus.ErrLostRace) {
			t.Fatalf("attempt %d lost no race: %v", attempts, err)
		}
		return err
	})
	if err != nil || attempts != 1 || f.apart.owes(ref) != nil {
		t.Errorf("%v after %d attempts, owed %v", err, attempts, f.apart.owes(ref))
	}
	if again := w.load(blockerKey); !bytes.Equal(again, view) {
		t.Errorf("the view was not written: %s", again)
	}
}

// TestViewsOwedBesideAnotherLedger: if each race is lost against another process, the attempts end with that error.
func TestViewsOwedBesideAnotherLedger(t *testing.T) {
	a, attempts := newApart(), 0
	err := a.show(ref, &owedViews{}, func() error { attempts++; return bus.ErrLostRace })
	if !errors.Is(err, bus.ErrLostRace) || attempts != showAttempts || a.owes(ref) != nil {
		t.Errorf("%v after %d attempts, owed %v", err, attempts, a.owes(ref))
	}
	if err = a.show(ref, &owedViews{}, func() error { return errLong }); !errors.Is(err, errLong) {
		t.Error(err)
	}
}

// TestAFeedThatRefuses: a session whose facts the feed refuses is set aside; without the cause they are fed.
func TestAFeedThatRefuses(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.streamMax(w.bus.Cell().FeedStream(), 500)
	w.append(ref, events.ToolStarted{Call: "large", Turn: "t1", Name: "bash", Title: strings.Repeat("x", 1_000)})
	f := w.folder()
	w.fold(f, w.delivered(3)...)
	if n := w.aside(ref); n == nil || n.Reason == "" {
		t.Fatalf("note %+v", n)
	}
	w.streamMax(w.bus.Cell().FeedStream(), -1)
	w.apart(f)
	natstest.Until(t, "the fact to be fed", func() bool {
		for _, m := range stored(t, w.server.URL(), w.bus.Cell().FeedStream()) {
			if strings.Contains(string(m.Data), `"large"`) {
				return true
			}
		}
		return false
	})
	natstest.Until(t, "it to be back", func() bool { return w.aside(ref) == nil })
}

// TestOneBatchWithSeveralFailingSessions: the broker refuses a document or a fact of some sessions of one batch, with
// an error that names no session. Only these sessions are set aside. The others are folded in the same batch.
func TestOneBatchWithSeveralFailingSessions(t *testing.T) {
	w := newWorld(t)
	large, fed := events.Ref{Harness: "h1", Session: "large"}, events.Ref{Harness: "h1", Session: "fed"}
	good := []events.Ref{{Harness: "h1", Session: "a"}, {Harness: "h1", Session: "b"}, {Harness: "h1", Session: "c"}}
	for _, r := range []events.Ref{good[0], large, good[1], fed, good[2]} {
		w.open(r)
	}
	for _, r := range good {
		w.append(r, events.ToolStarted{Call: "next", Turn: "t1", Name: "bash"})
	}
	w.tooLarge(large)
	w.append(fed, events.ToolStarted{Call: "next", Turn: "t1", Name: "bash", Title: strings.Repeat("x", 1_000)})
	ms, f := w.delivered(10+3+40+1), w.folder()
	w.fold(f, ms[:10]...)
	w.stateMax(3_000)
	w.streamMax(w.bus.Cell().FeedStream(), 1_000)
	w.fold(f, ms[10:]...)
	for _, r := range []events.Ref{large, fed} {
		if n := w.aside(r); n == nil || !n.Behind || !strings.Contains(n.Reason, "maximum") {
			t.Errorf("%s failed, and its note is %+v", r, n)
		}
	}
	for _, r := range good {
		if n := w.aside(r); n != nil {
			t.Errorf("%s did not fail, and was set aside: %+v", r, n)
		}
		if got := w.load(events.SessionKey(r)); !bytes.Equal(got, w.folded(r)) {
			t.Errorf("%s was not folded: %s", r, got)
		}
	}
	if n := f.count.aside.Load(); n != 2 {
		t.Errorf("%d sessions were set aside, want 2", n)
	}
	started := map[string]int{}
	for _, m := range stored(t, w.server.URL(), w.bus.Cell().FeedStream()) {
		if e := events.DecodeEvent(m.Data); e.Subject == "next" {
			started[m.Header.Get("Hf-Session")]++
		}
	}
	if want := map[string]int{"a": 1, "b": 1, "c": 1}; !maps.Equal(started, want) {
		t.Errorf("the feed has these calls: %v, want %v", started, want)
	}
}

// TestAllFail: if no session can be folded, none is set aside: the fault is the broker's, and all commits are delivered
// again.
func TestAllFail(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	ms := w.delivered(2)
	f := w.folder()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := f.Batch(ctx, ms); n != 0 || err == nil {
		t.Errorf("%d done, %v", n, err)
	}
	for _, err := range []error{bus.ErrUnreachable, bus.ErrFull, bus.ErrForbidden} {
		if !general(t.Context(), fmt.Errorf("ledger: %w", err)) {
			t.Errorf("%v is taken for one session's trouble", err)
		}
	}
	if general(t.Context(), errors.New("bad request")) {
		t.Error("what one session does is taken for everybody's trouble")
	}
	if len(f.apart.of) > 0 {
		t.Errorf("set aside: %v", f.apart.of)
	}
}

// long makes a session of this many commits, and returns the last one as delivered.
func (w *world) long(r events.Ref, commits int) uint64 {
	w.t.Helper()
	w.append(r, events.SessionOpened{Incarnation: "1"}, events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
	var under []bus.Pending
	last := w.seq[r]
	for range commits - 1 {
		evs := []events.Event{events.New(w.bus.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, at0,
			events.UsageReported{Turn: "t", Model: "m"})}
		under, last = append(under, w.bus.Log.AppendAsync(w.t.Context(), r, events.WriterHarness, last, evs)), last+1
	}
	for _, p := range under {
		if _, err := p.Wait(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	w.seq[r] = last
	return last
}

// TestALongSessionIsReadApart: a redelivered commit of a long session, or one behind a long gap, does not make the
// other sessions wait while the whole session is read: it is read apart, and everything is fed.
func TestALongSessionIsReadApart(t *testing.T) {
	w := newWorld(t)
	last := w.long(ref, inlineReadMax+500)
	end := bus.Message{Subject: w.bus.Cell().LogSubject(ref, events.WriterHarness), Seq: last, At: at0}
	c, err := w.bus.Log.Commit(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	if end.Body, err = events.EncodeBatch(c.Events); err != nil {
		t.Fatal(err)
	}
	end.Header = map[string][]string{"Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(c.Guard)},
		"Nats-Expected-Last-Subject-Sequence-Subject": {w.bus.Cell().LogGuard(ref)}}
	f := w.folder()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	work := func() { done <- f.workApart(ctx) }
	for _, step := range []struct {
		what   string
		behind bool
	}{{"a gap", true}, {"delivered again", false}} {
		f.cache.clear()
		f.apart.clear()
		w.fold(f, end)
		n := w.aside(ref)
		if n == nil || n.Behind != step.behind || f.read.commits.Load() > inlineReadMax {
			t.Errorf("%s: note %+v, %d commits read", step.what, n, f.read.commits.Load())
		}
		if step.behind {
			go work()
		}
		w.same(ref)
		natstest.Until(t, step.what+": the note to go", func() bool { return w.aside(ref) == nil })
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	info, err := w.operator().StreamInfo(w.bus.Cell().FeedStream())
	if err != nil || info.State.Msgs < inlineReadMax {
		t.Errorf("%d facts fed, %v", info.State.Msgs, err)
	}
}

// TestALongDocumentAheadIsMendedApart: a document that is ahead of the log is rebuilt from the whole log of its
// session. A long session is set aside for that.
func TestALongDocumentAheadIsMendedApart(t *testing.T) {
	f := &folder{mend: func(context.Context, events.Ref) (*loss, error) {
		t.Error("the whole log is read within a batch")
		return nil, errLong
	}}
	ts := []*touched{{ref: ref, ahead: true, state: session.New(ref)}}
	ts[0].state.Commits = inlineReadMax + 1
	if err := f.mendAhead(t.Context(), ts); err != nil || !errors.Is(ts[0].err, errLong) {
		t.Errorf("%v, %v", err, ts[0].err)
	}
}

// TestADocumentAheadThatCannotBeMended: it concerns its session only, unless the broker is the reason. Its cached state
// is dropped before.
func TestADocumentAheadThatCannotBeMended(t *testing.T) {
	odd := errors.New("odd")
	for _, c := range []struct{ why, all, one error }{{odd, nil, odd},
		{bus.ErrUnreachable, bus.ErrUnreachable, nil}} {
		mended := 0
		f := &folder{cache: newCache(10)}
		f.mend = func(_ context.Context, r events.Ref) (*loss, error) {
			if mended++; f.cache.copy(r) != nil {
				t.Error("the state of a document that is ahead is cached")
			}
			return nil, c.why
		}
		f.cache.put(ref, cached{state: session.New(ref), bytes: 1})
		ts := []*touched{{ref: ref, ahead: true, state: session.New(ref)},
			{ref: other, ahead: true, state: session.New(other)}}
		err := f.mendAhead(t.Context(), ts)
		if !errors.Is(err, c.all) || !errors.Is(ts[0].err, c.one) || c.all == nil && mended != len(ts) {
			t.Errorf("%v: %v, of the session %v; %d mended", c.why, err, ts[0].err, mended)
		}
	}
}

// TestARequestReadsAPartOfALongLog: a request does not read a session whose document is far behind its log.
func TestARequestReadsAPartOfALongLog(t *testing.T) {
	w := newWorld(t)
	w.long(ref, currentReadMax+1)
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = l.current(t.Context(), ref, true)
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != http.StatusServiceUnavailable {
		t.Errorf("%d commits were read: %v", currentReadMax+1, err)
	}
}

// copiesMin is how many copies a test takes, one in each poll, so that the reading has begun before the last one.
const copiesMin = 20

// TestReadingHoldsUpNoRequest: while the log is read for one session, the state of another can be copied.
func TestReadingHoldsUpNoRequest(t *testing.T) {
	for name, reached := range map[string]uint64{"a gap": 0, "delivered again": 9} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open(ref)
			ms := w.delivered(2)
			f := newFolder(w.bus, Default(), zerolog.Nop())
			w.fold(f, ms...)
			w.server.Shutdown()
			ctx, cancel := context.WithCancel(t.Context())
			folded := make(chan error, 1)
			st := session.New(other)
			st.Seq = reached
			long := &touched{ref: other, state: st,
				commits: []events.Commit{{Ref: other, Seq: 9, Guard: 8, Guarded: true}}}
			go func() { folded <- f.foldAll(ctx, []*touched{long}) }()
			copies := make(chan *session.State)
			go func() {
				for ctx.Err() == nil {
					select {
					case copies <- f.cache.copy(ref):
					case <-ctx.Done():
					}
				}
			}()
			seen := 0
			natstest.Until(t, "copies of a state", func() bool {
				select {
				case st := <-copies:
					if st != nil {
						seen++
					}
				case err := <-folded:
					t.Fatalf("nothing was read: %v", err)
				default:
				}
				return seen >= copiesMin
			})
			cancel()
			if err := <-folded; err == nil {
				t.Error("folded without a broker")
			}
		})
	}
}

// TestPeopleWinAgainstAHarnessWithoutPause: a person's request succeeds although processes of a harness append without
// a pause.
func TestPeopleWinAgainstAHarnessWithoutPause(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.run(Default())
	w.document(ref, w.seq[ref])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, busyWriters)
	for range busyWriters {
		nc, err := nats.Connect(w.server.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		go func() { done <- busy(ctx, nc, w.bus.Cell(), ref) }()
	}
	refused := 0
	for i := range 20 {
		on := i%2 == 0
		err := w.bus.Services.Request(t.Context(), Name, "configure",
			request.Configure{Ref: ref, By: "ada", Policy: &events.PolicyPatch{AutoRetry: events.Set(on)}}, nil)
		if err != nil {
			refused++
			t.Log(err)
		}
	}
	cancel()
	for range busyWriters {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if refused > 0 {
		t.Errorf("%d of 20 people's requests were refused", refused)
	}
}

// busyWriters append to the session at the same time.
const busyWriters = 6

// busy appends to a session until ctx ends, as soon as the last commit is known.
func busy(ctx context.Context, nc *nats.Conn, c events.Cell, r events.Ref) error {
	for i := 0; ctx.Err() == nil; i++ {
		body, err := events.EncodeBatch([]events.Event{events.New(fmt.Sprint("busy", i),
			events.HarnessSource(r.Harness, "1"), r, 1, at0, events.UsageReported{Turn: "t1", Model: "m"})})
		if err != nil {
			return err
		}
		m, err := nc.Request("$JS.API.STREAM.MSG.GET."+c.LogStream(),
			fmt.Appendf(nil, `{"last_by_subj":%q}`, c.LogGuard(r)), patience)
		if err != nil {
			return err
		}
		var last struct {
			Message struct {
				Seq uint64 `json:"seq"`
			} `json:"message"`
		}
		if err := json.Unmarshal(m.Data, &last); err != nil {
			return err
		}
		guard := last.Message.Seq
		for ctx.Err() == nil {
			msg := &nats.Msg{Subject: c.LogSubject(r, events.WriterHarness), Data: body, Header: nats.Header{
				"Nats-Expected-Last-Subject-Sequence":         {fmt.Sprint(guard)},
				"Nats-Expected-Last-Subject-Sequence-Subject": {c.LogGuard(r)}}}
			if m, err = nc.RequestMsg(msg, patience); err != nil {
				return err
			}
			var ack nats.PubAck
			if json.Unmarshal(m.Data, &ack) != nil || ack.Sequence == 0 {
				break
			}
			guard = ack.Sequence
		}
	}
	return nil
}

// TestAskingAboutLongAgoIsBounded: an answer to a prompt that the session no longer lists reads the whole log, so only
// a few run at the same time, and a few wait for them. The others get 503 at once and may ask again: they take no place
// from other requests. An admitted one gets the prompt's state.
func TestAskingAboutLongAgoIsBounded(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.TurnCompleted{Turn: "t1"})
	w.append(ref, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	for i := range 60 {
		call := fmt.Sprint("call", i)
		w.append(ref, events.ToolStarted{Call: call, Turn: "t2", Name: "n"}, events.ToolCompleted{Call: call})
	}
	l := w.run(Default())
	if st := w.document(ref, w.seq[ref]); st.Prompts["p1"] != nil {
		t.Fatal("the session still knows the prompt")
	}
	ask := func(ctx context.Context) *events.Refusal {
		_, err := l.execute(ctx, whom{ref: ref, by: "ada", prompt: "p1"},
			func(st *session.State, src session.Source, _ time.Time) (session.Decision, error) {
				return st.Dismiss(request.Dismiss{Ref: ref, Prompt: "p1", By: "ada"}, src)
			})
		refusal, _ := errors.AsType[*events.Refusal](err)
		return refusal
	}
	if r := ask(t.Context()); r == nil || r.Code != 410 {
		t.Errorf("an answer after it was closed: %v", r)
	}
	_, err := l.execute(t.Context(), whom{ref: ref, by: "ada", prompt: "p0"},
		func(st *session.State, src session.Source, _ time.Time) (session.Decision, error) {
			return st.Dismiss(request.Dismiss{Ref: ref, Prompt: "p0", By: "ada"}, src)
		})
	if r, _ := errors.AsType[*events.Refusal](err); r == nil || r.Code != 404 {
		t.Errorf("an answer to what was never asked: %v", err)
	}
	leave := occupy(t, l.wholeReads, wholeReadsMax)
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := make(chan *events.Refusal, wholeReadsWaitMax)
	for range wholeReadsWaitMax {
		go func() { refused <- ask(waiting) }()
	}
	natstest.Until(t, "the others to wait", func() bool { return l.wholeReads.waiters() == wholeReadsWaitMax })
	if r := ask(t.Context()); r == nil || r.Code != 503 || l.wholeReads.waiters() != wholeReadsWaitMax {
		t.Errorf("while many wait: %v", r)
	}
	cancel()
	for range wholeReadsWaitMax {
		if r := <-refused; r == nil || r.Code != 503 {
			t.Errorf("where no place is free: %v", r)
		}
	}
	leave()
	if r := ask(t.Context()); r == nil || r.Code != 410 {
		t.Errorf("when the others have left: %v", r)
	}
}

// TestHarnessesTakeTurnsApart: sessions of one harness, however many are set aside, take no turn of another harness's,
// and never all places.
func TestHarnessesTakeTurnsApart(t *testing.T) {
	a, now := newApart(), at0
	names := []string{"many", "also-many", "one"}
	for i := range 200 {
		for _, h := range names[:2] {
			a.of[events.Ref{Harness: h, Session: fmt.Sprint(i)}] = &waiting{}
		}
	}
	a.of[events.Ref{Harness: "one", Session: "s"}] = &waiting{}
	due := func() []events.Ref {
		next := time.Hour
		return a.due(now, &next)
	}
	for round := range 20 {
		of := map[string]int{}
		started := due()
		for _, r := range started {
			of[r.Harness]++
		}
		if len(started) != asideAtOnceMax || of["one"] != 1 || of["many"] != 1 || len(due()) != 0 {
			t.Fatalf("round %d: %v were tried", round, started)
		}
		for _, r := range started {
			a.leave(r.Harness)
			if w := a.of[r]; r.Harness == "one" {
				w.busy = false
			} else {
				delete(a.of, r)
			}
		}
	}
	clear(a.of)
	for i := range asideAtOnceMax {
		a.of[events.Ref{Harness: "many", Session: fmt.Sprint(i)}] = &waiting{}
	}
	if n := len(due()); n != asideOfOneMax {
		t.Errorf("%d of %d places for one harness", n, asideAtOnceMax)
	}
	a.of[events.Ref{Harness: "one", Session: "s"}] = &waiting{}
	if got := due(); len(got) != 1 || got[0].Harness != "one" {
		t.Errorf("beside a harness with many sessions: %v", got)
	}
}

// TestWhatIsRememberedOfSessionsApartIsBounded: harnesses and sessions without number leave no more in memory than the
// limits, and everything that comes later is remembered.
func TestWhatIsRememberedOfSessionsApartIsBounded(t *testing.T) {
	a, next := newApart(), time.Hour
	for i := range servedMax + 1 {
		r := events.Ref{Harness: fmt.Sprint("h", i), Session: "s"}
		a.of[r] = &waiting{}
		if due := a.due(at0, &next); len(due) != 1 || due[0] != r {
			t.Fatalf("due are %v, want %s", due, r)
		}
		a.leave(r.Harness)
		delete(a.of, r)
		if n := len(a.served); n > servedMax || a.served[r.Harness] == 0 {
			t.Fatalf("the turns of %d harnesses, that of %s is %d", n, r.Harness, a.served[r.Harness])
		}
	}
	for i := range pastMax + 1 {
		r := events.Ref{Harness: "h1", Session: fmt.Sprint("s", i)}
		a.passed(r, 7)
		if n := len(a.past); n > pastMax || a.past[r] != 7 {
			t.Fatalf("the places of %d sessions, that of %s is %d", n, r, a.past[r])
		}
	}
}

// TestThePromptsOfASessionApartAreBounded: of the prompts that end in a session that is folded apart, as many are kept
// as the limit, and the prompts of the commit that reaches it.
func TestThePromptsOfASessionApartAreBounded(t *testing.T) {
	w := newWorld(t)
	c := &catcher{f: w.folder(), note: Aside{Ref: ref}, st: session.New(ref)}
	for seq := uint64(1); seq <= 2; seq++ {
		c.ended = make([]string, asideEndedMax-2+int(seq))
		prompt := fmt.Sprint("p", seq)
		m := events.Commit{Ref: ref, Seq: seq, Writer: events.WriterHarness, At: at0, Events: []events.Event{
			events.New("ask", events.HarnessSource("h1", "1"), ref, 1, at0, events.PromptRequested{Prompt: prompt,
				PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback}),
			events.New("end", events.HarnessSource("h1", "1"), ref, 1, at0,
				events.PromptWithdrawn{Prompt: prompt})}}
		if seq == 1 {
			m.Events = slices.Insert(m.Events, 0, events.New("open", events.HarnessSource("h1", "1"), ref, 1, at0,
				events.SessionOpened{Incarnation: "1"}))
		}
		if err := c.apply(t.Context(), &m, true); err != nil {
			t.Fatal(err)
		}
		if n := len(c.ended); n != asideEndedMax || len(c.feed) != int(seq) {
			t.Errorf("%d prompts are kept, want %d, of %d commits", n, asideEndedMax, len(c.feed))
		}
	}
}

// TestABusySessionLeavesItsPlace: commits of a session arrive while it is folded apart, again and again. Its attempt
// ends, so that other sessions get its place, and it is tried again without a failure.
func TestABusySessionLeavesItsPlace(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	f := w.folder()
	if err := f.owe(t.Context(), Aside{Ref: ref, Behind: true, From: 1, To: 2, Reason: "odd"}); err != nil {
		t.Fatal(err)
	}
	passes := 0
	err := f.passes(t.Context(), ref, func(c *catcher) error {
		if passes++; passes > 2*asidePassesMax {
			return errLong
		}
		f.apart.of[ref].last++
		c.note.Failures = 1
		err := c.run(t.Context())
		if passes == 1 {
			w.forge(ref, func(st *session.State) { st.Title = "marked" })
		}
		return err
	})
	if !errors.Is(err, errBusy) || passes != asidePassesMax {
		t.Fatalf("%v after %d passes", err, passes)
	}
	f.apart.of[ref].note.Failures = 2
	f.retry(t.Context(), ref, err)
	x := f.apart.of[ref]
	if x.busy || x.note.Failures > 0 || !strings.Contains(x.note.Reason, errBusy.Error()) || x.next.IsZero() {
		t.Errorf("after an attempt: %+v", x)
	}
	if st := w.document(ref, w.seq[ref]); st.Title != "marked" {
		t.Error("each pass reads the session from its first commit")
	}
	x.next = time.Time{}
	w.apart(f)
	natstest.Until(t, "it to be back", func() bool { return w.aside(ref) == nil })
}

// TestANoteThatWasRemovedStaysRemoved: an attempt fails in a process after another one has removed the note.
func TestANoteThatWasRemovedStaysRemoved(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.stateMax(3_000)
	w.tooLarge(ref)
	f := w.folder()
	w.fold(f, w.delivered(int(w.seq[ref]))...)
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.AsideKey(ref))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bus.KV.Delete(t.Context(), kv.State, e.Key, e.Rev); err != nil {
		t.Fatal(err)
	}
	f.tryApart(t.Context(), ref)
	if n := w.aside(ref); n != nil || f.apart.of[ref].note.Failures != 1 {
		t.Errorf("the note is there again: %+v", n)
	}
}

// TestANoteThatNoProcessKnows: the active process finds a note that another process has stored after the take-over, or
// whose deletion failed. It folds the session apart, and removes the note.
func TestANoteThatNoProcessKnows(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	f := w.folder()
	if err := f.Takeover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fold(f, w.delivered(2)...)
	if err := w.folder().owe(t.Context(), Aside{Ref: ref, Behind: true, From: 1, To: 2, Reason: "odd"}); err != nil {
		t.Fatal(err)
	}
	found, err := f.findNotes(t.Context(), nil)
	if err != nil || found[ref] == 0 || f.apart.of[ref] != nil {
		t.Fatalf("found at first %v, %v, and worked on: %v", found, err, f.apart.of[ref])
	}
	f.active.Store(false)
	if _, err = f.findNotes(t.Context(), found); err != nil || f.apart.of[ref] != nil {
		t.Fatalf("an inactive process works on it: %v", err)
	}
	f.active.Store(true)
	f.readNotesEvery = time.Millisecond
	w.apart(f)
	natstest.Until(t, "the note to be removed", func() bool { return w.aside(ref) == nil })
	w.same(ref)
}

// TestANoteThatCannotBeRead: the commits that it was about are acknowledged, and may be in no document. The session is
// folded and fed from its first commit.
func TestANoteThatCannotBeRead(t *testing.T) {
	for _, body := range []string{"{", "null", `{"harness":"h1","session":"other","behind":true}`} {
		w := newWorld(t)
		w.open(ref)
		// a rebuild feeds nothing
		w.settle(Default())
		key := events.AsideKey(ref)
		if _, err := w.bus.KV.Store(t.Context(), kv.State, key, []byte(body), 0); err != nil {
			t.Fatal(err)
		}
		f := w.folder()
		if err := f.Takeover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.apart(f)
		w.same(ref)
		natstest.Until(t, "the note to be removed", func() bool { return w.load(key) == nil })
		if n := len(stored(t, w.server.URL(), w.bus.Cell().FeedStream())); n != 4 {
			t.Errorf("%s: %d facts were fed, want 4", body, n)
		}
	}
}

// TestWhatWasDeliveredMeanwhileIsFed: commits of a session arrive while it is set aside, and a rebuild, which feeds
// nothing, folds them. They are fed when the session is back, also if another process takes over in between.
func TestWhatWasDeliveredMeanwhileIsFed(t *testing.T) {
	for name, takeOver := range map[string]bool{"the same process": false, "the next one": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open(ref)
			w.stateMax(3_000)
			w.tooLarge(ref)
			ms := w.delivered(int(w.seq[ref]))
			f := w.folder()
			w.fold(f, ms[:len(ms)-5]...)
			if w.aside(ref) == nil {
				t.Fatal("nothing was set aside")
			}
			w.fold(f, ms[len(ms)-5:]...)
			w.stateMax(-1)
			l := w.settle(Default())
			if reply := w.rebuild(l, request.Rebuild{}); len(reply.Failed) > 0 {
				t.Fatalf("%+v", reply)
			}
			if takeOver {
				w.consumed()
				f = w.folder()
				if err := f.Takeover(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w.apart(f)
			natstest.Until(t, "it to be back", func() bool { return w.aside(ref) == nil })
			calls := map[string]bool{}
			for _, m := range stored(t, w.server.URL(), w.bus.Cell().FeedStream()) {
				if e := events.DecodeEvent(m.Data); e.Kind == "tool.started" {
					calls[e.Subject] = true
				}
			}
			if len(calls) != 41 {
				t.Errorf("%d of 41 calls were fed", len(calls))
			}
		})
	}
}

// consumed acknowledges all commits as the ledger does.
func (w *world) consumed() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.bus.Consumers.Consume(ctx, Source(Default()), &recorder{want: math.MaxInt}) }()
	w.acknowledged()
	cancel()
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
}

// TestASetAsideDocumentThatStands: the log has lost the beginning of a session, so that its document is the last copy.
// A session that was set aside comes back with that document, and later commits are folded onto it.
func TestASetAsideDocumentThatStands(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	if err := w.bus.Log.PurgeSession(t.Context(), ref, w.seq[ref]); err != nil {
		t.Fatal(err)
	}
	// the log has lost the end of the session, too
	w.forge(ref, func(st *session.State) { st.Seq++ })
	w.append(other, events.SessionOpened{Incarnation: "1"})
	if err := l.fold.owe(t.Context(), Aside{Ref: ref, Behind: true, From: 1, To: 3, Reason: "odd"}); err != nil {
		t.Fatal(err)
	}
	l.fold.apart.of[ref].note.Failures = 1
	doc := w.load(events.SessionKey(ref))
	end := w.append(ref, events.TurnCompleted{Turn: "t1"})
	w.apart(l.fold)
	natstest.Until(t, "it to be back", func() bool { return w.aside(ref) == nil })
	st, err := session.Decode(w.load(events.SessionKey(ref)))
	if err != nil || st.Seq != end || st.Turn != nil || st.Title != "a session" || w.note(ref) == nil {
		t.Errorf("the document %s became %+v, %v, noted %+v", doc, st, err, w.note(ref))
	}
}

// TestAPurgedSessionThatWasSetAside: retention purges a session whose note is still there. Its document is not written
// again.
func TestAPurgedSessionThatWasSetAside(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	w.append(ref, events.SessionClosed{Reason: "finished"})
	l := w.settle(Default())
	if err := l.fold.owe(t.Context(), Aside{Ref: ref, Behind: true, From: 1, To: 3, Reason: "odd"}); err != nil {
		t.Fatal(err)
	}
	if n, err := l.retainAt(t.Context(), w.later(2*Default().ClosedKeptFor), false); n != 1 || err != nil ||
		w.load(events.SessionKey(ref)) != nil {
		t.Fatalf("%d purged, %v", n, err)
	}
	w.apart(l.fold)
	natstest.Until(t, "the note to be removed", func() bool { return w.aside(ref) == nil })
	if doc := w.load(events.SessionKey(ref)); doc != nil {
		t.Errorf("the document is there again: %s", doc)
	}
}

// stored appends a commit, and returns it as the log delivers it.
func (w *world) stored(r events.Ref, guard uint64, facts ...events.Fact) bus.Message {
	w.t.Helper()
	evs := make([]events.Event, len(facts))
	for i, fact := range facts {
		evs[i] = events.New(w.bus.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, at0, fact)
	}
	seq, err := w.bus.Log.Append(w.t.Context(), r, events.WriterHarness, guard, evs)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := w.bus.Log.Commit(w.t.Context(), seq)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := events.EncodeBatch(c.Events)
	if err != nil {
		w.t.Fatal(err)
	}
	return bus.Message{Subject: w.bus.Cell().LogSubject(r, events.WriterHarness), Seq: seq, At: c.At, Body: body,
		Header: map[string][]string{"Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(guard)},
			"Nats-Expected-Last-Subject-Sequence-Subject": {w.bus.Cell().LogGuard(r)}}}
}

// TestLargeDocumentsOfOneHarness: a small commit changes a large document. A batch stores so many bytes of documents of
// one harness. Its other sessions are folded apart and come back, and no session of another harness is set aside.
func TestLargeDocumentsOfOneHarness(t *testing.T) {
	const sessions, calls = 50, 950
	w := newWorld(t)
	f := w.folder()
	pad := strings.Repeat("x", 120)
	refs := make([]events.Ref, sessions)
	last := make([]uint64, sessions)
	for i := range refs {
		refs[i] = events.Ref{Harness: "heavy", Session: fmt.Sprint("s", i)}
		facts := []events.Fact{events.SessionOpened{Incarnation: "1"},
			events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
		for n := range calls {
			facts = append(facts, events.ToolStarted{Call: fmt.Sprint(pad, n), Turn: "t", Name: "bash"})
		}
		m := w.stored(refs[i], 0, facts...)
		w.fold(f, m)
		last[i] = m.Seq
	}
	if n := len(w.load(events.SessionKey(refs[0]))); n*sessions <= documentsOfOne {
		t.Fatalf("documents of %d bytes: too small to tell anything", n)
	}
	quiet := events.Ref{Harness: "quiet", Session: "s"}
	facts := []events.Fact{events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
	for n := range calls {
		facts = append(facts, events.ToolStarted{Call: fmt.Sprint(pad, n), Turn: "t", Name: "bash"})
	}
	large := w.stored(quiet, 0, facts...)
	w.fold(f, large)
	if n := len(w.load(events.SessionKey(quiet))); n <= documentSmall {
		t.Fatalf("a document of %d bytes: it is small", n)
	}
	var batch []bus.Message
	for i, r := range refs {
		batch = append(batch, w.stored(r, last[i], events.UsageReported{Turn: "t", Model: "m"}))
	}
	batch = append(batch, w.stored(quiet, large.Seq, events.UsageReported{Turn: "t", Model: "m"}))
	w.fold(f, batch...)
	aside, stored := 0, 0
	for i, r := range refs {
		if w.aside(r) != nil {
			aside++
		} else if h, err := session.ReadHead(w.load(events.SessionKey(r))); err == nil && h.Seq > last[i] {
			stored += len(w.load(events.SessionKey(r)))
		}
	}
	if aside == 0 || stored == 0 || stored > documentsOfOne || w.aside(quiet) != nil {
		t.Errorf("%d sessions set aside, %d bytes of documents stored, another harness: %+v", aside, stored,
			w.aside(quiet))
	}
	w.same(quiet)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	f.active.Store(true)
	go func() { done <- f.workApart(ctx) }()
	for _, r := range refs {
		w.same(r)
		natstest.Until(t, "the note to go", func() bool { return w.aside(r) == nil })
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
