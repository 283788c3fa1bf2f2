package gather_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/gather"
)

// airport records flights; each takes a second.
type airport struct {
	gather.Gatherer[string]
	mu      sync.Mutex
	flights [][]string
	under   int
}

func open(countMax, sizeMax int) *airport {
	a := &airport{}
	a.Gatherer = gather.Gatherer[string]{CountMax: countMax, SizeMax: sizeMax, Fly: a.fly,
		Key: func(s string) string { return s[:1] }, Size: func(s string) int { return len(s) }}
	return a
}

func (a *airport) fly(things []string) {
	a.mu.Lock()
	a.under++
	if a.under > 1 {
		panic("two flights at a time")
	}
	a.flights = append(a.flights, slices.Clone(things))
	a.mu.Unlock()
	<-time.After(time.Second)
	a.mu.Lock()
	a.under--
	a.mu.Unlock()
}

func (a *airport) want(t *testing.T, flights ...[]string) {
	t.Helper()
	<-time.After(time.Minute)
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if fmt.Sprint(a.flights) != fmt.Sprint(flights) {
		t.Errorf("flights %v, want %v", a.flights, flights)
	}
}

func TestTheFirstGoesAtOnceTheOthersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := open(10, 100)
		a.Join("a")
		synctest.Wait()
		for _, s := range []string{"b", "c", "d"} {
			a.Join(s)
		}
		a.want(t, []string{"a"}, []string{"b", "c", "d"})
		a.Join("e") // after a rest
		a.want(t, []string{"a"}, []string{"b", "c", "d"}, []string{"e"})
	})
}

func TestOneKeyOnceAFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := open(10, 100)
		a.Join("a")
		synctest.Wait()
		for _, s := range []string{"b1", "b2", "c", "b3", "a"} {
			a.Join(s)
		}
		a.want(t, []string{"a"}, []string{"b1", "c", "a"}, []string{"b2"}, []string{"b3"})
	})
	synctest.Test(t, func(t *testing.T) {
		a := open(10, 10)
		a.Join("a")
		synctest.Wait()
		for _, s := range []string{"b12345", "b12345", "c123"} { // what waits weighs nothing
			a.Join(s)
		}
		a.want(t, []string{"a"}, []string{"b12345", "c123"}, []string{"b12345"})
	})
}

func TestFlightsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := open(3, 10)
		a.Join("a")
		synctest.Wait()
		for _, s := range []string{"b", "c", "d", "e", "f23456", "g2345", "h23456789012345", "i"} {
			a.Join(s)
		}
		a.want(t, []string{"a"}, []string{"b", "c", "d"}, []string{"e", "f23456"}, []string{"g2345"}, []string{"h23456789012345"}, []string{"i"})
	})
}

func TestTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := open(10, 100)
		first := a.Join("a")
		synctest.Wait()
		b, c := a.Join("b"), a.Join("c")
		if first() {
			t.Error("what is under way was taken back")
		}
		for range 2 { // a second time changes nothing
			if !b() {
				t.Error("what waits was not taken back")
			}
		}
		a.want(t, []string{"a"}, []string{"c"})
		if c() {
			t.Error("what has flown was taken back")
		}
		alone := a.Join("d")
		synctest.Wait()
		last := a.Join("e")
		if !last() || alone() {
			t.Error("the only one that waits was not taken back")
		}
		a.want(t, []string{"a"}, []string{"c"}, []string{"d"})
	})
}

// TestEachOnce: whatever many do at the same time, each thing flies once or was taken back.
func TestEachOnce(t *testing.T) {
	const askers, rounds = 20, 200
	const last = "last"
	var mu sync.Mutex
	var landed sync.WaitGroup
	landed.Add(1)
	flown := map[string]int{}
	g := gather.Gatherer[string]{CountMax: 7, SizeMax: 1000, Key: func(s string) string { return s }, Size: func(string) int { return 1 },
		Fly: func(things []string) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range things {
				if flown[s]++; s == last {
					landed.Done()
				}
			}
		}}
	var wg sync.WaitGroup
	taken := make([]map[string]bool, askers)
	for i := range askers {
		wg.Go(func() {
			taken[i] = map[string]bool{}
			for k := range rounds {
				s := fmt.Sprintf("%d-%d", i, k)
				if leave := g.Join(s); k%3 == 0 && leave() {
					taken[i][s] = true
				}
			}
		})
	}
	wg.Wait()
	over := make(chan struct{})
	g.Join(last) // whatever waits goes before it, or with it
	go func() { landed.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("the last did not fly")
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range askers {
		for k := range rounds {
			s := fmt.Sprintf("%d-%d", i, k)
			want := 1
			if taken[i][s] {
				want = 0
			}
			if flown[s] != want {
				t.Errorf("%s flew %d times, want %d", s, flown[s], want)
			}
		}
	}
}

// TestOneFlightAtATime: also when several things are handed in before the first has set out.
func TestOneFlightAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := open(1, 100)
		things := []string{"a", "b", "c"}
		for _, s := range things {
			a.Join(s)
		}
		a.want(t, things[:1], things[1:2], things[2:])
	})
}
