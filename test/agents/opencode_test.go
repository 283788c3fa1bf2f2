//go:build agents

package agents

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

type object = map[string]any

func bash(command string) mockmodel.Step {
	return mockmodel.Tool("bash", object{"command": command, "description": "a command", "timeout": longest})
}

// longest is the time limit of a command, in milliseconds: OpenCode's own limit is two minutes.
const longest = 600_000

// waits is a command that ends when the test does.
const waits = "echo started; until [ -e go ]; do sleep 0.2; done"

var question = mockmodel.Tool("question", object{"questions": []object{{"question": "Which database?",
	"header": "Database", "options": []object{{"label": "Postgres", "description": "a server"},
		{"label": "SQLite", "description": "a file"}}}}})

func completed(s *session.State) bool {
	return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == session.OutcomeCompleted && s.Pending.Turn == nil
}

func interrupted(s *session.State) bool {
	return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == session.OutcomeInterrupted
}

// scripts are what the model does in each session that is killed.
var scripts = map[string][]mockmodel.Step{
	"tool": {bash(waits), mockmodel.Text("Done.")},
	"parallel": {{Calls: []mockmodel.Call{
		{Tool: "bash", Args: object{"command": "echo quick", "description": "ends"}},
		{Tool: "bash", Args: object{"command": waits, "description": "runs", "timeout": longest}},
		{Tool: "bash", Args: object{"command": "rm -f parallel.txt", "description": "asks"}},
	}}, mockmodel.Text("Done.")},
	"question":   {question, mockmodel.Text("Done.")},
	"permission": {bash("rm -f granted.txt"), bash("rm -f granted.txt"), mockmodel.Text("Done.")},
	"stream":     {{Text: "It is done.", Gate: "on"}},
	"retry":      {{Text: "Done.", Status: http.StatusInternalServerError, Gate: "on"}},
	"agent": {mockmodel.Tool("task", object{"description": "a part", "prompt": "Do it. <<inner>>",
		"subagent_type": "general"}), mockmodel.Text("Done.")},
	"inner":   {bash(waits), mockmodel.Text("Done.")},
	"compact": {mockmodel.Text("Done.")},
}

// crash brings one session into each state in which it can be killed, and returns the sessions.
func (w *world) crash() map[string]string {
	w.Helper()
	for name, steps := range scripts {
		w.model.Script(name, steps...)
	}
	w.model.Script(mockmodel.Summary, mockmodel.Step{Text: "A summary.", Gate: "on"})
	ids := map[string]string{}
	for name := range scripts {
		if name != "inner" && name != "retry" {
			ids[name] = w.begins(name)
		}
	}
	w.until(ids["compact"], "a turn completed", completed)
	// it answers when the summary is there
	go func() {
		_ = w.try(http.MethodPost, "/session/"+ids["compact"]+"/summarize",
			object{"providerID": "mock", "modelID": "big"}, nil)
	}()
	runs := func(n int) func(*session.State) bool {
		return func(s *session.State) bool { return len(s.Tools) >= n }
	}
	w.until(ids["tool"], "a command runs", runs(1))
	w.until(ids["parallel"], "a command runs, and one asks", func(s *session.State) bool {
		return len(s.Tools) == 2 && len(s.PendingPrompts()) == 1
	})
	w.until(ids["question"], "a question waits", func(s *session.State) bool { return len(s.PendingPrompts()) == 1 })
	w.until(ids["permission"], "a permission waits", func(s *session.State) bool {
		return len(s.PendingPrompts()) == 1
	})
	w.until(ids["agent"], "a sub-agent runs", runs(1))
	var children []struct {
		ID string `json:"id"`
	}
	natstest.Until(w, "the sub-agent has a session", func() bool {
		return w.try(http.MethodGet, "/session/"+ids["agent"]+"/children", nil, &children) == nil && len(children) == 1
	})
	ids["inner"] = children[0].ID
	w.until(ids["inner"], "the command of the sub-agent runs", runs(1))
	// the last one: OpenCode tries for a minute
	ids["retry"] = w.begins("retry")
	natstest.Until(w, "the others are at work", func() bool {
		var status map[string]struct {
			Type string `json:"type"`
		}
		if w.try(http.MethodGet, "/session/status", nil, &status) != nil || status[ids["retry"]].Type != "retry" {
			return false
		}
		return len(w.model.Requests("stream")) > 0 && len(w.model.Requests(mockmodel.Summary)) > 0
	})
	for name, id := range ids {
		natstest.Until(w, name+" is open in the store", func() bool { return len(w.open(id)) > 0 })
	}
	return ids
}

