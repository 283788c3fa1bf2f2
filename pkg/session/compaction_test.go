package session_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	kinds "github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// compacted is a session whose turn t1 was stopped for a compaction, to go on after it, that has ended so at 10.
func compacted(outcome, kind string, change func(*session.State)) *session.State {
	s := session.New(storyRef)
	s.Epoch, s.Owned, s.HeldSeq = 1, true, 5
	s.LastTurn = &session.LastTurn{ID: "t1", Outcome: session.OutcomeStopped, Actor: events.ActorCompaction, Seq: 5}
	s.LastCompaction = &session.LastCompaction{ID: "k1", Outcome: outcome, Reason: events.CompactMidStream,
		FollowUp: events.FollowContinue, Turn: "t1", Failures: 1, Seq: 10}
	if kind != "" {
		s.LastCompaction.Error = &events.Failure{Kind: kind}
	}
	change(s)
	return s
}

func waits(seq uint64, synthetic bool) func(*session.State) {
	return func(s *session.State) { s.Queue = []session.Message{{ID: "m1", Seq: seq, Synthetic: synthetic}} }
}

func message(s *session.State) {
	s.LastCompaction.FollowUp, s.LastCompaction.Message, s.LastCompaction.Turn = events.FollowMessage, "m1", ""
}

// TestFollowUp: what is owed after a compaction, and what it is no longer owed for.
func TestFollowUp(t *testing.T) {
	and := func(changes ...func(*session.State)) func(*session.State) {
		return func(s *session.State) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*session.State)
		want   string
	}{
		"its turn was stopped": {func(*session.State) {}, events.FollowContinue},
		"its turn is still to stop": {
			func(s *session.State) { s.Turn = &session.Turn{ID: "t1"}; s.LastTurn = nil }, events.FollowContinue,
		},
		"another turn is open":       {func(s *session.State) { s.Turn = &session.Turn{ID: "t2"} }, ""},
		"another turn came after it": {func(s *session.State) { s.LastTurn.ID = "t2" }, ""},
		"its turn completed": {
			func(s *session.State) { s.LastTurn.Outcome = session.OutcomeCompleted }, "",
		},
		"a person stopped its turn": {func(s *session.State) { s.LastTurn.Actor = events.ActorPerson }, ""},
		"there was no turn":         {func(s *session.State) { s.LastTurn = nil }, ""},
		"nothing was to follow":     {func(s *session.State) { s.LastCompaction.FollowUp = "" }, ""},
		"another compaction is under way": {
			func(s *session.State) { s.Compaction = &session.Compaction{State: session.CompactionRunning} }, "",
		},
		"there was no compaction":          {func(s *session.State) { s.LastCompaction = nil }, ""},
		"its message waits":                {and(message, waits(6, false)), events.FollowMessage},
		"its message was withdrawn":        {message, ""},
		"its message came before the hold": {and(message, waits(5, false)), ""},
		"its message is synthetic":         {and(message, waits(6, true)), ""},
		"the queue moves by itself": {
			and(message, waits(5, true), func(s *session.State) { s.HeldSeq = 0 }), events.FollowMessage,
		},
	} {
		if got := compacted(session.OutcomeCompleted, "", c.change).FollowUp(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAfterAFailedCompaction: it is tried again, or its follow-up is held, or the follow-up continues without it (C8).
func TestAfterAFailedCompaction(t *testing.T) {
	full := func(s *session.State) { s.Policy.ContextLimit, s.Usage = 100, &session.Usage{Used: 100} }
	hold := func(s *session.State) { s.Policy.Resume = events.ResumeHold }
	for name, c := range map[string]struct {
		kind        string
		change      func(*session.State)
		again, held bool
	}{
		"it may pass":                   {kinds.ServerError, func(*session.State) {}, true, false},
		"it will not":                   {kinds.Quota, func(*session.State) {}, false, false},
		"it will not, and nothing fits": {kinds.Quota, full, false, true},
		"and something fits": {
			kinds.Quota, func(s *session.State) { full(s); s.Usage.Used = 99 }, false, false,
		},
		"and the limit is unknown": {
			kinds.Quota, func(s *session.State) { full(s); s.Policy.ContextLimit = 0 }, false, false,
		},
		"and the usage is unknown": {
			kinds.Quota, func(s *session.State) { full(s); s.Usage = nil }, false, false,
		},
		"it will not, after an overflow": {kinds.Quota, overflow, false, true},
		"it may pass, after an overflow": {kinds.ServerError, overflow, true, false},
		"nothing follows it": {
			kinds.ServerError, func(s *session.State) { full(s); s.LastCompaction.FollowUp = "" }, false, false,
		},
		"nothing follows it, by hand": {
			kinds.ServerError,
			func(s *session.State) { s.LastCompaction.FollowUp, s.LastCompaction.Reason = "", events.CompactManual },
			true, false,
		},
		"switched off since": {
			kinds.ServerError, func(s *session.State) { s.Policy.CompactionThreshold = 1 }, false, false,
		},
		"nothing is tried again here": {
			kinds.ServerError, func(s *session.State) { s.Policy.AutoRetry = false }, false, false,
		},
		"often enough": {
			kinds.ServerError, func(s *session.State) { s.Policy.RetryMax = 1 }, false, false,
		},
		"not yet often enough": {
			kinds.ServerError, func(s *session.State) { s.Policy.RetryMax = 2 }, true, false,
		},
		"twenty times": {
			kinds.ServerError, func(s *session.State) { s.LastCompaction.Failures = 20 }, false, false,
		},
		"nineteen times": {
			kinds.ServerError, func(s *session.State) { s.LastCompaction.Failures = 19 }, true, false,
		},
		"another one is under way": {
			kinds.ServerError,
			func(s *session.State) { s.Compaction = &session.Compaction{State: session.CompactionRunning} },
			false, false,
		},
		"its process died":                   {events.ReasonOwnerLost, func(*session.State) {}, true, false},
		"its process died, a person decides": {events.ReasonOwnerLost, hold, false, true},
		"its process left, a person decides": {events.ReasonShutdown, hold, false, true},
		"and has spoken": {
			events.ReasonOwnerLost, func(s *session.State) { hold(s); waits(11, false)(s) }, true, false,
		},
		"and had spoken before": {
			events.ReasonOwnerLost, func(s *session.State) { hold(s); waits(10, false)(s) }, false, true,
		},
		"a failure is no death": {kinds.ServerError, hold, true, false},
		"a message follows, a person decides": {
			events.ReasonOwnerLost, func(s *session.State) { hold(s); message(s); waits(6, false)(s) }, false, false,
		},
	} {
		s := compacted(session.OutcomeFailed, c.kind, c.change)
		if again, held := s.CompactAgain(), s.Held(); again != c.again || held != c.held {
			t.Errorf("%s: again: %v, want %v; held: %v, want %v", name, again, c.again, held, c.held)
		}
	}
	if s := compacted(session.OutcomeCompleted, "", full); s.CompactAgain() || s.Held() {
		t.Error("a compaction that completed is tried again, or held")
	}
}

// overflow: the turn failed because the conversation was too long.
func overflow(s *session.State) {
	s.LastTurn.Outcome, s.LastTurn.Actor, s.LastTurn.Error = session.OutcomeFailed, "",
		&events.Failure{Kind: kinds.ContextExceeded}
}

// TestOverflowed: a conversation that is too long is compaction's to solve, once before there is progress (C11).
func TestOverflowed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*session.State)
		want   bool
	}{
		"for the first time":  {func(s *session.State) { s.LastCompaction = nil }, true},
		"for the second time": {func(s *session.State) { s.LastCompaction, s.Retry.Overflows = nil, 2 }, false},
		"for another reason": {func(s *session.State) {
			s.LastCompaction, s.LastTurn.Error = nil, &events.Failure{Kind: kinds.ServerError}
		}, false},
		"for an unknown reason": {
			func(s *session.State) { s.LastCompaction, s.LastTurn.Error = nil, nil }, false,
		},
		"it is switched off": {
			func(s *session.State) { s.LastCompaction, s.Policy.CompactionThreshold = nil, 1 }, false,
		},
		"a person stopped it": {
			func(s *session.State) { s.LastCompaction, s.LastTurn.Actor = nil, events.ActorPerson }, false,
		},
		"retry has given it up": {
			func(s *session.State) { s.LastCompaction, s.Retry.Turn = nil, "t1" }, false,
		},
		"a turn is asked for": {
			func(s *session.State) { s.LastCompaction, s.Pending.Turn = nil, &session.PendingTurn{} }, false,
		},
		"a turn is open": {
			func(s *session.State) { s.LastCompaction, s.Turn = nil, &session.Turn{ID: "t2"} }, false,
		},
		"it was compacted since": {func(*session.State) {}, true},
		"that failed": {
			func(s *session.State) { s.LastCompaction.Outcome = session.OutcomeFailed }, false,
		},
		"one before had failed": {
			func(s *session.State) { s.LastCompaction.Outcome, s.LastCompaction.Seq = session.OutcomeFailed, 4 }, true,
		},
		"right after one": {func(s *session.State) { s.LastCompaction.Seq = 4 }, false},
		"after one, and progress": {
			func(s *session.State) { s.LastCompaction.Seq, s.LastCompaction.Progress = 4, true }, true,
		},
		"after one that was of use": {
			func(s *session.State) { s.LastCompaction.Seq, s.Usage = 4, &session.Usage{} }, true,
		},
		"after one that was of no use": {
			func(s *session.State) { s.LastCompaction.Seq, s.Usage = 4, &session.Usage{}; useless(s) }, false,
		},
		"after one, with the count of it": {
			func(s *session.State) { s.LastCompaction.Seq, s.Usage, s.Retry.Overflows = 4, &session.Usage{}, 2 }, false,
		},
	} {
		s := compacted(session.OutcomeCompleted, "", func(s *session.State) { overflow(s); c.change(s) })
		if got := s.Overflowed(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// useless: there was as much after the compaction as before it.
func useless(s *session.State) {
	s.Policy.ContextLimit, s.LastCompaction.UsedBefore, s.LastCompaction.UsedLeast = 100, 80, 80
}

// TestStalled: when a compaction was of no use (C9).
func TestStalled(t *testing.T) {
	used := func(before, least int64) func(*session.State) {
		return func(s *session.State) {
			useless(s)
			s.LastCompaction.UsedBefore, s.LastCompaction.UsedLeast = before, least
		}
	}
	for name, c := range map[string]struct {
		change func(*session.State)
		want   bool
	}{
		"nothing was reported since":      {func(*session.State) {}, false},
		"as much as before":               {useless, true},
		"still at the threshold":          {used(100, 70), true},
		"less":                            {used(100, 69), false},
		"hardly less, from the threshold": {used(70, 67), true},
		"less, from the threshold":        {used(70, 66), false},
		"it was little before":            {used(60, 60), false},
		"the limit is unknown":            {func(s *session.State) { useless(s); s.Policy.ContextLimit = 0 }, false},
		"it failed": {
			func(s *session.State) { useless(s); s.LastCompaction.Outcome = session.OutcomeFailed }, false,
		},
		"there was none":                  {func(s *session.State) { s.LastCompaction = nil }, false},
		"the turn after it was too long":  {func(s *session.State) { overflow(s); s.LastTurn.Seq = 11 }, true},
		"the turn before it was too long": {func(s *session.State) { overflow(s); s.LastTurn.Seq = 9 }, false},
		"too long, and there was progress": {
			func(s *session.State) { overflow(s); s.LastTurn.Seq, s.LastCompaction.Progress = 11, true }, false,
		},
		"too long, and usage says otherwise": {
			func(s *session.State) { overflow(s); s.LastTurn.Seq, s.Usage = 11, &session.Usage{} }, false,
		},
	} {
		if got := compacted(session.OutcomeCompleted, "", c.change).Stalled(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhoGoesFirst: compaction, retry or the queue.
func TestWhoGoesFirst(t *testing.T) {
	failed := func(s *session.State) {
		s.LastCompaction, s.LastTurn = nil, &session.LastTurn{ID: "t1", Outcome: session.OutcomeFailed,
			Error: &events.Failure{Kind: kinds.ServerError}, Seq: 5}
	}
	crashed := func(s *session.State) {
		failed(s)
		s.LastTurn.Outcome, s.LastTurn.Error = session.OutcomeInterrupted, nil
	}
	for name, c := range map[string]struct {
		change            func(*session.State)
		compaction, retry bool
	}{
		"a follow-up is owed": {func(*session.State) {}, true, false},
		"one that is held": {func(s *session.State) {
			s.LastCompaction.Outcome, s.LastCompaction.Error = session.OutcomeFailed, &events.Failure{Kind: kinds.Quota}
			overflow(s)
		}, false, true},
		"one is under way": {func(s *session.State) {
			s.LastCompaction = nil
			s.Compaction = &session.Compaction{State: session.CompactionRequested}
		}, true, false},
		"a conversation is too long": {
			func(s *session.State) { s.LastCompaction = nil; overflow(s) }, true, true,
		},
		"a failure is undecided": {failed, false, true},
		"a person stopped what failed": {
			func(s *session.State) { failed(s); s.LastTurn.Actor = events.ActorPerson }, false, false,
		},
		"a failure was given up": {
			func(s *session.State) { failed(s); s.Retry.Turn, s.Retry.State = "t1", session.RetryAbandoned },
			false, false,
		},
		"a retry is scheduled": {
			func(s *session.State) { failed(s); s.Retry.Turn, s.Retry.State = "t1", session.RetryScheduled },
			false, true,
		},
		"a retry is about to start": {
			func(s *session.State) { failed(s); s.Retry.Turn, s.Retry.State = "t1", session.RetryStarting },
			false, true,
		},
		"a crash is undecided":              {crashed, false, true},
		"a person spoke after a crash":      {func(s *session.State) { crashed(s); waits(6, false)(s) }, false, false},
		"a person spoke before a crash":     {func(s *session.State) { crashed(s); waits(5, false)(s) }, false, true},
		"a person spoke after a failure":    {func(s *session.State) { failed(s); waits(6, false)(s) }, false, true},
		"a synthetic message after a crash": {func(s *session.State) { crashed(s); waits(6, true)(s) }, false, true},
	} {
		s := compacted(session.OutcomeCompleted, "", c.change)
		if compaction, retry := s.CompactionFirst(), s.RetryFirst(); compaction != c.compaction || retry != c.retry {
			t.Errorf("%s: compaction: %v, want %v; retry: %v, want %v", name, compaction, c.compaction, retry, c.retry)
		}
	}
}
