package session_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Few ids of each sort, so that they meet; together fewer than are kept among the endings.
const (
	turnIDs, callIDs, promptIDs, messageIDs, compactionIDs = 9, 10, 10, 8, 4
	commitsMax, factsMax                                   = 90, 5
)

// pick draws an id. A session whose model is longLived moves on to other ids after a while, so that more ends than is
// kept.
func pick(t *rapid.T, s *session.State, prefix string, n int) string {
	block := 0
	if s.Model == longLived {
		block = int(s.Commits/8) % 3
	}
	return fmt.Sprintf("%s%d", prefix, block*n+below(t, prefix, n))
}

const longLived = "long-lived"

// below is a number from 0 to n-1, each as likely as the others: rapid prefers small ones, which would make histories
// short and mostly unlawful.
func below(t *rapid.T, label string, n int) int {
	v := rapid.Uint64().Draw(t, label)
	v ^= v >> 31
	v *= 0x9E3779B97F4A7C15
	v ^= v >> 29
	v *= 0xBF58476D1CE4E5B9
	return int((v ^ v>>32) % uint64(n))
}

func oneOf[T any](t *rapid.T, label string, vs ...T) T { return vs[below(t, label, len(vs))] }

func chance(t *rapid.T, label string, percent int) bool { return below(t, label, 100) >= 100-percent }

// openOr is mostly something that is open, else any id.
func openOr(t *rapid.T, s *session.State, prefix string, n int, open []string) string {
	if len(open) > 0 && chance(t, "open", 85) {
		return oneOf(t, prefix, open...)
	}
	return pick(t, s, prefix, n)
}

func openTurn(t *rapid.T, s *session.State) string {
	if s.Turn != nil && chance(t, "open turn", 90) {
		return s.Turn.ID
	}
	return pick(t, s, "t", turnIDs)
}

func openCall(t *rapid.T, s *session.State) string {
	return openOr(t, s, "c", callIDs, keys(s.Tools))
}

func openPrompt(t *rapid.T, s *session.State) string {
	return openOr(t, s, "p", promptIDs, keys(s.Prompts))
}

func keys[V any](m map[string]V) []string {
	var ids []string
	for id := range m {
		ids = append(ids, id)
	}
	// rapid wants a fixed order
	slices.Sort(ids)
	return ids
}

func failure(t *rapid.T) events.Failure {
	kind := oneOf(t, "failure", "rate_limit", "server_error", "server_error", "quota", "context_exceeded")
	return events.Failure{Kind: kind, Text: "x"}
}

// ownerFact are facts about a session's life.
func ownerFact(t *rapid.T, s *session.State) events.Fact {
	incarnation := fmt.Sprint(15 + below(t, "incarnation", 11))
	switch below(t, "life", 10) {
	case 0:
		return events.SessionOpened{Incarnation: incarnation}
	case 1, 2, 3:
		return events.SessionClaimed{Incarnation: incarnation, Exclusive: new(chance(t, "exclusive", 80))}
	case 4, 5, 6:
		f := events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: s.Incarnation}
		if chance(t, "held", 40) {
			f.WaitsFor = []events.WaitFor{{Call: openCall(t, s), Child: "s2"}, {Call: openCall(t, s), Child: "s3"}}
		}
		f.Incarnation = cmp.Or(f.Incarnation, "17")
		return f
	case 7:
		return events.SessionReleased{}
	case 8:
		return events.SessionConfigured{Policy: policy(t), ProviderChanged: chance(t, "provider", 30)}
	default:
		if chance(t, "close", 10) {
			return events.SessionClosed{Reason: "finished"}
		}
		used := events.Tokens{Input: oneOf(t, "used", int64(5), 8, 10, 12)}
		return events.UsageReported{Turn: openTurn(t, s), Tokens: used, ContextLimit: 10}
	}
}

// policy changes one setting.
func policy(t *rapid.T) *events.PolicyPatch {
	switch below(t, "setting", 7) {
	case 0, 1:
		return &events.PolicyPatch{Resume: events.Set(oneOf(t, "resume", "auto", "hold"))}
	case 2:
		return &events.PolicyPatch{AutoRetry: events.Set(chance(t, "auto retry", 50))}
	case 3:
		return &events.PolicyPatch{RetryMax: events.Set(oneOf(t, "retry max", 0, 1, 3))}
	case 4:
		return &events.PolicyPatch{CompactionThreshold: events.Set(oneOf(t, "threshold", 0.5, 0.7, 1))}
	case 5:
		return &events.PolicyPatch{StallAfterS: events.Set(oneOf(t, "stall", int64(0), 1, 60))}
	default:
		return &events.PolicyPatch{IdleCompactionAfterS: events.Set(oneOf(t, "idle", int64(1), 30, 3600))}
	}
}

