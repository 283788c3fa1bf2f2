package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// held is a session that this process has, or has had.
type held struct {
	s    *harness.Session
	kept bool // the agent has opened it; else it is here for as long as work runs something in it
	job  *job // the turn that runs in it; nil: none
}

// job is a turn that the agent runs. Its fields are guarded by the agent's mutex.
type job struct {
	t        *harness.Turn
	ctx      context.Context
	ending   bool // the agent ends it: its context ends then, and that is no news
	over     bool // the agent has replied to its request
	notified bool // the agent was notified that its context has ended
}

// hold keeps a session for the agent.
func (a *agent) hold(s *harness.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.sessions[s.ID()]; was != nil && was.s == s {
		was.kept = true
		return
	}
	a.sessions[s.ID()] = &held{s: s, kept: true}
}

// session returns a session of this process.
func (a *agent) session(id string) (*harness.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e := a.sessions[id]; {
	case a.h == nil:
		return nil, errNotConnected
	case e == nil:
		return nil, fmt.Errorf("session %s: %w: open it first", clip(id), harness.ErrNotFound)
	default:
		return e.s, nil
	}
}

// job returns a turn that runs. The error of another one says how it ended.
func (a *agent) job(id, turn string) (*job, error) {
	s, err := a.session(id)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	var j *job
	if e := a.sessions[id]; e != nil {
		j = e.job
	}
	a.mu.Unlock()
	if j != nil && j.t.ID() == turn {
		return j, nil
	}
	if e, ended := s.State().Ended(session.EntityTurn, turn); ended {
		return nil, &harness.EndedError{Stands: e}
	}
	return nil, fmt.Errorf("turn %s in %s: %w: the agent does not run it", clip(turn), clip(id),
		harness.ErrUnknown)
}

// begin notes that the agent runs a turn.
func (a *agent) begin(t *harness.Turn, ctx context.Context) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := &job{t: t, ctx: ctx}
	e := a.sessions[t.Session().ID()]
	if e == nil || e.s != t.Session() {
		e = &held{s: t.Session(), kept: e != nil && e.kept}
		a.sessions[t.Session().ID()] = e
	}
	e.job = j
	return j
}

// finish notes that the handler of a turn has ended. A session that the agent did not open is forgotten.
func (a *agent) finish(j *job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j.over = true
	id := j.t.Session().ID()
	if e := a.sessions[id]; e != nil && e.job == j {
		if e.job = nil; !e.kept {
			delete(a.sessions, id)
		}
	}
}

// notifyEnded tells the agent that the context of a turn has ended, unless the agent knows that.
func (a *agent) notifyEnded(j *job) {
	a.mu.Lock()
	silent := j.ending || j.over || j.notified || a.phase == ended
	j.notified = j.notified || !silent
	a.mu.Unlock()
	if !silent {
		a.notify(methodTurnEnds, Cancelled{Session: j.t.Session().ID(), Turn: j.t.ID(),
			Error: errorOf(context.Cause(j.ctx))})
	}
}

