package harness

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// askUnlessLongAgo asks, unless the prompt was settled so long ago that the state of the session has forgotten it. Then
// it returns what the log says. An id that was made here is new.
func (s *Session) askUnlessLongAgo(ctx context.Context, t *Turn, p Prompt) (Answer, error) {
	if p.ID == "" || !s.mayHaveForgotten(p.ID) {
		return s.ask(ctx, t, p)
	}
	turn := ""
	if t != nil {
		turn = t.id
	}
	var was session.Ending
	var asked uint64
	if err := s.inLog(ctx, turn, func(x *logIndex) {
		at := session.EntityPrompt + " " + p.ID
		was, asked = x.ends[at], x.begins[at]
	}); err != nil {
		return Answer{}, err
	}
	// asked again after its end, or settled since, and listed: both are in the state by now
	if was.Seq == 0 || !s.mayHaveForgotten(p.ID) {
		return s.ask(ctx, t, p)
	}
	return s.forgottenAnswer(ctx, p, turn, was, asked)
}

// mayHaveForgotten reports whether the state of the session has no prompt with this id, and may have forgotten one.
func (s *Session) mayHaveForgotten(prompt string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == nil {
		return false
	}
	_, ended := s.st.Ended(session.EntityPrompt, prompt)
	_, carried := s.st.Carries(prompt)
	return s.st.Prompts[prompt] == nil && !ended && !carried && forgets(s.st, 0)
}

// forgottenAnswer returns how a prompt was settled that the state of the session has forgotten.
func (s *Session) forgottenAnswer(ctx context.Context, p Prompt, turn string, was session.Ending, asked uint64) (Answer,
	error) {
	closed := fmt.Errorf("%w: prompt %s in %s", ErrClosedID, p.ID, s.ref)
	s.mu.Lock()
	_, returned := s.returned[p.ID]
	s.mu.Unlock()
	if returned {
		return Answer{}, closed
	}
	if !p.byID() {
		f, err := p.requested(turn)
		if err != nil {
			return Answer{}, err
		}
		if err := s.sameShown(ctx, "prompt "+p.ID, f, asked); err != nil {
			return Answer{}, err
		}
	}
	a, err := s.readAnswer(ctx, p, was.Seq)
	// it ended with its turn, and no fact says so
	if errors.Is(err, ErrUnknown) {
		return Answer{}, closed
	}
	return a, err
}
