package harness

import (
	"errors"
	"fmt"
	"net"
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

// embedded is a broker of the process itself, as far as words need it.
type embedded struct{}

func (embedded) InProcessConn() (net.Conn, error) { return nil, errors.New("it is closed") }

// TestConnectToAnEmbeddedBroker: words about an embedded broker do not name an address that is not used.
func TestConnectToAnEmbeddedBroker(t *testing.T) {
	cfg := Config{ID: "a", URL: "nats://unused:4222", InProcess: embedded{}}.withDefaults()
	text, _ := cfg.awaits(fmt.Errorf("%w: it is closed", bus.ErrUnreachable))
	if strings.Contains(text, "unused") || !strings.Contains(text, "the embedded broker") {
		t.Errorf("Connect misses: %s", text)
	}
	w := newWait(cfg, zerolog.Nop())
	w.timer.Stop()
	if got := w.broker(); got != "the embedded broker" {
		t.Errorf("connected to %s", got)
	}
}

// TestWaitLogsEachReasonOnce: attempts that fail for the same reason are one line.
func TestWaitLogsEachReasonOnce(t *testing.T) {
	var logged strings.Builder
	w := newWait(Config{ID: "a"}.withDefaults(), zerolog.New(&logged))
	w.timer.Stop()
	w.long = true
	for range 3 {
		w.note(bus.ErrUnreachable)
		w.note(ErrNoCell)
	}
	if n := strings.Count(logged.String(), "still trying"); n != 2 {
		t.Errorf("said %d times, want 2: %s", n, logged.String())
	}
}
