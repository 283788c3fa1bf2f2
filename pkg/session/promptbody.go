package session

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// ErrNoCommit is the error of a [Source] for a place of the log without a commit, or whose commit was purged.
var ErrNoCommit = errors.New("no such commit")

// sameShown refuses (409) a decision about a prompt that a person saw at a place of the log, if the prompt asks for
// something else now, or asked for something else when it was settled. asked is the seq of an entry of the people's
// view; 0, of a client that does not say it, refuses nothing. An entry from before the newest body has the seq of an
// earlier body. One that has another seq, because the answer was taken back there, cannot be compared, and is refused.
func (s *State) sameShown(prompt string, asked uint64, src Source) error {
	newest, epoch, call := s.newestBody(prompt)
	if asked == 0 || asked >= newest {
		return nil
	}
	now, err := promptRequest(src, newest, epoch, prompt)
	if err != nil {
		return err
	}
	was, err := s.bodyAt(prompt, asked, epoch, src)
	if err != nil {
		return err
	}
	if was.Prompt != "" && was.Call == call && bytes.Equal(asShown(now), asShown(was)) {
		return nil
	}
	stands := events.Standing{Prompt: prompt, Seq: newest}
	if p := s.Prompts[prompt]; p != nil {
		stands.Status, stands.At = string(p.Status), p.UpdatedAt
	} else if e := s.ended(EntityPrompt, prompt); e != nil {
		stands.Status, stands.At = e.Outcome, e.At
	}
	return events.Conflict(fmt.Sprintf("prompt %s has changed since it was shown (at place %d of the log, now at %d): "+
		"read it again", prompt, asked, newest), stands)
}

// newestBody returns the place of the newest body of a prompt, with the epoch and the call of the prompt.
func (s *State) newestBody(prompt string) (seq, epoch uint64, call string) {
	if p := s.Prompts[prompt]; p != nil {
		return p.Seq, p.Epoch, p.Call
	}
	if e := s.ended(EntityPrompt, prompt); e != nil {
		return e.OpenedSeq, e.Epoch, e.Call
	}
	return 0, 0, ""
}

// bodyAt returns the body that a prompt got at a place of the log; one without an id if this session has none there.
func (s *State) bodyAt(prompt string, seq, epoch uint64, src Source) (events.PromptRequested, error) {
	var none events.PromptRequested
	c, err := src(seq)
	switch {
	case errors.Is(err, ErrNoCommit):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("prompt %s as it was shown: %w", prompt, err)
	case c.Ref != s.Ref():
		return none, nil
	}
	return promptRequest(func(uint64) (*events.Commit, error) { return c, nil }, seq, epoch, prompt)
}

// asShown is what people decide about, as bytes.
func asShown(f events.PromptRequested) []byte {
	return encode(struct {
		Kind      events.PromptKind
		Title     string
		Questions []events.Question
	}{word(f.PromptKind), f.Title, f.Asked()})
}
