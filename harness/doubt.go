package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/internal/bus"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// reasonUnclaimed is why a session is released whose claim was stored after its caller had given up.
const reasonUnclaimed = "claim-not-awaited"

// doubtError says that a commit which makes this process the owner may have been stored, or may be stored yet.
type doubtError struct {
	evs   []events.Event
	after uint64
	err   error
}

// Error implements error.
func (d *doubtError) Error() string {
	return d.err.Error() + " (whether the session was taken is found out)"
}

// Unwrap is what kept the outcome from being known.
func (d *doubtError) Unwrap() error { return d.err }

// settleLater finds out in the background what became of a commit whose outcome is in doubt, if err says so. Until then
// the handle is kept. A process that leaves needs not know: its lease ends with it, and recovery follows.
func (h *Harness) settleLater(s *Session, l *term, err error) {
	d, ok := errors.AsType[*doubtError](err)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == buslease.Draining || h.ctx.Err() != nil {
		return
	}
	s.users++
	h.running.Go(func() {
		defer h.dropUser(s)
		h.insist(l.ctx, s, "the outcome of a claim is not known yet", func() error { return s.settleDoubt(l, d) })
	})
}

// insist repeats what has to be done, until it is done or ctx ends.
func (h *Harness) insist(ctx context.Context, s *Session, failing string, do func() error) {
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(restartDelayMaxMS*time.Millisecond),
		backoff.WithMaxElapsedTime(0))
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return
		}
		h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg(failing)
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// settleDoubt appends the commit again. It is then in the log, or another one is in its place; either way its outcome
// is known. If this process owns the session by it, its part begins.
func (s *Session) settleDoubt(l *term, d *doubtError) error {
	select {
	case s.writing <- struct{}{}:
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	defer func() { <-s.writing }()
	if !s.isApart() {
		// another call has found it
		return nil
	}
	_, err := s.storeOnce(l.ctx, d.after, d.evs)
	if errors.Is(err, bus.ErrUnreachable) {
		return translate(err)
	}
	// refused, for whatever reason: the first attempt may be there
	err = s.catchUp(l.ctx)
	if errors.Is(err, ErrFenced) {
		// the log was restored, so what was read of it before does not count
		if _, err = s.load(l.ctx); err == nil {
			err = s.catchUp(l.ctx)
		}
	}
	if errors.Is(err, ErrForbidden) {
		// it may not renew its lease either
		return nil
	}
	if err != nil {
		return err
	}
	if s.begin(l) {
		s.h.log.Info().Str("session", s.ref.String()).Str("reason", "a claim whose outcome was in doubt").Msg("owned")
	}
	return nil
}

// isUnused says whether this process owns, or owned when its lease was lost, a session that no caller was given.
func (s *Session) isUnused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isUnusedLocked()
}

func (s *Session) isUnusedLocked() bool {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.ownership != apart && s.holders == 0 && s.users == 0
}

// dropHolder is for a call that was given a session and fails all the same.
func (h *Harness) dropHolder(s *Session) {
	s.mu.Lock()
	s.holders--
	s.mu.Unlock()
	h.releaseUnused(s)
}

// releaseUnused releases a session in the background that this process owns and no caller was given or waits for: a
// live process must not own what it does not know of. Callback prompts in it are recovery's to end, as those of a
// process that died.
func (h *Harness) releaseUnused(s *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving || !s.isUnusedLocked() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == buslease.Draining || h.ctx.Err() != nil {
		// all are released, or recovered
		return
	}
	s.leaving = true
	h.running.Go(func() {
		h.insist(h.ctx, s, "a session that no caller waits for is not released yet", s.releaseIfUnused)
		s.mu.Lock()
		s.leaving = false
		s.mu.Unlock()
		// a call that waited for it may have left meanwhile
		h.releaseUnused(s)
	})
}

// failUnmadeCompaction fails the compaction that runs in a session which no call was given: Work took it by a claim
// whose outcome was in doubt, and no handler makes it. The process lives, so this is not left to recovery, which would
// fail it as that of a process that is gone: under resume hold a person would have to continue.
func (s *Session) failUnmadeCompaction() {
	s.mu.Lock()
	id := ""
	if c := s.st.Compaction; c.Running() && s.st.Owns(c.Epoch) {
		id = c.ID
	}
	s.mu.Unlock()
	if id != "" {
		s.failCompaction(id)
	}
}

// failUnmadeTurn fails the turn that Work took, and that no handler has run, if it is open when the fact is stored and
// due says so. The release of the session is queued behind it. The process lives, so the turn is not left to recovery,
// which would interrupt it: under resume hold a person would have to continue a turn that has not begun. A person's
// stop of it is left to recovery. due is called with the session locked.
func (s *Session) failUnmadeTurn(due func() bool) {
	s.mu.Lock()
	id := s.unmade
	s.mu.Unlock()
	if id == "" {
		return
	}
	s.appendLater(events.TurnFailed{Turn: id, Error: events.Failure{Kind: failure.Interrupted,
		Text: "the process released the session before the turn began"}}, func(st *session.State) bool {
		stop := st.Pending.Stop
		return s.unmade == id && st.Runs(id) && (stop == nil || stop.Turn != id) && due()
	})
}

// runs records that the program, or a handler of Work, has a turn from now on. The session is locked.
func (s *Session) runs(turn string) {
	if s.unmade == turn {
		s.unmade = ""
	}
}

// releaseIfUnused releases the session, unless a call has it or waits for it when that is decided.
func (s *Session) releaseIfUnused() error {
	s.failUnmadeCompaction()
	s.failUnmadeTurn(s.isUnusedLocked)
	o, err := s.newWrite([]events.Fact{events.SessionReleased{Reason: reasonUnclaimed}})
	if err != nil {
		return fmt.Errorf("harness: release: %w", err)
	}
	o.check = func(*session.State) (bool, error) { return !s.isUnusedLocked(), nil }
	if err = s.do(s.h.ctx, o); err != nil && s.isApart() {
		// it is not this process's any more
		return nil
	}
	return err
}
