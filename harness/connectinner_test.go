package harness

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// TestConnectFault: an error that needs a cluster or users is one sentence, too, and keeps its chain.
func TestConnectFault(t *testing.T) {
	cfg := Config{ID: "a", URL: "nats://ann:secret@n1:4222"}.withDefaults()
	refused := fmt.Errorf("%w: connect to nats://n1:4222: nats: Authorization Violation (check the credentials)",
		bus.ErrForbidden)
	for want, c := range map[string]struct{ err, is error }{
		"the broker at nats://n1:4222 accepts connections, but its JetStream does not answer: " + adviceNodes: {
			fmt.Errorf("%w: %w", bus.ErrNoAnswer, errors.New("nats: timeout")), ErrUnreachable},
		"forbidden: connect to nats://n1:4222: Authorization Violation (check the credentials)": {
			translate(refused), ErrForbidden},
		"no JetStream: look for it: not enabled": {
			fmt.Errorf("%w: look for it: %w", bus.ErrNoJetStream, errors.New("nats: not enabled")), bus.ErrNoJetStream},
	} {
		err := cfg.connectFault(c.err)
		if got := err.Error(); got != "harness: connect a: "+want || !errors.Is(err, c.is) || !errors.Is(err, c.err) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestWaitSaysEachReasonOnce: attempts that fail for the same reason are one line.
func TestWaitSaysEachReasonOnce(t *testing.T) {
	var said strings.Builder
	w := newWait(Config{ID: "a"}.withDefaults(), zerolog.New(&said))
	w.timer.Stop()
	w.long = true
	for range 3 {
		w.note(bus.ErrUnreachable)
		w.note(ErrNoCell)
	}
	if n := strings.Count(said.String(), "still trying"); n != 2 {
		t.Errorf("said %d times, want 2: %s", n, said.String())
	}
}
