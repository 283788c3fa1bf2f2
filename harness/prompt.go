package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// returnedMax is how many prompts are remembered as returned before those that the session has forgotten, too, are
// dropped.
const returnedMax = 2 * session.RecentMax

// Prompt is a question to people.
type Prompt struct {
	ID        string            // default: a new one; choose it, to find the prompt again after a restart
	Call      string            // the call that waits for it
	Kind      events.PromptKind // default: question. A permission without Questions gets the usual ones
	Title     string
	Questions []events.Question
	// Delivery says how the answer reaches the agent. Default: it is the result of Call, if there is one and the prompt
	// is no permission; else a callback in this process.
	Delivery events.Delivery
	// OnOwnerLoss says what becomes of it when this process dies, or leaves in order. Default: a callback expires, or
	// is withdrawn, others are kept.
	OnOwnerLoss events.OwnerLoss
	// Deadline is when the prompt expires without a decision: its Ask then returns [session.Expired], reason deadline.
	// Zero: never.
	Deadline    time.Time
	NonBlocking bool // the agent does not wait for it
	Native      any  // encoded as JSON, opaque
	// Bring, if it is set, brings the settlement to an agent that is not in this process. Ask calls it before it gives
	// the receipt and returns. If this process ends before Bring has returned, the decision has no receipt, and is not
	// lost with the process. If Bring returns an error, Ask returns it, as an Ask that gave up: the next Ask under the
	// same id calls Bring again, and otherwise another turn brings the decision. ctx is that of Ask.
	Bring func(ctx context.Context, a Answer) error
}

// Answer is how a prompt was settled. Only an answered one has Answers.
type Answer struct {
	Status  session.Status // answered, rejected, dismissed, withdrawn, superseded or expired
	Answers []events.Answer
	Text    string // rejected: the correction, if any
	By      string
	Reason  string // withdrawn, expired: why; superseded: by which message
}

// Choice returns the option that a person selected, or the text of their own, for a prompt with one question. It is ""
// for a prompt that was not answered, a question that was skipped, and an answer with several questions or options.
func (a Answer) Choice() string {
	if len(a.Answers) != 1 {
		return ""
	}
	return a.ChoiceOf(a.Answers[0].Question)
}

// ChoiceOf is Choice for one question, by its id, of a prompt with several.
func (a Answer) ChoiceOf(question string) string {
	at := slices.IndexFunc(a.Answers, func(one events.Answer) bool { return one.Question == question })
	if a.Status != session.Answered || at < 0 {
		return ""
	}
	switch one := a.Answers[at]; len(one.Selected) {
	case 0:
		return one.Text
	case 1:
		return one.Selected[0]
	}
	return ""
}

// byID reports whether a prompt is named without a question of its own.
func (p Prompt) byID() bool {
	return (p.Kind == "" || p.Kind == events.PromptQuestion) && p.Title == "" && len(p.Questions) == 0
}

// over returns a request with the fields of p in place of its own, where p has them.
func (p Prompt) over(f events.PromptRequested) (events.PromptRequested, error) {
	f.Call = cmp.Or(p.Call, f.Call)
	f.Delivery, f.OnOwnerLoss = cmp.Or(p.Delivery, f.Delivery), cmp.Or(p.OnOwnerLoss, f.OnOwnerLoss)
	if !p.Deadline.IsZero() {
		f.Deadline = p.Deadline
	}
	if p.NonBlocking {
		f.Blocking = new(bool)
	}
	if p.Native == nil {
		return f, nil
	}
	native, err := encode(p.Native)
	if err != nil {
		return f, about(err, "prompt %s: native", p.ID)
	}
	f.Native = native
	return f, nil
}

