package opencode

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// lockedLog is a log that a test reads while the bridge writes it.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// OpenCode refuses a decision with a status that says nothing of the prompt. The log of the bridge says so, and the
// decision is not marked as delivered.
func TestLiveDecisionRefused(t *testing.T) {
	st := newStage(t)
	log := &lockedLog{}
	b := &Bridge{URL: st.srv.URL, Log: slog.New(slog.NewTextHandler(log, nil)),
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			return harness.Connect(ctx, harness.Config{ID: "oc", URL: st.server.URL(), TTL: 10 * time.Minute})
		}}
	natstest.Background(t, b.Run)
	natstest.Until(t, "the bridge is connected", func() bool { return st.connections() > 0 })
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() { st.refuse = map[string]int{"que_1/reply": http.StatusForbidden} })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the line of the log", func() bool { return log.has("OpenCode refused the decision") })
	if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
		t.Errorf("the decision counts as delivered: %v", got)
	}
}
