package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestLeaseLostOnTheWay is the same for a lease: it is asked for, or renewed, again.
func TestLeaseLostOnTheWay(t *testing.T) {
	s := natstest.Start(t)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	natstest.Bus(t, s) // sets the cell up
	var lease *lease.Lease
	for what, do := range []func() error{
		func() (err error) {
			lease, err = b.Leases.Acquire(bustest.Within(t, bustest.Patience), "harness.h.1", []byte("one"),
				time.Minute)
			return err
		},
		func() error { return lease.Renew(bustest.Within(t, bustest.Patience), []byte("two")) },
	} {
		p.Hold(true, false)
		done := make(chan error, 1)
		go func() { done <- do() }()
		p.Cut()
		p.Hold(false, false)
		if err := bustest.Receive(t, done, "the lease"); err != nil {
			t.Errorf("%d: %v", what, err)
		}
	}
}

// TestALeaseWhoseKeyIsGone: a renewal in place of a key that is not there is refused, and the lease is lost.
func TestALeaseWhoseKeyIsGone(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	_, js := bustest.Outsider(t, s)
	stream, err := js.Stream(bustest.Within(t, bustest.Patience), "KV_hf_leases")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(bustest.Within(t, bustest.Patience),
		jetstream.WithPurgeSubject("$KV.hf_leases."+bustest.LeaseKey)); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(bustest.Within(t, bustest.Patience), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("%v, want ErrLeaseLost", err)
	}
}

// TestALeaseIsKeptAtAThirdOfItsTTL: when it is not said how often.
func TestALeaseIsKeptAtAThirdOfItsTTL(t *testing.T) {
	t.Parallel() // it mostly waits
	const ttl = 3 * time.Second
	b := natstest.Bus(t, natstest.Start(t))
	l := bustest.Acquire(t, b, bustest.LeaseKey, ttl)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	renewed := make(chan time.Time, 1000)
	began := time.Now()
	ended := l.Keep(ctx, 0, func() []byte { renewed <- time.Now(); return nil })
	if took := bustest.Receive(t, renewed, "a renewal").Sub(began); took < ttl/3 {
		t.Errorf("renewed after %s, want a third of %s", took, ttl)
	}
	cancel()
	for range ended {
		t.Error("it is lost")
	}
}

// TestALeaseWhoseGuardOthersName: renewals are refused for longer than ten refusals take, because writes of others with
// the same guard are in flight. The lease is renewed when one gets through, and counts from about then.
func TestALeaseWhoseGuardOthersName(t *testing.T) {
	t.Parallel() // it mostly waits
	const busy = 3 * time.Second
	var first time.Time
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Said {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("$KV.hf_leases."+bustest.LeaseKey, 5, "", "mine", time.Now())
		case first.IsZero():
			first = time.Now()
			return bustest.Says(`{"stream":"KV_hf_leases","seq":5}`)
		case time.Since(first) < busy:
			return bustest.InFlight
		}
		return bustest.Says(`{"stream":"KV_hf_leases","seq":6}`)
	}).Open()
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	acquired := l.LastRenewed()
	if err := l.Renew(bustest.Within(t, bustest.Patience), nil); err != nil {
		t.Fatalf("the lease of a living process: %v", err)
	}
	if after := l.LastRenewed().Sub(acquired); after < busy/2 {
		t.Errorf("renewed %s after its acquisition, want about %s", after, busy)
	}
}

// TestARenewalOfUnknownOutcome: the first message of a renewal may have been stored, so its refusals afterwards do not
// prove that the lease counts from a later instant. The lease stays as it is.
func TestARenewalOfUnknownOutcome(t *testing.T) {
	t.Parallel() // it mostly waits
	var first time.Time
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Said {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("$KV.hf_leases."+bustest.LeaseKey, 5, "", "mine", time.Now())
		case first.IsZero():
			first = time.Now()
			return bustest.Says(`{"stream":"KV_hf_leases","seq":5}`)
		case time.Since(first) < 50*time.Millisecond:
			return bustest.Says(`{"error":{"code":503,"err_code":10008,"description":"JetStream system unavailable"}}`)
		case time.Since(first) < 3*time.Second:
			return bustest.InFlight
		}
		return bustest.Says(`{"stream":"KV_hf_leases","seq":6}`)
	}).Open()
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	acquired := l.LastRenewed()
	if err := l.Renew(bustest.Within(t, bustest.Patience), nil); !errors.Is(err, bus.ErrUnreachable) ||
		l.LastRenewed() != acquired {
		t.Errorf("%v, renewed %s later; want ErrUnreachable", err, l.LastRenewed().Sub(acquired))
	}
}

// TestALeaseWithoutABucket: while the bucket cannot be found, as in a cluster that starts, a renewal fails and the
// lease is not lost.
func TestALeaseWithoutABucket(t *testing.T) {
	acquired := false
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Said {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.NoStream
		case !acquired:
			acquired = true
			return bustest.Says(`{"stream":"KV_hf_leases","seq":5}`)
		}
		return bustest.WrongLast
	}).Open()
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	err := l.Renew(bustest.Within(t, bustest.Patience), nil)
	if !errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// TestNoLeaseOfAClosedConnection: a lease that could not be written is an error.
func TestNoLeaseOfAClosedConnection(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	b.Close()
	l, err := b.Leases.Acquire(bustest.Within(t, bustest.Patience), "harness.h.1", nil, time.Minute)
	if err == nil || l != nil {
		t.Errorf("%v, %v", l, err)
	}
}
