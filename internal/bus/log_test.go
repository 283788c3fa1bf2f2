package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	racersN = 16
	roundsN = 50
)

var session = events.Ref{Harness: "h", Session: "s"}

// fact is one event of a session; its id is what a re-send is recognised by.
func fact(id string, r events.Ref) events.Event {
	return events.New(id, events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(1, 0),
		events.ToolStarted{Call: "c-" + id, Name: "bash"})
}

func facts(id string) []events.Event { return []events.Event{fact(id, session)} }

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func mustAppend(t testing.TB, b *bus.Bus, r events.Ref, after uint64, ids ...string) uint64 {
	t.Helper()
	for _, id := range ids {
		seq, err := b.Append(within(t, patience), r, events.WriterHarness, after, []events.Event{fact(id, r)})
		if err != nil {
			t.Fatalf("append %s after %d: %v", id, after, err)
		}
		after = seq
	}
	return after
}

func mustRead(t testing.TB, b *bus.Bus, r events.Ref, from uint64) []events.Commit {
	t.Helper()
	cs, err := b.Read(within(t, patience), r, from)
	if err != nil {
		t.Fatalf("read %s from %d: %v", r, from, err)
	}
	return cs
}

func TestAppendThenRead(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	if cs := mustRead(t, b, session, 0); len(cs) != 0 {
		t.Fatalf("a new session has %d commits", len(cs))
	}
	first := mustAppend(t, b, session, 0, "a")
	mustAppend(t, b, events.Ref{Harness: "h", Session: "other"}, 0, "x")
	second := mustAppend(t, b, session, first, "b")
	cs := mustRead(t, b, session, 0)
	if len(cs) != 2 {
		t.Fatalf("%d commits, want 2", len(cs))
	}
	c := cs[1]
	if c.Err != nil || c.Ref != session || c.Writer != events.WriterHarness || c.Seq != second || !c.Guarded ||
		c.Guard != first ||
		c.At.IsZero() || len(c.Events) != 1 || c.Events[0].ID != "b" || c.Events[0].Err != nil {
		t.Errorf("commit = %+v", c)
	}
	if cs := mustRead(t, b, session, second); len(cs) != 1 || cs[0].Seq != second {
		t.Errorf("from %d: %+v", second, cs)
	}
	if cs := mustRead(t, b, session, second+1); len(cs) != 0 {
		t.Errorf("from behind the end: %+v", cs)
	}
}

func TestAppendRefusesWhatNobodyCouldRead(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	long := events.Ref{Harness: "h", Session: strings.Repeat("x", 129)}
	for name, c := range map[string]struct {
		ref events.Ref
		evs []events.Event
	}{
		"no facts": {session, nil},
		"a broken fact": {session,
			[]events.Event{events.New("id", "/x", session, 1, time.Time{}, events.ToolStarted{})}},
		"a long id": {long, []events.Event{fact("a", long)}},
	} {
		if _, err := b.Append(within(t, time.Second), c.ref, events.WriterHarness, 0, c.evs); !errors.Is(err,
			events.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	if cs := mustRead(t, b, session, 0); len(cs) != 0 {
		t.Errorf("something was stored: %+v", cs)
	}
}

// TestLostAck sends the same facts under the same guard again, as a writer does whose acknowledgement was lost.
func TestLostAck(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	first := mustAppend(t, b, session, 0, "a")
	second := mustAppend(t, b, session, first, "b")
	mustAppend(t, b, session, second, "c")
	if again := mustAppend(t, b, session, first, "b"); again != second {
		t.Errorf("b again = %d, want %d", again, second)
	}
	if again := mustAppend(t, b, session, 0, "a"); again != first {
		t.Errorf("a again = %d, want %d", again, first)
	}
	_, err := b.Append(within(t, patience), session, events.WriterHarness, first, facts("d"))
	if !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("other facts under the same guard: %v, want ErrLostRace", err)
	}
	if _, err := b.Append(within(t, patience), session, events.WriterLedger, first, facts("b")); !errors.Is(err,
		bus.ErrLostRace) {
		t.Errorf("the same id by another writer: %v, want ErrLostRace", err)
	}
	if cs := mustRead(t, b, session, 0); len(cs) != 3 {
		t.Errorf("%d commits, want 3", len(cs))
	}
	last := second + 1
	for i := range 20 { // more than are gone back through one by one
		last = mustAppend(t, b, session, last, fmt.Sprint("later-", i))
	}
	if again := mustAppend(t, b, session, first, "b"); again != second {
		t.Errorf("b again, long after = %d, want %d", again, second)
	}
}

// TestAppendUnderAGuardThatNeverWas ends, instead of trying for ever: also in a session that the log has nothing of.
func TestAppendUnderAGuardThatNeverWas(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	last := mustAppend(t, b, session, 0, "a")
	for r, says := range map[events.Ref]string{session: fmt.Sprintf("the last one there is %d", last),
		{Harness: "h", Session: "gone"}: "is 0"} {
		_, err := b.Append(within(t, patience), r, events.WriterHarness, 4711, facts("b"))
		if !errors.Is(err, bus.ErrLogBehind) || errors.Is(err, bus.ErrLostRace) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("append to %s = %v, want ErrLogBehind that says %q", r, err, says)
		}
	}
}