// TestKilled kills OpenCode in each state that its store cannot show as ended: OpenCode alone shows all of them as
// running for ever. Each one is repaired without a person, and continues when one asks.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	ids := w.crash()
	asked := w.prompt(ids["question"])
	w.server.Kill()
	w.model.Open("on")
	w.types("answer", "opencode/"+ids["question"], asked, "SQLite")
	w.starts()
	for name, id := range ids {
		natstest.Until(t, name+" has an end in the store", func() bool { return len(w.open(id)) == 0 })
	}

	// the answer that was given while the server was dead is the result of the call
	w.until(ids["question"], "the question's turn completed", completed)
	if !w.saw("question", `"Which database?"="SQLite"`) || w.count(ids["question"], "user") != 1 {
		t.Errorf("the model was shown %v", w.model.Requests("question"))
	}
	w.permitted(ids["permission"])
	w.permittedAmong(ids["parallel"])
	for _, name := range []string{"tool", "stream", "retry", "agent"} {
		w.until(ids[name], name+" is interrupted", interrupted)
		w.types("resume", "opencode/"+ids[name])
		w.until(ids[name], name+" completed", completed)
		if n := w.count(ids[name], "user"); n != 1 {
			t.Errorf("%s: the person's message is there %d times", name, n)
		}
	}
	if !w.saw("tool", "It may have had an effect") {
		t.Errorf("the model was shown %v", w.model.Requests("tool"))
	}

	// a session that was killed in a compaction answers with an answer, and not with a summary
	w.model.Script("next", mockmodel.Text("The next answer."))
	w.types("send", "opencode/"+ids["compact"], "Go on. <<next>>")
	w.until(ids["compact"], "the next turn completed", func(s *session.State) bool {
		return completed(s) && len(w.model.Requests("next")) > 0
	})
	last := w.messages(ids["compact"])
	if m := last[len(last)-1]; m.Info.Role != "assistant" || m.Info.Summary == true {
		t.Errorf("the last message is %+v", m)
	}
	for name, id := range ids {
		if open := w.open(id); len(open) > 0 {
			t.Errorf("%s has no end: %v", name, open)
		}
	}
}

// permitted: no process had the decision about the command that waited. It is called again, and asks again.
func (w *world) permitted(id string) {
	w.Helper()
	w.until(id, "it has no owner", func(s *session.State) bool { return !s.Owned })
	first := w.prompt(id)
	w.types("answer", "opencode/"+id, first, "once")
	var second string
	natstest.Until(w, "the next permission waits", func() bool {
		second = w.prompt(id)
		return second != first
	})
	w.types("answer", "opencode/"+id, second, "once")
	w.until(id, "the permission's turn completed", completed)
	for _, m := range w.messages(id) {
		for _, p := range m.Parts {
			if p.State.Status == "error" && p.State.Error != "OpenCode was restarted before this call had a result. "+
				"A person has permitted it since: call it again." {
				w.Errorf("the call that waited says %q", p.State.Error)
			}
		}
	}
}

// permittedAmong: one of several calls waited for a permission. Its decision continues the turn, and the model reads
// what became of the call that ran.
func (w *world) permittedAmong(id string) {
	w.Helper()
	w.until(id, "it has no owner", func(s *session.State) bool { return !s.Owned })
	w.types("answer", "opencode/"+id, w.prompt(id), "once")
	w.until(id, "the turn of several calls completed", completed)
	if n := w.count(id, "user"); n != 1 || !w.saw("parallel", "It may have had an effect") {
		w.Errorf("the person's message is there %d times, the model was shown %v", n, w.model.Requests("parallel"))
	}
}

