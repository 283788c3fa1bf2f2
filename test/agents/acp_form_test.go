//go:build agents

package agents

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

// TestACPClaudeForm: Claude asks a question as a form, and the editor shows none. A person answers in a terminal, and
// the model reads the answer. The editor is shown no form.
func TestACPClaudeForm(t *testing.T) {
	d := sit(t, &realClaude, true)
	d.model.Script("form", mockmodel.Tool("AskUserQuestion", object{"questions": []object{{
		"question": "Which database?", "header": "Database", "multiSelect": false,
		"options": []object{{"label": "Postgres", "description": "a server"},
			{"label": "SQLite", "description": "a file"}}}}}), mockmodel.Text("Done."))
	turn := d.begins("form")
	var prompt string
	d.until("the form waits", func(s *session.State) bool {
		for _, p := range s.PendingPrompts() {
			prompt = p
		}
		return prompt != ""
	})
	// Claude's form has a second field, for the person's own words: it is skipped.
	out, err := exec.Command(binary, "answer", d.harness+"/"+d.session, prompt, "SQLite", "", "--nats",
		d.nats).CombinedOutput()
	if err != nil {
		t.Fatalf("holdfast answer: %v\n%s", err, out)
	}
	d.ends(turn, 0)
	all := d.model.Requests("form")
	output := ""
	for _, m := range all[len(all)-1] {
		if m.Role == "tool" {
			output += m.Text
		}
	}
	if !strings.Contains(output, "SQLite") {
		t.Errorf("the model reads %q", output)
	}
	if got := d.shown(); strings.Contains(got, "elicitation") {
		t.Errorf("the editor is shown a form:\n%s", got)
	}
}
