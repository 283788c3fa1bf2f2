package compaction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// begin starts a draft. It refuses a session that does not exist or is closed.
func begin(s *session.State, now time.Time) (*draft, error) {
	if err := s.Changeable(); err != nil {
		return nil, err
	}
	return newDraft(s, Input{Now: now}), nil
}

// Send decides about user input: it is queued, with its effects, in the same commit. The same message again is a
// success, with its place in the log; its id with other content is refused. src finds the commit of a known message.
func Send(s *session.State, w request.Send, now time.Time, src session.Source) (session.Decision, error) {
	if len(w.Content) > events.ContentBytesMax {
		return session.Decision{},
			events.TooLarge(fmt.Sprintf("the content takes %d bytes: store it as an object and send its ref",
				len(w.Content)), events.ContentBytesMax)
	}
	d, err := begin(s, now)
	if err != nil {
		return session.Decision{}, err
	}
	if seq, err := sentBefore(s, w, src); seq != 0 || err != nil {
		return session.Decision{Seq: seq}, err
	}
	ignored := s.Ignored.Count
	d.Add(events.MessageAccepted{Message: w.Message, Content: w.Content, Ref: w.Object, Synthetic: w.Synthetic,
		By: w.By})
	if d.Ignored.Count != ignored {
		return session.Decision{},
			events.Unavailable(fmt.Sprintf("%d messages wait in this session: withdraw some, or wait until they are "+
				"handed out", len(s.Queue)))
	}
	if !d.inPlaceOfQuestions(w.Message) {
		d.decide()
	}
	return session.Decision{Facts: d.Facts}, nil
}

// sentBefore returns the place in the log of a message that was sent before, 0 for a new one.
func sentBefore(s *session.State, w request.Send, src session.Source) (uint64, error) {
	var seq uint64
	stands := events.Standing{Status: "queued"}
	if i := slices.IndexFunc(s.Queue, func(m session.Message) bool { return m.ID == w.Message }); i >= 0 {
		seq, stands.At = s.Queue[i].Seq, s.Queue[i].At
	} else if e, ok := s.Ended(session.EntityMessage, w.Message); ok {
		seq, stands.At, stands.Status, stands.Reason = e.OpenedSeq, e.At, e.Outcome, e.Reason
	} else if seq = s.MessageSeq(w.Message); seq != 0 {
		// a turn has it that has ended so much since
		stands.Status = session.OutcomeDelivered
	} else {
		return 0, nil
	}
	stands.Seq = seq
	if seq != 0 {
		c, err := src(seq)
		if err != nil {
			return 0, fmt.Errorf("message %s: %w", w.Message, err)
		}
		for i := range c.Events {
			if f, ok := c.Events[i].Fact.(events.MessageAccepted); ok && f.Message == w.Message && f.Ref == w.Object &&
				sameJSON(f.Content, w.Content) {
				return seq, nil
			}
		}
	}
	return 0, events.Conflict("message "+w.Message+" was sent with another content: choose another id", stands)
}

