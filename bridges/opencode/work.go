package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// idleEvery is how often a session is looked at that has to become idle, or that was asked to run.
const idleEvery = time.Second

// idleChecksMax is how often a server that was asked to run a message is seen idle before the turn fails.
const idleChecksMax = 60

// Texts of what became of a prompt after the process that asked had died.
const (
	textDismissed = "The user dismissed this question"
	textNoResult  = "OpenCode was restarted before this call had a result. "
	// no process had the decision: see followsLoss
	textPermitted  = textNoResult + "A person has permitted it since: call it again."
	textNotAllowed = textNoResult + "A person has rejected it since"
	// a process may have had it
	textMayHaveRun = textNoResult + "A person has permitted it, and it may have run in part or as a whole: find out " +
		"before you call it again."
	textRejectedBefore = textNoResult + "A person has rejected it"
)

// work runs the turns that are requested of this process, until the process or the bridge ends.
func (r *follower) work(l *process) {
	l.waits.Go(func() {
		err := l.h.Work(l.ctx, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
			return r.turn(ctx, l, t)
		}, Compact: func(ctx context.Context, s *harness.Session, c fold.WorkCompaction) (int64, error) {
			return r.compact(ctx, l, s, c)
		}})
		if err != nil && l.ctx.Err() == nil {
			r.log.Error("requested turns are not run", "err", err)
		}
	})
}

// cannot is the failure of a turn that OpenCode cannot run. It is not tried again.
func cannot(format string, args ...any) error {
	return &harness.FailureError{Failure: events.Failure{Kind: failure.RuntimeNotReady,
		Text: fmt.Sprintf(format, args...)}}
}

// wholeRequest returns the request of a turn with all that it brings, as soon as this process is known to own the
// session. [harness.Turn.Request] leaves decisions out while it is not: OpenCode would get them as dismissals.
func wholeRequest(ctx context.Context, t *harness.Turn) (w fold.WorkTurn, err error) {
	decisions, err := t.Decisions(ctx)
	if err != nil {
		return w, err
	}
	w = t.Request()
	if w.Prompts = decisions; fold.IsAnswer(w.Message) {
		w.Content, err = t.Content(ctx)
	}
	return w, err
}

// turn runs one requested turn in OpenCode. The events of the server end it.
func (r *follower) turn(ctx context.Context, l *process, t *harness.Turn) error {
	id := t.Session().ID()
	defer r.beginHandler(l, id)()
	w, err := wholeRequest(ctx, t)
	if err != nil {
		return err
	}
	if l.isUndecided(t) {
		if unsent, err := r.isUnsent(ctx, l, t); err != nil || !unsent {
			return err
		}
	}
	s, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	defer r.decided(l, t)
	n, brought, err := r.untilIdle(ctx, l, s, t)
	if err != nil {
		if r.hasJoined(t) {
			// the run is the turn's to abort
			return r.unless(ctx, l, s, err)
		}
		return err
	}
	if brought {
		return r.runsOn(ctx, l, s, t)
	}
	messages := decodeMessages(n)
	left := r.refuseOther(l, t, messages)
	last := lastMessage(messages, roleUser, "")
	mine := sentAs(messages, w.Message)
	var body map[string]any
	// an answer: the run went on with these decisions, or with others; a message: its text may not be stored
	switch {
	case w.Cause == events.CauseAnswer && !left && (mine < 0 || mine != last):
		return nil
	case mine < 0 && len(w.Content) > 0 && string(w.Content) != `""`:
		body = newMessage(messages, last, w)
	case isCompacted(messages, mine):
		if body, err = r.afterCompaction(ctx, l, s, messages, mine, t, w); err != nil {
			return r.unless(ctx, l, s, err)
		}
	case mine < 0:
		return cannot("OpenCode has no message that this turn continues")
	case mine != last:
		return cannot("OpenCode has a newer message than the one that this turn continues")
	default:
		settled, err := r.settleAll(ctx, l, s, messages[mine:], t, w.Prompts)
		if err != nil {
			return r.unless(ctx, l, s, err)
		}
		// it ended with another decision, or the bridge did not see it
		if !settled && finishedAnswer(messages[mine:]) {
			return r.runsOnIfJoined(ctx, l, s, t)
		}
		body = sameMessage(messages, mine, t.ID())
	}
	message, _ := body["messageID"].(string)
	earlier := callsFor(messages, message)
	defer r.workOn(l, t, message, earlier, false)()
	if err := r.sendOrHand(ctx, l, s, t, body, mine >= 0); err != nil {
		if refused(err) {
			return cannot("OpenCode refused the message: %v", err)
		}
		return r.ended(ctx, l, s)
	}
	r.log.Info("a turn is continued", "session", id, "turn", t.ID(), "cause", w.Cause)
	return r.follow(ctx, l, s, t, message, len(earlier))
}

