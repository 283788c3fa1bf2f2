package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// methods are the methods that an agent calls.
func methods() []*Verb {
	return append(append(processMethods(), sessionMethods()...), turnMethods()...)
}

func processMethods() []*Verb {
	return []*Verb{
		verb("connect", "Take a lease for this process. A newer process with the same id takes the place of older "+
			"ones, unless they are a pool. Call it first.", (*agent).connect),
		verb("open", "Open a session, or claim it, and adopt the turn that a dead process left.", (*agent).open),
		verb("claim", "Claim a session that exists, and continue the named items of an earlier process.",
			(*agent).claim),
		verb("ready", "All sessions that this process continues are open: recovery closes what no process continues.",
			(*agent).ready),
		verb("work", "Call the agent for each turn that is adopted or requested. It returns when it is cancelled, or "+
			"when this process may do nothing more.", (*agent).work),
		verb("sessions", "The documents of all sessions of this harness. They may lag behind the log.",
			(*agent).listSessions),
		verb("send", "Send a message to a session of any harness. After an error send it again under the id in "+
			"data.message: it is taken once.", (*agent).sendMessage),
		verb(methodClose, "End this process in order: work ends, sessions are released. Then close the stream.",
			(*agent).closeHarness),
		hint(methodCancel, "Do not wait for a request any more. It replies with the error cancelled, or with its "+
			"result.", (*agent).cancel),
	}
}

func sessionMethods() []*Verb {
	return []*Verb{
		verb("session.state", "A session as this process knows it.", (*agent).state),
		verb("session.open_turn", "Take over the open turn, if it was started here or adopted: the agent runs it, and "+
			"work leaves it alone.", (*agent).openTurn),
		verb("session.start_turn", "Begin a turn of the agent's own. An open turn of the session ends by it.",
			(*agent).startTurn),
		verb("session.ask", "Ask people a question that belongs to no turn, and wait.", (*agent).askInSession),
		verb("session.answer", "How a prompt was settled.", (*agent).answer),
		verb("session.withdraw", "Take a question back.", (*agent).withdraw),
		verb("session.refuse", "The harness cannot use a decision about a prompt; text says why.",
			(*agent).refusePrompt),
		verb("session.result", "How a call ended.", (*agent).result),
		verb("session.append", "Store facts as one commit, all or none: what the other methods do not offer.",
			(*agent).appendFacts),
		verb("session.regain", "Wait, after a lost lease, until this process has the session again.", (*agent).regain),
		hint("session.progress", "The session is alive. A hint: it keeps a turn without events from being taken for "+
			"stalled.", (*agent).progress),
		verb("session.release", "Give the session up. Its open items are left to recovery.", (*agent).release),
		verb("session.close", "End the session, and everything open in it, for good. Reason: finished, archived or "+
			"deleted.", (*agent).closeSession),
	}
}

func turnMethods() []*Verb {
	return []*Verb{
		verb("turn.content", "Return the content of the message of the turn.", (*agent).content),
		verb("turn.step_begin", "Begin a step with a name. Its result is kept: for the same message it runs once.",
			(*agent).stepBegin),
		verb("turn.step_end", "End a step, and keep its result. Acknowledged means stored.", (*agent).stepEnd),
		verb("turn.ask_once", "Ask people, wait, and keep the decision under a name: for the same message a question "+
			"is asked once.", (*agent).askOnce),
		verb("turn.ask", "Ask people, and wait. Under the same id a question is found again.", (*agent).askInTurn),
		verb("turn.tool", "A call is about to be handed to its tool. Run the tool after the reply.", (*agent).tool),
		verb("call.complete", "End a call with its output.", (*agent).completeCall),
		verb("call.fail", "End a call in an error.", (*agent).failCall),
		hint("turn.usage", "Report what the model counted, before anything that follows from its answer.",
			(*agent).usage),
		verb("turn.complete", "End the turn.", (*agent).complete),
		verb("turn.fail", "End the turn in an error. Its kind decides whether it is tried again.", (*agent).fail),
		verb("turn.stop", "End the turn on request, or confirm the request.", (*agent).stop),
	}
}

