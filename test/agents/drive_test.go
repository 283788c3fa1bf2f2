//go:build agents

package agents

import (
	"net/http"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

// TestDriveRetry: the model fails, and Holdfast tries the turn again in place of OpenCode, also after OpenCode was
// killed while the retry was planned. The session has the message once, and nothing of the model calls that failed.
func TestDriveRetry(t *testing.T) {
	w := newWorld(t, "--drive", "retry")
	w.model.Script("fails", mockmodel.Step{Text: "Done.", Status: http.StatusInternalServerError, Gate: "fails"})
	id := w.begins("fails")
	planned := func(attempt int) func(*session.State) bool {
		return func(s *session.State) bool {
			return s.Turn == nil && s.RetryPlanned() && s.Retry.Attempt >= attempt
		}
	}
	w.until(id, "a retry is planned", planned(1))
	w.until(id, "the next one is planned", planned(2))
	natstest.Until(t, "the model call that failed is removed", func() bool { return w.count(id, "assistant") == 0 })
	w.server.Kill()
	w.model.Open("fails")
	w.starts()
	w.until(id, "the turn completed", completed)
	user, answers, open := w.count(id, "user"), w.count(id, "assistant"), w.open(id)
	if user != 1 || answers != 1 || len(open) > 0 {
		t.Errorf("%d messages of the person, %d of the model, open: %v", user, answers, open)
	}
	if len(w.model.Requests("fails")) < 3 {
		t.Errorf("the model was asked %d times", len(w.model.Requests("fails")))
	}
}
