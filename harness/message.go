package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// sendDelayMaxMS is the longest delay in milliseconds between tries of a send while its service is not ready.
const sendDelayMaxMS = 2000

// Message is user input for a session.
type Message struct {
	Session   string // the id of the session that gets it. Required
	Harness   string // whose session it is; default: this one's
	ID        string // default: a new one. The same id with the same content is taken once, however often it is sent
	Content   any    // encoded as JSON, usually a string; what is large travels through the object store
	By        string // who says it; default: this harness
	Synthetic bool   // no person's: changes nothing that a person chose
}

// Send gives a message to the present or next owner of the session, and returns its id once it is stored: from then on
// it is delivered exactly once, across crashes, unless it is withdrawn first. While the service is absent it tries
// again until ctx ends. Errors: [*events.Refusal] has the reason of a refusal (404 no such session, 409 it is closed,
// or the id has other content, 413 too large, 503 not ready); after [ErrUnreachable] the outcome is unknown: send it
// again under the same id, which is returned also with an error.
func (h *Harness) Send(ctx context.Context, m Message) (id string, err error) {
	content, err := encode(m.Content)
	if err != nil {
		return m.ID, about(err, "send to %s: content", m.Session)
	}
	req := request.Send{Ref: events.Ref{Harness: m.Harness, Session: m.Session}, Message: m.ID, Content: content,
		Synthetic: m.Synthetic, By: m.By}
	if req.Harness == "" {
		req.Harness = h.cfg.ID
	}
	if req.Message == "" {
		req.Message = h.bus.NewID()
	}
	if req.By == "" {
		req.By = h.cfg.ID
	}
	if len(content) > events.ContentBytesMax {
		if req.Object, err = h.bus.Objects.Put(ctx, req.Ref, content); err != nil {
			return req.Message, about(translate(err), "send %s to %s/%s: content", req.Message, req.Harness,
				req.Session)
		}
		req.Content = nil
	}
	if err := h.send(ctx, req); err != nil {
		return req.Message, about(translate(err), "send %s to %s/%s", req.Message, req.Harness, req.Session)
	}
	return req.Message, nil
}

// send sends a request, and sends it again while the service is not ready.
func (h *Harness) send(ctx context.Context, req request.Send) error {
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(sendDelayMaxMS*time.Millisecond), backoff.WithMaxElapsedTime(0))
	for {
		_, err := rpc.Call(ctx, h.bus.Services, request.CompactionSend, req)
		r, refused := errors.AsType[*events.Refusal](err)
		if err == nil || !refused || r.Code != http.StatusServiceUnavailable {
			return err
		}
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return err
		case <-h.ctx.Done():
			return context.Cause(h.ctx)
		}
	}
}

// Content is what the turn's message says, as JSON; nil if it takes none. A message that an earlier attempt took
// already is looked up in the log. Content that an answer became is returned to the owner of the session only, after a
// wait while the owner is not known. Errors: [ErrUnknown], it was taken too long ago to be found: keep what you were
// given; [ErrFenced]; [ErrForbidden]; [ErrUnreachable], or the error of ctx: call it again.
func (t *Turn) Content(ctx context.Context) (json.RawMessage, error) {
	t.s.mu.Lock()
	r := t.request
	t.s.mu.Unlock()
	content, err := t.content(ctx, r)
	// reading took as long as it took
	if err == nil && bringsAnswer(r) {
		err = t.s.verifyOwner(ctx)
	}
	if err != nil {
		return nil, about(translate(err), "message %s in %s", r.Message, t.s.ref)
	}
	return content, nil
}

// content is the content of the message of a request, wherever it is.
func (t *Turn) content(ctx context.Context, r session.WorkTurn) (json.RawMessage, error) {
	switch {
	case r.Ref != "":
		return t.stored(ctx, r.Ref)
	case r.Message == "" || r.Content != nil:
		return r.Content, nil
	}
	seq := t.s.State().MessageSeq(r.Message)
	if seq == 0 {
		return nil, ErrUnknown
	}
	c, err := t.s.h.bus.Log.Commit(ctx, seq)
	if err != nil {
		return nil, err
	}
	for i := range c.Events {
		if f, ok := c.Events[i].Fact.(events.MessageAccepted); ok && f.Message == r.Message {
			if f.Ref != "" {
				return t.stored(ctx, f.Ref)
			}
			return f.Content, nil
		}
	}
	return nil, ErrUnknown
}

// stored is content that was too large to travel in the log.
func (t *Turn) stored(ctx context.Context, name string) (json.RawMessage, error) {
	content, err := t.s.h.bus.Objects.Get(ctx, name)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, fmt.Errorf("%w: its content %s is gone", ErrUnknown, name)
	}
	return content, err
}

// Options reads what makes the turn the same request as one before into v, and says whether there was anything: of a
// retry or a resume they are those of the turn that failed. The only error is that v cannot hold them.
func (t *Turn) Options(v any) (bool, error) {
	raw := t.Request().Options
	if len(raw) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return true, about(err, "turn %s: options", t.id)
	}
	return true, nil
}

