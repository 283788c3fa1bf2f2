package opencode

import "slices"

// Limits of what is remembered of what has ended. What is open is always remembered. With them a stream of any length
// takes bounded memory for each session that was not deleted.
const (
	messagesKept = 200   // messages of a session that was heard of lately, with their calls
	messagesIdle = 10    // of any other
	promptsKept  = 100   // settled prompts of a session
	turnsKept    = 1_000 // ids of turns of a session, which are not used twice
	// ids of a session that were forgotten: what comes late about them is counted, and says nothing
	goneMax    = 2_000
	busyMax    = 100    // sessions that were heard of lately
	deletedMax = 10_000 // deleted sessions, about which events may come late
	lostMax    = 10_000 // entries of [Report].Lost
)

// Prefixes of ids in [session].gone.
const (
	goneMessage = "message "
	goneCall    = "call "
	gonePrompt  = "prompt "
)

// tidy forgets what has ended in the session of the event in hand, and in those that nothing was heard of for long.
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

// bury forgets a deleted session but for its id, and for what its children name.
func (t *Translator) bury(s *session) {
	mine := func(other *session) bool { return other == s }
	t.ordered = slices.DeleteFunc(t.ordered, mine)
	t.busy = slices.DeleteFunc(t.busy, mine)
	delete(t.sessions, s.id)
	t.deleted.add(s.id)
	*s = session{id: s.id, parent: s.parent, root: s.root, opened: true, closed: true}
}

// forgetEnded forgets the oldest messages and prompts that have ended, until so many are left. It does so when there
// are twice as many, so that it costs little.
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

// over says that nothing of a message is open: no turn waits for it, and it is not what runs now.
func (s *session) over(m *message) bool {
	running := s.turn != nil && s.turn.newest == m || s.compaction != nil && s.compaction.message == m
	return !running && !slices.Contains(s.pending, m) &&
		!slices.ContainsFunc(m.calls, func(key string) bool { return !s.calls[key].done })
}

// drop forgets a message and its calls.
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
