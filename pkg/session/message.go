package session

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// messageAccepted queues user input. A person's input supersedes open prompts, by any writer.
func (f *fold) messageAccepted(fact events.MessageAccepted) string {
	e := f.ended(EntityMessage, fact.Message)
	switch {
	// the turn that has it is in the same commit
	case e != nil && e.Seq == f.c.Seq && e.Outcome == OutcomeDelivered && e.OpenedSeq == 0:
		e.OpenedSeq = f.c.Seq
		if t := f.Turn; t != nil && t.Message == fact.Message {
			t.MessageSeq = f.c.Seq
		}
	case e != nil || f.MessageSeq(fact.Message) != 0:
		return WhyClosedID
	case len(f.Queue) >= QueuedMax || !f.room(messageBytes, fact.Message):
		return WhyLimit
	default:
		f.Queue = append(f.Queue, Message{ID: fact.Message, Seq: f.c.Seq, Synthetic: fact.Synthetic, At: f.c.At})
	}
	if !fact.Synthetic {
		// a message that a harness takes in may be its own
		if f.c.Writer != events.WriterHarness {
			f.personActs()
		}
		f.ActiveAt = f.c.At
		// a person who continues wants retries again
		f.Policy.AutoRetry = true
		f.supersede(fact.Message)
	}
	return ""
}

func (f *fold) messageWithdrawn(fact events.MessageWithdrawn) string {
	i := f.queued(fact.Message)
	switch {
	case i < 0 && f.ended(EntityMessage, fact.Message) != nil:
		return WhyClosedID
	case i < 0:
		return WhyUnknown
	}
	f.end(Ending{Entity: EntityMessage, ID: fact.Message, Outcome: string(Withdrawn), OpenedSeq: f.Queue[i].Seq})
	f.Queue = slices.Delete(f.Queue, i, i+1)
	if p := f.Pending.Turn; p != nil && p.Message == fact.Message {
		f.Pending.Turn = nil
		if f.HeldSeq == 0 {
			// the answer that had let the queue move is taken back
			f.HeldSeq = p.Held
		}
	}
	// a stopped request: no turn has had the message
	if l := f.LastTurn; l != nil && l.Message == fact.Message {
		l.Message, l.MessageSeq = "", 0
	}
	for _, id := range sortedKeys(f.Prompts) {
		if p := f.Prompts[id]; f.isAnswer(id, p, fact.Message) {
			f.reopen(id, p)
			f.dropNeedless()
		}
	}
	return ""
}

// NewerMessage reports whether a person has sent a message after this place in the log that waits in the queue.
func (s *State) NewerMessage(seq uint64) bool {
	return slices.ContainsFunc(s.Queue, func(m Message) bool { return !m.Synthetic && m.Seq > seq })
}

// QueueMoves reports whether the queue may move on when nothing else goes first: after a turn that completed, or after
// a person's act. After a failure, a stop or an interruption it waits for one (C7).
func (s *State) QueueMoves() bool { return s.HeldSeq == 0 || s.NewerMessage(s.HeldSeq) }
