package log_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestNothingIsFollowedOverAClosedConnection: a call that runs until its context ends returns an error at once if the
// connection was closed.
func TestNothingIsFollowedOverAClosedConnection(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	b.Abort()
	ctx := bustest.Within(t, bustest.Patience)
	for name, do := range map[string]func() error{
		"nudges":   func() error { return b.Hints.OnNudge(ctx, "h", func(string, uint64) {}) },
		"progress": func() error { return b.Hints.OnProgress(ctx, func(events.Ref) {}) },
		"watch":    func() error { return b.KV.Watch(ctx, kv.State, nil, func(kv.Update) error { return nil }) },
		"follow":   func() error { return b.Log.Follow(ctx, "h", func(uint64) {}, func(bus.Message) {}) },
		"serve":    func() error { return b.Services.Serve(ctx, "test", "1.0.0", "x", nil) },
		"consume": func() error {
			return b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "x"},
				bustest.Discard{})
		},
	} {
		done := make(chan error, 1)
		go func() { done <- do() }()
		if err := bustest.Receive(t, done, name); err == nil {
			t.Errorf("%s ends without an error", name)
		}
	}
	if err := b.Services.Request(ctx, "test", "x", make(chan int), nil); err == nil {
		t.Error("a request that cannot be encoded is sent")
	}
}

// TestEndsOfSessions: the ends of all sessions, of those of one harness, and of one that has none.
func TestEndsOfSessions(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	other := events.Ref{Harness: "other", Session: "s"}
	last := bustest.MustAppend(t, b, bustest.Session, bustest.MustAppend(t, b, bustest.Session, 0, "a"), "b")
	evs := []events.Event{bustest.Fact("c", other)}
	third, err := b.Log.Append(ctx, other, events.WriterHarness, 0, evs)
	if err != nil {
		t.Fatal(err)
	}
	for harness, want := range map[string]map[events.Ref]uint64{
		"": {bustest.Session: last, other: third}, "h": {bustest.Session: last}, "other": {other: third}, "none": {},
	} {
		if got, err := b.Log.Heads(ctx, harness); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", harness, got, err)
		}
	}
	if head, err := b.Log.Head(ctx, events.Ref{Harness: "h", Session: "none"}); head != 0 || err != nil {
		t.Errorf("a session without commits: %d, %v", head, err)
	}
}

// TestUnreadableHeaderFollowed: a follower of the log's end gets such a commit unchanged.
func TestUnreadableHeaderFollowed(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	live, came, done := make(chan struct{}, 1), make(chan bus.Message, 1), make(chan error, 1)
	go func() {
		done <- b.Log.Follow(ctx, "", func(uint64) { live <- struct{}{} }, func(m bus.Message) { came <- m })
	}()
	bustest.Receive(t, live, "the log to be followed")
	bustest.RawPublish(t, s, "hf.log.h.s.harness", bustest.OddHeaders(0)["a line break in a value"], "[]")
	if m := bustest.Receive(t, came, "the commit"); !slices.Equal(m.Header["Hf-Unreadable-Header"],
		[]string{`"two"`}) ||
		nats.Header(m.Header).Get("X") != "one" {
		t.Errorf("followed: %v", m.Header)
	}
	cancel()
	if err := bustest.Receive(t, done, "the end"); err != nil {
		t.Error(err)
	}
}

// TestFullLog fills the log, sees it refuse, and raises its limit once.
func TestFullLog(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.LogBytesMax = 64 << 10 })
	ctx := bustest.Within(t, bustest.Patience)
	fill := func(after uint64) (uint64, error) {
		for {
			seq, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, after, bustest.Facts(b.NewID()))
			if err != nil {
				return after, err
			}
			after = seq
		}
	}
	last, err := fill(0)
	if !errors.Is(err, bus.ErrFull) {
		t.Fatalf("append to a full log: %v, want ErrFull", err)
	}
	used, most, err := b.Log.Usage(ctx)
	if err != nil || most != 64<<10 || used > most || used < most*9/10 {
		t.Errorf("usage = %d of %d, %v", used, most, err)
	}
	if raised, err := b.Log.RaiseLimit(ctx); err != nil || !raised {
		t.Fatalf("raise = %t, %v", raised, err)
	}
	// this process has the old limit in its configuration
	if err := b.Layout.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	next, err := fill(last)
	if next == last || !errors.Is(err, bus.ErrFull) {
		t.Errorf("after the raise: %d after %d, %v", next, last, err)
	}
	if raised, err := b.Log.RaiseLimit(ctx); err != nil || raised {
		t.Errorf("a second raise = %t, %v", raised, err)
	}
	if cs := bustest.MustRead(t, b, bustest.Session, last); len(cs) < 2 {
		t.Errorf("%d commits from %d on", len(cs), last)
	}
}