// requested is the fact. Kind defaults to question.
func (p Prompt) requested(turn string) (events.PromptRequested, error) {
	f := events.PromptRequested{Prompt: p.ID, Turn: turn, Call: p.Call, PromptKind: p.Kind, Title: p.Title,
		Questions: p.Questions,
		Delivery:  p.Delivery, OnOwnerLoss: p.OnOwnerLoss, Deadline: p.Deadline}
	if f.PromptKind == "" {
		f.PromptKind = events.PromptQuestion
	}
	switch {
	case f.Delivery != "":
	case p.Call != "" && f.PromptKind != events.PromptPermission:
		f.Delivery = events.DeliverToolResult
	default:
		f.Delivery = events.DeliverCallback
	}
	if p.NonBlocking {
		f.Blocking = new(bool)
	}
	var err error
	if f.Native, err = encode(p.Native); err != nil {
		err = about(err, "prompt %s: native", p.ID)
	}
	return f, err
}

// waiter is what Asks for one prompt wait for. A settlement that was read is kept in it until this process is known to
// own the session ([Session.handOut]): until then the Asks wait.
type waiter struct {
	asks   int
	seq    uint64 // the commit that settled the prompt; 0: none was read
	done   chan struct{}
	answer Answer
	err    error
}

func (w *waiter) settle(a Answer, err error) {
	w.answer, w.err = a, err
	close(w.done)
}

// endsWith says whether Asks return the settlement that was read although the session is given up: the release or the
// close withdrew the prompt. An answer is returned to the owner only.
func (w *waiter) endsWith(why error) bool {
	return w.seq != 0 && w.answer.Status != session.Answered &&
		(errors.Is(why, ErrReleased) || errors.Is(why, ErrSessionClosed))
}

func (w *waiter) settled() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Ask asks people, in this turn, and returns when the prompt is settled, however that came. When the prompt's Call
// waits for the answer as its result, end the call with it: that is the receipt; for others Ask gives the receipt
// itself.
//
// Asked again under the same id it is attached to the open prompt, or returns at once how the prompt was settled, also
// when that was while no process was there. An attempt that continues a turn (a retry, a resume, a follow-up) is given
// the same answer again. An id whose settlement was returned in this turn, or before a turn that continues none, or
// that is kept no longer, is [ErrClosedID]. Another question (kind, title, questions) under the id of a prompt that is
// open, also of an earlier process, or settled, is [ErrNameTaken]: its answer is about the question that the person
// saw. Withdraw that one, and ask under another id. The other fields may differ, and those of the first Ask stay. A
// prompt that an earlier process asked is adopted, with its open call and turn (a call in the background without its
// turn), also if it is settled by then. An open prompt that is named without a title and questions keeps those that it
// has; where it has to be requested again, as by a process that adopts it, the other fields of p that are set replace
// those of the prompt. If a person takes an answer back before Ask returns it, Ask waits for the next one.
//
// When ctx ends, the prompt stays open: ask again, or withdraw it. If a person decides after that, the prompt's call
// does not end without the decision ([ErrUnread]); where the turn ends without it, another turn brings it to the agent.
// A question outside of any turn, or of a call in the background, has no such end: its decision calls for a turn as
// soon as the session rests.
func (t *Turn) Ask(ctx context.Context, p Prompt) (Answer, error) {
	return t.s.askUnlessLongAgo(ctx, t, p)
}

// Ask is [Turn.Ask] for a prompt that belongs to no turn.
func (s *Session) Ask(ctx context.Context, p Prompt) (Answer, error) {
	return s.askUnlessLongAgo(ctx, nil, p)
}

// Withdraw takes a question back: the agent no longer needs an answer. A waiting Ask returns. Errors: [ErrEnded], it
// was settled before, and [*EndedError] says how; [ErrUnknown]; others of [Session.Append].
func (s *Session) Withdraw(ctx context.Context, prompt, reason string) error {
	return s.Append(ctx, events.PromptWithdrawn{Prompt: prompt, Reason: reason})
}

// Refuse reports that the harness cannot use a decision about a prompt, and why. The person is not asked again. Errors:
// [ErrEnded], the decision counts as delivered, or the prompt was closed without one; [ErrUnknown], it waits for a
// decision, or never existed; others of [Session.Append].
func (s *Session) Refuse(ctx context.Context, prompt, text string) error {
	return s.Append(ctx, events.PromptDelivered{Prompt: prompt, Refused: text})
}

