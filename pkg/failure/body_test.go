package failure_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// TestRead: T4. Error bodies as providers send them, in a response or in the middle of a stream.
func TestRead(t *testing.T) {
	received := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		who    string
		status int
		after  string
		body   string
		want   events.Failure
	}{
		{"OpenAI", 429, "7", `{"error":{"message":"You exceeded your current quota, please check your plan and ` +
			`billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			events.Failure{Kind: failure.Quota, Text: "You exceeded your current quota, please check your plan " +
				"and billing details.", Status: 429, RetryAfterMS: 7000}},
		{"OpenAI, no code", 400, "", `{"error":{"message":"prompt is too ` +
			`long","type":"invalid_request_error","code":null}}`,
			events.Failure{Kind: failure.ContextExceeded, Text: "prompt is too long", Status: 400}},
		{"Anthropic", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},` +
			`"request_id":"req_1"}`,
			events.Failure{Kind: failure.ServerError, Text: "Overloaded", Status: 529}},
		{"Anthropic, in a stream that began " +
			"well", 200, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			events.Failure{Kind: failure.ServerError, Text: "Overloaded"}},
		{"Google, in a list", 429, "", `[{"error":{"code":429,"message":"You exceeded your current quota, please ` +
			`check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"26s"}]}}]`,
			events.Failure{Kind: failure.RateLimit, Text: "You exceeded your current quota, please check your " +
				"plan and billing details.", Status: 429, RetryAfterMS: 26_000}},
		{"OpenRouter, with an error of its provider", 429, "", `{"error":{"message":"Provider returned ` +
			`error","code":429,"metadata":{"provider_name":"X","raw":"{\"error\":{\"message\":\"Insufficient ` +
			`Balance\",\"type\":\"unknown_error\",\"code\":\"invalid_request_error\"}}"}}}`,
			events.Failure{Kind: failure.Quota, Text: "Insufficient Balance", Status: 429}},
		{"OpenRouter, with its provider's text", 429, "", `{"error":{"message":"Provider returned ` +
			`error","code":429,"metadata":{"raw":"model x is temporarily rate-limited upstream"}}}`,
			events.Failure{Kind: failure.RateLimit, Text: "model x is temporarily rate-limited upstream", Status: 429}},
		{"OpenRouter, in a stream: the code is a status", 200, "",
			`{"error":{"code":502,"message":"Provider disconnected"}}`,
			events.Failure{Kind: failure.ServerError, Text: "Provider disconnected", Status: 502}},
		{"Bedrock", 400, "", `{"__type":"com.amazon.coral.validate#ValidationException","message":"Input is too ` +
			`long for requested model."}`,
			events.Failure{Kind: failure.ContextExceeded, Text: "Input is too long for requested model.", Status: 400}},
		{"a text in place of an object", 401, "", `{"error":"Unauthorized"}`,
			events.Failure{Kind: failure.Authentication, Text: "Unauthorized", Status: 401}},
		{"a detail", 422, "", `{"detail":"field required"}`, events.Failure{Kind: failure.InvalidRequest,
			Text: "field required", Status: 422}},
		{"HTML of a proxy", 502, "Fri, 20 Nov 2026 10:00:03 GMT", "<html><h1>502 Bad Gateway</h1></html>\n",
			events.Failure{Kind: failure.ServerError, Text: "<html><h1>502 Bad Gateway</h1></html>", Status: 502,
				RetryAfterMS: 3000}},
		{"nothing", 503, "", "", events.Failure{Kind: failure.ServerError, Text: "HTTP status 503", Status: 503}},
		{"JSON without an error", 500, "", `{"ok":false}`, events.Failure{Kind: failure.ServerError,
			Text: `{"ok":false}`, Status: 500}},
	} {
		if got := failure.Classify(failure.Read(tt.status, tt.after, received, []byte(tt.body))); got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.who, got, tt.want)
		}
	}
}

// FuzzRead: every response body can be read.
func FuzzRead(f *testing.F) {
	f.Add(429, []byte(`{"error":{"metadata":{"raw":"{\"error\":{\"message\":\"x\"}}"}}}`))
	f.Add(200, []byte(`[{"error":"x"}]`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if got := failure.Classify(failure.Read(status, "", time.Time{}, body)); got.Kind == "" ||
			len(got.Text) > failure.TextBytesMax {
			t.Errorf("%+v", got)
		}
	})
}