// turns are facts about turns, messages, retries and compactions.
func turns(t *rapid.T, s *session.State) events.Fact {
	turn, message := openTurn(t, s), pick(t, s, "m", messageIDs)
	last := turn
	if s.LastTurn != nil && chance(t, "last", 70) {
		last = s.LastTurn.ID
	}
	compaction := pick(t, s, "k", compactionIDs)
	if s.Compaction != nil && chance(t, "open compaction", 70) {
		compaction = s.Compaction.ID
	}
	cause := oneOf(t, "cause", events.CauseMessage, events.CauseFollowUp, events.CauseRetry, events.CauseResume,
		events.CauseAnswer)
	switch below(t, "turn fact", 20) {
	case 0, 1, 2, 3, 4:
		f := events.TurnStarted{Turn: pick(t, s, "t", turnIDs), Cause: cause, Synthetic: chance(t, "synthetic", 60),
			OfTurn: oneOf(t, "of", "", turn)}
		if s.Pending.Turn != nil && chance(t, "take", 60) {
			f.Turn = s.Pending.Turn.ID
		}
		if chance(t, "with message", 40) {
			f.Message = message
		}
		f.Prompt = oneOf(t, "with prompt", "", openPrompt(t, s))
		return f
	case 5, 6:
		return events.TurnCompleted{Turn: turn}
	case 7:
		return events.TurnFailed{Turn: turn, Error: failure(t)}
	case 8:
		return events.TurnInterrupted{Turn: turn, Reason: events.ReasonOwnerLost}
	case 9:
		return events.TurnStopped{Turn: turn, Actor: events.ActorPerson}
	case 10:
		f := events.TurnStopRequested{Turn: oneOf(t, "stop what", turn, last),
			Actor: oneOf(t, "actor", events.ActorPerson, events.ActorCompaction)}
		if s.Pending.Turn != nil && chance(t, "stop pending", 50) {
			f.Turn = s.Pending.Turn.ID
		}
		return f
	case 11, 12:
		return events.TurnRequested{Turn: pick(t, s, "t", turnIDs), Cause: cause}
	case 13:
		return events.RetryScheduled{Turn: last, Attempt: 1, DueAt: storyBegin.Add(oneOf(t, "due", 0, time.Hour)),
			Error: failure(t)}
	case 14:
		return events.RetryAbandoned{Turn: last, Attempt: 1, Reason: oneOf(t, "why", "quota", "cancelled")}
	case 15, 16:
		return events.MessageAccepted{Message: message, Content: json.RawMessage(`"x"`),
			Synthetic: chance(t, "synthetic", 50)}
	case 17:
		return oneOf[events.Fact](t, "message or compaction", events.MessageWithdrawn{Message: message},
			events.CompactionStarted{Compaction: compaction})
	case 18:
		return events.CompactionRequested{Compaction: compaction, Reason: oneOf(t, "why", "idle", "mid-stream")}
	default:
		return oneOf[events.Fact](t, "compacted", events.CompactionCompleted{Compaction: compaction},
			events.CompactionFailed{Compaction: compaction, Error: failure(t)})
	}
}

// asks are facts about calls and prompts.
func asks(t *rapid.T, s *session.State) events.Fact {
	switch below(t, "ask", 18) {
	case 0, 1, 2:
		return events.ToolStarted{Call: pick(t, s, "c", callIDs), Turn: oneOf(t, "of", "", openTurn(t, s)),
			Name: "bash", Background: chance(t, "background", 20)}
	case 3:
		return events.ToolCompleted{Call: openCall(t, s)}
	case 4:
		return events.ToolFailed{Call: openCall(t, s), Error: failure(t), Synthetic: true}
	case 5:
		return events.ToolInterrupted{Call: openCall(t, s), Reason: events.ReasonOwnerLost}
	case 6, 7, 8, 9:
		return events.PromptRequested{Prompt: pick(t, s, "p", promptIDs),
			Deadline: oneOf(t, "deadline", time.Time{}, storyBegin.Add(time.Hour)),
			Turn:     oneOf(t, "of turn", "", openTurn(t, s)), Call: oneOf(t, "of call", "", openCall(t, s)),
			PromptKind: oneOf(t, "kind", events.PromptQuestion, "note"), Blocking: new(chance(t, "blocking", 70)),
			Title:    oneOf(t, "title", "a", "b"),
			Delivery: oneOf(t, "delivery", events.DeliverToolResult, events.DeliverCallback, events.DeliverMessage)}
	case 10:
		return events.PromptAnswered{Prompt: openPrompt(t, s),
			Answers: []events.Answer{{Question: "q", Text: oneOf(t, "answer", "x", "y")}}, By: "ada"}
	case 11:
		return events.PromptRejected{Prompt: openPrompt(t, s), Text: oneOf(t, "text", "", "no"), By: "ada"}
	case 12:
		return events.PromptDismissed{Prompt: openPrompt(t, s), By: "ada"}
	case 13:
		return events.PromptWithdrawn{Prompt: openPrompt(t, s), Reason: events.ReasonShutdown}
	case 14:
		return events.PromptSuperseded{Prompt: openPrompt(t, s), Message: "m1"}
	case 15:
		return events.PromptExpired{Prompt: openPrompt(t, s),
			Reason: oneOf(t, "why", events.ReasonOwnerLost, events.ReasonDeadline)}
	default:
		return events.PromptDelivered{Prompt: openPrompt(t, s), Refused: oneOf(t, "refused", "", "", "unknown")}
	}
}

