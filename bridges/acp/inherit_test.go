package acp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// heir is a proxy whose editor has opened a session of an earlier process.
type heir struct {
	*Proxy
	t     *testing.T
	steps []Step // since the last call of drain
}

func newHeir(t *testing.T, forms bool) *heir {
	t.Helper()
	h := &heir{Proxy: New(Config{Run: "2", Content: agent.ContentTitles}), t: t}
	caps := "{}"
	if forms {
		caps = `{"elicitation":{"form":{}}}`
	}
	h.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":%s}}`, caps)
	h.agent(`{"jsonrpc":"2.0","id":1,"result":{"agentCapabilities":{"loadSession":true}}}`)
	h.loads()
	return h
}

// loads has the editor load the session.
func (h *heir) loads() {
	h.t.Helper()
	h.drain()
	h.editor(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s1","cwd":"/w"}}`)
	h.agent(`{"jsonrpc":"2.0","id":%d,"result":{}}`, h.n)
}

func (h *heir) editor(format string, args ...any) {
	h.steps = append(h.steps, h.FromEditor(time.Time{}, fmt.Appendf(nil, format, args...))...)
}

func (h *heir) agent(format string, args ...any) {
	h.steps = append(h.steps, h.FromAgent(time.Time{}, fmt.Appendf(nil, format, args...))...)
}

func (h *heir) inherits(in Inherited) {
	in.Session, in.Turn = "s1", "t1"
	h.steps = append(h.steps, h.Inherit(time.Time{}, in)...)
}

func (h *heir) decided(a harness.Answer) {
	h.steps = append(h.steps, h.Decided(time.Time{}, "p1", a)...)
}

// drain returns the facts and the lines of the steps since its last call.
func (h *heir) drain() string {
	var b strings.Builder
	for _, s := range h.steps {
		for _, f := range s.Facts {
			fmt.Fprintf(&b, "fact %s %s\n", f.Kind(), encode(f))
		}
		if s.Inherit {
			b.WriteString("inherit\n")
		}
		for _, l := range s.Lines {
			fmt.Fprintf(&b, "%s %s\n", l.To, l.Raw)
		}
	}
	h.steps = nil
	return b.String()
}

// sees checks the steps since the last look: each text has to be there, in this order.
func (h *heir) sees(texts ...string) {
	h.t.Helper()
	all := h.drain()
	rest := all
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			h.t.Errorf("no %q in its place in\n%s", text, all)
			return
		}
		rest = after
	}
	if len(texts) == 0 && all != "" {
		h.t.Errorf("not expected:\n%s", all)
	}
}

func leftPermission() Inherited {
	f := permission("p1", "t1")
	f.Questions[0].Options = []events.Option{{Label: "Allow", Description: "allow_once"}, {Label: "Always"}}
	f.Native = encode(native{Method: methodPermission, Call: "c9"})
	return Inherited{Prompts: []events.PromptRequested{f}}
}

func leftQuestion() Inherited {
	return Inherited{Prompts: []events.PromptRequested{{Prompt: "p1", Turn: "t1", Call: "call1",
		PromptKind: events.PromptQuestion, Title: "Where?", Questions: []events.Question{
			{ID: "q2", Question: "Which?", Options: []events.Option{{Label: "a"}, {Label: "b", Description: "bee"}}},
			{ID: "q1", Header: "Who", Question: "Which ones?", Multi: true, Options: []events.Option{{Label: "x"}}},
			{ID: "q3", Question: "Why?", Custom: true}}}}}
}

const heirGrants = `{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`

