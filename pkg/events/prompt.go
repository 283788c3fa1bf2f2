package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// QuestionsBytesMax is the maximum size of a prompt's questions, or of a person's answers, in bytes of JSON.
const QuestionsBytesMax = 64 << 10

// PromptKind is the purpose of a prompt. An unknown kind is shown as a generic prompt.
type PromptKind string

// Kinds of prompts.
const (
	PromptQuestion   PromptKind = "question"
	PromptPermission PromptKind = "permission"
	PromptPlan       PromptKind = "plan"
)

// Delivery is how an answer reaches the agent.
type Delivery string

// Deliveries.
const (
	DeliverToolResult Delivery = "tool-result" // as the call's output
	DeliverMessage    Delivery = "message"     // as a message
	DeliverCallback   Delivery = "callback"    // as the result of a promise in the asking process
)

// OwnerLoss is what happens to a prompt when the asking process is gone.
type OwnerLoss string

// Values of [OwnerLoss].
const (
	LossKeep   OwnerLoss = "keep"
	LossExpire OwnerLoss = "expire"
)

// Reasons of endings that several programs write or read.
const (
	ReasonOwnerLost  = "owner-lost"
	ReasonDeadline   = "deadline"
	ReasonShutdown   = "shutdown"
	ReasonTurnEnded  = "turn-ended"
	ReasonCallEnded  = "call-ended"
	ReasonClosed     = "session-closed"
	ReasonReplaced   = "replaced"
	ReasonAnswered   = "answered-in-chat"
	ReasonChildEnded = "child-settled"
	ReasonNoProgress = "no_progress"
)

// Option is one choice of a question.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Question is one question of a prompt. Multi allows several labels, Custom allows free text.
type Question struct {
	ID       string   `json:"id"`
	Header   string   `json:"header,omitempty"`
	Question string   `json:"question"`
	Options  []Option `json:"options"`
	Multi    bool     `json:"multi"`
	Custom   bool     `json:"custom"`
}

// Answer is a person's answer to one question. An answer with nothing selected and no text is a skipped question.
type Answer struct {
	Question string   `json:"question"`
	Selected []string `json:"selected"`
	Text     string   `json:"text,omitempty"`
}

// MarshalJSON writes options as a list even if it is empty, as the contract requires.
func (q Question) MarshalJSON() ([]byte, error) {
	// no recursion
	type plain Question
	if q.Options == nil {
		q.Options = []Option{}
	}
	return marshal(plain(q))
}

// MarshalJSON writes selected as a list even if it is empty, as the contract requires.
func (a Answer) MarshalJSON() ([]byte, error) {
	// no recursion
	type plain Answer
	if a.Selected == nil {
		a.Selected = []string{}
	}
	return marshal(plain(a))
}

// PermissionQuestion is the id of the question of a permission without questions.
const PermissionQuestion = "permission"

// PermissionQuestions returns the questions of a permission without questions.
func PermissionQuestions(title string) []Question {
	return []Question{{ID: PermissionQuestion, Question: title, Options: []Option{{Label: "once"}, {Label: "always"}}}}
}

// PromptRequested asks a person.
type PromptRequested struct {
	Prompt      string          `json:"prompt"`
	Turn        string          `json:"turn,omitempty"`
	Call        string          `json:"call,omitempty"`
	PromptKind  PromptKind      `json:"kind"`
	Title       string          `json:"title,omitempty"`
	Questions   []Question      `json:"questions,omitempty"`
	Delivery    Delivery        `json:"delivery"`
	OnOwnerLoss OwnerLoss       `json:"on_owner_loss,omitempty"` // default: expire iff delivery is callback, else keep
	Blocking    *bool           `json:"blocking,omitempty"`      // default true
	Deadline    time.Time       `json:"deadline,omitzero"`
	Native      json.RawMessage `json:"native,omitempty"` // opaque
}