// TestServicesHaveRoomInAFullLog: the limit of a log that others filled is raised once for recovery and closing.
func TestServicesHaveRoomInAFullLog(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.LogBytesMax = 64 << 10 })
	ctx := bustest.Within(t, bustest.Patience)
	fill := func(w events.Writer, after uint64) (uint64, error) {
		for {
			seq, err := b.Log.Append(ctx, bustest.Session, w, after, bustest.Facts(b.NewID()))
			if err != nil {
				return after, err
			}
			after = seq
		}
	}
	last, err := fill(events.WriterHarness, 0)
	if !errors.Is(err, bus.ErrFull) {
		t.Fatalf("a harness fills the log: %v, want ErrFull", err)
	}
	next, err := fill(events.WriterReconciler, last)
	if next == last || !errors.Is(err, bus.ErrFull) {
		t.Errorf("a service has got from %d to %d, %v", last, next, err)
	}
	if _, most, err := b.Log.Usage(ctx); err != nil || most != 128<<10 {
		t.Errorf("limit = %d, %v; want it raised once", most, err)
	}
}

func TestUnlimitedLogIsNotRaised(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	if raised, err := b.Log.RaiseLimit(ctx); err != nil || raised {
		t.Errorf("raise = %t, %v", raised, err)
	}
	if _, most, err := b.Log.Usage(ctx); err != nil || most != 0 {
		t.Errorf("limit = %d, %v; want none", most, err)
	}
}

func TestWithoutALog(t *testing.T) {
	b, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: natstest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := bustest.Within(t, bustest.Patience)
	for name, call := range map[string]func() error{
		"append": func() error {
			_, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 0, bustest.Facts("a"))
			return err
		},
		"store": func() error { _, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 0); return err },
		"scan":  func() error { return b.Log.Scan(ctx, 0, func(events.Commit) error { return nil }) },
		"usage": func() error { _, _, err := b.Log.Usage(ctx); return err },
	} {
		if err := call(); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("%s in a cell that was not set up: %v, want ErrNotFound", name, err)
		}
	}
}

