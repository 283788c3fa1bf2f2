package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestALeaseKeepsItsValue: a renewal without a value keeps the one that there is, and a lease that was lost or
// given back is not renewed any more.
func TestALeaseKeepsItsValue(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	lease, err := b.Leases.Acquire(ctx, "harness.h.1", []byte("first"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range [][]byte{nil, []byte("second"), nil} {
		if err := lease.Renew(ctx, value); err != nil {
			t.Fatal(err)
		}
		want := "first"
		if value != nil {
			want = "second"
		}
		if e, err := b.KV.Load(ctx, kv.Leases, "harness.h.1"); err != nil || value != nil && string(e.Value) != want {
			t.Errorf("%s, %v", e.Value, err)
		}
	}
	if e, err := b.KV.Load(ctx, kv.Leases, "harness.h.1"); err != nil || string(e.Value) != "second" {
		t.Errorf("after a renewal without a value: %s, %v", e.Value, err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lease.Renew(ctx, []byte("late")); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("renewed after it was given back: %v", err)
	}
	if _, err := b.KV.Load(ctx, kv.Leases, "harness.h.1"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a lease that was given back: %v", err)
	}
}

// TestTicketsRiseAndAreNeverDrawnTwice: by several processes, and by several goroutines of one process. The tickets are
// ahead of the clock, which therefore does not make them differ.
func TestTicketsRiseAndAreNeverDrawnTwice(t *testing.T) {
	_, a, b := bustest.Pair(t)
	if _, err := a.KV.Store(bustest.Background(t), kv.Leases, events.TicketKey("h"),
		[]byte(`{"incarnation":"5000000000000000"}`), 0); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	drawn := map[uint64]bool{}
	for i := range 6 {
		by := []*bus.Bus{a, b}[i%2]
		wg.Go(func() {
			last := uint64(0)
			for range 20 {
				n, err := by.Leases.Ticket(bustest.Background(t), "h", 0)
				mu.Lock()
				if err != nil || n <= last || drawn[n] {
					t.Errorf("drew %d after %d, drawn before: %v, %v", n, last, drawn[n], err)
				}
				drawn[n], last = true, n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if _, err := a.Leases.Ticket(bustest.Background(t), "", 0); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("a ticket without a name: %v", err)
	}
}

// loseTickets deletes the bucket of leases, and has it made again. A stream that is made again at once can have the
// messages of the deleted one, so this is repeated until it has none.
func loseTickets(t *testing.T, s *embed.Server, b *bus.Bus) {
	t.Helper()
	ctx := bustest.Within(t, bustest.Patience)
	_, js := bustest.Outsider(t, s)
	natstest.Until(t, "the tickets to be lost", func() bool {
		if err := js.DeleteStream(ctx, "KV_hf_leases"); err != nil {
			t.Fatal(err)
		}
		if err := b.Layout.Ensure(ctx); err != nil {
			t.Fatal(err)
		}
		_, err := b.KV.Load(ctx, kv.Leases, events.TicketKey("h"))
		return errors.Is(err, bus.ErrNotFound)
	})
}

// TestTicketsRiseAfterTheirBucketIsLost: the next one is drawn from an empty bucket, and is greater than all before it.
func TestTicketsRiseAfterTheirBucketIsLost(t *testing.T) {
	s, a, b := bustest.Pair(t)
	ctx := bustest.Within(t, bustest.Patience)
	var was uint64
	for range 3 {
		for _, by := range []*bus.Bus{a, b} {
			n, err := by.Leases.Ticket(ctx, "h", 0)
			if err != nil || n <= was {
				t.Fatalf("drew %d after %d: %v", n, was, err)
			}
			was = n
		}
		loseTickets(t, s, a)
		if n, own, err := a.Leases.Drawn(ctx, "h"); n != 0 || own || err != nil {
			t.Errorf("the bucket was lost, and has %d, %v, %v", n, own, err)
		}
	}
}

// TestDrawn: the newest ticket, and which connection has drawn it.
func TestDrawn(t *testing.T) {
	_, a, b := bustest.Pair(t)
	ctx := bustest.Within(t, bustest.Patience)
	for _, by := range []*bus.Bus{a, b, a} {
		n, err := by.Leases.Ticket(ctx, "h", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, asks := range []*bus.Bus{a, b} {
			if got, own, err := asks.Leases.Drawn(ctx, "h"); got != n || own != (asks == by) || err != nil {
				t.Errorf("%d, own: %v, %v; want %d, own: %v", got, own, err, n, asks == by)
			}
		}
	}
	e, err := a.KV.Load(ctx, kv.Leases, events.TicketKey("h"))
	if err != nil {
		t.Fatal(err)
	}
	// as processes write it that draw tickets in the older form
	for _, by := range []*bus.Bus{a, b} {
		if e.Rev, err = a.KV.Store(ctx, kv.Leases, e.Key, []byte(by.Instance()), e.Rev); err != nil {
			t.Fatal(err)
		}
		if n, own, err := a.Leases.Drawn(ctx, "h"); n != e.Rev || own != (by == a) || err != nil {
			t.Errorf("%d, own: %v, %v; want %d, own: %v", n, own, err, e.Rev, by == a)
		}
	}
}

func TestLeaseIsKeptWhileItIsRenewedAndExpiresThen(t *testing.T) {
	// it mostly waits
	t.Parallel()
	natstest.RetryStalled(t, bustest.Standstill, func() error { return keptWhileRenewed(t) })
}

func keptWhileRenewed(t *testing.T) error {
	const ttl = 2 * time.Second
	_, a, b := bustest.Pair(t)
	updates, _ := bustest.Watching(t, b, kv.Leases)
	bustest.Expect(t, updates, "ready")
	l := bustest.Acquire(t, a, bustest.LeaseKey, ttl)
	bustest.Expect(t, updates, bustest.LeaseKey+"=mine")
	if _, err := b.Leases.Acquire(bustest.Background(t), bustest.LeaseKey, []byte("theirs"),
		time.Second); !errors.Is(err,
		bus.ErrExists) {
		t.Fatalf("another incarnation acquired it: %v", err)
	}
	ctx, cancel := context.WithCancel(bustest.Background(t))
	defer cancel()
	lost := l.Keep(ctx, 0, func() []byte { return []byte("still mine") })
	began := time.Now()
	for time.Since(began) < 5*ttl/2 {
		if u := bustest.Receive(t, updates, "a renewal"); bustest.Text(u) != bustest.LeaseKey+"=still mine" {
			return fmt.Errorf("while it is renewed the watch shows %s", bustest.Text(u))
		}
	}
	cancel()
	if err, open := <-lost; open {
		return fmt.Errorf("a lease whose keeping was ended is called lost: %w", err)
	}
	renewed := l.LastRenewed()
	for u := bustest.Receive(t, updates, "the expiry"); !u.Expired; u = bustest.Receive(t, updates, "the expiry") {
		if u.Deleted {
			t.Fatalf("%s: want it to expire", bustest.Text(u))
		}
	}
	if after := time.Since(renewed); after < ttl || after > ttl+time.Second {
		return fmt.Errorf("it expired %s after the last renewal, want %s and at most a second more", after, ttl)
	}
	if err := l.Renew(bustest.Background(t), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("an expired lease was renewed: %v", err)
	}
	bustest.Acquire(t, b, bustest.LeaseKey, ttl)
	return nil
}

func TestLeaseIsNotRenewedOverSomebodyElse(t *testing.T) {
	_, a, b := bustest.Pair(t)
	l := bustest.Acquire(t, a, bustest.LeaseKey, 4*bustest.Patience)
	e, err := b.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Store(t, b, kv.Leases, bustest.LeaseKey, "theirs", e.Rev)
	if err := l.Renew(bustest.Background(t), []byte("mine again")); !errors.Is(err, bus.ErrLeaseLost) {
		t.Fatalf("renewed over another's write: %v", err)
	}
	if err := l.Release(bustest.Background(t)); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("released another's: %v", err)
	}
	e, err = b.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
	if err != nil || string(e.Value) != "theirs" {
		t.Errorf("there is %q, %v; want what the other wrote", e.Value, err)
	}
}

func TestLeaseReleasedIsFreeAtOnceAndNotCalledExpired(t *testing.T) {
	_, a, b := bustest.Pair(t)
	updates, _ := bustest.Watching(t, b, kv.Leases)
	bustest.Expect(t, updates, "ready")
	l := bustest.Acquire(t, a, bustest.LeaseKey, 4*bustest.Patience)
	bustest.Expect(t, updates, bustest.LeaseKey+"=mine")
	if err := l.Release(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(bustest.Background(t), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("renewed after release: %v", err)
	}
	bustest.Expect(t, updates, bustest.LeaseKey+" deleted")
	bustest.Acquire(t, b, bustest.LeaseKey, 4*bustest.Patience)
	bustest.Expect(t, updates, bustest.LeaseKey+"=mine")
}

func TestLeaseNeedsATTLThatTheBrokerKnows(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	if _, err := b.Leases.Acquire(bustest.Background(t), bustest.LeaseKey, nil, 999*time.Millisecond); !errors.Is(err,
		events.ErrMalformed) {
		t.Errorf("acquired for less than a second: %v", err)
	}
}

// The broker has stored the renewal and its answer never comes: the lease is still ours, and it is stored once.
func TestLeaseRenewalWhoseAcknowledgementIsLostCounts(t *testing.T) {
	s := natstest.Start(t)
	other := natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	l := bustest.Acquire(t, b, bustest.LeaseKey, 4*bustest.Patience)
	p.Hold(false, true)
	renewed := make(chan error, 1)
	go func() { renewed <- l.Renew(bustest.Background(t), []byte("renewed")) }()
	var stored kv.Entry
	natstest.Until(t, "the renewal to be stored", func() bool {
		var err error
		stored, err = other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
		return err == nil && string(stored.Value) == "renewed"
	})
	p.Cut()
	p.Hold(false, false)
	if err := bustest.Receive(t, renewed, "the renewal's result"); err != nil {
		t.Fatalf("a renewal that was stored is called %v", err)
	}
	if e, err := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey); err != nil || e.Rev != stored.Rev {
		t.Errorf("it was stored at %d, and again at %d, %v", stored.Rev, e.Rev, err)
	}
	if err := l.Renew(bustest.Background(t), nil); err != nil {
		t.Fatalf("the next renewal: %v", err)
	}
}

// TestReleaseBehindARenewalThatWasNotAwaited: the process ends while a renewal is in flight. The broker has stored it,
// and the lease is gone all the same; one of another process stays.
func TestReleaseBehindARenewalThatWasNotAwaited(t *testing.T) {
	for _, another := range []bool{false, true} {
		s := natstest.Start(t)
		other := natstest.Bus(t, s)
		p := bustest.NewProxy(t, s)
		b := bustest.BusAt(t, p.Addr)
		l := bustest.Acquire(t, b, bustest.LeaseKey, 4*bustest.Patience)
		p.Hold(false, true)
		ctx, end := context.WithCancel(bustest.Background(t))
		renewed := make(chan error, 1)
		go func() { renewed <- l.Renew(ctx, []byte("renewed")) }()
		natstest.Until(t, "the renewal to be stored", func() bool {
			e, err := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
			return err == nil && string(e.Value) == "renewed"
		})
		end()
		if err := bustest.Receive(t, renewed, "the renewal's result"); !errors.Is(err, context.Canceled) {
			t.Fatalf("the renewal: %v", err)
		}
		p.Cut()
		p.Hold(false, false)
		if another {
			e, err := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
			if err == nil {
				err = other.KV.Delete(bustest.Background(t), kv.Leases, bustest.LeaseKey, e.Rev)
			}
			if err != nil {
				t.Fatal(err)
			}
			bustest.Acquire(t, other, bustest.LeaseKey, 4*bustest.Patience)
		}
		err := l.Release(bustest.Background(t))
		_, there := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
		switch {
		case another && (!errors.Is(err, bus.ErrLeaseLost) || there != nil):
			t.Errorf("the lease of another process: %v, %v", err, there)
		case !another && (err != nil || !errors.Is(there, bus.ErrNotFound)):
			t.Errorf("released: %v, %v", err, there)
		}
	}
}

// TestRenewBehindARenewalThatWasNotAwaited: a renewal in flight is cancelled, and stored. The next one, which may be
// the last word of the process, replaces it, also with the same value: the life of the lease counts from the later one,
// so the broker must count from it, too.
func TestRenewBehindARenewalThatWasNotAwaited(t *testing.T) {
	s := natstest.Start(t)
	other := natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	l := bustest.Acquire(t, bustest.BusAt(t, p.Addr), bustest.LeaseKey, 4*bustest.Patience)
	entry := func() kv.Entry {
		e, err := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	p.Hold(false, true)
	ctx, end := context.WithCancel(bustest.Background(t))
	renewed := make(chan error, 1)
	go func() { renewed <- l.Renew(ctx, []byte("ready")) }()
	natstest.Until(t, "the renewal to be stored", func() bool { return string(entry().Value) == "ready" })
	end()
	if err := bustest.Receive(t, renewed, "the renewal's result"); !errors.Is(err, context.Canceled) {
		t.Fatalf("the renewal: %v", err)
	}
	p.Cut()
	p.Hold(false, false)
	for _, word := range []string{"ready", "ended", "ended, again"} {
		before := entry().Rev
		if err := l.Renew(bustest.Background(t), []byte(word)); err != nil {
			t.Fatal(err)
		}
		if got := entry(); string(got.Value) != word || got.Rev <= before {
			t.Errorf("the lease says %q at %d, want %q after %d", got.Value, got.Rev, word, before)
		}
	}
}

// A process that cannot reach the broker must stop before any other process sees the lease expire.
func TestLeaseIsLostByOnesOwnClockWhenTheBrokerIsAway(t *testing.T) {
	// it mostly waits
	t.Parallel()
	// a fifth of the TTL
	const margin = 400 * time.Millisecond
	natstest.RetryStalled(t, margin/2, func() error { return lostByOnesOwnClock(t, 5*margin) })
}

func lostByOnesOwnClock(t *testing.T, ttl time.Duration) error {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	l := bustest.Acquire(t, b, bustest.LeaseKey, ttl)
	lost := l.Keep(bustest.Background(t), 0, nil)
	s.Shutdown()
	err := bustest.Receive(t, lost, "the loss")
	if !errors.Is(err, bus.ErrLeaseLost) {
		t.Fatalf("got %v, want ErrLeaseLost", err)
	}
	if after := time.Since(l.LastRenewed()); after > ttl {
		return fmt.Errorf("reported %s after the last renewal, want less than the TTL of %s", after, ttl)
	}
	if _, more := <-lost; more {
		t.Error("reported twice")
	}
	return nil
}

func TestLeaseKnowsItsGaps(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const ttl = 10 * time.Second
	b := natstest.Bus(t, natstest.Start(t))
	l := bustest.Acquire(t, b, bustest.LeaseKey, ttl)
	acquired := l.Gap()
	if err := l.Renew(bustest.Background(t), nil); err != nil {
		t.Fatal(err)
	}
	if !l.Gap().Equal(acquired) || !l.LastRenewed().After(acquired) {
		t.Errorf("a renewal in time counts as a gap: %v, %v", l.Gap(), acquired)
	}
	soon := l.LastRenewed()
	natstest.Until(t, "half a TTL to pass", func() bool { return time.Since(soon) > ttl/2+100*time.Millisecond })
	if err := l.Renew(bustest.Background(t), nil); err != nil {
		t.Fatal(err)
	}
	if !l.Gap().After(soon) {
		t.Error("a late renewal is not a gap")
	}
}

// TestARenewalNamesThePresentConnection: a renewal that waits for another one has the value of the time when it is
// sent. A value that was made before would name a connection that has ended.
func TestARenewalNamesThePresentConnection(t *testing.T) {
	s := natstest.Start(t)
	other := natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	l := bustest.Acquire(t, b, bustest.LeaseKey, 4*bustest.Patience)
	made := make(chan bool, 2)
	name := func() []byte {
		made <- true
		return fmt.Append(nil, b.Presence.Own())
	}
	p.Hold(false, true)
	results := make(chan error, 2)
	for range 2 {
		go func() { results <- l.RenewWith(bustest.Background(t), name) }()
	}
	bustest.Receive(t, made, "the value of the first renewal")
	p.Cut()
	p.Hold(false, false)
	for range 2 {
		if err := bustest.Receive(t, results, "a renewal"); err != nil {
			t.Fatal(err)
		}
	}
	e, err := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
	if want := fmt.Sprint(b.Presence.Own()); err != nil || string(e.Value) != want {
		t.Errorf("the lease names %s, %v; want %s", e.Value, err, want)
	}
}

// TestALeaseOfAnEarlierConnectionIsRenewed: the connection is restored while the lease is acquired. It is renewed at
// once, and after each later loss of the connection.
func TestALeaseOfAnEarlierConnectionIsRenewed(t *testing.T) {
	s := natstest.Start(t)
	other := natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	name := func() []byte { return fmt.Append(nil, b.Presence.Own()) }
	stored := func() string {
		e, err := other.KV.Load(bustest.Background(t), kv.Leases, bustest.LeaseKey)
		if err != nil {
			return ""
		}
		return string(e.Value)
	}
	p.Hold(false, true)
	acquired := make(chan *lease.Lease, 1)
	go func() {
		l, err := b.Leases.AcquireWith(bustest.Background(t), bustest.LeaseKey, name, 4*bustest.Patience)
		if err != nil {
			t.Error(err)
		}
		acquired <- l
	}()
	natstest.Until(t, "the lease to be stored", func() bool { return stored() != "" })
	first := stored()
	p.Cut()
	p.Hold(false, false)
	l := bustest.Receive(t, acquired, "the lease")
	l.Keep(bustest.Background(t), time.Hour, name)
	renewed := func() bool {
		now := stored()
		return now != first && now == string(name())
	}
	natstest.Until(t, "the lease to name the second connection", renewed)
	first = stored()
	p.Cut()
	natstest.Until(t, "the lease to name the third connection", renewed)
}
