package session

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

func (f *fold) admitOpened(fact events.SessionOpened) string {
	switch {
	case f.Closed != nil:
		return WhyClosed
	case f.Opened():
		return WhyAlreadyOpen
	case f.e.Epoch != 1:
		return WhyEpoch
	case !events.IsHarnessSource(f.e.Source, f.Harness, fact.Incarnation):
		return WhySource
	}
	return ""
}

// admitClaimed admits the claim of a session without an owner, or with an exclusive owner of a lower incarnation, but
// never by an incarnation below an earlier owner or the one that superseded it.
func (f *fold) admitClaimed(fact events.SessionClaimed) string {
	switch {
	case !f.Opened():
		return WhyNotOpen
	case f.Closed != nil:
		return WhyClosed
	case f.e.Epoch != f.Epoch+1:
		return WhyEpoch
	case !events.IsHarnessSource(f.e.Source, f.Harness, fact.Incarnation):
		return WhySource
	case !f.State.Claimable(fact.Incarnation):
		return WhyClaim
	}
	return ""
}

// Claimable reports whether this incarnation may take the session now.
func (s *State) Claimable(incarnation string) bool {
	switch {
	case !s.Open():
		return false
	case s.Owned && !s.Exclusive:
		return false
	case s.Owned && !Older(s.Incarnation, incarnation):
		return false
	case s.Exclusive && Older(incarnation, s.Incarnation):
		return false
	}
	return s.SupersededBy == "" || !Older(incarnation, s.SupersededBy)
}

// Older reports whether incarnation a came before b. Incarnations are numbers drawn from the broker; what is no number
// is older than every number, so that it can never take anything from one.
func Older(a, b string) bool {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return x < y
	case errA != nil && errB != nil:
		return a < b
	}
	return errA != nil
}

func orTrue(b *bool) bool { return b == nil || *b }

func (f *fold) opened(fact events.SessionOpened) string {
	s := f.State
	s.Epoch, s.Owned, s.Incarnation, s.Exclusive, f.owner = 1, true, fact.Incarnation, orTrue(fact.Exclusive), ""
	s.Parent, s.ParentCall = fact.Parent, fact.ParentCall
	if fact.Root != "" && fact.Parent != "" {
		s.Root = fact.Root
	}
	s.Title, s.Agent, s.Model = cut(fact.Title, TitleBytesMax), cut(fact.Agent, NameBytesMax),
		cut(fact.Model, NameBytesMax)
	s.ContextLimit = max(fact.ContextLimit, 0)
	s.Policy = fact.Policy.Apply(s.Policy)
	s.OpenedAt, s.ActiveAt = f.c.At, f.c.At
	return ""
}

func (f *fold) claimed(fact events.SessionClaimed) string {
	s := f.State
	s.Epoch, s.Owned, s.Incarnation, s.Exclusive = s.Epoch+1, true, fact.Incarnation, orTrue(fact.Exclusive)
	s.Left, f.owner = "", ""
	f.dropReceipt()
	return ""
}

func (f *fold) configured(fact events.SessionConfigured) string {
	f.Policy = fact.Policy.Apply(f.Policy)
	f.recount()
	if fact.ProviderChanged && f.Retry.State == RetryAbandoned && failure.ProviderConcern(f.Retry.Reason) {
		f.Retry.State, f.Retry.Reason = "", ""
	}
	return ""
}

func (f *fold) released() string {
	f.Owned, f.Left = false, LeftReleased
	f.dropReceipt()
	return ""
}

// orphaned is the fence. On a session without an owner it only records which calls are held for which child.
func (f *fold) orphaned(fact events.SessionOrphaned) string {
	if fact.Incarnation != f.Incarnation {
		return WhySource
	}
	if f.Owned {
		f.Owned, f.Left = false, LeftOrphaned
	}
	if fact.SupersededBy != "" && Older(f.SupersededBy, fact.SupersededBy) {
		f.SupersededBy = word(fact.SupersededBy)
	}
	f.WaitsFor = nil
	for _, w := range fact.WaitsFor {
		room := len(f.WaitsFor) < len(f.Tools) || f.room(holdBytes, w.Call, w.Child)
		if f.Tools[w.Call] != nil && room && !slices.Contains(f.WaitsFor, w) {
			f.WaitsFor = append(f.WaitsFor, w)
		}
	}
	f.dropReceipt()
	return ""
}