// TestForeignCommitsDoNotBreakReaders: an unreadable commit comes with its reason, and the later ones come too.
func TestForeignCommitsDoNotBreakReaders(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	noToken := bustest.Foreign(t, js, "hf.log.h.ü.harness", commitBody(t, "x", bustest.Session), nil)
	noBatch := bustest.Foreign(t, js, "hf.log.h.s.harness", "not a batch", nil)
	oddGuard := bustest.Foreign(t, js, "hf.log.h.s.harness", "[]",
		nats.Header{"Nats-Expected-Last-Subject-Sequence": {"2"}})
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 2 {
		t.Errorf("%d commits of the session, want both, though neither names the one before", len(cs))
	}
	bustest.MustAppend(t, b, bustest.Session, oddGuard, "a")
	var got []events.Commit
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
		func(c events.Commit) error { got = append(got, c); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 {
		t.Fatalf("%d commits, want 4", len(got))
	}
	if got[0].Seq != noToken || !errors.Is(got[0].Err, events.ErrMalformed) {
		t.Errorf("a malformed subject: %+v", got[0])
	}
	if got[1].Seq != noBatch || !errors.Is(got[1].Err, events.ErrMalformed) || got[1].Ref != bustest.Session ||
		got[1].Guarded {
		t.Errorf("a malformed body: %+v", got[1])
	}
	if got[2].Guarded {
		t.Errorf("a guard on one writer only passes for a guard on the session: %+v", got[2])
	}
	if got[3].Err != nil || !got[3].Guarded || got[3].Guard != oddGuard {
		t.Errorf("what follows: %+v", got[3])
	}
}

func TestFeed(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	odd := bustest.Fact("b", bustest.Session)
	odd.Kind, odd.Foreign, odd.Fact = "some body else's.*.thing", true, nil
	// the second time is recognised
	for range 2 {
		if _, err := b.Log.Feed(ctx,
			log.Fed{Ref: bustest.Session, Seq: 7, Events: []events.Event{bustest.Fact("a", bustest.Session),
				odd}}).Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	st, err := js.Stream(ctx, "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d fed, want 2", n)
	}
	m, err := st.GetLastMsgForSubject(ctx, "hf.feed.tool.started")
	if err != nil {
		t.Fatal(err)
	}
	e := events.DecodeEvent(m.Data)
	if e.Err != nil || e.ID != "a" || m.Header.Get("Hf-Harness") != "h" || m.Header.Get("Hf-Session") != "s" ||
		m.Header.Get("Hf-Seq") != "7" {
		t.Errorf("fed %+v %v", e, m.Header)
	}
	if m, err := st.GetLastMsgForSubject(ctx, "hf.feed.other.other"); err != nil || !json.Valid(m.Data) {
		t.Errorf("a kind that is no subject: %v, %v", m, err)
	}
	off := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.FeedKeptFor = -1 })
	if seq, err := off.Log.Feed(ctx,
		log.Fed{Ref: bustest.Session, Seq: 7, Events: bustest.Facts("a")}).Wait(context.Background()); seq != 0 ||
		err != nil {
		t.Errorf("without a feed: %d, %v", seq, err)
	}
}

// TestFeedAfterALoss: a log that has lost its end assigns the lost sequences again. The facts that are stored there now
// are fed, although others of the same place were fed shortly before.
func TestFeedAfterALoss(t *testing.T) {
	for name, together := range map[string]bool{"each": false, "together": true} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s, func(c *bus.Config) {
				if together {
					c.Server = s
				}
			})
			ctx := bustest.Within(t, bustest.Patience)
			for _, id := range []string{"lost", "now", "now"} {
				facts := append(bustest.Facts(id), bustest.Facts(id+"2")...)
				fed := log.Fed{Ref: bustest.Session, Seq: 7, Events: facts}
				if _, err := b.Log.Feed(ctx, fed).Wait(ctx); err != nil {
					t.Fatal(err)
				}
			}
			_, js := bustest.Outsider(t, s)
			st, err := js.Stream(ctx, "HF_FEED")
			if err != nil {
				t.Fatal(err)
			}
			if n := st.CachedInfo().State.Msgs; n != 4 {
				t.Errorf("%d facts fed, want 4", n)
			}
		})
	}
}

func TestAppendThenRead(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 0 {
		t.Fatalf("a new session has %d commits", len(cs))
	}
	first := bustest.MustAppend(t, b, bustest.Session, 0, "a")
	bustest.MustAppend(t, b, events.Ref{Harness: "h", Session: "other"}, 0, "x")
	second := bustest.MustAppend(t, b, bustest.Session, first, "b")
	cs := bustest.MustRead(t, b, bustest.Session, 0)
	if len(cs) != 2 {
		t.Fatalf("%d commits, want 2", len(cs))
	}
	c := cs[1]
	if c.Err != nil || c.Ref != bustest.Session || c.Writer != events.WriterHarness || c.Seq != second || !c.Guarded ||
		c.Guard != first ||
		c.At.IsZero() || len(c.Events) != 1 || c.Events[0].ID != "b" || c.Events[0].Err != nil {
		t.Errorf("commit = %+v", c)
	}
	if cs := bustest.MustRead(t, b, bustest.Session, second); len(cs) != 1 || cs[0].Seq != second {
		t.Errorf("from %d: %+v", second, cs)
	}
	if cs := bustest.MustRead(t, b, bustest.Session, second+1); len(cs) != 0 {
		t.Errorf("from behind the end: %+v", cs)
	}
}

