package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// restartDelayMaxMS is the longest pause between attempts to start over, in milliseconds.
const restartDelayMaxMS = 1_000

// term is one incarnation, from its ticket until its lease is lost or given back.
type term struct {
	incarnation string
	started     time.Time
	lease       *buslease.Lease
	ctx         context.Context // under it everything is appended; its cause says why it ended
	cancel      context.CancelCauseFunc
}

// begin draws an incarnation, takes its lease and keeps it. The incarnation is greater than those that this process has
// drawn before, also if the tickets were lost meanwhile.
func (h *Harness) begin(ctx context.Context) (*term, error) {
	h.mu.Lock()
	before, err := strconv.ParseUint(h.drawn, 10, 64)
	h.mu.Unlock()
	if err != nil {
		// it has drawn none
		before = 0
	}
	n, err := h.bus.Leases.Ticket(ctx, h.cfg.ID, before)
	if err != nil {
		return nil, err
	}
	l := &term{incarnation: strconv.FormatUint(n, 10), started: time.Now().UTC()}
	h.mu.Lock()
	h.drawn = l.incarnation
	state := h.state
	h.mu.Unlock()
	if state == buslease.Ready {
		state = buslease.Starting
	}
	l.lease, err = h.bus.Leases.AcquireWith(ctx, events.HarnessLeaseKey(h.cfg.ID, l.incarnation),
		func() []byte { return h.value(l, state) }, h.cfg.TTL)
	if err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancelCause(h.ctx)
	lost := l.lease.Keep(l.ctx, 0, func() []byte {
		h.mu.Lock()
		state := h.state
		if h.term != l && state == buslease.Ready {
			// it does not have its sessions yet
			state = buslease.Starting
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

// live makes an incarnation the present one.
func (h *Harness) live(l *term) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term = l
	close(h.reborn)
	h.reborn = make(chan struct{})
}

// alive is the present incarnation, once it has a lease.
func (h *Harness) alive(ctx context.Context) (*term, error) {
	for {
		h.mu.Lock()
		l, changed := h.term, h.reborn
		h.mu.Unlock()
		if l.ctx.Err() == nil {
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-h.ctx.Done():
			return nil, context.Cause(h.ctx)
		}
	}
}

// value is what the lease says.
func (h *Harness) value(l *term, state string) []byte { return h.valueWith(l, state, "") }

func (h *Harness) valueWith(l *term, state, abandoned string) []byte {
	v, err := json.Marshal(buslease.Record{ID: h.cfg.ID, Incarnation: l.incarnation, Exclusive: !h.cfg.Pool,
		State: state, Abandoned: abandoned, TTLMS: h.cfg.TTL.Milliseconds(),
		Host: h.cfg.Host, PID: os.Getpid(), Version: h.cfg.Version, StartedAt: l.started, RenewedAt: time.Now().UTC(),
		Connection: presence.Named{Connection: h.bus.Presence.Own(), Name: h.bus.Presence.Name()}})
	// nothing in it can fail to encode
	if err != nil {
		panic(err)
	}
	return v
}

// renew writes the lease now, because its state changed.
func (h *Harness) renew(ctx context.Context) error {
	h.mu.Lock()
	l, state := h.term, h.state
	h.mu.Unlock()
	if err := l.lease.RenewWith(ctx, func() []byte { return h.value(l, state) }); err != nil {
		return about(translate(err), "lease of %s as %s", h.cfg.ID, state)
	}
	return nil
}

// Ready sets the lease to ready, after the process has claimed the sessions that it continues: open items of older
// incarnations are now recovered. Call it after the claims. A lease that is lost meanwhile is no error: Ready waits
// until the process has started over, or until ctx ends. With [LeaseStop] it returns [ErrLeaseLost].
func (h *Harness) Ready(ctx context.Context) error {
	h.mu.Lock()
	if err := context.Cause(h.ctx); err != nil || h.state == buslease.Draining {
		h.mu.Unlock()
		return about(cmp.Or(err, ErrClosed), "ready %s", h.cfg.ID)
	}
	h.state = buslease.Ready
	h.mu.Unlock()
	for {
		l, err := h.alive(ctx)
		if err != nil {
			return about(err, "ready %s", h.cfg.ID)
		}
		if err = h.renew(ctx); !errors.Is(err, ErrLeaseLost) {
			return err
		}
		select {
		case <-l.ctx.Done():
		case <-ctx.Done():
			return err
		}
	}
}

// tend starts over each time the lease is lost, until the Harness is closed.
func (h *Harness) tend() {
	h.mu.Lock()
	l := h.term
	h.mu.Unlock()
	for {
		<-l.ctx.Done()
		if h.ctx.Err() != nil {
			return
		}
		cause := context.Cause(l.ctx)
		h.log.Warn().Str("id", h.cfg.ID).Str("entity", "lease").Str("incarnation", l.incarnation).
			AnErr("err", cause).Msg("lease lost")
		if h.cfg.OnLeaseLoss == LeaseStop {
			h.cancel(cause)
			for _, s := range h.owned() {
				s.drop(cause)
			}
			return
		}
		for _, s := range h.owned() {
			s.suspend(l)
		}
		next := h.startOver()
		if next == nil {
			return
		}
		l = next
	}
}

// startOver tries until it has a new incarnation with its sessions; nil when the Harness was closed first.
func (h *Harness) startOver() *term {
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(restartDelayMaxMS*time.Millisecond),
		backoff.WithMaxElapsedTime(0))
	for {
		l, err := h.beginAgain()
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

// beginAgain draws a new incarnation, unless a newer process of an exclusive harness lives, or has claimed a session of
// this one: a process that was paused or cut off must not take back what its successor has. A process that has drawn
// an incarnation and has left since, without a session, is no successor.
func (h *Harness) beginAgain() (*term, error) {
	if !h.cfg.Pool {
		h.mu.Lock()
		was := h.term.incarnation
		h.mu.Unlock()
		newest, own, err := h.bus.Leases.Drawn(h.ctx, h.cfg.ID)
		drawn := strconv.FormatUint(newest, 10)
		switch {
		case errors.Is(err, bus.ErrForbidden):
			// then the session's own fence has to do
		case err != nil:
			return nil, err
		case session.Older(was, drawn) && !own:
			by, err := h.successor()
			if err != nil {
				return nil, err
			}
			if by != "" {
				h.retire(by)
				return nil, ErrFenced
			}
		}
	}
	return h.begin(h.ctx)
}

// successor returns the newer incarnation that takes the place of this process: it has claimed a session of it, as the
// log says, or has a lease and does not leave. It returns "" without one.
func (h *Harness) successor() (by string, err error) {
	var all errgroup.Group
	all.SetLimit(claimsAtOnceMax)
	for _, s := range h.owned() {
		all.Go(func() error {
			if err := s.seen(h.ctx); err != nil && !errors.Is(err, ErrFenced) {
				return err
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return "", err
	}
	h.mu.Lock()
	own, by := h.drawn, h.newer
	h.mu.Unlock()
	if session.Older(own, by) {
		return by, nil
	}
	by = ""
	err = h.bus.Leases.Each(h.ctx, h.cfg.ID, func(incarnation string, value []byte) bool {
		var l buslease.Record
		err := json.Unmarshal(value, &l)
		stays := err != nil || l.Exclusive && l.State != buslease.Draining && l.Abandoned == ""
		if stays && session.Older(own, incarnation) {
			by = incarnation
		}
		return by == ""
	})
	return by, err
}

// seen reads what is new of a session that this process has, also while it is suspended.
func (s *Session) seen(ctx context.Context) error {
	s.mu.Lock()
	has := s.ownership != apart
	s.mu.Unlock()
	if !has {
		return nil
	}
	return s.catchUp(ctx)
}

// superseded retires this process if a session was taken for an incarnation that another process has drawn. While this
// process starts over, recovery may take a session for the incarnation that it has just drawn itself: it came too late
// for that session, and keeps the others.
func (h *Harness) superseded(by string) {
	h.mu.Lock()
	drawn := h.drawn
	h.mu.Unlock()
	if session.Older(drawn, by) {
		h.retire(by)
	}
}

// noteNewer records which incarnation has taken a session that this process has or wants. Members of a pool do not
// replace each other, and do not replace an exclusive process. The session may be locked, the harness not.
func (h *Harness) noteNewer(st *session.State) {
	if h.cfg.Pool || !st.Exclusive {
		return
	}
	by := st.Incarnation
	if session.Older(by, st.SupersededBy) {
		by = st.SupersededBy
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if session.Older(h.newer, by) {
		h.newer = by
	}
}

// endIfReplaced ends this process if a newer one has taken a session from it, and it has none left. With one left it
// continues: the newer process may die before it is ready, and recovery takes what is left as soon as it is ready. A
// process that has since drawn a newer incarnation itself is not replaced.
func (h *Harness) endIfReplaced() {
	h.mu.Lock()
	by := h.newer
	replaced := len(h.sessions) == 0 && session.Older(h.drawn, by)
	over := h.state == buslease.Draining || h.ctx.Err() != nil
	h.mu.Unlock()
	if replaced && !over {
		h.retire(by)
	}
}

// retire ends this process for good: another incarnation took its place.
func (h *Harness) retire(by string) {
	cause := &ReplacedError{Harness: h.cfg.ID, Incarnation: by}
	h.log.Warn().Str("id", h.cfg.ID).Str("entity", "harness").Str("incarnation", by).Msg("superseded")
	h.cancel(cause)
	for _, s := range h.owned() {
		s.drop(cause)
	}
}

// reclaimAll claims the sessions that no other process took for the new incarnation. When all that they adopt is
// stored, it restores the state of the lease: from then on recovery ends what is not adopted.
func (h *Harness) reclaimAll(l *term) {
	h.each(h.owned(), func(s *Session) {
		if err := s.reclaim(l); err != nil {
			h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg("not claimed again")
		}
	})
	h.each(h.owned(), func(s *Session) { s.awaitRest(l.ctx) })
	h.live(l)
	if err := h.renew(l.ctx); err != nil && !errors.Is(err, ErrLeaseLost) && l.ctx.Err() == nil {
		h.log.Warn().Str("id", h.cfg.ID).Str("entity", "lease").AnErr("err", err).Msg("not renewed: tried again")
	}
	h.log.Info().Str("id", h.cfg.ID).Str("entity", "harness").Str("incarnation", l.incarnation).
		Msg("started over")
}

// reclaim claims the session for a new incarnation of this process, if no other process took it since the lease was
// lost, and continues all its open items.
func (s *Session) reclaim(l *term) error {
	select {
	case s.writing <- struct{}{}:
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	defer func() { <-s.writing }()
	if s.isUnused() {
		// of a claim that no call waits for: recovery handles it
		s.drop(ErrLeaseLost)
		return nil
	}
	s.mu.Lock()
	held, was, epoch := s.ownership != apart, s.term, s.epoch
	s.mu.Unlock()
	if !held {
		return nil
	}
	// the open items of this process have this epoch, or that of a claim whose outcome was in doubt
	from := epoch
	var rest [][]events.Fact
	err := s.takeAgain(l, func() (facts []events.Fact, err error) {
		if st := s.State(); st.Owned && s.hasClaimed(st.Incarnation) {
			// an attempt in doubt had succeeded
			was, epoch = &term{incarnation: st.Incarnation}, st.Epoch
		}
		facts, rest, err = s.reclaiming(l, was, epoch, from)
		return facts, err
	})
	switch {
	case err == nil:
		return s.queueFirst(rest)
	case l.ctx.Err() != nil:
		// the new lease is lost, too: it stays suspended for the next one
	default:
		s.h.settleLater(s, l, err)
		if errors.Is(err, bus.ErrLogBehind) {
			err = fmt.Errorf("%w: the log no longer has what was read of it", ErrFenced)
		}
		s.drop(err)
	}
	return err
}

// takeAgain is [Session.take] for a process that starts over. A full log refuses the claim, and that ends nothing that
// this process runs: as in an outage the session stays suspended, and the claim is sent again until the log has room.
// The caller may write.
func (s *Session) takeAgain(l *term, build func() ([]events.Fact, error)) error {
	for {
		err := s.catchUp(l.ctx)
		if err == nil {
			_, err = s.take(l.ctx, l, true, build)
		}
		if !errors.Is(err, bus.ErrFull) {
			return err
		}
		s.h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg("not claimed again yet: trying on")
		select {
		case <-time.After(restartDelayMaxMS * time.Millisecond):
		case <-l.ctx.Done():
			return err
		}
	}
}

// hasClaimed reports whether this process has sent a claim under an incarnation since it last knew to own the session.
func (s *Session) hasClaimed(incarnation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.claiming, incarnation)
}

// reclaiming is what to append, or why the session cannot be had again. It is owned under an epoch; this process has
// what is open in it since the epoch from.
func (s *Session) reclaiming(l, was *term, epoch, from uint64) (facts []events.Fact, rest [][]events.Fact, err error) {
	st := s.State()
	switch {
	case st.Closed != nil:
		return nil, nil, ErrSessionClosed
	case !st.Owned && st.Epoch == epoch && st.Left == session.LeftReleased:
		return nil, nil, ErrReleased
	case !st.Owned || st.Epoch != epoch || st.Incarnation != was.incarnation:
		return nil, nil, ErrFenced
	}
	if !st.Exclusive {
		// no other process may; the next fact takes it back
		facts = append(facts, events.SessionReleased{Reason: "lease-lost"})
	}
	facts = append(facts, events.SessionClaimed{Incarnation: l.incarnation, Exclusive: s.h.cfg.exclusive()})
	a := Adopt{Turn: st.Turn != nil && !isLeftBefore(st.Turn.Epoch, from)}
	for id, c := range st.Tools {
		if !isLeftBefore(c.Epoch, from) {
			a.Calls = append(a.Calls, id)
		}
	}
	var late []events.Fact
	if c := st.Compaction; c.Running() && !isLeftBefore(c.Epoch, from) {
		facts = append(facts, events.CompactionStarted{Compaction: c.ID})
	}
	for id, p := range st.Prompts {
		switch {
		case isLeftBefore(p.Epoch, from):
		case p.Status == session.Awaiting:
			a.Prompts = append(a.Prompts, Prompt{ID: id})
			// its new request withdraws what the log says, also one of a claim in doubt
			if s.unasked(st, id) {
				late = append(late, events.PromptUnattended{Prompt: id})
			}
		default:
			if f := s.keptDecision(id); f != nil {
				late = append(late, f)
			}
		}
	}
	if a.Turn {
		for _, c := range st.Turn.Prompts {
			if c.Had >= from {
				// its Ask has returned: see ADR 85
				late = append(late, events.PromptDelivered{Prompt: c.Prompt})
			}
		}
	}
	again, err := s.adoption(l.ctx, []Adopt{a}, math.MaxUint64)
	if err != nil {
		return nil, nil, err
	}
	commits, err := s.split(facts, append(again, late...))
	if err != nil {
		return nil, nil, err
	}
	return append(facts, commits[0]...), commits[1:], nil
}

// queueFirst puts facts, as commits, in front of all waiting ones. They are adoptions: their items may have ended
// meanwhile. Their number is limited by the limits of a session, so a full buffer does not refuse them. The caller may
// write.
func (s *Session) queueFirst(commits [][]events.Fact) error {
	var ops []*write
	for _, facts := range commits {
		o, err := s.newWrite(facts)
		if err != nil {
			return err
		}
		o.relay, o.forced = true, true
		ops = append(ops, o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range ops {
		s.h.buffer.force(len(o.facts), o.bytes)
	}
	s.queue = slices.Concat(ops, s.queue)
	// that of the claim before can wait still
	s.rest = append(s.rest, ops...)
	s.scheduleLocked()
	return nil
}

// awaitRest waits until the rest of a claim has its outcome, or the new lease is lost, too.
func (s *Session) awaitRest(ctx context.Context) {
	s.mu.Lock()
	rest := s.rest
	s.mu.Unlock()
	for _, o := range rest {
		select {
		case <-o.done:
		case <-ctx.Done():
			// the next claim waits for it
			return
		}
	}
	s.mu.Lock()
	s.rest = nil
	s.mu.Unlock()
}

// Abandon ends this process's part at once, as SIGKILL would: nothing is withdrawn or released, and the lease ends as
// that of a dead process does. It is for those who play the death of a process, such as the replay of a recording; a
// process that leaves says [Harness.Close]. Contexts end with [ErrClosed]. It returns when nothing more is sent.
func (h *Harness) Abandon() {
	if h.endAtOnce() {
		h.bus.Close()
	}
}

// AbandonBecause is [Harness.Abandon] for a process that supervises the one which does the work, and has seen it end:
// the lease says how it ended, so its sessions are orphaned at once, with that as the detail. It is cut to one line of
// [events.DetailBytesMax] bytes. An error says that the lease does not have it: then recovery follows as for a killed
// process. Claims of a later incarnation go first, so a supervisor that continues sessions in the next process claims
// them before it abandons this one.
func (h *Harness) AbandonBecause(ctx context.Context, detail string) error {
	if !h.endAtOnce() {
		// it has left
		return nil
	}
	defer h.bus.Close()
	h.mu.Lock()
	l := h.term
	h.mu.Unlock()
	detail = cmp.Or(events.Detail(detail), "its process ended")
	err := l.lease.RenewWith(ctx, func() []byte { return h.valueWith(l, buslease.Draining, detail) })
	l.cancel(ErrClosed)
	if err != nil {
		return about(translate(err), "abandon %s", h.cfg.ID)
	}
	return nil
}

// endAtOnce ends everything but the connection, and reports whether that is left to close.
func (h *Harness) endAtOnce() bool {
	// the goroutine that settles doubts begins under it
	h.mu.Lock()
	// before anything else: later facts under it are not sent any more
	h.cancel(ErrClosed)
	h.mu.Unlock()
	for _, s := range h.owned() {
		s.drop(ErrClosed)
	}
	h.running.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.state == buslease.Draining
	// Close has nothing left to do
	h.state = buslease.Draining
	return !left
}
