package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// StartOptions says what a turn is. All fields may be empty.
type StartOptions struct {
	// ID: default a new one. A turn of this process that is open already is attached to, and nothing is appended.
	// [ErrRunning] if a handler of [Harness.Work] runs it.
	ID    string
	Cause events.Cause // default: message

	// Message is the user input that the turn takes; with Content or Ref it is new and stored in the same commit, else
	// it waits in the queue. Default with Content or Ref: a new id.
	Message   string
	Content   any    // encoded as JSON, usually a string
	Ref       string // of large content in the object store, in place of Content
	By        string // who said it
	Synthetic bool   // not caused by a person

	OfTurn  string   // the turn that it continues; if open, that ends as continued
	Prompts []string // the settled prompts that it brings to the agent; delivered when it completes
	Attempt int      // the number of the retry, as in [session.WorkTurn]; default 1
	Options any      // encoded as JSON, opaque: what makes a retry the same request
}

// Turn is an open turn of a session, or one that was. All methods may be called at the same time.
type Turn struct {
	s       *Session
	id      string
	request session.WorkTurn

	ctx    context.Context // guarded by the session, for it is replaced when a lost session is claimed again
	cancel context.CancelCauseFunc

	names map[string]bool // steps and questions that run; guarded by the session
	key   string          // what the turn is about; guarded by the session
	since uint64          // a place in the log before all that was done for it; guarded by the session
	began uint64          // a place in the log before its start, 0: not known; guarded by the session
	place *place          // of the handler of Work that runs it, nil: none does; guarded by the session
}

// StartTurn begins a turn: [message.accepted, turn.started] in one commit if it has a message of its own. An open turn
// of the session ends by it: as continued if named by OfTurn, else as stopped.
//
// A person's stop reaches the turn unless this process knew its receipt before the call. It does not reach a turn that
// takes a person's message, or a request, from after the stop, or that begins in place of a turn that a person has
// requested since. If the receipt is still awaited, the turn begins, and its context ends with [ErrStopped] at once:
// call [Turn.Stop]. If none is awaited any more, because it was stored during the call or the session was claimed again
// after a lost lease, the error is [ErrStopped] and nothing is stored. A second call then begins the turn.
//
// Decisions of people for an earlier turn that no completed turn has had stay undelivered unless Prompts names them, or
// a person's message goes before them: when this turn has completed, another one is requested for them. Other errors:
// those of [Session.Append]; [ErrRunning]; [events.ErrMalformed]; those of storing large content, [ErrUnreachable] for
// instance.
func (s *Session) StartTurn(ctx context.Context, start StartOptions) (*Turn, error) {
	before, stopped := uint64(0), s.confirmedStop()
	facts, id, err := s.starting(ctx, start)
	if err != nil {
		return nil, err
	}
	o, err := s.newWrite(facts)
	if err != nil {
		return nil, err
	}
	o.check = func(st *session.State) (done bool, err error) {
		if done, err = s.attachTurn(st, id); done || err != nil {
			return done, err
		}
		before = st.Seq
		return false, s.stoppedSince(st, stopped, o, id)
	}
	if err := s.do(ctx, o); err != nil {
		return nil, err
	}
	t := s.handle(id)
	t.started(facts, before)
	return t, nil
}

// confirmedStop is a place in the log from after each stop of a person whose receipt this process knows, and from
// before each other one.
func (s *Session) confirmedStop() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.st.Pending.Stop; p != nil && p.Seq == s.st.StoppedSeq {
		return p.Seq - 1
	}
	return s.st.StoppedSeq
}

