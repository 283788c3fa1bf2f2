package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// byEditor is the author of every answer of the editor: it does not say which person answered.
const byEditor = "editor"

// Reasons of withdrawals.
const (
	reasonEditor  = "cancelled in the editor"
	reasonAgent   = "cancelled by the agent"
	reasonStopped = "the turn is stopped"
)

// optionsMax is the largest number of options that a question has in the log. All of them are in the editor.
const optionsMax = 100

// prompt is a question of the agent that has no reply yet.
type prompt struct {
	s     *session
	id    string          // in Holdfast
	agent json.RawMessage // the id of the agent's request
	msg   message         // the agent's request
	title string          // for the agent, at each level of content
	turn  *turn           // in which it was asked
	about *call
	key   string // of a permission: equal requests have equal keys
	lost  bool   // the process that asked has ended
	// The process of the proxy that recorded it has ended, too.
	inherited bool
	early     *message    // the editor's reply, while no process of the agent could have it
	form      *form       // of an elicitation
	grants    []grant     // of a permission: what can be chosen
	reject    string      // of a permission: the option that rejects, "" without one
	closed    bool        // a fact has ended it
	decision  events.Fact // what the editor decided
	reply     []byte      // the editor's reply, for the agent
}

// grant is an option of a permission.
type grant struct {
	id    string
	label string // in the log
	name  string // for the agent
}

// permissionAsked records a permission that the agent asks for.
func (p *Proxy) permissionAsked(a *ask, m message) {
	params := members(m.params)
	s := p.sessions[m.sessionID()]
	if s == nil {
		p.report.Outside++
		return
	}
	about := members(params["toolCall"])
	c := p.callOf(s, about)
	q := &prompt{s: s, msg: m, about: c, key: c.key(about)}
	options := q.options(p, params["options"])
	if a.kept = s.kept(q); a.kept != nil {
		return
	}
	p.newPrompt(a, q)
	title := firstOf(text(about["title"]), c.title, c.kind)
	f := events.PromptRequested{PromptKind: events.PromptPermission, Title: p.cfg.Content.Title(title),
		Native: encode(native{Method: m.method, Call: name(c.acp)})}
	asked := p.cfg.Content.Question(firstOf(title, "The agent asks for a permission."), agent.HiddenPermission)
	f.Questions = []events.Question{{ID: events.PermissionQuestion, Options: options, Question: asked}}
	p.request(q, title, f)
}

// native is what a prompt keeps of the protocol.
type native struct {
	Method string `json:"method"`
	Call   string `json:"call,omitempty"`
}

// callOf returns the call that a permission is about. The request may be the first sign of it.
func (p *Proxy) callOf(s *session, about map[string]json.RawMessage) *call {
	acp := text(about["toolCallId"])
	c := s.calls[acp]
	s.atWork()
	switch {
	case c != nil && !c.lost:
		c.merge(about)
		p.release()
	case acp == "" || s.turn == nil || s.before[acp]:
		c = &call{acp: acp}
		c.merge(about)
	default:
		c = p.newCall(s, acp)
		c.merge(about)
		p.startCall(s, c)
	}
	return c
}

// options returns the options of a permission for the log. The first option that rejects is the rejection itself.
func (q *prompt) options(p *Proxy, raw json.RawMessage) []events.Option {
	var options []events.Option
	for _, raw := range list(raw) {
		o := members(raw)
		id, kind := text(o["optionId"]), text(o["kind"])
		if kind == "reject_once" && q.reject == "" {
			q.reject = id
			continue
		}
		label := firstOf(p.cfg.Content.Title(text(o["name"])), name(id), "option")
		taken := func(l string) bool {
			return slices.ContainsFunc(options, func(o events.Option) bool { return o.Label == l })
		}
		for n := 2; taken(label); n++ {
			label = fmt.Sprintf("%s (%d)", name(id), n)
		}
		if len(options) < optionsMax {
			shown := label
			if p.cfg.Content.Hidden() {
				shown = firstOf(agent.Name(text(o["name"])), label)
			}
			q.grants = append(q.grants, grant{id, label, shown})
			options = append(options, events.Option{Label: label, Description: name(kind)})
		}
	}
	return options
}

// newPrompt gives an id to a prompt for a request of the agent.
func (p *Proxy) newPrompt(a *ask, q *prompt) {
	q.id, q.agent, q.turn = p.newID("prompt"), a.id, q.s.turn
	a.prompt = q
	p.prompts[q.id] = q
	if q.about != nil {
		q.about.prompts = append(q.about.prompts, q)
	}
}

// request records a prompt. It outlives the process of the agent.
func (p *Proxy) request(q *prompt, title string, f events.PromptRequested) {
	f.Prompt, f.Delivery, f.OnOwnerLoss = q.id, events.DeliverToolResult, events.LossKeep
	if q.s.turn != nil {
		f.Turn = q.s.turn.id
	}
	q.title = agent.Name(title)
	p.record(q.s, f)
}

