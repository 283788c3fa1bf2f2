package log_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// waiting is a connection whose first append is under way for as long as nothing of the broker's is let through, so
// that what is appended meanwhile waits for it.
func waiting(t *testing.T) (b, witness *bus.Bus, p *bustest.Proxy, release func()) {
	t.Helper()
	s := natstest.Start(t, natstest.Lazy())
	witness = natstest.Bus(t, s, bustest.Together)
	p = bustest.NewProxy(t, s)
	b, err := bus.Open(bustest.Background(t), bus.Config{URL: p.Addr, Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Abort)
	p.Hold(false, true)
	ahead := events.Ref{Harness: "h", Session: "ahead"}
	first := b.Log.AppendAsync(bustest.Background(t), ahead, events.WriterHarness, 0,
		[]events.Event{bustest.Fact("ahead", ahead)})
	natstest.Until(t, "the first to land", func() bool { return len(bustest.MustRead(t, witness, ahead, 0)) == 1 })
	return b, witness, p, func() {
		t.Helper()
		p.Hold(false, false)
		if seq, err := first.Wait(bustest.Within(t, bustest.Patience)); err != nil || seq != 1 {
			t.Errorf("the first: %d, %v", seq, err)
		}
	}
}

func nth(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint(i)} }

// TestAppendsTravelTogether: appends during another one are sent as one batch, each at its own place, under its own
// guard. Of two at the same place one wins, though the broker would take both in one batch; a lost race concerns its
// writer alone.
func TestAppendsTravelTogether(t *testing.T) {
	const n, late = 40, 7
	for _, c := range []struct {
		name string
		lose bool // one of them is late, so the broker refuses the batch
	}{{"all in time", false}, {"one too late", true}} {
		t.Run(c.name, func(t *testing.T) {
			b, witness, _, release := waiting(t)
			under := make([][2]bus.Pending, n)
			for i := range n {
				// two of them at the same place
				for k := range 2 {
					under[i][k] = b.Log.AppendAsync(bustest.Background(t), nth(i), events.WriterHarness, 0,
						[]events.Event{bustest.Fact(fmt.Sprintf("%d-%d", i, k), nth(i))})
				}
			}
			if c.lose {
				bustest.MustAppend(t, witness, nth(late), 0, "theirs")
			}
			release()
			for i := range n {
				won, id := -1, "theirs"
				var place uint64
				for k := range 2 {
					seq, err := under[i][k].Wait(bustest.Within(t, bustest.Patience))
					switch {
					case err == nil && won < 0:
						won, place, id = k, seq, fmt.Sprintf("%d-%d", i, k)
					case !errors.Is(err, bus.ErrLostRace):
						t.Errorf("%d-%d: %d, %v; %d has won", i, k, seq, err, won)
					}
				}
				if lost := c.lose && i == late; won < 0 != lost {
					t.Errorf("%d: %d won", i, won)
				}
				cs := bustest.MustRead(t, witness, nth(i), 0)
				if len(cs) != 1 || cs[0].Events[0].ID != id || !cs[0].Guarded || cs[0].Guard != 0 ||
					won >= 0 && cs[0].Seq != place {
					t.Errorf("%d: the log has %+v, its writer got %d", i, cs, place)
				}
			}
		})
	}
}

// TestBatchOfAppendsWasOne: the figures of the test above mean something.
func TestBatchOfAppendsWasOne(t *testing.T) {
	const n = 40
	s := natstest.Start(t, natstest.Lazy())
	b := natstest.Bus(t, s, bustest.Together)
	var wg sync.WaitGroup
	for round := range uint64(5) {
		for i := range n {
			wg.Go(func() {
				last := uint64(0)
				for _, c := range bustest.MustRead(t, b, nth(i), 0) {
					last = c.Seq
				}
				if _, err := b.Log.Append(bustest.Within(t, bustest.Patience), nth(i), events.WriterHarness, last,
					[]events.Event{bustest.Fact(fmt.Sprintf("%d-%d", i, round), nth(i))}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	_, js := bustest.Outsider(t, s)
	if n := bustest.Batches(t, js, "HF_LOG"); n == 0 {
		t.Error("nothing travelled together")
	}
	for i := range n {
		if cs := bustest.MustRead(t, b, nth(i), 0); len(cs) != 5 {
			t.Errorf("session %d has %d commits, want 5", i, len(cs))
		}
	}
}

// TestTakenBackIsNotStored: an append that has returned before it was sent is not sent behind its caller's back.
func TestTakenBackIsNotStored(t *testing.T) {
	b, witness, _, release := waiting(t)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	gone := b.Log.AppendAsync(ctx, nth(1), events.WriterHarness, 0, []events.Event{bustest.Fact("gone", nth(1))})
	stays := b.Log.AppendAsync(bustest.Background(t), nth(2), events.WriterHarness, 0,
		[]events.Event{bustest.Fact("stays", nth(2))})
	cancel()
	if _, err := gone.Wait(ctx); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("taken back: %v, want ErrUnreachable", err)
	}
	release()
	if _, err := stays.Wait(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	if cs := bustest.MustRead(t, witness, nth(1), 0); len(cs) != 0 {
		t.Errorf("stored behind the caller's back: %+v", cs)
	}
}

// TestBatchOfAppendsAckLost: the batch is stored, only its acknowledgement is lost; each writer gets its place.
func TestBatchOfAppendsAckLost(t *testing.T) {
	const n = 40
	b, witness, p, release := waiting(t)
	under := make([]bus.Pending, n)
	for i := range n {
		under[i] = b.Log.AppendAsync(bustest.Background(t), nth(i), events.WriterHarness, 0,
			[]events.Event{bustest.Fact(fmt.Sprint(i), nth(i))})
	}
	lost := p.Lose(false, `"seq":(\d+) ?,"batch":`, 1, "x")
	release()
	bustest.Receive(t, lost, "the answer to be lost")
	for i := range n {
		seq, err := under[i].Wait(bustest.Within(t, bustest.Patience))
		if cs := bustest.MustRead(t, witness, nth(i), 0); err != nil || len(cs) != 1 || cs[0].Seq != seq {
			t.Errorf("%d got (%d, %v), the log has %+v", i, seq, err, cs)
		}
	}
}

// TestAppendsToAnotherLogTravelTogether: of appends that are sent as one batch on a newer connection, those whose log
// was compared on an older one are sent only if the log has their writer's last commit.
func TestAppendsToAnotherLogTravelTogether(t *testing.T) {
	const n = 40
	b, witness, _, release := waiting(t)
	var appends []bus.Pending
	for i := range n {
		r := nth(i)
		bustest.MustAppend(t, witness, r, 0, "first")
		last := log.LastOf(&bustest.MustRead(t, witness, r, 0)[0])
		if i%2 == 0 {
			last.First, last.On = "lost", last.On+1
		}
		appends = append(appends, last.Append(bustest.Background(t), b.Log, r, events.WriterHarness,
			[]events.Event{bustest.Fact(fmt.Sprint("mine", i), r)}))
	}
	release()
	for i, p := range appends {
		_, err := p.Wait(bustest.Within(t, bustest.Patience))
		if lost := errors.Is(err, bus.ErrLostRace); lost != (i%2 == 0) || !lost && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}
