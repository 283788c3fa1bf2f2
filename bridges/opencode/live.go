package opencode

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// reasonUnseen is why a prompt is withdrawn that the server no longer lists, and whose end was not seen.
const reasonUnseen = "settled while the event stream was lost"

// NewLiveTranslator returns a translator for the stream of a living server. Two things differ from [NewTranslator]:
//
//   - server.connected is the begin of a connection, and not a restart: the caller knows the difference, and says
//     [Translator.Restart].
//   - A prompt of a call outlives the process: its answer is the result of the call (tool-result, keep).
func NewLiveTranslator() *Translator {
	t := NewTranslator()
	t.live = true
	return t
}

// Restart says that the process of the server died. The steps are those of facts that were held back, then the restart.
func (t *Translator) Restart() []Step {
	t.before = t.at
	t.restart()
	return t.take()
}

// Know seeds a session that the log has: its newest turn, and the ids of turns that are not used again.
func (t *Translator) Know(id, newest string, turns ...string) {
	s := t.session(id)
	s.opened, s.claim, s.lastTurn = true, true, newest
	for _, turn := range append(turns, newest) {
		if turn != "" && s.turnIDs.add(turn) {
			s.turns++
		}
	}
}

// Continue says that the log has an open turn of the session that this process runs: message is the user's message that
// the next model call answers, or the message of Holdfast that was sent as one. An idle event ends the turn only after
// the model call has begun, because events about what the session did before may still arrive.
func (t *Translator) Continue(id, turn, message string) {
	s := t.session(id)
	s.opened = true
	if s.turn != nil {
		s.endTurn()
	}
	if message != "" {
		m := s.message(message)
		m.role, m.taken, m.parts = roleUser, true, nil
		s.forget(m)
	}
	s.sent = message
	s.beginTurn(turn)
	s.turn.awaited = true
}

// old says that model calls of a session are those of earlier turns: what is shown of them is no news of the open one.
func (t *Translator) old(id string, calls []string) {
	s := t.session(id)
	for _, call := range calls {
		if m := s.message(call); m.turn == nil || m.turn == s.turn {
			m.role, m.turn = "assistant", &turn{ended: true, lost: true}
		}
	}
}

// taken says that recovery took a session from this process, which continues it: st is what the log has of it now. What
// recovery closed stays closed. The next comparison records again: the run that continues, as a turn of its own, and
// the prompts for which the server waits.
func (t *Translator) taken(id string, st *fold.State) {
	s := t.session(id)
	for _, h := range s.held {
		if h.call != nil {
			h.call.begun = false
		}
	}
	for _, c := range s.calls {
		if c.begun && st.Tools[c.id] == nil {
			c.end()
		}
	}
	for _, p := range s.prompts {
		q := st.Prompts[p.id]
		if !p.done && (q == nil || q.Status != fold.Awaiting) {
			p.done, p.unsettled = true, true
		}
		p.turn = nil
	}
	for _, m := range s.messages {
		if m.turn == nil || m.turn.ended {
			continue
		}
		m.turn.ended, m.turn.lost, m.turn.calls, m.turn.prompts = true, true, nil, nil
	}
	if u := s.turn; u != nil {
		if m := u.newest; m != nil && !u.completed {
			m.role, m.turn = "", nil
		}
		u.ended, u.lost, u.calls, u.prompts = true, true, nil, nil
	}
	s.turn, s.compaction, s.held = nil, nil, nil
	newest := s.lastTurn
	if st.LastTurn != nil {
		newest = st.LastTurn.ID
	}
	t.Know(id, newest)
}

// touched returns the number of events about a session so far.
func (t *Translator) touched(id string) int {
	if s := t.sessions[id]; s != nil {
		return s.events
	}
	return 0
}

