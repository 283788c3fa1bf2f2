package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// The errors of this package. Every error has one of these, or one of pkg/events, in its chain.
var (
	// ErrFenced says another process, or recovery, took the session: stop at once and discard what is not stored. One
	// may claim it again afterwards.
	ErrFenced = errors.New("harness: fenced: the session was taken from this process")
	// ErrEnded means that the turn, call or prompt has ended already; [*EndedError] has the outcome. The stored outcome
	// is final: continue with it.
	ErrEnded = errors.New("harness: ended already")
	// ErrClosedID says the id was used for something that has ended: use a new id.
	ErrClosedID = errors.New("harness: closed id: use a new id")
	// ErrUnread reports that a person has decided about a prompt after its Ask gave up, or about the prompt of a call
	// that was adopted, and that the call would end without the decision: ask again under the same id, which returns it
	// at once, then end the call with it. A caller that has read the decision elsewhere appends prompt.delivered.
	ErrUnread = errors.New("harness: a person has decided, and no Ask has returned it: ask again under the same id")
	// ErrUnknown says a fact names a turn, call, prompt or compaction that the session does not know, or that ended too
	// long ago to be kept: open it first.
	ErrUnknown = errors.New("harness: the session knows no such thing")
	// ErrOutcomeUnknown says that a step was cut off: it may have had its effect, or a part of it. It is not run again.
	// [*UnknownOutcomeError] names it.
	ErrOutcomeUnknown = errors.New("harness: the outcome is unknown: the step was cut off, and is not run again")
	// ErrNameTaken says that the name of a step or of a question stands for something else: give each its own name.
	ErrNameTaken = errors.New("harness: the name stands for something else: give each step and question its own name")
	// ErrNotReady says that Work was called before Ready: call Ready after the sessions that this process continues are
	// open. Until then recovery leaves alone what earlier processes of the harness left.
	ErrNotReady = errors.New("harness: Ready was not called: open the sessions to continue, call Ready, then Work")
	// ErrRunning says that a step or a question of this name, or the turn, runs in this process at this moment: wait
	// for its end.
	ErrRunning = errors.New("harness: it runs already")
	// ErrLimit says the session holds as many calls, prompts or messages as it can: end some.
	ErrLimit = errors.New("harness: limit of the session reached")
	// ErrSessionClosed says the session has ended for good: open another.
	ErrSessionClosed = errors.New("harness: the session is closed")
	// ErrReleased says this process gave the session up: claim it again.
	ErrReleased = errors.New("harness: the session was released")
	// ErrOwned says another process has the session: leave it alone, or wait for its work view.
	ErrOwned = errors.New("harness: another process owns the session")
	// ErrNotFound says there is no such session: open it.
	ErrNotFound = errors.New("harness: no such session")
	// ErrLeaseLost says the lease is lost. Under [LeaseRestart] it is the cause of the contexts that are cancelled:
	// stop, the client starts over by itself. Under [LeaseStop] connect again.
	ErrLeaseLost = errors.New("harness: lease lost")
	// ErrStopped is the cause of a turn's context when a stop was requested; [*StopError] has the actor. Stop, then
	// call [Turn.Stop]. As an error of [Session.StartTurn] it means that a person stopped the session during the call
	// and that no turn has begun: call it again if the turn is to begin all the same.
	ErrStopped = errors.New("harness: asked to stop")
	// ErrPending says the context ended after the fact was handed to the broker: it will be stored unless it turns out
	// to be unlawful. Say the same again to find out.
	ErrPending = errors.New("harness: under way, outcome not awaited")
	// ErrBufferFull says too much waits to be stored: slow down until the broker is back.
	ErrBufferFull = errors.New("harness: buffer full")
	// ErrClosed means that this Harness was closed: connect again.
	ErrClosed = errors.New("harness: closed")
	// ErrUnreachable says the broker did not answer in the time given: try again.
	ErrUnreachable = errors.New("harness: broker unreachable")
	// ErrFull says the log refuses new commits: an operator must make room.
	ErrFull = errors.New("harness: log full")
	// ErrForbidden says the credentials do not allow it: an operator must change them.
	ErrForbidden = errors.New("harness: forbidden")
	// ErrNoCell says the broker has no such cell: start the services, or correct the prefix.
	ErrNoCell = errors.New("harness: no such cell")
)

