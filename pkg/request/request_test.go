package request_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// TestTable: each verb is listed once, of a service that appends, with one sentence. A request that changes a session
// names its person, and so does one about the past, which is limited for each person.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range request.Table() {
		name := e.Service + "." + e.Verb
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		if !slices.Contains(events.Writers(), events.Writer(e.Service)) {
			t.Errorf("%s: there is no service of this name", name)
		}
		if !strings.HasSuffix(e.Doc, ".") {
			t.Errorf("%s: %q is not a sentence", name, e.Doc)
		}
		_, changes := e.Reply.(request.Changed)
		if _, person := reflect.TypeOf(e.Request).FieldByName("By"); person != (changes || name == "ledger.get") {
			t.Errorf("%s changes a session: %v, its request names a person: %v", name, changes, person)
		}
	}
}

// TestForOperatorsAndHarnesses: two requests are for operators only, and a harness sends messages. A request that is
// added to either list changes the permissions of a secured cell.
func TestForOperatorsAndHarnesses(t *testing.T) {
	got := map[string]string{}
	for _, e := range request.Table() {
		switch name := e.Service + "." + e.Verb; {
		case e.Operator:
			got[name] = "operator"
		case e.Harness:
			got[name] = "harness"
		}
	}
	want := map[string]string{
		"ledger.rebuild": "operator", "reconciler.sweep": "operator", "compaction.send": "harness",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestValidate: a request without one of its ids is refused, and the error names the field.
func TestValidate(t *testing.T) {
	r := events.Ref{Harness: "h", Session: "s"}
	for want, q := range map[string]request.Checked{
		"":        request.Answer{Ref: r, Prompt: "p", By: "ada"},
		"harness": request.Stop{Ref: events.Ref{Session: "s"}, By: "ada"},
		"session": request.Get{Ref: events.Ref{Harness: "h"}},
		"prompt":  request.Answer{Ref: r, By: "ada"},
		"by":      request.Answer{Ref: r, Prompt: "p"},
		"message": request.Send{Ref: r, By: "ada"},
		"limit":   request.List{Limit: -1},
	} {
		check(t, q, want)
	}
	for _, q := range []request.Checked{
		request.Reject{Ref: r, By: "ada"}, request.Dismiss{Ref: r, By: "ada"},
	} {
		check(t, q, "prompt")
	}
	for _, q := range []request.Checked{
		request.Reject{Ref: r, Prompt: "p"}, request.Dismiss{Ref: r, Prompt: "p"}, request.Stop{Ref: r},
		request.Close{Ref: r}, request.Configure{Ref: r}, request.Retry{Ref: r}, request.Send{Ref: r, Message: "m"},
		request.Withdraw{Ref: r, Message: "m"}, request.Compact{Ref: r},
	} {
		check(t, q, "by")
	}
	for _, q := range []request.Checked{
		request.Sweep{}, request.Sweep{Harness: "h"}, request.Rebuild{}, request.Rebuild{Harness: "h"}, request.List{},
	} {
		check(t, q, "")
	}
	check(t, request.Rebuild{Limit: request.RebuildMax, After: "log.5"}, "")
	check(t, request.Rebuild{Limit: request.RebuildMax + 1}, "limit")
	check(t, request.Rebuild{Limit: -1}, "limit")
	long := strings.Repeat("x", events.TokenBytesMax+1)
	for _, q := range []request.Checked{
		request.Sweep{Session: "s"}, request.Sweep{Harness: long}, request.Rebuild{Harness: long, Session: "s"},
		request.List{Harness: long},
	} {
		check(t, q, "harness")
	}
}

func check(t *testing.T, q request.Checked, want string) {
	t.Helper()
	err := q.Validate()
	got := ""
	if field, ok := errors.AsType[*events.FieldError](err); ok {
		got = field.Field
	}
	if got != want || (err == nil) != (want == "") {
		t.Errorf("%T%+v: %v, want an error about %q", q, q, err, want)
	}
}

// TestAnswerThatIsNotText: an answer that cannot be read is noted with its question, and the others are kept.
func TestAnswerThatIsNotText(t *testing.T) {
	var q request.Answer
	body := `{"harness":"h","session":"s","prompt":"p","by":"ada",
		"answers":[{"question":"a","text":7},{"question":"b","text":"x"}]}`
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatal(err)
	}
	if len(q.Answers) != 2 || q.Answers[1].Text != "x" || !strings.Contains(q.Unreadable["a"], "not text") ||
		len(q.Unreadable) != 1 || q.Prompt != "p" || q.By != "ada" || q.Harness != "h" {
		t.Errorf("%+v", q)
	}
	if err := json.Unmarshal([]byte(`{"answers":"yes"}`), &q); err != nil || q.Unreadable[""] == "" {
		t.Errorf("%v: %+v", err, q)
	}
}
