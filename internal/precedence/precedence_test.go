package precedence_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/precedence"
)

// waited is how long Yield takes.
func waited(ctx context.Context, o *precedence.Order) time.Duration {
	began := time.Now()
	o.Yield(ctx)
	return time.Since(began)
}

// TestYields: who works through what has come waits while something due is late, no longer, and never for ever.
func TestYields(t *testing.T) {
	const late, most = 5 * time.Millisecond, 100 * time.Millisecond
	for name, c := range map[string]struct {
		due  []time.Duration // each has been due for so long
		done time.Duration   // and is done after so long; 0: never
		want time.Duration
	}{
		"nothing is due":               {},
		"what is due is on time":       {due: []time.Duration{late}, done: time.Second},
		"it is late":                   {due: []time.Duration{late + 1}, done: 20 * time.Millisecond, want: 20 * time.Millisecond},
		"it is never done":             {due: []time.Duration{late + 1}, want: most},
		"the first is late, none else": {due: []time.Duration{time.Second, 0}, done: 3 * time.Millisecond, want: 3 * time.Millisecond},
		"it is due in a while":         {due: []time.Duration{-time.Second}, done: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o precedence.Order
				for _, d := range c.due {
					done := o.Begin(d)
					if c.done > 0 {
						time.AfterFunc(c.done, done)
					}
				}
				if got := waited(t.Context(), &o); got != c.want {
					t.Errorf("waited %v, want %v", got, c.want)
				}
				if o.Late() != (c.want == most) {
					t.Errorf("late: %v, after a wait of %v", o.Late(), c.want)
				}
				if o.Busy() != (c.want > 0) {
					t.Errorf("busy: %v, after a wait of %v", o.Busy(), c.want)
				}
			})
		})
	}
}

// TestYieldsTogether: all who wait go on at once, and a wait ends with its context.
func TestYieldsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o precedence.Order
		done := o.Begin(time.Second)
		all := make(chan time.Duration, 3)
		for range 2 {
			go func() { all <- waited(t.Context(), &o) }()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { all <- waited(short, &o) }()
		time.AfterFunc(10*time.Millisecond, done)
		for _, want := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond} {
			if got := <-all; got != want {
				t.Errorf("waited %v, want %v", got, want)
			}
		}
		if got := waited(t.Context(), &o); got != 0 || o.Waits() != 3 {
			t.Errorf("waited %v when all was done, %d times in all", got, o.Waits())
		}
	})
}

// TestBusyEnds: some time after the last who had to wait, nobody expects it any more.
func TestBusyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o precedence.Order
		done := o.Begin(time.Second)
		o.Yield(t.Context())
		done()
		if !o.Busy() {
			t.Error("not busy when somebody has just waited")
		}
		<-time.After(time.Second)
		if o.Busy() {
			t.Error("busy a second later")
		}
	})
}

// TestPatienceEnds: who makes room and it is of no use, because everything due takes long, falls behind for a while only:
// then most of the time is its own, however many do so, and a later rush is made room for again.
func TestPatienceEnds(t *testing.T) {
	const work, most = 10 * time.Millisecond, 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var o precedence.Order
		done := o.Begin(time.Second)
		share := func(span time.Duration) (part float64) {
			began, all := time.Now(), time.Duration(0)
			for time.Since(began) < span {
				all += waited(t.Context(), &o)
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
		o.Begin(time.Second)
		if got := share(most / 2); got < 0.8 {
			t.Errorf("waited for %.2f of a later rush", got)
		}
	})
}

// TestNobody: without an order everybody goes.
func TestNobody(t *testing.T) {
	var o *precedence.Order
	o.Begin(time.Hour)()
	if o.Yield(t.Context()); o.Busy() || o.Late() || o.Waits() > 0 {
		t.Error("busy")
	}
}