// TestInheritedPermission: the permission of an earlier process is shown, again when the session is opened again, and a
// reply that does not decide leaves it open. The decision of the editor is a fact, and reaches the agent in words. The
// end of the turn is recorded, and answers no request of the editor.
func TestInheritedPermission(t *testing.T) {
	t.Parallel()
	h := newHeir(t, false)
	h.sees("inherit", `editor {"jsonrpc":"2.0","id":7,"result"`)
	h.inherits(leftPermission())
	h.sees(fmt.Sprintf(`editor {"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":`, h.n) +
		`{"sessionId":"s1","toolCall":{"toolCallId":"c9","title":"rm"},"options":[` +
		`{"optionId":"option-1","name":"Allow","kind":"allow_once"},` +
		`{"optionId":"option-2","name":"Always","kind":"allow_once"},` +
		`{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}`)
	for _, reply := range []string{`"error":{"code":-32601,"message":"no"}`,
		`"result":{"outcome":{"outcome":"cancelled"}}`} {
		h.editor(`{"jsonrpc":"2.0","id":%d,%s}`, h.n, reply)
		h.sees()
		h.loads()
		h.sees(methodPermission)
	}
	first := h.n
	h.loads()
	h.sees(methodPermission)
	h.editor(heirGrants, h.n, "option-2")
	h.sees(`fact prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["Always"]}],` +
		`"by":"editor"}`)
	h.decided(harness.Answer{Status: fold.Answered,
		Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"Always"}}}})
	h.sees(fmt.Sprintf(`editor {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, first),
		`agent {"jsonrpc":"2.0","id":`, `session/prompt`, "rm. The user has now answered: Always.")
	turn := h.n
	h.editor(`{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}`)
	h.sees()
	// equal to what was permitted, as far as the log has it
	h.agent(`{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s1",` +
		`"toolCall":{"title":"rm"},"options":[{"optionId":"o","name":"Always","kind":"allow_always"}]}}`)
	h.sees("fact prompt.requested", "editor")
	h.agent(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, turn)
	h.sees(`fact turn.completed {"turn":"t1"`, "fact turn.started", "agent")
}

// TestInheritedRejection: a rejection reaches the agent with its text, and the request on the screen is cancelled.
func TestInheritedRejection(t *testing.T) {
	t.Parallel()
	h := newHeir(t, false)
	h.inherits(leftPermission())
	h.editor(heirGrants, h.n, "reject")
	h.sees(`fact prompt.rejected {"prompt":"p1","by":"editor"}`)
	h = newHeir(t, false)
	h.inherits(leftPermission())
	h.decided(harness.Answer{Status: fold.Rejected, Text: "use mv"})
	h.sees(methodCancelRequest, "The user has now answered: rejected: use mv.")
}

// TestInheritedQuestion: an editor that shows forms is shown the questions of an earlier process. The call of the
// question ends with the answer. Another editor is shown none.
func TestInheritedQuestion(t *testing.T) {
	t.Parallel()
	h := newHeir(t, true)
	h.inherits(leftQuestion())
	h.sees(`"method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"Where?",` +
		`"requestedSchema":{"type":"object","properties":{"q2":{"type":"string","description":"Which?","oneOf":[` +
		`{"const":"a","title":"a"},{"const":"b","title":"bee"}]},"q1":{"type":"array","title":"Who",` +
		`"description":"Which ones?","items":{"anyOf":[{"const":"x","title":"x"}]}},` +
		`"q3":{"type":"string","description":"Why?"}}}}}`)
	h.editor(`{"jsonrpc":"2.0","id":%d,"result":{"action":"cancel"}}`, h.n)
	h.sees()
	h.loads()
	h.drain()
	h.editor(`{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"q2":"b","q1":["x"],"q3":"so"}}}`, h.n)
	answers := []events.Answer{{Question: "q2", Selected: []string{"b"}}, {Question: "q1", Selected: []string{"x"}},
		{Question: "q3", Text: "so"}}
	h.sees(`fact prompt.answered {"prompt":"p1","answers":[{"question":"q2","selected":["b"]},{"question":"q1",` +
		`"selected":["x"]},{"question":"q3","selected":[],"text":"so"}],"by":"editor"}`)
	h.decided(harness.Answer{Status: fold.Answered, Answers: answers})
	h.sees(`fact tool.completed {"call":"call1"`, "agent", "Where?. The user has now answered: b, x, so.")
	h = newHeir(t, true)
	h.inherits(leftQuestion())
	h.editor(`{"jsonrpc":"2.0","id":%d,"result":{"action":"decline"}}`, h.n)
	h.sees("fact prompt.rejected")
	h = newHeir(t, false)
	h.drain()
	h.inherits(leftQuestion())
	h.sees()
}

// TestInheritedAndTheEditorContinues: a message of the editor, or a cancellation, stops the turn of an earlier process
// that waits. The request on the screen is cancelled.
func TestInheritedAndTheEditorContinues(t *testing.T) {
	t.Parallel()
	prompt := `{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}`
	h := newHeir(t, false)
	h.inherits(leftPermission())
	h.drain()
	h.editor(`%s`, prompt)
	h.sees(`fact turn.stopped {"turn":"t1","actor":"person"`, methodCancelRequest, "fact turn.started", "agent")
	h.decided(harness.Answer{Status: fold.Withdrawn})
	h.sees()
	h = newHeir(t, false)
	h.inherits(leftPermission())
	h.drain()
	h.editor(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`)
	h.sees(`fact turn.stopped {"turn":"t1"`, methodCancelRequest)
	if h.busy() || h.sessions["s1"].turn != nil {
		t.Error("a turn is open")
	}
	// the turn has taken its place in the log
	h = newHeir(t, false)
	h.editor(`%s`, prompt)
	h.agent(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, h.n)
	h.drain()
	h.inherits(leftPermission())
	h.sees()
	h.loads()
	h.sees("inherit")
	h.inherits(leftPermission())
	h.sees(methodPermission)
	h.loads()
	if all := h.drain(); strings.Contains(all, "inherit\n") {
		t.Errorf("in a turn: %s", all)
	}
	// twice
	h.inherits(leftPermission())
	h.sees()
}

// TestInheritedDecisions: the decisions that were made meanwhile reach the agent. If its process has ended, the next
// one has them. While the turn waits for people, nothing of the agent runs.
func TestInheritedDecisions(t *testing.T) {
	t.Parallel()
	made := []fold.TurnPrompt{{Prompt: "p0", Title: "ls", WorkPrompt: fold.WorkPrompt{Status: fold.Answered,
		Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"Allow"}}}}}}
	const words = "ls. The user has now answered: Allow."
	h := newHeir(t, false)
	h.inherits(Inherited{Decisions: made})
	h.sees("agent", words)
	if !h.busy() {
		t.Error("the turn of the agent does not count")
	}
	// the agent asks for one more
	h = newHeir(t, false)
	in := leftPermission()
	in.Decisions = made
	h.drain()
	h.inherits(in)
	h.sees(methodPermission)
	if h.busy() {
		t.Error("a turn that waits for people counts")
	}
	h.decided(harness.Answer{Status: fold.Expired})
	h.sees("agent", words, "rm. The user has now answered: expired.")
	h = newHeir(t, false)
	h.AgentExited(time.Time{}, "exit 1")
	h.AgentReturns(time.Time{}, "exit 1")
	h.drain()
	h.inherits(Inherited{Decisions: made})
	h.sees()
	h.steps = h.AgentStarted(time.Time{})
	h.agent(`{"jsonrpc":"2.0","id":%d,"result":{"agentCapabilities":{"loadSession":true}}}`, h.n)
	h.sees("initialize", methodLoad)
	h.agent(`{"jsonrpc":"2.0","id":%d,"result":{}}`, h.n)
	h.sees("agent", words)
	// no process comes
	h = newHeir(t, false)
	h.AgentGone(time.Time{}, "exit 1")
	h.drain()
	h.inherits(in)
	h.sees()
}
