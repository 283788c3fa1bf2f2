package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// OpenOptions says what a session is, when it is opened. All fields may be empty.
type OpenOptions struct {
	Parent       string // the session that this one works for
	ParentCall   string // the parent's call that waits for it
	Root         string // the outermost session; required with Parent
	Title        string
	Agent        string
	Model        string
	ContextLimit int64 // tokens
	Policy       *events.PolicyPatch
	Native       any // encoded as JSON, opaque
}

// Adopt names the open items of an earlier process that this process continues. It is part of the commit that claims
// the session, so none of them is recovered meanwhile; the other items are, once the lease is ready.
type Adopt struct {
	// Prompts whose answers this process will take: ask them again, under the same id, with [Turn.Ask]. They bring
	// their calls and their turn along; those of a call in the background bring the call alone. Without a title and
	// questions the question stays as it was asked, with the other fields that are set. As long as no Ask waits for a
	// prompt outside of any turn, or of a call in the background, its answer calls for a turn.
	Prompts []Prompt
	// Waiting: the prompts of the open turn that wait for a person, as they were asked, but not those of a call in the
	// background. They are adopted as those that Prompts names: with their calls, and with the turn. None is adopted if
	// another turn is requested in its place.
	// [Session.Requested] returns the questions.
	Waiting bool
	// Calls that go on. The open turn is not taken from a process that has adopted a call of it. A call in the
	// background does not count: a turn of which only such calls are adopted is recovered, and the calls go on. A
	// person may stop the turn: the context of [Session.OpenTurn] ends then, with [ErrStopped].
	Calls []string
	// Turn: the open turn continues. [Session.OpenTurn] is its handle, with the request that the turn was started with
	// ([Turn.Request]).
	Turn bool
	// ForWork: [Harness.Work] runs the turn that is adopted, as one that [Harness.Open] has adopted. Default: the
	// caller of Claim runs it.
	ForWork bool
}

// Open opens a session, or claims it if there is one, or finds that this process has it. It adopts the open turn that
// an earlier process left: [Harness.Work] runs it again, or [Session.OpenTurn] has its handle for a program that runs
// its turns itself. The calls of that turn are not adopted: [Step] and [Turn.Ask] find what has become of them. A turn
// that was adopted three times, with no result in between, or twenty times, is left to recovery, which limits how often
// it is resumed. A process that continues its turn after a lost lease adopts it, too. Every turn of a session whose
// policy does not resume turns by itself is left to recovery.
// After an error the session is not this process's, or is given up; see Uncertain outcomes. Errors: those of
// [Harness.Claim] but [ErrNotFound]; [ErrFull], the log is so full that no new session is opened.
func (h *Harness) Open(ctx context.Context, id string, o OpenOptions) (*Session, error) {
	native, err := encode(o.Native)
	if err != nil {
		return nil, about(err, "open %s: native", id)
	}
	opened := events.SessionOpened{Exclusive: h.cfg.exclusive(), Parent: o.Parent, ParentCall: o.ParentCall,
		Root: o.Root, Title: o.Title,
		Agent: o.Agent, Model: o.Model, ContextLimit: o.ContextLimit, Policy: o.Policy, Native: native}
	s, how, err := h.own(ctx, id, func(s *Session, l *term) ([]events.Fact, error) {
		if s.st.Opened() {
			return s.claimWithTurn(ctx, l)
		}
		if full, err := h.bus.Log.NearlyFull(ctx); err != nil || full {
			return nil, errors.Join(err, noRoom(full, id))
		}
		opened.Incarnation = l.incarnation
		return []events.Fact{opened}, nil
	})
	if err != nil || how == had {
		return s, err
	}
	if err := s.readTurn(ctx, s.openTurn(), s.State()); err != nil {
		h.dropHolder(s)
		return nil, err
	}
	s.handToWork()
	return s, nil
}

// Limits of how often Open adopts a turn: with nothing that came in between, and in all.
const (
	adoptionsMax    = 3
	adoptionsAllMax = 20
)

