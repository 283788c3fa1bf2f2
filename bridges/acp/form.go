package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// fieldsMax is the largest number of fields of a form whose questions are in the log.
const fieldsMax = 24

// Actions of the reply to an elicitation.
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// labelAccept is the option of an elicitation without a form.
const labelAccept = "accept"

// form is the schema of an elicitation as questions.
type form struct {
	fields  []formField
	plain   bool // it has no form: a person accepts or declines
	unasked bool // its questions are not in the log
}

// formField is a property of the schema, and one question.
type formField struct {
	key      string
	kind     string // the JSON type
	question events.Question
	values   []json.RawMessage // of the options, in their order
	names    []string          // of the options, for the agent
}

// showsForms reports whether an editor that says this in initialize shows forms.
func showsForms(init json.RawMessage) bool {
	form := members(members(members(init)["clientCapabilities"])["elicitation"])["form"]
	return form != nil && string(form) != "null"
}

// withForms tells the agent that forms are shown, if the editor shows none and people can answer elsewhere.
func (p *Proxy) withForms(m message) message {
	p.forms = showsForms(m.params)
	p.offered = !p.forms && members(m.params) != nil && p.cfg.Forms != nil && p.cfg.Forms()
	if !p.offered {
		return m
	}
	caps := members(m.params)["clientCapabilities"]
	caps = withMember(caps, "elicitation", withMember(members(caps)["elicitation"], "form", json.RawMessage("{}")))
	with, err := parse(splice(m.raw, m.spans, "params", withMember(m.params, "clientCapabilities", caps)))
	if err != nil {
		p.offered = false
		return m
	}
	return with
}

// isHidden reports whether the editor is not shown a request of the agent, because it shows no forms.
func (p *Proxy) isHidden(method string, id json.RawMessage) bool {
	return !p.forms && (isTool(id) || p.offered && method == methodElicitation)
}

// isAnswerable reports whether people can answer an elicitation outside of the editor: the log has its questions.
func (p *Proxy) isAnswerable(m message) bool {
	params := members(m.params)
	if p.sessions[m.sessionID()] == nil {
		return false
	}
	f := formOf(p.cfg.Content, text(params["message"]), params)
	return !f.plain && !f.unasked
}

// withdrawHidden withdraws what the editor is not shown: it cannot answer that itself when it cancels the turn.
func (p *Proxy) withdrawHidden(s *session) {
	for _, key := range slices.Sorted(maps.Keys(p.prompts)) {
		if q := p.prompts[key]; q.s == s && !q.lost && p.isHidden(q.msg.method, q.agent) {
			p.withdraw(q, reasonEditor)
		}
	}
}

// elicitationAsked records a question of the agent. Its answer is the result of the call that asks it.
func (p *Proxy) elicitationAsked(a *ask, m message) {
	params := members(m.params)
	s := p.sessions[m.sessionID()]
	if s == nil {
		p.report.Outside++
		return
	}
	c := s.calls[text(params["toolCallId"])]
	s.atWork()
	q := &prompt{s: s, msg: m, about: c}
	p.newPrompt(a, q)
	message := text(params["message"])
	q.form = formOf(p.cfg.Content, message, params)
	f := events.PromptRequested{PromptKind: events.PromptQuestion, Title: p.cfg.Content.Title(message),
		Questions: q.form.questions(), Native: encode(native{Method: m.method})}
	if c != nil && !c.done && !c.lost {
		f.Call = c.id
	}
	p.request(q, message, f)
}

// formOf returns the questions of an elicitation.
func formOf(content agent.Content, message string, params map[string]json.RawMessage) *form {
	asked := content.Question(firstOf(message, "The agent asks a question."), agent.HiddenQuestion)
	if mode := text(params["mode"]); mode != "" && mode != "form" {
		return &form{plain: true, fields: []formField{{question: events.Question{ID: "q1", Question: asked,
			Options: []events.Option{{Label: labelAccept}}}}}}
	}
	f := &form{}
	properties := members(params["requestedSchema"])["properties"]
	// none if a property is there twice
	spans, _ := spansOf(properties)
	for i, s := range spans {
		x := fieldOf(content, s.name, members(properties[s.begin:s.end]))
		x.question.ID = "q" + strconv.Itoa(i+1)
		if x.question.Question == "" || i == 0 && message != "" {
			x.question.Question = asked
		}
		f.fields = append(f.fields, x)
	}
	if len(f.fields) == 0 || len(f.fields) > fieldsMax ||
		len(encode(f.questions())) > events.QuestionsBytesMax {
		return &form{unasked: true}
	}
	return f
}

// fieldOf returns the question of one property.
func fieldOf(content agent.Content, key string, schema map[string]json.RawMessage) formField {
	x := formField{key: key, kind: text(schema["type"])}
	x.question.Header = content.Title(text(schema["title"]))
	x.question.Question = content.Question(firstOf(text(schema["description"]), text(schema["title"]), key),
		agent.HiddenQuestion)
	choices := schema
	if x.kind == "array" {
		x.question.Multi = true
		choices = members(schema["items"])
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		for _, raw := range list(choices[name]) {
			o := members(raw)
			x.offer(content, o["const"], text(o["title"]))
		}
	}
	for _, value := range list(choices["enum"]) {
		x.offer(content, value, "")
	}
	if x.kind == "boolean" {
		x.offer(content, json.RawMessage("true"), "yes")
		x.offer(content, json.RawMessage("false"), "no")
	}
	x.question.Custom = len(x.values) == 0
	return x
}

