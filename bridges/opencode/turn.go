package opencode

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// finishCalls is the finish of a model call after which the run goes on: its tools' results are for the next one.
const finishCalls = "tool-calls"

// Reasons of a stop.
const (
	reasonAborted  = "aborted in OpenCode"
	reasonBackOff  = "aborted in OpenCode while its own retry was waiting"
	reasonNoFinish = "idle without a finish or an error"
)

// turn is a run: from busy to idle.
type turn struct {
	id         string
	ended      bool
	lost       bool            // with its process
	retrying   bool            // OpenCode waits to try the model call again
	failure    *events.Failure // what was told last, unless the run went on after it
	newest     *message        // model call, summaries apart
	completed  bool            // that call
	finish     string          // of that call
	summarised bool            // a summary was made in it
	hadOutput  bool
	calls      []*call
	prompts    []*prompt
}

// finished says that the newest model call came to an end of its own.
func (u *turn) finished() bool { return u.completed && u.finish != "" }

// follow notes what is told of the newest model call. One that finishes has overcome the error that was told before.
func (u *turn) follow(info *messageInfo) {
	if info.Finish != "" && u.finish == "" {
		u.finish, u.failure = cutText(info.Finish, nameBytesMax), nil
	}
	u.completed = u.completed || info.completed()
}

// message is a user's message or one model call's.
type message struct {
	id         string
	role       string
	options    json.RawMessage // of a user's message: what makes a retry the same request
	parts      []userPart      // of a user's message that no turn has taken
	compaction bool            // the message asks for a compaction
	turn       *turn           // of a model call
	summary    bool
	model      string
	used       map[string]bool // step-finish parts that were reported
	taken      bool            // a turn has the user's message: its words are not needed any more
	calls      []string        // of a model call, by key
}

type userPart struct {
	id        string
	text      string
	synthetic bool
}

func (s *session) message(id string) *message {
	m := s.messages[id]
	if m == nil {
		m = &message{id: id, used: map[string]bool{}}
		s.messages[id] = m
		s.orderedMessages = append(s.orderedMessages, m)
	}
	return m
}

// synthetic says that nobody wrote the message: OpenCode put it there to go on.
func (m *message) synthetic() bool {
	return len(m.parts) > 0 && !slices.ContainsFunc(m.parts, func(p userPart) bool { return !p.synthetic })
}

// content is what was written, or what OpenCode put there if nothing was.
func (m *message) content() json.RawMessage {
	var texts []string
	for _, p := range m.parts {
		if p.synthetic == m.synthetic() && p.text != "" {
			texts = append(texts, p.text)
		}
	}
	return jsonText(strings.Join(texts, "\n"), contentBytesMax)
}

func (t *Translator) messageUpdated(s *session, b *body) {
	info := &b.messageInfo
	switch {
	case info.ID == "":
		t.problem("record %d: a message without an id", t.report.Records)
	case s.gone.has(goneMessage + info.ID):
		t.report.Late++
	case info.Role == "user":
		s.userMessage(info)
	case info.Role == "assistant":
		t.modelCall(s, info)
	}
}

// userMessage notes a message. It is said with the turn that takes it.
func (s *session) userMessage(info *messageInfo) {
	m := s.message(info.ID)
	if m.role != "" {
		return // the same again, with a summary of what it changed
	}
	m.role = info.Role
	m.options = encode(struct {
		Agent string `json:"agent,omitempty"`
		Model string `json:"model,omitempty"`
	}{cutText(info.Agent, nameBytesMax), info.Model.name()})
	if !m.compaction {
		s.pending = append(s.pending, m)
	}
}

func (t *Translator) messageRemoved(s *session, b *body) {
	s.pending = slices.DeleteFunc(s.pending, func(m *message) bool { return m.id == b.MessageID })
}

// modelCall follows an assistant message: one model call of a run.
func (t *Translator) modelCall(s *session, info *messageInfo) {
	m := s.message(info.ID)
	if m.role == "" {
		m.role, m.summary = info.Role, info.summary()
		t.beginCall(s, m, info)
	}
	m.model = modelRef{ModelID: info.ModelID, ProviderID: info.ProviderID}.name()
	if m.summary {
		t.summary(s, m, info)
		return
	}
	u := m.turn
	if u == nil || u.ended {
		return
	}
	if u.newest == m {
		u.follow(info)
	}
	if info.Error != nil {
		t.failed(s, info.Error)
	}
}

