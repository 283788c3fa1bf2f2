package failure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// TestProviders: T4. Errors of real providers, with their status and their code.
func TestProviders(t *testing.T) {
	for _, tt := range []struct {
		who  string
		raw  failure.Raw
		want string
	}{
		{"OpenAI, no key", failure.Raw{Status: 401, Code: "invalid_api_key",
			Text: "Incorrect API key provided: sk-x. You can find your API key at " +
				"https://platform.openai.com/account/api-keys."}, failure.Authentication},
		{"OpenAI, no money", failure.Raw{Status: 429, Code: "insufficient_quota",
			Text: "You exceeded your current quota, please check your plan and billing details."}, failure.Quota},
		{"OpenAI, no money, the code got lost", failure.Raw{Status: 429,
			Text: "You exceeded your current quota, please check your plan and billing details."}, failure.Quota},
		{"OpenAI, hard limit", failure.Raw{Status: 429, Text: "Billing hard limit has been reached"}, failure.Quota},
		{"OpenAI, hard limit in 2023", failure.Raw{Status: 400, Code: "billing_hard_limit_reached",
			Text: "Billing hard limit has been reached"}, failure.Quota},
		{"OpenAI, tokens a minute", failure.Raw{Status: 429, Code: "rate_limit_exceeded",
			Text: "Rate limit reached for gpt-3.5-turbo-0125 in organization org-x on tokens per min (TPM): Limit " +
				"40000, Used 39485, Requested 787. Please try again in 408ms."}, failure.RateLimit},
		{"OpenAI, requests a minute, with a link to billing",
			failure.Raw{Status: 429, Text: "Rate limit reached for default in organization org-x on requests per " +
				"min. Limit: 60 / min. Current: 70 / min. Please add a payment method to your account to increase " +
				"your rate limit. Visit https://platform.openai.com/account/billing to add a payment method."},
			failure.RateLimit},
		{"its code says more than its words", failure.Raw{Status: 429, Code: "rate_limit_exceeded",
			Text: "Slow down, or add credits for a higher tier."}, failure.RateLimit},
		{"a context error under 429", failure.Raw{Status: 429, Code: "context_length_exceeded", Text: "Too much."},
			failure.ContextExceeded},
		{"OpenAI, only the link", failure.Raw{Status: 429, Text: "Slow down. See " +
			"https://platform.openai.com/account/billing"}, failure.RateLimit},
		{"a bare token as the code", failure.Raw{Status: 429, Code: "prompt_too_long", Text: "Too much."},
			failure.ContextExceeded},
		{"a bare token as the text", failure.Raw{Status: 400, Text: "prompt_too_long"}, failure.ContextExceeded},
		{"OpenAI, too long", failure.Raw{Status: 400, Code: "context_length_exceeded",
			Text: "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 " +
				"tokens. Please reduce the length of the messages."}, failure.ContextExceeded},
		{"OpenAI, too long, in the stream", failure.Raw{Code: "context_length_exceeded",
			Text: "Your input exceeds the context window of this model. Please adjust your input and try again."},
			failure.ContextExceeded},
		{"OpenAI, no such model", failure.Raw{Status: 404, Code: "model_not_found",
			Text: "The model `gpt-9` does not exist or you do not have access to it."}, failure.ModelNotFound},
		{"OpenAI, its own fault", failure.Raw{Status: 500, Code: "server_error",
			Text: "The server had an error while processing your request. Sorry about that!"}, failure.ServerError},
		{"OpenAI, a wrong country", failure.Raw{Status: 403, Code: "unsupported_country_region_territory",
			Text: "Country, region, or territory not supported"}, failure.Authentication},
		{"OpenAI, a parameter", failure.Raw{Status: 400, Code: "invalid_request_error",
			Text: "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas " +
				"you provided 100000."}, failure.InvalidRequest},
		{"Anthropic, too long", failure.Raw{Status: 400, Code: "invalid_request_error",
			Text: "prompt is too long: 214676 tokens > 200000 maximum"}, failure.ContextExceeded},
		{"Anthropic, too long with its output", failure.Raw{Status: 400, Code: "invalid_request_error",
			Text: "input length and `max_tokens` exceed context limit: 187254 + 20000 > 204798, decrease input " +
				"length or `max_tokens` and try again"}, failure.ContextExceeded},
		{"Anthropic, too many bytes", failure.Raw{Status: 413, Code: "request_too_large",
			Text: "Request exceeds the maximum size"}, failure.ContextExceeded},
		{"Anthropic, no credit", failure.Raw{Status: 400, Code: "invalid_request_error",
			Text: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to " +
				"upgrade or purchase credits."}, failure.Quota},
		{"Anthropic, tokens a minute", failure.Raw{Status: 429, Code: "rate_limit_error",
			Text: "This request would exceed your organization's rate limit of 40,000 input tokens per minute."},
			failure.RateLimit},
		{"Anthropic, overloaded", failure.Raw{Status: 529, Code: "overloaded_error", Text: "Overloaded"},
			failure.ServerError},
		{"Anthropic, overloaded in the stream", failure.Raw{Code: "overloaded_error", Text: "Overloaded"},
			failure.ServerError},
		{"Anthropic, a key", failure.Raw{Status: 401, Code: "authentication_error", Text: "invalid x-api-key"},
			failure.Authentication},
		{"Google, too long", failure.Raw{Status: 400, Code: "INVALID_ARGUMENT",
			Text: "The input token count (317740) exceeds the maximum number of tokens allowed (131072)."},
			failure.ContextExceeded},
		{"Google, a key, as 400", failure.Raw{Status: 400, Code: "INVALID_ARGUMENT",
			Text: "API key not valid. Please pass a valid API key."}, failure.Authentication},
		{"Google, a quota a minute", failure.Raw{Status: 429, Code: "RESOURCE_EXHAUSTED",
			Text: "You exceeded your current quota, please check your plan and billing details.",
			Body: `"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier" … "retryDelay": "26s"`},
			failure.RateLimit},
		{"Google, a quota that time does not mend", failure.Raw{Status: 429, Code: "RESOURCE_EXHAUSTED",
			Text: "You exceeded your current quota, please check your plan and billing details."}, failure.Quota},
		{"Google, exhausted", failure.Raw{Status: 429, Code: "RESOURCE_EXHAUSTED",
			Text: "Resource has been exhausted (e.g. check quota)."}, failure.RateLimit},
		{"Google, overloaded", failure.Raw{Status: 503, Code: "UNAVAILABLE",
			Text: "The model is overloaded. Please try again later."}, failure.ServerError},
		{"Google, an abort of the server's", failure.Raw{Status: 409, Code: "ABORTED",
			Text: "The operation was aborted."}, failure.InvalidRequest},
		{"Bedrock, too long", failure.Raw{Status: 400, Code: "ValidationException",
			Text: "Input is too long for requested model."}, failure.ContextExceeded},
		{"Bedrock, too many input tokens", failure.Raw{Status: 400, Code: "ValidationException",
			Text: "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279"},
			failure.ContextExceeded},
		{"Bedrock, too much output asked for", failure.Raw{Status: 400, Code: "ValidationException",
			Text: "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum " +
				"tokens value that is lower than 4096."}, failure.InvalidRequest},
		{"Bedrock, throttled", failure.Raw{Status: 429, Code: "ThrottlingException",
			Text: "Too many tokens, please wait before trying again."}, failure.RateLimit},
		{"Bedrock, throttled, without a status", failure.Raw{Code: "com.amazonaws.bedrock#ThrottlingException",
			Text: "Too many requests"}, failure.RateLimit},
		{"Bedrock, no access", failure.Raw{Status: 403, Code: "AccessDeniedException",
			Text: "You don't have access to the model with the specified model ID."}, failure.Authentication},
		{"Azure, no deployment", failure.Raw{Status: 404, Code: "DeploymentNotFound",
			Text: "The API deployment for this resource does not exist."}, failure.ModelNotFound},
		{"Azure, filtered", failure.Raw{Status: 400, Code: "content_filter",
			Text: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."},
			failure.ModelRefusal},
		{"OpenRouter, no credits", failure.Raw{Status: 402, Text: "Insufficient credits. Add more using " +
			"https://openrouter.ai/settings/credits"}, failure.Quota},
		{"OpenRouter, flagged", failure.Raw{Status: 403, Text: "Your chosen model requires moderation and your " +
			"input was flagged"}, failure.ModelRefusal},
		{"OpenRouter, no endpoint", failure.Raw{Status: 404, Text: "No endpoints found that support tool use."},
			failure.ModelNotFound},
		{"OpenRouter, wraps a provider", failure.Raw{Status: 429, Text: "Provider returned error",
			Cause: &failure.Raw{Text: "model is temporarily rate-limited upstream. Please retry shortly."}},
			failure.RateLimit},
		{"DeepSeek, no balance", failure.Raw{Status: 402, Text: "Insufficient Balance"}, failure.Quota},
		{"DeepSeek's words under 429, by a gateway", failure.Raw{Status: 429,
			Text: "Error from provider: insufficient balance"}, failure.Quota},
		{"xAI, too long", failure.Raw{Status: 400, Text: "This model's maximum prompt length is 131072 but the " +
			"request contains 537812 tokens."}, failure.ContextExceeded},
		{"Moonshot, too long", failure.Raw{Status: 400, Text: "Invalid request: Your request exceeded model token " +
			"limit: 131072"}, failure.ContextExceeded},
		{"Mistral, too long", failure.Raw{Status: 400, Text: "Prompt contains 40000 tokens and 0 draft tokens, " +
			"too large for model with 32768 maximum context length"}, failure.ContextExceeded},
		{"MiniMax, too long", failure.Raw{Status: 400, Text: "invalid params, context window exceeds limit (2013)"},
			failure.ContextExceeded},
		{"llama.cpp, too long", failure.Raw{Status: 400, Text: "the request exceeds the available context size. " +
			"try increasing the context size or enable context shift"}, failure.ContextExceeded},
		{"LM Studio, too long", failure.Raw{Status: 400, Text: "The number of tokens to keep from the initial " +
			"prompt is greater than the context length"}, failure.ContextExceeded},
		{"TGI, too long", failure.Raw{Status: 422, Text: "Input validation error: `inputs` tokens + " +
			"`max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`"},
			failure.ContextExceeded},
		{"vLLM, too long", failure.Raw{Status: 400, Code: "400",
			Text: "You passed 202753 input tokens and requested 0 output tokens. However, the model's context " +
				"length is only 202752 tokens"}, failure.ContextExceeded},
		{"Copilot, too long", failure.Raw{Status: 400, Code: "model_max_prompt_tokens_exceeded",
			Text: "prompt token count of 130406 exceeds the limit of 128000"}, failure.ContextExceeded},
		{"a gateway that hides a context error in a 500", failure.Raw{Status: 500,
			Text: "litellm.BadRequestError: prompt is too long: 210000 tokens > 200000 maximum"},
			failure.ContextExceeded},
		{"a gateway's time is up", failure.Raw{Status: 504, Text: "context deadline exceeded"}, failure.ServerError},
		{"a gateway whose billing is down", failure.Raw{Status: 503, Text: "billing service temporarily unavailable"},
			failure.ServerError},
		{"connection refused", failure.Raw{Text: "dial tcp 127.0.0.1:1: connect: connection refused"}, failure.Network},
		{"cut off, with a code of the runtime's", failure.Raw{Code: "ECONNRESET", Text: "read ECONNRESET"},
			failure.Network},
		{"timed out, as a status", failure.Raw{Status: 408}, failure.Network},
		{"aborted by the program", failure.Raw{Code: "AbortError", Text: "This operation was aborted"},
			failure.Aborted},
		{"nothing at all", failure.Raw{}, failure.Unknown},
	} {
		if got := failure.Classify(tt.raw).Kind; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.who, got, tt.want)
		}
	}
}

