// Package harness keeps the sessions of an agent harness true across restarts.
//
//	h, err := harness.Connect(ctx, harness.Config{URL: url, ID: "painter"})
//	if err != nil {
//		return err
//	}
//	// continues what was cut off
//	if _, err := h.Open(ctx, "wall", harness.OpenOptions{}); err != nil {
//		return err
//	}
//	if err := h.Ready(ctx); err != nil {
//		return err
//	}
//	err = h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
//		answer, err := t.AskOnce(ctx, "colour", harness.Prompt{Questions: questions})
//		if err != nil {
//			// a failed turn is retried, or a person is asked to continue it
//			return err
//		}
//		return paint(ctx, answer.Choice())
//	}})
//	return errors.Join(err, h.Close(context.WithoutCancel(ctx)))
//
// It opens and claims sessions, appends their events, asks people and waits for their answers, and takes the work that
// others request.
//
// # Terms
//
// A harness id outlives restarts. Each process of it is an incarnation, a number from the broker (its ticket), with a
// lease that it renews. A session has one owner at a time, and each claim begins an epoch. Facts of a process about a
// session count only while the process is its owner under the present epoch. Recovery is what the service reconciler
// does with the items that a dead process left open: it closes them, keeps them, or has another turn requested.
//
// # The log is the truth
//
// Every fact is appended under a compare-and-set on the whole session, one commit after the other, so each was decided
// on all earlier ones. This package folds what it appends and what it reads into a State, with the same code as the
// services. Promises:
//
//  1. A call that returned nil is stored. Append first, then show or act: a question is durable before it is visible, a
//     call before it runs.
//  2. Facts of one session are stored in the order of their calls. Facts that wait at the same time are one commit.
//  3. If another writer was first, its commits are read and folded, and the fact is stored if it is still lawful. If
//     not, the error has the present state ([ErrEnded], [ErrClosedID], [ErrUnknown], [ErrFenced] …).
//  4. A context that ends before a fact was sent to the broker takes it back. Afterwards the call returns
//     [ErrPending]: the fact will be stored unless it turns out to be unlawful. [Harness.Work], [Step] and
//     [Turn.AskOnce] do not take back how a turn, a compaction, a step or a question ended.
//  5. While the broker is away calls wait, as many as [Config] allows; further ones fail with [ErrBufferFull] at
//     once.
//
// Instants in a State that come from this process's own commits are its own clock's until the session is read again: do
// not decide by them.
//
// # The life of a process
//
//	          ticket, lease "starting"            Ready                  Close
//	Connect ───────────────────────────▶ starting ──────▶ ready ─────────────────▶ draining ──▶ lease gone
//	                                        ▲               │                      (callback prompts withdrawn,
//	                                        │  lease lost   ▼                       sessions released)
//	            new ticket, new lease,      └────────── suspended
//	            sessions claimed again
//
// A lease is lost when the broker refuses a renewal, or when none succeeded for a TTL by this process's monotonic
// clock. Then another process may take over at any moment, so nothing is appended and no answer is returned. The client
// starts over: it takes a new incarnation, and claims each session again that no other process took meanwhile, with
// this process's open items: the turn, the calls, the prompts. Waiting facts are stored then, a waiting Ask continues
// to wait, and a handler of [Harness.Work] keeps its turn. So an outage of the broker of any length loses nothing.
// Items that recovery closed meanwhile stay closed: their session ends with ErrFenced. [LeaseLoss] chooses between this
// and contexts that are cancelled when the lease is lost. The client does not start over if a process with a newer
// incarnation has a lease, or has claimed a session of this one, unless they are a pool: that process supersedes it.
//
// A superseded process ends: [Harness.Context] and [Harness.Work] end with [*ReplacedError]. It is superseded so, when
// recovery has taken a session from it for a newer process, or when newer processes have claimed all the sessions that
// it had. While it has one left, it continues: the newer process may die before it is ready.
//
// # The life of a session in this process
//
//	         Open, Claim                     Release, Close
//	apart ────────────────▶ owner ────────────────────────────▶ apart
//	                        │   ▲ ╲
//	             lease lost ▼   │  ╲ orphaned, a higher epoch, closed by a person
//	                      suspended ╲──────────────────────────▶ apart: ErrFenced, ErrSessionClosed
//
// ErrFenced means: stop at once and discard. The session's contexts are cancelled with it. It may be claimed again.
//
// # Work
//
// [Harness.Work] runs the requested work of a harness: turns, for a new message, a retry, a resume, an answer that came
// while no process ran, a follow-up of a compaction; and compactions. A handler returns how it ended and does not
// retry: pkg/failure classifies the error, and the retry is a new turn, at its instant, with the options of
// [Worker.Options]. [Turn.Stream] and [Turn.Usage] report the progress at little cost. [Harness.Send] sends a message
// to a session of any harness.
//
// # Questions
//
// [Turn.Ask] returns when the prompt is settled. The prompt is in the log, not in the process: after a crash the next
// incarnation claims the session with [Adopt] and asks again under the same id. It is then attached to the open prompt,
// or returns a decision that was made meanwhile. An answer reaches a waiting Ask by a nudge and one read of the log;
// the work view is the reliable, slower way.
//
// A fenced process receives no answer. Before an Ask returns one, the session's log has been read to its end, this
// process still owns the session, or owns it again, and its lease is in date by its own monotonic clock. A process that
// was suspended for longer finds the fence in the log, and its Ask returns [ErrFenced]: the answer belongs to its
// successor.
// [Session.Answer] and [Session.Result] wait for the same, and [Turn.Content] for a message that an answer became.
// [Turn.Request] cannot wait: meanwhile it names the decisions that a turn brings, and does not have them.
//
// # Uncertain outcomes
//
// A write without an acknowledgement may be stored or not. The client finds out every outcome, or the caller where the
// list says so. The list is complete; the test of each row is named below it.
//
//	what is uncertain                         the caller sees       what follows
//	a fact: its context ended after it was    ErrPending            stored, unless it is unlawful then; repeat the
//	sent to the broker                                              call to find out
//	    TestContextsInAnOutage
//	a fact: the acknowledgement was lost      nothing, it waits     the client reads the log, and sends the same again
//	                                                                if it is not there
//	    TestLostAcknowledgement
//	a fact: the lease was lost meanwhile      nothing, it waits     the new incarnation reads the log before it claims
//	    TestOutcomeInDoubtWhenTheLeaseIsLost
//	a fact, Open, Claim: a copy of it may be  nothing, it waits     the client sends the same again until the log
//	in flight, and the log stores nothing                           stores it, or something else of the session
//	    TestAppendsWhileTheLogStoresNothing
//	Step: its context ended before its        ErrPending            fn did not run, and the next Step runs it. If the
//	beginning was known to be stored                                process dies, or loses the session, before that is
//	                                                                stored, too: ErrOutcomeUnknown
//	    TestStepBegunInDoubt
//	Step: its context ended before its        ErrPending            the result is stored as soon as the broker is
//	result was stored                                               there, and the next Step returns it. If the
//	                                                                process ends before: ErrOutcomeUnknown
//	    TestStepEndsInAnOutage
//	Open, Claim: the context ended            the context's error   the client appends the same again until it knows.
//	                                                                Then the next call gets the session; without one
//	                                                                it is released (reason claim-not-awaited)
//	    TestClaimInDoubt, TestClaimInDoubtIsHandedOver
//	Claim: stored, an adoption after it not   the adoption's error  the session is released
//	    TestClaimWithoutItsRest
//	Work: its context ended while it took     nil                   as Open; the turn it took fails as interrupted,
//	                                                                and is tried again. In a session of this process
//	                                                                the next Work runs it, or OpenTurn has it
//	    TestClaimInDoubt, TestWorkFindsWhatItTook, TestTurnInDoubt, TestWorkEndsWhileItTakes
//	Work: its context ended while it took a   nil                   the compaction fails as one that is cut off, and
//	compaction                                                      is requested again
//	    TestWorkEndsWhileItTakesACompaction
//	Work: its context ended before the end    nil                   the end is stored as soon as the broker is there;
//	of a turn or compaction was stored                              if the process ends before, recovery ends the turn
//	    TestWorkReturns
//	Work: the broker refuses the end of a     nothing, it is        the end is sent again each second, and with the
//	turn or compaction                        logged                next fact of the session
//	    TestEndThatIsRefused, TestRefusedEnd
//	starting over: the new lease was lost     nothing, it waits     the next incarnation finds the claim in the log
//	before a claim was known
//	    TestTwoClaimsInDoubt, TestClaimStoredLate, TestSplitClaimInDoubt
//	starting over: the log is full, and the   nothing, it waits     the claim is sent again each second. Other
//	broker refuses a claim                                          refusals of a claim end the session
//	    TestClaimAgainInAFullLog
//	starting over: no caller has the session  ErrLeaseLost          it is not claimed again; recovery follows
//	    TestUnusedInALostLease
//	Ready: no acknowledgement                 an error              the next renewal repeats it
//	    TestReadyInDoubt
//	Connect, Close: no acknowledgement        an error              the lease ends after its TTL
//	    TestConnectAndCloseInDoubt
//	Close: a call takes a session meanwhile   ErrClosed (the call)  its lease ends with the process, and recovery
//	                                                                follows
//	    TestCloseWhileClaiming
//	Send: no answer                           ErrUnreachable        send it again under the returned id: it is taken
//	                                                                once
//	    TestSendInDoubt
//	the receipt of an Ask                     nothing               lost with the process only; the next one gets the
//	                                                                answer again
//	    TestAnsweredBeforeTheLeaseWasLost
//	Ask with Bring: Bring, or the process,    Bring's error         there is no receipt: the next Ask or another turn
//	ended after the agent had the decision                          brings it again
//	    TestBringFails, TestKilledWhileItBrings
//	Ask: its context ended while its session  the context's error   the decision does not count as received. The next
//	was claimed again after a lost lease                            attempt of its turn has it, or another turn is
//	                                                                requested for it
//	    TestAskEndsInAClaim, TestWorkEndsInAClaim
package harness

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of one process.
const (
	claimsAtOnceMax = 64 // sessions that are claimed again at the same time after a lease was lost
	readsAtOnceMax  = 64 // sessions that are read at the same time, such as after the connection was restored
	readAgainS      = 30 // a member of a pool reads the sessions in which it waits for others
)