// TestKilledTwice kills OpenCode at a question, and again in the answer that follows the question.
func TestKilledTwice(t *testing.T) {
	w := newWorld(t)
	w.model.Script("twice", question, mockmodel.Step{Text: "It is done.", Gate: "twice"})
	id := w.begins("twice")
	asked := w.prompt(id)
	w.server.Kill()
	w.starts()
	// while the bridge connects, or repairs
	w.server.Kill()
	w.types("answer", "opencode/"+id, asked, "2")
	w.starts()
	natstest.Until(t, "the model is shown the answer", func() bool { return w.saw("twice", `="SQLite"`) })
	w.until(id, "the turn runs", func(s *session.State) bool { return s.Turn != nil })
	w.server.Kill()
	w.model.Open("twice")
	w.starts()
	w.until(id, "the turn is interrupted", interrupted)
	natstest.Until(t, "it has an end in the store", func() bool { return len(w.open(id)) == 0 })
	w.types("resume", "opencode/"+id)
	w.until(id, "the turn completed", completed)
	if !w.saw("twice", `="SQLite"`) || w.count(id, "user") != 1 {
		t.Errorf("the model was shown %v", w.model.Requests("twice"))
	}
}

// TestSent sends a message to a session without one, and to one with an answer: each is one message, behind the others.
func TestSent(t *testing.T) {
	w := newWorld(t)
	w.model.Script("first", mockmodel.Text("Done."))
	w.model.Script("second", mockmodel.Text("Done again."))
	id := w.begins("first")
	first := w.until(id, "the turn completed", completed)
	for n, text := range []string{"More. <<second>>", "And more. <<second>>"} {
		w.types("send", "opencode/"+id, text)
		w.until(id, "the next turn completed", func(s *session.State) bool {
			return completed(s) && s.LastTurn.ID != first.LastTurn.ID && len(w.model.Requests("second")) > n
		})
		if got := w.count(id, "user"); got != n+2 {
			t.Errorf("%d messages", got)
		}
		sent := w.messages(id)[2*n+2]
		if len(sent.Parts) == 0 || !strings.HasPrefix(sent.Parts[0].Metadata.Holdfast.Turn, "turn-") {
			t.Errorf("the message has no mark: %+v", sent)
		}
	}
}

// TestDecisionsOfAPerson: a person rejects a question with a text, and lets a run continue that repeats a call.
// OpenCode asks for that permission without a call. It has no text for a rejected question: the model is shown the text
// as the answer.
func TestDecisionsOfAPerson(t *testing.T) {
	w := newWorld(t)
	same := mockmodel.Call{Tool: "bash", Args: object{"command": "echo again", "description": "a command"}}
	w.model.Script("rejected", question, mockmodel.Text("Done."))
	w.model.Script("repeated", mockmodel.Step{Calls: []mockmodel.Call{same, same, same}}, mockmodel.Text("Done."))
	rejected, repeated := w.begins("rejected"), w.begins("repeated")
	w.types("reject", "opencode/"+rejected, w.prompt(rejected), "neither, use files")
	s := w.until(rejected, "the turn of the question completed", completed)
	if !w.saw("rejected", "The user rejected this question: neither, use files") {
		t.Errorf("the model was shown %v", w.model.Requests("rejected"))
	}
	delivered(t, s)
	asked := w.prompt(repeated)
	if p := w.until(repeated, "it waits", func(*session.State) bool { return true }).Prompts[asked]; p.Call != "" {
		t.Errorf("the permission has a call: %+v", p)
	}
	w.types("answer", "opencode/"+repeated, asked, "once")
	delivered(t, w.until(repeated, "the turn that repeats a call completed", completed))
}

// delivered checks that each prompt of a session was delivered, and that no turn was requested for one.
func delivered(t *testing.T, s *session.State) {
	t.Helper()
	for i := range s.Recent {
		if e := &s.Recent[i]; e.Entity == session.EntityPrompt &&
			(e.DeliveredAt.IsZero() || strings.HasPrefix(e.Reason, "refused")) {
			t.Errorf("%+v", e)
		}
	}
	if s.Continuations.Count != 0 {
		t.Errorf("%d turns were requested for decisions", s.Continuations.Count)
	}
}
