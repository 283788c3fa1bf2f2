package harness

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// StartOptions says what a turn is. All fields may be empty.
type StartOptions struct {
	ID    string       // default: a new one. An id that is open already is attached to, nothing is appended
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
	Attempt int
	Options any // encoded as JSON, opaque: what makes a retry the same request
}

// Turn is an open turn of a session, or one that was. All methods may be called at the same time.
type Turn struct {
	s       *Session
	id      string
	request session.WorkTurn

	ctx    context.Context // guarded by the session, for it is replaced when a lost session is claimed again
	cancel context.CancelCauseFunc
}

// StartTurn begins a turn: [message.accepted, turn.started] in one commit if it has a message of its own. An open turn
// of the session ends by it: as continued if named by OfTurn, else as stopped. If a person has stopped that turn, and
// this process had not read it, the context of the new turn ends with [ErrStopped] at once. Decisions of people for an
// earlier turn that no completed turn has had stay undelivered unless Prompts names them, or a person's message goes
// before them: when this turn has completed, another one is requested for them.
func (s *Session) StartTurn(ctx context.Context, start StartOptions) (*Turn, error) {
	facts, id, err := s.starting(ctx, start)
	if err != nil {
		return nil, err
	}
	err = s.append(ctx, func(st *session.State) (bool, error) {
		return st.Turn != nil && st.Turn.ID == id && st.Turn.Epoch == st.Epoch, nil
	}, facts...)
	if err != nil {
		return nil, err
	}
	return s.handle(id), nil
}

// starting is what to say for a start.
func (s *Session) starting(ctx context.Context, start StartOptions) (facts []events.Fact, id string, err error) {
	id = orNew(s, start.ID)
	content, err := encode(start.Content)
	if err != nil {
		return nil, "", fmt.Errorf("harness: turn %s: content: %w", id, err)
	}
	if len(content) > events.ContentBytesMax {
		if start.Ref, err = s.h.bus.Objects.Put(ctx, s.ref, content); err != nil {
			return nil, "", fmt.Errorf("harness: turn %s: content: %w", id, translate(err))
		}
		content = nil
	}
	options, err := encode(start.Options)
	if err != nil {
		return nil, "", fmt.Errorf("harness: turn %s: options: %w", id, err)
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

// OpenTurn is the handle of the open turn if it is this process's: started by it, or adopted. Else nil.
func (s *Session) OpenTurn() *Turn {
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
	s.turn = t
	s.follow()
	return t
}

// ID is the turn's id.
func (t *Turn) ID() string { return t.id }

// Session is the turn's session.
func (t *Turn) Session() *Session { return t.s }

// Request is what was asked for, if the turn was taken by [Harness.Work] or adopted by [Harness.Claim]: its message's
// content, its cause, its options, and the decisions that it brings. Of an adopted turn, decisions about questions that
// the turn itself asked are returned by [Turn.Ask], under the same id.
func (t *Turn) Request() session.WorkTurn {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.request
}

// Context ends when the turn ends or must end. Its cause is the reason: [ErrStopped], a stop was requested: stop, then
// call [Turn.Stop]; [ErrEnded]; or the cause of the session's end. Under [LeaseRestart] it is a new one once the
// session is claimed again.
func (t *Turn) Context() context.Context {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.ctx
}

// Complete ends the turn. Finish is the provider's reason, if any. Calls and prompts that are open in it end with it. A
// decision of a person that no [Turn.Ask] of this turn returned is not lost: another turn is requested for it.
func (t *Turn) Complete(ctx context.Context, finish string) error {
	return t.s.Append(ctx, events.TurnCompleted{Turn: t.id, Finish: finish})
}

// Fail ends the turn in an error. Its kind decides whether it is tried again.
func (t *Turn) Fail(ctx context.Context, e events.Failure, hadOutput bool) error {
	return t.s.Append(ctx, events.TurnFailed{Turn: t.id, Error: e, HadOutput: hadOutput})
}

// FailWith ends the turn in this error, classified: [*FailureError] and [*ProviderError] say what it is, of any other
// the words do. Its kind decides whether it is tried again.
func (t *Turn) FailWith(ctx context.Context, err error) error {
	if err == nil {
		return fmt.Errorf("harness: turn %s in %s: %w: failed with a nil error; use Complete", t.id, t.s.ref,
			events.ErrMalformed)
	}
	f, hadOutput := failureOf(err)
	return t.Fail(ctx, f, hadOutput)
}

// Stop ends the turn on request, or confirms the request if the turn had ended before. Actor: person, compaction or
// stall, as the [*StopError] has it.
func (t *Turn) Stop(ctx context.Context, actor, reason string) error {
	return t.s.Append(ctx, events.TurnStopped{Turn: t.id, Actor: actor, Reason: reason})
}

// Progress is [Session.Progress].
func (t *Turn) Progress() { t.s.Progress() }

// ToolOptions says what a call is.
type ToolOptions struct {
	ID         string // default: a new one. An id that is open already is attached to
	Name       string
	Title      string
	Input      any  // encoded as JSON
	Background bool // outlives its turn
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
		return nil, fmt.Errorf("harness: call %s: input: %w", tool.ID, err)
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

// Complete ends the call with its output, encoded as JSON. The answer of a prompt that belongs to it is thereby
// delivered. [ErrUnread] if a person decided after the Ask for it had given up.
func (c *Call) Complete(ctx context.Context, output any) error {
	raw, err := encode(output)
	if err != nil {
		return fmt.Errorf("harness: call %s: output: %w", c.id, err)
	}
	return c.s.Append(ctx, events.ToolCompleted{Call: c.id, Output: raw})
}

// Fail ends the call in an error. [ErrUnread] as with [Call.Complete].
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

// confirm gives the receipt for the stop of a turn that has ended.
func (s *Session) confirm(p session.PendingStop) {
	err := s.append(s.h.ctx, func(st *session.State) (bool, error) {
		return st.Pending.Stop == nil || st.Pending.Stop.Turn != p.Turn, nil
	}, events.TurnStopped{Turn: p.Turn, Actor: p.Actor, Reason: p.Reason})
	if err != nil {
		s.h.log.Debug().Str("session", s.ref.String()).Str("entity", session.EntityTurn).Str("id", p.Turn).AnErr("err",
			err).Msg("stop not confirmed")
	}
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
