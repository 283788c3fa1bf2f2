package control

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestStandstill: after a standstill all sessions count as heard from, whichever part of the process runs first.
// Without one they do not (T18).
func TestStandstill(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	r := events.Ref{Harness: "h", Session: "s"}
	h := newActivity(nil, began)
	for s := range 60 {
		h.runs(at(s))
		if s == 10 {
			h.record(r, at(s))
		}
	}
	if heard := h.of(r, at(60)); !heard.Equal(at(10)) {
		t.Errorf("heard of at %s, want 10 s", heard.Sub(began))
	}
	if heard := h.of(r, at(90)); !heard.Equal(at(90)) {
		t.Errorf("after a standstill: heard of at %s, want 90 s", heard.Sub(began))
	}
	h.record(r, at(91))
	h.runs(at(120))
	if heard := h.of(r, at(121)); !heard.Equal(at(120)) {
		t.Errorf("after another one: heard of at %s, want 120 s", heard.Sub(began))
	}
	h.all(at(122))
	if heard := h.of(r, at(123)); !heard.Equal(at(122)) {
		t.Errorf("when all were counted as heard of: heard of at %s, want 122 s", heard.Sub(began))
	}
}

// TestManySessionsCountAsActive: above the limit all sessions count as heard from, and the map does not grow.
func TestManySessionsCountAsActive(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	session := func(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint(i)} }
	h := newActivity(nil, began)
	for i := range pingsMax {
		h.record(session(i), began)
	}
	if len(h.last) != pingsMax {
		t.Errorf("%d are remembered, of %d", len(h.last), pingsMax)
	}
	now := began.Add(time.Second)
	h.record(session(pingsMax), now)
	if heard := h.of(session(0), now); !heard.Equal(now) || len(h.last) > pingsMax {
		t.Errorf("heard of at %s, %d are remembered", heard.Sub(began), len(h.last))
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
		for range yields { // a goroutine that does not wait would be past it by now
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
