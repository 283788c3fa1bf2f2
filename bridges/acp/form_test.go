package acp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const agentElicits = `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"sessionId":"s1",` +
	`"toolCallId":"c1","message":"Say it.",%s}}`

const schemaAll = `"mode":"form","requestedSchema":{"type":"object","properties":{` +
	`"z":{"type":"string","enum":["b","a"]},` +
	`"one":{"type":"string","title":"One","oneOf":[{"const":"x","title":"The X"}]},` +
	`"many":{"type":"array","items":{"type":"string","enum":["p","q","r"]}},"is":{"type":"boolean"},` +
	`"n":{"type":"integer","description":"how many"},"t":{"type":"string"},"e":{"type":"number","enum":[1,2.50]}}}`

// TestFormFromElsewhere answers an elicitation with each type of field outside of the editor.
func TestFormFromElsewhere(t *testing.T) {
	w := atTurn(t, agent.ContentTitles)
	w.agent(agentCall)
	w.agent(fmt.Sprintf(agentElicits, schemaAll))
	f := w.prompts[0]
	var asked []string
	for _, q := range f.Questions {
		labels := []string{}
		for _, o := range q.Options {
			labels = append(labels, o.Label)
		}
		asked = append(asked, fmt.Sprintf("%s %s %v multi=%v custom=%v", q.ID, q.Question, labels, q.Multi, q.Custom))
	}
	want := []string{"q1 Say it. [b a] multi=false custom=false", "q2 One [x] multi=false custom=false",
		"q3 many [p q r] multi=true custom=false", "q4 is [yes no] multi=false custom=false",
		"q5 how many [] multi=false custom=true", "q6 t [] multi=false custom=true",
		"q7 e [1 2.50] multi=false custom=false"}
	if !slices.Equal(asked, want) || !strings.HasPrefix(f.Call, "c1-1-") || f.Title != "Say it." {
		t.Errorf("asked %q, want %q; %+v", asked, want, f)
	}
	w.forget()
	w.person(f.Prompt, events.PromptAnswered{Prompt: f.Prompt, By: "ada", Answers: []events.Answer{
		{Question: "q1", Selected: []string{"a"}}, {Question: "q3", Selected: []string{"r", "p"}},
		{Question: "q4", Selected: []string{"no"}}, {Question: "q5", Text: "Inf"}, {Question: "q6", Text: "12"},
		{Question: "q7", Selected: []string{"2.50"}}, {Question: "q9", Text: "no such question"}}})
	wantReply := `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":` +
		`{"e":2.50,"is":false,"many":["p","r"],"n":"Inf","t":"12","z":"a"}}}`
	if got := w.to(Agent); !slices.Equal(got, []string{wantReply}) {
		t.Errorf("the agent got %v, want %s", got, wantReply)
	}
}