// beginCall finds the turn of a new model call, or begins it. A call that was over when it was first seen begins
// nothing.
func (t *Translator) beginCall(s *session, m *message, info *messageInfo) {
	if !t.takeUpTo(s, info.ParentID) && s.turn == nil && !m.summary && !info.completed() {
		t.resume(s, m, info.ParentID)
	}
	m.turn = s.turn
	if u := m.turn; u != nil && !m.summary {
		u.newest, u.completed, u.finish, u.failure, u.retrying = m, false, "", nil, false
	}
}

// takeWaiting begins turns for the messages that wait, because the session got busy. One whose parts are still to come
// waits for the model call that answers it.
func (t *Translator) takeWaiting(s *session) {
	for len(s.pending) > 0 && len(s.pending[0].parts) > 0 {
		t.takeNext(s)
	}
}

// takeUpTo takes the waiting messages up to the one that a model call answers, and says whether that one waited.
func (t *Translator) takeUpTo(s *session, id string) bool {
	n := slices.IndexFunc(s.pending, func(m *message) bool { return m.id == id })
	for range n + 1 {
		t.takeNext(s)
	}
	return n >= 0
}

// takeNext begins the turn of the oldest waiting message. In a turn that is open, what OpenCode put there only goes on
// with it; what a person wrote begins the next: after a finished answer the turn before is completed, else continued.
func (t *Translator) takeNext(s *session) {
	m := s.pending[0]
	s.pending = s.pending[1:]
	m.taken = true
	if s.turn != nil && m.synthetic() {
		m.parts = nil
		return
	}
	id := ident("msg", m.id)
	synthetic := m.synthetic() || s.parentCall != nil && !s.parentCall.done
	accepted := events.MessageAccepted{Message: id, Content: m.content(), Synthetic: synthetic}
	started := events.TurnStarted{Turn: s.newTurnID(id), Cause: events.CauseMessage, Synthetic: synthetic, Message: id,
		Options: m.options}
	var facts []events.Fact
	if u := s.turn; u != nil {
		if u.finished() && u.finish != finishCalls {
			facts = append(facts, events.TurnCompleted{Turn: u.id, Finish: u.finish})
		} else {
			started.OfTurn = u.id
		}
		s.endTurn()
	}
	m.parts = nil
	t.say(s, t.at, append(facts, accepted, started)...)
	s.beginTurn(started.Turn)
}

// resume begins a turn without a message of its own: the stream began in the middle of a run, or OpenCode goes on with
// a message that it had taken before. The model call is known, the message may be.
func (t *Translator) resume(s *session, call *message, message string) {
	started := events.TurnStarted{Cause: events.CauseMessage}
	if message != "" {
		started.Message = ident("msg", message)
		m := s.message(message)
		m.role, m.taken = "user", true
	}
	if s.lastTurn != "" {
		started.Cause, started.Synthetic, started.OfTurn = events.CauseResume, true, s.lastTurn
	}
	started.Turn = s.newTurnID(started.Message, ident("msg", call.id))
	t.say(s, t.at, started)
	s.beginTurn(started.Turn)
}

// newTurnID is the first of these ids that no turn has, usually the message's, or one derived from them.
func (s *session) newTurnID(candidates ...string) string {
	for _, id := range candidates {
		if id != "" && !s.turnIDs.has(id) {
			return id
		}
	}
	return events.DeriveID("turn", append(candidates, strconv.Itoa(s.turns))...)
}

func (s *session) beginTurn(id string) {
	s.turn = &turn{id: id}
	s.lastTurn = id
	if s.turnIDs.add(id) {
		s.turns++
	}
}

// endTurn ends the turn with everything open in it, as the fold does.
func (s *session) endTurn() {
	u := s.turn
	for _, c := range u.calls {
		c.end()
	}
	for _, p := range u.prompts {
		p.done = true
	}
	u.ended, u.calls, u.prompts = true, nil, nil
	s.turn = nil
}