// EndedError tells how something ended that the caller took for open. errors.Is finds [ErrEnded].
type EndedError struct {
	Stands session.Ending // which entity, which id, how and why it ended
}

// Error names the entity and its ending.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("%v: %s %s: %s", ErrEnded, e.Stands.Entity, e.Stands.ID, e.Stands.Outcome)
	if e.Stands.Reason != "" {
		text += " (" + e.Stands.Reason + ")"
	}
	return text
}

// Is finds [ErrEnded].
func (e *EndedError) Is(target error) bool { return target == ErrEnded }

// ReplacedError says that a newer process of an exclusive harness has taken the place of this one, which may do nothing
// more: exit. A program that starts itself again takes the sessions back, and ends the newer process. errors.Is finds
// [ErrFenced].
type ReplacedError struct {
	Harness     string // the id that both processes have
	Incarnation string // the newer one
}

// Error names the harness and the newer process.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("harness: another process of harness %q has started (incarnation %s) and takes the place "+
		"of this one, which ends", e.Harness, e.Incarnation)
}

// Is finds [ErrFenced].
func (e *ReplacedError) Is(target error) bool { return target == ErrFenced }

// StopError has the actor of a stop. errors.Is finds [ErrStopped]; and [ErrEnded], if the actor has ended the turn as
// well: then there is nothing left to append.
type StopError struct {
	Actor  string // person, compaction or stall
	By     string // the person who asked; empty for other actors, and from [Session.StartTurn]
	Reason string // why; empty if the person gave none, and from [Session.StartTurn]
	ended  error
}

// Error names the actor and the reason.
func (e *StopError) Error() string {
	text := fmt.Sprintf("%v by %s", ErrStopped, e.Actor)
	if e.By != "" {
		text += " " + e.By
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Is finds [ErrStopped].
func (e *StopError) Is(target error) bool { return target == ErrStopped }

// Unwrap is how the turn ended, if it has.
func (e *StopError) Unwrap() error { return e.ended }

// FailureError is an error that says how a turn or a compaction failed.
type FailureError struct {
	Failure   events.Failure
	HadOutput bool // of a turn
}

// Error is kind and text.
func (e *FailureError) Error() string { return "harness: " + e.Failure.Kind + ": " + e.Failure.Text }

// ProviderError is what a provider answered, or failed to. Which kind of failure that is, pkg/failure says.
type ProviderError struct {
	Raw       failure.Raw
	HadOutput bool // something had been shown already
}

// Error is the failure's kind and text.
func (e *ProviderError) Error() string {
	f := failure.Classify(e.Raw)
	return "harness: provider: " + f.Kind + ": " + f.Text
}

// failureOf returns an error as a failure. An error that does not say what it is, is classified by its words.
func failureOf(err error) (events.Failure, bool) {
	if f, ok := errors.AsType[*FailureError](err); ok {
		failed := f.Failure
		failed.Text = clip(failed.Text)
		if len(failed.Kind) > failureTextMax {
			failed.Kind = failure.Unknown
		}
		return failed, f.HadOutput
	}
	if p, ok := errors.AsType[*ProviderError](err); ok {
		return failure.Classify(p.Raw), p.HadOutput
	}
	raw := failure.Raw{Text: err.Error()}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) ||
		ok && timeout.Timeout() {
		raw.Code = failure.Network
	}
	return failure.Classify(raw), false
}

// failureOfHandler returns the error of a handler as a failure: an error of no known kind is a mistake in the agent.
func failureOfHandler(err error) (events.Failure, bool) {
	f, hadOutput := failureOf(err)
	_, named := errors.AsType[*FailureError](err)
	if _, provider := errors.AsType[*ProviderError](err); named || provider {
		return f, hadOutput
	}
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		f.Kind = failure.OutcomeUnknown
	case f.Kind == failure.Unknown:
		f.Kind = failure.HandlerError
	}
	return f, hadOutput
}

