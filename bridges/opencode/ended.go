package opencode

import (
	"maps"
	"slices"

	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// forget removes what nothing asks for any more about a session: decisions, held messages, and calls that owe a
// question of the plugin. The caller has the lock.
//
// A decision that is sent again finds no prompt, and the bridge would take that for the decision of another person. So
// it stays as long as an Ask or a handler may bring it, OpenCode may ask, the log waits for its receipt, or a turn
// names it. A message stays as long as the plugin asks for it, or its turn is to come or open. Later, OpenCode has it,
// or it was withdrawn.
func (r *follower) forget(l *process, session string) {
	if !l.keeps(session) {
		return
	}
	var st *fold.State
	if s := l.handle(session); s != nil {
		st = s.State()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.asked, func(prompt string, a *asking) bool {
		return a.session == session && a.decided && l.awaited[prompt] == 0 && l.turnsAt[session] == 0 &&
			r.translator.isSettled(session, prompt, a.settled) && !keepsPrompt(st, prompt)
	})
	maps.DeleteFunc(l.messages, func(message string, h *heldMessage) bool {
		return h.session == session && h.requests == 0 && !keepsMessage(st, message)
	})
	maps.DeleteFunc(l.owesAsk, func(c callKey, _ bool) bool {
		return c.session == session && (st == nil || st.Tools[c.call] == nil)
	})
}

// keeps reports whether something of a session may be forgotten.
func (l *process) keeps(session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asked {
		if a.session == session {
			return true
		}
	}
	for _, h := range l.messages {
		if h.session == session {
			return true
		}
	}
	for c := range l.owesAsk {
		if c.session == session {
			return true
		}
	}
	return false
}

// isSettled reports whether the server does not ask a prompt any more. replied: it has replied to the decision, which
// counts where its own events have not shown the prompt.
func (t *Translator) isSettled(session, prompt string, replied bool) bool {
	s := t.sessions[session]
	if s == nil {
		return replied || t.deleted.has(session)
	}
	for _, p := range s.prompts {
		if p.id == prompt {
			return p.done && !p.unsettled
		}
	}
	return replied || s.gone.has(gonePrompt+prompt)
}

// keepsPrompt reports whether a prompt is open in the log, waits for its receipt there, or is named by a turn that is
// open or that another one follows.
func keepsPrompt(st *fold.State, prompt string) bool {
	if st == nil {
		return false
	}
	of := func(c fold.Carried) bool { return c.Prompt == prompt }
	return st.Prompts[prompt] != nil || st.Turn != nil && slices.ContainsFunc(st.Turn.Prompts, of) ||
		st.LastTurn != nil && slices.ContainsFunc(st.LastTurn.Prompts, of) ||
		st.Pending.Turn != nil && slices.ContainsFunc(st.Pending.Turn.Prompts, of)
}

// keepsMessage reports whether the turn of a message is to come, or open.
func keepsMessage(st *fold.State, message string) bool {
	return st != nil && (isQueued(st, message) || st.Turn != nil && st.Turn.Message == message)
}

// forgets is [follower.forget] for a caller without the lock, after a change of what the process does.
func (r *follower) forgets(l *process, session string, change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(l, session)
}

// asksEnd records that a wait for the decision about a prompt has ended.
func (r *follower) asksEnd(l *process, session, prompt string) {
	r.forgets(l, session, func() {
		if l.awaited[prompt]--; l.awaited[prompt] == 0 {
			delete(l.awaited, prompt)
		}
	})
}

// beginHandler records that a handler of a turn begins. Until the returned function is called, its reading of the
// server may be older than the server's reply to a decision.
func (r *follower) beginHandler(l *process, session string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnsAt[session]++
	return func() {
		r.forgets(l, session, func() {
			if l.turnsAt[session]--; l.turnsAt[session] == 0 {
				delete(l.turnsAt, session)
			}
		})
	}
}
