package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of a service's lease.
const (
	serviceTTL     = 5 * time.Second // how long a killed service stays listed
	releaseMaxMS   = 1_000           // for the release at a clean stop
	reacquirePause = 200 * time.Millisecond
)

// States of a [Lease].
const (
	LeaseStarting = "starting" // has not yet declared the sessions that it takes over
	LeaseReady    = "ready"
	LeaseDraining = "draining"
)

// Lease is the value of a process's lease, for harness processes and services.
type Lease struct {
	ID          string    `json:"id"` // the harness id, or the service's name
	Incarnation string    `json:"incarnation"`
	Exclusive   bool      `json:"exclusive"`
	State       string    `json:"state"`
	TTLMS       int64     `json:"ttl_ms"`
	Host        string    `json:"host,omitempty"`
	PID         int       `json:"pid,omitempty"`
	Version     string    `json:"version,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	RenewedAt   time.Time `json:"renewed_at,omitzero"`
	// Connection is that of a harness to its broker, the zero value if it does not name one.
	Connection presence.Named `json:"connection,omitzero"`
	// Abandoned is how the process of a harness ended, if its supervisor saw that. Such a lease has ended.
	Abandoned string `json:"abandoned,omitempty"`
}

// UnmarshalJSON reads leases of programs in other languages: exclusive is true by default, an incarnation may be a
// number, and ttl_ms may be 2000.0. A malformed field that no decision needs is ignored.
func (l *Lease) UnmarshalJSON(body []byte) error {
	*l = Lease{Exclusive: true}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("lease: %w: %w", events.ErrMalformed, err)
	}
	for name, to := range map[string]any{"exclusive": &l.Exclusive, "state": &l.State, "ttl_ms": &l.TTLMS} {
		if raw, ok := fields[name]; ok {
			if err := events.ReadJSON(raw, to); err != nil {
				return fmt.Errorf("lease: %s: %w: %w", name, events.ErrMalformed, err)
			}
		}
	}
	for name, to := range map[string]any{"id": &l.ID, "incarnation": &l.Incarnation, "host": &l.Host, "pid": &l.PID,
		"version": &l.Version, "started_at": &l.StartedAt, "renewed_at": &l.RenewedAt, "connection": &l.Connection,
		"abandoned": &l.Abandoned} {
		if err := events.ReadJSON(fields[name], to); err != nil && name == "incarnation" {
			l.Incarnation = string(fields[name])
		}
	}
	return nil
}

// leases acquires leases.
type leases interface {
	Acquire(ctx context.Context, key string, value []byte, ttl time.Duration) (*lease.Lease, error)
}

// Held holds a service's lease and acquires it again after a loss. The lease lists the service.
type Held struct {
	from  leases
	lease Lease
	ttl   time.Duration
	every time.Duration
	onOK  func(sent, acked time.Time)
}

// NewHeld returns a lease for this process under a service's name. It is renewed at the interval every (0: a third of
// the TTL). ok, if set, is called after each acknowledged renewal with the instants, by this process's clock, between
// which the broker stored it.
func NewHeld(b *bus.Bus, name, version string, every time.Duration, ok func(sent, acked time.Time)) *Held {
	host, err := os.Hostname()
	if err != nil {
		host = "" // only people read it
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
		lease: Lease{ID: name, Incarnation: b.Instance(), State: LeaseReady,
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
	l, err := h.from.Acquire(ctx, events.ServiceLeaseKey(h.lease.ID, h.lease.Incarnation), h.value(), h.ttl)
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
	v := h.lease
	v.RenewedAt = time.Now().UTC()
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // these types always encode
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