// Silence returns when what the owner does, a turn or a compaction, will have been silent for too long, and which of
// the two it is: [EntityTurn], [EntityCompaction]; "" while silence means nothing (T18). Heard is when the owner was
// last heard of beside the log. Waiting for a person is no silence (P20), nor is a call that runs; what runs in the
// background does not count. While the conversation is compacted its turn need not be heard of. Of what is held for an
// owner of before recovery says what becomes of it.
func (s *State) Silence(last time.Time, steps events.Steps) (of string, at time.Time) {
	t, c := s.Turn, s.Compaction
	switch {
	case s.Policy.StallAfterS <= 0 || !s.Owned || s.BlockedBy() != "" || s.calling():
		return "", at
	case c.Running() && s.Owns(c.Epoch):
		of = EntityCompaction
	case t != nil && s.Owns(t.Epoch):
		of = EntityTurn
	default:
		return "", at
	}
	if wrote := steps.Since(s.UpdatedAt, s.Seq); wrote.After(last) {
		last = wrote
	}
	return of, last.Add(s.Policy.StallAfter())
}

// calling reports whether a call runs that is not in the background.
func (s *State) calling() bool {
	for _, c := range s.Tools {
		if !c.Background {
			return true
		}
	}
	return false
}

// dropReceipt: a stop of a turn that has ended waits for a receipt only from the process that ran it.
func (f *fold) dropReceipt() {
	if p := f.Pending.Stop; p != nil && (f.Turn == nil || f.Turn.ID != p.Turn) {
		f.Pending.Stop = nil
	}
}

// closed ends the session and everything in it, for good: last what people look for.
func (f *fold) closed(fact events.SessionClosed) string {
	for _, m := range f.Queue {
		f.end(Ending{Entity: EntityMessage, ID: m.ID, Outcome: string(Withdrawn), Reason: events.ReasonClosed})
		f.derive(events.MessageWithdrawn{Message: m.ID, By: fact.By})
	}
	if c := f.Compaction; f.CompactionOpen() {
		f.end(Ending{Entity: EntityCompaction, ID: c.ID, Outcome: OutcomeFailed, Reason: events.ReasonClosed})
		f.derive(events.CompactionFailed{Compaction: c.ID, Error: events.Failure{Kind: events.ReasonClosed}})
	}
	for _, id := range sortedKeys(f.Tools) {
		if c := f.Tools[id]; f.openTurn(c.Turn) == "" || c.Background {
			f.endCallContained(id, "ended-with-session", events.ReasonClosed)
		}
	}
	for _, id := range sortedKeys(f.Prompts) {
		if f.openTurn(f.Prompts[id].Turn) == "" {
			f.withdraw(id, events.ReasonClosed)
		}
	}
	if f.Turn != nil {
		f.endTurn(OutcomeStopped, events.ReasonClosed, nil,
			events.TurnStopped{Turn: f.Turn.ID, Reason: events.ReasonClosed})
	}
	f.Prompts, f.Queue, f.WaitsFor, f.Pending, f.Retry, f.Compaction = nil, nil, nil, Pending{}, Retry{}, nil
	f.Owned, f.Left, f.HeldSeq, f.StoppedSeq = false, "", 0, 0
	f.State.Closed = &Closing{Reason: cut(fact.Reason, TextBytesMax), By: cut(fact.By, NameBytesMax), At: f.c.At,
		Seq: f.c.Seq}
	return ""
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Owns reports whether the session's owner opened, or adopted, an item with this epoch. An item that it does not own
// was left behind by an earlier owner.
func (s *State) Owns(epoch uint64) bool { return s.Owned && epoch == s.Epoch }
