package opencode

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Kinds of failures that this bridge says. What is none of them is unknown, and may be retried like any other.
const (
	kindAborted      = "aborted"
	kindAuth         = "authentication"
	kindContext      = "context_exceeded"
	kindEmpty        = "empty_output"
	kindModel        = "model_not_found"
	kindOutputLength = "output_length"
	kindQuota        = "quota"
	kindRateLimit    = "rate_limit"
	kindRefusal      = "model_refusal"
	kindRejected     = "rejected"
	kindServer       = "server_error"
	kindTool         = "tool_error"
	kindUnknown      = "unknown"
)

const abortedError = "MessageAbortedError"

// byName are OpenCode's errors whose name alone says the kind.
var byName = map[string]string{
	abortedError:               kindAborted,
	"ContextOverflowError":     kindContext,
	"ContentFilterError":       kindRefusal,
	"MessageOutputLengthError": kindOutputLength,
	"ProviderAuthError":        kindAuth,
	"ModelNotFoundError":       kindModel,
}

var (
	contextWords = []string{"context_length_exceeded", "prompt is too long", "maximum context length", "context window", "exceeds the context", "token limit"}
	billingWords = []string{"insufficient quota", "insufficient_quota", "billing", "payment required", "insufficient balance", "add credits", "credit balance", "hard limit"}
	modelWords   = []string{"model_not_found", "modelnotfound", "model not found"}
)

// failure is what a fact says about an error of OpenCode's.
func (e *errorInfo) failure() events.Failure {
	f := events.Failure{Kind: e.kind(), Text: cutText(e.Data.Message, errorBytesMax), Status: e.Data.StatusCode, RetryAfterMS: retryAfterMS(e.Data.ResponseHeaders)}
	if f.Text == "" {
		f.Text = cutText(e.Name, errorBytesMax)
	}
	return f
}

// kind classifies an error: by its name, then by what its words say beyond doubt, then by the provider's status. A context error
// that a gateway wraps into a 5xx is one all the same: taken for retryable it would loop for ever.
func (e *errorInfo) kind() string {
	if kind := byName[e.Name]; kind != "" {
		return kind
	}
	words := strings.ToLower(e.Data.Message + " " + e.Data.ResponseBody)
	switch status := e.Data.StatusCode; {
	case status == http.StatusUnauthorized:
		return kindAuth
	case status == http.StatusPaymentRequired, status == http.StatusTooManyRequests && says(words, billingWords):
		return kindQuota
	case status == http.StatusTooManyRequests:
		return kindRateLimit
	case says(words, contextWords):
		return kindContext
	case status == http.StatusNotFound, says(words, modelWords):
		return kindModel
	case status >= http.StatusInternalServerError:
		return kindServer
	default:
		return kindUnknown
	}
}

func says(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// retryAfters are the headers of a provider's wish, with their unit in milliseconds; the finer one goes first.
var retryAfters = []struct {
	header string
	unitMS float64
}{{"retry-after-ms", 1}, {"retry-after", 1000}}

// retryAfterMS is the provider's wish in milliseconds; 0 for none, or for a date, which only a clock could turn into a delay.
func retryAfterMS(headers map[string]string) int64 {
	for _, r := range retryAfters {
		for h, v := range headers {
			n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			if strings.EqualFold(h, r.header) && err == nil && n > 0 {
				return int64(min(n*r.unitMS, retryAfterMaxMS))
			}
		}
	}
	return 0
}
