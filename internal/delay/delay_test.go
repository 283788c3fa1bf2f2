package delay

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQueueIsASortedMap compares a queue with a map that is sorted at each step, over random histories with few keys
// and few instants, so that keys and instants meet.
func TestQueueIsASortedMap(t *testing.T) {
	type entry struct{ at, value int }
	instant := func(n int) time.Time { return time.Unix(int64(n), 0) }
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same histories in each run
		var q Queue[int, int]
		want := map[int]entry{}
		earliest := func() int {
			return slices.MinFunc(slices.Collect(maps.Values(want)), func(a, b entry) int {
				return cmp.Compare(a.at, b.at)
			}).at
		}
		for step := range 300 {
			key, at := r.IntN(40), r.IntN(60)
			switch r.IntN(10) {
			case 0, 1, 2, 3, 4:
				_, had := want[key]
				least := len(want) == 0 || at < earliest()
				want[key] = entry{at, step}
				if first := q.Set(key, instant(at), step); least && !first {
					t.Fatalf("seed %d, step %d: the earliest key is not the first", seed, step)
				} else if !had && first && at > earliest() {
					t.Fatalf("seed %d, step %d: the first key is not the earliest", seed, step)
				}
			case 5:
				delete(want, key)
				q.Remove(key)
			case 6:
				if r.IntN(20) == 0 {
					clear(want)
					q.Clear()
				}
			default:
				k, v, ok := q.Due(instant(at))
				if due := len(want) > 0 && earliest() <= at; ok != due || ok && want[k] != (entry{earliest(), v}) {
					t.Fatalf("seed %d, step %d: %d: %d %v, want %v", seed, step, k, v, ok, want)
				}
				if ok {
					delete(want, k)
				}
			}
			next, some := q.Next()
			if q.Len() != len(want) || some != (len(want) > 0) || some && !next.Equal(instant(earliest())) {
				t.Fatalf("seed %d, step %d: %d keys, next %v, want %v", seed, step, q.Len(), next, want)
			}
			value, due, ok := q.Get(key)
			if w, has := want[key]; ok != has || ok && (value != w.value || !due.Equal(instant(w.at))) {
				t.Fatalf("seed %d, step %d: %d has %d at %v, want %v", seed, step, key, value, due, w)
			}
		}
	}
}
