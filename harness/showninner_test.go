package harness

import (
	"errors"
	"testing"
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