// Harness is one process of a harness: an incarnation, its lease and its sessions. All methods may be called at the
// same time. Make it with [Connect] and end it with [Harness.Close].
type Harness struct {
	cfg    Config
	bus    *bus.Bus
	log    zerolog.Logger // never blocks; see lines
	lines  *lines
	buffer buffer

	ctx     context.Context // ends with Close, or when a lost lease is final
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // goroutines of this package, for which Close waits

	began    atomic.Uint64 // from where on the log was last followed
	followed atomic.Uint64 // from where on the log is followed; 0: it is not, or not at this moment

	mu        sync.Mutex
	term      *term
	drawn     string        // the newest incarnation that this process has drawn; it may not be the present one yet
	newer     string        // the newest incarnation that has taken a session which this process had or wanted
	reborn    chan struct{} // closed when term is replaced
	state     string        // of the lease: starting, ready, draining
	sessions  map[string]*Session
	offers    map[string]session.Work // the work view as last seen, of this harness
	dirty     map[string]bool         // sessions that Work has to check
	workReady chan struct{}           // there is something in dirty
	working   bool                    // Work runs
}

// Connect draws an incarnation and takes its lease, in state starting. It waits for the broker until ctx ends, and for
// the cell on it for 5 s; after a second it logs what it waits for. Errors: [ErrUnreachable], [ErrForbidden],
// [ErrNoCell], or what is wrong with the configuration.
func Connect(ctx context.Context, cfg Config) (*Harness, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log, lines := detach(cfg.Log)
	w := newWait(cfg, log)
	h, err := connect(ctx, cfg, log, lines, w.note)
	w.end(err == nil)
	if err != nil {
		lines.flush(ctx)
		return nil, cfg.connectFault(err)
	}
	return h, nil
}

