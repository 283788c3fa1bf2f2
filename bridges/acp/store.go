package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a store.
const (
	behindFactsMax = 50_000 // that wait to be stored; a session with more is not stored any more
	connectWait    = 5 * time.Second
	againMin       = 50 * time.Millisecond
	againMax       = 5 * time.Second
)

// errBehind says that a session is not stored any more, because too many facts wait.
var errBehind = fmt.Errorf("more than %d facts wait to be stored", behindFactsMax)

// store appends the facts of a run to the log. A session's facts are stored in their order, also when nothing waits for
// them any more.
type store struct {
	cfg     harness.Config
	wait    time.Duration
	say     func(string)
	ctx     context.Context // ends when the run has left
	cancel  context.CancelFunc
	decided chan decision
	stops   chan string // sessions whose turn a person has stopped
	up      chan struct{}
	working sync.WaitGroup

	mu      sync.Mutex
	h       *harness.Harness
	down    bool // no attempt to connect has succeeded
	leaving bool
	facts   int // that wait
	records map[string]*record
}

// record is a session as a store has it.
type record struct {
	id     string
	s      *harness.Session
	queue  []*entryOf // the first one is being stored
	works  bool
	behind bool  // the lines of facts in the queue were sent
	lost   error // why it is not stored any more
}

// entryOf is what a step appends.
type entryOf struct {
	open  *events.SessionOpened
	facts []events.Fact
	late  bool // its lines were sent
	back  context.CancelFunc
	done  chan struct{}
	err   error
}

// decision is how a prompt was decided in the log, or why the log cannot say it.
type decision struct {
	prompt string
	answer harness.Answer
	err    error
}

func newStore(cfg harness.Config, wait time.Duration, say func(string)) *store {
	st := &store{cfg: cfg, wait: wait, say: say, decided: make(chan decision), stops: make(chan string),
		up: make(chan struct{}), records: map[string]*record{}}
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
			if st.ctx.Err() != nil {
				return
			}
			if err == nil {
				if !first {
					st.say("the broker is reachable: sessions are stored")
				}
				return
			}
			wait = connectWait
			if first {
				st.mu.Lock()
				st.down = true
				st.mu.Unlock()
				st.say("the agent works, and nothing is stored until the broker is reachable: " + err.Error())
			}
			select {
			case <-time.After(pace.NextBackOff()):
			case <-st.ctx.Done():
				return
			}
		}
	})
}

// append stores what a step appends. It returns false if that is not stored in time: then it is stored later, if at
// all. A refused answer is stored in time: another decision stands, and follows.
func (st *store) append(s *Step) bool {
	e := &entryOf{open: s.Open, facts: s.Facts, done: make(chan struct{})}
	st.mu.Lock()
	r := st.records[s.Session]
	if r == nil {
		r = &record{id: s.Session}
		st.records[s.Session] = r
	}
	if s.Open != nil && r.lost != nil && !r.works {
		r.lost = nil // it is taken again
	}
	if r.lost == nil && st.facts+len(s.Facts) > behindFactsMax {
		st.lose(r, errBehind)
	}
	if r.lost != nil {
		st.mu.Unlock()
		return false
	}
	e.late = r.behind || st.down
	r.behind = e.late
	st.facts += len(s.Facts)
	if r.queue = append(r.queue, e); !r.works {
		r.works = true
		st.working.Go(func() { st.work(r) })
	}
	st.mu.Unlock()
	if e.late {
		return false
	}
	patience := time.NewTimer(st.wait)
	defer patience.Stop()
	select {
	case <-e.done:
		return e.err == nil
	case <-patience.C:
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	select {
	case <-e.done:
		return e.err == nil
	default:
	}
	r.behind = true
	for _, e := range r.queue {
		e.late = true
		if e.back != nil {
			e.back() // it is stored again, with the mark, unless it was sent
		}
	}
	st.say(fmt.Sprintf("session %s continues, and is stored later: nothing was stored for %s", r.id, st.wait))
	return false
}

// work stores what waits in a session.
func (st *store) work(r *record) {
	for {
		st.mu.Lock()
		if len(r.queue) == 0 {
			if r.works = false; r.behind && r.lost == nil {
				r.behind = false
				st.say(fmt.Sprintf("session %s is stored again", r.id))
			}
			st.mu.Unlock()
			return
		}
		e := r.queue[0]
		ctx, back := context.WithCancel(st.ctx)
		e.back = back
		facts := e.marked()
		st.mu.Unlock()
		err := st.put(ctx, r, e.open, facts)
		again := err != nil && ctx.Err() != nil && st.ctx.Err() == nil && !errors.Is(err, harness.ErrPending)
		back()
		if errors.Is(err, harness.ErrPending) {
			err = nil // it was sent, and the client finds out its outcome
		}
		if again {
			continue
		}
		if err == nil {
			st.follow(r, facts)
		}
		st.mu.Lock()
		e.err = err
		r.queue, st.facts = r.queue[1:], st.facts-len(e.facts)
		close(e.done)
		if err != nil {
			st.lose(r, err)
		}
		st.mu.Unlock()
	}
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
		st.facts -= len(e.facts)
		close(e.done)
	}
	r.queue = r.queue[:min(1, len(r.queue))]
	if !st.leaving {
		st.say(fmt.Sprintf("session %s continues, and is not stored any more: %v", r.id, err))
	}
}