func (s *Session) ask(ctx context.Context, t *Turn, p Prompt) (a Answer, err error) {
	p.ID = orNew(s, p.ID)
	turn := ""
	if t != nil {
		turn = t.id
	}
	f, err := p.requested(turn)
	if err != nil {
		return Answer{}, err
	}
	for {
		if err = s.sameAsked(ctx, p, f); err != nil {
			break
		}
		w := s.expect(p.ID)
		a, err = s.askWith(ctx, t, w, p, f)
		if s.unexpect(p.ID, w); !errors.Is(err, errTakenBack) {
			break
		}
	}
	if err != nil {
		s.abandonAsk(p.ID)
	}
	return a, err
}

// errTakenBack says that a person took an answer back before it was returned: the prompt waits again, or was closed.
var errTakenBack = fmt.Errorf("%w: the answer was taken back", ErrUnknown)

// askWith stores the request of a prompt, where that is needed, and waits for its settlement.
func (s *Session) askWith(ctx context.Context, t *Turn, w *waiter, p Prompt, f events.PromptRequested) (Answer, error) {
	settled, err := s.request(ctx, p, f)
	// another Ask that waited with this one was quicker
	if err != nil && !(errors.Is(err, ErrClosedID) && w.settled()) {
		return Answer{}, err
	}
	if settled != 0 {
		if err := s.adoptSettled(ctx, f.Prompt); err != nil {
			return Answer{}, err
		}
		select {
		case <-w.done:
			// it was settled while this Ask was on its way
		default:
			return s.readAnswer(ctx, p, settled)
		}
	}
	answered := t.waits()
	select {
	case <-w.done:
		answered()
	case <-ctx.Done():
		answered()
		return Answer{}, about(context.Cause(ctx), "prompt %s in %s", f.Prompt, s.ref)
	}
	if w.err != nil {
		return Answer{}, w.err
	}
	return s.handOver(ctx, p, w.answer, w.seq)
}

// handOver brings the settlement of a commit to the agent, records then that an Ask returns it, and returns it. It
// returns [errTakenBack] if a person took the decision back.
func (s *Session) handOver(ctx context.Context, p Prompt, a Answer, settled uint64) (Answer, error) {
	if p.Bring != nil {
		s.mu.Lock()
		gone := s.tookBack(p.ID, settled)
		s.mu.Unlock()
		if gone {
			return Answer{}, about(errTakenBack, "prompt %s in %s", p.ID, s.ref)
		}
		if err := p.Bring(ctx, a); err != nil {
			return Answer{}, about(err, "prompt %s in %s was not brought to its agent", p.ID, s.ref)
		}
	}
	if !s.have(p.ID, settled) {
		return Answer{}, about(errTakenBack, "prompt %s in %s", p.ID, s.ref)
	}
	return a, nil
}

// errBody: a prompt that is named by its id alone has to be requested again, and its question is in the log.
var errBody = errors.New("harness: the question of the prompt is needed")

// request stores the request of a prompt, unless it is open under this epoch or settled. It returns the commit that
// settled the prompt, 0 while the prompt is open.
func (s *Session) request(ctx context.Context, p Prompt, f events.PromptRequested) (uint64, error) {
	var open *session.Prompt
	// at is the commit that settled the prompt. A request whose outcome is not awaited can be checked again: both are
	// read with the session locked.
	at, attached := uint64(0), false
	check := func(st *session.State) (done bool, err error) {
		done, at, err = s.attach(st, f.Prompt)
		attached = done
		return done, err
	}
	err := s.append(ctx, func(st *session.State) (done bool, err error) {
		done, err = check(st)
		q := st.Prompts[f.Prompt]
		if done || err != nil || !p.byID() || q == nil || q.Status != session.Awaiting {
			return done, err
		}
		open = &session.Prompt{Seq: q.Seq, Turn: q.Turn}
		return false, errBody
	}, f)
	if errors.Is(err, errBody) {
		again, err2 := s.again(ctx, p, open)
		if err2 != nil {
			return 0, about(translate(err2), "%s", s.ref)
		}
		err = s.append(ctx, check, again)
	}
	s.mu.Lock()
	settled, found := at, attached
	s.mu.Unlock()
	switch {
	case err == nil && found:
		// perhaps to one that another Ask has requested meanwhile
		err = s.sameAsked(ctx, p, f)
	case err == nil && !p.byID():
		s.asks(f)
	}
	return settled, err
}