// runsOnIfJoined waits for the end of a run that has this turn, and returns at once if none has.
func (r *follower) runsOnIfJoined(ctx context.Context, l *process, s stored, t *harness.Turn) error {
	if r.hasJoined(t) {
		return r.runsOn(ctx, l, s, t)
	}
	return nil
}

// unless returns why a handler cannot run its turn, unless the turn was ended meanwhile.
func (r *follower) unless(ctx context.Context, l *process, s stored, err error) error {
	if ctx.Err() != nil {
		return r.ended(ctx, l, s)
	}
	return err
}

// errAnother says that another process of the server answers.
var errAnother = errors.New("another process of the server answers")

// send sends a message until the server has taken or refused it. Sent again, it is the same message: its ids are the
// same. A process without the mark gets nothing: the turn ends with the process that it was requested of.
func (r *follower) send(ctx context.Context, l *process, s stored, body map[string]any) error {
	attempts := 0
	return r.insist(ctx, "a message", func() error {
		if attempts++; attempts > 1 && !r.isMarked(l) {
			return errAnother
		}
		return r.api.post(ctx, body, s.Directory, "session", s.ID, "prompt_async")
	})
}

// isUndecided reports whether a turn was begun by an earlier bridge, which may have died before it sent the message.
func (l *process) isUndecided(t *harness.Turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.undecided[t.Session().ID()] == t.ID()
}

// decideTurn ends the doubt about a turn of an earlier bridge.
func (l *process) decideTurn(t *harness.Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.undecided[t.Session().ID()] == t.ID() {
		delete(l.undecided, t.Session().ID())
	}
}

