package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// answerOutput is what an answer becomes as the output of a call, or as the content of a message.
type answerOutput struct {
	Questions []events.Question `json:"questions"`
	Answers   []events.Answer   `json:"answers"`
}

func outputOf(asked []events.Question, answers []events.Answer) json.RawMessage {
	if asked == nil {
		asked = []events.Question{}
	}
	return encode(answerOutput{asked, answers})
}

func encode(v any) json.RawMessage {
	b, err := EncodeView(v)
	// text and lists of it always encode
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}

// resultOf is a decision as the result of its call.
func resultOf(call string, status Status, asked []events.Question, answers []events.Answer, text string) events.Fact {
	switch status {
	case Answered:
		return events.ToolCompleted{Call: call, Output: outputOf(asked, answers), Synthetic: true}
	case Superseded:
		return events.ToolFailed{Call: call, Error: events.Failure{Kind: events.ReasonAnswered,
			Text: "answered in chat"}, Synthetic: true}
	default:
		return events.ToolFailed{Call: call, Error: events.Failure{Kind: string(status), Text: cut(text, TextBytesMax)},
			Synthetic: true}
	}
}

// trimmed is a person's answers without the white space around them.
func trimmed(answers []events.Answer) []events.Answer {
	out := make([]events.Answer, len(answers))
	for i, a := range answers {
		out[i] = events.Answer{Question: a.Question, Selected: []string{}, Text: strings.TrimSpace(a.Text)}
		for _, label := range a.Selected {
			if label = strings.TrimSpace(label); label != "" {
				out[i].Selected = append(out[i].Selected, label)
			}
		}
	}
	return out
}

// checkAnswers trims a person's answers and holds them against what was asked. The refusal is 422 with a reason for
// each question, or 413; the prompt stays open. An empty answer is a skipped question.
func checkAnswers(asked []events.Question, answers []events.Answer, unreadable map[string]string) ([]events.Answer,
	error) {
	if size := len(encode(answers)); size > events.QuestionsBytesMax {
		return nil, events.TooLarge(fmt.Sprintf("the answers take %d bytes: shorten them", size),
			events.QuestionsBytesMax)
	}
	wrong := map[string]string{}
	given := map[string]bool{}
	answers = trimmed(answers)
	for i := range answers {
		a := &answers[i]
		at := slices.IndexFunc(asked, func(q events.Question) bool { return q.ID == a.Question })
		switch {
		case given[a.Question]:
			wrong[a.Question] = "answered twice"
		case at >= 0:
			if reason := misfit(&asked[at], a); reason != "" {
				wrong[a.Question] = reason
			}
		case len(asked) > 0:
			wrong[a.Question] = "no such question"
		}
		given[a.Question] = true
	}
	for _, q := range asked {
		if !given[q.ID] {
			wrong[q.ID] = "not answered: send an empty answer to skip it"
		}
	}
	maps.Copy(wrong, unreadable)
	if len(wrong) > 0 {
		return nil, &events.Refusal{Code: http.StatusUnprocessableEntity,
			Message:   "the answer does not fit the questions; the prompt stays open: " + firstOf(wrong),
			Questions: wrong}
	}
	return answers, nil
}

func firstOf(wrong map[string]string) string {
	id := sortedKeys(wrong)[0]
	return fmt.Sprintf("%s: %s", orElse(id, `""`), wrong[id])
}

// misfit returns why an answer does not fit its question, "" if it does.
func misfit(q *events.Question, a *events.Answer) string {
	free := q.Custom || len(q.Options) == 0
	values := len(a.Selected)
	if a.Text != "" {
		values++
	}
	if values > 1 && !q.Multi {
		return "several answers to a single choice"
	}
	for i, label := range a.Selected {
		if slices.Contains(a.Selected[:i], label) {
			return fmt.Sprintf("%q is selected twice", label)
		}
		if !free && !slices.ContainsFunc(q.Options,
			func(o events.Option) bool { return strings.TrimSpace(o.Label) == label }) {
			return fmt.Sprintf("%q is not offered", label)
		}
	}
	if a.Text != "" && !free {
		return "a text of one's own is not offered"
	}
	return ""
}

// sameAnswers compares what was stored with what is asked for again. Neither questions nor labels have an order.
func sameAnswers(a, b []events.Answer) bool {
	byQuestion := func(x, y events.Answer) int { return strings.Compare(x.Question, y.Question) }
	return slices.EqualFunc(slices.SortedStableFunc(slices.Values(a), byQuestion),
		slices.SortedStableFunc(slices.Values(b), byQuestion), func(x, y events.Answer) bool {
			return x.Question == y.Question && x.Text == y.Text &&
				slices.Equal(slices.Sorted(slices.Values(x.Selected)), slices.Sorted(slices.Values(y.Selected)))
		})
}
