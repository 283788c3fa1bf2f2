package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// phase is what the proxy knows of the agent's process.
type phase int

const (
	running   phase = iota
	down            // it has ended
	restoring       // the next one runs, and does not have the sessions yet
	given           // it has ended, and there is no next one
)

// codeInternal is the error of a request that the agent cannot answer any more.
const codeInternal = -32603

// Texts for the agent when a turn continues in its next process.
const (
	textRestarted = "The agent was restarted in the middle of this turn. Continue it. A call that was running may " +
		"have had an effect: check before you repeat it."
	textAnswered = "The agent was restarted while it waited for an answer: %s. The user has now answered: %s. " +
		"Continue the turn; call the tool again if it was permitted."
)

// Texts for the editor.
const (
	textNotRestored = "The agent was restarted, and does not have the session: "
	textCannotLoad  = "the agent cannot load sessions"
	textNotRun      = "Interrupted: the agent's process ended before this ran."
)

// Limits of what an editor says while no process of the agent can have it.
const (
	deferredMax      = 1000
	deferredBytesMax = 16 << 20
)

// grantKept is a decision about a permission of a dead process. The next equal request of the same turn gets it, once.
type grantKept struct {
	key    string
	answer harness.Answer
}

// postponed is a message of the editor for the next process of the agent.
type postponed struct {
	msg  message
	gone bool // its editor has left
}

// chore is a request of the proxy's own that restores the agent.
type chore struct {
	method string
	params json.RawMessage
	s      *session // whose part it is
}

// repeatable are requests that have the same effect when they are sent to the next process.
var repeatable = []string{"initialize", "authenticate", "logout", "session/new", "session/list", methodResume,
	"session/close", "session/delete", methodSetMode, methodSetModel, methodSetOption}

// AgentExited returns what to do when the agent's process has ended. The editor sees that the calls which ran have
// failed. Prompt requests and questions stay open: the next process continues them.
//
// The caller hands over all lines of the process first. Then it carries out these steps, and only then gives up its
// incarnation: a step can have the fact of a call that the process has announced. Until [Proxy.AgentStarted] no step
// has facts, so no incarnation is needed in between. A second call before the next start has no effect.
func (p *Proxy) AgentExited(at time.Time, why string) []Step {
	p.receivedAt(at)
	if p.phase == down || p.phase == given {
		return nil
	}
	p.release()
	p.phase, p.chores = down, nil
	p.requestsLost(why)
	maps.DeleteFunc(p.asks, func(_ uint64, a *ask) bool { return a.prompt == nil })
	for _, q := range p.prompts {
		q.lost = true
	}
	for _, s := range slices.Clone(p.order) {
		p.lose(s, why)
	}
	return p.take()
}

// requestsLost decides about the requests of the editor that the dead process had.
func (p *Proxy) requestsLost(why string) {
	var again []postponed
	for _, id := range slices.Sorted(maps.Keys(p.asked)) {
		q := p.asked[id]
		delete(p.asked, id)
		s := p.sessions[q.msg.sessionID()]
		switch {
		case q.then != nil && q.id == nil:
			// the next start makes its own
		case q.s != nil && q.s.turn != nil:
			q.lost = true
		case q.s != nil:
			// the session was closed, or the log has ended the turn
			q.s.current = nil
			p.answer(q, cancelled(q.id))
		case slices.Contains(repeatable, q.msg.method), q.msg.method == methodLoad && s != nil && !s.shown:
			again = append(again, postponed{q.msg, q.gone})
		default:
			p.answer(q, errorTo(q.id, codeInternal, "the agent's process ended before its reply: "+why))
		}
	}
	p.deferred = slices.Concat(again, p.deferred)
}

