package sidecar

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Nothing is an object without fields.
type Nothing struct{}

// Connect says who the agent is. The flags of the command say where its cell is.
type Connect struct {
	ID          string `json:"id"`                      // of the harness; it outlives restarts
	Pool        bool   `json:"pool,omitempty"`          // several processes of this id live at once
	TTLMS       int64  `json:"ttl_ms,omitempty"`        // of the lease, in milliseconds; default 15000, at least 1000
	OnLeaseLoss string `json:"on_lease_loss,omitempty"` // ride_out (default), restart or stop
	Host        string `json:"host,omitempty"`          // for people; default: the name of the machine
	Version     string `json:"version,omitempty"`       // of the agent, for people
}

// Connected is the harness of the connection.
type Connected struct {
	Protocol    int    `json:"protocol"`    // version of these methods
	Incarnation string `json:"incarnation"` // number of this process
}

// Open says what a session is, when it is opened.
type Open struct {
	Session      string              `json:"session"`
	Title        string              `json:"title,omitempty"`
	Agent        string              `json:"agent,omitempty"`
	Model        string              `json:"model,omitempty"`
	ContextLimit int64               `json:"context_limit,omitempty"` // tokens
	Parent       string              `json:"parent,omitempty"`        // the session that this one works for
	ParentCall   string              `json:"parent_call,omitempty"`   // the parent's call that waits for it
	Root         string              `json:"root,omitempty"`          // the outermost session; required with parent
	Policy       *events.PolicyPatch `json:"policy,omitempty"`
	Native       json.RawMessage     `json:"native,omitempty"` // opaque
}

// Claim names the open items of an earlier process that this process continues.
type Claim struct {
	Session string   `json:"session"`
	Prompts []Prompt `json:"prompts,omitempty"`  // ask them again under the same id
	Calls   []string `json:"calls,omitempty"`    // that go on
	Turn    bool     `json:"turn,omitempty"`     // the open turn continues
	ForWork bool     `json:"for_work,omitempty"` // work runs the turn
}

// SessionID names a session that this process has.
type SessionID struct {
	Session string `json:"session"`
}

// State is the document of a session.
type State struct {
	State *session.State `json:"state"`
}

// Sessions are the documents of the harness.
type Sessions struct {
	Sessions   []*session.State `json:"sessions"`
	Unreadable []Unreadable     `json:"unreadable,omitempty"`
}

// Unreadable is a document that this build cannot read.
type Unreadable struct {
	Session string `json:"session"`
	Message string `json:"message"` // why
}

// Work says what the sidecar asks the agent to do.
type Work struct {
	TurnsMax int  `json:"turns_max,omitempty"` // at once, without those that wait in ask; default 16
	Options  bool `json:"options,omitempty"`   // ask for the options of turns that have none
	Compact  bool `json:"compact,omitempty"`   // ask for compactions; else each fails as runtime_not_ready
}

// Message is user input for a session.
type Message struct {
	Session   string          `json:"session"`
	Harness   string          `json:"harness,omitempty"` // default: this one
	ID        string          `json:"id,omitempty"`      // default: a new one. The same id is taken once
	Content   json.RawMessage `json:"content"`
	By        string          `json:"by,omitempty"`        // default: this harness
	Synthetic bool            `json:"synthetic,omitempty"` // not from a person
}

// MessageID names a message that is stored.
type MessageID struct {
	ID string `json:"id"`
}

// Cancel names a request of the agent that it does not wait for any more.
type Cancel struct {
	ID json.RawMessage `json:"id"` // of the request
}

// StartTurn says what a turn is.
type StartTurn struct {
	Session   string          `json:"session"`
	Turn      string          `json:"turn,omitempty"`    // its id; default: a new one
	Cause     events.Cause    `json:"cause,omitempty"`   // default: message
	Message   string          `json:"message,omitempty"` // the id of the input that it takes
	Content   json.RawMessage `json:"content,omitempty"` // of a new message
	By        string          `json:"by,omitempty"`      // who said it
	Synthetic bool            `json:"synthetic,omitempty"`
	OfTurn    string          `json:"of_turn,omitempty"` // the turn that it continues
	Prompts   []string        `json:"prompts,omitempty"` // the decisions that it brings to the agent
	Attempt   int             `json:"attempt,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"` // what makes a retry the same request
}

