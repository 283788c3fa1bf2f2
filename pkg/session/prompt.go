package session

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/codec"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func (f *fold) applyPrompt() (why string, ok bool) {
	switch fact := f.e.Fact.(type) {
	case events.PromptRequested:
		return f.promptRequested(fact), true
	case events.PromptAnswered:
		return f.decided(fact.Prompt, Answered, "", fact.Owed), true
	case events.PromptRejected:
		return f.decided(fact.Prompt, Rejected, fact.Text, fact.Owed), true
	case events.PromptDismissed:
		return f.decided(fact.Prompt, Dismissed, "", true), true
	case events.PromptWithdrawn:
		return f.settle(fact.Prompt, Withdrawn, fact.Reason), true
	case events.PromptSuperseded:
		return f.settle(fact.Prompt, Superseded, fact.Message), true
	case events.PromptExpired:
		return f.settle(fact.Prompt, Expired, fact.Reason), true
	case events.PromptUnattended:
		return f.promptUnattended(fact.Prompt), true
	case events.PromptAttended:
		return f.promptAttended(fact.Prompt), true
	case events.PromptDelivered:
		return f.promptDelivered(fact), true
	}
	return "", false
}

// promptRequested opens a prompt. Again while it is open: the newer body, and the newer epoch owns it with its call and
// turn; not the turn of a call in the background, which outlives the turn. Under a closed id it is ignored, so that an
// answer always meets the opening it was given for.
func (f *fold) promptRequested(fact events.PromptRequested) string {
	p := f.Prompts[fact.Prompt]
	_, settled := f.resolve(fact.Prompt)
	switch {
	case settled:
		return WhyClosedID
	case p == nil && f.turnIsOver(fact.Turn):
		return WhyTurnEnded
	case p == nil && f.callIsOver(fact.Call):
		return WhyClosedID
	case p == nil && (f.awaiting() >= OpenPromptsMax ||
		!f.room(promptBytes+carriedLists*(carriedBytes+jsonBytes(fact.Prompt)), fact.Prompt, fact.Call, fact.Turn,
			string(word(fact.PromptKind)), string(word(fact.Delivery)))):
		return WhyLimit
	case p == nil:
		p = &Prompt{Since: f.c.At, Status: Awaiting}
		if f.Prompts == nil {
			f.Prompts = map[string]*Prompt{}
		}
		f.Prompts[fact.Prompt] = p
	}
	p.Kind, p.Blocking, p.OnOwnerLoss, p.Delivery = word(fact.PromptKind), fact.Blocks(), fact.Loss(),
		word(fact.Delivery)
	p.Turn = orElse(f.openTurn(fact.Turn), f.openTurn(p.Turn))
	if fact.Call != "" && !f.callIsOver(fact.Call) {
		p.Call = fact.Call
	}
	f.link(p)
	p.setDeadline(deadlineOf(fact.Deadline), f.c.Seq)
	p.UpdatedAt, p.Seq, p.Epoch, p.Unattended = f.c.At, f.c.Seq, f.Epoch, false
	f.adoptCall(p.Call)
	if c := f.Tools[p.Call]; p.Turn != "" && (c == nil || !c.Background) {
		f.adoptTurn()
	}
	return ""
}

// setDeadline takes the deadline of a request. One that is repeated, because another process adopts the prompt, was set
// when it was said first: the broker's clock may have been set in between.
func (p *Prompt) setDeadline(at *time.Time, seq uint64) {
	same := at != nil && p.Deadline != nil && at.Equal(*p.Deadline)
	switch {
	case !same:
		p.DeadlineSeq = 0
	case p.DeadlineSeq == 0 && p.Seq != seq:
		p.DeadlineSeq = p.Seq
	}
	p.Deadline = at
}

// link ties a prompt to its call, whichever came first: some agents ask before they say that the call runs.
func (f *fold) link(p *Prompt) {
	if c := f.Tools[p.Call]; c != nil {
		p.Tool, p.Turn = c.Name, orElse(p.Turn, f.openTurn(c.Turn))
	}
}

func (s *State) callIsOver(call string) bool {
	return s.Tools[call] == nil && s.ended(EntityTool, call) != nil
}

func (s *State) awaiting() int {
	n := 0
	for _, p := range s.Prompts {
		if p.Awaits() {
			n++
		}
	}
	return n
}

// decided settles a prompt as a person has decided. A decision that the harness says came in through it, or is its own:
// the owner has it, and it calls for no turn.
func (f *fold) decided(id string, to Status, text string, owed bool) string {
	if why := f.settle(id, to, text); why != "" {
		return why
	}
	f.ActiveAt = f.c.At
	if f.c.Writer == events.WriterHarness {
		f.deliver(id, f.c.At)
		f.updateCarried(id, func(c *Carried) { c.Had, c.Quiet = f.Epoch, true })
		return ""
	}
	f.personActs()
	if !owed {
		f.QuietSeq = f.c.Seq
	}
	return ""
}

