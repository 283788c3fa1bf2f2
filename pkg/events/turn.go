package events

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// OptionsBytesMax is the maximum size of a turn's options, in bytes of JSON.
const OptionsBytesMax = 16 << 10

// PromptsNamedMax is the maximum number of prompts that one turn names.
const PromptsNamedMax = 128

// Cause is the reason for a turn.
type Cause string

// Causes of turns.
const (
	CauseMessage  Cause = "message"
	CauseFollowUp Cause = "follow-up"
	CauseRetry    Cause = "retry"
	CauseResume   Cause = "resume"
	CauseAnswer   Cause = "answer"
)

// Actors of a stop.
const (
	ActorPerson     = "person"
	ActorCompaction = "compaction"
	ActorStall      = "stall"
)

// Failure is an error of a turn or a compaction: a kind for the rules, and a text for people.
type Failure struct {
	Kind         string `json:"kind"`
	Text         string `json:"text"`
	Status       int    `json:"status,omitempty"`         // HTTP status of the provider
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"` // the delay that the provider asks for, milliseconds
}

// UnmarshalJSON accepts any JSON for an error, so that a failed turn always ends. A string, or any other JSON than an
// object, becomes the text. A field of another type is converted as far as possible.
func (f *Failure) UnmarshalJSON(raw []byte) error {
	// no recursion
	type plain Failure
	*f = Failure{}
	if json.Unmarshal(raw, (*plain)(f)) == nil {
		return nil
	}
	var v struct {
		Kind         json.RawMessage `json:"kind"`
		Text         json.RawMessage `json:"text"`
		Status       json.RawMessage `json:"status"`
		RetryAfterMS json.RawMessage `json:"retry_after_ms"`
	}
	if json.Unmarshal(raw, &v) != nil {
		*f = Failure{Text: asText(raw)}
		return nil
	}
	*f = Failure{
		Kind:         asText(v.Kind),
		Text:         asText(v.Text),
		Status:       int(asNumber(v.Status)),
		RetryAfterMS: asNumber(v.RetryAfterMS),
	}
	return nil
}

// asText returns the value of a JSON string, else the JSON itself.
func asText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// asNumber returns the nearest whole number, 0 for JSON that is not a number.
func asNumber(raw json.RawMessage) int64 {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return int64(max(-wholeMax, min(n, wholeMax)))
}

