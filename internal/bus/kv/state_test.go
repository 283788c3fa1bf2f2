package kv_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func TestStoreAndLoad(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := b.KV.Load(ctx, kv.State, bustest.Key); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("load of nothing: %v, want ErrNotFound", err)
	}
	first := bustest.MustStore(t, b, bustest.Key, "one", 0)
	e, err := b.KV.Load(ctx, kv.State, bustest.Key)
	if err != nil || e.Key != bustest.Key || string(e.Value) != "one" || e.Rev != first || e.At.IsZero() || e.Deleted {
		t.Fatalf("load = %+v, %v", e, err)
	}
	second := bustest.MustStore(t, b, bustest.Key, "two", first)
	for name, rev := range map[string]uint64{"as new": 0, "at the old revision": first,
		"at a revision to come": second + 1} {
		if _, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("three"), rev); !errors.Is(err, bus.ErrLostRace) {
			t.Errorf("store %s: %v, want ErrLostRace", name, err)
		}
	}
	if again := bustest.MustStore(t, b, bustest.Key, "two", first); again != second {
		t.Errorf("the same again = %d, want %d: only the acknowledgement was lost", again, second)
	}
	if _, err := b.KV.Load(ctx, kv.Leases, bustest.Key); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("the other bucket has it too: %v", err)
	}
}

func TestDeleteAndCreateAgain(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	first := bustest.MustStore(t, b, bustest.Key, "one", 0)
	if err := b.KV.Delete(ctx, kv.State, bustest.Key, first+1); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("delete at another revision: %v, want ErrLostRace", err)
	}
	// the second finds it done
	for range 2 {
		if err := b.KV.Delete(ctx, kv.State, bustest.Key, first); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.KV.Load(ctx, kv.State, bustest.Key); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("load of a deleted key: %v, want ErrNotFound", err)
	}
	if _, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("late"), first); !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("store in place of what was deleted: %v, want ErrLostRace", err)
	}
	bustest.MustStore(t, b, bustest.Key, "again", 0)
	if err := b.KV.Delete(ctx, kv.State, "session.h.never", 7); err != nil {
		t.Errorf("delete of a key that is gone without a trace: %v", err)
	}
}

func TestStoreRaceHasOneWinner(t *testing.T) {
	s := natstest.Start(t)
	bustest.StoreRace(t, []*bus.Bus{natstest.Bus(t, s), natstest.Bus(t, s)}, bustest.RacersN, bustest.RoundsN)
}

func TestViewIsGuardedByItsDocument(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	first := bustest.MustStore(t, b, bustest.Key, "one", 0)
	view := kv.View{Key: "work.h.s", Value: []byte("of one"), GuardKey: bustest.Key, GuardRev: first}
	if _, err := b.KV.StoreView(ctx, view).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.KV.StoreView(ctx, view).Wait(ctx); err != nil {
		t.Errorf("the same again: %v, want success while the document stands", err)
	}
	second := bustest.MustStore(t, b, bustest.Key, "two", first)
	for name, v := range map[string]kv.View{
		"of an old document":      {Key: "work.h.s", Value: []byte("of one"), GuardKey: bustest.Key, GuardRev: first},
		"deletion by an old one":  {Key: "work.h.s", GuardKey: bustest.Key, GuardRev: first},
		"of a document not there": {Key: "work.h.x", Value: []byte("x"), GuardKey: "session.h.x", GuardRev: 3},
	} {
		if _, err := b.KV.StoreView(ctx, v).Wait(ctx); !errors.Is(err, bus.ErrLostRace) {
			t.Errorf("view %s: %v, want ErrLostRace", name, err)
		}
	}
	if e, err := b.KV.Load(ctx, kv.State, "work.h.s"); err != nil || string(e.Value) != "of one" {
		t.Errorf("view = %+v, %v", e, err)
	}
	if _, err := b.KV.StoreView(ctx, kv.View{Key: "work.h.s", GuardKey: bustest.Key,
		GuardRev: second}).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.KV.Load(ctx, kv.State, "work.h.s"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a deleted view: %v, want ErrNotFound", err)
	}
}

func TestViewExpires(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	rev := bustest.MustStore(t, b, bustest.Key, "one", 0)
	// long enough to be read before it expires
	v := kv.View{Key: "blocker.h.s.s.p", Value: []byte("closed"), GuardKey: bustest.Key, GuardRev: rev,
		TTL: 4 * time.Second}
	if _, err := b.KV.StoreView(ctx, v).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.KV.Load(ctx, kv.State, v.Key); err != nil {
		t.Fatalf("before its time: %v", err)
	}
	natstest.Until(t, "the view to expire", func() bool {
		_, err := b.KV.Load(ctx, kv.State, v.Key)
		return errors.Is(err, bus.ErrNotFound)
	})
}