// stoppedSince refuses the start of a turn if a person's stop from after the place known would have moved to it, and
// cannot, because its receipt is not awaited any more. The fold decides to which turn a stop moves, so the start is
// tried on a state in which the receipt is awaited. The session is locked.
func (s *Session) stoppedSince(st *session.State, known uint64, start *write, id string) error {
	p := st.Pending.Stop
	if st.StoppedSeq <= known || p != nil && p.Seq == st.StoppedSeq {
		return nil
	}
	awaited := st.Clone()
	awaited.Pending.Stop = &session.PendingStop{Turn: turnID(st), Actor: events.ActorPerson, Seq: st.StoppedSeq}
	if st.Turn == nil && st.LastTurn != nil {
		awaited.Pending.Stop.Turn = st.LastTurn.ID
	}
	trial := awaited.Try(s.commit(st.Seq+1, st.Seq, nil))
	evs, _ := s.wrap(start)
	if try(trial, evs, false) != nil {
		// the start is not lawful: the caller gets the reason
		return nil
	}
	if moved := trial.State().Pending.Stop; moved == nil || moved.Turn != id {
		return nil
	}
	return about(&StopError{Actor: events.ActorPerson}, "turn %s in %s", id, s.ref)
}

// attachTurn reports whether a turn need not be started: it is this process's already. From then on Work leaves it
// alone. A turn that a handler of Work runs is refused. The session is locked.
func (s *Session) attachTurn(st *session.State, id string) (done bool, err error) {
	switch {
	case st.Turn == nil || st.Turn.ID != id || !ofLastOwner(st, st.Turn.Epoch):
		return false, nil
	case s.atWork == id:
		return false, fmt.Errorf("%w: turn %s in %s, by a handler of Work", ErrRunning, id, s.ref)
	}
	s.forWork = ""
	s.runs(id)
	return true, nil
}

// started gives a turn that the program began its request, and a place in the log before its start.
func (t *Turn) started(facts []events.Fact, before uint64) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.request.Turn != "" {
		// it was open before
		return
	}
	t.began = before
	for _, f := range facts {
		switch f := f.(type) {
		case events.MessageAccepted:
			t.request.Content, t.request.Ref = f.Content, f.Ref
		case events.TurnStarted:
			t.request.Turn, t.request.Cause, t.request.OfTurn, t.request.Message = f.Turn, f.Cause, f.OfTurn, f.Message
			t.request.Synthetic, t.request.Options, t.request.Attempt = f.Synthetic, f.Options, max(f.Attempt, 1)
			t.request.Prompt = f.Prompt
			for _, id := range f.Prompts {
				t.request.Prompts = append(t.request.Prompts, session.TurnPrompt{Prompt: id, Omitted: true})
			}
		}
	}
}

// starting is what to say for a start.
func (s *Session) starting(ctx context.Context, start StartOptions) (facts []events.Fact, id string, err error) {
	id = orNew(s, start.ID)
	content, err := encode(start.Content)
	if err != nil {
		return nil, "", about(err, "turn %s: content", id)
	}
	if len(content) > events.ContentBytesMax {
		if start.Ref, err = s.h.bus.Objects.Put(ctx, s.ref, content); err != nil {
			return nil, "", about(translate(err), "turn %s: content", id)
		}
		content = nil
	}
	options, err := encode(start.Options)
	if err != nil {
		return nil, "", about(err, "turn %s: options", id)
	}
	if content != nil || start.Ref != "" {
		start.Message = orNew(s, start.Message)
		facts = append(facts, events.MessageAccepted{Message: start.Message, Content: content, Ref: start.Ref,
			Synthetic: start.Synthetic, By: start.By})
	}
	if start.Cause == "" {
		start.Cause = events.CauseMessage
	}
	return append(facts, events.TurnStarted{Turn: id, Cause: start.Cause, Synthetic: start.Synthetic,
		OfTurn: start.OfTurn, Message: start.Message,
		Prompt: firstOf(start.Prompts), Prompts: start.Prompts, Attempt: start.Attempt, Options: options}), id, nil
}