// TestWrappers: T4. The innermost cause that has a kind decides.
func TestWrappers(t *testing.T) {
	refused := &failure.Raw{Status: 401, Text: "no key"}
	for _, tt := range []struct {
		what string
		raw  failure.Raw
		want events.Failure
	}{
		{"the last cause", failure.Raw{Status: 500, Text: "gave up after 3 tries",
			Cause: &failure.Raw{Text: "wrapped", Cause: refused}},
			events.Failure{Kind: failure.Authentication, Status: 401, Text: "no key"}},
		{"a cause that says nothing", failure.Raw{Status: 429, Text: "slow down", RetryAfter: "2",
			Cause: &failure.Raw{Text: "it went wrong"}}, events.Failure{Kind: failure.RateLimit, Status: 429,
			Text: "it went wrong", RetryAfterMS: 2000}},
		{"a cause that has the words only", failure.Raw{Status: 429,
			Cause: &failure.Raw{Text: "enable billing first"}},
			events.Failure{Kind: failure.Quota, Status: 429, Text: "enable billing first"}},
		{"a cause without a text", failure.Raw{Text: "above", Cause: &failure.Raw{Status: 503}},
			events.Failure{Kind: failure.ServerError, Status: 503, Text: "above"}},
	} {
		if got := failure.Classify(tt.raw); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.what, got, tt.want)
		}
	}
	circle := &failure.Raw{Text: "round and round"}
	circle.Cause = circle
	if got := failure.Classify(*circle); got.Kind != failure.Unknown {
		t.Errorf("a circle of causes: %+v", got)
	}
}

