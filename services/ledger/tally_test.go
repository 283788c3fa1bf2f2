package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// counted returns what a ledger counts now. It compares it with what a ledger counts that begins now.
func (w *world) counted(l *Ledger) Tally {
	w.t.Helper()
	t, err := l.tally(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	fresh, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	want, err := fresh.tally(w.t.Context())
	if want.At = t.At; err != nil || !reflect.DeepEqual(t, want) {
		w.t.Errorf("what has changed gives %+v, all documents %+v, %v", t, want, err)
	}
	return t
}

// TestATallyFollowsDocuments: a ledger that reads what has changed counts what one counts that reads all documents:
// after changes, deletions and returns of documents.
func TestATallyFollowsDocuments(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	of := func(name string) events.Ref { return events.Ref{Harness: "h2", Session: name} }
	check := func(when, want string) {
		t.Helper()
		x := w.counted(l)
		got := fmt.Sprint(x.Sessions, x.Waiting, x.Parked, x.Ignored, x.Unread, x.Odd, x.Untaken, x.Stuck)
		if got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("a session that asks", "1 1 0 0 0 {0 []} {0 []} {0 []}")
	long := time.Unix(0, 0)
	w.forge(of("a"), func(st *session.State) { st.Epoch, st.Parked, st.Ignored.Count = 1, 2, 3 })
	w.forge(of("b"), func(st *session.State) { st.Epoch, st.Pending.Turn = 1, &session.PendingTurn{At: long} })
	w.forge(of("c"), func(st *session.State) { st.Epoch, st.Retry.State = 1, session.RetryAbandoned })
	check("more of them", "4 1 2 3 0 {1 [h2/a]} {1 [h2/b]} {1 [h2/c]}")
	w.forge(of("a"), func(st *session.State) { st.Parked = 0 })
	w.forge(of("b"), func(st *session.State) { st.Pending.Turn = nil })
	w.remove(of("c"))
	w.remove(ref)
	check("changed and removed", "2 0 0 3 0 {1 [h2/a]} {0 []} {0 []}")
	w.forge(of("c"), func(st *session.State) { st.Epoch = 1 })
	if _, err := w.bus.KV.Store(t.Context(), kv.State, events.SessionKey(of("d")), []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	check("one that is back, and one that cannot be read", "3 0 0 3 1 {1 [h2/a]} {0 []} {0 []}")
	w.remove(of("d"))
	w.remove(of("a"))
	check("the last", "2 0 0 0 0 {0 []} {0 []} {0 []}")
	// as if the bucket had been created again
	l.known.rev += 1000
	w.forge(of("e"), func(st *session.State) { st.Epoch = 1 })
	check("another bucket", "3 0 0 0 0 {0 []} {0 []} {0 []}")
	// as if the marker of a deletion had gone before it was read
	l.known.rolls.Put(events.SessionKey(of("f")), session.New(of("f")), nil)
	l.known.at = l.known.at.Add(-rollsKept)
	check("after a long pause", "3 0 0 0 0 {0 []} {0 []} {0 []}")
}

// remove deletes a document.
func (w *world) remove(r events.Ref) {
	w.t.Helper()
	e, err := w.bus.KV.Load(w.t.Context(), kv.State, events.SessionKey(r))
	if err == nil {
		err = w.bus.KV.Delete(w.t.Context(), kv.State, e.Key, e.Rev)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestATallyOfOrphans: a session is counted as one of a process that is gone if its owner has no lease. It is not if it
// was released, or its owner has begun, since the ledger looked.
func TestATallyOfOrphans(t *testing.T) {
	w := newWorld(t)
	released := events.Ref{Harness: "h1", Session: "s2"}
	w.open(ref)
	w.open(released)
	l := w.settle(Default())
	want := Some{Count: 2, Names: []string{"h1/s1", "h1/s2"}}
	if got := w.counted(l).Orphans; !reflect.DeepEqual(got, want) {
		t.Errorf("without a lease: %v, want %v", got, want)
	}
	gone, err := l.goneOwners(t.Context())
	if err != nil || len(gone) != 1 {
		t.Fatalf("owners without a lease: %v, %v", gone, err)
	}
	w.forge(released, func(st *session.State) { st.Owned = false })
	x, err := l.count(t.Context(), gone)
	if want := (Some{Count: 1, Names: []string{"h1/s1"}}); err != nil || !reflect.DeepEqual(x.Orphans, want) {
		t.Errorf("one was released since: %v, %v, want %v", x.Orphans, err, want)
	}
	key := events.HarnessLeaseKey("h1", "1")
	if _, err := w.bus.Leases.Acquire(t.Context(), key, []byte("{}"), time.Hour); err != nil {
		t.Fatal(err)
	}
	x, err = l.count(t.Context(), gone)
	if err != nil || x.Orphans.Count != 0 {
		t.Errorf("the owner has begun since: %v, %v, want none", x.Orphans, err)
	}
	if got := w.counted(l).Orphans; got.Count != 0 {
		t.Errorf("with a lease: %v, want none", got)
	}
}

// TestATallyOfWhatTheLogLacks: documents that have folded commits beyond the end of the log are counted, until they are
// replaced.
func TestATallyOfWhatTheLogLacks(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	if got := w.counted(l).Ahead; got.Count != 0 {
		t.Errorf("of a log that has everything: %v", got)
	}
	w.forge(ref, func(st *session.State) { st.Seq += 1000 })
	if got, want := w.counted(l).Ahead, (Some{Count: 1, Names: []string{"h1/s1"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("of a log without its end: %v, want %v", got, want)
	}
	w.forge(ref, func(st *session.State) { st.Seq -= 1000 })
	if got := w.counted(l).Ahead; got.Count != 0 {
		t.Errorf("of a document that was replaced: %v", got)
	}
}

// TestATallyIsStoredWhenItChanges: an unchanged tally is not stored again at once, a changed one and an unreadable one
// are.
func TestATallyIsStoredWhenItChanges(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	if _, err := LoadTally(t.Context(), w.bus.KV); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("before the first: %v", err)
	}
	store := func() (Tally, uint64) {
		t.Helper()
		if err := l.storeTally(t.Context()); err != nil {
			t.Fatal(err)
		}
		x, rev, err := loadTally(t.Context(), w.bus.KV)
		if err != nil {
			t.Fatal(err)
		}
		return x, rev
	}
	l.surveyOnce(t.Context())
	x, rev := store()
	if x.Sessions != 1 || x.Compared == nil || x.Compared.Documents != 1 || x.Compared.Wrong.Count != 0 {
		t.Errorf("stored %+v, %+v", x, x.Compared)
	}
	// it takes seconds until an unchanged one is stored for its age
	natstest.Until(t, "an unchanged tally to stand", func() bool {
		before := rev
		_, rev = store()
		return rev == before
	})
	// of another instant: half a minute ago, or of a clock that was set back since
	for _, ago := range []time.Duration{tallyKept, -time.Hour} {
		old, rev := store()
		old.At = old.At.Add(-ago)
		body, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := w.bus.KV.Store(t.Context(), kv.State, events.TallyKey, body, rev)
		if err != nil {
			t.Fatal(err)
		}
		if again, rev := store(); rev == stored {
			t.Errorf("a tally of %s ago stands: %+v", ago, again)
		}
	}
	_, rev = store()
	w.forge(events.Ref{Harness: "h2", Session: "new"}, func(st *session.State) { st.Epoch = 1 })
	after, changed := store()
	if changed == rev || after.Sessions != 2 {
		t.Errorf("after a change: %+v at %d, want another than %d", after, changed, rev)
	}
	if _, err := w.bus.KV.Store(t.Context(), kv.State, events.TallyKey, []byte("x"), changed); err != nil {
		t.Fatal(err)
	}
	if again, _ := store(); again.Sessions != 2 {
		t.Errorf("in place of one that cannot be read: %+v", again)
	}
}

// TestALedgerStoresItsTally: a ledger counts after its first comparison, and what changes later.
func TestALedgerStoresItsTally(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	natstest.Until(t, "the session to be counted", func() bool {
		x, err := LoadTally(t.Context(), w.bus.KV)
		return err == nil && x.Sessions == 1 && x.Waiting == 1 && x.Compared != nil
	})
	w.append(events.Ref{Harness: "h1", Session: "s2"}, events.SessionOpened{Incarnation: "1"})
	natstest.Until(t, "the next one to be counted", func() bool {
		x, err := LoadTally(t.Context(), w.bus.KV)
		return err == nil && x.Sessions == 2
	})
}

// TestRetentionOfWhatHasChanged: retention purges a session that was closed after the first pass has read all
// documents, and forgets one that it has purged.
func TestRetentionOfWhatHasChanged(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	l := w.settle(Default())
	pass := func(want int) {
		t.Helper()
		if n, err := l.retainAt(t.Context(), w.later(Default().ClosedKeptFor), false); n != want || err != nil {
			t.Errorf("purged %d, %v, want %d", n, err, want)
		}
	}
	pass(0)
	w.append(ref, events.SessionClosed{Reason: "finished"})
	if _, _, err := l.rebuildSession(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	pass(1)
	pass(0)
	if len(l.known.rolls.ended) != 0 {
		t.Errorf("it keeps %v of a session that is gone", l.known.rolls.ended)
	}
}

// TestSomeOf: a few names stand for all, of several harnesses if there are any.
func TestSomeOf(t *testing.T) {
	var names []string
	for i := range 2 * tallyNames {
		names = append(names, fmt.Sprintf("a/%02d", i))
	}
	got := SomeOf(append(names, "b/1"))
	if got.Count != 2*tallyNames+1 || len(got.Names) != tallyNames || got.Names[2] != "b/1" {
		t.Errorf("%+v", got)
	}
	if more := got.And([]string{"c/1"}); more.Count != got.Count+1 || more.Names[3] != "c/1" {
		t.Errorf("and another: %+v", more)
	}
	body, err := json.Marshal(SomeOf(nil))
	if err != nil || string(body) != `{"count":0}` {
		t.Errorf("none: %s, %v", body, err)
	}
}
