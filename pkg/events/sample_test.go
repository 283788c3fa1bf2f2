package events_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

var (
	ref = events.Ref{Harness: "laptop", Session: "ses_1"}
	at  = time.Date(2026, 11, 20, 12, 30, 0, 5000000, time.UTC)
)

func ptr[T any](v T) *T { return &v }

// samples returns one fact of every kind, in the order of the contract, with every field set.
func samples() []events.Fact {
	patch := &events.PolicyPatch{
		AutoRetry:            events.Set(false),
		RetryMax:             events.Set(3),
		Resume:               events.Set(events.ResumeHold),
		ResumeMax:            events.Unset[int](),
		CompactionThreshold:  events.Set(0.5),
		ContextLimit:         events.Set[int64](1000),
		IdleCompactionAfterS: events.Set[int64](60),
		StallAfterS:          events.Unset[int64](),
	}
	question := events.Question{
		ID:       "q",
		Header:   "h",
		Question: "Sure?",
		Options:  []events.Option{{Label: "yes", Description: "d"}},
		Multi:    true,
		Custom:   true,
	}
	failure := events.Failure{Kind: "rate_limit", Text: "slow down", Status: 429, RetryAfterMS: 1500}
	raw := json.RawMessage(`{"a":[1,"<&>",null]}`)
	return []events.Fact{
		events.SessionOpened{
			Incarnation:  "17",
			Exclusive:    ptr(false),
			Parent:       "ses_0",
			ParentCall:   "c0",
			Root:         "ses_0",
			Title:        "t",
			Agent:        "build",
			Model:        "m",
			ContextLimit: 200000,
			Policy:       patch,
			Native:       raw,
		},
		events.SessionClaimed{Incarnation: "18", Exclusive: ptr(true)},
		events.SessionConfigured{Policy: patch, ProviderChanged: true, By: "ada"},
		events.SessionReleased{Reason: "bye"},
		events.SessionOrphaned{
			Reason:       events.ReasonOwnerLost,
			Incarnation:  "17",
			SupersededBy: "18",
			Detail:       "exit status 1",
			WaitsFor:     []events.WaitFor{{Call: "c1", Child: "ses_2"}},
		},
		events.SessionClosed{Reason: "finished", By: "ada"},
		events.MessageAccepted{Message: "m1", Content: raw, Ref: "obj", Synthetic: true, By: "ada"},
		events.MessageWithdrawn{Message: "m1", By: "ada"},
		events.TurnRequested{
			Turn:       "t2",
			Cause:      events.CauseRetry,
			OfTurn:     "t1",
			Message:    "m1",
			Attempt:    2,
			Options:    raw,
			Compaction: "k1",
			Prompt:     "p1",
			Prompts:    []string{"p1"},
		},
		events.TurnStarted{
			Turn:      "t2",
			Cause:     events.CauseMessage,
			Synthetic: true,
			OfTurn:    "t1",
			Message:   "m1",
			Prompt:    "p1",
			Prompts:   []string{"p1"},
			Attempt:   2,
			Options:   raw,
		},
		events.TurnCompleted{Turn: "t2", Finish: "stop"},
		events.TurnFailed{Turn: "t2", Error: failure, HadOutput: true},
		events.TurnStopRequested{Turn: "t2", Actor: events.ActorPerson, By: "ada", Reason: "r"},
		events.TurnStopped{Turn: "t2", Actor: events.ActorStall, Reason: "r"},
		events.TurnInterrupted{Turn: "t2", Reason: events.ReasonOwnerLost},
		events.ToolStarted{Call: "c1", Turn: "t2", Name: "bash", Title: "ls", Input: raw, Background: true},
		events.ToolCompleted{Call: "c1", Output: raw, Synthetic: true},
		events.ToolFailed{Call: "c1", Error: failure, Synthetic: true},
		events.ToolInterrupted{Call: "c1", Reason: events.ReasonOwnerLost, Outcome: events.OutcomeUnknown},
		events.PromptRequested{
			Prompt:      "p1",
			Turn:        "t2",
			Call:        "c1",
			PromptKind:  events.PromptQuestion,
			Title:       "t",
			Questions:   []events.Question{question},
			Delivery:    events.DeliverToolResult,
			OnOwnerLoss: events.LossKeep,
			Blocking:    ptr(false),
			Deadline:    at,
			Native:      raw,
		},
		events.PromptAnswered{
			Prompt:  "p1",
			Answers: []events.Answer{{Question: "q", Selected: []string{"yes"}, Text: "x"}},
			By:      "ada",
			Owed:    true,
		},
		events.PromptRejected{Prompt: "p1", Text: "no", By: "ada", Owed: true},
		events.PromptDismissed{Prompt: "p1", By: "ada"},
		events.PromptWithdrawn{Prompt: "p1", Reason: events.ReasonShutdown},
		events.PromptSuperseded{Prompt: "p1", Message: "m1"},
		events.PromptExpired{Prompt: "p1", Reason: events.ReasonDeadline},
		events.PromptUnattended{Prompt: "p1"},
		events.PromptAttended{Prompt: "p1"},
		events.PromptDelivered{Prompt: "p1", Refused: "unknown request"},
		events.UsageReported{
			Turn:                "t2",
			Model:               "m",
			Tokens:              events.Tokens{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5},
			InputIncludesCached: true,
			ContextLimit:        6,
		},
		events.RetryScheduled{Turn: "t2", Attempt: 1, DelayMS: 2000, DueAt: at, Error: failure},
		events.RetryAbandoned{Turn: "t2", Attempt: 1, Reason: "cancelled"},
		events.CompactionRequested{
			Compaction: "k1",
			Reason:     events.CompactIdle,
			Used:       7,
			Limit:      10,
			FollowUp:   events.FollowMessage,
			Message:    "m1",
		},
		events.CompactionStarted{Compaction: "k1"},
		events.CompactionCompleted{Compaction: "k1", UsedAfter: 2},
		events.CompactionFailed{Compaction: "k1", Error: failure},
	}
}

func source() string { return events.HarnessSource(ref.Harness, "17") }

// sampleEvents returns the samples in their envelopes.
func sampleEvents() []events.Event {
	var evs []events.Event
	for _, f := range samples() {
		evs = append(evs, events.New("id-"+string(f.Kind()), source(), ref, 3, at, f))
	}
	return evs
}

func encode(t testing.TB, evs ...events.Event) []byte {
	t.Helper()
	body, err := events.EncodeBatch(evs)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return body
}

func decode(t testing.TB, body []byte) []events.Event {
	t.Helper()
	evs, err := events.DecodeBatch(ref, body)
	if err != nil {
		t.Fatalf("decode %.300s: %v", body, err)
	}
	return evs
}

// raw returns the body of a commit of one event: a valid tool.started with other attributes; nil removes one.
func raw(t testing.TB, override map[string]any) []byte {
	t.Helper()
	attributes := map[string]any{
		"specversion": "1.0", "id": "e1", "source": source(), "type": "holdfast.tool.started", "subject": "c1",
		"time": "2026-11-20T12:30:00Z", "datacontenttype": "application/json", "session": ref.Session, "epoch": 3,
		"data": map[string]any{"call": "c1", "turn": "t1", "name": "bash"},
	}
	for name, value := range override {
		if attributes[name] = value; value == nil {
			delete(attributes, name)
		}
	}
	body, err := json.Marshal([]any{attributes})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