// lose ends the calls of a session on the screen, except those that wait for an answer.
func (p *Proxy) lose(s *session, why string) {
	s.opened, s.loading, s.shown = false, false, false
	for _, acp := range slices.Sorted(maps.Keys(s.calls)) {
		c := s.calls[acp]
		c.lost = true
		waits := slices.ContainsFunc(c.prompts, func(q *prompt) bool { return p.prompts[q.id] == q })
		if !c.done && !waits {
			p.failOnScreen(s, c, textDied(why))
		}
	}
	for _, id := range slices.Concat(s.loose, s.replayed) {
		p.send(Editor, failedUpdate(s.acp, id, textReplayed))
	}
	s.loose, s.replayed = nil, nil
	p.forget(s)
}

// AgentReturns returns what to do when the agent's process has ended, and the caller keeps its incarnation until the
// next one has started: the calls that ran end in the log, and what the editor says to a question is recorded at once.
// A turn that is stopped ends at once, too.
// It follows [Proxy.AgentExited].
func (p *Proxy) AgentReturns(at time.Time, why string) []Step {
	p.receivedAt(at)
	p.kept = true
	for _, s := range p.order {
		for _, acp := range slices.Sorted(maps.Keys(s.calls)) {
			c := s.calls[acp]
			waits := slices.ContainsFunc(c.prompts, func(q *prompt) bool {
				return q.form != nil && p.prompts[q.id] == q
			})
			if c.lost && !waits {
				p.closeLost(s, c, textDied(why))
			}
		}
	}
	return p.take()
}

// canReturn reports whether the next process of the agent can have the sessions: it can load or resume them.
func (p *Proxy) canReturn() bool {
	return p.init != nil && (string(p.caps["loadSession"]) == "true" ||
		members(p.caps["sessionCapabilities"])["resume"] != nil)
}

// hangs reports whether the agent owes a reply while it is restored, and does not wait for one itself.
func (p *Proxy) hangs() bool {
	return p.phase == restoring && !slices.ContainsFunc(slices.Collect(maps.Values(p.asks)), func(a *ask) bool {
		return a.prompt == nil || !a.prompt.lost
	})
}

// closeLost ends a call of a dead process in the log. A caller that gives up its incarnation leaves that to recovery.
func (p *Proxy) closeLost(s *session, c *call, why string) {
	if p.kept && !c.closed {
		c.closed = true
		p.record(s, events.ToolFailed{Call: c.id, Error: events.Failure{Kind: failure.Interrupted, Text: why}})
	}
}

// textDied says what became of a call that ran.
func textDied(why string) string {
	return "Interrupted: the agent's process ended while this ran (" + why + "). It may have had an effect."
}

func (p *Proxy) failOnScreen(s *session, c *call, why string) {
	c.done = true
	p.send(Editor, failedUpdate(s.acp, c.acp, why))
}

// postpone handles a message of the editor while no process of the agent has its sessions.
func (p *Proxy) postpone(m message) {
	switch {
	case m.isReply():
		p.repliedEarly(m)
	case m.method == methodCancel && m.id == nil:
		p.cancelTurn(m)
	case p.phase == given || len(p.deferred) >= deferredMax || p.deferredBytes()+len(m.raw) > deferredBytesMax:
		if m.isRequest() {
			p.send(Editor, errorTo(m.id, codeInternal, "no process of the agent runs"))
		} else {
			p.report.Late++
		}
	default:
		p.deferred = append(p.deferred, postponed{msg: m})
	}
}

func (p *Proxy) deferredBytes() (n int) {
	for _, d := range p.deferred {
		n += len(d.msg.raw)
	}
	return n
}

// repliedEarly keeps the reply to a prompt of the dead process until a process can record it. A request of the present
// process has its reply at once: the process may wait for it before it has loaded a session.
func (p *Proxy) repliedEarly(m message) {
	id, ok := m.ownID()
	a := p.asks[id]
	if ok && a != nil && a.prompt != nil && p.kept {
		p.fromEditor(m, false)
		return
	}
	if ok && a != nil && a.prompt != nil && a.prompt.lost && a.prompt.early == nil {
		a.prompt.early = &m
		return
	}
	if ok && a != nil && (a.prompt == nil || !a.prompt.lost) {
		p.fromEditor(m, false)
		return
	}
	p.report.Late++
}

