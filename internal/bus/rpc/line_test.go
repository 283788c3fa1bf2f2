package rpc

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestPlacesAreGivenBack: an asker without requests takes no memory, and the end waits for the last one only.
func TestPlacesAreGivenBack(t *testing.T) {
	p := newPlaces()
	ann, bob := signer(events.Asker{Class: "harness", ID: "ann"}), signer(events.Asker{Class: "harness", ID: "bob"})
	begun, open := make(chan bool, 100), make(chan bool)
	slow := job{run: func() { begun <- true; <-open }, refuse: func() { t.Error("a request is refused") }}
	// two of them wait
	for range askerAtOnceMax + 2 {
		if !p.enter(ann, slow) {
			t.Fatal("a request is refused")
		}
	}
	if !p.enter(bob, slow) {
		t.Fatal("a request is refused")
	}
	for range askerAtOnceMax + 3 {
		open <- true
	}
	for range askerAtOnceMax + 3 {
		<-begun
	}
	// the last requests give back their places when they have run
	for {
		p.mu.Lock()
		running, lines := p.running, len(p.lines)
		p.mu.Unlock()
		if running == 0 {
			if lines != 0 {
				t.Errorf("%d askers without a request are known", lines)
			}
			break
		}
	}
	if !p.enter(ann, slow) {
		t.Fatal("a request is refused")
	}
	<-begun
	end := p.end()
	select {
	case <-end:
		t.Error("it ended before the last request")
	default:
	}
	open <- true
	<-end
}

// TestQueuesOfAskersTakeTurns: all places are taken, and one asker has two waiting requests. Of the places that become
// free, it gets the first, and another asker that waits gets the next.
func TestQueuesOfAskersTakeTurns(t *testing.T) {
	p := newPlaces()
	who := func(n int) signer { return signer(events.Asker{Class: "harness", ID: fmt.Sprint(n)}) }
	begun, open := make(chan int, requestsAtOnceMax), make(chan bool)
	request := func(n int) {
		run := func() { begun <- n; <-open }
		if !p.enter(who(n), job{run: run, refuse: func() { t.Error("a request is refused") }}) {
			t.Fatal("a request is refused")
		}
	}
	for n := range requestsAtOnceMax {
		request(n % (requestsAtOnceMax / (askerAtOnceMax - 1)))
		<-begun
	}
	first, second := 1000, 1001
	for _, n := range []int{first, first, second} {
		request(n)
	}
	for i, want := range []int{first, second, first} {
		open <- true
		if got := <-begun; got != want {
			t.Errorf("place %d: a request of %d, want %d", i, got, want)
		}
	}
	for range requestsAtOnceMax {
		open <- true
	}
	<-p.end()
}
