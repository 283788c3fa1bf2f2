package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a store.
const (
	behindFactsMax = 50_000   // that wait to be stored; a session with more is not stored any more
	behindBytesMax = 64 << 20 // of JSON, the same
	connectWait    = 5 * time.Second
	againMin       = 50 * time.Millisecond
	againMax       = 5 * time.Second
	receiptPoll    = 5 * time.Millisecond
)

// errBehind says that a session is not stored any more, because too many facts wait.
var errBehind = fmt.Errorf("more than %d events, or %d MiB, wait to be stored", behindFactsMax, behindBytesMax>>20)

// store appends the facts of a run to the log. A session's facts are stored in their order, also when nothing waits for
// them any more.
type store struct {
	cfg     harness.Config
	wait    time.Duration
	warn    func(string)
	asked   func(events.PromptRequested) // of a [Headless]; nil: an editor shows the prompts
	ctx     context.Context              // ends when the run has left
	cancel  context.CancelFunc
	decided chan decision
	stops   chan stopped
	// the turns of earlier processes that were taken over
	inherited chan Inherited
	up        chan struct{}
	tried     chan struct{} // the first attempt to connect later is over
	working   sync.WaitGroup

	mu      sync.Mutex
	h       *harness.Harness
	down    bool // no attempt to connect has succeeded
	leaving bool
	facts   int // that wait
	bytes   int // of them
	records map[string]*record
}

// record is a session as a store has it.
type record struct {
	id     string
	queue  []*entryOf // the first one is being stored
	works  bool
	behind bool  // the lines of facts in the queue were sent
	lost   error // why it is not stored any more

	// By prompt: the taking of the session under which an Ask waits for its decision, or has returned it.
	asking map[string]int

	// The prompts whose decisions the agent has.
	had map[string]*harness.Session

	// So often was a turn taken over that the loop does not have yet. These wait for news of the session from then on.
	handing int
	later   []func()

	// Of the goroutine that stores.
	open  *events.SessionOpened // how it is taken
	next  string                // the turn for the decisions of people that this process takes over
	s     *harness.Session      // nil: it was not taken yet, or was released
	taken int                   // so often was it taken
	// This process has these open in it, or had: a claim leaves out what has ended.
	turn    string
	calls   map[string]bool
	prompts map[string]events.PromptRequested
}

func newRecord(id string) *record {
	return &record{id: id, asking: map[string]int{}, had: map[string]*harness.Session{}, calls: map[string]bool{},
		prompts: map[string]events.PromptRequested{}}
}

// has reports whether the process has the session, as far as it knows.
func (r *record) has() bool { return r.s != nil && r.s.Context().Err() == nil }

// entryOf is what a step appends.
type entryOf struct {
	open  *events.SessionOpened
	takes bool // over what an earlier process left, if no fact behind it begins a turn
	facts []events.Fact
	turn  *harness.Turn // that the log has begun
	bytes int           // of the facts
	late  bool          // its lines were sent
	back  context.CancelFunc
	done  chan struct{}
	err   error
	given []events.Fact // answers to prompts that the session does not know: no decision follows
}

// decision is how a prompt was decided in the log, or why the log cannot say it.
type decision struct {
	r      *record
	s      *harness.Session
	taken  int // of the session, by the Ask that has it
	prompt string
	answer harness.Answer
	err    error
}

func newStore(cfg harness.Config, wait time.Duration, warn func(string)) *store {
	st := &store{cfg: cfg, wait: wait, warn: warn, decided: make(chan decision), stops: make(chan stopped),
		inherited: make(chan Inherited),
		up:        make(chan struct{}), tried: make(chan struct{}), records: map[string]*record{}}
	st.ctx, st.cancel = context.WithCancel(context.Background())
	return st
}

// connect connects to the broker.
func (st *store) connect(ctx context.Context) error {
	h, err := harness.Connect(ctx, st.cfg)
	if err != nil {
		return err
	}
	if err := h.Ready(ctx); err != nil {
		h.Abandon()
		return err
	}
	st.mu.Lock()
	st.h, st.down = h, false
	st.mu.Unlock()
	close(st.up)
	return nil
}