func TestAppendRefusesUnreadableEvents(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	long := events.Ref{Harness: "h", Session: strings.Repeat("x", 129)}
	for name, c := range map[string]struct {
		ref events.Ref
		evs []events.Event
	}{
		"no facts": {bustest.Session, nil},
		"a broken fact": {bustest.Session,
			[]events.Event{events.New("id", "/x", bustest.Session, 1, time.Time{}, events.ToolStarted{})}},
		"a long id": {long, []events.Event{bustest.Fact("a", long)}},
	} {
		if _, err := b.Log.Append(bustest.Within(t, time.Second), c.ref, events.WriterHarness, 0,
			c.evs); !errors.Is(err,
			events.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 0 {
		t.Errorf("something was stored: %+v", cs)
	}
}

// TestLostAck sends the same facts under the same guard again, as a writer does whose acknowledgement was lost.
func TestLostAck(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	first := bustest.MustAppend(t, b, bustest.Session, 0, "a")
	second := bustest.MustAppend(t, b, bustest.Session, first, "b")
	bustest.MustAppend(t, b, bustest.Session, second, "c")
	if again := bustest.MustAppend(t, b, bustest.Session, first, "b"); again != second {
		t.Errorf("b again = %d, want %d", again, second)
	}
	if again := bustest.MustAppend(t, b, bustest.Session, 0, "a"); again != first {
		t.Errorf("a again = %d, want %d", again, first)
	}
	_, err := b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, first,
		bustest.Facts("d"))
	if !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("other facts under the same guard: %v, want ErrLostRace", err)
	}
	if _, err := b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterLedger, first,
		bustest.Facts("b")); !errors.Is(err,
		bus.ErrLostRace) {
		t.Errorf("the same id by another writer: %v, want ErrLostRace", err)
	}
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 3 {
		t.Errorf("%d commits, want 3", len(cs))
	}
	last := second + 1
	// more than are gone back through one by one
	for i := range 20 {
		last = bustest.MustAppend(t, b, bustest.Session, last, fmt.Sprint("later-", i))
	}
	if again := bustest.MustAppend(t, b, bustest.Session, first, "b"); again != second {
		t.Errorf("b again, long after = %d, want %d", again, second)
	}
}

// TestAppendUnderAGuardThatNeverWas ends, instead of trying for ever: also in a session that the log has nothing of.
func TestAppendUnderAGuardThatNeverWas(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	last := bustest.MustAppend(t, b, bustest.Session, 0, "a")
	for r, want := range map[events.Ref]string{bustest.Session: fmt.Sprintf("the last one there is %d", last),
		{Harness: "h", Session: "gone"}: "is 0"} {
		_, err := b.Log.Append(bustest.Within(t, bustest.Patience), r, events.WriterHarness, 4711, bustest.Facts("b"))
		if !errors.Is(err, bus.ErrLogBehind) || errors.Is(err, bus.ErrLostRace) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("append to %s = %v, want ErrLogBehind that says %q", r, err, want)
		}
	}
}

func TestRaceHasOneWinner(t *testing.T) {
	s := natstest.Start(t)
	bustest.Race(t, []*bus.Bus{natstest.Bus(t, s), natstest.Bus(t, s), natstest.Bus(t, s)}, bustest.RacersN,
		bustest.RoundsN)
}

func TestPipelinedAppendsOfManySessions(t *testing.T) {
	const sessions = 2_000
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	pending := make([]bus.Pending, sessions)
	for i := range pending {
		r := events.Ref{Harness: "h", Session: fmt.Sprint(i)}
		pending[i] = b.Log.AppendAsync(ctx, r, events.WriterHarness, 0, []events.Event{bustest.Fact("a", r)})
	}
	seqs := map[uint64]bool{}
	for i, p := range pending {
		seq, err := p.Wait(ctx)
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		seqs[seq] = true
	}
	if len(seqs) != sessions {
		t.Errorf("%d places for %d commits", len(seqs), sessions)
	}
}