// TestRetryAfter: T2. Seconds, a date relative to the instant of the error, or words. An invalid delay is ignored.
func TestRetryAfter(t *testing.T) {
	received := time.Date(2026, 11, 20, 10, 19, 56, 500_000_000, time.UTC)
	for _, tt := range []struct {
		header, text string
		received     time.Time
		wantMS       int64
	}{
		{header: "3", wantMS: 3000},
		{header: " 0.25 ", wantMS: 250},
		{header: "0.0001", wantMS: 1},
		{header: "-5"}, {header: "0"}, {header: "NaN"}, {header: "soon"}, {header: ""},
		{header: "1e300", wantMS: failure.RetryAfterMSMax},
		{header: "Inf", wantMS: failure.RetryAfterMSMax},
		{header: "Fri, 20 Nov 2026 10:19:58 GMT", received: received, wantMS: 1500},
		{header: "Friday, 20-Nov-26 10:19:58 GMT", received: received, wantMS: 1500},
		{header: "Fri Nov 20 10:19:58 2026", received: received, wantMS: 1500},
		{header: "Fri, 20 Nov 2026 10:19:58 GMT"},                     // relative to no instant
		{header: "Fri, 20 Nov 2026 10:19:50 GMT", received: received}, // has passed
		{header: "Fri, 31 Dec 9999 23:59:59 GMT", received: received, wantMS: failure.RetryAfterMSMax},
		{text: "Please try again in 408ms. Visit …", wantMS: 408},
		{text: "Please try again in 1m30.5s.", wantMS: 90_500},
		{text: "Please retry in 35.974s.", wantMS: 35_974},
		{text: `{"@type": "RetryInfo", "retryDelay": "26s"}`, wantMS: 26_000},
		{text: "try again in 99999999999999h", wantMS: 0},
		{text: "try again in a minute"},
		{header: "soon", text: "try again in 5s"}, // the header takes precedence, and is invalid
	} {
		got := failure.Classify(failure.Raw{Status: 429, RetryAfter: tt.header, Text: tt.text, Received: tt.received})
		if got.RetryAfterMS != tt.wantMS {
			t.Errorf("%q %q: %d ms, want %d", tt.header, tt.text, got.RetryAfterMS, tt.wantMS)
		}
	}
}

