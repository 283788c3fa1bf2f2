package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestALeaseWhoseKeyIsGone: a renewal in place of a key that is not there is refused, and the lease is lost.
func TestALeaseWhoseKeyIsGone(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	l := acquire(t, b, leaseKey, time.Minute)
	_, js := outsider(t, s)
	stream, err := js.Stream(within(t, patience), "KV_hf_leases")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(within(t, patience), jetstream.WithPurgeSubject("$KV.hf_leases."+leaseKey)); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(within(t, patience), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("%v, want ErrLeaseLost", err)
	}
}

// TestALeaseIsKeptAtAThirdOfItsTTL: when it is not said how often.
func TestALeaseIsKeptAtAThirdOfItsTTL(t *testing.T) {
	t.Parallel() // it mostly waits
	const ttl = 3 * time.Second
	b := natstest.Bus(t, natstest.Start(t))
	l := acquire(t, b, leaseKey, ttl)
	ctx, cancel := context.WithCancel(background(t))
	renewed := make(chan time.Time, 1000)
	began := time.Now()
	ended := l.Keep(ctx, 0, func() []byte { renewed <- time.Now(); return nil })
	if took := receive(t, renewed, "a renewal").Sub(began); took < ttl/3 {
		t.Errorf("renewed after %s, want a third of %s", took, ttl)
	}
	cancel()
	for range ended {
		t.Error("it is lost")
	}
}
