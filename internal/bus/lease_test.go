package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const leaseKey = "harness.h.1"

func acquire(t testing.TB, b *bus.Bus, key string, ttl time.Duration) *bus.Lease {
	t.Helper()
	l, err := b.AcquireLease(background(t), key, []byte("mine"), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTicketsRiseAndAreNeverDrawnTwice(t *testing.T) {
	s, a, b := pair(t)
	_ = s
	var mu sync.Mutex
	var wg sync.WaitGroup
	drawn := map[uint64]bool{}
	for _, by := range []*bus.Bus{a, b} {
		wg.Go(func() {
			last := uint64(0)
			for range 200 {
				n, err := by.Ticket(background(t), "h")
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
	if _, err := a.Ticket(background(t), ""); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("a ticket for nobody: %v", err)
	}
}

func TestLeaseLivesWhileItIsRenewedAndExpiresThen(t *testing.T) {
	t.Parallel() // it mostly waits
	natstest.Calm(t, standstill, func() error { return livesWhileRenewed(t) })
}

func livesWhileRenewed(t *testing.T) error {
	const ttl = 2 * time.Second
	_, a, b := pair(t)
	updates, _ := watching(t, b, bus.Leases)
	expect(t, updates, "ready")
	l := acquire(t, a, leaseKey, ttl)
	expect(t, updates, leaseKey+"=mine")
	if _, err := b.AcquireLease(background(t), leaseKey, []byte("theirs"), time.Second); !errors.Is(err,
		bus.ErrExists) {
		t.Fatalf("somebody else acquired it: %v", err)
	}
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	lost := l.Keep(ctx, 0, func() []byte { return []byte("still mine") })
	began := time.Now()
	for time.Since(began) < 5*ttl/2 {
		if u := receive(t, updates, "a renewal"); say(u) != leaseKey+"=still mine" {
			return fmt.Errorf("while it is renewed the watch shows %s", say(u))
		}
	}
	cancel()
	if err, told := <-lost; told {
		return fmt.Errorf("a lease whose keeping was ended is called lost: %w", err)
	}
	renewed := l.LastRenewed()
	for u := receive(t, updates, "the expiry"); !u.Expired; u = receive(t, updates, "the expiry") {
		if u.Deleted {
			t.Fatalf("%s: want it to expire", say(u))
		}
	}
	if after := time.Since(renewed); after < ttl || after > ttl+time.Second {
		return fmt.Errorf("it expired %s after the last renewal, want %s and at most a second more", after, ttl)
	}
	if err := l.Renew(background(t), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("an expired lease was renewed: %v", err)
	}
	acquire(t, b, leaseKey, ttl)
	return nil
}

func TestLeaseIsNotRenewedOverSomebodyElse(t *testing.T) {
	_, a, b := pair(t)
	l := acquire(t, a, leaseKey, 4*patience)
	e, err := b.Load(background(t), bus.Leases, leaseKey)
	if err != nil {
		t.Fatal(err)
	}
	store(t, b, bus.Leases, leaseKey, "theirs", e.Rev)
	if err := l.Renew(background(t), []byte("mine again")); !errors.Is(err, bus.ErrLeaseLost) {
		t.Fatalf("renewed over somebody else's write: %v", err)
	}
	if err := l.Release(background(t)); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("released somebody else's: %v", err)
	}
	e, err = b.Load(background(t), bus.Leases, leaseKey)
	if err != nil || string(e.Value) != "theirs" {
		t.Errorf("there is %q, %v; want what the other wrote", e.Value, err)
	}
}

func TestLeaseReleasedIsFreeAtOnceAndNotCalledExpired(t *testing.T) {
	_, a, b := pair(t)
	updates, _ := watching(t, b, bus.Leases)
	expect(t, updates, "ready")
	l := acquire(t, a, leaseKey, 4*patience)
	expect(t, updates, leaseKey+"=mine")
	if err := l.Release(background(t)); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(background(t), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("renewed after release: %v", err)
	}
	expect(t, updates, leaseKey+" deleted")
	acquire(t, b, leaseKey, 4*patience)
	expect(t, updates, leaseKey+"=mine")
}

func TestLeaseNeedsATTLThatTheBrokerKnows(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	if _, err := b.AcquireLease(background(t), leaseKey, nil, 999*time.Millisecond); !errors.Is(err,
		events.ErrMalformed) {
		t.Errorf("acquired for less than a second: %v", err)
	}
}

// The broker has stored the renewal and its answer never comes: the lease is still ours.
func TestLeaseRenewalWhoseAcknowledgementIsLostCounts(t *testing.T) {
	s := natstest.Start(t)
	other := natstest.Bus(t, s)
	p := newProxy(t, s)
	b := busAt(t, p.addr)
	l := acquire(t, b, leaseKey, 4*patience)
	p.hold(false, true)
	renewed := make(chan error, 1)
	go func() { renewed <- l.Renew(background(t), []byte("renewed")) }()
	natstest.Until(t, "the renewal to be stored", func() bool {
		e, err := other.Load(background(t), bus.Leases, leaseKey)
		return err == nil && string(e.Value) == "renewed"
	})
	p.cut()
	p.hold(false, false)
	if err := receive(t, renewed, "the renewal's result"); err != nil {
		t.Fatalf("a renewal that was stored is called %v", err)
	}
	if err := l.Renew(background(t), nil); err != nil {
		t.Fatalf("the next renewal: %v", err)
	}
}

// A process that cannot reach the broker must stop before any other process sees the lease expire.
func TestLeaseIsLostByOnesOwnClockWhenTheBrokerIsAway(t *testing.T) {
	t.Parallel()                          // it mostly waits
	const margin = 400 * time.Millisecond // a fifth of the TTL
	natstest.Calm(t, margin/2, func() error { return lostByOnesOwnClock(t, 5*margin) })
}

func lostByOnesOwnClock(t *testing.T, ttl time.Duration) error {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	l := acquire(t, b, leaseKey, ttl)
	lost := l.Keep(background(t), 0, nil)
	s.Shutdown()
	err := receive(t, lost, "the loss")
	if !errors.Is(err, bus.ErrLeaseLost) {
		t.Fatalf("got %v, want ErrLeaseLost", err)
	}
	if after := time.Since(l.LastRenewed()); after > ttl {
		return fmt.Errorf("told %s after the last renewal, want less than the TTL of %s", after, ttl)
	}
	if _, more := <-lost; more {
		t.Error("told twice")
	}
	return nil
}

func TestLeaseKnowsItsGaps(t *testing.T) {
	t.Parallel() // it mostly waits
	const ttl = 10 * time.Second
	b := natstest.Bus(t, natstest.Start(t))
	l := acquire(t, b, leaseKey, ttl)
	acquired := l.Gap()
	if err := l.Renew(background(t), nil); err != nil {
		t.Fatal(err)
	}
	if !l.Gap().Equal(acquired) || !l.LastRenewed().After(acquired) {
		t.Errorf("a renewal in time counts as a gap: %v, %v", l.Gap(), acquired)
	}
	soon := l.LastRenewed()
	natstest.Until(t, "half a TTL to pass", func() bool { return time.Since(soon) > ttl/2+100*time.Millisecond })
	if err := l.Renew(background(t), nil); err != nil {
		t.Fatal(err)
	}
	if !l.Gap().After(soon) {
		t.Error("a late renewal is not a gap")
	}
}

// timers runs a consumer of fired timers and gives them on a channel, with when they came.
func timers(t testing.TB, b *bus.Bus) <-chan fired {
	t.Helper()
	out := make(chan fired, 1000)
	go func() {
		_ = b.Consume(background(t),
			bus.Source{Stream: bus.Due, Durable: "retry", Filter: []string{b.Cell().DueFilter("retry")}},
			handlerFunc(func(ms []bus.Message) {
				for _, m := range ms {
					out <- fired{m, time.Now()}
				}
			}))
	}()
	return out
}

type fired struct {
	bus.Message
	got time.Time
}

func setTimer(t testing.TB, b *bus.Bus, session string, due time.Time, body string) {
	t.Helper()
	if err := b.SetTimer(background(t),
		bus.Timer{What: "retry", Ref: events.Ref{Harness: "h", Session: session}, Due: due,
			Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
}

func TestTimersGoOffNeverEarlyAndHardlyLate(t *testing.T) {
	t.Parallel() // it mostly waits
	const lateMax = 600 * time.Millisecond
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	out := timers(t, b)
	now, pulse := time.Now(), natstest.Feel(t)
	due := map[string]time.Time{}
	for i, after := range []time.Duration{-time.Hour, 0, 1, 333 * time.Millisecond, 999_999_999,
		1001 * time.Millisecond, 1700 * time.Millisecond} {
		session := string(rune('a' + i))
		due[session] = now.Add(after)
		setTimer(t, b, session, due[session], session)
	}
	setTimer(t, b, "replaced", now.Add(time.Hour), "old")
	due["replaced"] = now.Add(1500 * time.Millisecond)
	setTimer(t, b, "replaced", due["replaced"], "replaced")
	setTimer(t, b, "cancelled", time.Now().Add(1900*time.Millisecond), "cancelled")
	if err := b.CancelTimer(background(t), "retry", events.Ref{Harness: "h", Session: "cancelled"}); err != nil {
		t.Fatal(err)
	}
	set := time.Now()
	due["last"] = set.Add(2 * time.Second)
	setTimer(t, b, "last", due["last"], "last")
	for range due {
		f := receive(t, out, "a timer")
		what, ref, err := b.Cell().ParseDue(f.Subject)
		if err != nil || what != "retry" || string(f.Body) != ref.Session {
			t.Fatalf("%s went off with %q, %v", f.Subject, f.Body, err)
		}
		at := due[ref.Session]
		if f.At.Before(at) {
			t.Errorf("%s went off %s early", ref.Session, at.Sub(f.At))
		}
		if at.Before(set) {
			at = set // it was due before it was set
		}
		if late := f.got.Sub(at); late > lateMax+pulse.Lost() {
			t.Errorf("%s went off %s late", ref.Session, late)
		}
	}
	if err := b.CancelTimer(background(t), "retry", events.Ref{Harness: "h", Session: "last"}); err != nil {
		t.Errorf("cancel of one that went off: %v", err)
	}
	setTimer(t, b, "last", now, "again")
	receive(t, out, "a timer that is set again")
	_, js := outsider(t, s)
	stream, err := js.Stream(background(t), "HF_TIMERS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(background(t), jetstream.WithSubjectFilter("hf.>"))
	if err != nil || len(info.State.Subjects) != len(due) || info.State.Subjects["hf.due.retry.h.last"] != 2 {
		t.Errorf("the broker keeps %v, %v; want what went off for each session", info.State.Subjects, err)
	}
}

// TestTimerIsGuarded: a late write that was decided on less of a session than another's does not move its alarm.
func TestTimerIsGuarded(t *testing.T) {
	t.Parallel() // it mostly waits
	timersGuarded(t, natstest.Bus(t, natstest.Start(t)))
}

func timersGuarded(t *testing.T, b *bus.Bus) {
	t.Helper()
	out := timers(t, b)
	ref := events.Ref{Harness: "h", Session: "s"}
	set := func(seq uint64, after time.Duration) error {
		return b.SetTimer(background(t),
			bus.Timer{What: "retry", Ref: ref, Seq: seq, Due: time.Now().Add(after), Body: fmt.Append(nil, seq)})
	}
	for _, step := range []struct {
		seq   uint64
		after time.Duration
		lost  bool
	}{{6, time.Hour, false}, {5, 0, true}, {6, 2 * time.Hour, false}, {8, 3 * time.Second, false},
		{7, time.Hour, true}} {
		if err := set(step.seq, step.after); errors.Is(err, bus.ErrLostRace) != step.lost || err != nil && !step.lost {
			t.Fatalf("an alarm decided on %d: %v", step.seq, err)
		}
	}
	if f := receive(t, out, "the alarm"); string(f.Body) != "8" {
		t.Errorf("that of %s went off", f.Body)
	}
	if err := set(7, 0); err != nil { // there is no alarm in its way; its service finds nothing to do
		t.Error(err)
	}
	if f := receive(t, out, "the next alarm"); string(f.Body) != "7" {
		t.Errorf("that of %s went off", f.Body)
	}
}

func TestTimerDueWhileTheBrokerIsDownGoesOffWhenItIsBack(t *testing.T) {
	t.Parallel() // it mostly waits
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	due := time.Now().Add(300 * time.Millisecond)
	setTimer(t, b, "a", due, "a")
	s.Shutdown()
	natstest.Until(t, "it to be due", func() bool { return time.Now().After(due) })
	natstest.Restart(t, s)
	back, pulse := time.Now(), natstest.Feel(t)
	if f := receive(t, timers(t, b), "the timer"); f.got.Sub(back) > 2*time.Second+pulse.Lost() {
		t.Errorf("it went off %s after the broker was back", f.got.Sub(back))
	}
}

func TestTimerIsRefusedWhenItCouldNameAnothersSubject(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ref := events.Ref{Harness: "h", Session: "s"}
	for name, timer := range map[string]bus.Timer{
		"no session":     {What: "retry", Ref: events.Ref{Harness: "h"}, Due: time.Now()},
		"two tokens":     {What: "retry.x", Ref: ref, Due: time.Now()},
		"a wildcard":     {What: "*", Ref: ref, Due: time.Now()},
		"no instant":     {What: "retry", Ref: ref},
		"no what at all": {Ref: ref, Due: time.Now()},
	} {
		if err := b.SetTimer(background(t), timer); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	if err := b.CancelTimer(background(t), ">", ref); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("cancel of everything: %v, want ErrMalformed", err)
	}
}
