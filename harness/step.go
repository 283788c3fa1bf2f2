package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Kinds of what [Step] and [Turn.AskOnce] name, as part of the ids that are derived.
const (
	nameOfStep     = "step"
	nameOfQuestion = "ask"
)

const (
	namePrefixMax  = 60            // bytes of a name that its ids show
	failureTextMax = 2 << 10       // bytes of the text of a step's failure
	failureStep    = "step_failed" // the kind of failure of a step whose function returned an error
)

// Reasons of the end of a step whose outcome is unknown.
const (
	reasonCutOff   = "cut-off"         // its context ended while the function ran
	reasonPanic    = "panic"           // the function did not return
	reasonNoResult = "result-not-kept" // the function returned, and its result cannot be stored
)

// textNotRun is the text of the failure of a step whose function did not run.
const textNotRun = "not run: its context ended before its beginning was known to be stored"

// StepOption changes how [Step] treats a step.
type StepOption func(*stepOptions)

type stepOptions struct {
	idempotent bool
	input      any
}

// Idempotent declares that running a step twice has the same effect as running it once. A step that was cut off is
// then run again; without this option [Step] returns [ErrOutcomeUnknown] for it.
func Idempotent() StepOption { return func(o *stepOptions) { o.idempotent = true } }

// StepInput stores what a step works on, encoded as JSON, and has [Step] compare it: under the same name, another input
// is [ErrNameTaken]. It protects a loop that uses one name for several inputs.
func StepInput(v any) StepOption { return func(o *stepOptions) { o.input = v } }

// UnknownOutcomeError names a step that was cut off. errors.Is finds [ErrOutcomeUnknown].
type UnknownOutcomeError struct {
	Step   string // its name
	Call   string // the call that has it in the log
	Reason string // owner-lost: its process died; cut-off: its context ended; panic; result-not-kept; …
}

// Error names the step and why its outcome is unknown.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("%v: step %s (call %s): %s", ErrOutcomeUnknown, e.Step, e.Call, e.Reason)
}

// Is finds [ErrOutcomeUnknown].
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrOutcomeUnknown }

// Step runs fn and keeps its result in the log under a name. Later calls with the same name, for the same message,
// return the kept result and do not run fn: in this turn, and in each turn that continues it after a death of the
// process, a failure, a compaction or an answer. T is encoded as JSON, also the first time.
//
// The name stands for one thing: in a loop, give each pass a name of its own, or use [StepInput]. A new message has all
// names to itself.
//
// If fn returns an error, Step returns that error and keeps no result: the next call runs fn again. If fn was cut off
// (the process died, ctx ended before fn returned, fn panicked), it may have had its effect. Then Step returns
// [ErrOutcomeUnknown], now and later, and does not run fn again, unless the step is declared [Idempotent]. Find out
// what has become of it, or ask a person with [Turn.AskOnce], and continue with a step of another name:
//
//	out, err := harness.Step(ctx, turn, "deploy", deploy)
//	if errors.Is(err, harness.ErrOutcomeUnknown) {
//		out, err = harness.Step(ctx, turn, "check-deployment", status)
//	}
//
// The context of fn ends with ctx and with the turn. If ctx ends before the beginning of the step is known to be
// stored, the error is [ErrPending]: fn did not run, and the next call runs it. If the broker refuses to store that fn
// did not run, because the log is full for instance, it is sent again, and the next call in this process runs fn all
// the same. In another process the step is [ErrOutcomeUnknown] until that is stored. If fn ran, ctx has ended, and the
// broker does not store the result within 10 s, the error is [ErrPending], too: the next call in this process returns
// the result. If the process dies before the result is stored, the outcome is unknown.
//
// Errors besides those of fn: [ErrOutcomeUnknown], [ErrNameTaken], [ErrRunning], and those of [Turn.Tool]. If the
// broker refuses the result, because the log is full for instance, the error says so, and the result is sent again:
// once it is stored, the next call in this process returns it. Until then the next call sends it, too, and returns the
// broker's error again: it does not run fn, also if the step is [Idempotent].
func Step[T any](ctx context.Context, t *Turn, name string, fn func(ctx context.Context) (T, error),
	options ...StepOption) (T, error) {
	var result, none T
	if _, err := json.Marshal(none); err != nil {
		return none, fmt.Errorf("harness: step %s: %w: its result cannot be stored: %w", name, events.ErrMalformed, err)
	}
	raw, err := t.step(ctx, name, options, func(ctx context.Context) (json.RawMessage, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, &notKeptError{err}
		}
		return raw, nil
	})
	if err != nil {
		return none, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return none, fmt.Errorf("harness: step %s: %w: the kept result does not fit %T: %w", name, events.ErrMalformed,
			result, err)
	}
	return result, nil
}

