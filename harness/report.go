package harness

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of what reports cost.
const (
	usageEvery     = time.Second // reports that change little are stored at most so often
	usagePartsMin  = 100         // a change by one part in so many does not wait for that
	tokensPerWorth = 1           // without a limit to compare with: the least that counts as that part
)

// Usage is what a model counted for its last call.
type Usage struct {
	Model               string // empty: unchanged
	Tokens              events.Tokens
	InputIncludesCached bool  // Tokens.Input counts the cached tokens, too
	ContextLimit        int64 // of the model, in tokens; 0: unchanged. A limit in the session's policy goes before it
}

// usage is what a session's process has reported and what it holds back. It is guarded by the session.
type usage struct {
	stored  events.UsageReported // the last stored report, or the one about to be stored
	at      time.Time            // when
	held    *events.UsageReported
	waiting bool   // a goroutine stores the held report when it is due
	sent    *write // the newest report that was queued
}

// Usage reports what the model counted; the newest report stands. Say it as often as you like: it does not wait, what
// changes by less than one percent of the limit is stored at most once a second, and nothing is lost before the turn
// ends, or comes behind what is said after it. A report that the broker refuses, because the log is full for instance,
// is sent again after a second unless there is a newer one. So say it just before what comes of the model's answer, a
// call's start or the turn's end: then both are one commit, and compaction does not come in between. Errors are those
// of a report that cannot be: [events.ErrMalformed], or that the session is not this process's.
func (t *Turn) Usage(ctx context.Context, u Usage) error {
	f := events.UsageReported{Turn: t.id, Model: u.Model, Tokens: u.Tokens, InputIncludesCached: u.InputIncludesCached,
		ContextLimit: u.ContextLimit}
	if err := errors.Join(f.Validate(), context.Cause(ctx)); err != nil {
		return err
	}
	if held, err := t.s.holdBack(f); held || err != nil {
		return err
	}
	o, err := t.s.newWrite([]events.Fact{f})
	if err != nil {
		return err
	}
	o.report = &f
	return t.s.queueUp(true, o)
}

// holdBack keeps a report for later; held is false if it is to be stored now. It refuses a report of a session that is
// not this process's.
func (s *Session) holdBack(f events.UsageReported) (held bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ownership == apart {
		return false, about(s.why, "%s", s.ref)
	}
	u := &s.usage
	if wait := usageEvery - time.Since(u.at); wait > 0 && !s.storedAtOnce(f) {
		u.held = &f
		if !u.waiting {
			u.waiting = true
			time.AfterFunc(wait, s.releaseUsage)
		}
		return true, nil
	}
	u.stored, u.at, u.held = f, time.Now(), nil
	return false, nil
}

// storedAtOnce says whether a report tells so much that it is stored at once. The session is locked.
func (s *Session) storedAtOnce(f events.UsageReported) bool {
	was := s.usage.stored
	if f.Turn != was.Turn || f.Model != was.Model || f.ContextLimit != was.ContextLimit {
		return true
	}
	whole := f.ContextLimit
	if s.st != nil && (whole <= 0 || s.st.Policy.ContextLimit > 0) {
		whole = s.st.Limit()
	}
	if whole <= 0 {
		whole = was.Used()
	}
	change := f.Used() - was.Used()
	return max(change, -change) >= max(whole/usagePartsMin, tokensPerWorth)
}

// releaseUsage stores what was held back long enough. The report is queued before the session is unlocked, so that no
// newer one is queued before it.
func (s *Session) releaseUsage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.waiting = false
	o := s.heldUsage()
	if o == nil {
		return
	}
	s.h.buffer.force(len(o.facts), o.bytes)
	if err := s.queueUpLocked(true, o); err != nil {
		s.h.log.Debug().Str("session", s.ref.String()).AnErr("err", err).Msg("usage not reported")
	}
}

// heldUsage takes the held report, nil without one. It is appended unchanged: if the turn has ended otherwise, it does
// not count, and no call waits for it. The session is locked.
func (s *Session) heldUsage() *write {
	u := &s.usage
	if u.held == nil {
		return nil
	}
	f := *u.held
	u.stored, u.at, u.held = f, time.Now(), nil
	o, err := s.newWrite([]events.Fact{f})
	// it was validated when it was held back
	if err != nil {
		s.h.log.Debug().Str("session", s.ref.String()).AnErr("err", err).Msg("usage not reported")
		return nil
	}
	// one for each session
	o.report, o.forced = &f, true
	return o
}

// holdAgain keeps a report that the broker has refused, unless there is a newer one. The session is locked.
func (s *Session) holdAgain(o *write) {
	u := &s.usage
	if u.sent != o || u.held != nil {
		return
	}
	u.held = o.report
	if !u.waiting {
		u.waiting = true
		time.AfterFunc(usageEvery, s.releaseUsage)
	}
}

// ends says whether a write ends a turn, or this process's part in it, so that what is held back has to go before it.
func (o *write) ends() bool {
	return slices.ContainsFunc(o.facts, func(e events.Event) bool {
		switch e.Fact.(type) {
		case events.TurnCompleted, events.TurnFailed, events.TurnStopped, events.TurnStarted, events.CompactionStarted,
			events.SessionReleased, events.SessionClosed:
			return true
		}
		return false
	})
}

// Stream follows one model call while it streams: it tells that the turn is alive, and in the end whether the stream
// was whole. All methods may be called at the same time. Make it with [Turn.Stream].
type Stream struct {
	t *Turn

	mu       sync.Mutex
	output   bool
	finished bool
	finish   string
}

