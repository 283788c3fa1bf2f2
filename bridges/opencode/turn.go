package opencode

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// finishCalls is the finish of a model call that requested tools: the run continues with their results.
const finishCalls = "tool-calls"

// statusRetry is the status of a session whose run waits for OpenCode's own retry.
const statusRetry = "retry"

// roleUser is the role of a person's message.
const roleUser = "user"

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
	lost       bool            // its process died
	retrying   bool            // OpenCode waits to try the model call again
	failure    *events.Failure // the last error, unless the run continued after it
	newest     *message        // the newest model call, without summaries
	completed  bool            // of newest
	finish     string          // of newest
	summarised bool            // the run made a summary
	awaited    bool            // it was requested, and its first model call has not begun
	deciding   bool            // a decision is on its way to the run: the turn does not end before that is over
	hadOutput  bool
	calls      []*call
	prompts    []*prompt
}

// finished reports whether the newest model call ended by itself.
func (u *turn) finished() bool { return u.completed && u.finish != "" }

// follow records the state of the newest model call. A finish clears an earlier error.
func (u *turn) follow(info *messageInfo) {
	if info.Finish != "" && u.finish == "" {
		u.finish, u.failure = cutText(info.Finish, nameBytesMax), nil
	}
	u.completed = u.completed || info.completed()
}

// message is a user's message or a model call.
type message struct {
	id         string
	role       string
	options    json.RawMessage // of a user's message: a retry uses the same options
	parts      []userPart      // of a user's message that no turn has taken
	compaction bool            // the message asks for a compaction
	turn       *turn           // of a model call
	summary    bool
	model      string
	used       map[string]bool // step-finish parts that are already reported
	taken      bool            // a turn has the user's message; its text is no longer needed
	calls      []string        // of a model call, by key
	stepped    bool            // a model has begun to answer: not a command that a person types after !
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

// synthetic reports whether OpenCode generated the message to continue a run, instead of a person.
func (m *message) synthetic() bool {
	return len(m.parts) > 0 && !slices.ContainsFunc(m.parts, func(p userPart) bool { return !p.synthetic })
}

// content returns the person's text, or OpenCode's own text if the person wrote none.
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
	case info.Role == roleUser:
		s.userMessage(info)
	case info.Role == "assistant":
		t.modelCall(s, info)
	}
}

// userMessage records a message. The turn that takes it appends the fact.
func (s *session) userMessage(info *messageInfo) {
	m := s.message(info.ID)
	if m.role != "" {
		// a repetition, with a summary of its changes
		return
	}
	m.role = roleUser
	if isSent(info.ID, s.sent) {
		// the turn has it
		m.taken = true
		return
	}
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

// modelCall handles an assistant message, which is one model call of a run.
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

// beginCall finds or begins the turn of a new model call. A call that has already ended at its first event begins no
// turn.
func (t *Translator) beginCall(s *session, m *message, info *messageInfo) {
	if !t.takeUpTo(s, info.ParentID) && s.turn == nil && !m.summary && !info.completed() {
		t.resume(s, m, info.ParentID)
	}
	m.turn = s.turn
	if u := m.turn; u != nil && !m.summary {
		u.newest, u.completed, u.finish, u.failure, u.retrying, u.awaited = m, false, "", nil, false, false
	}
}

// takeWaiting begins turns for the pending messages when the session becomes busy. A message without parts waits for
// the model call that answers it.
func (t *Translator) takeWaiting(s *session) {
	for len(s.pending) > 0 && len(s.pending[0].parts) > 0 {
		t.takeNext(s)
	}
}

// takeUpTo takes the pending messages up to the one that a model call answers, and reports whether that one was
// pending.
func (t *Translator) takeUpTo(s *session, id string) bool {
	n := slices.IndexFunc(s.pending, func(m *message) bool { return m.id == id })
	for range n + 1 {
		t.takeNext(s)
	}
	return n >= 0
}

// takeNext begins the turn of the oldest pending message. A synthetic message only continues an open turn. A person's
// message begins the next turn: an open turn with a finished answer is completed; otherwise the new turn continues it.
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
	t.add(s, t.at, append(facts, accepted, started)...)
	s.beginTurn(started.Turn)
}

// resume begins a turn without a pending message. Either the stream began in the middle of a run, or OpenCode continues
// with a message that a turn has already taken. The model call is known, and the message may be known.
func (t *Translator) resume(s *session, call *message, message string) {
	started := events.TurnStarted{Cause: events.CauseMessage}
	if message != "" {
		started.Message = ident("msg", message)
		m := s.message(message)
		m.role, m.taken = roleUser, true
	}
	if s.lastTurn != "" {
		started.Cause, started.Synthetic, started.OfTurn = events.CauseResume, true, s.lastTurn
	}
	started.Turn = s.newTurnID(started.Message, ident("msg", call.id))
	t.add(s, t.at, started)
	s.beginTurn(started.Turn)
}

