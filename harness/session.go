package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// progressEvery is how often a sign of life is sent at most.
const progressEvery = time.Second

// ownership is what this process is to a session.
type ownership int

const (
	apart     ownership = iota // nothing: not yet, or no longer
	owner                      // its owner
	suspended                  // its owner until the lease was lost; another incarnation is to claim it again
)

// Session is one session that this process owns, or has owned. All methods may be called at the same time.
type Session struct {
	h       *Harness
	ref     events.Ref
	writing chan struct{} // holds a token while a goroutine appends: one at a time

	indexing chan struct{} // holds a token while a goroutine uses index
	index    *logIndex     // what the log has of calls, prompts and turns; nil until a turn looks for something in it

	mu        sync.Mutex
	st        *session.State // folded so far; nil until it was read
	last      log.Last       // the last commit that was folded into it
	proved    uint64         // how often the connection had been restored when the log was compared with it
	ownership ownership
	why       error  // apart: what calls fail with
	term      *term  // the incarnation that owns it
	epoch     uint64 // of that ownership
	// claiming are the incarnations of this process whose claims were sent since it last knew that it owned the
	// session. Each of them may be stored, or still be.
	claiming []string
	resumed  chan struct{} // suspended: closed when that is over
	ctx      context.Context
	cancel   context.CancelCauseFunc

	queue   []*write // in the order of the calls; what is under way stays in front until it is stored
	unacked *unacked // the commit under way, or whose outcome is in doubt
	running bool     // a goroutine sends the queue
	rest    []*write // of claims after a lost lease, until all of it is known to have an outcome
	kept    []*write // refused by the broker, without a caller who waits: they are queued again

	turn    *Turn              // the handle of the open turn, if anybody asked for it
	forWork string             // the open turn that was adopted, or taken by a Work that has ended: Work is to run it
	took    *session.WorkTurn  // the request of forWork, if a Work has taken it and its handle was not made
	unmade  string             // the turn that Work took, or may have taken, and that no handler has run yet
	atWork  string             // the turn that a handler of Work runs, or is about to run
	compact *compacting        // the compaction that Work has done
	waiters map[string]*waiter // by prompt
	// returning are the waiters, by prompt, whose settlement was handed to Asks that have not returned yet
	returning map[string]*waiter
	// verifying: a goroutine checks whether the settlements that were read may be returned
	verifying bool
	returned  map[string]string   // prompts whose settlement an Ask has returned, and the turn that was open then
	shown     map[string]shown    // what people see of prompts that this process has requested, or compared
	gaveUp    map[string]bool     // prompts whose Ask returned before they were settled, and that no Ask waits for
	unasks    map[string]bool     // prompts that this process has called unattended, in the log or in a queued fact
	since     uint64              // the epoch in which it was taken; a claim after a lost lease keeps it
	adopted   map[string]bool     // calls that this process adopted, and has not ended
	unrun     map[string]*write   // calls of steps whose functions did not run, and the writes that begin them
	results   map[string]*ranStep // results of steps that ran, by call, until they are stored
	receipt   stopKey             // the stop that was confirmed last
	usage     usage

	users   int    // who is about to take it; guarded by the harness
	holders int    // calls that were given the session since this process owns it; 0: no caller knows that it does
	works   bool   // it is for Work to release: Work took it in a pool, and no other call was given it since
	leaving bool   // it is being released, because no caller knows
	want    uint64 // the log has at least this place, by a nudge
	hinted  bool   // a nudge arrived since the last read began
	reading bool   // a goroutine reads towards it
	ahead   uint64 // how far the log is, as far as the process knows
	pinged  time.Time
}

// stopKey names a stop: it may move from one turn to the next that this process begins.
type stopKey struct {
	seq  uint64
	turn string
}

func newSession(h *Harness, ref events.Ref) *Session {
	s := &Session{h: h, ref: ref, writing: make(chan struct{}, 1), indexing: make(chan struct{}, 1),
		why:     ErrReleased,
		waiters: map[string]*waiter{}, returning: map[string]*waiter{}, returned: map[string]string{},
		gaveUp: map[string]bool{}, unasks: map[string]bool{}, shown: map[string]shown{},
		adopted: map[string]bool{}, unrun: map[string]*write{},
		results: map[string]*ranStep{}}
	s.ctx, s.cancel = context.WithCancelCause(h.ctx)
	return s
}