// isUnsent finds out whether the bridge that began a turn has died before OpenCode had the message. If OpenCode has it,
// isUnsent returns after the turn has ended: the events of the server end it, as any turn that OpenCode runs.
func (r *follower) isUnsent(ctx context.Context, l *process, t *harness.Turn) (bool, error) {
	id := t.Session().ID()
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	var messages []openMessage
	for {
		n, err := r.read(ctx, "", id)
		if err == nil && n.Idle && unsent(decodeMessages(n), t.ID(), t.Request().Message) {
			r.log.Info("a message that an earlier bridge may not have sent is sent", "session", id, "turn", t.ID())
			l.decideTurn(t)
			return true, nil
		}
		if err == nil {
			messages = decodeMessages(n)
			break
		}
		if refused(err) {
			l.decideTurn(t)
			return false, cannot("OpenCode does not show this session: %v", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	r.mu.Lock()
	if u := r.translator.session(id).turn; u != nil && u.id == t.ID() {
		// it runs already, or is over
		u.awaited = false
	}
	if mine := sentAs(messages, t.Request().Message); mine >= 0 {
		r.translator.old(id, callsFor(messages[:1+sentAfter(messages, mine)], messages[mine].info.ID))
	}
	r.mu.Unlock()
	l.decideTurn(t)
	l.owe(id, false)
	<-ctx.Done()
	r.mu.Lock()
	dir := r.translator.directory(id)
	r.mu.Unlock()
	return false, r.ended(ctx, l, stored{ID: id, Directory: dir})
}

// workOn makes a turn the one that the next events of its session are about. earlier are the model calls for its
// message that are not of this turn. With deciding the turn does not end before [follower.decided]. The returned
// function is called when the handler of the turn is done.
func (r *follower) workOn(l *process, t *harness.Turn, message string, earlier []string, deciding bool) (done func()) {
	id := t.Session().ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	l.keep(t.Session())
	l.mu.Lock()
	l.working[id] = t.ID()
	l.mu.Unlock()
	r.translator.Continue(id, t.ID(), message)
	r.translator.session(id).turn.deciding = deciding
	r.translator.old(id, earlier)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.working[id] == t.ID() {
			delete(l.working, id)
		}
	}
}

// joins makes a turn the rest of a run that still waits for the turn's decisions: the process that asked lives, and
// recovery closed its turn while no bridge renewed the lease. The server runs on as soon as it has a decision, so the
// turn has the events of the session from before that. The function that it returns is that of workOn.
func (r *follower) joins(l *process, t *harness.Turn, n *Snapshot) (done func()) {
	message := ""
	if m := decodeMessages(n); lastMessage(m, roleUser, "") >= 0 {
		message = m[lastMessage(m, roleUser, "")].info.ID
	}
	r.mu.Lock()
	r.translator.taken(t.Session().ID(), t.Session().State())
	r.mu.Unlock()
	return r.workOn(l, t, message, nil, true)
}

// decided lets a turn end that has joined a run: no decision is on its way there any more, and its handler does not
// continue it with one.
func (r *follower) decided(l *process, t *harness.Turn) {
	id := t.Session().ID()
	r.mu.Lock()
	u := r.translator.session(id).turn
	held := u != nil && u.id == t.ID() && u.deciding
	if held {
		u.deciding = false
	}
	r.mu.Unlock()
	if held {
		// the event about its end may have come before
		l.owe(id, false)
	}
}

// hasJoined reports whether a turn has the events of its session.
func (r *follower) hasJoined(t *harness.Turn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.translator.session(t.Session().ID()).turn
	return u != nil && u.id == t.ID()
}

// runsOn waits for the end of a run that a turn has joined, and that has the turn's decisions.
func (r *follower) runsOn(ctx context.Context, l *process, s stored, t *harness.Turn) error {
	r.mu.Lock()
	if u := r.translator.session(s.ID).turn; u != nil && u.id == t.ID() {
		// it runs already
		u.awaited, u.deciding = false, false
	}
	r.mu.Unlock()
	// an event may have come before that
	l.owe(s.ID, false)
	r.log.Info("a decision is brought to a run that waits for it", "session", s.ID, "turn", t.ID())
	<-ctx.Done()
	return r.ended(ctx, l, s)
}

// ended returns the error of a handler whose context has ended. A stop aborts the run in OpenCode.
func (r *follower) ended(ctx context.Context, l *process, s stored) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, harness.ErrStopped) && !errors.Is(cause, harness.ErrEnded) {
		return r.insist(l.ctx, "stop", func() error {
			return r.api.post(l.ctx, struct{}{}, s.Directory, "session", s.ID, "abort")
		})
	}
	return cause
}

// follow waits until the events of the server have ended the turn. before is how many answers the message had.
// A server that took the message, became idle again and answered nothing ends the turn as failed; so does one that does
// not begin, after idleChecksMax looks. A server needs a while to become busy: it loads its plugins first.
func (r *follower) follow(ctx context.Context, l *process, s stored, t *harness.Turn, message string,
	before int) error {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	busy, checks := false, 0
	for {
		select {
		case <-ctx.Done():
			return r.ended(ctx, l, s)
		case <-tick.C:
		}
		r.mu.Lock()
		open := r.translator.sessions[s.ID]
		waits := open != nil && open.turn != nil && open.turn.id == t.ID() && open.turn.newest == nil
		var failed *events.Failure
		if waits {
			failed = open.turn.failure
		}
		r.mu.Unlock()
		if !waits {
			continue
		}
		n, err := r.readOf(ctx, l, s.Directory, s.ID)
		if err != nil {
			continue
		}
		checks++
		switch answered := len(callsFor(decodeMessages(n), message)) > before; {
		case !n.Idle:
			busy = true
		case answered:
			// the event about it is on its way
		case failed != nil:
			return &harness.FailureError{Failure: *failed}
		case busy, checks >= idleChecksMax:
			return cannot("OpenCode took the message and ran nothing")
		}
	}
}

// callsFor returns the ids of the model calls for a message.
func callsFor(messages []openMessage, message string) (ids []string) {
	for i := range messages {
		if messages[i].info.Role == "assistant" && messages[i].info.ParentID == message {
			ids = append(ids, messages[i].info.ID)
		}
	}
	return ids
}