// TestRetryAfterHeaders: retry-after-ms takes precedence, unless it cannot be read.
func TestRetryAfterHeaders(t *testing.T) {
	for _, tt := range []struct{ fine, coarse, want string }{
		{"", "", ""}, {"", "3", "3"}, {"250", "3", "0.25"}, {"soon", "3", "3"}, {"-1", "3", "3"}, {"1500", "", "1.5"},
	} {
		got := failure.RetryAfter(func(name string) string {
			return map[string]string{"retry-after-ms": tt.fine, "retry-after": tt.coarse}[name]
		})
		if got != tt.want {
			t.Errorf("%q, %q: %q, want %q", tt.fine, tt.coarse, got, tt.want)
		}
	}
}

// TestRetryable: T3. Both lists as in the contract. Every other kind is retryable.
func TestRetryable(t *testing.T) {
	turn := strings.Fields(
		"authentication quota model_not_found context_exceeded aborted runtime_not_ready model_refusal",
	)
	send := strings.Fields(
		"api_key_not_found oauth_not_connected provider_disabled authentication quota provider_not_supported " +
			"model_not_available invalid_model_string incompatible_workspace runtime_not_ready policy_denied",
	)
	lifted := strings.Fields("authentication quota api_key_not_found oauth_not_connected provider_disabled")
	all := slices.Concat(
		turn,
		send,
		strings.Fields(
			"rate_limit server_error network empty_output stream_truncated stalled interrupted bad_summary "+
				"invalid_request unknown never_heard_of",
		),
		[]string{""},
	)
	for _, kind := range all {
		if got := failure.Retryable(kind); got == slices.Contains(turn, kind) {
			t.Errorf("a turn that failed with %q: retryable %v", kind, got)
		}
		if got := failure.SendRetryable(kind); got == slices.Contains(send, kind) {
			t.Errorf("a send that failed with %q: retryable %v", kind, got)
		}
		if got := failure.ProviderConcern(kind); got != slices.Contains(lifted, kind) {
			t.Errorf("%q is lifted by a change at the provider: %v", kind, got)
		}
	}
}

