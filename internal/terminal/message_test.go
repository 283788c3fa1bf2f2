package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// later is a history with pending work: a failed turn with a retry, messages, a compaction.
func later() []events.Commit {
	x := &history{}
	harness := func(facts ...events.Fact) {
		x.append(events.WriterHarness, events.HarnessSource("agent", "7"), 1, facts...)
	}
	retry := func(facts ...events.Fact) {
		x.append(events.WriterRetry, events.ServiceSource("retry", "x"), 1, facts...)
	}
	compact := func(facts ...events.Fact) {
		x.append(events.WriterCompaction, events.ServiceSource("compaction", "x"), 1, facts...)
	}
	busy := events.Failure{Kind: "rate_limit", Text: "slow\x1b[31m down"}
	harness(
		events.SessionOpened{Incarnation: "7"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage, Message: "m0"},
	)
	harness(events.UsageReported{Turn: "t1", Tokens: events.Tokens{Input: 130_000}, ContextLimit: 200_000})
	compact(events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"and the\nrest"`), By: "ann"})
	compact(events.MessageAccepted{Message: "m2", Ref: "object-1", Synthetic: true})
	harness(events.TurnFailed{Turn: "t1", Error: busy})
	retry(events.RetryScheduled{
		Turn:    "t1",
		Attempt: 2,
		DelayMS: 4000,
		DueAt:   at(9).Add(250 * time.Millisecond),
		Error:   busy,
	})
	retry(events.TurnRequested{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1", Attempt: 2})
	harness(events.TurnStarted{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1", Attempt: 2})
	harness(events.TurnFailed{Turn: "t2", Error: events.Failure{Kind: "quota"}})
	retry(events.RetryAbandoned{Turn: "t2", Attempt: 2, Reason: "quota"})
	compact(events.CompactionRequested{
		Compaction: "k1",
		Reason:     events.CompactManual,
		Used:       130_000,
		Limit:      200_000,
		FollowUp:   events.FollowMessage,
		Message:    "m1",
	})
	harness(events.CompactionStarted{Compaction: "k1"})
	harness(events.CompactionFailed{Compaction: "k1", Error: events.Failure{Kind: "bad_summary"}})
	compact(events.TurnRequested{Turn: "t3", Cause: events.CauseMessage, Message: "m1"})
	return x.commits
}

// A person sees what will happen automatically and when, what will not happen and why, and what to do about it.
func TestWhatIsOwed(t *testing.T) {
	all := later()
	find := func(seq uint64) (*events.Commit, error) { return &all[seq-1], nil }
	s := session.New(all[0].Ref)
	var text strings.Builder
	var before *session.State
	for i := range all {
		s.Fold(&all[i])
		now := s.UpdatedAt.Add(400 * time.Millisecond)
		fmt.Fprintf(&text, "%d  %s  %s  %s\n", s.Seq, s.Phase, usageCell(s).Text, Doing(s, now))
		for _, l := range Changes(before, s, now) {
			text.WriteString("       " + l + "\n")
		}
		before = s.Clone()
	}
	golden(t, "owed", text.String())
	var items []Queued
	for i := range s.Queue {
		q, err := QueuedMessage(s, i, find)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, q)
	}
	golden(t, "queue", Queue(s, items, at(20), Style{}))
	golden(t, "owing", Session(s, nil, at(20), Style{}))
	gone := errors.New("purged")
	if _, err := QueuedMessage(s, 0, func(uint64) (*events.Commit, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("a message whose commit is gone: %v", err)
	}
}

// Every reason that a queue waits for is shown. A state that only a person ends is shown with its reason.
func TestWhyItWaits(t *testing.T) {
	failed := &events.Failure{Kind: "context_exceeded", Text: "too long"}
	for want, s := range map[string]session.State{
		"It waits for an answer to p1.": {
			Prompts: map[string]*session.Prompt{"p1": {Status: session.Awaiting, Blocking: true}}},
		"It waits for the end of turn t1.": {Turn: &session.Turn{ID: "t1"}},
		"It waits for the compaction: running, idle.": {
			Compaction: &session.Compaction{State: session.CompactionRunning, Reason: "idle"},
			Turn:       &session.Turn{ID: "t1"}},
		"It waits for the compaction: held, on-send (context_exceeded: too long).": {
			Compaction: &session.Compaction{State: session.CompactionHeld, Reason: "on-send", Error: failed}},
		"It waits for turn t2 (retry), which the harness has not taken.": {
			Pending: session.Pending{Turn: &session.PendingTurn{ID: "t2", Cause: events.CauseRetry}}},
		"It waits behind a retry: attempt 3 in 16s, due 03:04:16.000.": {
			Retry: session.Retry{State: session.RetryScheduled, Attempt: 3, DueAt: at(16)}},
		"It waits behind a retry: attempt 1 in 16s, due 03:04:16.000 (unknown).": {
			Retry: session.Retry{State: session.RetryScheduled, Attempt: 1, DueAt: at(16), Error: &events.Failure{}}},
		"It is about to be handed out.": {
			LastTurn: &session.LastTurn{Outcome: session.OutcomeCompleted}},
		"A person stopped it after the last turn: it waits for one (`holdfast send` or `holdfast resume`).": {
			LastTurn: &session.LastTurn{Outcome: session.OutcomeCompleted}, HeldSeq: 7},
		"The last turn was interrupted: it waits for a person (`holdfast send`, `holdfast retry now` or `holdfast " +
			"resume`).": {
			LastTurn: &session.LastTurn{Outcome: session.OutcomeInterrupted}},
	} {
		if got := queueWaits(&s, at(0)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for state, want := range map[string]string{session.CompactionHeld: "compaction held: on-send (context_exceeded)",
		session.CompactionStalled: "compaction stalled: on-send (context_exceeded)"} {
		s := session.State{Compaction: &session.Compaction{State: state, Reason: "on-send", Error: failed}}
		if got := Doing(&s, at(0)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Answers that the agent does not take are shown with what a person can do about them.
func TestAnswersNotTaken(t *testing.T) {
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Continuations = session.Continuations{Count: 10, State: session.ContinuationsHeld, Reason: "no_progress"}
	if got := Doing(s, at(0)); got != "answers not taken: no_progress" {
		t.Errorf("%q", got)
	}
	got := Session(s, nil, at(0), Style{})
	for _, want := range []string{"10 turns requested", "`holdfast resume`"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	s.Continuations.State = ""
	if got := Session(s, nil, at(0), Style{}); strings.Contains(got, "turns requested") {
		t.Errorf("nothing is held, and it shows\n%s", got)
	}
}

// The work that a failed compaction holds is shown with what a person can do about it.
func TestHeld(t *testing.T) {
	const resume = "its process was gone while it was compacted; `holdfast resume`"
	for _, x := range []struct{ state, kind, want string }{
		{session.CompactionHeld, events.ReasonOwnerLost, resume},
		{session.CompactionHeld, events.ReasonShutdown, resume},
		{session.CompactionHeld, "quota", "without it the conversation does not fit; `holdfast compact`"},
		{session.CompactionStalled, "no_progress", ""}, {session.CompactionRunning, "", ""},
	} {
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		s.Compaction = &session.Compaction{
			ID:     "k1",
			State:  x.state,
			Reason: "mid-stream",
			Error:  &events.Failure{Kind: x.kind},
		}
		got := Session(s, nil, at(0), Style{})
		if x.want != "" && !strings.Contains(got, x.want) || x.want == "" && strings.Contains(got, "holdfast") {
			t.Errorf("%s, %s: want %q in\n%s", x.state, x.kind, x.want, got)
		}
	}
}

func TestChecks(t *testing.T) {
	for want, c := range map[string]request.Verdict{
		"would be compacted: on-send, the next message is compacted for first\n": {
			Would: true, Reason: events.CompactOnSend},
		"would not be compacted: running, a turn or a compaction runs\n": {Reason: "running"},
		"would not be compacted: of a newer service\n": {
			Reason: "of a newer service"},
		"would not be compacted: below_threshold, there is room (900 of 2000 tokens, 45 %)\n": {
			Reason: "below_threshold", Used: 900, Limit: 2000},
		"would not be compacted: no_limit, how much fits is not known (`holdfast configure S " +
			"context_limit=200000`) (900 tokens)\n": {Reason: "no_limit", Used: 900},
		"would not be compacted: not_idle_long_enough, it has not been idle for long enough; it will have been in " +
			"7s\n": {Reason: "not_idle_long_enough", At: at(7)},
		"would not be compacted: –\n": {},
	} {
		if got := Check("", c, at(0), Style{}); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

func TestCountdown(t *testing.T) {
	for left, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", time.Millisecond: "1s",
		3999 * time.Millisecond: "4s", time.Minute: "1m00s"} {
		if got := countdown(at(0).Add(left), at(0)); got != want {
			t.Errorf("%s: %s, want %s", left, got, want)
		}
	}
}
