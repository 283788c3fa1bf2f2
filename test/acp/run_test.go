package acp

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// continues starts `holdfast acp run` for a session, and has its agent load it.
func continues(t *testing.T, c *cell, id string) *proxy {
	t.Helper()
	x := startAs(t, "acp", "run", id, "--nats", c.up.NATS, "--content", "full", "--wait", patience.String(), "--dir",
		t.TempDir())
	x.loads()
	x.saw("the agent has session " + id)
	return x
}

// loads has the agent of a run load the session.
func (x *proxy) loads() {
	x.t.Helper()
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"agentCapabilities":{"loadSession":true}}}`,
		x.agent.gets("initialize"))
	id := x.agent.gets("session/load")
	x.agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"history"}}}}`)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
}

// ends ends a turn of a run, with a text of the agent.
func (x *proxy) ends(request, output string) {
	x.t.Helper()
	x.agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":`+
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, output)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, request)
}

// permits has the agent ask for a permission, and returns its id in Holdfast.
func (x *proxy) permits(c *cell, harness string) string {
	x.t.Helper()
	x.agent.send(`{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{"sessionId":"s1",` +
		`"toolCall":{"toolCallId":"c2","title":"rm"},"options":[{"optionId":"yes","name":"Allow",` +
		`"kind":"allow_once"}]}}`)
	return c.prompt(harness, "s1")
}

// continued is a session of a run without an editor.
type continued struct {
	*proxy
	c           *cell
	harness, id string
}

// do runs a command of holdfast for a person.
func (x *continued) do(args ...string) {
	x.t.Helper()
	if code, output := x.c.run(args...); code != 0 {
		x.t.Fatalf("%q: exit %d: %s", args, code, output)
	}
}

// over waits for the end of the turn. It is the last of so many that were completed, or has another outcome.
func (x *continued) over(completed int, outcome string) {
	x.t.Helper()
	st := x.c.until(x.harness, "s1", "the end of a turn", func(s *session.State) bool { return s.Turn == nil })
	n := 0
	for _, f := range x.c.facts(x.harness, "s1") {
		if strings.HasPrefix(f, "turn.completed ") {
			n++
		}
	}
	if n != completed || st.LastTurn == nil || st.LastTurn.Outcome != outcome {
		x.t.Errorf("%d turns are completed, want %d; the last one: %+v", n, completed, st.LastTurn)
	}
}

// TestRunsWithoutAnEditor: holdfast acp is killed while a permission waits. A run without an editor loads the session,
// and brings the answer, messages and a stop to the agent. Its agent is killed and continues, and permissions are
// answered elsewhere.
func TestRunsWithoutAnEditor(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	const harness, id = "acp-run", "acp-run/s1"
	first := start(t, c.up.NATS, harness)
	first.opens("s1")
	first.prompts("s1")
	first.asks("s1")
	prompt := c.prompt(harness, "s1")
	first.signal(syscall.SIGKILL)
	c.until(harness, "s1", "the session without an owner", func(s *session.State) bool { return !s.Owned })

	x := &continued{continues(t, c, id), c, harness, id}
	code, output := c.run("acp", "run", id, "--nats", c.up.NATS, "--", "true")
	if code == 0 || !strings.Contains(output, "is open in an editor") {
		t.Errorf("a second run: exit %d: %s", code, output)
	}
	x.saw("and a permission waits: holdfast answer " + id + " " + prompt)
	x.do("answer", id, prompt, "Allow")
	turn := x.agent.gets("The user has now answered: Allow")
	next := x.permits(c, harness)
	x.saw("a permission waits: rm: holdfast answer " + id + " " + next)
	x.do("answer", id, next, "Allow")
	x.agent.gets(`"optionId":"yes"`)
	x.ends(turn, "first")
	x.over(1, session.OutcomeCompleted)
	x.diesInATurn()
	x.isStopped()
	x.do("send", id, "this fails")
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"log in"}}`, x.agent.gets("this fails"))
	x.over(2, session.OutcomeFailed)
	x.signal(syscall.SIGTERM)
	shown := strings.Join(x.editor.rest(), "\n")
	if !strings.Contains(shown, "first\nsecond\n") || strings.Contains(shown, "history") {
		t.Errorf("shown: %s", shown)
	}
	if code := x.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if st := c.state(harness, "s1"); st.Owned || st.Left != session.LeftReleased {
		t.Errorf("owned %t, left %q", st.Owned, st.Left)
	}
}

// diesInATurn has the agent killed behind a message: its next process continues the turn.
func (x *continued) diesInATurn() {
	x.t.Helper()
	x.do("send", x.id, "more words")
	x.agent.gets("more words")
	x.killAgent()
	x.begins()
	x.loads()
	turn := x.agent.gets("restarted in the middle of this turn")
	x.agent.send(`{"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/x"}}`)
	x.agent.gets(`no editor is here`)
	x.ends(turn, "second")
	x.over(2, session.OutcomeCompleted)
}

// isStopped has a person stop a turn.
func (x *continued) isStopped() {
	x.t.Helper()
	x.do("send", x.id, "stop this")
	turn := x.agent.gets("stop this")
	x.do("stop", x.id)
	x.agent.gets("session/cancel")
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}`, turn)
	x.over(2, session.OutcomeStopped)
}

// TestRunCannotLoad: an agent that does not have the session ends the run with the reason, and the session is released.
func TestRunCannotLoad(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	first := start(t, c.up.NATS, "acp-lost")
	first.opens("s1")
	if err := first.editor.to.Close(); err != nil {
		t.Fatal(err)
	}
	first.exit()
	x := startAs(t, "acp", "run", "s1", "--harness", "acp-lost", "--nats", c.up.NATS)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}}`,
		x.agent.gets("initialize"))
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"not found"}}`,
		x.agent.gets("session/resume"))
	if code := x.exit(); code == 0 || !strings.Contains(x.output(), "session/resume: not found") {
		t.Errorf("exit %d: %s", code, x.output())
	}
	if st := c.state("acp-lost", "s1"); st.Owned || st.Left != session.LeftReleased {
		t.Errorf("owned %t, left %q", st.Owned, st.Left)
	}
	if code, text := c.run("acp", "run", "acp-lost/s2", "--nats", c.up.NATS, "--", "true"); code == 0 ||
		!strings.Contains(text, "there is no session acp-lost/s2") {
		t.Errorf("exit %d: %s", code, text)
	}
}