// TestNamedKinds: a code that is a kind is the kind, with any status.
func TestNamedKinds(t *testing.T) {
	for _, kind := range []string{failure.Aborted, failure.EmptyOutput, failure.StreamTruncated,
		failure.RuntimeNotReady, failure.APIKeyNotFound, failure.BadSummary} {
		if got := failure.Classify(failure.Raw{Code: kind, Status: 500, Text: "x"}); got.Kind != kind {
			t.Errorf("%s became %s", kind, got.Kind)
		}
	}
}

// TestTexts: texts are cut in whole runes, and an error with any information has a text.
func TestTexts(t *testing.T) {
	long := failure.Classify(failure.Raw{Text: "x" + strings.Repeat("ü", failure.TextBytesMax)}).Text
	if len(long) > failure.TextBytesMax || !strings.HasSuffix(long, "ü…") {
		t.Errorf("%d bytes, ends in %q", len(long), long[len(long)-8:])
	}
	for _, tt := range []struct {
		raw  failure.Raw
		want string
	}{
		{failure.Raw{Status: 503}, "HTTP status 503"},
		{failure.Raw{Code: "ECONNRESET"}, "ECONNRESET"},
		{failure.Raw{Text: "a\xffb"}, "a\uFFFDb"},
		{failure.Raw{}, ""},
	} {
		if got := failure.Classify(tt.raw).Text; got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.raw, got, tt.want)
		}
	}
}

// FuzzClassify: every input has a kind, a short text and a valid delay, and the same result twice.
func FuzzClassify(f *testing.F) {
	f.Add(429, "rate_limit_error", "slow down", "3", "")
	f.Add(400, "", "prompt is too long", "Fri, 20 Nov 2026 10:19:58 GMT", "insufficient balance")
	f.Fuzz(func(t *testing.T, status int, code, text, after, cause string) {
		raw := failure.Raw{
			Status:     status,
			Code:       code,
			Text:       text,
			RetryAfter: after,
			Received:   time.Unix(0, 0),
			Cause:      &failure.Raw{Text: cause},
		}
		got := failure.Classify(raw)
		if got.Kind == "" || len(got.Text) > failure.TextBytesMax || got.RetryAfterMS < 0 ||
			got.RetryAfterMS > failure.RetryAfterMSMax {
			t.Errorf("%+v: %+v", raw, got)
		}
		if again := failure.Classify(raw); again != got {
			t.Errorf("not the same twice: %+v, %+v", got, again)
		}
	})
}

func ExampleClassify() {
	f := failure.Classify(failure.Raw{Status: 429, Text: "Rate limit reached. Please try again in 20s."})
	fmt.Println(f.Kind, f.RetryAfterMS, failure.Retryable(f.Kind))
	// Output: rate_limit 20000 true
}