// race lets racers append to one session round after round; in each, exactly one may win, and each must get its true
// result.
func race(t *testing.T, buses []*bus.Bus, racers, rounds int) {
	t.Helper()
	after := uint64(0)
	for round := range rounds {
		var wg sync.WaitGroup
		seqs, errs := make([]uint64, racers), make([]error, racers)
		for i := range racers {
			wg.Go(func() {
				b := buses[i%len(buses)]
				seqs[i], errs[i] = b.Append(within(t, patience), session, events.WriterHarness, after,
					facts(fmt.Sprintf("%d-%d", round, i)))
			})
		}
		wg.Wait()
		cs := mustRead(t, buses[0], session, after+1)
		if len(cs) != 1 {
			t.Fatalf("round %d: %d commits after %d, want 1", round, len(cs), after)
		}
		for i := range racers {
			won := cs[0].Events[0].ID == fmt.Sprintf("%d-%d", round, i)
			if won && (errs[i] != nil || seqs[i] != cs[0].Seq) || !won && !errors.Is(errs[i], bus.ErrLostRace) {
				t.Fatalf("round %d: racer %d was told (%d, %v), but the log has %s at %d", round, i, seqs[i], errs[i],
					cs[0].Events[0].ID, cs[0].Seq)
			}
		}
		after = cs[0].Seq
	}
}

func TestRaceHasOneWinner(t *testing.T) {
	s := natstest.Start(t)
	race(t, []*bus.Bus{natstest.Bus(t, s), natstest.Bus(t, s), natstest.Bus(t, s)}, racersN, roundsN)
}