// work runs the client's work with the agent as the handler.
func (a *agent) work(ctx context.Context, p Work) (Nothing, error) {
	h, err := a.harness()
	if err != nil {
		return Nothing{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	a.mu.Lock()
	switch {
	case a.stopWork != nil:
		a.mu.Unlock()
		return Nothing{}, fmt.Errorf("work: %w", harness.ErrRunning)
	case a.phase != connected:
		a.mu.Unlock()
		return Nothing{}, fmt.Errorf("work: %w", harness.ErrClosed)
	}
	a.stopWork, a.workDone = stop, done
	a.mu.Unlock()
	w := harness.Worker{Turn: a.runTurn, TurnsMax: p.TurnsMax}
	if p.Options {
		w.Options = a.options
	}
	if p.Compact {
		w.Compact = a.compact
	}
	err = h.Work(ctx, w)
	a.mu.Lock()
	a.stopWork, a.workDone = nil, nil
	a.mu.Unlock()
	close(done)
	return Nothing{}, err
}

// runTurn has the agent run a turn. It waits for the agent's reply also if the context ends: until then the agent may
// run it.
func (a *agent) runTurn(ctx context.Context, t *harness.Turn) error {
	j := a.begin(t, ctx)
	defer a.finish(j)
	stop := func() bool { return true }
	m, err := a.ask(methodTurn, Turn{Session: t.Session().ID(), WorkTurn: t.Request()},
		func() { stop = context.AfterFunc(ctx, func() { a.notifyEnded(j) }) })
	defer stop()
	switch {
	case err != nil:
		return err
	case m.Error != nil:
		return m.Error.failed()
	}
	return nil
}

// unstorable fails the turn that it is an option of, with the reason.
type unstorable struct{ err error }

// MarshalJSON returns the reason.
func (u unstorable) MarshalJSON() ([]byte, error) { return nil, u.err }

// options asks the agent for the options of a turn.
func (a *agent) options(s *harness.Session, t session.WorkTurn) any {
	m, err := a.ask(methodOptions, Turn{Session: s.ID(), WorkTurn: t}, func() {})
	switch {
	case err != nil:
		return unstorable{err}
	case m.Error != nil:
		return unstorable{m.Error.failed()}
	case string(m.Result) == "null":
		return nil
	}
	return m.Result
}

// compact has the agent compact a conversation.
func (a *agent) compact(ctx context.Context, s *harness.Session, c session.WorkCompaction) (int64, error) {
	a.lend(s)
	defer a.takeBack(s)
	stop := func() bool { return true }
	m, err := a.ask(methodCompact, Compact{Session: s.ID(), WorkCompaction: c}, func() {
		stop = context.AfterFunc(ctx, func() {
			a.notify(methodCompactEnds, Cancelled{Session: s.ID(), Compaction: c.Compaction,
				Error: errorOf(context.Cause(ctx))})
		})
	})
	defer stop()
	switch {
	case err != nil:
		return 0, err
	case m.Error != nil:
		return 0, m.Error.failed()
	}
	var done Compacted
	if err := json.Unmarshal(m.Result, &done); err != nil {
		return 0, fmt.Errorf("the result of the compaction: %w", err)
	}
	if done.Summary != nil {
		err = harness.ValidateSummary(*done.Summary)
	}
	return done.UsedAfter, err
}

// lend lets the agent name a session while work runs something in it.
func (a *agent) lend(s *harness.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.sessions[s.ID()]; e == nil || e.s != s {
		a.sessions[s.ID()] = &held{s: s, kept: e != nil && e.kept}
	}
}

// takeBack forgets a session that the agent did not open.
func (a *agent) takeBack(s *harness.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.sessions[s.ID()]; e != nil && e.s == s && !e.kept && e.job == nil {
		delete(a.sessions, s.ID())
	}
}

// runs gives a turn that work does not run to the agent.
func (a *agent) runs(t *harness.Turn) Turn {
	a.mu.Lock()
	if e := a.sessions[t.Session().ID()]; e != nil && e.job != nil && e.job.t.ID() == t.ID() && e.job.ctx.Err() == nil {
		a.mu.Unlock()
		return turnOf(t)
	}
	a.mu.Unlock()
	j := a.begin(t, t.Context())
	context.AfterFunc(j.ctx, func() { a.notifyEnded(j) })
	return turnOf(t)
}

func turnOf(t *harness.Turn) Turn {
	turn := Turn{Session: t.Session().ID(), WorkTurn: t.Request()}
	turn.Turn = t.ID()
	return turn
}

func (a *agent) openTurn(_ context.Context, p SessionID) (OpenTurn, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return OpenTurn{}, err
	}
	t := s.OpenTurn()
	if t == nil {
		return OpenTurn{}, nil
	}
	turn := a.runs(t)
	return OpenTurn{&turn}, nil
}

func (a *agent) startTurn(ctx context.Context, p StartTurn) (Turn, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Turn{}, err
	}
	t, err := s.StartTurn(ctx, harness.StartOptions{ID: p.Turn, Cause: p.Cause, Message: p.Message,
		Content: given(p.Content), By: p.By, Synthetic: p.Synthetic, OfTurn: p.OfTurn, Prompts: p.Prompts,
		Attempt: p.Attempt, Options: given(p.Options)})
	if err != nil {
		return Turn{}, err
	}
	return a.runs(t), nil
}