// connect is Connect with a valid configuration.
func connect(ctx context.Context, cfg Config, log zerolog.Logger, lines *lines, note func(error)) (*Harness, error) {
	b, err := bus.Open(ctx, bus.Config{URL: cfg.URL, Server: cfg.InProcess, Creds: cfg.Creds,
		PasswordFile: cfg.PasswordFile, NKey: cfg.NKey,
		TLSCA: cfg.TLSCA, TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey, Name: "harness-" + cfg.ID, Prefix: cfg.Prefix,
		Inbox: events.Inbox(cfg.Prefix, events.ClassHarness, cfg.ID),
		Asker: events.Asker{Class: events.ClassHarness, ID: cfg.ID}, Log: log, Trying: note})
	if err != nil {
		return nil, err
	}
	h := &Harness{cfg: cfg, bus: b, log: log, lines: lines, state: buslease.Starting, sessions: map[string]*Session{},
		offers: map[string]session.Work{},
		dirty:  map[string]bool{}, workReady: make(chan struct{}, 1), reborn: make(chan struct{})}
	h.buffer = buffer{factsMax: cfg.BufferFactsMax, bytesMax: cfg.BufferBytesMax}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	if err := h.start(ctx, note); err != nil {
		h.cancel(ErrClosed)
		b.Close()
		return nil, err
	}
	return h, nil
}

