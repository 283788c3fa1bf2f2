package sidecar_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-dev/holdfast/internal/sidecar"
)

// page is docs/reference/sidecar.json.
type page struct {
	schemas map[string]*jsonschema.Schema // of params and results, by method
	errors  map[string]int
}

type described struct {
	Methods []struct {
		Name   string
		Params []struct {
			Name     string
			Required bool
			Schema   any
		}
		Result *struct{ Schema any }
	}
	Components struct {
		Errors  map[string]struct{ Code int }
		Schemas struct{ Error any }
	}
}

func readPage(t testing.TB) *page {
	t.Helper()
	body, err := os.ReadFile("../../docs/reference/sidecar.json")
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	p := &page{schemas: map[string]*jsonschema.Schema{}, errors: map[string]int{}}
	for _, m := range d.Methods {
		properties, required := object{}, []any{}
		for _, param := range m.Params {
			properties[param.Name] = param.Schema
			if param.Required {
				required = append(required, param.Name)
			}
		}
		p.add(t, m.Name+" params", object{"type": "object", "properties": properties, "required": required})
		if m.Result != nil {
			p.add(t, m.Name+" result", m.Result.Schema)
		}
	}
	p.add(t, "error", d.Components.Schemas.Error)
	for name, e := range d.Components.Errors {
		p.errors[name] = e.Code
	}
	return p
}

// add compiles a schema. Objects may have no fields that are not described: the tests look at what the page lacks.
func (p *page) add(t testing.TB, name string, schema any) {
	t.Helper()
	shut(schema)
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, schema); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.schemas[name], err = c.Compile(name); err != nil {
		t.Fatal(err)
	}
}

// shut refuses further fields in each object with described ones.
func shut(v any) {
	switch v := v.(type) {
	case object:
		if _, ok := v["properties"].(object); ok {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			shut(inner)
		}
	case []any:
		for _, inner := range v {
			shut(inner)
		}
	}
}

func (p *page) check(t *testing.T, name string, raw json.RawMessage) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil || p.schemas[name] == nil {
		t.Errorf("%s: %s: %v", name, raw, err)
		return
	}
	if err := p.schemas[name].Validate(v); err != nil {
		t.Errorf("%s: %.1000s is not what the page says: %v", name, raw, err)
	}
}

func (p *page) checkError(t *testing.T, line []byte, e *sidecar.Error) {
	var m struct{ Error json.RawMessage }
	if err := json.Unmarshal(line, &m); err != nil {
		t.Error(err)
	}
	p.check(t, "error", m.Error)
	if code, ok := p.errors[e.Data.Error]; !ok || code != e.Code && e.Data.Error != "refused" {
		t.Errorf("%.300s: the page has the code %d for %q (%t)", line, code, e.Data.Error, ok)
	}
}

// everyVerb is a test that calls each method.
type everyVerb struct {
	*world
	*peer
	turn object // that runs
}

// with returns the fields that name the turn, with others.
func (e *everyVerb) with(more object) object { return at(e.turn, more) }

// shop returns the field that names the session, with others.
func (e *everyVerb) shop(more object) object {
	all := object{"session": "shop"}
	maps.Copy(all, more)
	return all
}

// TestEveryVerb calls every method, and each does what it says.
func TestEveryVerb(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{"options": true, "compact": true})
	e := &everyVerb{world: w, peer: p}
	sent := p.wants("send", object{"session": "shop", "content": "deploy", "synthetic": true})
	m, _ := p.receives("options")
	p.answers(m, object{"model": "opus"})
	m, e.turn = p.receives("turn")
	if e.turn["message"] != sent["id"] || e.turn["options"].(object)["model"] != "opus" || e.turn["synthetic"] != true {
		t.Errorf("the turn is %v", e.turn)
	}
	p.notifies("turn.usage", e.with(object{"model": "opus", "tokens": object{"input": 100}, "context_limit": 1000}))
	p.wants("turn.usage", e.with(object{"tokens": object{"input": 101}}))
	e.ofCalls(t)
	e.ofQuestions(t)
	begun := p.wants("turn.step_begin", e.with(object{"name": "s", "idempotent": true}))
	p.wants("turn.step_end", object{"step": begun["step"], "result": 1})
	p.wants("turn.content", e.with(nil))
	e.ofFacts(t)
	p.wants("turn.complete", e.with(object{"finish": "stop"}))
	p.answers(m, nil)
	w.request("compaction", "compact", object{"by": "ada"})
	m, compaction := p.receives("compact")
	if compaction["session"] != "shop" || compaction["compaction"] == "" {
		t.Errorf("the compaction is %v", compaction)
	}
	p.answers(m, object{"used_after": 10, "summary": "Deployed."})
	w.compacted(true)
	e.ofTurns(t)
	e.ofSessions(t)
	p.notifies("cancel", object{"id": 1})
	p.wants("close", object{})
	p.called["cancel"] = true
	for _, v := range sidecar.Verbs() {
		// the others are in TestStop, TestCompactionFails, TestNewerProcess and TestShutdown
		apart := []string{"turn.cancelled", "compaction.cancelled", "lost", "shutdown"}
		if !p.called[v.Name] && !slices.Contains(apart, v.Name) {
			t.Errorf("%s was not called", v.Name)
		}
	}
}