// TurnRequested is pending work: a harness shall start this turn.
type TurnRequested struct {
	Turn       string          `json:"turn"`
	Cause      Cause           `json:"cause"`
	OfTurn     string          `json:"of_turn,omitempty"` // the turn that it retries or continues
	Message    string          `json:"message,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Options    json.RawMessage `json:"options,omitempty"` // of the turn it repeats, opaque
	Compaction string          `json:"compaction,omitempty"`
	// one of Prompts: the decision that caused the turn, else the first
	Prompt string `json:"prompt,omitempty"`
	// the settled prompts that it delivers, at most [PromptsNamedMax]
	Prompts []string `json:"prompts,omitempty"`
}

// Kind implements [Fact].
func (TurnRequested) Kind() Kind { return "turn.requested" }

// Subject implements [Fact].
func (f TurnRequested) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnRequested) Validate() error {
	return first(needID("turn", f.Turn), mayID("of_turn", f.OfTurn), mayID("message", f.Message),
		mayID("compaction", f.Compaction), mayID("prompt", f.Prompt), promptsFit(f.Prompts), optionsFit(f.Options))
}

// TurnStarted says the harness works on a turn. Options are opaque; a retry repeats them.
type TurnStarted struct {
	Turn      string          `json:"turn"`
	Cause     Cause           `json:"cause"`
	Synthetic bool            `json:"synthetic"`         // not caused by a person
	OfTurn    string          `json:"of_turn,omitempty"` // if open, it ends as continued
	Message   string          `json:"message,omitempty"` // taken out of the queue
	Prompt    string          `json:"prompt,omitempty"`  // one of Prompts, as it was requested
	Prompts   []string        `json:"prompts,omitempty"` // the settled prompts that it has; delivered when it completes
	Attempt   int             `json:"attempt,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"`
}

// Kind implements [Fact].
func (TurnStarted) Kind() Kind { return "turn.started" }

// Subject implements [Fact].
func (f TurnStarted) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnStarted) Validate() error {
	return first(
		needID("turn", f.Turn),
		mayID("of_turn", f.OfTurn),
		mayID("message", f.Message),
		mayID("prompt", f.Prompt),
		promptsFit(f.Prompts),
		optionsFit(f.Options),
	)
}

// TurnCompleted says the turn is complete.
type TurnCompleted struct {
	Turn   string `json:"turn"`
	Finish string `json:"finish,omitempty"` // the provider's finish reason
}

// Kind implements [Fact].
func (TurnCompleted) Kind() Kind { return "turn.completed" }

// Subject implements [Fact].
func (f TurnCompleted) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnCompleted) Validate() error { return needID("turn", f.Turn) }

// TurnFailed says the turn ended in an error.
type TurnFailed struct {
	Turn      string  `json:"turn"`
	Error     Failure `json:"error"`
	HadOutput bool    `json:"had_output"`
}

// Kind implements [Fact].
func (TurnFailed) Kind() Kind { return "turn.failed" }

// Subject implements [Fact].
func (f TurnFailed) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnFailed) Validate() error { return needID("turn", f.Turn) }

// TurnStopRequested is pending work: the harness shall stop this turn and append [TurnStopped].
type TurnStopRequested struct {
	Turn   string `json:"turn"`
	Actor  string `json:"actor"` // person, compaction, stall
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Kind implements [Fact].
func (TurnStopRequested) Kind() Kind { return "turn.stop_requested" }

// Subject implements [Fact].
func (f TurnStopRequested) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnStopRequested) Validate() error { return needID("turn", f.Turn) }

// TurnStopped says the turn was stopped. For a turn that has ended already it is the receipt of the request.
type TurnStopped struct {
	Turn   string `json:"turn"`
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// Kind implements [Fact].
func (TurnStopped) Kind() Kind { return "turn.stopped" }

// Subject implements [Fact].
func (f TurnStopped) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnStopped) Validate() error { return needID("turn", f.Turn) }

// TurnInterrupted says the turn's process died.
type TurnInterrupted struct {
	Turn   string `json:"turn"`
	Reason string `json:"reason"`
}

// Kind implements [Fact].
func (TurnInterrupted) Kind() Kind { return "turn.interrupted" }

// Subject implements [Fact].
func (f TurnInterrupted) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f TurnInterrupted) Validate() error { return needID("turn", f.Turn) }

// RetryScheduled says that a failed turn will be retried. DueAt is the broker's time of the failure + DelayMS.
type RetryScheduled struct {
	Turn    string    `json:"turn"`
	Attempt int       `json:"attempt"` // counted from 1
	DelayMS int64     `json:"delay_ms"`
	DueAt   time.Time `json:"due_at"`
	Error   Failure   `json:"error"`
}

// Kind implements [Fact].
func (RetryScheduled) Kind() Kind { return "retry.scheduled" }

// Subject implements [Fact].
func (f RetryScheduled) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f RetryScheduled) Validate() error { return needID("turn", f.Turn) }

// RetryAbandoned says that a failed turn will not be retried automatically.
type RetryAbandoned struct {
	Turn    string `json:"turn"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
}

// Kind implements [Fact].
func (RetryAbandoned) Kind() Kind { return "retry.abandoned" }

// Subject implements [Fact].
func (f RetryAbandoned) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f RetryAbandoned) Validate() error { return needID("turn", f.Turn) }

func promptsFit(ids []string) error {
	if len(ids) > PromptsNamedMax {
		return bad("prompts", "%d prompts: at most %d are allowed", len(ids), PromptsNamedMax)
	}
	for _, id := range ids {
		if err := needID("prompts", id); err != nil {
			return err
		}
	}
	return nil
}

func optionsFit(raw json.RawMessage) error {
	if len(raw) > OptionsBytesMax {
		return bad("options", "%d bytes: at most %d are allowed", len(raw), OptionsBytesMax)
	}
	return nil
}