// AgentStarted returns what to send to the next process of the agent: what the editor said at the beginning, then for
// each session its load, its modes and its options. Nothing else is said to the process before it has replied to all of
// that. Then open turns continue, and what the editor has said meanwhile follows.
//
// The caller has a new incarnation by then. The first step with facts of a session takes it ([Step.Open]) and names in
// [Step.Adopt] the turn and the prompts that continue. The caller delivers the decisions about those prompts by
// [Proxy.Decided], also those that were made while no process ran. If the log has ended an adopted turn meanwhile, the
// caller says so by [Proxy.TurnEnded]. The call may be left out for the first process.
func (p *Proxy) AgentStarted(at time.Time) []Step {
	p.receivedAt(at)
	if p.phase == running || p.phase == restoring {
		return nil
	}
	p.phase = restoring
	for _, s := range p.order {
		s.opened = false
	}
	if p.init != nil {
		p.chores = append(p.chores, chore{method: "initialize", params: p.init})
	} else {
		p.failAll(textCannotLoad)
	}
	p.nextChore()
	return p.take()
}

// AgentGone returns what to do when the agent's process has ended and the caller starts no other one. Open turns fail,
// and every request of the editor has an error with the reason, now and later. The caller has an incarnation that can
// record the ends. [Proxy.AgentStarted] can follow later.
func (p *Proxy) AgentGone(at time.Time, why string) []Step {
	first := p.AgentExited(at, why)
	p.phase = given
	for _, d := range p.deferred {
		if d.msg.isRequest() {
			p.answer(&asking{gone: d.gone}, errorTo(d.msg.id, codeInternal, why))
		}
	}
	p.deferred = nil
	for _, s := range slices.Clone(p.order) {
		s.failed = why
		p.proceed(s)
		// of no turn
		for _, q := range p.promptsOf(s) {
			p.withdraw(q, "the agent's process has ended")
		}
		p.settleAll(s)
	}
	return slices.Concat(first, p.take())
}

// failAll says that the present process has none of the sessions.
func (p *Proxy) failAll(why string) {
	for _, s := range p.order {
		s.failed = why
	}
}

// greeted takes in what the agent can do. A reply that does not say it changes nothing.
func (p *Proxy) greeted(m message) {
	if caps := members(members(m.result)["agentCapabilities"]); p.greeting == nil || caps != nil {
		p.greeting, p.caps = m.result, caps
	}
}

// restore adds what brings a session to the next process.
func (p *Proxy) restore(s *session) {
	s.failed = ""
	var method string
	switch {
	case s.begun == nil:
		s.failed = "no request of the editor has opened it"
		return
	case string(p.caps["loadSession"]) == "true":
		method = methodLoad
	case members(p.caps["sessionCapabilities"])["resume"] != nil:
		method = methodResume
	default:
		s.failed = textCannotLoad
		return
	}
	s.restoring = true
	p.chores = append(p.chores, chore{method, s.begun, s})
	for _, x := range s.settings.list {
		p.chores = append(p.chores, chore{x.method, x.params, s})
	}
}

// nextChore sends the next request that restores the agent, or ends the restoring.
func (p *Proxy) nextChore() {
	for len(p.chores) > 0 {
		c := p.chores[0]
		p.chores = p.chores[1:]
		if c.s != nil && c.s.failed != "" {
			continue
		}
		id := p.nextID()
		p.asked[id] = &asking{then: func(m message) { p.choreDone(c, m) }}
		p.send(Agent, request(id, c.method, c.params))
		return
	}
	if q := p.nextSetting(); q != nil {
		q.then = func(m message) {
			p.replied(q, m)
			p.answer(q, m.withID(q.id))
			p.nextChore()
		}
		p.forward(q)
		return
	}
	p.restored()
}

