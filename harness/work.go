package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of [Harness.Work].
const (
	turnsMaxDefault = 16 // turns and compactions at once
	checkAgainS     = 5  // seconds after which all offers are checked again, with or without a nudge
	lastWordMaxS    = 10 // seconds that the end of a turn may take to be stored after Work's context has ended
)

// Worker does what a harness is asked to do.
type Worker struct {
	// Turn runs a turn that was requested and has been taken: [Turn.Request] says what it is, also which answers it
	// brings (Prompts): they count as delivered when the turn completes. ctx is [Turn.Context]. The turn may be ended
	// in it; if it was not, nil completes it, [ErrStopped] as the cause of ctx stops it ([*StopError] tells whether a
	// person, compaction or the stall watchdog asked), and any other error fails it, as [Turn.FailWith] does.
	//
	// How often a failed turn is tried again depends on the kind of the failure. A plain error is handler_error, a
	// mistake in the agent: it is logged, and tried once more. [*ProviderError] and [*FailureError] name other kinds,
	// which are tried up to twenty times. Final kinds: authentication, quota, model_not_found, context_exceeded (a
	// compaction follows), aborted, runtime_not_ready, model_refusal, outcome_unknown ([ErrOutcomeUnknown]).
	//
	// nil: turns stay pending.
	Turn func(ctx context.Context, t *Turn) error
	// Options is asked, when a turn is taken that was requested without options, what makes it the same request when it
	// is tried again: a model, an agent, a temperature. It is encoded as JSON, at most 16 KiB; beyond, the turn fails
	// as runtime_not_ready with the reason. nil: nothing. It may be asked several times for one turn. s may not be this
	// process's yet, so t names the decisions that the turn brings, and does not have them. Work does not wait for it
	// after its context has ended.
	Options func(s *Session, t session.WorkTurn) any
	// Compact compacts the session's conversation and returns how many tokens are used after it, 0 if that is not
	// known; an error fails the compaction, as with turns. Look at the summary with [ValidateSummary], and say
	// [Session.Progress] while it is made: a compaction that nothing was heard of for stall_after is taken away. Then
	// ctx ends, its cause is [ErrEnded], what comes of it does not count, and the conversation is to stay as it was.
	//
	// nil: with a Turn, each compaction is taken and fails at once as runtime_not_ready, which is final, and is logged
	// as a warning: messages and answers wait for a compaction, and would wait for ever. Every process of a pool that
	// runs turns needs it, if one of them has it. Without a Turn compactions stay pending.
	Compact func(ctx context.Context, s *Session, c session.WorkCompaction) (usedAfter int64, err error)
	// Sessions are the sessions whose requests are taken. Those of all others stay pending. nil: all sessions.
	Sessions []string
	// TurnsMax is how many turns and compactions run at once. Default 16. Further ones stay pending. A turn whose
	// handler waits in [Turn.Ask] or [Turn.WaitFor] does not count, and continues at once when the wait is over, so
	// more turns may run for a while: with 1, too, two handlers can run at the same time if they ask. A handler that
	// waits for another turn of this process, such as a sub-agent's, does so in [Turn.WaitFor]: otherwise TurnsMax
	// handlers that wait leave no place for the turns that they wait for.
	TurnsMax int
}

// watch follows the work view: the certain way to learn what is asked, while nudges are the quick one.
func (h *Harness) watch() {
	if err := h.bus.KV.Watch(h.ctx, kv.State, []string{events.WorkKeys(h.cfg.ID)}, h.offered); err != nil {
		h.log.Error().Str("id", h.cfg.ID).AnErr("err",
			err).Msg("the work view cannot be watched: only nudges tell of answers")
	}
}

func (h *Harness) offered(u kv.Update) error {
	if u.Ready {
		return nil
	}
	var w session.Work
	if !u.Deleted {
		if err := json.Unmarshal(u.Value, &w); err != nil {
			h.log.Warn().Str("id", u.Key).AnErr("err", err).Msg("unreadable work")
			return nil
		}
	}
	h.mu.Lock()
	if u.Deleted {
		delete(h.offers, u.Key)
	} else {
		h.offers[u.Key] = w
	}
	h.mu.Unlock()
	if !u.Deleted {
		h.readUpTo(w.Session, w.Seq)
		h.notifyWork(w.Session)
	}
	return nil
}