// ID is the session's id.
func (s *Session) ID() string { return s.ref.Session }

// Context is alive while this process owns the session. Its cause then says why it ended: [ErrFenced], [ErrLeaseLost],
// [ErrReleased], [ErrSessionClosed], [ErrClosed]. Under [LeaseRestart] it is a new one once the session is claimed
// again.
func (s *Session) Context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx
}

// State is a copy of the session as it is known here: all that this process has stored, and what it has read of
// others. It reads nothing, so it may lag behind the log, and it stays as it is once the session is not this process's
// any more.
func (s *Session) State() *session.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.Clone()
}

// Release releases the session in order: callback prompts are withdrawn (reason shutdown) unless they are to be kept
// ([events.LossKeep]), waiting facts are stored before. Its open items are left to recovery. Errors are those of
// [Session.Append]: [ErrPending], it will be released unless it is lost before.
func (s *Session) Release(ctx context.Context, reason string) error {
	return s.endOwnership(ctx, nil, events.SessionReleased{Reason: reason}, true)
}

// Close ends the session and everything open in it, for good. Decisions that no agent has read are dropped, and no
// error says so: people see them as not delivered. Reason: finished, archived or deleted. Errors are those
// of [Session.Append]: [ErrPending], it will be closed unless it is lost before.
func (s *Session) Close(ctx context.Context, reason string) error {
	return s.endOwnership(ctx, nil, events.SessionClosed{Reason: reason}, false)
}

// errOtherPrompts says that a session has other prompts than those that are withdrawn with its release.
var errOtherPrompts = errors.New("other prompts wait")

// endOwnership withdraws what only this process could have delivered, then says the last word; in one commit if nothing
// changes meanwhile. An Ask that is being stored is withdrawn, too. check is that of [write].
func (s *Session) endOwnership(ctx context.Context, check func(*session.State) (bool, error), last events.Fact,
	withdraw bool) error {
	for {
		var facts []events.Fact
		checked := check
		if withdraw {
			ids := s.callbacks()
			for _, id := range ids {
				facts = append(facts, events.PromptWithdrawn{Prompt: id, Reason: events.ReasonShutdown})
			}
			checked = func(st *session.State) (bool, error) {
				if check != nil {
					if done, err := check(st); done || err != nil {
						return done, err
					}
				}
				if !slices.Equal(callbacksOf(st), ids) {
					return false, errOtherPrompts
				}
				return false, nil
			}
			s.failUnmadeTurn(func() bool { return true })
		}
		err := s.append(ctx, checked, append(facts, last)...)
		settled := len(facts) > 0 && (errors.Is(err, ErrEnded) || errors.Is(err, ErrUnknown))
		if !settled && !errors.Is(err, errOtherPrompts) {
			// otherwise one was settled or stored meanwhile
			return err
		}
	}
}

// callbacks are the awaiting prompts whose answers would go to this process and nowhere else. One that is to be kept
// when its process dies is kept by a release as well: its answer reaches a later process.
func (s *Session) callbacks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == nil {
		return nil
	}
	return callbacksOf(s.st)
}