// TestReadLongSessionIsComplete crosses from reading one by one to reading in bulk. Few commits are read one by one.
func TestReadLongSessionIsComplete(t *testing.T) {
	const commits, singlesMax = 3_000, 16
	s := natstest.Start(t)
	relay, singles := natstest.NewRelay(t, s), atomic.Int64{}
	b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = relay.URL })
	var want []uint64
	other := events.Ref{Harness: "h", Session: "other"}
	after, afterOther := uint64(0), uint64(0)
	for i := range commits {
		after = bustest.MustAppend(t, b, bustest.Session, after, fmt.Sprint(i))
		want = append(want, after)
		if i%10 == 0 {
			afterOther = bustest.MustAppend(t, b, other, afterOther, fmt.Sprint(i))
		}
	}
	var got []uint64
	relay.Spoil(func(subject, _ string) bool {
		if strings.Contains(subject, ".MSG.GET.") {
			singles.Add(1)
		}
		return false
	})
	for _, c := range bustest.MustRead(t, b, bustest.Session, 0) {
		got = append(got, c.Seq)
	}
	if n := singles.Load(); n > singlesMax {
		t.Errorf("%d commits were read one by one", n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d commits read, %d written", len(got), len(want))
	}
	n := 0
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
		func(events.Commit) error { n++; return nil }); err != nil ||
		n != commits+commits/10 {
		t.Errorf("scan: %d commits, %v; want %d", n, err, commits+commits/10)
	}
}

func TestScanStopsWithTheCallersError(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "a", "b", "c")
	enough, n := errors.New("enough"), 0
	err := b.Log.Scan(bustest.Within(t, bustest.Patience), 2, func(c events.Commit) error {
		if n++; n == 1 && c.Seq != 2 {
			t.Errorf("began with %d", c.Seq)
		}
		return enough
	})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("scan = %v after %d calls, want the caller's error after 1", err, n)
	}
}

func TestAfterABrokerRestart(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	back := make(chan struct{}, 1)
	b.OnReconnect(func() { back <- struct{}{} })
	first := bustest.MustAppend(t, b, bustest.Session, 0, "a")
	s.Shutdown()
	type result struct {
		seq uint64
		err error
	}
	done := make(chan result, 1)
	go func() {
		seq, err := b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, first,
			bustest.Facts("b"))
		done <- result{seq, err}
	}()
	short := bustest.Within(t, 200*time.Millisecond)
	if _, err := b.Log.Read(short, bustest.Session, 0); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("read without a broker: %v, want ErrUnreachable", err)
	}
	if _, err := b.Log.Append(bustest.Within(t, 100*time.Millisecond), bustest.Session, events.WriterHarness, first,
		bustest.Facts("x")); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("append without a broker: %v, want ErrUnreachable", err)
	}
	natstest.Restart(t, s)
	r := <-done
	if r.err != nil || r.seq != first+1 {
		t.Fatalf("the append that waited = %d, %v; want %d", r.seq, r.err, first+1)
	}
	<-back
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 2 || cs[1].Events[0].ID != "b" {
		t.Errorf("log = %+v", cs)
	}
}

func TestCommitAndPurge(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	other := events.Ref{Harness: "h", Session: "other"}
	keep := bustest.MustAppend(t, b, other, 0, "x")
	last := bustest.MustAppend(t, b, bustest.Session, 0, "a", "b", "c")
	ctx := bustest.Within(t, bustest.Patience)
	if c, err := b.Log.Commit(ctx, last); err != nil || c.Events[0].ID != "c" {
		t.Fatalf("commit %d = %+v, %v", last, c, err)
	}
	if err := b.Log.PurgeSession(ctx, bustest.Session, last+1); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("purge behind the last commit: %v, want ErrNotFound, for nothing would be left to guard", err)
	}
	if err := b.Log.PurgeSession(ctx, bustest.Session, keep); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("purge up to another's commit: %v, want ErrNotFound", err)
	}
	if err := b.Log.PurgeSession(ctx, bustest.Session, last); err != nil {
		t.Fatal(err)
	}
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 1 || cs[0].Seq != last || cs[0].Guard == 0 {
		t.Errorf("after the purge: %+v", cs)
	}
	if cs := bustest.MustRead(t, b, other, 0); len(cs) != 1 {
		t.Errorf("the other session: %+v", cs)
	}
	for _, seq := range []uint64{0, last - 1, last + 1} {
		if _, err := b.Log.Commit(ctx, seq); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("commit %d: %v, want ErrNotFound", seq, err)
		}
	}
	if _, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 0, bustest.Facts("new")); !errors.Is(err,
		bus.ErrLostRace) {
		t.Errorf("append as if it were new: %v, want ErrLostRace", err)
	}
	bustest.MustAppend(t, b, bustest.Session, last, "d")
}