// settle ends an awaiting prompt. It stays among the prompts until the harness has the decision; a prompt without a
// receiver is removed at once.
func (f *fold) settle(id string, to Status, reason string) string {
	p := f.Prompts[id]
	switch {
	case p == nil && f.ended(EntityPrompt, id) == nil:
		return WhyUnknown
	case !p.Awaits():
		return WhyClosedID
	}
	p.Status, p.Reason, p.SettledSeq, p.UpdatedAt = to, cut(reason, TextBytesMax), f.c.Seq, f.c.At
	if f.ownsCall(p.Call) {
		// the process that has adopted the call takes the decision in
		p.Epoch = f.Epoch
	}
	f.end(Ending{Entity: EntityPrompt, ID: id, Name: string(p.Kind), Outcome: string(to), Reason: reason,
		OpenedSeq: p.Seq, Since: p.Since, Epoch: p.Epoch, Call: p.Call, Tool: p.Tool})
	switch {
	case to == Withdrawn || to == Expired && reason != events.ReasonDeadline:
		delete(f.Prompts, id)
	case f.Turn != nil && f.Turn.ID == p.Turn:
		f.Turn.Prompts = f.carry(f.Turn.Prompts, p.carried(id))
	}
	return ""
}

// forgetUndelivered bounds what waits for a harness that no person decided, by number: beyond it the oldest goes. A
// decision of a person stays until it is delivered: a session that is full of them opens no more prompts ([fold.room]).
// Beyond the bytes of reasons the oldest texts of rejections go, and the decisions stay: the text is in the log where
// the prompt was settled. Other reasons are ids and words, which together take less.
func (s *State) forgetUndelivered() {
	for len(s.Prompts) > undeliveredBytesMax/TextBytesMax {
		n, bytes, oldest, text := 0, 0, "", ""
		for _, id := range sortedKeys(s.Prompts) {
			p := s.Prompts[id]
			if p.Awaits() {
				continue
			}
			bytes += jsonBytes(p.Reason)
			if !p.Status.byPerson() {
				n++
				oldest = s.settledFirst(oldest, id)
			}
			if p.Status == Rejected && p.Reason != "" {
				text = s.settledFirst(text, id)
			}
		}
		switch {
		case n > UndeliveredMax:
			delete(s.Prompts, oldest)
		case bytes > undeliveredBytesMax && text != "":
			s.Prompts[text].Reason = ""
		default:
			return
		}
	}
}

// settledFirst returns the prompt of two that was settled first; a may be "".
func (s *State) settledFirst(a, b string) string {
	if a != "" && s.Prompts[a].SettledSeq <= s.Prompts[b].SettledSeq {
		return a
	}
	return b
}

// withdraw is settle by containment; a settled prompt stays as it is.
func (f *fold) withdraw(id, reason string) {
	if p := f.Prompts[id]; p.Awaits() {
		f.settle(id, Withdrawn, reason)
		f.derive(events.PromptWithdrawn{Prompt: id, Reason: reason})
	}
}

// promptUnattended notes that the owner has nothing that waits for the decision about a prompt. The decision, made
// already or later, then reaches the agent by a turn, as if the owner were gone: see [State.ownerTakesIn].
func (f *fold) promptUnattended(id string) string {
	p := f.Prompts[id]
	switch {
	case p == nil && f.ended(EntityPrompt, id) != nil:
		return WhyClosedID
	case p == nil:
		return WhyUnknown
	}
	p.Unattended = true
	return ""
}

// promptAttended gives the decision about a settled prompt to the owner: something there waits for it. Without this, a
// decision for an earlier epoch counts as that of a process that is gone. A turn that was requested for such a one does
// not bring this decision, and is taken back if it would bring no other.
func (f *fold) promptAttended(id string) string {
	p := f.Prompts[id]
	switch {
	case p == nil && f.ended(EntityPrompt, id) != nil:
		return WhyClosedID
	case p == nil || p.Status == Awaiting:
		return WhyUnknown
	case p.Turn != "" && f.openTurn(p.Turn) == "" && f.Tools[p.Call] == nil:
		// the call that waited for it ends with the turn: another turn brings it
		return WhyTurnEnded
	}
	p.Epoch, p.Unattended = f.Epoch, false
	f.notPending(id)
	f.dropNeedless()
	return ""
}

