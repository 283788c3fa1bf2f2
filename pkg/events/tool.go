package events

import "encoding/json"

// OutcomeUnknown is the outcome of an interrupted call: it may or may not have taken effect.
const OutcomeUnknown = "unknown"

// ToolStarted says a call was passed to its tool. From here until a terminal fact the call may have taken effect, so
// recovery reports its outcome as unknown and never repeats it.
type ToolStarted struct {
	Call       string          `json:"call"`
	Turn       string          `json:"turn"`
	Name       string          `json:"name"`
	Title      string          `json:"title,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Background bool            `json:"background,omitempty"` // outlives its turn
}

// Kind implements [Fact].
func (ToolStarted) Kind() Kind { return "tool.started" }

// Subject implements [Fact].
func (f ToolStarted) Subject() string { return f.Call }

// Validate implements [Fact].
func (f ToolStarted) Validate() error { return first(needID("call", f.Call), mayID("turn", f.Turn)) }

// ToolCompleted is a call's result. Synthetic: written for the harness, from an answer that reached the log.
type ToolCompleted struct {
	Call      string          `json:"call"`
	Output    json.RawMessage `json:"output,omitempty"`
	Synthetic bool            `json:"synthetic,omitempty"`
}

// Kind implements [Fact].
func (ToolCompleted) Kind() Kind { return "tool.completed" }

// Subject implements [Fact].
func (f ToolCompleted) Subject() string { return f.Call }

// Validate implements [Fact].
func (f ToolCompleted) Validate() error { return needID("call", f.Call) }

// ToolFailed is a call's error.
type ToolFailed struct {
	Call      string  `json:"call"`
	Error     Failure `json:"error"`
	Synthetic bool    `json:"synthetic,omitempty"`
}

// Kind implements [Fact].
func (ToolFailed) Kind() Kind { return "tool.failed" }

// Subject implements [Fact].
func (f ToolFailed) Subject() string { return f.Call }

// Validate implements [Fact].
func (f ToolFailed) Validate() error { return needID("call", f.Call) }

// ToolInterrupted closes a call whose process died.
type ToolInterrupted struct {
	Call    string `json:"call"`
	Reason  string `json:"reason"`
	Outcome string `json:"outcome"` // always unknown
}

// Kind implements [Fact].
func (ToolInterrupted) Kind() Kind { return "tool.interrupted" }

// Subject implements [Fact].
func (f ToolInterrupted) Subject() string { return f.Call }

// Validate implements [Fact].
func (f ToolInterrupted) Validate() error { return needID("call", f.Call) }