// Result is how a call ended, as the log has it.
type Result struct {
	Outcome string // completed, failed, interrupted, ended-with-turn …
	Reason  string // why, where no tool said it
	// Output of a completed call: what [Call.Complete] was given. Of a call that a person's answer ended, also while no
	// process ran: the answers, as [Answer.Answers] has them.
	Output json.RawMessage
	Error  *events.Failure // failed
	// Synthetic: it was said in the tool's name. Output is then what people decided about the call's prompt, whether
	// the tool ran after that or not.
	Synthetic bool
}

// Result finds in the log how a call ended, for an agent whose earlier process made the call. The end of a call can be
// the decision of a person, so it is returned to the owner of the session only: Result waits while the session is
// suspended. Errors: [ErrUnknown], the call is open, never existed, or ended too long ago to be kept ([Step] finds its
// result however long ago that was); those of [Session.Regain]; [ErrUnreachable], or the error of ctx.
func (s *Session) Result(ctx context.Context, call string) (Result, error) {
	if err := s.verifyOwner(ctx); err != nil {
		return Result{}, err
	}
	e, ok := s.State().Ended(session.EntityTool, call)
	if !ok {
		return Result{}, fmt.Errorf("%w: the end of call %s in %s", ErrUnknown, call, s.ref)
	}
	r, err := s.resultAt(ctx, call, e)
	if err == nil {
		// reading took as long as it took
		err = s.verifyOwner(ctx)
	}
	if err != nil {
		return Result{}, err
	}
	return r, nil
}

// resultAt reads the result of a call that has this ending.
func (s *Session) resultAt(ctx context.Context, call string, e session.Ending) (Result, error) {
	c, err := s.h.bus.Log.Commit(ctx, e.Seq)
	if err != nil {
		return Result{}, about(translate(err), "the end of call %s in %s", call, s.ref)
	}
	r := Result{Outcome: e.Outcome, Reason: e.Reason}
	for i := range c.Events {
		switch f := c.Events[i].Fact.(type) {
		case events.ToolCompleted:
			if f.Call == call && e.Outcome == session.OutcomeCompleted {
				r.Synthetic = f.Synthetic
				r.Output, err = s.output(ctx, call, f)
				return r, err
			}
		case events.ToolFailed:
			if f.Call == call && e.Outcome == session.OutcomeFailed {
				r.Error, r.Synthetic = &f.Error, f.Synthetic
				return r, nil
			}
		}
	}
	return r, nil
}

// outputRef is the output of a call whose real output is an object.
type outputRef struct {
	Ref string `json:"$ref"`
}

// outputMax is the largest output in bytes that a fact holds; the rest of the fact takes some.
const outputMax = events.DataBytesMax - 4<<10

// outputOf returns the output to store in a fact: output that is too large goes to the object store, and so does output
// that looks like the reference to an object.
func (s *Session) outputOf(ctx context.Context, output json.RawMessage) (json.RawMessage, error) {
	if _, matches := referred(output); len(output) <= outputMax && !matches {
		return output, nil
	}
	name, err := s.h.bus.Objects.Put(ctx, s.ref, output)
	if err != nil {
		return nil, err
	}
	return json.Marshal(outputRef{name})
}

// referred returns the object that an output refers to.
func referred(output json.RawMessage) (name string, ok bool) {
	var fields map[string]json.RawMessage
	var ref outputRef
	if len(output) > 1<<10 || json.Unmarshal(output, &fields) != nil || len(fields) != 1 ||
		json.Unmarshal(output, &ref) != nil {
		return "", false
	}
	_, err := events.ParseObjectName(ref.Ref)
	return ref.Ref, err == nil
}

// output returns the output of a call in its one shape: without the questions that an answer repeats, and with the
// content of an object in place of its name.
func (s *Session) output(ctx context.Context, call string, f events.ToolCompleted) (json.RawMessage, error) {
	if f.Synthetic {
		var body struct {
			Answers json.RawMessage `json:"answers"`
		}
		if json.Unmarshal(f.Output, &body) == nil && body.Answers != nil {
			return body.Answers, nil
		}
		return f.Output, nil
	}
	name, ok := referred(f.Output)
	if !ok {
		return f.Output, nil
	}
	content, err := s.h.bus.Objects.Get(ctx, name)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, fmt.Errorf("%w: the output of call %s in %s: its content %s is gone", ErrUnknown, call, s.ref, name)
	}
	if err != nil {
		return nil, about(translate(err), "the output of call %s in %s", call, s.ref)
	}
	return content, nil
}

// Answer finds in the log how a prompt was settled, for a turn whose request names a prompt. The agent has the decision
// then: Answer gives the receipt, as [Turn.Ask] does, and no other turn is requested for the decision. A program that
// only shows decisions reads the people's view. [ErrUnknown]: the prompt is open, never existed, or was settled too
// long ago: its ending is not kept, and no turn carries it.
func (s *Session) Answer(ctx context.Context, prompt string) (Answer, error) {
	if err := s.catchUp(ctx); err != nil {
		return Answer{}, err
	}
	seq, ok := s.State().Settled(prompt)
	if !ok {
		return Answer{}, fmt.Errorf("%w: the answer to prompt %s in %s", ErrUnknown, prompt, s.ref)
	}
	return s.readAnswer(ctx, Prompt{ID: prompt}, seq)
}