// newTurnID returns the first candidate that no turn has, usually the message's id, or an id derived from the
// candidates.
func (s *session) newTurnID(candidates ...string) string {
	for _, id := range candidates {
		if id != "" && !s.turnIDs.has(id) {
			return id
		}
	}
	return events.DeriveID("run", append(candidates, strconv.Itoa(s.turns))...)
}

func (s *session) beginTurn(id string) {
	s.turn = &turn{id: id}
	s.lastTurn = id
	if s.turnIDs.add(id) {
		s.turns++
	}
}

// endTurn ends the turn with all its open calls and prompts, as the fold does.
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
		if u.retrying = b.Status.Type == statusRetry; u.retrying {
			t.backsOff(s, b)
		}
	case b.Status.Type == "busy":
		t.takeWaiting(s)
	}
}

// sessionIdle ends the open compaction and turn.
func (t *Translator) sessionIdle(s *session, _ *body) {
	if c := s.compaction; c != nil {
		t.compactionFailed(s, c.reason())
	}
	if s.turn == nil || s.turn.awaited || s.turn.deciding {
		return
	}
	t.end(s, s.turn.ending())
}

// ending returns the fact that ends an idle run. If OpenCode stopped by itself, there is an error or a finish, or a
// person's command ran. An abort may leave neither. A turn that ended in a summary without an answer has failed.
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
	// A person's command ran without a model call.
	case u.completed && u.hadOutput:
		return events.TurnCompleted{Turn: u.id}
	default:
		return events.TurnStopped{Turn: u.id, Actor: events.ActorPerson, Reason: reasonNoFinish}
	}
}

func (t *Translator) end(s *session, f events.Fact) {
	t.add(s, t.at, f)
	s.endTurn()
}

func (t *Translator) sessionError(s *session, b *body) {
	if b.Error != nil {
		t.failed(s, b.Error)
	}
}

// failed records an error. A compaction and a continuation may still follow. An abort is final and a person's.
func (t *Translator) failed(s *session, e *errorInfo) {
	f := t.failure(e)
	if s.compaction != nil {
		s.compaction.failure = &f
	}
	if s.turn != nil {
		s.turn.failure, s.turn.awaited = &f, false
	}
	if e.Name == abortedError && s.turn != nil {
		t.end(s, events.TurnStopped{Turn: s.turn.id, Actor: events.ActorPerson, Reason: reasonAborted})
	}
}

// compaction is a summary in progress. It has the id of the summary message.
type compaction struct {
	id      string
	message *message
	failure *events.Failure
	driven  bool // Holdfast has asked for it
}

func (c *compaction) reason() events.Failure {
	if c.failure != nil {
		return *c.failure
	}
	return events.Failure{Kind: failure.Unknown, Text: "idle without a compacted session"}
}

// summary handles the message that a compaction writes.
func (t *Translator) summary(s *session, m *message, info *messageInfo) {
	id := ident("compaction", m.id)
	if m.used[id] {
		t.summaryFailed(s, m, info)
		return
	}
	m.used[id] = true
	driven := s.driven
	s.driven = false
	if info.completed() {
		// already over at its first event
		return
	}
	if c := s.compaction; c != nil {
		t.compactionFailed(s, c.reason())
	}
	s.compaction = &compaction{id: id, message: m, driven: driven}
	t.compacts(s, events.CompactionStarted{Compaction: id})
}

// compacts adds a fact about the open compaction, if OpenCode has begun it by itself.
func (t *Translator) compacts(s *session, f events.Fact) {
	if !s.compaction.driven {
		t.add(s, t.at, f)
	}
}

func (t *Translator) summaryFailed(s *session, m *message, info *messageInfo) {
	if c := s.compaction; c != nil && c.message == m && info.Error != nil && info.completed() {
		t.compactionFailed(s, t.failure(info.Error))
	}
}

func (t *Translator) compactionFailed(s *session, f events.Failure) {
	t.compacts(s, events.CompactionFailed{Compaction: s.compaction.id, Error: f})
	s.compaction = nil
}

func (t *Translator) sessionCompacted(s *session, _ *body) {
	if s.compaction == nil {
		t.report.Late++
		return
	}
	t.compacts(s, events.CompactionCompleted{Compaction: s.compaction.id})
	s.compaction = nil
	if s.turn != nil {
		s.turn.summarised = true
	}
}