// connectLater connects as soon as the broker can be reached.
func (st *store) connectLater() {
	st.working.Go(func() {
		pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(againMax), backoff.WithMaxElapsedTime(0))
		wait := st.wait
		for first := true; ; first = false {
			ctx, cancel := context.WithTimeout(st.ctx, wait)
			err := st.connect(ctx)
			cancel()
			if first {
				close(st.tried)
			}
			if st.ctx.Err() != nil {
				return
			}
			if err == nil {
				if !first {
					st.warn("the broker is reachable: sessions are stored")
				}
				return
			}
			wait = connectWait
			if first {
				st.mu.Lock()
				st.down = true
				st.mu.Unlock()
				st.warn("the agent works, and nothing is stored until the broker is reachable: " + err.Error())
			}
			select {
			case <-time.After(pace.NextBackOff()):
			case <-st.ctx.Done():
				return
			}
		}
	})
}

// reached reports whether the broker is there, or was. It waits for the first attempt to connect.
func (st *store) reached() bool {
	select {
	case <-st.up:
	case <-st.tried:
	}
	select {
	case <-st.up:
		return true
	default:
		return false
	}
}

// append stores what a step appends. It returns the facts to whose prompts no decision follows: all of them if they are
// not stored in time. Then they are stored later, if at all. A refused answer is stored in time: another decision
// stands, and follows.
func (st *store) append(s *Step) []events.Fact {
	e := &entryOf{open: s.Open, takes: s.Inherit, facts: s.Facts, done: make(chan struct{})}
	for _, f := range s.Facts {
		e.bytes += len(encode(f))
	}
	st.mu.Lock()
	r := st.records[s.Session]
	if r == nil {
		r = newRecord(s.Session)
		st.records[s.Session] = r
	}
	if s.Open != nil {
		// it is taken again
		r.lost = nil
	}
	if r.lost == nil && (st.facts+len(e.facts) > behindFactsMax || st.bytes+e.bytes > behindBytesMax) {
		st.lose(r, errBehind)
	}
	if r.lost != nil {
		st.mu.Unlock()
		return s.Facts
	}
	e.late = r.behind || st.down
	r.behind = e.late
	st.put(r, e)
	st.mu.Unlock()
	if e.late {
		return s.Facts
	}
	patience := time.NewTimer(st.wait)
	defer patience.Stop()
	select {
	case <-e.done:
		return e.unsettled()
	case <-patience.C:
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	select {
	case <-e.done:
		return e.unsettled()
	default:
	}
	r.behind = true
	for _, e := range r.queue {
		e.late = true
		if e.back != nil {
			// it is stored again, with the mark, unless it was sent
			e.back()
		}
	}
	st.warn(fmt.Sprintf("session %s continues, and is stored later: nothing was stored for %s", r.id, st.wait))
	return s.Facts
}

// unsettled returns the facts to whose prompts no decision follows. The entry is done.
func (e *entryOf) unsettled() []events.Fact {
	if e.err != nil {
		return e.facts
	}
	return e.given
}

// put adds to what waits in a session. The mutex is held.
func (st *store) put(r *record, e *entryOf) {
	st.facts, st.bytes = st.facts+len(e.facts), st.bytes+e.bytes
	if r.queue = append(r.queue, e); !r.works {
		r.works = true
		st.working.Go(func() { st.work(r) })
	}
}

// work stores what waits in a session.
func (st *store) work(r *record) {
	pace := newPace()
	for {
		st.mu.Lock()
		if len(r.queue) == 0 {
			if r.works = false; r.behind && r.lost == nil {
				r.behind = false
				st.warn(fmt.Sprintf("session %s is stored again", r.id))
			}
			st.mu.Unlock()
			return
		}
		e := r.queue[0]
		ctx, back := context.WithCancel(st.ctx)
		e.back = back
		facts := e.marked()
		st.mu.Unlock()
		given, err := st.commit(ctx, r, e, facts)
		again := err != nil && ctx.Err() != nil && st.ctx.Err() == nil && !errors.Is(err, harness.ErrPending)
		if !again && passes(err) && st.ctx.Err() == nil {
			again = true
			select {
			case <-time.After(pace.NextBackOff()):
			case <-ctx.Done():
			}
		}
		back()
		if errors.Is(err, harness.ErrPending) {
			// it was sent, and the client finds out its outcome
			err = nil
		}
		if again {
			continue
		}
		pace.Reset()
		if err == nil {
			st.follow(r, facts)
			if e.turn != nil {
				r.turn = e.turn.ID()
				go st.awaitStop(e.turn)
			}
		}
		st.mu.Lock()
		e.err, e.given = err, given
		r.queue, st.facts, st.bytes = r.queue[1:], st.facts-len(e.facts), st.bytes-e.bytes
		close(e.done)
		if err != nil {
			st.lose(r, err)
		}
		st.mu.Unlock()
	}
}

func newPace() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(againMin), backoff.WithMaxInterval(againMax),
		backoff.WithMaxElapsedTime(0))
}

