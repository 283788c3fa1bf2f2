package events_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A refusal is decoded unchanged from the reply's code, sentence and body.
func TestRefusalRoundTrip(t *testing.T) {
	stands := events.Standing{
		Status:  "answered",
		Reason:  "r",
		Answers: []events.Answer{{Question: "q", Selected: []string{"yes"}}},
		By:      "ada",
		At:      at,
		Seq:     42,
		Prompt:  "p1",
	}
	for _, c := range []struct {
		name    string
		refusal *events.Refusal
		body    string // of the contract, section 4
	}{
		{"400", events.BadRequest(&events.FieldError{Field: "policy.resume", Err: events.ErrMalformed}),
			`{"field":"policy.resume","reason":"policy.resume: malformed"}`},
		{"400 of a policy", events.BadRequest(events.Policy{RetryMax: -1}.Validate()),
			`{"field":"policy.retry_max","reason":"policy.retry_max: -1: want 0 to 1000000 attempts"}`},
		{"400 about the whole", events.BadRequest(errors.New("no JSON")), `{"field":"body","reason":"no JSON"}`},
		{"404", events.NotFound("prompt", "p1"), `{"what":"prompt"}`},
		{"409", events.Conflict("answered otherwise", stands),
			`{"status":"answered","reason":"r","answers":[{"question":"q","selected":["yes"]}],"by":"ada",` +
				`"at":"2026-11-20T12:30:00.005Z","seq":42,"prompt":"p1"}`},
		{"410", events.Gone("expired", events.Standing{Status: "expired", Reason: "owner-lost"}),
			`{"status":"expired","reason":"owner-lost"}`},
		{"413", events.TooLarge("too long", 65536), `{"limit":65536}`},
		{"422", &events.Refusal{Code: 422, Message: "does not fit",
			Questions: map[string]string{"q": "two are selected, want one"}},
			`{"questions":{"q":"two are selected, want one"},"reason":"does not fit"}`},
		{"422 about no question in particular", &events.Refusal{Code: 422, Message: "does not fit",
			Questions: map[string]string{}}, `{"questions":{},"reason":"does not fit"}`},
		{"503", events.Unavailable("the race was lost 10 times"), `{"reason":"the race was lost 10 times"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(c.refusal.Body()); got != c.body {
				t.Errorf("body %s, want %s", got, c.body)
			}
			if code := c.name[:3]; fmt.Sprint(c.refusal.Code) != code ||
				c.refusal.Error() != c.refusal.Message+" ("+code+")" {
				t.Errorf("code %d, error %q", c.refusal.Code, c.refusal)
			}
			if got := events.ParseRefusal(c.refusal.Code, c.refusal.Message,
				c.refusal.Body()); !reflect.DeepEqual(got, c.refusal) {
				t.Errorf("came back as %+v, was %+v", got, c.refusal)
			}
		})
	}
}

// An error reply of another system's service is a refusal, too.
func TestParseRefusalOfStrangeBodies(t *testing.T) {
	for _, body := range []string{"", "no", "[]", "7", `{"status":7}`} {
		if got := events.ParseRefusal(503, "busy", []byte(body)); got.Code != 503 || got.Message != "busy" ||
			got.Stands != nil {
			t.Errorf("%q: %+v", body, got)
		}
	}
}

func TestBadRequestFindsTheField(t *testing.T) {
	err := fmt.Errorf("ledger: answer: %w", events.Ref{Session: "s"}.Validate())
	if r := events.BadRequest(err); r.Field != "harness" || r.Code != 400 {
		t.Errorf("%+v", r)
	}
}