// within returns a context of a request that also ends with the context of the turn.
func (j *job) within(ctx context.Context) (context.Context, func()) {
	run, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(j.ctx, func() { cancel(context.Cause(j.ctx)) })
	return run, func() { stop(); cancel(nil) }
}

func (a *agent) content(ctx context.Context, p TurnID) (Content, error) {
	j, err := a.job(p.Session, p.Turn)
	if err != nil {
		return Content{}, err
	}
	raw, err := j.t.Content(ctx)
	return Content{raw}, err
}

func (a *agent) askOnce(ctx context.Context, p AskOnce) (Answer, error) {
	j, err := a.job(p.Session, p.Turn)
	if err != nil {
		return Answer{}, err
	}
	ctx, done := j.within(ctx)
	defer done()
	answer, err := j.t.AskOnce(ctx, p.Name, harness.Prompt{Kind: p.Kind, Title: p.Title, Questions: p.Questions,
		Deadline: p.Deadline, NonBlocking: p.NonBlocking, Native: given(p.Native)})
	return answerOf(answer), err
}

func (a *agent) askInTurn(ctx context.Context, p TurnAsk) (Answer, error) {
	j, err := a.job(p.Session, p.Turn)
	if err != nil {
		return Answer{}, err
	}
	ctx, done := j.within(ctx)
	defer done()
	answer, err := j.t.Ask(ctx, p.Prompt.harness())
	return answerOf(answer), err
}

func (a *agent) tool(ctx context.Context, p Tool) (ToolID, error) {
	j, err := a.job(p.Session, p.Turn)
	if err != nil {
		return ToolID{}, err
	}
	c, err := j.t.Tool(ctx, harness.ToolOptions{ID: p.ID, Name: p.Name, Title: p.Title, Input: given(p.Input),
		Background: p.Background})
	if err != nil {
		return ToolID{}, err
	}
	return ToolID{c.ID()}, nil
}

func (a *agent) usage(ctx context.Context, p Usage) (Nothing, error) {
	j, err := a.job(p.Session, p.Turn)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, j.t.Usage(ctx, harness.Usage{Model: p.Model, Tokens: p.Tokens,
		InputIncludesCached: p.InputIncludesCached, ContextLimit: p.ContextLimit})
}

// ends stores the end of a turn that the agent ends itself. If that fails, and the turn has ended otherwise, the agent
// is notified.
func (a *agent) ends(id, turn string, end func(*harness.Turn) error) (Nothing, error) {
	j, err := a.job(id, turn)
	if err != nil {
		return Nothing{}, err
	}
	a.mu.Lock()
	j.ending = true
	a.mu.Unlock()
	if err = end(j.t); err == nil || errors.Is(err, harness.ErrEnded) {
		return Nothing{}, err
	}
	a.mu.Lock()
	j.ending = false
	a.mu.Unlock()
	if j.ctx.Err() != nil {
		a.notifyEnded(j)
	}
	return Nothing{}, err
}

func (a *agent) complete(ctx context.Context, p Complete) (Nothing, error) {
	return a.ends(p.Session, p.Turn, func(t *harness.Turn) error { return t.Complete(ctx, p.Finish) })
}

func (a *agent) fail(ctx context.Context, p Fail) (Nothing, error) {
	e := Error{Message: p.Message, Data: p.Data}
	return a.ends(p.Session, p.Turn, func(t *harness.Turn) error { return t.FailWith(ctx, e.failed()) })
}

func (a *agent) stop(ctx context.Context, p Stop) (Nothing, error) {
	return a.ends(p.Session, p.Turn, func(t *harness.Turn) error { return t.Stop(ctx, p.Actor, p.Reason) })
}
