package acp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// hiddenTurn begins a turn whose content is not stored, with a call.
func hiddenTurn(t *testing.T) *world {
	t.Helper()
	w := begun(t)
	w.proxy.cfg.Content = agent.ContentNone
	w.editor(editorPrompt)
	w.agent(agentCall)
	return w
}

// TestHiddenPrompts: at the level none a person sees that the agent waits, and where the text is. The choices have no
// content, and their ids or numbers reach the agent as its own options.
func TestHiddenPrompts(t *testing.T) {
	w := hiddenTurn(t)
	w.agent(agentAsks)
	f := w.prompts[0]
	if q := f.Questions[0]; q.Question != agent.HiddenPermission || f.Title != "" || q.Options[0].Label != "o1" {
		t.Errorf("the log has %+v", f)
	}
	w.person(f.Prompt, events.PromptAnswered{Prompt: f.Prompt, By: "ada",
		Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"o1"}}}})
	if got := w.last(Agent); !strings.Contains(got, `"optionId":"o1"`) {
		t.Errorf("the agent got %s", got)
	}
	w.agent(fmt.Sprintf(agentElicits, schemaAll))
	f = w.prompts[len(w.prompts)-1]
	for _, q := range f.Questions {
		if q.Question != agent.HiddenQuestion || q.Header != "" {
			t.Errorf("the log has %+v", q)
		}
	}
	w.person(f.Prompt, events.PromptAnswered{Prompt: f.Prompt, By: "ada",
		Answers: []events.Answer{{Question: "q1", Selected: []string{"option 2"}}}})
	if got := w.last(Agent); !strings.Contains(got, `"content":{"z":"a"}`) {
		t.Errorf("the agent got %s", got)
	}
	for _, what := range []string{"Say it", "make", "Allow", "how many", "The X"} {
		if facts := strings.Join(w.facts, "\n"); strings.Contains(facts, what) {
			t.Errorf("%q is in the log: %s", what, facts)
		}
	}
}

// TestHiddenAnswerOfTheDead: a decision about a question of a dead process reaches the agent in the agent's own words,
// which the log does not have.
func TestHiddenAnswerOfTheDead(t *testing.T) {
	for _, permission := range []bool{false, true} {
		w := hiddenTurn(t)
		want := []string{"Say it.", ": a"}
		answer := events.Answer{Question: "q1", Selected: []string{"option 2"}}
		if permission {
			w.agent(agentAsks)
			want = []string{"make all", ": Allow"}
			answer = events.Answer{Question: events.PermissionQuestion, Selected: []string{"o1"}}
		} else {
			w.agent(fmt.Sprintf(agentElicits, schemaAll))
		}
		id := w.prompts[0].Prompt
		a := w.revive()
		w.person(id, events.PromptAnswered{Prompt: id, By: "ada", Answers: []events.Answer{answer}})
		a.run()
		output := strings.Join(w.to(Agent), "\n")
		for _, words := range want {
			if !strings.Contains(output, words) {
				t.Errorf("permission %t: %q is missing: %s", permission, words, output)
			}
		}
		if strings.Contains(output, "option 2") {
			t.Errorf("the agent reads the number of an option: %s", output)
		}
	}
}
