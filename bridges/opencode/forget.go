package opencode

import "slices"

// Limits of the memory for ended entities. Open entities are always kept. So a stream of any length takes bounded
// memory for each session that is not deleted.
const (
	messagesKept = 200   // messages of a recently active session, with their calls
	messagesIdle = 10    // messages of any other session
	promptsKept  = 100   // settled prompts of a session
	turnsKept    = 1_000 // turn ids of a session, which are not used twice
	// ids of removed entities of a session; late events about them are only counted
	goneMax    = 2_000
	busyMax    = 100    // recently active sessions
	deletedMax = 10_000 // deleted sessions, for which late events may arrive
	lostMax    = 10_000 // entries of [Report].Lost
)

// Prefixes of ids in [session].gone.
const (
	goneMessage = "message "
	goneCall    = "call "
	gonePrompt  = "prompt "
)

// tidy removes ended entities from the session of the current event, and from sessions that are no longer active.
func (t *Translator) tidy(s *session) {
	if s.closed {
		t.bury(s)
		return
	}
	s.forgetEnded(messagesKept)
	if n := len(t.busy); n > 0 && t.busy[n-1] == s {
		return
	}
	t.busy = append(slices.DeleteFunc(t.busy, func(b *session) bool { return b == s }), s)
	if len(t.busy) > busyMax {
		t.busy[0].forgetEnded(messagesIdle)
		t.busy = slices.Delete(t.busy, 0, 1)
	}
}

// bury removes a deleted session. It keeps the session's id and the fields that its children need.
func (t *Translator) bury(s *session) {
	mine := func(other *session) bool { return other == s }
	t.ordered = slices.DeleteFunc(t.ordered, mine)
	t.busy = slices.DeleteFunc(t.busy, mine)
	delete(t.sessions, s.id)
	t.deleted.add(s.id)
	*s = session{id: s.id, parent: s.parent, root: s.root, opened: true, closed: true}
}

// forgetEnded removes the oldest ended messages and prompts, down to the limit. It runs only when there are twice as
// many, so the amortized cost is low.
func (s *session) forgetEnded(messages int) {
	if u := s.turn; u != nil && len(u.calls)+len(u.prompts) > 2*messages {
		u.calls = slices.DeleteFunc(u.calls, func(c *call) bool { return c.done })
		u.prompts = slices.DeleteFunc(u.prompts, func(p *prompt) bool { return p.done })
	}
	if more := len(s.orderedMessages) - messages; more > messages {
		s.orderedMessages = slices.DeleteFunc(s.orderedMessages, func(m *message) bool {
			if more == 0 || !s.over(m) {
				return false
			}
			more--
			s.drop(m)
			return true
		})
	}
	if more := len(s.orderedPrompts) - promptsKept; more > promptsKept {
		s.orderedPrompts = slices.DeleteFunc(s.orderedPrompts, func(id string) bool {
			if more == 0 || !s.prompts[id].done {
				return false
			}
			more--
			delete(s.prompts, id)
			s.gone.add(gonePrompt + id)
			return true
		})
	}
}

// over reports whether a message has ended: it is not pending, it is not the running model call or compaction, and its
// calls are done.
func (s *session) over(m *message) bool {
	running := s.turn != nil && s.turn.newest == m || s.compaction != nil && s.compaction.message == m
	return !running && !slices.Contains(s.pending, m) &&
		!slices.ContainsFunc(m.calls, func(key string) bool { return !s.calls[key].done })
}

// drop removes a message and its calls.
func (s *session) drop(m *message) {
	delete(s.messages, m.id)
	s.gone.add(goneMessage + m.id)
	for _, key := range m.calls {
		for _, name := range s.calls[key].names {
			delete(s.callParts, name)
			s.gone.add(goneCall + name)
		}
		delete(s.calls, key)
	}
}