// start is everything of Connect that can fail.
func (h *Harness) start(ctx context.Context, note func(error)) error {
	l, err := h.beginInCell(ctx, note)
	if err != nil {
		return err
	}
	h.live(l)
	if err := h.bus.Hints.OnNudge(h.ctx, h.cfg.ID, h.nudged); err != nil {
		return err
	}
	h.bus.OnReconnect(func() { h.readAll((*Session).awaitsNews) })
	h.running.Go(h.watch)
	// there each would be given what all the others write
	if h.cfg.Pool {
		h.running.Go(h.readAgain)
	} else {
		h.running.Go(h.listen)
	}
	h.running.Go(h.tend)
	h.log.Info().Str("id", h.cfg.ID).Str("entity", "harness").Str("incarnation", l.incarnation).Msg("connected")
	return nil
}

// ID is the harness id.
func (h *Harness) ID() string { return h.cfg.ID }

// Incarnation is the number of this process, as text. It changes when a lost lease made the client start over.
func (h *Harness) Incarnation() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term.incarnation
}

// Context ends when this process may no longer do anything as this harness: its cause is [ErrClosed]; [*ReplacedError],
// an [ErrFenced], when a newer process of an exclusive harness took its place; or [ErrLeaseLost] under [LeaseStop].
func (h *Harness) Context() context.Context { return h.ctx }

// Unreadable is a session whose stored document this build cannot read.
type Unreadable struct {
	Session string // the session's id; the key of the document if that names no session
	Err     error  // [session.ErrNewerLayout]: a newer build wrote it, upgrade this one; others: run `holdfast rebuild`
}

// Sessions returns the stored documents of this harness's sessions, to decide what to go on with. They may lag behind
// the log by what the ledger has not folded yet; [Harness.Claim] does not. A document that this build cannot read is
// reported in unreadable and does not hide the others. err is an error of the broker; then both lists are nil.
func (h *Harness) Sessions(ctx context.Context) (all []*session.State, unreadable []Unreadable, err error) {
	// a key that changes while it is listed comes twice
	latest := map[string]kv.Entry{}
	var order []string
	err = h.bus.KV.List(ctx, kv.State, events.SessionKeys(h.cfg.ID), func(e kv.Entry) error {
		if _, seen := latest[e.Key]; !seen {
			order = append(order, e.Key)
		}
		latest[e.Key] = e
		return nil
	})
	if err != nil {
		return nil, nil, about(translate(err), "sessions of %s", h.cfg.ID)
	}
	for _, key := range order {
		st, err := session.Decode(latest[key].Value)
		if err != nil {
			unreadable = append(unreadable,
				Unreadable{Session: sessionOf(key), Err: about(err, "document %s", key)})
			continue
		}
		all = append(all, st)
	}
	return all, unreadable, nil
}

// sessionOf returns the id of the session that a document's key names, or the key itself.
func sessionOf(key string) string {
	if r, err := events.ParseSessionKey(key); err == nil {
		return r.Session
	}
	return key
}

// nudged handles a hint that another writer appended to a session of this harness.
func (h *Harness) nudged(id string, seq uint64) {
	if from := h.followed.Load(); from != 0 && seq >= from {
		// it is on its way
		return
	}
	h.readUpTo(id, seq)
}

func (h *Harness) readUpTo(id string, seq uint64) {
	h.mu.Lock()
	s := h.sessions[id]
	h.mu.Unlock()
	if s != nil {
		s.readUpTo(seq)
	}
}

// listen follows the commits of this harness's sessions. While it does, no nudges are needed.
func (h *Harness) listen() {
	err := h.bus.Log.Follow(h.ctx, h.cfg.ID, h.following, func(m bus.Message) {
		r, _, err := h.bus.Cell().ParseLog(m.Subject)
		h.mu.Lock()
		s := h.sessions[r.Session]
		h.mu.Unlock()
		if err == nil && s != nil {
			s.receive(m)
		}
	})
	if err != nil && h.ctx.Err() == nil {
		h.log.Debug().Str("id", h.cfg.ID).AnErr("err",
			err).Msg("the log cannot be followed: what others write is read after a nudge")
	}
}

// following records the place from which the log is followed; 0: not at this moment. Earlier commits without a nudge
// would be missed, so they are read: of all sessions, because a newer process may have claimed one.
func (h *Harness) following(from uint64) {
	h.followed.Store(from)
	if from != 0 && h.began.Swap(from) != from {
		go h.readAll((*Session).owns)
	}
}