// lossOf returns the setting of a name.
func lossOf(name string) (harness.LeaseLoss, error) {
	switch name {
	case "", "ride_out":
		return harness.LeaseRideOut, nil
	case "restart":
		return harness.LeaseRestart, nil
	case "stop":
		return harness.LeaseStop, nil
	}
	return 0, fmt.Errorf("%w: on_lease_loss %q: want ride_out, restart or stop", events.ErrMalformed,
		clip(name))
}

func (a *agent) connect(ctx context.Context, p Connect) (Connected, error) {
	loss, err := lossOf(p.OnLeaseLoss)
	if err != nil {
		return Connected{}, err
	}
	cfg := a.cfg.Harness
	cfg.ID, cfg.Pool, cfg.OnLeaseLoss, cfg.Host, cfg.Version = p.ID, p.Pool, loss, p.Host, p.Version
	cfg.TTL = time.Duration(p.TTLMS) * time.Millisecond
	if err := cfg.Validate(); err != nil {
		return Connected{}, fmt.Errorf("%w: %w", events.ErrMalformed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.ConnectTimeout)
	defer cancel()
	a.mu.Lock()
	if a.phase != apart {
		a.mu.Unlock()
		return Connected{}, errConnected
	}
	a.phase, a.dial = connecting, cancel
	a.mu.Unlock()
	h, err := harness.Connect(ctx, cfg)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.phase == ended:
		// the agent died meanwhile
		if err == nil {
			h.Abandon()
		}
		return Connected{}, ErrGone
	case err != nil:
		a.phase = apart
		return Connected{}, err
	}
	a.h, a.phase = h, connected
	context.AfterFunc(h.Context(), func() { a.notifyLost(h) })
	return Connected{Protocol: Protocol, Incarnation: h.Incarnation()}, nil
}

// notifyLost tells the agent why its process may do nothing more. An end that it asked for is no news.
func (a *agent) notifyLost(h *harness.Harness) {
	a.mu.Lock()
	isConnected := a.phase == connected
	a.mu.Unlock()
	if isConnected {
		a.notify(methodLost, Lost{Error: errorOf(context.Cause(h.Context()))})
	}
}

func (a *agent) open(ctx context.Context, p Open) (SessionID, error) {
	h, err := a.harness()
	if err != nil {
		return SessionID{}, err
	}
	s, err := h.Open(ctx, p.Session, harness.OpenOptions{Parent: p.Parent, ParentCall: p.ParentCall, Root: p.Root,
		Title: p.Title, Agent: p.Agent, Model: p.Model, ContextLimit: p.ContextLimit, Policy: p.Policy,
		Native: given(p.Native)})
	if err != nil {
		return SessionID{}, err
	}
	a.hold(s)
	return SessionID{s.ID()}, nil
}

func (a *agent) claim(ctx context.Context, p Claim) (SessionID, error) {
	h, err := a.harness()
	if err != nil {
		return SessionID{}, err
	}
	adopt := harness.Adopt{Calls: p.Calls, Turn: p.Turn, ForWork: p.ForWork}
	for _, prompt := range p.Prompts {
		adopt.Prompts = append(adopt.Prompts, prompt.harness())
	}
	s, err := h.Claim(ctx, p.Session, adopt)
	if err != nil {
		return SessionID{}, err
	}
	a.hold(s)
	return SessionID{s.ID()}, nil
}

func (a *agent) ready(ctx context.Context, _ Nothing) (Nothing, error) {
	h, err := a.harness()
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, h.Ready(ctx)
}

func (a *agent) listSessions(ctx context.Context, _ Nothing) (Sessions, error) {
	h, err := a.harness()
	if err != nil {
		return Sessions{}, err
	}
	all, unreadable, err := h.Sessions(ctx)
	list := Sessions{Sessions: all}
	if all == nil {
		list.Sessions = []*session.State{}
	}
	for _, u := range unreadable {
		list.Unreadable = append(list.Unreadable, Unreadable{Session: u.Session, Message: u.Err.Error()})
	}
	return list, err
}

