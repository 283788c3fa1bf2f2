package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// waiting is a connection whose first append is under way for as long as nothing of the broker's is let through, so
// that what is appended meanwhile waits for it.
func waiting(t *testing.T) (b, witness *bus.Bus, p *proxy, release func()) {
	t.Helper()
	s := natstest.Start(t)
	witness = natstest.Bus(t, s, together)
	p = newProxy(t, s)
	b, err := bus.Open(background(t), bus.Config{URL: p.addr, Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	p.hold(false, true)
	ahead := events.Ref{Harness: "h", Session: "ahead"}
	first := b.AppendAsync(background(t), ahead, events.WriterHarness, 0, []events.Event{fact("ahead", ahead)})
	natstest.Until(t, "the first to land", func() bool { return len(mustRead(t, witness, ahead, 0)) == 1 })
	return b, witness, p, func() {
		t.Helper()
		p.hold(false, false)
		if seq, err := first.Wait(within(t, patience)); err != nil || seq != 1 {
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
				for k := range 2 { // two of them at the same place
					under[i][k] = b.AppendAsync(background(t), nth(i), events.WriterHarness, 0,
						[]events.Event{fact(fmt.Sprintf("%d-%d", i, k), nth(i))})
				}
			}
			if c.lose {
				mustAppend(t, witness, nth(late), 0, "theirs")
			}
			release()
			for i := range n {
				won, id := -1, "theirs"
				var place uint64
				for k := range 2 {
					seq, err := under[i][k].Wait(within(t, patience))
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
				cs := mustRead(t, witness, nth(i), 0)
				if len(cs) != 1 || cs[0].Events[0].ID != id || !cs[0].Guarded || cs[0].Guard != 0 ||
					won >= 0 && cs[0].Seq != place {
					t.Errorf("%d: the log has %+v, its writer was told %d", i, cs, place)
				}
			}
		})
	}
}

// TestBatchOfAppendsWasOne: the figures of the test above mean something.
func TestBatchOfAppendsWasOne(t *testing.T) {
	const n = 40
	s := natstest.Start(t)
	b := natstest.Bus(t, s, together)
	var wg sync.WaitGroup
	for round := range uint64(5) {
		for i := range n {
			wg.Go(func() {
				last := uint64(0)
				for _, c := range mustRead(t, b, nth(i), 0) {
					last = c.Seq
				}
				if _, err := b.Append(within(t, patience), nth(i), events.WriterHarness, last,
					[]events.Event{fact(fmt.Sprintf("%d-%d", i, round), nth(i))}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	_, js := outsider(t, s)
	if n := batches(t, js, "HF_LOG"); n == 0 {
		t.Error("nothing travelled together")
	}
	for i := range n {
		if cs := mustRead(t, b, nth(i), 0); len(cs) != 5 {
			t.Errorf("session %d has %d commits, want 5", i, len(cs))
		}
	}
}

// TestTakenBackIsNotStored: an append that has returned before it was sent is not sent behind its caller's back.
func TestTakenBackIsNotStored(t *testing.T) {
	b, witness, _, release := waiting(t)
	ctx, cancel := context.WithCancel(background(t))
	gone := b.AppendAsync(ctx, nth(1), events.WriterHarness, 0, []events.Event{fact("gone", nth(1))})
	stays := b.AppendAsync(background(t), nth(2), events.WriterHarness, 0, []events.Event{fact("stays", nth(2))})
	cancel()
	if _, err := gone.Wait(ctx); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("taken back: %v, want ErrUnreachable", err)
	}
	release()
	if _, err := stays.Wait(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if cs := mustRead(t, witness, nth(1), 0); len(cs) != 0 {
		t.Errorf("stored behind the caller's back: %+v", cs)
	}
}

// TestBatchOfAppendsAckLost: the batch is stored, only its acknowledgement is lost; each writer gets its place.
func TestBatchOfAppendsAckLost(t *testing.T) {
	const n = 40
	b, witness, p, release := waiting(t)
	under := make([]bus.Pending, n)
	for i := range n {
		under[i] = b.AppendAsync(background(t), nth(i), events.WriterHarness, 0,
			[]events.Event{fact(fmt.Sprint(i), nth(i))})
	}
	lost := p.lose(false, `"seq":(\d+) ?,"batch":`, 1, "x")
	release()
	receive(t, lost, "the answer to be lost")
	for i := range n {
		seq, err := under[i].Wait(within(t, patience))
		if cs := mustRead(t, witness, nth(i), 0); err != nil || len(cs) != 1 || cs[0].Seq != seq {
			t.Errorf("%d was told (%d, %v), the log has %+v", i, seq, err, cs)
		}
	}
}

// TestOthersLearnThatTheBrokerSyncs: the process that embeds the broker records in the layout that it syncs, and
// clients elsewhere read that.
func TestOthersLearnThatTheBrokerSyncs(t *testing.T) {
	s := natstest.Start(t)
	lazy := natstest.Bus(t, s)
	if _, err := lazy.LastSeq(within(t, patience)); err != nil || lazy.Together() {
		t.Errorf("a broker that does not sync: together %v, %v", lazy.Together(), err)
	}
	up, err := bus.Open(background(t), bus.Config{URL: s.URL(), Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Kill)
	if err := up.Ensure(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	other := busAt(t, s.URL())
	if _, err := other.LastSeq(within(t, patience)); err != nil || !other.Together() {
		t.Errorf("from elsewhere: together %v, %v", other.Together(), err)
	}
}