// expect registers an Ask before its request is stored, so that no answer can come too early for it.
func (s *Session) expect(prompt string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiters[prompt]
	if w == nil {
		w = &waiter{done: make(chan struct{})}
		s.waiters[prompt] = w
	}
	w.asks++
	return w
}

// unexpect removes an Ask that is about to return.
func (s *Session) unexpect(prompt string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.asks--; w.asks > 0 {
		return
	}
	for _, by := range []map[string]*waiter{s.waiters, s.returning} {
		if by[prompt] == w {
			delete(by, prompt)
		}
	}
}

// asked reports whether an Ask waits for a prompt, or is about to return its settlement. The session is locked.
func (s *Session) asked(prompt string) bool {
	return cmp.Or(s.waiters[prompt], s.returning[prompt]) != nil
}

// keptDecision returns what a claim after a lost lease says about a decision, so that it is not taken for the decision
// of a process that is gone: the agent has it, or something here waits for it: an Ask, the program that requested the
// prompt without an Ask, or a call that continues with it, whose end is the receipt. It returns nil for a decision that
// nothing here takes in, and for one whose turn is over: an Ask that still waits may end with the turn, and another
// turn brings the decision then. If the Ask returns it, the receipt says so.
func (s *Session) keptDecision(prompt string) events.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, returned := s.returned[prompt]
	p := s.st.Prompts[prompt]
	// the end of its call is the receipt
	inCall := p != nil && !s.owesReceipt(s.st, prompt)
	if returned && !inCall {
		return events.PromptDelivered{Prompt: prompt}
	}
	appended := p != nil && outlivesTurn(s.st, p) && !p.Unattended && !s.unasks[prompt]
	over := p != nil && p.Turn != "" && p.Turn != turnID(s.st) && s.st.Tools[p.Call] == nil
	if returned || appended || s.asked(prompt) && !over {
		return events.PromptAttended{Prompt: prompt}
	}
	return nil
}

// attach says whether a prompt need not be requested: it is open under this epoch, or settled, then by which commit.
func (s *Session) attach(st *session.State, prompt string) (done bool, settled uint64, err error) {
	p := st.Prompts[prompt]
	e, ended := st.Ended(session.EntityPrompt, prompt)
	returnedIn, returned := s.returned[prompt]
	if c, ok := st.Carries(prompt); ok && c.Seq != 0 && (!returned || returnedIn != st.Turn.ID) {
		// an attempt before this one may have had it, and failed
		return true, c.Seq, nil
	}
	switch {
	case p != nil && p.Status == session.Awaiting:
		return ofLastOwner(st, p.Epoch) && !p.Unattended, 0, nil
	case !ended && p == nil:
		return false, 0, nil
	case returned && (returnedIn == turnID(st) || st.Turn == nil || st.Turn.OfTurn == ""):
		return false, 0, fmt.Errorf("%w: prompt %s in %s", ErrClosedID, prompt, s.ref)
	case p != nil:
		return true, p.SettledSeq, nil
	default:
		return true, e.Seq, nil
	}
}

