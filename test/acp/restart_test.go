package acp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// greets has the agent say that it can load sessions.
func (x *proxy) greets() {
	x.t.Helper()
	x.editor.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`,
		x.agent.gets("initialize"))
	x.editor.gets("loadSession")
}

// replies has the agent reply to the next line, which is a request with this text in it.
func (x *proxy) replies(text, result string) {
	x.t.Helper()
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, x.agent.gets(text), result)
}

// TestRestart: the agent is killed in the middle of a turn. The next process has the session and its mode before
// anything else, and continues the turn. The editor sees one end of its request, each permission once, and no call that
// stays open. An answer that was given while no process had the session reaches the agent once. In the log the turn is
// one turn of one owner.
func TestRestart(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	for _, at := range []string{"turn", "tool", "answered in the editor", "answered elsewhere", "stopped"} {
		t.Run(at, func(t *testing.T) {
			// it waits for other processes
			t.Parallel()
			restarts(t, c, at)
		})
	}
}

func restarts(t *testing.T, c *cell, at string) {
	harness := "restart-" + strings.ReplaceAll(at, " ", "-")
	x := start(t, c.up.NATS, harness)
	x.greets()
	x.opens("s1")
	x.editor.send(`{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"careful"}}`)
	x.replies("session/set_mode", "{}")
	x.editor.gets(`"id":2`)
	x.prompts("s1")
	asked := ""
	calls := at != "turn" && at != "stopped"
	if calls {
		asked = x.asks("s1")
	}
	if at == "tool" {
		x.allows(asked)
		x.agent.gets(`"optionId":"yes"`)
	}
	x.killAgent()
	if at == "tool" {
		x.editor.gets(`"toolCallId":"c1","status":"failed"`)
	}
	x.begins()
	greeting := x.agent.gets("initialize")
	c.decides(x, at, harness, asked)
	if calls {
		st := c.until(harness, "s1", "the end of the call", func(s *session.State) bool { return len(s.Tools) == 0 })
		if st.Turn == nil || !st.Owned {
			t.Errorf("turn %+v, owned %t", st.Turn, st.Owned)
		}
	}
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`,
		greeting)
	x.replies("session/load", "{}")
	x.replies(`"modeId":"careful"`, "{}")
	if at != "stopped" {
		x.goesOn(at, calls && at != "tool")
	}
	if err := x.editor.to.Close(); err != nil {
		t.Fatal(err)
	}
	if rest := x.editor.rest(); len(rest) > 0 {
		t.Errorf("the editor gets %v", rest)
	}
	if code := x.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.oneTurn(harness, map[bool]int{true: 1}[calls])
}

// allows has the editor grant a permission.
func (x *proxy) allows(asked string) {
	x.t.Helper()
	x.editor.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, asked)
}

// decides has a person answer or stop while the next process of the agent has no session yet.
func (c *cell) decides(x *proxy, at, harness, asked string) {
	x.t.Helper()
	switch at {
	case "answered in the editor":
		prompt := c.prompt(harness, "s1")
		x.allows(asked)
		c.until(harness, "s1", "the answer", func(s *session.State) bool {
			return s.Prompts[prompt] == nil || s.Prompts[prompt].Status != session.Awaiting
		})
	case "answered elsewhere":
		if code, output := c.run("answer", harness+"/s1", c.prompt(harness, "s1"), "Allow"); code != 0 {
			x.t.Fatalf("answer: %d: %s", code, output)
		}
	case "stopped":
		if code, output := c.run("stop", harness+"/s1"); code != 0 {
			x.t.Fatalf("stop: %d: %s", code, output)
		}
		if id := x.editor.gets(`"stopReason":"cancelled"`); id != `"turn"` {
			x.t.Errorf("the reply has the id %s", id)
		}
		c.until(harness, "s1", "the stop", func(s *session.State) bool {
			return turnOver(s) && s.LastTurn.Outcome == "stopped"
		})
	}
}

// goesOn plays the rest of a turn in the next process of the agent. It asks again for what was answered.
func (x *proxy) goesOn(at string, answered bool) {
	x.t.Helper()
	line := x.agent.next()
	if !strings.Contains(line, "session/prompt") || strings.Contains(line, "has now answered: Allow") != answered {
		x.t.Errorf("%s: the agent gets %s", at, line)
	}
	if answered {
		x.editor.gets(`"toolCallId":"c1","status":"failed"`)
		x.agent.send(`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1",` +
			`"toolCall":{"toolCallId":"c2","title":"rm"},"options":[{"optionId":"ok","name":"Allow",` +
			`"kind":"allow_once"}]}}`)
		if id := x.agent.gets(`"optionId":"ok"`); id != "0" {
			x.t.Errorf("the reply has the id %s", id)
		}
	}
	x.finishes(idOf(x.t, line))
}

// oneTurn checks that the log has one turn of one owner, with so many prompts. A call of a dead process has failed.
func (c *cell) oneTurn(harness string, prompts int) {
	c.t.Helper()
	n := map[string]int{}
	for _, f := range c.facts(harness, "s1") {
		kind, data, _ := strings.Cut(f, " ")
		n[kind]++
		if kind == "tool.failed" && !strings.Contains(data, "signal: killed") {
			c.t.Errorf("a call fails: %s", data)
		}
	}
	for kind, want := range map[string]int{"session.claimed": 0, "session.orphaned": 0, "session.released": 1,
		"turn.started": 1, "prompt.requested": prompts, "tool.failed": prompts} {
		if n[kind] != want {
			c.t.Errorf("%s: %d %s, want %d", harness, n[kind], kind, want)
		}
	}
}

// TestRestartsAreLimited: an agent that ends again and again is given up. The request has one error with the reason,
// the session is orphaned with it, and the program ends. The end of a turn begins the count again.
func TestRestartsAreLimited(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	x := start(t, c.up.NATS, "limited", "--restart", "2")
	x.greets()
	x.opens("s1")
	x.prompts("s1")
	returns := func() {
		x.killAgent()
		x.begins()
		x.replies("initialize", `{"agentCapabilities":{"loadSession":true}}`)
		x.replies("session/load", "{}")
	}
	returns()
	returns()
	x.finishes(x.agent.gets("session/prompt"))
	x.prompts("s1")
	returns()
	x.agent.gets("was restarted")
	returns()
	x.agent.gets("was restarted")
	x.dies(0)
	if code := x.exit(); code != 1 || strings.Count(x.output(), "it is started again") != 4 {
		t.Errorf("exit %d: %s", code, x.output())
	}
	c.until("limited", "s1", "recovery", func(s *session.State) bool { return !s.Owned && s.Turn == nil })
	if all := fmt.Sprint(c.facts("limited", "s1")); strings.Count(all, "session.orphaned") != 1 ||
		!strings.Contains(all, `"detail":"the agent's process ended: signal: killed"`) {
		t.Errorf("the log has %s", all)
	}
}