// promptAnswered records the answer of the editor. The agent gets it with the decision that stands.
func (p *Proxy) promptAnswered(q *prompt, m message) {
	if q.closed || p.prompts[q.id] != q {
		p.report.Late++
		return
	}
	q.reply = m.withID(q.agent)
	if q.form != nil {
		q.decision = q.decideForm(p, m.result)
	} else {
		q.decision = q.decidePermission(m.result)
	}
	q.closed = true
	p.record(q.s, q.decision)
}

// decidePermission returns the fact for the editor's answer to a permission.
func (q *prompt) decidePermission(result json.RawMessage) events.Fact {
	outcome := members(members(result)["outcome"])
	option := text(outcome["optionId"])
	i := slices.IndexFunc(q.grants, func(g grant) bool { return g.id == option })
	switch {
	case text(outcome["outcome"]) != "selected":
		return events.PromptWithdrawn{Prompt: q.id, Reason: reasonEditor}
	case option == q.reject:
		return events.PromptRejected{Prompt: q.id, By: byEditor}
	case i < 0:
		// an option that the log does not have
		return events.PromptAnswered{Prompt: q.id, By: byEditor,
			Answers: []events.Answer{{Question: events.PermissionQuestion, Text: name(option)}}}
	}
	return events.PromptAnswered{Prompt: q.id, By: byEditor,
		Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{q.grants[i].label}}}}
}

// withdraw records that a prompt needs no answer any more.
func (p *Proxy) withdraw(q *prompt, reason string) {
	if q == nil || q.closed {
		return
	}
	q.closed = true
	p.record(q.s, events.PromptWithdrawn{Prompt: q.id, Reason: reason})
}

// settleAll forgets the prompts of a session: the log has ended them, and the agent does not wait.
func (p *Proxy) settleAll(s *session) {
	for _, q := range p.prompts {
		if q.s == s {
			delete(p.late, q.id)
			p.unask(q)
		}
	}
}

// Decided returns what to do about the decision that stands in the log about a prompt: the agent gets it, once. An
// answer of the editor reaches the agent as the editor wrote it. After a restart of the agent the caller calls Decided
// again for each prompt that the step with [Step.Adopt] names and that is settled; a repeated call has no effect.
func (p *Proxy) Decided(at time.Time, id string, a harness.Answer) []Step {
	p.receivedAt(at)
	q := p.prompts[id]
	if q == nil {
		// the agent does not wait any more
		return nil
	}
	if q.lost && p.phase != running {
		q.closed, p.late[id] = true, a
		// the end of the turn would end the call without the answer
		if p.kept {
			p.endAsked(q, a)
		}
		return p.take()
	}
	p.unask(q)
	switch {
	case q.lost:
		p.decidedLost(q, a)
	case q.isOwn(a):
		p.send(Agent, q.reply)
	default:
		p.send(Agent, replyTo(q.agent, "result", q.result(a)))
	}
	return p.take()
}

// result is what the agent's request gets for a decision.
func (q *prompt) result(a harness.Answer) json.RawMessage {
	if q.form != nil {
		return q.form.reply(a)
	}
	return q.permissionReply(a)
}

// unask forgets a prompt: it needs no answer any more.
func (p *Proxy) unask(q *prompt) {
	q.closed = true
	p.cancelShown(q)
	delete(p.prompts, q.id)
	maps.DeleteFunc(p.asks, func(_ uint64, a *ask) bool { return a.prompt == q })
}

// isOwn reports whether a decision is that of the editor.
func (q *prompt) isOwn(a harness.Answer) bool {
	switch f := q.decision.(type) {
	case events.PromptAnswered:
		return a.Status == fold.Answered && a.By == f.By && reflect.DeepEqual(a.Answers, f.Answers)
	case events.PromptRejected:
		return a.Status == fold.Rejected && a.By == f.By
	case events.PromptWithdrawn:
		return a.Status == fold.Withdrawn && a.Reason == f.Reason
	}
	return false
}

// permissionReply returns the result of a permission request for a decision.
func (q *prompt) permissionReply(a harness.Answer) json.RawMessage {
	if reply := q.chosen(a); reply != nil {
		return reply
	}
	return encode(map[string]outcome{"outcome": {Outcome: stopCancelled}})
}

type outcome struct {
	Outcome string `json:"outcome"`
	Option  string `json:"optionId,omitempty"`
}

// chosen returns the result that chooses an option of a permission request; nil for another decision.
func (q *prompt) chosen(a harness.Answer) json.RawMessage {
	picked := outcome{}
	switch a.Status {
	case fold.Answered:
		for _, answer := range a.Answers {
			for _, g := range q.grants {
				if slices.Contains(answer.Selected, g.label) {
					picked = outcome{"selected", g.id}
				}
			}
		}
	case fold.Rejected:
		if q.reject != "" {
			picked = outcome{"selected", q.reject}
		}
	}
	if picked.Outcome == "" {
		return nil
	}
	return encode(map[string]outcome{"outcome": picked})
}