// nextSetting takes the first mode or option that the editor has asked for meanwhile out of its messages. It precedes
// the open turn, because the turn began before it. It does not precede another request for its session.
func (p *Proxy) nextSetting() *asking {
	others := map[string]bool{}
	for i, d := range p.deferred {
		id := d.msg.sessionID()
		set := slices.Contains([]string{methodSetMode, methodSetModel, methodSetOption}, d.msg.method)
		if d.msg.isRequest() && set && !others[id] {
			p.deferred = slices.Delete(p.deferred, i, i+1)
			return &asking{id: d.msg.id, msg: d.msg, gone: d.gone}
		}
		others[id] = true
	}
	return nil
}

// restored continues the open turns, and brings what the editor and others have said meanwhile.
func (p *Proxy) restored() {
	p.phase = running
	for _, s := range slices.Clone(p.order) {
		s.restoring = false
		p.proceed(s)
	}
	for _, key := range slices.Sorted(maps.Keys(p.late)) {
		if q := p.prompts[key]; q != nil {
			p.unask(q)
			p.decidedLost(q, p.late[key])
		}
	}
	clear(p.late)
	for _, key := range slices.Sorted(maps.Keys(p.prompts)) {
		if q := p.prompts[key]; q.early != nil {
			m := *q.early
			q.early = nil
			p.promptAnswered(q, m)
		}
	}
	deferred := p.deferred
	p.deferred = nil
	for _, d := range deferred {
		p.fromEditor(d.msg, d.gone)
	}
}

func (p *Proxy) choreDone(c chore, m message) {
	why := c.method + ": " + reasonOf(m.failed)
	switch {
	case m.failed != nil && c.s != nil:
		c.s.failed = why
	case m.failed != nil && c.method == "initialize":
		p.failAll(why)
	case m.failed == nil && c.method == "initialize":
		p.greeted(m)
		// if it fails, the sessions say whether it was needed
		if p.auth != nil {
			p.chores = append(p.chores, chore{method: "authenticate", params: p.auth})
		}
		for _, s := range p.order {
			p.restore(s)
		}
	}
	p.nextChore()
}

// reasonOf returns what an error of the agent says. Some agents have "Internal error" as the message of each, and the
// reason in its data.
func reasonOf(failed json.RawMessage) string {
	f := members(failed)
	message := text(f["message"])
	more := firstOf(text(f["data"]), text(members(f["data"])["details"]))
	if more == "" || more == message {
		return message
	}
	return message + ": " + more
}

func request(id uint64, method string, params json.RawMessage) []byte {
	return requestOf(number(id), method, params)
}

// promptsOf returns the prompts of the dead process in a session.
func (p *Proxy) promptsOf(s *session) (all []*prompt) {
	for _, key := range slices.Sorted(maps.Keys(p.prompts)) {
		if q := p.prompts[key]; q.s == s && q.lost {
			all = append(all, q)
		}
	}
	return all
}

// adoption names what the present process continues in a session when it takes it.
func (p *Proxy) adoption(s *session) *harness.Adopt {
	a := harness.Adopt{Turn: s.turn != nil && s.current.lost}
	for _, q := range p.promptsOf(s) {
		a.Prompts = append(a.Prompts, harness.Prompt{ID: q.id})
	}
	if !a.Turn && len(a.Prompts) == 0 {
		return nil
	}
	return &a
}

// proceed continues the open turn of a session: the present process takes the turn and its prompts over.
func (p *Proxy) proceed(s *session) {
	if a := p.adoption(s); a != nil {
		p.record(s)
	}
	switch {
	case s.turn == nil:
		p.next(s)
	case s.turn.cancelled:
		p.stopLost(s, cancelled(s.current.id))
	case s.failed != "":
		why := textNotRestored + s.failed
		p.giveUp(s, events.TurnFailed{Turn: s.turn.id, HadOutput: s.turn.hadOutput,
			Error: events.Failure{Kind: failure.RuntimeNotReady, Text: p.cfg.Content.Text(why)}},
			errorTo(s.current.id, codeInternal, why))
	case !p.waits(s):
		p.goOn(s)
	}
}

// waits reports whether the open turn of a session waits for a decision about a prompt of the dead process.
func (p *Proxy) waits(s *session) bool {
	return slices.ContainsFunc(p.promptsOf(s), func(q *prompt) bool { return q.turn == s.turn })
}