func (e *everyVerb) ofCalls(t *testing.T) {
	call := e.wants("turn.tool", e.with(object{"id": "c1", "name": "bash", "input": object{"cmd": "ls"}}))
	e.wants("call.complete", e.shop(object{"call": call["id"], "output": "a b"}))
	e.fails("ended", "call.complete", e.shop(object{"call": "c1", "output": "late"}))
	r := e.wants("session.result", e.shop(object{"call": "c1"}))
	if r["output"] != "a b" || r["outcome"] != "completed" {
		t.Errorf("the result is %v", r)
	}
	e.wants("turn.tool", e.with(object{"id": "c2"}))
	e.wants("call.fail", e.shop(object{"call": "c2", "failure": object{"kind": "boom", "text": "no"}}))
}

func (e *everyVerb) ofQuestions(t *testing.T) {
	question := []object{{"id": "q", "question": "Well?", "options": []object{{"label": "yes"}}}}
	_, asked := e.peer.begins("turn.ask", e.with(object{"prompt": object{"id": "p1", "questions": question}}))
	e.answer("q", "yes")
	if m := take(t, "the answer", asked); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	a := e.wants("session.answer", e.shop(object{"prompt": "p1"}))
	if a["choice"] != "yes" || a["status"] != "answered" {
		t.Errorf("the answer is %v", a)
	}
	_, asked = e.peer.begins("session.ask", e.shop(object{"prompt": object{"id": "p2", "questions": question}}))
	e.wants("session.progress", e.shop(nil))
	e.prompt("p2")
	e.wants("session.withdraw", e.shop(object{"prompt": "p2", "text": "not needed"}))
	if m := take(t, "the withdrawal", asked); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	e.fails("ended", "session.withdraw", e.shop(object{"prompt": "p2"}))
	e.fails("unknown", "session.refuse", e.shop(object{"prompt": "p9", "text": "no"}))
	late := e.wants("turn.ask_once", e.with(object{"name": "once", "questions": question,
		"deadline": "2020-01-01T00:00:00Z"}))
	if late["status"] != "expired" {
		t.Errorf("%v", late)
	}
}

func (e *everyVerb) ofFacts(t *testing.T) {
	e.fails("malformed", "session.append", e.shop(object{"facts": []object{{"kind": "nonsense"}}}))
	e.fails("malformed", "session.append", e.shop(object{"facts": []object{{"kind": "tool.started", "data": 7}}}))
	e.fails("malformed", "session.append", e.shop(object{"facts": []object{{"kind": "tool.started",
		"data": object{"cal": "c3"}}}}))
	e.wants("session.append", e.shop(object{"facts": []object{{"kind": "tool.started",
		"data": object{"call": "c3", "turn": e.turn["turn"]}}}}))
	if st := e.wants("session.state", e.shop(nil))["state"].(object); st["tools"].(object)["c3"] == nil {
		t.Errorf("the state is %v", st)
	}
}

func (e *everyVerb) ofTurns(t *testing.T) {
	if open := e.wants("session.open_turn", e.shop(nil)); len(open) > 0 {
		t.Errorf("the open turn is %v", open)
	}
	started := e.wants("session.start_turn", e.shop(object{"content": "again", "by": "ada"}))
	if open := e.wants("session.open_turn", e.shop(nil)); open["open"].(object)["turn"] != started["turn"] {
		t.Errorf("the open turn is %v", open)
	}
	e.wants("turn.fail", at(started, object{"message": "no key", "data": object{
		"provider": object{"status": 401, "text": "no such key"}}}))
	e.fails("ended", "turn.fail", at(started, object{"message": "late"}))
	started = e.wants("session.start_turn", e.shop(object{"content": "again", "by": "ada"}))
	e.wants("turn.stop", at(started, object{"actor": "person"}))
}

func (e *everyVerb) ofSessions(t *testing.T) {
	e.wants("session.regain", e.shop(nil))
	e.wants("open", object{"session": "aside"})
	e.wants("session.release", object{"session": "aside", "reason": "done"})
	e.fails("released", "session.append", object{"session": "aside", "facts": []object{{"kind": "tool.started",
		"data": object{"call": "c1"}}}})
	e.wants("claim", object{"session": "aside", "turn": false})
	e.wants("session.close", object{"session": "aside", "reason": "finished"})
	e.fails("session_closed", "session.start_turn", object{"session": "aside", "content": "x"})
	e.fails("refused", "send", object{"session": "nowhere", "content": "x"})
	if all := e.wants("sessions", object{})["sessions"].([]any); len(all) == 0 {
		t.Error("no sessions")
	}
}
