package harness

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Waiting is how many calls wait for their facts to be stored.
func Waiting(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Asks is how many calls of Ask wait for a prompt.
func Asks(s *Session, prompt string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiters[prompt]; w != nil {
		return w.asks
	}
	return 0
}

// Shown says whether a session remembers what people see of a prompt that it has requested: the request is known to be
// stored.
func Shown(s *Session, prompt string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[prompt].seq != 0
}

// Kept is how many facts the broker has refused that no caller waits for.
func Kept(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

// Reported returns how many tokens the usage report names that is held back, -1 without one.
func Reported(s *Session) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usage.held == nil {
		return -1
	}
	return s.usage.held.Used()
}

// Index identifies what was read of a session's log to find kept results; nil if nothing was.
func Index(s *Session) any {
	s.indexing <- struct{}{}
	defer func() { <-s.indexing }()
	if s.index == nil {
		return nil
	}
	return s.index
}

// HandedOver is how many of these are under way.
func HandedOver(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unacked == nil {
		return 0
	}
	return len(s.unacked.writes)
}

// Mute keeps everybody from appending to the session until release.
func Mute(s *Session) (release func()) {
	s.writing <- struct{}{}
	return func() { <-s.writing }
}

// Hold suspends a session, as if it were about to be taken; the returned function takes it.
func Hold(s *Session) (begin func()) {
	l := s.term
	s.suspend(l)
	return func() { s.begin(l) }
}

// Verifying says whether settlements that were read are held back until it is known who owns the session.
func Verifying(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verifying
}

// Suspended says whether the session waits for a new lease.
func Suspended(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownership == suspended
}

// Unkept gives the present incarnation a lease without renewal, as a suspended process has. lose ends it.
func Unkept(ctx context.Context, h *Harness, ttl time.Duration) (lose func(), overdue func() bool, err error) {
	h.mu.Lock()
	l, sessions := h.term, slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	lease, err := h.bus.Leases.Acquire(ctx, events.HarnessLeaseKey(h.cfg.ID, h.bus.NewID()), nil, ttl)
	if err != nil {
		return nil, nil, err
	}
	// they look at the lease while they are locked
	for _, s := range sessions {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	l.lease = lease
	return func() { l.cancel(ErrLeaseLost) }, lease.Overdue, nil
}

// LogSeen is how far the log was when the session last heard of it.
func LogSeen(s *Session) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}

// Following reports whether the log is followed at this moment: each later commit arrives.
func Following(h *Harness) bool { return h.followed.Load() != 0 }

// Live says that the log is followed from a place on.
func Live(h *Harness, from uint64) { h.following(from) }

// Wrapped is how many bytes the facts take as a commit of their own, as they would be sent now.
func Wrapped(s *Session, facts ...events.Fact) int {
	o, err := s.newWrite(facts)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	evs, bytes := s.wrap(o)
	body, err := events.EncodeBatch(evs)
	if err != nil || len(body) != bytes {
		panic(fmt.Sprint("wrap measures ", bytes, " bytes, sent are ", len(body), ": ", err))
	}
	return bytes
}

// Events for which tests wait.
const (
	LinesMax    = linesMax
	LastWordMax = lastWordMaxS * time.Second
	ReadAgain   = readAgainS * time.Second
)

// Lines is what keeps a slow logger from slowing down the client.
type Lines struct{ l *lines }

// Detach makes a logger that does not block.
func Detach(to *slog.Logger) (zerolog.Logger, Lines) {
	log, l := detach(to)
	return log, Lines{l}
}

// Flush waits until the logger has what was written so far.
func (l Lines) Flush(ctx context.Context) { l.l.flush(ctx) }

// Busy says whether anything waits to be written.
func (l Lines) Busy() bool {
	l.l.mu.Lock()
	defer l.l.mu.Unlock()
	return l.l.done != nil
}

// Users is how many calls, and doubts that are being settled, hold the handle of a session.
func Users(h *Harness, id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[id]; s != nil {
		return s.users
	}
	return 0
}

// Unhold forgets that callers were given the session.
func Unhold(s *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders = 0
}

// NudgeDuringFalseRead has the session read because of a false hint. When that read is over, commit stores a commit and
// returns its place, and the nudge about it arrives before the false hint is forgotten.
func NudgeDuringFalseRead(s *Session, hint uint64, commit func() (seq uint64)) error {
	s.mu.Lock()
	s.want, s.hinted, s.reading = hint, false, true
	s.mu.Unlock()
	if err := s.catchUp(s.h.ctx); err != nil {
		return err
	}
	s.readUpTo(commit())
	s.forgetFalseHint()
	go s.readOn()
	return nil
}

// Reading says whether the session is being read because of a hint.
func Reading(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading
}

// SettledSeen returns how many prompts are remembered whose settlement an Ask has returned.
func SettledSeen(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.returned)
}

// Handle is the handle of a turn, as a call gets it that began the turn.
func Handle(s *Session, turn string) *Turn { return s.handle(turn) }

// StepCall is the call of a step of a turn that takes this message, in its first attempt.
func StepCall(message, name string) string { return nameID(nameOfStep, name, "message "+message, 1) }

// QuestionID is the prompt, and the call, of a question of a turn that takes this message, in this attempt.
func QuestionID(message, name string, n int) string {
	return nameID(nameOfQuestion, name, "message "+message, n)
}

// Forgets reports whether the state may have forgotten an ending from after since.
func Forgets(st *session.State, since uint64) bool { return forgets(st, since) }

// IsReady reports whether Ready was called.
func IsReady(h *Harness) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == buslease.Ready
}

// Offers is how many sessions of this harness have work, as far as the process has seen.
func Offers(h *Harness) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.offers)
}

// Handles is how many sessions this process has, or is about to have.
func Handles(h *Harness) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// Receive hands a commit to a session as the follower of the log does.
func Receive(s *Session, m bus.Message) { s.receive(m) }

// Handled calls a handler as Work does.
func Handled(handler func() error) error { return handled(handler) }