// claimWithTurn returns the claim of the session, and the adoption of its open turn.
func (s *Session) claimWithTurn(ctx context.Context, l *term) ([]events.Fact, error) {
	facts, err := s.claim(l)
	st := s.State()
	if err != nil || st.Turn == nil || st.Pending.Turn != nil {
		// a turn that was requested, for an answer for instance, comes in its place
		return facts, err
	}
	if p := &st.Policy; p.Resume != events.ResumeAuto || !p.AutoRetry || st.Retry.Resumes >= p.ResumeMax {
		// recovery interrupts it, and a person decides
		return facts, nil
	}
	n, all, err := s.adoptions(ctx, st.Turn)
	if err != nil {
		return nil, err
	}
	if n >= adoptionsMax || all >= adoptionsAllMax {
		s.h.log.Warn().Str("session", s.ref.String()).Str("entity", session.EntityTurn).Str("id", st.Turn.ID).Msgf(
			"adopted %d times, the last %d without a result: left to recovery", all, n)
		return facts, nil
	}
	return append(facts, turnAgain(st.Turn)), nil
}

// adoptions counts how often a turn was adopted: since a call of it, or a person, had a result, and in all.
func (s *Session) adoptions(ctx context.Context, t *session.Turn) (n, all int, err error) {
	begun := false
	err = s.h.bus.Log.Each(ctx, s.ref, t.MessageSeq, func(c events.Commit) error {
		for i := range c.Events {
			switch f := c.Events[i].Fact.(type) {
			case events.TurnStarted:
				switch {
				case f.Turn != t.ID:
				case begun:
					n, all = n+1, all+1
				default:
					begun = true
				}
			case events.ToolCompleted, events.PromptAnswered, events.PromptRejected:
				n = 0
			}
		}
		return nil
	})
	return n, all, err
}

// handToWork has Work run the open turn, if this process has adopted it.
func (s *Session) handToWork() {
	if t := s.openTurn(); t != nil {
		s.mu.Lock()
		s.forWork = t.id
		s.mu.Unlock()
		s.h.notifyWork(s.ref.Session)
	}
}

// noRoom refuses a new session while the log is nearly full: the rest is for the present sessions.
func noRoom(full bool, id string) error {
	if !full {
		return nil
	}
	return fmt.Errorf("%w: nearly; session %s is not opened: close others, or raise the limit", ErrFull, id)
}

// Claim takes a session and continues the named items. [Session.State] then has what an earlier process left. If this
// process has the session already, the named items that are not adopted yet are adopted now. Errors: [ErrNotFound];
// [ErrSessionClosed]; [ErrOwned], another member of the pool has it; [ErrFenced], a newer incarnation has it or
// superseded this one. After any error the session is not this process's, or is released; see Uncertain outcomes.
func (h *Harness) Claim(ctx context.Context, id string, adopt ...Adopt) (*Session, error) {
	adopt, err := encoded(adopt)
	if err != nil {
		return nil, about(err, "claim %s", id)
	}
	var rest [][]events.Fact
	s, how, err := h.own(ctx, id, func(s *Session, l *term) (facts []events.Fact, err error) {
		if facts, err = s.claim(l); err == nil {
			facts, rest, err = s.adopting(ctx, facts, adopt, math.MaxUint64)
		}
		return facts, err
	})
	if err != nil {
		return nil, err
	}
	var now []events.Fact
	if how != took {
		if now, rest, err = s.adopting(ctx, nil, adopt, s.State().Epoch); len(now) > 0 {
			rest = append([][]events.Fact{now}, rest...)
		}
	}
	for i := 0; i < len(rest) && err == nil; i++ {
		err = s.Relay(ctx, rest[i]...)
	}
	if err == nil && len(adopt) > 0 {
		err = s.readTurn(ctx, s.turnOfThis(), s.State())
	}
	// after an error, too: another caller may have the session
	s.recordUnasked(errors.Is(err, ErrPending), adopt...)
	if err != nil {
		h.dropHolder(s)
		return nil, err
	}
	adopts := how != had || slices.ContainsFunc(now, isTurnStarted)
	if adopts && slices.ContainsFunc(adopt, func(a Adopt) bool { return a.ForWork }) {
		// a turn that this process had runs already
		s.handToWork()
	}
	return s, nil
}

