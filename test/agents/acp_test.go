//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

func TestACPOpenCode(t *testing.T) { kills(t, &realOpenCode) }

func TestACPClaude(t *testing.T) { kills(t, &realClaude) }

// kills has a real agent killed behind `holdfast acp`. The editor sees one end of each request, each question once, and
// no call that stays open. Each process of the agent has the session and its mode before anything else.
func kills(t *testing.T, agent *acpAgent) {
	agent.path(t)
	for name, scenario := range map[string]func(*testing.T, *acpAgent){
		"at a permission, answered in a terminal": answeredElsewhere,
		"at a permission, answered in the editor": answeredInTheEditor,
		"in a tool":                 inATool,
		"3 s into the first turn":   inTheFirstTurn,
		"twice in a row":            twice,
		"the broker is unreachable": withoutABroker,
	} {
		t.Run(name, func(t *testing.T) {
			if agent.byMinute {
				// it waits for most of a minute
				t.Parallel()
			}
			scenario(t, agent)
		})
	}
}

// script is what the model does with a command that needs a permission, when its agent is killed at the permission: it
// calls the command until it has run. Claude shows the model the call that was cut off, or does not.
func (r *acpAgent) script(command string) []mockmodel.Step {
	step := r.shell(command)
	step.Until = hasRun
	return []mockmodel.Step{step, mockmodel.Text("Done.")}
}

// answeredElsewhere: the agent is killed at a permission. While no process of it runs, a person answers in a terminal.
// The command runs once, and the permission is not asked for again.
func answeredElsewhere(t *testing.T, agent *acpAgent) {
	d := sit(t, agent, true)
	d.model.Script("asks", agent.script(asksOf("elsewhere"))...)
	turn := d.begins("asks")
	asked := d.asked()
	d.hold()
	d.kill()
	d.answers(asked)
	d.release()
	d.ends(turn, 1)
	if n := d.ran("elsewhere"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// answeredInTheEditor: the same, and the answer is given in the editor.
func answeredInTheEditor(t *testing.T, agent *acpAgent) {
	d := sit(t, agent, true)
	d.model.Script("asks", agent.script(asksOf("editor"))...)
	turn := d.begins("asks")
	asked := d.asked()
	d.hold()
	d.kill()
	d.grants(&asked)
	d.until("the answer", func(s *session.State) bool { return len(s.PendingPrompts()) == 0 })
	d.release()
	d.ends(turn, 1)
	if n := d.ran("editor"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// inATool: the agent is killed while a command runs.
func inATool(t *testing.T, agent *acpAgent) {
	d := sit(t, agent, true)
	d.allows = true
	d.model.Script("runs", agent.shell(asksOf("tool")+"; until [ -e go ]; do sleep 0.2; done"), mockmodel.Text("Done."))
	turn := d.begins("runs")
	natstest.Until(t, "the command runs", func() bool { return d.ran("tool") > 0 })
	d.stored()
	d.write(d.dir+"/go", "")
	d.kill()
	d.reply(turn, "session/prompt")
	n := d.ran("tool")
	if n != 1 && (n != 2 || !agent.forgets) {
		t.Errorf("the command ran %d times", n)
	}
	// a permission is for one call
	d.ends(turn, n)
}

// inTheFirstTurn: the agent is killed 3 s into its first turn. An agent that has not stored the session by then ends
// the request with an error that says why.
func inTheFirstTurn(t *testing.T, agent *acpAgent) {
	d := sit(t, agent, true)
	d.model.Script("first", mockmodel.Step{Text: "It is done.", Gate: "first"})
	turn := d.begins("first")
	<-time.After(3 * time.Second)
	d.kill()
	d.model.Open("first")
	m := d.reply(turn, "session/prompt")
	t.Logf("the reply: %s %+v", m.Result, m.Error)
	if m.Error == nil && !strings.Contains(string(m.Result), `"end_turn"`) ||
		m.Error != nil && !strings.Contains(m.Error.Message, "session/load") {
		t.Errorf("the turn ends with %s, %+v", m.Result, m.Error)
	}
	d.until("the turn has ended", func(s *session.State) bool { return s.Turn == nil && s.LastTurn != nil })
	d.check(0)
}

// twice: the agent is killed at a permission, and the next process while its session is loaded.
func twice(t *testing.T, agent *acpAgent) {
	d := sit(t, agent, true)
	d.model.Script("asks", agent.script(asksOf("twice"))...)
	turn := d.begins("asks")
	asked := d.asked()
	d.kill()
	d.starts(2, `"session/load"`)
	d.hold()
	d.kill()
	d.answers(asked)
	d.release()
	d.ends(turn, 1)
	if n := len(d.processes()); n != 3 {
		t.Errorf("%d processes", n)
	}
	if n := d.ran("twice"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// withoutABroker: the broker is unreachable. Each line arrives with the bytes that it was sent with, except for the ids
// of requests.
func withoutABroker(t *testing.T, agent *acpAgent) {
	d := sit(t, agent, false)
	d.allows = true
	d.model.Script("asks", agent.shell(asksOf("alone")), mockmodel.Text("Done."))
	m := d.reply(d.begins("asks"), "session/prompt")
	if m.Error != nil || !strings.Contains(string(m.Result), `"end_turn"`) {
		t.Errorf("the turn ends with %s, %+v", m.Result, m.Error)
	}
	d.check(1)
	p := d.processes()[0]
	d.mu.Lock()
	defer d.mu.Unlock()
	same(t, "the agent", d.sent, p.got)
	same(t, "the editor", p.sent[:len(d.raw)], d.raw)
}

// same checks that lines are those that were sent, without the ids.
func same(t *testing.T, who string, sent, got []string) {
	t.Helper()
	if !slices.EqualFunc(sent, got, func(a, b string) bool { return withoutID(t, a) == withoutID(t, b) }) {
		t.Errorf("%s got\n%s\nwas sent\n%s", who, strings.Join(got, "\n"), strings.Join(sent, "\n"))
	}
}

// withoutID returns a line with a mark in place of its id.
func withoutID(t *testing.T, line string) string {
	t.Helper()
	var m wire
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if m.ID == nil {
		return line
	}
	return strings.Replace(line, fmt.Sprintf(`"id":%s`, m.ID), `"id":?`, 1)
}