func callbacksOf(st *session.State) (ids []string) {
	for _, id := range st.PendingPrompts() {
		p := st.Prompts[id]
		if p.Delivery == events.DeliverCallback && p.OnOwnerLoss != events.LossKeep && ofLastOwner(st, p.Epoch) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Progress tells that the session is alive, at most once a second; more often it does nothing. It is a hint that keeps
// a turn or a compaction without facts from being taken for stalled.
func (s *Session) Progress() {
	s.mu.Lock()
	now := time.Now()
	due := s.ownership == owner && now.Sub(s.pinged) >= progressEvery
	if due {
		s.pinged = now
	}
	s.mu.Unlock()
	if due {
		s.h.bus.Hints.Progress(s.ref)
	}
}

// Regain waits, after a lost lease, until this process owns the session again, nil, or does not any more, and then says
// why: [ErrFenced], [ErrReleased], [ErrSessionClosed], [ErrLeaseLost] or [ErrClosed]. If ctx ends before that is known,
// the error is its cause. While it owns the session it returns at once. Under [LeaseRestart] continue with a new
// [Session.Context] and [Turn.Context].
func (s *Session) Regain(ctx context.Context) error {
	for {
		s.mu.Lock()
		state, why, resumed := s.ownership, s.why, s.resumed
		s.mu.Unlock()
		switch state {
		case owner:
			return nil
		case apart:
			return about(why, "%s", s.ref)
		}
		select {
		case <-resumed:
		case <-ctx.Done():
			return about(context.Cause(ctx), "regain %s", s.ref)
		}
	}
}

// Confirm reads what is new of the session in the log, and returns nil if this process owns it at that instant, by the
// log: also a process that slept, and whose lease has ended meanwhile, finds out. [Session.State] then has all that the
// log had when Confirm was called. Errors are those of [Session.Regain], and [ErrUnreachable].
func (s *Session) Confirm(ctx context.Context) error {
	if err := s.seen(ctx); err != nil {
		return err
	}
	return s.Regain(ctx)
}

// unheld says whether this process owns the session and no caller was given it.
func (s *Session) unheld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownership != apart && s.holders == 0
}

// isApart says whether this process has nothing to do with the session any more.
func (s *Session) isApart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownership == apart
}

// owns says whether this process owns the session under a lease.
func (s *Session) owns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownership == owner
}

// awaitsNews says whether anything that others write would change what this process does.
func (s *Session) awaitsNews() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownership == owner && (len(s.waiters) > 0 || s.turn != nil || s.compact != nil)
}

// receive takes in a commit that the log's follower brought, if it is the next one; else the session is read up to it.
func (s *Session) receive(m bus.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = max(s.ahead, m.Seq)
	if s.ownership != owner || m.Seq <= s.st.Seq {
		return
	}
	c := s.h.bus.Log.Decode(m)
	if !c.Guarded || c.Guard != s.st.Seq || s.proved != s.h.bus.Reconnects() {
		s.readUpToLocked(m.Seq)
		return
	}
	s.foldOne(&c)
	s.follow()
	s.handOut(0)
}

// readUpTo reads the session up to seq, soon; calls meanwhile are merged into one.
func (s *Session) readUpTo(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readUpToLocked(seq)
}

func (s *Session) readUpToLocked(seq uint64) {
	// if the session is being taken, it is read up to there when it is
	s.ahead = max(s.ahead, seq)
	if s.ownership != owner || seq <= s.st.Seq {
		return
	}
	s.want, s.hinted = max(s.want, seq), true
	if !s.reading {
		s.reading = true
		go s.readOn()
	}
}

// readOn reads until the session is where others said it is.
func (s *Session) readOn() {
	for {
		s.mu.Lock()
		seq, have := s.want, s.st.Seq
		if seq <= have || s.ownership != owner {
			s.reading = false
			s.mu.Unlock()
			return
		}
		ctx := s.term.ctx
		s.hinted = false
		s.mu.Unlock()
		if err := s.readTo(ctx, seq, have); err != nil {
			if ctx.Err() == nil {
				s.h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg("not read")
			}
			if s.endFailedRead() {
				return
			}
		}
	}
}

// endFailedRead ends the reading after an error. It returns false if a hint arrived during the read that failed:
// nothing else has the session read again because of that hint.
func (s *Session) endFailedRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hinted {
		s.reading, s.want = false, 0
	}
	return !s.hinted
}

// readTo reads the one commit that was named, if it is the next one, else all that is new. One that is not in the log,
// or not this session's, was a false hint.
func (s *Session) readTo(ctx context.Context, seq, have uint64) error {
	if err := s.compare(ctx); err != nil {
		return err
	}
	c, err := s.h.bus.Log.Commit(ctx, seq)
	if err == nil && c.Ref == s.ref && c.Guarded && c.Guard == have {
		s.fold([]events.Commit{c}, 0)
		return nil
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	s.forgetFalseHint()
	return nil
}

// forgetFalseHint ends the reading towards a place that the log does not have. A hint that arrived during the read can
// be about a commit that is later than what was read, whatever its place is, so the session is read again.
func (s *Session) forgetFalseHint() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hinted && s.st.Seq < s.want {
		s.want = 0
	}
}

