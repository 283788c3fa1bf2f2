package batcher_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/batcher"
)

// recorder records batches. Each flush takes a second.
type recorder struct {
	batcher.Batcher[string]
	mu      sync.Mutex
	batches [][]string
	under   int
}

func newRecorder(countMax, sizeMax int) *recorder {
	a := &recorder{}
	a.Batcher = batcher.Batcher[string]{CountMax: countMax, SizeMax: sizeMax, Flush: a.flush,
		Key: func(s string) string { return s[:1] }, Size: func(s string) int { return len(s) }}
	return a
}

func (a *recorder) flush(items []string) {
	a.mu.Lock()
	a.under++
	if a.under > 1 {
		panic("two flushes at a time")
	}
	a.batches = append(a.batches, slices.Clone(items))
	a.mu.Unlock()
	<-time.After(time.Second)
	a.mu.Lock()
	a.under--
	a.mu.Unlock()
}

func (a *recorder) want(t *testing.T, batches ...[]string) {
	t.Helper()
	<-time.After(time.Minute)
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if fmt.Sprint(a.batches) != fmt.Sprint(batches) {
		t.Errorf("batches %v, want %v", a.batches, batches)
	}
}

func TestTheFirstIsFlushedAtOnceTheOthersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRecorder(10, 100)
		a.Add("a")
		synctest.Wait()
		for _, s := range []string{"b", "c", "d"} {
			a.Add(s)
		}
		a.want(t, []string{"a"}, []string{"b", "c", "d"})
		// after a pause
		a.Add("e")
		a.want(t, []string{"a"}, []string{"b", "c", "d"}, []string{"e"})
	})
}

func TestAKeyIsInABatchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRecorder(10, 100)
		a.Add("a")
		synctest.Wait()
		for _, s := range []string{"b1", "b2", "c", "b3", "a"} {
			a.Add(s)
		}
		a.want(t, []string{"a"}, []string{"b1", "c", "a"}, []string{"b2"}, []string{"b3"})
	})
	synctest.Test(t, func(t *testing.T) {
		a := newRecorder(10, 10)
		a.Add("a")
		synctest.Wait()
		// an item that waits has no size in this batch
		for _, s := range []string{"b12345", "b12345", "c123"} {
			a.Add(s)
		}
		a.want(t, []string{"a"}, []string{"b12345", "c123"}, []string{"b12345"})
	})
}

func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRecorder(3, 10)
		a.Add("a")
		synctest.Wait()
		for _, s := range []string{"b", "c", "d", "e", "f23456", "g2345", "h23456789012345", "i"} {
			a.Add(s)
		}
		a.want(t, []string{"a"}, []string{"b", "c", "d"}, []string{"e", "f23456"}, []string{"g2345"},
			[]string{"h23456789012345"}, []string{"i"})
	})
}

func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRecorder(10, 100)
		first := a.Add("a")
		synctest.Wait()
		b, c := a.Add("b"), a.Add("c")
		if first() {
			t.Error("an item was removed while it was flushed")
		}
		// a second time changes nothing
		for range 2 {
			if !b() {
				t.Error("an item that waits was not removed")
			}
		}
		a.want(t, []string{"a"}, []string{"c"})
		if c() {
			t.Error("an item was removed after it was flushed")
		}
		alone := a.Add("d")
		synctest.Wait()
		last := a.Add("e")
		if !last() || alone() {
			t.Error("the only item that waits was not removed")
		}
		a.want(t, []string{"a"}, []string{"c"}, []string{"d"})
	})
}

// TestEachOnce: many goroutines add and remove items at the same time. Each item is flushed once or was removed.
func TestEachOnce(t *testing.T) {
	const adders, rounds = 20, 200
	const last = "last"
	var mu sync.Mutex
	var done sync.WaitGroup
	done.Add(1)
	flushed := map[string]int{}
	b := batcher.Batcher[string]{CountMax: 7, SizeMax: 1000, Key: func(s string) string { return s },
		Size: func(string) int { return 1 },
		Flush: func(items []string) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range items {
				if flushed[s]++; s == last {
					done.Done()
				}
			}
		}}
	var wg sync.WaitGroup
	removed := make([]map[string]bool, adders)
	for i := range adders {
		wg.Go(func() {
			removed[i] = map[string]bool{}
			for k := range rounds {
				s := fmt.Sprintf("%d-%d", i, k)
				if remove := b.Add(s); k%3 == 0 && remove() {
					removed[i][s] = true
				}
			}
		})
	}
	wg.Wait()
	over := make(chan struct{})
	// all items that wait are flushed before it, or with it
	b.Add(last)
	go func() { done.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("the last item was not flushed")
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range adders {
		for k := range rounds {
			s := fmt.Sprintf("%d-%d", i, k)
			want := 1
			if removed[i][s] {
				want = 0
			}
			if flushed[s] != want {
				t.Errorf("%s was flushed %d times, want %d", s, flushed[s], want)
			}
		}
	}
}

// TestOneFlushAtATime: several items are added before the first is flushed.
func TestOneFlushAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRecorder(1, 100)
		items := []string{"a", "b", "c"}
		for _, s := range items {
			a.Add(s)
		}
		a.want(t, items[:1], items[1:2], items[2:])
	})
}
