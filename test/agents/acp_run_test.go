//go:build agents

package agents

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/child"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

// TestACPClaudeRun: the editor leaves after a turn. A message that is sent in a terminal is run by `holdfast acp run`,
// and the permission that it needs is granted in a terminal.
func TestACPClaudeRun(t *testing.T) {
	d := sit(t, &realClaude, true)
	d.model.Script("first", mockmodel.Text("Done."))
	d.model.Script("later", realClaude.script(asksOf("later"))...)
	d.ends(d.begins("first"), 0)
	d.stored()
	if err := d.in.Close(); err != nil {
		t.Fatal(err)
	}
	d.until("it has no owner", func(s *session.State) bool { return !s.Owned })
	id := d.harness + "/" + d.session
	cmd := exec.Command(binary, "acp", "run", id, "--nats", d.nats, "--", realClaude.path(t))
	cmd.Dir, cmd.Env = d.dir, d.cmd.Env
	p, err := child.Run("acp run", filepath.Join(t.TempDir(), "log"), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Terminate(t.Context())
		if t.Failed() {
			t.Logf("the log of acp run:\n%s", p.Tail())
		}
	})
	types := func(args ...string) {
		if out, err := exec.Command(binary, append(args, "--nats", d.nats)...).CombinedOutput(); err != nil {
			t.Fatalf("holdfast %v: %v\n%s", args, err, out)
		}
	}
	types("send", id, "Please. <<later>>")
	var prompt string
	d.until("a permission waits", func(s *session.State) bool {
		for _, p := range s.PendingPrompts() {
			prompt = p
		}
		return prompt != ""
	})
	types("answer", id, prompt, "Allow")
	natstest.Until(t, "the command has run", func() bool { return d.ran("later") == 1 })
	d.until("the turn completed", completed)
}