func firstOf(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// OpenTurn returns the handle of the open turn if it is this process's: started by it, or adopted, wholly or a call of
// it that the turn waits for. The caller runs an adopted turn from then on, and [Harness.Work] leaves it alone. A turn
// of which only a call was adopted is recovered when that call has ended; until then its context says that a person
// stops it. OpenTurn returns nil while a handler of Work runs the turn: the handler has the handle, and nothing else
// may run the turn beside it.
func (s *Session) OpenTurn() *Turn {
	s.mu.Lock()
	if s.st != nil && s.st.Turn != nil && s.st.Turn.ID == s.atWork {
		s.mu.Unlock()
		return nil
	}
	if s.st != nil && s.st.Turn != nil {
		s.runs(s.st.Turn.ID)
		if s.st.Turn.ID == s.forWork {
			s.forWork = ""
		}
	}
	s.mu.Unlock()
	return s.turnOfThis()
}

// turnOfThis returns the handle of the open turn if this process has the turn, or a call that the turn waits for.
func (s *Session) turnOfThis() *Turn {
	if t := s.openTurn(); t != nil {
		return t
	}
	s.mu.Lock()
	id := ""
	if s.ownership != apart && s.st.Runs(turnID(s.st)) {
		id = s.st.Turn.ID
	}
	s.mu.Unlock()
	if id == "" {
		return nil
	}
	return s.handle(id)
}

// workOn records that a handler of Work is about to run a turn; "": none.
func (s *Session) workOn(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atWork = turn
}

// openTurn returns the handle of the open turn if this process started it, or adopted it.
func (s *Session) openTurn() *Turn {
	s.mu.Lock()
	id := ""
	if s.st != nil && s.st.Turn != nil && s.st.Turn.Epoch == s.epoch && s.ownership != apart {
		id = s.st.Turn.ID
	}
	s.mu.Unlock()
	if id == "" {
		return nil
	}
	return s.handle(id)
}

// handle is the one handle of a turn. That of a turn which has ended meanwhile has a context that has ended.
func (s *Session) handle(id string) *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil && s.turn.id == id {
		return s.turn
	}
	t := &Turn{s: s, id: id}
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	if s.st.Turn == nil || s.st.Turn.ID != id {
		t.cancel(s.stopOf(id, s.endOf(session.EntityTurn, id)))
		return t
	}
	if s.took != nil && s.took.Turn == id {
		t.request, s.took = *s.took, nil
	}
	s.turn = t
	s.follow()
	return t
}

// ID is the turn's id.
func (t *Turn) ID() string { return t.id }

// Session is the turn's session.
func (t *Turn) Session() *Session { return t.s }

// Request is what was asked for: the message and its content, the cause, the options, and the decisions that the turn
// brings; [session.WorkTurn] says which field is set for which cause. Of a turn that [Session.StartTurn] began, the
// decisions are named only: [Turn.Decisions] reads them. Of an adopted turn, decisions about questions that
// the turn itself asked are returned by [Turn.Ask], under the same id. While this process is not known to own the
// session (its lease is overdue or lost, or another process has the session), the decisions are named only, too, and
// the content of a message that an answer became is left out.
func (t *Turn) Request() session.WorkTurn {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.ownership == owner && !t.s.term.lease.Overdue() {
		return t.request
	}
	return named(t.request)
}

// Decisions returns the decisions that the turn brings, also those that [Turn.Request] only names. It waits until this
// process is known to own the session. It gives no receipt: the end of the turn does. The errors are those of
// [Session.Regain], the cause of ctx, and [ErrUnknown] if the turn has ended and its request only named a decision.
func (t *Turn) Decisions(ctx context.Context) ([]session.TurnPrompt, error) {
	s := t.s
	if err := s.verifyOwner(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	all, st := slices.Clone(t.request.Prompts), s.st.Clone()
	s.mu.Unlock()
	if !slices.ContainsFunc(all, func(p session.TurnPrompt) bool { return p.Omitted }) {
		return all, nil
	}
	if st.Turn == nil || st.Turn.ID != t.id {
		return nil, fmt.Errorf("%w: decisions of turn %s in %s: it has ended", ErrUnknown, t.id, s.ref)
	}
	w, err := st.WorkOpen(s.commits(ctx))
	if err != nil {
		return nil, about(translate(err), "decisions of turn %s in %s", t.id, s.ref)
	}
	return w.Prompts, nil
}

// commits reads commits of the log.
func (s *Session) commits(ctx context.Context) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		c, err := s.h.bus.Log.Commit(ctx, seq)
		return &c, err
	}
}