// notifyWork makes Work check a session.
func (h *Harness) notifyWork(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.working {
		return
	}
	h.dirty[id] = true
	h.checkWork()
}

// checkWork makes Work hand out what there is to do, if as many as may do not run already.
func (h *Harness) checkWork() {
	select {
	case h.workReady <- struct{}{}:
	default:
	}
}

// Work runs the turns that [Harness.Open] has adopted, and [Harness.Claim] for it ([Adopt.ForWork]). It takes the
// requests for this harness, in its own sessions and in those without an owner, and runs the handlers, until ctx ends;
// then it waits for the handlers (whose contexts end with ctx), and at most 10 s for their last facts to be stored, and
// returns nil. Taking is a compare-and-set: of several processes one wins. Answers reach their [Turn.Ask], and stops
// their [Turn.Context], also without Work.
//
// A turn whose handler returned an error because ctx ended stays open. The next Work of this process runs it again,
// [Session.OpenTurn] has its handle, and without both it is recovered when this process has left. A last fact that
// could not be stored in time, or that the broker refused, is stored later if this process lives. A turn that was taken
// when ctx ended, and that no handler has run when the session is released, fails as interrupted: it is tried again.
//
// In a pool a session that Work took is released when its turn has ended, for the next free member, and when ctx has
// ended, unless the program opens or claims it meanwhile. While a call in the background that this process began is
// open, or a [Session.Ask] of this process waits, the session stays with the process.
//
// Call [Harness.Ready] first, after the sessions that this process continues are open; else Work returns [ErrNotReady].
func (h *Harness) Work(ctx context.Context, w Worker) error {
	if w.TurnsMax <= 0 {
		w.TurnsMax = turnsMaxDefault
	}
	h.mu.Lock()
	switch {
	case h.working:
		h.mu.Unlock()
		return fmt.Errorf("harness: work of %s: Work runs already", h.cfg.ID)
	case h.state == buslease.Starting && h.ctx.Err() == nil:
		h.mu.Unlock()
		return about(ErrNotReady, "work of %s", h.cfg.ID)
	}
	h.working = true
	for id := range h.sessions {
		h.dirty[id] = true
	}
	h.mu.Unlock()
	late, done := h.lastWord(ctx)
	defer done()
	k := &workLoop{h: h, w: w, late: late, busy: map[string]*place{}}
	again := time.NewTicker(checkAgainS * time.Second)
	defer again.Stop()
	k.markOffers()
	for {
		select {
		case <-again.C:
			// level-triggered: it makes up for a check that failed
			k.markOffers()
		case <-h.workReady:
			k.handOut(ctx)
		case <-ctx.Done():
			return k.end(ctx, nil)
		case <-h.ctx.Done():
			return k.end(ctx, about(context.Cause(h.ctx), "work of %s", h.cfg.ID))
		}
	}
}

// markOffers makes Work check every session with an offer, and those that it is to release.
func (k *workLoop) markOffers() {
	taken := k.taken()
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	for _, offer := range k.h.offers {
		k.h.dirty[offer.Session] = true
	}
	for _, s := range taken {
		k.h.dirty[s.ref.Session] = true
	}
	k.h.checkWork()
}

// workLoop is one Work.
type workLoop struct {
	h    *Harness
	w    Worker
	late context.Context // for the last facts of handlers and the releases: one bound for all of them
	wg   sync.WaitGroup
	warn sync.Once // that Compact is missing

	mu      sync.Mutex
	busy    map[string]*place // sessions that a goroutine works on
	running int               // how many of them count for TurnsMax
}