// notKeptError says that a function returned a result that cannot be stored.
type notKeptError struct{ err error }

// Error implements error.
func (e *notKeptError) Error() string {
	return "harness: the result cannot be stored: " + e.err.Error()
}

// Unwrap returns why.
func (e *notKeptError) Unwrap() error { return e.err }

// clip shortens a text that an event shows.
func clip(text string) string {
	if len(text) <= failureTextMax {
		return text
	}
	return strings.ToValidUTF8(text[:failureTextMax], "") + "…"
}

// begin notes that a step or a question runs, and refuses it while it runs already.
func (t *Turn) begin(kind, name string) (release func(), err error) {
	if name == "" {
		return nil, fmt.Errorf("harness: turn %s in %s: %w: a %s needs a name", t.id, t.s.ref, events.ErrMalformed,
			kind)
	}
	key := kind + " " + name
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.names[key] {
		return nil, fmt.Errorf("%w: %s of turn %s in %s", ErrRunning, key, t.id, t.s.ref)
	}
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[key] = true
	return func() {
		t.s.mu.Lock()
		defer t.s.mu.Unlock()
		delete(t.names, key)
	}, nil
}

// within returns a context that ends with ctx and with the turn.
func (t *Turn) within(ctx context.Context) (context.Context, context.CancelFunc) {
	turn := t.Context()
	run, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(turn, func() { cancel(context.Cause(turn)) })
	return run, func() { stop(); cancel(nil) }
}

// running returns an error if the turn has ended, or is not this process's, or if the session was claimed after it was
// looked at under epoch. The session is locked.
func (t *Turn) running(st *session.State, epoch uint64) error {
	switch {
	case st.Turn == nil || st.Turn.ID != t.id:
		return about(t.s.endOf(session.EntityTurn, t.id), "turn %s in %s", t.id, t.s.ref)
	case st.Epoch != epoch:
		return errChanged
	}
	return nil
}

// errChanged says that the session has changed since it was looked at.
var errChanged = errors.New("harness: the session has changed: look again")

// step is [Step] on JSON.
func (t *Turn) step(ctx context.Context, name string, options []StepOption,
	run func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	var o stepOptions
	for _, option := range options {
		option(&o)
	}
	input, err := encode(o.input)
	if err != nil {
		return nil, about(err, "step %s: input", name)
	}
	release, err := t.begin(nameOfStep, name)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := t.within(ctx)
	defer cancel()
	for {
		call, result, err := t.stepBegins(ctx, name, o.idempotent, input)
		switch {
		case errors.Is(err, errChanged):
			continue
		case err != nil || call == "":
			return result, err
		}
		return t.runStep(ctx, name, call, run)
	}
}

// stepBegins returns the kept result of a step, or stores that the step begins and returns its call. A call
// that an earlier process left open ends with an unknown outcome.
func (t *Turn) stepBegins(ctx context.Context, name string, idempotent bool,
	input json.RawMessage) (call string, result json.RawMessage, err error) {
	var facts []events.Fact
	var unknown error
	for n := 1; ; n++ {
		id, was, err := t.find(ctx, nameOfStep, name, n)
		if err != nil {
			return "", nil, err
		}
		if (was.open || was.ended) && !was.older {
			if err := t.sameInput(ctx, name, id, input, was.asked); err != nil {
				return "", nil, err
			}
		}
		switch {
		case was.older:
		case was.open && t.s.knowsNotRun(id):
			// the broker has not stored it yet
			facts = append(facts, notRunEnd(id))
		case was.open && t.s.resultOf(id) != nil:
			if err := t.sendResult(ctx, name, id); err != nil && !errors.Is(err, ErrEnded) {
				return "", nil, err
			}
			return "", nil, errChanged
		case was.open:
			facts = append(facts, unknownEnd(id, events.ReasonOwnerLost))
			if !idempotent {
				return "", nil, t.cutOff(ctx, name, id, was.epoch, facts)
			}
		case was.ended:
			r, err := t.s.resultAt(ctx, id, was.Ending)
			if err != nil {
				return "", nil, err
			}
			if r.Outcome == session.OutcomeCompleted && !r.Synthetic {
				return "", r.Output, nil
			}
			if unknown == nil {
				unknown = unknownOf(name, id, r)
			}
		case unknown != nil && !idempotent:
			return "", nil, unknown
		default:
			cut := slices.Clone(facts)
			facts = append(facts, events.ToolStarted{Call: id, Turn: t.id, Name: name, Input: input})
			return id, nil, t.startCall(ctx, id, t.stillAbsent(id, was.epoch, cut), facts)
		}
	}
}

