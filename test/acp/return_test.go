package acp

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// left has a proxy of an editor killed while a permission waits, and returns the prompt.
func left(t *testing.T, c *cell, harness string) (prompt string) {
	t.Helper()
	first := start(t, c.up.NATS, harness)
	first.opens("s1")
	first.prompts("s1")
	first.asks("s1")
	prompt = c.prompt(harness, "s1")
	first.signal(syscall.SIGKILL)
	c.until(harness, "s1", "the session without an owner", func(s *session.State) bool { return !s.Owned })
	return prompt
}

// returns has an editor start the proxy again and load its session.
func returns(t *testing.T, c *cell, harness string) *proxy {
	t.Helper()
	x := start(t, c.up.NATS, harness)
	x.greets()
	x.editor.send(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1","cwd":"/w",` +
		`"mcpServers":[]}}`)
	x.replies("session/load", "{}")
	x.editor.gets(`"id":7,"result"`)
	return x
}

// TestReturns: the proxy of an editor is killed while a permission waits. The editor starts another one and loads the
// session: it is shown the permission. The first decision counts, and reaches the agent once, in words.
func TestReturns(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	for _, by := range []string{"editor", "elsewhere", "before"} {
		t.Run(by, func(t *testing.T) {
			// it waits for other processes
			t.Parallel()
			harness := "returns-" + by
			prompt := left(t, c, harness)
			answer := func() {
				if code, output := c.run("answer", harness+"/s1", prompt, "Allow"); code != 0 {
					t.Fatalf("answer: %d: %s", code, output)
				}
			}
			if by == "before" {
				answer()
			}
			x := returns(t, c, harness)
			switch by {
			case "editor":
				id := x.editor.gets("session/request_permission")
				x.editor.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected",`+
					`"optionId":"option-1"}}}`, id)
			case "elsewhere":
				x.editor.gets("session/request_permission")
				answer()
				x.editor.gets("$/cancel_request")
			}
			turn := x.agent.gets("rm. The user has now answered: Allow.")
			x.agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}`)
			x.editor.gets("done")
			x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, turn)
			st := c.until(harness, "s1", "the end of the turn", turnOver)
			if len(st.Prompts) > 0 || st.Pending.Turn != nil || st.LastTurn.Outcome != session.OutcomeCompleted {
				t.Errorf("prompts %v, %+v, last turn %+v", st.Prompts, st.Pending, st.LastTurn)
			}
			facts := strings.Join(c.facts(harness, "s1"), "\n")
			if n := strings.Count(facts, "prompt.answered "); n != 1 {
				t.Errorf("%d answers in %s", n, facts)
			}
			// the session is free
			x.finishes(x.prompts("s1"))
		})
	}
}