// named returns the request of a turn with the names of the decisions that the turn brings, and without the decisions.
func named(t session.WorkTurn) session.WorkTurn {
	prompts := t.Prompts
	t.Prompts = nil
	if bringsAnswer(t) {
		t.Content, t.Ref = nil, ""
	}
	for _, p := range prompts {
		t.Prompts = append(t.Prompts, session.TurnPrompt{Prompt: p.Prompt, Seq: p.Seq, Title: p.Title, Omitted: true})
	}
	return t
}

// bringsAnswer reports whether the message of a turn is what an answer became: its content is a decision, too.
func bringsAnswer(t session.WorkTurn) bool { return session.IsAnswer(t.Message) }

// Context ends when the turn ends or must end. Its cause is the reason: [ErrStopped], a stop was requested: stop, then
// call [Turn.Stop]; [ErrEnded]; or the cause of the session's end. Under [LeaseRestart] it is a new one once the
// session is claimed again.
func (t *Turn) Context() context.Context {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.ctx
}

// Complete ends the turn. Finish is the provider's reason, if any. Calls and prompts that are open in it end with it. A
// decision of a person that no [Turn.Ask] of this turn returned is not lost: another turn is requested for it. Errors:
// [ErrEnded], the turn has ended before, and [*EndedError] says how; [ErrUnknown]; others of [Session.Append].
func (t *Turn) Complete(ctx context.Context, finish string) error {
	return t.s.Append(ctx, events.TurnCompleted{Turn: t.id, Finish: finish})
}

// Fail ends the turn in an error. Its kind decides whether it is tried again; without one it is unknown. HadOutput:
// something of the turn was shown already. Errors are those of [Turn.Complete].
func (t *Turn) Fail(ctx context.Context, e events.Failure, hadOutput bool) error {
	return t.s.Append(ctx, events.TurnFailed{Turn: t.id, Error: e, HadOutput: hadOutput})
}

// FailWith ends the turn in this error, classified: [*FailureError] and [*ProviderError] say what it is, of any other
// the words do. Its kind decides whether it is tried again. Errors are those of [Turn.Complete];
// [events.ErrMalformed] for a nil err.
func (t *Turn) FailWith(ctx context.Context, err error) error {
	if err == nil {
		return fmt.Errorf("harness: turn %s in %s: %w: failed with a nil error; use Complete", t.id, t.s.ref,
			events.ErrMalformed)
	}
	f, hadOutput := failureOfHandler(err)
	return t.Fail(ctx, f, hadOutput)
}

// Stop ends the turn on request, or confirms the request if the turn had ended before. Actor: that of the [*StopError],
// else [events.ActorPerson], [events.ActorCompaction] or [events.ActorStall]; a person who stops the turn in the agent
// itself is a person, too. Errors are those of [Turn.Complete]; [ErrEnded] means that the turn had ended and that no
// stop waits to be confirmed; [events.ErrMalformed], another actor.
func (t *Turn) Stop(ctx context.Context, actor, reason string) error {
	switch actor {
	case events.ActorPerson, events.ActorCompaction, events.ActorStall:
	default:
		// newer services may have more actors
		asked, ok := errors.AsType[*StopError](context.Cause(t.Context()))
		if !ok || asked.Actor != actor {
			return fmt.Errorf("harness: turn %s in %s: %w: actor %q: want %s, %s or %s", t.id, t.s.ref,
				events.ErrMalformed, actor, events.ActorPerson, events.ActorCompaction, events.ActorStall)
		}
	}
	return t.s.Append(ctx, events.TurnStopped{Turn: t.id, Actor: actor, Reason: reason})
}

// Progress is [Session.Progress].
func (t *Turn) Progress() { t.s.Progress() }

