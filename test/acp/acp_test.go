package acp

import (
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestAnswers: the first answer counts, from the editor or from the command line. The agent gets one reply, and the
// other answer has no effect.
func TestAnswers(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	for _, elsewhere := range []bool{false, true} {
		harness := fmt.Sprint("answers-", elsewhere)
		x := start(t, c.up.NATS, harness)
		x.opens("s1")
		turn := x.prompts("s1")
		if st := c.state(harness, "s1"); st.Turn == nil {
			t.Error("the agent has the request before the turn is stored")
		}
		asked := x.asks("s1")
		prompt := c.prompt(harness, "s1")
		answer := func() {
			x.editor.send(
				`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}`, asked)
		}
		want := `"optionId":"no"`
		if elsewhere {
			if code, output := c.run("answer", harness+"/s1", prompt, "Allow"); code != 0 {
				t.Fatalf("answer: %d: %s", code, output)
			}
			want = `"optionId":"yes"`
		} else {
			answer()
		}
		if id := x.agent.gets(want); id != "77" {
			t.Errorf("the reply has the id %s", id)
		}
		if elsewhere {
			answer()
		} else if code, output := c.run("answer", harness+"/s1", prompt, "Allow"); code == 0 {
			t.Errorf("a second answer: %s", output)
		}
		x.finishes(turn)
		st := c.until(harness, "s1", "the end of the turn", func(s *session.State) bool { return s.Turn == nil })
		if len(st.Prompts) > 0 && st.Prompts[prompt] != nil && st.Prompts[prompt].Status == session.Awaiting {
			t.Errorf("the prompt is open: %+v", st.Prompts[prompt])
		}
		if err := x.editor.to.Close(); err != nil {
			t.Fatal(err)
		}
		if rest := x.agent.rest(); len(rest) > 0 {
			t.Errorf("the agent gets %v", rest)
		}
		if code := x.exit(); code != 0 {
			t.Errorf("exit %d", code)
		}
		if st = c.state(harness, "s1"); st.Owned || st.Left != session.LeftReleased {
			t.Errorf("owned %t, left %q", st.Owned, st.Left)
		}
	}
}

// dies kills the agent. The editor gets one error for its request, and so many updates of a call that failed.
func (x *proxy) dies(updates int) {
	x.t.Helper()
	x.killAgent()
	errs := 1
	for _, line := range x.editor.rest() {
		switch {
		case strings.Contains(line, `"id":"turn","error"`) && strings.Contains(line, "signal: killed"):
			errs--
		case strings.Contains(line, `"toolCallId":"c1","status":"failed"`):
			updates--
		default:
			x.t.Errorf("the editor gets %s", line)
		}
	}
	if errs != 0 || updates != 0 {
		x.t.Errorf("%d errors and %d updates are missing", errs, updates)
	}
}

// TestAgentKilled: each open request of the editor has one error that says why, each call has failed on the screen, and
// the session is orphaned with the reason. A permission stays, and can be answered. The next proxy continues the
// session.
func TestAgentKilled(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	for _, at := range []string{"turn", "tool", "permission"} {
		x := start(t, c.up.NATS, "killed")
		x.opens(at)
		for again := range 2 {
			if again > 0 {
				x = start(t, c.up.NATS, "killed")
				x.editor.send(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":%q}}`, at)
				x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, x.agent.gets("session/load"))
				x.editor.gets("result")
			}
			waits := again > 0 && at == "permission"
			if waits {
				x.editor.gets("session/request_permission")
			}
			x.prompts(at)
			if waits {
				// the message is in its place
				x.editor.gets("$/cancel_request")
			}
			updates := 0
			if at != "turn" {
				x.asks(at)
				updates = 1
			}
			if at == "tool" {
				prompt := c.prompt("killed", at)
				if code, text := c.run("answer", "killed/"+at, prompt, "Allow"); code != 0 {
					t.Fatalf("answer: %d: %s", code, text)
				}
				x.agent.gets("yes")
			}
			x.dies(updates)
			if code := x.exit(); code != 1 || !strings.Contains(x.output(), "signal: killed") {
				t.Errorf("%s: exit %d: %s", at, code, x.output())
			}
			st := c.until("killed", at, "recovery", func(s *session.State) bool {
				// a question that waits keeps its turn
				return !s.Owned && (at == "permission" || s.Turn == nil && len(s.Tools) == 0)
			})
			if r := st.Pending.Turn; at != "permission" && r != nil || st.Retry.State != "" {
				t.Errorf("%s: a turn is requested that no process takes: %+v, %+v", at, r, st.Retry)
			}
			n := 0
			for _, f := range c.facts("killed", at) {
				if strings.HasPrefix(f, "session.orphaned") &&
					strings.Contains(f, `"detail":"the agent's process ended: signal: killed"`) {
					n++
				}
			}
			if n != again+1 || st.Left != session.LeftOrphaned {
				t.Errorf("%s: orphaned %d times with the reason, left %q", at, n, st.Left)
			}
		}
		if at == "permission" {
			prompt := c.prompt("killed", at)
			if code, text := c.run("answer", "killed/"+at, prompt, "Allow"); code != 0 {
				t.Errorf("answer while no agent runs: %d: %s", code, text)
			}
		}
	}
}

// turnOver reports whether a session has had a turn, and has none.
func turnOver(s *session.State) bool { return s.Turn == nil && s.LastTurn != nil }

// TestNoBroker: without a broker all lines pass, in both directions, and one sentence says why nothing is stored. When
// the broker is there, the session is stored, and a prompt that was shown before says so. With --require the agent does
// not start.
func TestNoBroker(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	require := exec.Command(binary, "acp", "--require", "--timeout", "1s", "--nats", "nats://"+address, "--",
		"/bin/false")
	if out, _ := require.CombinedOutput(); require.ProcessState.ExitCode() != 3 {
		t.Errorf("--require: %v: %s", require.ProcessState, out)
	}
	x := start(t, "nats://"+address, "alone", "--wait", "1s")
	x.opens("s1")
	turn := x.prompts("s1")
	asked := x.asks("s1")
	x.editor.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, asked)
	x.agent.gets(`"optionId":"yes"`)
	asked = func() string {
		x.agent.send(`{"jsonrpc":"2.0","id":78,"method":"session/request_permission","params":{"sessionId":"s1",` +
			`"toolCall":{"toolCallId":"c2"},"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"}]}}`)
		return x.editor.gets("session/request_permission")
	}()
	x.saw("nothing is stored until the broker is reachable")
	c := &cell{t: t}
	c.start(t.TempDir(), address)
	// the first permission and its answer, too
	x.saw("session s1 is stored again")
	for line := range strings.Lines(x.output()) {
		if line != "the agent speaks\n" && !strings.HasPrefix(line, "holdfast: ") {
			t.Errorf("standard error has %q", line)
		}
	}
	prompt := c.prompt("alone", "s1")
	if all := c.facts("alone", "s1"); !slices.ContainsFunc(all, func(f string) bool {
		return strings.Contains(f, prompt) && strings.Contains(f, `"late":true`)
	}) {
		t.Errorf("the late prompt is not marked: %v", all)
	}
	if code, text := c.run("answer", "alone/s1", prompt, "Allow"); code != 0 {
		t.Fatalf("answer: %d: %s", code, text)
	}
	if id := x.agent.gets(`"optionId":"yes"`); id != "78" {
		t.Errorf("the reply has the id %s", id)
	}
	x.editor.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, asked)
	x.finishes(turn)
	c.until("alone", "s1", "the end of the turn", turnOver)
}

