package harness

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAnotherQuestionGetsNoReceivedAnswer: a claim has the receipt for a prompt. An Ask that is refused because it
// asked another question does not wait for that claim: its decision belongs to the other Asks.
func TestAnotherQuestionGetsNoReceivedAnswer(t *testing.T) {
	w := &waiter{asks: 2, done: make(chan struct{}), claim: &claimReceipts{done: make(chan struct{})}}
	s := &Session{ownership: owner, waiters: map[string]*waiter{"p1": w}}
	if _, err := s.unexpect("p1", w, Answer{}, ErrNameTaken); !errors.Is(err, ErrNameTaken) || w.asks != 1 {
		t.Errorf("%v, %d Asks left", err, w.asks)
	}
}

// TestAskedAndSettledAtOnce: a person settles a prompt before the process that asked it has noted what it asked.
// Nothing is remembered: the log has the question.
func TestAskedAndSettledAtOnce(t *testing.T) {
	x := newInside(t)
	f := events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion, Title: "Go on?"}
	if x.s.asks(f); len(x.s.shown) != 0 {
		t.Errorf("remembered: %+v", x.s.shown)
	}
}
