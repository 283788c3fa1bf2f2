package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Inherited is what an earlier process of the proxy left in a session: a turn that waits for people, or the turn that
// was requested for their decisions. This process has it in the log.
type Inherited struct {
	Session string // its id in Holdfast
	Turn    string
	// The prompts that the turn waits for, in their order. The caller delivers the decisions by [Proxy.Decided].
	Prompts []events.PromptRequested
	// The decisions that the agent has not read.
	Decisions []fold.TurnPrompt
}

// reasonMessage is why a turn ends that was inherited, and that waits for people.
const reasonMessage = "the user continued with a message"

// Inherit returns what to do about the turn of an earlier process. Its prompts are shown to the editor. The agent gets
// the decisions in words, when all are there, and its reply ends the turn. A message of the editor that comes before
// that stops the turn. The step with [Step.Inherit] asks for it. It has no effect if the editor has begun a turn since:
// that turn has taken the place of this one in the log.
func (p *Proxy) Inherit(at time.Time, in Inherited) []Step {
	p.receivedAt(at)
	i := slices.IndexFunc(p.order, func(s *session) bool { return s.id == in.Session })
	if i < 0 || p.phase == given {
		return nil
	}
	s := p.order[i]
	if s.begunHere || s.turn != nil || s.current != nil {
		return nil
	}
	s.turn = &turn{id: in.Turn, inherited: true}
	s.current = &asking{s: s, gone: true, lost: true}
	for i := range in.Prompts {
		q := p.inheritedPrompt(s, &in.Prompts[i])
		p.prompts[q.id] = q
	}
	for _, d := range in.Decisions {
		s.unread = append(s.unread, textOfDecision(&d))
	}
	switch {
	case p.waits(s):
		p.showAgain(s)
	case p.phase == running:
		p.goOn(s)
	}
	return p.take()
}

// textOfDecision is what the agent reads about a decision for a dead process.
func textOfDecision(d *fold.TurnPrompt) string {
	a := harness.Answer{Status: d.Status, Answers: d.Answers, Text: d.Text}
	return fmt.Sprintf(textAnswered, firstOf(d.Title, d.Prompt), (&prompt{}).inAllWords(a))
}

// inAllWords returns a decision as the agent reads it, with the text of a rejection.
func (q *prompt) inAllWords(a harness.Answer) string {
	words := q.inWords(a)
	if a.Status == fold.Rejected && a.Text != "" {
		words += ": " + a.Text
	}
	return words
}

// inheritedPrompt returns a prompt of the log as a request of the agent that has died. Its ids are the proxy's.
func (p *Proxy) inheritedPrompt(s *session, f *events.PromptRequested) *prompt {
	q := &prompt{s: s, id: f.Prompt, turn: s.turn, lost: true, inherited: true}
	if f.Call != "" {
		// it has ended on the screen
		q.about = &call{id: f.Call, done: true, lost: true}
	}
	asked := f.Title
	if len(f.Questions) > 0 {
		asked = firstOf(asked, f.Questions[0].Question)
	}
	q.title = agent.Name(asked)
	var params any
	if f.PromptKind == events.PromptPermission {
		params = q.permissionOf(f, asked)
	} else {
		params = q.elicitationOf(f, asked)
	}
	// its id is given when it is shown
	q.msg, _ = parse(requestOf(json.RawMessage("0"), q.method(), encode(params)))
	return q
}

func (q *prompt) method() string {
	if q.form != nil {
		return methodElicitation
	}
	return methodPermission
}

// rejectOption is the option of a permission that rejects. The log does not have it.
const rejectOption = "reject"

// permissionOf makes the parameters of a permission request. The log has no input: the call in the history shows it.
func (q *prompt) permissionOf(f *events.PromptRequested, asked string) any {
	type option struct {
		ID   string `json:"optionId"`
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
	type toolCall struct {
		ID    string `json:"toolCallId"`
		Title string `json:"title"`
	}
	var options []option
	for _, x := range f.Questions {
		for _, o := range x.Options {
			id := "option-" + strconv.Itoa(len(q.grants)+1)
			q.grants = append(q.grants, grant{id, o.Label, o.Label})
			options = append(options, option{id, o.Label, firstOf(o.Description, "allow_once")})
		}
	}
	q.reject = rejectOption
	options = append(options, option{rejectOption, "Reject", "reject_once"})
	return struct {
		Session string   `json:"sessionId"`
		Call    toolCall `json:"toolCall"`
		Options []option `json:"options"`
	}{q.s.acp, toolCall{firstOf(text(members(f.Native)["call"]), f.Prompt), asked}, options}
}

// elicitationOf makes the parameters of an elicitation with the questions as its form.
func (q *prompt) elicitationOf(f *events.PromptRequested, asked string) any {
	type choice struct {
		Value string `json:"const"`
		Title string `json:"title"`
	}
	type items struct {
		Choices []choice `json:"anyOf"`
	}
	type field struct {
		Type        string   `json:"type"`
		Title       string   `json:"title,omitempty"`
		Description string   `json:"description"`
		Choices     []choice `json:"oneOf,omitempty"`
		Items       *items   `json:"items,omitempty"`
	}
	type schema struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	q.form = &form{}
	// in the order of the questions
	var fields []string
	for _, x := range f.Questions {
		y := formField{key: x.ID, kind: "string", question: x}
		z := field{Type: "string", Title: x.Header, Description: x.Question}
		for _, o := range x.Options {
			y.values, y.names = append(y.values, encode(o.Label)), append(y.names, o.Label)
			z.Choices = append(z.Choices, choice{o.Label, firstOf(o.Description, o.Label)})
		}
		if x.Multi {
			y.kind, z.Type = "array", "array"
			z.Items, z.Choices = &items{z.Choices}, nil
		}
		q.form.fields = append(q.form.fields, y)
		fields = append(fields, string(encode(x.ID))+":"+string(encode(z)))
	}
	return struct {
		Session string `json:"sessionId"`
		Mode    string `json:"mode"`
		Message string `json:"message"`
		Schema  schema `json:"requestedSchema"`
	}{q.s.acp, "form", asked, schema{"object", json.RawMessage("{" + strings.Join(fields, ",") + "}")}}
}

// cancelShown tells the editor that a request which it shows needs no answer any more. No update of a call does: the
// call has ended on the screen.
func (p *Proxy) cancelShown(q *prompt) {
	if !q.inherited {
		return
	}
	for _, id := range p.shownAs(q) {
		p.send(Editor, encode(struct {
			Version string            `json:"jsonrpc"`
			Method  string            `json:"method"`
			Params  map[string]uint64 `json:"params"`
		}{"2.0", methodCancelRequest, map[string]uint64{"requestId": id}}))
	}
}

// decides reports whether a reply of the editor decides about a prompt. An inherited one stays open when the
// editor does not know what to do with it, because no request of its own is open.
func (q *prompt) decides(m message) bool {
	if !q.inherited {
		return true
	}
	result := members(m.result)
	if q.form != nil {
		action := text(result["action"])
		return action == actionAccept || action == actionDecline
	}
	return text(members(result["outcome"])["outcome"]) == "selected"
}

// shownAs returns the ids under which the editor has a prompt that it has not replied to.
func (p *Proxy) shownAs(q *prompt) (ids []uint64) {
	for id, a := range p.asks {
		if a.prompt == q {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