// Turn is a turn for the agent to run.
type Turn struct {
	Session string `json:"session"`
	session.WorkTurn
}

// OpenTurn is the open turn of a session, if it is this process's.
type OpenTurn struct {
	Open *Turn `json:"open,omitempty"` // missing: no turn is open
}

// TurnID names a turn of a session.
type TurnID struct {
	Session string `json:"session"`
	Turn    string `json:"turn"`
}

// Content is what a message says.
type Content struct {
	Content json.RawMessage `json:"content"` // null: the turn takes no message
}

// StepBegin names a step.
type StepBegin struct {
	Session    string          `json:"session"`
	Turn       string          `json:"turn"`
	Name       string          `json:"name"`
	Input      json.RawMessage `json:"input,omitempty"`      // stored and compared: another one is name_taken
	Idempotent bool            `json:"idempotent,omitempty"` // run it again if it was cut off
}

// StepBegun says what to do for a step.
type StepBegun struct {
	Run    bool            `json:"run"`              // run it, and call turn.step_end; else take the result
	Step   string          `json:"step,omitempty"`   // run: the handle of this run
	Result json.RawMessage `json:"result,omitempty"` // not run: what an earlier run returned
}

// StepEnd says how a step ended that the agent was to run.
type StepEnd struct {
	Step   string          `json:"step"`             // the handle
	Result json.RawMessage `json:"result,omitempty"` // kept; null if it is missing
	Error  *StepError      `json:"error,omitempty"`  // it failed, and had no result: the next call runs it again
}

// StepError is why a step failed.
type StepError struct {
	Message string `json:"message"`
}

// Prompt is a question to people.
type Prompt struct {
	ID          string            `json:"id,omitempty"`   // default: a new one. Choose it, to find the prompt again
	Call        string            `json:"call,omitempty"` // the call that waits for it
	Kind        events.PromptKind `json:"kind,omitempty"` // question (default), permission or plan
	Title       string            `json:"title,omitempty"`
	Questions   []events.Question `json:"questions,omitempty"`     // default of a permission: the usual ones
	Delivery    events.Delivery   `json:"delivery,omitempty"`      // tool-result, message or callback
	OnOwnerLoss events.OwnerLoss  `json:"on_owner_loss,omitempty"` // keep or expire
	Deadline    time.Time         `json:"deadline,omitzero"`       // when it expires without a decision
	NonBlocking bool              `json:"non_blocking,omitempty"`  // the agent does not wait for it
	Native      json.RawMessage   `json:"native,omitempty"`        // opaque
}

// AskOnce is a question that is asked once for a message.
type AskOnce struct {
	Session     string            `json:"session"`
	Turn        string            `json:"turn"`
	Name        string            `json:"name"`           // the decision is kept under it
	Kind        events.PromptKind `json:"kind,omitempty"` // question (default), permission or plan
	Title       string            `json:"title,omitempty"`
	Questions   []events.Question `json:"questions,omitempty"` // default of a permission: the usual ones
	Deadline    time.Time         `json:"deadline,omitzero"`   // when it expires without a decision
	NonBlocking bool              `json:"non_blocking,omitempty"`
	Native      json.RawMessage   `json:"native,omitempty"` // opaque
}

// TurnAsk is a question within a turn.
type TurnAsk struct {
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Prompt  Prompt `json:"prompt"`
}

// SessionAsk is a question outside of turns.
type SessionAsk struct {
	Session string `json:"session"`
	Prompt  Prompt `json:"prompt"`
}