// put appends facts, and takes the session first if the step says so.
func (st *store) put(ctx context.Context, r *record, open *events.SessionOpened, facts []events.Fact) (err error) {
	select {
	case <-st.up:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if open != nil {
		if r.s, err = st.take(ctx, r.id, open); err != nil {
			return err
		}
	}
	switch {
	case len(facts) == 0:
		return nil
	case r.s == nil:
		return harness.ErrReleased
	case !slices.ContainsFunc(facts, func(f events.Fact) bool { _, _, ok := answerOf(f); return !ok }):
		err = r.s.Append(ctx, facts...)
		if errors.Is(err, harness.ErrEnded) || errors.Is(err, harness.ErrClosedID) ||
			errors.Is(err, harness.ErrUnknown) {
			return nil
		}
		return err
	}
	return r.s.Relay(ctx, facts...)
}

// take opens or claims a session. A process that had it, and has ended, is recovered first. No process takes requested
// turns, so recovery requests none: a person continues in the editor.
func (st *store) take(ctx context.Context, id string, open *events.SessionOpened) (*harness.Session, error) {
	policy := events.PolicyPatch{}
	if open.Policy != nil {
		policy = *open.Policy
	}
	policy.Resume = events.Set(events.ResumeHold)
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(againMin), backoff.WithMaxInterval(againMax),
		backoff.WithMaxElapsedTime(0))
	for {
		s, err := st.h.Open(ctx, id, harness.OpenOptions{Policy: &policy, Native: nativeOf(open.Native)})
		if !errors.Is(err, harness.ErrOwned) && !errors.Is(err, harness.ErrUnreachable) {
			return s, err
		}
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func nativeOf(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// follow waits for what people decide about facts that are stored.
func (st *store) follow(r *record, facts []events.Fact) {
	s := r.s
	for _, f := range facts {
		switch f := f.(type) {
		case events.PromptRequested:
			go st.ask(s, f)
		case events.TurnStarted:
			if t := s.OpenTurn(); t != nil && t.ID() == f.Turn {
				go st.awaitStop(r.id, t)
			}
		}
	}
}

// ask waits for the decision about a prompt. It is in the log, so the receipt of the decision is, too.
func (st *store) ask(s *harness.Session, f events.PromptRequested) {
	d := decision{prompt: f.Prompt}
	if t := s.OpenTurn(); t != nil && t.ID() == f.Turn {
		d.answer, d.err = t.Ask(st.ctx, harness.Prompt{ID: f.Prompt})
	} else {
		d.answer, d.err = s.Ask(st.ctx, harness.Prompt{ID: f.Prompt})
	}
	select {
	case st.decided <- d:
	case <-st.ctx.Done():
	}
}

// awaitStop waits until a person stops a turn.
func (st *store) awaitStop(id string, t *harness.Turn) {
	select {
	case <-t.Context().Done():
	case <-st.ctx.Done():
		return
	}
	if !errors.Is(context.Cause(t.Context()), harness.ErrStopped) {
		return
	}
	select {
	case st.stops <- id:
	case <-st.ctx.Done():
	}
}

// leave stores what still waits, and ends the lease: with a reason if the agent's process has ended by itself, else in
// good order. It takes at most this long.
func (st *store) leave(wait time.Duration, why string) {
	ctx, cancel := context.WithTimeout(st.ctx, wait)
	defer cancel()
	st.mu.Lock()
	h, behind := st.h, st.down
	var last []*entryOf
	for _, r := range st.records {
		behind = behind || r.behind
		if n := len(r.queue); n > 0 {
			last = append(last, r.queue[n-1])
		}
	}
	st.mu.Unlock()
	for _, e := range last {
		if behind {
			break
		}
		select {
		case <-e.done:
		case <-ctx.Done():
		}
	}
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
			st.say("the sessions end with the lease: " + err.Error())
		}
	}
	st.cancel()
	st.working.Wait()
	if n > 0 {
		st.say(fmt.Sprintf("%d facts are not stored", n))
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