// offer adds an option. Its label is the value, which is shorter than its title.
func (x *formField) offer(content agent.Content, value json.RawMessage, title string) {
	if len(value) == 0 || len(x.values) >= optionsMax {
		return
	}
	label := content.Title(firstOf(text(value), string(value)))
	if x.kind == "boolean" {
		label, title = title, ""
	}
	taken := func(l string) bool {
		return l == "" || slices.ContainsFunc(x.question.Options, func(o events.Option) bool { return o.Label == l })
	}
	for n := len(x.values) + 1; taken(label); n++ {
		label = fmt.Sprintf("option %d", n)
	}
	x.names = append(x.names, label)
	if content.Hidden() && x.kind != "boolean" {
		x.names[len(x.names)-1] = agent.Name(firstOf(text(value), string(value)))
	}
	o := events.Option{Label: label}
	if title != text(value) {
		o.Description = content.Title(title)
	}
	x.values = append(x.values, value)
	x.question.Options = append(x.question.Options, o)
}

// questions returns the questions of a form; none if they do not fit the log.
func (f *form) questions() []events.Question {
	var all []events.Question
	for _, x := range f.fields {
		all = append(all, x.question)
	}
	return all
}

// decideForm returns the fact for the editor's answer to an elicitation.
func (q *prompt) decideForm(p *Proxy, result json.RawMessage) events.Fact {
	reply := members(result)
	switch text(reply["action"]) {
	case actionAccept:
		return events.PromptAnswered{Prompt: q.id, By: byEditor,
			Answers: q.form.answers(p.cfg.Content, members(reply["content"]))}
	case actionDecline:
		return events.PromptRejected{Prompt: q.id, By: byEditor}
	}
	return events.PromptWithdrawn{Prompt: q.id, Reason: reasonEditor}
}

// answers returns the content of an accepted form as answers. A value that is not offered is the person's own text.
func (f *form) answers(content agent.Content, given map[string]json.RawMessage) []events.Answer {
	all := []events.Answer{}
	for _, x := range f.fields {
		a := events.Answer{Question: x.question.ID, Selected: []string{}}
		values := list(given[x.key])
		if x.kind != "array" && len(given[x.key]) > 0 {
			values = []json.RawMessage{given[x.key]}
		}
		for _, v := range values {
			i := slices.IndexFunc(x.values, func(o json.RawMessage) bool { return same(o, v) })
			if i >= 0 {
				a.Selected = append(a.Selected, x.question.Options[i].Label)
			} else {
				a.Text = content.Text(firstOf(text(v), string(v)))
			}
		}
		if f.plain {
			a.Selected = []string{labelAccept}
		}
		if len(a.Selected) > 0 || a.Text != "" {
			all = append(all, a)
		}
	}
	return all
}

// same reports whether two JSON values are equal, as far as options have them.
func same(a, b json.RawMessage) bool {
	if s := text(a); s != "" {
		return s == text(b)
	}
	return string(a) == string(b)
}

// reply returns the result of an elicitation for a decision.
func (f *form) reply(a harness.Answer) json.RawMessage {
	type result struct {
		Action  string                     `json:"action"`
		Content map[string]json.RawMessage `json:"content,omitempty"`
	}
	switch {
	case a.Status == fold.Rejected:
		return encode(result{Action: actionDecline})
	case a.Status != fold.Answered || f.unasked:
		return encode(result{Action: actionCancel})
	case f.plain:
		return encode(result{Action: actionAccept})
	}
	content := map[string]json.RawMessage{}
	for _, x := range f.fields {
		i := slices.IndexFunc(a.Answers, func(a events.Answer) bool { return a.Question == x.question.ID })
		if i < 0 {
			continue
		}
		if v := x.value(a.Answers[i]); v != nil {
			content[x.key] = v
		}
	}
	return encode(result{actionAccept, content})
}

// value returns the value of a property for an answer; nil without one.
func (x *formField) value(a events.Answer) json.RawMessage {
	var values []json.RawMessage
	for i, o := range x.question.Options {
		if slices.Contains(a.Selected, o.Label) {
			values = append(values, x.values[i])
		}
	}
	number := json.RawMessage(a.Text)
	switch _, err := strconv.ParseFloat(a.Text, 64); {
	case x.question.Multi:
		if a.Text != "" && len(values) == 0 {
			values = append(values, encode(a.Text))
		}
		return encode(slices.Concat([]json.RawMessage{}, values))
	case len(values) > 0:
		return values[0]
	case a.Text == "":
		return nil
	case (x.kind == "number" || x.kind == "integer") && err == nil && json.Valid(number):
		return number
	}
	return encode(a.Text)
}
