// Package form converts what a person types to values on the wire: arguments to answers and policies. It is pure. It
// leaves input that it cannot convert to the service, whose refusal is more precise, or refuses it with a text for a
// person.
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Answers assigns each argument to its question: by place, or QUESTION=ANSWER by the question's id. The error names the
// argument that is one too many.
func Answers(questions []events.Question, args []string) ([]events.Answer, error) {
	if len(questions) == 0 {
		return []events.Answer{{Text: strings.Join(args, " ")}}, nil
	}
	var answers []events.Answer
	next := 0
	for _, arg := range args {
		at := -1
		if id, value, ok := strings.Cut(arg, "="); ok {
			if at = slices.IndexFunc(questions, func(q events.Question) bool { return q.ID == id }); at >= 0 {
				arg = value
			}
		}
		switch {
		case at >= 0:
		case next < len(questions):
			at = next
			next++
		case len(questions) == 1 && questions[0].Multi:
			at = 0
		default:
			return nil, fmt.Errorf("%q is one answer too many: %s asked", arg,
				terminal.Plural(len(questions), "question"))
		}
		answers = Add(answers, &questions[at], arg)
	}
	return answers, nil
}

// Add adds one value to the answer of a question: an option's label or number, or a text.
func Add(answers []events.Answer, q *events.Question, value string) []events.Answer {
	at := slices.IndexFunc(answers, func(a events.Answer) bool { return a.Question == q.ID })
	if at < 0 {
		answers = append(answers, events.Answer{Question: q.ID})
		at = len(answers) - 1
	}
	value = strings.TrimSpace(value)
	label, offered := Option(q, value)
	switch {
	case value == "":
	case offered:
		answers[at].Selected = append(answers[at].Selected, label)
	case len(q.Options) > 0 && !q.Custom: // the ledger refuses it with the offered options
		answers[at].Selected = append(answers[at].Selected, value)
	default:
		answers[at].Text = value
	}
	return answers
}

// Option returns the option with this label, in any case, or with this number.
func Option(q *events.Question, value string) (string, bool) {
	for _, same := range []func(string) bool{
		func(label string) bool { return label == value },
		func(label string) bool { return strings.EqualFold(strings.TrimSpace(label), value) },
	} {
		for _, o := range q.Options {
			if same(o.Label) {
				return o.Label, true
			}
		}
	}
	if n, err := strconv.Atoi(value); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1].Label, true
	}
	return "", false
}

// Policy makes a patch of KEY=VALUE, nil without arguments. The error names the wrong value.
func Policy(args []string) (*events.PolicyPatch, error) {
	if len(args) == 0 {
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want KEY=VALUE", arg)
		}
		switch {
		case value == "":
			fields[key] = json.RawMessage("null")
		case json.Valid([]byte(value)):
			fields[key] = json.RawMessage(value)
		default:
			text, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("%q: %v", arg, err)
			}
			fields[key] = text
		}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("form: policy: %w", err)
	}
	var patch events.PolicyPatch
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&patch); err != nil {
		return nil, fmt.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	if err := patch.Validate(); err != nil {
		if field, ok := errors.AsType[*events.FieldError](err); ok {
			err = field
		}
		return nil, err
	}
	return &patch, nil
}