func TestPipelinedAppendsOfManySessions(t *testing.T) {
	const sessions = 2_000
	b := natstest.Bus(t, natstest.Start(t))
	ctx := within(t, patience)
	pending := make([]bus.Pending, sessions)
	for i := range pending {
		r := events.Ref{Harness: "h", Session: fmt.Sprint(i)}
		pending[i] = b.AppendAsync(ctx, r, events.WriterHarness, 0, []events.Event{fact("a", r)})
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

// TestReadLongSessionIsComplete crosses from reading one by one to reading in bulk.
func TestReadLongSessionIsComplete(t *testing.T) {
	const commits = 3_000
	b := natstest.Bus(t, natstest.Start(t))
	var want []uint64
	other := events.Ref{Harness: "h", Session: "other"}
	after, afterOther := uint64(0), uint64(0)
	for i := range commits {
		after = mustAppend(t, b, session, after, fmt.Sprint(i))
		want = append(want, after)
		if i%10 == 0 {
			afterOther = mustAppend(t, b, other, afterOther, fmt.Sprint(i))
		}
	}
	var got []uint64
	for _, c := range mustRead(t, b, session, 0) {
		got = append(got, c.Seq)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d commits read, %d written", len(got), len(want))
	}
	n := 0
	if err := b.Scan(within(t, patience), 0, func(events.Commit) error { n++; return nil }); err != nil ||
		n != commits+commits/10 {
		t.Errorf("scan: %d commits, %v; want %d", n, err, commits+commits/10)
	}
}

func TestScanStopsWithTheCallersError(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	mustAppend(t, b, session, 0, "a", "b", "c")
	enough, n := errors.New("enough"), 0
	err := b.Scan(within(t, patience), 2, func(c events.Commit) error {
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
	first := mustAppend(t, b, session, 0, "a")
	s.Shutdown()
	type result struct {
		seq uint64
		err error
	}
	done := make(chan result, 1)
	go func() {
		seq, err := b.Append(within(t, patience), session, events.WriterHarness, first, facts("b"))
		done <- result{seq, err}
	}()
	short := within(t, 200*time.Millisecond)
	if _, err := b.Read(short, session, 0); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("read without a broker: %v, want ErrUnreachable", err)
	}
	if _, err := b.Append(within(t, 100*time.Millisecond), session, events.WriterHarness, first,
		facts("x")); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("append without a broker: %v, want ErrUnreachable", err)
	}
	natstest.Restart(t, s)
	r := <-done
	if r.err != nil || r.seq != first+1 {
		t.Fatalf("the append that waited = %d, %v; want %d", r.seq, r.err, first+1)
	}
	<-back
	if cs := mustRead(t, b, session, 0); len(cs) != 2 || cs[1].Events[0].ID != "b" {
		t.Errorf("log = %+v", cs)
	}
}

func TestCommitAndPurge(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	other := events.Ref{Harness: "h", Session: "other"}
	keep := mustAppend(t, b, other, 0, "x")
	last := mustAppend(t, b, session, 0, "a", "b", "c")
	ctx := within(t, patience)
	if c, err := b.Commit(ctx, last); err != nil || c.Events[0].ID != "c" {
		t.Fatalf("commit %d = %+v, %v", last, c, err)
	}
	if err := b.PurgeSession(ctx, session, last+1); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("purge behind the last commit: %v, want ErrNotFound, for nothing would be left to guard", err)
	}
	if err := b.PurgeSession(ctx, session, keep); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("purge up to another's commit: %v, want ErrNotFound", err)
	}
	if err := b.PurgeSession(ctx, session, last); err != nil {
		t.Fatal(err)
	}
	if cs := mustRead(t, b, session, 0); len(cs) != 1 || cs[0].Seq != last || cs[0].Guard == 0 {
		t.Errorf("after the purge: %+v", cs)
	}
	if cs := mustRead(t, b, other, 0); len(cs) != 1 {
		t.Errorf("the other session: %+v", cs)
	}
	for _, seq := range []uint64{0, last - 1, last + 1} {
		if _, err := b.Commit(ctx, seq); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("commit %d: %v, want ErrNotFound", seq, err)
		}
	}
	if _, err := b.Append(ctx, session, events.WriterHarness, 0, facts("new")); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("append as if it were new: %v, want ErrLostRace", err)
	}
	mustAppend(t, b, session, last, "d")
}

// TestRepliesAreReadQuickly: a message that the leader is asked for is read without encoding/json, and as that reads
// it.
func TestRepliesAreReadQuickly(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	ctx := within(t, patience)
	seqs := []uint64{mustAppend(t, b, session, 0, "e1")}
	for _, body := range []string{"", "a body and no headers"} {
		ack, err := js.Publish(ctx, b.Cell().LogSubject(session, events.WriterHarness), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, ack.Sequence)
	}
	for _, seq := range seqs {
		if quick, same, err := b.ReadQuickly(ctx, b.Cell().LogStream(), seq); err != nil || !quick || !same {
			t.Errorf("message %d: read quickly: %v, as encoding/json does: %v, %v", seq, quick, same, err)
		}
	}
}

// TestSince: Since returns all commits of a harness's sessions, of every writer, that were stored at an instant or
// later.
func TestSince(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	other, second := events.Ref{Harness: "other", Session: "s"}, events.Ref{Harness: "h", Session: "s2"}
	mustAppend(t, b, session, 0, "a")
	second1 := mustAppend(t, b, second, 0, "b")
	from, err := b.Commit(background(t), second1)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, b, other, 0, "c")
	last := mustAppend(t, b, second, second1, "d")
	end, err := b.Commit(background(t), last)
	if err != nil {
		t.Fatal(err)
	}
	read := func(harness string, since time.Time) (ids string) {
		if err := b.Since(background(t), harness, since, func(c events.Commit) error {
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
		{"other", from.At, "c"}, {"nobody", from.At, ""},
	} {
		if got := read(c.harness, c.since); got != c.want {
			t.Errorf("%s since %s: %q, want %q", c.harness, c.since, got, c.want)
		}
	}
	mine := errors.New("enough")
	if err := b.Since(background(t), "h", from.At, func(events.Commit) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("ended with %v", err)
	}
}