// TestNumbers checks which texts are numbers of JSON.
func TestNumbers(t *testing.T) {
	x := formField{kind: "number"}
	for text, want := range map[string]string{"12": "12", "-1.50": "-1.50", "1e3": "1e3", "0x1p-2": `"0x1p-2"`,
		"NaN": `"NaN"`, "1_000": `"1_000"`, "many": `"many"`, "": ""} {
		if got := string(x.value(events.Answer{Text: text})); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestFormInTheEditor checks that the editor's answer is stored by question, and reaches the agent as it was written.
func TestFormInTheEditor(t *testing.T) {
	for reply, want := range map[string]string{
		`{"action":"accept","content":{"z":"b","many":["q","other"],"is":true,"n":3,"t":"text","e":1}}`: `answered ` +
			`{"prompt":"prompt-1-7","answers":[{"question":"q1","selected":["b"]},{"question":"q3","selected":["q"],` +
			`"text":"other"},{"question":"q4","selected":["yes"]},{"question":"q5","selected":[],"text":"3"},` +
			`{"question":"q6","selected":[],"text":"text"},{"question":"q7","selected":["1"]}],"by":"editor"}`,
		`{"action":"accept"}`:  `prompt.answered {"prompt":"prompt-1-7","answers":[],"by":"editor"}`,
		`{"action":"decline"}`: `prompt.rejected {"prompt":"prompt-1-7","by":"editor"}`,
		`{"action":"cancel"}`:  `prompt.withdrawn {"prompt":"prompt-1-7","reason":"cancelled in the editor"}`,
		`7`:                    `prompt.withdrawn {"prompt":"prompt-1-7","reason":"cancelled in the editor"}`,
	} {
		w := atTurn(t, agent.ContentTitles)
		w.agent(agentCall)
		w.agent(fmt.Sprintf(agentElicits, schemaAll))
		id := w.id(Editor, "elicitation/create")
		w.forget()
		w.editor(`{"jsonrpc":"2.0","id":` + id + `,"result":` + reply + `}`)
		if len(w.facts) != 1 || !strings.HasSuffix(w.facts[0], want) {
			t.Errorf("%s: %v, want %s", reply, w.facts, want)
		}
		if got := w.to(Agent); !slices.Equal(got, []string{`{"jsonrpc":"2.0","id":0,"result":` + reply + `}`}) {
			t.Errorf("%s: the agent got %v", reply, got)
		}
	}
}

// TestFormWithoutQuestions checks elicitations that no question can hold: they are answered in the editor, and a
// decision from elsewhere never accepts a form that was not shown.
func TestFormWithoutQuestions(t *testing.T) {
	many := map[string]any{}
	for i := range fieldsMax + 1 {
		many[fmt.Sprint("f", i)] = map[string]string{"type": "string"}
	}
	large, _ := json.Marshal(map[string]any{"properties": many})
	options := strings.Repeat(`"`+strings.Repeat("v", 190)+`%d",`, 1)
	var enum strings.Builder
	for i := range 90 {
		fmt.Fprintf(&enum, options, i)
	}
	var wide []string
	for i := range 10 {
		wide = append(wide, fmt.Sprintf(`"f%d":{"type":"string","enum":[%s"x"]}`, i, enum.String()))
	}
	for name, c := range map[string]struct{ params, action string }{
		"no schema":   {`"mode":"form"`, actionCancel},
		"twice":       {`"requestedSchema":{"properties":{"a":{"type":"string"},"a":{"type":"number"}}}`, actionCancel},
		"not objects": {`"requestedSchema":{"properties":[1]}`, actionCancel},
		"many fields": {`"requestedSchema":` + string(large), actionCancel},
		"wide":        {`"requestedSchema":{"properties":{` + strings.Join(wide, ",") + `}}`, actionCancel},
		"a page":      {`"mode":"url","url":"https://example.com"`, actionAccept},
	} {
		w := atTurn(t, agent.ContentFull)
		w.agent(fmt.Sprintf(agentElicits, c.params))
		if len(w.prompts) != 1 {
			t.Fatalf("%s: %d prompts", name, len(w.prompts))
		}
		f := w.prompts[0]
		w.forget()
		a := []events.Answer{}
		if len(f.Questions) > 0 {
			a = []events.Answer{{Question: "q1", Selected: []string{labelAccept}}}
		}
		w.person(f.Prompt, events.PromptAnswered{Prompt: f.Prompt, By: "ada", Answers: a})
		if got := w.to(Agent); len(got) != 1 || !strings.Contains(got[0], `"action":"`+c.action+`"`) {
			t.Errorf("%s: %v", name, got)
		}
		if (len(f.Questions) > 0) != (c.action == actionAccept) {
			t.Errorf("%s: questions %v", name, f.Questions)
		}
	}
}

// TestSpans checks that an id is replaced in place, whatever is around it.
func TestSpans(t *testing.T) {
	for _, raw := range []string{`{"id":7}`, ` { "id" : 7 , "x" : [ 1 ] } `, `{"x":{"id":7},"id":7}`, `{"i\u0064":7}`,
		"{\t\"x\":\"\\\"id\\\":7\",\r\"id\"\n:7}"} {
		m, err := parse([]byte(raw))
		if err != nil || string(m.id) != "7" {
			t.Errorf("%s: id %s, %v", raw, m.id, err)
			continue
		}
		out, err := parse(m.withID(json.RawMessage(`"new"`)))
		if err != nil || string(out.id) != `"new"` || string(out.withID(json.RawMessage("7"))) != raw {
			t.Errorf("%s became %s, %v", raw, out.raw, err)
		}
		var before, after map[string]any
		if json.Unmarshal([]byte(raw), &before) != nil || json.Unmarshal(out.raw, &after) != nil {
			t.Fatal(raw)
		}
		before["id"] = "new"
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%v became %v", before, after)
		}
	}
}

// TestLabelsAreUnique checks that each option of a form and of a permission has a label of its own, whatever the agent
// sends, and that the label chooses this option.
func TestLabelsAreUnique(t *testing.T) {
	for _, values := range [][]string{{"a", "a", "a"}, {"", ""}, {"option 2", "option 2", "option 2"},
		{"option 3", "", "", "option 2"}} {
		x := formField{kind: "string"}
		for _, v := range values {
			x.offer(agent.ContentTitles, encode(v), "")
		}
		seen := map[string]bool{}
		for i, o := range x.question.Options {
			if o.Label == "" || seen[o.Label] {
				t.Errorf("%q: the label %q is there twice", values, o.Label)
			}
			seen[o.Label] = true
			if got := x.value(events.Answer{Selected: []string{o.Label}}); string(got) != string(encode(values[i])) {
				t.Errorf("%q: the label %q is %s", values, o.Label, got)
			}
		}
	}
	x := formField{kind: "string"}
	for _, v := range []string{"a", "b"} {
		x.offer(agent.ContentNone, encode(v), "")
	}
	if o := x.question.Options; o[0].Label == "" || o[0].Label == o[1].Label {
		t.Errorf("without content the labels are %v", o)
	}
	for _, options := range []string{
		`[{"optionId":"a","name":"x"},{"optionId":"b","name":"x"},{"optionId":"c","name":"x"}]`,
		`[{"optionId":"a","name":"b (2)"},{"optionId":"b","name":"b (2)"},{"optionId":"b","name":"b (2)"}]`,
		`[{"optionId":"a","name":"x"},{"optionId":"x"},{"optionId":"x"}]`, `[{},{},{}]`,
	} {
		q := &prompt{}
		seen := map[string]bool{}
		for i, o := range q.options(New(Config{}), json.RawMessage(options)) {
			if o.Label == "" || seen[o.Label] || q.grants[i].label != o.Label {
				t.Errorf("%s: the label %q is there twice", options, o.Label)
			}
			seen[o.Label] = true
		}
		if len(seen) != 3 {
			t.Errorf("%s: %d options", options, len(seen))
		}
	}
}