func (a *agent) sendMessage(ctx context.Context, p Message) (MessageID, error) {
	h, err := a.harness()
	if err != nil {
		return MessageID{}, err
	}
	id, err := h.Send(ctx, harness.Message{Session: p.Session, Harness: p.Harness, ID: p.ID, Content: p.Content,
		By: p.By, Synthetic: p.Synthetic})
	if err != nil {
		return MessageID{}, &sentError{id, err}
	}
	return MessageID{id}, nil
}

func (a *agent) closeHarness(context.Context, Nothing) (Nothing, error) {
	return Nothing{}, a.leave(errCancelled)()
}

func (a *agent) cancel(_ context.Context, p Cancel) (Nothing, error) {
	a.cancelRequest(p.ID)
	return Nothing{}, nil
}

func (a *agent) state(_ context.Context, p SessionID) (State, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return State{}, err
	}
	return State{s.State()}, nil
}

func (a *agent) askInSession(ctx context.Context, p SessionAsk) (Answer, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Answer{}, err
	}
	answer, err := s.Ask(ctx, p.Prompt.harness())
	return answerOf(answer), err
}

func (a *agent) answer(ctx context.Context, p PromptID) (Answer, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Answer{}, err
	}
	answer, err := s.Answer(ctx, p.Prompt)
	return answerOf(answer), err
}

func (a *agent) withdraw(ctx context.Context, p PromptText) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Withdraw(ctx, p.Prompt, p.Text)
}

func (a *agent) refusePrompt(ctx context.Context, p PromptText) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Refuse(ctx, p.Prompt, p.Text)
}

func (a *agent) result(ctx context.Context, p CallID) (Result, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Result{}, err
	}
	r, err := s.Result(ctx, p.Call)
	return Result(r), err
}

func (a *agent) appendFacts(ctx context.Context, p Facts) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	var facts []events.Fact
	for _, f := range p.Facts {
		fact, err := decodeFact(f)
		if err != nil {
			return Nothing{}, err
		}
		facts = append(facts, fact)
	}
	return Nothing{}, s.Append(ctx, facts...)
}

// decodeFact decodes the data of an event.
func decodeFact(f Fact) (events.Fact, error) {
	spec := events.Lookup(events.Kind(f.Kind))
	if spec == nil {
		return nil, fmt.Errorf("%w: there is no kind of fact %q", events.ErrMalformed, clip(f.Kind))
	}
	data := f.Data
	if data == nil {
		data = json.RawMessage("{}")
	}
	v := reflect.New(reflect.TypeOf(spec.Zero))
	if err := strictly(data, v.Interface()); err != nil {
		return nil, fmt.Errorf("fact %s: %w: %w", f.Kind, events.ErrMalformed, err)
	}
	fact, ok := v.Elem().Interface().(events.Fact)
	if !ok {
		return nil, fmt.Errorf("fact %s: %w", f.Kind, events.ErrMalformed)
	}
	return fact, nil
}

func (a *agent) regain(ctx context.Context, p SessionID) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Regain(ctx)
}

func (a *agent) progress(_ context.Context, p SessionID) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	s.Progress()
	return Nothing{}, nil
}

func (a *agent) release(ctx context.Context, p SessionEnd) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Release(ctx, p.Reason)
}

func (a *agent) closeSession(ctx context.Context, p SessionEnd) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Close(ctx, p.Reason)
}

func (a *agent) completeCall(ctx context.Context, p CallEnd) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Call(p.Call).Complete(ctx, given(p.Output))
}

func (a *agent) failCall(ctx context.Context, p CallFail) (Nothing, error) {
	s, err := a.session(p.Session)
	if err != nil {
		return Nothing{}, err
	}
	return Nothing{}, s.Call(p.Call).Fail(ctx, p.Failure)
}