func isTurnStarted(f events.Fact) bool { _, ok := f.(events.TurnStarted); return ok }

// readTurn gives the handle of a turn that was adopted its request: the content of the message and the decisions that
// the turn was started with are in the log.
func (s *Session) readTurn(ctx context.Context, t *Turn, st *session.State) error {
	if t == nil || t.Request().Turn != "" {
		return nil
	}
	w, err := st.WorkOpen(s.commits(ctx))
	if err != nil {
		return about(translate(err), "turn %s in %s", t.id, s.ref)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// another turn may have begun meanwhile
	if w != nil && w.Turn == t.id {
		t.request = *w
	}
	return nil
}

// adopting returns these facts with as much of an adoption as fits into their commit, and the commits of the rest.
func (s *Session) adopting(ctx context.Context, facts []events.Fact, adopt []Adopt, below uint64) (now []events.Fact,
	rest [][]events.Fact, err error) {
	again, err := s.adoption(ctx, adopt, below)
	if err != nil {
		return nil, nil, err
	}
	s.answerFor(again)
	commits, err := s.split(facts, again)
	if err != nil {
		return nil, nil, err
	}
	return append(facts, commits[0]...), commits[1:], nil
}

// answerFor records the calls that this process adopts by these facts: the questions of an earlier process belong to
// them, and no Ask of this one has returned the decisions.
func (s *Session) answerFor(facts []events.Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.adopted, func(call string, _ bool) bool { return s.st.Tools[call] == nil })
	for _, f := range facts {
		switch f := f.(type) {
		case events.ToolStarted:
			s.adopted[f.Call] = true
		case events.PromptRequested:
			if f.Call != "" {
				s.adopted[f.Call] = true
			}
		}
	}
}

// encoded returns what to adopt with all that users gave as JSON: encoding may run user code, which must not be called
// while a session is being taken.
func encoded(adopt []Adopt) ([]Adopt, error) {
	adopt = slices.Clone(adopt)
	for i := range adopt {
		adopt[i].Prompts = slices.Clone(adopt[i].Prompts)
		for n := range adopt[i].Prompts {
			p := &adopt[i].Prompts[n]
			native, err := encode(p.Native)
			if err != nil {
				return nil, fmt.Errorf("prompt %s: native: %w", p.ID, err)
			}
			p.Native = native
		}
	}
	return adopt, nil
}

// split divides facts into commits: the first has room for those beside it and may be empty, each of the others holds
// one fact or more. Facts are measured as they will be sent, under the longest envelope that they can have. A fact that
// no commit can hold is refused, before anything is sent.
func (s *Session) split(beside, facts []events.Fact) (commits [][]events.Fact, err error) {
	const incarnation = "18446744073709551615"
	at := time.Date(9999, time.December, 31, 23, 59, 59, 999_999_999, time.UTC)
	full, bytes := len(beside), len("[]")
	commits = [][]events.Fact{nil}
	for i, f := range slices.Concat(beside, facts) {
		e := events.New(s.h.bus.NewID(), events.HarnessSource(s.ref.Harness, incarnation), s.ref, math.MaxUint64, at, f)
		body, err := events.EncodeBatch([]events.Event{e})
		if err != nil {
			return nil, about(err, "%s", s.ref)
		}
		// a comma in place of two brackets
		more := len(body) - 1
		bytes += more
		if i < len(beside) {
			continue
		}
		if full++; full > events.CommitFactsMax || bytes > events.CommitBodyMax {
			commits, full, bytes = append(commits, nil), 1, len("[]")+more
		}
		last := &commits[len(commits)-1]
		*last = append(*last, f)
	}
	return commits, nil
}

// taken is how a call of own came to a session.
type taken int

const (
	had   taken = iota // this process owned it already
	found              // an earlier call had taken it, whose outcome was in doubt
	took               // by a commit of its own
)