// history draws commits as several processes and services would write them, and as they should not.
func history(t *rapid.T, model string) []*events.Commit {
	s := session.New(storyRef)
	var log []*events.Commit
	at, seq := storyBegin, uint64(0)
	for range 1 + below(t, "commits", commitsMax) + below(t, "more", commitsMax) {
		seq += uint64(1 + below(t, "step", 3))
		at = at.Add(time.Second)
		c := &events.Commit{Ref: storyRef, Seq: seq, Guard: s.Seq, Guarded: true, At: at}
		if s.Seq == 0 {
			c.Guard = 0
		}
		body := commitBody(t, s, c, model)
		c.Events, c.Err = events.DecodeBatch(storyRef, body)
		s.Fold(c)
		log = append(log, c)
	}
	return log
}

// newer is an incarnation that may take the session over.
func newer(s *session.State) string {
	for n := 1; ; n++ {
		if incarnation := strconv.Itoa(n); s.Claimable(incarnation) || n > 99 {
			return incarnation
		}
	}
}

func commitBody(t *rapid.T, s *session.State, c *events.Commit, model string) []byte {
	if chance(t, "garbage", 2) {
		c.Writer = events.WriterHarness
		return []byte(oneOf(t, "body", "no json", "[]", "[42]", `[{"specversion":"1.0"}]`))
	}
	var evs []events.Event
	epoch, incarnation := max(s.Epoch, 1), cmp.Or(s.Incarnation, "17")
	for i := range 1 + below(t, "facts", factsMax) {
		var f events.Fact
		switch {
		case s.Epoch == 0 && i == 0 && chance(t, "open", 80):
			f = events.SessionOpened{Incarnation: incarnation, Model: model}
		case s.Epoch > 0 && !s.Owned && i == 0 && chance(t, "claim", 40):
			f = events.SessionClaimed{Incarnation: newer(s)}
		default:
			f = oneOf(t, "family", ownerFact, turns, turns, turns, turns, asks, asks, asks, asks, asks)(t, s)
		}
		if c.Writer == "" {
			c.Writer = oneOf(t, "writer", events.Lookup(f.Kind()).By...)
		}
		switch claim := f.(type) {
		case events.SessionClaimed:
			epoch, incarnation = epoch+1, claim.Incarnation
		case events.SessionOpened:
			incarnation = claim.Incarnation
		}
		e, inc := epoch, incarnation
		if chance(t, "wrong epoch", 4) {
			e = uint64(rapid.IntRange(1, int(epoch)+2).Draw(t, "epoch"))
		}
		if chance(t, "wrong source", 4) {
			inc = fmt.Sprint(15 + below(t, "source", 11))
		}
		source := events.ServiceSource(string(c.Writer), "a")
		if c.Writer == events.WriterHarness {
			source = events.HarnessSource(storyRef.Harness, inc)
		}
		ev := events.New(fmt.Sprintf("e%d-%d", c.Seq, i), source, storyRef, e, c.At, f)
		if chance(t, "unknown kind", 2) {
			ev.Kind, ev.Fact, ev.Data = "turn.bent", nil, json.RawMessage(`{"a":1}`)
		}
		evs = append(evs, ev)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		t.Fatalf("what was drawn cannot travel: %v", err)
	}
	return body
}

// again folds a session through stored documents, with redeliveries.
func foldInParts(t *rapid.T, log []*events.Commit) *session.State {
	s := session.New(storyRef)
	for i, c := range log {
		s.Fold(c)
		if chance(t, "store", 30) {
			again, err := session.Decode(encoded(t, s))
			if err != nil {
				t.Fatal(err)
			}
			s = again
		}
		if chance(t, "clone", 10) {
			s = s.Clone()
		}
		if chance(t, "redeliver", 30) && s.Fold(log[below(t, "which", i+1)]).Folded {
			t.Fatalf("a commit was folded twice")
		}
	}
	return s
}

// TestHistories: what holds of every history, lawful or not (P1, V1, V4, V5).
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := history(t, "")
		h := &replay{t: t, s: session.New(storyRef), src: sourceOf(log), ended: map[string]string{}}
		for _, c := range log {
			h.next(c)
		}
		if a, b := string(encoded(t, h.s)), string(encoded(t, foldInParts(t, log))); a != b {
			t.Fatalf("folded in parts\n%s\nfolded at once\n%s", b, a)
		}
	})
}

// TestLongHistories: what holds of sessions in which more ends than is kept, so that ids open again (P1, V5).
func TestLongHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := history(t, longLived)
		h := &replay{t: t, s: session.New(storyRef), src: sourceOf(log)}
		for _, c := range log {
			before := h.s.Clone()
			h.s.Fold(c)
			h.pending()
			h.changed(before)
		}
		if a, b := string(encoded(t, h.s)), string(encoded(t, foldInParts(t, log))); a != b {
			t.Fatalf("folded in parts\n%s\nfolded at once\n%s", b, a)
		}
	})
}

func sourceOf(log []*events.Commit) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		for _, c := range log {
			if c.Seq == seq {
				return c, nil
			}
		}
		return nil, fmt.Errorf("commit %d is not there", seq)
	}
}