// stopLost ends a turn that no process of the agent has, as its user wants.
func (p *Proxy) stopLost(s *session, line []byte) {
	p.giveUp(s, s.turn.stopped(), line)
}

// giveUp ends the open turn of a session, which no process of the agent has, and its prompt request.
func (p *Proxy) giveUp(s *session, end events.Fact, line []byte) {
	p.record(s, end)
	p.dropTurn(s, line)
}

// dropTurn forgets a turn that no process of the agent has, and answers its prompt request.
func (p *Proxy) dropTurn(s *session, line []byte) {
	for _, acp := range slices.Sorted(maps.Keys(s.calls)) {
		if c := s.calls[acp]; !c.done {
			p.failOnScreen(s, c, textNotRun)
		}
	}
	p.endTurn(s)
	q := s.current
	s.current = nil
	p.answer(q, line)
	if p.phase != down && p.phase != restoring {
		p.next(s)
	}
}

// cancelLost cancels a prompt request that no process of the agent has.
func (p *Proxy) cancelLost(id json.RawMessage) bool {
	i := slices.IndexFunc(p.order, func(s *session) bool {
		return s.turn != nil && s.current.lost && !s.current.gone && string(s.current.id) == string(id)
	})
	if i < 0 {
		return false
	}
	p.stopLost(p.order[i], errorTo(id, codeCancelled, "the request was cancelled"))
	return true
}

// Stop returns what to do when a turn is stopped outside of the editor: the same as for a cancellation in it, and the
// requests of the agent that wait in the turn are withdrawn, as an editor does that cancels. The turn has its id in
// Holdfast.
func (p *Proxy) Stop(at time.Time, turn, actor, reason string) []Step {
	p.receivedAt(at)
	i := slices.IndexFunc(p.order, func(s *session) bool { return s.turn != nil && s.turn.id == turn })
	if i < 0 {
		// it has ended, and a stop of it does not stop the next one
		return nil
	}
	s := p.order[i]
	u := s.turn
	u.stop = &events.TurnStopped{Turn: turn, Actor: actor, Reason: reason}
	p.cancelTurn(p.cancellation(s))
	for _, key := range slices.Sorted(maps.Keys(p.prompts)) {
		if q := p.prompts[key]; q.turn == u && !q.lost {
			p.withdraw(q, reasonStopped)
		}
	}
	return p.take()
}

// cancellation is the message that cancels the turn of a session.
func (p *Proxy) cancellation(s *session) message {
	m, _ := parse(encode(struct {
		Version string            `json:"jsonrpc"`
		Method  string            `json:"method"`
		Params  map[string]string `json:"params"`
	}{"2.0", methodCancel, map[string]string{"sessionId": s.acp}}))
	return m
}

// TurnEnded returns what to do when the log has ended an open turn that this proxy has not ended: recovery has closed
// it, or a newer owner of the session. The agent is asked to stop, and nothing more is recorded of the turn.
func (p *Proxy) TurnEnded(at time.Time, turn, why string) []Step {
	p.receivedAt(at)
	i := slices.IndexFunc(p.order, func(s *session) bool { return s.turn != nil && s.turn.id == turn })
	if i < 0 {
		return nil
	}
	s := p.order[i]
	// its call is shown, and not recorded
	if p.held != nil && p.held.s == s {
		p.send(Editor, p.held.line)
		p.held = nil
	}
	if s.current.lost {
		p.dropTurn(s, errorTo(s.current.id, codeInternal, why))
	} else {
		p.send(Agent, p.cancellation(s).raw)
		for _, key := range slices.Sorted(maps.Keys(p.prompts)) {
			if q := p.prompts[key]; q.s == s && !q.lost {
				p.send(Agent, replyTo(q.agent, "result", q.result(harness.Answer{Status: fold.Withdrawn})))
			}
		}
		p.endTurn(s)
	}
	return p.take()
}