// adoptSettled adopts the open call and the open turn of a settled prompt that an earlier process asked, as
// prompt.requested does for a prompt that is open. Otherwise recovery ends the call with the decision and requests a
// turn for it, although the Ask of this process returns it, too.
func (s *Session) adoptSettled(ctx context.Context, prompt string) error {
	adopted := func(st *session.State) bool {
		p := st.Prompts[prompt]
		return p == nil || ofLastOwner(st, p.Epoch) && !leavesTurn(st, p)
	}
	st := s.State()
	if adopted(st) {
		return nil
	}
	p := st.Prompts[prompt]
	facts, err := s.adoption(ctx, []Adopt{{Turn: leavesTurn(st, p), Calls: []string{p.Call},
		Prompts: []Prompt{{ID: prompt}}}}, st.Epoch)
	if err != nil || len(facts) == 0 {
		return err
	}
	o, err := s.newWrite(facts)
	if err != nil {
		return err
	}
	// items that have ended meanwhile cannot be adopted
	o.relay = true
	o.check = func(st *session.State) (bool, error) { return adopted(st), nil }
	return s.do(ctx, o)
}

// leavesTurn reports whether the open turn is that of a prompt, and an earlier process's: the prompt was adopted with
// its call alone.
func leavesTurn(st *session.State, p *session.Prompt) bool {
	c := st.Tools[p.Call]
	return st.Turn != nil && p.Turn == st.Turn.ID && !ofLastOwner(st, st.Turn.Epoch) && (c == nil || !c.Background)
}

// readAnswer finds in the log how a prompt was settled, and hands that over. It returns nothing before this process is
// known to own the session.
func (s *Session) readAnswer(ctx context.Context, p Prompt, seq uint64) (Answer, error) {
	prompt := p.ID
	c, err := s.h.bus.Log.Commit(ctx, seq)
	if err != nil {
		return Answer{}, about(translate(err), "the settlement of prompt %s in %s", prompt, s.ref)
	}
	if err := s.verifyOwner(ctx); err != nil {
		return Answer{}, err
	}
	s.mu.Lock()
	e, _ := s.st.Ended(session.EntityPrompt, prompt)
	s.mu.Unlock()
	// by containment: no fact says more
	a := Answer{Status: session.Status(e.Outcome), Reason: e.Reason}
	for i := range c.Events {
		found, id := settlement(c.Events[i].Fact)
		// "": long ago, the session keeps no ending of it
		if id == prompt && (found.Status == a.Status || a.Status == "") {
			a = found
		}
	}
	if a.Status == "" {
		return Answer{}, fmt.Errorf("%w: the answer to prompt %s in %s", ErrUnknown, prompt, s.ref)
	}
	return s.handOver(ctx, p, a, seq)
}

// turnID returns the id of the open turn, "" without one.
func turnID(st *session.State) string {
	if st.Turn == nil {
		return ""
	}
	return st.Turn.ID
}

// settlement is how a fact settles a prompt; "" if it settles none.
func settlement(f events.Fact) (a Answer, prompt string) {
	switch f := f.(type) {
	case events.PromptAnswered:
		return Answer{Status: session.Answered, Answers: f.Answers, By: f.By}, f.Prompt
	case events.PromptRejected:
		return Answer{Status: session.Rejected, Text: f.Text, By: f.By}, f.Prompt
	case events.PromptDismissed:
		return Answer{Status: session.Dismissed, By: f.By}, f.Prompt
	case events.PromptWithdrawn:
		return Answer{Status: session.Withdrawn, Reason: f.Reason}, f.Prompt
	case events.PromptSuperseded:
		return Answer{Status: session.Superseded, Reason: f.Message}, f.Prompt
	case events.PromptExpired:
		return Answer{Status: session.Expired, Reason: f.Reason}, f.Prompt
	}
	return Answer{}, ""
}

// settle keeps, for the Asks that wait for it, the settlement of the prompt that this fact, which counted, has settled.
// [Session.handOut] returns it to them. The session is locked.
func (s *Session) settle(e *events.Event, seq uint64) {
	a, prompt := settlement(e.Fact)
	if w := s.waiters[prompt]; prompt != "" && w != nil && w.seq == 0 {
		w.answer, w.seq = a, seq
	}
}