// Kind implements [Fact].
func (PromptRequested) Kind() Kind { return "prompt.requested" }

// Subject implements [Fact].
func (f PromptRequested) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptRequested) Validate() error {
	return first(needID("prompt", f.Prompt), mayID("turn", f.Turn), mayID("call", f.Call), checkQuestions(f.Questions))
}

// Blocks reports whether the agent waits for the answer.
func (f PromptRequested) Blocks() bool { return f.Blocking == nil || *f.Blocking }

// Loss returns what happens to the prompt when its owner is gone, with the default applied.
func (f PromptRequested) Loss() OwnerLoss {
	switch {
	case f.OnOwnerLoss == LossKeep || f.OnOwnerLoss == LossExpire:
		return f.OnOwnerLoss
	case f.Delivery == DeliverCallback:
		return LossExpire
	default:
		return LossKeep
	}
}

// Asked returns the questions for a person: the prompt's, or the default ones of a permission.
func (f PromptRequested) Asked() []Question {
	if len(f.Questions) == 0 && f.PromptKind == PromptPermission {
		return PermissionQuestions(f.Title)
	}
	return f.Questions
}

// decodePromptRequested decodes a prompt even if its questions or its deadline are unreadable: the agent waits in any
// case. The prompt is then generic, or has no deadline, and the error is the reason.
func decodePromptRequested(raw json.RawMessage) (Fact, error) {
	// no questions, no recursion
	type plainPrompt PromptRequested
	var v struct {
		plainPrompt
		Questions json.RawMessage `json:"questions"`
		Title     json.RawMessage `json:"title"`
		Deadline  json.RawMessage `json:"deadline"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("%w: data: %v", ErrMalformed, err)
	}
	f := PromptRequested(v.plainPrompt)
	f.Title = asText(v.Title)
	var late, asked error
	f.Deadline, late = decodeDeadline(v.Deadline)
	f.Questions, asked = decodeQuestions(v.Questions)
	return f, first(late, asked)
}

func decodeDeadline(raw json.RawMessage) (at time.Time, err error) {
	if len(raw) == 0 {
		return at, nil
	}
	if err := json.Unmarshal(raw, &at); err != nil {
		return time.Time{}, bad("deadline", "want an RFC 3339 instant: %v", err)
	}
	return at, nil
}

func decodeQuestions(raw json.RawMessage) ([]Question, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if len(raw) > QuestionsBytesMax {
		return nil, bad("questions", "%d bytes: at most %d are allowed", len(raw), QuestionsBytesMax)
	}
	var qs []Question
	if err := json.Unmarshal(raw, &qs); err != nil {
		return nil, bad("questions", "want a list of questions: %v", err)
	}
	if err := checkQuestions(qs); err != nil {
		return nil, err
	}
	return qs, nil
}

func checkQuestions(qs []Question) error {
	for i, q := range qs {
		switch {
		case q.ID == "":
			return bad("questions", "question %d has no id", i)
		case q.Question == "":
			return bad("questions", "question %.60q has no text", q.ID)
		case slices.ContainsFunc(qs[:i], func(other Question) bool { return other.ID == q.ID }):
			return bad("questions", "question %.60q is there twice", q.ID)
		}
	}
	return nil
}

// PromptAnswered is a person's answer. If the harness appends it, the answer is delivered already. Owed says that its
// writer has a turn requested for the answer if nothing else delivers it. It is false in logs from before that rule.
type PromptAnswered struct {
	Prompt  string   `json:"prompt"`
	Answers []Answer `json:"answers"`
	By      string   `json:"by"`
	Owed    bool     `json:"owed,omitempty"`
}

// Kind implements [Fact].
func (PromptAnswered) Kind() Kind { return "prompt.answered" }

// Subject implements [Fact].
func (f PromptAnswered) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptAnswered) Validate() error { return needID("prompt", f.Prompt) }

// MarshalJSON writes answers as a list even if it is empty, as the contract requires.
func (f PromptAnswered) MarshalJSON() ([]byte, error) {
	// no recursion
	type plain PromptAnswered
	if f.Answers == nil {
		f.Answers = []Answer{}
	}
	return marshal(plain(f))
}

// PromptRejected is a person's rejection; with a text it is a correction that the model reads. Owed as in
// [PromptAnswered].
type PromptRejected struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text,omitempty"`
	By     string `json:"by"`
	Owed   bool   `json:"owed,omitempty"`
}

// Kind implements [Fact].
func (PromptRejected) Kind() Kind { return "prompt.rejected" }

// Subject implements [Fact].
func (f PromptRejected) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptRejected) Validate() error { return needID("prompt", f.Prompt) }