// sameJSON reports whether two contents are equal as JSON values.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := canonicalJSON(a)
	y, errY := canonicalJSON(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonicalJSON(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	// numbers of twenty digits that differ in the last one are different
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// inPlaceOfQuestions handles a person's message that has just superseded questions whose asker is gone: their calls are
// closed, and the turn that waited continues with that message, unless something still blocks or holds it (P14). The
// agent gets this message as the answer, so it goes before the rest of the queue. A turn that its owner runs continues
// without a request, and the message waits.
func (d *draft) inPlaceOfQuestions(message string) bool {
	var first *session.Prompt
	named := ""
	for _, id := range sortedKeys(d.Prompts) {
		p := d.Prompts[id]
		if p == nil || p.Status != session.Superseded || p.Reason != message || d.Owns(p.Epoch) {
			continue
		}
		d.closeCall(p, events.Failure{Kind: events.ReasonAnswered, Text: "answered in chat"})
		if first == nil || d.Turn != nil && p.Turn == d.Turn.ID && first.Turn != p.Turn {
			first, named = p, id
		}
	}
	if first != nil && d.Displaces(first.Turn) {
		// a retry, or another turn, goes first, and the message waits in the queue
		return false
	}
	if first != nil && d.BlockedBy() == "" && len(d.WaitsFor) == 0 && !d.Runs(first.Turn) {
		next := d.Continue(named, first.Turn, message)
		next.Cause = events.CauseMessage
		d.Add(next)
	}
	return first != nil
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// closeCall ends the call of a prompt whose asker is gone, if it is still open.
func (d *draft) closeCall(p *session.Prompt, why events.Failure) {
	if d.Tools[p.Call] != nil {
		d.Add(events.ToolFailed{Call: p.Call, Error: why, Synthetic: true})
	}
}

// Withdraw decides about a person's withdrawal of a message (C18). Work that the message delayed continues in the same
// commit. If the message is an answer that has moved the queue, and another decision has moved the queue, too, the turn
// for that decision is requested.
func Withdraw(s *session.State, w request.Withdraw, now time.Time) (session.Decision, error) {
	d, err := begin(s, now)
	if err != nil {
		return session.Decision{}, err
	}
	if seq, err := withdrawnBefore(s, w); seq != 0 || err != nil {
		return session.Decision{Seq: seq}, err
	}
	was := s.Pending.Turn
	d.Add(events.MessageWithdrawn{Message: w.Message, By: w.By})
	if f, ok := d.StillRequested(was); ok {
		d.Add(f)
	}
	d.decide()
	return session.Decision{Facts: d.Facts}, nil
}

// withdrawnBefore returns the place in the log of the withdrawal of a message that was withdrawn before, 0 for one that
// waits in the queue. A message that was handed out is refused, and so is one that the session does not list.
func withdrawnBefore(s *session.State, w request.Withdraw) (uint64, error) {
	e, ended := s.Ended(session.EntityMessage, w.Message)
	seq := s.MessageSeq(w.Message)
	switch {
	case ended && e.Outcome == string(session.Withdrawn):
		return e.Seq, nil
	case ended:
		return 0, handedOut(w.Message, events.Standing{Status: e.Outcome, Reason: e.Reason, At: e.At, Seq: e.Seq})
	case slices.ContainsFunc(s.Queue, func(m session.Message) bool { return m.ID == w.Message }):
		return 0, nil
	case seq != 0:
		return 0, handedOut(w.Message, events.Standing{Status: session.OutcomeDelivered, Seq: seq})
	default:
		return 0, events.NotFound("message", w.Message)
	}
}

func handedOut(message string, stands events.Standing) error {
	return events.Conflict("message "+message+" was handed out already: stop the turn instead", stands)
}

// Compact decides about a compaction that a person requests (C16). While a turn runs it waits for that turn's end. A
// pending follow-up of an earlier compaction follows this one. A compaction that is requested already is a success, and
// so is one that was the last act: a person without a reply asks again.
func Compact(s *session.State, w request.Compact, now time.Time) (session.Decision, error) {
	d, err := begin(s, now)
	if err != nil {
		return session.Decision{}, err
	}
	if s.CompactionOpen() {
		if p := s.Pending.Compaction; p != nil {
			return session.Decision{Seq: p.Seq}, nil
		}
		return session.Decision{Seq: s.Seq}, nil
	}
	if l := s.LastCompaction; l != nil && l.Outcome == session.OutcomeCompleted && s.Turn == nil && s.Usage == nil &&
		(s.LastTurn == nil || s.LastTurn.Seq < l.Seq) {
		return session.Decision{Seq: l.Seq}, nil
	}
	if id := s.BlockedBy(); id != "" && !w.Force {
		return session.Decision{},
			events.Conflict("prompt "+id+" waits for an answer: answer, reject or dismiss it, or compact with force",
				events.Standing{Status: string(session.Waiting), Reason: "a blocking prompt is open", Prompt: id,
					Seq: s.Prompts[id].Seq, At: s.Prompts[id].Since})
	}
	d.supersede()
	followUp, message := d.FollowUp(), ""
	if followUp != "" {
		message = d.LastCompaction.Message
	}
	d.Add(d.request(events.CompactManual, followUp, message))
	return session.Decision{Facts: d.Facts}, nil
}

// supersede closes all blocking prompts. For a prompt whose asker is gone it also closes the call, and the waiting turn
// continues after the compaction.
func (d *draft) supersede() {
	for id := d.BlockedBy(); id != ""; id = d.BlockedBy() {
		p := *d.Prompts[id]
		d.Add(events.PromptSuperseded{Prompt: id})
		if d.Owns(p.Epoch) {
			continue
		}
		d.closeCall(&p, events.Failure{Kind: string(session.Superseded),
			Text: "a person had the conversation compacted instead of answering"})
		if d.BlockedBy() == "" && len(d.WaitsFor) == 0 && !d.Runs(p.Turn) && !d.Displaces(p.Turn) {
			d.Add(d.Continue(id, p.Turn, ""))
		}
	}
}

// Reasons for or against a compaction by the threshold, in addition to those of idle sessions.
const (
	WhyOff     = WhyDisabled
	WhyNoLimit = "no_limit"
	WhyBelow   = "below_threshold"
)

// Check reports whether the conversation would be compacted automatically, and changes nothing. With numbers that
// differ from the session's it checks only the threshold.
func Check(s *session.State, w request.Check, now time.Time) (request.Verdict, error) {
	if !s.Opened() {
		return request.Verdict{}, events.NotFound("session", s.Ref().String())
	}
	for field, n := range map[string]*int64{"used": w.Used, "limit": w.Limit} {
		if n != nil && *n < 0 {
			return request.Verdict{},
				&events.Refusal{Code: http.StatusBadRequest, Field: field,
					Message: fmt.Sprintf("%s %d: want tokens, 0 or more", field, *n)}
		}
	}
	s = s.Clone()
	if w.Limit != nil {
		s.Policy.ContextLimit, s.ContextLimit = *w.Limit, *w.Limit
	}
	if w.Used != nil {
		s.Usage = &session.Usage{Used: *w.Used}
	}
	v := request.Verdict{Limit: s.Limit()}
	if s.Usage != nil {
		v.Used = s.Usage.Used
	}
	if s.Compaction != nil {
		v.State = s.Compaction.State
	}
	v.Would, v.Reason = byThreshold(s)
	if w.Used == nil && w.Limit == nil && s.Held() {
		v.Would, v.Reason = false, session.CompactionHeld
	}
	if v.Would || w.Used != nil || w.Limit != nil ||
		!slices.Contains([]string{WhyOff, WhyNoUsage, WhyNoLimit, WhyBelow}, v.Reason) {
		return v, nil
	}
	if v.Reason, v.At = idleReason(s, Input{Now: now}); v.Reason == "" {
		v.Would, v.Reason = true, events.CompactIdle
	}
	return v, nil
}

// byThreshold returns what the threshold means for the next message, or for the running turn.
func byThreshold(s *session.State) (would bool, reason string) {
	reason, more := events.CompactOnSend, 0.0
	if s.Turn != nil {
		reason, more = events.CompactMidStream, midStreamMore
	}
	switch {
	case s.Closed != nil:
		return false, string(session.Closed)
	case s.CompactionOpen():
		return false, WhyRunning
	case s.Policy.CompactionThreshold >= 1:
		return false, WhyOff
	case s.Limit() <= 0:
		return false, WhyNoLimit
	case s.Usage == nil:
		return false, WhyNoUsage
	case !s.UsageOver(more):
		return false, WhyBelow
	case s.BlockedBy() != "", len(s.WaitsFor) > 0:
		return false, WhyWaiting
	case s.Turn != nil && s.Turn.Compaction != "":
		return false, WhyCompacted
	case s.Turn != nil && cannotCompact(s):
		return false, WhySuppressed
	case s.Stalled():
		return false, session.CompactionStalled
	}
	return true, reason
}
