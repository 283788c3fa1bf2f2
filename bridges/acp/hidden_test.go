package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// hello is what an editor says first, with these capabilities.
const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
	`"clientCapabilities":%s,"clientInfo":{"name":"e"}}}`

const schemaOne = `"mode":"form","requestedSchema":{"type":"object","properties":{"z":{"type":"string",` +
	`"enum":["b","a"]}}}`

// greeted is a world in which a turn runs, of an editor with these capabilities. People can answer elsewhere.
func greeted(t *testing.T, caps string) *world {
	t.Helper()
	w := newWorld(t, agent.ContentTitles)
	w.proxy.cfg.Forms = func() bool { return true }
	w.editor(fmt.Sprintf(hello, caps))
	w.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"agentCapabilities":{"loadSession":true}}}`,
		w.id(Agent, "initialize")))
	w.editor(editorNew)
	w.agent(fmt.Sprintf(agentNew, w.id(Agent, "session/new")))
	w.editor(editorPrompt)
	return w
}

// TestFormsAreOffered: initialize says to the agent that forms are shown, if its editor shows some or people can answer
// elsewhere. Nothing else of what the editor said changes.
func TestFormsAreOffered(t *testing.T) {
	t.Parallel()
	for caps, want := range map[string]string{
		`{}`:                           `{"elicitation":{"form":{}}}`,
		`null`:                         `{"elicitation":{"form":{}}}`,
		`{"fs":{"x":[1, 2]},"t":1}`:    `{"elicitation":{"form":{}},"fs":{"x":[1,2]},"t":1}`,
		`{"elicitation":{"url":{}}}`:   `{"elicitation":{"form":{},"url":{}}}`,
		`{"elicitation":{"form":{ }}}`: `{"elicitation":{"form":{ }}}`, // byte for byte
	} {
		w := greeted(t, caps)
		first := w.to(Agent)[0]
		if !strings.Contains(first, `"clientCapabilities":`+want) || !strings.Contains(first, `"protocolVersion":1`) ||
			!strings.Contains(first, `"clientInfo":{"name":"e"}`) {
			t.Errorf("%s: the agent got %s, want %s", caps, first, want)
		}
		w.kill(func() {})
		if again := w.id(Agent, `"clientCapabilities":`+want); again == "" {
			t.Errorf("%s: the next process got %v", caps, w.to(Agent))
		}
	}
	w := newWorld(t, agent.ContentTitles)
	w.proxy.cfg.Forms = func() bool { return true }
	w.editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":[1]}`)
	if got := w.to(Agent)[0]; !strings.Contains(got, `"params":[1]`) {
		t.Errorf("params that are no object become %s", got)
	}
	w = newWorld(t, agent.ContentTitles)
	w.proxy.cfg.Forms = func() bool { return false }
	w.editor(fmt.Sprintf(hello, `{ "fs" : {}}`))
	if got := w.to(Agent)[0]; !strings.Contains(got, `"clientCapabilities":{ "fs" : {}}`) {
		t.Errorf("people cannot answer, and the agent got %s", got)
	}
	// of a session that is not known: as without the proxy
	w.agent(fmt.Sprintf(agentElicits, schemaOne))
	if got := w.to(Editor); len(got) != 1 || !strings.Contains(got[0], methodElicitation) {
		t.Errorf("the editor got %v", got)
	}
}

// TestHiddenForm: an editor that shows no forms is sent none, also when it loads the session again. A person answers
// elsewhere, and the agent has the answer. A form that no person could read is cancelled at once.
func TestHiddenForm(t *testing.T) {
	t.Parallel()
	w := greeted(t, `{}`)
	w.agent(agentCall)
	w.forget()
	w.agent(fmt.Sprintf(agentElicits, schemaOne))
	if len(w.prompts) != 1 || strings.Contains(strings.Join(w.to(Editor), "\n"), methodElicitation) {
		t.Fatalf("%d prompts, the editor got %v", len(w.prompts), w.to(Editor))
	}
	w.do(w.proxy.EditorLeft(w.now()))
	w.editor(fmt.Sprintf(hello, `{}`))
	w.editor(`{"jsonrpc":"2.0","id":5,"method":"session/load","params":{"sessionId":"s1"}}`)
	w.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, w.id(Agent, methodLoad)))
	if got := strings.Join(w.to(Editor), "\n"); strings.Contains(got, methodElicitation) {
		t.Errorf("the next editor got %s", got)
	}
	w.do(w.proxy.EditorLeft(w.now()))
	// this one shows forms
	w.editor(fmt.Sprintf(hello, `{"elicitation":{"form":{}}}`))
	w.editor(`{"jsonrpc":"2.0","id":6,"method":"session/load","params":{"sessionId":"s1"}}`)
	w.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, w.id(Agent, methodLoad)))
	if got := strings.Join(w.to(Editor), "\n"); !strings.Contains(got, methodElicitation) {
		t.Errorf("an editor that shows forms got %s", got)
	}
	w.do(w.proxy.EditorLeft(w.now()))
	w.editor(fmt.Sprintf(hello, `{}`))
	id := w.prompts[0].Prompt
	w.forget()
	w.person(id, events.PromptAnswered{Prompt: id, By: "ada",
		Answers: []events.Answer{{Question: "q1", Selected: []string{"a"}}}})
	want := `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"z":"a"}}}`
	if got := w.to(Agent); !slices.Equal(got, []string{want}) {
		t.Errorf("the agent got %v, want %s", got, want)
	}
	for _, params := range []string{`"mode":"form"`, `"mode":"url","url":"https://example.com"`} {
		w.forget()
		w.agent(fmt.Sprintf(agentElicits, params))
		want := `{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}`
		if got := w.to(Agent); !slices.Equal(got, []string{want}) || len(w.prompts) != 1 || len(w.to(Editor)) > 0 {
			t.Errorf("%s: the agent got %v, the editor %v", params, got, w.to(Editor))
		}
	}
	// the latter is that of a question tool
	for _, id := range []string{"0", askPrefix + `1-31"`} {
		w.forget()
		lost := strings.Replace(fmt.Sprintf(agentElicits, schemaOne), `"sessionId":"s1"`, `"requestId":3`, 1)
		w.agent(strings.Replace(lost, `"id":0`, `"id":`+id, 1))
		if got := w.to(Agent); len(got) != 1 || !strings.Contains(got[0], `"cancel"`) || len(w.to(Editor)) > 0 {
			t.Errorf("a form of no session: the agent got %v, the editor %v", got, w.to(Editor))
		}
	}
}