// Stream begins to follow a model call of the turn.
func (t *Turn) Stream() *Stream { return &Stream{t: t} }

// Delta reports a part of the output. Output says whether it was visible, or a call; a ping is not.
func (m *Stream) Delta(output bool) {
	m.mu.Lock()
	m.output = m.output || output
	m.mu.Unlock()
	m.t.Progress()
}

// Finish says that the provider's finish mark came, with its reason.
func (m *Stream) Finish(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished, m.finish = true, reason
}

// HadOutput says whether anything came that can be shown.
func (m *Stream) HadOutput() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.output
}

// Err says how the stream ended, given what reading it came to (nil or [io.EOF] is its end): nil when it was whole,
// else a [*FailureError]: stream_truncated when the finish mark is missing, whatever came before, model_refusal when a
// filter finished it, empty_output when nothing came.
func (m *Stream) Err(read error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fail := func(kind, text string) error {
		return &FailureError{Failure: events.Failure{Kind: kind, Text: text}, HadOutput: m.output}
	}
	switch {
	case m.finished && m.finish == finishFiltered:
		return fail(failure.ModelRefusal, "the provider's filter ended the answer")
	case m.finished && m.output:
		return nil
	case m.finished:
		return fail(failure.EmptyOutput, "the model ended without a word and without a call")
	case cutOff(read):
		return fail(failure.StreamTruncated, "the stream ended before its finish mark")
	}
	f, _ := failureOf(read)
	return &FailureError{Failure: f, HadOutput: m.output}
}

// failureLeaseLost is the kind of failure of what was given up because the lease was lost.
const failureLeaseLost = "lease_lost"

// finishFiltered is how providers that are compatible with OpenAI finish an answer that was filtered.
const finishFiltered = "content_filter"

// ValidateSummary says why a text will not do as the summary of a conversation: it is empty, or a bare JSON object (a
// model that was asked for a summary and answered with a call), fenced or not. The error fails the compaction as
// bad_summary.
func ValidateSummary(summary string) error {
	text := strings.TrimSpace(summary)
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		if inner, closed := strings.CutSuffix(strings.TrimPrefix(rest, "json"), "```"); closed {
			text = strings.TrimSpace(inner)
		}
	}
	switch {
	case text == "":
		return &FailureError{Failure: events.Failure{Kind: failure.BadSummary, Text: "the summary is empty"}}
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return &FailureError{Failure: events.Failure{Kind: failure.BadSummary,
			Text: "the summary is a bare JSON object"}}
	}
	return nil
}

// endTurn appends how a turn ended, unless its handler or another writer has. A turn whose handler returned because the
// lease was lost, under [LeaseRestart], has failed, once the session is claimed again; if it is not, recovery ends it.
func (k *workLoop) endTurn(ctx context.Context, t *Turn, cause, err error, leaving bool) error {
	stop, stopped := errors.AsType[*StopError](cause)
	switch {
	case errors.Is(cause, ErrEnded):
		return nil
	case stopped:
		return t.s.appendEnd(ctx, nil, events.TurnStopped{Turn: t.id, Actor: stop.Actor, Reason: stop.Reason})
	case err == nil:
		return t.s.appendEnd(ctx, nil, events.TurnCompleted{Turn: t.id})
	case errors.Is(cause, ErrLeaseLost):
		return t.s.appendEnd(ctx, nil, events.TurnFailed{Turn: t.id,
			Error: events.Failure{Kind: failureLeaseLost, Text: clip(err.Error())}})
	case leaving:
		t.s.handOnTurn(t.id)
		// the next Work runs it, or recovery ends it as interrupted
		return err
	default:
		f, hadOutput := failureOfHandler(err)
		return t.s.appendEnd(ctx, nil, events.TurnFailed{Turn: t.id, Error: f, HadOutput: hadOutput})
	}
}

// compacting is a compaction that this process does.
type compacting struct {
	id     string
	cancel context.CancelCauseFunc
}

// runs says whether a compaction is still the one that is under way.
func (c *compacting) runs(st *session.State) bool {
	return st.Compaction.Running() && st.Compaction.ID == c.id
}

// compacting returns a context that ends with the compaction, by any writer, or with this process's ownership of the
// session.
func (s *Session) compacting(id string) (context.Context, context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(s.ctx)
	s.compact = &compacting{id: id, cancel: cancel}
	s.follow()
	return ctx, cancel
}

// compact runs a taken compaction, and appends how it ended, unless another writer has: a silent one is failed after a
// while. One that is cut off because this process leaves, or lost its lease, may be tried again.
func (k *workLoop) compact(ctx context.Context, s *Session, c session.WorkCompaction) error {
	run, cancel := s.compacting(c.Compaction)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	var used int64
	err := handled(func() (err error) {
		used, err = k.w.Compact(run, s, c)
		return err
	})
	cause := context.Cause(run)
	var ends events.Fact = events.CompactionCompleted{Compaction: c.Compaction, UsedAfter: used}
	if err != nil {
		f, _ := failureOf(err)
		switch {
		case errors.Is(cause, ErrLeaseLost):
			f.Kind = failureLeaseLost
		case ctx.Err() != nil:
			f.Kind = failure.Interrupted
		}
		ends = events.CompactionFailed{Compaction: c.Compaction, Error: f}
	}
	if err = s.appendEnd(k.late, nil, ends); errors.Is(err, ErrEnded) {
		// it was taken away
		return nil
	}
	return err
}