// own makes this process the owner of a session. build returns the facts for that, given the session and the present
// incarnation; it is called again if another writer was first, and not at all if the session is owned already.
func (h *Harness) own(ctx context.Context, id string, build func(*Session, *term) ([]events.Fact, error)) (*Session,
	taken, error) {
	s, err := h.session(id)
	if err != nil {
		return nil, had, err
	}
	defer h.dropUser(s)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })()
	how, err := h.ownNow(ctx, s, build)
	if err == nil {
		return s, how, nil
	}
	if h.ctx.Err() != nil {
		err = errors.Join(context.Cause(h.ctx), err)
	}
	return nil, how, about(translate(err), "claim %s", s.ref)
}

func (h *Harness) ownNow(ctx context.Context, s *Session,
	build func(*Session, *term) ([]events.Fact, error)) (how taken, err error) {
	l, err := h.mayTake(ctx, s)
	if err != nil {
		return had, err
	}
	defer func() { <-s.writing }()
	if s.isApart() {
		fresh, err := s.load(ctx)
		if err == nil {
			how, err = s.take(ctx, l, fresh, func() ([]events.Fact, error) { return build(s, l) })
		}
		if err != nil {
			h.settleLater(s, l, err)
			return how, err
		}
	}
	s.mu.Lock()
	if how == had && s.holders == 0 {
		how = found
	}
	s.holders++
	if s.works {
		s.works = false
		// Work leaves alone what is being released
		h.notifyWork(s.ref.Session)
	}
	s.mu.Unlock()
	if how == found {
		s.failUnmadeCompaction()
		// that call may have adopted prompts
		s.recordUnaskedOf(false, func(string, string) bool { return true })
		// Work leaves alone what no caller has
		h.notifyWork(s.ref.Session)
	}
	return how, nil
}

// mayTake waits until this process has a lease and no other goroutine writes the session; the caller then may. If the
// lease is lost from here on, starting over waits for the session and claims it again.
func (h *Harness) mayTake(ctx context.Context, s *Session) (*term, error) {
	for {
		l, err := h.alive(ctx)
		if err != nil {
			return nil, err
		}
		select {
		case s.writing <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if l.ctx.Err() == nil {
			return l, nil
		}
		<-s.writing
	}
}

// load reads the stored document, and the log without one, or when it was folded by older rules. fresh: the log has
// nothing beyond what was read.
func (s *Session) load(ctx context.Context) (fresh bool, err error) {
	st, n := session.New(s.ref), s.h.bus.Reconnects()
	e, err := s.h.bus.KV.Load(ctx, kv.State, events.SessionKey(s.ref))
	switch {
	case err == nil:
		if st, err = session.Decode(e.Value); err != nil {
			return false, err
		}
		if st.Outdated() {
			st = session.New(s.ref)
		}
	case !errors.Is(err, bus.ErrNotFound):
		return false, err
	}
	s.mu.Lock()
	// of a document the last commit is not known
	s.st, s.last = st, log.Last{}
	s.mu.Unlock()
	s.prove(n)
	if st.Seq > 0 {
		// a document is rarely behind: the compare-and-set tells
		return false, nil
	}
	return true, s.catchUp(ctx)
}

// take appends the facts that make this incarnation the owner, until no other writer is first. Only a fresh state
// counts when it shows that nothing can or need be done. A [*doubtError] means that the commit may have been stored.
// The caller may write.
func (s *Session) take(ctx context.Context, l *term, fresh bool, build func() ([]events.Fact, error)) (taken, error) {
	for {
		if fresh && s.begin(l) {
			return found, nil
		}
		facts, err := build()
		if err != nil && !fresh {
			if err := s.catchUp(ctx); err != nil {
				return had, err
			}
			fresh = true
			continue
		}
		if err != nil {
			return had, err
		}
		evs, after := s.envelop(l, facts)
		s.mu.Lock()
		if !slices.Contains(s.claiming, l.incarnation) {
			s.claiming = append(s.claiming, l.incarnation)
		}
		s.mu.Unlock()
		seq, err := s.store(ctx, after, evs)
		if errors.Is(err, bus.ErrLostRace) {
			if err := s.catchUp(ctx); err != nil {
				return had, err
			}
			fresh = true
			continue
		}
		if errors.Is(err, events.ErrMalformed) {
			// nothing was sent
			return had, err
		}
		if err != nil {
			return had, &doubtError{evs: evs, after: after, err: err}
		}
		s.fold([]events.Commit{s.commit(seq, after, evs)}, 0)
		// to the former owner
		s.h.bus.Hints.Nudge(s.ref, seq)
		if !s.begin(l) {
			return had, fmt.Errorf("%w: it was taken at once", ErrFenced)
		}
		s.h.log.Info().Str("session", s.ref.String()).Uint64("seq", seq).Str("reason",
			string(facts[0].Kind())).Msg("owned")
		return took, nil
	}
}

// begin starts this process's part if the log says that this incarnation owns the session. If the lease was lost while
// the claim was under way, the session is suspended like all others.
func (s *Session) begin(l *term) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.st.Owned || s.st.Incarnation != l.incarnation {
		return false
	}
	if s.ctx.Err() != nil {
		s.ctx, s.cancel = context.WithCancelCause(s.h.ctx)
	}
	switch s.ownership {
	case suspended:
		close(s.resumed)
	case apart:
		s.holders, s.since = 0, s.st.Epoch
	}
	s.ownership, s.why, s.term, s.epoch, s.unacked, s.want = owner, nil, l, s.st.Epoch, nil, 0
	s.claiming = nil
	if t := s.turn; t != nil && t.ctx.Err() != nil {
		t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	}
	s.follow()
	// the claim was stored right behind what was read
	s.handOut(s.st.Seq)
	// commits that arrived during the claim
	s.readUpToLocked(s.ahead)
	if l.ctx.Err() != nil {
		s.suspendLocked(l)
	}
	return true
}