// passes reports whether an error says that nothing was stored, and that the same may be stored later: when another
// process has ended, this one has a lease again, or the log has room.
func passes(err error) bool {
	return isLost(err) || errors.Is(err, harness.ErrOwned) || errors.Is(err, harness.ErrUnreachable) ||
		errors.Is(err, harness.ErrFull) || errors.Is(err, harness.ErrBufferFull)
}

// isLost reports whether an error says that this process does not have the session, and may take it again.
func isLost(err error) bool {
	return errors.Is(err, harness.ErrFenced) || errors.Is(err, harness.ErrReleased) ||
		errors.Is(err, harness.ErrLeaseLost)
}

// marked returns the facts. A prompt that was shown before it is stored says so.
func (e *entryOf) marked() []events.Fact {
	if !e.late {
		return e.facts
	}
	facts := slices.Clone(e.facts)
	for i := range facts {
		if f, ok := facts[i].(events.PromptRequested); ok {
			native := members(f.Native)
			if native == nil {
				native = map[string]json.RawMessage{}
			}
			native["late"] = json.RawMessage("true")
			f.Native = encode(native)
			facts[i] = f
		}
	}
	return facts
}

// lose gives a session up. The mutex is held.
func (st *store) lose(r *record, err error) {
	r.lost, r.behind = err, false
	for _, e := range r.queue[min(1, len(r.queue)):] {
		e.err = err
		st.facts, st.bytes = st.facts-len(e.facts), st.bytes-e.bytes
		close(e.done)
	}
	r.queue = r.queue[:min(1, len(r.queue))]
	if !st.leaving {
		st.warn(fmt.Sprintf("session %s continues, and is not stored any more: %v", r.id, err))
	}
}