func (k *workLoop) end(ctx context.Context, err error) error {
	k.wg.Wait()
	k.h.each(k.taken(), func(s *Session) {
		if s.openTurn() != nil {
			// the program runs it: one whose handler was cut off was released with its session
			return
		}
		if _, err := k.releaseTaken(ctx, s); err != nil {
			k.h.log.Debug().Str("session", s.ref.String()).AnErr("err", err).Msg("not released at the end of Work")
		}
	})
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.h.working = false
	clear(k.h.dirty)
	return err
}

// handOut gives each session that has something to do to a goroutine, one a session, as many as may run at once.
func (k *workLoop) handOut(ctx context.Context) {
	for {
		id, p := k.next()
		if p == nil {
			// the next goroutine that is free hands out the rest
			return
		}
		k.wg.Go(func() {
			k.serve(ctx, id)
			p.free()
			k.mu.Lock()
			delete(k.busy, id)
			k.mu.Unlock()
			k.h.checkWork()
		})
	}
}

// next returns a session that no goroutine works on, and its place; it is marked as being worked on. It returns no
// place if there is no such session, or if as many run as may.
func (k *workLoop) next() (string, *place) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running >= k.w.TurnsMax {
		return "", nil
	}
	for id := range k.h.dirty {
		if k.busy[id] == nil {
			delete(k.h.dirty, id)
			k.running++
			k.busy[id] = &place{loop: k}
			return id, k.busy[id]
		}
	}
	return "", nil
}

// placeOf returns the place of a session that a goroutine works on.
func (k *workLoop) placeOf(id string) *place {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.busy[id]
}

// serve does all that there is to do in a session, in the contract's order. (Stops and prompts are dealt with where
// they are folded.)
func (k *workLoop) serve(ctx context.Context, id string) {
	if k.w.Sessions != nil && !slices.Contains(k.w.Sessions, id) {
		return
	}
	for ctx.Err() == nil {
		more, err := k.serveOnce(ctx, id)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, events.ErrMalformed):
			// this process's facts are invalid: another attempt fails, too
			k.h.log.Error().Str("session", id).AnErr("err", err).Msg("work not taken, or not finished")
		default:
			k.h.log.Debug().Str("session", id).AnErr("err", err).Msg("work not taken, or not finished")
		}
		if !more || err != nil {
			return
		}
	}
}

func (k *workLoop) serveOnce(ctx context.Context, id string) (more bool, err error) {
	k.h.mu.Lock()
	s := k.h.sessions[id]
	offer, offered := k.h.offers[events.WorkKey(events.Ref{Harness: k.h.cfg.ID, Session: id})]
	k.h.mu.Unlock()
	switch {
	case s != nil && s.unheld():
		// it is given up, or a call is about to have it, which checks it again
		return false, nil
	case s != nil && !s.isApart():
		defer s.workOn("")
		if t := k.adopted(s); t != nil {
			return k.afterHandler(ctx, s, k.run(ctx, t))
		}
		item, err := k.findWork(ctx, s)
		if err != nil {
			return false, err
		}
		if item == nil {
			_, err = k.releaseTaken(ctx, s)
			return false, err
		}
		if k.mustChoose(item) {
			c, err := k.choose(ctx, s, item)
			if err != nil {
				return false, err
			}
			item.setOptions(c)
		}
		err = s.append(ctx, func(st *session.State) (bool, error) { return s.wanted(item, st), nil }, item.taking()...)
		if errors.Is(err, ErrPending) {
			s.handOnTaken(item)
		}
		if err != nil || item.gone {
			return false, err
		}
		return k.afterHandler(ctx, s, k.do(ctx, s, item))
	case offered && !offer.Owned:
		return k.takeOver(ctx, id)
	default:
		return false, nil
	}
}