// PromptDismissed closes a prompt without an answer.
type PromptDismissed struct {
	Prompt string `json:"prompt"`
	By     string `json:"by"`
}

// Kind implements [Fact].
func (PromptDismissed) Kind() Kind { return "prompt.dismissed" }

// Subject implements [Fact].
func (f PromptDismissed) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptDismissed) Validate() error { return needID("prompt", f.Prompt) }

// PromptWithdrawn says the asker no longer needs an answer.
type PromptWithdrawn struct {
	Prompt string `json:"prompt"`
	Reason string `json:"reason"`
}

// Kind implements [Fact].
func (PromptWithdrawn) Kind() Kind { return "prompt.withdrawn" }

// Subject implements [Fact].
func (f PromptWithdrawn) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptWithdrawn) Validate() error { return needID("prompt", f.Prompt) }

// PromptSuperseded says a person's message took the prompt's place.
type PromptSuperseded struct {
	Prompt  string `json:"prompt"`
	Message string `json:"message"`
}

// Kind implements [Fact].
func (PromptSuperseded) Kind() Kind { return "prompt.superseded" }

// Subject implements [Fact].
func (f PromptSuperseded) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptSuperseded) Validate() error { return needID("prompt", f.Prompt) }

// PromptExpired says an answer can no longer be used: its owner is lost, or its deadline has passed.
type PromptExpired struct {
	Prompt string `json:"prompt"`
	Reason string `json:"reason"` // owner-lost, deadline
}

// Kind implements [Fact].
func (PromptExpired) Kind() Kind { return "prompt.expired" }

// Subject implements [Fact].
func (f PromptExpired) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptExpired) Validate() error { return needID("prompt", f.Prompt) }

// PromptUnattended says that nothing in the asker's process waits for the decision any more. Another request of the
// same prompt takes it back.
type PromptUnattended struct {
	Prompt string `json:"prompt"`
}

// Kind implements [Fact].
func (PromptUnattended) Kind() Kind { return "prompt.unattended" }

// Subject implements [Fact].
func (f PromptUnattended) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptUnattended) Validate() error { return needID("prompt", f.Prompt) }

// PromptAttended says that the owner takes in the decision about a settled prompt that was asked under an earlier
// epoch: a process that claims its session again after a lost lease says it of the decisions that it waits for.
type PromptAttended struct {
	Prompt string `json:"prompt"`
}

// Kind implements [Fact].
func (PromptAttended) Kind() Kind { return "prompt.attended" }

// Subject implements [Fact].
func (f PromptAttended) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptAttended) Validate() error { return needID("prompt", f.Prompt) }

// PromptDelivered is the receipt: the harness has the decision, or refuses it with a text.
type PromptDelivered struct {
	Prompt  string `json:"prompt"`
	Refused string `json:"refused,omitempty"`
}

// Kind implements [Fact].
func (PromptDelivered) Kind() Kind { return "prompt.delivered" }

// Subject implements [Fact].
func (f PromptDelivered) Subject() string { return f.Prompt }

// Validate implements [Fact].
func (f PromptDelivered) Validate() error { return needID("prompt", f.Prompt) }