// handOut returns settlements to the Asks that wait for them. The log of the session was read, or is known by a
// compare-and-set, up to read. Only settlements up to there are handed out, and only while the session is owned by this
// process and the lease is in date: a process that was suspended must read the whole log first, since the commit after
// an answer may be the one that fenced it. If settlements are left, they are verified in the background. The session is
// locked.
func (s *Session) handOut(read uint64) {
	if s.ownership != owner {
		return
	}
	inDate, left := !s.term.lease.Overdue(), false
	for id, w := range s.waiters {
		switch {
		case w.seq == 0:
		case inDate && w.seq <= read:
			delete(s.waiters, id)
			s.returning[id] = w
			w.settle(w.answer, nil)
		default:
			left = true
		}
	}
	if left && !s.verifying {
		s.verifying = true
		go s.verify()
	}
}

// verify hands out the settlements that were read, once this process is known to own the session. If the log cannot be
// read, their Asks return why.
func (s *Session) verify() {
	for more := true; more; {
		err := s.verifyOwner(s.h.ctx)
		s.mu.Lock()
		more = false
		for id, w := range s.waiters {
			switch {
			case w.seq == 0:
			case err != nil:
				delete(s.waiters, id)
				w.settle(Answer{}, err)
			default:
				// it came after the log was read
				more = true
			}
		}
		s.verifying = more
		s.mu.Unlock()
	}
}