// takeOver takes work of a session without an owner, and the session with it, by one commit.
func (k *workLoop) takeOver(ctx context.Context, id string) (more bool, err error) {
	s, err := k.h.session(id)
	if err != nil {
		return false, err
	}
	defer k.h.dropUser(s)
	defer s.workOn("")
	var item *workItem
	var how taken
	for asked := (choice{}); ; {
		item = nil
		_, how, err = k.h.own(ctx, id, func(s *Session, l *term) ([]events.Fact, error) {
			if s.State().Owned {
				return nil, ErrOwned
			}
			facts, err := s.claim(l)
			if err != nil {
				return nil, err
			}
			if item, err = k.findWork(ctx, s); err != nil {
				return nil, err
			}
			if item == nil {
				return nil, errNothing
			}
			if !item.setOptions(asked) && k.mustChoose(item) {
				return nil, errUnasked
			}
			s.workOn(item.turnID())
			return append(facts, item.taking()...), nil
		})
		if !errors.Is(err, errUnasked) {
			break
		}
		if asked, err = k.choose(ctx, s, item); err != nil {
			return false, err
		}
	}
	if errors.Is(err, errNothing) || errors.Is(err, ErrOwned) {
		// another writer was first
		return false, nil
	}
	switch {
	case err != nil:
		if _, doubt := errors.AsType[*doubtError](err); doubt {
			s.markUnmade(item)
		}
		return false, err
	case how == found:
		// turns that an earlier Work took have no handler: a release lets recovery request them again
		k.h.dropHolder(s)
		return false, nil
	case how == had:
		// check it as any session of this process
		return true, nil
	}
	s.takenByWork()
	return k.afterHandler(ctx, s, k.do(ctx, s, item))
}

// afterHandler is called when a handler has returned, with the error of its work. It lets the session go if it is to.
func (k *workLoop) afterHandler(ctx context.Context, s *Session, err error) (more bool, _ error) {
	if gone, left := k.releaseTaken(ctx, s); gone || left != nil {
		return false, left
	}
	return err == nil, err
}

// releaseTaken releases a session that Work took, in a pool, unless the program has it, a turn is open in it, a call of
// this process runs in the background, or an Ask of this process waits outside of any turn: the release would have
// recovery end that call, and would withdraw that question. When ctx has ended, the session is released with its turn,
// which was cut off: another member continues the turn. A session that is not released now is checked again when
// something changes in it, after a while, and at the end of Work.
func (k *workLoop) releaseTaken(ctx context.Context, s *Session) (gone bool, err error) {
	if !s.isWorks() {
		return false, nil
	}
	claimed := func(st *session.State) (bool, error) { return !s.works || s.runsBeside(st), nil }
	switch {
	case ctx.Err() != nil:
		s.failUnmadeTurn(func() bool { return s.works && !s.runsBeside(s.st) })
		err = s.appendEnd(k.late, claimed, events.SessionReleased{Reason: reasonWorked})
	case s.openTurn() == nil:
		err = s.endOwnership(k.late, claimed, events.SessionReleased{Reason: reasonWorked}, true)
	default:
		return false, nil
	}
	if s.isApart() {
		return true, nil
	}
	// nil: the program has it now
	return false, err
}

// runsBeside reports whether the program still does something in the session although its handler has returned: a call
// in the background of this process is open, or an Ask waits for a question outside of the open turn. The session is
// locked.
func (s *Session) runsBeside(st *session.State) bool {
	for _, c := range st.Tools {
		if c.Background && st.Owns(c.Epoch) {
			return true
		}
	}
	for _, asks := range []map[string]*waiter{s.waiters, s.returning} {
		for id := range asks {
			if q := st.Prompts[id]; st.Turn == nil || q != nil && q.Turn != st.Turn.ID {
				return true
			}
		}
	}
	return false
}

// taken returns the sessions that Work took and is to release.
func (k *workLoop) taken() (all []*Session) {
	if !k.h.cfg.Pool {
		return nil
	}
	for _, s := range k.h.owned() {
		if s.isWorks() {
			all = append(all, s)
		}
	}
	return all
}

// takenByWork records that Work took the session, and not the program.
func (s *Session) takenByWork() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.works = s.h.cfg.Pool && s.holders == 1
}

// releasing reports whether the release of a session that Work took waits to be stored: the next Work of this process
// begins nothing in it. The session is locked.
func (s *Session) releasing() bool {
	return s.works && slices.ContainsFunc(slices.Concat(s.queue, s.kept), func(o *write) bool {
		return slices.ContainsFunc(o.facts, func(e events.Event) bool {
			return e.Kind == (events.SessionReleased{}).Kind()
		})
	})
}