func (t *Translator) sessionStatus(s *session, b *body) {
	switch u := s.turn; {
	case b.Status.Type == "idle":
		t.sessionIdle(s, b)
	case u != nil:
		u.retrying = b.Status.Type == "retry"
	case b.Status.Type == "busy":
		t.takeWaiting(s)
	}
}

// sessionIdle ends what the run did not end itself.
func (t *Translator) sessionIdle(s *session, _ *body) {
	if c := s.compaction; c != nil {
		t.compactionFailed(s, c.reason())
	}
	if s.turn == nil {
		return
	}
	t.end(s, s.turn.ending())
}

// ending is how a run ended that is idle now. OpenCode that stops by itself leaves an error or a finish, or has run a
// person's own command; an abort may leave neither. A message that was taken for the rest of a compaction got a summary
// and no answer: that is no success.
func (u *turn) ending() events.Fact {
	switch {
	case u.failure != nil:
		return events.TurnFailed{Turn: u.id, Error: *u.failure, HadOutput: u.hadOutput}
	case u.finished():
		return events.TurnCompleted{Turn: u.id, Finish: u.finish}
	case u.summarised && !u.hadOutput:
		return events.TurnFailed{Turn: u.id, Error: events.Failure{Kind: failure.EmptyOutput,
			Text: "OpenCode made a summary instead of an answer"}}
	case u.retrying:
		return events.TurnStopped{Turn: u.id, Actor: events.ActorPerson, Reason: reasonBackOff}
	case u.completed && u.hadOutput: // a person's own command: no model was called
		return events.TurnCompleted{Turn: u.id}
	default:
		return events.TurnStopped{Turn: u.id, Actor: events.ActorPerson, Reason: reasonNoFinish}
	}
}

func (t *Translator) end(s *session, f events.Fact) {
	t.say(s, t.at, f)
	s.endTurn()
}

func (t *Translator) sessionError(s *session, b *body) {
	if b.Error != nil {
		t.failed(s, b.Error)
	}
}

// failed notes an error, which may still be followed by a compaction and a continuation. An abort is final, and a
// person's.
func (t *Translator) failed(s *session, e *errorInfo) {
	f := e.failure(t.at)
	if s.compaction != nil {
		s.compaction.failure = &f
	}
	if s.turn != nil {
		s.turn.failure = &f
	}
	if e.Name == abortedError && s.turn != nil {
		t.end(s, events.TurnStopped{Turn: s.turn.id, Actor: events.ActorPerson, Reason: reasonAborted})
	}
}

// compaction is a summary that is being made. It has the id of the summary message.
type compaction struct {
	id      string
	message *message
	failure *events.Failure
}

func (c *compaction) reason() events.Failure {
	if c.failure != nil {
		return *c.failure
	}
	return events.Failure{Kind: failure.Unknown, Text: "idle without a compacted session"}
}

// summary follows the message that a compaction writes.
func (t *Translator) summary(s *session, m *message, info *messageInfo) {
	id := ident("compaction", m.id)
	if m.used[id] {
		t.summaryFailed(s, m, info)
		return
	}
	m.used[id] = true
	if info.completed() {
		return // over when it was first seen
	}
	if c := s.compaction; c != nil {
		t.compactionFailed(s, c.reason())
	}
	s.compaction = &compaction{id: id, message: m}
	t.say(s, t.at, events.CompactionStarted{Compaction: id})
}

func (t *Translator) summaryFailed(s *session, m *message, info *messageInfo) {
	if c := s.compaction; c != nil && c.message == m && info.Error != nil && info.completed() {
		t.compactionFailed(s, info.Error.failure(t.at))
	}
}

func (t *Translator) compactionFailed(s *session, f events.Failure) {
	t.say(s, t.at, events.CompactionFailed{Compaction: s.compaction.id, Error: f})
	s.compaction = nil
}

func (t *Translator) sessionCompacted(s *session, _ *body) {
	if s.compaction == nil {
		t.report.Late++
		return
	}
	t.say(s, t.at, events.CompactionCompleted{Compaction: s.compaction.id})
	s.compaction = nil
	if s.turn != nil {
		s.turn.summarised = true
	}
}
