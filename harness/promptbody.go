package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// shown is what people see of a prompt, as a commit has it.
type shown struct {
	seq  uint64
	body []byte
}

// asStored encodes what a person sees of a question, as it is after it was stored and read: bytes that are no UTF-8 are
// replaced.
func asStored(f events.PromptRequested) ([]byte, error) {
	type shown struct {
		Kind      events.PromptKind
		Title     string
		Questions []events.Question
	}
	body, err := json.Marshal(shown{f.PromptKind, f.Title, f.Questions})
	if err != nil {
		return nil, err
	}
	var read shown
	if err := json.Unmarshal(body, &read); err != nil {
		return nil, err
	}
	return json.Marshal(read)
}

// sameShown returns [ErrNameTaken] if the commit asked requests the prompt of want with another kind, title or
// questions: a decision about that question decides nothing here. name is that of the question, for the error.
func (s *Session) sameShown(ctx context.Context, name string, want events.PromptRequested, asked uint64) error {
	if asked == 0 {
		return nil
	}
	one, err := asStored(want)
	if err != nil {
		return err
	}
	s.mu.Lock()
	was := s.shown[want.Prompt]
	s.mu.Unlock()
	if was.seq == asked && bytes.Equal(was.body, one) {
		return nil
	}
	c, err := s.h.bus.Log.Commit(ctx, asked)
	if err != nil {
		return about(translate(err), "%s in %s", name, s.ref)
	}
	for i := range c.Events {
		was, ok := c.Events[i].Fact.(events.PromptRequested)
		if !ok || was.Prompt != want.Prompt {
			continue
		}
		other, err := asStored(was)
		if err != nil {
			return err
		}
		if !bytes.Equal(one, other) {
			return fmt.Errorf("%w: %s in %s: %q was asked, and this is %q", ErrNameTaken, name, s.ref, was.Title,
				want.Title)
		}
	}
	s.keepShown(want.Prompt, shown{asked, one})
	return nil
}

// sameAsked is [Session.sameShown] for an Ask under the id of a prompt that is open, whichever process asked it, or
// that is settled. An Ask that names the prompt by its id alone asks no other question.
func (s *Session) sameAsked(ctx context.Context, p Prompt, f events.PromptRequested) error {
	if p.byID() {
		return nil
	}
	s.mu.Lock()
	asked := s.attachedTo(f.Prompt)
	s.mu.Unlock()
	return s.sameShown(ctx, "prompt "+f.Prompt, f, asked)
}

// attachedTo returns the commit with the newest body of the prompt that an Ask would take over, or to which it would be
// attached; 0 without one. The session is locked.
func (s *Session) attachedTo(prompt string) uint64 {
	if p := s.st.Prompts[prompt]; p != nil && p.Status == session.Awaiting {
		return p.Seq
	}
	done, _, err := s.attach(s.st, prompt)
	if !done || err != nil {
		return 0
	}
	if p := s.st.Prompts[prompt]; p != nil {
		return p.Seq
	}
	if c, ok := s.st.Carries(prompt); ok && c.Asked != 0 {
		return c.Asked
	}
	e, _ := s.st.Ended(session.EntityPrompt, prompt)
	return e.OpenedSeq
}

// asks remembers what people see of a prompt that this process has requested, so that an Ask that is attached to it
// needs nothing of the log.
func (s *Session) asks(f events.PromptRequested) {
	body, err := asStored(f)
	s.mu.Lock()
	p := s.st.Prompts[f.Prompt]
	s.mu.Unlock()
	if err == nil && p != nil {
		s.keepShown(f.Prompt, shown{p.Seq, body})
	}
}

func (s *Session) keepShown(prompt string, v shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[prompt] = v
	if len(s.shown) > returnedMax {
		for id := range s.shown {
			if s.st.Prompts[id] == nil {
				delete(s.shown, id)
			}
		}
	}
}