// promptDelivered is the receipt; "" for an awaiting one would lose it, so that is unknown.
func (f *fold) promptDelivered(fact events.PromptDelivered) string {
	p := f.Prompts[fact.Prompt]
	switch {
	case p == nil && fact.Refused == "" && f.hadBefore(fact.Prompt):
		f.updateCarried(fact.Prompt, func(c *Carried) { c.Had = f.Epoch })
		return ""
	case p == nil && fact.Refused != "" && f.bringsInVain(fact.Prompt):
		f.refused(fact)
		return ""
	case p == nil && f.ended(EntityPrompt, fact.Prompt) != nil:
		return WhyClosedID
	case p == nil || p.Awaits():
		return WhyUnknown
	}
	if fact.Refused == "" {
		f.received(fact.Prompt, p)
	}
	f.deliver(fact.Prompt, f.c.At)
	if fact.Refused == "" {
		// its turn has completed
		over := f.Turn == nil && (f.LastTurn == nil || !has(f.LastTurn.Prompts, fact.Prompt))
		f.updateCarried(fact.Prompt, func(c *Carried) { c.Had, c.Quiet = f.Epoch, over })
		f.dropNeedless()
		return ""
	}
	f.refused(fact)
	return ""
}

// refused applies that the harness cannot use a decision: people see it, and no turn brings the decision again.
func (f *fold) refused(fact events.PromptDelivered) {
	f.notCarried(fact.Prompt)
	f.dropNeedless()
	if e := f.ended(EntityPrompt, fact.Prompt); e != nil {
		e.Reason = cut("refused: "+fact.Refused, TextBytesMax)
	}
}

// bringsInVain reports whether the open turn was given a decision of which no owner has said that its agent has it. The
// decision ended its call while the session had no owner, so the prompt is gone.
func (f *fold) bringsInVain(prompt string) bool {
	c, ok := f.Carries(prompt)
	return ok && c.Had == 0
}

// hadBefore reports whether the open turn carries a decision with the receipt of an earlier epoch. A process that lost
// its lease and continues its own turn repeats the receipt: it still has the decision.
func (f *fold) hadBefore(prompt string) bool {
	c, ok := f.Carries(prompt)
	return ok && c.Had != f.Epoch
}

// received applies a receipt beside the delivery. The open turn has a prompt of an earlier turn, or one that an earlier
// turn brought in vain, and passes it on to the next attempt if this one fails. The message that the answer had become
// is no longer needed.
func (f *fold) received(id string, p *Prompt) {
	earlier := p.Turn != "" || f.LastTurn != nil && has(f.LastTurn.Prompts, id)
	if t := f.Turn; t != nil && earlier && p.Turn != t.ID {
		t.Prompts = f.carry(t.Prompts, p.carried(id))
		if l := f.LastTurn; l != nil {
			l.Prompts = dropCarried(l.Prompts, id)
		}
	}
	if !f.waitsAsMessage(id) {
		return
	}
	message := f.answerMessage(id, p)
	i := f.queued(message)
	f.end(Ending{Entity: EntityMessage, ID: message, Outcome: OutcomeDelivered, Reason: reasonReceived,
		OpenedSeq: f.Queue[i].Seq})
	f.Queue = slices.Delete(f.Queue, i, i+1)
	if r := f.Pending.Turn; r != nil && r.Message == message {
		f.Pending.Turn = nil
	}
}

// reasonReceived is why a message was not handed out that an answer had become: its asker has the answer.
const reasonReceived = "answer-received"

// deliver takes a settled prompt out: the harness has it.
func (f *fold) deliver(id string, at time.Time) {
	p := f.Prompts[id]
	if p == nil || p.Awaits() {
		return
	}
	delete(f.Prompts, id)
	if e := f.ended(EntityPrompt, id); e != nil {
		e.DeliveredAt = at
	}
	if f.gone == nil {
		f.gone = map[string]Carried{}
	}
	f.gone[id] = p.carried(id)
}

// overtake drops decisions for a process or a turn that is gone when a person continues the session: they are no longer
// owed, and do not count as delivered. Decisions from after the request for the person's turn stay owed.
func (f *fold) overtake(asked uint64) {
	for id, p := range f.Prompts {
		if _, has := f.Carries(id); has || p.Awaits() || p.SettledSeq > asked || f.Tools[p.Call] != nil ||
			f.waitsAsMessage(id) {
			continue
		}
		if p.Epoch < f.Epoch || p.Turn != "" && f.openTurn(p.Turn) == "" {
			delete(f.Prompts, id)
		}
	}
}

// carryAsMessage gives the open turn, which took a message, the prompt whose answer that message is.
func (f *fold) carryAsMessage(message string) {
	for id, p := range f.Prompts {
		if f.isAnswer(id, p, message) {
			f.Turn.Prompts = f.carry(f.Turn.Prompts, p.carried(id))
		}
	}
}

// isAnswer reports whether a message is what the answer to a prompt became.
func (s *State) isAnswer(prompt string, p *Prompt, message string) bool {
	return p.Status == Answered && p.Delivery == events.DeliverMessage && s.answerMessage(prompt, p) == message
}