// readAll reads what was missed during an outage, or before the log was followed, of the sessions that are chosen.
func (h *Harness) readAll(chosen func(*Session) bool) {
	var reads errgroup.Group
	reads.SetLimit(readsAtOnceMax)
	for _, s := range h.owned() {
		if !chosen(s) {
			continue
		}
		reads.Go(func() error {
			if err := s.catchUp(h.ctx); err != nil && h.ctx.Err() == nil {
				h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg("what was missed is not read")
			}
			return nil
		})
	}
	// no function returns an error
	_ = reads.Wait()
}

// readAgain reads the sessions of a member of a pool in which it waits for others. It makes up for a nudge that was
// lost: a close, for example, of which the work view says nothing.
func (h *Harness) readAgain() {
	again := time.NewTicker(readAgainS * time.Second)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			h.readAll((*Session).awaitsNews)
		case <-h.ctx.Done():
			return
		}
	}
}

// owned are the sessions that this process has, or is about to have again.
func (h *Harness) owned() []*Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*Session, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s)
	}
	return all
}

// session is the handle for an id, the same for all who ask; give it back with dropUser.
func (h *Harness) session(id string) (*Session, error) {
	ref := events.Ref{Harness: h.cfg.ID, Session: id}
	if err := ref.Validate(); err != nil {
		return nil, about(err, "session %.40q", id)
	}
	if err := h.ctx.Err(); err != nil {
		return nil, about(context.Cause(h.ctx), "session %s", id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == buslease.Draining {
		return nil, about(ErrClosed, "session %s", id)
	}
	s := h.sessions[id]
	if s == nil {
		s = newSession(h, ref)
		h.sessions[id] = s
	}
	s.users++
	return s, nil
}

// dropUser says that a handle is no longer being taken.
func (h *Harness) dropUser(s *Session) {
	h.mu.Lock()
	s.users--
	h.mu.Unlock()
	h.forget(s)
	h.releaseUnused(s)
}

// forget drops the handle of a session of another process, unless a call is about to take it.
func (h *Harness) forget(s *Session) {
	h.remove(s)
	h.endIfReplaced()
}

func (h *Harness) remove(s *Session) {
	// always before the harness's
	s.mu.Lock()
	defer s.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.ownership == apart && s.users == 0 && h.sessions[s.ref.Session] == s {
		s.cancel(s.why)
		delete(h.sessions, s.ref.Session)
	}
}

// Close ends in order: nothing new begins, callback prompts are withdrawn (reason shutdown; those with
// [events.LossKeep] stay open), sessions released, the lease deleted. Open items of a session are left for recovery,
// which then needs no grace: so end [Harness.Work] and the turns first. It returns when that is done or ctx ends; the
// connection is closed in any case.
func (h *Harness) Close(ctx context.Context) error {
	h.mu.Lock()
	if h.state == buslease.Draining {
		h.mu.Unlock()
		return nil
	}
	h.state = buslease.Draining
	h.mu.Unlock()
	defer h.bus.Close()
	var errs []error
	// without a lease there is nothing to change
	if err := h.renew(ctx); err != nil && !errors.Is(err, ErrLeaseLost) {
		errs = append(errs, err)
	}
	errs = append(errs, h.releaseAll(ctx)...)
	h.cancel(ErrClosed)
	for _, s := range h.owned() {
		s.drop(ErrClosed)
	}
	h.running.Wait()
	h.mu.Lock()
	l := h.term
	h.mu.Unlock()
	if err := l.lease.Release(ctx); err != nil && !errors.Is(err, bus.ErrLeaseLost) {
		errs = append(errs, translate(err))
	}
	l.cancel(ErrClosed)
	if err := errors.Join(errs...); err != nil {
		return about(err, "close %s", h.cfg.ID)
	}
	h.log.Info().Str("id", h.cfg.ID).Str("entity", "harness").Msg("left")
	h.lines.flush(ctx)
	return nil
}

func (h *Harness) releaseAll(ctx context.Context) []error {
	var mu sync.Mutex
	var errs []error
	h.each(h.owned(), func(s *Session) {
		err := s.Release(ctx, events.ReasonShutdown)
		if err == nil || s.isApart() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	})
	return errs
}

// each calls fn for many sessions, some at a time, and returns when all are done.
func (h *Harness) each(all []*Session, fn func(*Session)) {
	var group errgroup.Group
	group.SetLimit(claimsAtOnceMax)
	for _, s := range all {
		group.Go(func() error {
			fn(s)
			return nil
		})
	}
	// no function returns an error
	_ = group.Wait()
}
