// Package form converts what a person types to values on the wire: arguments to answers and policies. It is pure. It
// leaves input that it cannot convert to the service, whose refusal is more precise, or refuses it with a text for a
// person.
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// Unmistakable says whether arguments are answers to these questions and nothing else: each is QUESTION=ANSWER, or the
// only one is an option of the first question. Another argument may be a text, or the name of something else.
func Unmistakable(questions []events.Question, args []string) bool {
	if len(args) == 1 && len(questions) > 0 {
		if _, offered := Option(&questions[0], strings.TrimSpace(args[0])); offered {
			return true
		}
	}
	return Unnamed(questions, args) < 0
}

// Unnamed returns the index of the first argument that is no QUESTION=ANSWER, -1 if each is one.
func Unnamed(questions []events.Question, args []string) int {
	return slices.IndexFunc(args, func(arg string) bool {
		id, _, named := strings.Cut(arg, "=")
		return !named || !slices.ContainsFunc(questions, func(q events.Question) bool { return q.ID == id })
	})
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
	case len(q.Options) > 0 && !q.Custom:
		// the ledger refuses it with the offered options
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

// Wrong returns why values are no answer to a question, with what it offers; "" if they may be one.
func Wrong(q *events.Question, values []string) string {
	if len(q.Options) == 0 || q.Custom {
		return ""
	}
	for _, value := range values {
		value = strings.TrimSpace(value)
		if _, offered := Option(q, value); value != "" && !offered {
			return fmt.Sprintf("%q is not offered; %s", value, offers(q))
		}
	}
	return ""
}

// Offered returns what the refused questions offer, a line each.
func Offered(questions []events.Question, refused map[string]string) string {
	var lines []string
	for i := range questions {
		if q := &questions[i]; refused[q.ID] != "" {
			lines = append(lines, terminal.Clean(q.ID)+": "+offers(q))
		}
	}
	return strings.Join(lines, "\n  ")
}

// offers lists the options of a question with their numbers.
func offers(q *events.Question) string {
	if len(q.Options) == 0 {
		return "a text of your own"
	}
	texts := make([]string, len(q.Options))
	for i, o := range q.Options {
		texts[i] = fmt.Sprintf("%d) %s", i+1, terminal.Clean(o.Label))
	}
	how := "one of "
	if q.Multi {
		how = "any of "
	}
	if q.Custom {
		how = "a text of your own, or " + how
	}
	return how + strings.Join(texts, ", ")
}

// typeNames has the types of a policy's fields in words.
var typeNames = map[string]string{"bool": "true or false", "int": "a whole number", "int64": "a whole number",
	"float64": "a number", "string": "a text"}

// PolicyKeys returns the keys of a policy, in order.
func PolicyKeys() []string {
	body, err := json.Marshal(events.Policy{})
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(body, &fields) != nil {
		// a policy is plain numbers and texts
		return nil
	}
	return slices.Sorted(maps.Keys(fields))
}

// Policy makes a patch of KEY=VALUE, nil without arguments. The error names the wrong value.
func Policy(args []string) (*events.PolicyPatch, error) {
	if len(args) == 0 {
		return nil, nil
	}
	fields, values := map[string]json.RawMessage{}, map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want KEY=VALUE", arg)
		}
		if keys := PolicyKeys(); !slices.Contains(keys, key) {
			return nil, fmt.Errorf("there is no key %q: want one of %s", key, strings.Join(keys, ", "))
		}
		values[key] = value
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
		return nil, fmt.Errorf("policy: %w", err)
	}
	var patch events.PolicyPatch
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&patch); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("%s=%s: want %s", wrong.Field, values[wrong.Field], typeNames[wrong.Type.String()])
		}
		return nil, fmt.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	if err := patch.Validate(); err != nil {
		if field, ok := errors.AsType[*events.FieldError](err); ok {
			err = &events.FieldError{Field: strings.TrimPrefix(field.Field, "policy."), Err: field.Err}
		}
		return nil, err
	}
	return &patch, nil
}
