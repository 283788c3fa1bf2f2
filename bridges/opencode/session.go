package opencode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// session is the state that the translation of a session's next event needs.
type session struct {
	id         string
	info       sessionInfo
	parent     *session
	root       string
	parentCall *call // of the parent, while it is known
	opened     bool
	closed     bool
	claim      bool // another process continues the session, and must claim it first
	events     int  // translated so far

	turn       *turn // the open one
	lastTurn   string
	turnIDs    window     // an id is not used twice
	turns      int        // the number of turns
	sent       string     // the newest message that Holdfast sent: a turn has it
	pending    []*message // user messages that no turn has taken, oldest first
	messages   map[string]*message
	calls      map[string]*call // by part id
	callParts  map[string]string
	prompts    map[string]*prompt
	compaction *compaction
	driven     bool // Holdfast has asked for the next summary: what OpenCode says of it is no news
	held       []held

	orderedMessages []*message // by first appearance
	orderedPrompts  []string   // by first appearance
	gone            window     // ids of removed entities
}

// held is a fact that waits for the next record of the session: a pending call, or a rejection whose text is in the
// call's error.
type held struct {
	at     time.Time
	call   *call
	prompt *prompt
}

// session returns the session with this id, and creates it if necessary.
func (t *Translator) session(id string) *session {
	id = ident("ses", id)
	s := t.sessions[id]
	if s == nil && t.deleted.has(id) {
		return &session{id: id, opened: true, closed: true}
	}
	if s == nil {
		s = &session{id: id, turnIDs: newWindow(turnsKept), messages: map[string]*message{}, calls: map[string]*call{},
			callParts: map[string]string{}, prompts: map[string]*prompt{}, gone: newWindow(goneMax)}
		t.sessions[id] = s
		t.began = true
		t.ordered = append(t.ordered, s)
	}
	return s
}

// sessionCreated opens the session. A sub-agent's session has its parent and, if it is unambiguous, the call that waits
// for it.
func (t *Translator) sessionCreated(s *session, b *body) {
	if s.opened {
		t.report.Late++
		return
	}
	t.sessionUpdated(s, b)
	if s.parent != nil {
		t.release(s.parent)
	}
	t.step(s, t.at, 0)
}

func (t *Translator) sessionUpdated(s *session, b *body) {
	s.info = b.sessionInfo
	if s.opened || s.info.ParentID == "" || ident("ses", s.info.ParentID) == s.id {
		return
	}
	s.parent = t.session(s.info.ParentID)
	s.root = s.parent.rootID()
	s.parentCall = s.parent.spawner(s)
}

// sessionDeleted closes the session. An archived session stays open, because OpenCode can restore it.
func (t *Translator) sessionDeleted(s *session, _ *body) {
	if s.opened {
		t.add(s, t.at, events.SessionClosed{Reason: "deleted"})
	}
	s.lose()
	s.opened, s.closed = true, true
}

// rootMax is the maximum depth of sub-agents. A deeper recording is inconsistent.
const rootMax = 100

func (s *session) rootID() string {
	at := s
	for range rootMax {
		if at.parent == nil {
			break
		}
		at = at.parent
	}
	return at.id
}

// opening returns the fact that opens the session. The harness sets the incarnation.
func (s *session) opening() *events.SessionOpened {
	o := &events.SessionOpened{Title: cutText(s.info.Title, titleBytesMax), Agent: cutText(s.info.Agent, nameBytesMax),
		Model: s.info.Model.name()}
	if s.parent != nil {
		o.Parent, o.Root = s.parent.id, s.root
	}
	if s.parentCall != nil {
		o.ParentCall = s.parentCall.id
	}
	if s.info.Directory != "" || s.info.Version != "" {
		o.Native = small(encode(map[string]string{"directory": s.info.Directory, "version": s.info.Version}),
			nativeBytesMax)
	}
	return o
}

// spawner returns the parent's call that waits for this child: the call that names the child, or, among the calls that
// name none, the one with the child's title, or the only one. If several calls match, it returns nil instead of a
// guess.
func (s *session) spawner(child *session) *call {
	if s.turn == nil {
		return nil
	}
	var free, titled []*call
	for _, c := range s.turn.calls {
		switch {
		case c.done || c.child != "" && c.child != child.id:
		case c.child == child.id:
			return c
		case c.name == "task":
			free = append(free, c)
			if d := c.description; d != "" && strings.HasPrefix(child.info.Title, d) {
				titled = append(titled, c)
			}
		}
	}
	for _, candidates := range [][]*call{titled, free} {
		if len(candidates) == 1 {
			candidates[0].child = child.id
			return candidates[0]
		}
	}
	return nil
}

// release appends the facts that the session holds back.
func (t *Translator) release(s *session) {
	for _, h := range s.held {
		t.addHeld(s, h)
	}
	s.held = nil
}

func (t *Translator) addHeld(s *session, h held) {
	at := latest(h.at, t.stepped)
	if h.call != nil {
		t.add(s, at, h.call.begin())
	} else {
		t.add(s, at, h.prompt.reject())
	}
}

// releaseCall appends the held fact of one call, and reports whether there was one.
func (t *Translator) releaseCall(s *session, c *call) bool {
	n := len(s.held)
	s.held = slices.DeleteFunc(s.held, func(h held) bool {
		mine := h.call == c || h.prompt != nil && h.prompt.call == c
		if mine {
			t.addHeld(s, h)
		}
		return mine
	})
	return len(s.held) < n
}

// open returns the session's open entities, sorted.
func (s *session) open() []string {
	var ids []string
	add := func(entity, id string) { ids = append(ids, fmt.Sprintf("%s/%s/%s", s.id, entity, id)) }
	if s.turn != nil {
		add("turn", s.turn.id)
	}
	for _, c := range s.calls {
		if c.begun && !c.done {
			add("tool", c.id)
		}
	}
	for _, p := range s.prompts {
		if !p.done {
			add("prompt", p.id)
		}
	}
	if s.compaction != nil {
		add("compaction", s.compaction.id)
	}
	slices.Sort(ids)
	return ids
}

// lose ends all open entities without facts, because the process is dead or the session is closed.
func (s *session) lose() {
	for _, m := range s.messages {
		if m.turn != nil {
			m.turn.lost = true
		}
	}
	if s.turn != nil {
		s.endTurn()
	}
	for _, c := range s.calls {
		c.end()
	}
	for _, p := range s.prompts {
		p.done = true
	}
	s.compaction, s.held = nil, nil
	s.claim = s.opened
}
