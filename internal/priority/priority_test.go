package priority_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/priority"
)

// waited returns how long Yield blocks.
func waited(ctx context.Context, g *priority.Gate) time.Duration {
	began := time.Now()
	g.Yield(ctx)
	return time.Since(began)
}

// TestYields: Yield blocks while time-critical work is late, no longer, and never for ever.
func TestYields(t *testing.T) {
	const late, most = 5 * time.Millisecond, 100 * time.Millisecond
	for name, c := range map[string]struct {
		due  []time.Duration // each has been due for so long
		done time.Duration   // and is done after so long; 0: never
		want time.Duration
	}{
		"nothing is due":         {},
		"what is due is on time": {due: []time.Duration{late}, done: time.Second},
		"it is late": {due: []time.Duration{late + 1}, done: 20 * time.Millisecond,
			want: 20 * time.Millisecond},
		"it is never done": {due: []time.Duration{late + 1}, want: most},
		"the first is late, none else": {due: []time.Duration{time.Second, 0}, done: 3 * time.Millisecond,
			want: 3 * time.Millisecond},
		"it is due in a while": {due: []time.Duration{-time.Second}, done: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g priority.Gate
				for _, d := range c.due {
					done := g.Begin(d)
					if c.done > 0 {
						time.AfterFunc(c.done, done)
					}
				}
				if got := waited(t.Context(), &g); got != c.want {
					t.Errorf("waited %v, want %v", got, c.want)
				}
				if g.Late() != (c.want == most) {
					t.Errorf("late: %v, after a wait of %v", g.Late(), c.want)
				}
				if g.Busy() != (c.want > 0) {
					t.Errorf("busy: %v, after a wait of %v", g.Busy(), c.want)
				}
			})
		})
	}
}

// TestYieldsTogether: all waits end at the same time, and a wait ends with its context.
func TestYieldsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g priority.Gate
		done := g.Begin(time.Second)
		all := make(chan time.Duration, 3)
		for range 2 {
			go func() { all <- waited(t.Context(), &g) }()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { all <- waited(short, &g) }()
		time.AfterFunc(10*time.Millisecond, done)
		for _, want := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond} {
			if got := <-all; got != want {
				t.Errorf("waited %v, want %v", got, want)
			}
		}
		if got := waited(t.Context(), &g); got != 0 || g.Waits() != 3 {
			t.Errorf("waited %v when all was done, %d times in all", got, g.Waits())
		}
	})
}

// TestBusyEnds: a gate is not busy any more some time after the last wait.
func TestBusyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g priority.Gate
		done := g.Begin(time.Second)
		g.Yield(t.Context())
		done()
		if !g.Busy() {
			t.Error("not busy right after a wait")
		}
		<-time.After(time.Second)
		if g.Busy() {
			t.Error("busy a second later")
		}
	})
}

// TestTheBudgetIsLimited: batch work that yields without effect, because time-critical work takes long in any case,
// falls behind for a while only. After that it has most of the time, and it yields again to a later rush.
func TestTheBudgetIsLimited(t *testing.T) {
	const work, most = 10 * time.Millisecond, 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var g priority.Gate
		done := g.Begin(time.Second)
		share := func(span time.Duration) (part float64) {
			began, all := time.Now(), time.Duration(0)
			for time.Since(began) < span {
				all += waited(t.Context(), &g)
				<-time.After(work)
			}
			return float64(all) / float64(time.Since(began))
		}
		if got := share(most / 2); got < 0.8 {
			t.Errorf("waited for %.2f of a rush", got)
		}
		share(most)
		if got := share(time.Minute); got > 0.15 {
			t.Errorf("waited for %.2f of the time, when that had been of no use for long", got)
		}
		done()
		share(20 * most)
		g.Begin(time.Second)
		if got := share(most / 2); got < 0.8 {
			t.Errorf("waited for %.2f of a later rush", got)
		}
	})
}

// TestNil: a nil gate never blocks.
func TestNil(t *testing.T) {
	var g *priority.Gate
	g.Begin(time.Hour)()
	if g.Yield(t.Context()); g.Busy() || g.Late() || g.Waits() > 0 {
		t.Error("busy")
	}
}