// Answer is how a prompt was settled.
type Answer struct {
	Status  session.Status  `json:"status"` // answered, rejected, dismissed, withdrawn, superseded or expired
	Answers []events.Answer `json:"answers,omitempty"`
	Choice  string          `json:"choice"`         // the option or the text, of an answer with one; else empty
	Text    string          `json:"text,omitempty"` // rejected: the correction
	By      string          `json:"by,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// PromptText names a prompt, with a text.
type PromptText struct {
	Session string `json:"session"`
	Prompt  string `json:"prompt"`
	Text    string `json:"text,omitempty"`
}

// PromptID names a prompt.
type PromptID struct {
	Session string `json:"session"`
	Prompt  string `json:"prompt"`
}

// Tool says what a call is.
type Tool struct {
	Session    string          `json:"session"`
	Turn       string          `json:"turn"`
	ID         string          `json:"id,omitempty"`    // default: a new one
	Name       string          `json:"name,omitempty"`  // of the tool, for views
	Title      string          `json:"title,omitempty"` // what the call does, for people
	Input      json.RawMessage `json:"input,omitempty"`
	Background bool            `json:"background,omitempty"` // it outlives its turn
}

// ToolID names a call that is stored.
type ToolID struct {
	ID string `json:"id"`
}

// CallEnd says how a call ended.
type CallEnd struct {
	Session string          `json:"session"`
	Call    string          `json:"call"`
	Output  json.RawMessage `json:"output,omitempty"`
}

// CallFail says that a call failed.
type CallFail struct {
	Session string         `json:"session"`
	Call    string         `json:"call"`
	Failure events.Failure `json:"failure"`
}

// CallID names a call.
type CallID struct {
	Session string `json:"session"`
	Call    string `json:"call"`
}

// Result is how a call ended, as the log has it.
type Result struct {
	Outcome   string          `json:"outcome"`
	Reason    string          `json:"reason,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     *events.Failure `json:"error,omitempty"`
	Synthetic bool            `json:"synthetic,omitempty"` // it was said in the tool's name
}

// Usage is what a model counted for its last call.
type Usage struct {
	Session             string        `json:"session"`
	Turn                string        `json:"turn"`
	Model               string        `json:"model,omitempty"`
	Tokens              events.Tokens `json:"tokens"`
	InputIncludesCached bool          `json:"input_includes_cached,omitempty"`
	ContextLimit        int64         `json:"context_limit,omitempty"` // of the model, in tokens
}

// Complete ends a turn.
type Complete struct {
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Finish  string `json:"finish,omitempty"` // the provider's reason
}

// Fail ends a turn in an error.
type Fail struct {
	Session string     `json:"session"`
	Turn    string     `json:"turn"`
	Message string     `json:"message"`
	Data    *ErrorData `json:"data,omitempty"` // as in the error of a reply
}

// Stop ends a turn on request.
type Stop struct {
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Actor   string `json:"actor"` // person, compaction or stall; that of the notification
	Reason  string `json:"reason,omitempty"`
}

// Facts are stored as one commit.
type Facts struct {
	Session string `json:"session"`
	Facts   []Fact `json:"facts"`
}

// Fact is the data of one event.
type Fact struct {
	Kind string          `json:"kind"` // tool.started, for instance
	Data json.RawMessage `json:"data,omitempty"`
}

// SessionEnd ends the part of this process in a session, or the session.
type SessionEnd struct {
	Session string `json:"session"`
	Reason  string `json:"reason"`
}

// Compact is a compaction for the agent to do.
type Compact struct {
	Session string `json:"session"`
	session.WorkCompaction
}

// Compacted is the outcome of a compaction.
type Compacted struct {
	UsedAfter int64   `json:"used_after"`        // tokens; 0: not known
	Summary   *string `json:"summary,omitempty"` // checked, not stored: an empty text or a bare object fails
}

// Cancelled says that the agent is to stop a turn or a compaction. It still replies to the request.
type Cancelled struct {
	Session    string `json:"session"`
	Turn       string `json:"turn,omitempty"`
	Compaction string `json:"compaction,omitempty"`
	Error      *Error `json:"error"` // why: stopped, fenced, lease_lost, ended, shutdown …
}

// Lost says that this process may do nothing more as its harness.
type Lost struct {
	Error *Error `json:"error"` // fenced: a newer process took its place; lease_lost
}

func (p Prompt) harness() harness.Prompt {
	return harness.Prompt{ID: p.ID, Call: p.Call, Kind: p.Kind, Title: p.Title, Questions: p.Questions,
		Delivery: p.Delivery, OnOwnerLoss: p.OnOwnerLoss, Deadline: p.Deadline, NonBlocking: p.NonBlocking,
		Native: given(p.Native)}
}

func answerOf(a harness.Answer) Answer {
	return Answer{Status: a.Status, Answers: a.Answers, Choice: a.Choice(), Text: a.Text, By: a.By, Reason: a.Reason}
}

// given returns a value that the client encodes; nil if it is missing.
func given(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return raw
}