// TestBrokerLost: the broker ends in the middle of a turn. The lines pass, after the wait at most, and the facts are
// stored when it is back.
func TestBrokerLost(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	data := t.TempDir()
	c := &cell{t: t}
	c.start(data, "127.0.0.1:0")
	address := strings.TrimPrefix(c.up.NATS, "nats://")
	x := start(t, c.up.NATS, "lost", "--wait", "500ms")
	x.opens("s1")
	turn := x.prompts("s1")
	c.up.Kill()
	asked := x.asks("s1")
	x.editor.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, asked)
	x.agent.gets(`"optionId":"yes"`)
	x.finishes(turn)
	x.saw("session s1 continues, and is stored later")
	c.start(data, address)
	x.saw("session s1 is stored again")
	st := c.until("lost", "s1", "the end of the turn", turnOver)
	if !st.Owned || len(st.Tools) > 0 {
		t.Errorf("owned %t, calls %v", st.Owned, st.Tools)
	}
	turn = x.prompts("s1")
	c.until("lost", "s1", "the next turn", func(s *session.State) bool { return s.Turn != nil })
	x.finishes(turn)
}

// TestEnds: the proxy is asked to end, or is killed, in the middle of a turn. The agent's input ends, and the session
// is released, or recovered.
func TestEnds(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	for signal, want := range map[syscall.Signal]string{syscall.SIGTERM: session.LeftReleased,
		syscall.SIGKILL: session.LeftOrphaned} {
		harness := "ends-" + want
		x := start(t, c.up.NATS, harness)
		x.opens("s1")
		x.prompts("s1")
		x.asks("s1")
		prompt := c.prompt(harness, "s1")
		if err := x.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		x.agent.rest()
		x.exit()
		st := c.until(harness, "s1", "recovery", func(s *session.State) bool { return !s.Owned })
		if st.Left != want || st.Prompts[prompt] == nil || st.Prompts[prompt].Status != session.Awaiting {
			t.Errorf("%s: left %q, prompts %v", signal, st.Left, st.Prompts)
		}
		if code := x.cmd.ProcessState.ExitCode(); signal == syscall.SIGTERM && code != 0 {
			t.Errorf("exit %d: %s", code, x.output())
		}
	}
}

