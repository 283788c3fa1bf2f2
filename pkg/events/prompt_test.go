package events_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// prompt decodes a prompt.requested with this data.
func prompt(t *testing.T, data string) events.Event {
	t.Helper()
	return decode(t, raw(t, map[string]any{
		"type": "holdfast.prompt.requested", "subject": "p1", "data": json.RawMessage(data)}))[0]
}

// The agent waits even if the questions are unreadable: the prompt is open, and the error is kept for the operator
// (P5).
func TestMalformedQuestions(t *testing.T) {
	for _, c := range []struct{ name, field, rest, title string }{
		{"not a list", "questions", `"title":"Sure?","questions":"yes or no"`, "Sure?"},
		{"an object", "questions", `"questions":{"id":"q"}`, ""},
		{"a list of text", "questions", `"questions":["Sure?"]`, ""},
		{"a question without id", "questions", `"questions":[{"question":"Sure?"}]`, ""},
		{"a question without text", "questions", `"questions":[{"id":"q"}]`, ""},
		{"two questions of one id", "questions", `"questions":[{"id":"q","question":"a"},{"id":"q","question":"b"}]`,
			""},
		{"options that are text", "questions", `"questions":[{"id":"q","question":"a","options":["yes"]}]`, ""},
		{"over 64 KiB", "questions", `"questions":[{"id":"q","question":"` +
			strings.Repeat("x", events.QuestionsBytesMax) + `"}]`, ""},
		{"an invalid deadline, too", "deadline", `"title":"Sure?","deadline":"soon","questions":1`, "Sure?"},
		{"a title that is a number", "questions", `"title":7,"questions":1`, "7"},
		{"a title that is an object", "questions", `"title":{"en":"Sure?"},"questions":1`, `{"en":"Sure?"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := prompt(t, `{"prompt":"p1","call":"c1","kind":"question","delivery":"callback",`+c.rest+`}`)
			wantField(t, e.Err, c.field)
			f, ok := e.Fact.(events.PromptRequested)
			if !ok || f.Prompt != "p1" || f.Call != "c1" || f.Delivery != events.DeliverCallback ||
				f.Questions != nil || f.Title != c.title {
				t.Errorf("the prompt does not stand: %+v", e.Fact)
			}
		})
	}
}

// An unreadable deadline is no deadline; the questions are kept (P5).
func TestMalformedDeadline(t *testing.T) {
	for _, deadline := range []string{`"soon"`, `17`, `{}`, `"2026-11-20"`} {
		e := prompt(
			t,
			`{"prompt":"p1","kind":"question","delivery":"callback","questions":[{"id":"q","question":"a"}],`+
				`"deadline":`+deadline+`}`,
		)
		wantField(t, e.Err, "deadline")
		if f, ok := e.Fact.(events.PromptRequested); !ok || len(f.Questions) != 1 || !f.Deadline.IsZero() {
			t.Errorf("%s: the prompt stands as %+v", deadline, e.Fact)
		}
	}
}

// A prompt without an id is malformed.
func TestPromptWithoutID(t *testing.T) {
	for name, data := range map[string]string{
		"no id":                       `{"kind":"question","questions":[]}`,
		"no id, malformed questions":  `{"kind":"question","questions":1}`,
		"another id than the subject": `{"prompt":"p2","kind":"question","questions":1}`,
	} {
		if e := prompt(t, data); !events.IsMalformed(e.Err) || e.Fact != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// Many short questions are larger with every field written out. They must still be encoded.
func TestQuestionsNearTheLimit(t *testing.T) {
	var b strings.Builder
	for i := range 1800 {
		fmt.Fprintf(&b, `,{"id":"%d","question":"Sure?"}`, i)
	}
	e := prompt(t, `{"prompt":"p1","kind":"question","delivery":"callback","questions":[`+b.String()[1:]+`]}`)
	f, ok := e.Fact.(events.PromptRequested)
	if e.Err != nil || !ok || len(f.Questions) != 1800 {
		t.Fatalf("error %v, fact %T", e.Err, e.Fact)
	}
	if _, err := events.EncodeEvent(&e); err != nil {
		t.Errorf("it cannot be sent on: %v", err)
	}
	_, err := events.EncodeBatch([]events.Event{events.New("e1", source(), ref, 1, at, f)})
	// spelt out, no reader would take them
	wantField(t, err, "questions")
}

func TestAnswersOverTheLimit(t *testing.T) {
	answer := func(n int) []events.Event {
		f := events.PromptAnswered{
			Prompt:  "p1",
			Answers: []events.Answer{{Question: "q", Text: strings.Repeat("x", n)}},
		}
		return []events.Event{events.New("e1", source(), ref, 1, at, f)}
	}
	if _, err := events.EncodeBatch(answer(events.QuestionsBytesMax - 100)); err != nil {
		t.Errorf("64 KiB of answers fit: %v", err)
	}
	_, err := events.EncodeBatch(answer(events.QuestionsBytesMax))
	wantField(t, err, "answers")
}

func TestPromptDefaults(t *testing.T) {
	for _, c := range []struct {
		name, rest string
		loss       events.OwnerLoss
		blocks     bool
	}{
		{"a callback dies with its process", `"delivery":"callback"`, events.LossExpire, true},
		{"a tool's result is kept", `"delivery":"tool-result"`, events.LossKeep, true},
		{"a message is kept", `"delivery":"message"`, events.LossKeep, true},
		{"an unknown delivery is kept", `"delivery":"pigeon"`, events.LossKeep, true},
		{"said: keep", `"delivery":"callback","on_owner_loss":"keep"`, events.LossKeep, true},
		{"said: expire", `"delivery":"message","on_owner_loss":"expire"`, events.LossExpire, true},
		{"said: something unknown", `"delivery":"callback","on_owner_loss":"shrug"`, events.LossExpire, true},
		{"said: blocking", `"delivery":"message","blocking":true`, events.LossKeep, true},
		{"said: not blocking", `"delivery":"message","blocking":false`, events.LossKeep, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, ok := prompt(t, `{"prompt":"p1","kind":"question",`+c.rest+`}`).Fact.(events.PromptRequested)
			if !ok || f.Loss() != c.loss || f.Blocks() != c.blocks {
				t.Errorf("%v %v, want %v %v", f.Loss(), f.Blocks(), c.loss, c.blocks)
			}
		})
	}
}

func TestAsked(t *testing.T) {
	own := []events.Question{{ID: "q", Question: "Sure?"}}
	allow := []events.Question{
		{ID: "permission", Question: "Run rm?", Options: []events.Option{{Label: "once"}, {Label: "always"}}},
	}
	for _, c := range []struct {
		name string
		f    events.PromptRequested
		want []events.Question
	}{
		{"a permission without questions has one", events.PromptRequested{PromptKind: events.PromptPermission,
			Title: "Run rm?"}, allow},
		{"a permission with questions has those", events.PromptRequested{PromptKind: events.PromptPermission,
			Questions: own}, own},
		{"a question has its own", events.PromptRequested{PromptKind: events.PromptQuestion, Questions: own}, own},
		{"an unknown kind without any has none", events.PromptRequested{PromptKind: "riddle"}, nil},
	} {
		if got := c.f.Asked(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Lists that the contract requires are written as lists even if they are empty.
func TestListsAreNeverNull(t *testing.T) {
	for want, v := range map[string]any{
		`{"id":"q","question":"<?>","options":[],"multi":false,"custom":false}`: events.Question{
			ID: "q", Question: "<?>"},
		`{"question":"q","selected":[]}`:       events.Answer{Question: "q"},
		`{"prompt":"p1","answers":[],"by":""}`: events.PromptAnswered{Prompt: "p1"},
	} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil || strings.TrimSpace(b.String()) != want {
			t.Errorf("%s %v, want %s", b.String(), err, want)
		}
	}
}