// prove records that the log was compared with what was folded when the connection had been restored n times.
func (s *Session) prove(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proved = n
}

// compare finds out, once for each connection, whether the log still has the last commit that was folded. A broker that
// was restored from an older copy may have another one in its place, of a process that continued from that copy: then
// nothing that this process knows of the session is true, and it stops. Where the log has no commit there, the next
// append finds out why.
func (s *Session) compare(ctx context.Context) error {
	n := s.h.bus.Reconnects()
	s.mu.Lock()
	last, proved := s.last, s.proved
	s.mu.Unlock()
	if proved == n {
		return nil
	}
	if last.First != "" {
		c, err := s.h.bus.Log.Commit(ctx, last.Seq)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			return nil
		case err != nil:
			return about(translate(err), "read %s", s.ref)
		case log.LastOf(&c).First != last.First:
			err := fmt.Errorf("%w: the log has another commit in the place of %d", ErrFenced, last.Seq)
			s.drop(err)
			return err
		}
	}
	s.prove(n)
	return nil
}

// catchUp reads and folds what is new in the log, from its leader.
func (s *Session) catchUp(ctx context.Context) error {
	if err := s.compare(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	from := s.st.Seq + 1
	s.mu.Unlock()
	cs, err := s.h.bus.Log.Read(ctx, s.ref, from)
	if err != nil {
		return about(translate(err), "read %s", s.ref)
	}
	end := from - 1
	if len(cs) > 0 {
		end = max(end, cs[len(cs)-1].Seq)
	}
	s.fold(cs, end)
	return nil
}

// fold takes commits in and does what follows from them. Those that were folded before change nothing, so it does not
// matter whether a commit of one's own is first seen by its acknowledgement or in the log. end is the end of the
// session's log, as the broker said when it was read or appended to; 0 where it is not known.
func (s *Session) fold(cs []events.Commit, end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range cs {
		s.foldOne(&cs[i])
	}
	s.follow()
	s.handOut(end)
}

func (s *Session) foldOne(c *events.Commit) {
	if c.Seq <= s.st.Seq {
		return
	}
	left := s.leftCalls(c)
	res := s.st.Fold(c)
	s.answersFor(left)
	s.last = log.LastOf(c)
	if s.unacked != nil && len(c.Events) > 0 && c.Events[0].ID == s.unacked.first {
		s.settleUnacked(nil)
	}
	s.forgetTakenBack(c)
	for i := range res.Feed {
		s.settle(&res.Feed[i], c.Seq)
	}
	// after each commit: an answer that comes after the fence is the successor's
	s.checkOwnership()
}

// leftCalls returns the calls of earlier processes that a commit names as open: it adopts them if it is this process's.
// The session is locked.
func (s *Session) leftCalls(c *events.Commit) (calls []string) {
	for i := range c.Events {
		call := ""
		switch f := c.Events[i].Fact.(type) {
		case events.ToolStarted:
			call = f.Call
		case events.PromptRequested:
			call = f.Call
			if p := s.st.Prompts[f.Prompt]; call == "" && p != nil {
				call = p.Call
			}
		}
		if s.isLeft(call) {
			calls = append(calls, call)
		}
	}
	return calls
}

// isLeft reports whether an earlier process has left a call, and this one has not adopted it. The session is locked.
func (s *Session) isLeft(call string) bool {
	c := s.st.Tools[call]
	return c != nil && isLeftBefore(c.Epoch, s.since)
}

// isLeftBefore reports whether what was opened or adopted under an epoch belongs to a process from before another one.
func isLeftBefore(epoch, since uint64) bool { return epoch < since }

// answersFor takes the calls that are adopted now for calls whose decisions no Ask here has returned, however they were
// adopted: by a call of [Turn.Tool], for example, or by a new question in them. The session is locked.
func (s *Session) answersFor(calls []string) {
	for _, id := range calls {
		if s.st.Tools[id] != nil && !s.isLeft(id) {
			s.adopted[id] = true
			// it locks the session
			go s.recordUnasked(false, Adopt{Calls: []string{id}})
		}
	}
}

// checkOwnership notices that the session is no longer this process's: of a suspended one as of one that it owns. A
// claim that this process has sent is its own. The session is locked.
func (s *Session) checkOwnership() {
	if s.ownership == apart {
		return
	}
	st := s.st
	switch {
	case st.Closed != nil:
		s.part(ErrSessionClosed)
	case st.Owned && st.Epoch == s.epoch && st.Incarnation == s.term.incarnation:
	case st.Owned && s.ownership == suspended && slices.Contains(s.claiming, st.Incarnation):
	case st.Epoch == s.epoch && st.Left == session.LeftReleased:
		s.part(ErrReleased)
	default:
		s.h.log.Warn().Str("session", s.ref.String()).Uint64("epoch", s.epoch).Uint64("seq", st.Seq).Msg("fenced")
		s.h.noteNewer(st)
		s.part(ErrFenced)
		if !s.h.cfg.Pool && st.SupersededBy != "" {
			// superseded locks the others
			go s.h.superseded(st.SupersededBy)
		}
	}
}

// follow does what the state calls for in this process: the open turn's context ends with the turn or with a request to
// stop it, a compaction's with the compaction; the stop of a turn that has ended is confirmed. The session is locked.
func (s *Session) follow() {
	if s.ownership != owner {
		return
	}
	if t := s.turn; t != nil && (s.st.Turn == nil || s.st.Turn.ID != t.id) {
		s.turn = nil
		t.cancel(s.stopOf(t.id, s.endOf(session.EntityTurn, t.id)))
	}
	if c := s.compact; c != nil && !c.runs(s.st) {
		s.compact = nil
		c.cancel(s.endOf(session.EntityCompaction, c.id))
	}
	// it may be time to release it
	if s.st.HasWork() || s.forWork != "" || s.works && s.st.Turn == nil {
		s.h.notifyWork(s.ref.Session)
	}
	p := s.st.Pending.Stop
	switch {
	case p == nil:
	case s.st.Turn != nil && s.st.Turn.ID == p.Turn:
		if s.turn != nil {
			s.turn.cancel(s.stopOf(p.Turn, nil))
		}
	case s.receipt != stopKey{p.Seq, p.Turn}:
		s.receipt = stopKey{p.Seq, p.Turn}
		go s.confirm(*p)
	}
}

// part ends this process's part in the session: contexts, calls that wait, prompts that are waited for. The session is
// locked.
func (s *Session) part(why error) {
	if s.ownership == suspended {
		close(s.resumed)
	}
	s.ownership, s.why = apart, why
	err := about(why, "%s", s.ref)
	s.cancel(err)
	s.turn, s.compact = nil, nil
	for _, o := range slices.Concat(s.kept, s.queue) {
		s.finish(o, err)
	}
	s.queue, s.kept, s.unacked = nil, nil, nil
	for id, w := range s.waiters {
		delete(s.waiters, id)
		if w.endsWith(why) {
			w.settle(w.answer, nil)
		} else {
			w.settle(Answer{}, err)
		}
	}
	// forget locks the harness
	go s.h.forget(s)
}

// drop is part for those who have not locked the session.
func (s *Session) drop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ownership != apart {
		s.part(why)
	}
}

// suspend holds the session because the lease of this incarnation is lost: waiting facts continue to wait, nothing is
// appended.
func (s *Session) suspend(l *term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspendLocked(l)
}

// suspendLocked is suspend for callers with the lock.
func (s *Session) suspendLocked(l *term) {
	if s.ownership != owner || s.term != l {
		return
	}
	cause := context.Cause(l.ctx)
	if errors.Is(cause, ErrClosed) || s.h.ctx.Err() != nil {
		s.part(cause)
		return
	}
	s.ownership, s.resumed = suspended, make(chan struct{})
	if s.h.cfg.OnLeaseLoss != LeaseRideOut {
		s.cancel(cause)
	}
}