// find returns where a session is. A server that is away is waited for: it may be started again.
func (r *follower) find(ctx context.Context, id string) (s stored, err error) {
	r.mu.Lock()
	dir := r.translator.directory(id)
	r.mu.Unlock()
	err = r.insist(ctx, "a request for a session", func() error { return r.api.get(ctx, &s, dir, "session", id) })
	if err != nil {
		if refused(err) {
			return s, cannot("OpenCode does not have this session: %v", err)
		}
		return s, err
	}
	return s, nil
}

// untilIdle returns what a session has when it runs nothing: a message that arrives earlier would be given to the
// running turn. A session that waits for one of the decisions gets all that it waits for, and brought is true.
func (r *follower) untilIdle(ctx context.Context, l *process, s stored, t *harness.Turn) (n *Snapshot,
	brought bool, err error) {
	if err := l.awaitAbort(ctx, s.ID); err != nil {
		return nil, false, err
	}
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	joined := false
	for {
		n, err := r.readOf(ctx, l, s.Directory, s.ID)
		join := func() (done func()) {
			// a decision is sent again
			if joined {
				return func() {}
			}
			joined = true
			return r.joins(l, t, n)
		}
		if err != nil && refused(err) {
			return nil, false, cannot("OpenCode does not show this session: %v", err)
		}
		if err == nil {
			brought, err := r.sendDecisions(ctx, l, t.Session(), s, n, t.Request().Prompts, join)
			if err != nil || brought {
				return n, brought, err
			}
			if n.Idle {
				return n, false, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// sendDecisions brings the decisions of a turn to the process that asked, as far as it still waits for them. join is
// called before the first one, and what it returns at the end. some: the process has taken one. A decision that the
// process refuses, and for which it still waits, is sent again by the next call. One that came too late is refused in
// the log.
func (r *follower) sendDecisions(ctx context.Context, l *process, log *harness.Session, s stored, n *Snapshot,
	decided []fold.TurnPrompt, join func() (done func())) (some bool, err error) {
	joined := false
	for i := range decided {
		p := &decided[i]
		if !decidedByPerson(p.Status) {
			continue
		}
		raw, permission := findAsked(n.Questions, p.Prompt), false
		if raw == nil {
			raw, permission = findAsked(n.Permissions, p.Prompt), true
		}
		id := idOf(raw)
		if id == "" || !l.decides(p.Prompt, s.ID) {
			continue
		}
		if !joined {
			joined = true
			defer join()()
		}
		a := harness.Answer{Status: p.Status, Answers: p.Answers, Text: p.Text}
		attempts, err := r.sendDecision(ctx, s.Directory, id, permission, labelsOf(p.Questions, askedBy(raw), a), a)
		switch {
		case err == nil:
			some = true
			l.settles(p.Prompt)
		case isNotFound(err) && attempts > 1:
			l.settles(p.Prompt)
			r.log.Warn("OpenCode has the decision, or another one", "session", s.ID, "prompt", p.Prompt, "err", err)
		case isNotFound(err) && r.isMarked(l):
			l.settles(p.Prompt)
			// the log of the bridge says so
			_ = r.refuseLate(l, log, p.Prompt)
		default:
			l.mu.Lock()
			// it may not be there: the next look, or the next handler, brings it
			delete(l.asked, p.Prompt)
			l.mu.Unlock()
			if !refused(err) {
				return some, err
			}
			r.log.Warn("OpenCode refused the decision: trying again", "session", s.ID, "prompt", p.Prompt, "err", err)
		}
	}
	return some, nil
}

// findAsked returns one of OpenCode's prompts, nil without it.
func findAsked(list []json.RawMessage, prompt string) json.RawMessage {
	for _, raw := range list {
		if id := idOf(raw); id != "" && ident("prompt", id) == prompt {
			return raw
		}
	}
	return nil
}

// askedBy returns the questions of an object that has some: a prompt, or the input of a call. Others have none.
func askedBy(raw json.RawMessage) []events.Question {
	var v struct {
		Questions json.RawMessage `json:"questions"`
	}
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	all, _, err := questionsIn(v.Questions)
	if err != nil {
		return nil
	}
	return all
}

// lastMessage returns the index of the newest message of a role, and of a parent if one is given; -1 without one.
func lastMessage(messages []openMessage, role, parent string) int {
	for i, m := range slices.Backward(messages) {
		if m.info.Role == role && (parent == "" || m.info.ParentID == parent) {
			return i
		}
	}
	return -1
}

// finishedAnswer reports whether the first message has an answer that ended by itself.
func finishedAnswer(messages []openMessage) bool {
	i := lastMessage(messages, "assistant", messages[0].info.ID)
	if i < 0 {
		return false
	}
	info := &messages[i].info
	return info.completed() && info.Error == nil && info.Finish != "" && info.Finish != finishCalls &&
		info.Finish != "unknown"
}

// settleAll calls settlePrompts until the server takes or refuses what it stores.
func (r *follower) settleAll(ctx context.Context, l *process, s stored, messages []openMessage, t *harness.Turn,
	prompts []fold.TurnPrompt) (some bool, err error) {
	err = r.insist(ctx, "the results of calls", func() (err error) {
		some, err = r.settlePrompts(ctx, l, s, messages, prompts, t.Session().State())
		return err
	})
	return some, err
}

// settlePrompts stores the decisions about prompts of a process that is gone as the ends of their calls, and reports
// whether there were any. A question's answer is the result of its call. A call that waited for a permission has no
// result: the model is asked to call it again, and is warned if it may have run.
func (r *follower) settlePrompts(ctx context.Context, l *process, s stored, messages []openMessage,
	prompts []fold.TurnPrompt, st *fold.State) (some bool, err error) {
	touched := map[int]bool{}
	used := map[string]bool{}
	for i := range prompts {
		p := &prompts[i]
		// it is only named
		if p.Status == "" {
			continue
		}
		call, permission := r.callOf(s.ID, st, p.Prompt)
		at, k := findCall(messages, p, call, permission, used)
		if at < 0 {
			continue
		}
		m := &messages[at]
		c := &m.parts[k]
		used[c.ID] = true
		some, touched[at] = true, true
		if permission && isTold(c, p) {
			// it is as true as it was
			continue
		}
		unsent := permission && l.unsent(st, p.Prompt, m, k)
		if err := r.closePart(ctx, s, m, k, resultOf(p, askedBy(c.State.Input), permission, unsent)); err != nil {
			return some, err
		}
	}
	all := []stored{s}
	for at := range messages {
		if touched[at] {
			if err := r.complete(ctx, all, s, &messages[at], finishCalls, ""); err != nil {
				return some, err
			}
		}
	}
	return some, nil
}

// findCall returns the call that waited for a prompt, as an index of a message and of its part: the call of that id, or
// the newest one with the same questions. A permission without a call held the newest call. Calls that have ended do
// not count. -1 without one.
func findCall(messages []openMessage, p *fold.TurnPrompt, call string, permission bool, used map[string]bool) (
	at, part int) {
	held := -1
	for i := len(messages) - 1; i >= 0; i-- {
		for k := range messages[i].parts {
			c := &messages[i].parts[k]
			if c.Type != "tool" || used[c.ID] || c.ended(permission) {
				continue
			}
			if waitedFor(c, p, call) {
				return i, k
			}
			held = k
		}
		if permission && call == "" && held >= 0 {
			return i, held
		}
	}
	return -1, -1
}

// waitedFor reports whether a part is the call that waited for a prompt: that of the id, or without one a call with the
// same questions.
func waitedFor(c *part, p *fold.TurnPrompt, call string) bool {
	if c.Type != "tool" {
		return false
	}
	return call != "" && ident("call", c.CallID) == call ||
		call == "" && c.Tool == "question" && sameQuestions(p.Questions, askedBy(c.State.Input))
}

// askedFor returns the call that waited for a prompt, and whether the prompt was a permission, as the log has it.
func askedFor(st *fold.State, prompt string) (call string, permission bool) {
	if p := st.Prompts[prompt]; p != nil {
		return p.Call, p.Kind == events.PromptPermission
	}
	for i := range st.Recent {
		if e := &st.Recent[i]; e.Entity == fold.EntityPrompt && e.ID == prompt {
			return e.Call, e.Name == string(events.PromptPermission)
		}
	}
	return "", false
}

// ended reports whether a call has an end that no decision replaces: a result or, after a permission, an error of its
// own. An interruption is no end: OpenCode or a bridge says only that the call was cut off. A question has no effect,
// so an answer takes the place of any error.
func (c *part) ended(permission bool) bool {
	return c.State.Status == partCompleted ||
		permission && c.State.Status == partError && !c.State.Metadata.Interrupted
}

// followsLoss reports whether a decision that the open turn was given was made while no owner of the session had the
// call that waited for it, and no owner but the present one came after that. So no owner of before could bring the
// decision to the process that asked. The log shows it: the commit of such a decision ends the call, too, and each
// owner has an epoch of its own. An ending that is no longer kept shows nothing.
func followsLoss(st *fold.State, prompt string) bool {
	c, carried := st.Carries(prompt)
	p, decided := st.Ended(fold.EntityPrompt, prompt)
	call, closed := st.Ended(fold.EntityTool, p.Call)
	return carried && c.Had == 0 && decided && p.Seq == c.Seq && p.Call != "" && closed && call.Seq == c.Seq &&
		p.Epoch+1 == st.Epoch
}

// unsent reports whether no process had a decision about the permission of a call: as far as the log, this process and
// the call show. A person may have answered in OpenCode while no bridge was there, so it is no proof that nothing ran.
func (l *process) unsent(st *fold.State, prompt string, m *openMessage, k int) bool {
	return followsLoss(st, prompt) && !l.hasSent(prompt) && waitedOnly(m.Parts[k], &m.parts[k])
}

// waitedOnly reports whether nothing in a call says that it ran: it has no metadata, and the only end that it may have
// is that of a repair that found none.
func waitedOnly(raw json.RawMessage, c *part) bool {
	var v struct {
		State struct {
			Metadata json.RawMessage `json:"metadata"`
		} `json:"state"`
	}
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch c.State.Status {
	case "pending", "running":
		return len(v.State.Metadata) == 0
	case partError:
		var repaired map[string]any
		err := json.Unmarshal(v.State.Metadata, &repaired)
		reported, known := repaired[metadataReported].(bool)
		return err == nil && !c.ended(true) && known && !reported &&
			(c.State.Error == repairWaited || c.State.Error == repairCall)
	}
	return false
}

// isTold reports whether a call has ended with the words of a decision about its permission that no process had.
func isTold(c *part, p *fold.TurnPrompt) bool {
	return c.State.Status == partError && !c.ended(true) && c.State.Error == resultOf(p, nil, true, true)["error"]
}

// resultOf returns the end of a call for a decision: a question's in the words of OpenCode. unsent: no process had the
// decision about a permission. asked are the questions as OpenCode has them.
func resultOf(p *fold.TurnPrompt, asked []events.Question, permission, unsent bool) map[string]any {
	text := ""
	switch {
	case permission && p.Status == fold.Answered && unsent:
		text = textPermitted
	case permission && p.Status == fold.Answered:
		text = textMayHaveRun
	case permission && unsent:
		text = textNotAllowed
	case permission:
		text = textRejectedBefore
	case p.Status != fold.Answered:
		text = textDismissed
	}
	if text != "" {
		if p.Text != "" {
			text += ": " + p.Text
		}
		return map[string]any{"status": partError, "error": text, "metadata": map[string]any{"interrupted": true}}
	}
	labels := given(p.Questions, asked, harness.Answer{Answers: p.Answers})
	texts := make([]string, len(labels))
	for i, q := range p.Questions {
		answer := strings.Join(labels[i], ", ")
		if answer == "" {
			answer = "Unanswered"
		}
		if i < len(asked) {
			q = asked[i]
		}
		texts[i] = fmt.Sprintf("%q=%q", q.Question, answer)
	}
	noun := "question"
	if len(labels) != 1 {
		noun = "questions"
	}
	return map[string]any{"status": partCompleted, "title": fmt.Sprintf("Asked %d %s", len(labels), noun),
		"output": "User has answered your questions: " + strings.Join(texts, ", ") +
			". You can now continue with the user's answers in mind.",
		"metadata": map[string]any{"answers": labels, "truncated": false}}
}