// envelop wraps facts that make an incarnation the owner: a claim begins a new epoch for those that follow it.
func (s *Session) envelop(l *term, facts []events.Fact) (evs []events.Event, after uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch, incarnation := max(s.st.Epoch, 1), l.incarnation
	now := time.Now().UTC()
	for _, f := range facts {
		switch f.(type) {
		case events.SessionClaimed:
			epoch, incarnation = epoch+1, l.incarnation
		case events.SessionReleased:
			incarnation = s.st.Incarnation
		}
		evs = append(evs, events.New(s.h.bus.NewID(), events.HarnessSource(s.ref.Harness, incarnation), s.ref, epoch,
			now, f))
	}
	return evs, s.st.Seq
}

// claim is the claim of the session as it is, or why it cannot be claimed.
func (s *Session) claim(l *term) ([]events.Fact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	switch {
	case st.Closed != nil:
		return nil, fmt.Errorf("%w (%s)", ErrSessionClosed, st.Closed.Reason)
	case !st.Opened():
		return nil, ErrNotFound
	case st.Claimable(l.incarnation):
		return []events.Fact{events.SessionClaimed{Incarnation: l.incarnation, Exclusive: s.h.cfg.exclusive()}}, nil
	case st.Owned && !st.Exclusive:
		return nil, fmt.Errorf("%w: incarnation %s", ErrOwned, st.Incarnation)
	default:
		s.h.noteNewer(st)
		return nil, fmt.Errorf("%w: incarnation %s has it or had it, superseded by %q; this one is %s", ErrFenced,
			st.Incarnation, st.SupersededBy, l.incarnation)
	}
}

