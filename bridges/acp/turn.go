package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// Reasons of stop in the result of a prompt request.
const (
	stopCancelled = "cancelled"
	stopRefusal   = "refusal"
)

// codeAuthentication is the error of an agent that wants a login first.
const codeAuthentication = -32000

// turn is what a prompt request asks for.
type turn struct {
	id        string
	hadOutput bool
	cancelled bool
	stop      *events.TurnStopped // it was stopped outside of the editor
	inherited bool                // of an earlier process of the proxy, and the agent does not have it
}

// stopped is the fact that ends a turn which was cancelled.
func (u *turn) stopped() events.Fact {
	if u.stop != nil {
		return *u.stop
	}
	return events.TurnStopped{Turn: u.id, Actor: events.ActorPerson, Reason: reasonEditor}
}

// promptAsked begins a turn, or has the request wait until the present turn has ended.
func (p *Proxy) promptAsked(q *asking) {
	q.s = p.session(q.msg.sessionID())
	q.s.waiting = append(q.s.waiting, q)
	if u := q.s.turn; u != nil && u.inherited {
		p.giveUp(q.s, events.TurnStopped{Turn: u.id, Actor: events.ActorPerson, Reason: reasonMessage}, nil)
	}
	p.next(q.s)
}

// next begins the turn of the request that waits longest, if the session has no other one. A session that the agent
// does not have takes no requests.
func (p *Proxy) next(s *session) {
	for s.current == nil && len(s.waiting) > 0 {
		q := s.waiting[0]
		s.waiting = s.waiting[1:]
		if s.failed == "" {
			p.begin(q)
			continue
		}
		p.answer(q, errorTo(q.id, codeInternal, textNotRestored+s.failed))
	}
}

// begin records a turn, and the message that it takes, and sends the request.
func (p *Proxy) begin(q *asking) {
	s := q.s
	s.begunHere = true
	if id, ok := p.begun[string(q.id)]; ok {
		delete(p.begun, string(q.id))
		s.turn, s.current = &turn{id: id}, q
		p.record(s)
		p.forward(q)
		return
	}
	message := p.newID("msg")
	s.turn, s.current = &turn{id: p.newID("turn")}, q
	p.record(s, events.MessageAccepted{Message: message, Content: p.cfg.Content.Message(promptText(q.msg.params)),
		By: byEditor}, events.TurnStarted{Turn: s.turn.id, Cause: events.CauseMessage, Message: message})
	p.forward(q)
}

// Requested says that the log has begun a turn which others have requested. The editor's prompt request with this id is
// for it, and begins no other one. It precedes the request.
func (p *Proxy) Requested(id json.RawMessage, turn string) { p.begun[string(id)] = turn }

// promptText returns the text of a prompt request.
func promptText(params json.RawMessage) string {
	var texts []string
	for _, raw := range list(members(params)["prompt"]) {
		if block := members(raw); text(block["type"]) == "text" {
			texts = append(texts, text(block["text"]))
		}
	}
	return strings.Join(texts, "\n")
}

// promptReplied ends the turn, and begins that of the next waiting request.
func (p *Proxy) promptReplied(q *asking, m message, line []byte) {
	s := q.s
	p.turns++
	// it has none if the session was closed meanwhile
	if s.turn != nil {
		p.record(s, s.turn.ending(p.cfg.Content, m))
		p.endTurn(s)
	}
	s.current = nil
	p.answer(q, line)
	p.next(s)
	p.forget(s)
}

// ending returns the fact that ends a turn with this reply.
func (u *turn) ending(content agent.Content, m message) events.Fact {
	reason := text(members(m.result)["stopReason"])
	switch {
	case m.failed != nil:
		return events.TurnFailed{Turn: u.id, Error: failureOf(content, m.failed), HadOutput: u.hadOutput}
	case reason == stopCancelled:
		return u.stopped()
	case reason == stopRefusal:
		return events.TurnFailed{Turn: u.id, HadOutput: u.hadOutput,
			Error: events.Failure{Kind: failure.ModelRefusal, Text: "the agent refuses to continue"}}
	}
	return events.TurnCompleted{Turn: u.id, Finish: name(reason)}
}

// failureOf classifies an error of JSON-RPC. Its text is content: an agent quotes what it was asked.
func failureOf(content agent.Content, raw json.RawMessage) events.Failure {
	e := members(raw)
	r := failure.Raw{Text: text(e["message"]), Body: string(e["data"])}
	if string(e["code"]) == string(encode(codeAuthentication)) {
		r.Code = failure.Authentication
	}
	f := failure.Classify(r)
	if content.Hidden() {
		f.Text = ""
	}
	return f
}

// endTurn forgets the turn with its calls and prompts: the end of a turn ends them in the log.
func (p *Proxy) endTurn(s *session) {
	p.settleAll(s)
	s.before = map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(s.calls)) {
		s.before[id] = true
		if !s.calls[id].done {
			s.loose = follow(s.loose, id, "")
		}
	}
	s.turn, s.calls, s.grants, s.unread = nil, map[string]*call{}, nil, nil
}

// cancelTurn passes the cancellation of a turn on. Requests that wait are cancelled with it: the agent does not know
// them.
func (p *Proxy) cancelTurn(m message) {
	s := p.sessions[m.sessionID()]
	lost := s != nil && s.current != nil && s.current.lost
	if p.phase == running && !lost {
		p.send(Agent, m.raw)
	}
	p.deferred = slices.DeleteFunc(p.deferred, func(d postponed) bool {
		if d.msg.method != methodPrompt || d.msg.sessionID() != m.sessionID() {
			return false
		}
		p.answer(&asking{gone: d.gone}, cancelled(d.msg.id))
		return true
	})
	if s == nil {
		return
	}
	p.cancelAllWaiting(s)
	if s.turn != nil {
		s.turn.cancelled = true
	}
	p.withdrawHidden(s)
	if lost && (p.phase == running || p.kept) {
		p.stopLost(s, cancelled(s.current.id))
	}
}

func (p *Proxy) cancelAllWaiting(s *session) {
	for _, q := range s.waiting {
		p.answer(q, cancelled(q.id))
	}
	s.waiting = nil
}

// cancelled is the result of a prompt request that was cancelled.
func cancelled(id json.RawMessage) []byte {
	return replyTo(id, "result", encode(map[string]string{"stopReason": stopCancelled}))
}

// codeCancelled is the error of a request that was cancelled before its reply.
const codeCancelled = -32800

// cancelWaiting cancels a prompt request that waits for the end of a turn. It returns false for another request.
func (p *Proxy) cancelWaiting(id json.RawMessage) bool {
	for _, s := range p.order {
		i := slices.IndexFunc(s.waiting, func(q *asking) bool { return !q.gone && string(q.id) == string(id) })
		if i < 0 {
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		p.send(Editor, errorTo(id, codeCancelled, "the request was cancelled before the agent had it"))
		return true
	}
	return false
}

// errorTo is a reply with an error.
func errorTo(id json.RawMessage, code int, message string) []byte {
	return replyTo(id, "error", encode(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, message}))
}

// replyTo is a reply with a result or an error.
func replyTo(id json.RawMessage, member string, value json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"`+member+`":`), value, []byte("}"))
}

// used records the use of the context. The same report is recorded once.
func (p *Proxy) used(s *session, u map[string]json.RawMessage) {
	f := events.UsageReported{Tokens: events.Tokens{Input: count(u["used"])}, ContextLimit: count(u["size"])}
	if s.turn == nil {
		return
	}
	f.Turn = s.turn.id
	if f != s.used {
		s.used = f
		p.record(s, f)
	}
}