// TestEditorLeaves: the agent ends its turn. A request that only an editor can answer fails, and a permission is
// answered from the command line.
func TestEditorLeaves(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	x := start(t, c.up.NATS, "leaves")
	x.opens("s1")
	turn := x.prompts("s1")
	x.asks("s1")
	if err := x.editor.to.Close(); err != nil {
		t.Fatal(err)
	}
	x.agent.send(`{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/w/a"}}`)
	if id := x.agent.gets("the editor has left"); id != "9" {
		t.Errorf("the error has the id %s", id)
	}
	if code, text := c.run("answer", "leaves/s1", c.prompt("leaves", "s1"), "Allow"); code != 0 {
		t.Fatalf("answer: %d: %s", code, text)
	}
	x.agent.gets(`"optionId":"yes"`)
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, turn)
	if code := x.exit(); code != 0 {
		t.Errorf("exit %d: %s", code, x.output())
	}
	st := c.state("leaves", "s1")
	if st.Owned || st.Left != session.LeftReleased || st.LastTurn == nil || st.LastTurn.Outcome != "completed" {
		t.Errorf("owned %t, left %q, last turn %+v", st.Owned, st.Left, st.LastTurn)
	}
}

// TestStopped: a person stops the turn while a permission waits. The agent is asked to cancel it, and gets a reply to
// its request. The log shows the stop with its reason, and the next turn is not stopped.
func TestStopped(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := newCell(t)
	x := start(t, c.up.NATS, "stopped")
	x.opens("s1")
	turn := x.prompts("s1")
	x.asks("s1")
	prompt := c.prompt("stopped", "s1")
	if code, output := c.run("stop", "stopped/s1", "--force", "--reason", "enough"); code != 0 {
		t.Fatalf("stop: %d: %s", code, output)
	}
	x.agent.gets("session/cancel")
	if id := x.agent.gets(`"outcome":"cancelled"`); id != "77" {
		t.Errorf("the reply has the id %s", id)
	}
	c.until("stopped", "s1", "the end of the permission", func(s *session.State) bool {
		return s.Prompts[prompt] == nil || s.Prompts[prompt].Status != session.Awaiting
	})
	x.agent.send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}`, turn)
	x.editor.gets("cancelled")
	c.until("stopped", "s1", "the stop", func(s *session.State) bool {
		return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == "stopped"
	})
	if all := strings.Join(c.facts("stopped", "s1"), "\n"); !strings.Contains(all, "turn.stopped {") ||
		strings.Count(all, `"reason":"enough"`) != 2 {
		t.Errorf("the log has %s", all)
	}
	x.finishes(x.prompts("s1"))
	c.until("stopped", "s1", "the next turn", func(s *session.State) bool {
		return turnOver(s) && s.LastTurn.Outcome == "completed"
	})
}

// TestFenced: the proxy sleeps for longer than its lease, and recovery takes its session. The proxy takes it again when
// the next line has facts: a permission that waits is continued, and one that the turn asks afterwards can be answered
// although the log has ended the turn. The next turn is stored.
func TestFenced(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	for _, waits := range []bool{true, false} {
		t.Run(fmt.Sprint("waits ", waits), func(t *testing.T) {
			// it waits for other processes
			t.Parallel()
			fenced(t, waits)
		})
	}
}

func fenced(t *testing.T, waits bool) {
	data := t.TempDir()
	c := &cell{t: t}
	c.start(data, "127.0.0.1:0")
	address := strings.TrimPrefix(c.up.NATS, "nats://")
	harness := fmt.Sprint("fenced-", waits)
	x := start(t, c.up.NATS, harness)
	x.opens("s1")
	turn := x.prompts("s1")
	prompt := ""
	if waits {
		x.asks("s1")
		prompt = c.prompt(harness, "s1")
	} else {
		c.until(harness, "s1", "a turn", func(s *session.State) bool { return s.Turn != nil })
	}
	x.signal(syscall.SIGSTOP)
	c.up.Kill()
	c.start(data, address)
	c.until(harness, "s1", "recovery", func(s *session.State) bool {
		return !s.Owned && (waits || s.Turn == nil)
	})
	x.signal(syscall.SIGCONT)
	if !waits {
		x.asks("s1")
		prompt = c.prompt(harness, "s1")
	}
	x.agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
		`{"sessionUpdate":"tool_call","toolCallId":"c2","title":"ls","kind":"execute","status":"in_progress"}}}`)
	x.editor.gets("c2")
	c.until(harness, "s1", "the next owner", func(s *session.State) bool { return s.Owned })
	if code, output := c.run("answer", harness+"/s1", prompt, "Allow"); code != 0 {
		t.Fatalf("answer: %d: %s", code, output)
	}
	x.agent.gets(`"optionId":"yes"`)
	x.finishes(turn)
	turn = x.prompts("s1")
	c.until(harness, "s1", "the next turn", func(s *session.State) bool { return s.Turn != nil })
	x.asks("s1")
	if code, output := c.run("answer", harness+"/s1", c.prompt(harness, "s1"), "Allow"); code != 0 {
		t.Fatalf("answer: %d: %s", code, output)
	}
	x.agent.gets(`"optionId":"yes"`)
	x.finishes(turn)
	st := c.until(harness, "s1", "the end of the turn", turnOver)
	if !st.Owned || len(st.Prompts) > 0 || st.LastTurn.Outcome != "completed" {
		t.Errorf("owned %t, prompts %v, last turn %+v", st.Owned, st.Prompts, st.LastTurn)
	}
}
