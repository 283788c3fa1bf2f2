package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// States of a lease.
const (
	leaseStarting = "starting"
	leaseReady    = "ready"
	leaseDraining = "draining"
)

// restartDelayMaxMS is the longest pause between attempts to start over, in milliseconds.
const restartDelayMaxMS = 1_000

// lease is the value of the lease's key.
type lease struct {
	ID          string    `json:"id"`
	Incarnation string    `json:"incarnation"`
	Exclusive   bool      `json:"exclusive"`
	State       string    `json:"state"`
	TTLMS       int64     `json:"ttl_ms"`
	Host        string    `json:"host"`
	PID         int       `json:"pid"`
	Version     string    `json:"version"`
	StartedAt   time.Time `json:"started_at"`
	RenewedAt   time.Time `json:"renewed_at"`
}

// life is one incarnation, from its ticket until its lease is lost or given back.
type life struct {
	incarnation string
	started     time.Time
	lease       *bus.Lease
	ctx         context.Context // under it everything is appended; its cause says why it ended
	cancel      context.CancelCauseFunc
}

// begin draws an incarnation, takes its lease and keeps it.
func (h *Harness) begin(ctx context.Context) (*life, error) {
	n, err := h.bus.Ticket(ctx, h.cfg.ID)
	if err != nil {
		return nil, err
	}
	l := &life{incarnation: strconv.FormatUint(n, 10), started: time.Now().UTC()}
	h.mu.Lock()
	state := h.state
	h.mu.Unlock()
	if state == leaseReady {
		state = leaseStarting
	}
	l.lease, err = h.bus.AcquireLease(ctx, events.HarnessLeaseKey(h.cfg.ID, l.incarnation), h.value(l, state), h.cfg.TTL)
	if err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancelCause(h.ctx)
	lost := l.lease.Keep(l.ctx, 0, func() []byte {
		h.mu.Lock()
		state := h.state
		if h.life != l && state == leaseReady {
			state = leaseStarting // it does not have its sessions yet
		}
		h.mu.Unlock()
		return h.value(l, state)
	})
	h.running.Go(func() {
		if err := <-lost; err != nil {
			l.cancel(translate(err))
		}
	})
	return l, nil
}

// value is what the lease says.
func (h *Harness) value(l *life, state string) []byte {
	v, err := json.Marshal(lease{ID: h.cfg.ID, Incarnation: l.incarnation, Exclusive: !h.cfg.Pool, State: state, TTLMS: h.cfg.TTL.Milliseconds(),
		Host: h.cfg.Host, PID: os.Getpid(), Version: h.cfg.Version, StartedAt: l.started, RenewedAt: time.Now().UTC()})
	if err != nil { // nothing in it can fail to encode
		panic(err)
	}
	return v
}

// renew writes the lease now, because its state changed.
func (h *Harness) renew(ctx context.Context) error {
	h.mu.Lock()
	l, state := h.life, h.state
	h.mu.Unlock()
	if err := l.lease.Renew(ctx, h.value(l, state)); err != nil {
		return fmt.Errorf("harness: lease of %s as %s: %w", h.cfg.ID, state, translate(err))
	}
	return nil
}

// Ready says in the lease that this process has claimed what it goes on with: what older incarnations still hold is now
// recovered. Call it after the claims.
func (h *Harness) Ready(ctx context.Context) error {
	h.mu.Lock()
	if h.state == leaseDraining || h.ctx.Err() != nil {
		h.mu.Unlock()
		return fmt.Errorf("harness: ready %s: %w", h.cfg.ID, ErrClosed)
	}
	h.state = leaseReady
	h.mu.Unlock()
	return h.renew(ctx)
}

// tend starts over each time the lease is lost, until the Harness is closed.
func (h *Harness) tend() {
	h.mu.Lock()
	l := h.life
	h.mu.Unlock()
	for {
		<-l.ctx.Done()
		if h.ctx.Err() != nil {
			return
		}
		cause := context.Cause(l.ctx)
		h.log.Warn().Str("id", h.cfg.ID).Str("entity", "lease").Str("reason", l.incarnation).AnErr("err", cause).Msg("lease lost")
		if h.cfg.OnLeaseLoss == LeaseStop {
			h.cancel(cause)
			for _, s := range h.owned() {
				s.drop(cause)
			}
			return
		}
		for _, s := range h.owned() {
			s.suspend(cause)
		}
		next := h.startOver()
		if next == nil {
			return
		}
		l = next
	}
}

// startOver tries until it has a new incarnation with its sessions; nil when the Harness was closed first.
func (h *Harness) startOver() *life {
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(restartDelayMaxMS*time.Millisecond), backoff.WithMaxElapsedTime(0))
	for {
		l, err := h.begin(h.ctx)
		if err == nil {
			h.reclaimAll(l)
			return l
		}
		if h.ctx.Err() != nil {
			return nil
		}
		h.log.Warn().Str("id", h.cfg.ID).Str("entity", "lease").AnErr("err", err).Msg("not started over yet")
		select {
		case <-time.After(pace.NextBackOff()):
		case <-h.ctx.Done():
			return nil
		}
	}
}

// reclaimAll has the new incarnation claim what nobody took, then says what the old one had said.
func (h *Harness) reclaimAll(l *life) {
	h.each(h.owned(), func(s *Session) {
		if err := s.reclaim(l); err != nil {
			h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg("not claimed again")
		}
	})
	h.mu.Lock()
	h.life = l
	h.mu.Unlock()
	if err := h.renew(l.ctx); err != nil && !errors.Is(err, ErrLeaseLost) && l.ctx.Err() == nil {
		h.log.Warn().Str("id", h.cfg.ID).Str("entity", "lease").AnErr("err", err).Msg("not renewed: tried again")
	}
	h.log.Info().Str("id", h.cfg.ID).Str("entity", "harness").Str("reason", l.incarnation).Msg("started over")
}