// isWorks reports whether Work is to release the session.
func (s *Session) isWorks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.works
}

// reasonWorked is why a member of a pool releases a session that its Work took.
const reasonWorked = "worked"

// errNothing says there was nothing to take: another was first, or it was withdrawn.
var errNothing = errors.New("harness: no work")

// errNoCompact is why a compaction fails in a Work that runs turns and has no [Worker.Compact]. Pending without an end
// it would block all turns without a reason.
var errNoCompact = errors.New("the agent does not compact conversations: its Worker has no Compact")

// errUnasked says that [Worker.Options] is to be asked first, while the session is not being taken: it is user code.
var errUnasked = errors.New("harness: options not asked for yet")

// workItem is one thing to take: a compaction or a turn.
type workItem struct {
	compaction *session.WorkCompaction
	turn       *session.WorkTurn
	refused    error // it cannot be done: it is taken and fails with this
	gone       bool  // when it was to be taken it was no longer wanted
	left       bool  // its Work has ended, and whether it is taken is not known; guarded by the session
}

// choice is what [Worker.Options] gave for a turn.
type choice struct {
	turn    string
	options json.RawMessage
	err     error // it cannot be stored
}

// mustChoose reports whether Worker.Options has to be asked about an item.
func (k *workLoop) mustChoose(j *workItem) bool {
	return j.turn != nil && k.w.Options != nil && len(j.turn.Options) == 0
}

// choose asks Worker.Options. It is called with nothing locked and no session being taken. It fails when ctx ends
// first: Options is given no context, and may wait for the broker.
func (k *workLoop) choose(ctx context.Context, s *Session, j *workItem) (choice, error) {
	turn, done := *j.turn, make(chan choice, 1)
	go func() { done <- k.chosen(s, turn) }()
	select {
	case c := <-done:
		return c, nil
	case <-ctx.Done():
		return choice{}, context.Cause(ctx)
	}
}

// chosen returns what Worker.Options gives for a turn.
func (k *workLoop) chosen(s *Session, turn session.WorkTurn) choice {
	c := choice{turn: turn.Turn}
	c.err = handled(func() (err error) {
		c.options, err = encode(k.w.Options(s, named(turn)))
		return err
	})
	if c.err == nil {
		c.err = events.TurnStarted{Turn: c.turn, Cause: turn.Cause, Options: c.options}.Validate()
	} else {
		c.err = fmt.Errorf("%w: %w", events.ErrMalformed, c.err)
	}
	if c.err != nil {
		c.err = about(c.err, "the options of turn %s in %s", c.turn, s.ref)
	}
	return c
}

// setOptions gives an item the options that were chosen for its turn. It returns false if none were chosen.
func (j *workItem) setOptions(c choice) bool {
	if j.turn == nil || j.turn.Turn != c.turn {
		return false
	}
	if j.refused = c.err; c.err == nil {
		j.turn.Options = c.options
	}
	return true
}

// findWork returns what may be taken in a session in its present state; nil for nothing.
func (k *workLoop) findWork(ctx context.Context, s *Session) (*workItem, error) {
	st := s.State()
	if !takeable(st, k.w.Compact != nil || k.w.Turn != nil, k.w.Turn != nil) {
		return nil, nil
	}
	w, err := st.WorkWhole(func(seq uint64) (*events.Commit, error) {
		c, err := s.h.bus.Log.Commit(ctx, seq)
		return &c, err
	})
	if err != nil {
		return nil, about(translate(err), "work of %s", s.ref)
	}
	switch {
	case w.Compaction == nil:
		return &workItem{turn: w.Turn}, nil
	case k.w.Compact == nil:
		return &workItem{compaction: w.Compaction, refused: errNoCompact}, nil
	}
	return &workItem{compaction: w.Compaction}, nil
}

