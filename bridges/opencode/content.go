package opencode

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Content limits how much of the user's content is in the facts of a translator. Call it before the first record. A
// translator stores everything, unless it was called.
func (t *Translator) Content(level agent.Content) { t.content = level }

// limit returns what is stored of a fact. Names, states and the words of this bridge are no content.
func (t *Translator) limit(f events.Fact) events.Fact {
	if t.content == agent.ContentFull {
		return f
	}
	switch f := f.(type) {
	case events.MessageAccepted:
		f.Content = encode("")
		return f
	case events.ToolStarted:
		f.Title, f.Input = t.content.Title(f.Title), t.content.Input(f.Input)
		return f
	case events.ToolCompleted:
		f.Output = nil
		return f
	case events.ToolFailed:
		f.Error.Text = t.content.Text(f.Error.Text)
		return f
	case events.PromptRejected:
		f.Text = t.content.Text(f.Text)
		return f
	case events.PromptRequested:
		return t.limitPrompt(f)
	}
	return f
}

// limitPrompt returns what is stored of a prompt. At the level none a person sees that an agent waits, what kind of
// decision it waits for, and that the rest is where the agent is shown.
func (t *Translator) limitPrompt(f events.PromptRequested) events.PromptRequested {
	var n permissionNative
	if f.PromptKind == events.PromptPermission && json.Unmarshal(f.Native, &n) == nil && n.Permission != "" {
		if n.Metadata = t.content.Input(n.Metadata); t.content.Hidden() {
			n = permissionNative{Permission: n.Permission}
		}
		f.Native = encode(n)
	}
	if !t.content.Hidden() {
		return f
	}
	f.Title = agent.Name(n.Permission)
	if f.PromptKind == events.PromptPermission {
		f.Questions = events.PermissionQuestions(agent.HiddenPermission)
	} else {
		f.Questions = hidden(f.Questions)
	}
	return f
}

// limitOpening limits the fact that opens a session.
func (t *Translator) limitOpening(o *events.SessionOpened) *events.SessionOpened {
	o.Title = t.content.Title(o.Title)
	if t.content.Hidden() {
		// the directory
		o.Native = nil
	}
	return o
}

// failure returns the failure for an error of OpenCode. Its text is content: a provider quotes what it was asked.
func (t *Translator) failure(e *errorInfo) events.Failure {
	f := e.failure(t.at)
	if t.content.Hidden() {
		f.Text = agent.Name(e.Name)
	}
	return f
}

// hiddenLabel is the label of an option of a question whose text is not stored.
func hiddenLabel(i int) string { return fmt.Sprintf("option %d", i+1) }

// hidden returns questions without their texts. The options keep their number and their order.
func hidden(questions []events.Question) []events.Question {
	all := slices.Clone(questions)
	for i := range all {
		q := events.Question{ID: all[i].ID, Question: agent.HiddenQuestion, Multi: all[i].Multi, Custom: all[i].Custom}
		for k := range all[i].Options {
			q.Options = append(q.Options, events.Option{Label: hiddenLabel(k)})
		}
		all[i] = q
	}
	return all
}

// limitAnswers returns what is stored of answers to these questions.
func (t *Translator) limitAnswers(questions []events.Question, all []events.Answer) []events.Answer {
	for i := range all {
		a := &all[i]
		if a.Text = t.content.Text(a.Text); !t.content.Hidden() || i >= len(questions) {
			continue
		}
		for k, label := range a.Selected {
			a.Selected[k] = hiddenLabel(optionAt(questions[i].Options, label))
		}
	}
	return all
}

// optionAt returns the index of an option, -1 without it.
func optionAt(options []events.Option, label string) int {
	return slices.IndexFunc(options, func(o events.Option) bool { return o.Label == label })
}

// revealed returns the label that OpenCode knows for one that a person chose. shown is the question as the log has it,
// asked as OpenCode asks it. A label of neither is the same in both.
func revealed(shown, asked events.Question, label string) string {
	i := optionAt(shown.Options, label)
	// it was stored at another level
	if i < 0 {
		i = optionAt(hidden([]events.Question{asked})[0].Options, label)
	}
	if i < 0 || i >= len(asked.Options) {
		return label
	}
	return asked.Options[i].Label
}

// sameQuestions reports whether questions of the log are those that OpenCode asks, at any level of content.
func sameQuestions(shown, asked []events.Question) bool {
	if len(shown) != len(asked) || len(asked) == 0 {
		return false
	}
	for i := range asked {
		isHidden := shown[i].Question == agent.HiddenQuestion && len(shown[i].Options) == len(asked[i].Options)
		if shown[i].Question != asked[i].Question && !isHidden {
			return false
		}
	}
	return true
}