// cutOff says whether reading a stream came to an end that is no error of its own.
func cutOff(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// aboutError is an error with what it is about.
type aboutError struct {
	text string
	err  error
}

// Error returns the text.
func (e *aboutError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *aboutError) Unwrap() error { return e.err }

// about returns an error that says what it is about. The name of this package stands once, at its beginning.
func about(err error, format string, args ...any) error {
	return &aboutError{"harness: " + fmt.Sprintf(format, args...) + ": " +
		strings.ReplaceAll(err.Error(), "harness: ", ""), err}
}

// namedError is an error of the bus that has a name in this package.
type namedError struct {
	text      string
	name, err error
}

// Error returns the text.
func (e *namedError) Error() string { return e.text }

// Unwrap returns the name and the error of the bus.
func (e *namedError) Unwrap() []error { return []error{e.name, e.err} }

// translate puts our name for it in front of an error of the bus. The bus's own name for it is left out of the text.
func translate(err error) error {
	for _, pair := range [][2]error{
		{bus.ErrLeaseLost, ErrLeaseLost}, {bus.ErrForbidden, ErrForbidden}, {bus.ErrFull, ErrFull},
		{bus.ErrUnreachable, ErrUnreachable},
	} {
		if errors.Is(err, pair[0]) && !errors.Is(err, pair[1]) {
			text := strings.Replace(": "+err.Error()+": ", ": "+pair[0].Error()+": ", ": ", 1)
			return &namedError{strings.TrimSuffix(pair[1].Error()+text, ": "), pair[1], err}
		}
	}
	return err
}

// refusal turns the fold's reason for ignoring a fact into what the caller should know. st is the state that ignored
// it.
func refusal(st *session.State, why string, f events.Fact) error {
	what := fmt.Sprintf("%s %s in %s", f.Kind(), f.Subject(), st.Ref())
	switch why {
	case session.WhyClosedID, session.WhyTurnEnded:
		if e, ok := stands(st, f); ok {
			return about(&EndedError{Stands: e}, "%s", what)
		}
		return fmt.Errorf("%w: %s", ErrClosedID, what)
	case session.WhyOpen:
		return fmt.Errorf("%w: %s: it is open", ErrClosedID, what)
	case session.WhyUnknown:
		return fmt.Errorf("%w: %s", ErrUnknown, what)
	case session.WhyLimit:
		return fmt.Errorf("%w: %s", ErrLimit, what)
	case session.WhyClosed:
		return fmt.Errorf("%w: %s", ErrSessionClosed, what)
	case session.WhyNotOwner, session.WhyEpoch, session.WhySource:
		return fmt.Errorf("%w: %s", ErrFenced, what)
	default:
		return fmt.Errorf("harness: %s: not lawful: %s", what, why)
	}
}

// stands finds the ending that a fact came too late for: of the entity it ends, or of the turn or call it names.
func stands(st *session.State, f events.Fact) (session.Ending, bool) {
	if spec := events.Lookup(f.Kind()); spec != nil && spec.Ends != "" {
		return st.Ended(spec.Ends, f.Subject())
	}
	turn, call := "", ""
	switch f := f.(type) {
	case events.ToolStarted:
		if _, own := st.Ended(session.EntityTool, f.Call); own {
			return session.Ending{}, false
		}
		turn = f.Turn
	case events.PromptRequested:
		if _, own := st.Ended(session.EntityPrompt, f.Prompt); own {
			return session.Ending{}, false
		}
		turn, call = f.Turn, f.Call
	case events.PromptDelivered:
		return st.Ended(session.EntityPrompt, f.Prompt)
	case events.PromptUnattended:
		return st.Ended(session.EntityPrompt, f.Prompt)
	case events.PromptAttended:
		return st.Ended(session.EntityPrompt, f.Prompt)
	}
	if e, ok := st.Ended(session.EntityTurn, turn); ok && turn != "" {
		return e, true
	}
	return st.Ended(session.EntityTool, call)
}
