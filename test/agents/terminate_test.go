//go:build agents

package agents

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// termMax is how long OpenCode may take to end at a SIGTERM.
const termMax = 30 * time.Second

// TestTerminated ends OpenCode by SIGTERM, as a service manager does: its store is left as by a SIGKILL. The command
// that ran is interrupted, and the question is answered while the server is away.
func TestTerminated(t *testing.T) {
	w := newWorld(t)
	ids := map[string]string{}
	for _, name := range []string{"tool", "question"} {
		w.model.Script(name, scripts[name]...)
		ids[name] = w.begins(name)
	}
	w.until(ids["tool"], "a command runs", func(s *session.State) bool { return len(s.Tools) == 1 })
	asked := w.prompt(ids["question"])
	for name, id := range ids {
		natstest.Until(t, name+" is open in the store", func() bool { return len(w.open(id)) > 0 })
	}
	ctx, cancel := context.WithTimeout(t.Context(), termMax)
	defer cancel()
	if err := w.server.Terminate(ctx); ctx.Err() != nil {
		// else it says that the signal ended the process
		t.Fatal(err)
	}
	w.types("answer", "opencode/"+ids["question"], asked, "SQLite")
	w.starts()
	for name, id := range ids {
		natstest.Until(t, name+" has an end in the store", func() bool { return len(w.open(id)) == 0 })
	}
	w.until(ids["question"], "the question's turn completed", completed)
	if !w.saw("question", `"Which database?"="SQLite"`) || w.count(ids["question"], "user") != 1 {
		t.Errorf("the model was shown %v", w.model.Requests("question"))
	}
	w.until(ids["tool"], "the turn of the command is interrupted", interrupted)
	w.types("resume", "opencode/"+ids["tool"])
	w.until(ids["tool"], "the turn completed", completed)
	if n := w.count(ids["tool"], "user"); n != 1 || !w.saw("tool", "It may have had an effect") {
		t.Errorf("the person's message is there %d times, the model was shown %v", n, w.model.Requests("tool"))
	}
}