// TestSince: Since returns all commits of a harness's sessions, of every writer, that were stored at an instant or
// later.
func TestSince(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	other, second := events.Ref{Harness: "other", Session: "s"}, events.Ref{Harness: "h", Session: "s2"}
	bustest.MustAppend(t, b, bustest.Session, 0, "a")
	second1 := bustest.MustAppend(t, b, second, 0, "b")
	from, err := b.Log.Commit(bustest.Background(t), second1)
	if err != nil {
		t.Fatal(err)
	}
	bustest.MustAppend(t, b, other, 0, "c")
	last := bustest.MustAppend(t, b, second, second1, "d")
	end, err := b.Log.Commit(bustest.Background(t), last)
	if err != nil {
		t.Fatal(err)
	}
	read := func(harness string, since time.Time) (ids string) {
		if err := b.Log.Since(bustest.Background(t), harness, since, func(c events.Commit) error {
			ids += c.Events[0].ID
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	for _, c := range []struct {
		harness string
		since   time.Time
		want    string
	}{
		{"h", time.Unix(0, 1), "abd"}, {"h", from.At, "bd"}, {"h", from.At.Add(1), "d"}, {"h", end.At.Add(1), ""},
		{"other", from.At, "c"}, {"absent", from.At, ""},
	} {
		if got := read(c.harness, c.since); got != c.want {
			t.Errorf("%s since %s: %q, want %q", c.harness, c.since, got, c.want)
		}
	}
	mine := errors.New("enough")
	if err := b.Log.Since(bustest.Background(t), "h", from.At,
		func(events.Commit) error { return mine }); !errors.Is(err,
		mine) {
		t.Errorf("ended with %v", err)
	}
}

// TestFeedOfManyBytes: facts of more bytes than a batch may have are fed in several.
func TestFeedOfManyBytes(t *testing.T) {
	const facts, each = 60, 200 << 10
	s := natstest.Start(t)
	b := natstest.Bus(t, s, bustest.Together)
	var fs []log.Fed
	for i := range facts {
		e := events.New(fmt.Sprint(i), events.HarnessSource("h", "1"), bustest.Session, 1, time.Unix(1, 0),
			events.ToolCompleted{Call: "c", Output: json.RawMessage(`"` + strings.Repeat("x", each) + `"`)})
		fs = append(fs, log.Fed{Ref: bustest.Session, Seq: uint64(i + 1), Events: []events.Event{e}})
	}
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := b.Log.Feed(ctx, fs...).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	_, js := bustest.Outsider(t, s)
	st, err := js.Stream(ctx, "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != facts {
		t.Errorf("%d fed, want %d", n, facts)
	}
	// bytes by id
	batches := map[string]int{}
	for seq := range st.CachedInfo().State.LastSeq {
		m, err := st.GetMsg(ctx, seq+1)
		if err != nil {
			t.Fatal(err)
		}
		if id := m.Header.Get("Nats-Batch-Id"); id != "" {
			batches[id] += len(m.Data)
		}
	}
	if len(batches) != 2 {
		t.Errorf("%d batches, want 2", len(batches))
	}
	for id, bytes := range batches {
		if bytes > 8<<20 {
			t.Errorf("batch %s has %d bytes", id, bytes)
		}
	}
}

// TestFeedTogether: a batch of which some is there already is fed all the same, each once, and in order.
func TestFeedTogether(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s, bustest.Together)
	_, js := bustest.Outsider(t, s)
	feed := func(from, to int) {
		t.Helper()
		var fs []log.Fed
		for i := from; i < to; i++ {
			fs = append(fs, log.Fed{Ref: bustest.Session, Seq: uint64(i + 1),
				Events: []events.Event{bustest.Fact(fmt.Sprint(i), bustest.Session)}})
		}
		if _, err := b.Log.Feed(bustest.Within(t, bustest.Patience),
			fs...).Wait(bustest.Within(t, bustest.Patience)); err != nil {
			t.Fatal(err)
		}
	}
	feed(0, 1500)
	feed(1490, 1530)
	if n := bustest.Batches(t, js, "HF_FEED"); n != 1500 {
		t.Errorf("%d messages came in batches, want 1500", n)
	}
	st, err := js.Stream(bustest.Within(t, bustest.Patience), "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 1530 {
		t.Errorf("%d fed, want 1530", n)
	}
	for i := range 1530 {
		m, err := st.GetMsg(bustest.Within(t, bustest.Patience), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Header.Get("Hf-Seq"); got != fmt.Sprint(i+1) {
			t.Fatalf("message %d is of commit %s", i+1, got)
		}
	}
}

// TestFollow: everything from now on, of one harness, in order, across a restart of the broker, and also from a log
// that was made again.
func TestFollow(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	bustest.MustAppend(t, b, bustest.Session, 0, "before")
	ctx, stop := context.WithCancel(bustest.Background(t))
	defer stop()
	live, got, ended := make(chan uint64, 100), make(chan events.Commit, 100), make(chan error, 1)
	go func() {
		ended <- b.Log.Follow(ctx, bustest.Session.Harness, func(from uint64) { live <- from }, func(m bus.Message) {
			got <- b.Log.Decode(m)
		})
	}()
	next := func(id string) {
		t.Helper()
		if c := bustest.Receive(t, got, id); c.Err != nil || len(c.Events) != 1 || c.Events[0].ID != id ||
			c.Ref != bustest.Session ||
			!c.Guarded {
			t.Fatalf("got %+v, want %s", c, id)
		}
	}
	if from := bustest.Receive(t, live, "a beginning"); from != 2 {
		t.Errorf("it began at %d, want 2", from)
	}
	seq := bustest.MustAppend(t, b, bustest.Session, 1, "one")
	bustest.MustAppend(t, b, events.Ref{Harness: "another", Session: "s"}, 0, "theirs")
	seq = bustest.MustAppend(t, b, bustest.Session, seq, "two")
	next("one")
	next("two")

	s.Shutdown()
	if from := bustest.Receive(t, live, "the interruption"); from != 0 {
		t.Errorf("interrupted: %d, want 0", from)
	}
	s = natstest.Restart(t, s)
	other := natstest.Bus(t, s)
	// perhaps before it is followed again
	bustest.MustAppend(t, other, bustest.Session, seq, "three")
	next("three")
	for from := uint64(0); from == 0; {
		if from = bustest.Receive(t, live, "going on"); from != 0 && from != 2 {
			t.Errorf("continues from %d, want 2: nothing was left out", from)
		}
	}

	_, js := bustest.Outsider(t, s)
	if err := js.DeleteStream(bustest.Within(t, bustest.Patience), "HF_LOG"); err != nil {
		t.Fatal(err)
	}
	if from := bustest.Receive(t, live, "the interruption"); from != 0 {
		t.Errorf("interrupted: %d, want 0", from)
	}
	if err := other.Layout.Ensure(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	// the old one may have been interrupted, and gone on with, more than once
	for from := uint64(0); from != 1; {
		if from = bustest.Receive(t, live, "going on from 1"); from > 2 {
			t.Errorf("in a new log it begins at %d, want 1", from)
		}
	}
	bustest.MustAppend(t, other, bustest.Session, 0, "again")
	next("again")
	stop()
	if err := bustest.Receive(t, ended, "its end"); err != nil {
		t.Errorf("follow ended with %v", err)
	}
}

// doubled stores two commits of a session in one batch, both under the guard after, with one of another session between
// them. It returns what the broker says of it.
func doubled(t *testing.T, s *embed.Server, after uint64) error {
	t.Helper()
	nc, _ := bustest.Outsider(t, s)
	var last *nats.Msg
	for i, r := range []events.Ref{bustest.Session, {Harness: "h", Session: "between"}, bustest.Session} {
		guard := after
		if r != bustest.Session {
			guard = 0
		}
		body, err := events.EncodeBatch([]events.Event{bustest.Fact(fmt.Sprint("batch-", i), r)})
		if err != nil {
			t.Fatal(err)
		}
		last = &nats.Msg{Subject: fmt.Sprintf("hf.log.%s.%s.harness", r.Harness, r.Session), Data: body,
			Header: nats.Header{
				"Content-Type": {events.BatchContentType}, "Nats-Batch-Id": {"x"},
				"Nats-Batch-Sequence":                   {fmt.Sprint(i + 1)},
				jetstream.ExpectedLastSubjSeqHeader:     {fmt.Sprint(guard)},
				jetstream.ExpectedLastSubjSeqSubjHeader: {fmt.Sprintf("hf.log.%s.%s.*", r.Harness, r.Session)}}}
		if i < 2 {
			if err := nc.PublishMsg(last); err != nil {
				t.Fatal(err)
			}
		}
	}
	last.Header.Set("Nats-Batch-Commit", "1")
	m, err := nc.RequestMsgWithContext(bustest.Within(t, bustest.Patience), last)
	if err != nil {
		t.Fatal(err)
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		t.Fatal(err)
	}
	if ack.Error != nil {
		return ack.Error
	}
	return nil
}

// TestTwoCommitsUnderOneGuard: the broker takes two commits of a session under one guard when they are in one batch.
// Where the log takes batches at all, every way of reading it finds both, in the same order.
func TestTwoCommitsUnderOneGuard(t *testing.T) {
	s := natstest.Start(t, natstest.Lazy())
	b := natstest.Bus(t, s, bustest.Together)
	after := bustest.MustAppend(t, b, bustest.Session, 0, "a")
	if err := doubled(t, s, after); err != nil {
		t.Fatal(err)
	}
	last := bustest.MustAppend(t, b, bustest.Session, after+3, "z")
	var want []uint64
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0, func(c events.Commit) error {
		if c.Ref == bustest.Session {
			want = append(want, c.Seq)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(want) != 4 || want[3] != last {
		t.Fatalf("the log has %v", want)
	}
	for i, from := range want {
		var got []uint64
		for _, c := range bustest.MustRead(t, b, bustest.Session, from) {
			got = append(got, c.Seq)
		}
		if !slices.Equal(got, want[i:]) {
			t.Errorf("read from %d: %v, want %v", from, got, want[i:])
		}
	}
	if _, err := b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, after,
		bustest.Facts("late")); !errors.Is(err,
		bus.ErrLostRace) {
		t.Errorf("a third under the same guard: %v, want ErrLostRace", err)
	}
}

// TestTheLogOfAClusterTakesNoBatches: also one that did before.
func TestTheLogOfAClusterTakesNoBatches(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	if err := doubled(t, s, 0); err == nil {
		t.Error("a new log takes batches")
	}
	_, js := bustest.Outsider(t, s)
	cfg := bustest.Config(t, js, "HF_LOG")
	cfg.AllowAtomicPublish = true
	if _, err := js.UpdateStream(bustest.Within(t, bustest.Patience), cfg); err != nil {
		t.Fatal(err)
	}
	if err := b.Layout.Ensure(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	if err := doubled(t, s, 0); err == nil {
		t.Error("a log that did before takes batches still")
	}
	if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != 0 {
		t.Errorf("stored: %+v", cs)
	}
	if state := bustest.Config(t, js, "KV_hf_state"); !state.AllowAtomicPublish {
		t.Error("documents and views can no longer be stored together")
	}
}

// restoredLog is a log whose second commit is not the one that was stored first: the broker was restored from a copy
// that had only the first one, and another writer has continued. It returns that lost commit as the last one.
func restoredLog(t *testing.T) (b *bus.Bus, lost log.Last) {
	t.Helper()
	b = natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "first", "other")
	return b, log.Last{Seq: 2, First: "lost", On: b.Reconnects()}
}

// TestAppendToAnotherLog: an append on a newer connection than the one on which the log had the writer's last commit is
// sent only if the log has that commit.
func TestAppendToAnotherLog(t *testing.T) {
	b, last := restoredLog(t)
	ctx := bustest.Within(t, bustest.Patience)
	// compared on another connection than the present one
	last.On++
	appended := func() (uint64, error) {
		return last.Append(ctx, b.Log, bustest.Session, events.WriterHarness, bustest.Facts("mine")).Wait(ctx)
	}
	if seq, err := appended(); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("stored at %d: %v", seq, err)
	}
	last.First = "other"
	if seq, err := appended(); err != nil || seq != 3 {
		t.Errorf("stored at %d: %v", seq, err)
	}
}
