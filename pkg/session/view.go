package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// Source finds the commits that a document points to, by sequence. It fails when one is not there any more.
type Source func(seq uint64) (*events.Commit, error)

// BlockedTool is the call that a prompt belongs to.
type BlockedTool struct {
	Call string `json:"call"`
	Name string `json:"name,omitempty"`
}

// Blocker is one prompt as people see it: state, not a notification. The decision (Status) and whether the harness
// has it (DeliveredAt) are separate fields.
type Blocker struct {
	Harness     string            `json:"harness"`
	Session     string            `json:"session"`
	Root        string            `json:"root"`
	Prompt      string            `json:"prompt"`
	Kind        events.PromptKind `json:"kind"`
	Title       string            `json:"title"`
	Questions   []events.Question `json:"questions,omitempty"`
	Status      Status            `json:"status"`
	Reason      string            `json:"reason,omitempty"`
	ArmedAt     time.Time         `json:"armed_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	ClosedAt    time.Time         `json:"closed_at,omitzero"`
	DeliveredAt time.Time         `json:"delivered_at,omitzero"`
	Owned       bool              `json:"owned"`
	OnOwnerLoss events.OwnerLoss  `json:"on_owner_loss"`
	Blocking    bool              `json:"blocking"`
	Deadline    *time.Time        `json:"deadline,omitempty"`
	Tool        *BlockedTool      `json:"tool,omitempty"`
	Turn        string            `json:"turn,omitempty"`
	Answers     []events.Answer   `json:"answers,omitempty"`
	By          string            `json:"by,omitempty"`
	Seq         uint64            `json:"seq"`
}

// Awaits reports whether the prompt waits for a person.
func (b *Blocker) Awaits() bool { return b.Status == Awaiting }

// promptRequest finds the newest body of a prompt in the commit that the document points to: the last one under the
// epoch it was opened under, before anything there ended the prompt. A prompt may have been adopted with its turn or
// its call, without a new body: then the epoch is a later one.
func promptRequest(src Source, seq, epoch uint64, prompt string) (events.PromptRequested, error) {
	var found events.PromptRequested
	c, err := src(seq)
	if err != nil {
		return found, fmt.Errorf("the request of prompt %s: %w", prompt, err)
	}
	opened := uint64(0)
	for i := range c.Events {
		e := &c.Events[i]
		if e.Fact == nil || e.Epoch > epoch || e.Epoch < opened || e.Subject != prompt {
			continue
		}
		if f, ok := e.Fact.(events.PromptRequested); ok {
			found, opened = f, e.Epoch
		} else if spec := events.Lookup(e.Kind); spec != nil && spec.Ends == EntityPrompt && spec.May(c.Writer) &&
			found.Prompt != "" {
			break
		}
	}
	return found, nil
}

// settlement is what was said when a prompt was settled.
type settlement struct {
	answers []events.Answer
	text    string
	by      string
}

// reason returns the reason of a decision that a document has, or else the text of a rejection: see
// [State.forgetUndelivered].
func (s settlement) reason(kept string) string { return orElse(kept, cut(s.text, TextBytesMax)) }

// settled finds what a person said when a prompt came to this status; nothing when it was no person.
func settled(src Source, seq uint64, prompt string, to Status) (settlement, error) {
	var none settlement
	if to != Answered && to != Rejected && to != Dismissed {
		return none, nil
	}
	c, err := src(seq)
	if err != nil {
		return none, fmt.Errorf("the settlement of prompt %s: %w", prompt, err)
	}
	for i := range c.Events {
		if c.Events[i].Subject != prompt {
			continue
		}
		switch f := c.Events[i].Fact.(type) {
		case events.PromptAnswered:
			if to == Answered {
				return settlement{answers: f.Answers, by: f.By}, nil
			}
		case events.PromptRejected:
			if to == Rejected {
				return settlement{text: f.Text, by: f.By}, nil
			}
		case events.PromptDismissed:
			if to == Dismissed {
				return settlement{by: f.By}, nil
			}
		}
	}
	return none, nil
}

// Blocker is the people's view of one prompt: awaiting, settled, or among the recent endings. It is nil when the
// session knows no such prompt (any more). Owned is about prompts that still wait for a person or for the harness.
func (s *State) Blocker(prompt string, src Source) (*Blocker, error) {
	b := &Blocker{Harness: s.Harness, Session: s.Session, Root: s.Root, Prompt: prompt}
	p, e := s.Prompts[prompt], s.ended(EntityPrompt, prompt)
	var tool BlockedTool
	var opened, epoch uint64
	switch {
	case p != nil:
		opened, epoch, tool = p.Seq, p.Epoch, BlockedTool{Call: p.Call, Name: p.Tool}
		b.Kind, b.Status, b.Reason, b.ArmedAt, b.UpdatedAt, b.Owned = p.Kind, p.Status, p.Reason, p.Since, p.UpdatedAt,
			s.Owned
		b.Seq = max(p.Seq, p.SettledSeq, p.ReopenedSeq)
		if !p.Awaits() {
			b.ClosedAt = p.UpdatedAt
		}
	case e != nil:
		opened, epoch, tool = e.OpenedSeq, e.Epoch, BlockedTool{Call: e.Call, Name: e.Tool}
		b.Kind, b.Status, b.Reason, b.ArmedAt, b.UpdatedAt = events.PromptKind(e.Name), Status(e.Outcome), e.Reason,
			e.Since, e.At
		b.Seq, b.ClosedAt, b.DeliveredAt = e.Seq, e.At, e.DeliveredAt
	default:
		return nil, nil
	}
	req, err := promptRequest(src, opened, epoch, prompt)
	if err != nil {
		return nil, err
	}
	b.Title, b.Questions, b.OnOwnerLoss, b.Blocking, b.Turn, b.Deadline = cut(req.Title, TitleBytesMax), req.Asked(),
		req.Loss(), req.Blocks(), req.Turn, deadlineOf(req.Deadline)
	if tool.Call != "" {
		b.Tool = &tool
	}
	found, err := settled(src, b.Seq, prompt, b.Status)
	b.Answers, b.By, b.Reason = found.answers, found.by, found.reason(b.Reason)
	return b, err
}

// UnknownOutcomes returns the ids of the calls among the recent endings of which nothing says whether they had their
// effect: recovery, the end of the turn or that of the session closed them, or the harness said that the step was cut
// off. A call whose result came late is not among them. A document has the harness's text and not its kind, so the
// ends of failed calls are read, one commit each. With an error about those that cannot be read it returns all
// others.
func (s *State) UnknownOutcomes(src Source) (map[string]bool, error) {
	unknown := map[string]bool{}
	var bad error
	for i := range s.Recent {
		e := &s.Recent[i]
		switch {
		case e.Entity != EntityTool || e.Outcome == OutcomeCompleted || e.Late != nil:
		case e.Outcome != OutcomeFailed:
			unknown[e.ID] = true
		default:
			cut, err := cutOff(src, e)
			bad = errors.Join(bad, err)
			if cut {
				unknown[e.ID] = true
			}
		}
	}
	return unknown, bad
}

// OutcomeUnknown is shown in place of the outcome of a call of [State.UnknownOutcomes]. No document that is stored has
// it.
const OutcomeUnknown = "unknown"

// WithUnknown returns the document as people see it, with the outcome [OutcomeUnknown] for these calls. It shares all
// else with the document.
func (s *State) WithUnknown(calls map[string]bool) *State {
	shown := *s
	shown.Recent = slices.Clone(s.Recent)
	for i := range shown.Recent {
		if e := &shown.Recent[i]; e.Entity == EntityTool && calls[e.ID] {
			e.Outcome = OutcomeUnknown
		}
	}
	return &shown
}

// cutOff reports whether the fact that ended a call says that its step was cut off.
func cutOff(src Source, e *Ending) (bool, error) {
	c, err := src(e.Seq)
	if err != nil {
		return false, fmt.Errorf("the end of call %s: %w", e.ID, err)
	}
	for i := range c.Events {
		if f, ok := c.Events[i].Fact.(events.ToolFailed); ok && f.Call == e.ID {
			return f.Error.Kind == failure.OutcomeUnknown, nil
		}
	}
	return false, nil
}

// BlockerKey is where the people's view of a prompt is kept.
func (s *State) BlockerKey(prompt string) string {
	return events.BlockerKey(s.Harness, s.Root, s.Session, prompt)
}

// BlockerPrompts are the prompts that have an entry in the people's view of this document, sorted: all that await or
// are undelivered, and those that ended at or after this instant.
func (s *State) BlockerPrompts(endedSince time.Time) []string {
	ids := map[string]bool{}
	for id := range s.Prompts {
		ids[id] = true
	}
	for i := range s.Recent {
		if e := &s.Recent[i]; e.Entity == EntityPrompt && !e.At.Before(endedSince) {
			ids[e.ID] = true
		}
	}
	return sortedKeys(ids)
}

// BlockersChanged are the prompts whose entry in the people's view may differ between two documents of a session;
// before is nil for a session that had none. An entry whose [State.Blocker] is nil now is to be removed: the prompt was
// closed with so much else that it is no longer among the recent endings.
func BlockersChanged(before, after *State) []string {
	if before == nil {
		return after.BlockerPrompts(time.Time{})
	}
	ids := map[string]bool{}
	for id, p := range after.Prompts {
		if q := before.Prompts[id]; q == nil || *q != *p && !samePrompt(q, p) || before.Owned != after.Owned {
			ids[id] = true
		}
	}
	for i := range after.Recent {
		e := &after.Recent[i]
		if e.Entity != EntityPrompt {
			continue
		}
		if q := before.ended(EntityPrompt, e.ID); q == nil || q.Seq != e.Seq || !q.DeliveredAt.Equal(e.DeliveredAt) ||
			q.Reason != e.Reason {
			ids[e.ID] = true
		}
	}
	for id := range before.Prompts {
		if after.Prompts[id] == nil {
			ids[id] = true
		}
	}
	return sortedKeys(ids)
}

// samePrompt compares prompts whose deadlines may be equal and kept apart.
func samePrompt(a, b *Prompt) bool {
	x, y := *a, *b
	same := (x.Deadline == nil) == (y.Deadline == nil) && (x.Deadline == nil || x.Deadline.Equal(*y.Deadline))
	same = same && x.Since.Equal(y.Since) && x.UpdatedAt.Equal(y.UpdatedAt)
	x.Deadline, y.Deadline, x.Since, y.Since, x.UpdatedAt, y.UpdatedAt = nil, nil, time.Time{}, time.Time{},
		time.Time{}, time.Time{}
	return same && x == y
}

// WorkStop is a stop that the harness shall carry out, or confirm.
type WorkStop struct {
	Turn   string `json:"turn"`
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// WorkPrompt is what was decided about a prompt of the harness.
type WorkPrompt struct {
	Status  Status          `json:"status"`
	Answers []events.Answer `json:"answers,omitempty"`
	Text    string          `json:"text,omitempty"`
	By      string          `json:"by,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// WorkCompaction is a compaction that the harness shall do.
type WorkCompaction struct {
	Compaction string `json:"compaction"`
	Reason     string `json:"reason"`
	Message    string `json:"message,omitempty"`
}

// WorkTurn is a turn that the harness shall start. A turn says what it is about: Message or Prompts is set for every
// cause, also both.
//
//	cause       OfTurn            Message, Content        Prompts            Compaction
//	message     the turn that     set                     if any wait        –
//	            asked, if the
//	            message superseded
//	            its question
//	follow-up   if it continues   of the held message,    if any wait        set
//	            a turn            or of that turn
//	retry       the failed turn   of that turn            all of that turn   –
//	resume      the turn that     of that turn            all of that turn   –
//	            was interrupted
//	answer      the turn that     of that turn; empty     set; Prompt is the  –
//	            asked, if any     if it has completed     one that caused it
//
// A turn that an agent began without a message has none, and neither has what continues it.
type WorkTurn struct {
	Turn  string       `json:"turn"`
	Cause events.Cause `json:"cause"`
	// OfTurn is the turn that this one continues, or whose question was decided.
	OfTurn string `json:"of_turn,omitempty"`
	// Message is the user input that the turn is about. Every attempt of a turn names the same.
	Message string `json:"message,omitempty"`
	// Content is the content of Message; empty if Ref has it, or if the message was taken too long ago to be kept.
	Content json.RawMessage `json:"content,omitempty"`
	// Ref is the object with content that is too large for an event.
	Ref string `json:"ref,omitempty"`
	// Synthetic: no person wrote the message.
	Synthetic bool `json:"synthetic,omitempty"`
	// Options make a retry the same request: those of the first turn for each that continues it; empty for a new
	// message that continues no turn.
	Options json.RawMessage `json:"options,omitempty"`
	// Attempt is the number of the retry or resume since the last turn that completed, from 1. Any other turn has 1,
	// too: Cause tells a first attempt from its first retry.
	Attempt int `json:"attempt"`
	// Prompt is the decision that called for the turn, else the first of Prompts.
	Prompt string `json:"prompt,omitempty"`
	// Prompts are the decisions that this turn brings to the agent, oldest first.
	Prompts []TurnPrompt `json:"prompts,omitempty"`
	// Compaction is the compaction that the turn follows.
	Compaction string `json:"compaction,omitempty"`
}

// TurnPrompt is one settled prompt that a turn brings to the agent: the decision itself, and where it stands in the
// log. In a view whose decisions take more than [WorkBytesMax] the last ones are Omitted: read them at Seq.
type TurnPrompt struct {
	Prompt string `json:"prompt"`
	Seq    uint64 `json:"seq"`
	Title  string `json:"title,omitempty"`
	// of the prompt: the process may not be the one that asked
	Questions []events.Question `json:"questions,omitempty"`
	WorkPrompt
	Omitted bool `json:"omitted,omitempty"`
}

// Work is all that a harness has been asked in a session and has not taken, to be handled in the order of the fields:
// stop, prompts, compaction, turn.
type Work struct {
	Harness    string                 `json:"harness"`
	Session    string                 `json:"session"`
	Epoch      uint64                 `json:"epoch"`
	Owned      bool                   `json:"owned"`
	Seq        uint64                 `json:"seq"`
	Stop       *WorkStop              `json:"stop,omitempty"`
	Prompts    map[string]*WorkPrompt `json:"prompts,omitempty"`
	Compaction *WorkCompaction        `json:"compaction,omitempty"`
	Turn       *WorkTurn              `json:"turn,omitempty"`
}

// owes reports whether the harness still lacks the decision about a prompt: one of the present epoch, settled and not
// delivered.
func (s *State) owes(p *Prompt) bool {
	return s.Owns(p.Epoch) && !p.Awaits()
}

// HasWork reports whether [State.Work] has anything in it.
func (s *State) HasWork() bool {
	if s.Pending != (Pending{}) {
		return true
	}
	for _, p := range s.Prompts {
		if s.owes(p) {
			return true
		}
	}
	return false
}

// Work is the harness's view: nil when nothing is left.
func (s *State) Work(src Source) (*Work, error) { return s.work(src, WorkBytesMax) }

// WorkWhole is [State.Work] with every decision, however many bytes they take: for a process that reads the log itself.
func (s *State) WorkWhole(src Source) (*Work, error) { return s.work(src, math.MaxInt) }

func (s *State) work(src Source, bytesMax int) (*Work, error) {
	if !s.HasWork() {
		return nil, nil
	}
	w := &Work{Harness: s.Harness, Session: s.Session, Epoch: s.Epoch, Owned: s.Owned, Seq: s.Seq}
	if p := s.Pending.Stop; p != nil {
		w.Stop = &WorkStop{Turn: p.Turn, Actor: p.Actor, Reason: p.Reason}
	}
	if p := s.Pending.Compaction; p != nil {
		w.Compaction = &WorkCompaction{Compaction: p.ID, Reason: p.Reason, Message: p.Message}
	}
	size, err := s.workPrompts(w, src, bytesMax)
	if err != nil {
		return nil, err
	}
	if w.Turn, err = s.workTurn(src); err != nil || w.Turn == nil {
		return w, err
	}
	list := s.brings()
	// the harness has it, or a person has taken it back
	if named := w.Turn.Prompt; named != "" && !has(list, named) {
		w.Turn.Prompt = ""
		if len(list) > 0 {
			w.Turn.Prompt = list[0].Prompt
		}
	}
	return w, w.Turn.readPrompts(src, list, bytesMax-size)
}

// WorkOpen returns the open turn as a harness is handed it: with the content of its message, and the decisions that it
// was given. Nil without an open turn. A decision about a question of the turn itself that has no receipt is left out:
// it is returned to the process that asks the question again.
func (s *State) WorkOpen(src Source) (*WorkTurn, error) {
	t := s.Turn
	if t == nil {
		return nil, nil
	}
	w := &WorkTurn{Turn: t.ID, Cause: t.Cause, OfTurn: t.OfTurn, Message: t.Message, Options: t.Options,
		Attempt: t.Attempt, Synthetic: t.Synthetic}
	if err := w.readContent(src, t.MessageSeq); err != nil {
		return nil, err
	}
	var given []Carried
	for _, c := range t.Prompts {
		if p := s.Prompts[c.Prompt]; p == nil || p.Turn != t.ID {
			given = append(given, c)
		}
	}
	return w, w.readPrompts(src, given, math.MaxInt)
}

// readPrompts fills in what was decided about the prompts that a turn brings, in at most so many bytes.
func (t *WorkTurn) readPrompts(src Source, list []Carried, bytesMax int) error {
	for _, c := range list {
		p := TurnPrompt{Prompt: c.Prompt, Seq: c.Seq, WorkPrompt: WorkPrompt{Status: c.Status}}
		found, err := settled(src, c.Seq, c.Prompt, c.Status)
		if err != nil {
			return err
		}
		p.Answers, p.Text, p.By = found.answers, found.text, found.by
		if c.Asked != 0 {
			asked, err := promptRequest(src, c.Asked, math.MaxUint64, c.Prompt)
			if err != nil {
				return err
			}
			p.Title, p.Questions = cut(asked.Title, TitleBytesMax), asked.Asked()
		}
		if n := len(encode(p)); n > bytesMax {
			p.Answers, p.Text, p.Questions, p.Omitted = nil, "", nil, true
		} else {
			bytesMax -= n
		}
		t.Prompts = append(t.Prompts, p)
	}
	return nil
}

// workPrompts fills in what was decided, oldest first, as much as an entry can hold, and returns the bytes that it
// takes.
func (s *State) workPrompts(w *Work, src Source, bytesMax int) (size int, err error) {
	ids := sortedKeys(s.Prompts)
	slices.SortStableFunc(ids, func(a, b string) int {
		return cmp.Compare(s.Prompts[a].SettledSeq,
			s.Prompts[b].SettledSeq)
	})
	for _, id := range ids {
		p := s.Prompts[id]
		if !s.owes(p) {
			continue
		}
		found, err := settled(src, p.SettledSeq, id, p.Status)
		if err != nil {
			return 0, err
		}
		entry := &WorkPrompt{Status: p.Status, Answers: found.answers, Text: found.text, By: found.by,
			Reason: found.reason(p.Reason)}
		if size += len(encode(entry)); size > bytesMax && len(w.Prompts) > 0 {
			return size, nil
		}
		if w.Prompts == nil {
			w.Prompts = map[string]*WorkPrompt{}
		}
		w.Prompts[id] = entry
	}
	return size, nil
}

func (s *State) workTurn(src Source) (*WorkTurn, error) {
	p := s.Pending.Turn
	if p == nil {
		return nil, nil
	}
	t := &WorkTurn{Turn: p.ID, Cause: p.Cause, OfTurn: p.OfTurn, Message: p.Message, Options: p.Options,
		Attempt: max(p.Attempt, 1), Prompt: p.Prompt, Compaction: p.Compaction}
	return t, t.readContent(src, s.MessageSeq(p.Message))
}

// readContent fills in the content of a turn's message from the commit that accepted it; 0: it has no message, or an
// unknown one.
func (t *WorkTurn) readContent(src Source, seq uint64) error {
	if seq == 0 {
		return nil
	}
	c, err := src(seq)
	if err != nil {
		return fmt.Errorf("the content of message %s: %w", t.Message, err)
	}
	for i := range c.Events {
		if f, ok := c.Events[i].Fact.(events.MessageAccepted); ok && f.Message == t.Message {
			t.Content, t.Ref, t.Synthetic = f.Content, f.Ref, f.Synthetic
			break
		}
	}
	return nil
}

// marks are the places in the log that say what is pending: each is said once, and never changed afterwards, but for
// the turn of a stop: see [Pending.stopTurn].
func (p *Pending) marks() [3]uint64 {
	var m [3]uint64
	if p.Turn != nil {
		m[0] = p.Turn.Seq
	}
	if p.Stop != nil {
		m[1] = p.Stop.Seq
	}
	if p.Compaction != nil {
		m[2] = p.Compaction.Seq
	}
	return m
}

// stopTurn returns the turn of the pending stop, "" without one.
func (p *Pending) stopTurn() string {
	if p.Stop == nil {
		return ""
	}
	return p.Stop.Turn
}

// sameDecision compares what the harness's view shows of a decision.
func sameDecision(a, b Carried) bool {
	return a.Prompt == b.Prompt && a.Status == b.Status && a.Seq == b.Seq && a.Asked == b.Asked
}

// WorkChanged reports whether the harness's view may differ between two documents of a session. Seq alone is no
// difference.
func WorkChanged(before, after *State) bool {
	had := before != nil && before.HasWork()
	if !had || !after.HasWork() {
		return had != after.HasWork()
	}
	if before.Epoch != after.Epoch || before.Owned != after.Owned || before.Pending.marks() != after.Pending.marks() ||
		before.Pending.stopTurn() != after.Pending.stopTurn() ||
		!slices.EqualFunc(before.brings(), after.brings(), sameDecision) {
		return true
	}
	n := 0
	for id, p := range after.Prompts {
		if !after.owes(p) {
			continue
		}
		n++
		if q := before.Prompts[id]; q == nil || !before.owes(q) || q.SettledSeq != p.SettledSeq {
			return true
		}
	}
	for _, p := range before.Prompts {
		if before.owes(p) {
			n--
		}
	}
	return n != 0
}