// adoption returns the facts that continue the named items. Items that are not open are left out. Settled prompts
// cannot be asked again, but their turn and call continue, so that the asker can use the decision; of a call in the
// background the call alone. Items of epoch below, or a later one, are adopted already.
func (s *Session) adoption(ctx context.Context, adopt []Adopt, below uint64) ([]events.Fact, error) {
	st := s.State()
	var first, prompts []events.Fact
	turn, calls := false, map[string]bool{}
	for _, a := range adopt {
		turn = turn || a.Turn
		for _, id := range a.Calls {
			calls[id] = true
		}
		for _, want := range slices.Concat(a.Prompts, a.waiting(st)) {
			p := st.Prompts[want.ID]
			if p == nil || !isLeftBefore(p.Epoch, below) {
				continue
			}
			if p.Status != session.Awaiting {
				c := st.Tools[p.Call]
				// outlives the turn
				apart := c != nil && c.Background
				calls[p.Call], turn = true, turn || !apart && st.Turn != nil && p.Turn == st.Turn.ID
				continue
			}
			f, err := s.again(ctx, want, p)
			if err != nil {
				return nil, err
			}
			prompts = append(prompts, f)
		}
	}
	if turn && st.Turn != nil && isLeftBefore(st.Turn.Epoch, below) {
		first = append(first, turnAgain(st.Turn))
	}
	for id := range calls {
		if c := st.Tools[id]; c != nil && isLeftBefore(c.Epoch, below) {
			first = append(first, events.ToolStarted{Call: id, Turn: c.Turn, Name: c.Name, Title: c.Title,
				Background: c.Background})
		}
	}
	return append(first, prompts...), nil
}

// waiting returns the prompts of the open turn that wait for a person, if they are to be adopted and are not named.
func (a *Adopt) waiting(st *session.State) (all []Prompt) {
	if !a.Waiting || st.Turn == nil || st.Pending.Turn != nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(st.Prompts)) {
		p := st.Prompts[id]
		named := slices.ContainsFunc(a.Prompts, func(p Prompt) bool { return p.ID == id })
		c := st.Tools[p.Call]
		if apart := c != nil && c.Background; !named && !apart && p.Awaits() && p.Turn == st.Turn.ID {
			all = append(all, Prompt{ID: id})
		}
	}
	return all
}

// Requested returns the newest request of a prompt that the session has, with its questions and its native data.
// Errors: [ErrUnknown], the session has no such prompt, or no longer; [ErrUnreachable].
func (s *Session) Requested(ctx context.Context, prompt string) (events.PromptRequested, error) {
	p := s.State().Prompts[prompt]
	if p == nil {
		return events.PromptRequested{}, fmt.Errorf("%w: prompt %s in %s", ErrUnknown, prompt, s.ref)
	}
	f, err := s.newest(ctx, prompt, p)
	if err != nil {
		return f, about(translate(err), "prompt %s in %s", prompt, s.ref)
	}
	return f, nil
}

// ofLastOwner reports whether the session's last owner opened, or adopted, an item with this epoch. Unlike
// [session.State.Owns], it holds also while the session has no owner.
func ofLastOwner(st *session.State, epoch uint64) bool { return epoch == st.Epoch }

// again is the request of an open prompt once more: with a new body, or as it is in the log with the other fields that
// are given.
func (s *Session) again(ctx context.Context, want Prompt, p *session.Prompt) (events.Fact, error) {
	if !want.byID() {
		return want.requested(p.Turn)
	}
	f, err := s.newest(ctx, want.ID, p)
	if err != nil {
		return nil, err
	}
	return want.over(f)
}

// newest reads the newest request of a prompt.
func (s *Session) newest(ctx context.Context, id string, p *session.Prompt) (events.PromptRequested, error) {
	c, err := s.h.bus.Log.Commit(ctx, p.Seq)
	if err != nil {
		return events.PromptRequested{}, fmt.Errorf("the request of prompt %s: %w", id, err)
	}
	for _, e := range slices.Backward(c.Events) {
		if f, ok := e.Fact.(events.PromptRequested); ok && f.Prompt == id {
			return f, nil
		}
	}
	return events.PromptRequested{}, fmt.Errorf("the request of prompt %s: %w: not in commit %d", id,
		events.ErrMalformed, p.Seq)
}

func turnAgain(t *session.Turn) events.TurnStarted {
	return events.TurnStarted{Turn: t.ID, Cause: t.Cause, Synthetic: t.Synthetic, OfTurn: t.OfTurn, Message: t.Message,
		Attempt: t.Attempt}
}