func TestList(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	keys := func(filter string) []string {
		var got []string
		if err := b.KV.List(ctx, kv.State, filter, func(e kv.Entry) error {
			got = append(got, e.Key+"="+string(e.Value))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := keys(">"); len(got) != 0 {
		t.Errorf("an empty bucket lists %v", got)
	}
	rev := bustest.MustStore(t, b, "session.h.a", "1", 0)
	bustest.MustStore(t, b, "session.h.b", "1", 0)
	bustest.MustStore(t, b, "session.i.c", "1", 0)
	gone := bustest.MustStore(t, b, "session.h.d", "1", 0)
	bustest.MustStore(t, b, "session.h.a", "2", rev)
	if err := b.KV.Delete(ctx, kv.State, "session.h.d", gone); err != nil {
		t.Fatal(err)
	}
	if got := keys(events.SessionKeys("h")); !slices.Equal(got, []string{"session.h.b=1", "session.h.a=2"}) {
		t.Errorf("of one harness: %v", got)
	}
	if got := keys(events.SessionKeys("")); len(got) != 3 {
		t.Errorf("of all: %v", got)
	}
	enough := errors.New("enough")
	if err := b.KV.List(ctx, kv.State, ">", func(kv.Entry) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("list = %v, want the caller's error", err)
	}
}

// TestListNewest: the newest entries are read first, no more than needed, and each once. An entry that changes
// meanwhile comes last.
func TestListNewest(t *testing.T) {
	const n = 700
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	revs := make([]uint64, n)
	for i := range revs {
		revs[i] = bustest.MustStore(t, b, fmt.Sprintf("session.h.%d", i), "1", 0)
	}
	read := func(enough int, during func(keys int)) (map[string]int, string, bool) {
		keys, last := map[string]int{}, ""
		isEnough := func() bool { return len(keys) >= enough }
		older, err := b.KV.ListNewest(ctx, kv.State, events.SessionKeys("h"), isEnough, func(e kv.Entry) error {
			keys[e.Key]++
			last = e.Key
			during(len(keys))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return keys, last, older
	}
	quiet := func(int) {}
	for enough, want := range map[int]int{0: 0, 1: 256, 256: 256, 257: n, 10 * n: n} {
		keys, _, older := read(enough, quiet)
		if len(keys) != want || want > 0 && keys[fmt.Sprintf("session.h.%d", n-1)] != 1 || older != (want < n) {
			t.Errorf("%d are enough: %d listed, want %d; older: %t", enough, len(keys), want, older)
		}
	}
	keys, last, older := read(10*n, func(keys int) {
		if keys == 1 {
			bustest.MustStore(t, b, "session.h.0", "2", revs[0])
		}
	})
	if len(keys) != n || keys["session.h.0"] != 1 || last != "session.h.0" || older {
		t.Errorf("%d listed, the last one %s, %d times; older: %t", len(keys), last, keys["session.h.0"], older)
	}
	if older, err := b.KV.ListNewest(ctx, kv.State, events.SessionKeys("other"), func() bool { return false },
		func(kv.Entry) error { return errors.New("an entry") }); err != nil || older {
		t.Errorf("of a harness without a session: older %t, %v", older, err)
	}
}

// TestList100000 also fills the window of pipelined stores many times over. On any machine, reading them all takes less
// time than writing them did.
func TestList100000(t *testing.T) {
	const n = 100_000
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	value := make([]byte, 400)
	pending := make([]bus.Pending, n)
	started := time.Now()
	for i := range pending {
		pending[i] = b.KV.StoreAsync(ctx, kv.State, fmt.Sprintf("session.h.%d", i), value, 0)
	}
	for i, p := range pending {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatalf("store %d: %v", i, err)
		}
	}
	stored := time.Since(started)
	natstest.RetryStalled(t, stored/10, func() error {
		started, seen := time.Now(), map[string]bool{}
		if err := b.KV.List(ctx, kv.State, events.SessionKeys("h"), func(e kv.Entry) error {
			seen[e.Key] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(started)
		t.Logf("stored in %s, listed in %s", stored, took)
		if len(seen) != n {
			t.Fatalf("%d keys listed, %d stored", len(seen), n)
		}
		if took > stored {
			return fmt.Errorf("listed in %s, stored in %s", took, stored)
		}
		return nil
	})
}
