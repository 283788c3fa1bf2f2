package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Source finds the commits that a document points to, by sequence. It fails when one is not there any more.
type Source func(seq uint64) (*events.Commit, error)

// BlockedTool is the call that a prompt belongs to.
type BlockedTool struct {
	Call string `json:"call"`
	Name string `json:"name,omitempty"`
}

// Blocker is one prompt as people see it: state, not a notification. What was decided (Status) and whether the harness
// has it (DeliveredAt) are shown apart.
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

// request finds the newest body of a prompt in the commit that the document points to.
func request(src Source, seq uint64, prompt string) (events.PromptRequested, error) {
	var found events.PromptRequested
	c, err := src(seq)
	if err != nil {
		return found, fmt.Errorf("session: the request of prompt %s: %w", prompt, err)
	}
	for i := range c.Events {
		if f, ok := c.Events[i].Fact.(events.PromptRequested); ok && f.Prompt == prompt {
			found = f
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

// settled finds what settled a prompt. A settlement by containment said nothing about it, which is no error.
func settled(src Source, seq uint64, prompt string) (settlement, error) {
	c, err := src(seq)
	if err != nil {
		return settlement{}, fmt.Errorf("session: the settlement of prompt %s: %w", prompt, err)
	}
	for i := range c.Events {
		switch f := c.Events[i].Fact.(type) {
		case events.PromptAnswered:
			if f.Prompt == prompt {
				return settlement{answers: f.Answers, by: f.By}, nil
			}
		case events.PromptRejected:
			if f.Prompt == prompt {
				return settlement{text: f.Text, by: f.By}, nil
			}
		case events.PromptDismissed:
			if f.Prompt == prompt {
				return settlement{by: f.By}, nil
			}
		}
	}
	return settlement{}, nil
}

// Blocker is the people's view of one prompt: awaiting, settled, or among the recent endings. It is nil when the session
// knows no such prompt (any more).
func (s *State) Blocker(prompt string, src Source) (*Blocker, error) {
	b := &Blocker{Harness: s.Harness, Session: s.Session, Root: s.Root, Prompt: prompt, Owned: s.Owned}
	p, e := s.Prompts[prompt], s.ended(EntityPrompt, prompt)
	var openedSeq uint64
	call := ""
	switch {
	case p != nil:
		openedSeq, call = p.Seq, p.Call
		b.Kind, b.Status, b.Reason, b.ArmedAt, b.UpdatedAt = p.Kind, p.Status, p.Reason, p.Since, p.UpdatedAt
		b.Seq = max(p.Seq, p.SettledSeq)
	case e != nil:
		openedSeq, call = e.OpenedSeq, e.Call
		b.Kind, b.Status, b.Reason, b.ArmedAt, b.UpdatedAt = events.PromptKind(e.Name), Status(e.Outcome), e.Reason, e.Since, e.At
		b.Seq = e.Seq
	default:
		return nil, nil
	}
	if e != nil && b.Status != Awaiting {
		b.ClosedAt, b.DeliveredAt = e.At, e.DeliveredAt
	}
	req, err := request(src, openedSeq, prompt)
	if err != nil {
		return nil, err
	}
	b.Title, b.Questions, b.OnOwnerLoss, b.Blocking, b.Turn = cut(req.Title, TitleBytesMax), req.Asked(), req.Loss(), req.Blocks(), req.Turn
	if !req.Deadline.IsZero() {
		d := req.Deadline.UTC()
		b.Deadline = &d
	}
	if call != "" {
		b.Tool = &BlockedTool{Call: call, Name: s.callName(call)}
	}
	if b.Status == Awaiting {
		return b, nil
	}
	said, err := settled(src, b.Seq, prompt)
	b.Answers, b.By = said.answers, said.by
	return b, err
}

func (s *State) callName(call string) string {
	if c := s.Tools[call]; c != nil {
		return c.Name
	}
	if e := s.ended(EntityTool, call); e != nil {
		return e.Name
	}
	return ""
}

// BlockerKey is where the people's view of a prompt is kept.
func (s *State) BlockerKey(prompt string) string {
	return events.BlockerKey(s.Harness, s.Root, s.Session, prompt)
}

// BlockerPrompts are the prompts that have an entry in the people's view of this document, sorted: all that await or are
// undelivered, and those that ended at or after this instant.
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

// BlockersChanged are the prompts whose entry in the people's view may differ between two documents of a session; before
// is nil for a session that had none.
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
		if q := before.ended(EntityPrompt, e.ID); q == nil || !q.DeliveredAt.Equal(e.DeliveredAt) || q.Reason != e.Reason {
			ids[e.ID] = true
		}
	}
	return sortedKeys(ids)
}

// samePrompt compares prompts whose deadlines may be equal and kept apart.
func samePrompt(a, b *Prompt) bool {
	x, y := *a, *b
	same := (x.Deadline == nil) == (y.Deadline == nil) && (x.Deadline == nil || x.Deadline.Equal(*y.Deadline))
	same = same && x.Since.Equal(y.Since) && x.UpdatedAt.Equal(y.UpdatedAt)
	x.Deadline, y.Deadline, x.Since, y.Since, x.UpdatedAt, y.UpdatedAt = nil, nil, time.Time{}, time.Time{}, time.Time{}, time.Time{}
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

// WorkTurn is a turn that the harness shall start.
type WorkTurn struct {
	Turn       string          `json:"turn"`
	Cause      events.Cause    `json:"cause"`
	OfTurn     string          `json:"of_turn,omitempty"`
	Message    string          `json:"message,omitempty"`
	Content    json.RawMessage `json:"content,omitempty"`
	Ref        string          `json:"ref,omitempty"`
	Synthetic  bool            `json:"synthetic,omitempty"` // the message is no person's
	Options    json.RawMessage `json:"options,omitempty"`
	Attempt    int             `json:"attempt"`
	Prompt     string          `json:"prompt,omitempty"`
	Compaction string          `json:"compaction,omitempty"`
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

// owes says whether the harness is still to be told what was decided about a prompt: one of the present epoch, settled
// and not delivered.
func (s *State) owes(p *Prompt) bool {
	return s.Owned && p.Epoch == s.Epoch && p.Status != Awaiting
}

// HasWork says whether [State.Work] has anything in it.
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
func (s *State) Work(src Source) (*Work, error) {
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
	for id, p := range s.Prompts {
		if !s.owes(p) {
			continue
		}
		said, err := settled(src, p.SettledSeq, id)
		if err != nil {
			return nil, err
		}
		if w.Prompts == nil {
			w.Prompts = map[string]*WorkPrompt{}
		}
		w.Prompts[id] = &WorkPrompt{Status: p.Status, Answers: said.answers, Text: said.text, By: said.by, Reason: p.Reason}
	}
	var err error
	w.Turn, err = s.workTurn(src)
	return w, err
}

func (s *State) workTurn(src Source) (*WorkTurn, error) {
	p := s.Pending.Turn
	if p == nil {
		return nil, nil
	}
	t := &WorkTurn{Turn: p.ID, Cause: p.Cause, OfTurn: p.OfTurn, Message: p.Message, Options: p.Options, Attempt: max(p.Attempt, 1), Prompt: p.Prompt, Compaction: p.Compaction}
	for _, m := range s.Queue {
		if m.ID != p.Message {
			continue
		}
		c, err := src(m.Seq)
		if err != nil {
			return nil, fmt.Errorf("session: the content of message %s: %w", m.ID, err)
		}
		for i := range c.Events {
			if f, ok := c.Events[i].Fact.(events.MessageAccepted); ok && f.Message == m.ID {
				t.Content, t.Ref, t.Synthetic = f.Content, f.Ref, f.Synthetic
			}
		}
	}
	return t, nil
}

// WorkChanged says whether the harness's view may differ between two documents of a session. Seq alone is no difference.
func WorkChanged(before, after *State) bool {
	had := before != nil && before.HasWork()
	if !had || !after.HasWork() {
		return had != after.HasWork()
	}
	if before.Epoch != after.Epoch || before.Owned != after.Owned || !reflect.DeepEqual(before.Pending, after.Pending) {
		return true
	}
	n := 0
	for id, p := range after.Prompts {
		if !after.owes(p) {
			continue
		}
		n++
		if q := before.Prompts[id]; q == nil || !before.owes(q) {
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