const answerPrefix = "answer"

// IsAnswer reports whether a message is, by its id, what an answer became.
func IsAnswer(message string) bool { return strings.HasPrefix(message, answerPrefix+"-") }

// answerMessage is the id of the message that the answer to a prompt becomes when its asker is gone. An answer that is
// given after one was taken back becomes another message.
func (s *State) answerMessage(prompt string, p *Prompt) string {
	return events.DeriveID(answerPrefix, s.Session, prompt, strconv.FormatUint(max(p.Seq, p.ReopenedSeq), 10))
}

// reopen applies that a person takes back the answer to a prompt. The prompt waits again, as if the answer had not been
// given: it is withdrawn if its turn has ended since, and superseded if the person has sent a message since.
func (f *fold) reopen(id string, p *Prompt) {
	f.notCarried(id)
	f.Recent = slices.DeleteFunc(f.Recent, func(e Ending) bool { return e.Entity == EntityPrompt && e.ID == id })
	later := f.laterMessage(p.SettledSeq)
	p.Status, p.Reason, p.SettledSeq = Awaiting, "", 0
	p.UpdatedAt, p.ReopenedSeq = f.c.At, f.c.Seq
	switch {
	case p.Turn != "" && f.openTurn(p.Turn) == "":
		f.withdraw(id, events.ReasonTurnEnded)
	case later != "":
		f.supersedePrompt(id, later)
	}
}

// laterMessage returns a message of a person from after a place in the log: in the queue, or of the open or the last
// turn. It returns "" without one.
func (s *State) laterMessage(seq uint64) string {
	for _, m := range s.Queue {
		if !m.Synthetic && m.Seq > seq {
			return m.ID
		}
	}
	if t := s.Turn; t != nil && !t.Synthetic && t.MessageSeq > seq {
		return t.Message
	}
	if t := s.LastTurn; t != nil && !t.Synthetic && t.MessageSeq > seq {
		return t.Message
	}
	return ""
}

// supersede: a person's message takes the place of every awaiting blocking question whose answer could have been one.
func (f *fold) supersede(message string) {
	for _, id := range sortedKeys(f.Prompts) {
		f.supersedePrompt(id, message)
	}
}

func (f *fold) supersedePrompt(id, message string) {
	if p := f.Prompts[id]; p.Awaits() && p.Blocking && p.OnOwnerLoss == events.LossKeep {
		f.settle(id, Superseded, message)
		f.derive(events.PromptSuperseded{Prompt: id, Message: message})
	}
}

// Awaits reports whether the prompt waits for a person. It may be nil.
func (p *Prompt) Awaits() bool { return p != nil && p.Status == Awaiting }

// BlockedBy is an awaiting blocking prompt, the first by id; "" if nothing blocks.
func (s *State) BlockedBy() string {
	found := ""
	for id, p := range s.Prompts {
		if p.Awaits() && p.Blocking && (found == "" || id < found) {
			found = id
		}
	}
	return found
}

// PendingPrompts are the ids of all awaiting prompts, blocking or not, sorted: what waits for a person.
func (s *State) PendingPrompts() []string {
	var ids []string
	for _, id := range sortedKeys(s.Prompts) {
		if s.Prompts[id].Awaits() {
			ids = append(ids, id)
		}
	}
	return ids
}

func promptFields(c *codec.Codec, p *Prompt) {
	codec.Text(c, `{"kind":`, &p.Kind)
	codec.Some(c, `,"call":`, &p.Call)
	codec.Some(c, `,"tool":`, &p.Tool)
	codec.Some(c, `,"turn":`, &p.Turn)
	codec.Time(c, `,"since":`, &p.Since)
	codec.Time(c, `,"updated_at":`, &p.UpdatedAt)
	codec.Text(c, `,"status":`, &p.Status)
	codec.Some(c, `,"reason":`, &p.Reason)
	codec.Number(c, `,"epoch":`, &p.Epoch)
	codec.Flag(c, `,"blocking":`, &p.Blocking)
	codec.Number(c, `,"seq":`, &p.Seq)
	codec.Number(c, `,"settled_seq":`, &p.SettledSeq)
	codec.Text(c, `,"on_owner_loss":`, &p.OnOwnerLoss)
	codec.Text(c, `,"delivery":`, &p.Delivery)
	codec.Nullable(c, `,"deadline":`, &p.Deadline, codec.Instant)
	codec.SomeNumber(c, `,"deadline_seq":`, &p.DeadlineSeq)
	codec.SomeFlag(c, `,"unattended":`, &p.Unattended)
	codec.SomeNumber(c, `,"reopened_seq":`, &p.ReopenedSeq)
	c.Mark(`}`)
}
