package hint_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestHintsAreSubscribedOrNot: a subscription that the broker has not confirmed, or that has no subject, is an error.
func TestHintsAreSubscribedOrNot(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	p.Hold(true, true)
	if err := b.Hints.OnNudge(bustest.Within(t, 200*time.Millisecond), "h", func(string, uint64) {}); !errors.Is(err,
		bus.ErrUnreachable) {
		t.Errorf("without the broker's answer: %v, want ErrUnreachable", err)
	}
	p.Hold(false, false)
}

// TestProgressOfNoSession: one whose subject names no session is left out, and those behind it are heard.
func TestProgressOfNoSession(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	seen := make(chan events.Ref, 10)
	if err := b.Hints.OnProgress(bustest.Within(t, bustest.Patience), func(r events.Ref) { seen <- r }); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []string{"=zz.s", "h.=zz"} {
		if err := nc.Publish("hf.progress."+tokens, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b.Hints.Progress(bustest.Session)
	if got := bustest.Receive(t, seen, "a sign of life"); got != bustest.Session {
		t.Errorf("heard %+v first", got)
	}
}
