package form

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func questions() []events.Question {
	return []events.Question{
		{ID: "size", Question: "Size?", Options: []events.Option{{Label: "small"}, {Label: "large"}, {Label: "1"}}},
		{ID: "colours", Question: "Colours?", Options: []events.Option{{Label: "red"}, {Label: "blue, or so"}},
			Multi: true},
		{ID: "note", Question: "Note?", Options: []events.Option{{Label: "none"}}, Custom: true},
	}
}

func selected(q string, labels ...string) events.Answer {
	return events.Answer{Question: q, Selected: labels}
}

// An argument that may be a text, or the name of another prompt, is not unmistakable.
func TestUnmistakableAnswers(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"small"}, true},
		{[]string{" LARGE "}, true},
		{[]string{"2"}, true},
		{[]string{"note=as you like"}, true},
		{[]string{"colours=red", "colours=2", "size=huge"}, true},
		{[]string{"huge"}, false},
		{[]string{"4"}, false},
		{[]string{"none"}, false}, // an option of another question than the first one
		{[]string{"small", "red"}, false},
		{[]string{"size=small", "red"}, false},
		{[]string{"size=small", "as you like"}, false},
		{[]string{"a=b"}, false},
		{[]string{""}, false},
	} {
		if got := Unmistakable(questions(), c.args); got != c.want {
			t.Errorf("%q: %v, want %v", c.args, got, c.want)
		}
	}
	if Unmistakable(questions()[2:], []string{"p98"}) || Unmistakable(nil, []string{"p98"}) {
		t.Error("a text of one's own is unmistakable")
	}
}

// Arguments become answers: by place or by id, by label in any case or by number, a text where one is allowed.
func TestAnswersFromArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []events.Answer
	}{
		"by place": {[]string{"small", "red", "none"},
			[]events.Answer{selected("size", "small"), selected("colours", "red"), selected("note", "none")}},
		"in any case": {[]string{" LARGE "}, []events.Answer{selected("size", "large")}},
		"by number": {[]string{"2", "2"},
			[]events.Answer{selected("size", "large"), selected("colours", "blue, or so")}},
		"a label that looks like a number": {[]string{"1"}, []events.Answer{selected("size", "1")}},
		"by id, in any order, several": {[]string{"colours=red", "colours=2", "size=small"},
			[]events.Answer{selected("colours", "red", "blue, or so"), selected("size", "small")}},
		"an equals sign that names nothing": {[]string{"a=b"}, []events.Answer{selected("size", "a=b")}},
		"skipped": {[]string{"", "red"},
			[]events.Answer{{Question: "size"}, selected("colours", "red")}},
		"a text of one's own": {[]string{"note=as you like"},
			[]events.Answer{{Question: "note", Text: "as you like"}}},
		"not offered: the ledger will say":   {[]string{"huge"}, []events.Answer{selected("size", "huge")}},
		"a number beyond the options is not": {[]string{"4"}, []events.Answer{selected("size", "4")}},
	} {
		got, err := Answers(questions(), c.args)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q: %+v, %v; want %+v", name, c.args, got, err, c.want)
		}
	}
	if _, err := Answers(questions(), []string{"a", "b", "c", "d"}); err == nil ||
		!strings.Contains(err.Error(), "one answer too many") {
		t.Errorf("four answers to three questions: %v", err)
	}
	if got, err := Answers(questions()[1:2], []string{"red", "2"}); err != nil || len(got) != 1 ||
		len(got[0].Selected) != 2 {
		t.Errorf("several options of the only question: %+v, %v", got, err)
	}
	if got, err := Answers(nil, []string{"just", "do", "it"}); err != nil || len(got) != 1 ||
		got[0].Text != "just do it" {
		t.Errorf("a prompt without questions: %+v, %v", got, err)
	}
}

// KEY=VALUE becomes a patch: an empty value is the default, and an unknown key is refused.
func TestPolicyFromArguments(t *testing.T) {
	got, err := Policy([]string{"auto_retry=false", "resume=hold", "retry_max=", "compaction_threshold=0.5"})
	want := &events.PolicyPatch{AutoRetry: events.Set(false), Resume: events.Set("hold"), RetryMax: events.Unset[int](),
		CompactionThreshold: events.Set(0.5)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []string{"resume", "colour=red", "retry_max=-1", "retry_max=many", "resume=maybe",
		"auto_retry=1", "compaction_threshold=2"} {
		if _, err := Policy([]string{wrong}); err == nil {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
