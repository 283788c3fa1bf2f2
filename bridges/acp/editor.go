package acp

import (
	"maps"
	"slices"
	"time"
)

// textAway is what the agent reads when it asks an editor that has left.
const textAway = "the editor has left"

// EditorLeft returns what to do when the connection of the editor has ended. Turns go on, and questions stay open. The
// lines that [Proxy.FromEditor] gets afterwards are those of the next editor: its initialize is answered with what the
// agent said to the first one, and a session that it loads or resumes shows its open prompts again.
func (p *Proxy) EditorLeft(at time.Time) []Step {
	p.receivedAt(at)
	p.release()
	p.away, p.greet = true, p.greeting != nil
	for _, q := range p.asked {
		q.gone = true
	}
	for _, s := range p.order {
		for _, q := range s.waiting {
			q.gone = true
		}
		if s.current != nil {
			s.current.gone = true
		}
	}
	p.deferred = slices.DeleteFunc(p.deferred, func(d postponed) bool { return !d.msg.isRequest() })
	for i := range p.deferred {
		p.deferred[i].gone = true
	}
	for _, id := range slices.Sorted(maps.Keys(p.asks)) {
		if a := p.asks[id]; a.prompt == nil {
			p.send(Agent, errorTo(a.id, codeInternal, textAway))
		}
	}
	clear(p.asks)
	return p.take()
}

// showAgain sends the open prompts of a session to an editor that has opened it. Each has a new id; a reply to any of
// its ids counts, once.
func (p *Proxy) showAgain(s *session) {
	for _, key := range slices.Sorted(maps.Keys(p.prompts)) {
		q := p.prompts[key]
		if q.s != s || q.closed || q.early != nil || p.isHidden(q.msg.method, q.agent) ||
			q.inherited && q.form != nil && !p.forms {
			continue
		}
		id := p.nextID()
		p.asks[id] = &ask{id: q.agent, prompt: q}
		p.send(Editor, q.msg.withID(number(id)))
	}
}

// asksIn reports whether a prompt of a session is open.
func (p *Proxy) asksIn(s *session) bool {
	for _, q := range p.prompts {
		if q.s == s {
			return true
		}
	}
	return false
}