// goOn sends the next prompt of a turn: the decisions that the agent has not read, or that it was restarted. The reply
// answers the editor's request.
func (p *Proxy) goOn(s *session) {
	output := textRestarted
	if len(s.unread) > 0 {
		output = strings.Join(s.unread, "\n")
	}
	s.current.lost, s.turn.inherited = false, false
	id := p.nextID()
	p.asked[id] = s.current
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	p.send(Agent, request(id, methodPrompt, encode(struct {
		Session string  `json:"sessionId"`
		Prompt  []block `json:"prompt"`
	}{s.acp, []block{{"text", output}}})))
}

// atWork records that the agent works on the turn: it has read what it was sent.
func (s *session) atWork() {
	if s.current != nil && !s.current.lost {
		s.unread = nil
	}
}

// decidedLost brings a decision about a prompt of a dead process to the present one: in words, and for a permission as
// the reply to the next equal request.
func (p *Proxy) decidedLost(q *prompt, a harness.Answer) {
	s, output := q.s, q.inAllWords(a)
	// no request is equal to an inherited one: the log does not have its input
	if q.form == nil {
		s.grants = append(s.grants, grantKept{q.key, a})
	}
	if c := q.about; c != nil && (q.inherited || !c.done) {
		p.endAsked(q, a)
		if !c.done {
			p.failOnScreen(s, c, textNotRun)
		}
	}
	if s.turn == nil || q.turn != s.turn {
		// no turn waits for it
		return
	}
	s.unread = append(s.unread, fmt.Sprintf(textAnswered, q.title, output))
	if s.current.lost && !p.waits(s) {
		p.goOn(s)
	}
}

// inWords returns a decision as the agent reads it: with the names of options, also if the log has none.
func (q *prompt) inWords(a harness.Answer) string {
	if a.Status != fold.Answered {
		return string(a.Status)
	}
	var words []string
	for _, x := range a.Answers {
		for _, label := range x.Selected {
			words = append(words, q.nameOf(x.Question, label))
		}
		if x.Text != "" {
			words = append(words, x.Text)
		}
	}
	return strings.Join(words, ", ")
}

// nameOf returns the name of an option for the agent.
func (q *prompt) nameOf(question, label string) string {
	for _, g := range q.grants {
		if g.label == label {
			return g.name
		}
	}
	if q.form == nil {
		return label
	}
	for _, x := range q.form.fields {
		i := slices.IndexFunc(x.question.Options, func(o events.Option) bool { return o.Label == label })
		if x.question.ID == question && i >= 0 && i < len(x.names) {
			return x.names[i]
		}
	}
	return label
}

// endAsked records the end of a dead process's call with a decision about its question. A permission has no call in the
// log.
func (p *Proxy) endAsked(q *prompt, a harness.Answer) {
	c := q.about
	switch {
	case q.form == nil || c == nil || c.closed:
	case a.Status == fold.Answered:
		c.closed = true
		p.record(q.s, events.ToolCompleted{Call: c.id, Output: p.cfg.Content.Output(encode(q.inWords(a)))})
	case a.Status == fold.Rejected:
		c.closed = true
		p.record(q.s, events.ToolFailed{Call: c.id, Error: events.Failure{Kind: kindTool, Text: q.inWords(a)}})
	default:
		p.closeLost(q.s, c, textNotRun)
	}
}

// kept returns the reply to a permission request that a person has decided for a dead process; nil without one. The
// decision is used up. A decision for an option that the request does not offer has no effect.
func (s *session) kept(q *prompt) json.RawMessage {
	i := slices.IndexFunc(s.grants, func(g grantKept) bool { return g.key == q.key })
	if i < 0 {
		return nil
	}
	a := s.grants[i].answer
	s.grants = slices.Delete(s.grants, i, i+1)
	return q.chosen(a)
}

// key is equal for two permission requests if a decision about one may be used for the other: the same title and input.
// A request without an input is known by its content and its files.
func (c *call) key(about map[string]json.RawMessage) string {
	what := []json.RawMessage{encode(c.title), c.input}
	if c.input == nil {
		what = append(what, about["content"], about["locations"])
	}
	return string(encode(what))
}