// verifyOwner returns nil when this process owns the session: its lease is in date by its own monotonic clock after the
// session's log was read to the end. It waits while the session is suspended, and while an overdue lease is not lost
// yet.
func (s *Session) verifyOwner(ctx context.Context) error {
	for {
		if err := s.Regain(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		l := s.term
		s.mu.Unlock()
		if l.lease.Overdue() {
			select {
			case <-l.ctx.Done():
				// an overdue lease is not renewed any more
			case <-ctx.Done():
				return about(context.Cause(ctx), "%s", s.ref)
			}
		}
		if l.ctx.Err() != nil {
			s.suspend(l)
			continue
		}
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		// a newer claim was stored behind what it had read
		sure := s.ownership == owner && !s.term.lease.Overdue()
		s.mu.Unlock()
		if sure {
			return nil
		}
	}
}

// abandonAsk remembers that an Ask returns without the decision about its prompt, and says so in the log where nothing
// else brings the decision to the agent. It forgets prompts that the session has no longer.
func (s *Session) abandonAsk(prompt string) {
	s.mu.Lock()
	s.gaveUp[prompt] = true
	s.forgetPrompts(s.gaveUp, prompt)
	s.mu.Unlock()
	s.recordUnattended(prompt)
}

// forgetPrompts removes the prompts that the session has no longer, except one, from a map that has grown. The session
// is locked.
func (s *Session) forgetPrompts(from map[string]bool, except string) {
	if len(from) > returnedMax && s.st != nil {
		maps.DeleteFunc(from, func(id string, _ bool) bool { return s.st.Prompts[id] == nil && id != except })
	}
}

// recordUnattended says in the log that no Ask waits for the decision about a prompt, if that is so when it is stored.
func (s *Session) recordUnattended(prompt string) {
	s.mu.Lock()
	s.unasks[prompt] = true
	s.forgetPrompts(s.unasks, prompt)
	s.mu.Unlock()
	s.appendLater(events.PromptUnattended{Prompt: prompt},
		func(st *session.State) bool { return s.unattended(st, prompt) })
}

// recordUnasked says in the log which prompts this process has adopted, alone or with their calls, and no Ask waits
// for: their decisions reach the agent by a turn, unless an Ask comes before it. adopt names what was adopted.
// underWay: the adoption can be stored after this.
func (s *Session) recordUnasked(underWay bool, adopt ...Adopt) {
	s.recordUnaskedOf(underWay, func(id, call string) bool {
		return slices.ContainsFunc(adopt, func(a Adopt) bool {
			return slices.Contains(a.Calls, call) || slices.ContainsFunc(a.Prompts, func(p Prompt) bool {
				q := s.st.Prompts[p.ID]
				return p.ID == id || call != "" && q != nil && q.Call == call
			})
		})
	})
}

// recordUnaskedOf is [Session.recordUnasked] for the prompts that are chosen by their ids and calls. The facts about an
// adoption that is under way are queued behind it, and are stored only if the adoption is.
func (s *Session) recordUnaskedOf(underWay bool, chosen func(id, call string) bool) {
	s.mu.Lock()
	var unasked []string
	for id, p := range s.st.Prompts {
		if chosen(id, p.Call) && (underWay || s.unattended(s.st, id)) {
			unasked = append(unasked, id)
		}
	}
	s.mu.Unlock()
	slices.Sort(unasked)
	for _, id := range unasked {
		s.recordUnattended(id)
	}
}

// unattended reports whether the log does not say yet that nothing here waits for the decision about a prompt, and only
// this process could take that decision in: the prompt belongs to no turn, or to a call that outlives its turn. The
// session is locked.
func (s *Session) unattended(st *session.State, prompt string) bool {
	p := st.Prompts[prompt]
	_, returned := s.returned[prompt]
	if p == nil || p.Unattended || returned || s.asked(prompt) {
		return false
	}
	c := st.Tools[p.Call]
	if !ofLastOwner(st, p.Epoch) && (c == nil || !ofLastOwner(st, c.Epoch)) {
		// nothing is left to this process
		return false
	}
	return outlivesTurn(st, p)
}

// unasked reports whether nothing waits here for an open prompt, as the log says, or as it said before a claim
// requested the prompt again. A prompt that was requested without an Ask waits for this process until the log says
// otherwise.
func (s *Session) unasked(st *session.State, prompt string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := st.Prompts[prompt]
	if p.Unattended {
		s.unasks[prompt] = true
	}
	return p.Unattended || s.unasks[prompt] && !s.asked(prompt) && outlivesTurn(st, p)
}

// outlivesTurn reports whether a prompt belongs to no turn, or to a call in the background.
func outlivesTurn(st *session.State, p *session.Prompt) bool {
	c := st.Tools[p.Call]
	return p.Turn == "" || c != nil && c.Background
}

// unread returns [ErrUnread] if facts end a call whose prompt a person has decided, after the Ask for it gave up or,
// in a call that was adopted, without an Ask: the end of the call would count as the delivery of a decision that the
// agent does not have. The session is locked.
func (s *Session) unread(st *session.State, facts []events.Event) error {
	for i := range facts {
		call := ""
		switch f := facts[i].Fact.(type) {
		case events.ToolCompleted:
			call = f.Call
		case events.ToolFailed:
			call = f.Call
		case events.ToolInterrupted:
			call = f.Call
		}
		if call == "" {
			continue
		}
		// a fact before this one, in the same commit, may adopt the call
		left := s.adopted[call] || s.isLeft(call)
		for id, p := range st.Prompts {
			decided := p.Status == session.Answered || p.Status == session.Rejected
			_, returned := s.returned[id]
			if _, carried := st.Carries(id); carried && p.Turn != st.Turn.ID {
				// the open turn has brought it to the agent
				returned = true
			}
			alone := s.gaveUp[id] || left && s.waiters[id] == nil
			if p.Call == call && decided && alone && !returned {
				return fmt.Errorf("%w: prompt %s of call %s in %s was %s, and no Ask has returned that", ErrUnread, id,
					call, s.ref, p.Status)
			}
		}
	}
	return nil
}

// have records that an Ask returns the decision of this commit, and appends the receipt unless the end of the call will
// be the receipt. It does not wait for it: if it is lost with the process, the next process gets the decision again. It
// returns false, and does nothing, if a person took the decision back.
func (s *Session) have(prompt string, settled uint64) bool {
	s.mu.Lock()
	if s.tookBack(prompt, settled) {
		s.mu.Unlock()
		return false
	}
	s.returned[prompt] = turnID(s.st)
	if len(s.returned) > returnedMax {
		for id := range s.returned {
			if _, kept := s.st.Ended(session.EntityPrompt, id); !kept && s.st.Prompts[id] == nil {
				delete(s.returned, id)
			}
		}
	}
	due := s.owesReceipt(s.st, prompt)
	if due {
		settled = s.st.Prompts[prompt].SettledSeq
	}
	s.mu.Unlock()
	if due {
		s.giveReceipt(prompt, settled, s.owesReceipt)
	}
	return true
}

// forgetTakenBack forgets which answers the agent has, for prompts whose answers a commit takes back: no receipt is due
// for the next answer to such a prompt before an Ask has returned it. The session is locked.
func (s *Session) forgetTakenBack(c *events.Commit) {
	if !slices.ContainsFunc(c.Events, withdraws) {
		return
	}
	for id := range s.returned {
		if s.tookBack(id, c.Seq-1) {
			delete(s.returned, id)
		}
	}
}

func withdraws(e events.Event) bool { _, ok := e.Fact.(events.MessageWithdrawn); return ok }

// tookBack reports whether the answer that settled a prompt in a commit was taken back: the prompt waits again, or was
// settled again. The session is locked.
func (s *Session) tookBack(prompt string, settled uint64) bool {
	p := s.st.Prompts[prompt]
	e, ended := s.st.Ended(session.EntityPrompt, prompt)
	return p != nil && p.ReopenedSeq > settled || ended && e.Seq > settled
}

// haveAll gives the receipts for what Asks of a turn have returned and no call has ended with, before facts are queued
// that end the turn: by its completion, or by a turn of the agent in its place. The end of a turn ends its calls
// without delivering anything, and what was not delivered is brought to the agent by another turn.
func (s *Session) haveAll(facts []events.Event) {
	for i := range facts {
		switch f := facts[i].Fact.(type) {
		case events.TurnCompleted:
			s.haveOf(f.Turn)
		case events.TurnStarted:
			if t := s.openTurn(); t != nil && t.id != f.Turn {
				s.haveOf(t.id)
			}
		}
	}
}

// haveOf gives the receipts for what Asks of a turn have returned.
func (s *Session) haveOf(turn string) {
	owes := func(st *session.State, prompt string) bool {
		p := st.Prompts[prompt]
		if p == nil || p.Status == session.Awaiting {
			return false
		}
		c := st.Tools[p.Call]
		// its end is the receipt
		return p.Delivery != events.DeliverToolResult || c == nil || !c.Background
	}
	due := map[string]uint64{}
	s.mu.Lock()
	for prompt, in := range s.returned {
		if in == turn && s.st != nil && owes(s.st, prompt) {
			due[prompt] = s.st.Prompts[prompt].SettledSeq
		}
	}
	s.mu.Unlock()
	for prompt, settled := range due {
		s.giveReceipt(prompt, settled, owes)
	}
}

// giveReceipt queues the receipt for the decision of a commit about a prompt, to be stored if it is owed then: not for
// the next decision, if this one was taken back.
func (s *Session) giveReceipt(prompt string, settled uint64, owes func(st *session.State, prompt string) bool) {
	s.appendLater(events.PromptDelivered{Prompt: prompt}, func(st *session.State) bool {
		return owes(st, prompt) && st.Prompts[prompt].SettledSeq == settled
	})
}

// appendLater queues a fact that no caller waits for, to be stored if it is due then. due is called with
// the session locked.
func (s *Session) appendLater(f events.Fact, due func(st *session.State) bool) {
	o, err := s.newWrite([]events.Fact{f})
	if err == nil {
		o.check = func(st *session.State) (bool, error) { return !due(st), nil }
		// Asks, steps and stops bound their number
		o.forced = true
		err = s.queueUp(true, o)
	}
	if err != nil {
		s.h.log.Debug().Str("session", s.ref.String()).Str("id", f.Subject()).AnErr("err",
			err).Msg("not said: " + string(f.Kind()))
	}
}

// owesReceipt says whether prompt.delivered is for Ask to say.
func (s *Session) owesReceipt(st *session.State, prompt string) bool {
	p := st.Prompts[prompt]
	return p != nil && p.Status != session.Awaiting &&
		(p.Delivery != events.DeliverToolResult || st.Tools[p.Call] == nil)
}
