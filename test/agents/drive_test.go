//go:build agents

package agents

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
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

// TestDriveCompaction: a run whose context is nearly full is stopped between two model calls, compacted, and continued.
// OpenCode is killed in the summary: the compaction is made again, and no part of the first one stays. A compaction
// that a person asks for is made, too.
func TestDriveCompaction(t *testing.T) {
	w := newServer(t)
	w.pure, w.env = true, []string{"OPENCODE_DISABLE_AUTOCOMPACT=1"}
	w.starts()
	bridge := w.bridges(w.url(), []string{"HOLDFAST_PLUGIN_TOKEN=secret"}, "--drive", "compaction", "--plugin",
		"127.0.0.1:0")
	if strings.Contains(bridge.Log(), "may compact by itself") {
		t.Errorf("the bridge says\n%s", bridge.Log())
	}
	full := bash("echo done")
	full.Used = 190_000
	w.model.Script("long", full, mockmodel.Step{Text: "It continues.", Gate: "on"})
	w.model.Script("", mockmodel.Text("Continued."))
	w.model.Script(mockmodel.Summary, mockmodel.Step{Text: "A summary of it.", Gate: "summary"})
	id := w.begins("long")
	compacts := func(s *session.State) bool {
		return s.Turn == nil && s.Compaction != nil && s.Compaction.State == session.CompactionRunning
	}
	w.until(id, "it is compacted", compacts)
	if !strings.Contains(bridge.Log(), "OpenCode ran a call for which its plugin did not ask") {
		t.Errorf("a server without the plugin: the bridge says\n%s", bridge.Log())
	}
	natstest.Until(t, "the model is asked for a summary", func() bool {
		return len(w.model.Requests(mockmodel.Summary)) == 1
	})
	w.server.Kill()
	w.model.Open("summary")
	w.starts()
	w.until(id, "the compaction failed with its process", func(s *session.State) bool {
		return s.LastCompaction != nil && s.LastCompaction.Outcome == session.OutcomeFailed
	})
	w.types("compact", "opencode/"+id)
	s := w.until(id, "the work is continued", func(s *session.State) bool {
		return completed(s) && s.LastCompaction != nil && s.LastCompaction.Outcome == session.OutcomeCompleted
	})
	if s.LastTurn.Cause != events.CauseFollowUp || len(w.model.Requests("")) != 1 || len(w.open(id)) > 1 {
		t.Errorf("the turn %+v, %d model calls, open: %v", s.LastTurn, len(w.model.Requests("")), w.open(id))
	}
}