// commit appends facts, and takes the session first if this process does not have it. It returns the answers to prompts
// that the session does not know.
func (st *store) commit(ctx context.Context, r *record, e *entryOf,
	facts []events.Fact) (given []events.Fact, err error) {
	select {
	case <-st.up:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e.open != nil {
		r.open = e.open
	}
	needed := e.open != nil || len(facts) > 0 || r.turn != "" || len(r.prompts) > 0
	if r.open != nil && needed && !r.has() {
		err := st.take(ctx, r, e.takes)
		if errors.Is(err, harness.ErrPending) {
			// the claim was sent, the facts were not: the next attempt finds the session taken
			err = harness.ErrUnreachable
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(facts) == 0:
		return nil, nil
	case r.s == nil:
		return nil, errNotOpen
	case slices.ContainsFunc(facts, func(f events.Fact) bool { _, _, ok := answerOf(f); return !ok }):
		if err := r.s.Relay(ctx, facts...); err != nil || !slices.ContainsFunc(facts, endsTurn) {
			return nil, err
		}
		return nil, r.withdrawRest(ctx)
	}
	for _, f := range facts {
		switch err := r.s.Append(ctx, f); {
		case errors.Is(err, harness.ErrUnknown):
			given = append(given, f)
		case err == nil, errors.Is(err, harness.ErrEnded), errors.Is(err, harness.ErrClosedID):
			if asked, ok := r.prompts[f.Subject()]; ok {
				st.ask(r, asked)
			}
		default:
			return nil, err
		}
	}
	return given, nil
}

// withdrawRest withdraws the prompts that the end of the turn has left open: the log had ended the turn before, so they
// belong to none.
func (r *record) withdrawRest(ctx context.Context) error {
	for id, q := range r.s.State().Prompts {
		if _, asked := r.prompts[id]; !asked || q.Status != fold.Awaiting {
			continue
		}
		err := r.s.Withdraw(ctx, id, events.ReasonTurnEnded)
		if err != nil && !errors.Is(err, harness.ErrEnded) && !errors.Is(err, harness.ErrUnknown) {
			return err
		}
	}
	return nil
}

// errNotOpen says that a step has facts of a session that no step has opened.
var errNotOpen = errors.New("no step has opened it")

// take opens a session, or claims it with all that this process has open in it. A process that had it, and has ended,
// is recovered first. No process takes requested turns, so recovery requests none: a person continues in the editor.
//
// With over, what people have decided for that process, and what it has asked them, continues here.
func (st *store) take(ctx context.Context, r *record, over bool) error {
	policy := events.PolicyPatch{}
	if r.open.Policy != nil {
		policy = *r.open.Policy
	}
	policy.Resume = events.Set(events.ResumeHold)
	var s *harness.Session
	err := harness.ErrNotFound
	if over {
		st.mu.Lock()
		over = !slices.ContainsFunc(r.queue, beginsTurn)
		st.mu.Unlock()
	}
	if r.taken > 0 || over {
		again := harness.Adopt{Turn: r.turn != "", Calls: slices.Sorted(maps.Keys(r.calls)), Waiting: over}
		for _, id := range slices.Sorted(maps.Keys(r.prompts)) {
			again.Prompts = append(again.Prompts, harness.Prompt{ID: id})
		}
		s, err = st.h.Claim(ctx, r.id, again)
	}
	if errors.Is(err, harness.ErrNotFound) {
		s, err = st.h.Open(ctx, r.id, harness.OpenOptions{Policy: &policy, Native: nativeOf(r.open.Native)})
	}
	if err != nil {
		return err
	}
	var t *harness.Turn
	if over {
		if t, err = st.takeOver(ctx, r, s); err != nil {
			return err
		}
	}
	if t == nil {
		t = s.OpenTurn()
	}
	if t != nil && r.turn != "" && t.ID() != r.turn {
		if err := failOther(ctx, t); err != nil {
			return err
		}
	}
	// No error from here on: who has the session does not take it again.
	r.s = s
	r.taken++
	owned := s.Context()
	st.working.Go(func() { st.awaitLoss(owned, r) })
	if t != nil && t.ID() == r.turn {
		st.begin(r, func() { st.awaitStop(t) })
	}
	for _, id := range slices.Sorted(maps.Keys(r.prompts)) {
		st.ask(r, r.prompts[id])
	}
	return nil
}

// failOther ends a turn that another process began. That process has lost the session, and this one does not run it.
func failOther(ctx context.Context, t *harness.Turn) error {
	err := t.Session().Append(ctx, events.TurnFailed{Turn: t.ID(), HadOutput: true,
		Error: events.Failure{Kind: failure.Interrupted, Text: "its process has lost the session"}})
	if errors.Is(err, harness.ErrEnded) || errors.Is(err, harness.ErrUnknown) {
		// an attempt that had no outcome has ended it
		return nil
	}
	return err
}

// awaitLoss has the session taken again when this process has lost it. It is taken at once if a turn or a prompt is
// open, else with its next fact.
func (st *store) awaitLoss(owned context.Context, r *record) {
	select {
	case <-owned.Done():
	case <-st.ctx.Done():
		return
	}
	if !isLost(context.Cause(owned)) {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if r.lost == nil && !st.leaving {
		st.put(r, &entryOf{done: make(chan struct{}), late: r.behind})
	}
}

func nativeOf(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// follow notes what facts that are stored have opened and ended, and waits for what people decide about it.
func (st *store) follow(r *record, facts []events.Fact) {
	for _, f := range facts {
		switch f := f.(type) {
		case events.PromptRequested:
			r.prompts[f.Prompt] = f
			st.ask(r, f)
		case events.PromptAnswered, events.PromptRejected, events.PromptWithdrawn:
			delete(r.prompts, f.Subject())
		case events.TurnStarted:
			r.turn = f.Turn
			if t := r.s.OpenTurn(); t != nil && t.ID() == f.Turn {
				go st.awaitStop(t)
			}
		case events.TurnCompleted, events.TurnFailed, events.TurnStopped:
			r.turn = ""
			clear(r.calls)
			clear(r.prompts)
		case events.ToolStarted:
			r.calls[f.Call] = true
		case events.ToolCompleted, events.ToolFailed:
			delete(r.calls, f.Subject())
		case events.SessionReleased, events.SessionClosed:
			r.s, r.turn = nil, ""
			clear(r.calls)
			clear(r.prompts)
		}
	}
}

// endsTurn reports whether a fact of the proxy ends a turn.
func endsTurn(f events.Fact) bool {
	switch f.(type) {
	case events.TurnCompleted, events.TurnFailed, events.TurnStopped:
		return true
	}
	return false
}

// ask waits for the decision about a prompt, unless an Ask under the present taking of the session has done so. The
// decision is in the log, so its receipt is, too. The log may have ended the turn, or the call, while this process did
// not have the session. Then the prompt belongs to none.
func (st *store) ask(r *record, f events.PromptRequested) {
	d := decision{r: r, s: r.s, taken: r.taken, prompt: f.Prompt}
	st.mu.Lock()
	asked := r.asking[f.Prompt] == d.taken
	r.asking[f.Prompt] = d.taken
	st.mu.Unlock()
	if asked {
		return
	}
	if st.asked != nil {
		st.asked(f)
	}
	s, in := r.s, r.s.State()
	p := harness.Prompt{ID: f.Prompt, Call: f.Call, Kind: f.PromptKind, Title: f.Title, Questions: f.Questions,
		Delivery: f.Delivery, OnOwnerLoss: f.OnOwnerLoss, Native: nativeOf(f.Native)}
	ask := s.Ask
	if t := s.OpenTurn(); t != nil && t.ID() == f.Turn {
		ask = t.Ask
	}
	if in.Tools[f.Call] == nil {
		p.Call = ""
	}
	st.begin(r, func() {
		d.answer, d.err = ask(st.ctx, p)
		select {
		case st.decided <- d:
		case <-st.ctx.Done():
		}
	})
}

// stands reports whether a decision is the newest word of the log. An error is not, if the session was taken again
// meanwhile: another decision follows. After an error the prompt is asked again when the editor has answered it.
func (st *store) stands(d decision) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if d.err == nil {
		d.r.had[d.prompt] = d.s
		return true
	}
	if d.r.asking[d.prompt] != d.taken {
		return false
	}
	delete(d.r.asking, d.prompt)
	return true
}

// stopped is a turn that is to be stopped.
type stopped struct {
	turn, actor, reason string
	ended               bool // the log has its end
}

// awaitStop waits until a turn is stopped outside of the editor.
func (st *store) awaitStop(t *harness.Turn) {
	select {
	case <-t.Context().Done():
	case <-st.ctx.Done():
		return
	}
	cause := context.Cause(t.Context())
	stop, ok := errors.AsType[*harness.StopError](cause)
	if !ok {
		return
	}
	select {
	case st.stops <- stopped{t.ID(), stop.Actor, stop.Reason, errors.Is(cause, harness.ErrEnded)}:
	case <-st.ctx.Done():
	}
}

// leave stores what still waits, and ends the lease: with a reason if the agent's process has ended by itself, else in
// good order. It takes at most this long.
func (st *store) leave(wait time.Duration, why string) {
	ctx, cancel := context.WithTimeout(st.ctx, wait)
	defer cancel()
	st.mu.Lock()
	h := st.h
	var last []*entryOf
	// one that is behind may be so for long
	for _, r := range st.records {
		if n := len(r.queue); n > 0 && !r.behind && !st.down {
			last = append(last, r.queue[n-1])
		}
	}
	st.mu.Unlock()
	for _, e := range last {
		select {
		case <-e.done:
		case <-ctx.Done():
		}
	}
	st.awaitReceipts(ctx)
	st.mu.Lock()
	n := st.facts
	st.leaving = true
	st.mu.Unlock()
	if h != nil {
		var err error
		if why != "" {
			err = h.AbandonBecause(ctx, why)
		} else {
			err = h.Close(ctx)
		}
		if err != nil {
			st.warn("the sessions end with the lease: " + err.Error())
		}
	}
	st.cancel()
	st.working.Wait()
	if n > 0 {
		st.warn(fmt.Sprintf("events that are not stored: %d", n))
	}
}

// awaitReceipts waits until the log has the receipts for the decisions that the agent has: without them recovery has
// the next process bring them.
func (st *store) awaitReceipts(ctx context.Context) {
	owes := func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		for _, r := range st.records {
			for id, s := range r.had {
				in := s.State()
				q := in.Prompts[id]
				owed := q != nil && q.Status != fold.Awaiting && in.Tools[q.Call] == nil
				if owed && !r.behind && s.Context().Err() == nil {
					return true
				}
			}
		}
		return false
	}
	poll := time.NewTicker(receiptPoll)
	defer poll.Stop()
	for owes() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// answerOf returns what a fact decides about a prompt.
func answerOf(f events.Fact) (prompt string, a harness.Answer, ok bool) {
	switch f := f.(type) {
	case events.PromptAnswered:
		return f.Prompt, harness.Answer{Status: fold.Answered, Answers: f.Answers, By: f.By}, true
	case events.PromptRejected:
		return f.Prompt, harness.Answer{Status: fold.Rejected, Text: f.Text, By: f.By}, true
	case events.PromptWithdrawn:
		return f.Prompt, harness.Answer{Status: fold.Withdrawn, Reason: f.Reason}, true
	}
	return "", harness.Answer{}, false
}