// WaitFor runs wait, in which the handler waits for other turns of this process: those of sub-agents, for instance.
// Meanwhile the turn does not count for [Worker.TurnsMax], so that the turns that it waits for can begin. When wait has
// returned, the turn continues at once, as one that was answered. WaitFor returns the error of wait.
func (t *Turn) WaitFor(wait func() error) error {
	defer t.waits()()
	return wait()
}

// ToolOptions says what a call is.
type ToolOptions struct {
	ID         string // default: a new one. An id that is open already is attached to
	Name       string // of the tool, as views show it; may be empty
	Title      string // what this call does, for people; may be empty
	Input      any    // encoded as JSON
	Background bool   // outlives its turn
}

// Call is an open call, or one that was.
type Call struct {
	s  *Session
	id string
}

// Tool says that a call is about to be handed to its tool. Run the tool after it has returned.
func (t *Turn) Tool(ctx context.Context, tool ToolOptions) (*Call, error) {
	input, err := encode(tool.Input)
	if err != nil {
		return nil, about(err, "call %s: input", tool.ID)
	}
	id := orNew(t.s, tool.ID)
	err = t.s.Append(ctx, events.ToolStarted{Call: id, Turn: t.id, Name: tool.Name, Title: tool.Title, Input: input,
		Background: tool.Background})
	if err != nil {
		return nil, err
	}
	return &Call{s: t.s, id: id}, nil
}

// Call is the handle of a call by its id: of one that was adopted, for instance. Nothing is checked before it is used.
func (s *Session) Call(id string) *Call { return &Call{s: s, id: id} }

// ID is the call's id.
func (c *Call) ID() string { return c.id }

// Complete ends the call with its output, encoded as JSON. Large output travels through the object store. The answer of
// a prompt that belongs to it is thereby delivered. Errors: [ErrUnread], a person has decided about that prompt, and no
// Ask has returned it; [ErrEnded], the call has ended before, and [*EndedError] says how; [ErrUnknown]; those of
// storing large output; others of [Session.Append].
func (c *Call) Complete(ctx context.Context, output any) error {
	raw, err := encode(output)
	if err != nil {
		return about(err, "call %s: output", c.id)
	}
	if raw, err = c.s.outputOf(ctx, raw); err != nil {
		return about(translate(err), "call %s: output", c.id)
	}
	return c.s.Append(ctx, events.ToolCompleted{Call: c.id, Output: raw})
}

// Fail ends the call in an error. Errors are those of [Call.Complete].
func (c *Call) Fail(ctx context.Context, e events.Failure) error {
	return c.s.Append(ctx, events.ToolFailed{Call: c.id, Error: e})
}

func orNew(s *Session, id string) string {
	if id == "" {
		return s.h.bus.NewID()
	}
	return id
}

// encode is JSON, nil for nothing.
func encode(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return v, nil
	}
	return json.Marshal(v)
}

// confirm gives the receipt for the stop of a turn that has ended. A receipt that the broker refuses is sent again: a
// stop without its receipt stays pending, and ends the next turn of the agent.
func (s *Session) confirm(p session.PendingStop) {
	s.appendLater(events.TurnStopped{Turn: p.Turn, Actor: p.Actor, Reason: p.Reason}, func(st *session.State) bool {
		return st.Pending.Stop != nil && st.Pending.Stop.Turn == p.Turn
	})
}

// stopOf returns the actor of a stop, and the end of the turn if it has ended: a stalled turn, for example, is failed
// in the commit that requests its stop. The session is locked.
func (s *Session) stopOf(turn string, ending error) error {
	p := s.st.Pending.Stop
	if p == nil || p.Turn != turn {
		return ending
	}
	return &StopError{Actor: p.Actor, By: p.By, Reason: p.Reason, ended: ending}
}

// endOf is why a turn's context ends, or a compaction's. The session is locked.
func (s *Session) endOf(entity, id string) error {
	if e, ok := s.st.Ended(entity, id); ok {
		return &EndedError{Stands: e}
	}
	return fmt.Errorf("%w: %s %s", ErrEnded, entity, id)
}