// Active returns the sessions whose state a connection may have missed: those with open entities, and those of recent
// events, sorted.
func (t *Translator) Active() []string {
	ids := map[string]bool{}
	for _, s := range t.busy {
		ids[s.id] = true
	}
	for _, s := range t.ordered {
		if len(s.open()) > 0 {
			ids[s.id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// Snapshot is what a server says about one session at one instant.
type Snapshot struct {
	Session     json.RawMessage // nil: not read
	Messages    []Message       // oldest first; may begin in the middle
	Questions   []json.RawMessage
	Permissions []json.RawMessage
	Status      json.RawMessage // nil: idle
	Idle        bool            // the session runs nothing, and Messages were the same before and after
}

// Message is a stored message with its parts.
type Message struct {
	Info  json.RawMessage   `json:"info"`
	Parts []json.RawMessage `json:"parts"`
}

// Compare returns what has happened to a session that the stream did not show: the snapshot is translated as the events
// that would have led to it, and whatever is known already is no fact again. Messages from before the first known one
// are old, and are left out; of a session without a known message only a run counts that has not ended.
func (t *Translator) Compare(at time.Time, id string, n *Snapshot) []Step {
	t.before, t.at = t.at, latest(t.at, at)
	s := t.session(id)
	if s.closed {
		return nil
	}
	if n.Session != nil {
		t.show("session.updated", map[string]any{"sessionID": id, "info": n.Session})
	}
	for _, m := range n.Messages[s.firstNew(n):] {
		t.show("message.updated", map[string]any{"sessionID": id, "info": m.Info})
		for _, p := range m.Parts {
			t.show("message.part.updated", map[string]any{"sessionID": id, "part": p})
		}
	}
	asked := map[string]bool{}
	for _, raw := range n.Questions {
		asked[idOf(raw)] = true
		t.show("question.asked", raw)
	}
	for _, raw := range n.Permissions {
		asked[idOf(raw)] = true
		t.show("permission.asked", raw)
	}
	t.release(s)
	for _, key := range s.orderedPrompts {
		p := s.prompts[key]
		p.unsettled = p.unsettled && asked[key]
		if !p.done && !asked[key] {
			p.done = true
			t.add(s, t.at, events.PromptWithdrawn{Prompt: p.id, Reason: reasonUnseen})
		}
	}
	var status statusInfo
	if json.Unmarshal(n.Status, &status) == nil && status.Type == statusRetry {
		t.show("session.status", map[string]any{"sessionID": id, "status": n.Status})
	}
	if n.Idle && (s.turn != nil || s.compaction != nil) {
		t.show("session.idle", map[string]any{"sessionID": id})
	}
	return t.take()
}

// show translates an event that no stream has sent.
func (t *Translator) show(typ string, properties any) {
	t.dispatch(event{Type: typ, Properties: encode(properties)})
}

// firstNew returns the index of the first message of a snapshot that may be news.
func (s *session) firstNew(n *Snapshot) int {
	first := func(is func(id, role string) bool) int {
		return slices.IndexFunc(n.Messages, func(m Message) bool {
			var info messageInfo
			if err := json.Unmarshal(m.Info, &info); err != nil && !misshapen(err) {
				return false
			}
			return is(info.ID, info.Role)
		})
	}
	if i := first(func(id, _ string) bool { return s.messages[id] != nil || isSent(id, s.sent) }); i >= 0 {
		return i
	}
	last := -1
	if !n.Idle || len(n.Questions)+len(n.Permissions) > 0 {
		newest := ""
		first(func(id, role string) bool {
			if role == roleUser {
				newest = id
			}
			return false
		})
		last = first(func(id, _ string) bool { return id == newest && id != "" })
	}
	if last >= 0 {
		return last
	}
	return len(n.Messages)
}

// idOf returns the id of a JSON object, "" without one.
func idOf(raw json.RawMessage) string {
	var v struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &v); err != nil && !misshapen(err) {
		return ""
	}
	return v.ID
}

// deliver returns how the answer to a prompt reaches the agent, and what becomes of the prompt when the process dies.
func (t *Translator) deliver(p *prompt) (events.Delivery, events.OwnerLoss) {
	if t.live && p.call != nil {
		return events.DeliverToolResult, events.LossKeep
	}
	return events.DeliverCallback, events.LossExpire
}

// asked returns the call that waited for a prompt, "" if it is not known, and whether the prompt was a permission.
func (t *Translator) asked(id, prompt string) (call string, permission bool) {
	s := t.sessions[id]
	if s == nil || s.prompts[prompt] == nil {
		return "", false
	}
	p := s.prompts[prompt]
	if p.call != nil {
		call = p.call.id
	}
	return call, p.kind == events.PromptPermission
}

// directory returns the directory of a session, "" if it is not known.
func (t *Translator) directory(id string) string {
	if s := t.sessions[id]; s != nil {
		return s.info.Directory
	}
	return ""
}
