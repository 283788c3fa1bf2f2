package harness

import (
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAskedAndSettledAtOnce: a person settles a prompt before the process that asked it has noted what it asked.
// Nothing is remembered: the log has the question.
func TestAskedAndSettledAtOnce(t *testing.T) {
	x := newInside(t)
	f := events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion, Title: "Go on?"}
	if x.s.asks(f); len(x.s.shown) != 0 {
		t.Errorf("remembered: %+v", x.s.shown)
	}
}