// takeable reports whether a compaction, or else a turn, may be taken now. A turn waits until a compaction is over, and
// until the open turn has ended, unless that was left behind by an earlier process. A turn that this process started or
// adopted, wholly or a call of it, is not taken from it, also not by one that would continue it.
func takeable(st *session.State, compactions, turns bool) bool {
	p, t := st.Pending.Turn, st.Turn
	idle := t == nil || !st.Runs(t.ID)
	if st.Pending.Compaction != nil {
		return compactions && idle
	}
	return turns && p != nil && !st.Compaction.Running() && idle
}

// taking is what is said to take it.
func (j *workItem) taking() []events.Fact {
	if c := j.compaction; c != nil {
		facts := []events.Fact{events.CompactionStarted{Compaction: c.Compaction}}
		if j.refused != nil {
			facts = append(facts, events.CompactionFailed{Compaction: c.Compaction,
				Error: events.Failure{Kind: failure.RuntimeNotReady, Text: j.refused.Error()}})
		}
		return facts
	}
	t := j.turn
	byPerson := !t.Synthetic &&
		(t.Cause == events.CauseMessage || t.Cause == events.CauseFollowUp && t.Message != "" && t.OfTurn == "")
	facts := []events.Fact{events.TurnStarted{Turn: t.Turn, Cause: t.Cause, Synthetic: !byPerson, OfTurn: t.OfTurn,
		Message: t.Message,
		Prompt:  t.Prompt, Prompts: broughtBy(t), Attempt: t.Attempt, Options: t.Options}}
	// pending without an end it would block the queue without a reason
	if j.refused != nil {
		facts = append(facts, events.TurnFailed{Turn: t.Turn,
			Error: events.Failure{Kind: failure.RuntimeNotReady, Text: j.refused.Error()}})
	}
	return facts
}

// broughtBy returns the prompts whose decisions a turn brings.
func broughtBy(t *session.WorkTurn) (prompts []string) {
	for _, p := range t.Prompts {
		prompts = append(prompts, p.Prompt)
	}
	return prompts
}

// turnID returns the id of the turn to take, "" for a compaction.
func (j *workItem) turnID() string {
	if j.turn == nil {
		return ""
	}
	return j.turn.Turn
}

// wanted is [workItem.wanted], and records that a handler is about to run what is taken. The session is locked.
func (s *Session) wanted(j *workItem, st *session.State) (done bool) {
	if done = j.wanted(st); !done && !j.left {
		s.atWork = j.turnID()
	}
	return done
}

