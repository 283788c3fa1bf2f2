package control

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of a service's lease.
const (
	serviceTTL     = 5 * time.Second // how long a killed service stays listed
	releaseMaxMS   = 1_000           // for the release at a clean stop
	reacquirePause = 200 * time.Millisecond
)

// leases acquires leases.
type leases interface {
	Acquire(ctx context.Context, key string, value []byte, ttl time.Duration) (*lease.Lease, error)
}

// Held holds a service's lease and acquires it again after a loss. The lease lists the service.
type Held struct {
	from   leases
	record lease.Record
	ttl    time.Duration
	every  time.Duration
	onOK   func(sent, acked time.Time)
}

// NewHeld returns a lease for this process under a service's name. It is renewed at the interval every (0: a third of
// the TTL). ok, if set, is called after each acknowledged renewal with the instants, by this process's clock, between
// which the broker stored it.
func NewHeld(b *bus.Bus, name, version string, every time.Duration, ok func(sent, acked time.Time)) *Held {
	host, err := os.Hostname()
	if err != nil {
		// only people read it
		host = ""
	}
	if every <= 0 {
		every = serviceTTL / 3
	}
	now := time.Now().UTC()
	return &Held{
		from:  b.Leases,
		ttl:   serviceTTL,
		every: every,
		onOK:  ok,
		record: lease.Record{ID: name, Incarnation: b.Instance(), State: lease.Ready,
			TTLMS: serviceTTL.Milliseconds(), Host: host, PID: os.Getpid(), Version: version, StartedAt: now},
	}
}

// Run holds the lease until ctx ends, then releases it and returns nil. It returns [bus.ErrForbidden].
func (h *Held) Run(ctx context.Context) error {
	for {
		err := h.hold(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, bus.ErrForbidden):
			return err
		}
		if !wait(ctx, reacquirePause) {
			return nil
		}
	}
}

// hold acquires the lease and renews it until it is lost or ctx ends.
func (h *Held) hold(ctx context.Context) error {
	sent := time.Now()
	l, err := h.from.Acquire(ctx, events.ServiceLeaseKey(h.record.ID, h.record.Incarnation), h.value(), h.ttl)
	if err != nil {
		return err
	}
	h.ok(sent)
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return release(ctx, l)
		}
		sent = time.Now()
		err := l.Renew(ctx, h.value())
		switch {
		case err == nil:
			h.ok(sent)
		case errors.Is(err, bus.ErrLeaseLost) || errors.Is(err, bus.ErrForbidden):
			return err
		}
	}
}

func (h *Held) ok(sent time.Time) {
	if h.onOK != nil {
		h.onOK(sent, time.Now())
	}
}

func (h *Held) value() []byte {
	v := h.record
	v.RenewedAt = time.Now().UTC()
	body, err := json.Marshal(v)
	if err != nil {
		// these types always encode
		panic(err)
	}
	return body
}

// release releases a lease, even if ctx has ended.
func release(ctx context.Context, l *lease.Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseMaxMS*time.Millisecond)
	defer cancel()
	return l.Release(ctx)
}

// Register lists this process as a running service until ctx ends, then releases the lease and returns nil. The
// reconciler checks every session when a service appears.
func Register(ctx context.Context, b *bus.Bus, name, version string) error {
	return NewHeld(b, name, version, 0, nil).Run(ctx)
}

// wait waits for d, and reports whether ctx is still alive.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