// startCall stores the start of a step's call. The function does not run if ctx ends before the start is known to be
// stored. The call is then ended, so that the next call of the step runs the function.
func (t *Turn) startCall(ctx context.Context, call string, check func(*session.State) (bool, error),
	facts []events.Fact) error {
	start, err := t.s.newWrite(facts)
	if err != nil {
		return err
	}
	start.check = check
	if err = t.s.do(ctx, start); errors.Is(err, ErrPending) {
		t.notRun(call, start)
	}
	return err
}

// notRun ends the call that start begins, and whose function does not run. If start is refused, a later call of the
// step may begin a call with the same id, and the function of that call runs: it is not ended.
func (t *Turn) notRun(call string, start *write) {
	t.s.mu.Lock()
	maps.DeleteFunc(t.s.unrun, func(id string, start *write) bool {
		return start.refused() || start.stored() && t.s.st.Tools[id] == nil
	})
	t.s.unrun[call] = start
	t.s.mu.Unlock()
	t.s.appendLater(notRunEnd(call), func(st *session.State) bool { return st.Tools[call] != nil && !start.refused() })
}

// knowsNotRun reports whether this process knows that the function of a step's open call did not run: the end that says
// so can be refused by the broker, and is sent again.
func (s *Session) knowsNotRun(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.unrun[call]
	return start != nil && !start.refused()
}

// notRunEnd is the end of a step's call whose function did not run.
func notRunEnd(call string) events.Fact {
	return events.ToolFailed{Call: call, Error: events.Failure{Kind: failureStep, Text: textNotRun}}
}

// unknownEnd is the end of a step of which nothing says whether it had its effect.
func unknownEnd(call, reason string) events.Fact {
	return events.ToolFailed{Call: call, Error: events.Failure{Kind: failure.OutcomeUnknown, Text: reason}}
}

// unknownOf returns the error for a step that ended without a result, or nil if its function said that it failed.
func unknownOf(name, call string, r Result) error {
	e := &UnknownOutcomeError{Step: name, Call: call, Reason: orText(r.Reason, r.Outcome)}
	switch {
	case r.Error == nil || r.Synthetic:
	case r.Error.Kind == failure.OutcomeUnknown:
		e.Reason = r.Error.Text
	default:
		return nil
	}
	return e
}

// stillAbsent returns the check of a write that begins a call: nothing was stored under its id since the session was
// looked at. cut are the ends of earlier calls of the step: these are still open, recovery was not first.
func (t *Turn) stillAbsent(call string, epoch uint64, cut []events.Fact) func(*session.State) (bool, error) {
	return func(st *session.State) (bool, error) {
		if err := t.running(st, epoch); err != nil {
			return false, err
		}
		for _, f := range cut {
			if end, ok := f.(events.ToolFailed); ok && st.Tools[end.Call] == nil {
				return false, errChanged
			}
		}
		if _, ended := st.Ended(session.EntityTool, call); ended || st.Tools[call] != nil {
			return false, errChanged
		}
		return false, nil
	}
}

// cutOff ends the call of a step that an earlier process left open, and returns that the outcome is unknown.
func (t *Turn) cutOff(ctx context.Context, name, call string, epoch uint64, facts []events.Fact) error {
	err := t.s.append(ctx, func(st *session.State) (bool, error) {
		if err := t.running(st, epoch); err != nil {
			return false, err
		}
		if st.Tools[call] == nil {
			// recovery was first
			return false, errChanged
		}
		return false, nil
	}, facts...)
	if err != nil {
		return err
	}
	return &UnknownOutcomeError{Step: name, Call: call, Reason: events.ReasonOwnerLost}
}

// sameInput compares the input of a step with the stored one.
func (t *Turn) sameInput(ctx context.Context, name, call string, input json.RawMessage, started uint64) error {
	if input == nil {
		return nil
	}
	seq, err := t.startOf(ctx, call, started)
	if err != nil || seq == 0 {
		return err
	}
	c, err := t.s.h.bus.Log.Commit(ctx, seq)
	if err != nil {
		return about(translate(err), "step %s in %s", name, t.s.ref)
	}
	for i := range c.Events {
		f, ok := c.Events[i].Fact.(events.ToolStarted)
		if ok && f.Call == call && f.Input != nil && !sameJSON(f.Input, input) {
			return fmt.Errorf("%w: step %s in %s was run with the input %.100s, and this is %.100s", ErrNameTaken, name,
				t.s.ref, f.Input, input)
		}
	}
	return nil
}

// sameJSON compares two values as JSON.
func sameJSON(a, b json.RawMessage) bool {
	var one, other bytes.Buffer
	if json.Compact(&one, a) != nil || json.Compact(&other, b) != nil {
		return false
	}
	return bytes.Equal(one.Bytes(), other.Bytes())
}

