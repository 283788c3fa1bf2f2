package control

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestStandstill: after a standstill all sessions count as active, whichever part of the process runs first.
// Without one they do not (T18).
func TestStandstill(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	r := events.Ref{Harness: "h", Session: "s"}
	h := newActivity(nil, nil, began)
	for s := range 60 {
		h.runs(at(s))
		if s == 10 {
			h.record(r, at(s))
		}
	}
	if active := h.of(r, at(60)); !active.Equal(at(10)) {
		t.Errorf("active at %s, want 10 s", active.Sub(began))
	}
	if active := h.of(r, at(90)); !active.Equal(at(90)) {
		t.Errorf("after a standstill: active at %s, want 90 s", active.Sub(began))
	}
	h.record(r, at(91))
	h.runs(at(120))
	if active := h.of(r, at(121)); !active.Equal(at(120)) {
		t.Errorf("after another one: active at %s, want 120 s", active.Sub(began))
	}
	h.all(at(122))
	if active := h.of(r, at(123)); !active.Equal(at(122)) {
		t.Errorf("when all were counted as active of: active at %s, want 122 s", active.Sub(began))
	}
}

// TestAFloodOfPingsReachesNoOtherHarness: a harness that sends pings for sessions without number is remembered up to a
// limit, and makes only its own sessions count as active.
func TestAFloodOfPingsReachesNoOtherHarness(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	session := func(harness string, i int) events.Ref { return events.Ref{Harness: harness, Session: fmt.Sprint(i)} }
	h := newActivity(nil, nil, began)
	other, silent := session("h2", 1), session("h3", 1)
	h.record(other, began.Add(time.Millisecond))
	h.record(session("h3", 2), began)
	now := began.Add(time.Second)
	for i := range 2*pingsMax + 1 {
		h.record(session("h1", i), now)
		if h.count > pingsHarnessMax+2 || len(h.last["h1"].last)+2 != h.count {
			t.Fatalf("%d are remembered, %d of the flood", h.count, len(h.last["h1"].last))
		}
	}
	for r, want := range map[events.Ref]time.Time{other: began.Add(time.Millisecond), silent: began,
		session("h1", 0): now} {
		if active := h.of(r, now); !active.Equal(want) {
			t.Errorf("%s: active at %s, want %s", r, active.Sub(began), want.Sub(began))
		}
	}
}

// TestAFloodOfPingsByManyHarnesses: several harnesses that fill the whole memory are forgotten, the largest first, and
// a harness with few sessions is not.
func TestAFloodOfPingsByManyHarnesses(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := newActivity(nil, nil, began)
	few := events.Ref{Harness: "few", Session: "s"}
	h.record(few, began)
	now := began.Add(time.Second)
	for i := range pingsMax - 1 {
		h.record(events.Ref{Harness: fmt.Sprint("h", i%8), Session: fmt.Sprint(i)}, now)
	}
	// there is no room for it
	h.record(events.Ref{Harness: "few", Session: "another"}, now)
	if active := h.of(few, now); !active.Equal(began) || h.count >= pingsMax {
		t.Errorf("active at %s, %d are remembered", active.Sub(began), h.count)
	}
	for i := range 2 * pingsMax {
		h.record(events.Ref{Harness: fmt.Sprint("h", i%8), Session: fmt.Sprint(i)}, now)
		if h.count > pingsMax {
			t.Fatalf("%d are remembered", h.count)
		}
	}
	if active := h.of(few, now); !active.Equal(began) {
		t.Errorf("active at %s", active.Sub(began))
	}
	for i := range harnessesMax + 1 {
		h.record(events.Ref{Harness: fmt.Sprint("n", i), Session: "s"}, now)
	}
	if len(h.last) > harnessesMax || h.count > pingsMax {
		t.Errorf("%d sessions of %d harnesses are remembered", h.count, len(h.last))
	}
}

// TestRestored: the work after a reconnect is done once, and no look precedes it (T14).
func TestRestored(t *testing.T) {
	const checks, yields = 10, 1_000
	var l Link
	done := 0
	for restored := range uint64(3) {
		begun, on, coming, over := make(chan struct{}), make(chan struct{}), make(chan struct{}, checks),
			make(chan int, checks)
		check := func() {
			coming <- struct{}{}
			l.Restored(restored, func() bool {
				close(begun)
				<-on
				done++
				return true
			})
			over <- done
		}
		go check()
		if restored > 0 {
			<-begun
		}
		for range checks - 1 {
			go check()
		}
		for range checks {
			<-coming
		}
		// a goroutine that does not wait would be past it by now
		for range yields {
			runtime.Gosched()
		}
		if restored > 0 && len(over) > 0 {
			t.Fatalf("%d looked before it was done", len(over))
		}
		close(on)
		for range checks {
			if n := <-over; n != int(restored) {
				t.Fatalf("restored %d times, looked when that was seen to %d times", restored, n)
			}
		}
	}
}

// TestNotRestored: work after a reconnect that failed is tried again.
func TestNotRestored(t *testing.T) {
	var l Link
	tries := 0
	for range 4 {
		l.Restored(1, func() bool { tries++; return tries == 2 })
	}
	if tries != 2 {
		t.Errorf("tried %d times, want 2: the first failed", tries)
	}
}
