package bustest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
)

// Key is the key of a document.
const Key = "session.h.s"

// MustStore stores a document and returns its revision.
func MustStore(t testing.TB, b *bus.Bus, key, value string, rev uint64) uint64 {
	t.Helper()
	rev, err := b.KV.Store(Within(t, Patience), kv.State, key, []byte(value), rev)
	if err != nil {
		t.Fatalf("store %s: %v", key, err)
	}
	return rev
}

// StoreRace lets racers replace one document round after round; in each, exactly one may win.
func StoreRace(t *testing.T, buses []*bus.Bus, racers, rounds int) {
	t.Helper()
	rev := uint64(0)
	for round := range rounds {
		var wg sync.WaitGroup
		revs, errs := make([]uint64, racers), make([]error, racers)
		for i := range racers {
			wg.Go(func() {
				revs[i], errs[i] = buses[i%len(buses)].KV.Store(Within(t, Patience), kv.State, Key,
					fmt.Appendf(nil, "%d-%d", round, i), rev)
			})
		}
		wg.Wait()
		e, err := buses[0].KV.Load(Within(t, Patience), kv.State, Key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range racers {
			won := string(e.Value) == fmt.Sprintf("%d-%d", round, i)
			if won && (errs[i] != nil || revs[i] != e.Rev) || !won && !errors.Is(errs[i], bus.ErrLostRace) {
				t.Fatalf("round %d: racer %d got (%d, %v), but the key is %s at %d", round, i, revs[i], errs[i],
					e.Value, e.Rev)
			}
		}
		rev = e.Rev
	}
}