// TestHiddenFormCancelled: an editor that cancels the turn cannot answer a form that it was not shown, so the proxy
// does. A permission is the editor's to answer.
func TestHiddenFormCancelled(t *testing.T) {
	t.Parallel()
	w := greeted(t, `{}`)
	w.agent(agentCall)
	w.agent(agentAsks)
	w.agent(strings.Replace(fmt.Sprintf(agentElicits, schemaOne), `"id":0`, `"id":1`, 1))
	w.forget()
	w.editor(editorCancel)
	want := []string{editorCancel, `{"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}`}
	if got := w.to(Agent); !slices.Equal(got, want) || !w.waits(w.prompts[0].Prompt) || w.waits(w.prompts[1].Prompt) {
		t.Errorf("the agent got %v, want %v", got, want)
	}
	w.agent(strings.Replace(fmt.Sprintf(agentElicits, schemaOne), `"id":0`, `"id":2`, 1))
	w.editor(strings.Replace(editorNew, `"id":1`, `"id":7`, 1))
	w.agent(strings.Replace(fmt.Sprintf(agentNew, w.id(Agent, "session/new")), `"s1"`, `"s2"`, 1))
	w.editor(strings.Replace(editorCancel, `"s1"`, `"s2"`, 1))
	if !w.waits(w.prompts[2].Prompt) {
		t.Error("the form is withdrawn with the turn of another session")
	}
}

// TestHiddenFormOfADeadProcess: the agent dies while its form waits. No editor is sent it, and the next process has the
// answer in words.
func TestHiddenFormOfADeadProcess(t *testing.T) {
	t.Parallel()
	w := greeted(t, `{}`)
	w.agent(agentCall)
	w.agent(fmt.Sprintf(agentElicits, schemaOne))
	w.kill(w.decide)
	w.returns()
	if got := w.to(Agent); !strings.Contains(got[len(got)-1], "Say it.") || !strings.Contains(got[len(got)-1], "b") {
		t.Errorf("the next process got %v", got)
	}
	if got := strings.Join(w.to(Editor), "\n"); strings.Contains(got, methodElicitation) {
		t.Errorf("the editor got %s", got)
	}
}

// returns has the next process of the agent reply to what restores it.
func (w *world) returns() {
	w.t.Helper()
	w.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"agentCapabilities":{"loadSession":true}}}`,
		w.id(Agent, "initialize")))
	w.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, w.id(Agent, methodLoad)))
}

// TestHiddenFormCancelledWhileDead: the editor cancels the turn while no process of the agent runs. The form that waits
// ends with the turn, and not before: no process has the session then. A form outside of the turn stays.
func TestHiddenFormCancelledWhileDead(t *testing.T) {
	t.Parallel()
	w := greeted(t, `{}`)
	w.agent(agentCall)
	w.agent(fmt.Sprintf(agentElicits, schemaOne))
	w.kill(func() { w.editor(editorCancel) })
	if !w.waits(w.prompts[0].Prompt) {
		t.Error("the form is withdrawn before the session is taken")
	}
	w.returns()
	if got := w.to(Editor); w.waits(w.prompts[0].Prompt) || !strings.Contains(got[len(got)-1], stopCancelled) {
		t.Errorf("the form waits after the turn, or the editor got %v", got)
	}
	// in no turn
	w.agent(fmt.Sprintf(agentElicits, schemaOne))
	w.kill(func() {})
	w.returns()
	w.editor(editorCancel)
	if !w.waits(w.prompts[len(w.prompts)-1].Prompt) {
		t.Error("the form of a dead process is withdrawn with a turn that is not its own")
	}
}

// TestReached: the first attempt to connect decides whether people can answer elsewhere.
func TestReached(t *testing.T) {
	t.Parallel()
	reached := func(st *store) bool {
		st.connectLater()
		is := make(chan bool, 1)
		go func() { is <- st.reached() }()
		select {
		case is := <-is:
			return is
		case <-time.After(patience):
			t.Fatal("the first attempt is over, and is waited for")
			return false
		}
	}
	s := newStored(t)
	if !reached(s.store) {
		t.Error("the broker is there")
	}
	s.leave(patience, "")
	away := newStored(t)
	away.cfg.URL, away.wait = "nats://127.0.0.1:1", time.Millisecond
	if reached(away.store) {
		t.Error("the broker is away")
	}
	away.leave(0, "")
}