// handOnTaken leaves a turn to the next Work, or to the program: the start of the turn was handed to the broker, and
// the Work that takes it has ended. A compaction is given back: it has failed as one that is cut off.
func (s *Session) handOnTaken(j *workItem) {
	if j.compaction != nil {
		s.failCompaction(j.compaction.Compaction)
	}
	s.markUnmade(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	j.left = true
	if j.turn == nil {
		return
	}
	s.forWork = j.turn.Turn
	// its start was stored meanwhile
	if t := s.turn; t != nil && t.id == s.forWork {
		t.request = *j.turn
		return
	}
	s.took = j.turn
}

// markUnmade records that a turn was taken, perhaps, and that no handler has run it.
func (s *Session) markUnmade(j *workItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unmade = j.turnID()
}

// failCompaction fails a compaction that this process may have taken, and that no handler makes. The fact waits
// behind the start of the compaction, and is stored if the start is.
func (s *Session) failCompaction(id string) {
	s.appendLater(events.CompactionFailed{Compaction: id, Error: events.Failure{Kind: failure.Interrupted,
		Text: "the process ended its work before the compaction began"}}, func(st *session.State) bool {
		c := st.Compaction
		return c.Running() && c.ID == id && st.Owns(c.Epoch)
	})
}

// handOnTurn leaves an open turn to the next Work, or to the program: its handler was cut off, because its Work has
// ended. Asks return to the next handler what they have returned to this one.
func (s *Session) handOnTurn(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if turnID(s.st) != id {
		return
	}
	s.forWork = id
	for prompt, turn := range s.returned {
		if turn == id && !s.outlives(prompt, id) {
			delete(s.returned, prompt)
			// its call does not end before an Ask has returned the decision again
			s.gaveUp[prompt] = true
		}
	}
}

// outlives reports whether an Ask for a prompt can be in a part of the program that continues after the handler of a
// turn: the prompt is not of the turn, or of a call in the background. The session is locked.
func (s *Session) outlives(prompt, turn string) bool {
	p := s.st.Prompts[prompt]
	if p == nil {
		// it is delivered
		return false
	}
	c := s.st.Tools[p.Call]
	return p.Turn != turn || c != nil && c.Background
}

// wanted says whether it is still to be taken, for [write].check: done when it is not.
func (j *workItem) wanted(st *session.State) (done bool) {
	switch {
	case j.compaction != nil:
		j.gone = st.Pending.Compaction == nil || st.Pending.Compaction.ID != j.compaction.Compaction
	default:
		j.gone = st.Pending.Turn == nil || st.Pending.Turn.ID != j.turn.Turn || !takeable(st, false, true) ||
			!st.Brings(broughtBy(j.turn))
	}
	return j.gone
}

// do has what was taken done, and says how it ended.
func (k *workLoop) do(ctx context.Context, s *Session, j *workItem) error {
	switch {
	case j.compaction != nil && j.refused != nil:
		k.warn.Do(func() {
			k.h.log.Warn().Str("session", s.ref.String()).Str("entity", session.EntityCompaction).Str("id",
				j.compaction.Compaction).Msg("compactions fail: Worker.Compact is nil; the policy " +
				"compaction_threshold=1 requests none by itself")
		})
		return nil
	case j.compaction != nil:
		return k.compact(ctx, s, *j.compaction)
	case j.refused != nil:
		return j.refused
	}
	t := s.handle(j.turn.Turn)
	s.mu.Lock()
	t.request = *j.turn
	s.mu.Unlock()
	return k.run(ctx, t)
}

// adopted returns the turn that was adopted in a session and that nothing has run yet, else nil.
func (k *workLoop) adopted(s *Session) *Turn {
	if k.w.Turn == nil {
		return nil
	}
	s.mu.Lock()
	id := s.forWork
	if p := s.st.Pending.Turn; id != "" && p != nil && p.ID == id {
		s.mu.Unlock()
		// its start is not stored yet
		return nil
	}
	if s.releasing() {
		s.mu.Unlock()
		// the next owner of the session runs it
		return nil
	}
	s.forWork, s.atWork = "", id
	s.mu.Unlock()
	if t := s.openTurn(); id != "" && t != nil && t.id == id {
		return t
	}
	return nil
}

// errGoexit is the error of a handler that ended its goroutine. Without an error its turn would be open in a process
// that lives, and its place in Work would stay taken.
var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit), and did not return")

// handled calls a handler in a goroutine of its own and returns its error. A handler may end its goroutine, as a test
// does with t.FailNow: that is [errGoexit]. One that panics ends the process.
func handled(handler func() error) error {
	err, done := errGoexit, make(chan struct{})
	go func() {
		defer func() {
			if p := recover(); p != nil {
				// before anything is stored of its end
				panic(p)
			}
			close(done)
		}()
		err = handler()
	}()
	<-done
	return err
}

// run runs the handler of a turn, and stores how it ended.
func (k *workLoop) run(ctx context.Context, t *Turn) error {
	t.s.mu.Lock()
	t.s.runs(t.id)
	t.s.mu.Unlock()
	run, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	t.takes(k.placeOf(t.s.ref.Session))
	err := handled(func() error { return k.w.Turn(run, t) })
	t.takes(nil)
	cause := context.Cause(run)
	if err != nil && cause == nil {
		k.h.log.Error().Str("session", t.s.ref.String()).Str("entity", session.EntityTurn).Str("id", t.id).AnErr("err",
			err).Msg("the handler of the turn failed")
	}
	if err = k.endTurn(k.late, t, cause, err, ctx.Err() != nil); errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}