// runStep runs the function of a step whose beginning is stored, and stores how it ended. A function that does not
// return (it panics, or ends its goroutine) leaves an unknown outcome.
func (t *Turn) runStep(ctx context.Context, name, call string,
	run func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	returned := false
	defer func() {
		if !returned {
			if err := t.stepEnds(ctx, unknownEnd(call, reasonPanic)); err != nil {
				t.s.h.log.Warn().Str("session", t.s.ref.String()).Str("id", call).AnErr("err",
					err).Msg("the end of a step that panics is not stored")
			}
		}
	}()
	result, err := run(ctx)
	returned = true
	if err == nil {
		return result, t.keep(ctx, name, call, result)
	}
	var end events.Fact = events.ToolFailed{Call: call,
		Error: events.Failure{Kind: failureStep, Text: clip(err.Error())}}
	_, lost := errors.AsType[*notKeptError](err)
	switch {
	case lost:
		end = unknownEnd(call, reasonNoResult)
		err = errors.Join(err, &UnknownOutcomeError{Step: name, Call: call, Reason: reasonNoResult})
	case ctx.Err() != nil:
		end = unknownEnd(call, reasonCutOff)
		err = errors.Join(err, &UnknownOutcomeError{Step: name, Call: call, Reason: reasonCutOff})
	}
	if stored := t.stepEnds(ctx, end); stored != nil && !errors.Is(stored, ErrEnded) {
		err = errors.Join(err, stored)
	}
	return nil, err
}

// ranStep is the result of a step whose function has run. This process has it until it is stored.
type ranStep struct {
	result json.RawMessage
	queued bool // it was sent, and is sent again as long as this process has the session
}

// resultOf returns the result of a call that is not known to be stored, nil without one.
func (s *Session) resultOf(call string) *ranStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[call]
}

// keep stores the result of a step. If that fails, this process has the result: the function has had its effect.
func (t *Turn) keep(ctx context.Context, name, call string, result json.RawMessage) error {
	t.s.mu.Lock()
	maps.DeleteFunc(t.s.results, func(id string, _ *ranStep) bool { return t.s.st.Tools[id] == nil })
	t.s.results[call] = &ranStep{result: result}
	t.s.mu.Unlock()
	return t.sendResult(ctx, name, call)
}

// sendResult stores the result of a step that this process has. If the broker refuses it, it is tried again as long as
// this process has the session. A result that can never be stored leaves an unknown outcome.
func (t *Turn) sendResult(ctx context.Context, name, call string) error {
	late, done := t.s.h.lastWord(ctx)
	defer done()
	r := t.s.resultOf(call)
	if r == nil {
		return nil
	}
	output, err := t.s.outputOf(late, r.result)
	_, refused := errors.AsType[*events.Refusal](err)
	switch {
	case refused:
		err = errors.Join(err, t.stepEnds(ctx, unknownEnd(call, reasonNoResult)))
	case err == nil:
		err = t.sendOutput(late, call, r, events.ToolCompleted{Call: call, Output: output})
	}
	if err == nil || refused || errors.Is(err, ErrEnded) || errors.Is(err, events.ErrMalformed) {
		t.s.mu.Lock()
		delete(t.s.results, call)
		t.s.mu.Unlock()
	}
	if err != nil {
		return about(translate(err), "step %s in %s: it ran, and its result is not kept", name, t.s.ref)
	}
	return nil
}

// sendOutput sends the end of a step's call. The first one that is queued is sent again when it is refused; another one
// is the attempt of its caller only.
func (t *Turn) sendOutput(ctx context.Context, call string, r *ranStep, end events.Fact) error {
	t.s.mu.Lock()
	again := r.queued
	r.queued = true
	t.s.mu.Unlock()
	if again {
		return t.s.append(ctx, func(st *session.State) (bool, error) { return st.Tools[call] == nil, nil }, end)
	}
	return t.s.appendEnd(ctx, nil, end)
}

// stepEnds stores the end of a step, also if its context has ended.
func (t *Turn) stepEnds(ctx context.Context, end events.Fact) error {
	late, done := t.s.h.lastWord(ctx)
	defer done()
	return t.s.appendLast(late, nil, end)
}

// lastWord returns a context for what is said at the end: it lives while ctx does, and for a while after that.
func (h *Harness) lastWord(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(h.ctx)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastWordMaxS*time.Second, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(late, func() { timer.Stop() })
	})
	return late, func() { stop(); cancel(nil) }
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// nameID derives the id of the call of a step, or of a question and its call, from what the turn is about and from the
// name. n counts the attempts of a step that failed, and of a question that ended without a decision.
func nameID(kind, name, about string, n int) string {
	readable := []byte(name)
	for i, b := range readable {
		if b != '-' && b != '_' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			readable[i] = '-'
		}
	}
	return events.DeriveID(string(readable[:min(len(readable), namePrefixMax)]), kind, about, name, strconv.Itoa(n))
}
